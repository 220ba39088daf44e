"""Batches behind URIs."""

import json
import os
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from batches import (
    LABELS,
    folder,  # noqa: F401
    job,
)
from conftest import refused

from gpuens import batch
from gpuens.batch import places, stores
from gpuens.batch.manifest import load
from gpuens.methods import LWGP
from gpuens.runtime import failures, installing

pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")


def through(uri, fs):
    """Run a batch twice with inputs and results behind a URI, and compare the labels with local ones."""
    root, in_memory = uri.split("://")[1], uri.startswith("memory")
    for name in ("a.npy", "b.npy", "c.csv"):
        fs.put_file(f"data/{name}", f"{root}/in/{name}")
    manifest = [{"id": "a", "input": f"{uri}/in/a.npy", "n_clusters": 3, "report": in_memory}]
    manifest += [{"id": "all", "input": f"{uri}/in/*", "n_clusters": 3}]
    for done, already in ((4, 0), (0, 4)):
        outcome = batch.run(manifest, f"{uri}/out")
        assert (outcome.done, outcome.already, outcome.exit_code) == (done, already, 0), outcome
    store = stores.open_store(f"{uri}/out")
    assert store.names() >= {"a.json", "a.labels.npy", "all-b.labels.npy", "summary.csv", "events.jsonl"}
    assert ("a.html" in store.names()) == in_memory
    np.testing.assert_array_equal(np.load(BytesIO(store.read("a.labels.npy"))), LWGP(3).fit(LABELS["a"]).labels_)
    assert [json.loads(line)["event"] for line in store.read("events.jsonl").splitlines()].count("end") == 2
    fs.put_file("data/b.npy", f"{root}/in/a.npy")  # the input file changes
    assert batch.run(manifest, f"{uri}/out").done == 2
    # a manifest that names its inputs relative to its own folder
    fs.pipe_file(f"{root}/jobs.json", json.dumps([{"id": "b", "input": "in/b.npy", "n_clusters": 3}]).encode())
    assert batch.run(f"{uri}/jobs.json", f"{uri}/more").done == 1
    missing = batch.run([{"input": f"{uri}/in/gone.npy", "n_clusters": 3}], f"{uri}/out")
    assert (missing.exit_code, "gone.npy" in missing.jobs[0]["error"]) == (3, True)


def test_results_in_memory_and_by_file_uris(folder):
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.makedirs("/bucket/in")
    through("memory://bucket", fs)
    fs.rm("/bucket", recursive=True)
    os.makedirs("bucket/in")
    through(f"file://{folder}/bucket", fsspec.filesystem("file"))


def test_a_marker_behind_a_uri_comes_last_and_goes_first(folder, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    done = []
    for name in ("put_file", "pipe_file", "rm_file"):
        real = getattr(type(fs), name)

        def noted(self, *args, _real=real, _name=name, **more):
            done.append((_name, str(args[-1] if _name == "put_file" else args[0]).rsplit("/", 1)[1]))
            return _real(self, *args, **more)

        monkeypatch.setattr(type(fs), name, noted)
    batch.run([job()], "memory://order")
    batch.run([job()], "memory://order", force=True)
    expected = [("put_file", "a.labels.npy"), ("put_file", "a.json")]
    told = [what for what in done if what[1].startswith("a.")]
    assert told == 2 * [("rm_file", "a.json"), *expected]
    fs.rm("/order", recursive=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_results_on_s3(folder, monkeypatch):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = pytest.importorskip("moto.server", reason="moto is not installed").ThreadedMotoServer(port=0)
    import fsspec

    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    try:
        fs = fsspec.filesystem("s3")
        fs.mkdir("bucket")
        through("s3://bucket", fs)
    finally:
        server.stop()
        fsspec.filesystem("s3").clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # a port without a server
    with pytest.raises(OSError) as error:  # noqa: PT011
        stores.open_store("s3://bucket/out", make=False).names()
    assert failures.exit_code(error.value) == failures.TEMPORARY


def test_unknown_uris_are_refused(folder, monkeypatch):
    refused(lambda: stores.open_store("nowhere://bucket"), ValueError, "is on a file system unknown to fsspec")
    zarr = places.at_hand("memory://x/a.zarr", ".")
    refused(lambda: zarr.__enter__(), ValueError, "is a folder of chunks")
    for name in list(sys.modules):
        if name.split(".")[0] == "fsspec":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    refused(lambda: stores.open_store("s3://bucket"), ImportError, "s3:// needs s3fs", installing.command("cloud"))


@pytest.mark.parametrize("package", ["yaml", "jsonschema"])
def test_without_its_packages_the_extra_is_named(folder, monkeypatch, package):
    Path("m.yaml").write_text("jobs: []\n")
    monkeypatch.setitem(sys.modules, package, None)
    refused(lambda: load("m.yaml"), ImportError, f"manifests need {package}", installing.command("batch"))
