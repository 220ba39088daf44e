"""The ceilings of one thread of this machine: rates with which primitives are compared.

Each is the best of several calls by CPU seconds, of a loop that does one thing to data of a known place: NumPy's, or a
loop of ceilings.cpp, compiled here for the level of x86-64 that gpuens uses. Results are checked. Labels are compared
in two ways, of which the quicker one is the ceiling: by tiles, 64 labels side by side with one of each of four queries;
and by a table of what each cluster is worth to 64 queries, whose rows four label rows add.
"""

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

SECONDS = 0.12  # least CPU seconds of all calls of a measurement
CALLS = 5  # least number of calls of a measurement
# for each ceiling, its unit and its description
SAID = {
    "copy": ("B/s", "copy between arrays in memory, bytes read and written"),
    "copy, cached": ("B/s", "copy of 256 KiB, bytes read and written"),
    "copy, all threads": ("B/s", "copy between arrays in memory by all threads, wall seconds"),
    "gather, 32 KiB": ("/s", "numbers of 8 bytes read at random places of 32 KiB"),
    "gather, 512 KiB": ("/s", "the same of 512 KiB"),
    "gather, 8 MiB": ("/s", "the same of 8 MiB"),
    "gather, 128 MiB": ("/s", "the same of 128 MiB"),
    "labels": ("/s", "labels compared and matches added in bytes"),
    "weighted labels": ("/s", "the same, weights of 16 bits added"),
    "float64 labels": ("/s", "the same, weights of float64 added"),
    "counters": ("/s", "counters of 8 bytes in 32 KiB that pairs of labels increase"),
    "float64 rows": ("/s", "numbers of float64 added, rows of 32 of a table of 32 KiB"),
    "float32 products": ("/s", "multiplications and additions of float32, rows of 16 of a table of 32 KiB"),
    "words": ("/s", "words of 64 bits: AND, and the bits set are counted"),
    "logarithms": ("/s", "logarithms to the base 2, one after the other"),
    "float64 products": ("/s", "multiplications and additions of float64 in a product of matrices"),
}
PLACES = {2**15: "gather, 32 KiB", 2**19: "gather, 512 KiB", 2**23: "gather, 8 MiB", 2**27: "gather, 128 MiB"}
N_LABELS, N_QUERIES, N_TILES, N_CLUSTERS = 32, 256, 8, 8
LINE = 64  # bytes of a cache line
COMPILERS = ("c++", "g++", "clang++")  # beside the one that CXX names
OPTIONS = ("-std=c++20", "-O3", "-ffp-contract=fast", "-shared", "-fPIC")
# options with which kernels/CMakeLists.txt compiles the primitives of each level
LEVELS = {
    "": (),
    "v2": ("-march=x86-64-v2",),
    "v3": ("-march=x86-64-v3",),
    "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
}


def gather(table_bytes: int) -> str:
    """Return the ceiling of random reads from a table: that of the largest measured table that is not larger."""
    return PLACES[max(size for size in PLACES if size <= max(table_bytes, 2**15))]


def rate(name: str, quick: bool) -> common.Record:
    """Return the rate of a ceiling, in operations or bytes a second of one thread."""
    ways_of = {
        "copy": copied, "copy, cached": copied_in_cache, "copy, all threads": copied_by_all, "labels": compared,
        "weighted labels": weighted, "float64 labels": in_float64, "counters": counted, "float64 rows": rows_added,
        "float32 products": multiplied, "words": words_counted, "logarithms": logarithms,
        "float64 products": of_matrices,
    }  # fmt: skip
    do, amount = ways_of[name](quick) if name in ways_of else gathered(name, quick)
    ways = [best(call, quick, wall=name.endswith("all threads")) for call in do]
    return {"rate": amount / min(ways), "ways": [amount / seconds for seconds in ways]}


def best(call: Callable[[], Any], quick: bool, *, wall: bool = False) -> float:
    """Return the fewest CPU seconds (or seconds) of several calls, after a call that fills caches."""
    call()
    clock, times = time.perf_counter if wall else time.process_time, []
    while len(times) < CALLS or (not quick and sum(times) < SECONDS):
        start = clock()
        call()
        times.append(clock() - start)
    return max(min(times), 1e-9)


def zeros(n: int, lanes: int, dtype: Any) -> np.ndarray:
    """Return zeros (n, lanes) that begin where a cache line does: a row across more lines than needed loads slower."""
    dtype = np.dtype(dtype)
    room = np.zeros(n * lanes * dtype.itemsize + LINE, dtype=np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + n * lanes * dtype.itemsize].view(dtype).reshape(n, lanes)


def aligned(values: np.ndarray) -> np.ndarray:
    """Copy an array (n, lanes), so that rows as long as cache lines begin where cache lines begin; return the copy."""
    copy = zeros(*values.shape, values.dtype)
    copy[:] = values
    return copy


@functools.cache
def loops() -> ctypes.CDLL:
    """Compile ceilings.cpp for the level of the primitives in use; return the library of its loops."""
    compiler = next(filter(shutil.which, filter(None, [os.environ.get("CXX"), *COMPILERS])), None)
    if compiler is None:
        raise SystemExit("limits.py compiles loops in C++; install a compiler (g++ 11 or later), or let CXX name one.")
    source = Path(__file__).with_name("ceilings.cpp")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "ceilings.so"
        subprocess.run([compiler, *OPTIONS, *LEVELS[cpu.level()], source, "-o", library], check=True)
        return ctypes.CDLL(str(library))


def loop(name: str, *given: Any, returns: Any = None) -> Callable[[], Any]:
    """Return a call of a loop of ceilings.cpp with the addresses of arrays and with whole numbers."""
    run = getattr(loops(), name)
    run.restype = returns
    arguments = [value.ctypes.data_as(ctypes.c_void_p) if isinstance(value, np.ndarray) else value for value in given]
    run.argtypes = [ctypes.c_void_p if isinstance(value, np.ndarray) else ctypes.c_int64 for value in given]
    return lambda: run(*arguments)


# calls that do the same work in different ways, and the amount of work of each call
Ways = tuple[list[Callable[[], Any]], float]


# --- bytes ------------------------------------------------------------------------------------------------------------


def copied(quick: bool) -> Ways:
    source, target = np.zeros((2, 2**20 if quick else 2**24))
    return [lambda: np.copyto(target, source)], 16 * len(source)


def copied_in_cache(quick: bool) -> Ways:
    source, target = np.zeros((2, 2**14))
    return [lambda: [np.copyto(target, source) for _ in range(64)]], 64 * 16 * len(source)


def copied_by_all(quick: bool) -> Ways:
    source, target = np.zeros((2, 2**20 if quick else 2**24))

    def copy() -> None:
        devices.over_ranges(lambda a, b: np.copyto(target[a:b], source[a:b]), len(source))

    return [copy], 16 * len(source)


def gathered(name: str, quick: bool) -> Ways:
    (size,) = (size for size, called in PLACES.items() if called == name)
    table = np.arange(size // 8)
    places = np.random.default_rng(0).integers(len(table), size=2**14 if quick else 2**20).astype(np.int32)
    gather = loop("gather", table, places, len(places), returns=ctypes.c_int64)
    assert gather() == int(places.sum(dtype=np.int64))
    return [gather], len(places)


# --- labels -----------------------------------------------------------------------------------------------------------


def compared(quick: bool) -> Ways:
    return _ways_to_compare(np.uint8, quick)


def weighted(quick: bool) -> Ways:
    return _ways_to_compare(np.uint16, quick)


def in_float64(quick: bool) -> Ways:
    return _ways_to_compare(np.float64, quick)


def _ways_to_compare(dtype: type, quick: bool) -> Ways:
    rng, repeats = np.random.default_rng(0), 1 if quick else 16
    lanes, name = (16 if dtype is np.float64 else 64), np.dtype(dtype).name
    tiles = aligned(rng.integers(N_CLUSTERS, size=(N_TILES * N_LABELS, lanes)).astype(np.uint8))
    queries = rng.integers(N_CLUSTERS, size=(N_QUERIES, N_LABELS)).astype(np.uint8)
    weights = rng.integers(1, 7, size=queries.shape).astype(dtype)
    sums = zeros(N_TILES * N_QUERIES, lanes, dtype)
    ways = [loop(f"by_tiles_{name}", tiles, queries, weights, sums, N_TILES, N_QUERIES, N_LABELS, repeats)]
    ways[0]()
    of_tiles = tiles.reshape(N_TILES, N_LABELS, lanes)
    expected = ((of_tiles[:, None] == queries[None, :, :, None]) * weights[None, :, :, None]).sum(axis=2)
    assert np.array_equal(sums.reshape(expected.shape), expected)
    rows = np.ascontiguousarray(of_tiles.transpose(0, 2, 1).reshape(-1, N_LABELS))
    if dtype is not np.float64:
        starts, of_rows = N_CLUSTERS * np.arange(N_LABELS), zeros(len(rows), lanes, dtype)
        table = zeros(N_CLUSTERS * N_LABELS, lanes, dtype)
        for j, (own, worth) in enumerate(zip(queries[:lanes], weights[:lanes], strict=True)):
            table[starts + own, j] = worth
        times = repeats * N_QUERIES // lanes
        ways.append(loop(f"by_table_{name}", rows, starts, table, of_rows, len(rows), N_LABELS, times))
        ways[1]()
        assert np.array_equal(of_rows.reshape(N_TILES, lanes, lanes), expected[:, :lanes].transpose(0, 2, 1))
    return list(ways), repeats * len(rows) * N_QUERIES * N_LABELS


# --- additions and the rest -------------------------------------------------------------------------------------------


def counted(quick: bool) -> Ways:
    rng, n = np.random.default_rng(0), 2**14 if quick else 2**20
    one, other = rng.integers(32, size=(2, n)).astype(np.uint8)
    tables = np.zeros((4, 1024), dtype=np.int64)
    count = loop("count", one, other, tables, n)
    count()
    assert np.array_equal(tables.sum(axis=0), np.bincount(32 * one.astype(int) + other, minlength=1024))
    return [count], n


def rows_added(quick: bool) -> Ways:
    rng, n = np.random.default_rng(0), 2**10 if quick else 2**16
    table, which = aligned(rng.random((128, 32))), rng.integers(128, size=n).astype(np.uint8)
    sums = np.zeros(32)
    add = loop("add_rows", which, table, sums, n)
    add()
    assert np.allclose(sums, table[which].sum(axis=0))
    return [add], n * len(sums)


def multiplied(quick: bool) -> Ways:
    rng, n = np.random.default_rng(0), 2**10 if quick else 2**16
    table, which = aligned(rng.random((512, 16)).astype(np.float32)), rng.integers(512, size=n).astype(np.int32)
    factors, sums = rng.random(n).astype(np.float32), np.zeros((4, 16), dtype=np.float32)
    multiply = loop("multiply", which, factors, table, sums, n)
    multiply()
    assert np.allclose(sums.sum(axis=0), factors @ table[which], rtol=1e-3)
    return [multiply], n * sums.shape[1]


def words_counted(quick: bool) -> Ways:
    one, other = np.random.default_rng(0).integers(2**63, size=(2, 1024)).astype(np.uint64)
    repeats = 4 if quick else 1024
    count = loop("words", one, other, len(one), repeats, returns=ctypes.c_int64)
    assert count() == repeats * int(np.bitwise_count(one & other).sum())
    return [count], repeats * len(one)


def logarithms(quick: bool) -> Ways:
    values = np.random.default_rng(0).random(2**10 if quick else 2**17)
    add = loop("logarithms", values, len(values), returns=ctypes.c_double)
    assert np.isclose(add(), np.log2(values).sum())
    return [add], len(values)


def of_matrices(quick: bool) -> Ways:
    from threadpoolctl import threadpool_limits

    n = 64 if quick else 768
    one, other = np.random.default_rng(0).random((2, n, n))
    threadpool_limits(1, user_api="blas")
    return [lambda: one @ other], len(one) ** 3
