"""Average linkage without N × N, compared with the greedy algorithm on all pairs and with SciPy."""

from contextlib import nullcontext

import numpy as np
import oracles
import pytest
import scipy.cluster.hierarchy
from conftest import MANY_SHAPES, peak_of, random_labels, refused, structured_labels, thorough
from sklearn.metrics import adjusted_rand_score as ari

import gpuens
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows, as_rows
from gpuens.partition import Work, average_linkage
from gpuens.partition.linkage import conduct, nearest
from gpuens.partition.linkage.conduct import Conduct, RowIndex
from gpuens.partition.linkage.dendrogram import empty_merges
from gpuens.partition.linkage.locality import locality_order
from gpuens.partition.linkage.nearest import bytes_needed, nearest_index, nearest_lists
from gpuens.partition.linkage.regions import bounding_weights
from gpuens.reduction import core_groups
from gpuens.runtime.device import to_host
from gpuens.runtime.native import cpu
from gpuens.similarity import eci
from gpuens.similarity.diagonal import Diagonal
from gpuens.similarity.full import Full

pytestmark = pytest.mark.usefixtures("by_lists")


def dendrogram_of(labels, weights=None, device="cpu", **kwargs):
    ensemble = Ensemble(labels)
    reduced = core_groups(Rows(ensemble))
    if weights is None:
        weights = np.ones(ensemble.n_clusters, dtype=np.int64)
    rows = as_rows(reduced.rows, device)
    return average_linkage(rows, Diagonal(weights, rows.offsets), **kwargs), reduced


def random_weights(labels, seed=0):
    return np.random.default_rng(seed).uniform(0.05, 1.0, Ensemble(labels).n_clusters)


def merges_of(dendrogram):
    pairs = np.sort(np.column_stack([dendrogram.kept, dendrogram.absorbed]), axis=1)
    return [(a, b, s) for (a, b), s in zip(pairs.tolist(), dendrogram.similarities.tolist(), strict=True)]


def assert_greedy(labels, weights, dendrogram, similarity=None):
    """Assert that the merges are those of the greedy algorithm on all pairs of rows, to the bit."""
    expected = oracles.greedy_average_linkage(labels, weights, similarity=similarity)
    assert [merge[:2] for merge in merges_of(dendrogram)] == [merge[:2] for merge in expected.merges]
    np.testing.assert_array_equal(dendrogram.similarities, expected.heights)


def test_merges_equal_the_greedy_algorithm_bit_for_bit(any_labels, where):
    for weights in (None, random_weights(any_labels)):
        assert_greedy(any_labels, weights, dendrogram_of(any_labels, weights, where)[0])


def labels_with_single_rows(kind):
    """Return labels whose clusters have one row each in one clustering or two."""
    labels = structured_labels(120, 4, 4, noise=0.2, missing=0.1 * (kind == "missing"), seed=7)[0]
    number = np.random.default_rng(1).permutation(120)
    if kind == "two, of half":
        return np.column_stack([labels[:, :2], np.where(number < 60, number, 0), np.where(number > 40, number, 200)])
    if kind == "alone":
        return np.column_stack([np.zeros(120, dtype=int), number])
    return np.column_stack([labels[:, :3], np.where(number < 12, -1, number) if kind == "missing" else number])


@pytest.mark.filterwarnings("ignore:.*one cluster:UserWarning")
@pytest.mark.parametrize("few", [1500, 0])
@pytest.mark.parametrize("kind", ["identifier", "missing", "two, of half", "alone"])
def test_rows_that_differ_only_in_clusters_of_one_row_are_one_leaf(sizes, kind, few, where):
    """Such rows are tied. If each were a leaf, each round would merge only one pair."""
    sizes("partition.linkage.few_rows", MOST_ROWS=few)
    labels, work = labels_with_single_rows(kind), Work()
    weights = random_weights(labels)
    dendrogram, reduced = dendrogram_of(labels, weights, where, work=work)
    assert len(reduced.counts) > 60
    assert work.rounds < 30
    if kind == "missing":  # missing labels cause further ties, which rounding decides
        oracles.assert_greedy_up_to_rounding(labels, weights, merges_of(dendrogram))
    else:
        assert_greedy(labels, weights, dendrogram)


@pytest.mark.parametrize("n_listed", [1, *thorough(2), 5])
@pytest.mark.parametrize("shape", ["noise", "structured", "missing"])
def test_short_lists_and_several_tiles_change_nothing(sizes, shape, n_listed, where):
    """Short lists of neighbours are soon empty. Then the linkage unites lists, uses lower bounds and searches again."""
    sizes("partition.linkage.conduct", N_LISTED=n_listed)
    labels = {
        "noise": lambda: random_labels(100, 6, (2, 7), seed=0),
        "structured": lambda: structured_labels(100, 8, 4, noise=0.4, seed=1)[0],
        "missing": lambda: structured_labels(100, 5, 4, noise=0.3, missing=0.3, seed=2)[0],
    }[shape]()
    for weights in (None, random_weights(labels)):
        work = Work()
        dendrogram, reduced = dendrogram_of(labels, weights, where, work=work)
        assert len(reduced.counts) > 64
        assert work.searches > 0
        assert_greedy(labels, weights, dendrogram)


@pytest.mark.parametrize("tables", [1, 4])
@pytest.mark.parametrize("shape", ["noise", "missing", "repeated", "alike", "large regions", "many objects a row"])
def test_searches_by_rows_find_the_nearest(sizes, shape, tables):
    """Searches by rows compare all regions with 64 queries at once, in chunks of clusterings."""
    labels = {
        "noise": lambda: random_labels(250, 9, (2, 7), seed=1),
        "missing": lambda: random_labels(250, 6, (2, 6), missing=0.2, seed=2),
        "repeated": lambda: random_labels(300, 7, (3, 5), distinct=150, seed=3),
        # the sums of one row (7 objects × 20 clusterings) fit in a byte, but the sums of a union of two rows do not
        "alike": lambda: structured_labels(120, 20, 3, noise=0.05, seed=5)[0].repeat(7, axis=0),
        "many objects a row": lambda: random_labels(100_000, 7, (3, 5), distinct=150, seed=3),  # sums exceed 16 bits
        "large regions": lambda: structured_labels(250, 12, 3, noise=0.2, missing=0.1, seed=4)[0],
    }[shape]()
    sizes("partition.linkage.conduct", N_LISTED=3)
    sizes("partition.linkage.comparisons", CHUNK_CLUSTERINGS=1, CHUNK_BYTES=2**11)
    sizes("partition.linkage.comparisons", UNDIVIDED_CHUNKS=1, TABLE_BYTES=2**14 // tables)
    for weights in (None, random_weights(labels)):
        with conduct.only("rows"):
            assert_greedy(labels, weights, dendrogram_of(labels, weights)[0])


@pytest.mark.parametrize(
    "shape", ["noise", "missing", "repeated rows", "large regions", *thorough("many labels"), "few objects each"]
)
def test_searches_by_tiles_find_the_nearest(sizes, shape):
    """Tiles hold either the current regions or regions of an earlier round, which have merged since."""
    labels = {
        "noise": lambda: structured_labels(250, 12, 5, noise=0.3, seed=1)[0],
        "missing": lambda: random_labels(250, 6, (2, 6), missing=0.2, seed=2),
        "repeated rows": lambda: random_labels(12_000, 7, (3, 5), distinct=150, seed=3),  # sums exceed 16 bits
        "large regions": lambda: structured_labels(250, 12, 3, noise=0.2, missing=0.1, seed=4)[0],
        "many labels": lambda: random_labels(700, 5, (300, 400), seed=5),
        "few objects each": lambda: random_labels(300, 40, (2, 3), seed=6),
    }[shape]()
    for weights in (None, random_weights(labels)):
        for tile, ceilings in ((8, 2**26), (64, 2**26), (64, 2**10)):  # few ceilings make tiles larger
            sizes("partition.linkage.conduct", N_LISTED=3, TILE_ROWS=tile, MOST_CEILINGS=ceilings)
            with conduct.only("tiles"):
                assert_greedy(labels, weights, dendrogram_of(labels, weights)[0])


@pytest.mark.parametrize("kind", ["tiles", "rows"])
def test_more_clusterings_than_16_bits_can_sum(kind):
    labels = random_labels(60, 4200, 3, seed=1)
    with conduct.only(kind):
        assert_greedy(labels, None, dendrogram_of(list(labels.T))[0])


def test_the_kind_of_search_changes_from_round_to_round():
    """Bounds exclude little among rows, and much among the regions of later rounds."""
    labels, _ = structured_labels(3000, 12, 8, noise=0.1, seed=1)
    trees, comparisons = [], set()
    for chosen in (nullcontext(), conduct.only("tiles"), conduct.only("rows")):
        work = Work()
        with chosen:
            trees.append(merges_of(dendrogram_of(labels, work=work)[0]))
        comparisons.add(work.comparisons)
    assert trees[0] == trees[1] == trees[2]
    assert len(comparisons) == 3


def test_like_rows_are_side_by_side(where):
    labels, truth = structured_labels(4000, 10, 8, noise=0.3, missing=0.1, seed=1)
    codes = Ensemble(labels)
    order = to_host(locality_order(codes.codes_on(where), codes.offsets, device=where))
    assert sorted(order.tolist()) == list(range(4000))

    def alike(order):
        """Return the mean number of objects of the most frequent class in a tile."""
        return np.mean([np.bincount(tile).max() for tile in truth[order][: 4000 // 64 * 64].reshape(-1, 64)])

    assert alike(order) > max(0.85 * 64, 1.2 * alike(np.lexsort(labels.T)))


def test_an_order_of_rows_saves_comparisons_and_depends_on_no_thread(monkeypatch):
    ensemble = Ensemble(structured_labels(20_000, 10, 8, noise=0.15, missing=0.1, seed=2)[0])  # more rows than sampled
    ones = np.ones(ensemble.n_clusters, dtype=np.int64), np.ones(20_000, dtype=np.int64)

    def comparisons(order):
        monkeypatch.setattr(nearest, "locality_order", lambda *_: order)
        index = nearest_index(ensemble.codes, ensemble.offsets, *ones)
        nearest_lists(index, 4)
        return index.comparisons

    orders = []
    for threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        orders.append(locality_order(ensemble.codes, ensemble.offsets))
    np.testing.assert_array_equal(*orders)
    np.testing.assert_array_equal(np.sort(orders[0]), np.arange(20_000))
    assert comparisons(orders[0]) < 0.4 * comparisons(np.random.default_rng(0).permutation(20_000))


@pytest.mark.filterwarnings("ignore:.*one cluster:UserWarning")
@pytest.mark.parametrize("n", [3, 31, 64, 65, 1000])
def test_any_number_of_rows_can_be_put_in_order(n, where):
    ensemble = Ensemble(random_labels(n, 3, 5, missing=0.3, seed=n))
    order = locality_order(ensemble.codes_on(where), ensemble.offsets, device=where)
    np.testing.assert_array_equal(np.sort(to_host(order)), np.arange(n))


@pytest.mark.parametrize("n_nodes", [1, 2, 100])
def test_nodes_of_reverse_neighbors_may_run_out(n_nodes, sizes):
    """Regions whose nearest region stays the nearest wait in heaps, which are built anew when no node is left."""
    labels = structured_labels(400, 12, 3, noise=0.15, missing=0.1, seed=5)[0]
    sizes("partition.linkage.conduct", NODES_PER_REGION=n_nodes)
    for weights in (None, random_weights(labels)):
        assert_greedy(labels, weights, dendrogram_of(labels, weights)[0])


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("objects_each", [1, 2])
def test_an_identifier_among_the_clusterings(objects_each, place, where):
    names = np.random.default_rng(3).permutation(150) // objects_each
    labels = np.insert(structured_labels(150, 3, 4, noise=0.3, seed=2)[0], place, names, axis=1)
    assert_greedy(labels, None, dendrogram_of(labels, device=where)[0])
    weights = random_weights(labels)
    oracles.assert_greedy_up_to_rounding(labels, weights, merges_of(dendrogram_of(labels, weights, where)[0]))


def test_clusters_of_one_row_cost_no_comparisons():
    """Clusters of one row bring no rows together, and tables of such clusters for all tiles would take long."""
    labels = structured_labels(400, 3, 4, noise=0.3, seed=2)[0]
    work = Work(), Work()
    with conduct.only("rows"):
        dendrogram_of(np.unique(labels, axis=0), work=work[0])
        dendrogram_of(np.insert(labels, 1, np.arange(400), axis=1), work=work[1])
    assert work[1].comparisons <= 400**2 * 6


def test_an_identifier_does_not_defeat_the_screen():
    """If the first column is an identifier, sorting puts dissimilar rows next to each other.

    Tiles must still hold similar rows.
    """
    labels, names = structured_labels(4000, 4, 8, noise=0.05, seed=4)[0], np.random.default_rng(5).permutation(4000)
    first, last = Work(), Work()
    for work, place in ((first, 0), (last, 4)):
        dendrogram_of(np.insert(labels, place, names // 2, axis=1), work=work)
    assert first.comparisons < min(1.5 * last.comparisons, 0.7 * 4000**2 * 5)


# Shapes without ties. (Missing labels, or a clustering that refines another, make several rows equally near.)
@pytest.mark.parametrize("shape", ["noise", "few clusterings", "unequal k", "repeated rows", "structured"])
def test_real_weights_equal_scipy_on_all_pairs(shape):
    labels = MANY_SHAPES[shape]()
    weights = random_weights(labels)
    found, reduced = dendrogram_of(labels, weights)
    within = weights[reduced.ensemble.to_array() + reduced.ensemble.offsets[:-1]].sum(axis=1) / labels.shape[1]
    objects = found.expand(reduced.row_of, within)
    literal = oracles.full_scipy_average(labels, weights)
    np.testing.assert_allclose(1 - objects.similarities, np.sort(literal[:, 2]), atol=1e-12, rtol=0)
    z = objects.linkage_matrix()
    assert scipy.cluster.hierarchy.is_valid_linkage(z)
    heights = literal[:, 2]
    compared = [k for k in range(2, len(labels)) if heights[-k + 1] - heights[-k] > 1e-9]  # ties decide the other cuts
    assert len(compared) > 5
    for k in compared:
        cut = scipy.cluster.hierarchy.cut_tree(z, k)[:, 0]
        assert ari(cut, scipy.cluster.hierarchy.cut_tree(literal, k)[:, 0]) == 1.0


THETAS = [0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.022, 0.05, 0.1, 0.2, 0.4, 1.0, 10.0]


@pytest.mark.filterwarnings("ignore:theta=")
@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("n_listed", [2, *thorough(16)])
def test_weights_far_apart_are_merged_as_the_greedy_algorithm_would(theta, n_listed, where, sizes):
    """A small θ makes weights as small as 1e-100, below the range of float32: bounds must not become 0."""
    sizes("partition.linkage.conduct", N_LISTED=n_listed)
    labels = structured_labels(70, 10, 6, noise=0.3, seed=1)[0]
    weights = eci(labels, theta)
    found, _ = dendrogram_of(labels, weights, where)
    oracles.assert_greedy_up_to_rounding(labels, weights, merges_of(found))


@pytest.mark.parametrize("theta", [theta for theta in THETAS if theta >= 0.01])
def test_lwea_with_any_theta_equals_all_pairs_in_extended_precision(theta):
    """Exponents of extended precision (x87) can hold any ECI, without a lower limit."""
    labels = structured_labels(70, 10, 4, noise=0.3, seed=3)[0]
    h = oracles.entropy(labels).astype(np.longdouble)
    weights = np.exp(-h / (np.longdouble(theta) * labels.shape[1]))
    assert (weights.min() < 1e-45) == (theta < 0.02)
    expected = oracles.average_linkage_of_all_pairs(labels, oracles.coassociation(labels, weights))
    est = gpuens.LWEA(4, theta=theta).fit(labels)
    heights = expected.heights.astype(np.float64)
    np.testing.assert_allclose(est.dendrogram_.similarities, heights, rtol=1e-11)
    n_groups = est.reduction_.n_representatives
    compared = [k for k in range(2, n_groups) if heights[n_groups - k] < heights[n_groups - k - 1] * (1 - 1e-9)]
    assert len(compared) > 20  # ties decide the other cuts
    for k in compared:
        np.testing.assert_array_equal(est.dendrogram_.cut(k), oracles.cut(expected.merges, n_groups, k))


@pytest.mark.filterwarnings("ignore:theta=")
@pytest.mark.parametrize("theta", [0.001, 0.01, 0.02])
def test_tiny_theta_on_more_rows_than_lists_hold(theta):
    """A bound of 0 once let a region retire while it was the nearest of others, which crashed the interpreter."""
    est = gpuens.LWEA(6, theta=theta).fit(structured_labels(400, 10, 6, noise=0.3, seed=1)[0])
    assert est.n_clusters_ == 6
    assert len(est.dendrogram_.similarities) == est.reduction_.n_representatives - 1


def test_a_floor_of_eci_that_shows_is_warned_of():
    labels = structured_labels(70, 10, 4, noise=0.3, seed=3)[0]
    sentence = r"^theta=0.001 is so small that \d+ of \d+ clusters have the smallest ECI, 1e-100, .*\.$"
    with pytest.warns(UserWarning, match=sentence):
        assert eci(labels, 0.001).min() == 1e-100
    np.testing.assert_allclose(eci(labels, 0.01), oracles.eci(labels, 0.01), rtol=1e-10)


def test_bounding_weights_are_upper_bounds_whose_products_are_normal():
    smallest_share = 2.0**-32
    for weights in (np.geomspace(1e-100, 1, 50), np.geomspace(1e-12, 1e3, 50), np.ones(3, dtype=np.int64)):
        found, unit = bounding_weights(weights)
        assert found.dtype == np.float32
        assert (found.astype(np.float64) * (1 + 2.0**-23) >= weights * unit).all()
        assert 0.5 <= found.max() <= 1
        assert found.min() * smallest_share**2 >= np.finfo(found.dtype).tiny
    unclipped = bounding_weights(np.geomspace(1e-10, 1, 5))
    np.testing.assert_allclose(unclipped.weights, np.geomspace(1e-10, 1, 5) * unclipped.unit, rtol=1e-7)


def test_what_64_bits_cannot_hold_is_refused():
    reduced = core_groups(Rows(random_labels(20, 4, 3, seed=1)))
    rows, ones = reduced.rows, np.ones(reduced.ensemble.n_clusters)
    for bad in (0.0, 1e-160, 1e160, np.nan, np.inf, -1.0):
        weights = np.where(np.arange(len(ones)) == 1, bad, ones)
        with pytest.raises(ValueError, match=r"^weights differ too much .* must be from 1e-150 to 1e\+150; .*\.$"):
            average_linkage(rows, Diagonal(weights, rows.offsets))
    largest = 2**31 - 1  # counts of histograms are int32
    fits, heavy = (
        Rows.of(rows.ensemble, np.append(total - len(rows) + 1, np.ones(len(rows) - 1, dtype=np.int64)), "cpu")
        for total in (largest, largest + 1)
    )
    assert (average_linkage(fits, Diagonal(ones, rows.offsets)).similarities >= 0).all()
    refused(
        lambda: average_linkage(heavy, Diagonal(ones, rows.offsets)), ValueError, "divide the weights",
        "adds up to 2.1475e+09, but average linkage of 4 clusterings counts at most 2.1475e+09",
    )  # fmt: skip


@pytest.mark.parametrize(("n_more", "dtype"), [(300, np.uint16), (70_000, np.uint32)])
def test_wide_codes(n_more, dtype):
    """Codes are wide because one clustering has too many clusters for a narrower dtype."""
    labels = structured_labels(60, 5, 3, seed=3)[0]
    wide = np.vstack([labels, np.zeros((n_more, 5), dtype=np.int64)])
    wide[60:, 0] = 10 + np.arange(n_more)
    ensemble = Ensemble(wide)
    assert ensemble.codes.dtype == dtype
    diagonal = Diagonal(np.ones(ensemble.n_clusters, dtype=np.int64), ensemble.offsets)
    assert_greedy(labels, None, average_linkage(core_groups(Rows(ensemble.take(np.arange(60)))).rows, diagonal))


def test_threads_change_nothing(monkeypatch):
    labels, trees = structured_labels(3000, 8, 6, noise=0.5, seed=1)[0], []
    for threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        trees.append(merges_of(dendrogram_of(labels, random_weights(labels))[0]))
    assert trees[0] == trees[1]


def test_label_comparisons_are_counted_and_few():
    """All rounds make few more comparisons than there are pairs of rows, although searches compare 64 rows at once."""
    labels = structured_labels(6000, 10, 8, noise=0.15, split=4, seed=2)[0]
    work = Work()
    _, reduced = dendrogram_of(labels, work=work)
    assert 0 < work.comparisons < len(reduced.counts) ** 2 * 10 * 1.3
    assert 0 < work.rounds < 200


@pytest.mark.parametrize("method", ["average", "single"])
def test_what_does_not_fit_is_refused_before_it_starts(monkeypatch, method):
    labels = random_labels(500, 5, 9, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", "50kB")
    with pytest.raises(MemoryError, match=rf"{method} linkage of \d+ distinct rows needs .* 50\.0 kB may"):
        gpuens.EAC(3, linkage=method).fit(labels)


def test_the_estimate_of_memory_covers_what_is_allocated():
    ensemble = Ensemble(random_labels(20_000, 10, 40, seed=1))
    reduced = core_groups(Rows(ensemble))
    rows = reduced.ensemble.codes, ensemble.offsets, np.ones(ensemble.n_clusters, dtype=np.int64), reduced.counts
    nearest_lists(nearest_index(*rows), 16)  # warm-up: packages are imported before memory is measured
    peak = peak_of(lambda: nearest_lists(nearest_index(*rows), 16))
    needed = bytes_needed(reduced.ensemble.codes, ensemble.n_clusters, 16)
    assert 0.5 * needed < peak < 1.3 * needed


def linked_from(first_lists):
    """Return the merges of four rows whose first lists ``first_lists`` has changed."""
    labels = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 1, 2]])
    ensemble = Ensemble(labels)
    weights = np.ones(ensemble.n_clusters)
    index = nearest_index(ensemble.codes, ensemble.offsets, weights, np.ones(4, dtype=np.int64))
    lists, merges = nearest_lists(index, 3), empty_merges(3)
    first_lists(lists)
    diagonal = cpu.Diagonal(weights, *bounding_weights(weights), 3)
    columns = np.ascontiguousarray(ensemble.codes.T)
    cpu.link_diagonal(columns, RowIndex.of(index), diagonal, lists, Conduct.of(index, 0), merges, lambda n: None)
    return [part.tolist() for part in merges]


def test_a_circle_of_nearest_neighbours_is_broken_by_the_best_pair():
    """Regions name each other as nearest in a circle only if rounding changes the last bit."""

    def circle(lists):
        lists.ids[:, 0], lists.similarities[:, 0] = [1, 2, 3, 0], [0.3, 0.4, 0.5, 0.2]

    kept, absorbed, similarities = linked_from(circle)
    assert (kept[0], absorbed[0], similarities[0]) == (2, 3, 0.5)
    assert len(kept) == 3


def test_a_bound_that_is_too_low_is_an_error_not_a_wrong_merge():
    """Regions 1 and 2 have nothing in common with others, as far as their lists tell, and retire."""

    def short(lists):
        lists.ids[:], lists.bound[:] = -1, 0.0
        lists.ids[0, 0], lists.similarities[0, 0] = 1, 0.5

    with pytest.raises(RuntimeError, match="found no nearest region for one of 1 regions"):
        linked_from(short)


# --- any symmetric S --------------------------------------------------------------------------------------------------


def general_dendrogram(labels, similarity, device="cpu", work=None):
    ensemble = Ensemble(labels)
    rows = as_rows(core_groups(Rows(ensemble)).rows, device)
    return average_linkage(rows, Full(similarity, ensemble.offsets), work=work)


def real_similarity(labels, seed):
    """Return a symmetric matrix of similarities from -2 to 2."""
    s = np.random.default_rng(seed).uniform(-1, 1, (Ensemble(labels).n_clusters,) * 2)
    return s + s.T


def whole_similarity(n_clusters, kind, seed=0):
    """Return a symmetric matrix of integers (of both signs, all negative, or all 0). Sums of integers are exact."""
    s = np.random.default_rng(seed).integers(-4, 5, (n_clusters, n_clusters))
    s = {"both signs": s, "negative": -9 - abs(s), "nothing": 0 * s}[kind]
    return np.triu(s) + np.triu(s, 1).T


@pytest.mark.parametrize(("kind", "n_listed"), [("both signs", 2), ("negative", 16), ("nothing", 4)])
def test_any_similarity_equals_the_greedy_algorithm_bit_for_bit(any_labels, n_listed, kind, where, sizes):
    """The greedy algorithm's order also holds for ties and negative similarities."""
    sizes("partition.linkage.conduct", N_LISTED=n_listed)
    similarity = whole_similarity(Ensemble(any_labels).n_clusters, kind)
    assert_greedy(any_labels, None, general_dendrogram(any_labels, similarity.astype(np.float64), where), similarity)


@pytest.mark.parametrize(("n_listed", "seed"), [(1, 0), (2, 1), (16, 2)])
def test_any_similarity_of_real_numbers(n_listed, seed, where, sizes):
    sizes("partition.linkage.conduct", N_LISTED=n_listed)
    labels = structured_labels(80, 6, 4, noise=0.4, missing=0.1, seed=seed)[0]
    s, work = real_similarity(labels, seed), Work()
    dendrogram = general_dendrogram(labels, s, where, work)
    expected = oracles.average_linkage_of_all_pairs(labels, oracles.revised_coassociation(labels, s))
    np.testing.assert_allclose(dendrogram.similarities, expected.heights, rtol=0, atol=1e-12)
    assert [merge[:2] for merge in merges_of(dendrogram)] == [merge[:2] for merge in expected.merges]
    assert (dendrogram.similarities < 0).any()
    assert n_listed == 16 or work.searches > 0


@pytest.mark.parametrize("exponent", [-700, -160, 160, 700])
def test_any_similarity_beyond_the_numbers_of_float32(exponent):
    """Bounds in float32, by which searches rule out most pairs, must hold beyond the range of float32."""
    labels = structured_labels(150, 6, 4, noise=0.4, missing=0.1, seed=3)[0]
    s = real_similarity(labels, 3)
    expected, scaled = general_dendrogram(labels, s), general_dendrogram(labels, s * 2.0**exponent)
    assert merges_of(scaled) == [(a, b, height * 2.0**exponent) for a, b, height in merges_of(expected)]


@pytest.mark.parametrize("n", [17, 65, 300, 1300])
def test_searches_under_any_similarity_have_few_queries_or_many(n):
    """Up to 16 queries share one vector, and 1,024 and more four vectors."""
    labels = structured_labels(n, 6, 4, noise=0.6, seed=n)[0]
    s = real_similarity(labels, n)
    dendrogram, rows = general_dendrogram(labels, s), core_groups(Rows(labels)).ensemble
    incidence = np.zeros((len(rows), len(s)))
    np.put_along_axis(incidence, rows.to_array() + rows.offsets[:-1], 1.0, axis=1)
    pairs = incidence @ s @ incidence.T / labels.shape[1]
    np.fill_diagonal(pairs, -np.inf)
    best = np.unravel_index(pairs.argmax(), pairs.shape)
    assert (dendrogram.kept[0], dendrogram.absorbed[0]) == tuple(sorted(best))
    np.testing.assert_allclose(dendrogram.similarities[0], pairs.max(), rtol=1e-12)
    assert len(dendrogram.kept) == len(rows) - 1


def test_a_diagonal_in_full_is_the_diagonal():
    labels = structured_labels(300, 8, 4, noise=0.3, seed=1)[0]
    weights = random_weights(labels)
    full, diagonal = general_dendrogram(labels, np.diag(weights)), dendrogram_of(labels, weights)[0]
    np.testing.assert_allclose(full.similarities, diagonal.similarities, rtol=0, atol=1e-14)


def test_any_similarity_that_does_not_fit_is_refused_before_it_starts(monkeypatch):
    labels = random_labels(500, 5, 9, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", "200kB")
    with pytest.raises(MemoryError, match=r"average linkage of \d+ distinct rows needs .*CATree.*Sample"):
        general_dendrogram(labels, np.eye(45))
