"""All evidence of a fit."""

import dask.array as da
import numpy as np
import pytest
from conftest import refused, structured_labels
from sklearn.exceptions import NotFittedError

import gpuens as ge


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
