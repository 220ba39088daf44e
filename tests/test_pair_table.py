"""Average linkage with a table of all pairs of regions: the merges are the greedy algorithm's, and bounds are valid."""

import numpy as np
import oracles
import pytest
from conftest import random_labels, structured_labels
from test_average_linkage import dendrogram_of, merges_of, random_weights

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.partition import Work
from gpuens.partition.linkage import average, pair_table
from gpuens.partition.linkage.nearest import Shortlists, nearest_index, share_compared
from gpuens.partition.linkage.pair_table import PairTable
from gpuens.partition.linkage.regions import merge_histograms, regions_of
from gpuens.partition.linkage.row_regions import Members
from gpuens.partition.linkage.singletons import equal_leaves
from gpuens.reduction import core_groups
from gpuens.runtime.native import cpu

pytestmark = pytest.mark.usefixtures("by_lists")

SHAPES = {
    "noise": lambda: random_labels(180, 9, (2, 7), seed=1),
    "few clusterings": lambda: random_labels(180, 3, (5, 9), seed=5),
    "missing": lambda: random_labels(180, 6, (2, 6), missing=0.2, seed=2),
    "repeated rows": lambda: random_labels(300, 7, (3, 5), distinct=150, seed=3),
    "large regions": lambda: structured_labels(180, 12, 3, noise=0.2, missing=0.1, seed=4)[0],
    "nothing shared": lambda: np.repeat(np.arange(100), 2)[:, None] * 2 + random_labels(200, 3, 2, seed=6),
}


@pytest.fixture
def started(monkeypatch, sizes):
    """Record the number of regions of every table, and return the list."""
    seen, of = [], PairTable.of

    def begun(active, *args):
        seen.append(len(active))
        return of(active, *args)

    monkeypatch.setattr(PairTable, "of", begun)
    sizes(PAIR=0)
    return seen


@pytest.fixture
def table_from(monkeypatch, sizes):
    """Return a function that sets from how many rows on tables are made.

    Tables are made even where bounds save much work.
    """

    def put(n_rows):
        sizes("average", FEWEST=n_rows)
        monkeypatch.setattr(average, "share_compared", lambda *_: 1.0)

    return put


def assert_greedy(labels, weights, found):
    expected = oracles.greedy_average_linkage(labels, weights)
    assert [merge[:2] for merge in merges_of(found)] == [merge[:2] for merge in expected.merges]
    np.testing.assert_array_equal(found.similarities, expected.heights)


@pytest.mark.parametrize("listed", [1, 8])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_all_rows_gives_the_dendrogram_of_the_greedy_algorithm(shape, listed, started, table_from, sizes):
    """Lists have one entry, so that searches and histograms do most of the work."""
    table_from(1)
    sizes("pair_table", LISTED=listed)
    labels = SHAPES[shape]()
    for weights in (None, random_weights(labels)):
        started.clear()
        work = Work()
        found, reduced = dendrogram_of(labels, weights, work=work)
        leaves = None if weights is None else equal_leaves(reduced.rows, weights)
        assert started == [len(reduced.counts if leaves is None else leaves.first)]
        assert work.searches >= started[0]
        if shape == "nothing shared" and weights is not None:
            oracles.assert_greedy_up_to_rounding(labels, weights, merges_of(found))
        else:
            assert_greedy(labels, weights, found)


def test_a_table_is_the_same_on_any_number_of_threads(monkeypatch, started, table_from):
    table_from(1)
    labels = structured_labels(1500, 30, 12, noise=0.7, seed=2)[0]
    found = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", n_threads)
        work = Work()
        dendrogram, _ = dendrogram_of(labels, work=work)
        found.append([dendrogram.kept, dendrogram.absorbed, dendrogram.similarities, [work.searches, work.rounds]])
    assert len(started) == 2
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_units_of_another_type_are_refused():
    bounds, none = np.empty((0, 2)), np.empty((0, 2), dtype=np.int64)
    with pytest.raises(TypeError):
        cpu.bound_pairs((np.zeros((3, 64)), 0.0, 1.0, 4), np.ones(3, dtype=np.int64), none, none, bounds)


@pytest.mark.parametrize("shape", ["noise", "missing", "repeated rows", "large regions"])
@pytest.mark.parametrize("cost", [0, 1])
def test_a_table_of_unions_takes_over_from_lists(shape, cost, started, sizes):
    """Lists and nearest regions that were found before the table was made remain valid.

    A table costs nothing for each label, or one comparison, instead of M.
    """
    labels = SHAPES[shape]()
    sizes(N_LISTED=2, PAIR=cost - labels.shape[1])
    for weights in (None, random_weights(labels)):
        started.clear()
        found, reduced = dendrogram_of(labels, weights)
        assert 1 < started[0] < len(reduced.counts)
        assert_greedy(labels, weights, found)


def test_the_most_regions_are_those_whose_table_fits():
    for n_bytes in (-5, 0, 1, 127, 128, 129, 2 * 65 * 128, 2 * 65 * 128 - 1, 2 * 128 * 128, 10**6, pair_table.MOST):
        n = pair_table.most_regions(n_bytes)
        assert pair_table.bytes_needed(n) <= max(0, n_bytes) < pair_table.bytes_needed(n + 1)


@pytest.mark.parametrize("weights", ["ones", "real", "far apart"])
def test_units_and_their_sums_bound_similarities_from_both_sides(weights):
    """Bounds for rows, for unions of rows and for unions of unions, in 16 bits and in both halves of 32 bits."""
    labels = structured_labels(200, 40, 6, noise=0.5, missing=0.1, seed=3)[0]
    ensemble = Ensemble(labels)
    reduced = core_groups(Rows(ensemble))
    codes, n = reduced.ensemble.codes, len(reduced.counts)
    sizes = np.random.default_rng(1).integers(1, 4, n)
    worth = np.ones(ensemble.n_clusters, dtype=np.int64) if weights == "ones" else random_weights(labels)
    if weights == "far apart":  # in 16 bits, some weights are about one unit
        worth[::2] = pair_table.WEIGHTS * worth.max()
    index = nearest_index(codes, ensemble.offsets, worth, sizes)
    regions = regions_of(codes, ensemble.offsets, sizes)
    active = index.order.copy()
    table = PairTable.of(active, Members.of_rows(n), index, regions, worth)
    place = np.empty(n, dtype=np.int64)
    place[active] = np.arange(n)
    sizes = regions.size[active]
    merges = np.empty((0, 2), dtype=np.int64)

    for _ in range(4):
        pairs = np.array([(a, b) for a in active[::7] for b in active[::5] if a != b])
        similarities = np.array([oracles.similarity_of_regions(regions, worth, 40, a, b) for a, b in pairs])
        bounds = np.empty((len(pairs), 2))
        units = table.units.copy()  # merges change it
        cpu.bound_pairs(table._replace(units=units)[:4], sizes, merges, place[pairs], bounds)
        some = similarities > 0.0
        assert (bounds[~some, 0] == 0.0).all()
        upper, lower = (bounds[some] / similarities[some, None]).T
        # the units of a similarity of 1 are the same number for all pairs
        assert lower.max() <= upper.min()
        assert upper.min() > 30_000
        assert upper.min() >= table.unit * (1.0 - 1e-12)
        assert (weights == "ones") == (table.slack == 0.0)
        kept, absorbed = (np.sort(active[: len(active) // 2 * 2].reshape(-1, 2), axis=1)[::3, i] for i in (0, 1))
        regions = pair_up(regions, kept, absorbed)
        merges = np.concatenate([merges, place[np.column_stack([kept, absorbed])]])
        active = active[~np.isin(active, absorbed)]
    assert regions.size.max() > 4 * sizes.min()


def pair_up(regions, kept, absorbed):
    room = np.zeros(int(regions.length.sum()), dtype=np.int32)
    roomy = regions._replace(
        clusters=np.concatenate([regions.clusters, room]),
        counts=np.concatenate([regions.counts, room.astype(regions.counts.dtype)]),
    )
    merge_histograms(roomy, kept, absorbed, np.array([len(kept)]))
    return roomy


def test_a_table_is_for_many_clusterings_of_rows_that_bounds_tell_little_about(started, sizes):
    sizes(PAIR=64)
    sizes("average", FEWEST=256)
    for n_clusterings, noise, expected in ((90, 0.8, True), (20, 0.8, False), (90, 0.02, False)):
        labels = structured_labels(1500, n_clusterings, 12, noise=noise, seed=1)[0]
        started.clear()
        dendrogram_of(labels)
        assert bool(started) == expected


def test_what_bounds_save_is_told_by_a_few_rows():
    for noise, most, least in ((0.02, 0.5, 0.0), (0.9, 1.2, 0.9)):
        labels = np.unique(structured_labels(2000, 40, 12, noise=noise, seed=1)[0], axis=0)
        ensemble = Ensemble(labels)
        n = len(labels)
        args = ensemble.codes, ensemble.offsets, np.ones(ensemble.n_clusters, dtype=np.int64), np.ones(n, np.int64)
        assert least < share_compared(nearest_index(*args), Shortlists.empty(n, 16)) < most


@pytest.mark.parametrize(("budget", "expected"), [("3MB", False), ("8MB", True)])
def test_a_table_takes_no_more_memory_than_there_is(budget, expected, started, monkeypatch, table_from):
    table_from(256)
    labels = random_labels(1000, 20, 5, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", budget)
    dendrogram_of(labels)
    assert bool(started) == expected


def test_weights_too_far_apart_for_units_have_no_table():
    labels = random_labels(300, 10, 5, seed=1)
    ensemble = Ensemble(labels)
    weights = np.ones(ensemble.n_clusters)
    assert average._room_for_table(Rows(ensemble), weights) > 0
    weights[0] = 1e-4
    assert average._room_for_table(Rows(ensemble), weights) == 0


def test_a_circle_of_nearest_is_broken_by_the_best_pair(started, monkeypatch, table_from):
    """Rounding can make regions name each other as nearest in a circle. This test builds a circle."""
    labels = random_labels(80, 6, 5, seed=3)
    table_from(1)
    merge_all, spoiled = PairTable.merge_all, []

    def circling(self, members, regions, weights, n_clusterings, state, report):
        # the first three regions form a circle, and region 0 is the nearest region of all other regions
        active = state.active
        state.nearest[active] = active[0]
        state.nearest[active[:3]] = active[[1, 2, 0]]
        circle = [oracles.similarity_of_regions(regions, weights, n_clusterings, a, state.nearest[a]) for a in active]
        found = merge_all(self, members, regions, weights, n_clusterings, state, report)
        spoiled.append(state.merged_at[0] == max(circle))
        return found

    monkeypatch.setattr(PairTable, "merge_all", circling)
    found, reduced = dendrogram_of(labels)
    assert spoiled == [True]
    assert len(found.similarities) == len(reduced.counts) - 1
