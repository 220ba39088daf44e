"""The ceilings of one thread of this machine: rates with which primitives are compared.

Each is the best of several calls by CPU seconds, of a loop that does one thing to data of a known place. Results are
checked. Labels are compared in two ways, of which the quicker one is the ceiling: by tiles, 64 labels side by side with
one of each of four queries; and by a table of what each cluster is worth to 64 queries, whose rows four label rows add.
"""

import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from llvmlite import ir

from gpuens.runtime import device as devices
from gpuens.runtime.compiled import intrinsic, njit, types
from gpuens.runtime.lanes import FLOAT_LANES, LANES, aligned_zeros, nothing, plus, plus_times, popcount, store

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
    """Return the fewest CPU seconds (or seconds) of several calls, after a call that warms up."""
    call()
    clock, taken = time.perf_counter if wall else time.process_time, []
    while len(taken) < CALLS or (not quick and sum(taken) < SECONDS):
        start = clock()
        call()
        taken.append(clock() - start)
    return max(min(taken), 1e-9)


def aligned(values: np.ndarray) -> np.ndarray:
    """Copy an array (n, lanes), so that rows as long as cache lines begin where cache lines begin; return the copy."""
    found = aligned_zeros(*values.shape, values.dtype)
    found[:] = values
    return found


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
    assert _gather(table, places) == int(places.sum(dtype=np.int64))
    return [lambda: _gather(table, places)], len(places)


@njit(cache=True, nogil=True)
def _gather(table, places):
    a, b, c, d = 0, 0, 0, 0  # four chains of reads at the same time, because a processor can wait for several reads
    for i in range(np.uint64(0), np.uint64(len(places)), np.uint64(4)):
        a += table[np.uint64(places[i])]
        b += table[np.uint64(places[i + np.uint64(1)])]
        c += table[np.uint64(places[i + np.uint64(2)])]
        d += table[np.uint64(places[i + np.uint64(3)])]
    return a + b + c + d


# --- labels -----------------------------------------------------------------------------------------------------------


def compared(quick: bool) -> Ways:
    return _ways_to_compare(np.uint8, quick)


def weighted(quick: bool) -> Ways:
    return _ways_to_compare(np.uint16, quick)


def in_float64(quick: bool) -> Ways:
    return _ways_to_compare(np.float64, quick)


def _ways_to_compare(dtype: type, quick: bool) -> Ways:
    rng, repeats = np.random.default_rng(0), 1 if quick else 16
    lanes = FLOAT_LANES if dtype is np.float64 else LANES
    flat = aligned(rng.integers(N_CLUSTERS, size=(N_TILES * N_LABELS, lanes)).astype(np.uint8))
    tiles = flat.reshape(N_TILES, N_LABELS, lanes)
    queries = rng.integers(N_CLUSTERS, size=(N_QUERIES, N_LABELS)).astype(np.uint8)
    weights = rng.integers(1, 7, size=queries.shape).astype(dtype)
    sums = aligned_zeros(N_TILES * N_QUERIES, lanes, dtype)
    ways: list[Callable[[], Any]] = [lambda: [_by_tiles(flat, queries, weights, sums) for _ in range(repeats)]]
    ways[0]()
    expected = ((tiles[:, None] == queries[None, :, :, None]) * weights[None, :, :, None]).sum(axis=2)
    assert np.array_equal(sums.reshape(expected.shape), expected)
    rows = np.ascontiguousarray(tiles.transpose(0, 2, 1).reshape(-1, N_LABELS))
    if dtype is not np.float64:
        starts, of_rows = N_CLUSTERS * np.arange(N_LABELS), aligned_zeros(len(rows), lanes, dtype)
        table = aligned_zeros(N_CLUSTERS * N_LABELS, lanes, dtype)
        for j, (own, worth) in enumerate(zip(queries[:lanes], weights[:lanes], strict=True)):
            table[starts + own, j] = worth
        times = repeats * N_QUERIES // lanes
        ways.append(lambda: [_by_table(rows, starts, table, of_rows) for _ in range(times)])
        ways[1]()
        assert np.array_equal(of_rows.reshape(N_TILES, lanes, lanes), expected[:, :lanes].transpose(0, 2, 1))
    return ways, repeats * len(rows) * N_QUERIES * N_LABELS


@intrinsic
def plus_equal(typing: Any, total: Any, tiles: Any, index: Any, label: Any, weight: Any) -> Any:
    """Return a vector plus ``weight`` in the lanes where row ``index`` of ``tiles`` (n, lanes) has the label."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes, labels = total.lanes, ir.VectorType(context.get_value_type(tiles.dtype), total.lanes)
        data = context.make_array(tiles)(context, builder, args[1]).data
        first = builder.gep(data, [builder.mul(args[2], ir.Constant(args[2].type, lanes))])
        row = builder.load(builder.bitcast(first, labels.as_pointer()))
        row.align = 1

        def everywhere(value: Any, kind: Any) -> Any:
            unknown = ir.Constant(kind, ir.Undefined)
            one = builder.insert_element(unknown, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, unknown, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))

        same, wide = builder.icmp_unsigned("==", row, everywhere(args[3], labels)), args[0].type
        worth = builder.select(same, everywhere(args[4], wide), ir.Constant(wide, None))
        return (builder.fadd if isinstance(total.dtype, types.Float) else builder.add)(args[0], worth)

    return total(total, tiles, types.intp, tiles.dtype, total.dtype), generate


@njit(cache=True, nogil=True)
def _by_tiles(tiles, queries, weights, sums):
    n_queries, n_labels = queries.shape
    for t in range(len(tiles) // n_labels):
        for q in range(0, n_queries, 4):
            a, b, c, d = nothing(sums), nothing(sums), nothing(sums), nothing(sums)
            for m in range(n_labels):
                at = t * n_labels + m
                a = plus_equal(a, tiles, at, queries[q, m], weights[q, m])
                b = plus_equal(b, tiles, at, queries[q + 1, m], weights[q + 1, m])
                c = plus_equal(c, tiles, at, queries[q + 2, m], weights[q + 2, m])
                d = plus_equal(d, tiles, at, queries[q + 3, m], weights[q + 3, m])
            at = t * n_queries + q
            store(a, sums, at)
            store(b, sums, at + 1)
            store(c, sums, at + 2)
            store(d, sums, at + 3)


@njit(cache=True, nogil=True)
def _by_table(rows, starts, table, sums):
    n_labels = np.uint64(rows.shape[1])  # an unsigned number, so that negative indices need no check
    for i in range(0, len(rows), 4):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        of_a, of_b, of_c, of_d = nothing(table), nothing(table), nothing(table), nothing(table)
        for m in range(n_labels):
            start = np.uint64(starts[m])
            of_a = plus(of_a, table, start + np.uint64(a[m]))
            of_b = plus(of_b, table, start + np.uint64(b[m]))
            of_c = plus(of_c, table, start + np.uint64(c[m]))
            of_d = plus(of_d, table, start + np.uint64(d[m]))
        store(of_a, sums, i)
        store(of_b, sums, i + 1)
        store(of_c, sums, i + 2)
        store(of_d, sums, i + 3)


# --- additions and the rest -------------------------------------------------------------------------------------------


def counted(quick: bool) -> Ways:
    rng, n = np.random.default_rng(0), 2**14 if quick else 2**20
    one, other = rng.integers(32, size=(2, n)).astype(np.uint8)
    tables = np.zeros((4, 1024), dtype=np.int64)
    _count(one, other, tables)
    assert np.array_equal(tables.sum(axis=0), np.bincount(32 * one.astype(int) + other, minlength=1024))
    return [lambda: _count(one, other, tables)], n


@njit(cache=True, nogil=True)
def _count(one, other, tables):
    for i in range(np.uint64(0), np.uint64(len(one)), np.uint64(4)):
        for turn in range(np.uint64(4)):  # four tables take turns, so that equal cells in a row need not wait
            cell = np.uint64(32) * np.uint64(one[i + turn]) + np.uint64(other[i + turn])
            tables[turn, cell] += 1


def rows_added(quick: bool) -> Ways:
    rng, n = np.random.default_rng(0), 2**10 if quick else 2**16
    table, which = rng.random((128, 2 * FLOAT_LANES)), rng.integers(128, size=n).astype(np.uint8)
    sums = np.zeros((2, FLOAT_LANES))
    halves = aligned(table.reshape(-1, FLOAT_LANES))
    _add_rows(which, halves, sums)
    assert np.allclose(sums.ravel(), table[which].sum(axis=0))
    return [lambda: _add_rows(which, halves, sums)], n * 2 * FLOAT_LANES


@njit(cache=True, nogil=True)
def _add_rows(which, table, sums):
    a, b, c, d = nothing(table), nothing(table), nothing(table), nothing(table)
    for i in range(np.uint64(0), np.uint64(len(which)), np.uint64(2)):
        one, other = np.uint64(2) * np.uint64(which[i]), np.uint64(2) * np.uint64(which[i + np.uint64(1)])
        a = plus_times(a, table, one, 1.0)
        b = plus_times(b, table, one + np.uint64(1), 1.0)
        c = plus_times(c, table, other, 1.0)
        d = plus_times(d, table, other + np.uint64(1), 1.0)
    store(a, sums, 0)
    store(b, sums, 1)
    both = sums.copy()
    store(c, sums, 0)
    store(d, sums, 1)
    for j in range(sums.shape[1]):
        sums[0, j] += both[0, j]
        sums[1, j] += both[1, j]


def multiplied(quick: bool) -> Ways:
    rng, n = np.random.default_rng(0), 2**10 if quick else 2**16
    table, which = (
        aligned(rng.random((512, FLOAT_LANES)).astype(np.float32)),
        rng.integers(512, size=n).astype(np.int32),
    )
    factors, sums = rng.random(n).astype(np.float32), np.zeros((4, FLOAT_LANES), dtype=np.float32)
    _multiply(which, factors, table, sums)
    assert np.allclose(sums.sum(axis=0), factors @ table[which], rtol=1e-3)
    return [lambda: _multiply(which, factors, table, sums)], n * FLOAT_LANES


@njit(cache=True, nogil=True)
def _multiply(which, factors, table, sums):
    a, b, c, d = nothing(table), nothing(table), nothing(table), nothing(table)
    for i in range(np.uint64(0), np.uint64(len(which)), np.uint64(4)):
        j, k, l = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)  # noqa: E741
        a = plus_times(a, table, np.uint64(which[i]), factors[i])
        b = plus_times(b, table, np.uint64(which[j]), factors[j])
        c = plus_times(c, table, np.uint64(which[k]), factors[k])
        d = plus_times(d, table, np.uint64(which[l]), factors[l])
    store(a, sums, 0)
    store(b, sums, 1)
    store(c, sums, 2)
    store(d, sums, 3)


def words_counted(quick: bool) -> Ways:
    one, other = np.random.default_rng(0).integers(2**63, size=(2, 1024)).astype(np.uint64)
    repeats = 4 if quick else 1024
    assert _words(one, other, 1) == int(np.bitwise_count(one & other).sum())
    return [lambda: _words(one, other, repeats)], repeats * len(one)


@njit(cache=True, nogil=True)
def _words(one, other, repeats):
    n = np.uint64(0)
    for i in range(repeats):
        begin = np.uint64(i & 1)  # the start changes, because otherwise the compiler would count only once
        for p in range(begin, np.uint64(len(one))):
            n += popcount(one[p] & other[p])
    return n


def logarithms(quick: bool) -> Ways:
    values = np.random.default_rng(0).random(2**10 if quick else 2**17)
    assert np.isclose(_logarithms(values), np.log2(values).sum())
    return [lambda: _logarithms(values)], len(values)


@njit(cache=True, nogil=True)
def _logarithms(values):
    total = 0.0
    for value in values:
        total += np.log2(value)
    return total


def of_matrices(quick: bool) -> Ways:
    from threadpoolctl import threadpool_limits

    n = 64 if quick else 768
    one, other = np.random.default_rng(0).random((2, n, n))
    threadpool_limits(1, user_api="blas")
    return [lambda: one @ other], len(one) ** 3
