"""The child process of tests/fuzz/test_fuzz.py: it makes data by a description, fits a method and checks the result.

A description is a small dict of numbers and names, so that a failure can be read, shrunk and run again:

    python tests/fuzz_worker.py "{'rows': 5, …}"
"""

import faulthandler
import os
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import oracles
import pandas as pd
from conftest import METHODS, one_sentence
from fuzz_child import serve
from hostile import HOSTILE

import gpuens as ge
from gpuens import io

REFUSALS = (TypeError, ValueError, MemoryError)
LINKAGE = ("eac", "ecrmc", "lwea")


# --- what a description stands for ------------------------------------------------------------------------------------


def matrix(case):
    """Return labels (n, m) int64, -1 = missing."""
    rng = np.random.default_rng(case["seed"])
    n, m, k = case["rows"], case["columns"], case["k"]
    labels = rng.integers(0, k, (n, m))
    kind = case["kind"]
    if kind == "structured":
        labels = np.where(rng.random((n, m)) < 0.2, labels, rng.integers(0, k, n)[:, None])
    elif kind == "duplicates":
        labels = labels[rng.integers(0, 1 + n // 4, n)]
    elif kind == "nested":
        labels = np.arange(n)[:, None] // (1 + np.arange(m))
    elif kind == "identifier":
        labels[:, 0] = rng.permutation(n)
    elif kind == "constant column":
        labels[:, -1] = 0
    elif kind == "all alike":
        labels[:] = 0
    elif kind == "one against all":
        labels = (np.arange(n)[:, None] == rng.integers(0, n, m)).astype(np.int64)
    gone = rng.random((n, m)) < case["missing"]
    if not case["may be empty"]:
        gone[np.arange(n), rng.integers(0, m, n)] = False
    return np.where(gone, -1, labels)


def given(labels, form, rng):
    """Return labels in the given form (dtype or container); their values have the order of the codes."""
    missing = labels < 0
    columns = list(labels.T)
    texts = [[None if v < 0 else f"c {v:05d}" for v in column] for column in columns]
    objects = np.array(texts, dtype=object).T.reshape(labels.shape)
    if form in ("int8", "int16", "int32", "int64"):
        top = np.iinfo(form).max
        high = labels.max() < top and rng.random() < 0.5
        return np.where(missing, -1, labels + (top - labels.max() if high else 0)).astype(form)
    if form.startswith("uint"):  # unsigned types cannot hold -1
        if missing.any():
            return labels
        own = labels.astype(form)  # converted before the addition, because the sum of int64 and uint64 is float64
        return own + (np.iinfo(form).max - own.max())
    made = {
        "bools": lambda: labels.astype(bool) if set(np.unique(labels)) == {0, 1} else labels,
        "float32": lambda: np.where(missing, np.nan, labels).astype(np.float32),
        "float64": lambda: np.where(missing, np.nan, labels * 2.0**40),
        "large": lambda: np.where(missing, -1, labels + 2**62),
        "fortran": lambda: np.asfortranarray(labels),
        "strided": lambda: np.repeat(np.repeat(labels, 2, axis=0), 3, axis=1)[::2, ::3],
        "masked": lambda: np.ma.array(np.where(missing, 77, labels), mask=missing),
        "objects": lambda: objects,
        "columns": lambda: columns,
        "mixed columns": lambda: [column if i % 2 else objects[:, i] for i, column in enumerate(columns)],
        "frame": lambda: pd.DataFrame(labels),
        "categories": lambda: pd.DataFrame({f"run {i}": pd.Categorical(t) for i, t in enumerate(texts)}),
        "nullable": lambda: pd.DataFrame(np.where(missing, np.nan, labels)).astype("Int64"),
        "texts": lambda: pd.DataFrame({i: pd.array(t, dtype="string") for i, t in enumerate(texts)}),
        "ensemble": lambda: ge.Ensemble(labels),
    }  # fmt: skip
    return made[form]()


def setting(value):
    """Return the value of a parameter, or the hostile value that it names."""
    return HOSTILE[value["hostile"]] if isinstance(value, dict) else value


def soft(labels, rng):
    """Return the clusterings, with memberships in place of the first column of labels."""
    k = max(1, int(labels[:, 0].max()) + 1)
    return [rng.dirichlet(np.ones(k), len(labels)), *labels.T[1:]]


# --- what must hold ---------------------------------------------------------------------------------------------------


def fitted(case, labels, **more):
    """Return a fitted estimator and its warnings; check that each warning is one sentence and comes from gpuens."""
    parameters = {name: setting(value) for name, value in case["parameters"].items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = METHODS[case["method"]](**parameters, **more).fit(labels)
    for warning in caught:
        assert issubclass(warning.category, UserWarning), f"warned {warning.category.__name__}: {warning.message}"
        one_sentence(warning.message)
    return estimator, [str(warning.message) for warning in caught]


def check_labels(case, estimator, said, n_objects):
    labels, wanted = estimator.labels_, estimator.n_clusters
    assert labels.shape == (n_objects,), labels.shape
    assert labels.dtype == np.int64
    found = np.unique(labels)
    assert found.tolist() == list(range(len(found))), found
    assert estimator.n_clusters_ == len(found)
    if wanted is not None and len(found) != int(wanted):
        assert len(found) < int(wanted)
        assert any("found only" in text for text in said), f"{len(found)} of {wanted} clusters, and no word of it"
    for rows in filter(None, [getattr(estimator, "membership_", None) is not None and estimator.membership_.tolist()]):
        assert np.allclose(np.sum(rows, axis=1), 1), "memberships do not sum to 1"


def check_tree(estimator, n_objects):
    if estimator.reduction_.unrepresented is not None:
        return
    children, distances = estimator.children_, estimator.distances_
    assert children.shape == (n_objects - 1, 2)
    assert np.isfinite(distances).all()
    assert (np.diff(distances) >= 0).all()
    assert np.unique(children).tolist() == list(range(2 * n_objects - 2))
    assert (children.max(axis=1, initial=0) < n_objects + np.arange(n_objects - 1)).all()


def check_equal_rows(labels, found):
    _, row = np.unique(labels, axis=0, return_inverse=True)
    pairs = np.unique(np.stack([row.ravel(), found]), axis=1)
    assert pairs.shape[1] == row.max() + 1, "equal rows have different labels"


def check_files(labels, found, kind):
    """Write labels and a result, read both, and check that they are equal."""
    ensemble = ge.Ensemble(labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"labels{kind}"
        io.write_labels(path, ensemble)
        # Name all columns by number: otherwise a column with a different value for each object would count as ids.
        again = io.read_labels(path, columns=list(range(len(labels))))
        assert (again.to_array() == ensemble.to_array()).all(), f"{kind} changes labels"
        io.write_labels(path, found)
        (column,) = io.read_columns(path, columns=[0]).values()
        assert (np.asarray(column) == found).all(), f"{kind} changes a result"


def verdict(case):
    """Return "ran", or "refused: " with the error message; raise AssertionError for a fault of gpuens."""
    if "crash" in case:
        os.abort()
    if "hang" in case:
        time.sleep(3600)
    rng = np.random.default_rng(case["seed"] + 1)
    labels = matrix(case)
    try:
        if case["soft"]:
            estimator, said = fitted(case, soft(labels, rng))
            check_labels(case, estimator, said, len(labels))
            return "ran"
        estimator, said = fitted(case, given(labels, case["form"], rng))
    except REFUSALS as error:
        if type(error) not in REFUSALS:
            raise
        return f"refused: {one_sentence(error)}"
    check_labels(case, estimator, said, len(labels))
    check_equal_rows(labels, estimator.labels_)
    if case["method"] in LINKAGE:
        check_tree(estimator, len(labels))
    repeats = not isinstance(case["parameters"].get("random_state", 0), dict)
    sampled = estimator.reduction_.unrepresented is not None or str(case["parameters"].get("reduction")).startswith(
        "sample"
    )
    if repeats:
        again, _ = fitted(case, list(labels.T))
        assert (again.labels_ == estimator.labels_).all(), "the form of the labels matters"
        assert (again.predict(list(labels.T)) == again.labels_).all(), "objects of fit are predicted to be elsewhere"
    if repeats and not sampled:
        order = rng.permutation(len(labels))
        other, _ = fitted(case, list(labels[order].T))
        expected = estimator.labels_[order]
        if not estimator.parts().gives_names:
            expected = oracles.by_size(expected)
        assert (other.labels_ == expected).all(), "the order of the objects matters"
    # reading a file with more clusterings than objects raises an error
    if case["file"] and labels.shape[0] >= labels.shape[1]:
        check_files(list(labels.T), estimator.labels_, case["file"])
    return "ran"


def answer(case):
    """Return the outcome of a description: "ran", "refused: …", or a message about a fault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the checks make Ensembles of their own, which may warn
            return verdict(case)
    except BaseException as error:
        return "".join(traceback.format_exception(error))


if __name__ == "__main__":
    faulthandler.enable()
    serve(answer)
