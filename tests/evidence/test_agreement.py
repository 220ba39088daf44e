"""Agreement of a consensus with base clusterings, compared with literal computations and scikit-learn."""

import numpy as np
import pytest
from conftest import labels_and_consensus
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import gpuens as ge
from gpuens.runtime.checks import recorded

DEVICES = ["cpu", pytest.param("emulated", marks=pytest.mark.kernels)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(5))
def test_agreement_equals_the_literal_one(seed, device):
    labels, consensus = labels_and_consensus(seed)
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
