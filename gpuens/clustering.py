"""From features to a consensus in one call: base clusterings are made, and a method finds what they support."""

import os
from typing import Any

from gpuens import checks, generate


def cluster(
    X: Any,
    n_clusters: int | None,
    *,
    method: str = "hbgf",
    kind: str = "landmark",
    n_clusterings: int = 20,
    random_state: Any = 0,
    progress: bool | str = "auto",
    resume: str | os.PathLike | None = None,
) -> Any:
    """Cluster objects by their features; return the fitted estimator of the consensus of many clusterings.

    With the default method and kind this is ultra-scalable ensemble clustering (U-SENC).

    Parameters
    ----------
    X : array, DataFrame or SciPy sparse matrix (n_objects, n_features)
        The features, unscaled.
    n_clusters : int or None
        The number of clusters; None for methods that choose it.
    method : str
        A method, see `gpuens.methods`.
    kind : {"landmark", "kmeans"}
        The base clusterings: those of `generate.landmark_ensemble` or `generate.kmeans_ensemble`, with their defaults.
    n_clusterings : int
        M, the number of base clusterings.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    progress : {"auto", True, False}
        Show progress bars; "auto" does on a terminal.
    resume : str or path, optional
        A folder that keeps each landmark clustering once it is made, so that work that was stopped goes on.

    Returns
    -------
    estimator
        ``labels_`` (n_objects,), ``evidence()`` and all else that the method's estimator has; ``ensemble_`` is the
        `Ensemble` of base clusterings.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For what the method or the generator of the base clusterings refuses.

    References
    ----------
    Huang, Wang, Wu, Lai & Kwoh (2020), Ultra-scalable spectral clustering and ensemble clustering, IEEE Transactions on
    Knowledge and Data Engineering 32(6).

    Examples
    --------
    >>> import gpuens as ge
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(2000, noise=0.07, random_state=0)
    >>> found = ge.cluster(X, 2)
    >>> found.n_clusters_, found.ensemble_.n_clusterings, bool(ge.metrics.nmi(y, found.labels_) > 0.9)
    (2, 20, True)
    """
    from gpuens.comparison import made  # which takes long to load

    make = generate.KINDS[checks.check_choice(kind, "kind", list(generate.KINDS))]
    given: dict[str, Any] = {} if resume is None else {"resume": resume}
    if given and kind != "landmark":
        raise ValueError(f"resume={os.fspath(given['resume'])!r} is for kind='landmark'; leave it out.")
    rng = checks.make_generator(random_state)
    estimator = made(method, n_clusters, int(rng.integers(2**31)), "auto")
    estimator._checked()  # before the long work
    ensemble = make(X, n_clusterings, random_state=rng, progress=progress, **given)
    estimator.fit(ensemble, **({"features": X} if estimator.needs_features else {}))
    estimator.ensemble_ = ensemble
    return estimator
