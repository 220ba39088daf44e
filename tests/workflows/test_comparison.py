"""`ge.compare` and `ge.describe`, in Python and on the command line."""

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused, structured_labels
from scipy.stats import t as student_t
from scipy.stats import ttest_1samp

import gpuens as ge
from gpuens import cli, evidence, metrics
from gpuens.cli.compare import latex
from gpuens.methods import REGISTRY
from gpuens.workflows import compare as comparison

FEW = ["eac", "lwgp", "cspa"]


@pytest.fixture(scope="module")
def labels():
    return structured_labels(400, 6, 4, noise=0.15, missing=0.05, seed=3)


@pytest.fixture(scope="module")
def found(labels):
    return ge.compare(labels[0], 4, methods=FEW, truth=labels[1])


def test_rows_are_what_the_methods_answer(labels, found):
    given, truth = labels
    assert sorted(found.labels) == sorted(FEW)
    assert found.left_out == {}
    for row in found.rows:
        answer = found.labels[row["method"]]
        np.testing.assert_array_equal(answer, ge.consensus(given, 4, method=row["method"]))
        close, sure = evidence.agreement(given, answer), evidence.objects(given, answer)
        assert row["anmi"] == close.anmi
        assert row["ecs"] == close.mean_ecs
        assert row["item_consensus"] == np.nanmean(sure.item_consensus)
        assert row["silhouette"] == sure.silhouette.mean()
        sizes = np.bincount(answer)
        assert (row["n_clusters"], row["smallest"], row["largest"]) == (len(sizes), sizes.min(), sizes.max())
        scores = metrics.scores(answer, truth)
        assert (row["nmi"], row["ari"], row["accuracy"]) == (scores["nmi"], scores["ari"], scores["accuracy"])
        assert row["seconds"] > 0
    assert [row["anmi"] for row in found.rows] == sorted((row["anmi"] for row in found.rows), reverse=True)
    assert found.best == found.rows[0]["method"]
    assert found.margin == found.rows[0]["anmi"] - found.rows[1]["anmi"]


def test_table_and_agreement(found):
    assert found.table.index.tolist() == [row["method"] for row in found.rows]
    agreement = found.agreement
    for one in FEW:
        for other in FEW:
            expected = metrics.nmi(found.labels[one], found.labels[other])
            np.testing.assert_allclose(agreement.loc[one, other], expected)
    json.dumps(found.to_dict())


def test_the_picture_shows_the_agreement(found):
    image = ge.plotting.answers(found).images[0].get_array()
    np.testing.assert_array_equal(image, found.agreement.to_numpy())


def test_the_picture_has_a_row_for_each_method_and_a_panel_for_each_score(labels):
    given, truth = labels
    found = ge.compare(given, 4, methods=["kcc", "voting", "eac"], truth=truth, repeat=3)
    panels = ge.plotting.comparison(found)
    for ax, score in zip(panels, ("anmi", "ari", "item_consensus", "seconds"), strict=True):
        dots = ax.collections[-1].get_offsets()
        np.testing.assert_allclose(dots[:, 0], [row[score] for row in found.rows])
        assert ax.get_ylim() == (3.6, -0.6)
    assert [text.get_text() for text in panels[0].get_yticklabels()] == [row["method"] for row in found.rows]
    assert panels[0].texts[0].get_position()[0] == found.truth["anmi"]
    assert panels[3].get_xscale() == "log"
    lines = panels[0].collections[0].get_segments()
    assert [len(line) > 0 for line in lines] == [row["anmi_std"] is not None for row in found.rows]
    refused(lambda: ge.plotting.comparison(found, ["purity"]), ValueError, "scores must be")
    refused(lambda: ge.plotting.comparison(given), TypeError, "result must be what ge.compare")


def test_fast_methods_learn_by_sums():
    fast = comparison.select_methods("fast")
    assert fast == [name for name in comparison.select_methods("all") if REGISTRY.load(name)().parts().learns_by_sums]
    assert {"lwgp", "hbgf"} <= set(fast)
    assert not {"eac", "cspa"} & set(fast)


def test_what_cannot_run_is_left_out_with_the_reason(labels, monkeypatch):
    given, _ = labels
    found = ge.compare(given, 4, methods=["lwgp", "ecrmc"])
    assert found.left_out == {"ecrmc": "needs features of the objects."}
    assert math.isnan(found.margin)
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")  # CSPA's graph of 400 rows does not fit
    found = ge.compare(given, 4, methods=["lwgp", "cspa"])
    assert "1.0 MB may be used" in one_sentence(found.left_out["cspa"])


def test_what_takes_too_long_is_ended_and_left_out(labels, monkeypatch):
    fit = comparison._timed_fit

    def slow(estimator, *given):
        if type(estimator) is ge.EAC:
            time.sleep(60)
        return fit(estimator, *given)

    monkeypatch.setattr(comparison, "_timed_fit", slow)
    started = time.perf_counter()
    found = ge.compare(labels[0], 4, methods=["eac", "lwgp"], max_seconds=2)
    assert time.perf_counter() - started < 30
    assert found.left_out == {"eac": "took more than 2 s."}
    assert found.best == "lwgp"


@pytest.mark.parametrize(
    ("wrong", "kind", "sentence"),
    [
        ({"methods": []}, ValueError, "methods must be names of methods"),
        ({"methods": 5}, ValueError, "methods must be names of methods"),
        ({"methods": None}, ValueError, "methods must be names of methods"),
        ({"n_clusters": 401}, ValueError, "n_clusters=401"),
        ({"truth": [-1] * 400}, ValueError, "truth has no label for any object"),
        ({"truth": [0.5] * 400}, ValueError, "truth"),
        ({"features": np.zeros((10, 2)), "methods": "ecrmc"}, ValueError, "features have 10 rows"),
        ({"features": "x", "methods": "ecrmc"}, TypeError, "features must be an array"),
        ({"features": np.zeros((400, 2))}, ValueError, "features were given, but none of eac needs them"),
        ({"methods": ["lwaa"]}, ValueError, "did you mean 'lwea'"),
        ({"n_clusters": 0}, ValueError, "n_clusters"),
        ({"n_clusters": None}, ValueError, "n_clusters"),
        ({"max_seconds": 0}, ValueError, "max_seconds"),
        ({"truth": [0, 1]}, ValueError, "truth must hold one value for each of the 400"),
        ({"methods": ["ecrmc"]}, ValueError, "no method is left to compare"),
    ],
)
def test_bad_arguments_are_refused(labels, wrong, kind, sentence):
    refused(lambda: ge.compare(labels[0], **{"n_clusters": 4, "methods": ["eac"], **wrong}), kind, sentence)


# --- describe ---------------------------------------------------------------------------------------------------------


def test_a_description_counts_what_is_there(labels):
    given = np.column_stack([labels[0], np.zeros(400, int), np.arange(400) % 200])
    with pytest.warns(UserWarning, match="constant"):
        ensemble = ge.Ensemble(given)
    found = ge.describe(ensemble, forecasts=False)
    assert (found.n_objects, found.n_clusterings, found.methods) == (400, 8, {})
    assert found.n_distinct == len(np.unique(given, axis=0))
    np.testing.assert_allclose(found.missing, (given < 0).mean())
    nmi = ge.contingency.agreement(ensemble)
    for m, column in enumerate(found.columns):
        known = given[given[:, m] >= 0, m]
        sizes = np.unique(known, return_counts=True)[1]
        assert (column["n_clusters"], column["smallest"], column["largest"]) == (len(sizes), min(sizes), max(sizes))
        np.testing.assert_allclose(column["missing"], (given[:, m] < 0).mean())
        np.testing.assert_allclose(column["agreement"], np.delete(nmi[m], m).mean())
    assert found.columns[6]["odd"] == "it puts all objects together"
    assert "200 values" in found.columns[7]["odd"]
    assert [column["odd"] for column in found.columns[:6]] == [None] * 6


def test_every_method_is_foreseen(labels, monkeypatch):
    def fitted_nothing(*_, **__):
        raise AssertionError("a forecast fits nothing")

    monkeypatch.setattr(ge.Consensus, "fit", fitted_nothing)
    found = ge.describe(labels[0], 4)
    assert found.methods.keys() == ge.methods().keys()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["methods"]["ecrmc"] == {"memory": None, "refusal": "needs features of the objects."}
    able = {name: each for name, each in found.methods.items() if each.refusal is None}
    # ECRMC and TOME need features, HGPA needs a package
    assert able.keys() >= found.methods.keys() - {"ecrmc", "tome", "hgpa"}
    assert all(each.memory > 0 for each in able.values())
    assert told["methods"]["lwgp"]["memory"] == found.methods["lwgp"].memory


@pytest.mark.parametrize("n_clusterings", [1, 6, 300])
def test_a_printed_description_is_a_screen(n_clusterings):
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (400, n_clusterings)))
    found = ge.describe(ge.Ensemble(frame.to_numpy(), names=[f"{'long name ' * 9}{m}" for m in frame]), 1)
    lines = repr(found).splitlines()
    assert lines[0].startswith(f"Description: 400 objects, {n_clusterings} clustering{'s' * (n_clusterings > 1)} with ")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert "peak memory for 1 cluster: " in repr(found)
    assert ("more in columns" in repr(found)) == (n_clusterings == 300)


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch, labels):
    monkeypatch.chdir(tmp_path)
    given, truth = labels
    pd.DataFrame(np.where(given < 0, "", given.astype(str)), columns=list("abcdef")).to_csv("labels.csv", index=False)
    pd.DataFrame({"truth": truth}).to_csv("truth.csv", index=False)


def test_compare_on_the_command_line(folder, capsys, found):
    words = ["compare", "labels.csv", "-k", "4", "--methods", "eac,lwgp,ecrmc", "--truth", "truth.csv"]
    assert cli.main([*words, "--report", "page.html"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    columns = "anmi ecs item silh. nmi nmi_max ari accuracy clusters smallest largest time memory"
    assert lines[0].split() == columns.split()
    assert {line.split()[0] for line in lines[1:3]} == {"eac", "lwgp"}
    assert re.search(r"^(eac|lwgp) agrees best with the base clusterings: its ANMI is 0\.\d{3}\.$", said, re.MULTILINE)
    assert "left out: ecrmc: needs features of the objects." in lines
    page = Path("page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "data:image/png;base64," in page
    assert "<td>ecrmc</td><td>needs features" in page
    assert cli.main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in told["methods"]] == [line.split()[0] for line in lines[1:3]]
    (eac,) = (row for row in found.rows if row["method"] == "eac")
    (again,) = (row for row in told["methods"] if row["method"] == "eac")
    assert again["anmi"] == eac["anmi"]


def test_repeated_methods_have_means_and_deviations(labels):
    given, truth = labels
    found = ge.compare(given, 4, methods=["kcc", "eac"], truth=truth, repeat=3, random_state=5)
    runs = [ge.compare(given, 4, methods=["kcc"], truth=truth, random_state=seed) for seed in (5, 6, 7)]
    rows = {row["method"]: row for row in found.rows}
    for name in ("anmi", "ecs", "item_consensus", "silhouette", "nmi", "nmi_max", "ari", "accuracy"):
        values = [run.rows[0][name] for run in runs]
        assert rows["kcc"][name] == pytest.approx(np.mean(values))
        assert rows["kcc"][f"{name}_std"] == pytest.approx(np.std(values, ddof=1))
        assert rows["eac"][f"{name}_std"] is None
    assert (rows["eac"]["n_runs"], rows["kcc"]["n_runs"]) == (1, 3)
    best = max(runs, key=lambda run: run.rows[0]["anmi"])
    np.testing.assert_array_equal(found.labels["kcc"], best.labels["kcc"])
    assert rows["kcc"]["largest"] == np.bincount(best.labels["kcc"]).max()
    with pytest.raises(ValueError, match="repeat"):
        ge.compare(given, 4, methods=["eac"], repeat=0)


def test_the_table_of_a_comparison_is_written(folder, capsys, labels):
    words = ["compare", "labels.csv", "-k", "4", "--methods", "eac,kcc", "--truth", "truth.csv", "--repeat", "3"]
    assert cli.main([*words, "-o", "table.csv", "--json"]) == 0
    told = {row["method"]: row for row in json.loads(capsys.readouterr().out)["methods"]}
    written = pd.read_csv("table.csv", index_col="method")
    for name in ("anmi", "nmi_max", "nmi_max_std", "largest"):
        assert written.loc["kcc", name] == pytest.approx(told["kcc"][name])
    assert written["nmi_max_std"].isna().to_dict() == {"eac": True, "kcc": False}
    answer = ge.compare(labels[0], 4, methods=["eac"]).labels["eac"]
    assert told["eac"]["nmi_max"] == metrics.scores(answer, labels[1])["nmi_max"]
    assert cli.main([*words, "-o", "table.tex"]) == 0
    printed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()[1:3]}
    assert "±" not in printed["eac"]
    assert printed["eac"].index(".") == printed["kcc"].index(".")
    lines = Path("table.tex").read_text().splitlines()
    assert lines[1] == r"\begin{tabular}{l" + "r" * 14 + "}"
    assert (lines[2], lines[-2], lines[-1]) == (r"\toprule", r"\bottomrule", r"\end{tabular}")
    assert r" & nmi & nmi\_max & ari & accuracy & p & " in lines[3]
    (kcc,) = (line for line in lines if line.startswith("kcc & "))
    assert kcc.startswith(rf"kcc & {told['kcc']['anmi']:.3f} $\pm$ {told['kcc']['anmi_std']:.3f} & ")
    assert {line.count(" & ") for line in lines if line.endswith(r"\\")} == {14}
    assert "<" not in kcc.replace("$<$", "")


def test_names_are_escaped_for_latex(found):
    text = latex([found.rows[0] | {"method": "a_b & 50%"}])
    assert r"a\_b \& 50\% & 0." in text


def test_the_best_is_tested_against_the_others(labels):
    """The oracle is SciPy's paired t-test of seeds; draws overlap, which makes the error larger."""
    given, _ = labels
    found = ge.compare(given, 4, methods=["kcc", "voting", "eac", "lwea"], repeat=5, random_state=3)
    anmi = {name: [run["anmi"] for run in runs] for name, runs in found.runs.items()}
    first, *others = found.rows
    assert first["p"] is None
    exact = []
    for row in others:
        runs = np.subtract(anmi[found.best], anmi[row["method"]])  # one run stands for all of a method without seeds
        assert row["difference"] == pytest.approx(runs.mean())
        if len(runs) == 1 or not runs.std():
            assert row["p"] is None
            continue
        test = ttest_1samp(runs, 0.0)
        exact.append(test.pvalue)
        low, high = test.confidence_interval()
        assert (row["difference_low"], row["difference_high"]) == (pytest.approx(low), pytest.approx(high))
    by_holm = np.maximum.accumulate(np.sort(exact) * np.arange(len(exact), 0, -1)).clip(max=1)
    assert sorted(row["p"] for row in others if row["p"] is not None) == pytest.approx(by_holm)


def test_draws_of_the_clusterings_vary_all_methods(labels):
    given, truth = labels
    found = ge.compare(given, 4, methods=["eac", "lwea"], truth=truth, repeat=4, share=0.5, random_state=1)
    assert {row["n_runs"] for row in found.rows} == {4}
    assert all(row["anmi_std"] > 0 for row in found.rows)
    differences = np.subtract(*([run["anmi"] for run in found.runs[row["method"]]] for row in found.rows))
    error = differences.std(ddof=1) * np.sqrt(1 / 4 + 1)  # half of the clusterings: m / (M - m) = 1
    half = found.rows[1]["difference_high"] - differences.mean()
    assert half == pytest.approx(student_t(3).ppf(0.975) * error)
    assert "4 draws of 50 % of the base clusterings" in found.answer[0]
    assert found.truth["anmi"] == evidence.agreement(given, truth).anmi
    for wrong, sentence in (({"share": 0.5}, "give repeat"), ({"share": 0.2, "repeat": 2}, "at least 2")):
        refused(lambda wrong=wrong: ge.compare(given, 4, methods=["eac"], **wrong), ValueError, sentence)


@pytest.mark.filterwarnings("ignore:path")
def test_the_truth_is_a_column_of_the_labels_or_of_another_file(folder, capsys, labels):
    """If both files name the objects, their orders may differ. Excluded columns of the labels change nothing."""
    given, truth = labels
    table = pd.DataFrame(given, columns=list("abcdef")).assign(kind=truth)
    table.insert(0, "cell", [f"c{i}" for i in range(len(truth))])
    table.to_csv("all.csv", index=False)
    table.iloc[::-1].to_csv("turned.csv", index=False)
    table.drop(columns=["cell", "kind"]).to_csv("unnamed.csv", index=False)
    table["f"].to_csv("f.csv", index=False)

    def rows(words):
        assert cli.main(f"compare {words} -k 4 --methods eac,kcc --json".split()) == 0
        told = json.loads(capsys.readouterr().out)["methods"]
        return [{name: row[name] for name in ("anmi", "nmi", "ari")} for row in told]

    expected = rows("labels.csv --truth truth.csv")
    for words in (
        "all.csv --truth kind",
        "all.csv --truth all.csv:kind --columns a,b,c,d,e,f",
        "all.csv --truth turned.csv:kind --exclude kind",
        "all.csv --truth turned.csv:kind --exclude kind --id-column cell",
        "unnamed.csv --truth all.csv:7 --by-position",
    ):
        assert rows(words) == expected, words
    without = rows("labels.csv --exclude f --truth f")  # only the columns of labels are scored
    assert rows("labels.csv --exclude f --truth f.csv") == rows("labels.csv --truth f") == without


def test_describe_on_the_command_line(folder, capsys):
    assert cli.main(["describe", "labels.csv", "--no-forecasts"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("labels.csv: 400 objects, 6 clusterings with ")
    assert [line.split()[0] for line in lines[2:8]] == list("abcdef")
    assert cli.main(["describe", "labels.csv", "--no-forecasts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_objects"] == 400
