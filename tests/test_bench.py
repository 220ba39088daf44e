"""The benchmarks run: each on tiny data, as a program of its own. What they measure is for people to look at."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import structured_labels

BENCH = Path(__file__).parents[1] / "bench"


def run(script, *arguments):
    command = [sys.executable, BENCH / script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_covtype_measures_every_method_on_a_label_file(tmp_path):
    labels, _ = structured_labels(400, 6, 4, noise=0.1)
    np.save(tmp_path / "labels.npy", labels.astype(np.uint8))
    printed = run(
        "covtype.py", "--labels", tmp_path / "labels.npy", "-k", 4, "--quick", "--output", tmp_path / "found.json"
    )
    found = json.loads((tmp_path / "found.json").read_text())["ensembles"]["given"]
    assert found["n_objects"] == 400
    assert found["n_core_groups"] == len(np.unique(labels, axis=0))
    assert set(found["methods"]) == {"eac", "lwea", "lwgp", "hbgf"}
    for row in [*found["methods"].values(), *found["command"].values()]:
        assert "failed" not in row
        assert row["peak"] > 2**20
    assert sum(found["methods"]["eac"]["largest"]) == 400
    assert 0 < found["methods"]["lwea"]["comparisons"] < 2
    assert (tmp_path / "found.md").read_text() == printed


@pytest.mark.parametrize("part", ["linkage", "graph", "kmeans"])
def test_peers_and_ours_agree_on_a_mixture(part, tmp_path):
    run("vs_peers.py", "--quick", "--only", part, "--output", tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text())["parts"][part]["rows"]
    for row in rows:
        assert row.get("failed", "not installed") == "not installed"
        assert row.get("nmi", 1.0) > 0.7
        if row.get("similarity") == "locally weighted":
            assert row.get("largest_difference", 0.0) < 1e-9
    ours = {row["who"]: row for row in rows if row["who"] in ("EAC", "LWEA", "HBGF", "LWGP")}
    assert ours
    assert not any("failed" in row for row in ours.values())


def test_lwec_tables_are_made_of_one_draw(shared_data, tmp_path):
    if not (shared_data / "pools" / "lwec_VS.npz").exists():
        pytest.skip("needs pools/lwec_VS.npz among the data sets")
    printed = run(
        "reproduce_lwec.py", "--data", shared_data, "--only", "VS", "--draws", 1, "--output", tmp_path / "found.json"
    )
    assert "| VS | LWEA |" in printed
