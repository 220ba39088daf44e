"""Voting and BestOfK compared with loops over objects and clusterings."""

import numpy as np
import pandas as pd
import pytest
from conftest import random_labels, refused, structured_labels
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score as ari
from sklearn.metrics import normalized_mutual_info_score

import gpuens as ge
from gpuens.labels.rows import Rows

CLEAR, TRUTH = structured_labels(150, 7, 4, noise=0.3, split=1, missing=0.1, seed=1)
MIXED = np.column_stack([CLEAR, structured_labels(150, 3, 4, noise=0.2, split=3, seed=2)[0]])
NOISE = random_labels(120, 5, 4, missing=0.2, seed=3)
K = 4

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters")


def overlap(column, reference):
    return np.array([[np.count_nonzero((column == v) & (reference == r)) for r in range(K)]
                     for v in range(column.max() + 1)])  # fmt: skip


def literal(labels, reference, voting, max_iter=10):
    """Return the votes (N, K) of the last round. In ``reference`` (N,), -1 marks objects without a label."""
    before = None
    for _ in range(max_iter):
        cast, tables = np.zeros((len(labels), K)), []
        for column in labels.T:
            shared = overlap(column, reference)
            if voting == "soft":
                table = shared / np.maximum(shared.sum(axis=1, keepdims=True), 1)
            else:
                to = shared.argmax(axis=1)
                for v, r in zip(*linear_sum_assignment(-shared), strict=True):
                    to[v] = r
                table = np.eye(K)[to]
                table[shared.sum(axis=1) == 0] = 0
            tables.append(table)
            for x, v in enumerate(column):
                if v >= 0:
                    cast[x] += table[v]
        if before is not None and all((a == b).all() for a, b in zip(tables, before, strict=True)):
            break
        before, reference = tables, cast.argmax(axis=1)
    return cast


def nmi(a, b):
    both = (a >= 0) & (b >= 0)
    return normalized_mutual_info_score(a[both], b[both], average_method="geometric") if both.any() else 0.0


def mutual(labels):
    return np.array([[nmi(a, b) for b in labels.T] for a in labels.T])


@pytest.mark.parametrize("voting", ["plurality", "soft"])
@pytest.mark.parametrize("max_iter", [1, 10])
@pytest.mark.parametrize("labels", [MIXED, NOISE], ids=["mixed", "noise"])
def test_votes_are_the_literal_ones(labels, voting, max_iter, where):
    est = ge.Voting(K, voting=voting, max_iter=max_iter, device=where).fit(labels)
    k_of = labels.max(axis=0) + 1
    best = np.where(k_of == K, mutual(labels).sum(axis=1), -1).argmax()
    assert est.reference_clustering_ == best
    cast = literal(labels, labels[:, best], voting, max_iter)
    chosen = cast.argmax(axis=1)
    assert ari(chosen, est.labels_) == 1.0
    shares = cast / np.maximum(cast.sum(axis=1, keepdims=True), 1e-300)
    for label in range(est.n_clusters_):
        np.testing.assert_allclose(est.membership_[:, label], shares[:, chosen[est.labels_ == label][0]], atol=1e-12)
    assert est.n_iter_ <= max_iter
    np.testing.assert_array_equal(est.predict(labels), est.labels_)


def test_no_object_outside_a_sample_goes_to_a_cluster_without_objects():
    labels = np.random.default_rng(3).integers(0, 3, (12, 3))
    est = ge.Voting(3, max_iter=1, reduction=ge.Sample(4)).fit(labels)
    assert est.n_clusters_ == 2
    for found in (est.labels_, est.predict(random_labels(200, 3, 3, seed=1))):
        assert np.unique(found).tolist() == [0, 1]


@pytest.mark.parametrize("voting", ["plurality", "soft"])
def test_clear_classes_are_found(voting):
    assert ari(TRUTH, ge.Voting(K, voting=voting).fit(CLEAR).labels_) > 0.9
    unequal, truth = structured_labels(200, 8, 4, noise=0.1, split=3, seed=5)
    unequal = unequal[:, unequal.max(axis=0) > 3]
    est = ge.Voting(K, voting=voting).fit(unequal)
    assert est.reference_clustering_ is None
    assert ari(truth, est.labels_) > 0.95


def test_a_reference_by_name():
    frame = pd.DataFrame(MIXED).add_prefix("run ")
    est = ge.Voting(K, reference="run 3", max_iter=1).fit(frame)
    assert est.reference_clustering_ == "run 3"
    cast = literal(MIXED, MIXED[:, 3], "plurality", 1)
    np.testing.assert_array_equal(est.membership_.max(axis=1), (cast / cast.sum(axis=1, keepdims=True)).max(axis=1))
    for est, labels, *parts in (
        (ge.Voting(K, reference="four"), frame, "reference must be the name", "'run 0'"),
        (ge.Voting(K, reference=9), MIXED, "reference=9 has", "not n_clusters=4"),
        (ge.Voting(K, voting="hard"), MIXED, "voting must be one of 'plurality', 'soft'"),
    ):
        refused(lambda est=est, labels=labels: est.fit(labels), ValueError, *parts)


@pytest.mark.parametrize("labels", [MIXED, NOISE], ids=["mixed", "noise"])
def test_the_best_base_clustering(labels, where):
    est = ge.BestOfK(device=where).fit(labels)
    present = (labels >= 0).sum(axis=0)
    anmi = mutual(labels) @ present / present.sum()
    np.testing.assert_allclose(est.anmi_, anmi, atol=1e-12)
    best = est.best_clustering_
    assert best == anmi.argmax()
    known = labels[:, best] >= 0
    assert ari(labels[known, best], est.labels_[known]) == 1.0
    similar = ((labels[:, None] == labels) & (labels[:, None] >= 0)).sum(axis=2)
    for x in np.flatnonzero(~known):
        means = [similar[x, labels[:, best] == v].mean() for v in range(labels[:, best].max() + 1)]
        own = [similar[x, known & (est.labels_ == label)].mean() for label in range(est.n_clusters_)]
        assert own[est.labels_[x]] == pytest.approx(max(means))
    np.testing.assert_array_equal(est.predict(labels), est.labels_)


def test_the_best_of_those_with_k_clusters():
    k_of = MIXED.max(axis=0) + 1
    for k in sorted(set(k_of.tolist())):
        est = ge.BestOfK(k).fit(MIXED)
        assert est.n_clusters_ == k_of[est.best_clustering_] == k
        assert est.anmi_[est.best_clustering_] == est.anmi_[k_of == k].max()
    refused(lambda: ge.BestOfK(3).fit(MIXED), ValueError, "n_clusters=3", "none has 3", "leave it out")
    refused(lambda: ge.BestOfK(3).fit([[0, 0, 1, 1], [0, 1, 1, 0]]), ValueError, "have 2 clusters and none has 3")


@pytest.mark.parametrize("estimator", [ge.Voting(K), ge.Voting(K, voting="soft"), ge.BestOfK()], ids=str)
def test_counts_are_repetitions(estimator):
    rows = Rows(MIXED, counts=np.arange(len(MIXED)) % 4 + 1)
    every = Rows(np.repeat(MIXED, rows.counts, axis=0))
    partition, expected = (estimator._parts()[1](None, x, estimator.n_clusters) for x in (rows, every))
    np.testing.assert_array_equal(np.repeat(partition.labels, rows.counts), expected.labels)
    assert partition.results.keys() == expected.results.keys()


@pytest.mark.parametrize("estimator", [ge.Voting(K), ge.Voting(K, voting="soft"), ge.BestOfK(), ge.BestOfK(K)], ids=str)
def test_chunks(estimator, in_pieces):
    da = pytest.importorskip("dask.array")
    expected = estimator.fit(MIXED).labels_
    found = estimator.fit(da.from_array(MIXED, chunks=(40, -1))).labels_.compute()
    if isinstance(estimator, ge.BestOfK) or estimator.voting == "plurality":
        assert ari(found, expected) == 1.0
    np.testing.assert_allclose(ari(found, expected), 1.0, atol=0.05)


def test_a_table_beyond_the_memory_is_refused(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "30MB")
    labels = [np.arange(3000), np.arange(3000) // 2]
    refused(lambda: ge.Voting(3000).fit(labels), MemoryError, "table of 4,500 clusters", "3,000 of a clustering")
