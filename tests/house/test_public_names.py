"""The list of public names that programs depend on, and the versions that the API reference tells."""

import re
from pathlib import Path

import pytest

import gpuens as ge

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def public_names(monkeypatch):
    """Import docs/public_names.py."""
    for package in ("dask", "anndata", "matplotlib"):
        pytest.importorskip(package)
    monkeypatch.syspath_prepend(DOCS)
    import public_names

    return public_names


def test_the_list_has_the_names_of_this_version(public_names):
    """Each line of the difference is a change for users; `python docs/public_names.py` writes the list anew."""
    assert public_names.FILE.read_text().splitlines() == public_names.listed(public_names.since()).splitlines()


def test_versions_are_kept(public_names):
    known = public_names.since()
    now = tuple(map(int, ge.__version__.split(".")[:2]))
    assert all(re.fullmatch(r"\d+\.\d+", version) for version in known.values())
    assert all(tuple(map(int, version.split("."))) <= now for version in known.values())
    lines = public_names.listed({"gpuens.cluster": "0.0"}).splitlines()
    assert [line.split("(")[0] for line in lines if not line.startswith("0.1 ")] == ["0.0  gpuens.cluster"]


def test_every_kind_of_name_is_listed(public_names):
    names = public_names.public_names()
    assert {f"gpuens.{name}" for name in ge.__all__} - names.keys() == set()
    assert names["gpuens.metrics.vi"] == "(a, b, *, sample_weight=None)"
    assert names["gpuens.methods.base.Method.confidence_"] == names["gpuens.workflows.choice.Choice.suggested"] == ""
    assert "coordinates=None" in names["gpuens.Spatial.fit"]
    assert "gpuens.EAC.fit" not in names  # Consensus has it
    assert [name for name in names if "._" in name and name != "gpuens.__version__"] == []
    assert not any(" at 0x" in signature for signature in names.values())


def test_a_change_shows_in_the_list(public_names, monkeypatch):
    def vi(a, b, *, weights=None):
        pass

    monkeypatch.setattr(ge.metrics, "vi", vi)
    monkeypatch.setattr(ge.metrics, "__all__", [name for name in ge.metrics.__all__ if name != "nmi"])
    before = set(public_names.FILE.read_text().splitlines())
    after = set(public_names.listed(public_names.since()).splitlines())
    assert after - before == {"0.1  gpuens.metrics.vi(a, b, *, weights=None)"}
    assert {line.split("(")[0] for line in before - after} == {"0.1  gpuens.metrics.nmi", "0.1  gpuens.metrics.vi"}


def test_pages_tell_the_version(public_names, monkeypatch):
    versions = {
        "gpuens.metrics": "0.1",
        "gpuens.metrics.vi": "0.1",
        "gpuens.EAC": "0.1",
        "gpuens.EAC.fit": "0.1",
        "gpuens.EAC.cut": "0.2",
    }
    monkeypatch.setattr(public_names, "since", lambda: versions)

    def added(what, name):
        lines = ["Text."]
        public_names.with_version(None, what, name, None, None, lines)
        return lines[1:]

    def told(version):
        return ["", ".. container:: since", "", f"   Since version {version}."]

    assert added("class", "gpuens.EAC") == added("function", "gpuens.metrics.vi") == told("0.1")
    assert added("method", "gpuens.EAC.fit") == added("class", "gpuens.Other") == []
    assert added("method", "gpuens.EAC.cut") == told("0.2")
