"""Average linkage of neighbours: merges of adjacent regions, and EAC and LWEA with a graph."""

import numpy as np
import pytest
from conftest import structured_labels
from oracles import contiguous_average_linkage

import gpuens as ge
from gpuens.labels.edges import Edges
from gpuens.labels.graph import Graph
from gpuens.labels.rows import Rows
from gpuens.partition.linkage.contiguous import contiguous_groups, contiguous_merges, sums_of
from gpuens.runtime.native import cpu

HUB = 64  # neighbours; a region with more of them is a hub


def graph_of(pairs, n):
    """Return the graph of the given pairs of objects; loops are left out."""
    once = sorted({(min(i, j), max(i, j)) for i, j in pairs if i != j})
    first, second = np.array(once, dtype=np.int64).reshape(-1, 2).T
    return Graph.of_edges(Edges(first, second, np.ones(len(once)), n))


def drawn_pairs(kind, n, rng):
    """Draw the edges of a graph of n objects."""
    if kind == "line":
        return [(i, i + 1) for i in range(n - 1)]
    if kind == "clique":
        return [(i, j) for i in range(n) for j in range(i)]
    if kind == "star":
        center = int(rng.integers(n))
        return [(center, i) for i in range(n)]
    pairs = rng.integers(n, size=(int(rng.integers(0, 2 * n)), 2)).tolist()
    if kind == "hubs":
        pairs += [(int(hub), i) for hub in rng.integers(n, size=3) for i in range(n)]
    return pairs


def sparse_rows(table):
    """Return the entries of a table (G, N_c) of whole numbers that are not 0."""
    starts = np.concatenate([[0], np.cumsum((table != 0).sum(axis=1))])
    return cpu.SparseRows(starts, np.nonzero(table)[1].astype(np.int32), table[table != 0])


def drawn_table(rng, n, counts):
    """Draw sums of rows (n, N_c): of labels, of shares, or of few distinct rows of either."""
    n_clusterings, k = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    table = np.zeros((n, n_clusterings * k), dtype=np.int64)
    if rng.random() < 0.3:
        table = rng.integers(0, 9, table.shape) * (rng.random(table.shape) < 0.5)
    else:
        for m in range(n_clusterings):
            table[np.arange(n), m * k + rng.integers(k, size=n)] += 1
    return (table if rng.random() < 0.6 else table[rng.integers(3, size=n) % n]) * counts[:, None]


def merges_of(graph, counts, table, weights, n_clusters=1):
    found = contiguous_merges(graph.starts, graph.heads, counts, sparse_rows(table), weights, n_clusters)
    return list(zip(*(part.tolist() for part in found), strict=True))


@pytest.mark.parametrize("kind", ["line", "star", "clique", "random", "hubs"])
@pytest.mark.parametrize("weighted", [False, True])
def test_merges_equal_those_of_the_dense_matrix(kind, weighted):
    rng = np.random.default_rng(len(kind))
    for n in [1, 2, *rng.integers(3, 20, 12), HUB + 6]:
        graph = graph_of(drawn_pairs(kind, n, rng), n)
        counts = rng.integers(1, 4, n)
        table = drawn_table(rng, n, counts)
        eighths = rng.integers(0, 9, table.shape[1]) if weighted else np.full(table.shape[1], 8)
        edges = zip(graph.tails.tolist(), graph.heads.tolist(), strict=True)
        merges = contiguous_average_linkage((table * eighths) @ table.T, counts, edges)
        expected = [(a, b, 0.125 * similarity) for a, b, similarity in merges]
        assert merges_of(graph, counts, table, eighths / 8) == expected
        assert merges_of(graph, counts, table, eighths / 8, (n + 1) // 2) == expected[: n - (n + 1) // 2]


@pytest.mark.parametrize("rows", ["equal", "apart", "drawn"])
@pytest.mark.parametrize("kind", ["star", "line", "clique"])
def test_unions_of_many_neighbours_are_not_scored_again_at_each_merge(kind, rows):
    """With a score of every neighbour at every merge, stars and lines of this size take minutes."""
    n = {"star": 3000 if rows == "drawn" else 100_000, "line": 100_000, "clique": 300}[kind]
    if kind == "clique":
        first, second = np.triu_indices(n, 1)
    else:
        first, second = (np.zeros(n - 1, np.int64) if kind == "star" else np.arange(n - 1)), np.arange(1, n)
    graph = Graph.of_edges(Edges(first, second, np.ones(len(first)), n))
    labels = {
        "apart": lambda: np.arange(n)[:, None],
        "equal": lambda: (np.arange(n) > 0)[:, None] * np.ones((1, 3), np.int64),
        "drawn": lambda: np.random.default_rng(0).integers(9, size=(n, 5)) + 9 * np.arange(5),
    }[rows]()
    starts, clusters = np.arange(n + 1) * labels.shape[1], labels.ravel().astype(np.int32)
    entries, weights = cpu.SparseRows(starts, clusters, np.ones(labels.size, np.int32)), np.ones(labels.max() + 1)
    _, absorbed, _ = contiguous_merges(graph.starts, graph.heads, np.ones(n, np.int64), entries, weights)
    assert len(set(absorbed.tolist())) == n - 1


def test_sums_beyond_int64_and_far_apart_weights():
    """Both are added up in float64; objects 0 and 1 are the most similar pair, then 2 joins, then 3."""
    graph = Graph.grid((1, 4))
    table = np.array([[30_000, 0], [30_000, 0], [20_000, 10_000], [0, 30_000]])
    counts = np.full(4, 2**31)
    found = merges_of(graph, counts, table * counts[:, None], np.ones(2))
    assert [merge[:2] for merge in found] == [(0, 1), (0, 2), (0, 3)]
    np.testing.assert_allclose([merge[2] for merge in found], [9e8, 6e8, 1e8])
    found = merges_of(graph, np.ones(4, np.int64), table, np.array([1e-200, 1e-300]))
    assert [merge[:2] for merge in found] == [(0, 1), (0, 2), (0, 3)]


def test_components_are_linked_as_if_alone():
    rng = np.random.default_rng(5)
    table, weights, counts = rng.integers(0, 99, (160, 6)), rng.random(6), rng.integers(1, 4, 160)
    pairs = [drawn_pairs("hubs", 80, rng), drawn_pairs("line", 80, rng)]
    whole = graph_of(pairs[0] + [(80 + i, 80 + j) for i, j in pairs[1]], 160)
    alone = []
    for part, start in enumerate((0, 80)):
        merges = merges_of(graph_of(pairs[part], 80), counts[start:][:80], table[start:][:80], weights)
        alone += [(start + a, start + b, similarity) for a, b, similarity in merges]
    assert sorted(merges_of(whole, counts, table, weights)) == sorted(alone)


def test_threads_do_not_change_bits(monkeypatch):
    labels, graph, results = np.random.default_rng(3).integers(4, size=(40_000, 6)), Graph.grid((200, 200)), []
    for threads in ("1", "2"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        est = ge.LWEA(9).fit(labels, graph=graph)
        results.append([est.labels_, est.dendrogram_.kept, est.dendrogram_.raw_similarities])
    for array, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(array, expected)


# --- EAC and LWEA -----------------------------------------------------------------------------------------------------


def blocks(side=12, seed=0, n_clusterings=7, noise=0.35):
    """Return labels of a square map of four blocks, whose clusterings have noise, and its graph."""
    rng = np.random.default_rng(seed)
    y, x = np.divmod(np.arange(side * side), side)
    truth = 2 * (2 * y // side) + 2 * x // side
    labels = np.tile(truth[:, None], n_clusterings)
    is_noise = rng.random(labels.shape) < noise
    labels[is_noise] = rng.integers(4, size=is_noise.sum())
    return labels, Graph.grid((side, side)), truth


def weights_without_ties(n_clusterings, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, n_clusterings)


def test_clusters_are_connected_and_distances_never_fall():
    labels, graph, truth = blocks()
    est = ge.EAC(4).fit(labels, graph=graph)
    assert ge.metrics.ari(est.labels_, truth) > 0.9
    assert (np.diff(est.distances_) >= 0).all()
    assert (np.diff(est.dendrogram_.raw_similarities) > 0).any()
    for k in (1, 2, 4, 9, 30):
        cut = est.cut(k)
        assert len(np.unique(cut)) == k
        assert all(graph.subgraph(np.flatnonzero(cut == c)).n_components == 1 for c in range(k))
        np.testing.assert_array_equal(cut, ge.EAC(k).fit_predict(labels, graph=graph))
    by_distance = ge.EAC(distance_threshold=0.8).fit(labels, graph=graph)
    np.testing.assert_array_equal(by_distance.labels_, est.cut(1 + int((est.distances_ >= 0.8).sum())))


def test_a_complete_graph_gives_average_linkage():
    labels, _ = structured_labels(60, 6, 3, noise=0.3, seed=1)
    graph = graph_of(drawn_pairs("clique", 60, None), 60)
    weights = weights_without_ties(6)
    for k in (2, 5):
        est, plain = ge.LWEA(k, weights=weights).fit(labels, graph=graph), ge.LWEA(k, weights=weights).fit(labels)
        np.testing.assert_array_equal(est.labels_, plain.labels_)
        np.testing.assert_allclose(est.distances_, plain.distances_, atol=1e-12)
    np.testing.assert_array_equal(
        est.predict(labels[:9]), plain.fit_.rule(Rows(plain.reduction_.ensemble.encoded(labels[:9])))
    )


def test_order_of_objects_does_not_matter():
    labels, graph, _ = blocks(seed=2)
    est = ge.LWEA(6, weights=weights_without_ties(7)).fit(labels, graph=graph)
    order = np.random.default_rng(1).permutation(len(labels))
    permuted = ge.LWEA(6, weights=weights_without_ties(7)).fit(labels[order], graph=graph.subgraph(order))
    assert ge.metrics.ari(permuted.labels_, est.labels_[order]) == 1.0
    np.testing.assert_allclose(permuted.distances_, est.distances_, atol=1e-12)


def test_components_are_never_joined():
    labels, graph, _ = blocks()
    left = np.arange(len(labels)) % 12 < 5
    edges = graph.as_edges()
    inside = left[edges.first] == left[edges.second]
    split = Graph.of_edges(Edges(edges.first[inside], edges.second[inside], edges.weights[inside], len(labels)))
    est = ge.EAC(2).fit(labels, graph=split)
    np.testing.assert_array_equal(est.labels_, np.where(left, 1, 0))
    assert est.distances_[-1] == 1.0
    for refused in (lambda: ge.EAC(1).fit(labels, graph=split), lambda: est.cut(1)):
        with pytest.raises(ValueError, match="graph has 2 components"):
            refused()
    assert ge.EAC(distance_threshold=2.0).fit(labels, graph=split).n_clusters_ == 2
    assert ge.EAC().fit(labels, graph=graph_of([], len(labels))).n_clusters_ == len(labels)


def test_equal_rows_apart_may_get_different_labels(tmp_path):
    """The ends of the line have equal rows, but the cut is between them and the rest, which parts them."""
    labels = [[0, 0, 1, 1, 0, 0], [0, 0, 1, 2, 0, 0], [0, 0, 1, 1, 0, 1]]
    graph = Graph.grid((1, 6))
    groups = contiguous_groups(Rows(labels), graph)
    assert groups.row_of.tolist() == [0, 0, 3, 4, 1, 2]
    assert groups.counts.tolist() == [2, 1, 1, 1, 1]
    assert groups.rows.neighbors.tolist() == [3, 2, 4, 1, 0, 4, 1, 3]
    assert sums_of(groups.rows).values.tolist() == [2, 2, 2, *[1] * 12]
    est = ge.EAC(3).fit(labels, graph=graph)
    assert est.labels_.tolist() == [0, 0, 1, 1, 2, 2]
    assert est.evidence().clusters.sizes.tolist() == [2, 2, 2]
    assert len(est.confidence_) == 6
    assert est.children_.shape == (5, 2)
    new = np.array(labels).T[[0, 2, 5]]
    assert est.predict(new).tolist() == [0, 1, 2]
    est.save(tmp_path / "model.npz")
    model = ge.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(model.predict(new), est.predict(new))
    with pytest.raises(TypeError, match="with a graph"):
        model.evidence(new)
    with pytest.raises(AttributeError, match="those of a graph"):
        est.cophenetic_correlation()


def test_missing_labels_are_apart():
    labels = [[0, 0, None, 1], [0, None, 1, 1]]
    est = ge.EAC(1).fit(labels, graph=Graph.grid((1, 4)))
    assert est.dendrogram_.raw_similarities.tolist() == [0.5, 0.5, 0.0]


def test_number_of_clusters_is_chosen_as_without_a_graph():
    labels, graph, _ = blocks(side=16, noise=0.2)
    est = ge.EAC().fit(labels, graph=graph)
    assert est.n_clusters_ == est.suggestion_.n_clusters == 4


@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (ge.KCC(2), {}),
        (ge.EAC(2, linkage="single"), {}),
        (ge.LWEA(2, linkage="complete"), {}),
        (ge.EAC(2, missing="ignore"), {}),
        (ge.EAC(2, min_size=3), {}),
        (ge.EAC(2, reduction="sample:50"), {}),
        (ge.EAC(2), {"sample_weight": np.ones(144)}),
        (ge.SCEC(2), {}),
        (ge.Consensus(2, similarity="coupled"), {}),
    ],
)
def test_fits_that_take_no_graph_name_those_that_do(estimator, given):
    labels, graph, _ = blocks()
    labels = [np.eye(4)[labels[:, 0]]] if isinstance(estimator, ge.SCEC) else labels
    sentence = r"graph was given, but .*; EAC, LWEA and WEAC with average linkage take a graph"
    with pytest.raises(TypeError, match=sentence):
        estimator.fit(labels, graph=graph, **given)


def test_a_giant_among_few_others_causes_a_warning():
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(400) % 4, (5, 1)).T
    is_noise = rng.random(labels.shape) < 0.8
    labels[is_noise] = rng.integers(4, size=is_noise.sum())
    graph = graph_of(rng.integers(400, size=(1200, 2)).tolist() + [(i, i + 1) for i in range(399)], 400)
    with pytest.warns(UserWarning, match="ask for more clusters, or fit without graph"):
        ge.EAC(4).fit(labels, graph=graph)
