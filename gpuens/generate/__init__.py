"""Base clusterings: mixed kinds, k-means or landmark spectral clusterings of features, Leiden and Louvain
clusterings of a graph, and clusterings by any clusterers."""

from collections.abc import Callable
from typing import Any

from gpuens.generate.estimators import from_estimators
from gpuens.generate.kmeans import kmeans_ensemble
from gpuens.generate.landmarks import landmark_ensemble
from gpuens.generate.leiden import leiden_ensemble
from gpuens.generate.leiden_partition import package
from gpuens.generate.louvain import louvain_ensemble
from gpuens.generate.mixed import mixed_ensemble
from gpuens.runtime import checks

# names of generators on the command line and in `gpuens.cluster`, with the functions that make the base clusterings
KINDS: dict[str, Callable[..., Any]] = {
    "kmeans": kmeans_ensemble,
    "landmark": landmark_ensemble,
    "leiden": leiden_ensemble,
    "mixed": mixed_ensemble,
}

__all__ = [
    "KINDS",
    "from_estimators",
    "kmeans_ensemble",
    "landmark_ensemble",
    "leiden_ensemble",
    "louvain_ensemble",
    "mixed_ensemble",
    "of_kind",
]


def of_kind(kind: str, device: str = "auto") -> Callable[..., Any]:
    """Return the function that makes base clusterings of a kind.

    Raise an error if the kind is unknown, or if a package that it needs is not installed.

    Parameters
    ----------
    kind : {"kmeans", "landmark", "leiden", "mixed"}
    device : str
        The device of the function; Leiden needs another package on a GPU.

    Returns
    -------
    callable
        `kmeans_ensemble`, `landmark_ensemble`, `leiden_ensemble` or `mixed_ensemble`.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.generate.of_kind("kmeans") is ge.generate.kmeans_ensemble
    True
    """
    function = KINDS[checks.check_choice(kind, "kind", list(KINDS))]
    if function is leiden_ensemble:
        package(device)
    return function


def __dir__() -> list[str]:
    return sorted(__all__)
