"""Spearman's rank correlation of sparse columns, in integers.

Correlation depends only on differences of ranks, so the common rank of a column's zeros is subtracted: sparse columns
stay sparse, and Σ (μ - μ̄)(ν - ν̄) = Σ μ ν - Σ μ Σ ν / n runs over the objects in both columns. Twice an average rank
is an integer, and so is everything before the last division: results are the same on every device, in any order.
"""

from typing import Any, TypeAlias

import numpy as np

from gpuens import checks, kernels
from gpuens import device as devices
from gpuens.compiled import njit

Entries: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts, places, values

STEPS = 2**43  # coefficients in [0, 1] are rounded to multiples of 1 / STEPS, so that rounding errors break no ties


def rank_correlation(coefficients: Any, counts: np.ndarray | None = None, *, device: str = "cpu") -> np.ndarray:
    """Return the Spearman correlation of all pairs of columns, average ranks for ties (eq 15).

    Parameters
    ----------
    coefficients : scipy.sparse array, or ndarray (n_objects, n_columns)
        Values in [0, 1], such as `gpuens.similarity.mapping_coefficients`; those less than 1e-13 apart tie.
    counts : ndarray (n_objects,), int64, optional
        The number of objects of each row, 1 by default.
    device : {"cpu", "cuda", "emulated"}

    Returns
    -------
    ndarray (n_columns, n_columns), float64, symmetric, from -1 to 1, in host memory
        1 on the diagonal. A constant column has correlation 0 with all others.

    Raises
    ------
    ValueError
        For coefficients outside [0, 1].
    MemoryError
        Before work starts, for more pairs of columns than the memory budget holds.

    Notes
    -----
    Exact up to a million objects; for more, ranks are rounded to about one part in a million, so that sums fit 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> columns = np.array([[170, 150, 210, 180, 160], [180, 165, 190, 168, 172]]).T / 1000
    >>> ge.similarity.rank_correlation(columns).round(10).tolist()
    [[1.0, 0.7], [0.7, 1.0]]
    """
    from scipy.sparse import csc_array, issparse

    checks.check_choice(device, "device", ("cpu", "cuda", "emulated"))
    if not issparse(coefficients):
        coefficients = checks.host_array(coefficients, "coefficients must be a matrix of numbers")
        if coefficients.ndim != 2 or coefficients.dtype.kind not in "iufb":
            raise ValueError(
                f"coefficients must be a matrix of numbers, but has shape {coefficients.shape} and dtype "
                f"{coefficients.dtype}."
            )
    coefficients = csc_array(coefficients)
    if (outside := ~((coefficients.data >= 0) & (coefficients.data <= 1))).any():
        raise ValueError(
            f"coefficients must be from 0 to 1, but {coefficients.data[outside][0]} was found; scale them first."
        )
    n_objects, n_columns = coefficients.shape
    given = np.ones(n_objects) if counts is None else checks.host_array(counts, "counts must be whole numbers")
    counts = given.astype(np.int64)
    checks.check_one_per_row(counts, n_objects, "counts")
    checks.check_memory(
        48 * n_columns**2 + 40 * coefficients.nnz,
        devices.memory_budget(),
        f"the rank correlation of {n_columns} clusters",
        "take fewer clusterings, or clusterings of fewer clusters",
    )
    columns = _whole(coefficients)
    n = int(counts.sum())
    shift = max(0, (4 * n**3).bit_length() - 61) // 2  # Σ counts μ ν is at most 4 n³, and less than 2⁶² of what is left
    columns.data = np.concatenate(
        devices.over_ranges(lambda a, b: _doubled_ranks(columns, a, b, counts, n) >> shift, n_columns, grain=16)
        or [columns.data]
    )
    rows = columns.tocsr()
    entries = [(sparse.indptr, sparse.indices, sparse.data) for sparse in (columns, rows)]
    products = rank_products(*entries, counts, device=device)
    totals = columns.T @ counts
    return _correlations(products, totals, n)


def _whole(columns: Any) -> Any:
    """Return the columns with coefficients as integer steps, int64, zeros removed."""
    whole = columns.astype(np.float64, copy=True)
    whole.sum_duplicates()
    whole.data = np.rint(whole.data * STEPS).astype(np.int64)
    whole.eliminate_zeros()
    return whole


def _doubled_ranks(columns: Any, start: int, stop: int, counts: np.ndarray, n: int) -> np.ndarray:
    """Return twice the average rank of each non-zero minus that of the zeros, for columns start … stop - 1.

    With z zeros and b others before a value, and t values equal to it, twice its rank is 2 (z + b) + t + 1; that of the
    zeros is z + 1.
    """
    bounds = columns.indptr[start : stop + 1]
    values, objects = (array[bounds[0] : bounds[-1]] for array in (columns.data, columns.indices))
    if not len(values):
        return np.empty(0, dtype=np.int64)
    column = np.repeat(np.arange(stop - start), np.diff(bounds))
    order = np.lexsort((values, column))
    ordered, weight = values[order], counts[objects[order]]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]) | (column[1:] != column[:-1])
    starts = np.flatnonzero(first)
    tied = np.add.reduceat(weight, starts)
    of_column = np.bincount(column, weights=weight, minlength=stop - start).astype(np.int64)
    before = np.cumsum(tied) - tied - (np.cumsum(of_column) - of_column)[column[starts]]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = (n - of_column[column[starts]] + 2 * before + tied)[np.cumsum(first) - 1]
    return ranks


def _correlations(products: np.ndarray, totals: np.ndarray, n: int) -> np.ndarray:
    """Return (n Σ μ ν - Σ μ Σ ν) / (σ_μ σ_ν), with exact numerators: Python's integers have any size."""
    exact = [int(total) for total in totals]
    variances = np.array([n * int(p) - t * t for p, t in zip(products.diagonal(), exact, strict=True)], dtype=float)
    deviations = np.sqrt(variances)
    row_of = np.array(exact, dtype=object)
    found = np.zeros(products.shape)
    for c in np.flatnonzero(deviations).tolist():
        covariances = (n * products[c].astype(object) - exact[c] * row_of).astype(np.float64)
        np.divide(covariances, deviations[c] * deviations, out=found[c], where=deviations > 0)
    np.clip(found, -1.0, 1.0, out=found)
    np.fill_diagonal(found, 1.0)
    return found


@kernels.primitive
def rank_products(columns: Entries, rows: Entries, counts: np.ndarray) -> np.ndarray:
    """Return Σ counts[i] μ_ic μ_id of all pairs of columns, int64 (n_columns, n_columns), host.

    ``columns`` and ``rows`` hold the same integers μ as SciPy does, by columns (CSC) and by rows (CSR).
    """
    n_columns = len(columns[0]) - 1
    products = np.zeros((n_columns, n_columns), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        _products(start, stop, *columns, *rows, counts, products)

    devices.over_ranges(work, n_columns)
    return _mirrored(products)


def _mirrored(upper: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix of an upper triangle."""
    lower = np.tril_indices(len(upper), -1)
    upper[lower] = upper.T[lower]
    return upper


@njit(cache=True, nogil=True)
def _products(start, stop, column_starts, objects, in_column, row_starts, clusters, in_row, counts, products):
    for c in range(start, stop):
        for e in range(column_starts[c], column_starts[c + 1]):
            i = objects[e]
            value = in_column[e] * counts[i]
            at = row_starts[i + 1] - 1
            while at >= row_starts[i] and clusters[at] >= c:  # clusters ascend in a row
                products[c, clusters[at]] += value * in_row[at]
                at -= 1


# --- kernels/rank_correlation.cu --------------------------------------------------------------------------------------


@rank_products.kernel
def _(columns: Entries, rows: Entries, counts: np.ndarray, *, device: str) -> np.ndarray:
    xp, n_columns = devices.namespace(device), len(columns[0]) - 1
    products = xp.zeros((n_columns, n_columns), dtype=np.uint64)
    in_shared = 8 * n_columns <= kernels.SHARED_BYTES
    kernels.launch(
        "rank_products", kernels.blocks(n_columns, 1), 256,
        (*(xp.asarray(part, dtype=np.int64) for part in (*columns, *rows)), xp.asarray(counts), products, n_columns,
         np.int32(in_shared)),
        device=device, shared=8 * n_columns if in_shared else 0,
    )  # fmt: skip
    return _mirrored(devices.to_host(products).view(np.int64))
