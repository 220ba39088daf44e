"""The spectrum of base clusterings, and its support for each number of clusters.

A clustering of k_m clusters is a projection: it maps functions of the objects to functions that are constant on its
clusters. The mean of the M projections has eigenvalues λ₁ = 1 ≥ λ₂ ≥ …, which are those of the transfer cut with equal
weights. λ = 1 for a dimension that all clusterings share, and 1 / M for a dimension of a single clustering. The sum
over k dimensions is largest if the clusterings are nested:

    λ₁ + … + λ_k ≤ Σ_m min(k, k_m) / M

Three numbers show that k dimensions belong together and that the next dimension does not. Each has a weakness:

gap     √(1 - λ_{k+1}) - √(1 - λ_k); also large if many clusterings happen to have k clusters
drop    the fall of (λ₁ + … + λ_k) / (its bound) from k to k + 1; corrects for k_m, but is less sensitive to k
ratio   ln (1 - μ_{k+1} + ε) / (1 - μ_k + ε), for the eigenvalues μ with smaller weights for uncertain clusters (ECI)

The support of k is their geometric mean. ε is added to the drop, so that a drop of 0, caused by a dimension that only a
few clusterings have and share, does not remove all support. Only sums over labels are needed, not pairs of objects.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, as_rows
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.partition.transfer_cut import eigenvalues
from gpuens.reduction import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.similarity.coassociation import LWCA

LARGEST = 20  # default largest number of clusters
LEAST_RATIO = 1.75  # ratio of the best support to the next below which several numbers are plausible
LEAST_SUPPORT = 0.05  # least support of a clear number; labels permuted at random had at most .033
FLOOR = 1e-3  # ε, because differences of eigenvalues near 1 are random
TIE = 1e-4  # largest difference of square roots that counts as 0; Lanczos's eigenvalues are exact to 1e-9


@dataclass(frozen=True, repr=False)
class Spectrum:
    """The support for each number of clusters.

    Attributes
    ----------
    numbers : ndarray, int64
        2, 3, … clusters; empty if all objects are equal.
    gaps, drops, ratios : ndarray, float64
        The three parts of the support for each number, see `gpuens.evidence.spectrum`; not negative.
    eigenvalues : ndarray, float64
        λ₁, λ₂, … of the mean projection; their number is the largest number of clusters plus 1.
    """

    numbers: np.ndarray
    gaps: np.ndarray
    drops: np.ndarray
    ratios: np.ndarray
    eigenvalues: np.ndarray

    @cached_property
    def support(self) -> np.ndarray:
        """The geometric mean of gap, drop + ε and ratio for each number."""
        found: np.ndarray = np.cbrt(self.gaps * (self.drops + FLOOR) * self.ratios)
        return found

    @property
    def suggested(self) -> int:
        """The number with the largest support; of equal supports, the smallest number; 1 if all objects are equal."""
        return self.best()[0] if len(self.numbers) else 1

    def best(self, among: Any = None) -> list[int]:
        """Return the numbers, or only those ``among`` some, ordered by falling support."""
        some = self.numbers if among is None else np.intersect1d(self.numbers, among)
        rounded = np.round(self.support[np.searchsorted(self.numbers, some)] / TIE)
        return [int(k) for k in some[np.argsort(-rounded, kind="stable")]]

    def of(self, k: int) -> float:
        """Return the support of a number, or 0 for a number that was not compared."""
        at = np.flatnonzero(self.numbers == k)
        return float(self.support[at[0]]) if len(at) else 0.0

    def close(self, k: int, most: float) -> bool:
        """Return whether a number has nearly as much support as ``most``."""
        return LEAST_RATIO * self.of(k) > most

    @property
    def doubtful(self) -> bool:
        """Whether the best number has little support, or less than 1.75 times that of the next."""
        return self.doubt() is not None

    def doubt(self, among: Any = None) -> str | None:
        """Return the reason why the best number is in doubt, or None without a doubt."""
        best = self.best(among)
        if len(best) < 2:
            return None
        first, second = (self.of(k) for k in best[:2])
        if first < LEAST_SUPPORT:
            return f"none of {min(best)} … {max(best)} clusters has clear support"
        if not self.close(best[1], first):
            return None
        return f"{best[1]} clusters have {second / first:.0%} of the support of {best[0]}"

    def __repr__(self) -> str:
        best = ", ".join(f"{k} ({self.of(k):.3f})" for k in self.best()[:5])
        several = f"{self.suggested} clusters have the most support"
        return checks.summary(
            self,
            several if len(self.numbers) else "all objects are alike",
            support=best,
            doubt=self.doubt() or "",
            see="suggested, support, numbers, eigenvalues",
        )

    def warn_of_doubt(self) -> None:
        """Warn if the suggested number is in doubt, because the user has not chosen it."""
        if (why := self.doubt()) is not None:
            checks.warn(
                f"n_clusters is not given, and the chosen number {self.suggested} is in doubt: {why}; give n_clusters, "
                "or compare numbers by choose_k (gpuens choose)."
            )


def spectrum(labels: Any, largest: int = LARGEST, *, device: str = "auto") -> Spectrum:
    """Return the eigenvalues that base clusterings share, and their support for each number of clusters.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    largest : int
        The largest number of clusters to compare.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses.

    References
    ----------
    Fan, "On a theorem of Weyl concerning eigenvalues of linear transformations", PNAS 35 (1949), for the bound; Li, Wu
    & Chang, "Segmentation using superpixels: a bipartite graph partitioning approach", CVPR 2012, for the transfer cut.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.spectrum([[0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 2, 2]])
    >>> found.suggested, found.support.round(2).tolist()
    (3, [0.48, 0.6, 0.03])
    """
    checks.check_integer(largest, "largest", minimum=2)
    return spectrum_of(core_groups(as_rows(labels, device)).rows, int(largest))


def spectrum_of(rows: Rows, largest: int = LARGEST) -> Spectrum:
    """Return the spectrum of label rows, in memory or in pieces.

    The largest number is at most the number of distinct rows, and smaller than the number of objects, because single
    objects are no useful clusters. A soft clustering counts by the likeliest cluster of each object.
    """
    if isinstance(rows.ensemble, SoftEnsemble):
        rows = rows.hardened()
        sure = np.flatnonzero(devices.to_host((rows.codes != rows.ensemble.missing_code).any(axis=1)))
        if not len(sure):
            none = np.empty(0)
            return Spectrum(none.astype(np.int64), none, none, none, np.ones(1))
        rows = core_groups(rows.take(sure)).rows
    largest = max(1, min(largest, rows.n_rows, rows.n_objects - 1))
    n = largest + 1
    of_equal = eigenvalues(rows, np.ones(rows.n_clusters), n)
    of_sure = eigenvalues(rows, LWCA()(rows).weights.astype(np.float64), n)
    gaps, drops, ratios = _differences(of_equal, of_sure, rows.clusters_in_use())
    return Spectrum(np.arange(2, n), gaps[1:].clip(0.0), drops[1:].clip(0.0), ratios[1:].clip(0.0), of_equal)


def _differences(
    of_equal: np.ndarray, of_sure: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gap, drop and ratio for 1, 2, … clusters, from clusterings of ``sizes`` clusters.

    The clusterings with the most clusters count as if they could have one more; otherwise nothing would show that their
    number suffices.
    """
    sizes = sizes + (sizes == sizes.max())
    at_most = np.minimum(sizes[:, None], np.arange(1, len(of_equal) + 1)).mean(axis=0)
    shared = np.minimum(of_equal.cumsum() / at_most, 1.0)
    return np.diff(np.sqrt(1.0 - of_equal)), -np.diff(shared), np.diff(np.log(1.0 - of_sure + FLOOR))
