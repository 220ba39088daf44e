"""Records: the peak memory is that of the process itself, and the machine is the one that runs the test."""

import contextlib
import platform
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

import gpuens as ge
from gpuens.runtime import record


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a process's peak starts anew on Linux alone")
def test_the_peak_is_that_of_this_process_and_not_of_its_parent():
    held = np.ones(40_000_000)  # a child process counts these 320 MB as its own until it runs another program
    ran = subprocess.run(
        [sys.executable, "-c", "from gpuens.runtime import record; print(record.peak_memory())"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert 1_000_000 < int(ran.stdout) < held.nbytes < record.peak_memory() < psutil.virtual_memory().total


def test_the_machine_and_the_versions():
    here = record.machine()
    assert here["threads"] >= 1
    # the limit of a container may be lower than the machine's memory
    assert here["memory"] == psutil.virtual_memory().total or here["memory"] > 1e8
    assert here["processor"] or platform.processor() == ""
    assert record.versions(["numpy", "gpuens", "no such"]) == {
        "numpy": np.__version__, "gpuens": ge.__version__, "no such": None,
    }  # fmt: skip
    assert record.surroundings()["versions"]["numpy"] == np.__version__


def test_a_clock_has_the_seconds_of_each_phase_and_of_all():
    clock = record.Clock()
    told = []
    clock._report = lambda name, seconds: told.append((name, seconds))
    time.sleep(0.03)
    with clock.phase("first"):
        with clock.phase("within"):
            time.sleep(0.02)
        time.sleep(0.01)
    time.sleep(0.04)
    with contextlib.suppress(ZeroDivisionError), clock.phase("first"):
        time.sleep(0.01)
        raise ZeroDivisionError
    spent = clock.spent()
    *phases, total = spent["seconds"]
    assert [*phases, total] == ["start", "first", "within", "other", "total"]
    least = {"start": 0.03, "first": 0.02, "within": 0.02, "other": 0.04, "total": 0.11}
    assert all(least[name] <= seconds < 60 for name, seconds in spent["seconds"].items())
    assert sum(spent["seconds"][name] for name in phases) == pytest.approx(spent["seconds"]["total"], abs=1e-9)
    assert [name for name, _ in told] == ["within", "first"]
    assert spent["peak_memory_bytes"] == pytest.approx(record.peak_memory(), rel=0.5)


def test_the_seconds_of_a_process_that_was_waited_for_count():
    before = record.processor_seconds()
    code = "import time\nwhile time.process_time() < .2: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert 0.15 < record.processor_seconds() - before < 60
