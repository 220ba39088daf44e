"""Domains of objects with neighbours: the walk, rows of shares, regions and Spatial, compared with dense oracles."""

import numpy as np
import pandas as pd
import pytest
from conftest import random_labels
from maps import noisy_map, random_graph
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.contingency.clusters import dense_intersections
from gpuens.labels.rows import Rows
from gpuens.neighbors import domains, regions
from gpuens.neighbors.regions import regions_of, rows_of_regions
from gpuens.neighbors.shares import ShareRows
from gpuens.neighbors.walk import ONE, walk
from gpuens.runtime import device as devices


def dense(shares):
    shape = (len(shares.starts) - 1, shares.n_columns)
    return csr_array((shares.values / ONE, shares.columns, shares.starts), shape=shape).toarray()


def literal_walk(labels, graph, steps):
    """Return Pᵗ H by products of dense matrices; a missing label, -1, is filled in by Pᵗ H / Pᵗ 1."""
    matrix = graph.matrix().toarray() + np.eye(len(labels))
    moved = np.linalg.matrix_power(matrix / matrix.sum(axis=1, keepdims=True), steps)
    parts = []
    for column in labels.T:
        one_hot = (column[:, None] == np.arange(column.max() + 1)).astype(float)
        labelled = moved @ (column >= 0)
        parts.append(moved @ one_hot / np.where(labelled > 0, labelled, 1)[:, None])
    return np.hstack(parts)


# --- the walk ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_shares_are_products_with_the_matrix_of_the_walk(steps, missing, weighted, where):
    rng, graph = np.random.default_rng(0), random_graph(150, 300, weighted=weighted)
    labels = rng.integers(0, 20, size=(150, 7))  # 140 clusters: three groups of columns
    labels[:20] = np.arange(20)[:, None]
    labels[(rng.random(labels.shape) < missing) & (np.arange(150) >= 20)[:, None]] = -1
    labels[labels.max(axis=1) < 0, 0] = 0
    found = dense(walk(Rows(ge.Ensemble(labels), device=where), graph, steps))
    # each step rounds to whole units, and a share that is filled in is a ratio of two of them
    np.testing.assert_allclose(
        found, literal_walk(labels, graph, steps), atol=(steps + 1) * (30 if missing else 1) / ONE
    )


def test_disconnected_parts_walk_alone():
    labels = random_labels(60, 4, 3, seed=1)
    one, other = random_graph(30, 60, seed=2), random_graph(30, 60, seed=3)
    edges = [np.column_stack([g.as_edges().first, g.as_edges().second, g.as_edges().weights]) for g in (one, other)]
    edges[1][:, :2] += 30
    rows = Rows(labels)
    together = dense(walk(rows, random_weights(edges, 60)))
    for graph, objects in ((edges[0], slice(0, 30)), (edges[1] - [30, 30, 0], slice(30, 60))):
        np.testing.assert_array_equal(together[objects], dense(walk(rows.take(objects), random_weights([graph], 30))))


def random_weights(edges, n):
    """Return the graph of edges with weights of 1, which do not depend on other parts."""
    pairs = np.concatenate(edges)[:, :2].astype(int)
    return ge.Graph.of(pairs, n)


@pytest.mark.parametrize("many", [100, 10**6])
def test_threads_do_not_matter(monkeypatch, many):
    monkeypatch.setattr(regions, "MANY", many)
    rows, graph = Rows(random_labels(5000, 5, 6, seed=4)), ge.Graph.grid((50, 100))
    results = []
    for n in (1, 2):
        with ge.threads(n):
            shares = walk(rows, graph)
            results.append([*shares[:3], regions_of(shares, graph, 300)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_too_much_memory_is_refused_before_the_walk(monkeypatch):
    rows, graph = Rows(random_labels(100_000, 2, 3)), ge.Graph.grid((100, 1000))
    monkeypatch.setenv("GPUENS_MEMORY", "10MB")
    with pytest.raises(MemoryError, match="labels around 100,000 objects"):
        walk(rows, graph)


# --- rows of shares ---------------------------------------------------------------------------------------------------


def shares_of_a_map(seed=0):
    labels, _, _ = noisy_map((12, 15), 3, "pixels", seed=seed)
    rows = Rows(labels)
    return ShareRows.of_objects(walk(rows, ge.Graph.grid((12, 15))), rows.offsets), rows


def test_products_with_shares_are_those_of_the_dense_matrix():
    shares, _ = shares_of_a_map()
    matrix, rng = shares.shares.toarray(), np.random.default_rng(1)
    table, weights, labels = (
        rng.random((matrix.shape[1], 4)),
        rng.random(len(matrix)),
        rng.integers(3, size=len(matrix)),
    )
    np.testing.assert_allclose(shares.row_lookups(table), matrix @ table)
    np.testing.assert_allclose(shares.row_sums(table[:, 0]), matrix @ table[:, 0])
    np.testing.assert_allclose(shares.cluster_sums(weights), matrix.T @ weights)
    np.testing.assert_allclose(dense_intersections(shares, weights), matrix.T @ (matrix * weights[:, None]))
    np.testing.assert_array_equal(shares.label_histograms(labels, 3), matrix.T @ np.eye(3)[labels])
    np.testing.assert_array_equal(shares.shares_at(np.array([[7], [0]])), matrix[[7, 0]].T)
    np.testing.assert_allclose(shares.cluster_sizes(), matrix.sum(axis=0))
    hardened = devices.to_host(shares.hardened().codes)
    parts = np.split(matrix, shares.offsets[1:-1], axis=1)
    np.testing.assert_array_equal(hardened, np.column_stack([part.argmax(axis=1) for part in parts]))


@pytest.mark.parametrize("method", ["lwgp", "qmi", "kcc", "sec", "cgc", "hbgf", "scec"])
def test_shares_of_0_and_1_are_labels(method):
    """Rows of shares of a walk of 0 steps are partitioned like the rows of their labels."""
    rows = Rows(np.column_stack([np.arange(60) // 20] * 3 + [np.arange(60) // 15]))
    shares = ShareRows.of_objects(walk(rows, ge.Graph.grid((60,)), steps=0), rows.offsets)
    parts = ge.methods()[method](3).checked_parts()
    similarity = None if parts.similarity is None else parts.similarity(rows, None)
    found = parts.partitioner(similarity, shares, 3)
    assert ari(found.labels, parts.partitioner(similarity, rows, 3).labels) == 1


# --- regions ----------------------------------------------------------------------------------------------------------


def literal_linkage(shares, graph, n_regions):
    """Merge the adjacent pair with the largest mean product, over and over."""
    groups, adjacent = [[i] for i in range(len(shares))], graph.matrix().toarray() > 0
    while len(groups) > n_regions:
        best = None
        for j, b in enumerate(groups):
            for i, a in enumerate(groups[:j]):
                similarity = shares[a].mean(axis=0) @ shares[b].mean(axis=0)
                if adjacent[np.ix_(a, b)].any() and (best is None or similarity > best[0]):
                    best = similarity, i, j
        if best is None:
            break
        groups[best[1]] += groups.pop(best[2])
    labels = np.empty(len(shares), dtype=int)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def test_regions_are_those_of_the_linkage_of_neighbours():
    labels, graph = random_labels(60, 6, 4, seed=5), random_graph(60, 90, seed=6)
    shares = walk(Rows(labels), graph)
    found = regions_of(shares, graph, 12)
    assert ari(found, literal_linkage(dense(shares), graph, 12)) == 1


@pytest.mark.parametrize("shape", ["grid", "star"])
def test_regions_of_many_objects_are_connected_and_of_the_number(monkeypatch, shape):
    monkeypatch.setattr(regions, "MANY", 100)
    n = 900
    graph = ge.Graph.grid((30, 30)) if shape == "grid" else ge.Graph.of([[0, i] for i in range(1, n)], n)
    labels, _, _ = noisy_map((30, 30), 4, "pixels")
    found = regions_of(walk(Rows(labels), graph), graph, 40)
    assert len(np.unique(found)) == 40
    for region in range(40):
        assert graph.subgraph(found == region).n_components == 1


def test_rows_of_regions_are_means():
    labels, graph = random_labels(60, 6, 4, seed=7), random_graph(60, 90, seed=8)
    rows = Rows(labels)
    shares, of = walk(rows, graph), np.arange(60) % 7
    found = rows_of_regions(shares, of, rows.offsets)
    means = np.array([dense(shares)[of == region].mean(axis=0) for region in range(7)])
    np.testing.assert_allclose(found.shares.toarray(), means, atol=0.51 / ONE)
    np.testing.assert_array_equal(found.counts, np.bincount(of))


# --- Spatial ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["pixels", "patches"])
def test_maps_are_restored(noise):
    labels, truth, _ = noisy_map((60, 60), 5, noise)
    est = ge.Spatial(5).fit(labels, graph=ge.Graph.grid((60, 60)))
    assert ari(est.labels_, truth) >= 0.97
    for others in (est.smoothed_labels_, ge.consensus(labels, 5), ge.consensus(labels, 5, method="qmi")):
        assert ari(others, truth) < ari(est.labels_, truth)
    np.testing.assert_allclose(est.membership_.sum(axis=1), 1)
    np.testing.assert_array_equal(est.membership_.argmax(axis=1), est.labels_)
    assert np.diff(np.bincount(est.labels_)).max() <= 0  # cluster 0 is the largest
    assert est.potts_ > 1
    assert 1 <= est.effective_members_ <= 10
    assert est.evidence().labels.tolist() == est.labels_.tolist()
    assert len(est.confidence_) == len(labels)


@pytest.mark.parametrize("given", [{}, {"graph": csr_array((50, 50))}])
@pytest.mark.parametrize("method", ["qmi", "lwgp"])
def test_without_edges_the_labels_are_those_of_the_method(given, method):
    labels = random_labels(50, 5, 3, seed=9)
    est = ge.Spatial(3, method=method).fit(labels, **given)
    np.testing.assert_array_equal(est.labels_, ge.consensus(labels, 3, method=method))
    alone = ge.Spatial(3, method=method, steps=0, regions=None, refine=False)
    np.testing.assert_array_equal(alone.fit(labels, graph=random_graph(50, 90)).labels_, est.labels_)


def test_renamed_labels_change_nothing_and_a_permuted_graph_goes_with_its_objects():
    labels, truth, _ = noisy_map((40, 40), 4, "pixels", seed=2)
    graph, order = ge.Graph.grid((40, 40)), np.random.default_rng(3).permutation(1600)
    est = ge.Spatial(4).fit(labels, graph=graph)
    again = ge.Spatial(4).fit(np.array(["b", "c", "a", "e", "d", "f"])[labels], graph=graph)
    assert ari(est.labels_, again.labels_) > 0.99
    moved = ge.Spatial(4).fit(labels[order], graph=graph.subgraph(order))
    assert ari(moved.labels_, truth[order]) > 0.97


def test_names_match_labels_graph_and_coordinates():
    labels, _, _ = noisy_map((20, 20), 3, "pixels")
    names, places = [f"cell {i}" for i in range(400)], np.indices((20, 20)).reshape(2, -1).T
    order, table = np.random.default_rng(4).permutation(400), pd.DataFrame(labels, index=names)
    by_place = ge.Spatial(3).fit(table, coordinates=pd.DataFrame(places, index=names).iloc[order])
    np.testing.assert_array_equal(by_place.labels_, ge.Spatial(3).fit(labels, coordinates=places).labels_)
    grid = ge.Graph.grid((20, 20))
    edges = pd.DataFrame(np.array(names)[np.column_stack([grid.as_edges().first, grid.as_edges().second])])
    by_edge = ge.Spatial(3).fit(table, graph=edges)
    np.testing.assert_array_equal(by_edge.labels_, ge.Spatial(3).fit(labels, graph=grid).labels_)


def test_no_edge_joins_two_groups():
    labels, _, _ = noisy_map((20, 20), 3, "pixels")
    places, slides = np.indices((20, 20)).reshape(2, -1).T, np.repeat(["a", "b"], 200)
    est = ge.Spatial(3).fit(labels, coordinates=places, groups=slides)
    assert est.graph_.n_components == 2


def test_missing_labels_are_filled_by_neighbours():
    labels, truth, _ = noisy_map((40, 40), 4, "pixels")
    sparse = labels.astype(float)
    sparse[np.random.default_rng(5).random(labels.shape) < 0.6] = np.nan
    kept = ~np.isnan(sparse).all(axis=1)
    graph = ge.Graph.grid((40, 40)).subgraph(kept)
    assert ari(ge.Spatial(4).fit(sparse[kept], graph=graph).labels_, truth[kept]) > 0.95


def test_the_number_of_domains_may_be_left_open():
    labels, truth, _ = noisy_map((50, 50), 4, "pixels")
    est = ge.Spatial().fit(labels, graph=ge.Graph.grid((50, 50)))
    assert est.suggestion_.n_clusters == est.n_clusters_
    assert ari(est.labels_, truth) > 0.9


def test_new_objects_get_the_likeliest_class_of_their_labels():
    labels, truth, _ = noisy_map((40, 40), 4, "pixels")
    est = ge.Spatial(4).fit(labels, graph=ge.Graph.grid((40, 40)))
    assert ari(est.predict(labels), truth) > 0.9


def test_each_device_gives_the_same_bits(where):
    labels, _, _ = noisy_map((24, 24), 3, "pixels")
    est = ge.Spatial(3, device=where).fit(labels, graph=ge.Graph.grid((24, 24)))
    again = ge.Spatial(3, device="cpu").fit(labels, graph=ge.Graph.grid((24, 24)))
    np.testing.assert_array_equal(devices.to_host(est.labels_), again.labels_)
    np.testing.assert_array_equal(devices.to_host(est.membership_), again.membership_)


@pytest.mark.parametrize(
    ("parameters", "given", "sentence"),
    [
        ({"method": "mcla"}, {}, "method 'mcla' cannot read shares of the labels around objects; take one of"),
        ({"method": "lwgpp"}, {}, "method must be one of|method 'lwgpp'"),
        ({"method": 3}, {}, "method must be a name"),
        ({"steps": -1}, {}, "steps must be"),
        ({"regions": 0}, {}, "regions must be"),
        ({"refine": 1}, {}, "refine must be True or False"),
        ({}, {"coordinates": np.zeros((50, 2)), "graph": [[0, 1]]}, "graph and coordinates were given"),
        ({}, {"groups": np.zeros(50)}, "groups were given without coordinates"),
        ({}, {"coordinates": np.zeros((49, 2))}, "coordinates are of 49 objects"),
        ({}, {"features": np.zeros((50, 2)), "graph": [[0, 1]]}, "features were given"),
        ({}, {"sample_weight": np.ones(50), "graph": [[0, 1]]}, "sample_weight were given"),
        ({"n_clusters": 40, "regions": 8}, {"graph": ge.Graph.grid((5, 10))}, "n_clusters=40"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(parameters, given, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        ge.Spatial(**{"n_clusters": 3, **parameters}).fit(random_labels(50, 5, 3), **given)


def test_consensus_takes_neighbours():
    labels, _, _ = noisy_map((40, 40), 4, "pixels")
    graph = ge.Graph.grid((40, 40))
    np.testing.assert_array_equal(ge.consensus(labels, 4, graph=graph), ge.Spatial(4).fit(labels, graph=graph).labels_)
    by_lwgp = ge.consensus(labels, 4, graph=graph, method="lwgp", theta=0.3, steps=2)
    expected = ge.Spatial(4, method=ge.LWGP(theta=0.3), steps=2).fit(labels, graph=graph).labels_
    np.testing.assert_array_equal(by_lwgp, expected)
    connected = ge.consensus(labels, 40, graph=graph, method="eac")
    np.testing.assert_array_equal(connected, ge.EAC(40).fit(labels, graph=graph).labels_)


@pytest.mark.parametrize("kept", [0, 2**29])
@pytest.mark.parametrize("method", ["qmi", "lwgp"])
def test_many_objects_without_regions_go_by_a_sample(monkeypatch, kept, method):
    labels, truth, _ = noisy_map((50, 50), 4, "pixels")
    graph = ge.Graph.grid((50, 50))
    whole = ge.Spatial(4, method=method, regions=None, refine=False).fit(labels, graph=graph)
    monkeypatch.setattr(domains, "SAMPLE", 800)
    monkeypatch.setattr(domains, "KEPT_BYTES", kept)
    est = ge.Spatial(4, method=method, regions=None, refine=False).fit(labels, graph=graph)
    assert ari(est.labels_, whole.labels_) > 0.9
    assert ari(est.labels_, truth) > 0.8


def test_labels_in_chunks_need_no_regions():
    array = pytest.importorskip("dask.array")
    labels, _, _ = noisy_map((40, 40), 4, "pixels")
    chunks, graph = array.from_array(labels, chunks=(500, -1)), ge.Graph.grid((40, 40))
    est = ge.Spatial(4, regions=None).fit(chunks, graph=graph)
    np.testing.assert_array_equal(est.labels_, ge.Spatial(4, regions=None).fit(labels, graph=graph).labels_)
    with pytest.raises(TypeError, match="pass regions=None"):
        ge.Spatial(4).fit(chunks, graph=graph)
    with pytest.raises(TypeError, match="chunks"):
        ge.EAC(4).fit(chunks, graph=graph)


def test_classes_that_the_method_empties_come_last(monkeypatch):
    real = domains.refine

    def without_class_1(rows, row_of, graph, labels, k):
        found = real(rows, row_of, graph, labels, k)
        membership = found.membership.copy()
        membership[:, 1] = 1e-9
        return found._replace(membership=membership, labels=np.where(found.labels == 1, 0, found.labels))

    monkeypatch.setattr(domains, "refine", without_class_1)
    labels, _, _ = noisy_map((30, 30), 4, "pixels")
    with pytest.warns(UserWarning, match="3 of 4 clusters"):
        est = ge.Spatial(4).fit(labels, graph=ge.Graph.grid((30, 30)))
    assert est.n_clusters_ == 3
    assert est.membership_.shape == (900, 3)
    assert est.smoothed_labels_.max() == 3
