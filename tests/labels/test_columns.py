"""Arrays of several libraries: what they give back, and tensors that cannot be read."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import refused

import gpuens as ge
from gpuens.methods.model import model_of
from gpuens.runtime import device as devices

DRAWN = np.random.default_rng(0)
N = 24
TRUTH = np.arange(N) % 3
LABELS = np.where(DRAWN.random((N, 4)) < 0.2, DRAWN.integers(0, 3, (N, 4)), TRUTH[:, None])
WEIGHTS = DRAWN.integers(1, 4, N)
PLACES = DRAWN.normal(size=(N, 2)) + 8 * TRUTH[:, None]
SHARES = np.abs(DRAWN.normal(size=(N, 3)))
SHARES /= SHARES.sum(axis=1, keepdims=True)


def strict(values):
    return pytest.importorskip("array_api_strict").asarray(np.array(values))


def tensor(values, **options):
    torch = pytest.importorskip("torch")
    return torch.tensor(np.array(values), **options)


def read_only(values):
    array = np.array(values)
    array.flags.writeable = False
    return array


LIBRARIES = {"numpy": np.array, "read-only": read_only, "array-api-strict": strict, "torch": tensor}

GIVEN_BACK = {
    "labels": lambda array: ge.consensus(array(LABELS), 3, sample_weight=array(WEIGHTS)),
    "labels of a list": lambda array: ge.consensus([array(column) for column in LABELS.T], 3, method="eac"),
    "confident labels": lambda array: ge.consensus(array(LABELS), 3, method="eac", min_confidence=0.9),
    "features of a fit": lambda array: ge.ECRMC(3).fit(array(LABELS), features=array(PLACES)).labels_,
    "predictions": lambda array: ge.EAC(3).fit(LABELS).predict(array(LABELS[:5])),
    "predictions of a model": lambda array: model_of(ge.EAC(3).fit(LABELS)).predict(array(LABELS[:5])),
    "confidence": lambda array: ge.EAC(3).fit(array(LABELS)).confidence_,
    "the rest": lambda array: ge.EAC(3, min_size=2).fit(array(LABELS)).rest_,
    "a cut": lambda array: ge.EAC(3).fit(array(LABELS)).cut(2),
    "memberships": lambda array: ge.SCEC(3).fit([array(SHARES), array(TRUTH)]).membership_,
    "votes": lambda array: ge.Voting(vocabulary="shared").fit(array(LABELS)).labels_,
    "domains": lambda array: ge.Spatial(3).fit(array(LABELS), coordinates=array(PLACES), groups=array(TRUTH)).labels_,
    "clusters of features": lambda array: ge.cluster(array(PLACES), 3, kind="kmeans", n_clusterings=4).labels_,
    "clusters of edges": lambda array: (
        ge.graph_consensus(array([[0, 3], [3, 6], [1, 4]]), array(LABELS), final="components").labels
    ),
    "an alignment": lambda array: ge.align(array(LABELS), array(TRUTH)).codes,
    "similarities": lambda array: ge.similarity.coassociation(array(LABELS), rows=[0, 1]),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("result", GIVEN_BACK)
def test_results_are_given_back_in_the_library_of_the_labels(result, library):
    array = LIBRARIES[library]
    wanted, found = GIVEN_BACK[result](np.array), GIVEN_BACK[result](array)
    assert type(found) is type(array([0]))
    assert str(found.dtype).endswith(str(wanted.dtype))
    assert np.array_equal(np.asarray(found), wanted)


SCORES = {
    "ari": lambda array: ge.metrics.ari(array(TRUTH), array(LABELS[:, 0]), sample_weight=array(WEIGHTS)),
    "scores": lambda array: ge.metrics.scores(array(TRUTH), array(LABELS[:, 0].astype(np.int32))),
    "stability": lambda array: ge.metrics.stability(array(LABELS.astype(np.float32))),
    "agreement": lambda array: ge.evidence.agreement(array(LABELS), array(TRUTH)).anmi,
    "truth": lambda array: ge.compare(LABELS, 3, methods=["eac"], truth=array(TRUTH)).rows[0]["ari"],
    "neighbours": lambda array: ge.Graph.neighbors(array(PLACES), 2, groups=array(TRUTH)).heads.tolist(),
    "cells": lambda array: ge.Graph.grid((2, 2), mask=array([[1, 1], [0, 1]])).n_edges,
    "a part of a graph": lambda array: ge.Graph.grid((3, 3)).subgraph(array([0, 1, 4])).n_edges,
    "rows": lambda array: ge.Ensemble(LABELS).take(array([0, 5, 7])).to_array().tolist(),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("score", SCORES)
def test_scores_of_arrays(score, library):
    assert SCORES[score](LIBRARIES[library]) == SCORES[score](np.array)


def test_results_on_a_gpu_change_libraries_without_a_copy(fake_cupy, monkeypatch):
    given = []
    library = SimpleNamespace(from_dlpack=given.append, __name__="tensors")
    monkeypatch.setitem(sys.modules, "tensors", library)
    labels = fake_cupy.asarray(LABELS)
    monkeypatch.setattr(type(labels), "__array_namespace__", lambda self: library, raising=False)
    ge.EAC(3).fit(labels)
    assert [devices.kind_of(one) for one in given] == ["cuda"]
    assert devices.to_host(given[0]).tolist() == ge.EAC(3).fit(LABELS).labels_.tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_in_a_file(library, tmp_path):
    ids = LIBRARIES[library](np.arange(N) * 2 + 1)
    ge.io.write_labels(tmp_path / "labels.csv", LIBRARIES[library](TRUTH), ids=ids)
    read = pd.read_csv(tmp_path / "labels.csv", index_col=0)
    assert (read.index.tolist(), read.iloc[:, 0].tolist()) == (np.asarray(ids).tolist(), TRUTH.tolist())


def test_names_stay_texts():
    votes = np.array([["a", "b"], ["b", "b"], ["a", "a"]])
    assert ge.Voting(vocabulary="shared").fit(votes).labels_.dtype == object
    home = devices.Home("cpu", "array_api_strict")
    assert devices.give_back(votes, home) is votes


def test_a_home_is_the_name_of_its_memory():
    home = devices.Home("cpu", "torch")
    again = pickle.loads(pickle.dumps(home))
    assert (again, again.library, {home: 1}["cpu"], type(devices.resolve("auto", home))) == ("cpu", "torch", 1, str)
    assert devices.home_of_all([strict([1]), np.array([1])], ["a", "b"]).library is None


UNREADABLE = {
    "gradients": (lambda values: tensor(np.array(values, float), requires_grad=True), "detach()"),
    "bfloat16": (lambda values: tensor(values).bfloat16(), "float()"),
    "sparse": (lambda values: tensor(values).to_sparse(), "to_dense()"),
    "no memory": (lambda values: tensor(values).to("meta"), "cpu()"),
    "conjugated": (lambda values: tensor(np.array(values, complex)).conj(), "resolve_conj()"),
}
DOORS = {
    "labels": lambda array: ge.consensus(array(LABELS), 3),
    "labels[1]": lambda array: ge.consensus([LABELS[:, 0], array(LABELS[:, 1])], 3),
    "labels[0]": lambda array: ge.SCEC(3).fit([array(SHARES), TRUTH]),
    "sample_weight": lambda array: ge.consensus(LABELS, 3, sample_weight=array(WEIGHTS)),
    "features": lambda array: ge.ECRMC(3).fit(LABELS, features=array(PLACES)),
    "X": lambda array: ge.cluster(array(PLACES), 3),
    "coordinates": lambda array: ge.Graph.neighbors(array(PLACES), 2),
    "groups": lambda array: ge.Graph.neighbors(PLACES, 2, groups=array(TRUTH)),
    "graph": lambda array: ge.Graph.of(array([[0, 1], [1, 2]])),
    "truth": lambda array: ge.compare(LABELS, 3, methods=["eac"], truth=array(TRUTH)),
    "to": lambda array: ge.align(LABELS, array(TRUTH)),
    "a": lambda array: ge.metrics.ari(array(TRUTH), TRUTH),
    "counts": lambda array: ge.Rows(LABELS, counts=array(WEIGHTS)),
}


@pytest.mark.parametrize("fault", UNREADABLE)
@pytest.mark.parametrize("name", DOORS)
def test_tensors_that_cannot_be_read(name, fault):
    array, remedy = UNREADABLE[fault]
    refused(lambda: DOORS[name](array), TypeError, f"{name}: the tensor", f"pass {name}.{remedy}")


def test_an_array_on_another_device():
    xp = pytest.importorskip("array_api_strict")
    labels = xp.asarray(LABELS, device=xp.Device("device1"))
    refused(lambda: ge.consensus(labels, 3), TypeError, "array_api_strict", "device1", "copy it to NumPy")
