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
from gpuens.runtime.native import cpu


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
        turned = cls(np.empty(landmarks.shape[::-1], dtype=np.float32), np.zeros(len(landmarks)))
        cpu.turn_landmarks(np.ascontiguousarray(landmarks), base, *turned)
        return turned


def nearest_of_stored(
    points: Stored, lists: LandmarkLists, of: np.ndarray, landmarks: Turned, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest landmarks; the result is that of `landmark_graph.nearest_landmarks` up to rounding errors."""
    ids, squares = np.empty((len(of), n), dtype=np.int64), np.empty((len(of), n), dtype=np.float32)
    points = points._replace(begins=points.begins.astype(np.int64))
    cpu.nearest_of_stored(points, lists, np.ascontiguousarray(of), landmarks, ids, squares)
    return ids, squares
