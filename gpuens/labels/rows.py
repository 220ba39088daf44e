"""Label rows with counts on a device, in one piece or in several.

    piece ─▶ function ─▶ summed in the order of the pieces ─▶ a learned rule ─▶ the label of any row

Code that needs only sums over rows calls `Rows.each` and `Rows.sum` and serves both cases: rows in memory are one
piece; rows of `gpuens.distributed` are several pieces, and no process holds all of them. Sums are taken in the order of
the pieces, so the number and the machines of the workers do not change results.

Code that needs only products with the incidence matrix B of rows and clusters calls `Rows.row_sums`, `row_lookups`,
`cluster_sums` and `label_histograms`, and also serves rows of shares (`gpuens.neighbors.shares`), which have no labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.incidence import cluster_sums, label_histograms, row_lookups, row_sums
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array

# smallest number of objects drawn for each cluster; if there are many rows, nearly all drawn rows differ
DRAWN_FOR_A_CLUSTER = 4

Summed = TypeVar("Summed")


class Rows:
    """Label rows with counts, and the device that works on them.

    Parameters
    ----------
    labels : Ensemble, or anything that Ensemble takes
        G rows.
    counts : array (G,), integers ≥ 1, optional
        The number of objects of each row; 1 by default.
    device : {"auto", "cpu", "cuda"}

    Attributes
    ----------
    ensemble : Ensemble
    counts : ndarray (G,), int64
    device : str
        The device that works on the rows: "cpu" or "cuda".

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses, and for counts that are not G whole numbers ≥ 1, or whose sum is above 2⁵³ or
        2⁶² / M.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 1], ["a", "b", "b"]], counts=[5, 1, 4])
    >>> rows.n_objects, rows.cluster_sizes().tolist()
    (10, [6, 4, 5, 5])
    >>> ge.similarity.eci(rows).round(2).tolist()
    [0.44, 1.0, 1.0, 0.41]
    """

    ensemble: Ensemble
    counts: np.ndarray
    device: str
    here = True  # False for rows that other processes hold
    of_labels = True  # False for rows of shares (gpuens.neighbors.shares), which have no codes

    def __init__(self, labels: Any, counts: Any = None, device: str = "auto") -> None:
        ensemble = Ensemble(labels)
        n_rows = len(ensemble)
        weights = checks.check_weights(counts, n_rows, "counts", "row")
        if weights is None:
            weights = np.ones(n_rows, dtype=np.int64)
        if weights.dtype.kind != "i":
            raise ValueError("counts must be whole numbers: how many objects each row stands for.")
        checks.check_total(int(weights.sum()), ensemble.n_clusterings)
        self._hold(ensemble, weights, devices.resolve(device, ensemble.device_kind))

    @classmethod
    def of(cls, ensemble: Any, counts: np.ndarray, device: str) -> "Rows":
        """Return the rows of an ensemble (or SoftEnsemble) and their counts without checks."""
        rows = object.__new__(Rows)
        rows._hold(ensemble, counts, device)
        return rows

    @classmethod
    def of_codes(cls, codes: Array, offsets: np.ndarray, counts: np.ndarray, device: str) -> "Rows":
        """Return rows of codes (G, M) whose clusters have no names, without any checks."""
        numbers = [np.arange(k) for k in np.diff(offsets)]
        return cls.of(Ensemble.of_codes(codes, numbers, numbers, devices.kind_of(codes)), counts, device)

    def _hold(self, ensemble: Any, counts: np.ndarray, device: str) -> None:
        self.ensemble, self.counts, self.device = ensemble, counts, device
        self._cluster_sizes: np.ndarray | None = None  # computed once, from all pieces
        self.entropies: np.ndarray | None = None  # kept by similarities that weight clusters by them

    @property
    def codes(self) -> Array:
        """The label codes (G, M) on the device, columns contiguous."""
        return self.ensemble.codes_on(self.device)

    @property
    def offsets(self) -> np.ndarray:
        return self.ensemble.offsets

    @property
    def n_clusters(self) -> int:
        return self.ensemble.n_clusters

    @property
    def n_clusterings(self) -> int:
        return self.ensemble.n_clusterings

    @property
    def n_objects(self) -> int:
        return int(self.counts.sum())

    @property
    def n_rows(self) -> int:
        """The number of rows of all pieces; equal rows in several pieces count several times."""
        return len(self.counts)

    @property
    def xp(self) -> ModuleType:
        """The array module of the device."""
        return devices.namespace(self.device)

    def take(self, rows: Any, counts: np.ndarray | None = None) -> "Rows":
        """Return the selected ``rows``; their numbers of objects are ``counts``, or unchanged if it is None."""
        is_slice = isinstance(rows, slice)
        if counts is None:
            counts = self.counts[rows if is_slice else devices.to_host(rows)]
        where = rows if is_slice else devices.move(rows, "cuda" if self.device == "cuda" else "cpu")
        return Rows.of(self.ensemble.take(where), devices.to_host(counts), self.device)

    def hardened(self) -> "Rows":
        """Return the rows with the most probable cluster of each soft clustering; hard clusterings are unchanged."""
        if not isinstance(self.ensemble, SoftEnsemble):
            return self
        return Rows.of(self.ensemble.hardened(self.device), self.counts, self.device)

    # --- products with the incidence matrix (gpuens.labels.incidence), on the device ----------------------------------

    def row_sums(self, values: Any) -> Array:
        """Return B v (G,), float64, for v = ``values`` (N_c,)."""
        return row_sums(self.codes, self.offsets, values, device=self.device)

    def row_lookups(self, table: Any) -> Array:
        """Return B T (G, k), float64, for T = ``table`` (N_c, k)."""
        return row_lookups(self.codes, self.offsets, table, device=self.device)

    def cluster_sums(self, values: Any) -> Array:
        """Return Bᵀ v (N_c,) for v = ``values`` (G,), int64 or float64."""
        return cluster_sums(self.codes, self.offsets, values, device=self.device)

    def label_histograms(self, labels: Any, n_labels: int) -> Array:
        """Return the numbers (N_c, n_labels), int64, of the objects of each cluster with each of ``labels`` (G,)."""
        counts = self.xp.asarray(self.counts)
        return label_histograms(self.codes, self.offsets, counts, labels, n_labels, device=self.device)

    def shares_at(self, codes: np.ndarray) -> np.ndarray:
        """Return the shares (N_c, n), host, of n rows in the clusters: 0 or 1, from their ``codes`` (n, M)."""
        t, m = np.nonzero(codes != np.iinfo(codes.dtype).max)
        shares = np.zeros((self.n_clusters, len(codes)))
        shares[self.offsets[m] + codes[t, m], t] = 1.0
        return shares

    def cluster_sizes(self) -> np.ndarray:
        """Return the number of objects in each cluster (N_c,), int64, host."""
        if self._cluster_sizes is None:
            self._cluster_sizes = self.sum(_cluster_sizes)
        return self._cluster_sizes

    def sizes_by_clustering(self) -> list[np.ndarray]:
        """Return the numbers of objects of the non-empty clusters of each clustering, host."""
        parts = np.split(self.cluster_sizes(), self.offsets[1:-1])
        return [sizes[sizes > 0] for sizes in parts]

    def clusters_in_use(self) -> np.ndarray:
        """Return the number of non-empty clusters of each clustering (M,), int64, host."""
        return np.add.reduceat((self.cluster_sizes() > 0).astype(np.int64), self.offsets[:-1])

    def each(self, function: Callable[..., Any], *args: Any, piece_args: Sequence[Any] | None = None) -> list[Any]:
        """Return the list of ``function(piece, *args)`` for every piece (Rows); the results should be small.

        With ``piece_args``, the call for piece i is ``function(piece, piece_args[i], *args)``.
        """
        return [function(self, *([] if piece_args is None else piece_args), *args)]

    def sum(self, function: Callable[..., Summed], *args: Any) -> Summed:
        """Return the sum of the results of `each`, which are arrays of one shape."""
        return function(self, *args)

    @property
    def objects_of_pieces(self) -> Sequence[int]:
        return [self.n_objects]

    def draw(self, n: int, rng: np.random.Generator) -> "Rows":
        """Draw n objects with replacement, and return their rows; the count of a row is its number of draws."""
        ends = np.cumsum(self.objects_of_pieces)
        objects = np.sort(rng.integers(ends[-1], size=n))
        starts = np.concatenate([[0], ends[:-1]])
        piece_objects = np.split(objects, np.searchsorted(objects, ends[:-1]))
        own_objects = [part - start for part, start in zip(piece_objects, starts, strict=True)]
        return join_rows(self.each(_take_drawn, piece_args=own_objects))

    def draw_for(self, n_clusters: int, n: int, rng: np.random.Generator) -> "Rows":
        """Draw at least n objects, and enough objects for ``n_clusters`` clusters; return their rows.

        Raise an error if the drawn objects have fewer distinct rows than ``n_clusters``.
        """
        rows = self.draw(max(n, DRAWN_FOR_A_CLUSTER * n_clusters), rng)
        if len(rows) < n_clusters:
            raise ValueError(
                f"n_clusters={n_clusters}, but rows in pieces are clustered from objects drawn at random, which have "
                f"only {len(rows)} distinct label rows; ask for fewer clusters, or work on a sample, "
                "reduction=Sample(…)."
            )
        return rows

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={self.n_rows}, n_objects={self.n_objects}, device={self.device!r})"


def as_rows(labels: Any, device: str = "auto") -> Rows:
    """Return labels as Rows with counts of 1; Rows are returned unchanged."""
    if isinstance(labels, Rows):
        if device == "auto":
            return labels
        return Rows.of(labels.ensemble, labels.counts, devices.resolve(device, labels.ensemble.device_kind))
    return Rows(labels, device=device)


def join_rows(pieces: list[Rows]) -> Rows:
    """Concatenate the rows of all pieces, which must have the same numbering of clusters."""
    if len(pieces) == 1:
        return pieces[0]
    ensemble = pieces[0].ensemble
    codes = np.asfortranarray(np.concatenate([devices.to_host(piece.ensemble.codes) for piece in pieces]))
    joined = Ensemble.of_codes(codes, ensemble.categories, ensemble.names)
    return Rows.of(joined, np.concatenate([piece.counts for piece in pieces]), "cpu")


# --- rules ------------------------------------------------------------------------------------------------------------


class Rule(Protocol):
    """A function that maps rows to consensus labels (G,), int64, in host memory.

    The rows must number the clusters of the base clusterings as the rows from which the rule was learned.
    """

    def __call__(self, rows: Rows, /) -> np.ndarray: ...


class Choosing(Rule, Protocol):
    """A rule that gives each row the best of a set of labels."""

    def among(self, labels: np.ndarray, /) -> "Choosing":
        """Return the rule restricted to the given ``labels``, which must ascend."""
        ...


@dataclass(frozen=True)
class Numbered:
    """A rule with renumbered labels 0, 1, 2, …; a label that the rule gave to no row gets no number."""

    rule: Rule
    number: np.ndarray  # the new number of each label of the rule
    n_labels: int  # number of labels in use; their new numbers are 0 … n_labels - 1
    sizes: np.ndarray | None = None  # (n_labels,), the numbers of objects of the labels, if rows in pieces gave them

    def __call__(self, rows: Rows) -> np.ndarray:
        return self.number[self.rule(rows)]


def numbered(rule: Choosing, n_labels: int, rows: Rows) -> tuple[Numbered, np.ndarray | None]:
    """Return a rule whose ``n_labels`` labels are renumbered by their first rows, and the labels of the rows.

    For rows in pieces, the labels in use keep their order, and None replaces the labels of the rows.
    """
    labels, sizes = None, None
    if rows.here:
        labels = rule(rows)
        distinct, first_of = np.unique(labels, return_index=True)
        order = distinct[np.argsort(first_of)]
    else:
        sizes = sizes_by_rule(rule, rows, n_labels)
        order = np.flatnonzero(sizes)
        sizes = sizes[order]
    rest = np.setdiff1d(np.arange(n_labels), order)
    number = np.argsort(np.concatenate([order, rest]))
    if len(rest):
        rule = rule.among(np.sort(order))
    return Numbered(rule, number, len(order), sizes), None if labels is None else number[labels]


def sizes_by_rule(rule: Rule, rows: Rows, n_labels: int) -> np.ndarray:
    """Return the number of objects of each label of a rule, (n_labels,) int64; rows may be in pieces."""
    if isinstance(rule, Numbered) and rule.sizes is not None:
        return rule.sizes
    return rows.sum(_sizes_by_rule, rule, n_labels)


def by_first_row(labels: Any, n_labels: int | None = None) -> Array:
    """Return labels renumbered 0, 1, 2, … in the order of their first rows, in the same memory.

    The labels are 0 … ``n_labels`` - 1, and some may have no row; with this number, the host does not wait for a GPU.
    """
    if n_labels is None:
        _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[codes]
    order, names = labels.argsort(kind="stable"), devices.namespace(devices.kind_of(labels)).arange(n_labels)
    begins = np.minimum(np.searchsorted(labels[order], names), len(labels) - 1)
    first = np.where(labels[order[begins]] == names, order[begins], len(labels))  # names without rows come last
    return np.argsort(np.argsort(first))[labels]


# --- functions of pieces ----------------------------------------------------------------------------------------------


def _cluster_sizes(rows: Rows) -> np.ndarray:
    return devices.to_host(rows.cluster_sums(rows.xp.asarray(rows.counts)))


def _take_drawn(rows: Rows, objects: np.ndarray) -> Rows:
    row_of_object = np.searchsorted(np.cumsum(rows.counts), objects, side="right")
    distinct, times = np.unique(row_of_object, return_counts=True)
    return rows.take(distinct, times)


def _sizes_by_rule(rows: Rows, rule: Rule, n_labels: int) -> np.ndarray:
    return np.bincount(rule(rows), weights=rows.counts, minlength=n_labels).astype(np.int64)
