"""Pages of a fit: the answer first, in one file that needs nothing else, whatever the method and the labels are."""

import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from conftest import structured_labels

from gpuens import choose_k, cli
from gpuens.methods import CSPA, EAC, EM, LWEA, SCEC
from gpuens.reduction import Sample
from gpuens.report import of_fit

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
pytest.importorskip("jinja2", reason="pages need jinja2")

LABELS = structured_labels(150, 6, 4, noise=0.1, missing=0.05, seed=2)[0]
FACTS = {"method": "some method", "parameters": {"theta": 0.4}, "cluster_sizes": [90, 60]}


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch):
    monkeypatch.setattr("gpuens.report.page.DPI", 30)


class Read(HTMLParser):
    """The parts of a page."""

    def __init__(self, page):
        super().__init__()
        self.opened, self.images, self.elsewhere, self.texts, self.tag = [], [], [], {}, None
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tag = tag
        if tag not in ("meta", "img"):
            self.opened.append(tag)
        if tag == "img":
            self.images.append(given)
        self.elsewhere += [value for name, value in given.items() if name in ("src", "href") and "data:" not in value]

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if self.opened and data.strip():
            self.texts.setdefault(self.opened[-1], []).append(data.strip())


def read(estimator, *given, **more):
    page = of_fit("a <page> & its title", estimator, FACTS, *given, **more)
    found = Read(page)
    assert found.opened == found.elsewhere == []
    assert len(page) < 3e6
    assert all(len(image["alt"]) > 10 for image in found.images)
    assert found.texts["h1"] == ["a <page> & its title"]
    assert "{'theta'" not in page.decode()
    return found


TREE, SURE, BASE = "How many clusters?", "How sure is it?", "The base clusterings"
DOUBT, MADE, FIRST = "The least certain objects", "How it was made", "The clusters"
FITTED = {
    "linkage": (LWEA(4), LABELS, [FIRST, SURE, TREE, BASE, DOUBT, MADE]),
    "one cluster": (EAC(1), LABELS, [FIRST, SURE, TREE, BASE, MADE]),
    "two objects": (EAC(2), [[0, 1], [0, 1]], [FIRST, SURE, TREE, BASE, MADE]),
    "no tree": (CSPA(4), LABELS, [FIRST, SURE, BASE, DOUBT, MADE]),
    "memberships": (EM(4), LABELS, [FIRST, SURE, BASE, DOUBT, MADE]),
    "correspondences": (SCEC(4), LABELS, [FIRST, SURE, BASE, DOUBT, MADE]),
    "soft": (SCEC(2), [np.eye(2)[np.arange(30) % 2], np.eye(3)[np.arange(30) % 3]], [FIRST, BASE, MADE]),
    "a sample": (LWEA(4, reduction=Sample(40)), LABELS, [FIRST, SURE, TREE, BASE, DOUBT, MADE]),
    "one clustering": (EAC(4), [np.arange(60) % 4], [FIRST, SURE, TREE, DOUBT, MADE]),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.filterwarnings("ignore")
def test_every_fit_has_a_page(name):
    est, labels, sections = FITTED[name]
    assert read(est.fit(labels)).texts["h2"] == sections


def test_what_it_says():
    est = LWEA(4).fit(LABELS)
    evidence, sizes = est.evidence(), np.bincount(est.labels_)
    found = read(est, [f"patient {i}" for i in range(150)])
    assert (
        f"LWEA found 4 clusters of 150 objects; the largest has {max(sizes)}, the smallest {min(sizes)}."
        in found.texts["p"]
    )
    worst = int(evidence.objects.margin.argmin())
    cells = found.texts["td"]
    assert f"patient {worst}" in cells
    for cluster in np.argsort(-sizes):
        row = [str(cluster), str(sizes[cluster]), f"{evidence.clusters.consensus[cluster]:.4g}"]
        assert any(cells[i : i + 3] == row for i in range(len(cells)))
    assert "theta: 0.4" in cells
    assert len(found.images) == 11


def test_many_pairs_are_drawn(monkeypatch):
    monkeypatch.setattr("gpuens.report.fit.EXACT_COMPARISONS", 1)
    monkeypatch.setattr("gpuens.report.fit.DRAWN", 1000)
    notes = read(LWEA(4).fit(LABELS)).texts["p"]
    assert any("1,000 drawn ones" in note for note in notes)


def test_a_choice_has_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    assert cli.main(["choose", "labels.npy", "--ks", "2:6", "--report", "page.html"]) == 0
    assert capsys.readouterr().out.endswith("written: page.html\n")
    page = Path("page.html").read_bytes()
    found, choice = Read(page), choose_k(LABELS, ks=range(2, 7))
    assert found.texts["p"][0] == f"{choice.suggested} clusters are suggested."
    assert found.texts["h2"] == ["Why?", "Where the objects go", "All criteria"]
    assert choice.reasons[choice.suggested] in found.texts["td"]
    assert f"{choice.table['lifetime'][3]:,.4g}" in found.texts["td"]
    assert cli.main(["choose", "labels.npy", "--report", "page.txt"]) == 2


def test_a_run_writes_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report", "-o", "out.csv"]) == 0
    assert "report: out.csv.html" in capsys.readouterr().out
    found = Read(Path("out.csv.html").read_bytes())
    assert found.texts["h1"] == ["Consensus of labels.npy"]
    assert "lwea" in found.texts["td"]


def test_a_run_in_chunks_has_a_page_too(tmp_path, monkeypatch):
    """Without what needs the labels in memory."""
    pytest.importorskip("dask.array")
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    command = "run labels.npy -k 4 --scheduler threads --chunk-rows 50 --report -o out.npy --quiet"
    assert cli.main(command.split()) == 0
    found = Read(Path("out.npy.html").read_bytes())
    assert found.texts["h2"] == [FIRST, TREE, MADE]
    assert found.texts["p"] == ["LWEA found 4 clusters."]
    assert str(np.bincount(np.load("out.npy"))[0]) in found.texts["td"]


def test_without_jinja_one_sentence_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    monkeypatch.setattr("gpuens.report.page.find_spec", lambda name: None if name == "jinja2" else name)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report"]) == 2
    assert "reports need jinja2, which is not installed: pip install 'gpuens[plot]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [tmp_path / "labels.npy"]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_fits_the_window(width, tmp_path):
    """In a browser, and without a word on the console; pictures shrink, and wide tables scroll by themselves."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    page = of_fit("Consensus", LWEA(4).fit(LABELS), FACTS | {"a_long_word": "x" * 300}).decode()
    (tmp_path / "framed.html").write_text(
        f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{escape(page)}" onload="document.title = '
        f'this.contentDocument.documentElement.scrollWidth"></iframe>'
    )
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}",
        "--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom", f"file://{tmp_path}/framed.html",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert int(re.search(r"<title>(\d+)</title>", done.stdout)[1]) <= width
    assert "CONSOLE" not in done.stderr
