"""Every method stays within GPUENS_MEMORY.

The test runs bench/budgets.py for few objects, with a process for each fit.
"""

import json
import sys

import pytest
from conftest import NOT_HERE
from test_bench import run

import gpuens as ge

BY_LABELS = {"ecc", "em", "kcc", "pd", "qmi", "scec", "sec", "voting"}
METHODS = ge.methods().keys() - NOT_HERE - {"auto"}  # "auto" runs several of the other methods
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
