"""The nearest landmarks of objects with sparse features, without a dense N × d matrix.

Let b be the point of an object that stores no features. The point x of an object differs from b only in the stored
features j of this object. Its squared distance to a landmark l is therefore

    |x - l|² = |b - l|² + Σ_j [(x_j - l_j)² - (b_j - l_j)²]

The first term is computed once for each landmark. All sums are in float64 and rounded once to float32, so that the
result has the precision of float32.
"""

from typing import NamedTuple

import numpy as np

from gpuens.generate.landmark_lists import LandmarkLists
from gpuens.kmeans.points import Stored
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit

LINE = 16  # number of float32 values in a cache line


class Turned(NamedTuple):
    """The transposed landmarks and their distances to an object without stored features.

    ``columns`` (d, p), float32, has a landmark in each column. ``squares`` (p,), float64, are the squared distances of
    the landmarks to the point of an object that stores no features.
    """

    columns: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, landmarks: np.ndarray, base: np.ndarray) -> "Turned":
        """Transpose ``landmarks`` (p, d), and compute their squared distances to ``base`` (d,) of `Stored` points."""
        found = cls(np.empty(landmarks.shape[::-1], dtype=np.float32), np.zeros(len(landmarks)))
        _turn(landmarks, base, *found)
        return found


def nearest_of_stored(
    points: Stored, lists: LandmarkLists, of: np.ndarray, landmarks: Turned, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest landmarks; the result is that of `landmark_graph.nearest_landmarks` up to rounding errors."""
    ids, squares = np.empty((len(of), n), dtype=np.int64), np.empty((len(of), n), dtype=np.float32)

    def work(start: int, stop: int) -> None:
        _compare(start, stop, *points, lists.ids, lists.begins, of, *landmarks, ids, squares)

    devices.over_ranges(work, len(of))
    return ids, squares


@njit(cache=True, nogil=True)
def _turn(landmarks, base, columns, squares):
    for first in range(0, len(base), LINE):  # each cache line of a landmark is read once
        for c in range(len(landmarks)):
            for j in range(first, min(first + LINE, len(base))):
                apart = np.float64(landmarks[c, j]) - base[j]
                columns[j, c] = landmarks[c, j]
                squares[c] += apart * apart


@njit(cache=True, nogil=True)
def _compare(start, stop, begins, features, values, base, listed, list_begins, of, columns, from_base, ids, squares):
    """Compare objects ``start`` … ``stop`` - 1 with the landmarks of their lists."""
    longest = (list_begins[1:] - list_begins[:-1]).max()
    exact, apart = np.empty(longest), np.empty(longest, dtype=np.float32)
    for i in range(start, stop):
        own = listed[list_begins[of[i]] : list_begins[of[i] + 1]]
        for c in range(len(own)):
            exact[c] = from_base[own[c]]
        for s in range(begins[i], begins[i + 1]):
            j = features[s]
            x, b, landmarks = np.float64(values[s]), np.float64(base[j]), columns[j]
            for c in range(len(own)):
                exact[c] += (x - b) * (x + b - 2.0 * landmarks[own[c]])
        for c in range(len(own)):
            apart[c] = max(exact[c], 0.0)  # a negative squared distance is a rounding error
        for s in range(ids.shape[1]):
            least = apart[: len(own)].argmin()
            ids[i, s], squares[i, s] = own[least], apart[least]
            apart[least] = np.inf
