"""Spectral clustering of B S Bᵀ (Ng, Jordan & Weiss, NIPS 2001) without an N × N matrix.

With A = B S Bᵀ over the objects, D its row sums and X = D^-½ B, the leading eigenvectors u of D^-½ A D^-½ = X S Xᵀ
follow from an eigenproblem of clusters: with K = Xᵀ X (N_c, N_c) and eigenvectors z of K^½ S K^½, u = X S K^½ z / λ. A
row is weighted by its number of objects. Embedded rows are scaled to length 1 and clustered by k-means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpuens.contingency.clusters import dense_intersections
from gpuens.labels.incidence import row_sums
from gpuens.labels.rows import Rows
from gpuens.partition.base import ANY, CLUSTERS, Partition, Partitioner
from gpuens.partition.embeddings import (
    eigenvectors,
    kmeans,
    leading_eigenvectors,
    unit_length,
    unit_points,
    where_eigenvectors_are,
)
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.products import product

TINY = 1e-10  # an eigenvalue smaller than this share of the largest eigenvalue is a rounding error


@dataclass(frozen=True, eq=False)
class Spectral(Partitioner):
    """Spectral clustering by the normalised Laplacian of B S Bᵀ, for S without negative entries.

    It takes O(N_c²) memory and O(N_c³) time.

    Parameters
    ----------
    n_init : int
        Starts of the final k-means.
    random_state : int, None or numpy.random.Generator
        For the final k-means; the same seed gives the same labels.

    References
    ----------
    Ng, Jordan & Weiss, "On spectral clustering: analysis and an algorithm", NIPS 2001.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.Consensus(2, similarity="coupled", partitioner=ge.partition.Spectral()).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    n_init: int = 10
    random_state: Any = 0
    takes: ClassVar[tuple[str, ...]] = CLUSTERS
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_runs(self.n_init)
        checks.make_generator(self.random_state)

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        checks.check_memory(
            56 * rows.n_clusters**2 + 24 * rows.n_rows * n_clusters,
            devices.memory_budget(rows.device),
            f"spectral clustering of {rows.n_rows:,} rows in {rows.n_clusters:,} clusters",
            "take the transfer cut, clusterings of fewer clusters, or fewer rows",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        points, values = embedding(similarity, rows, n_clusters)
        rng = checks.make_generator(self.random_state)
        return kmeans(points, rows.counts, n_clusters, self.n_init, rng, rows.device, eigenvalues=values)


@dataclass(frozen=True, eq=False)
class NormalizedCut(Spectral):
    """Spectral clustering of the matrix of all pairs of rows, for similarities without a matrix S of clusters.

    Other parameters are those of `Spectral`.

    Parameters
    ----------
    even : bool
        Count each row once, whatever its number of objects.
    """

    even: bool = False
    takes = ANY
    bytes_each_pair = 32

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        instead = "reduce the rows first, reduction=CATree(…) or Sample(…)"
        check_eigenvector_memory(len(rows), n_clusters, "distinct label rows", instead)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        matrix, counts = similarity.tile(rows, 0, len(rows)), np.ones(len(rows), dtype=np.int64)
        if not self.even:  # after scaling to length 1, a row's point is the point of each of its objects
            counts = rows.counts
            matrix *= counts[:, None]
            matrix *= counts
        rng = checks.make_generator(self.random_state)
        return kmeans(_points(matrix, n_clusters), counts, n_clusters, self.n_init, rng, "cpu")


def embedding(similarity: Any, rows: Rows, n_dimensions: int) -> tuple[Any, np.ndarray]:
    """Return points (G, d) of length 1, float64, on the device, and d ≤ n_dimensions eigenvalues in descending order.

    An object with similarity 0 to all objects, including itself, is at the origin.
    """
    sizes = rows.cluster_sizes().astype(np.float64)
    towards_all = similarity.times(sizes[:, None])[:, 0]
    degrees = row_sums(rows.codes, rows.offsets, towards_all, device=rows.device)
    has_degree = degrees > 0
    scale = 1.0 / np.sqrt(np.where(has_degree, degrees, 1.0))
    share = np.where(has_degree, rows.xp.asarray(rows.counts) * scale * scale, np.finfo(np.float64).tiny)
    gram = where_eigenvectors_are(dense_intersections(rows, share))
    values, vectors = eigenvectors(gram)
    root = product(vectors * np.sqrt(np.maximum(values, 0.0)), vectors.T)  # K^½
    spread = similarity.times(root)
    small = product(root, spread)
    values, vectors = leading_eigenvectors((small + small.T) / 2, min(n_dimensions, len(small)))
    is_large = np.abs(values) > TINY
    table = spread @ devices.move(vectors[:, is_large] / values[is_large], devices.kind_of(gram))
    return unit_points(rows, table)[0], values[is_large]


def normalized_cut(
    similarities: np.ndarray | Callable[[int, int], np.ndarray],
    weights: np.ndarray,
    n_parts: int,
    *,
    n_init: int = 10,
    random_state: int | np.random.Generator | None = 0,
) -> np.ndarray:
    """Return the part of each vertex (n,) by the leading eigenvectors of D^-½ S D^-½, scaled to length 1, and k-means.

    The arguments are those of `gpuens.partition.metis`; the weights of vertices are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuens.partition.spectral import normalized_cut
    >>> similar = np.array([[1, 0.1, 0.8, 0.2], [0.1, 1, 0.2, 0.7], [0.8, 0.2, 1, 0.1], [0.2, 0.7, 0.1, 1]])
    >>> normalized_cut(similar, np.ones(4), 2).tolist()
    [0, 1, 0, 1]
    """
    matrix = similarities(0, len(weights)) if callable(similarities) else similarities
    check_eigenvector_memory(len(matrix), n_parts)
    rng, ones = checks.make_generator(random_state), np.ones(len(matrix), dtype=np.int64)
    return kmeans(_points(matrix.copy(), n_parts), ones, n_parts, n_init, rng, "cpu").labels


def _points(matrix: np.ndarray, n_dimensions: int) -> np.ndarray:
    """Return the leading eigenvectors of D^-½ S D^-½ as points (n, d) of length 1; the matrix S is overwritten."""
    degrees = matrix.sum(axis=1)
    scale = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    matrix *= scale[:, None]
    matrix *= scale
    _, vectors = leading_eigenvectors(matrix, min(n_dimensions, len(matrix)))
    return unit_length(vectors)[0]


def check_eigenvector_memory(
    n_vertices: int,
    n_parts: int,
    vertices: str = "clusters",
    instead: str = "take fewer clusterings, or clusterings of fewer clusters",
) -> None:
    """Raise MemoryError if the leading eigenvectors of a matrix of so many vertices do not fit in memory."""
    checks.check_memory(
        32 * n_vertices**2 + 8 * n_vertices * n_parts,
        devices.memory_budget(),
        f"the eigenvectors of {n_vertices:,} {vertices}",
        instead,
    )
