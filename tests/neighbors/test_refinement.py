"""Refinement by labels and neighbours, compared with mean field, EM and pseudo-likelihood computed in loops."""

import math
from itertools import pairwise

import numpy as np
import pytest
from conftest import random_labels, refused, structured_labels, without
from maps import noisy_map, random_graph
from sklearn.metrics import adjusted_rand_score as ari
from sklearn.metrics import f1_score

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.neighbors.refinement import MOST_BETA, _Field, _LabelModel, objects_by_color, refine
from gpuens.partition.mixture import FLOOR, memberships
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import device as devices

pytestmark = pytest.mark.filterwarnings("ignore:constant clusterings")


def blurred_classes(classes, shape, k, seed=0):
    """Return the classes of pixels at random places nearby, and of 20 % of all blocks of 4 × 4 pixels a wrong class."""
    rng, (height, width) = np.random.default_rng(seed), shape
    y, x = np.indices(shape)
    blocks = rng.random((height // 4 + 1, width // 4 + 1)) < 0.2
    near = np.clip(x + rng.integers(-1, 2, shape), 0, width - 1)
    start = classes.reshape(shape)[y, near]
    return np.where(blocks[y // 4, x // 4], rng.integers(k, size=blocks.shape)[y // 4, x // 4], start).ravel()


def distinct_rows(labels, device="cpu"):
    """Return the distinct rows of labels and the row of each object."""
    reduced = core_groups(Rows(ge.Ensemble(labels), device=device))
    return reduced.rows, np.asarray(devices.to_host(reduced.row_of), dtype=np.int64)


def refine_labels(labels, graph, start, k, device="cpu", **parameters):
    return refine(*distinct_rows(labels, device), graph, np.asarray(start, dtype=np.int64), k, **parameters)


# --- the oracle -------------------------------------------------------------------------------------------------------


def edges_of(graph):
    return [list(zip(graph.heads[a:b], graph.weights[a:b], strict=True)) for a, b in pairwise(graph.starts)]


def literal_theta(labels, q):
    """Return the distributions theta[m][r][label] by the weights q (N, k); those of all objects for an empty class."""
    theta = []
    for column in labels.T:
        known = column >= 0
        sums = np.array([q[column == label].sum(axis=0) for label in range(column.max() + 1)]).T
        of_all = np.bincount(column[known], minlength=sums.shape[1]) / max(known.sum(), 1)
        theta.append([row / row.sum() if row.sum() > 0 else of_all for row in sums])
    return theta


def literal_likelihoods(labels, theta, k):
    logs = [[np.log(np.maximum(of_class, FLOOR)) for of_class in of_member] for of_member in theta]
    return np.array([
        [sum(logs[m][r][v] for m, v in enumerate(row) if v >= 0) for r in range(k)] for row in labels.tolist()
    ])  # fmt: skip


def literal_tau(labels, theta, q):
    squares, of_sums = 0.0, 0.0
    n_clusterings, k = labels.shape[1], q.shape[1]
    logs = [[[math.log(max(p, FLOOR)) for p in of_class] for of_class in of_member] for of_member in theta]
    means = [[sum(math.exp(x) * x for x in of_class) for of_class in of_member] for of_member in logs]
    for row, weight in zip(labels.tolist(), q, strict=True):
        for r in range(k):
            residuals = [logs[m][r][v] - means[m][r] if v >= 0 else 0.0 for m, v in enumerate(row)]
            squares += weight[r] * sum(x * x for x in residuals)
            of_sums += weight[r] * sum(residuals) ** 2
    return min(max(squares / of_sums, 1 / n_clusterings), 1.0) if of_sums > 0 else 1 / n_clusterings


def literal_fields(graph, q):
    return [sum((w * q[j] for j, w in edges), np.zeros(q.shape[1])) for edges in edges_of(graph)]


def literal_log_pseudo_likelihood(fields, q, beta):
    return sum(beta * (p * x).sum() - math.log(np.exp(beta * x).sum()) for p, x in zip(q, fields, strict=True))


def literal_beta(graph, q, beta):
    """Return the maximum of the pseudo-likelihood, by Newton steps of at most 1 that end with one below 0.01."""
    step = 1.0
    while abs(step) > 1e-2:
        slope = curvature = 0.0
        for shares, field in zip(q, literal_fields(graph, q), strict=True):
            p = np.exp(beta * (field - field.max()))
            p /= p.sum()
            slope += ((shares - p) * field).sum()
            curvature += (p * field**2).sum() - (p * field).sum() ** 2
        step = min(max(slope / curvature, -1), 1) if curvature > 1e-9 else 0.0
        step = min(max(beta + step, 0), MOST_BETA) - beta
        beta += step
    return beta


def literal_sweep(graph, likelihoods, tau, beta, q):
    """Update q (N, k), colour by colour; yield after each colour."""
    edges, color = edges_of(graph), []
    for i in range(len(q)):
        used = {color[j] for j, _ in edges[i] if j < i}
        color.append(next(c for c in range(len(q)) if c not in used))
    for c in range(max(color) + 1):
        for i in range(len(q)):
            if color[i] == c:
                s = tau * likelihoods[i] + beta * sum((w * q[j] for j, w in edges[i]), np.zeros(q.shape[1]))
                power = np.exp(s - s.max())
                q[i] = power / power.sum()
        yield c


def literal_start(start, k):
    """Return memberships (N, k): nine tenths of an object in its class, and one tenth in the classes by their sizes."""
    return 0.9 * np.eye(k)[start] + 0.1 * np.bincount(start, minlength=k) / len(start)


def literal_refinement(labels, graph, start, k, max_rounds):
    """Return q, tau, beta, the number of rounds, and whether the last one moved few objects and hardly changed beta."""
    q, beta, converged, n_rounds = literal_start(start, k), 0.0, False, 0
    while not converged and n_rounds < max_rounds:
        n_rounds += 1
        before = q.argmax(axis=1), beta
        theta = literal_theta(labels, q)
        tau, beta = literal_tau(labels, theta, q), literal_beta(graph, q, beta)
        for _ in literal_sweep(graph, literal_likelihoods(labels, theta, k), tau, beta, q):
            pass
        converged = (q.argmax(axis=1) != before[0]).mean() <= 0.001 and abs(beta - before[1]) <= 0.05 * beta
    return q, tau, beta, n_rounds, converged


def free_energy(graph, likelihoods, tau, beta, q):
    agreement = sum(w * (q[i] @ q[j]) for i, edges in enumerate(edges_of(graph)) for j, w in edges) / 2
    entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum()
    return -tau * (q * likelihoods).sum() - beta * agreement - entropy


CLEAR, TRUTH = structured_labels(60, 5, 3, noise=0.3, split=2, missing=0.1, seed=1)
ONE_CLUSTER = np.column_stack([random_labels(40, 4, (2, 4), missing=0.2, seed=2), np.zeros(40, dtype=np.int64)])
CASES = {
    "clear": (CLEAR, random_graph(60, 90, 3), np.random.default_rng(0).integers(3, size=60), 3),
    "noise, and a clustering with one cluster": (ONE_CLUSTER, random_graph(40, 40, 4), np.arange(40) % 4, 4),
    "few rows": (CLEAR[np.arange(90) % 30], ge.Graph.grid((9, 10)), np.arange(90) // 30, 3),
    "no edges": (CLEAR, random_graph(60, 0), TRUTH, 3),
    "one class": (CLEAR, random_graph(60, 90, 3), np.zeros(60, dtype=int), 1),
    "an empty class": (CLEAR, random_graph(60, 90, 5, weighted=False), TRUTH, 4),
}


@pytest.mark.parametrize("max_rounds", [1, 20])
@pytest.mark.parametrize("case", CASES)
def test_rounds_are_the_literal_ones(case, max_rounds, where):
    labels, graph, start, k = CASES[case]
    result = refine_labels(labels, graph, start, k, where, max_rounds=max_rounds)
    q, tau, beta, n_rounds, converged = literal_refinement(labels, graph, start, k, max_rounds)
    np.testing.assert_allclose(result.membership, q, atol=1e-7)
    np.testing.assert_allclose(result.membership.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_array_equal(result.labels, result.membership.argmax(axis=1))
    assert (result.tau, result.beta) == pytest.approx((tau, beta), rel=1e-7)
    assert (result.n_rounds, result.converged) == (n_rounds, converged)


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["clear", "noise, and a clustering with one cluster"])
def test_the_free_energy_falls_at_every_colour_and_by_every_fit(case):
    labels, graph, start, k = CASES[case]
    rows, row_of = distinct_rows(labels)
    field, model, tau, beta = _Field(graph, np.asarray(start), k, "cpu"), _LabelModel(rows, row_of), 0.6, 0.8
    reached, by_colour = [], []
    for _ in range(4):
        lookups, _ = model.fit(field.memberships)
        likelihoods = lookups[row_of] * math.log(2)
        reached.append(free_energy(graph, likelihoods, tau, beta, field.memberships))
        q = field.memberships.copy()
        for _ in literal_sweep(graph, likelihoods, tau, beta, q):
            by_colour.append(free_energy(graph, likelihoods, tau, beta, q))
        field.sweep(lookups, row_of, np.array([tau]), beta)
        reached.append(free_energy(graph, likelihoods, tau, beta, field.memberships))
        assert reached[-1] == pytest.approx(by_colour[-1], rel=1e-9)
    assert (np.diff(reached) < 1e-7).all()
    assert reached[-1] < reached[0] - 1
    n = len(objects_by_color(graph))
    assert n > 2
    assert all((np.diff(by_colour[first : first + n]) < 1e-9).all() for first in range(0, len(by_colour), n))


def test_no_two_neighbours_have_the_same_colour():
    graph = random_graph(300, 900, 6)
    colors = np.empty(300, dtype=int)
    for color, objects in enumerate(objects_by_color(graph)):
        assert (np.diff(objects) > 0).all()
        colors[objects] = color
    assert (colors[graph.tails] != colors[graph.heads]).all()
    for i in range(300):  # the first colour that no earlier neighbour has
        used = {colors[j] for j in graph.neighbors_of(i) if j < i}
        assert colors[i] == next(c for c in range(300) if c not in used)
    hub = ge.Graph.of([[0, i] for i in range(1, 500)])
    assert list(map(len, objects_by_color(hub))) == [1, 499]


def test_beta_is_where_the_pseudo_likelihood_is_largest(where):
    _, graph, start, k = CASES["clear"]
    q = np.random.default_rng(7).dirichlet(np.ones(k), 60)
    for i, edges in enumerate(edges_of(graph)):  # so that neighbours agree
        q[i] = sum((w * q[j] for j, w in edges), 2 * q[i])
        q[i] = q[i] ** 4 / (q[i] ** 4).sum()
    field = _Field(graph, np.asarray(start), k, where)
    field.memberships = devices.namespace(where).asarray(q)
    grid, fields = np.arange(0, MOST_BETA, 0.05), literal_fields(graph, q)
    best = grid[np.argmax([literal_log_pseudo_likelihood(fields, q, beta) for beta in grid])]
    assert 0.2 < best < 5
    for first in (0.0, best, MOST_BETA / 2):
        assert field.strongest_beta(first) == pytest.approx(best, abs=0.03)
    alike = _Field(graph, np.zeros(60, dtype=np.int64), 2, where)
    assert 5 < alike.strongest_beta(0.0) <= MOST_BETA  # grows as long as the likelihood does
    assert _Field(random_graph(60, 0), np.zeros(60, dtype=np.int64), 2, where).strongest_beta(0.0) == 0


def test_independent_clusterings_count_each_and_copies_once():
    rng, truth = np.random.default_rng(8), np.arange(3000) // 1000
    labels = np.column_stack([np.where(rng.random(3000) < 0.4, rng.integers(3, size=3000), truth) for _ in range(6)])
    chain = ge.Graph.of(np.column_stack([np.arange(2999), np.arange(1, 3000)]))
    columns = {"all": range(6), "pairs": [0, 0, 1, 1, 2, 2], "single": range(3), "copies": [0] * 6}
    results = {name: refine_labels(labels[:, [*m]], chain, truth, 3) for name, m in columns.items()}
    assert 6 * results["all"].tau == pytest.approx(6, abs=0.4)
    assert 6 * results["pairs"].tau == pytest.approx(3, abs=0.3)
    assert results["copies"].tau == pytest.approx(1 / 6)
    # not all: tau of the three alone is cut at 1
    assert (results["pairs"].labels == results["single"].labels).mean() > 0.99


def test_copies_of_all_clusterings_change_nothing():
    labels, classes, _ = noisy_map((24, 24), 4, "patches", seed=1)
    graph, start = ge.Graph.grid((24, 24)), blurred_classes(classes, (24, 24), 4)
    labels = np.column_stack([labels[:, :3], labels[:, :3], labels[:, 3:5]])  # so that tau is below 1
    one, three = refine_labels(labels, graph, start, 4), refine_labels(np.repeat(labels, 3, axis=1), graph, start, 4)
    assert one.tau < 0.95
    assert 8 * one.tau == pytest.approx(24 * three.tau, rel=1e-9)
    np.testing.assert_array_equal(one.labels, three.labels)
    np.testing.assert_allclose(one.membership, three.membership, atol=1e-6)


def test_without_edges_memberships_are_posteriors():
    labels, graph, start, k = CASES["no edges"]
    rows, row_of = distinct_rows(labels)
    result = refine_labels(labels, graph, start, k, max_rounds=1)
    q = literal_start(start, k)
    theta = literal_theta(labels, q)
    table = np.log2(np.maximum(np.vstack([np.array(of_member).T for of_member in theta]), FLOOR))
    posteriors = memberships(literal_tau(labels, theta, q) * table, np.zeros(k), rows)
    np.testing.assert_allclose(result.membership, posteriors[row_of], atol=1e-9)
    assert result.beta == 0


def test_a_start_that_equals_a_clustering_is_left():
    labels, classes, _ = noisy_map((32, 32), 4, "pixels", seed=7)
    worst = labels[:, 0] % 4
    labels = np.column_stack([labels, worst])
    assert ari(classes, worst) < 0.5
    assert ari(classes, refine_labels(labels, ge.Graph.grid((32, 32)), worst, 4).labels) > ari(classes, worst) + 0.2


def test_renamed_labels_and_permuted_objects():
    """Another order of the objects gives other colours: clear classes are the same, and doubtful ones may differ."""
    labels, classes, _ = noisy_map((24, 24), 4, "pixels", seed=2)
    graph, start = ge.Graph.grid((24, 24)), blurred_classes(classes, (24, 24), 4)
    labels = without(labels, 0.1, np.random.default_rng(0))
    result = refine_labels(labels, graph, start, 4)
    renamed = refine_labels(np.array([7, 3, 12, 0, 9, 5, -1])[labels], graph, start, 4)
    np.testing.assert_array_equal(result.labels, renamed.labels)
    np.testing.assert_allclose(result.membership, renamed.membership, atol=1e-9)
    np.testing.assert_array_equal(result.labels, 3 - refine_labels(labels, graph, 3 - start, 4).labels)
    order = np.random.default_rng(3).permutation(len(labels))
    place = np.argsort(order)
    edges = ge.Graph.of(np.column_stack([place[graph.tails], place[graph.heads]])[graph.tails < graph.heads])
    permuted = refine_labels(labels[order], edges, start[order], 4)
    assert (permuted.labels == result.labels[order]).mean() > 0.99


def test_counts_of_rows_are_repetitions():
    """Equal rows may be one row or several."""
    labels, graph, start, k = CASES["few rows"]
    result = refine_labels(labels, graph, start, k)
    each = refine(Rows(ge.Ensemble(labels)), np.arange(len(labels)), graph, np.asarray(start), k)
    np.testing.assert_allclose(result.membership, each.membership, atol=1e-12)
    np.testing.assert_array_equal(result.labels, each.labels)


@pytest.mark.parametrize("k", [4, 7])
def test_devices_and_threads_give_the_same_bits(k, where, monkeypatch):
    labels = without(noisy_map((40, 40), 4, "patches", seed=4)[0], 0.05, np.random.default_rng(1))
    graph = ge.Graph.neighbors(np.random.default_rng(2).random((1600, 2)))
    start = np.random.default_rng(3).integers(k, size=1600)
    results = []
    for device, threads in (("cpu", "1"), (where, "3")):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        results.append(refine_labels(labels, graph, start, k, device, max_rounds=3))
    for array, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_memberships_stay_on_the_device(fake_cupy):
    labels, graph, start, k = CASES["clear"]
    expected = refine_labels(labels, graph, start, k, max_rounds=4)
    rows, row_of = distinct_rows(labels, "cuda")
    fake_cupy.traffic.to_host.sizes.clear()
    result = refine(rows, row_of, graph, start, k, max_rounds=4)
    for one, other in zip(expected, result, strict=True):
        np.testing.assert_array_equal(one, other)
    *of_rounds, membership, classes, _ = fake_cupy.traffic.to_host.sizes
    assert (membership, classes) == (8 * 60 * k, 8 * 60)
    tables = [8 * rows.n_clusters] + [8 * rows.n_clusters * k] * result.n_rounds  # cluster sizes, and a table a round
    assert sorted(of_rounds)[-len(tables) :] == tables
    assert sorted(of_rounds)[-len(tables) - 1] <= 16


def test_ties_take_the_first_class(where):
    """Without edges and with equal rows in all classes, all memberships are equal."""
    result = refine_labels(np.array([[0, 1], [1, 0]] * 4), random_graph(8, 0), np.arange(8) // 2 % 2, 2, where)
    assert (result.membership == 0.5).all()
    assert result.labels.tolist() == [0] * 8


# --- maps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["pixels", "patches"])
def test_maps_are_restored(noise):
    shape = (64, 64)
    labels, classes, _ = noisy_map(shape, 5, noise, seed=5)
    start = blurred_classes(classes, shape, 5)
    result = refine_labels(labels, ge.Graph.grid(shape), start, 5)
    assert ari(classes, start) < 0.75
    assert ari(classes, result.labels) >= 0.97
    assert result.converged
    assert 1 < result.beta < 4


@pytest.mark.parametrize("noise", ["pixels", "patches"])
def test_stripes_of_three_pixels_are_kept(noise):
    shape = (64, 96)
    labels, classes, wide = noisy_map(shape, 4, noise, stripes=6, seed=6)
    result = refine_labels(labels, ge.Graph.grid(shape), blurred_classes(classes, shape, 5), 5)
    columns, striped = np.arange(wide.size) % shape[1], result.labels == 4
    for width in (3, 4, 5, 6):
        within = wide == width
        around = np.isin(columns, (columns[within][:, None] + [-2, 0, 2]).ravel())  # two pixels of other classes
        assert f1_score(within[around], striped[around]) >= 0.98, width


def test_too_much_memory_is_refused_before_the_work(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "1KB")
    said = "memberships of 60 objects in 3 classes", "fewer clusters"
    refused(lambda: refine_labels(*CASES["clear"]), MemoryError, *said)
