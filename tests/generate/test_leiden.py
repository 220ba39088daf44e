"""Leiden ensembles: graphs, features and cells, clusterings that are left out, and error messages."""

import random
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused
from scipy.sparse import block_diag, csr_array, eye_array, save_npz
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import gpuens as ge
from gpuens import cli
from gpuens.generate import leiden, leiden_ensemble
from gpuens.runtime.failures import OutOfGPUMemory

igraph = pytest.importorskip("igraph")


def blobs(n=300, seed=0):
    return make_blobs(n, 3, centers=4, cluster_std=0.7, random_state=seed)


def graph_of(X, n_neighbors=15):
    near = kneighbors_graph(X, n_neighbors)
    return near.maximum(near.T)


def modularity(graph, labels, resolution):
    """Return the modularity Σ_C [in(C) / 2m - resolution (degree(C) / 2m)²] by the formula."""
    dense = graph.toarray() * (1 - np.eye(graph.shape[0]))
    total = dense.sum()
    parts = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    return sum(dense[np.ix_(p, p)].sum() / total - resolution * (dense[p].sum() / total) ** 2 for p in parts)


def test_clusterings_of_a_graph_and_of_its_features_are_the_same_and_good():
    X, y = blobs()
    found = leiden_ensemble(X, (0.2, 1.0), 3)
    assert found.names == [f"leiden_{r}_{s}" for r in ("0.2", "1") for s in range(3)]
    np.testing.assert_array_equal(leiden_ensemble(graph_of(X), (0.2, 1.0), 3).to_array(), found.to_array())
    for resolution, column in zip([0.2] * 3 + [1.0] * 3, found.to_array().T, strict=True):
        assert modularity(graph_of(X), column, resolution) >= modularity(graph_of(X), y, resolution) - 1e-9
    assert ge.metrics.nmi(y, ge.LWEA(4).fit(found).labels_) > 0.95


EDGES = np.array([(i, j) for part in (range(8), range(8, 20)) for i in part for j in part if i < j])
LIKE_EDGES = {
    "pairs": EDGES,
    "unsigned": EDGES.astype(np.uint16),
    "floats": EDGES.astype(float),
    "a list": EDGES.tolist(),
    "with weights": np.column_stack([EDGES, np.linspace(0.1, 1, len(EDGES))]),
    "a table": pd.DataFrame(EDGES, columns=["a", "b"]).assign(weight=0.5),
    "names": pd.DataFrame(EDGES).map("g{}".format),
}


@pytest.mark.parametrize("kind", LIKE_EDGES)
def test_a_list_of_edges_is_no_graph_and_no_features(kind):
    for call in (leiden_ensemble, lambda X: ge.cluster(X, 2, kind="leiden")):
        refused(lambda call=call: call(LIKE_EDGES[kind]), ValueError, "list of edges", "sparse square", "n_neighbors=")
    if kind != "names":
        assert leiden_ensemble(LIKE_EDGES[kind], 1.0, 1, n_neighbors=15).n_objects == len(EDGES)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "npy", "npz"])
def test_a_file_of_edges_is_refused_with_the_graphs_that_can_be_read(tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", EDGES)
    np.savez("X.npz", EDGES)
    for name, separator in (("X.csv", ","), ("X.tsv", "\t")):
        pd.DataFrame(EDGES[1:]).to_csv(name, index=False, header=False, sep=separator)
    for line in (f"generate X.{suffix} --kind leiden -o out.npy", f"cluster X.{suffix} --kind leiden -k 2 -o out.npy"):
        assert cli.main(line.split()) == 3
        told = capsys.readouterr().err
        assert [word in told for word in ("list of edges", "save_npz", "obsp['connectivities']")] == [True] * 3
    for line in ("leiden --n-neighbors 15 --resolutions 1", "kmeans -k 2:3 --n-clusterings 3"):
        assert cli.main(f"generate X.{suffix} -o out.npy --kind {line}".split()) == 0


@pytest.mark.parametrize("X", [EDGES - 1, EDGES + 0.5, np.column_stack([EDGES, EDGES])], ids=["-1", "halves", "four"])
def test_features_that_are_no_edges_are_features(X):
    assert leiden_ensemble(X, 1.0, 1).n_objects == len(EDGES)


def test_higher_resolutions_have_more_clusters_and_seeds_differ():
    X = np.random.default_rng(0).normal(size=(2000, 5))
    found = leiden_ensemble(X, (0.5, 3.0), 2)
    ks = np.diff(found.offsets)
    assert ks[:2].max() < ks[2:].min()
    columns = found.to_array().T
    assert (columns[2] != columns[3]).any()
    np.testing.assert_array_equal(leiden_ensemble(X, (0.5, 3.0), 2).to_array(), found.to_array())
    assert (leiden_ensemble(X, 3.0, 2, random_state=1).to_array() != found.to_array()[:, 2:]).any()


@pytest.mark.parametrize("power", [-1000, -660, 520, 1000])
def test_the_size_of_features_and_of_weights_does_not_matter(power):
    X, _ = blobs()
    expected = leiden_ensemble(X, (0.2, 1.0), 2).to_array()
    np.testing.assert_array_equal(leiden_ensemble(X * 2.0**power, (0.2, 1.0), 2).to_array(), expected)
    graph = graph_of(X) * 2.0**power
    np.testing.assert_array_equal(leiden_ensemble(graph, (0.2, 1.0), 2).to_array(), expected)
    with pytest.raises(ValueError, match="not symmetric"):
        leiden_ensemble(csr_array(np.triu(graph.toarray())))


def test_weights_count_and_the_diagonal_does_not():
    heavy = np.zeros((6, 6))
    heavy[:2, :2] = heavy[2:4, 2:4] = heavy[4:, 4:] = 5.0
    weak = np.full((6, 6), 0.1)
    labels = leiden_ensemble(csr_array(heavy + weak), 1.0, 1).to_array()[:, 0]
    assert labels.tolist() == [0, 0, 1, 1, 2, 2]
    loops = csr_array(heavy + weak + 100 * np.eye(6))
    assert leiden_ensemble(loops, 1.0, 1).to_array()[:, 0].tolist() == labels.tolist()


def test_the_process_keeps_its_random_numbers():
    X, _ = blobs()

    def drawn():
        return random.random(), igraph.Graph.Erdos_Renyi(30, 0.3).get_edgelist()

    random.seed(5)
    expected = drawn()
    random.seed(5)
    leiden_ensemble(X, 1.0, 1)
    assert drawn() == expected


def test_a_clustering_that_falls_apart_is_made_again_from_another_seed(monkeypatch):
    judged = []

    def useless(labels, tied, edges):
        judged.append(np.bincount(labels).tolist())
        return "fall apart; lower" * (len(judged) % 2)

    monkeypatch.setattr(leiden, "_useless", useless)
    found = leiden_ensemble(np.random.default_rng(0).normal(size=(2000, 5)), 3.0, 2)
    assert found.names == ["leiden_3_0", "leiden_3_1"]
    assert len(judged) == 4
    kept = [sorted(np.bincount(column).tolist()) for column in found.to_array().T]
    assert kept == [sorted(sizes) for sizes in judged[1::2]]
    assert sorted(judged[0]) != kept[0]


def test_clusterings_that_fall_apart_are_left_out_with_a_warning():
    X, _ = blobs(600)
    told = r"^leiden_500_0 is left out: at resolution 500 600 objects with edges fall apart into \d+ clusters"
    with pytest.warns(UserWarning, match=told):
        assert leiden_ensemble(X, (1.0, 500.0), 1).names == ["leiden_1_0"]
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match="no clustering is left"):
        leiden_ensemble(X, 500.0, 1)


def cliques(n, size):
    return block_diag([np.ones((size, size))] * n, format="csr")


@pytest.mark.parametrize(("n", "size"), [(30, 10), (100, 3), (40, 2), (2, 50)])
def test_small_communities_are_no_reason_to_leave_a_clustering_out(n, size):
    found = leiden_ensemble(cliques(n, size))
    assert found.n_clusterings == 20
    truth = np.repeat(np.arange(n), size)
    assert {ge.metrics.ari(truth, column) for column in found.to_array().T} == {1.0}
    assert ge.metrics.ari(truth, ge.EAC(n).fit(found).labels_) == 1.0
    assert ge.metrics.ari(truth, ge.cluster(cliques(n, size), n, kind="leiden", method="eac").labels_) == 1.0


def ring(n, size):
    """Return a graph of n cliques in a ring, where an edge joins each clique to the next."""
    graph = cliques(n, size).tolil()
    for first in range(0, n * size, size):
        other = (first + size + 1) % (n * size)
        graph[first, other] = graph[other, first] = 1
    return csr_array(graph)


def planted(sizes, degree, mixing, rng):
    """Return a random graph where a share ``mixing`` of the edges goes anywhere, the others within communities."""
    own = np.repeat(np.arange(len(sizes)), sizes)
    starts, n = np.cumsum(sizes) - sizes, len(own)
    first = rng.integers(n, size=n * degree // 2)
    within = starts[own[first]] + rng.integers(np.asarray(sizes)[own[first]])
    second = np.where(rng.random(len(first)) < mixing, rng.integers(n, size=len(first)), within)
    graph = csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return graph.maximum(graph.T).sign()


def outliers_on_cliques(n_cliques, size, n_outliers):
    """Return cliques, and outliers with two edges each, which lead to different cliques."""
    n = n_cliques * size
    graph = block_diag([np.ones((size, size))] * n_cliques + [np.zeros((n_outliers, n_outliers))], format="lil")
    for i in range(n_outliers):
        for clique in (i, i + 1):
            at = clique % n_cliques * size + i % size
            graph[n + i, at] = graph[at, n + i] = 1
    return csr_array(graph)


# graphs, with the resolutions whose clusterings are fine and those whose clusterings fall apart
JUDGED = {
    "ring of cliques": (lambda rng: ring(30, 10), (0.5, 1.0, 20.0), (50.0, 2000.0)),
    "ring of triangles": (lambda rng: ring(100, 3), (1.0, 20.0, 100.0), (200.0, 2000.0)),
    "large communities": (lambda rng: planted([200] * 10, 20, 0.5, rng), (0.5, 2.0), (100.0, 500.0)),
    "small communities": (lambda rng: planted([8] * 200, 8, 0.2, rng), (1.0, 50.0, 100.0), (1000.0,)),
    "tiny communities": (lambda rng: planted([4] * 300, 6, 0.2, rng), (1.0, 100.0), (2000.0,)),
    "neighbours": (lambda rng: graph_of(blobs(600)[0]), (0.25, 2.0, 10.0), (200.0,)),
    "neighbours with noise": (
        lambda rng: graph_of(np.vstack([blobs(600)[0], rng.uniform(-12, 12, (150, 3))])),
        (0.25, 2.0, 10.0),
        (200.0,),
    ),
    "outliers": (lambda rng: outliers_on_cliques(10, 40, 60), (1.0, 8.0), (100.0,)),
}


@pytest.mark.parametrize("kind", JUDGED)
def test_fine_clusterings_are_told_from_those_that_fall_apart(kind):
    make, fine, apart = JUDGED[kind]
    graph = make(np.random.default_rng(0))
    assert leiden_ensemble(graph, fine, 2).n_clusterings == 2 * len(fine)
    with pytest.warns(UserWarning, match="fall apart into") as warned, pytest.raises(ValueError, match="is left"):
        leiden_ensemble(graph, apart, 1)
    assert len(warned) == len(apart)
    assert leiden_ensemble(graph, (*fine, *apart), 1, keep="all").n_clusterings == len(fine) + len(apart)


def test_many_outliers_are_no_reason_to_leave_exact_clusters_out():
    found = leiden_ensemble(outliers_on_cliques(10, 40, 60), 8.0, 4).to_array()
    assert found.shape[1] == 4
    for column in found.T:
        assert np.count_nonzero(np.bincount(column) == 1) == 60  # most of the 70 clusters
        assert ge.metrics.ari(np.repeat(np.arange(10), 40), column[:400]) == 1.0


def test_twos_and_threes_fall_apart_only_if_most_edges_lead_out_of_them():
    labels = np.repeat(np.arange(30), 3)
    every = np.ones(90, dtype=bool)
    for within, between, expected in ((4.0, 1.0, ""), (1.0, 1.5, "fall apart into 30 clusters")):
        graph = csr_array(np.where(labels[:, None] == labels, within, between * (np.eye(90, k=3) + np.eye(90, k=-3))))
        why = leiden._useless(labels, every, leiden.edges_of(graph, None, None)[0])
        assert why.startswith(expected)
        assert bool(why) == bool(expected)


def test_one_cluster_and_single_objects_tell_nothing():
    graph = cliques(3, 10).tolil()
    graph[[0, 10, 10, 20], [10, 0, 20, 10]] = 1  # these edges connect the three cliques in a chain
    graph = csr_array(graph)
    with pytest.warns(UserWarning, match=r"^leiden_.* is left out: at resolution .* 30 objects with edges ") as warned:
        assert leiden_ensemble(graph, (0.01, 1.0, 50.0), 1).names == ["leiden_1_0"]
    for found, why in zip(warned, ("are all in one cluster; raise", "fall apart into 30 clusters"), strict=True):
        assert why in one_sentence(found.message)
    with pytest.warns(UserWarning, match=r"left out"):
        refused(lambda: leiden_ensemble(graph, 0.01, 1), ValueError, "no clustering is left")
    with pytest.warns(UserWarning, match="constant clusterings"):
        found = leiden_ensemble(graph, (0.01, 1.0, 50.0), 1, keep="all")
    assert np.diff(found.offsets).tolist() == [1, 3, 30]


def test_the_command_line_says_what_to_keep(tmp_path, capsys):
    save_npz(tmp_path / "graph.npz", cliques(30, 10).tocsr())
    command = ["generate", str(tmp_path / "graph.npz"), "--kind", "leiden", "-o", str(tmp_path / "out.npy")]
    assert cli.main(command) == 0
    assert "leiden: 20 clusterings, with 30 to 30 clusters each" in capsys.readouterr().out
    assert cli.main([*command, "--resolutions", "1,500", "--keep", "all", "--quiet"]) == 0
    assert np.load(tmp_path / "out.npy").max(axis=0).tolist() == [29] * 4 + [299] * 4


def test_objects_without_an_edge_are_not_counted():
    X, _ = blobs()
    alone = block_diag([graph_of(X), csr_array((400, 400))], format="csr")
    found = leiden_ensemble(alone, (0.2, 1.0), 2)
    np.testing.assert_array_equal(found.to_array()[:300], leiden_ensemble(graph_of(X), (0.2, 1.0), 2).to_array())
    assert len(np.unique(found.to_array()[300:, 0])) == 400
    with pytest.warns(UserWarning, match="300 objects with edges fall apart into") as warned:
        leiden_ensemble(alone, (0.2, 500.0), 1)
    one_sentence(warned[0].message)


def test_labels_go_where_the_features_came_from(fake_cupy, cugraph):
    X, _ = blobs()
    found, expected = leiden_ensemble(fake_cupy.asarray(X), 1.0, 2), leiden_ensemble(X, 1.0, 2)
    assert (found.device_kind, expected.device_kind) == ("cuda", "cpu")
    np.testing.assert_array_equal(found.codes, expected.codes)
    assert leiden_ensemble(fake_cupy.asarray(X), 1.0, 1, device="cuda").device_kind == "cuda"


class Cugraph:
    """A stand-in for pylibcugraph.

    It calls igraph, reorders vertices, leaves gaps in the labels, and counts its calls.
    """

    def __init__(self, cupy):
        self.cupy, self.graphs, self.partitions = cupy, 0, 0

    def ResourceHandle(self):
        return "handle"

    def GraphProperties(self, *, is_symmetric, is_multigraph):
        return is_symmetric, is_multigraph

    def SGGraph(
        self, handle, properties, sources, targets, *, weight_array, store_transposed, renumber, do_expensive_check
    ):
        assert (handle, properties, store_transposed, renumber) == ("handle", (True, False), False, False)
        assert sources.dtype == targets.dtype == np.int32
        i, j, weights = map(self.cupy.asnumpy, (sources, targets, weight_array))
        matrix = csr_array((weights, (i, j)))
        assert matrix.nnz == len(i)
        assert (matrix != matrix.T).nnz == 0
        assert not matrix.diagonal().any()
        assert np.unique(i).tolist() == list(range(matrix.shape[0]))  # every vertex occurs in an edge
        self.graphs += 1
        once = i < j
        graph = igraph.Graph(n=matrix.shape[0], edges=np.column_stack([i[once], j[once]]))
        return SimpleNamespace(graph=graph, weights=weights[once])

    def leiden(self, handle, random_state, graph, max_level, resolution, theta, do_expensive_check):
        self.partitions += 1
        igraph.set_random_number_generator(random.Random(random_state))
        found = graph.graph.community_leiden(
            "modularity", weights=graph.weights, resolution=resolution, n_iterations=-1
        )
        igraph.set_random_number_generator(random)
        order = np.random.default_rng(0).permutation(graph.graph.vcount()).astype(np.int32)
        clusters = 3 * np.asarray(found.membership, dtype=np.int32)[order] + 5
        return self.cupy.asarray(order), self.cupy.asarray(clusters), found.modularity


@pytest.fixture
def cugraph(fake_cupy, monkeypatch):
    stand_in = Cugraph(fake_cupy)
    monkeypatch.setitem(sys.modules, "pylibcugraph", stand_in)
    return stand_in


def test_a_gpu_is_given_the_same_graph(cugraph):
    X, _ = blobs()
    alone = block_diag([csr_array((7, 7)), graph_of(X), csr_array((40, 40))], format="csr")
    for given in (X, graph_of(X), alone):
        found = leiden_ensemble(given, (0.2, 1.0), 3, device="cuda")
        expected = leiden_ensemble(given, (0.2, 1.0), 3, n_iterations=-1)
        assert found.names == expected.names
        assert found.device_kind == "cpu"
        for column, other in zip(found.to_array().T, expected.to_array().T, strict=True):
            assert ge.metrics.ari(column, other) == 1.0
            assert len(np.unique(column)) == column.max() + 1
    assert (cugraph.graphs, cugraph.partitions) == (3, 18)
    assert leiden_ensemble(X, 1.0, 1).device_kind == "cpu"
    assert cugraph.graphs == 3


def test_a_graph_that_a_gpu_has_no_room_for_is_one_sentence(cugraph, fake_cupy):
    fake_cupy.reset(100)
    told = "X, a graph of ", " edges, does not fit the GPU", "take device='cpu'"
    refused(lambda: leiden_ensemble(blobs()[0], 1.0, 1, device="cuda"), OutOfGPUMemory, *told)


@pytest.mark.parametrize(
    ("device", "kind", "mentioned"),
    [
        ("cuda", ImportError, ["on a GPU needs pylibcugraph, which is not installed: ", "cugraph-cu12"]),
        ("emulated", ValueError, ["has no Leiden algorithm"]),
        ("tpu", ValueError, ["device must be one of"]),
    ],
)
def test_devices_without_the_algorithm_are_refused_before_any_work(device, kind, mentioned, fake_cupy, monkeypatch):
    monkeypatch.setitem(sys.modules, "pylibcugraph", None)
    refused(lambda: leiden_ensemble("no features", device=device), kind, *mentioned)


@pytest.fixture
def annotated():
    """Return a function that makes an AnnData."""
    return pytest.importorskip("anndata").AnnData


@pytest.mark.gpu
def test_a_gpu_finds_clusterings_as_good():
    pytest.importorskip("pylibcugraph")
    X = np.random.default_rng(0).normal(size=(2000, 5))
    graph = graph_of(X)
    for resolution in (0.5, 1.0, 3.0):
        both = [leiden_ensemble(graph, resolution, 4, device=device).to_array().T for device in ("cpu", "cuda")]
        of_cpu, of_gpu = ([modularity(graph, column, resolution) for column in columns] for columns in both)
        assert np.mean(of_gpu) > 0.95 * np.mean(of_cpu)
    again = leiden_ensemble(graph, 3.0, 4, device="cuda").to_array()
    np.testing.assert_array_equal(again.T, both[1])


def test_cells_get_clusterings_that_have_a_consensus(annotated):
    X, y = blobs()
    adata = annotated(X, obsm={"X_pca": X}, obsp={"connectivities": csr_array(graph_of(X))})
    adata.obs_names = [f"c{i}" for i in range(len(X))]
    ge.sc.ensemble(adata, (0.2, 1.0), 2, key_added="many")
    assert list(adata.obs) == ["many_0.2_0", "many_0.2_1", "many_1_0", "many_1_1"]
    expected = leiden_ensemble(graph_of(X), (0.2, 1.0), 2).to_array()
    np.testing.assert_array_equal(adata.obs["many_1_1"].cat.codes, expected[:, 3])
    ge.sc.ensemble(adata, (0.2, 1.0), 2, key_added="many", use_rep="X_pca")
    ge.sc.consensus(adata, "many_*", n_clusters=4)
    assert ge.metrics.nmi(y, adata.obs["consensus"].astype(int)) > 0.95
    ge.sc.ensemble(adata, iter([0.2]), 1, key_added="from_X", use_rep="X")
    assert adata.obs["from_X_0.2_0"].tolist() == adata.obs["many_0.2_0"].tolist()


def test_what_is_left_out_leaves_no_column_of_an_earlier_call(annotated):
    X, _ = blobs(600)
    adata = annotated(X, obsm={"X_pca": X})
    for name in ("leiden_500_0", "leiden_1_0", "leiden_2_0"):
        adata.obs[name] = "before"
    with pytest.warns(UserWarning, match="leiden_500_0 is left out"):
        ge.sc.ensemble(adata, (1.0, 500.0), 1, use_rep="X_pca")
    assert sorted(adata.obs) == ["leiden_1_0", "leiden_2_0"]
    assert "before" not in adata.obs["leiden_1_0"].tolist()
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match="no clustering is left"):
        ge.sc.ensemble(adata, 500.0, 1, use_rep="X_pca")
    assert sorted(adata.obs) == ["leiden_1_0", "leiden_2_0"]


def test_what_an_annotated_matrix_names_is_a_graph_or_features_be_it_square_or_dense(annotated):
    X = np.zeros((100, 100))
    X[:, :3] = blobs(100)[0]
    adata = annotated(X, obsm={"wide": csr_array(X)}, obsp={"connectivities": graph_of(X).toarray()})
    expected = leiden_ensemble(X, 1.0, 1).codes
    np.testing.assert_array_equal(leiden_ensemble(adata, 1.0, 1).codes, expected)
    adata.obsp["connectivities"] = eye_array(100).tocsr()
    np.testing.assert_array_equal(leiden_ensemble(adata, 1.0, 1, use_rep="wide").codes, expected)
    np.testing.assert_array_equal(leiden_ensemble(adata, 1.0, 1, use_rep="X", n_neighbors=15).codes, expected)


@pytest.mark.parametrize(
    ("given", "kind", "mentioned"),
    [
        ({"X": csr_array(np.triu(np.ones((5, 5))))}, ValueError, "not symmetric"),
        ({"X": csr_array(-np.ones((5, 5)))}, ValueError, "below 0"),
        ({"X": csr_array(np.full((5, 5), np.nan))}, ValueError, "not finite"),
        ({"X": eye_array(5).tocsr()}, ValueError, "without edges"),
        ({"X": np.ones((1, 2))}, ValueError, "single object"),
        ({"X": np.full((5, 2), np.nan)}, ValueError, "finite"),
        ({"resolutions": 0.0}, ValueError, "resolutions must be above 0"),
        ({"resolutions": ()}, ValueError, "resolutions are empty"),
        ({"resolutions": "high"}, TypeError, "resolutions"),
        ({"n_seeds": 0}, ValueError, "n_seeds"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors"),
        ({"use_rep": "X_pca"}, ValueError, "needs an AnnData"),
        ({"X": csr_array((0, 0))}, ValueError, "without edges"),
        ({"X": csr_array(np.ones((5, 5)) * 1j)}, TypeError, "weights of type complex128"),
        ({"X": csr_array(np.ones((5, 5))), "n_neighbors": 15}, ValueError, "n_neighbors=15 is for features"),
        ({"n_iterations": -1.0}, TypeError, "n_iterations must be a whole number"),
        ({"keep": "none"}, ValueError, "keep must be one of 'useful', 'all'"),
        ({"n_iterations": 0}, ValueError, "n_iterations must not be 0; give a positive number"),
        ({"n_iterations": -2}, ValueError, "n_iterations"),
        ({"n_iterations": 2**40}, ValueError, "n_iterations"),
        ({"n_seeds": 2**40}, MemoryError, "n_seeds=1099511627776 needs"),
        ({"resolutions": (0.5, 1.0, 0.5)}, ValueError, "must differ in six digits, but two are 0.5; ask for more n_"),
        ({"resolutions": (0.12345678, 0.12345679)}, ValueError, "two are 0.123457"),
        ({"resolutions": [None]}, TypeError, "resolutions"),
    ],
)
def test_what_is_refused(given, kind, mentioned):
    refused(lambda: leiden_ensemble(**{"X": blobs()[0], "resolutions": 1.0, "n_seeds": 1, **given}), kind, mentioned)


def test_resolutions_of_any_kind_of_sequence():
    X, _ = blobs()
    for given in ([0.5, 1.0], np.array([0.5, 1.0]), (r / 2 for r in (1, 2))):
        assert leiden_ensemble(X, given, 1).names == ["leiden_0.5_0", "leiden_1_0"]
    for given in (np.float32(0.5), np.array(0.5)):
        assert leiden_ensemble(X, given, 1).names == ["leiden_0.5_0"]


def test_features_in_chunks_are_refused():
    chunks = pytest.importorskip("dask.array").from_array(blobs()[0], chunks=(100, 3))
    told = "X is in chunks, but Leiden needs a graph or features in one piece"
    refused(lambda: leiden_ensemble(chunks), TypeError, told)


def test_an_annotated_matrix_without_a_graph_is_refused(annotated):
    adata = annotated(blobs()[0])
    refused(lambda: leiden_ensemble(adata), ValueError, "no graph in obsp['connectivities']")
    refused(lambda: leiden_ensemble(adata, use_rep="X_pca"), ValueError, "names nothing in obsm")
    refused(lambda: ge.sc.ensemble(annotated(obs=adata.obs), use_rep="X"), ValueError, "names nothing in obsm")
    for key in (None, "a/b", "", 3):
        told = "key_added must be a name without '/'"
        refused(lambda key=key: ge.sc.ensemble(adata, use_rep="X", key_added=key), ValueError, told)
    assert list(adata.obs) == []
