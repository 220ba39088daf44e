"""Linkage over the clusterings that label both objects, EAC(missing="ignore"), compared with all pairs of objects."""

import itertools

import numpy as np
import oracles
import pytest
import scipy.cluster.hierarchy
from conftest import random_labels, structured_labels
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.labels.rows import Rows, as_rows
from gpuens.partition import average_linkage
from gpuens.reduction import core_groups
from gpuens.runtime import device as devices
from gpuens.similarity.observed import Observed


def dendrogram_of(labels, weights, device):
    reduced = core_groups(Rows(labels))
    lam = np.ones(labels.shape[1], dtype=np.int64) if weights is None else weights
    return average_linkage(as_rows(reduced.rows, device), Observed(lam, reduced.rows.offsets))


def random_ensemble(seed):
    """Return labels and weights.

    The labels are noise or planted clusters, 20-60 % missing, with or without repeated rows.
    """
    rng = np.random.default_rng(seed)
    n, m, missing = int(rng.integers(12, 32)), int(rng.integers(1, 10)), rng.uniform(0.2, 0.6)
    if seed % 2:
        labels = structured_labels(n, m, 3, noise=0.3, missing=missing, seed=seed)[0]
    else:
        labels = random_labels(n, m, (2, 4), missing=missing, seed=seed)
    labels = labels[rng.integers(n, size=n)] if seed % 3 == 0 else labels
    return labels, rng.choice([0.5, 1.0, 1.5], size=m) if seed % 4 == 1 else None


def in_order(merges):
    return sorted((*sorted(pair), s) for *pair, s in merges)


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("n_listed", [1, 16])
def test_average_linkage_is_that_of_all_pairs(n_listed, where, sizes):
    """Merges are equal to the bit, even for ties.

    Only pairs that no clustering labels together may merge in another order.
    """
    sizes("partition.linkage.conduct", N_LISTED=n_listed)
    gaps = 0
    for seed in range(23, 47):
        labels, weights = random_ensemble(seed)
        found = dendrogram_of(labels, weights, where)
        merges = [*zip(found.kept.tolist(), found.absorbed.tolist(), found.similarities.tolist(), strict=True)]
        expected = oracles.average_linkage_of_observed_pairs(labels, weights, in_rounds=True)
        assert in_order(merges) == in_order(expected.merges), seed
        np.testing.assert_array_equal(found.similarities, np.sort(expected.heights)[::-1])
        if oracles.observed_sums(labels)[1].all():
            greedy = oracles.average_linkage_of_observed_pairs(labels, weights)
            assert in_order(greedy.merges) == in_order(expected.merges), seed
        else:
            oracles.assert_greedy_over_observed_pairs(labels, weights, merges)
            gaps += 1
    assert 6 < gaps < 20


def test_other_linkages_are_those_of_all_pairs(where):
    labels = structured_labels(40, 8, 3, noise=0.2, missing=0.3, seed=1)[0]
    c = oracles.pairs_together(labels)[2]
    z = scipy.cluster.hierarchy.linkage(1 - c[np.triu_indices(40, 1)], "single")
    est = ge.EAC(20, linkage="single", missing="ignore", device=where).fit(labels)
    np.testing.assert_allclose(est.distances_, z[:, 2], atol=1e-12)
    est = ge.EAC(20, linkage="complete", missing="ignore", device=where).fit(labels)
    rows = devices.to_host(est.reduction_.row_of)
    # compare pairs of rows, because the positions of rows decide ties
    c = c[np.ix_(*[np.unique(rows, return_index=True)[1]] * 2)]
    z = scipy.cluster.hierarchy.linkage(-c[np.triu_indices(len(c), 1)], "complete")
    np.testing.assert_array_equal(est.dendrogram_.similarities, -z[:, 2])


def test_without_a_missing_label_it_is_the_plain_one():
    labels = structured_labels(60, 6, 3, noise=0.2, seed=1)[0]
    plain, observed = (ge.EAC(3, missing=missing).fit(labels) for missing in ("zero", "ignore"))
    np.testing.assert_array_equal(plain.distances_, observed.distances_)
    np.testing.assert_array_equal(plain.labels_, observed.labels_)
    with pytest.raises(ValueError, match="missing must be"):
        ge.EAC(2, missing="mean").fit(labels)


def test_similarity_prediction_and_evidence_ignore_what_is_missing(where):
    labels, truth = structured_labels(90, 8, 3, noise=0.2, missing=0.3, seed=4)
    weights = np.array([0.5, 1.0, 1.5, 1.0] * 2)
    est = ge.EAC(3, missing="ignore", weights=weights, device=where).fit(labels[:60])
    together, both = oracles.observed_sums(labels, weights)
    rows = Rows(labels[:60])
    of_some = ge.EAC(3, missing="ignore", weights=weights).fit(labels[:60]).similarity_.tile(rows, 2, 9)
    np.testing.assert_allclose(of_some, (together / np.maximum(both, 0.5))[2:9, :60], rtol=1e-14)
    members = np.eye(3)[est.labels_]
    ratios = (together[60:, :60] @ members) / (both[60:, :60] @ members)
    np.testing.assert_array_equal(est.predict(labels[60:]), ratios.argmax(axis=1))
    assert ari(truth[60:], est.predict(labels[60:])) > 0.8
    expected = ge.evidence.objects(labels[:60], est.labels_, missing="ignore").confidence
    np.testing.assert_array_equal(est.confidence_, expected)
    with pytest.raises(AttributeError, match="uses ratios of sums"):
        est.cophenetic_correlation()


@pytest.mark.parametrize("reduction", ["sample:40", "catree:tau=0.2"])
def test_fewer_rows(reduction):
    labels, truth = structured_labels(120, 12, 3, noise=0.1, missing=0.3, seed=5)
    assert ari(truth, ge.EAC(3, missing="ignore", reduction=reduction).fit_predict(labels)) > 0.7


def test_objects_that_no_clustering_labels_together(recwarn):
    """Two batches of objects share no clustering. One batch has three groups, and the other has two groups."""
    labels = np.full((40, 4), -1)
    labels[:20, :2], labels[20:, 2:] = np.arange(20)[:, None] % 3, np.arange(20)[:, None] % 2
    labels[0, 1] = 1  # a link between two of the three groups
    est = ge.EAC(5, missing="ignore").fit(labels)
    assert (est.n_unobserved_merges_, len(recwarn)) == (1, 0)
    with pytest.warns(UserWarning, match=r"1 cluster\(s\) take 1 merge\(s\) of objects that no clustering labels to"):
        assert ge.EAC(1, missing="ignore").fit(labels).distances_[-1] == 1.0


def test_samples_of_the_objects_recover_planted_clusters():
    """Ten clusterings label samples of 80 or 60 % of the objects. Half of the labels are random."""
    found = {"zero": [], "ignore": []}
    for seed, missing in itertools.product(range(6), (0.2, 0.4)):
        labels, truth = structured_labels(400, 10, 4, noise=0.5, split=3, missing=missing, seed=seed)
        for convention, scores in found.items():
            scores.append(ari(truth, ge.EAC(4, missing=convention).fit_predict(labels)))
    assert np.mean(found["ignore"]) > np.mean(found["zero"]) + 0.05, found
