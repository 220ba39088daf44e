"""Spearman's rank correlation of sparse columns, in integers.

Correlation depends only on differences of ranks, so the common rank of a column's zeros is subtracted: sparse columns
stay sparse, and Σ (μ - μ̄)(ν - ν̄) = Σ μ ν - Σ μ Σ ν / n runs over the objects in both columns. Twice an average rank
is an integer, and so are all numbers before the last division. So results are the same on every device and in any
order of summation.
"""

from typing import Any

import numpy as np

from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

STEPS = 2**43  # number of steps between 0 and 1; coefficients are rounded to steps, so that rounding breaks no ties
BLOCK = 1024  # objects or columns in a block
DENSE = 64  # number of dense products that take as much time as one sparse product


def rank_correlation(coefficients: Any, counts: np.ndarray | None = None, *, device: str = "cpu") -> np.ndarray:
    """Return the Spearman correlation of all pairs of columns, with average ranks for ties (eq 15).

    Parameters
    ----------
    coefficients : scipy.sparse array, or ndarray (n_objects, n_columns)
        Values in [0, 1], such as `gpuens.similarity.mapping_coefficients`; those less than 1e-13 apart tie.
    counts : ndarray (n_objects,), int64, optional
        The number of objects of each row, 1 by default.
    device : {"cpu", "cuda"}

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

    checks.check_choice(device, "device", devices.DEVICES[1:])
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
    numbers = np.ones(n_objects) if counts is None else checks.host_array(counts, "counts must be whole numbers")
    counts = numbers.astype(np.int64)
    checks.check_one_per_row(counts, n_objects, "counts")
    checks.check_memory(
        48 * n_columns**2 + 40 * coefficients.nnz,
        devices.memory_budget(),
        f"the rank correlation of {n_columns} clusters",
        "take fewer clusterings, or clusterings of fewer clusters",
    )
    columns = _round_to_steps(coefficients)
    n = int(counts.sum())
    shift = max(0, (4 * n**3).bit_length() - 61) // 2  # Σ counts μ ν ≤ 4 n³; the shift keeps it below 2⁶²
    # with z zeros and b others before a value, and t values equal to it, twice its rank is 2 (z + b) + t + 1; that of
    # the zeros is z + 1
    ranks = np.empty_like(columns.data)
    cpu.doubled_ranks(columns, counts, n, shift, ranks)
    columns.data = ranks
    rows = columns.tocsr()
    entries = [cpu.AnySparse(sparse.indptr, sparse.indices, sparse.data) for sparse in (columns, rows)]
    products = rank_products(*entries, counts, device=device)
    totals = columns.T @ counts
    return _correlate(products, totals, n)


def _round_to_steps(columns: Any) -> Any:
    """Return the columns with coefficients rounded to numbers of steps, int64, without zeros."""
    integers = columns.astype(np.float64, copy=True)
    integers.sum_duplicates()
    integers.data = np.rint(integers.data * STEPS).astype(np.int64)
    integers.eliminate_zeros()
    return integers


def _correlate(products: np.ndarray, totals: np.ndarray, n: int) -> np.ndarray:
    """Return (n Σ μ ν - Σ μ Σ ν) / (σ_μ σ_ν), with exact numerators, from an upper triangle of products."""
    correlations = np.empty(products.shape)
    exact = [int(total) for total in totals]
    variances = [n * int(p) - t * t for p, t in zip(products.diagonal(), exact, strict=True)]
    deviations = np.sqrt(np.array(variances, dtype=float))
    cpu.correlations(products, totals, n, deviations, correlations)
    return correlations


@kernels.primitive
def rank_products(columns: cpu.AnySparse, rows: cpu.AnySparse, counts: np.ndarray) -> np.ndarray:
    """Return Σ counts[i] μ_ic μ_id of all pairs of columns c ≤ d, int64 (n_columns, n_columns), host; 0 below.

    ``columns`` and ``rows`` hold the same integers μ in SciPy's layouts by columns (CSC) and by rows (CSR).
    """
    n_columns, n_objects = len(columns.indptr) - 1, len(rows.indptr) - 1
    in_rows = np.diff(rows.indptr).astype(np.float64)
    largest = int(columns.data.max(initial=0))
    exact = BLOCK * largest**2 * int(counts.max(initial=0)) < 2**53  # whether float64 sums of a block are exact
    if exact and DENSE * (in_rows @ in_rows) > n_objects * n_columns**2:
        return _products_of_blocks(rows, counts, n_columns)
    products = np.zeros((n_columns, n_columns), dtype=np.int64)
    cpu.rank_products(columns, rows, counts, products)
    return products


def _products_of_blocks(rows: cpu.AnySparse, counts: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the sums of `rank_products` by products of dense blocks, exact if all sums are below 2⁵³."""
    from scipy.sparse import csr_array

    shape = len(rows.indptr) - 1, n_columns
    sparse = csr_array((rows.data.astype(np.float64), rows.indices, rows.indptr), shape=shape)
    products = np.zeros((n_columns, n_columns), dtype=np.int64)
    once = bool((counts == 1).all())
    for start in range(0, len(counts), BLOCK):
        block = sparse[start : start + BLOCK].toarray()
        weighted = block if once else block * counts[start : start + BLOCK, None]
        products += (weighted.T @ block).astype(np.int64)
    return np.triu(products)


# --- kernels/rank_correlation.cu --------------------------------------------------------------------------------------


@rank_products.kernel
def _(columns: cpu.AnySparse, rows: cpu.AnySparse, counts: np.ndarray, *, device: str) -> np.ndarray:
    xp, n_columns = devices.namespace(device), len(columns.indptr) - 1
    products = xp.zeros((n_columns, n_columns), dtype=np.uint64)
    in_shared = 8 * n_columns <= kernels.SHARED_BYTES
    kernels.launch(
        "rank_products", kernels.blocks(n_columns, 1), 256,
        (*(xp.asarray(part, dtype=np.int64) for part in (*columns, *rows)), xp.asarray(counts), products, n_columns,
         np.int32(in_shared)),
        device=device, shared=8 * n_columns if in_shared else 0,
    )  # fmt: skip
    return devices.to_host(products).view(np.int64)
