"""The evidence of `objects` from dense tables of all clusters, which are looked up for each label of an object."""

import numpy as np

from gpuens.evidence.lifts import Lifts
from gpuens.evidence.overlaps import Overlaps, multiply_counts
from gpuens.kmeans.distances import silhouettes_of_distances
from gpuens.labels.rows import Rows
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import logarithms
from gpuens.similarity.base import LookedUp

# bytes for each pair of a row and a cluster, or a clustering, of a piece of the rows that is computed at once
BYTES_A_CELL = 80


class DenseTables:
    """The dense tables of a consensus of known rows, from which the evidence for any rows is computed in pieces."""

    def __init__(self, overlaps: Overlaps, missing: str) -> None:
        self.ignore, self.sizes = missing == "ignore", overlaps.sizes
        shared = overlaps.counts.toarray()
        # (M, k), the objects of a cluster for which a clustering counts
        self.members = overlaps.labelled if self.ignore else np.tile(self.sizes, (overlaps.n_clusterings, 1))
        self.look_up, self.lifts = LookedUp(shared), Lifts.of(shared, self.members, overlaps.offsets)

    def evidence(self, rows: Rows, labels: np.ndarray, *, new: bool) -> np.ndarray:
        """Return the five numbers of `Objects` for the labels (G,) of rows, (5, G).

        ``new`` says that the rows are not members of the clusters.
        """
        evidence = np.empty((5, rows.n_rows))
        step = max(256, devices.scratch(rows.device) // (BYTES_A_CELL * (len(self.sizes) + rows.n_clusterings)))
        for start in range(0, rows.n_rows, step):
            piece = slice(start, start + step)
            evidence[:, piece] = self._measure_piece(rows.take(piece), labels[piece], new)
        return evidence

    def _measure_piece(self, rows: Rows, labels: np.ndarray, new: bool) -> tuple[np.ndarray, ...]:
        codes = devices.to_host(rows.codes)
        labelled = codes != rows.ensemble.missing_code
        is_counted = labelled if self.ignore else np.ones_like(labelled)
        confidence = self.lifts.confidence(rows, codes, labels, is_counted.sum(axis=1), new=new)
        matches, clusterings = self.look_up(rows), multiply_counts(is_counted.astype(np.float64), self.members)
        if not new:
            g = np.arange(len(labels))
            matches[g, labels] -= labelled.sum(axis=1)  # do not count the match of an object with itself
            clusterings[g, labels] -= is_counted.sum(axis=1)
        means = np.divide(matches, clusterings, out=np.zeros_like(matches), where=clusterings > 0)
        is_single = np.zeros(len(labels), dtype=bool) if new else self.sizes[labels] == 1
        inside, margin, silhouette, entropy = _summarize_means(means, labels, is_single)
        return inside, margin, silhouette, confidence, entropy


def _summarize_means(means: np.ndarray, labels: np.ndarray, is_single: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return item consensus, margin, silhouette and entropy.

    ``means`` (G, k) are the means of C between each row's objects and the other members of each cluster;
    ``is_single`` (G,) marks the only members of a cluster.
    """
    g, n_labels = np.arange(len(labels)), means.shape[1]
    total = means.sum(axis=1)
    shares = np.divide(means, total[:, None], out=np.zeros_like(means), where=total[:, None] > 0)
    inside = means[g, labels]
    entropy = -np.sum(shares * logarithms(np.where(shares > 0, shares, 1.0)), axis=1)
    entropy = np.where(total > 0, entropy / logarithms(max(n_labels, 2)), float(n_labels > 1))
    inside[is_single] = entropy[is_single] = np.nan
    means[g, labels] = -1.0
    best = means.max(axis=1) if n_labels > 1 else np.full(len(labels), np.nan)
    return inside, inside - best, silhouette_of_means(inside, best, is_single), entropy


def silhouette_of_means(inside: np.ndarray, best: np.ndarray, is_single: np.ndarray) -> np.ndarray:
    """Return the silhouette for the distance 1 - C, from the mean C inside the own cluster and the best other one."""
    silhouette = silhouettes_of_distances(1.0 - inside, 1.0 - best)
    silhouette[np.isnan(best)] = np.nan
    silhouette[is_single & ~np.isnan(best)] = 0.0
    return silhouette
