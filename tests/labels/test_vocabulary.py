"""Votes over names that annotators share, compared with a Counter of each object's answers."""

import json
import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import random_labels, refused

import gpuens as ge
from gpuens.cli import main

NAMES = np.array(["T cell", "B cell", "NK", "Mono", "unknown", "NA", ""], dtype=object)
NOTHING = {"unknown", "na", ""}
ANSWERS = [["T", "B", "B", "NK", None], ["T", "B", "T", "unknown", ""], ["T", "NK", "?", None, "n/a"]]


def answers(n_objects, n_clusterings, *, names=NAMES, missing=0.1, seed=0):
    """Return answers (n_objects, n_clusterings) as texts, some of them None or words for no answer."""
    rng = np.random.default_rng(seed)
    drawn = names[rng.integers(len(names), size=(n_objects, n_clusterings))]
    drawn[rng.random(drawn.shape) < missing] = None
    return drawn


def given(row):
    return [answer for answer in row if answer is not None and str(answer).lower() not in NOTHING]


def literal(row, ties):
    """Return the label of an object, its confidence and margin, and whether its votes are tied."""
    votes = Counter(given(row))  # equal counts stay in the order of the annotators
    if not votes:
        return "Unknown", 0.0, 0.0, False
    (first, most), *others = votes.most_common()
    following = others[0][1] if others else 0
    label = "Unknown" if ties == "unknown" and most == following else first
    return label, most / votes.total(), (most - following) / votes.total(), most == following


def vote(**parameters):
    return ge.Voting(vocabulary="shared", **parameters)


@pytest.mark.parametrize("ties", ["unknown", "first"])
@pytest.mark.parametrize(("n_clusterings", "block"), [(1, 7), (2, 2**20), (3, 2**20), (6, 2**20), (9, 50)])
def test_votes_are_those_of_a_counter(ties, n_clusterings, block, where, sizes):
    sizes("partition.naming", BLOCK=block)  # rows are counted in pieces
    for seed in range(4):
        labels = answers(120, n_clusterings, names=NAMES[: 3 + seed], seed=seed)
        est = vote(ties=ties, device=where).fit(list(labels.T))
        names, confidence, margin, tied = map(list, zip(*(literal(row, ties) for row in labels.tolist()), strict=True))
        assert est.labels_.tolist() == est.predict(list(labels.T)).tolist() == names
        objects = est.evidence().objects
        for values in (est.confidence_, objects.confidence, objects.certainty):
            np.testing.assert_array_equal(values, confidence)
        np.testing.assert_array_equal(objects.margin, margin)
        assert est.tied_.tolist() == tied
        assert est.n_ties_ == sum(tied)
        assert est.n_unanswered_ == sum(not given(row) for row in labels.tolist())
        assert est.n_clusters_ == len(set(names) - {"Unknown"})
        assert est.classes_.tolist() == sorted({name for row in labels.tolist() for name in given(row)})
        for shares, row in zip(est.membership_, labels.tolist(), strict=True):
            votes = Counter(given(row))
            wanted = [votes[name] / max(votes.total(), 1) for name in est.classes_]
            np.testing.assert_allclose(shares, wanted if votes else 1 / len(est.classes_), atol=1e-15)


def test_numbers_stay_numbers(where):
    labels = random_labels(80, 5, 4, missing=0.3, seed=2) * 7 + 3
    labels[labels < 0] = -1
    labels[0] = -1
    est = vote(device=where).fit(list(labels.T))
    for row, label in zip(labels.tolist(), est.labels_.tolist(), strict=True):
        votes = Counter(answer for answer in row if answer >= 0).most_common()
        clear = len(votes) == 1 or (len(votes) > 1 and votes[0][1] > votes[1][1])
        assert label == (votes[0][0] if clear else -1)
    assert est.labels_.dtype == np.int64
    huge = [[2**63 + 5, 7], [2**63 + 5, 8]]
    assert vote().fit_predict(huge).tolist() == [2**63 + 5, -1]


def test_labels_in_gpu_memory_stay_there(fake_cupy):
    labels = fake_cupy.asarray(np.array([[3, 3, 4], [5, 5, 5], [4, 3, -1], [-1, -1, -1]]))
    est = vote().fit(labels)
    assert isinstance(est.labels_, fake_cupy.ndarray)
    assert fake_cupy.asnumpy(est.labels_).tolist() == [3, 5, -1, -1]
    assert isinstance(est.confidence_, fake_cupy.ndarray)
    assert fake_cupy.asnumpy(est.confident_labels(0.9)).tolist() == [-1, 5, -1, -1]
    assert fake_cupy.asnumpy(est.predict(labels)).tolist() == [3, 5, -1, -1]
    there, here = est.agreement_, vote().fit(fake_cupy.asnumpy(labels).T.tolist()).agreement_
    for name in ("votes", "compared", "same", "between"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


def test_words_for_no_answer():
    columns = [["a", "?", "None", "b", "dunno"], ["a", "b", "b", "Unassigned", "b"]]
    est = vote(ties="first")
    for words, labels in ((None, "a b b b dunno"), ("dunno, ?", "a b None b b"), ([], "a ? None b dunno")):
        est.set_params(**({} if words is None else {"no_answer": words}))
        assert est.fit_predict(columns).tolist() == labels.split()
    refused(lambda: est.set_params(no_answer=3).fit(columns), TypeError, "no_answer must be words", "not 3")
    refused(lambda: vote().fit([["?", "na"], ["", None]]), ValueError, "labels hold no answer")
    # an annotator may say one name or nothing, and numbers and their texts are one name
    columns = [["a", "a", "a"], [None, None, None], ["a", None, "b"]]
    assert vote().fit_predict(columns).tolist() == ["a", "a", "Unknown"]
    assert vote().fit_predict([[1, 2, 2], ["1", "x", "2"]]).tolist() == ["1", "Unknown", "2"]


def test_what_votes_refuse():
    for choice in ({"n_clusters": 3}, {"voting": "soft"}, {"reference": 0}, {"reduction": ge.Sample(5)}):
        est = vote(**choice)
        refused(lambda est=est: est.fit(ANSWERS), ValueError, next(iter(choice)), "vocabulary='shared'", "leave it out")
    est = vote().fit(ANSWERS)
    tie = "ties='error'", "1 object(s)", "'B', 'T'", "ties='first'"
    for call, kind, *parts in (
        (lambda: ge.Voting(vocabulary="common").fit(ANSWERS), ValueError, "vocabulary must be one of", "'shared'"),
        (lambda: vote(ties="last").fit(ANSWERS), ValueError, "ties must be one of"),
        (lambda: vote(ties="error").fit(ANSWERS), ValueError, *tie),
        (lambda: est.save("model.npz"), TypeError, "votes need no model"),
        (lambda: est.evidence(ANSWERS), TypeError, "fit the new ones"),
    ):
        refused(call, kind, *parts)
    assert vote(ties="error").fit_predict(ANSWERS[:1]).tolist()[:3] == ["T", "B", "B"]
    for name in ("tied_", "agreement_", "cluster_names_"):
        with pytest.raises(AttributeError, match=f"no {name}"):
            getattr(ge.Voting(2).fit([[0, 0, 1], [0, 0, 1]]), name)
    chunks = pytest.importorskip("dask.array").from_array(np.array([[1, 1], [2, 2], [1, 2]]), chunks=(2, 2))
    refused(lambda: vote().fit(chunks), TypeError, "vocabulary='shared'", "compute()")


def test_a_fit_forgets_the_one_before():
    est = vote().fit(ANSWERS)
    assert est.agreement_.classes.tolist() == ["B", "NK", "T"]
    assert est.fit([["x", "y"], ["x", "y"]]).agreement_.classes.tolist() == ["x", "y"]
    est.set_params(vocabulary="own", n_clusters=2).fit([["x", "y"], ["x", "y"]])
    assert est.labels_.tolist() == [0, 1]
    assert not hasattr(est, "classes_")
    assert not hasattr(est, "n_ties_")


def test_new_objects_and_pickles():
    est = pickle.loads(pickle.dumps(vote().fit(ANSWERS)))
    new = [["T", "B", None, "new"], ["T", "NK", "new", "new"], ["B", "NK", "B", "?"]]
    assert est.predict(new).tolist() == ["T", "NK", "B", "Unknown"]
    refused(lambda: est.predict(new[:2]), ValueError, "2 clusterings", "3 are expected")


def specific(a, b, name):
    """Return the specific agreement of two annotators on a name."""
    both = [(one, other) for one, other in zip(a, b, strict=True) if given([one]) and given([other])]
    times = sum((one == name) + (other == name) for one, other in both)
    return 2 * sum(one == other == name for one, other in both) / times if times else np.nan


def test_agreement_is_the_literal_one(where):
    labels = answers(90, 5, seed=7)
    est = vote(device=where).fit(list(labels.T))
    agreement = est.agreement_
    for m, column in enumerate(labels.T.tolist()):
        for c, name in enumerate(agreement.classes):
            named = [x for x, answer in enumerate(column) if answer == name]
            known = [x for x in named if est.labels_[x] != "Unknown"]
            share = np.mean([est.labels_[x] == name for x in known]) if known else np.nan
            assert (agreement.votes[m, c], agreement.compared[m, c]) == (len(named), len(known))
            np.testing.assert_allclose(agreement.with_consensus[m, c], share, atol=1e-15)
            for h, other in enumerate(labels.T.tolist()):
                np.testing.assert_allclose(agreement.between[m, h, c], specific(column, other, name), atol=1e-15)
    apart = ge.evidence.annotators(list(labels.T), est.labels_, device=where)
    for name in ("votes", "compared", "same", "between"):
        np.testing.assert_array_equal(getattr(apart, name), getattr(agreement, name))
    np.testing.assert_allclose(agreement.overall, agreement.same.sum(axis=1) / agreement.compared.sum(axis=1))


def test_agreement_with_any_consensus():
    found = ge.evidence.annotators([[1, 1, 2, 2], [1, 2, 2, -1]], ["1", "1", "2", None])
    assert found.with_consensus.tolist() == [[1.0, 1.0], [1.0, 0.5]]
    assert found.compared.tolist() == [[2, 1], [1, 2]]
    refused(lambda: ge.evidence.annotators([[1, 1], [1, 2]], [1]), ValueError, "consensus")


def test_repeated_objects_have_the_votes_of_one():
    labels = answers(60, 4, seed=3)
    times = np.arange(60) % 3 + 1
    once, often = (vote().fit(list(some.T)) for some in (labels, np.repeat(labels, times, 0)))
    assert often.labels_.tolist() == np.repeat(once.labels_, times).tolist()
    assert often.n_ties_ == times[once.tied_].sum()


def test_data_frames_name_annotators_and_lose_columns_that_are_none():
    frame = pd.DataFrame({"anna": ["x", "y", None], "ben": pd.Categorical(["x", "y", None])}, index=["p", "q", "r"])
    est = vote().fit(frame)
    assert est.labels_.tolist() == ["x", "y", "Unknown"]
    assert est.agreement_.annotators == ["anna", "ben"]
    assert ge.consensus(frame, method="voting", vocabulary="shared").tolist() == ["x", "y", "Unknown"]
    frame = pd.DataFrame({"anna": ["x", "y", "y"], "ben": ["x", "y", "x"], "batch": ["b", "b", "c"]})
    for read in (vote().fit, lambda labels: ge.evidence.annotators(labels, ["x", "y", "y"])):
        with pytest.warns(UserWarning, match="'batch' .* is left out"):
            result = read(frame)
        assert getattr(result, "agreement_", result).annotators == ["anna", "ben"]


# --- the command line -------------------------------------------------------------------------------------------------

CSV = """cell,anna,ben,singler,azimuth
c1,T cell,T cell,T cell,T cell
c2,B cell,B cell,B cell,unknown
c3,B cell,T cell,NK,NK
c4,NK,NK,NA,
c5,NK,T cell,NK,T cell
c6,T cell,T cell,B cell,T cell
c7,,unassigned,NA,
c8,,,,
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text(CSV)
    return tmp_path


def lines(path):
    return [line.split(",") for line in Path(path).read_text().splitlines()]


def test_the_command_writes_names(folder, capsys):
    assert main(["run", "labels.csv", "--shared-names", "-o", "out.csv", "--evidence", "--id-column", "cell"]) == 0
    found = {cell: label for cell, label, *_ in lines("out.csv")[1:]}
    expected = ["T cell", "B cell", "NK", "NK", "Unknown", "T cell", "Unknown", "Unknown"]
    assert list(found.values()) == expected
    told = capsys.readouterr()
    assert "Voting: 3 names: Unknown 3, T cell 2, NK 2, B cell 1" in told.out
    assert "ties: 1 object (unknown); without an answer: 2 (unknown)" in told.out
    table = [line.split() for line in told.out.splitlines()]
    assert ["azimuth", "1.00", "1.00", "1.00", "-"] in table
    assert "count as clusters" not in told.err
    record = json.loads(Path("out.csv.json").read_text())
    assert record["cluster_names"] == ["Unknown", "T cell", "NK", "B cell"]
    assert record["cluster_sizes"] == [3, 2, 2, 1]
    assert (record["n_ties"], record["n_unanswered"], record["n_clusters"]) == (1, 2, 3)
    assert record["agreement_with_consensus"]["anna"] == 0.8


def test_ties_and_words_on_the_command_line(folder, capsys):
    options = ["--shared-names", "--ties", "first", "--no-answer", "NA,unassigned", "--columns", "anna,azimuth"]
    assert main(["run", "labels.csv", *options, "-o", "out.csv"]) == 0
    assert [row[-1] for row in lines("out.csv")[2:6]] == ["B cell", "B cell", "NK", "NK"]
    assert "the first clustering decides" in capsys.readouterr().out
    assert main(["run", "labels.csv", "--shared-names", "--ties", "error"]) == 3
    assert "'NK', 'T cell'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-k", "3"], "n_clusters=3"),
        (["--method", "eac"], "--shared-names is for --method voting"),
        (["--model", "m.npz"], "votes need no model"),
        (["--scheduler", "threads"], "--shared-names is for files that are read in one piece"),
    ],
)
def test_options_of_no_use_are_refused(folder, capsys, options, said):
    assert main(["run", "labels.csv", "--shared-names", *options]) in (2, 3)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("n_annotators", [4, 7, 8])
def test_few_annotators_all_vote_even_at_chance_level(tmp_path, monkeypatch, capsys, n_annotators):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    answers = {f"a{i}": np.where(rng.random(600) < 0.1, 0, truth) for i in range(n_annotators - 1)}
    names = np.array(["B", "NK", "T"])
    table = pd.DataFrame({name: names[codes] for name, codes in {**answers, "guess": rng.integers(0, 3, 600)}.items()})
    table.to_csv("labels.csv", index=False)
    assert main(["run", "labels.csv", "--shared-names", "-o", "out.csv"]) == 0
    said = capsys.readouterr().err
    assert "'guess'" in said
    assert "it agrees with none of the others better than chance" in said
    assert ("its votes count" in said) == (n_annotators < 8)
    assert ("left out" in said) == (n_annotators == 8)
    assert json.loads(Path("out.csv.json").read_text())["n_clusterings"] == min(n_annotators, 7)
    # without shared names the same column is left out
    assert main(["run", "labels.csv", "-k", "3", "-o", "out.csv"]) == 0
    assert "'guess' (it agrees with none of the others better than chance) is left out" in capsys.readouterr().err


def test_a_copy_of_an_h5ad_file_has_the_names(folder):
    ad = pytest.importorskip("anndata")
    obs = pd.read_csv("labels.csv", index_col=0, keep_default_na=False).astype("category")
    ad.AnnData(obs=obs).write_h5ad("cells.h5ad")
    assert main(["run", "cells.h5ad", "--shared-names", "-o", "out.h5ad", "--min-confidence", "0.6", "--quiet"]) == 0
    found = ad.read_h5ad("out.h5ad")
    expected = ["T cell", "B cell", "Unknown", "NK", "Unknown", "T cell", "Unknown", "Unknown"]
    assert found.obs["consensus"].tolist() == expected
    assert found.uns["consensus"]["classes"].tolist() == ["B cell", "NK", "T cell"]
    assert found.obsm["consensus_membership"].shape == (8, 3)
    cells = ad.read_h5ad("cells.h5ad")
    ge.sc.consensus(cells, method="voting", vocabulary="shared")
    assert cells.obs["consensus"].tolist()[2] == "NK"


@pytest.mark.usefixtures("unpainted")
def test_the_page_has_the_annotators(folder):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    told = {"voting": "1 object are tied", "em": "counts by skill, the probability of a right answer, from 0."}
    for method, text in told.items():
        options = ["--shared-names", "--method", method, "-o", "out.csv", "--report", "out.csv.html", "--quiet"]
        assert main(["run", "labels.csv", *options]) == 0
        page = Path("out.csv.html").read_text()
        for said in ("The annotators", "T cell", text, "<td>singler</td>"):
            assert said in page
