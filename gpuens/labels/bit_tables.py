"""Codes of label matrices in GPU memory, through a bit table for each clustering; only the tables come to the host.

labels (M, N) ─▶ bits marked, one for each label value ─▶ bits ranked ─▶ codes (M, N): the rank of each label's bit
"""

from typing import Any

import numpy as np

from gpuens.labels.codes import codes_dtype
from gpuens.labels.values import encode_column
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices

TABLE_BITS = 2**16  # largest number of bits in the table of a clustering

# dtype of labels -> the dtype as which kernels read them; labels of other dtypes are encoded column by column
_READ_AS = {
    np.dtype(dtype): np.dtype(read)
    for read, dtypes in {"u1": "?B", "i4": "bhHi", "i8": "lqI", "f8": "fd"}.items()
    for dtype in dtypes
}


def matrix_to_read(columns: Any) -> Any:
    """Return columns as one array (M, N) in GPU memory for the kernels, None if they are elsewhere or do not fit.

    Kernels read contiguous arrays of four dtypes; other arrays are copied, and columns of one dtype are stacked.
    """
    first, in_list = columns[0], isinstance(columns, list)
    if devices.kind_of(first) != "cuda" or (read := _READ_AS.get(first.dtype)) is None:
        return None
    if in_list and any(column.dtype != first.dtype for column in columns):
        return None
    contiguous = not in_list and (columns.flags.c_contiguous or columns.flags.f_contiguous)
    per_label = in_list * first.dtype.itemsize + read.itemsize + 1  # bytes: the stack, the copy for the kernels, a code
    copied = not contiguous or read.itemsize != first.dtype.itemsize
    if copied and len(columns) * len(first) * per_label > devices.memory_budget("cuda"):
        return None
    return devices.namespace("cuda").stack(columns) if in_list else columns


def encode_matrix(labels: Any, names: list[Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the codes (N, M) of an array (M, N) of `matrix_to_read`, and the label values of each clustering."""
    read = labels.view(np.uint8) if labels.dtype == bool else labels.astype(_READ_AS[labels.dtype], copy=False)
    if not (read.flags.c_contiguous or read.flags.f_contiguous):
        read = read.copy()
    n_words = min(TABLE_BITS, labels.shape[1] + 1024) // 32  # fewer bytes than the labels
    tables, ranks = mark_labels(read, n_words, device="cuda")
    on_host = devices.to_host(tables)
    of_values = np.int64 if labels.dtype.kind == "f" else labels.dtype
    categories = [np.flatnonzero(present).astype(of_values) for present in _bits_set(on_host)]
    odd = np.flatnonzero(on_host[:, -1] & 2).tolist()
    encoded = [encode_column(labels[m], names[m]) for m in odd]
    for m, (_, values) in zip(odd, encoded, strict=True):
        categories[m] = devices.to_host(values)
    dtype = codes_dtype(max(map(len, categories)))
    codes = write_codes(read, tables, ranks, dtype, device="cuda")
    for m, (column_codes, _) in zip(odd, encoded, strict=True):
        codes[:, m] = column_codes  # -1 becomes the largest code
    return codes, categories


@kernels.primitive
def mark_labels(labels: np.ndarray, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bit tables (M, n_words + 1), uint32, of the values in labels (M, N), and the values before each word.

    In the last word of a table, bit 0 is set if labels are missing, bit 1 if a label is too large for the table.
    """
    tables = np.zeros((len(labels), n_words + 1), dtype=np.uint32)
    for table, column in zip(tables, labels, strict=True):
        bits = _bits_of(column, 32 * n_words)
        np.bitwise_or.at(table, bits[bits >= 0] // 32, np.uint32(1) << (bits[bits >= 0] % 32).astype(np.uint32))
        table[-1] = np.bitwise_or.reduce(1 << (-1 - bits[bits < 0]), initial=0)
    counts = _bits_set(tables).reshape(len(labels), n_words, 32).sum(axis=2, dtype=np.int32)
    return tables, np.cumsum(counts, axis=1, dtype=np.int32) - counts


@kernels.primitive
def write_codes(labels: np.ndarray, tables: np.ndarray, ranks: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the codes (N, M) of labels (M, N); labels without a bit in their table become missing."""
    codes = np.full(labels.shape, np.iinfo(dtype).max, dtype=dtype)
    for own, column, present in zip(codes, labels, _bits_set(tables), strict=True):
        bits = _bits_of(column, 32 * ranks.shape[1])
        own[bits >= 0] = (np.cumsum(present) - 1)[bits[bits >= 0]]
    return codes.T


def _bits_set(tables: np.ndarray) -> np.ndarray:
    """Return the bits of tables without their last words, each bit as a byte."""
    return np.unpackbits(tables[:, :-1].astype("<u4").view(np.uint8), axis=1, bitorder="little")


def _bits_of(column: np.ndarray, n_bits: int) -> np.ndarray:
    """Return the position of each label's bit, -1 for a missing label, -2 for a label without a bit."""
    inside = (column >= 0) & (column < n_bits)
    bits = np.where(inside, column, 0).astype(np.int64)
    missing = (column == checks.MISSING) | (column != column)
    return np.where(inside & (bits == column), bits, np.where(missing, -1, -2))


@mark_labels.kernel
def _(labels: Any, n_words: int, *, device: str) -> tuple[Any, Any]:
    xp, n_clusterings = devices.namespace(device), len(labels)
    tables = xp.zeros((n_clusterings, n_words + 1), dtype=np.uint32)
    ranks = xp.empty((n_clusterings, n_words), dtype=np.int32)
    kernels.launch(
        "mark_labels", kernels.blocks(labels.size, 256), 256, (*_laid_out(labels), n_words, tables), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE="u8",
    )  # fmt: skip
    kernels.launch(
        "rank_labels", kernels.blocks(n_clusterings, 4), 128, (tables, n_clusterings, n_words, ranks), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE="u8",
    )  # fmt: skip
    return tables, ranks


@write_codes.kernel
def _(labels: Any, tables: Any, ranks: Any, dtype: Any, *, device: str) -> Any:
    codes = devices.namespace(device).empty(labels.shape, dtype=dtype)
    kernels.launch(
        "write_codes", kernels.blocks(labels.size, 256), 256,
        (*_laid_out(labels), ranks.shape[1], tables, ranks, codes), device=device,
        LABEL=kernels.c_name(labels.dtype), CODE=kernels.c_name(dtype),
    )  # fmt: skip
    return codes.T


def _laid_out(labels: Any) -> tuple[Any, ...]:
    """Return the kernels' arguments for labels (M, N): the contiguous array, whether it is (N, M), and N and M."""
    by_rows = not labels.flags.c_contiguous
    return labels.T if by_rows else labels, np.int32(by_rows), labels.shape[1], labels.shape[0]
