"""Coupled similarities: CCSC of clusters within each clustering, and IaOSO of objects through their clusters.

If CCSC_j holds the coupled similarities of the clusters of clustering j, IaOSO is B S Bᵀ for
S = blockdiag(CCSC_1 … CCSC_M) / M. Cluster intersections suffice to compute it, one clustering with all others at a
time.

Wang, Chi, She, Cao & Stantic, "Coupled clustering ensemble by exploring data interdependence", ACM Transactions on
Knowledge Discovery from Data 12 (2018).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens.contingency.clusters import intersections_of, intersections_with
from gpuens.contingency.labels import Table
from gpuens.labels.rows import Rows, as_rows
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu
from gpuens.similarity.base import Features, Measure
from gpuens.similarity.blocks import Blocks

SHARE_OF_BUDGET = 0.25  # share of the memory budget for the intersections of all clusters


@dataclass(frozen=True, eq=False)
class Coupled(Measure):
    """Coupled similarity IaOSO: S = blockdiag(CCSC) / M (eq 6).

    Parameters
    ----------
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the coupling; equal by default.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1], ["b", "a", "a", "b"]])
    >>> ge.similarity.Coupled()(rows).tile(rows, 0, 1).round(3).tolist()
    [[0.55, 0.425, 0.425, 0.321]]
    """

    weights: Any = None
    kind = "blocks"
    learns_by_sums = True

    def refuse_too_many(self, rows: Rows) -> None:
        check_coupling(rows.offsets, self.weights)

    def __call__(self, rows: Rows, features: Features | None = None) -> Blocks:
        blocks = coupling(rows, self.weights)
        blocks.results["coupling"] = blocks.matrices()
        return blocks


# --- clusters ---------------------------------------------------------------------------------------------------------


def coupled_clusters(ens: Any, weights: Any = None, *, device: str = "auto") -> list[np.ndarray]:
    """Return the coupled similarity of the clusters of each clustering, CCSC = IaCSC · IeCSC (eqs 2-5).

    IaCSC(v, v') = n_v n_v' / (n_v + n_v' + n_v n_v') compares sizes. IeCSC(v, v') = Σ_k λ_k Σ_u min(P(u|v), P(u|v'))
    compares the distributions of the two clusters over the clusters u of every other clustering k,
    P(u|v) = |u ∩ v| / n_v.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering in the comparison of clusters of other clusterings; equal by default. For
        clustering j the weights are scaled to sum to 1 over k ≠ j.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    list of M ndarrays (k_m, k_m), float64, symmetric, in host memory
        0 in rows and columns of clusters without objects. A cluster may be more similar to another one than to itself.

    Raises
    ------
    ValueError
        For a single clustering, and for weights that are not M numbers ≥ 0, at least two of them positive.

    Examples
    --------
    >>> import gpuens as ge
    >>> [m.round(2).tolist() for m in ge.similarity.coupled_clusters([[0, 0, 0, 1], ["b", "a", "a", "b"]])]
    [[[0.6, 0.14], [0.14, 0.33]], [[0.5, 0.25], [0.25, 0.5]]]
    """
    return coupling(as_rows(ens, device), weights).matrices()


def coupling(rows: Rows, weights: Any) -> Blocks:
    """Return the CCSC of all clusterings as blocks.

    If an N_c × N_c table exceeds `SHARE_OF_BUDGET`, each clustering is intersected with all others separately, which
    takes twice as long.
    """
    shares_of = check_coupling(rows.offsets, weights)
    if not rows.here or rows.device != "cpu" or 8 * rows.n_clusters**2 <= SHARE_OF_BUDGET * devices.memory_budget():
        layout = "dense" if rows.here and rows.device == "cpu" else "auto"
        shared = intersections_of(rows, layout)
        return coupling_of(shared, rows.offsets, shares_of, device=rows.device if rows.here else "cpu")
    sizes, offsets = rows.cluster_sizes(), rows.offsets

    def work(start: int, stop: int) -> list[np.ndarray]:
        def couple(j: int) -> np.ndarray:
            return _couple_clustering(intersections_with(rows.ensemble, j, rows.counts), sizes, j, offsets, shares_of)

        return [couple(j) for j in range(start, stop)]

    thread_bytes = 24 * rows.n_clusters * int(np.diff(offsets).max())  # bytes per thread
    in_threads = devices.n_threads() * thread_bytes <= SHARE_OF_BUDGET * devices.memory_budget()
    parts = devices.over_ranges(work, rows.n_clusterings, grain=1 if in_threads else rows.n_clusterings)
    return Blocks([matrix for part in parts for matrix in part])


def coupling_of(shared: Table, offsets: np.ndarray, shares_of: np.ndarray, *, device: str = "cpu") -> Blocks:
    """Return the CCSC of all clusterings as blocks, from cluster intersections and the weights λ of the clusterings."""
    sizes = shared.diagonal()
    matrices = []
    for j, (first, last) in enumerate(pairwise(offsets.tolist())):
        table = shared[first:last]
        table = table if isinstance(table, np.ndarray) else table.toarray()
        matrices.append(_couple_clustering(table.T, sizes, j, offsets, shares_of, device))
    return Blocks(matrices)


def _couple_clustering(
    table: np.ndarray,
    sizes: np.ndarray,
    j: int,
    offsets: np.ndarray,
    shares_of: np.ndarray,
    device: str = "cpu",
) -> np.ndarray:
    """Return the CCSC (k_j, k_j) of clustering j from its intersections (N_c, k_j) with all clusters."""
    own_sizes = sizes[offsets[j] : offsets[j + 1]].astype(np.float64)
    spread = np.ascontiguousarray(table / np.maximum(own_sizes, 1))
    other_shares = shares_of.copy()
    other_shares[j] = 0.0
    inter = relative_similarities(spread, offsets, other_shares / other_shares.sum(), device=device)
    product = own_sizes[:, None] * own_sizes
    intra = product / np.maximum(own_sizes[:, None] + own_sizes + product, 1)
    return intra * devices.to_host(inter)


def _clustering_weights(values: Any, n_clusterings: int) -> np.ndarray:
    """Return λ (M,), float64, by default ones; raise ValueError unless λ is finite, ≥ 0, and twice above 0."""
    if n_clusterings < 2:
        raise ValueError(
            "labels hold a single base clustering (1 feature(s)), and coupled similarities compare the clusters of at "
            "least 2; pass more clusterings."
        )
    if values is None:
        return np.ones(n_clusterings)
    must = f"weights must be {n_clusterings} numbers, one per clustering"
    array = checks.host_array(values, must)
    if array.shape != (n_clusterings,) or array.dtype.kind not in "iuf":
        raise ValueError(f"{must}, but have shape {array.shape} and dtype {array.dtype}.")
    array = array.astype(np.float64)
    scaled = array / array.max() if array.size and np.isfinite(array).all() and array.max() > 0 else array
    if not np.isfinite(array).all() or (array < 0).any() or np.count_nonzero(scaled) < 2:
        raise ValueError("weights must be finite and 0 or more, and at least 2 of them positive.")
    return scaled


def check_coupling(offsets: np.ndarray, weights: Any) -> np.ndarray:
    """Return the checked λ; raise MemoryError if the coupling of the clusterings does not fit in memory."""
    shares_of: np.ndarray = _clustering_weights(weights, len(offsets) - 1)
    k = np.diff(offsets)
    checks.check_memory(
        8 * int((k * k).sum() + 4 * k.max() ** 2 + 3 * k.sum() * k.max()),
        devices.memory_budget(),
        f"the coupled similarity of clusterings of up to {k.max()} clusters",
        "take clusterings of fewer clusters",
    )
    return shares_of


@kernels.primitive
def relative_similarities(spread: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Σ_m weights[m] Σ_{u in m} min(spread[u, v], spread[u, v']) for all v, v' (k, k).

    ``spread`` (N_c, k) holds P(u|v); clusterings of weight 0 are skipped. Sums run over the clusters u of each
    clustering in order, then over the clusterings.
    """
    similarities = np.empty((spread.shape[1],) * 2)
    cpu.relative_similarities(np.ascontiguousarray(spread), offsets, weights, similarities)
    return similarities


@relative_similarities.kernel
def _(spread: np.ndarray, offsets: np.ndarray, weights: np.ndarray, *, device: str) -> Any:
    xp, k = devices.namespace(device), spread.shape[1]
    similarities = xp.empty((k, k))
    kernels.launch(
        "relative_similarities", kernels.blocks(k * k, 256), 256,
        (xp.asarray(spread), xp.asarray(offsets), xp.asarray(weights), similarities, k, len(weights)),
        device=device,
    )  # fmt: skip
    return similarities
