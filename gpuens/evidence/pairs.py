"""The distribution of the entries of the consensus matrix C, computed without storing the matrix.

C(x, y) is the share of the clusterings in which x and y are together. The number of pairs with each value of C follows
from the distinct label rows. Rows g and h with n_g and n_h objects have n_g n_h pairs of objects. A row g has
n_g (n_g - 1) / 2 pairs of its own objects. The cost is G² M / 2 label comparisons. Vector instructions make 64
comparisons at a time (`linkage.comparisons`). With thousands of clusters, only rows of one cluster are compared.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.evidence.sparse_pairs import count_common_pairs, prefer_visits
from gpuens.labels.rows import Rows, as_rows
from gpuens.partition.linkage.comparisons import chunks_of
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import checks, kernels, progress
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import natural_logarithms
from gpuens.runtime.native import cpu
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

MOST_COMPARISONS = 10**12  # number of label comparisons above which exact="auto" draws random pairs
DRAWN_AT_ONCE = 2**20  # number of random pairs compared in one step
HISTOGRAMS = 5  # histograms of a thread while it counts
PIECES = 8  # turns in a step of the progress bar, for each thread
TILE = 16, 256  # numbers of rows and columns of a tile on a GPU; each thread has one column
LOW_BITS = 62  # bits of a number in the first of two rows of a histogram of more than 3e9 objects
LABELS_BYTES = 4096  # bytes of the shared memory of a GPU block that hold labels
BLOCKS = 4096  # largest number of blocks of a kernel launch on a GPU


@dataclass(frozen=True, eq=False)
class Pairs:
    """The number of pairs of objects that are together in each number of clusterings.

    Attributes
    ----------
    matches, copresent, counts : ndarray (n_bins,), int64
        ``counts[i]`` pairs are together in ``matches[i]`` of ``copresent[i]`` clusterings, so their C is
        ``matches[i] / copresent[i]``. Bins ascend by ``copresent``, then by ``matches``. The counts of `chance`, and
        those of more than 3 · 10⁹ objects, are float64.
    missing : {"ignore", "zero"}
    exact : bool
        Whether all pairs were counted.
    cluster_sizes : tuple of ndarray
        The objects of each cluster, for each clustering.
    n_objects : int
    """

    matches: np.ndarray
    copresent: np.ndarray
    counts: np.ndarray
    missing: str
    exact: bool
    cluster_sizes: tuple[np.ndarray, ...]
    n_objects: int

    @property
    def n_pairs(self) -> float:
        """The number of counted pairs: N (N - 1) / 2, or the number of drawn pairs."""
        return float(self.counts.sum())

    @property
    def unseen(self) -> float:
        """The number of counted pairs of which no clustering labels both objects; C of these pairs is 0."""
        return float(self.counts[self.copresent == 0].sum())

    @property
    def consensus(self) -> np.ndarray:
        """The value of C in each bin (n_bins,), float64."""
        return self.matches / np.maximum(self.copresent, 1)

    @property
    def standard_error(self) -> float:
        """The largest possible standard error of `cdf`, `pac` and `area`; 0 if all pairs were counted."""
        return 0.0 if self.exact else 0.5 / np.sqrt(self.n_pairs)

    def cdf(self, thresholds: Any) -> np.ndarray:
        """Return F(t), the share of the pairs with C ≤ t, for each threshold t in ``thresholds``.

        The result is float64 and has the shape of ``thresholds``.
        """
        return self._up_to(thresholds) / self.n_pairs

    def pac(self, lower: float = 0.1, upper: float = 0.9) -> float:
        """Return the proportion of ambiguous clustering (PAC), the share of the pairs with lower < C ≤ upper.

        M3C, cola and MultiK also count pairs with C = upper, while diceR and ClustAssess do not.
        """
        lower = checks.check_between(lower, "lower", 0.0, 1.0)
        upper = checks.check_between(upper, "upper", lower, 1.0)
        return float(self._up_to(upper) - self._up_to(lower)) / self.n_pairs

    def rpac(self, lower: float = 0.1, upper: float = 0.9) -> float:
        """Return the relative PAC, the proportion among the pairs with C > 0; NaN if C = 0 for all pairs."""
        above_zero = 1.0 - float(self.cdf(0.0))
        return self.pac(lower, upper) / above_zero if above_zero > 0 else float("nan")

    def area(self, n_bins: int | None = None) -> float:
        """Return the area under the distribution function F of C, which is 1 minus the mean of C.

        If ``n_bins`` is given, the area is the mean of F at 1 / n_bins, 2 / n_bins, … 1. ConsensusClusterPlus uses 100
        bins.
        """
        if n_bins is not None:
            n_bins = checks.check_integer(n_bins, "n_bins", minimum=1)
            return float(self.cdf(np.arange(1, n_bins + 1) / n_bins).mean())
        return 1.0 - float((self.consensus * self.counts).sum() / self.n_pairs)

    def entropy(self) -> float:
        """Return the mean of -C ln C - (1 - C) ln(1 - C) over the pairs; M3C's entropy is the sum over the pairs."""
        c = self.consensus
        open_to_doubt = (c > 0) & (c < 1)
        c = c[open_to_doubt]
        nats = -c * natural_logarithms(c) - (1 - c) * natural_logarithms(1 - c)
        return float((nats * self.counts[open_to_doubt]).sum() / self.n_pairs)

    def chance(self) -> "Pairs":
        """Return the expected counts for independent clusterings whose clusters have the same sizes.

        Clustering m puts both objects of a pair into one cluster with probability Σ n_c (n_c - 1) / (N (N - 1)), where
        n_c are the sizes of its clusters. It labels both objects with probability L (L - 1) / (N (N - 1)), where L is
        its number of labelled objects. The number of matches has a Poisson-binomial distribution.
        """
        # table[copresent, matches] is the probability that a pair has these two numbers
        pairs, sure, table = self.n_objects * (self.n_objects - 1), 0, np.ones((1, 1))
        for sizes in self.cluster_sizes:
            labelled = sizes.sum().item()
            together = (sizes * (sizes - 1.0)).sum() / pairs
            labelled_both = labelled * (labelled - 1) / pairs if self.missing == "ignore" else 1.0
            before, table = table, np.zeros((table.shape[0] + (labelled_both < 1), table.shape[1] + 1))
            if labelled_both < 1:
                table[:-1, :-1] = (1 - labelled_both) * before
            else:
                sure += 1
            later = table[-len(before) :]
            later[:, :-1] += (labelled_both - together) * before
            later[:, 1:] += together * before
        copresent, matches = np.nonzero(table)
        counts = table[copresent, matches] * (pairs / 2)
        return Pairs(matches, sure + copresent, counts, self.missing, True, self.cluster_sizes, self.n_objects)

    def corrected_pac(self, lower: float = 0.1, upper: float = 0.9) -> float:
        """Return the PAC divided by the PAC of `chance`.

        The result is 0 without ambiguous pairs, about 1 for independent clusterings, and NaN if `chance` has no
        ambiguous pair.
        """
        expected = self.chance().pac(lower, upper)
        return self.pac(lower, upper) / expected if expected > 0 else float("nan")

    def _up_to(self, thresholds: Any) -> np.ndarray:
        """Return the number of pairs with C ≤ t for each threshold t in ``thresholds``."""
        order = np.argsort(self.consensus, kind="stable")
        reached = np.concatenate([[0], np.cumsum(self.counts[order])])
        thresholds = np.asarray(thresholds, dtype=np.float64)
        if np.isnan(thresholds).any():
            raise ValueError("a threshold is NaN; give numbers from 0 to 1.")
        return reached[np.searchsorted(self.consensus[order], thresholds, side="right")]


@takes_rng
def pairs(
    ens: Any,
    *,
    missing: str = "ignore",
    exact: Any = "auto",
    n_pairs: int = 10**7,
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    device: str = "auto",
) -> Pairs:
    """Count the pairs of objects for each number of clusterings that put both objects into one cluster.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
        The base clusterings (n_objects, n_clusterings).
    missing : {"ignore", "zero"}
        "ignore": C(x, y) is a share of the clusterings that label both x and y (Monti et al., Machine Learning 52
        (2003)), or 0 without such clusterings. "zero": C(x, y) is a share of all clusterings; an object without a label
        is apart from all others.
    exact : {"auto", True, False}
        True counts all pairs; False draws ``n_pairs`` pairs with replacement. "auto" counts all pairs if that takes at
        most 10¹² label comparisons, for example 140,000 distinct label rows in 100 clusterings.
    n_pairs : int
        The number of pairs to draw; any share of the pairs then has a standard error of at most 0.5 / √n_pairs.
    random_state : int, None or numpy.random.Generator
        For the draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses, for a single object and for invalid parameters.
    MemoryError
        If missing="ignore" and (n_clusterings + 1)² counts do not fit the memory, with thousands of clusterings.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.pairs([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2], [0, 0, 1, 1, None]])
    >>> found.matches.tolist(), found.copresent.tolist(), found.counts.tolist()
    ([0, 2, 0, 1, 3], [2, 2, 3, 3, 3], [3, 1, 2, 3, 1])
    >>> found.pac(), round(found.corrected_pac(), 3), found.area()
    (0.3, 0.528, 0.7)
    """
    checks.check_choice(missing, "missing", ("ignore", "zero"))
    if not (isinstance(exact, bool | np.bool_) or (isinstance(exact, str) and exact == "auto")):
        raise ValueError(f"exact must be True, False or 'auto', not {exact!r}.")
    n_pairs = checks.check_integer(n_pairs, "n_pairs", minimum=1)
    rows = core_groups(as_rows(ens, device)).rows
    if rows.n_objects < 2:
        raise ValueError("ens has 1 object, but evidence for pairs needs at least 2; give more objects.")
    n_clusterings, sizes = rows.n_clusterings, rows.cluster_sizes()
    ignore = missing == "ignore" and int(sizes.sum()) < rows.n_objects * n_clusterings
    n_bins = (n_clusterings + 1) ** 2 if ignore else n_clusterings + 1
    checks.check_memory(
        8 * n_bins * HISTOGRAMS * devices.n_threads(),
        devices.memory_budget(),
        f"the counts of pairs by matches and clusterings that label both, of {n_clusterings} clusterings",
        "pass missing='zero', which counts by matches alone",
    )
    if exact == "auto":
        exact = len(rows) * (len(rows) + 1) // 2 * n_clusterings <= MOST_COMPARISONS
    if exact:
        histogram = _count_all(rows, ignore)
    else:
        histogram = _count_drawn(rows, n_pairs, checks.make_generator(random_state), ignore)
    bins = np.flatnonzero(histogram)
    copresent, matches = np.divmod(bins, n_clusterings + 1) if ignore else (np.full_like(bins, n_clusterings), bins)
    cluster_sizes = tuple(np.split(sizes, rows.offsets[1:-1]))
    counts = histogram[bins].astype(np.float64 if histogram.dtype == object else np.int64)
    return Pairs(matches, copresent, counts, missing, bool(exact), cluster_sizes, rows.n_objects)


def count_type(n_objects: int) -> type:
    """Return the dtype of numbers of pairs of objects: int64, or Python's integers where int64 could overflow."""
    return np.int64 if n_objects**2 < 2**63 else object


def _count_all(rows: Rows, ignore: bool) -> np.ndarray:
    """Return the histogram of all pairs of objects."""
    if not prefer_visits(rows):
        if rows.device == "cpu":
            checks.check_memory(
                devices.n_threads() * cpu.LANES * _bytes_of_entry(rows.n_clusterings, ignore) * rows.n_clusters,
                devices.memory_budget(),
                f"a table of {rows.n_clusters:,} clusters for each of {devices.n_threads()} threads",
                "pass exact=False, which draws pairs of objects",
            )
        return count_rows(rows, ignore)
    if not ignore:
        n_pairs = rows.n_objects * (rows.n_objects - 1) // 2
        return count_common_pairs(rows, np.array([n_pairs], dtype=count_type(rows.n_objects)))
    # a clustering that only tells which objects it labels has matches where it labels both
    labelled = np.where(rows.codes == rows.ensemble.missing_code, np.uint8(255), np.uint8(0))
    one_cluster_each = np.arange(rows.n_clusterings + 1)
    patterns = core_groups(Rows.of_codes(np.asfortranarray(labelled), one_cluster_each, rows.counts, "cpu")).rows
    return count_common_pairs(rows, pair_histogram(patterns.codes, patterns.offsets, patterns.counts, False))


def count_rows(rows: Rows, ignore: bool) -> np.ndarray:
    """Return `pair_histogram` of rows on their device; sums beyond int64 are computed on the CPU."""
    vast = count_type(rows.n_objects) is object
    device, counts = ("cpu", rows.counts) if vast else (rows.device, rows.xp.asarray(rows.counts))
    codes = rows.ensemble.codes_on(device)
    return pair_histogram(codes, rows.offsets, counts, ignore, device=device)


def _count_drawn(rows: Rows, n_pairs: int, rng: np.random.Generator, ignore: bool) -> np.ndarray:
    """Return the histogram of random pairs of objects; the two objects differ, and a pair may be drawn repeatedly."""
    xp, ends, n_objects = rows.xp, np.cumsum(rows.counts), rows.n_objects
    histogram = np.zeros(1, dtype=np.int64)
    for start in progress.bar(range(0, n_pairs, DRAWN_AT_ONCE), "pairs of objects"):
        n = min(DRAWN_AT_ONCE, n_pairs - start)
        objects, partners = rng.integers(n_objects, size=n), rng.integers(n_objects - 1, size=n)
        partners += partners >= objects
        first, second = (xp.asarray(np.searchsorted(ends, x, side="right")) for x in (objects, partners))
        histogram = histogram + drawn_histogram(rows.codes, first, second, ignore, device=rows.device)
    return histogram


# --- counting ---------------------------------------------------------------------------------------------------------


@kernels.primitive
def pair_histogram(codes: np.ndarray, offsets: np.ndarray, counts: np.ndarray, ignore: bool) -> np.ndarray:
    """Return the number of pairs of objects in each bin, in host memory: `exact_counts`.

    ``codes`` (G, M) are the distinct label rows, and ``counts`` (G,) their numbers of objects. The bin of a pair is its
    number of matches, 0 … M. With ``ignore``, the bin is (M + 1) · copresent + matches, where copresent is the number
    of clusterings that label both objects.
    """
    n_rows, n_clusterings = codes.shape
    starts = offsets + np.arange(len(offsets))  # each clustering has one additional cluster for missing labels
    # the extension compares rows of one type only
    rows = np.minimum(codes, np.diff(offsets).astype(codes.dtype)).astype(np.uint32, order="C")
    step = n_clusterings + 1 if ignore else 0
    n_bins, wide = (n_clusterings + 1) * (step or 1), count_type(int(counts.sum())) is object
    histogram = np.zeros((1 + wide, n_bins), dtype=np.int64)
    chunks, _ = chunks_of(starts, _bytes_of_entry(n_clusterings, ignore))
    n_blocks = -(-n_rows // cpu.LANES)
    # a turn compares the i-th block and the i-th block from the end, so that all turns take equally long
    n_turns = -(-n_blocks // 2)
    at_once = max(PIECES * devices.n_threads(), -(-n_turns // 100))
    with progress.bar(total=n_turns, description="pairs of rows") as bar:
        for start in range(0, n_turns, at_once):
            stop = min(start + at_once, n_turns)
            cpu.pair_histogram(rows, (starts, chunks), counts, (start, stop), step, histogram)
            bar.update(stop - start)
    low: np.ndarray = histogram[0]
    return low.astype(object) + (histogram[1].astype(object) << LOW_BITS) if wide else low


def _bytes_of_entry(n_clusterings: int, ignore: bool) -> int:
    """Return the bytes of a table's entry: 1 if only matches count; sums of 16 bits hold all bins if they are few."""
    if not ignore:
        return 1
    return 2 if (n_clusterings + 1) ** 2 <= 2**16 else 4


@kernels.primitive
def drawn_histogram(codes: np.ndarray, first: np.ndarray, second: np.ndarray, ignore: bool) -> np.ndarray:
    """Return the number of pairs of rows in each bin of `pair_histogram`.

    Pair i consists of the rows ``first[i]`` and ``second[i]``.
    """
    step = codes.shape[1] + 1 if ignore else 0
    counts = np.zeros(codes.shape[1] + 1 if not ignore else (codes.shape[1] + 1) ** 2, dtype=np.int64)
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
    cpu.drawn_histogram(np.ascontiguousarray(codes.T), first, second, step, counts)
    return counts


# --- kernels/pairs.cu -------------------------------------------------------------------------------------------------


@pair_histogram.kernel
def _(codes: Any, offsets: Any, counts: Any, ignore: bool, *, device: str) -> np.ndarray:
    n_rows = len(codes)
    tiles = -(-n_rows // TILE[0]) * -(-n_rows // TILE[1])
    return _launch("pair_histogram", min(tiles, BLOCKS), (codes.T, counts), codes, ignore, device, n_rows)


@drawn_histogram.kernel
def _(codes: Any, first: Any, second: Any, ignore: bool, *, device: str) -> np.ndarray:
    n_pairs = len(first)
    n_blocks = kernels.blocks(n_pairs, TILE[1], BLOCKS)
    return _launch("drawn_histogram", n_blocks, (codes.T, first, second), codes, ignore, device, n_pairs, len(codes))


def _launch(
    name: str, n_blocks: int, arrays: tuple[Any, ...], codes: Any, ignore: bool, device: str, *sizes: int
) -> np.ndarray:
    """Launch the kernel ``name`` with the given arrays and sizes, and return its histogram."""
    n_clusterings = codes.shape[1]
    step = n_clusterings + 1 if ignore else 0
    n_bins = (n_clusterings + 1) * max(step, 1)
    bins = devices.namespace(device).zeros(n_bins, dtype=np.uint64)
    in_shared = 8 * n_bins <= kernels.SHARED_BYTES - LABELS_BYTES
    kernels.launch(
        name,
        n_blocks,
        TILE[1],
        (*arrays, bins, *sizes, n_clusterings, step, n_bins, np.int32(in_shared)),
        device=device,
        shared=8 * n_bins if in_shared else 0,
        CODE=kernels.c_name(codes.dtype),
    )
    return devices.to_host(bins.view(np.int64))
