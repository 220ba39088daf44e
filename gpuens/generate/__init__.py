"""Base clusterings: many k-means or landmark spectral clusterings of features, Leiden clusterings of a graph,
and those of any clusterers."""

from collections.abc import Callable
from typing import Any

from gpuens.generate.estimators import from_estimators
from gpuens.generate.kmeans import kmeans_ensemble
from gpuens.generate.landmarks import landmark_ensemble
from gpuens.generate.leiden import leiden_ensemble

# of features, with as many clusterings as are asked for, by their names on the command line
KINDS: dict[str, Callable[..., Any]] = {"kmeans": kmeans_ensemble, "landmark": landmark_ensemble}

__all__ = ["KINDS", "from_estimators", "kmeans_ensemble", "landmark_ensemble", "leiden_ensemble"]
