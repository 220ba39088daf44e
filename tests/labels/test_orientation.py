"""Label matrices and files whose rows may be clusterings, such as draws of R's samplers."""

import itertools
import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from scipy.cluster.hierarchy import cut_tree, linkage

import gpuens as ge
from gpuens.cli import main
from gpuens.labels.orientation import check_orientation

N_OBJECTS = 40
BOTH = ["5,000 objects × 40 clusterings", "40 objects × 5,000 clusterings"]


def canonical(draws):
    """Return draws with clusters numbered 1, 2, 3, … in the order of their first objects."""
    return np.array([pd.factorize(draw)[0] + 1 for draw in draws])


def chain(n_draws, n_objects=N_OBJECTS, seed=0):
    """Return draws (n_draws, n_objects) of a chain that moves 5 % of the objects in each step, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_objects) % 4)
    draws, now = [], truth.copy()
    for _ in range(n_draws):
        back = rng.random(n_objects) < 0.3
        now = np.where(rng.random(n_objects) < 0.05, rng.integers(0, 5, n_objects), np.where(back, truth, now))
        draws.append(now)
    return np.array(draws), truth


DRAWS, TRUTH = chain(5000)
IN_ORDER = canonical(DRAWS)


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, lambda draws: draws.astype(float)])
def test_draws_of_r_are_refused_with_both_readings(kind):
    mentioned = [*BOTH, "labels.T with wide=True if each row is a clustering", "order of their first"]
    refused(lambda: ge.Ensemble(kind(IN_ORDER)), ValueError, *mentioned)
    refused(lambda: ge.Ensemble(kind(IN_ORDER - 1)), ValueError, *BOTH)


def test_draws_in_the_right_orientation_find_the_truth():
    refused(lambda: ge.Ensemble(IN_ORDER.T), ValueError, "(40, 5000)", "each column numbers its clusters", "labels.T")
    assert ge.metrics.ari(ge.Median(loss="vi").fit(IN_ORDER.T, wide=True).labels_, TRUTH) == 1.0
    few = IN_ORDER[:300].T
    expected = ge.Ensemble(list(few.T)).to_array()
    for ensemble in (ge.Ensemble(few, wide=True), ge.Ensemble.of_labelled(few, wide=True)[0]):
        np.testing.assert_array_equal(ensemble.to_array(), expected)
    narrow, columns = few[:, :60], list(few[:, :60].T)
    assert ge.LWEA(4).fit_predict(narrow, wide=True).tolist() == ge.LWEA(4).fit(columns).labels_.tolist()
    assert ge.consensus(narrow, 4, wide=True).tolist() == ge.consensus(columns, 4).tolist()
    assert ge.modes(narrow, 2, wide=True).of_clustering.tolist() == ge.modes(columns, 2).of_clustering.tolist()
    assert ge.align(narrow, wide=True).names == ge.align(columns).names
    psm = (few[:, None] == few[None]).mean(axis=2)
    np.testing.assert_allclose(ge.similarity.coassociation(few, wide=True), psm, rtol=1e-12)
    answers = np.array([["a", "b", "b"], ["b", "b", "b"]])
    assert ge.Voting(vocabulary="shared").fit(answers, wide=True).labels_.tolist() == ["b", "b"]


def test_wide_says_that_rows_are_objects():
    assert ge.Ensemble(IN_ORDER[:, 1:], wide=True).n_objects == 5000
    assert ge.Ensemble([[0, 1, 1]] * 5, wide=True).n_clusterings == 5
    refused(lambda: ge.Ensemble([[0, 1, 1]] * 5), ValueError, "5 lists of 3", "wide=True")
    refused(lambda: ge.LWEA(2).fit([[0, 1, 1]] * 5), ValueError, "wide=True")
    soft = [[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], [0, 1, 1], [0, 1, 0], [0, 0, 1]]
    assert len(ge.SCEC(2).fit(soft, wide=True).labels_) == 3


def test_few_different_draws_are_a_warning():
    repeated = np.repeat(IN_ORDER[[0, 1000, 2000]], 100, axis=0)[:, :20]
    with pytest.warns(UserWarning, match="300 objects × 20 clusterings look transposed, 20 objects × 300"):
        check_orientation(list(repeated.T))


@pytest.mark.parametrize("name", ["independent", "switching", "chain"])
def test_rows_that_agree_where_columns_do_not_are_a_warning(name):
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(DRAWS.shape) < 0.1, rng.integers(0, 4, DRAWS.shape), TRUTH)
    switched = np.array([rng.permutation(8)[2 * draw + np.arange(N_OBJECTS) % 2] for draw in noisy])
    labels = {"independent": noisy, "switching": switched, "chain": DRAWS}[name]
    with pytest.warns(UserWarning, match=r"look transposed, .* rows agree with each other .* labels\.T"):
        assert ge.Ensemble(labels).n_objects == 5000
    ge.Ensemble(labels, wide=True)
    ge.Ensemble(list(labels.T))
    with pytest.warns(UserWarning, match="look transposed"):
        ge.Ensemble(pd.DataFrame(labels, columns=[f"V{i}" for i in range(N_OBJECTS)]))


def other_labels():
    """Yield label matrices in the right orientation: of k-means, annotators, noise and cuts of a tree."""
    rng = np.random.default_rng(2)
    truth = np.sort(rng.integers(0, 5, 600))

    def column(renamed):
        noisy = np.where(rng.random(600) < 0.2, rng.integers(0, 5, 600), truth)
        return rng.permutation(5)[noisy] if renamed else noisy

    yield "renamed", np.stack([column(True) for _ in range(30)], axis=1)
    yield "shared names", np.stack([column(False) for _ in range(30)], axis=1)
    yield "noise", rng.integers(0, 6, (600, 30))
    X = np.sort(rng.random((300, 1)), axis=0)
    for ks in (range(1, 31), range(1, 61, 2)):
        yield f"cuts into {ks}", cut_tree(linkage(X, "average"), ks)
    yield "two clusters", np.column_stack([np.zeros(600, int), *(column(True) > 2 for _ in range(20))])
    yield "one object", np.zeros((1, 1), int)


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize(("name", "labels"), [pytest.param(*case, id=case[0]) for case in other_labels()])
def test_other_labels_are_read_in_silence(name, labels):
    assert ge.Ensemble(labels).n_objects == len(labels)


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_only_rows_in_the_order_of_first_objects_are_draws():
    """A single label out of order makes other labels of draws."""
    columns = list(IN_ORDER[::25].T)
    refused(lambda: check_orientation(columns), ValueError, "order of their first objects")
    for place, value in itertools.product((1, 18), (0, 9)):
        changed = [column.copy() for column in columns]
        changed[place][150] = value
        check_orientation(changed[:19])
    with_missing = [column.astype(float) for column in columns[:19]]
    with_missing[3][7] = np.nan
    check_orientation(with_missing)


def test_draws_on_a_device_and_in_chunks_are_refused(fake_cupy):
    refused(lambda: ge.Ensemble(fake_cupy.asarray(IN_ORDER)), ValueError, *BOTH)
    assert ge.Ensemble(fake_cupy.asarray(IN_ORDER.T.copy()), wide=True).n_clusterings == 5000
    chunked = pytest.importorskip("dask.array").from_array(IN_ORDER, chunks=(2500, N_OBJECTS))
    for labels, wide, kind, *parts in (
        (chunked, False, ValueError, "chunk", "look transposed"),
        (chunked.T, False, ValueError, "(40, 5000)"),
        (chunked.T, True, TypeError),
    ):
        refused(lambda labels=labels, wide=wide: ge.LWGP(4).fit(labels, wide=wide), kind, *parts, "labels.compute()")


# --- files ------------------------------------------------------------------------------------------------------------


def written(folder, kind):
    """Write 60 draws of `N_OBJECTS` objects as a kind of file; return its path, and the names of the objects."""
    draws, names = IN_ORDER[::80][:60], [f"V{i + 1}" for i in range(N_OBJECTS)]
    path, frame = folder / f"draws.{kind.split()[-1]}", pd.DataFrame(draws, columns=names)
    if kind == "npy":
        np.save(path, draws)
        return path, None
    if kind == "npz":
        np.savez(path, labels=draws, ids=np.array(names))
    elif kind == "zarr":
        pytest.importorskip("zarr").save(str(path), draws)
        return path, None
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path, index=False)
    elif kind == "iterations csv":
        frame.insert(0, "iteration", np.arange(1000, 1600, 10))
        frame.to_csv(path, index=False)
    elif kind == "numbers csv":
        frame.to_csv(path, index=False, header=False)
        return path, None
    else:
        frame.set_axis(range(1, 61)).to_csv(path)
    return path, names


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("kind", ["npy", "npz", "zarr", "parquet", "row names csv", "numbers csv", "iterations csv"])
def test_files_of_draws(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path, names = written(tmp_path, kind)
    counted = kind == "iterations csv"
    said = "60 objects × 40 clusterings", "transpose=True (--transpose)"
    refused(lambda: ge.io.read_labels(path, exclude=["iteration"] if counted else None), ValueError, *said)
    with pytest.warns(UserWarning, match="'iteration', counts the lines") if counted else nullcontext():
        read = ge.io.read_label_file(path, transpose=True)
    assert (None if read.ids is None else read.ids.tolist()) == names
    np.testing.assert_array_equal(read.ensemble.to_array(), ge.Ensemble(list(IN_ORDER[::80][:60])).to_array())
    command = ["run", path.name, "--method", "median", "--loss", "vi", "--quiet"]
    assert main([*command, "--transpose", "-o", "out.csv"]) == 0
    out = pd.read_csv("out.csv", index_col=0 if names else None)
    assert ge.metrics.ari(out["label"].to_numpy(), TRUTH) == 1.0
    assert names is None or out.index.tolist() == names
    assert main([*command, "-o", "wrong.csv"]) == 3
    assert "--transpose" in capsys.readouterr().err
    assert not (tmp_path / "wrong.csv").exists()


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_transposed_texts_and_choices(tmp_path, capsys):
    path = tmp_path / "votes.csv"
    path.write_text("who,cell1,cell2,cell3,cell4\nanna,1,B,B,\nben,1,B,C,C\ncarl,2,2,,-1\n")
    transposed = {"transpose": True, "id_column": "who"}
    read = ge.io.read_label_file(path, **transposed, drop_unlabelled=True)
    assert (read.ensemble.names, read.ids.tolist()) == (["anna", "ben", "carl"], ["cell1", "cell2", "cell3", "cell4"])
    values = [
        [None if c == -1 else k[c] for c in column]
        for column, k in zip(read.ensemble.to_array().T.tolist(), read.ensemble.categories, strict=True)
    ]
    assert values == [["1", "B", "B", None], ["1", "B", "C", "C"], [2, 2, None, None]]
    without = ge.io.read_labels(path, **transposed, exclude="carl", drop_unlabelled=True)
    assert (without.names, ge.io.read_labels(path, **transposed, columns="b*").names) == (["anna", "ben"], ["ben"])
    path.write_text("A,A,B\nA,B,B\n")
    refused(lambda: ge.io.read_labels(path, transpose=True), ValueError, "'A' in the first line", "--no-header")
    assert ge.io.read_labels(path, transpose=True, header=False).to_array().T.tolist() == [[0, 0, 1], [0, 1, 1]]
    path.write_text(f"{'x' * 200_000},B,B\nA,B,C\n")
    refused(lambda: ge.io.read_labels(path, transpose=True, header=False), ValueError, "votes.csv")
    assert main(["run", str(path), "-k", "2", "--transpose", "--wide"]) == 2
    assert "not allowed with" in capsys.readouterr().err
    anndata = pytest.importorskip("anndata")
    cells = tmp_path / "cells.h5ad"
    anndata.AnnData(obs=pd.DataFrame({"a": pd.Categorical(list("xyxy"))}, index=list("abcd"))).write_h5ad(cells)
    refused(lambda: ge.io.read_labels(cells, transpose=True), ValueError, "--transpose", "object")


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_joined_files_of_draws(tmp_path):
    names = [f"o{i}" for i in range(N_OBJECTS)]
    draws = pd.DataFrame(IN_ORDER[:50], columns=names)
    draws.iloc[:20, :30].to_csv(tmp_path / "one.csv", index=False)
    draws.iloc[20:, 10:].to_csv(tmp_path / "two.csv", index=False)
    read = ge.io.read_joined([tmp_path / "one.csv", tmp_path / "two.csv"], transpose=True)
    assert read.ensemble.n_clusterings == 50
    assert read.ids.tolist() == names
    labels = read.ensemble.to_array()
    np.testing.assert_array_equal(labels[:30, :20], ge.Ensemble(list(IN_ORDER[:20, :30])).to_array())
    assert (labels[30:, :20] == -1).all()


def test_commands_read_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    rows, columns = np.arange(36) // 12, np.arange(36) % 3
    stories = np.array([np.where(rng.random(36) < 0.05, 0, story) for story in [rows] * 25 + [columns] * 15])
    pd.DataFrame(canonical(stories)).to_csv("draws.csv", index=False, header=False)
    assert main(["modes", "draws.csv", "--transpose", "--json"]) == 0
    assert "two stories: 25 and 15" in json.loads(capsys.readouterr().out)["story"]
    assert main(["describe", "draws.csv", "--transpose"]) == 0
    assert "36 objects" in capsys.readouterr().out
    for command in ("modes", "describe"):
        assert main([command, "draws.csv"]) == 3
        assert "--transpose" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_a_batch_of_draws(tmp_path, monkeypatch, capsys):
    pytest.importorskip("jsonschema")
    monkeypatch.chdir(tmp_path)
    path, names = written(tmp_path, "row names csv")
    job = {"id": "x", "input": path.name, "method": "median", "transpose": True, "format": "csv"}
    (tmp_path / "jobs.jsonl").write_text(json.dumps(job) + "\n")
    assert main(["batch", "jobs.jsonl", "--out", "out", "--dry-run"]) == 0
    assert main(["batch", "jobs.jsonl", "--out", "out"]) == 0
    out = pd.read_csv("out/x.labels.csv", index_col=0)
    assert out.index.tolist() == names
    assert ge.metrics.ari(out["label"].to_numpy(), TRUTH) == 1.0
    (tmp_path / "jobs.jsonl").write_text(json.dumps(job | {"scheduler": "threads"}) + "\n")
    assert main(["batch", "jobs.jsonl", "--out", "out"]) == 2
    assert "transpose is for files that are read in one piece" in capsys.readouterr().err


def test_three_lines_of_clusterings_are_no_triples(tmp_path):
    """A table of three columns may be one of object, annotator and label; three lines may not."""
    path = tmp_path / "draws.csv"
    path.write_text("2,4,1,3\n4,3,3,3\n1,3,4,3\n")
    ensemble = ge.io.read_labels(path, transpose=True, header=False)
    assert ensemble.to_frame().astype(int).to_numpy().T.tolist() == [[2, 4, 1, 3], [4, 3, 3, 3], [1, 3, 4, 3]]
