"""Agreement of base clusterings with each other, compared with the tables of all pairs."""

import itertools

import numpy as np
import pytest
from conftest import labels_and_consensus

import gpuens as ge


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("dense_cells", [2**22, 0])
def test_consistency_is_that_of_all_pairs_of_clusterings(dense_cells, sizes):
    sizes("contingency.labels", DENSE_CELLS=dense_cells)
    for seed in range(10):
        labels, _ = labels_and_consensus(
            seed, n=14 if dense_cells else 9, k=5 if dense_cells else 9, missing=(seed % 3) * 0.3
        )
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
