"""Every kernel compared with its CPU primitive, on the emulated device and, if there is one, on a GPU.

The sizes fill blocks unevenly: no row, one row, a warp, a warp and one row more, several blocks.
"""

import itertools
import math
import re
import sys
from collections.abc import Iterator
from fractions import Fraction

import emulator
import numpy as np
import pytest
import scipy.sparse
from conftest import (
    MANY_SHAPES,
    METHODS,
    distinct_rows,
    one_sentence,
    random_labels,
    refused,
    similarities,
    structured_labels,
    thorough,
)
from sklearn.base import clone

import gpuens as ge
from gpuens import contingency
from gpuens.cli import main
from gpuens.evidence.pairs import drawn_histogram, pair_histogram
from gpuens.generate.landmark_cut import landmark_products
from gpuens.generate.landmark_graph import nearest_landmarks
from gpuens.generate.landmark_lists import LandmarkLists
from gpuens.generate.shares import LandmarkTable, landmark_shares, nearest_by_shares
from gpuens.kmeans.lloyd import label_by_products, move_centers, sums_by_label
from gpuens.kmeans.plus_plus import plus_plus
from gpuens.kmeans.weighted import nearest_centers, restarts
from gpuens.labels import encoding, incidence
from gpuens.labels.edges import Edges
from gpuens.labels.rows import Rows, by_first_row
from gpuens.neighbors.refinement import pseudo_likelihood, sum_memberships, sum_squares, update_memberships
from gpuens.neighbors.walk import walk_step
from gpuens.partition import Work, average_linkage, single_linkage
from gpuens.partition.label_kmeans import nearest_centroids
from gpuens.partition.linkage import nearest, regions, rounds
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.partition.mixture import posteriors
from gpuens.partition.soft_memberships import (
    label_correspondences,
    label_memberships,
    soft_correspondences,
    soft_memberships,
)
from gpuens.reduction import find_rows
from gpuens.reduction.ca_tree import grow
from gpuens.reduction.core_groups import core_groups, pack_rows
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.exponentials import exponentials
from gpuens.runtime.native import cpu
from gpuens.similarity import CommonNeighbors, coupled, mapping, neighborhood, neighborhood_bits, ranks
from gpuens.similarity.blocks import Blocks, coupled_tile
from gpuens.similarity.diagonal import Diagonal, coassociation_tile
from gpuens.similarity.full import Full
from gpuens.similarity.observed import Observed
from gpuens.similarity.reference_sets import reference_sets

SIZES = [1, 31, 32, 33, 1000]
# ranges of k for each dtype of codes; small codes are converted to uint32
CODES = {"uint8": (2, 9), "uint16": (280, 300), "uint32": (2, 9)}
# Only thorough runs test uint32 codes, because the emulator takes seconds to compile some kernels for uint32.
SLOW_CODES = ["uint8", "uint16", *thorough("uint32")]


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Return the device for kernels: emulated or CUDA; test_gpu_parity tests all of them on the CuPy stand-in."""
    return request.param


def ensemble(n_objects, dtype="uint8", missing=0.2, n_clusterings=5, seed=0):
    """Return an ensemble with codes of the given dtype."""
    labels = random_labels(n_objects, n_clusterings, CODES[dtype], missing=missing * (n_objects > 1), seed=seed)
    ens = ge.Ensemble(list(labels.T))
    codes = ens.codes.astype(dtype, order="F")
    codes[ens.codes == ens.missing_code] = np.iinfo(dtype).max
    ens._copies = {"cpu": codes}
    return ens


def on_host(result):
    return devices.to_host(result)


def arrays(results):
    """Yield the host arrays of nested tuples, lists and generators."""
    for part in results if isinstance(results, (tuple, list, Iterator)) else [results]:
        yield from [on_host(part)] if part is results else arrays(part)


def compare(call, device, **tolerance):
    """Compare the results of ``call(where, xp)`` on a device with those on the CPU, and return these in a list."""
    found, expected = (list(arrays(call(where, devices.namespace(where)))) for where in (device, "cpu"))
    for one, other in zip(found, expected, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        if tolerance:
            np.testing.assert_allclose(one, other, **tolerance)
        else:
            np.testing.assert_array_equal(one, other)
    return expected


@pytest.fixture(params=[0, 300, 48 * 1024])
def shared_memory(request, sizes):
    """Limit shared memory, so that no table, only small tables, or all tables fit."""
    sizes("runtime.kernels", SHARED_BYTES=request.param)


pytestmark = [
    pytest.mark.kernels,
    pytest.mark.usefixtures("by_lists"),
    pytest.mark.filterwarnings("ignore:constant clusterings"),
    pytest.mark.filterwarnings("ignore:.*without links between them"),
    pytest.mark.filterwarnings("ignore:found only . of . clusters"),
]


def test_sums_of_many_points_are_those_of_float64(device):
    """Float32 is not enough: the sums of 581,000 points, computed as one float32 product, are wrong by 4e-7 or more."""
    rng, n = np.random.default_rng(0), 581_000
    X, counts = rng.random((n, 3), dtype=np.float32) + np.float32(0.5), rng.integers(1, 4, n)
    xp, centers = devices.namespace(device), np.array([[[0.7, 1.0, 1.0], [1.3, 1.0, 1.0]]])
    labels = xp.full((1, n), -1, dtype=np.int64)
    sums, weight, changed = nearest_centers(
        xp.asarray(X), xp.asarray(counts), xp.asarray(centers), labels, device=device
    )  # fmt: skip
    assert changed == n
    of = np.arange(2)[:, None] == on_host(labels)
    expected = (of * counts) @ X.astype(np.float64)
    assert np.abs(on_host(sums)[0] / expected - 1).max() < 1e-7
    np.testing.assert_array_equal(on_host(weight)[0, :, 0], of @ counts)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("n", [1, 33, 130])
def test_labels_by_products(n, k, dtype, device):
    """The products are small whole numbers, so that many scores are equal; the first of them counts."""
    rng, xp = np.random.default_rng(20), devices.namespace(device)
    products, half_squares = (rng.integers(0, 4, size).astype(dtype) for size in ((2, k, n), (2, k)))
    before, changed = rng.integers(k, size=(2, n + 7)), xp.zeros(1, dtype=np.uint64)
    expected = before.copy()
    expected[:, 4 : n + 4] = (products - half_squares[:, :, None]).argmax(axis=1)
    labels = xp.asarray(before.copy())
    label_by_products(xp.asarray(products), xp.asarray(half_squares), labels, 4, changed, device)
    np.testing.assert_array_equal(on_host(labels), expected)
    assert int(changed[0]) == np.count_nonzero(expected != before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "k", "shape"), [(1, 1, ()), (33, 5, (2,)), (130, 3, (1,))])
def test_sums_by_label(n, k, shape, weighted, dtype, device, sizes):
    """All numbers are small whole numbers, so that no sum is rounded; a chunk has 64 points."""
    sizes("kmeans.lloyd", CHUNK=64)
    rng, xp = np.random.default_rng(24), devices.namespace(device)
    points, weights = rng.integers(-3, 4, (n, 2)).astype(dtype), rng.integers(1, 9, n)
    labels, there = rng.integers(-1, k, (*shape, n)), xp.asarray(points)
    given = xp.asarray(weights) if weighted else None
    sums, weight = sums_by_label(xp.asarray(labels), k, there.__getitem__, given, device=device)
    own = (labels[..., None, :] == np.arange(k)[:, None]) * (weights if weighted else 1)
    assert sums.dtype == weight.dtype == np.float64
    np.testing.assert_array_equal(on_host(sums), own @ points)
    np.testing.assert_array_equal(on_host(weight)[..., 0], own.sum(axis=-1))


@pytest.mark.parametrize(("shape", "k", "d"), [((), 1, 1), ((3,), 5, 7), ((2,), 40, 9)])
def test_centers_move(shape, k, d, device):
    """Centers without weight stay, and so do those of starts that have settled."""
    rng, xp = np.random.default_rng(25), devices.namespace(device)
    centers, total = rng.standard_normal((2, *shape, k, d))
    weight, settled = rng.integers(0, 3, (*shape, k, 1)) / 2, rng.integers(0, 2, (*shape, 1, 1)).astype(bool)
    expected = np.where((weight > 0) & ~settled, total / np.maximum(weight, 1.0), centers)
    given = centers, total, weight, settled
    for found in (move_centers(*map(xp.asarray, given), device=device), move_centers(*given)):
        np.testing.assert_array_equal(on_host(found[0]), expected)
        np.testing.assert_array_equal(on_host(found[1]), (expected - centers) * (expected - centers))


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "n_columns"), [(0, 2), (1, 1), (33, 3), (5000, 2)])
def test_numbers_in_fixed_point(n, n_columns, dtype, by_column, device):
    """Fractions of units are rounded to the nearest whole number, and halves to the even one."""
    rng, xp = np.random.default_rng(23), devices.namespace(device)
    values = (rng.standard_normal((n, n_columns)) * 10.0 ** rng.integers(-25, 9, (n, n_columns))).astype(dtype)
    if n > 30:  # units of 2^-26 or 2^-19 in column 0
        values[:, 0], values[0, 0], values[1:5, 0] = 0.0, 2.0**30, [2.0**-27, 3 * 2.0**-27, 2.0**-20, -3 * 2.0**-20]
    whole, units = map(on_host, incidence.fixed_point(xp.asarray(values), n, by_column=by_column, device=device))
    columns = values.T if by_column else values.reshape(1, -1)
    expected = [2.0 ** (math.frexp(n * float(abs(column).max(initial=0.0)))[1] - 62) for column in columns]
    np.testing.assert_array_equal(units, expected)
    for found, column, unit in zip(whole.T if by_column else whole.reshape(1, -1), columns, units, strict=True):
        assert found.tolist() == [round(Fraction(value) / Fraction(unit)) for value in column.tolist()]


def plus_plus_by_hand(points, weights, first, uniform):
    """Choose centers of one start: draw points by the running sums of weighted squares, and keep the best of them."""
    chosen, squares = [first], ((points[:, None] - points) ** 2).sum(axis=2)
    for draws in uniform:
        reached = np.cumsum(squares[:, chosen].min(axis=1) * weights)
        drawn = [min(int((reached < draw * reached[-1]).sum()), len(points) - 1) for draw in draws]
        left = [(np.minimum(squares[:, chosen].min(axis=1), squares[:, x]) * weights).sum() for x in drawn]
        chosen.append(drawn[int(np.argmin(left))])
    return chosen


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_starts", [1, 3])
@pytest.mark.parametrize(("n", "d", "k", "trials"), [(1, 1, 1, 1), (1, 3, 4, 2), (33, 2, 40, 3), (130, 300, 5, 4)])
def test_plus_plus(n, d, k, trials, n_starts, dtype, device):
    """Numbers are multiples of 1/16, so that many sums are equal and none is rounded; some draws are above all sums."""
    rng, xp = np.random.default_rng(22), devices.namespace(device)
    points, weights = rng.integers(0, 3, (n, d)).astype(dtype), rng.integers(1, 4, n).astype(float)
    first, uniform = rng.integers(n, size=n_starts), rng.integers(0, 18, (n_starts, k - 1, trials)) / 16
    given = np.ascontiguousarray(points.T), weights
    found = on_host(plus_plus(*map(xp.asarray, given), first, uniform, device=device))
    expected = [plus_plus_by_hand(points, weights, *start) for start in zip(first.tolist(), uniform, strict=True)]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, plus_plus(*given, first, uniform))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 5), (40, 9), (40, 300)])
def test_labels_in_the_order_of_their_first_rows(n, k, device):
    """Many of the 300 labels have no row."""
    labels = np.random.default_rng(26).integers(k, size=n)
    expected = [list(dict.fromkeys(labels.tolist())).index(label) for label in labels]
    for n_labels in (None, k):
        found = by_first_row(devices.namespace(device).asarray(labels), n_labels)
        np.testing.assert_array_equal(on_host(found), expected)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", SIZES)
def test_products_with_incidence(n, dtype, device):
    ens, rng = ensemble(n, dtype), np.random.default_rng(1)
    of_clusters, of_rows = rng.standard_normal(ens.n_clusters), rng.standard_normal(n)
    table, counts = rng.standard_normal((ens.n_clusters, 3)), rng.integers(1, 100, n)

    def products(where, xp):
        codes = ens.codes_on(where)
        yield incidence.row_sums(codes, ens.offsets, of_clusters, device=where)
        yield incidence.row_lookups(codes, ens.offsets, table, device=where)
        yield incidence.cluster_sums(codes, ens.offsets, counts, device=where)

    def real_sums(where, xp):
        return incidence.cluster_sums(ens.codes_on(where), ens.offsets, of_rows, device=where)

    compare(products, device)
    compare(real_sums, device, rtol=0, atol=n * np.abs(of_rows).max() * 1e-15)


def test_cluster_sums_of_more_clusters_than_fit_a_block(device, sizes):
    sizes("runtime.kernels", SHARED_BYTES=32)
    ens, counts = ensemble(100), np.arange(100)
    compare(lambda where, xp: incidence.cluster_sums(ens.codes_on(where), ens.offsets, counts, device=where), device)


@pytest.mark.parametrize("dtype", SLOW_CODES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_intersections(n, dtype, weights, device):
    ens, rng = ensemble(n, dtype), np.random.default_rng(2)
    w = {None: None, "whole": rng.integers(1, 2**40, n), "real": rng.random(n) + 0.1}[weights]
    tolerance = {"rtol": 0, "atol": 1e-12} if weights == "real" else {}
    compare(lambda where, xp: contingency.intersections(ens, w, device=where), device, **tolerance)


@pytest.mark.parametrize("weights", [None, "whole"])
@pytest.mark.parametrize("dense_cells", [0, 40, 2**22])
@pytest.mark.parametrize("shared_bytes", [0, 160, 48 * 1024])
@pytest.mark.parametrize("most_pairs", [3, 2**15])
def test_intersections_where_tables_do_not_fit(weights, dense_cells, shared_bytes, most_pairs, device, sizes):
    ens = ensemble(9, n_clusterings=6)
    w = None if weights is None else np.arange(1, 10)
    expected = contingency.intersections(ens, w, device="cpu")
    sizes("contingency.labels", DENSE_CELLS=dense_cells)
    sizes("runtime.kernels", SHARED_BYTES=shared_bytes)
    sizes("contingency.kernel", MOST_PAIRS=most_pairs)
    np.testing.assert_array_equal(contingency.intersections(ens, w, device=device), expected)
    np.testing.assert_array_equal(contingency.intersections(ens, w, layout="sparse", device=device).toarray(), expected)


@pytest.mark.parametrize("n_clusterings", [1, 6])
def test_dense_intersections(n_clusterings, device):
    """The result is an array on the device, and it equals the host's result to the bit."""
    ens = ensemble(200, n_clusterings=n_clusterings)
    rows = Rows(ens, device=device)
    weights = rows.xp.asarray(np.random.default_rng(3).random(200) + 0.1)
    found = contingency.clusters.dense_intersections(rows, weights)
    assert devices.kind_of(found) == devices.kind_of(weights)
    expected = contingency.intersections(ens, devices.to_host(weights), "dense", device=device)
    np.testing.assert_array_equal(on_host(found), expected)


LABELLED = {  # One function for each dtype. Some labels are missing, and some are too large for the bit table.
    "uint8": lambda labels: np.maximum(labels, 0).astype(np.uint8),
    "int32": lambda labels: labels.astype(np.int32),
    "int64": lambda labels: np.where(labels == 5, 10**12, labels) - (labels == 6) * 9,
    "float64": lambda labels: np.where(labels < 0, np.nan, labels + 0.5 * (labels == 3)),
}


@pytest.mark.parametrize("dtype", LABELLED)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("n", "n_words"), [(1, 1), (33, 2), (700, 40)])
def test_tables_of_labels(n, n_words, order, dtype, device):
    labels = random_labels(n, 6, 31 * n_words, missing=0.2 * (n > 1), seed=n)
    labels = np.asarray(LABELLED[dtype](labels).T, order=order)
    on_device = devices.namespace(device).asarray(labels, order=order)
    tables, ranks = encoding.mark_labels(on_device, n_words, device=device)
    has_bit = (labels >= 0) & (labels < 32 * n_words) & (labels % 1 == 0)
    missing = (labels == -1) | (labels != labels)
    values = [np.unique(column[inside]) for column, inside in zip(labels, has_bit, strict=True)]
    for table, column_values in zip(on_host(tables), values, strict=True):
        bits = np.unpackbits(table[:-1].view(np.uint8), bitorder="little")
        np.testing.assert_array_equal(np.flatnonzero(bits), column_values)
    flags = missing.any(axis=1) + 2 * (~has_bit & ~missing).any(axis=1)
    np.testing.assert_array_equal(on_host(tables)[:, -1], flags)
    for dtype in (np.uint8, np.uint16, np.uint32):
        codes = on_host(encoding.write_codes(on_device, tables, ranks, dtype, device=device))
        for column, inside, column_values, column_codes in zip(labels, has_bit, values, codes.T, strict=True):
            expected = np.where(inside, np.searchsorted(column_values, column), np.iinfo(dtype).max).astype(dtype)
            np.testing.assert_array_equal(column_codes, expected, strict=True)


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_entropy_and_agreement(weights, device):
    ens, rng = ensemble(300), np.random.default_rng(3)
    w = {None: None, "whole": rng.integers(1, 50, 300), "real": rng.random(300) + 0.1}[weights]

    def scores(where, xp):
        return contingency.entropy(ens, w, device=where), contingency.agreement(ens, weights=w, device=where)

    compare(scores, device, **{"rtol": 1e-7} if weights == "real" else {})


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize(("n_rows", "n_cols"), [(1, 1), (8, 32), (9, 33), (31, 70), (0, 5), (5, 0)])
def test_coassociation_tile(n_rows, n_cols, dtype, device):
    ens = ensemble(100, dtype)
    weights = np.random.default_rng(4).random(ens.n_clusters)

    def tile(where, xp):
        codes = ens.codes_on(where)
        return coassociation_tile(codes[:n_rows], codes[50 : 50 + n_cols], ens.offsets, weights, device=where)

    compare(tile, device)


def test_coassociation_blocks(device):
    ens, blocks = ensemble(40), (ge.similarity.coassociation, ge.similarity.lwca)
    compare(lambda where, xp: [block(ens, rows=np.arange(0, 40, 3), device=where) for block in blocks], device)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_clusterings", [1, 5, 40])
def test_core_groups(n, n_clusterings, dtype, device):
    ens = ensemble(n, dtype, n_clusterings=n_clusterings)

    def reduced(where, xp):
        yield pack_rows(ens.codes_on(where), np.diff(ens.offsets) + 1, device=where)
        groups = core_groups(Rows(ens, device=where))
        yield groups.counts, groups.ensemble.codes, groups.expand(np.arange(len(groups.rows))), groups.row_of
        yield find_rows(ens.codes_on(where), groups.ensemble.codes_on(where), device=where)

    np.testing.assert_array_equal(*compare(reduced, device)[-2:])


@pytest.mark.parametrize(("n_des", "order"), [(32, "given"), (4, "coarse"), (1, "fine"), (None, "given")])
@pytest.mark.parametrize("dtype", SLOW_CODES)
@pytest.mark.parametrize("n", SIZES[:-1])
def test_ca_tree(n, dtype, n_des, order, device):
    same_tree(ensemble(n, dtype), n_des, order, device)


@pytest.mark.parametrize("n_des", [3, 32])
@pytest.mark.parametrize("scratch", [1, 5000])
def test_ca_tree_by_few_blocks(scratch, n_des, device, step_bytes):
    """The tree is the same whether one block or several blocks compute a level."""
    step_bytes(scratch)
    same_tree(ge.Ensemble(structured_labels(300, 8, 5, missing=0.1, seed=3)[0]), n_des, "given", device)


def same_tree(ens, n_des, order, device):
    def measured(where, xp):
        tree = grow(Rows(ens, device=where), n_des, order)
        yield tree.parents, tree.splits, tree.counts, tree.radii, tree.representatives
        for tau, gamma in [(0.4, 1.0), (0.4, 0.5), (0.2, 0.3)]:
            reduced = tree.reduce(tau, gamma)
            yield reduced.counts, reduced.row_of, reduced.ensemble.codes

    compare(measured, device)


# --- coupled similarities and neighborhoods as bits -------------------------------------------------------------------

# (n_rows, n_cols), with full and with incomplete tiles
PAIRS = [(1, 1), (0, 5), (5, 0), (31, 64), (32, 65), (33, 130), (65, 1)]


def blocks_of(offsets):
    """Return symmetric similarity matrices of the clusters; many of their entries are equal."""
    rng = np.random.default_rng(6)
    matrices = [rng.random((k, k)) for k in np.diff(offsets).tolist()]
    return Blocks([np.maximum((matrix + matrix.T) / 2, 0.4) for matrix in matrices])


def bits_of(n_rows, n_bits, seed=7):
    """Return random bits twice: packed in words (n_rows, n_words), and as numbers 0 and 1 (n_rows, n_bits)."""
    each = (np.random.default_rng(seed).random((n_rows, n_bits)) < 0.3).astype(np.int64)
    padded = np.zeros((n_rows, -(-n_bits // 64) * 64), dtype=bool)
    padded[:, :n_bits] = each
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64), each


@pytest.mark.parametrize("weights", ["equal", "real", "some are 0"])
@pytest.mark.parametrize("n_clusters", [1, 31, 33, 300])
def test_relative_similarities(n_clusters, weights, device):
    rng, offsets = np.random.default_rng(8), np.cumsum([0, 3, 1, 30, 7])
    spread = np.where(rng.random((41, n_clusters)) < 0.4, 0.0, rng.random((41, n_clusters)))
    w = {"equal": np.full(4, 0.25), "real": rng.random(4), "some are 0": np.array([0.0, 0.3, 0.0, 0.7])}[weights]
    compare(lambda where, xp: coupled.relative_similarities(spread, offsets, w, device=where), device)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize(("n_rows", "n_cols"), PAIRS)
def test_coupled_objects_and_who_is_near(n_rows, n_cols, dtype, device):
    ens = ensemble(300, dtype)
    blocks = blocks_of(ens.offsets)

    def given(where):
        codes = ens.codes_on(where)
        return codes[:n_rows], codes[100 : 100 + n_cols], ens.offsets, blocks.on(where)

    (expected,) = compare(lambda where, xp: coupled_tile(*given(where), device=where), device)
    theta = float(expected.flat[0]) if expected.size else 0.5  # one pair or more meets this threshold exactly
    (bits,) = compare(lambda where, xp: neighborhood_bits.neighborhood_bits(*given(where), theta, device=where), device)
    each = np.unpackbits(bits.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(each[:, :n_cols], expected >= theta)
    assert not each[:, n_cols:].any()


@pytest.mark.parametrize("theta", [0.0, 0.4, 1.0, 1.5, None])
@pytest.mark.parametrize("largest", [0.0, 1e-9, 1.0, 40.0])
def test_who_is_near_among_many_clusterings(largest, theta, device):
    """Sums of hundreds of rounded units leave many pairs near the threshold undecided.

    For theta=None, a similarity is used.
    """
    rng = np.random.default_rng(12)
    codes = np.asfortranarray(rng.integers(-1, 3, (90, 700)).astype(np.uint8))
    matrices = [largest * np.round(matrix + matrix.T, 1) / 2 for matrix in rng.random((700, 3, 3))]
    blocks, offsets, xp = Blocks(matrices), np.arange(701) * 3, devices.namespace(device)
    expected = coupled_tile(codes[:20], codes, offsets, blocks.on("cpu"))
    theta = float(expected[3, 77]) if theta is None else theta * largest
    found = neighborhood_bits.neighborhood_bits(
        xp.asarray(codes[:20]), xp.asarray(codes), offsets, blocks.on(device), theta, device=device
    )
    each = np.unpackbits(on_host(found).astype("<u8").view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(each[:, :90], expected >= theta)
    assert not each[:, 90:].any()


@pytest.mark.parametrize(("n_rows", "n_cols"), PAIRS)
def test_the_two_are_left_out_of_their_common_neighbors(n_rows, n_cols, device):
    rng, xp = np.random.default_rng(13), devices.namespace(device)
    place, own, counts = rng.permutation(140), rng.random(140) < 0.6, rng.integers(1, 3, 140)
    bits, each = bits_of(140, 140)
    rows, cols = rng.integers(140, size=n_rows), rng.integers(140, size=n_cols)  # some rows are repeated
    expected = np.full((n_rows, n_cols), 9)
    for i, g in enumerate(rows):
        for j, h in enumerate(cols):
            one_object = g == h and counts[g] == 1
            expected[i, j] -= each[g, place[h]] * own[g] + each[g, place[h]] * own[h] - (one_object and own[g])
    found = xp.full((n_rows, n_cols), 9)
    neighborhood_bits.leave_out_themselves(found, xp.asarray(bits[rows]), rows, cols, place, own, counts, device=device)
    np.testing.assert_array_equal(on_host(found), expected)


@pytest.mark.parametrize("counts", [2, 6, 2**40])
@pytest.mark.parametrize("n_bits", [1, 64, 65, 1100])
@pytest.mark.parametrize(("n_rows", "n_cols"), PAIRS)
def test_overlaps(n_rows, n_cols, n_bits, counts, device):
    """Each bit counts once, up to five times, or very often. In the last case, most bit planes have few words."""
    times = np.sort(np.random.default_rng(9).integers(1, counts, n_bits))
    words, masks, runs = neighborhood_bits.bit_planes(times)
    (rows, of_rows), (cols, of_cols) = bits_of(n_rows, n_bits), bits_of(n_cols, n_bits, seed=10)
    planes = [bits[:, words] & masks for bits in (rows, cols)]
    found = compare(lambda where, xp: neighborhood_bits.overlaps(*map(xp.asarray, planes), runs, device=where), device)
    np.testing.assert_array_equal(*found, of_rows * times @ of_cols.T)


@pytest.mark.parametrize("compared", [0, 128, 2**40])
@pytest.mark.parametrize("most", [2, 6, 2**40])
def test_neighbors_in_each_cluster_by_labels_and_by_bits(most, compared, sizes):
    """Neighbors are counted in two ways: by labels and by common bits.

    Objects count once, a few times, or very often.
    """
    sizes("similarity.neighborhood_bits", COMPARED=compared)
    ens = ensemble(300, "uint16")
    bits, each = bits_of(40, 300)
    counts = np.random.default_rng(11).integers(1, most, 300)
    found = neighborhood_bits.neighbor_counts(bits, ens.codes, ens.offsets, counts)
    for m, (first, last) in enumerate(itertools.pairwise(ens.offsets.tolist())):
        members = ens.codes[:, m, None] == np.arange(last - first)
        np.testing.assert_array_equal(found[:, first:last], each * counts @ members)


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.parametrize("dtype", SLOW_CODES)
@pytest.mark.parametrize(("n_rows", "n_cols"), PAIRS)
def test_neighbors_in_each_cluster(n_rows, n_cols, dtype, device):
    ens, (bits, each) = ensemble(300, dtype), bits_of(n_rows, n_cols)
    counts = np.random.default_rng(11).integers(1, 2**40, n_cols)

    def neighbors(where, xp):
        codes = ens.codes_on(where)[:n_cols]
        return neighborhood_bits.neighbor_counts(xp.asarray(bits), codes, ens.offsets, counts, device=where)

    (found,) = compare(neighbors, device)
    n_labels = np.count_nonzero(ens.codes[:n_cols] != np.iinfo(dtype).max, axis=1)
    np.testing.assert_array_equal(found.sum(axis=1), each @ (counts * n_labels))


@pytest.mark.parametrize("width", [1, 7, 127, 128, 129, 300])
@pytest.mark.parametrize(("n_rows", "n_cols"), PAIRS)
def test_sums_over_neighbors(n_rows, n_cols, width, device):
    bits, each = bits_of(n_rows, n_cols)
    values = np.random.default_rng(12).integers(-(2**40), 2**40, (n_cols, width))
    found = compare(
        lambda where, xp: neighborhood_bits.neighbor_sums(xp.asarray(bits), xp.asarray(values), device=where), device
    )
    np.testing.assert_array_equal(*found, each @ values)


@pytest.mark.parametrize("theta", [None, 0.4])
@pytest.mark.parametrize("scratch", [1, 9000, 2**30])
def test_neighborhoods_in_pieces(scratch, theta, device, step_bytes):
    """Neighborhoods are computed in pieces of one row, of several rows and of all rows. Each row has a count."""
    ens, _, sizes = groups_of(random_labels(400, 4, (2, 4), missing=0.1, seed=6))
    rows, on_device = Rows.of(ens, sizes, "cpu"), Rows.of(ens, sizes, device)
    blocks = coupled.coupling(rows, None)
    expected = neighborhood.Neighborhoods(rows, blocks, theta)
    step_bytes(scratch)
    found = neighborhood.Neighborhoods(on_device, blocks, theta)
    assert found.threshold == expected.threshold
    np.testing.assert_array_equal(found.own, expected.own)
    some = np.arange(3, 60)
    commons, counts = [], []
    for near in (found, expected):
        bits, planes = near.all_bits()
        commons.append(near.common(some, bits[3:60], some[::2], planes[3:60:2]))
        counts.append(np.concatenate([on_host(near.counts_in(*piece)) for piece in near.pieces()]))
    np.testing.assert_array_equal(*commons)
    np.testing.assert_array_equal(*counts)
    np.testing.assert_array_equal(found.between_clusters(on_device), expected.between_clusters(rows))


@pytest.mark.parametrize("scratch", [1, 2**30])
def test_coupled_blocks(scratch, device, step_bytes):
    ens = ensemble(130)
    expected = ge.similarity.coupled_clusters(ens), similarities(CommonNeighbors(), ens)
    step_bytes(scratch)
    for found, matrix in zip(ge.similarity.coupled_clusters(ens, device=device), expected[0], strict=True):
        np.testing.assert_array_equal(found, matrix)
    np.testing.assert_array_equal(similarities(CommonNeighbors(), ens, device), expected[1])


# --- mapping coefficients and their ranks -----------------------------------------------------------------------------


@pytest.mark.parametrize("scratch", [1, 2**30])
@pytest.mark.parametrize("dtype", SLOW_CODES)
@pytest.mark.parametrize(("n", "n_neighbors"), [(2, 1), (33, 2), (130, 40)])
def test_reference_sets_and_mapping_coefficients(n, n_neighbors, dtype, scratch, device, step_bytes):
    """The features lie on a grid, so that many distances are equal or zero."""
    ens, x = ensemble(n, dtype), np.random.default_rng(15).integers(0, 4, (n, 2)).astype(float)
    step_bytes(scratch)

    def coefficients(where, xp):
        sets = reference_sets(xp.asarray(x), n_neighbors, device=where).nearest(0, n)
        yield tuple(sets), tuple(mapping.coefficients(*sets, ens.codes_on(where), ens.offsets, device=where))
        matrix = ge.similarity.mapping_coefficients(ens, x, n_neighbors, device=where)
        yield matrix.indptr, matrix.indices, matrix.data

    compare(coefficients, device)


@pytest.mark.parametrize("d", [1, 4, 7])
@pytest.mark.parametrize(("n", "p", "kept"), [(2, 1, 1), (33, 9, 2), (130, 300, 40)])
def test_nearest_landmarks(n, p, kept, d, device):
    """The features lie on a grid, so that many distances are equal."""
    rng = np.random.default_rng(17)
    points, landmarks = (rng.integers(0, 4, (size, d)).astype(np.float32) for size in (n, p))
    lists = LandmarkLists.of([np.arange(p), np.arange(p)[p - kept :], np.sort(rng.permutation(p)[:kept])])
    of = rng.integers(3, size=n)

    def nearest(where, xp):
        given = xp.asarray(points), lists.on(where), xp.asarray(of), xp.asarray(landmarks)
        return tuple(nearest_landmarks(*given, kept, device=where))

    compare(nearest, device)


@pytest.mark.parametrize("dtype", SLOW_CODES)
@pytest.mark.parametrize(("n", "n_neighbors", "width"), [(1, 1, 1), (33, 3, 5), (130, 40, 2)])
@pytest.mark.parametrize("room", [7, 120, 6144])  # products of a row in tiles, by two warps and by four
def test_products_and_shares_of_landmarks(room, n, n_neighbors, width, dtype, device, step_bytes, sizes):
    step_bytes(1000)  # a budget so small that the work is done in several pieces
    sizes("runtime.kernels", SHARED_BYTES=8 * room)
    rng = np.random.default_rng(18)
    ids = np.stack([rng.permutation(50)[:n_neighbors] for _ in range(n)]).astype(dtype)
    squares = np.sort(rng.random((n, n_neighbors), dtype=np.float32), axis=1)
    squares[0] = 1e6  # row 0 is so far from all landmarks that its weights underflow to zero
    table = LandmarkTable.of(rng.standard_normal((50, width)) * 10.0 ** rng.integers(-90, 90, (50, 1)))
    centers = rng.standard_normal((7, width))

    def products(where, xp):
        return landmark_products(xp.asarray(ids), xp.asarray(squares), 0.3, 50, device=where)

    def shared(where, xp):
        there, of_landmarks = xp.asarray(squares.copy()), table.on(where)
        landmark_shares(xp.asarray(ids), there, 0.3, of_landmarks.reach, of_landmarks.rows, device=where)
        return there

    def nearest(where, xp):
        labels, given = xp.full(n, -1), (xp.asarray(ids), xp.asarray(shares))
        sums, sizes, changed = nearest_by_shares(*given, *table.on(where).towards(centers), labels, device=where)
        assert changed == n
        return sums, sizes, labels

    compare(products, device, rtol=1e-12, atol=1e-15)
    (shares,) = compare(shared, device, rtol=1e-6, atol=1e-30)
    compare(nearest, device, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 7, 32, 70])
@pytest.mark.parametrize(("n", "n_neighbors"), [(1, 1), (45, 3)])
def test_labels_by_shares(n, n_neighbors, k, device):
    """The shares and products are small whole numbers, so that many scores are equal; the first of them counts."""
    rng, xp = np.random.default_rng(21), devices.namespace(device)
    ids = np.stack([rng.permutation(9)[:n_neighbors] for _ in range(n)]).astype(np.uint8)
    shares, towards = rng.integers(0, 3, ids.shape).astype(np.float32), rng.integers(0, 3, (9, k)).astype(float)
    lift, before = rng.integers(0, 3, k).astype(float), rng.integers(k, size=n)
    labels, given = xp.asarray(before.copy()), (ids, shares, towards, lift)
    sums, sizes, changed = nearest_by_shares(*map(xp.asarray, given), labels, device=device)
    expected = ((shares[:, :, None] * towards[ids]).sum(axis=1) + lift).argmax(axis=1)
    np.testing.assert_array_equal(on_host(labels), expected)
    assert changed == np.count_nonzero(expected != before)
    sums_by_hand = np.zeros((k, 9))
    np.add.at(sums_by_hand, (expected[:, None], ids), shares)
    np.testing.assert_array_equal(on_host(sums), sums_by_hand)
    np.testing.assert_array_equal(on_host(sizes), np.bincount(expected, minlength=k))


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.parametrize("n_columns", [1, 31, 33, 300])
def test_rank_correlation(n_columns, device):
    rng = np.random.default_rng(16)
    shares = np.where(rng.random((70, n_columns)) < 0.6, 0.0, rng.integers(1, 9, (70, n_columns)) / 8)
    counts, sparse = rng.integers(1, 100, 70), scipy.sparse.csr_array(shares)
    compare(lambda where, xp: ranks.rank_correlation(sparse, counts, device=where), device)


# --- k-means in label space -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_centroids", [1, 8, 33])
@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", [0, 1, 31, 64, 130])
def test_nearest_centroids(n, dtype, n_centroids, device):
    """Most costs are multiples of 0.1, so that many costs are equal and sums of costs are rounded."""
    ens, rng = ensemble(max(n, 1), dtype), np.random.default_rng(13)
    cost = rng.integers(-2, 2, (ens.n_clusters, n_centroids)) * 0.1
    given = ens.offsets, cost, np.full(n_centroids, 0.3)
    compare(lambda where, xp: nearest_centroids(ens.codes_on(where)[:n], *given, device=where), device)


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", [0, 1, 31, 64, 130])
def test_label_histograms(n, dtype, device):
    ens, rng = ensemble(max(n, 1), dtype), np.random.default_rng(14)
    weights, labels = rng.integers(1, 2**40, n), rng.integers(0, 7, n)

    def counted(where, xp):
        codes = ens.codes_on(where)[:n]
        return incidence.label_histograms(codes, ens.offsets, weights, xp.asarray(labels), 7, device=where)

    compare(counted, device)


# --- a mixture --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 33, 300])
def test_exponentials(n, device):
    x = np.random.default_rng(3).uniform(-750, 10, n)
    compare(lambda where, xp: exponentials(xp.asarray(x), device=where), device)


@pytest.mark.parametrize("width", [1, 2, 9])
@pytest.mark.parametrize("n", [0, 1, 33, 300])
def test_posteriors(n, width, device):
    """Some components are very unlikely, some about equally likely, and some less likely than the smallest share."""
    rng = np.random.default_rng(4)
    sums, const = -100 * rng.random((n, width)) ** 3, -rng.random(width)
    sums[::3] *= 1e-3
    compare(lambda where, xp: posteriors(xp.asarray(sums.copy()), const, 2.0**50, device=where), device)


# --- a walk on a graph ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 9, 70])
@pytest.mark.parametrize("n", [1, 33, 300])
def test_walk_step(n, width, weighted, device):
    """Steps on a random graph; some objects have no neighbour, and one has many."""
    rng = np.random.default_rng(27)
    ends = np.unique(np.sort(rng.integers(n, size=(2 * n, 2)) * [1, rng.random() < 0.9], axis=1), axis=0)
    ends = ends[ends[:, 0] < ends[:, 1]]
    weights = rng.uniform(0.1, 3, len(ends)) if weighted else np.ones(len(ends))
    graph = ge.Graph.of_edges(Edges(ends[:, 0], ends[:, 1], weights, n))
    shares = rng.integers(2**15 + 1, size=(n, width)).astype(np.uint16)
    given = graph.starts, graph.heads, graph.weights.astype(np.float32), shares
    (found,) = compare(lambda where, xp: walk_step(*map(xp.asarray, given), device=where), device)
    matrix = graph.matrix().toarray() + np.eye(n)
    np.testing.assert_allclose(found, (matrix @ shares) / matrix.sum(axis=1, keepdims=True), atol=0.51)


# --- a Potts model ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 9])
@pytest.mark.parametrize("n", [1, 33, 300])
def test_potts_model(n, width, device):
    """A ring with real weights: objects of even number are updated together. Rows have none, one or several objects."""
    rng = np.random.default_rng(26)
    ring = np.sort([np.roll(np.arange(n), 1), np.roll(np.arange(n), -1)], axis=0).T.astype(np.int32)
    graph = np.arange(n + 1) * (2 * (n > 1)), ring.ravel()[: 2 * n * (n > 1)], rng.uniform(0.1, 3, 2 * n * (n > 1))
    objects, row_of = np.arange(0, n - 1 + n % 2, 2)[: max(n // 2, 1)], rng.integers(n // 2 + 1, size=n)
    shares, lookups = rng.dirichlet(np.ones(width), n), -60 * rng.random((n // 2 + 1, width)) ** 3
    members, ends = np.argsort(row_of, kind="stable"), np.cumsum(np.bincount(row_of, minlength=n // 2 + 1))
    starts, whole = np.concatenate([[0], ends]), rng.integers(2**30, size=lookups.shape)

    def steps(where, xp):
        on = cpu.GraphArrays(*map(xp.asarray, graph))
        memberships, labels = xp.asarray(shares.copy()), xp.full(n, -1, dtype=np.int64)
        terms = cpu.RowTerms(*map(xp.asarray, (lookups, row_of, np.array([0.3]))))
        update_memberships(on, xp.asarray(objects), terms, 1.7, memberships, labels, device=where)
        yield memberships, labels
        yield sum_memberships(memberships, xp.asarray(members), xp.asarray(starts), 2.0**40, device=where)
        yield pseudo_likelihood(on, xp.asarray(objects), memberships, 1.7, 2.0**40, device=where)
        yield sum_squares(xp.asarray(lookups), xp.asarray(whole), 2.0**-10, device=where)

    compare(steps, device)


# --- pairs of objects -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.parametrize("ignore", [False, True])
@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", [1, 17, 300])
def test_pairs_by_matches(n, dtype, ignore, device):
    ens, rng = ensemble(n, dtype, n_clusterings=70), np.random.default_rng(19)
    counts, ends = rng.integers(1, 2**20, n), rng.integers(n, size=(2, 1000))

    def histograms(where, xp):
        codes = ens.codes_on(where)
        yield pair_histogram(codes, ens.offsets, xp.asarray(counts), ignore, device=where)
        yield drawn_histogram(codes, *map(xp.asarray, ends), ignore, device=where)

    compare(histograms, device)


# --- soft correspondence ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.parametrize("width", [1, 7, 300])  # 300 columns are more than a block has threads
@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", [0, 1, 31, 64, 130])
def test_memberships_and_correspondences(n, dtype, width, device):
    ens, rng = ensemble(max(n, 1), dtype), np.random.default_rng(15)
    table, of_missing = rng.random((ens.n_clusters, width)), rng.random((ens.n_clusterings, width))
    values = rng.integers(0, 2**40, (n, width))

    def steps(where, xp):
        codes = ens.codes_on(where)[:n]
        yield label_memberships(codes, ens.offsets, table, of_missing, device=where)
        yield label_correspondences(codes, ens.offsets, xp.asarray(values), device=where)

    compare(steps, device)


def test_more_clusterings_than_blocks_beside_each_other(device, sizes):
    """A CUDA grid has at most 65,535 blocks in its second dimension; further clusterings take another launch."""
    sizes("runtime.kernels", MOST_IN_Y=2)
    test_products_with_incidence(33, "uint8", device)
    test_label_histograms(33, "uint8", device)
    test_memberships_and_correspondences(33, "uint8", 3, device)


@pytest.mark.parametrize("block_rows", [1, 64, 4096])
@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize("n", [0, 1, 31, 64, 130])
def test_memberships_and_correspondences_of_soft_clusterings(n, width, block_rows, device):
    rng = np.random.default_rng(16)
    soft, table, values, before = (rng.random(shape) for shape in ((n, 9), (9, width), (n, width), (n, width)))

    def steps(where, xp):
        sums = xp.asarray(before.copy())
        soft_memberships(xp.asarray(soft), table, sums, device=where)
        return sums, soft_correspondences(xp.asarray(soft), xp.asarray(values), block_rows, device=where)

    compare(steps, device)


# --- linkage ----------------------------------------------------------------------------------------------------------


def groups_of(labels, dtype=None):
    """Return the codes (of the given dtype), offsets, sizes and number of clusters N_c of the labels' core groups."""
    reduced = core_groups(Rows(list(labels.T)))
    rows = reduced.ensemble
    if dtype is not None:
        codes = rows.codes.astype(dtype, order="F")
        codes[rows.codes == rows.missing_code] = np.iinfo(dtype).max
        rows._copies = {"cpu": codes}
    return rows, rows.offsets, reduced.counts


def cluster_weights(n_clusters, kind):
    if kind == "ones":
        return np.ones(n_clusters, dtype=np.int64)
    if kind == "all pairs":
        similarity = np.random.default_rng(5).uniform(-1.0, 1.0, (n_clusters, n_clusters))
        return np.maximum(similarity + similarity.T, -0.5)  # many entries equal -0.5
    return np.random.default_rng(5).uniform(0.01, 1.0, n_clusters)


LABELS = {
    "two rows": lambda: np.array([[0, 0, 1], [0, 1, 1]]),
    "31 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6)))[:31],
    "64 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6), seed=1))[:64],
    "65 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6), seed=2))[:65],
    "noise": lambda: random_labels(140, 5, (2, 9), missing=0.2),
    "structured": lambda: structured_labels(150, 8, 5, seed=3)[0],
    "many clusters": lambda: random_labels(150, 4, (280, 300), seed=4),
    "far apart": MANY_SHAPES["far apart"],
    "one clustering": lambda: random_labels(40, 1, 30),
}


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize("dtype", [np.uint16, *thorough(np.uint32)])
@pytest.mark.parametrize(("n_listed", "shared_bytes"), [(1, 256), (3, 49_152), (16, 256), (16, 49_152)])
@pytest.mark.parametrize("many", [1, 2**15])
def test_nearest_lists(many, n_listed, shared_bytes, dtype, weights, device, step_bytes, sizes):
    """Shared memory has room for all labels of a query, or for parts of them; sums of units have 24 or 16 bits."""
    sizes("partition.linkage.nearest", MANY_CLUSTERINGS=many)
    sizes("runtime.kernels", SHARED_BYTES=shared_bytes)
    rows, offsets, counts = groups_of(structured_labels(200, 6, 5, missing=0.1, seed=3)[0], dtype)
    w = cluster_weights(rows.n_clusters, weights)
    step_bytes(1)  # this budget is so small that each warp handles many queries
    of_cpu, of_device = (
        nearest.nearest_index(rows.codes_on(where), offsets, w, counts, device=where) for where in ("cpu", device)
    )
    sizes("partition.linkage.nearest", MANY_CLUSTERINGS=2**15)
    of_16_bits = nearest.nearest_index(rows.codes, offsets, w, counts)
    expected = nearest.nearest_lists(of_16_bits, n_listed)
    for index in (of_cpu, of_device):
        for found, wanted in zip(nearest.nearest_lists(index, n_listed), expected, strict=True):
            np.testing.assert_array_equal(on_host(found), wanted)
        assert index.comparisons > 0


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize("shape", LABELS)
@pytest.mark.parametrize("link", [average_linkage, single_linkage])
def test_linkage(link, shape, weights, device):
    same_dendrogram(link, groups_of(LABELS[shape]()), weights, device)


@pytest.mark.parametrize("weights", ["ones", "real", "all pairs"])
def test_the_host_waits_once_in_eight_rounds_of_a_linkage(weights, fake_cupy, monkeypatch, sizes):
    """It reads the counts before the first round, after the last one, and once more for each move of the histograms."""
    sizes("partition.linkage.conduct", N_LISTED=2)  # lists are short, so that searches are needed
    reads, moves = [], []
    read, move = rounds.Rounds._read_counts, regions.move_histograms

    def noted(self):
        reads.append(self.device)
        return read(self)

    def moved(*args, **options):
        moves.append(args)
        move(*args, **options)

    monkeypatch.setattr(rounds.Rounds, "_read_counts", noted)
    monkeypatch.setattr(regions, "move_histograms", moved)
    groups = groups_of(structured_labels(300, 8, 5, noise=0.3, seed=0)[0])
    before = len(fake_cupy.traffic.to_host.sizes)
    work = same_dendrogram(average_linkage, groups, weights, "cuda")
    assert work.rounds > 24
    assert len(reads) <= -(-work.rounds // 8) + len(moves) + 1
    assert work.searches > 0
    found = [size for size in fake_cupy.traffic.to_host.sizes[before:] if size == 8 * (len(rounds.Count) + 4)]
    assert len(found) == len(reads)


@pytest.mark.parametrize("shape", LABELS)
def test_linkage_under_any_similarity(shape, device, sizes):
    sizes("partition.linkage.conduct", N_LISTED=2)  # lists are short, so that searches are needed
    same_dendrogram(average_linkage, groups_of(LABELS[shape]()), "all pairs", device)


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize(
    "changed", [("TILE", 3), ("TILE", 1), *thorough(("OFFERS", 1), ("BLOCK", 32)), ("scratch", 2000)]
)
def test_searches_in_pieces(changed, weights, device, step_bytes, sizes):
    """Short lists cause searches.

    These use odd tiles, one tile in each visit, one warp in each block, or a single block.
    """
    name, value = changed
    sizes("partition.linkage.conduct", N_LISTED=1)
    if name == "scratch":
        step_bytes(value)
    else:
        sizes("partition.linkage.regions", **{name: value})
    same_dendrogram(average_linkage, groups_of(LABELS["noise"]()), weights, device)


def assert_searched(rows, offsets, sizes, weights, device):
    """Search the lists of seven regions on a device: they are the lists of the nearest rows on the CPU."""
    xp, n_rows = devices.namespace(device), len(sizes)
    lists = nearest.Shortlists.empty(n_rows, 3, device)
    task = regions.Search(xp.arange(7), xp.arange(n_rows), xp.asarray([n_rows, 7]), lists, xp.zeros(1, np.uint64))
    of_rows = regions.regions_of(rows.codes_on(device), offsets, sizes, device=device)
    bounding = regions.bounding_weights(weights, device=device)
    regions.search(task, of_rows, xp.asarray(weights), bounding, rows.n_clusterings, False, device=device)
    expected = nearest.nearest_lists(nearest.nearest_index(rows.codes, offsets, weights, sizes, device="cpu"), 3)
    for part, of_rows in zip(lists, expected, strict=True):
        np.testing.assert_array_equal(on_host(part[:7]), of_rows[:7])


@pytest.mark.parametrize("weights", ["ones", "real"])
def test_searches_of_tiles_with_more_regions_than_shared_memory_has_room_for(weights, device, step_bytes):
    """If the ceilings of tiles may use little memory, tiles have more regions than 48 kB of shared memory can hold."""
    rows, offsets, sizes = groups_of(random_labels(3500, 2, 3500, seed=6))
    w = cluster_weights(rows.n_clusters, weights)
    step_bytes(2**14)
    assert_searched(rows, offsets, sizes, w, device)


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize(("n_rows", "busy"), [(100, 512), (600, 1), (600, 30), (600, 512)])
def test_searches_by_several_blocks(n_rows, busy, weights, device):
    """Blocks that share the tiles of a query find the lists that one block finds."""
    rows, offsets, counts = groups_of(random_labels(n_rows, 4, 12, seed=6))
    w = cluster_weights(rows.n_clusters, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "scratch", lambda device: 2**20)
        patch.setattr(regions, "TILE", 1)
        patch.setattr(regions, "BUSY", busy)
        assert_searched(rows, offsets, counts, w, device)


def test_thousands_of_clusterings(device):
    """The labels of a block's queries and of a tile's rows exceed the 48 kB of shared memory."""
    labels = random_labels(6500, 9, 3, seed=7).T[:, :6500]
    same_dendrogram(average_linkage, groups_of(labels), "real", device)
    found = ge.similarity.coassociation(list(labels.T), device=device)
    np.testing.assert_array_equal(on_host(found), ge.similarity.coassociation(list(labels.T)))


@pytest.mark.thorough
@pytest.mark.parametrize("weights", ["ones", "real", "all pairs"])
def test_as_many_objects_as_int32_counts(weights, device):
    rows, offsets, sizes = groups_of(LABELS["31 rows"]())
    sizes = np.where(np.arange(len(sizes)) == 7, 2**31 - 1 - sizes.sum() + sizes[7], sizes)
    same_dendrogram(average_linkage, (rows, offsets, sizes), weights, device)


def test_histograms_move_when_the_arena_is_full(device):
    rows, offsets, sizes = groups_of(LABELS["31 rows"]())
    xp = devices.namespace(device)
    before = regions.regions_of(rows.codes_on(device), offsets, sizes, device=device)
    live = xp.arange(len(rows))[::2].copy()
    kept = [regions_as_dicts(before, r) for r in on_host(live)]
    after = regions.make_room(before, live, 10_000, device=device)
    assert [regions_as_dicts(after, r) for r in on_host(live)] == kept
    assert int(after.used[0]) == sum(map(len, kept))
    assert len(after.clusters) == 10_000


@pytest.mark.parametrize(("chained", "block"), [(32, 256), (1, 64), (2, 32)])
@pytest.mark.parametrize("n", [1, 64, 1000, 3000])
def test_pairs_and_survivors_keep_their_order(n, chained, block, device, sizes):
    """In chained blocks, each warp does one to 32 steps. Fewer regions are active than the host assumes."""
    sizes("partition.linkage.rounds", CHAINED=chained)
    sizes("partition.linkage.rounds", PAIRING=block)
    rng, xp = np.random.default_rng(n), devices.namespace(device)
    order, most = rng.permutation(n + 50), n + 40
    active = order[:n]
    nearest = rng.choice(np.append(active, cpu.RETIRED), n + 50)
    nearest[nearest == np.arange(n + 50)] = cpu.RETIRED
    a, b = np.array_split(rng.permutation(active)[: 2 * (n // 3)], 2)
    nearest[a], nearest[b] = b, a
    state = rounds.State.of_rows(xp.asarray(order), device)
    state.nearest[:], state.nearest_similarity[:] = xp.asarray(nearest), xp.asarray(np.arange(n + 50.0))
    state.counts[rounds.Count.ACTIVE], state.counts[rounds.Count.MERGES] = n, 5
    rounds.pair_up(state, most, device=device)
    mutual = (nearest[active] >= 0) & (nearest[nearest[active]] == active)
    kept = active[mutual & (active < nearest[active])]
    survivors = active[(nearest[active] >= 0) & ~(mutual & (active > nearest[active]))]
    merges = slice(5, 5 + len(kept))
    assert len(kept) >= n // 3
    counts = dict(zip(rounds.Count, on_host(state.counts).tolist(), strict=False))
    assert counts[rounds.Count.ACTIVE] == len(survivors)
    assert (counts[rounds.Count.PAIRS], counts[rounds.Count.MERGES]) == (len(kept), 5 + len(kept))
    np.testing.assert_array_equal(on_host(state.survivors)[: len(survivors)], survivors)
    for part, expected in ((state.kept, kept), (state.absorbed, nearest[kept]), (state.merged_at, kept)):
        np.testing.assert_array_equal(on_host(part)[merges], expected)
    np.testing.assert_array_equal(on_host(state.partner)[kept], nearest[kept])
    into = np.arange(n + 50)
    into[nearest[kept]] = kept
    np.testing.assert_array_equal(on_host(state.into), into)


@pytest.mark.parametrize("n_trees", [1, 4])
@pytest.mark.parametrize("values", [[0.5], [0.25, 0.5, -0.0, 0.0], np.linspace(-1.0, 1.0, 50)], ids=str)
def test_merges_sorted_on_the_device(values, n_trees, device):
    """Similarities may rise, so that a merge waits for the merges of its parts; equal ones are ordered by hashes."""
    rng, xp, n, rounds_of = np.random.default_rng(n_trees), devices.namespace(device), 300, []
    state, heights = rounds.State.of_rows(xp.arange(n), device), rounds.Heights.of_rows(n, device)
    alive, merges = rng.permutation(n), []
    while len(alive) > n_trees:
        n_pairs = rng.integers(1, max(2, (len(alive) - n_trees) // 2 + 1))
        pairs = np.sort(alive[: 2 * n_pairs].reshape(-1, 2), axis=1)
        merges += [(*pair, rng.choice(values)) for pair in pairs.tolist()]
        rounds_of.append(n_pairs)
        alive = rng.permutation(np.setdiff1d(alive, pairs[:, 1]))
    kept, absorbed, similarities = (np.array(part) for part in zip(*merges, strict=True))
    made = slice(len(merges))
    for part, given in ((state.kept, kept), (state.absorbed, absorbed), (state.merged_at, similarities)):
        part[made] = xp.asarray(given)
    for n_pairs, n_merges in zip(rounds_of, np.cumsum(rounds_of), strict=True):
        given = xp.asarray([n_pairs]), xp.asarray([n_merges])
        rounds.find_heights(state, *given, heights, int(n_pairs), device=device)
    parts = state.kept, state.absorbed, heights.of_merge, heights.wait_of_merge
    found = Dendrogram.from_heights(*(part[made] for part in parts), n)
    expected = Dendrogram.from_merges(kept, absorbed, similarities, n)
    for name in ("kept", "absorbed", "similarities"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(("n_a", "n_b", "n_both"), [(0, 3, 0), (1, 1, 1), (31, 33, 7), (64, 64, 64), (5, 200, 0)])
def test_unions_of_histograms(n_a, n_b, n_both, device):
    """Each warp merges one pair of histograms; common entries are handled in chunks of 32."""
    rng, xp = np.random.default_rng(n_a), devices.namespace(device)
    both, only = np.split(rng.permutation(300)[: n_a + n_b - n_both], [n_both])
    parts = [np.sort(np.append(both, some)) for some in np.split(only, [n_a - n_both])]
    clusters = np.concatenate([*parts, np.full(n_a + n_b, -1)]).astype(np.int32)
    given = clusters, np.arange(1, len(clusters) + 1, dtype=np.int32), *map(np.array, ([0, n_a], [n_a, n_b], [2, 3]))
    found = regions.Regions(*(xp.asarray(part) for part in (*given, np.array([n_a + n_b]))))
    before = [regions_as_dicts(found, r) for r in (0, 1)]
    pair = (xp.asarray(np.array([at])) for at in (0, 1, 1, 1))
    regions.merge_histograms(found, *pair, 1, device=device)
    union = {c: before[0].get(c, 0) + before[1].get(c, 0) for c in before[0] | before[1]}
    assert regions_as_dicts(found, 0) == union
    assert len(union) == n_a + n_b - n_both
    start = int(found.start[0])
    clusters = on_host(found.clusters)[start : start + len(union)]
    np.testing.assert_array_equal(clusters, sorted(union))
    assert (on_host(found.length).tolist(), on_host(found.size).tolist()) == ([len(union), 0], [5, 3])


def regions_as_dicts(found, r):
    start, length = int(found.start[r]), int(found.length[r])
    entries = slice(start, start + length)
    return dict(zip(on_host(found.clusters[entries]).tolist(), on_host(found.counts[entries]).tolist(), strict=True))


def same_dendrogram(link, groups, weights, device):
    """Check that device and CPU have merges and heights equal to the bit, and equal numbers of rounds and searches.

    Returns the device's work.
    """
    rows, offsets, sizes = groups
    similarity = (Full if weights == "all pairs" else Diagonal)(cluster_weights(rows.n_clusters, weights), offsets)
    works = {device: Work(), "cpu": Work()}

    def linked(where, xp):
        tree = link(Rows.of(rows, sizes, where), similarity, work=works[where])
        return tree.kept, tree.absorbed, tree.similarities, np.array([works[where].rounds, works[where].searches])

    compare(linked, device)
    return works[device]


def observed_linkage(rows, similarity, **given):
    """Call `average_linkage` with similarities averaged over the clusterings that label both objects."""
    lam = np.ones(rows.n_clusterings) if similarity.integral else np.arange(1, rows.n_clusterings + 1)
    return average_linkage(rows, Observed(lam.astype(similarity.weights.dtype), rows.offsets), **given)


@pytest.mark.parametrize(
    ("link", "weights"), [(average_linkage, "ones"), (average_linkage, "real"), (observed_linkage, "real")]
)
def test_histograms_of_more_clusters_than_a_slice(link, weights, device):
    """Regions have clusters on both sides of 8,192 and of 16,384, where slices of histograms may end."""
    rows, offsets, sizes = groups_of(random_labels(50, 700, 40, seed=5))
    assert rows.n_clusters > 2 * 8192
    same_dendrogram(link, (rows, offsets, sizes), weights, device)


# --- estimators -------------------------------------------------------------------------------------------------------

ESTIMATORS = {name: kind(4) for name, kind in METHODS.items() if name not in {"hgpa", "lce", "median", "tome"}} | {
    "eac, without a number": ge.EAC(),
    "eac, single": ge.EAC(4, linkage="single"),
    "eac, complete": ge.EAC(40, linkage="complete"),
    "ecrmc": METHODS["ecrmc"](4, n_neighbors=7),
    "lwea, threshold": ge.LWEA(distance_threshold=0.5),
    "lwea, smallest size": ge.LWEA(3, min_size=6),
    "eac, smallest size": ge.EAC(min_size=3),
    "kcc, ulp": ge.KCC(4, utility="ulp", normalised=True),
    "lce, srs": ge.LCE(4, measure="srs"),
    "cspa, nearest": ge.CSPA(4, neighbors=8),
    "hbgf, metis": ge.HBGF(4, partition="metis"),
    "em, any number": ge.EM(n_init=2, max_iter=5),
    "median, any number": ge.Median(loss="vi", n_init=4),
    "voting, soft": ge.Voting(4, voting="soft"),
    "best-of-k": ge.BestOfK(),
}
FITTED = ("children_", "distances_", "lifetimes_", "rest_", "cluster_similarity_", "threshold_", "mu_", "objective_",
          "n_iter_", "meta_clusters_", "membership_", "utility_", "log_likelihood_", "scores_", "anmi_")  # fmt: skip
# partitioners of these methods run on the host and need the similarities of all pairs of rows
ALL_PAIRS = ("eac, complete", "cspa", "oc-ia", "oc-h", "pta", "ptgp", "rock", "limbo")
# ecrmc ranks coefficients on the host; pd and median move rows one after the other
ON_HOST = (*ALL_PAIRS, "ecrmc", "pd", "median, any number")


@pytest.mark.filterwarnings("ignore:n_clusters is not given")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name, device):
    labels = LABELS["noise"]()
    estimator = clone(ESTIMATORS[name]).set_params(device=device)
    expected = clone(ESTIMATORS[name]).fit(labels)
    assert isinstance(estimator.fit(labels).labels_, np.ndarray)  # NumPy labels give NumPy labels
    np.testing.assert_array_equal(estimator.labels_, expected.labels_)
    assert estimator.n_clusters_ == expected.n_clusters_
    for fitted in FITTED:
        if hasattr(expected, fitted):
            np.testing.assert_array_equal(getattr(estimator, fitted), getattr(expected, fitted))
    for found, matrix in zip(*(getattr(fitted, "coupling_", []) for fitted in (estimator, expected)), strict=True):
        np.testing.assert_array_equal(found, matrix)


def test_soft_clusterings(device):
    """Soft clusterings on the device alone, and beside hard labels."""
    rng, xp = np.random.default_rng(17), devices.namespace(device)
    soft, labels = [rng.dirichlet(np.ones(k), size=130) for k in (2, 5)], rng.integers(0, 4, 130)
    expected = ge.SCEC(3).fit([soft[0], labels, soft[1]])
    found = ge.SCEC(3, device=device).fit([xp.asarray(one) for one in (soft[0], labels, soft[1])])
    assert devices.kind_of(found.labels_) == devices.kind_of(xp.asarray(labels))
    np.testing.assert_array_equal(on_host(found.membership_), expected.membership_)
    np.testing.assert_array_equal(on_host(found.labels_), expected.labels_)
    np.testing.assert_array_equal(found.objective_, expected.objective_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_samples(name, device):
    """A sample has 80 of 140 rows, and few rows are equal. The rows outside the sample get labels, too."""
    labels = LABELS["noise"]()
    estimator = clone(ESTIMATORS[name]).set_params(reduction=ge.Sample(80))
    expected = clone(estimator).fit_predict(labels)
    np.testing.assert_array_equal(estimator.set_params(device=device).fit_predict(labels), expected)


@pytest.mark.parametrize("name", ["lwgp", "hbgf"])
@pytest.mark.parametrize("changed", [{"RESTARTS_ON": 100}, {"DENSE_UP_TO": 10, "DENSE_IN_MEMORY_UP_TO": 10}], ids=str)
def test_transfer_cut_of_many(name, changed, device, sizes):
    """Some ensembles have more rows than k-means restarts use, or more clusters than the dense eigensolver accepts."""
    for module in ["kmeans.weighted"] * ("RESTARTS_ON" in changed) + ["partition.transfer_cut"]:
        sizes(module, **changed)
    labels = LABELS["structured"]()
    found = clone(ESTIMATORS[name]).set_params(device=device).fit_predict(labels)
    expected = clone(ESTIMATORS[name]).fit_predict(labels)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("at_once", [2**16, 2**30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", ["lumps", "noise", "few different"])
def test_restarts_of_k_means(shape, dtype, at_once, device, step_bytes):
    """Restarts give the CPU's result, whether they run together or one after the other."""
    rng = np.random.default_rng(4)
    points, k = {
        "lumps": (3.0 * rng.integers(4, size=(300, 2)) + rng.standard_normal((300, 2)), 9),
        "noise": (rng.standard_normal((200, 3)), 4),
        # there are fewer different points than clusters
        "few different": (rng.integers(2, size=(90, 2)) + np.zeros(2), 6),
    }[shape]
    points, counts = points.astype(dtype), rng.integers(1, 9, len(points))
    step_bytes(at_once)
    labels, centers = restarts(devices.namespace(device).asarray(points), counts, k, 5, 7, device=device)
    expected, their_centers = restarts(points, counts, k, 5, 7, device="cpu")
    same = by_first_row(on_host(labels))
    np.testing.assert_array_equal(same, by_first_row(expected))
    np.testing.assert_allclose(on_host(centers)[on_host(labels)], their_centers[expected], rtol=0, atol=1e-5)


def test_centers_are_sums_in_fixed_point():
    """All sums are of integers, so that the order in which blocks of a GPU add cannot change the centers."""
    transfer_cut = sys.modules["gpuens.partition.transfer_cut"]
    ens, rng = ensemble(300), np.random.default_rng(18)
    rule = transfer_cut.NearestCenter.of_centers(rng.random((4, 2)), rng.random((ens.n_clusters, 2)))
    expected = transfer_cut._sums_of_points(Rows(ens, device="cpu"), rule)
    with emulator.recorded() as launches:
        found = transfer_cut._sums_of_points(Rows(ens, device="emulated"), rule)
    np.testing.assert_allclose(found, expected, rtol=0, atol=300 * 2.0**-50)
    summed = [launch.args[2].dtype for launch in launches if launch.kernel == "cluster_sums"]
    assert summed == [np.int64] * 3


@pytest.mark.parametrize(
    ("name", "sample"),
    [*((name, None) for name in ESTIMATORS), *((name, 100) for name in ("lwea", "lwgp", "cgc", "crc-c", "scec", "em"))],
)
def test_labels_stay_on_the_device(name, sample, fake_cupy):
    """CuPy labels give CuPy labels; during the fit, no array as large as the label matrix is copied to the host."""
    # ecrmc gets fewer objects, because the emulator computes all distances slowly
    labels = np.repeat(LABELS["structured"](), 3 if name == "ecrmc" else 85, axis=0)
    estimator = clone(ESTIMATORS[name]).set_params(reduction=sample and ge.Sample(sample))
    expected = clone(estimator).fit_predict(labels)
    on_device = fake_cupy.asarray(labels.astype(np.uint8))
    fake_cupy.traffic.to_host.sizes.clear()
    found = estimator.fit(on_device).labels_
    if name not in ON_HOST:
        # number of bytes of the similarities by which the objects outside the sample get labels
        similarities = 8 * estimator.reduction_.n_rows * estimator.n_clusters_
        assert fake_cupy.traffic.to_host.largest < max(labels.size / 4, similarities)
    assert isinstance(found, fake_cupy.ndarray)
    np.testing.assert_array_equal(fake_cupy.asnumpy(found), expected)


def test_metrics_of_labels_in_gpu_memory(fake_cupy):
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 7, 200_000), rng.integers(-1, 100, 200_000)
    on_device = fake_cupy.asarray(a), fake_cupy.asarray(b)
    fake_cupy.traffic.to_host.sizes.clear()
    for score in (ge.metrics.nmi, ge.metrics.ari, ge.metrics.accuracy):
        assert score(*on_device) == score(a, b)
    labelings = fake_cupy.asarray(np.column_stack([a, b, b]))
    assert ge.metrics.stability(labelings) == ge.metrics.stability(np.column_stack([a, b, b]))
    assert ge.metrics.stability(ge.Ensemble(labelings)) == ge.metrics.stability(labelings)
    assert fake_cupy.traffic.to_host.largest <= 8 * (7 * 100 * 2 + 100 * 100)
    refused(lambda: ge.metrics.nmi(on_device[0], b), TypeError, "GPU memory", "host memory")


def test_the_command_line(tmp_path, device):
    np.save(tmp_path / "labels.npy", LABELS["structured"]())
    for where in ("cpu", device):
        main(["run", str(tmp_path / "labels.npy"), "-k", "4", "--device", where, "-o", str(tmp_path / f"{where}.npy")])
    np.testing.assert_array_equal(np.load(tmp_path / "cpu.npy"), np.load(tmp_path / f"{device}.npy"))


def test_headers_and_the_table_of_kernels_name_files_that_exist():
    folder = kernels.directory()
    named = {path for file in folder.glob("*.cu*") for path in re.findall(r"gpuens/([\w/]+\.py)", file.read_text())}
    named |= set(re.findall(r"\| `([\w/]+\.py)` \|\n", (folder / "README.md").read_text()))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (kernels.PACKAGE / path).exists()] == []


@pytest.mark.parametrize("name", [*thorough("lwea", "eac, single"), "lwgp", "cgc", "crc-c"])
def test_memory_that_runs_out(name, fake_cupy):
    """As GPU memory shrinks, a fit succeeds, then succeeds in small pieces, then fails with one sentence."""
    labels, estimator = LABELS["noise"](), clone(ESTIMATORS[name])
    expected = clone(estimator).fit_predict(labels)
    estimator.set_params(device="cuda")
    outcomes = []
    for limit in (80 * 10**9, *(2**n for n in range(24, 10, -1))):
        fake_cupy.reset(limit)
        try:
            np.testing.assert_array_equal(estimator.fit_predict(labels), expected)
            outcomes.append("fits")
        except MemoryError as error:
            outcomes.append("refused")
            one_sentence(error)
    assert outcomes[0] == "fits"
    assert outcomes[-1] == "refused"
    assert outcomes == sorted(outcomes)


# --- one host thread for each CUDA thread, so that races show ---------------------------------------------------------

SMALL = structured_labels(34, 4, 3, missing=0.1, seed=3)[0]

TINY = {
    "products": lambda: test_products_with_incidence(33, "uint8", "emulated"),
    "intersections": lambda: test_intersections(33, "uint8", "whole", "emulated"),
    "co-association": lambda: test_coassociation_tile(17, 33, "uint8", "emulated"),
    "core groups": lambda: test_core_groups(33, 5, "uint8", "emulated"),
    "CA-tree": lambda: same_tree(ge.Ensemble(SMALL), 4, "given", "emulated"),
    "average linkage": lambda: same_dendrogram(average_linkage, groups_of(SMALL), "real", "emulated"),
    "single linkage": lambda: same_dendrogram(single_linkage, groups_of(SMALL), "ones", "emulated"),
    "labels in parts": lambda: labels_in_parts("emulated"),
    "searches by several blocks": lambda: test_searches_by_several_blocks(100, 512, "real", "emulated"),
    "any similarity": lambda: same_dendrogram(average_linkage, groups_of(SMALL), "all pairs", "emulated"),
    "observed": lambda: same_dendrogram(observed_linkage, groups_of(SMALL), "real", "emulated"),
    "mapping coefficients": lambda: test_reference_sets_and_mapping_coefficients(
        33, 2, "uint8", 300, "emulated", nothing
    ),
    "rank correlation": lambda: test_rank_correlation(33, "emulated"),
    "histograms that move": lambda: test_histograms_move_when_the_arena_is_full("emulated"),
    "relative similarities": lambda: test_relative_similarities(7, "real", "emulated"),
    "who is near": lambda: test_coupled_objects_and_who_is_near(9, 65, "uint8", "emulated"),
    "overlaps": lambda: test_overlaps(17, 33, 1100, 6, "emulated"),
    "neighbours in clusters": lambda: test_neighbors_in_each_cluster(9, 65, "uint8", "emulated"),
    "sums over neighbours": lambda: test_sums_over_neighbors(9, 65, 7, "emulated"),
    "nearest centroids": lambda: test_nearest_centroids(33, "uint8", 9, "emulated"),
    "histograms of labels": lambda: test_label_histograms(33, "uint8", "emulated"),
    "posteriors": lambda: test_posteriors(33, 9, "emulated"),
    "exponentials": lambda: test_exponentials(33, "emulated"),
    "walk": lambda: test_walk_step(33, 9, True, "emulated"),
    "Potts model": lambda: test_potts_model(33, 3, "emulated"),
    "pairs": lambda: test_pairs_by_matches(17, "uint8", True, "emulated"),
    "soft correspondence": lambda: test_memberships_and_correspondences(33, "uint8", 3, "emulated"),
    "nearest landmarks": lambda: test_nearest_landmarks(33, 9, 2, 7, "emulated"),
    "products of landmarks": lambda: test_products_and_shares_of_landmarks(
        6144, 33, 3, 5, "uint8", "emulated", nothing, nothing
    ),
    "sums by label": lambda: test_sums_by_label(33, 5, (2,), True, "float64", "emulated", nothing),
    "moving centers": lambda: test_centers_move((3,), 5, 7, "emulated"),
    "plus plus": lambda: test_plus_plus(33, 2, 40, 3, 1, "float64", "emulated"),
    "scores": lambda: test_labels_by_products(33, 5, "float32", "emulated"),
    "soft clusterings": lambda: test_memberships_and_correspondences_of_soft_clusterings(33, 3, 8, "emulated"),
}


def labels_in_parts(device):
    """Find nearest lists of three tiles of rows. Shared memory has room for one word of a query's labels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SHARED_BYTES", 256)
        same_dendrogram(single_linkage, groups_of(random_labels(150, 9, 9, seed=3)), "real", device)


def nothing(n_bytes=0, **sizes):
    """Do nothing, in place of `step_bytes` and `sizes`: `with_one_block` has already set the sizes for all tests."""


@pytest.fixture
def with_one_block(sizes, one_block, step_bytes):
    """Use one block for all the work, so that each step of the block finds the last step's values in shared memory."""
    sizes(
        "partition.linkage.conduct", N_LISTED=2
    )  # so there are several searches, and each search makes several visits
    sizes("partition.linkage.regions", OFFERS=4)
    sizes("partition.linkage.regions", TILE=4)
    step_bytes(300)


@pytest.mark.tiny
@pytest.mark.parametrize("name", TINY)
def test_tiny(name, with_one_block):
    TINY[name]()


# --- all kernels ------------------------------------------------------------------------------------------------------


def test_every_kernel_is_launched_by_a_tiny_test(with_one_block):
    with emulator.recorded() as launches:
        for test in TINY.values():
            test()
        # ThreadSanitizer does not check these kernels: several threads may set the same mark, which does no harm
        test_tables_of_labels(33, 2, "C", "int32", "emulated")
    assert {launch.kernel for launch in launches} == set(kernels.functions())


def test_every_primitive_has_kernels():
    found = kernels.primitives()
    assert len(found) > 10
    assert {name: on for name, on in found.items() if on != ["cpu", "cuda", "emulated"]} == {}
