"""Meta-clustering: clusters are grouped into meta-clusters; an object joins that with the largest association.

METIS or a normalised cut forms the meta-clusters. This is the second half of MCLA (Strehl & Ghosh, "Cluster ensembles",
JMLR 3 (2002) 583-617, §3.4), for any similarity of clusters. The association a_xq of object x with meta-cluster q is
the share of q's clusters that contain x. With h_c(x) = 1 if x is in cluster c and 0 otherwise, it is

    a_xq = (1/|q|) Σ_{c in q} h_c(x)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpuens.labels.incidence import row_lookups
from gpuens.labels.rows import Rows, numbered
from gpuens.partition.base import OrderedColumns, Partition, Partitioner, label_in_steps, shares_of
from gpuens.partition.metis import check_graph_memory, metis, why_no_metis
from gpuens.partition.spectral import check_eigenvector_memory, normalized_cut
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

CUTS = ("metis", "normalized")
OTHERS = ("association", "similarity")
Cut = Callable[[Any, np.ndarray, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class MetaClusters(Partitioner):
    """Group clusters into meta-clusters; each row joins the meta-cluster with which its association is largest.

    Meta-clusters by METIS have similar weights; the weight of a cluster is its number of objects. If associations are
    equal, the meta-cluster with the first cluster is taken. On iris, ecoli, wine, glass and image segmentation no other
    rule for ties (most or fewest clusters or objects, similarity) is consistently better. MCLA breaks ties at random,
    which separates objects with equal labels: on glass, where half of the objects tie, the accuracy falls by .1.

    Parameters
    ----------
    imbalance : float > 0
        The share by which a meta-cluster may be heavier than the average: 0.03 is 3 %. Parts of equal weight lower the
        accuracy if classes are unequal.
    random_state : int, None or numpy.random.Generator
        The same seed gives the same labels.
    cut : {"metis", "normalized"}
        "normalized" is the normalised cut, by eigenvectors and k-means: meta-clusters of any weight.
    n_init : int
        The number of starts of that k-means.
    others : {"association", "similarity"}
        The assignment of rows unknown at fit, in `predict` and outside a sample: by association, like the other rows,
        or, as in CCE, by similarity to the objects of a cluster, which may give another result.

    Raises
    ------
    ValueError
        For more meta-clusters than clusters with objects.

    Warns
    -----
    UserWarning
        If no object joins a meta-cluster, so that there are fewer labels than requested.
    """

    imbalance: float = 0.03
    random_state: Any = 0
    cut: str = "metis"
    n_init: int = 10
    others: str = "association"
    learns_by_sums = True
    gives_membership = True

    def __post_init__(self) -> None:
        checks.check_real(self.imbalance, "imbalance", above=0.0)
        checks.make_generator(self.random_state)
        checks.check_choice(self.cut, "cut", CUTS)
        checks.check_runs(self.n_init)
        checks.check_choice(self.others, "others", OTHERS)

    @property
    def lacks(self) -> str | None:
        return why_no_metis() if self.cut == "metis" else None

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        n_vertices = int(np.count_nonzero(rows.cluster_sizes()))
        _check_n_meta_clusters(n_clusters, n_vertices)
        (check_graph_memory if self.cut == "metis" else check_eigenvector_memory)(n_vertices, n_clusters)
        if rows.here:
            at_once = min(len(rows), _rows_at_once(n_clusters, rows.device))
            checks.check_memory(
                8 * len(rows) + at_once * (16 * n_clusters + rows.n_clusterings * rows.codes.itemsize + 8),
                devices.memory_budget(rows.device),
                f"the association of {len(rows):,} rows with {n_clusters:,} meta-clusters",
                "ask for fewer clusters or reduce the rows first, reduction=CATree(…) or Sample(…)",
            )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        settings: dict[str, Any] = {"imbalance": self.imbalance, "random_state": self.random_state}
        if self.cut == "normalized":
            settings = {"cut": partial(normalized_cut, n_init=self.n_init, random_state=self.random_state)}
        partition = meta_clustering(similarity.between_clusters(rows), rows, n_clusters, **settings)
        if self.others == "similarity" and partition.labels is not None:
            partition.rule = None
        return partition


@takes_rng
def meta_clustering(
    similarities: np.ndarray | Callable[[int, int], np.ndarray],
    rows: Rows,
    n_clusters: int,
    *,
    imbalance: float = 0.03,
    random_state: int | np.random.Generator | None = 0,
    rng: Any = NOT_GIVEN,
    cut: Cut | None = None,
) -> Partition:
    """Return the partition of rows by meta-clusters of their clusters.

    ``similarities`` is an ndarray (N_c, N_c) or a function, as for `metis`. ``cut`` replaces `metis`: called with
    similarities, weights of the clusters and the number of meta-clusters, it returns the meta-cluster of each cluster.
    The rule assigns any other row to the meta-cluster with the largest association among those with rows.
    ``results["meta_clusters"]`` (N_c,) is the meta-cluster, and so the label, of each cluster, -1 for clusters
    without objects.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuens import Rows
    >>> from gpuens.partition import meta_clustering
    >>> rows = Rows(np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]]), counts=[2, 1, 3])
    >>> jaccard = np.zeros((6, 6))
    >>> jaccard[[0, 2, 0, 4, 2, 4], [2, 0, 4, 0, 4, 2]] = 1
    >>> jaccard[[1, 3, 1, 5, 3, 5], [3, 1, 5, 1, 5, 3]] = 1
    >>> partition = meta_clustering(jaccard, rows, 2)
    >>> partition.labels.tolist(), partition.results["meta_clusters"].tolist()
    ([0, 0, 1], [0, 1, 0, 1, 0, 1])
    >>> partition.membership(rows).round(2).tolist()
    [[1.0, 0.0], [0.67, 0.33], [0.0, 1.0]]
    """
    cut = cut or partial(metis, imbalance=imbalance, random_state=random_state)
    meta = _meta_clusters(similarities, rows.cluster_sizes(), n_clusters, cut)
    rule, labels = numbered(FirstChoice(meta, n_clusters), n_clusters, rows)
    if rule.n_labels < n_clusters:
        checks.warn(
            f"found only {rule.n_labels} of {n_clusters} clusters; the other meta-clusters are the first choice of no "
            "object."
        )
    clusters = np.where(meta < 0, -1, rule.number[meta])
    membership = OrderedColumns(partial(shares, meta, n_clusters), np.argsort(rule.number))
    results = {"meta_clusters": clusters}
    return Partition(labels, rule.n_labels, rule, results, as_labels=("meta_clusters",), membership=membership)


@dataclass(frozen=True)
class FirstChoice:
    """A rule that assigns each row to the meta-cluster in use with the largest association."""

    clusters: np.ndarray  # (N_c,) int64, the meta-cluster of each cluster
    n_clusters: int
    in_use: np.ndarray | None = None  # the meta-clusters in use, in ascending order; None means all meta-clusters

    def __call__(self, rows: Rows) -> np.ndarray:
        in_use = np.arange(self.n_clusters) if self.in_use is None else self.in_use

        def label(piece: Rows) -> np.ndarray:
            return in_use[association(self.clusters, self.n_clusters, piece)[:, in_use].argmax(axis=1)]

        return label_in_steps(label, rows, _rows_at_once(self.n_clusters, rows.device))

    def among(self, labels: np.ndarray) -> "FirstChoice":
        return replace(self, in_use=labels)


def _rows_at_once(n_clusters: int, device: str) -> int:
    """Return the number of rows whose associations with meta-clusters are computed together."""
    return max(256, devices.scratch(device) // (32 * n_clusters))


def _check_n_meta_clusters(value: Any, n_clusters: int) -> None:
    """Raise ValueError if there are more meta-clusters than clusters with objects."""
    k = checks.check_integer(value, "n_clusters", minimum=1)
    if k > n_clusters:
        raise ValueError(
            f"n_clusters={k} is more than the {n_clusters} clusters of all clusterings, which meta-clusters are made "
            "of; ask for fewer or add clusterings."
        )


def _meta_clusters(
    similarities: np.ndarray | Callable[[int, int], np.ndarray],
    objects_in: np.ndarray,
    n_clusters: int,
    cut: Cut,
) -> np.ndarray:
    """Return the meta-cluster of each cluster (N_c,), -1 for clusters without objects."""
    _check_n_meta_clusters(n_clusters, int(np.count_nonzero(objects_in)))
    in_use = np.flatnonzero(objects_in)

    def among_them(start: int, stop: int) -> np.ndarray:
        if callable(similarities):
            rows = [similarities(c, c + 1)[0] for c in in_use[start:stop].tolist()]
            return np.array(rows)[:, in_use]
        return similarities[in_use[start:stop]][:, in_use]

    meta = np.full(len(objects_in), -1, dtype=np.int64)
    everywhere = len(in_use) == len(objects_in)
    meta[in_use] = cut(similarities if everywhere else among_them, objects_in[in_use], n_clusters)
    return meta


def association(clusters: np.ndarray, n_clusters: int, rows: Rows) -> np.ndarray:
    """Return the association of each row with each meta-cluster, (G, k) float64, host."""
    table = np.zeros((len(clusters), n_clusters))
    in_use = np.flatnonzero(clusters >= 0)
    table[in_use, clusters[in_use]] = 1.0
    # counts are divided only once, so that equal shares have the same bits
    shared = devices.to_host(row_lookups(rows.codes, rows.offsets, table, device=rows.device))
    return shared / np.maximum(table.sum(axis=0), 1.0)


def shares(clusters: np.ndarray, n_clusters: int, rows: Rows) -> np.ndarray:
    """Return the result of `association`, scaled so that each row sums to 1; a row of zeros gets equal shares."""
    return shares_of(association(clusters, n_clusters, rows))
