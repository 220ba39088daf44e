"""Whether base clusterings agree at all: more than independent ones with clusters of the same sizes would."""

import math
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.scores import sum_of_squares
from gpuens.contingency.tables import cells, pair_tables
from gpuens.labels.rows import as_rows

LEVEL = 0.05  # level of significance


class BeyondChance(NamedTuple):
    """What two clusterings both put together, beside what chance lets them.

    Attributes
    ----------
    together : float
        Pairs of objects that two clusterings both put together, their mean over all pairs of clusterings.
    expected, deviation : float
        Mean and standard deviation of `together` where the labels of each clustering are dealt at random to the objects
        that it labels. Both are exact; where labels are missing they are those for the sizes that the clusters have
        among the objects that two clusterings label.
    """

    together: float
    expected: float
    deviation: float

    @property
    def z(self) -> float:
        """By how many deviations the clusterings agree more than by chance; NaN where chance leaves no choice."""
        return (self.together - self.expected) / self.deviation if self.deviation > 0 else float("nan")

    @property
    def p(self) -> float:
        """The most that the probability of such a z can be by chance: Cantelli's 1 / (1 + z²), 1 below 0.

        It holds for clusterings of any number and sizes, of which a normal distribution says too much.
        """
        z = self.z
        return 1.0 / (1.0 + max(z, 0.0) ** 2) if z == z else z

    @property
    def doubtful(self) -> bool:
        """Whether the agreement may be chance: p > .05."""
        return self.p > LEVEL

    def __str__(self) -> str:
        if self.z != self.z:
            return "nothing about the clusterings can be chance"
        if self.doubtful:
            return f"the clusterings agree no more than independent ones might (z = {self.z:.1f})"
        return f"the clusterings agree beyond chance (z = {self.z:.1f})"


def beyond_chance(labels: Any, *, device: str = "auto") -> BeyondChance:
    """Return how far base clusterings agree beyond chance.

    It takes the M² / 2 tables of two clusterings. That they agree does not say that the data have clusters: runs of one
    algorithm agree about noise, too. That they do not says that there is nothing to find in them.

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
    Fowlkes & Mallows, "A method for comparing two hierarchical clusterings", JASA 78 (1983), for two clusterings. Any
    two of several are uncorrelated with any other two, also where one is in both, so that variances add up.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.beyond_chance([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]])
    >>> round(found.together, 2), round(found.expected, 2), round(found.z, 1)
    (3.33, 1.6, 2.8)
    """
    rows = as_rows(labels, device)
    sizes = np.split(rows.cluster_sizes().astype(np.float64), rows.offsets[1:-1])
    labelled = [int(of_clusters.sum()) for of_clusters in sizes]
    whole = [_Parts.of(of_clusters, n) for of_clusters, n in zip(sizes, labelled, strict=True)]
    together, expected, variance = 0, 0.0, 0.0
    for i, j, table in pair_tables(rows):
        of_i, of_j, counts = cells(table)
        n = int(counts.sum())
        a, b = (
            whole[m] if n == labelled[m] else _Parts.of(np.bincount(own, weights=counts), n)
            for m, own in ((i, of_i), (j, of_j))
        )
        together += int(sum_of_squares(counts)) - n
        expected += n * (n - 1) * a.mean * b.mean
        if n > 2:
            variance += 4.0 * (n - 2) ** 2 / (n - 1) * a.of_objects * b.of_objects
        if n > 3:
            variance += 2.0 / (n * (n - 3)) * a.rest * b.rest
    pairs = max(rows.n_clusterings * (rows.n_clusterings - 1), 1)  # ordered pairs of clusterings, like those of objects
    return BeyondChance(together / pairs, expected / pairs, math.sqrt(variance) / pairs)


class _Parts(NamedTuple):
    """The mean of A_xy = [x and y ≠ x are in one cluster], and the squares of what it differs by.

    A_xy - mean = a_x + a_y + rest, where the rest of no object has a sum: Σ a_x² and Σ rest². Where objects change
    places, the parts of one clustering meet only the same parts of another.
    """

    mean: float
    of_objects: float
    rest: float

    @classmethod
    def of(cls, sizes: np.ndarray, n: int) -> "_Parts":
        """Return the parts of clusters of these sizes (k,), of n objects together."""
        mean = float((sizes * (sizes - 1)).sum()) / max(n * (n - 1), 1)
        if n < 3:
            return cls(mean, 0.0, 0.0)
        of_objects = float((sizes * (((sizes - 1) - (n - 1) * mean) / (n - 2)) ** 2).sum())
        return cls(mean, of_objects, max(n * (n - 1) * mean * (1 - mean) - 2 * (n - 2) * of_objects, 0.0))
