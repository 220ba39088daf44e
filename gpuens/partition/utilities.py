"""k-means in label space whose centres are distributions: KCC's utilities (Wu et al. 2015) and SEC (Liu et al. 2017).

For clustering m, the centre of cluster r is the distribution P_rm of the labels of its labelled members, or of all
objects if no member is labelled. The distance of object x to it is a sum over the clusterings in which x has a label,
each with a weight w_m. So missing labels are left out, whereas other methods still divide by M:

    uc    w (1 + |P|² - 2 P[x_m])            f(P) = |P|²
    uh    -w log2(P[x_m] + ε)                f(P) = Σ P log2 P
    ucos  w (1 - P[x_m] / |P|)               f(P) = |P|
    ulp   w (1 - (P[x_m] / |P|_p)^(p-1))     f(P) = |P|_p

The least sum of distances is the largest utility Σ_m w_m (n_m / N) (Σ_r p_rm f(P_rm) - f(p_m)), with n_m the number of
objects with a label in m, p_rm the share of cluster r among them, and p_m their distribution. The normalised utilities
divide w_m by |f(p_m)|. Without missing labels "uc" is k-means on one-hot labels; centring the labels (QMI) changes
nothing.

SEC is weighted k-means: object x with row b_x of B has the weight w_x, the summed sizes of its clusters, and is at the
point b_x / w_x. So the centre of r is Σ b_x / Σ w_x, and w_x times the distance is, up to the constant |b_x|² / w_x,

    Σ_m |c| |P_r|² - 2 P_r[c],   c = cluster of x in m,   P_r = (share of the members in each cluster) / (mean w of r)
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.base import Partition, Partitioner
from gpuens.partition.label_kmeans import Divergence, label_kmeans
from gpuens.runtime import checks
from gpuens.runtime.exponentials import logarithms, powers

UTILITIES = ("uc", "ucos", "uh", "ulp")
EPSILON = 2.0**-52  # the ε of "uh", as in the authors' program


@dataclass(frozen=True, eq=False)
class UtilityKMeans(Partitioner):
    """k-means by one of KCC's utilities; the parameters are those of `gpuens.KCC`."""

    utility: str = "uh"
    p: float = 5.0
    normalised: bool = False
    weights: Any = None
    n_init: int = 5
    max_iter: int = 20
    tol: float = 1e-5
    random_state: Any = 0
    takes = ("labels",)
    learns_by_sums = True
    takes_shares = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_choice(self.utility, "utility", UTILITIES)
        checks.check_real(self.p, "p", above=1.0, at_most=1000.0)
        if not isinstance(self.normalised, (bool, np.bool_)):
            raise TypeError(f"normalised must be True or False, not {checks.shown(self.normalised)}.")
        _check_parameters(self)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        utility = Utility.of(rows, self.utility, self.p, normalised=self.normalised, weights=self.weights)
        partition = _run_kmeans(self, rows, utility.divergence(), n_clusters)
        partition.results["utility"] = utility.of_objective(partition.results["objective"], rows.n_objects)
        return partition


@dataclass(frozen=True, eq=False)
class SpectralKMeans(Partitioner):
    """SEC's weighted k-means; the parameters are those of `gpuens.SEC`."""

    n_init: int = 10
    max_iter: int = 20
    tol: float = 1e-5
    random_state: Any = 0
    takes = ("labels",)
    learns_by_sums = True
    takes_shares = True
    real_weights = True

    def __post_init__(self) -> None:
        _check_parameters(self)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        return _run_kmeans(self, rows, spectral(rows), n_clusters)


def category_kmeans(
    rows: Rows, n_clusters: int, rng: np.random.Generator, n_init: int = UtilityKMeans.n_init
) -> Partition:
    """Return the result of k-means by the category utility "uc", from which other methods start."""
    divergence, search = Utility.of(rows).divergence(), UtilityKMeans
    return label_kmeans(rows, divergence, n_clusters, n_init=n_init, max_iter=search.max_iter, tol=search.tol, rng=rng)


def _check_parameters(partitioner: Any) -> None:
    checks.check_runs(partitioner.n_init, partitioner.max_iter)
    checks.check_between(partitioner.tol, "tol", 0.0, 1.0)
    checks.make_generator(partitioner.random_state)


def _run_kmeans(partitioner: Any, rows: Rows, divergence: Divergence, n_clusters: int) -> Partition:
    rng = checks.make_generator(partitioner.random_state)
    search: dict[str, Any] = {
        "n_init": partitioner.n_init,
        "max_iter": partitioner.max_iter,
        "tol": float(partitioner.tol),
    }
    partition = label_kmeans(rows, divergence, n_clusters, **search, rng=rng)
    checks.warn_of_fewer(partition.n_clusters, n_clusters)
    return partition


@dataclass(frozen=True)
class Utility:
    """One of KCC's utilities, with the cluster sizes and weights of clusterings that it needs."""

    name: str
    p: float
    weights: np.ndarray  # w_m (M,)
    sizes: np.ndarray  # objects in each cluster (N_c,)
    offsets: np.ndarray

    @classmethod
    def of(
        cls, rows: Rows, name: str = "uc", p: float = 5.0, *, normalised: bool = False, weights: Any = None
    ) -> "Utility":
        """Return a utility whose weights (n_clusterings,), equal by default, are scaled to a mean of 1."""
        checked_weights = checks.check_weights(weights, rows.n_clusterings, of="clustering")
        w = np.ones(rows.n_clusterings) if checked_weights is None else checked_weights / checked_weights.mean()
        utility = cls(name, float(p), w, rows.cluster_sizes().astype(np.float64), rows.offsets)
        if not normalised:
            return utility
        of_all = np.abs(utility.convex(utility.distributions(utility.sizes[:, None]))[:, 0])
        # a constant clustering has no entropy and gets no weight
        w = np.where(of_all > 0, w / np.where(of_all > 0, of_all, 1.0), 0.0)
        return cls(name, utility.p, w, utility.sizes, rows.offsets)

    def divergence(self) -> Divergence:
        """Return the divergence that k-means minimises to maximise the utility."""
        return Divergence(self.costs, partial(unlike_labels, self.offsets))

    def costs(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        P = self.distributions(shares)
        if self.name == "uh":
            cost = -logarithms(P + EPSILON)
        else:
            f = self._spread(self.convex(P))
            if self.name == "uc":
                cost = 1 + f - 2 * P
            else:
                cost = 1 - (P / f if self.name == "ucos" else powers(P / f, self.p - 1))
        return cost * self._spread(self.weights)[:, None], np.zeros(shares.shape[1])

    def distributions(self, members: np.ndarray) -> np.ndarray:
        """Return the distributions P (N_c, K) in all clusterings, from numbers proportional to their members."""
        labelled = self._spread(self._sums(members))
        of_all = self.sizes / np.maximum(self._spread(self._sums(self.sizes)), 1.0)
        return np.where(labelled > 0, members / np.where(labelled > 0, labelled, 1.0), of_all[:, None])

    def convex(self, P: np.ndarray) -> np.ndarray:
        """Return f(P_rm) of the utility for all clusterings m and clusters r, (M, K)."""
        if self.name == "uc":
            return self._sums(P * P)
        if self.name == "uh":
            return self._sums(P * logarithms(np.where(P > 0, P, 1.0)))
        p = self.p if self.name == "ulp" else 2.0
        # so that no power underflows to 0
        largest = np.maximum(np.maximum.reduceat(P, self.offsets[:-1], axis=0), 1e-300)
        return largest * powers(self._sums(powers(P / self._spread(largest), p)), 1 / p)

    def of_objective(self, objective: float, n_objects: int) -> float:
        """Return the utility of a partition whose sum of distances to the centres is ``objective``."""
        pure = 0.0 if self.name == "uh" else 1.0  # f of a cluster whose members all have the same label
        of_all = self.convex(self.distributions(self.sizes[:, None]))[:, 0]
        return float((self.weights * self._sums(self.sizes) * (pure - of_all)).sum() - objective) / n_objects

    def _spread(self, of_clusterings: np.ndarray) -> np.ndarray:
        """Return values of clusterings (M, …), each repeated for all clusters of the clustering, (N_c, …)."""
        return np.repeat(of_clusterings, np.diff(self.offsets), axis=0)

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of values over the clusters of each clustering (M, …)."""
        return np.add.reduceat(values, self.offsets[:-1], axis=0)


def unlike_labels(offsets: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return costs by which the distance of two rows is the number of clusterings in which they differ.

    A label and a missing label count as different. ``shares`` (N_c, K) are the shares of clusters of a single row.
    """
    labelled = np.add.reduceat(shares, offsets[:-1], axis=0)
    return np.repeat(1 - labelled, np.diff(offsets), axis=0) - shares, labelled.sum(axis=0)


def spectral(rows: Rows) -> Divergence:
    """Return the divergence of SEC, w_x times the squared distance of b_x / w_x to a centre."""
    sizes = rows.cluster_sizes().astype(np.float64)

    def costs(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        centres = shares / (sizes[:, None] * shares).sum(axis=0)
        squares = (centres * centres).sum(axis=0)
        return sizes[:, None] * squares - 2 * centres, np.zeros(shares.shape[1])

    return Divergence(costs, partial(unlike_labels, rows.offsets), partial(_own_squares, sizes))


def _own_squares(sizes: np.ndarray, rows: Rows) -> Any:
    """Return |b_x|² / w_x of each row, on its device."""
    return rows.row_sums(np.ones(len(sizes))) / rows.row_sums(sizes)
