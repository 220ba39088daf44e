"""rsekFCM (Havens et al. 2012): kernel fuzzy c-means of a random sample, extended to all objects.

The centre of cluster j is the mean of the sampled points' images φ(x), weighted by their memberships u_ij^m.
Memberships follow from the squared distances d_ij of images from centres: u_ij = 1 / Σ_l (d_ij / d_il)^(1 / (m - 1)).
The centres of the sample give memberships to all other objects, too; an object's label is its largest membership, which
is that of the nearest centre. The paper's default settings are not stated: the kernel is exp(-‖x - y‖² / s), where s is
the mean squared distance in the sample, and m is 1.7.
"""

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

SAMPLE = 1000  # objects
FUZZIFIER = 1.7
TOLERANCE = 1e-3  # largest change of a membership in the last iteration
MOST = 200  # iterations
TOGETHER = 20_000  # objects whose distances from the sample are held at a time


def labels(X: Any, k: int, seed: int, size: int = SAMPLE, m: float = FUZZIFIER) -> np.ndarray:
    """Return the labels (N,) of the objects of X (N, d)."""
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    sample = X[np.sort(rng.choice(n, min(n, size), replace=False))]
    scale = euclidean_distances(sample, squared=True).mean() or 1.0

    def kernel(points: Any) -> np.ndarray:
        return np.exp(-euclidean_distances(points, sample, squared=True) / scale)

    weights = memberships_of_sample(kernel(sample), k, rng, m) ** m
    own = lengths(kernel(sample), weights)
    chunks = (X[start : start + TOGETHER] for start in range(0, n, TOGETHER))
    return np.concatenate([distances(kernel(chunk), weights, own).argmin(axis=1) for chunk in chunks])


def memberships_of_sample(kernel: np.ndarray, k: int, rng: np.random.Generator, m: float) -> np.ndarray:
    """Return the memberships (n, k) of the sampled points, from k of them as the first centres."""
    weights = np.zeros((len(kernel), k))
    weights[rng.choice(len(kernel), k, replace=False), np.arange(k)] = 1.0
    found = np.zeros_like(weights)
    for _ in range(MOST):
        before, found = found, memberships(distances(kernel, weights, lengths(kernel, weights)), m)
        if np.abs(found - before).max() < TOLERANCE:
            break
        weights = found**m
    return found


def lengths(kernel: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the squared lengths (k,) of the centres."""
    return np.einsum("ij,ij->j", weights, kernel @ weights) / weights.sum(axis=0) ** 2


def distances(kernel: np.ndarray, weights: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the squared distances of images from centres; the kernel of a point with itself is 1."""
    return np.maximum(1.0 - 2.0 * (kernel @ weights) / weights.sum(axis=0) + own, 0.0)


def memberships(squares: np.ndarray, m: float) -> np.ndarray:
    """Return the memberships for squared distances; a point on a centre is of this centre alone."""
    nearest = squares.min(axis=1, keepdims=True)
    on_centre = (squares == nearest).astype(float)
    ratios = np.divide(nearest, squares, out=on_centre, where=squares > 0.0) ** (1.0 / (m - 1.0))
    return ratios / ratios.sum(axis=1, keepdims=True)
