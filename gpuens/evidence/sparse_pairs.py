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


def rows_of_clusters(rows: Rows) -> np.ndarray:
    """Return the number of label rows in each cluster (N_c,), float64, host."""
    sums = cluster_sums(rows.codes, rows.offsets, rows.xp.ones(rows.n_rows, dtype=np.int64), device=rows.device)
    return devices.to_host(sums).astype(np.float64)


def has_few_in_common(rows: Rows) -> bool:
    """Return whether visits to the pairs of rows with a common cluster cost less than a comparison of all pairs."""
    sizes = rows_of_clusters(rows)
    return rows.device == "cpu" and COMPARISONS_A_VISIT * float(sizes @ sizes) <= rows.n_rows**2 * rows.n_clusterings


def with_matches(rows: Rows, apart: np.ndarray) -> np.ndarray:
    """Return the histogram of `gpuens.evidence.pairs.pair_histogram` for rows that have few clusters in common.

    ``apart`` is the number of pairs of objects for each number of clusterings that label both, (M + 1,), or the number
    of all pairs (1,): int64 or Python's integers.
    """
    is_labelled, n = rows.codes != rows.ensemble.missing_code, rows.n_clusterings
    counts, histogram = rows.counts.astype(apart.dtype), np.zeros((len(apart), n + 1), dtype=apart.dtype)
    histogram[:, 0] = apart

    def add(copresent: np.ndarray, matches: np.ndarray, n_pairs: np.ndarray) -> None:
        copresent = copresent if len(apart) > 1 else np.zeros_like(matches)
        np.add.at(histogram, (copresent, matches), n_pairs)
        np.subtract.at(histogram[:, 0], copresent, n_pairs)

    n_labels = is_labelled.sum(axis=1)
    add(n_labels, n_labels, counts * (counts - 1) // 2)
    incidence = sparse_incidence(rows)
    clusters = incidence.T.tocsr()
    n_visits = row_sums(rows.codes, rows.offsets, rows_of_clusters(rows))
    at_once = devices.scratch("cpu") / (BYTES_A_PAIR[0] + BYTES_A_PAIR[1] * n)
    for some in progress.bar(list(split_rows(n_visits, at_once)), "pairs of rows"):
        shared = incidence[some] @ clusters
        one, other = rows_of_cells(shared) + some.start, shared.indices
        later = other > one
        one, other, matches = one[later], other[later], shared.data[later].astype(np.int64)
        add((is_labelled[one] & is_labelled[other]).sum(axis=1), matches, counts[one] * counts[other])
    return histogram.reshape(-1)
