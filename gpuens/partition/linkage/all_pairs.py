"""Searches over all pairs of regions, for two similarities whose bounds would exclude too few tiles of rows.

Any symmetric S. The average similarity of regions A and R is p_Aᵀ S p_R. Every region stores its affinities
V_R = M S n_R; when two regions merge, their affinities are added. The similarity of A and R is then
Σ_c n_A[c] V_R[c] / (|A| |R| M), with one look-up in V_R per entry of A. A is the region with fewer entries (if both
have equally many, the region with the smaller id), so that the similarity of A and R has the same bits as that of R
and A.

Observed clusterings. The similarity is Σ_c w_c n_A[c] n_R[c] / Σ_m λ_m p_A[m] p_R[m], where p_A[m] counts the objects
of A that clustering m labels. With unit weights, the numerator counts, for all pairs of an object of A and an object of
R, the clusterings that put the pair into one cluster; the denominator counts the clusterings that label both objects.
The similarity is 0 if no clustering labels both objects of any pair. The similarity of a union is the mediant of the
similarities of its parts and lies between them, so average linkage stays reducible. `with_labelled` adds M clusters to
the rows, after the N_c clusters: one cluster for each clustering, with all objects that the clustering labels. So a
histogram holds n_A and then p_A, and histograms merge as for other similarities. The weights are (2, N_c + M). The
first row has the weights of the numerator, with 0 for the last M clusters. The second row has the weights of the
denominator, with 0 for the first N_c clusters.

A search reads each region once for up to 64 queries. The float32 tables of the queries are interleaved, so that one
entry of a region is used in four vectors. The table of a query holds its affinities, scaled so that the largest is 1;
for observed clusterings it holds bounds on the terms of numerator and denominator. If a region may come before the last
entry of a query's list, its similarity is computed again, exactly and in a fixed order of summation. A search begins at
regions similar to the queries, so that only few of the remaining regions need exact similarities.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuens.labels.incidence import row_lookups
from gpuens.labels.rows import Rows
from gpuens.partition.linkage.nearest import WARPS, Shortlists
from gpuens.partition.linkage.regions import SEARCHERS, SMALLEST, Regions, last_pairs
from gpuens.runtime import device as devices
from gpuens.runtime import kernels, progress
from gpuens.runtime.native import cpu

AT_ONCE = 4096  # queries between two reports of progress, at least

# --- any symmetric S --------------------------------------------------------------------------------------------------


def bytes_needed(n_rows: int, n_clusters: int) -> int:
    """Return the number of bytes that the affinities of all rows take."""
    return 8 * n_clusters * (n_rows + n_clusters)


def affinities_of(codes: Any, offsets: np.ndarray, similarity: Any, sizes: Any, *, device: str = "cpu") -> Any:
    """Return the affinities V = M S n of the regions of one row each, (G, N_c) float64; ``similarity`` is M S."""
    affinities = row_lookups(codes, offsets, similarity, device=device)
    affinities *= sizes[:, None]
    return affinities


def margin(similarity: np.ndarray, n_rows: int, n_clusterings: int) -> float:
    """Return the rounding tolerance of an average similarity after any number of merges."""
    largest = float(max(similarity.max(), -similarity.min())) * n_clusterings
    return 4 * float(np.finfo(np.float64).eps) * (len(similarity) + n_rows + 8) * largest


@kernels.primitive
def merge_affinities(
    affinities: np.ndarray, kept: np.ndarray, absorbed: np.ndarray, n_pairs: np.ndarray, n_merges: Any = None,
    most: int | None = None,
) -> None:  # fmt: skip
    """Add the affinities of ``absorbed`` regions to those of ``kept`` regions, for the pairs of `merge_histograms`."""
    cpu.merge_affinities(affinities, *last_pairs(kept, absorbed, n_pairs, n_merges))


@kernels.primitive
def search_general(
    queries: np.ndarray, active: np.ndarray, regions: Regions, affinities: np.ndarray, n_clusterings: int,
    margin: float, lists: Shortlists, compared: np.ndarray, numbers: np.ndarray,
) -> None:  # fmt: skip
    """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions.

    ``numbers`` is that of `regions.search`. The number of comparisons is added to ``compared`` (1,) uint64. A list that
    is not full holds all other active regions, and its bound is minus infinity. ``margin`` is the result of `margin`.
    """
    queries, active = queries[: numbers[1]], active[: numbers[0]]
    for some in _runs(queries):
        compared += np.uint64(cpu.search_general(some, active, regions, affinities, n_clusterings, margin, lists))


# --- observed clusterings ---------------------------------------------------------------------------------------------


def with_labelled(rows: Rows, similarity: Any, labelled: Any) -> tuple[Rows, np.ndarray]:
    """Return rows of 2 M clusterings, and weights (2, N_c + M).

    Clustering M + m has a single cluster: all objects that clustering m labels. ``labelled`` (G, M) tells which labels
    exist, including labels of clusters that ``rows`` no longer has. Weights stay whole numbers if float64 holds all
    sums exactly, so that a similarity is rounded only once.
    """
    codes, xp, n_clusters, n_clusterings = rows.codes, rows.xp, rows.n_clusters, rows.n_clusterings
    one, missing = codes.dtype.type(0), codes.dtype.type(rows.ensemble.missing_code)
    dtype = similarity.weights.dtype if float(rows.n_objects) ** 2 * n_clusterings < 2.0**53 else np.float64
    weights = np.zeros((2, n_clusters + n_clusterings), dtype=dtype)
    weights[0, :n_clusters], weights[1, n_clusters:] = similarity.weights, similarity.of_clusterings
    codes = xp.concatenate([codes, xp.where(labelled, one, missing).astype(codes.dtype)], axis=1)
    offsets = np.concatenate([rows.offsets, n_clusters + 1 + np.arange(n_clusterings)])
    return Rows.of_codes(codes, offsets, rows.counts, rows.device), weights


@kernels.primitive
def search_observed(
    queries: np.ndarray, active: np.ndarray, regions: Regions, weights: np.ndarray, n_clusterings: int,
    lists: Shortlists, compared: np.ndarray, numbers: np.ndarray,
) -> None:  # fmt: skip
    """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions.

    ``numbers`` is that of `regions.search`. The number of comparisons is added to ``compared`` (1,) uint64. A list that
    is not full holds all other active regions with a similarity above 0. If no clustering labels objects of both the
    query and a region R, the bound of the query's list does not exclude ties: if R merges with a region whose
    similarity equals the bound, the similarity of the union equals the bound, too, but the union has another name and
    therefore another tie-break.
    """
    queries, active = queries[: numbers[1]], active[: numbers[0]]
    bounding = _bounding(weights, n_clusterings)
    for some in _runs(queries):
        compared += np.uint64(cpu.search_observed(some, active, regions, weights, bounding, n_clusterings, lists))


def _bounding(weights: np.ndarray, n_clusterings: int) -> np.ndarray:
    """Return float32 weights (N_c + M,) for an upper bound: no smaller numerator and no larger denominator."""
    n_clusters = weights.shape[1] - n_clusterings
    bounding: np.ndarray = weights.sum(axis=0) / weights.max()
    bounding[:n_clusters] = np.maximum(bounding[:n_clusters], SMALLEST)
    return bounding.astype(np.float32)


# --- both similarities ------------------------------------------------------------------------------------------------


def _runs(queries: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the queries in runs, and show the progress."""
    at_once = max(AT_ONCE, -(-len(queries) // 100))
    with progress.bar(total=len(queries), description="nearest regions") as shown:
        for first in range(0, len(queries), at_once):
            yield queries[first : first + at_once]
            shown.update(len(queries[first : first + at_once]))


# --- kernels/general_regions.cu and kernels/observed_regions.cu -------------------------------------------------------


@merge_affinities.kernel
def _(
    affinities: Any, kept: Any, absorbed: Any, n_pairs: Any, n_merges: Any = None, most: int | None = None, *,
    device: str,
) -> None:  # fmt: skip
    most = len(kept) if most is None else most
    kernels.launch(
        "merge_affinities", kernels.blocks(most * affinities.shape[1], 256), 256,
        (kept, absorbed, n_pairs, n_pairs if n_merges is None else n_merges, affinities.shape[1], affinities),
        device=device,
    )  # fmt: skip


@search_general.kernel
def _(
    queries: Any, active: Any, regions: Regions, affinities: Any, n_clusterings: int, margin: float, lists: Shortlists,
    compared: Any, numbers: Any, *, device: str,
) -> None:  # fmt: skip
    kernels.launch(
        "search_general", kernels.blocks(len(queries), 4), 128,
        (queries, active, numbers, regions.clusters, regions.counts,
         regions.start, regions.length, regions.size, affinities, affinities.shape[1], n_clusterings,
         np.int32(lists.ids.shape[1]), np.float64(-np.inf), *lists, compared),
        device=device,
    )  # fmt: skip


@search_observed.kernel
def _(
    queries: Any, active: Any, regions: Regions, weights: Any, n_clusterings: int, lists: Shortlists, compared: Any,
    numbers: Any, *, device: str,
) -> None:  # fmt: skip
    n_columns = weights.shape[1]
    room = min(SEARCHERS, devices.scratch(device) // (WARPS * n_columns * regions.counts.itemsize) + 1)
    n_blocks = kernels.blocks(len(queries), WARPS, room)
    tables = devices.namespace(device).zeros((n_blocks * WARPS, n_columns), dtype=regions.counts.dtype)
    kernels.launch(
        "search_observed", n_blocks, 32 * WARPS,
        (queries, active, numbers, regions.clusters, regions.counts,
         regions.start, regions.length, weights, n_columns, n_columns - n_clusterings, np.int32(lists.ids.shape[1]),
         tables, *lists, compared),
        device=device, WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip
