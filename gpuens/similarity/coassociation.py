"""Plain and locally weighted co-association: the similarity of clusters is S = diag(w) / M.

Huang, Wang & Lai, "Locally weighted ensemble clustering", IEEE Transactions on Cybernetics 48 (2018) 1460-1473.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.contingency.clusters import intersections_of
from gpuens.contingency.entropies import entropy, entropy_of
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import exponentials
from gpuens.similarity.base import Features, Measure, weights_of_clusters
from gpuens.similarity.diagonal import Diagonal
from gpuens.similarity.observed import ObservedCoassociation

SMALLEST_ECI = 1e-100  # lower bound on ECI, so that a tiny θ cannot make ECI 0


@dataclass(frozen=True, eq=False)
class Coassociation(Measure):
    """Co-association: the share of the clusterings that put two objects into one cluster, S = I / M (eq 12).

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 1], [0, 1, 1]])
    >>> ge.similarity.Coassociation()(rows).tile(rows, 0, 1).tolist()
    [[1.0, 0.5, 0.0]]
    """

    weights: Any = None
    kind = "diagonal"
    learns_by_sums = True
    real_weights = True

    def __call__(self, rows: Rows, features: Features | None = None) -> Diagonal:
        return Diagonal(weights_of_clusters(self.weights, rows), rows.offsets)


@dataclass(frozen=True, eq=False)
class LWCA(Measure):
    """Locally weighted co-association: a shared cluster counts with its ECI, S = diag(ECI) / M (eq 15).

    Parameters
    ----------
    theta : float > 0
        Temperature of ECI; a larger value punishes uncertain clusters less. The paper recommends 0.2 to 1 and uses
        0.4.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1], [0, 0, 1, 1]])
    >>> ge.similarity.LWCA(theta=0.5)(rows).tile(rows, 0, 1).round(2).tolist()
    [[0.7, 0.7, 0.2, 0.0]]
    """

    theta: float = 0.4
    weights: Any = None
    kind = "diagonal"
    learns_by_sums = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_real(self.theta, "theta", above=0.0)

    def __call__(self, rows: Rows, features: Features | None = None) -> Diagonal:
        index = eci_from_entropy(_entropies(rows), self.theta, rows.n_clusterings)
        return Diagonal(index * weights_of_clusters(self.weights, rows), rows.offsets, eci=index)


MEASURES: dict[str, type[Coassociation | ObservedCoassociation]] = {
    "zero": Coassociation,
    "ignore": ObservedCoassociation,
}  # the measure for each meaning of a missing label


def eci(ens: Any, theta: float = 0.4, weights: Any = None, *, device: str = "auto") -> np.ndarray:
    """Return the ensemble-driven cluster index ECI(C) = exp(-H(C) / (θ M)) of every cluster (eq 10).

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    theta : float > 0
        Temperature; a larger value punishes uncertain clusters less. The paper recommends 0.2 to 1.
    weights : array (n_objects,), optional
        Weights of the objects.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    ndarray (n_clusters,), float64, from 1e-100 to 1, in host memory
        1 for a cluster that no clustering splits.

    Warns
    -----
    UserWarning
        If a tiny theta gives less than 1e-100, so that clusters of different uncertainty weigh the same.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.eci([[0, 0, 0, 1], [0, 0, 1, 1]], theta=0.5).round(2).tolist()
    [0.4, 1.0, 1.0, 0.37]
    """
    rows = as_rows(ens, device)
    return eci_from_entropy(_entropies(rows, weights), theta, rows.n_clusterings)


def _entropies(rows: Rows, weights: Any = None) -> np.ndarray:
    """Return the entropy H(C) of every cluster (N_c,), float64; rows may be in Dask's pieces.

    Without weights, the entropies are kept with the rows: the number of clusters and the fit need the same ones.
    """
    if weights is not None:
        return entropy(rows, weights)
    if rows.entropies is None:
        rows.entropies = entropy(rows) if rows.here else entropy_of(intersections_of(rows), rows.offsets)
    return rows.entropies


def eci_from_entropy(h: np.ndarray, theta: float, n_clusterings: int) -> np.ndarray:
    """Return ECI from entropies, at least 1e-100 so that a tiny θ cannot make S vanish; warn if that happens."""
    theta = checks.check_real(theta, "theta", above=0.0)
    h = devices.to_host(h)
    with np.errstate(over="ignore"):  # if the exponent overflows, ECI becomes 0 and then the lower bound
        unbounded = exponentials(-h / (theta * n_clusterings))
    if n_alike := np.count_nonzero(unbounded < SMALLEST_ECI):
        checks.warn(
            f"theta={theta} is so small that {n_alike} of {len(h)} clusters have the smallest ECI, {SMALLEST_ECI}, and "
            "so the same weight; the paper recommends a theta from 0.2 to 1."
        )
    return np.maximum(unbounded, SMALLEST_ECI)


def coassociation(
    ens: Any,
    rows: Any = None,
    cols: Any = None,
    *,
    missing: str = "zero",
    wide: bool = False,
    device: str = "auto",
) -> devices.Array:
    """Return the share of the M clusterings that put two objects into one cluster (eq 12), as a dense block.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    rows, cols : None, slice, mask or array of object indices
        The block; None is all objects. The whole N × N matrix is for small N.
    missing : {"zero", "ignore"}
        "zero": a missing label matches nothing, and the denominator stays M. "ignore": the consensus matrix of Monti et
        al. for clusterings of samples, a share of the clusterings that label both objects.
    wide : bool
        As in `gpuens.Ensemble`.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    array (n_rows, n_cols), float64, in the memory of the labels
        With missing="ignore", NaN for two objects that no clustering labels both.

    Raises
    ------
    ValueError
        For another word as ``missing``.
    MemoryError
        For a block larger than the memory budget, before it is allocated.

    References
    ----------
    Monti et al., "Consensus clustering: a resampling-based method for class discovery", Machine Learning 52 (2003)
    91-118, eq 1.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.coassociation([[0, 0, 1], [0, 1, 1]]).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]

    No clustering has labels of both the first and the last object:

    >>> ge.similarity.coassociation([[0, 0, 1, None], [None, 1, 1, 0]], missing="ignore", rows=[0, 1]).tolist()
    [[1.0, 1.0, 0.0, nan], [1.0, 1.0, 0.5, 0.0]]
    """
    measure = MEASURES[checks.check_choice(missing, "missing", MEASURES)]()
    labels = ens if isinstance(ens, Rows) else Ensemble(ens, wide=wide)
    return _block(measure, as_rows(labels, device), rows, cols)


def lwca(ens: Any, theta: float = 0.4, rows: Any = None, cols: Any = None, *, device: str = "auto") -> devices.Array:
    """Return the locally weighted co-association (eq 15), where a shared cluster counts with its ECI, as a dense block.

    Parameters, results and errors are those of `coassociation`; for ``theta`` see `eci`.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.lwca([[0, 0, 0, 1], [0, 0, 1, 1]], theta=0.5, rows=[0], cols=[1, 2]).round(2).tolist()
    [[0.7, 0.2]]
    """
    return _block(LWCA(theta), as_rows(ens, device), rows, cols)


def _block(
    measure: Coassociation | LWCA | ObservedCoassociation, all_rows: Rows, rows: Any, cols: Any
) -> devices.Array:
    budget = devices.memory_budget(all_rows.device)
    if isinstance(measure, ObservedCoassociation):
        budget //= 3  # two sums and their ratio
    block = checks.check_block(rows, cols, all_rows.n_rows, budget, "co-association")
    return measure(all_rows).block(all_rows, *block)
