"""Support for tests of the command line: a folder with files, and a function that runs a command."""

import numpy as np
import pandas as pd
import pytest
from conftest import structured_labels

from gpuens import cli

K = 4
LABELS, TRUTH = structured_labels(120, 6, K, noise=0.15, missing=0.05, seed=1)
FORMATS = ("npy", "npz", "csv", "tsv", "csv.gz", "tsv.gz", "parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Provide a working directory with labels.csv, features.npy and truth.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUENS_DATA", raising=False)
    pd.DataFrame(LABELS, columns=list("abcdef")).to_csv("labels.csv", index=False)
    pd.DataFrame({"class": TRUTH}).to_csv("truth.csv", index=False)
    np.save("features.npy", np.random.default_rng(0).normal(5 * TRUTH[:, None], size=(len(TRUTH), 3)))
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command in this process; return the exit code and the lines on stdout and stderr."""

    def run(line, *more):
        code = cli.main([*line.split(), *map(str, more)])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


@pytest.fixture
def done(call):
    """Run a command that has to succeed without a warning; return the lines on stdout."""

    def run(line, *more):
        code, out, err = call(line, *more)
        assert (code, err) == (0, [])
        return out

    return run


def files(folder):
    return sorted(path.name for path in folder.iterdir())


GIVEN = ["features.npy", "labels.csv", "truth.csv"]

READ = {
    "npy": np.load,
    "npz": lambda path: np.load(path)["labels"],
    "csv": lambda path: pd.read_csv(path)["label"].to_numpy(),
    "tsv": lambda path: pd.read_csv(path, sep="\t")["label"].to_numpy(),
    "csv.gz": lambda path: pd.read_csv(path)["label"].to_numpy(),
    "tsv.gz": lambda path: pd.read_csv(path, sep="\t")["label"].to_numpy(),
    "parquet": lambda path: pd.read_parquet(path)["label"].to_numpy(),
}
