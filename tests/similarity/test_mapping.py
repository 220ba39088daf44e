"""Reference sets, mapping coefficients and rank correlation against literal references."""

import numpy as np
import oracles
import pytest
import scipy.sparse
import scipy.stats
from conftest import MANY_SHAPES, random_labels, refused, shapes, structured_labels

import gpuens as ge
from gpuens.runtime.device import to_host
from gpuens.runtime.native import cpu
from gpuens.similarity import ranks
from gpuens.similarity import reference_sets as reference_sets_module
from gpuens.similarity.mapping import points_of
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.reference_sets import reference_sets

FEATURES = {
    "noise": lambda n, rng: rng.standard_normal((n, 4)),
    # many distances are equal, and some points are repeated
    "grid": lambda n, rng: rng.integers(0, 3, (n, 3)).astype(float),
    "doubles": lambda n, rng: np.repeat(rng.standard_normal((-(-n // 4), 2)), 4, axis=0)[:n],
    "all equal": lambda n, rng: np.full((n, 2), 7.0),
    "one feature": lambda n, rng: rng.exponential(size=(n, 1)),
    "far away": lambda n, rng: 1e6 + rng.integers(0, 4, (n, 20)),
}


def features(kind, n, seed=0):
    return FEATURES[kind](n, np.random.default_rng(seed))


# --- reference sets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [1, 2, 7, 59])
@pytest.mark.parametrize("kind", FEATURES)
def test_reference_sets(kind, n_neighbors, where):
    points = features(kind, 60)
    ids, _ = reference_sets(points, n_neighbors, device=where).nearest(0, 60)
    for i in range(60):
        expected = [j for j, _ in oracles.reference_set(points, i, n_neighbors)]
        assert to_host(ids)[i].tolist() == expected


@pytest.mark.parametrize("n_neighbors", [5, 120])
@pytest.mark.parametrize("kind", ["noise", "grid", "far away", "all equal"])
def test_reference_sets_from_trees_and_products(kind, n_neighbors, sizes):
    """Reference sets from a tree with several leaves equal those from scikit-learn's candidates.

    Many distances are equal; among equally near objects, the object with the smallest number comes first.
    """
    points = features(kind, 500)
    sizes("similarity.reference_sets", LEAF=4)
    squares = np.cumsum((points[:, None] - points) ** 2, axis=2)[:, :, -1]  # added in the order of the features
    np.fill_diagonal(squares, np.inf)
    expected = np.argsort(squares, axis=1, kind="stable")[:, :n_neighbors]
    for tree_from in (0, 1000):
        sizes("similarity.reference_sets", TREE_FROM=tree_from)
        finder = reference_sets(points, n_neighbors)
        assert isinstance(finder, reference_sets_module.TreeReferenceSets) == (tree_from == 0)
        ids, distances = finder.nearest(100, 300)
        np.testing.assert_array_equal(ids, expected[100:300])
        np.testing.assert_array_equal(distances, np.sqrt(np.take_along_axis(squares, expected, axis=1)[100:300]))


@pytest.mark.parametrize("n_features", [1, 9, 10, 11, 27, 64])
@pytest.mark.parametrize("n", [2, 3, 40, 41, 81, 3000])
def test_trees_of_any_size(n, n_features, sizes):
    """One feature has many values and all others are binary. So leaves are rejected before all features are summed."""
    rng = np.random.default_rng(5)
    points = rng.integers(0, 2, (n, n_features)).astype(np.float64)
    points[:, 0] += np.round(100 * rng.random(n))
    sizes("similarity.reference_sets", TREE_FROM=0)
    n_neighbors = min(7, n - 1)
    ids, distances = reference_sets(points, n_neighbors).nearest(0, n)
    for i in range(0, n, 1 + n // 50):
        squares = np.cumsum((points[i] - points) ** 2, axis=1)[:, -1]
        others = [j for j in np.argsort(squares, kind="stable") if j != i]
        assert ids[i].tolist() == others[:n_neighbors]
        np.testing.assert_array_equal(distances[i], np.sqrt(squares[others[:n_neighbors]]))


# --- mapping coefficients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["noise", "grid", "all equal"])
@pytest.mark.parametrize("shape", shapes(MANY_SHAPES))
def test_mapping_and_rank_correlation(shape, kind, where):
    labels = MANY_SHAPES[shape]()
    x, n_neighbors = features(kind, len(labels)), min(6, len(labels) - 1)
    found = ge.similarity.mapping_coefficients(list(labels.T), x, n_neighbors, device=where)
    expected = oracles.mapping_coefficients(labels, x, n_neighbors)
    np.testing.assert_allclose(found.toarray(), expected, rtol=0, atol=1e-13)
    assert (found.data > 0).all()
    assert found.has_sorted_indices
    np.testing.assert_allclose(rank_correlation(found, device=where), oracles.spearman(expected), rtol=0, atol=1e-10)


def test_shares_sum_to_one_within_each_clustering_where_a_reference_has_a_label():
    labels = structured_labels(300, 5, 4, missing=0.4, seed=3)[0]
    ens, x = ge.Ensemble(labels), features("noise", 300)
    found = ge.similarity.mapping_coefficients(ens, x, 3).toarray()
    ids, _ = reference_sets(points_of(x, 300, "cpu"), 3).nearest(0, 300)
    for m in range(5):
        sums = found[:, ens.offsets[m] : ens.offsets[m + 1]].sum(axis=1)
        np.testing.assert_allclose(sums, (labels[ids, m] >= 0).any(axis=1), atol=1e-15)


def test_objects_in_pieces(where, step_bytes, sizes):
    labels, x = random_labels(90, 5, (2, 9), missing=0.1, seed=2), features("grid", 90)
    expected = ge.similarity.mapping_coefficients(labels, x, 8).toarray()
    sizes("similarity.mapping", AT_ONCE=100)
    step_bytes(9000)
    found = ge.similarity.mapping_coefficients(labels, x, 8, device=where).toarray()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("power", [-800, 700])
def test_the_size_of_features_does_not_matter(where, power):
    labels, x = random_labels(90, 5, (2, 9), seed=2), features("noise", 90)
    found = ge.similarity.mapping_coefficients(labels, x * 2.0**power, 8, device=where).toarray()
    np.testing.assert_array_equal(found, ge.similarity.mapping_coefficients(labels, x, 8, device=where).toarray())
    for method in (ge.ECRMC, ge.TOME):
        expected = method(3).fit(labels, features=x).labels_
        np.testing.assert_array_equal(method(3).fit(labels, features=x * 2.0**power).labels_, expected)


def test_what_cannot_be_mapped_is_refused(monkeypatch):
    labels, x = random_labels(30), features("noise", 30)
    mapped = ge.similarity.mapping_coefficients
    refused(lambda: mapped(labels, x[:-1], 3), ValueError, "features have 29 rows", "30 objects")
    refused(lambda: mapped(labels, scipy.sparse.csr_array(x), 3), TypeError, "features are a sparse matrix", "toarray")
    refused(lambda: mapped(labels, x, 30), ValueError, "n_neighbors must be from 1 to 29")
    refused(lambda: mapped(labels, x, 0), ValueError, "n_neighbors")
    refused(lambda: mapped([[0]], x[:1], 1), ValueError, "n_neighbors=1", "1 object")
    refused(lambda: mapped(labels, np.where(x > 1, np.nan, x), 3), ValueError, "NaN")
    x[3] *= 1e250
    refused(lambda: mapped(labels, x, 3), ValueError, "features: beside a value of size", "stand for missing")
    x[3] /= 1e250
    monkeypatch.setenv("GPUENS_MEMORY", "5kB")
    refused(lambda: mapped(labels, x, 3), MemoryError, "mapping coefficients of 30 objects", "n_neighbors")


# --- rank correlation -------------------------------------------------------------------------------------------------


def test_the_example_of_the_paper():
    columns = np.array([[170, 150, 210, 180, 160], [180, 165, 190, 168, 172]]).T
    assert scipy.stats.spearmanr(columns).statistic == pytest.approx(0.7, abs=1e-15)
    found = rank_correlation(scipy.sparse.csr_array(columns / 1000))
    np.testing.assert_allclose(found, [[1, 0.7], [0.7, 1]], atol=1e-15)
    np.testing.assert_allclose(oracles.spearman(columns), found, atol=1e-15)


@pytest.mark.parametrize("counts", [None, "whole"])
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.95, 1.0])
def test_rank_correlation(zeros, counts, where):
    rng = np.random.default_rng(4)
    columns = rng.integers(0, 6, (70, 12)) / 5 + rng.random((70, 12)) * (rng.random(12) < 0.5)
    columns = np.where(rng.random(columns.shape) < zeros, 0.0, columns / 2)
    columns[:, 3], columns[:, 4], columns[:, 5] = 0.5, columns[:, 2], 0.75 - columns[:, 2] / 2
    times = None if counts is None else rng.integers(1, 5, 70)
    found = rank_correlation(scipy.sparse.csr_array(columns), times, device=where)
    np.testing.assert_allclose(found, oracles.spearman(columns, times), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert (found.diagonal() == 1).all()
    assert np.count_nonzero(found[3]) == 1
    assert zeros == 1.0 or found[2, 5] == pytest.approx(-1.0, abs=1e-15)


@pytest.mark.parametrize("largest_count", [1, 40])
@pytest.mark.parametrize("zeros", [0.3, 0.97])
def test_products_of_ranks_by_blocks_and_by_entries(zeros, largest_count, sizes):
    """The matrices are larger than a block; all sums are whole numbers."""
    rng = np.random.default_rng(7)
    columns = np.where(rng.random((150, 50)) < zeros, 0, rng.integers(1, 2**20, (150, 50)))
    counts = rng.integers(1, largest_count + 1, 150)
    sizes("similarity.ranks", BLOCK=32)
    sparse = scipy.sparse.csc_array(columns), scipy.sparse.csr_array(columns)
    expected = np.triu((columns.T * counts) @ columns)
    for dense in (0, 1e9):
        sizes("similarity.ranks", DENSE=dense)
        np.testing.assert_array_equal(ranks.rank_products(*sparse, counts), expected)


def test_sums_of_whole_numbers_that_float64_would_round_are_not_made_of_blocks(sizes):
    sizes("similarity.ranks", DENSE=1e9)
    columns = np.array([[2**26 + 1, 2**26 + 3], [1, 1]])
    sparse = scipy.sparse.csc_array(columns), scipy.sparse.csr_array(columns)
    np.testing.assert_array_equal(ranks.rank_products(*sparse, np.ones(2, dtype=int)), np.triu(columns.T @ columns))


@pytest.mark.parametrize("bits", [8, 33, 50, 62])
def test_covariances_are_rounded_once(bits):
    rng = np.random.default_rng(bits)
    numbers = rng.integers(0, 2**bits, (2000, 4)).tolist()
    numbers += [[a, b, a, b - 1] for a, b, *_ in numbers if b] + [[a, b, b, a] for a, b, *_ in numbers]
    numbers += [[2**62, 2**62, 1, x] for x in (0, 1, 2**62, 2**62 - 1)] + [[2**33, 2**32, 0, 0], [0, 0, 2**32, 2**32]]
    found = np.empty((2, 2))
    for a, b, c, d in numbers:  # a b - c d, by a power of two that keeps it below 1
        cpu.correlations(np.array([[0, b], [0, 0]]), np.array([c, d]), a, np.full(2, 2.0**65), found)
        assert found[0, 1] * 2.0**130 == found[1, 0] * 2.0**130 == float(a * b - c * d)


def test_rank_correlation_of_objects_beyond_a_million():
    """The lowest bits of ranks are dropped, so that sums fit into 64 bits."""
    rng = np.random.default_rng(5)
    columns = np.where(rng.random((200, 6)) < 0.5, 0.0, rng.random((200, 6)))
    counts = rng.integers(1, 200_000, 200)
    few = np.maximum(1, np.rint(counts / 500)).astype(np.int64)
    found = rank_correlation(scipy.sparse.csr_array(columns), few * 500)
    np.testing.assert_allclose(found, rank_correlation(scipy.sparse.csr_array(columns), few), rtol=0, atol=1e-5)
    assert few.sum() * 500 > 2**22


def test_what_rank_correlation_cannot_take_is_refused(monkeypatch):
    some = np.array([[0.5, 0.2], [0.0, 1.0]])
    for wrong in (-0.1, 1.5, np.nan):
        refused(lambda wrong=wrong: rank_correlation(np.array([[0.5, wrong], [0, 1]])), ValueError, "coefficients")
    for wrong in (some[0], some.astype(str), [[0.5], [0.5, 0.1]]):
        refused(lambda wrong=wrong: rank_correlation(wrong), ValueError, "coefficients must be a matrix of numbers")
    refused(lambda: rank_correlation(some, np.ones(3, dtype=int)), ValueError, "counts")
    refused(lambda: rank_correlation(some, device="auto"), ValueError, "device")
    monkeypatch.setenv("GPUENS_MEMORY", "5kB")
    refused(lambda: rank_correlation(scipy.sparse.csr_array((5, 20))), MemoryError, "rank correlation of 20 clusters")
