"""Real CuPy on a stand-in for a GPU (make check-gpu): tests of the stand-in, and counts of launches and transfers."""

import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import structured_labels

import gpuens as ge
from gpuens import LWEA, Ensemble
from gpuens.kmeans import lloyd, weighted
from gpuens.kmeans.plus_plus import plus_plus
from gpuens.labels.encoding import encode_columns
from gpuens.labels.incidence import cluster_sums
from gpuens.labels.rows import Rows, as_rows
from gpuens.partition import Work, average_linkage
from gpuens.partition.linkage.rounds import Rounds
from gpuens.partition.transfer_cut import _gram_product, _weight_per_degree
from gpuens.reduction import core_groups
from gpuens.runtime import installing, kernels
from gpuens.similarity.diagonal import Diagonal
from gpuens.similarity.full import Full

gpu_stack = sys.modules.get("gpu_stack")  # None, unless Python was started with the folder that build.py makes
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu_stack is None, reason="counts what a stand-in for a GPU is asked for: make check-gpu"),
]


@pytest.fixture
def asked():
    """Return a function that calls a given function and returns the numbers of requests of this call to the device."""

    def count(work):
        before = gpu_stack.counts()
        work()
        return {name: value - before[name] for name, value in gpu_stack.counts().items()}

    return count


# --- the stand-in -----------------------------------------------------------------------------------------------------


def test_everything_is_counted(asked):
    import cupy as cp

    host = np.arange(1000.0)
    on_device = cp.asarray(host)
    doubled = on_device + on_device  # this addition is compiled before requests are counted
    cp.asarray(host)  # the pool now has memory for the next array
    nothing = dict.fromkeys(gpu_stack.counts(), 0)
    assert asked(lambda: cp.asarray(host)) == nothing | {"to_device": 1, "to_device_bytes": 8000}
    assert asked(lambda: np.add(on_device, on_device, out=doubled))["launches"] == 1
    found = asked(doubled.get)
    assert (found["to_host"], found["to_host_bytes"], found["synchronizations"], found["launches"]) == (1, 8000, 1, 0)
    np.testing.assert_array_equal(doubled.get(), 2 * host)


def test_a_launch_that_no_device_takes_is_refused(capfd):
    import cupy as cp

    kernel = cp.RawKernel('extern "C" __global__ void nothing(int* out) { *out = 1; }', "nothing")
    out = cp.zeros(1, dtype=np.int32)
    kernel((1,), (1,), (out,))
    assert int(out[0]) == 1
    for grid, block, shared in (((1, 65_536), (1,), 0), ((1,), (1025,), 0), ((1,), (1,), 49 * 1024)):
        with pytest.raises(cp.cuda.driver.CUDADriverError):
            kernel(grid, block, (out,), shared_mem=shared)
        assert "nothing cannot have a grid of" in capfd.readouterr().err
    kernel.max_dynamic_shared_size_bytes = 49 * 1024
    kernel((1,), (1,), (out,), shared_mem=49 * 1024)


def test_static_arrays_count_as_shared_memory():
    import cupy as cp

    text = """#line 1 "keeps.cu"
extern "C" __global__ void keeps(int* out) {
    __shared__ int kept[256];  // which a compiler must keep: the place that is read comes from memory
    for (int i = 0; i < 256; ++i) kept[i] = i + 7;
    *out = kept[*out];
}"""
    kernel, out = cp.RawKernel(text, "keeps"), cp.zeros(1, dtype=np.int32)
    kernel((1,), (1,), (out,), shared_mem=47 * 1024)
    assert int(out[0]) == 7
    with pytest.raises(cp.cuda.driver.CUDADriverError):
        kernel((1,), (1,), (out,), shared_mem=48 * 1024)
    with pytest.raises(cp.cuda.driver.CUDADriverError):
        kernel.max_dynamic_shared_size_bytes = 227 * 1024
    kernel.max_dynamic_shared_size_bytes = 48 * 1024
    kernel((1,), (1,), (out,), shared_mem=48 * 1024)


@pytest.mark.skipif(os.environ.get("CUPY_ACCELERATORS", "cub") != "cub", reason="CUB is turned off")
def test_reductions_are_made_of_cubs_blocks(asked):
    import cupy as cp
    from cupy import _core

    assert _core.get_reduction_accelerators() == [1]  # 1 means CUB, which needs two launches to sum an array
    X = np.random.default_rng(0).random((1001, 37), dtype=np.float32)
    there = cp.asarray(X)
    for axis in (None, 0, 1):
        for name in ("sum", "min", "argmax"):
            found, expected = (getattr(array, name)(axis=axis) for array in (there, X))
            np.testing.assert_allclose(cp.asnumpy(found), expected, rtol=1e-5, err_msg=f"{name}, {axis}")
    assert asked(there.sum)["launches"] == 2
    _core.set_reduction_accelerators([])
    try:
        assert asked(there.sum)["launches"] == 1
    finally:
        _core.set_reduction_accelerators(["cub"])


def test_products_of_float32_are_summed_in_float32_and_by_the_shape():
    import cupy as cp

    rng = np.random.default_rng(0)
    a, b = rng.random((8, 2**17), dtype=np.float32), rng.random((2**17, 2), dtype=np.float32)
    exact = a.astype(np.float64) @ b
    found = [cp.asnumpy(cp.asarray(a[:n]) @ cp.asarray(b)) for n in range(1, 9)]
    for n, rows in enumerate(found, start=1):
        assert 1e-8 < np.abs(rows / exact[:n] - 1).max() < 1e-3
    assert len({float(rows[0, 0]) for rows in found}) > 1  # rounding depends on the number of rows
    np.testing.assert_allclose(cp.asnumpy(cp.asarray(a, dtype=np.float64) @ cp.asarray(b, dtype=np.float64)), exact)


def elsewhere(program, **environment):
    """Run a program in another Python process, which has the given devices."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_memory_ends():
    program = """
import cupy as cp
a = cp.empty(600_000, dtype="u1")
try:
    cp.empty(600_000, dtype="u1")
except cp.cuda.memory.OutOfMemoryError:
    print(*cp.cuda.runtime.memGetInfo())
"""
    free, total = map(int, elsewhere(program, GPU_STACK_MEMORY="1000000"))
    assert (total, free) == (1_000_000, 1_000_000 - 600_064)


def test_devices():
    program = """
import cupy as cp
with cp.cuda.Device(1):
    a = cp.arange(3)
print(a.device.id, cp.cuda.runtime.getDeviceCount(), cp.cuda.runtime.pointerGetAttributes(a.data.ptr).device)
"""
    assert elsewhere(program, GPU_STACK_DEVICES="2") == ["1", "2", "1"]


def test_another_gpu_than_the_current_one():
    """Labels and ensembles are processed on the GPU that holds them, or raise an error if another GPU is current."""
    program = """
import cupy as cp, numpy as np, gpuens as ge
values = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
with cp.cuda.Device(1):
    labels = cp.asarray(values)
    ensemble = ge.Ensemble(labels)
    there = ge.EAC(2).fit_predict(ensemble)
    assert there.device.id == 1
    assert there.tolist() == ge.EAC(2).fit_predict(values).tolist()
for refused in labels, ensemble:
    try:
        ge.EAC(2).fit(refused)
    except ValueError as error:
        print(str(error).replace(" ", "_"))
"""
    said = [text.replace("_", " ") for text in elsewhere(program, GPU_STACK_DEVICES="2")]
    sentence = "an array is on GPU 1 while the current GPU is 0; enter cupy.cuda.Device(1) first, or copy the array."
    assert said == [sentence, sentence]


# --- requests of gpuens -----------------------------------------------------------------------------------------------

LABELS = structured_labels(600, 8, 5, noise=0.3, seed=0)[0]
IN_FULL = np.random.default_rng(1).random((Ensemble(LABELS).n_clusters,) * 2)


@pytest.mark.parametrize("weights", [np.ones(len(IN_FULL)), IN_FULL + IN_FULL.T], ids=["diagonal", "in full"])
def test_rounds_of_average_linkage(weights, asked, monkeypatch, sizes):
    """A round takes ten launches, and moving histograms one more; the host reads the counts once in eight rounds."""
    batches, merge, work = [], Rounds.merge_reciprocal_pairs, Work()
    sizes("partition.linkage.conduct", N_LISTED=4)  # short lists make searches necessary

    def counted(self):
        batches.append(asked(lambda: batches.append(merge(self))))
        return batches.pop(-2)

    monkeypatch.setattr(Rounds, "merge_reciprocal_pairs", counted)
    groups = core_groups(Rows(Ensemble(LABELS)))
    similarity = (Diagonal if weights.ndim == 1 else Full)(weights, groups.ensemble.offsets)
    average_linkage(as_rows(groups.rows, "cuda"), similarity, work=work)
    assert work.rounds > 20
    assert {found["synchronizations"] for found in batches} == {1}
    assert len(batches) <= work.rounds / 8 + 4
    # a general S takes no ceilings, which are two launches, no join of lists, and one launch for affinities
    assert max(found["launches"] for found in batches) <= 8 * (10 - 2 * (weights.ndim - 1)) + 2


@pytest.mark.parametrize("n_clusterings", [2, 40])
@pytest.mark.parametrize("order", ["C", "F"])
def test_encoding_a_label_matrix(n_clusterings, order, asked):
    """For any number of clusterings, three launches make the tables, read the tables, and look up the labels."""
    import cupy as cp

    labels = cp.asarray(np.resize(LABELS, (600, n_clusterings)), order=order)
    found = asked(lambda: encode_columns(labels.T, list(range(n_clusterings))))
    assert (found["launches"], found["synchronizations"]) == (3, 1)
    found = asked(lambda: Ensemble(labels))  # making an ensemble also searches for objects without a label
    # CUB needs two launches to search for objects without a label; many columns are compared with rows by samples
    assert found["launches"] <= 7 + 3 * (n_clusterings == 40)
    assert found["synchronizations"] == 2 + (n_clusterings == 40)


def test_a_fit(asked):
    """Apart from the rounds, a fit takes a few hundred launches and two dozen synchronizations."""
    import cupy as cp

    labels, est = cp.asarray(LABELS), LWEA(5)
    found = asked(lambda: est.fit(labels))
    assert found["launches"] <= 10 * (est.work_.rounds + 8) + 15 * LABELS.shape[1] + 250
    assert found["synchronizations"] <= est.work_.rounds / 8 + 24


def test_encoding_a_list_of_columns(asked):
    """Columns of one dtype are joined into a matrix; columns of different dtypes are encoded one by one."""
    import cupy as cp

    columns, names = [np.resize(LABELS, (600, 20))[:, m] for m in range(20)], list(range(20))
    on_gpu = [cp.asarray(column) for column in columns]
    found = asked(lambda: encode_columns(on_gpu, names))
    assert found["launches"] <= 5
    assert found["synchronizations"] <= 1
    for given in (on_gpu, [on_gpu[0].astype(np.float32), *on_gpu[1:]]):
        codes, categories = encode_columns(given, names)
        expected, their_categories = encode_columns([column.get() for column in given], names)
        np.testing.assert_array_equal(codes.get(), expected)
        for one, other in zip(categories, their_categories, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


# one wait counts the objects of the clusters; first objects of equal sizes, as of hbgf, take up to four more
PARTITIONED = {
    "lwgp": (ge.LWGP(5), 20, 300),  # four waits for the intersections of clusters
    "hbgf": (ge.HBGF(5), 20, 300),
    # half of the synchronizations belong to the similarities
    "spectral": (ge.Consensus(5, similarity="coupled", partitioner="spectral"), 48, 400),
}


@pytest.mark.parametrize("on_gpu_from", [1, 10_000])
@pytest.mark.parametrize("name", PARTITIONED)
def test_a_partition_by_eigenvectors(name, on_gpu_from, asked, sizes):
    """The host gets only the counts of the rows, a few numbers for each cluster, and intersections of clusters."""
    import cupy as cp

    sizes("partition.embeddings", ON_GPU_FROM=on_gpu_from)
    labels = structured_labels(3000, 8, 5, noise=0.3, seed=0)[0]
    on_gpu, (est, waits, launches) = cp.asarray(labels), PARTITIONED[name]
    found = asked(lambda: est.fit(on_gpu))
    rows = est.reduction_.rows
    matrix = 8 * rows.n_clusters**2 * (on_gpu_from > rows.n_clusters)
    cells = 16 * rows.n_clusters**2 / 2  # tables of all pairs of clusterings, for ECI
    assert found["to_host_bytes"] <= 8 * len(rows) + matrix + cells + 8 * 60 * rows.n_clusters
    assert found["synchronizations"] <= waits
    assert found["launches"] <= launches
    np.testing.assert_array_equal(est.labels_.get(), est.fit(labels).labels_)


@pytest.mark.parametrize("est", [ge.CgC(5), ge.KCC(5), ge.SEC(5)], ids=str)
def test_a_partition_by_k_means_in_label_space(est, asked):
    """All ten starts run together: the host waits once for each step, and only sums over the rows are copied to it."""
    import cupy as cp

    labels = structured_labels(3000, 8, 5, noise=0.3, seed=0)[0]
    on_gpu = cp.asarray(labels)
    found = asked(lambda: est.fit(on_gpu))
    rows = est.reduction_.rows
    steps = 5 + 2 * 20  # 5 for the centroids, 20 iterations of all starts, and 20 iterations of the best start
    assert found["synchronizations"] <= 30 + steps
    assert found["to_host_bytes"] <= 8 * len(rows) + 8 * 10 * 5 * (rows.n_clusters + 1) * steps
    np.testing.assert_array_equal(est.labels_.get(), est.fit(labels).labels_)


def test_sums_in_fixed_point(asked):
    """The unit stays on the GPU: two launches find it and the whole numbers, and two more find and scale their sums."""
    import cupy as cp

    codes, offsets = cp.asarray(LABELS.astype(np.uint8), order="F"), np.arange(LABELS.shape[1] + 1) * (LABELS.max() + 1)
    values = cp.asarray(np.random.default_rng(0).standard_normal(len(LABELS)))
    found = asked(lambda: cluster_sums(codes, offsets, values, device="cuda"))
    assert found["launches"] <= 4
    assert found["synchronizations"] == 0


def test_a_product_of_lanczos_iterations(asked):
    """The host waits only for the result."""
    rows, v = as_rows(LABELS, "cuda"), np.random.default_rng(0).standard_normal(Ensemble(LABELS).n_clusters)
    share = _weight_per_degree(rows, np.ones(len(v)))
    found = asked(lambda: _gram_product(rows, share, v))
    assert found["synchronizations"] == 1
    assert found["launches"] <= 6


@pytest.mark.parametrize("n_starts", [1, 10])
def test_k_means_plus_plus(n_starts, asked):
    """For any number of starts, a center takes three of our kernels and two sums, and the host does not wait."""
    import cupy as cp

    rng, k = np.random.default_rng(0), 20
    turned, weights = cp.asarray(rng.random((3, 500))), cp.ones(500)
    given = turned, weights, rng.integers(500, size=n_starts), rng.random((n_starts, k - 1, 5))
    plus_plus(*given, device="cuda")
    found = asked(lambda: plus_plus(*given, device="cuda"))
    assert found["launches"] <= 6 * k + 8
    assert found["synchronizations"] == 0
    assert found["to_device"] <= 2


@pytest.fixture
def steps(monkeypatch):
    """Return a list to which each step of Lloyd's iterations on the GPU adds its number of centers."""
    counted, step = [], lloyd.step

    def counting(centers, *args):
        if args[-1] == "cuda":
            counted.append(centers.shape[-2])
        return step(centers, *args)

    monkeypatch.setattr(lloyd, "step", counting)
    return counted


@pytest.mark.parametrize("n_starts", [1, 4])
def test_iterations_of_k_means(n_starts, asked, steps):
    """The host waits once for an iteration of all starts, and once for the best of several starts."""
    import cupy as cp

    k, rng = 12, np.random.default_rng(0)
    points, counts = cp.asarray(rng.random((900, 3), dtype=np.float32)), np.ones(900, dtype=np.int64)
    weighted.restarts(points, counts, k, n_starts, 0, device="cuda")
    steps.clear()
    found = asked(lambda: weighted.restarts(points, counts, k, n_starts, 0, device="cuda"))
    assert len(steps) > 3
    assert found["synchronizations"] == len(steps) + (n_starts > 1)
    assert found["launches"] <= 17 * len(steps) + 6 * k + 20 + 8 * n_starts


def test_base_clusterings_by_k_means(asked, steps):
    """Beyond its iterations, a k-means waits for the ends of the features, their spread, and the inertia."""
    import cupy as cp

    X = cp.asarray(np.random.default_rng(0).standard_normal((300, 4)))
    ge.generate.kmeans_ensemble(X, 6, 10)
    steps.clear()
    found = asked(lambda: ge.generate.kmeans_ensemble(X, 6, 10))
    assert len(steps) > 18
    assert found["synchronizations"] <= len(steps) + 6 * 3 + 6


def test_clustering_of_features(asked, steps, monkeypatch):
    """Beyond iterations, a set of landmarks takes eight waits.

    Its k-means takes four, for its frame and inertia; the landmarks, distances, products and sizes take one each.
    The agreement with the base clusterings takes two: for the labels of the rows, and for their intersections.
    """
    import cupy as cp

    noise, chosen, n_sets = np.random.default_rng(0).standard_normal((300, 4)), [], 4
    X = cp.asarray(noise + 9.0 * np.eye(3, 4)[np.arange(300) % 3])

    def chosen_among(turned, weights, first, uniform, **where):
        chosen.append(uniform.shape[1] + 1)
        return plus_plus(turned, weights, first, uniform, **where)

    monkeypatch.setattr(weighted, "plus_plus", chosen_among)
    ge.cluster(X, 3, n_clusterings=2 * n_sets)
    chosen.clear()
    steps.clear()
    found = asked(lambda: ge.cluster(X, 3, n_clusterings=2 * n_sets))
    assert len(chosen) == n_sets + 1
    assert found["synchronizations"] <= len(steps) + 8 * n_sets + 25
    assert found["launches"] <= 6 * sum(chosen) + 17 * len(steps) + 70 * n_sets + 400
    products = 8 * 270**2 * n_sets  # the CPU finds the eigenvectors of the products of 270 landmarks
    assert found["to_host_bytes"] <= products + 400_000
    assert found["memory_queries"] <= n_sets + 3


# --- requests of a fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lwea", "lwgp", "crc-ia", "scec"])
def test_a_fit_asks_once_how_much_memory_is_free(method, asked, monkeypatch):
    import cupy as cp

    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    labels = cp.asarray(structured_labels(200, 6, 3, seed=1)[0])
    ge.consensus(labels, 3, method=method)
    assert asked(lambda: ge.consensus(labels, 3, method=method))["memory_queries"] == 1


@pytest.fixture
def without_cub():
    """Use CuPy's own reductions. (CUB's are compiled for each block size, and warming cannot foresee the sizes.)"""
    from cupy._core import get_reduction_accelerators, set_reduction_accelerators

    before = get_reduction_accelerators()
    set_reduction_accelerators([])
    yield
    set_reduction_accelerators(before)


def test_after_gpuens_warm_a_fit_compiles_nothing(without_cub, monkeypatch, sizes, capsys):
    import cupy as cp
    from cupy.cuda import compiler

    from gpuens.cli import main

    labels = cp.asarray(structured_labels(300, 5, 4, seed=2, missing=0.02)[0])
    monkeypatch.setattr(kernels, "modules", list)  # this test is not about our own kernels
    sizes("cli.warm", N_CLUSTERS=(4,))
    assert main(["warm"]) == 0, capsys.readouterr().err
    compiled = []
    monkeypatch.setattr(compiler, "_compile_with_cache_cuda", lambda source, *_, **__: compiled.append(source))
    ge.consensus(labels, 3, method="lwea")
    ge.consensus(labels, 3, method="lwgp")
    assert compiled == []


LACKING = """
import cuda.pathfinder as pathfinder

def nowhere(name):
    raise pathfinder.DynamicLibNotFoundError(f"no {name}")

pathfinder.load_nvidia_dynamic_lib = nowhere
import cupy as cp
import gpuens as ge

try:
    ge.LWEA(2).fit(cp.zeros((3, 2), dtype=int))
except ImportError as error:
    print(error)
"""


def test_libraries_of_cuda_that_are_missing_are_named():
    import cupy

    if cupy.__version__ < "14":
        pytest.skip("CuPy 13 finds libraries without cuda.pathfinder")
    text = " ".join(elsewhere(LACKING))
    assert text.startswith("CuPy finds no NVRTC and no cuBLAS and no cuSOLVER, which CUDA 13 has ")
    assert text.endswith(f"{installing.command('cu13')}.")


OWNED = """
import os

import cupy as cp
import numpy as np
import gpuens as ge
from gpuens.runtime import device

pool = cp.cuda.MemoryPool()
pool.malloc(9_000_000)  # and given back to it, which keeps it

def theirs(n_bytes):
    try:
        return pool.malloc(n_bytes)
    except cp.cuda.memory.OutOfMemoryError:
        raise MemoryError("std::bad_alloc: out_of_memory: RMM failure at: Maximum pool size exceeded")

cp.cuda.set_allocator(theirs)
free, total = cp.cuda.runtime.memGetInfo()
print(free, device.memory_budget("cuda"))
labels = np.random.default_rng(0).integers(0, 9, size=(200, 4))
print((ge.LWEA(3).fit(cp.asarray(labels)).labels_.get() == ge.LWEA(3).fit(labels).labels_).all())
os.environ["GPUENS_MEMORY"] = "1GB"
try:
    ge.LWEA(3, device="cuda").fit(np.random.default_rng(0).integers(0, 9, size=(30_000, 12)))
except MemoryError as error:
    print(error)
"""


def test_memory_that_another_allocator_owns():
    free, budget, same, *told = elsewhere(OWNED, GPU_STACK_MEMORY="10000000", GPUENS_MEMORY="")
    assert int(free) < 1_000_000
    assert int(budget) == int(0.8 * (int(free) + (10_000_000 - int(free)) // 2))
    assert same == "True"
    assert " ".join(told) == (
        "LWEA of 30000 objects and 12 clusterings does not fit the GPU's 0.0 GB; use device='cpu', or reduce the "
        "objects first."
    )
