"""Methods of other packages: registered by hand or by entry points, they work like built-in methods."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import refused, structured_labels

import gpuens as ge
from gpuens import cli
from gpuens.methods import REGISTRY

LABELS, _ = structured_labels(60, 4, 3, noise=0.1, seed=0)

THEIRS = '''
"""A method of somebody's own."""
from gpuens.methods.lwea import LWEA

class Mine(LWEA):
    """LWEA by another name, with a parameter.

    Parameters
    ----------
    n_clusters : int
        How many.
    kindness : float
        How kind it is.
    """

    def __init__(self, n_clusters: int | None = None, *, kindness: float = 0.5, reduction=None, device="auto"):
        super().__init__(n_clusters, theta=kindness, reduction=reduction, device=device)
        self.kindness = kindness
'''


pytestmark = pytest.mark.usefixtures("own_registry")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that installs a package with the given modules for one test."""

    def install(entries, name="theirs", **modules):
        for module, text in modules.items():
            (tmp_path / f"{module}.py").write_text(text)
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{method} = {place}" for method, place in entries.items()]
        (about / "entry_points.txt").write_text("\n".join(["[gpuens.methods]", *lines, ""]))

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield install
    for module in ("theirs_mine", "theirs_broken"):
        sys.modules.pop(module, None)


class Mild(ge.LWEA):
    """LWEA with a milder penalty."""


def test_parts_may_be_names(own_registry):
    """A method that names its parts is the one that makes them, also where its capabilities are asked for."""

    class ByName(ge.Consensus):
        "Weighted co-association by names."

        def __init__(self, n_clusters=None, *, theta=0.4, reduction=None, device="auto"):
            self.n_clusters, self.theta, self.reduction, self.device = n_clusters, theta, reduction, device

        def _parts(self):
            return f"lwca:theta={self.theta}", "average"

    labels = np.random.default_rng(0).integers(0, 4, (60, 8))
    est, wanted = ByName(3, theta=0.3).fit(labels), ge.LWEA(3, theta=0.3).fit(labels)
    assert est.labels_.tolist() == wanted.labels_.tolist()
    assert est.cophenetic_correlation() == wanted.cophenetic_correlation()
    for ability in (
        "needs_features",
        "lacks",
        "learns_by_sums",
        "gives_membership",
        "chooses_n_clusters",
        "marks_rest",
    ):
        assert getattr(est.parts(), ability) == getattr(wanted.parts(), ability)
    refused(lambda: ByName(3, theta=-1).fit(labels), ValueError, "theta")

    class Wrong(ByName):
        def _parts(self):
            return "lwca", "averge"

    refused(lambda: Wrong(3).fit(labels), ValueError, "partitioner", "averge", "average")
    ge.register("by-name", ByName)
    assert len(ge.compare(labels, 3, methods=["by-name"]).table) == 1


def test_a_registered_method_is_one_of_the_methods(tmp_path, monkeypatch, capsys):
    ge.register("mild", Mild)
    assert ge.methods()["mild"] is Mild
    np.testing.assert_array_equal(ge.consensus(LABELS, 3, method="mild"), ge.LWEA(3).fit_predict(LABELS))
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    assert cli.main(["run", "labels.npy", "-k", "3", "--method", "mild", "--theta", "0.7", "-o", "out.npy"]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), ge.LWEA(3, theta=0.7).fit_predict(LABELS))
    assert cli.main(["methods"]) == 0
    assert "  mild             LWEA with a milder penalty." in capsys.readouterr().out


def test_what_cannot_be_registered_is_refused():
    refused(lambda: ge.register("lwea", Mild), ValueError, "name 'lwea' is taken by another method")
    for name in ("Mild", "mild_", "-mild", "a--b", "a/b", "", "3"):
        refused(lambda name=name: ge.register(name, Mild), ValueError, "name must be lower-case letters")
    refused(lambda: ge.register(None, Mild), TypeError, "name must be a string, not None")
    for wrong in (Mild(), Mild.fit, "gpuens:LWEA", None, dict):
        refused(lambda wrong=wrong: ge.register("mild", wrong), TypeError, "method 'mild' must be a class derived from")
    assert "mild" not in ge.methods()


def test_a_name_is_taken_but_by_the_same_class():
    ge.register("mild", Mild)
    # register the same class again, as a notebook cell that runs twice does
    again = type("Mild", (ge.LWEA,), {"__module__": Mild.__module__})
    ge.register("mild", again)
    assert ge.methods()["mild"] is again
    refused(lambda: ge.register("mild", ge.EAC), ValueError, "name 'mild' is taken by another method")


def test_an_entry_point_is_one_of_the_methods(installed, capsys):
    installed({"mine": "theirs_mine:Mine"}, theirs_mine=THEIRS)
    assert ge.methods()["mine"].__module__ == "theirs_mine"
    expected = ge.LWEA(3, theta=0.9).fit_predict(LABELS)
    np.testing.assert_array_equal(ge.consensus(LABELS, 3, method="mine", kindness=0.9), expected)
    refused(lambda: ge.consensus(LABELS, 3, method="mime"), ValueError, "did you mean 'mine'?")
    refused(lambda: ge.register("mine", Mild), ValueError, "name 'mine' is taken by another method")
    np.save("labels.npy", LABELS)
    assert cli.main(["run", "labels.npy", "-k", "3", "--method", "mine", "--kindness", "0.9", "-o", "out.npy"]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), expected)
    assert json.loads(Path("out.npy.json").read_text())["parameters"]["kindness"] == 0.9
    assert cli.main(["run", "labels.npy", "-k", "3", "--method", "mine", "--theta", "0.9", "-o", "out.npy"]) == 2
    assert "--theta is no option of method 'mine'; its options are -k, --kindness, " in capsys.readouterr().err


BROKEN = {
    "broken": (
        "theirs_broken:Mine",
        "'broken' of package 'theirs' does not load (ZeroDivisionError: division",
    ),
    "gone": ("theirs_mine:Gone", "'gone' of package 'theirs' does not load (AttributeError: "),
    "number": ("theirs_mine:__name__", "method 'number' must be a class derived from "),
    "lwea": ("theirs_mine:Mine", "'lwea' of package 'theirs' is left out: there is another method of that name"),
    "Big": ("theirs_mine:Mine", "'Big' of package 'theirs' is left out: name must be lower-case letters"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_entry_point_that_cannot_be_had_only_warns(installed, name):
    place, sentence = BROKEN[name]
    installed({"mine": "theirs_mine:Mine", name: place}, theirs_mine=THEIRS, theirs_broken="1 / 0")
    with pytest.warns(UserWarning, match="entry point|method") as caught:
        found = ge.methods()
    assert sentence in str(caught[0].message)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert "mine" in found
    assert found["lwea"] is ge.LWEA
    if name in ("broken", "gone"):
        refused(lambda: ge.consensus(LABELS, 3, method=name), ImportError, sentence)


def test_packages_that_are_installed_twice_or_share_a_name(installed):
    installed({"mine": "theirs_mine:Mine"}, theirs_mine=THEIRS)
    installed({"mine": "theirs_mine:Mine"}, name="copy")
    assert "mine" in ge.methods()
    installed({"mine": "theirs_mine:Other"}, name="zother")
    with pytest.warns(UserWarning, match="there is another method of that name"):
        ge.methods()


def test_nothing_is_loaded_but_the_method_that_is_used():
    code = (
        "import sys, numpy, gpuens as ge\nbefore = {*sys.modules}\nassert 'gpuens.methods.base' not in before\n"
        "ge.consensus(numpy.eye(4, 2, dtype=int), 2, method='hbgf')\n"
        "print(*(name for name in sys.modules if name.startswith('gpuens.methods.')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == {
        f"gpuens.methods.{name}"
        for name in ("base", "fit", "forecast", "hbgf", "lopsided", "parameters", "parts", "registered")
    }


def test_summaries_are_read_without_importing_the_methods(monkeypatch):
    """`gpuens info` prints summaries without importing the methods or scikit-learn."""
    expected = {name: inspect.getdoc(kind).split("\n")[0] for name, kind in ge.methods().items()}
    assert REGISTRY.summaries() == expected
    monkeypatch.setattr("importlib.machinery.SourceFileLoader.get_source", lambda *_: None)
    assert REGISTRY.summaries() == expected
    code = "import sys; from gpuens.cli import main; main(['info']); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
