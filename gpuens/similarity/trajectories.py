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
from gpuens.runtime import device as devices
from gpuens.runtime.compiled import njit
from gpuens.similarity.base import Features, Measure, all_clusters_fit
from gpuens.similarity.blocks import Blocks
from gpuens.similarity.links import cluster_links, symmetric

MOST_STEPS = 1000  # largest number of steps; walks have reached every place long before
ROWS_AT_ONCE = 8  # rows of P Q in a block, one cache line for each column
COLUMNS_AT_ONCE = 512  # columns of P Q in a block


class Walked(Blocks):
    """The similarity of clusters within each clustering, and of all clusters for meta-clusters."""

    def __init__(self, whole: np.ndarray, offsets: np.ndarray) -> None:
        super().__init__([whole[a:b, a:b] for a, b in pairwise(offsets.tolist())])
        self.whole_matrix = whole

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

    def __post_init__(self) -> None:
        checks.check_integer(self.n_steps, "n_steps", minimum=1, maximum=MOST_STEPS)
        checks.check_choice(self.missing, "missing", ("zero", "mean"))

    @property
    def any_sign(self) -> bool:  # type: ignore[override]
        return self.missing == "mean"

    def refuse_too_many(self, rows: Rows) -> None:
        all_clusters_fit(rows.n_clusters)

    def __call__(self, rows: Rows, features: Features | None = None) -> Walked:
        found = Walked(cosines_of_walks(cluster_links(rows), self.n_steps), rows.offsets)
        if self.missing == "mean":
            sizes = np.split(rows.cluster_sizes() / rows.n_objects, rows.offsets[1:-1])
            for block, shares in zip(found.matrices(), sizes, strict=True):
                if 0 < shares.sum() < 1 - 0.5 / rows.n_objects:
                    block -= shares @ block @ shares / shares.sum() ** 2
        return found


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
    each = np.arange(len(products))
    length = np.sqrt(products[each, each])
    length[length == 0] = 1.0
    products /= length[:, None]
    products /= length
    np.minimum(products, 1.0, out=products)
    products[each, each] = 1.0
    return products


def _products_by_steps(step: Any, n_steps: int) -> np.ndarray:
    """Return Q_t for a sparse P (SciPy CSR array), step by step, because the powers of P would be dense."""
    n = step.shape[0]
    products, then = np.zeros((n, n)), np.empty((n, n))
    each = np.arange(n)
    for _ in range(n_steps):
        products[each, each] += 1.0

        def work(start: int, stop: int, given: np.ndarray = products, found: np.ndarray = then) -> None:
            _walk(start, stop, step.indptr, step.indices, step.data, given, found)

        devices.over_ranges(work, -(-n // ROWS_AT_ONCE), grain=devices.worth_a_thread(ROWS_AT_ONCE * step.nnz))
        products, then = then, products
    return products


@njit(cache=True, nogil=True)
def _walk(start, stop, indptr, indices, data, products, found):
    """Write columns of P (P Q)ᵀ, `ROWS_AT_ONCE` of them for each block from ``start`` to ``stop``.

    Only `ROWS_AT_ONCE` rows of P Q are held at a time, column by column; P Q is never stored as a whole.
    """
    n = len(products)
    of_row, turned = np.empty(COLUMNS_AT_ONCE), np.zeros((n, ROWS_AT_ONCE))
    sums = np.empty(ROWS_AT_ONCE)
    for block in range(start, stop):
        first = block * ROWS_AT_ONCE
        some = min(ROWS_AT_ONCE, n - first)
        for low in range(0, n, COLUMNS_AT_ONCE):
            wide = min(COLUMNS_AT_ONCE, n - low)
            for i in range(some):
                of_row[:] = 0.0
                begin, end = indptr[first + i], indptr[first + i + 1]
                fours = begin + (end - begin) // 4 * 4
                for e in range(begin, fours, 4):  # four links at a time, to read and write a sum only once for them
                    s, t, u, v = data[e], data[e + 1], data[e + 2], data[e + 3]
                    a, b = products[indices[e], low : low + wide], products[indices[e + 1], low : low + wide]
                    c, d = products[indices[e + 2], low : low + wide], products[indices[e + 3], low : low + wide]
                    for j in range(wide):
                        of_row[j] = (((of_row[j] + s * a[j]) + t * b[j]) + u * c[j]) + v * d[j]
                for e in range(fours, end):
                    s, a = data[e], products[indices[e], low : low + wide]
                    for j in range(wide):
                        of_row[j] += s * a[j]
                for j in range(wide):
                    turned[low + j, i] = of_row[j]
        for j in range(n):
            a = b = c = d = p = q = r = s = 0.0  # eight sums in registers
            for e in range(indptr[j], indptr[j + 1]):
                w, of = data[e], turned[indices[e]]
                a, b, c, d = a + w * of[0], b + w * of[1], c + w * of[2], d + w * of[3]
                p, q, r, s = p + w * of[4], q + w * of[5], r + w * of[6], s + w * of[7]
            sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7] = a, b, c, d, p, q, r, s
            for i in range(some):
                found[j, first + i] = sums[i]


def _products_by_doubling(step: np.ndarray, n_steps: int) -> np.ndarray:
    """Return Q_t for a dense P (ndarray), by doubling along the binary digits of t."""
    products: np.ndarray = step @ step.T
    power, each = step, np.arange(len(step))
    digits = f"{n_steps:b}"[1:]
    for i, digit in enumerate(digits):
        products += power @ (power @ products).T
        if digit == "1":
            products[each, each] += 1.0
            products = step @ (step @ products).T
        if i < len(digits) - 1:
            power = power @ power if digit == "0" else step @ (power @ power)
    return products
