"""The cophenetic correlation, compared with SciPy's."""

import numpy as np
import pytest
from conftest import refused, structured_labels
from scipy.cluster.hierarchy import cophenet

import gpuens as ge


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
