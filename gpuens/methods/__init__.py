"""The named methods, one per file: each says which similarity and which partitioner it joins.

This registry is all that ``import gpuens`` loads; a method's file is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuens.methods.base import Consensus

# what `consensus` and the command line call a method -> its estimator
_METHODS = {
    "cgc": "CgC",
    "crc-c": "CrCC",
    "crc-ia": "CrCIa",
    "eac": "EAC",
    "ecrmc": "ECRMC",
    "hbgf": "HBGF",
    "lwea": "LWEA",
    "lwgp": "LWGP",
    "oc-h": "OCH",
    "oc-ia": "OCIa",
    "s-cce": "SCCE",
    "scec": "SCEC",
}
# public name of an estimator -> its file
ESTIMATORS = {estimator: method.replace("-", "_") for method, estimator in _METHODS.items()}

__all__ = [*ESTIMATORS, "consensus", "methods"]


def __getattr__(name: str) -> Any:
    if name not in ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{ESTIMATORS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def methods() -> "dict[str, type[Consensus]]":
    """Return the estimators by the names that `consensus` and the command line take.

    >>> import gpuens as ge
    >>> sorted(ge.methods())
    ['cgc', 'crc-c', 'crc-ia', 'eac', 'ecrmc', 'hbgf', 'lwea', 'lwgp', 'oc-h', 'oc-ia', 's-cce', 'scec']
    """
    return {method: __getattr__(estimator) for method, estimator in _METHODS.items()}


def consensus(
    labels: Any, n_clusters: int | None = None, *, method: str = "lwea", X: Any = None, **parameters: Any
) -> Any:
    """Return the consensus of base clusterings: the label of each object.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        (n_objects, n_clusterings); -1, NaN and None mean missing.
    n_clusters : int, optional
        How many clusters are wanted. The linkage methods choose for themselves without it (longest lifetime).
    method : str
        A key of `gpuens.methods`.
    X : array (n_objects, n_features), optional
        Features of the objects, for the methods that need them ("ecrmc").
    **parameters
        The estimator's other parameters, such as ``theta`` or ``random_state``.

    Returns
    -------
    array (n_objects,), int64
        NumPy, or CuPy for labels that came in GPU memory.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 1, 1, 1, 2], ["a", "a", "a", "b", "b", "b"], [5, 5, 7, 7, 7, 7]]
    >>> ge.consensus(labels, n_clusters=2, method="lwea").tolist()
    [0, 0, 1, 1, 1, 1]
    """
    from gpuens import checks

    estimator = methods()[checks.check_choice(method, "method", sorted(_METHODS))]
    names = estimator._get_param_names()
    for name in parameters:
        if name not in names:
            raise TypeError(f"{name!r} is no parameter of method {method!r}, which has {', '.join(names)}.")
    made: Any = estimator(n_clusters, **parameters)
    if estimator._takes_features:
        return made.fit(labels, X=X).labels_
    if X is not None:
        raise TypeError(f"X was given, but method {method!r} goes by the labels alone; leave it out.")
    return made.fit(labels).labels_
