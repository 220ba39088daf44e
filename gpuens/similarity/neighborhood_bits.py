"""Neighbourhoods as bits: a bit tells whether a column is a neighbour of a row; popcount gives overlaps and counts."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu
from gpuens.similarity.blocks import OnDevice

WORD = 64  # bits in a word
COMPARED = 128  # words compared in the time in which the neighbours of one word are counted by label


# --- bits -------------------------------------------------------------------------------------------------------------


@kernels.primitive
def neighborhood_bits(
    row_codes: np.ndarray, col_codes: np.ndarray, offsets: np.ndarray, blocks: OnDevice, theta: float
) -> np.ndarray:
    """Return [IaOSO ≥ θ] of all pairs of label rows as bits (R, ⌈C / 64⌉), uint64: bit j % 64 of word j // 64."""
    rows, cols = np.ascontiguousarray(row_codes), np.ascontiguousarray(col_codes.T)
    hardly, surely = _screening_bounds(theta, rows.shape[1], blocks.scale, 0, 2**32 - 1)
    bits = np.empty((len(rows), -(-cols.shape[1] // WORD)), dtype=np.uint64)
    threshold = cpu.Threshold(int(hardly), int(surely), float(blocks.scale), float(theta))
    cpu.neighborhood_bits(rows, cols, offsets, cpu.ClusterBlocks(blocks.starts, blocks.values), threshold, bits)
    return bits


@neighborhood_bits.kernel
def _(row_codes: Any, col_codes: Any, offsets: Any, blocks: OnDevice, theta: float, *, device: str) -> Any:
    xp, (n_rows, n_clusterings), n_cols = devices.namespace(device), row_codes.shape, len(col_codes)
    hardly, surely = _screening_bounds(theta, n_clusterings, blocks.scale, 1 - 2**31, 2**31 - 1)
    bits = xp.empty((n_rows, -(-n_cols // WORD)), dtype=np.uint64)
    kernels.launch(
        "neighborhood_bits", kernels.blocks(64 * bits.size, 256), 256,
        (xp.ascontiguousarray(row_codes), xp.ascontiguousarray(col_codes.T), xp.asarray(offsets), blocks.starts,
         blocks.units, blocks.values, np.int32(hardly), np.int32(surely), np.float64(theta), bits.view(np.uint32),
         n_rows, n_cols, n_clusterings),
        device=device, CODE=kernels.c_name(row_codes.dtype),
    )  # fmt: skip
    return bits


def _screening_bounds(theta: float, n_clusterings: int, scale: float, lowest: int, highest: int) -> np.ndarray:
    """Return two bounds on sums of units, which decide whether a similarity reaches ``theta``.

    Below the first bound, no similarity reaches ``theta``; from the second bound on, every similarity reaches it.
    """
    met = theta * n_clusterings * scale
    # rounding M values down loses less than M units; 4 more units allow for the rounding of float64 sums and quotients
    return np.clip([np.floor(met) - n_clusterings - 4, np.ceil(met) + 4], lowest, highest)


def bit_planes(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return words, masks and runs for weighted popcounts, where bit j counts counts[j] times.

    Plane p is ``bits[:, words[p]] & masks[p]``; its bits count 2ᵇ times if p is in run b, planes runs[b] … runs[b + 1]
    - 1. Words without such bits are omitted.
    """
    padded = np.zeros(-(-len(counts) // WORD) * WORD, dtype=np.int64)
    padded[: len(counts)] = counts
    words, masks, runs = [], [], [0]
    for b in range(int(counts.max()).bit_length()):
        mask = np.packbits((padded >> b & 1).astype(np.uint8), bitorder="little").view("<u8").astype(np.uint64)
        nonzero = np.flatnonzero(mask)
        words.append(nonzero)
        masks.append(mask[nonzero])
        runs.append(runs[-1] + len(nonzero))
    return np.concatenate(words), np.concatenate(masks), np.array(runs)


# --- overlaps ---------------------------------------------------------------------------------------------------------


@kernels.primitive
def overlaps(rows: np.ndarray, cols: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Return Σ_b 2ᵇ Σ_{p of run b} popcount(rows[i, p] & cols[j, p]) for all pairs of planes, int64 (R, C)."""
    overlap = np.empty((len(rows), len(cols)), dtype=np.int64)
    cpu.overlaps(np.ascontiguousarray(rows), np.ascontiguousarray(cols), runs, overlap)
    return overlap


@overlaps.kernel
def _(rows: Any, cols: Any, runs: np.ndarray, *, device: str) -> Any:
    xp = devices.namespace(device)
    overlap = xp.empty((len(rows), len(cols)), dtype=np.int64)
    kernels.launch(
        "overlaps", (kernels.blocks(len(cols), 16), kernels.blocks(len(rows), 16)), (16, 16),
        (xp.ascontiguousarray(rows), xp.ascontiguousarray(cols), xp.asarray(runs), overlap, len(rows), len(cols),
         rows.shape[1], len(runs) - 1),
        device=device,
    )  # fmt: skip
    return overlap


@kernels.primitive
def leave_out_themselves(
    common: np.ndarray, bits: np.ndarray, rows: np.ndarray, cols: np.ndarray, place: np.ndarray,
    has_near_twin: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Subtract, in place, the two objects of a pair from the number of their common neighbours, for rows × cols.

    ``common`` is int64 (R, C), and ``bits`` are the neighbourhoods of ``rows``. For each of all rows, ``place`` is the
    position of its bit, and ``has_near_twin`` tells whether two of its objects are neighbours.
    """
    bits, rows, cols = (np.ascontiguousarray(array) for array in (bits, rows, cols))
    cpu.leave_out_themselves(common, bits, rows, cols, place, has_near_twin, counts)


@leave_out_themselves.kernel
def _(
    common: Any, bits: Any, rows: np.ndarray, cols: np.ndarray, place: np.ndarray, has_near_twin: np.ndarray,
    counts: np.ndarray, *, device: str,
) -> None:  # fmt: skip
    xp = devices.namespace(device)
    word, bit = (xp.asarray(part) for part in np.divmod(place[cols], WORD))
    is_near = ((bits[:, word] >> bit.astype(np.uint64)) & np.uint64(1)).astype(bool)
    common -= is_near & xp.asarray(has_near_twin[rows])[:, None]
    common -= is_near & xp.asarray(has_near_twin[cols])
    # if both objects are the same one, it was subtracted twice above, but must be subtracted once
    single = xp.asarray((has_near_twin & (counts == 1))[rows])
    common += (xp.asarray(rows)[:, None] == xp.asarray(cols)) & single[:, None]


# --- counting neighbours ----------------------------------------------------------------------------------------------


@kernels.primitive
def neighbor_counts(bits: np.ndarray, codes: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return Σ counts[q] over the set bits q of each row that are in cluster c, for all clusters, (R, N_c) int64."""
    n_clusters = int(offsets[-1])
    if bits.size:
        words, masks, runs = bit_planes(counts)
        if n_clusters * len(words) <= COMPARED * codes.shape[1] * bits.shape[1]:
            members = np.zeros((n_clusters, bits.shape[1]), dtype=np.uint64)
            cpu.mark_members(np.ascontiguousarray(codes.T), offsets, members)
            return overlaps(bits[:, words] & masks, members[:, words] & masks, runs)
    counts_of_clusters = np.zeros((len(bits), n_clusters), dtype=np.int64)
    cpu.neighbor_counts(np.ascontiguousarray(bits), np.ascontiguousarray(codes), offsets, counts, counts_of_clusters)
    return counts_of_clusters


@neighbor_counts.kernel
def _(bits: Any, codes: Any, offsets: np.ndarray, counts: Any, *, device: str) -> Any:
    xp, n_clusters = devices.namespace(device), int(offsets[-1])
    counts_of_clusters = xp.zeros((len(bits), n_clusters), dtype=np.uint64)
    in_shared = 8 * n_clusters <= kernels.SHARED_BYTES
    kernels.launch(
        "neighbor_counts", kernels.blocks(len(bits), 1), 256,
        (xp.ascontiguousarray(bits), xp.ascontiguousarray(codes.T), xp.asarray(offsets), xp.asarray(counts),
         counts_of_clusters, len(bits), bits.shape[1], *codes.shape, np.int32(in_shared)),
        device=device, shared=8 * n_clusters if in_shared else 0, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return counts_of_clusters.view(np.int64)


@kernels.primitive
def neighbor_sums(bits: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sum of values[q] (Q, K) int64 over the set bits q of each row, (R, K) int64."""
    sums = np.empty((len(bits), values.shape[1]), dtype=np.int64)
    cpu.neighbor_sums(np.ascontiguousarray(bits), np.ascontiguousarray(values), sums)
    return sums


@neighbor_sums.kernel
def _(bits: Any, values: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    sums = xp.zeros((len(bits), values.shape[1]), dtype=np.uint64)
    kernels.launch(
        "neighbor_sums", kernels.blocks(len(bits), 1), 128,
        (xp.ascontiguousarray(bits), xp.ascontiguousarray(xp.asarray(values)), sums, len(bits), bits.shape[1],
         *values.shape),
        device=device,
    )  # fmt: skip
    return sums.view(np.int64)
