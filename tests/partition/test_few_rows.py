"""Average linkage of few rows, by a matrix of all pairs: results equal those by lists and rounds to the bit."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import random_labels, structured_labels

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.partition import Work, average_linkage
from gpuens.partition.linkage import few_rows
from gpuens.reduction import core_groups
from gpuens.similarity.diagonal import Diagonal

WEIGHTS = {
    "ones": lambda n, rng: np.ones(n, dtype=np.int64),
    "real": lambda n, rng: rng.uniform(0.05, 1.0, n),
    "ties": lambda n, rng: rng.choice([0.1, 0.3, 0.7], n),  # sums depend on the order of addition
    "far apart": lambda n, rng: 10.0 ** rng.integers(-140, 140, n),
}


def given(rng, kind):
    """Draw a small ensemble with random row counts by ``rng``; return the arguments of average linkage for it."""
    n_objects, missing, seed = int(rng.integers(8, 200)), float(rng.choice([0.0, 0.2, 0.6])), int(rng.integers(2**31))
    if rng.random() < 0.3:
        labels = random_labels(n_objects, int(rng.integers(2, 9)), (2, 7), missing=missing, seed=seed)
    else:
        shape = n_objects, int(rng.integers(2, 9)), int(rng.integers(2, 6))
        labels = structured_labels(*shape, noise=float(rng.random()), missing=missing, seed=seed)[0]
    ensemble = Ensemble(labels)
    groups = core_groups(Rows(ensemble))
    counts = groups.counts * rng.integers(1, 10**4, len(groups.counts)) if rng.random() < 0.5 else groups.counts
    weights = WEIGHTS[kind](ensemble.n_clusters, rng)
    return Rows.of(groups.ensemble, counts, "cpu"), Diagonal(weights, ensemble.offsets)


def small_rows(codes, offsets=None, counts=1):
    """Return rows of codes that stand for ``counts`` objects; by default, each clustering has one cluster."""
    offsets = np.arange(codes.shape[1] + 1) if offsets is None else offsets
    return Rows.of_codes(codes, offsets, np.full(len(codes), counts, dtype=np.int64), "cpu")


def linked(args, sizes, most):
    """Run average linkage, where up to ``most`` rows count as few; return the dendrogram and the work."""
    sizes("partition.linkage.few_rows", MOST_ROWS=most)
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
        n_rows = len(args[0])
        assert by_pairs.comparisons == n_rows * (n_rows - 1) // 2 * args[0].n_clusterings


@pytest.mark.parametrize("n_objects", [1, 2])
def test_one_row_and_rows_that_share_nothing(n_objects, sizes):
    offsets = np.array([0, n_objects])
    args = small_rows(np.arange(n_objects, dtype=np.uint8)[:, None], offsets), Diagonal(np.ones(n_objects), offsets)
    (found, work), (expected, _) = linked(args, sizes, 1500), linked(args, sizes, 0)
    assert_same(found, expected)
    assert (work.rounds, work.searches) == (0, 0)


def test_what_few_rows_are(monkeypatch):
    """Lists are used if there are many rows, if memory is short, or if float64 would round sums of integers."""
    codes = np.zeros((4, 9), dtype=np.uint8)
    few, many_objects = small_rows(codes), small_rows(codes, counts=10**7)
    assert few_rows.suits(few, whole_weights=True)
    assert not few_rows.suits(many_objects, whole_weights=True)
    assert few_rows.suits(many_objects, whole_weights=False)
    assert not few_rows.suits(small_rows(np.zeros((1501, 9), dtype=np.uint8)), whole_weights=True)
    monkeypatch.setenv("GPUENS_MEMORY", "4200")
    assert few_rows.suits(few, whole_weights=True)
    assert not few_rows.suits(few, whole_weights=False)  # histograms
    monkeypatch.setenv("GPUENS_MEMORY", "4000")
    assert not few_rows.suits(few, whole_weights=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a process's peak starts anew on Linux alone")
def test_histograms_of_many_clusterings_are_foreseen(monkeypatch):
    """The matrix takes 9 MB and the histograms take 22 MB.

    The test uses a new process, without memory of earlier tests.
    """
    code = """if True:
    import numpy as np
    from gpuens.labels.rows import Rows
    from gpuens.partition import average_linkage
    from gpuens.similarity.diagonal import Diagonal
    from gpuens.runtime.record import forget_peak_memory, peak_memory, resident_memory
    rows = np.random.default_rng(0).integers(10, size=(1000, 1400)).astype(np.uint8)
    offsets, few = np.arange(1401) * 10, np.ones(1000, dtype=np.int64)
    labels = Rows.of_codes(np.asfortranarray(rows), offsets, few, "cpu")
    first = Rows.of_codes(np.asfortranarray(rows[:5]), offsets, few[:5], "cpu")
    weights = Diagonal(np.linspace(0.5, 1.0, 14_000), offsets)
    average_linkage(first, weights)  # imports packages, which takes memory, too
    before = resident_memory()
    forget_peak_memory()
    average_linkage(labels, weights)
    print(peak_memory() - before)
    """
    held = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert int(held) > 26e6
    rows = small_rows(np.zeros((1000, 1400), dtype=np.uint8))
    assert few_rows.suits(rows, whole_weights=False)
    monkeypatch.setenv("GPUENS_MEMORY", held)
    assert not few_rows.suits(rows, whole_weights=False)


def test_a_circle_of_nearest_is_broken_by_the_best_pair(sizes):
    """Regions can name each other as nearest in a circle if rounding changes the last bit, as in the fourth round here.

    All weights are 0.3. The matrix and lists break the circle in the same way; else the rounds would not end.
    """
    codes = [[0, 2, 0, 0, 2, 0], [0, 2, 1, 1, 1, 2], [1, 0, 1, 2, 1, 2], [1, 1, 1, 0, 2, 2], [2, 0, 1, 2, 0, 0],
             [2, 2, 2, 1, 2, 2]]  # fmt: skip
    offsets = np.arange(7) * 3
    rows = small_rows(np.array(codes, dtype=np.uint8, order="F"), offsets, [1, 2, 1, 3, 1, 3])
    args = rows, Diagonal(np.full(18, 0.3), offsets)
    (found, work), (expected, _) = linked(args, sizes, 1500), linked(args, sizes, 0)
    assert_same(found, expected)
    assert work.rounds == 4
