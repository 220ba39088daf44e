"""Evidence and memberships of consensuses, and the commands that compare labels."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import LABELS, READ, TRUTH, K, call, done, folder  # noqa: F401

import gpuens
from gpuens import datasets, generate, io, metrics
from gpuens.methods import EM, LWGP

# --- evidence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "parquet", "npz"])
def test_run_writes_evidence_beside_the_labels(folder, done, suffix):
    labels = pd.read_csv("labels.csv")
    labels.iloc[3] = -1
    labels.to_csv("labels.csv", index=False)
    out = done(f"run labels.csv -k {K} --evidence --drop-unlabelled -o out.{suffix}")
    kept = np.arange(len(labels)) != 3
    est = LWGP(K).fit(labels.to_numpy()[kept])
    np.testing.assert_array_equal(READ[suffix](f"out.{suffix}")[kept], est.labels_)
    read = {"npz": np.load, "parquet": pd.read_parquet, "csv": pd.read_csv}.get(suffix, pd.read_table)
    found = read(f"out.{suffix}")
    for name in ("certainty", "confidence", "margin"):
        assert np.isnan(found[name][3])
        np.testing.assert_allclose(np.asarray(found[name])[kept], getattr(est.evidence().objects, name))
    record = json.loads(Path(f"out.{suffix}.json").read_text())["evidence"]
    np.testing.assert_allclose(record["confidence"], est.confidence_.mean())
    np.testing.assert_allclose(record["certainty"], est.evidence().objects.certainty.mean())
    assert record["anmi"] == est.evidence().agreement.anmi
    assert f"evidence: certainty {record['certainty']:.3f}, agreement with the clusterings {record['anmi']:.3f}" in out


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_evidence_marks_the_rest_where_clusters_have_a_smallest_size(folder, done, suffix):
    labels = pd.read_csv("labels.csv")
    labels.iloc[-4:-1] = 90 + np.arange(3)[:, None]
    labels.iloc[3] = -1
    labels.to_csv("labels.csv", index=False)
    done(f"run labels.csv --method eac -k {K} --min-size 4 --evidence --drop-unlabelled -o out.{suffix}")
    found = {"npz": np.load, "parquet": pd.read_parquet, "csv": pd.read_csv}[suffix](f"out.{suffix}")["rest"]
    assert found.dtype == bool
    assert np.flatnonzero(np.asarray(found)).tolist() == [len(labels) - 4, len(labels) - 3, len(labels) - 2]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_run_writes_memberships_beside_the_labels(folder, call, suffix):
    labels = pd.read_csv("labels.csv")
    labels.iloc[3] = -1
    labels.to_csv("labels.csv", index=False)
    options = f"--method em -k {K} --membership --evidence --drop-unlabelled"
    assert call(f"run labels.csv {options} -o out.{suffix}")[::2] == (0, [])
    est = EM(K).fit(np.delete(labels.to_numpy(), 3, axis=0))
    found = {"npz": np.load, "parquet": pd.read_parquet, "csv": pd.read_csv}[suffix](f"out.{suffix}")
    if suffix == "npz":
        membership = found["membership"]
    else:
        columns = [f"membership_{k}" for k in range(K)]
        assert list(found.columns) == ["label", "certainty", "confidence", "margin", *columns]
        membership = found[columns].to_numpy()
    assert np.isnan(membership[3]).all()
    np.testing.assert_allclose(np.delete(membership, 3, axis=0), est.membership_)


def test_evidence_of_a_consensus_in_a_file(folder, call, done):
    assert call(f"run labels.csv -k {K} --evidence -o out.csv")[0] == 0
    assert call("evidence labels.csv out.csv") == call("evidence labels.csv out.csv --columns-consensus label")
    code, _, err = call("evidence labels.csv out.csv --columns-consensus label,margin")
    assert code == 3
    assert "has 2 columns where one is needed; choose one by --columns-consensus." in err[0]
    command = "evidence labels.csv out.csv --columns-consensus label"
    out = done(f"{command} -o each.csv")
    assert re.sub(" +", " ", out[1]) == "cluster objects consensus stability item certainty silhouette nearest"
    assert (len([line for line in out if re.match(r"\d ", line)]), out[-1]) == (K, "written: each.csv")
    each, est = pd.read_csv("each.csv"), LWGP(K).fit(LABELS)
    assert any(line.endswith(f"; {est.evidence().beyond_chance}") for line in out)
    for name in ("certainty", "confidence"):
        np.testing.assert_allclose(each[name], getattr(est.evidence().objects, name))
    np.testing.assert_allclose(each["ecc"], est.evidence().consistency.ecc)
    record = json.loads("\n".join(call(f"{command} --ignore-missing --json")[1]))
    found = est.evidence(missing="ignore")
    np.testing.assert_allclose([row["consensus"] for row in record["clusters"]], found.clusters.consensus)
    assert record["pairs"]["pac"] == found.pairs().pac()
    assert record["beyond_chance"] == {"z": found.beyond_chance.z, "p": found.beyond_chance.p}


def test_evidence_of_a_consensus_of_names(folder, call):
    names = np.array(["B cell", "T cell", "NK", "other"], dtype=object)[TRUTH]
    pd.DataFrame({"type": names}).to_csv("types.csv", index=False)
    code, out, err = call("evidence labels.csv types.csv -o each.csv")
    assert (code, err, out[-1]) == (0, [], "written: each.csv")
    assert pd.read_csv("each.csv")["label"].tolist() == names.tolist()


# --- choose -----------------------------------------------------------------------------------------------------------


def test_choose_suggests_a_number_of_clusters(folder, call, done):
    out = done("choose labels.csv --ks 2:6")
    assert [line.split()[0] for line in out[:6]] == ["k", "2", "3", "4", "5", "6"]
    found = gpuens.choose_k(LABELS, ks=range(2, 7))
    assert out[6] == f"suggested: {found.suggested} clusters ({found.reasons[found.suggested]})"
    record = json.loads("\n".join(call("choose labels.csv --ks 2:6 --json")[1]))
    assert (record["suggested"], [row["k"] for row in record["ks"]]) == (K, [2, 3, 4, 5, 6])
    few = "choose --features features.npy --ks 3:4 --n-clusterings 5"
    assert json.loads("\n".join(call(f"{few} --json")[1]))["ks"][1]["pac"] >= 0


# --- generate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("", {}),
        ("-k 10 --n-clusterings 3", {"n_clusters": 10, "n_clusterings": 3}),
        ("-k 3:7 --seed 5", {"n_clusters": (3, 7), "random_state": 5}),
        ("-k 2:sqrt --objects 0.5", {"n_clusters": (2, "sqrt"), "objects": 0.5}),
        ("-k sqrt --objects 60 --features 2", {"n_clusters": "sqrt", "objects": 60, "features": 2}),
        ("--projection 2 --algorithm minibatch", {"projection": 2, "algorithm": "minibatch"}),
        ("--algorithm nested", {"algorithm": "nested"}),
        ("--init random --n-init 2 --max-iter 5", {"init": "random", "n_init": 2, "max_iter": 5}),
    ],
)
def test_generate_is_kmeans_ensemble(folder, done, options, parameters):
    out = done(f"generate features.npy -o labels.npy {options}")
    expected = generate.kmeans_ensemble(np.load("features.npy"), **parameters)
    np.testing.assert_array_equal(np.load("labels.npy"), expected.to_array())
    record = json.loads(Path("labels.npy.json").read_text())
    assert record["method"] == "kmeans_ensemble"
    assert (record["n_objects"], record["n_features"], record["n_clusterings"]) == (120, 3, expected.n_clusterings)
    assert record["clusters_of_each"] == np.diff(expected.offsets).tolist()
    for name, value in parameters.items():
        assert record["parameters"][name] == (list(value) if isinstance(value, tuple) else value)
    assert out[0] == "features.npy: 120 objects, 3 features"


def test_generate_takes_names_of_data_sets_and_parts_of_files(folder, call):
    np.savez("set.npz", X=np.load("features.npy"), other=np.load("features.npy")[:, ::-1])
    assert call("generate iris -o iris.csv --n-clusterings 2 -k 3")[0] == 0
    assert call("generate set.npz -o x.npy --n-clusterings 2 -k 3")[0] == 0
    assert call("generate set.npz --key other --columns 2,1,0 -o other.npy --n-clusterings 2 -k 3")[0] == 0
    iris = generate.kmeans_ensemble(datasets.load("iris").X, 2, 3)
    np.testing.assert_array_equal(pd.read_csv("iris.csv").to_numpy(), iris.to_array())
    np.testing.assert_array_equal(np.load("x.npy"), np.load("other.npy"))


def test_generate_then_run_then_score(folder, call):
    assert call("generate features.npy -o base.parquet -k 4:9")[0] == 0
    assert call("run base.parquet -k 4 -o consensus.csv")[0] == 0
    code, out, _ = call("score consensus.csv truth.csv --json")
    assert code == 0
    assert json.loads("".join(out))["ari"] > 0.9


# --- score ------------------------------------------------------------------------------------------------------------


def test_score_of_two_labelings(folder, call, done):
    pd.DataFrame({"other": TRUTH, "a": TRUTH // 2 + (np.arange(len(TRUTH)) % 3 == 0)}).to_csv("a.csv", index=False)
    expected = metrics.scores(pd.read_csv("a.csv")["a"], TRUTH)
    out = done("score a.csv truth.csv --columns-a a")
    assert out[0].split() == ["nmi", "nmi_max", "ari", "accuracy"]
    assert out[1].split() == [f"{value:.4f}" for value in expected.values()]
    assert len(out) == 2
    assert json.loads("".join(call("score a.csv truth.csv --columns-a 1 --json")[1])) == expected


def test_score_of_several_columns_has_a_row_each_and_the_mean(folder, call):
    np.savez("truth.npz", X=LABELS, y=TRUTH)
    _, out, _ = call("score labels.csv truth.npz --key-b y")
    scores = pd.DataFrame([metrics.scores(column, TRUTH) for column in LABELS.T])
    rows = [line.split() for line in out[1:]]
    assert [row[0] for row in rows] == [*"abcdef", "mean"]
    printed = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(printed, np.vstack([scores, scores.mean()]), atol=5.1e-5)
    facts = json.loads("".join(call("score labels.csv truth.npz --key-b y --json")[1]))
    assert [column.pop("name") for column in facts["columns"]] == list("abcdef")
    assert facts.pop("columns") == scores.to_dict("records")
    assert facts == pytest.approx(scores.mean().to_dict())


# --- align and modes --------------------------------------------------------------------------------------------------


def test_align_writes_names_to_tables_and_codes_to_arrays(folder, call):
    split = np.where((TRUTH == 1) & (np.arange(len(TRUTH)) % 3 == 0), K, TRUTH)
    pd.DataFrame({"object": [f"o{i}" for i in range(len(TRUTH))], "one": (TRUTH + 1) % K, "two": split}).to_csv(
        "runs.csv", index=False
    )
    code, out, err = call("align runs.csv --id-column object --to truth.csv --by-position -o aligned.csv")
    assert (code, err[:-1]) == (0, [])
    assert out[:2] == [
        f"runs.csv: {len(TRUTH)} objects, 2 clusterings",
        "reference: truth.csv, with 4 clusters; 1 more for their parts",
    ]
    table = pd.read_csv("aligned.csv", dtype=str)
    assert list(table) == ["object", "one", "two"]
    assert table["one"].tolist() == TRUTH.astype(str).tolist()
    assert table["two"].tolist() == [f"{t}.b" if s == K else str(t) for t, s in zip(TRUTH, split, strict=True)]
    assert json.loads(Path("aligned.csv.json").read_text())["names"] == [*"0123", "1.b"]
    assert io.read_labels("aligned.csv", id_column="object").n_clusterings == 2  # names are not read as numbers
    assert call("align runs.csv --to truth.csv --by-position -o aligned.npy")[0] == 0
    np.testing.assert_array_equal(np.load("aligned.npy"), np.column_stack([TRUTH, split]))
    assert call("align labels.csv --to first -o first.npy")[0] == 0
    np.testing.assert_array_equal(np.load("first.npy") < 0, LABELS < 0)


def test_modes_tells_the_stories_of_a_file(folder, call):
    rng = np.random.default_rng(0)
    other = rng.integers(0, 3, len(TRUTH))
    np.save("runs.npy", np.column_stack([rng.permutation(4)[TRUTH if m < 7 else other] for m in range(12)]))
    code, out, _ = call("modes runs.npy --quiet -o modes.npy")
    assert code == 0
    assert out[0] == "Your 12 clusterings are two stories: 7 and 5."
    assert out[2].split()[:5] == ["0", "7", "58%", "4", "1.00"]
    assert [
        metrics.ari(column, known) for column, known in zip(np.load("modes.npy").T, (TRUTH, other), strict=True)
    ] == [1, 1]
    told = json.loads("\n".join(call("modes runs.npy -n 1 --json --quiet")[1]))
    assert (len(told["modes"]), told["input"]) == (1, "runs.npy")


# --- draws ------------------------------------------------------------------------------------------------------------


def test_evidence_adds_the_credible_ball_of_draws(folder, call, done):
    ball = gpuens.evidence.credible_ball(io.read_labels("labels.csv"), TRUTH)
    assert done("evidence labels.csv truth.csv --credible-ball vi")[-6:] == str(ball).splitlines()
    found = json.loads("".join(done("evidence labels.csv truth.csv --credible-ball binder --json")))["credible_ball"]
    assert (found["loss"], found["posterior"]["values"]) == ("binder", ball.posterior.values.tolist())
    assert "credible_ball" not in json.loads("".join(done("evidence labels.csv truth.csv --json")))
