"""ECI, co-association and LWCA compared with literal N × N matrices, and with Table I of the LWEC paper."""

import numpy as np
import oracles
import pytest

import gpuens as ge


@pytest.mark.filterwarnings("ignore:theta=")
def test_table_one_of_the_paper(table_one):
    printed = [2.56, 0.00, 0.72, 0.97, 0.92, 1.95, 1.85, 1.44, 0.00]
    np.testing.assert_array_equal(ge.similarity.entropy(table_one).round(2), printed)
    printed = [0.18, 1, 0.62, 0.52, 0.54, 0.27, 0.29, 0.38, 1]
    np.testing.assert_array_equal(ge.similarity.eci(table_one, theta=0.5).round(2), printed)
    assert (ge.similarity.eci(table_one, theta=1e-5) > 0).all()


@pytest.mark.parametrize("theta", [0.1, 0.4, 4])
def test_eci_and_lwca_are_the_literal_ones(any_labels, theta, where):
    weights = oracles.eci(any_labels, theta)
    np.testing.assert_allclose(ge.similarity.eci(any_labels, theta, device=where), weights, atol=1e-12, rtol=0)
    matrix = ge.similarity.lwca(any_labels, theta, device=where)
    np.testing.assert_allclose(matrix, oracles.coassociation(any_labels, weights), atol=1e-12, rtol=0)


def test_coassociation_and_its_blocks(any_labels, where):
    whole = ge.similarity.coassociation(any_labels, device=where)
    np.testing.assert_allclose(whole, oracles.coassociation(any_labels), atol=1e-12, rtol=0)
    n = len(any_labels)
    rows, cols = np.array([0, n - 1, 2, -1]), np.arange(n) % 3 == 0
    block = ge.similarity.coassociation(any_labels, rows=rows, cols=cols, device=where)
    np.testing.assert_array_equal(block, whole[rows][:, cols])


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_observed_coassociation_is_a_share_of_the_clusterings_that_label_both(any_labels, where):
    matrix = ge.similarity.coassociation(any_labels, missing="ignore", device=where)
    together, both = oracles.observed_sums(any_labels)
    expected = np.full(both.shape, np.nan)
    np.testing.assert_array_equal(matrix, np.divide(together, both, out=expected, where=both > 0))
    rows, cols = np.array([0, -1, 2]), slice(1, None, 3)
    block = ge.similarity.coassociation(any_labels, rows, cols, missing="ignore", device=where)
    np.testing.assert_array_equal(block, matrix[rows][:, cols])


def test_pairs_that_never_met_have_no_share(where):
    labels = [[0, 0, 2, None, 1], [None, 1, 1, 2, None]]
    matrix = ge.similarity.coassociation(labels, missing="ignore", device=where)
    assert np.argwhere(np.isnan(matrix)).tolist() == [[0, 3], [3, 0], [3, 4], [4, 3]]


def test_eci_on_weighted_rows_is_that_of_all_objects(any_labels):
    reduced = ge.CoreGroups().reduce(ge.Ensemble(any_labels))
    weights = ge.similarity.eci(reduced.ensemble, 0.4, reduced.counts)
    np.testing.assert_array_equal(weights, ge.similarity.eci(any_labels, 0.4))


def test_bad_input_is_refused(monkeypatch, table_one):
    for theta in (0, -1, np.nan, np.inf, "a", True):
        with pytest.raises((ValueError, TypeError), match="theta must be"):
            ge.similarity.eci(table_one, theta)
    for rows in ([16], [-17], [[0]], [0.5], "a"):
        with pytest.raises((ValueError, TypeError), match="rows"):
            ge.similarity.coassociation(table_one, rows=rows)
    with pytest.raises(ValueError, match="missing must be one of 'zero', 'ignore'"):
        ge.similarity.coassociation(table_one, missing="ignored")
    monkeypatch.setenv("GPUENS_MEMORY", "1kB")
    with pytest.raises(MemoryError, match=r"the 16 × 16 co-association block needs 2\.0 kB and 1\.0 kB may be used"):
        ge.similarity.coassociation(table_one)
