"""Common neighbours of objects: CCOSO, the share of all objects that are neighbours of both (eq 10).

Objects x and y are θ-neighbours if IaOSO(x, y) ≥ θ; no object is its own neighbour. Neighbourhoods are stored as bits
and computed in pieces of rows, so no N × N matrix of floats exists. Common neighbours are counted by AND and popcount;
the neighbours of an object in each cluster are counted from the bits, too.

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

from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.similarity.base import Features, Measure, Similarity, Sums
from gpuens.similarity.blocks import Blocks
from gpuens.similarity.coupled import check_coupling, coupling
from gpuens.similarity.neighborhood_bits import (
    WORD,
    bit_planes,
    leave_out_themselves,
    neighbor_counts,
    neighbor_sums,
    neighborhood_bits,
    overlaps,
)


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
        check_coupling(rows.offsets, self.weights)

    def __call__(self, rows: Rows, features: Features | None = None) -> "Neighborhoods":
        return Neighborhoods(rows, coupling(rows, self.weights), self.threshold)


@dataclass(frozen=True)
class LabelNeighbors(Measure):
    """The share of all objects that are neighbours of both, by the Jaccard similarity of label sets (ROCK).

    Two objects with K labels in common are neighbours if K / (2M - K) ≥ θ. A missing label is common to none.

    Parameters
    ----------
    threshold : float in [0, 1], optional
        θ; None is K / (2M - K) for the mean number K of common labels over all pairs of objects.

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
        equal_labels, in_common = (
            Blocks([np.eye(k) for k in np.diff(rows.offsets).tolist()]),
            np.arange(rows.n_clusterings + 1),
        )
        mean = equal_labels.mean(rows)
        threshold = mean / (2 - mean) if self.threshold is None else float(self.threshold)
        is_near = in_common >= threshold * (2 * rows.n_clusterings - in_common) * (1 - 1e-12)
        # the threshold is midway between two possible values, so that rounding cannot change a comparison
        near_sets = Neighborhoods(rows, equal_labels, (float(is_near.argmax()) - 0.5) / rows.n_clusterings)
        near_sets.results = {"threshold": threshold}
        return near_sets


class Neighborhoods(Similarity):
    """The θ-neighbourhoods of rows with counts, and their similarity CCOSO.

    Parameters
    ----------
    rows : Rows (G)
    blocks : Blocks
        The coupled similarities of the clusters.
    threshold : float, optional
        The smallest similarity of neighbours; None is the mean over all pairs of objects times 1 - 1e-12, because the
        mean of equal numbers may be rounded to more than these numbers.

    Attributes
    ----------
    threshold : float
    own : ndarray (G,), bool
        Whether two objects of the same row are neighbours; they may not be, as equal rows are not the most similar.
    sizes : ndarray (N_c,), int64
        Objects in each cluster.
    blocks : Blocks
    """

    kind = "pairs"
    scale = 1.0

    def __init__(self, rows: Rows, blocks: Blocks, threshold: float | None) -> None:
        threshold = blocks.mean(rows) * (1.0 - 1e-12) if threshold is None else float(threshold)
        self.threshold, self.counts, self.offsets, self.device = threshold, rows.counts, rows.offsets, rows.device
        self.results = {"coupling": blocks.matrices(), "threshold": threshold}
        self.n_objects = rows.n_objects
        self.own = blocks.self_similarities(rows) >= threshold
        self.sizes = rows.cluster_sizes()
        self.blocks, self._blocks = blocks, blocks.on(rows.device)
        self._codes = rows.codes
        # columns are sorted by count, so that few words need more than one bit plane
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
        self._all = None  # frees G² bits, which are cheap to compute again

    @property
    def codes(self) -> np.ndarray:
        """The codes of the rows (G, M), host."""
        return devices.to_host(self._codes)

    def tile(self, rows: Rows, start: int, stop: int, first: int = 0) -> np.ndarray:
        common = self.common_in(start, stop, first).astype(np.float64)
        common /= self.n_objects
        return common

    def common_in(self, start: int, stop: int, first: int = 0) -> np.ndarray:
        """Return the numbers of common neighbours of rows start … stop - 1 and rows first …, int64, host."""
        bits, planes = self.all_bits()
        cols = np.arange(first, len(self.counts))
        return self.common(np.arange(start, stop), bits[start:stop], cols, planes[first:])

    def upper_bound(self) -> float:
        return 1.0

    def links(self, rows: Rows) -> tuple[Callable[[int, int], np.ndarray], float]:
        """Return the result of `Similarity.links`; its sums are exact for at most two million objects."""
        counts = self.counts
        unit = 2.0 ** max(0, math.ceil(3 * math.log2(self.n_objects) - 1) - 62)

        def unit_tile(start: int, stop: int) -> np.ndarray:
            common = self.common_in(start, stop, start)
            np.fill_diagonal(common, 0)  # links between objects of the same row are not used
            if unit > 1:
                return np.rint(common * (counts[start:stop, None] / unit) * counts[start:]).astype(np.int64)
            common *= counts[start:stop, None]
            common *= counts[start:]
            return common

        return unit_tile, unit

    def self_similarities(self, rows: Rows) -> np.ndarray:
        """Return the similarity of two objects of one row, for each row: their neighbours except the two themselves."""
        of_rows = np.zeros((len(self.counts), 1), dtype=np.int64)
        of_rows[:, 0] = self.counts
        sums = [devices.to_host(self._sum_over(bits, of_rows))[:, 0] for _, bits in self.pieces()]
        return (np.concatenate(sums) - 2 * self.own) / self.n_objects

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
        for piece, bits in self.pieces(bytes_each=24 * n_clusters):
            counts = self.counts_in(piece, bits).astype(np.float64)
            total += counts.T @ (counts * xp.asarray(self.counts[piece].astype(np.float64))[:, None])
        products = self.sizes.astype(np.float64)[:, None] * self.sizes * self.n_objects
        return devices.to_host(total) / np.maximum(products, 1)

    def sums(self, rows: Rows, labels: np.ndarray) -> Sums:
        """Return the function of `Similarity.sums`; neighbours are counted among ``rows``.

        Common neighbours of an object and the members of a cluster are summed over the object's neighbours z: each z
        adds the number of members that have z as a neighbour.
        """
        k = int(labels.max()) + 1
        codes = rows.xp.asarray(labels.astype(np.uint32))[:, None]
        members = np.empty((len(labels), k), dtype=np.int64)
        for piece, bits in self.pieces(bytes_each=16 * k):
            members[piece] = devices.to_host(self.counts_in(piece, bits, codes, np.array([0, k])))
        members *= rows.counts[:, None]
        return CommonSums(self, members)

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
            piece = codes[start : start + step]
            yield np.arange(start, start + len(piece)), self.bits(piece)

    def all_bits(self) -> tuple[Any, Any]:
        """Return the bits of all rows and their planes: G² / 8 bytes, plus as much for the planes or more."""
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
        overlap = overlaps(self.planes(row_bits), col_planes, self._runs, device=self.device)
        leave_out_themselves(overlap, row_bits, rows, cols, self._place, self.own, self.counts, device=self.device)
        return devices.to_host(overlap)

    def planes(self, bits: Any) -> Any:
        """Return bits as planes (R, P): first the bits that count once, then those that count twice, four times …"""
        xp = devices.namespace(self.device)
        return xp.ascontiguousarray(bits[:, self._words] & self._masks)  # in C order

    def counts_in(self, rows: np.ndarray, bits: Any, codes: Any = None, offsets: Any = None) -> Any:
        """Return the number of neighbours of an object of each row in each cluster, (R, N_c) int64, itself excluded.

        ``codes`` (G, M') and ``offsets`` replace the ensemble's own clusterings.
        """
        xp = devices.namespace(self.device)
        if codes is None:
            codes, offsets = self._codes, self.offsets
        counts = self.counts[self._order]
        counts_of_clusters = neighbor_counts(bits, codes[xp.asarray(self._order)], offsets, counts, device=self.device)
        has_near_twin, codes = xp.asarray(self.own[rows]), codes[xp.asarray(rows)]
        for m, first in enumerate(offsets[:-1].tolist()):
            labelled = xp.flatnonzero(has_near_twin & (codes[:, m] != np.iinfo(codes.dtype).max))
            counts_of_clusters[labelled, first + codes[labelled, m].astype(np.int64)] -= 1
        return counts_of_clusters

    def _sum_over(self, bits: Any, values: np.ndarray) -> Any:
        """Return the sum of ``values`` (G, K) int64 over the neighbouring rows, (R, K) int64."""
        return neighbor_sums(bits, values[self._order], device=self.device)


@dataclass(frozen=True)
class CommonSums:
    """A function that maps rows to sums (G, k) of common neighbours with the members of each cluster."""

    near: Neighborhoods
    members: np.ndarray  # (G, k) int64: members of each cluster that are neighbours of the objects of each row

    def __call__(self, rows: Rows) -> np.ndarray:
        neighborhoods = self.near
        pieces = neighborhoods.pieces(rows.codes, bytes_each=16 * self.members.shape[1])
        sums = [devices.to_host(neighborhoods._sum_over(bits, self.members)) for _, bits in pieces]
        return np.concatenate(sums) / neighborhoods.n_objects
