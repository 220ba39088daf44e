"""Small files as people have them (tests/io/field), each with its right labels, or the words of its refusal.

They follow public questions and bug reports about tools of this kind: ids that vote, files matched by place, tables of
other orientations and forms, and what R, Excel and other programs write around a table.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import refused

import gpuens as ge
from gpuens import cli, io

FIELD = Path(__file__).with_name("field")


def labels_of(name, **options):
    """Return {object: its labels} of a file, in which "-" is a missing label; objects without names are numbered."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = io.read_label_file(FIELD / name, **options).ensemble
    names = range(ensemble.n_objects) if ensemble.index is None else ensemble.index
    rows = ensemble.to_frame().astype(object).to_numpy().tolist()
    return [
        (str(one), *("-" if value != value else str(value) for value in row))
        for one, row in zip(names, rows, strict=True)
    ]


def in_threes(*names):
    """Return rows of nine objects, of which each three have the labels x, y and z."""
    return [(name, "xyz"[place // 3], "xyz"[place // 3]) for place, name in enumerate(names)]


CELLS = [f"c{i}" for i in range(9)]
SIX = [("1", "1"), ("1", "2"), ("1", "1"), ("2", "2"), ("2", "1"), ("2", "2")]
READ = {
    "id_twice.csv": in_threes("c0", "c0", *CELLS[2:]),
    "id_blank_last.csv": in_threes(*CELLS),
    "id_once_blank.csv": in_threes(*CELLS[:4], "", *CELLS[5:]),
    "ids_last.csv": in_threes(*(f"AC{i}-1" for i in range(9))),
    "answers_wide.csv": [("a", "T", "T"), ("b", "B", "B"), ("c", "NK", "-"), ("d", "B", "B")],
    "comments.txt": [(str(i), str(i // 4), str(i % 2)) for i in range(8)],
    "q2_types.tsv": [(f"s{i}", str(i // 3), str(i % 2)) for i in range(6)],
    "r_write_table.txt": [(f"smp{i}", str(1 + i // 3), str(1 + i // 2)) for i in range(6)],
    "r_factor_na.csv": [(f"s{i}", "-" if i % 3 == 2 else f"T{1 + i % 3}", f"T{1 + i % 2}") for i in range(6)],
    "excel_semicolons.csv": [(f"Müller_{i}", *row) for i, row in enumerate(SIX)],
    "excel_empty_rows.csv": [(f"P{i}", *row) for i, row in enumerate(SIX)],
    "contig2bin.tsv": [("k141_0", "bin.9"), *((f"k141_{i}", f"bin.{i // 3}") for i in range(1, 7))],
    "wing.labels0.gz": [(str(i), str(1 + i // 2)) for i in range(6)],
    "nodes_in_part.csv": [(str(i), "AB"[i > 6]) for i in (9, 2, 5, 11, 20, 7)],
}


@pytest.mark.parametrize("name", READ)
def test_labels_and_names_are_those_of_the_owner(name):
    assert labels_of(name) == READ[name]


def test_draws_with_a_clustering_in_each_line():
    refused(lambda: io.read_labels(FIELD / "draws.csv"), ValueError, "--transpose", "--wide")
    draws = np.loadtxt(FIELD / "draws.csv", dtype=int, delimiter=",")
    ensemble = io.read_labels(FIELD / "draws.csv", transpose=True)
    np.testing.assert_array_equal(ensemble.to_array(), ge.Ensemble(draws.T, wide=True).to_array())


@pytest.mark.parametrize(
    ("a", "b", "n_common"),
    [
        ("nodes_in_order", "nodes_shuffled", 12),
        ("nodes_shuffled", "nodes_in_order", 12),
        ("row_numbers", "row_numbers_shuffled", 12),
        ("nodes_in_order", "nodes_in_part", 5),
    ],
)
def test_scores_are_those_of_the_names(capsys, a, b, n_common):
    assert cli.main(["score", str(FIELD / f"{a}.csv"), str(FIELD / f"{b}.csv"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ari"] == 1
    assert (f"has {n_common} of the 12 objects" in err) == (n_common < 12)


@pytest.mark.parametrize("named", [[], ["--id-column", "node"]])
def test_labels_go_to_the_nodes_of_their_names(tmp_path, named):
    line = ["graph", FIELD / "cliques.txt", "--labels", FIELD / "cliques_labels.csv", "--final", "components", *named]
    assert cli.main([*map(str, line), "-o", str(tmp_path / "g.csv"), "--quiet"]) == 0
    table = pd.read_csv(tmp_path / "g.csv")
    nodes = table["node"] if named else np.arange(12)
    assert ge.metrics.ari(table["label"].to_numpy(), np.asarray(nodes) // 4) == 1


def test_ids_do_not_vote(tmp_path):
    right = ["T", "B", "NK", "B"]
    assert cli.main(["run", str(FIELD / "answers_wide.csv"), "--shared-names", "-o", str(tmp_path / "o.csv")]) == 0
    assert pd.read_csv(tmp_path / "o.csv").to_dict("list") == {"cell": list("abcd"), "label": right}
    frame = pd.read_csv(FIELD / "answers_wide.csv")
    with pytest.warns(UserWarning, match="'cell' names the objects"):
        assert ge.Voting(vocabulary="shared").fit(frame).labels_.tolist() == right


def test_a_name_that_is_blank_stays_blank(tmp_path):
    path = str(FIELD / "id_once_blank.csv")
    assert cli.main(["run", path, "-k", "3", "--method", "eac", "-o", str(tmp_path / "o.csv"), "--quiet"]) == 0
    table = pd.read_csv(tmp_path / "o.csv", keep_default_na=False)
    assert table["cell"].tolist() == [*CELLS[:4], "", *CELLS[5:]]
    assert table["label"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_missing_labels_are_aligned_to_missing_labels(tmp_path):
    path = str(FIELD / "r_factor_na.csv")
    assert cli.main(["align", path, "-o", str(tmp_path / "o.csv"), "--quiet"]) == 0
    assert pd.read_csv(tmp_path / "o.csv")["a"].isna().tolist() == [False, False, True] * 2


def test_communities_are_sets_of_members():
    runs = [[{1, 2, 3}, {4, 5}, {6, 7}], [{1, 2}, {3, 4, 5}, {6, 7}], [{1, 2, 3}, {4, 5}, {6, 7}]]
    assert ge.consensus(runs, 3, method="eac").tolist() == [0, 0, 0, 1, 1, 2, 2]
