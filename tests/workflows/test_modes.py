"""Modes of an ensemble: groups that are known, noise that makes none, and numbers counted pair by pair."""

import itertools
import math

import numpy as np
import pytest
from conftest import refused
from sklearn.metrics import adjusted_rand_score

import gpuens as ge


def noisy(partition, share, rng):
    """Return a partition with a share of random labels, its clusters numbered at random."""
    labels, k = partition.copy(), partition.max() + 1
    some = rng.random(len(labels)) < share
    labels[some] = rng.integers(0, k, some.sum())
    return rng.permutation(k)[labels]


def ensemble(sizes, share, rng, n_objects=200, k=4):
    """Return noisy copies of as many random partitions as there are sizes, and the partition of each clustering."""
    partitions = [rng.integers(0, k, n_objects) for _ in sizes]
    own = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    shares = share if np.ndim(share) else [share] * len(own)
    return [noisy(partitions[mode], one, rng) for mode, one in zip(own, shares, strict=True)], own, partitions


def literal_vi(a, b):
    """Return H(a|b) + H(b|a) in bits, from counts in dicts."""
    counts, of_a, of_b = {}, {}, {}
    both = [(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True) if x >= 0 and y >= 0]
    for x, y in both:
        counts[x, y] = counts.get((x, y), 0) + 1
        of_a[x], of_b[y] = of_a.get(x, 0) + 1, of_b.get(y, 0) + 1
    return sum(n / len(both) * (math.log2(of_a[x] / n) + math.log2(of_b[y] / n)) for (x, y), n in counts.items())


def literal_ari(a, b):
    both = (a >= 0) & (b >= 0)
    return adjusted_rand_score(a[both], b[both])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("n_objects", [28, 300])
def test_noise_around_a_single_partition_is_a_single_mode(share, n_objects):
    rng = np.random.default_rng(0)
    for m in (5, 40):
        labels, _, (truth,) = ensemble([m], share, rng, n_objects)
        found = ge.modes(labels)
        assert len(found.modes) == 1
        if share < 0.4 and m == 40:
            assert ge.metrics.ari(found.modes[0].consensus, truth) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_errors_that_differ_between_clusterings_or_objects_make_no_modes(seed):
    rng = np.random.default_rng(seed)
    labels, _, (truth,) = ensemble([60], rng.uniform(0, 0.6, 60), rng)
    assert len(ge.modes(labels).modes) == 1
    doubtful = rng.random(200) < 0.3
    labels = [np.where(doubtful & (rng.random(200) < 0.6), rng.integers(0, 4, 200), truth) for _ in range(60)]
    assert len(ge.modes(labels).modes) == 1
    assert len(ge.modes(rng.integers(0, 4, (200, 60))).modes) == 1


@pytest.mark.parametrize(
    ("sizes", "share"),
    [((30, 30), 0.0), ((42, 18), 0.2), ((54, 6), 0.0), ((54, 6), 0.4), ((30, 20, 10), 0.2), ((20, 20, 20), 0.4)],
)
def test_modes_are_found_with_their_members_and_consensus(sizes, share):
    labels, own, partitions = ensemble(sizes, share, np.random.default_rng(1), n_objects=500)
    found = ge.modes(labels)
    assert [len(mode.members) for mode in found.modes] == sorted(sizes, reverse=True)
    assert ge.metrics.ari(found.of_clustering, own) == 1.0
    for i, mode in enumerate(found.modes):
        np.testing.assert_array_equal(mode.members, np.flatnonzero(found.of_clustering == i))
        assert mode.share == len(mode.members) / 60
        assert mode.medoid in mode.members
        if share < 0.4 and len(mode.members) > 10:
            assert ge.metrics.ari(mode.consensus, partitions[own[mode.members[0]]]) > 0.97


def test_numbers_are_those_counted_pair_by_pair():
    rng = np.random.default_rng(3)
    labels, _, _ = ensemble([9, 7, 4], 0.15, rng, n_objects=90)
    labels = [np.where(rng.random(90) < 0.1, -1, column) for column in labels]
    labels += labels[:5]
    found = ge.modes(labels, 3)
    assert found.n_distinct == 20
    pairs = np.array([[literal_ari(a, b) for b in labels] for a in labels])
    for mode in found.modes:
        within = pairs[np.ix_(mode.members, mode.members)]
        each = within.sum(axis=1)
        assert each[mode.members == mode.medoid] == pytest.approx(each.max())
        off = [within[i, j] for i, j in itertools.permutations(range(len(within)), 2)]
        assert mode.agreement == pytest.approx(np.mean(off))
    for i, j in itertools.product(range(3), repeat=2):
        a, b = found.modes[i].consensus, found.modes[j].consensus
        assert found.vi[i, j] == pytest.approx(literal_vi(a, b), abs=1e-12)
        assert found.ari[i, j] == pytest.approx(literal_ari(a, b))


def test_equal_clusterings_count_as_often_as_they_occur():
    rng = np.random.default_rng(0)
    labels, _, _ = ensemble([20, 10], 0.2, rng)
    once, thrice = ge.modes(labels, 2), ge.modes([rng.permutation(9)[column] for column in labels * 3], 2)
    assert thrice.n_distinct == 30
    np.testing.assert_array_equal(thrice.of_clustering, np.tile(once.of_clustering, 3))
    equal = ge.modes([labels[0]] * 4 + [(labels[0] + 1) % 4] * 3)
    assert equal.story == "Your 7 clusterings tell a single story, and all are equal."
    assert (equal.n_distinct, equal.modes[0].agreement) == (1, 1.0)


def test_gradual_changes_are_a_single_story_and_a_single_clustering_too():
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(400))
    cuts = [(x > cut).astype(int) for cut in rng.uniform(0.3, 0.7, 80)]
    assert ge.modes(cuts).story == "Your 80 clusterings tell a single story, with gradual changes."
    assert ge.modes([cuts[0]]).story == "A single clustering tells a single story."
    two = cuts + [((x * 10) % 2 > cut).astype(int) for cut in rng.uniform(0.3, 0.7, 40)]
    assert [len(mode.members) for mode in ge.modes(two).modes] == [80, 40]


def test_a_mode_without_labels_of_some_objects_has_no_label_for_them():
    rng = np.random.default_rng(2)
    labels, own, _ = ensemble([20, 12], 0.1, rng)
    for column, mode in zip(labels, own, strict=True):
        column[:10] = column[:10] if mode == 0 else -1
    found = ge.modes(labels)
    assert (found.modes[1].consensus[:10] == -1).all()
    assert (found.modes[1].consensus[10:] >= 0).all()
    assert (found.modes[0].consensus >= 0).all()


def test_the_same_seed_gives_the_same_result_and_samples_find_the_modes(sizes):
    labels, own, _ = ensemble([90, 30], 0.3, np.random.default_rng(5), n_objects=3000)
    sizes("workflows.modes", TESTED_RUNS=60, TESTED_OBJECTS=300, COMPARED_OBJECTS=500)
    first, again = (ge.modes(labels, random_state=7) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert ge.metrics.ari(first.of_clustering, own) == 1.0


def test_the_result_tells_its_story_and_is_json():
    import json

    labels, _, _ = ensemble([62, 38], 0.1, np.random.default_rng(0))
    found = ge.modes(ge.Ensemble(labels, names=[f"run {m}" for m in range(100)]))
    assert found.story == "Your 100 clusterings are two stories: 62 and 38."
    assert "mode 1: 38 clusterings (38%), 4 clusters" in repr(found)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["modes"][0]["medoid"].startswith("run ")
    assert [test["n_modes"] for test in told["tests"]] == [1, 2]


def test_labels_in_gpu_memory_have_modes(fake_cupy):
    labels, own, _ = ensemble([12, 6], 0.1, np.random.default_rng(0), n_objects=60)
    found = ge.modes(fake_cupy.asarray(np.column_stack(labels)))
    assert ge.metrics.ari(found.of_clustering, own) == 1.0


def test_impossible_numbers_of_modes_are_refused(monkeypatch):
    labels = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1]]
    refused(lambda: ge.modes(labels, 3), ValueError, "n=3", "2 different clusterings")
    refused(lambda: ge.modes(labels, 0), ValueError, "n")
    refused(lambda: ge.modes(labels, method="votin"), ValueError, "voting")
    monkeypatch.setenv("GPUENS_MEMORY", "20kB")
    many = [*np.random.default_rng(0).integers(0, 3, (60, 12))]
    refused(lambda: ge.modes(many), MemoryError, "60 clusterings")
