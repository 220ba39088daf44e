"""Columns that name the objects: what is told by their form, and what never is."""

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused

import gpuens as ge
from gpuens import cli, io
from gpuens.labels.odd_columns import find_id_column_of_features, find_id_columns

A, B = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 1, 0, 0])
CELLS = np.array(["c0", "c1", "c2", "c3", "c4", "c5"])


@pytest.mark.parametrize(
    ("columns", "names", "expected"),
    [
        ([CELLS, A, B], "xab", [0]),
        ([np.arange(6), A, B], "xab", [0]),
        ([np.array([9, 3, 7, 1, 5, 11]), A, B], "xab", [0]),
        ([A, B, CELLS], "abx", [2]),
        ([CELLS, A, np.arange(10, 16)], ["cell", "a", "id"], [0, 2]),
        ([A, B, np.arange(6)], ["a", "b", "id"], [2]),
        ([A, B, np.arange(6)], "abx", []),  # a clustering of single objects beside others
        ([np.arange(6) - 1, A, B], "xab", []),  # -1 is a missing label
        ([np.arange(6) / 4, A, B], "xab", []),
        ([A % 2 == 0, A, B], "xab", []),
        ([CELLS, np.arange(6)], "xa", []),  # nothing repeats
        ([CELLS], "x", []),
        ([np.array(["NA", "c1", "c2", "c3", "c4", "c5"]), A, B], "xab", []),  # a word for a missing label
        ([np.array([1, "1", 2, 3, 4, 5], dtype=object), A, B], "xab", []),  # numbers and texts mixed
    ],
)
def test_forms_of_names(columns, names, expected):
    assert find_id_columns(columns, list(names)) == expected


@pytest.mark.parametrize("n", [6, 9, 10, 24, 300, 5000])
def test_the_number_of_objects_does_not_matter(n):
    rng = np.random.default_rng(n)
    labels = [rng.integers(0, 2, n) for _ in range(3)]
    for ids in (np.arange(n), rng.permutation(n) + 1, np.array([f"s{i}" for i in range(n)])):
        assert find_id_columns([ids, *labels], list("xabc")) == [0]
        mistaken = ids.copy()
        mistaken[1] = mistaken[0]
        assert find_id_columns([mistaken, *labels], list("xabc")) == [0]
    fine = np.arange(n) // 2
    assert find_id_columns([fine, *labels], list("xabc")) == []


def test_fine_clusterings_are_no_names():
    """Clusters of sequences at 99 % identity are nearly as many as the sequences, and so are those at 97 %."""
    n = 1000
    fine = [np.arange(n) - np.arange(n) // step for step in (20, 12, 8)]
    assert find_id_columns(fine, ["c99", "c97", "c95"]) == []


def test_a_named_index_leaves_no_column_its_place():
    frame = pd.DataFrame({"node": np.arange(6), "a": A, "b": B}, index=CELLS)
    assert ge.Ensemble(frame).names == ["node", "a", "b"]
    with pytest.warns(UserWarning, match="'node' names the objects and is no clustering") as caught:
        ensemble = ge.Ensemble(frame.reset_index(drop=True))
    assert "set_index('node')" in one_sentence(caught[0].message)
    assert (ensemble.names, ensemble.index.tolist(), ensemble.left_out) == (["a", "b"], list(range(6)), ["node"])
    assert ge.Ensemble(frame.reset_index(drop=True), names=list("xyz")).n_clusterings == 3


def test_frames_with_ids_fit_and_predict():
    frame = pd.DataFrame({"cell": CELLS, "a": A, "b": B})
    with pytest.warns(UserWarning, match="'cell' names the objects"):
        estimator = ge.EAC(3).fit(frame)
    assert estimator.labels_.tolist() == ge.EAC(3).fit(frame[["a", "b"]]).labels_.tolist()
    assert estimator.predict(frame).tolist() == estimator.labels_.tolist()
    new = pd.DataFrame({"a": [0, 1, 2], "b": [0, 1, 0]})  # three objects with different labels in "a"
    assert len(estimator.predict(new)) == 3
    with pytest.warns(UserWarning, match="'cell' names the objects"):
        joined = ge.Ensemble.join([frame, pd.Series(B[::-1], index=CELLS[::-1], name="c")])
    assert joined.to_frame()["c"].tolist() == B.tolist()


def test_repeated_ids_are_told_or_refused(tmp_path):
    path = tmp_path / "l.csv"
    ids = [f"s{i // 3}" for i in range(12)]
    path.write_text("cell,a,b\n" + "".join(f"{one},{i % 2},{i % 3}\n" for i, one in enumerate(ids)))
    refused(lambda: io.read_labels(path, id_column="cell"), ValueError, "4 different names for 12 objects", "--long")
    ids = ["s0", "s1", "s1", "s1", *(f"s{i}" for i in range(4, 20)), "s7"]
    path.write_text("cell,a,b\n" + "".join(f"{one},{i % 2},{i % 3}\n" for i, one in enumerate(ids)))
    with pytest.warns(UserWarning, match=r"'cell' names the objects, but repeats 's1' in lines 3, 4 and 5, and 1 more"):
        read = io.read_label_file(path)
    assert read.ids.tolist() == ids
    assert read.ensemble.n_clusterings == 2


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ({"cell": CELLS, "x": B / 7, "y": A * 0.5}, 0),
        ({"x": B / 7, "cell": CELLS}, 1),
        ({"row": np.array([4, 1, 3, 2, 6, 5]), "x": B / 7}, 0),
        ({"x": np.array([4, 1, 30, 2, 6, 5]), "y": B / 7}, None),  # whole numbers are features
        ({"x": B / 7, "customer id": np.array([40, 10, 30, 20, 60, 50])}, 1),
        ({"x": B / 7, "y": np.arange(6)}, None),
    ],
)
def test_names_beside_features(frame, expected):
    assert find_id_column_of_features(pd.DataFrame(frame)) == expected


@pytest.fixture
def features(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (30, 3)), rng.normal(9, 1, (30, 3))])
    frame = pd.DataFrame(X, columns=["age", "height", "income"])
    frame["income"] *= 1e4
    frame.insert(0, "person", [f"p{i}" for i in range(60)])
    frame.to_csv("x.csv", index=False)
    gaps = frame.copy()
    gaps.loc[[6, 9], "height"] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    return frame


def test_features_are_read_by_one_road(features, capsys):
    lines = [
        "cluster x.csv -k 2 --kind kmeans --n-clusterings 20 --scale standard -o out.csv",
        "generate x.csv -k 2 --n-clusterings 4 --scale robust -o made.csv",
        "choose --features x.csv --ks 2:3 --n-clusterings 4 --scale standard --json",
        "choose --features x.csv --exclude age --ks 2:3 --n-clusterings 4 --scale standard --json",
    ]
    for line in lines:
        assert cli.main(line.split()) == 0, capsys.readouterr().err
    assert "names in 'person'" in capsys.readouterr().out
    table = pd.read_csv("out.csv")
    assert table["person"].tolist() == features["person"].tolist()
    assert ge.metrics.ari(table["label"], np.repeat([0, 1], 30)) == 1
    record = pd.read_json("out.csv.json", typ="series")
    assert record["scale"] == "standard"


def test_missing_values_and_scales_name_the_options(features, capsys):
    for command in ("cluster gaps.csv -k 2 -o out.csv", "choose --features gaps.csv --ks 2:3"):
        assert cli.main(command.split()) == 3
        said = capsys.readouterr().err
        assert "row 6, column 'height'" in said
        assert "--impute median" in said
    assert (
        cli.main(["cluster", "gaps.csv", "-k", "2", "--n-clusterings", "4", "--impute", "median", "-o", "out.csv"]) == 0
    )
    out, err = capsys.readouterr()
    assert "2 values filled in" in out
    assert "(--scale none) is right" in err  # the income decides alone
    record = pd.read_json("out.csv.json", typ="series")
    assert (record["impute"], record["n_imputed"], record["scale"]) == ("median", 2, "standard")


def test_imputation_is_that_of_scikit_learn(features):
    from argparse import Namespace

    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import RobustScaler

    from gpuens.cli.features import prepare

    X = pd.read_csv("gaps.csv").drop(columns="person")
    prepared, said = prepare(X, Namespace(scale="robust", impute="median"))
    filled = SimpleImputer(strategy="median").fit_transform(X)
    np.testing.assert_array_equal(prepared, RobustScaler().fit_transform(filled))
    assert said == {"impute": "median", "n_imputed": 2, "scale": "robust"}
    assert prepare(X, Namespace(scale=None, impute="none")) == (X, {})


def test_files_without_names_go_by_position_only_on_request(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"cell": CELLS, "a": A, "b": B}).to_csv("l.csv", index=False)
    np.save("t.npy", A)
    pd.Series(A, name="t").to_csv("numbered.csv")
    np.save("x.npy", np.column_stack([A, B]).astype(float))
    lines = [
        "score l.csv {}",
        "evidence l.csv {}",
        "align l.csv --to {} -o out.csv",
        "compare l.csv -k 2 --methods eac --truth {}",
    ]
    for line in lines:
        for name in ("t.npy", "numbered.csv"):
            assert cli.main(line.format(name).split()) == 3
            said = capsys.readouterr().err
            assert "'l.csv' names its objects, by 'cell'" in said
            assert "--by-position" in said
            assert cli.main([*line.format(name).split(), "--by-position"]) == 0, capsys.readouterr().err
            capsys.readouterr()
    assert cli.main(["run", "l.csv", "-k", "2", "--method", "tome", "--features", "x.npy", "-o", "o.csv"]) == 3
    assert "--by-position" in capsys.readouterr().err


def test_counts_from_0_and_from_1_are_not_confused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, start in (("zero.csv", 0), ("one.csv", 1)):
        pd.DataFrame({"node": np.arange(start, start + 6), "a": A}).to_csv(name, index=False)
    assert cli.main(["score", "zero.csv", "one.csv"]) == 3
    assert "counts its objects from 0 and path 'one.csv' from 1" in capsys.readouterr().err
    assert cli.main(["score", "zero.csv", "one.csv", "--by-position", "--json"]) == 0
    assert '"ari": 1.0' in capsys.readouterr().out
