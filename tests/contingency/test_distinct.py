"""Equal clusterings are compared once; results are those of every pair of clusterings by itself."""

import itertools

import numpy as np
import oracles
import pytest

import gpuens as ge
from gpuens import contingency
from gpuens.contingency.distinct import Distinct
from gpuens.contingency.labels import labels_of
from gpuens.labels.odd_columns import equal_clusterings


def repeated(n=28, m=60, *, missing=0.0, seed=0):
    """Return clusterings (n, m), of which most equal another one except for the names of the clusters."""
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 5, (n, 12))
    few[rng.random(few.shape) < missing] = -1
    few[:, 0] = np.arange(n) % 4
    columns = [np.append(rng.permutation(9), -1)[column] for column in few[:, rng.integers(0, 12, m)].T]
    columns[-1] = few[:, 0]
    return np.stack(columns, axis=1)


CASES = [repeated(), repeated(missing=0.3), repeated(100, 20, missing=0.1), repeated(300, 12)]


@pytest.fixture(params=range(len(CASES)))
def ens(request):
    return ge.Ensemble(list(CASES[request.param].T))


def test_distinct_clusterings_are_the_partitions(ens):
    distinct = Distinct.among(labels_of(ens))
    same = [((column[:, None] == column) & (column[:, None] != ens.missing_code)).tobytes() for column in ens.codes.T]
    assert len(distinct.times) == len(set(same))
    for a, b in itertools.combinations(range(ens.n_clusterings), 2):
        assert (same[a] == same[b]) == (distinct.of[a] == distinct.of[b])
    np.testing.assert_array_equal(np.bincount(distinct.of), distinct.times)


def test_few_objects_are_compared_as_many_are(ens, sizes):
    expected = equal_clusterings(ens.codes, np.diff(ens.offsets))
    assert expected
    sizes("labels.odd_columns", FEW=0)
    assert equal_clusterings(ens.codes, np.diff(ens.offsets)) == expected


def test_clusterings_without_labels_are_not_equal():
    """A sample of the objects may have no label in two clusterings."""
    ens = ge.Ensemble([[0, 0, 1, 1], [0, -1, -1, 1], [1, -1, -1, 0]]).take(np.array([1, 2]))
    found = contingency.agreement(ens)
    np.testing.assert_array_equal(found, [[1, np.nan, np.nan], [np.nan, 1, np.nan], [np.nan, np.nan, 1]])


def test_consistency_is_that_of_every_pair(ens):
    found, n = ge.evidence.consistency(ens), ens.n_clusterings
    nmi, ari, ecs = (np.eye(n) for _ in range(3))
    sums, n_pairs = np.zeros(len(ens)), np.zeros(len(ens))
    for i, j, table in contingency.pair_tables(ens):
        nmi[i, j] = nmi[j, i] = contingency.nmi_of(table)
        ari[i, j] = ari[j, i] = contingency.ari_of(table)
        shares = table / np.maximum(np.maximum(table.sum(1)[:, None], table.sum(0)), 1)
        ecs[i, j] = ecs[j, i] = (table * shares).sum() / table.sum()
        known = (ens.codes[:, [i, j]] != ens.missing_code).all(axis=1)
        sums[known] += shares[ens.codes[known, i], ens.codes[known, j]]
        n_pairs += known
    np.testing.assert_array_equal(found.ari, ari)
    np.testing.assert_allclose(found.nmi, nmi, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.ecs, ecs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.ecc, sums / n_pairs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.inconsistency, 1 / ecs.mean(), rtol=1e-12)
    others = ecs[~np.eye(n, dtype=bool)].mean()
    assert f"two have a mean ECS of {others:.3f}" in repr(found)


def test_consistency_does_not_depend_on_the_order_of_clusterings_or_threads(monkeypatch):
    labels = CASES[1]
    found = []
    for order, threads in ((np.arange(60), "1"), (np.random.default_rng(3).permutation(60), "2")):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        found.append(ge.evidence.consistency(ge.Ensemble(list(labels[:, order].T))).ecc)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_entropy_of_equal_clusters_is_the_literal_one(ens, weights):
    if weights is None:
        np.testing.assert_allclose(contingency.entropy(ens), oracles.entropy(columns_of(ens)), rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(0)
    w = {None: None, "whole": rng.integers(1, 5, len(ens)), "real": rng.random(len(ens)) + 0.1}[weights]
    shared = contingency.intersections(ens, w, "dense")
    expected = contingency.entropies.entropy_of(shared, ens.offsets)
    np.testing.assert_allclose(contingency.entropy(ens, w), expected, rtol=0, atol=1e-12)


def test_agreement_beyond_chance_is_that_of_every_pair(ens):
    """The moments are added literally, for the sizes of clusters among the objects that both clusterings label."""
    together = expected = variance = 0.0
    for _, _, table in contingency.pair_tables(ens):
        n = int(table.sum())
        off = ~np.eye(n, dtype=bool)
        parts = []
        for sizes in (table.sum(1), table.sum(0)):
            of = np.repeat(np.arange(len(sizes)), sizes)
            A = ((of[:, None] == of) & off).astype(float)
            mean = A.sum() / (n * (n - 1))
            a = (A.sum(1) - (n - 1) * mean) / (n - 2)
            parts.append((mean, (a**2).sum(), (((A - mean - a[:, None] - a) * off) ** 2).sum()))
        (mean, of_objects, rest), (mean_b, of_objects_b, rest_b) = parts
        together += (table**2).sum() - n
        expected += n * (n - 1) * mean * mean_b
        variance += 4 * (n - 2) ** 2 / (n - 1) * of_objects * of_objects_b + 2 / (n * (n - 3)) * rest * rest_b
    pairs = ens.n_clusterings * (ens.n_clusterings - 1)
    found = ge.evidence.beyond_chance(ens)
    assert found.together == together / pairs
    np.testing.assert_allclose(found, np.array([together, expected, variance**0.5]) / pairs, rtol=1e-12)


def columns_of(ens):
    """Return the label matrix with -1 for missing labels."""
    return np.where(ens.codes == ens.missing_code, -1, ens.codes.astype(int))


def test_methods_and_descriptions_count_equal_clusterings_as_often_as_they_occur(ens):
    nmi, columns = np.nan_to_num(contingency.agreement(ens)), columns_of(ens).T
    expected = [[contingency.nmi_of(contingency.table(a, b)) for a in columns] for b in columns]
    np.testing.assert_allclose(nmi, expected, rtol=0, atol=1e-12)
    present = (columns >= 0).sum(axis=1)
    np.testing.assert_allclose(ge.BestOfK().fit(ens).anmi_, nmi @ present / present.sum(), rtol=1e-12)
    described = [column["agreement"] for column in ge.describe(ens, forecasts=False).columns]
    np.testing.assert_allclose(described, (nmi.sum(axis=1) - 1) / (ens.n_clusterings - 1), rtol=1e-12)


def test_few_rows_have_the_eigenvectors_of_many_clusters(sizes):
    """The small matrix of rows has the eigenvalues that Lanczos's iterations find in that of clusters."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((28, 600)) < 0.1, rng.integers(0, 5, (28, 600)), np.arange(28)[:, None] % 5)
    ens = ge.Ensemble(list(labels.T))
    values, labels = ge.evidence.spectrum(ens).eigenvalues, ge.LWGP(5).fit(ens).labels_
    sizes("partition.transfer_cut", FEW_ROWS=0)
    np.testing.assert_allclose(values, ge.evidence.spectrum(ens).eigenvalues, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(labels, ge.LWGP(5).fit(ens).labels_)


def test_thousands_of_clusterings_of_few_objects_take_no_call_for_each_pair():
    """Five million pairs of clusterings in a few seconds, where a Python call for each took ten minutes."""
    ens = ge.Ensemble(list(repeated(28, 3000).T))
    assert len(Distinct.among(labels_of(ens)).times) == 12
    found = ge.evidence.consistency(ens)
    assert found.ecs.shape == (3000, 3000)
    assert ge.Voting(4).fit(ens).n_clusters_ == 4
