"""Base clusterings: results agree with the settings, and depend on nothing but the settings and the seed."""

import contextlib
import gc
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from conftest import one_sentence, refused, why_no_gpu

from gpuens import metrics
from gpuens.generate import kmeans as by_kmeans
from gpuens.generate import kmeans_ensemble
from gpuens.generate.views import Draws, View
from gpuens.kmeans import nested
from gpuens.labels.features import as_features
from gpuens.runtime import progress


def blobs(n=300, d=5, k=6, spread=0.3, seed=0):
    """Return points around k far-apart centres, and the number of each point's centre."""
    rng = np.random.default_rng(seed)
    of = np.arange(n) % k
    return (10 * rng.standard_normal((k, d)))[of] + spread * rng.standard_normal((n, d)), of


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


def inertia(points, codes):
    own = [points[codes == c] for c in np.unique(codes)]
    return sum(((members - members.mean(axis=0)) ** 2).sum() for members in own)


def same(a, b):
    return a.codes.dtype == b.codes.dtype and (a.codes == b.codes).all()


X, CENTRE = blobs()
DISTINCT = {  # settings that together use every kind of random draw
    "full": {},
    "minibatch": {"algorithm": "minibatch"},
    "random start": {"init": "random"},
    "objects": {"objects": 0.5},
    "objects, minibatch": {"objects": 0.5, "algorithm": "minibatch", "n_init": 2},
    "features": {"features": 0.5},
    "projection": {"projection": 3},
    "all at once": {"objects": 100, "features": 4, "projection": 2, "n_init": 2},
}


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("algorithm", ["full", "minibatch"])
@pytest.mark.parametrize("options", [{}, {"objects": 0.3}, {"projection": 4}, {"n_init": 5}], ids=str)
def test_finds_clusters_that_are_there(algorithm, options, wrap):
    points, centre = blobs(n=400, d=8, k=3, spread=0.05)
    ens = kmeans_ensemble(wrap(points), 5, 3, algorithm=algorithm, **options)
    found = [same_partition(column, centre) for column in ens.codes.T]
    assert all(found) if "n_init" in options else any(found)


@pytest.mark.parametrize("options", DISTINCT.values(), ids=DISTINCT)
def test_clusterings_depend_on_the_seed_and_their_number_alone(options):
    first, again, other = (kmeans_ensemble(NOISE, 6, (5, 15), random_state=seed, **options) for seed in (3, 3, 4))
    assert same(first, again)
    assert not same(first, other)
    assert len({tuple(column) for column in first.codes.T.tolist()}) == 6  # no two clusterings are equal
    few = kmeans_ensemble(NOISE, 2, (5, 15), random_state=3, **options)
    np.testing.assert_array_equal(first.codes[:, :2], few.codes)


@pytest.mark.parametrize("algorithm", ["full", "minibatch"])
@pytest.mark.parametrize("objects", [1.0, 60])
def test_every_object_is_nearest_to_its_own_centroid(algorithm, objects, monkeypatch):
    """Objects outside the sample, too, have scikit-learn's nearest centroid (test_nested tests gpuens's k-means)."""
    from sklearn import cluster

    models = []
    name = "KMeans" if algorithm == "full" else "MiniBatchKMeans"
    original = getattr(cluster, name)
    monkeypatch.setattr(cluster, name, lambda *a, **options: models.append(original(*a, **options)) or models[-1])
    monkeypatch.setenv("GPUENS_THREADS", "1")  # one thread fits the models in the order of the clusterings
    ens = kmeans_ensemble(scipy.sparse.csr_array(X), 4, 9, objects=objects, algorithm=algorithm)
    assert len(models) == 4
    for m, model in enumerate(models):
        distances = ((X[:, None, :] - model.cluster_centers_[None]) ** 2).sum(axis=2)
        used, codes = np.unique(distances.argmin(axis=1), return_inverse=True)
        assert len(used) == len(ens.categories[m])
        assert ens.codes[:, m].tolist() == codes.tolist()


def test_only_the_drawn_objects_and_features_are_fitted():
    draws = Draws(300, 5, 50, 3, None)
    seen = [View(X, *draws.of(rng)).at(slice(None)) for rng in np.random.default_rng(0).spawn(3)]
    assert [points.shape for points in seen] == [(50, 3)] * 3
    drawn = []
    for points in seen:
        columns = [int(np.flatnonzero((points[0, j] == X).any(axis=0))[0]) for j in range(3)]
        rows = [int(np.flatnonzero((X[:, columns] == row).all(axis=1))[0]) for row in points]
        assert len(set(columns)) == 3
        assert len(set(rows)) == 50
        drawn.append((tuple(columns), tuple(rows)))
    assert len(set(drawn)) == 3  # each clustering has a draw of its own


def test_projections_are_gaussian_and_differ():
    draws = Draws(400, 400, 400, 400, 50)
    first, second = (View(np.eye(400), *draws.of(rng)).at(slice(None)) for rng in np.random.default_rng(0).spawn(2))
    assert first.shape == (400, 50)
    assert abs(np.linalg.norm(first, axis=1).mean() - 1) < 0.02  # the projection keeps the mean length of rows
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("n_clusters", "low", "high"),
    [
        (4, 4, 4),
        ("sqrt", 17, 17),
        ((2, "sqrt"), 2, 17),
        ((3, 5), 3, 5),
        (["sqrt", 20], 17, 20),
        ((np.int64(3), 3), 3, 3),
    ],
)
def test_k(n_clusters, low, high):
    ens = kmeans_ensemble(X, 60, n_clusters, max_iter=2)  # for 300 objects, the largest k is ⌊√300⌋ = 17
    k = np.diff(ens.offsets)
    assert k.min() >= low
    assert k.max() <= high
    if high - low < 5:
        assert set(k) == set(range(low, high + 1))  # both ends of the range are drawn
    else:
        assert len(set(k)) > 8


@pytest.mark.parametrize("algorithm", ["full", "minibatch"])
def test_never_more_clusters_than_distinct_points(algorithm):
    points = np.repeat([[0.0, 0], [1, 0], [5, 5]], [40, 30, 20], axis=0)
    ens = kmeans_ensemble(points, 4, (2, 9), algorithm=algorithm, random_state=1)  # a warning would be an error
    k = np.diff(ens.offsets)
    assert k.max() == 3
    for m in np.flatnonzero(k == 3):
        assert same_partition(ens.codes[:, m], points[:, 0])


def test_a_single_distinct_point():
    with pytest.warns(UserWarning, match="constant clusterings"):
        ens = kmeans_ensemble(np.ones((30, 2)), 2, 3)
    assert ens.n_clusters == 2


def test_auto_chooses_by_the_number_of_fitted_objects(monkeypatch):
    monkeypatch.setattr(nested, "ALL_UP_TO", 100)
    monkeypatch.setattr(nested, "FIRST", 100)
    monkeypatch.setattr(nested, "FIRST_PER_CLUSTER", 1)
    options = {"n_clusterings": 3, "n_clusters": 12, "init": "random"}
    full, large = (kmeans_ensemble(X, algorithm=a, **options) for a in ("full", "nested"))
    assert not same(full, large)
    assert same(kmeans_ensemble(X, **options), large)
    sparse = scipy.sparse.csr_array(X)
    assert same(kmeans_ensemble(sparse, **options), kmeans_ensemble(sparse, algorithm="minibatch", **options))
    assert same(kmeans_ensemble(X[:100], **options), kmeans_ensemble(X[:100], algorithm="full", **options))
    few = kmeans_ensemble(X, objects=100, **options)
    assert same(few, kmeans_ensemble(X, objects=100, algorithm="full", **options))


def test_mini_batches_come_close_to_full_kmeans():
    points, _ = blobs(n=5000, d=6, k=40, spread=3.0)
    batches, full = (
        np.mean([inertia(points, codes) for codes in kmeans_ensemble(points, 3, 20, algorithm=algorithm).codes.T])
        for algorithm in ("minibatch", "full")
    )
    assert batches < 1.1 * full


# --- seeds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["full", "minibatch"])
def test_threads_change_nothing(algorithm, monkeypatch):
    noise = np.random.default_rng(5).standard_normal((3000, 20)).astype(np.float32)
    ensembles = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        ensembles.append(kmeans_ensemble(noise, 5, (20, 40), algorithm=algorithm, objects=0.9, max_iter=10))
    assert same(ensembles[0], ensembles[1])
    assert same(ensembles[0], ensembles[2])


def test_kinds_of_random_state():
    one = kmeans_ensemble(X, 2, 12, random_state=7)
    assert same(one, kmeans_ensemble(X, 2, 12, random_state=np.int64(7)))
    assert same(one, kmeans_ensemble(X, 2, 12, random_state=np.random.SeedSequence(7)))
    rng = np.random.default_rng(7)
    assert same(one, kmeans_ensemble(X, 2, 12, random_state=rng))
    # the second call continues the stream of the generator
    assert not same(one, kmeans_ensemble(X, 2, 12, random_state=rng))
    assert not same(one, kmeans_ensemble(X, 2, 12, random_state=None))


def test_global_state_is_left_alone():
    from threadpoolctl import threadpool_info

    np.random.seed(0)  # noqa: NPY002
    before = [pool["num_threads"] for pool in threadpool_info()], list(warnings.filters)
    copy = X.copy()
    kmeans_ensemble(X, 4, 5)
    assert ([pool["num_threads"] for pool in threadpool_info()], list(warnings.filters)) == before
    assert np.random.randint(10**9) == 209652396  # noqa: NPY002
    np.testing.assert_array_equal(X, copy)


# --- kinds of features ------------------------------------------------------------------------------------------------


DTYPES = [
    ("float32", 9, "float32"),
    ("float64", 9, "float64"),
    ("bool", 1, "float32"),
    ("int16", 32767, "float32"),
    ("uint8", 255, "float32"),
    ("int32", 2**24 - 1, "float32"),
    ("int32", 2**24, "float64"),
    ("int64", -(2**24) + 1, "float32"),
    ("int64", -(2**24), "float64"),
    ("uint64", 2**40, "float64"),
    ("float16", 9, "float32"),
    ("longdouble", 9, "float64"),
    (">f8", 9, "float64"),
]


@pytest.mark.parametrize(("dtype", "top", "expected"), DTYPES)
def test_dtypes(dtype, top, expected, fake_cupy):
    values = np.array([[0, top], [1, 1], [0, 0]], dtype=dtype)
    features = as_features(values)
    assert features.dtype.isnative
    np.testing.assert_array_equal(features, values.astype(expected), strict=True)
    if dtype not in ("longdouble", ">f8"):
        on_gpu = as_features(fake_cupy.asarray(values, order="F"), "cuda")
        assert isinstance(on_gpu, fake_cupy.ndarray)
        assert on_gpu.flags.c_contiguous
        np.testing.assert_array_equal(fake_cupy.asnumpy(on_gpu), values.astype(expected), strict=True)
    if dtype not in ("longdouble", ">f8", "float16"):
        sparse = as_features(scipy.sparse.csc_array(values))
        assert sparse.format == "csr"
        np.testing.assert_array_equal(sparse.toarray(), values.astype(expected), strict=True)


def test_floats_are_not_copied(fake_cupy):
    for dtype in (np.float32, np.float64):
        values = X.astype(dtype)
        assert as_features(values) is values
    sparse, on_gpu = scipy.sparse.csr_matrix(X), fake_cupy.asarray(X)
    assert np.shares_memory(as_features(sparse).data, sparse.data)
    assert as_features(on_gpu, "cuda") is on_gpu


SIZES = [(power, np.float64) for power in (-1000, -660, 512, 1000)] + [(power, np.float32) for power in (-110, 64, 110)]


@pytest.mark.parametrize(("power", "dtype"), SIZES)
def test_the_size_of_features_changes_no_label(power, dtype, fake_cupy):
    """The square of a large number overflows, and that of a small one becomes 0, in NumPy and in scikit-learn."""
    values = X.astype(dtype)
    large = values * dtype(2.0**power)
    for options in [*DISTINCT.values(), {"algorithm": "nested"}]:
        expected = kmeans_ensemble(values, 4, (2, 9), **options)
        assert same(kmeans_ensemble(large, 4, (2, 9), **options), expected)
    for where in (scipy.sparse.csr_array, pd.DataFrame, fake_cupy.asarray):
        assert same(kmeans_ensemble(where(large), 3, 5), kmeans_ensemble(where(values), 3, 5))
    on_device = kmeans_ensemble(values, 3, 5, device="emulated")
    assert same(kmeans_ensemble(large, 3, 5, device="emulated"), on_device)


@pytest.mark.parametrize("factor", [1e154, 1e300, 1e-200, 1e-310])
def test_two_groups_of_any_size_are_two_clusters(factor):
    values = np.concatenate([X[:100] + 99, X[100:] - 99]) * factor
    for algorithm in ("full", "minibatch", "nested"):
        columns = kmeans_ensemble(values, 3, 2, algorithm=algorithm).to_array().T
        assert {metrics.ari(column, np.arange(300) < 100) for column in columns} == {1.0}


def test_features_that_vanish_beside_one_are_refused():
    for fill, dtype in ((1e300, np.float64), (9.97e36, np.float32)):  # 9.97e36 is netCDF's fill value
        values = X.astype(dtype)
        values[3, 1] = fill
        for given in (values, scipy.sparse.csr_array(values)):
            refused(
                lambda given=given: kmeans_ensemble(given), ValueError, "X: beside a value of size", "stand for missing"
            )
    values = np.array([[0.0, 1e300], [1e300, 0.0], [1e-300, 1e300]])
    assert as_features(values).max() == values.max() * 2.0 ** (256 - 997)
    np.testing.assert_array_equal(as_features(values, part=True), values)


@pytest.mark.parametrize(
    "wrap",
    [
        np.asfortranarray,
        np.ndarray.tolist,
        pd.DataFrame,
        lambda values: pd.DataFrame(values).convert_dtypes(),
        np.ma.array,
        lambda values: np.repeat(values, 2, axis=0)[::2],
    ],
    ids=["F", "list", "frame", "nullable frame", "masked", "strided"],
)
def test_containers(wrap):
    values = np.round(X)
    assert same(kmeans_ensemble(wrap(values), 3, 5), kmeans_ensemble(values, 3, 5))


def test_frame_of_mixed_numbers():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": [True, False, True]})
    frame["d"] = pd.array([1, 2, 3], dtype="Int64")
    features = as_features(frame)
    assert features.tolist() == [[1, 0.5, 1, 1], [2, 1.5, 0, 2], [3, 2.5, 1, 3]]
    assert features.dtype == np.float64


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
@pytest.mark.parametrize("options", DISTINCT.values(), ids=DISTINCT)
def test_sparse(kind, options):
    wide = kind(np.where(X > 0, np.round(X), 0))
    if wide.format == "csr":
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    ens, again = (kmeans_ensemble(wide, 3, (3, 8), **options) for _ in range(2))
    assert same(ens, again)
    assert ens.n_objects == 300
    assert np.diff(ens.offsets).min() >= 2


# --- devices ----------------------------------------------------------------------------------------------------------


NOISE = np.random.default_rng(5).standard_normal((300, 5))  # results on noise change with any difference in the draws
# 300 objects at nine places; no place is half-way between two other places
LUMPS = np.random.default_rng(6).integers(0, 3, (300, 2)) ** 1.3
ON_DEVICE = {name: options for name, options in DISTINCT.items() if options.get("algorithm") != "minibatch"} | {
    "full": {"algorithm": "full"},
    "starts": {"n_init": 4},
    "objects and a projection": {"objects": 0.7, "projection": 2},
    "few iterations": {"max_iter": 2},
}


@pytest.fixture
def on_device(on_device, sizes):
    """Process features in small chunks; the last is incomplete."""
    sizes("kmeans.lloyd", CHUNK=128)
    sizes("generate.kmeans", CHUNK=128)
    return on_device


@pytest.mark.parametrize("points", [NOISE, X.astype(np.float32)], ids=["float64", "float32"])
@pytest.mark.parametrize("options", ON_DEVICE.values(), ids=ON_DEVICE)
def test_the_device_gives_what_the_cpu_gives(on_device, options, points):
    device, put = on_device
    found, expected = (
        kmeans_ensemble(at, 4, (2, 9), random_state=3, device=where, **options)
        for at, where in ((put(points), device), (points, "cpu"))
    )
    # up to 2 of 1,200 labels of float32 differ, because rounding decides for objects half-way between two centroids
    assert (found.codes != expected.codes).sum() <= (2 if points.dtype == np.float32 else 0)
    assert found.codes.dtype == expected.codes.dtype


@pytest.mark.parametrize("options", [{}, {"init": "random"}, {"init": "random", "objects": 0.5, "n_init": 2}], ids=str)
def test_few_distinct_points_on_the_device(on_device, options):
    """An empty cluster takes an object of another; rounding decides among objects, or centroids, at one place."""
    device, put = on_device
    for k in (7, (9, 14)):
        for column in kmeans_ensemble(put(LUMPS), 6, k, device=device, **options).codes.T:
            # objects at the same place are in the same cluster
            assert len(np.unique(np.column_stack([LUMPS, column]), axis=0)) == 9
            assert len(np.unique(column)) == (7 if k == 7 else 9)


@pytest.mark.parametrize("options", [{}, {"n_init": 2, "features": 3}], ids=str)
def test_nested_samples_take_the_place_of_mini_batches_on_a_device(on_device, options):
    device, put = on_device
    with pytest.warns(UserWarning, match="algorithm='minibatch' works on the CPU, and device='.*' goes by 'nested'"):
        ens = kmeans_ensemble(put(NOISE), 3, 7, device=device, algorithm="minibatch", **options)
    assert same(ens, kmeans_ensemble(NOISE, 3, 7, algorithm="nested", **options))


def test_float32_noise_is_clustered_as_well_on_the_device():
    points = np.random.default_rng(1).standard_normal((5000, 10)).astype(np.float32)
    cpu, other = (kmeans_ensemble(points, 6, 30, random_state=seed, max_iter=20).codes.T for seed in (0, 1))
    device = kmeans_ensemble(points, 6, 30, device="emulated", max_iter=20).codes.T
    means = [np.mean([inertia(points, codes) for codes in columns]) for columns in (cpu, device)]
    assert means[1] == pytest.approx(means[0], rel=0.005)
    agreement = [
        np.mean([metrics.nmi(*pair) for pair in zip(cpu, columns, strict=True)]) for columns in (device, other)
    ]
    assert agreement[0] > agreement[1] + 0.2


@pytest.mark.parametrize("algorithm", ["full", "nested"])
def test_a_clustering_on_the_device_does_not_depend_on_the_others(on_device, algorithm):
    device, put = on_device
    options = {"algorithm": algorithm, "objects": 0.8, "device": device}
    many, few = (kmeans_ensemble(put(NOISE), m, (5, 10), **options) for m in (7, 2))
    np.testing.assert_array_equal(many.codes[:, :2], few.codes)


def test_features_in_gpu_memory_stay_there(fake_cupy):
    points, _ = blobs(n=4000, d=40, k=12, spread=1.0)
    on_gpu = fake_cupy.asarray(points)
    for algorithm in ("full", "nested"):
        fake_cupy.reset()
        ens = kmeans_ensemble(on_gpu, 5, (5, 12), algorithm=algorithm)
        assert ens.device_kind == "cuda"
        assert isinstance(ens.codes_on("cuda"), fake_cupy.ndarray)
        # neither the features nor the labels of a clustering are copied to the host
        assert fake_cupy.traffic.to_host.largest < len(points)
        assert fake_cupy.traffic.to_device.largest < on_gpu.nbytes / 4  # only random draws are copied to the device
        assert same(ens, kmeans_ensemble(points, 5, (5, 12), algorithm=algorithm))
    np.testing.assert_array_equal(fake_cupy.asnumpy(on_gpu), points)


def test_labels_go_where_the_features_came_from(fake_cupy):
    expected = kmeans_ensemble(X, 3, 5)
    for given in (X, pd.DataFrame(X).convert_dtypes()):
        ens = kmeans_ensemble(given, 3, 5, device="cuda")
        assert ens.device_kind == "cpu"
        assert isinstance(ens.codes_on("cuda"), fake_cupy.ndarray)
        assert same(ens, expected)
    fake_cupy.reset()
    ens = kmeans_ensemble(fake_cupy.asarray(X), 3, 5, device="cpu")
    assert ens.device_kind == "cuda"
    assert fake_cupy.traffic.to_host.sizes == [X.nbytes]
    assert same(ens, expected)
    assert kmeans_ensemble(fake_cupy.asarray(X), 3, 5, device="emulated").device_kind == "cuda"


def test_memory_on_the_device(fake_cupy, monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    points = np.random.default_rng(0).standard_normal((3000, 8))

    def within(limit, options):
        fake_cupy.reset(limit=limit)
        try:
            return kmeans_ensemble(fake_cupy.asarray(points), 6, (10, 20), max_iter=5, **options)
        except MemoryError as error:
            return error

    for options in ({}, {"objects": 0.5, "n_init": 2}, {"features": 4, "projection": 3}):
        found = [within(limit, options) for limit in (10**6, 3 * 10**6, 10**7, 10**8)]
        refusals = [result for result in found if isinstance(result, MemoryError)]
        assert len(refusals) in (1, 2)
        for refusal in refusals:
            # gpuens itself raises this error before the work begins; the device has not run out of memory
            assert type(refusal) is MemoryError
            assert "k-means on X needs" in one_sentence(refusal)
        expected = kmeans_ensemble(points, 6, (10, 20), max_iter=5, **options)
        assert all(same(ens, expected) for ens in found[len(refusals) :])


def test_progress_on_the_device(on_device, capsys):
    device, put = on_device
    kmeans_ensemble(put(X), 7, 3, device=device, progress=True)
    assert "0/7" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.parametrize("options", ON_DEVICE.values(), ids=ON_DEVICE)
def test_a_gpu_gives_what_the_cpu_gives(options):
    import cupy

    for points in (NOISE, X.astype(np.float32)):
        ens = kmeans_ensemble(cupy.asarray(points), 8, (2, 9), **options)
        assert isinstance(ens.codes_on("cuda"), cupy.ndarray)
        assert same(ens, kmeans_ensemble(points, 8, (2, 9), **options))


# --- error messages ---------------------------------------------------------------------------------------------------

NAN, INF = X.copy(), X.copy()
NAN[7, 2], INF[0, 1] = np.nan, -np.inf
NULLABLE = pd.DataFrame({"a": [1, None]}, dtype="Int64")

BAD_FEATURES = {
    "1-D": (X[:, 0], ValueError, ["2-D", "(300,)", "reshape(-1, 1)"]),
    "1-D series": (pd.Series([0.0, 1]), ValueError, ["2-D", "(2,)"]),
    "3-D": (np.zeros((3, 2, 2)), ValueError, ["2-D", "(3, 2, 2)"]),
    "no objects": (np.zeros((0, 3)), ValueError, ["empty", "0 object(s)"]),
    "no features": (np.zeros((3, 0)), ValueError, ["empty", "0 feature(s)"]),
    "no features, sparse": (scipy.sparse.csr_matrix((3, 0)), ValueError, ["empty", "0 feature(s)"]),
    "an empty frame": (pd.DataFrame(), ValueError, ["empty"]),
    "NaN": (NAN, ValueError, ["1 value(s)", "row 7, column 2"]),
    "infinite": (INF.astype(np.float32), ValueError, ["1 value(s)", "row 0, column 1"]),
    "NaN, sparse": (scipy.sparse.csr_matrix(NAN), ValueError, ["1 value(s)"]),
    "masked": (np.ma.masked_less(X, X.min() + 1e-9), ValueError, ["1 value(s)"]),
    "missing in a frame": (NULLABLE, ValueError, ["1 value(s)", "row 1, column 'a'", "--impute median"]),
    "strings": (np.array([["a", "b"]]), TypeError, ["real numbers"]),
    "objects": (np.array([[1, None]], dtype=object), TypeError, ["object", "real numbers"]),
    "complex": (X * 1j, TypeError, ["complex128", "real numbers"]),
    "dates": (np.zeros((2, 2), "M8[s]"), TypeError, ["datetime64", "real numbers"]),
    "a column of strings": (pd.DataFrame({"u": [1, 2], "v": ["a", "b"]}), TypeError, ["column 'v'"]),
    "a column of categories": (pd.DataFrame({"v": pd.Categorical([1, 2])}), TypeError, ["column 'v'", "category"]),
    "ragged": ([[1, 2], [3]], ValueError, ["2-D", "differ in length"]),
    "None": (None, TypeError, ["NoneType"]),
    "a path": ("features.npy", TypeError, ["str"]),
    "a dict": ({"a": [1, 2]}, TypeError, ["dict"]),
    "a number": (3.5, TypeError, ["float"]),
}


@pytest.mark.parametrize("case", list(BAD_FEATURES))
def test_bad_features(case, fake_cupy):
    features, kind, mentioned = BAD_FEATURES[case]
    refusal = refused(lambda: kmeans_ensemble(features, 2, 1), kind, *mentioned)
    assert refusal.startswith("X ")
    if type(features) is np.ndarray and features.dtype.kind in "fc":
        assert refused(lambda: kmeans_ensemble(fake_cupy.asarray(features), 2, 1), kind) == refusal


def test_sparse_features_are_for_the_cpu(fake_cupy):
    sparse = scipy.sparse.csr_array(X)
    for device in ("cuda", "emulated"):
        refused(lambda device=device: kmeans_ensemble(sparse, 2, 2, device=device), TypeError, "X.toarray()", device)
    sparse.data = fake_cupy.asarray(sparse.data)
    refused(lambda: kmeans_ensemble(sparse, 2, 2), TypeError, "sparse matrix in GPU memory", "X.toarray()")


def test_a_gpu_that_is_not_there():
    if why_no_gpu():
        refused(lambda: kmeans_ensemble(X, 2, 2, device="cuda"), ValueError, "device='cuda' needs")


@pytest.mark.parametrize(
    ("options", "kind", "mentioned"),
    [
        ({"n_clusterings": 0}, ValueError, "n_clusterings must be at least 1"),
        ({"n_clusterings": 2.0}, TypeError, "n_clusterings must be a whole number"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be a whole number"),
        ({"n_clusters": (2, None)}, TypeError, "n_clusters must be a whole number"),
        ({"n_clusters": "log"}, ValueError, "n_clusters must be a number, 'sqrt' or a pair"),
        ({"n_clusters": (2, 3, 4)}, ValueError, "n_clusters must be a number, 'sqrt' or a pair"),
        ({"n_clusters": (5, 3)}, ValueError, "5 to 3"),
        ({"n_clusters": (20, "sqrt")}, ValueError, "20 to 17, for 300 object(s)"),
        ({"n_clusters": 301}, ValueError, "up to 301 clusters of 300 object(s)"),
        ({"objects": 10}, ValueError, "up to 17 clusters of 10 object(s)"),
        ({"objects": 301}, ValueError, "objects must be from 1 to 300"),
        ({"objects": 0.0}, ValueError, "objects must be above 0 and at most 1"),
        ({"objects": 1.5}, ValueError, "objects must be above 0 and at most 1"),
        ({"objects": float("nan")}, ValueError, "objects must be above 0"),
        ({"objects": "half"}, TypeError, "objects must be a whole number"),
        ({"features": 6}, ValueError, "features must be from 1 to 5"),
        ({"features": True}, TypeError, "features must be"),
        ({"projection": 0}, ValueError, "projection must be at least 1"),
        ({"projection": 0.5}, TypeError, "projection must be a whole number"),
        ({"algorithm": "lloyd"}, ValueError, "algorithm must be one of 'auto', 'full', 'minibatch', 'nested'"),
        ({"n_init": 0}, ValueError, "n_init must be from 1 to 10000"),
        ({"max_iter": 0}, ValueError, "max_iter must be from 1 to 1000000"),
        ({"init": "pca"}, ValueError, "init must be one of"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
        ({"random_state": 0.5}, TypeError, "random_state must be a whole number"),
        ({"random_state": np.random}, TypeError, "random_state must be"),
        ({"names": ["a"]}, ValueError, "names must be one for each clustering"),
        ({"progress": "yes"}, ValueError, "progress must be"),
        ({"device": "gpu"}, ValueError, "device must be one of"),
    ],
    ids=lambda value: str(value).split(" at 0x")[0],
)
def test_bad_options(options, kind, mentioned):
    refused(lambda: kmeans_ensemble(X, **options), kind, mentioned)


def test_a_share_draws_at_least_one():
    assert kmeans_ensemble(X, 2, 3, features=0.01, names=["p", "q"]).names == ["p", "q"]


def test_memory_budget(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "10kB")  # X takes 12 kB
    refused(
        lambda: kmeans_ensemble(X, 2, 3), MemoryError, "k-means on X needs 32.6 kB", "10.0 kB", "draw fewer objects"
    )
    kmeans_ensemble(X, 2, 3, algorithm="minibatch")
    monkeypatch.setenv("GPUENS_MEMORY", "40kB")  # this is enough memory for one clustering at a time
    monkeypatch.setenv("GPUENS_THREADS", "4")
    threads = []
    original = by_kmeans.by_threads
    monkeypatch.setattr(by_kmeans, "by_threads", lambda *given: threads.append(given[-1]) or original(*given))
    kmeans_ensemble(X, 4, 3)
    assert threads == [1]


def test_a_failure_stops_the_rest(monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", "1")
    calls = []

    def fails(at, n, k, rng, **settings):
        calls.append(k)
        time.sleep(0.02)  # without this wait, all calls would end before the other thread notices the failure
        raise KeyboardInterrupt if len(calls) == 2 else RuntimeError("no luck")

    monkeypatch.setattr(nested, "fit", fails)
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        kmeans_ensemble(X, 200, 3)
    assert len(calls) < 200


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_counts_clusterings(capsys):
    kmeans_ensemble(X, 3, 3, progress=True)
    shown = capsys.readouterr()
    assert "k-means" in shown.err
    assert "0/3" in shown.err
    assert shown.out == ""
    kmeans_ensemble(X, 3, 3, progress=False)
    kmeans_ensemble(X, 3, 3)  # no bar, because stderr is no terminal
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("setting", "terminal", "show", "shown"),
    [
        (None, True, "auto", True),
        (None, False, "auto", False),
        ("1", False, "auto", True),
        ("0", True, "auto", False),
        ("0", False, True, True),
        ("1", True, False, False),
    ],
)
def test_bar_is_shown_where_it_should_be(setting, terminal, show, shown, monkeypatch, capsys):
    monkeypatch.delenv("GPUENS_PROGRESS", raising=False)
    if setting is not None:
        monkeypatch.setenv("GPUENS_PROGRESS", setting)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: terminal, raising=False)
    assert list(progress.bar(iter("abc"), "letters", show=show)) == ["a", "b", "c"]
    with progress.bar(total=5, description="units", show=show) as bar:
        bar.update(3)
        bar.update(2)
    err = capsys.readouterr().err
    assert ("letters" in err) == ("units" in err) == shown


@pytest.mark.parametrize("step", ["status_printer", "refresh"])
def test_a_bar_whose_making_a_signal_ends_is_closed_in_silence(step, monkeypatch):
    """A signal can leave a half-made bar. When the garbage collector frees it, Python must print no error on stderr."""

    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with monkeypatch.context() as patch:
        patch.setattr(f"tqdm.std.tqdm.{step}", stopped)
        with contextlib.suppress(KeyboardInterrupt):
            progress.bar(3, "letters", show=True)
    gc.collect()
    assert ignored == []


def test_bar_refuses_nonsense(monkeypatch):
    refused(lambda: progress.bar(3, show="yes"), ValueError, "progress must be 'auto', True or False, not 'yes'")
    monkeypatch.setenv("GPUENS_PROGRESS", "maybe")
    refused(lambda: progress.bar(3), ValueError, "GPUENS_PROGRESS must be 0 or 1, not 'maybe'")
