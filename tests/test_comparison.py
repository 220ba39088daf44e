"""`ge.compare`, `ge.describe` and forecasts, in Python and on the command line."""

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused, structured_labels

import gpuens as ge
from gpuens import cli, evidence, metrics
from gpuens.methods import REGISTRY
from gpuens.workflows import compare as comparison
from gpuens.workflows import costs, forecast

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


def test_fast_methods_learn_by_sums():
    fast = comparison.chosen("fast")
    assert fast == [name for name in comparison.chosen("all") if REGISTRY.load(name)().learns_by_sums]
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


def test_what_would_take_too_long_is_left_out(labels, monkeypatch):
    took = iter([1000.0, 0.01])
    monkeypatch.setattr(comparison, "foresee", lambda *given: forecast.Forecast(next(took), 1e6))
    found = ge.compare(labels[0], 4, methods=["eac", "lwgp"], max_seconds=900)
    assert found.left_out == {"eac": "would take about 17 min, more than max_seconds=900."}
    assert found.best == "lwgp"


@pytest.mark.parametrize(
    ("wrong", "kind", "sentence"),
    [
        ({"methods": []}, ValueError, "methods must be names of methods"),
        ({"methods": 5}, ValueError, "methods must be names of methods"),
        ({"methods": None}, ValueError, "methods must be names of methods"),
        ({"methods": "auto"}, ValueError, "'auto' itself runs several other methods"),
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


# --- the best of several methods --------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", pytest.param("emulated", marks=pytest.mark.kernels)])
def test_auto_is_the_answer_with_the_largest_anmi(labels, device):
    given, _ = labels
    names = ["voting", "lwgp", "eac", "hbgf"]
    est = ge.Auto(4, methods=names, device=device).fit(given)
    answers = {name: ge.consensus(given, 4, method=name) for name in names}
    anmi = {name: evidence.agreement(given, answer).anmi for name, answer in answers.items()}
    assert est.anmi_ == pytest.approx(anmi)
    assert est.choice_ == max(anmi, key=anmi.get)
    first, second = sorted(anmi.values(), reverse=True)[:2]
    assert est.margin_ == pytest.approx(first - second)
    np.testing.assert_array_equal(est.labels_, answers[est.choice_])
    np.testing.assert_array_equal(est.predict(given), est.labels_)


def test_auto_takes_what_can_run(labels, monkeypatch):
    given, _ = labels
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    est = ge.Auto(4, methods=["cspa", "lwgp"]).fit(given)
    assert est.choice_ == "lwgp"
    assert math.isnan(est.margin_)
    refused(lambda: ge.Auto(4, methods=["cspa"]).fit(given), MemoryError, "1.0 MB may be used")


def test_auto_warns_of_its_choice_alone():
    given = np.repeat(np.arange(3), 20)[:, None].repeat(5, axis=1)
    given[0, 0], given[20, 1] = 1, 2  # the labels now have five distinct rows
    with pytest.warns(UserWarning, match="clusters") as warned:
        est = ge.Auto(5, methods="mcla,voting").fit(given)
    with pytest.warns(UserWarning, match="clusters") as expected:
        ge.methods()[est.choice_](5).fit(given)
    assert [str(w.message) for w in warned] == [str(w.message) for w in expected]


def test_auto_on_the_command_line(tmp_path, labels):
    np.save(tmp_path / "l.npy", labels[0])
    assert (
        cli.main(["run", f"{tmp_path}/l.npy", "-k", "4", "--method", "auto", "--methods", "eac, lwgp", "--quiet"]) == 0
    )
    assert json.loads((tmp_path / "l.npy.auto.npy.json").read_text())["parameters"]["methods"] == "eac, lwgp"


def test_auto_with_its_own_candidates(labels):
    est = ge.Auto(4).fit(labels[0])
    assert list(est.anmi_) == ["lwgp", "hbgf", "mcla", "ecpcs-mc", "kcc", "voting"]
    assert ge.consensus(labels[0], 4, method="auto").tolist() == est.labels_.tolist()
    sampled = ge.Auto(4, reduction=ge.Sample(200)).fit(labels[0])
    assert len(sampled.labels_) == 400


@pytest.mark.parametrize("by", ["mean", "sum"])
def test_auto_labels_objects_outside_a_sample_as_its_choice_does(labels, by):
    reduction = ge.Sample(60, random_state=3, by=by)
    est = ge.Auto(4, methods="lwea", reduction=reduction).fit(labels[0])
    alone = ge.LWEA(4, reduction=reduction).fit(labels[0])
    np.testing.assert_array_equal(est.labels_, alone.labels_)
    assert type(est.similarity_) is type(alone.similarity_)
    assert not hasattr(est.set_params(methods="voting").fit(labels[0]), "similarity_")


@pytest.mark.parametrize(
    ("methods", "kind", "sentence"),
    [
        ([], ValueError, "methods must be names of methods"),
        (5, ValueError, "methods must be names of methods"),
        ("auto", ValueError, "'auto' itself runs several other methods"),
        (["lwaa"], ValueError, "did you mean 'lwea'"),
        (["ecrmc"], ValueError, "'ecrmc' needs features"),
    ],
)
def test_bad_candidates_are_refused(labels, methods, kind, sentence):
    refused(lambda: ge.Auto(4, methods=methods).fit(labels[0]), kind, sentence)


# --- forecasts --------------------------------------------------------------------------------------------------------


def fitted_nothing(*_, **__):
    raise AssertionError("a forecast fits nothing")


@pytest.mark.parametrize("shape", [(300, 4, 9), (5000, 500, 30)])
def test_a_forecast_is_about_right(shape):
    """Forecasts are right within a factor of 100 on any machine; bench/costs.py measures the errors of the models."""
    n, m, k = shape
    given = ge.Ensemble(np.random.default_rng(0).integers(0, k, (n, m)))
    for name in ("lwgp", "hbgf", "voting", "kcc"):
        estimator = ge.methods()[name](k)
        found = forecast.foresee(estimator, given)
        estimator.fit(given)
        started = time.process_time()
        estimator.fit(given)
        spent = max(time.process_time() - started, 1e-3)
        assert spent / 100 < found.seconds < spent * 100, (name, found, spent)
        assert 0 < found.memory < 1e10


def test_the_cost_of_a_method_is_that_of_its_sizes(monkeypatch):
    model = {"estimator": "KCC", "seconds": [1.0, 2.0, 1.0, 0.0, 0.0, 1.0], "memory": [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]}
    voting = {**model, "estimator": "Voting", "memory": [20.0, 1.0, 0.0, 1.0, 1.0, 0.0]}
    known = {"standard_seconds": 1.0, "methods": {"kcc": model, "voting": voting}}
    monkeypatch.setattr(costs, "models", lambda: known)
    monkeypatch.setattr(costs, "standard_seconds", lambda: 3.0)  # a slower machine
    costs.speed.cache_clear()
    try:
        assert costs.of_fit(ge.KCC(4), 100, 7, 50, 4) == (3.0 * 801.0, 10.0)
        assert costs.of_fit(ge.KCC(4, n_init=2 * ge.KCC().n_init), 100, 7, 50, 4) == (2 * 3.0 * 801.0, 10.0)
        assert costs.of_fit(ge.Auto(4, methods="kcc, voting"), 100, 7, 50, 4) == (2 * 3.0 * 801.0, 370.0)
        assert costs.of_fit(ge.Auto(4, methods="kcc, eac"), 100, 7, 50, 4) is None
        assert costs.of_fit(ge.EAC(4), 100, 7, 50, 4) is None
        assert costs.of_fit(ge.Consensus(4, similarity="coassociation", partitioner="metis"), 100, 7, 50, 4) is None
        given = np.random.default_rng(0).integers(0, 5, (200, 3))
        assert str(forecast.foresee(ge.EAC(4), given)) == "unknown"
        sampled = forecast.foresee(ge.KCC(4, reduction="sample:100"), given)
        assert sampled == (3.0 * 801.0, 10.0, None)
    finally:
        costs.speed.cache_clear()


def test_costs_go_on_as_between_the_last_two_trials():
    goes_on = forecast._extrapolated
    np.testing.assert_allclose(goes_on([(250, 9.0), (1000, 1.0), (4000, 16.0)], 40_000), 1600.0)  # quadratic growth
    np.testing.assert_allclose(goes_on([(1000, 1.0), (2000, 64.0)], 4000), 512.0)  # growth is at most cubic
    # the time is 4 s, plus 1 ms for each object
    np.testing.assert_allclose(goes_on([(1000, 5.0), (2000, 6.0)], 10_000), 14.0)
    assert goes_on([(1000, 5.0), (2000, 4.0)], 10_000) == 4.0
    assert goes_on([(500, 2.0)], 500) == 2.0


@pytest.mark.parametrize(
    ("seconds_of", "sizes", "expected"),
    [
        (lambda n: 1e-4 * n, [250, 1000], 10.0),  # three trials would take 0.525 s, more than a twentieth of 10 s
        (lambda n: 1e-3 * n, [250], 100.0),  # two trials would take 1.25 s, more than a second
        (lambda n: 1e-7 * n**2, [250, 1000], 1000.0),  # a third trial would take 1.6 s
        # the trial imported packages, so that its time does not tell the time of a fit
        (lambda n: 20.0, [250], math.nan),
    ],
)
def test_trials_end_when_they_tell_or_cost_too_much(monkeypatch, seconds_of, sizes, expected):
    clock, tried = [0.0], []
    monkeypatch.setattr(forecast.time, "perf_counter", lambda: clock[0])

    def work(some):
        def do():
            tried.append(len(some))
            clock[0] += seconds_of(len(some))

        return do

    found = forecast.of_trials(work, 100_000, 5)
    assert tried == sizes
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_holds_of_some_objects_need_not_hold_of_all():
    def refuse():
        raise ValueError("too few.")

    assert math.isnan(forecast.of_trials(lambda some: refuse, 5000, 3))


def test_a_fit_that_would_be_refused_is_foreseen(monkeypatch, labels):
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    found = forecast.foresee(ge.CSPA(4), labels[0])
    assert math.isnan(found.seconds)
    assert "1.0 MB may be used" in one_sentence(found.refusal)
    assert str(found) == found.refusal
    monkeypatch.setenv("GPUENS_MEMORY", "1.6MB")
    distinct = np.unique(labels[0], axis=0)
    refusal = forecast.foresee(ge.PTGP(4), distinct).refusal  # the similarity, not the partitioner, raises the error
    refused(lambda: ge.PTGP(4).fit(distinct), MemoryError, refusal[:50])


def test_advice_is_for_fits_of_minutes(monkeypatch, sizes):
    sizes("forecast", MANY=5000)
    asked, took = [], {}

    def foresee(estimator, labels):
        asked.append(type(estimator).__name__)
        return forecast.Forecast(took[asked[-1]], 1e6)

    monkeypatch.setattr(forecast, "foresee", foresee)
    noise = ge.Ensemble(np.random.default_rng(0).integers(0, 9, (6000, 8)))
    given = ge.LWEA(4), ge.LWGP(4)
    for seconds, expected in (
        ({"LWEA": 300.0, "LWGP": 4.0}, (300.0, 4.0)),
        ({"LWEA": 300.0, "LWGP": 40.0}, None),
        ({"LWEA": 300.0, "LWGP": math.nan}, None),
        ({"LWEA": 90.0}, None),
        ({"LWEA": math.nan}, None),
    ):
        took.clear()
        took.update(seconds)
        assert forecast.advice(*given, noise) == expected
    asked.clear()
    assert forecast.advice(*given, noise.take(slice(0, 4999))) is None  # few objects: no advice is given
    # few distinct rows: no advice is given
    assert forecast.advice(*given, ge.Ensemble(np.arange(6000)[:, None].repeat(3, axis=1) % 7)) is None
    assert asked == []


def test_a_run_of_minutes_advises(folder, capsys, monkeypatch):
    monkeypatch.setattr(forecast, "advice", lambda own, other, ensemble: (400.0, 3.0))
    assert cli.main(["run", "labels.csv", "-k", "4", "--method", "lwea"]) == 0
    said = "lwea may take about 7 min on these labels; --method lwgp may take about 3 s"
    assert said in capsys.readouterr().out.splitlines()
    for words in (
        "run labels.csv -k 4",
        "run labels.csv -k 4 --method lwea --theta 1",
        "run labels.csv -k 4 --method lwea --quiet",
    ):
        assert cli.main(words.split()) == 0
        assert said not in capsys.readouterr().out


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
    monkeypatch.setattr(ge.Consensus, "fit", fitted_nothing)
    found = ge.describe(labels[0], 4)
    assert found.methods.keys() == ge.methods().keys() - {"auto"}
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["methods"]["ecrmc"]["seconds"] is None
    assert found.methods["ecrmc"].refusal == "needs features of the objects."
    able = {name: each for name, each in found.methods.items() if each.refusal is None}
    # ECRMC and TOME need features, HGPA needs a package
    assert able.keys() >= found.methods.keys() - {"ecrmc", "tome", "hgpa"}
    assert all(each.seconds > 0 and each.memory > 0 for each in able.values())


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
    assert lines[0].split() == [
        "anmi",
        "ecs",
        "item",
        "silh.",
        "nmi",
        "ari",
        "accuracy",
        "clusters",
        "smallest",
        "largest",
        "time",
        "memory",
    ]
    assert {line.split()[0] for line in lines[1:3]} == {"eac", "lwgp"}
    assert re.search(r"^best agreement: (eac|lwgp), by 0\.\d+$", said, re.MULTILINE)
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
        return [
            {name: row[name] for name in ("anmi", "nmi", "ari")}
            for row in json.loads(capsys.readouterr().out)["methods"]
        ]

    expected = rows("labels.csv --truth truth.csv")
    assert rows("all.csv --truth kind") == expected
    assert rows("all.csv --truth all.csv:kind --columns a,b,c,d,e,f") == expected
    assert rows("all.csv --truth turned.csv:kind --exclude kind") == expected
    assert rows("all.csv --truth turned.csv:kind --exclude kind --id-column cell") == expected
    assert rows("unnamed.csv --truth all.csv:7") == expected
    assert rows("labels.csv --exclude f --truth f.csv") == rows(
        "labels.csv --exclude f --truth f"
    )  # only the columns of labels are scored
    assert rows("labels.csv --truth f") == rows("labels.csv --exclude f --truth f")


def test_describe_on_the_command_line(folder, capsys):
    assert cli.main(["describe", "labels.csv", "--no-forecasts"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("labels.csv: 400 objects, 6 clusterings with ")
    assert [line.split()[0] for line in lines[2:8]] == list("abcdef")
    assert cli.main(["describe", "labels.csv", "--no-forecasts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_objects"] == 400


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("compare labels.csv", 2, "-k"),
        ("compare labels.csv -k 4 --methods lwaa", 3, "did you mean 'lwea'"),
        ("compare labels.csv -k 4 --truth labels.csv --methods eac", 3, "choose one by --truth FILE:COLUMN"),
        (
            "compare labels.csv -k 4 --truth nothing --methods eac",
            3,
            "--truth=nothing is neither a label file nor a single column",
        ),
        ("compare labels.csv -k 4 --truth labels.csv:nothing --methods eac", 3, "there is no column 'nothing'"),
        ("compare labels.csv -k 4 --report page.txt", 2, ".html"),
        ("describe nowhere.csv", 3, "does not exist"),
        ("describe labels.csv -k 1000", 3, "n_clusters=1000"),
    ],
)
def test_bad_commands_are_refused(folder, capsys, words, code, sentence):
    assert cli.main(words.split()) == code
    assert sentence in one_sentence(capsys.readouterr().err.removeprefix("gpuens: ").rstrip("\n"))
