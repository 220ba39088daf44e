"""Former module paths: programs and pickles of earlier versions still find their modules."""

import pickle
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
from conftest import structured_labels

import gpuens as ge
from gpuens.moved import MOVED

LABELS = structured_labels(200, 6, 4, missing=0.1)[0]


@pytest.mark.parametrize("former", MOVED)
def test_a_former_place_has_what_the_module_has(former, monkeypatch):
    monkeypatch.delitem(sys.modules, former, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{former} is now {MOVED[former]}"):
        found = import_module(former)
    now = import_module(MOVED[former])
    assert {name: value for name, value in vars(found).items() if name[:2] != "__"}.items() <= vars(now).items()
    assert found.__name__ == former


@pytest.mark.parametrize("est", [ge.LWEA(4), ge.LWGP(4), ge.KCC(4), ge.EAC(4, reduction=ge.Sample(100))], ids=str)
def test_a_pickle_of_an_earlier_version_is_read(est):
    fitted = est.fit(LABELS)
    now = then = pickle.dumps(fitted, protocol=2)  # protocol 2 stores each module name on a line of its own
    for former, place in MOVED.items():
        then = then.replace(b"c" + place.encode() + b"\n", b"c" + former.encode() + b"\n")
    assert b"cgpuens.ensemble\n" in then != now
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = pickle.loads(then)
    np.testing.assert_array_equal(found.predict(LABELS), fitted.predict(LABELS))


def test_other_names_are_unknown():
    with pytest.raises(ModuleNotFoundError, match=r"gpuens\.nothing"):
        import_module("gpuens.nothing")
