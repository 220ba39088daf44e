"""Complete and average linkage of all pairs, against SciPy's: merges, ties and roundings."""

import numpy as np
import oracles
import pytest
import scipy.cluster.hierarchy
from conftest import MANY_SHAPES, refused, shapes
from scipy.spatial.distance import squareform
from test_single import heights_of_all_objects, prepared

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.complete import complete_linkage, linkage_of_pairs
from gpuens.partition.linkage.dendrogram import name_merges
from gpuens.runtime.native import cpu
from gpuens.similarity.diagonal import Diagonal

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


@pytest.mark.parametrize("method", ["complete", "average"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_similarities_that_are_not_finite_are_refused(method, number):
    rows = Rows(np.array([[0, 0], [0, 1], [1, 1]]))
    similarity = Diagonal(np.array([number, 1.0, 1.0, 1.0]), rows.offsets)
    refused(lambda: linkage_of_pairs(rows, similarity, method), ValueError, str(number), method, "finite")


def test_means_of_vast_distances_may_be_infinite():
    distances = np.full(6, 1e308)
    kept, absorbed, heights = np.empty(3, dtype=int), np.empty(3, dtype=int), np.empty(3)
    cpu.link_pairs(distances, True, kept, absorbed, heights)
    assert sorted(absorbed.tolist()) == [1, 2, 3]


# shapes in which no two of the smallest similarities are equal
@pytest.mark.parametrize("shape", shapes(["few clusterings", "repeated rows", "far apart", "one row"]))
def test_complete_linkage_equals_scipy_on_all_pairs(sizes, shape):
    sizes("partition.linkage.complete", BLOCK=7)
    labels = MANY_SHAPES[shape]()
    reduced, weights, w = prepared(labels, True)
    found = complete_linkage(reduced.rows, Diagonal(w, reduced.rows.offsets))
    expected = oracles.complete_linkage_heights(labels, weights)
    np.testing.assert_allclose(heights_of_all_objects(found, reduced, w), expected, atol=1e-12, rtol=0)


def test_complete_linkage_refuses_what_does_not_fit(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    with pytest.raises(MemoryError, match=r"complete linkage holds all pairs of the 1,000 .* needs 4\.0 MB"):
        # the similarity None would cause another error, but the expected error is raised first
        complete_linkage(Rows(np.arange(1000)[:, None]), None)
