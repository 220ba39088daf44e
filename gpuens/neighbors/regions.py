"""Regions: small connected sets of objects that have similar shares of labels around them.

In each round, every two adjacent regions that are each other's most similar neighbour merge; the similarity is the
product of their mean shares. Eight rounds make regions of 16 objects. Merging only the most similar pair at a time, which
is contiguous average linkage, gives regions of the same use (mean ARI .652 and .652 on three tissues) in a hundredfold
time. Where rounds merge few pairs, as at a hub, that linkage does the rest.
"""

import numpy as np

from gpuens.labels.graph import Graph
from gpuens.neighbors.shares import ShareRows
from gpuens.neighbors.walk import ONE, Shares
from gpuens.partition.linkage.contiguous import SparseRows, contiguous_merges
from gpuens.runtime.native import cpu

OBJECTS_OF_A_REGION = 16  # by default; from 8 to 32 the accuracy is the same


def regions_of(shares: Shares, graph: Graph, n_regions: int) -> np.ndarray:
    """Return the region (N,), int64, of each object, 0 … n_regions - 1; there are more if the graph has more components.

    >>> import gpuens as ge
    >>> from gpuens.neighbors.regions import regions_of
    >>> from gpuens.neighbors.walk import walk
    >>> line = ge.Graph.grid((6,))
    >>> regions_of(walk(ge.Rows([[0, 0, 0, 1, 1, 1]]), line, steps=1), line, 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    regions = np.empty(graph.n_objects, dtype=np.int64)
    n_left = cpu.pair_neighbors(graph.starts, graph.heads, shares.arrays, shares.n_columns, n_regions, regions)
    return regions if n_left <= n_regions else _linked(shares, graph, regions, n_left, n_regions)


def _linked(shares: Shares, graph: Graph, regions: np.ndarray, n_left: int, n_regions: int) -> np.ndarray:
    """Return regions (N,) after contiguous average linkage of the ``n_left`` regions into ``n_regions``."""
    from scipy.sparse import csr_array

    tails, heads = regions[graph.tails], regions[graph.heads]
    between = tails != heads
    edges = csr_array((np.ones(np.count_nonzero(between)), (tails[between], heads[between])), shape=(n_left, n_left))
    n = len(regions)
    of_objects = csr_array((shares.values.astype(np.int64), shares.columns, shares.starts), (n, shares.n_columns))
    sums = csr_array((np.ones(n, dtype=np.int64), (regions, np.arange(n))), shape=(n_left, n)) @ of_objects
    sums.sort_indices()
    rows = SparseRows(sums.indptr.astype(np.int64), sums.indices.astype(np.int32), sums.data)
    edges.sort_indices()
    starts, neighbors = edges.indptr.astype(np.int64), edges.indices.astype(np.int32)
    kept, absorbed, _ = contiguous_merges(
        starts, neighbors, np.bincount(regions), rows, np.ones(shares.n_columns), n_regions
    )
    number = np.empty(n_left, dtype=np.int64)
    cpu.cut_merges(kept, absorbed, number)
    return number[regions]


def rows_of_regions(shares: Shares, regions: np.ndarray, offsets: np.ndarray) -> ShareRows:
    """Return the mean shares of each region, rounded to whole units, with the numbers of their objects."""
    from scipy.sparse import csr_array

    counts = np.bincount(regions)
    sums = np.zeros((len(counts), shares.n_columns), dtype=np.int64)
    cpu.sum_regions(shares.arrays, regions, sums)
    means = np.rint(sums / counts[:, None]) / ONE
    return ShareRows(csr_array(means), offsets, counts)
