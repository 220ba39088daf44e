"""Ensembles from any clusterers with scikit-learn's interface."""

import numpy as np
import pytest
from conftest import refused
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpuens as ge
from gpuens.generate import from_estimators

X, y = make_blobs(200, 3, centers=4, cluster_std=0.8, random_state=0)


@pytest.mark.parametrize("n_jobs", [None, 2, -1, -2])
def test_each_clusterer_is_a_clustering_and_stays_as_it_was(n_jobs):
    pipeline = make_pipeline(StandardScaler(), KMeans(3)).set_params(kmeans__random_state=1)
    given = [KMeans(4, random_state=0), ("ward", AgglomerativeClustering(5)), pipeline]
    found = from_estimators(given, X, n_jobs=n_jobs)
    assert found.names == [0, "ward", 2]
    assert not hasattr(given[0], "labels_")
    for one, column in zip([given[0], given[1][1], pipeline], found.to_array().T, strict=True):
        assert ge.metrics.ari(column, one.fit_predict(X)) == 1.0
    assert ge.metrics.nmi(y, ge.EAC(4).fit(found).labels_) > 0.95


def test_noise_is_a_missing_label():
    far = np.vstack([X, [[1e3, 1e3, 1e3]]])
    found = from_estimators([HDBSCAN(min_cluster_size=10, copy=True), AgglomerativeClustering(4)], far).to_array()
    assert found[-1, 0] == -1
    assert found[-1, 1] >= 0


class Odd:
    def get_params(self, deep=True):
        return {}

    def fit_predict(self, X):
        return np.zeros((len(X), 2), dtype=int)


@pytest.mark.parametrize(
    ("estimators", "given", "kind", "mentioned"),
    [
        ([], {}, ValueError, ["empty"]),
        (None, {}, TypeError, ["a list of clusterers, or of pairs ", ", not None"]),
        (5, {}, TypeError, ["a list of clusterers, or of pairs ", ", not 5"]),
        ([("one", KMeans(2)), ("one", KMeans(3))], {}, ValueError, ["have the name 'one' twice"]),
        ([(1, KMeans(2))], {}, TypeError, ["the name 1 is no text"]),
        (KMeans(2), {}, TypeError, ["a list of clusterers"]),
        ([KMeans], {}, TypeError, ["fit_predict"]),
        ([StandardScaler()], {}, TypeError, ["fit_predict"]),
        ([KMeans(2)], {"n_jobs": 0}, ValueError, ["n_jobs"]),
        ([KMeans(2)], {"n_jobs": 1.5}, TypeError, ["n_jobs"]),
        ([KMeans(2)], {"X": None}, TypeError, ["X must be the features of the objects, not None"]),
        ([Odd()], {}, ValueError, ["Odd (0) returns labels of shape (200, 2)"]),
    ],
)
def test_what_is_refused(estimators, given, kind, mentioned):
    refused(lambda: from_estimators(estimators, **{"X": X, **given}), kind, *mentioned)


FITS = []


class Noted(KMeans):
    """k-means that records its fits and fails for 99 clusters."""

    def fit_predict(self, X):
        FITS.append(self.n_clusters)
        if self.n_clusters == 99:
            raise RuntimeError("no convergence")
        return super().fit_predict(X)


def test_a_clusterer_that_fails_is_named():
    with pytest.raises(RuntimeError, match="no convergence") as failed:
        from_estimators([("good", KMeans(2)), ("bad", Noted(99))], X)
    assert failed.value.__notes__ == ["This is an error of the clusterer Noted ('bad')."]


def test_a_wrong_shape_ends_the_work_at_once():
    FITS.clear()
    with pytest.raises(ValueError, match="Odd"):
        from_estimators([Odd(), *(Noted(k) for k in range(2, 12))], X)
    assert len(FITS) < 10


class OnTheGPU(KMeans):
    """k-means with features and labels in GPU memory."""

    def fit_predict(self, X):
        import cupy

        return cupy.asarray(super().fit_predict(cupy.asnumpy(X)))


def test_labels_in_gpu_memory(fake_cupy):
    found, expected = (
        from_estimators([kind(k, random_state=0) for k in (3, 4)], features)
        for kind, features in ((OnTheGPU, fake_cupy.asarray(X)), (KMeans, X))
    )
    assert (found.device_kind, expected.device_kind) == ("cuda", "cpu")
    np.testing.assert_array_equal(found.codes, expected.codes)
