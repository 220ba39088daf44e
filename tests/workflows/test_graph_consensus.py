"""The consensus of clusterings of a graph, readers of edges, and the command: against dense co-association."""

import gzip
import json
import sys
from functools import partial
from itertools import pairwise

import numpy as np
import oracles
import pandas as pd
import pytest
from conftest import one_sentence, refused
from scipy.sparse import coo_array, csr_array, save_npz

import gpuens as ge
from gpuens import cli
from gpuens.labels.edges import as_edges
from gpuens.labels.pair_shares import shares_of_pairs
from gpuens.similarity import coassociation


def random_graph(n, n_edges, rng):
    """Return different edges (n_edges, 2) between n objects, in random order and directions."""
    every = np.array(np.triu_indices(n, 1)).T
    edges = every[rng.choice(len(every), n_edges, replace=False)]
    return np.where(rng.random((n_edges, 1)) < 0.5, edges, edges[:, ::-1])


def sparse(edges, n, weights=None):
    values = np.ones(len(edges)) if weights is None else weights
    upper = coo_array((values, edges.T), shape=(n, n)).tocsr()
    return upper.maximum(upper.T)


def ring(n, size):
    """Return the edges of n cliques in a ring, where an edge joins each clique to the next."""
    within = [(c * size + i, c * size + j) for c in range(n) for i in range(size) for j in range(i)]
    return np.array(within + [(c * size, (c + 1) % n * size + 1) for c in range(n)])


# --- oracles ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_edges_have_the_coassociation_of_the_dense_matrix_and_components_are_those_of_a_union_find(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 40)), int(rng.integers(1, 9))
    labels = rng.integers(-1 if seed % 2 else 0, 4, size=(n, m))
    labels[:, 0] = rng.integers(4, size=n)  # each object has a label
    edges = random_graph(n, int(rng.integers(1, n * (n - 1) // 2)), rng)
    threshold = float(rng.choice([0.3, 0.5, 2 / 3, 1.0]))
    found = ge.graph_consensus(sparse(edges, n), labels, threshold=threshold, final="components")

    together = oracles.coassociation(labels)
    shares = np.array([together[i, j] for i, j in found.edges])
    assert sorted(map(tuple, np.sort(edges, axis=1))) == list(map(tuple, found.edges))
    np.testing.assert_allclose(found.coassociation, shares, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.coassociation >= threshold, found.kept)
    np.testing.assert_array_equal(found.labels, oracles.components(n, found.edges[found.kept]))
    assert found.n_clusters == found.labels.max() + 1
    assert found.n_rounds == 1


def test_a_threshold_is_reached_by_equal_shares():
    edges, labels = [[0, 1]], np.tile([[0], [0], [2]], 10)
    for n_apart in range(10):
        labels[1, :n_apart] = 1
        share = (10 - n_apart) / 10
        assert ge.graph_consensus(edges, list(labels.T), threshold=share, final="components").kept.all()
    with pytest.warns(UserWarning, match="no edge has a co-association of threshold=1 or more") as warned:
        found = ge.graph_consensus(edges, list(labels.T), threshold=1.0, final="leiden")
    one_sentence(warned[0].message)
    assert found.labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("missing", [False, True])
def test_the_coassociation_of_pairs_is_that_of_the_block(missing, sizes):
    rng = np.random.default_rng(0)
    labels = rng.integers(-1 if missing else 0, 3, size=(50, 7))
    labels[:, 0] = rng.integers(3, size=50)
    first, second = rng.integers(50, size=(2, 1000))
    ens, expected = ge.Ensemble(labels), coassociation(labels)[first, second]
    np.testing.assert_array_equal(shares_of_pairs(ens, first, second), expected)
    sizes("labels.pair_shares", PAIRS_AT_A_TIME=7)
    np.testing.assert_array_equal(shares_of_pairs(ens, first, second), expected)


def test_whole_weights_are_copies_of_clusterings():
    rng = np.random.default_rng(4)
    labels, weights = rng.integers(-1, 3, size=(40, 4)), np.array([3, 1, 2, 5])
    labels[:, 0] = rng.integers(3, size=40)
    edges = random_graph(40, 200, rng)
    copies = consensus(edges, np.repeat(labels, weights, axis=1), threshold=0.4)
    for unit in (1, 0.25):  # powers of two, whose sums are exact
        weighted = consensus(edges, labels, weights=weights * unit, threshold=0.4)
        np.testing.assert_array_equal(weighted.coassociation, copies.coassociation)
        np.testing.assert_array_equal(weighted.kept, copies.kept)
        np.testing.assert_array_equal(weighted.labels, copies.labels)
    same = np.repeat(labels[:, :1], 3, axis=1)
    shares = consensus(edges, same, weights=[0.1, 0.2, 0.3], threshold=1.0).coassociation
    assert set(shares) == {0.0, 1.0}


def test_weights_of_resolutions_are_those_of_their_clusterings():
    edges = ring(40, 4)
    found = ge.graph_consensus(edges, base="louvain", resolutions=(0.5, 30.0), n_seeds=4, weights=(1, 3))
    shares = shares_of_pairs(found.ensemble, *found.edges.T)
    labels = found.ensemble.to_array()
    halves = [shares_of_pairs(ge.Ensemble(labels[:, m]), *found.edges.T) for m in (slice(4), slice(4, 8))]
    assert (shares != found.coassociation).any()
    np.testing.assert_allclose(found.coassociation, halves[0] / 4 + halves[1] * 3 / 4, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_clusterings", [2, 3, 7])
def test_the_agreement_is_fleiss_kappa(n_clusterings):
    rng = np.random.default_rng(n_clusterings)
    labels, edges = rng.integers(3, size=(30, n_clusterings)), random_graph(30, 150, rng)
    found = consensus(edges, labels)
    judgements = [labels[found.edges[:, 0], m] == labels[found.edges[:, 1], m] for m in range(n_clusterings)]
    assert found.agreement == pytest.approx(oracles.fleiss_kappa(judgements), abs=1e-12)
    assert consensus(edges, np.repeat(labels[:, :1], n_clusterings, axis=1)).agreement == pytest.approx(1.0)
    assert np.isnan(consensus(edges, labels[:, :1]).agreement)


# --- base clusterings -------------------------------------------------------------------------------------------------


def planted(n, size, degree, mixing, seed):
    """Return edges and communities of ``size`` objects; ``mixing`` of the edges of each object lead anywhere."""
    rng = np.random.default_rng(seed)
    communities = np.arange(n) // size
    first = np.repeat(np.arange(n), degree // 2)
    within = communities[first] * size + rng.integers(size, size=len(first))
    second = np.where(rng.random(len(first)) < mixing, rng.integers(n, size=len(first)), within)
    return np.column_stack([first, second]), communities


def test_small_communities_are_found_without_another_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    edges, communities = planted(4000, 20, 14, 0.4, 0)
    found = ge.graph_consensus(edges)
    assert set(found.ensemble.names) == {f"first-level_1_{seed}" for seed in range(16)}
    assert ge.metrics.ari(communities, found.labels) > 0.98
    assert found.agreement > 0.8
    last = ge.graph_consensus(edges, base="louvain", threshold=0.8)
    assert ge.metrics.ari(communities, last.labels) < 0.95
    refused(lambda: ge.graph_consensus(edges, base="leiden"), ImportError, "needs igraph")


def test_a_graph_without_communities_is_told():
    edges, _ = planted(1000, 1000, 10, 1.0, 0)
    with pytest.warns(UserWarning, match="the graph does not support communities") as warned:
        found = ge.graph_consensus(edges)
    one_sentence(warned[0].message)
    assert found.agreement < 0.2
    assert ge.graph_consensus(edges, found.ensemble).agreement == found.agreement  # labels of a user are not judged


@pytest.mark.parametrize("final", ["louvain", "leiden", "components"])
def test_clusters_are_connected_by_kept_edges(final):
    if final == "leiden":
        pytest.importorskip("igraph", reason="Leiden is igraph's")
    edges, _ = planted(600, 20, 8, 0.5, 1)
    found = ge.graph_consensus(edges, final=final)
    kept = found.edges[found.kept]
    inner = kept[found.labels[kept[:, 0]] == found.labels[kept[:, 1]]]
    np.testing.assert_array_equal(found.labels, oracles.components(600, inner))


def test_results_repeat_and_do_not_depend_on_threads(monkeypatch):
    edges, _ = planted(2000, 20, 10, 0.4, 2)
    expected = ge.graph_consensus(edges, random_state=3)
    monkeypatch.setenv("GPUENS_THREADS", "1")
    again = ge.graph_consensus(edges, random_state=3)
    np.testing.assert_array_equal(again.labels, expected.labels)
    np.testing.assert_array_equal(again.coassociation, expected.coassociation)
    assert (ge.graph_consensus(edges, random_state=4).coassociation != expected.coassociation).any()


# --- Leiden -----------------------------------------------------------------------------------------------------------


def test_cliques_that_single_clusterings_join_are_found():
    pytest.importorskip("igraph", reason="Leiden is igraph's")
    truth = np.repeat(np.arange(300), 5)
    found = ge.graph_consensus(ring(300, 5), base="leiden", resolutions=5.0, n_seeds=20, threshold=1.0, final="leiden")
    single = [ge.metrics.ari(truth, column) for column in found.ensemble.to_array().T]
    assert max(single) < 0.7
    assert ge.metrics.ari(truth, found.labels) == 1.0
    assert (found.n_clusters, found.n_rounds, np.count_nonzero(~found.kept)) == (300, 1, 300)


@pytest.mark.filterwarnings("ignore:base clusterings hardly agree")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("base", ["leiden", "louvain"])
def test_rounds_are_those_of_the_definition(base, weighted):
    pytest.importorskip("igraph", reason="Leiden is igraph's")
    rng = np.random.default_rng(1)
    edges = random_graph(60, 300, rng)
    weights = rng.uniform(0.5, 2.0, len(edges))
    graph = sparse(edges, 60, weights)
    given = {"resolutions": (1.0, 2.0, 3.0), "n_seeds": 3, "threshold": 0.6, "weighted": weighted}
    given |= {"base": base, "final": base}

    def members_of(left, resolutions, n_seeds, keep):
        if base == "leiden":
            return ge.generate.leiden_ensemble(left, resolutions, n_seeds, random_state=draws, keep=keep).to_array()
        return ge.generate.louvain_ensemble(left, resolutions, n_seeds, random_state=draws, level="last").to_array()

    found = ge.graph_consensus(graph, **given, max_rounds=-1)
    assert found.n_rounds > 1
    draws, left, first_labels = np.random.default_rng(0), graph, None
    for n_rounds in range(1, found.n_rounds + 1):
        keep = "useful" if n_rounds == 1 else "all"
        labels = members_of(left, (1.0, 2.0, 3.0), 3, keep)
        first_labels = labels if first_labels is None else first_labels
        together = oracles.coassociation(labels)
        near = (left.toarray() > 0) & (together >= 0.6)
        removed = np.count_nonzero(near) < left.nnz
        left = csr_array(near * together * (graph.toarray() if weighted else 1.0))
        assert removed == (n_rounds < found.n_rounds)
        ended = ge.graph_consensus(graph, **given, max_rounds=n_rounds)
        assert ended.n_rounds == n_rounds
        np.testing.assert_array_equal(ended.edges[ended.kept], np.argwhere(np.triu(near)))
    final = members_of(left, 2.0, 1, "all")[:, 0]
    inner = np.array([(i, j) for i, j in np.argwhere(np.triu(left.toarray() > 0)) if final[i] == final[j]])
    np.testing.assert_array_equal(found.labels, oracles.components(60, inner))
    np.testing.assert_array_equal(found.ensemble.to_array(), first_labels)
    assert found.coassociation.tolist() == [oracles.coassociation(first_labels)[i, j] for i, j in found.edges]


# --- graphs -----------------------------------------------------------------------------------------------------------

EDGES = np.array([[0, 1], [1, 2], [2, 0], [4, 3], [4, 5], [3, 5], [2, 3]])
LABELS = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]])


def consensus(graph, labels=LABELS, **more):
    return ge.graph_consensus(graph, labels, **{"threshold": 0.6, "final": "components", **more})


def assert_equal_edges(found, expected):
    for name in ("first", "second", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_all_kinds_of_graphs_give_one_result():
    networkx = pytest.importorskip("networkx")
    igraph = pytest.importorskip("igraph")
    expected = consensus(EDGES)
    assert expected.labels.tolist() == [0, 0, 0, 1, 1, 1]
    twice = np.vstack([EDGES, EDGES[:, ::-1], [[3, 3]]])
    graphs = [
        EDGES.tolist(),
        EDGES.astype(float),
        EDGES.astype(np.uint8),
        np.column_stack([EDGES, np.full(len(EDGES), 0.5)]),
        twice,
        pd.DataFrame(EDGES),
        pd.DataFrame(EDGES).assign(weight=2),
        sparse(EDGES, 6),
        sparse(EDGES, 6).tocoo(),
        networkx.Graph(EDGES.tolist()),
        igraph.Graph(n=6, edges=EDGES.tolist()),
        as_edges(EDGES),
    ]
    for graph in graphs:
        found = consensus(graph)
        np.testing.assert_array_equal(found.edges, expected.edges)
        np.testing.assert_array_equal(found.coassociation, expected.coassociation)
        np.testing.assert_array_equal(found.labels, expected.labels)
        assert found.index is None


def test_weights_come_from_any_kind_of_graph_and_the_largest_counts():
    networkx = pytest.importorskip("networkx")
    igraph = pytest.importorskip("igraph")
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    of_networkx = networkx.Graph()
    of_networkx.add_weighted_edges_from([(a, b, w) for (a, b), w in zip(EDGES.tolist(), weights, strict=True)])
    of_igraph = igraph.Graph(n=6, edges=EDGES.tolist())
    of_igraph.es["weight"] = weights
    listed = np.column_stack([EDGES, weights])
    smaller = np.column_stack([EDGES[:, ::-1], weights / 2])
    expected = as_edges(sparse(EDGES, 6, weights))
    for graph in (of_networkx, of_igraph, listed, np.vstack([smaller, listed, smaller]), pd.DataFrame(listed)):
        assert_equal_edges(as_edges(graph), expected)
    assert len(as_edges(np.column_stack([EDGES, weights * (weights > 3)]))) == 4


def test_objects_are_matched_by_name():
    names = np.array(["f", "a", "b", "e", "d", "c"])
    graph = pd.DataFrame(names[EDGES])
    labels = pd.DataFrame(LABELS, index=names)
    expected = consensus(EDGES)
    for order in (np.arange(6), np.random.default_rng(0).permutation(6)):
        found = consensus(graph, labels.iloc[order])
        assert found.index.tolist() == names[order].tolist()
        assert ge.metrics.ari(found.labels, expected.labels[order]) == 1.0
        near = {frozenset(pair): share for *pair, share, _ in found.table.itertuples(index=False)}
        wanted = {frozenset(names[pair]): c for pair, c in zip(expected.edges, expected.coassociation, strict=True)}
        assert near == wanted
    more = pd.concat([labels, pd.DataFrame([[0, 1, 1]], index=["z"])])
    assert consensus(graph, more).labels.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert consensus(names[EDGES].astype(object), labels).labels.tolist() == expected.labels.tolist()
    numbers = pd.DataFrame(LABELS, index=["10", "20", "30", "40", "50", "60"])
    assert consensus(pd.DataFrame(EDGES * 10 + 10), numbers).labels.tolist() == expected.labels.tolist()
    refused(lambda: consensus(graph, labels.iloc[1:]), ValueError, "labels have no object 'f', which the edges have")
    refused(lambda: consensus(graph), ValueError, "labels have no object 'f'", "--id-column")
    refused(lambda: consensus(graph, labels.set_axis(list("abcdea"))), ValueError, "several objects have the name 'a'")


LARGE = 2**63
ODD_NAMES = {  # names of the two columns of edges 0-1, 1-2, 2-3 → names of the objects, in order
    "uint64": (np.array([LARGE, LARGE + 1, LARGE + 4], "u8"), np.array([LARGE + 1, LARGE + 4, 2**64 - 1], "u8")),
    "both": (np.array([-5, 3, 2**53 + 1], "i8"), np.array([3, 2**53 + 1, LARGE + 9], "u8")),
    "small": (np.array([-128, 127, 0], "i1"), np.array([127, 0, 200], "u1")),
    "unsigned": (np.array([2**53 + 1, 3, 2**53], "i8"), np.array([3, 2**53, LARGE + 9], "u8")),
    "floats": (np.array([1e19, 2e19, 1e300]), np.array([2e19, 1e300, 0.5])),
    "whole": (np.array([4.0, 2.0, 3.0]), np.array([2, 3, 1])),
    "beside": (np.array([2**53 + 1, 3, 2**53]), np.array([3.0, 2.0**53, 0.5])),
    "objects": (np.array([2**70, -1, "a"], object), np.array([-1, "a", 2.5], object)),
}


@pytest.mark.parametrize("kind", ODD_NAMES)
def test_names_in_tables_are_exact(kind):
    first, second = ODD_NAMES[kind]
    exact = [*first.tolist(), second.tolist()[-1]]
    found = as_edges(pd.DataFrame({"a": first, "b": second}))
    assert set(found.names.tolist()) == set(exact)
    assert {frozenset(pair) for pair in pairs(found)} == {frozenset(exact[i : i + 2]) for i in range(3)}
    if kind in ("uint64", "small", "unsigned", "whole"):  # integers ascend
        assert found.names.tolist() == sorted(exact)
        assert found.names.dtype.kind in "iu"


def test_names_near_the_largest_number_are_matched_with_those_of_labels():
    ids = np.array([LARGE + 11 * i for i in range(6)], "u8")
    expected = consensus(EDGES)
    for dtype in ("u8", object, "UInt64", str):
        labels = pd.DataFrame(LABELS, index=pd.Index(ids.tolist()).astype(dtype))
        found = consensus(pd.DataFrame(ids[EDGES]), labels)
        assert found.labels.tolist() == expected.labels.tolist()
    small = pd.DataFrame(LABELS, index=(ids - np.uint64(LARGE)).astype("i8"))
    refused(lambda: consensus(pd.DataFrame(ids[EDGES]), small), ValueError, f"labels have no object {LARGE}")


@pytest.mark.filterwarnings("ignore:base clusterings hardly agree")
@pytest.mark.parametrize("node_of", [tuple, str, lambda pair: frozenset([pair]), lambda pair: pair if any(pair) else 7])
def test_nodes_of_networkx_are_any_objects(node_of):
    networkx = pytest.importorskip("networkx")
    pairs_of_grid = networkx.grid_2d_graph(4, 3)
    names = {pair: node_of(pair) for pair in pairs_of_grid}
    grid = networkx.Graph([(names[a], names[b]) for a, b in pairs_of_grid.edges])
    found = ge.graph_consensus(grid, n_seeds=3)
    assert found.index.tolist() == found.ensemble.index.tolist() == list(grid)
    assert found.table[["first", "second"]].to_numpy().tolist() == [[list(grid)[i] for i in p] for p in found.edges]
    of_matrix = ge.graph_consensus(networkx.to_scipy_sparse_array(grid), n_seeds=3)
    np.testing.assert_array_equal(found.labels, of_matrix.labels)
    labels = found.ensemble.to_frame().iloc[::-1]  # objects are matched by these names
    again = ge.graph_consensus(grid, labels)
    assert again.index.tolist() == list(grid)[::-1]
    assert ge.metrics.ari(again.labels[::-1], found.labels) == 1.0


def test_nodes_of_networkx_that_are_large_numbers():
    networkx = pytest.importorskip("networkx")
    for ids in ([2**64 - 1, LARGE, LARGE + 1], [LARGE, -1, 2**53 + 1], [2**70, 1, 2]):
        found = as_edges(networkx.Graph([ids[:2], ids[1:]]))
        assert found.names.tolist() == (sorted(ids) if ids[0] == 2**64 - 1 else ids)
        assert {frozenset(pair) for pair in pairs(found)} == {frozenset(ids[:2]), frozenset(ids[1:])}


NAMES = {  # names of six nodes, in the order of the result
    "texts": np.array(["f", "a", "b", "e", "d", "c"])[[0, 1, 2, 4, 3, 5]],  # texts keep the order of their first lines
    "large": np.array([LARGE + 11 * i for i in range(6)], "u8"),
    "negative": np.arange(6) * 7 - 3,
    "far apart": np.arange(6) * 10**12,
}


@pytest.mark.parametrize("kind", NAMES)
def test_without_labels_the_names_of_the_graph_name_the_result(kind):
    ends = NAMES[kind][EDGES if kind != "texts" else [[0, 1], [1, 2], [2, 0], [3, 4], [3, 5], [4, 5], [2, 4]]]
    found = ge.graph_consensus(pd.DataFrame(ends))
    assert found.index.tolist() == found.ensemble.index.tolist() == NAMES[kind].tolist()
    edges = {frozenset(pair) for pair in found.table[["first", "second"]].to_numpy().tolist()}
    assert edges == {frozenset(pair) for pair in ends.tolist()}
    if kind == "texts":
        networkx = pytest.importorskip("networkx")
        assert ge.graph_consensus(networkx.Graph(ends.tolist())).index.tolist() == found.index.tolist()


def test_objects_without_an_edge_are_clusters():
    assert consensus(EDGES, np.vstack([LABELS, LABELS[:2]])).labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 3]


def test_labels_in_gpu_memory_get_their_consensus_there(fake_cupy):
    found = consensus(fake_cupy.asarray(EDGES), fake_cupy.asarray(LABELS))
    assert isinstance(found.labels, fake_cupy.ndarray)
    assert fake_cupy.asnumpy(found.labels).tolist() == [0, 0, 0, 1, 1, 1]
    assert isinstance(found.coassociation, np.ndarray)


@pytest.mark.parametrize(
    ("given", "kind", "mentioned"),
    [
        ({"graph": np.ones((4, 4))}, ValueError, ("sparse square matrix or a list of", "ndarray of shape (4, 4)")),
        ({"graph": [[0, 1], [2]]}, ValueError, ("a list of edges", "list")),
        ({"graph": "edges.txt"}, ValueError, ("a list of edges", "str")),
        ({"graph": None}, ValueError, ("a list of edges", "NoneType")),
        ({"graph": EDGES - 1}, ValueError, ("numbers of objects, 0, 1, 2",)),
        ({"graph": EDGES + 0.5}, ValueError, ("numbers of objects, 0, 1, 2",)),
        ({"graph": [[0, 10**14]]}, MemoryError, ("the largest number in the edges plus 1", "DataFrame")),
        ({"graph": [[0, 1, -1.0]]}, ValueError, ("weights of the edges must be finite and not below 0",)),
        ({"graph": [[0, 1, np.nan]]}, ValueError, ("weights of the edges must be finite and not below 0",)),
        ({"graph": [["a", "b", "heavy"]]}, TypeError, ("weights of the edges must be real numbers",)),
        ({"graph": pd.DataFrame([["a", "b", "heavy"]])}, TypeError, ("weights of the edges",)),
        ({"graph": pd.DataFrame([["a", None], ["a", "b"]])}, ValueError, ("edge 0 lacks the name of an object",)),
        ({"graph": pd.DataFrame(np.ones((3, 4)))}, ValueError, ("table of shape (3, 4)",)),
        ({"graph": csr_array((6, 5))}, ValueError, ("graph has shape (6, 5)",)),
        ({"graph": csr_array(np.triu(np.ones((6, 6))))}, ValueError, ("not symmetric", "graph.maximum(graph.T)")),
        ({"graph": csr_array((7, 7))}, ValueError, ("labels are of 6 objects and the graph has 7",)),
        ({"graph": [[0, 6]]}, ValueError, ("labels are of 6 objects, but the edges have an object 6",)),
        ({"threshold": 0.0}, ValueError, ("threshold must be above 0 and at most 1",)),
        ({"threshold": 1.1}, ValueError, ("threshold must be above 0 and at most 1",)),
        ({"final": "infomap"}, ValueError, ("final must be one of 'louvain', 'leiden', 'components'",)),
        ({"base": "last"}, ValueError, ("base must be one of 'auto', 'first-level', 'louvain', 'leiden'",)),
        ({"weights": [1.0, 2.0]}, ValueError, ("weights must be 3 numbers, one per clustering",)),
        ({"weights": [1.0, 2.0, 0.0]}, ValueError, ("weights must be positive and finite",)),
        ({"labels": None, "weights": [1, 2]}, ValueError, ("weights must be 1 numbers, one per resolution",)),
        ({"max_rounds": 0}, ValueError, ("max_rounds must not be 0",)),
        ({"max_rounds": -2}, ValueError, ("max_rounds",)),
        ({"resolutions": -1.0}, ValueError, ("resolutions must be above 0",)),
        ({"labels": np.zeros(6)}, ValueError, ("labels must be 2-D",)),
    ],
)
def test_what_is_refused(given, kind, mentioned):
    refused(lambda: ge.graph_consensus(**{"graph": EDGES, "labels": LABELS, **given}), kind, *mentioned)


def test_directed_graphs_are_refused():
    networkx = pytest.importorskip("networkx")
    refused(lambda: consensus(networkx.DiGraph(EDGES.tolist())), ValueError, "graph is directed", "to_undirected")
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph(n=6, edges=EDGES.tolist(), directed=True)
    refused(lambda: consensus(graph), ValueError, "graph is directed", "as_undirected")


def test_more_edges_than_memory_are_refused_before_work(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "500")
    refused(lambda: consensus(EDGES), MemoryError, "a graph of 7 edges needs 560 bytes")


def test_leiden_takes_networks():
    igraph = pytest.importorskip("igraph")
    networkx = pytest.importorskip("networkx")
    expected = ge.generate.leiden_ensemble(sparse(EDGES, 6), 1.0, 2).to_array()
    for graph in (igraph.Graph(n=6, edges=EDGES.tolist()), networkx.Graph(EDGES.tolist()), as_edges(EDGES)):
        np.testing.assert_array_equal(ge.generate.leiden_ensemble(graph, 1.0, 2).to_array(), expected)
    with_neighbors = partial(ge.generate.leiden_ensemble, as_edges(EDGES), n_neighbors=3)
    refused(with_neighbors, ValueError, "n_neighbors=3 is for features")


# --- files ------------------------------------------------------------------------------------------------------------

NAMED = "# friends\nann bob\nbob cem\n\ncem ann# an old one\nbob ann\ndan dan\ndan eve\n"


def read(tmp_path, text, name="edges.txt", **more):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return ge.io.read_edges(path, **more)


def pairs(edges):
    return [(edges.names[i], edges.names[j]) for i, j in zip(edges.first, edges.second, strict=True)]


@pytest.mark.parametrize("separator", [" ", "\t", ",", ";", "   ", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["edges.txt", "edges", "edges.csv", "e.edgelist.gz"])
def test_texts_of_edges(tmp_path, separator, end, name):
    found = read(tmp_path, NAMED.replace("\n", end).replace(" ", separator).replace("#" + separator, "# "), name)
    assert found.names.tolist() == ["ann", "bob", "cem", "dan", "eve"]
    assert pairs(found) == [("ann", "bob"), ("ann", "cem"), ("bob", "cem"), ("dan", "eve")]
    assert found.weights.tolist() == [1.0] * 4


def test_weights_numbers_and_headers_in_texts(tmp_path):
    found = read(tmp_path, "% pairs\n% more\n7 3 0.5\n3 20 2\n20 3 1e-3\n")
    assert (found.names.tolist(), pairs(found), found.weights.tolist()) == ([3, 7, 20], [(3, 7), (3, 20)], [0.5, 2.0])
    for header in ("source,target,weight\n", "# x\nfrom,to,w\n"):
        assert pairs(read(tmp_path, header + "7,3,0.5\n3,20,2\n")) == [(3, 7), (3, 20)]
        assert pairs(read(tmp_path, header + "g7,3,0.5\n3,g20,2\n")) == [("g7", "3"), ("3", "g20")]
    for text, header, expected in (
        ("source target\n1 2\n", None, [(1, 2)]),
        ("ann bob\n1 ann\n", None, [("ann", "bob"), ("ann", "1")]),
        ("ann bob\n", None, [("ann", "bob")]),
        ("ann bob\ncem ann\n", True, [("cem", "ann")]),
        ("ann bob\n1 2\n", False, [("ann", "bob"), ("1", "2")]),
        ("1 2\n3 4\n", True, [(3, 4)]),
    ):
        assert pairs(read(tmp_path, text, header=header)) == expected


@pytest.mark.parametrize("name", ["01", "1_0", "NA", "nan", "99999999999999999999", "é"])
def test_names_are_read_as_they_are_written(tmp_path, name):
    found = read(tmp_path, f"{name} 1\n1 2\n")
    assert found.names.tolist() == [name, "1", "2"]


@pytest.mark.parametrize(
    "ids",
    [
        (LARGE, LARGE + 1, LARGE + 5),
        (1, LARGE + 1, LARGE),
        (2**53 + 1, 2**53, 2**64 - 1),
        (2**64, 2, 1),
        (-1, LARGE, 5),
    ],
)
def test_names_in_texts_are_exact(tmp_path, ids):
    found = read(tmp_path, f"{ids[0]} {ids[1]}\n{ids[1]} {ids[2]}\n")
    assert {frozenset(map(int, pair)) for pair in pairs(found)} == {frozenset(ids[:2]), frozenset(ids[1:])}
    if min(ids) >= 0 and max(ids) < 2**64:
        assert found.names.tolist() == sorted(ids)
    else:  # not the same 64 bits hold all
        assert found.names.tolist() == list(map(str, ids))


def test_many_names_are_read_in_pieces(tmp_path, sizes):
    sizes("io.edges", LINES=3)
    rng = np.random.default_rng(0)
    ends = rng.integers(30, size=(100, 2))
    text = "".join(f"n{a} n{b} {w}\n" for (a, b), w in zip(ends, range(1, 101), strict=True))
    expected = as_edges(pd.DataFrame([(f"n{a}", f"n{b}", w) for (a, b), w in zip(ends, range(1, 101), strict=True)]))
    found = read(tmp_path, text)
    assert found.names.tolist() == expected.names.tolist()
    assert_equal_edges(found, expected)


def test_graphs_in_npz_and_h5ad_are_edges(tmp_path):
    save_npz(tmp_path / "graph.npz", sparse(EDGES, 7).tocsr())
    found = ge.io.read_edges(tmp_path / "graph.npz")
    assert (found.n_objects, len(found), found.names) == (7, 7, None)
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(np.zeros((7, 1)), obsp={"connectivities": sparse(EDGES, 7)})
    cells.obs_names = list("gfedcba")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    found = ge.io.read_edges(tmp_path / "cells.h5ad")
    assert pairs(found)[0] == ("g", "f")


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("", ("is empty",)),
        ("# nothing\n\n", ("has no edges",)),
        ("a\nb\n", ("has 1 field(s) in its first line",)),
        ("a b c d\n", ("has 4 field(s) in its first line",)),
        ("a b c\n", ("names of columns, and no edge is below",)),
        ("a b\na b 1\n", ("lines that are no edges", "line 2", "without a weight")),
        ("1 2\n3\n", ("lines that are no edges", "lacks an object")),
        ("a b 1\na c\n", ("weights of the edges must be finite",)),
        ("a b 1\na c heavy\n", ("lines that are no edges", "heavy", "a weight from 0 on")),
        ("1 2 -1\n", ("weights of the edges must be finite",)),
        (b"a b\n\xff c\n", ("lines that are no edges",)),
    ],
)
def test_texts_that_are_no_edges_are_refused(tmp_path, text, mentioned):
    refused(lambda: read(tmp_path, text), ValueError, *mentioned)


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "edges.npy", EDGES)
    refused(lambda: ge.io.read_edges(tmp_path / "edges.npy"), ValueError, "must be a text with an edge in each line")
    np.savez(tmp_path / "edges.npz", EDGES)
    refused(lambda: ge.io.read_edges(tmp_path / "edges.npz"), ValueError, "holds no sparse matrix", "save_npz")
    refused(lambda: ge.io.read_edges(tmp_path / "no.txt"), FileNotFoundError, "does not exist")
    refused(lambda: ge.io.read_edges(tmp_path), IsADirectoryError, "is a directory")
    refused(lambda: read(tmp_path, "a b\n", header="yes"), TypeError, "header must be True")


def test_edges_beyond_the_memory_budget_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "1000")
    refused(lambda: read(tmp_path, "1 2\n" * 20), MemoryError, "the edges of", "needs 2.6 kB")


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring.txt").write_text("".join(f"n{a} n{b}\n" for a, b in ring(20, 5)))
    labels = pd.DataFrame({f"m{m}": np.roll(np.repeat(np.arange(20), 5), 0) // (1 + m % 2) for m in range(4)})
    labels.set_axis([f"n{i}" for i in range(100)]).sample(frac=1, random_state=0).to_csv(tmp_path / "labels.csv")
    return tmp_path


def run(line):
    return cli.main(line.split())


def test_the_command_clusters_a_list_of_edges(folder, capsys):
    assert run("graph ring.txt --resolutions 1,5 --weights 1,2 --n-seeds 10 --max-rounds -1 -o out.csv") == 0
    said = capsys.readouterr().out
    assert "ring.txt: 100 objects, 220 edges" in said
    assert "first-level: 20 clusterings with 400 clusters; agreement 1.00" in said
    assert "consensus: 20 clusters, of " in said
    assert " objects; 200 edges kept" in said
    found = pd.read_csv("out.csv", index_col=0)["label"]
    clique = found.index.str[1:].astype(int) // 5
    assert sorted(found.index) == sorted(f"n{i}" for i in range(100))
    assert ge.metrics.ari(clique, found) == 1.0
    record = json.loads((folder / "out.csv.json").read_text())
    assert (record["n_edges"], record["n_kept"], record["n_clusters"]) == (220, 200, 20)
    assert sum(record["cluster_sizes"]) == 100
    assert record["parameters"]["resolutions"] == [1.0, 5.0]
    assert (record["parameters"]["weights"], record["agreement"]) == ([1.0, 2.0], 1.0)


def test_the_command_takes_labels_of_the_same_objects_in_any_order(folder, capsys):
    assert run("graph ring.txt --labels labels.csv --threshold 1 --final components -o out.csv") == 0
    assert "labels.csv: 4 clusterings with 60 clusters" in capsys.readouterr().out
    found = pd.read_csv("out.csv", index_col=0)["label"]
    assert found.index.tolist() == pd.read_csv("labels.csv", index_col=0).index.tolist()
    assert ge.metrics.ari(found.index.str[1:].astype(int) // 5, found) == 1.0
    assert run("graph ring.txt --labels labels.csv --columns m1,m3 --final components -o two.csv") == 0
    assert pd.read_csv("two.csv")["label"].nunique() == 10


@pytest.mark.parametrize(
    ("line", "code", "mentioned"),
    [
        ("graph no.txt -o out.csv", 3, "does not exist"),
        ("graph ring.txt --labels no.csv -o out.csv", 3, "does not exist"),
        ("graph ring.txt -o ring.txt", 2, "no known ending"),
        ("graph ring.txt --threshold 2 -o out.csv", 3, "threshold must be above 0"),
        ("graph ring.txt --threshold high -o out.csv", 2, "--threshold must be a number"),
        ("graph ring.txt --columns m1 -o out.csv", 2, "--columns is for the file of --labels"),
        ("graph ring.txt --wide -o out.csv", 2, "--wide is for the file of --labels"),
    ],
)
def test_what_the_command_refuses(folder, capsys, line, code, mentioned):
    assert cli.main(line.split()) == code
    said = capsys.readouterr().err.splitlines()[-1]
    assert mentioned in said
    assert not (folder / "out.csv").exists()


def test_a_large_ring_is_walked_in_linear_memory():
    n = 100_000
    edges = np.array(list(pairwise(range(n))))
    labels = np.repeat(np.arange(n // 10), 10).reshape(-1, 1)
    found = consensus(edges, labels)
    assert found.n_clusters == n // 10
