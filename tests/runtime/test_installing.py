"""The installation command in error messages installs an extra from the source that gpuens was installed from."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuens.runtime import installing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Return a function that simulates an installation of gpuens, with the installer's notes on its origin."""

    def as_noted(**noted):
        about = tmp_path / "gpuens-1.0.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gpuens\nVersion: 1.0\n")
        (about / "direct_url.json").write_text(json.dumps(noted) if noted else "")

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(installing, "CHECKOUT", tmp_path / "site-packages")
    return as_noted


def requirement(extra="io"):
    return shlex.split(installing.command(extra).partition(" install ")[2])


def test_in_a_checkout_its_path_is_named():
    assert requirement("io,plot") == ["-e", f"{ROOT}[io,plot]"]


def test_a_path_that_the_shell_would_split_is_quoted(monkeypatch, tmp_path):
    checkout = tmp_path / "it's mine"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    monkeypatch.setattr(installing, "CHECKOUT", checkout)
    assert requirement() == ["-e", f"{checkout}[io]"]


def test_an_installation_names_what_it_came_from(installed, tmp_path):
    wheel = tmp_path / "gpuens 1.whl"
    wheel.touch()
    installed(url=wheel.as_uri(), archive_info={})
    assert requirement() == [f"{wheel}[io]"]
    installed(url=(tmp_path / "deleted").as_uri(), dir_info={})
    assert requirement() == [".[io]", "in", "a", "checkout", "of", "gpuens"]
    installed(url="https://host/gpuens.git", vcs_info={"vcs": "git", "commit_id": "0"})
    assert requirement() == ["gpuens[io] @ git+https://host/gpuens.git"]
    installed(url="https://host/gpuens-1.whl", archive_info={})
    assert requirement() == ["gpuens[io] @ https://host/gpuens-1.whl"]
    installed()  # no notes on the origin: gpuens was installed from a package index
    assert requirement() == ["gpuens[io]"]


def test_the_pip_is_that_of_this_python(monkeypatch, tmp_path):
    for place in ("here", "elsewhere"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "pip").touch(0o755)
    python = str(tmp_path / "here" / "python")
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setitem(sys.modules, "pip", SimpleNamespace(__spec__="of pip"))
    for first, words in {"here": ["pip"], "elsewhere": [python, "-m", "pip"], "nowhere": [python, "-m", "pip"]}.items():
        monkeypatch.setenv("PATH", str(tmp_path / first))
        assert shlex.split(installing.command("io"))[: len(words) + 1] == [*words, "install"]
    monkeypatch.setitem(sys.modules, "pip", None)  # pip is missing, as in environments made by uv
    assert installing.command("io").startswith(f"uv pip install --python {shlex.quote(python)} ")


def test_pip_takes_the_command():
    """pip finds the checkout and its extra, without building or installing anything."""
    pytest.importorskip("pip", reason="pip reads the command")
    words = shlex.split(installing.command("io"))
    done = subprocess.run(
        [
            *words[: words.index("install") + 1],
            "--dry-run",
            "--no-deps",
            "--no-index",
            "--no-build-isolation",
            *words[-2:],
        ],
        capture_output=True,
        text=True,
    )
    assert f"Obtaining file://{ROOT}" in done.stdout, done.stderr


def test_no_sentence_names_an_index_that_has_no_gpuens():
    named = [path for path in (ROOT / "gpuens").rglob("*.py") if "install 'gpuens" in path.read_text()]
    assert named == [ROOT / "gpuens" / "runtime" / "installing.py"]
