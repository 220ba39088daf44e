"""Base clusterings by landmark spectral clustering that differ in k, landmarks and start."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuens import __version__, checks
from gpuens import progress as progress_bars
from gpuens.device import chunked, library_threads, memory_budget
from gpuens.ensemble import Ensemble
from gpuens.features import as_features
from gpuens.generate.kmeans import check_k_range
from gpuens.resumed import Arrays, Folder, digest, found_anew

OBJECTS_PER_LANDMARK = 10  # that landmarks are the centers of


def landmark_ensemble(
    X: Any,
    n_clusterings: int = 20,
    n_clusters: int | str | tuple[int | str, int | str] = (20, 60),
    *,
    n_landmarks: int = 1000,
    n_neighbors: int = 5,
    max_iter: int = 5,
    random_state: Any = 0,
    names: Sequence | None = None,
    progress: bool | str = "auto",
    resume: str | os.PathLike | None = None,
) -> Any:
    """Cluster the objects many times by landmark spectral clustering; return the ensemble of base clusterings.

    Each clustering has its own landmarks: the centers of k-means (10 iterations) of 10 ``n_landmarks`` objects drawn
    anew. Each object is tied to the nearest of them, sought among those near the nearest of its nearest group, with
    weights exp(-d² / 2 σ²), σ the mean distance. The transfer cut of this graph gives k clusters (U-SPEC). Such
    clusterings follow clusters of any shape, where those of k-means are convex; time and memory are linear in the
    objects.

    Clustering m depends only on ``random_state`` and m, not on the number of clusterings or threads.

    Parameters
    ----------
    X : array, DataFrame or SciPy sparse matrix (n_objects, n_features)
        The features, unscaled. Distances are computed in float32, from the mean of each feature.
    n_clusterings : int
        M, the number of clusterings.
    n_clusters : int, "sqrt" or pair
        k for every clustering, or the bounds (both included) of a k drawn uniformly for each; "sqrt" stands for
        ⌊√n_objects⌋.
    n_landmarks : int
        p, the number of landmarks; of fewer objects, their number.
    n_neighbors : int
        K, the landmarks that each object is tied to.
    max_iter : int
        Iterations of the last k-means on all objects, from centers found on 10,000 of them.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    names : sequence, optional
        The names of the clusterings.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.
    resume : str or path, optional
        A folder that keeps each clustering once it is made, so that work that was stopped goes on, or is extended.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    ValueError, TypeError
        For features that are not 2-D, not numbers, not finite or empty, for parameters out of range, such as more
        clusters than objects, and for a ``resume`` that holds other work.
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
    if chunked(X):
        raise TypeError(
            "X is in chunks, but landmarks are for features in one piece: compute them, or use kmeans_ensemble."
        )
    X = as_features(X)
    n_objects, n_features = (int(n) for n in X.shape)
    n_clusterings = checks.check_integer(n_clusterings, "n_clusterings", minimum=1)
    low, high = check_k_range(n_clusters, n_objects, n_objects)
    n_landmarks = min(checks.check_integer(n_landmarks, "n_landmarks", minimum=1), n_objects)
    n_neighbors = min(checks.check_integer(n_neighbors, "n_neighbors", minimum=1), n_landmarks)
    max_iter = checks.check_integer(max_iter, "max_iter", minimum=1)
    if names is not None:
        names = checks.check_names(names, n_clusterings)
    from gpuens.generate.landmark_cut import KEPT_BYTES, POINTS_AT_ONCE
    from gpuens.generate.points import Points, rows_at_once
    from gpuens.partition.lloyd import RESTARTS_ON

    dtype = np.min_scalar_type(high)
    n_drawn = min(n_objects, OBJECTS_PER_LANDMARK * n_landmarks)
    rows, dims = rows_at_once(n_objects, n_features), min(high, n_landmarks)
    kept = min(KEPT_BYTES, 4 * n_objects * dims)
    needed = n_objects * (
        n_clusterings * dtype.itemsize + 8 + n_neighbors * (4 + np.min_scalar_type(n_landmarks).itemsize)
    )
    needed += rows * (24 * n_features + 20 * n_neighbors)  # a block, and what is found for it
    needed += n_features * (8 * n_drawn + 32 * n_landmarks) + 40 * n_landmarks**2
    needed += 2 * kept + dims * (8 * min(n_objects, POINTS_AT_ONCE) + 16 * min(n_objects, RESTARTS_ON) + 160 * high)
    checks.check_memory(
        needed,
        memory_budget(),
        f"{n_landmarks} landmarks of {n_objects} objects with {n_features} features",
        "ask for fewer landmarks or clusterings, or for fewer features",
    )
    children = checks.make_generator(random_state).spawn(n_clusterings)
    settings = {"n_drawn": n_drawn, "n_landmarks": n_landmarks, "n_neighbors": n_neighbors, "max_iter": max_iter}
    keep: Callable[[str, Callable[[], Arrays]], Arrays] = found_anew
    if resume is not None:
        about = {"gpuens": __version__, "data": digest(X), "n_clusters": [low, high], **settings}
        keep = Folder(resume, {**about, "seed": _seed_of(children[0])}).part
    labels = np.empty((n_objects, n_clusterings), dtype=dtype, order="F")
    points = Points.of(X)
    with progress_bars.bar(n_clusterings, "landmark clusterings", show=progress) as shown:
        for m, rng in enumerate(children):
            k = int(rng.integers(low, high, endpoint=True))
            find = partial(_cluster, points, k, rng, dtype=dtype, **settings)
            labels[:, m] = keep(f"clustering_{m}", find)["labels"]
            shown.update(1)
    return Ensemble(list(labels.T), names=names)


def _seed_of(rng: np.random.Generator) -> list[str]:
    """Return what a generator was spawned from."""
    seeds: Any = rng.bit_generator.seed_seq
    return [str(seeds.entropy), str(seeds.spawn_key)]


def _cluster(
    points: Any,
    k: int,
    rng: np.random.Generator,
    *,
    n_drawn: int,
    n_landmarks: int,
    n_neighbors: int,
    max_iter: int,
    dtype: Any,
) -> Arrays:
    """Return the labels (n_objects,) of one clustering."""
    from gpuens.generate.landmark_cut import cut
    from gpuens.generate.landmark_graph import Landmarks, graph_of

    drawn = np.sort(rng.choice(points.shape[0], n_drawn, replace=False))
    with library_threads(1):
        landmarks = Landmarks.of_sample(points.at(drawn), n_landmarks, n_neighbors, rng)
        return {"labels": cut(graph_of(points, landmarks, n_neighbors), k, max_iter, rng).astype(dtype)}
