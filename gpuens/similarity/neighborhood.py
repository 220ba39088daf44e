"""Common neighbours of objects: CCOSO, the share of all objects that are neighbours of both (eq 10).

Objects x and y are θ-neighbours if IaOSO(x, y) ≥ θ; no object is its own neighbour. Neighbourhoods are stored as bits
and computed in pieces of rows, so that no N × N matrix of floats is held: common neighbours are AND and popcount, and
the neighbours of an object in each cluster are counted from the bits.

A row may stand for several objects. With n_q objects in row q and A = [IaOSO ≥ θ], diagonal included, two different
objects of rows g and h have Σ_q n_q A_gq A_hq - A_gh (A_gg + A_hh) common neighbours: all except the two themselves.

Wang, Chi, She, Cao & Stantic, "Coupled clustering ensemble by exploring data interdependence", ACM Transactions on
Knowledge Discovery from Data 12 (2018), §4.2.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import checks, kernels
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.lanes import LANES, aligned_zeros, at_least, lowest, nothing, plus, popcount, store
from gpuens.rows import Rows, as_rows
from gpuens.similarity.base import Features, Measure, Similarity, Sums
from gpuens.similarity.blocks import Blocks, OnDevice
from gpuens.similarity.coupled import coupling, coupling_fits

WORD = 64
COMPARED = 128  # words compared in the time that the labels of a word's neighbours take, one by one


@dataclass(frozen=True, eq=False)
class CommonNeighbors(Measure):
    """CCOSO: the share of all objects that are neighbours of both objects (eq 10).

    Parameters
    ----------
    threshold : float in [0, 1], optional
        Two objects are neighbours if their coupled similarity IaOSO is at least this; None is its mean over all pairs.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling; equal by default.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1, 1], ["b", "a", "a", "b", "b"]])
    >>> ge.similarity.CommonNeighbors(threshold=0.3)(rows).tile(rows, 0, 1, first=1).tolist()
    [[0.2, 0.2, 0.2, 0.2]]
    """

    threshold: float | None = None
    weights: Any = None
    kind = "pairs"

    def __post_init__(self) -> None:
        checks.check_fraction(self.threshold, "threshold", "the mean similarity")

    def refuse_too_many(self, rows: Rows) -> None:
        coupling_fits(rows.offsets, self.weights)

    def __call__(self, rows: Rows, features: Features | None = None) -> "Neighborhoods":
        return Neighborhoods(rows, coupling(rows, self.weights), self.threshold)


@dataclass(frozen=True)
class LabelNeighbors(Measure):
    """The share of all objects that are neighbours of both, by the Jaccard similarity of label sets (ROCK).

    Two objects with K labels in common are neighbours if K / (2M - K) ≥ θ. A missing label is common to none.

    Parameters
    ----------
    threshold : float in [0, 1], optional
        θ; None is that of the mean number of common labels, over all pairs of objects.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1, 1], ["b", "a", "a", "b", "b"]])
    >>> ge.similarity.LabelNeighbors(threshold=0.3)(rows).tile(rows, 0, 1, first=1).tolist()
    [[0.2, 0.2, 0.2, 0.2]]
    """

    threshold: float | None = None
    kind = "pairs"

    def __post_init__(self) -> None:
        checks.check_fraction(self.threshold, "threshold", "that of the mean number of common labels")

    def refuse_too_many(self, rows: Rows) -> None:
        n_clusters = np.diff(rows.offsets)
        checks.check_memory(
            24 * int((n_clusters**2).sum()),
            devices.memory_budget(rows.device),
            f"the neighbours by clusterings of up to {n_clusters.max()} clusters",
            "take clusterings of fewer clusters",
        )

    def __call__(self, rows: Rows, features: Features | None = None) -> "Neighborhoods":
        self.refuse_too_many(rows)
        same, in_common = Blocks([np.eye(k) for k in np.diff(rows.offsets).tolist()]), np.arange(rows.n_clusterings + 1)
        mean = same.mean(rows)
        threshold = mean / (2 - mean) if self.threshold is None else float(self.threshold)
        near = in_common >= threshold * (2 * rows.n_clusterings - in_common) * (1 - 1e-12)
        # between two counts, so that rounding decides nothing
        found = Neighborhoods(rows, same, (float(near.argmax()) - 0.5) / rows.n_clusterings)
        found.found = {"threshold": threshold}
        return found


class Neighborhoods(Similarity):
    """The θ-neighbourhoods of rows with counts, and their similarity CCOSO.

    Parameters
    ----------
    rows : Rows (G)
    blocks : Blocks
        The coupled similarities of the clusters.
    threshold : float, optional
        The smallest similarity of neighbours; None is the mean over all pairs of objects times 1 - 1e-12, so that
        rounding cannot lift the mean of equal numbers above them.

    Attributes
    ----------
    threshold : float
    own : ndarray (G,), bool
        Whether two objects of the same row are neighbours: they need not be, equal rows are not the most similar.
    sizes : ndarray (N_c,), int64
        Objects in each cluster.
    """

    kind = "pairs"
    scale = 1.0

    def __init__(self, rows: Rows, blocks: Blocks, threshold: float | None) -> None:
        threshold = blocks.mean(rows) * (1.0 - 1e-12) if threshold is None else float(threshold)
        self.threshold, self.counts, self.offsets, self.device = threshold, rows.counts, rows.offsets, rows.device
        self.found = {"coupling": blocks.matrices(), "threshold": threshold}
        self.n_objects = rows.n_objects
        self.own = blocks.of_equal_rows(rows) >= threshold
        self.sizes = rows.cluster_sizes()
        self._blocks = blocks.on(rows.device)
        self._codes = rows.codes
        # columns of equal counts side by side: then few words of bits need more than one plane
        order = np.argsort(rows.counts, kind="stable")
        xp = rows.xp
        self._columns, self._order = self._codes[xp.asarray(order)], order
        self._place = np.argsort(order)
        words, masks, self._runs = bit_planes(rows.counts[order])
        self._words, self._masks = xp.asarray(words), xp.asarray(masks)
        self._all: tuple[Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_all": None}

    def free_memory(self) -> None:
        self._all = None  # G² bits, cheap to compute again

    def tile(self, rows: Rows, start: int, stop: int, first: int = 0) -> np.ndarray:
        common = self.common_in(start, stop, first).astype(np.float64)
        common /= self.n_objects
        return common

    def common_in(self, start: int, stop: int, first: int = 0) -> np.ndarray:
        """Return the common neighbours of two objects with rows start … stop - 1 and first …, int64, host."""
        bits, planes = self.all_bits()
        cols = np.arange(first, len(self.counts))
        return self.common(np.arange(start, stop), bits[start:stop], cols, planes[first:])

    def most(self) -> float:
        return 1.0

    def links(self, rows: Rows) -> tuple[Callable[[int, int], np.ndarray], float]:
        """Return sums of common neighbours and their unit; up to two million objects they are exact in int64."""
        counts = self.counts
        unit = 2.0 ** max(0, math.ceil(3 * math.log2(self.n_objects) - 1) - 62)

        def of(start: int, stop: int) -> np.ndarray:
            common = self.common_in(start, stop, start)
            np.fill_diagonal(common, 0)  # links within a row are not used
            if unit > 1:
                sums: np.ndarray = np.rint(common * (counts[start:stop, None] / unit) * counts[start:]).astype(np.int64)
                return sums
            common *= counts[start:stop, None]
            common *= counts[start:]
            return common

        return of, unit

    def of_equal_rows(self, rows: Rows) -> np.ndarray:
        """Return the similarity of two objects with the same row: their neighbours, without the two themselves."""
        of_rows = np.zeros((len(self.counts), 1), dtype=np.int64)
        of_rows[:, 0] = self.counts
        sums = [devices.to_host(self._sum_over(bits, of_rows))[:, 0] for _, bits in self.pieces()]
        means: np.ndarray = (np.concatenate(sums) - 2 * self.own) / self.n_objects
        return means

    def between_clusters(self, rows: Rows) -> np.ndarray:
        """Return the mean CCOSO over the objects of every two clusters of the ensemble (eq 24), (N_c, N_c), host.

        With G[z, c] the number of neighbours of object z in cluster c, it is (Gᵀ G)[c, d] / (N n_c n_d): no pair of
        objects is visited, and G is computed in pieces of rows. The products are exact below 2⁵³.
        """
        n_clusters = int(self.offsets[-1])
        checks.check_memory(
            16 * n_clusters**2,
            devices.memory_budget(self.device),
            f"the similarity of all {n_clusters} clusters",
            "take fewer clusterings, or clusterings of fewer clusters",
        )
        xp = devices.namespace(self.device)
        total = xp.zeros((n_clusters, n_clusters))
        for at, bits in self.pieces(bytes_each=24 * n_clusters):
            found = self.counts_in(at, bits).astype(np.float64)
            total += found.T @ (found * xp.asarray(self.counts[at].astype(np.float64))[:, None])
        products = self.sizes.astype(np.float64)[:, None] * self.sizes * self.n_objects
        means: np.ndarray = devices.to_host(total) / np.maximum(products, 1)
        return means

    def sums(self, rows: Rows, labels: np.ndarray) -> Sums:
        """Return a function that maps rows to sums; neighbours are counted among ``rows``.

        The common neighbours of an object and all members of a cluster are summed over the object's neighbours z: each
        adds the number of members that have z as a neighbour.
        """
        k = int(labels.max()) + 1
        codes = rows.xp.asarray(labels.astype(np.uint32))[:, None]
        members = np.empty((len(labels), k), dtype=np.int64)
        for at, bits in self.pieces(bytes_each=16 * k):
            members[at] = devices.to_host(self.counts_in(at, bits, codes, np.array([0, k])))
        members *= rows.counts[:, None]
        return _CommonSums(self, members)

    def bits(self, codes: Any) -> Any:
        """Return the neighbourhoods of label rows (R, M) as bits (R, n_words), uint64, own row included."""
        return neighborhood_bits(codes, self._columns, self.offsets, self._blocks, self.threshold, device=self.device)

    def pieces(self, codes: Any = None, bytes_each: int = 0) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield the indices and bits of label rows (R, M), by default the ensemble's own, in pieces.

        ``bytes_each``: the bytes that the caller holds for each row of a piece, in addition to the bits.
        """
        codes = self._codes if codes is None else codes
        room = devices.scratch(self.device) // (16 * len(self._words) + bytes_each + 64)
        step = max(1, min(room, 4096))
        for start in range(0, len(codes), step):
            some = codes[start : start + step]
            yield np.arange(start, start + len(some)), self.bits(some)

    def all_bits(self) -> tuple[Any, Any]:
        """Return the bits of all rows and their planes: G² / 8 bytes, twice that if all counts are equal, else more."""
        if self._all is None:
            checks.check_memory(
                8 * len(self.counts) * (self._place.size // WORD + 1 + len(self._words)),
                devices.memory_budget(self.device),
                f"the neighbourhoods of all {len(self.counts)} distinct label rows",
                "work on a sample, reduction=Sample(…)",
            )
            bits = devices.namespace(self.device).concatenate([bits for _, bits in self.pieces()])
            self._all = bits, self.planes(bits)
        return self._all

    def common(self, rows: np.ndarray, row_bits: Any, cols: np.ndarray, col_planes: Any) -> np.ndarray:
        """Return the number of common neighbours of objects of rows × cols, int64 (R, C), host."""
        found = overlaps(self.planes(row_bits), col_planes, self._runs, device=self.device)
        leave_out_themselves(found, row_bits, rows, cols, self._place, self.own, self.counts, device=self.device)
        return devices.to_host(found)

    def planes(self, bits: Any) -> Any:
        """Return bits as planes (R, P): first the bits that count once, then those that count twice, four times …"""
        xp = devices.namespace(self.device)
        return xp.ascontiguousarray(bits[:, self._words] & self._masks)  # NumPy would give columns side by side

    def counts_in(self, rows: np.ndarray, bits: Any, codes: Any = None, offsets: Any = None) -> Any:
        """Return the number of neighbours of an object of each row in each cluster, (R, N_c) int64, itself excluded.

        ``codes`` (G, M') and ``offsets`` replace the ensemble's own clusterings.
        """
        xp = devices.namespace(self.device)
        if codes is None:
            codes, offsets = self._codes, self.offsets
        counts = self.counts[self._order]
        found = neighbor_counts(bits, codes[xp.asarray(self._order)], offsets, counts, device=self.device)
        own, codes = xp.asarray(self.own[rows]), codes[xp.asarray(rows)]
        for m, first in enumerate(offsets[:-1].tolist()):
            at = xp.flatnonzero(own & (codes[:, m] != np.iinfo(codes.dtype).max))
            found[at, first + codes[at, m].astype(np.int64)] -= 1
        return found

    def _sum_over(self, bits: Any, values: np.ndarray) -> Any:
        """Return the sum of ``values`` (G, K) int64 over the neighbouring rows, (R, K) int64."""
        return neighbor_sums(bits, values[self._order], device=self.device)


@dataclass(frozen=True)
class _CommonSums:
    near: Neighborhoods
    members: np.ndarray  # (G, k) int64: members of each cluster that are neighbours of the objects of each row

    def __call__(self, rows: Rows) -> np.ndarray:
        near = self.near
        pieces = near.pieces(rows.codes, bytes_each=16 * self.members.shape[1])
        found = [devices.to_host(near._sum_over(bits, self.members)) for _, bits in pieces]
        return np.concatenate(found) / near.n_objects


def common_neighbors(
    ens: Any,
    threshold: float | None = None,
    rows: Any = None,
    cols: Any = None,
    *,
    weights: Any = None,
    device: str = "auto",
) -> devices.Array:
    """Return CCOSO, the share of all objects that are θ-neighbours of both objects (eq 10), as a dense block.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    threshold : float in [0, 1], optional
        Two objects are neighbours if their IaOSO is at least this; None is the mean over all pairs of different objects
        times 1 - 1e-12, so that rounding cannot lift the mean of equal numbers above them.
    rows, cols : None, slice, mask or array of object indices
        The block; None is all objects. The whole N × N matrix is for small N.
    weights : array (n_clusterings,), optional
        λ, see `coupled_clusters`.
    device : {"auto", "cpu", "cuda", "emulated"}

    Returns
    -------
    array (n_rows, n_cols), float64, in the memory of the labels
        On the diagonal the share of all objects that are neighbours of the object, itself excluded.

    Raises
    ------
    MemoryError
        For a block larger than the memory budget, before it is allocated.
    ValueError
        For a threshold outside [0, 1], and see `coupled_clusters`.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1], ["b", "a", "a", "b", "b"]]
    >>> ge.similarity.common_neighbors(labels, threshold=0.3, rows=[0, 1]).tolist()
    [[0.8, 0.2, 0.2, 0.2, 0.2], [0.2, 0.4, 0.2, 0.2, 0.2]]
    """
    of = as_rows(ens, device)
    near = CommonNeighbors(threshold, weights)(of)
    rows, cols = checks.check_block(
        rows, cols, of.n_rows, devices.memory_budget(of.device), "common neighbors", bytes_per_col=of.n_rows // 8
    )
    xp, codes, block = of.xp, of.codes, np.empty((len(rows), len(cols)))
    if not block.size:
        return devices.move(block, of.ensemble.device_kind)
    of_cols = xp.concatenate([near.planes(bits) for _, bits in near.pieces(codes[xp.asarray(cols)])])
    for at, bits in near.pieces(codes[xp.asarray(rows)], bytes_each=32 * len(cols)):
        some = rows[at]
        common = near.common(some, bits, cols, of_cols)
        block[at] = common / near.n_objects
    return devices.move(block, of.ensemble.device_kind)


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
    """Return the sums of units below which no similarity is ``theta``, and from which on all are."""
    met = theta * n_clusterings * scale
    # a sum of M units is less than M below the similarity's; 4 more are beyond what float64 sums and quotients round
    bounds: np.ndarray = np.clip([np.floor(met) - n_clusterings - 4, np.ceil(met) + 4], least, most)
    return bounds


def _clusters_in(codes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters of some rows, and where each label is among them, from 1 on; 0 is missing."""
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
    """Find the bits of words start … stop - 1 of all rows.

    A table holds the units of each cluster for each of the 64 columns of a word, its lanes, so that the units of a row
    add up for all of them at once. The few similarities that these sums do not decide are computed one by one.
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
    """Return the similarity of two label rows, as `coupled_tile` sums it."""
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
        for first in range(start, stop, 64):  # few enough to stay in a core's cache
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
    """Return how many bits a, then b, have in common with each of the others: eight pairs for six loads."""
    ac = ad = ae = af = bc = bd = be = bf = np.uint64(0)
    for p in range(len(a)):  # from 0: loops whose indices may be negative are not vectorised
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
    """Subtract from the common neighbours of objects of rows × cols, in place, the two themselves.

    ``found`` is int64 (R, C), and ``bits`` are those of ``rows``. For all rows, ``place`` tells where the bit of each
    is, and ``own`` whether two of its objects are neighbours.
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
    # an object and itself: subtracted twice above, but it is one object only
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
                found[i, j] += rows[i] == cols[j]  # one object only, subtracted twice


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
    """Set bit q of the words of each cluster that row q is in."""
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
