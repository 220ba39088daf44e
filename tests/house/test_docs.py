"""The code in README and pages runs, the site builds without a warning, and it documents every public name."""

import ast
import html
import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import emulator
import numpy as np
import pytest
from sklearn.datasets import make_blobs

import gpuens as ge

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {path.stem: path for path in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))] if CODE.search(path.read_text())}
ELSEWHERE = "# needs "  # code that begins so needs something that tests do not have


@pytest.fixture
def pages(monkeypatch):
    """Import docs/pages.py."""
    monkeypatch.syspath_prepend(str(DOCS))
    import pages

    return pages


@pytest.fixture
def cards(monkeypatch):
    """Import docs/cards.py."""
    monkeypatch.syspath_prepend(str(DOCS))
    import cards

    return cards


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_runs_and_gives_what_its_comments_say(name, own_registry, monkeypatch, tmp_path):
    blocks = [block for block in CODE.findall(PAGES[name].read_text()) if not block.startswith(ELSEWHERE)]
    for module, reason in {"anndata": "cells", "plotting": "pictures"}.items():
        if any(module in block for block in blocks):
            pytest.importorskip({"plotting": "matplotlib"}.get(module, module), reason=reason)
    if name == "cells":
        pytest.importorskip("igraph", reason="Leiden is igraph's")
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
        assert text.startswith(f"# {kind.__name__}\n\n{words[name]['when']} ")
        assert f".. autoclass:: gpuens.{kind.__name__}" in text
        assert all(f"[{paper}](https://doi.org/10." in text for paper in words[name]["paper"].split("; ")), name
        assert text.partition("## What it computes\n\n```{math}\n")[2].partition("```")[0].strip(), name
        assert f"[`{name}`]" in table
        assert re.search(r"^\| structured \| 1,000 \| [\d,]+ \| [\d.]+ \|", text, re.MULTILINE), name


# kernels that reduce objects to distinct rows, and that start a search with labels near those of the rows
KERNELS_OF_THE_REDUCTION = {"pack_rows", "find_rows", "label_histograms", "nearest_centroids"}


def test_the_table_of_devices_has_what_methods_run_on_a_gpu(cards):
    X, _ = make_blobs(60, centers=3, random_state=0)
    labels = ge.generate.kmeans_ensemble(X, 6, (3, 8), random_state=0, progress=False).to_array()
    on_gpu = {}
    for name, kind in ge.methods().items():
        if kind().parts().lacks is None:
            features = {"features": X} if kind().parts().needs_features else {}
            with emulator.recorded() as launches:
                kind(3, device="emulated").fit(labels, **features)
            on_gpu[name] = {launch.kernel for launch in launches} - KERNELS_OF_THE_REDUCTION
    assert len(on_gpu) > 30
    for name, kernels in on_gpu.items():
        assert (kernels == set()) == (ge.methods()[name].on_gpu == "the reduction"), name
    lines = [line for line in cards.devices().splitlines() if line.startswith(("| GPU", "| Dask"))]
    for device in ("GPU", "Dask"):
        names = [name for line in lines if line.startswith(f"| {device}") for name in re.findall(r"\[`(\S+)`\]", line)]
        assert sorted(names) == sorted(ge.methods())


def test_a_letter_that_nothing_explains_is_refused(cards, monkeypatch):
    formulas = cards.loaded("formulas")
    formula = (
        r"s(x, y) &= \frac{1}{M} \sum_m [x_m = y_m] \max_{c, d} w_{cd} \text{ if } \operatorname{NMI}(z') \leq \theta_r"
    )
    assert cards.letters(formula) == [
        *("s", "x", "y", "M", "m", "x_m", "y_m", "c", "d", "w_{cd}", "NMI", "z'", r"\theta_r")
    ]
    formulas["eac"]["formula"] += "\nQ = 1"
    monkeypatch.setattr(cards, "loaded", lambda name: formulas)
    with pytest.raises(ValueError, match=r"eac: \['Q'\] are not explained, set\(\) not used"):
        cards.formula("eac")


def test_files_of_a_checkout_are_linked_where_the_repository_has_an_address(cards):
    text = "[results](../bench/results/chunks.md), [scale](scale.md), ![picture](../bench/results/demo.png)"
    assert cards.without_links_out(text) == text.replace("[results](../bench/results/chunks.md)", "results")
    linked = cards.without_links_out(text, "https://host/owner/gpuens/")
    assert linked == text.replace(
        "../bench/results/chunks.md", "https://host/owner/gpuens/blob/main/bench/results/chunks.md"
    )


@pytest.fixture
def installation(monkeypatch):
    """Import docs/installation.py."""
    monkeypatch.syspath_prepend(str(DOCS))
    import installation

    return installation


def test_commands_install_a_file_until_an_index_has_gpuens(installation):
    pages_of_commands = {path.stem: path.read_text() for path in DOCS.glob("*.md") if "WHEEL" in path.read_text()}
    assert pages_of_commands.keys() >= {"install", "start", "gpus", "r", "index"}
    for name, text in pages_of_commands.items():
        words = installation.for_index(text)
        assert "WHEEL" not in words, name
        assert "wheel file" not in words, name
        assert "<!--" not in words, name
    assert "pip install 'gpuens[io,plot,batch]'" in installation.for_index(pages_of_commands["install"])
    index = installation.for_index(pages_of_commands["index"])
    assert "pip install 'gpuens[plot]'\ngpuens run" in index
    assert "make shell" not in index


def test_a_readme_of_an_index_installs_from_the_index():
    about_files = "<!-- without an index -->\nWHEEL is a file.\n<!-- end -->\n"
    readme = f"![picture](a.png)\n\n[page](docs/a.md)\n{about_files}pip install 'WHEEL[io]'\n"
    script = [sys.executable, str(ROOT / ".ci" / "index_readme")]
    done = subprocess.run(script, input=readme, capture_output=True, text=True, check=True)
    assert done.stdout == "page\npip install 'gpuens[io]'\n"


QUOTED = re.compile(r"^\*\*`([^`]+)`\*\*", re.MULTILINE)


def test_messages_of_the_page_on_troubles_are_in_the_program():
    """The program contains each quoted message; the page has "…" in place of names and numbers."""
    texts = set()
    for path in (ROOT / "gpuens").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    messages = set(QUOTED.findall((DOCS / "troubleshooting.md").read_text())) - {"gpuens: command not found"}
    assert len(messages) > 15
    for message in messages:
        for words in re.split(r"…|\(|\)", message):
            assert len(words) < 4 or any(words.strip(" ;:.,'") in text for text in texts), (message, words)


def test_links_of_the_pages_lead_to_files(cards):
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(((?:\.\./)?[\w./-]+\.(?:md|png|toml))(?:#[\w-]+)?\)", path.read_text()):
            assert (DOCS / target).exists() or target.startswith("generated/"), f"{path.name}: {target}"


RESULTS = ROOT / "bench" / "results"


def recorded(name):
    return json.loads((RESULTS / f"{name}.json").read_text())["parts"]


def test_core_groups_of_covertype_are_those_recorded():
    groups = f"{recorded('covtype')['ensembles']['rows']['a']['n_core_groups']:,}"
    for name in ("README.md", "docs/scale.md"):
        assert f"| 20 clusterings, k in 7 … 100 | {groups} |" in (ROOT / name).read_text()
    assert f"581,012 objects in 20 clusterings\n   with k in 7 … 100 have {groups} different rows" in page("scale")
    assert f"Covtype × 20, k in 7 … 100, has {groups} of them" in page("how")


def test_how_often_choose_k_is_right_is_as_recorded():
    found = (RESULTS / "choose.md").read_text()
    planted = re.search(r"Planted clusters: right of (\d+): choose_k (\d+), of labels (\d+)", found).groups()
    published = re.search(r"Published data: right of (\d+): choose_k (\d+), of labels (\d+)", found).groups()
    none = re.search(r"no structure beyond chance is said of (\d+) of (\d+)", found).groups()
    said = re.search(
        r"right for (\d+) of (\d+) sets .*? for (\d+), and for (\d+) of (\d+) .*?, or (\d+);"
        r" of (\d+) sets without clusters .*? for (\d+)\.",
        page("evidence").replace("\n", " "),
    ).groups()
    assert said == (planted[1], planted[0], planted[2], published[1], published[0], published[2], none[1], none[0])


def test_what_not_knowing_k_costs_is_as_recorded(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import quality_report

    lines = {line["key"]: line for line in quality_report.unaided(recorded("quality")["without_k"]["rows"])}
    real, shapes = (next(line for group, line in lines.items() if name in group) for name in ("matrices", "shapes"))
    said = page("evidence").replace("\n", " ")

    def two(value):
        return f"{value:.2f}".removeprefix("0")

    assert f"has {two(real['share'])} of the ARI of the consensus with the true number" in said
    assert f"on {real['as_good']:.0%}".replace("%", " %") + " of them it is at least as good" in said
    assert f"the share is {two(shapes['share'])}, too; {shapes['exact']:.0%}".replace("%", " %") in said
    assert f"and {shapes['close']:.0%}".replace("%", " %") + " differ by at most one" in said
    assert f"{real['near_silent']:.0%}".replace("%", " %") + " of the suggestions for the label matrices" in said
    assert f"and {shapes['near_silent']:.0%}".replace("%", " %") + " of those for the shapes" in said


@pytest.mark.parametrize("name", ["README.md", "docs/scale.md"])
def test_first_calls_stand_beside_first_calls_as_recorded(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import common

    peers = recorded("vs_peers")
    covtype, mixture = "covtype_7-100_seed0_step1_100.npy", "mixture"
    linkage, graph, kmeans = (peers[part]["rows"] for part in ("linkage", "graph", "kmeans"))
    pairs = [
        (linkage, f"{covtype}, 5,000, co-association: EAC", f"{covtype}, 5,000, co-association: fastcluster"),
        (linkage, f"{covtype}, 20,000, co-association: EAC", f"{covtype}, 20,000, co-association: fastcluster"),
        (linkage, f"{covtype}, 20,000, locally weighted: LWEA", f"{covtype}, 20,000, locally weighted: fastcluster"),
        (linkage, f"{mixture}, 20,000, co-association: EAC", f"{mixture}, 20,000, co-association: fastcluster"),
        (graph, "1,000,000: HBGF", "1,000,000: ccHBGF"),
        (kmeans, "1,000,000: LWGP", "1,000,000: one-hot KMeans"),
    ]

    def told(row):
        calls = ", ".join(f"{common.seconds(row[call])} s" for call in ("first", "later") if call in row)
        return f"{calls}; {row['peak'] / 1e9:.{1 if row['peak'] > 1e9 else 2}f} GB"

    lines = [line.split(" | ")[2:] for line in (ROOT / name).read_text().splitlines() if " s; " in line]
    assert lines == [[told(rows[ours]), f"{told(rows[theirs])} |"] for rows, ours, theirs in pairs]


def test_what_neighbors_gain_and_cost_is_as_recorded(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import common

    def three(value):
        return f"{value:.3f}".removeprefix("0")

    real, maps, costs = (recorded("neighbors")[part]["rows"] for part in ("real", "maps", "costs"))
    groups = [[row for name, row in real.items() if (name == "cora") == alone] for alone in (False, True)]
    groups.append([*maps.values()])
    lines = [line.strip("| ").split(" | ") for line in page("neighbors").splitlines() if line.startswith("| ")]
    gains = {line[0]: line[1:] for line in lines if len(line) == 4}
    of_members = [", ".join(three(np.mean([row[what] for row in of])) for what in ("best", "mean")) for of in groups]
    assert gains["best, mean member"] == of_members
    for design, title in {
        "LWGP": "`lwgp`, without neighbours",
        "majority": "the same, then a majority of neighbours",
        "Spatial": "**`Spatial`**",
    }.items():
        means = [three(np.mean([row["designs"][design]["ari"] for row in of])) for of in groups]
        assert [cell.strip("*") for cell in gains[title]] == means
    for n in ("100,000", "1,000,000"):
        rows = [costs[f"{n}: {name}"] for name in ("domains", "domains, no regions", "connected clusters")]
        told = [f"{common.seconds(row['seconds'])} s; {common.size(row['peak'])}" for row in rows]
        assert gains[f"{n} objects"] == told


def page(name):
    return (DOCS / f"{name}.md").read_text()


def test_every_page_of_results_is_linked_and_links_lead_to_its_copy(pages):
    told = "".join(path.read_text() for path in DOCS.glob("*.md"))
    assert {
        path.name for path in (ROOT / "bench/results").glob("*.md") if f"bench/results/{path.name})" not in told
    } == set()
    assert pages.linked("see [it](../bench/results/covtype.md#b).") == "see [it](/generated/results/covtype.md#b)."
    assert pages.linked("![it](../bench/results/demo.png)") == "![it](../bench/results/demo.png)"


def test_examples_are_in_one_group_each(pages):
    examples = [name for title, group in pages.GROUPS.items() if title != "panels" for name in group["examples"]]
    assert len({*examples}) == len(examples)
    assert {*examples, *pages.GROUPS["panels"]} <= {path.stem for path in DOCS.glob("examples/*.py")}


def test_the_glossary_has_the_words_of_report_pages(pages):
    text = (ROOT / "docs" / "glossary.md").read_text()
    made = pages.with_words_of_reports(text)
    words = [line for line in made.split("```")[1].splitlines()[1:] if line and line[0] != " "]
    assert words == sorted({*words, *pages.WORDS}, key=str.lower)
    assert [word for word in pages.WORDS if f"\n{word}\n" in text] == ["S"]  # on the site, a similarity
    assert "{term}`C <C>`" in made
    assert "<PAC>" not in pages.with_links("PAC", pages.WORDS["PAC"])


def test_a_thumbnail_is_one_panel(pages, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="pictures need matplotlib")
    from matplotlib.image import imread

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    figure.colorbar(left.imshow([[0.0, 1.0]], cmap="Reds"))
    right.set_facecolor("blue")
    for place, color in ((0, (1, 0, 0)), (-1, (0, 0, 1))):
        pages.save_panel(figure, place, tmp_path / "panel.png")
        pixels = imread(tmp_path / "panel.png")[:, :, :3]
        assert pixels.shape[1] == pages.THUMBNAIL[0]
        like = np.abs(pixels - color).sum(axis=2) < 0.7
        other = np.abs(pixels - color[::-1]).sum(axis=2) < 0.7
        assert like.mean() > 0.2
        assert other.mean() < 0.01
    assert len(figure.axes) == 3  # the figure still has its three axes
    pyplot.close(figure)


def test_tick_labels_of_a_thumbnail_do_not_overlap(pages):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="pictures need matplotlib")

    figure, ax = pyplot.subplots(figsize=pages.PANEL_INCHES)
    ax.set_yticks(range(40), [f"cluster {i}" for i in range(40)])
    ax.set_xticks(range(3))
    figure.draw_without_rendering()
    for axis in (ax.xaxis, ax.yaxis):
        pages.thin_tick_labels(axis)
    assert all(label.get_visible() for label in ax.get_xticklabels())
    heights = [label.get_window_extent() for label in ax.get_yticklabels() if label.get_visible()]
    assert 5 < len(heights) < 20
    assert not any(box.overlaps(following) for box, following in itertools.pairwise(heights))
    pyplot.close(figure)


def test_letters_with_an_index_have_equal_depth(monkeypatch):
    pytest.importorskip("latex2mathml", reason="it makes the formulas of the site")
    monkeypatch.syspath_prepend(str(DOCS))
    import mathml

    formula = mathml.mathml(r"x_m = \max_j a_j, \operatorname{NMI}")
    assert formula.count('<msub><mpadded depth="') == 3
    assert "<mi>NMI</mi>" in formula


def test_the_number_of_methods_is_the_registrys():
    for path in (ROOT / "README.md", DOCS / "index.md"):
        assert f"{len(ge.methods())} methods" in path.read_text(), path.name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site without running its examples, and return its folder.

    A build writes beside the pages, so it gets a copy of them, and links to the rest of the checkout.
    """
    pytest.importorskip("sphinx", reason="the site is built by Sphinx")
    pytest.importorskip("latex2mathml", reason="it makes the formulas of the site")
    checkout = tmp_path_factory.mktemp("checkout")
    for path in ROOT.iterdir():
        if path != DOCS:
            (checkout / path.name).symlink_to(path)
    shutil.copytree(DOCS, checkout / "docs", ignore=shutil.ignore_patterns("_build", "generated", "gallery"))
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    done = subprocess.run([*sphinx, "docs", "docs/_build/html"], capture_output=True, cwd=checkout)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return checkout / "docs" / "_build" / "html"


def names_of(module):
    """Return the names of the public functions and classes of a module."""
    names = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    ]
    return {name for name in names if callable(getattr(module, name))}


@pytest.mark.thorough
def test_the_site_has_results_groups_of_examples_and_cells_that_name_their_columns(site):
    assert "<h1>Covertype" in (site / "generated/results/covtype.html").read_text()
    assert 'href="generated/results/covtype.html"' in (site / "scale.html").read_text()
    index = (site / "gallery/index.html").read_text()
    assert [html.unescape(title) for title in re.findall(r"<h2>([^<]*)<", index)] == [
        *("First steps", "Trust in a result", "Special data", "Many objects")
    ]
    examples = {path.stem for path in DOCS.glob("examples/*.py")}
    assert {*re.findall(r'href="(\w+).html"[^>]*><span class="doc">', index)} >= examples
    assert 'data-column="pools"' in (site / "which.html").read_text()


@pytest.mark.thorough
def test_every_public_name_has_a_page_and_every_method_a_card(site):
    from sphinx.util.inventory import InventoryFile

    told = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    pages = {name: item.uri.split("#")[0] for kind in told for name, item in told[kind].items()}
    modules = {name: getattr(ge, name) for name in ge.__all__ if isinstance(getattr(ge, name), ModuleType)}
    assert {"datasets", "evidence", "generate", "metrics", "plotting", "sc"} < modules.keys()
    assert {name for name in names_of(ge) if f"gpuens.{name}" not in pages} == set()
    # objects that are documented under the short name gpuens.name
    in_short = {getattr(ge, name) for name in names_of(ge)}
    for home, module in modules.items():
        names = {name for name in names_of(module) if getattr(module, name) not in in_short}
        assert {name for name in names if f"gpuens.{home}.{name}" not in pages} == set(), home
    for name, kind in ge.methods().items():
        assert pages[f"gpuens.{kind.__name__}"] == f"generated/methods/{name}.html"
        assert ">>> " in (kind.__doc__ or ""), name


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SCREENS = ((1280, 900), (390, 844))
PAGES_OF_A_KIND = (
    *("index", "start", "evidence", "which", "scale", "gpus", "benchmarks", "command_line", "gallery/index"),
    *("concepts", "glossary", "cite", "troubleshooting", "gallery/own_method", "generated/methods/oc-h"),
    *("gallery/how_many", "generated/results/covtype", "generated/api/gpuens.compare"),
    *("generated/reference", "generated/methods/ecrmc", "generated/api/gpuens.partition.MetaClusters"),
)
MEASURE = """
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const { contentDocument: page, contentWindow: screen } = frame;
    const within = thing => {
      const { left, top, right, bottom } = thing.getBoundingClientRect();
      return left >= 0 && top >= 0 && right <= screen.innerWidth && bottom <= screen.innerHeight;
    };
    const first = selector => [...page.querySelectorAll(selector)].slice(0, 1);
    const around = [];
    for (let it = page.querySelector("article"); it; it = it.parentElement) around.push(it);
    return {
      overflow: Math.max(...around.map(it => it.scrollWidth - it.clientWidth)),
      code: [...page.querySelectorAll("div[class*=highlight-] pre")].filter(
        it => it.scrollWidth > it.clientWidth && screen.getComputedStyle(it).overflowX != "auto"
      ).map(it => it.innerText.slice(0, 40)),
      cut: [...page.querySelectorAll("article table")].filter(
        it => it.scrollWidth > it.clientWidth + 1 && screen.getComputedStyle(it).overflowX != "auto"
      ).length,
      title: first("h1").map(within),
      picture: first(".pictures img").map(it => within(it) && it.complete && it.naturalWidth > 0),
      commands: first(".landing pre").map(it => within(it) && it.scrollWidth <= it.clientWidth && it.innerText),
    };
  });
  document.body.textContent = JSON.stringify(seen);
});
"""


@pytest.mark.thorough
def test_pages_fit_screens_and_the_first_screen_holds_title_picture_and_commands(site, tmp_path):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"a browser lays pages out: none of {', '.join(BROWSERS)} is on the PATH")
    shown = [(page, *screen) for page in PAGES_OF_A_KIND for screen in SCREENS]
    frames = [f'<iframe src="{site}/{page}.html" width="{w}" height="{h}"></iframe>' for page, w, h in shown]
    (tmp_path / "frames.html").write_text(f"<!doctype html><body>{''.join(frames)}<script>{MEASURE}</script>")
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--dump-dom", (tmp_path / "frames.html").as_uri()),
        ],
        capture_output=True,
        timeout=120,
    )
    found = re.search(r"<body>(\[.*\])</body>", done.stdout.decode(), re.DOTALL)
    assert found, done.stderr.decode()[-3000:]
    for (page, width, _), seen in zip(shown, json.loads(html.unescape(found[1])), strict=True):
        assert seen["overflow"] <= 0, f"{page} is {seen['overflow']} too wide for a screen of {width}"
        assert seen["code"] == [], page
        assert seen["cut"] == 0, page
        assert seen["title"] == [True], page
        if page == "index":
            assert seen["picture"] == [True], width
            assert [len((text or "").strip().splitlines()) for text in seen["commands"]] == [3], width
