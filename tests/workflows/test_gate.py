"""The agreement gate of `gpuens.cluster`, and the rule by which it scales features."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.preprocessing import RobustScaler, StandardScaler

import gpuens as ge
from gpuens import cli
from gpuens.labels.features import Features, scaling_of
from gpuens.runtime.checks import recorded
from gpuens.workflows.gate import _most_frequent

y = np.arange(300) % 2
NOISY = np.random.default_rng(0).normal(size=(300, 64)) + 0.375 * y[:, None]  # clusters that overlap in 64 dimensions
SAID = "the consensus agrees with none of the base clusterings"
BLOBS, of_blobs = make_blobs(300, 3, centers=4, cluster_std=0.7, random_state=0)
ALONE = BLOBS * [1.0, 500.0, 1.0]  # the second feature decides alone


@pytest.fixture
def in_chunks():
    return pytest.importorskip("dask.array").from_array


def said_by(work):
    """Return the result of a function, and the sentences of its warnings."""
    with recorded() as found:
        result = work()
    return result, list(map(one_sentence, found))


def fallen_back(X=NOISY, **given):
    """Return a fit of two clusters whose consensus was replaced by k-means."""
    found, said = said_by(lambda: ge.cluster(X, 2, **{"n_clusterings": 20} | given))
    assert said == [f"{SAID} (mean ARI {found.mean_ari_:.2f}), so that k-means with 10 starts took its place."]
    assert found.fallback_ == "k-means"
    return found


# --- the gate ---------------------------------------------------------------------------------------------------------


def test_k_means_takes_the_place_of_a_consensus_that_agrees_with_nothing():
    found = fallen_back()
    centers = np.stack([NOISY[found.labels_ == c].mean(axis=0) for c in (0, 1)])
    inertia = ((NOISY - centers[found.labels_]) ** 2).sum()
    np.testing.assert_allclose(inertia, KMeans(2, n_init=10, random_state=0).fit(NOISY).inertia_, rtol=1e-3)
    assert ge.metrics.ari(found.labels_, y) > ge.metrics.ari(ge.LWGP(2).fit(found.ensemble_).labels_, y) + 0.5
    sizes = np.bincount(found.labels_)
    assert found.n_clusters_ == len(sizes) == 2
    assert sizes[0] >= sizes[1]
    assert found.labels_.dtype == np.int64
    discarded = ge.LWGP(2, random_state=found.random_state).fit(found.ensemble_).evidence().agreement
    assert found.mean_ari_ == discarded.mean_ari < 0.15
    assert found.mean_wallace_ == discarded.mean_wallace < 0.5
    np.testing.assert_array_equal(fallen_back().labels_, found.labels_)


def test_evidence_new_objects_and_models_are_of_the_labels_of_k_means(tmp_path):
    found = fallen_back(method="voting")  # a method without a similarity
    rows, labels = found.ensemble_.to_array(), found.labels_
    evidence = found.evidence()
    np.testing.assert_array_equal(evidence.labels, labels)
    np.testing.assert_array_equal(evidence.clusters.sizes, np.bincount(labels))
    expected = ge.evidence.agreement(found.ensemble_, labels)
    np.testing.assert_allclose(evidence.agreement.ari, expected.ari, rtol=0, atol=1e-12)
    mixed = np.concatenate([rows[:150, :10], rows[150:, 10:]], axis=1)  # rows unknown at fit
    together, mixed = (mixed[:, None] == rows).mean(axis=2), ge.Ensemble(mixed, wide=True)
    by_hand = np.argmax([together[:, labels == c].mean(axis=1) for c in (0, 1)], axis=0)
    found.save(tmp_path / "model.npz")
    for labelled_by in (found, ge.load(tmp_path / "model.npz")):
        np.testing.assert_array_equal(labelled_by.predict(found.ensemble_), labels)
        np.testing.assert_array_equal(labelled_by.predict(mixed), by_hand)
    assert 0 < by_hand.sum() < 150
    found.fit(found.ensemble_)  # the consensus that was replaced
    assert not hasattr(found, "fallback_")
    assert not hasattr(found, "mean_ari_")
    assert ge.metrics.ari(found.labels_, labels) < 0.5


@pytest.mark.parametrize("method", ["eac", "scec", "kcc", "ecrmc"])
def test_every_method_has_the_fallback(method):
    found = fallen_back(method=method)
    np.testing.assert_array_equal(found.predict(found.ensemble_), found.labels_)
    np.testing.assert_array_equal(found.evidence().labels, found.labels_)
    for name in ("dendrogram_", "membership_", "children_"):
        assert not hasattr(found, name)


@pytest.mark.parametrize("kind", ["kmeans", "mixed"])
@pytest.mark.parametrize("n_clusterings", [4, 20])
def test_a_consensus_of_whole_base_clusters_is_no_noise(kind, n_clusterings):
    """Base clusterings with many clusters have a small ARI even with the true clusters."""
    truth = np.arange(600) % 2
    points = np.random.default_rng(0).normal(size=(600, 2)) + 9 * truth[:, None]
    found = ge.cluster(points, 2, kind=kind, n_clusterings=n_clusterings)
    assert ge.metrics.ari(found.labels_, truth) == 1.0
    assert found.fallback_ is None
    assert (found.mean_ari_ < 0.15) == (kind == "kmeans" and n_clusterings == 4)
    assert found.mean_wallace_ > 0.9


def test_a_single_cluster_agrees_with_nothing_and_stays():
    found = ge.cluster(NOISY, 1, n_clusterings=8)
    assert (found.n_clusters_, found.mean_ari_, found.mean_wallace_, found.fallback_) == (1, None, None, None)


def test_a_graph_has_no_k_means():
    pytest.importorskip("igraph")
    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((300, 300)) < 0.03, 1)
    graph = csr_array((edges | edges.T).astype(float))
    found, said = said_by(lambda: ge.cluster(graph, 5, kind="leiden"))
    assert said[-1] == (
        f"{SAID} (mean ARI {found.mean_ari_:.2f}), so that its clusters are doubtful; make other base clusterings."
    )
    assert found.fallback_ is None
    refused(lambda: ge.cluster(graph, 5, kind="leiden", scale="standard"), ValueError, "scale='standard' is for feat")


def test_sparse_features_and_memory_maps_have_it(tmp_path):
    np.save(tmp_path / "X.npy", NOISY)
    for X in (csr_array(NOISY), np.load(tmp_path / "X.npy", mmap_mode="r")):
        assert ge.metrics.ari(fallen_back(X).labels_, y) > 0.6


def test_k_means_that_does_not_fit_the_memory_is_left_out(monkeypatch):
    from gpuens.workflows import gate

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(gate.generate, "kmeans_ensemble", full)
    found, said = said_by(lambda: ge.cluster(NOISY, 2, n_clusterings=20))
    assert said[0].endswith("its clusters are doubtful; make other base clusterings.")
    assert found.fallback_ is None
    np.testing.assert_array_equal(
        found.labels_, ge.LWGP(2, random_state=found.random_state).fit(found.ensemble_).labels_
    )


def test_chunks_have_it_if_their_rows_fit_this_process(in_chunks, tmp_path):
    found = fallen_back(in_chunks(NOISY, chunks=(70, 40)))
    labels = found.labels_.compute()
    assert found.labels_.chunks == found.ensemble_.chunks[:1]
    np.testing.assert_allclose(found.mean_ari_, fallen_back().mean_ari_, atol=0.05)
    assert ge.metrics.ari(labels, y) > 0.6
    assert np.bincount(labels).tolist() == sorted(np.bincount(labels), reverse=True)
    found.save(tmp_path / "model.npz")
    whole = ge.Ensemble(found.ensemble_.compute(), wide=True)
    for labelled_by in (found, ge.load(tmp_path / "model.npz")):
        np.testing.assert_array_equal(labelled_by.predict(whole), labels)


def test_chunks_whose_rows_stay_in_pieces_only_say_so(in_chunks, in_pieces):
    found, said = said_by(lambda: ge.cluster(in_chunks(NOISY, chunks=(70, 40)), 2, n_clusterings=20))
    assert said[0].endswith("its clusters are doubtful; make other base clusterings.")
    assert found.fallback_ is None
    assert found.mean_ari_ < 0.15
    assert len(found.labels_.compute()) == 300


def test_features_in_gpu_memory_fall_back_there(fake_cupy):
    found = fallen_back(fake_cupy.asarray(NOISY))
    assert isinstance(found.labels_, fake_cupy.ndarray)
    assert ge.metrics.ari(fake_cupy.asnumpy(found.labels_), fallen_back().labels_) > 0.95


def test_the_label_of_most_objects_is_that_of_the_first_of_equals():
    groups, labels, counts = np.array([[1, 0, 1, 0, 2, 1, 2], [4, 3, 0, 1, 5, 0, 2], [2, 1, 1, 1, 1, 1, 3]])
    assert _most_frequent(groups, labels, counts).tolist() == [1, 0, 2]


@pytest.mark.usefixtures("unpainted")
def test_the_command_line_records_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", NOISY)
    np.save("blobs.npy", BLOBS)
    report = ["--report", "page.html"] if find_spec("matplotlib") and find_spec("jinja2") else []
    assert cli.main(["cluster", "X.npy", "-k", "2", "--n-clusterings", "20", "-o", "out.npy", *report]) == 0
    out, err = capsys.readouterr()
    assert f"{SAID} (mean ARI " in err
    assert "k-means: 2 clusters" in out
    record, expected = json.loads(Path("out.npy.json").read_text()), fallen_back()
    np.testing.assert_array_equal(np.load("out.npy"), expected.labels_)
    of_gate = {name: record[name] for name in ("mean_ari", "mean_wallace", "fallback", "scale")}
    assert of_gate == {
        "mean_ari": expected.mean_ari_,
        "mean_wallace": expected.mean_wallace_,
        "fallback": "k-means",
        "scale": "none",
    }
    if report:
        page = re.sub("<[^>]+>", "", Path("page.html").read_text())
        assert f"T{SAID[1:]}" in page
        assert "K-means found them, because the consensus agrees with none" in page
    assert cli.main(["cluster", "blobs.npy", "-k", "4", "--n-clusterings", "8", "-o", "out.npy"]) == 0
    assert json.loads(Path("out.npy.json").read_text())["fallback"] is None


# --- scales -----------------------------------------------------------------------------------------------------------


def test_a_feature_that_decides_alone_is_standardised(in_chunks, tmp_path):
    np.save(tmp_path / "X.npy", ALONE)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = ge.cluster(StandardScaler().fit_transform(ALONE), 4, n_clusterings=8, scale="none").labels_
    assert ge.metrics.ari(expected, of_blobs) > 0.9
    for given in (ALONE, ALONE.tolist(), mapped, in_chunks(ALONE, chunks=(70, 2))):
        found, said = said_by(lambda given=given: ge.cluster(given, 4, n_clusterings=8))
        assert len(said) == 1
        assert said[0].startswith("column 1 of X has a standard deviation of ")
        assert said[0].endswith("standardised, and if their units are the same, scale='none' (--scale none) is right.")
        assert found.scale_ == "standard"
        assert ge.metrics.ari(np.asarray(found.labels_), expected) > 0.98
    assert ge.cluster(BLOBS * [1.0, 5.0, 1.0], 4, n_clusterings=8).scale_ == "none"


def test_a_scale_that_is_asked_for_is_not_said(in_chunks):
    for scale in ("none", "standard", "robust"):
        for given in (ALONE, in_chunks(ALONE, chunks=(70, 2))):
            found, said = said_by(lambda given=given, scale=scale: ge.cluster(given, 4, n_clusterings=8, scale=scale))
            assert not said
            assert found.scale_ == scale
            agrees = ge.metrics.ari(np.asarray(found.labels_), of_blobs) > 0.9
            assert agrees == (scale != "none")
    refused(lambda: ge.cluster(ALONE, 4, scale="minmax"), ValueError, "scale must be one of 'auto', 'standard', 'robu")


@pytest.mark.parametrize(("scale", "of_sklearn"), [("standard", StandardScaler), ("robust", RobustScaler)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool])
def test_scales_are_those_of_scikit_learn(scale, of_sklearn, dtype):
    X = (np.random.default_rng(1).normal(size=(500, 4)) * [1, 100, 9, 0] + [7, 0, -3, 0.1]).astype(dtype)
    found = Features(X).scaled(scale)[0].values
    assert found.dtype == (np.float32 if dtype != np.float64 else np.float64)
    expected = of_sklearn().fit_transform(X.astype(np.float64))
    np.testing.assert_allclose(found[:, :3], expected[:, :3], rtol=1e-5, atol=1e-6)
    assert np.ptp(found[:, 3]) == 0.0
    shares = of_sklearn(**{"with_mean" if scale == "standard" else "with_centering": False})
    thin = csr_array(np.where(X < 0, 0, X).astype(np.float32))
    np.testing.assert_allclose(
        Features(thin).scaled(scale)[0].values.toarray(), shares.fit_transform(thin).toarray(), rtol=1e-5
    )


@pytest.mark.parametrize(("names", "words"), [([10, 20, 40], "column 20 of X"), (["a", "b", "c"], "column 'b' of X")])
def test_that_feature_is_named_as_in_its_table(names, words):
    tables = [pd.DataFrame(ALONE, columns=names)]
    if isinstance(names[0], str) and find_spec("pyarrow"):
        import pyarrow as pa

        tables.append(pa.table(tables[0]))
    for table in tables:
        _, said = said_by(lambda table=table: ge.cluster(table, 4, n_clusterings=2))
        assert said[0].startswith(words)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_extreme_features_are_judged_by_their_ratios(factor):
    assert scaling_of(BLOBS * factor) is None
    (found, _), said = said_by(lambda: Features(ALONE * factor).scaled())
    np.testing.assert_allclose(found.values, StandardScaler().fit_transform(ALONE), rtol=1e-9, atol=1e-9)
    assert (
        pd.Series(said).str.contains(r"column 1 of X has a standard deviation of \d\.\d+e(?:\+20\d|-1\d\d) whe").all()
    )


def test_features_that_stay_as_they_are(monkeypatch):
    constant = np.full((300, 4), 0.1)  # its mean is rounded
    constant[:, 0] = BLOBS[:, 0]
    for X in (csr_array(ALONE), ALONE[:, 1:2], constant, np.zeros((5, 3)), BLOBS * [1.0, 1.0, 3.0]):
        features, scale = Features(X).scaled()
        assert features.values is X
        assert scale == "none"
    monkeypatch.setenv("GPUENS_MEMORY", "5KB")
    (found, scale), said = said_by(lambda: Features(ALONE).scaled())
    assert found.values is ALONE
    assert scale == "none"
    assert said[0].endswith("which objects are near; scale the features first, unless their units are the same.")
    refused(lambda: Features(ALONE).scaled("standard"), MemoryError, "scale='standard' for X of shape (300, 3)")


def test_leiden_scales_only_on_request():
    pytest.importorskip("igraph")
    found = ge.cluster(ALONE, 4, kind="leiden")
    assert found.scale_ == "none"
    of_scaled = ge.cluster(ALONE, 4, kind="leiden", scale="standard")
    assert of_scaled.scale_ == "standard"
    assert ge.metrics.ari(of_scaled.labels_, of_blobs) > 0.9


def test_features_in_gpu_memory_are_scaled_there(fake_cupy):
    (found, scale), _ = said_by(lambda: Features(fake_cupy.asarray(ALONE)).scaled())
    assert isinstance(found.values, fake_cupy.ndarray)
    assert scale == "standard"
    np.testing.assert_allclose(fake_cupy.asnumpy(found.values), StandardScaler().fit_transform(ALONE), atol=1e-12)


def test_the_command_line_scales(tmp_path, monkeypatch, capsys, in_chunks):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", ALONE)
    for options, scale, warned in (
        ("", "standard", True),
        ("--scale auto --scheduler threads --chunk-rows 70", "standard", True),
        ("--scale standard --scheduler threads", "standard", False),
        ("--scale robust", "robust", False),
        ("--scale none", "none", False),
    ):
        assert cli.main(f"cluster X.npy -k 4 --n-clusterings 8 -o out.npy {options}".split()) == 0
        out, err = capsys.readouterr()
        assert ("(--scale none) is right" in err) == warned
        assert (f", scale {scale}" in out) == (scale != "none")
        assert json.loads(Path("out.npy.json").read_text())["scale"] == scale
        assert (ge.metrics.ari(np.load("out.npy"), of_blobs) > 0.9) == (scale != "none")
    assert cli.main(["generate", "X.npy", "--n-clusterings", "2", "--scale", "auto", "-o", "made.npy"]) == 0
    assert json.loads(Path("made.npy.json").read_text())["scale"] == "standard"
    assert "(--scale none) is right" in capsys.readouterr().err
    assert cli.main(["generate", "X.npy", "--n-clusterings", "2", "-o", "made.npy"]) == 0
    assert "scale" not in json.loads(Path("made.npy.json").read_text())
