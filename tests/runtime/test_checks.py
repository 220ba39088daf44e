"""Every error message is one sentence that names the argument. No wrong value is accepted silently."""

import re
from pathlib import Path

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from conftest import one_sentence, refused

import gpuens as ge
from gpuens import partition
from gpuens.runtime import checks, installing


class OnGPU:
    """An array in GPU memory, as gpuens sees it without CuPy."""

    def __init__(self, shape):
        self.shape = shape
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<i4", "data": (1 << 40, False), "version": 3}

    def __len__(self):
        return self.shape[0]


# --- label matrices ---------------------------------------------------------------------------------------------------

GOOD = np.array([[0, 1], [1, 0], [1, 1]])
DATES = np.array([("a", 1), ("b", 2)], dtype=[("x", "U1"), ("y", int)])

BAD_LABELS = {
    "1-D": (np.array([0, 1, 1]), ValueError, ["2-D", "(3,)", "labels.reshape(-1, 1)"]),
    "1-D list": ([0, 1, 1], ValueError, ["2-D", "(3,)"]),
    "1-D series": (pd.Series([0, 1, 1]), ValueError, ["2-D", "(3,)"]),
    "list of strings": (["aab", "abb"], ValueError, ["2-D", "(2,)"]),
    "0-D": (np.array(5), ValueError, ["2-D", "()"]),
    "3-D": (np.zeros((3, 2, 2), int), ValueError, ["2-D", "(3, 2, 2)"]),
    "3-D list": ([[[0, 1], [1, 0]], [[0, 1], [1, 0]]], ValueError, ["2-D", "(2, 2, 2)"]),
    "list of a matrix": ([GOOD], ValueError, ["2-D", "(1, 3, 2)"]),
    "no objects": (np.zeros((0, 3), int), ValueError, ["0 sample(s)", "(0, 3)"]),
    "no clusterings": (np.zeros((3, 0), int), ValueError, ["0 feature(s)", "(3, 0)"]),
    "empty list": ([], ValueError, ["empty"]),
    "list of empty lists": ([[], []], ValueError, ["0 sample(s)"]),
    "empty frame": (pd.DataFrame(), ValueError, ["empty"]),
    "frame without rows": (pd.DataFrame({"a": []}), ValueError, ["0 sample(s)"]),
    "transposed": (np.zeros((3, 16), int), ValueError, ["(3, 16)", "transposed", "labels.T"]),
    "rows in a list": ([[0, 1, 2]] * 16, ValueError, ["16 lists of 3", "transposed", "numpy.array(labels)"]),
    "fractions": (GOOD + 0.5, ValueError, ["clustering 0", "whole numbers", "0.5", "feature values"]),
    "a fraction among objects": ([["a", 0.25, "b"], [0, 1, 1]], ValueError, ["clustering 0", "0.25"]),
    "a fraction in a column": (pd.DataFrame({"u": [0, 1, 1], "v": [1, 1.5, 2]}), ValueError, ["clustering 'v'", "1.5"]),
    "nullable fractions": (pd.DataFrame({"u": [0.5, None]}, dtype="Float64"), ValueError, ["clustering 'u'", "0.5"]),
    "infinite": (np.array([[0.0, 1], [1, -np.inf]]), ValueError, ["clustering 1", "infinity"]),
    "infinite among objects": ([["a", float("inf"), "b"], [0, 1, 1]], ValueError, ["clustering 0", "infinity"]),
    "floats too large": (np.array([[2.0**54], [1.0]]), ValueError, ["clustering 0", "2**53"]),
    "negative": (np.array([[0, 1], [-2, 0]]), ValueError, ["clustering 0", "-2", "-1 alone"]),
    "very negative": (np.array([[0, 1], [np.iinfo(np.int64).min, 0]]), ValueError, ["-9223372036854775808"]),
    "negative floats": (np.array([[0, 1], [0, -3.0]]), ValueError, ["clustering 1", "-3"]),
    "negative among objects": ([["a", -7, None], [0, 1, 1]], ValueError, ["clustering 0", "-7"]),
    "negative categories": ([pd.Categorical([1, -5, 2])], ValueError, ["clustering 0", "-5"]),
    "complex": (GOOD * 1j, ValueError, ["clustering 0", "complex"]),
    "columns of different length": ([np.arange(3), np.arange(4)], ValueError, ["clustering 1 has 4", "0 has 3"]),
    "lists of different length": ([[0, 1, 1], [0, 1]], ValueError, ["clustering 0 has 3", "1 has 2"]),
    "a ragged column": ([[0, [1], [1, 2]], [0, 1, 1]], TypeError, ["clustering 0", "integers or strings"]),
    "a scalar among columns": ([[0, 1, 1], 5], ValueError, ["1-D column", "element 1 is no column"]),
    "None among columns": ([[0, 1, 1], None], ValueError, ["1-D column", "element 1 is no column"]),
    "a matrix among columns": ([GOOD[:, 0], GOOD], ValueError, ["1-D column", "element 1 is 2-D"]),
    "a frame among columns": ([[0, 1, 1], pd.DataFrame(GOOD)], ValueError, ["1-D column", "element 1 is 2-D"]),
    "a clustering all -1": (np.array([[0, -1], [1, -1]]), ValueError, ["clustering 1", "all missing"]),
    "a clustering all NaN": (np.array([[0, np.nan], [1, np.nan]]), ValueError, ["clustering 1", "all missing"]),
    "a clustering all None": ([["a", "b"], [None, None]], ValueError, ["clustering 1", "all missing"]),
    "a clustering all masked": (np.ma.array(GOOD, mask=GOOD >= 0), ValueError, ["clustering 0", "all missing"]),
    "a named clustering all missing": (pd.DataFrame({"u": [0, 1], "v": [-1, -1]}), ValueError, ["clustering 'v'"]),
    "an object missing everywhere": (np.array([[0, 1], [-1, -1], [1, 0]]), ValueError, ["1 object(s)", "object 1"]),
    "objects missing everywhere": (
        [["a", None, "b", None, None], [0, -1, 1, -1, 1]],
        ValueError,
        ["2 object(s)", "the first is object 1"],
    ),
    "mixed devices": ([np.array([0, 1, 1]), OnGPU((3,))], TypeError, ["GPU memory", "host memory"]),
    "mixed devices, a list": ([[0, 1, 1], OnGPU((3,))], TypeError, ["GPU memory", "host memory"]),
    "sparse": (scipy.sparse.csr_matrix(GOOD), TypeError, ["sparse", "labels.toarray()"]),
    "sparse array": (scipy.sparse.coo_array(GOOD), TypeError, ["sparse", "labels.toarray()"]),
    "a sparse column": ([scipy.sparse.csr_matrix(GOOD)], ValueError, ["2-D"]),
    "records": (DATES.reshape(-1, 1), TypeError, ["clustering 0", "integers or strings"]),
    "dictionaries as labels": ([[{}, {}, {}], [0, 1, 1]], TypeError, ["clustering 0", "integers or strings"]),
    "labels without an order": ([[1j, 2j, "a"], [0, 1, 1]], TypeError, ["clustering 0", "integers or strings"]),
    "None": (None, TypeError, ["NoneType"]),
    "a string": ("labels.npy", TypeError, ["str"]),
    "bytes": (b"abc", TypeError, ["bytes"]),
    "a dict": ({"a": 0, "b": 1}, TypeError, ["one clustering", "dict", "[labels]"]),
    "a set": ({1, 2}, TypeError, ["set"]),
    "a number": (3, TypeError, ["int"]),
    "a generator": ((i for i in range(3)), TypeError, ["generator"]),
}


@pytest.mark.parametrize("case", list(BAD_LABELS))
def test_bad_labels(case):
    labels, kind, mentioned = BAD_LABELS[case]
    assert refused(lambda: ge.Ensemble(labels), kind, *mentioned).startswith("labels")


@pytest.mark.parametrize("labels", [OnGPU((3, 2)), [OnGPU((3,)), OnGPU((3,))]])
def test_labels_in_gpu_memory_without_cupy(labels, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)  # importing CuPy fails, even where it is installed
    refused(lambda: ge.Ensemble(labels), ImportError, "labels", "CuPy is not installed", installing.command("cu12"))


@pytest.mark.parametrize(
    ("names", "kind", "mentioned"),
    [
        (["a"], ValueError, "1 were given for 2"),
        (["a", "b", "c"], ValueError, "3 were given for 2"),
        ("ab", TypeError, "'ab'"),
        (5, TypeError, "5"),
    ],
)
def test_bad_names(names, kind, mentioned):
    assert refused(lambda: ge.Ensemble(GOOD, names=names), kind, mentioned).startswith("names")
    refused(lambda: ge.Ensemble(ge.Ensemble(GOOD), names=names), kind, mentioned)


@pytest.mark.parametrize("labels", [GOOD, np.zeros((1, 1), int)])
def test_good_labels_pass_in_silence(labels):
    assert ge.Ensemble(labels).n_objects == len(labels)  # any warning is an error in these tests


@pytest.mark.parametrize(
    ("labels", "mentioned"),
    [
        (pd.DataFrame({"u": [0, 1, 1], "same": [4, 4, 4], "v": [7, -1, 7]}), ["same, v", "2 of 3"]),
        (np.eye(1, 200, dtype=int).reshape(20, 10), ["1, 2, 3, 4, 5 … (9 of 10)"]),
    ],
    ids=["few", "many"],
)
def test_constant_clusterings_are_a_warning(labels, mentioned):
    with pytest.warns(UserWarning, match="constant") as caught:
        assert ge.Ensemble(labels).n_clusterings == labels.shape[1]
    assert len(caught) == 1
    assert [part for part in mentioned if part not in one_sentence(caught[0].message)] == []


# --- single values ----------------------------------------------------------------------------------------------------


def test_check_integer():
    assert checks.check_integer(np.int8(3), "k", minimum=3, maximum=3) == 3
    assert type(checks.check_integer(np.int8(3), "k", minimum=3)) is int
    for value in (2.0, "3", None, True, np.bool_(True), [3]):
        refused(lambda value=value: checks.check_integer(value, "k", minimum=1), TypeError, "k must be", repr(value))
    refused(lambda: checks.check_integer(0, "k", minimum=1), ValueError, "k must be at least 1", "0")
    refused(lambda: checks.check_integer(9, "k", minimum=1, maximum=5), ValueError, "k must be from 1 to 5", "9")


def test_check_real():
    assert checks.check_real(np.float32(0.5), "theta", above=0, at_most=0.5) == 0.5
    assert type(checks.check_real(1, "theta")) is float
    for value in ("a", None, True, 1j):
        refused(lambda value=value: checks.check_real(value, "theta"), TypeError, "theta", repr(value))
    for value in (0, -1, np.nan, np.inf):
        refused(lambda value=value: checks.check_real(value, "theta", above=0), ValueError, "theta must be above 0")
    refused(lambda: checks.check_real(2, "theta", above=0, at_most=1), ValueError, "above 0 and at most 1", "2")


def test_check_choice():
    assert checks.check_choice("a", "method", ["a", "b"]) == "a"
    refused(lambda: checks.check_choice("c", "method", iter(["a", "b"])), ValueError, "method", "'a', 'b'", "'c'")


def test_check_n_clusters():
    assert checks.check_n_clusters(np.int64(4), 4) == 4
    refused(lambda: checks.check_n_clusters(None, 4), ValueError, "n_clusters is not given")
    refused(lambda: checks.check_n_clusters(0, 4), ValueError, "n_clusters must be at least 1", "0")
    refused(lambda: checks.check_n_clusters(5, 4), ValueError, "n_clusters=5", "4 distinct")
    refused(lambda: checks.check_n_clusters(2.5, 4), TypeError, "n_clusters", "2.5")


def test_check_indices():
    assert checks.check_indices(None, 3, "rows").tolist() == [0, 1, 2]
    assert checks.check_indices(slice(1, None), 3, "rows").tolist() == [1, 2]
    assert checks.check_indices([True, False, True], 3, "rows").tolist() == [0, 2]
    assert checks.check_indices(np.array([-1, 0], dtype=np.int8), 3, "rows").tolist() == [2, 0]
    assert checks.check_indices([], 3, "rows").tolist() == []
    for rows in ([3], [-4]):
        refused(lambda rows=rows: checks.check_indices(rows, 3, "rows"), ValueError, "rows", "0 … 2")
    for rows in ([0.5], [[0, 1]], 1, "ab", [True, False]):
        refused(lambda rows=rows: checks.check_indices(rows, 3, "rows"), TypeError, "rows must be")


def test_check_weights():
    assert checks.check_weights(None, 3) is None
    assert checks.check_weights([1, 2, 3], 3).dtype == np.int64
    assert checks.check_weights([1, 2.5, 3], 3).dtype == np.float64
    for values in ([1, 2], [[1, 2, 3]], ["a", "b", "c"]):
        refused(lambda values=values: checks.check_weights(values, 3), ValueError, "weights must be 3 numbers")
    for values in ([1, 0, 2], [1, -1, 2], [1, np.nan, 2], [1, np.inf, 2]):
        refused(lambda values=values: checks.check_weights(values, 3, "w"), ValueError, "w must be positive and finite")


def test_check_memory():
    checks.check_memory(10, 10, "the matrix", "take a sample")
    refused(
        lambda: checks.check_memory(2_500_000_000, 10**9, "the matrix", "take a sample"),
        MemoryError,
        "the matrix needs 2.5 GB and 1.0 GB may be used",
        "take a sample",
        "GPUENS_MEMORY",
    )


def test_human_bytes():
    written = [checks.human_bytes(n) for n in (0, 999, 1500, 2e6, 3.25e9, 5e15)]
    assert written == ["0 bytes", "999 bytes", "1.5 kB", "2.0 MB", "3.2 GB", "5,000.0 TB"]


# --- warnings ---------------------------------------------------------------------------------------------------------


CONSTANT = np.array([[0, 0], [0, 1], [0, 1]])
WARNS = {
    "an ensemble": lambda folder: ge.Ensemble(CONSTANT),
    "a similarity": lambda folder: ge.similarity.eci([[0, 0, 1, 1], [0, 1, 0, 1]], theta=1e-9),
    "a partitioner": lambda folder: partition.metis(np.zeros((3, 3)), np.ones(3, dtype=int), 2),
    "scikit-learn's mixin": lambda folder: ge.EAC(n_clusters=2).fit_predict(CONSTANT),
    "Dask": lambda folder: ge.LWEA(n_clusters=2).fit(dask.array.from_array(CONSTANT, chunks=(2, 2))),
    "a file": lambda folder: ge.io.read_labels(Path(folder, "labels.csv")),
}


@pytest.mark.parametrize("warns", WARNS.values(), ids=WARNS)
def test_a_warning_points_at_the_callers_line(warns, tmp_path):
    Path(tmp_path, "labels.csv").write_text("a,b\n?,x\ny,x\ny,z\n")
    with pytest.warns(UserWarning, match="constant|theta|all 0|missing") as caught:
        warns(tmp_path)
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, warns.__code__.co_firstlineno)]


# --- messages ---------------------------------------------------------------------------------------------------------


def test_every_message_of_the_package_is_one_sentence():
    """The test reads the messages from the source code, because tests cannot cause every error."""
    source = "".join(path.read_text() for path in Path(ge.__file__).parent.rglob("*.py"))
    messages = re.findall(r"\b(?:ValueError|TypeError|MemoryError|ImportError|warn)\(\s*((?:f?\"[^\"]*\"\s*)+)", source)
    assert len(messages) > 100
    for message in messages:
        text = "".join(re.findall(r'"([^"]*)"', message))
        one_sentence(re.sub(r"\{error\}$", "it is a sentence.", text))
