"""The evidence of `objects` for many clusters, from sparse tables of the clusters that share objects.

Between an object and all other clusters the mean of C is 0. The lift of their labels is the same in each clustering,
1 / n_c, so that it is computed once for all of them (see `lifts`).
"""

from typing import Any

import numpy as np
from scipy import sparse

from gpuens.evidence.dense_objects import silhouette_of_means
from gpuens.evidence.overlaps import Overlaps, rows_of_cells, split_rows, sum_products
from gpuens.labels.incidence import row_sums, sparse_incidence
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import exponentials, logarithms, natural_logarithms

BYTES_A_CELL = 200  # bytes for each pair of a row and a cluster of which a piece of the rows is computed


class SparseTables:
    """The sparse tables of a consensus of known rows, from which the evidence for any rows is computed in pieces."""

    def __init__(self, overlaps: Overlaps, missing: str) -> None:
        self.ignore = missing == "ignore"
        self.overlaps, self.counts, self.sizes = overlaps, overlaps.counts, overlaps.sizes
        # (M, k) or, if each clustering is counted for each object, (1, k)
        self.members = overlaps.labelled if self.ignore else self.sizes[None]
        by_chance = self.members / np.maximum(self.members.sum(axis=1, keepdims=True), 1.0)
        p = by_chance[overlaps.clusterings if self.ignore else 0, self.counts.indices]
        n_c = np.maximum(self.counts.sum(axis=1), 1.0)
        self.log_sizes = natural_logarithms(n_c)
        # log lift of a label that members have, minus the log lift of a label that no member has
        self.gains = self._like_counts(natural_logarithms(1.0 + self.counts.data / p))
        member_lifts = (self.counts.data - 1.0 + p) / (n_c[overlaps.clusters] * p)
        self.member_lifts = self._like_counts(natural_logarithms(member_lifts))
        # labels that the same clusterings know have the same lift where no member has them
        patterns = self.members.T > 0 if self.ignore else np.ones((len(self.sizes), 1), dtype=bool)
        self.patterns, self.pattern_of, self.n_of_pattern = np.unique(
            patterns, axis=0, return_inverse=True, return_counts=True
        )
        self.pattern_of = self.pattern_of.reshape(-1)

    def _like_counts(self, data: np.ndarray) -> sparse.csr_array:
        return sparse.csr_array((data, self.counts.indices, self.counts.indptr), shape=self.counts.shape)

    def evidence(self, rows: Rows, labels: np.ndarray, *, new: bool) -> np.ndarray:
        """Return the five numbers of `Objects` for the labels (G,) of rows, (5, G).

        ``new`` says that the rows are not members of the clusters.
        """
        evidence = np.empty((5, rows.n_rows))
        n_cells = np.diff(self.counts.indptr).astype(np.float64)
        bound = devices.to_host(row_sums(rows.codes, rows.offsets, n_cells, device=rows.device))
        bound = np.minimum(bound, len(self.sizes)) + len(self.patterns) + rows.n_clusterings
        for piece in split_rows(bound, devices.scratch("cpu") / BYTES_A_CELL):
            evidence[:, piece] = self._measure_piece(rows.take(piece), labels[piece], new)
        return evidence

    def _measure_piece(self, rows: Rows, labels: np.ndarray, new: bool) -> tuple[np.ndarray, ...]:
        incidence = sparse_incidence(rows)
        labelled = devices.to_host(rows.codes) != rows.ensemble.missing_code
        n_labels = labelled.sum(axis=1)
        n_counted = n_labels if self.ignore else np.full(len(labels), self.overlaps.n_clusterings)
        matches = _multiply_sorted(incidence, self.counts)
        row, cluster = rows_of_cells(matches), matches.indices
        inside = cluster == labels[row]
        if self.ignore:
            clusterings = sum_products(labelled, row, self.members, cluster)
        else:
            clusterings = self.overlaps.n_clusterings * self.sizes[cluster]
        together = matches.data.copy()
        if not new:
            together[inside] -= n_labels[row[inside]]  # do not count the match of an object with itself
            clusterings[inside] -= n_counted[row[inside]]
        means = np.divide(together, clusterings, out=np.zeros_like(together), where=clusterings > 0)
        is_single = np.zeros(len(labels), dtype=bool) if new else self.sizes[labels] == 1
        item_consensus, margin, silhouette, entropy = _summarize_means(means, row, inside, is_single, len(self.sizes))
        confidence = self._confidence(incidence, self._lifts_without_members(rows, incidence), labels, n_counted, new)
        return item_consensus, margin, silhouette, confidence, entropy

    def _lifts_without_members(self, rows: Rows, incidence: Any) -> np.ndarray:
        """Return the sums (G, patterns) of the log lifts of labels without members."""
        if not self.ignore:
            return np.asarray(-(incidence @ self.log_sizes)[:, None])
        logs = np.zeros(rows.codes.shape)
        logs[devices.to_host(rows.codes) != rows.ensemble.missing_code] = self.log_sizes[incidence.indices]
        return np.asarray(-(logs @ self.patterns.T.astype(np.float64)))

    def _confidence(
        self, incidence: Any, without: np.ndarray, labels: np.ndarray, n_counted: np.ndarray, new: bool
    ) -> np.ndarray:
        """Return the share of each row's label in the sum of the pooled lifts; see `Lifts.confidence`.

        ``without`` (G, patterns) are the log lifts of labels without members, and ``n_counted`` (G,) the numbers of
        clusterings that count for a row.
        """
        gains, n = _multiply_sorted(incidence, self.gains), len(labels)
        row, cluster = rows_of_cells(gains), gains.indices
        inside = cluster == labels[row]
        pattern = self.pattern_of[cluster]
        pooled = without[row, pattern] + gains.data
        lift = without[np.arange(n), self.pattern_of[labels]]  # log lift of each row's label
        lift[row[inside]] = pooled[inside]
        if not new:
            row_of_label = rows_of_cells(incidence)
            lift = np.bincount(
                row_of_label, weights=self.member_lifts[incidence.indices, labels[row_of_label]], minlength=n
            )
        n_present = np.bincount(row * len(self.patterns) + pattern, minlength=n * len(self.patterns))
        n_absent = self.n_of_pattern - n_present.reshape(n, -1)
        is_absent = np.ones(n, dtype=bool)
        is_absent[row[inside]] = False
        n_absent[np.flatnonzero(is_absent), self.pattern_of[labels[is_absent]]] -= 1
        scale = np.maximum(n_counted, 1).astype(np.float64)
        pooled, lift, without = pooled / scale[row], lift / scale, without / scale[:, None]
        without = np.where(n_absent > 0, without, -np.inf)
        largest = np.maximum(lift, without.max(axis=1))
        np.maximum.at(largest, row[~inside], pooled[~inside])
        total = (n_absent * exponentials(without - largest[:, None])).sum(axis=1)
        lift = exponentials(lift - largest)
        total += lift + np.bincount(row[~inside], weights=exponentials(pooled - largest[row])[~inside], minlength=n)
        return lift / total


def _multiply_sorted(incidence: Any, table: sparse.csr_array) -> sparse.csr_array:
    """Return the sums of each row's cells; all are positive, so that each product has the same cells."""
    product = sparse.csr_array(incidence @ table)
    product.sort_indices()
    return product


def _summarize_means(
    means: np.ndarray, row: np.ndarray, inside: np.ndarray, is_single: np.ndarray, k: int
) -> tuple[np.ndarray, ...]:
    """Return item consensus, margin, silhouette and entropy from the means of C that are not 0.

    The i-th mean is of ``row[i]``, and with the row's own cluster if ``inside[i]``; ``k`` is the number of clusters.
    """
    n = len(is_single)
    total = np.bincount(row, weights=means, minlength=n)
    shares = np.divide(means, total[row], out=np.zeros_like(means), where=total[row] > 0)
    terms = shares * logarithms(np.where(shares > 0, shares, 1.0))
    entropy = np.where(total > 0, -np.bincount(row, weights=terms, minlength=n) / logarithms(max(k, 2)), float(k > 1))
    item_consensus = np.bincount(row[inside], weights=means[inside], minlength=n)
    item_consensus[is_single] = entropy[is_single] = np.nan
    best = np.full(n, 0.0 if k > 1 else np.nan)
    np.maximum.at(best, row[~inside], means[~inside])
    return item_consensus, item_consensus - best, silhouette_of_means(item_consensus, best, is_single), entropy
