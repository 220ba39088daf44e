"""The data of the CCE experiments: what is made up, what is read, and its base clusterings."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gpuens as ge

SIZE = 10  # base clusterings, L
SHARE = 0.7  # share of the objects that each k-means is fitted to; the paper does not say

# the sets' names in the paper, and their names in ge.datasets unless they are generated here
SMALL = {
    "Sy1": "Sy1",
    "Sy2": "Sy2",
    "Iris": "iris",
    "Wine": "wine",
    "Seg": "seg210",
    "Glass": "glass",
    "Ecoli": "ecoli",
    "Ionos": "ionosphere",
    "Blood": "blood",
    "Vowel": "vowel",
    "Yeast": "yeast",
}


class Data(NamedTuple):
    X: Any
    y: np.ndarray

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y))


def load(name: str, data: str | os.PathLike | None, n_objects: int | None = None) -> Data:
    """Return the features and classes of a data set, or of that many of its objects, drawn without replacement.

    Features are as they come, but for counts of words: those become tf-idf, in rows of length 1.
    """
    name = SMALL.get(name, name)
    if name in MADE_UP:
        X, y = MADE_UP[name](np.random.default_rng(0))
    else:
        found = ge.datasets.load(name, data=data)
        X, y = found.X, found.y
    if n_objects is not None and n_objects < len(y):
        drawn = np.sort(np.random.default_rng(0).choice(len(y), n_objects, replace=False))
        X, y = X[drawn], y[drawn]
    return Data(tf_idf(X) if hasattr(X, "tocsr") else X, y)


def tf_idf(counts: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer().fit_transform(counts)


def base_clusterings(data: Data, seed: int, run: int) -> ge.Ensemble:
    """Return the ensemble of a run, which is the same however many runs there are."""
    rng = np.random.default_rng([seed, run])
    return ge.generate.kmeans_ensemble(
        data.X, SIZE, data.n_classes, objects=SHARE, random_state=rng, progress=False, device="cpu"
    )


# --- made up ----------------------------------------------------------------------------------------------------------


def two_gaussians(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sy1: 100 objects about each of two points in the plane.

    The points are those of Strehl & Ghosh's 2D2K. Their .1 is taken for the standard deviation: as a variance it would
    leave no method more than .74 of the objects, and the paper's base clusterings have .95.
    """
    y = np.repeat([0, 1], 100)
    return np.array([[-0.227, 0.077], [0.095, 0.323]])[y] + rng.normal(scale=0.1, size=(200, 2)), y


def four_gaussians(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sy2: 100 objects about each of four points in two of six dimensions, uniform noise in the other four.

    The paper gives neither points nor ranges: here standard deviation 1 about the corners of a square of side 3, and
    noise from -3 to 3.
    """
    y = np.repeat([0, 1, 2, 3], 100)
    corners = np.array([[-1.5, -1.5], [-1.5, 1.5], [1.5, -1.5], [1.5, 1.5]])
    return np.hstack([corners[y] + rng.normal(size=(400, 2)), rng.uniform(-3, 3, (400, 4))]), y


def topics(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Counts of 60 words in 400 documents about three topics: for a quick run, which has no documents."""
    from scipy import sparse

    y = rng.integers(3, size=400)
    words = rng.dirichlet(np.full(60, 2.0), size=3)
    return sparse.csr_matrix(np.stack([rng.multinomial(40, words[topic]) for topic in y])), y


MADE_UP: dict[str, Callable] = {"Sy1": two_gaussians, "Sy2": four_gaussians, "topics": topics}
