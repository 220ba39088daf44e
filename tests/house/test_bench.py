"""Each benchmark must run as a program on tiny data. Its measurements are not checked."""

import importlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import structured_labels

import gpuens as ge

BENCH = Path(__file__).parents[2] / "bench"


def run(script, *arguments):
    command = [sys.executable, BENCH / script, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def rows_of(script, folder, *arguments):
    """Run a script on little data, check that it prints its page, and return {part: rows}."""
    printed = run(script, *arguments, "--quick", "--output", folder / "results.json")
    assert (folder / "results.md").read_text() == printed
    parts = json.loads((folder / "results.json").read_text())["parts"]
    return {name: part["rows"] for name, part in parts.items()}


@pytest.mark.bench
def test_covtype_measures_every_method_on_a_label_file(tmp_path):
    labels, _ = structured_labels(400, 6, 4, noise=0.1)
    np.save(tmp_path / "labels.npy", labels.astype(np.uint8))
    results = rows_of("covtype.py", tmp_path, "--labels", tmp_path / "labels.npy", "-k", 4)["ensembles"]["given"]
    assert results["n_objects"] == 400
    assert results["n_core_groups"] == len(np.unique(labels, axis=0))
    assert set(results["methods"]) == {"eac", "lwea", "lwgp", "hbgf"}
    for row in [*results["methods"].values(), *results["command"].values()]:
        assert "failed" not in row
        assert row["peak"] > 2**20
    assert sum(results["methods"]["eac"]["largest"]) == 400
    assert 0 < results["methods"]["lwea"]["comparisons"] < 2


@pytest.mark.bench
def test_batches_are_killed_and_leave_what_they_should(tmp_path):
    parts = rows_of("batch.py", tmp_path)
    (row,) = parts["trials"].values()
    assert (row["trials"], row["differ"], row["strays"]) == (2, 0, 0)
    assert row["kills"] > 0
    assert parts["overhead"]["20 jobs"]["batch"] > 0


@pytest.mark.bench
def test_base_clusterings_by_every_algorithm():
    printed = run("generate.py", "--data", "digits", "--clusterings", 2, "--k", "5:9", "--kmeans", 2)
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ") and " | 2 | " in line]
    assert len(rows) == 4
    assert all(0.9 < float(row[4]) < 1.2 for row in rows)


@pytest.mark.bench
def test_no_fine_clustering_of_a_graph_is_left_out_and_the_consensus_is_measured():
    printed = run("graph.py", "--n-objects", 10_000, "--leiden")
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    graphs = [[int(cell) for cell in row[1:]] for row in rows if len(row) == 5 and row[1] != "fine"]
    assert len(graphs) == 12
    assert [left_out for _, left_out, _, _ in graphs] == [0] * 12
    assert len([row for row in rows if len(row) == 4]) == 4


@pytest.mark.bench
def test_first_runs_are_measured(tmp_path):
    rows = rows_of("start.py", tmp_path, "--before", BENCH.parent)["starts"]
    assert list(rows) == ["import gpuens", "run of 2,000"]
    assert all(row[version]["cpu"] > 0 for row in rows.values() for version in ("now", "before"))


@pytest.mark.bench
def test_later_fits_of_both_versions_are_compared(tmp_path):
    np.save(tmp_path / "labels.npy", np.random.default_rng(0).integers(3, size=(300, 4)))
    only = ["--only", "fits", "--before", BENCH.parent, "--labels", tmp_path / "labels.npy"]
    rows = rows_of("start.py", tmp_path, *only)["fits"]
    assert list(rows) == ["LWEA, 200", "LWEA, 1,000", "LWEA, labels"]
    assert all(0 < row["now"]["seconds"] < row["before"]["first"] for row in rows.values())


@pytest.mark.bench
def test_searches_of_average_linkage_are_timed(tmp_path):
    (row,) = rows_of("engines.py", tmp_path)["ensembles"].values()
    assert all(row[search] > 0 for search in ("chosen", "tiles", "rows"))


@pytest.mark.bench
def test_modes_are_counted_in_every_case(tmp_path):
    parts = rows_of("modes.py", tmp_path)
    assert {name: len(rows) for name, rows in parts.items()} == {"few": 35, "many": 35}
    far = [row for name, row in parts["few"].items() if name.startswith("2 far") and name.endswith("; 0 %")]
    assert [(row["right"], row["ari"]) for row in far] == [(1.0, 1.0)] * 3


@pytest.mark.bench
def test_factors_are_those_of_cnmf(tmp_path):
    parts = rows_of("factors.py", tmp_path)
    (row,) = parts["speed"].values()
    assert row["theirs"]["apart"] < 1e-9
    assert row["ours"]["silhouette"] == pytest.approx(row["theirs"]["silhouette"])
    ways = [way for row in parts["groups"].values() for at in row["at"].values() for way in at.values()]
    assert min(min(cosines) for cosines in ways if cosines) > 0.5


@pytest.mark.bench
def test_certificates_of_noisy_copies_are_close(tmp_path):
    parts = rows_of("certificates.py", tmp_path)
    assert {name: len(rows) for name, rows in parts.items()} == {
        "matrices": 0, "pools": 0, "draws": 1, "program": 0, "sizes": 2,
    }  # fmt: skip
    by = parts["draws"]["10 %"]["by"]
    assert by["binder"]["gap"] < 0.01
    assert by["omari"]["gap"] < 0.05
    assert parts["sizes"]["1,000, binder"]["proof"] == "triangles"


@pytest.mark.bench
def test_neighbors_help_on_small_maps(tmp_path):
    parts = rows_of("neighbors.py", tmp_path)
    assert {name: len(rows) for name, rows in parts.items()} == {"real": 0, "maps": 3, "stripes": 1, "costs": 3}
    for row in parts["maps"].values():
        assert min(row["designs"]["Spatial"]["ari"]) > row["best"] + 0.2
    assert all(row["ari"] > 0.95 for name, row in parts["costs"].items() if "domains" in name)


@pytest.mark.bench
def test_clusterings_of_features_are_timed_compared_and_profiled(tmp_path):
    parts = rows_of("features.py", tmp_path)
    sizes = {name: len(rows) for name, rows in parts.items()}
    assert sizes == {"time": 2, "members": 2, "landmarks": 2, "profile": 1}
    ours, rival = parts["time"].values()
    assert ours["ari"] > 0.95
    assert 0 < ours["cpu"] < ours["first"]["cpu"]
    assert rival.get("ari", 1) > 0.5
    assert rival.get("failed", "left out").startswith("left out")
    assert parts["members"]["flower, 0"]["by"].keys() == {"10", "20"}
    assert all(of["ari"] > 0.95 for of in parts["landmarks"]["flower, 0"]["by"].values())
    (profile,) = parts["profile"].values()
    assert all(0 < share < 0.7 for share in profile["shares"].values())


@pytest.mark.bench
def test_inertia_is_about_scikit_learns(tmp_path):
    ratios = [row["ratio"] for rows in rows_of("inertia.py", tmp_path).values() for row in rows.values()]
    assert len(ratios) == 8
    assert max(ratios) < 1.02


@pytest.mark.bench
@pytest.mark.parametrize("part", ["linkage", "graph", "kmeans", "partitions"])
def test_peers_and_ours_agree_on_a_mixture(part, tmp_path):
    rows = list(rows_of("vs_peers.py", tmp_path, "--only", part)[part].values())
    for row in rows:
        assert row.get("failed", "not installed") == "not installed"
        assert row.get("nmi", 1.0) > 0.7
        if row.get("similarity") == "locally weighted":
            assert row.get("largest_difference", 0.0) < 1e-9
    ours = {row["who"]: row for row in rows if row["who"] in ("EAC", "LWEA", "HBGF", "LWGP")}
    assert ours
    assert not any("failed" in row for row in ours.values())


def rows_of_paper(paper, tmp_path, *arguments):
    """Run a paper's experiments on little data, check the page and the picture, and return {part: rows}."""
    parts = rows_of("papers", tmp_path, paper, *arguments)
    assert "failed" not in json.dumps(parts)
    assert (tmp_path / "results.png").stat().st_size > 0
    return parts


@pytest.mark.bench
def test_every_part_of_the_lwec_experiments_runs_on_a_pool_that_is_made_up(tmp_path):
    parts = rows_of_paper("lwec", tmp_path)
    assert set(parts) == {"tables", "best_k", "hypergraph", "theta"}
    (row,) = parts["tables"].values()
    assert {"LWEA", "WCT", "SEC", "CSPA"} < row["methods"].keys()
    assert {len(scores["ari"]) for scores in row["methods"].values()} == {2}
    (row,) = parts["theta"].values()
    assert min(row["methods"]["lwea"]["best_k"].values()) > 0.9


@pytest.mark.bench
def test_every_part_of_the_cce_experiments_runs_on_made_up_data(tmp_path):
    parts = rows_of_paper("cce", tmp_path)
    assert set(parts) == {"small", "documents", "scaling", "large", "baselines", "sampling", "groups"}
    separable = parts["small"]["Sy1"]
    assert {"CgC", "LB-P", "normalised KCC", "ROCK"} < separable["methods"].keys()
    for scores in separable["methods"].values():
        assert min(scores["AC"]) > 0.9


@pytest.mark.bench
def test_every_part_of_the_usenc_experiments_runs_on_digits_and_bananas(tmp_path):
    parts = rows_of_paper("usenc", tmp_path)
    assert set(parts) == {"sets", "growth", "digits"}
    (deformed,) = parts["digits"].values()
    assert deformed["methods"]["HBGF"]["NMI"] > max(deformed["methods"][name]["NMI"] for name in ("members", "k-means"))
    digits = parts["sets"]["digits"]["methods"]
    assert min(digits["HBGF"]["CA"]) > 0.85 > max(digits["members"]["CA"])
    (bananas,) = parts["growth"].values()
    assert bananas["methods"]["HBGF"]["NMI"] > 0.95 > bananas["methods"]["k-means"]["NMI"]


@pytest.mark.bench
def test_every_part_of_the_ecrmc_experiments_runs_on_data_that_comes_with_scikit_learn(tmp_path):
    parts = rows_of_paper("ecrmc", tmp_path)
    assert set(parts) == {"sets", "rivals", "self", "covtype"}
    assert len(parts["rivals"]["iris"]["methods"]) == 8
    iris = parts["sets"]["iris"]
    assert min(iris["methods"]["T 10 %"]["AC"]) > 0.85
    assert len(iris["methods"]) == 9
    assert [row["T"] for row in parts["covtype"].values()] == [18]


@pytest.mark.bench
def test_every_part_of_the_ca_tree_experiments_runs_on_made_up_data(tmp_path):
    parts = rows_of_paper("catree", tmp_path)
    assert set(parts) == {"nodes", "accuracy", "defaults", "times", "image", "million"}
    spheres = parts["accuracy"]["Spherical5"]
    assert all(np.diff(spheres["cells"]["given 1"]["nodes"]["mean"]) <= 0)
    (row,) = parts["times"].values()
    assert len(row["ways"]) == 5 * (4 + 3) + 1
    assert min(np.mean(row["ways"][f"EAC {setting} size"]["accuracy"]) for setting in ("dense", *"ABCD")) > 0.8
    assert (tmp_path / "results_landscape.png").stat().st_size > 0


@pytest.mark.bench
def test_every_part_of_the_scec_experiments_runs_on_few_digits(tmp_path):
    parts = rows_of_paper("scec", tmp_path)
    assert set(parts) == {"defaults", "tables", "covtype"}
    for cell in parts["tables"]["digits, RN"]["cells"].values():
        assert min(cell["SCEC"]) > 0.4


@pytest.mark.bench
def test_only_the_sets_that_are_named_are_worked_on(tmp_path):
    assert rows_of_paper("ecrmc", tmp_path, "--only", "sets", "--sets", "no such set") == {"sets": {}}


@pytest.mark.bench
def test_instructions_are_counted(tmp_path, on_bench):
    if reason := on_bench("instructions").nvrtc.why_not():
        pytest.skip(reason)
    parts = rows_of("instructions.py", tmp_path)
    kernels, changes = parts.pop("kernels"), parts.pop("changes")
    assert kernels.keys() == on_bench("instructions").OPERATIONS.keys()
    for architectures in kernels.values():
        (counts,) = architectures.values()
        assert counts["all"] > 32  # 1,024 operations of one instruction would take 32 warp instructions
    for rows in parts.values():
        (counts,) = rows.values()
        for step, now in counts["now"].items():
            assert 0 < now["all"] < counts["before"][step]["all"]
        assert 4 * counts["now"]["rows"]["memory"] < counts["before"]["rows"]["memory"]
    changed = {kernel: row["sm_90"] for kernel, row in changes.items()}
    assert changed["slice_labels"]["now"] == changed["label_by_products"]["before"] == {}
    assert changed["nearest_rows"]["now"]["registers"] <= 80 < changed["nearest_rows"]["before"]["registers"]
    for kernel in ("count_pairs", "landmark_products", "squared_distances", "update_lists", "label_correspondences"):
        before, now = (changed[kernel][when]["operation"]["all"] for when in ("before", "now"))
        assert 0 < now < 0.7 * before
    assert all(row["now"].get("spilled", 0) == 0 for row in changed.values())
    bench = on_bench("instructions")  # a text with loops of other shapes
    assert bench.counted(bench.source("nearest", "01c900d"), "sm_90", "i64").keys() == {"tiles", "rows"}


def test_instructions_of_an_operation(on_bench):
    """A loop of five instructions around a loop of three, which reads two labels and a word of 64 bits."""
    bench, nvrtc = on_bench("instructions"), on_bench("instructions").nvrtc
    opcodes = ["MUFU.RCP", "LDG.E.U8", "LDG.E.U8.CONSTANT", "LDG.E.64", "BRA", "DADD", "STG.E", "BRA", "EXIT"]
    targets = {4: 1, 7: 0}
    code = [
        nvrtc.Instruction(16 * at, opcode, f"{opcode} {16 * targets[at]:#x}" if at in targets else opcode)
        for at, opcode in enumerate(opcodes)
    ]

    def counted(*operation, code=code, **of_warp):
        found = bench.of_operation(code, bench.Operation(*operation, **of_warp))
        return {name: found[name] for name in ("all", "memory", "moved")} if found else {}

    # two labels of a lane in four instructions
    assert counted("LDG.E.U8") == {"all": 1024 * 4 / 64, "memory": 1024 * 3 / 64, "moved": 10 / 2}
    assert counted("LDG.E.U8", 2) == {"all": 1024 * 4 / 32, "memory": 1024 * 3 / 32, "moved": 10}
    # a warp's turn of the outer loop, without and with turns of the inner loop
    assert counted("DADD", of_warp=8) == {"all": 1024 * 4 / 8, "memory": 0, "moved": 4}
    assert counted("DADD", of_warp=8, turns=3) == {
        "all": 1024 * (4 + 3 * 4) / 8, "memory": 1024 * 9 / 8, "moved": 4 + 3 * 10,
    }  # fmt: skip
    assert counted("DADD", of_warp=64) == {"all": 1024 * 4 / 64, "memory": 0, "moved": 4 / 2}
    assert counted("DADD") == counted("DADD", 2, of_warp=8) == counted("LDG.E.U8", code=[]) == {}
    # the way back from code at the end of a kernel is no loop
    away = [*code[:8], nvrtc.Instruction(128, "WARPSYNC.COLLECTIVE", ""), nvrtc.Instruction(144, "BRA", "BRA 0x10")]
    assert len(bench.loops_of(away)) == 2


def test_kernels_of_a_commit_without_them(on_bench):
    bench = on_bench("instructions")
    assert bench.source("label_space", "01c900d") != ""
    assert bench.source("scores", "01c900d") == bench.source("none", None) == ""
    assert bench.counted("", "sm_90", "i64") == {}
    assert bench.used("label_by_products", "", "sm_90") == {}


@pytest.fixture
def on_bench(monkeypatch):
    """Return an import function that loads each module of bench/ again."""
    monkeypatch.syspath_prepend(BENCH)
    for name in [name for name in sys.modules if name.split(".")[0] in {path.stem for path in BENCH.iterdir()}]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module


def test_kernel_fuzzy_c_means_is_the_literal_one(on_bench):
    """Without extension: the sums over all pairs of points, as they are defined."""
    module = on_bench("papers.cce.rsekfcm")
    rng = np.random.default_rng(0)
    X, k, m = np.vstack([rng.normal(size=(15, 2)), rng.normal(loc=4.0, size=(15, 2))]), 2, 1.7
    n, squares = len(X), np.square(X[:, None] - X).sum(axis=2)
    kernel = np.exp(-squares / squares.mean())
    drawn = np.random.default_rng(3)
    drawn.choice(n, n, replace=False)
    weights = np.zeros((n, k))
    weights[drawn.choice(n, k, replace=False), np.arange(k)] = 1.0
    before, change = np.zeros((n, k)), 1.0
    while change >= module.TOLERANCE:
        apart = np.empty((n, k))
        for i in range(n):
            for j in range(k):
                v = weights[:, j] / weights[:, j].sum()
                own = sum(v[a] * v[b] * kernel[a, b] for a in range(n) for b in range(n))
                apart[i, j] = max(kernel[i, i] - 2 * sum(v[a] * kernel[i, a] for a in range(n)) + own, 0.0)
        shares = [
            [sum((row[j] / other) ** (1 / (m - 1)) for other in row) for j in range(k)]
            for row in np.maximum(apart, 1e-30)
        ]
        memberships = 1.0 / np.array(shares)
        change, before = np.abs(memberships - before).max(), memberships
        weights = memberships**m
    expected = before.argmax(axis=1)
    found = module.labels(X, k, seed=3, size=n)
    assert np.array_equal(found, expected)
    assert {*found[:15]} != {*found[15:]}
    assert np.array_equal(
        module.labels(np.vstack([X, X]), k, seed=3, size=10)[:n],
        module.labels(np.vstack([X, X]), k, seed=3, size=10)[n:],
    )


def test_the_page_of_a_gpu_says_what_failed_where_all_of_a_part_did(on_bench):
    common, tables = on_bench("common"), on_bench("gpu_tables")
    part = common.about(["gpuens"]) | {"date": "today", "setting": {"device": {"name": "one"}}}
    rows = {"a case": {"failed": "more than 46 s"}, "another": {"failed": "killed by signal 9"}}
    parts = ("headline", "parity", "ceilings", "kernels", "end-to-end")
    record = {"quick": False, "parts": {name: part | {"rows": rows} for name in parts}}
    page = on_bench("report").Page("gpu", tables).markdown(record)
    assert page.count("a case failed: more than 46 s") == len(parts)


def test_the_page_of_a_gpu_needs_none(tmp_path):
    printed = run("gpu.py", "--only", "--output", tmp_path / "results.json")
    assert printed == (BENCH / "results" / "gpu.md").read_text()
    assert "None yet: no GPU has run any of this" in printed


def test_the_bounds_of_the_documents_are_those_of_the_results():
    results, document = (path.read_text() for path in (BENCH / "results/gpu.md", BENCH.parent / "docs/gpus.md"))
    lines = [line for line in document.split("## Bounds")[1].splitlines() if line.startswith("|")]
    assert len(lines) > 20
    assert "\n".join(lines) in results


def test_a_page_shows_what_is_there_and_a_dash_for_what_is_not(on_bench):
    report = on_bench("report")
    row = {"key": "iris", "AC": [0.5, 1.0], "base": {"iris": 0.25, "wine": 0.5}, "k": 3}
    assert report.fill("{AC:mean} {AC.1:.1f} {base.<key>:number} {base.glass:number} {k} {nothing.at.all}", row) == (
        "0.750 1.0 0.250 – 3 –"
    )
    rows = [row | {"methods": {"a": 0.5, "b": 0.25}}, row | {"key": "wine", "methods": {"a": 0.5, "b": 1.0}}]
    columns = [["set", "{key}"], ["", ""], ["<it>", "{methods.<it>:number}", "best"], ["base", "{base.<key>:number}"]]
    lines = report.table(report.expanded(columns, {"it": {"a": "A", "b": "B"}}, {}), rows, means=True).split("\n")
    assert lines[0] == "| set |  | A | B | base |"
    assert lines[2:] == [
        "| iris |  | **0.500** | 0.250 | 0.250 |",
        "| wine |  | 0.500 | **1.000** | 0.500 |",
        "| mean |  | 0.500 | **0.625** | 0.375 |",
    ]


@pytest.mark.bench
def test_every_part_of_the_script_about_chunks_runs_on_few_objects(tmp_path):
    pytest.importorskip("distributed")
    parts = rows_of("chunks.py", tmp_path, "--scratch", tmp_path)
    assert set(parts) == {"same", "scaling", "ten", "hundred", "pieces"}
    assert [("rows in pieces" in row) for row in parts["pieces"].values()] == [False, True]
    assert "failed" not in json.dumps(parts)
    compared = [row for row in parts["same"].values() if "same" in row]
    assert len(compared) == 2
    assert all(row["same"] for row in compared)
    assert sum(row.get("killed", False) for row in compared) == 1
    for row in (row for rows in parts.values() for row in rows.values()):
        assert row["peak"] > 2**20
        assert row.get("ari", 1.0) > 0.5
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "results.md", "results.png"}


@pytest.mark.bench
def test_methods_are_measured_until_too_much_is_foreseen(tmp_path):
    only = ["--only", "distinct", "--methods", "eac", "ecrmc", "pta", "--limit", 1]
    rows = rows_of("methods.py", tmp_path, *only)["distinct"]
    assert list(rows) == ["eac", "ecrmc", "pta"]
    for row in rows.values():
        assert row["ended"] == "" or "s foreseen for 1,000 objects" in row["ended"]
        assert row["fits"][0]["rows"] == 250
    assert [fit["n"] for fit in rows["eac"]["fits"]] == [250, 1000]
    assert (tmp_path / "results.png").stat().st_size > 0


@pytest.mark.bench
def test_numbers_of_clusters_are_chosen_in_every_part(tmp_path):
    parts = rows_of("choose.py", tmp_path)
    assert set(parts) == {"planted", "noise", "real", "scaling"}
    assert "failed" not in json.dumps(parts)
    assert [row["by"]["suggested"] for row in parts["planted"].values()] == [2, 3]
    assert parts["noise"]["ball"]["structure"] is False
    assert {"lifetime", "pac", "delta_area"} < parts["real"]["iris"]["by"].keys()


@pytest.mark.bench
def test_confidence_is_measured_on_every_kind_of_ensemble(tmp_path):
    parts = rows_of("confidence.py", tmp_path)
    assert {name for name, rows in parts.items() if rows} == {"kmeans", "landmarks"}  # ensembles are given files
    assert "failed" not in json.dumps(parts)
    bins = parts["kmeans"]["iris"]["bins"]
    iris = parts["kmeans"]["iris"]["methods"]["lwgp"]
    assert iris["auc"].keys() == {"certainty", "confidence", "margin", "item_consensus", "silhouette", "entropy"}
    assert iris["auc"]["certainty"][0] == pytest.approx(iris["auc"]["confidence"][0])
    assert iris["auc"]["certainty"][0] > 0.8
    n_fits = sum(len(row["wrong"]) for row in parts["kmeans"]["iris"]["methods"].values())
    assert sum(share for share, _, _ in bins["certainty"]) == pytest.approx(n_fits, abs=1e-4)
    assert iris["near"]["certainty"][0] < iris["near"]["confidence"][0]


def test_the_score_of_confidence_compares_each_wrong_object_with_each_right_one(on_bench):
    bench = on_bench("confidence")
    found, y = np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.array([5, 5, 6, 5, 5, 6, 6, -1]) - 5 * (np.arange(8) < 7)
    wrong = bench.wrong_objects(found, y)
    assert wrong.tolist() == [False, False, True, True, True, False, False, True]
    values = np.array([0.9, 0.5, 0.5, np.nan, 0.7, 0.8, 0.6, 0.1])
    pairs = [(a, b) for a in np.nan_to_num(values[wrong], nan=-1) for b in values[~wrong]]
    expected = np.mean([(b > a) + (a == b) / 2 for a, b in pairs])
    assert bench.auc(values, wrong) == pytest.approx(expected)
    right = bench.in_bins(np.array([0.05, 0.95, 1.0, 0.9]), np.array([True, False, True, False]))
    assert right[0] == pytest.approx([1 / 4, 0.05 / 4, 0])
    assert right[9] == pytest.approx([3 / 4, 2.85 / 4, 2 / 4])


def test_confidence_is_measured_on_given_ensembles(on_bench, tmp_path):
    labels, truth = structured_labels(120, 6, 3, noise=0.45, seed=1)
    np.savez(tmp_path / "some.npz", **{"a|labels": labels, "a|truth": truth + 1})
    bench = on_bench("confidence")
    row = bench.of_ensemble(tmp_path / "some.npz", "a", SimpleNamespace(seed=1))
    assert (row["n"], row["k"], row["methods"].keys()) == (120, 3, set(bench.METHODS))
    est = ge.LWEA(3).fit(labels)
    found, wrong = est.evidence().objects, bench.wrong_objects(est.labels_, truth)
    lwea = row["methods"]["lwea"]
    assert lwea["wrong"] == [wrong.mean()]
    np.testing.assert_allclose(lwea["quartiles"]["margin"][0], np.quantile(found.margin, [0.25, 0.5, 0.75]))
    near = np.abs(found.certainty - np.median(found.certainty)) <= 0.01
    assert lwea["near"]["certainty"] == [near.mean()]
    assert lwea["auc"]["certainty"] == [bench.auc(found.confidence, wrong)]
    assert np.sum(row["bins"]["certainty"], axis=0)[0] == pytest.approx(len(bench.METHODS))


@pytest.mark.bench
def test_the_quality_of_answers_is_measured_in_every_part(tmp_path):
    parts = rows_of("quality.py", tmp_path)
    assert set(parts) == {"methods", "anchors", "number", "without_k", "candidates", "large"}
    assert set(parts["methods"]["flower, kmeans, 0"]["methods"]) == {"lwea", "lwgp", "hbgf"}
    assert parts["methods"]["made up, pool, 0"]["methods"]["lwgp"]["ari"] == 1.0
    # objects labelled as noise are not scored
    assert parts["anchors"]["flower, features, 0"]["methods"]["k-means"]["ari"] == 1.0
    assert parts["number"]["flower, features, 0"]["found"]["silhouette of k-means"]["k"] == 3
    assert parts["without_k"]["flower, kmeans, 0"]["with"]["k"] == 3
    candidates = parts["candidates"]["iris, landmark, 0"]["candidates"]
    assert {"margin", "halves", "modularity"} < candidates["lwgp"].keys()
    assert parts["large"]["planted 1,000, 0"]["ari"] > 0.9


def test_methods_are_ranked_beside_the_default_on_the_sets_that_both_have(on_bench):
    report = on_bench("quality_report")

    def row(**ari):
        of = {name: {"ari": value, "nmi": value, "cpu": 1.0} for name, value in ari.items() if value is not None}
        members = dict.fromkeys(("best ari", "mean ari", "best nmi", "mean nmi"), 0.25)
        return {"group": "shapes", "default": "lwea", "members": members, "methods": of}

    rows = {
        f"{name}, kmeans, 0": row(lwea=0.5, lwgp=0.75, cspa=cspa)
        for name, cspa in zip("abc", (0.25, 0.25, None), strict=True)
    }
    rows["a, kmeans, 1"] = row(lwea=0.75, lwgp=0.75, cspa=0.5)
    lines = report.ranking(rows, "shapes, kmeans")
    assert [line["key"] for line in lines][:3] == ["lwgp", "lwea", "cspa"]
    lwgp, lwea, cspa = lines[:3]
    assert (lwgp["mean"], lwea["mean"], cspa["mean"]) == (0.75, 0.5 + 0.125 / 3, 0.3125)
    assert (lwgp["wins"], lwgp["losses"], cspa["wins"], cspa["losses"]) == (3, 0, 0, 2)
    assert (lwgp["rank"], lwea["rank"], cspa["rank"], cspa["sets"]) == (1.0, 2.0, None, 2)
    assert (lwgp["holm"], lwea["holm"]) == (
        pytest.approx(2 * math.erfc(3 / math.sqrt(2 * 3.375))),
        None,
    )  # the Wilcoxon ranks of the three differences are 1, 2.5 and 2.5


def test_answers_without_k_are_compared_with_those_with_k(on_bench, tmp_path):
    quality = on_bench("quality")
    truth = np.repeat([1, 2, 3], [10, 20, 30])
    labels = np.repeat(truth[:, None] // 3, 10, axis=1)  # the first two classes are one cluster,
    labels[:, 0] = truth  # but in one clustering of ten
    np.savez(tmp_path / "space.npz", **{"tissue|labels": labels, "tissue|truth": truth})
    row = quality.without_k("space", tmp_path / "space.npz", "tissue", "labels", 0)
    assert quality.names_in(tmp_path / "space.npz") == ["tissue"]
    assert (row["n"], row["k"], row["without"]["k"], row["without"]["largest"]) == (60, 3, 2, 0.5)
    assert (row["with"]["k"], row["with"]["ari"]) == (3, 1.0)
    assert row["without"]["ari"] == ge.metrics.ari(labels[:, 1], truth)
    assert row["members"]["mean ari"] == pytest.approx((1 + 9 * row["without"]["ari"]) / 10)


def test_a_set_counts_once_among_answers_without_k(on_bench):
    def row(k, without, *, with_k=0.8, members=0.4, warned=(), largest=0.5):
        return {
            "group": "space", "k": 4, "members": {"mean ari": members}, "with": {"ari": with_k},
            "without": {"ari": without, "k": k, "warned": list(warned), "largest": largest, "cpu": 1.0},
        }  # fmt: skip

    rows = {
        "a, labels, 0": row(6, 0.4), "a, labels, 1": row(4, 0.2, warned=["doubt"]),
        "b, labels, 0": row(3, 0.1, largest=0.9), "c, labels, 0": row(7, 0.8),
    }  # fmt: skip
    line, of_all = on_bench("quality_report").unaided(rows)
    assert (line["key"], line["sets"], of_all["sets"]) == ("3 tissues by ten spatial programs", 3, 4)
    assert line["ari"] == pytest.approx((0.3 + 0.1 + 0.8) / 3)
    assert line["share"] == pytest.approx(line["ari"] / 0.8)
    assert line["as_good"] == pytest.approx((0.5 + 0 + 1) / 3)
    assert (line["as_good_with"], line["most"], line["warned"]) == (1, 0.9, 0.25)
    assert (line["near"], line["near_silent"]) == (0.75, pytest.approx(2 / 3))  # 6, 4 and 3 are near 4
    assert (line["exact"], line["exact_silent"], line["close"]) == (0.25, 0, 0.5)


def test_p_values_are_corrected_by_holm(on_bench):
    assert on_bench("quality_report").holm([0.03, 1.0, 0.01]) == [0.03, 1.0, 0.02]


def test_the_graph_of_pairs_that_are_together_is_scored_as_if_it_were_built(on_bench):
    quality = on_bench("quality")
    labels = np.array([[0, 0], [0, 1], [0, 1], [1, 1], [1, 0], [2, 0]])
    found = np.array([0, 0, 0, 1, 1, 1])
    graph = sum((column[:, None] == column) for column in labels.T).astype(float)
    degrees, same = graph.sum(axis=1), found[:, None] == found
    expected = (graph - np.outer(degrees, degrees) / graph.sum())[same].sum() / graph.sum()
    assert quality.modularity(ge.Ensemble(labels), found) == pytest.approx(expected)
    shares = sum((column[:, None] == column) / (column[:, None] == column).sum(axis=0) for column in labels.T)
    out = [1 - shares[np.ix_(found == c, found == c)].sum() / shares[found == c].sum() for c in (0, 1)]
    assert quality.bipartite_cut(ge.Ensemble(labels), found) == pytest.approx(np.mean(out))


@pytest.mark.bench
def test_every_primitive_has_a_ceiling_and_a_share_of_it(tmp_path):
    parts = rows_of("limits.py", tmp_path)
    assert "failed" not in json.dumps(parts)
    assert all(row["rate"] > 0 for row in parts["ceilings"].values())
    assert len(parts["primitives"]) >= 20
    for row in parts["primitives"].values():
        assert row["ceiling"] in parts["ceilings"]
        assert min(row["share"], row["least"], row["together"]["cpu"], *(one["cpu"] for one in row["points"])) > 0
        assert row["power_G"] is not None or row["power_M"] is not None


def test_other_work_on_the_machine_is_said(on_bench):
    bench = on_bench("limits")
    rows = {"copy": {"rate": 1.0, "others": 0.1}, "labels": {"rate": 1.0, "others": None}}
    record = {"parts": {"ceilings": {"rows": rows}}}
    assert bench.page_values(record)["said_of_load"].endswith("while this was measured: acceptable.")
    rows["labels"]["others"] = 1.5
    said = bench.page_values(record)["said_of_load"]
    assert "the machine was loaded" in said
    assert said.endswith("during: labels.")


def test_what_a_step_grows_by_is_told_from_sizes_of_the_same_other_size(on_bench):
    bench = on_bench("limits")
    points = [{"G": g, "M": m, "cpu": 1e-6 * g**1.5 * m} for g, m in ((100, 32), (200, 32), (400, 8), (400, 32))]
    assert bench.power(points, "G") == pytest.approx(1.5)
    assert bench.power(points, "M") == pytest.approx(1.0)


def test_seconds_are_foreseen_by_the_power_of_the_last_two_fits(on_bench):
    bench = on_bench("methods")
    fits = [{"n": n, "cpu": 1e-6 * n**1.5, "memory": 100 * n} for n in (1000, 10_000, 100_000)]
    assert bench.forecast(fits, 1_000_000) == pytest.approx(1000)
    assert bench.exponent(fits, "cpu") == pytest.approx(1.5)
    assert bench.exponent(fits[:1], "cpu") is None
    assert bench.forecast(fits[:1], 2000) == pytest.approx(2e-6 * 1000**1.5)
    assert bench.forecast([], 1000) == 0


def test_a_fork_that_dies_is_a_sentence(on_bench):
    bench = on_bench("common")
    assert bench.forked(dict, limit=60) == {}
    assert "ended with -9" in bench.forked(lambda: os.kill(os.getpid(), 9), limit=60)["failed"]
    assert bench.forked(lambda: time.sleep(60), limit=0.1) == {"failed": "more than 0 s"}


@pytest.mark.bench
def test_every_shape_is_given_to_every_method(tmp_path):
    parts = rows_of("shapes.py", tmp_path, "--only", "wide", "ids", "--methods", "lwgp", "eac")
    assert set(parts) == {"wide", "ids"}
    for rows in parts.values():
        assert list(rows) == ["lwgp", "eac"]
        for row in rows.values():
            assert row["refusal"] is None
            assert row["peak"] > 2**20


# --- bench/gpu.py (its parity check has its own file, test_gpu_parity.py) ---------------------------------------------

MEASURED = ["--only", "headline", "ceilings", "kernels", "end-to-end"]


def calls_on_the_device(parts):
    """Check that every kernel is timed, and return the calls on the device with their results."""
    from gpuens.runtime import kernels

    timed = [row for case in parts["kernels"].values() for row in case["rows"]]
    assert {row["kernel"] for row in timed} == set(kernels.functions())
    for row in timed:
        assert min(row["seconds"], row["bytes"], row["operations"]) > 0, row
    assert all(row["rate"] > 0 for row in parts["ceilings"].values())
    calls = parts["headline"] | parts["end-to-end"]
    on_device = {key: row["device"] for key, row in calls.items() if "call" in row}
    assert {f"{key}, CPU" for key in on_device} | on_device.keys() == calls.keys()
    for key, row in on_device.items():
        assert row["first"] > 0
        assert calls[f"{key}, CPU"]["first"] > 0
        assert row.get("heights") == calls[f"{key}, CPU"].get("heights"), key
    assert any("heights" in row for key, row in on_device.items() if key in parts["headline"])
    return on_device


@pytest.mark.bench
def test_gpu_bench_on_the_emulated_device(tmp_path):
    np.save(tmp_path / "labels.npy", structured_labels(400, 6, 4, noise=0.1)[0])
    labels = ["--labels", tmp_path / "labels.npy"]
    parts = rows_of("gpu.py", tmp_path, "--device", "emulated", *labels, *MEASURED)
    assert "tiny: labels.npy: lwea" in calls_on_the_device(parts)


@pytest.fixture
def gpu_bench(fake_cupy, on_bench, capsys):
    """Return the module bench/gpu.py with the stand-in in place of CuPy."""
    return on_bench("gpu")


@pytest.mark.bench
def test_gpu_bench_on_a_device(gpu_bench, on_bench, tmp_path):
    """The stand-in provides events, memory and a description of the device."""
    assert gpu_bench.main(["--quick", "--output", str(tmp_path / "found.json"), *MEASURED]) == 0
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    calls = calls_on_the_device({name: part["rows"] for name, part in parts.items()})
    assert all(row["device_peak"] > 0 for row in calls.values())
    assert parts["kernels"]["setting"]["device"]["cupy"] == "13.3.0"
    launches = [launch for row in parts["kernels"]["rows"].values() for launch in row["rows"]]
    counted = {"nearest_rows", *on_bench("instructions").OPERATIONS}
    assert {launch["kernel"] for launch in launches if launch["by_instructions"]} == counted
    assert "stand-in for a GPU (" in (tmp_path / "found.md").read_text()


def test_every_stage_is_a_function_of_the_library(on_bench, monkeypatch, by_lists):
    bench = on_bench("gpu_end_to_end")
    labels = structured_labels(400, 6, 4, noise=0.3)[0]
    with bench.stages("cpu") as found:
        ge.LWEA(4, device="cpu").fit(labels)
        ge.EAC(4, linkage="single", device="cpu").fit(labels)
    assert found.keys() == {"groups", "weights", "linkage", "leaves", "nearest lists", "order of rows", "dendrogram",
                            "cut", "rounds"}  # fmt: skip
    inside = sum(found[name] for name in ("leaves", "nearest lists", "dendrogram"))
    assert found["rounds"] <= found["linkage"] - inside + 1e-9
    assert found["rounds"] > 0
    before = dict(found)
    ge.LWEA(4, device="cpu").fit(labels)
    assert found == before
    monkeypatch.setattr(bench, "STAGES", [("partition.linkage.average", "no_such_function", "linkage")])
    with pytest.raises(AttributeError, match="no_such_function"), bench.stages("cpu"):
        pass
    monkeypatch.setattr(bench, "STAGES", [("partition.linkages", "average_linkage", "linkage")])
    with pytest.raises(ImportError, match="linkages"), bench.stages("cpu"):
        pass


def test_the_headline_is_measured_once_and_on_what_is_given(on_bench, tmp_path):
    bench, paths = on_bench("gpu_end_to_end"), [tmp_path / f"covtype_{n}.npy" for n in (20, 6)]
    for path, n in zip(paths, (20, 6), strict=True):
        np.save(path, structured_labels(40, n, 4)[0])

    def keys(part, only, labels, data=None):
        options = SimpleNamespace(only=only, labels=labels, data=data, device="cuda", quick=False, made={})
        options.scratch = tmp_path
        found = []
        for key, job in part(options, lambda *_, **given: lambda: {"first": 1.0}):
            job()
            found.append(key)
        return found

    first, others = (keys(part, None, []) for part in (bench.headline, bench.end_to_end))
    assert first[:2] == ["a mixture like Covertype × 20: lwea", "a mixture like Covertype × 20: lwea, CPU"]
    assert not set(first) & set(others)
    assert keys(bench.end_to_end, ["end-to-end"], []) == first + others
    first = keys(bench.headline, None, paths, data=tmp_path)
    assert first[:4] == ["covtype_20.npy: lwea", "covtype_20.npy: lwea, CPU", *(
        f"a mixture like Covertype × 100: lwea{end}" for end in ("", ", CPU")
    )]  # fmt: skip
    assert "Covertype, features: landmarks, then hbgf" in first
    others = keys(bench.end_to_end, None, paths)
    assert not set(first) & set(others)
    assert {"covtype_20.npy: hbgf", "covtype_6.npy: lwea"} <= set(others)


def test_what_a_kernel_moves_is_said_in_words(on_bench):
    words = on_bench("report").Page("gpu", on_bench("gpu_tables")).spec["counted"]
    assert words.keys() == on_bench("gpu_launches").COUNTS.keys()


def test_gpu_bench_says_what_does_not_hold_and_what_was_left_out(gpu_bench, tmp_path, monkeypatch):
    import test_gpu_parity as parity

    from gpuens.labels import incidence

    monkeypatch.setattr(parity, "CHECKS", {"products": [parity.products]})
    monkeypatch.setitem(parity.SIZES, "emulated", (33,))
    output = tmp_path / "found.json"
    command = ["--quick", "--output", str(output), "--only"]
    assert gpu_bench.main([*command, "parity"]) == 0
    assert "all of them held" in output.with_suffix(".md").read_text()
    output.unlink()
    real = incidence.row_sums._kernel
    monkeypatch.setattr(incidence.row_sums, "_kernel", lambda *args, **options: real(*args, **options) + 1e-9)
    assert gpu_bench.main([*command, "parity"]) == 1
    parts = json.loads(output.read_text())["parts"]["parity"]["rows"]
    assert list(parts) == [f"products, {dtype}, 33 objects" for dtype in parity.DTYPES]
    assert {row["what"] for rows in parts.values() for row in rows["rows"] if not row["held"]} == {"row_sums"}
    assert "values differ" in output.with_suffix(".md").read_text()
    # the failed parity check is kept in the record
    assert gpu_bench.main([*command, "ceilings", "kernels", "--limit", "0"]) == 1
    assert "left out: 0 s of the limit were left" in output.with_suffix(".md").read_text()
