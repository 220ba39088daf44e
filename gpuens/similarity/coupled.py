"""Coupled similarities: of clusters within each clustering (CCSC), and of objects through their clusters (IaOSO).

With M_j the coupled similarities of the clusters of clustering j, objects are as similar as B S Bᵀ says for
S = blockdiag(M_1 … M_M) / M. All follows from cluster intersections, one clustering against the others at a time.

Wang, Chi, She, Cao & Stantic, "Coupled clustering ensemble by exploring data interdependence", ACM Transactions on
Knowledge Discovery from Data 12 (2018).
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens import checks, contingency, kernels
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums, row_sums

SHARE_OF_BUDGET = 0.25  # that the intersections of all clusters may take


class Blocks(NamedTuple):
    """A block-diagonal S in one array: block m is ``values[starts[m] : starts[m + 1]]``, k_m × k_m, row after row."""

    starts: Any  # (M + 1,) int64
    values: Any  # float64

    @classmethod
    def of(cls, matrices: list[np.ndarray]) -> "Blocks":
        starts = np.cumsum([0, *(matrix.size for matrix in matrices)])
        return cls(starts, np.concatenate([matrix.ravel() for matrix in matrices]))

    def matrices(self) -> list[np.ndarray]:
        """Return the blocks as views (k_m, k_m)."""
        bounds = list(zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True))
        return [self.values[a:b].reshape(-1, round((b - a) ** 0.5)) for a, b in bounds]

    def diagonal(self) -> np.ndarray:
        """Return S[c, c] of every cluster (N_c,)."""
        return np.concatenate([matrix.diagonal() for matrix in self.matrices()])

    def on(self, device: str) -> "Blocks":
        """Return the blocks where a device works."""
        xp = devices.namespace(device)
        return Blocks(xp.asarray(self.starts), xp.asarray(self.values))


# --- clusters ---------------------------------------------------------------------------------------------------------


def coupled_clusters(ens: Any, weights: Any = None, *, device: str = "auto") -> list[np.ndarray]:
    """Return the coupled similarity of the clusters of each clustering, CCSC = IaCSC · IeCSC (eqs 2-5).

    IaCSC(v, v') = n_v n_v' / (n_v + n_v' + n_v n_v') compares sizes; IeCSC(v, v') = Σ_k λ_k Σ_u min(P(u|v), P(u|v'))
    compares how the two clusters spread over the clusters u of every other clustering k, P(u|v) = |u ∩ v| / n_v.

    Parameters
    ----------
    ens : Ensemble, or anything that Ensemble takes
    weights : array (n_clusterings,), optional
        λ: what each clustering counts for when the clusters of others are compared; equal if not given. They are
        scaled to sum to 1 over the clusterings k ≠ j.
    device : {"auto", "cpu", "cuda", "emulated"}

    Returns
    -------
    list of M ndarrays (k_m, k_m), float64, symmetric, in host memory
        0 in rows and columns of clusters without objects. A cluster is not always the most similar to itself.

    Raises
    ------
    ValueError
        For a single clustering, and for weights that are not M numbers from 0 on, at least two of them positive.

    Examples
    --------
    >>> import gpuens as ge
    >>> [m.round(2).tolist() for m in ge.similarity.coupled_clusters([[0, 0, 0, 1], ["b", "a", "a", "b"]])]
    [[[0.6, 0.14], [0.14, 0.33]], [[0.5, 0.25], [0.25, 0.5]]]
    """
    ens = Ensemble(ens)
    return coupling(ens, None, weights, device=devices.resolve(device, ens.device_kind)).matrices()


def coupling(ens: Ensemble, counts: Any, weights: Any, *, device: str = "cpu") -> Blocks:
    """Return the CCSC of all clusterings as blocks (host), row g of the ensemble standing for counts[g] objects.

    Where N_c × N_c is more than a quarter of the memory budget, each clustering is counted against all others on its
    own, which takes twice as long.
    """
    shares_of = _coupling_fits(ens.offsets, weights)
    if device != "cpu" or 8 * ens.n_clusters**2 <= SHARE_OF_BUDGET * devices.memory_budget():
        layout = "dense" if device == "cpu" else "auto"
        return coupling_of(
            contingency.intersections(ens, counts, layout=layout, device=device), ens.offsets, weights, device=device
        )
    sizes, offsets = cluster_objects(ens, counts), ens.offsets

    def work(start: int, stop: int) -> list[np.ndarray]:
        def couple(j: int) -> np.ndarray:
            return _coupled(contingency.intersections_with(ens, j, counts), sizes, j, offsets, shares_of, _relative)

        return [couple(j) for j in range(start, stop)]

    held = 24 * ens.n_clusters * int(np.diff(offsets).max())  # by each thread
    in_threads = devices.n_threads() * held <= SHARE_OF_BUDGET * devices.memory_budget()
    found = devices.over_ranges(work, ens.n_clusterings, grain=1 if in_threads else ens.n_clusterings)
    return Blocks.of([matrix for some in found for matrix in some])


def coupling_of(shared: contingency.Table, offsets: np.ndarray, weights: Any, *, device: str = "cpu") -> Blocks:
    """Return what `coupling` does, of cluster intersections counted before."""
    shares_of = _coupling_fits(offsets, weights)
    sizes, relative = shared.diagonal(), partial(relative_similarities, device=device)
    matrices = []
    for j, (first, last) in enumerate(pairwise(offsets.tolist())):
        table = shared[first:last]
        table = table if isinstance(table, np.ndarray) else table.toarray()
        matrices.append(_coupled(table.T, sizes, j, offsets, shares_of, relative))
    return Blocks.of(matrices)


def _coupled(
    table: np.ndarray,
    sizes: np.ndarray,
    j: int,
    offsets: np.ndarray,
    shares_of: np.ndarray,
    relative: Callable[[np.ndarray, np.ndarray, np.ndarray], Any],
) -> np.ndarray:
    """Return the CCSC (k_j, k_j) of clustering j from the objects that its clusters share with all, (N_c, k_j)."""
    own = sizes[offsets[j] : offsets[j + 1]].astype(np.float64)
    spread = np.ascontiguousarray(table / np.maximum(own, 1))
    others = shares_of.copy()
    others[j] = 0.0
    inter = relative(spread, offsets, others / others.sum())
    product = own[:, None] * own
    intra = product / np.maximum(own[:, None] + own + product, 1)
    coupled: np.ndarray = intra * devices.to_host(inter)
    return coupled


def _clustering_weights(values: Any, n_clusterings: int) -> np.ndarray:
    """Return λ, one finite weight from 0 on a clustering (float64, ones if not given), two of them positive."""
    if n_clusterings < 2:
        raise ValueError(
            "labels hold a single base clustering (1 feature(s)), and coupled similarities compare the clusters of at "
            "least 2; pass more clusterings."
        )
    if values is None:
        return np.ones(n_clusterings)
    must = f"weights must be {n_clusterings} numbers, one a clustering"
    array = checks.host_array(values, must)
    if array.shape != (n_clusterings,) or array.dtype.kind not in "iuf":
        raise ValueError(f"{must}, but have shape {array.shape} and dtype {array.dtype}.")
    array = array.astype(np.float64)
    scaled = array / array.max() if array.size and np.isfinite(array).all() and array.max() > 0 else array
    if not np.isfinite(array).all() or (array < 0).any() or np.count_nonzero(scaled) < 2:
        raise ValueError("weights must be finite and 0 or more, and at least 2 of them positive.")
    return scaled


def _coupling_fits(offsets: np.ndarray, weights: Any) -> np.ndarray:
    """Return λ, or refuse it, or clusterings whose coupling does not fit."""
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

    ``spread`` (N_c, k) holds P(u|v); clusterings of weight 0 are passed over. Sums run over the clusters u of each
    clustering in their order, and then over the clusterings.
    """
    return _relative(spread, offsets, weights, devices.over_ranges)


def _relative(
    spread: np.ndarray, offsets: np.ndarray, weights: np.ndarray, over_ranges: Callable | None = None
) -> np.ndarray:
    """Return `relative_similarities`, in threads if given what spreads the work over them."""
    k = spread.shape[1]
    similarities = np.zeros((k, k))
    if over_ranges is None:
        _relative_rows(0, k, spread, offsets, weights, similarities)
    else:
        over_ranges(lambda a, b: _relative_rows(a, b, spread, offsets, weights, similarities), k, grain=8)
    lower = np.tril_indices(k, -1)
    similarities[lower] = similarities.T[lower]
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


@njit(cache=True, nogil=True)
def _relative_rows(start, stop, spread, offsets, weights, similarities):
    k = spread.shape[1]
    for v in range(start, stop):
        of_one = np.empty(k)
        for m in range(len(weights)):
            if weights[m] == 0.0:
                continue
            for other in range(v, k):
                of_one[other] = 0.0
            for u in range(offsets[m], offsets[m + 1]):
                share = spread[u, v]
                if share == 0.0:  # adds nothing
                    continue
                for other in range(v, k):
                    of_one[other] += min(share, spread[u, other])
            for other in range(v, k):
                similarities[v, other] += weights[m] * of_one[other]


# --- objects ----------------------------------------------------------------------------------------------------------


def coupled_objects(ens: Any, rows: Any = None, cols: Any = None, *, weights: Any = None, device: str = "auto") -> Any:
    """Return IaOSO, the mean over the clusterings of the CCSC of two objects' clusters (eq 6), as a dense block.

    Parameters
    ----------
    ens : Ensemble, or anything that Ensemble takes
    rows, cols : None, slice, mask or array of object indices
        Which block; None is all objects. The whole N × N matrix is for small N.
    weights : array (n_clusterings,), optional
        λ, see `coupled_clusters`.
    device : {"auto", "cpu", "cuda", "emulated"}

    Returns
    -------
    array (n_rows, n_cols), float64, where the labels came from
        An object whose label is missing is similar to none in that clustering, and the denominator stays M.

    Raises
    ------
    MemoryError
        For a block larger than the memory budget, before it is allocated.
    ValueError
        See `coupled_clusters`.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.coupled_objects([[0, 0, 0, 1], ["b", "a", "a", "b"]], rows=[0], cols=[1, 2, 3]).round(3).tolist()
    [[0.425, 0.425, 0.321]]
    """
    ens = Ensemble(ens)
    device = devices.resolve(device, ens.device_kind)
    budget = devices.memory_budget(device)
    rows, cols = checks.check_block(rows, cols, ens.n_objects, budget, "coupled similarity")
    xp, codes = devices.namespace(device), ens.codes_on(device)
    blocks = coupling(ens, None, weights, device=device).on(device)
    block = coupled_tile(codes[xp.asarray(rows)], codes[xp.asarray(cols)], ens.offsets, blocks, device=device)
    return devices.move(block, ens.device_kind)


def coupled_operator(ens: Any, *, weights: Any = None, device: str = "auto") -> Any:
    """Return IaOSO of all objects as an operator: products with the N × N matrix B S Bᵀ, which is never built.

    Parameters
    ----------
    ens, weights, device
        See `coupled_clusters`.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator (n_objects, n_objects), float64, symmetric
        A product with a vector (host memory) is a look-up per label and back, O(N M + Σ k_m²).

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1], ["b", "a", "a", "b"]]
    >>> np.allclose(ge.similarity.coupled_operator(labels) @ np.eye(4), ge.similarity.coupled_objects(labels))
    True
    """
    from scipy.sparse.linalg import LinearOperator

    ens = Ensemble(ens)
    device = devices.resolve(device, ens.device_kind)
    matrices = coupling(ens, None, weights, device=device).matrices()
    xp, codes, offsets = devices.namespace(device), ens.codes_on(device), ens.offsets

    def product(v: np.ndarray) -> np.ndarray:
        of_objects = xp.asarray(v.ravel(), dtype=np.float64)
        on_clusters = devices.to_host(cluster_sums(codes, offsets, of_objects, device=device))
        parts = zip(matrices, np.split(on_clusters, offsets[1:-1]), strict=True)
        spread = np.concatenate([matrix @ part for matrix, part in parts]) / ens.n_clusterings
        return devices.to_host(row_sums(codes, offsets, spread, device=device))

    shape = ens.n_objects, ens.n_objects
    return LinearOperator(shape, matvec=product, rmatvec=product, dtype=np.float64)


@kernels.primitive
def coupled_tile(row_codes: np.ndarray, col_codes: np.ndarray, offsets: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Return Σ_m block_m[a_m, b_m] / M for all pairs of label rows, float64, summed in the order of the clusterings."""
    row_codes, col_codes = np.ascontiguousarray(row_codes), np.asfortranarray(col_codes)
    tile = np.zeros((len(row_codes), len(col_codes)))
    devices.over_ranges(
        lambda a, b: add_similarities(row_codes[a:b], col_codes, offsets, blocks.starts, blocks.values, tile[a:b]),
        len(row_codes),
        grain=64,
    )
    return tile


@coupled_tile.kernel
def _(row_codes: Any, col_codes: Any, offsets: Any, blocks: Blocks, *, device: str) -> Any:
    xp, (n_rows, n_clusterings), n_cols = devices.namespace(device), row_codes.shape, len(col_codes)
    starts, values = blocks.on(device)
    tile = xp.empty((n_rows, n_cols))
    kernels.launch(
        "coupled_tile", kernels.blocks(n_rows * n_cols, 256), 256,
        (xp.ascontiguousarray(row_codes), xp.ascontiguousarray(col_codes.T), xp.asarray(offsets), starts, values, tile,
         n_rows, n_cols, n_clusterings),
        device=device, CODE=kernels.c_name(row_codes.dtype),
    )  # fmt: skip
    return tile


@njit(cache=True, nogil=True)
def add_similarities(row_codes, col_codes, offsets, starts, values, tile):
    """Add to a tile of zeros what `coupled_tile` returns; columns of ``col_codes`` are contiguous."""
    n_clusterings = row_codes.shape[1]
    missing = row_codes.dtype.type(-1)
    for i in range(tile.shape[0]):
        for m in range(n_clusterings):
            if row_codes[i, m] == missing:
                continue
            k = offsets[m + 1] - offsets[m]
            first = starts[m] + row_codes[i, m] * k
            row = values[first : first + k]
            for j in range(tile.shape[1]):
                label = col_codes[j, m]
                if label != missing:
                    tile[i, j] += row[label]
        for j in range(tile.shape[1]):
            tile[i, j] /= n_clusterings


def self_similarities(ens: Ensemble, blocks: Blocks, *, device: str = "cpu") -> np.ndarray:
    """Return the IaOSO of each row and itself (G,), host, with the bits that `coupled_tile` gives it."""
    sums = row_sums(ens.codes_on(device), ens.offsets, blocks.diagonal(), device=device)
    return devices.to_host(sums) / ens.n_clusterings


def mean_similarity(ens: Ensemble, counts: np.ndarray, blocks: Blocks, *, device: str = "cpu") -> float:
    """Return the mean IaOSO of two different objects, row g standing for counts[g] of them; 0 if there is but one.

    Closed form: Σ_m Σ_vv' n_v n_v' M_m[v, v'] counts every ordered pair and the objects themselves.
    """
    n_objects = int(counts.sum())
    if n_objects < 2:
        return 0.0
    sizes = cluster_objects(ens, counts, device=device).astype(np.float64)
    total = 0.0
    for m, matrix in enumerate(blocks.matrices()):
        own = sizes[ens.offsets[m] : ens.offsets[m + 1]]
        total += own @ matrix @ own - own @ matrix.diagonal()
    return float(total / ens.n_clusterings / n_objects / (n_objects - 1))


# --- clusters of all clusterings --------------------------------------------------------------------------------------


def between_clusters(ens: Ensemble, counts: np.ndarray, blocks: Blocks, *, device: str = "cpu") -> np.ndarray:
    """Return the mean IaOSO over the objects of every two clusters of the ensemble (eq 24), (N_c, N_c), host.

    With p_c the shares of cluster c in all clusters it is p_cᵀ S p_d: no pair of objects is visited. 0 for clusters
    without objects.
    """
    _all_clusters_fit(ens.n_clusters)
    return between_clusters_of(contingency.intersections(ens, counts, layout="dense", device=device), blocks)


def between_clusters_of(shared: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Return what `between_clusters` does, of dense cluster intersections counted before."""
    _all_clusters_fit(len(shared))
    shares = shared / np.maximum(shared.diagonal(), 1)[:, None]
    spread = np.empty_like(shares)
    first, matrices = 0, blocks.matrices()
    for matrix in matrices:
        own = slice(first, first + len(matrix))
        spread[:, own] = shares[:, own] @ matrix
        first += len(matrix)
    similarities: np.ndarray = spread @ shares.T
    similarities /= len(matrices)
    return (similarities + similarities.T) / 2  # the same number both ways


def _all_clusters_fit(n_clusters: int) -> None:
    checks.check_memory(
        40 * n_clusters**2,
        devices.memory_budget(),
        f"the similarity of all {n_clusters} clusters",
        "take fewer clusterings, or clusterings of fewer clusters",
    )


def cluster_objects(ens: Ensemble, counts: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Return the number of objects in each cluster (N_c,), int64, host."""
    sums = cluster_sums(ens.codes_on(device), ens.offsets, devices.namespace(device).asarray(counts), device=device)
    return devices.to_host(sums)
