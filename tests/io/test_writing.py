"""Files appear under their names only when complete, even if the writing process is killed.

A record always describes the file beside it.
"""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import refused

from gpuens import io
from gpuens.io import atomic, outputs, parts

OLD, NEW = np.zeros(1000, dtype=np.int64), np.arange(1000)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks and signals")


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write(path, labels):
    """Write labels and their record, as the commands do."""
    with atomic.recorded(path) as record:
        io.write_labels(path, labels)
        record["sum"] = int(labels.sum())


def umask():
    current = os.umask(0)
    os.umask(current)
    return current


# --- one file ---------------------------------------------------------------------------------------------------------


def test_replacing(tmp_path):
    path = tmp_path / "record.json"
    with atomic.replacing(path) as file:
        file.write(b"new")
        assert not path.exists()  # the file appears only when it is complete
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()
    (tmp_path / "link").symlink_to(path)
    with atomic.replacing(tmp_path / "link") as file:
        file.write(b"newer")
    assert (tmp_path / "link").is_symlink()
    assert path.read_bytes() == b"newer"
    assert sorted(os.listdir(tmp_path)) == ["link", "record.json"]


@pytest.mark.parametrize("name", ["n" * 251 + ".npy", os.fsdecode(b"\xff\xfe.npy")])
def test_any_name_that_a_file_can_have(tmp_path, name):
    try:
        (tmp_path / name).touch()
    except OSError:
        pytest.skip("no file can have this name here")
    io.write_labels(tmp_path / name, NEW)
    np.testing.assert_array_equal(np.load(tmp_path / name), NEW)


@pytest.mark.parametrize(
    ("name", "mentioned"),
    [("n" * 252 + ".npy", "a shorter name"), ("nul\0.npy", "null"), ("\ud800.npy", "surrogates not allowed")],
)
def test_names_that_no_file_can_have(tmp_path, name, mentioned):
    with pytest.raises(ValueError, match=mentioned) as error:
        io.write_labels(tmp_path / name, NEW)
    assert "cannot be written (" in str(error.value)
    assert os.listdir(tmp_path) == []


@POSIX
def test_pipes_and_devices_stay_what_they_are(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "null.npy").symlink_to(os.devnull)
    for name in ("pipe.npy", "null.npy"):
        refused(lambda name=name: io.write_labels(tmp_path / name, NEW), ValueError, name, "pipe or a device", "name a")
    assert stat.S_ISFIFO((tmp_path / "pipe.npy").stat().st_mode)


@POSIX
def test_files_of_others_where_only_their_owners_may_replace_them(tmp_path, monkeypatch):
    (tmp_path / "out.npy").touch()
    tmp_path.chmod(0o1777)
    assert outputs.check_output(str(tmp_path / "out.npy"), io.ARRAYS) == ".npy"
    monkeypatch.setattr(os, "geteuid", lambda: 123456)
    refused(lambda: outputs.check_output(str(tmp_path / "out.npy"), io.ARRAYS), PermissionError, "another user")
    assert outputs.check_output(str(tmp_path / "new.npy"), io.ARRAYS) == ".npy"


# --- a file and its record --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "csv.gz", "parquet"])
def test_a_record_names_the_contents_of_its_file(tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    for labels in (OLD, NEW):
        write(path, labels)
        record = json.loads(Path(atomic.record_of(path)).read_text())
        assert record == {"sum": int(labels.sum()), "sha256": sha256(path)}
    assert sorted(os.listdir(tmp_path)) == [f"out.{suffix}", f"out.{suffix}.json"]


@POSIX
def test_a_record_names_the_contents_of_a_folder(tmp_path):
    pytest.importorskip("zarr")
    found = []
    for labels in (OLD, NEW):
        write(tmp_path / "out.zarr", labels)
        found.append(json.loads((tmp_path / "out.zarr.json").read_text())["sha256"])
    command = "cd out.zarr && find . -type f | cut -c 3- | LC_ALL=C sort | xargs sha256sum | sha256sum"
    ran = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[0] == found[1] != found[0]


def test_a_failure_leaves_the_old_file_and_its_record(tmp_path):
    path = tmp_path / "out.npy"
    write(path, OLD)
    before = {name: sha256(tmp_path / name) for name in os.listdir(tmp_path)}

    def failing():
        with atomic.recorded(path):
            io.write_labels(path, NEW)
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        failing()
    assert {name: sha256(tmp_path / name) for name in os.listdir(tmp_path)} == before
    write(path, NEW)  # after the failure, no write waits for a record
    io.write_labels(path, OLD)
    np.testing.assert_array_equal(np.load(path), OLD)


def test_records_of_names_that_are_no_text(tmp_path):
    with atomic.recorded(tmp_path / "out.npy") as record:
        io.write_labels(tmp_path / "out.npy", NEW)
        record["output"] = os.fsdecode(b"\xff.npy")
    assert json.loads((tmp_path / "out.npy.json").read_text())["output"] == os.fsdecode(b"\xff.npy")


# --- kills ------------------------------------------------------------------------------------------------------------


def killed_at(moment, path):
    """Write in a child process that is killed at its file event number `moment`.

    Return whether the process was killed.
    """
    child = os.fork()
    if child == 0:
        counted = iter(range(moment))

        def watch(event, args):
            if event in ("open", "os.rename", "os.remove") and next(counted, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            write(path, NEW)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("suffix", ["npy", "csv"])
def test_whenever_a_writer_is_killed_a_record_is_that_of_its_labels(tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    record = Path(atomic.record_of(path))
    write(path, OLD)
    whole = [sha256(path)]
    write(path, NEW)
    whole.append(sha256(path))
    moment, left, alone = 0, 0, 0
    while True:
        write(path, OLD)
        if not killed_at(moment, path):
            break
        assert sha256(path) in whole
        if record.exists():
            assert json.loads(record.read_text())["sha256"] == sha256(path)
        parts_left = [tmp_path / name for name in os.listdir(tmp_path) if name.endswith(".part")]
        left += bool(parts_left)
        alone += not record.exists()
        write(path, NEW)
        # the killed process's unfinished file has been removed
        assert sorted(os.listdir(tmp_path)) == [path.name, record.name]
        moment += 1
    assert moment >= 6  # file events include two opened files, the removed old record and two renamed files
    assert left > 0
    assert alone > 0
    assert json.loads(record.read_text()) == {"sum": int(NEW.sum()), "sha256": sha256(path)}


@POSIX
def test_what_others_are_writing_is_left_alone(tmp_path):
    with atomic.replacing(tmp_path / "slow.npy") as file:
        file.write(b"by and by")
        io.write_labels(tmp_path / "quick.npy", NEW)
        ran = subprocess.run(  # another process writes to the same folder
            [sys.executable, "-c", "import sys\nfrom gpuens import io\nio.write_labels(sys.argv[1], [0, 1])", "o.npy"],
            cwd=tmp_path,
            check=True,
            timeout=60,
        )
        assert ran.returncode == 0
        file.write(b", but in the end")
    assert (tmp_path / "slow.npy").read_bytes() == b"by and by, but in the end"
    assert sorted(os.listdir(tmp_path)) == ["o.npy", "quick.npy", "slow.npy"]


@POSIX
def test_only_leavings_of_ours_are_removed(tmp_path):
    kept = [".gpuens-ab.part", ".gpuens-notes", ".other.part", "gpuens.part", ".gpuens-ab.part.bak"]
    for name in [".gpuens-cd.part", *kept]:
        (tmp_path / name).touch()
    two_hours_ago = time.time() - 7200
    for name in (".gpuens-cd.part", ".gpuens-ab.part.bak", ".other.part"):
        os.utime(tmp_path / name, (two_hours_ago, two_hours_ago))
    (tmp_path / ".gpuens-folder.part").mkdir()
    io.write_labels(tmp_path / "out.npy", NEW)
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, ".gpuens-folder.part", "out.npy"])


@POSIX
def test_parts_of_this_system_are_removed_at_once_and_those_of_others_later(tmp_path, monkeypatch):
    child = "import os, sys\nfrom gpuens.io.parts import new_part\nwith new_part('.') as (file, path):\n    os._exit(9)"
    ran = subprocess.run([sys.executable, "-c", child], cwd=tmp_path, timeout=60)
    (left,) = os.listdir(tmp_path)
    assert (ran.returncode, parts.is_part(left)) == (9, True)
    monkeypatch.setattr(parts, "system_name", lambda: "another system")
    io.write_labels(tmp_path / "out.npy", NEW)
    assert left in os.listdir(tmp_path)
    monkeypatch.undo()
    io.write_labels(tmp_path / "out.npy", NEW)
    assert os.listdir(tmp_path) == ["out.npy"]


@POSIX
def test_writers_that_begin_at_once_lose_no_part(tmp_path):
    """Each removes parts without a lock, also those that another thread has just made."""

    def write_often(writer):
        for turn in range(40):
            io.write_labels(tmp_path / f"{writer}.npy", [writer, turn])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write_often, range(6)))
    assert sorted(os.listdir(tmp_path)) == [f"{writer}.npy" for writer in range(6)]
    for writer in range(6):
        assert np.load(tmp_path / f"{writer}.npy").tolist() == [writer, 39]


def test_without_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "fcntl", None)
    (tmp_path / ".gpuens-ab.part").touch()
    os.utime(tmp_path / ".gpuens-ab.part", (0, 0))
    io.write_labels(tmp_path / "out.npy", NEW)
    assert len(os.listdir(tmp_path)) == 2
