"""The distribution of the consensus matrix, compared with the literal matrix and ConsensusClusterPlus."""

import itertools
from inspect import unwrap

import numpy as np
import oracles
import pytest
from conftest import labels_and_consensus, random_labels, refused

import gpuens as ge

DEVICES = ["cpu", pytest.param("emulated", marks=pytest.mark.kernels)]


def literal(labels, missing):
    """Return three numbers for all pairs of different objects: matches, clusterings that count, and C."""
    upper = np.triu_indices(len(labels), 1)
    return [square[upper] for square in oracles.pairs_together(labels, missing)]


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("missing", ["ignore", "zero"])
def test_pairs_equal_the_literal_matrix(missing):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        labels, _ = labels_and_consensus(seed, n=int(rng.integers(6, 14)), missing=(seed % 4) * 0.2)
        matches, seen, C = literal(labels, missing)
        found = ge.evidence.pairs(labels, missing=missing, device="cpu")
        bins, counts = np.unique([seen, matches], axis=1, return_counts=True)
        assert [found.copresent.tolist(), found.matches.tolist()] == bins.tolist()
        assert found.counts.tolist() == counts.tolist()
        assert (found.n_pairs, found.unseen, found.standard_error) == (len(C), (seen == 0).sum(), 0.0)
        at = rng.random(5)
        np.testing.assert_allclose(found.cdf(at), [(t >= C).mean() for t in at], atol=1e-12)
        ambiguous = ((C > 0.1) & (C <= 0.9)).mean()
        np.testing.assert_allclose(found.pac(), ambiguous, atol=1e-12)
        above_zero = (C > 0).mean()
        np.testing.assert_allclose(found.rpac(), ambiguous / above_zero if above_zero else np.nan, atol=1e-12)
        np.testing.assert_allclose(found.area(), 1 - C.mean(), atol=1e-12)
        doubtful = C[(C > 0) & (C < 1)]
        nats = -(doubtful * np.log(doubtful) + (1 - doubtful) * np.log(1 - doubtful)).sum() / len(C)
        np.testing.assert_allclose(found.entropy(), nats, atol=1e-12)


@pytest.mark.parametrize(("n", "n_clusterings"), [(63, 30), (64, 3), (65, 9), (129, 30), (650, 300)])
def test_pairs_of_many_rows_by_products(n, n_clusterings):
    """Rows fill several blocks of 64, clusterings fill several chunks, and counts in the histogram exceed 16 bits."""
    rng = np.random.default_rng(n)
    labels = rng.integers(-1, 3, (n, n_clusterings))
    counts = rng.integers(1, 2**20, n)
    B, there = oracles.incidence(labels).astype(int), (labels >= 0).astype(int)
    weights = np.triu(np.outer(counts, counts), 1) + np.diag(counts * (counts - 1) // 2)
    rows = ge.Rows(labels, counts=counts, device="cpu")
    for missing, seen in (("ignore", there @ there.T), ("zero", np.full((n, n), n_clusterings))):
        found = ge.evidence.pairs(rows, missing=missing)
        expected = np.zeros((n_clusterings + 1, n_clusterings + 1), dtype=int)
        np.add.at(expected, (seen, B @ B.T), weights)
        assert found.counts.tolist() == expected[found.copresent, found.matches].tolist()
        assert found.n_pairs == expected.sum()


def test_threads_do_not_change_counts(monkeypatch):
    labels, _ = labels_and_consensus(3, n=400, m=9)
    expected = ge.evidence.pairs(labels).counts.tolist()
    for threads in ("1", "5"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        assert ge.evidence.pairs(labels).counts.tolist() == expected


def consensus_cdf(runs, n):
    """Return the CDF at 0.01, 0.02, … 1, as ConsensusClusterPlus defines it.

    Each run clusters some drawn objects. C is the sum of the runs' connectivity divided by the sum of their indicators,
    0 for pairs that no run has drawn; the CDF is that of a histogram of 100 bins over the lower triangle.
    """
    connectivity, indicator = np.zeros((n, n)), np.zeros((n, n))
    for drawn, clusters in runs:
        for x, y in itertools.product(range(len(drawn)), repeat=2):
            indicator[drawn[x], drawn[y]] += 1
            connectivity[drawn[x], drawn[y]] += clusters[x] == clusters[y]
    C = np.divide(connectivity, indicator, out=np.zeros((n, n)), where=indicator > 0)[np.tril_indices(n, -1)]
    # R's hist uses bins (a, b]; it shifts their bounds a little, against rounding errors
    return np.array([(bound + 1e-9 >= C).mean() for bound in np.arange(1, 101) / 100])


def test_pairs_equal_consensusclusterplus():
    """CDF, PAC, area and the area's relative change with k, for clusterings of samples."""
    rng, n = np.random.default_rng(5), 40
    labels_of, areas, ours = {}, [], []
    for k in (2, 3, 4):
        drawn = [rng.permutation(n)[: 24 if k < 4 else 16] for _ in range(8)]
        runs = [(some, (some + (rng.random(len(some)) < 0.2)) % k) for some in drawn]
        labels = np.full((n, 8), -1)
        for h, (some, clusters) in enumerate(runs):
            labels[some, h] = clusters
        labels[(labels < 0).all(axis=1), 0] = k  # an object that is in no sample gets a label that no other object has
        cdf, found = consensus_cdf(runs, n), ge.evidence.pairs(labels)
        np.testing.assert_allclose(found.cdf(np.arange(1, 101) / 100 + 1e-9), cdf, atol=1e-12)
        np.testing.assert_allclose(found.pac(), cdf[89] - cdf[9], atol=1e-12)
        areas.append((cdf * np.diff(np.arange(101) / 100)).sum())
        ours.append(found.area(n_bins=100))
        labels_of[k] = labels
    assert found.unseen > 0
    np.testing.assert_allclose(ours, areas, atol=1e-12)
    change = [areas[0], *((after - before) / before for before, after in itertools.pairwise(areas))]
    # the table has the change of the exact area, not of the area in 100 bins
    np.testing.assert_allclose(ge.choose_k(labels_of).table.delta_area, change, atol=0.02)


@pytest.mark.parametrize("missing", ["ignore", "zero"])
def test_chance_is_that_of_independent_clusterings(missing):
    labels, _ = labels_and_consensus(2, n=30, m=4, missing=0.3)
    labels[:, 2] = np.arange(30) % 5  # a clustering without missing labels
    found = ge.evidence.pairs(labels, missing=missing)
    expected = {}
    for outcome in itertools.product(["apart", "together", "unknown"], repeat=4):
        share = 1.0
        for column, what in zip(labels.T, outcome, strict=True):
            sizes = np.bincount(column[column >= 0])
            together, both = (sizes * (sizes - 1)).sum() / (30 * 29), sizes.sum() * (sizes.sum() - 1) / (30 * 29)
            if missing == "zero":
                both = 1.0
            share *= {"apart": both - together, "together": together, "unknown": 1 - both}[what]
        of = 4 - outcome.count("unknown"), outcome.count("together")
        expected[of] = expected.get(of, 0.0) + share * 30 * 29 / 2
    chance = found.chance()
    for seen, matches, count in zip(chance.copresent, chance.matches, chance.counts, strict=True):
        np.testing.assert_allclose(count, expected.pop((seen, matches)), atol=1e-9)
    assert sum(expected.values()) < 1e-9
    np.testing.assert_allclose(chance.n_pairs, found.n_pairs)
    np.testing.assert_allclose(found.corrected_pac(), found.pac() / chance.pac())


def test_noise_is_as_ambiguous_as_chance_and_structure_is_not():
    rng = np.random.default_rng(0)
    noise = ge.evidence.pairs(rng.integers(0, 3, (400, 20)))
    np.testing.assert_allclose(noise.corrected_pac(), 1.0, atol=0.02)
    clear = ge.evidence.pairs(np.repeat(np.arange(400)[:, None] % 3, 20, axis=1))
    assert (clear.pac(), clear.corrected_pac(), clear.entropy()) == (0.0, 0.0, 0.0)
    assert np.isnan(ge.evidence.pairs([[0, 1, 2], [0, 1, 2]]).rpac())  # no clustering puts two objects together


@pytest.mark.filterwarnings("ignore:constant clusterings")  # the case of two objects has a constant clustering
@pytest.mark.parametrize("device", DEVICES)
def test_pairs_that_are_drawn(device):
    labels, _ = labels_and_consensus(6, n=200, missing=0.2)
    groups = ge.CoreGroups().reduce(labels[np.arange(900) % 200]).rows
    exact = ge.evidence.pairs(groups, device=device)
    some = ge.evidence.pairs(groups, exact=False, n_pairs=200_000, device=device)
    assert (some.exact, some.n_pairs) == (False, 200_000)
    np.testing.assert_allclose(some.standard_error, 0.5 / np.sqrt(200_000))
    at = np.linspace(0, 1, 21)
    assert np.abs(some.cdf(at) - exact.cdf(at)).max() < 4 * some.standard_error
    again = ge.evidence.pairs(groups, exact=False, n_pairs=200_000, device=device)
    assert again.counts.tolist() == some.counts.tolist()
    # an object is never paired with itself
    two = ge.evidence.pairs([[0, 0], [0, 1]], exact=False, n_pairs=50, device=device)
    assert (two.matches.tolist(), two.counts.tolist()) == ([1], [50])


def test_beyond_the_budget_pairs_are_drawn(monkeypatch):
    labels, _ = labels_and_consensus(0)
    assert ge.evidence.pairs(labels, n_pairs=10).exact
    monkeypatch.setitem(unwrap(ge.evidence.pairs).__globals__, "MOST_COMPARISONS", 100)
    assert not ge.evidence.pairs(labels, n_pairs=10).exact
    assert ge.evidence.pairs(labels, n_pairs=10, exact=True).exact


@pytest.mark.parametrize(
    ("wrong", "kind", "sentence"),
    [
        ({"missing": "omit"}, ValueError, "missing must be"),
        ({"exact": "yes"}, ValueError, "exact must be True, False or 'auto', not 'yes'."),
        ({"exact": np.array([1, 2])}, ValueError, "exact must be True, False or 'auto', not array"),
        ({"n_pairs": 0}, ValueError, "n_pairs must be at least 1"),
        ({"n_pairs": 1.5}, TypeError, "n_pairs must be a whole number"),
    ],
)
def test_bad_choices_about_pairs_are_refused(wrong, kind, sentence):
    refused(lambda: ge.evidence.pairs([[0, 0, 1, 1], [0, 1, 1, 1]], **wrong), kind, sentence)


def test_what_pairs_cannot_do_is_refused(monkeypatch):
    found = ge.evidence.pairs([[0, 0, 1, 1], [0, 1, 1, 1]])
    refused(lambda: found.pac(0.9, 0.1), ValueError, "upper must be from 0.9 to 1, but is 0.1.")
    one = ge.Ensemble([[0, 1], [0, 1]]).take([1])
    said = "ens has 1 object, but evidence for pairs needs at least 2; give more objects."
    refused(lambda: ge.evidence.pairs(one), ValueError, said)
    labels, _ = labels_and_consensus(0, n=300, m=300)
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    refused(lambda: ge.evidence.pairs(labels), MemoryError, "pass missing='zero'")
    assert ge.evidence.pairs(labels, missing="zero").exact


def test_tables_of_threads_are_foreseen(monkeypatch):
    labels = random_labels(400, 20, 300, seed=0)
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    monkeypatch.setenv("GPUENS_THREADS", "8")
    refused(lambda: ge.evidence.pairs(labels), MemoryError, "for each of 8 threads")
    assert not ge.evidence.pairs(labels, exact=False).exact
    monkeypatch.setenv("GPUENS_THREADS", "1")
    assert ge.evidence.pairs(labels).exact


def test_thresholds_that_are_no_numbers_are_refused():
    found = ge.evidence.pairs([[0, 0, 1], [0, 1, 1]])
    refused(lambda: found.cdf([0.5, np.nan]), ValueError, "a threshold is NaN")
