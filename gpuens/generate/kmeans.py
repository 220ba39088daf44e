"""Base clusterings by k-means that differ in k, objects, features, projection and start."""

import math
import numbers
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from gpuens.kmeans import batched
from gpuens.kmeans.batched import BATCH, PATIENCE, Draws, Task
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import as_features, float_for, power_of, times
from gpuens.runtime import checks
from gpuens.runtime import progress as progress_bars
from gpuens.runtime.device import chunked, kind_of, library_threads, memory_budget, n_threads, namespace, resolve

FULL_UP_TO = 20_000  # objects up to which "auto" is full k-means
BYTES_OF_A_TASK = 2_000  # mostly its random generator


def kmeans_ensemble(
    X: Any,
    n_clusterings: int = 20,
    n_clusters: int | str | tuple[int | str, int | str] | None = None,
    *,
    objects: float | int = 1.0,
    features: float | int = 1.0,
    projection: int | None = None,
    algorithm: str = "auto",
    n_init: int = 1,
    max_iter: int = 100,
    init: str = "k-means++",
    random_state: Any = 0,
    names: Sequence[Any] | None = None,
    progress: bool | str = "auto",
    device: str = "auto",
    client: Any = None,
) -> Ensemble | Any:  # Any: a Dask array if X is one
    """Cluster the objects many times by k-means; return the ensemble of base clusterings.

    Clustering m depends only on ``random_state`` and m, not on the number of clusterings or threads. On a GPU "full"
    and "minibatch" work on several clusterings at once and keep that up to rounding, as cuBLAS may round larger
    products otherwise. Fewer distinct points than k give fewer clusters.

    Parameters
    ----------
    X : array, DataFrame, SciPy sparse matrix or Dask array (n_objects, n_features)
        The features, unscaled. float32 and float64 are kept; integers become float32 where that is exact (below 2**24
        in size), else float64. Where squares would overflow or vanish, all are multiplied by a power of 2, on which
        clusters do not depend.
    n_clusterings : int
        M, the number of clusterings.
    n_clusters : int, "sqrt" or pair, optional
        k for every clustering, or the bounds (both included) of a k drawn uniformly for each; "sqrt" stands for
        ⌊√n_objects⌋. If not given, (2, "sqrt"), and 2 of fewer than 4 objects.
    objects : float or int
        Share (float) or number (int) of the objects for each k-means, drawn without replacement. The other objects get
        the label of the nearest centroid.
    features : float or int
        Share or number of the features for each clustering, drawn without replacement.
    projection : int, optional
        Dimensions of a Gaussian random projection, drawn anew for each clustering (after ``features``).
    algorithm : {"auto", "full", "minibatch", "nested"}
        Lloyd's k-means on all objects ("full"), on batches of 1024 ("minibatch"), or on nested samples of 4,096, 8,192,
        … up to 65,536 objects ("nested"; 256 for each cluster if that is more), after which all objects get the label
        of the nearest centroid. "auto": "full" up to 20,000 objects, above these "nested", and "minibatch" for
        sparse features, whose samples "nested" holds as arrays.
    n_init : int
        Starts of each k-means; the best is kept ("nested": the best on the first sample goes on).
    max_iter : int
        Iterations per start (passes over the objects for "minibatch"; for "nested" those on the first sample, and up to
        20 on each later one).
    init : {"k-means++", "random"}
        The choice of the first centroids.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    names : sequence, optional
        The names of the clusterings.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.
    device : {"auto", "cpu", "cuda"}
        Where to work; "auto" follows X. The same seed gives the same clusterings on every device, up to rounding: it
        can move an object between two centroids. With float32 features it can also change the choice of a first
        centroid (scikit-learn sums k-means++'s probabilities in float32) and so the whole clustering. Labels of
        features in GPU memory count as labels in GPU memory, wherever they were computed.
    client : distributed.Client, optional
        Workers that make the clusterings, one per task; they need no memory in common with this process. A Dask array
        in chunks of rows uses this client, or the active one: each k-means is fitted to objects drawn from all chunks
        (``objects`` must say how many), and each chunk is labelled where it is.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)
        For a Dask array, a Dask array of labels in the same chunks. Labels do not depend on the workers.

    Raises
    ------
    ValueError, TypeError
        For features that are not 2-D, not numbers, not finite or empty, sparse ones whose indices do not fit, and for
        parameters out of range, such as more clusters than objects to fit.
    MemoryError
        Before work starts, if the centers and the copies for the threads exceed the memory budget.

    References
    ----------
    Huang, Wang & Lai (2018), Locally weighted ensemble clustering, IEEE Transactions on Cybernetics 48(5): k drawn from
    [2, √N]. Strehl & Ghosh (2002), Cluster ensembles, JMLR 3: shares of the features and of the objects. Fern &
    Brodley (2003), Random projection for high dimensional data clustering, ICML. Sculley (2010), Web-scale k-means
    clustering, WWW: mini-batches.

    Examples
    --------
    >>> import gpuens as ge
    >>> X = ge.datasets.load("iris").X
    >>> ens = ge.generate.kmeans_ensemble(X, n_clusterings=5, n_clusters=(2, "sqrt"), random_state=0)
    >>> ens.n_objects, ens.n_clusterings
    (150, 5)
    """
    where = "cpu"
    if chunked(X):
        X = _features_in_chunks(X, objects, names, device, client)
    else:
        where = kind_of(X)
        device = resolve(device, where)
        X = as_features(X, device)
        _refuse_wide_indices(X)
    n_objects, n_features = (int(n) for n in X.shape)
    n_clusterings = checks.check_integer(n_clusterings, "n_clusterings", minimum=1)
    n_drawn = share(objects, n_objects, "objects")
    n_seen = share(features, n_features, "features")
    if projection is not None:
        projection = checks.check_integer(projection, "projection", minimum=1)
        needed = 8 * (n_objects + n_seen) * projection
        checks.check_memory(needed, memory_budget(), f"projection={projection}", "project to fewer dimensions")
    if n_clusters is None:
        n_clusters = (2, "sqrt") if n_objects >= 4 else min(2, n_objects)
    low, high = check_k_range(n_clusters, n_objects, n_drawn)
    algorithm = checks.check_choice(algorithm, "algorithm", ["auto", "full", "minibatch", "nested"])
    if algorithm == "auto":
        large = "minibatch" if hasattr(X, "tocsr") else "nested"
        algorithm = "full" if n_drawn <= FULL_UP_TO else large
    checks.check_runs(n_init, max_iter)
    settings: dict[str, Any] = {
        "n_init": int(n_init),
        "max_iter": int(max_iter),
        "init": checks.check_choice(init, "init", ["k-means++", "random"]),
    }
    needed = n_clusterings * (n_objects * np.min_scalar_type(high).itemsize + BYTES_OF_A_TASK)
    checks.check_memory(needed, memory_budget(), f"n_clusterings={n_clusterings}", "ask for fewer clusterings")
    children = checks.make_generator(random_state).spawn(n_clusterings)
    if names is not None:
        names = checks.check_names(names, n_clusterings)

    draws = Draws(n_objects, n_features, n_drawn, n_seen, projection)
    tasks = [Task(int(rng.integers(low, high, endpoint=True)), rng) for rng in children]
    if chunked(X):
        return _label_chunks(X, tasks, draws, algorithm, settings, np.min_scalar_type(high), client)
    labels = namespace(device).empty((n_objects, n_clusterings), dtype=np.min_scalar_type(high), order="F")
    with progress_bars.bar(n_clusterings, "k-means", show=progress) as shown:
        for m, column in _columns(X, tasks, draws, algorithm, settings, device, client):
            labels[:, m] = column
            shown.update(1)
    ensemble = Ensemble(list(labels.T), names=names)
    ensemble.device_kind = where
    return ensemble


def _refuse_wide_indices(X: Any) -> None:
    """Refuse sparse features beyond 32-bit indices, which scikit-learn does not take."""
    if hasattr(X, "tocsr") and X.indices.dtype != np.int32:
        raise ValueError(
            f"X is a sparse matrix of shape {X.shape} with {X.nnz} values, and k-means takes fewer than 2**31 rows, "
            "columns and values: take landmark_ensemble, or fewer features."
        )


def _features_in_chunks(X: Any, objects: Any, names: Any, device: str, client: Any) -> Any:
    """Return features in chunks as a Dask array with known chunks; refuse parameters that need them in one piece."""
    from gpuens.distributed import features_in_chunks

    X = features_in_chunks(X, names, client)
    if share(objects, int(X.shape[0]), "objects") == X.shape[0]:
        raise ValueError(
            "X is in chunks, and each k-means is fitted to objects drawn from all of them: say how many, such as "
            "objects=100_000."
        )
    if device not in ("auto", "cpu"):
        raise ValueError(f"device={device!r} is for features in one piece; k-means of chunks works on the CPU.")
    return X


def _columns(
    X: Any, tasks: list[Task], draws: Draws, algorithm: str, settings: dict[str, Any], device: str, client: Any
) -> Iterator[tuple[int, Any]]:
    """Yield the labels (n_objects,) of each task with its position: made by threads, workers or kernels."""
    if device != "cpu" and algorithm == "nested":
        from gpuens.kmeans import nested

        yield from nested.label(X, tasks, draws, device=device, **settings)
    elif device != "cpu":
        for columns, found in batched.label(X, tasks, draws, algorithm=algorithm, device=device, **settings):
            yield from zip(columns, found, strict=True)
    elif client is None:
        yield from enumerate(_label(X, tasks, draws, algorithm, settings))
    else:
        from gpuens.distributed import on_workers

        one = partial(_label_one, draws=draws, algorithm=algorithm, settings=settings)
        yield from enumerate(on_workers(one, X, tasks, client))


def share(value: Any, total: int, name: str) -> int:
    """Return the number that a share of ``total`` (float in (0, 1]) or a number (int) means, or refuse it."""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return max(1, round(checks.check_real(value, name, above=0, at_most=1) * total))
    return checks.check_integer(value, name, minimum=1, maximum=total)


def check_k_range(n_clusters: Any, n_objects: int, n_drawn: int) -> tuple[int, int]:
    """Return the bounds of k that ``n_clusters`` means, or refuse it.

    ``n_drawn`` objects are clustered; "sqrt" refers to all ``n_objects``.
    """
    pair = n_clusters if isinstance(n_clusters, (tuple, list)) else (n_clusters, n_clusters)
    given = checks.shown(n_clusters)
    if len(pair) != 2 or any(isinstance(end, str) and end != "sqrt" for end in pair):
        raise ValueError(f"n_clusters must be a number, 'sqrt' or a pair (lowest, highest), not {given}.")
    bounds = []
    for end in pair:
        k = math.isqrt(n_objects) if isinstance(end, str) else end
        bounds.append(checks.check_integer(k, "n_clusters", minimum=1))
    low, high = bounds
    if low > high:
        raise ValueError(
            f"n_clusters={given} is an empty range, {low} to {high}, for {n_objects} object(s); give the "
            "lower number first, and numbers instead of 'sqrt' for so few objects."
        )
    if high > n_drawn:
        raise ValueError(
            f"n_clusters={given} asks for up to {high} clusters of {n_drawn} object(s); ask for fewer "
            "clusters or draw more objects."
        )
    return low, high


def _label(X: Any, tasks: list[Task], draws: Draws, algorithm: str, settings: dict[str, Any]) -> Iterator[np.ndarray]:
    """Yield each task's nearest centroids (n_objects,) in order, one k-means per thread."""
    most = max(task.k for task in tasks)
    needed, budget = _copies(X, draws, algorithm) + _centers(X, draws, most), memory_budget()
    if algorithm == "nested":
        from gpuens.kmeans import nested

        needed += nested.needed(draws, X.dtype.itemsize, most)
    checks.check_memory(needed, budget, "k-means on X", "draw fewer objects or features, or use algorithm='minibatch'")
    threads = max(1, min(n_threads(), len(tasks), budget // max(1, needed)))

    def cluster(task: Task) -> np.ndarray:
        rows, columns, directions = draws.of(task.rng)
        points = _seen(X, columns, directions)
        model = _fit(points, rows, task, algorithm, settings)
        return model.labels_ if algorithm == "full" and rows is None else _nearest(model, points)

    with _in_threads(threads) as pool:
        yield from pool.map(cluster, tasks)


def _label_one(X: Any, task: Task, draws: Draws, algorithm: str, settings: dict[str, Any]) -> np.ndarray:
    return next(_label(X, [task], draws, algorithm, settings))


def _label_chunks(
    X: Any, tasks: list[Task], draws: Draws, algorithm: str, settings: dict[str, Any], dtype: Any, client: Any
) -> Any:
    """Return the labels of features in chunks; each k-means is fitted on a worker to objects from all chunks."""
    from gpuens.distributed import by_chunks, results

    exact = X.dtype.kind not in "iu" or X.dtype.itemsize <= 2
    exact = exact or bool(results([(abs(X) < 2**24).all()], client, "features")[0])
    real = float_for(X.dtype, np.empty(0)) if exact else np.float64  # one for all chunks
    drawn = [draws.of(task.rng) for task in tasks]
    learn = [
        partial(_fit_view, view=view, real=real, task=task, algorithm=algorithm, settings=settings)
        for task, (_, *view) in zip(tasks, drawn, strict=True)
    ]
    apply = partial(_label_chunk, real=real, dtype=dtype)
    return by_chunks(X, [rows for rows, *_ in drawn if rows is not None], learn, apply, dtype, client)


def _fit_view(
    points: Any, view: list[Any], real: Any, task: Task, algorithm: str, settings: dict[str, Any]
) -> tuple[Any, float, list[Any]]:
    """Return k-means fitted to objects drawn from all chunks, the power of 2 that they were multiplied by, the view."""
    points = as_features(points, part=True).astype(real, copy=False)
    power = power_of(points)
    model = _fit(_seen(times(points, power), *view), None, task, algorithm, settings)
    if algorithm != "nested":
        vars(model).pop("labels_", None)  # labels would travel with every chunk
    return model, power, view


def _label_chunk(block: Any, models: list[tuple[Any, float, list[Any]]], real: Any, dtype: Any) -> np.ndarray:
    X = as_features(block, part=True).astype(real, copy=False)
    labels = [_nearest(model, _seen(times(X, power), *view)) for model, power, view in models]
    return np.stack(labels, axis=1).astype(dtype)


def _seen(X: Any, columns: Any, directions: Any) -> Any:
    """Return the features of one clustering: its columns, projected."""
    points = X
    if columns is not None:  # X[:, columns] of an array is not C-contiguous and would be copied again
        points = X[:, columns] if hasattr(X, "tocsr") else X.take(columns, axis=1)
    return points if directions is None else points @ directions.astype(X.dtype)


def _fit(points: Any, rows: Any, task: Task, algorithm: str, settings: dict[str, Any]) -> Any:
    """Return k-means fitted to some rows of the points (None: all), scikit-learn's but for "nested"."""
    if algorithm == "nested":
        from gpuens.kmeans import nested

        n = points.shape[0] if rows is None else len(rows)
        return nested.fit(lambda picks: points[picks if rows is None else rows[picks]], n, task.k, task.rng, **settings)
    with library_threads(1, "openmp"):
        return (_full if algorithm == "full" else _mini_batches)(points, rows, task.k, task.rng, **settings)


def _nearest(model: Any, points: Any) -> np.ndarray:
    """Return the nearest centroid of every point."""
    with library_threads(1, "openmp"):
        labels: np.ndarray = model.predict(points)
    return labels


def _full(points: Any, rows: Any, k: int, rng: np.random.Generator, *, n_init: int, max_iter: int, init: str) -> Any:
    """Fit Lloyd's k-means."""
    from sklearn.cluster import KMeans

    model = KMeans(k, n_init=n_init, max_iter=max_iter, init=init, random_state=_seed(rng))
    return model.fit(points if rows is None else points[rows])


def _mini_batches(
    points: Any, rows: Any, k: int, rng: np.random.Generator, *, n_init: int, max_iter: int, init: str
) -> Any:
    """Fit k-means to mini-batches (Sculley 2010) with the stopping rule of scikit-learn's ``fit``.

    Batches are drawn here: in some versions of scikit-learn its own draws cost a pass over all objects per batch.
    """
    from sklearn.cluster import MiniBatchKMeans

    n = points.shape[0] if rows is None else len(rows)

    def at(picks: np.ndarray) -> Any:
        return points[picks if rows is None else rows[picks]]

    size = min(n, BATCH)
    first = at(rng.choice(n, min(n, 3 * max(BATCH, k)), replace=False))
    starts = [MiniBatchKMeans(k, init=init, random_state=_seed(rng), compute_labels=False) for _ in range(n_init)]
    model = max((start.partial_fit(first) for start in starts), key=lambda start: start.score(first))
    smoothing = min(1.0, 2 * size / (n + 1))
    smoothed = best = np.inf
    since_best = 0
    for _ in range(max_iter * n // size):
        batch = at(rng.integers(n, size=size))
        inertia = -model.score(batch)  # before the centroids have seen the batch
        model.partial_fit(batch)
        smoothed = inertia if smoothed == np.inf else smoothed + smoothing * (inertia - smoothed)
        since_best = 0 if smoothed < best else since_best + 1
        best = min(best, smoothed)
        if since_best == PATIENCE:
            break
    return model


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _copies(X: Any, draws: Draws, algorithm: str) -> int:
    """Return the bytes of one k-means's copies of X."""
    n_objects, n_features, n_drawn, n_seen, projection = draws
    sparse = hasattr(X, "tocsr")
    row = X.data.nbytes / n_objects * n_seen / n_features if sparse else X.itemsize * n_seen
    copies = n_objects * row * (n_seen < n_features)
    if projection is not None:
        sparse, row = False, X.dtype.itemsize * projection
        copies += n_objects * row
    if algorithm == "full":
        copies += n_drawn * row * ((n_drawn < n_objects) + (not sparse))  # scikit-learn centres a copy of dense points
    return int(copies)


def _centers(X: Any, draws: Draws, k: int) -> int:
    """Return the bytes of one k-means's centers, old and new, and of the draw of their features."""
    n_seen = draws.n_seen if draws.projection is None else draws.projection
    return 2 * k * n_seen * int(X.dtype.itemsize) + 8 * draws.n_features * (draws.n_seen < draws.n_features)


@contextmanager
def _in_threads(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Open a pool of threads with single-threaded BLAS; tasks that have not begun at the exit are dropped."""
    from sklearn.exceptions import ConvergenceWarning

    # BLAS limits and warning filters are global: threads that set them would interfere
    with library_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than k give fewer clusters
        pool = ThreadPoolExecutor(threads)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
