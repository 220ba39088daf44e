"""Scores of label rows by tables of many columns, compared with plain code."""

import numpy as np
import pytest
from conftest import structured_labels

from gpuens.labels.ensemble import Ensemble
from gpuens.partition.linkage.comparisons import aligned_zeros
from gpuens.partition.linkage.nearest import Shortlists, nearest_index, nearest_lists
from gpuens.runtime.native import cpu

FLOAT_LANES = 16


@pytest.mark.parametrize(("lanes", "dtype"), [(cpu.LANES, np.uint8), (cpu.LANES, np.uint16), (FLOAT_LANES, np.float32)])
def test_rows_of_a_table_begin_where_cache_lines_do(lanes, dtype):
    tables = [aligned_zeros(n, lanes, dtype) for n in (1, 3, 500)]
    assert [table.shape for table in tables] == [(1, lanes), (3, lanes), (500, lanes)]
    assert not any(table.any() or table.ctypes.data % 64 for table in tables)


@pytest.mark.parametrize("n_clusterings", [9, 300])
@pytest.mark.parametrize("weights", ["ones", "real"])
def test_lists_by_chunks_equal_those_of_all_pairs(weights, n_clusterings, sizes):
    """The label rows fill several chunks, tiles and blocks of lanes.

    Some rows lack labels, are tied, or count for many objects.

    Matches in 300 clusterings exceed a byte.
    """
    sizes("partition.linkage.comparisons", CHUNK_CLUSTERINGS=1, CHUNK_BYTES=cpu.LANES * 20, UNDIVIDED_CHUNKS=1)
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
