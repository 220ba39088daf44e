"""Average linkage of few rows by a matrix of all their pairs: what lists and rounds give, to the bit."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import random_labels, structured_labels

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.partition import Work, average_linkage
from gpuens.partition.linkage import few_rows
from gpuens.partition.linkage.regions import regions_of
from gpuens.reduction import core_groups

WEIGHTS = {
    "ones": lambda n, rng: np.ones(n, dtype=np.int64),
    "real": lambda n, rng: rng.uniform(0.05, 1.0, n),
    "ties": lambda n, rng: rng.choice([0.1, 0.3, 0.7], n),  # sums of which depend on the order
    "far apart": lambda n, rng: 10.0 ** rng.integers(-140, 140, n),
}


def given(rng, kind):
    """Return the arguments of average linkage for a small ensemble drawn by ``rng``, and some counts of its rows."""
    n_objects, missing, seed = int(rng.integers(8, 200)), float(rng.choice([0.0, 0.2, 0.6])), int(rng.integers(2**31))
    if rng.random() < 0.3:
        labels = random_labels(n_objects, int(rng.integers(2, 9)), (2, 7), missing=missing, seed=seed)
    else:
        shape = n_objects, int(rng.integers(2, 9)), int(rng.integers(2, 6))
        labels = structured_labels(*shape, noise=float(rng.random()), missing=missing, seed=seed)[0]
    ensemble = Ensemble(labels)
    groups = core_groups(Rows(ensemble))
    counts = groups.counts * rng.integers(1, 10**4, len(groups.counts)) if rng.random() < 0.5 else groups.counts
    return groups.ensemble.codes, ensemble.offsets, WEIGHTS[kind](ensemble.n_clusters, rng), counts


def linked(args, sizes, most):
    """Return the dendrogram and the work of average linkage where so many rows are few."""
    sizes("few_rows", MOST=most)
    work = Work()
    return average_linkage(*args, work=work), work


def assert_same(found, expected):
    for part in ("kept", "absorbed", "similarities"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


@pytest.mark.filterwarnings("ignore:.*one cluster:UserWarning")
@pytest.mark.parametrize("kind", WEIGHTS)
def test_merges_heights_and_rounds_are_those_of_lists(kind, sizes):
    rng = np.random.default_rng(len(kind))
    for _ in range(25):
        args = given(rng, kind)
        (found, by_pairs), (expected, by_lists) = linked(args, sizes, 1500), linked(args, sizes, 0)
        assert_same(found, expected)
        assert by_pairs.rounds == by_lists.rounds
        n_rows, n_clusterings = args[0].shape
        assert by_pairs.comparisons == n_rows * (n_rows - 1) // 2 * n_clusterings


@pytest.mark.parametrize("n_objects", [1, 2])
def test_one_row_and_rows_that_share_nothing(n_objects, sizes):
    args = (
        np.arange(n_objects, dtype=np.uint8)[:, None],
        np.array([0, n_objects]),
        np.ones(n_objects),
        np.ones(n_objects, dtype=np.int64),
    )
    (found, work), (expected, _) = linked(args, sizes, 1500), linked(args, sizes, 0)
    assert_same(found, expected)
    assert (work.rounds, work.searches) == (0, 0)


def test_what_few_rows_are(monkeypatch):
    """All others go by lists: real affinities, many rows, little memory, and whole sums that float64 would round."""
    codes, ones = np.zeros((4, 9), dtype=np.uint8), np.ones(9, dtype=np.int64)
    few = np.ones(4, dtype=np.int64)
    assert few_rows.suits(codes, ones, few)
    assert not few_rows.suits(codes, np.eye(9), few)
    assert not few_rows.suits(codes, ones, few * 10**7)
    assert few_rows.suits(codes, ones * 1.0, few * 10**7)
    assert not few_rows.suits(np.zeros((1501, 9), dtype=np.uint8), ones, np.ones(1501, dtype=np.int64))
    monkeypatch.setenv("GPUENS_MEMORY", "2500")
    assert few_rows.suits(codes, ones, few)
    monkeypatch.setenv("GPUENS_MEMORY", "2300")
    assert not few_rows.suits(codes, ones, few)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a process's peak starts anew on Linux alone")
def test_histograms_of_many_clusterings_are_foreseen(monkeypatch):
    """Here the matrix takes 8 MB, the histograms ten times as much; a new process holds nothing of earlier tests."""
    code = """if True:
    import numpy as np
    from gpuens.partition import average_linkage
    from gpuens.runtime.record import forget_peak_memory, peak_memory, resident_memory
    rows = np.random.default_rng(0).integers(10, size=(1000, 1400)).astype(np.uint8)
    offsets, ones, few = np.arange(1401) * 10, np.ones(14_000, dtype=np.int64), np.ones(1000, dtype=np.int64)
    labels, first = np.asfortranarray(rows), np.asfortranarray(rows[:5])
    average_linkage(first, offsets, ones, few[:5])  # compiles
    before = resident_memory()
    forget_peak_memory()
    average_linkage(labels, offsets, ones, few)
    print(peak_memory() - before)
    """
    held = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert int(held) > 32e6
    codes = np.zeros((1000, 1400), dtype=np.uint8)
    ones, few = np.ones(14_000, dtype=np.int64), np.ones(1000, dtype=np.int64)
    assert few_rows.suits(codes, ones, few)
    monkeypatch.setenv("GPUENS_MEMORY", held)
    assert not few_rows.suits(codes, ones, few)


def test_a_circle_of_nearest_is_broken_by_the_best_pair():
    """Rounding can make one; here it is put in by hand."""
    sums = np.array([[0.0, 3.0, 2.0, 1.0], [3.0, 0.0, 1.0, 1.0], [2.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
    regions = regions_of(np.zeros((4, 1), dtype=np.uint8), np.array([0, 1]), np.ones(4, dtype=np.int64))
    nearest, similarity = np.array([1, 2, 0, 0]), np.array([3.0, 1.0, 2.0, 1.0])
    kept, absorbed, heights = np.empty(4, dtype=np.int64), np.empty(4, dtype=np.int64), np.empty(4)
    made, rounds, _ = few_rows._link(
        sums, regions, np.ones(1), 1, True, 1000, nearest, similarity, kept, absorbed, heights
    )
    assert (made, rounds) == (3, 3)
    assert (kept[0], absorbed[0], heights[0]) == (0, 1, 3.0)


def test_a_first_fit_of_few_rows_compiles_few_functions():
    """One for each combination of types that Python calls: 13, and none besides for what those call."""
    code = """if True:
    import sys
    import numpy as np
    import gpuens as ge
    from numba.core.dispatcher import Dispatcher
    ge.LWEA(3).fit(np.random.default_rng(0).integers(5, size=(200, 20)))
    of_modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("gpuens")]
    functions = {id(f): f for names in of_modules for f in names.values() if isinstance(f, Dispatcher)}
    print(*(f.__name__ for f in functions.values() for _ in f.overloads))
    """
    called = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert 8 <= len(called) <= 15, called
