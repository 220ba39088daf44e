"""Products with the incidence matrix B of rows and clusters, computed by look-ups; B is never built.

``codes`` (G, M) are an Ensemble's codes on the device (`Ensemble.codes_on`), ``offsets`` (M + 1,) number its clusters.
Missing labels add nothing. Results stay on the device. Sums over a row follow the order of the clusterings on every
device, so that they are bit-identical.
"""

import math
from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu


@kernels.primitive
def row_sums(codes: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return B v (G,) for v = ``values`` (N_c,): the sum over each row's clusters, in the order of the clusterings."""
    sums = np.empty(len(codes))
    cpu.row_sums(_columns(codes), offsets, np.ascontiguousarray(values, dtype=np.float64), sums)
    return sums


@kernels.primitive
def row_lookups(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return B T (G, k) for T = ``table`` (N_c, k): for each label row, the sum of its clusters' rows of the table."""
    sums = np.empty((len(codes), table.shape[1]))
    cpu.row_lookups(_columns(codes), offsets, np.ascontiguousarray(table, dtype=np.float64), sums)
    return sums


@kernels.primitive
def cluster_sums(codes: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return Bᵀ v (N_c,) for v = ``values`` (G,), int64 or float64: the sum over each cluster's rows."""
    sums = np.zeros(int(offsets[-1]), dtype=values.dtype)
    cpu.cluster_sums(_columns(codes), offsets, np.ascontiguousarray(values), sums)
    return sums


@kernels.primitive
def label_histograms(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, labels: np.ndarray, n_labels: int
) -> np.ndarray:
    """Return the weighted histogram (N_c, n_labels), int64, of the ``labels`` (G,) of the rows of each cluster."""
    counts = np.zeros((int(offsets[-1]), n_labels), dtype=np.int64)
    weights, labels = (np.ascontiguousarray(values, dtype=np.int64) for values in (weights, labels))
    cpu.label_histograms(_columns(codes), offsets, weights, labels, counts)
    return counts


def label_weights(weights: Any, labels: Any, n_labels: int, *, device: str) -> Any:
    """Return the total weight of the rows of each label (n_labels,), int64, in the memory of the labels (G,)."""
    alike = devices.namespace(device).zeros((len(labels), 1), dtype=np.uint8)
    return label_histograms(alike, np.array([0, 1]), weights, labels, n_labels, device=device)[0]


def sparse_incidence(rows: Any) -> Any:
    """Return B (G, N_c) as a SciPy CSR array on the host, for callers that hold all pairs of rows anyway."""
    from scipy.sparse import csr_array

    codes = devices.to_host(rows.codes)
    is_labelled = codes != rows.ensemble.missing_code
    clusters = (codes.astype(np.int64) + rows.offsets[:-1])[is_labelled]
    starts = np.concatenate([[0], np.cumsum(is_labelled.sum(axis=1))])
    return csr_array((np.ones(len(clusters)), clusters, starts), shape=(len(codes), rows.n_clusters))


def scaled_rows(matrix: Any, factors: np.ndarray) -> Any:
    """Return a matrix, dense or SciPy's, with its rows multiplied by factors."""
    return _scaled(matrix, factors[:, None])


def scaled_columns(matrix: Any, factors: np.ndarray) -> Any:
    """Return a matrix, dense or SciPy's, with its columns multiplied by factors."""
    return _scaled(matrix, factors[None, :])


def _scaled(matrix: Any, factors: np.ndarray) -> Any:
    return matrix * factors if isinstance(matrix, np.ndarray) else matrix.multiply(factors).tocsr()


def _columns(codes: Any) -> Any:
    """Return codes (G, M) as (M, G), columns contiguous, which they nearly always are."""
    columns = codes.T
    return columns if columns.flags.c_contiguous else columns.copy(order="C")


# --- kernels/products.cu, label_space.cu, fixed_point.cu --------------------------------------------------------------


@row_sums.kernel
def _(codes: Any, offsets: Any, values: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.empty(len(codes))
    kernels.launch(
        "row_sums", kernels.blocks(len(codes), 256), 256,
        (_columns(codes), xp.asarray(offsets), xp.asarray(values, dtype=np.float64), sums, *codes.shape),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return sums


@row_lookups.kernel
def _(codes: Any, offsets: Any, table: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.empty((len(codes), table.shape[1]))
    kernels.launch(
        "row_lookups", kernels.blocks(sums.size, 256), 256,
        (_columns(codes), xp.asarray(offsets), xp.ascontiguousarray(xp.asarray(table)), sums, *codes.shape,
         table.shape[1]),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return sums


@cluster_sums.kernel
def _(codes: Any, offsets: Any, values: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.zeros(int(offsets[-1]), dtype=np.uint64)
    units, unit = fixed_point(xp.asarray(values), len(codes), device=device)
    largest = int(np.diff(devices.to_host(offsets)).max())
    in_shared = 8 * largest <= kernels.SHARED_BYTES
    columns, offsets = _columns(codes), xp.asarray(offsets)
    for run in kernels.runs(codes.shape[1]):
        kernels.launch(
            "cluster_sums", (kernels.blocks(len(codes), 256 * 64), run.stop - run.start), 256,
            (columns[run], offsets[run.start :], units, sums, len(codes), np.int32(in_shared)),
            device=device, shared=8 * largest if in_shared else 0, CODE=kernels.c_name(codes.dtype),
        )  # fmt: skip
    return from_fixed_point(sums, unit)


@label_histograms.kernel
def _(codes: Any, offsets: Any, weights: Any, labels: Any, n_labels: int, *, device: str) -> Any:
    xp = devices.namespace(device)
    counts = xp.zeros((int(offsets[-1]), n_labels), dtype=np.uint64)
    cells = np.diff(devices.to_host(offsets)) * n_labels
    shared = 8 * int(cells.max(initial=0, where=8 * cells <= kernels.SHARED_BYTES))
    columns, offsets, weights = _columns(codes), xp.asarray(offsets), xp.asarray(weights, dtype=np.int64)
    for run in kernels.runs(codes.shape[1]):
        kernels.launch(
            "label_histograms", (kernels.blocks(len(codes), 256 * 64), run.stop - run.start), 256,
            (columns[run], offsets[run.start :], weights, labels, counts, len(codes), n_labels, shared // 8),
            device=device, shared=shared, CODE=kernels.c_name(codes.dtype),
        )  # fmt: skip
    return counts.view(np.int64)


def fixed_point(values: Any, n: int, *, by_column: bool = False, device: str) -> tuple[Any, Any]:
    """Return numbers as int64 multiples of a unit, and the unit: a power of two so large that n numbers can be summed.

    Sums of integers do not depend on the order in which a GPU's blocks add them. Integers are returned unchanged, with
    the unit None. The unit (1,) is on the device, so that the host does not wait for it; with ``by_column``, each
    column of ``values`` (N, C) has a unit of its own, (C,).
    """
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False), None
    xp, n_columns = devices.namespace(device), values.shape[1] if by_column else 1
    values = xp.ascontiguousarray(values if values.dtype == np.float32 else values.astype(np.float64, copy=False))
    units, unit = xp.empty(values.shape, dtype=np.int64), xp.empty(n_columns)
    largest, blocks = xp.zeros(n_columns, dtype=np.uint64), kernels.blocks(values.size, 256 * 8)
    real = kernels.c_name(values.dtype)
    kernels.launch("largest_sizes", (blocks, n_columns), 256, (values, largest, values.size), device=device, REAL=real)
    kernels.launch(
        "fixed_point", max(1, blocks), 256, (values, largest, units, unit, values.size, n_columns, n), device=device,
        REAL=real,
    )  # fmt: skip
    return units, unit


def screen_units(values: Any, n: int) -> tuple[Any, float]:
    """Return numbers in int32 units, rounded down, and the units in 1.0, a power of two; n numbers can be summed.

    By these sums kernels rule out nearly all candidates that float64 would otherwise have to decide.
    """
    largest = float(abs(values).max()) if values.size else 0.0
    scale = 2.0 ** min(30 - math.frexp(largest * n)[1], 1000)  # sums of n of the numbers are below 2^30 units
    return np.floor(values * scale).astype(np.int32), scale


def from_fixed_point(sums: Any, unit: Any) -> Any:
    """Return sums (uint64 from atomics) of `fixed_point` numbers as int64, or as float64 times the unit."""
    signed = sums.view(np.int64)
    return signed if unit is None else signed * unit
