"""k-means of points that are weighted sums of a few rows of a table; the points are not stored.

The point of an object is x = Σ_s shares[s] T[ids[s]]. Here, ids are the object's K landmarks, shares are their weights,
and T (p, d) is a table with a row for each landmark. The product of x with a center c is Σ_s shares[s] (T c)[ids[s]].
It takes K look-ups per center instead of d multiplications. The sum of the points of a cluster is s T, where s (p,) are
the sums of the shares of the cluster's objects.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.generate.landmark_graph import Graph, edge_weights
from gpuens.labels.incidence import fixed_point
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

CHUNK = 2**14  # number of objects in a chunk; the shares of its objects are added in the order of the objects
SUMS_BYTES = 2**27  # largest number of bytes of the sums of all chunks
# a point consists of rounding errors if its length, divided by the length of its largest term, is below this value (as
# in kernels/cpu/generate/shares.cpp)
VANISHES = 1e-7


@dataclass(frozen=True)
class LandmarkTable:
    """A table (p, d) in scaled form: row i is ``rows[i]`` times ``reach[i]``.

    ``reach`` (p,) are powers of 2 such that no number of ``rows`` (p, d) exceeds 1, so that shares fit float32.
    """

    rows: Any
    reach: Any

    @classmethod
    def of(cls, table: np.ndarray) -> "LandmarkTable":
        """Return the scaled form of a table (p, d) in host memory."""
        _, power = np.frexp(np.abs(table).max(axis=1))
        return cls(np.ldexp(table, -power[:, None], order="C"), np.ldexp(1.0, power))

    def on(self, device: str) -> "LandmarkTable":
        xp = devices.namespace(device)
        return LandmarkTable(xp.asarray(self.rows), xp.asarray(self.reach))

    def towards(self, centers: Any) -> tuple[Any, Any]:
        """Return the products (p, k) of rows and centers (k, d), and an additional number for each center (k,).

        The score of a center is the product of the point and the center, plus the number of the center. The nearest
        center has the largest score, and no score is negative.
        """
        xp = devices.namespace(devices.kind_of(self.rows))
        centers = xp.asarray(centers, dtype=np.float64)
        square = (centers * centers).sum(axis=1)
        half = square / 2
        lift = (1.001 * np.sqrt(square) + half).max() - half  # points have length 1 up to rounding
        return xp.ascontiguousarray(self.rows @ centers.T), lift


@dataclass(frozen=True)
class ObjectShares:
    """The points of objects, represented by landmarks and shares.

    ``ids`` (N, K) are the landmarks of each object, and ``values`` (N, K), float32, their shares, both on the device.
    """

    ids: Any
    values: Any
    device: str = "cpu"

    @classmethod
    def of(cls, graph: Graph, table: LandmarkTable) -> "ObjectShares":
        """Compute the shares of the objects of a graph; the shares overwrite the squared distances of the graph."""
        landmark_shares(graph.ids, graph.squares, graph.sigma, table.reach, table.rows, device=graph.device)
        return cls(graph.ids, graph.squares, graph.device)

    def at(self, objects: Any, rows: Any) -> Any:
        """Return the points (n, d), float32, of the chosen objects; each point has length 1."""
        if isinstance(objects, np.ndarray):
            objects = devices.namespace(self.device).asarray(objects)
        ids, values = self.ids[objects], self.values[objects]
        if self.device != "cpu":
            return _lookups(ids, values.astype(np.float64), rows, self.device).astype(np.float32)
        points = np.zeros((len(ids), rows.shape[1]))
        for s in range(ids.shape[1]):
            points += values[:, s, None] * rows[ids[:, s]]
        return points.astype(np.float32)

    def unlabelled(self) -> Any:
        """Return initial labels (N,), int64, all -1; `nearest` updates them in place."""
        return devices.namespace(self.device).full(len(self.ids), -1, dtype=np.int64)

    def nearest(self, towards: Any, lift: Any, labels: Any) -> tuple[Any, Any, Any]:
        """Label the objects by their nearest centers; the parameters and results are those of `nearest_by_shares`."""
        xp = devices.namespace(self.device)
        return nearest_by_shares(
            self.ids, self.values, xp.asarray(towards), xp.asarray(lift), labels, device=self.device
        )


@kernels.primitive
def landmark_shares(ids: np.ndarray, squares: np.ndarray, sigma: float, reach: np.ndarray, rows: np.ndarray) -> None:
    """Overwrite the squared distances ``squares`` (n, K), float32, to landmarks ``ids`` (n, K) by shares.

    A share is proportional to the weight of the edge and to ``reach`` (p,) of the landmark. A point is the sum of
    ``rows`` (p, d) weighted by the shares, which are scaled so that the point has length 1. If the sum is 0 up to
    rounding, all shares are 0.
    """
    cpu.landmark_shares(ids, squares, sigma, reach, np.ascontiguousarray(rows))


@landmark_shares.kernel
def _(ids: Any, squares: Any, sigma: float, reach: Any, rows: Any, *, device: str) -> None:
    at_once = max(1, devices.scratch(device) // (16 * rows.shape[1]))
    for start in range(0, len(ids), at_once):
        chunk = slice(start, start + at_once)
        terms = edge_weights(squares[chunk], sigma)[0] * reach[ids[chunk]]
        points = _lookups(ids[chunk], terms, rows, device)
        length = np.sqrt((points * points).sum(axis=1, keepdims=True))
        is_direction = length > VANISHES * terms.max(axis=1, keepdims=True)
        squares[chunk] = np.where(is_direction, terms / np.where(is_direction, length, 1.0), 0.0)


@kernels.primitive
def nearest_by_shares(
    ids: np.ndarray, shares: np.ndarray, towards: np.ndarray, lift: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Label objects by their nearest centers; if several centers are equally near, the first of them is taken.

    ``towards`` (p, k) and ``lift`` (k,) are results of `LandmarkTable.towards`. ``labels`` (N,), int64, is updated in
    place. Return, for each center, the sums of the shares (k, p) and the number (k,) of its objects, and return the
    number of labels that changed.
    """
    (n_landmarks, k), n_objects = towards.shape, len(ids)
    n_chunks = max(1, min(-(-n_objects // CHUNK), SUMS_BYTES // (8 * k * n_landmarks)))
    step = max(1, -(-n_objects // n_chunks))
    sums, sizes = np.empty((k, n_landmarks)), np.empty(k, dtype=np.int64)
    changed = cpu.nearest_by_shares(ids, shares, np.ascontiguousarray(towards), lift, labels, step, sums, sizes)
    return sums, sizes, changed


@nearest_by_shares.kernel
def _(ids: Any, shares: Any, towards: Any, lift: Any, labels: Any, *, device: str) -> tuple[Any, Any, Any]:
    """Label the objects and add their shares in one launch; the number of changed labels stays on the device."""
    xp, (n_landmarks, k), (n_objects, n_neighbors) = devices.namespace(device), towards.shape, ids.shape
    fixed, units = fixed_point(shares, n_objects, by_column=True, device=device)
    parts, sums = xp.zeros((n_neighbors, k, n_landmarks), dtype=np.int64), xp.empty((k, n_landmarks))
    sizes, changed = xp.zeros(k, dtype=np.int64), xp.zeros(1, dtype=np.uint64)
    code = kernels.c_name(ids.dtype)
    kernels.launch(
        "label_by_shares", kernels.blocks(32 * n_objects, 128), 128,
        (ids, shares, towards, lift, fixed, labels, changed, parts.view(np.uint64), sizes.view(np.uint64), n_objects,
         n_neighbors, k, n_landmarks),
        device=device, CODE=code,
    )  # fmt: skip
    kernels.launch(
        "add_shares", kernels.blocks(sums.size, 256), 256, (parts, units, sums, sums.size, n_neighbors), device=device,
        CODE=code,
    )  # fmt: skip
    return sums, sizes, changed[0]


def _lookups(ids: Any, weights: Any, table: Any, device: str) -> Any:
    """Return the weighted sums of rows of a table, (n, width), float64: row i is Σ_s weights[i, s] table[ids[i, s]].

    ``ids`` and ``weights`` have shape (n, K), and ``table`` has shape (p, width).
    """
    sums = devices.namespace(device).empty((len(ids), table.shape[1]))
    kernels.launch(
        "landmark_lookups",
        kernels.blocks(sums.size, 256),
        256,
        (ids, weights, table, sums, *ids.shape, table.shape[1]),
        device=device,
        CODE=kernels.c_name(ids.dtype),
    )
    return sums
