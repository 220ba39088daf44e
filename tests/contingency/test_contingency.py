"""Cluster intersections, entropies and agreement, compared with literal loops over sets of objects."""

import itertools
import math
from contextlib import nullcontext
from fractions import Fraction
from functools import cache

import numpy as np
import oracles
import pandas
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from gpuens import Ensemble, contingency
from gpuens.labels.codes import cast_codes
from gpuens.labels.rows import Rows
from gpuens.runtime.native import cpu

SHAPES = [  # number of objects, numbers of clusters of the clusterings, share of missing labels
    (40, (3, 4, 2), 0.0),
    (40, (3, 4, 2), 0.3),
    (30, (12, 1, 20, 5), 0.1),
    (400, (300, 7, 260), 0.05),  # codes are uint16, and tables may be sparse
    (60, (6, 9, 3), 0.1, 8),  # the first 8 objects: some clusters are empty
]


def random_labels(n_objects, n_clusters, missing, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.column_stack([rng.integers(0, k, n_objects) for k in n_clusters])
    labels[rng.random(labels.shape) < missing] = -1
    labels[:, 0] = np.where((labels == -1).all(axis=1), 0, labels[:, 0])  # every object has at least one label
    return labels


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}-{shape[2]}", scope="module")
def ens(request):
    n_objects, n_clusters, missing, *n_taken = request.param
    with pytest.warns(UserWarning, match="constant") if 1 in n_clusters else nullcontext():
        ensemble = Ensemble(random_labels(n_objects, n_clusters, missing))
    return ensemble.take(slice(*n_taken)) if n_taken else ensemble


# --- slow and obvious oracles -----------------------------------------------------------------------------------------


@cache
def clusters_of(ens):
    """Return the set of objects of each cluster, and the clustering that each cluster belongs to."""
    labels, sets, owner = ens.to_array(), [], []
    for m in range(ens.n_clusterings):
        for code in range(ens.offsets[m + 1] - ens.offsets[m]):
            sets.append({x for x in range(ens.n_objects) if labels[x, m] == code})
            owner.append(m)
    return sets, owner


@cache
def common_objects(ens):
    """Return the objects that each two clusters have in common, in order."""
    sets, _ = clusters_of(ens)
    return [[sorted(c & d) for d in sets] for c in sets]


def naive_intersections(ens, weights=None):
    w = np.ones(ens.n_objects, dtype=np.int64) if weights is None else weights
    return np.array([[w[common].sum() for common in row] for row in common_objects(ens)])


def naive_entropy(ens, weights=None):
    w = np.ones(ens.n_objects) if weights is None else weights
    clusterings = np.array(clusters_of(ens)[1])
    result = []
    for row in naive_intersections(ens, w):
        h = 0.0
        for m in range(ens.n_clusterings):
            shared = row[clusterings == m].tolist()
            h -= sum(s / sum(shared) * math.log2(s / sum(shared)) for s in shared if s > 0)
        result.append(h)
    return np.array(result)


def dense(table):
    """Return a table as an array; a sparse one must be canonical: in order and without zeros."""
    if isinstance(table, np.ndarray):
        return table
    canonical = sparse.csr_array(table.toarray())
    np.testing.assert_array_equal(table.indices, canonical.indices)
    np.testing.assert_array_equal(table.indptr, canonical.indptr)
    return table.toarray()


# --- intersections ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [2**22, 0])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_intersections_are_those_of_the_sets_of_objects(ens, layout, cells, sizes):
    from_dense = contingency.agreement(ens, "nmi"), contingency.agreement(ens, "ari")
    sizes("contingency.labels", DENSE_CELLS=cells)  # tables of more cells are sparse
    shared = contingency.intersections(ens, layout=layout)
    assert shared.dtype == np.int64
    assert sparse.issparse(shared) == (layout == "sparse")
    np.testing.assert_array_equal(dense(shared), naive_intersections(ens))
    np.testing.assert_allclose(contingency.entropy(ens), naive_entropy(ens), rtol=1e-13, atol=1e-13)
    for score, expected in zip(("nmi", "ari"), from_dense, strict=True):
        np.testing.assert_array_equal(contingency.agreement(ens, score), expected)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_integer_weights_repeat_the_objects(ens, layout):
    copies = np.random.default_rng(1).integers(1, 4, ens.n_objects)
    repeated = ens.take(np.repeat(np.arange(ens.n_objects), copies))
    shared = contingency.intersections(ens, copies, layout=layout)
    assert shared.dtype == np.int64
    np.testing.assert_array_equal(dense(shared), dense(contingency.intersections(repeated)))
    np.testing.assert_array_equal(contingency.entropy(ens, copies), contingency.entropy(repeated))
    for score in ("nmi", "ari"):
        weighted, expected = contingency.agreement(ens, score, weights=copies), contingency.agreement(repeated, score)
        np.testing.assert_allclose(weighted, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_real_weights(ens, layout):
    w = np.random.default_rng(2).random(ens.n_objects) + 0.1
    found = contingency.intersections(ens, w, layout=layout)
    assert found.dtype == np.float64
    np.testing.assert_allclose(dense(found), naive_intersections(ens, w), rtol=1e-13)
    np.testing.assert_allclose(contingency.entropy(ens, w), naive_entropy(ens, w), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_clusters", [(30, 70, 3), (9,), (5, 5)])
def test_few_intersections_are_those_of_the_sparse_layout(n_clusters):
    rows = Rows(random_labels(400, n_clusters, 0.2), device="cpu")
    weights = np.random.default_rng(0).random(400)
    expected = contingency.intersections(rows.ensemble, weights, layout="sparse")
    within = np.repeat(np.arange(len(n_clusters)), n_clusters)
    between = np.count_nonzero(expected.toarray() * (within[:, None] != within))
    found = contingency.clusters.few_intersections(rows, weights, between)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    if between:
        assert contingency.clusters.few_intersections(rows, weights, between - 1) is None


def test_one_clustering_and_one_object():
    np.testing.assert_array_equal(contingency.intersections([[0, 1, 1]]), [[1, 0], [0, 2]])
    np.testing.assert_array_equal(contingency.intersections([[0, 1, 1]], layout="sparse").toarray(), [[1, 0], [0, 2]])
    assert contingency.entropy([[0, 1, 1]]).tolist() == [0, 0]
    assert contingency.agreement([[0, 1, 1]]).tolist() == [[1]]
    single = Ensemble(np.array([[4]]))
    assert contingency.intersections(single).tolist() == [[1]]


def test_auto_is_sparse_above_the_limit(sizes):
    labels = random_labels(100, (40, 30), 0)
    assert isinstance(contingency.intersections(labels), np.ndarray)
    sizes("contingency.clusters", DENSE_BYTES=8 * 50**2)
    assert sparse.issparse(contingency.intersections(labels))


@pytest.mark.parametrize(
    ("n_objects", "n_clusters", "layout", "hint"),
    [
        (1000, (20, 20), "dense", "layout='sparse'"),
        (1000, (20, 20), "sparse", "contingency.pair_tables"),
        (40, (6,) * 50, "sparse", "which holds a few pairs"),
    ],
)
def test_what_does_not_fit_is_refused_uncounted(n_objects, n_clusters, layout, hint, calls, monkeypatch):
    ens = Ensemble(list(random_labels(n_objects, n_clusters, 0).T))
    monkeypatch.setenv("GPUENS_MEMORY", "9kB" if len(n_clusters) == 2 else "200kB")
    with pytest.raises(MemoryError, match=hint):
        contingency.intersections(ens, layout=layout)
    assert not calls or len(n_clusters) == 2  # the cells of few tables are counted


def test_unknown_arguments_are_refused():
    labels = random_labels(20, (3, 3), 0)
    for call, sentence in (
        (lambda: contingency.intersections(labels, layout="csr"), "layout must be one of"),
        (lambda: contingency.intersections(labels, device="gpu"), "device must be one of"),
        (lambda: contingency.intersections(labels, np.zeros(20)), "weights must be positive"),
        (lambda: contingency.agreement(labels, "accuracy"), "score must be one of"),
        (lambda: contingency.agreement(labels, average="harmonic"), "average must be one of"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()


@pytest.mark.parametrize("weighted", [False, True])
def test_one_clustering_against_all(ens, weighted):
    w = np.random.default_rng(5).integers(1, 4, ens.n_objects) if weighted else None
    whole = naive_intersections(ens, w)
    for m, columns in enumerate(itertools.starmap(slice, itertools.pairwise(ens.offsets))):
        np.testing.assert_array_equal(contingency.clusters.intersections_with(ens, m, w), whole[:, columns])


# --- many clusterings -------------------------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """Record the number of tables in each counting: many pairs need few calls, because Python is slow."""
    found, over_cells = [], cpu.over_cells

    def counted(*given):
        *given, work = given
        over_cells(*given, lambda cells: found.append(len(cells[2]) - 1) or work(cells))

    monkeypatch.setattr(cpu, "over_cells", counted)
    return found


def by_products(ens, weights=None):
    """Return the intersections as products of a one-hot matrix."""
    one_hot = np.zeros((ens.n_objects, ens.n_clusters + 1))
    clusters = np.where(ens.codes == ens.missing_code, ens.n_clusters, ens.codes + ens.offsets[:-1])
    one_hot[np.arange(ens.n_objects)[:, None], clusters] = 1
    weighted = one_hot if weights is None else weights[:, None] * one_hot
    return (one_hot.T @ weighted)[:-1, :-1]


@pytest.mark.parametrize("most", [2**26, 0])
def test_tables_of_few_cells_are_counted_by_bits_where_these_fit(most, sizes):
    """Small tables stand beside larger ones, over several blocks of words with an incomplete last block."""
    ens = Ensemble(random_labels(17_001, (2, 3, 14, 15, 30, 14, 2, 5, 100, 101), 0.2))
    sizes("contingency.counting", MARKED_BYTES=most)
    np.testing.assert_array_equal(contingency.intersections(ens, layout="dense"), by_products(ens))


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("n_objects", [60, 300, 20_000])
@pytest.mark.parametrize("k", [100, 101, 150, 200, 201])
def test_a_table_of_few_cells_may_have_many_clusters(n_objects, k):
    """One cluster beside ``k``, as in a sweep of resolutions: at most 200 cells, but clusters without bits."""
    labels = np.random.default_rng(0).integers(5, size=(n_objects, 9))
    labels[:, 3], labels[:, 6] = 0, np.arange(n_objects) % min(k, n_objects)
    for order in (range(9), [0, 1, 2, 6, 4, 5, 3, 7, 8]):
        ens = Ensemble(labels[:, order])
        np.testing.assert_array_equal(contingency.intersections(ens, layout="dense"), by_products(ens))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_tables_of_more_cells_than_objects_are_counted_cluster_by_cluster(dtype):
    """Some clusters share objects with many other clusters, some with few, and some with one."""
    ens = Ensemble(random_labels(600, (14, 200, 250), 0.1))
    ens = Ensemble.of_codes(cast_codes(ens.codes, np.dtype(dtype)), ens.categories, ens.names)
    shared = by_products(ens)
    k = np.diff(ens.offsets)
    assert k[0] * k[2] > 4 * len(ens)
    n_cells = (shared > 0)[:, -k[2] :].sum(axis=1)[: -k[2]]
    # 16 counts are scanned in the time of sorting one number (kernels/cpu/contingency/intersections.cpp)
    assert n_cells.min() * 16 < k[2] < n_cells.max() * 16
    for layout in ("dense", "sparse"):
        np.testing.assert_array_equal(dense(contingency.intersections(ens, layout=layout)), shared)


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_no_pair_of_clusterings_costs_a_call(calls, monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "2")
    labels = random_labels(12, (4,) * 120, 0.2)
    ens = Ensemble(list(labels.T))
    n_pairs = 120 * 119 // 2
    for work in (
        lambda: contingency.entropy(ens),
        lambda: contingency.intersections(ens),
        lambda: contingency.agreement(ens, "ari"),
    ):
        calls.clear()
        work()
        assert sum(calls) == n_pairs
        assert len(calls) < n_pairs / 40
    np.testing.assert_allclose(contingency.entropy(ens), oracles.entropy(labels), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_neither_threads_nor_how_much_is_counted_at_once_change_a_bit(weights, calls, monkeypatch):
    """Small tables come several at a time, tables of many cells one at a time."""
    ens, rng = Ensemble(random_labels(1500, (3, 200, 2, 300, 150, 9, 4, 2, 250, 5), 0.1)), np.random.default_rng(6)
    w = {None: None, "whole": rng.integers(1, 9, ens.n_objects), "real": rng.random(ens.n_objects) + 0.1}[weights]
    expected = None
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        results = [
            contingency.intersections(ens, w, layout="dense"),
            contingency.intersections(ens, w, layout="sparse").toarray(),
            contingency.entropy(ens, w),
            contingency.agreement(ens, weights=w),
            contingency.agreement(ens, "ari", weights=w),
        ]
        assert {1, 2} < set(calls)
        expected = expected or results
        for result, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, other)
    np.testing.assert_array_equal(expected[0], expected[1])
    np.testing.assert_allclose(expected[0], by_products(ens, w))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_entropies_of_intersections_counted_before_have_the_same_bits(ens, layout, weighted, sizes):
    w = np.random.default_rng(7).integers(1, 9, ens.n_objects) if weighted else None
    shared, expected = contingency.intersections(ens, w, layout=layout), contingency.entropy(ens, w)
    for rows in (2**22, 1):
        sizes("contingency.entropies", ROWS_AT_ONCE=rows)
        np.testing.assert_array_equal(contingency.entropies.entropy_of(shared, ens.offsets), expected)


@pytest.mark.parametrize("n_objects", [9, 63, 64, 65])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_entropies_of_clusters_that_are_words_have_the_same_bits(n_objects, missing, sizes):
    """Up to 64 objects a cluster is a word, unless labels are missing."""
    columns = list(random_labels(n_objects, (5, 3, 9, 4) * 4, missing).T)
    ens = Ensemble([*columns, *columns[:4]])
    found = contingency.entropy(ens)
    np.testing.assert_allclose(found, naive_entropy(ens), rtol=1e-13, atol=1e-13)
    sizes("contingency.entropies", WORD_BITS=0)
    np.testing.assert_array_equal(contingency.entropy(ens, np.ones(n_objects, dtype=int)), found)


@pytest.mark.parametrize("score", ["ari", "nmi"])
def test_agreement_is_that_of_each_table(ens, score):
    of_table = {"ari": contingency.ari_of, "nmi": contingency.nmi_of}[score]
    expected = np.eye(ens.n_clusterings)
    for i, j, table in contingency.pair_tables(ens):
        expected[i, j] = expected[j, i] = of_table(table)
    found = contingency.agreement(ens, score)
    if score == "ari":  # integers decide
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [2**22, 0])
def test_pair_tables_come_in_order_and_cells_read_both_kinds(ens, cells, sizes):
    sizes("contingency.labels", DENSE_CELLS=cells)
    wanted, kinds, pairs = naive_intersections(ens), set(), []
    for i, j, table in contingency.pair_tables(ens):
        pairs.append((i, j))
        kinds.add(sparse.issparse(table))
        block = wanted[ens.offsets[i] : ens.offsets[i + 1], ens.offsets[j] : ens.offsets[j + 1]]
        rows, cols, counts = contingency.cells(table)
        assert table.shape == block.shape
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(np.column_stack([rows, cols]), np.argwhere(block))
        np.testing.assert_array_equal(counts, block[block > 0])
    assert pairs == list(itertools.combinations(range(ens.n_clusterings), 2))
    assert kinds <= ({False} if cells else {False, True})
    assert (True in kinds) == (np.prod(np.sort(np.diff(ens.offsets))[-2:]) > max(cells, 4 * ens.n_objects))


def test_a_small_budget_makes_small_batches_and_the_same_tables(monkeypatch):
    ens = Ensemble(random_labels(200, (20,) * 7, 0.1))
    roomy = list(contingency.pair_tables(ens))
    monkeypatch.setenv("GPUENS_MEMORY", "32kB")
    assert [len(batch) for batch in contingency.labels.batches(contingency.labels.labels_of(ens))] == [2] * 10 + [1]
    for (*pair, table), (*same_pair, same) in zip(roomy, contingency.pair_tables(ens), strict=True):
        assert pair == same_pair
        np.testing.assert_array_equal(table, same)


def test_wide_codes_where_every_object_is_its_own_cluster():
    n = 66_000
    labels = np.column_stack([np.arange(n), np.arange(n) // 2, np.arange(n) % 3])
    ens = Ensemble(labels)
    assert ens.codes.dtype == np.uint32
    shared = contingency.intersections(ens)
    assert sparse.issparse(shared)
    incidence = sparse.csr_array((np.ones(3 * n, int), (labels + ens.offsets[:-1]).ravel(), np.arange(0, 3 * n + 1, 3)))
    assert (shared != incidence.T @ incidence).nnz == 0
    h = contingency.entropy(ens)
    np.testing.assert_array_equal(h[:n], 0)  # a cluster of one object has no uncertainty
    np.testing.assert_array_equal(h[n : n + n // 2], 2)  # two clusterings separate the two objects of the cluster
    np.testing.assert_allclose(h[-3:], 2 * np.log2(n / 3), rtol=1e-14)


def test_table_of_labels_of_many_kinds():
    column = ["x", "y", "y", None, "x"]
    numbers = [1, 7, 7, -1, 1], np.array([0.0, 3, 3, np.nan, 0])
    for a in (column, ("x", "y", "y", np.nan, "x"), *numbers, pandas.Series(pandas.Categorical(column))):
        flags = [True, False, False, True, None]
        for b in (flags, np.array([9, 8, 8, 9, -1], dtype=np.int8), pandas.Series(flags, dtype="boolean")):
            table = contingency.table(a, b)
            assert table.dtype == np.int64
            assert table.tolist() == [[0, 1], [2, 0]]


# --- entropy ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_entropy_is_that_of_equations_7_to_9(any_labels, where):
    h = contingency.entropy(any_labels, device=where)
    assert h.dtype == np.float64
    np.testing.assert_allclose(h, oracles.entropy(any_labels), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("cells", [0, 40, 10**6])
@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_entropy_on_each_device_is_the_same_to_the_bit(weights, cells, where, sizes):
    """A device lists the cells of all dense tables at once; only tables of few cells are dense here."""
    sizes("contingency.labels", DENSE_CELLS=cells)
    rng = np.random.default_rng(6)
    labels = random_labels(30, (4, 30, 7, 25, 3, 9, 30), 0.2)
    given = {None: None, "whole": rng.integers(1, 9, 30), "real": rng.integers(1, 9, 30) / 4}[weights]
    found = contingency.entropy(labels, given, device=where)
    np.testing.assert_array_equal(found, contingency.entropy(labels, given, device="cpu"))
    np.testing.assert_allclose(found, naive_entropy(Ensemble(labels), given), rtol=1e-12, atol=1e-12)


def test_entropy_reproduces_table_1_to_the_printed_digits(table_one):
    printed = [2.56, 0.00, 0.72, 0.97, 0.92, 1.95, 1.85, 1.44, 0.00]
    assert contingency.entropy(table_one).round(2).tolist() == printed


def test_a_cluster_labelled_nowhere_else_has_no_entropy():
    ens = Ensemble([[0, 0, 1, 1], [-1, -1, 0, 1]])
    assert contingency.entropy(ens).tolist() == [0, 1, 0, 0]


def test_no_order_changes_a_bit_of_the_entropy():
    rng = np.random.default_rng(3)
    labels = random_labels(500, (9, 30, 4, 17, 60), 0.1)
    ens = Ensemble(labels)
    h = contingency.entropy(ens)
    np.testing.assert_array_equal(contingency.entropy(ens.take(rng.permutation(500))), h)
    columns = rng.permutation(5)
    moved = np.concatenate([np.arange(ens.offsets[m], ens.offsets[m + 1]) for m in columns])
    np.testing.assert_array_equal(contingency.entropy(labels[:, columns]), h[moved])
    reversed_names = np.where(labels < 0, -1, labels.max(axis=0) - labels)
    backwards = np.concatenate([np.arange(ens.offsets[m + 1] - 1, ens.offsets[m] - 1, -1) for m in range(5)])
    np.testing.assert_array_equal(contingency.entropy(reversed_names), h[backwards])


# --- agreement --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["geometric", "max", "arithmetic", "min"])
def test_agreement_is_scikit_learns_over_the_objects_labelled_in_both(ens, average):
    labels = ens.to_array()
    nmi, ari = contingency.agreement(ens, average=average), contingency.agreement(ens, score="ari")
    for i, j in itertools.product(range(ens.n_clusterings), repeat=2):
        both = (labels[:, [i, j]] >= 0).all(axis=1)
        a, b = labels[both, i], labels[both, j]
        assert nmi[i, j] == pytest.approx(normalized_mutual_info_score(a, b, average_method=average), abs=1e-12)
        assert ari[i, j] == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)


def test_clusterings_without_a_common_object_have_no_agreement():
    found = contingency.agreement([[0, 1, -1, -1], [-1, -1, 0, 1], [0, 0, 1, 1]], "ari")
    assert np.isnan(found[0, 1])
    assert found[0, 2] == 0


def test_ari_counts_pairs_exactly_where_int64_would_overflow():
    table = np.array([[3_000_000_000, 5], [7, 4_000_000_001]])
    pairs = lambda x: sum(Fraction(int(n) * (int(n) - 1), 2) for n in np.ravel(x))  # noqa: E731
    index, rows, cols, all_pairs = pairs(table), pairs(table.sum(1)), pairs(table.sum(0)), pairs(table.sum())
    expected = rows * cols / all_pairs
    assert contingency.ari_of(table) == float((index - expected) / ((rows + cols) / 2 - expected))


def test_independent_clusterings_share_no_information_and_empty_tables_have_no_score():
    assert contingency.nmi_of(np.outer([3, 5, 7], [11, 13])) == 0
    assert math.isnan(contingency.nmi_of(np.zeros((2, 3), dtype=np.int64)))
    assert math.isnan(contingency.ari_of(np.zeros((0, 0), dtype=np.int64)))
