"""Cuts of a list of merges, and the tree formats of other tools made from this list."""

import threading

import numpy as np
import oracles
import pytest
import scipy.cluster.hierarchy
from conftest import MANY_SHAPES, count_and_interrupt
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.partition import Dendrogram
from gpuens.runtime.native import cpu


def chain(similarities):
    """Return a tree in which leaf 0 merges with leaves 1, 2, 3, … in turn."""
    n = len(similarities)
    return Dendrogram(np.zeros(n, dtype=np.int64), np.arange(1, n + 1), np.array(similarities))


def test_every_cut_is_the_literal_one(any_labels):
    est = ge.EAC(1).fit(any_labels)
    expected = oracles.greedy_average_linkage(any_labels)
    n_groups = len(expected.groups.counts)
    for k in range(1, n_groups + 1):
        np.testing.assert_array_equal(est.dendrogram_.cut(k), oracles.cut(expected.merges, n_groups, k))


def test_children_are_what_scikit_learn_and_scipy_read(any_labels):
    est = ge.LWEA(1).fit(any_labels)
    n = len(any_labels)
    assert est.children_.shape == (n - 1, 2)
    assert est.distances_.shape == (n - 1,)
    assert (np.diff(est.distances_) >= 0).all()
    z = est.linkage_matrix()
    # each node is merged exactly once
    np.testing.assert_array_equal(np.sort(est.children_.ravel()), np.arange(2 * n - 2))
    assert scipy.cluster.hierarchy.is_valid_linkage(z)
    assert z[-1, 3] == n


@pytest.mark.parametrize("shape", ["noise", "few clusterings", "unequal k", "repeated rows", "structured"])
def test_scipy_cuts_the_expanded_tree_of_unit_weights_alike(shape):
    """Without weights and missing labels, equal rows have distance 0, and so they merge before all other rows."""
    labels = MANY_SHAPES[shape]()
    est = ge.EAC(1).fit(labels)
    distances = np.append(est.distances_, 1.0)
    # SciPy's choice is arbitrary if the heights on both sides of a cut are equal
    untied = [k for k in range(2, len(est.reduction_.counts)) if distances[-k] - distances[-k - 1] > 1e-9]
    assert untied
    for k in untied:
        by_scipy = scipy.cluster.hierarchy.fcluster(est.linkage_matrix(), k, "maxclust")
        assert ari(by_scipy, ge.EAC(k).fit(labels).labels_) == 1.0


def test_cut_at_a_height():
    tree = chain([0.9, 0.7, 0.7, 0.2])
    assert [tree.n_clusters_at(d) for d in (0.05, 0.2, 0.5, 1.0)] == [5, 4, 2, 1]


@pytest.mark.parametrize(
    ("similarities", "leaves_made_at", "expected"),
    [
        ([0.9, 0.8, 0.2], None, [0.6, 0.1]),  # two clusters exist from similarity 0.2 to 0.8
        ([0.4, 0.3, 0.2], 0.1, [0.1, 0.1, 0.5]),
        ([0.4, 0.3, 0.2], 0.0, [0.1, 0.1, 0.6]),
        ([0.5], None, []),
        ([0.5], 0.0, [0.5]),
        ([], None, []),
        ([], 0.0, []),
    ],
)
def test_lifetimes_are_the_ranges_of_heights(similarities, leaves_made_at, expected):
    np.testing.assert_allclose(chain(similarities).lifetimes(leaves_made_at), expected, atol=1e-12)


def test_cut_labels_are_numbered_by_the_smallest_leaf():
    tree = Dendrogram(np.array([2, 1, 1]), np.array([3, 0, 2]), np.array([0.9, 0.5, 0.1]))
    assert tree.cut(3).tolist() == [0, 1, 2, 2]
    assert tree.cut(2).tolist() == [0, 0, 1, 1]


def test_expand_puts_objects_of_a_group_together_first():
    membership = np.array([1, 0, 1, 2, 1])
    objects = chain([0.5, 0.25]).expand(membership, np.array([1.0, 0.75, 1.0]))
    children, counts = objects.children()
    assert children.tolist() == [[0, 2], [4, 5], [1, 6], [3, 7]]
    assert counts.tolist() == [2, 3, 4, 5]
    assert objects.similarities.tolist() == [0.75, 0.75, 0.5, 0.25]


def test_as_many_clusters_as_rows_begin_when_the_last_equal_objects_have_merged():
    """A row that only one object has merges with no equal object. The row's similarity to itself does not matter."""
    labels = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]])
    rng = np.random.default_rng(0)
    for _ in range(20):
        est = ge.ECRMC(2, n_neighbors=2).fit(labels, features=rng.normal(size=(6, 3)))
        rows = np.sort(1 - est.dendrogram_.similarities)
        repeated = est.fit_.partition.self_similarities[est.reduction_.counts > 1]
        assert len(repeated) == 1
        expected = max(0.0, rows[0] - (1 - repeated[0]))
        np.testing.assert_allclose(est.lifetimes_, [*np.diff(rows)[::-1], expected], atol=1e-12)


def test_a_signal_ends_the_sort_of_many_merges(prepared):
    """Before its result is written."""
    n = 6_000_000
    kept, absorbed, similarities = np.zeros(n, dtype=int), np.arange(1, n + 1), np.random.default_rng(0).random(n)
    merges = cpu.Merges(np.full(n, -1), np.full(n, -1), np.empty(n))
    prepared(count_and_interrupt(), threading.main_thread().ident)
    with pytest.raises(KeyboardInterrupt):
        cpu.sort_merges(kept, absorbed, similarities, merges)
    assert (merges[0] == -1).all()
