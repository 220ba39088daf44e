"""Random walks on similarities: walks from two similar clusters, or rows, visit the same places.

P is a similarity matrix with rows scaled to sum to 1. The trajectory of i is row i of P, P², …, Pᵗ, side by side. The
inner products of all trajectories are Q_t = Σ_s Pˢ Pˢᵀ = P (I + Q_(t-1)) Pᵀ. For a dense P,
Q_2t = Q_t + Pᵗ Q_t Pᵗᵀ needs only 14 matrix products for 20 steps. No trajectory is stored.

Huang, Wang, Peng, Lai & Kwoh, "Enhanced ensemble clustering via fast propagation of cluster-wise similarities", IEEE
Transactions on Systems, Man, and Cybernetics: Systems 51 (2021), first published in 2018.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens.labels.incidence import scaled_rows
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks
from gpuens.runtime.native import cpu
from gpuens.runtime.products import gram, product
from gpuens.similarity.base import Features, Measure, check_cluster_memory
from gpuens.similarity.blocks import Blocks
from gpuens.similarity.links import cluster_links, symmetric

MOST_STEPS = 1000  # largest number of steps; walks have reached every place long before


class Walked(Blocks):
    """The similarity of clusters within each clustering, and of all clusters for meta-clusters."""

    def __init__(self, cosines: np.ndarray, offsets: np.ndarray) -> None:
        super().__init__([cosines[a:b, a:b] for a, b in pairwise(offsets.tolist())])
        self.whole_matrix = cosines

    def between_clusters(self, rows: Rows) -> np.ndarray:
        return self.whole_matrix


@dataclass(frozen=True)
class Trajectories(Measure):
    """Similarity of clusters by random walks along Jaccard similarities: similar clusters have similar walks (ECPCS).

    Parameters
    ----------
    n_steps : int from 1 to 1000
    missing : {"zero", "mean"}
        The similarity of a missing label to the other labels of its clustering: 0, or the mean similarity of that
        clustering's labels. "mean" is computed by subtracting this mean in clusterings with missing labels, so that
        similarities can be negative. Walks make all clusters rather similar; compared with them, "zero" isolates
        objects with missing labels.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1, 1, 2], ["a", "a", "b", "b", "c", "c"]])
    >>> ge.similarity.Trajectories()(rows).tile(rows, 0, 1).round(2).tolist()
    [[1.0, 1.0, 0.95, 0.85, 0.71, 0.62]]
    """

    n_steps: int = 20
    missing: str = "zero"
    kind = "blocks"
    learns_by_sums = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_integer(self.n_steps, "n_steps", minimum=1, maximum=MOST_STEPS)
        checks.check_choice(self.missing, "missing", ("zero", "mean"))

    @property
    def any_sign(self) -> bool:  # type: ignore[override]
        return self.missing == "mean"

    def refuse_too_many(self, rows: Rows) -> None:
        check_cluster_memory(rows.n_clusters)

    def __call__(self, rows: Rows, features: Features | None = None) -> Walked:
        walked = Walked(cosines_of_walks(cluster_links(rows), self.n_steps), rows.offsets)
        if self.missing == "mean":
            sizes = np.split(rows.cluster_sizes() / rows.n_objects, rows.offsets[1:-1])
            for block, shares in zip(walked.matrices(), sizes, strict=True):
                if 0 < shares.sum() < 1 - 0.5 / rows.n_objects:
                    block -= shares @ block @ shares / shares.sum() ** 2
        return walked


def trajectories(ens: Any, n_steps: int = 20, *, device: str = "auto") -> np.ndarray:
    """Return the similarity of the random walks from every two clusters.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    n_steps : int from 1 to 1000
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    ndarray (n_clusters, n_clusters), float64, symmetric, from 0 to 1 with ones on its diagonal, in host memory
        0 for a cluster that shares objects with no other.

    Raises
    ------
    MemoryError
        For clusters beyond the memory budget, before anything of that size is allocated.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.trajectories([[0, 0, 0, 1], ["b", "a", "a", "b"]]).round(2).tolist()
    [[1.0, 0.91, 0.0, 0.0], [0.91, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.92], [0.0, 0.0, 0.92, 1.0]]
    """
    return Trajectories(n_steps)(as_rows(ens, device)).whole_matrix


def cosines_of_walks(similarity: Any, n_steps: int) -> np.ndarray:
    """Return the cosines (n, n) of all trajectories on similarities ≥ 0 (n, n), an ndarray or a SciPy array.

    The diagonal is 1. A cluster or row that is similar to no other has cosine 0 with all others.
    """
    total = np.asarray(similarity.sum(axis=1)).ravel()
    step = scaled_rows(similarity, 1.0 / np.where(total > 0, total, 1.0))
    del similarity  # frees the memory if the caller holds no reference
    products = symmetric((_products_by_doubling if isinstance(step, np.ndarray) else _products_by_steps)(step, n_steps))
    diagonal = np.arange(len(products))
    length = np.sqrt(products[diagonal, diagonal])
    length[length == 0] = 1.0
    products /= length[:, None]
    products /= length
    np.minimum(products, 1.0, out=products)
    products[diagonal, diagonal] = 1.0
    return products


def _products_by_steps(step: Any, n_steps: int) -> np.ndarray:
    """Return Q_t for a sparse P (SciPy CSR array), step by step, because the powers of P would be dense."""
    products, spare = np.empty(step.shape), np.empty(step.shape)
    cpu.walk_products(step, n_steps, products, spare)
    return products


def _products_by_doubling(step: np.ndarray, n_steps: int) -> np.ndarray:
    """Return Q_t for a dense P (ndarray), by doubling along the binary digits of t."""
    products = gram(step)
    power, diagonal = step, np.arange(len(step))
    digits = f"{n_steps:b}"[1:]
    for i, digit in enumerate(digits):
        products += product(power, product(power, products).T)
        if digit == "1":
            products[diagonal, diagonal] += 1.0
            products = product(step, product(step, products).T)
        if i < len(digits) - 1:
            power = product(power, power)
            if digit == "1":
                power = product(step, power)
    return products
