"""From features to a consensus in one call: base clusterings are made, and a method finds what they support."""

import numbers
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens import generate
from gpuens.labels.features import as_features, warn_of_scales
from gpuens.runtime import checks
from gpuens.runtime.defaults import KIND, METHOD
from gpuens.runtime.device import chunked, kind_of
from gpuens.workflows import run as runs

if TYPE_CHECKING:  # takes long to load
    from gpuens.methods.base import Consensus

BY_LANDMARKS = ("mixed", "landmark")  # kinds of base clusterings that are made of chunks, and go on where they stopped


def cluster(
    X: Any,
    n_clusters: int | None = None,
    *,
    method: str = METHOD,
    kind: str = KIND,
    n_clusterings: int | None = None,
    random_state: Any = 0,
    progress: bool | str = "auto",
    resume: str | os.PathLike[str] | None = None,
    client: Any = None,
) -> "Consensus":
    """Cluster objects by their features; return the fitted estimator of the consensus of many clusterings.

    Base clusterings of two kinds, which follow clusters of any shape, are made by landmarks, and LWGP cuts the graph of
    objects and clusters: of what was tried this is best over many data sets (docs/which.md). With kind "landmark" and
    method "hbgf" this is ultra-scalable ensemble clustering (U-SENC).

    Parameters
    ----------
    X : array, DataFrame, SciPy sparse matrix or Dask array (n_objects, n_features)
        The features, unscaled; of dense ones a warning says where one is so large that it decides alone. With kinds
        "mixed" and "landmark" a memory map (``numpy.load(…, mmap_mode="r")``) is read a block of rows at a time, and a
        Dask array, in chunks of rows, stays on the workers. With kind "leiden" also a graph, as for
        `generate.leiden_ensemble`.
    n_clusters : int, optional
        The number of clusters. Without it the number that k-means and landmark clusterings of at most 10,000 of the
        objects support best, as `gpuens.choose_k` suggests (``spectrum_``); for kind "leiden" that of the base
        clusterings, and for methods with a rule of their own, such as "em", theirs. A warning says where others have
        nearly as much support.
    method : str
        A method, see `gpuens.methods`.
    kind : {"mixed", "landmark", "kmeans", "leiden"}
        The base clusterings: those of `generate.mixed_ensemble` for this number of clusters, or of
        `generate.landmark_ensemble`, `generate.kmeans_ensemble` or `generate.leiden_ensemble`, with their defaults.
    n_clusterings : int, optional
        M, the number of base clusterings: if not given 40 mixed ones, 20 by landmarks or k-means. Leiden's are its
        resolutions × seeds.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    progress : {"auto", True, False}
        Show progress bars; "auto" does on a terminal.
    resume : str or path, optional
        A folder that keeps each clustering by landmarks once it is made, so that work that was stopped goes on.
    client : distributed.Client, optional
        Workers that make the base clusterings, for all kinds but "leiden". A Dask array is worked on by the
        workers of this client or of the active one, else by threads of this process.

    Returns
    -------
    estimator
        ``labels_`` (n_objects,), ``evidence()`` and all else that the method's estimator has; ``ensemble_`` is the
        `Ensemble` of base clusterings. Of a Dask array, ``labels_`` and ``ensemble_`` (n_objects, n_clusterings) are
        Dask arrays in the same chunks.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For what the method or the generator of the base clusterings refuses, more clusters than objects, and features
        in chunks for kinds "kmeans" and "leiden" or methods that need them.
    ImportError
        For kind "leiden" without igraph.

    References
    ----------
    Huang, Wang & Lai (2018), Locally weighted ensemble clustering, IEEE Transactions on Cybernetics 48(5): LWGP. Huang,
    Wang, Wu, Lai & Kwoh (2020), Ultra-scalable spectral clustering and ensemble clustering, IEEE Transactions on
    Knowledge and Data Engineering 32(6). Gagolewski, Bartoszuk & Cena (2016), Genie, Information Sciences 363.

    Examples
    --------
    >>> import gpuens as ge
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(2000, noise=0.07, random_state=0)
    >>> found = ge.cluster(X, 2)
    >>> found.n_clusters_, found.ensemble_.n_clusterings, bool(ge.metrics.nmi(y, found.labels_) > 0.9)
    (2, 40, True)
    """
    from gpuens.workflows import choose_k as choosing  # takes long to load
    from gpuens.workflows.compare import made

    check(n_clusters, method=method, kind=kind, n_clusterings=n_clusterings, resume=resume)
    if chunked(X) and kind not in BY_LANDMARKS:
        raise TypeError(
            f"X is in chunks, of which ge.cluster makes no base clusterings of kind={kind!r}: take kind='mixed', or "
            "pass X.compute()."
        )
    if client is not None and kind == "leiden":
        raise ValueError("client is for other kinds than 'leiden'; leave it out.")
    rng = checks.make_generator(random_state)
    estimator = made(method, n_clusters, int(rng.integers(2**31)), "auto")
    if estimator.needs_features and chunked(X):
        raise TypeError(
            f"X is in chunks, but method {method!r} compares each object with all others: pass X.compute(), or take a "
            "method that goes by labels alone."
        )
    if estimator.needs_features and (hasattr(X, "tocsr") or hasattr(X, "obsp")):
        raise TypeError(
            f"X must be dense features for method {method!r}, not {type(X).__name__}: pass an array, or take a method "
            "that goes by labels alone."
        )
    if n_clusters is not None:
        checks.refuse_more_clusters(n_clusters, _n_objects(X))
    supported, asked = None, n_clusters is not None or estimator.chooses_n_clusters or kind == "leiden"
    seed = 0 if asked else int(rng.integers(2**31))
    some = X  # shows scales and how many clusters there are
    if chunked(X):
        from gpuens.distributed import features_in_chunks, rows_in_chunks

        X = features_in_chunks(X, None, client)
        drawn = choosing.drawn(X.shape[0], seed)
        some = as_features(rows_in_chunks(X, drawn, client), "cpu", part=True)
    if not asked:
        supported = choosing.by_features(as_features(some, kind_of(some), mapped=True), seed)
        supported.warn_of_doubt()
        estimator.set_params(n_clusters=supported.suggested)
    given: dict[str, Any] = {} if resume is None else {"resume": resume}
    if kind == "mixed":
        given["n_clusters"] = estimator.n_clusters
    if kind != "leiden":
        given["client"] = client
    if n_clusterings is not None:
        given["n_clusterings"] = n_clusterings
    ensemble = generate.of_kind(kind)(X, random_state=rng, progress=progress, **given)
    if kind != "leiden":
        warn_of_scales(some)
    if chunked(ensemble):
        from gpuens.distributed import fit

        fit(estimator, ensemble, client=client)
    else:
        estimator.fit(ensemble, **({"features": X} if estimator.needs_features else {}))
    estimator.ensemble_ = ensemble
    if supported is not None:
        estimator._keep({"spectrum": supported})
    return estimator


def check(
    n_clusters: int | None,
    *,
    method: str,
    kind: str,
    n_clusterings: int | None,
    resume: Any,
    scheduler: str | None = None,
) -> None:
    """Refuse, before any work, parameters of `cluster` that no features, read in chunks for a scheduler, make right."""
    from gpuens.workflows.compare import made

    generate.of_kind(kind)
    if resume is not None and kind not in BY_LANDMARKS:
        raise ValueError(f"resume={os.fspath(resume)!r} is for kind='mixed' and kind='landmark'; leave it out.")
    if scheduler is not None and kind not in BY_LANDMARKS:
        raise ValueError(
            f"scheduler={scheduler} is for work in chunks, of which kind={kind!r} makes no clusterings here: take "
            "kind='mixed', or a file that is read in one piece."
        )
    if n_clusterings is not None and kind == "leiden":
        raise ValueError(
            f"n_clusterings={checks.shown(n_clusterings)} is not for kind='leiden', whose clusterings are its "
            "resolutions × seeds; leave it out."
        )
    estimator = made(method, n_clusters, 0, "auto")
    runs.check(estimator, method, features=estimator.needs_features or None, scheduler=scheduler)


def _n_objects(X: Any) -> float:
    """Return the number of objects, infinite for what is no features, as the generator says, and for unknown chunks."""
    try:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError:  # lists of different lengths
        shape = ()
    return int(shape[0]) if shape and isinstance(shape[0], numbers.Integral) else np.inf
