"""SCEC's iterations compared with dense matrices; the falling objective; soft, missing and weighted rows."""

from itertools import pairwise

import numpy as np
import oracles
import pytest
from conftest import MANY_SHAPES, distinct_rows, random_labels, shapes, structured_labels

from gpuens.labels.rows import Rows
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.metrics import ari
from gpuens.partition import soft_correspondence
from gpuens.partition.soft_descent import Problem, descend
from gpuens.partition.soft_memberships import (
    label_correspondences,
    label_memberships,
    memberships,
    soft_correspondences,
    soft_memberships,
)
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import device as devices

ALPHA, BETA = 0.5, 2.0


def softened(labels, seed=0, missing=0.0):
    """Blur labels at random; return memberships (N, k_h) for each clustering. A missing label gives a row of NaN."""
    rng = np.random.default_rng(seed)
    soft = []
    for column in labels.T:
        k = column.max() + 1
        matrix = 0.6 * np.eye(k)[column] + 0.4 * rng.dirichlet(np.ones(k), size=len(column))
        matrix[(column < 0) | (rng.random(len(column)) < missing)] = np.nan
        soft.append(matrix)
    return soft


def mixed(labels, seed=0):
    """Return the clusterings in reverse order; every second one is given as memberships."""
    soft = softened(labels, seed)
    return [soft[m] if m % 2 else labels[:, m] for m in reversed(range(labels.shape[1]))]


def literal(clusterings):
    """Return the membership matrices M^(h) of hard and soft clusterings."""
    matrices = []
    for clustering in map(np.asarray, clusterings):
        if clustering.ndim == 1:
            matrices += oracles.membership_matrices(clustering[:, None])
        else:
            unknown = np.isnan(clustering).all(axis=1, keepdims=True)
            matrices.append(np.where(unknown, 1 / clustering.shape[1], clustering))
    return matrices


ENSEMBLES = {
    "labels": lambda: list(structured_labels(60, 6, 4, seed=1)[0].T),
    "missing labels": lambda: list(random_labels(60, 5, (2, 6), missing=0.3, seed=2).T),
    "repeated rows": lambda: list(random_labels(70, 4, (2, 4), distinct=15, missing=0.1, seed=3).T),
    "soft": lambda: softened(random_labels(50, 4, (2, 5), seed=4)),
    "soft, missing": lambda: softened(structured_labels(50, 5, 3, seed=5)[0], missing=0.15),
    "mixed": lambda: mixed(random_labels(50, 5, (2, 5), missing=0.15, seed=6)),
}


@pytest.fixture(params=ENSEMBLES)
def clusterings(request):
    return ENSEMBLES[request.param]()


def of_rows(clusterings, device="cpu"):
    """Return the rows that the method works on, and the row of each object."""
    if all(np.ndim(one) == 1 for one in clusterings):
        reduced = core_groups(Rows(clusterings, device=device))
        return reduced.rows, devices.to_host(reduced.row_of)
    ensemble = SoftEnsemble(clusterings)
    n = ensemble.n_objects
    return Rows.of(ensemble, np.ones(n, dtype=np.int64), device), np.arange(n)


def problem_of(rows, k, alpha, beta):
    return Problem(SoftEnsemble.of(rows.ensemble), rows.counts, k, alpha, beta, rows.device)


def joined(rows, parts):
    return SoftEnsemble.of(rows.ensemble).joined(parts)


def first_tables(matrices, k, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(k), size=a.shape[1]) for a in matrices]


# --- comparison with the literal method -------------------------------------------------------------------------------


@pytest.fixture(params=[0, 10**9], ids=["by rows", "by pairs of clusters"])
def products(request, sizes):
    """Set how the product AᵀM of labels is computed: by rows or by pairs of clusters."""
    sizes("partition.soft_descent", LOOK_UPS=request.param)


@pytest.mark.parametrize(("alpha", "beta", "n_steps"), [(ALPHA, BETA, 1), (0.0, 0.5, 3), (3.0, 1.5, 1)])
def test_fifty_iterations(clusterings, alpha, beta, n_steps, products, where):
    k, matrices = 3, literal(clusterings)
    s = first_tables(matrices, k)
    n, k_h = len(matrices[0]), [a.shape[1] for a in matrices]
    alphas, betas = ([factor * n / size for size in k_h] for factor in (alpha, beta))
    rows, row_of = of_rows(clusterings, where)
    table, objective, _ = descend(problem_of(rows, k, alpha, beta), joined(rows, s), 50, -1.0, n_steps)

    m, values = oracles.scec_membership(matrices, s), []
    for _ in range(50):
        for _ in range(n_steps):
            s = [oracles.scec_correspondence(m, *each) for each in zip(matrices, s, alphas, betas, strict=True)]
        m = oracles.scec_membership(matrices, s)
        values.append(oracles.scec_objective(m, matrices, s, alphas, betas))
    for found, expected in zip(SoftEnsemble.of(rows.ensemble).split(table), s, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10, rtol=0)
    np.testing.assert_allclose(memberships(table, rows)[row_of], m, atol=1e-10, rtol=0)
    np.testing.assert_allclose(objective, values, atol=1e-10 * n * len(matrices), rtol=0)


def test_neither_blocks_of_rows_nor_threads_nor_the_device_matter(
    clusterings, products, where, step_bytes, sizes, monkeypatch
):
    sizes("partition.soft_descent", BLOCK_ROWS=16)
    sizes("runtime.parallel", WAKE_NS=1)
    results = []
    for device, scratch, threads in (("cpu", 2**30, "1"), (where, 2**30, "3"), (where, 1, "1")):
        step_bytes(scratch)
        monkeypatch.setenv("GPUENS_THREADS", threads)
        rows, _ = of_rows(clusterings, device)
        result = soft_correspondence(rows, 3, n_init=2, rng=np.random.default_rng(2))
        results.append((result.labels, result.table, result.objective, memberships(result.table, rows)))
    for result in results[1:]:
        for array, expected in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(array, expected)


def test_iterations_end_when_no_membership_changes_by_more_than_tol(clusterings, products, sizes):
    """Iterations stop at the first change of at most tol, even if only four rows are processed at a time."""
    rows, _ = of_rows(clusterings)
    sizes("partition.soft_descent", BLOCK_ROWS=4)
    first, tol, tables = first_tables(literal(clusterings), 3), 1e-3, []
    problem = problem_of(rows, 3, ALPHA, BETA)
    table, objective, converged = descend(problem, joined(rows, first), 2000, tol, 5)
    for n_iter in (len(objective) - 2, len(objective) - 1):
        tables.append(descend(problem, joined(rows, first), n_iter, tol, 5)[0])
    steps = [np.abs(memberships(a, rows) - memberships(b, rows)).max() for a, b in pairwise([*tables, table])]
    assert converged
    assert steps[0] > tol >= steps[1]


def test_starts_from_a_draw_of_many_rows(sizes):
    """Starts from a sample of the rows lead to about the same objective as starts from all rows."""
    labels, truth = structured_labels(400, 8, 4, noise=0.15, split=3, seed=11)
    rows, row_of = of_rows(list(labels.T))
    of_all = soft_correspondence(rows, 4, n_init=2, rng=np.random.default_rng(0))
    sizes("partition.soft_descent", STARTS_ON=100)
    of_some = soft_correspondence(rows, 4, n_init=2, rng=np.random.default_rng(0))
    assert not np.array_equal(of_some.table, of_all.table)
    assert of_some.objective[-1] <= of_all.objective[-1] + 0.005 * abs(of_all.objective[-1])
    assert ari(of_some.labels[row_of], truth) > 0.9


@pytest.mark.parametrize("init", ["kmeans", "clustering", "random"])
def test_groups_are_their_objects(init):
    """Rows with counts give the same result as the objects one by one, from the same start."""
    labels = ENSEMBLES["repeated rows"]()
    groups, row_of = of_rows(labels)
    objects = Rows(labels)
    assert len(groups) < len(objects) == 70
    start = first_tables(oracles.membership_matrices(np.array(labels).T), 3, seed=5)
    of_groups, of_objects = (
        memberships(soft_correspondence(rows, 3, init=start, rng=np.random.default_rng(0)).table, rows)
        for rows in (groups, objects)
    )
    apart = np.abs(of_groups[row_of][:, None, :, None] - of_objects[:, None, None, :])
    # the columns may be in another order, because the first rows decide it
    assert apart.max(axis=(0, 1)).min(axis=1).max() < 1e-9
    drawn = soft_correspondence(groups, 3, init=init, n_init=3, rng=np.random.default_rng(0))
    assert memberships(drawn.table, groups).shape == (len(groups), 3)


# --- invariants -------------------------------------------------------------------------------------------------------


def assert_objective_falls(rows, correspondence):
    assert np.diff(correspondence.objective).max(initial=-1) <= 1e-13 * rows.n_objects * rows.n_clusterings
    np.testing.assert_allclose(memberships(correspondence.table, rows).sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("init", ["kmeans", "clustering", "random"])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize(("alpha", "beta"), [(ALPHA, BETA), (0.0, 1.0), (1.5, 1.6), (0.2, 50.0)])
def test_the_objective_never_rises(clusterings, alpha, beta, k, init):
    rows, _ = of_rows(clusterings)
    options = {"alpha": alpha, "beta": beta, "init": init, "tol": 0, "max_iter": 40}
    correspondence = soft_correspondence(rows, k, **options, rng=np.random.default_rng(3))
    assert_objective_falls(rows, correspondence)
    assert memberships(correspondence.table, rows).min() >= 0
    for s in correspondence.correspondences:
        np.testing.assert_allclose(s.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("name", shapes(MANY_SHAPES))
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises_on_other_ensembles(name, seed):
    rows, _ = of_rows(list(MANY_SHAPES[name]().T))
    k, rng = min(4, len(rows)), np.random.default_rng(seed)
    assert_objective_falls(rows, soft_correspondence(rows, k, init="random", tol=0, max_iter=60, rng=rng))


def test_the_best_start_is_kept():
    rows, _ = of_rows(ENSEMBLES["missing labels"]())
    rng = np.random.default_rng(5)
    singles = [soft_correspondence(rows, 3, init="random", rng=rng).objective[-1] for _ in range(6)]
    best = soft_correspondence(rows, 3, init="random", n_init=6, rng=np.random.default_rng(5))
    assert best.objective[-1] == min(singles)
    assert len(set(singles)) > 1


def test_one_hot_matrices_are_labels(where):
    labels = random_labels(60, 5, (2, 5), missing=0.2, seed=8)
    one_hot = [np.where((c < 0)[:, None], np.nan, np.eye(c.max() + 1)[c]) for c in labels.T]
    start = first_tables(oracles.membership_matrices(labels), 3)
    tables = []
    for clusterings in (list(labels.T), one_hot):
        rows, _ = of_rows(clusterings, where)
        tables.append(descend(problem_of(rows, 3, ALPHA, BETA), joined(rows, start), 30, 0.0, 5)[0])
    np.testing.assert_allclose(*tables, atol=1e-10, rtol=0)


def test_clusters_without_objects_do_not_count():
    """A cluster without objects, as in a sample, gets the mean correspondence of all other clusters.

    The other clusters stay unchanged.
    """
    labels = distinct_rows(random_labels(60, 4, 3, seed=9))
    gaps = np.where(labels == 2, 3, labels)
    gaps = np.concatenate([gaps, np.full((1, 4), 2)])  # one more object, whose clusters do not occur in the rows
    rows, without = Rows(list(gaps.T)).take(slice(0, len(labels))), Rows(list(labels.T))
    start = first_tables(oracles.membership_matrices(labels), 3)
    with_gap = [np.insert(table, 2, 1 / 3, axis=0) for table in start]
    found = soft_correspondence(rows, 3, init=with_gap, rng=np.random.default_rng(0))
    expected = soft_correspondence(without, 3, init=start, rng=np.random.default_rng(0))
    np.testing.assert_allclose(memberships(found.table, rows), memberships(expected.table, without), atol=1e-12)
    for a, b in zip(found.correspondences, expected.correspondences, strict=True):
        np.testing.assert_allclose(np.delete(a, 2, axis=0), b, atol=1e-12)
        np.testing.assert_allclose(a[2], b.mean(axis=0), atol=1e-12)


def test_a_clustering_that_labels_none_of_the_rows_tells_nothing_apart():
    labels = random_labels(40, 4, 3, seed=12)
    labels[:30, 2] = -1
    rows = Rows(list(labels.T)).take(slice(0, 30))
    correspondence = soft_correspondence(rows, 3, tol=0, max_iter=40, rng=np.random.default_rng(0))
    assert_objective_falls(rows, correspondence)
    np.testing.assert_allclose(np.ptp(correspondence.correspondences[2], axis=0), 0.0, atol=1e-12)


# --- the paper's numbers (§3) -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "correspondence"),
    [([3, 3, 1, 1, 2, 2], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]), ([1, 1, 1, 1, 2, 2], [[0.5, 0.5, 0], [0, 0, 1]])],
)
def test_figures_of_section_3(labels, correspondence):
    """M is fixed at the memberships of λ, which is eq 10 with α = 0."""
    rows = Rows([labels], device="cpu")
    problem, memberships_of_lambda = problem_of(rows, 3, 0.0, 1e-9), np.eye(3)[[0, 0, 1, 1, 2, 2]]
    products = problem.products(lambda places: memberships_of_lambda[places], 1.0)
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=rows.n_clusters)
    np.testing.assert_allclose(problem.stepped(table, products, 0.0, 2000), correspondence, atol=1e-9)


# --- primitives -------------------------------------------------------------------------------------------------------


@pytest.mark.kernels
@pytest.mark.parametrize("shared_bytes", [0, 300, 48 * 1024])
@pytest.mark.parametrize("k", [7])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("n", [0, 33, 500])
def test_sums_over_labels(n, dtype, k, shared_bytes, where, sizes):
    sizes("runtime.kernels", SHARED_BYTES=shared_bytes)
    rng, missing = np.random.default_rng(10), np.iinfo(dtype).max
    offsets = np.array([0, 3, 4, 40])
    codes = np.asfortranarray(rng.integers(0, np.diff(offsets), (n, 3)).astype(dtype))
    codes[rng.random(codes.shape) < 0.2] = missing
    table, of_missing, values = rng.random((40, k)), rng.random((3, k)), rng.integers(0, 2**40, (n, k))
    looked_up, known, unknown = np.zeros((n, k)), np.zeros((40, k), int), np.zeros((3, k), int)
    for g in range(n):
        for m in range(3):
            gone = codes[g, m] == missing
            looked_up[g] += of_missing[m] if gone else table[offsets[m] + int(codes[g, m])]
            (unknown[m] if gone else known[offsets[m] + int(codes[g, m])])[:] += values[g]
    xp = devices.namespace(where)
    on_device = xp.asarray(codes.T).T
    found = label_memberships(on_device, offsets, table, of_missing, device=where)
    np.testing.assert_array_equal(devices.to_host(found), looked_up)
    for found, expected in zip(
        label_correspondences(on_device, offsets, xp.asarray(values), device=where), (known, unknown), strict=True
    ):
        np.testing.assert_array_equal(devices.to_host(found), expected)


@pytest.mark.kernels
@pytest.mark.parametrize("block_rows", [1, 32, 5000])
@pytest.mark.parametrize("k", [7])
@pytest.mark.parametrize("n", [0, 33, 500])
def test_sums_over_soft_clusterings(n, k, block_rows, where):
    rng, xp = np.random.default_rng(11), devices.namespace(where)
    soft, table, values, sums = rng.random((n, 9)), rng.random((9, k)), rng.random((n, k)), rng.random((n, k))
    expected = sums.copy()
    for j in range(9):
        expected += soft[:, j : j + 1] * table[j]
    found = xp.asarray(sums.copy())
    soft_memberships(xp.asarray(soft), table, found, device=where)
    np.testing.assert_array_equal(devices.to_host(found), expected)
    found = soft_correspondences(xp.asarray(soft), xp.asarray(values), block_rows, device=where)
    expected = np.zeros((-(-n // block_rows), 9, k))
    for g in range(n):
        expected[g // block_rows] += soft[g][:, None] * values[g]
    np.testing.assert_array_equal(devices.to_host(found), expected)
