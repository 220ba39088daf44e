"""Agreement beyond chance, compared with all permutations of the labels over the objects."""

import itertools
import sys

import numpy as np
import pytest
from conftest import random_labels, structured_labels

import gpuens as ge

pytestmark = pytest.mark.filterwarnings("ignore:constant clusterings")


def literal(labels):
    """Count the object pairs that two clusterings both put together; return the mean over all pairs of clusterings."""
    found = [
        sum(labels[x, a] == labels[y, a] >= 0 and labels[x, b] == labels[y, b] >= 0
            for x, y in itertools.combinations(range(len(labels)), 2))
        for a, b in itertools.combinations(range(labels.shape[1]), 2)
    ]  # fmt: skip
    return np.mean(found)


def dealt(labels):
    """Yield the labels once for every way to permute the known labels of each clustering except the first."""
    for values in itertools.product(*(itertools.permutations(column[column >= 0]) for column in labels.T[1:])):
        way = labels.copy()
        for m, of_clustering in enumerate(values, 1):
            way[way[:, m] >= 0, m] = of_clustering
        yield way


SMALL = {
    "two objects": [[0, 0], [0, 1]],
    "three": [[0, 0, 1], [0, 1, 1], [2, 1, 1]],
    "three clusterings": [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 2]],
    "one apart": [[0, 0, 0, 0, 1], [0, 0, 0, 0, 1]],
    "more clusterings than objects": [[0, 0, 1], [0, 1, 1], [0, 1, 0], [0, 0, 1]],
    "six objects": [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]],
}
MISSING = {
    "two clusterings": [[0, 0, 0, 1, 1, -1], [0, -1, -1, 0, 1, 1]],
    "three clusterings": [[0, 0, 1, 1, -1], [-1, 0, 1, 1, 1], [0, 0, -1, 0, 1]],
    "few in common": [[0, 0, 1, 1, -1, -1, -1], [-1, -1, -1, 0, 0, 1, 1]],
    "two in common": [[0, 0, 1, 1, -1], [-1, -1, 0, 0, 1]],
    "nothing in common": [[0, 0, 1, -1, -1, -1], [-1, -1, -1, 0, 0, 1], [0, 1, -1, 0, 1, 0]],
}


@pytest.mark.parametrize("name", SMALL)
def test_mean_and_deviation_are_those_of_all_ways(name, where):
    labels = np.array(SMALL[name]).T
    found = ge.evidence.beyond_chance(ge.Ensemble(list(labels.T)), device=where)
    ways = [literal(way) for way in dealt(labels)]
    np.testing.assert_allclose(found, [literal(labels), np.mean(ways), np.std(ways)], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MISSING)
def test_given_the_sizes_among_common_objects(name, where):
    labels = np.array(MISSING[name]).T
    ways = list(dealt(labels))
    found = np.array([ge.evidence.beyond_chance(ge.Ensemble(list(way.T)), device="cpu") for way in ways])
    np.testing.assert_allclose(found[:, 0], list(map(literal, ways)))
    together, expected, deviation = found.T
    np.testing.assert_allclose((together - expected).mean(), 0, atol=1e-12)
    np.testing.assert_allclose(((together - expected) ** 2).mean(), (deviation**2).mean())
    np.testing.assert_allclose(ge.evidence.beyond_chance(ge.Ensemble(list(labels.T)), device=where), found[0])


def test_clusterings_of_other_objects_are_not_chance():
    """Clusterings that label only few common objects can still agree beyond chance."""
    labels, _ = structured_labels(300, 6, 4, noise=0.1, seed=1)
    for m in range(6):
        labels[40 * m + 100 : 300, m] = labels[: 40 * m, m] = -1
    found = ge.evidence.beyond_chance(labels)
    assert found.z > 10


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_rows_with_counts_are_objects(missing):
    labels = np.repeat(random_labels(40, 4, (2, 5), missing=missing, seed=1), 3, axis=0)
    found = ge.evidence.beyond_chance(labels)
    rows = ge.CoreGroups().reduce(ge.Rows(labels)).rows
    assert rows.n_rows < 41
    np.testing.assert_allclose(ge.evidence.beyond_chance(rows), found)
    np.testing.assert_allclose(found.together, literal(labels))
    draw, ways = np.random.default_rng(0), []
    for _ in range(200):
        way = labels.copy()
        for column in way.T:
            column[column >= 0] = draw.permutation(column[column >= 0])
        ways.append(ge.evidence.beyond_chance(way).z)
    assert abs(np.mean(ways)) < 4 / np.sqrt(len(ways))
    assert 0.8 < np.std(ways) < 1.2


def test_many_clusterings_of_few_rows_need_no_table(where, monkeypatch):
    ens = ge.Ensemble(list(random_labels(30, 50, (2, 6), seed=1).T))
    rows = ge.Rows(ens, np.random.default_rng(0).integers(1, 5, 30), device=where)
    found = ge.evidence.beyond_chance(rows)
    np.testing.assert_allclose(ge.evidence.beyond_chance(np.repeat(ens.to_array(), rows.counts, axis=0)), found)
    monkeypatch.setattr(sys.modules["gpuens.evidence.beyond_chance"], "over_cells", None)
    np.testing.assert_array_equal(ge.evidence.beyond_chance(rows), found)


def test_noise_may_be_chance_and_structure_is_not():
    noise = [ge.evidence.beyond_chance(random_labels(300, 8, (2, 6), seed=seed)) for seed in range(20)]
    assert all(found.doubtful for found in noise)
    assert abs(np.mean([found.z for found in noise])) < 1
    assert all(found.p == 1 / (1 + max(found.z, 0) ** 2) for found in noise)
    assert str(noise[0]).startswith("the clusterings agree no more than independent ones might (z = ")
    clear = ge.evidence.beyond_chance(structured_labels(300, 8, 4, noise=0.6, seed=1)[0])
    assert clear.z > 10
    assert not clear.doubtful
    assert str(clear).startswith("the clusterings agree beyond chance (z = ")


@pytest.mark.parametrize("labels", [[[0, 0, 1]], [[0, 0, 0], [0, 1, 1]], [[0, 1, 2], [0, 1, 1]]])
def test_nothing_can_be_said_where_chance_has_no_choice(labels):
    found = ge.evidence.beyond_chance(labels)
    assert found.together == found.expected
    assert np.isnan(found.z)
    assert np.isnan(found.p)
    assert not found.doubtful
    assert str(found) == "nothing about the clusterings can be chance"
