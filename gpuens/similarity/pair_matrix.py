"""A matrix of the similarities of all pairs of rows, kept in memory while a partitioner needs it."""

from typing import Any

import numpy as np

from gpuens.labels.incidence import scaled_columns, scaled_rows, sparse_incidence
from gpuens.labels.rows import Rows
from gpuens.similarity.base import Similarity, Sums
from gpuens.similarity.coassociation import Coassociation
from gpuens.similarity.links import symmetric


class PairMatrix(Similarity):
    """A matrix of similarities from 0 to 1 of the rows at fit; rows unknown at fit are compared by co-association.

    A subclass implements `compute`.
    """

    kind = "pairs"
    scale = 1.0

    def __init__(self, rows: Rows) -> None:
        self.results: dict[str, Any] = {}
        self.rows = rows
        self._matrix: np.ndarray | None = None

    def compute(self) -> np.ndarray:
        """Return the similarities (G, G), float64, host."""
        raise NotImplementedError

    @property
    def matrix(self) -> np.ndarray:
        """The similarities (G, G), host; after `free_memory`, they are computed again when needed."""
        if self._matrix is None:
            self._matrix = self.compute()
        return self._matrix

    def free_memory(self) -> None:
        self._matrix = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_matrix": None}

    def upper_bound(self) -> float:
        return 1.0

    def tile(self, rows: Rows, start: int, stop: int, first: int = 0) -> np.ndarray:
        return self.matrix[start:stop, first:].copy()

    def self_similarities(self, rows: Rows) -> np.ndarray:
        return self.matrix.diagonal().copy()

    def between_clusters(self, rows: Rows) -> np.ndarray:
        shares = scaled_columns(sparse_incidence(rows), 1.0 / np.maximum(rows.cluster_sizes(), 1))
        shares = scaled_rows(shares, rows.counts)
        return symmetric(shares.T @ (self.matrix @ shares))

    def sums(self, rows: Rows, labels: np.ndarray) -> Sums:
        return Coassociation()(rows).sums(rows, labels)
