"""The measured primitives, on labels of any size, and the least work of each.

A case is made of labels by a function that returns what to call. What a call has to do is said in units of the ceilings
of limits_ceilings.py: bytes of each array once, or operations. Where a search saves comparisons, those that it counts
itself are what it had to do.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from limits_ceilings import gather
from vs_peers import mixture

import gpuens as ge
from gpuens import contingency
from gpuens.evidence.pairs import pair_histogram
from gpuens.labels import incidence
from gpuens.labels.encoding import encode_columns
from gpuens.labels.rows import Rows
from gpuens.partition.embeddings import leading_eigenvectors
from gpuens.partition.label_kmeans import nearest_centroids
from gpuens.partition.linkage import average, conduct, few_rows, single
from gpuens.partition.linkage.dendrogram import Work
from gpuens.partition.linkage.nearest import NearestIndex, Shortlists, nearest_lists
from gpuens.reduction.ca_tree import _Shape, common_prefixes, measure_nodes
from gpuens.reduction.core_groups import core_groups
from gpuens.similarity.diagonal import Diagonal, coassociation_tile
from gpuens.similarity.neighborhood_bits import overlaps

K = 32  # number of requested clusters and of centroids
N_LISTED = 16
DESCENDANTS = 32  # largest number of descendants that a node of the CA-tree compares
SEVERAL, FEW = (7, 100), (4, 12)  # clusters of a clustering

Need = dict[str, float]  # amounts of work, by the ceilings that they are compared with


class Call(NamedTuple):
    """A call, its least work, and a preparation before each call, which is not timed."""

    do: Callable[..., Any]
    need: Callable[[Any], Need]  # a function of the call's result
    fresh: Callable[[], Sequence[Any]] = tuple


class Case(NamedTuple):
    """``of`` makes the call from labels (G, M); a share ``noise`` of the labels is drawn at random."""

    of: Callable[["Labels"], Call]
    n_rows: int
    n_clusterings: int = 32
    noise: float = 0.2
    bounds: tuple[int, int] = SEVERAL
    by_rows: bool = True  # whether the work depends on the number of rows
    by_clusterings: bool = True


class Labels:
    """Label rows and what is made of them; for linkage they are distinct and sorted (``groups``)."""

    def __init__(self, case: Case, n_rows: int, n_clusterings: int, seed: int) -> None:
        self.labels = mixture(n_rows, case.noise, seed, n_clusterings, case.bounds)[0]
        self.rng = np.random.default_rng(seed)
        self.rows = Rows(ge.Ensemble(self.labels), device="cpu")
        self.codes, self.offsets = self.rows.codes, self.rows.offsets
        self.shape = self.codes.shape
        self.n_clusters = int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.codes)

    def grouped(self) -> "Labels":
        self.rows = core_groups(self.rows).rows
        self.codes, self.shape = self.rows.codes, self.rows.codes.shape
        return self

    def index(self, weights: np.ndarray) -> NearestIndex:
        return NearestIndex(self.codes, self.offsets, weights, self.rows.counts)

    def ones(self) -> np.ndarray:
        return np.ones(self.n_clusters, dtype=np.int64)

    def eci(self) -> np.ndarray:
        return ge.similarity.eci(self.rows)


# --- labels and tables ------------------------------------------------------------------------------------------------


def encoded(on: Labels) -> Call:
    columns, names = np.ascontiguousarray(on.labels.T.astype(np.int64)), list(range(on.shape[1]))
    return Call(lambda: encode_columns(columns, names), lambda result: {"copy": columns.nbytes + result[0].nbytes})


def grouped(on: Labels) -> Call:
    def need(result: Any) -> Need:
        moved = on.codes.nbytes + 8 * len(on) + result.rows.codes.nbytes + result.counts.nbytes
        # for each row, a look into a table of the rows found so far
        return {"copy": moved, gather(16 * len(on)): len(on)}

    return Call(lambda: core_groups(on.rows), need)


def crossed(on: Labels) -> Call:
    n, m = on.shape
    return Call(
        lambda: contingency.intersections(on.rows.ensemble, layout="dense", device="cpu"),
        lambda result: {"counters": n * m * (m - 1) / 2},
    )


def crossed_by_bits(on: Labels) -> Call:
    k = np.diff(on.offsets).astype(float)
    pairs = (k.sum() ** 2 - (k * k).sum()) / 2
    return crossed(on)._replace(need=lambda result: {"words": pairs * -(-len(on) // 64)})


def certainty(on: Labels) -> Call:
    shared = contingency.intersections(on.rows.ensemble, layout="dense", device="cpu")
    cells = np.count_nonzero(shared) - np.count_nonzero(shared.diagonal())  # the matrix has each pair of clusters twice
    n, m = on.shape
    return Call(
        lambda: ge.similarity.eci(on.rows), lambda result: {"counters": n * m * (m - 1) / 2, "logarithms": float(cells)}
    )


def gram(on: Labels) -> Call:
    n, m = on.shape
    share = on.rng.random(n) + 0.1
    return Call(
        lambda: contingency.clusters.dense_intersections(on.rows, share),
        lambda result: {"counters": n * m * (m - 1) / 2},
    )


def eigenvectors(on: Labels) -> Call:
    shared = contingency.clusters.dense_intersections(on.rows, np.ones(len(on)))
    # the reduction to tridiagonal form costs the most
    return Call(lambda: leading_eigenvectors(shared, K), lambda result: {"float64 products": 2 / 3 * on.n_clusters**3})


# --- sums over labels -------------------------------------------------------------------------------------------------


def distances(on: Labels) -> Call:
    cost, const = on.rng.random((on.n_clusters, K)), on.rng.random(K)
    return Call(
        lambda: nearest_centroids(on.codes, on.offsets, cost, const),
        lambda result: {"float64 rows": on.codes.size * K},
    )


def looked_up(on: Labels) -> Call:
    table = on.rng.random((on.n_clusters, K))
    return Call(
        lambda: incidence.row_lookups(on.codes, on.offsets, table), lambda result: {"float64 rows": on.codes.size * K}
    )


def summed_by_rows(on: Labels) -> Call:
    values = on.rng.random(on.n_clusters)
    return Call(
        lambda: incidence.row_sums(on.codes, on.offsets, values),
        lambda result: {gather(values.nbytes): on.codes.size, "copy": on.codes.nbytes + 8 * len(on)},
    )


def summed_by_clusters(on: Labels) -> Call:
    values = on.rng.random(len(on))
    return Call(
        lambda: incidence.cluster_sums(on.codes, on.offsets, values),
        lambda result: {"counters": on.codes.size, "copy": on.codes.nbytes},
    )


def labels_counted(on: Labels) -> Call:
    labels, counts = on.rng.integers(K, size=len(on)), np.ones(len(on), dtype=np.int64)
    return Call(
        lambda: incidence.label_histograms(on.codes, on.offsets, counts, labels, K),
        lambda result: {"counters": on.codes.size, "copy": on.codes.nbytes},
    )


# --- pairs of rows ----------------------------------------------------------------------------------------------------


def evidence(on: Labels) -> Call:
    n, m = on.grouped().shape
    return Call(
        lambda: pair_histogram(on.codes, on.offsets, on.rows.counts, False),
        lambda result: {"labels": n * (n + 1) / 2 * m, "counters": n * (n + 1) / 2},
    )


def tile(on: Labels) -> Call:
    n, weights = min(1024, len(on)), on.rng.random(on.n_clusters)
    return Call(
        lambda: coassociation_tile(on.codes[:n], on.codes, on.offsets, weights),
        lambda result: {"float64 labels": n * on.codes.size, "copy": result.nbytes},
    )


def overlapping(on: Labels) -> Call:
    bits = on.rng.integers(2**63, size=(len(on), -(-len(on) // 64))).astype(np.uint64)
    runs = np.array([0, bits.shape[1]])
    return Call(
        lambda: overlaps(bits, bits, runs), lambda result: {"words": len(on) * bits.size, "copy": result.nbytes}
    )


def measured_nodes(on: Labels) -> Call:
    rows = np.ascontiguousarray(on.grouped().codes)
    shape = _Shape(common_prefixes(rows), on.shape[1])
    inner = slice(len(rows), None)
    members = np.maximum(np.diff(shape.starts), np.minimum((shape.last - shape.first + 1)[inner], DESCENDANTS))
    pairs = float((members * (members - 1) / 2).sum())
    return Call(lambda: measure_nodes(rows, shape.arrays, DESCENDANTS), lambda result: {"labels": pairs * on.shape[1]})


# --- linkage ----------------------------------------------------------------------------------------------------------


def listed(on: Labels, weights: np.ndarray, ceiling: str) -> Call:
    def lists() -> NearestIndex:
        index = on.index(weights)
        nearest_lists(index, N_LISTED)
        return index

    return Call(lists, lambda index: {ceiling: float(index.comparisons)})


def listed_by_ones(on: Labels) -> Call:
    return listed(on.grouped(), on.ones(), "labels")


def listed_by_eci(on: Labels) -> Call:
    return listed(on.grouped(), on.eci(), "weighted labels")


def linked(on: Labels, similarity: Diagonal, ceiling: str, kind: str | None = None) -> Call:
    """Return a linkage by lists and one kind of search, or by a table of pairs; what it compares is its least work."""
    rows, n = on.rows, len(on)

    def link() -> Work:
        work = Work()
        by_table = mock.patch.object(average, "share_compared", return_value=1.0)  # as if bounds saved nothing
        with by_table if kind is None else conduct.only(kind):
            average.average_linkage(rows, similarity, work=work)
        return work

    def need(work: Work) -> Need:
        # half of the table is read, and written to the other half
        table = {} if kind else {"copy": 1.5 * conduct.bytes_of_table(n)}
        return {ceiling: float(work.comparisons)} | table

    return Call(link, need)


def linked_by_rows(on: Labels) -> Call:
    return linked(on.grouped(), Diagonal(on.eci(), on.offsets), "weighted labels", "rows")


def linked_by_tiles(on: Labels) -> Call:
    return linked(on.grouped(), Diagonal(on.eci(), on.offsets), "weighted labels", "tiles")


def tabled_by_ones(on: Labels) -> Call:
    return linked(on.grouped(), Diagonal(on.ones(), on.offsets), "labels")


def tabled_by_eci(on: Labels) -> Call:
    return linked(on.grouped(), Diagonal(on.eci(), on.offsets), "weighted labels")


def few_linked(on: Labels) -> Call:
    similarity = Diagonal(on.grouped().eci(), on.offsets)
    n, m = on.shape

    def link() -> Work:
        work = Work()
        few_rows.link(on.rows, similarity, work)
        return work

    def need(work: Work) -> Need:
        moved = 8 * n * (n + 3 * (n - 1) + work.searches + n)  # filled; two rows read, one written a merge; searches
        return {"float64 labels": n * (n - 1) / 2 * m, "copy, cached": float(moved)}

    return Call(link, need)


def boruvka(on: Labels) -> Call:
    n = len(on)
    neighbours = (np.arange(n)[:, None] + on.rng.integers(-n // 8, n // 8, size=(n, N_LISTED))) % n
    neighbours[:, 0] = np.where(neighbours[:, 0] == np.arange(n), (neighbours[:, 0] + 1) % n, neighbours[:, 0])
    similarities = -np.sort(-on.rng.random((n, N_LISTED)), axis=1)
    lists = Shortlists(
        neighbours.astype(np.int32), similarities, similarities[:, -1].copy(), np.zeros(n, dtype=np.uint64)
    )
    component, everything = np.arange(n), np.arange(n)

    def step(edges: single.Edges) -> None:
        single.offer_listed(component, lists, everything, edges)
        single.contract(component, edges.tail, edges.head)

    def need(result: None) -> Need:
        # an offer reads 36 bytes of a list and writes 33, an edge is read and its component written
        return {"copy": 120.0 * n, gather(8 * n): 4.0 * n}  # the component offered to, both ends of an edge, its root

    return Call(step, need, lambda: (single.Edges.none(n, np),))


CASES = {
    "labels encoded": Case(encoded, 200_000),
    "core groups": Case(grouped, 200_000, noise=0.002),
    "counts between clusterings": Case(crossed, 120_000),
    "counts of few clusters": Case(crossed_by_bits, 120_000, bounds=FEW),
    "ECI": Case(certainty, 120_000),
    "gram of clusters": Case(gram, 120_000),
    "its eigenvectors": Case(eigenvectors, 5_000, by_rows=False),
    "label sums of rows": Case(summed_by_rows, 200_000),
    "rows' sums of clusters": Case(summed_by_clusters, 200_000),
    "labels in clusters": Case(labels_counted, 200_000),
    "look-ups, 32 columns": Case(looked_up, 40_000),
    "distances to 32 centroids": Case(distances, 40_000),
    "histogram of pairs": Case(evidence, 10_000),
    "co-association, 1,024 rows": Case(tile, 8_000),
    "neighbours in common": Case(overlapping, 3_000, by_clusterings=False),
    "nodes of a CA-tree": Case(measured_nodes, 24_000),
    "nearest lists, w = 1": Case(listed_by_ones, 20_000),
    "nearest lists, w = ECI": Case(listed_by_eci, 20_000),
    "linkage, searches by rows": Case(linked_by_rows, 16_000),
    "linkage, searches by tiles": Case(linked_by_tiles, 16_000),
    "linkage by a table, w = 1": Case(tabled_by_ones, 6_000, 128),
    "linkage by a table, w = ECI": Case(tabled_by_eci, 6_000, 128),
    "linkage of few rows": Case(few_linked, 1_400),
    "a step of single linkage": Case(boruvka, 200_000, by_clusterings=False),
}
