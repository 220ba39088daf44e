"""Everything about a GPU in one command: is it right, how near to the machine's limits is it, how long does it take.

    python bench/gpu.py [--labels FILE.npy ...] [--only parity ceilings kernels end-to-end] [--output FILE.json]
    python bench/gpu.py --device emulated --quick

parity      every primitive, kernel and estimator against the CPU: primitive by primitive inside real runs, where both
            versions get the same arguments, and the results of whole runs; the exit status says whether all of it held
ceilings    what the machine can do: bytes a second of a copy on the device, label comparisons a second in registers
kernels     every kernel on inputs of real size, launch by launch: bytes and operations counted (`COUNTS`), time by the
            device's own events, share of the ceiling that binds
end-to-end  estimators from labels on the device to the labels of all objects, first and later calls, memory, where the
            time goes; and the CPU on the same labels, as far as it takes less than a minute

It needs a CUDA device, CuPy and no network. Labels come from --labels (.npy, objects by clusterings), else from a
synthetic mixture of Covertype's size. A run takes --limit minutes at most (8): what does not fit into them is left out
and said to be. Results are written after every case, and those in the output file are kept if they are of the same GPU
and the same commit, so that --only adds to them. `--device emulated` executes the kernels on the CPU: parity there is
as good as anywhere, times mean nothing. --quick takes tiny inputs and writes nothing unless told where.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import common
import numpy as np

import gpuens as ge
from gpuens import device as devices
from gpuens import kernels

PARTS = ("parity", "ceilings", "kernels", "end-to-end")
PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn")
K = 7  # clusters wanted, as in Covertype
CPU_LIMIT = 60.0  # seconds
ALWAYS = float("inf")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, Path(scratch))
        bench.begin()
        for part in options.only:
            say(f"\n{part}")
            {"parity": parity, "ceilings": ceilings, "kernels": kernel_times, "end-to-end": end_to_end}[part](bench)
        bench.save()
    print(markdown(bench.record))
    if options.output:
        say(f"\nWritten to {options.output} and {options.output.with_suffix('.md').name}.")
    return 0 if all(holds(row) for row in bench.record["parts"].get("parity", [])) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--labels", nargs="+", type=Path, default=[], metavar="FILE", help="label matrices (.npy)")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", default=list(PARTS), help="which parts")
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda", help="where kernels run (cuda)")
    parser.add_argument("--quick", action="store_true", help="tiny inputs, everything in one process")
    parser.add_argument("--limit", type=float, default=8.0, metavar="MINUTES", help="of the whole run (8)")
    parser.add_argument("--output", type=Path, help="JSON; Markdown goes beside it (bench/results, unless --quick)")
    options = parser.parse_args(arguments)
    options.only = [part for part in PARTS if part in options.only]
    if options.output is None and not options.quick:
        options.output = common.RESULTS / ("gpu.json" if options.device == "cuda" else "gpu_emulated.json")
    return options


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Bench:
    """The record, the time that is left, and a process for every case."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.deadline = time.monotonic() + 60 * options.limit
        self.record: common.Record = {"parts": {}}

    def begin(self) -> None:
        device = self.do("describe", "the device", least=-ALWAYS, **self.place)
        if "failed" in device:
            sys.exit(f"The device {self.options.device!r} cannot be used: {device['failed']}")
        device.pop("process_seconds", None)
        what = {
            "bench": "gpu",
            "quick": self.options.quick,
            "device": device,
            **common.about(PACKAGES),
        }
        self.record = common.begin(self.options.output, what)
        self.record.setdefault("parts", {})
        self.record["parts"] |= {part: [] for part in self.options.only}

    def do(self, task: str, what: str, *, most: float = 120.0, least: float = 0.0, **given: Any) -> common.Record:
        """Return what a task found, why it failed, or that fewer than ``least`` seconds were left for it.

        A process of its own: what goes wrong on a GPU takes everything after it in the same process along.
        """
        left = self.deadline - time.monotonic()
        if left < least:
            found: common.Record = {"skipped": f"left out: {max(left, 0.0):.0f} s of the limit were left"}
        elif self.options.quick:
            try:
                found = TASKS[task](**given)
            except Exception as error:
                found = {"failed": in_a_line(error)}
        else:
            found = common.in_child(__file__, task, limit=most if least < 0 else min(most, left), **given)
        say(f"    {what}: {problem(found) or 'done'}")
        return found

    def add(self, part: str, rows: list[common.Record]) -> None:
        self.record["parts"][part] += rows
        self.save()

    def save(self) -> None:
        common.save(self.options.output, self.record, markdown(self.record))

    @property
    def place(self) -> dict[str, Any]:
        return {"device": self.options.device, "quick": self.options.quick}


def problem(found: common.Record) -> str | None:
    return found.get("failed") or found.get("skipped")


def in_a_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}"


# --- the device -------------------------------------------------------------------------------------------------------


def describe(device: str, quick: bool) -> common.Record:
    """Return what figures of a GPU depend on."""
    if device != "cuda":
        return {"name": "none: kernels are executed on the CPU, and times mean nothing"}
    devices.resolve(device)
    xp = devices.namespace(device)
    runtime = xp.cuda.runtime
    found = runtime.getDeviceProperties(runtime.getDevice())
    return {
        "name": found["name"].decode(),
        "memory": found["totalGlobalMem"],
        "multiprocessors": found["multiProcessorCount"],
        "l2": found["l2CacheSize"],
        "compute_capability": f"{found['major']}.{found['minor']}",
        "driver": driver(),
        "driver_cuda": cuda_version(runtime.driverGetVersion()),
        "cuda": cuda_version(runtime.runtimeGetVersion()),
        "cupy": xp.__version__,
    }


def cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError, IndexError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    return None


def tiny(device: str, quick: bool) -> bool:
    """Return whether inputs are tiny: they always are where kernels are executed on the CPU, but those of parity."""
    return quick or device != "cuda"


def synchronize(device: str) -> None:
    if device == "cuda":
        devices.namespace(device).cuda.runtime.deviceSynchronize()


class Marks:
    """Points in the device's time: CUDA's events, or the clock where kernels run on the CPU."""

    def __init__(self, device: str) -> None:
        self.cuda = devices.namespace(device).cuda if device == "cuda" else None

    def mark(self) -> Any:
        if self.cuda is None:
            return time.perf_counter()
        event = self.cuda.Event()
        event.record()
        return event

    def seconds(self, start: Any, stop: Any) -> float:
        if self.cuda is None:
            return stop - start
        stop.synchronize()
        return self.cuda.get_elapsed_time(start, stop) / 1000

    def median(self, call: Callable[[], Any], repeats: int) -> float:
        """Return the median seconds of a call, after one that warms up."""
        call()
        pairs = []
        for _ in range(repeats):
            start = self.mark()
            call()
            pairs.append((start, self.mark()))
        return statistics.median(self.seconds(*pair) for pair in pairs)


# --- every launch, seen -----------------------------------------------------------------------------------------------


class Launch(NamedTuple):
    kernel: str
    start: Any
    stop: Any
    bytes: Any
    operations: Any


class Launches:
    """While entered: notes every launch, and if ``counted`` its marks, bytes and operations.

    ``flush``: an array written before every launch, larger than the cache, so that inputs come from memory. A GPU is
    given something to do before each first mark, so that both marks and the kernel are queued before it gets there:
    else short kernels would be charged with the time that Python takes to launch them.
    """

    def __init__(self, device: str, *, counted: bool = False, flush: Any = None) -> None:
        self.marks = Marks(device)
        self.counted, self.flush = counted, flush
        self.names: list[str] = []
        self.found: list[Launch] = []
        if counted and device == "cuda":
            self.busy = module_of_ours(device).get_function("keep_busy")
            self.nothing = devices.namespace(device).zeros(1, dtype=np.uint32)

    def __enter__(self) -> "Launches":
        self._function = kernels.function
        kernels.function = self._noted
        return self

    def __exit__(self, *error: object) -> None:
        kernels.function = self._function

    def _noted(self, name: str, device: str, **macros: str) -> Callable:
        kernel = self._function(name, device, **macros)
        self.names.append(name)
        if not self.counted:
            return kernel

        def launch(grid: tuple, block: tuple, args: tuple, *, shared_mem: int = 0) -> None:
            given = SimpleNamespace(**dict(zip(parameters(name), args, strict=True)))
            before = given.compared.copy() if hasattr(given, "compared") else None
            if self.flush is not None:
                self.flush.fill(0)
            if device == "cuda":
                self.busy((1,), (1,), (self.nothing, np.int32(BUSY)))
            start = self.marks.mark()
            kernel(grid, block, args, shared_mem=shared_mem)
            stop = self.marks.mark()
            if before is not None:
                given.compared = (given.compared - before)[0]
            moved, operations = COUNTS[name].of(given)
            self.found.append(Launch(name, start, stop, moved, operations))

        return launch


BUSY = 20_000  # multiplications, each waiting for the one before: about 50 µs


def parameters(kernel: str) -> list[str]:
    """Return the names of a kernel's parameters, read in its source."""
    text = kernels.sources()[kernels.functions()[kernel]]
    found = re.search(rf"\bvoid\s+{kernel}\s*\(([^)]*)\)", text)
    assert found is not None
    return [part.split()[-1].lstrip("*") for part in found[1].split(",")]


class Count(NamedTuple):
    """What a launch has to move (each array once, whatever caches do) and to do, in words and from its arguments."""

    moved: str
    done: str
    of: Callable[[Any], tuple[Any, Any]]


def entries(a: Any, regions: Any) -> Any:
    """Return how many histogram entries some regions have, and the bytes of one."""
    return a.length[regions].sum(), 4 + a.counts.itemsize


def of_search_regions(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active)
    return n * size + a.ceilings.nbytes + a.n_queries * (12 * int(a.n_listed) + 16), a.compared


def of_raise_ceilings(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active)
    return n * size + a.ceilings.nbytes, n


def of_move_histograms(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active)
    return 2 * n * size, n


def of_merge_histograms(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.kept)  # after the launch
    return 2 * n * size, n


def of_nearest_rows(a: Any) -> tuple[Any, Any]:
    queries = a.n_queries * (a.n_clusterings * a.codes.itemsize + 12 * int(a.n_listed) + 32)
    return queries + a.tiles.nbytes + a.present.nbytes + 16 * a.n_rows, a.compared


COUNTS = {
    "row_sums": Count(
        "codes, values, sums", "a look-up a label",
        lambda a: (a.codes.nbytes + a.values.nbytes + a.out.nbytes, a.codes.size),
    ),
    "row_lookups": Count(
        "codes, table, sums", "k look-ups a label",
        lambda a: (a.codes.nbytes + a.table.nbytes + a.out.nbytes, a.codes.size * a.width),
    ),
    "cluster_sums": Count(
        "codes, values, sums", "an addition a label",
        lambda a: (a.codes.nbytes + a.values.nbytes + a.out.nbytes, a.codes.size),
    ),
    "count_pairs": Count(
        "labels, weights, tables", "an addition an object and pair",
        lambda a: (a.labels.nbytes + a.weights.nbytes + a.tables.nbytes, a.first.size * a.n_objects),
    ),
    "coassociation_tile": Count(
        "rows, columns, block", "R C M comparisons",
        lambda a: (a.rows.nbytes + a.cols.nbytes + a.out.nbytes, a.n_rows * a.n_cols * a.n_clusterings),
    ),
    "pack_rows": Count(
        "codes, words", "a digit a label", lambda a: (a.codes.nbytes + a.words.nbytes, a.codes.size)
    ),
    "mark_present": Count(
        "tiles, table", "a mark a label", lambda a: (a.tiles.nbytes + a.present.nbytes, a.tiles.size)
    ),
    "nearest_rows": Count(
        "queries' codes, tiles, table, lists", "label comparisons, as the kernel counts them", of_nearest_rows
    ),
    "raise_ceilings": Count("histograms, ceilings", "an entry", of_raise_ceilings),
    "search_regions": Count(
        "histograms, ceilings, lists", "entries compared, as the kernel counts them", of_search_regions
    ),
    "move_histograms": Count("histograms, read and written", "an entry", of_move_histograms),
    "merge_histograms": Count("unions, written and as much read", "an entry of a union", of_merge_histograms),
    "look_up": Count(
        "lists, bounds, nearest", "an entry of a list",
        lambda a: (a.n_active * (12 * int(a.n_listed) + 40), a.n_active * int(a.n_listed)),
    ),
    "mutual_pairs": Count("ids, nearest, marks", "2 comparisons a region", lambda a: (25 * a.n_active, 2 * a.n_active)),
    "update_lists": Count(
        "lists, partners (not the histograms of changed entries)", "an entry of a list",
        lambda a: (a.n_active * (28 * int(a.n_listed) + 40), a.n_active * int(a.n_listed)),
    ),
    "offer_similarity": Count(
        "first entries, components, offers", "an entry a row", lambda a: (45 * a.n_rows, a.n_rows)
    ),
    "offer_tie": Count("offered entries, components, ties", "an entry a row", lambda a: (48 * a.n_rows, a.n_rows)),
    "take_edge": Count("offered entries, components, ties", "an entry a row", lambda a: (56 * a.n_rows, a.n_rows)),
    "smallest_names": Count("roots, names", "a name", lambda a: (16 * a.n_names, a.n_names)),
}  # fmt: skip


# --- ensembles --------------------------------------------------------------------------------------------------------


class Mixture(NamedTuple):
    """Base clusterings of a synthetic mixture, or of ``groups`` objects of it that all have different label rows.

    Objects are points around 25 means in a few dimensions; a clustering gives each the nearest of its own k centers,
    which are k of the points. With 3 dimensions one row in six of half a million is distinct at 20 clusterings, five in
    six at 100; of those of Covertype it is one in ten, and two in three (results/covtype.md).
    """

    n_objects: int
    n_clusterings: int = 20
    groups: int | None = None
    dimensions: int = 3
    k: tuple[int, int] = (7, 100)
    seed: int = 0


def points_of(mixture: Mixture) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(mixture.seed)
    means = 4.0 * rng.standard_normal((25, mixture.dimensions), dtype=np.float32)
    X = rng.standard_normal((mixture.n_objects, mixture.dimensions), dtype=np.float32)
    X += means[rng.integers(25, size=mixture.n_objects)]
    return X, rng


def labels_of(mixture: Mixture, device: str) -> Any:
    """Return the base clusterings (n_objects, n_clusterings), made and kept where the device works."""
    xp = devices.namespace(device)
    X, rng = points_of(mixture)
    points = xp.asarray(X)
    dtype = np.uint8 if mixture.k[1] < 255 else np.uint16
    labels = xp.empty((mixture.n_objects, mixture.n_clusterings), dtype=dtype, order="F")
    for m in range(mixture.n_clusterings):
        k = min(mixture.n_objects, int(rng.integers(*mixture.k, endpoint=True)))
        centers = xp.asarray(X[rng.choice(mixture.n_objects, k, replace=False)])
        half_square = (centers * centers).sum(axis=1) / 2
        for start in range(0, mixture.n_objects, 2**17):
            some = slice(start, start + 2**17)
            scores = half_square - points[some, :1] * centers[:, 0]  # no product of matrices: it would need cuBLAS
            for d in range(1, mixture.dimensions):
                scores -= points[some, d, None] * centers[:, d]
            labels[some, m] = scores.argmin(axis=1)
    if mixture.groups is None:
        return labels
    rows = groups_of(ge.Ensemble(labels), device).ensemble.codes_on(device)
    evenly = np.unique(np.linspace(0, len(rows) - 1, min(mixture.groups, len(rows))).astype(np.int64))
    return xp.asfortranarray(rows[xp.asarray(evenly)])


def groups_of(ensemble: Any, device: str) -> Any:
    from gpuens.reduction import core_groups

    return core_groups(ensemble, device=device)


# --- parity -----------------------------------------------------------------------------------------------------------

DTYPES = ("uint8", "uint16", "uint32")
MANY = 1000  # objects from which on codes of uint16 are those of more than 255 clusters
LOCKSTEP_UP_TO = 2000  # objects: above, linkage is compared by its results only
ALL_PAIRS_UP_TO = 1000  # complete linkage
NEAR_TIES = 1e-4  # of all labels: distances to two centers may tie up to rounding
ALLOWANCE = 75.0  # seconds for a group of checks


def parity(bench: Bench) -> None:
    options = bench.options
    rounds = [[1, 33, 120]] if options.quick else [[1, 31, 33, 1000]]
    if not tiny(**bench.place):
        rounds.append([100_003])
    for sizes in rounds:
        for group in CHECKS:
            what = f"{group}, {' '.join(map(str, sizes))} objects"
            found = bench.do("check", what, least=5.0, group=group, sizes=sizes, allowance=ALLOWANCE, **bench.place)
            bench.add("parity", found.get("rows", [{"what": what, **found}]))


def holds(row: common.Record) -> bool:
    """Return whether a row is no evidence against parity: what was left out says nothing."""
    return row.get("held", "skipped" in row)


def check(group: str, sizes: list[int], allowance: float, device: str, quick: bool) -> common.Record:
    """Run the checks of a group on all sizes, dtypes and weights, as far as the allowance of seconds goes."""
    rows: dict[tuple, common.Record] = {}
    end = time.monotonic() + allowance
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant clusterings, few clusters: tiny ensembles have them
        for n_objects in sizes:
            for dtype in DTYPES:
                for weights in ("ones", "real"):
                    case = Case(device, n_objects, dtype, weights, rows)
                    for run in CHECKS[group]:
                        if time.monotonic() > end:
                            key = run.__name__, dtype, n_objects, weights
                            rows[key] = case.named(key) | {"skipped": f"left out: {allowance:.0f} s had passed"}
                        else:
                            case.attempt(run)
    return {"rows": list(rows.values())}


class Case:
    """One size, dtype and kind of weights; what was compared goes into ``rows``."""

    def __init__(self, device: str, n_objects: int, dtype: str, weights: str, rows: dict[tuple, common.Record]) -> None:
        self.device, self.n_objects, self.dtype, self.weights, self.rows = device, n_objects, dtype, weights, rows
        self.rng = np.random.default_rng(n_objects)
        self.launches = Launches(device)
        k = (280, 300) if dtype == "uint16" and n_objects >= MANY else (2, 9)
        self.labels = with_missing(Mixture(n_objects, 5, k=k))
        self.ensemble = recoded(ge.Ensemble(list(self.labels.T)), dtype)

    @property
    def small(self) -> bool:
        return self.n_objects <= LOCKSTEP_UP_TO

    def attempt(self, run: Callable[["Case"], None]) -> None:
        with self.launches, lockstep(self):
            try:
                run(self)
            except Exception as error:
                self.note(run.__name__, set(self.launches.names), in_a_line(error))
            self.launches.names.clear()

    def note(self, what: str, launched: set[str], why: str | None) -> None:
        key = what, self.dtype, self.n_objects, self.weights
        row = self.rows.setdefault(key, self.named(key) | {"kernels": [], "compared": 0, "held": True})
        row["compared"] += 1
        row["kernels"] = sorted({*row["kernels"], *launched})
        if why is not None:
            row |= {"held": False, "why": why}

    @staticmethod
    def named(key: tuple) -> common.Record:
        return dict(zip(("what", "dtype", "size", "weights"), key, strict=True))

    def same(self, what: str, of: Callable[[str], Any], tolerance: float = 0.0, share: float = 0.0) -> None:
        """Note whether ``of(device)`` is ``of("cpu")``; see `difference`."""
        before = len(self.launches.names)
        found = of(self.device)
        launched = set(self.launches.names[before:])
        self.note(what, launched, difference(found, of("cpu"), tolerance, share))

    def of_clusters(self, n_clusters: int) -> np.ndarray:
        """Return cluster weights: whole ones, or real numbers."""
        if self.weights == "ones":
            return np.ones(n_clusters, dtype=np.int64)
        return np.random.default_rng(5).uniform(0.01, 1.0, n_clusters)

    def groups(self) -> tuple[Any, np.ndarray]:
        """Return the distinct rows, coded as wanted, and their sizes."""
        reduced = groups_of(ge.Ensemble(list(self.labels.T)), "cpu")
        return recoded(reduced.ensemble, self.dtype), reduced.weights


def with_missing(mixture: Mixture) -> np.ndarray:
    """Return labels of which a tenth is missing, but never an object's first one."""
    labels = labels_of(mixture, "cpu").astype(np.int64)
    gone = np.random.default_rng(1).random(labels.shape) < 0.1
    gone[:, 0] = False
    gone[0] = False
    labels[gone] = -1
    return labels


def recoded(ensemble: Any, dtype: str) -> Any:
    """Return an ensemble whose codes have a dtype, also where a smaller one would do."""
    codes = ensemble.codes.astype(dtype, order="F")
    codes[ensemble.codes == ensemble.missing_code] = np.iinfo(dtype).max
    ensemble._copies = {"cpu": codes}
    return ensemble


def leaves(value: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of nested tuples, lists and dicts; arrays on the host."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    else:
        yield devices.to_host(value) if hasattr(value, "shape") else value


def difference(found: Any, expected: Any, tolerance: float = 0.0, share: float = 0.0) -> str | None:
    """Return how what was found is not what was expected, or None.

    Values may be off by ``tolerance``, and a ``share`` of those of each array may be others.
    """
    pairs = list(zip(leaves(found), leaves(expected), strict=True))
    for a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return f"shape {a.shape} instead of {b.shape}"
        if tolerance == 0.0:
            apart = int(np.count_nonzero(~((a == b) | ((a != a) & (b != b)))))
            if apart > share * a.size:
                return f"{apart:,} of {a.size:,} values differ"
        elif not np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True):
            return f"values differ by up to {np.abs(a - b).max():.1e}"
    return None


# every primitive of a run, both versions on the same arguments


@contextmanager
def lockstep(case: Case) -> Iterator[None]:
    """While entered, every primitive called for a device also runs on the CPU, and the two are compared."""
    real = kernels.Primitive.__call__

    def call(self: Any, *args: Any, device: str = "cpu", **options: Any) -> Any:
        name = self.__name__
        if device == "cpu" or name == "nearest_index" or (name in IN_LINKAGE and not case.small):
            return real(self, *args, device=device, **options)
        given = host_copy(args)
        expected = real(self, *given, **options)
        before = len(case.launches.names)
        result = real(self, *args, device=device, **options)
        launched = set(case.launches.names[before:])
        seen = COMPARED.get(name, lambda result, *args: result)
        tolerance = rounding_of_sums(*given) if name == "cluster_sums" else 0.0
        share = NEAR_TIES if name == "lloyd" else 0.0
        why = difference(seen(result, *host_copy(args)), seen(expected, *given), tolerance, share)
        case.note(name, launched, why)
        return result

    kernels.Primitive.__call__ = call
    try:
        yield
    finally:
        kernels.Primitive.__call__ = real


def host_copy(value: Any) -> Any:
    if isinstance(value, tuple):
        copies = [host_copy(item) for item in value]
        return type(value)(*copies) if hasattr(value, "_fields") else tuple(copies)
    if not hasattr(value, "shape") or isinstance(value, np.generic):
        return value
    # the layout stays: the columns of codes are contiguous
    return np.array(devices.to_host(value.T)).T if value.ndim == 2 and value.flags.f_contiguous else own(value)


def own(value: Any) -> np.ndarray:
    return np.array(devices.to_host(value))


def rounding_of_sums(codes: Any, offsets: Any, values: np.ndarray) -> float:
    return 0.0 if values.dtype.kind in "iu" else values.size * float(np.abs(values).max(initial=0.0)) * 1e-15


def listed(lists: Any) -> tuple:
    """Return what lists say: a similarity behind the last entry is whatever was there before."""
    return lists.ids, np.where(lists.ids >= 0, lists.similarities, 0.0), lists.bound, lists.bound_hash


def histograms(regions: Any, start: np.ndarray, some: np.ndarray) -> tuple:
    """Return the histograms of some regions: devices may lay them out in their own way."""
    places = [np.arange(a, a + n) for a, n in zip(start[some].tolist(), regions.length[some].tolist(), strict=True)]
    at = np.concatenate([np.empty(0, dtype=np.int64), *places])
    return regions.clusters[at], regions.counts[at], regions.length[some], regions.size[some]


IN_LINKAGE = ("look_up", "mutual_pairs", "update_lists", "merge_histograms", "move_histograms", "search",
              "offer_listed", "contract")  # fmt: skip
COMPARED: dict[str, Callable] = {
    "look_up": lambda _, active, nearest, similarity, lists: (nearest, np.where(nearest >= 0, similarity, 0.0)),
    "update_lists": lambda _, *args: (args[-2], listed(args[-1])),
    "merge_histograms": lambda _, regions, kept, absorbed: histograms(regions, regions.start, kept),
    "move_histograms": lambda _, regions, roomy, live: histograms(roomy, regions.start, live),
    "search": lambda _, queries, *args: listed(type(args[-1])(*(array[queries] for array in args[-1]))),
    "offer_listed": lambda unsure, component, lists, rows, edges: (unsure, edges),
    # of an edge chosen twice, either may be left out
    "contract": lambda result, *_: (result[0], int(result[1].sum())),
}


# what calls them


def products(case: Case) -> None:
    from gpuens import incidence

    ens, device = case.ensemble, case.device
    codes, offsets, n = ens.codes_on(device), ens.offsets, case.n_objects
    incidence.row_sums(codes, offsets, case.rng.standard_normal(ens.n_clusters), device=device)
    incidence.row_lookups(codes, offsets, case.rng.standard_normal((ens.n_clusters, 3)), device=device)
    of_rows = case.rng.integers(1, 100, n) if case.weights == "ones" else case.rng.standard_normal(n)
    incidence.cluster_sums(codes, offsets, of_rows, device=device)


def intersections(case: Case) -> None:
    w = None if case.weights == "ones" else case.rng.random(case.n_objects) + 0.1
    tolerance = 0.0 if w is None else 1e-14 * case.n_objects
    count = ge.contingency.intersections
    case.same("contingency.intersections", lambda device: count(case.ensemble, w, device=device), tolerance)
    entropy = ge.contingency.entropy
    case.same("contingency.entropy", lambda device: entropy(case.ensemble, w, device=device), 100 * tolerance)


def tiles(case: Case) -> None:
    from gpuens.similarity.coassociation import coassociation_tile

    codes = case.ensemble.codes_on(case.device)
    weights = case.of_clusters(case.ensemble.n_clusters)
    coassociation_tile(codes[:70], codes[:3000], case.ensemble.offsets, weights, device=case.device)


def core_groups(case: Case) -> None:
    def reduced(device: str) -> Any:
        found = groups_of(case.ensemble, device)
        return found.weights, found.membership, found.ensemble.codes

    case.same("core_groups", reduced)


def nearest(case: Case) -> None:
    from gpuens.partition.nearest import nearest_index, nearest_lists

    (rows, sizes), w = case.groups(), case.of_clusters(case.ensemble.n_clusters)

    def found(device: str) -> Any:
        index = nearest_index(rows.codes_on(device), rows.offsets, w, sizes, device=device)
        return tuple(nearest_lists(index, 16)), index.comparisons

    case.same("nearest_index", found)


def linkage(case: Case) -> None:
    from gpuens.partition import Work, average_linkage, single_linkage

    (rows, sizes), w = case.groups(), case.of_clusters(case.ensemble.n_clusters)
    for link in (average_linkage, single_linkage):

        def linked(device: str, link: Callable = link) -> Any:
            work = Work()
            found = link(rows.codes_on(device), rows.offsets, w, sizes, device=device, work=work)
            return found.kept, found.absorbed, found.similarities, work.rounds, work.searches

        case.same(link.__name__, linked)


def moves(case: Case) -> None:
    """Leave no room in the arena of histograms, which linkage seldom does."""
    from gpuens.partition.regions import make_room, regions_of

    (rows, sizes), xp = case.groups(), devices.namespace(case.device)
    regions = regions_of(rows.codes_on(case.device), rows.offsets, sizes, device=case.device)
    make_room(regions, xp.arange(len(rows))[::2].copy(), len(regions.clusters), device=case.device)


def k_means(case: Case) -> None:
    from gpuens.partition.transfer_cut import lloyd

    if case.weights == "real" or case.dtype != "uint8":
        return
    xp, sizes = devices.namespace(case.device), case.rng.integers(1, 5, case.n_objects)
    X, _ = points_of(Mixture(case.n_objects))
    lloyd(xp.asarray(X), sizes, X[: min(case.n_objects, 4)].astype(np.float64), device=case.device)


def estimators(case: Case) -> None:
    if case.weights == "real" or case.dtype not in (DTYPES if MANY <= case.n_objects <= LOCKSTEP_UP_TO else ("uint8",)):
        return  # they bring weights of their own
    k = min(4, len(case.groups()[1]))
    wanted: dict[str, Callable] = {
        "EAC": lambda device: ge.EAC(k, device=device),
        "EAC, single": lambda device: ge.EAC(k, linkage="single", device=device),
        "LWEA": lambda device: ge.LWEA(k, device=device),
        "LWGP": lambda device: ge.LWGP(k, device=device),
        "HBGF": lambda device: ge.HBGF(k, device=device),
    }
    if case.n_objects <= ALL_PAIRS_UP_TO:
        wanted["EAC, complete"] = lambda device: ge.EAC(k, linkage="complete", device=device)
    for name, estimator in wanted.items():

        def fitted(device: str, estimator: Callable = estimator) -> Any:
            found = estimator(device).fit(case.ensemble)
            merges = (found.children_, found.distances_) if hasattr(found, "dendrogram_") else ()
            return found.labels_, found.n_clusters_, merges

        # k-means of more objects than its restarts see is float32's
        ends_in_float32 = name in ("LWGP", "HBGF") and not case.small
        case.same(name, fitted, share=NEAR_TIES if ends_in_float32 else 0.0)


def metrics(case: Case) -> None:
    if case.weights == "real":
        return
    a, b = case.labels[:, 0], case.rng.integers(4, size=case.n_objects)

    def scores(device: str) -> Any:
        xp = devices.namespace(device)
        return ge.metrics.scores(xp.asarray(a), xp.asarray(b)), ge.metrics.ari(xp.asarray(a), xp.asarray(b))

    case.same("metrics.scores", scores)
    for score in ("nmi", "ari"):

        def agreement(device: str, score: str = score) -> Any:
            return ge.contingency.agreement(case.ensemble, score, device=device)

        case.same(f"contingency.agreement, {score}", agreement)


def generation(case: Case) -> None:
    """Base clusterings of points that have no dtype of codes: once a size, in float64."""
    if case.weights == "real" or case.dtype != "uint8" or case.n_objects < 2:
        return
    X = points_of(Mixture(case.n_objects))[0].astype(np.float64)
    for algorithm in ("full", "minibatch"):

        def generated(device: str, algorithm: str = algorithm) -> Any:
            found = ge.generate.kmeans_ensemble(
                X, 3, (2, min(8, case.n_objects)), algorithm=algorithm, max_iter=10, progress=False, device=device
            )
            return found.codes

        case.same(f"kmeans_ensemble, {algorithm}", generated, share=NEAR_TIES)


CHECKS: dict[str, list[Callable[[Case], None]]] = {
    "look-ups and counts": [products, intersections, tiles, core_groups, metrics],
    "linkage": [nearest, linkage, moves],
    "estimators": [estimators, k_means],
    "generation": [generation],
}


# --- ceilings ---------------------------------------------------------------------------------------------------------

# A label compared with labels in registers: what a search for equal labels cannot go beyond. Each label comes from
# shared memory once for KEPT comparisons, and every comparison ends in an addition.
OURS = """
#define KEPT 16
#define THREADS 256

extern "C" __global__ void compare_labels(const unsigned char* labels, unsigned* out, int n_rounds) {
    __shared__ unsigned row[THREADS];
    unsigned mine[KEPT], matches[KEPT];
    row[threadIdx.x] = labels[threadIdx.x];
    for (int i = 0; i < KEPT; ++i) {
        mine[i] = labels[(threadIdx.x + 7 * i + blockIdx.x) % THREADS];
        matches[i] = 0;
    }
    __syncthreads();
    for (int round = 0; round < n_rounds; ++round) {
        unsigned label = row[round & (THREADS - 1)];
#pragma unroll
        for (int i = 0; i < KEPT; ++i) matches[i] += mine[i] == label;
    }
    unsigned sum = 0;
    for (int i = 0; i < KEPT; ++i) sum += matches[i];
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

extern "C" __global__ void keep_busy(unsigned* out, int n) {
    unsigned x = out[0];
    for (int i = 0; i < n; ++i) x = x * 1664525u + 1013904223u;
    out[0] = x;
}
"""
KEPT, THREADS = 16, 256


@cache
def module_of_ours(device: str) -> Any:
    if device == "cuda":
        return devices.compile_cuda(OURS, kernels.FLAGS)
    return kernels.emulator().Module(OURS, kernels.FLAGS, name="bench")


def ceilings(bench: Bench) -> None:
    for task in ("copy_rate", "compare_rate"):
        found = bench.do(task, task.replace("_", " "), least=5.0, **bench.place)
        bench.add("ceilings", [{"what": task, **found}])


def copy_rate(device: str, quick: bool) -> common.Record:
    """Return bytes a second, read and written, of a copy of arrays that no cache holds."""
    xp, n = devices.namespace(device), 2**18 if tiny(device, quick) else 2**31
    source, target = xp.zeros(n, dtype=np.uint8), xp.zeros(n, dtype=np.uint8)

    def copied() -> None:
        target[...] = source

    seconds = Marks(device).median(copied, 3 if quick else 20)
    return {"bytes": 2 * n, "seconds": seconds, "rate": 2 * n / seconds}


def compare_rate(device: str, quick: bool) -> common.Record:
    """Return comparisons a second, of a kernel whose result is checked."""
    xp = devices.namespace(device)
    n_blocks, n_rounds = 2, 300
    if not tiny(device, quick):
        n_blocks, n_rounds = 16 * describe(device, quick)["multiprocessors"], 100_000
    kernel = module_of_ours(device).get_function("compare_labels")
    labels = np.random.default_rng(0).integers(64, size=THREADS).astype(np.uint8)
    out = xp.zeros(n_blocks * THREADS, dtype=np.uint32)
    args = xp.asarray(labels), out, np.int32(n_rounds)

    seconds = Marks(device).median(lambda: kernel((n_blocks,), (THREADS,), args), 3 if quick else 10)
    seen = np.bincount(labels[np.arange(n_rounds) % THREADS], minlength=64)
    places = (np.arange(THREADS)[None, :, None] + 7 * np.arange(KEPT) + np.arange(n_blocks)[:, None, None]) % THREADS
    expected = seen[labels[places]].sum(axis=2).ravel()
    if not np.array_equal(devices.to_host(out), expected):
        raise ValueError("the kernel counts other matches than NumPy")
    n = n_blocks * THREADS * KEPT * n_rounds
    return {"comparisons": n, "seconds": seconds, "rate": n / seconds}


# --- kernels ----------------------------------------------------------------------------------------------------------


class Timed(NamedTuple):
    """What to call for the times of some kernels: made from an ensemble by ``of``; ``cold``: inputs from memory."""

    ensemble: Mixture
    of: Callable[[Any, str], Callable[[], Any]]
    repeats: int = 7
    cold: bool = True


def call_products(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens import incidence

    ens, xp = ge.Ensemble(labels), devices.namespace(device)
    codes, offsets, rng = ens.codes_on(device), xp.asarray(ens.offsets), np.random.default_rng(0)
    of_clusters, of_rows = xp.asarray(rng.random(ens.n_clusters)), xp.asarray(rng.random(ens.n_objects))
    table = xp.asarray(rng.random((ens.n_clusters, K)))

    def call() -> None:
        incidence.row_sums(codes, offsets, of_clusters, device=device)
        incidence.row_lookups(codes, offsets, table, device=device)
        incidence.cluster_sums(codes, offsets, of_rows, device=device)

    return call


def call_intersections(labels: Any, device: str) -> Callable[[], Any]:
    ens = ge.Ensemble(labels)
    return lambda: ge.contingency.intersections(ens, layout="dense", device=device)


def call_weighted_intersections(labels: Any, device: str) -> Callable[[], Any]:
    ens, w = ge.Ensemble(labels), np.random.default_rng(0).random(len(labels)) + 0.1
    return lambda: ge.contingency.intersections(ens, w, layout="dense", device=device)


def call_tile(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.similarity.coassociation import coassociation_tile

    ens = ge.Ensemble(labels)
    codes, weights = ens.codes_on(device), np.ones(ens.n_clusters)
    n = min(8192, len(codes) // 2)
    return lambda: coassociation_tile(codes[:n], codes[-n:], ens.offsets, weights, device=device)


def call_pack_rows(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.reduction.core_groups import pack_rows

    ens = ge.Ensemble(labels)
    return lambda: pack_rows(ens.codes_on(device), np.diff(ens.offsets) + 1, device=device)


def call_linkage(link: str, weights: str) -> Callable[[Any, str], Callable[[], Any]]:
    def of(labels: Any, device: str) -> Callable[[], Any]:
        from gpuens import partition

        reduced = groups_of(ge.Ensemble(labels), device)
        rows = reduced.ensemble
        w = np.ones(rows.n_clusters, dtype=np.int64)
        if weights == "eci":
            w = ge.similarity.eci(rows, weights=reduced.weights, device=device)
        codes = rows.codes_on(device)
        return lambda: getattr(partition, link)(codes, rows.offsets, w, reduced.weights, device=device)

    return of


def call_moves(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.partition.regions import make_room, regions_of

    rows, xp = ge.Ensemble(labels), devices.namespace(device)

    def call() -> None:
        regions = regions_of(rows.codes_on(device), rows.offsets, np.ones(len(rows), np.int64), device=device)
        make_room(regions, xp.arange(len(rows))[::2].copy(), len(regions.clusters), device=device)

    return call


MILLION = Mixture(1_000_000)
ROWS = Mixture(1_400_000, groups=100_000)
TINY = Mixture(400, 6, k=(3, 9))
TIMED = {
    "products with B": Timed(MILLION, call_products),
    "intersections": Timed(MILLION, call_intersections),
    "intersections, real weights": Timed(MILLION, call_weighted_intersections),
    "co-association, 8,192 by 8,192": Timed(MILLION, call_tile),
    "packed rows": Timed(MILLION, call_pack_rows),
    "average linkage, w = 1": Timed(ROWS, call_linkage("average_linkage", "ones"), 3, cold=False),
    "average linkage, w = ECI": Timed(ROWS, call_linkage("average_linkage", "eci"), 3, cold=False),
    "single linkage, w = 1": Timed(ROWS, call_linkage("single_linkage", "ones"), 3, cold=False),
    "histograms moved": Timed(ROWS, call_moves),
}


def kernel_times(bench: Bench) -> None:
    for case in TIMED:
        found = bench.do("time_kernels", case, least=8.0, case=case, **bench.place)
        bench.add("kernels", found.get("rows", [{"case": case, **found}]))


def time_kernels(case: str, device: str, quick: bool) -> common.Record:
    """Return a row for each kernel of a case: medians over its calls, of all its launches and of the longest one."""
    ensemble, of, repeats, cold = TIMED[case]
    if tiny(device, quick):
        ensemble, repeats = TINY._replace(groups=ensemble.groups and 200), 1
    labels = labels_of(ensemble, device)
    shape = f"{len(labels):,} × {labels.shape[1]}"
    call, flush = of(labels, device), None
    if cold and device == "cuda":
        xp = devices.namespace(device)
        flush = xp.empty(2 * describe(device, quick)["l2"], dtype=np.uint8)
    runs = []
    for _ in range(1 + repeats):
        with Launches(device, counted=True, flush=flush) as launches:
            call()
        runs.append(launches)
    rows = []
    for kernel in dict.fromkeys(runs[0].names):
        own = [[launch for launch in run.found if launch.kernel == kernel] for run in runs]
        marks = runs[0].marks
        # the first run warmed up
        seconds = np.array([[marks.seconds(at.start, at.stop) for at in of_run] for of_run in own[1:]])
        moved = np.array([float(at.bytes) for at in own[0]])
        operations = np.array([float(at.operations) for at in own[0]])
        each = np.median(seconds, axis=0)
        longest = int(each.argmax())
        rows.append(
            {
                "case": case,
                "kernel": kernel,
                "shape": shape,
                "cold": cold,
                "launches": len(each),
                "seconds": float(np.median(seconds.sum(axis=1))),
                "bytes": moved.sum(),
                "operations": operations.sum(),
                "longest": {
                    "seconds": each[longest], "bytes": moved[longest], "operations": operations[longest]
                },
            }
        )  # fmt: skip
    return {"rows": rows}


# --- end to end -------------------------------------------------------------------------------------------------------


class Journey(NamedTuple):
    """What is called on an ensemble; ``estimates`` (seconds) were made from counts of operations, before any GPU."""

    title: str
    ensemble: Mixture | None  # None: a file of labels
    calls: tuple[str, ...]
    estimates: tuple[tuple[str, str, float], ...] = ()  # (call, which of its stages, seconds)
    cold: tuple[str, ...] = ()
    file: str | None = None


JOURNEYS = [
    Journey("a mixture like Covertype × 20", Mixture(581_012), ("eac", "eac, single", "lwea", "lwgp", "hbgf")),
    Journey(
        "100,000 distinct rows × 20", ROWS, ("eac", "lwea"), (("eac", "linkage", 0.1), ("lwea", "linkage", 0.1))
    ),
    Journey(
        "1 M × 20", MILLION, ("intersections", "core groups", "hbgf", "lwgp", "eac", "lwea"),
        (("intersections", "all", 0.005), ("hbgf", "transfer cut", 0.1), ("lwgp", "transfer cut", 0.1)),
        cold=("hbgf", "lwea"),
    ),
    Journey("a mixture like Covertype × 100", Mixture(581_012, 100), ("hbgf", "lwgp", "lwea")),
    Journey(
        "581,000 distinct rows × 20", Mixture(2_000_000, groups=581_000, dimensions=12), ("eac", "lwea"),
        (("eac", "linkage", 2.0), ("lwea", "linkage", 2.0)),
    ),
    Journey("10 M × 20", Mixture(10_000_000), ("core groups", "hbgf", "lwgp", "eac")),
    Journey("1 M × 10 features", Mixture(1_000_000, dimensions=10), ("k-means, 20 clusterings",)),
]  # fmt: skip


def end_to_end(bench: Bench) -> None:
    given = [
        Journey(path.name, None, ("eac", "eac, single", "lwea", "lwgp", "hbgf"), file=str(path.resolve()))
        for path in bench.options.labels
    ]
    journeys = [*given, *(journey for journey in JOURNEYS if not (given and "Covertype" in journey.title))]
    if tiny(**bench.place):
        journeys = each_call_once(journeys)
    rows: dict[tuple[str, str], common.Record] = {}
    files: dict[str, Any] = {}
    for journey in journeys:
        file = bench.scratch / f"{len(files)}.npy"
        made = bench.do(
            "make", journey.title, least=10.0, mixture=journey.ensemble and journey.ensemble._asdict(),
            file=journey.file, path=str(file), points="features" in journey.title, **bench.place,
        )  # fmt: skip
        files[journey.title] = made | {"path": str(file)}
        for call in journey.calls:
            row: common.Record = {"ensemble": journey.title, "call": call, "objects": made.get("shape")}
            row["device"] = made if problem(made) else fit_on(bench, journey, call, str(file))
            for _, stage, seconds in (known for known in journey.estimates if known[0] == call):
                row |= {"stage": stage, "estimate": seconds}
            rows[journey.title, call] = row
            bench.add("end-to-end", [row])
    say("    on the CPU:")
    for (title, call), row in rows.items():  # last: what the device does must not wait for it
        if not problem(files[title]):
            row["cpu"] = bench.do(
                "fit", f"{title}, {call}", most=CPU_LIMIT, least=8.0, path=files[title]["path"], call=call,
                device="cpu", quick=bench.options.quick, later=1,
            )  # fmt: skip
            bench.save()


def each_call_once(journeys: list[Journey]) -> list[Journey]:
    """Return what is left when no call is repeated and nothing is compared with what it was estimated to take."""
    made: set[str] = set()
    found = []
    for journey in journeys:
        if new := tuple(call for call in journey.calls if call not in made):
            found.append(journey._replace(title=f"tiny: {journey.title}", calls=new, estimates=()))
            made |= set(new)
    return found


def fit_on(bench: Bench, journey: Journey, call: str, path: str) -> common.Record:
    what = f"{journey.title}, {call}"
    given = {"path": path, "call": call, **bench.place}
    found = bench.do("fit", what, most=60.0, least=8.0, **given)
    if call in journey.cold and not bench.options.quick and not problem(found):
        empty = tempfile.mkdtemp(dir=bench.scratch)
        caches = {"CUPY_CACHE_DIR": empty, "NUMBA_CACHE_DIR": empty}
        cold = bench.do("fit", f"{what}, nothing compiled", least=40.0, environment=caches, later=0, **given)
        found["cold"] = cold.get("first")
    return found


def make(
    mixture: dict[str, Any] | None, file: str | None, path: str, points: bool, device: str, quick: bool
) -> common.Record:
    """Write the labels (or the features) of a journey, so that every call and the CPU get the same."""
    start = time.perf_counter()
    if mixture is None:
        assert file is not None
        matrix = np.load(file, mmap_mode="r")
        labels = np.asfortranarray(matrix[:: max(1, len(matrix) // 300)] if tiny(device, quick) else matrix)
    else:
        wanted = Mixture(**{**mixture, "k": tuple(mixture["k"])})
        if tiny(device, quick):
            few = min(wanted.n_objects, 300)
            wanted = TINY._replace(n_objects=few, groups=wanted.groups and 200)
        labels = points_of(wanted)[0] if points else devices.to_host(labels_of(wanted, device).T).T
    np.save(path, labels)
    return {"shape": list(labels.shape), "seconds": time.perf_counter() - start}


STAGES = [  # (module, what it calls, stage)
    ("gpuens.methods.base", "core_groups", "groups"),
    ("gpuens.methods.eac", "average_linkage", "linkage"),
    ("gpuens.methods.eac", "single_linkage", "linkage"),
    ("gpuens.methods.lwea", "average_linkage", "linkage"),
    ("gpuens.methods.lwea", "eci", "weights"),
    ("gpuens.methods.lwgp", "eci", "weights"),
    ("gpuens.methods.hbgf", "transfer_cut", "transfer cut"),
    ("gpuens.partition.average", "nearest_lists", "nearest lists"),
    ("gpuens.partition.average", "search", "searches"),
    ("gpuens.partition.single", "nearest_lists", "nearest lists"),
    ("gpuens.partition.transfer_cut", "embedding", "embedding"),
    ("gpuens.partition.transfer_cut", "_kmeans", "k-means"),
]

SPENT = ("groups", "weights", "linkage", "nearest lists", "searches", "rounds", "transfer cut", "embedding", "k-means",
         "all")  # fmt: skip


@contextmanager
def stages(device: str) -> Iterator[dict[str, float]]:
    """While entered, add up the seconds of `STAGES`, the device's work included."""
    found: dict[str, float] = {}
    replaced = []

    def timed(function: Callable, stage: str) -> Callable:
        def call(*args: Any, **options: Any) -> Any:
            synchronize(device)
            start = time.perf_counter()
            result = function(*args, **options)
            synchronize(device)
            found[stage] = found.get(stage, 0.0) + time.perf_counter() - start
            return result

        return call

    for module, name, stage in STAGES:
        if home := sys.modules.get(module):
            replaced.append((home, name, getattr(home, name)))
            setattr(home, name, timed(getattr(home, name), stage))
    try:
        yield found
    finally:
        for home, name, function in replaced:
            setattr(home, name, function)
        if "linkage" in found:
            found["rounds"] = found["linkage"] - found.get("nearest lists", 0.0) - found.get("searches", 0.0)


def fit(path: str, call: str, device: str, quick: bool, later: int = 3) -> common.Record:
    """Measure a call from labels where the device works to its result; then once more, stage by stage."""
    xp = devices.namespace(device)
    matrix = np.load(path)
    labels = matrix if device == "cpu" else xp.asarray(matrix)
    synchronize(device)
    calls: dict[str, Callable[[], Any]] = {
        "eac": lambda: ge.EAC(K, device=device).fit(labels),
        "eac, single": lambda: ge.EAC(K, linkage="single", device=device).fit(labels),
        "lwea": lambda: ge.LWEA(K, device=device).fit(labels),
        "lwgp": lambda: ge.LWGP(K, device=device).fit(labels),
        "hbgf": lambda: ge.HBGF(K, device=device).fit(labels),
        "k-means, 20 clusterings": lambda: ge.generate.kmeans_ensemble(
            labels,
            3 if len(labels) < 1000 else 20,
            (2, 5) if len(labels) < 1000 else (7, 100),
            progress=False,
            device=device,
        ),
    }
    if call in ("core groups", "intersections"):  # of an ensemble that is there already
        ens = ge.Ensemble(labels)
        calls["core groups"] = lambda: groups_of(ens, device)
        calls["intersections"] = lambda: ge.contingency.intersections(ens, device=device)

    def run() -> Any:
        result = calls[call]()
        synchronize(device)
        return result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, record = common.measured(run, later=1 if quick else later, allowance=10.0)
        if device == "cuda":
            pool = xp.get_default_memory_pool()
            record["device_peak"] = pool.total_bytes()  # the pool keeps what it has taken
        if later and device != "cpu" and record["first"] < 20.0:
            with stages(device) as found:
                again = common.timed(run)[1]
            record["stages"] = found | {"all": again}
    record |= {"load": common.load(), "groups": number_of_groups(result)}
    if hasattr(result, "work_"):
        work = result.work_
        record |= {"comparisons": work.comparisons, "searches": work.searches, "rounds": work.rounds}
    return record


def number_of_groups(result: Any) -> int | None:
    reduction = result if hasattr(result, "membership") else getattr(result, "reduction_", None)
    return None if reduction is None else len(reduction.weights)


# --- the tables -------------------------------------------------------------------------------------------------------


def markdown(record: common.Record) -> str:
    device, parts = record.get("device", {}), record["parts"]
    lines = [f"# {device.get('name', 'GPU')}\n"]
    if "cupy" in device:
        lines.append(
            f"{device['name']} ({common.size(device['memory'])}, {device['multiprocessors']} multiprocessors, compute "
            f"capability {device['compute_capability']}, {common.size(device['l2'])} of L2), driver "
            f"{device['driver'] or 'unknown'} (CUDA {device['driver_cuda']}), CUDA runtime {device['cuda']}, CuPy "
            f"{device['cupy']}."
        )
    if "machine" in record:
        lines.append(f"{common.machine_line(record)}{' A quick run on tiny inputs.' if record['quick'] else ''}")
    shown = {
        "parity": ("Parity with the CPU", parity_markdown),
        "ceilings": ("Ceilings", ceilings_markdown),
        "kernels": ("Kernels", kernels_markdown),
        "end-to-end": ("End to end", end_to_end_markdown),
    }
    for part, (title, text) in shown.items():
        lines.append(f"\n## {title}\n")
        lines.append(text(parts) if parts.get(part) else "Not measured: this part was not asked for.")
    return "\n".join(lines)


def parity_markdown(parts: common.Record) -> str:
    rows = parts["parity"]
    checked = [row for row in rows if "held" in row]
    lost = [row for row in checked if not row["held"]] + [row for row in rows if "held" not in row]
    verdict = "all of them held" if all(map(holds, rows)) else "**not all of them held**"
    if any("skipped" in row for row in rows):
        verdict += ", and some were left out"
    columns = list(dict.fromkeys((row["size"], row["dtype"]) for row in checked))
    header = ["", "of", *(f"{size:,} {dtype}" for size, dtype in columns)]
    table = []
    by_kernel = {kernel: [row for row in checked if kernel in row["kernels"]] for kernel in kernels.functions()}
    by_name = {name: [row for row in checked if row["what"] == name] for name in dict.fromkeys(r["what"] for r in rows)}
    for kind, found in (("kernel", by_kernel), ("results of", by_name)):
        for name, own in found.items():
            cells = [[row for row in own if (row["size"], row["dtype"]) == column] for column in columns]
            table.append([f"`{name}`" if kind == "kernel" else name, kind, *map(cell, cells)])
    lines = [
        f"{sum(row['compared'] for row in checked):,} comparisons with the CPU in {len(checked):,} cases: "
        f"{verdict}. Columns are objects and the dtype of their codes; a cell counts the cases (weights of one and "
        "real ones, and what launches the kernel). Results are compared to the bit, but for sums of real weights over "
        "objects (rounding) and for what ends in k-means of many objects (one label in 10,000 may differ).\n",
        common.table(header, table),
    ]
    lines += [
        f"- {row['what']}" + (f", {row['size']:,} {row['dtype']}, weights {row['weights']}" if "size" in row else "")
        + f": {row.get('why') or problem(row)}"
        for row in lost
    ]  # fmt: skip
    return "\n".join(lines)


def cell(rows: list[common.Record]) -> str:
    if not rows:
        return "–"
    lost = sum(not row["held"] for row in rows)
    return f"**{lost} of {len(rows)} lost**" if lost else f"{len(rows)} held"


def ceilings_markdown(parts: common.Record) -> str:
    words = {
        "copy_rate": ("copy of an array on the device, read and written", "B/s"),
        "compare_rate": ("labels compared in registers, and the matches counted", "comparisons/s"),
    }
    rows = []
    for row in parts["ceilings"]:
        what, unit = words[row["what"]]
        rows.append([what, problem(row) or unit, *(["–"] * 2 if problem(row) else [scaled(row["rate"]), ms(row)])])
    return common.table(["ceiling", "unit", "rate", "ms a call"], rows)


def kernels_markdown(parts: common.Record) -> str:
    rates = {row["what"]: row.get("rate") for row in parts.get("ceilings", [])}
    copy, compare = rates.get("copy_rate"), rates.get("compare_rate")
    header = ["kernel", "in", "rows", "launches", "ms", "bytes", "operations", "ceiling", "share"]
    header += ["longest launch, ms", "its share"]
    table = []
    for row in parts["kernels"]:
        if problem(row):
            table.append(["–", row["case"], problem(row), *["–"] * (len(header) - 3)])
            continue
        which, share = share_of(row, copy, compare)
        cells = [f"`{row['kernel']}`", row["case"], row["shape"], f"{row['launches']:,}", ms(row)]
        cells += [scaled(row["bytes"]), scaled(row["operations"]), which, share]
        table.append([*cells, ms(row["longest"]), share_of(row["longest"], copy, compare)[1]])
    counted = [[f"`{name}`", count.moved, count.done] for name, count in COUNTS.items()]
    return "\n".join(
        [
            "Milliseconds by CUDA events, all launches of a call together, the median of several calls after one that "
            "warmed up. Bytes are those of every array once, whatever caches do; the ceiling is the one that would "
            "take longer, bytes at the rate of the copy or operations at that of the comparisons, and the share is "
            "that time over the measured one. Linkages run as they do in use; before all other launches the L2 cache "
            "is overwritten.\n",
            common.table(header, table),
            "\nWhat is counted:\n",
            common.table(["kernel", "bytes of", "operations"], counted),
        ]
    )


def share_of(row: common.Record, copy: float | None, compare: float | None) -> tuple[str, str]:
    if not copy or not compare or not row["seconds"]:
        return "–", "–"
    by_bytes, by_operations = row["bytes"] / copy, row["operations"] / compare
    return ("bytes" if by_bytes >= by_operations else "compare"), f"{max(by_bytes, by_operations) / row['seconds']:.1%}"


def end_to_end_markdown(parts: common.Record) -> str:
    header = ["ensemble", "call", "groups", "cold", "first", "later", "device peak", "host peak", "CPU, first", "later"]
    header += ["faster by", "comparisons / G²M", "searches", "rounds"]
    table, went, estimates = [], [], []
    for row in parts["end-to-end"]:
        found, cpu = row["device"], row.get("cpu", {})
        shape = row["objects"]
        name = f"{row['ensemble']}" if shape is None else f"{row['ensemble']} ({shape[0]:,} × {shape[1]})"
        if "estimate" in row:
            measured = stage_seconds(found, row["stage"])
            words = "not measured" if measured is None else f"{measured:.4g} s"
            estimates.append([name, row["call"], row["stage"], f"{row['estimate']:g} s", words])
        if problem(found):
            table.append([name, row["call"], problem(found), *["–"] * (len(header) - 3)])
            continue
        cells = [name, row["call"], f"{found['groups']:,}" if found.get("groups") else "–"]
        cells += [short(found.get(key)) for key in ("cold", "first", "later")]
        cells += [common.size(found.get("device_peak")), common.size(found["peak"])]
        cells += [problem(cpu) or short(cpu.get("first")), short(cpu.get("later"))]
        times = settled(cpu) / settled(found) if cpu and not problem(cpu) else None
        cells.append("–" if times is None else f"{times:.1f}×")
        share = found["comparisons"] / (found["groups"] ** 2 * shape[1]) if "comparisons" in found else None
        cells += [common.number(share), *(f"{found[key]:,}" if key in found else "–" for key in ("searches", "rounds"))]
        table.append(cells)
        if spent := found.get("stages"):
            went.append([name, row["call"], *(f"{1000 * spent[s]:.3g}" if s in spent else "–" for s in SPENT)])
    lines = [
        "Seconds from labels where the device works to labels there, the device's work included. Cold is a first call "
        "in a fresh process with nothing compiled yet (CuPy's and Numba's caches empty), first one with compiled code "
        "on disk, later the median of up to three more in the same process. Device peak is what CuPy's pool has taken, "
        "host peak the whole process. The CPU works on the same labels, and is given up after a minute; faster by "
        "compares later calls (first ones where there are no later).\n",
        common.table(header, table),
        "\nWhere the time goes: milliseconds of a later call that waits for the device after each stage (nearest "
        "lists, searches and rounds are the linkage; embedding and k-means the transfer cut).\n",
        common.table(["ensemble", "call", *SPENT], went),
    ]
    if estimates:
        lines.append("\nWhat counts of operations let expect of an H100, before there was a measurement:\n")
        lines.append(common.table(["ensemble", "call", "stage", "expected", "measured"], estimates))
    return "\n".join(lines)


def stage_seconds(found: common.Record, stage: str) -> float | None:
    return found.get("later") if stage == "all" else found.get("stages", {}).get(stage)


def settled(found: common.Record) -> float:
    return found.get("later") or found["first"]


def short(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"


def ms(row: common.Record) -> str:
    return f"{1000 * row['seconds']:.3g}"


def scaled(value: float) -> str:
    for unit, word in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {word}"
    return f"{value:.3g}"


TASKS: dict[str, Callable[..., common.Record]] = {
    "describe": describe,
    "check": check,
    "copy_rate": copy_rate,
    "compare_rate": compare_rate,
    "time_kernels": time_kernels,
    "make": make,
    "fit": fit,
}

if __name__ == "__main__":
    common.serve(TASKS)
    sys.exit(main())
