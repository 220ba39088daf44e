"""Base clusterings by landmark spectral clustering; they differ in k, landmarks and initial centroids of k-means."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens import __version__
from gpuens.generate.kmeans import check_k_range
from gpuens.generate.tasks import CutOfObjects, LandmarkTask, by_threads, threads_for
from gpuens.io.checkpoint import Arrays, Checkpoint, digest, found_anew
from gpuens.kmeans.points import Points, rows_at_once
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import as_features
from gpuens.runtime import checks
from gpuens.runtime import progress as progress_bars
from gpuens.runtime.device import chunked, home_of, memory_budget, n_threads, namespace, resolve
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

OBJECTS_PER_LANDMARK = 10  # number of objects drawn for each landmark


@takes_rng
def landmark_ensemble(
    X: Any,
    n_clusterings: int = 20,
    n_clusters: int | str | tuple[int | str, int | str] | None = None,
    *,
    n_landmarks: int = 1000,
    n_neighbors: int = 5,
    max_iter: int = 5,
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    names: Sequence[Any] | None = None,
    progress: bool | str = "auto",
    resume: str | os.PathLike[str] | None = None,
    device: str = "auto",
    client: Any = None,
) -> Ensemble | Any:  # Any: a Dask array if X is one
    """Cluster the objects many times by landmark spectral clustering; return the ensemble of base clusterings.

    Each clustering has its own landmarks: the centers of k-means (5 iterations) of 10 ``n_landmarks`` random objects.
    Each object has edges to its nearest landmarks, with weights exp(-d² / 2 σ²), where σ is the mean distance. The
    search is approximate for more than 4 ``n_landmarks`` objects: it visits the landmarks near the nearest landmark of
    the object's nearest group. The transfer cut of this graph gives k clusters (U-SPEC). Such clusterings follow
    clusters of any shape, while clusters of k-means are convex. Time and memory are linear in the number of objects.

    Clustering m depends only on ``random_state`` and m, not on the number of clusterings or threads.

    Parameters
    ----------
    X : array, DataFrame, SciPy sparse matrix or Dask array (n_objects, n_features)
        The features, which are not scaled. Distances are computed in float32 after subtracting the mean of each
        feature. A memory map (``numpy.load(…, mmap_mode="r")``) of any type and order is read in blocks of rows, and
        may be larger than the memory.
    n_clusterings : int
        M, the number of clusterings.
    n_clusters : int, "sqrt" or pair, optional
        k for every clustering, or the bounds (both included) of a k drawn uniformly for each; "sqrt" means
        ⌊√n_objects⌋. The default is (20, 60); for fewer than 120 objects, the bounds are n_objects // 3 (at most 20)
        and n_objects // 2.
    n_landmarks : int
        p, the number of landmarks; at most the number of objects.
    n_neighbors : int
        K, the number of landmarks to which each object has an edge.
    max_iter : int
        Iterations of the last k-means on all objects, from centers found on 10,000 of them.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    names : sequence, optional
        The names of the clusterings.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.
    resume : str or path, optional
        A folder that stores each finished clustering, so that stopped work can continue or be extended.
    device : {"auto", "cpu", "cuda"}
        The device; "auto" follows X. Features in host memory go to a GPU in blocks of rows. The same seed gives the
        same clusterings on every device, up to rounding. Labels of features in GPU memory count as labels in GPU
        memory.
    client : distributed.Client, optional
        Workers that make the clusterings, one per task, without memory in common with this process. A Dask array is
        processed by the workers of this client or of the active client, otherwise by threads of this process.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)
        For a Dask array, a Dask array of labels in the same chunks, kept by the workers. The division of X into chunks
        affects labels only by rounding; workers do not affect labels.

    Raises
    ------
    ValueError, TypeError
        For features that are not 2-D, not numbers, not finite or empty, for sparse features with invalid indices, for
        parameters out of range, such as more clusters than objects, and for a ``resume`` folder of other work.
    MemoryError
        Before work starts, if landmarks, their graph and the labels exceed the memory budget.

    References
    ----------
    Huang, Wang, Wu, Lai & Kwoh (2020), Ultra-scalable spectral clustering and ensemble clustering, IEEE Transactions on
    Knowledge and Data Engineering 32(6).

    Examples
    --------
    >>> import gpuens as ge
    >>> X = ge.datasets.load("iris").X
    >>> ens = ge.generate.landmark_ensemble(X, n_clusterings=5, n_clusters=(3, 9), n_landmarks=50)
    >>> ens.n_objects, ens.n_clusterings
    (150, 5)
    >>> ge.HBGF(3).fit(ens).n_clusters_
    3
    """

    def plan(n_objects: int) -> LandmarkPlan:
        low, high = check_k_range(range_for(n_objects) if n_clusters is None else n_clusters, n_objects, n_objects)

        def task(_: int, rng: np.random.Generator) -> CutOfObjects:
            return CutOfObjects(rng, int(rng.integers(low, high, endpoint=True)), iterations)

        p = min(n_objects, checks.check_integer(n_landmarks, "n_landmarks", minimum=1))
        return LandmarkPlan(task, high, p, {"n_clusters": [low, high], "max_iter": iterations}, CutOfObjects)

    iterations = checks.check_integer(max_iter, "max_iter", minimum=1)

    return by_landmarks(
        X,
        n_clusterings,
        plan,
        n_neighbors=n_neighbors,
        random_state=random_state,
        names=names,
        progress=progress,
        resume=resume,
        device=device,
        client=client,
    )


class LandmarkPlan(NamedTuple):
    """The plan of an ensemble: the task of each set of landmarks."""

    task: Callable[[int, np.random.Generator], LandmarkTask]  # (i, generator) → task of the i-th set of landmarks
    high: int  # largest number of clusters that a clustering may have
    n_landmarks: int
    about: dict[str, Any]  # settings that determine the tasks together with the seed
    kind: type[LandmarkTask]


def by_landmarks(
    X: Any,
    n_clusterings: int,
    plan: Callable[[int], LandmarkPlan],
    *,
    n_neighbors: int,
    random_state: Any,
    names: Sequence[Any] | None,
    progress: bool | str,
    resume: str | os.PathLike[str] | None,
    device: str,
    client: Any,
) -> Ensemble | Any:
    """Make the clusterings that ``plan(n_objects)`` describes; other parameters are those of `landmark_ensemble`."""
    where = "cpu"
    if chunked(X):
        from gpuens.distributed import features_in_chunks

        X = features_in_chunks(X, names, client)
    else:
        where = home_of(X, "X")
        device = resolve(device, where)
        X = as_features(X, where if device == "cuda" else "cpu", mapped=True)
    planned, names, run = _run_of(X, n_clusterings, plan, n_neighbors, random_state, names, resume)
    if chunked(X):
        return _label_chunks(X, planned, run, progress, resume, device, client)
    labels = _label_objects(X, planned, run, progress, resume, device, client)
    ensemble = Ensemble(list(labels.T), names=names)
    ensemble.device_kind = where
    return ensemble


class _Run(NamedTuple):
    """The tasks of an ensemble, their settings, and what a folder for resuming notes about them."""

    n_clusterings: int
    tasks: list[LandmarkTask]
    settings: dict[str, int]
    about: dict[str, Any]
    dtype: Any


def _run_of(
    X: Any, n_clusterings: int, plan: Callable[[int], LandmarkPlan], n_neighbors: int, random_state: Any,
    names: Sequence[Any] | None, resume: str | os.PathLike[str] | None,
) -> tuple[LandmarkPlan, Sequence[Any] | None, _Run]:  # fmt: skip
    """Check the arguments of `by_landmarks`; return the plan, the names, and the tasks with their settings."""
    n_clusterings = checks.check_integer(n_clusterings, "n_clusterings", minimum=1)
    planned = plan(int(X.shape[0]))
    settings = {
        "n_drawn": min(int(X.shape[0]), OBJECTS_PER_LANDMARK * planned.n_landmarks),
        "n_landmarks": planned.n_landmarks,
        "n_neighbors": min(checks.check_integer(n_neighbors, "n_neighbors", minimum=1), planned.n_landmarks),
    }
    if names is not None:
        names = checks.check_names(names, n_clusterings)
    if resume is not None and random_state is None:
        raise ValueError("resume repeats earlier draws, but a fresh seed cannot; give a number as random_state or rng.")
    children = checks.make_generator(random_state).spawn(-(-n_clusterings // planned.kind.n_clusterings))
    tasks = [planned.task(i, rng) for i, rng in enumerate(children)]
    about = {"gpuens": __version__, **planned.about, "seed": _seed_of(children[0]), **settings}
    return planned, names, _Run(n_clusterings, tasks, settings, about, np.min_scalar_type(planned.high))


def _label_chunks(
    X: Any, planned: LandmarkPlan, run: _Run, progress: bool | str, resume: Any, device: str, client: Any
) -> Any:
    """Return the labels of features in chunks, as a Dask array."""
    from gpuens.distributed import landmarks

    largest, n_features = max(X.chunks[0]), int(X.shape[1])
    of_labels = run.dtype.itemsize * largest * run.n_clusterings
    checks.check_memory(
        of_labels + _bytes_of_set(largest, n_features, planned, "cpu", **run.settings),
        memory_budget(),
        f"{planned.n_landmarks} landmarks of chunks with up to {largest} objects and {n_features} features",
        "make smaller chunks, or ask for fewer landmarks",
    )
    chunks = landmarks.ChunkedPoints(X, device, client)
    columns = landmarks.label(chunks, run.tasks, run.about, run.dtype, progress=progress, resume=resume, **run.settings)
    return landmarks.joined(chunks, columns[: run.n_clusterings], run.dtype)


def _label_objects(
    X: Any, planned: LandmarkPlan, run: _Run, progress: bool | str, resume: Any, device: str, client: Any
) -> Any:
    """Return the labels (n_objects, n_clusterings) of features in memory."""
    n_objects, n_features = (int(n) for n in X.shape)
    of_labels, budget = run.dtype.itemsize * n_objects * run.n_clusterings, memory_budget(device)
    of_a_set = _bytes_of_set(n_objects, n_features, planned, device, **run.settings)
    checks.check_memory(
        of_labels + of_a_set,
        budget,
        f"{planned.n_landmarks} landmarks of {n_objects} objects with {n_features} features",
        "ask for fewer landmarks or clusterings, or for fewer features",
    )
    folder = None if resume is None else Checkpoint(resume, {**run.about, "data": digest(X)})
    keep = found_anew if folder is None else folder.part
    parts = [f"landmarks_{i}" for i in range(len(run.tasks))]
    missing = [task for task, part in zip(run.tasks, parts, strict=True) if folder is None or part not in folder]
    threads = threads_for(len(missing), budget - of_labels, of_a_set) if device == "cpu" else 1
    points = Points.of(X, device)
    if client is None and len(missing) > 1:
        points = points.within((budget - of_labels - threads * of_a_set) // 2)
    results = _labels(points, missing, threads, client, run.dtype, run.settings)
    labels = namespace(device).empty((n_objects, run.n_clusterings), dtype=run.dtype, order="F")
    width = planned.kind.n_clusterings
    with progress_bars.bar(run.n_clusterings, "landmark clusterings", show=progress) as bar:
        for i, part in enumerate(parts):
            task_columns = slice(i * width, min(run.n_clusterings, (i + 1) * width))
            rows = keep(part, partial(next, results))["labels"][: task_columns.stop - task_columns.start]
            labels[:, task_columns] = namespace(device).asarray(rows).T
            bar.update(task_columns.stop - task_columns.start)
    return labels


def range_for(n_objects: int) -> tuple[int, int]:
    """Return the default smallest and largest k for ``n_objects`` objects."""
    low = min(2, n_objects)
    return min(20, max(low, n_objects // 3)), min(60, max(low, n_objects // 2))


def _bytes_of_set(
    n_objects: int,
    n_features: int,
    planned: LandmarkPlan,
    device: str,
    *,
    n_drawn: int,
    n_landmarks: int,
    n_neighbors: int,
) -> int:
    """Return the bytes of memory that clusterings from one set of landmarks need, besides the labels that are kept."""
    rows = rows_at_once(n_objects, n_features)
    return (
        n_objects * (8 + n_neighbors * (4 + np.min_scalar_type(n_landmarks).itemsize))
        + n_threads() * rows * (24 * n_features + 20 * n_neighbors)  # bytes of the blocks and results
        + n_features * (16 * n_drawn + 32 * n_landmarks)
        + 40 * n_landmarks**2
        + (
            _bytes_of_cut(n_objects, planned.high, device, n_landmarks, n_neighbors)
            if planned.kind is CutOfObjects
            else 0
        )
    )


def _bytes_of_cut(n_objects: int, high: int, device: str, n_landmarks: int, n_neighbors: int) -> int:
    """Return the bytes of memory that k-means of the objects into up to ``high`` clusters needs, besides the graph."""
    from gpuens.generate.shares import CHUNK, SUMS_BYTES
    from gpuens.kmeans.weighted import RESTARTS_ON

    of_centers = 8 * high * n_landmarks  # bytes of the products with centers, and of the sums of shares
    # a GPU adds the shares of each neighbor in sums of their own, the CPU those of each chunk
    of_parts = n_neighbors * of_centers
    if device == "cpu":
        of_parts = min(SUMS_BYTES, -(-n_objects // CHUNK) * of_centers)
    of_starts = min(high, n_landmarks) * (24 * min(n_objects, RESTARTS_ON) + 160 * high)
    return of_starts + of_parts + 5 * of_centers


def _seed_of(rng: np.random.Generator) -> list[str]:
    """Return the type and the seed of a generator, which together determine all its random numbers."""
    seeds: Any = rng.bit_generator.seed_seq
    return [type(rng.bit_generator).__name__, str(seeds.entropy), str(seeds.spawn_key)]


def _labels(
    points: Any, tasks: list[LandmarkTask], threads: int, client: Any, dtype: Any, settings: dict[str, int]
) -> Iterator[Arrays]:
    """Yield the labels (n_clusterings, n_objects) of each task, computed by threads of this process or by workers."""
    labels_of_task = partial(_labels_of, dtype=dtype, settings=settings)
    if client is None:
        yield from by_threads(partial(labels_of_task, points), tasks, threads)
    else:
        from gpuens.distributed import on_workers

        yield from on_workers(labels_of_task, points, tasks, client)


def _labels_of(points: Any, task: LandmarkTask, dtype: Any, settings: dict[str, int]) -> Arrays:
    from gpuens.generate.landmark_cut import clustered, tied

    columns = clustered(points, tied, task, dtype, **settings)
    return {"labels": namespace(points.device).stack(columns)}
