"""The stand-in for CuPy counts every transfer to or from the host, and runs out of memory."""

import gc
import operator

import numpy as np
import pytest

from gpuens.runtime import device, kernels

HOST = np.array([3, 1, 2])
BINARY = [operator.add, operator.mul, operator.eq, operator.lt, operator.and_, operator.matmul, operator.iadd]


@pytest.fixture
def cp(fake_cupy):
    return fake_cupy


@pytest.fixture
def on_gpu(cp):
    return cp.asarray(HOST)


# --- error messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [np.asarray, np.array, np.ascontiguousarray, lambda a: np.array([a, a])])
def test_no_implicit_way_to_the_host(on_gpu, read):
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
        read(on_gpu)


@pytest.mark.parametrize("operate", BINARY, ids=lambda operate: operate.__name__)
def test_no_arithmetic_across(on_gpu, operate):
    for pair in ((on_gpu, HOST), (HOST.copy(), on_gpu), (on_gpu, HOST.tolist()), (on_gpu, None)):
        with pytest.raises(TypeError):
            operate(*pair)


@pytest.mark.parametrize("index", [np.array([0]), [0], np.array([True, False, True]), "all", True, (HOST, 0)], ids=str)
def test_no_indices_of_the_host(on_gpu, index):
    with pytest.raises(TypeError):
        on_gpu[index]
    with pytest.raises(TypeError):
        on_gpu[index] = 1


def test_indices_mean_what_they_mean_to_numpy_or_are_refused(cp, on_gpu):
    with pytest.raises(IndexError):
        on_gpu[cp.asarray([3])]
    with pytest.raises(IndexError):
        on_gpu[cp.asarray([0.0])]
    with pytest.raises(ValueError, match="repeated"):
        on_gpu[cp.asarray([1, 1])] = cp.asarray([5, 6])
    for value in (HOST, [1, 2, 3], "a", None):
        with pytest.raises(TypeError):
            on_gpu[:] = value
    on_gpu[cp.asarray([1, 1])] = 7
    assert on_gpu.tolist() == [3, 7, 2]


REFUSED = {
    "concatenation across": lambda cp, a: np.concatenate([a, HOST]),
    "minimum across": lambda cp, a: np.minimum(a, HOST),
    "where across": lambda cp, a: np.where(a > 1, HOST, a),
    "sums in places": lambda cp, a: np.add.at(a, a, 1),
    "reductions of ufuncs": lambda cp, a: np.maximum.reduce(a),
    "functions that are not there": lambda cp, a: np.apply_along_axis(len, 0, a),
    "names that are not there": lambda cp, a: cp.no_such_function,
    "methods that are not there": lambda cp, a: a.tobytes(),
    "a shape on the device": lambda cp, a: cp.zeros(a[0]),
    "a bound on the device": lambda cp, a: range(a[0]),
    "an index of a list on the device": lambda cp, a: [1, 2, 3][a[1]],
    "NumPy functions of lists": lambda cp, a: cp.cumsum([1, 2]),
    "NumPy functions of NumPy arrays": lambda cp, a: cp.cumsum(HOST),
    "contiguity of NumPy arrays": lambda cp, a: cp.ascontiguousarray(HOST),
    "objects": lambda cp, a: cp.asarray(np.array(["a", None], dtype=object)),
    "strings": lambda cp, a: cp.asarray(["a", "b"]),
    "the truth of many": lambda cp, a: bool(a),
    "hashing": lambda cp, a: {a},
    "pointers that are not its own": lambda cp, a: cp.asarray(Described(a, data=(4096, False))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(cp, on_gpu, case):
    with pytest.raises((TypeError, ValueError, AttributeError, NotImplementedError, RuntimeError)):
        REFUSED[case](cp, on_gpu)


class Described:
    """An array of another library."""

    def __init__(self, array, **changed):
        self._array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}


# --- computation ------------------------------------------------------------------------------------------------------

COMPUTED = {
    "elementwise": lambda xp, a: np.minimum(a * 2, 5) - np.floor(a / 2),
    "comparison": lambda xp, a: (a > 1) & ~(a == 3),
    "scalars on the left": lambda xp, a: np.float64(2) * a + 1 - np.int64(3),
    "reduction": lambda xp, a: a.sum(),
    "reduction along an axis": lambda xp, a: a.reshape(1, 3).max(axis=1, keepdims=True),
    "variance": lambda xp, a: a.var(dtype=np.float64),
    "argmin": lambda xp, a: a.argmin(),
    "cumsum of a mask": lambda xp, a: np.cumsum(a > 1),
    "bincount": lambda xp, a: np.bincount(a, minlength=7),
    "weighted bincount": lambda xp, a: np.bincount(a, weights=a / 2),
    "argsort": lambda xp, a: np.argsort(a, kind="stable"),
    "unique": lambda xp, a: np.unique(a // 2, return_inverse=True, return_counts=True)[1],
    "where": lambda xp, a: np.where(a > 1, a, -1),
    "positions": lambda xp, a: np.flatnonzero(a > 1),
    "choice": lambda xp, a: a[np.argsort(a)][a > 1][::-1],
    "along an axis": lambda xp, a: np.take_along_axis(a[None, :], np.argsort(a[None, :], axis=1), axis=1),
    "repeat": lambda xp, a: a.repeat(2),
    "products": lambda xp, a: a.reshape(3, 1) @ a[None, :],
    "making": lambda xp, a: np.full_like(a, 7, dtype=np.int16) + xp.arange(3) + xp.zeros(3, dtype=np.uint8),
    "joining": lambda xp, a: np.concatenate([a, a[:1], xp.ones(2, dtype=np.int64)]),
    "spreading": lambda xp, a: np.broadcast_to(a, (2, 3)).T,
    "bits": lambda xp, a: (a >> 1).view(np.uint8)[:4],
}


@pytest.mark.parametrize("case", COMPUTED)
def test_numpy_s_functions_compute_on_the_device(cp, on_gpu, case):
    sizes = len(cp.traffic.to_host.sizes)
    result = COMPUTED[case](cp, on_gpu)
    assert isinstance(result, cp.ndarray)  # 0-d results are device arrays, too
    assert len(cp.traffic.to_host.sizes) == sizes
    expected = np.asarray(COMPUTED[case](np, HOST))
    np.testing.assert_array_equal(cp.asnumpy(result), expected, strict=True)


def test_views_share_memory(cp):
    matrix = cp.asfortranarray(cp.zeros((3, 4)))
    matrix.T[1:3, 0] = 5
    assert cp.asnumpy(matrix).tolist() == [[0, 5, 5, 0], [0] * 4, [0] * 4]
    assert matrix.flags.f_contiguous
    assert matrix.T.flags["C_CONTIGUOUS"]
    assert cp.ascontiguousarray(matrix.T) is not matrix
    assert cp.asarray(matrix) is matrix
    assert cp.asnumpy(matrix).flags.c_contiguous  # get() returns C order for arrays of any order
    assert matrix.copy().flags.c_contiguous
    assert matrix.copy(order="F").flags.f_contiguous


def test_other_libraries(cp, on_gpu):
    for wrapped in (Described(on_gpu), Described(on_gpu[::2])):
        again = cp.asarray(wrapped)
        np.testing.assert_array_equal(cp.asnumpy(again), cp.asnumpy(wrapped._array))
        again[0] = 9
        assert int(on_gpu[0]) == 9
    assert on_gpu.__dlpack_device__() == (2, 0)
    assert cp.from_dlpack(on_gpu).tolist() == on_gpu.tolist()
    addresses = {array.__cuda_array_interface__["data"] for array in (on_gpu, on_gpu[1:], on_gpu.copy())}
    assert len(addresses) == 3


def test_new_memory_is_not_zero(cp):
    assert cp.empty(3, dtype=np.int64).tolist() == [-1] * 3
    assert np.isnan(cp.asnumpy(cp.empty((2, 2), order="F"))).all()
    assert cp.empty_like(cp.ones(2, dtype=bool)).tolist() == [True, True]


# --- memory, traffic and kernels --------------------------------------------------------------------------------------


def test_traffic_is_counted(cp):
    matrix = cp.asarray(np.zeros((100, 10)))
    assert cp.traffic.to_device.sizes == [8000]
    assert int(matrix.sum()) == 0
    assert (cp.traffic.to_host.bytes, cp.traffic.to_host.largest) == (8, 8)
    cp.asnumpy(matrix[:, 0])
    assert (cp.traffic.to_host.bytes, cp.traffic.to_host.largest) == (808, 800)
    cp.reset()
    assert cp.traffic.to_host.largest == cp.traffic.to_device.bytes == 0


def test_memory_has_a_limit(cp, monkeypatch):
    monkeypatch.delenv("GPUENS_MEMORY", raising=False)
    cp.reset(limit=10_240)
    first = cp.zeros(1000, dtype=np.uint8)
    view = first[10:]
    assert cp.memory.used == 1024
    with pytest.raises(cp.OutOfMemoryError, match=r"Out of memory allocating 9,728 bytes"):
        cp.zeros(9300, dtype=np.uint8)
    assert issubclass(cp.OutOfMemoryError, MemoryError)
    del first
    gc.collect()
    assert cp.memory.used == 1024
    assert device.memory_budget("cuda") == int(0.8 * 9216)
    del view
    gc.collect()
    assert cp.memory.used == 0
    assert cp.get_default_memory_pool().free_bytes() == cp.memory.most == 1024
    assert device.memory_budget("cuda") == int(0.8 * 10_240)  # free memory includes the pool's
    cp.get_default_memory_pool().free_all_blocks()
    assert cp.cuda.runtime.memGetInfo() == (10_240, 10_240)


def test_the_device_is_found(cp):
    assert device.resolve("cuda") == device.resolve("auto", "cuda") == "cuda"
    assert device.describe()[1]["device"] == "cuda:0"
    assert device.identity("cuda") == "cuda:0"
    assert device.namespace("cuda") is cp


def test_kernels_run_in_the_emulator(cp):
    codes = cp.asarray(np.array([[0, 1, 255], [1, 1, 0]], dtype=np.uint8))
    offsets, values = cp.asarray(np.array([0, 2, 4])), cp.asarray(np.array([1.0, 2, 4, 8]))
    sums = cp.empty(3)
    sizes = (np.int64(3), np.int64(2))
    kernels.launch("row_sums", 1, 32, (codes, offsets, values, sums, *sizes), device="cuda", CODE="u8")
    assert sums.tolist() == [9, 10, 4]
    arguments = (cp.asnumpy(codes), offsets, values, sums, *sizes)
    with pytest.raises(TypeError, match=r"Unsupported type <class 'numpy\.ndarray'>"):
        kernels.launch("row_sums", 1, 32, arguments, device="cuda", CODE="u8")


# --- CuPy itself, where it is installed -------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("case", COMPUTED)
def test_cupy_computes_the_same(case):
    import cupy

    result = COMPUTED[case](cupy, cupy.asarray(HOST))
    assert isinstance(result, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(result), COMPUTED[case](np, HOST), rtol=1e-12)
