"""The number of clusters that base clusterings suggest, with the reason and the doubt.

Two things count: the groups that the clusterings share (`gpuens.evidence.spectrum`), and their own numbers of clusters.
The spectrum alone suggests what is unanimous: 2 clusters if ten programs agree on one small tissue and differ in the
other seven. The own numbers alone mean nothing if somebody drew them at random. The score of k clusters is

    ½ ln (support(k) + 0.03) - (ln k - ln c)² / (2 s²)

with a center c and a width s. Both follow from the effective number of clusters E = exp((H₁ + … + H_M) / M), where H_m
is the entropy of the shares of the objects in the clusters of clustering m; in E, tiny clusters count little.

agreed numbers  at least 30 % of the clusterings have the same number of clusters, and the quartiles of the numbers
                differ by a factor of at most 2.2: c = E and s = 0.1, for k between the quartiles
spread numbers  otherwise, for example k-means with 2 … √N clusters: c = E / 2, or the smallest number of clusters of a
                clustering if that is larger, and s = 1

If one number has by far the largest support, it decides alone. But if it is not between the quartiles of agreed
numbers, its support must be overwhelming, as for k-means with too many clusters, which differs only inside separate
groups. Of spread numbers, the one with the most support also decides alone if halves of the clusterings give the same
transfer cut. A number is passed over if the transfer cut into as many clusters puts over 60 % of the objects into one
cluster, and no clustering does. Constants are from 62 label matrices of real data with known classes and from 36 shapes
(bench/results/quality.md).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuens.evidence.spectrum import LARGEST, LEAST_SUPPORT, Spectrum, spectrum_of
from gpuens.evidence.trial_cuts import halves_agree, largest_cluster, sample_of
from gpuens.labels.rows import Rows, as_rows
from gpuens.reduction import core_groups
from gpuens.runtime import checks
from gpuens.runtime.checks import counted
from gpuens.runtime.exponentials import exponentials, natural_logarithms

LARGEST_RATIO = 1.25  # ratio of the largest number that is compared to the effective number of clusters
MOST_COMPARED = 64  # largest such number; further eigenvalues are slow
LEAST_MODE = 0.3  # smallest share of the clusterings with the same number of clusters for agreed numbers
QUARTILE_RATIO = 2.2  # largest ratio of the upper to the lower quartile of agreed numbers
CENTER_RATIO = 0.5  # ratio of the center of the score to the effective number, for spread numbers
NARROW_WIDTH, WIDE_WIDTH = 0.1, 1.0  # widths s of the score for agreed and for spread numbers
# smallest ratios of the largest support to the second largest for which the spectrum decides alone: if it does not
# contradict agreed numbers, and if it does
LEAST_LEAD, OVERWHELMING_LEAD = 1.4, 3.2
LEAST_EIGENVALUE = 0.5  # smallest eigenvalue of a dimension that the clusterings share, if the support is not known
FLOOR = 0.03  # number that is added to the support, so that a support of 0 does not exclude a number
LARGE_SHARE = 0.6  # share of the objects above which a cluster is large
CLOSE_SCORES = 0.28  # scores that differ by less are close: the support differs by a factor of 1.75
MOST_NAMED = 3  # most other numbers of clusters that the text of a doubt lists
MOST_CUTS = 6  # number of transfer cuts after which a lopsided number is suggested nevertheless


@dataclass(frozen=True, repr=False)
class Suggestion:
    """The number of clusters that base clusterings suggest; see `gpuens.evidence.suggestion`.

    Attributes
    ----------
    spectrum : gpuens.evidence.Spectrum
        The support for each number of clusters.
    sizes : ndarray (n_clusterings,), int64
        The number of clusters of each clustering that has labels.
    effective : float
        The effective number of clusters E of a clustering.
    lopsided : tuple of int
        The numbers that are passed over, because one cluster would have over 60 % of the objects, although no base
        clustering has such a cluster.
    stable : bool
        Whether halves of the clusterings give the same partition into the number of clusters with the most support; it
        is tested only for spread numbers of which none has by far the most support.
    at_most : int, optional
        The largest number that the method allows.
    """

    spectrum: Spectrum
    sizes: np.ndarray
    effective: float
    lopsided: tuple[int, ...] = ()
    stable: bool = False
    at_most: int | None = None

    @cached_property
    def agreed(self) -> bool:
        """Whether the clusterings have similar numbers of clusters, many of them the same number."""
        if not len(self.sizes):
            return False
        low, high = self._quartiles
        return bool(self.most_common[1] >= LEAST_MODE * len(self.sizes) and high <= QUARTILE_RATIO * low)

    @property
    def most_common(self) -> tuple[int, int]:
        """The most common number of clusters, and the number of clusterings that have it."""
        numbers, counts = np.unique(self.sizes, return_counts=True)
        return int(numbers[counts.argmax()]), int(counts.max())

    @cached_property
    def _quartiles(self) -> np.ndarray:
        """The quartiles (2,) of the clusterings' own numbers."""
        return np.quantile(self.sizes, [0.25, 0.75])

    @cached_property
    def numbers(self) -> np.ndarray:
        """The candidate numbers of clusters 2, 3, …, int64; empty if all objects are equal."""
        compared = self.spectrum.numbers
        if not self.agreed or not len(compared) or compared[-1] < MOST_COMPARED:
            return compared
        beyond = int(np.ceil(self._quartiles[1]))
        beyond = beyond if self.at_most is None else min(beyond, self.at_most)
        return np.union1d(compared, np.arange(compared[-1] + 1, beyond + 1))

    @cached_property
    def nearness(self) -> np.ndarray:
        """The second term of the score of each number: 0 at the center c, negative elsewhere."""
        center, width = self.effective, NARROW_WIDTH
        if not self.agreed:
            center, width = max(CENTER_RATIO * self.effective, float(min(self.sizes, default=1))), WIDE_WIDTH
        distance = natural_logarithms(self.numbers / center)
        return -(distance * distance) / (2 * width * width)

    @cached_property
    def score(self) -> np.ndarray:
        """The score of each number."""
        support = np.zeros(len(self.numbers))
        support[: len(self.spectrum.numbers)] = self.spectrum.support
        return 0.5 * natural_logarithms(support + FLOOR) + self.nearness

    def best(self, among: Any = None) -> list[int]:
        """Return the numbers of clusters, the suggested one first and the others by score, largest score first.

        If ``among`` is given, return only the numbers that it contains.
        """
        numbers = self.numbers if among is None else np.intersect1d(self.numbers, among)
        if not len(numbers):
            return []
        score = np.round(self.score[np.searchsorted(self.numbers, numbers)], 6)
        first = self._decided
        inside = self._between_quartiles(numbers) if self.agreed else np.ones(len(numbers), dtype=bool)
        outside = ~inside if inside.any() else np.zeros(len(numbers), dtype=bool)
        order = np.lexsort((numbers, -score, outside, numbers != first, np.isin(numbers, self.lopsided)))
        return [int(k) for k in numbers[order]]

    @cached_property
    def _decided(self) -> int | None:
        """The number that the spectrum decides alone, or None."""
        first = self.spectrum.most_supported
        support = self.spectrum.support.max(initial=0.0)
        if first in self.lopsided or support < LEAST_SUPPORT:
            return None
        if self.spectrum.ratio < LEAST_LEAD:
            return first if self.stable else None
        if self.agreed and self.spectrum.ratio < OVERWHELMING_LEAD:
            return first if self._between_quartiles(np.array([first])).any() else None
        return first

    def _decides_clearly(self, k: int) -> bool:
        """Return whether a clear spectrum decides for k clusters."""
        return k == self._decided and self.spectrum.clear

    def _between_quartiles(self, numbers: np.ndarray) -> np.ndarray:
        low, high = self._quartiles
        return (numbers >= np.floor(low)) & (numbers <= np.ceil(high))

    @property
    def n_clusters(self) -> int:
        """The suggested number of clusters; it is 1 if all label rows are equal."""
        return self.best()[0] if len(self.numbers) else 1

    def close(self, among: Any = None) -> list[int]:
        """Return the numbers that suit about as well as the suggested one; none if a clear spectrum decides."""
        best = self.best(among)
        if not best or self._decides_clearly(best[0]):
            return []
        values = self.score - self.nearness if best[0] == self._decided else self.score
        score_of = dict(zip(self.numbers.tolist(), values.tolist(), strict=True))
        return [k for k in best[1:] if score_of[k] > score_of[best[0]] - CLOSE_SCORES]

    @property
    def doubtful(self) -> bool:
        return self.doubt() is not None

    def doubt(self, among: Any = None) -> str | None:
        """Return a clause about why the suggested number is in doubt, or None if it is not in doubt."""
        best = self.best(among)
        if len(best) < 2:
            return None
        if not self._shares_groups(best):
            return "the clusterings share no clear groups"
        if self.agreed or self._decides_clearly(best[0]):
            return None
        low, high = int(self.sizes.min()), int(self.sizes.max())
        numbers = f"the clusterings have {low} to {high} clusters" if low < high else f"they have {low} clusters"
        also = [str(k) for k in self.close(among)[:MOST_NAMED]]
        if also:
            listed = " and ".join([", ".join(also[:-1]), also[-1]] if len(also) > 1 else also)
            return f"{numbers}, and {listed} clusters suit them about as well"
        return f"{numbers}, and their shared groups do not settle the number"

    def _shares_groups(self, numbers: list[int]) -> bool:
        """Return whether one of the numbers has clear support, or the first is beyond those with support."""
        if numbers[0] > self.spectrum.numbers[-1]:
            return bool(self.spectrum.eigenvalues[-1] >= LEAST_EIGENVALUE)
        return bool((self.spectrum.support[np.isin(self.spectrum.numbers, numbers)] >= LEAST_SUPPORT).any())

    def reason(self, among: Any = None) -> str:
        """Return a clause about why the first of the numbers is suggested."""
        if not len(self.numbers):
            return "all objects are alike"
        k, shared = self.best(among)[0], self.spectrum.most_supported
        number, count = self.most_common
        side = "finer" if shared > k else "coarser"
        contrast = "" if shared == k else f"; the labels in common show {shared} groups most clearly, a {side} choice"
        if self.agreed and (k != self._decided or k == number):
            why = f"{count} of {counted(len(self.sizes), 'clustering')} have {counted(number, 'cluster')}"
            if k != number:
                why += f"; on average, their sizes are as diverse as those of {self.effective:.1f} equal clusters"
            return why + (contrast or ", and share as many groups")
        if k == self._decided:
            return f"the clusterings share {k} groups, and no further one as clearly"
        return f"this number scores best{contrast}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: the suggested number of clusters, why, its doubt, and the numbers of the clusterings."""
        base = {"effective": self.effective, "own_numbers": self.sizes.tolist()}
        return {"n_clusters": self.n_clusters, "reason": self.reason(), "doubt": self.doubt(), **base}

    def warn_of_doubt(self) -> None:
        """Warn if the suggested number of clusters is in doubt; call this if the user has not given a number."""
        if (why := self.doubt()) is not None:
            checks.warn(
                f"n_clusters is not given, and the chosen number {self.n_clusters} is in doubt: {why}; give "
                "n_clusters, or compare numbers by choose_k (gpuens choose)."
            )

    def __repr__(self) -> str:
        return checks.summary(
            self,
            f"{counted(self.n_clusters, 'cluster')} suggested" if len(self.numbers) else "no number suggested",
            why=self.reason(),
            doubt=self.doubt() or "",
            close=", ".join(map(str, self.close()[:MOST_NAMED])) if len(self.numbers) else "",
            see="n_clusters, numbers, score, nearness, spectrum",
        )


def suggestion(labels: Any, largest: int = LARGEST, *, device: str = "auto") -> Suggestion:
    """Return the number of clusters that base clusterings suggest, with its reason and its doubt.

    Estimators without a given number of clusters, `gpuens.cluster` and `gpuens.choose_k` use this suggestion.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    largest : int
        Numbers of clusters up to this are compared, and up to 1.25 times the effective number of clusters of the
        clusterings, but of these at most 64.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.suggestion([[0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 2, 2]])
    >>> found.n_clusters, found.reason()
    (3, '3 of 3 clusterings have 3 clusters, and share as many groups')
    """
    checks.check_integer(largest, "largest", minimum=2)
    return suggestion_of(core_groups(as_rows(labels, device)).rows, int(largest))


def suggestion_of(rows: Rows, largest: int = LARGEST, at_most: int | None = None) -> Suggestion:
    """Return the suggestion by label rows, which are in memory or in pieces; no number is above ``at_most``."""
    sizes, entropies, shares = _describe_clusterings(rows.hardened())
    labelled = sizes > 0
    effective = float(exponentials(np.array([entropies[labelled].mean()]))[0]) if labelled.any() else 1.0
    largest = max(largest, min(int(np.ceil(LARGEST_RATIO * effective)), MOST_COMPARED))
    spectrum = spectrum_of(rows, largest if at_most is None else min(largest, at_most))
    result = Suggestion(spectrum, sizes[labelled], effective, at_most=at_most)
    if not len(spectrum.numbers):
        return result
    undecided = not result.agreed and spectrum.ratio < LEAST_LEAD and spectrum.support.max() >= LEAST_SUPPORT
    members_are_large = shares.max() > LARGE_SHARE
    if members_are_large and not undecided:
        return result
    sample = sample_of(rows)
    if undecided:
        result = replace(result, stable=halves_agree(sample, spectrum.most_supported, entropies))
    if members_are_large:
        return result
    for _ in range(min(MOST_CUTS, len(result.numbers))):
        first = result.n_clusters
        if largest_cluster(sample, first) <= LARGE_SHARE:
            return result
        result = replace(result, lopsided=(*result.lopsided, first))
    return replace(result, lopsided=())


def _describe_clusterings(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of clusters, the entropy and the largest share of each clustering; 0 if it has no labels."""
    shares = [part / part.sum() for part in rows.sizes_by_clustering()]
    sizes = np.array([len(part) for part in shares], dtype=np.int64)
    entropies = np.array([-float((part * natural_logarithms(part)).sum()) for part in shares])
    return sizes, entropies, np.array([part.max(initial=0.0) for part in shares])
