"""The histogram of pairs of objects for many small clusters, where few pairs of label rows have a cluster in common.

Only these pairs are visited. All other pairs have no match, and are counted together.
"""

import numpy as np

from gpuens.evidence.overlaps import rows_of_cells, split_rows
from gpuens.labels.incidence import cluster_sums, row_sums, sparse_incidence
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.runtime import progress

COMPARISONS_A_VISIT = 2**11  # label comparisons of all rows, by vectors, in the time of a visit to a pair of rows
BYTES_A_PAIR = 100, 3  # bytes for a pair of rows in a step, and for each clustering


def rows_per_cluster(rows: Rows) -> np.ndarray:
    """Return the number of label rows in each cluster (N_c,), float64, host."""
    sums = cluster_sums(rows.codes, rows.offsets, rows.xp.ones(rows.n_rows, dtype=np.int64), device=rows.device)
    return devices.to_host(sums).astype(np.float64)


def prefer_visits(rows: Rows) -> bool:
    """Return whether visits to the pairs of rows with a common cluster cost less than a comparison of all pairs."""
    sizes = rows_per_cluster(rows)
    return rows.device == "cpu" and COMPARISONS_A_VISIT * float(sizes @ sizes) <= rows.n_rows**2 * rows.n_clusterings


def count_common_pairs(rows: Rows, totals: np.ndarray) -> np.ndarray:
    """Return the histogram of `gpuens.evidence.pairs.pair_histogram` for rows that have few clusters in common.

    ``totals`` is the number of pairs of objects for each number of clusterings that label both, (M + 1,), or the number
    of all pairs (1,): int64 or Python's integers.
    """
    is_labelled, n = rows.codes != rows.ensemble.missing_code, rows.n_clusterings
    counts, histogram = rows.counts.astype(totals.dtype), np.zeros((len(totals), n + 1), dtype=totals.dtype)
    histogram[:, 0] = totals

    def add(copresent: np.ndarray, matches: np.ndarray, weights: np.ndarray) -> None:
        copresent = copresent if len(totals) > 1 else np.zeros_like(matches)
        np.add.at(histogram, (copresent, matches), weights)
        np.subtract.at(histogram[:, 0], copresent, weights)

    n_labels = is_labelled.sum(axis=1)
    add(n_labels, n_labels, counts * (counts - 1) // 2)
    incidence = sparse_incidence(rows)
    clusters = incidence.T.tocsr()
    n_visits = row_sums(rows.codes, rows.offsets, rows_per_cluster(rows))
    at_once = devices.scratch("cpu") / (BYTES_A_PAIR[0] + BYTES_A_PAIR[1] * n)
    for piece in progress.bar(list(split_rows(n_visits, at_once)), "pairs of rows"):
        shared = incidence[piece] @ clusters
        first, second = rows_of_cells(shared) + piece.start, shared.indices
        later = second > first
        first, second, matches = first[later], second[later], shared.data[later].astype(np.int64)
        add((is_labelled[first] & is_labelled[second]).sum(axis=1), matches, counts[first] * counts[second])
    return histogram.reshape(-1)
