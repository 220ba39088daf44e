"""Linkage of more clusterings than 16 bits count: trees are those of the matrix of few rows, and of literal sums."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.average import average_linkage
from gpuens.partition.linkage.nearest import nearest_index
from gpuens.partition.linkage.single import single_linkage
from gpuens.similarity.diagonal import Diagonal

N_ROWS, K = 20, 4


@pytest.fixture(params=[2**15, 65_534, 65_535, 65_536, 70_000])
def codes(request):
    """Return codes (n_clusterings, N_ROWS), for numbers of clusterings near the limits of sums."""
    rng = np.random.default_rng(0)
    truth, shape = rng.integers(K, size=N_ROWS), (request.param, N_ROWS)
    return np.where(rng.random(shape) < 0.5, truth, rng.integers(K, size=shape)).astype(np.uint8)


def rows_of(codes, device):
    return Rows.of_codes(codes.T, np.arange(len(codes) + 1) * K, np.ones(N_ROWS, np.int64), device)


@pytest.mark.parametrize(
    ("codes", "kind"),
    [(2**15, "ones"), (65_534, "real"), (65_535, "ones"), (65_535, "real"), (65_536, "ones"), (70_000, "real")],
    indirect=["codes"],
)
def test_average_linkage_by_lists_is_that_of_the_matrix_of_few_rows(codes, kind, sizes):
    n_clusters = K * len(codes)
    weights = np.random.default_rng(1).random(n_clusters) + 0.5 if kind == "real" else np.ones(n_clusters, np.int64)
    rows = rows_of(codes, "cpu")
    similarity = Diagonal(weights, rows.offsets)
    of_matrix = average_linkage(rows, similarity)
    sizes("partition.linkage.few_rows", MOST_ROWS=0)
    found = average_linkage(rows, similarity)
    np.testing.assert_array_equal(found.kept, of_matrix.kept)
    np.testing.assert_array_equal(found.absorbed, of_matrix.absorbed)
    np.testing.assert_array_equal(found.similarities, of_matrix.similarities)


def test_single_linkage_is_that_of_common_labels(codes):
    rows = rows_of(codes, "cpu")
    found = single_linkage(rows, Diagonal(np.ones(K * len(codes), np.int64), rows.offsets))
    apart = np.array([(codes != codes[:, i : i + 1]).sum(axis=0) for i in range(N_ROWS)])
    heights = linkage(squareform(apart), "single")[:, 2]
    np.testing.assert_array_equal(found.similarities, (len(codes) - heights) / len(codes))


def test_too_many_clusterings_are_refused(where):
    codes = np.zeros((2, 2**23 + 1), np.uint8)
    with pytest.raises(ValueError, match=r"8,388,609 clusterings, but nearest rows are searched in at most 8,388,608"):
        nearest_index(codes, np.arange(2**23 + 2), np.ones(2**23 + 1), np.ones(2, np.int64), device=where)
