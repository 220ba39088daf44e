"""The transfer cut against dense matrices, and both of its ways against each other."""

import sys

import numpy as np
import oracles
import pytest
from conftest import structured_labels
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.device import to_host
from gpuens.partition import embedding, transfer_cut
from gpuens.reduction import core_groups

MODULE = sys.modules[transfer_cut.__module__]  # the package shows the function under the same name


def embed(labels, weights, k, device="cpu"):
    ensemble = ge.Ensemble(labels)
    reduced = core_groups(ensemble)
    w = np.ones(ensemble.n_clusters) if weights is None else weights
    points, values = embedding(reduced.ensemble, w, reduced.weights, k, device=device)
    return to_host(points)[reduced.membership], values


@pytest.fixture(params=["dense", "lanczos"])
def way(request, monkeypatch):
    if request.param == "lanczos":
        monkeypatch.setattr(MODULE, "DENSE_UP_TO", 0)
    return request.param


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_embedding_is_the_literal_one(way, weighted, missing, where):
    """Eigenvectors are defined up to rotations among equal eigenvalues: compare the inner products of the rows."""
    labels = structured_labels(150, 8, 4, noise=0.3, split=3, missing=missing, seed=2)[0]
    weights = oracles.eci(labels, 0.4) if weighted else None
    points, values = embed(labels, weights, 4, where)
    expected, expected_values = oracles.transfer_cut_embedding(labels, weights, 4)
    np.testing.assert_allclose(values, expected_values, atol=1e-8, rtol=0)
    np.testing.assert_allclose(points @ points.T, expected @ expected.T, atol=1e-6, rtol=0)


def test_more_clusters_than_eigenvectors(way):
    """Two clusterings of two clusters tell four rows apart but have four eigenvectors at most."""
    labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    assert ge.HBGF(4).fit(labels).n_clusters_ == 4


def test_empty_clusters_are_left_out(way):
    ensemble = ge.Ensemble(structured_labels(100, 5, 3, seed=1)[0])
    rows = ensemble.take(np.arange(30))
    assert (rows.sizes == 0).any() or rows.n_clusters == ensemble.n_clusters
    points, values = embedding(rows, np.ones(rows.n_clusters), np.ones(30, dtype=np.int64), 3)
    assert np.isfinite(points).all()
    assert np.isfinite(values).all()


@pytest.mark.parametrize("method", ["lwgp", "hbgf"])
def test_structure_is_found(way, method):
    labels, truth = structured_labels(400, 10, 5, noise=0.2, split=3, seed=4)
    found = ge.consensus(labels, 5, method=method)
    assert ari(truth, found) > 0.95


def test_restarts_on_a_sample_find_the_same(monkeypatch):
    labels, truth = structured_labels(600, 10, 4, noise=0.2, split=3, seed=5)
    monkeypatch.setattr(MODULE, "RESTARTS_ON", 200)
    assert ari(truth, ge.consensus(labels, 4, method="lwgp")) > 0.95


def test_equal_seeds_give_equal_labels_whatever_the_order_of_the_objects():
    labels = structured_labels(300, 6, 4, noise=0.4, seed=6)[0]
    order = np.random.default_rng(0).permutation(300)
    a = ge.LWGP(4, random_state=3).fit(labels).labels_
    b = ge.LWGP(4, random_state=3).fit(labels[order]).labels_
    np.testing.assert_array_equal(a[order], b)


def test_too_few_points_is_a_warning_of_one_sentence():
    """Objects that no clustering connects differently embed into one point each side."""
    ensemble = ge.Ensemble([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]])
    with pytest.warns(UserWarning, match="only 2 of 3 clusters came out"):
        transfer_cut(ensemble, np.ones(4), np.ones(6, dtype=np.int64), 3)
