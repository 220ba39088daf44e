"""The code of README and of the pages runs, the site builds without a warning, and every public name is in it."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import gpuens as ge

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {path.stem: path for path in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))] if CODE.search(path.read_text())}
ELSEWHERE = "# needs "  # begins code that needs what a test has not


@pytest.fixture
def cards(monkeypatch):
    """docs/cards.py."""
    monkeypatch.syspath_prepend(str(DOCS))
    import cards

    return cards


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_runs_and_gives_what_its_comments_say(name, monkeypatch, tmp_path):
    blocks = [block for block in CODE.findall(PAGES[name].read_text()) if not block.startswith(ELSEWHERE)]
    for module, reason in {"anndata": "cells", "plotting": "pictures"}.items():
        if any(module in block for block in blocks):
            pytest.importorskip({"plotting": "matplotlib"}.get(module, module), reason=reason)
    if name == "cells":
        pytest.importorskip("igraph", reason="Leiden is igraph's")
    monkeypatch.setattr(ge.methods.__globals__["REGISTRY"], "_registered", {})  # which a page adds to
    monkeypatch.chdir(tmp_path)
    space = {"__name__": name}
    for block in blocks:
        exec(compile(block, name, "exec"), space)
        for line in block.splitlines():
            code, _, comment = line.partition("  # ")
            if comment.startswith("[") and "tolist()" in code:
                assert eval(code, space) == ast.literal_eval(comment), line


def test_a_method_has_a_card_with_what_it_is_made_of_and_what_it_costs(cards):
    words = cards.said()
    table = cards.table()
    for name, kind in ge.methods().items():
        text = cards.card(name, words[name], cards.measurements())
        assert f".. autoclass:: gpuens.{kind.__name__}" in text
        assert words[name]["paper"] in text
        assert f"[`{name}`]" in table
        assert re.search(r"^\| structured \| 1,000 \| [\d,]+ \| [\d.]+ \|", text, re.MULTILINE) or name == "auto", name


def test_links_of_the_pages_lead_to_files(cards):
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(((?:\.\./)?[\w./-]+\.(?:md|png|toml))(?:#[\w-]+)?\)", path.read_text()):
            assert (DOCS / target).exists() or target.startswith("generated/"), f"{path.name}: {target}"


def test_the_number_of_methods_is_the_registrys():
    for path in (ROOT / "README.md", DOCS / "index.md"):
        assert f"{len(ge.methods())} methods" in path.read_text(), path.name


@pytest.mark.thorough
def test_the_site_builds_and_has_every_public_name(tmp_path):
    pytest.importorskip("sphinx", reason="the site is built by Sphinx")
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [*sphinx, "-d", str(tmp_path / "trees"), str(DOCS), str(tmp_path / "site")], capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((tmp_path / "site" / "objects.inv").read_bytes(), uri="").data
    told = {name.split(".")[-1] for kind, items in inventory.items() if kind.startswith("py:") for name in items}
    names = {n for n in ge.__all__ if not n.startswith("_") and not isinstance(getattr(ge, n), ModuleType)}
    assert names - told == set()
