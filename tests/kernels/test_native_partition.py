"""The C++ of partitioners, refinement and CA-tree: equal bits with any threads and on any level, types, signals."""

import hashlib
import signal

import numpy as np
import pytest
import same_results
from conftest import interrupted, raising, thorough
from levels import all_levels
from test_native import codes_of

import gpuens as ge
from gpuens.labels.incidence import cluster_sums, row_lookups, row_sums
from gpuens.labels.rows import Rows
from gpuens.neighbors.refinement import refine
from gpuens.neighbors.regions import regions_of
from gpuens.neighbors.walk import walk
from gpuens.partition.medoids import pam
from gpuens.partition.mixture import posteriors
from gpuens.partition.soft_memberships import (
    label_correspondences,
    label_memberships,
    soft_correspondences,
    soft_memberships,
)
from gpuens.reduction.core_groups import pack_rows
from gpuens.runtime import native
from gpuens.runtime.native import cpu

rock = ge.partition.rock


def similar_labels(n=400, n_clusterings=12, k=6, seed=0):
    rng = np.random.default_rng(seed)
    planted = rng.integers(k, size=n)
    labels = [np.where(rng.random(n) < 0.4, rng.integers(k + 2, size=n), planted) for _ in range(n_clusterings)]
    return [np.where(rng.random(n) < 0.03, -1, of) for of in labels]


def links_of(n, seed=0):
    links = np.random.default_rng(seed).integers(0, 9, (n, n))
    return lambda start, stop: links[start:stop, start:]


def everything():
    """Return a digest of a result of each primitive, on sizes that leave remainders of vectors and of tiles."""
    rng, found = np.random.default_rng(0), hashlib.sha256()
    codes, offsets = codes_of(30_000)
    values = rng.random((600, 37))
    results = [row_sums(codes, offsets, values[:, 0]), row_lookups(codes, offsets, values)]
    results += [cluster_sums(codes, offsets, np.resize(values, len(codes))), pack_rows(codes, np.full(20, 31))]
    for result in results:
        found.update(result.tobytes())
    labels = similar_labels()
    for dtype, width in ((np.uint8, 3), (np.uint16, 37), (np.uint32, 70)):
        codes, offsets = codes_of(999, n_clusterings=21, k=17, dtype=dtype)
        table, of_missing = rng.random((offsets[-1], width)), rng.random((21, width))
        results = [label_memberships(codes, offsets, table, of_missing)]
        results += label_correspondences(codes, offsets, rng.integers(2**40, size=(999, width)))
        soft, values, sums = rng.random((777, 19)), rng.random((777, width)), rng.random((777, width))
        soft_memberships(soft, rng.random((19, width)), sums)
        results += [sums, soft_correspondences(soft, values, 100)]
        results += posteriors(-40 * rng.random((501, width)) ** 3, -rng.random(width), 2.0**52)
        for result in results:
            found.update(result.tobytes())
    distances = rng.random((150, 150))
    found.update(pam(distances, np.ones(150), 7)[0].tobytes())
    for array in rock(links_of(200), rng.integers(1, 4, 200), 5, 0.5):
        found.update(array.tobytes())
    for n_des in (None, 3, 32):
        tree = ge.CATree(n_des=n_des).grow(labels)
        for array in (tree.radii, tree.representatives, np.asarray(tree.reduce(0.3, 0.8).row_of)):
            found.update(array.tobytes())
    pixels = ge.Graph.grid((20, 20))
    shares, regions = walk(Rows(labels), pixels), np.empty(400, dtype=np.int64)
    cpu.pair_neighbors(pixels.starts, pixels.heads, shares, 60, regions)
    for array in (*shares[:3], regions, regions_of(shares, pixels, 30)):
        found.update(array.tobytes())
    refined = refine(Rows(labels), np.arange(400), pixels, np.arange(400) // 80, 5, max_rounds=3)
    found.update(refined.membership.tobytes() + np.array([refined.beta, refined.tau]).tobytes())
    codes, offsets = codes_of(300, n_clusterings=9, k=5)
    counts, x = rng.integers(1, 5, 300), np.arange(40.0)
    merged, losses = np.empty(300, dtype=np.int64), np.empty(296)
    cpu.merge_by_information(codes.T, offsets, counts, x * np.log2(np.maximum(x, 1)), merged, losses)
    held = rng.integers(1000, 2000, (offsets[-1], 4))
    n_sweeps = cpu.descend_mirkin(codes.T, offsets, counts, merged, held, np.full(4, 9000), 9)
    found.update(merged.tobytes() + losses.tobytes() + held.tobytes() + bytes([n_sweeps % 256]))
    times, orders = rng.integers(1, 4, 9), rng.permuted(np.tile(np.arange(300), (5, 1)), axis=1)
    for kind in range(3):
        starts, losses, sweeps = np.full((5, 300), -1), np.empty(5), np.empty(5, dtype=np.int64)
        ensemble, bounds = cpu.MedianEnsemble(codes.T, offsets, counts, times), cpu.MedianBounds(1, 40, 9, 0)
        loss = cpu.MedianLoss(kind, 1.0, x * np.log2(np.maximum(x, 1)))
        cpu.search_medians(ensemble, loss, bounds, orders, starts, losses, sweeps)
        found.update(starts.tobytes() + losses.tobytes() + sweeps.tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("results", [everything, *thorough(lambda: dict(same_results.results()))])
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.skipif(len(native.usable_levels()) == 1, reason="one level is compiled: make native LEVELS='v2 v3 v4'")
def test_each_level_gives_the_same_bits(results):
    with all_levels():
        results()


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    digests = set()
    for threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        digests.add(everything())
    assert len(digests) == 1


# --- what is taken ----------------------------------------------------------------------------------------------------


def given(name):
    """Return arguments of a primitive, of which the last is a result."""
    whole = np.zeros(4, dtype=np.int64)
    return {
        "pam": (np.zeros((4, 4)), np.ones(4), whole),
        "append_edges": (0, np.zeros((1, 4)), whole, whole, np.zeros(4)),
        "add_products": (np.zeros((3, 2)), np.zeros((2, 5)), np.zeros((3, 5))),
        "posteriors": (np.zeros((3, 2)), np.zeros(2), 1.0, np.zeros((3, 2), dtype=np.int64), np.zeros(3)),
        "common_prefixes": (np.zeros((3, 2), dtype=np.uint8), np.zeros(3, dtype=np.int32)),
        "mark_ancestors": (whole, np.zeros(4, dtype=np.uint8)),
        "descend_weighted": (np.zeros((4, 2), dtype=np.float32), whole + 1, 0.0, 3, np.zeros((2, 2)), whole),
    }[name]


@pytest.mark.parametrize(
    "name",
    ["pam", "append_edges", "add_products", "posteriors", "common_prefixes", "mark_ancestors", "descend_weighted"],
)
def test_arrays_are_taken_of_the_very_type(name):
    """What is written to a copy would be lost."""
    primitive, (*arguments, result) = getattr(cpu, name), given(name)
    primitive(*arguments, result)
    read_only = result.copy()
    read_only.flags.writeable = False
    wrong = [(*arguments, other) for other in (result.astype(np.float16), np.repeat(result, 2, axis=0)[::2], read_only)]
    for i, array in enumerate(arguments):
        if isinstance(array, np.ndarray):
            wrong.append((*arguments[:i], array.astype(np.float16), *arguments[i + 1 :], result))
    for other in wrong:
        with pytest.raises(TypeError, match="incompatible function arguments"):
            primitive(*other)


# --- signals ----------------------------------------------------------------------------------------------------------

LONG = {
    "pam": lambda: pam(np.random.default_rng(0).random((3000, 3000)), np.ones(3000), 100),
    "rock": lambda: rock(links_of(5000), np.ones(5000, dtype=np.int64), 2, 0.5),
    "median": lambda: ge.Median().fit(np.random.default_rng(0).integers(9, size=(3000, 20))),
    "limbo": lambda: ge.LIMBO(2).fit(np.random.default_rng(0).integers(9, size=(8000, 20))),
    "ca-tree": lambda: ge.CATree(n_des=None).grow(np.random.default_rng(0).integers(9, size=(40_000, 20))),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_a_signal_ends_a_long_call(name):
    """Within .2 s, here of a machine that is busy."""
    _, after_rung = interrupted(LONG[name], after=0.25)
    assert after_rung < 0.2
    pam(np.random.default_rng(0).random((30, 30)), np.ones(30), 3)


def test_progress_of_merges_adds_up():
    """The bar is told of merges in several steps, of which the last comes at the end; its error ends the merges."""
    n, told = 400, []
    links, ones = np.arange(n * (n - 1) // 2) % 7, np.ones(n, dtype=np.int64)
    kept, absorbed = np.empty((2, n - 3), dtype=np.int64)
    given = links, ones, (np.arange(n + 1.0) ** 1.5, 1.5), 0.75, kept, absorbed, np.empty(n - 3)
    cpu.merge_by_goodness(*given, told.append)
    assert sum(told) == n - 3
    assert (kept < absorbed).all()
    with pytest.raises(OSError, match="the terminal is gone"):
        cpu.merge_by_goodness(*given, raising(OSError("the terminal is gone")))
