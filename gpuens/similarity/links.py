"""Link-based similarity: two clusters are similar if the same third clusters share objects with both.

A link joins two clusters with common objects; its weight is the Jaccard similarity w[c, d] = |c ∩ d| / |c ∪ d|. All
measures are computed from these N_c × N_c numbers and from the intersections of clusters; no pair of objects is
visited.

Iam-On, Boongoen, Garrett & Price, "A link-based approach to the cluster ensemble problem", IEEE TPAMI 33 (2011).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens.contingency.clusters import intersections, intersections_of
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.products import product
from gpuens.similarity.base import ClusterSimilarity, Features, Measure, check_cluster_memory
from gpuens.similarity.blocks import Blocks
from gpuens.similarity.coupled import relative_similarities
from gpuens.similarity.full import Full

ROUNDING = 1e-12  # largest difference that counts as rounding
UPDATES = 4  # number of updates of SimRank; the authors count the start as a further update


class ClusterGraph(Full):
    """A full matrix S = W / M: two objects are as similar as the mean of W over all M² pairs of their clusters.

    The similarity of two clusters is their entry of W (N_c, N_c), instead of a mean over pairs of objects.
    """

    def __init__(self, graph: np.ndarray, offsets: np.ndarray) -> None:
        super().__init__(graph / (len(offsets) - 1), offsets)
        self.graph = graph

    def between_clusters(self, rows: Rows) -> np.ndarray:
        return self.graph


@dataclass(frozen=True)
class Jaccard(Measure):
    """Jaccard similarity of clusters: the number of common objects divided by the number of objects in the union.

    The similarity of two objects, from 0 to 1, is the mean over all M² pairs of a cluster of one and a cluster of the
    other; a missing label adds nothing.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1], ["b", "a", "a", "b"]])
    >>> found = ge.similarity.Jaccard()(rows)
    >>> found.between_clusters(rows).round(2).tolist()
    [[1.0, 0.0, 0.67, 0.25], [0.0, 1.0, 0.0, 0.5], [0.67, 0.0, 1.0, 0.0], [0.25, 0.5, 0.0, 1.0]]
    >>> found.tile(rows, 0, 1).round(2).tolist()
    [[0.62, 0.48, 0.48, 0.44]]
    """

    kind = "full"
    learns_by_sums = True
    real_weights = True

    def refuse_too_many(self, rows: Rows) -> None:
        check_cluster_memory(rows.n_clusters)

    def __call__(self, rows: Rows, features: Features | None = None) -> ClusterGraph:
        return ClusterGraph(jaccard(rows), rows.offsets)


@dataclass(frozen=True)
class Links(Measure):
    """Link-based similarity of clusters: connected triples, or SimRank approximately or exactly.

    Parameters
    ----------
    measure : {"cts", "asrs", "srs"}
        "cts": connected triples, WCT_cd = Σ_t min(w_ct, w_dt) divided by the largest WCT, for clusters of one
        clustering. "asrs": approximate SimRank, Σ_t w_ct w_dt / (b_c b_d) divided by the largest, for all clusters,
        where b_c is the number of links of c. "srs": SimRank on the bipartite graph of objects and clusters, after
        four updates.
    decay : float in (0, 1]
        The largest similarity of two different clusters. With "asrs" the most similar pairs are exempt and have
        similarity 1, as in the authors' program.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1, 1, 2], ["a", "a", "b", "b", "c", "c"]])
    >>> ge.similarity.Links()(rows).tile(rows, 0, 1).round(2).tolist()
    [[1.0, 1.0, 0.8, 0.6, 0.3, 0.0]]
    >>> ge.similarity.Links("srs")(rows).tile(rows, 0, 1).round(2).tolist()
    [[0.59, 0.59, 0.37, 0.09, 0.01, 0.0]]
    """

    measure: str = "cts"
    decay: float = 0.8
    learns_by_sums = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_choice(self.measure, "measure", MEASURES)
        checks.check_real(self.decay, "decay", above=0.0, at_most=1.0)

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "blocks" if self.measure == "cts" else "full"

    def refuse_too_many(self, rows: Rows) -> None:
        check_cluster_memory(rows.n_clusters, 64 if self.measure == "srs" else 40)

    def __call__(self, rows: Rows, features: Features | None = None) -> ClusterSimilarity:
        self.refuse_too_many(rows)
        return MEASURES[self.measure](rows, float(self.decay))


def links(
    ens: Any, measure: str = "cts", rows: Any = None, cols: Any = None, *, decay: float = 0.8, device: str = "auto"
) -> devices.Array:
    """Return the link-based similarity of objects as a dense block; an object's similarity to itself is 1.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    measure : {"cts", "asrs", "srs"}
        See `Links`.
    rows, cols : None, slice, mask or array of object indices
        The block; None is all objects. The whole N × N matrix is for small N.
    decay : float in (0, 1]
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    array (n_rows, n_cols), float64, in the memory of the labels
        A missing label adds nothing, and the denominator stays M ("asrs", "srs": M²).

    Raises
    ------
    MemoryError
        For a block, or clusters, beyond the memory budget, before they are allocated.
    ValueError
        For another measure or decay.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.links([[0, 0, 0, 1, 1, 2], ["a", "a", "b", "b", "c", "c"]], "asrs", rows=[0]).round(2).tolist()
    [[1.0, 0.5, 0.5, 0.3, 0.05, 0.0]]
    """
    all_rows, link_measure = as_rows(ens, device), Links(measure, decay)
    i, j = checks.check_block(
        rows, cols, all_rows.n_rows, devices.memory_budget(all_rows.device), "link-based similarity"
    )
    block = link_measure(all_rows).block(all_rows, i, j)
    at_row, at_col = np.nonzero(i[:, None] == j)
    block[at_row, at_col] = 1.0
    return block


# --- clusters ---------------------------------------------------------------------------------------------------------


def jaccard(rows: Rows) -> np.ndarray:
    """Return the Jaccard similarity of all clusters (N_c, N_c), float64, host; 0 for clusters without objects."""
    check_cluster_memory(rows.n_clusters)
    shared = intersections_of(rows, "dense")
    sizes = shared.diagonal()
    return shared / np.maximum(sizes[:, None] + sizes - shared, 1)


def cluster_links(rows: Rows) -> np.ndarray:
    """Return the result of `jaccard` with a diagonal of zeros, because no cluster links to itself."""
    indices = jaccard(rows)
    np.fill_diagonal(indices, 0.0)
    return indices


def triples(linked: np.ndarray, rows: Rows, weights: np.ndarray) -> np.ndarray:
    """Return Σ_t w_m(t) min(L_tc, L_td) for all clusters c, d (k, k), host; for c = d it is Σ_t w_m(t) L_tc.

    ``linked`` L (N_c, k) holds the links of the k clusters to all clusters t, ``weights`` w (M,) the weights of the
    clusterings m(t).
    """
    device = rows.device if rows.here else "cpu"
    return devices.to_host(relative_similarities(np.ascontiguousarray(linked), rows.offsets, weights, device=device))


def _cts(rows: Rows, decay: float) -> Blocks:
    linked, weights = cluster_links(rows), np.ones(rows.n_clusterings)
    blocks = [triples(linked[:, a:b], rows, weights) for a, b in pairwise(rows.offsets.tolist())]
    for block in blocks:
        np.fill_diagonal(block, 0.0)
    largest = max(float(block.max()) for block in blocks)
    for block in blocks:
        block *= decay / (largest or 1.0)
        np.fill_diagonal(block, 1.0)
    return Blocks(blocks)


def _asrs(rows: Rows, decay: float) -> Full:
    linked = cluster_links(rows)
    n_links = np.maximum(np.count_nonzero(linked, axis=1), 1)
    similarities = symmetric(product(linked, linked))
    similarities /= n_links[:, None] * n_links
    np.fill_diagonal(similarities, 0.0)
    similarities /= similarities.max() or 1.0
    # in the authors' program, pairs with the largest similarity are not decayed
    similarities[similarities <= 1 - ROUNDING] *= decay
    np.fill_diagonal(similarities, 1.0)
    return Full(similarities / rows.n_clusterings, rows.offsets)


def _srs(rows: Rows, decay: float) -> Full:
    """Return SimRank; its similarity of objects is S = B P Bᵀ + diag(s), so updates need cluster intersections only.

    C ← decay (I P I + Bᵀ diag(s) B) / (n_c n_d) for clusters, with ones on its diagonal; P ← decay / M² C with the
    previous C; s ← 1 - b P bᵀ for each row b of B. I are the intersections of clusters; Bᵀ diag(s) B are intersections
    in which an object counts s.
    """
    # unit so large that N units fit int64
    n_clusterings, unit = rows.n_clusterings, 2.0 ** (rows.n_objects.bit_length() - 62)
    shared = intersections_of(rows, "dense").astype(np.float64)
    sizes = np.maximum(shared.diagonal(), 1.0)
    clusters, of_pairs, apart = np.eye(len(shared)), None, shared
    for _ in range(UPDATES - 1):
        if of_pairs is not None:
            self_sums = rows.sum(_self_intersections, Full(of_pairs * n_clusterings, rows.offsets), unit) * unit
            apart = symmetric(product(product(shared, of_pairs), shared)) + self_sums
        of_pairs = decay / n_clusterings**2 * clusters
        clusters = decay * apart / (sizes[:, None] * sizes)
        np.fill_diagonal(clusters, 1.0)
    return Full(decay / n_clusterings * clusters, rows.offsets)


def _self_intersections(rows: Rows, of_pairs: Full, unit: float) -> np.ndarray:
    """Return Bᵀ diag(s) B as int64 numbers of units, because integer sums are the same in any order on any device."""
    self_units = np.maximum(np.rint((1.0 - of_pairs.self_similarities(rows)) / unit), 1).astype(np.int64)
    return intersections(rows, self_units * rows.counts, "dense")


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """Return the mean of a matrix and its transpose, if its two triangles differ only by rounding."""
    return (matrix + matrix.T) / 2


MEASURES = {"cts": _cts, "asrs": _asrs, "srs": _srs}
