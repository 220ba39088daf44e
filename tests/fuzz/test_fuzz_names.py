"""Files whose objects have names of every kind, in any order and orientation: they are read as a literal reader does.

The suite tries 60 files or pairs of files of each kind, the same every time; ``make fuzz`` tries 5,000 others. The
literal reader is a dict of each file's lines; it knows which column holds the names, which gpuens has to see.
"""

import csv
import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="seeds are drawn by hypothesis: pip install 'gpuens[dev]'")

from hypothesis import given
from hypothesis import strategies as st
from test_fuzz import INPUTS, settings_of

from gpuens import cli, io

PAIRS, FORMS = (60, 60) if "GPUENS_FUZZ" not in os.environ else (INPUTS * 3 // 5, INPUTS // 5)

NAMES = {
    "from 0": lambda rng, n: np.arange(n),
    "from 1": lambda rng, n: np.arange(1, n + 1),
    "numbers": lambda rng, n: np.sort(rng.choice(50 * n, n, replace=False)) + 2,
    "texts": lambda rng, n: np.array([f"c{i}" for i in range(n)]),
    "barcodes": lambda rng, n: np.array(["".join(rng.choice(list("ACGT"), 12)) + "-1" for _ in range(n)]),
    "padded": lambda rng, n: np.array([f"{i:05}" for i in range(n)]),
}
ORDERS = {
    "as drawn": lambda rng, n: np.arange(n),
    "shuffled": lambda rng, n: rng.permutation(n),
    "reversed": lambda rng, n: np.arange(n)[::-1],
}
TITLES = ("node", "cell", "id", "barcode", "")  # "" is the title of an index that pandas writes


def drawn(rng):
    """Return the names (n,) of objects and two labelings (n,), in which every cluster has several objects."""
    n = int(rng.integers(8, 60))
    k = int(rng.integers(2, max(3, n // 4)))
    truth = np.concatenate([np.repeat(np.arange(k), 2), rng.integers(0, k, n - 2 * k)])
    rng.shuffle(truth)
    other = np.where(rng.random(n) < 0.3, truth[rng.permutation(n)], truth)
    names = NAMES[rng.choice(list(NAMES))](rng, n)
    texts = np.array(["T cell", "B cell", "NK", "Mono", *(f"type {c}" for c in range(60))])
    return names, truth if rng.random() < 0.5 else texts[truth], other


def write(path, rng, names, labels, order, *, title, names_first=True):
    """Write a line for each object in ``order``."""
    separator = "\t" if path.suffix == ".tsv" else rng.choice([",", ";"]) if path.suffix == ".csv" else ","
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=str(separator), lineterminator="\n")
        if title is not None:
            writer.writerow([title, "label"])
        for i in order:
            writer.writerow([names[i], labels[i]])


def literal_ari(a, b):
    """Return the adjusted Rand index of two dicts {name: label} by counting the pairs of their common objects."""
    common = [name for name in a if name in b]
    both = in_a = in_b = n_pairs = 0
    for x, y in combinations(common, 2):
        together = a[x] == a[y], b[x] == b[y]
        both, in_a, in_b, n_pairs = both + all(together), in_a + together[0], in_b + together[1], n_pairs + 1
    expected = in_a * in_b / n_pairs
    most = (in_a + in_b) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


@pytest.fixture
def score(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def ari(*line):
        code = cli.main(["score", *line, "--json"])
        out, err = capsys.readouterr()
        return json.loads(out)["ari"] if code == 0 else f"exit {code}: {err}"

    return ari


def test_files_that_name_their_objects_are_compared_by_name(score, monkeypatch):
    @settings_of(PAIRS)
    @given(st.integers(0, 2**32))
    def attempt(seed):
        rng = np.random.default_rng(seed)
        names, labels, other = drawn(rng)
        n = len(names)
        paths = [Path(f"{side}{rng.choice(['.csv', '.tsv'])}") for side in "ab"]
        titles = [str(rng.choice(TITLES)) for _ in paths]
        # without a first line of names, labels must not be taken for them
        titles = [None if rng.random() < 0.2 else title for title in titles]
        rows = [ORDERS[rng.choice(list(ORDERS))](rng, n) for _ in paths]
        if rng.random() < 0.3:
            rows[1] = rows[1][rng.random(n) < 0.8]
            if len(set(other[rows[1]])) < 2 or len(rows[1]) == len(set(other[rows[1]])):
                return
        for path, title, values, order in zip(paths, titles, (labels, other), rows, strict=True):
            write(path, rng, names, values, order, title=title)
        dicts = [{str(names[i]): str(v[i]) for i in order} for v, order in zip((labels, other), rows, strict=True)]
        got, wanted = score(*map(str, paths)), literal_ari(*dicts)
        for path in paths:
            text = path.read_text()
            path.unlink()
        assert got == pytest.approx(wanted, abs=1e-9), (seed, titles, names[:5], text[:200], got)

    attempt()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_answers_in_lines_are_those_of_the_literal_reader(tmp_path):
    path = tmp_path / "answers.csv"
    titles = (["task", "worker", "label"], ["worker", "label", "task"], ["item", "rater", "rating"], ["x", "y", "z"])

    @settings_of(FORMS)
    @given(st.integers(0, 2**32))
    def attempt(seed):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(3, 30)), int(rng.integers(2, 8))
        objects = NAMES[rng.choice(list(NAMES))](rng, n)
        answers = {
            (str(one), f"w{who}"): str(rng.choice(["cat", "dog", "owl", "1"]))
            for one in objects
            for who in range(m)
            if rng.random() < 0.8
        }
        title = titles[rng.integers(len(titles))]
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(title)
            for one, who in rng.permutation(list(answers)).tolist():
                label = answers[one, who]
                writer.writerow([who, label, one] if title[0] == "worker" else [one, who, label])
        ensemble = io.read_label_file(path, long=True).ensemble
        frame = ensemble.to_frame().astype(object)
        read = {
            (str(one), str(who)): str(frame.iat[x, w])
            for x, one in enumerate(ensemble.index)
            for w, who in enumerate(ensemble.names)
            if frame.iat[x, w] == frame.iat[x, w]
        }
        assert read == answers, seed

    attempt()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_clustering_in_each_line_is_that_of_the_literal_reader(tmp_path):
    path = tmp_path / "draws.csv"

    @settings_of(FORMS)
    @given(st.integers(0, 2**32))
    def attempt(seed):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(3, 30)), int(rng.integers(2, 40))
        names = [f"c{i}" for i in rng.permutation(n)] if rng.random() < 0.5 else None
        draws = rng.integers(0, 4, (m, n)) + 1
        lines = [] if names is None else [",".join(names)]
        path.write_text("\n".join([*lines, *(",".join(map(str, row)) for row in draws)]) + "\n")
        ensemble = io.read_labels(path, transpose=True, header=names is not None)
        assert (None if ensemble.index is None else list(ensemble.index)) == names, seed
        for column, row in zip(ensemble.to_frame().astype(int).to_numpy().T, draws, strict=True):
            assert column.tolist() == row.tolist(), seed

    attempt()
