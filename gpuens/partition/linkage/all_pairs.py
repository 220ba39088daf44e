"""Weights of two similarities whose searches compare all pairs of regions (kernels/cpu/linkage/all_pairs.h).

Any symmetric S has affinities of regions; `Observed` clusterings have weights of both sums of a ratio. A search of a
GPU compares each query with every region.
"""

from typing import Any

import numpy as np

from gpuens.labels.incidence import row_lookups
from gpuens.labels.rows import Rows
from gpuens.partition.linkage.nearest import WARPS_PER_BLOCK
from gpuens.partition.linkage.regions import SEARCHERS, SMALLEST, Regions, Search
from gpuens.runtime import device as devices
from gpuens.runtime import kernels

# --- any symmetric S --------------------------------------------------------------------------------------------------


def bytes_needed(n_rows: int, n_clusters: int) -> int:
    """Return the number of bytes that the affinities of all rows take."""
    return 8 * n_clusters * (n_rows + n_clusters)


def affinities_of(codes: Any, offsets: np.ndarray, similarity: Any, sizes: Any, *, device: str = "cpu") -> Any:
    """Return the affinities V = M S n of the regions of one row each, (G, N_c) float64; ``similarity`` is M S."""
    affinities = row_lookups(codes, offsets, similarity, device=device)
    affinities *= devices.namespace(device).asarray(sizes)[:, None]
    return affinities


def margin(similarity: np.ndarray, n_rows: int, n_clusterings: int) -> float:
    """Return the rounding tolerance of an average similarity after any number of merges."""
    largest = float(max(similarity.max(), -similarity.min())) * n_clusterings
    return 4 * float(np.finfo(np.float64).eps) * (len(similarity) + n_rows + 8) * largest


# --- observed clusterings ---------------------------------------------------------------------------------------------


def with_labelled(rows: Rows, similarity: Any, labelled: Any) -> tuple[Rows, np.ndarray]:
    """Return rows of 2 M clusterings, and weights (2, N_c + M).

    Clustering M + m has a single cluster: all objects that clustering m labels. ``labelled`` (G, M) tells which labels
    exist, including labels of clusters that ``rows`` no longer has. Weights stay whole numbers if float64 holds all
    sums exactly, so that a similarity is rounded only once.
    """
    codes, xp, n_clusters, n_clusterings = rows.codes, rows.xp, rows.n_clusters, rows.n_clusterings
    single_code, missing = codes.dtype.type(0), codes.dtype.type(rows.ensemble.missing_code)
    dtype = similarity.weights.dtype if float(rows.n_objects) ** 2 * n_clusterings < 2.0**53 else np.float64
    weights = np.zeros((2, n_clusters + n_clusterings), dtype=dtype)
    weights[0, :n_clusters], weights[1, n_clusters:] = similarity.weights, similarity.of_clusterings
    codes = xp.concatenate([codes, xp.where(labelled, single_code, missing).astype(codes.dtype)], axis=1)
    offsets = np.concatenate([rows.offsets, n_clusters + 1 + np.arange(n_clusterings)])
    return Rows.of_codes(codes, offsets, rows.counts, rows.device), weights


def bounding_weights_of_ratio(weights: np.ndarray, n_clusterings: int) -> np.ndarray:
    """Return float32 weights (N_c + M,) for an upper bound: no smaller numerator and no larger denominator."""
    n_clusters = weights.shape[1] - n_clusterings
    bounding: np.ndarray = weights.sum(axis=0) / weights.max()
    bounding[:n_clusters] = np.maximum(bounding[:n_clusters], SMALLEST)
    return bounding.astype(np.float32)


# --- kernels/general_regions.cu and kernels/observed_regions.cu -------------------------------------------------------


def merge_affinities(
    affinities: Any, kept: Any, absorbed: Any, n_pairs: Any, n_merges: Any, most_pairs: int, *, device: str
) -> None:
    """Add the affinities of ``absorbed`` regions to those of ``kept`` regions, for the pairs of `merge_histograms`."""
    kernels.launch(
        "merge_affinities", kernels.blocks(most_pairs * affinities.shape[1], 256), 256,
        (kept, absorbed, n_pairs, n_merges, affinities.shape[1], affinities),
        device=device,
    )  # fmt: skip


def search_general(task: Search, regions: Regions, affinities: Any, n_clusterings: int, *, device: str) -> None:
    """Rebuild the lists of the queries by the affinities (G, N_c) of any symmetric S.

    A list that is not full holds all other active regions, and its bound is minus infinity.
    """
    queries, active, numbers, lists, compared = task
    kernels.launch(
        "search_general", kernels.blocks(len(queries), 4), 128,
        (queries, active, numbers, regions.clusters, regions.counts,
         regions.start, regions.length, regions.size, affinities, affinities.shape[1], n_clusterings,
         np.int32(lists.ids.shape[1]), np.float64(-np.inf), *lists, compared),
        device=device,
    )  # fmt: skip


def search_observed(task: Search, regions: Regions, weights: Any, n_clusterings: int, *, device: str) -> None:
    """Rebuild the lists of the queries by the weights (2, N_c + M) of a ratio of sums.

    A list that is not full holds all other active regions with a similarity above 0. If no clustering labels objects of
    both the query and a region R, the bound of the query's list does not exclude ties: if R merges with a region whose
    similarity equals the bound, the similarity of the union equals the bound, too, but the union has another name and
    therefore another tie-break.
    """
    n_columns, (queries, active, numbers, lists, compared) = weights.shape[1], task
    room = min(SEARCHERS, devices.scratch(device) // (WARPS_PER_BLOCK * n_columns * regions.counts.itemsize) + 1)
    n_blocks = kernels.blocks(len(queries), WARPS_PER_BLOCK, room)
    tables = devices.namespace(device).zeros((n_blocks * WARPS_PER_BLOCK, n_columns), dtype=regions.counts.dtype)
    kernels.launch(
        "search_observed", n_blocks, 32 * WARPS_PER_BLOCK,
        (queries, active, numbers, regions.clusters, regions.counts,
         regions.start, regions.length, weights, n_columns, n_columns - n_clusterings, np.int32(lists.ids.shape[1]),
         tables, *lists, compared),
        device=device, WEIGHT=kernels.c_name(weights.dtype),
    )  # fmt: skip
