"""The spectrum of base clusterings, and its support for each number of clusters.

Clustering m, which has k_m clusters, defines a projection. The projection maps a function of the objects to a function
that is constant on each cluster. The mean of the M projections has eigenvalues λ₁ = 1 ≥ λ₂ ≥ …, which are also the
eigenvalues of the transfer cut with equal weights. An eigenvalue is 1 for a dimension that all clusterings share, and
1 / M for a dimension of a single clustering. The sum of k eigenvalues has an upper bound, which it reaches if the
clusterings are nested:

    λ₁ + … + λ_k ≤ Σ_m min(k, k_m) / M

Three numbers show that the clusterings share k dimensions, but not the next dimension:

gap     √(1 - λ_{k+1}) - √(1 - λ_k); it is also large if many clusterings happen to have k clusters
drop    the decrease of (λ₁ + … + λ_k) / (its bound) from k to k + 1; it corrects for k_m, but is less sensitive to k
ratio   ln (1 - μ_{k+1} + ε) / (1 - μ_k + ε), for the eigenvalues μ with smaller weights for uncertain clusters (ECI)

The support of k is the geometric mean of the three numbers. The constant ε is added to the drop, so that the support is
not 0 if the drop is 0. The drop is 0 if only a few clusterings have a further dimension, and all of them share it. Only
sums over labels are computed, and pairs of objects are not visited.
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
from gpuens.runtime.exponentials import natural_logarithms
from gpuens.similarity.coassociation import LWCA

LARGEST = 20  # default of the largest number of clusters that is compared
# several numbers of clusters are plausible if the largest support divided by the second largest is below this ratio
LEAST_RATIO = 1.75
LEAST_SUPPORT = 0.05  # smallest support of a clear number of clusters; labels permuted at random had at most .033
FLOOR = 1e-3  # the constant ε; it is needed because differences of eigenvalues near 1 are random
# supports that differ by less than this amount are equal; eigenvalues by Lanczos's method have errors up to 1e-9
TIE = 1e-4


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
        """The geometric mean of gap, drop + ε and ratio for each number of clusters."""
        found: np.ndarray = np.cbrt(self.gaps * (self.drops + FLOOR) * self.ratios)
        return found

    @property
    def suggested(self) -> int:
        """The number of clusters with the largest support.

        If several numbers have this support, it is the smallest of them. It is 1 if all label rows are equal.
        """
        return self.best()[0] if len(self.numbers) else 1

    def best(self, among: Any = None) -> list[int]:
        """Return the numbers of clusters in descending order of support.

        If ``among`` is given, return only the numbers that it contains.
        """
        some = self.numbers if among is None else np.intersect1d(self.numbers, among)
        rounded = np.round(self.support[np.searchsorted(self.numbers, some)] / TIE)
        return [int(k) for k in some[np.argsort(-rounded, kind="stable")]]

    def of(self, k: int) -> float:
        """Return the support of k clusters, or 0 if k was not compared."""
        at = np.flatnonzero(self.numbers == k)
        return float(self.support[at[0]]) if len(at) else 0.0

    def close(self, k: int, most: float) -> bool:
        """Return whether k clusters have nearly the support ``most`` (more than ``most`` / 1.75)."""
        return LEAST_RATIO * self.of(k) > most

    @property
    def doubtful(self) -> bool:
        """Whether the best number has little support, or less than 1.75 times the support of the second best number."""
        return self.doubt() is not None

    def doubt(self, among: Any = None) -> str | None:
        """Return the reason why the best number of clusters is in doubt, or None if it is not in doubt."""
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
        """Warn if the suggested number of clusters is in doubt; call this if the user has not given a number."""
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
    """Return the spectrum of label rows, which are in memory or in pieces.

    The largest number of clusters is at most the number of distinct rows. It is smaller than the number of objects,
    because clusters of single objects are not useful. In a soft clustering, each object has the label of its most
    probable cluster.
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
    """Return gap, drop and ratio for 1, 2, … clusters.

    ``sizes`` (M,) are the numbers of clusters of the clusterings. The clusterings with the most clusters are treated as
    if they could have one more cluster. Otherwise, the drop could not show that their number of clusters suffices.
    """
    sizes = sizes + (sizes == sizes.max())
    at_most = np.minimum(sizes[:, None], np.arange(1, len(of_equal) + 1)).mean(axis=0)
    shared = np.minimum(of_equal.cumsum() / at_most, 1.0)
    return np.diff(np.sqrt(1.0 - of_equal)), -np.diff(shared), np.diff(natural_logarithms(1.0 - of_sure + FLOOR))
