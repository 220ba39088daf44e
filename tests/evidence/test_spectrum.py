"""The spectrum of base clusterings compared with a literal one."""

import numpy as np
import oracles
import pytest
from conftest import random_labels

import gpuens as ge


def literal(labels, largest):
    """Return the support for 2, …, `largest` clusters, from (N, N) matrices of object pairs."""
    b = oracles.incidence(labels)
    w = oracles.eci(labels, 0.4)
    degree = (b * w).sum(axis=1)
    halves = b * w / np.sqrt(degree)[:, None] / np.sqrt(w * b.sum(axis=0))
    of_sure = np.linalg.eigvalsh(halves @ halves.T)[::-1].clip(0, 1)
    labelled = np.sqrt(b.sum(axis=1))
    halves = b / labelled[:, None] / np.sqrt(b.sum(axis=0))
    of_equal = np.linalg.eigvalsh(halves @ halves.T)[::-1].clip(0, 1)
    sizes = [len(set(column[column >= 0])) for column in np.asarray(labels).T]
    sizes = [k + (k == max(sizes)) for k in sizes]
    support = []
    for k in range(2, largest + 1):
        shares = [min(1.0, sum(of_equal[:n]) / np.mean([min(n, k_m) for k_m in sizes])) for n in (k, k + 1)]
        gap = np.sqrt(1 - of_equal[k]) - np.sqrt(1 - of_equal[k - 1])
        ratio = np.log((1 - of_sure[k] + 1e-3) / (1 - of_sure[k - 1] + 1e-3))
        support.append(np.cbrt(max(gap, 0) * (max(shares[0] - shares[1], 0) + 1e-3) * max(ratio, 0)))
    return np.array(support)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_support_is_that_of_all_pairs(seed, missing, where):
    labels = random_labels(50, 7, (2, 9), missing=missing, seed=seed)
    found = ge.evidence.spectrum(labels, 12, device=where)
    np.testing.assert_allclose(found.support, literal(labels, 12), atol=1e-6)
    assert found.numbers.tolist() == list(range(2, 13))
    assert found.most_supported == 2 + np.argmax(found.support)
    assert ge.evidence.spectrum(ge.Rows(labels), 12).most_supported == found.most_supported


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([[0, 0, 1, 1, 2]] * 4, 3),  # all clusterings agree on three clusters
        ([[0, 0, 0, 0]] * 2, 1),
        ([[0, 1, 2]] * 2, 2),  # three clusters of one object do not count; only two clusters remain, without support
        ([[0, 0, 1, 1]] * 3, 2),
        ([[0, 0, 1, 1, 2, 2]] * 9 + [[0, 1, 2, 2, 3, 3]], 3),
    ],
)
@pytest.mark.filterwarnings("ignore:constant clusterings", "ignore:n_clusters is not given")
def test_small_answers(labels, expected):
    columns = [np.array(column) for column in labels]
    assert ge.evidence.suggestion(columns).n_clusters == expected
    for method in (ge.EAC, ge.LWEA, ge.LWGP):
        assert method().fit(columns).n_clusters_ == expected
