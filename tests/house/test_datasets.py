"""Data sets by name, from a directory and from files. Without a network, a download raises a one-sentence error."""

import urllib.error
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from conftest import refused

from gpuens import datasets

X = np.array([[0, 1], [2, 3], [4, 5]], dtype=np.int16)
Y = np.array([1, 0, 1], dtype=np.uint8)


@pytest.fixture(autouse=True)
def no_directory(monkeypatch):
    monkeypatch.delenv("GPUENS_DATA", raising=False)


@pytest.fixture
def folder(tmp_path):
    for name in ("covtype", "iris"):
        np.savez(tmp_path / f"{name}.npz", X=X, y=Y)
    np.savez(tmp_path / "toy.npz", X=X, y=Y, classes=np.array(["a", "b"]))
    np.savez(tmp_path / "scaled.npz", X=X, y=Y, scale=np.float32(0.5))
    np.savez(tmp_path / "plain.npz", X=X)
    np.savez(tmp_path / "uneven.npz", X=X, y=Y[:2])
    sparse = scipy.sparse.csr_matrix(X)
    arrays = {"format": b"csr", "shape": sparse.shape, "data": sparse.data, "indices": sparse.indices}
    np.savez(tmp_path / "text.npz", indptr=sparse.indptr, y=Y, **arrays)
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "toy.npz").read_bytes()[:200])
    (tmp_path / "README.md").write_text("not a data set")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind", "values", "y"),
    [
        ("scaled", np.ndarray, X / 2, [1, 0, 1]),
        ("plain", np.ndarray, X, None),
        ("text", scipy.sparse.csr_array, X, [1, 0, 1]),
        ("covtype", np.ndarray, X, [1, 0, 1]),
    ],
)
def test_kinds_of_files(folder, name, kind, values, y):
    data = datasets.load(name, data=folder)
    assert scipy.sparse.issparse(data.X) == (kind is not np.ndarray)
    np.testing.assert_array_equal(data.X if kind is np.ndarray else data.X.toarray(), values)
    assert (data.y is None, data.n_classes) == ((True, None) if y is None else (False, 2))
    assert y is None or data.y.tolist() == y


def test_bundled_names_mean_the_same_everywhere(folder, monkeypatch):
    assert datasets.load("iris", data=folder).X.shape == (150, 4)
    assert datasets.names() == ["breast_cancer", "covtype", "digits", "iris", "wine"]
    monkeypatch.chdir(folder)
    assert datasets.load("toy.npz").n_classes == 2


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [("digits", (1797, 64), 10), ("iris", (150, 4), 3), ("wine", (178, 13), 3), ("breast_cancer", (569, 30), 2)],
)
def test_bundled(name, shape, n_classes):
    data = datasets.load(name)
    assert (data.name, data.X.shape, data.n_classes, data.source) == (name, shape, n_classes, "scikit-learn")
    assert data.y.dtype == np.int64
    assert set(data.y) == set(range(n_classes))


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_directory(folder, by, monkeypatch):
    if by == "environment":
        monkeypatch.setenv("GPUENS_DATA", str(folder))
        options = {}
    else:
        monkeypatch.setenv("GPUENS_DATA", "/no/such/place")  # the argument overrides the variable
        options = {"data": folder}
    data = datasets.load("toy", **options)
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype == np.int16
    assert data.y.tolist() == [1, 0, 1]
    assert (data.name, data.source, data.n_classes) == ("toy", str(folder / "toy.npz"), 2)
    assert datasets.names(**options) == sorted(
        ["breast_cancer", "covtype", "digits", "iris", "wine", "damaged", "plain", "scaled", "text", "toy", "uneven"]
    )


def test_covtype_by_scikit_learn(folder, monkeypatch):
    (folder / "covtype.npz").unlink()
    monkeypatch.setattr("sklearn.datasets.fetch_covtype", lambda **options: (X.astype(float), np.array([5, 2, 5])))
    for data in (datasets.load("covtype"), datasets.load("covtype", data=folder)):
        assert data.y.tolist() == [1, 0, 1]
        assert "scikit-learn" in data.source


def test_covtype_without_a_network(monkeypatch):
    def no_network(**options):
        raise urllib.error.URLError("Name or service not known.")

    monkeypatch.setattr("sklearn.datasets.fetch_covtype", no_network)
    refused(lambda: datasets.load("covtype"), ConnectionError, "'covtype'", "URLError", "GPUENS_DATA", "covtype.npz")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".csv.gz", ".tsv"])
@pytest.mark.parametrize("kind", [str, Path])
def test_paths(tmp_path, suffix, kind):
    path = tmp_path / f"mine{suffix}"
    frame = pd.DataFrame({"u": X[:, 0], "Class": ["q", "p", "q"], "v": X[:, 1]})
    write = {".npz": lambda: np.savez(path, X=X, y=Y), ".npy": lambda: np.save(path, X)}
    write.get(suffix, lambda: frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ","))()
    data = datasets.load(kind(path))
    np.testing.assert_array_equal(data.X, X)
    assert (data.name, data.source) == ("mine", str(path))
    assert data.y is None if suffix == ".npy" else data.y.tolist() == [1, 0, 1]


def test_missing_classes(tmp_path):
    (tmp_path / "some.csv").write_text("u,target\n1,b\n2,\n3,a\n4,b\n")
    assert datasets.load(tmp_path / "some.csv").y.tolist() == [1, -1, 0, 1]


def test_refusals(folder, monkeypatch):
    refused(lambda: datasets.load("nothing"), ValueError, "'nothing' is unknown", "'digits'", "set GPUENS_DATA")
    refused(lambda: datasets.load("nothing", data=folder), ValueError, "'toy'", str(folder))
    refused(lambda: datasets.load("toy", data=folder / "no"), FileNotFoundError, "data names", "no directory")
    refused(lambda: datasets.load(folder / "no.npz"), FileNotFoundError, "no.npz", "does not exist")
    refused(lambda: datasets.load(folder / "README.md"), ValueError, "README.md", "no objects")
    refused(lambda: datasets.load("damaged", data=folder), ValueError, "damaged.npz")
    refused(lambda: datasets.load("uneven", data=folder), ValueError, "uneven.npz", "3 objects", "2 in y")
    refused(lambda: datasets.load(5), TypeError, "not int")
    monkeypatch.setenv("GPUENS_DATA", "/no/such/place")
    refused(lambda: datasets.load("toy"), FileNotFoundError, "GPUENS_DATA names '/no/such/place'")
    assert datasets.load("digits").name == "digits"  # digits needs no directory


def test_the_real_ones(shared_data):
    fct = datasets.load("fct", data=shared_data)
    covtype = datasets.load("covtype", data=shared_data)
    assert covtype.X.shape == (581_012, 54)
    np.testing.assert_array_equal(fct.X, covtype.X[11_340:15_120])
    assert np.bincount(covtype.y).tolist() == [211840, 283301, 35754, 2747, 9493, 17367, 20510]
    iris = datasets.load(shared_data / "iris.npz")
    np.testing.assert_allclose(iris.X, datasets.load("iris").X, atol=1e-6)
    assert (iris.y == datasets.load("iris").y).all()
    isolet = datasets.load("isolet", data=shared_data).X
    assert np.abs(isolet).max() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("names", "n_features"), [("x,y", 2), ("source,target", 2), ("u,y", 1), ("u,Target", 1)])
def test_columns_that_may_be_classes(tmp_path, names, n_features):
    path = tmp_path / "data.csv"
    path.write_text(f"{names}\n" + "".join(f"{m / 7},{m % 2}\n" for m in range(20)))
    assert datasets.load(str(path)).X.shape == (20, n_features)
