"""The ensembles of the GPU benchmarks: mixtures of given sizes, and the groups of their objects."""

from typing import Any, NamedTuple

import numpy as np

import gpuens as ge
from gpuens.runtime import device as devices


class Mixture(NamedTuple):
    """Base clusterings of a synthetic mixture, or of ``groups`` objects of the mixture with different label rows.

    Objects are points around 25 means in a few dimensions; a clustering gives each the nearest of its own k centers,
    which are k of the points. With 3 dimensions one row in six of half a million is distinct at 20 clusterings, five in
    six at 100; of those of Covertype it is one in ten, and two in three (results/covtype.md).
    """

    n_objects: int
    n_clusterings: int = 20
    groups: int | None = None
    dimensions: int = 3
    k: tuple[int, int] = (7, 100)
    seed: int = 0


MILLION = Mixture(1_000_000)
ROWS = Mixture(1_400_000, groups=100_000)
FEW_ROWS = Mixture(280_000, groups=20_000)
TINY = Mixture(400, 6, k=(3, 9))
K = 7  # requested clusters, as in Covertype


def points_of(mixture: Mixture) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(mixture.seed)
    means = 4.0 * rng.standard_normal((25, mixture.dimensions), dtype=np.float32)
    X = rng.standard_normal((mixture.n_objects, mixture.dimensions), dtype=np.float32)
    X += means[rng.integers(25, size=mixture.n_objects)]
    return X, rng


def labels_of(mixture: Mixture, device: str) -> Any:
    """Return the base clusterings (n_objects, n_clusterings), computed and stored in the device's memory."""
    xp = devices.namespace(device)
    X, rng = points_of(mixture)
    points = xp.asarray(X)
    dtype = np.uint8 if mixture.k[1] < 255 else np.uint16
    labels = xp.empty((mixture.n_objects, mixture.n_clusterings), dtype=dtype, order="F")
    for m in range(mixture.n_clusterings):
        k = min(mixture.n_objects, int(rng.integers(*mixture.k, endpoint=True)))
        centers = xp.asarray(X[rng.choice(mixture.n_objects, k, replace=False)])
        half_square = (centers * centers).sum(axis=1) / 2
        for start in range(0, mixture.n_objects, 2**17):
            some = slice(start, start + 2**17)
            # sums of products in place of a matrix product, which would need cuBLAS
            scores = half_square - points[some, :1] * centers[:, 0]
            for d in range(1, mixture.dimensions):
                scores -= points[some, d, None] * centers[:, d]
            labels[some, m] = scores.argmin(axis=1)
    if mixture.groups is None:
        return labels
    rows = groups_of(ge.Ensemble(labels), device).ensemble.codes_on(device)
    evenly = np.unique(np.linspace(0, len(rows) - 1, min(mixture.groups, len(rows))).astype(np.int64))
    return xp.asfortranarray(rows[xp.asarray(evenly)])


def groups_of(ensemble: Any, device: str) -> Any:
    from gpuens.labels.rows import Rows
    from gpuens.reduction.core_groups import core_groups

    return core_groups(Rows(ensemble, device=device))
