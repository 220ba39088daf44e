"""Similarities of objects: most are defined by a matrix S of clusters, some only by pairs of rows.

The similarity of objects is B S Bᵀ / M, where B (N, N_c) is the incidence of objects and clusters and S (N_c, N_c) is
the similarity of clusters. A diagonal S counts shared clusters, a block-diagonal S compares the clusters within each
clustering, a full S compares all clusters. `Diagonal`, `Blocks` and `Full` store only these numbers of S, and compute
products and tiles; partitioners need nothing else. B S Bᵀ is never built.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gpuens.contingency.clusters import intersections_of
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.incidence import label_histograms, row_lookups, row_sums
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.products import product

Sums = Callable[[Rows], np.ndarray]


class Measure:
    """A way to compute similarity: a `Measure` is called with rows and returns the `Similarity` of the rows.

    A subclass is a frozen dataclass that checks its parameters on construction and implements ``__call__``. Its
    attributes describe the similarity in advance, so a partitioner that cannot use it is refused before any work.

    Attributes
    ----------
    kind : str
        See `Similarity`.
    any_sign : bool
        Whether similarities can be negative.
    learns_by_sums : bool
        Whether rows may be in pieces.
    real_weights : bool
        Whether only the ratios of the counts of rows matter, so that weights of objects may have fractions.
    needs_features : bool
        Whether ``__call__`` needs ``features``.

    Examples
    --------
    Co-association in which a cluster counts by the share of the objects that are not in it:

    >>> from dataclasses import dataclass
    >>> import gpuens as ge
    >>> @dataclass(frozen=True)
    ... class SmallClusters(ge.similarity.Measure):
    ...     kind = "diagonal"
    ...
    ...     def __call__(self, rows, features=None):
    ...         weights = 1.0 - rows.cluster_sizes() / rows.n_objects  # (N_c,)
    ...         return ge.similarity.Diagonal(weights, rows.offsets)
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.Consensus(2, similarity=SmallClusters(), partitioner="average").fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    kind: ClassVar[str]
    any_sign: ClassVar[bool] = False
    learns_by_sums: ClassVar[bool] = False
    real_weights: ClassVar[bool] = False
    needs_features: ClassVar[bool] = False

    def refuse_too_many(self, rows: Rows) -> None:
        """Raise MemoryError, before any work, if the similarity of these rows does not fit the memory budget."""

    def __call__(self, rows: Rows, features: "Features | None" = None) -> "Similarity":
        """Return the similarity of rows; every subclass must define this method.

        Parameters
        ----------
        rows : Rows
            G distinct label rows in M clusterings. ``rows.codes`` (G, M) are the labels, 0 … k_m - 1 in clustering m
            and -1 (the largest number of an unsigned type) for missing; ``rows.counts`` (G,) the number of objects of
            each row; ``rows.offsets`` (M + 1,) the number of the first cluster of each clustering, so that
            ``offsets[m] + codes[g, m]`` is a cluster, 0 … N_c - 1; ``rows.cluster_sizes()`` (N_c,) the number of
            objects of each cluster.
        features : Features, optional
            Values (N, D) and labels of all N objects; may be None if `needs_features` is False.

        Returns
        -------
        Similarity
            Usually defined by a matrix S of clusters: ``Diagonal(weights (N_c,), rows.offsets)``, ``Blocks([S_m
            (k_m, k_m), …])`` or ``Full(S (N_c, N_c), rows.offsets)``, all symmetric and float64. The similarity of two
            objects is then the sum of S over the pairs of their clusters, divided by M. A similarity by any other rule
            is a subclass of `Similarity` of the kind "pairs".
        """
        raise NotImplementedError


class Features(NamedTuple):
    """Features and labels of all objects, independent of any reduction."""

    values: Any  # (N, D)
    ensemble: Ensemble
    n_clusters: int | None  # as given by the caller


class Similarity:
    """Similarity of any two label rows that use the same numbering of clusters.

    Attributes
    ----------
    kind : {"diagonal", "blocks", "full", "pairs", "observed"}
        The form in which the similarity is stored; partitioners list the kinds that they accept.
    scale : float
        The factor by which `sums` are larger than sums of similarities, the same for all rows.
    results : dict
        Results for the estimator, by the name of its attribute without the final underscore.
    integral : bool
        Whether all similarities are whole multiples of 1 / scale.
    any_sign : bool
        Whether similarities can be negative, so that 0 does not mean that two objects have nothing in common.
    needs_common_labels : bool
        Whether two objects that no clustering labels both have no similarity; it counts as 0.
    """

    kind: ClassVar[str]
    any_sign: ClassVar[bool] = False
    needs_common_labels: ClassVar[bool] = False
    scale: float
    results: dict[str, Any]
    integral = False

    def simplest(self, rows: Rows) -> "Similarity":
        """Return a similarity that is equal for these rows but simpler to compute, or this similarity."""
        return self

    def upper_bound(self) -> float:
        """Return an upper bound on the similarity of two objects."""
        raise NotImplementedError

    def tile(self, rows: Rows, start: int, stop: int, first: int = 0) -> np.ndarray:
        """Return the similarities of objects of rows start … stop - 1 with those of rows first …, float64, host."""
        raise NotImplementedError

    def self_similarities(self, rows: Rows) -> np.ndarray:
        """Return the similarity of two different objects that share a row, for each row (G,), host."""
        raise NotImplementedError

    def between_clusters(self, rows: Rows) -> np.ndarray:
        """Return the mean similarities (N_c, N_c), host, of the objects of two clusters; 0 for empty clusters."""
        raise NotImplementedError

    def sums(self, rows: Rows, labels: np.ndarray) -> Sums:
        """Return a function that maps rows to their summed similarities with each cluster, times ``scale``, (G, k).

        The clusters are given by the ``labels`` (G,) of ``rows``. The function can be pickled.
        """
        raise NotImplementedError

    def pair_sums(self, rows: Rows) -> Callable[[int, int], np.ndarray]:
        """Return a function (start, stop) → similarities of these rows to all rows, summed over pairs of objects."""
        counts = rows.counts

        def summed_tile(start: int, stop: int) -> np.ndarray:
            tile = self.tile(rows, start, stop)
            tile *= counts[start:stop, None]
            tile *= counts
            return tile

        return summed_tile

    def free_memory(self) -> None:
        """Free the memory that is needed only while a partitioner runs."""

    def links(self, rows: Rows) -> tuple[Callable[[int, int], np.ndarray], float]:
        """Return a function (start, stop) → summed similarities as int64 numbers of units, and the size of the unit.

        The sums are those of rows start … stop - 1 with rows start …, over pairs of objects. The unit keeps about 50
        binary digits, or is 1 / `scale` if similarities are whole multiples of that. The total of all sums is below
        2⁶².
        """
        counts = rows.counts
        largest = max(self.upper_bound() * self.scale, 1e-300)
        bits_above = math.ceil(math.log2(largest) + 2 * math.log2(rows.n_objects)) - 61
        unit = 2.0 ** (max(0, bits_above) if self.integral else bits_above)

        def unit_tile(start: int, stop: int) -> np.ndarray:
            tile = self.tile(rows, start, stop, start)
            tile *= self.scale * (counts[start:stop, None] / unit)
            tile *= counts[start:]
            return np.rint(tile).astype(np.int64)

        return unit_tile, unit / self.scale

    def __rmul__(self, factor: float) -> "Sum":
        return Sum(((float(factor), self),))

    def __add__(self, other: "Similarity") -> "Sum":
        return Sum((*_terms(self), *_terms(other)))


class ClusterSimilarity(Similarity):
    """A similarity that a matrix S of clusters defines. A subclass gives `diagonal`, `times` and `across`.

    Attributes
    ----------
    offsets : ndarray (M + 1,), int64
        The first cluster of each clustering.
    """

    offsets: np.ndarray
    results: dict[str, Any]

    def diagonal(self) -> np.ndarray:
        """Return S[c, c] of every cluster (N_c,), host."""
        raise NotImplementedError

    def times(self, table: np.ndarray) -> np.ndarray:
        """Return S T for T = ``table`` (N_c, k), in the memory of the table."""
        raise NotImplementedError

    def transposed_times(self, table: np.ndarray) -> np.ndarray:
        """Return T S for T = ``table`` (k, N_c), host."""
        return self.times(table.T).T

    def across(self, rows: Rows, cols: Rows) -> devices.Array:
        """Return the similarities (R, C) of objects of ``rows`` to objects of ``cols``, float64, on the device."""
        raise NotImplementedError

    def tile(self, rows: Rows, start: int, stop: int, first: int = 0) -> np.ndarray:
        cols = rows.take(slice(first, None)) if first else rows
        return devices.to_host(self.across(rows.take(slice(start, stop)), cols))

    def full(self) -> np.ndarray:
        """Return S as a matrix (N_c, N_c), host."""
        n_clusters = int(self.offsets[-1])
        check_cluster_memory(n_clusters)
        return self.times(np.eye(n_clusters))

    @property
    def n_clusterings(self) -> int:
        return len(self.offsets) - 1

    @property
    def scale(self) -> float:  # type: ignore[override]
        return self.n_clusterings

    def self_similarities(self, rows: Rows) -> np.ndarray:
        sums = row_sums(rows.codes, rows.offsets, self.diagonal(), device=rows.device)
        return devices.to_host(sums) / self.n_clusterings

    def sums(self, rows: Rows, labels: np.ndarray) -> Sums:
        """Return a look-up of S H, where H[c, t] is the number of members of cluster t in cluster c of the ensemble."""
        arguments = rows.codes, rows.offsets, rows.xp.asarray(rows.counts), rows.xp.asarray(labels)
        shared = label_histograms(*arguments, int(labels.max()) + 1, device=rows.device)
        return LookedUp(self.times(devices.to_host(shared).astype(np.float64)))

    def mean(self, rows: Rows) -> float:
        """Return the mean similarity of two different objects, 0 for a single object.

        Closed form: nᵀ S n, with n the sizes of the clusters, is the sum over all ordered pairs of objects, including
        each object with itself.
        """
        n_objects = rows.n_objects
        if n_objects < 2:
            return 0.0
        sizes = rows.cluster_sizes().astype(np.float64)
        total = float(sizes @ self.times(sizes[:, None])[:, 0] - sizes @ self.diagonal())
        return total / self.n_clusterings / n_objects / (n_objects - 1)

    def sum_of_squares(self, rows: Rows) -> float:
        """Return Σ s(x, y)² = tr (S N S N) / M² over all ordered pairs of objects, including each object with itself.

        N (N_c, N_c) are the intersections of clusters; no pair of objects is visited.
        """
        check_cluster_memory(rows.n_clusters)
        product = self.times(intersections_of(rows, layout="dense").astype(np.float64))
        return float(np.sum(product * product.T)) / self.n_clusterings**2

    def between_clusters(self, rows: Rows) -> np.ndarray:
        """Return p_cᵀ S p_d / M for clusters c and d, where p_c has the shares of c's objects in all clusters."""
        check_cluster_memory(rows.n_clusters)
        return self.between_clusters_of(intersections_of(rows, layout="dense"))

    def between_clusters_of(self, shared: np.ndarray) -> np.ndarray:
        """Return the mean similarities of clusters from a dense matrix of their intersections."""
        shares = shared / np.maximum(shared.diagonal(), 1)[:, None]
        similarities: np.ndarray = product(self.transposed_times(shares), shares.T)
        similarities /= self.n_clusterings
        return (similarities + similarities.T) / 2

    def block(self, rows: Rows, i: np.ndarray, j: np.ndarray) -> devices.Array:
        """Return the similarities of rows i to rows j, in the memory of the caller's labels."""
        return devices.give_back(self.across(rows.take(i), rows.take(j)), rows.ensemble.device_kind)


@dataclass(frozen=True)
class LookedUp:
    """A function that maps rows to sums (G, k) of the rows of a table (N_c, k), one table row per label."""

    table: np.ndarray

    def __call__(self, rows: Rows) -> np.ndarray:
        return devices.to_host(row_lookups(rows.codes, rows.offsets, self.table, device=rows.device))


class Sum(Similarity):
    """The similarity a S + b T of two similarities S, T of any kind."""

    kind = "pairs"
    scale = 1.0

    def __init__(self, terms: tuple[tuple[float, Similarity], ...]) -> None:
        self.terms = terms
        self.results = {name: value for _, similarity in terms for name, value in similarity.results.items()}

    def upper_bound(self) -> float:
        return sum(factor * similarity.upper_bound() for factor, similarity in self.terms)

    def tile(self, rows: Rows, start: int, stop: int, first: int = 0) -> np.ndarray:
        return np.sum([factor * similarity.tile(rows, start, stop, first) for factor, similarity in self.terms], axis=0)

    def self_similarities(self, rows: Rows) -> np.ndarray:
        return np.sum([factor * similarity.self_similarities(rows) for factor, similarity in self.terms], axis=0)

    def between_clusters(self, rows: Rows) -> np.ndarray:
        (factor, similarity), *further_terms = self.terms
        total = factor * similarity.between_clusters(rows)
        for factor, similarity in further_terms:
            total += factor * similarity.between_clusters(rows)
        return total

    def sums(self, rows: Rows, labels: np.ndarray) -> Sums:
        return SummedUp(
            tuple((factor, similarity.scale, similarity.sums(rows, labels)) for factor, similarity in self.terms)
        )


@dataclass(frozen=True)
class SummedUp:
    """A function that maps rows to the weighted sum (G, k) of the results of several functions.

    Each of these functions has a factor and a scale.
    """

    terms: tuple[tuple[float, float, Sums], ...]

    def __call__(self, rows: Rows) -> np.ndarray:
        (factor, scale, sums), *further_terms = self.terms
        total = factor * (sums(rows) / scale)
        for factor, scale, sums in further_terms:
            total = total + factor * (sums(rows) / scale)
        return total


def _terms(similarity: Similarity) -> tuple[tuple[float, Similarity], ...]:
    return similarity.terms if isinstance(similarity, Sum) else ((1.0, similarity),)


def weights_of_clusterings(weights: Any, rows: Rows) -> np.ndarray:
    """Return the checked weight of each clustering (M,), scaled to a mean of 1; None gives int64 ones."""
    of_clusterings = checks.check_weights(weights, rows.n_clusterings, of="clustering")
    if of_clusterings is None:
        return np.ones(rows.n_clusterings, dtype=np.int64)
    return of_clusterings / of_clusterings.mean()


def weights_of_clusters(weights: Any, rows: Rows) -> np.ndarray:
    """Return the weight of each cluster's clustering (N_c,), scaled to a mean of 1 over the clusterings."""
    return np.repeat(weights_of_clusterings(weights, rows), np.diff(rows.offsets))


def check_cluster_memory(n_clusters: int, bytes_each_pair: int = 40) -> None:
    """Raise MemoryError if computing a dense matrix of so many clusters would exceed the memory budget."""
    checks.check_memory(
        bytes_each_pair * n_clusters**2,
        devices.memory_budget(),
        f"the similarity of all {n_clusters:,} clusters",
        "take fewer clusterings, or clusterings of fewer clusters",
    )
