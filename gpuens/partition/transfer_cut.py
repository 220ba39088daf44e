"""The transfer cut of the bipartite graph of objects and clusters (Li, Wu & Chang, CVPR 2012).

With X = B diag(w), D_X its row sums, W = Xᵀ D_X⁻¹ X and D the row sums of W, objects are embedded by the k leading
eigenvectors V of D^-½ W D^-½ as D_X⁻¹ X D^-½ V, scaled to length 1, and k-means cuts them. Since D_c = w_c n_c, with
s_c = w_c D_c^-½ the matrix is

    (D^-½ W D^-½)[c, d] = s_c s_d Σ_{objects g in c and d} n_g / (D_X)_g

While there are few clusters it comes from their weighted intersections; above that, a product with it is a look-up per
label and back, and Lanczos finds the eigenvectors. Nothing of size N × N_c is held either way.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import checks, contingency, kernels, scattered
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums, row_lookups, row_sums

DENSE_UP_TO = 2000  # clusters: dense eigenvectors cost O(N_c³)
RESTARTS_ON = 10_000  # rows: k-means restarts see a sample of this size, and the best of them goes on with all rows
TOLERANCE = 1e-9  # of Lanczos's eigenvalues, the largest of which is 1
ROUGH = 1e-2  # tolerance that is enough to see that an eigenvalue is far below others
TINY = 1e-8  # share of the least length of an eigenvector's entries: below it they are rounding
STEP_BYTES = 2**26  # of points and distances that are worked out at once


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
    n_clusters = checks.check_n_clusters(n_clusters, len(sizes))
    checks.check_runs(n_init)
    _points_fit(len(sizes), ensemble.n_clusters, n_clusters, device)
    table, _ = _table(ensemble, cluster_weights, sizes, n_clusters, device)
    points = _all_points(ensemble.codes_on(device), ensemble.offsets, table, device)
    labels = _kmeans(points, sizes, n_clusters, n_init, checks.make_generator(random_state), device)
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def embedding(
    ensemble: Ensemble, cluster_weights: np.ndarray, sizes: np.ndarray, n_dimensions: int, *, device: str = "cpu"
) -> tuple[Any, np.ndarray]:
    """Return (G, n_dimensions) float64 rows of length 1, where ``device`` works, and the eigenvalues, largest first.

    There are fewer dimensions than asked for when there are fewer clusters.
    """
    table, values = _table(ensemble, cluster_weights, sizes, n_dimensions, device)
    return _points(ensemble.codes_on(device), ensemble.offsets, table, device), values


def _table(
    ensemble: Ensemble, cluster_weights: np.ndarray, sizes: np.ndarray, n_dimensions: int, device: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the table (N_c, d) whose rows of a row's clusters sum to its point, host, and the eigenvalues."""
    codes, offsets = ensemble.codes_on(device), ensemble.offsets
    share = _shares(ensemble, sizes, cluster_weights, device=device)
    on_device = devices.namespace(device).asarray(share)
    return _leading(
        objects_in(ensemble, sizes, device=device),
        cluster_weights,
        n_dimensions,
        lambda: contingency.intersections(ensemble, share, layout="dense", device=device),
        lambda v: _there_and_back(codes, offsets, on_device, v, device),
    )


def _points_fit(n_rows: int, n_clusters: int, n_dimensions: int, device: str) -> None:
    """Refuse rows whose points, or clusters whose eigenvectors, do not fit."""
    a_row = 8 if n_rows > RESTARTS_ON else 24  # points, and as much again in k-means
    eigenvectors = 40 * n_clusters * (n_dimensions + 8)
    checks.check_memory(
        a_row * n_rows * n_dimensions + eigenvectors,
        devices.memory_budget(device),
        f"the transfer cut of {n_rows} rows and {n_clusters} clusters into {n_dimensions}",
        "ask for fewer clusters or reduce the rows first, reduction=CATree(…) or Sample(…)",
    )


def objects_in(ensemble: Ensemble, sizes: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Return the number of objects in each cluster (N_c,), float64, host."""
    sums = cluster_sums(ensemble.codes_on(device), ensemble.offsets, sizes.astype(np.float64), device=device)
    return devices.to_host(sums)


def _shares(ensemble: Ensemble, sizes: np.ndarray, cluster_weights: np.ndarray, *, device: str) -> np.ndarray:
    """Return n_g / (D_X)_g of each row (G,), host."""
    degree = devices.to_host(row_sums(ensemble.codes_on(device), ensemble.offsets, cluster_weights, device=device))
    return sizes / degree


def _leading(
    objects: np.ndarray,
    cluster_weights: np.ndarray,
    n_dimensions: int,
    gram: Callable[[], np.ndarray],
    product: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return D^-½ V diag(w) (N_c, d) and the eigenvalues, from a Gram matrix of clusters or from products with it."""
    degree = cluster_weights * objects  # D; 0 for clusters without objects
    scale = np.zeros(len(degree))
    np.divide(cluster_weights, np.sqrt(degree), out=scale, where=degree > 0)
    n_dimensions = min(n_dimensions, int(np.count_nonzero(degree)))
    dense = len(degree) <= max(DENSE_UP_TO, 4 * n_dimensions)
    if not dense:
        from scipy.sparse.linalg import ArpackError

        try:
            values, vectors = _lanczos(product, scale, n_dimensions)
        except ArpackError:  # no convergence
            dense = True
    if dense:
        checks.check_memory(
            32 * len(degree) ** 2,  # the matrix, a copy of it, and what LAPACK works on
            devices.memory_budget(),
            f"the transfer cut into {n_dimensions} clusters needs all eigenvectors of {len(degree)} clusters, which",
            "ask for fewer clusters, or take clusterings of fewer clusters",
        )
        values, vectors = _dense_eigenvectors(gram(), scale, n_dimensions)
    # D^½ 1 is the eigenvector of the eigenvalue 1, so that only clusters that are not connected to others can be
    # shorter here: with more such components than dimensions they are nothing but rounding, and have no direction
    length = np.sqrt((vectors * vectors).sum(axis=1))
    vectors = np.where((length > TINY * np.sqrt(degree / degree.sum()))[:, None], vectors, 0.0)
    return scale[:, None] * vectors, values


def _points(codes: Any, offsets: np.ndarray, table: np.ndarray, device: str) -> Any:
    return _embedded(codes, offsets, table, device)[0]


def _all_points(codes: Any, offsets: np.ndarray, table: np.ndarray, device: str) -> Any:
    """Return points (G, d); of more rows than restarts see as float32, made some rows after others.

    That is half the memory and its traffic, and rows of length 1 lose nothing that matters.
    """
    if len(codes) <= RESTARTS_ON:
        return _points(codes, offsets, table, device)
    points = devices.namespace(device).empty((len(codes), table.shape[1]), dtype=np.float32)
    at_once = max(256, min(STEP_BYTES, devices.scratch(device)) // (16 * table.shape[1]))
    for start in range(0, len(codes), at_once):
        some = slice(start, start + at_once)
        points[some] = _points(codes[some].copy(order="F"), offsets, table, device)
    return points


def _embedded(codes: Any, offsets: np.ndarray, table: np.ndarray, device: str) -> tuple[Any, Any]:
    """Return points (G, d) scaled to length 1, and what they were scaled by (G, 1)."""
    points = row_lookups(codes, offsets, table, device=device)
    length = np.sqrt((points * points).sum(axis=1, keepdims=True))
    length = np.where(length > 0, length, 1.0)
    points /= length
    return points, length


def _there_and_back(codes: Any, offsets: np.ndarray, share: Any, v: np.ndarray, device: str) -> np.ndarray:
    """Return Bᵀ diag(share) B v (N_c,), host."""
    on_rows = share * row_sums(codes, offsets, v, device=device)
    return devices.to_host(cluster_sums(codes, offsets, on_rows, device=device))


def _dense_eigenvectors(gram: np.ndarray, scale: np.ndarray, n_dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues, largest first, and their vectors (n, n_dimensions)."""
    from scipy.linalg import LinAlgError, eigh

    gram *= scale[:, None]
    gram *= scale
    n = len(gram)
    try:
        values, vectors = eigh(gram, subset_by_index=[n - n_dimensions, n - 1], check_finite=False)
    except LinAlgError:
        vectors = np.empty((n, 0))
    if not _orthonormal(vectors, n_dimensions):
        # LAPACK's search for some eigenvectors drops those of eigenvalues that coincide; that for all does not
        values, vectors = eigh(gram, driver="evd", check_finite=False)
    return values[: -n_dimensions - 1 : -1], vectors[:, : -n_dimensions - 1 : -1]


def _orthonormal(vectors: np.ndarray, n_dimensions: int) -> bool:
    """Return whether vectors (n, d) are as many as wanted, of length 1 and orthogonal to each other."""
    return vectors.shape[1] == n_dimensions and np.allclose(vectors.T @ vectors, np.eye(n_dimensions), atol=1e-6)


def _lanczos(
    product: Callable[[np.ndarray], np.ndarray], scale: np.ndarray, n_dimensions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `_dense_eigenvectors` does, by Lanczos's iterations.

    They meet one vector of an eigenvalue, and more of the same only by rounding. So what is orthogonal to the vectors
    found is searched too, until no eigenvalue there is above the smallest of those found.
    """
    rng = np.random.default_rng(0)  # fixed: the eigenvectors are no matter of chance
    values, vectors = _iterate(product, scale, n_dimensions, rng)
    n_more = 1
    while True:
        rough, _ = _iterate(product, scale, 1, rng, vectors, ROUGH)
        if rough[0] < (1 - 10 * ROUGH) * values[-1]:
            return values, vectors
        found, more = _iterate(product, scale, n_more, rng, vectors)
        if not found[0] > values[-1] + 10 * TOLERANCE:
            return values, vectors
        values = np.concatenate([values, found])
        kept = np.argsort(-values, kind="stable")[:n_dimensions]
        values, vectors = values[kept], np.concatenate([vectors, more], axis=1)[:, kept]
        n_more = min(2 * n_more, n_dimensions)


def _iterate(
    product: Callable[[np.ndarray], np.ndarray],
    scale: np.ndarray,
    n_dimensions: int,
    rng: np.random.Generator,
    beside: np.ndarray | None = None,
    tol: float = TOLERANCE,
) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenvalues, largest first, and vectors; only those orthogonal to ``beside`` (n, d), if given.

    A start that led to ``beside`` has nothing of what it has missed: every call draws another.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = len(scale)
    start = rng.standard_normal(n)

    def apart(v: np.ndarray) -> np.ndarray:
        return v if beside is None else v - beside @ (beside.T @ v)

    operator = LinearOperator(
        (n, n), matvec=lambda v: apart(scale * product(scale * apart(v.ravel()))), dtype=np.float64
    )
    values, vectors = eigsh(operator, k=n_dimensions, which="LA", v0=apart(start), tol=tol, maxiter=1000)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _kmeans(points: Any, sizes: np.ndarray, k: int, n_init: int, rng: np.random.Generator, device: str) -> np.ndarray:
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        if len(points) <= RESTARTS_ON:
            labels = _restarts(devices.to_host(points), sizes, k, n_init, seed).labels_
        else:
            sample = np.sort(rng.choice(len(points), RESTARTS_ON, replace=False))
            chosen = devices.to_host(points[devices.namespace(device).asarray(sample)])
            best = _restarts(chosen, sizes[sample], k, n_init, seed)
            labels = devices.to_host(lloyd(points, sizes, best.cluster_centers_, device=device))
    if any(issubclass(w.category, ConvergenceWarning) for w in caught):
        checks.warn_of_fewer(len(np.unique(labels)), k)
    return labels


def _restarts(points: np.ndarray, sizes: np.ndarray, k: int, n_init: int, seed: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=n_init, max_iter=100, random_state=seed).fit(points, sample_weight=sizes)


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


# --- rows in pieces ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TransferCut:
    """A rule: each row goes to the nearest of some centers, where the transfer cut embeds it.

    How near is looked up, label by label, so that a row has one answer whatever rows stand beside it.
    """

    table: np.ndarray  # (N_c, d): a row's point is the sum over its clusters, scaled to length 1
    centers: np.ndarray  # (k, d)
    towards: np.ndarray  # (N_c, k): the products of both

    @classmethod
    def to(cls, centers: np.ndarray, table: np.ndarray) -> "TransferCut":
        return cls(table, centers, table @ centers.T)

    def __call__(self, ensemble: Ensemble, *, device: str) -> np.ndarray:
        found = [devices.to_host(labels) for _, _, labels in self.nearest(ensemble, device)]
        return np.concatenate(found)

    def nearest(self, ensemble: Ensemble, device: str) -> Iterator[tuple[slice, Any, Any]]:
        """Yield some rows after others, their points and the center that each is nearest to."""
        codes, offsets = ensemble.codes_on(device), ensemble.offsets
        half_square = devices.namespace(device).asarray((self.centers * self.centers).sum(axis=1) / 2)
        at_once = max(1, STEP_BYTES // (16 * (self.table.shape[1] + len(self.centers))))
        for start in range(0, max(1, len(codes)), at_once):
            some = slice(start, start + at_once)
            rows = codes[some].copy(order="F")
            points, length = _embedded(rows, offsets, self.table, device)
            nearness = row_lookups(rows, offsets, self.towards, device=device)
            nearness /= length
            nearness -= half_square
            yield some, points, nearness.argmax(axis=1)


def learn_transfer_cut(
    rows: scattered.Pieces,
    cluster_weights: np.ndarray,
    n_clusters: int,
    *,
    n_init: int = 10,
    random_state: int | np.random.Generator | None = 0,
) -> scattered.Numbered:
    """Do what `transfer_cut` does of rows in pieces; return a rule that labels any rows.

    The eigenvectors are the same. Restarts of k-means see 10,000 objects drawn from all pieces, and the iterations of
    the best of them are sums over the pieces, whose points are worked out again every time rather than held.
    """
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    rng = checks.make_generator(random_state)
    table, _ = _leading(
        rows.sum(objects_in),
        cluster_weights,
        n_clusters,
        lambda: rows.sum(_gram, cluster_weights),
        lambda v: rows.sum(_product, cluster_weights, v),
    )
    ensemble, counts = scattered.draw(rows, RESTARTS_ON, rng)
    points = _points(ensemble.codes, ensemble.offsets, table, "cpu").astype(np.float32)
    enough = 1e-4 * float(points.var(axis=0).mean())
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # said below of all rows
        k = min(n_clusters, len(points))
        best = _restarts(points, counts, k, n_init, int(rng.integers(2**31)))
        rule = TransferCut.to(best.cluster_centers_.astype(np.float64), table)
    for _ in range(100):
        sums = rows.sum(_sums_of_points, rule)
        total, weight = sums[:, :-1], sums[:, -1:]
        moved = np.where(weight > 0, total / np.maximum(weight, 1.0), rule.centers)
        shift = float(((moved - rule.centers) ** 2).sum())
        rule = TransferCut.to(moved, table)
        if shift <= enough:
            break
    found = scattered.numbered(rule, len(rule.centers), rows)
    checks.warn_of_fewer(found.n_labels, n_clusters)
    return found


def _gram(ensemble: Ensemble, sizes: np.ndarray, cluster_weights: np.ndarray, *, device: str) -> np.ndarray:
    share = _shares(ensemble, sizes, cluster_weights, device=device)
    gram: np.ndarray = contingency.intersections(ensemble, share, layout="dense", device=device)
    return gram


def _product(
    ensemble: Ensemble, sizes: np.ndarray, cluster_weights: np.ndarray, v: np.ndarray, *, device: str
) -> np.ndarray:
    share = devices.namespace(device).asarray(_shares(ensemble, sizes, cluster_weights, device=device))
    return _there_and_back(ensemble.codes_on(device), ensemble.offsets, share, v, device)


def _sums_of_points(ensemble: Ensemble, sizes: np.ndarray, rule: TransferCut, *, device: str) -> np.ndarray:
    """Return the sum of the points nearest to each center (k, d), and in a column more how many objects they are."""
    k, d = rule.centers.shape
    sums = np.zeros((k, d + 1))
    for some, points, labels in rule.nearest(ensemble, device):
        xp, own = devices.namespace(device), sizes[some]
        own = xp.asarray(own, dtype=np.float64)
        for j in range(d):
            sums[:, j] += devices.to_host(np.bincount(labels, weights=own * points[:, j], minlength=k))
        sums[:, d] += devices.to_host(np.bincount(labels, weights=own, minlength=k))
    return sums
