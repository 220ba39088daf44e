"""Neighbourhoods as bits: a bit tells whether a column is a neighbour of a row; popcount gives overlaps and counts."""

from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import LANES, aligned_zeros, at_least, lowest, nothing, plus, popcount, store
from gpuens.similarity.blocks import OnDevice

WORD = 64  # bits in a word
COMPARED = 128  # number of words that are compared in the time that counting the neighbours of one word by label takes


# --- bits -------------------------------------------------------------------------------------------------------------


@kernels.primitive
def neighborhood_bits(
    row_codes: np.ndarray, col_codes: np.ndarray, offsets: np.ndarray, blocks: OnDevice, theta: float
) -> np.ndarray:
    """Return [IaOSO ≥ θ] of all pairs of label rows as bits (R, ⌈C / 64⌉), uint64: bit j % 64 of word j // 64."""
    row_codes, col_codes = np.ascontiguousarray(row_codes), np.asfortranarray(col_codes)
    clusters, places = _clusters_in(row_codes, offsets)
    hardly, surely = _screen(theta, row_codes.shape[1], blocks.scale, 0, 2**32 - 1)
    bits = np.empty((len(row_codes), -(-len(col_codes) // WORD)), dtype=np.uint64)

    def work(start: int, stop: int) -> None:
        _neighborhood_bits(
            start, stop, row_codes, col_codes, offsets, clusters, places, blocks.starts, blocks.values, blocks.scale,
            np.uint32(hardly), np.uint32(surely), theta, aligned_zeros(len(clusters) + 1, LANES, np.uint32),
            aligned_zeros(1, LANES, np.uint32), bits,
        )  # fmt: skip

    devices.over_ranges(work, bits.shape[1])
    return bits


@neighborhood_bits.kernel
def _(row_codes: Any, col_codes: Any, offsets: Any, blocks: OnDevice, theta: float, *, device: str) -> Any:
    xp, (n_rows, n_clusterings), n_cols = devices.namespace(device), row_codes.shape, len(col_codes)
    hardly, surely = _screen(theta, n_clusterings, blocks.scale, 1 - 2**31, 2**31 - 1)
    bits = xp.empty((n_rows, -(-n_cols // WORD)), dtype=np.uint64)
    kernels.launch(
        "neighborhood_bits", kernels.blocks(64 * bits.size, 256), 256,
        (xp.ascontiguousarray(row_codes), xp.ascontiguousarray(col_codes.T), xp.asarray(offsets), blocks.starts,
         blocks.units, blocks.values, np.int32(hardly), np.int32(surely), np.float64(theta), bits.view(np.uint32),
         n_rows, n_cols, n_clusterings),
        device=device, CODE=kernels.c_name(row_codes.dtype),
    )  # fmt: skip
    return bits


def _screen(theta: float, n_clusterings: int, scale: float, least: int, most: int) -> np.ndarray:
    """Return two bounds on sums of units, which decide whether a similarity reaches ``theta``.

    Below the first bound, no similarity reaches ``theta``; from the second bound on, every similarity reaches it.
    """
    met = theta * n_clusterings * scale
    # rounding M values down loses less than M units; 4 more units allow for the rounding of float64 sums and quotients
    bounds: np.ndarray = np.clip([np.floor(met) - n_clusterings - 4, np.ceil(met) + 4], least, most)
    return bounds


def _clusters_in(codes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters of all given rows, and each label's position among these, counted from 1; 0 if missing."""
    place = np.zeros(int(offsets[-1]) + 1, dtype=np.uint32)
    numbers = np.where(codes == np.iinfo(codes.dtype).max, offsets[-1], codes + offsets[:-1])
    place[numbers] = 1
    place[-1] = 0
    clusters = np.flatnonzero(place)
    place[clusters] = np.arange(1, len(clusters) + 1)
    return clusters, place[numbers]


@njit(cache=True, nogil=True)
def _neighborhood_bits(
    start, stop, row_codes, col_codes, offsets, clusters, places, starts, values, scale, hardly, surely, theta, table,
    sums, bits,
):  # fmt: skip
    """Write the bits of words start … stop - 1 of all rows.

    A table holds the units of each cluster for each of the 64 columns of a word (the lanes), so the units of a row are
    added up for 64 columns at a time. The few similarities that these sums do not decide are computed one by one.
    """
    n_clusterings = row_codes.shape[1]
    missing = row_codes.dtype.type(-1)
    for w in range(start, stop):
        first = w * WORD
        width = min(WORD, len(col_codes) - first)
        m = 0
        for t in range(len(clusters)):
            while clusters[t] >= offsets[m + 1]:
                m += 1
            k = offsets[m + 1] - offsets[m]
            at = starts[m] + (clusters[t] - offsets[m]) * k
            row = values[at : at + k]
            for j in range(width):
                label = col_codes[first + j, m]
                table[t + 1, j] = np.uint32(row[label] * scale) if label != missing else np.uint32(0)
        there = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(WORD - width)
        for i in range(len(row_codes)):
            total = nothing(table)
            for m in range(n_clusterings):
                total = plus(total, table, places[i, m])
            store(total, sums, 0)
            unsure = at_least(sums, 0, hardly) & there
            near = np.uint64(0)
            if unsure:
                near = at_least(sums, 0, surely) & there
                unsure &= ~near
            while unsure:
                j = lowest(unsure)
                unsure &= unsure - np.uint64(1)
                if _similarity(row_codes[i], col_codes[first + j], offsets, starts, values) >= theta:
                    near |= np.uint64(1) << np.uint64(j)
            bits[i, w] = near


@njit(cache=True, nogil=True, makes_arrays=False)
def _similarity(one, other, offsets, starts, values):
    """Return the similarity of two label rows, summed in the order of `coupled_tile`."""
    missing = one.dtype.type(-1)
    total = 0.0
    for m in range(len(one)):
        if one[m] != missing and other[m] != missing:
            total += values[starts[m] + one[m] * (offsets[m + 1] - offsets[m]) + other[m]]
    return total / len(one)


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
        used = np.flatnonzero(mask)
        words.append(used)
        masks.append(mask[used])
        runs.append(runs[-1] + len(used))
    return np.concatenate(words), np.concatenate(masks), np.array(runs)


# --- overlaps ---------------------------------------------------------------------------------------------------------


@kernels.primitive
def overlaps(rows: np.ndarray, cols: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Return Σ_b 2ᵇ Σ_{p of run b} popcount(rows[i, p] & cols[j, p]) for all pairs of planes, int64 (R, C)."""
    found = np.empty((len(rows), len(cols)), dtype=np.int64)
    rows, cols = np.ascontiguousarray(rows), np.ascontiguousarray(cols)

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, 64):  # 64 rows stay in a core's cache
            some = slice(first, min(first + 64, stop))
            _overlaps(rows[some], cols, runs, found[some])

    devices.over_ranges(work, len(rows), grain=32)
    return found


@overlaps.kernel
def _(rows: Any, cols: Any, runs: np.ndarray, *, device: str) -> Any:
    xp = devices.namespace(device)
    found = xp.empty((len(rows), len(cols)), dtype=np.int64)
    kernels.launch(
        "overlaps", (kernels.blocks(len(cols), 16), kernels.blocks(len(rows), 16)), (16, 16),
        (xp.ascontiguousarray(rows), xp.ascontiguousarray(cols), xp.asarray(runs), found, len(rows), len(cols),
         rows.shape[1], len(runs) - 1),
        device=device,
    )  # fmt: skip
    return found


@njit(cache=True, nogil=True, makes_arrays=False)
def _overlaps(rows, cols, runs, found):
    n_rows, n_cols = rows.shape[0] // 2 * 2, cols.shape[0] // 4 * 4
    found[:] = 0
    for run in range(len(runs) - 1):
        first, last = runs[run], runs[run + 1]
        for j in range(0, n_cols, 4):
            c, d, e, f = cols[j, first:last], cols[j + 1, first:last], cols[j + 2, first:last], cols[j + 3, first:last]
            for i in range(0, n_rows, 2):
                ac, ad, ae, af, bc, bd, be, bf = _in_common(rows[i, first:last], rows[i + 1, first:last], c, d, e, f)
                found[i, j] += ac << run
                found[i, j + 1] += ad << run
                found[i, j + 2] += ae << run
                found[i, j + 3] += af << run
                found[i + 1, j] += bc << run
                found[i + 1, j + 1] += bd << run
                found[i + 1, j + 2] += be << run
                found[i + 1, j + 3] += bf << run
        for j in range(cols.shape[0]):
            for i in range(n_rows if j < n_cols else 0, rows.shape[0]):
                found[i, j] += _bits_of_both(rows[i, first:last], cols[j, first:last]) << run


@njit(cache=True, nogil=True, makes_arrays=False)
def _in_common(a, b, c, d, e, f):
    """Return the number of common bits of a and of b with each of c, d, e and f: six loads for eight pairs."""
    ac = ad = ae = af = bc = bd = be = bf = np.uint64(0)
    for p in range(len(a)):  # starts at 0, because loops whose indices may be negative are not vectorised
        ac += popcount(a[p] & c[p])
        ad += popcount(a[p] & d[p])
        ae += popcount(a[p] & e[p])
        af += popcount(a[p] & f[p])
        bc += popcount(b[p] & c[p])
        bd += popcount(b[p] & d[p])
        be += popcount(b[p] & e[p])
        bf += popcount(b[p] & f[p])
    return (
        np.int64(ac), np.int64(ad), np.int64(ae), np.int64(af), np.int64(bc), np.int64(bd), np.int64(be), np.int64(bf)
    )  # fmt: skip


@njit(cache=True, nogil=True, makes_arrays=False)
def _bits_of_both(one, other):
    both = np.uint64(0)
    for p in range(len(one)):
        both += popcount(one[p] & other[p])
    return np.int64(both)


@kernels.primitive
def leave_out_themselves(
    found: np.ndarray, bits: np.ndarray, rows: np.ndarray, cols: np.ndarray, place: np.ndarray, own: np.ndarray,
    counts: np.ndarray,
) -> None:  # fmt: skip
    """Subtract, in place, the two objects of a pair from the number of their common neighbours, for rows × cols.

    ``found`` is int64 (R, C), and ``bits`` are the neighbourhoods of ``rows``. For each of all rows, ``place`` is the
    position of its bit, and ``own`` tells whether two of its objects are neighbours.
    """
    bits, place_of_cols, own_cols = np.ascontiguousarray(bits), place[cols], own[cols].astype(np.int64)

    def work(start: int, stop: int) -> None:
        _leave_out_themselves(start, stop, found, bits, rows, cols, place_of_cols, own_cols, own, counts)

    devices.over_ranges(work, len(found), grain=16)


@leave_out_themselves.kernel
def _(
    found: Any, bits: Any, rows: np.ndarray, cols: np.ndarray, place: np.ndarray, own: np.ndarray, counts: np.ndarray,
    *, device: str,
) -> None:  # fmt: skip
    xp = devices.namespace(device)
    word, bit = (xp.asarray(at) for at in np.divmod(place[cols], WORD))
    near = ((bits[:, word] >> bit.astype(np.uint64)) & np.uint64(1)).astype(bool)
    found -= near & xp.asarray(own[rows])[:, None]
    found -= near & xp.asarray(own[cols])
    # a pair of an object with itself was subtracted twice above, but is one object
    found += (xp.asarray(rows)[:, None] == xp.asarray(cols)) & xp.asarray((own & (counts == 1))[rows])[:, None]


@njit(cache=True, nogil=True, makes_arrays=False)
def _leave_out_themselves(start, stop, found, bits, rows, cols, place_of_cols, own_cols, own, counts):
    for i in range(start, stop):
        near, own_row = bits[i], np.int64(own[rows[i]])
        for j in range(len(cols)):
            q = np.uint64(place_of_cols[j])
            bit = (near[q // np.uint64(WORD)] >> (q % np.uint64(WORD))) & np.uint64(1)
            found[i, j] -= np.int64(bit) * (own_row + own_cols[j])
        if own_row and counts[rows[i]] == 1:
            for j in range(len(cols)):
                found[i, j] += rows[i] == cols[j]  # the pair of an object with itself was subtracted twice


# --- counting neighbours ----------------------------------------------------------------------------------------------


@kernels.primitive
def neighbor_counts(bits: np.ndarray, codes: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return Σ counts[q] over the set bits q of each row that are in cluster c, for all clusters, (R, N_c) int64."""
    n_clusters, by_row = int(offsets[-1]), np.ascontiguousarray(codes)
    if bits.size:
        words, masks, runs = bit_planes(counts)
        if n_clusters * len(words) <= COMPARED * codes.shape[1] * bits.shape[1]:
            members = np.zeros((n_clusters, bits.shape[1]), dtype=np.uint64)
            _mark_members(by_row, offsets, members)
            found: np.ndarray = overlaps(bits[:, words] & masks, members[:, words] & masks, runs)
            return found
    found = np.zeros((len(bits), n_clusters), dtype=np.int64)
    devices.over_ranges(
        lambda a, b: _neighbor_counts(bits[a:b], by_row, offsets, counts, found[a:b]), len(bits), grain=16
    )
    return found


@neighbor_counts.kernel
def _(bits: Any, codes: Any, offsets: np.ndarray, counts: Any, *, device: str) -> Any:
    xp, n_clusters = devices.namespace(device), int(offsets[-1])
    found = xp.zeros((len(bits), n_clusters), dtype=np.uint64)
    in_shared = 8 * n_clusters <= kernels.SHARED_BYTES
    kernels.launch(
        "neighbor_counts", kernels.blocks(len(bits), 1), 256,
        (xp.ascontiguousarray(bits), xp.ascontiguousarray(codes.T), xp.asarray(offsets), xp.asarray(counts), found,
         len(bits), bits.shape[1], *codes.shape, np.int32(in_shared)),
        device=device, shared=8 * n_clusters if in_shared else 0, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return found.view(np.int64)


@njit(cache=True, nogil=True)
def _mark_members(codes, offsets, members):
    """Set bit q in the words of every cluster that contains row q, for all rows q."""
    missing = codes.dtype.type(-1)
    for q in range(codes.shape[0]):
        for m in range(codes.shape[1]):
            if codes[q, m] != missing:
                members[offsets[m] + codes[q, m], q // WORD] |= np.uint64(1) << np.uint64(q % WORD)


@njit(cache=True, nogil=True)
def _neighbor_counts(bits, codes, offsets, counts, found):
    missing = codes.dtype.type(-1)
    for i in range(bits.shape[0]):
        for w in range(bits.shape[1]):
            word = bits[i, w]
            q = w * WORD
            while word != np.uint64(0):
                if word & np.uint64(1):
                    for m in range(codes.shape[1]):
                        if codes[q, m] != missing:
                            found[i, offsets[m] + codes[q, m]] += counts[q]
                word >>= np.uint64(1)
                q += 1


@kernels.primitive
def neighbor_sums(bits: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sum of values[q] (Q, K) int64 over the set bits q of each row, (R, K) int64."""
    found = np.zeros((len(bits), values.shape[1]), dtype=np.int64)
    values = np.ascontiguousarray(values)
    devices.over_ranges(lambda a, b: _neighbor_sums(bits[a:b], values, found[a:b]), len(bits), grain=16)
    return found


@neighbor_sums.kernel
def _(bits: Any, values: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    found = xp.zeros((len(bits), values.shape[1]), dtype=np.uint64)
    kernels.launch(
        "neighbor_sums", kernels.blocks(len(bits), 1), 128,
        (xp.ascontiguousarray(bits), xp.ascontiguousarray(xp.asarray(values)), found, len(bits), bits.shape[1],
         *values.shape),
        device=device,
    )  # fmt: skip
    return found.view(np.int64)


@njit(cache=True, nogil=True)
def _neighbor_sums(bits, values, found):
    for i in range(bits.shape[0]):
        for w in range(bits.shape[1]):
            word = bits[i, w]
            q = w * WORD
            while word != np.uint64(0):
                if word & np.uint64(1):
                    for d in range(values.shape[1]):
                        found[i, d] += values[q, d]
                word >>= np.uint64(1)
                q += 1
