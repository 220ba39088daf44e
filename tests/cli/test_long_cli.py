"""Long tables and trees of names on the command line, compared with the same fits in Python."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import call, done, folder  # noqa: F401
from conftest import one_sentence

import gpuens as ge

TREE = {"cat": "pet", "dog": "pet", "pet": "animal", "owl": "bird", "bird": "animal"}


def labels_in(path):
    """Return the labels in a csv file by the names of the objects."""
    frame = pd.read_csv(path)
    return dict(zip(frame.iloc[:, 0], frame["label"], strict=True))


def write_shares(n=60, k=3, n_runs=4, seed=0):
    """Write shares.csv, in which some objects are in two clusters of a run, and return it."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    lines = [(f"o{i}", f"run{m}", f"c{truth[i]}", 2) for m in range(n_runs) for i in range(n)]
    lines += [(f"o{i}", f"run{m}", "c1", 1) for m in range(n_runs) for i in range(m, n, 7) if truth[i] != 1]
    frame = pd.DataFrame(lines, columns=["object", "clustering", "label", "hours"]).sample(frac=1, random_state=seed)
    frame.to_csv("shares.csv", index=False)
    return frame


def write_answers(n=40, n_workers=9, each=3, seed=0):
    """Write answers.csv, a line for each answer, and return it."""
    rng = np.random.default_rng(seed)
    of_task = [(f"t{t}", f"w{w}") for t in range(n) for w in rng.permutation(n_workers)[:each]]
    frame = pd.DataFrame(of_task, columns=["task", "worker"])
    frame = frame.assign(label=rng.choice(["cat", "dog", "owl", "unknown"], len(frame)))
    frame.to_csv("answers.csv", index=False)
    return frame


@pytest.mark.parametrize("share", [None, "hours"])
def test_run_takes_shares_of_a_long_table(folder, done, share):
    frame = write_shares()
    option = "" if share is None else f"--share-column {share}"
    out = done(f"run shares.csv --long {option} --method scec -k 3 --membership -o out.csv")
    ens = ge.SoftEnsemble.from_long(frame, share=share)
    est = ge.SCEC(3).fit(ens)
    found = pd.read_csv("out.csv").set_index("object").loc[ens.index]
    assert found["label"].tolist() == est.labels_.tolist()
    np.testing.assert_allclose(found.filter(like="membership"), est.membership_, atol=1e-12)
    n_shared = frame.drop_duplicates(["object", "clustering", "label"]).groupby(["object", "clustering"]).size()
    n_objects = (n_shared > 1).groupby("object").any().sum()
    titles = "'object', 'clustering', 'label'" + (share is not None) * ", 'hours'"
    form = f"a share in each line ({titles}), {n_objects} objects in several clusters of a clustering"
    assert f"read as: {form}" in out
    assert out[0] == "shares.csv: 60 objects, 4 clusterings with 12 clusters"
    record = json.loads((folder / "out.csv.json").read_text())
    assert (record["form"], record["n_rows"], record["columns"]) == (form, 60, ens.names)


def test_a_table_without_overlaps_is_read_as_labels(folder, done):
    frame = write_shares().query("hours == 2")
    frame.to_csv("shares.csv", index=False)
    assert "distinct label rows" in done("run shares.csv --long --method scec -k 3 -o out.csv --evidence")[0]
    ens = ge.Ensemble.from_long(frame)
    assert labels_in("out.csv") == dict(zip(ens.index, ge.SCEC(3).fit(ens).labels_, strict=True))


def test_align_and_modes_take_shares(folder, done):
    ens = ge.SoftEnsemble.from_long(write_shares(), share="hours")
    done("align shares.csv --long --share-column hours --to first -o aligned.csv")
    aligned = pd.read_csv("aligned.csv", index_col=0).loc[ens.index]
    assert aligned.to_numpy().tolist() == ge.align(ens, "first").labels.tolist()
    out = done("modes shares.csv --long --share-column hours -n 1 -o modes.csv")
    assert out[0] == ge.modes(ens, 1).story
    found = pd.read_csv("modes.csv", index_col=0).loc[ens.index]
    assert found["mode_0"].tolist() == ge.modes(ens, 1).modes[0].consensus.tolist()


def test_objects_without_a_share_are_left_out(folder, call):
    frame = write_shares()
    pd.concat([frame, pd.DataFrame([("new", "run0", None, 1)], columns=frame.columns)]).to_csv(
        "shares.csv", index=False
    )
    code, _, err = call("run shares.csv --long --method scec -k 3 -o out.csv")
    assert code == 3
    assert "1 object(s) have no label" in err[-1]
    code, out, _ = call("run shares.csv --long --drop-unlabelled --method scec -k 3 -o out.csv")
    assert (code, labels_in("out.csv")["new"]) == (0, -1)
    assert "unlabelled: 1 object, left out and -1 in the output" in out


REFUSED_SHARES = {
    "run shares.csv --long -k 3": "two labels",
    "run shares.csv --long -k 3 --method lwgp": "--method scec",
    "run shares.csv --long --share-column hours -k 3": "--share-column is for methods that take shares (scec), not 'lw",
    "run labels.csv --share-column a -k 3 --method scec": "(--share-column) is for tables with a line for each label",
    "run shares.csv --long --share-column days -k 3 --method scec": "'days'",
    "run shares.csv --long --share-column label -k 3 --method scec --columns object,clustering,hours": "than numbers",
    "run shares.csv --long -k 3 --method scec --evidence": "--evidence needs one label",
    "run shares.csv --long -k 3 --method scec --min-confidence .5": "--min-confidence needs one label",
    "run shares.csv labels.csv --long --share-column hours -k 3 --method scec": "--share-column is for one file",
    "modes shares.csv labels.csv --long --share-column hours": "--share-column is for one file",
    "run shares.csv --long -k 3 --method scec --model model.npz": "--model needs one label",
    "run shares.csv --long -k 3 --method scec --reduce sample:20": "soft clusterings",
}


@pytest.mark.parametrize("line", list(REFUSED_SHARES))
def test_refused_shares_on_the_command_line(folder, call, line):
    write_shares()
    code, _, err = call(f"{line} -o out.csv")
    assert code in (2, 3)
    assert REFUSED_SHARES[line] in one_sentence(err[-1])
    assert not (folder / "out.csv").exists()


# --- answers of annotators --------------------------------------------------------------------------------------------


def test_answers_stay_in_lines_for_em(folder, done):
    frame = write_answers()
    done("run answers.csv --long --shared-names --method em --membership -o lines.csv")
    answers = ge.Answers(frame)
    est = ge.EM(vocabulary="shared").fit(answers)
    assert labels_in("lines.csv") == dict(zip(answers.index, est.labels_, strict=True))
    np.testing.assert_allclose(pd.read_csv("lines.csv").filter(like="membership"), est.membership_, atol=1e-12)
    done("run answers.csv --long --shared-names --method em --evidence -o rows.csv")  # evidence needs a matrix
    assert labels_in("rows.csv") == labels_in("lines.csv")
    records = [json.loads((folder / f"{name}.csv.json").read_text()) for name in ("lines", "rows")]
    for name in (
        "skills",
        "agreement_with_consensus",
        "cluster_names",
        "cluster_sizes",
        "n_unanswered",
        "columns",
        "form",
    ):
        assert records[0][name] == records[1][name], name
    assert (records[0]["n_objects"], records[0]["n_clusterings"]) == (40, 9)
    assert records[0]["n_base_clusters"] == len(
        frame.query("label != 'unknown'")[["worker", "label"]].drop_duplicates()
    )


def test_many_annotators_need_the_memory_of_their_answers(folder, call, monkeypatch):
    n = 3000
    workers = np.random.default_rng(0).permutation(np.repeat(np.arange(n), 2))
    frame = pd.DataFrame({"task": np.tile(np.arange(n), 2), "worker": workers}).drop_duplicates()
    frame.assign(label=np.where(frame["task"] % 3, "cat", "dog")).to_csv("answers.csv", index=False)
    monkeypatch.setenv("GPUENS_MEMORY", "30MB")
    code, _, err = call("run answers.csv --long --shared-names -o out.csv")
    assert code == 3
    assert "--shared-names --method em" in err[-1]
    assert call("run answers.csv --long --shared-names --method em -o out.csv")[0] == 0
    assert {name: label == "cat" for name, label in labels_in("out.csv").items()} == {i: i % 3 > 0 for i in range(n)}


def test_agreement_of_answers_in_lines_is_that_of_rows():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"task": rng.integers(0, 30, 90), "worker": rng.integers(0, 5, 90)}).drop_duplicates()
    frame = frame.assign(label=rng.choice(["x", "y", "z"], len(frame)))
    fits = [ge.EM(vocabulary="shared").fit(labels) for labels in (ge.Answers(frame), ge.Ensemble.from_long(frame))]
    for name in ("votes", "compared", "same"):
        np.testing.assert_array_equal(*(getattr(est.agreement_, name) for est in fits))
    with pytest.raises(TypeError, match="all pairs of annotators"):
        _ = fits[0].agreement_.between


# --- names in a tree --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:labels. 'unknown'")
@pytest.mark.parametrize("method", ["voting", "em"])
@pytest.mark.parametrize("name", ["tree.csv", "titled.tsv", "titled_parent_first.csv", "tree.parquet"])
def test_labels_are_names_in_a_tree(folder, done, method, name):
    frame, tree = write_answers(), pd.DataFrame(TREE.items(), columns=["child", "parent"])
    if name.endswith("parquet"):
        tree.to_parquet(name)
    else:
        order = ["parent", "child"] if "parent_first" in name else ["child", "parent"]
        tree[order].to_csv(name, sep="\t" if "tsv" in name else ",", index=False, header="titled" in name)
    out = done(f"run answers.csv --long --shared-names --method {method} --tree {name} --quorum 0.6 -o out.csv")
    answers = ge.Ensemble.from_long(frame)
    kind = {"voting": ge.Voting, "em": ge.EM}[method]
    names = kind(vocabulary="shared").fit(answers).labels_in_tree(TREE, quorum=0.6)
    assert labels_in("out.csv") == dict(zip(answers.index, names.labels, strict=True))
    sizes = pd.Series(names.labels).value_counts().to_dict()
    record = json.loads((folder / "out.csv.json").read_text())
    assert (record["tree"], record["quorum"], record["names_in_tree"]) == (name, 0.6, sizes)
    assert "pet" in sizes or method == "em"
    (line,) = (line for line in out if line.startswith("in the tree:"))
    assert all(f"{name} {size}" in line for name, size in sizes.items())


@pytest.mark.filterwarnings("ignore:labels. 'unknown'")
def test_support_in_a_tree_is_beside_the_evidence(folder, done):
    frame = write_answers()
    pd.DataFrame(TREE.items(), columns=["child", "parent"]).to_csv("tree.csv", index=False)
    done("run answers.csv --long --shared-names --tree tree.csv --evidence -o out.csv")
    answers = ge.Ensemble.from_long(frame)
    names = ge.Voting(vocabulary="shared").fit(answers).labels_in_tree(TREE)
    found = pd.read_csv("out.csv").set_index("task").loc[answers.index]
    np.testing.assert_allclose(found["support"], names.support, atol=1e-12)
    assert found["label"].tolist() == names.labels.tolist()


REFUSED_TREES = {
    "run answers.csv --long --shared-names --quorum 0.7": "--quorum=0.7 is for names in a tree; add --tree",
    "run labels.csv -k 3 --tree tree.csv": "--tree is for names from one list; add --shared-names",
    "run answers.csv --long --shared-names --tree tree.csv --quorum 0.4": "--quorum",
    "run answers.csv --long --shared-names --tree none.csv": "none.csv",
    "run answers.csv --long --shared-names --tree tree.csv --min-confidence 0.5": "--min-confidence is for the names",
    "run answers.csv --long --shared-names --tree short.csv": "tree lacks 1 name of the answers ('owl')",
    "run answers.csv --long --shared-names --tree circle.csv": "tree runs in a circle",
    "run answers.csv --long --shared-names --tree features.npy": "two columns, child and parent",
    "run answers.csv --long --shared-names --tree truth.csv": "one column",
    "run answers.csv --long --shared-names --tree tree.csv -o tree.csv": "tree.csv",
}


@pytest.mark.parametrize("line", list(REFUSED_TREES))
def test_refused_trees(folder, call, line):
    write_answers()
    trees = {"tree": TREE, "short": {"cat": "pet", "dog": "pet"}, "circle": TREE | {"animal": "cat"}}
    for name, tree in trees.items():
        pd.DataFrame(tree.items(), columns=["child", "parent"]).to_csv(f"{name}.csv", index=False)
    code, _, err = call(line if " -o " in line else f"{line} -o out.csv")
    assert code in (2, 3)
    assert REFUSED_TREES[line] in one_sentence(err[-1])
    assert not (folder / "out.csv").exists()
