"""Files: written labels can be read, all kinds of files give the same ensemble, and failures leave no file behind."""

import gzip
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from conftest import refused

import gpuens as ge
from gpuens.io import atomic, parts, read_features, read_labels, write_labels
from gpuens.runtime import installing

LABELS = np.array([[0, 3, 1], [0, 3, -1], [5, -1, 1], [5, 7, 2]])
CODES = [[0, 0, 0], [0, 0, -1], [1, -1, 0], [1, 1, 1]]
NAMES = ["p", "q", "r"]


def frame(**options):
    return pd.DataFrame(LABELS, columns=NAMES, **options)


# --- all kinds of files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".CSV", ".Npy"])
@pytest.mark.parametrize("kind", [str, Path])
def test_round_trip(tmp_path, suffix, kind):
    path = tmp_path / f"labels{suffix}"
    write_labels(kind(path), ge.Ensemble(frame()))
    again = read_labels(kind(path))
    assert again.to_array().tolist() == CODES
    assert again.names == ([0, 1, 2] if suffix.lower() in (".npy", ".npz") else NAMES)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("labels", [np.array([2, 0, 5, 2]), [2, 0, 5, 2], np.array(["b", "a", "c", "b"])])
def test_one_labelling(tmp_path, suffix, labels):
    path = tmp_path / f"labels{suffix}"
    write_labels(path, labels)
    again = read_labels(path)
    np.testing.assert_array_equal(again.codes, ge.Ensemble([labels]).codes)
    assert again.names == ([0] if suffix in (".npy", ".npz") else ["label"])


@pytest.mark.parametrize(
    ("name", "labels", "names", "written"),
    [
        ("labels.csv", np.array([2, 0, -1]), None, b"label\n2\n0\n-1\n"),
        ("labels.csv", np.array([[2, 0], [0, 1]]), None, b"clustering_0,clustering_1\n2,0\n0,1\n"),
        ("labels.csv", np.array([[2, 0], [0, 1]]), ["a", "b"], b"a,b\n2,0\n0,1\n"),
        ("labels.csv", ge.Ensemble([[4, 5, 4], [9, 8, 8]]).take([0, 2]), ["a", "b"], b"a,b\n0,1\n0,0\n"),
        ("labels.tsv", np.array([[2, 0], [0, 1]]), None, b"clustering_0\tclustering_1\n2\t0\n0\t1\n"),
    ],
)
def test_exactly_what_is_in_a_text(tmp_path, name, labels, names, written):
    write_labels(tmp_path / name, labels, names=names)
    assert (tmp_path / name).read_bytes() == written


@pytest.mark.parametrize("suffix", [".npy", ".csv.gz"])
def test_the_same_labels_are_the_same_bytes(tmp_path, suffix):
    paths = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
    for path in paths:
        write_labels(path, LABELS)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize(
    ("k", "dtype"),
    [(100, "i1"), (128, "i1"), (129, "i2"), (255, "i2"), (256, "i2"), (300, "i2"), (40_000, "i4")],
)
@pytest.mark.parametrize("missing", [0, 1])
def test_ensembles_are_written_in_few_bytes(tmp_path, k, dtype, missing):
    ens = ge.Ensemble([np.arange(k + missing) - missing, np.arange(k + missing) % 2])
    write_labels(tmp_path / "labels.npy", ens)
    written = np.load(tmp_path / "labels.npy")
    assert missing or written.dtype == dtype
    np.testing.assert_array_equal(written, ens.to_array())


def test_labels_in_gpu_memory_are_brought_home(tmp_path, fake_cupy):
    write_labels(tmp_path / "labels.npy", fake_cupy.asarray(np.array([1, 0])))
    assert np.load(tmp_path / "labels.npy").tolist() == [1, 0]


# --- npy and npz ------------------------------------------------------------------------------------------------------


def test_npy_is_mapped_not_loaded(tmp_path, monkeypatch):
    np.save(tmp_path / "labels.npy", LABELS)
    seen, really = [], ge.Ensemble.from_labels
    monkeypatch.setattr(
        ge.Ensemble, "from_labels", lambda labels, *_, **__: seen.append(labels) or really(labels, None)
    )
    read_labels(tmp_path / "labels.npy")
    assert isinstance(seen[0], np.memmap)


@pytest.mark.parametrize("array", [LABELS, np.asfortranarray(LABELS), LABELS.astype(">i2"), LABELS.astype(float)])
def test_npy_layouts(tmp_path, array):
    np.save(tmp_path / "labels.npy", array)
    assert read_labels(tmp_path / "labels.npy").to_array().tolist() == CODES


def test_npz(tmp_path):
    path = tmp_path / "pool.npz"
    np.savez(path, labels=LABELS)
    assert read_labels(path).to_array().tolist() == CODES
    np.savez_compressed(path, members=LABELS, y=[1, 1, 2, 2])
    ens = read_labels(path, key="members")
    assert ens.to_array().tolist() == CODES
    assert read_labels(path, key="y").to_array().tolist() == [[0], [0], [1], [1]]
    refused(lambda: read_labels(path), ValueError, "key is needed", "'members', 'y'")
    refused(lambda: read_labels(path, key="z"), ValueError, "key='z'", "'members', 'y'")
    np.savez(path, **dict(zip(NAMES, LABELS.T, strict=True)))
    ens = read_labels(path)
    assert ens.to_array().tolist() == CODES
    assert ens.names == NAMES
    assert read_labels(path, columns=["r", 0]).names == ["r", "p"]
    np.savez(path, a=[0, 1, 1], b=[0, 1])
    refused(lambda: read_labels(path), ValueError, "key is needed")


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names", "codes"),
    [
        ("0,3\n1,3\n1,4\n", [0, 1], [[0, 0], [1, 0], [1, 1]]),
        ("p,q\n0,3\n1,3\n1,4\n", ["p", "q"], [[0, 0], [1, 0], [1, 1]]),
        ("p,q\r\n0,3\r\n1,3\r\n1,4", ["p", "q"], [[0, 0], [1, 0], [1, 1]]),
        ("\ufeffp,q\n0,3\n1,4\n", ["p", "q"], [[0, 0], [1, 1]]),
        ('"p, too",q\n0,3\n1,4\n', ["p, too", "q"], [[0, 0], [1, 1]]),
        ("p, q\n0, 3\n1, 4\n", ["p", "q"], [[0, 0], [1, 1]]),
        ("p,p\n0,3\n1,4\n", ["p", "p"], [[0, 0], [1, 1]]),
        ("7,q\n0,3\n1,4\n", ["7", "q"], [[0, 0], [1, 1]]),  # a single name makes the first line a header
        ("0,\n1,3\n,4\n", [0, 1], [[0, -1], [1, 0], [-1, 1]]),
        (",3\n1,3\n1,\n2,4\n", [0, 1], [[-1, 0], [0, 0], [0, -1], [1, 1]]),
        ("0.0,\n1.0,3\nnan,4\n", [0, 1], [[0, -1], [1, 0], [-1, 1]]),
        ("p,q\nb,True\na,False\n,True\n", ["p", "q"], [[1, 1], [0, 0], [-1, 1]]),
        ("p,q\n-1,10\n1,9\n2,10\n", ["p", "q"], [[-1, 1], [0, 0], [1, 1]]),
        ("p\n1\n2\n", ["p"], [[0], [1]]),
        # pandas writes an index with an empty name
        (",p,q\ncell one,0,3\ncell two,1,4\n", ["p", "q"], [[0, 0], [1, 1]]),
        (",0,1\n0,0,3\n1,1,4\n", [0, 1], [[0, 0], [1, 1]]),
        (",0\n0,b\n1,a\n2,b\n", [0], [[1], [0], [1]]),
        (",0,1\n0,0,3\n2,1,4\n", [0, 1], [[0, 0], [1, 1]]),  # pandas writes a filtered table like this
        (",0,1\na,0,3\na,1,4\n", [0, 1], [[0, 0], [1, 1]]),
        ("0,1\n0,0,3\n2,1,4\n", [0, 1], [[0, 0], [1, 1]]),  # R writes tables like this
        ("7,8\na,0,3\nb,1,4\n", ["7", "8"], [[0, 0], [1, 1]]),
    ],
)
def test_csv(tmp_path, text, names, codes):
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8", newline="")
    ens = read_labels(path)
    assert ens.to_array().tolist() == codes
    assert list(ens.names) == names
    (tmp_path / "labels.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_labels(tmp_path / "labels.csv.gz").to_array().tolist() == codes
    if '"' not in text:
        (tmp_path / "labels.tsv").write_text(text.replace(",", "\t"), encoding="utf-8", newline="")
        assert read_labels(tmp_path / "labels.tsv").to_array().tolist() == codes


def test_a_blank_line_is_not_skipped(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("p\n3\n\n4\n")
    refused(lambda: read_labels(path), ValueError, "1 object(s) have no label", "object 1")
    path.write_text("p,q\n3,1\n\n4,2\n")
    refused(lambda: read_labels(path), ValueError, "nothing in line 3")


def test_large_numbers_are_not_rounded(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(f"p,q\n{2**53},1\n{2**53 + 1},2\n")
    assert read_labels(path).n_clusters == 4
    path.write_text(f"p,q\n{2**53},1\n{2**53 + 1},2\n,2\n")
    ens = read_labels(path)
    assert ens.to_array().tolist() == [[0, 0], [1, 1], [-1, 1]]
    assert ens.categories[0].tolist() == [2**53, 2**53 + 1]
    path.write_text(f"p,q\n{2**53 + 1}.0,1\n1,2\n,2\n")
    refused(lambda: read_labels(path), ValueError, "clustering 'p'", "2**53")
    np.save(tmp_path / "labels.npy", np.array([[2.0**53, 1], [1, 2]]))  # 2**53 + 1 would also be stored as 2.0**53
    refused(lambda: read_labels(tmp_path / "labels.npy"), ValueError, "clustering 0", "float64 of 2**53 or more")
    np.save(tmp_path / "labels.npy", np.array([[2.0**24, 1], [1, 2]], dtype=np.float32))
    refused(lambda: read_labels(tmp_path / "labels.npy"), ValueError, "clustering 0", "float32 of 2**24 or more")


def test_strings_far_down_do_not_split_a_column(tmp_path):
    """pandas reads large files in pieces, and may read a label as a number in one piece and as text in another."""
    path = tmp_path / "labels.csv"
    path.write_text("p,q\n" + "1,5\n" * 300_000 + "a,6\n1,6\n")
    assert read_labels(path).n_clusters == 4


# --- parquet and h5ad -------------------------------------------------------------------------------------------------


def test_parquet_of_categories_and_missing_integers(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"a": pd.Categorical(["x", None, "y"]), "b": pd.array([5, 6, None], dtype="Int64")})
    table.index = ["one", "two", "three"]
    table.to_parquet(tmp_path / "labels.parquet")
    ens = read_labels(tmp_path / "labels.parquet")
    assert ens.to_array().tolist() == [[0, 0], [-1, 1], [1, -1]]
    assert ens.names == ["a", "b"]


@pytest.fixture
def cells(tmp_path):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(
        {
            "leiden": pd.Categorical(["0", "10", "2", None]),
            "n_genes": [0.5, 1.5, 2.5, 3.5],
            "louvain": np.array([3, 3, 4, 4], dtype=np.int32),
            "note": ["a", "b", "c", "d"],
            "doublet": [True, False, True, False],
        },
        index=list("wxyz"),
    )
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(X=np.ones((4, 2), dtype=np.float32), obs=obs).write_h5ad(path)
    return path


def test_h5ad(cells):
    ens = read_labels(cells)
    assert ens.names == ["leiden", "louvain"]
    assert ens.to_array().tolist() == [[0, 0], [1, 0], [2, 1], [-1, 1]]
    assert read_labels(cells, columns="doublet").to_array().tolist() == [[1], [0], [1], [0]]
    assert read_labels(cells, columns=["note", 0]).names == ["note", "leiden"]
    refused(lambda: read_labels(cells, columns="nothing"), ValueError, "'nothing'", "'leiden'")
    refused(lambda: read_labels(cells, columns="n_genes"), ValueError, "'n_genes'", "not whole numbers")


def test_h5ad_without_labels(tmp_path):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"depth": [0.5, 1.5]}, index=["a", "b"])
    anndata.AnnData(X=np.ones((2, 1), dtype=np.float32), obs=obs).write_h5ad(tmp_path / "cells.h5ad")
    refused(lambda: read_labels(tmp_path / "cells.h5ad"), ValueError, "columns is needed", "'depth'")


def test_the_expression_matrix_is_not_read(cells):
    h5py = pytest.importorskip("h5py")
    with h5py.File(cells, "r+") as file:
        del file["X"]
    assert read_labels(cells).n_objects == 4
    with h5py.File(cells, "r+") as file:
        del file["obs"]
    refused(lambda: read_labels(cells), ValueError, "cells.h5ad", "obs")


@pytest.mark.parametrize(("suffix", "package"), [(".parquet", "pyarrow"), (".h5ad", "anndata"), (".h5ad", "h5py")])
def test_optional_packages(tmp_path, suffix, package, monkeypatch):
    path = tmp_path / f"labels{suffix}"
    path.write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    refused(lambda: read_labels(path), ImportError, suffix[1:], installing.command("io"))
    if suffix == ".parquet":
        refused(lambda: write_labels(path, [0, 1]), ImportError, "pyarrow", installing.command("io"))
        assert path.read_bytes() == b"anything"


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
@pytest.mark.parametrize(
    ("columns", "positions"), [(1, [1]), ([2, 0], [2, 0]), (np.array([0, 2]), [0, 2]), ("1", [1]), (("0", 2), [0, 2])]
)
def test_columns_by_number(tmp_path, suffix, columns, positions):
    path = tmp_path / f"labels{suffix}"
    write_labels(path, np.abs(LABELS), names=NAMES)
    ens = read_labels(path, columns=columns)
    expected = ge.Ensemble(list(np.abs(LABELS).T[positions]))
    np.testing.assert_array_equal(ens.codes, expected.codes)
    assert list(ens.names) == (positions if suffix in (".npy", ".npz") else [NAMES[m] for m in positions])


def test_columns_by_name(tmp_path):
    path = tmp_path / "labels.csv"
    frame().to_csv(path, index=False)
    assert read_labels(path, columns=["r", "p"]).to_array().tolist() == [[0, 0], [-1, 0], [0, 1], [1, 1]]
    path.write_text("1,0,q\n5,6,7\n5,6,8\n6,7,8\n")
    # a text means a column's name first, and its number only if no name is equal
    assert read_labels(path, columns="0").names == ["0"]
    assert read_labels(path, columns=0).names == ["1"]
    path.write_text("p,p\n0,1\n1,1\n")
    refused(lambda: read_labels(path, columns="p"), ValueError, "'p' is the name of several", "numbers")


@pytest.mark.parametrize(
    ("columns", "kind", "mentioned"),
    [
        ("z", ValueError, "there is no column 'z'"),
        (3, ValueError, "there is no column 3"),
        (-1, ValueError, "there is no column -1"),
        (["p", "z"], ValueError, "'z'"),
        ([], ValueError, "columns is empty"),
        (1.0, TypeError, "1.0"),
        ([True], TypeError, "True"),
        ([None], TypeError, "None"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_bad_columns(tmp_path, suffix, columns, kind, mentioned):
    path = tmp_path / f"labels{suffix}"
    write_labels(path, ge.Ensemble(frame()))
    if columns == ["p", "z"] and suffix == ".npy":
        mentioned = "'p'"
    refused(lambda: read_labels(path, columns=columns), kind, "columns", mentioned)


# --- features ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".tsv.gz", ".parquet"])
def test_features(tmp_path, suffix):
    values = np.random.default_rng(0).standard_normal((20, 3))
    path = tmp_path / f"features{suffix}"
    table = pd.DataFrame(values, columns=["u", "v", "w"])
    write = {
        ".npy": lambda: np.save(path, values),
        ".npz": lambda: np.savez(path, X=values, y=np.zeros(20)),
        ".parquet": lambda: table.to_parquet(path),
    }
    write.get(suffix, lambda: table.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t"))()
    np.testing.assert_allclose(read_features(path), values, rtol=0)
    np.testing.assert_allclose(read_features(path, columns=[2, 0]), values[:, [2, 0]], rtol=0)
    ens = ge.generate.kmeans_ensemble(read_features(path), 3, 2)
    np.testing.assert_array_equal(ens.codes, ge.generate.kmeans_ensemble(values, 3, 2).codes)


def test_sparse_features(tmp_path):
    rng = np.random.default_rng(0)
    values = scipy.sparse.csr_array(rng.random((30, 8)) * (rng.random((30, 8)) < 0.3))
    scipy.sparse.save_npz(tmp_path / "features.npz", values)
    found = read_features(tmp_path / "features.npz")
    assert (found != values).nnz == 0
    assert read_features(tmp_path / "features.npz", columns=[3, 1]).shape == (30, 2)


def test_features_by_key(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, a=np.eye(3), b=np.ones((3, 2)))
    assert read_features(path, key="b").shape == (3, 2)
    refused(lambda: read_features(path), ValueError, "key is needed", "'a', 'b'")


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_labels, read_features])
def test_paths_that_cannot_be_read(tmp_path, read):
    refused(lambda: read(tmp_path / "no.npy"), FileNotFoundError, "no.npy", "does not exist")
    refused(lambda: read(tmp_path / "labels.txt"), FileNotFoundError, "labels.txt", "does not exist")
    (tmp_path / "labels").write_bytes(b"\x80\0")
    refused(lambda: read(tmp_path / "labels"), ValueError, "labels", "neither text nor", ".npy, .npz, .csv", ".parquet")
    refused(lambda: read(3), TypeError, "path", "int")
    (tmp_path / "folder.npy").mkdir()
    refused(lambda: read(tmp_path / "folder.npy"), IsADirectoryError, "folder.npy", "directory")
    np.save(tmp_path / "labels.npy", LABELS)
    refused(lambda: read(tmp_path / "labels.npy", key="a"), ValueError, "key='a'", ".npy")


def test_files_that_may_not_be_read(tmp_path, monkeypatch):
    np.save(tmp_path / "labels.npy", LABELS)
    # os.access is replaced, because root may read every file
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    refused(lambda: read_labels(tmp_path / "labels.npy"), PermissionError, "labels.npy", "permissions")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".h5ad"])
@pytest.mark.parametrize("damage", ["empty", "cut", "something else"])
def test_damaged_files(tmp_path, suffix, damage, request):
    if suffix == ".h5ad":
        path = request.getfixturevalue("cells")
    else:
        path = tmp_path / f"labels{suffix}"
        write_labels(path, np.random.default_rng(0).integers(0, 9, (500, 4)))
    content = path.read_bytes()
    cut = content[: len(content) // 2]
    path.write_bytes({"empty": b"", "cut": cut, "something else": b'a,b\n1,2,3\n\x00"'}[damage])
    if (suffix, damage) == (".csv", "cut"):
        assert read_labels(path).n_objects < 260  # the first half of a text table is a valid table
        return
    refused(lambda: read_labels(path), ValueError, path.name)


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    refused(lambda: write_labels(tmp_path / "labels.txt", [0, 1]), ValueError, "labels.txt", ".npy")
    refused(lambda: write_labels(tmp_path / "labels.h5", [0, 1]), ValueError, "labels.h5", ".npy")
    refused(lambda: write_labels(tmp_path / "no" / "labels.npy", [0, 1]), FileNotFoundError, "does not exist", "make")
    (tmp_path / "folder.npy").mkdir()
    refused(lambda: write_labels(tmp_path / "folder.npy", [0, 1]), IsADirectoryError, "folder.npy")

    def forbidden(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(parts, "open", forbidden, raising=False)
    refused(lambda: write_labels(tmp_path / "labels.npy", [0, 1]), PermissionError, "labels.npy", "Permission denied")
    assert os.listdir(tmp_path) == ["folder.npy"]


@pytest.mark.parametrize(
    ("labels", "kind", "mentioned"),
    [
        (np.zeros((2, 2, 2), int), ValueError, "(2, 2, 2)"),
        (5, ValueError, "shape ()"),
        ([], ValueError, "(0,)"),
        (np.zeros((3, 0), int), ValueError, "(3, 0)"),
        ([0.5, 1.0], TypeError, "float64"),
        (np.array(["a", None], dtype=object), TypeError, "object"),
    ],
)
def test_labels_that_cannot_be_written(tmp_path, labels, kind, mentioned):
    refused(lambda: write_labels(tmp_path / "labels.npy", labels), kind, "labels", mentioned)
    assert os.listdir(tmp_path) == []


def test_wrong_number_of_names(tmp_path):
    refused(lambda: write_labels(tmp_path / "a.csv", LABELS, names=["p"]), ValueError, "names", "1 were given for 3")


class Full:
    """A file on a disk with room for three bytes."""

    def __init__(self, file, failure):
        self._file, self._failure = file, failure

    def write(self, data):
        self._file.write(bytes(data)[:3])
        raise self._failure

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("no")])
def test_nothing_partial_is_left(tmp_path, suffix, failure, monkeypatch):
    path = tmp_path / f"labels{suffix}"
    path.write_bytes(b"what was there before")

    @contextmanager
    def full(path):
        with atomic.replacing(path) as file:
            yield Full(file, failure)

    monkeypatch.setattr("gpuens.io.writing.replacing", full)
    with pytest.raises(type(failure), match="No space left" if isinstance(failure, OSError) else None):
        write_labels(path, LABELS)
    assert path.read_bytes() == b"what was there before"
    assert os.listdir(tmp_path) == [path.name]


def test_large_files_in_a_moment(tmp_path):
    labels = np.random.default_rng(0).integers(0, 100, (200_000, 10))
    np.save(tmp_path / "labels.npy", labels)
    start = time.perf_counter()
    ens = read_labels(tmp_path / "labels.npy")
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(ens.codes, labels)
    assert seconds < 2  # 0.05 s is normal
