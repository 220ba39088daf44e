"""PD compared with disagreements counted pair by pair."""

import itertools

import numpy as np
import pytest
from conftest import random_labels, structured_labels

import gpuens as ge
from gpuens.labels.rows import Rows

NOISE = random_labels(60, 5, (2, 5), distinct=40, missing=0.15, seed=1)
K = 4


def disagreements(labels, partition):
    """Return the mean over clusterings of the pairs that either the partition or a clustering puts together, not both.

    An object with a missing label is together with no other object. Each object also counts as a pair with itself; all
    clusterings that label it agree on this pair.
    """
    together = partition[:, None] == partition
    return np.mean([(((c[:, None] == c) & (c >= 0)) != together).sum() for c in labels.T])


def literal(labels, partition):
    """Return the objective Σ_r [n_r² - (2/M) Σ_c n_rc²]."""
    together = partition[:, None] == partition
    return sum(together.sum() - 2 * (together & (c[:, None] == c) & (c >= 0)).sum() for c in labels.T) / labels.shape[1]


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_objective_is_the_mirkin_distance_up_to_a_constant(missing):
    labels, rng = random_labels(30, 4, (2, 4), missing=missing, seed=2), np.random.default_rng(0)
    two = [rng.integers(0, 3, 30) for _ in range(2)]
    a, b = ([measure(labels, found) for found in two] for measure in (literal, disagreements))
    assert a[0] - a[1] == pytest.approx(b[0] - b[1])
    est = ge.PD(3).fit(labels)
    assert est.objective_ == pytest.approx(literal(labels, est.labels_))


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_clusters_that_label_kmeans_leaves_empty_are_used():
    """In QMI, a missing label has distance zero from all labels. In PD, it is together with no label."""
    labels = np.array([[0, 0, -1, 0, 0, 0, -1, -1], [0, -1, 0, 0, -1, -1, 0, 0]]).T
    est = ge.PD(2).fit(labels)
    every = [np.array(found) for found in itertools.product(range(2), repeat=8)]
    by_row = [found for found in every if all(len(set(found[(labels == row).all(axis=1)])) == 1 for row in labels)]
    assert est.objective_ == literal(labels, est.labels_) == min(literal(labels, found) for found in by_row) == -4
    np.testing.assert_array_equal(est.predict(labels), est.labels_)


def test_what_a_move_changes_is_the_formula():
    labels, rng = NOISE, np.random.default_rng(1)
    n_clusterings = labels.shape[1]
    for _ in range(200):
        found = rng.integers(0, K, len(labels))
        group = (labels == labels[rng.integers(len(labels))]).all(axis=1)
        r, s = rng.choice(K, 2, replace=False)
        found[group] = r
        row, n = labels[group][0], group.sum()
        before = np.bincount(found, minlength=K)
        shared = [sum(np.count_nonzero((found == t) & (labels[:, m] == v)) for m, v in enumerate(row) if v >= 0)
                  for t in range(K)]  # fmt: skip
        known = np.count_nonzero(row >= 0)
        gain = 2 * n * ((before[s] - before[r] + n) - 2 / n_clusterings * (shared[s] - shared[r] + known * n))
        then = np.where(group, s, found)
        assert literal(labels, then) - literal(labels, found) == pytest.approx(gain)


@pytest.mark.parametrize("k", [2, 4, 9])
@pytest.mark.parametrize("labels", [NOISE, structured_labels(80, 6, 4, noise=0.4, seed=3)[0]], ids=["noise", "clear"])
def test_no_move_of_a_row_makes_it_better(labels, k, where):
    est = ge.PD(k, device=where).fit(labels)
    assert est.converged_
    assert est.n_clusters_ == k
    reached = literal(labels, est.labels_)
    for group in ((labels == row).all(axis=1) for row in np.unique(labels, axis=0)):
        if (est.labels_[~group] == est.labels_[group][0]).any():  # the last row of a cluster cannot move
            for s in range(k):
                assert literal(labels, np.where(group, s, est.labels_)) >= reached - 1e-9
    assert reached <= literal(labels, ge.QMI(k).fit(labels).labels_) + 1e-9


def test_sweeps_lower_the_objective():
    labels = random_labels(300, 6, (2, 6), seed=4)
    found = [ge.PD(7, max_iter=n).fit(labels) for n in (1, 2, 50)]
    objectives = [est.objective_ for est in found]
    assert objectives == sorted(objectives, reverse=True)
    assert [est.converged_ for est in found] == [False, False, True]
    assert found[0].n_iter_ == 1


def test_counts_are_repetitions():
    """Whole groups of equal objects move together.

    With few objects, moves of single objects would give the same result.
    """
    labels = structured_labels(100, 8, 4, noise=0.2, missing=0.1, seed=5)[0]
    rows = Rows(labels, counts=np.arange(len(labels)) % 3 + 1)
    every = Rows(np.repeat(labels, rows.counts, axis=0))
    partition, expected = (ge.PD(K)._parts()[1](None, x, K) for x in (rows, every))
    np.testing.assert_array_equal(np.repeat(partition.labels, rows.counts), expected.labels)
    assert partition.results["objective"] == expected.results["objective"]


def test_new_objects_go_where_they_cost_least():
    est = ge.PD(K).fit(NOISE)
    np.testing.assert_array_equal(est.predict(NOISE), est.labels_)
    for row in random_labels(20, 5, (2, 5), missing=0.15, seed=9):
        row = np.minimum(row, NOISE.max(axis=0))
        together = np.vstack([NOISE, row])
        costs = [literal(together, np.append(est.labels_, s)) for s in range(K)]
        if not (row == NOISE).all(axis=1).any():
            assert costs[int(est.predict(row[None])[0])] == pytest.approx(min(costs))
