"""The number of clusters that features suggest, by base clusterings of a sample of the objects."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.evidence.spectrum import LARGEST
from gpuens.evidence.suggestion import Suggestion, suggestion_of
from gpuens.generate.kmeans import kmeans_ensemble
from gpuens.generate.landmarks import landmark_ensemble
from gpuens.labels.features import Features
from gpuens.labels.rows import as_rows
from gpuens.reduction import core_groups
from gpuens.runtime import checks
from gpuens.runtime.device import to_host

N_SAMPLED = 10_000  # maximum number of objects from which the number of clusters is estimated
N_OF_EACH_KIND = 10  # number of k-means clusterings, and of landmark clusterings, that suggest the number of clusters


def suggestion_by_features(X: Any, seed: int, largest: int = LARGEST, device: str = "auto") -> Suggestion:
    """Cluster at most `N_SAMPLED` objects by k-means and by landmarks; return the suggestion of these clusterings.

    Two algorithms are used, because structure that both find is less likely to be an artefact of one algorithm.
    """
    features = Features.of(X)
    if features.shape[0] > N_SAMPLED:
        features = features.take(draw_sample(features.shape[0], seed))
    generators: tuple[Callable[..., Any], ...] = (kmeans_ensemble, landmark_ensemble)
    with checks.recorded():  # warnings are suppressed, because they concern clusterings that the user never sees
        ensembles = [
            generator(features, N_OF_EACH_KIND, random_state=seed, progress=False, device=device)
            for generator in generators
        ]
        labels = [column for ensemble in ensembles for column in to_host(ensemble.to_array()).T]
        return suggestion_of(core_groups(as_rows(labels, device)).rows, largest)


def draw_sample(n_objects: int, seed: int) -> np.ndarray:
    """Draw at most `N_SAMPLED` objects; return their positions, ascending."""
    rng = np.random.default_rng([seed, 2])
    return np.sort(rng.choice(n_objects, min(n_objects, N_SAMPLED), replace=False))
