"""Dense representation of rows: each row as a weighted sum of all rows (DREC).

With the rows as the columns of X (N_c, G), their representation Z minimises Σ_j |x_j - X z_j| + λ |Z|². The first term
sums lengths, not squared lengths, so that odd rows count less. Z is found by reweighting: z_j solves
(XᵀX + λ / d_j I) z = Xᵀ x_j with d_j = 1 / (2 |x_j - X z_j|) from the previous iteration, 1 at first. For
X = P diag(s) Qᵀ,

    Z = Q W,   W[i, j] = s_i² / (s_i² + λ / d_j) Q[j, i]

so no system of equations is solved. With U S Vᵀ = Z, the similarity of two rows is the fourth power of the cosine of
their rows of U S^½.

Zhou, Zheng & Pan, "Ensemble clustering based on dense representation", Neurocomputing 357 (2019) 66-76.
"""

from dataclasses import dataclass

import numpy as np

from gpuens.labels.incidence import sparse_incidence
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.products import gram, product
from gpuens.similarity.base import Features, Measure
from gpuens.similarity.pair_matrix import PairMatrix

N_ITER = 5  # number of rounds of reweighting, as in the authors' program
SMALLEST = 1e-4  # smallest singular value of Z that is kept, divided by the largest
NOISE = 1e-10  # smallest singular value of X that is kept, divided by the largest


@dataclass(frozen=True)
class DenseRepresentation(Measure):
    """Similarity of rows by their dense representations: two rows are similar if the same rows represent them.

    All pairs of distinct rows are held in memory; each row counts once, whatever its number of objects.

    Parameters
    ----------
    strength : float > 0
        λ; a larger value spreads the representation of a row over more rows.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2], [0, 1, 0, 1, 0]])
    >>> ge.similarity.DenseRepresentation()(rows).tile(rows, 0, 1).round(2).tolist()
    [[1.0, 0.19, 0.19, 0.0, 0.01]]
    """

    strength: float = 100.0
    kind = "pairs"
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_real(self.strength, "strength", above=0.0, at_most=1e9)

    def refuse_too_many(self, rows: Rows) -> None:
        rank = min(rows.n_rows, rows.n_clusters)
        checks.check_memory(
            8 * rows.n_rows * (rows.n_rows + 5 * rank) + 16 * rows.n_clusters * (rows.n_rows + rank),
            devices.memory_budget(),
            f"the representation of {rows.n_rows:,} distinct label rows",
            "reduce the rows first, reduction=CATree(…) or Sample(…)",
        )

    def __call__(self, rows: Rows, features: Features | None = None) -> "RepresentedRows":
        self.refuse_too_many(rows)
        return RepresentedRows(rows, float(self.strength))


class RepresentedRows(PairMatrix):
    """The similarity of given rows by their dense representation."""

    def __init__(self, rows: Rows, strength: float) -> None:
        super().__init__(rows)
        self.strength = strength

    def compute(self) -> np.ndarray:
        q, s, _ = decomposed(sparse_incidence(self.rows).toarray())
        is_large = s > NOISE * s[0]
        q, squares = q[:, is_large], s[is_large] ** 2
        penalty = np.full(len(q), self.strength)  # λ / d
        for _ in range(N_ITER):
            w = squares[:, None] / (squares[:, None] + penalty) * q.T
            penalty = self.strength * 2 * np.sqrt((squares[:, None] * (q.T - w) ** 2).sum(axis=0))
        u, s, _ = decomposed(w)
        is_large = s > SMALLEST * s[0]
        points = product(q, u[:, is_large]) * np.sqrt(s[is_large])
        points /= np.maximum(np.sqrt((points * points).sum(axis=1, keepdims=True)), 1e-300)
        similar = gram(points)
        similar *= similar
        similar *= similar
        return similar


def decomposed(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the singular value decomposition U, s, Vᵀ of a matrix, U as wide as the matrix's shorter side."""
    return devices.call_interruptibly(lambda: np.linalg.svd(matrix, full_matrices=False))
