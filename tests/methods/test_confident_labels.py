"""Labels of a least confidence: other objects get -1, for every method, in Python and on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import refused, structured_labels

import gpuens as ge
from gpuens.cli import main

LABELS, _ = structured_labels(90, 7, 3, noise=0.3, missing=0.1, seed=4)

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters")


@pytest.mark.parametrize("name", ["eac", "lwea", "lwgp", "kcc", "mcla", "scec", "best-of-k", "hbgf", "voting"])
def test_labels_below_are_missing(name, where):
    parameters = {} if name == "best-of-k" else {"n_clusters": 3}
    est = ge.methods()[name](**parameters, device=where).fit(LABELS)
    middle = float(np.median(est.confidence_))
    for least in (0, 0.5, middle, 1):
        found = est.confident_labels(least)
        expected = [label if sure >= least else -1 for label, sure in zip(est.labels_, est.confidence_, strict=True)]
        assert found.tolist() == expected
        assert found.dtype == np.int64
    assert 0 < (est.confident_labels(middle) == -1).sum() < len(LABELS)
    assert (est.labels_ >= 0).all()
    found = ge.consensus(LABELS, method=name, min_confidence=middle, **parameters, device=where)
    np.testing.assert_array_equal(found, est.confident_labels(middle))


@pytest.mark.parametrize("name", ["eac", "lwgp", "voting"])
def test_repeated_objects_have_the_confidence_of_their_rows(name):
    times = np.arange(len(LABELS)) % 3 + 1
    est = ge.methods()[name](3).fit(np.repeat(LABELS, times, axis=0))
    found = est.confident_labels(0.8)
    starts = np.concatenate([[0], np.cumsum(times)[:-1]])
    np.testing.assert_array_equal(found, np.repeat(found[starts], times))
    least = float(est.confidence_[5])
    assert est.confident_labels(least)[5] == est.labels_[5]
    assert est.confident_labels(np.nextafter(least, 2))[5] == -1


def test_names_become_unknown():
    answers = [["a", "b", "b"], ["a", "a", "b"], ["b", "a", "b"]]
    vote = {"method": "voting", "vocabulary": "shared"}
    assert ge.consensus(answers, **vote, min_confidence=0.7).tolist() == ["Unknown", "Unknown", "b"]
    assert ge.consensus(answers, **vote, min_confidence=2 / 3).tolist() == ["a", "a", "b"]
    numbers = [[5, 6, 6], [5, 5, 6], [6, 5, 6]]
    assert ge.consensus(numbers, **vote, min_confidence=0.7).tolist() == [-1, -1, 6]


def test_labels_in_gpu_memory_stay_there(fake_cupy):
    est = ge.EAC(3).fit(fake_cupy.asarray(LABELS))
    found = est.confident_labels(0.8)
    assert isinstance(found, fake_cupy.ndarray)
    np.testing.assert_array_equal(fake_cupy.asnumpy(found), ge.EAC(3).fit(LABELS).confident_labels(0.8))


@pytest.mark.parametrize(("least", "kind"), [(-0.1, ValueError), (1.5, ValueError), (np.nan, ValueError),
                                             ("half", TypeError), (True, TypeError), (None, TypeError)])  # fmt: skip
def test_other_numbers_are_refused(least, kind):
    est = ge.EAC(3).fit(LABELS)
    refused(lambda: est.confident_labels(least), kind, "min_confidence must be")
    if least is not None:
        refused(lambda: ge.consensus(LABELS, 3, method="eac", min_confidence=least), kind, "min_confidence must be")


def test_fits_without_confidence_are_refused():
    da = pytest.importorskip("dask.array")
    est = ge.KCC(3).fit(da.from_array(LABELS, chunks=(30, 7)))
    refused(lambda: est.confident_labels(0.5), TypeError, "evidence needs labels in memory", "in chunks")


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    return tmp_path


@pytest.mark.parametrize("more", ["", "--evidence", "--drop-unlabelled"])
def test_the_command_leaves_doubtful_labels_out(folder, capsys, more):
    labels = LABELS.copy()
    if more == "--drop-unlabelled":
        labels[3] = -1
        np.save("labels.npy", labels)
    assert main(f"run labels.npy -k 3 --method eac --min-confidence 0.8 -o out.csv {more}".split()) == 0
    labelled = (labels >= 0).any(axis=1)
    est = ge.EAC(3).fit(labels[labelled])
    expected = np.full(len(labels), -1)
    expected[labelled] = est.confident_labels(0.8)
    found = [int(line.split(",")[0]) for line in Path("out.csv").read_text().splitlines()[1:]]
    assert found == expected.tolist()
    n = int((est.confidence_ < 0.8).sum())
    record = json.loads(Path("out.csv.json").read_text())
    assert (record["min_confidence"], record["n_doubtful"]) == (0.8, n)
    assert sum(record["cluster_sizes"]) == labelled.sum()
    assert f"doubtful: {n} objects with confidence below 0.8, without a label" in capsys.readouterr().out


@pytest.mark.usefixtures("unpainted")
def test_the_page_counts_them(folder):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    line = "run labels.npy -k 3 --method eac --min-confidence 0.8 -o out.csv --report out.csv.html --quiet"
    assert main(line.split()) == 0
    n = json.loads(Path("out.csv.json").read_text())["n_doubtful"]
    assert f"the label of {n} objects is -1" in Path("out.csv.html").read_text()


def test_an_h5ad_file_has_no_category_for_them(folder):
    ad = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    names = [str(i) for i in range(len(LABELS))]
    ad.AnnData(obs=pd.DataFrame(LABELS, index=names).add_prefix("run_").astype("category")).write_h5ad("cells.h5ad")
    assert (
        main(
            ["run", "cells.h5ad", "-k", "3", "--method", "eac", "--min-confidence", "0.8", "-o", "out.h5ad", "--quiet"]
        )
        == 0
    )
    obs = ad.read_h5ad("out.h5ad").obs
    assert (obs["consensus"].isna() == (obs["consensus_confidence"] < 0.8)).all()
    assert obs["consensus"].isna().any()
