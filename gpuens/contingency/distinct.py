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

    def expand(self, values: np.ndarray, labels: Labels) -> np.ndarray:
        """Return the values (N_c,) of the clusters of all clusterings, ``labels``, from those of the distinct ones.

        A cluster without objects has the value 0.
        """
        offsets, of_distinct = (np.concatenate([[0], np.cumsum(parts.n_clusters)]) for parts in (labels, self.labels))
        spread = np.zeros(offsets[-1], dtype=values.dtype)
        for m, (d, column) in enumerate(zip(self.of.tolist(), labels.matrix, strict=True)):
            labelled = column < labels.n_clusters[m]
            spread[offsets[m] + column[labelled]] = values[of_distinct[d] + self.labels.matrix[d][labelled]]
        return spread


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
        return self.distinct if len(self.of) == len(self.distinct) else self.distinct[self.of][:, self.of]

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """Return, for each clustering, the weighted sum (M,) of its scores with all M clusterings; NaN counts as 0."""
        scores = self.distinct
        if np.isnan(scores.sum()):
            scores = np.nan_to_num(scores)
        return (scores @ self._fold_weights(weights))[self.of]

    def n_comparable(self) -> np.ndarray:
        """Return, for each clustering, the number (M,) of clusterings with which its score is not NaN."""
        return (~np.isnan(self.distinct) @ self._fold_weights(np.ones(len(self.of))))[self.of]

    def mean(self) -> float:
        """Return the mean of the scores of all pairs (M²) that are not NaN."""
        return float(self.sums(np.ones(len(self.of))).sum() / self.n_comparable().sum())

    def _fold_weights(self, weights: np.ndarray) -> np.ndarray:
        return np.bincount(self.of, weights=weights, minlength=len(self.distinct))
