"""Nearest points by a k-d tree of two levels: leaves of adjacent points, and groups of leaves.

Squared distances are summed in the order of the features, for all points of a leaf at a time. The bound of a leaf, the
squared distance of its box, is summed in the same way. Rounding is monotonic for differences, squares and sums of
numbers ≥ 0. So a bound is never above a distance, a partial sum is a bound too, and every point left out is farther
than the listed points, to the last bit.
"""

import numpy as np

from gpuens.runtime.native import cpu

LEAF = 40  # largest number of points in a leaf
VECTOR = 8  # float64 numbers in a vector; leaves are padded to whole vectors
GROUP = 64  # leaves in a group


def leaves_of(points: np.ndarray) -> cpu.Leaves:
    """Divide points (N, D), float64, into leaves, by repeated splits at the median of the feature of largest range."""
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
