"""Memberships M = A S / r of label rows and soft rows, and the sums Aᵀ M: the two products of soft correspondence."""

from typing import Any

import numpy as np

from gpuens.labels.answers import AnswerRows
from gpuens.labels.rows import Rows
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

BLOCK_ROWS = 4096  # rows in a block of sums over soft clusterings


def memberships(table: np.ndarray, rows: Rows) -> np.ndarray:
    """Return the memberships M (G, k) of any rows by eq 6, host.

    ``table`` (N_c, k) holds the correspondences of all clusters in joined order.
    """
    ensemble = SoftEnsemble.of(rows.ensemble)
    return devices.to_host(memberships_of(ensemble, table, slice(0, ensemble.n_objects), rows.device))


def memberships_of(ensemble: SoftEnsemble, table: np.ndarray, piece: slice, device: str) -> Any:
    label_table, soft = np.split(table, [ensemble.offsets[-1]])
    codes, means = some_rows(ensemble.codes_on(device), piece), _mean_rows(label_table, ensemble.offsets)
    sums = label_memberships(codes, ensemble.offsets, label_table, means, device=device)
    if len(soft):
        soft_memberships(ensemble.soft_on(device)[piece], soft, sums, device=device)
    sums /= ensemble.n_clusterings
    return sums


def sums_of_labels(rows: Rows, values: Any) -> Any:
    """Return the sums (N_c, k) of ``values`` (G, k), int64, over the rows of each cluster, on the rows' device."""
    if isinstance(rows, AnswerRows):
        return rows.cluster_sums(values)
    return label_correspondences(rows.codes, rows.offsets, values, device=rows.device)[0]


def some_rows(codes: Any, piece: slice) -> Any:
    """Return the rows ``piece`` of ``codes``, with contiguous columns."""
    return codes if piece == slice(0, len(codes)) else codes[piece].copy(order="F")


def _mean_rows(table: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the mean row of each clustering (M, k), which is used for a missing label."""
    if len(offsets) == 1:
        return np.zeros((0, table.shape[1]))
    sums: np.ndarray = np.add.reduceat(table, offsets[:-1], axis=0)
    return sums / np.diff(offsets)[:, None]


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def label_memberships(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, of_missing: np.ndarray) -> np.ndarray:
    """Return the sums (G, k) of table[cluster of the row in m] over m, or of_missing[m] (M, k) for a missing label."""
    sums = np.empty((len(codes), table.shape[1]))
    columns, table = np.ascontiguousarray(codes.T), np.ascontiguousarray(table)
    cpu.label_memberships(columns, offsets, table, of_missing, sums)
    return sums


@kernels.primitive
def label_correspondences(codes: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of ``values`` (G, k) over the rows of each cluster (N_c, k) and over missing labels (M, k).

    All arrays of numbers are int64.
    """
    of_labels = np.empty((int(offsets[-1]), values.shape[1]), dtype=np.int64)
    of_missing = np.empty((codes.shape[1], values.shape[1]), dtype=np.int64)
    cpu.label_correspondences(np.ascontiguousarray(codes.T), offsets, values, of_labels, of_missing)
    return of_labels, of_missing


@kernels.primitive
def soft_memberships(soft: np.ndarray, table: np.ndarray, sums: np.ndarray) -> None:
    """Add Σ_j soft[g, j] table[j] (N, J) × (J, k) to ``sums`` (N, k), in the order of the clusters."""
    cpu.add_products(soft, np.ascontiguousarray(table), sums)


@kernels.primitive
def soft_correspondences(soft: np.ndarray, values: np.ndarray, block_rows: int) -> np.ndarray:
    """Return the sums (blocks, J, k) of soft[g, j] values[g] over the rows g of each block, added in row order."""
    n_blocks = -(-len(soft) // block_rows)
    sums = np.zeros((n_blocks, soft.shape[1], values.shape[1]))
    cpu.add_products_of_blocks(soft, values, block_rows, sums.reshape(-1, values.shape[1]))
    return sums


# --- kernels/soft_correspondence.cu, kernels/soft_clusterings.cu ------------------------------------------------------


@label_memberships.kernel
def _(codes: Any, offsets: Any, table: Any, of_missing: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.empty((len(codes), table.shape[1]))
    kernels.launch(
        "label_memberships", kernels.blocks(sums.size, 256), 256,
        (codes.T, xp.asarray(offsets), xp.ascontiguousarray(xp.asarray(table)), xp.asarray(of_missing), sums,
         *codes.shape, table.shape[1]),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return sums


@label_correspondences.kernel
def _(codes: Any, offsets: Any, values: Any, *, device: str) -> tuple[Any, Any]:
    xp, width = devices.namespace(device), values.shape[1]
    of_labels = xp.zeros((int(offsets[-1]), width), dtype=np.uint64)
    of_missing = xp.zeros((codes.shape[1], width), dtype=np.uint64)
    cells = (np.diff(devices.to_host(offsets)) + 1) * width
    shared = 8 * int(cells.max(initial=0, where=8 * cells <= kernels.SHARED_BYTES))
    offsets = xp.asarray(offsets)
    n_blocks = max(kernels.blocks(values.size, 256 * 64), kernels.blocks(width, 256))
    for columns in kernels.runs(codes.shape[1]):
        kernels.launch(
            "label_correspondences", (n_blocks if values.size else 0, columns.stop - columns.start), 256,
            (codes.T[columns], offsets[columns.start :], values, of_labels, of_missing[columns], len(codes), width,
             shared // 8),
            device=device, shared=shared, CODE=kernels.c_name(codes.dtype),
        )  # fmt: skip
    return of_labels.view(np.int64), of_missing.view(np.int64)


@soft_memberships.kernel
def _(soft: Any, table: Any, sums: Any, *, device: str) -> None:
    xp = devices.namespace(device)
    kernels.launch(
        "soft_memberships", kernels.blocks(sums.size, 256), 256,
        (soft, xp.ascontiguousarray(xp.asarray(table)), sums, *soft.shape, sums.shape[1]),
        device=device,
    )  # fmt: skip


@soft_correspondences.kernel
def _(soft: Any, values: Any, block_rows: int, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.empty((-(-len(soft) // block_rows), soft.shape[1], values.shape[1]))
    kernels.launch(
        "soft_correspondences", kernels.blocks(sums.size, 256), 256,
        (soft, values, sums, *soft.shape, values.shape[1], block_rows),
        device=device,
    )  # fmt: skip
    return sums
