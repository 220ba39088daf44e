"""What base clusterings share, dimension by dimension, and how many clusters it supports.

A clustering of k_m clusters is a projection, of functions of the objects to those that are constant on its clusters.
The mean of the M projections has eigenvalues λ₁ = 1 ≥ λ₂ ≥ …, those of the transfer cut with equal weights: λ = 1 for
a dimension that all clusterings have, and 1 / M for one that no two have. What k dimensions share is at most as much as
if the clusterings were nested,

    λ₁ + … + λ_k ≤ Σ_m min(k, k_m) / M

Three numbers tell that k dimensions belong together and the next one does not. Each alone is misled by something:

    gap     √(1 - λ_{k+1}) - √(1 - λ_k), also large where many clusterings happen to have k clusters
    drop    by how much the share of what could be shared falls from k to k + 1, which knows k_m, but less of k itself
    ratio   ln (1 - μ_{k+1} + ε) / (1 - μ_k + ε), of the eigenvalues μ where unsure clusters count less (ECI)

Their geometric mean is the support of k; ε is added to the drop, so that a dimension that few clusterings have, but all
of these, does not take everything from k. It takes sums over labels, and no pair of objects.
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

LARGEST = 20  # number of clusters, if not given
LEAST_RATIO = 1.75  # ratio of the best support to the next, below which several numbers are plausible
LEAST_SUPPORT = 0.05  # least support of a clear number: labels dealt at random had at most .033
FLOOR = 1e-3  # ε: differences of eigenvalues near 1 are chance
TIE = 1e-4  # difference between square roots that counts as none: Lanczos's eigenvalues are exact to 1e-9


@dataclass(frozen=True, repr=False)
class Spectrum:
    """The support for each number of clusters.

    Attributes
    ----------
    numbers : ndarray, int64
        2, 3, … clusters; empty where all objects are alike.
    gaps, drops, ratios : ndarray, float64
        What supports each number, see `gpuens.evidence.spectrum`; not negative.
    eigenvalues : ndarray, float64
        λ₁ … of the mean projection, one more than the largest number.
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
        """The number with the largest support, of equal ones the smallest; 1 where all objects are alike."""
        return self.best()[0] if len(self.numbers) else 1

    def best(self, among: Any = None) -> list[int]:
        """Return the numbers, or those ``among`` them, by their support, best first."""
        some = self.numbers if among is None else np.intersect1d(self.numbers, among)
        rounded = np.round(self.support[np.searchsorted(self.numbers, some)] / TIE)
        return [int(k) for k in some[np.argsort(-rounded, kind="stable")]]

    def of(self, k: int) -> float:
        """Return the support of a number, 0 for one that is not among those compared."""
        at = np.flatnonzero(self.numbers == k)
        return float(self.support[at[0]]) if len(at) else 0.0

    def close(self, k: int, most: float) -> bool:
        """Whether a number has nearly as much support as ``most``."""
        return LEAST_RATIO * self.of(k) > most

    @property
    def doubtful(self) -> bool:
        """Whether the best number has little support, or less than 1.75 times that of the next."""
        return self.doubt() is not None

    def doubt(self, among: Any = None) -> str | None:
        """Return in words why the best number is in doubt, None if it is not."""
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
        """Warn where the suggested number is in doubt: nobody asked for it."""
        if (why := self.doubt()) is not None:
            checks.warn(
                f"n_clusters is not given, and the {self.suggested} chosen are in doubt: {why}; say how many, or "
                "compare numbers by choose_k (gpuens choose)."
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
    """Return the spectrum of rows, in memory or in pieces.

    There are no more clusters than rows that differ, and fewer than objects: each on its own is no answer. Soft
    clusterings count by the likeliest cluster of each object, if it has one.
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
    """Return gap, drop and ratio of 1, 2, … clusters, of clusterings with these numbers of clusters.

    Those with the most clusters could have had one more, or nothing would tell that they are enough.
    """
    sizes = sizes + (sizes == sizes.max())
    at_most = np.minimum(sizes[:, None], np.arange(1, len(of_equal) + 1)).mean(axis=0)
    shared = np.minimum(of_equal.cumsum() / at_most, 1.0)
    return np.diff(np.sqrt(1.0 - of_equal)), -np.diff(shared), np.diff(np.log(1.0 - of_sure + FLOOR))
