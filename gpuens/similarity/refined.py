"""Co-association refined by distances and by the stability of clusters, along paths (TOME).

Two objects of a cluster c are as similar as they are near each other, 1 - d / (the largest distance in c); I'(x, y) is
the mean over the clusterings, 0 where they are apart or a label is missing. The stability of c is the mean of I' over
all pairs of its objects, scaled over all clusters from 0 for the least to 1 for the most stable; it weighs c in I''.
Objects are then as similar as the weakest link of the path between them whose weakest link is strongest: that of the
maximum spanning tree, or of single linkage.

Objects with equal rows stay together: distances between rows are means over their objects. Where all rows are different
this is the paper's definition.

Zhong, Yue, Zhang & Lei, "A clustering ensemble: two-level-refined co-association matrix with path-based
transformation", Pattern Recognition 48 (2015) 2699-2709.
"""

from dataclasses import dataclass

import numpy as np

from gpuens import checks, progress
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.incidence import scaled_rows, sparse_incidence
from gpuens.reduction.find import find_rows
from gpuens.rows import Rows
from gpuens.similarity.base import Features, Measure
from gpuens.similarity.held import HeldPairs
from gpuens.similarity.mapping import points_of

BLOCK = 2**22  # distances computed at a time
BYTES_PER_PAIR = 40  # of ordered pairs of rows: mean and largest distances, both refinements, and the paths


@dataclass(frozen=True)
class RefinedPaths(Measure):
    """Rows are similar as far as paths through stable clusters of near objects lead from one to the other.

    It holds all pairs of distinct rows, and computes the distances of all pairs of their objects.
    """

    kind = "pairs"
    needs_features = True

    def refuse_too_many(self, rows: Rows) -> None:
        checks.check_memory(
            rows.n_rows * (BYTES_PER_PAIR * rows.n_rows + 16 * rows.n_clusters),
            devices.memory_budget(),
            f"paths between all pairs of {rows.n_rows} distinct label rows",
            "reduce the rows first, reduction=CATree(…) or Sample(…)",
        )

    def __call__(self, rows: Rows, features: Features | None = None) -> "RefinedRows":
        assert features is not None  # refused before
        ensemble = features.ensemble
        points = points_of(features.values, ensemble.n_objects, "cpu")
        row_of = devices.to_host(find_rows(ensemble.codes_on(rows.device), rows.codes, device=rows.device))
        objects = np.argsort(row_of, kind="stable")[np.count_nonzero(row_of < 0) :]
        return RefinedRows(rows, points[objects], np.searchsorted(row_of[objects], np.arange(len(rows))))


class RefinedRows(HeldPairs):
    """The similarity of given rows along paths.

    ``points`` (n, D) are the features of their objects, row by row, and ``first`` (G,) is the first object of each row.
    """

    def __init__(self, rows: Rows, points: np.ndarray, first: np.ndarray) -> None:
        super().__init__(rows)
        self.points, self.first = points, first

    def compute(self) -> np.ndarray:
        from scipy.cluster.hierarchy import cophenet, linkage
        from scipy.spatial.distance import squareform

        similar = self.refined()
        if len(similar) < 2:
            return similar
        own, most = similar.diagonal().copy(), float(similar.max())
        np.subtract(most, similar, out=similar)
        np.fill_diagonal(similar, 0.0)
        paths: np.ndarray = squareform(cophenet(linkage(squareform(similar, checks=False), "single")))
        np.subtract(most, paths, out=paths)
        np.fill_diagonal(paths, own)
        return paths

    def refined(self) -> np.ndarray:
        """Return I'' (G, G), means over the objects of both rows."""
        rows, codes = self.rows, devices.to_host(self.rows.codes)
        distances, farthest = self._distances()
        largest = _largest(codes, rows.offsets, farthest)
        del farthest
        inverse = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 0.0)
        similar, equal = np.empty_like(distances), np.full(rows.n_clusters, 1.0 / rows.n_clusterings)
        _near(codes, rows.offsets, distances, inverse, equal, similar)
        members = scaled_rows(sparse_incidence(rows), np.diff(self.first, append=len(self.points)))
        sizes = np.asarray(members.sum(axis=0)).ravel()
        within = np.asarray(members.multiply(similar @ members).sum(axis=0)).ravel()
        stable = _scaled(within / np.maximum(sizes, 1.0) ** 2, sizes > 0)
        _near(codes, rows.offsets, distances, inverse, equal * stable, similar)
        return similar

    def _distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the largest distance between the objects of any two rows (G, G), each with itself too."""
        from scipy.spatial.distance import cdist

        n_rows, n = len(self.first), len(self.points)
        sizes = np.diff(self.first, append=n)
        mean, farthest = np.zeros((n_rows, n_rows)), np.zeros((n_rows, n_rows))
        step = max(1, BLOCK // n)
        row_of = np.repeat(np.arange(n_rows), sizes)
        for start in progress.bar(range(0, n, step), "distances"):
            block = cdist(self.points[start : start + step], self.points)
            own, at = np.unique(row_of[start : start + step], return_index=True)
            for found, ufunc in ((mean, np.add), (farthest, np.maximum)):
                of_rows = ufunc.reduceat(ufunc.reduceat(block, self.first, axis=1), at, axis=0)
                found[own] = ufunc(found[own], of_rows)
        mean /= sizes[:, None] * sizes
        return mean, farthest


def _scaled(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return stabilities scaled to 0 … 1 over the clusters that are there; ones if all are alike."""
    least, most = values[there].min(), values[there].max()
    return np.ones_like(values) if most - least <= 1e-12 else np.clip((values - least) / (most - least), 0.0, 1.0)


@njit(cache=True, nogil=True)
def _largest(codes, offsets, farthest):
    """Return the largest distance between objects of each cluster (N_c,)."""
    missing = codes.dtype.type(-1)
    largest = np.zeros(offsets[-1])
    for m in range(codes.shape[1]):
        for g in range(codes.shape[0]):
            if codes[g, m] != missing:
                c = offsets[m] + codes[g, m]
                for h in range(g + 1):
                    if codes[h, m] == codes[g, m] and farthest[g, h] > largest[c]:
                        largest[c] = farthest[g, h]
    return largest


@njit(cache=True, nogil=True)
def _near(codes, offsets, distances, inverse, weights, similar):
    """Set ``similar`` (G, G) to Σ_m w_c (1 - d / largest distance in c), over shared clusters c."""
    missing = codes.dtype.type(-1)
    for g in range(codes.shape[0]):
        for h in range(g + 1):
            total = 0.0
            for m in range(codes.shape[1]):
                if codes[g, m] == codes[h, m] and codes[g, m] != missing:
                    c = offsets[m] + codes[g, m]
                    total += weights[c] * (1.0 - distances[g, h] * inverse[c])
            similar[g, h] = similar[h, g] = total
