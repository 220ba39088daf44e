"""Co-association over only those clusterings that label both objects: a missing label counts as not observed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.labels.incidence import label_histograms, row_lookups
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.similarity.base import Features, LookedUp, Measure, Similarity, Sums, weights_of_clusterings
from gpuens.similarity.diagonal import Diagonal, coassociation_tile


class Observed(Similarity):
    """The similarity Σ_m λ_m [same cluster] / Σ_m λ_m [both labelled], 0 if no clustering labels both objects.

    Attributes
    ----------
    weights : ndarray (N_c,), int64 ones or float64
        λ of the clustering of each cluster.
    of_clusterings : ndarray (M,)
        λ of each clustering.
    """

    kind = "observed"
    scale = 1.0
    needs_common_labels = True

    def __init__(self, of_clusterings: np.ndarray, offsets: np.ndarray) -> None:
        self.of_clusterings, self.offsets = of_clusterings, offsets
        self.weights = np.repeat(of_clusterings, np.diff(offsets))
        self.results: dict[str, Any] = {}

    def simplest(self, rows: Rows) -> Similarity:
        """Return the plain co-association if no label is missing."""
        missing = bool((rows.codes == rows.ensemble.missing_code).any())
        return self if missing else Diagonal(self.weights, self.offsets)

    def take(self, is_kept: np.ndarray, offsets: np.ndarray) -> "Observed":
        """Return the similarity by the clusters in a mask (N_c,); ``offsets`` (M + 1,) are their new numbering."""
        return Observed(self.of_clusterings, offsets)

    def upper_bound(self) -> float:
        return 1.0

    def tile(self, rows: Rows, start: int, stop: int, first: int = 0) -> np.ndarray:
        together, labelled = self._pair_weights(rows.take(slice(start, stop)), rows.take(slice(first, None)))
        return np.divide(together, labelled, out=together, where=labelled > 0)

    def block(self, rows: Rows, i: np.ndarray, j: np.ndarray) -> devices.Array:
        """Return the similarities of rows i to rows j in the memory of the labels, NaN if no clustering labels both."""
        together, labelled = self._pair_weights(rows.take(i), rows.take(j))
        with np.errstate(invalid="ignore"):
            return devices.give_back(together / labelled, rows.ensemble.device_kind)

    def _pair_weights(self, rows: Rows, cols: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of the clusterings with a common cluster, and with two labels, for all pairs, host."""

        def sums(codes: Any, col_codes: Any, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
            weights_of_clusters = weights.astype(np.float64, copy=False)
            means = coassociation_tile(codes, col_codes, offsets, weights_of_clusters, device=rows.device)
            total: np.ndarray = devices.to_host(means) * rows.n_clusterings
            return np.rint(total) if weights.dtype.kind == "i" else total

        offsets = np.arange(rows.n_clusterings + 1)
        together = sums(rows.codes, cols.codes, self.offsets, self.weights)
        return together, sums(_mark_labelled(rows), _mark_labelled(cols), offsets, self.of_clusterings)

    def self_similarities(self, rows: Rows) -> np.ndarray:
        return devices.to_host((rows.codes != rows.ensemble.missing_code).any(axis=1)).astype(np.float64)

    def sums(self, rows: Rows, labels: np.ndarray) -> Sums:
        """Return a function that maps rows to ratios of sums over a cluster's members, times the number of members."""
        k, counts = int(labels.max()) + 1, rows.xp.asarray(rows.counts)
        arguments = counts, rows.xp.asarray(labels), k
        shared, labelled = (
            devices.to_host(label_histograms(codes, offsets, *arguments, device=rows.device)).astype(np.float64)
            for codes, offsets in (
                (rows.codes, rows.offsets),
                (_mark_labelled(rows), np.arange(rows.n_clusterings + 1)),
            )
        )
        of_clusters = LookedUp(self.weights[:, None] * shared)
        members = np.bincount(devices.to_host(labels), weights=rows.counts, minlength=k)
        return Ratios(of_clusters, self.of_clusterings[:, None] * labelled, members)


@dataclass(frozen=True)
class Ratios:
    """A function that maps rows to ratios (G, k) of sums over a cluster's members, times the number of members."""

    together: LookedUp
    both: np.ndarray  # (M, k), the denominators of the ratios
    members: np.ndarray  # (k,), the number of members of each cluster

    def __call__(self, rows: Rows) -> np.ndarray:
        offsets = np.arange(rows.n_clusterings + 1)
        labelled_weights = devices.to_host(row_lookups(_mark_labelled(rows), offsets, self.both, device=rows.device))
        together = self.together(rows)
        ratios: np.ndarray = np.divide(together, labelled_weights, out=together, where=labelled_weights > 0)
        ratios *= self.members
        return ratios


@dataclass(frozen=True, eq=False)
class ObservedCoassociation(Measure):
    """Co-association of observed pairs: the share of the clusterings that label both objects, C of Monti et al. (2003).

    Two objects have similarity 0 if no clustering labels both. Average linkage, and the similarity of an object to a
    cluster, is a ratio of two sums over all pairs of their objects: how many clusterings put the pair together, divided
    by how many label both.

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 1], [0, None, 1]])
    >>> ge.similarity.ObservedCoassociation()(rows).tile(rows, 0, 1).tolist()
    [[1.0, 1.0, 0.0]]
    """

    weights: Any = None
    kind = "observed"
    real_weights = True

    def __call__(self, rows: Rows, features: Features | None = None) -> Observed:
        return Observed(weights_of_clusterings(self.weights, rows), rows.offsets)


def _mark_labelled(rows: Rows) -> Any:
    """Return codes (G, M) in which every label is 0, and missing labels stay missing."""
    codes, missing = rows.codes, rows.ensemble.missing_code
    return rows.xp.asfortranarray(rows.xp.where(codes == missing, codes, codes.dtype.type(0)))
