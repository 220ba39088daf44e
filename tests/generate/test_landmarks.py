"""Landmark spectral clusterings: a literal graph and cut, invariances, unusual features, error messages."""

import errno
import json
import os
import shutil

import numpy as np
import oracles
import pandas as pd
import pytest
from conftest import peak_of
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs, make_moons

import gpuens as ge
from gpuens import cli
from gpuens.generate import landmark_cut, landmark_ensemble, landmark_graph, mixed_ensemble, shares
from gpuens.generate.landmark_graph import Landmarks, graph_of
from gpuens.generate.landmark_lists import LandmarkLists
from gpuens.generate.sparse_landmarks import Turned, nearest_of_stored
from gpuens.io import atomic
from gpuens.kmeans.points import Points, Stored
from gpuens.labels.features import as_features


def features(n=300, d=5, seed=0):
    return make_blobs(n, d, centers=6, cluster_std=2.0, random_state=seed)[0].astype(np.float32)


def labels_of(X, **given):
    return landmark_ensemble(X, **{"n_clusterings": 2, "n_clusters": 6, "n_landmarks": 50} | given).to_array()


def all_points(X):
    return Points.of(X).at(np.arange(X.shape[0]))


def same_graph(points, own, n_neighbors, **tolerance):
    """Compare the graph of points and landmarks with the literal one."""
    found = graph_of(points, own, n_neighbors)
    groups = np.split(own.groups.ids, own.groups.begins[1:-1])
    x, landmarks, centers = (a.astype(float) for a in (points.at(np.arange(300)), own.points, own.centers))
    ids, distances, sigma = oracles.landmark_graph(x, landmarks, centers, groups, n_neighbors)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(np.sqrt(found.squares), distances, **tolerance)
    assert found.sigma == pytest.approx(sigma, rel=1e-6)


def landmarks_of(X, p=40, n_neighbors=3, seed=0, n_objects=10**6):
    return Landmarks.of_sample(all_points(X), p, n_neighbors, n_objects, np.random.default_rng(seed))


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e30, 1e300])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_points_are_features_around_0_that_nothing_overflows(size, offset):
    X = (np.random.default_rng(0).normal(size=(500, 3)) + offset) * size
    points = all_points(X)
    assert 0.5 <= np.abs(points).max() <= 1.0
    expected = (X / size - offset) - (X / size - offset).mean(axis=0)
    np.testing.assert_allclose(points / points[0, 0], expected / expected[0, 0], rtol=1e-4, atol=1e-4)


def test_the_size_of_features_does_not_matter(tmp_path):
    X = features(400).astype(np.float64)
    labels = labels_of(X)
    for size in (2.0**-900, 2.0**900):
        np.testing.assert_array_equal(labels_of(X * size), labels)
    for size, dtype in ((2.0**-960, np.float64), (2.0**-120, np.float32), (2.0**110, np.float32)):
        rounded = X.astype(np.float32).astype(dtype)
        np.save(tmp_path / "features.npy", rounded * dtype(size))
        found = labels_of(np.load(tmp_path / "features.npy", mmap_mode="r"))
        np.testing.assert_array_equal(found, labels_of(rounded))
    for size, dtype in ((1e-30, np.float32), (1e30, np.float32), (1e-42, np.float32), (1e-312, np.float64)):
        assert np.mean(labels_of((X * size).astype(dtype)) == labels) > 0.99
    # an offset that float32 cannot hold
    assert np.mean(labels_of(X + 1e9) == labels) > 0.95


def test_landmarks_are_centers_of_five_iterations_from_objects_drawn():
    X = all_points(features())
    rng = np.random.default_rng(3)
    first = np.random.default_rng(3).choice(len(X), 40, replace=False)
    found = Landmarks.of_sample(X, 40, 3, len(X), rng).points
    np.testing.assert_allclose(found, oracles.lloyd(X.astype(float), X[first].astype(float), 5), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("d", [1, 2, 5, 19])
@pytest.mark.parametrize(("p", "n_neighbors"), [(40, 3), (90, 5), (7, 7), (1, 1)])
def test_the_graph_is_the_literal_one(d, p, n_neighbors):
    X = features(d=d, seed=d)
    own = landmarks_of(X, p, n_neighbors)
    assert sorted(own.groups.ids.tolist()) == list(range(p))
    same_graph(Points.of(X), own, n_neighbors, rtol=1e-5, atol=1e-5)


def test_landmarks_tell_apart_what_lies_far_from_the_mean():
    """Products of float32 coordinates near 1 would hide differences of 1e-5."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1e6, 1e6], size=(2000, 1)) * [1.0, 0.0] + 10.0 * rng.integers(10, size=(2000, 1)) * [0.0, 1.0]
    points = all_points(X)
    landmarks = np.unique(Landmarks.of_sample(points, 400, 3, len(points), rng).points, axis=0)
    distinct = np.unique(points, axis=0)
    assert len(distinct) == 20
    np.testing.assert_allclose(np.unique(landmarks.round(9), axis=0), distinct.round(9), atol=1e-8)


@pytest.mark.parametrize("d", [3, 80])
def test_threads_do_not_change_landmarks(d, monkeypatch):
    X, found = np.random.default_rng(1).normal(size=(5000, d)), set()
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        found.add(landmarks_of(X, 300).points.tobytes())
    assert len(found) == 1


def test_nearly_all_neighbors_are_the_true_ones():
    X = features(2000, 8, seed=1)
    own = landmarks_of(X, 200, 5)
    found = graph_of(Points.of(X), own, 5).ids
    apart = ((all_points(X)[:, None] - own.points) ** 2).sum(axis=2)
    true = np.argsort(apart, axis=1)[:, :5]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(found, true, strict=True)]) > 0.97


@pytest.mark.parametrize("sparse", [False, True])
def test_few_objects_have_their_true_neighbors(sparse):
    X = features(150)
    assert landmarks_of(X, 40, 5, n_objects=160).neighborhoods is None
    assert landmarks_of(X, 40, 5, n_objects=161).neighborhoods is not None
    thin = csr_array(np.hstack([X, np.zeros((150, 200), np.float32)]))  # so wide that few features are stored
    points = Points.of(thin if sparse else X)
    assert points.few_stored == sparse
    x = points.at(np.arange(150))
    own = Landmarks.of_sample(x, 40, 5, 150, np.random.default_rng(0))
    found = graph_of(points, own, 5)
    apart = ((x[:, None].astype(float) - own.points) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found.ids, np.argsort(apart, axis=1)[:, :5])
    np.testing.assert_allclose(found.squares, np.sort(apart, axis=1)[:, :5], rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("k", [2, 6, 20])
def test_the_cut_has_the_literal_eigenvalues_and_points(k):
    X = np.random.default_rng(4).normal(size=(300, 5)).astype(np.float32)
    graph = graph_of(Points.of(X), landmarks_of(X), 3)
    products, values = oracles.landmark_cut(graph.ids, np.sqrt(graph.squares.astype(float)), graph.sigma, 40, k)
    objects = landmark_cut.Tied(graph)
    vectors, found, degree = landmark_cut.leading_of(objects.products(), k)
    objects.embed(landmark_cut.table_of(vectors, degree))
    points = objects.at(slice(None))
    np.testing.assert_allclose(found, values, atol=1e-6)
    assert found[0] == pytest.approx(1.0)
    np.testing.assert_allclose(points @ points.T, products, atol=2e-5)


@pytest.mark.parametrize("k", [1, 5, 16, 17, 40])
def test_labels_and_sums_by_shares_are_those_of_points(k, sizes):
    sizes("generate.shares", CHUNK=64)
    graph = graph_of(Points.of(features()), landmarks_of(features()), 3)
    squares, rng = graph.squares.copy(), np.random.default_rng(k)
    # the scales have the size that they have if objects are far from all landmarks
    table = rng.normal(size=(40, 9)) * 10.0 ** rng.integers(-140, 140, size=(40, 1))
    weights = np.zeros((300, 40))
    np.put_along_axis(weights, graph.ids.astype(int), np.exp(-squares / (2 * graph.sigma**2)), axis=1)
    points = weights @ table
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    centers = rng.normal(size=(k, 9)) / 2
    nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)

    objects = landmark_cut.Tied(graph)
    objects.embed(table)
    np.testing.assert_allclose(objects.at(slice(None)), points, atol=1e-5)
    total, sizes = objects.sums_of(centers)
    np.testing.assert_array_equal(objects.labels, nearest)
    np.testing.assert_allclose(total, [points[nearest == c].sum(axis=0) for c in range(k)], atol=1e-4)
    np.testing.assert_array_equal(sizes[:, 0], np.bincount(nearest, minlength=k))
    assert objects.sums_of(centers) is None  # None means that no label has changed


def test_points_that_rounding_has_left_have_no_direction():
    """Two equally near landmarks have opposite rows. The mean of these rows is zero, apart from rounding."""
    ids, squares = np.array([[0, 1], [0, 2]], dtype=np.uint8), np.ones((2, 2), dtype=np.float32)
    table = shares.LandmarkTable.of(np.array([[1.0, 2.0], [-1.0, -2.0 - 1e-12], [0.0, 0.0]]))
    found = shares.ObjectShares.of(landmark_graph.Graph(ids, squares, 1.0, 3), table).at(slice(None), table.rows)
    np.testing.assert_allclose(found, [[0.0, 0.0], np.array([1.0, 2.0]) / np.sqrt(5.0)], rtol=1e-6)


def test_components_beyond_the_dimensions_have_no_direction():
    X = (np.arange(4).repeat(30)[:, None] * 100 + np.random.default_rng(0).normal(size=(120, 2))).astype(np.float32)
    graph = graph_of(Points.of(X), landmarks_of(X, 20, 2), 2)
    objects = landmark_cut.Tied(graph)
    vectors, values, degree = landmark_cut.leading_of(objects.products(), 2)
    np.testing.assert_allclose(values, 1.0)
    objects.embed(landmark_cut.table_of(vectors, degree))
    lengths = np.linalg.norm(objects.at(slice(None)), axis=1)
    assert set(np.round(lengths, 5).tolist()) <= {0.0, 1.0}


def test_clusterings_depend_on_the_seed_and_their_number_alone(monkeypatch):
    X, given = features(700), {"n_clusters": (3, 9), "n_landmarks": 60}
    labels = labels_of(X, n_clusterings=3, **given)
    np.testing.assert_array_equal(labels_of(X, **given), labels[:, :2])
    assert (labels_of(X, n_clusterings=3, **given, random_state=1) != labels).any()
    for threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        np.testing.assert_array_equal(labels_of(X, n_clusterings=3, **given), labels)


def test_work_that_was_stopped_goes_on(tmp_path, monkeypatch):
    X, folder = features(), tmp_path / "kept"
    given = {"n_clusterings": 4, "n_clusters": (3, 9), "n_landmarks": 40}
    labels = labels_of(X, **given)
    made, cut = [], landmark_cut.cut

    def stopped(objects, task):
        made.append(task)
        if len(made) == 3:
            raise KeyboardInterrupt
        cut(objects, task)

    monkeypatch.setattr(landmark_cut, "cut", stopped)
    monkeypatch.setenv("GPUENS_THREADS", "1")
    with pytest.raises(KeyboardInterrupt):
        labels_of(X, **given, resume=folder)
    np.testing.assert_array_equal(labels_of(X, **given, resume=folder), labels)
    assert len(made) == 2 + 1 + 2
    np.testing.assert_array_equal(labels_of(X, **given | {"n_clusterings": 3}, resume=folder), labels[:, :3])
    assert len(made) == 5
    for other, differ in (({"X": X + 1}, "data"), ({"random_state": 1}, "seed"), ({"n_neighbors": 2}, "n_neighbors")):
        with pytest.raises(ValueError, match=rf"holds other work \({differ} differ\)"):
            labels_of(**{"X": X, **given, "resume": folder, **other})


KEPT = {"n_clusters": 5, "n_landmarks": 40}


def test_a_folder_for_what_is_kept(tmp_path):
    X = features()
    labels = labels_of(X, **KEPT)
    (tmp_path / ".gpuens-1234.part").touch()  # this is the unfinished file of a process that was killed
    np.testing.assert_array_equal(labels_of(X, **KEPT, resume=tmp_path), labels)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file.txt").touch()
    other_seed = {"resume": tmp_path, "random_state": np.random.Generator(np.random.MT19937(0))}
    for given, kind, said in (
        (other_seed, ValueError, r"holds other work \(seed differ\)"),
        ({"resume": tmp_path / "other"}, ValueError, "holds other files"),
        ({"resume": 5}, TypeError, "resume must be the path of a folder, not 5"),
        ({"resume": b"kept"}, TypeError, "resume must be the path of a folder"),
        ({"resume": ""}, ValueError, "resume must name a folder"),
        ({"resume": tmp_path / "new", "random_state": None}, ValueError, "a fresh seed cannot"),
    ):
        with pytest.raises(kind, match=said):
            labels_of(X, **KEPT, **given)


def of_another_work(path):
    labels_of(features(), n_clusters=4, n_landmarks=40, resume=path.parent / "another")
    shutil.copy(path.parent / "another" / path.name, path)


DAMAGES = {
    "no archive": lambda path: path.write_bytes(b"PK"),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "a bit": lambda path: path.write_bytes(bytes(b ^ (i == 300) for i, b in enumerate(path.read_bytes()))),
    "other arrays": lambda path: np.savez(path, sums=np.zeros(3)),
    "three objects": lambda path: np.savez(path, labels=np.zeros(3, dtype=np.uint8)),
    "other labels under the same seal": lambda path: np.savez(
        path, seal=np.load(path)["seal"], labels=np.zeros_like(np.load(path)["labels"])
    ),
    "Python objects": lambda path: np.savez(path, labels=np.array([{}, None], dtype=object)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "other work": of_another_work,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_part_that_is_not_what_was_kept_is_made_again(tmp_path, damage):
    X, given = features(), {**KEPT, "n_clusterings": 3, "resume": tmp_path / "kept"}
    labels = labels_of(X, **given)
    path = tmp_path / "kept" / "landmarks_1.npz"
    before = path.read_bytes()
    DAMAGES[damage](path)
    if damage == "a folder":
        with pytest.raises(IsADirectoryError):
            labels_of(X, **given)
        return
    if damage == "a pipe":
        with pytest.warns(UserWarning, match="landmarks_1.npz' is damaged"), pytest.raises(ValueError, match="a pipe"):
            labels_of(X, **given)
        return
    told = r"landmarks_1.npz' is damaged or belongs to other work; .* computed again"
    with pytest.warns(UserWarning, match=told) as warned:
        again = labels_of(X, **given)
    assert len(warned) == 1
    np.testing.assert_array_equal(again, labels)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(labels_of(X, **given), labels)  # this call gives no warning


@pytest.mark.parametrize("text", ["", "[]", '"text"', "{", "null", "\udcff"])
def test_a_damaged_record_of_the_work_is_written_anew(tmp_path, text):
    X = features()
    labels = labels_of(X, **KEPT, resume=tmp_path)
    before = (tmp_path / "work.json").read_bytes()
    (tmp_path / "work.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.warns(UserWarning, match=r"has a damaged work.json, which is written again"):
        again = labels_of(X, **KEPT, resume=tmp_path)
    np.testing.assert_array_equal(again, labels)
    assert (tmp_path / "work.json").read_bytes() == before


def test_parts_of_other_work_are_not_taken_where_its_record_is_lost(tmp_path):
    X = features()
    labels_of(X, n_clusters=4, n_landmarks=40, resume=tmp_path)
    (tmp_path / "work.json").write_text("{")
    with pytest.warns(UserWarning, match=r"damaged") as warned:
        found = labels_of(X, **KEPT, resume=tmp_path)
    assert len(warned) == 3
    np.testing.assert_array_equal(found, labels_of(X, **KEPT))


def test_of_two_processes_with_other_work_the_second_is_told(tmp_path, monkeypatch):
    """Another process writes its record after this one has looked at the folder, and before it writes its own."""
    X, given = features(), {**KEPT, "n_clusterings": 1, "resume": tmp_path}
    create, held = atomic.create_record, []

    def after_another(path, record):
        monkeypatch.undo()
        labels_of(X, **given)
        held.append((tmp_path / "work.json").read_bytes())
        create(path, record)

    monkeypatch.setattr(atomic, "create_record", after_another)
    with pytest.raises(ValueError, match=r"holds other work \(seed differ\)"):
        labels_of(X, **given, random_state=1)
    assert (tmp_path / "work.json").read_bytes() == held[0]
    assert {path.name for path in tmp_path.iterdir()} == {"work.json", "landmarks_0.npz"}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_what_is_kept_needs_no_links(tmp_path, number, monkeypatch):
    def refuse(*_):
        raise OSError(number, "no links here")

    monkeypatch.setattr(atomic.os, "link", refuse)
    for _ in range(2):
        landmark_ensemble(features(), 1, 5, n_landmarks=40, resume=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"work.json", "landmarks_0.npz"}


def test_blocks_of_features_and_of_objects_change_nothing(sizes):
    X, given = features(700), {"n_clusterings": 3, "n_clusters": (3, 9), "n_landmarks": 60}
    labels = labels_of(X, **given)
    sizes("kmeans.points", BLOCK_ROWS=64)
    np.testing.assert_array_equal(labels_of(X, **given), labels)
    sizes("generate.shares", CHUNK=128)  # another chunk size changes the order of sums, and therefore the rounding
    assert np.mean(labels_of(X, **given) == labels) > 0.95


def test_float64_integers_sparse_matrices_and_frames_are_the_same_features():
    X = np.round(features(400) * 400).astype(np.int64)
    labels = labels_of(X.astype(np.float32))
    for other in (X, X.astype(np.float64), csr_array(X.astype(np.float32)), pd.DataFrame(X)):
        assert np.mean(labels_of(other) == labels) > 0.99


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("d", [3, 40, 900])
def test_sparse_matrices_have_the_points_of_the_arrays(d, dtype, sizes):
    """Points equal those of arrays to the bit, even for empty or full columns, stored zeros, unsorted entries."""
    rng = np.random.default_rng(d)
    dense = np.round(rng.normal(size=(300, d)) * 9) * (rng.random((300, d)) < 0.1)
    # In column 0, the value farthest from the mean is a zero, which is not stored.
    dense[1:, 0], dense[:1, 0], dense[:, 1] = 70, 0, 0
    dense = dense.astype(dtype)
    X = csr_array(dense)
    X.data[-2] = dense[np.nonzero(dense)[0][-2], np.nonzero(dense)[1][-2]] = 0
    ends, last = np.append(X.indptr[:-1], X.nnz + 1), X.data[-1] / 2
    twice = csr_array((np.append(X.data[:-1], [last, last]), np.append(X.indices, X.indices[-1]), ends), shape=X.shape)
    turned = csr_array((X.data[::-1].copy(), X.indices[::-1].copy(), X.nnz - X.indptr[::-1]), shape=X.shape)
    for rows in (2**16, 64, 5):
        sizes("kmeans.points", BLOCK_ROWS=rows)
        for given, expected in ((X, dense), (twice, dense.astype(twice.dtype)), (turned, dense[::-1])):
            found, of_array = (Points.of(as_features(some)) for some in (given, expected))
            assert found.coordinates.scale == of_array.coordinates.scale
            np.testing.assert_array_equal(found.coordinates.mean, of_array.coordinates.mean)
            np.testing.assert_array_equal(found.at(np.arange(300)), of_array.at(np.arange(300)))
            np.testing.assert_array_equal(found.between(slice(7, 50)), of_array.between(slice(7, 50)))
    assert not turned.has_sorted_indices  # the function must not change its input


def sparse_features(n=300, d=160, seed=0):
    """Return sparse features of six groups.

    They have equal rows, a full and an empty column, split and unsorted entries.
    """
    rng = np.random.default_rng(seed)
    dense = rng.normal(2, 1, size=(n, d)) * (rng.random((n, d)) < 0.02)
    for group in range(6):
        dense[group::6, 8 * group : 8 * group + 8] += rng.normal(5, 1, size=(len(dense[group::6]), 8))
        dense[group::6, 8 * group : 8 * group + 8] *= rng.random((len(dense[group::6]), 8)) < 0.5
    dense[3], dense[:, 0], dense[:, 1], dense[7] = 0, 5, 0, dense[13]
    X = csr_array(dense.astype(np.float32))
    ends = np.append(X.indptr[:-1], X.nnz + 1)
    X = csr_array(
        (np.append(X.data[:-1], [X.data[-1] / 2] * 2), np.append(X.indices, X.indices[-1]), ends), shape=X.shape
    )
    X.data[:9], X.indices[:9] = X.data[:9][::-1].copy(), X.indices[:9][::-1].copy()
    return X


@pytest.mark.parametrize(("p", "n_neighbors"), [(40, 3), (90, 5), (7, 7), (1, 1)])
@pytest.mark.parametrize("block_bytes", [2**26, 2**10])
def test_the_graph_of_few_stored_features_is_the_literal_one(p, n_neighbors, block_bytes, sizes):
    """The graph is computed from stored entries alone, without dense points."""
    X = sparse_features()
    own, points = landmarks_of(X.toarray(), p, n_neighbors), Points.of(as_features(X))
    sizes("kmeans.points", BLOCK_BYTES=block_bytes)
    assert points.few_stored
    same_graph(points, own, n_neighbors, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [1, 4])
def test_landmarks_as_near_as_each_other_are_the_same_for_few_stored_features(n):
    """Integer coordinates make distances exact, so that many of them are equal."""
    rng = np.random.default_rng(n)
    X = csr_array(rng.integers(1, 3, size=(90, 40)) * (rng.random((90, 40)) < 0.05), dtype=np.float32)
    base = rng.integers(-1, 2, size=40).astype(np.float32)
    landmarks = rng.integers(-1, 2, size=(12, 40)).astype(np.float32).repeat(2, axis=0)
    lists = LandmarkLists.of([np.arange(24), np.arange(4), np.sort(rng.permutation(24)[:9])])
    of = rng.integers(3, size=90)
    points = np.where(X.toarray() == 0, base, X.toarray())
    stored = Stored(X.indptr, X.indices, X.data, base)
    found = nearest_of_stored(stored, lists, of, Turned.of(landmarks, base), n)
    for own, expected in zip(found, landmark_graph.nearest_landmarks(points, lists, of, landmarks, n), strict=True):
        np.testing.assert_array_equal(own, expected)


def test_labels_do_not_depend_on_how_stored_features_are_compared(monkeypatch, sizes):
    X, given = sparse_features(700, 400), {"n_clusterings": 3, "n_landmarks": 40}
    labels = labels_of(X, **given)
    for threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        np.testing.assert_array_equal(labels_of(X, **given), labels)
    sizes("kmeans.points", FEW_OF=10**9)
    assert np.mean(labels_of(X, **given) == labels) > 0.99


def test_clusters_of_any_shape_are_found():
    """The clusters are two moons, which k-means divides badly."""
    X, y = make_moons(4000, noise=0.07, random_state=0)
    found = ge.HBGF(2).fit(landmark_ensemble(X, 10, (5, 15), n_landmarks=300)).labels_
    assert ge.metrics.nmi(y, found) > 0.9
    of_kmeans = ge.HBGF(2).fit(ge.generate.kmeans_ensemble(X, 10, 2)).labels_
    assert ge.metrics.nmi(y, of_kmeans) < 0.5


@pytest.mark.parametrize(
    ("X", "n_clusters"),
    [
        (np.zeros((50, 3)), 1),
        (np.repeat(np.arange(4.0), 25)[:, None] * 10, 4),
        (np.vstack([features(200), np.full((1, 5), 1e6)]), 5),
        (features(12), 12),
    ],
    ids=["constant", "four points", "an outlier", "few objects"],
)
@pytest.mark.filterwarnings("ignore:.*one cluster")
def test_odd_features_are_clustered(X, n_clusters):
    labels = labels_of(X, n_clusterings=3, n_clusters=n_clusters, n_landmarks=30)
    assert labels.shape == (len(X), 3)
    assert (labels >= 0).all()
    if n_clusters == 4:
        assert [len(set(zip(column, X[:, 0], strict=True))) for column in labels.T] == [4, 4, 4]


def test_more_clusters_than_landmarks_are_as_many_as_points_allow():
    labels = landmark_ensemble(features(200), 2, 50, n_landmarks=10).to_array()
    assert (labels.max(axis=0) < 50).all()


@pytest.mark.parametrize(
    ("given", "kind", "match"),
    [
        ({"X": np.full((9, 2), np.nan)}, ValueError, "finite"),
        ({"X": np.arange(9.0)}, ValueError, "2-D"),
        ({"X": [["a"], ["b"]]}, TypeError, "real numbers"),
        ({"n_landmarks": 0}, ValueError, "n_landmarks"),
        ({"n_neighbors": 1.5}, TypeError, "n_neighbors"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"n_clusters": 500}, ValueError, "clusters of 300 object"),
        ({"n_clusterings": 0}, ValueError, "n_clusterings"),
        ({"names": ["a"]}, ValueError, "names"),
    ],
)
def test_what_is_refused(given, kind, match):
    with pytest.raises(kind, match=match):
        landmark_ensemble(**{"X": features(), "n_clusterings": 2, "n_clusters": 5, **given})


# --- features in memory, in files and on devices ----------------------------------------------------------------------


def mapped(path, X, **more):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, np.asarray(X, **more))
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8", "float16", "uint8", "int64", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_files_of_any_type_are_the_same_features(tmp_path, dtype, order, sizes):
    sizes("kmeans.points", BLOCK_ROWS=64)
    X = np.abs(np.round(features(500))).astype(dtype)
    file = mapped(tmp_path / "X.npy", X, order=order)
    assert isinstance(file, np.memmap)
    expected = labels_of(X, n_clusters=4)
    for _ in range(2):
        np.testing.assert_array_equal(labels_of(file, n_clusters=4, resume=tmp_path / "kept"), expected)


def test_integers_beyond_float32_are_read_in_float64(tmp_path):
    X = np.random.default_rng(0).integers(0, 40, size=(300, 3)) + 2**40
    file = mapped(tmp_path / "X.npy", X)
    assert Points.of(file).coordinates.real == np.float64
    np.testing.assert_array_equal(labels_of(file, n_clusters=4), labels_of(X - 2**40, n_clusters=4))


def test_files_are_not_read_whole(tmp_path, sizes):
    """The file has 32 MB, which would be 64 MB as float32. Only small blocks of it may be in memory at any time."""
    sizes("kmeans.points", BLOCK_BYTES=2**20)
    X = np.random.default_rng(0).integers(0, 9, size=(20_000, 800), dtype=np.int16)
    file = mapped(tmp_path / "X.npy", np.asfortranarray(X))
    landmark_ensemble(file[:500], 1, 4, n_landmarks=20)
    assert peak_of(lambda: landmark_ensemble(file, 1, 4, n_landmarks=20, resume=tmp_path / "kept")) < 20e6


def test_a_value_of_a_file_that_is_no_number_is_named(tmp_path, monkeypatch):
    X = features().astype(np.float16)
    X[[17, 217], 3] = np.nan
    with pytest.raises(ValueError, match=r"2 value\(s\) are NaN or infinite, the first at row 17, column 3"):
        landmark_ensemble(mapped(tmp_path / "X.npy", X), 2, 5)


@pytest.mark.parametrize("d", [1, 5, 70])
def test_kernels_find_the_same(on_device, d, sizes):
    device, put = on_device
    sizes("kmeans.points", BLOCK_ROWS=128)
    X, given = features(400, d), {"n_clusterings": 2, "n_clusters": (3, 9), "n_landmarks": 40, "n_neighbors": 3}
    found = landmark_ensemble(put(X), **given, device=device)
    assert found.device_kind == ("cuda" if device == "cuda" else "cpu")
    # eigenvectors of equal eigenvalues, of separate components, are not unique: clusters may have other numbers
    for own, expected in zip(found.to_array().T, labels_of(X, **given).T, strict=True):
        assert ge.metrics.ari(own, expected) > 0.98


def test_features_in_gpu_memory_stay_there(fake_cupy, tmp_path):
    X = features(15_000, 9)
    given = {"n_clusterings": 2, "n_clusters": (3, 9), "n_landmarks": 40, "n_neighbors": 3}
    landmark_ensemble(fake_cupy.asarray(X), **given)
    fake_cupy.reset()
    found = landmark_ensemble(fake_cupy.asarray(X), **given)
    assert isinstance(found.codes_on("cuda"), fake_cupy.ndarray)
    # this is less than the bytes of the features or of a clustering's labels
    assert fake_cupy.traffic.to_host.largest < 15_000
    kept = landmark_ensemble(fake_cupy.asarray(X), **given, resume=tmp_path)
    again = landmark_ensemble(fake_cupy.asarray(X), **given, resume=tmp_path)
    for other in (kept, again, landmark_ensemble(X, **given, device="cuda")):
        np.testing.assert_array_equal(other.to_array(), found.to_array())


CHUNKED = {"n_clusterings": 3, "n_clusters": (3, 9), "n_landmarks": 60}


@pytest.fixture
def in_chunks():
    return pytest.importorskip("dask.array").from_array


@pytest.mark.parametrize("sizes", [(700,), (250, 250, 200), (1, 0, 399, 300)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_chunks_are_the_same_features(sizes, dtype, in_chunks):
    X = np.round(4 * features(700)).astype(dtype)
    X[:300] = np.abs(X[:300])  # the first rows are positive, so that chunks differ in their signs
    found = landmark_ensemble(in_chunks(X, chunks=(sizes, (2, 3))), **CHUNKED)
    assert found.chunks == (tuple(size for size in sizes if size), (3,))
    assert found.dtype == np.uint8
    expected = landmark_ensemble(X, **CHUNKED).to_array()
    assert np.mean(found.compute() == expected) > 0.99
    if len(sizes) == 1:
        np.testing.assert_array_equal(found.compute(), expected)


def test_integers_of_one_chunk_decide_for_all(in_chunks):
    X = np.random.default_rng(0).integers(0, 40, size=(600, 3))
    X[599] = 2**30 + 1
    found = landmark_ensemble(in_chunks(X, chunks=(200, 3)), **CHUNKED).compute()
    assert np.mean(found == landmark_ensemble(X, **CHUNKED).to_array()) > 0.99


def test_clusterings_of_chunks_are_kept(in_chunks, tmp_path):
    X = features(700)
    chunks = in_chunks(X, chunks=(250, 5))
    expected = landmark_ensemble(chunks, **CHUNKED).compute()
    np.testing.assert_array_equal(landmark_ensemble(chunks, **CHUNKED, resume=tmp_path).compute(), expected)
    made = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    np.testing.assert_array_equal(landmark_ensemble(chunks, **CHUNKED, resume=tmp_path).compute(), expected)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == made
    with pytest.raises(ValueError, match=r"holds other work \(data differ\)"):
        landmark_ensemble(in_chunks(X + 1, chunks=(250, 5)), **CHUNKED, resume=tmp_path)


def test_chunks_lead_to_a_consensus(in_chunks):
    X, y = make_moons(3000, noise=0.05, random_state=0)
    labels = landmark_ensemble(in_chunks(X, chunks=(1000, 2)), 10, (5, 15), n_landmarks=300)
    assert ge.metrics.nmi(y, ge.HBGF(2).fit(labels).labels_.compute()) > 0.9


def test_chunks_on_a_device(in_chunks, fake_cupy):
    X = features(400)
    chunks = in_chunks(X, chunks=(150, 5))
    expected = landmark_ensemble(chunks, **CHUNKED).compute()
    assert np.mean(landmark_ensemble(chunks, **CHUNKED, device="cuda").compute() == expected) > 0.99
    on_gpus = chunks.map_blocks(fake_cupy.asarray, dtype=X.dtype, meta=fake_cupy.asarray(X[:0]))
    found = landmark_ensemble(on_gpus, **CHUNKED)
    parts = [part.compute() for part in found.to_delayed().ravel()]
    assert all(isinstance(part, fake_cupy.ndarray) for part in parts)
    assert np.mean(np.concatenate(list(map(fake_cupy.asnumpy, parts))) == expected) > 0.99


def test_chunks_that_are_refused(in_chunks, monkeypatch):
    X = features()
    chunks = in_chunks(X, chunks=(100, 5))
    for given, said in (
        ({"names": ["a", "b"]}, "leave names out"),
        ({"n_clusters": 500}, "clusters of 300 object"),
        ({"device": "gpu"}, "device"),
    ):
        with pytest.raises(ValueError, match=said):
            landmark_ensemble(chunks, 2, **{"n_clusters": 5, **given})
    X[117, 2] = np.nan
    with pytest.raises(ValueError, match=r"chunk 1 \(objects 100 … 199\): X must be finite.*row 17, column 2"):
        landmark_ensemble(in_chunks(X, chunks=(100, 5)), 2, 5)
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    for data, of in ((features(), "300 objects with"), (chunks, "chunks with up to 100 objects and")):
        with pytest.raises(MemoryError, match=rf"^300 landmarks of {of} 5 features"):
            landmark_ensemble(data, 2, 5)


def test_the_command_line_makes_them(tmp_path, capsys):
    X = features()
    np.save(tmp_path / "X.npy", X)
    out = str(tmp_path / "labels.npy")
    words = ["generate", str(tmp_path / "X.npy"), "-o", out, "--kind", "landmark", "-k", "3:6", "--n-clusterings", "3"]
    assert cli.main([*words, "--n-landmarks", "30"]) == 0
    assert "landmark: 3 clusterings" in capsys.readouterr().out
    expected = landmark_ensemble(X, 3, (3, 6), n_landmarks=30).to_array()
    np.testing.assert_array_equal(np.load(out), expected)
    assert json.loads((tmp_path / "labels.npy.json").read_text())["method"] == "landmark_ensemble"


def test_the_command_line_refuses_options_of_the_other_kind(tmp_path, capsys):
    np.save(tmp_path / "X.npy", features())
    words = ["generate", str(tmp_path / "X.npy"), "-o", str(tmp_path / "labels.npy")]
    for more, said in (
        (["--n-landmarks", "30"], "--kind kmeans takes no --n-landmarks; use it with --kind landmark."),
        (["--kind", "landmark", "--init", "random"], "--kind landmark takes no --init; use it with --kind kmeans."),
    ):
        assert cli.main([*words, *more]) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "labels.npy").exists()


def test_one_call_from_features_to_a_consensus():
    X = features(600)
    found = ge.cluster(X, 6, n_clusterings=4, random_state=3)
    ensemble = mixed_ensemble(X, 4, 6, random_state=3)
    np.testing.assert_array_equal(found.ensemble_.to_array(), ensemble.to_array())
    assert isinstance(found, ge.LWGP)
    assert found.n_clusters_ == 6
    np.testing.assert_array_equal(ge.cluster(X, 6, n_clusterings=4, random_state=3).labels_, found.labels_)
    assert isinstance(ge.cluster(X, 5, method="eac", kind="kmeans", n_clusterings=4), ge.EAC)
    for given, kind, said in (
        ({"kind": "spectral"}, ValueError, "kind"),
        ({"method": "hgbf"}, ValueError, "hbgf"),
        ({"kind": "kmeans", "resume": "kept"}, ValueError, "resume='kept' is for kind='mixed' and kind='landmark'"),
    ):
        with pytest.raises(kind, match=said):
            ge.cluster(**{"X": X, "n_clusters": 3, **given})


@pytest.mark.usefixtures("unpainted")
def test_the_command_line_goes_from_features_to_a_consensus(tmp_path, capsys):
    X = features(600)
    pd.DataFrame(X).assign(name=[f"c{i}" for i in range(600)]).to_csv(tmp_path / "X.csv", index=False)
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    words = ["cluster", str(tmp_path / "X.csv"), "--id-column", "name", "-k", "6", "--n-clusterings", "4"]
    assert (
        cli.main([*words, "-o", str(out), "--evidence", "--report", str(page), "--resume", str(tmp_path / "kept")]) == 0
    )
    assert "mixed: 4 clusterings" in capsys.readouterr().out
    table = pd.read_csv(out)
    np.testing.assert_array_equal(table["label"], ge.cluster(X, 6, n_clusterings=4).labels_)
    assert table["name"].tolist()[:2] == ["c0", "c1"]
    assert table["confidence"].between(0, 1).all()
    assert json.loads((tmp_path / "out.csv.json").read_text())["n_clusters"] == 6
    assert page.read_text().startswith("<!")
    assert len(list((tmp_path / "kept").glob("*.npz"))) == 2  # each file holds two clusterings


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_points_that_are_computed_once_are_the_same(dtype, tmp_path):
    X = (features(300) * 50).astype(dtype)
    points = Points.of(X)
    kept = points.within(4 * X.size)
    assert kept.computed
    np.testing.assert_array_equal(kept.between(slice(10, 90)), points.between(slice(10, 90)))
    np.testing.assert_array_equal(kept.at(np.arange(0, 300, 7)), points.at(np.arange(0, 300, 7)))
    assert points.within(4 * X.size - 1) is points
    np.save(tmp_path / "X.npy", X)
    for other in (np.load(tmp_path / "X.npy", mmap_mode="r"), csr_array(X)):
        assert not Points.of(as_features(other, "cpu", mapped=True)).within(10**9).computed
