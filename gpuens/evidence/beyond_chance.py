"""A test whether base clusterings agree more than independent clusterings whose clusters have the same sizes."""

import math
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.counting import over_cells
from gpuens.contingency.distinct import Distinct
from gpuens.contingency.labels import labels_of
from gpuens.contingency.scores import sum_of_squares
from gpuens.evidence.pairs import count_rows, count_type
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks
from gpuens.runtime.defaults import LEVEL
from gpuens.runtime.native import cpu


class BeyondChance(NamedTuple):
    """The number of pairs of objects that two clusterings both put together, compared with its value by chance.

    Attributes
    ----------
    together : float
        The number of pairs of objects that two clusterings both put together, averaged over all pairs of clusterings.
    expected, deviation : float
        Mean and standard deviation of `together` if the labels of each clustering are permuted at random among its
        labelled objects. Both are exact. With missing labels, they hold for the cluster sizes among the objects that
        both of two clusterings label.
    """

    together: float
    expected: float
    deviation: float

    @property
    def z(self) -> float:
        """The agreement beyond chance in standard deviations; NaN if every permutation gives the same agreement."""
        return (self.together - self.expected) / self.deviation if self.deviation > 0 else float("nan")

    @property
    def p(self) -> float:
        """An upper bound of the probability that chance gives this z or a larger one.

        The bound is Cantelli's 1 / (1 + z²), or 1 for z < 0. It holds for any number of clusterings and any sizes of
        clusters. A normal distribution would give probabilities that are too small.
        """
        z = self.z
        return 1.0 / (1.0 + max(z, 0.0) ** 2) if z == z else z

    @property
    def doubtful(self) -> bool:
        """Whether the agreement may be due to chance, which is assumed if p > .05."""
        return self.p > LEVEL

    def __str__(self) -> str:
        if self.z != self.z:
            return "nothing about the clusterings can be chance"
        if self.doubtful:
            return f"the clusterings agree no more than independent ones might (z = {self.z:.1f})"
        return f"the clusterings agree beyond chance (z = {self.z:.1f})"


def beyond_chance(labels: Any, *, device: str = "auto") -> BeyondChance:
    """Return the agreement of base clusterings compared with chance.

    The cost is D² / 2 contingency tables, one for each pair of D distinct clusterings, or G² M / 2 label comparisons if
    the G label rows lack no label and are at most D. Agreement does not show that the data have clusters, because runs
    of one algorithm also agree on noise. Without agreement, however, the clusterings contain no common structure.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses.

    References
    ----------
    Fowlkes & Mallows, "A method for comparing two hierarchical clusterings", JASA 78 (1983), for two clusterings. The
    agreements of two different pairs of clusterings are uncorrelated, even if they share a clustering, so variances
    add up.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.beyond_chance([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]])
    >>> round(found.together, 2), round(found.expected, 2), round(found.z, 1)
    (3.33, 1.6, 2.8)
    """
    rows = as_rows(labels, device)
    distinct = Distinct.among(labels_of(rows.ensemble, rows.device))
    sizes = np.split(rows.cluster_sizes(), rows.offsets[1:-1])
    complete = all(s.sum() == rows.n_objects for s in sizes)
    if complete and rows.n_rows <= len(distinct.times):
        together, expected, variance = _sum_matches(rows, sizes)
    else:
        together, expected, variance = _sum_tables(rows, sizes, distinct)
    pairs = max(rows.n_clusterings * (rows.n_clusterings - 1), 1)  # number of ordered pairs of clusterings
    return BeyondChance(together / pairs, float(expected / pairs), math.sqrt(variance) / pairs)


def _sum_matches(rows: Rows, sizes: list[np.ndarray]) -> tuple[int, float, float]:
    """Return the sums over the pairs of clusterings without missing labels, from the matches of pairs of rows.

    Two objects with b matches are together in b (b - 1) / 2 pairs of clusterings. The moments of a pair of clusterings
    are sums of products, with a factor from either clustering.
    """
    counts = count_rows(rows, False)
    together = sum(b * (b - 1) * n for b, n in enumerate(counts.tolist()))
    parts = _Parts.of_clusterings(sizes)
    before, later = _Parts(*(np.cumsum(field)[:-1] for field in parts)), _Parts(*(field[1:] for field in parts))
    expected, variance = _moments(np.full(len(later.mean), rows.n_objects), before, later).sum(axis=1)
    return together, expected, variance


def _sum_tables(rows: Rows, all_sizes: list[np.ndarray], distinct: Distinct) -> tuple[int, float, float]:
    """Return the sums over the pairs of clusterings, from the contingency tables of the distinct ones."""
    sizes = [all_sizes[m] for m in np.unique(distinct.of, return_index=True)[1]]
    n = np.array([s.sum() for s in sizes])
    squares = [sum_of_squares(s) for s in sizes]
    times, adding = distinct.times, Lock()
    together = sum(t * (t - 1) // 2 * (s - k) for t, s, k in zip(times.tolist(), squares, n.tolist(), strict=True))
    fits = rows.n_objects**2 * rows.n_clusterings < 2**62  # whether sums of numbers of pairs fit int64
    vast = count_type(rows.n_objects) is object
    # expected values and variances of the pairs of distinct clusterings in order, so that threads do not change sums
    starts = np.concatenate([[0], np.cumsum(np.arange(len(n) - 1, 0, -1))]).astype(np.int64)
    moments = np.zeros((2, starts[-1]))

    def add(cells: cpu.Cells) -> None:
        nonlocal together
        sums: Any = np.zeros((len(cells.starts) - 1, 7), dtype=np.float64 if vast else np.int64)
        cpu.sums_of_squares(cells, sums)
        spreads = np.empty((len(sums), 2))
        cpu.unevenness(cells, spreads)
        i, partners = cells.i, slice(cells.first, cells.first + len(sums))
        place = starts[i] + cells.first - i - 1
        n_common = sums[:, 3]
        sides = (_Parts.of(n_common, sums[:, 5 + side], spreads[:, side]) for side in (0, 1))
        moments[:, place : place + len(sums)] = times[i] * times[partners] * _moments(n_common, *sides)
        pairs = sums[:, 4] - n_common
        if fits:
            n_together = int(np.dot(times[partners], pairs))
        else:  # Python's integers are exact, so that the order of threads does not matter
            n_together = sum(t * int(n) for t, n in zip(times[partners].tolist(), pairs.tolist(), strict=True))
        with adding:
            together += int(times[i]) * n_together

    over_cells(distinct.labels, checks.check_weights(rows.counts, rows.n_rows), add)
    parts = _Parts.of_clusterings(sizes)
    expected, variance = moments.sum(axis=1) + _moments(n, parts, parts) @ (times * (times - 1) // 2)
    return together, expected, variance


def _spread(sizes: np.ndarray) -> float:
    """Return Σ s (s - mean)², where the mean of the sizes s is over the objects."""
    sizes = sizes.astype(np.float64)
    mean = (sizes @ sizes) / max(sizes.sum(), 1.0)
    return float(sizes @ (sizes - mean) ** 2)


def _moments(n: np.ndarray, a: "_Parts", b: "_Parts") -> np.ndarray:
    """Return the expected values and the variances (2, tables) of pairs of clusterings with n (tables,) objects."""
    n = n.astype(np.float64)
    of_objects = np.divide(4.0 * (n - 2) ** 2, n - 1, out=np.zeros_like(n), where=n > 2) * a.of_objects * b.of_objects
    of_rest = np.divide(2.0, n * (n - 3), out=np.zeros_like(n), where=n > 3) * a.rest * b.rest
    return np.stack([n * (n - 1) * a.mean * b.mean, of_objects + of_rest])


class _Parts(NamedTuple):
    """The mean of the matrix A of one clustering, and the sums of squares of the two orthogonal parts of A.

    A_xy is 1 if the objects x and y ≠ x are in one cluster, and otherwise 0. Its parts are a and rest, defined by
    A_xy - mean = a_x + a_y + rest_xy, where Σ_y rest_xy = 0 for every x. The sums of squares are Σ a_x² and Σ rest².
    Under a random permutation of objects, a part of one clustering is correlated only with the same part of another.
    """

    mean: np.ndarray
    of_objects: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, n: np.ndarray, squares: np.ndarray, spread: np.ndarray) -> "_Parts":
        """Return the parts of a clustering's matrix A, for each of several contingency tables.

        ``n`` is the number of objects, ``squares`` Σ s² over the sizes s of the clusters, ``spread`` Σ s (s - mean)².
        """
        n = n.astype(np.float64)
        mean = (squares - n) / np.maximum(n * (n - 1), 1.0)
        of_objects = np.divide(spread, (n - 2) ** 2, out=np.zeros_like(n), where=n > 2)
        rest = np.maximum(n * (n - 1) * mean * (1 - mean) - 2 * (n - 2) * of_objects, 0.0)
        return cls(mean, of_objects, np.where(n > 2, rest, 0.0))

    @classmethod
    def of_clusterings(cls, sizes: list[np.ndarray]) -> "_Parts":
        """Return the parts of the matrix A of each clustering, from the sizes of its clusters."""
        squares = np.array([sum_of_squares(s) for s in sizes], dtype=np.float64)
        return cls.of(np.array([s.sum() for s in sizes]), squares, np.array(list(map(_spread, sizes))))
