"""Arrays in GPU memory are accepted by every function that takes an array, with the same results as host arrays.

The tests use CuPy if there is a GPU, and always its stand-in, which refuses implicit conversions as CuPy does.
"""

import numpy as np
import pytest
from conftest import structured_labels

import gpuens as ge
from gpuens import contingency, generate, metrics, plotting
from gpuens import similarity as sim
from gpuens.labels import encoding

N, M, K = 24, 3, 3
LABELS, TRUTH = structured_labels(N, M, K, seed=5)
ENSEMBLE = ge.Ensemble(LABELS)
FEATURES = np.random.default_rng(1).standard_normal((N, 2))
INDICES, MASK = np.array([3, 1, 7]), np.arange(N) % 5 == 0
OF_CLUSTERINGS, OF_OBJECTS = np.array([1.0, 2.0, 1.0]), np.arange(1, N + 1)
SIMILARITY = np.eye(ENSEMBLE.n_clusters)
MEMBERSHIPS = [np.random.default_rng(2).dirichlet(np.ones(K), size=k) for k in np.diff(ENSEMBLE.offsets)]


def weighted(name):
    """Return a function that computes a method's labels with the weights ``gpu(OF_CLUSTERINGS)``."""
    return lambda gpu, labels: ge.consensus(labels, K, method=name, weights=gpu(OF_CLUSTERINGS))


# Functions of the labels and of gpu, a function that moves an array. Both are for host memory or for GPU memory.
CASES = {
    "rows, cols": lambda gpu, labels: sim.coassociation(labels, gpu(INDICES), gpu(MASK)),
    "rows, cols of lwca": lambda gpu, labels: sim.lwca(labels, 0.4, gpu(INDICES), gpu(MASK)),
    "coupled_clusters": lambda gpu, labels: np.concatenate(
        [block.ravel() for block in sim.coupled_clusters(labels, gpu(OF_CLUSTERINGS))]
    ),
    "mapping_coefficients": lambda gpu, labels: sim.mapping_coefficients(labels, gpu(FEATURES), 4).toarray(),
    "rank_correlation": lambda gpu, labels: sim.rank_correlation(gpu(np.eye(K)[TRUTH]), gpu(OF_OBJECTS)),
    "eci": lambda gpu, labels: sim.eci(labels, weights=gpu(OF_OBJECTS)),
    "eci_from_entropy": lambda gpu, labels: sim.eci_from_entropy(gpu(sim.entropy(labels)), 0.4, M),
    "entropy": lambda gpu, labels: sim.entropy(labels, gpu(OF_OBJECTS / 2)),
    "intersections": lambda gpu, labels: contingency.intersections(labels, gpu(OF_OBJECTS), layout="dense"),
    "agreement": lambda gpu, labels: contingency.agreement(labels, weights=gpu(OF_OBJECTS)),
    "pair_tables": lambda gpu, labels: [t.sum() for _, _, t in contingency.pair_tables(labels, gpu(OF_OBJECTS))],
    "counts of Rows": lambda gpu, labels: ge.Rows(labels, gpu(OF_OBJECTS)).cluster_sizes(),
    "Rows.take": lambda gpu, labels: ge.Rows(labels).take(gpu(INDICES)).cluster_sizes(),
    "Rows.take, counted": lambda gpu, labels: ge.Rows(labels).take(gpu(INDICES), gpu(INDICES)).cluster_sizes(),
    "Ensemble.take": lambda gpu, labels: ge.Ensemble(labels).take(gpu(INDICES)).to_array(),
    "Ensemble.take, mask": lambda gpu, labels: ge.Ensemble(labels).take(gpu(MASK)).to_array(),
    "Ensemble.without": lambda gpu, labels: ge.Ensemble(labels).without(gpu(np.array([0, 2]))).to_array(),
    "scores": lambda gpu, labels: list(metrics.scores(gpu(TRUTH), gpu(LABELS[:, 0])).values()),
    "kmeans_ensemble": lambda gpu, labels: generate.kmeans_ensemble(gpu(FEATURES), 2, K, random_state=0).to_array(),
    "features": lambda gpu, labels: (
        ge.ECRMC(K, n_neighbors=4, weights=gpu(OF_CLUSTERINGS)).fit(labels, features=gpu(FEATURES)).labels_
    ),
    "distances": lambda gpu, labels: ge.TOME(K).fit(labels, features=gpu(FEATURES)).labels_,
    "nearest rows": lambda gpu, labels: ge.CSPA(K, neighbors=5).fit(labels).labels_,
    "a graph on the host": lambda gpu, labels: ge.HBGF(K, partition="metis").fit(labels).labels_,
    "init": lambda gpu, labels: ge.SCEC(K, init=[gpu(table) for table in MEMBERSHIPS]).fit(labels).labels_,
    "soft clusterings": lambda gpu, labels: ge.SCEC(K).fit([gpu(np.eye(K)[TRUTH]), gpu(LABELS[:, 0])]).labels_,
    "predict": lambda gpu, labels: ge.LWEA(K).fit(labels).predict(gpu(LABELS)),
    "expand": lambda gpu, labels: ge.Reduction(ge.Rows(labels), gpu(np.arange(N))).expand(gpu(TRUTH)),
    **{f"weights of {name}": weighted(name) for name in ("eac", "lwgp", "cspa", "cgc", "kcc")},
}


@pytest.fixture(params=["stand-in", pytest.param("cupy", marks=pytest.mark.gpu)])
def cp(request):
    return request.getfixturevalue("fake_cupy") if request.param == "stand-in" else pytest.importorskip("cupy")


@pytest.fixture(params=["labels in host memory", "labels in GPU memory"])
def labels(request, cp):
    return cp.asarray(LABELS) if "GPU" in request.param else LABELS


def in_host_memory(cp, array):
    return cp.asnumpy(array) if isinstance(array, cp.ndarray) else np.asarray(array)


@pytest.mark.parametrize("case", CASES)
def test_arrays_in_gpu_memory_are_taken(case, labels, cp):
    expected = CASES[case](lambda array: array, LABELS)
    found = in_host_memory(cp, CASES[case](cp.asarray, labels))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_arrays_in_gpu_memory_are_written_and_drawn(cp, tmp_path):
    plotting.sizes(cp.asarray(TRUTH))
    drawn = plotting.coassociation_heatmap(cp.asarray(LABELS), cp.asarray(TRUTH)).images[0].get_array()
    np.testing.assert_array_equal(drawn, plotting.coassociation_heatmap(LABELS, TRUTH).images[0].get_array())
    ge.io.write_labels(tmp_path / "gpu.csv", cp.asarray(LABELS), ids=cp.asarray(OF_OBJECTS))
    ge.io.write_labels(tmp_path / "host.csv", LABELS, ids=OF_OBJECTS)
    assert (tmp_path / "gpu.csv").read_bytes() == (tmp_path / "host.csv").read_bytes()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint32, np.float32])
def test_labels_are_not_copied_whole_where_memory_is_short(dtype, cp, monkeypatch):
    """For kernels, labels of some dtypes are copied to wider dtypes, which take up to four times the memory."""
    labels = np.where(np.arange(LABELS.size).reshape(LABELS.shape) % 7, LABELS, 100).astype(dtype)
    expected = ge.Ensemble(labels)
    monkeypatch.setenv("GPUENS_MEMORY", f"{2 * labels.size}B")
    monkeypatch.delattr(encoding, "_encode_on_gpu")
    found = ge.Ensemble(cp.asarray(labels))
    assert found.device_kind == "cuda"
    np.testing.assert_array_equal(found.codes, expected.codes)
    for own, wanted in zip(found.categories, expected.categories, strict=True):
        np.testing.assert_array_equal(own, wanted)
