"""The transfer cut of the bipartite graph of objects and clusters (Li, Wu & Chang, CVPR 2012).

With X = B diag(w), D_X its row sums, W = Xᵀ D_X⁻¹ X and D the row sums of W, objects are embedded by the k leading
eigenvectors V of D^-½ W D^-½ as D_X⁻¹ X D^-½ V, scaled to length 1, and k-means cuts them. Since D_c = w_c n_c, with
s_c = w_c D_c^-½ the matrix is

    (D^-½ W D^-½)[c, d] = s_c s_d Σ_{objects g in c and d} n_g / (D_X)_g

While there are few clusters it comes from their weighted intersections; above that, a product with it is a look-up per
label and back, and Lanczos finds the eigenvectors. Nothing of size N × N_c is held either way.
"""

import warnings

import numpy as np

from gpuens import contingency
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
    labels = _kmeans(points, sizes, n_clusters, n_init, np.random.default_rng(random_state))
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def embedding(
    ensemble: Ensemble, cluster_weights: np.ndarray, sizes: np.ndarray, n_dimensions: int, *, device: str = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Return (G, n_dimensions) float64 rows of length 1, and the eigenvalues (n_dimensions,), largest first.

    There are fewer dimensions than asked for when there are fewer clusters.
    """
    offsets = ensemble.offsets
    degree = row_sums(ensemble.codes, offsets, cluster_weights, device=device)  # D_X
    share = sizes / degree
    objects_in = cluster_sums(ensemble.codes, offsets, sizes.astype(np.float64), device=device)
    cluster_degree = cluster_weights * objects_in  # D; 0 for clusters without objects
    scale = np.zeros(ensemble.n_clusters)
    np.divide(cluster_weights, np.sqrt(cluster_degree), out=scale, where=cluster_degree > 0)
    n_dimensions = min(n_dimensions, int(np.count_nonzero(cluster_degree)))
    if ensemble.n_clusters <= max(DENSE_UP_TO, 4 * n_dimensions):
        values, vectors = _dense_eigenvectors(ensemble, share, scale, n_dimensions)
    else:
        values, vectors = _lanczos(ensemble, share, scale, n_dimensions, device)
    points = row_lookups(ensemble.codes, offsets, scale[:, None] * vectors, device=device)
    length = np.linalg.norm(points, axis=1, keepdims=True)
    np.divide(points, length, out=points, where=length > 0)
    return points, values


def _dense_eigenvectors(ensemble, share, scale, n_dimensions):
    from scipy.linalg import eigh

    gram = contingency.intersections(ensemble, share, layout="dense")
    gram *= scale[:, None]
    gram *= scale
    n = len(gram)
    values, vectors = eigh(gram, subset_by_index=[n - n_dimensions, n - 1], overwrite_a=True, check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _lanczos(ensemble, share, scale, n_dimensions, device):
    from scipy.sparse.linalg import LinearOperator, eigsh

    codes, offsets = ensemble.codes, ensemble.offsets

    def product(v: np.ndarray) -> np.ndarray:
        on_rows = share * row_sums(codes, offsets, scale * v.ravel(), device=device)
        return scale * cluster_sums(codes, offsets, on_rows, device=device)

    n = ensemble.n_clusters
    start = np.random.default_rng(0).standard_normal(n)  # fixed: the eigenvectors are no matter of chance
    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    values, vectors = eigsh(operator, k=n_dimensions, which="LA", v0=start, tol=1e-9)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _kmeans(points: np.ndarray, sizes: np.ndarray, k: int, n_init: int, rng: np.random.Generator) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        restarts = KMeans(k, n_init=n_init, max_iter=100, random_state=seed)
        if len(points) <= RESTARTS_ON:
            labels = restarts.fit(points, sample_weight=sizes).labels_
        else:
            points = points.astype(np.float32)  # half the memory traffic; rows of length 1 lose nothing that matters
            sample = np.sort(rng.choice(len(points), RESTARTS_ON, replace=False))
            restarts.fit(points[sample], sample_weight=sizes[sample])
            onwards = KMeans(k, init=restarts.cluster_centers_, n_init=1, max_iter=100, copy_x=False)
            labels = onwards.fit(points, sample_weight=sizes).labels_
    if any(issubclass(w.category, ConvergenceWarning) for w in caught):
        warnings.warn(
            f"only {len(np.unique(labels))} of {k} clusters came out: the ensemble tells no more groups apart.",
            UserWarning,
            stacklevel=2,
        )
    return labels
