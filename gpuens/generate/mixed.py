"""Base clusterings of two kinds, for clusters of any shape; each set of landmarks gives one clustering of each kind.

landmarks of set i ─┬─▶ transfer cut; it has about n_clusters clusters for every fourth i, and otherwise many clusters
                    └─▶ clusters of the landmarks by Genie; the largest Gini index differs between successive i
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.generate.landmarks import LandmarkPlan, by_landmarks, range_for
from gpuens.generate.tasks import ClustersOfLandmarks
from gpuens.labels.ensemble import Ensemble
from gpuens.runtime import checks
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

# largest Gini indexes for Genie; successive clusterings use successive values, and 1 gives single linkage
MOST_UNEQUAL = (0.1, 0.3, 0.5, 0.7, 1.0)
NEAR = 4  # every NEAR-th transfer cut has a number of clusters near ``n_clusters``
# if there are few objects, about one object in LEFT_OUT is not a landmark, so that sets of landmarks differ
LEFT_OUT = 10
# if there are more objects than landmarks, a landmark stands for so many objects and averages their noise
OBJECTS_OF_A_LANDMARK = 4
FEWEST, MOST = 500, 1000  # numbers of landmarks
LANDMARKS_PER_CLUSTER = 2  # least number of landmarks for each of the largest number of clusters


@takes_rng
def mixed_ensemble(
    X: Any,
    n_clusterings: int = 20,
    n_clusters: int | None = None,
    *,
    n_landmarks: int | None = None,
    n_neighbors: int = 5,
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    names: Sequence[Any] | None = None,
    progress: bool | str = "auto",
    resume: str | os.PathLike[str] | None = None,
    device: str = "auto",
    client: Any = None,
) -> Ensemble | Any:  # Any: a Dask array if X is one
    """Cluster the objects many times by two different algorithms; return the ensemble of base clusterings.

    Each set of landmarks, drawn as by `landmark_ensemble`, gives two clusterings of the landmarks, which weigh as many
    objects as they are nearest to. Every object is in the cluster of its nearest landmark. The clusterings are:

    - The transfer cut of the graph of objects and landmarks, which follows paths inside clusters. Three in four cuts
      have 20 … 60 clusters, which are parts of the wanted clusters; one in four has a number near ``n_clusters``.
    - Genie's clusters of the landmarks, a single linkage that limits the inequality of sizes (by a Gini index of .1,
      .3, .5, .7 or 1), with a number of clusters near ``n_clusters``.

    A number near ``n_clusters`` is from n_clusters (at least 2) to 2 n_clusters + 2. Clusters on which both kinds agree
    are reliable for many shapes. Time and memory are linear in the number of objects.

    Clustering m depends only on ``random_state``, ``n_clusters`` and m, not on the number of clusterings or threads.

    Parameters
    ----------
    X : array, DataFrame, SciPy sparse matrix or Dask array (n_objects, n_features)
        The features, which are not scaled, as for `landmark_ensemble`.
    n_clusterings : int
        M, the number of clusterings.
    n_clusters : int, optional
        The number of clusters of the planned consensus. By default, all clusterings have 20 … 60 clusters, or fewer for
        few objects, as in `landmark_ensemble`.
    n_landmarks : int, optional
        p, the number of landmarks. The default is a quarter of the objects, from 500 to 1000, but nine tenths of up to
        1111 objects, whose clusters may be thin; and at least twice the largest number near ``n_clusters``.
    n_neighbors : int
        K, the number of landmarks to which each object has an edge.
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
        The device; "auto" follows X. See `landmark_ensemble`; clusters of landmarks are computed on the CPU.
    client : distributed.Client, optional
        Workers that make the clusterings, as in `landmark_ensemble`.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)
        For a Dask array, a Dask array of labels in the same chunks, as in `landmark_ensemble`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `landmark_ensemble`, and for more clusters than objects or than landmarks.

    References
    ----------
    Huang, Wang, Wu, Lai & Kwoh (2020), Ultra-scalable spectral clustering and ensemble clustering, IEEE Transactions on
    Knowledge and Data Engineering 32(6). Gagolewski, Bartoszuk & Cena (2016), Genie: a new, fast, and outlier-resistant
    hierarchical clustering algorithm, Information Sciences 363.

    Examples
    --------
    >>> import gpuens as ge
    >>> X = ge.datasets.load("iris").X
    >>> ens = ge.generate.mixed_ensemble(X, n_clusterings=10, n_clusters=3)
    >>> ge.LWGP(3).fit(ens).n_clusters_
    3
    """

    def plan(n_objects: int) -> LandmarkPlan:
        wide = narrow = range_for(n_objects)
        fewest = 1
        if n_clusters is not None:
            k = checks.check_integer(n_clusters, "n_clusters", minimum=1)
            checks.refuse_more_clusters(k, n_objects)
            fewest = max(k, min(2, n_objects))  # at least 2, because one cluster has no information
            largest = max(fewest, n_objects // 2)
            narrow = fewest, min(2 * k + 2, largest)
            wide = max(fewest, wide[0]), min(max(narrow[1], wide[1]), largest)
        p = max(landmarks_for(n_objects), LANDMARKS_PER_CLUSTER * narrow[1])
        if n_landmarks is not None:
            p = checks.check_integer(n_landmarks, "n_landmarks", minimum=1)
            if p < fewest:
                raise ValueError(
                    f"n_landmarks={p} is too few for {fewest} clusters, which consist of landmarks; take more "
                    "landmarks."
                )
        p = max(fewest, min(p, n_objects - n_objects // LEFT_OUT))

        def task(i: int, rng: np.random.Generator) -> ClustersOfLandmarks:
            of_cut, of_tree = (
                int(rng.integers(*ends, endpoint=True)) for ends in (wide if i % NEAR else narrow, narrow)
            )
            return ClustersOfLandmarks(rng, of_cut, (of_tree, MOST_UNEQUAL[i % len(MOST_UNEQUAL)]))

        about = {"n_clusters": n_clusters, "kind": "mixed"}
        return LandmarkPlan(task, max(narrow[1], wide[1]), p, about, ClustersOfLandmarks)

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


def landmarks_for(n_objects: int) -> int:
    """Return the default number of landmarks of ``n_objects`` objects."""
    n_landmarks = n_objects - n_objects // LEFT_OUT
    return n_landmarks if n_landmarks <= MOST else min(MOST, max(FEWEST, n_objects // OBJECTS_OF_A_LANDMARK))
