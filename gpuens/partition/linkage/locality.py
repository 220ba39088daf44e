"""A locality-preserving order of label rows: similar rows are adjacent, so that the rows of a tile share many labels.

Each row and each cluster gets a point in a space of few dimensions. The points of clusters are random at first. Each
step makes a row's point the mean of its clusters' points, and then a cluster's point the mean of its rows' points.
Such steps are a power iteration: after a few steps, rows that share many clusters are near each other, and random
labels move a row only a little. The set of points is then halved repeatedly, each time along the direction in which
its points differ most. The order affects only speed; no result depends on it.
"""

from typing import Any

import numpy as np

from gpuens.labels.incidence import cluster_sums, fixed_point, row_lookups
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

DIMENSIONS = 8  # coordinates of a point
STEPS = 3  # power iterations
SAMPLED = 2**14  # rows used to compute the points of clusters
LEAF = 32  # smallest number of rows in a part that results from halving
LOOKED_AT = 64  # rows used to estimate the direction in which a part's points differ most


def locality_order(codes: Any, offsets: np.ndarray, *, device: str = "cpu") -> Any:
    """Return an order (G,), on the device, in which similar rows of ``codes`` (G, M) are adjacent."""
    clusters = np.random.default_rng(0).standard_normal((int(offsets[-1]), DIMENSIONS))
    if device == "cpu":
        order = np.empty(len(codes), dtype=np.int64)
        cpu.order_by_locality(np.ascontiguousarray(codes.T), offsets, clusters, order)
        return order
    xp = devices.namespace(device)
    sampled = xp.ascontiguousarray(codes.T[:, :: -(-len(codes) // SAMPLED)]).T
    clusters = _place_clusters(sampled, offsets, xp.asarray(clusters), device)
    return _halve_points(_place_rows(codes, offsets, clusters, device).astype(np.float32), device)


# --- other devices; kernels/cpu/linkage/locality.cpp for the CPU ------------------------------------------------------


def _place_clusters(codes: Any, offsets: np.ndarray, clusters: Any, device: str) -> Any:
    """Move the points of clusters (N_c, d), on the device, by power iterations; zeros for clusters without rows."""
    xp = devices.namespace(device)
    sizes = xp.maximum(cluster_sums(codes, offsets, xp.ones(len(codes), dtype=np.int64), device=device), 1)
    for _ in range(STEPS):
        points = _place_rows(codes, offsets, clusters, device)
        points = (points - points.mean(axis=0)) / xp.maximum(points.std(axis=0), 1e-12)
        # whole numbers: their largest is then found once, not for each dimension
        integers, unit = fixed_point(points, len(points), device=device)
        sums = [cluster_sums(codes, offsets, along, device=device) for along in xp.ascontiguousarray(integers.T)]
        clusters = xp.stack(sums, axis=1) / sizes[:, None] * unit
    return clusters


def _place_rows(codes: Any, offsets: np.ndarray, clusters: Any, device: str) -> Any:
    """Return the mean point of each row's clusters (G, d), zeros for a row without labels."""
    xp = devices.namespace(device)
    table = xp.concatenate([clusters, xp.ones((len(clusters), 1))], axis=1)
    sums = row_lookups(codes, offsets, table, device=device)
    return sums[:, :-1] / xp.maximum(sums[:, -1:], 1.0)


def _halve_points(points: Any, device: str) -> Any:
    """Return an order of points (n, d) by repeated halving along the direction of largest variance."""
    n, xp = len(points), devices.namespace(device)
    depth = max(0, (n // LEAF).bit_length() - 1)
    # all parts have equal length; the last part is padded with copies of the last point
    order = xp.concatenate([xp.arange(n), xp.full(-n % 2**depth, n, dtype=np.int64)])
    points = xp.concatenate([points, points[-1:]])
    for level in range(depth):
        parts = order.reshape(2**level, -1)
        samples = points[parts[:, :: -(-parts.shape[1] // LOOKED_AT)]]
        widest = samples.var(axis=1).argmax(axis=1)
        order = _sort_parts(parts, points[parts, widest[:, None]], xp.arange(len(parts))[:, None])
    return order[order < n]


def _sort_parts(parts: Any, along: Any, number: Any) -> Any:
    """Return the parts one after the other, each sorted by numbers ``along``: one sort of whole numbers.

    ``number`` (n_parts, 1) numbers the parts. The bits of positive float32 numbers have the order of the numbers.
    """
    bits = (along - along.min()).view(np.int32).astype(np.int64)
    return parts.ravel()[(bits + (number << 32)).ravel().argsort()]
