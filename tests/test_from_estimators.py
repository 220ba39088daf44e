"""Ensembles of any clusterers of scikit-learn's interface."""

import numpy as np
import pytest
from conftest import one_sentence
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpuens as ge
from gpuens.generate import from_estimators

X, y = make_blobs(200, 3, centers=4, cluster_std=0.8, random_state=0)


@pytest.mark.parametrize("n_jobs", [None, 2, -1])
def test_each_clusterer_is_a_clustering_and_stays_as_it_was(n_jobs):
    given = [
        KMeans(4, random_state=0),
        ("ward", AgglomerativeClustering(5)),
        make_pipeline(StandardScaler(), KMeans(3)),
    ]
    given[2].set_params(kmeans__random_state=1)
    found = from_estimators(given, X, n_jobs=n_jobs)
    assert found.names == [0, "ward", 2]
    assert not hasattr(given[0], "labels_")
    for one, column in zip([given[0], given[1][1], given[2]], found.to_array().T, strict=True):
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
    ("estimators", "given", "kind", "match"),
    [
        ([], {}, ValueError, "empty"),
        (KMeans(2), {}, TypeError, "a list of clusterers"),
        ([KMeans], {}, TypeError, "fit_predict"),
        ([StandardScaler()], {}, TypeError, "fit_predict"),
        ([KMeans(2)], {"n_jobs": 0}, ValueError, "n_jobs"),
        ([KMeans(2)], {"n_jobs": 1.5}, TypeError, "n_jobs"),
        ([Odd()], {}, ValueError, r"Odd returns labels of shape \(200, 2\)"),
    ],
)
def test_what_is_refused(estimators, given, kind, match):
    with pytest.raises(kind, match=match) as refused:
        from_estimators(estimators, X, **given)
    one_sentence(refused.value)
