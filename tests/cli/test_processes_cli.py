"""The command line as a process: imports, exit codes, signals, garbage collection."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import (
    GIVEN,
    files,
    folder,  # noqa: F401
)

import gpuens


def process(*command, **more):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120, **more)


HEAVY = {"scipy", "sklearn", "pandas", "matplotlib", "cupy", "dask", "tqdm"}


@pytest.mark.parametrize(
    ("lines", "unwanted"),
    [
        ([["--help"], ["--version"], []], HEAVY | {"numpy"}),
        ([["run", "--help"], ["cluster", "--help"], ["run"]], HEAVY),
    ],
)
def test_help_and_version_import_nothing_heavy(lines, unwanted):
    code = (
        "import sys\nfrom gpuens.cli import main\n"
        f"for line in {lines}:\n"
        "    try:\n        main(line)\n    except SystemExit as end:\n        assert end.code == 0\n"
        "print('modules', *sys.modules)"
    )
    ran = process("-c", code, check=True)
    assert "usage: gpuens" in ran.stdout
    assert f"gpuens {gpuens.__version__}" in ran.stdout or ["--version"] not in lines
    assert {name.split(".")[0] for name in ran.stdout.splitlines()[-1].split()} & unwanted == set()


def test_a_mistyped_path_is_refused_before_what_takes_long_to_import(folder):
    lines = ["run nothing.csv -k 3", "run nothing.npy -k 3 --scheduler local", "score nothing.csv truth.csv"]
    lines += ["generate nothing.csv -o out.npy", "cluster nothing.csv -k 3 -o out.npy"]
    code = (
        "import sys\nfrom gpuens.cli import main\n"
        f"for line in {lines}:\n    assert main(line.split()) == 3\n"
        "print(*sys.modules)"
    )
    ran = process("-c", code, check=True)
    assert ran.stderr.count("does not exist; check the name.") == len(lines)
    assert not {"scipy", "sklearn", "pandas", "dask"} & {name.split(".")[0] for name in ran.stdout.split()}


def test_a_run_of_integers_loads_neither_pandas_nor_scipy_stats(folder):
    np.save("labels.npy", np.random.default_rng(0).integers(3, size=(2000, 4)))
    code = (
        "import sys\nfrom gpuens.cli import main\n"
        "sys.argv = 'gpuens run labels.npy -k 3 --quiet -o found.npy'.split()\nassert main() == 0\n"
        "print(*sys.modules)\n"
        "import pandas, scipy.stats, scipy.stats.qmc, sklearn.utils.fixes as fixes\n"
        "assert pandas.Series([1, 1]).nunique() == 1 and fixes.pd.Series is pandas.Series\n"
        "assert scipy.stats.rankdata([3, 1]).tolist() == [2, 1] and scipy.stats.qmc.Sobol(1).d == 1\n"
        "print(type(sys.modules['pandas']).__name__, type(scipy.stats).__name__)"
    )
    *_, loaded, kinds = process("-c", code, check=True).stdout.splitlines()
    assert not {"pandas.core", "scipy.stats._stats_py"} & {*loaded.split()}
    assert {"pandas", "scipy.stats", "sklearn.base"} <= {*loaded.split()}
    assert kinds == "module module"


def test_exit_codes_reach_the_shell(folder):
    ran = process("-m", "gpuens", "run", "nothing.csv", "-k", "3")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == "gpuens: path 'nothing.csv' does not exist; check the name.\n"
    script = Path(sys.executable).with_name("gpuens")
    if script.exists():
        ran = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stdout) == (0, f"gpuens {gpuens.__version__}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_reader_that_has_seen_enough_is_no_error(folder):
    command = f"{sys.executable} -m gpuens info | true"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")


# a command that works for a minute and, when stopped, cleans up for a given time
PATIENT = """
import sys, time
from gpuens import cli
from gpuens.cli import info
seconds, how = float(sys.argv.pop()), sys.argv.pop()
def wait(args):
    try:
        print("working", flush=True)
        for _ in range(600):
            time.sleep(0.1)  # a signal just before a sleep is only answered after it
    finally:
        print("cleaning", flush=True)
        time.sleep(seconds)
        print("clean", flush=True)
info.info = wait
sys.argv.append("info")
sys.exit(cli.main(["info"] if how == "library" else None))
"""
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def patient(cleaning, *signals, ignored=None, library=False):
    """Run `PATIENT`; send a signal during its work and one during its clean-up.

    Return exit code, words of stdout, and stderr.

    The child ignores the signal ``ignored``, which is sent before each other signal.
    """
    # a shell that runs tests in the background may make its children ignore Ctrl-C
    how = {**dict.fromkeys([*signals, signal.SIGINT], signal.SIG_DFL), **({ignored: signal.SIG_IGN} if ignored else {})}
    child = subprocess.Popen(
        [sys.executable, "-c", PATIENT, "library" if library else "program", str(cleaning)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: [signal.signal(number, action) for number, action in how.items()],
    )
    said = ""
    for number, until in zip(signals, ("working\n", "cleaning\n"), strict=False):
        while not said.endswith(until):
            line = child.stdout.readline()
            assert line, child.stderr.read()
            said += line
        if ignored:
            child.send_signal(ignored)
        child.send_signal(number)
    out, err = child.communicate(timeout=60)
    return child.returncode, (said + out).split(), err


@POSIX
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("number", "code", "how"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "stopped by SIGTERM"),
        (signal.SIGHUP, 129, "stopped by SIGHUP"),
    ],
)
def test_signals_stop_in_order_and_twice_at_once(number, code, how):
    whole = (code, ["working", "cleaning", "clean"], f"gpuens: {how}; no half-written file is left.\n")
    assert patient(0, number) == whole
    assert patient(60, number, number) == (-number, ["working", "cleaning"], "")
    assert patient(60, number, signal.SIGTERM) == (-signal.SIGTERM, ["working", "cleaning"], "")


@POSIX
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_signals_that_are_ignored_stay_so_and_a_library_takes_none():
    code, out, _ = patient(0, signal.SIGTERM, ignored=signal.SIGHUP)
    assert (code, out) == (143, ["working", "cleaning", "clean"])
    assert patient(0, signal.SIGTERM, library=True)[:2] == (-signal.SIGTERM, ["working"])


@POSIX
def test_a_signal_stops_the_work_and_leaves_nothing(folder):
    noise = np.random.default_rng(0).integers(0, 30, (30_000, 20), dtype=np.uint8)
    np.save("noise.npy", noise)
    environment = {**os.environ, "GPUENS_PROGRESS": "1"}
    command = [sys.executable, "-m", "gpuens", "run", "noise.npy"]
    command += ["--method", "lwea", "-k", "5", "-o", "out.npy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as child:
        said = b""
        while b"average linkage" not in said:
            more = child.stderr.read(1)
            assert more, said  # an empty read would mean that the work has ended
            said += more
        child.terminate()
        said = child.stderr.read().decode()
        assert child.wait(60) == 143
    assert said.rstrip().splitlines()[-1].endswith("gpuens: stopped by SIGTERM; no half-written file is left.")
    assert "Traceback" not in said
    assert files(folder) == sorted([*GIVEN, "noise.npy"])


def test_a_process_of_its_own_seldom_collects_garbage_and_a_library_does_as_before():
    script = """
import gc, sys
from gpuens import cli
seen = []

class Listening:
    def __getattr__(self, name):
        return getattr(sys.__stdout__, name)
    def write(self, text):
        seen.append((gc.get_threshold()[0], gc.get_freeze_count()))

before, frozen = gc.get_threshold(), gc.get_freeze_count()  # Python 3.12 has frozen some itself
sys.argv, sys.stdout = ["gpuens", "methods"], Listening()
cli.main(sys.argv[1:])
library = seen[-1], gc.get_freeze_count()
cli.main()
sys.stdout = sys.__stdout__
print(library == ((before[0], frozen), frozen), seen[-1] == (20_000, frozen))
print(gc.get_threshold() == before, gc.get_freeze_count() > frozen)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 4
