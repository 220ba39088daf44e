"""Pages of a fit: the answer first, in one file that needs nothing else, whatever the method and the labels are."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from conftest import structured_labels

from gpuens import choose_k, cli, installing
from gpuens.methods import CSPA, EAC, EM, LWEA, LWGP, SCEC
from gpuens.reduction import Sample
from gpuens.report import of_choice, of_fit

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
SURE_OF_EACH = "How sure are the clusterings of each number?"
DOUBT, MADE, FIRST = "The least certain objects", "How it was made", "The clusters"
FITTED = {
    "linkage": (LWEA(4), LABELS, [FIRST, SURE, TREE, BASE, DOUBT, MADE]),
    "one cluster": (EAC(1), LABELS, [FIRST, SURE, TREE, BASE, MADE]),
    "one object": (EAC(1), [np.array([0]), np.array([0])], [FIRST, TREE, MADE]),
    "two objects": (EAC(2), [[0, 1], [0, 1]], [FIRST, SURE, TREE, BASE, MADE]),
    "no tree": (CSPA(4), LABELS, [FIRST, SURE, BASE, DOUBT, MADE]),
    "memberships": (EM(4), LABELS, [FIRST, SURE, BASE, DOUBT, MADE]),
    "correspondences": (SCEC(4), LABELS, [FIRST, SURE, BASE, DOUBT, MADE]),
    "soft": (SCEC(2), [np.eye(2)[np.arange(30) % 2], np.eye(3)[np.arange(30) % 3]], [FIRST, BASE, MADE]),
    "a sample": (LWEA(4, reduction=Sample(40)), LABELS, [FIRST, SURE, TREE, BASE, DOUBT, MADE]),
    "one clustering": (EAC(4), [np.arange(60) % 4], [FIRST, SURE, TREE, DOUBT, MADE]),
}


@pytest.mark.thorough
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
    assert not any("nothing to find" in text for text in found.texts["p"])


def test_no_confidence_of_single_objects():
    texts = read(EAC(3).fit([[0, 1, 2], [0, 1, 2]])).texts["p"]
    assert not any("confidence is" in text for text in texts)


def test_labels_that_may_agree_by_chance_alone():
    labels = np.random.default_rng(0).integers(0, 3, (50, 6))
    est = CSPA(3).fit(labels)
    said = f"But {est.evidence().beyond_chance}: there may be nothing to find in them."
    assert said in read(est).texts["p"]
    found = Read(of_choice(choose_k(labels, ks=[2, 3]), "title"))
    assert any("independent clusterings might do as well" in text for text in found.texts["p"])


@pytest.mark.filterwarnings("ignore:n_clusters is not given")
def test_a_number_that_nobody_asked_for_is_said_and_its_doubt():
    assert "How many was not asked: it is what the clusterings support best." in read(LWEA().fit(LABELS)).texts["p"]
    labels = np.random.default_rng(0).integers(0, 6, (200, 8))
    est = LWGP().fit(labels)
    said = f"How many was not asked: it is what the clusterings support best, but {est.spectrum_.doubt()}."
    assert said in read(est).texts["p"]
    choice = choose_k(labels, ks=range(2, 8))
    assert f"The number is in doubt: {choice.doubt}." in Read(of_choice(choice, "title")).texts["p"]


def test_many_pairs_are_drawn(monkeypatch):
    monkeypatch.setattr("gpuens.report.fit.EXACT_COMPARISONS", 1)
    monkeypatch.setattr("gpuens.report.fit.DRAWN", 1000)
    notes = read(LWEA(4).fit(LABELS)).texts["p"]
    assert any("1,000 drawn ones" in note for note in notes)


def test_a_choice_has_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    monkeypatch.setattr("gpuens.cli.choose.MANY", 100)
    monkeypatch.setattr("gpuens.choosing.foresee", lambda **given: 40.0)
    assert cli.main(["choose", "labels.npy", "--ks", "2:6", "--report", "page.html", "--resume", "kept"]) == 0
    said = capsys.readouterr()
    assert said.err == "foreseen: 40 s\n"
    assert "by single criteria: support 4, gap 4, drop 4, ratio 4, mean " in said.out
    assert said.out.endswith("written: page.html\n")
    assert {path.name for path in Path("kept").iterdir()} == {
        "work.json",
        "support_20.npz",
        *(f"k_{k}.npz" for k in range(2, 7)),
    }
    page = Path("page.html").read_bytes()
    found, choice = Read(page), choose_k(LABELS, ks=range(2, 7))
    assert found.texts["p"][0] == f"{choice.suggested} clusters are suggested."
    assert found.texts["p"][1] == "The consensus of each number is that of lwgp."
    assert found.texts["h2"] == ["Why?", SURE_OF_EACH, "Where the objects go", "All criteria"]
    assert choice.reasons[choice.suggested] in found.texts["td"]
    assert f"{choice.table['anmi'][3]:,.4g}" in found.texts["td"]
    assert cli.main(["choose", "labels.npy", "--report", "page.txt"]) == 2


def test_a_run_writes_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report", "-o", "out.csv"]) == 0
    assert "report: out.csv.html" in capsys.readouterr().out
    found = Read(Path("out.csv.html").read_bytes())
    assert found.texts["h1"] == ["Consensus of labels.npy"]
    assert "lwgp" in found.texts["td"]
    record = json.loads(Path("out.csv.json").read_text())
    assert record["report"] == "out.csv.html"
    assert set(record["seconds"]) == {"start", "read", "fit", "write", "report", "other", "total"}


def test_labels_are_there_without_their_page_but_never_beside_that_of_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    monkeypatch.setattr("gpuens.report.of_fit", lambda *given: 1 / 0)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report"]) == 1
    labels = ["labels.npy", "labels.npy.lwgp.npy", "labels.npy.lwgp.npy.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == labels
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [*labels[:2], "labels.npy.lwgp.npy.html", labels[2]]
    monkeypatch.setattr("gpuens.report.of_fit", lambda *given: 1 / 0)
    assert cli.main(["run", "labels.npy", "-k", "5", "--report"]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == labels


def test_a_run_in_chunks_has_a_page_too(tmp_path, monkeypatch):
    """Without what needs the labels in memory."""
    pytest.importorskip("dask.array")
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    command = "run labels.npy --method lwea -k 4 --scheduler threads --chunk-rows 50 --report -o out.npy --quiet"
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
    said = f"reports need jinja2, which is not installed: {installing.command('plot')}"
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [tmp_path / "labels.npy"]


EXECUTE = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in enumerate(ends, 3):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A headless Chromium, told what to do through a pipe by Chrome's own protocol."""

    def __init__(self, folder):
        name = shutil.which("chromium") or shutil.which("google-chrome")
        if name is None:
            pytest.skip("no Chromium is installed")
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", EXECUTE, str(theirs_in), str(theirs_out), name, *options, "--remote-debugging-pipe"],
            pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.to, self.of = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.number, self.session, self.events = 0, {}, []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self(f"{domain}.enable")

    def read(self):
        letters = []
        while (letter := self.of.read(1)) != b"\0":
            assert letter, "the browser has ended"
            letters.append(letter)
        return json.loads(b"".join(letters))

    def __call__(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **self.session}
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while (answer := self.read()).get("id") != self.number:
            self.events.append(answer["method"])
        assert "error" not in answer, answer
        return answer["result"]

    def evaluate(self, expression):
        return self("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, path):
        self("Page.navigate", url=f"file://{path}")
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.read()["method"])

    def tab(self):
        for kind in ("rawKeyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def close(self):
        self.process.kill()
        self.process.wait(60)
        self.to.close()
        self.of.close()


@pytest.fixture
def browser(tmp_path):
    shown = Browser(tmp_path)
    yield shown
    shown.close()


WIDER = "[...document.querySelectorAll('html, body *')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth)"


def test_a_page_in_a_browser(tmp_path, browser):
    """It fits the window, the keyboard reaches it with a visible focus, pictures have words, and it prints whole."""
    wide = {f"option {i}": "x" * 300 for i in range(60)}
    (tmp_path / "page.html").write_bytes(of_fit("Consensus", LWEA(4).fit(LABELS), FACTS | wide))
    browser.open(tmp_path / "page.html")
    for width in (390, 1280):
        browser("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert (
        browser.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth || i.alt.length < 10)") == []
    )

    regions = browser.evaluate("document.querySelectorAll('.table').length")
    assert regions == 3
    for region in range(regions):
        browser.tab()
        assert browser.evaluate("[...document.querySelectorAll('.table')].indexOf(document.activeElement)") == region
        assert browser.evaluate("document.activeElement.getAttribute('aria-label').length") > 5
        outline = browser.evaluate("(s => [s.outlineStyle, s.outlineWidth])(getComputedStyle(document.activeElement))")
        assert outline[0] != "none"
        assert float(outline[1].removesuffix("px")) >= 1

    pdf = base64.b64decode(browser("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    assert pdf[:5] == b"%PDF-"
    assert 2 < len(re.findall(rb"/Type\s*/Page\b", pdf)) < 30
    assert len(pdf) < 3e6
    browser("Emulation.setEmulatedMedia", media="print")
    browser("Emulation.setDeviceMetricsOverride", width=718, height=1047, deviceScaleFactor=1, mobile=False)  # A4
    assert browser.evaluate(f"{WIDER}.map(e => e.tagName + e.className)") == []
    assert {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}.isdisjoint(browser.events)


def test_a_page_needs_no_display_and_leaves_no_figure(tmp_path):
    """Not even pyplot is loaded, which would look for a display."""
    code = (
        "import sys, numpy as np\nfrom gpuens import cli\n"
        "np.save('l.npy', np.repeat(np.arange(3), 10)[:, None] + np.zeros((1, 4), int))\n"
        "assert cli.main(['run', 'l.npy', '-k', '3', '--report', '--quiet']) == 0\n"
        "assert cli.main(['choose', 'l.npy', '--report', 'c.html', '--quiet', '--ks', '2:3']) == 0\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    env = {**os.environ, "MPLBACKEND": "tkagg", "DISPLAY": ""}
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
