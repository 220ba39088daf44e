"""Pages of a fit, for every method and any labels: each is a single file that begins with the answer."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import structured_labels

from gpuens import Ensemble, Graph, Spatial, __version__, choose_k, cli, compare
from gpuens.evidence import Evidence
from gpuens.methods import CSPA, EAC, EM, LWEA, LWGP, SCEC
from gpuens.reduction import Sample
from gpuens.report import (
    clusterings,
    drawing,
    front,
    glossary,
    numbers,
    page,
    render_choice,
    render_comparison,
    render_fit,
)
from gpuens.runtime import installing
from gpuens.workflows.comparison import Comparison

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
pytest.importorskip("jinja2", reason="pages need jinja2")

LABELS, TRUTH = structured_labels(150, 6, 4, noise=0.1, missing=0.05, seed=2)
RNG = np.random.default_rng(0)
# Three clear clusters, a loose one that each clustering divides at random, and five objects between the clusters
CLEAR = np.where(TRUTH == 0, RNG.integers(4, 6, (6, 150)), TRUTH).T
CLEAR[:5] = RNG.integers(1, 4, (5, 6))
CLEAR[5:15, 0] = -1
FACTS = {"method": "some method", "parameters": {"theta": 0.4}, "cluster_sizes": [90, 60]}


@pytest.fixture(autouse=True)
def small_pictures(sizes):
    sizes("report.drawing", SHARPNESS=0.3)


class Read(HTMLParser):
    """A parser that collects the parts of a page."""

    def __init__(self, page):
        super().__init__()
        self.opened, self.images, self.elsewhere, self.texts, self.tag = [], [], [], {}, None
        # lists of links to places within the page, of these places, and of the texts of the paragraphs
        self.links, self.places, self.said = [], [], []
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tag = tag
        if tag != "meta":
            self.opened.append(tag)
        if given.get("role") == "img":
            self.images.append(given | {"folded": "details" in self.opened})
        if tag in ("p", "li"):
            self.said.append("")
        self.places += [given["id"]] if given.get("id", "").startswith("word-") else []
        targets = [value for name, value in given.items() if name in ("src", "href") and "data:" not in value]
        self.links += [(value[1:], given["title"]) for value in targets if value.startswith("#")]
        self.elsewhere += [value for value in targets if not value.startswith("#")]

    def handle_startendtag(self, tag, attributes):
        """Leave out empty elements, which are parts of pictures; they show nothing from elsewhere."""
        places = [value for name, value in attributes if name in ("href", "xlink:href")]
        self.elsewhere += [value for value in places if not value.startswith(("#", "data:"))]

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if {"p", "li"} & {*self.opened}:
            self.said[-1] += data.replace("\N{NO-BREAK SPACE}", " ")
        if self.opened and data.strip():
            self.texts.setdefault(self.opened[-1], []).append(data.strip())


def read(estimator, *given, **more):
    page = render_fit("a <page> & its title", estimator, FACTS, *given, **more)
    found = Read(page)
    assert found.opened == found.elsewhere == []
    assert len(page) < 3e6
    assert all(len(image["aria-label"]) > 10 for image in found.images)
    assert found.texts["h1"] == ["a <page> & its title"]
    assert "{'theta'" not in page.decode()
    # every link has its target, and every target has a link
    assert {place for place, _ in found.links} == {*found.places}
    assert all(len(hint) > 20 for _, hint in found.links)
    return found


TREE, SURE, BASE = "How many clusters?", "How certain is it?", "The base clusterings"
CONSISTENT_AT_EACH = "How consistent are the clusterings at each number?"
DOUBT, MADE, FIRST, WORDS = "The least certain objects", "How it was made", "The clusters", "Words"
FITTED = {
    "linkage": (LWEA(4), LABELS, [FIRST, SURE, DOUBT, TREE, BASE, MADE, WORDS]),
    "one cluster": (EAC(1), LABELS, [FIRST, SURE, TREE, BASE, MADE, WORDS]),
    "one object": (EAC(1), [np.array([0]), np.array([0])], [FIRST, TREE, MADE, WORDS]),
    "two objects": (EAC(2), [[0, 1], [0, 1]], [FIRST, SURE, TREE, BASE, MADE, WORDS]),
    "no tree": (CSPA(4), LABELS, ["Doubt", FIRST, SURE, DOUBT, BASE, MADE, WORDS]),
    "memberships": (EM(4), LABELS, [FIRST, SURE, DOUBT, BASE, MADE, WORDS]),
    "correspondences": (SCEC(4), LABELS, [FIRST, SURE, DOUBT, BASE, MADE, WORDS]),
    "soft": (SCEC(2), [np.eye(2)[np.arange(30) % 2], np.eye(3)[np.arange(30) % 3]], [FIRST, BASE, MADE, WORDS]),
    "a sample": (LWEA(4, reduction=Sample(40)), LABELS, [FIRST, SURE, DOUBT, TREE, BASE, MADE, WORDS]),
    "one clustering": (EAC(4), [np.arange(60) % 4], [FIRST, SURE, DOUBT, TREE, BASE, MADE, WORDS]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FITTED)
@pytest.mark.filterwarnings("ignore")
def test_every_fit_has_a_page(name):
    est, labels, sections = FITTED[name]
    assert read(est.fit(labels)).texts["h2"] == sections


@pytest.mark.usefixtures("unpainted")
def test_what_it_says():
    est = LWEA(4).fit(CLEAR)
    evidence, sizes = est.evidence(), np.bincount(est.labels_)
    objects, labelled = evidence.objects, CLEAR >= 0
    in_doubt = (objects.margin <= 0) | (objects.certainty < 0.5)
    clear = evidence.clusters.consensus[est.labels_] >= 0.7
    assert 0.5 < clear.mean() < 1
    sure = int((~in_doubt & clear & (objects.certainty >= 0.7)).sum())
    numbers = sure, int(150 - sure - in_doubt.sum()), int(in_doubt.sum())
    names = [f"patient {i}" for i in range(150)]
    found = read(est, names)
    byline, first, second, third = found.said[:4]
    largest, smallest, anmi = max(sizes), min(sizes), evidence.agreement.anmi
    assert byline == "Method some method (locally weighted evidence accumulation)"
    assert first == (
        f"This result combines 6 base clusterings of 150 objects into 4 clusters, the largest of {largest} "
        f"({100 * largest / 150:.0f} %), the smallest of {smallest} ({100 * smallest / 150:.0f} %). It agrees with the "
        f"base clusterings at {anmi:.2f} on average (ANMI; 0: not at all, 1: the same)."
    )
    told = [re.search(rf"(\d+|none)[^,]* {word}", second)[1] for word in ("are sure", "fairly sure", "in doubt")]
    assert [0 if n == "none" else int(n) for n in told] == list(numbers)
    worst = np.argsort(objects.certainty)[:3]
    missing = labelled.size - int(labelled.sum())
    assert third.startswith(f"{100 * missing / labelled.size:.1f} % of the labels are missing ({missing} of 900)")
    cells = found.texts["td"]
    assert names[worst[0]] in cells
    for cluster in np.argsort(-sizes):
        row = [str(cluster), str(sizes[cluster]), f"{evidence.clusters.consensus[cluster]:.3f}"]
        assert any(cells[i : i + 3] == row for i in range(len(cells)))
    assert "theta: 0.4" in cells
    assert len(found.images) == 12
    assert not any("nothing to find" in text for text in found.said)


@pytest.mark.usefixtures("unpainted")
def test_three_pictures_of_one_size_come_first_and_the_others_are_folded():
    found = read(LWEA(4).fit(LABELS))
    assert [image["folded"] for image in found.images] == [False] * 3 + [True] * 9
    assert len({(image["width"], image["height"]) for image in found.images[:3]}) == 1
    # A picture is not wider than a phone's screen without margins; so phones do not shrink pictures and their text.
    assert int(found.images[0]["width"]) <= 390 - 2 * 16
    assert drawing.TEXT * drawing.INCH / 72 > 11


def test_a_fit_with_neighbours_begins_with_maps_and_says_domains_not_types():
    rng, field = np.random.default_rng(0), np.repeat([[0, 0, 0, 1, 1, 1]], 10, axis=0).repeat(2, axis=1).ravel()
    members = [np.where(rng.random(120) < 0.2, rng.integers(2, size=120), field) for _ in range(4)]
    labels = Ensemble([*members, rng.integers(2, size=120)], names=["a", "b", "c", "d", "types"])
    est = Spatial(2).fit(labels, graph=Graph.grid((10, 12)))
    found = read(est, shape=(10, 12))
    first = [image["aria-label"] for image in found.images if not image["folded"]]
    assert [alt.partition(":")[0] for alt in first] == [
        "Where the clusters are", "Uncertain even with neighbours", "How many objects each cluster has",
        "Certainty of their objects", "How often pairs are put together, in %",
    ]  # fmt: skip
    (said,) = [text for text in found.said if text.startswith("The clusters are domains: ")]
    assert f"a mean coherence of {est.joins_.coherence.mean():.2f} among neighbours; 1 of 5 hardly know" in said
    assert f"count as {est.effective_members_:.1f} independent ones" in said
    assert "The neighbours" in found.texts["h2"]
    assert "types" in found.texts["td"]
    plain = LWEA(4).fit(LABELS)
    pictures = front.pictures_of_places(plain, coordinates=RNG.random((150, 2)))
    assert [picture.says for picture in pictures] == ["Where the clusters are"]


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("k", [1, 3, 20, 60])
def test_pictures_of_the_answer_hold_all_clusters(k):
    """Bars begin at zero and are as long as their numbers; clusters differ in colour; all text is large enough."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    sizes = np.arange(k, 0, -1) * 3
    evidence = Evidence([np.repeat(np.arange(k), sizes), np.arange(sizes.sum()) % 2], np.repeat(np.arange(k), sizes))
    pictures = front.pictures_of_evidence(evidence)
    assert len(pictures) == (1 if k == 1 else 3)
    for picture in pictures:
        with rc_context({"font.size": drawing.TEXT}):
            figure = Figure(figsize=page.FRONT, layout="constrained")
            ax = picture.draw(ax=figure.subplots())
            figure.draw_without_rendering()
        texts = [text for text in figure.findobj(lambda thing: hasattr(thing, "get_fontsize")) if text.get_text()]
        assert all(text.get_fontsize() >= 8.25 for text in texts)  # 8.25 points are 11 pixels
        for text in texts:
            box = text.get_window_extent()
            assert box.x0 >= -1, text
            assert box.x1 <= figure.bbox.width + 1, (text, box)
        if "How many" in picture.says:
            drawn = [bar.get_width() for bar in ax.patches]
            assert drawn == (sizes.tolist() if k <= 20 else [*sizes[:19].tolist(), 0])
            assert ax.get_xlim()[0] == 0
            colors = [bar.get_facecolor() for bar in ax.patches]
            assert len({*colors}) == len(colors)
            assert (k <= 20) != any("41 others" in text.get_text() for text in texts)


def test_shares_never_say_all_or_nothing_of_less():
    said = [numbers.percent(share) for share in (0, 1e-6, 0.004, 0.0333, 0.5, 0.996, 1 - 1e-6, 1)]
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in said] == [
        *("0 %", "< 0.1 %", "0.4 %", "3.3 %", "50 %", "99.6 %", "> 99.9 %", "100 %")
    ]


@pytest.mark.usefixtures("unpainted")
def test_what_is_missing_and_what_was_warned_of_is_said():
    labels = LABELS.copy()
    labels[:60, 2] = -1
    est = LWEA(4).fit(Ensemble(labels, names=list("abcdef")))
    of_reading = "path 'labels.csv': 'truth' (by its name) is left out, as it is unlike the clusterings; to keep …"
    warned = [
        "one of 4 clusters is <small>.",
        of_reading,
        "n_clusters is not given, and the chosen number 4 is in doubt: …",
    ]
    page = render_fit("title", est, FACTS | {"n_unlabelled": 7, "warnings": warned})
    found = Read(page)
    assert any(
        re.search(r"of clustering c 4\d %\. 7 objects without any label were left out\.$", p) for p in found.said
    )
    assert "One of 4 clusters is <small>." in found.said
    assert of_reading in found.texts["td"]  # this note is in the table of settings, not among the doubts
    assert not any("is left out" in text for text in found.said)
    assert not any("n_clusters is not given" in text for text in found.said + found.texts["td"])
    single = Read(render_fit("title", EAC(2).fit([[0, 1], [0, 1]]), {}))
    assert not any("missing" in text for text in single.said)


@pytest.mark.usefixtures("unpainted")
def test_nobody_is_sure_of_clusters_that_few_clusterings_put_together():
    """Twenty clusterings of six parts of three clusters: nothing contradicts the clusters, but C within them is 1/2."""
    halves = np.arange(240) % 2
    labels = [2 * (np.arange(240) // 80) + np.random.default_rng(m).permutation(halves) for m in range(20)]
    est = LWEA(3).fit(labels)
    evidence = est.evidence()
    certainty, consensus = evidence.objects.certainty, evidence.clusters.consensus.mean()
    assert certainty.min() > 0.7
    assert 0.45 < consensus < 0.55
    found = read(est)
    low, high = np.quantile(certainty, [0.25, 0.75])
    assert found.said[2] == (
        f"Only {100 * consensus:.0f} % of the base clusterings put two objects of a cluster together on average. Use "
        f"certainty to order the objects, not as the chance that a label is right: "
        f"half of them have a certainty from {low:.2f} to {high:.2f}, and none "
        "are in doubt."
    )
    assert not re.search(r"\bsure\b", " ".join(text for texts in found.texts.values() for text in texts))


@pytest.mark.usefixtures("unpainted")
def test_objects_of_one_loose_cluster_are_not_sure():
    """The clusterings split cluster 1 at random; the others keep together, and so does the mean of C."""
    labels = [np.r_[np.zeros(200), 1 + np.random.default_rng(m).integers(0, 2, 60)].astype(int) for m in range(20)]
    est = LWEA(2).fit(labels)
    evidence = est.evidence()
    assert evidence.clusters.consensus.round(1).tolist() == [1.0, 0.5]
    assert evidence.objects.certainty.min() > 0.7
    assert read(est).said[2].startswith("Of the objects 200 (77 %) are sure, 60 (23 %) fairly sure, and none in doubt")


@pytest.mark.filterwarnings("ignore:n_clusters is not given")
@pytest.mark.usefixtures("unpainted")
def test_nobody_is_sure_if_the_number_of_clusters_is_in_doubt(monkeypatch):
    """The same fit has sure objects if its number is given."""
    assert " are sure" in read(LWGP(4).fit(CLEAR)).said[2]
    est = LWGP().fit(CLEAR)
    assert " are sure" in read(est).said[2]
    monkeypatch.setattr(type(est.suggestion_), "doubt", lambda self: "4 clusters suit them about as well")
    found = read(est)
    assert found.said[3].startswith("Use certainty to order the objects, not as the chance that a label is right: ")
    assert "The number of clusters is in doubt: 4 clusters suit them about as well." in found.said
    assert not re.search(r"\bsure\b", " ".join(text for texts in found.texts.values() for text in texts))


def test_the_picture_of_certainty_has_its_quantiles():
    from matplotlib.figure import Figure

    evidence = LWEA(4).fit(LABELS).evidence()
    ax = front.certainty(evidence, ax=Figure().subplots())
    for cluster, bar in enumerate(ax.patches):
        values = np.sort(evidence.objects.certainty[evidence.labels == cluster])
        lower, upper = values[np.rint((len(values) - 1) * np.array([0.25, 0.75])).astype(int)]
        np.testing.assert_allclose([bar.get_x(), bar.get_x() + bar.get_width()], [lower, upper])
    assert ax.get_xlim() == (0, 1)


def test_the_glossary_has_the_limits_of_sure_and_doubtful_objects():
    assert "certainty of 0.7 or more, in a cluster with a consensus of 0.7 or more" in glossary.WORDS["sure"]
    assert "certainty is below 0.5" in glossary.WORDS["in doubt"]


@pytest.mark.usefixtures("unpainted")
def test_no_confidence_of_single_objects():
    texts = read(EAC(3).fit([[0, 1, 2], [0, 1, 2]])).said
    assert not any("are sure" in text for text in texts)


@pytest.mark.usefixtures("unpainted")
def test_labels_that_may_agree_by_chance_alone():
    labels = np.random.default_rng(0).integers(0, 3, (50, 6))
    est = CSPA(3).fit(labels)
    chance = str(est.evidence().beyond_chance).removeprefix("t")
    assert f"T{chance}: there may be nothing to find in them." in read(est).said
    found = Read(render_choice(choose_k(labels, ks=[2, 3]), "title"))
    assert any("independent clusterings might do as well" in text for text in found.said)


@pytest.mark.filterwarnings("ignore:n_clusters is not given")
@pytest.mark.usefixtures("unpainted")
def test_a_number_that_nobody_asked_for_is_said_and_its_doubt():
    est = LWEA().fit(LABELS)
    assert f"Reason for this number: {est.suggestion_.reason()}." in read(est).said[1]
    assert "Reason" not in read(LWEA(4).fit(LABELS)).said[1]
    labels = np.random.default_rng(0).integers(0, 6, (200, 8))
    est = LWGP().fit(labels)
    assert f"The number of clusters is in doubt: {est.suggestion_.doubt()}." in read(est).said
    choice = choose_k(labels, ks=range(2, 8))
    assert f"The number is in doubt: {choice.doubt}." in Read(render_choice(choice, "title")).said


@pytest.mark.usefixtures("unpainted")
def test_clusterings_of_two_stories_are_told_apart_unless_clusters_are_very_many(monkeypatch):
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 3, 120), rng.integers(0, 3, 120)
    labels = [np.where(rng.random(120) < 0.1, rng.integers(0, 3, 120), one if m < 8 else two) for m in range(13)]
    page = Read(render_fit("title", EAC(3).fit(labels), {}))
    text = (
        r"The base clusterings form 2 modes, of 8 and 5, with an ARI of \S+ between them; the result is a compromise."
    )
    assert any(re.fullmatch(text, paragraph) for paragraph in page.said)
    assert "form 2 modes" not in render_fit("title", EAC(3).fit(labels[:8]), {}).decode()
    monkeypatch.setattr("gpuens.report.clusterings.MODES_CELLS", 39 * 3 - 1)
    assert "form 2 modes" not in render_fit("title", EAC(3).fit(labels), {}).decode()


@pytest.mark.usefixtures("unpainted")
def test_many_pairs_are_drawn(sizes):
    sizes("report.fit", EXACT_COMPARISONS=1)
    sizes("report.fit", SAMPLED_PAIRS=1000)
    notes = read(LWEA(4).fit(LABELS)).texts["p"]
    assert any("1,000 drawn ones" in note for note in notes)


def test_a_choice_has_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    assert cli.main(["choose", "labels.npy", "--ks", "2:6", "--report", "page.html", "--resume", "kept"]) == 0
    said = capsys.readouterr()
    assert "by single criteria: mean silhouette 4\n" in said.out
    assert said.out.endswith("written: page.html\n")
    assert {path.name for path in Path("kept").iterdir()} == {
        "work.json",
        "suggestion_6.npz",
        *(f"k_{k}.npz" for k in range(2, 7)),
    }
    page = Path("page.html").read_bytes()
    found, choice = Read(page), choose_k(LABELS, ks=range(2, 7))
    assert re.fullmatch(rf"Consensus by lwgp · \d{{4}}-.+ · gpuens {re.escape(__version__)}", found.said[0])
    assert found.said[1] == f"{choice.suggested} clusters are suggested: {choice.reasons[choice.suggested]}."
    assert found.texts["h2"] == ["Other criteria", CONSISTENT_AT_EACH, "Where the objects go", "All criteria", "Words"]
    assert [image["folded"] for image in found.images][:4] == [False] * 3 + [True]
    captions = [caption for caption in found.texts["figcaption"] if re.match(r"\d", caption)]
    assert captions == [f"{k} clusters{', suggested' * (k == choice.suggested)}" for k in range(2, 7)]
    assert f"{choice.table['anmi'][3]:.3f}" in found.texts["td"]
    assert cli.main(["choose", "labels.npy", "--report", "page.txt"]) == 2


def test_a_comparison_has_a_page(sizes):
    found = compare(LABELS, 4, methods=["lwea", "lwgp", "kcc"], truth=TRUTH, repeat=2)
    page = Read(render_comparison(found, "title"))
    byline, advice = page.said[:2]
    assert byline.startswith("Ranked by ANMI · ")
    pattern = r"(\w+) represents the clusterings best, (and|\w+) is nearest to the truth\. (.*)"
    best, nearest, caution = re.fullmatch(pattern, advice).groups()
    by_ari = max(found.rows, key=lambda row: row["ari"])["method"]
    assert (best, nearest) == (found.best, "and" if by_ari == found.best else by_ari)
    assert caution == "With 2 seeds, small differences mean little."
    note = next(text for text in page.said if text.startswith(found.answer[0]))
    assert note.startswith(" ".join([*found.answer, *found.answer_by_truth]))
    assert [image["folded"] for image in page.images] == [False, False, False, True, True]
    assert page.texts["h2"] == ["The methods", "Which agree?", "Words"]
    sizes("report.comparison", FEW_RUNS=2)
    assert Read(render_comparison(found, "title")).said[1] == advice.removesuffix(f" {caution}")
    methods = [dict(found.rows[0], method=f"m{i}") for i in range(40)]
    copies = Comparison(methods, {row["method"]: TRUTH for row in methods}, {"c": "why"})
    page = Read(render_comparison(copies, "title"))
    assert page.said[1].endswith("Each method ran once, so that small differences mean little.")
    assert any("m1 has the same, and 39 of the others have at most 0.01 less" in text for text in page.said)
    assert page.texts["h2"] == ["The methods", "Which agree?", "Left out", "Words"]
    assert page.texts["td"].count("m39") == 2  # all methods are in the table, and in that of the truth


def test_a_run_writes_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report", "page.html", "-o", "out.csv"]) == 0
    assert "report: page.html" in capsys.readouterr().out
    found = Read(Path("page.html").read_bytes())
    assert found.texts["h1"] == ["Consensus of labels.npy"]
    assert "lwgp" in found.texts["td"]
    record = json.loads(Path("out.csv.json").read_text())
    assert record["report"] == "page.html"
    assert set(record["seconds"]) == {"start", "read", "fit", "write", "report", "other", "total"}


@pytest.mark.usefixtures("unpainted")
def test_labels_are_there_without_their_page_but_never_beside_that_of_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    monkeypatch.setattr("gpuens.report.render_fit", lambda *given, **more: 1 / 0)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report", "page.html"]) == 1
    labels = ["labels.npy", "labels.npy.lwgp.npy", "labels.npy.lwgp.npy.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == labels
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report", "page.html"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [*labels, "page.html"]
    monkeypatch.setattr("gpuens.report.render_fit", lambda *given, **more: 1 / 0)
    assert cli.main(["run", "labels.npy", "-k", "5", "--report", "page.html"]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == labels


def test_a_run_in_chunks_has_a_page_too(tmp_path, monkeypatch):
    """The page lacks only the parts that need all labels in memory."""
    pytest.importorskip("dask.array")
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    command = (
        "run labels.npy --method lwea -k 4 --scheduler threads --chunk-rows 50 --report out.npy.html -o out.npy --quiet"
    )
    assert cli.main(command.split()) == 0
    found = Read(Path("out.npy.html").read_bytes())
    assert found.texts["h2"] == [FIRST, TREE, MADE, WORDS]
    sizes = np.bincount(np.load("out.npy"))
    assert found.said[1].startswith(f"This result combines 150 objects into 4 clusters, the largest of {sizes.max()} (")
    assert found.said[0].startswith("Method lwea (locally weighted evidence accumulation) · ")
    assert str(np.bincount(np.load("out.npy"))[0]) in found.texts["td"]


def test_without_jinja_one_sentence_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert cli.main(["run", "labels.npy", "-k", "4", "--report", "page.html"]) == 2
    said = f"reports need jinja2, which is not installed: {installing.command('plot')}"
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [tmp_path / "labels.npy"]


@pytest.mark.usefixtures("unpainted")
def test_resolutions_of_one_structure_are_no_alarm():
    """Six coarse and five fine clusterings, the fine ones within the coarse."""
    rng, fine = np.random.default_rng(0), np.repeat(np.arange(9), 20)
    labels = [np.where(rng.random(180) < 0.03, rng.integers(0, 9, 180), fine) // (3 if m < 6 else 1) for m in range(11)]
    texts = read(EAC(9).fit(labels)).said
    assert (
        "The base clusterings form 2 modes by their numbers of clusters: 6 with 3 and 5 with 9. The finer ones divide "
        "the clusters of the coarser ones."
    ) in texts


@pytest.mark.usefixtures("unpainted")
def test_no_sentence_is_said_twice():
    est = LWGP().fit(CLEAR)
    found = read(est, names={0: "the first"})
    sentences = [text for paragraph in found.said for text in re.split(r"(?<=\.) ", paragraph) if len(text) > 20]
    assert len({*sentences}) == len(sentences)
    cells = [text for text in found.texts["td"] if len(text) > 20]
    assert not {*sentences} & {*cells}


@pytest.mark.usefixtures("unpainted")
def test_thousands_of_draws_are_told_by_distributions():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((60, 130)) < 0.1, rng.integers(0, 3, (60, 130)), np.arange(60)[:, None] % 3)
    found = read(EAC(3).fit(Ensemble(labels, wide=True)))
    alts = [image["aria-label"] for image in found.images]
    assert any(alt.startswith("Number of clusters of the 130 base clusterings: 3 to 3 in 90 % of them") for alt in alts)
    assert any(alt.startswith("Their NMI with the result: 0.") for alt in alts)
    assert "129" not in found.texts["td"]


def test_the_picture_of_draws_counts_them():
    from matplotlib.figure import Figure

    numbers = np.array([2, 2, 3, 5, 5, 5])
    ax = clusterings.draw_distribution(numbers, "number of clusters", 3, integers=True, ax=Figure().subplots())
    assert [bar.get_height() for bar in ax.patches] == [2, 1, 0, 3]


@pytest.mark.usefixtures("unpainted")
def test_clusters_have_a_profile_and_names():
    rng = np.random.default_rng(0)
    labels = np.repeat([[0], [1]], [40, 20], axis=0) + np.zeros((60, 4), int)
    features = pd.DataFrame({"noise": rng.random(60), "age": np.repeat([30.0, 60.0], [40, 20]) + rng.random(60)})
    ids = [f"c{i}" for i in range(60)]
    found = read(EAC(2).fit(labels), ids, features=features, names={0: "young"})
    assert found.texts["h2"][0] == "What the clusters are like"
    assert "the largest, young, of 40 (67 %), the smallest of 20 (33 %)" in found.said[1]
    cells = found.texts["td"]
    assert cells[:4] == ["young", "40", f"{features.age[:40].mean():.1f}", f"{features.noise[:40].mean():.3f}"]
    mean, scale = features[:40].mean(), features.std(ddof=0)
    nearest = (((features[:40] - mean) / scale) ** 2).sum(axis=1).idxmin()
    assert cells[8:10] == ["young", f"c{nearest}"]


@pytest.mark.usefixtures("unpainted")
def test_the_command_can_be_copied_and_the_date_is_there():
    command = ["gpuens", "run", "my labels.csv", "--exclude", "a*"]
    found = Read(
        render_fit("title", EAC(2).fit([[0, 1], [0, 1]]), {"command": command, "date": "2026-11-29 16:20 UTC"})
    )
    assert "gpuens run 'my labels.csv' --exclude 'a*'" in found.texts["td"]
    assert found.said[0].endswith(" · 2026-11-29 16:20 UTC")


def test_numbers_have_three_digits_and_one_point():
    assert [numbers.number(v) for v in (0.99, 0.005585, 1.49e-08, 0.0, 12.345, 1234.5, -0.1968)] == [
        *("0.990", "0.006", "< 0.001", "0.000", "12.3", "1,234", "−0.197")
    ]
    column = numbers.column("seconds", [12.34, 0.125, None, 1234.5])
    assert column.is_numeric
    assert [text + padding for text, padding in column.cells] == ["12.300", "0.125", "–", "1,234.000"]
    assert [cell.text for cell in numbers.column("share", [numbers.Share(0.5), numbers.Share(0.003)]).cells] == [
        *("50.0\N{NO-BREAK SPACE}%", "0.3\N{NO-BREAK SPACE}%")
    ]
    assert not numbers.column("name", ["1", "b"]).is_numeric


def test_a_page_needs_no_display_and_leaves_no_figure(tmp_path):
    """pyplot is not loaded, because it would look for a display."""
    code = (
        "import sys, numpy as np\nfrom gpuens import cli\nfrom gpuens.report import drawing\ndrawing.SHARPNESS = 0.3\n"
        "np.save('l.npy', np.repeat(np.arange(3), 10)[:, None] + np.zeros((1, 4), int))\n"
        "assert cli.main(['run', 'l.npy', '-k', '3', '--report', 'r.html', '--quiet']) == 0\n"
        "assert cli.main(['choose', 'l.npy', '--report', 'c.html', '--quiet', '--ks', '2:3']) == 0\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    env = {**os.environ, "MPLBACKEND": "tkagg", "DISPLAY": ""}
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
