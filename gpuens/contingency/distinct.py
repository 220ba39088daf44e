"""Equal clusterings as one: pairs of clusterings are compared once, however often these clusterings occur."""

from typing import NamedTuple

import numpy as np

from gpuens.contingency.labels import Labels
from gpuens.labels.odd_columns import first_equal_clusterings


class Distinct(NamedTuple):
    """The D distinct clusterings among M; clusterings are equal if only the names of their clusters differ.

    Attributes
    ----------
    labels : Labels
        The distinct clusterings, in the order in which they come first.
    of : ndarray (M,), int64
        The place of each clustering among the distinct ones.
    times : ndarray (D,), int64
        The number of clusterings that are equal to each distinct one.
    """

    labels: Labels
    of: np.ndarray
    times: np.ndarray

    @classmethod
    def among(cls, labels: Labels) -> "Distinct":
        """Return the distinct clusterings of labels; in GPU memory, each clustering counts as distinct.

        A clustering without any label agrees with no clustering, so it is not equal to another one either.
        """
        matrix, k = labels.matrix, np.array(labels.n_clusters, dtype=np.int64)
        n = len(k)
        first = first_equal_clusterings(matrix.T, k) if labels.device == "cpu" and n > 1 else np.arange(n)
        for place in np.flatnonzero(first < np.arange(n)).tolist():
            if not (matrix[first[place]] < k[first[place]]).any():
                first[place] = place
        places, of, times = np.unique(first, return_inverse=True, return_counts=True)
        if len(places) < n:
            labels = Labels(matrix[places], k[places].tolist(), labels.device)
        return cls(labels, of, times)

    def of_all_clusters(self, values: np.ndarray, labels: Labels) -> np.ndarray:
        """Return the values (N_c,) of the clusters of all clusterings, ``labels``, from those of the distinct ones.

        A cluster without objects has the value 0.
        """
        offsets, of_distinct = (np.concatenate([[0], np.cumsum(some.n_clusters)]) for some in (labels, self.labels))
        found = np.zeros(offsets[-1], dtype=values.dtype)
        for m, (d, own) in enumerate(zip(self.of.tolist(), labels.matrix, strict=True)):
            known = own < labels.n_clusters[m]
            found[offsets[m] + own[known]] = values[of_distinct[d] + self.labels.matrix[d][known]]
        return found


class PairScores(NamedTuple):
    """Scores of all pairs of M clusterings, stored for the pairs of the D distinct clusterings.

    Attributes
    ----------
    distinct : ndarray (D, D), float64, symmetric
        NaN for two clusterings without a labelled object in common.
    of : ndarray (M,), int64
        The place of each clustering among the distinct ones.
    """

    distinct: np.ndarray
    of: np.ndarray

    def matrix(self) -> np.ndarray:
        """Return the scores (M, M) of all pairs of clusterings."""
        whole: np.ndarray = self.distinct if len(self.of) == len(self.distinct) else self.distinct[self.of][:, self.of]
        return whole

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """Return, for each clustering, the weighted sum (M,) of its scores with all M clusterings; NaN counts as 0."""
        scores = self.distinct
        if np.isnan(scores.sum()):
            scores = np.nan_to_num(scores)
        found: np.ndarray = (scores @ self._of_distinct(weights))[self.of]
        return found

    def known(self) -> np.ndarray:
        """Return, for each clustering, the number (M,) of clusterings with which its score is not NaN."""
        found: np.ndarray = (~np.isnan(self.distinct) @ self._of_distinct(np.ones(len(self.of))))[self.of]
        return found

    def mean(self) -> float:
        """Return the mean of the scores of all pairs (M²) that are not NaN."""
        return float(self.sums(np.ones(len(self.of))).sum() / self.known().sum())

    def _of_distinct(self, weights: np.ndarray) -> np.ndarray:
        return np.bincount(self.of, weights=weights, minlength=len(self.distinct))
