"""Evidence for a consensus, compared with literal N × N computations, scikit-learn, and hand-made cases."""

import itertools
import math
from inspect import unwrap

import dask.array as da
import numpy as np
import oracles
import pytest
from conftest import random_labels, refused, structured_labels
from scipy.cluster.hierarchy import cophenet
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_samples

import gpuens as ge
from gpuens.runtime.checks import recorded

DEVICES = ["cpu", pytest.param("emulated", marks=pytest.mark.kernels)]


def ensemble(seed, n=40, m=5, k=4, missing=0.15):
    rng = np.random.default_rng(seed)
    labels, _ = structured_labels(n, m, k, seed=seed)
    labels[rng.random(labels.shape) < missing] = -1
    labels[(labels < 0).all(axis=1), 0] = 0
    consensus = rng.integers(0, 3, n)
    consensus[:3] = 0, 1, 2
    return labels, consensus


def together(labels):
    """Return the co-association matrix C by its definition."""
    return ((labels[:, None] == labels) & (labels >= 0)[:, None] & (labels >= 0)).mean(axis=2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(5))
def test_objects_equal_the_literal_matrix(seed, device):
    labels, consensus = ensemble(seed)
    if seed == 3:
        consensus[consensus == 2] = 0
        consensus[7] = 2  # a cluster of one object
    found = ge.evidence.objects(labels, consensus * 10, device=device)
    C = together(labels)
    for x in range(len(labels)):
        own = np.flatnonzero(consensus == consensus[x])
        mates = own[own != x]
        best = max(C[x, consensus == t].mean() for t in {*consensus.tolist()} - {consensus[x]})
        inside = C[x, mates].mean() if len(mates) else np.nan
        np.testing.assert_allclose(found.item_consensus[x], inside, atol=1e-12)
        np.testing.assert_allclose(found.margin[x], inside - best, atol=1e-12)
    D = 1 - C
    np.fill_diagonal(D, 0.0)
    np.testing.assert_allclose(found.silhouette, silhouette_samples(D, consensus, metric="precomputed"), atol=1e-12)


def test_one_cluster_has_no_margin():
    labels, _ = ensemble(0, missing=0.0)
    found = ge.evidence.objects(labels, np.zeros(40, int))
    assert np.isnan(found.margin).all()
    assert np.isnan(found.silhouette).all()
    C = together(labels)
    np.testing.assert_allclose(found.item_consensus, (C.sum(axis=1) - 1) / 39)


def test_rows_with_counts_equal_all_objects():
    labels, consensus = ensemble(1, n=200, m=3, k=2, missing=0.0)
    _, first, row_of, counts = np.unique(labels, axis=0, return_index=True, return_inverse=True, return_counts=True)
    of_rows = consensus[first]
    whole = ge.evidence.objects(labels, of_rows[row_of.ravel()])
    of_groups = ge.evidence.objects(ge.Rows(labels[first], counts=counts), of_rows)
    for one, other in zip(whole, of_groups, strict=True):
        np.testing.assert_allclose(one, other[row_of.ravel()], atol=1e-12)
    one, other = (
        ge.evidence.agreement(*given)
        for given in ((labels, of_rows[row_of.ravel()]), (ge.Rows(labels[first], counts=counts), of_rows))
    )
    np.testing.assert_allclose(one.nmi, other.nmi)
    np.testing.assert_allclose(one.ecs, other.ecs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(5))
def test_agreement_equals_the_literal_one(seed, device):
    labels, consensus = ensemble(seed)
    found = ge.evidence.agreement(labels, consensus, device=device)
    for m, column in enumerate(labels.T):
        there = column >= 0
        a, b = column[there], consensus[there]
        expected = normalized_mutual_info_score(a, b, average_method="geometric")
        np.testing.assert_allclose(found.nmi[m], expected, atol=1e-12)
        each = [((a == a[x]) & (b == b[x])).sum() / max((a == a[x]).sum(), (b == b[x]).sum()) for x in range(len(a))]
        np.testing.assert_allclose(found.ecs[m], np.mean(each), atol=1e-12)
        np.testing.assert_allclose(found.ari[m], adjusted_rand_score(a, b), atol=1e-12)
        in_a, in_b = (same[~np.eye(len(a), dtype=bool)] for same in (a[:, None] == a, b[:, None] == b))
        np.testing.assert_allclose(found.wallace[m], (in_b[in_a].mean() - in_b.mean()) / (1 - in_b.mean()), atol=1e-12)
        assert found.n_labelled[m] == there.sum()
    shares = (labels >= 0).sum(axis=0)
    np.testing.assert_allclose(found.anmi, (found.nmi * shares).sum() / shares.sum())
    np.testing.assert_allclose(found.mean_ecs, (found.ecs * shares).sum() / shares.sum())
    np.testing.assert_allclose(found.mean_ari, (found.ari * shares).sum() / shares.sum())
    np.testing.assert_allclose(found.mean_wallace, (found.wallace * shares).sum() / shares.sum())


def test_agreement_of_whole_and_of_constant_clusterings():
    """Three columns: parts of the consensus, the consensus, objects apart; then a constant clustering."""
    consensus = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    labels = np.stack([[0, 0, 1, 1, 2, 2, 3, 3], consensus, np.arange(8), np.zeros(8, dtype=int)], axis=1)
    with recorded():
        found = ge.evidence.agreement(labels, consensus)
        whole = ge.evidence.agreement(labels, np.zeros(8, dtype=int))
    np.testing.assert_allclose(found.ari, [adjusted_rand_score(column, consensus) for column in labels.T], atol=1e-12)
    assert found.wallace.tolist() == [1.0, 1.0, 1.0, 0.0]
    assert whole.wallace.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert whole.ari.tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("consensus", "sentence"),
    [
        ([0, 1], "consensus must hold one value for each of the 4 row(s), but have shape (2,)."),
        ([0, 1, -1, None], "consensus has 2 object(s) without a label"),
        ([[0, 1], [2, 3]], "consensus"),
    ],
)
@pytest.mark.parametrize("function", [ge.evidence.objects, ge.evidence.agreement])
def test_bad_consensus_is_refused(function, consensus, sentence):
    refused(lambda: function([[0, 0, 1, 1], [0, 1, 1, 1]], consensus), ValueError, sentence)


# --- pairs ------------------------------------------------------------------------------------------------------------


def literal(labels, missing):
    """Return three numbers for all pairs of different objects: matches, clusterings that count, and C."""
    upper = np.triu_indices(len(labels), 1)
    return [square[upper] for square in oracles.pairs_together(labels, missing)]


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("missing", ["ignore", "zero"])
def test_pairs_equal_the_literal_matrix(missing):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        labels, _ = ensemble(seed, n=int(rng.integers(6, 14)), missing=(seed % 4) * 0.2)
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
    labels, _ = ensemble(3, n=400, m=9)
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
    labels, _ = ensemble(2, n=30, m=4, missing=0.3)
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
    labels, _ = ensemble(6, n=200, missing=0.2)
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
    labels, _ = ensemble(0)
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
    refused(
        lambda: ge.evidence.pairs(one),
        ValueError,
        "ens has 1 object, but evidence for pairs needs at least 2; give more objects.",
    )
    labels, _ = ensemble(0, n=300, m=300)
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


# --- objects and clusters, missing labels ignored ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("missing", ["zero", "ignore"])
def test_objects_and_clusters_equal_sums_over_all_pairs(missing):
    for seed in range(50):
        n = 12 + seed % 9
        labels, consensus = ensemble(seed, n=n, missing=(seed % 4) * 0.2)
        consensus[: seed % 3] = 3  # cluster 3 has none, one or two members
        consensus = np.unique(consensus, return_inverse=True)[1]
        k = consensus.max() + 1
        together, of, _ = oracles.pairs_together(labels, missing)
        others = ~np.eye(n, dtype=bool)
        found = ge.evidence.objects(labels, consensus, missing=missing)
        sizes = np.bincount(consensus)
        for x in range(n):
            members = [(consensus == t) & others[x] for t in range(k)]
            means = [together[x, some].sum() / max(of[x, some].sum(), 1) for some in members]
            own, total = means[consensus[x]], sum(means)
            shares = [mean / total for mean in means if mean > 0]
            entropy = -sum(s * np.log(s) for s in shares) / np.log(k) if total else 1.0
            if not members[consensus[x]].any():
                own = entropy = np.nan
            np.testing.assert_allclose((found.item_consensus[x], found.entropy[x]), (own, entropy), atol=1e-12)
            expected = oracles.confidence(labels, consensus, x, missing)
            np.testing.assert_allclose(found.confidence[x], expected, atol=1e-12)
        found = ge.evidence.clusters(labels, consensus, missing=missing)
        assert found.sizes.tolist() == sizes.tolist()
        for s, t in itertools.product(range(k), repeat=2):
            some = (consensus == s)[:, None] & (consensus == t) & others
            mean = together[some].sum() / max(of[some].sum(), 1) if some.any() else np.nan
            np.testing.assert_allclose(found.between[s, t], mean, atol=1e-12)
        np.testing.assert_array_equal(found.consensus, found.between.diagonal())
        for t in range(k):
            best = []
            for column in labels.T:
                own = (consensus == t) & (column >= 0)
                alike = [(own & (column == c)).sum() / (own | (column == c)).sum() for c in set(column[column >= 0])]
                best += [max(alike)] if own.any() else []
            np.testing.assert_allclose(found.stability[t], np.mean(best) if best else 0.0, atol=1e-12)


def test_confidence_is_defined_for_only_members_and_orders_what_clusterings_say():
    labels, _ = structured_labels(200, 10, 4, noise=0.2, seed=3)
    consensus = ge.LWEA(4).fit(labels).labels_
    consensus[[5, 6]] = 4, 5  # two objects leave their clusters and become clusters of their own
    found = ge.evidence.objects(labels, consensus)
    assert np.isnan(found.margin[[5, 6]]).all()
    assert ((found.confidence > 0) & (found.confidence < 1)).all()
    assert found.confidence[[5, 6]].max() < np.quantile(found.confidence, 0.1)
    alone = np.vstack([labels, np.full((1, 10), 9)])
    found = ge.evidence.objects(alone, np.append(consensus, 6))
    # no clustering puts this object together with another object
    np.testing.assert_allclose(found.confidence[-1], 1 / 7)
    np.testing.assert_array_equal(ge.evidence.objects(labels, np.zeros(200)).confidence, np.ones(200))


def test_certainty_has_the_order_of_confidence_and_half_the_logarithm_of_its_odds():
    labels, _ = structured_labels(200, 10, 4, noise=0.2, seed=3)
    found = ge.LWEA(4).fit(labels).evidence().objects
    odds = [confidence / (1 - confidence) for confidence in found.confidence]
    np.testing.assert_allclose(found.certainty, [math.sqrt(o) / 2 / (1 + math.sqrt(o) / 2) for o in odds])
    exact = {0.0: 0.0, 0.5: 1 / 3, 0.8: 0.5, 0.9: 0.6, 36 / 37: 0.75, 1.0: 1.0}
    given = found._replace(confidence=np.array(list(exact)))
    np.testing.assert_allclose(given.certainty, list(exact.values()))
    assert ge.LWEA(4).fit(labels).evidence(labels[:5]).objects.certainty.shape == (5,)


def test_confidence_does_not_depend_on_the_pieces_of_work(step_bytes):
    labels, _ = structured_labels(1000, 8, 5, noise=0.3, missing=0.1, seed=4)
    consensus = ge.LWGP(5).fit(labels).labels_
    ways = ("zero", "ignore")
    expected = [ge.evidence.objects(labels, consensus, missing=missing).confidence for missing in ways]
    step_bytes(0)
    for missing, confidence in zip(ways, expected, strict=True):
        found = ge.evidence.objects(labels, consensus, missing=missing).confidence
        np.testing.assert_array_equal(found, confidence)


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("dense_cells", [2**22, 0])
def test_consistency_is_that_of_all_pairs_of_clusterings(dense_cells, sizes):
    sizes("contingency.labels", DENSE_CELLS=dense_cells)
    for seed in range(10):
        labels, _ = ensemble(seed, n=14 if dense_cells else 9, k=5 if dense_cells else 9, missing=(seed % 3) * 0.3)
        n, m = labels.shape
        found = ge.evidence.consistency(labels)
        shares = np.full((n, m, m), np.nan)
        for i, j in itertools.permutations(range(m), 2):
            both = (labels[:, i] >= 0) & (labels[:, j] >= 0)
            for x in np.flatnonzero(both):
                a, b = (both & (labels[:, one] == labels[x, one]) for one in (i, j))
                shares[x, i, j] = (a & b).sum() / max(a.sum(), b.sum())
            expected = np.mean(shares[both, i, j]) if both.any() else np.nan
            np.testing.assert_allclose(found.ecs[i, j], expected, atol=1e-12)
        known = ~np.isnan(shares).all(axis=(1, 2))
        np.testing.assert_allclose(found.ecc[known], np.nanmean(shares[known], axis=(1, 2)), atol=1e-12)
        assert np.isnan(found.ecc[~known]).all()
        np.testing.assert_array_equal(found.nmi, ge.contingency.agreement(labels))
        np.testing.assert_array_equal(found.ari, ge.contingency.agreement(labels, "ari"))


def test_inconsistency_is_that_of_distinct_clusterings():
    rng = np.random.default_rng(0)
    some = rng.integers(0, 3, (40, 3))
    labels = some[:, [0, 1, 0, 2, 1, 0]]
    ecs = ge.evidence.consistency(some).ecs
    p = np.array([3, 2, 1]) / 6
    np.testing.assert_allclose(ge.evidence.consistency(labels).inconsistency, 1 / (p @ ecs @ p))


# --- evidence of a fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", [None, "sample:60", "catree:tau=0.5"])
def test_evidence_of_a_fit_is_that_of_its_labels(reduction):
    labels, _ = structured_labels(200, 6, 3, missing=0.1, seed=1)
    est = ge.LWEA(3, reduction=reduction).fit(labels)
    for missing in ("zero", "ignore"):
        found, expected = est.evidence(missing=missing), ge.evidence.Evidence(labels, est.labels_, missing=missing)
        for part in ("objects", "agreement"):
            for one, other in zip(getattr(found, part), getattr(expected, part), strict=True):
                np.testing.assert_allclose(one, other, atol=1e-12)
        for name in ("sizes", "consensus", "between", "stability"):
            one, other = (getattr(each.clusters, name) for each in (found, expected))
            np.testing.assert_allclose(one, other, atol=1e-12)
        np.testing.assert_allclose(found.consistency.ecc, expected.consistency.ecc)
        assert found.pairs().counts.tolist() == ge.evidence.pairs(labels, missing=missing).counts.tolist()
        assert est.evidence(missing=missing) is found
    np.testing.assert_array_equal(est.confidence_, est.evidence().objects.confidence)
    est.fit(labels[:, :4])
    assert len(est.evidence().agreement.nmi) == 4


@pytest.mark.kernels
@pytest.mark.parametrize("reduction", [None, "sample:60"])
def test_evidence_of_labels_in_gpu_memory(reduction, fake_cupy):
    labels, _ = structured_labels(200, 6, 3, missing=0.1, seed=1)
    expected = ge.LWEA(3, reduction=reduction).fit(labels)
    est = ge.LWEA(3, reduction=reduction).fit(fake_cupy.asarray(labels))
    assert isinstance(est.confidence_, fake_cupy.ndarray)
    np.testing.assert_array_equal(fake_cupy.asnumpy(est.confidence_), expected.confidence_)
    np.testing.assert_array_equal(est.evidence().clusters.between, expected.evidence().clusters.between)
    np.testing.assert_array_equal(est.evidence().consistency.ecc, expected.evidence().consistency.ecc)
    assert est.evidence().pairs().counts.tolist() == expected.evidence().pairs().counts.tolist()
    if reduction is None:
        np.testing.assert_allclose(est.cophenetic_correlation(), expected.cophenetic_correlation(), atol=1e-12)


def test_what_has_no_evidence_is_refused():
    labels, _ = structured_labels(60, 4, 3, seed=1)
    with pytest.raises(NotFittedError):
        _ = ge.LWEA(3).confidence_
    chunked = ge.LWGP(3).fit(da.from_array(labels, chunks=(20, 4)))
    refused(chunked.evidence, TypeError, "those of this fit are in chunks")
    soft = ge.SCEC(2).fit([np.eye(2)[labels[:, 0] % 2], np.eye(2)[labels[:, 1] % 2]])
    refused(soft.evidence, TypeError, "fit was given soft clusterings")
    assert not hasattr(chunked, "confidence_")
    refused(lambda: soft.confidence_, AttributeError, "this SCEC has no confidence_", "soft clusterings")
    refused(lambda: ge.LWEA(3).fit(labels).evidence(missing="omit"), ValueError, "missing must be")


# --- the dendrogram ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("estimator", [ge.EAC(2), ge.LWEA(2, theta=0.1), ge.ECPCSHC(2), ge.LCE(2)])
def test_cophenetic_correlation_is_that_of_all_pairs(estimator):
    for seed in range(5):
        labels, _ = structured_labels(40, 4, 3, missing=(seed % 3) * 0.1, seed=seed)
        labels = labels[np.arange(60) % 40]  # 20 rows occur twice
        est = estimator.fit(labels)
        S = est.similarity_.tile(ge.Rows(labels), 0, len(labels))
        similarities = S[np.triu_indices(len(labels), 1)]
        expected = np.corrcoef(1 - cophenet(est.linkage_matrix()), similarities)[0, 1]
        np.testing.assert_allclose(est.cophenetic_correlation(), expected, atol=1e-10)


def test_cophenetic_correlation_is_refused_where_it_is_not_that_of_all_objects():
    labels, _ = structured_labels(60, 4, 3, seed=1)
    sentence = "this EAC has no cophenetic_correlation(), because no average linkage was fitted."
    refused(ge.EAC(2, linkage="single").fit(labels).cophenetic_correlation, AttributeError, sentence)
    refused(ge.EAC(2, reduction="sample:20").fit(labels).cophenetic_correlation, AttributeError, "belongs to a sample")
    apart = ge.EAC(2).fit([[0, 1, 2, 3], [3, 2, 1, 0]])  # all similarities are 0
    assert np.isnan(apart.cophenetic_correlation())


def test_thresholds_that_are_no_numbers_are_refused():
    found = ge.evidence.pairs([[0, 0, 1], [0, 1, 1]])
    refused(lambda: found.cdf([0.5, np.nan]), ValueError, "a threshold is NaN")
