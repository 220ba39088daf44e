"""Evidence for a consensus against literal N × N computations, scikit-learn, and hand-made cases."""

import numpy as np
import pytest
from conftest import refused, structured_labels
from sklearn.metrics import normalized_mutual_info_score, silhouette_samples

import gpuens as ge

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
    """C, literally."""
    return ((labels[:, None] == labels) & (labels >= 0)[:, None] & (labels >= 0)).mean(axis=2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(5))
def test_objects_equal_the_literal_matrix(seed, device):
    labels, consensus = ensemble(seed)
    if seed == 3:
        consensus[consensus == 2] = 0
        consensus[7] = 2  # alone
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
        assert found.n_labelled[m] == there.sum()
    shares = (labels >= 0).sum(axis=0)
    np.testing.assert_allclose(found.anmi, (found.nmi * shares).sum() / shares.sum())
    np.testing.assert_allclose(found.mean_ecs, (found.ecs * shares).sum() / shares.sum())


@pytest.mark.parametrize(
    ("consensus", "sentence"),
    [
        ([0, 1], "consensus must hold one value for each of the 4 row(s), but have shape (2,)."),
        ([0, 1, -1, None], "consensus leaves 2 object(s) without a label"),
        ([[0, 1], [2, 3]], "consensus"),
    ],
)
@pytest.mark.parametrize("function", [ge.evidence.objects, ge.evidence.agreement])
def test_bad_consensus_is_refused(function, consensus, sentence):
    refused(lambda: function([[0, 0, 1, 1], [0, 1, 1, 1]], consensus), ValueError, sentence)
