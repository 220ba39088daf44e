"""Regions: connected sets of objects with similar shares of labels around them, by contiguous average linkage."""

import numpy as np

from gpuens.labels.graph import Graph
from gpuens.neighbors.shares import ShareRows
from gpuens.neighbors.walk import ONE, Shares
from gpuens.partition.linkage.contiguous import SparseRows, contiguous_merges
from gpuens.runtime.native import cpu

OBJECTS_OF_A_REGION = 16  # by default; from 8 to 32 the accuracy is the same


def regions_of(shares: Shares, graph: Graph, n_regions: int) -> np.ndarray:
    """Return the region (N,), int64, of each object, 0 … n_regions - 1; each component of the graph has one at least.

    The two adjacent regions whose shares have the largest mean product merge until ``n_regions`` are left.
    """
    n = graph.n_objects
    rows = SparseRows(shares.starts, shares.columns, shares.values)
    ones, weights = np.ones(n, dtype=np.int64), np.ones(shares.n_columns)
    kept, absorbed, similarities = contiguous_merges(graph.starts, graph.heads, ones, rows, weights, n_regions)
    regions = np.empty(n, dtype=np.int64)
    cpu.cut_merges(kept, absorbed, regions)
    return regions


def rows_of_regions(shares: Shares, regions: np.ndarray, offsets: np.ndarray) -> ShareRows:
    """Return the mean shares of each region, rounded to whole units, with the numbers of their objects."""
    from scipy.sparse import csr_array

    counts = np.bincount(regions)
    sums = np.zeros((len(counts), shares.n_columns), dtype=np.int64)
    cpu.sum_regions(shares.starts, shares.columns, shares.values, regions, sums)
    means = np.rint(sums / counts[:, None]) / ONE
    return ShareRows(csr_array(means), offsets, counts)
