"""Containers of clusterings: communities of graphs, and dicts of labels."""

import random

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuens as ge
from gpuens.labels.columns import as_column
from gpuens.labels.communities import columns_by_name

A = [[1, 2, 3], [4, 5, 6], [7, 8, 9, 10]]
B = [[1, 2, 3], [4, 6], [5, 7, 8, 9, 10]]
OF_A = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
OF_B = [0, 0, 0, 1, 2, 1, 2, 2, 2, 2]


class Partition:
    """The attributes of a VertexClustering or VertexCover of igraph, whose elements are clusters."""

    def __init__(self, membership, clusters, names=None):
        self.membership, self.graph, self.vs, self._clusters = membership, self, self, clusters
        self._names = names

    def attributes(self):
        return [] if self._names is None else ["name"]

    def __getitem__(self, key):
        return self._names if key == "name" else self._clusters[key]

    def __len__(self):
        return len(self._clusters)


class NodeClustering:
    """The attributes of a NodeClustering of cdlib."""

    def __init__(self, communities):
        self.communities, self.graph, self.overlap = communities, None, False


def by_object(clusters):
    """Return a clustering as a dict of object to the number of its cluster."""
    return {member: number for number, members in enumerate(clusters) for member in members}


SAME = {
    "lists": [A, B],
    "tuples of tuples": tuple(tuple(map(tuple, one)) for one in (A, B)),
    "sets": [[set(members) for members in one] for one in (A, B)],
    "frozensets": [tuple(frozenset(members) for members in one) for one in (A, B)],
    "generators": [(set(members) for members in one) for one in (A, B)],
    "views": [{i: set(members) for i, members in enumerate(one)}.values() for one in (A, B)],
    "dicts": [by_object(A), by_object(B)],
    "dicts of members": [dict(enumerate(A)), {i: set(members) for i, members in enumerate(B)}],
    "cdlib": [NodeClustering(A), NodeClustering(B)],
    "igraph": [Partition(OF_A, A, list(range(1, 11))), Partition(OF_B, B, list(range(1, 11)))],
    "covers": [Partition([[0]] * 10, A), Partition([[0]] * 10, B)],
    "a series": [by_object(A), pd.Series(OF_B, index=range(1, 11))],
    "several": [[set(members) for members in A], by_object(B)],
}


@pytest.mark.parametrize("container", list(SAME))
def test_clusterings_by_the_names_of_their_members(container):
    ens = ge.Ensemble(list(SAME[container]))  # a list, because generators are used up
    places = ens.index.get_indexer(range(1, 11))
    assert ens.to_array()[places].T.tolist() == [OF_A, OF_B]
    assert (ens.n_objects, ens.names) == (10, [0, 1])
    if not isinstance(SAME[container][-1], (dict, pd.Series)):
        assert ens.index.tolist() == list(range(1, 11))


def test_mappings_name_their_clusterings():
    kinds = [by_object(A), by_object(B)], [A, B], [pd.Series(OF_A), pd.Series(OF_B)], [OF_A, np.array(OF_B)]
    for first, second in kinds:
        ens = ge.Ensemble({"first": first, "second": second})
        assert (ens.names, ens.to_array().T.tolist()) == (["first", "second"], [OF_A, OF_B])
    assert ge.Ensemble({"first": OF_A}, names=["x"]).names == ["x"]
    more = ens.with_({"third": [set(range(5)), set(range(5, 10))]})
    assert (more.names, more.to_array()[:, 2].tolist()) == (["first", "second", "third"], [0] * 5 + [1] * 5)
    assert ge.Ensemble(dict(batch=OF_A, leiden=OF_B)).names == ["batch", "leiden"]  # a dict is a choice of clusterings


def test_numbers_from_0_are_positions():
    ens = ge.Ensemble([[{3, 1}, {0, 2}], {2: "x", 0: "x", 3: "y", 1: "x"}, [7, 7, 5, 5], Partition([0, 0, 1, 1], [])])
    assert ens.index is None
    assert ens.to_array().T.tolist() == [[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]


def test_an_object_that_a_clustering_lacks_has_a_missing_label():
    clusterings = [
        {"b": 4, "a": 4, "c": 7},
        [{"d", "a"}, {"c"}],
        {"d": "x", "e": None, "a": "y"},
        pd.Series(pd.Categorical(["u", "v"]), index=["e", "b"]),
        {"e": 0.0, "b": 2.0},
        {"b": True, "e": False},
    ]
    ens = ge.Ensemble(clusterings)
    assert ens.index.tolist() == ["b", "a", "c", "d", "e"]  # in the order of the dicts
    wanted = [[0, 0, 1, -1, -1], [-1, 0, 1, 0, -1], [-1, 1, -1, 0, -1], *[[1, -1, -1, -1, 0]] * 3]
    assert ens.to_array().T.tolist() == wanted
    gaps = [{"a": 1, "c": 2, "b": None}, {"a": 1, "c": 1, "d": 0}]
    refused(lambda: ge.Ensemble(gaps), ValueError, "1 object(s)", "object 2")
    assert ge.Ensemble.of_labelled(gaps)[1].tolist() == [True, True, False, True]


def test_objects_of_sets_are_sorted_whatever_the_order_of_the_sets():
    for members in ([(0, 1), (0, 0), (2, -1)], ["b", "a", "ä"], [3, -1, 2**70], [2.5, 0.5, 1.0]):
        ens = ge.Ensemble([[{members[0], members[1]}, {members[2]}]])
        assert ens.index.tolist() == sorted(members)
        assert ens.to_array()[ens.index.get_loc(members[2]), 0] == 1
    assert ge.Ensemble([[{"a", 1}, {(0, 1)}]]).index.tolist() == [1, "a", (0, 1)]  # by type


REFUSED = {
    "sets": ([{1, 2}, {3}], TypeError, ["one clustering", "2 set(s)", "[labels]"]),
    "sets of sets": ([{frozenset({1, 2}), frozenset({3})}], TypeError, ["labels[0] is a set", "pass a list"]),
    "a dict": ({"a": 0, "b": 1}, TypeError, ["one clustering", "2 object(s)", "[labels]"]),
    "a dict of texts": ({"a": "T", "b": "B"}, TypeError, ["one clustering", "[labels]"]),
    "a dict of sets": ({"u": {1, 2}, "v": {3}}, TypeError, ["one clustering", "2 set(s)", "[labels]"]),
    "an igraph clustering": (Partition(OF_A, A), TypeError, ["one clustering", "a Partition", "[labels]"]),
    "a cdlib clustering": (NodeClustering(A), TypeError, ["one clustering", "a NodeClustering", "[labels]"]),
    "ragged lists": (A, ValueError, ["clustering 0 has 3", "2 has 4", "pass [labels]"]),
    "lists of one length": ([A[:2], B[:1] + A[1:2]], ValueError, ["2-D", "(2, 2, 3)", "as a set"]),
    "a generator": ((one for one in (A, B)), TypeError, ["labels", "generator", "list(labels)"]),
    "an empty dict": ({}, ValueError, ["empty"]),
    "overlapping sets": ([[{1, 2}, {2, 3}]], ValueError, ["labels[0]", "object 2", "2 clusters"]),
    "overlapping names": ([by_object(A), [["a"], ["b", "a"]]], ValueError, ["labels[1]", "object 'a'"]),
    "an overlapping cover": ([Partition([[0], [0, 1]], [[0, 1], [1]])], ValueError, ["labels[0]", "object 1"]),
    "a member twice": ([[["x", "x"], ["y"]]], ValueError, ["labels[0]", "object 'x'"]),
    "a scalar among sets": ([[{1, 2}, 3]], TypeError, ["labels[0]", "3 among sets"]),
    "an object without a name": ([{None: 1, "a": 2}], ValueError, ["labels[0]", "no name"]),
    "NaN as a name": ([[{float("nan")}, {"a"}]], ValueError, ["labels[0]", "no name"]),
    "a column beside names": (
        [[{"a", "b"}, {"c"}], [5, 5, 6]],
        ValueError,
        ["labels[1]", "labels[0]", "without names"],
    ),
    "a shorter column": ([[{0, 1}, {2}], [5, 5]], ValueError, ["labels[1]", "2 labels"]),
    "numbers from 1": ([[{1, 2}, {3}], [5, 5, 6]], ValueError, ["labels[1]", "without names"]),
    "labels that are no labels": ([{"a": 1.5, "b": 2}], ValueError, ["clustering 0", "1.5"]),
    "only empty sets": ([[set(), set()]], ValueError, ["labels"]),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_containers_that_are_refused(case):
    labels, kind, mentioned = REFUSED[case]
    refused(lambda: ge.Ensemble(labels), kind, *mentioned)


def test_frames_series_and_lists_of_labels_stay_columns():
    frame = pd.DataFrame({"communities": OF_A, "membership": OF_B, "graph": OF_A})
    assert ge.Ensemble(frame).names == ["communities", "membership", "graph"]
    series = [pd.Series([0, 1, 1], index=["communities", "membership", "graph"])] * 2
    assert ge.Ensemble(series).n_objects == 3
    square = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    with pytest.warns(UserWarning, match=r"none of the 9 labels in 3 lists occurs twice, .* pass \[labels\]"):
        assert ge.Ensemble(square).to_array().tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert ge.Ensemble([("a", "b", "a"), ("x", "x", "y")]).n_objects == 3


def literal(clusterings):
    """Return {object: list of labels} of clusterings that are dicts or lists of sets, found one object at a time."""
    labels = {}
    for m, clustering in enumerate(clusterings):
        for name, label in (clustering if isinstance(clustering, dict) else by_object(clustering)).items():
            labels.setdefault(name, [None] * len(clusterings))[m] = label
    return labels


NAMES = st.one_of(st.integers(-5, 12), st.sampled_from(["a", "b", "7", "", "é"]), st.tuples(st.integers(0, 2)))


@st.composite
def clusterings_of_named_objects(draw):
    clusterings = []
    for _ in range(draw(st.integers(1, 4))):
        labels = draw(st.dictionaries(NAMES, st.integers(0, 3), min_size=1, max_size=12))
        if draw(st.booleans()):
            clusterings.append(labels)
        else:
            clusterings.append([{name for name, label in labels.items() if label == cluster} for cluster in range(4)])
    return clusterings


@given(clusterings_of_named_objects())
@settings(max_examples=200, deadline=None)
def test_labels_are_those_of_a_literal_search(clusterings):
    columns, index = columns_by_name(clusterings, as_column, [f"labels[{m}]" for m in range(len(clusterings))])
    wanted = literal(clusterings)
    names = list(range(len(wanted))) if index is None else index.tolist()
    assert len(names) == len(set(names)) == len(wanted)
    for place, name in enumerate(names):
        labels = [column[place] for column in columns]
        assert [None if label is None or label == -1 else label for label in labels] == wanted[name]


def test_what_must_not_matter():
    """The kind of container, the order of sets and members, and names that sort alike do not change a consensus."""
    rng = random.Random(0)
    runs = [[order[i::k] for i in range(k)] for k in (3, 4, 5) for order in [rng.sample(range(30), 30)]]
    wanted = ge.consensus([[set(cluster) for cluster in run] for run in runs], 3, method="eac").tolist()
    for form in (
        [tuple(frozenset(rng.sample(cluster, len(cluster))) for cluster in run) for run in runs],
        [[{f"v{member:02}" for member in cluster} for cluster in run] for run in runs],
        [[by_object(run)[i] for i in range(30)] for run in runs],
    ):
        assert ge.consensus(form, 3, method="eac").tolist() == wanted


def test_predict_takes_the_containers_of_fit():
    est = ge.EAC(2).fit([by_object(A), by_object(B)])
    assert est.predict([by_object(A), by_object(B)]).tolist() == est.labels_.tolist()
    assert est.predict([{"new": 0}, {"new": 0}]).tolist() == est.labels_[:1].tolist()


def test_communities_of_networkx():
    nx = pytest.importorskip("networkx")
    graph = nx.karate_club_graph()
    runs = [nx.community.greedy_modularity_communities(graph, resolution=r) for r in (1, 1.0, 1.05)]
    columns = [[next(c for c, members in enumerate(run) if node in members) for node in graph] for run in runs]
    assert ge.consensus(runs, 3).tolist() == ge.consensus(columns, 3).tolist()
    found, wanted = (ge.graph_consensus(graph, labels, final="components") for labels in (runs, columns))
    assert found.labels.tolist() == wanted.labels.tolist()
    renamed = nx.relabel_nodes(graph, {node: f"n{33 - node:02}" for node in graph})
    named = [[{f"n{33 - node:02}" for node in members} for members in run] for run in runs]
    assert ge.metrics.ari(ge.graph_consensus(renamed, named, final="components").labels[::-1], wanted.labels) == 1.0
    refused(lambda: ge.consensus(runs[0], 3), TypeError, "one clustering")


def test_clusterings_of_igraph():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph.Famous("Zachary")
    runs = [graph.community_multilevel(), graph.community_fastgreedy().as_clustering(3)]
    wanted = [list(map(int, run.membership)) for run in runs]
    assert ge.Ensemble(runs).to_array().tolist() == ge.Ensemble(wanted).to_array().tolist()
    assert ge.Ensemble(list(map(list, runs))).to_array().tolist() == ge.Ensemble(wanted).to_array().tolist()
    graph.vs["name"] = [f"v{i}" for i in range(34)]
    assert ge.Ensemble(runs).index.tolist() == graph.vs["name"]


def test_scores_of_named_objects():
    a, b = by_object(A), by_object(B)
    wanted = ge.metrics.scores(OF_A, OF_B)
    shuffled = dict(sorted(b.items(), key=lambda item: -item[0]))
    for one, other in ((a, b), (a, shuffled), (A, B), (list(map(set, A)), b), (NodeClustering(A), pd.Series(b))):
        assert ge.metrics.scores(one, other) == wanted
    assert ge.metrics.ari({0: "x", 1: "x", 2: "y"}, ["u", "u", "v"]) == 1.0
    weights, expected = np.arange(1, 11), ge.metrics.vi(OF_A, OF_B, sample_weight=np.arange(1, 11))
    assert ge.metrics.vi(a, shuffled, sample_weight=pd.Series(weights, index=weights)[::-1]) == expected
    assert ge.metrics.ari({"a": 0, "b": 0, "c": 1}, {"c": 1, "d": 0, "a": 3}) == 1.0  # a and c are in both
    assert ge.metrics.stability([a, b]) == wanted["ari"]
    refused(lambda: ge.metrics.ari({"a": 0}, {"b": 1}), ValueError, "no object has a label in both")
    refused(lambda: ge.metrics.ari([{1, 2}, {2}], [{1, 2}]), ValueError, "a has object 2")
