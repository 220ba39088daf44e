"""METIS: its input, its results and its errors. No error in METIS may end the interpreter."""

import itertools
import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import oracles
import pytest
from conftest import peak_of, random_labels, refused, structured_labels
from scipy.sparse import coo_array, csr_array
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.labels.rows import by_first_row
from gpuens.partition import metis
from gpuens.partition.metis import scaled_weights
from gpuens.runtime import installing

pymetis = pytest.importorskip("pymetis", reason="PyPI has no wheel of pymetis for this system")

MODULE = sys.modules[metis.__module__]  # this is the module; the package exports a function of the same name


def random_graph(n, density=1.0, seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(0.5, 0.8, (n, n)) * (rng.random((n, n)) < density), 1)
    return upper + upper.T


def similar_within_classes(n, n_classes, seed=0):
    """Return similarities (0.55 to 0.8) of objects in classes of nearly equal size, and the class of each object."""
    truth = np.arange(n) % n_classes
    rng = np.random.default_rng(seed)
    noise = np.triu(rng.uniform(0, 0.15, (n, n)), 1)
    return 0.55 + 0.1 * (truth[:, None] == truth) + noise + noise.T, truth


def ones(n):
    return np.ones(n, dtype=np.int64)


def is_partition(labels, n, k):
    """Return whether all k parts occur and are numbered in the order of their first vertices."""
    _, first = np.unique(labels, return_index=True)
    return labels.dtype == np.int64 and labels.shape == (n,) and len(first) == k and (np.diff(first) > 0).all()


def cut(similarities, labels):
    return similarities[labels[:, None] != labels].sum() / 2


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(200, 2), (300, 5), (600, 8)])
def test_classes_are_found_in_similarities_of_a_narrow_range(n, k):
    similarities, truth = similar_within_classes(n, k)
    np.testing.assert_array_equal(metis(similarities, ones(n), k), truth)


def test_cut_is_that_of_the_best_bisection():
    """The reference tries all balanced bisections of 10 vertices."""
    similarities = random_graph(10, seed=3)
    halves = [np.array([1 & (i >> v) for v in range(10)]) for i in range(2**9)]
    best = min(cut(similarities, half) for half in halves if half.sum() == 5)
    found = metis(similarities, ones(10), 2)
    assert np.bincount(found).tolist() == [5, 5]
    assert cut(similarities, found) == pytest.approx(best)


@pytest.mark.parametrize("imbalance", [0.03, 0.2])
def test_parts_weigh_alike(imbalance):
    weights = np.random.default_rng(0).integers(1, 20, 400)
    labels = metis(random_graph(400), weights, 6, imbalance=imbalance)
    assert np.bincount(labels, weights).max() <= (1 + imbalance) * weights.sum() / 6 + 1


def test_equal_seeds_give_equal_parts_and_others_others():
    similarities = random_graph(200)
    a, b, c = (metis(similarities, ones(200), 5, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    np.testing.assert_array_equal(a, metis(similarities, ones(200), 5, random_state=np.random.default_rng(1)))


def test_neither_scale_nor_diagonal_nor_rounding_matter():
    similarities = random_graph(80, 0.5)
    labels, jitter = metis(similarities, ones(80), 4), 1 + 1e-15 * np.random.default_rng(0).standard_normal((80, 80))
    for scale in (2.0**-1060, 2.0**-30, 2.0**1000):
        np.testing.assert_array_equal(labels, metis(similarities * scale + np.diag(np.arange(80)), ones(80), 4))
    np.testing.assert_array_equal(metis(np.triu(similarities) + np.tril(similarities) * jitter, ones(80), 4), labels)


def test_rows_and_matrices_give_the_same(sizes):
    sizes("partition.metis", BLOCK=7)
    asked = []

    def similarities_of(start, stop):
        asked.append((start, stop))
        return similarities[start:stop]

    similarities = random_graph(50, 0.3)
    before = similarities.copy()
    labels = metis(similarities_of, ones(50), 3)
    np.testing.assert_array_equal(labels, metis(similarities, ones(50), 3))
    np.testing.assert_array_equal(similarities, before)
    assert asked == [(start, min(start + 7, 50)) for start in range(0, 50, 7)]


# --- graphs that METIS itself cannot handle ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_every_graph_has_a_partition(seed):
    """Every graph gets a partition: sparse, disconnected, with isolated or very heavy vertices, into up to n parts."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 50))
    k = int(rng.integers(1, n + 1))
    similarities = random_graph(n, [0.05, 0.3, 1.0][seed % 3], seed)
    similarities[0, -1] = similarities[-1, 0] = 1e-12  # each graph has this edge, whose weight is very small
    weights = [ones(n), rng.integers(1, 1000, n), 1 + (rng.random(n) ** 8 * 1e12).astype(np.int64)][seed // 3 % 3]
    assert is_partition(metis(similarities, weights, k), n, k)


def test_one_part_and_as_many_parts_as_vertices():
    assert metis(random_graph(5), ones(5), 1).tolist() == [0] * 5
    assert metis(random_graph(5), ones(5), 5).tolist() == [0, 1, 2, 3, 4]
    assert metis(np.zeros((1, 1)), ones(1), 1).tolist() == [0]


def test_graphs_without_edges_are_divided_with_a_warning():
    with pytest.warns(UserWarning, match="between different vertices are all 0"):
        labels = metis(np.eye(12), ones(12), 3)
    assert np.bincount(labels).tolist() == [4, 4, 4]


def test_components_stay_together_where_they_fit():
    component = np.arange(60) // 10
    similarities = 0.5 * (component[:, None] == component)
    labels = metis(similarities, ones(60), 3)
    assert len(np.unique(component * 3 + labels)) == 6


def test_a_heavy_vertex_fills_a_part():
    weights = ones(40)
    weights[7] = 10**6
    labels = metis(random_graph(40), weights, 7)
    assert is_partition(labels, 40, 7)
    assert (labels == labels[7]).sum() <= 2
    assert np.bincount(labels).max() <= 9


@pytest.mark.parametrize(
    ("weights", "n_parts", "expected"),
    [
        ([1, 1, 1, 1], 2, [1, 1, 1, 1]),
        ([100, 1, 1, 1, 1], 3, [2, 1, 1, 1, 1]),
        ([100, 50, 1, 1, 1, 1], 3, [4, 4, 1, 1, 1, 1]),
        ([5, 5, 5], 2, [5, 5, 5]),
        ([9, 1, 1, 1], 4, [1, 1, 1, 1]),
    ],
)
def test_weights_are_limited_to_a_part(weights, n_parts, expected):
    assert MODULE.limit_to_a_part(np.array(weights), n_parts).tolist() == expected


def test_large_weights_are_scaled():
    """METIS computes the balance of parts in 32-bit numbers."""
    s, weights = random_graph(40), np.random.default_rng(0).integers(1, 9, 40)
    np.testing.assert_array_equal(metis(s, weights * 2**50, 4), metis(s, weights * 2**22, 4))
    heavy = np.append(weights * 2**50, 1)
    scaled = scaled_weights(heavy, 2**30)
    assert scaled[-1] == 1
    assert 2**29 - len(scaled) < scaled.sum() <= 2**30 + len(scaled)
    np.testing.assert_allclose(scaled[:-1] / scaled.sum(), weights / weights.sum(), rtol=1e-6)
    assert scaled_weights(weights, 2**30) is weights


def test_empty_parts_get_what_the_heaviest_part_needs_least(monkeypatch):
    """In the heaviest part, vertex 2 has the smallest similarity to the other vertices."""
    similarities = np.zeros((6, 6))
    for i, j, s in [(0, 1, 0.9), (1, 2, 0.2), (0, 3, 0.8), (1, 3, 0.9), (4, 5, 0.9)]:
        similarities[i, j] = similarities[j, i] = s
    all_in_two = pymetis.GraphPartition(0, [0, 0, 0, 0, 2, 2])
    monkeypatch.setattr(pymetis, "part_graph", lambda *args, **kwargs: all_in_two)
    assert metis(similarities, ones(6), 3).tolist() == [0, 0, 1, 0, 2, 2]


# --- input of METIS ---------------------------------------------------------------------------------------------------


def handed_over(monkeypatch, *args):
    """Return the edge weights that METIS gets from gpuens."""
    seen = []
    really = pymetis.part_graph

    def part_graph(n_parts, graph, *, eweights, **kwargs):
        seen.append(eweights)
        return really(n_parts, graph, eweights=eweights, **kwargs)

    monkeypatch.setattr(pymetis, "part_graph", part_graph)
    metis(*args)
    return seen[0]


def test_edges_are_integers_in_proportion(monkeypatch):
    similarities = np.array([[0, 1, 0.5, 1e-300], [1, 0, 0, 0.25], [0.5, 0, 0, 0], [1e-300, 0.25, 0, 0]])
    edges = handed_over(monkeypatch, similarities, ones(4), 2)
    assert edges.dtype == pymetis.zero_copy_dtype()
    assert (edges / 2**20).round(5).tolist() == [1, 0.5, 0, 1, 0.25, 0.5, 0, 0.25]
    assert edges.min() == 1


def test_sums_fit_where_metis_counts_with_32_bits(monkeypatch):
    monkeypatch.setattr(pymetis, "zero_copy_dtype", lambda: np.dtype(np.int32))
    similarities, truth = similar_within_classes(300, 3)
    edges = handed_over(monkeypatch, similarities, ones(300), 3)
    assert edges.dtype == np.int32
    assert 2**29 < edges.sum(dtype=np.int64) < 2**30
    np.testing.assert_array_equal(metis(similarities, ones(300), 3), truth)


@pytest.mark.parametrize(
    ("i", "j", "value"), [(2, 9, 0.0), (9, 2, 0.0), (2, 9, 0.5), (9, 2, 0.5), (0, 1, 0.0), (1, 0, 0.0), (11, 10, 0.0)]
)
def test_asymmetry_is_refused(i, j, value):
    s = random_graph(12)
    s[i, j] = value
    a, b = min(i, j), max(i, j)
    sentence = f"of {a} to {b} is {s[a, b]} and that of {b} to {a} is {s[b, a]}"
    refused(lambda: metis(s, ones(12), 3), ValueError, sentence)


@pytest.mark.parametrize(("i", "j"), [*itertools.permutations(range(4), 2)])
def test_a_single_edge_one_way_is_refused(i, j):
    similarities = np.zeros((4, 4))
    similarities[i, j] = 0.5
    refused(lambda: metis(similarities, ones(4), 2), ValueError, "must be symmetric")


S = random_graph(6)
REFUSED = [
    (S, ones(6), 7, ValueError, "n_parts=7", "6 vertices"),
    (S, ones(6), 0, ValueError, "n_parts must be at least 1"),
    (S, ones(5), 2, ValueError, "(5, 5)", "(6, 6)"),
    (lambda a, b: S[a:b, a:], ones(7), 2, ValueError, "(4, 7)", "(4, 6)"),
    (S, np.ones(6), 2, ValueError, "weights", "float64"),
    (S, np.ones((6, 1), dtype=int), 2, ValueError, "weights", "(6, 1)"),
    (S, np.zeros(6, dtype=int), 2, ValueError, "weights", "but 0 was found"),
    (S, np.array([1, 1, 1, 1, 1, -3]), 2, ValueError, "but -3 was found"),
    (S, np.full(6, 2**63 + 1, dtype=np.uint64), 2, ValueError, f"but {2**63 + 1} was found"),
    *((np.where(np.tri(6, k=-5) == 1, value, S), ones(6), 2, ValueError, f"of 5 and 0 is {value}")
      for value in (-0.1, np.nan, np.inf)),
    (lambda a, b: 1 / 0, ones(1000), 2, MemoryError, "1,000 vertices", "28.0 MB", "Sample"),
    (lambda a, b: 1 / 0, ones(1000), 26, MemoryError, "1,000 vertices", "44.0 MB", "Sample"),
]  # fmt: skip


@pytest.mark.parametrize(("similarities", "weights", "n_parts", "kind", "parts"), [(*r[:4], r[4:]) for r in REFUSED])
def test_bad_input_is_refused_before_the_work(similarities, weights, n_parts, kind, parts, sizes, monkeypatch):
    sizes("partition.metis", BLOCK=4)
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    refused(lambda: metis(similarities, weights, n_parts), kind, *parts)
    refused(lambda: metis(S, ones(6), 2, imbalance=0.0), ValueError, "imbalance must be above 0")


@pytest.mark.parametrize("kind", ["NearestMETIS", "BipartiteMETIS"])
def test_sparse_graphs_take_no_more_memory_than_is_foreseen(kind, foreseen, monkeypatch):
    rows = ge.Rows(random_labels(3000, 8, (30, 40), seed=0))
    similarity, cut = ge.similarity.Coassociation()(rows), getattr(ge.partition, kind)()
    cut(similarity, rows, 3)  # the first call imports packages, which takes memory of its own
    foreseen.clear()
    n_vertices = rows.n_rows + (rows.n_clusters if kind == "BipartiteMETIS" else 0)
    # tracemalloc does not count the memory that METIS itself allocates
    parts = SimpleNamespace(vertex_part=np.arange(n_vertices) % 3)
    monkeypatch.setattr(MODULE, "_call_metis", lambda *graph, **options: parts)
    cut.refuse_too_many(rows, 3, "diagonal")
    assert peak_of(lambda: cut(similarity, rows, 3)) < foreseen[0]


def test_out_of_memory_is_one_sentence_and_not_metiss(monkeypatch, capfd):
    def full(*_, **__):
        os.write(2, b"***Memory allocation failed for SetupCoarseGraph: adjncy. Requested size: 31984000 bytes\n")
        raise RuntimeError("Caught an unknown exception!")

    monkeypatch.setattr(pymetis, "part_graph", full)
    refused(lambda: metis(random_graph(6), ones(6), 2), MemoryError, "METIS ran out of memory", "Sample")
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="POSIX signals")
def test_sigterm_while_metis_works_reaches_who_waits_for_it(monkeypatch):
    """The stand-in leaves the signal handler by a jump, as METIS does, so that the signal stays blocked."""

    def told(*_, **__):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        raise RuntimeError("Caught an unknown exception!")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pymetis, "part_graph", told)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            metis(random_graph(6), ones(6), 2)
        signal.signal(signal.SIGTERM, lambda *_: None)
        with pytest.raises(RuntimeError, match="told to end"):
            metis(random_graph(6), ones(6), 2)
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        signal.signal(signal.SIGTERM, before)


# --- sparse graphs ----------------------------------------------------------------------------------------------------


def test_a_sparse_graph_is_cut_as_the_dense_one():
    similarities = random_graph(80, 0.2)
    expected, with_diagonal = metis(similarities, ones(80), 4), coo_array(similarities + np.eye(80))
    for form in (csr_array(similarities), coo_array(similarities), with_diagonal):
        np.testing.assert_array_equal(metis(form, ones(80), 4), expected)
    for matrix, n, *parts in (
        (csr_array(np.triu(similarities)), 80, "must be symmetric"),
        (csr_array(-similarities), 80, "finite and at least 0"),
        (coo_array(similarities), 81, "(81, 81)", "(80, 80)"),
    ):
        refused(lambda matrix=matrix, n=n: metis(matrix, ones(n), 4), ValueError, *parts)


def literal_graphs(rows, weights):
    """Return the bipartite graph of rows and clusters, and the complete graph of rows."""
    incidence = oracles.incidence(rows.ensemble.to_array()).astype(float)
    n, n_clusters = incidence.shape
    bipartite = np.zeros((n + n_clusters, n + n_clusters))
    bipartite[:n, n:] = rows.counts[:, None] * incidence * weights
    similar = (incidence * weights) @ incidence.T / rows.n_clusterings
    np.fill_diagonal(similar, 0)
    return bipartite + bipartite.T, similar * np.outer(rows.counts, rows.counts)


def test_sparse_partitioners_cut_the_literal_graphs(monkeypatch, where):
    labels = structured_labels(150, 7, 3, noise=0.3, missing=0.1, seed=4)[0]
    rows = ge.CoreGroups().reduce(ge.Rows(labels, device=where)).rows
    similarity = ge.similarity.LWCA()(rows)
    bipartite, complete = literal_graphs(rows, similarity.weights)
    seen = []
    really = MODULE.metis
    monkeypatch.setattr(MODULE, "metis", lambda *given, **settings: seen.append(given) or really(*given, **settings))
    cut = ge.partition.BipartiteMETIS()(similarity, rows, 3)
    np.testing.assert_allclose(seen[0][0].toarray(), bipartite, atol=1e-12, rtol=0)
    assert seen[0][1].tolist() == [*rows.counts.tolist(), *[1] * rows.n_clusters]
    np.testing.assert_array_equal(cut.labels, by_first_row(really(bipartite, seen[0][1], 3)[: len(rows)]))
    ge.partition.NearestMETIS(neighbors=4)(similarity, rows, 3)
    near = seen[1][0].toarray()
    np.testing.assert_array_equal(near, near.T)
    np.testing.assert_allclose(near[near > 0], complete[near > 0], atol=1e-12, rtol=0)
    nearest, known = (-np.sort(-graph / rows.counts, axis=1)[:, :4] for graph in (complete, near))
    np.testing.assert_allclose(known, nearest, atol=1e-12, rtol=0)
    assert (near > 0).sum() < 0.3 * (complete > 0).sum()
    assert seen[1][1].tolist() == rows.counts.tolist()


@pytest.mark.parametrize("options", [{"method": "hbgf", "partition": "metis"}, {"method": "cspa", "neighbors": 8}])
def test_methods_by_sparse_graphs(options, monkeypatch):
    labels, truth = structured_labels(400, 8, 4, noise=0.15, split=3, missing=0.05, seed=11)
    for reduction, least in ((None, 0.85), (ge.Sample(150), 0.8)):
        assert ari(truth, ge.consensus(labels, 4, **options, imbalance=0.2, reduction=reduction)) > least
    assert len(set(ge.consensus(labels[:12], len(np.unique(labels[:12], axis=0)), **options))) > 9
    monkeypatch.setenv("GPUENS_MEMORY", "50kB")
    refused(lambda: ge.consensus(labels, 4, **options), MemoryError, "edges of ", "Sample")


def test_sparse_partitioners_refuse_what_they_cannot():
    labels = structured_labels(30, 5, 3)[0]
    refused(lambda: ge.CSPA(2, neighbors=17).fit(labels), ValueError, "neighbors must be from 1 to 16")
    refused(lambda: ge.HBGF(2, partition="kway").fit(labels), ValueError, "'transfer-cut', 'metis', not 'kway'")
    lists = ge.Consensus(2, similarity="coupled", partitioner=ge.partition.NearestMETIS())
    refused(lambda: lists.fit(labels), ValueError, "NearestMETIS needs a weight of each cluster")


@pytest.mark.parametrize(
    "fit",
    [
        ge.CSPA(3).fit,
        ge.CSPA(3, neighbors=4).fit,
        ge.HBGF(3, partition="metis").fit,
        ge.MCLA(3).fit,
        lambda labels: metis(random_graph(len(labels)), np.ones(len(labels), dtype=int), 3),
    ],
)
def test_without_pymetis_a_cut_says_what_to_do(fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    labels = structured_labels(30, 5, 3)[0]
    refused(lambda: fit(labels), ImportError, "METIS", f"{installing.command_for('pymetis')}, or", "conda-forge")
    ge.HBGF(3).fit(labels)
    assert ge.CSPA(3).parts().lacks == ge.MCLA(3).parts().lacks != ge.HBGF(3).parts().lacks is None
