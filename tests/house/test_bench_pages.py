"""The pages of bench/results say what their records say, and at least one figure of each is computed again.

A part whose figure the library no longer gives has to be run again, or to be marked in its record: "outdated", with a
commit of the library that gives other figures.
"""

import importlib
import json
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gpuens as ge

BENCH = Path(__file__).parents[2] / "bench"
RESULTS = BENCH / "results"
RECORDS = sorted(path.stem for path in RESULTS.glob("*.json"))
FINDINGS = {"chunks": "chunks_report", "gpu": "gpu_tables", "quality": "quality_report"}
WITHOUT_FIXED_FIGURES = {  # pages of which no figure is the same in every run, and the reason
    "batch": "seconds, and counts of batches that are killed at random moments",
    "engines": "seconds",
    "gpu": "no GPU has measured anything; the bounds are computed from the counts of instructions.md",
    "limits": "seconds, and rates of the machine",
    "start": "seconds",
}
close = partial(np.isclose, rtol=1e-3, atol=1e-4)  # within the rounding of records and of other processors


@pytest.fixture(scope="module")
def bench():
    """Return an import function for the modules of bench/."""
    names = {path.stem for path in BENCH.iterdir()}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        for name in [name for name in sys.modules if name.split(".")[0] in names]:
            patch.delitem(sys.modules, name)
        yield importlib.import_module


@pytest.mark.parametrize("name", RECORDS)
def test_pages_say_what_the_records_say(name, bench):
    if (BENCH / "papers" / name).exists():
        page = bench("papers").page_of(name)
    else:
        page = bench("report").Page(name, bench(FINDINGS.get(name, name)))
    text = (RESULTS / f"{name}.json").read_text()
    record = json.loads(text)
    assert bench("common").json_text(record) + "\n" == text
    assert page.markdown(record).rstrip("\n") + "\n" == (RESULTS / f"{name}.md").read_text()


def test_every_page_says_with_which_commit_it_was_made():
    pages = {path.stem: path.read_text() for path in RESULTS.glob("*.md")}
    assert [name for name, text in pages.items() if not re.search(r"commit [0-9a-f]{7,}", text)] == []
    for name in RECORDS:
        for part in json.loads((RESULTS / f"{name}.json").read_text())["parts"].values():
            assert f"library at commit {part['commit']}" in pages[name]


def test_the_commits_of_the_pages_are_in_the_history():
    def git(*words):
        return subprocess.run(["git", "-C", BENCH, *words], capture_output=True, text=True, check=False)

    if not shutil.which("git") or git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("needs the whole history of the repository")
    parts = [part for name in RECORDS for part in json.loads((RESULTS / f"{name}.json").read_text())["parts"].values()]
    commits = {part[which].removesuffix("+") for part in parts for which in ("commit", "outdated") if which in part}
    assert [commit for commit in sorted(commits) if git("merge-base", "--is-ancestor", commit, "HEAD").returncode] == []


def test_a_part_that_is_outdated_says_so(bench):
    page = bench("report").Page("engines", bench("engines"))
    record = json.loads((RESULTS / "engines.json").read_text())
    record["parts"]["ensembles"]["outdated"] = "0123abc"
    text = page.markdown(record)
    first, section = text.split("\n## ")
    assert "other figures by now: One search alone, and the choice." in first
    assert "at commit 0123abc the library gives other figures" in section


def test_sets_that_are_kept_out_choose_no_default(bench):
    kept_out = bench("common").KEPT_OUT
    parts = json.loads((RESULTS / "quality.json").read_text())["parts"]
    names = {key.split(", ")[0] for name, part in parts.items() if name != "large" for key in part["rows"]}
    assert {"vowel", "lwec_FCT", "het_vowel.0", "sipu_flame"} < names
    data_sets = {name.partition(".")[0].partition("_")[2] for name in names}  # vowel of the matrix het_vowel.0
    assert not kept_out & (names | data_sets)


def test_benchmarks_of_quality_leave_out_what_is_kept_out(bench, tmp_path):
    (tmp_path / "shapes").mkdir()
    (tmp_path / "pools").mkdir()
    for name in ("iris", "vowel", "mf", "shapes/square", "pools/lwec_IS", "pools/lwec_FCT"):
        np.savez(tmp_path / f"{name}.npz", y=np.arange(len(name)))
    found = bench("quality").sets_of(Namespace(quick=False, data=tmp_path))
    assert [(group, path.stem) for group, path in found] == [
        ("shapes", "square"), ("real", "mf"), ("real", "vowel"), ("pools", "lwec_FCT"),
    ]  # fmt: skip


# --- figures that are computed again ----------------------------------------------------------------------------------

CELLS = []


def cell(page, part, *, data=False, marks=()):
    """Register a function (bench, rows of the record, directory of data sets or of scratch files).

    It returns figures of the record, and the same figures computed anew; both are nested dicts and lists.
    """

    def register(function):
        CELLS.append(pytest.param(page, part, function, data, id=f"{page}-{part}", marks=marks))
        return function

    return register


def flat(values, path=""):
    """Return {path: number or text} of nested dicts and lists."""
    if isinstance(values, (dict, list, tuple)):
        pairs = values.items() if isinstance(values, dict) else enumerate(values)
        return {key: value for name, item in pairs for key, value in flat(item, f"{path}/{name}").items()}
    return {path: values}


@cell("catree", "nodes")
def nodes(bench, rows, _):
    row = rows["Half-rings"]
    now = bench("papers.catree.experiments").count("Half-rings", None, 20, 0, row["sizes"][:1])
    return [row["counts"][gamma][0] for gamma in now["counts"]], [counts[0] for counts in now["counts"].values()]


@cell("catree", "defaults")
def accuracy_by_order(bench, rows, _):
    row = rows["Spherical5"]
    now = bench("papers.catree.experiments").choose("Spherical5", None, 2, 0, row["n_objects"])["cells"]
    return {way: {what: values[:2] for what, values in cell.items()} for way, cell in row["cells"].items()}, now


@cell("catree", "times")
def accuracy_of_timed_fits(bench, rows, _):
    now = bench("papers.catree.experiments").clock("3-rings", 1800, None, 1, 0, ["EAC"], "BCD")["ways"]
    row = rows["3-rings, 1,800"]["ways"]
    return {way: row[way]["accuracy"][0] for way in now}, {way: own["accuracy"][0] for way, own in now.items()}


FEW, POOL = ["CgC", "CrC-Ia", "HBGF"], "pools/lwec_VS.npz"
FIRST_RUNS = {  # page and part: row, its table, score, whether it needs data sets, and the first run anew
    ("cce", "small"): ("Iris", "methods", "AC", False, lambda e, _, names: e.repeat("Iris", None, 1, 0, names, 60)),
    ("cce", "documents"): ("webkb4", "methods", "AC", True, lambda e, data, _: e.repeat("webkb4", data, 1, 0, FEW, 60)),
    ("cce", "baselines"): (
        *("satimage4435", "methods", "AC", True),
        lambda e, data, _: e.repeat("satimage4435", data, 1, 0, [*FEW[:2], "LIMBO"], 60),
    ),
    ("ecrmc", "sets"): ("iris", "methods", "ARI", False, lambda e, *_: e.repeat("iris", None, 1, 0)),
    ("ecrmc", "rivals"): ("iris", "methods", "ARI", False, lambda e, *_: e.against("iris", None, 1, 0)),
    ("ecrmc", "self"): ("vs", "methods", "ARI", True, lambda e, data, _: e.with_itself("vs", data, 1, 0)),
    ("lwec", "tables"): (
        *("VS", "methods", "ari", True),
        lambda e, data, _: e.score(data / POOL, 1, 0, ["LWEA", "LWGP", "HBGF", "MCLA", "WEAC", "EAC"]),
    ),
    ("lwec", "best_k"): (
        *("VS", "methods", "ari", True),
        lambda e, data, _: e.score(data / POOL, 1, 0, ["LWEA", "LWGP"], e.MULTIPLES),
    ),
    ("scec", "tables"): ("IRIS, RI", "cells", "SCEC", False, lambda e, *_: e.score("IRIS", "RI", None, 0, False, 1)),
}


def first_run(bench, rows, data, page, row, table, score, run):
    """Return the scores of the first run by the record, for the methods that run anew, and anew."""
    now = run(bench(f"papers.{page}.experiments"), data, list(rows[row][table]))[table]
    return [{name: of[name][score][0] for name in now} for of in (rows[row][table], now)]


for (page, part), (row, table, score, needs_data, run) in FIRST_RUNS.items():
    cell(page, part, data=needs_data)(partial(first_run, page=page, row=row, table=table, score=score, run=run))


@cell("cce", "large", data=True)
def large_set(bench, rows, data):
    experiments = bench("papers.cce.experiments")
    row = rows["satimage4435"]["methods"]["CgC"]
    found = experiments.sets.load("satimage4435", data)
    ensemble = experiments.sets.base_clusterings(found, 0, 0)
    scores = ge.metrics.scores(ge.CgC(found.n_classes).fit(ensemble).labels_, found.y)
    return [row["AC"], row["NMI"]], [scores["accuracy"], scores["nmi"]]


@cell("scec", "defaults")
def parameters(bench, rows, _):
    experiments = bench("papers.scec.experiments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "TRIED", {"beta": (2.0,)})
        now = experiments.try_parameters("IRIS", "RI", None, 0, False)["rows"]
    return [row for row in rows["IRIS, RI"]["rows"] if (row["parameter"], row["value"]) == ("beta", 2.0)], now


@cell("usenc", "sets", data=True)
def one_landmark_clustering(bench, rows, data):
    found = ge.datasets.load("pd", data=data)
    one = ge.generate.landmark_ensemble(found.X, 1, found.n_classes, max_iter=100, random_state=0, progress=False)
    now = bench("papers.usenc.experiments").scores(found.y, one.to_array()[:, 0])
    return {score: rows["PenDigits"]["methods"]["one clustering"][score][0] for score in now}, now


@cell("usenc", "growth", marks=pytest.mark.thorough)
def bananas(bench, rows, _):
    return rows["TB-like, 100,000"]["methods"], bench("papers.usenc.experiments").grow("TB-like", 100_000, 0)["methods"]


@cell("budgets", "few")
def outcomes(bench, rows, _):
    budgets = bench("budgets")
    labels = budgets.labels_of(budgets.SHAPES["few"], 0)
    now = {name: budgets._fit(ge.methods()[name](10), labels) for name in ("eac", "lwgp")}
    return {name: rows[name]["outcome"] for name in now}, now


@cell("budgets", "wide")
def bytes_of_refusals(bench, rows, _):
    budgets = bench("budgets")
    shape = budgets.SHAPES["wide"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUENS_MEMORY", str(shape.budget))
        labels = budgets.labels_of(shape, 0)
        now = {name: budgets._fit(ge.methods()[name](shape.n_clusters), labels) for name in ("cgc", "oc-h", "ecrmc")}
    sizes = re.compile(r"[\d.]+ [GM]B")
    return {name: sizes.findall(rows[name]["outcome"]) for name in now}, {
        name: sizes.findall(outcome) for name, outcome in now.items()
    }


@cell("choose", "real")
def number_by_features(bench, rows, _):
    return rows["iris"]["by"], bench("choose").known("iris", Namespace(data=None, quick=False, seed=0))["by"]


@cell("choose", "scaling")
def number_by_labels(bench, rows, _):
    return rows["1,000, one ensemble"]["suggested"], bench("choose").chosen(1000, "one ensemble")["suggested"]


@cell("chunks", "scaling")
def labels_in_chunks(bench, rows, folder):
    pytest.importorskip("dask")
    chunks = bench("chunks")
    labels, truth = folder / "labels.npy", folder / "truth.npy"
    chunks.generate(labels, truth, (100_000, 10), chunks.CENTERS[10], 0)
    how = {"method": "lwgp", "reduce": None, "workers": 0, "chunk_rows": 1_000_000}
    now = chunks.fit(labels, truth, scratch=folder, **how) | chunks.score(folder / "consensus.npy", truth)
    return [rows["100000"][name] for name in ("groups", "ari")], [now[name] for name in ("groups", "ari")]


def first_auc(bench, rows, kind, methods):
    """Return the AUC of confidence on iris with the first seed, by the record and computed anew."""
    seed = json.loads((RESULTS / "confidence.json").read_text())["seed"]
    now = bench("confidence").real(kind, "iris", Namespace(data=None, quick=True, seed=seed))["methods"]
    return [{name: of[name]["auc"]["confidence"][0] for name in methods} for of in (rows["iris"]["methods"], now)]


@cell("confidence", "kmeans")
def auc_of_kmeans(bench, rows, _):
    return first_auc(bench, rows, "kmeans", ["lwgp", "lwea", "hbgf"])


@cell("confidence", "landmarks")
def auc_of_landmarks(bench, rows, _):
    return first_auc(bench, rows, "landmarks", ["lwea", "eac"])  # the others depend on the rounding of eigenvectors


@cell("covtype", "ensembles", data=True, marks=pytest.mark.thorough)
def ten_clusterings_of_covtype(bench, rows, data):
    found = ge.datasets.load("covtype", data=data)
    ensemble = ge.generate.kmeans_ensemble(found.X, 10, (7, 100), algorithm="minibatch", random_state=0, progress=False)
    groups, labels = len(ge.CoreGroups().reduce(ensemble).counts), ge.LWGP(7).fit(ensemble).labels_
    row = rows["b"]
    lwgp = row["methods"]["lwgp"]
    return [row["n_core_groups"], lwgp["nmi"], lwgp["ari"]], [
        groups, ge.metrics.nmi(labels, found.y), ge.metrics.ari(labels, found.y)
    ]  # fmt: skip


@cell("host_work", "fits", marks=pytest.mark.gpu)
def requests_of_a_fit(bench, rows, _):
    pytest.importorskip("gpu_stack", reason="needs the stand-in for a GPU (tests/gpu_stack/build.py)")
    row = rows["LWEA, 400 × 20"]["now"]
    now = bench("host_work").fit("LWEA", 400, 20)
    return [{name: of[name] for name in row.keys() & now.keys() - {"milliseconds"}} for of in (row, now)]


@cell("inertia", "one")
def inertia(bench, rows, _):
    return rows["iris, 3 k"]["inertia"], bench("inertia").of_set("iris", 3, 1, 0, 5, None)["inertia"]


@cell("instructions", "kernels")
def instructions_of_a_kernel(bench, rows, _):
    instructions = bench("instructions")
    if reason := instructions.nvrtc.why_not():
        pytest.skip(reason)
    text = instructions.kernels.sources()[instructions.kernels.functions()["row_sums"]]
    return rows["row_sums"]["sm_90"], instructions.of_kernel("row_sums", text, ("sm_90",))["sm_90"]


@cell("methods", "structured")
def distinct_rows(bench, rows, _):
    labels = bench("vs_peers").mixture(10_000, bench("methods").NOISE["structured"], 0)[0]
    return rows["lwgp"]["fits"][1]["rows"], len(ge.CoreGroups().reduce(ge.Ensemble(labels)).counts)


@cell("modes", "few")
def simulations(bench, rows, _):
    modes = bench("modes")
    case = (*modes.CASES["2 near, 90:10"], 0.0, *modes.SIZES["few"])
    return rows["2 near, 90:10; 0 %"], modes.simulated(case, 20)


@cell("factors", "speed")
def stability_of_factors(bench, rows, _):
    return rows["1,000"]["ours"]["silhouette"], bench("factors").ours(*bench("factors").SIZES[0])["silhouette"]


@cell("certificates", "draws")
def noisy_copies(bench, rows, _):
    certificates = bench("certificates")
    now = certificates.certified(certificates.drawn(0.1))["by"]
    return tuple([found[loss]["bound"] for loss in certificates.LOSSES] for found in (rows["10 %"]["by"], now))


@cell("features", "time")
def a_clustering_of_blobs(bench, rows, _):
    features = bench("features")
    X, y = features.blobs(2_000, 5, 0)
    return rows["2,000 × 5: ge.cluster"]["ari"], ge.metrics.ari(y, ge.cluster(X, features.N_BLOBS).labels_)


@cell("neighbors", "real", data=True)
def designs_on_citations(bench, rows, data):
    neighbors = bench("neighbors")
    now = neighbors.scores(neighbors.published("cora", data), ["LWGP", "Spatial", "no k"], 1)["designs"]
    return [
        {name: [of[name][what][0] for what in ("ari", "k")] for name in now} for of in (rows["cora"]["designs"], now)
    ]


@cell("neighbors", "stripes")
def a_stripe_of_three_pixels(bench, rows, _):
    now = bench("neighbors").of_stripe(100, 3, 0, ["Spatial"])["designs"]
    return {name: rows["3"]["designs"][name] for name in now}, now


FLAME = "shapes/sipu_flame.npz"
OF_SHAPES = {  # page and part: row, its table, and the table anew
    ("features", "members"): (
        "sipu_flame, 0", "by", lambda of, data: of.by_number("members", (20, 10), "shapes", data / FLAME, 0)
    ),
    ("quality", "methods"): (
        "sipu_flame, kmeans, 0", "methods",
        lambda of, data: of.of_methods(
            "shapes", data / FLAME, "kmeans", 0, ["lwgp", "lwea", "hbgf", "ecpcs-mc", "kcc"], of.here
        ),
    ),
    ("quality", "anchors"): (
        "seg210, features, 0", "methods",
        lambda of, data: of.anchors_of("real", data / "seg210.npz", "features", 0, ["ge.cluster", "k-means"], of.here),
    ),
    ("quality", "candidates"): (
        "sipu_flame, kmeans, 0", "candidates",
        lambda of, data: of.candidates_of("shapes", data / FLAME, "kmeans", 0, ["lwgp"], of.here),
    ),
}  # fmt: skip


def aris(bench, rows, data, page, row, table, run):
    """Return the ARI of the methods that run anew by the record, and anew."""
    now = run(bench(page), data)[table]
    return [{name: of[name]["ari"] for name in now} for of in (rows[row][table], now)]


for (page, part), (row, table, run) in OF_SHAPES.items():
    cell(page, part, data=True)(partial(aris, page=page, row=row, table=table, run=run))


@cell("quality", "number", data=True)
def number_of_a_shape(bench, rows, data):
    quality = bench("quality")
    of = [name for name in quality.NUMBERS if name.startswith("consensus")] + ["ge.cluster"]
    now = quality.numbers_of("shapes", data / "shapes" / "wut_x3.npz", "features", 0, of, quality.here)["found"]
    return {name: rows["wut_x3, features, 0"]["found"][name]["k"] for name in of}, {name: now[name]["k"] for name in of}


@cell("quality", "without_k", data=True)
def consensus_without_k(bench, rows, data):
    path = data / "ensembles" / "space.npz"
    now = bench("quality").without_k("space", path, "space_SRARmap14", "labels", 0)
    return [{way: of[way]["ari"] for way in ("without", "with")} for of in (rows["space_SRARmap14, labels, 0"], now)]


@cell("quality", "large", marks=pytest.mark.thorough)
def planted_clusters(bench, rows, _):
    return rows["planted 10,000, 0"]["nmi"], bench("quality").of_large_set(0, n=10_000)["nmi"]


@cell("shapes", "names")
def refusals(bench, rows, _):
    shapes = bench("shapes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUENS_MEMORY", "19.6GB")
        now = {name: shapes.fit("names", shapes.SHAPES["names"], name, 0)["refusal"] for name in ("hbgf", "cgc")}
    return {name: rows[name]["refusal"] for name in now}, now


def nmi_on_a_mixture(bench, rows, _, n_objects, methods, small=False):
    """Return the NMI of methods on a mixture by the record, and computed anew."""
    peers = bench("vs_peers")
    labels, truth = peers.mixture(n_objects, 0.2, 0, *(peers.SMALL if small else ()))
    now = {name: ge.metrics.nmi(getattr(ge, name)(25).fit(labels).labels_, truth) for name in methods}
    return {name: rows[f"{n_objects:,}: {name}"]["nmi"] for name in now}, now


for part, given in {
    "graph": {"n_objects": 10_000, "methods": ["HBGF"]},
    "kmeans": {"n_objects": 10_000, "methods": ["LWGP"]},
    "partitions": {"n_objects": 1000, "methods": ["CSPA", "HBGF", "EM"], "small": True},
}.items():
    cell("vs_peers", part)(partial(nmi_on_a_mixture, **given))


def test_every_page_has_a_figure_that_is_computed_again_or_a_reason():
    pages = {path.stem for path in RESULTS.glob("*.md")}
    compared = {param.values[0] for param in CELLS}
    assert compared | WITHOUT_FIXED_FIGURES.keys() == pages
    assert not compared & WITHOUT_FIXED_FIGURES.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("page", "part", "compute", "data"), CELLS)
def test_the_library_gives_the_figures_of_the_page(page, part, compute, data, bench, request, tmp_path):
    recorded = json.loads((RESULTS / f"{page}.json").read_text())["parts"][part]
    folder = request.getfixturevalue("shared_data") if data else tmp_path
    printed, now = map(flat, compute(bench, recorded["rows"], folder))
    assert printed.keys() == now.keys()
    assert printed
    numbers = {key for key, value in printed.items() if isinstance(value, (int, float))}
    differ = {
        key: (value, now[key]) for key, value in printed.items()
        if not (close(value, now[key]) if key in numbers else value == now[key])
    }  # fmt: skip
    if "outdated" in recorded:
        assert differ, "the part is marked as outdated, but the library gives its figures: remove the mark"
    else:
        assert not differ, f"run part {part} again, or mark it as outdated in results/{page}.json: {differ}"
