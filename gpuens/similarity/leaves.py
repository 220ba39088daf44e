"""Nearest points by a k-d tree of two levels: leaves of adjacent points, and groups of leaves.

Squared distances are summed in the order of the features, for all points of a leaf at a time. The bound of a leaf, the
squared distance of its box, is summed in the same way. Rounding is monotonic for differences, squares and sums of
numbers ≥ 0. So a bound is never above a distance, a partial sum is a bound too, and every point left out is farther
than the listed points, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from gpuens.runtime.compiled import njit

LEAF = 40  # largest number of points in a leaf
VECTOR = 8  # float64 numbers in a vector; leaves are padded to whole vectors
GROUP = 64  # leaves in a group


class Leaves(NamedTuple):
    """Points (N, D) in leaves; an array (2, …) of bounds has the lower bounds first."""

    order: np.ndarray  # (N,) int64: the indices of the points, leaf by leaf
    starts: np.ndarray  # (n_leaves + 1,) int64: the first place of each leaf in ``order``
    leaf_of: np.ndarray  # (N,) int64: the leaf of each point
    coordinates: np.ndarray  # (n_leaves, D, n ≤ LEAF); places beyond the points of a leaf are infinite
    boxes: np.ndarray  # (2, n_groups, D, GROUP): the smallest and largest coordinates of leaves
    hulls: np.ndarray  # (2, D, n_groups): the smallest and largest coordinates of groups


def leaves_of(points: np.ndarray) -> Leaves:
    """Divide points (N, D), float64, into leaves, by repeated splits at the median of the feature of largest range."""
    n_points, n_features = points.shape
    n_leaves = 1 << max(0, -(-n_points // LEAF) - 1).bit_length()
    starts = np.arange(n_leaves + 1) * n_points // n_leaves
    order = np.arange(n_points)
    _halve(points, order, starts)
    leaf_of = np.empty(n_points, dtype=np.int64)
    leaf_of[order] = np.repeat(np.arange(n_leaves), np.diff(starts))
    width = -(-int(np.diff(starts).max()) // VECTOR) * VECTOR
    coordinates = np.full((n_leaves, n_features, width), np.inf)
    # places without a leaf stay infinitely far from every point
    boxes = np.full((2, -(-n_leaves // GROUP), n_features, GROUP), np.inf)
    _fill(points, order, starts, coordinates, boxes)
    lower, upper = boxes
    hulls = np.stack([lower.min(axis=2).T, np.where(np.isinf(upper), -np.inf, upper).max(axis=2).T])
    return Leaves(order, starts, leaf_of, coordinates, boxes, hulls)


@njit(cache=True, nogil=True)
def _halve(points, order, starts):
    """Sort ``order`` in place, so that leaf i has the points from ``starts[i]`` to ``starts[i + 1]``."""
    n_features = points.shape[1]
    low, high = np.empty(n_features), np.empty(n_features)
    n_leaves = len(starts) - 1
    while n_leaves > 1:
        for leaf in range(0, len(starts) - 1, n_leaves):
            own = order[starts[leaf] : starts[leaf + n_leaves]].copy()
            low[:], high[:] = np.inf, -np.inf
            for i in own:
                for d in range(n_features):
                    low[d], high[d] = min(low[d], points[i, d]), max(high[d], points[i, d])
            widest = np.argmax(high - low)
            values = np.empty(len(own))
            for p in range(len(own)):
                values[p] = points[own[p], widest]
            order[starts[leaf] : starts[leaf + n_leaves]] = own[np.argsort(values)]
        n_leaves //= 2


@njit(cache=True, nogil=True)
def _fill(points, order, starts, coordinates, boxes):
    lower, upper = boxes[0], boxes[1]
    for leaf in range(len(starts) - 1):
        group, at = leaf // GROUP, leaf % GROUP
        for p in range(starts[leaf], starts[leaf + 1]):
            point = points[order[p]]
            for d in range(len(point)):
                coordinates[leaf, d, p - starts[leaf]] = point[d]
                first = p == starts[leaf]
                lower[group, d, at] = point[d] if first else min(lower[group, d, at], point[d])
                upper[group, d, at] = point[d] if first else max(upper[group, d, at], point[d])


@njit(cache=True, nogil=True)
def nearest_others(start, stop, first, points, leaves, ids, squares):
    """Write the nearest points of the points first + start … first + stop - 1 to the rows start … stop - 1.

    ``ids`` and ``squares`` are (R, T), T < N, nearest first; of equally near points the smallest index comes first.
    """
    order, starts, leaf_of, coordinates, boxes, hulls = leaves
    n_leaves, n_groups, n_neighbors = len(coordinates), hulls.shape[2], ids.shape[1]
    of_points, of_leaves, of_groups = np.empty(coordinates.shape[2]), np.empty(GROUP), np.empty(n_groups)
    for r in range(start, stop):
        point, own, listed, limit = points[first + r], leaf_of[first + r], 0, np.inf
        _bounds(point, hulls[0], hulls[1], of_groups, limit)
        for step in range(-1, n_groups):  # the point's own group is searched first, and in this group its own leaf
            group = own // GROUP if step < 0 else step
            if step >= 0 and (group == own // GROUP or of_groups[group] > limit):
                continue
            if not _bounds(point, boxes[0, group], boxes[1, group], of_leaves, limit):
                continue
            for at in range(-1 if step < 0 else 0, min(GROUP, n_leaves - group * GROUP)):
                leaf = own if at < 0 else group * GROUP + at
                if at >= 0 and (leaf == own or of_leaves[at] > limit):
                    continue
                if not _distances(point, coordinates[leaf], of_points, limit):
                    continue
                for p in range(starts[leaf], starts[leaf + 1]):
                    square = of_points[p - starts[leaf]]
                    if square <= limit and order[p] != first + r:
                        listed = offer(ids[r], squares[r], listed, order[p], square)
                        if listed == n_neighbors:
                            limit = squares[r, n_neighbors - 1]


@njit(cache=True, nogil=True, makes_arrays=False)
def _distances(point, coordinates, found, limit):
    """Write the squared distances of a leaf's points; return whether any may be within the limit."""
    n = np.uint64(len(found))
    for p in range(n):
        found[p] = 0.0
    for d in range(len(point)):
        x, others = point[d], coordinates[d]
        for p in range(n):
            found[p] += (x - others[p]) * (x - others[p])
        if d % 16 == 9 and not _any_within(found, limit):
            return False
    return True


@njit(cache=True, nogil=True, makes_arrays=False)
def _bounds(point, lower, upper, found, limit):
    """Write the squared distances of a group's boxes, and return whether any may be within the limit."""
    n = np.uint64(len(found))
    for b in range(n):
        found[b] = 0.0
    for d in range(len(point)):
        x, low, high = point[d], lower[d], upper[d]
        for b in range(n):
            gap = max(max(low[b] - x, x - high[b]), 0.0)
            found[b] += gap * gap
        if d % 16 == 9 and not _any_within(found, limit):
            return False
    return True


@njit(cache=True, nogil=True, makes_arrays=False)
def _any_within(found, limit):
    within = False
    for p in range(np.uint64(len(found))):
        within |= found[p] <= limit
    return within


@njit(cache=True, nogil=True, makes_arrays=False)
def offer(ids, squares, listed, new_id, square):
    """Insert an object into a list sorted by distance, drop the last entry of a full list; return the list's length."""
    position = listed
    if listed == len(ids):
        position -= 1
        if square > squares[position] or (square == squares[position] and new_id > ids[position]):
            return listed
    else:
        listed += 1
    while position > 0 and (
        square < squares[position - 1] or (square == squares[position - 1] and new_id < ids[position - 1])
    ):
        ids[position], squares[position] = ids[position - 1], squares[position - 1]
        position -= 1
    ids[position], squares[position] = new_id, square
    return listed
