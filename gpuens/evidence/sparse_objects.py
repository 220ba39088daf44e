"""The evidence of `objects` for many clusters, from sparse tables of the clusters that share objects.

Between an object and all other clusters the mean of C is 0. The lift of their labels is the same in each clustering,
1 / n_c, so that it is computed once for all of them (see `lifts`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from gpuens.evidence.overlaps import clusterings_of, labelled_in, overlaps, pieces_of, rows_of, sums_of_products
from gpuens.labels.incidence import row_sums, sparse_incidence
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import exponentials, logarithms, natural_logarithms

BYTES_A_CELL = 200  # bytes for each pair of a row and a cluster of which a piece of the rows is computed


class SparseTables:
    """The sparse tables of a consensus of known rows, from which the evidence for any rows is computed in pieces."""

    def __init__(self, rows: Rows, consensus: np.ndarray, missing: str) -> None:
        self.ignore = missing == "ignore"
        self.shared = overlaps(rows, consensus)
        self.sizes = np.bincount(consensus, weights=rows.counts)
        k, n = len(self.sizes), rows.n_clusterings
        # (M, k) or, if each clustering is counted for each object, (1, k)
        self.members = labelled_in(self.shared, rows.offsets) if self.ignore else self.sizes[None]
        self.n_counted = n
        by_chance = self.members / np.maximum(self.members.sum(axis=1, keepdims=True), 1.0)
        of_cells = (
            clusterings_of(self.shared, rows.offsets) if self.ignore else np.zeros(self.shared.nnz, dtype=np.int64)
        )
        p = by_chance[of_cells, self.shared.indices]
        n_c = np.maximum(self.shared.sum(axis=1), 1.0)
        self.log_sizes = natural_logarithms(n_c)
        # log lift of a label that members have, minus the log lift of a label that no member has
        self.gained = self._like_shared(natural_logarithms(1.0 + self.shared.data / p))
        own = (self.shared.data - 1.0 + p) / (n_c[rows_of(self.shared)] * p)
        self.own = self._like_shared(natural_logarithms(own))
        # labels that the same clusterings know have the same lift where no member has them
        patterns = self.members.T > 0 if self.ignore else np.ones((k, 1), dtype=bool)
        self.patterns, self.pattern_of, self.n_of_pattern = np.unique(
            patterns, axis=0, return_inverse=True, return_counts=True
        )
        self.pattern_of = self.pattern_of.reshape(-1)

    def _like_shared(self, data: np.ndarray) -> sparse.csr_array:
        return sparse.csr_array((data, self.shared.indices, self.shared.indptr), shape=self.shared.shape)

    def evidence(self, rows: Rows, labels: np.ndarray, *, new: bool) -> np.ndarray:
        """Return the five numbers of `Objects` for the labels (G,) of rows, (5, G).

        ``new`` says that the rows are not members of the clusters.
        """
        found = np.empty((5, rows.n_rows))
        for some in self._pieces(rows):
            found[:, some] = self._of_piece(rows.take(some), labels[some], new)
        return found

    def _pieces(self, rows: Rows) -> Iterator[slice]:
        """Return slices of rows whose cells fit the scratch memory."""
        n_cells = np.diff(self.shared.indptr).astype(np.float64)
        most = devices.to_host(row_sums(rows.codes, rows.offsets, n_cells, device=rows.device))
        most = np.minimum(most, len(self.sizes)) + len(self.patterns) + rows.n_clusterings
        return pieces_of(most, devices.scratch("cpu") / BYTES_A_CELL)

    def _of_piece(self, rows: Rows, labels: np.ndarray, new: bool) -> tuple[np.ndarray, ...]:
        incidence = sparse_incidence(rows)
        labelled = devices.to_host(rows.codes) != rows.ensemble.missing_code
        n_labels = labelled.sum(axis=1)
        n_counted = n_labels if self.ignore else np.full(len(labels), self.n_counted)
        matches, gained = (self._product(incidence, table) for table in (self.shared, self.gained))
        row, cluster = rows_of(matches), matches.indices
        own = cluster == labels[row]
        if self.ignore:
            clusterings = sums_of_products(labelled, row, self.members, cluster)
        else:
            clusterings = self.n_counted * self.sizes[cluster]
        together = matches.data.copy()
        if not new:
            together[own] -= n_labels[row[own]]  # do not count the match of an object with itself
            clusterings[own] -= n_counted[row[own]]
        means = np.divide(together, clusterings, out=np.zeros_like(together), where=clusterings > 0)
        alone = np.zeros(len(labels), dtype=bool) if new else self.sizes[labels] == 1
        found = _from_means(means, row, own, alone, len(self.sizes))
        inside, margin, silhouette, entropy = found
        confidence = self._confidence(rows, incidence, labelled, labels, n_counted, gained, row, own, new)
        return inside, margin, silhouette, confidence, entropy

    def _product(self, incidence: Any, table: sparse.csr_array) -> sparse.csr_array:
        """Return the sums of each row's cells; all are positive, so that each product has the same cells."""
        found = sparse.csr_array(incidence @ table)
        found.sort_indices()
        return found

    def _confidence(
        self,
        rows: Rows,
        incidence: Any,
        labelled: np.ndarray,
        labels: np.ndarray,
        n_counted: np.ndarray,
        gained: sparse.csr_array,
        row: np.ndarray,
        own: np.ndarray,
        new: bool,
    ) -> np.ndarray:
        """Return the share of each row's label in the sum of the pooled lifts; see `Lifts.confidence`."""
        n, cluster = len(labels), gained.indices
        if self.ignore:
            codes = devices.to_host(rows.codes)
            logs = np.zeros(codes.shape)
            at = (codes.astype(np.int64) + rows.offsets[:-1])[labelled]
            logs[labelled] = self.log_sizes[at]
            without = -(logs @ self.patterns.T.astype(np.float64))  # (G, patterns), log lifts of labels without members
        else:
            without = -(incidence @ self.log_sizes)[:, None]
        pattern = self.pattern_of[cluster]
        pooled = without[row, pattern] + gained.data
        of_own = without[np.arange(n), self.pattern_of[labels]]
        of_own[row[own]] = pooled[own]
        if not new:
            of_row = np.repeat(np.arange(n), labelled.sum(axis=1))
            of_own = np.bincount(of_row, weights=self.own[incidence.indices, labels[of_row]], minlength=n)
        found = np.bincount(row * len(self.patterns) + pattern, minlength=n * len(self.patterns))
        absent = self.n_of_pattern - found.reshape(n, -1)
        missed = np.ones(n, dtype=bool)
        missed[row[own]] = False
        absent[np.flatnonzero(missed), self.pattern_of[labels[missed]]] -= 1
        scale = np.maximum(n_counted, 1).astype(np.float64)
        pooled, of_own, without = pooled / scale[row], of_own / scale, without / scale[:, None]
        most = np.maximum(of_own, np.where(absent > 0, without, -np.inf).max(axis=1))
        np.maximum.at(most, row[~own], pooled[~own])
        total = (absent * exponentials(np.where(absent > 0, without - most[:, None], -np.inf))).sum(axis=1)
        of_own = exponentials(of_own - most)
        total += of_own + np.bincount(row[~own], weights=exponentials(pooled - most[row])[~own], minlength=n)
        confidence: np.ndarray = of_own / total
        return confidence


def _from_means(
    means: np.ndarray, row: np.ndarray, own: np.ndarray, alone: np.ndarray, k: int
) -> tuple[np.ndarray, ...]:
    """Return item consensus, margin, silhouette and entropy from the means of C that are not 0.

    The i-th mean is of ``row[i]``, and with the row's own cluster if ``own[i]``; ``k`` is the number of clusters.
    """
    n = len(alone)
    total = np.bincount(row, weights=means, minlength=n)
    shares = np.divide(means, total[row], out=np.zeros_like(means), where=total[row] > 0)
    terms = shares * logarithms(np.where(shares > 0, shares, 1.0))
    entropy = np.where(total > 0, -np.bincount(row, weights=terms, minlength=n) / logarithms(max(k, 2)), float(k > 1))
    inside = np.bincount(row[own], weights=means[own], minlength=n)
    inside[alone] = entropy[alone] = np.nan
    best = np.full(n, 0.0 if k > 1 else np.nan)
    np.maximum.at(best, row[~own], means[~own])
    return inside, inside - best, silhouette_of(inside, best, alone), entropy


def silhouette_of(inside: np.ndarray, best: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Return the silhouette for the distance 1 - C, from the mean C inside the own cluster and the best other one."""
    within, between = 1.0 - inside, 1.0 - best
    larger = np.maximum(within, between)
    silhouette = np.where(larger > 0, (between - within) / np.where(larger > 0, larger, 1.0), 0.0)
    silhouette[np.isnan(best)] = np.nan
    silhouette[alone & ~np.isnan(best)] = 0.0
    return silhouette
