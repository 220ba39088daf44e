"""Co-association refined by distances and by the stability of clusters, along paths (TOME).

1. Two objects of a cluster c at distance d have the similarity 1 - d / (the largest distance in c). I'(x, y) is its
   mean over the clusterings, with 0 where the objects are in different clusters or a label is missing.
2. The stability of c is the mean of I' over all pairs of its objects, scaled over all clusters from 0 for the least to
   1 for the most stable cluster. I'' is I' with each cluster weighted by its stability.
3. A path is as strong as its weakest link. The similarity of two objects is the strength of the strongest path between
   them: that in the maximum spanning tree, or that of single linkage.

Objects with equal rows stay together: distances between rows are means over their objects. If all rows are different,
this is the paper's definition.

Zhong, Yue, Zhang & Lei, "A clustering ensemble: two-level-refined co-association matrix with path-based
transformation", Pattern Recognition 48 (2015) 2699-2709.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpuens.labels.incidence import scaled_rows, sparse_incidence
from gpuens.labels.rows import Rows
from gpuens.reduction.find import find_rows
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit
from gpuens.similarity.base import Features, Measure
from gpuens.similarity.mapping import points_of
from gpuens.similarity.pair_matrix import PairMatrix

BLOCK = 2**26  # distances in a step of the progress bar
TOGETHER = 2**9  # objects in a block whose distances to one object are computed together
BYTES_PER_PAIR = 40  # memory for an ordered pair of rows: mean and largest distances, both refinements, the paths


@dataclass(frozen=True)
class RefinedPaths(Measure):
    """Similarity of rows by the strongest path between them, through near objects in stable clusters.

    All pairs of distinct rows are held in memory, and the distances of all pairs of objects are computed.
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
        assert features is not None  # checked by the caller
        ensemble = features.ensemble
        points = points_of(features.values, ensemble.n_objects, "cpu")
        row_of = devices.to_host(find_rows(ensemble.codes_on(rows.device), rows.codes, device=rows.device))
        objects = np.argsort(row_of, kind="stable")[np.count_nonzero(row_of < 0) :]
        return RefinedRows(rows, points[objects], np.searchsorted(row_of[objects], np.arange(len(rows))))


class RefinedRows(PairMatrix):
    """The similarity of some rows along paths.

    ``points`` (n, D) are the features of their objects, row by row; ``first`` (G,) is the first object of each row.
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
        """Return I'' (G, G), with means over the objects of both rows."""
        rows, codes = self.rows, devices.to_host(self.rows.codes)
        distances, farthest = self._distances()
        largest = _largest(codes, rows.offsets, farthest)
        del farthest
        inverse = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 0.0)
        similar, equal = np.empty_like(distances), np.full(rows.n_clusters, 1.0 / rows.n_clusterings)

        def refine(weights: np.ndarray) -> None:
            given = codes, rows.offsets, distances, inverse, weights, similar
            devices.over_ranges(lambda a, b: _near(a, b, *given), len(similar))

        refine(equal)
        members = scaled_rows(sparse_incidence(rows), np.diff(self.first, append=len(self.points)))
        sizes = np.asarray(members.sum(axis=0)).ravel()
        within = np.asarray(members.multiply(similar @ members).sum(axis=0)).ravel()
        stable = _scaled(within / np.maximum(sizes, 1.0) ** 2, sizes > 0)
        refine(equal * stable)
        return similar

    def _distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and largest distance between the objects of every two rows (G, G), and within each row."""
        bounds, points = np.append(self.first, len(self.points)), np.ascontiguousarray(self.points.T)
        mean, farthest = (np.empty((len(self.first), len(self.first))) for _ in range(2))
        so_far = np.cumsum(np.diff(bounds) * bounds[1:])  # number of distances of all rows up to each
        blocks = np.unique(np.searchsorted(so_far, np.arange(0, so_far[-1] + BLOCK, BLOCK), side="right"))
        for start, stop in progress.bar(list(pairwise(blocks.tolist())), "distances"):

            def work(a: int, b: int, start: int = start) -> None:
                _between(start + a, start + b, points, bounds, mean, farthest)

            devices.over_ranges(work, stop - start)
        return mean, farthest


def _scaled(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return stabilities scaled to 0 … 1 over the clusters with objects; ones if all are equal."""
    least, most = values[there].min(), values[there].max()
    return np.ones_like(values) if most - least <= 1e-12 else np.clip((values - least) / (most - least), 0.0, 1.0)


@njit(cache=True, nogil=True)
def _between(start, stop, points, bounds, mean, farthest):
    """Write mean and largest distances of objects, of each row from ``start`` to ``stop`` and all rows up to it.

    ``points`` are (D, n), and the objects of row g begin at ``bounds[g]``.
    """
    sums, largest, squares = np.empty(bounds[stop]), np.empty(bounds[stop]), np.empty(TOGETHER)
    for g in range(start, stop):
        end = bounds[g + 1]
        for begin in range(0, end, TOGETHER):
            n = min(TOGETHER, end - begin)
            sums_here, largest_here = sums[begin : begin + n], largest[begin : begin + n]
            sums_here[:] = 0.0
            largest_here[:] = 0.0
            for x in range(bounds[g], end):
                squares[:n] = 0.0
                for d in range(points.shape[0]):
                    own, others = points[d, x], points[d, begin : begin + n]
                    for y in range(n):
                        squares[y] += (others[y] - own) ** 2
                for y in range(n):
                    distance = np.sqrt(squares[y])
                    sums_here[y] += distance
                    largest_here[y] = max(largest_here[y], distance)
        for h in range(g + 1):
            total = most = 0.0
            for y in range(bounds[h], bounds[h + 1]):
                total += sums[y]
                most = max(most, largest[y])
            pairs = (end - bounds[g]) * (bounds[h + 1] - bounds[h])
            mean[g, h] = mean[h, g] = total / pairs
            farthest[g, h] = farthest[h, g] = most


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
def _near(start, stop, codes, offsets, distances, inverse, weights, similar):
    """Write Σ_m w_c (1 - d / largest distance in c), over common clusters c, to ``similar`` (G, G), lower triangle.

    Only rows from ``start`` to ``stop`` are written.
    """
    missing = codes.dtype.type(-1)
    for g in range(start, stop):
        for h in range(g + 1):
            total = 0.0
            for m in range(codes.shape[1]):
                if codes[g, m] == codes[h, m] and codes[g, m] != missing:
                    c = offsets[m] + codes[g, m]
                    total += weights[c] * (1.0 - distances[g, h] * inverse[c])
            similar[g, h] = similar[h, g] = total
