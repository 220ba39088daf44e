"""Reference sets: the nearest other objects of each object in feature space, exact and the same on every device.

Distances have one definition: √ Σ_d (x_id - x_jd)², float64, summed in the order of the features. The nearest come
first, and of equally distant objects the one with the smallest index. On the CPU a k-d tree finds them if there are
many objects with few features. Otherwise scikit-learn finds a few more candidates than needed; if another object might
be as near as a candidate, all objects are compared.

The tree has two levels: leaves of adjacent points, and groups of leaves. Squared distances are summed for all points of
a leaf at a time. The bound of a leaf, the squared distance of its box, is summed in the same order. Rounding is
monotonic for differences, squares and sums of numbers ≥ 0. So a bound is never above a distance, a partial sum is a
bound too, and every point left out is farther than the listed points, to the last bit.
"""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

LEAF = 40  # largest number of points in a leaf
VECTOR = 8  # float64 numbers in a vector; leaves are padded to whole vectors
GROUP = 64  # leaves in a group
SPARE = 8  # number of candidates for an object in addition to the requested number of neighbours
TREE_FROM = 50_000  # number of objects above which a k-d tree is used
TREE_FEATURES = 64  # largest number of features for which a k-d tree is used
ROWS_OF_A_THREAD = 4  # number of objects that a thread of the kernel compares with another object at once


def leaves_of(points: np.ndarray) -> cpu.Leaves:
    """Return the leaves of points (N, D), float64, by repeated splits at the median of the feature of largest range."""
    n_points, n_features = points.shape
    n_leaves = 1 << max(0, -(-n_points // LEAF) - 1).bit_length()
    starts = np.arange(n_leaves + 1) * n_points // n_leaves
    order = np.arange(n_points)
    cpu.split_points(points, starts, order)
    leaf_of = np.empty(n_points, dtype=np.int64)
    leaf_of[order] = np.repeat(np.arange(n_leaves), np.diff(starts))
    width = -(-int(np.diff(starts).max()) // VECTOR) * VECTOR
    coordinates = np.full((n_leaves * n_features, width), np.inf)
    # places without a leaf stay infinitely far from every point
    boxes = np.full((2, -(-n_leaves // GROUP) * n_features, GROUP), np.inf)
    lower, upper = boxes
    cpu.fill_leaves(points, order, starts, coordinates, lower, upper)
    hulls = lower.min(axis=1), np.where(np.isinf(upper), -np.inf, upper).max(axis=1)
    by_feature = np.concatenate([of_groups.reshape(-1, n_features).T for of_groups in hulls])
    return cpu.Leaves(order, starts, leaf_of, coordinates, np.concatenate(boxes), np.ascontiguousarray(by_feature))


class TreeReferenceSets:
    """The ``n_neighbors`` nearest other objects of each object, for ``points`` (N, D), float64, C-contiguous."""

    device = "cpu"

    def __init__(self, points: np.ndarray, n_neighbors: int) -> None:
        self.points, self.n_neighbors, self._leaves = points, n_neighbors, leaves_of(points)

    def nearest(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest objects of objects start … stop - 1, int64, and the distances, both (stop - start, T)."""
        ids = np.empty((stop - start, self.n_neighbors), dtype=np.int64)
        squares = np.empty(ids.shape)
        cpu.nearest_others(self.points, start, self._leaves, ids, squares)
        return ids, np.sqrt(squares)


class ReferenceSets:
    """Reference sets as from `TreeReferenceSets`, but from candidates that scikit-learn finds instead of a tree."""

    device = "cpu"

    def __init__(self, points: np.ndarray, n_neighbors: int) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.points, self.n_neighbors = points, n_neighbors
        # points are centred, because products of large coordinates would lose digits
        self._centred = points - points.mean(axis=0)
        self._squares = np.einsum("ij,ij->i", self._centred, self._centred)
        self._finder = NearestNeighbors(
            n_neighbors=min(len(points), n_neighbors + 1 + SPARE), n_jobs=devices.n_threads()
        ).fit(self._centred)

    def nearest(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest objects of objects start … stop - 1, int64, and the distances, both (stop - start, T)."""
        distances, candidates = self._finder.kneighbors(self._centred[start:stop])
        # a lower bound on the squared distances of all objects that are no candidates, despite scikit-learn's rounding
        eps = np.finfo(np.float64).eps
        error = 16 * eps * (self.points.shape[1] + 8) * (self._squares[start:stop] + self._squares.max())
        beyond = distances[:, -1] ** 2 - error
        if candidates.shape[1] == len(self.points):
            beyond[:] = np.inf  # all objects are candidates
        ids = np.empty((stop - start, self.n_neighbors), dtype=np.int64)
        squares = np.empty(ids.shape)
        candidates = np.ascontiguousarray(candidates, dtype=np.int64)
        cpu.nearest_candidates(self.points, start, candidates, beyond, ids, squares)
        return ids, np.sqrt(squares)


@kernels.primitive
def reference_sets(points: np.ndarray, n_neighbors: int) -> "TreeReferenceSets | ReferenceSets":
    """Return an object that finds the reference sets of points."""
    if len(points) > TREE_FROM and points.shape[1] <= TREE_FEATURES:
        return TreeReferenceSets(points, n_neighbors)
    return ReferenceSets(points, n_neighbors)


# --- kernels/reference_sets.cu ----------------------------------------------------------------------------------------


class KernelReferenceSets:
    """Reference sets by kernels that compare a block of objects with all objects."""

    def __init__(self, points: Any, n_neighbors: int, device: str) -> None:
        xp = devices.namespace(device)
        self.n_neighbors, self.device = n_neighbors, device
        n_objects, self.n_features = points.shape
        self._by_feature = xp.zeros((self.n_features + ROWS_OF_A_THREAD - 1, n_objects))
        self._by_feature[: self.n_features] = xp.asarray(points).T

    def nearest(self, start: int, stop: int) -> tuple[Any, Any]:
        xp, n_objects = devices.namespace(self.device), self._by_feature.shape[1]
        step = max(1, min(stop - start, devices.scratch(self.device) // (8 * n_objects)))
        ids = xp.empty((stop - start, self.n_neighbors), dtype=np.int64)
        squares, tile = xp.empty(ids.shape), xp.empty((step, n_objects))
        for first in range(0, stop - start, step):
            n_rows = min(step, stop - start - first)
            kernels.launch(
                "squared_distances", (kernels.blocks(n_objects, 256), kernels.blocks(n_rows, ROWS_OF_A_THREAD)), 256,
                (self._by_feature, tile, start + first, n_rows, n_objects, self.n_features), device=self.device,
            )  # fmt: skip
            kernels.launch(
                "nearest_objects", kernels.blocks(32 * n_rows, 128), 128,
                (tile, ids[first:], squares[first:], n_rows, n_objects, self.n_neighbors), device=self.device,
            )  # fmt: skip
        return ids, np.sqrt(squares)


@reference_sets.kernel
def _(points: Any, n_neighbors: int, *, device: str) -> KernelReferenceSets:
    return KernelReferenceSets(points, n_neighbors, device)
