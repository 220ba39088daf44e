"""The certainty of objects and clusters, compared with literal N × N computations and hand-made cases."""

import itertools
import math

import numpy as np
import oracles
import pytest
from conftest import labels_and_consensus, structured_labels
from sklearn.metrics import silhouette_samples

import gpuens as ge

DEVICES = ["cpu", pytest.param("emulated", marks=pytest.mark.kernels)]


def test_one_cluster_has_no_margin():
    labels, _ = labels_and_consensus(0, missing=0.0)
    found = ge.evidence.objects(labels, np.zeros(40, int))
    assert np.isnan([found.margin, found.silhouette]).all()
    np.testing.assert_array_equal(found.confidence, np.ones(40))
    C = oracles.coassociation(labels)
    np.testing.assert_allclose(found.item_consensus, (C.sum(axis=1) - 1) / 39)


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("missing", ["zero", "ignore"])
@pytest.mark.parametrize(("device", "n_seeds"), [("cpu", 50), pytest.param("emulated", 5, marks=pytest.mark.kernels)])
def test_objects_and_clusters_equal_sums_over_all_pairs(device, n_seeds, missing):
    for seed in range(n_seeds):
        n = 12 + seed % 9
        labels, consensus = labels_and_consensus(seed, n=n, missing=(seed % 4) * 0.2)
        consensus[: seed % 3] = 3  # cluster 3 has none, one or two members
        consensus = np.unique(consensus, return_inverse=True)[1]
        k = consensus.max() + 1
        together, of, _ = oracles.pairs_together(labels, missing)
        others = ~np.eye(n, dtype=bool)
        found = ge.evidence.objects(labels, consensus * 10, missing=missing, device=device)
        if missing == "zero":
            D = 1 - together / of
            np.fill_diagonal(D, 0.0)
            expected = silhouette_samples(D, consensus, metric="precomputed")
            np.testing.assert_allclose(found.silhouette, expected, atol=1e-12)
        for x in range(n):
            members = [(consensus == t) & others[x] for t in range(k)]
            means = [together[x, some].sum() / max(of[x, some].sum(), 1) for some in members]
            own, total = means[consensus[x]], sum(means)
            margin = own - max(mean for t, mean in enumerate(means) if t != consensus[x])
            shares = [mean / total for mean in means if mean > 0]
            entropy = -sum(s * np.log(s) for s in shares) / np.log(k) if total else 1.0
            if not members[consensus[x]].any():
                own = margin = entropy = np.nan
            of_object = found.item_consensus[x], found.margin[x], found.entropy[x]
            np.testing.assert_allclose(of_object, (own, margin, entropy), atol=1e-12)
            expected = oracles.confidence(labels, consensus, x, missing)
            np.testing.assert_allclose(found.confidence[x], expected, atol=1e-12)
        found = ge.evidence.clusters(labels, consensus, missing=missing, device=device)
        assert found.sizes.tolist() == np.bincount(consensus).tolist()
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
    expected, found = [], []
    for results in (expected, found):
        results += [ge.evidence.objects(labels, consensus, missing=way).confidence for way in ("zero", "ignore")]
        step_bytes(0)
    np.testing.assert_array_equal(found, expected)
