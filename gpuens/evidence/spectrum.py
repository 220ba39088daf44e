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
# smallest ratio, for a clear number of clusters, of the largest support to the second largest
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
        return np.cbrt(self.gaps * (self.drops + FLOOR) * self.ratios)

    @property
    def most_supported(self) -> int:
        """The number of clusters with the largest support; the smallest of equal ones, and 1 if all objects are equal.

        It suggests a number only together with the clusterings' own numbers, see `gpuens.evidence.suggestion`.
        """
        return int(self.numbers[self._rounded.argmax()]) if len(self.numbers) else 1

    @property
    def clear(self) -> bool:
        """Whether the largest support is at least .05, and at least 1.75 times the second largest."""
        return len(self.numbers) > 0 and bool(self.support.max() >= LEAST_SUPPORT and self.ratio >= LEAST_RATIO)

    @property
    def ratio(self) -> float:
        """The ratio of the largest support to the second largest; infinite if there is no second."""
        second, first = np.sort(np.concatenate([[0.0, 0.0], self.support]))[-2:]
        return float(first / second) if second > 0 else np.inf

    @property
    def _rounded(self) -> np.ndarray:
        return np.round(self.support / TIE)

    def __repr__(self) -> str:
        best = np.argsort(-self._rounded, kind="stable")[:5]
        support = ", ".join(f"{self.numbers[i]} ({self.support[i]:.3f})" for i in best)
        return checks.summary(
            self,
            f"{self.most_supported} clusters have the most support" if len(self.numbers) else "all objects are alike",
            support=support,
            see="support, numbers, eigenvalues",
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
    >>> found.most_supported, found.support.round(2).tolist()
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
        labelled = np.flatnonzero(devices.to_host((rows.codes != rows.ensemble.missing_code).any(axis=1)))
        if not len(labelled):
            empty = np.empty(0)
            return Spectrum(empty.astype(np.int64), empty, empty, empty, np.ones(1))
        rows = core_groups(rows.take(labelled)).rows
    largest = max(1, min(largest, rows.n_rows, rows.n_objects - 1))
    n = largest + 1
    mean_eigenvalues = eigenvalues(rows, np.ones(rows.n_clusters), n)
    lwca_eigenvalues = eigenvalues(rows, LWCA()(rows).weights.astype(np.float64), n)
    gaps, drops, ratios = _differences(mean_eigenvalues, lwca_eigenvalues, rows.clusters_in_use())
    return Spectrum(np.arange(2, n), gaps[1:].clip(0.0), drops[1:].clip(0.0), ratios[1:].clip(0.0), mean_eigenvalues)


def _differences(
    mean_eigenvalues: np.ndarray, lwca_eigenvalues: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gap, drop and ratio for 1, 2, … clusters.

    ``sizes`` (M,) are the numbers of clusters of the clusterings. The clusterings with the most clusters are treated as
    if they could have one more cluster. Otherwise, the drop could not show that their number of clusters suffices.
    """
    sizes = sizes + (sizes == sizes.max())
    bound = np.minimum(sizes[:, None], np.arange(1, len(mean_eigenvalues) + 1)).mean(axis=0)
    shared = np.minimum(mean_eigenvalues.cumsum() / bound, 1.0)
    gaps, ratios = np.diff(np.sqrt(1.0 - mean_eigenvalues)), np.diff(natural_logarithms(1.0 - lwca_eigenvalues + FLOOR))
    return gaps, -np.diff(shared), ratios
