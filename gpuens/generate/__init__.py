"""Base clusterings of features: many k-means, many landmark spectral clusterings."""

from collections.abc import Callable
from typing import Any

from gpuens.generate.kmeans import kmeans_ensemble
from gpuens.generate.landmarks import landmark_ensemble

# by their names on the command line
KINDS: dict[str, Callable[..., Any]] = {"kmeans": kmeans_ensemble, "landmark": landmark_ensemble}

__all__ = ["KINDS", "kmeans_ensemble", "landmark_ensemble"]
