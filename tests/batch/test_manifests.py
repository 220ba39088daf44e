"""Manifests of batches: formats, defaults, ids and refusals."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from batches import call, folder, job  # noqa: F401
from conftest import one_sentence, refused

from gpuens import batch
from gpuens.batch.job import FORMATS
from gpuens.batch.manifest import load

pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

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
    assert base == ""
    assert [job.id for job in expected] == ["x", "y", "z-eac-auto", "z-eac-k4", "z-lwea-auto", "z-lwea-k4"]
    assert (expected[0].parameters, expected[1].reading) == ({"theta": 0.2}, {"columns": ["u", "v"]})
    assert expected[1].report is True
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
    with open("m.jsonl") as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        assert load("-")[0] == expected


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


KEYS = {"input": "data/a.npy", **{f"key{i}": i for i in range(30_000)}}
BOMB = "k0: &k0 [1]\n" + "".join(f"k{i}: &k{i} [*k{i - 1}, *k{i - 1}]\n" for i in range(1, 40))
MERGES = "k0: &k0 {x: 1}\n" + "".join(f"k{i}: &k{i} {{<<: [*k{i - 1}, *k{i - 1}]}}\n" for i in range(1, 60))


BAD_FILES = [
    ("m.yaml", "jobs:\n  - {id: a\n", "manifest 'm.yaml' cannot be read (ParserError"),
    ("m.yaml", "jobs: []\njobs: []\n", "the key 'jobs' occurs twice"),
    ("m.yaml", "jobs: !!python/object/apply:os.system [exit]\n", "could not determine a constructor"),
    ("m.json", '{"jobs": [], "jobs": []}', "the key 'jobs' occurs twice"),
    ("m.csv", "id,input,input\na,b,c\n", "the key 'input' occurs twice"),
    ("m.csv", "id,input\na\n", "a row has more or fewer fields than the first"),
    ("m.jsonl", "{\n", "manifest 'm.jsonl' cannot be read (JSONDecodeError"),
    ("m.txt", "", "path 'm.txt' has no known ending; it must end in .yaml, .yml, .json, .jsonl, .csv."),
    # manifests that would keep a batch busy
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
]


@pytest.mark.parametrize(("name", "text", "sentence"), BAD_FILES)
def test_bad_files_of_manifests_are_refused_at_once_in_one_sentence(folder, call, name, text, sentence):
    Path(name).write_text(text)
    call("--schema")  # warm-up: packages are loaded before time is measured
    started = time.process_time()
    code, out, err = call(name)
    assert time.process_time() - started < 5  # the error message comes after seconds, not after minutes
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_lists_shared_many_times_are_refused_in_memory_too(folder):
    doubled = [1]
    for _ in range(40):
        doubled = [doubled, doubled]
    refused(lambda: batch.run([job(parameters={"weights": doubled})], "out"), ValueError, "5,000,000 values")


def test_the_schema_is_shipped_and_printed(call):
    import jsonschema

    code, out, _ = call("--schema")
    assert code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(out))
    assert json.loads(out) == batch.schema()
    assert batch.schema()["$defs"]["fields"]["properties"]["format"]["enum"] == list(FORMATS)
