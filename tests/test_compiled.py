"""Numba's cache of compiled functions is a convenience: damaged files or a missing folder must do no harm."""

import gc
import importlib
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from gpuens.runtime import compiled

SOURCE = """
from gpuens.runtime.compiled import njit

@njit(cache=True, nogil=True)
def twice(x):
    return 2 * x
"""


@pytest.fixture
def twice(tmp_path, monkeypatch):
    """Return a function that imports a small module again and returns the module's compiled function."""
    monkeypatch.setattr(compiled.numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    path = tmp_path / "kept_by_numba.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("kept_by_numba", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.twice

    return load


def kept(folder):
    return sorted(path for path in folder.rglob("*.nb?"))


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_what_was_compiled_is_kept(twice, tmp_path):
    for n in range(2):
        function = twice()
        assert (function(21), hits(function)) == (42, n)
    assert [path.suffix for path in kept(tmp_path)] == [".nbc"]


def test_what_is_compiled_at_the_same_time_for_other_types_is_kept(twice, monkeypatch):
    """Tasks of a batch start at the same time and compile the same functions for different types."""
    one, other, dump = twice(), twice(), IndexDataCacheFile._dump

    def dump_after_the_other(file, thing):
        monkeypatch.setattr(IndexDataCacheFile, "_dump", dump)
        assert other(0.5) == 1.0
        return dump(file, thing)

    monkeypatch.setattr(IndexDataCacheFile, "_dump", dump_after_the_other)
    assert one(21) == 42
    function = twice()
    assert (function(21), function(0.5), hits(function)) == (42, 1.0, 2)


def test_a_file_of_other_types_is_not_taken(twice, tmp_path):
    function = twice()
    assert (function(21), function(0.5)) == (42, 1.0)
    one, other = kept(tmp_path)
    one.write_bytes(other.read_bytes())
    function = twice()
    assert (function(21), function(0.5), hits(function)) == (42, 1.0, 1)


def test_a_changed_function_is_compiled_again_in_the_place_of_what_it_was(twice, tmp_path):
    assert twice()(21) == 42
    before = kept(tmp_path)
    path = tmp_path / "kept_by_numba.py"
    path.write_text(SOURCE.replace("2 * x", "3 * x"))
    compiled.cache._content_of.cache_clear()
    function = twice()
    assert (function(21), hits(function)) == (63, 0)
    assert kept(tmp_path) == before


@pytest.fixture
def calling(tmp_path, monkeypatch):
    """Return a function that writes new constants, imports again the modules that use them, and returns `above`."""
    monkeypatch.setattr(compiled.numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "calls").mkdir()
    (tmp_path / "calls" / "above.py").write_text(
        "from calls import between\nfrom calls.between import OTHER, twice\n"
        "from gpuens.runtime.compiled import njit\n\n"
        "@njit(cache=True)\ndef above(x):\n    return between.plus(twice(x)) + OTHER\n"
    )
    (tmp_path / "calls" / "between.py").write_text(
        f"from calls.below import ONE, OTHER, TABLE\n{SOURCE}\n"
        "@njit()\ndef plus(x):\n    return x + ONE[1] + TABLE[0]\n"
    )

    def load(other=0, one=1, table=0):
        (tmp_path / "calls" / "below.py").write_text(
            f"import numpy as np\n\nOTHER, ONE, TABLE = {other}, (0, {one}), np.array([{table}, 5])\n"
        )
        for name in ("calls", "calls.above", "calls.between", "calls.below"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module("calls.above").above

    return load


def test_what_a_function_calls_and_reads_in_other_files_is_part_of_it(calling, tmp_path):
    for n in range(2):
        function = calling()
        assert (function(21), hits(function)) == (43, n)
    for changed, result in ({"other": 7}, 50), ({"one": 3}, 45), ({"table": 4}, 47):
        function = calling(**changed)
        assert (function(21), hits(function)) == (result, 0), changed
        function = calling()
        assert (function(21), hits(function)) == (43, 0), changed
    path = tmp_path / "calls" / "between.py"
    path.write_text(path.read_text().replace("2 * x", "3 * x"))
    compiled.cache._content_of.cache_clear()
    function = calling()
    assert (function(21), hits(function)) == (64, 0)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_half_a_file_is_compiled_again(twice, tmp_path, share):
    assert twice()(21) == 42
    (path,) = kept(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    for n in range(2):  # the first call repairs the file
        function = twice()
        assert (function(21), hits(function)) == (42, n)


def test_a_full_disk_keeps_nothing(twice, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    assert twice()(21) == 42
    assert kept(tmp_path) == []


def test_a_place_that_cannot_be_written_to_is_read(twice, tmp_path, monkeypatch):
    assert twice()(21) == 42
    before = kept(tmp_path)

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", refused)
    function = twice()
    assert (function(21), hits(function)) == (42, 1)
    assert function(0.5) == 1.0  # the function is compiled, but not stored in the cache
    assert kept(tmp_path) == before


def test_no_place_is_said_once_and_none_is_made(tmp_path):
    """Neither the package nor the home folder can be written to, as in containers that run under any user number."""
    program = (
        "import os, tempfile\n"
        "def refused(*_, **__):\n    raise PermissionError(13, 'Permission denied')\n"
        "tempfile.TemporaryFile = refused\n"  # no folder can be written to, even by root
        "import glob\nglob.iglob = lambda pattern: []\n"  # no compiled function of an earlier run is found
        "from gpuens import contingency\nfrom gpuens.labels import incidence\nfrom gpuens.runtime import compiled\n"
        "@compiled.njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
        "print(twice(21))"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": "~/.cache", "NUMBA_CACHE_DIR": ""}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120
    )
    assert (ran.returncode, ran.stdout) == (0, "42\n"), ran.stderr
    assert ran.stderr.count("UserWarning: compiled functions cannot be kept") == 1
    assert "let NUMBA_CACHE_DIR name a directory that can." in ran.stderr
    assert os.listdir(tmp_path) == []


def test_what_compiled_functions_call_is_linked_into_them_and_made_machine_code_for_python_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled.numba.config, "CACHE_DIR", str(tmp_path))

    @compiled.njit(cache=True)
    def least(values, start):
        found = start
        for value in values:
            found = min(found, value)
        return found

    @compiled.njit()
    def least_of_both(one, other):
        return least(other, least(one, np.inf))

    one, other = np.array([3.0, 2.0]), np.array([5.0, 4.0])
    assert least_of_both(one, other) == least_of_both(other, one) == 2.0
    assert (len(least.overloads), len(least.inner.overloads), kept(tmp_path)) == (0, 1, [])
    assert least(one, 2.5) == 2.0
    assert gc.isenabled()  # compiling switches the garbage collector off for a while, but on again at the end
    assert (len(least.overloads), len(least.inner.overloads), len(kept(tmp_path))) == (1, 1, 1)


def test_releases_of_numba_that_nobody_has_tried_compile_as_numba_does(monkeypatch):
    monkeypatch.setattr(compiled, "TRIED", ((0, 1), (0, 2)))

    @compiled.njit()
    def twice(x):
        return 2 * x

    @compiled.njit()
    def four_times(x):
        return twice(twice(x))

    assert four_times(3) == 12
    assert not hasattr(four_times, "inner")
    assert len(twice.overloads) == 1
