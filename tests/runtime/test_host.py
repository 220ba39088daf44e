"""Machines with restrictions: limits of memory and processors, no home, no user name, no writable folder."""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from conftest import one_sentence, random_labels, refused

import gpuens as ge
from gpuens.runtime import device, host, kernels

GB = 10**9

# --- memory and processors --------------------------------------------------------------------------------------------


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Return a function that simulates control groups with the given text in /proc and the given files."""

    def put(controlled, files):
        (tmp_path / "cgroup").write_text(controlled)
        for name, text in files.items():
            path = tmp_path / "groups" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        host._limited.cache_clear()
        host._quota.cache_clear()

    monkeypatch.setattr(host, "CONTROLLED", tmp_path / "cgroup")
    monkeypatch.setattr(host, "GROUPS", tmp_path / "groups")
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    monkeypatch.delenv("GPUENS_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=64 * GB, available=32 * GB))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    yield put
    host._limited.cache_clear()
    host._quota.cache_clear()


VERSION_2 = {
    "job/memory.max": 8 * GB,
    "job/memory.current": 5 * GB,
    "job/memory.stat": f"anon 7\ninactive_file {GB}",
    "job/step/memory.max": "max",
    "job/cpu.max": "250000 100000",
    "job/step/cpu.max": "max 100000",
}
VERSION_1 = {
    "memory/docker/1/memory.limit_in_bytes": 2**63 - 4096,
    "memory/memory.limit_in_bytes": 8 * GB,
    "memory/memory.usage_in_bytes": 5 * GB,
    "memory/memory.stat": f"total_inactive_file {GB}",
    "cpu/cpu.cfs_quota_us": 250000,
    "cpu/cpu.cfs_period_us": 100000,
    "cpu/docker/1/cpu.cfs_quota_us": -1,
}


@pytest.mark.parametrize(
    ("controlled", "files"),
    [
        ("0::/job/step\n", VERSION_2),
        ("5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n1:name=systemd:/docker/1\n0::/\n", VERSION_1),
    ],
    ids=["version 2", "version 1"],
)
def test_a_container_has_what_its_groups_allow(groups, controlled, files):
    groups(controlled, files)
    assert (host.total_memory(), host.available_memory()) == (8 * GB, 4 * GB)
    assert device.memory_budget() == 0.8 * 4 * GB
    assert device.n_threads() == 3


@pytest.mark.parametrize(
    ("controlled", "files"),
    [("", {}), ("0::/\n", {}), ("0::/\n", {"memory.max": "max", "cpu.max": "max 100000"})],
    ids=["no groups", "no files", "no limits"],
)
def test_without_limits_a_process_has_the_machine(groups, controlled, files):
    groups(controlled, files)
    assert (host.total_memory(), host.available_memory()) == (64 * GB, 32 * GB)
    assert device.n_threads() == 16


def test_half_a_processor_is_one_thread(groups):
    groups("0::/\n", {"cpu.max": "50000 100000"})
    assert device.n_threads() == 1


def test_a_limit_of_addresses_limits_the_budget(groups, monkeypatch):
    groups("", {})
    used = psutil.Process().memory_info().vms
    for limit, least, most in ((used + GB, 0.5 * GB, 0.8 * GB), (used // 2, 0, 0)):
        monkeypatch.setattr(resource, "getrlimit", lambda what, limit=limit: (limit, resource.RLIM_INFINITY))
        assert least <= device.memory_budget() <= most


# --- no writable folder -----------------------------------------------------------------------------------------------

NOBODY = """
import pwd, tempfile
def nobody(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = nobody
tempfile._candidate_tempdir_list = lambda: ["/nowhere"]
"""


def as_nobody(folder, *commands, limit=None, **environment):
    """Run commands in a child process without home, user name and temporary folder, in a read-only folder."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(NOBODY)
    (folder / "here").mkdir()
    (folder / "here").chmod(0o555)

    def restrict():
        ctypes.CDLL(None).prctl(24, 1)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE: file permissions now bind root too
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    program = f"import sys\nfrom gpuens.cli import main\nsys.exit(max(main(line.split()) for line in {commands!r}))"
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "TMPDIR")}
    kept["PYTHONPATH"] = os.pathsep.join([str(folder / "site"), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=folder / "here",
        env={**kept, **environment},
        preexec_fn=restrict,
        timeout=300,
    )


linux = pytest.mark.skipif(sys.platform != "linux", reason="drops a capability of Linux")


@linux
def test_commands_work_for_nobody_with_no_place_but_the_output(tmp_path):
    labels = random_labels(100, 6, 4)
    np.save(tmp_path / "labels.npy", labels)
    out = tmp_path / "out.npy"
    ran = as_nobody(
        tmp_path,
        f"run {tmp_path}/labels.npy --method lwea -k 3 -o {out}",
        "info --check --device cpu",
        limit=8 * GB,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    np.testing.assert_array_equal(np.load(out), ge.LWEA(3).fit_predict(labels))
    assert os.listdir(tmp_path / "here") == []
    (tmp_path / "here").chmod(0o755)


@linux
def test_too_few_addresses_are_a_sentence(tmp_path):
    ran = as_nobody(tmp_path, "info --check", limit=700_000_000, GPUENS_THREADS="2")
    assert (ran.returncode, ran.stdout) == (3, "")
    (line,) = ran.stderr.splitlines()
    expected = "this process may have 700.0 MB of addresses (ulimit -v), but needs 1.2 GB for 2 threads"
    assert one_sentence(line.removeprefix("gpuens: ")).startswith(expected)


def test_workers_without_temporary_space_are_refused(monkeypatch, tmp_path):
    pytest.importorskip("distributed")
    from gpuens.distributed import connected

    def start():
        with connected("local", 1):
            pass

    import dask

    with dask.config.set({"temporary-directory": os.devnull}):
        refused(
            start, PermissionError, "'/dev/null', which cannot be written; set DASK_TEMPORARY_DIRECTORY to a directory"
        )
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    monkeypatch.setenv("TMPDIR", "/full")
    refused(start, PermissionError, "temporary files in '/full', which cannot be written; set TMPDIR to a directory")


@pytest.mark.parametrize("folder", ["/dev/null/cupy", "~/.cupy"])
def test_kernels_stay_in_memory_where_they_cannot_be_kept(fake_cupy, monkeypatch, folder):
    monkeypatch.setenv("CUPY_CACHE_DIR", folder)
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    monkeypatch.setenv("HOME", "~")  # a home folder that does not exist
    with pytest.warns(UserWarning, match="compiled kernels cannot be kept, .* let CUPY_CACHE_DIR name a directory"):
        kernels._module("codes", "cuda:0", ())
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    assert os.path.isdir(os.environ["CUPY_CACHE_DIR"])


def test_workers_inherit_that_kernels_stay_in_memory(fake_cupy, monkeypatch):
    pytest.importorskip("distributed")
    from gpuens.distributed import connected

    monkeypatch.setenv("CUPY_CACHE_DIR", "/dev/null/cupy")
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    with connected(None):
        assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"


def test_kernels_are_kept_where_they_can_be(fake_cupy, monkeypatch, tmp_path):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "new"))
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    assert device.keeps_kernels()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "0"
