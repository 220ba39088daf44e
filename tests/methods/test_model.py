"""Model files: they predict for new objects, have no pickle, can be read, and raise an error if damaged."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import METHODS, one_sentence, refused, structured_labels, thorough
from sklearn.base import clone

import gpuens as ge
from gpuens import cli
from gpuens.partition.base import Partition, Partitioner

EVERY = METHODS | {"best-of-k": ge.BestOfK}
LABELS = structured_labels(120, 5, 3, noise=0.2, missing=0.05, seed=3)[0]
NEW = structured_labels(150, 5, 3, noise=0.5, missing=0.3, seed=4)[0]
NEW[:10, 0] = 77  # a label that the fit never saw counts as missing
NEW[(NEW < 0).sum(axis=1) > 3] = 0


def texts(labels):
    """Return labels with texts in every other column; None stands in these columns for missing labels."""
    return [
        column if m % 2 else np.array([f"c{label}" if label >= 0 else None for label in column], dtype=object)
        for m, column in enumerate(labels.T)
    ]


def again(est, folder):
    """Save a model to a file and load it again."""
    est.save(folder / "model.npz")
    return ge.load(folder / "model.npz")


def same_evidence(one, other):
    np.testing.assert_array_equal(one.labels, other.labels)
    for mine, theirs in zip(one.objects, other.objects, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# --- predictions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", [None, *thorough("sample:40", "catree:tau=0.3,gamma=0.8")])
@pytest.mark.parametrize("method", sorted(EVERY))
def test_a_loaded_model_predicts_what_the_estimator_does(method, reduction, tmp_path):
    est = EVERY[method](None if method == "best-of-k" else 3, reduction=reduction).fit(texts(LABELS))
    model = again(est, tmp_path)
    new = texts(NEW)
    np.testing.assert_array_equal(model.predict(new), est.predict(new))
    np.testing.assert_array_equal(model.predict(texts(LABELS)), est.labels_)
    same_evidence(model.evidence(new), est.evidence(new))
    assert (model.method, model.n_clusters, model.n_objects) == (type(est).__name__, est.n_clusters_, len(LABELS))


SETTINGS = [
    ge.EAC(3, missing="ignore"),  # mean similarities are ratios of sums
    ge.EAC(3, min_size=20),  # the cut leaves the objects of small branches without a cluster at first
    ge.LWEA(3, reduction=ge.Sample(30, by="sum")),
    ge.Consensus(3, similarity=ge.similarity.CommonNeighbors(), partitioner="pam"),
]
IN_PIECES = [("lwca", "transfer-cut"), ("coupled", "label-kmeans"), ("coupled", "meta-clusters")]


@pytest.mark.parametrize("est", SETTINGS, ids=str)
def test_settings_that_make_other_rules(est, tmp_path):
    model = again(est.fit(LABELS), tmp_path)
    np.testing.assert_array_equal(model.predict(NEW), est.predict(NEW))
    same_evidence(model.evidence(NEW), est.evidence(NEW))


def test_base_clusters_in_no_meta_cluster(tmp_path):
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 6, (30, 7)) for _ in range(2)][1]
    est = ge.MCLA(3, reduction="catree:tau=0.3,gamma=0.8").fit(labels)
    assert (est.meta_clusters_ < 0).any()
    np.testing.assert_array_equal(again(est, tmp_path).predict(labels), est.labels_)


@pytest.mark.parametrize("name", ["lwea", "s-cce", "kcc", "scec", "mcla"])
def test_a_model_works_on_a_device(name, tmp_path):
    est = METHODS[name](3).fit(LABELS)
    est.save(tmp_path / "model.npz")
    found = ge.load(tmp_path / "model.npz", device="emulated").predict(NEW)
    np.testing.assert_array_equal(found, est.predict(NEW))


@pytest.mark.parametrize("pair", IN_PIECES)
def test_rows_in_pieces_have_a_rule_alone(pair, tmp_path, in_pieces):
    array = pytest.importorskip("dask.array")
    similarity, partitioner = pair
    est = ge.Consensus(3, similarity=similarity, partitioner=partitioner)
    model = again(est.fit(array.from_array(LABELS, chunks=(64, -1))), tmp_path)
    np.testing.assert_array_equal(model.predict(NEW), est.predict(NEW))
    np.testing.assert_array_equal(est.predict(LABELS), est.labels_.compute())
    assert model.n_objects is None
    refused(lambda: model.evidence(NEW), TypeError, "fit in chunks")


def test_core_groups_of_chunks_have_evidence(tmp_path):
    array = pytest.importorskip("dask.array")
    whole, chunked = ge.LWEA(3).fit(LABELS), ge.LWEA(3).fit(array.from_array(LABELS, chunks=(50, -1)))
    same_evidence(again(chunked, tmp_path).evidence(NEW), whole.evidence(NEW))
    sampled = ge.LWEA(3, reduction=ge.Sample(30)).fit(array.from_array(LABELS, chunks=(50, -1)))
    model = again(sampled, tmp_path)
    np.testing.assert_array_equal(model.predict(NEW), sampled.predict(NEW))
    refused(lambda: model.evidence(NEW), TypeError, "fit in chunks")


# --- new objects ------------------------------------------------------------------------------------------------------


def test_columns_go_by_their_names(tmp_path):
    frame = pd.DataFrame(LABELS, columns=list("abcde"))
    est = ge.LWEA(3).fit(frame)
    model = again(est, tmp_path)
    assert model.columns == list("abcde")
    new = pd.DataFrame(NEW, columns=list("abcde"))
    turned = new[list("ecadb")].assign(truth=1)
    expected = est.predict(new)
    np.testing.assert_array_equal(model.predict(turned), expected)
    np.testing.assert_array_equal(model.predict(NEW), expected)
    np.testing.assert_array_equal(model.evidence(turned).labels, expected)
    np.testing.assert_array_equal(model.predict(ge.Ensemble(new[list("ecadb")])), expected)
    refused(lambda: model.predict(new[list("abcd")]), ValueError, "'e'", "no column")
    twice = pd.concat([new, new["a"]], axis=1)
    refused(lambda: model.predict(twice), ValueError, "'a'", "2 columns")
    refused(lambda: model.predict(NEW[:, :4]), ValueError, "4 clusterings", "5 are expected")
    # this message comes from scikit-learn
    refused(lambda: est.predict(new[list("ecadb")]), ValueError, "The feature names should match")


def test_a_number_and_its_text_are_one_label(tmp_path):
    """A label column can have texts in the fit but only numbers in a new file, or the other way round."""
    mixed = [["1", "1", "1", "a", "a", "2"], [1, 1, 1, 5, 5, 5], [1, 1, 2, 2, 2, 2]]
    est = ge.EAC(2).fit(mixed)
    model = again(est, tmp_path)
    new = [np.array([1, 2]), np.array(["1", "5"], dtype=object), np.array([1, 2])]
    np.testing.assert_array_equal(model.predict(new), [est.labels_[0], est.labels_[5]])
    assert est.reduction_.ensemble.encoded(new).to_array()[:, :2].tolist() == [[-1, -1], [-1, -1]]


def test_objects_without_a_known_label(tmp_path):
    model = again(ge.EAC(3).fit(LABELS), tmp_path)
    new = NEW.copy()
    new[[3, 7]] = 1000
    for work in (model.predict, model.evidence):
        refused(lambda work=work: work(new), ValueError, "2 object(s)", "object 3")


def brute_force(known, consensus, new, labels):
    """Return item consensus, margin and confidence of new objects by their definitions, one object at a time."""
    found = []
    k, m = consensus.max() + 1, known.shape[1]
    for row, own in zip(new, labels, strict=True):
        together = ((known == row) & (row >= 0)).mean(axis=1)
        means = np.array([together[consensus == t].mean() for t in range(k)])
        logs = np.zeros(k)
        for h in range(m):
            if row[h] < 0 or not (known[:, h] == row[h]).any():
                continue
            members = consensus[known[:, h] == row[h]]
            share = np.bincount(consensus, minlength=k) / len(consensus)
            counts = np.bincount(members, minlength=k)
            logs += np.log((counts + share) / (len(members) * share))
        lifts = np.exp(logs / m)
        found.append((means[own], means[own] - np.delete(means, own).max(), lifts[own] / lifts.sum()))
    return np.array(found).T


def test_evidence_of_new_objects_follows_the_definitions():
    est = ge.LWEA(3).fit(LABELS)
    found = est.evidence(NEW)
    np.testing.assert_array_equal(found.labels, est.predict(NEW))
    inside, margin, confidence = brute_force(LABELS, est.labels_, NEW, found.labels)
    np.testing.assert_allclose(found.objects.item_consensus, inside, atol=1e-12)
    np.testing.assert_allclose(found.objects.margin, margin, atol=1e-12)
    np.testing.assert_allclose(found.objects.confidence, confidence, atol=1e-12)


def test_a_member_is_as_sure_as_a_new_object_beside_the_others():
    """Evidence compares a member with the other members of its cluster.

    So it equals the evidence of a new, equal object.
    """
    labels = structured_labels(40, 6, 3, noise=0.3, seed=5)[0]
    est = ge.LWEA(3).fit(labels)
    own = est.evidence().objects
    others = np.delete(np.arange(40), 17)
    beside = ge.evidence.Evidence(labels[others], est.labels_[others])
    rows = ge.Rows(beside._rows.ensemble.encoded(labels[[17]]))
    found = beside.describe_new(rows, est.labels_[[17]], [0]).objects
    np.testing.assert_allclose(found.item_consensus, own.item_consensus[17])
    np.testing.assert_allclose(found.margin, own.margin[17])


def test_evidence_of_an_only_member_and_of_a_single_cluster():
    labels = np.array([[0, 0], [0, 0], [1, 1]])
    found = ge.EAC(2).fit(labels).evidence([[1, 1], [1, 0]]).objects
    assert found.item_consensus.tolist() == [1.0, 0.5]
    alone = ge.EAC(1).fit(labels).evidence(labels).objects
    assert np.isnan(alone.margin).all()
    assert alone.confidence.tolist() == [1.0, 1.0, 1.0]


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_holds_no_pickle_and_no_object(tmp_path):
    est = ge.SCCE(3, reduction="sample:60").fit(texts(LABELS))
    est.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    about = json.loads(arrays["model"].tobytes())
    assert (about["format"], about["version"], about["method"]) == ("gpuens model", 1, "SCCE")
    assert about["categories"][0][0] == "c0"
    assert about["parameters"]["reduction"] == "sample:60"
    assert "numpy" in about["versions"]
    assert len(arrays["rows"]) == len(np.unique(LABELS, axis=0))
    assert arrays["counts"].sum() == len(LABELS)


def test_odd_labels_and_parameters_are_kept(tmp_path):
    labels = [[True, True, False, False], [2**64 - 1, 2**64 - 1, 3, 3], ["é\ud800", "é\ud800", "", " "]]
    est = ge.LWEA(2, weights=np.array([1.0, 2.0, 3.0])).fit(labels)
    model = again(est, tmp_path)
    np.testing.assert_array_equal(model.predict(labels), est.labels_)
    assert "2." in model.parameters["weights"]
    assert repr(model) == "Model(LWEA, 2 clusters by 3 clusterings of 4 objects)"


class Lonely(Partitioner):
    """A partitioner of another package that returns a rule of its own class."""

    def __call__(self, similarity, rows, n_clusters):
        return Partition(np.arange(len(rows)) % 2, 2, rule=lambda rows: np.zeros(len(rows), dtype=np.int64))


def test_what_no_file_can_hold_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    soft = np.random.default_rng(0).dirichlet([1, 1, 1], len(LABELS))
    refused(lambda: ge.SCEC(3).fit([soft, *LABELS.T]).save(path), TypeError, "soft clusterings")
    dates = pd.to_datetime(["2020-01-01", "2020-01-01", "2021-01-01", "2021-01-01"])
    est = ge.EAC(2).fit(pd.DataFrame({"when": dates, "b": [0, 0, 1, 1]}))
    refused(lambda: est.save(path), TypeError, "'when'", "texts")
    own = ge.Consensus(2, partitioner=Lonely()).fit(LABELS)
    refused(lambda: own.save(path), TypeError, "pickle the estimator")
    refused(lambda: ge.EAC(2).fit(LABELS).save(tmp_path / "model.pkl"), ValueError, ".npz")
    refused(lambda: ge.EAC(2).fit(LABELS).save(tmp_path / "no" / "model.npz"), FileNotFoundError)
    assert not path.exists()
    with pytest.raises(Exception, match="not fitted"):
        ge.EAC(2).save(path)


def changed(path, to, **changes):
    """Replace the given entries of a model file's description, or the given arrays, and write the file again."""
    with np.load(path) as stored:
        arrays = dict(stored)
    about = json.loads(arrays["model"].tobytes())
    arrays |= {name: value for name, value in changes.items() if name in arrays}
    about |= {name: value for name, value in changes.items() if name not in arrays}
    arrays["model"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez(to, **{name: value for name, value in arrays.items() if value is not None})


def test_foreign_and_newer_files_are_refused(tmp_path):
    path, other = tmp_path / "model.npz", tmp_path / "other.npz"
    ge.LWEA(3).fit(LABELS).save(path)
    np.savez(other, labels=LABELS)
    refused(lambda: ge.load(other), ValueError, "other.npz", "no model file", "--model")
    changed(path, other, version=2, gpuens="9.1")
    refused(lambda: ge.load(other), ValueError, "version 2", "gpuens 9.1", "update gpuens")
    refused(lambda: ge.load(tmp_path / "none.npz"), FileNotFoundError, "none.npz")
    refused(lambda: ge.load(tmp_path / "model.npy"), ValueError, ".npz")
    other.write_text("no archive")
    refused(lambda: ge.load(other), ValueError, "other.npz", "write it again")
    np.savez(other, model=np.array({"a": 1}, dtype=object), allow_pickle=True)
    refused(lambda: ge.load(other), ValueError, "Python objects")


@pytest.mark.parametrize("method", ["lwea", "kcc", "s-cce"])
def test_damaged_files_are_refused(method, tmp_path):
    """A wrong byte anywhere in the file causes an error of one sentence, or it changes no prediction."""
    path, other = tmp_path / "model.npz", tmp_path / "other.npz"
    est = METHODS[method](3).fit(LABELS)
    est.save(path)
    whole, expected = path.read_bytes(), est.predict(NEW)
    rng = np.random.default_rng(0)
    told = 0
    for place in rng.choice(len(whole), 60, replace=False).tolist():
        torn = bytearray(whole)
        torn[place] ^= 1 << int(rng.integers(8))
        other.write_bytes(bytes(torn[:place]) if place % 3 == 0 else bytes(torn))
        if (sentence := told_of(other)) is None:
            np.testing.assert_array_equal(ge.load(other).predict(NEW), expected)
        else:
            assert "other.npz" in sentence
            told += 1
    assert told > 40


def told_of(path):
    """Read a file; return the error message, or None if there is no error."""
    try:
        ge.load(path)
    except ValueError as error:
        return one_sentence(error)
    return None


OF_ONE_ROW = {"counts": np.ones(1, int), "labels": np.zeros(1, int)}
OTHERS = {
    "rows of other clusters": {"rows": np.full((1, 5), 200, np.uint8), **OF_ONE_ROW},
    "rows of other types": {"rows": np.zeros((1, 5)), **OF_ONE_ROW},
    "fewer labels than rows": {"labels": np.zeros(1, int)},
    "labels of no cluster": {"labels": np.full(1000, 3)},
    "no counts": {"counts": None},
    "an unknown rule": {"rule": {"is": "os.system"}},
    "a rule without fields": {"rule": {"is": "most-similar"}},
    "a table for other clusters": {"rule_0": np.zeros((3, 3))},
    "a table of texts": {"rule_0": np.array([["a"]])},
    "an array that is not there": {"rule": {"is": "looked-up", "table": 99}},
    "fewer categories": {"categories": [[0, 1]]},
    "categories of lists": {"categories": [[[0]]] * 5},
    "no categories": {"categories": [[]] * 5},
    "a strange number of clusters": {"n_clusters": -1},
    "a strange convention": {"missing": "maybe"},
    "a description that lacks something": {"columns": None},
}  # fmt: skip


@pytest.mark.parametrize("change", OTHERS)
def test_files_that_lie_are_refused(change, tmp_path):
    ge.LWEA(3).fit(LABELS).save(tmp_path / "model.npz")
    changed(tmp_path / "model.npz", tmp_path / "other.npz", **OTHERS[change])
    refused(lambda: ge.load(tmp_path / "other.npz"), ValueError, "other.npz")


# --- numbers of a file that were changed by hand ----------------------------------------------------------------------


def with_element(value, place):
    def change(values):
        values = values.astype(np.float64) if isinstance(value, float) else values.astype(np.int64)
        values.reshape(-1)[place] = value
        return values

    return change


def in_its_dtype(value, place):
    def change(values):
        with np.errstate(invalid="ignore"):
            values.reshape(-1)[place] = np.array(value).astype(values.dtype)  # 255, a missing label, for -1 as uint8
        return values

    return change


VALUES = (-1, 0, 1, 10**6, 2**31, 2**62, np.nan, np.inf, 1e300)
DTYPES = ("f2", "f4", "f8", "i1", "i4", "i8", "u8", "?", "U", "c8", ">f8", ">i8")
CHANGES = [
    *(in_its_dtype(value, place) for value in VALUES for place in (0, -1)),
    *(with_element(value, -1) for value in (-1, 1e6, 2**31)),
    lambda values: values[:-1],
    lambda values: values[..., :-1],
    lambda values: values[:0],
    lambda values: values[..., :0],
    lambda values: values[None],
    lambda values: values.reshape(-1),
    lambda values: values.reshape(-1)[0],
    lambda values: values.T,
    lambda values: values[::-1],
    lambda values: np.concatenate([values, values]),
    lambda values: np.zeros_like(values),
    lambda values: -values,
    *(lambda values, dtype=dtype: values.astype(dtype) for dtype in DTYPES),
]
FEW = LABELS[:40]
NUMBERS = [-1, 0, 1, 2, 10**6, 2**31, 2**63, 0.5, True, None, "x", [], {}]


def is_refused(path, new):
    """Return whether a file is refused, in one sentence; if not, check that each predicted label is 0 … k - 1."""
    if told_of(path) is not None:
        return True
    model = ge.load(path)
    found = [model.predict(new)]
    if model.lacks_evidence() is None:
        found.append(model.evidence(new).labels)
    for labels in found:
        assert (labels.dtype, labels.shape) == (np.int64, (len(new),))
        assert labels.min() >= 0
        assert labels.max() < model.n_clusters
    return False


def check_every_change(path, new):
    """Change each array of a model file, and each number of the description of its rule, in each way."""
    other = path.with_name("other.npz")
    with np.load(path) as stored:
        arrays = dict(stored)
    assert not is_refused(path, new)
    for name in arrays.keys() - {"model"}:
        n_refused = 0
        for change in CHANGES:
            try:
                values = change(arrays[name].copy())
            except (ValueError, IndexError):  # a change that this array cannot have
                continue
            np.savez(other, **(arrays | {name: values}))
            n_refused += is_refused(other, new)
        assert n_refused > 10, name
    about = json.loads(arrays["model"].tobytes())

    def change_numbers(part, places):
        for place in places:
            value = part[place]
            for number in NUMBERS:
                part[place] = number
                text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
                np.savez(other, **(arrays | {"model": text}))
                is_refused(other, new)
            part[place] = value
            if isinstance(value, (dict, list)):
                change_numbers(value, list(value) if isinstance(value, dict) else range(len(value)))

    change_numbers(about, ("rule", "n_clusters", "counted", "missing"))


# three methods, whose rules have different arrays; the rules of all others take as long, and seldom change
DIFFERENT_RULES = ["eac", "median", "scec"]


@pytest.mark.parametrize("method", [*DIFFERENT_RULES, *thorough(*sorted(EVERY.keys() - DIFFERENT_RULES))])
def test_any_change_of_a_number_is_refused_or_predicts_clusters(method, tmp_path):
    EVERY[method](None if method == "best-of-k" else 3).fit(FEW).save(tmp_path / "model.npz")
    check_every_change(tmp_path / "model.npz", NEW[:30])


@pytest.mark.parametrize("est", [SETTINGS[0], *thorough(*SETTINGS[1:])], ids=str)
def test_any_change_of_a_rule_of_other_settings(est, tmp_path):
    clone(est).fit(LABELS).save(tmp_path / "model.npz")
    check_every_change(tmp_path / "model.npz", NEW[:30])


@pytest.mark.parametrize("pair", [IN_PIECES[0], *thorough(*IN_PIECES[1:])])
def test_any_change_of_a_rule_of_rows_in_pieces(pair, tmp_path, in_pieces):
    array = pytest.importorskip("dask.array")
    est = ge.Consensus(3, similarity=pair[0], partitioner=pair[1])
    est.fit(array.from_array(FEW, chunks=(20, -1))).save(tmp_path / "model.npz")
    check_every_change(tmp_path / "model.npz", NEW[:30])


def test_a_file_that_claims_more_than_memory_is_refused(tmp_path, monkeypatch):
    ge.LWEA(3).fit(LABELS).save(tmp_path / "model.npz")
    monkeypatch.setenv("GPUENS_MEMORY", "1000")
    refused(lambda: ge.load(tmp_path / "model.npz"), MemoryError, "model.npz")


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(LABELS, columns=list("abcde"), index=[f"p{i}" for i in range(len(LABELS))])
    frame.rename_axis("person").to_csv("labels.csv")
    turned = pd.DataFrame(NEW, columns=list("abcde"), index=[f"q{i}" for i in range(len(NEW))])[list("dbeca")]
    turned.rename_axis("person").assign(truth="x").to_csv("new.csv")

    def run(line):
        code = cli.main(line.split())
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_run_writes_a_model_that_predict_reads(call):
    code, out, err = call("run labels.csv -k 3 --method lwea --id-column person --model model.npz -o labels.out.csv")
    assert code == 0, err
    assert "model: model.npz" in out
    assert json.loads(Path("labels.out.csv.json").read_text())["model"] == "model.npz"
    code, out, err = call("predict model.npz new.csv --id-column person -o out.csv")
    assert code == 0, err
    est = ge.LWEA(3).fit(LABELS)
    expected = est.evidence(NEW)
    found = pd.read_csv("out.csv", index_col="person")
    assert list(found.index) == [f"q{i}" for i in range(len(NEW))]
    np.testing.assert_array_equal(found["label"], expected.labels)
    np.testing.assert_allclose(found["certainty"], expected.objects.certainty)
    np.testing.assert_allclose(found["confidence"], expected.objects.confidence)
    np.testing.assert_allclose(found["margin"], expected.objects.margin)
    record = json.loads(Path("out.csv.json").read_text())
    assert (record["model"], record["method"], record["n_objects"]) == ("model.npz", "LWEA", len(NEW))
    assert "LWEA, 3 clusters, of" in out


def test_predict_takes_a_single_object_and_arrays(call):
    call("run labels.csv -k 3 --id-column person --model model.npz -o out.npy")
    Path("one.csv").write_text("\n".join(Path("new.csv").read_text().splitlines()[:2]) + "\n")
    code, _, err = call("predict model.npz one.csv --id-column person")
    assert code == 0, err
    assert len(pd.read_csv("one.csv.predicted.csv")) == 1
    np.save("new.npy", NEW)
    assert call("predict model.npz new.npy --quiet")[0] == 0
    with np.load("new.npy.predicted.npz") as found:
        np.testing.assert_array_equal(found["labels"], ge.load("model.npz").predict(NEW))
        assert {"certainty", "confidence", "margin"} <= set(found.files)


def test_predict_tells_of_unknown_objects(call):
    call("run labels.csv -k 3 --id-column person --model model.npz -o out.npy")
    lines = Path("new.csv").read_text().splitlines()
    lines[4] = "q3,99,99,99,99,99,x"
    Path("new.csv").write_text("\n".join(lines) + "\n")
    code, _, err = call("predict model.npz new.csv --id-column person")
    assert code == 3
    assert "object 3; leave them out by --drop-unlabelled." in err
    code, out, err = call("predict model.npz new.csv --id-column person --drop-unlabelled -o out.csv")
    assert code == 0, err
    assert "unlabelled: 1 object," in out
    found = pd.read_csv("out.csv")
    assert found["label"][3] == -1
    assert found["confidence"].isna().sum() == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("run labels.csv -k 3 --id-column person --model model.npy", ".npz"),
        ("run labels.csv -k 3 --id-column person --model out.npz -o out.npz", "out.npz"),
        ("run labels.csv -k 3 --id-column person --model labels.csv", ".npz"),
        ("predict labels.csv labels.csv", ".npz"),
        ("predict model.npz nowhere.csv", "nowhere.csv"),
        ("predict model.npz new.csv -o out.npy", ".csv"),
        ("predict model.npz new.csv -o new.csv", "the input itself"),
        ("predict model.npz other.csv", "no column of the name 'a'"),
    ],
)
def test_commands_refuse(call, line, told):
    assert call("run labels.csv -k 3 --id-column person --model model.npz -o labels.npy")[0] == 0
    Path("other.csv").write_text("x,y\na,b\na,b\n")
    code, _, err = call(line)
    assert code in (2, 3)
    one_sentence(err.strip().splitlines()[-1])
    assert told in err


def test_a_model_of_chunks(call):
    pytest.importorskip("dask")
    np.save("labels.npy", LABELS)
    code, _, err = call("run labels.npy -k 3 --method lwea --scheduler threads --chunk-rows 50 --model model.npz")
    assert code == 0, err
    np.testing.assert_array_equal(ge.load("model.npz").predict(LABELS), np.load("labels.npy.lwea.npy"))


def test_a_model_stays_what_it_was_where_writing_fails(tmp_path, monkeypatch):
    est = ge.LWEA(3).fit(LABELS)
    est.save(tmp_path / "model.npz")
    before = (tmp_path / "model.npz").read_bytes()

    def full(*_, **__):
        raise OSError(28, "no space left")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        est.save(tmp_path / "model.npz")
    assert (tmp_path / "model.npz").read_bytes() == before
    assert os.listdir(tmp_path) == ["model.npz"]
    assert zipfile.is_zipfile(tmp_path / "model.npz")
