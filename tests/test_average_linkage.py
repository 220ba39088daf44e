"""Average linkage without N × N against the greedy algorithm on all pairs, and against SciPy."""

import tracemalloc

import numpy as np
import oracles
import pytest
import scipy.cluster.hierarchy
from conftest import MANY_SHAPES, random_labels, structured_labels
from sklearn.metrics import adjusted_rand_score as ari

import gpuens
from gpuens.ensemble import Ensemble
from gpuens.partition import Work, average_linkage
from gpuens.partition.average import _Rounds
from gpuens.partition.nearest import bytes_needed, nearest_index, nearest_lists
from gpuens.partition.regions import regions_of
from gpuens.reduction import core_groups


def dendrogram_of(labels, weights=None, device="cpu", **kwargs):
    ensemble = Ensemble(labels)
    reduced = core_groups(ensemble)
    if weights is None:
        weights = np.ones(ensemble.n_clusters, dtype=np.int64)
    codes = reduced.ensemble.codes_on(device)
    return average_linkage(codes, ensemble.offsets, weights, reduced.weights, device=device, **kwargs), reduced


def random_weights(labels, seed=0):
    return np.random.default_rng(seed).uniform(0.05, 1.0, Ensemble(labels).n_clusters)


def merges_of(dendrogram):
    pairs = np.sort(np.column_stack([dendrogram.kept, dendrogram.absorbed]), axis=1)
    return [(a, b, s) for (a, b), s in zip(pairs.tolist(), dendrogram.similarities.tolist(), strict=True)]


def test_unit_weights_equal_the_greedy_algorithm_bit_for_bit(any_labels, where):
    found, _ = dendrogram_of(any_labels, device=where)
    assert merges_of(found) == oracles.greedy_average_linkage(any_labels).merges


def test_real_weights_equal_the_greedy_algorithm_bit_for_bit(any_labels, where):
    weights = random_weights(any_labels)
    found, _ = dendrogram_of(any_labels, weights, where)
    expected = oracles.greedy_average_linkage(any_labels, weights)
    assert [merge[:2] for merge in merges_of(found)] == [merge[:2] for merge in expected.merges]
    np.testing.assert_array_equal(found.similarities, expected.heights)


@pytest.mark.parametrize("n_listed", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", ["noise", "structured", "missing"])
def test_short_lists_and_several_tiles_change_nothing(monkeypatch, shape, seed, n_listed, where):
    """Short lists run dry at once, so that unions of lists, falling bounds and searches all happen."""
    monkeypatch.setattr("gpuens.partition.average.N_LISTED", n_listed)
    labels = {
        "noise": lambda: random_labels(150, 6, (2, 7), seed=seed),
        "structured": lambda: structured_labels(150, 8, 4, noise=0.4, seed=seed)[0],
        "missing": lambda: structured_labels(150, 5, 4, noise=0.3, missing=0.3, seed=seed)[0],
    }[shape]()
    for weights in (None, random_weights(labels)):
        work = Work()
        found, reduced = dendrogram_of(labels, weights, where, work=work)
        assert len(reduced.weights) > 64
        assert work.searches > 0
        expected = oracles.greedy_average_linkage(labels, weights)
        assert [merge[:2] for merge in merges_of(found)] == [merge[:2] for merge in expected.merges]
        np.testing.assert_array_equal(found.similarities, expected.heights)


# where no two rows tie for nearest; a missing label or a clustering that refines another makes rows that do
@pytest.mark.parametrize("shape", ["noise", "few clusterings", "unequal k", "repeated rows", "structured"])
def test_real_weights_equal_scipy_on_all_pairs(shape):
    labels = MANY_SHAPES[shape]()
    weights = random_weights(labels)
    found, reduced = dendrogram_of(labels, weights)
    within = weights[reduced.ensemble.to_array() + reduced.ensemble.offsets[:-1]].sum(axis=1) / labels.shape[1]
    objects = found.expand(reduced.membership, within)
    literal = oracles.full_scipy_average(labels, weights)
    np.testing.assert_allclose(1 - objects.similarities, np.sort(literal[:, 2]), atol=1e-12, rtol=0)
    z = objects.linkage_matrix()
    assert scipy.cluster.hierarchy.is_valid_linkage(z)
    heights = literal[:, 2]
    compared = [k for k in range(2, len(labels)) if heights[-k + 1] - heights[-k] > 1e-9]  # elsewhere ties decide
    assert len(compared) > 5
    for k in compared:
        cut = scipy.cluster.hierarchy.cut_tree(z, k)[:, 0]
        assert ari(cut, scipy.cluster.hierarchy.cut_tree(literal, k)[:, 0]) == 1.0


@pytest.mark.parametrize("dtype_needed", [300, 70_000])
def test_wide_codes(dtype_needed):
    """uint16 and uint32 codes: one clustering has more clusters than a narrower dtype can number."""
    labels = np.repeat(structured_labels(60, 5, 3, seed=3)[0], 1, axis=0)
    wide = np.vstack([labels, np.zeros((dtype_needed, 5), dtype=np.int64)])
    wide[60:, 0] = 10 + np.arange(dtype_needed)
    ensemble = Ensemble(wide)
    first = ensemble.take(np.arange(60))
    reduced = core_groups(first)
    weights = np.ones(ensemble.n_clusters, dtype=np.int64)
    found = average_linkage(reduced.ensemble.codes, ensemble.offsets, weights, reduced.weights)
    assert ensemble.codes.dtype == (np.uint16 if dtype_needed == 300 else np.uint32)
    assert merges_of(found) == oracles.greedy_average_linkage(labels).merges


def test_threads_change_nothing(monkeypatch):
    labels = structured_labels(3000, 8, 6, noise=0.5, seed=1)[0]
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        found, _ = dendrogram_of(labels, random_weights(labels))
        results.append(merges_of(found))
    assert results[0] == results[1]


def test_label_comparisons_are_counted_and_few():
    """Fewer than one pass over all pairs, searches included, once rows have structure."""
    labels = structured_labels(6000, 10, 8, noise=0.15, split=4, seed=2)[0]
    work = Work()
    _, reduced = dendrogram_of(labels, work=work)
    assert 0 < work.comparisons < len(reduced.weights) ** 2 * 10
    assert 0 < work.rounds < 200


@pytest.mark.parametrize("method", ["average", "single"])
def test_what_does_not_fit_is_refused_before_it_starts(monkeypatch, method):
    labels = random_labels(500, 5, 9, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", "50kB")
    with pytest.raises(MemoryError, match=rf"{method} linkage of \d+ distinct rows of 5 labels needs .* 50\.0 kB may"):
        gpuens.EAC(3, linkage=method).fit(labels)


def test_the_estimate_of_memory_covers_what_is_allocated():
    labels = random_labels(20_000, 10, 40, seed=1)
    ensemble = Ensemble(labels)
    reduced = core_groups(ensemble)
    weights = np.ones(ensemble.n_clusters, dtype=np.int64)
    nearest_lists(nearest_index(reduced.ensemble.codes, ensemble.offsets, weights, reduced.weights), 16)  # compile
    tracemalloc.start()
    nearest_lists(nearest_index(reduced.ensemble.codes, ensemble.offsets, weights, reduced.weights), 16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    needed = bytes_needed(reduced.ensemble.codes, ensemble.n_clusters, 16)
    assert 0.5 * needed < peak < 1.3 * needed


def test_a_circle_of_nearest_neighbours_is_broken_by_the_best_pair():
    """Rounding can only make one where similarities differ in the last bit; here it is put in by hand."""
    labels = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 1, 2]])
    ensemble = Ensemble(labels)
    sizes = np.ones(4, dtype=np.int64)
    weights = np.ones(ensemble.n_clusters)
    lists = nearest_lists(nearest_index(ensemble.codes, ensemble.offsets, weights, sizes), 3)
    rounds = _Rounds(lists, regions_of(ensemble.codes, ensemble.offsets, sizes), weights, 3, Work(), "cpu")
    rounds.nearest[:] = [1, 2, 3, 0]
    rounds.nearest_similarity[:] = [0.3, 0.4, 0.5, 0.2]
    kept, absorbed, merged_at = rounds.merge_reciprocal_pairs()
    assert (kept.tolist(), absorbed.tolist(), merged_at.tolist()) == ([2], [3], [0.5])
    assert rounds.active.tolist() == [0, 1, 2]


# --- any symmetric S --------------------------------------------------------------------------------------------------


def general_dendrogram(labels, similarity, device="cpu", work=None):
    ensemble = Ensemble(labels)
    reduced = core_groups(ensemble)
    codes = reduced.ensemble.codes_on(device)
    found = average_linkage(codes, ensemble.offsets, similarity, reduced.weights, device=device, work=work)
    return found, reduced


def whole_similarity(n_clusters, kind, seed=0):
    """Return whole numbers, whose sums are exact: of both signs, or all negative."""
    s = np.random.default_rng(seed).integers(-4, 5, (n_clusters, n_clusters))
    s = {"both signs": s, "negative": -9 - abs(s)}[kind]
    return np.triu(s) + np.triu(s, 1).T


@pytest.mark.parametrize(("kind", "n_listed"), [("both signs", 2), ("negative", 16)])
def test_any_similarity_equals_the_greedy_algorithm_bit_for_bit(any_labels, n_listed, kind, where, monkeypatch):
    """Ties included, and negative similarities in their order."""
    monkeypatch.setattr("gpuens.partition.average.N_LISTED", n_listed)
    similarity = whole_similarity(Ensemble(any_labels).n_clusters, kind)
    found, _ = general_dendrogram(any_labels, similarity.astype(np.float64), where)
    expected = oracles.greedy_average_linkage(any_labels, similarity=similarity)
    assert [merge[:2] for merge in merges_of(found)] == [merge[:2] for merge in expected.merges]
    np.testing.assert_array_equal(found.similarities, expected.heights)


@pytest.mark.parametrize(("n_listed", "seed"), [(1, 0), (2, 1), (16, 2)])
def test_any_similarity_of_real_numbers(n_listed, seed, where, monkeypatch):
    monkeypatch.setattr("gpuens.partition.average.N_LISTED", n_listed)
    labels = structured_labels(80, 6, 4, noise=0.4, missing=0.1, seed=seed)[0]
    s = np.random.default_rng(seed).uniform(-1, 1, (Ensemble(labels).n_clusters,) * 2)
    s += s.T
    work = Work()
    found, _ = general_dendrogram(labels, s, where, work)
    expected = oracles.average_linkage_of_all_pairs(labels, oracles.revised_coassociation(labels, s))
    np.testing.assert_allclose(found.similarities, expected.heights, rtol=0, atol=1e-12)
    assert [merge[:2] for merge in merges_of(found)] == [merge[:2] for merge in expected.merges]
    assert (found.similarities < 0).any()
    assert n_listed == 16 or work.searches > 0


def test_a_diagonal_in_full_is_the_diagonal():
    labels = structured_labels(300, 8, 4, noise=0.3, seed=1)[0]
    weights = random_weights(labels)
    found, _ = general_dendrogram(labels, np.diag(weights))
    expected, _ = dendrogram_of(labels, weights)
    np.testing.assert_allclose(found.similarities, expected.similarities, rtol=0, atol=1e-14)


def test_any_similarity_that_does_not_fit_is_refused_before_it_starts(monkeypatch):
    labels = random_labels(500, 5, 9, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", "200kB")
    with pytest.raises(MemoryError, match=r"average linkage of \d+ distinct rows of 5 labels needs .*CATree.*Sample"):
        general_dendrogram(labels, np.eye(45))
