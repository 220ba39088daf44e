"""A test whether base clusterings agree more than independent clusterings whose clusters have the same sizes."""

import math
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.scores import sum_of_squares
from gpuens.contingency.tables import cells, pair_tables
from gpuens.labels.rows import as_rows

LEVEL = 0.05  # level of significance


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

    The cost is M² / 2 contingency tables, one for each pair of clusterings. Agreement does not show that the data have
    clusters, because runs of one algorithm also agree on noise. Without agreement, however, the clusterings contain no
    common structure.

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
    pairs = max(rows.n_clusterings * (rows.n_clusterings - 1), 1)  # number of ordered pairs of clusterings
    return BeyondChance(together / pairs, expected / pairs, math.sqrt(variance) / pairs)


class _Parts(NamedTuple):
    """The mean of the matrix A of one clustering, and the sums of squares of the two orthogonal parts of A.

    A_xy is 1 if the objects x and y ≠ x are in one cluster, and otherwise 0. Its parts are a and rest, defined by
    A_xy - mean = a_x + a_y + rest_xy, where Σ_y rest_xy = 0 for every x. The sums of squares are Σ a_x² and Σ rest².
    Under a random permutation of objects, a part of one clustering is correlated only with the same part of another.
    """

    mean: float
    of_objects: float
    rest: float

    @classmethod
    def of(cls, sizes: np.ndarray, n: int) -> "_Parts":
        """Return the mean and the two sums of squares of A for clusters of ``sizes`` (k,), among n objects."""
        mean = float((sizes * (sizes - 1)).sum()) / max(n * (n - 1), 1)
        if n < 3:
            return cls(mean, 0.0, 0.0)
        of_objects = float((sizes * (((sizes - 1) - (n - 1) * mean) / (n - 2)) ** 2).sum())
        return cls(mean, of_objects, max(n * (n - 1) * mean * (1 - mean) - 2 * (n - 2) * of_objects, 0.0))
