"""The similarities of TOME and DREC for all pairs of rows, and their normalised cut, compared with literal versions."""

import sys

import numpy as np
import oracles
import pytest
from conftest import peak_of, random_labels, refused, structured_labels
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.similarity.base import Features

SPECTRAL = sys.modules["gpuens.partition.spectral"]


def distinct(n, seed, **given):
    """Return distinct label rows in lexicographic order, so that each object is a row, and random features."""
    labels = ge.CoreGroups().reduce(random_labels(n, 5, (2, 6), seed=seed, **given)).ensemble.to_array()
    return labels, np.random.default_rng(seed).standard_normal((len(labels), 2))


def refined(rows, labels, x):
    return ge.similarity.RefinedPaths()(rows, Features(x, ge.Ensemble(labels), None))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_tome_of_different_rows_is_the_literal_one(missing):
    labels, x = distinct(40, 1, missing=missing)
    found = refined(ge.Rows(labels), labels, x)
    expected = oracles.tome_refined(labels, x)
    np.testing.assert_allclose(found.refined(), expected, atol=1e-12, rtol=0)
    np.testing.assert_allclose(found.matrix, oracles.strongest_paths(expected), atol=1e-12, rtol=0)


def test_tome_of_rows_is_the_mean_over_their_objects(sizes):
    labels = random_labels(40, 3, (2, 3), distinct=12, missing=0.1, seed=2)
    x = np.random.default_rng(2).standard_normal((40, 3))
    groups = ge.CoreGroups().reduce(labels)
    members = np.eye(len(groups.rows))[groups.row_of] / groups.counts
    expected = members.T @ oracles.tome_refined(labels, x) @ members
    np.testing.assert_allclose(refined(groups.rows, labels, x).refined(), expected, atol=1e-12, rtol=0)
    n_distances = int(groups.counts @ np.cumsum(groups.counts))
    for block in (1, 40, n_distances - 1, n_distances, n_distances + 1):
        sizes("similarity.refined_paths", BLOCK=block)
        np.testing.assert_allclose(refined(groups.rows, labels, x).refined(), expected, atol=1e-12, rtol=0)
    few = groups.rows.take(np.arange(5))  # objects outside these rows do not count
    some = np.flatnonzero(groups.row_of < 5)
    some = some[np.argsort(groups.row_of[some], kind="stable")]
    alone = refined(ge.Rows(few.ensemble), few.ensemble.take(groups.row_of[some]), x[some]).refined()
    np.testing.assert_allclose(refined(few, labels, x).refined(), alone, atol=1e-12, rtol=0)


def test_distances_of_more_objects_than_are_measured_together():
    labels = random_labels(1300, 2, (3, 8), seed=6)
    x = np.random.default_rng(6).standard_normal((1300, 5))
    groups = ge.CoreGroups().reduce(labels)
    mean, farthest = refined(groups.rows, labels, x)._distances()
    of_row = [x[groups.row_of == g] for g in range(len(groups.rows))]
    pairs = [[cdist(one, other) for other in of_row] for one in of_row]
    np.testing.assert_allclose(mean, [[pair.mean() for pair in row] for row in pairs], rtol=1e-12)
    np.testing.assert_allclose(farthest, [[pair.max() for pair in row] for row in pairs], rtol=1e-14)


def test_distances_of_nothing_and_stabilities_that_are_all_alike():
    labels = np.array([[0, 0], [0, 1], [1, 2], [1, 3]])
    found = refined(ge.Rows(labels), labels, np.zeros((4, 1)))
    np.testing.assert_allclose(found.refined(), oracles.tome_refined(labels, np.zeros((4, 1))), atol=1e-12)
    crossed = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert refined(ge.Rows(crossed), crossed, np.zeros((4, 1))).refined()[0].tolist() == [1.0, 0.5, 0.5, 0.0]
    assert ge.TOME(1).fit([[0, 1]], features=[[1.0], [2.0]]).labels_.tolist() == [0, 0]


@pytest.mark.parametrize(("n", "missing", "strength"), [(60, 0.0, 100.0), (60, 0.2, 100.0), (12, 0.0, 3.0)])
def test_drec_is_the_literal_one(n, missing, strength):
    """DREC equals the literal version, for ensembles with fewer rows than clusters and with more."""
    labels, _ = distinct(n, 3, missing=missing)
    found = ge.similarity.DenseRepresentation(strength)(ge.Rows(labels)).matrix
    np.testing.assert_allclose(found, oracles.dense_representation(labels, strength), atol=1e-9, rtol=0)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("even", [False, True])
def test_the_cut_of_rows_is_that_of_their_objects(monkeypatch, even):
    labels = structured_labels(60, 5, 3, noise=0.2, seed=4)[0]
    groups = ge.CoreGroups().reduce(labels)
    similarity, seen = ge.similarity.Propagated()(groups.rows), []
    really = SPECTRAL.kmeans
    monkeypatch.setattr(SPECTRAL, "kmeans", lambda *given, **more: seen.append(given) or really(*given, **more))
    found = ge.partition.NormalizedCut(even=even)(similarity, groups.rows, 3)
    row_of = np.arange(len(groups.rows)) if even else groups.row_of
    expected = oracles.normalized_cut_embedding(similarity.matrix[np.ix_(row_of, row_of)], 3)
    points, counts = seen[0][0][row_of], seen[0][1]
    np.testing.assert_allclose(points @ points.T, expected @ expected.T, atol=1e-8, rtol=0)
    assert counts.tolist() == (np.ones(len(row_of)) if even else groups.counts).tolist()
    assert found.n_clusters == 3


def test_paths_follow_rings():
    """Distances to centres cannot separate rings."""
    rng = np.random.default_rng(5)
    angle, truth = rng.random(400) * 2 * np.pi, np.arange(400) % 2
    x = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 4 * truth)[:, None] + rng.normal(0, 0.05, (400, 2))
    labels = ge.generate.kmeans_ensemble(x, 15, (12, 20))
    assert ari(truth, ge.TOME(2).fit(labels, features=x).labels_) == 1.0
    assert ari(truth, ge.TOME(2, reduction=ge.Sample(300)).fit(labels, features=x).labels_) > 0.9


def test_refusals(monkeypatch):
    labels = random_labels(300, 4, 9, seed=1)
    refused(lambda: ge.DREC(2, strength=0).fit(labels), ValueError, "strength must be above 0")
    refused(lambda: ge.TOME(2).fit(labels), TypeError, "features are not given", "TOME compares the objects")
    refused(lambda: ge.TOME(2).fit(labels, features=np.ones((9, 1))), ValueError, "features have 9 rows")
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    for est, given in ((ge.DREC(2), {}), (ge.TOME(2), {"features": np.ones((300, 1))})):
        refused(lambda est=est, given=given: est.fit(labels, **given), MemoryError, "distinct label rows", "Sample")


@pytest.mark.parametrize("est", [ge.TOME(3), ge.DREC(3)])
def test_clusters_beside_few_rows_count_in_memory(est, foreseen):
    rows = ge.Rows(ge.CoreGroups().reduce(random_labels(100, 60, (90, 100), seed=0)).ensemble)
    measure = est._parts()[0]
    foreseen.clear()
    measure.refuse_too_many(rows)
    x = np.zeros((100, 1))
    found = measure(rows, Features(x, rows.ensemble, None) if measure.needs_features else None)
    found.compute()  # warm-up: packages are imported before memory is measured
    assert peak_of(found.compute) < 1.01 * foreseen[0]
