"""ROCK's merges compared with a plain greedy search over all pairs: every merge is equal to the bit."""

import math
import sys

import numpy as np
import oracles
import pytest
from conftest import refused

from gpuens.partition import rock

MODULE = sys.modules[rock.__module__]  # this is the module; the package exports a function of the same name

NOTHING_LEFT = pytest.mark.filterwarnings("ignore:n_clusters=. merges")


def greedy(links, sizes, k, theta):
    """Repeatedly compare all pairs of clusters and merge the best pair; return [(kept, absorbed, goodness), …]."""
    n = len(sizes)
    power = 1 + 2 * (1 - theta) / (1 + theta)
    members = {g: [g] for g in range(n)}  # each cluster's groups; the key is the cluster's smallest group
    merges = []

    def link(a, b):
        return sum(int(links[min(g, h), max(g, h)]) for g in members[a] for h in members[b])

    def goodness(a, b):
        n_a, n_b = (sum(int(sizes[g]) for g in members[c]) for c in (a, b))
        return link(a, b) / (math.pow(n_a + n_b, power) - (math.pow(n_a, power) + math.pow(n_b, power)))

    def tie(a, b):
        """Return the tie-breaker of a pair of clusters.

        Among pairs without links, the pair with the fewest objects merges first.
        """
        mixed = oracles.mix(a, b)
        held = sum(int(sizes[g]) for c in (a, b) for g in members[c])
        return (0, mixed) if goodness(a, b) else (held, mixed >> 32)

    while len(members) > k:
        pairs = [(a, b) for a in members for b in members if a < b]
        a, b = min(pairs, key=lambda pair: (-goodness(*pair), *tie(*pair)))
        merges.append((a, b, goodness(a, b)))
        members[a] += members.pop(b)
    return merges


def labels_of(merges, n):
    cluster = np.arange(n)
    for a, b, _ in merges:
        cluster[cluster == b] = a
    return [sorted(set(cluster.tolist())).index(c) for c in cluster.tolist()]


def random_links(n, largest, density=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, largest, (n, n), endpoint=True) * (rng.random((n, n)) < density)


def common_neighbors(n_groups, seed):
    """Return links and sizes of groups.

    Neighbors form noisy blocks; each common neighbor counts as many times as it has objects.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n_groups)
    block = rng.integers(0, 4, n_groups)
    near = (block[:, None] == block) ^ (rng.random((n_groups, n_groups)) < 0.1)
    near = (near | near.T).astype(np.int64)
    return (near * sizes) @ near * sizes * sizes[:, None], sizes


def run(links, sizes, k, theta=0.5):
    return rock(lambda start, stop: links[start:stop, start:], np.asarray(sizes), k, theta)


def check(links, sizes, k, theta):
    found = run(links, sizes, k, theta)
    expected = greedy(links, sizes, k, theta)
    assert list(zip(found.kept.tolist(), found.absorbed.tolist(), found.goodness.tolist(), strict=True)) == expected
    assert found.labels.tolist() == labels_of(expected, len(sizes))


THETAS = [0.0, 0.2, 1 / 3, 0.65, 0.9, 0.999999]  # the exponents p are 3, 2 1/3, 2, 1.42, 1.11, 1.000001


@NOTHING_LEFT
@pytest.mark.parametrize(("theta", "shrink_at"), [*zip(THETAS, [0.0, 0.75, 0.99] * 2, strict=True)])
@pytest.mark.parametrize(("largest", "density"), [(10**6, 1.0), (3, 1.0), (1, 1.0), (2, 0.1), (1, 0.03)])
def test_merges_are_the_greedy_ones(sizes, theta, largest, density, shrink_at):
    """If numbers of links take few values, there are ties.

    If there are few links, some clusters have no links between them.
    """
    sizes("partition.rock", SHRINK_AT=shrink_at)
    sizes("partition.rock", BLOCK=5)
    for seed in range(3):
        check(random_links(18, largest, density, seed), np.ones(18, dtype=np.int64), 1, theta)


@NOTHING_LEFT
@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("seed", range(4))
def test_groups_of_several_objects(theta, seed):
    links, sizes = common_neighbors(22, seed)
    check(links, sizes, 1 + seed, theta)


@NOTHING_LEFT
def test_groups_of_equal_size_that_all_link_alike():
    check(np.full((16, 16), 12), np.full(16, 3), 1, 0.5)
    check(np.zeros((16, 16), dtype=np.int64), np.ones(16, dtype=np.int64), 2, 0.5)


def test_goodness_may_rise():
    """With an exponent p near 1, denominators grow little.

    So a later merge may have a larger goodness than an earlier one.
    """
    found = run(np.full((12, 12), 5), np.ones(12, dtype=np.int64), 1, theta=0.9)
    assert (np.diff(found.goodness) > 0).any()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_small_numbers_of_groups(n):
    links = random_links(n, 9) + 1
    for k in range(1, n + 1):
        check(links, np.arange(1, n + 1), k, 0.5)
    found = run(links, np.ones(n, dtype=np.int64), n)
    assert found.labels.tolist() == list(range(n))
    assert (found.kept.dtype, found.absorbed.dtype, found.goodness.dtype) == (np.int64, np.int64, np.float64)


def test_fewer_clusters_than_links_join_is_a_warning_of_one_sentence():
    links = np.zeros((9, 9), dtype=np.int64)
    links[[0, 3, 6], [1, 4, 7]] = 1
    assert run(links, np.ones(9, dtype=np.int64), 6).labels.tolist() == [0, 0, 1, 2, 2, 3, 4, 4, 5]
    with pytest.warns(UserWarning, match="n_clusters=4 merges 6 clusters without links"):
        run(links, np.ones(9, dtype=np.int64), 4)


def test_links_of_very_many_objects():
    """Sums beyond 2³² and 2⁵³ stay exact."""
    check(random_links(10, 10**16, seed=4), np.arange(1, 11) * 1000, 1, 0.4)


@NOTHING_LEFT
@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("each", [1, 2**24, 2**45])
def test_groups_of_very_many_objects(theta, each):
    """Their powers are in no table, and ties by the size of unions have more than 32 bits."""
    for seed in range(3):
        check(random_links(18, 2, 0.1, seed), np.random.default_rng(seed).integers(1, 9, 18) * each, 1, theta)


def test_the_table_of_powers_changes_nothing(sizes):
    links, objects = common_neighbors(22, 1)
    expected = run(links, objects, 2)
    sizes("partition.rock", TABLE=1)
    for mine, its in zip(run(links, objects, 2), expected, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_bad_input_is_refused(monkeypatch):
    links, sizes = random_links(6, 5), np.ones(6, dtype=np.int64)
    for theta in (-0.1, 1.0, 1.5):
        refused(lambda theta=theta: run(links, sizes, 2, theta), ValueError, "theta must be from 0", str(theta))
    refused(lambda: run(links, sizes, 2, "0.5"), TypeError, "theta")
    refused(lambda: run(links, sizes, 7), ValueError, "n_clusters=7", "6 distinct")
    refused(lambda: run(links, sizes * 0, 2), ValueError, "weights", "0 was found")
    refused(lambda: run(-links, sizes, 2), ValueError, "links", "-5 was found")
    refused(lambda: run(links * 0.5, sizes, 2), ValueError, "links", "float64")
    refused(lambda: run(links * 2**60, sizes, 2), ValueError, "int64")
    refused(lambda: rock(lambda start, stop: links[start:stop], np.ones(7, dtype=int), 2, 0.5), ValueError, "(7, 7)")
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    many = np.ones(2000, dtype=np.int64)
    refused(lambda: rock(lambda start, stop: 1 / 0, many, 2, 0.5), MemoryError, "2,000 distinct", "16.0 MB", "Sample")
