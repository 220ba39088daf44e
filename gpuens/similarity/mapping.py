"""Mapping coefficients: the weighted share of each cluster in an object's reference set (ECRMC's P^r).

Cao, Chang & Zhao, "A new ensemble clustering algorithm using a reconstructed mapping coefficient", KSII Transactions on
Internet and Information Systems 14 (2020) 2957-2980.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import as_features
from gpuens.labels.rows import Rows
from gpuens.runtime import checks, kernels, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu
from gpuens.similarity.base import Features, Measure, weights_of_clusters
from gpuens.similarity.full import Full
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.reference_sets import reference_sets

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_NEIGHBORS = 50  # largest default value of n_neighbors
AT_ONCE = 2**22  # largest number of coefficients that the CPU computes together


def mapping_coefficients(ens: Any, features: Any, n_neighbors: int, *, device: str = "auto") -> "csr_array":
    """Return P^r: the share of each cluster in the reference set of each object, within each clustering (eqs 6-11).

    The reference set of an object is its T nearest other objects, weighted by λ_j = 1 - d_j / Σ d.
    (In the paper's eq 10 p_il should read p_jl.)

    Parameters
    ----------
    ens : Ensemble, or anything that Ensemble takes
    features : array or DataFrame (n_objects, n_features)
        Features of the objects; they are not scaled. Distances are Euclidean.
    n_neighbors : int
        T, from 1 to n_objects - 1. Of equally distant objects the first ones are taken.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    scipy.sparse.csr_array (n_objects, n_clusters), float64, in host memory
        At most T non-zeros per object and clustering, which sum to 1; none if no reference is labelled in that
        clustering.

    Raises
    ------
    ValueError, TypeError
        For features of other objects and for T out of range.
    MemoryError
        If the coefficients do not fit the memory budget.

    Notes
    -----
    For a single reference, or references that all coincide with the object, eq 6 gives 0 or 0 / 0; their weight is then
    1 each.

    References
    ----------
    Cao, Chang & Zhao (2020), KSII Transactions on Internet and Information Systems 14.

    Examples
    --------
    >>> import gpuens as ge
    >>> X = [[0.0], [1.0], [3.0], [10.0]]
    >>> mapping = ge.similarity.mapping_coefficients([[0, 0, 1, 1], [0, 1, 2, 2]], X, n_neighbors=2)
    >>> mapping.toarray()[:2].round(2).tolist()
    [[0.75, 0.25, 0.0, 0.75, 0.25], [0.67, 0.33, 0.67, 0.0, 0.33]]
    """
    ens = Ensemble(ens)
    device = devices.resolve(device, ens.device_kind)
    points = points_of(features, ens.n_objects, device)
    n_neighbors = _check_n_neighbors(n_neighbors, ens.n_objects)
    return map_objects(ens, reference_sets(points, n_neighbors, device=device), device=device)


@dataclass(frozen=True, eq=False)
class Mapping(Measure):
    """B S Bᵀ / M, where S is the rank correlation of the clusters' mapping coefficients (eqs 15, 17).

    Parameters
    ----------
    n_neighbors : int, optional
        T, the size of an object's reference set, from 1 to n_objects - 1. None: a tenth of the average
        class size, N / (10 k), but at least 2 and at most 50. k is `n_clusters`, or by default the fewest clusters of
        any base clustering.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; S of clusterings m and m' is multiplied by λ_m λ_m'.
        Equal by default.

    Notes
    -----
    Coefficients and S are computed from all objects, whatever the reduction; similarities may be negative.
    """

    n_neighbors: int | None = None
    weights: Any = None
    kind = "full"
    any_sign = True
    needs_features = True

    def __post_init__(self) -> None:
        if self.n_neighbors is not None:
            checks.check_integer(self.n_neighbors, "n_neighbors", minimum=1)

    def __call__(self, rows: Rows, features: Features | None = None) -> Full:
        assert features is not None  # checked by the caller
        ensemble, device = features.ensemble, rows.device
        points = points_of(features.values, ensemble.n_objects, device)
        n_neighbors = self._n_neighbors(ensemble, features.n_clusters)
        mapping = map_objects(ensemble, reference_sets(points, n_neighbors, device=device), device=device)
        similarity = matrix = rank_correlation(mapping, device=device)
        if self.weights is not None:
            of_clusters = weights_of_clusters(self.weights, rows)
            matrix = similarity * of_clusters * of_clusters[:, None]
        results = {"mapping": mapping, "cluster_similarity": similarity, "n_neighbors": n_neighbors}
        return Full(matrix, rows.offsets, **results)

    def _n_neighbors(self, ensemble: Ensemble, n_clusters: int | None) -> int:
        n_objects = ensemble.n_objects
        if self.n_neighbors is not None:
            return _check_n_neighbors(self.n_neighbors, n_objects)
        k = int(np.diff(ensemble.offsets).min()) if n_clusters is None else n_clusters
        return min(max(2, round(n_objects / (10 * k))), MOST_NEIGHBORS, n_objects - 1)


def _check_n_neighbors(value: Any, n_objects: int) -> int:
    """Return the checked number of neighbours; raise ValueError if it exceeds the number of other objects, N - 1."""
    if n_objects < 2:
        raise ValueError(f"n_neighbors={checks.shown(value)} needs others, but there is {n_objects} object.")
    return checks.check_integer(value, "n_neighbors", minimum=1, maximum=n_objects - 1)


def points_of(features: Any, n_objects: int, device: str) -> Any:
    """Return the checked features of ``n_objects`` objects as float64 (N, D) on a device."""
    points = as_features(features, device, name="features")
    if hasattr(points, "tocsr"):
        raise TypeError("features are a sparse matrix, but reference sets take dense ones: pass features.toarray().")
    if len(points) != n_objects:
        raise ValueError(
            f"features have {len(points)} rows and the labels are those of {n_objects} objects; pass the features of "
            "the same objects in the same order."
        )
    return points.astype(np.float64, copy=False)


def map_objects(ens: Ensemble, references: Any, *, device: str = "cpu") -> "csr_array":
    """Return the mapping coefficients of all objects from their `reference_sets`; zeros without neighbours."""
    from scipy.sparse import csr_array

    shape, n_neighbors = (ens.n_objects, ens.n_clusters), references.n_neighbors
    if n_neighbors == 0:
        return csr_array(shape)
    room = np.minimum(np.diff(ens.offsets), n_neighbors)  # (M,): largest number of coefficients of an object
    room_each = int(room.sum())
    step = devices.scratch(device) // 32
    step = min(AT_ONCE, step // 2) if device == "cpu" else step
    step = max(1, step // max(room_each, 2 * n_neighbors))
    codes = ens.codes_on(device)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    n_coefficients = 0
    budget = devices.memory_budget()
    with progress.bar(total=ens.n_objects, description="mapping coefficients") as bar:
        for start in range(0, ens.n_objects, step):
            stop = min(start + step, ens.n_objects)
            ids, distances = references.nearest(start, stop)
            clusters, values, counts = coefficients(ids, distances, codes, ens.offsets, device=device)
            parts.append(_drop_unused_places(clusters, values, counts, room, device))
            n_coefficients += len(parts[-1][0])
            # extrapolated to all objects, and doubled because joining the parts copies them
            checks.check_memory(
                24 * n_coefficients * ens.n_objects // stop,
                budget,
                f"the mapping coefficients of {ens.n_objects} objects to {ens.n_clusters} clusters",
                "take a smaller n_neighbors, or fewer objects",
            )
            bar.update(stop - start)
    clusters, values, counts = map(np.concatenate, zip(*parts, strict=True))
    return csr_array((values, clusters, np.concatenate([[0], np.cumsum(counts)])), shape=shape)


def _drop_unused_places(clusters: Any, values: Any, counts: Any, room: np.ndarray, device: str) -> tuple[Any, ...]:
    """Return the used clusters and coefficients, object by object, and the number of them for each object (host)."""
    xp = devices.namespace(device)
    clustering = np.repeat(np.arange(len(room)), room)
    place = np.arange(len(clustering)) - (np.cumsum(room) - room)[clustering]
    is_used = xp.asarray(place) < counts[:, xp.asarray(clustering)]
    return tuple(devices.to_host(array) for array in (clusters[is_used], values[is_used], counts.sum(axis=1)))


@kernels.primitive
def coefficients(ids: np.ndarray, distances: np.ndarray, codes: np.ndarray, offsets: np.ndarray) -> cpu.Coefficients:
    """Return the coefficients of R objects from their reference sets ``ids``, ``distances`` (R, T).

    Returns ``clusters`` (R, places), int32, ``values`` (R, places), float64, and ``counts`` (R, M), int32. Clustering m
    has min(T, k_m) adjacent places; the first ``counts[i, m]`` of them are used, in ascending order of clusters, and
    the others are 0. Sums run over the references, nearest first; the sums of eq 11 run over the clusters.
    """
    firsts, shape = _places(offsets, *ids.shape)
    counts = np.zeros((len(ids), len(firsts)), dtype=np.int32)
    mapped = cpu.Coefficients(np.zeros(shape, dtype=np.int32), np.zeros(shape), counts)
    columns = np.ascontiguousarray(codes.T)
    cpu.mapping_coefficients(cpu.ReferenceSets(ids, distances), columns, offsets, firsts, mapped)
    return mapped


def _places(offsets: np.ndarray, n_rows: int, n_neighbors: int) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the first place of each clustering, and the shape of all places."""
    room = np.minimum(np.diff(offsets), n_neighbors)
    return np.cumsum(room) - room, (n_rows, int(room.sum()))


# --- kernels/mapping.cu -----------------------------------------------------------------------------------------------


@coefficients.kernel
def _(ids: Any, distances: Any, codes: Any, offsets: np.ndarray, *, device: str) -> cpu.Coefficients:
    xp, (n_rows, n_neighbors) = devices.namespace(device), ids.shape
    n_objects, n_clusterings = codes.shape
    firsts, shape = _places(offsets, n_rows, n_neighbors)
    clusters, values = xp.zeros(shape, dtype=np.int32), xp.zeros(shape)
    counts = xp.empty((n_rows, n_clusterings), dtype=np.int32)
    kernels.launch(
        "mapping_coefficients", kernels.blocks(n_rows * n_clusterings, 128), 128,
        (ids, distances, codes.T, xp.asarray(offsets), xp.asarray(firsts), clusters, values, counts, n_rows,
         n_neighbors, n_objects, n_clusterings, shape[1]),
        device=device, CODE=kernels.c_name(codes.dtype),
    )  # fmt: skip
    return cpu.Coefficients(clusters, values, counts)
