"""Clustering of features in one call: make base clusterings of the features, and find their consensus by a method."""

import numbers
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuens import generate
from gpuens.generate.neighbor_graph import is_graph
from gpuens.labels.edges import is_network
from gpuens.labels.features import Features, as_features, scaling_of
from gpuens.labels.frames import as_pandas
from gpuens.runtime import checks
from gpuens.runtime.defaults import KIND, METHOD, SCALES
from gpuens.runtime.device import chunked, home_of
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

if TYPE_CHECKING:  # this import is slow
    from gpuens.methods.base import Method

# kinds of base clusterings that accept features in chunks, and that can continue after a stop
BY_LANDMARKS = ("mixed", "landmark")


@takes_rng
def cluster(
    X: Any,
    n_clusters: int | None = None,
    *,
    method: str = METHOD,
    kind: str = KIND,
    n_clusterings: int | None = None,
    scale: str = "auto",
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    progress: bool | str = "auto",
    resume: str | os.PathLike[str] | None = None,
    client: Any = None,
) -> "Method":
    """Make many clusterings of objects by their features; return the fitted estimator of the consensus.

    By default, landmarks give base clusterings of two kinds, which follow clusters of any shape, and LWGP cuts the
    graph of objects and clusters. Of all combinations tried, this one is best over many data sets (docs/which.md). Kind
    "landmark" with method "hbgf" is ultra-scalable ensemble clustering (U-SENC).

    Parameters
    ----------
    X : array, DataFrame, SciPy sparse matrix or Dask array (n_objects, n_features)
        The features. With kinds "mixed" and "landmark", a memory map (``numpy.load(…, mmap_mode="r")``) is read in
        blocks of rows, and a Dask array, in chunks of rows, stays on the workers. Kind "leiden" also accepts a graph,
        as for `generate.leiden_ensemble`.
    n_clusters : int, optional
        The number of clusters. By default, it is the number that k-means and landmark clusterings of at most 10,000
        objects suggest, as in `gpuens.choose_k` (``suggestion_``). With kind "leiden", the base clusterings suggest
        the number; a method with its own rule, such as "em", uses that rule. A warning is given if it is in doubt.
    method : str
        A method, see `gpuens.methods`.
    kind : {"mixed", "landmark", "kmeans", "leiden"}
        The base clusterings: those of `generate.mixed_ensemble` for this number of clusters, or of
        `generate.landmark_ensemble`, `generate.kmeans_ensemble` or `generate.leiden_ensemble`, with their defaults.
    n_clusterings : int, optional
        M, the number of base clusterings. The default is 20; Leiden has resolutions × seeds.
    scale : {"auto", "standard", "robust", "none"}
        The scaling of the features: by mean and standard deviation, by median and quartiles, or none. "auto" is
        "standard", with a warning, for dense features of which one has over ten times the standard deviation of the
        middle one, because it would decide nearly alone which objects are near. For all other features, and for kind
        "leiden", "auto" is "none", because scaling harms more often than it helps. Pass "none" for principal components
        and for features with a common unit. Features in chunks are scaled by the numbers of at most 10,000 objects.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    progress : {"auto", True, False}
        Show progress bars; "auto" does on a terminal.
    resume : str or path, optional
        A folder that stores each finished landmark clustering, so that stopped work can continue.
    client : distributed.Client, optional
        Workers that make the base clusterings, for all kinds except "leiden". A Dask array is processed by the workers
        of this client or of the active client, otherwise by threads of this process.

    Returns
    -------
    estimator
        The method's fitted estimator, with ``labels_`` (n_objects,) and ``evidence()``; ``ensemble_`` is the `Ensemble`
        of base clusterings. For a Dask array, ``labels_`` and ``ensemble_`` (n_objects, n_clusterings) are Dask arrays
        in the same chunks.

    If the consensus agrees with none of the base clusterings (a mean adjusted Rand index below .15, and a mean adjusted
    Wallace index below .5), it is drawn from noise. The labels are then those of k-means with ten starts, with a
    warning; objects with equal label rows stay together. ``evidence()`` still compares the labels with the base
    clusterings, and `predict` gives a new label row the most similar cluster. Attributes of the method's partition,
    such as a tree or memberships, are then missing. For graphs, and if the features or the distinct label rows do not
    fit the memory, there is only the warning.

    Attributes of the estimator, besides those of the method:

    - ``scale_``: "standard", "robust" or "none", the scaling of the features.
    - ``mean_ari_``, ``mean_wallace_``: the mean adjusted Rand and Wallace indexes of the consensus with the base
      clusterings, also of a replaced consensus; None for a single cluster. If the distinct label rows of chunks do not
      fit this process, the indexes are those of at most 10,000 objects.
    - ``fallback_``: "k-means" if k-means took the place of the consensus, otherwise None.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For input that the method or the generator of base clusterings refuses, for more clusters than objects, for the
        scaling of a graph, and for features in chunks with kinds "kmeans" and "leiden" or with methods that need
        features.
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
    (2, 20, True)
    >>> found.scale_, found.fallback_
    ('none', None)
    """
    from gpuens.workflows import gate  # this import is slow
    from gpuens.workflows.compare import default_estimator

    check(n_clusters, method=method, kind=kind, n_clusterings=n_clusterings, scale=scale, resume=resume)
    X, rng = as_pandas(X), checks.make_generator(random_state)
    _refuse_chunks(X, kind, client)
    home = home_of(X, "X")
    estimator = default_estimator(method, n_clusters, int(rng.integers(2**31)), "auto")
    _refuse_features(X, estimator, method)
    if n_clusters is not None:
        checks.refuse_more_clusters(n_clusters, _n_objects(X))
    suggests = not (n_clusters is not None or estimator.parts().chooses_n_clusters or kind == "leiden")
    seed = int(rng.integers(2**31)) if suggests else 0
    source = _prepare(X, kind, scale, seed, home, client)
    if suggests:
        from gpuens.generate.suggestion import suggestion_by_features

        suggestion = suggestion_by_features(source.sample, seed)
        suggestion.warn_of_doubt()
        estimator.set_params(n_clusters=suggestion.n_clusters)
    settings = {
        **({} if resume is None else {"resume": resume}),
        **({"n_clusters": estimator.n_clusters} if kind == "mixed" else {}),
        **({} if kind == "leiden" else {"client": client}),
        **({} if n_clusterings is None else {"n_clusterings": n_clusterings}),
    }
    ensemble = generate.of_kind(kind)(source.X, random_state=rng, progress=progress, **settings)
    with checks.recorded() as warnings_of_fit:
        if chunked(ensemble):
            from gpuens.distributed import fit

            fit(estimator, ensemble, client=client)
        else:
            ensemble.device_kind = home
            features = getattr(source.X, "values", source.X) if estimator.parts().needs_features else None
            estimator.fit(ensemble, **({} if features is None else {"features": features}))
    estimator.ensemble_ = ensemble
    agreement = gate.agreement_of(estimator, ensemble, source.sampled, client)
    X = None if source.is_graph else source.X
    if gate.pass_gate(estimator, X, ensemble, agreement, int(rng.integers(2**31)), client):
        for sentence in warnings_of_fit:
            checks.warn(sentence)
    estimator.add_results({"scale": source.scale, **({"suggestion": suggestion} if suggests else {})})
    return estimator


class _Source(NamedTuple):
    """What base clusterings are made from."""

    X: Any  # features, scaled; or a graph
    scale: str  # name of the scaling
    sample: Any = None  # features by which the number of clusters is suggested
    sampled: np.ndarray | None = None  # the objects in the sample, ascending; None for all objects
    is_graph: bool = False


def _prepare(X: Any, kind: str, scale: str, seed: int, home: str, client: Any) -> _Source:
    """Check and scale the features; ``seed`` draws the sample of features in chunks."""
    if kind == "leiden":
        graph = is_graph(X) or is_network(X) or hasattr(X, "obsp")
        if graph and scale not in ("auto", "none"):
            raise ValueError(f"scale={scale!r} is for features, but X is a graph; leave it out.")
        if scale in ("auto", "none"):
            return _Source(X, "none", is_graph=graph)
    if not chunked(X):
        features, scale = Features.of(X, str(home), mapped=True).scaled(scale)
        return _Source(features.values if kind == "leiden" else features, scale, features)
    from gpuens.distributed import features_in_chunks, rows_in_chunks
    from gpuens.generate.suggestion import draw_sample

    columns, X = getattr(X, "columns", None), features_in_chunks(X, None, client)
    sampled = draw_sample(X.shape[0], seed)
    sample = as_features(rows_in_chunks(X, sampled, client), "cpu", part=True)
    scaling = scaling_of(sample, scale, columns=columns)
    if scaling is None:
        return _Source(X, "none", sample, sampled)
    scaling.say()
    X = X.rechunk({1: -1}).map_blocks(scaling, dtype=np.result_type(X.dtype, np.float32))
    return _Source(X, scaling.name, scaling(sample), sampled)


def _refuse_chunks(X: Any, kind: str, client: Any) -> None:
    if chunked(X) and kind not in BY_LANDMARKS:
        raise TypeError(
            f"X is in chunks, but kind={kind!r} needs features in one piece; take kind='mixed', or pass X.compute()."
        )
    if client is not None and kind == "leiden":
        raise ValueError("client is not for kind='leiden'; leave it out.")


def _refuse_features(X: Any, estimator: "Method", method: str) -> None:
    """Raise an error if the method needs features of another form."""
    if estimator.parts().needs_features and chunked(X):
        raise TypeError(
            f"X is in chunks, but method {method!r} compares each object with all others; pass X.compute(), or take a "
            "method that uses only labels."
        )
    if estimator.parts().needs_features and (hasattr(X, "tocsr") or hasattr(X, "obsp")):
        raise TypeError(
            f"X must be dense features for method {method!r}, not {type(X).__name__}; pass an array, or take a method "
            "that uses only labels."
        )


def check(
    n_clusters: int | None, *, method: str, kind: str, n_clusterings: int | None, scale: str, resume: Any
) -> "Method":
    """Return the unfitted estimator; refuse parameters of `cluster` that are invalid whatever the features are."""
    from gpuens.workflows.compare import default_estimator

    generate.of_kind(kind)
    checks.check_choice(scale, "scale", SCALES)
    if resume is not None and kind not in BY_LANDMARKS:
        raise ValueError(f"resume={os.fspath(resume)!r} is for kind='mixed' and kind='landmark'; leave it out.")
    if n_clusterings is not None and kind == "leiden":
        raise ValueError(
            f"n_clusterings={checks.shown(n_clusterings)} is not for kind='leiden', whose clusterings are its "
            "resolutions × seeds; leave it out."
        )
    estimator = default_estimator(method, n_clusters, 0, "auto")
    estimator.checked_parts()
    return estimator


def _n_objects(X: Any) -> float:
    """Return the number of objects in X, or infinity if it is unknown.

    It is unknown for chunks of unknown sizes, and for invalid input, which the generator of base clusterings refuses.
    """
    try:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError:  # NumPy raises this error for a list of lists that have different lengths
        shape = ()
    return int(shape[0]) if shape and isinstance(shape[0], numbers.Integral) else np.inf
