"""Base clusterings by k-means; they differ in k, drawn objects and features, projection and initial centroids."""

import math
import numbers
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.generate.tasks import by_threads, threads_for
from gpuens.generate.views import Draws, View
from gpuens.kmeans import nested
from gpuens.kmeans.lloyd import CHUNK
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import as_features, float_for, power_of, times
from gpuens.runtime import checks
from gpuens.runtime import progress as progress_bars
from gpuens.runtime.device import (
    asked_once,
    chunked,
    home_of,
    kind_of,
    library_threads,
    memory_budget,
    namespace,
    resolve,
)
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

BYTES_OF_A_TASK = 2_000  # bytes of memory of a `KMeansTask`, mostly for its random generator
BATCH = 1024  # number of objects in a mini-batch
PATIENCE = 10  # number of successive mini-batches without improvement after which k-means stops


class KMeansTask(NamedTuple):
    """The task of one base clustering: its number of clusters k and its random generator."""

    k: int
    rng: np.random.Generator


@takes_rng
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
    rng: Any = NOT_GIVEN,
    names: Sequence[Any] | None = None,
    progress: bool | str = "auto",
    device: str = "auto",
    client: Any = None,
) -> Ensemble | Any:  # Any: a Dask array if X is one
    """Cluster the objects many times by k-means; return the ensemble of base clusterings.

    Clustering m depends only on ``random_state`` and m, not on the number of clusterings or threads. Fewer distinct
    points than k give fewer clusters.

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
        Lloyd's k-means on nested samples of 4,096, 8,192, … up to 65,536 objects ("nested"; 256 for each cluster if
        that is more), after which all objects get the label of the nearest centroid; up to 20,000 objects are one
        sample. "full": on all objects, however many. "minibatch": scikit-learn's, on batches of 1024, on the CPU.
        "auto" is "nested"; of sparse features, whose samples that holds as arrays, it is "full", by scikit-learn, up to
        20,000 objects, and above these "minibatch".
    n_init : int
        Starts of each k-means; the best is kept (the best on the first sample goes on).
    max_iter : int
        Iterations per start (passes over the objects for "minibatch"; those on the first sample, and up to 20 on each
        later one).
    init : {"k-means++", "random"}
        The choice of the first centroids.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    names : sequence, optional
        The names of the clusterings.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.
    device : {"auto", "cpu", "cuda"}
        Where to work; "auto" follows X. The same seed gives the same clusterings on every device, up to rounding, which
        can move an object that is half-way between two centroids. Labels of features in GPU memory count as labels in
        GPU memory, wherever they were computed. "minibatch" has no version for a GPU: "nested" takes its place there.
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
        where = home_of(X, "X")
        device = resolve(device, where)
        X = as_features(X, device)
        _refuse_wide_indices(X)
    n_objects, n_features = (int(n) for n in X.shape)
    n_clusterings = checks.check_integer(n_clusterings, "n_clusterings", minimum=1)
    draws = _draws(n_objects, n_features, objects, features, projection)
    if n_clusters is None:
        n_clusters = (2, "sqrt") if n_objects >= 4 else min(2, n_objects)
    low, high = check_k_range(n_clusters, n_objects, draws.n_drawn)
    algorithm = checks.check_choice(algorithm, "algorithm", ["auto", "full", "minibatch", "nested"])
    algorithm = _resolve_algorithm(algorithm, hasattr(X, "tocsr"), draws.n_drawn, device)
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
    tasks = [KMeansTask(int(rng.integers(low, high, endpoint=True)), rng) for rng in children]
    if chunked(X):
        return _label_chunks(X, tasks, draws, algorithm, settings, np.min_scalar_type(high), client)
    labels = namespace(device).empty((n_objects, n_clusterings), dtype=np.min_scalar_type(high), order="F")
    with progress_bars.bar(n_clusterings, "k-means", show=progress) as bar:
        for m, column in enumerate(_columns(X, tasks, draws, algorithm, settings, device, client)):
            labels[:, m] = column
            bar.update(1)
    ensemble = Ensemble(list(labels.T), names=names)
    ensemble.device_kind = where
    return ensemble


def _draws(n_objects: int, n_features: int, objects: Any, features: Any, projection: int | None) -> Draws:
    """Return the settings of the draws, or refuse shares out of range and a projection above the memory budget."""
    n_seen = share(features, n_features, "features")
    if projection is not None:
        projection = checks.check_integer(projection, "projection", minimum=1)
        needed = 8 * (min(n_objects, CHUNK) + n_seen) * projection
        checks.check_memory(needed, memory_budget(), f"projection={projection}", "project to fewer dimensions")
    return Draws(n_objects, n_features, share(objects, n_objects, "objects"), n_seen, projection)


def _refuse_wide_indices(X: Any) -> None:
    """Raise an error if sparse features need 64-bit indices, which scikit-learn's k-means does not accept."""
    if hasattr(X, "tocsr") and X.indices.dtype != np.int32:
        raise ValueError(
            f"X is a sparse matrix of shape {X.shape} with {X.nnz} values, and k-means takes fewer than 2**31 rows, "
            "columns and values: take landmark_ensemble, or fewer features."
        )


def _features_in_chunks(X: Any, objects: Any, names: Any, device: str, client: Any) -> Any:
    """Return features in chunks as a Dask array whose chunk sizes are known.

    Raise an error for parameters that are not possible for features in chunks.
    """
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


def _resolve_algorithm(algorithm: str, sparse: bool, n_drawn: int, device: str) -> str:
    """Return the algorithm for ``n_drawn`` objects if ``algorithm`` is "auto".

    For another value of ``algorithm``, return this algorithm, or the algorithm that replaces it.
    """
    if algorithm == "auto":
        small = n_drawn <= nested.ALL_UP_TO
        return "nested" if not sparse else "full" if small else "minibatch"
    if algorithm == "minibatch" and device not in ("auto", "cpu"):
        checks.warn(
            f"algorithm='minibatch' works on the CPU, and device={device!r} goes by 'nested', which finds better "
            "clusters in less time; pass algorithm='nested' or device='cpu'."
        )
        return "nested"
    return algorithm


def _columns(
    X: Any, tasks: list[KMeansTask], draws: Draws, algorithm: str, settings: dict[str, Any], device: str, client: Any
) -> Iterator[Any]:
    """Yield the labels (n_objects,) of each task, computed on the device, by threads of this process or by workers."""
    if device != "cpu" or client is None:
        return _label(X, tasks, draws, algorithm, settings, device)
    from gpuens.distributed import on_workers

    return on_workers(partial(_label_one, draws=draws, algorithm=algorithm, settings=settings), X, tasks, client)


def share(value: Any, total: int, name: str) -> int:
    """Return an absolute number of objects or features; raise an error if the value is invalid.

    ``value`` is either a share of ``total`` (float in (0, 1]) or the number itself (int).
    """
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return max(1, round(checks.check_real(value, name, above=0, at_most=1) * total))
    return checks.check_integer(value, name, minimum=1, maximum=total)


def check_k_range(n_clusters: Any, n_objects: int, n_drawn: int) -> tuple[int, int]:
    """Return the smallest and the largest k that ``n_clusters`` allows; raise an error if ``n_clusters`` is invalid.

    Only ``n_drawn`` objects are clustered, but "sqrt" is the square root of the number of all objects, ``n_objects``.
    """
    pair = n_clusters if isinstance(n_clusters, (tuple, list)) else (n_clusters, n_clusters)
    text = checks.shown(n_clusters)
    if len(pair) != 2 or any(isinstance(end, str) and end != "sqrt" for end in pair):
        raise ValueError(f"n_clusters must be a number, 'sqrt' or a pair (lowest, highest), not {text}.")
    bounds = []
    for end in pair:
        k = math.isqrt(n_objects) if isinstance(end, str) else end
        bounds.append(checks.check_integer(k, "n_clusters", minimum=1))
    low, high = bounds
    if low > high:
        raise ValueError(
            f"n_clusters={text} is an empty range, {low} to {high}, for {n_objects} object(s); give the "
            "lower number first, and numbers instead of 'sqrt' for so few objects."
        )
    if high > n_drawn:
        raise ValueError(
            f"n_clusters={text} asks for up to {high} clusters of {n_drawn} object(s); ask for fewer "
            "clusters or draw more objects."
        )
    return low, high


def _label(
    X: Any, tasks: list[KMeansTask], draws: Draws, algorithm: str, settings: dict[str, Any], device: str = "cpu"
) -> Iterator[Any]:
    """Yield the labels (n_objects,) of each task in order: the numbers of the nearest centroids of all objects.

    On the CPU, each thread computes one k-means.
    """
    needed, budget = _needed(X, draws, algorithm, max(task.k for task in tasks), device), memory_budget(device)
    checks.check_memory(needed, budget, "k-means on X", "draw fewer objects or features")

    def cluster(task: KMeansTask) -> Any:
        view = View(X, *draws.of(task.rng))
        with asked_once():
            return _nearest(_fit(view, task, algorithm, settings, device), view)

    if device != "cpu":
        yield from map(cluster, tasks)
        return
    yield from by_threads(cluster, tasks, threads_for(len(tasks), budget, needed))


def _label_one(X: Any, task: KMeansTask, draws: Draws, algorithm: str, settings: dict[str, Any]) -> np.ndarray:
    return next(_label(X, [task], draws, algorithm, settings))


def _label_chunks(
    X: Any, tasks: list[KMeansTask], draws: Draws, algorithm: str, settings: dict[str, Any], dtype: Any, client: Any
) -> Any:
    """Return the labels for features in chunks; one worker fits each k-means to objects drawn from all chunks."""
    from gpuens.distributed import by_chunks, results

    exact = X.dtype.kind not in "iu" or X.dtype.itemsize <= 2
    exact = exact or bool(results([(abs(X) < 2**24).all()], client, "features")[0])
    real = float_for(X.dtype, np.empty(0)) if exact else np.float64  # the same dtype for all chunks
    picks = [draws.of(task.rng) for task in tasks]
    learn = [
        partial(_fit_view, view=view, real=real, task=task, algorithm=algorithm, settings=settings)
        for task, (_, *view) in zip(tasks, picks, strict=True)
    ]
    apply = partial(_label_chunk, real=real, dtype=dtype)
    return by_chunks(X, [rows for rows, *_ in picks if rows is not None], learn, apply, dtype, client)


def _fit_view(
    points: Any, view: list[Any], real: Any, task: KMeansTask, algorithm: str, settings: dict[str, Any]
) -> tuple[Any, float, list[Any]]:
    """Fit k-means to objects drawn from all chunks; return the model, the scale and the view.

    The scale is the power of 2 by which the features were multiplied before the fit.
    """
    points = as_features(points, part=True).astype(real, copy=False)
    power = power_of(points)
    return _fit(View(times(points, power), None, *view), task, algorithm, settings), power, view


def _label_chunk(block: Any, models: list[tuple[Any, float, list[Any]]], real: Any, dtype: Any) -> np.ndarray:
    X = as_features(block, part=True).astype(real, copy=False)
    labels = [_nearest(model, View(times(X, power), None, *view)) for model, power, view in models]
    return np.stack(labels, axis=1).astype(dtype)


def _fit(view: View, task: KMeansTask, algorithm: str, settings: dict[str, Any], device: str = "cpu") -> Any:
    """Fit k-means by an algorithm; return a model whose ``predict`` returns the number of the nearest centroid."""
    if algorithm != "minibatch" and not (algorithm == "full" and view.sparse):
        sizes = [view.n_drawn] if algorithm == "full" else None
        return nested.fit(view.at, view.n_drawn, task.k, task.rng, sizes=sizes, device=device, **settings)
    with library_threads(1, "openmp"):
        return (_stored if algorithm == "full" else _mini_batches)(view, task.k, task.rng, **settings)


def _nearest(model: Any, view: View) -> Any:
    """Return the number of the nearest centroid of every object (n_objects,)."""
    n_objects = view.X.shape[0]
    labels = namespace(kind_of(view.X)).empty(n_objects, dtype=np.int64)
    with library_threads(1, "openmp"):
        for start in range(0, n_objects, CHUNK):
            stop = min(start + CHUNK, n_objects)
            labels[start:stop] = model.predict(view.between(start, stop))
    return labels


def _stored(view: View, k: int, rng: np.random.Generator, *, n_init: int, max_iter: int, init: str) -> Any:
    """Fit scikit-learn's k-means, which reads only the stored values of sparse features."""
    from sklearn.cluster import KMeans

    model = KMeans(k, n_init=n_init, max_iter=max_iter, init=init, random_state=_seed(rng)).fit(view.at(slice(None)))
    del model.labels_  # the labels are not needed, and would be sent with the model to the worker of every chunk
    return model


def _mini_batches(view: View, k: int, rng: np.random.Generator, *, n_init: int, max_iter: int, init: str) -> Any:
    """Fit k-means to mini-batches (Sculley 2010) with the stopping rule of scikit-learn's ``fit``.

    The mini-batches are drawn by this function, because some versions of scikit-learn read all objects for each
    mini-batch that they draw.
    """
    from sklearn.cluster import MiniBatchKMeans

    n = view.n_drawn
    size = min(n, BATCH)
    first = view.at(rng.choice(n, min(n, 3 * max(BATCH, k)), replace=False))
    starts = [MiniBatchKMeans(k, init=init, random_state=_seed(rng), compute_labels=False) for _ in range(n_init)]
    model = max((start.partial_fit(first) for start in starts), key=lambda start: start.score(first))
    smoothing = min(1.0, 2 * size / (n + 1))
    smoothed = best = np.inf
    since_best = 0
    for _ in range(max_iter * n // size):
        batch = view.at(rng.integers(n, size=size))
        inertia = -model.score(batch)  # computed before the centroids are updated with this mini-batch
        model.partial_fit(batch)
        smoothed = inertia if smoothed == np.inf else smoothed + smoothing * (inertia - smoothed)
        since_best = 0 if smoothed < best else since_best + 1
        best = min(best, smoothed)
        if since_best == PATIENCE:
            break
    return model


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _needed(X: Any, draws: Draws, algorithm: str, k: int, device: str) -> int:
    """Return the bytes of memory that one k-means needs in addition to X."""
    n_objects, n_features, n_drawn, n_seen, _ = draws
    sparse, q, itemsize = hasattr(X, "tocsr"), draws.n_dimensions, int(X.dtype.itemsize)
    read = X.data.nbytes / n_objects * n_seen / n_features if sparse else itemsize * n_seen * draws.copied
    row = itemsize * q if draws.projection else read  # bytes of the copy of a point
    centers = 2 * k * q * itemsize  # bytes of the old and the new centroids
    centers += 8 * n_features * (n_seen < n_features)  # bytes for the numbers of the drawn features
    labelled = min(CHUNK, n_objects) * (read + row * (draws.projection is not None)) + 8 * n_objects
    if algorithm == "minibatch":
        fitted: float = min(n_drawn, 3 * max(BATCH, k)) * row
    elif algorithm == "full" and sparse and not draws.projection:
        fitted = n_drawn * row * (draws.copied or n_drawn < n_objects)
    else:
        sizes = [n_drawn] if algorithm == "full" else nested.sample_sizes(n_drawn, k)
        is_sampled = n_drawn < n_objects or sizes[-1] < n_drawn
        copied = draws.copied or sparse or is_sampled
        # bytes of two temporary copies: the drawn objects with all features, and the drawn features before a projection
        fitted = sizes[-1] * itemsize * (n_features * is_sampled * (n_seen < n_features) + n_seen * (q != n_seen))
        fitted += nested.needed(n_drawn, q, itemsize, k, sizes=sizes, copied=copied, device=device)
        labelled += nested.needed_at_once(n_objects, q, k, device)
    return int(centers + max(fitted, labelled))
