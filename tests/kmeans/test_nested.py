"""k-means on nested samples: exact labels, centroids as good as from all objects, and results fixed by the seed."""

import numpy as np
import pytest
import scipy.sparse
from conftest import peak_of, refused, thorough

from gpuens import datasets
from gpuens.generate import kmeans as by_kmeans
from gpuens.generate import kmeans_ensemble
from gpuens.generate.views import Draws
from gpuens.kmeans import nested
from gpuens.runtime.device import library_threads

RNG = np.random.default_rng(0)


def literal_nearest(points, centers):
    """Return each point's nearest center by float64 distances, slowly; among equally near centers, return the first."""
    labels = []
    for point in points.astype(np.float64):
        squares = [float(((point - center) ** 2).sum()) for center in centers]
        labels.append(squares.index(min(squares)))
    return np.array(labels)


def inertia(points, labels):
    own = points.astype(np.float64)
    return sum(((own[labels == c] - own[labels == c].mean(axis=0)) ** 2).sum() for c in np.unique(labels))


def lumps(n=3000, d=6, k=12, dtype=np.float32):
    rng = np.random.default_rng(3)
    return (rng.normal(size=(k, d))[rng.integers(k, size=n)] * 3 + rng.normal(size=(n, d))).astype(dtype)


POINTS = {
    "float32": lumps(),
    "float64": lumps(dtype=np.float64),
    "far from the origin": lumps(dtype=np.float64) + 1e6,
    "float32 far from the origin": lumps() + np.float32(1e4),
    "of different scale": lumps(dtype=np.float64) * 10.0 ** np.arange(-6, 6, 2),
    "two far clumps": lumps(dtype=np.float64) + 1e8 * (np.arange(3000) % 2)[:, None],
    "large": lumps(dtype=np.float64) * 1e200,
    "small": lumps(dtype=np.float64) * 1e-200,
    "ties": np.random.default_rng(1).integers(0, 3, (3000, 4)).astype(np.float32),
    "one feature": lumps(d=1),
}


@pytest.fixture
def small(monkeypatch):
    """Reduce the sample sizes, so that a few thousand objects need several samples."""
    monkeypatch.setattr(nested, "ALL_UP_TO", 2**6)
    monkeypatch.setattr(nested, "FIRST", 2**8)
    monkeypatch.setattr(nested, "LAST", 2**10)
    monkeypatch.setattr(nested, "PER_CLUSTER", 2**4)
    monkeypatch.setattr(nested, "FIRST_PER_CLUSTER", 2**2)


def fitted(points, k, seed=0, **options):
    settings = {"n_init": 1, "max_iter": 100, "init": "k-means++"} | options
    return nested.fit(lambda picks: points[picks], len(points), k, np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("case", POINTS)
@pytest.mark.parametrize("k", [1, 9, 40])
def test_labels_are_exact(case, k, small):
    points = POINTS[case]
    model = fitted(points, k)
    found = model.predict(points)
    scaled = points.astype(np.float64) * model.frame.scale  # the scale is a power of 2, so that nothing is rounded
    np.testing.assert_array_equal(found, literal_nearest(scaled, model.centers))


def test_of_equally_near_centroids_the_first_counts():
    points = np.arange(64, dtype=np.float32).reshape(-1, 1)
    frame = nested.Frame.of(points)
    centers = np.array([[40.0], [10.0], [20.0], [10.0]]) * frame.scale
    found = nested.Centroids(centers, frame).predict(points)
    np.testing.assert_array_equal(found, literal_nearest(points, centers / frame.scale))
    assert (found[15], found[30]) == (1, 0)  # points halfway between two centers


def test_points_far_beyond_the_sample_are_labelled_too():
    points = lumps()
    model = fitted(points, 5)
    far = np.array([[1e30] * 6, [-1e30] * 6, [1e38] + [0] * 5], dtype=np.float32)
    scaled = far.astype(np.float64) * model.frame.scale
    np.testing.assert_array_equal(model.predict(far), literal_nearest(scaled, model.centers))


@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 1e30), (np.float64, 1e30), (np.float64, 1e200)])
@pytest.mark.parametrize("n_init", [1, 2])
def test_objects_far_beyond_the_first_sample_are_fitted_too(dtype, far, n_init, small):
    """For the far object, products and squares overflow.

    No warning may appear, and all other labels must be correct.
    """
    points = np.concatenate([lumps(1000, dtype=dtype), np.full((1, 6), far, dtype=dtype)])
    model = fitted(points, 9, seed=4, n_init=n_init)
    assert model.frame.scale > 1e-3  # the far object was not in the first sample, but gets a centroid of its own
    assert (model.centers > 1e-6 * far).all(axis=1).sum() == 1
    scaled = points.astype(np.float64) * model.frame.scale
    with np.errstate(over="ignore"):
        expected = literal_nearest(scaled, model.centers)
    np.testing.assert_array_equal(model.predict(points), expected)
    assert len(np.unique(expected)) == 9


@pytest.mark.parametrize("spread", [1.0, 3.0])
@pytest.mark.parametrize("k", [5, 20, *thorough(60)])
def test_as_good_as_kmeans_of_all_objects(k, spread):
    """Inertia is within 1 % of scikit-learn's KMeans on average, although samples are parts of the objects."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(k)
    points = (rng.normal(size=(30, 8))[rng.integers(30, size=50_000)] * spread + rng.normal(size=(50_000, 8))).astype(
        np.float32
    )
    ours = [inertia(points, column) for column in kmeans_ensemble(points, 4, k, algorithm="nested").codes.T]
    theirs = [KMeans(k, n_init=1, max_iter=100, random_state=seed).fit(points).inertia_ for seed in range(4)]
    if spread == 1.0:  # without clusters far apart, of which a start may miss one
        assert np.mean(ours) < 1.01 * np.mean(theirs)
    else:
        assert np.min(ours) < 1.01 * np.min(theirs) or np.mean(ours) < 1.01 * np.mean(theirs)


SMALL = {"iris": 9, "digits": 10, "wine": 3}


@pytest.mark.parametrize("name", [*SMALL, "lumps"])
def test_as_good_as_scikit_learn_of_few_objects(name):
    """Up to 20,000 objects, all are used.

    The mean inertia is within 1 % of scikit-learn's with the same number of starts.
    """
    from sklearn.cluster import KMeans

    points, k = (lumps(1000), 12) if name == "lumps" else (np.asarray(datasets.load(name).X, np.float32), SMALL[name])
    ours = [inertia(points, column) for column in kmeans_ensemble(points, 3, k, n_init=5).codes.T]
    with library_threads(1):  # with more than one thread, the threads would only wait for each other
        theirs = [KMeans(k, n_init=5, max_iter=100, random_state=seed).fit(points).inertia_ for seed in range(3)]
    assert np.mean(ours) < 1.01 * np.mean(theirs)


def test_up_to_20000_objects_all_are_the_one_sample():
    full, nested_samples = (kmeans_ensemble(lumps(), 3, 9, algorithm=algorithm) for algorithm in ("full", "nested"))
    np.testing.assert_array_equal(full.codes, nested_samples.codes)


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_few_objects_far_from_all_others_get_centroids_of_their_own(device, small, monkeypatch):
    """The far objects are in none of the first samples.

    Without a centroid of their own, they cause most of the inertia.
    """
    monkeypatch.setattr(nested, "LAST", 2**13)
    rng = np.random.default_rng(0)
    far = 1000 * np.eye(3, 6)[np.arange(9) % 3] + rng.normal(size=(9, 6))
    points = np.concatenate([far, lumps(4000, k=3, dtype=np.float64)])
    expected = inertia(points, literal_nearest(points, [points[i:9:3].mean(axis=0) for i in range(3)] + [[0.0] * 6]))
    for column in kmeans_ensemble(points, 3, 6, device=device).codes.T:
        assert inertia(points, column) < expected
        assert len(np.unique(column[:9])) == 3


OPTIONS = {
    "plain": {},
    "starts": {"n_init": 3},
    "random start": {"init": "random"},
    "objects": {"objects": 0.6},
    "features": {"features": 3},
    "projection": {"projection": 2},
    "all": {"objects": 0.6, "features": 4, "projection": 3, "n_init": 2, "max_iter": 3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_neither_threads_nor_other_clusterings_matter(options, small, monkeypatch):
    points = lumps()
    monkeypatch.setenv("GPUENS_THREADS", "1")
    one = kmeans_ensemble(points, 5, (3, 30), algorithm="nested", random_state=2, **options)
    monkeypatch.setenv("GPUENS_THREADS", "3")
    other = kmeans_ensemble(points, 2, (3, 30), algorithm="nested", random_state=2, **options)
    np.testing.assert_array_equal(one.codes[:, :2], other.codes)
    assert len({tuple(column) for column in one.codes.T.tolist()}) == 5


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("device", ["emulated", "cuda"])
def test_the_device_gives_what_the_cpu_gives(options, device, small, request):
    points = lumps(dtype=np.float64)
    put = request.getfixturevalue("fake_cupy").asarray if device == "cuda" else np.asarray
    found = kmeans_ensemble(put(points), 4, (3, 30), algorithm="nested", device=device, **options)
    expected = kmeans_ensemble(points, 4, (3, 30), algorithm="nested", **options)
    np.testing.assert_array_equal(found.codes, expected.codes)


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_few_distinct_points(device, init, small):
    points = np.random.default_rng(6).integers(0, 3, (3000, 2)) * 1.0  # nine different points
    ens = kmeans_ensemble(points, 4, (9, 14), algorithm="nested", init=init, device=device)
    for column in ens.codes.T:
        assert len(np.unique(column)) == len(np.unique(np.column_stack([column, points @ [3, 1]]), axis=0)) == 9


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_empty_clusters_move_to_the_farthest_objects(device):
    points = np.array([[0.0], [1], [2], [50], [100]])
    frame = nested.Frame.of(points)
    sample = nested._Sample(points, frame.around_mean(points, nested.precision(device)), frame, 0.0, device)
    found = sample.fitted(np.array([[1.0], [1000], [2000]]) * frame.scale, 100).centers / frame.scale
    np.testing.assert_allclose(np.sort(found[:, 0]), [1, 50, 100])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_sparse_features(options, small):
    points = np.where(lumps() > 0, np.round(lumps()), 0)
    found = kmeans_ensemble(scipy.sparse.csr_array(points), 3, (3, 8), algorithm="nested", **options)
    expected = kmeans_ensemble(points, 3, (3, 8), algorithm="nested", **options)
    if "projection" in options:  # products of sparse matrices are rounded differently
        assert (found.codes != expected.codes).mean() < 0.01
    else:
        np.testing.assert_array_equal(found.codes, expected.codes)


def test_samples_double():
    assert nested.sample_sizes(20_000, 500) == [20_000]
    assert nested.sample_sizes(20_001, 5) == [4096, 8192, 16384, 20_001]
    assert nested.sample_sizes(10**6, 100) == [2**12, 2**13, 2**14, 2**15, 2**16]
    assert nested.sample_sizes(10**6, 1000) == [32_000, 64_000, 128_000, 256_000]


def test_more_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "100kB")
    refused(
        lambda: kmeans_ensemble(lumps(), 2, 9, algorithm="nested"),
        MemoryError,
        "k-means on X needs",
        "draw fewer objects",
    )


@pytest.mark.parametrize(
    ("n", "d", "k", "dtype", "algorithm"),
    [
        (66_000, 50, 20, np.float32, "nested"),
        (66_000, 30, 20, np.float64, "nested"),
        (400_000, 2, 50, np.float32, "nested"),
        (20_000, 30, 20, np.float32, "nested"),
        (60_000, 30, 20, np.float64, "full"),
    ],
)
def test_what_it_needs_is_foreseen(n, d, k, dtype, algorithm, monkeypatch):
    points = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
    foreseen = by_kmeans._needed(points, Draws(n, d, n, d, None), algorithm, k, "cpu")
    task = by_kmeans.KMeansTask(k, np.random.default_rng(0))
    settings = {"n_init": 1, "max_iter": 2, "init": "k-means++"}
    draws = Draws(n, d, n, d, None)
    assert (
        0.4 * foreseen < peak_of(lambda: list(by_kmeans._label(points, [task], draws, algorithm, settings))) <= foreseen
    )
