"""Support for tests of batches: a folder with label files, and functions that read the results of a batch."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import structured_labels

from gpuens import cli

LABELS = {name: structured_labels(60, 6, 3, seed=seed)[0] for seed, name in enumerate("abc")}
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Provide a working directory with the label files data/a.npy, data/b.npy and data/c.csv."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("data")
    for name, labels in LABELS.items():
        np.save(f"data/{name}.npy", labels)
    pd.DataFrame(LABELS["c"], columns=list("uvwxyz")).to_csv("data/c.csv", index=False)
    os.unlink("data/c.npy")
    return tmp_path


@pytest.fixture
def call(capsys):
    def run(line):
        code = cli.main(["batch", *line.split()])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def job(name="a", **more):
    return {"id": name, "input": f"data/{name}.npy", "n_clusters": 3, **more}


def contents(place="out", *, but=("events.jsonl", "summary.csv")):
    """Return the bytes of the labels and pages in a folder, and its markers without time and memory."""
    found = {}
    for path in sorted(Path(place).iterdir()):
        if path.suffix == ".json":
            marker = json.loads(path.read_text())
            found[path.name] = {
                k: v for k, v in marker.items() if k not in ("seconds", "peak_memory_bytes", "gpu_bytes")
            }
        elif path.name not in but:
            found[path.name] = path.read_bytes()
    return found


def events(place="out"):
    return [json.loads(line) for line in Path(place, "events.jsonl").read_text().splitlines()]


def count(event, place="out"):
    return Counter(told.get("job") for told in events(place) if told["event"] == event)
