"""Sums of table rows in vector registers, and the scores of label rows and regions, compared with plain code."""

import numpy as np
import pytest
from conftest import structured_labels

from gpuens.labels.ensemble import Ensemble
from gpuens.partition.linkage.comparisons import label_scores
from gpuens.partition.linkage.nearest import Shortlists, nearest_index, nearest_lists
from gpuens.runtime.compiled import njit
from gpuens.runtime.lanes import (
    FLOAT_LANES,
    LANES,
    aligned_zeros,
    at_least,
    lowest,
    nothing,
    plus,
    plus_times,
    plus_vector,
    plus_where,
    reaching,
    scaled_sum,
    store,
    widened,
)


@njit()
def sum_of_rows(table, rows, sums):
    total = nothing(table)
    for i in rows:
        total = plus(total, table, i)
    store(widened(total, sums), sums, 1)


@njit()
def multiples(table, rows, factors, sums):
    even, odd = nothing(table), nothing(table)
    for i in range(len(rows)):
        even = plus_times(even, table, rows[i], factors[i])
        odd = plus_times(odd, table, rows[i], 1.0)
    store(scaled_sum(even, odd, 0.5), sums, 0)


@njit()
def matches(labels, of_query, units, sums):
    even, odd = nothing(sums), nothing(sums)
    for m in range(len(labels)):
        even = plus_where(even, labels, m, of_query[m], units[m])
        odd = plus_where(odd, labels, m, of_query[m], units[0])
    store(plus_vector(even, odd), sums, 1)


@njit()
def lanes_reaching(sums, limits):
    hits, found = reaching(sums, 1, limits, 0), []
    while hits:
        found.append(lowest(hits))
        hits &= hits - np.uint64(1)
    return found


@njit()
def bits_at_least(sums, limit):
    return at_least(sums, 1, limit)


@pytest.mark.parametrize(("lanes", "dtype"), [(LANES, np.uint8), (LANES, np.uint16), (FLOAT_LANES, np.float32)])
def test_rows_of_a_table_begin_where_cache_lines_do(lanes, dtype):
    tables = [aligned_zeros(n, lanes, dtype) for n in (1, 3, 500)]
    assert [table.shape for table in tables] == [(1, lanes), (3, lanes), (500, lanes)]
    assert not any(table.any() or table.ctypes.data % 64 for table in tables)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_vectors_of_whole_numbers(dtype):
    table = np.random.default_rng(1).integers(0, 60, (9, LANES)).astype(dtype)
    rows = np.array([3, 0, 8, 3])
    sums = np.zeros((3, LANES), dtype=np.uint16)
    sum_of_rows(table, rows, sums)
    expected = table[rows].sum(axis=0)
    np.testing.assert_array_equal(sums, [0 * expected, expected, 0 * expected])
    limits = np.full((1, LANES), 100, dtype=np.uint16)
    assert lanes_reaching(sums, limits) == np.flatnonzero(expected >= 100).tolist()
    assert lanes_reaching(sums, limits * 0) == list(range(LANES))  # the last of the 64 lanes is also reported
    for limit in (0, 100, 65_535):
        assert bits_at_least(sums, limit) == sum(1 << int(j) for j in np.flatnonzero(expected >= limit))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("code", [np.uint8, np.uint16])
def test_labels_of_many_rows_are_compared_with_one(code, dtype):
    rng = np.random.default_rng(3)
    labels = rng.integers(250, 254, (5, LANES)).astype(code)
    of_query, units = rng.integers(250, 254, 5).astype(code), rng.integers(1, 20, 5).astype(dtype)
    sums = np.zeros((3, LANES), dtype=dtype)
    matches(labels, of_query, units, sums)
    expected = (labels == of_query[:, None]).T @ (units + units[0])
    np.testing.assert_array_equal(sums, [0 * expected, expected, 0 * expected])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_of_real_numbers(dtype):
    rng = np.random.default_rng(2)
    table, rows, factors = rng.random((9, FLOAT_LANES)).astype(dtype), np.array([4, 4, 7]), rng.random(3)
    sums = np.zeros((2, FLOAT_LANES), dtype=dtype)
    multiples(table, rows, factors, sums)
    expected = 0.5 * (table[rows] * (factors[:, None] + 1)).sum(axis=0)
    np.testing.assert_allclose(sums[0], expected, rtol=8 * np.finfo(dtype).eps)
    middle = np.sort(sums[0])[7]
    assert bits_at_least(sums[::-1].copy(), middle) == sum(1 << int(j) for j in np.flatnonzero(sums[0] >= middle))
    assert lanes_reaching(sums[::-1].copy(), expected[None].astype(dtype) * dtype(0.999)) == list(range(FLOAT_LANES))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("units", [np.uint8, np.uint16])
def test_scores_of_label_rows_in_pieces(units, dtype):
    """The clusterings are scored in two pieces: the second piece adds its scores to the scores of the first piece."""
    rng = np.random.default_rng(3)
    k = np.array([3, 7, 2, 5, 4])
    starts = np.concatenate([[0], np.cumsum(k)])
    rows, queries = (np.column_stack([rng.integers(0, n, size) for n in k]).astype(dtype) for size in (20, LANES))
    worth = rng.integers(1, 40, starts[-1])
    which = rng.permutation(20)
    sums = np.full((10, LANES), 999, dtype=np.uint16)
    for begin, end in ((0, 2), (2, 5)):
        table = np.zeros((starts[end] - starts[begin], LANES), dtype=units)
        for m in range(begin, end):
            clusters = starts[m] + queries[:, m]
            table[clusters - starts[begin], np.arange(LANES)] = worth[clusters]
        label_scores(rows, which, 11, 8, starts, begin, end, starts[begin], table, sums, 1)
    matches = rows[which[11:19], None, :] == queries[None]
    expected = (matches * worth[starts[:-1] + queries]).sum(axis=2)
    np.testing.assert_array_equal(sums[1:9], expected)
    assert (sums[[0, 9]] == 999).all()


@pytest.mark.parametrize("n_clusterings", [9, 300])
@pytest.mark.parametrize("weights", ["ones", "real"])
def test_lists_by_chunks_equal_those_of_all_pairs(weights, n_clusterings, sizes):
    """The label rows fill several chunks, tiles and blocks of lanes.

    Some rows lack labels, are tied, or count for many objects.

    Matches in 300 clusterings exceed a byte.
    """
    sizes("comparisons", LABELS=1, CHUNK=LANES * 20, WHOLE=1)
    labels = np.unique(structured_labels(300, n_clusterings, 5, noise=0.4, missing=0.1, seed=3)[0], axis=0)
    labels[0] = labels[1] = 0  # rows 0 and 1 differ only in their last label
    labels[1, -1] = 1
    ensemble = Ensemble(labels)
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 5, len(labels))
    if weights == "ones":
        worth = np.ones(ensemble.n_clusters, dtype=np.int64)
    else:
        worth = rng.uniform(0.1, 1, ensemble.n_clusters)
    index = nearest_index(ensemble.codes, ensemble.offsets, worth, sizes)
    assert len(index.chunks) > 3
    lists = nearest_lists(index, 6)
    known = labels >= 0
    clusters = np.where(known, ensemble.codes + ensemble.offsets[:-1], 0)
    similarity = np.zeros((len(labels),) * 2)
    for m in range(labels.shape[1]):  # the search adds the similarities in the same order
        same = (labels[:, None, m] == labels[None, :, m]) & known[:, None, m]
        similarity += same * worth[clusters[:, m]]
    np.fill_diagonal(similarity, -1)
    best = -np.sort(-similarity, axis=1)[:, :6] / labels.shape[1]
    np.testing.assert_allclose(lists.similarities, best, rtol=1e-14)
    listed = np.take_along_axis(similarity, lists.ids.astype(np.int64), axis=1) / labels.shape[1]
    np.testing.assert_allclose(lists.similarities, listed, rtol=1e-14)
    np.testing.assert_array_equal(lists.bound, lists.similarities[:, -1])


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize("merged", [False, True])
def test_nearest_rows_of_many_segments(weights, merged):
    """There are more than 64 segments of 64 tiles.

    Most segments, and the query's own component, are excluded as a whole.
    """
    rng = np.random.default_rng(5)
    along = rng.random((270_000, 1))
    labels = ((along + 0.01 * rng.random((270_000, 8))) * rng.integers(20, 90, 8)).astype(np.int64)
    ensemble = Ensemble(labels)
    worth = np.ones(ensemble.n_clusters, dtype=np.int64)
    if weights == "real":
        worth = rng.uniform(0.5, 1, ensemble.n_clusters)
    index = nearest_index(ensemble.codes, ensemble.offsets, worth, np.ones(len(labels), dtype=np.int64))
    queries = index.order[[*range(1000, 1064), *range(268_000, 268_064)]]  # two blocks of lanes
    component = (40 * along[:, 0]).astype(np.int64) if merged else np.arange(len(labels))
    lists = Shortlists.empty(len(labels), 5)
    index.search(queries, component, np.zeros(len(queries)), lists)
    for q in queries[::11]:
        similarity = np.zeros(len(labels))
        for m in range(labels.shape[1]):  # the search adds the similarities in the same order
            same = ensemble.codes[:, m] == ensemble.codes[q, m]
            similarity += same * worth[ensemble.offsets[m] + ensemble.codes[q, m]]
        similarity[component == component[q]] = -1
        best = -np.sort(-np.partition(similarity, -5)[-5:]) / labels.shape[1]
        np.testing.assert_allclose(lists.similarities[q], best, rtol=1e-14)
        assert len(set(lists.ids[q])) == 5
        np.testing.assert_allclose(similarity[lists.ids[q]] / labels.shape[1], best, rtol=1e-14)
    if not merged:  # the bounds of single tiles alone would take this many comparisons
        assert index.comparisons < len(queries) * labels.size / 64
