"""The extension: its versions for processors, what it takes, and its threads, signals and forks."""

import ast
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import interrupted

import gpuens
from gpuens import contingency
from gpuens.labels.incidence import cluster_sums, row_lookups, row_sums
from gpuens.reduction.core_groups import pack_rows
from gpuens.runtime import native
from gpuens.runtime.native import cpu

ROOT = Path(gpuens.__file__).resolve().parents[1]
LEVELS = native.usable_levels()


def codes_of(n, n_clusterings=20, k=30, dtype=np.uint8, seed=0):
    """Return codes (n, n_clusterings), columns contiguous, with missing labels, and their offsets."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(k, size=(n_clusterings, n)).astype(dtype)
    codes[rng.random(codes.shape) < 0.05] = np.iinfo(dtype).max
    return codes.T, np.arange(n_clusterings + 1) * k


def python(code, **environment):
    """Return the output of a child process, or fail."""
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


# --- what is there ----------------------------------------------------------------------------------------------------


def declared_records():
    """Return the fields of each record that a header declares, by name."""
    declarations = {}
    for header in sorted((ROOT / "kernels" / "cpu").rglob("*.h")):
        text = re.sub("//.*", "", header.read_text())
        for name, fields in re.findall(r"^ +RECORD\((\w+),(.*?)\);", text, re.DOTALL | re.MULTILINE):
            declarations[name] = tuple(re.findall(r", (\w+)\)", fields))
    return declarations


def test_classes_and_the_stub_have_the_fields_of_the_records(tmp_path):
    pytest.importorskip("nanobind", reason="nanobind is not installed: pip install 'gpuens[dev]'")
    stub = tmp_path / "_native.pyi"
    subprocess.run([sys.executable, ROOT / "kernels" / "stub.py", cpu.__file__, stub], check=True)
    classes = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef)]
    told = {
        one.name: tuple(field.target.id for field in one.body if isinstance(field, ast.AnnAssign)) for one in classes
    }
    assert told == {name: getattr(cpu, name)._fields for name in told} == declared_records()


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_can_be_forced(level):
    said = python("from gpuens.runtime.native import cpu; print(cpu.level() or 'v2')", GPUENS_CPU=level)
    assert said.strip() == level


def test_a_level_that_the_processor_lacks_is_refused():
    environment = os.environ | {"GPUENS_CPU": "v5"}
    code = [sys.executable, "-c", "import gpuens.runtime.native"]
    ran = subprocess.run(code, env=environment, capture_output=True, text=True)
    assert ran.stderr.strip().endswith("which this processor has and gpuens was built for, not 'v5'.")


def native_of(folder, of=(Path(cpu.__file__),), **environment):
    """Return a process that imports the extension of a package with given levels, and prints its name."""
    package = folder / "gpuens"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(f"__path__ = [{str(package)!r}]\n")
    for part in (ROOT / "gpuens" / "runtime", *of):
        if not (package / part.name).exists():
            (package / part.name).symlink_to(part)
    # -S: the import hook of an editable installation would find the extension of this checkout
    paths = [str(folder), *(path for path in sys.path if path.endswith("packages"))]
    code = f"import sys; sys.path[:0] = {paths}; from gpuens.runtime.native import cpu; print(cpu.__name__)"
    environment = {**os.environ, "GPUENS_CPU": "", **environment}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, cwd=folder
    )


def test_the_best_level_that_was_built_is_taken(tmp_path):
    """A build may have fewer levels than the processor, or none."""
    level = cpu.level() or "v2"
    other = next(name for name in native.LEVELS if name != level)
    assert native_of(tmp_path).stdout.split() == [cpu.__name__]
    assert native_of(tmp_path, GPUENS_CPU=other).stderr.strip().splitlines()[-1] == (
        f"ValueError: GPUENS_CPU must be one of {level}, which this processor has and gpuens was built for, not "
        f"{other!r}."
    )
    (tmp_path / "gpuens" / Path(cpu.__file__).name).unlink()
    told = native_of(tmp_path, of=()).stderr
    assert "ImportError: gpuens is not compiled for this processor: run 'make native' in " in told


def test_a_level_that_the_processor_lacks_is_passed_over(monkeypatch):
    """Modules say so themselves, so that none is asked for what its instructions would end the process."""
    module = sys.modules[cpu.__name__]
    monkeypatch.setattr(module, "supported", lambda: False)
    assert native.usable_levels() == LEVELS[:-1]
    if len(LEVELS) == 1:
        with pytest.raises(ImportError, match="gpuens is not compiled for this processor: run 'make native' in "):
            native._best_module()
    else:
        assert native._best_module() is native.module_of(LEVELS[-2])


# --- what it takes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_read_only_data_are_taken(dtype):
    codes, offsets = codes_of(100, dtype=dtype)
    values = np.random.default_rng(0).random(600)
    expected = row_sums(codes, offsets, values)
    for given in (codes.base, offsets, values):
        given.flags.writeable = False
    np.testing.assert_array_equal(row_sums(codes, offsets, values), expected)


@pytest.mark.parametrize("what", ["another type", "a step", "one dimension", "a read-only result"])
def test_what_would_be_a_copy_is_refused(what):
    """What is written to a copy would be lost."""
    (codes, offsets), values, sums, read_only = codes_of(100), np.ones(600), np.zeros(100), np.zeros(100)
    read_only.flags.writeable = False
    given = {
        "another type": (codes.T, offsets, values.astype(np.float32), sums),
        "a step": (codes.T, offsets, values, np.zeros(200)[::2]),
        "one dimension": (codes.T.ravel(), offsets, values, sums),
        "a read-only result": (codes.T, offsets, values, read_only),
    }[what]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        cpu.row_sums(*given)


def test_records_are_read_by_the_names_of_their_fields():
    merges = np.array([1, 0]), np.array([2, 1]), np.array([0.5, 0.25])
    record = namedtuple("Backwards", reversed(cpu.Merges._fields))(np.empty(2), *np.empty((2, 2), dtype=np.int64))
    cpu.sort_merges(*merges, record)
    assert [part.tolist() for part in reversed(record)] == [part.tolist() for part in merges]
    for other in (SimpleNamespace(kept=record.kept, absorbed=record.absorbed), tuple(record)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            cpu.sort_merges(*merges, other)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_no_rows(dtype):
    codes, offsets = codes_of(0, dtype=dtype)
    assert row_sums(codes, offsets, np.ones(600)).shape == (0,)
    assert row_lookups(codes, offsets, np.ones((600, 3))).shape == (0, 3)
    assert cluster_sums(codes, offsets, np.ones(0)).tolist() == [0.0] * 600
    assert pack_rows(codes, np.full(20, 31)).shape[1] == 0


@pytest.mark.parametrize("width", [1, 3, 4, 31, 32, 33, 71])
def test_sums_of_tables_follow_the_order_of_the_clusterings(width):
    codes, offsets = codes_of(50)
    table = np.random.default_rng(0).standard_normal((600, width)) * 10.0 ** np.arange(-8, width - 8).clip(-8, 8)
    expected = np.zeros((50, width))
    for column, first in zip(codes.T, offsets, strict=False):
        known = column < 30
        expected[known] += table[first + column[known]]
    np.testing.assert_array_equal(row_lookups(codes, offsets, table), expected)


def test_arrays_that_come_back_print_as_usual():
    """NumPy has two types of 64-bit integers; examples in documents show the other one's name."""
    rows, _, counts = contingency.cells(np.eye(2, dtype=np.int64))
    assert repr(rows) == repr(counts - 1 + np.arange(2)) == "array([0, 1])"


# --- threads ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long():
    """A call that takes a second on one thread, and one that takes some milliseconds."""
    codes, offsets = codes_of(200_000, 100, 250)
    table = np.random.default_rng(0).random((25_000, 64))
    return lambda: row_lookups(codes, offsets, table), lambda: row_lookups(codes[:2000], offsets, table)


def test_a_number_of_threads_that_is_none_is_refused(long, monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "many")
    with pytest.raises(ValueError, match="GPUENS_THREADS must be a whole number from 1 to 9999, not 'many'"):
        long[1]()
    monkeypatch.setenv("GPUENS_THREADS", "2")
    long[1]()


def test_threads_of_python_call_at_the_same_time(long, monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "1")
    expected = long[1]()
    for threads in ("2", "3", "8"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: long[1](), range(20)):
                np.testing.assert_array_equal(found, expected)


def test_other_threads_of_python_run_meanwhile(long):
    ticks = []
    ended = threading.Event()

    def tick():
        while not ended.wait(0.005):
            ticks.append(None)

    other = threading.Thread(target=tick)
    other.start()
    long[0]()
    ended.set()
    other.join()
    assert len(ticks) > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_a_forked_process_has_threads_of_its_own(long, monkeypatch):
    """The child of a process that has used its threads, which a fork does not copy, and that uses them now."""
    monkeypatch.setenv("GPUENS_THREADS", "3")
    expected = long[1]()
    busy = threading.Thread(target=long[0])
    busy.start()
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(long[1](), expected) else 1)
    ended, since = (0, 0), time.monotonic()
    while ended[0] == 0 and time.monotonic() - since < 30:
        ended = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    busy.join()
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
    assert ended == (child, 0)
    np.testing.assert_array_equal(long[1](), expected)


# --- signals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_a_signal_ends_a_long_call(threads, long, monkeypatch):
    """Within .2 s (here of a machine that is busy), and the next call works."""
    monkeypatch.setenv("GPUENS_THREADS", threads)
    expected = long[1]()
    after_due, after_rung = interrupted(long[0], after=0.03)
    assert after_due < 0.5
    assert after_rung < 0.2
    np.testing.assert_array_equal(long[1](), expected)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_memory_that_runs_out_in_a_thread_is_a_memory_error():
    """The working memory of a clustering of very many clusters does not fit."""
    code = (
        "import resource, numpy as np\n"
        "from gpuens.labels.incidence import cluster_sums, row_sums\n"
        "codes, k = np.zeros((300_000, 2), dtype=np.uint32, order='F'), 2**24\n"
        "offsets, values = np.array([0, k, 2 * k]), np.ones(300_000)\n"
        "cluster_sums(codes, np.array([0, 1, 2]), values)\n"
        "now = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (now + 2**28 + 2**27,) * 2)\n"
        "try:\n    cluster_sums(codes, offsets, values)\nexcept MemoryError:\n    print('refused')\n"
        "print(cluster_sums(codes, np.array([0, 1, 2]), values).tolist())"
    )
    assert python(code, GPUENS_THREADS="2").split("\n")[:2] == ["refused", "[300000.0, 300000.0]"]
