"""Failures of batches: exit codes, tries, and results that are kept."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from batches import LABELS, call, contents, count, folder, job  # noqa: F401
from conftest import one_sentence, raising

from gpuens import batch
from gpuens.runtime import failures

pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

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
