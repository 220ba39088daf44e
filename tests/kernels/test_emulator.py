"""The emulated device: CUDA's functions compared with NumPy, launch errors, and faults that the emulator must find."""

import os
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import emulator
import numpy as np
import pytest
from conftest import refused

from gpuens.runtime import kernels

HERE = Path(__file__).resolve().parents[1] / "emulator"
ORDERS = ["forward", "reversed", "shuffled", "shuffled:9"]
VALUES = np.arange(100, 170)[:64]  # 64 of 70 values: more memory follows after the last value


@pytest.fixture(scope="module")
def vocabulary():
    return emulator.Module((HERE / "vocabulary.cu").read_text(), kernels.FLAGS, name="vocabulary")


@pytest.fixture(params=ORDERS)
def any_order(request):
    with emulator.in_order(request.param):
        yield


# --- CUDA's functions -------------------------------------------------------------------------------------------------


def as_bytes(words):
    return words.view(np.uint8).reshape(-1, 4).astype(np.int64)


def as_words(array):
    return array.astype(np.uint8).view(np.uint32).ravel()


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (3, 33), (7, 256)])
def test_functions_of_words(vocabulary, grid, block):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 1 << 32, size=(2, 501), dtype=np.uint32)
    a[:2], b[:2] = (0, 1), (0, 1 << 31)
    b[2:99].view(np.uint8)[::3] = a[2:99].view(np.uint8)[::3]  # some bytes are equal
    out = np.empty((14, len(a)), dtype=np.uint32)
    vocabulary.get_function("words")((grid,), (block,), (a, b, out, np.int64(len(a))))
    x, y = as_bytes(a), as_bytes(b)
    wide = [int(high) << 32 | int(low) for high, low in zip(a, b, strict=True)]
    expected = [
        np.bitwise_count(a),
        [word.bit_count() for word in wide],
        [(int(word) & -int(word)).bit_length() for word in a],
        [32 - int(word).bit_length() for word in a],
        [64 - word.bit_length() for word in wide],
        a.astype(np.uint64) * b >> np.uint64(32),
        as_words(255 * (x == y)),
        as_words(x > y),
        as_words(255 * (x < y)),
        as_words(np.minimum(x, y)),
        as_words(np.maximum(x, y)),
        as_words((x + y) % 256),
        (x * y).sum(axis=1) + 7,
        a ^ b,
    ]
    for row, (found, wanted) in enumerate(zip(out, expected, strict=True)):
        np.testing.assert_array_equal(found, wanted, err_msg=f"row {row}")


def test_functions_of_floats(vocabulary):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=100).astype(np.float32), rng.normal(size=100)
    out = np.empty((6, 100))
    vocabulary.get_function("floats")((4,), (32,), (a, b, out, 100))
    # the product and the sum are rounded separately, because a·b + c is not fused
    expected = [a, b, np.minimum(a, 0), np.maximum(b, 0), b, b * b + a]
    np.testing.assert_array_equal(out, expected)


def test_subnormal_floats_are_zero_as_cupy_compiles_them(vocabulary):
    a = np.array([1.0, 1e-30, 1.2e-38, 1e-38, -1e-44, 0.0], dtype=np.float32)  # the smallest normal number is 1.18e-38
    b = np.array([1.0, 1e-38, -1e-40, 1e-300, 5e-324, 0.0])
    out = np.empty((9, len(a)))
    vocabulary.get_function("subnormal")((1,), (32,), (a, b, out, len(a)))

    def flushed(x):
        x = np.asarray(x, dtype=np.float32)
        return np.where(abs(x) < np.finfo(np.float32).tiny, np.float32(0), x)

    read, small = flushed(a), np.float32(1e-30)
    expected = [
        read,
        flushed(read * np.float32(1e-10)),
        read.astype(np.float64) * 1e-10,
        flushed(b.astype(np.float32)),
        b,
        flushed(flushed(read * small) * np.float32(1e30)),
        flushed(read * small),
        flushed(2 * read + 1 / small),
        np.where(read > 0, small, 0),
    ]
    for row, (found, wanted) in enumerate(zip(out, expected, strict=True)):
        np.testing.assert_array_equal(found, wanted, err_msg=f"row {row}")


def test_lanes_of_a_warp(vocabulary, any_order):
    values = np.random.default_rng(2).integers(0, 1000, size=(6, 32))
    out = np.empty((7, 6, 32), dtype=np.int64)
    vocabulary.get_function("lanes")((6,), (32,), (values, out))
    lane = np.arange(32)
    np.testing.assert_array_equal(out[0], np.repeat(values[:, 5:6], 32, axis=1))
    np.testing.assert_array_equal(out[1], values[:, np.where(lane < 3, lane, lane - 3)])
    np.testing.assert_array_equal(out[2], values[:, np.where(lane > 28, lane, lane + 3)])
    np.testing.assert_array_equal(out[3], values[:, lane ^ 9])
    np.testing.assert_array_equal(out[4], values[:, np.where(lane % 8 > 5, lane, lane + 2)])
    np.testing.assert_array_equal(out[5], ((values & 1) << lane).sum(axis=1, keepdims=True) + 0 * lane)
    evens = values[:, ::2]
    wanted = (evens > 900).any(axis=1) + 2 * (evens > 10).all(axis=1)
    np.testing.assert_array_equal(out[6], np.where(lane % 2, -1, wanted[:, None]))


def test_votes_of_a_block(vocabulary, any_order):
    values = np.array([[0] * 50, [1] * 50, [0] * 49 + [1], [1] * 49 + [0]], dtype=np.int32)
    out = np.empty((3, 4), dtype=np.int32)
    vocabulary.get_function("votes")((4,), (50,), (values, out))
    np.testing.assert_array_equal(out, [[0, 1, 1, 1], [0, 1, 0, 0], [0, 50, 1, 49]])


def test_atomics(vocabulary, any_order):
    rng = np.random.default_rng(3)
    bins, values = rng.integers(0, 9, size=(2, 777), dtype=np.int32)
    values += 5
    sums, wide, real, single = (np.zeros(9, dtype=dtype) for dtype in ("int32", "uint64", "float64", "float32"))
    least, most = np.full(9, 1000, dtype=np.int32), np.zeros(9, dtype=np.uint64)
    bits, parities = np.zeros((2, 9), dtype=np.uint32)
    args = (bins, values, sums, wide, real, single, least, most, bits, parities, np.int64(777))
    vocabulary.get_function("atomics")((13,), (64,), args)
    for found in (sums, wide, real, single):
        np.testing.assert_array_equal(found, np.bincount(bins, weights=values, minlength=9))
    for found, ufunc in [(least, np.minimum), (most, np.maximum), (bits, np.bitwise_or), (parities, np.bitwise_xor)]:
        np.testing.assert_array_equal(found, [ufunc.reduce(values[bins == bin]) for bin in range(9)])


def test_compare_and_swap(vocabulary, any_order):
    following, taken = np.zeros(1, dtype=np.int32), np.zeros(300, dtype=np.int32)
    vocabulary.get_function("tickets")((3,), (100,), (following, taken))
    assert following[0] == taken.sum() == 300


def test_three_dimensions(vocabulary, any_order):
    grid, block = (3, 2, 4), (5, 6, 2)
    out = np.empty((24, 60, 4), dtype=np.uint32)
    vocabulary.get_function("where")(grid, block, (out,))
    at = {
        size: np.stack(np.unravel_index(np.arange(np.prod(size)), size[::-1])[::-1], axis=1) for size in (grid, block)
    }
    np.testing.assert_array_equal(out[:, :, :3], at[block][None] + 100 * at[grid][:, None])
    np.testing.assert_array_equal(out[:, :, 3], np.arange(24)[:, None] + np.zeros(60))


@pytest.mark.parametrize("n", [0, 1, 31, 256, 10_007])
def test_reduction(vocabulary, any_order, n):
    x, out = np.random.default_rng(n).integers(0, 1000, size=n).astype(np.float64), np.empty(5)
    vocabulary.get_function("sums")((5,), (96,), (x, out, np.int64(n)))
    assert out.sum() == x.sum()  # sums of whole numbers are exact in any order


def test_every_kind_of_scalar(vocabulary):
    out = np.empty(6)
    scalars = np.bool_(True), np.uint8(255), np.int32(-3), np.uint64(1 << 40), np.float32(0.5), np.float64(0.1)
    vocabulary.get_function("scalars")((1,), (1,), (*scalars, out))
    assert out.tolist() == [1, 255, -3, 1 << 40, 0.5, 0.1]


# --- error messages ---------------------------------------------------------------------------------------------------

READ_ONLY = np.empty(5)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("args", "mentioned"),
    [
        ((np.ones(4), np.empty(5)), ["takes 3 arguments, not 2"]),
        ((np.ones(4), np.empty(5), np.int64(4), 1), ["takes 3 arguments, not 4"]),
        ((np.ones(4, dtype="float32"), np.empty(5), np.int64(4)), ["argument 1 (x)", "float32", "float64"]),
        (([1.0], np.empty(5), np.int64(1)), ["argument 1 (x)", "list"]),
        ((np.ones(8)[::2], np.empty(5), np.int64(4)), ["argument 1 (x)", "C-contiguous"]),
        ((np.ones(4), READ_ONLY, np.int64(4)), ["argument 2 (out)", "read-only"]),
        ((np.ones(4), np.empty(5), np.int32(4)), ["argument 3 (n)", "int64", "int32"]),
        ((np.ones(4), np.empty(5), 4.0), ["argument 3 (n)", "int64", "float"]),
        ((np.ones(4), np.empty(5), True), ["argument 3 (n)", "int64", "bool"]),
    ],
)
def test_arguments_that_do_not_fit(vocabulary, args, mentioned):
    refused(lambda: vocabulary.get_function("sums")((5,), (32,), args), emulator.EmulationError, "sums", *mentioned)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "mentioned"),
    [
        ((0,), (32,), 0, "grid"),
        ((1,), (0,), 0, "block"),
        ((1, 65_536), (32,), 0, "65535"),
        ((1,), (288,), 0, "256 threads"),  # the kernel allows 256 threads
        ((1,), (32,), 50_000, "max_dynamic_shared_size_bytes"),
        ((1,), (32,), 48 << 10, "beside 64 of static arrays"),
    ],
)
def test_sizes_that_do_not_fit(vocabulary, grid, block, shared, mentioned):
    function = vocabulary.get_function("sums")
    args = (np.ones(4), np.empty(5), np.int64(4))
    refused(lambda: function(grid, block, args, shared_mem=shared), emulator.EmulationError, "sums", mentioned)


def test_more_shared_memory_on_request():
    function = turned("dynamic_bounds", fault=False)[0].get_function("turn")
    function.max_dynamic_shared_size_bytes = 100_000
    out = np.empty_like(VALUES)
    function((1,), (64,), (VALUES, out, np.int32(64)), shared_mem=100_000)
    np.testing.assert_array_equal(out, VALUES[::-1])
    with pytest.raises(emulator.EmulationError):
        function.max_dynamic_shared_size_bytes = 1 << 20


@pytest.mark.parametrize("body", ["*out = min(1, 2u);", "long long x = 0; atomicAdd(&x, 1ll);", "*out = nothing;"])
def test_what_does_not_compile(body):
    module = emulator.Module(f'extern "C" __global__ void wrong(int* out) {{ {body} }}', (), name="wrong")
    with pytest.raises(emulator.EmulationError, match="wrong does not compile"):
        module.get_function("wrong")
    refused(lambda: module.get_function("right"), emulator.EmulationError, "wrong", "right")


def test_an_order_that_does_not_exist(vocabulary):
    launch = vocabulary.get_function("where")
    with emulator.in_order("sideways"):
        refused(lambda: launch((1,), (1,), (np.empty(4),)), emulator.EmulationError, "sideways")


# --- the driver -------------------------------------------------------------------------------------------------------


def test_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = 'extern "C" __global__ void put(int* out) { *out = VALUE; }'
    out = np.zeros(1, dtype=np.int32)
    for value, n_files in [(1, 1), (1, 1), (2, 2)]:
        emulator.Module(source, (f"-DVALUE={value}",), name="put").get_function("put")((1,), (1,), (out,))
        assert out[0] == value
        assert len(list(tmp_path.rglob("*"))) == 2 + n_files


def test_several_threads_launch(vocabulary):
    def launch(seed):
        x, out = np.random.default_rng(seed).integers(0, 100, size=999).astype(np.float64), np.empty(4)
        vocabulary.get_function("sums")((4,), (64,), (x, out, np.int64(999)))
        return out.sum() == x.sum()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(launch, range(40)))


# --- planted faults ---------------------------------------------------------------------------------------------------


def turned(name, fault):
    """Return a module of faults/ and its kernel's result for `VALUES`.

    Without the fault, this is the reversed array.
    """
    options = (*kernels.FLAGS, f"-DFAULT={int(fault)}")
    module = emulator.Module((HERE / "faults" / f"{name}.cu").read_text(), options, name=name)
    out = np.zeros_like(VALUES)
    module.get_function("turn")((1,), (64,), (VALUES, out, np.int32(64)), shared_mem=VALUES.nbytes)
    return module, out


STOPPED = {
    "partial_barrier": "reached by 32 of the 64 threads of block (0, 0, 0), while 32 returned",
    "two_barriers": "reached by 32 of the 64 threads of block (0, 0, 0), while 0 returned and 32 waited elsewhere",
    "missing_lane": "names lanes 0xffffffff, but lane 24 of warp 0 of block (0, 0, 0) has returned",
}
ORDERED = ["missing_barrier", "missing_syncwarp"]
SANITIZED = [
    ("asan", "global_bounds", "AddressSanitizer: heap-buffer-overflow"),
    ("asan", "static_bounds", "AddressSanitizer: global-buffer-overflow"),
    ("asan", "dynamic_bounds", "AddressSanitizer: heap-buffer-overflow"),
    ("asan", "index_overflow", "runtime error: signed integer overflow"),
    ("asan", "partial_barrier", "reached by 32 of the 64 threads"),
    ("tsan", "missing_barrier", "ThreadSanitizer: data race"),
    ("tsan", "missing_syncwarp", "ThreadSanitizer: data race"),
    ("tsan", "vote_as_barrier", "ThreadSanitizer: data race"),
    ("tsan", "partial_barrier", "reached by 32 of the 64 threads"),
]
FAULTS = sorted(path.stem for path in (HERE / "faults").glob("*.cu"))


def test_every_fault_is_looked_for():
    assert sorted({*STOPPED, *ORDERED, *(name for _, name, _ in SANITIZED), "unwritten_shared"}) == FAULTS


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_wrong_without_the_fault(name, any_order):
    np.testing.assert_array_equal(turned(name, fault=False)[1], VALUES[::-1])


@pytest.mark.parametrize("name", STOPPED)
def test_stopped(name):
    refused(lambda: turned(name, fault=True), emulator.EmulationError, "turn", f"{name}.cu", STOPPED[name])
    np.testing.assert_array_equal(turned(name, fault=False)[1], VALUES[::-1])  # a launch after the failed launch works


@pytest.mark.parametrize("name", ORDERED)
def test_orders_differ(name):
    found = set()
    for order in ORDERS:
        with emulator.in_order(order):
            found.add(tuple(turned(name, fault=True)[1]))
    assert len(found) > 1


def test_unwritten_shared_memory_shows():
    assert (turned("unwritten_shared", fault=True)[1][:32] == -1).all()


def under(mode, *arguments):
    """Run this file under a sanitizer; return the exit status and the printed text."""
    if reason := emulator.why_not(mode):
        pytest.skip(reason)
    command, environment = emulator.python_under(mode)
    paths = [str(HERE.parent), *filter(None, [environment.get("PYTHONPATH")])]
    environment = environment | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [*command, __file__, *arguments], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.sanitizers
@pytest.mark.parametrize("mode", ["asan", "tsan"])
def test_sanitizers_find_nothing_without_faults(mode):
    names = sorted({name for each, name, _ in SANITIZED if each == mode})
    status, printed = under(mode, "0", *names)
    assert status == 0, printed
    assert printed.split()[: len(names)] == names


@pytest.mark.sanitizers
@pytest.mark.parametrize(("mode", "name", "report"), SANITIZED)
def test_sanitizers_find(mode, name, report):
    status, printed = under(mode, "1", name)
    assert status != 0
    assert report in printed
    assert f"{name}.cu:" in printed


# --- checks of kernels by NVRTC ---------------------------------------------------------------------------------------

WARNED = 'extern "C" __global__ void warned(int* out) { int unused; *out = 0; }'

SLOW = """
extern "C" __global__ void sums(unsigned long long* out) {
    __shared__ unsigned long long sum;
    atomicAdd(&sum, out[threadIdx.x]);
    out[0] = sum;
}
extern "C" __global__ void looked_up(int* out, int n) {
    int own[64];
    for (int i = 0; i < 64; ++i) own[(i * n) % 64] = out[i];
    out[threadIdx.x] = own[n];
}
extern "C" __global__ void quick(unsigned* out) {
    __shared__ unsigned sum;
    atomicAdd(&sum, out[threadIdx.x]);
    out[0] = sum;
}
"""


@pytest.fixture(scope="module")
def check_kernels():
    found = runpy.run_path(str(HERE / "check.py"))
    if reason := found["nvrtc"].why_not():
        pytest.skip(reason)
    return found


@pytest.mark.parametrize("major", [12, 13])
@pytest.mark.parametrize("architecture", ["sm_75", "sm_120"])
def test_the_gate_stops_what_spills_and_what_warns(architecture, major, check_kernels):
    def compiled(source, *options):
        return check_kernels["compiled"](source, (*kernels.FLAGS, *options), architecture, major)

    source = (HERE / "spill.cu").read_text()
    uses, wrong, _ = compiled(source, "-DN=40")
    assert uses[0].spilled > 0
    assert f"spill spills {uses[0].spilled} bytes" in wrong
    uses, wrong, _ = compiled(source, "-DN=4")
    assert (uses[0].kernel, uses[0].spilled, wrong) == ("spill", 0, "")
    assert 0 < uses[0].registers <= 64
    assert "warning" in compiled(WARNED)[1]
    assert "error" in compiled(WARNED.replace("int unused", "uint8_t none"))[1]


@pytest.mark.parametrize(("architecture", "major"), [("sm_75", 12), ("sm_90", 13), ("sm_120", 13)])
def test_the_gate_stops_loops_of_compare_and_swap_and_local_memory(architecture, major, check_kernels):
    *_, cubin = check_kernels["compiled"](SLOW, kernels.FLAGS, architecture, major)
    none, code = check_kernels["nvrtc"].instructions([b"", cubin], architecture)
    assert none == {}
    said = check_kernels["slow"](code).splitlines()
    assert sorted(code) == ["looked_up", "quick", "sums"]
    assert [line.split()[0] for line in sorted(said)] == ["looked_up", "sums"]
    assert "LDL" in said[0] + said[1]
    assert "ATOMS.CAST.SPIN" in said[0] + said[1]


def test_every_compiler_sees_every_file_on_every_architecture(check_kernels):
    jobs = check_kernels["jobs"]()
    seen = {(job.stem, job.architecture, job.major) for job in jobs}
    assert len(seen) == len(kernels.sources()) * len(check_kernels["nvrtc"].ARCHITECTURES) * 2
    variants = {(job.stem, str(job.macros), job.architecture) for job in jobs}
    assert len(variants) == 7 * sum(len(kernels.variants(stem)) for stem in kernels.sources())


def test_the_vocabulary_is_that_of_cuda(check_kernels):
    source = (HERE / "vocabulary.cu").read_text()
    uses, wrong, _ = check_kernels["compiled"](source, kernels.FLAGS, "sm_75")
    assert wrong == ""
    assert len(uses) == source.count("__global__")


if __name__ == "__main__":  # `under` runs this file
    for name in sys.argv[2:]:
        fault = sys.argv[1] == "1"
        assert (turned(name, fault)[1] == VALUES[::-1]).all() or fault
        print(name)
