"""Meta-clustering compared with its definition, object by object."""

import sys
from fractions import Fraction

import numpy as np
import oracles
import pytest
from conftest import random_labels, refused, structured_labels

from gpuens.labels.rows import Rows
from gpuens.partition import meta_clustering, metis
from gpuens.reduction import core_groups
from gpuens.runtime.device import to_host

MODULE = sys.modules[meta_clustering.__module__]  # this is the module; the package exports a function of the same name


def associations(labels, clusters, k):
    """Return the associations of each object with k meta-clusters by the definition: means of cluster indicators."""
    members, of_meta = [cluster[2] for cluster in oracles.clusters(labels)], range(k)
    sizes = [max(1, int((clusters == q).sum())) for q in of_meta]
    return [
        [Fraction(sum(x in members[c] for c in np.flatnonzero(clusters == q)), sizes[q]) for q in of_meta]
        for x in range(len(labels))
    ]


class Result:
    """The results of `meta_clustering` on rows, by name."""

    def __init__(self, similarities, rows, k, **options):
        partition = meta_clustering(similarities, rows, k, **options)
        self.labels, self.clusters = partition.labels, partition.results["meta_clusters"]
        self.membership = partition.membership(rows)
        assert partition.n_clusters == self.labels.max() + 1


def run(labels, k, where="cpu", **options):
    reduced = core_groups(Rows(labels, device=where))
    return Result(oracles.jaccard(labels), reduced.rows, k, **options), reduced


ENSEMBLES = {
    "structured": lambda: structured_labels(120, 8, 4, seed=1)[0],
    "missing": lambda: structured_labels(120, 8, 4, missing=0.3, seed=2)[0],
    "noise": lambda: random_labels(80, 6, (2, 7), seed=3),
    "repeated rows": lambda: random_labels(90, 4, (2, 4), distinct=20, missing=0.2, seed=4),
    "many clusters": lambda: random_labels(600, 3, (250, 300), seed=5),
}


@pytest.mark.filterwarnings("ignore:found only . of . clusters")
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("name", ENSEMBLES)
def test_rows_go_where_they_are_associated_most(name, k, where):
    labels = ENSEMBLES[name]()
    found, reduced = run(labels, k, where)
    expected = associations(labels, found.clusters, k)
    for x, g in enumerate(to_host(reduced.row_of)):
        association = expected[x]
        assert sum(association) > 0
        assert association[found.labels[g]] == max(association)
        shares = [float(a / sum(association)) for a in association]
        np.testing.assert_allclose(found.membership[g], shares, atol=1e-15)
    n_labels = found.labels.max() + 1
    _, first = np.unique(found.labels, return_index=True)
    assert len(first) == n_labels  # every label from 0 to n_labels - 1 is used
    assert (np.diff(first) > 0).all()
    assert (found.membership.argmax(axis=1) < n_labels).all()


def test_clusters_are_divided_by_metis_and_weigh_their_objects():
    labels = ENSEMBLES["repeated rows"]()
    found, reduced = run(labels, 3, random_state=5, imbalance=0.2)
    weights = np.array([len(members) for _, _, members in oracles.clusters(labels)])
    assert reduced.ensemble.n_objects < len(labels)
    parts = metis(oracles.jaccard(labels), weights, 3, random_state=5, imbalance=0.2)
    assert len(set(zip(parts, found.clusters, strict=True))) == 3


@pytest.fixture
def parts(monkeypatch):
    """Return a function that replaces METIS by a given partition of the clusters."""
    return lambda found: monkeypatch.setattr(MODULE, "metis", lambda *_, **__: np.array(found))


def test_ties_go_to_the_meta_cluster_of_the_first_cluster(parts):
    """The meta-clusters are {0, 3} and {1, 2}. Objects 1 and 2 are in one cluster of each meta-cluster."""
    parts([0, 1, 1, 0])
    rows = Rows(np.array([[1, 0], [0, 0], [1, 1], [0, 1]]))
    found = Result(np.zeros((4, 4)), rows, 2)
    assert found.labels.tolist() == [0, 1, 1, 1]
    assert found.clusters.tolist() == [1, 0, 0, 1]
    assert found.membership.tolist() == [[1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1]]


def test_meta_clusters_that_win_nothing_are_left_out_with_a_warning(parts):
    """Each object is in one cluster of the first meta-cluster, but in both clusters of another meta-cluster."""
    parts([0, 0, 1, 2, 1, 2])
    rows = Rows([np.array([0, 1])] * 3)
    with pytest.warns(UserWarning, match="found only 2 of 3 clusters"):
        found = Result(np.zeros((6, 6)), rows, 3)
    assert found.labels.tolist() == [0, 1]
    assert found.clusters.tolist() == [2, 2, 0, 1, 0, 1]
    np.testing.assert_allclose(found.membership, [[2 / 3, 0, 1 / 3], [0, 2 / 3, 1 / 3]])


def test_other_rows_go_to_meta_clusters_that_have_rows(parts):
    """The third row is equally associated with all three meta-clusters. No row belongs to the first meta-cluster."""
    parts([0, 0, 1, 2, 1, 2])
    rows = Rows(np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [0, -1, -1], [-1, 1, 1]]))
    with pytest.warns(UserWarning, match="found only 2 of 3 clusters"):
        found = meta_clustering(np.zeros((6, 6)), rows.take([0, 1]), 3)
    assert found.rule(rows).tolist() == [0, 1, 0, 0, 1]
    assert found.rule(rows).max() < found.n_clusters


def test_what_other_rows_go_by_is_one_of_two():
    refused(lambda: MODULE.MetaClusters(others="mean"), ValueError, "others", "'mean'")


def test_clusters_without_objects_count_nowhere(where):
    labels = structured_labels(60, 6, 3, split=3, seed=6)[0]
    rows = Rows(labels, device=where).take(np.arange(12))
    there = rows.cluster_sizes() > 0
    assert not there.all()
    found = Result(oracles.jaccard(labels), rows, 3)
    indicators = oracles.incidence(labels)[:12]
    expected = np.stack([indicators[:, there & (found.clusters == q)].mean(axis=1) for q in range(3)], axis=1)
    np.testing.assert_allclose(found.membership, expected / expected.sum(axis=1, keepdims=True), atol=1e-15)


def test_too_many_meta_clusters_are_refused():
    rows = Rows(np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]))
    refused(lambda: meta_clustering(np.zeros((5, 5)), rows, 6), ValueError, "n_clusters=6", "5 clu")
