"""A locality-preserving order of label rows: similar rows are adjacent, so that the rows of a tile share many labels.

Each row and each cluster gets a point in a space of few dimensions. The points of clusters are random at first. Each
step makes a row's point the mean of its clusters' points, and then a cluster's point the mean of its rows' points.
Such steps are a power iteration: after a few steps, rows that share many clusters are near each other, and random
labels move a row only a little. The set of points is then halved repeatedly, each time along the direction in which
its points differ most. The order affects only speed; no result depends on it.
"""

from typing import Any

import numpy as np

from gpuens.labels.incidence import cluster_sums, row_lookups
from gpuens.runtime import device as devices

DIMENSIONS = 8  # coordinates of a point
STEPS = 3  # power iterations
SAMPLED = 2**14  # rows used to compute the points of clusters
LEAF = 32  # smallest number of rows in a part that results from halving
LOOKED_AT = 64  # rows used to estimate the direction in which a part's points differ most


def locality_order(codes: Any, offsets: np.ndarray, *, device: str = "cpu") -> Any:
    """Return an order (G,), on the device, in which similar rows of ``codes`` (G, M) are adjacent."""
    sampled = devices.to_host(codes.T[:, :: -(-len(codes) // SAMPLED)])
    clusters = _points_of_clusters(np.ascontiguousarray(sampled).T, offsets)
    points = devices.to_host(_points(codes, offsets, clusters, device))
    return devices.namespace(device).asarray(_halved(points.astype(np.float32)))


def _points_of_clusters(codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return a point for each cluster (N_c, d), on the CPU; zeros for clusters without rows."""
    clusters = np.random.default_rng(0).standard_normal((int(offsets[-1]), DIMENSIONS))
    sizes = np.maximum(cluster_sums(codes, offsets, np.ones(len(codes), dtype=np.int64)), 1)
    for _ in range(STEPS):
        points = _points(codes, offsets, clusters, "cpu")
        points = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-12)
        sums = [cluster_sums(codes, offsets, np.ascontiguousarray(along)) for along in points.T]
        clusters = np.stack(sums, axis=1) / sizes[:, None]
    return clusters


def _points(codes: Any, offsets: np.ndarray, clusters: np.ndarray, device: str) -> Any:
    """Return the mean point of each row's clusters (G, d), zeros for a row without labels."""
    xp = devices.namespace(device)
    table = np.concatenate([clusters, np.ones((len(clusters), 1))], axis=1)
    sums = row_lookups(codes, offsets, xp.asarray(table), device=device)
    return sums[:, :-1] / xp.maximum(sums[:, -1:], 1.0)


def _halved(points: np.ndarray) -> np.ndarray:
    """Return an order of points (n, d) by repeated halving along the direction of largest variance."""
    n = len(points)
    depth = max(0, (n // LEAF).bit_length() - 1)
    # all parts have equal length; the last part is padded with copies of the last point
    order = np.append(np.arange(n), np.full(-n % 2**depth, n))
    points = np.concatenate([points, points[-1:]])
    for level in range(depth):
        parts = order.reshape(2**level, -1)
        some = points[parts[:, :: -(-parts.shape[1] // LOOKED_AT)]]
        widest = some.var(axis=1).argmax(axis=1)
        along = points[parts, widest[:, None]]
        halves = np.argpartition(along, along.shape[1] // 2, axis=1)
        order = np.take_along_axis(parts, halves, axis=1).ravel()
    return order[order < n]
