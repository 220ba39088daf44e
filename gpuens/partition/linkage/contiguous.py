"""Average linkage of neighbours: of all pairs of adjacent regions, the most similar pair merges.

The similarity of two regions is the mean over all pairs of their objects (kernels/cpu/linkage/contiguous.cpp); there is
no N × N matrix, and no mean over edges alone. Heights may rise.

Leaves are contiguous groups: connected sets of objects with equal label rows, which merge before all others.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpuens.labels.codes import first_objects_of
from gpuens.labels.graph import Graph
from gpuens.labels.rows import Rows
from gpuens.partition.base import DIAGONAL
from gpuens.partition.linkage.dendrogram import Dendrogram, Work, empty_merges
from gpuens.partition.linkage.partitioners import AverageLinkage, CutTree
from gpuens.reduction.base import Reduction
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

BYTES_OF_A_REGION = 400  # host memory for each region: its state, its neighbours, its best pair and its merge
BYTES_OF_A_LABEL = 40  # host memory for each label of a region: its entry as a leaf, and in the union of two regions


def contiguous_merges(
    starts: np.ndarray,
    neighbors: np.ndarray,
    counts: np.ndarray,
    rows: cpu.SparseRows,
    weights: np.ndarray,
    n_clusters: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the merges of G regions down to ``n_clusters``, or until no regions are adjacent.

    Parameters
    ----------
    starts, neighbors : ndarray (G + 1,) int64 and (nnz,) int32
        The neighbours of each region, in both directions, without loops.
    counts : ndarray (G,), int64
        The number of objects of each region.
    rows : SparseRows
        The sums (G, N_c) ≥ 0 of the rows of each region's objects: of region g, entries starts[g] … starts[g + 1] - 1
        of ``columns`` int32, ascending, and ``values`` int32 or int64.
    weights : ndarray (N_c,), float64, ≥ 0

    Returns
    -------
    kept, absorbed : ndarray (n_merges,), int64
        The two regions of each merge, in the order of the merges, each named by its smallest member; the union is
        named ``kept``. Of equally similar pairs, that with the smaller (larger rank, smaller rank) merges first; the
        rank of a region is a fixed hash of its name.
    similarities : ndarray (n_merges,), float64
        The similarity of the two regions.

    Examples
    --------
    Four objects in a line, with labels of two clusterings:

    >>> import numpy as np
    >>> from gpuens.partition.linkage.contiguous import contiguous_merges
    >>> from gpuens.runtime.native import cpu
    >>> starts, neighbors = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2], dtype=np.int32)
    >>> columns = np.array([0, 2, 0, 3, 1, 3, 0, 3], dtype=np.int32)
    >>> rows = cpu.SparseRows(np.arange(0, 10, 2), columns, np.ones(8, dtype=np.int32))
    >>> counts, weights = np.ones(4, dtype=np.int64), np.ones(4)
    >>> kept, absorbed, similarities = contiguous_merges(starts, neighbors, counts, rows, weights)
    >>> similarities.round(2).tolist()
    [1.0, 1.0, 1.0]
    """
    merges = empty_merges(len(counts) - n_clusters)
    n_merges = cpu.link_neighbors(cpu.Neighbors(starts, neighbors), counts, rows, weights, merges)
    kept, absorbed, similarities = (part[:n_merges] for part in merges)
    return kept, absorbed, similarities


class NeighborRows(Rows):
    """Label rows of connected sets of objects, and their neighbours; equal rows occur several times.

    Attributes
    ----------
    starts, neighbors : ndarray (G + 1,) int64 and (nnz,) int32
        As in `contiguous_merges`.
    n_components : int
        The number of connected components of the graph.
    """

    starts: np.ndarray
    neighbors: np.ndarray
    n_components: int

    @classmethod
    def of_graph(cls, rows: Rows, matrix: Any, n_components: int) -> "NeighborRows":
        """Return rows with their neighbours from a sparse matrix (G, G) in CSR format, without a diagonal."""
        neighbor_rows = object.__new__(cls)
        neighbor_rows._hold(rows.ensemble, rows.counts, rows.device)
        neighbor_rows.starts, neighbor_rows.neighbors = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        neighbor_rows.n_components = n_components
        return neighbor_rows


def contiguous_groups(rows: Rows, graph: Graph) -> Reduction:
    """Return the contiguous groups of the objects, in the order of their rows and then of their first objects.

    Their rows are `NeighborRows`.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    groups = core_groups(rows)
    core_group = devices.to_host(groups.row_of)
    tails, heads = graph.tails, graph.heads
    is_within = core_group[tails] == core_group[heads]
    shape = (graph.n_objects, graph.n_objects)
    within = csr_array((np.ones(np.count_nonzero(is_within), np.int8), (tails[is_within], heads[is_within])), shape)
    n_groups, part = connected_components(within, directed=False)
    first = first_objects_of(part, n_groups)
    order = np.lexsort((first, core_group[first]))
    number = np.empty(n_groups, dtype=np.int64)
    number[order] = np.arange(n_groups)
    group_of = number[part]
    between = group_of[tails[~is_within]], group_of[heads[~is_within]]
    matrix = csr_array((np.ones(len(between[0]), dtype=bool), between), (n_groups, n_groups))
    group_rows = groups.rows.take(core_group[first[order]], np.bincount(group_of, minlength=n_groups))
    neighbors = NeighborRows.of_graph(group_rows, matrix, graph.n_components)
    return Reduction(neighbors, devices.move(group_of, devices.kind_of(groups.row_of)), rows_decide=False)


class ContiguousDendrogram(Dendrogram):
    """The merge list of a contiguous linkage.

    Heights may rise, so ``similarities`` are the least so far, and ``raw_similarities`` (n - 1,) are those of the
    merged regions. The last merges join the ``n_components`` components of the graph, at similarity 0.
    """

    def __init__(self, kept: np.ndarray, absorbed: np.ndarray, raw_similarities: np.ndarray, n_leaves: int) -> None:
        roots = np.setdiff1d(np.arange(n_leaves), absorbed)
        self.n_components = len(roots)
        self.raw_similarities = np.append(raw_similarities, np.zeros(len(roots) - 1))
        super().__init__(
            np.append(kept, np.full(len(roots) - 1, roots[0])),
            np.append(absorbed, roots[1:]),
            np.minimum.accumulate(self.raw_similarities),
        )


@dataclass
class ContiguousTree(CutTree):
    """A partition from the cut of the dendrogram of neighbours."""

    def cut(self, n_clusters: int, similarity: Any, rows: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the labels (G,) of the rows for another number of clusters, at least the number of components."""
        refuse_fewer(n_clusters, rows)
        return super().cut(n_clusters, similarity, rows)


class ContiguousLinkage(AverageLinkage):
    """Average linkage of `NeighborRows` under a diagonal S; parameters are those of `AverageLinkage`."""

    takes: ClassVar[tuple[str, ...]] = DIAGONAL

    @classmethod
    def of(cls, linkage: Any) -> "ContiguousLinkage":
        """Return the linkage of neighbours with the parameters of an `AverageLinkage`."""
        return cls(linkage.distance_threshold)

    def fewest_clusters(self, rows: Any) -> int:
        return rows.n_components

    def refuse_too_many(self, rows: Any, n_clusters: int, kind: str) -> None:
        if self.distance_threshold is None:
            refuse_fewer(n_clusters, rows)
        checks.check_memory(
            (BYTES_OF_A_REGION + BYTES_OF_A_LABEL * rows.n_clusterings) * len(rows) + 16 * len(rows.neighbors),
            devices.memory_budget(),
            f"average linkage of {len(rows):,} contiguous groups",
            "take fewer objects",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> CutTree:
        return ContiguousTree(**vars(super().__call__(similarity, rows, n_clusters)))

    def _n_merges(self, dendrogram: Any, n_large: np.ndarray, n_clusters: int | None) -> int:
        n_merges = super()._n_merges(dendrogram, n_large, n_clusters)
        return min(n_merges, len(dendrogram.kept) + 1 - int(dendrogram.n_components))

    def _link(self, similarity: Any, rows: Any, work: Work) -> Dendrogram:
        kept, absorbed, similarities = contiguous_merges(
            rows.starts, rows.neighbors, rows.counts, sums_of(rows), similarity.weights.astype(np.float64)
        )
        work.rounds += len(kept)
        return ContiguousDendrogram(kept, absorbed, similarities / rows.n_clusterings, len(rows))


def sums_of(rows: Rows) -> cpu.SparseRows:
    """Return the sums of the rows of the objects of each row."""
    codes, offsets = devices.to_host(rows.codes), rows.offsets
    has_label = codes != rows.ensemble.missing_code
    starts = np.concatenate([[0], np.cumsum(has_label.sum(axis=1))])
    columns = (codes + offsets[:-1].astype(np.int32)).astype(np.int32)[has_label]
    counts = rows.counts.astype(np.int32 if rows.n_objects < 2**31 else np.int64)
    return cpu.SparseRows(starts, columns, np.broadcast_to(counts[:, None], codes.shape)[has_label])


def refuse_fewer(n_clusters: int, rows: Any) -> None:
    """Raise ValueError for fewer clusters than the graph has components."""
    if n_clusters < rows.n_components:
        raise ValueError(
            f"n_clusters={n_clusters}, but graph has {rows.n_components} components, which no cluster joins; ask for "
            f"at least {rows.n_components} clusters, or add edges."
        )
