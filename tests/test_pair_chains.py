"""Complete and average linkage of all pairs, against SciPy's: merges, ties and roundings."""

import numpy as np
import pytest
import scipy.cluster.hierarchy
from scipy.spatial.distance import squareform

from gpuens.partition.linkage.dendrogram import name_merges
from gpuens.runtime.native import cpu

DISTANCES = {
    "apart": lambda rng, n: rng.standard_normal(n * (n - 1) // 2),
    "ties": lambda rng, n: -rng.integers(0, 4, n * (n - 1) // 2) / 4,
    "equal": lambda rng, n: np.full(n * (n - 1) // 2, -0.25),
    "on a line": lambda rng, n: squareform(np.abs(np.subtract.outer(np.arange(n) ** 2.0, np.arange(n) ** 2.0))),
}


@pytest.mark.parametrize("n", [2, 3, 4, 17, 200])
@pytest.mark.parametrize("shape", DISTANCES)
@pytest.mark.parametrize("method", ["complete", "average"])
def test_merges_and_heights_are_those_of_scipy(n, shape, method):
    distances = DISTANCES[shape](np.random.default_rng(n), n)
    z = scipy.cluster.hierarchy.linkage(distances, method)
    kept, absorbed, heights = np.empty(n - 1, dtype=int), np.empty(n - 1, dtype=int), np.empty(n - 1)
    cpu.link_pairs(distances.copy(), method == "average", kept, absorbed, heights)
    np.testing.assert_array_equal(heights, z[:, 2])
    np.testing.assert_array_equal([kept, absorbed], name_merges(*z[:, :2].T.astype(int, order="C"), n))
