"""Runners that share the jobs of a batch: shards, claims, processes and signals."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from batches import LABELS, POSIX, call, contents, count, events, folder, job  # noqa: F401
from conftest import refused

from gpuens import batch
from gpuens.batch import claims, places, shards

pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

# --- shards -----------------------------------------------------------------------------------------------------------


def test_shards_do_all_jobs_once(folder):
    manifest = [job(f"j{i}", input="data/a.npy") for i in range(7)]
    outcomes = [batch.run(manifest, "out", shard=f"{i}/3") for i in (1, 2, 3)]
    assert [outcome.done for outcome in outcomes] == [3, 2, 2]
    assert {row["status"] for row in outcomes[-1].jobs} == {"done"}
    told = [name for name in os.listdir("out") if name.startswith("events")]
    assert sorted(told) == ["events.1-of-3.jsonl", "events.2-of-3.jsonl", "events.3-of-3.jsonl"]


SLURM = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP",
         "SLURM_ARRAY_TASK_COUNT")  # fmt: skip


def environment_of(names, *values):
    return {name: str(value) for name, value in zip(names, values, strict=True) if value is not None}


@pytest.mark.parametrize(
    ("environment", "of", "expected"),
    [
        (environment_of(SLURM, 5, 1, None, None, 8), None, "5/8"),
        (environment_of(SLURM, 10, 0, 10, 5, 3), None, "3/3"),
        (environment_of(SLURM, 5, 5, None, None, 1), 8, "6/8"),
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
    index = "JOB_COMPLETION_INDEX"
    for text, of, environment, said in [
        ("auto", None, {index: "0"}, "add --of N"),
        ("auto", 3, {index: "3"}, "not among the 3 shards"),
        ("auto", 3, {index: "x"}, "not a whole number"),
        ("auto", 3, {}, "found none of SLURM_ARRAY_TASK_ID"),
        ("auto", None, environment_of(SLURM, 7, 3, 7, None, 2), "some are missing"),
        ("1/3", 4, {}, "leave of out"),
        *((text, None, {}, "shard must be 'auto' or i/n") for text in ("0/3", "4/3", "3", "a/b", 3)),
    ]:
        refused(lambda given=(text, of, environment): shards.shard(*given), ValueError, said)


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
    takers, ready = [claims.Claims(str(tmp_path / "claims")) for _ in range(8)], threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        for i in range(20):
            won = pool.map(lambda taker, i=i: (ready.wait(), taker.take(f"job{i}"))[1], takers)
            assert sum(map(bool, won)) == 1


@pytest.fixture
def until():
    """Return a function that waits until a condition holds, for a minute at most."""

    def wait(holds):
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.01)

    return wait


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
    look = slow._is_invalid

    def while_others_work(path):
        monkeypatch.undo()
        found = look(path)
        assert quick.take("a")  # the claim of the dead process can be taken
        quick.release("a")
        assert quick.take("a")
        return found

    monkeypatch.setattr(slow, "_is_invalid", while_others_work)
    assert not slow.take("a")
    assert os.listdir(folder) == ["a.0"]
    quick.close()
    assert slow.take("a")


def test_a_claim_is_touched_while_it_lasts(tmp_path, sizes, until):
    sizes("batch.claims", BEAT=0.02)
    ours = claims.Claims(str(tmp_path / "claims"))
    assert ours.take("a")
    path = tmp_path / "claims" / "a.0"
    os.utime(path, ns=(1, 1))
    until(lambda: path.stat().st_mtime_ns != 1)
    ours.close()


def test_jobs_of_another_runner_are_waited_for(folder, sizes, until):
    sizes("batch.runner", WATCH=0.02)
    other = claims.Claims("out/.gpuens-claims")
    os.mkdir("out")
    assert other.take("a")
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(batch.run, [job(), job("b")], "out")
        until(Path("out/b.json").exists)
        assert not Path("out/a.json").exists()
        other.close()
        assert run.result().done == 2


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
    # both threads must compute their checksums at the same time
    monkeypatch.setattr(places, "stamp", lambda *given, **how: (both.wait(), stamp(*given, **how))[1])
    assert batch.run(manifest, "out", checksum=True, jobs=2).already == 2


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
