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
from gpuens.runtime.native import cpu
from gpuens.similarity.base import Features, Measure
from gpuens.similarity.mapping import points_of
from gpuens.similarity.pair_matrix import PairMatrix

BLOCK = 2**26  # distances in a step of the progress bar
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
            f"paths between all pairs of {rows.n_rows:,} distinct label rows",
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
        self_similarities, largest = similar.diagonal().copy(), float(similar.max())
        np.subtract(largest, similar, out=similar)
        np.fill_diagonal(similar, 0.0)
        paths: np.ndarray = squareform(cophenet(linkage(squareform(similar, checks=False), "single")))
        np.subtract(largest, paths, out=paths)
        np.fill_diagonal(paths, self_similarities)
        return paths

    def refined(self) -> np.ndarray:
        """Return I'' (G, G), with means over the objects of both rows."""
        rows, codes = self.rows, np.ascontiguousarray(devices.to_host(self.rows.codes).T)
        distances, farthest = self._distances()
        largest = np.empty(rows.n_clusters)
        cpu.farthest_in_clusters(codes, rows.offsets, farthest, largest)
        del farthest
        inverse = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 0.0)
        similar, equal = np.empty_like(distances), np.full(rows.n_clusters, 1.0 / rows.n_clusterings)
        cpu.refine(codes, rows.offsets, distances, inverse, equal, similar)
        members = scaled_rows(sparse_incidence(rows), np.diff(self.first, append=len(self.points)))
        sizes = np.asarray(members.sum(axis=0)).ravel()
        within = np.asarray(members.multiply(similar @ members).sum(axis=0)).ravel()
        stable = _scale_stabilities(within / np.maximum(sizes, 1.0) ** 2, sizes > 0)
        cpu.refine(codes, rows.offsets, distances, inverse, equal * stable, similar)
        return similar

    def _distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and largest distance between the objects of every two rows (G, G), and within each row."""
        bounds, points = np.append(self.first, len(self.points)), np.ascontiguousarray(self.points.T)
        mean, farthest = (np.empty((len(self.first), len(self.first))) for _ in range(2))
        so_far = np.cumsum(np.diff(bounds) * bounds[1:])  # number of distances of all rows up to each
        blocks = np.unique(np.searchsorted(so_far, np.arange(0, so_far[-1] + BLOCK, BLOCK), side="right"))
        for block in progress.bar(list(pairwise(blocks.tolist())), "distances"):
            cpu.row_distances(points, bounds, block, mean, farthest)
        return mean, farthest


def _scale_stabilities(values: np.ndarray, in_use: np.ndarray) -> np.ndarray:
    """Return stabilities scaled to 0 … 1 over the clusters with objects; ones if all are equal."""
    smallest, largest = values[in_use].min(), values[in_use].max()
    return (
        np.ones_like(values)
        if largest - smallest <= 1e-12
        else np.clip((values - smallest) / (largest - smallest), 0.0, 1.0)
    )
