"""ECRMC compared with a literal version, from labels and features to the merges; and the requirements of ECRMC."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import oracles
import pytest
from conftest import random_labels, refused
from scipy.cluster import hierarchy

import gpuens as ge
from gpuens.cli import main
from gpuens.runtime.device import to_host


def blobs(n_objects=80, *, missing=0.0, doubles=False, seed=0):
    """Return (labels, features) of overlapping clusters; the labels are k-means clusterings."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_objects, 3)) + 3 * rng.integers(0, 3, n_objects)[:, None]
    if doubles:
        x = np.repeat(x[::4], 4, axis=0)[:n_objects]
    labels = ge.generate.kmeans_ensemble(x, 5, (3, 8), random_state=seed).to_array()
    labels = np.column_stack([labels, random_labels(n_objects, 2, 4, seed=seed)])
    labels[rng.random(labels.shape) < missing] = -1
    labels[np.arange(7), np.arange(7)] = np.maximum(0, labels[np.arange(7), np.arange(7)])
    labels[:, 0] = np.maximum(0, labels[:, 0])
    return labels, x


CASES = {
    "blobs": lambda: blobs(),
    "missing labels": lambda: blobs(missing=0.2, seed=1),
    "objects at one place": lambda: blobs(doubles=True, seed=2),
    "ties": lambda: (random_labels(60, 4, (2, 4), seed=3), np.random.default_rng(3).integers(0, 3, (60, 2))),
    "noise": lambda: (random_labels(70, 5, (2, 6), missing=0.1, seed=4), np.random.default_rng(4).random((70, 4))),
}


@cache
def literal(case, n_neighbors):
    """Return the input of ECRMC and the result of each of its steps."""
    labels, x = CASES[case]()
    mapping = oracles.mapping_coefficients(labels, x, n_neighbors)
    similarity = oracles.spearman(mapping)
    revised = oracles.revised_coassociation(labels, similarity)
    return labels, x, mapping, similarity, revised, oracles.average_linkage_of_all_pairs(labels, revised)


@pytest.mark.parametrize("n_neighbors", [2, 9])
@pytest.mark.parametrize("case", CASES)
def test_all_of_it_is_the_literal_one(case, n_neighbors, where):
    labels, x, mapping, similarity, revised, expected = literal(case, n_neighbors)
    est = ge.ECRMC(3, n_neighbors=n_neighbors, device=where).fit(labels, features=x)
    np.testing.assert_allclose(est.mapping_.toarray(), mapping, rtol=0, atol=1e-10)
    np.testing.assert_allclose(est.cluster_similarity_, similarity, rtol=0, atol=1e-10)
    rows = ge.Rows(labels, device=where)
    tile = ge.similarity.Full(est.cluster_similarity_, rows.offsets).tile(rows, 0, len(rows))
    np.testing.assert_allclose(tile, revised, rtol=0, atol=1e-10)
    np.testing.assert_allclose(est.dendrogram_.similarities, expected.heights, rtol=0, atol=1e-10)
    assert (est.dendrogram_.similarities < 0).any()
    for k in range(2, len(expected.heights)):
        if expected.heights[-k] - expected.heights[-k + 1] > 1e-9:  # rounding decides the other cuts
            of_groups = oracles.cut(expected.merges, len(expected.groups.rows), k)
            np.testing.assert_array_equal(
                est.dendrogram_.cut(k)[to_host(est.reduction_.row_of)], of_groups[expected.groups.membership]
            )


def test_equal_rows_stay_together_where_the_tree_of_all_pairs_parts_them():
    """Equal rows can be less similar to each other than to other rows."""
    labels = random_labels(60, 4, (2, 5), distinct=25, seed=1)
    x = np.random.default_rng(1).standard_normal((60, 3)) + labels[:, :1]
    est = ge.ECRMC(20, n_neighbors=4).fit(labels, features=x)
    revised = oracles.revised_coassociation(labels, est.cluster_similarity_)
    equal = (labels[:, None] == labels).all(axis=2)
    others = np.where(equal, -np.inf, revised).max(axis=1)
    alone = np.eye(60, dtype=bool)
    assert (np.where(equal & ~alone, revised, np.inf).min(axis=1) < others - 1e-9).any()
    distances = np.where(alone, 0.0, revised.max() - revised)
    literal = hierarchy.linkage(distances[np.triu_indices(60, 1)], "average")
    of_all = hierarchy.fcluster(literal, 20, "maxclust")
    assert (of_all[:, None] != of_all)[equal].any()
    assert (est.labels_[:, None] == est.labels_)[equal].all()


def test_the_merge_list_of_all_objects():
    labels, x = blobs(doubles=True)
    est = ge.ECRMC(3, n_neighbors=4).fit(labels, features=x)
    assert len(est.children_) == len(labels) - 1
    assert (np.diff(est.distances_) >= 0).all()
    assert np.isin(1 - est.dendrogram_.similarities, est.distances_).all()
    Z = est.linkage_matrix()
    assert len(Z) == len(labels) - 1
    # similarities above 1 give negative distances, for which SciPy raises an error
    assert est.distances_.min() < 0 == Z[:, 2].min()
    np.testing.assert_allclose(np.diff(Z[:, 2]), np.diff(est.distances_), atol=1e-12)
    assert hierarchy.fcluster(Z, 3, "maxclust").max() == 3


@pytest.mark.filterwarnings("ignore:n_clusters is not given, and the chosen number")
def test_how_many_neighbours(sizes):
    labels, x = blobs(200)
    # a tenth of the mean cluster size, which is 200 / 4 = 50
    assert ge.ECRMC(4).fit(labels, features=x).n_neighbors_ == 5
    assert ge.ECRMC(40).fit(labels, features=x).n_neighbors_ == 2
    assert ge.ECRMC(1).fit(labels, features=x).n_neighbors_ == 20
    few = min(len(np.unique(column)) for column in labels.T)
    assert ge.ECRMC(distance_threshold=0.5).fit(labels, features=x).n_neighbors_ == round(20 / few)
    chosen = ge.ECRMC().fit(labels, features=x)
    assert chosen.n_neighbors_ == round(20 / chosen.n_clusters_)
    sizes("similarity.mapping", MOST_NEIGHBORS=3)
    assert ge.ECRMC(4).fit(labels, features=x).n_neighbors_ == 3
    assert ge.ECRMC(4, n_neighbors=30).fit(labels, features=x).n_neighbors_ == 30


def test_few_objects():
    assert ge.ECRMC(1).fit([[5]], features=[[1.0]]).labels_.tolist() == [0]
    est = ge.ECRMC(2).fit([np.array([0, 1]), np.array([0, 1])], features=[[1.0], [4.0]])
    assert (est.labels_.tolist(), est.n_neighbors_) == ([0, 1], 1)
    np.testing.assert_array_equal(est.mapping_.toarray(), [[0, 1, 0, 1], [1, 0, 1, 0]])


def test_a_cut_at_a_distance_of_any_sign():
    labels, x = blobs(300)
    est = ge.ECRMC(n_neighbors=7).fit(labels, features=x)
    heights = 1 - est.dendrogram_.similarities
    assert heights.min() < 0
    for threshold in (float(np.median(heights)), float(np.quantile(heights, 0.9))):
        found = ge.ECRMC(n_neighbors=7, distance_threshold=threshold).fit(labels, features=x)
        assert found.n_clusters_ == 1 + np.count_nonzero(heights >= threshold)
    both = ge.ECRMC(3, distance_threshold=0.5)
    refused(lambda: both.fit(labels, features=x), ValueError, "n_clusters and distance_thresh")


@pytest.mark.parametrize("reduction", [ge.Sample(60), ge.CATree(tau=0.3), "sample:60"])
def test_coefficients_are_those_of_all_objects_whatever_the_reduction(reduction):
    labels, x = blobs(200)
    expected = ge.ECRMC(3).fit(labels, features=x)
    est = ge.ECRMC(3, reduction=reduction).fit(labels, features=x)
    np.testing.assert_array_equal(est.cluster_similarity_, expected.cluster_similarity_)
    assert len(est.reduction_.counts) < len(expected.reduction_.counts)
    assert ge.metrics.ari(est.labels_, expected.labels_) > 0.6


def test_ways_to_ask_for_it(tmp_path, capsys, monkeypatch):
    labels, x = blobs(120)
    expected = ge.ECRMC(3, n_neighbors=6).fit(labels, features=x).labels_
    import pandas as pd

    frame = pd.DataFrame(x)
    np.testing.assert_array_equal(ge.ECRMC(3, n_neighbors=6).fit_predict(labels, features=frame), expected)
    np.testing.assert_array_equal(ge.consensus(labels, 3, method="ecrmc", features=x, n_neighbors=6), expected)
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", labels)
    np.save("x.npy", x)
    run = "run labels.npy --method ecrmc -k 3 --n-neighbors 6"
    assert main(f"{run} --features x.npy -o out.npy".split()) == 0
    np.testing.assert_array_equal(np.load("out.npy"), expected)
    record = json.loads(Path("out.npy.json").read_text())
    assert (record["features"], record["n_neighbors"]) == ("x.npy", 6)
    capsys.readouterr()
    assert main(f"{run} --features x.npy --scheduler threads".split()) == 2
    assert "--scheduler=threads is for work in chunks" in capsys.readouterr().err


def test_what_it_cannot_do_without_is_asked_for(monkeypatch):
    labels, x = blobs()
    refused(lambda: ge.ECRMC(3).fit(labels), TypeError, "features are not given", "fit(labels, features=…)")
    refused(lambda: ge.consensus(labels, 3, method="ecrmc"), TypeError, "features are not given")
    refused(lambda: ge.consensus(labels, 3, method="eac", features=x), TypeError, "features were given", "EAC")
    refused(lambda: ge.ECRMC(3).fit(labels, features=x[1:]), ValueError, "features have 79 rows", "80 objects")
    for n_neighbors, kind, said in ((80, ValueError, "from 1 to 79"), (2.5, TypeError, "a whole number")):
        est = ge.ECRMC(3, n_neighbors=n_neighbors)
        refused(lambda est=est: est.fit(labels, features=x), kind, f"n_neighbors must be {said}")
    monkeypatch.setenv("GPUENS_MEMORY", "100kB")
    refused(lambda: ge.ECRMC(3).fit(labels, features=x), MemoryError)


def test_labels_in_chunks_are_refused():
    da = pytest.importorskip("dask.array")
    labels, x = blobs()
    chunks = da.from_array(labels, chunks=(20, 7))
    refused(lambda: ge.ECRMC(3).fit(chunks, features=x), TypeError, "labels are in chunks", "labels.compute()")
    fitted = ge.ECRMC(3).fit(labels, features=x)
    refused(lambda: ge.distributed.fit(fitted, chunks), TypeError, "labels are in chunks", "labels.compute()")


def test_structure_that_only_the_features_show():
    """Base clusterings cut two rings into arcs; only neighbours in the features show which arcs belong together."""
    rng = np.random.default_rng(0)
    angle, truth = rng.uniform(0, 2 * np.pi, 600), np.repeat([0, 1], 300)
    radius = np.where(truth == 0, 1.0, 3.0) + 0.05 * rng.standard_normal(600)
    x = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    labels = ge.generate.kmeans_ensemble(x, 10, (20, 30), random_state=0)
    assert ge.metrics.ari(ge.ECRMC(2, n_neighbors=8).fit_predict(labels, features=x), truth) == 1.0
