"""The named methods, one per file: each says which similarity and which partitioner it joins."""

import sys
from types import ModuleType
from typing import Any

from gpuens import validation
from gpuens.methods.base import Consensus
from gpuens.methods.cgc import CgC
from gpuens.methods.crc_c import CrCC
from gpuens.methods.crc_ia import CrCIa
from gpuens.methods.eac import EAC
from gpuens.methods.ecrmc import ECRMC
from gpuens.methods.hbgf import HBGF
from gpuens.methods.lwea import LWEA
from gpuens.methods.lwgp import LWGP
from gpuens.methods.oc_h import OCH
from gpuens.methods.oc_ia import OCIa
from gpuens.methods.s_cce import SCCE
from gpuens.methods.scec import SCEC

_METHODS: dict[str, type[Consensus]] = {
    "cgc": CgC,
    "crc-c": CrCC,
    "crc-ia": CrCIa,
    "eac": EAC,
    "ecrmc": ECRMC,
    "hbgf": HBGF,
    "lwea": LWEA,
    "lwgp": LWGP,
    "oc-h": OCH,
    "oc-ia": OCIa,
    "s-cce": SCCE,
    "scec": SCEC,
}

__all__ = [
    "EAC",
    "ECRMC",
    "HBGF",
    "LWEA",
    "LWGP",
    "OCH",
    "SCCE",
    "SCEC",
    "CgC",
    "CrCC",
    "CrCIa",
    "OCIa",
    "consensus",
    "methods",
]


def methods() -> dict[str, type[Consensus]]:
    """Return the estimators by the names that `consensus` and the command line take.

    >>> import gpuens as ge
    >>> sorted(ge.methods())
    ['cgc', 'crc-c', 'crc-ia', 'eac', 'ecrmc', 'hbgf', 'lwea', 'lwgp', 'oc-h', 'oc-ia', 's-cce', 'scec']
    """
    return dict(_METHODS)


class _CallableModule(ModuleType):
    """``gpuens.methods()`` works although the import of this package puts the module in place of the function."""

    def __call__(self) -> dict[str, type[Consensus]]:
        return methods()


sys.modules[__name__].__class__ = _CallableModule


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
    estimator = _METHODS[validation.choice(method, "method", sorted(_METHODS))]
    validation.parameters(parameters, method, estimator._get_param_names())
    made: Any = estimator(n_clusters, **parameters)
    if estimator._takes_features:
        return made.fit(labels, X=X).labels_
    if X is not None:
        raise validation.no_features(method)
    return made.fit(labels).labels_
