"""Results of batches: labels, pages, markers, summaries, forecasts and remaining jobs."""

import csv
import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from batches import LABELS, call, contents, events, folder, job  # noqa: F401
from conftest import refused

import gpuens as ge
from gpuens import batch, cli
from gpuens.batch.manifest import load
from gpuens.io import atomic
from gpuens.io.shapes import label_shape
from gpuens.methods import LWGP
from gpuens.methods.forecast import foresee
from gpuens.runtime import checks

pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")


def test_a_job_leaves_labels_a_page_and_a_marker(folder, call):
    Path("jobs.yaml").write_text(yaml.safe_dump({"jobs": [job(report=True, format="parquet"), job("b")]}))
    code, out, err = call("jobs.yaml")
    assert code == 0
    assert out == "2 jobs: 2 done\nwritten: jobs.results/summary.csv\n"
    assert "a: fit (seconds " in err
    names = ["a.html", "a.json", "a.labels.parquet", "b.json", "b.labels.npy", "events.jsonl", "summary.csv"]
    assert sorted(os.listdir("jobs.results")) == names
    expected = LWGP(3).fit(LABELS["a"])
    found = pd.read_parquet("jobs.results/a.labels.parquet")["label"].to_numpy()
    np.testing.assert_array_equal(found, expected.labels_)
    marker = json.loads(Path("jobs.results/a.json").read_text())
    assert marker["sha256"] == atomic.digest("jobs.results/a.labels.parquet")
    assert (marker["id"], marker["status"], marker["n_clusters"], marker["method"]) == ("a", "ok", 3, "lwgp")
    assert marker["parameters"] == expected.get_params()
    assert marker["gpuens"] == ge.__version__
    assert set(marker["seconds"]) == {"start", "read", "fit", "write", "report", "other", "total"}
    page = Path("jobs.results/a.html").read_text()
    assert "of 60 objects into 3 clusters, " in page
    assert page.count("<figure") == 8
    rows = list(csv.DictReader(Path("jobs.results/summary.csv").read_text().splitlines()))
    assert [(row["id"], row["status"], row["n_objects"]) for row in rows] == [("a", "done", "60"), ("b", "done", "60")]
    stages = [told["stage"] for told in events("jobs.results") if told["event"] == "stage" and told["job"] == "a"]
    assert stages == ["read", "fit", "write", "report"]
    assert all(told["host_bytes"] > 10**7 for told in events("jobs.results") if told["event"] == "stage")


def test_more_clusterings_than_objects_are_read_where_that_is_said(folder):
    labels = np.random.default_rng(0).integers(0, 3, (8, 30))
    np.save("wide.npy", labels)
    wide = job("a", input="wide.npy", n_clusters=2, wide=True)
    found = batch.run([wide, job("b", input="wide.npy", n_clusters=2)], "out")
    assert [row["status"] for row in found.jobs] == ["done", "failed"]
    np.testing.assert_array_equal(np.load("out/a.labels.npy"), LWGP(2).fit(list(labels.T)).labels_)
    refused(lambda: load([{**wide, "scheduler": "threads"}]), ValueError, "wide is for files that are read in one")


def test_a_summary_holds_no_formulas(folder):
    shutil.copy("data/a.npy", "=a.npy")
    batch.run([job("a", input="=a.npy"), job("b", input="=gone.npy")], "out")
    rows = list(csv.DictReader(Path("out/summary.csv").read_text().splitlines()))
    assert [row["input"] for row in rows] == ["'=a.npy", "'=gone.npy"]


def test_lines_on_stderr_are_json_where_asked_for(folder, call):
    Path("jobs.jsonl").write_text(json.dumps(job()))
    _, out, err = call("jobs.jsonl --log-format json --quiet")
    assert out == ""
    assert [json.loads(line) for line in err.splitlines()] == events("jobs.results")
    assert call("jobs.jsonl --quiet") == (0, "", "")


def test_a_second_run_does_nothing_and_a_changed_job_is_done_again(folder):
    manifest = [job(), job("b")]
    first = batch.run(manifest, "out")
    assert (first.done, first.already, first.failed, first.exit_code) == (2, 0, 0, 0)
    before = contents()
    again = batch.run(manifest, "out")
    assert (again.done, again.already, again.exit_code) == (0, 2, 0)
    assert contents() == before
    assert [row["status"] for row in again.jobs] == ["done", "done"]

    np.save("data/b.npy", LABELS["c"])  # the input file changes
    assert batch.run(manifest, "out").done == 1
    assert contents()["a.labels.npy"] == before["a.labels.npy"]
    assert contents()["b.labels.npy"] != before["b.labels.npy"]
    manifest[0]["parameters"] = {"theta": 0.1}
    assert batch.run(manifest, "out").done == 1
    manifest[0]["format"] = "csv"
    batch.run(manifest, "out")
    assert sorted(contents()) == ["a.json", "a.labels.csv", "b.json", "b.labels.npy"]
    os.unlink("out/a.labels.csv")
    assert batch.run(manifest, "out").done == 1
    Path("out/a.json").write_text("{ damaged")
    assert batch.run(manifest, "out").done == 1
    assert batch.run(manifest, "out", force=True).done == 2


def test_with_checksums_a_touched_input_is_the_same(folder):
    for checksum, done in ((False, 1), (True, 0)):
        batch.run([job()], "out", checksum=checksum)
        os.utime("data/a.npy", ns=(1, 1))
        assert batch.run([job()], "out", checksum=checksum).done == done
        os.utime("data/a.npy")


def test_another_minor_version_does_it_again(folder, monkeypatch):
    batch.run([job()], "out")
    major, minor, patch = ge.__version__.split(".")
    for version, done in ((f"{major}.{minor}.{int(patch) + 1}", 0), (f"{major}.{int(minor) + 1}.0", 1)):
        monkeypatch.setattr("gpuens.batch.job.__version__", version)
        assert batch.run([job()], "out").done == done


def test_jobs_of_many_kinds(folder):
    np.save("data/x.npy", np.random.default_rng(0).normal(size=(60, 3)))
    frame = pd.DataFrame(LABELS["a"], columns=list("uvwxyz")).assign(name=[f"o{i}" for i in range(60)])
    frame.to_csv("data/named.csv", index=False)
    manifest = [
        job("a", method="ecrmc", features="data/x.npy", parameters={"n_neighbors": 5}),
        job("b", scheduler="threads", chunk_rows=25),
        {"id": "named", "input": "data/named.csv", "id_column": "name", "n_clusters": 3, "format": "csv"},
        {"id": "pair", "input": "data/a.npy", "n_clusters": 3, "similarity": "lwca:theta=0.2", "partitioner": "single"},
    ]
    pytest.importorskip("dask")
    outcome = batch.run(manifest, "out")
    assert (outcome.done, outcome.exit_code) == (4, 0), outcome
    assert pd.read_csv("out/named.labels.csv").columns.tolist() == ["name", "label"]
    np.testing.assert_array_equal(np.load("out/b.labels.npy"), LWGP(3).fit(LABELS["b"]).labels_)
    expected = ge.Consensus(3, similarity="lwca:theta=0.2", partitioner="single").fit(LABELS["a"])
    np.testing.assert_array_equal(np.load("out/pair.labels.npy"), expected.labels_)


@pytest.mark.parametrize(("n_clusters", "failed"), [(3, 0), (61, 1)])
def test_warnings_are_in_the_marker(folder, n_clusters, failed):
    """Also those of a job that fails."""
    np.save("data/a.npy", np.column_stack([LABELS["a"], np.zeros(60, int)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert batch.run([job(n_clusters=n_clusters)], "out").failed == failed
    (said,) = json.loads(Path("out/a.json").read_text())["warnings"]
    assert said.startswith("constant clusterings carry no information")
    assert [told["message"] for told in events() if told["event"] == "warning"] == [said]


def test_a_batch_that_stops_names_the_option_that_goes_on_and_the_jobs_that_failed(folder, call, sizes):
    gone = [job(f"gone{i}", input=f"data/gone{i}.npy") for i in range(3)]
    told = [f"failed: gone{i}: path 'data/gone{i}.npy' does not exist; check the name." for i in range(3)]
    Path("jobs.yaml").write_text(yaml.safe_dump([gone[0], job("a"), *gone[1:]]))
    code, out, _ = call("jobs.yaml")
    assert code == 3
    assert out.splitlines() == [
        "4 jobs: 1 failed, 3 pending",
        told[0],
        "stopped at the first failure; --keep-going continues after failures",
        "written: jobs.results/summary.csv",
    ]
    sizes("cli.batch", MOST_FAILED=2)
    code, out, _ = call("jobs.yaml --keep-going")
    assert code == 4
    assert out.splitlines() == [
        "4 jobs: 1 done, 3 failed",
        *told[:2],
        "failed: 1 more, see summary.csv",
        "written: jobs.results/summary.csv",
    ]
    Path("jobs.yaml").write_text(yaml.safe_dump([job("a"), job("gone")]))
    assert "--keep-going" not in call("jobs.yaml --out last")[1]  # no job is left


def test_a_forecast_writes_nothing(folder, call):
    Path("jobs.yaml").write_text(yaml.safe_dump([job(), job("b"), job("gone")]))
    code, out, _ = call("jobs.yaml --dry-run")
    assert code == 0
    assert not Path("jobs.results").exists()
    size = os.path.getsize("data/a.npy")
    memory = checks.human_bytes(foresee(LWGP(3), label_shape("data/a.npy")).memory)
    assert out.splitlines() == [
        f"a: {size / 1000:.1f} kB of input, {memory} of memory",
        f"b: {size / 1000:.1f} kB of input, {memory} of memory",
        "gone: would fail: path 'data/gone.npy' does not exist; check the name.",
        f"3 jobs, 3 to do: {2 * size / 1000:.1f} kB of input, at most {memory} of memory for a job, 1 would fail",
    ]
    call("jobs.yaml --shard 1/3")
    assert call("jobs.yaml --dry-run --shard 1/3")[1].splitlines() == [
        "a: done", "1 job in shard 1/3, 0 to do: 0 bytes of input",
    ]  # fmt: skip


def test_a_job_beyond_the_memory_would_fail_with_the_sentence_of_the_job(folder, call, monkeypatch):
    Path("jobs.yaml").write_text(yaml.safe_dump([job()]))
    monkeypatch.setenv("GPUENS_MEMORY", "50MB")  # less than the process itself
    said = call("jobs.yaml --dry-run")[1].splitlines()[0]
    needed = checks.human_bytes(foresee(LWGP(3), label_shape("data/a.npy")).memory)
    assert f"needs {needed} and 50.0 MB may be used; read the labels in chunks, scheduler='threads' (" in said
    call("jobs.yaml --force")
    assert said.removeprefix("a: would fail: ") in Path("jobs.results/a.json").read_text()


def test_a_forecast_opens_the_header_of_every_input(folder, call):
    """A forecast finds faults in the header of a file without reading the data behind it."""
    Path("data/cut.npy").write_bytes(Path("data/a.npy").read_bytes()[:-1])
    Path("data/text.npy").write_text("no array")
    np.savez("data/two.npz", first=LABELS["a"], second=LABELS["b"][:5])
    pd.DataFrame(LABELS["a"]).add_prefix("c").to_csv("data/a.csv", index=False)
    pytest.importorskip("zarr").save_array("data/a.zarr", LABELS["a"])
    jobs = [
        job("cut", input="data/cut.npy"), job("text", input="data/text.npy"), job("key", input="data/two.npz"),
        job("column", input="data/a.csv", columns=["c0", "nothing"]), job("a", input="data/a.csv", exclude=["c1"]),
        job("chunks", input="data/a.zarr"),
    ]  # fmt: skip
    Path("jobs.yaml").write_text(yaml.safe_dump(jobs))
    code, out, _ = call("jobs.yaml --dry-run")
    assert code == 0
    lines = dict(line.split(": ", 1) for line in out.splitlines())
    assert "path 'data/cut.npy' cannot be read" in lines["cut"]
    assert "path 'data/text.npy' cannot be read" in lines["text"]
    assert "key is needed to choose an array" in lines["key"]
    assert "there is no column 'nothing'" in lines["column"]
    assert all(lines[name].startswith("would fail: ") for name in ("cut", "text", "key", "column"))
    assert lines["a"].endswith(" MB of memory")
    assert lines["6 jobs, 6 to do"].endswith(" MB of memory for a job, 4 would fail")


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ({"jobs": [{"input": "a.npy", "methd": "eac"}]}, "jobs[0]: *'methd' was unexpected* (did you mean 'method'?)"),
        ({"jobs": [job()], "default": {}}, "'default' was unexpected* (did you mean 'defaults'?)"),
        ({"job": [job()]}, "'job' was unexpected* (did you mean 'jobs'?)"),
        ({"matrix": {"input": ["a.npy"], "n_cluster": [2]}}, "matrix: 'n_cluster'* (did you mean 'n_clusters'?)"),
    ],
)
def test_an_unknown_key_names_the_nearest_one(manifest, sentence):
    refused(lambda: load(manifest), ValueError, *sentence.split("*"))
    with pytest.raises(ValueError, match="'zzz' was unexpected") as unlike:
        load({"jobs": [{**job(), "zzz": 1}]})
    assert "did you mean" not in str(unlike.value)


def test_a_job_with_evidence_writes_its_columns(folder, call):
    """The columns are those of `gpuens run --evidence`."""
    jobs = [job("a", format="csv", evidence=True), job("b", format="csv"), job("c", input="data/c.csv", evidence=True)]
    assert batch.run(jobs, "out").done == 3
    assert cli.main(["run", "data/a.npy", "-k", "3", "--evidence", "-o", "run.csv", "--quiet"]) == 0
    assert Path("out/a.labels.csv").read_bytes() == Path("run.csv").read_bytes()
    assert Path("out/b.labels.csv").read_text().splitlines()[0] == "label"
    expected, marker = (json.loads(Path(path).read_text()) for path in ("run.csv.json", "out/a.json"))
    assert (marker["evidence"], marker["sha256"]) == (expected["evidence"], expected["sha256"])
    assert batch.run(jobs, "out").already == 3
    assert batch.run([*jobs[:1], job("b", format="csv", evidence=True), *jobs[2:]], "out").done == 1
    assert "confidence" in Path("out/b.labels.csv").read_text().splitlines()[0]
    assert load([{"input": "data/a.npy", "evidence": True}])[0][0].format == "npz"
    refused(lambda: load([job(format="npy", evidence=True)]), ValueError, "evidence", "npy", "csv")
    refused(lambda: load([job(scheduler="threads", evidence=True)]), ValueError, "evidence is for files")


def test_labels_have_the_kind_of_the_input_unless_another_is_named(folder):
    """The output keeps the names of objects, too, if its format can hold them."""
    table = pd.DataFrame(LABELS["a"], index=[f"o{i}" for i in range(60)]).add_prefix("c")
    table.to_csv("a.csv", index_label="object")
    jobs = [job("csv", input="a.csv"), job("npy", input="a.csv", format="npy"), job("a")]
    found = batch.run(jobs, "out")
    assert [row["output"] for row in found.jobs] == ["csv.labels.csv", "npy.labels.npy", "a.labels.npy"]
    assert pd.read_csv("out/csv.labels.csv")["object"].tolist() == list(table.index)
    assert batch.run(jobs, "out").already == 3
