"""Meta-clustering: clusters of clusters, and each object to the one it is most associated with.

The second half of MCLA (Strehl & Ghosh, "Cluster ensembles", JMLR 3 (2002) 583-617, §3.4), for any similarity of
clusters. With h_c the indicator of cluster c, an object x is associated with the meta-cluster q by

    a_xq = (1/|q|) Σ_{c in q} h_c(x)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuens import checks, scattered
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums, row_lookups
from gpuens.partition.metis import metis


class MetaClustering(NamedTuple):
    """What came out, in host memory; meta-clusters are numbered as the labels are, those without objects last."""

    labels: np.ndarray  # (G,) int64: the meta-cluster of each row
    clusters: np.ndarray  # (N_c,) int64: the meta-cluster of each cluster, -1 of one without objects
    n_clusters: int
    ensemble: Ensemble
    device: str

    @property
    def membership(self) -> np.ndarray:
        """Association of rows with meta-clusters (G, k), float64, each row summing to 1; worked out when asked for."""
        return shares(association(self.ensemble, self.clusters, self.n_clusters, device=self.device))


def meta_clustering(
    ensemble: Ensemble,
    similarities: np.ndarray | Callable[[int, int], np.ndarray],
    sizes: np.ndarray,
    n_clusters: int,
    *,
    imbalance: float = 0.03,
    random_state: int | np.random.Generator | None = 0,
    device: str = "cpu",
) -> MetaClustering:
    """Return the label of each row, 0 … in the order of the clusters' first rows, and how sure it is.

    METIS divides the clusters into ``n_clusters`` meta-clusters of like weight, a cluster weighing its objects. Rows
    associated alike with several meta-clusters go to the one of them that holds the first cluster. On iris, ecoli,
    wine, glass and image segmentation no other rule (many or few clusters or objects, similarity) is better throughout.
    Lots, which MCLA draws, take objects with equal labels apart: on glass, where half of the objects tie, they cost .1
    of the accuracy.

    Parameters
    ----------
    ensemble : Ensemble of G rows
    similarities : ndarray (N_c, N_c), or callable
        Of the clusters, as `metis` takes them.
    sizes : ndarray (G,), int64
        How many objects each row stands for.
    n_clusters : int
    imbalance, random_state
        Those of `metis`.

    Raises
    ------
    ValueError
        For more meta-clusters than clusters that have objects.

    Warns
    -----
    UserWarning
        When some meta-cluster is the first choice of no object: there are fewer labels than ``n_clusters``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuens import Ensemble
    >>> from gpuens.partition import meta_clustering
    >>> rows = Ensemble(np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]]))
    >>> jaccard = np.zeros((6, 6))
    >>> jaccard[[0, 2, 0, 4, 2, 4], [2, 0, 4, 0, 4, 2]] = 1
    >>> jaccard[[1, 3, 1, 5, 3, 5], [3, 1, 5, 1, 5, 3]] = 1
    >>> found = meta_clustering(rows, jaccard, np.array([2, 1, 3]), 2)
    >>> found.labels.tolist(), found.membership.round(2).tolist(), found.clusters.tolist()
    ([0, 0, 1], [[1.0, 0.0], [0.67, 0.33], [0.0, 1.0]], [0, 1, 0, 1, 0, 1])
    """
    objects_in = devices.to_host(cluster_sums(ensemble.codes_on(device), ensemble.offsets, sizes, device=device))
    meta = _meta_clusters(similarities, objects_in, n_clusters, imbalance, random_state)
    rule = FirstChoice(meta, n_clusters)
    first_choice = rule(ensemble, device=device)
    chosen, first = np.unique(first_choice, return_index=True)
    _warn_unless_chosen(len(chosen), n_clusters)
    number = scattered.in_order(rule, chosen[np.argsort(first)], n_clusters).number
    clusters = np.where(meta < 0, -1, number[meta])
    return MetaClustering(number[first_choice], clusters, n_clusters, ensemble, device)


def learn_meta_clustering(
    rows: scattered.Pieces,
    similarities: np.ndarray,
    objects_in: np.ndarray,
    n_clusters: int,
    *,
    imbalance: float = 0.03,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[scattered.Numbered, np.ndarray]:
    """Do what `meta_clustering` does of rows in pieces, of which clusters hold ``objects_in`` (N_c,) objects.

    Return a rule that labels any rows, and the meta-cluster of each cluster: the same as of all rows together.
    """
    meta = _meta_clusters(similarities, objects_in, n_clusters, imbalance, random_state)
    rule = scattered.numbered(FirstChoice(meta, n_clusters), n_clusters, rows)
    _warn_unless_chosen(rule.n_labels, n_clusters)
    return rule, np.where(meta < 0, -1, rule.number[meta])


@dataclass(frozen=True)
class FirstChoice:
    """A rule: each row goes to the meta-cluster that it is most associated with."""

    clusters: np.ndarray  # (N_c,) int64: the meta-cluster of each cluster
    n_clusters: int

    def __call__(self, ensemble: Ensemble, *, device: str) -> np.ndarray:
        codes, offsets = ensemble.codes_on(device), ensemble.offsets
        step = max(256, devices.scratch(device) // (32 * self.n_clusters))
        labels = np.empty(len(codes), dtype=np.int64)
        for start in range(0, len(codes), step):
            some = slice(start, start + step)
            associated = _association(codes[some].copy(order="F"), offsets, self.clusters, self.n_clusters, device)
            labels[some] = associated.argmax(axis=1)
        return labels


def check_n_meta_clusters(value: Any, n_clusters: int) -> None:
    """Refuse a number of meta-clusters that the ensemble's clusters cannot give."""
    k = checks.check_integer(value, "n_clusters", minimum=1)
    if k > n_clusters:
        raise ValueError(
            f"n_clusters={k} is more than the {n_clusters} clusters of all clusterings that meta-clusters are made of; "
            "ask for fewer or add clusterings."
        )


def _warn_unless_chosen(n_chosen: int, n_clusters: int) -> None:
    """Warn about meta-clusters that are no object's first choice."""
    if n_chosen < n_clusters:
        checks.warn(
            f"found only {n_chosen} of {n_clusters} clusters; no object is associated most with the other "
            "meta-clusters."
        )


def _meta_clusters(
    similarities: np.ndarray | Callable[[int, int], np.ndarray],
    objects_in: np.ndarray,
    n_clusters: int,
    imbalance: float,
    random_state: int | np.random.Generator | None,
) -> np.ndarray:
    """Return the meta-cluster of each cluster (N_c,), -1 of one without objects."""
    check_n_meta_clusters(n_clusters, int(np.count_nonzero(objects_in)))
    there = np.flatnonzero(objects_in)

    def among_them(start: int, stop: int) -> np.ndarray:
        if callable(similarities):
            rows = [similarities(c, c + 1)[0] for c in there[start:stop].tolist()]
            return np.array(rows)[:, there]
        return similarities[there[start:stop]][:, there]

    meta = np.full(len(objects_in), -1, dtype=np.int64)
    everywhere = len(there) == len(objects_in)
    meta[there] = metis(
        similarities if everywhere else among_them,
        objects_in[there],
        n_clusters,
        imbalance=imbalance,
        random_state=random_state,
    )
    return meta


def association(ensemble: Ensemble, clusters: np.ndarray, n_clusters: int, *, device: str = "cpu") -> np.ndarray:
    """Return how much each row is associated with each meta-cluster, (G, k) float64, host; ``clusters`` as found."""
    return _association(ensemble.codes_on(device), ensemble.offsets, clusters, n_clusters, device)


def _association(codes: Any, offsets: np.ndarray, clusters: np.ndarray, n_clusters: int, device: str) -> np.ndarray:
    table = np.zeros((len(clusters), n_clusters))
    known = np.flatnonzero(clusters >= 0)
    table[known, clusters[known]] = 1.0
    # counts, divided once: equal shares have equal bits
    shared = devices.to_host(row_lookups(codes, offsets, table, device=device))
    associated: np.ndarray = shared / np.maximum(table.sum(axis=0), 1.0)
    return associated


def shares(associated: np.ndarray) -> np.ndarray:
    """Return associations scaled so that each row sums to 1, where it is associated with anything."""
    total = associated.sum(axis=1, keepdims=True)
    scaled: np.ndarray = associated / np.where(total > 0, total, 1.0)
    return scaled
