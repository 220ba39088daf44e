"""Batches of jobs: manifests, markers, remaining jobs, failures, shards, claims, processes, signals and URIs."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from conftest import one_sentence, raising, refused, structured_labels

import gpuens as ge
from gpuens import batch, cli
from gpuens.batch import claims, places, shards, stores
from gpuens.batch.job import FORMATS
from gpuens.batch.manifest import load
from gpuens.io import atomic
from gpuens.io.shapes import label_shape
from gpuens.methods import LWGP
from gpuens.methods.forecast import foresee
from gpuens.runtime import checks, failures, installing

pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

LABELS = {name: structured_labels(60, 6, 3, seed=seed)[0] for seed, name in enumerate("abc")}
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Provide a working directory with the label files data/a.npy, data/b.npy and data/c.csv."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("data")
    for name, labels in LABELS.items():
        np.save(f"data/{name}.npy", labels)
    pd.DataFrame(LABELS["c"], columns=list("uvwxyz")).to_csv("data/c.csv", index=False)
    os.unlink("data/c.npy")
    return tmp_path


@pytest.fixture
def call(capsys):
    def run(line):
        code = cli.main(["batch", *line.split()])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def job(name="a", **more):
    return {"id": name, "input": f"data/{name}.npy", "n_clusters": 3, **more}


def contents(place="out", *, but=("events.jsonl", "summary.csv")):
    """Return the bytes of the labels and pages in a folder, and its markers without time and memory."""
    found = {}
    for path in sorted(Path(place).iterdir()):
        if path.suffix == ".json":
            marker = json.loads(path.read_text())
            found[path.name] = {
                k: v for k, v in marker.items() if k not in ("seconds", "peak_memory_bytes", "gpu_bytes")
            }
        elif path.name not in but:
            found[path.name] = path.read_bytes()
    return found


def events(place="out"):
    return [json.loads(line) for line in Path(place, "events.jsonl").read_text().splitlines()]


def count(event, place="out"):
    return Counter(told.get("job") for told in events(place) if told["event"] == event)


# --- manifests --------------------------------------------------------------------------------------------------------

JOBS = [
    {"id": "x", "input": "data/a.npy", "n_clusters": 3, "method": "lwea", "parameters": {"theta": 0.2}},
    {"id": "y", "input": "data/c.csv", "n_clusters": 2, "columns": ["u", "v"], "report": True},
    {"id": "z", "input": "data/b.npy", "method": ["eac", "lwea"], "n_clusters": ["auto", 4]},
]
AS_CSV = """id,input,n_clusters,method,parameters.theta,columns,report
x,data/a.npy,3,lwea,0.2,,
y,data/c.csv,2,,,u;v,true
z,data/b.npy,auto;4,eac;lwea,,,
"""


def test_every_kind_of_manifest_says_the_same(folder, monkeypatch):
    expected, base = load(JOBS)
    assert [job.id for job in expected] == ["x", "y", "z-eac-auto", "z-eac-k4", "z-lwea-auto", "z-lwea-k4"]
    assert (expected[0].parameters, expected[1].reading, expected[1].report) == (
        {"theta": 0.2},
        {"columns": ["u", "v"]},
        True,
    )
    assert base == ""
    texts = {
        "m.yaml": yaml.safe_dump({"jobs": JOBS}),
        "m.yml": yaml.safe_dump(JOBS),
        "m.json": json.dumps({"jobs": JOBS}),
        "m.jsonl": "\n".join(map(json.dumps, JOBS)),
        "m.csv": AS_CSV,
    }
    for name, text in texts.items():
        Path(name).write_text(text)
        assert load(name)[0] == expected, name
    monkeypatch.setattr(sys, "stdin", open("m.jsonl"))  # noqa: SIM115
    assert load("-")[0] == expected
    sys.stdin.close()


def test_defaults_fill_in_single_parameters(folder):
    defaults = {"method": "lwea", "n_clusters": 3, "parameters": {"theta": 0.1}}
    matrix = {"input": ["data/a.npy"], "parameters.linkage": ["complete", "single"]}
    jobs, _ = load({"defaults": defaults, "jobs": [job(parameters={"theta": 0.3})], "matrix": matrix})
    assert [job.parameters for job in jobs] == [
        {"theta": 0.3},
        {"theta": 0.1, "linkage": "complete"},
        {"theta": 0.1, "linkage": "single"},
    ]


def test_yaml_merges_and_dates_as_ids(folder):
    Path("m.yaml").write_text(
        "defaults: &all {n_clusters: 3}\njobs:\n  - {<<: *all, id: 2024-01-01, input: data/a.npy, method: eac}\n"
    )
    ((found,), _) = load("m.yaml")
    assert (found.id, found.n_clusters) == ("2024-01-01", 3)


def test_a_device_is_that_of_jobs_that_do_not_say(folder, call):
    Path("jobs.json").write_text(json.dumps([job(), job("b", device="cpu")]))
    jobs, _ = load("jobs.json", device="emulated")
    assert [job.parameters["device"] for job in jobs] == ["emulated", "cpu"]
    assert call("jobs.json --device tpu")[0] == 2


def test_ids_do_not_depend_on_what_is_written(folder):
    (one,), (other,) = (load([{**job(), **more}], report=True)[0] for more in ({"format": "csv"}, {"report": False}))
    assert one.slug() == other.slug()


def test_a_zarr_array_is_the_same_job_with_a_slash_after_it(folder):
    os.mkdir("data/c.zarr")
    for name in ("data/c.zarr", "data/c.zarr/", "data/*.zarr/"):
        ((found,), _) = load({"jobs": [{"input": name, "n_clusters": 3}]})
        assert (found.input, found.chunks[0], found.id[:2]) == ("data/c.zarr", "threads", "c-")


def test_defaults_matrix_patterns_and_ids(folder):
    jobs, _ = load(
        {
            "defaults": {"n_clusters": 3, "seed": 7, "device": "cpu"},
            "jobs": [{"input": "data/*.npy"}, {"input": "data/a.npy", "similarity": "lwca", "partitioner": "metis"}],
            "matrix": {"input": ["data/b.npy"], "method": ["lwgp"], "parameters.n_init": [2, "3"]},
        }
    )
    assert [job.input for job in jobs] == ["data/a.npy", "data/b.npy", "data/a.npy", "data/b.npy", "data/b.npy"]
    assert [job.method for job in jobs] == ["lwgp", "lwgp", "consensus", "lwgp", "lwgp"]
    assert [job.parameters.get("n_init") for job in jobs[3:]] == [2, 3]
    assert jobs[3].parameters["random_state"] == 7
    assert len({job.id for job in jobs}) == 5
    assert jobs[3].id.startswith("b-lwgp-k3-")
    assert load({"jobs": [{"input": "data/a.npy", "n_clusters": 3, "seed": 7, "device": "cpu"}]})[0][0].id == jobs[0].id


BAD = {
    "a number": (7, "manifest must be a file, a mapping or a list of jobs, not 7."),
    "empty": ([], "the manifest has no jobs; add at least one."),
    "no input": ([{"n_clusters": 3}], "jobs[0]: input is needed: name a label file."),
    "a field": ([{"inptu": "a.npy"}], "'inptu' was unexpected"),
    "a kind": ([job(n_clusters="three")], "jobs[0].n_clusters"),
    "an id": ([job("../a")], "jobs[0].id"),
    "twice": ([job(), job()], "job 'a' occurs twice; leave one out."),
    "one id": ([job(), {**job("b"), "id": "A"}], "two jobs, of inputs 'data/a.npy' and 'data/b.npy', have the id 'A'"),
    "a method": ([job(method="best")], "jobs[0]: method must be one of "),
    "a parameter": ([job(parameters={"tau": 1})], "jobs[0]: parameters: 'tau' is no parameter of method 'lwgp'"),
    "a value": ([job(parameters={"theta": -1})], "jobs[0]: theta must be above 0 and finite, but is -1"),
    "text": ([job(parameters={"theta": "mild"})], "jobs[0]: theta must be a number, not 'mild'."),
    "both": ([job(method="lwgp", methods=["eac"])], "jobs[0]: method and methods are both given"),
    "a pair": ([job(method="lwgp", similarity="lwca")], "jobs[0]: a method has its own similarity and partitioner"),
    "no features": ([job(method="ecrmc")], "jobs[0]: features is needed, because method 'ecrmc' compares the objects "),
    "features": (
        [job(features="iris")],
        "jobs[0]: features is no option of method 'lwgp', which uses only labels; leave it out.",
    ),
    "an ending": ([{**job(), "input": "a.txt", "scheduler": "threads"}], "jobs[0]: path 'a.txt' has no known ending"),
    "a pattern": (
        [{**job(), "input": "data/*.tsv"}],
        "jobs[0]: input 'data/*.tsv' matches no file; correct the pattern.",
    ),
    "a line break": ([job("a\n")], "jobs[0].id"),
    "a seed": ([job(seed=10**40)], "jobs[0]: random_state must be from 0 to"),
    "a piece": ([job(scheduler="threads", sep=";")], "jobs[0]: sep is for files that are read in one piece"),
    "no chunks": ([job(chunk_rows=10)], "jobs[0]: chunk_rows is for files that are read in chunks"),
    "workers": ([job(workers=3)], "jobs[0]: workers is for a cluster of this machine"),
    "a scheduler": ([job(scheduler="bogus")], "jobs[0]: scheduler must be threads, local, cuda or an address"),
    "a key": ({1: 2, "jobs": []}, "'1' was unexpected"),
    "a matrix": ({"matrix": {"method": "lwea"}}, "matrix.method: 'lwea' is not of type 'array'"),
    "of ids": ({"matrix": {"id": ["a"]}}, "'id' does not match"),
    "defaults": ({"defaults": {"id": "a"}, "jobs": []}, "defaults: "),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_manifests_are_refused_in_one_sentence(folder, case):
    manifest, sentence = BAD[case]
    with pytest.raises((ValueError, TypeError)) as error:
        batch.run(manifest, "out")
    assert sentence in one_sentence(error.value)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("m.yaml", "jobs:\n  - {id: a\n", "manifest 'm.yaml' cannot be read (ParserError"),
        ("m.yaml", "jobs: []\njobs: []\n", "the key 'jobs' occurs twice"),
        ("m.yaml", "jobs: !!python/object/apply:os.system [exit]\n", "could not determine a constructor"),
        ("m.json", '{"jobs": [], "jobs": []}', "the key 'jobs' occurs twice"),
        ("m.csv", "id,input,input\na,b,c\n", "the key 'input' occurs twice"),
        ("m.csv", "id,input\na\n", "a row has more or fewer fields than the first"),
        ("m.jsonl", "{\n", "manifest 'm.jsonl' cannot be read (JSONDecodeError"),
        ("m.txt", "", "path 'm.txt' has no known ending; it must end in .yaml, .yml, .json, .jsonl, .csv."),
    ],
)
def test_bad_files_of_manifests_are_refused_in_one_sentence(folder, call, name, text, sentence):
    Path(name).write_text(text)
    code, out, err = call(name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


KEYS = {"input": "data/a.npy", **{f"key{i}": i for i in range(30_000)}}
BOMB = "k0: &k0 [1]\n" + "".join(f"k{i}: &k{i} [*k{i - 1}, *k{i - 1}]\n" for i in range(1, 40))
MERGES = "k0: &k0 {x: 1}\n" + "".join(f"k{i}: &k{i} {{<<: [*k{i - 1}, *k{i - 1}]}}\n" for i in range(1, 60))


def doubled(value, times):
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("m.yaml", BOMB, "'m.yaml' holds more than 5,000,000 values after expanding aliases; divide it."),
        ("m.yaml", MERGES, "'m.yaml' holds more than 5,000,000 values after expanding aliases; divide it."),
        ("m.yaml", "jobs: &a [*a]\n", "'m.yaml' has an alias that contains itself"),
        ("m.yaml", "jobs: &a {x: {y: *a}}\n", "'m.yaml' has an alias that contains itself"),
        ("m.yaml", "[" * 100_000, "'m.yaml' cannot be read"),
        ("m.json", "[" * 100_000, "'m.json' cannot be read"),
        ("m.yaml", yaml.safe_dump([KEYS]), "'m.yaml' has a mapping with 30,001 keys, more than 1,000; correct it."),
        ("m.json", json.dumps([KEYS]), "'m.json' has a mapping with 30,001 keys, more than 1,000; correct it."),
        ("m.jsonl", json.dumps(KEYS), "'m.jsonl' has a mapping with 30,001 keys"),
        ("m.csv", ",".join(KEYS) + "\n" + ",".join(map(str, KEYS.values())), "a mapping with 30,001 keys"),
        ("m.jsonl", "\n" * 16_000_001, "'m.jsonl' has more than 16,000,000 letters; divide it."),
        ("m.jsonl", 200 * (json.dumps(job(n_clusters=list(range(2, 1002)))) + "\n"), "has 200,000 jobs, more than"),
        ("m.json", json.dumps({"matrix": {"input": ["a.npy"] * 2000, "seed": list(range(2000))}}), "4,000,000 jobs"),
    ],
)
def test_manifests_that_would_keep_a_batch_busy_are_refused_at_once(folder, call, name, text, sentence):
    Path(name).write_text(text)
    call("--schema")  # warm-up: packages are loaded before time is measured
    started = time.process_time()
    code, out, err = call(name)
    assert time.process_time() - started < 5  # the error message comes after seconds, not after minutes
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_lists_shared_many_times_are_refused_in_memory_too(folder):
    refused(lambda: batch.run([job(parameters={"weights": doubled([1], 40)})], "out"), ValueError, "5,000,000 values")


def test_the_schema_is_shipped_and_printed(call):
    import jsonschema

    code, out, _ = call("--schema")
    assert code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(out))
    assert json.loads(out) == batch.schema()
    assert batch.schema()["$defs"]["fields"]["properties"]["format"]["enum"] == list(FORMATS)


# --- results ----------------------------------------------------------------------------------------------------------


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
    assert "The 60 objects make 3 clusters: " in page
    assert page.count("data:image/png;base64,") == 9
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


def test_warnings_are_in_the_marker(folder):
    np.save("data/a.npy", np.column_stack([LABELS["a"], np.zeros(60, int)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch.run([job()], "out")
    (said,) = json.loads(Path("out/a.json").read_text())["warnings"]
    assert said.startswith("constant clusterings carry no information")
    assert [told["message"] for told in events() if told["event"] == "warning"] == [said]


def test_warnings_of_failures_are_kept(folder):
    np.save("data/a.npy", np.column_stack([LABELS["a"], np.zeros(60, int)]))
    outcome = batch.run([job(n_clusters=61)], "out")
    assert outcome.failed == 1
    (said,) = json.loads(Path("out/a.json").read_text())["warnings"]
    assert said.startswith("constant clusterings carry no information")
    assert [told["message"] for told in events() if told["event"] == "warning"] == [said]


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


def test_a_batch_that_stops_names_the_option_that_goes_on(folder, call):
    Path("jobs.yaml").write_text(yaml.safe_dump([job("gone"), job("a")]))
    code, out, _ = call("jobs.yaml")
    assert code == 3
    assert out.splitlines() == [
        "2 jobs: 1 failed, 1 pending",
        "failed: gone: path 'data/gone.npy' does not exist; check the name.",
        "stopped at the first failure; --keep-going continues after failures",
        "written: jobs.results/summary.csv",
    ]
    assert "--keep-going" not in call("jobs.yaml --keep-going")[1]
    Path("jobs.yaml").write_text(yaml.safe_dump([job("a"), job("gone")]))
    assert "--keep-going" not in call("jobs.yaml --out last")[1]  # no job is left


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


def test_the_end_of_a_batch_names_the_jobs_that_failed(folder, call, sizes):
    gone = [job(f"gone{i}", input=f"data/gone{i}.npy") for i in range(3)]
    Path("jobs.yaml").write_text(yaml.safe_dump([gone[0], job("a"), *gone[1:]]))
    sizes("cli.batch", MOST_FAILED=2)
    code, out, _ = call("jobs.yaml --keep-going")
    assert code == 4
    assert out.splitlines() == [
        "4 jobs: 1 done, 3 failed",
        "failed: gone0: path 'data/gone0.npy' does not exist; check the name.",
        "failed: gone1: path 'data/gone1.npy' does not exist; check the name.",
        "failed: 1 more, see summary.csv",
        "written: jobs.results/summary.csv",
    ]


def test_labels_have_the_kind_of_the_input_unless_another_is_named(folder):
    """The output keeps the names of objects, too, if its format can hold them."""
    table = pd.DataFrame(LABELS["a"], index=[f"o{i}" for i in range(60)]).add_prefix("c")
    table.to_csv("a.csv", index_label="object")
    jobs = [job("csv", input="a.csv"), job("npy", input="a.csv", format="npy"), job("a")]
    found = batch.run(jobs, "out")
    assert [row["output"] for row in found.jobs] == ["csv.labels.csv", "npy.labels.npy", "a.labels.npy"]
    assert pd.read_csv("out/csv.labels.csv")["object"].tolist() == list(table.index)
    assert batch.run(jobs, "out").already == 3


# --- failures ---------------------------------------------------------------------------------------------------------


REFUSAL = ValueError("labels are not what they should be.")
REFUSAL.stage = "read"
FAULT = RuntimeError("a bug")


@pytest.mark.parametrize(
    ("errors", "keep_going", "code", "done", "tries"),
    [
        ([REFUSAL], False, 3, 0, 1),
        ([REFUSAL], True, 4, 1, 1),
        ([FAULT], False, 1, 0, 1),
        ([FAULT], True, 4, 1, 1),
        ([failures.OutOfGPUMemory("it does not fit."), ConnectionError("gone.")], False, 0, 2, 3),
        ([OSError(28, "No space left on device")] * 3, True, 75, 1, 3),
        ([OSError(28, "No space left on device")] * 3, False, 75, 0, 3),
    ],
)
def test_exit_codes_and_tries(folder, own_method, sizes, errors, keep_going, code, done, tries):
    manifest = [job(method="own"), job("b")]
    own_method("own", raising(*errors))
    sizes("batch.runner", PAUSE=0.01)
    outcome = batch.run(manifest, "out", keep_going=keep_going)
    assert (outcome.exit_code, outcome.done, outcome.failed) == (code, done, int(code != 0))
    assert count("start")["a"] == tries
    statuses = {row["id"]: row["status"] for row in outcome.jobs}
    assert statuses["a"] == ("failed" if code else "done")
    assert statuses["b"] == ("done" if keep_going or not code else "pending")
    if code:
        marker = json.loads(Path("out/a.json").read_text())
        assert marker["status"] == "failed"
        assert marker["error"]
        assert "a.labels.npy" not in os.listdir("out")
    again = batch.run(manifest, "out")  # a failed job is tried again
    assert (again.exit_code, again.done + again.already) == (0, 2)


def test_an_interrupted_batch_has_a_summary_and_says_so(folder, own_method):
    own_method("own", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        batch.run([job(), job("b", method="own"), job("c")], "out")
    last = json.loads(Path("out/events.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["done"], last["failed"]) == ("interrupted", 1, 0)
    statuses = pd.read_csv("out/summary.csv").set_index("id")["status"].to_dict()
    assert statuses == {"a": "done", "b": "pending", "c": "pending"}


def test_a_failure_takes_the_labels_of_an_earlier_input_away(folder):
    batch.run([job()], "out")
    np.save("data/a.npy", np.full((60, 2), 0.25))
    outcome = batch.run([job()], "out")
    assert outcome.exit_code == 3
    assert "are not whole numbers" in outcome.jobs[0]["error"]
    assert sorted(contents()) == ["a.json"]


def test_results_outlive_their_inputs(folder):
    batch.run([job(), job("gone")], "out", keep_going=True)
    before = contents()
    assert before["gone.json"]["error"] == "path 'data/gone.npy' does not exist; check the name."
    os.unlink("data/a.npy")
    outcome = batch.run([job()], "out")
    assert (outcome.exit_code, outcome.jobs[0]["error"]) == (3, "path 'data/a.npy' does not exist; check the name.")
    assert contents() == before


def test_jobs_leave_the_files_of_others_alone(folder):
    others = [job(name, input="data/b.npy") for name in ("a.labels", "a.labels.npy", "a-b", "a.html")]
    batch.run([job(), *others], "out")
    before = contents()
    np.save("data/a.npy", LABELS["c"])
    batch.run([job()], "out", force=True)
    after = contents()
    assert {name for name in after if after[name] != before.get(name)} == {"a.json", "a.labels.npy"}
    assert after.keys() == before.keys()


def test_results_of_other_parameters_are_not_this_job_s(folder, own_method):
    batch.run([job(), job("b")], "out")
    own_method("own", raising(FAULT))
    outcome = batch.run([job(method="own"), job("b", n_clusters=2)], "out")
    assert [row["status"] for row in outcome.jobs] == ["failed", "pending"]
    assert outcome.jobs[1]["sha256"] is None


def test_a_full_disk_is_temporary_and_leaves_nothing(folder, call, monkeypatch, sizes):
    Path("jobs.jsonl").write_text(json.dumps(job()))
    sizes("batch.runner", PAUSE=0.01)

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    code, _, err = call("jobs.jsonl --out out")
    assert code == 75
    assert "No space left on device" in err.splitlines()[-1]
    assert os.listdir("out") == ["events.jsonl"]


def test_a_folder_that_may_not_be_written_to_is_refused(folder, call, nothing_may_be_written):
    Path("jobs.jsonl").write_text(json.dumps(job()))
    os.mkdir("out")
    code, _, err = call("jobs.jsonl --out out")
    assert (code, err.count("\n")) == (3, 1)
    assert "out 'out' is a folder that this user may not write to" in err


@pytest.mark.parametrize("options", ["", "jobs.jsonl --jobs 0", "jobs.jsonl --shard 3/2", "- ", "jobs.jsonl --of 3"])
def test_bad_commands_are_refused_in_one_sentence(folder, call, options):
    Path("jobs.jsonl").write_text(json.dumps(job()))
    code, out, err = call(options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    one_sentence(err.removeprefix("gpuens: ").strip())


# --- shards -----------------------------------------------------------------------------------------------------------


def test_shards_do_all_jobs_once(folder):
    manifest = [job(f"j{i}", input="data/a.npy") for i in range(7)]
    outcomes = [batch.run(manifest, "out", shard=f"{i}/3") for i in (1, 2, 3)]
    assert [outcome.done for outcome in outcomes] == [3, 2, 2]
    assert {row["status"] for row in outcomes[-1].jobs} == {"done"}
    told = [name for name in os.listdir("out") if name.startswith("events")]
    assert sorted(told) == ["events.1-of-3.jsonl", "events.2-of-3.jsonl", "events.3-of-3.jsonl"]


@pytest.mark.parametrize(
    ("environment", "of", "expected"),
    [
        ({"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_COUNT": "8"}, None, "5/8"),
        (
            {
                "SLURM_ARRAY_TASK_ID": "10",
                "SLURM_ARRAY_TASK_MIN": "0",
                "SLURM_ARRAY_TASK_MAX": "10",
                "SLURM_ARRAY_TASK_STEP": "5",
                "SLURM_ARRAY_TASK_COUNT": "3",
            },
            None,
            "3/3",
        ),
        ({"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "1"}, 8, "6/8"),
        ({"JOB_COMPLETION_INDEX": "0"}, 4, "1/4"),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "7", "AWS_BATCH_JOB_ARRAY_SIZE": "8"}, None, "8/8"),
        ({"CLOUD_RUN_TASK_INDEX": "1", "CLOUD_RUN_TASK_COUNT": "2"}, None, "2/2"),
        ({"BATCH_TASK_INDEX": "1", "BATCH_TASK_COUNT": "3"}, None, "2/3"),
    ],
)
def test_shards_by_the_variables_of_schedulers(environment, of, expected):
    assert str(shards.shard("auto", of, environment)) == expected


def test_shards_that_make_no_sense_are_refused():
    assert shards.shard("auto", None, {}) is None
    assert shards.shard(None) is None
    refused(lambda: shards.shard("auto", None, {"JOB_COMPLETION_INDEX": "0"}), ValueError, "add --of N")
    refused(lambda: shards.shard("auto", 3, {"JOB_COMPLETION_INDEX": "3"}), ValueError, "not among the 3 shards")
    refused(lambda: shards.shard("auto", 3, {"JOB_COMPLETION_INDEX": "x"}), ValueError, "not a whole number")
    refused(lambda: shards.shard("auto", 3, {}), ValueError, "found none of SLURM_ARRAY_TASK_ID")
    sparse = {"ID": "7", "MIN": "3", "MAX": "7", "COUNT": "2"}
    slurm = {f"SLURM_ARRAY_TASK_{name}": text for name, text in sparse.items()}
    refused(lambda: shards.shard("auto", None, slurm), ValueError, "some are missing")
    for text in ("0/3", "4/3", "3", "a/b", 3):
        refused(lambda text=text: shards.shard(text), ValueError, "shard must be 'auto' or i/n")
    refused(lambda: shards.shard("1/3", 4), ValueError, "leave of out")


# --- claims -----------------------------------------------------------------------------------------------------------


def test_one_runner_has_a_claim_and_gives_it_back(tmp_path):
    ours, theirs = (claims.Claims(str(tmp_path / "claims")) for _ in range(2))
    assert ours.take("a")
    assert not theirs.take("a")
    assert theirs.take("b")
    assert theirs.take("a.1")
    ours.release("a")
    assert theirs.take("a")
    ours.close()
    assert len(os.listdir(tmp_path / "claims")) == 3
    theirs.close()
    assert not (tmp_path / "claims").exists()


def test_many_takers_and_one_winner(tmp_path):
    ready = threading.Barrier(8)
    takers = [claims.Claims(str(tmp_path / "claims")) for _ in range(8)]
    for round_ in range(20):
        won = []

        def take(taker, round_=round_, won=won):
            ready.wait()
            if taker.take(f"job{round_}"):
                won.append(taker)

        threads = [threading.Thread(target=take, args=(taker,)) for taker in takers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1


def test_claims_of_the_dead_are_taken_over(tmp_path, sizes):
    folder = tmp_path / "claims"
    folder.mkdir()
    ours = claims.Claims(str(folder))
    dead = {**claims._owner(), "started": 1.0}  # the owner is dead, and a newer process has got its process id
    (folder / "a.0").write_text(json.dumps(dead))
    assert ours.take("a")
    assert os.listdir(folder) == ["a.1"]

    sizes("batch.claims", STALE=0.2)
    sizes("batch.claims", UNREADABLE=0.2)
    for name, text in (("b", json.dumps({**dead, "system": "another machine"})), ("c", "")):
        path = folder / f"{name}.3"
        path.write_text(text)
        assert not ours.take(name)
        time.sleep(0.15)
        os.utime(path)  # a recent time stamp tells that the owner is alive
        assert not ours.take(name)
        time.sleep(0.25)
        assert ours.take(name)
        assert f"{name}.4" in os.listdir(folder)


def test_a_claim_made_meanwhile_under_a_free_number_is_seen(tmp_path, monkeypatch):
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / "a.0").write_text(json.dumps({**claims._owner(), "started": 1.0}))
    slow, quick = (claims.Claims(str(folder)) for _ in range(2))
    look = slow._given_up

    def while_others_work(path):
        monkeypatch.undo()
        found = look(path)
        assert quick.take("a")  # the claim of the dead process can be taken
        quick.release("a")
        assert quick.take("a")
        return found

    monkeypatch.setattr(slow, "_given_up", while_others_work)
    assert not slow.take("a")
    assert os.listdir(folder) == ["a.0"]
    quick.close()
    assert slow.take("a")


def test_a_claim_is_touched_while_it_lasts(tmp_path, sizes):
    sizes("batch.claims", BEAT=0.02)
    ours = claims.Claims(str(tmp_path / "claims"))
    assert ours.take("a")
    path = tmp_path / "claims" / "a.0"
    os.utime(path, ns=(1, 1))
    until = time.monotonic() + 20
    while path.stat().st_mtime_ns == 1:
        assert time.monotonic() < until
        time.sleep(0.01)
    ours.close()


def test_jobs_of_another_runner_are_waited_for(folder, sizes):
    sizes("batch.runner", WATCH=0.02)
    other = claims.Claims("out/.gpuens-claims")
    os.mkdir("out")
    assert other.take("a")
    found = []
    thread = threading.Thread(target=lambda: found.append(batch.run([job(), job("b")], "out")))
    thread.start()
    until = time.monotonic() + 60
    while not Path("out/b.json").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not Path("out/a.json").exists()
    other.close()
    thread.join()
    assert found[0].done == 2


def test_what_another_runner_has_done_again_is_not_done_a_third_time(folder, own_method):
    manifest, others, first = [job(method="own"), job("b")], [], threading.Event()

    def with_another_runner(_):
        if first.is_set():
            first.clear()
            thread = threading.Thread(target=lambda: others.append(batch.run(manifest[1:], "out", force=True)))
            thread.start()
            thread.join()

    own_method("own", with_another_runner)
    batch.run(manifest, "out")
    first.set()
    outcome = batch.run(manifest, "out", force=True)
    assert (others[0].done, outcome.done, outcome.already) == (1, 1, 1)
    assert count("done") == {"a": 2, "b": 2}
    assert batch.run(manifest, "out", force=True).done == 2


def test_checksums_do_not_hold_up_other_jobs(folder, monkeypatch):
    np.save("data/b.npy", LABELS["a"])
    manifest = [job(), job("b")]
    batch.run(manifest, "out", checksum=True)
    stamp, both = places.stamp, threading.Barrier(2, timeout=60)

    def together(place, base, *, checksum):
        both.wait()  # both threads must compute their checksums at the same time
        return stamp(place, base, checksum=checksum)

    monkeypatch.setattr(places, "stamp", together)
    outcome = batch.run(manifest, "out", checksum=True, jobs=2)
    assert outcome.already == 2


# --- processes and signals --------------------------------------------------------------------------------------------

MANY = {
    "defaults": {"n_clusters": 3, "seed": 0},
    "matrix": {"input": ["data/a.npy", "data/b.npy"], "method": ["eac", "lwea", "hbgf"], "n_clusters": [2, 3]},
}


def command(*more):
    return [sys.executable, "-m", "gpuens", "batch", "many.json", "--out", "out", *more]


@pytest.fixture
def undisturbed(folder):
    """Return the results of an undisturbed run of many.json."""
    Path("many.json").write_text(json.dumps(MANY))
    batch.run("many.json", "whole")
    return contents("whole")


@pytest.mark.thorough
def test_a_process_that_dies_is_replaced_and_its_job_done_again(undisturbed, monkeypatch, sizes):
    from gpuens.batch import processes

    sizes("batch.runner", PAUSE=0.01)
    real, killed = processes.Worker._write, []

    def write(worker, facts):
        real(worker, facts)
        if "job" in facts and not killed:
            killed.append(worker._process.pid)
            worker._process.kill()

    monkeypatch.setattr(processes.Worker, "_write", write)
    outcome = batch.run("many.json", "out", jobs=2)
    assert (outcome.done, outcome.exit_code) == (12, 0)
    assert contents() == undisturbed
    assert set(count("done").values()) == {1}
    assert not psutil.Process().children()
    (told,) = (told for told in events() if told["event"] == "retry")
    assert "killed by SIGKILL" in told["error"]


def test_each_process_has_its_share(monkeypatch):
    from gpuens.batch import processes
    from gpuens.runtime import device

    monkeypatch.setenv("GPUENS_THREADS", "6")
    monkeypatch.setenv("GPUENS_MEMORY", "8GB")
    monkeypatch.setattr(device, "describe", lambda: [{}, {}, {}])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = [processes._environment(i, 3) for i in range(3)]
    assert [share["CUDA_VISIBLE_DEVICES"] for share in found] == ["0", "1", "0"]
    assert {share["GPUENS_THREADS"] for share in found} == {"2"}
    assert {share["GPUENS_MEMORY"] for share in found} == {str(8 * 10**9 // 3)}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    assert processes._environment(1, 2)["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    monkeypatch.delenv("GPUENS_MEMORY")
    assert processes._environment(1, 4)["GPUENS_SHARES"] == "4:2"
    monkeypatch.setattr(device.host, "available_memory", lambda: 10**9)
    monkeypatch.setenv("GPUENS_SHARES", "4:2")
    assert device.memory_budget() == 2 * 10**8


def started(*more):
    """Start the batch in a process; return this process as soon as the first job is done."""
    child = subprocess.Popen(
        command("--log-format", "json", *more), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for line in child.stderr:
        if json.loads(line)["event"] == "done":
            return child
    raise AssertionError("the batch ended before its first job was done")


@pytest.mark.thorough
@POSIX
@pytest.mark.parametrize(
    ("jobs", "number", "code"),
    [("1", signal.SIGKILL, -9), ("2", signal.SIGTERM, 143)],
)
def test_a_stopped_batch_goes_on_where_it_was(undisturbed, jobs, number, code):
    with started("--jobs", jobs) as child:
        os.killpg(child.pid, number)
        child.stderr.read()
        assert child.wait(60) == code
    if number != signal.SIGKILL:
        assert not [name for name in os.listdir("out") if name.startswith(".")]
        assert all(marker["status"] == "ok" for name, marker in contents().items() if name.endswith(".json"))
    before = len([name for name in os.listdir("out") if name.endswith(".json")])
    assert before < 12
    assert batch.run("many.json", "out").exit_code == 0
    assert contents() == undisturbed
    assert not [name for name in os.listdir("out") if name.startswith(".")]


@pytest.mark.thorough
@POSIX
def test_processes_end_with_their_runner(undisturbed):
    with started("--jobs", "2") as child:
        workers = psutil.Process(child.pid).children()
        assert len(workers) == 2
        child.kill()
        child.stderr.read()
    gone, alive = psutil.wait_procs(workers, timeout=60)
    assert (len(gone), alive) == (2, [])
    assert batch.run("many.json", "out").exit_code == 0
    assert contents() == undisturbed


@pytest.mark.thorough
@POSIX
def test_two_runners_share_the_jobs_of_a_folder(undisturbed):
    runners = [subprocess.Popen(command("--quiet")) for _ in range(2)]
    assert [child.wait(120) for child in runners] == [0, 0]
    assert contents() == undisturbed
    assert set(count("done").values()) == {1}
    assert not Path("out/.gpuens-claims").exists()


def test_a_heartbeat_says_what_is_done(folder, call):
    Path("jobs.jsonl").write_text(json.dumps(job()))
    assert call("jobs.jsonl --heartbeat beat.json --quiet")[0] == 0
    beat = json.loads(Path("beat.json").read_text())
    assert (beat["pid"], beat["last"]["event"]) == (os.getpid(), "end")
    assert call("jobs.jsonl --heartbeat nowhere/beat.json --quiet")[0] == 3


# --- URIs -------------------------------------------------------------------------------------------------------------


def through(uri, fs):
    """Run a batch twice with inputs and results behind a URI, and compare the labels with local ones."""
    for name in ("a.npy", "b.npy", "c.csv"):
        fs.put_file(f"data/{name}", f"{uri.split('://')[1]}/in/{name}")
    manifest = [{"id": "a", "input": f"{uri}/in/a.npy", "n_clusters": 3, "report": uri.startswith("memory")}]
    manifest += [{"id": "all", "input": f"{uri}/in/*", "n_clusters": 3}]
    outcome = batch.run(manifest, f"{uri}/out")
    assert (outcome.done, outcome.exit_code) == (4, 0), outcome
    again = batch.run(manifest, f"{uri}/out")
    assert (again.done, again.already, again.exit_code) == (0, 4, 0)
    store = stores.store(f"{uri}/out")
    assert store.names() >= {"a.json", "a.labels.npy", "all-b.labels.npy", "summary.csv", "events.jsonl"}
    assert ("a.html" in store.names()) == uri.startswith("memory")
    (folder := Path("copy")).mkdir()
    (folder / "a.labels.npy").write_bytes(store.read("a.labels.npy"))
    np.testing.assert_array_equal(np.load(folder / "a.labels.npy"), LWGP(3).fit(LABELS["a"]).labels_)
    assert [json.loads(line)["event"] for line in store.read("events.jsonl").splitlines()].count("end") == 2
    fs.put_file("data/b.npy", f"{uri.split('://')[1]}/in/a.npy")  # the input file changes
    assert batch.run(manifest, f"{uri}/out").done == 2
    text = json.dumps([{"id": "b", "input": "in/b.npy", "n_clusters": 3}]).encode()
    # a manifest that names its inputs relative to its own folder
    fs.pipe_file(f"{uri.split('://')[1]}/jobs.json", text)
    assert batch.run(f"{uri}/jobs.json", f"{uri}/more").done == 1
    missing = batch.run([{"input": f"{uri}/in/gone.npy", "n_clusters": 3}], f"{uri}/out")
    assert (missing.exit_code, "gone.npy" in missing.jobs[0]["error"]) == (3, True)


def test_results_in_memory_and_by_file_uris(folder):
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.makedirs("/bucket/in")
    through("memory://bucket", fs)
    fs.rm("/bucket", recursive=True)
    shutil.rmtree("copy")
    os.makedirs("bucket/in")
    through(f"file://{folder}/bucket", fsspec.filesystem("file"))


def test_a_marker_behind_a_uri_comes_last_and_goes_first(folder, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    done = []
    for name in ("put_file", "pipe_file", "rm_file"):
        real = getattr(type(fs), name)

        def noted(self, *args, _real=real, _name=name, **more):
            done.append((_name, str(args[-1] if _name == "put_file" else args[0]).rsplit("/", 1)[1]))
            return _real(self, *args, **more)

        monkeypatch.setattr(type(fs), name, noted)
    batch.run([job()], "memory://order")
    batch.run([job()], "memory://order", force=True)
    expected = [("put_file", "a.labels.npy"), ("put_file", "a.json")]
    told = [what for what in done if what[1].startswith("a.")]
    assert told == 2 * [("rm_file", "a.json"), *expected]
    fs.rm("/order", recursive=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_results_on_s3(folder, monkeypatch):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = pytest.importorskip("moto.server", reason="moto is not installed").ThreadedMotoServer(port=0)
    import fsspec

    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    try:
        fs = fsspec.filesystem("s3")
        fs.mkdir("bucket")
        through("s3://bucket", fs)
    finally:
        server.stop()
        fsspec.filesystem("s3").clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # a port without a server
    with pytest.raises(OSError) as error:  # noqa: PT011
        stores.store("s3://bucket/out", make=False).names()
    assert failures.exit_code(error.value) == failures.TEMPORARY


def test_unknown_uris_are_refused(folder, monkeypatch):
    refused(lambda: stores.store("nowhere://bucket"), ValueError, "is on a file system unknown to fsspec")
    zarr = places.at_hand("memory://x/a.zarr", ".")
    refused(lambda: zarr.__enter__(), ValueError, "is a folder of chunks")
    for name in list(sys.modules):
        if name.split(".")[0] == "fsspec":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    refused(lambda: stores.store("s3://bucket"), ImportError, "s3:// needs s3fs", installing.command("cloud"))


@pytest.mark.parametrize("package", ["yaml", "jsonschema"])
def test_without_its_packages_the_extra_is_named(folder, monkeypatch, package):
    Path("m.yaml").write_text("jobs: []\n")
    monkeypatch.setitem(sys.modules, package, None)
    refused(lambda: load("m.yaml"), ImportError, f"manifests need {package}", installing.command("batch"))
