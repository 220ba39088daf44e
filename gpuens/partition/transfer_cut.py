"""The transfer cut of the bipartite graph of objects and clusters (Li, Wu & Chang, CVPR 2012).

With X = B diag(w), D_X its row sums, W = Xᵀ D_X⁻¹ X and D the row sums of W, objects are embedded by the k leading
eigenvectors V of D^-½ W D^-½ as D_X⁻¹ X D^-½ V, scaled to length 1, and k-means cuts them. Since D_c = w_c n_c, with
s_c = w_c D_c^-½ the matrix is

    (D^-½ W D^-½)[c, d] = s_c s_d Σ_{objects g in c and d} n_g / (D_X)_g

While there are few clusters it comes from their weighted intersections; above that, a product with it is a look-up per
label and back, and Lanczos finds the eigenvectors. Nothing of size N × N_c is held either way.
"""

import warnings
from typing import Any

import numpy as np

from gpuens import contingency, kernels, validation
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums, row_lookups, row_sums

DENSE_UP_TO = 2000  # clusters: dense eigenvectors cost O(N_c³)
RESTARTS_ON = 10_000  # rows: k-means restarts see a sample of this size, and the best of them goes on with all rows


def transfer_cut(
    ensemble: Ensemble,
    cluster_weights: np.ndarray,
    sizes: np.ndarray,
    n_clusters: int,
    *,
    n_init: int = 10,
    random_state: int | np.random.Generator | None = 0,
    device: str = "cpu",
) -> np.ndarray:
    """Return the label of each row, 0 … in the order of the clusters' first rows.

    Parameters
    ----------
    ensemble : Ensemble of G rows
    cluster_weights : ndarray (N_c,), float64
        The weight w of each cluster's edges; positive.
    sizes : ndarray (G,), int64
        How many objects each row stands for.
    n_clusters : int
    n_init : int
        Restarts of k-means.
    """
    points, _ = embedding(ensemble, cluster_weights, sizes, n_clusters, device=device)
    labels = _kmeans(points, sizes, n_clusters, n_init, np.random.default_rng(random_state), device)
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def embedding(
    ensemble: Ensemble, cluster_weights: np.ndarray, sizes: np.ndarray, n_dimensions: int, *, device: str = "cpu"
) -> tuple[Any, np.ndarray]:
    """Return (G, n_dimensions) float64 rows of length 1, where ``device`` works, and the eigenvalues, largest first.

    There are fewer dimensions than asked for when there are fewer clusters.
    """
    codes, offsets = ensemble.codes_on(device), ensemble.offsets
    degree = devices.to_host(row_sums(codes, offsets, cluster_weights, device=device))  # D_X
    share = sizes / degree
    objects_in = devices.to_host(cluster_sums(codes, offsets, sizes.astype(np.float64), device=device))
    cluster_degree = cluster_weights * objects_in  # D; 0 for clusters without objects
    scale = np.zeros(ensemble.n_clusters)
    np.divide(cluster_weights, np.sqrt(cluster_degree), out=scale, where=cluster_degree > 0)
    n_dimensions = min(n_dimensions, int(np.count_nonzero(cluster_degree)))
    if ensemble.n_clusters <= max(DENSE_UP_TO, 4 * n_dimensions):
        values, vectors = _dense_eigenvectors(ensemble, share, scale, n_dimensions, device)
    else:
        values, vectors = _lanczos(ensemble, share, scale, n_dimensions, device)
    points = row_lookups(codes, offsets, scale[:, None] * vectors, device=device)
    length = np.sqrt((points * points).sum(axis=1, keepdims=True))
    points /= np.where(length > 0, length, 1.0)
    return points, values


def _dense_eigenvectors(ensemble, share, scale, n_dimensions, device):
    from scipy.linalg import eigh

    gram = contingency.intersections(ensemble, share, layout="dense", device=device)
    gram *= scale[:, None]
    gram *= scale
    n = len(gram)
    values, vectors = eigh(gram, subset_by_index=[n - n_dimensions, n - 1], overwrite_a=True, check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _lanczos(ensemble, share, scale, n_dimensions, device):
    from scipy.sparse.linalg import LinearOperator, eigsh

    codes, offsets = ensemble.codes_on(device), ensemble.offsets
    share = devices.namespace(device).asarray(share)

    def product(v: np.ndarray) -> np.ndarray:
        on_rows = share * row_sums(codes, offsets, scale * v.ravel(), device=device)
        return scale * devices.to_host(cluster_sums(codes, offsets, on_rows, device=device))

    n = ensemble.n_clusters
    start = np.random.default_rng(0).standard_normal(n)  # fixed: the eigenvectors are no matter of chance
    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    values, vectors = eigsh(operator, k=n_dimensions, which="LA", v0=start, tol=1e-9)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _kmeans(points: Any, sizes: np.ndarray, k: int, n_init: int, rng: np.random.Generator, device: str) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        restarts = KMeans(k, n_init=n_init, max_iter=100, random_state=seed)
        if len(points) <= RESTARTS_ON:
            labels = restarts.fit(devices.to_host(points), sample_weight=sizes).labels_
        else:
            points = points.astype(np.float32)  # half the memory traffic; rows of length 1 lose nothing that matters
            sample = np.sort(rng.choice(len(points), RESTARTS_ON, replace=False))
            chosen = devices.to_host(points[devices.namespace(device).asarray(sample)])
            restarts.fit(chosen, sample_weight=sizes[sample])
            labels = devices.to_host(lloyd(points, sizes, restarts.cluster_centers_, device=device))
    if any(issubclass(w.category, ConvergenceWarning) for w in caught):
        validation.clusters_came_out(len(np.unique(labels)), k)
    return labels


@kernels.primitive
def lloyd(points: np.ndarray, sizes: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the labels (G,) of k-means begun at ``centers`` (k, d), row g of ``points`` (G, d) counting sizes[g]."""
    from sklearn.cluster import KMeans

    onwards = KMeans(len(centers), init=centers, n_init=1, max_iter=100, copy_x=False)
    return onwards.fit(points, sample_weight=sizes).labels_


@lloyd.kernel
def _(points: Any, sizes: Any, centers: Any, *, device: str) -> Any:
    """Products of matrices, with scikit-learn's rules for when to stop; a cluster left empty keeps its center."""
    xp = devices.namespace(device)
    sizes = xp.asarray(sizes, dtype=np.float32)
    centers = xp.asarray(centers, dtype=np.float32)
    names = xp.arange(len(centers))
    enough = 1e-4 * float(points.var(axis=0).mean())
    at_once = max(1, devices.scratch(device) // (12 * len(centers)))
    pieces = [slice(start, start + at_once) for start in range(0, len(points), at_once)]
    labels = xp.full(len(points), -1, dtype=np.int64)
    for _ in range(100):
        half_square = (centers * centers).sum(axis=1) / 2
        before, total, weight = labels.copy(), xp.zeros_like(centers), xp.zeros(len(centers), dtype=np.float32)
        for some in pieces:
            labels[some] = (points[some] @ centers.T - half_square).argmax(axis=1)
            counts_for = (labels[some, None] == names) * sizes[some, None]
            total += counts_for.T @ points[some]
            weight += counts_for.sum(axis=0)
        if bool((labels == before).all()):
            return labels
        moved = xp.where(weight[:, None] > 0, total / xp.maximum(weight, 1.0)[:, None], centers)
        shift = float(((moved - centers) ** 2).sum())
        centers = moved
        if shift <= enough:
            break
    half_square = (centers * centers).sum(axis=1) / 2
    for some in pieces:
        labels[some] = (points[some] @ centers.T - half_square).argmax(axis=1)
    return labels
