"""Co-association, plain and locally weighted: S = diag(w) / M.

Huang, Wang & Lai, "Locally weighted ensemble clustering", IEEE Transactions on Cybernetics 48 (2018) 1460-1473.
"""

from typing import Any

import numpy as np

from gpuens import checks, kernels
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.contingency import entropy
from gpuens.ensemble import Ensemble
from gpuens.incidence import row_sums

LEAST_ECI = 1e-100


def eci(ens: Any, theta: float = 0.4, weights: Any = None, *, device: str = "auto") -> np.ndarray:
    """Return the ensemble-driven cluster index ECI(C) = exp(-H(C) / (θ M)) of every cluster (eq 10).

    Parameters
    ----------
    ens : Ensemble, or anything that Ensemble takes
    theta : float > 0
        How mildly uncertainty is punished; the paper recommends [0.2, 1].
    weights : array (n_objects,), optional
        What each object counts for.
    device : {"auto", "cpu", "cuda", "emulated"}

    Returns
    -------
    ndarray (n_clusters,), float64, from 1e-100 to 1, in host memory
        1 for a cluster that no clustering splits.

    Warns
    -----
    UserWarning
        Where a tiny theta gives less than 1e-100, so that clusters of unlike uncertainty count alike.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.eci([[0, 0, 0, 1], [0, 0, 1, 1]], theta=0.5).round(2).tolist()
    [0.4, 1.0, 1.0, 0.37]
    """
    ens = Ensemble(ens)
    return eci_from_entropy(entropy(ens, weights, device=device), theta, ens.n_clusterings)


def eci_from_entropy(h: np.ndarray, theta: float, n_clusterings: int) -> np.ndarray:
    """Return ECI for entropies already computed, floored so that tiny θ cannot make S vanish; warn where it shows."""
    theta = checks.check_real(theta, "theta", above=0.0)
    with np.errstate(over="ignore"):  # infinitely punished: the floor
        found = np.exp(-h / (theta * n_clusterings))
    if n_alike := np.count_nonzero(found < LEAST_ECI):
        checks.warn(
            f"theta={theta} is so small that {n_alike} of {len(h)} clusters weigh {LEAST_ECI} each, the least that ECI "
            "can be, and count alike; the paper recommends a theta from 0.2 to 1."
        )
    return np.maximum(found, LEAST_ECI)


def coassociation(ens: Any, rows: Any = None, cols: Any = None, *, device: str = "auto") -> Any:
    """Return the share of the M clusterings that put two objects into one cluster (eq 12), as a dense block.

    Parameters
    ----------
    ens : Ensemble, or anything that Ensemble takes
    rows, cols : None, slice, mask or array of object indices
        Which block; None is all objects. The whole N × N matrix is for small N.
    device : {"auto", "cpu", "cuda", "emulated"}

    Returns
    -------
    array (n_rows, n_cols), float64, where the labels came from
        A missing label matches nothing, and the denominator stays M.

    Raises
    ------
    MemoryError
        For a block larger than the memory budget, before it is allocated.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.coassociation([[0, 0, 1], [0, 1, 1]]).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
    ens = Ensemble(ens)
    return _block(ens, np.ones(ens.n_clusters), rows, cols, devices.resolve(device, ens.device_kind))


def lwca(ens: Any, theta: float = 0.4, rows: Any = None, cols: Any = None, *, device: str = "auto") -> Any:
    """Return the locally weighted co-association (eq 15), each shared cluster counting by its ECI, as a dense block.

    Parameters, returns and errors are those of `coassociation`; ``theta`` is that of `eci`.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.lwca([[0, 0, 0, 1], [0, 0, 1, 1]], theta=0.5, rows=[0], cols=[1, 2]).round(2).tolist()
    [[0.7, 0.2]]
    """
    ens = Ensemble(ens)
    device = devices.resolve(device, ens.device_kind)
    return _block(ens, eci(ens, theta, device=device), rows, cols, device)


def self_similarities(ens: Ensemble, cluster_weights: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Return how similar each row is to another object with the same row, Σ of its clusters' weights / M (host)."""
    sums = row_sums(ens.codes_on(device), ens.offsets, cluster_weights, device=device)
    return devices.to_host(sums) / ens.n_clusterings


def _block(ens: Ensemble, cluster_weights: np.ndarray, rows: Any, cols: Any, device: str) -> Any:
    budget = devices.memory_budget(device)
    rows, cols = checks.check_block(rows, cols, ens.n_objects, budget, "co-association")
    xp, codes = devices.namespace(device), ens.codes_on(device)
    block = coassociation_tile(
        codes[xp.asarray(rows)], codes[xp.asarray(cols)], ens.offsets, cluster_weights, device=device
    )
    return devices.move(block, ens.device_kind)


@kernels.primitive
def coassociation_tile(
    row_codes: np.ndarray, col_codes: np.ndarray, offsets: np.ndarray, cluster_weights: np.ndarray
) -> np.ndarray:
    """Return Σ_m w[shared cluster] / M for all pairs of label rows, float64, summed in the order of the clusterings."""
    row_codes = np.ascontiguousarray(row_codes)
    col_codes = np.asfortranarray(col_codes)
    block = np.zeros((len(row_codes), len(col_codes)))

    def work(start: int, stop: int) -> None:
        _tile(start, stop, row_codes, col_codes, offsets, cluster_weights, block)

    devices.over_ranges(work, len(row_codes), grain=64)
    return block


@coassociation_tile.kernel
def _(row_codes: Any, col_codes: Any, offsets: Any, cluster_weights: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    n_rows, n_clusterings = row_codes.shape
    n_cols = len(col_codes)
    block = xp.zeros((n_rows, n_cols))
    kernels.launch(
        "coassociation_tile", (kernels.blocks(n_cols, 32), kernels.blocks(n_rows, 8)), (32, 8),
        (xp.ascontiguousarray(row_codes), xp.ascontiguousarray(col_codes.T), xp.asarray(offsets),
         xp.asarray(cluster_weights, dtype=np.float64), block, n_rows, n_cols, n_clusterings),
        device=device, shared=8 * n_clusterings * row_codes.itemsize, CODE=kernels.c_name(row_codes.dtype),
    )  # fmt: skip
    return block


@njit(cache=True, nogil=True)
def _tile(start, stop, row_codes, col_codes, offsets, weights, block):
    n_clusterings = row_codes.shape[1]
    missing = row_codes.dtype.type(-1)
    for i in range(start, stop):
        for m in range(n_clusterings):
            label = row_codes[i, m]
            if label == missing:
                continue
            weight = weights[offsets[m] + label]
            for j in range(block.shape[1]):
                if col_codes[j, m] == label:
                    block[i, j] += weight
        for j in range(block.shape[1]):
            block[i, j] /= n_clusterings
