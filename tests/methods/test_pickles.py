"""Copies of public objects, in this and in another process: names, estimators and their results."""

import copy
import inspect
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from conftest import METHODS, structured_labels

import gpuens as ge
from gpuens.labels.soft_ensemble import SoftEnsemble

cloudpickle = pytest.importorskip("cloudpickle")

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
MODULES = {name for name in ge.__all__ if inspect.ismodule(getattr(ge, name))}


@pytest.fixture(scope="module")
def labels():
    return structured_labels(120, 5, 3, noise=0.2, missing=0.05, seed=3)[0]


@pytest.fixture(scope="module")
def child():
    """Return a function that calls another function in a worker process of loky.

    The process gets only the call's arguments.
    """
    with joblib.Parallel(n_jobs=2, backend="loky", timeout=120) as children:
        yield lambda function, *args: children([joblib.delayed(function)(*args)])[0]


def copies(thing):
    """Yield copies of an object: one copy for each way to serialize the object."""
    yield copy.deepcopy(thing)
    yield cloudpickle.loads(cloudpickle.dumps(thing))
    for protocol in PROTOCOLS:
        yield pickle.loads(pickle.dumps(thing, protocol))


def same(one, other):
    """Check that two objects have equal types and contents, at every level."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        assert other.flags.f_contiguous or not one.flags.f_contiguous  # kernels read codes column by column
    elif isinstance(one, (list, tuple)):
        for mine, theirs in zip(one, other, strict=True):
            same(mine, theirs)
    elif isinstance(one, dict):
        same(list(one.items()), list(other.items()))
    elif hasattr(one, "__dict__") and not inspect.isroutine(one) and not inspect.isclass(one):
        same(one.__getstate__(), other.__getstate__())
    elif not isinstance(one, np.random.Generator):
        assert one == other or (one != one and other != other)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(ge.__all__) - MODULES - {"__version__"}))
def test_public_names_are_themselves(name):
    thing = getattr(ge, name)
    assert inspect.isfunction(thing) or inspect.isclass(thing)
    assert all(found is thing for found in copies(thing))


@pytest.mark.parametrize("name", ge.__all__)
def test_functions_may_mention_any_name(name):
    namespace = {"ge": ge}
    exec(f"def mention(): return ge.{name}", namespace)
    assert cloudpickle.loads(cloudpickle.dumps(namespace["mention"]))() is getattr(ge, name)
    assert cloudpickle.loads(cloudpickle.dumps(lambda: getattr(ge, name)))() is getattr(ge, name)
    if name in MODULES:
        assert cloudpickle.loads(cloudpickle.dumps(getattr(ge, name))) is getattr(ge, name)


@pytest.mark.parametrize(
    "statements",
    [
        "import gpuens as ge; import gpuens.methods",
        "import gpuens.methods; ge = gpuens",
        "from gpuens import methods; import gpuens as ge; assert methods is ge.methods",
        "import gpuens as ge; from importlib import import_module, reload; import_module('gpuens.methods'); reload(ge)",
        "from gpuens.methods.lwea import LWEA; import gpuens as ge; from gpuens.methods import *"
        "; assert LWEA is ge.LWEA is ge.methods()['lwea'] and EAC is ge.EAC",
        "from gpuens.methods import base; import gpuens as ge; assert issubclass(ge.Consensus, base.Method)",
        "import gpuens as ge; from gpuens.methods import lwea; assert lwea.LWEA is ge.LWEA is ge.methods()['lwea']",
    ],
)
def test_methods_is_a_function_whatever_was_imported(statements):
    then = (
        "import inspect, sys; assert inspect.isfunction(ge.methods) and inspect.ismodule(sys.modules['gpuens.methods'])"
    )
    subprocess.run([sys.executable, "-c", f"{statements}\n{then}"], check=True)


# --- objects with data ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", [None, "catree", ge.Sample(40)])
@pytest.mark.parametrize("method", sorted(METHODS))
def test_estimators(method, reduction, labels):
    est = METHODS[method](3, reduction=reduction)
    for found in copies(est):
        same(est, found)
    expected = est.fit(labels)
    for found in copies(expected):
        same(expected, found)


def test_estimators_of_soft_clusterings(labels):
    memberships = np.random.default_rng(0).dirichlet([1, 1, 1], len(labels))
    est = ge.SCEC(3).fit([memberships, *labels.T])
    for found in copies(est):
        same(est, found)


def test_ensembles_reductions_and_trees(labels):
    ensemble = ge.Ensemble(labels, names=list("abcde"))
    dendrogram = ge.LWEA(3).fit(labels).dendrogram_
    soft = SoftEnsemble([np.eye(3)[np.arange(120) % 3], labels[:, 0]])
    reductions = [how.reduce(ensemble) for how in (ge.CoreGroups(), ge.Sample(40), ge.CATree())]
    for thing in (ensemble, ensemble.take(np.arange(50)), soft, dendrogram, ge.CATree().grow(ensemble), *reductions):
        for found in copies(thing):
            same(thing, found)
    similarity = ge.OCH(3).fit(labels).similarity_
    assert similarity._all is None  # the fit released the bits of all rows
    similarity.tile(None, 0, 20)
    assert similarity._all is not None
    for found in copies(similarity):
        assert found._all is None
        same(found.tile(None, 0, 20), similarity.tile(None, 0, 20))
    again = pickle.loads(pickle.dumps(dendrogram))
    np.testing.assert_array_equal(again.cut(4), dendrogram.cut(4))
    np.testing.assert_array_equal(again.linkage_matrix(), dendrogram.linkage_matrix())


# --- in another process -----------------------------------------------------------------------------------------------


def test_another_process_takes_functions_that_mention_methods(child, labels):
    names = child(lambda: sorted(ge.methods()))
    assert names == sorted(ge.methods())
    found = child(lambda labels: ge.consensus(labels, 3, method=min(ge.methods().keys() & {"eac"})), labels)
    np.testing.assert_array_equal(found, ge.consensus(labels, 3, method="eac"))
    assert child(lambda: [getattr(ge, name) for name in ge.__all__ if name not in ("__version__", *MODULES)])


@pytest.mark.parametrize("method", ["lwea", "crc-ia", "scec"])
def test_estimators_go_there_and_come_back(method, child, labels):
    est = ge.methods()[method](3, reduction=None if method == "scec" else ge.Sample(40))
    there = child(lambda est, labels: est.fit(labels), est, labels)
    same(there.labels_, est.fit(labels).labels_)
    same(child(lambda est: est.labels_, est), est.labels_)
    if method == "lwea":
        z = child(lambda tree: tree.linkage_matrix(), est.dendrogram_)
        np.testing.assert_array_equal(z, est.dendrogram_.linkage_matrix())
