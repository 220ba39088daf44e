"""The named methods, one per file; a method combines a similarity and a partitioner.

``import gpuens`` loads only this registry; the file of a method is loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from gpuens.methods.registered import CONNECTED
from gpuens.methods.registered import ESTIMATORS as ESTIMATORS
from gpuens.methods.registered import REGISTRY as REGISTRY
from gpuens.runtime.defaults import METHOD, METHOD_WITH_LINKS
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

if TYPE_CHECKING:
    from gpuens.methods.base import Method
    from gpuens.partition import Partitioner
    from gpuens.runtime.device import Array
    from gpuens.similarity import Measure

__all__ = [*ESTIMATORS, "consensus", "methods", "partitioners", "register", "similarities"]


def __getattr__(name: str) -> Any:
    if name not in ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = REGISTRY.load(ESTIMATORS[name])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def methods() -> "dict[str, type[Method]]":
    """Return {name: estimator}, with the names that `consensus` and the command line accept.

    The estimators are gpuens's own, those added by `register`, and those of installed packages with entry points in the
    group "gpuens.methods":

        [project.entry-points."gpuens.methods"]
        cspa = "your_package.cspa:CSPA"

    >>> import gpuens as ge
    >>> list(ge.methods())[:5]
    ['best-of-k', 'cgc', 'crc-c', 'crc-ia', 'cspa']
    """
    return REGISTRY.all()


def register(name: str, estimator: "type[Method]") -> None:
    """Add a method to `methods`, and so to `consensus` and to the command line of this process.

    Parameters
    ----------
    name : str
        Lower-case letters, digits and dashes; not the name of another method.
    estimator : class
        Derived from `gpuens.methods.base.Method`.

    Raises
    ------
    ValueError, TypeError
        For used or malformed names, and for classes not derived from Method.

    Examples
    --------
    >>> import gpuens as ge
    >>> class Mild(ge.LWEA):
    ...     "LWEA that punishes uncertainty less."
    >>> ge.register("mild", Mild)
    >>> ge.consensus([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]], n_clusters=2, method="mild").tolist()
    [0, 0, 0, 1, 1, 1]
    """
    REGISTRY.register(name, estimator)


def similarities() -> "dict[str, type[Measure]]":
    """Return {name: similarity}, with the names that `gpuens.Consensus` and the command line accept.

    >>> import gpuens as ge
    >>> sorted(ge.similarities())  # doctest: +NORMALIZE_WHITESPACE
    ['agreement', 'coassociation', 'common-neighbors', 'coupled', 'jaccard', 'links', 'lwca', 'mapping', 'propagated',
     'trajectories']
    """
    from gpuens.similarity import SIMILARITIES

    return dict(SIMILARITIES)


def partitioners() -> "dict[str, type[Partitioner]]":
    """Return {name: partitioner}, with the names that `gpuens.Consensus` and the command line accept.

    >>> import gpuens as ge
    >>> sorted(ge.partitioners())  # doctest: +NORMALIZE_WHITESPACE
    ['average', 'complete', 'label-kmeans', 'meta-clusters', 'metis', 'pam', 'rock', 'single', 'spectral',
     'transfer-cut']
    """
    from gpuens.partition import PARTITIONERS

    return dict(PARTITIONERS)


@takes_rng
def consensus(
    labels: Any,
    n_clusters: int | None = None,
    *,
    method: str | None = None,
    features: Any = None,
    min_confidence: float | None = None,
    sample_weight: Any = None,
    wide: bool = False,
    graph: Any = None,
    coordinates: Any = None,
    groups: Any = None,
    must_link: Any = None,
    cannot_link: Any = None,
    rng: Any = NOT_GIVEN,
    **parameters: Any,
) -> "Array":
    """Return the consensus of base clusterings: the label of each object.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        (n_objects, n_clusterings); -1, NaN and None mean missing.
    n_clusters : int, optional
        The number of clusters. By default, the number that `gpuens.evidence.suggestion` gives, with a warning if it is
        in doubt.
    method : str, optional
        A key of `gpuens.methods`; by default "lwgp", "qmi" with neighbours, and "lwea" with links.
    features : array (n_objects, n_features), optional
        Features of the objects, for the methods that need them ("ecrmc").
    min_confidence : float, optional
        The least confidence of a label, from 0 to 1; an object with less has the label -1 (``confident_labels`` of an
        estimator).
    sample_weight : array (n_objects,), optional
        Positive weights of the objects: weight 3 counts as three objects, see `gpuens.Consensus.fit`.
    wide : bool
        Rows are objects, even if there are more clusterings than objects; as in `gpuens.Ensemble`.
    graph : anything that `gpuens.Graph.of` takes, optional
        The neighbours of the objects. The result are the domains of `gpuens.Spatial` by the method, or, for
        method="eac", "lwea" or "weac", connected clusters.
    coordinates : array (n_objects, n_dimensions), optional
        In place of a graph: places, each joined to the 6 nearest ones.
    groups : array (n_objects,), optional
        With coordinates: the slide or image of each object; no edge joins two.
    must_link, cannot_link : array or DataFrame (n_pairs, 2), optional
        Pairs of objects that must or must not be in one cluster, see `gpuens.Consensus.fit`.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7), a parameter of methods that draw; only one of both is passed.
    **parameters
        The estimator's other parameters, such as ``theta`` or ``random_state``.

    Returns
    -------
    array (n_objects,), int64
        In the memory and the library of the labels: of CuPy or PyTorch if they are. For
        ``method="voting", vocabulary="shared"``, labels are names.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 1, 1, 1, 2], ["a", "a", "a", "b", "b", "b"], [5, 5, 7, 7, 7, 7]]
    >>> ge.consensus(labels, n_clusters=2, method="lwea").tolist()
    [1, 1, 0, 0, 0, 0]
    """
    neighbors = {"graph": graph, "coordinates": coordinates, "groups": groups}
    neighbors = {name: value for name, value in neighbors.items() if value is not None}
    links = {"must_link": must_link, "cannot_link": cannot_link}
    links = {name: value for name, value in links.items() if value is not None}
    if neighbors:
        estimator = make_with_neighbors(method, n_clusters, parameters)
    else:
        default = METHOD_WITH_LINKS if links else METHOD
        estimator = make_estimator(default if method is None else method, n_clusters, parameters)
    if min_confidence is not None:
        from gpuens.runtime import checks

        checks.check_between(min_confidence, "min_confidence", 0, 1)
    options: dict[str, Any] = {"features": features, "sample_weight": sample_weight, "wide": wide}
    if neighbors and isinstance(method, str) and method in CONNECTED:
        from gpuens.labels.ensemble import Ensemble
        from gpuens.methods.spatial import graph_of

        labels = Ensemble(labels, wide=wide)
        neighbors = {"graph": graph_of(labels.n_objects, labels.index, graph, coordinates, groups)}
    estimator.fit(labels, **options, **neighbors, **links)
    return estimator.labels_ if min_confidence is None else estimator.confident_labels(min_confidence)


def make_with_neighbors(method: str | None, n_clusters: int | None, parameters: dict[str, Any]) -> "Method":
    """Return the estimator of a method for objects with neighbours: of connected clusters, or else of domains.

    Parameters of `gpuens.Spatial` are its own; all others are the method's.
    """
    from gpuens.methods.spatial import METHOD, Spatial

    method = METHOD if method is None else method
    if isinstance(method, str) and method in CONNECTED:
        return make_estimator(method, n_clusters, parameters)
    names = set(Spatial._get_param_names())
    of_spatial = {name: value for name, value in parameters.items() if name in names - {"method"}}
    rest = {name: value for name, value in parameters.items() if name not in names}
    if rest and "random_state" in set(parameters) & set(REGISTRY.load(method)._get_param_names()):
        rest["random_state"] = parameters["random_state"]
    return Spatial(n_clusters, method=make_estimator(method, None, rest) if rest else method, **of_spatial)


def make_estimator(method: str, n_clusters: int | None, parameters: dict[str, Any]) -> "Method":
    """Return the estimator of a method; raise an error if the method does not have one of the parameters."""
    kind: type[Method] = REGISTRY.load(method)
    names = kind._get_param_names() if parameters else []
    for name in parameters:
        if name not in names:
            also = " (or rng)" if name == "random_state" else ""
            raise TypeError(
                f"{name!r}{also} is no parameter of method {method!r}; its parameters are {', '.join(names)}."
            )
    return kind(n_clusters, **parameters)
