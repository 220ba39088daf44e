"""Average linkage with a table of all pairs of regions: the merges are those of the greedy algorithm."""

import numpy as np
import oracles
import pytest
from conftest import random_labels, structured_labels
from test_average import assert_greedy, dendrogram_of, merges_of, random_weights

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.partition import Work
from gpuens.partition.linkage import average, conduct
from gpuens.partition.linkage.nearest import Shortlists, nearest_index, share_compared
from gpuens.partition.linkage.singletons import equal_leaves
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
def tables(monkeypatch, sizes):
    """Make tables cost nothing but their label comparisons; return a list of whether linkages began with a table."""
    seen, link = [], cpu.link_diagonal

    def begun(columns, index, diagonal, lists, *args):
        seen.append(lists.ids.shape[1] == 0)
        return link(columns, index, diagonal, lists, *args)

    monkeypatch.setattr(cpu, "link_diagonal", begun)
    sizes("partition.linkage.conduct", PAIR_COMPARISONS=0)
    return seen


@pytest.fixture
def table_from(monkeypatch, sizes):
    """Return a function that sets from how many rows on tables are made.

    Tables are made even where bounds save much work.
    """

    def put(n_rows):
        sizes("partition.linkage.conduct", SAMPLED_FROM=n_rows)
        monkeypatch.setattr(average, "share_compared", lambda *_: 1.0)

    return put


@pytest.mark.parametrize("listed", [1, 8])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_all_rows_gives_the_dendrogram_of_the_greedy_algorithm(shape, listed, tables, table_from, sizes):
    """Lists have one entry, so that searches and histograms do most of the work."""
    table_from(1)
    sizes("partition.linkage.conduct", N_LISTED_IN_TABLE=listed)
    labels = SHAPES[shape]()
    for weights in (None, random_weights(labels)):
        work = Work()
        found, reduced = dendrogram_of(labels, weights, work=work)
        leaves = None if weights is None else equal_leaves(reduced.rows, weights)
        assert tables.pop()
        assert work.searches >= len(reduced.counts if leaves is None else leaves.first)
        if shape == "nothing shared" and weights is not None:
            oracles.assert_greedy_up_to_rounding(labels, weights, merges_of(found))
        else:
            assert_greedy(labels, weights, found)


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_about_one_unit_of_the_table(seed, tables, table_from):
    """In 16 bits, half of the weights are about one unit."""
    table_from(1)
    labels = structured_labels(150, 40, 6, noise=0.5, missing=0.1, seed=seed)[0]
    weights = random_weights(labels, seed)
    weights[::2] = conduct.SMALLEST_WEIGHT_RATIO * weights.max()
    found, _ = dendrogram_of(labels, weights)
    assert tables == [True]
    assert_greedy(labels, weights, found)


def test_a_table_is_the_same_on_any_number_of_threads(monkeypatch, tables, table_from):
    table_from(1)
    labels, results = structured_labels(1500, 30, 12, noise=0.7, seed=2)[0], []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", n_threads)
        work = Work()
        results.append((merges_of(dendrogram_of(labels, work=work)[0]), work.searches, work.rounds))
    assert tables == [True, True]
    assert results[0] == results[1]


@pytest.mark.parametrize("shape", ["noise", "missing", "repeated rows", "large regions"])
@pytest.mark.parametrize("cost", [0, 1])
def test_a_table_of_unions_takes_over_from_lists(shape, cost, tables, sizes):
    """Lists and nearest regions that were found before the table was made remain valid.

    A table costs nothing for each label, or one comparison, instead of M.
    """
    labels = SHAPES[shape]()
    sizes("partition.linkage.conduct", N_LISTED=2)
    for weights in (None, random_weights(labels)):
        sizes("partition.linkage.conduct", PAIR_COMPARISONS=cost - labels.shape[1])
        work = Work(), Work()
        found, reduced = dendrogram_of(labels, weights, work=work[0])
        sizes("partition.linkage.conduct", PAIR_COMPARISONS=10**6)
        dendrogram_of(labels, weights, work=work[1])
        assert not any(tables)
        n_rows = len(reduced.counts)
        assert work[0].comparisons >= n_rows**2 // 2 * labels.shape[1]
        assert work[0].comparisons != work[1].comparisons
        assert_greedy(labels, weights, found)


def test_the_most_regions_are_those_whose_table_fits():
    for n_bytes in (-5, 0, 1, 127, 128, 129, 2 * 65 * 128, 2 * 65 * 128 - 1, 2 * 128 * 128, 10**6, 2**30):
        n = conduct.most_regions(n_bytes)
        assert conduct.bytes_of_table(n) <= max(0, n_bytes) < conduct.bytes_of_table(n + 1)


def test_a_table_is_for_many_clusterings_of_rows_that_bounds_tell_little_about(tables, sizes):
    sizes("partition.linkage.conduct", PAIR_COMPARISONS=64)
    sizes("partition.linkage.conduct", SAMPLED_FROM=256)
    for n_clusterings, noise, expected in ((90, 0.8, True), (20, 0.8, False), (90, 0.02, False)):
        labels = structured_labels(1500, n_clusterings, 12, noise=noise, seed=1)[0]
        dendrogram_of(labels)
        assert tables.pop() == expected


def test_what_bounds_save_is_told_by_a_few_rows():
    for noise, most, least in ((0.02, 0.5, 0.0), (0.9, 1.2, 0.9)):
        labels = np.unique(structured_labels(2000, 40, 12, noise=noise, seed=1)[0], axis=0)
        ensemble = Ensemble(labels)
        n = len(labels)
        args = ensemble.codes, ensemble.offsets, np.ones(ensemble.n_clusters, dtype=np.int64), np.ones(n, np.int64)
        assert least < share_compared(nearest_index(*args), Shortlists.empty(n, 16)) < most


@pytest.mark.parametrize(("budget", "expected"), [("3MB", False), ("8MB", True)])
def test_a_table_takes_no_more_memory_than_there_is(budget, expected, tables, monkeypatch, table_from):
    table_from(256)
    labels = random_labels(1000, 20, 5, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", budget)
    dendrogram_of(labels)
    assert tables == [expected]


def test_weights_too_far_apart_for_units_have_no_table():
    labels = random_labels(300, 10, 5, seed=1)
    ensemble = Ensemble(labels)
    weights = np.ones(ensemble.n_clusters)
    assert conduct.room_for_table(Rows(ensemble), weights) > 0
    weights[0] = 1e-4
    assert conduct.room_for_table(Rows(ensemble), weights) == 0
