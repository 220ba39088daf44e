"""Joins of clusterings on a graph, compared with dense matrices and loops, and the warning of lost thin clusters."""

import warnings

import numpy as np
import pytest
from conftest import refused, structured_labels, without
from maps import noisy_map
from scipy.sparse import coo_array

import gpuens as ge
from gpuens.evidence.joins import MOST_STEPS
from gpuens.neighbors.domains import warn_of_lost_classes

pytestmark = pytest.mark.filterwarnings("ignore:constant clusterings")


def random_graph(n, n_edges, seed, weighted=True):
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.sort(rng.integers(n, size=(n_edges, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    matrix = coo_array((rng.uniform(0.2, 3, len(pairs)) if weighted else np.ones(len(pairs)), pairs.T), shape=(n, n))
    return ge.Graph.of((matrix + matrix.T).tocsr())


def literal_joins(column, graph):
    """Return joins, expected joins and coherence of a clustering, and its shares beyond chance after 0 … 16 steps."""
    n, together, total = len(column), 0.0, 0.0
    for i in range(n):
        for j, weight in zip(graph.neighbors_of(i), graph.weights[graph.starts[i] : graph.starts[i + 1]], strict=True):
            if min(column[i], column[j]) >= 0:
                together += weight * (column[i] == column[j])
                total += weight
    labelled = np.flatnonzero(column >= 0)
    expected = sum((column[labelled] == c).mean() ** 2 for c in set(column[labelled].tolist()))
    joins = together / total if total else np.nan
    walk = graph.matrix().toarray() + np.eye(n)
    walk /= walk.sum(axis=1, keepdims=True)
    beyond, power = [], np.eye(n)
    for _ in range(17):
        shares = [power[i, column == column[i]].sum() / power[i, labelled].sum() for i in labelled]
        beyond.append((np.mean(shares) - expected) / (1 - expected) if expected < 1 else np.nan)
        power = power @ walk
    return joins, expected, (joins - expected) / (1 - expected) if expected < 1 else np.nan, beyond


LABELS = structured_labels(60, 4, 3, noise=0.2, missing=0.15, seed=1)[0]
FIELD = np.repeat([[0, 0, 0, 1, 1, 1, 2, 2]], 8, axis=0).ravel()
CASES = {
    "weights and gaps": (LABELS, random_graph(60, 120, 0)),
    "no weights": (np.abs(LABELS), random_graph(60, 100, 1, weighted=False)),
    "a field": (
        np.column_stack([FIELD, without(FIELD[:, None], 0.3, np.random.default_rng(0))]),
        ge.Graph.grid((8, 8)),
    ),
    "a chain": (np.arange(60)[:, None] // np.array([1, 3, 4, 5, 6, 7, 30]), ge.Graph.grid((60,))),
    "one cluster": (np.zeros((9, 2), dtype=np.int64), ge.Graph.grid((3, 3))),
}


@pytest.mark.parametrize("case", CASES)
def test_joins_are_the_literal_ones(case, where):
    labels, graph = CASES[case]
    found, n_steps = ge.evidence.joins(labels, graph, device=where), []
    for m, column in enumerate(labels.T):
        *expected, beyond = literal_joins(column, graph)
        np.testing.assert_allclose([of[m] for of in (found.joins, found.expected, found.coherence)], expected)
        # shares are whole multiples of 2^-15 in each step
        assert all(abs(share - 0.5) > 0.002 for share in beyond if share == share)
        below = [t for t, share in enumerate(beyond) if not share >= 0.5]
        n_steps.append(max(below[0] - 1, 0) if below else MOST_STEPS)
    assert found.steps.tolist() == n_steps
    assert found.table.columns.tolist() == ["joins", "expected", "coherence", "steps"]
    np.testing.assert_array_equal(found.table["coherence"], found.coherence)


def test_the_cases_stop_early_late_and_never():
    steps = {int(n) for labels, graph in CASES.values() for n in ge.evidence.joins(labels, graph).steps}
    assert {0, MOST_STEPS} < steps
    assert len(steps) > 3


def test_edges_without_labels_say_nothing():
    chain = ge.Graph.grid((4,))
    apart = ge.evidence.joins([[0, None, 1, None], [None, 0, None, 1]], chain)
    assert np.isnan(apart.joins).all()
    assert apart.steps.tolist() == [0, 0]
    assert str(apart).startswith("Joins: of 2 clusterings\n")


def test_what_joins_say_and_refuse():
    mixed = np.random.default_rng(1).integers(2, size=64)
    found = ge.evidence.joins(ge.Ensemble([FIELD, mixed], names=["layers", "types"]), ge.Graph.grid((8, 8)))
    assert found.coherence[0] > 0.6 > 0.1 > found.coherence[1]
    first, steps, blind, _ = str(found).split("\n")
    assert first.startswith(f"Joins: mean coherence {found.coherence.mean():.2f} of 2 clusterings, from ")
    assert steps == f"  steps: median {found.steps.mean():g}, from 0 to {found.steps[0]}"
    assert blind == "  blind to neighbours: types"
    assert found.table.index.tolist() == ["layers", "types"]
    refused(lambda: ge.evidence.joins([FIELD, mixed], ge.Graph.grid((8, 9))), ValueError, "graph", "72", "64")


def test_too_many_clusters_are_refused_before_the_work(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "1KB")
    labels, graph = CASES["a chain"]
    refused(lambda: ge.evidence.joins(labels, graph), MemoryError, "60 objects in 60 clusters", "leave out")


def test_spatial_has_the_joins_of_its_fit():
    labels = without(noisy_map((16, 16), 3, "pixels", n_clusterings=4)[0], 0.1, np.random.default_rng(0))
    labels = ge.Ensemble(labels, names=list("wxyz"))
    est = ge.Spatial(3)
    for graph in (ge.Graph.grid((16, 16)), ge.Graph.grid((256,))):
        expected = ge.evidence.joins(labels, graph)
        found = est.fit(labels, graph=graph).joins_
        assert found is est.joins_
        assert found.table.equals(expected.table)
    refused(lambda: est.fit(labels).joins_, AttributeError, "joins_", "graph or coordinates")


# --- lost thin clusters -----------------------------------------------------------------------------------------------


def lost(labels, domains, graph):
    """Return the warning of lost clusters, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_lost_classes(labels, domains, graph)
    return str(caught[0].message) if caught else None


def striped(width, period=24, shape=(48, 48)):
    """Return two halves (N,) of a field, and the same with a third class: stripes of some width."""
    x = np.indices(shape)[1].ravel()
    halves = x // (shape[1] // 2)
    return halves, np.where((x % period - 6) % period < width, 2, halves)


@pytest.mark.parametrize("graph", ["grid", "six neighbours"])
@pytest.mark.parametrize(("width", "warned"), [(0, False), (1, True), (2, True), (3, False), (6, False)])
def test_lost_stripes_of_one_or_two_objects_are_warned_of(width, warned, graph):
    rng, (halves, classes) = np.random.default_rng(0), striped(width)
    places = np.indices((48, 48)).reshape(2, -1).T
    graph = (
        ge.Graph.grid((48, 48)) if graph == "grid" else ge.Graph.neighbors(places + rng.uniform(-0.3, 0.3, (2304, 2)))
    )
    wrong = rng.random(2304) < 0.005  # a consensus has errors
    classes = np.where(wrong, rng.integers(classes.max() + 1, size=2304), classes)
    message = lost(classes, halves, graph)
    assert (message is not None) == warned
    if warned:
        assert message.startswith(f"labels alone give 1 thin cluster ({(classes == 2).sum()} objects) that no domain")
    assert lost(classes, classes, graph) is None


def test_noise_and_small_blobs_are_not_thin_clusters():
    rng, (halves, _), graph = np.random.default_rng(1), striped(0), ge.Graph.grid((48, 48))
    assert lost(np.where(rng.random(2304) < 0.2, 2, halves), halves, graph) is None
    y, x = np.indices((48, 48)).reshape(2, -1)
    assert lost(np.where((y % 16 < 6) & (x % 16 < 6), 2, halves), halves, graph) is None
    weak = halves + 2 * (
        np.indices((48, 48)).sum(axis=0).ravel() % 7 == 0
    )  # diagonals, whose pixels are not neighbours
    assert lost(weak, halves, graph) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("stripes", "n_classes"), [(0, 4), (0, 6), (1, 6), (2, 4), (6, 4)])
def test_a_fit_warns_of_the_stripes_that_it_lost(stripes, n_classes):
    labels, classes, wide = noisy_map((64, 64), n_classes, "pixels", stripes=stripes, seed=1)
    k = int(classes.max()) + 1
    if stripes in (1, 2):
        with pytest.warns(
            UserWarning, match=r"labels alone give 1 thin cluster \(.* objects\) that no domain resembles"
        ):
            est = ge.Spatial(k).fit(labels, graph=ge.Graph.grid((64, 64)))
        assert max(np.mean(wide[est.labels_ == c] > 0) for c in range(k)) < 0.25
    else:
        est = ge.Spatial(k).fit(labels, graph=ge.Graph.grid((64, 64)))
