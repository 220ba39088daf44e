"""Every method stays within GPUENS_MEMORY, and searches by many threads within the bytes foreseen.

The first test runs bench/budgets.py for few objects, with a process for each fit.
"""

import json
import os
import subprocess
import sys

import pytest
from conftest import NOT_HERE
from test_bench import run

import gpuens as ge

BY_LABELS = {"ecc", "em", "kcc", "pd", "qmi", "scec", "sec", "voting"}
METHODS = ge.methods().keys() - NOT_HERE
FITS = {
    "tall": {"cgc", "crc-ia", "hbgf", "lwgp", *BY_LABELS},
    "wide": {"hbgf", "lwgp", *BY_LABELS},
    "few": METHODS,
}


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a process's peak starts anew on Linux alone")
def test_no_method_takes_more_than_the_budget(tmp_path):
    run("budgets.py", "--quick", "--output", tmp_path / "found.json")
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    shapes = {name: part["rows"] for name, part in parts.items()}
    assert shapes.keys() == FITS.keys()
    for shape, rows in shapes.items():
        assert rows.keys() == METHODS
        for method, row in rows.items():
            assert row.get("held"), f"{method}, {shape}: {row}"
            assert method not in FITS[shape] or "rows" in row["outcome"], f"{method}, {shape}: {row}"
            assert "refused" not in row["outcome"] or " MB may be used; " in row["outcome"]


# Prints the bytes foreseen for average linkage of rows, and the peak of the process above its size before.
SEARCH = """
import resource, sys
import numpy as np
from gpuens.labels.rows import Rows
from gpuens.partition.linkage import average, conduct
from gpuens.similarity.diagonal import Diagonal

n_rows, n_clusterings, k = 20_000, 20, 2_400
rng = np.random.default_rng(0)
offsets = np.arange(n_clusterings + 1) * k
codes = rng.integers(k, size=(n_clusterings, n_rows)).astype(np.uint16)
rows = Rows.of_codes(codes.T, offsets, np.ones(n_rows, np.int64), "cpu")
weights = rng.random(n_clusterings * k) + 0.5
conduct.LARGEST_TABLE_BYTES = 0  # no table of pairs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with conduct.only(sys.argv[1]):
    average.average_linkage(rows, Diagonal(weights, offsets))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(average.bytes_needed(rows, "diagonal"), 1024 * (peak - before))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["rows", "tiles"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a process's peak is in kB on Linux alone")
def test_searches_by_many_threads_take_no_more_than_the_bytes_foreseen(kind):
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, kind],
        env=os.environ | {"GPUENS_THREADS": "32"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    foreseen, peak = map(int, done.stdout.split())
    assert peak < foreseen
