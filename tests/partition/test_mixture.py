"""EM compared with a mixture of multinomials, computed in loops over objects, components and clusterings."""

import math
import sys

import numpy as np
import pytest
from conftest import random_labels, refused, structured_labels
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.partition.mixture import FLOOR, Mixture, _EMRun, posteriors

MODULE = sys.modules[Mixture.__module__]
CLEAR, TRUTH = structured_labels(300, 8, 4, noise=0.15, split=2, missing=0.1, seed=1)
NOISE = random_labels(120, 5, (2, 5), missing=0.2, seed=2)

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters")


# --- the oracle -------------------------------------------------------------------------------------------------------


def literal_e_step(labels, alpha, theta):
    """Return posteriors (N, K) and the log-likelihood; theta[m][r][label] is a probability."""
    logs = np.array([
        [math.log(max(a, FLOOR)) + sum(math.log(max(theta[m][r][v], FLOOR)) for m, v in enumerate(row) if v >= 0)
         for r, a in enumerate(alpha)] for row in labels.tolist()
    ])  # fmt: skip
    most = logs.max(axis=1, keepdims=True)
    sums = np.exp(logs - most).sum(axis=1, keepdims=True)
    return np.exp(logs - most) / sums, (most + np.log(sums)).sum()


def literal_m_step(labels, shares):
    theta = []
    for column in labels.T:
        sums = np.array([shares[column == v].sum(axis=0) for v in range(column.max() + 1)]).T
        theta.append(sums / shares[column >= 0].sum(axis=0)[:, None])
    return shares.mean(axis=0), theta


def split(theta, offsets):
    return [part.T for part in np.split(theta, offsets[1:-1])]


@pytest.mark.parametrize("labels", [CLEAR, NOISE], ids=["clear", "noise"])
def test_an_iteration_is_the_literal_one(labels, where):
    rows = Rows(ge.Ensemble(labels), device=where)
    alpha, theta = _EMRun(rows, 1, 0.0).start(3, softened=False, rng=np.random.default_rng(0))
    found = [_EMRun(rows, n, 0.0).climb(alpha, theta) for n in (1, 2, 3)]
    theta = split(theta, rows.offsets)
    for fit in found:
        np.testing.assert_allclose(fit.alpha, alpha, rtol=1e-9)
        for mine, theirs in zip(split(fit.theta, rows.offsets), theta, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        shares, total = literal_e_step(labels, alpha, theta)
        np.testing.assert_allclose(fit.bits * math.log(2), total, rtol=1e-10)
        np.testing.assert_allclose(MODULE.memberships(fit.table, fit.const, rows), shares, atol=1e-12)
        alpha, theta = literal_m_step(labels, shares)


@pytest.mark.parametrize("labels", [CLEAR, NOISE], ids=["clear", "noise"])
def test_the_likelihood_never_falls(labels):
    search = _EMRun(Rows(ge.Ensemble(labels)), 60, -1.0)  # with tol=-1, EM does not stop at a small rise
    for softened in (False, True):
        fits = [search.climb(*search.start(5, softened, np.random.default_rng(1)), max_iter=1)]
        for _ in range(50):
            fits.append(search.climb(fits[-1].alpha, fits[-1].theta, max_iter=2))
        reached = [fit.bits for fit in fits]
        assert (np.diff(reached) >= -1e-6).all()  # the lower limit of the probabilities can cause small falls
        assert reached[-1] > reached[0]


def test_memberships_are_posteriors_and_labels_their_largest(where):
    est = ge.EM(4, device=where).fit(CLEAR)
    assert ari(TRUTH, est.labels_) > 0.95
    np.testing.assert_allclose(est.membership_.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(est.membership_.argmax(axis=1), est.labels_)
    np.testing.assert_allclose(est.membership_.mean(axis=0), est.proportions_, atol=1e-3)
    theta = literal_m_step(CLEAR, est.membership_)[1]
    assert literal_e_step(CLEAR, est.proportions_, theta)[1] == pytest.approx(est.log_likelihood_, rel=1e-4)
    np.testing.assert_array_equal(est.predict(CLEAR), est.labels_)


@pytest.mark.parametrize("criterion", ["icl", "bic"])
def test_the_number_of_components_is_chosen(criterion):
    labels, truth = structured_labels(400, 10, 5, noise=0.1, split=2, seed=3)
    est = ge.EM(criterion=criterion, n_init=2, max_iter=20).fit(labels)
    assert est.n_clusters_ == 5
    assert ari(truth, est.labels_) > 0.95
    assert list(est.scores_) == list(range(2, 21))
    k, n_free = 5, sum(len(np.unique(column)) - 1 for column in labels.T)
    penalty = (k - 1 + k * n_free) / 2 * math.log(400)
    if criterion == "bic":
        assert est.scores_[5] == pytest.approx(est.log_likelihood_ - penalty)
    else:
        likely = np.log(est.membership_[np.arange(400), est.labels_]).sum()
        assert est.scores_[5] == pytest.approx(est.log_likelihood_ + likely - penalty)
    assert not hasattr(ge.EM(3).fit(labels), "scores_")
    assert ge.EM().fit(np.array([[0, 0], [1, 1], [1, 1]])).n_clusters_ == 2


# --- invariances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts_on", [60, 20_000])
@pytest.mark.parametrize("at_once", [64, 2**22])
def test_devices_threads_and_blocks(restarts_on, at_once, where, monkeypatch, sizes):
    sizes("partition.mixture", RESTARTS_ON=restarts_on)
    expected = ge.EM(4, n_init=2).fit(NOISE)
    sizes("partition.mixture", AT_ONCE=at_once)
    monkeypatch.setenv("GPUENS_THREADS", "3")
    found = ge.EM(4, n_init=2, device=where).fit(NOISE)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.membership_, expected.membership_)
    assert (found.log_likelihood_, found.n_iter_) == (expected.log_likelihood_, expected.n_iter_)


def test_counts_are_repetitions():
    rows = Rows(NOISE, counts=np.arange(len(NOISE)) % 4 + 1)
    every = Rows(np.repeat(NOISE, rows.counts, axis=0))
    partition, expected = (Mixture(n_init=3)(None, x, 4) for x in (rows, every))
    np.testing.assert_array_equal(np.repeat(partition.labels, rows.counts), expected.labels)
    np.testing.assert_equal(partition.results["log_likelihood"], expected.results["log_likelihood"])
    np.testing.assert_array_equal(partition.results["proportions"], expected.results["proportions"])


def test_powers_and_logarithms():
    rng = np.random.default_rng(4)
    sums, const = -100 * rng.random((300, 9)) ** 3, -rng.random(9)
    exact = np.exp2(sums + const)
    shares, bits = posteriors(sums.copy(), const, 2.0**52)
    np.testing.assert_allclose(shares / 2.0**52, exact / exact.sum(axis=1, keepdims=True), rtol=0, atol=1e-15)
    np.testing.assert_allclose(bits, np.log2(exact.sum(axis=1)), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("parameters", "kind", "parts"),
    [
        ({"criterion": "aic"}, ValueError, ["criterion must be one of 'bic', 'icl', not 'aic'"]),
        ({"n_init": 0}, ValueError, ["n_init must be from 1"]),
        ({"tol": 2}, ValueError, ["tol must be from 0 to 1"]),
    ],
)
def test_refusals(parameters, kind, parts):
    refused(lambda: ge.EM(3, **parameters).fit(NOISE), kind, *parts)
