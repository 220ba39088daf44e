"""Coupled similarities of objects and clusters, and common neighbours, compared with sets and with CCE's Table II."""

from functools import cache

import numpy as np
import oracles
import pandas as pd
import pytest
from conftest import MANY_SHAPES, random_labels, refused, shapes, similarities

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime.device import to_host
from gpuens.similarity import CommonNeighbors, Coupled, coupled, neighborhood
from gpuens.similarity.coupled import relative_similarities


def many_clusters():
    """Return labels with 300 clusters in one clustering (codes of two bytes), repeated rows and missing labels."""
    labels = random_labels(340, 4, (2, 9), missing=0.1, seed=1)
    labels[:, 2] = np.arange(340) % 300
    labels[300:] = labels[40:80]
    return labels


SHAPES = {name: make for name, make in MANY_SHAPES.items() if name != "one clustering"}
SHAPES["many clusters"] = many_clusters
SHAPES["hardly any labels"] = lambda: random_labels(60, 6, (2, 6), missing=0.8, seed=3)


@pytest.fixture(params=shapes(SHAPES))
def name(request):
    """Return the name of an ensemble in `SHAPES`."""
    return request.param


@pytest.fixture
def labels(name):
    return SHAPES[name]()


@cache
def literal_objects(name):
    """Return the literal IaOSO, computed once for all devices."""
    return oracles.iaoso(SHAPES[name]())


def common(near):
    """Return the literal CCOSO (N, N) from a boolean matrix (N, N) of neighbours."""
    near = (near & ~np.eye(len(near), dtype=bool)).astype(np.int64)
    return near @ near.T / len(near)


def close(matrix, expected):
    np.testing.assert_allclose(matrix, expected, atol=1e-12, rtol=0)


def close_blocks(matrices, expected):
    for matrix, literal in zip(matrices, expected, strict=True):
        close(matrix, literal)


def results_of(labels, device="auto", weights=None):
    """Return the coupled similarities of the clusters, those of the objects, and their common neighbours."""
    measures = Coupled(), CommonNeighbors()
    of_objects = [similarities(measure, labels, device) for measure in measures]
    return [*ge.similarity.coupled_clusters(labels, weights, device=device), *of_objects]


def assert_same_bits(matrices, expected):
    for matrix, other in zip(matrices, expected, strict=True):
        np.testing.assert_array_equal(matrix, other)


# --- the paper's example ----------------------------------------------------------------------------------------------

TABLE_TWO = np.array(list("12ABXYαβ"))[oracles.TABLE_TWO]  # the labels have the names that the paper prints


@pytest.mark.parametrize("weighted", [False, True])
def test_clusterings_counted_one_against_all_are_coupled_with_the_same_bits(labels, weighted, monkeypatch, sizes):
    rows = core_groups(Rows(labels)).rows
    weights = np.arange(1.0, labels.shape[1] + 1) if weighted else None
    expected = coupled.coupling(rows, weights).values
    needed = 8 * rows.n_clusters**2
    # the first share of memory allows no threads, the second allows threads for narrow strips
    for share in (0.0, 0.999 * needed / 10**9):
        monkeypatch.setenv("GPUENS_MEMORY", "1GB")
        sizes("similarity.coupled", SHARE_OF_BUDGET=share)
        np.testing.assert_array_equal(coupled.coupling(rows, weights).values, expected)


def test_table_two_of_the_paper(where):
    matrices = ge.similarity.coupled_clusters(TABLE_TWO, device=where)
    assert [matrix.round(3).tolist() for matrix in matrices] == [
        [[0.714, 0.638], [0.638, 0.778]],
        [[0.714, 0.667], [0.667, 0.778]],
        [[0.667, 0.545], [0.545, 0.800]],
        [[0.750, 0.583], [0.583, 0.750]],
    ]
    u2, u3, u10 = (number - 1 for number in (2, 3, 10))
    s = similarities(Coupled(), TABLE_TWO, where)
    assert s[u2, [u3, u10]].round(3).tolist() == [0.655, 0.662]
    near = similarities(CommonNeighbors(0.65), TABLE_TWO, where)
    assert near[[u2, u3, u10]].round(3).tolist() == [
        [0.500, 0.833, 0.750, 0.500, 0.333, 0.750, 0.667, 0.500, 0.833, 0.500, 0.667, 0.500],
        [0.583, 0.750, 0.917, 0.583, 0.417, 0.833, 0.750, 0.583, 0.750, 0.583, 0.750, 0.583],
        [0.500, 0.500, 0.583, 0.500, 0.333, 0.583, 0.583, 0.583, 0.500, 0.667, 0.583, 0.583],
    ]


# --- clusters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filled", [0.05, 0.15, 0.6, 1.0])
@pytest.mark.parametrize("k", [1, 7, 45])
def test_few_shares_and_many_give_the_sums_of_all_shares(filled, k):
    """Few are walked along those that are not 0."""
    rng = np.random.default_rng(k)
    offsets, weights = np.array([0, 20, 21, 60, 100]), np.array([0.5, 0.25, 0.0, 1.5])
    spread = np.where(rng.random((100, k)) < filled, rng.random((100, k)), 0.0)
    expected = np.zeros((k, k))
    for first, last, weight in zip(offsets, offsets[1:], weights, strict=False):
        of_one = np.zeros((k, k))
        for shares in spread[first:last]:
            of_one += np.minimum(shares[:, None], shares)
        expected += weight * of_one
    np.testing.assert_array_equal(relative_similarities(spread, offsets, weights), expected)


def test_coupled_clusters_are_the_literal_ones(labels, where):
    found = ge.similarity.coupled_clusters(labels, device=where)
    close_blocks(found, oracles.ccsc(labels))
    for matrix in found:
        assert isinstance(matrix, np.ndarray)
        assert matrix.dtype == np.float64
        np.testing.assert_array_equal(matrix, matrix.T)


@pytest.mark.parametrize("weights", [[1, 1, 1, 1, 1], [0.5, 0, 2, 0, 0.25], [1e-200, 1, 3, 1e-9, 1], [0, 7, 0, 0, 2]])
@pytest.mark.parametrize("name", ["unequal k", "repeated rows"], indirect=True)
def test_weights_of_the_clusterings(labels, weights, where):
    """The result depends only on the ratios of the weights."""
    assert labels.shape[1] == 5
    for factor in (1, 3):
        blocks = ge.similarity.coupled_clusters(labels, factor * np.array(weights), device=where)
        close_blocks(blocks, oracles.ccsc(labels, weights))
    s = oracles.iaoso(labels, weights)
    close(similarities(Coupled(weights), labels, where), s)
    assert abs(s - 0.3137).min() > 1e-9
    close(similarities(CommonNeighbors(0.3137, weights), labels, where), oracles.ieoso(s, 0.3137))


@pytest.mark.parametrize("weight", [1, 0.1, 1e308, 1e-320])
def test_equal_weights_are_the_default(labels, weight):
    weighted = ge.similarity.coupled_clusters(labels, [weight] * labels.shape[1])
    close_blocks(weighted, ge.similarity.coupled_clusters(labels))


def test_clusters_without_objects_are_similar_to_none():
    ens = ge.Ensemble(SHAPES["unequal k"]()).take(np.arange(20))
    assert (ens.sizes == 0).any()
    rows = SHAPES["unequal k"]()[:20]
    for m, (matrix, literal) in enumerate(zip(ge.similarity.coupled_clusters(ens), oracles.ccsc(rows), strict=True)):
        there = ens.sizes[ens.offsets[m] : ens.offsets[m + 1]] > 0
        close(matrix[np.ix_(there, there)], literal)
        assert not matrix[~there].any()
        assert not matrix[:, ~there].any()
    close(similarities(Coupled(), ens), oracles.iaoso(rows))
    close(similarities(CommonNeighbors(0.3137), ens), oracles.ccoso(rows, 0.3137))


# --- objects ----------------------------------------------------------------------------------------------------------


def test_coupled_objects_are_the_literal_ones(name, labels, where):
    found = similarities(Coupled(), labels, where)
    assert found.dtype == np.float64
    close(found, literal_objects(name))
    np.testing.assert_array_equal(found, found.T)


# none of these thresholds equals a similarity
@pytest.mark.parametrize("theta", [0, 0.1237, 0.5171, 1])
def test_common_neighbors_are_the_literal_ones(name, labels, theta, where):
    s = literal_objects(name)
    assert theta == 0 or abs(s - theta).min() > 1e-9
    found = similarities(CommonNeighbors(theta), labels, where)
    assert found.dtype == np.float64
    close(found, literal_common(name, theta))


@cache
def literal_common(name, theta):
    return oracles.ieoso(literal_objects(name), theta)


def test_neighbors_by_default_are_more_similar_than_the_mean(name, labels, where):
    s = literal_objects(name)
    found = similarities(CommonNeighbors(), labels, where)
    close(found, oracles.ieoso(s, oracles.mean_over_pairs(s)))


def test_a_threshold_that_is_met_exactly_is_met(labels, where):
    """Similarities often have only a few different values, so that a threshold can equal a similarity."""
    s = similarities(Coupled(), labels, where)
    for theta in np.quantile(s, [0, 0.2, 0.5, 0.9, 1], method="nearest").tolist():
        found = similarities(CommonNeighbors(theta), labels, where)
        np.testing.assert_array_equal(found, common(s >= theta))


@pytest.mark.parametrize("n_clusterings", [2, 3, 5, 7])
@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_the_mean_of_equal_similarities_is_met(n_clusterings, where):
    """All pairs are as similar as the mean.

    So all objects are neighbours, and the rounding of the mean must not change this.
    """
    for n in range(n_clusterings, 30):
        found = similarities(CommonNeighbors(), np.zeros((n, n_clusterings), dtype=np.int64), where)
        close(found, common(np.ones((n, n), dtype=bool)))


# --- rows that stand for several objects ------------------------------------------------------------------------------


@cache
def literal_clusters(name):
    """Return the literal mean IaOSO and the mean CCOSO of all pairs of clusters, computed once for all devices."""
    labels, s = SHAPES[name](), literal_objects(name)
    near = oracles.ieoso(s, oracles.mean_over_pairs(s))
    return oracles.cluster_similarity(labels, s), oracles.cluster_similarity(labels, near)


@pytest.fixture
def groups(labels, where):
    return core_groups(Rows(labels, device=where))


def test_core_groups_give_the_similarities_of_all_clusters(name, labels, groups, where):
    rows = groups.rows
    blocks = coupled.coupling(rows, None)
    for a, b in zip(blocks.matrices(), ge.similarity.coupled_clusters(labels, device=where), strict=True):
        np.testing.assert_array_equal(a, b)
    close(blocks.mean(rows), oracles.mean_over_pairs(literal_objects(name)))
    of_objects, of_neighbors = literal_clusters(name)
    close(blocks.between_clusters(rows), of_objects)
    close(neighborhood.Neighborhoods(rows, blocks, None).between_clusters(rows), of_neighbors)


def test_core_groups_give_the_neighbors_of_all_objects(name, labels, groups):
    """Two different objects have equal numbers of common neighbours, whether the objects are in one group or in two."""
    rows, row_of = groups.rows, to_host(groups.row_of)
    near = neighborhood.Neighborhoods(rows, coupled.coupling(rows, None), 0.3137)
    every = np.arange(len(rows))
    bits = near.bits(rows.codes)
    of_groups = to_host(near.common(every, bits, every, near.planes(bits)))
    sets = oracles.neighborhoods(literal_objects(name), 0.3137)
    n = len(labels)
    expected = np.array([[len(sets[x] & sets[y]) for y in range(n)] for x in range(n)])
    different = ~np.eye(n, dtype=bool)
    found = of_groups[np.ix_(row_of, row_of)]
    np.testing.assert_array_equal(found[different], expected[different])
    in_clusters = to_host(near.counts_in(every, bits))[row_of]
    clusters = [objects for _, _, objects in oracles.clusters(labels)]
    np.testing.assert_array_equal(in_clusters, [[len(of & objects) for objects in clusters] for of in sets])


# --- invariances ------------------------------------------------------------------------------------------------------


def test_neither_threads_nor_the_order_of_the_objects_change_a_bit(labels, monkeypatch):
    *blocks, coupled_objects, neighbors = expected = results_of(labels)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        assert_same_bits(results_of(labels), expected)
    order = np.random.default_rng(0).permutation(len(labels))
    permuted = [matrix[np.ix_(order, order)] for matrix in (coupled_objects, neighbors)]
    assert_same_bits(results_of(labels[order]), [*blocks, *permuted])


@pytest.mark.parametrize("name", ["missing", "structured, missing"], indirect=True)
def test_any_way_of_giving_the_labels_gives_the_same(labels, where):
    strings = [pd.array([None if v < 0 else f"c{v:03d}" for v in c], dtype="string") for c in labels.T]
    expected = results_of(labels, where)
    for form in (np.where(labels >= 0, 10 * labels + 3, -1), np.where(labels < 0, np.nan, labels), list(labels.T),
                 strings, pd.DataFrame(labels).astype("category"), ge.Ensemble(labels)):  # fmt: skip
        assert_same_bits(results_of(form, where), expected)


# --- error messages ---------------------------------------------------------------------------------------------------


BAD_WEIGHTS = [
    *([1, 1, 1], [1, 1, 1, 1, 1], [[1, 1, 1, 1]], 1, [1, -1, 1, 1], [1, np.nan, 1, 1], [1, np.inf, 1, 1]),
    *([0, 0, 0, 0], ["a", "b", "c", "d"], [True, True, False, True]),
    [0, 1, 0, 0],  # clusters of the second clustering need another clustering for their comparison
]


@pytest.mark.parametrize("measure", [Coupled, CommonNeighbors])
def test_bad_weights_and_single_clusterings_are_refused(measure):
    rows = Rows(oracles.TABLE_TWO)
    for weights in BAD_WEIGHTS:
        refused(lambda weights=weights: measure(weights=weights)(rows), ValueError, "weights must be")
    single = Rows(np.array([[0], [1], [1]]))
    refused(lambda: measure()(single), ValueError, "single base clustering", "at least 2")


def test_bad_thresholds_and_too_many_clusters_are_refused(monkeypatch):
    for kind, thetas in ((ValueError, (-0.1, 1.1, np.nan, np.inf)), (TypeError, ("a", True, [0.5]))):
        for theta in thetas:
            refused(lambda theta=theta: CommonNeighbors(theta), kind, "threshold must be")
    labels = random_labels(2000, 2, 900, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", "20MB")
    refused(lambda: ge.similarity.coupled_clusters(labels), MemoryError, "coupled similarity", "fewer clusters")
