"""Messages about long work: lines that the command line prints once or repeatedly, and a progress bar's first frame."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import structured_labels

import gpuens as ge
from gpuens import batch
from gpuens.cli import main
from gpuens.runtime import failures, progress


@pytest.fixture(autouse=True)
def at_once(monkeypatch, sizes):
    """Report work as long after 0.1 seconds."""
    monkeypatch.delenv("GPUENS_PROGRESS", raising=False)
    sizes("runtime.progress", SLOW_SECONDS=0.1)
    sizes("runtime.progress", LOOK_SECONDS=0.01)


def wait(seconds=0.3):
    time.sleep(seconds)


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_slow_work_is_told_once_and_while_it_lasts(capsys):
    with progress.telling():
        with progress.doing("reading x.csv"):
            assert lines(capsys) == []
            wait()
            assert lines(capsys) == ["gpuens: reading x.csv …"]
            wait()
        with progress.doing("writing y.csv"):
            wait(0.02)
        with failures.stage("fit", "fitting lwea"):
            wait()
        with failures.stage("score"):
            wait()
    assert lines(capsys) == ["gpuens: fitting lwea …", "gpuens: score …"]
    with progress.doing("what nobody is told"):
        wait()
    assert lines(capsys) == []


def test_what_is_within_slow_work_is_told_with_it_or_after_it(capsys):
    with progress.telling(), progress.doing("fitting lwea"):
        for _ in range(3):
            with progress.bar(total=9, description="nearest rows") as bar:
                wait()
                bar.update(9)
        for _ in progress.bar(range(2), "links"):
            wait(0.2)
        progress.bar(3, "never begun").close()
    found = lines(capsys)
    assert found[0] in ("gpuens: fitting lwea …", "gpuens: fitting lwea: nearest rows …")
    assert found[-1] == "gpuens: links …"
    assert len(found) == len(set(found)) <= 3


def test_a_log_has_a_line_again_with_the_share_that_is_done(capsys, monkeypatch, sizes):
    sizes("runtime.progress", AGAIN_SECONDS=0.2)
    with progress.telling(), progress.doing("fitting lwea"), progress.bar(total=8, description="linkage") as bar:
        wait(0.15)
        bar.update(2)
        wait(0.4)
    found = lines(capsys)
    assert found[0] in ("gpuens: fitting lwea …", "gpuens: fitting lwea: linkage …")
    assert "gpuens: fitting lwea: linkage, 25%, 0 min so far …" in found
    # on a terminal, progress bars replace repeated lines
    monkeypatch.setattr(progress, "_on_terminal", lambda: True)
    monkeypatch.setenv("GPUENS_PROGRESS", "")
    with progress.telling(), progress.doing("fitting lwea"):
        wait(0.5)
    assert lines(capsys) == ["gpuens: fitting lwea …"]


def test_loading_is_told_until_work_begins(capsys):
    with progress.telling():
        wait()
    with progress.telling(), progress.doing("reading"):
        pass
    with progress.telling():
        with progress.doing("reading"):
            pass
        wait()
    assert lines(capsys) == ["gpuens: loading …"]


def test_hidden_trials_and_quiet_commands_are_silent(capsys, monkeypatch):
    with progress.telling(), progress.silent(), progress.doing("a trial"):
        for _ in progress.bar(range(1), "of a trial"):
            wait()
    monkeypatch.setenv("GPUENS_PROGRESS", "0")
    with progress.telling(), progress.doing("reading"):
        wait()
    monkeypatch.delenv("GPUENS_PROGRESS")
    with progress.telling(), progress.doing("generating"):
        for _ in progress.bar(range(1), "that nobody asked for", show=False):
            wait()
    assert lines(capsys) == ["gpuens: generating …"]


def test_a_shown_bar_speaks_for_what_it_is_in(capsys):
    with progress.telling(), progress.doing("fitting lwea"), progress.bar(4, "links", show=True):
        wait()
    assert "fitting" not in capsys.readouterr().err


def test_the_first_frame_of_a_bar_has_no_time_yet(capsys):
    with progress.bar(4, "letters", show=True):
        pass
    first = capsys.readouterr().err.split("\r")[1]
    assert first.startswith("letters:   0%|")
    assert "0/4 [00:00<?" in first


@pytest.mark.parametrize("quiet", [False, True])
def test_commands_say_what_takes_long(tmp_path, own_method, monkeypatch, capsys, quiet):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", structured_labels(60)[0])
    own_method("slow", lambda _: wait())
    assert main(["run", "labels.npy", "--method", "slow", "-k", "3", *["--quiet"] * quiet]) == 0
    captured = capsys.readouterr()
    assert ("gpuens: fitting slow to 60 objects …" in captured.err.splitlines()) is not quiet
    assert "…" not in captured.out


def test_a_batch_that_logs_json_says_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", structured_labels(60)[0])
    Path("jobs.json").write_text('[{"input": "labels.npy", "n_clusters": 3}]')
    really = batch.run
    monkeypatch.setattr(batch, "run", lambda *given, **how: wait() or really(*given, **how))
    assert main(["batch", "jobs.json", "--log-format", "json"]) == 0
    assert [json.loads(line)["event"] for line in lines(capsys)][::5] == ["begin", "done"]
    assert main(["batch", "jobs.json", "--force"]) == 0
    assert lines(capsys)[0] == "gpuens: loading …"


def test_the_library_is_silent(capsys):
    ge.choose_k(structured_labels(60)[0], ks=(2, 3), method="eac")
    wait()
    assert capsys.readouterr().err == ""
