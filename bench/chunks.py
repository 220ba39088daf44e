"""Label matrices on disk, in chunks of rows: seconds by phase, memory of all processes, core groups, equal labels.

    python bench/chunks.py [--only PART ...] [--scratch DIR] [--output bench/results/chunks.json]
    python bench/chunks.py --quick

The parts:

    same     1,000,000 objects × 10: the labels of one piece, bit for bit, by threads, by one worker and by two, in
             other chunks, and where a worker is killed in the middle
    scaling  100,000, 1,000,000 and 10,000,000 objects × 10: how LWGP's cost grows
    ten      10,000,000 objects × 20: LWGP, and LWEA on the nodes of a CA-tree
    hundred  100,000,000 objects × 10, a file of 1 GB: intersections, and LWGP, its labels written to a file
    pieces   10,000,000 objects × 20, whose rows are nearly all distinct: core groups together, and in pieces because
             GPUENS_MEMORY says so, by one worker and by two

About a quarter of an hour on two cores, and 2 GB in --scratch, which are freed at the end. Objects are points of a
mixture of Gaussians; a clustering gives each the nearest of its own k centers. They are made by pieces, each with a
seed of its own, so that small sets are the first objects of the large ones. Results are written after each row, and a
part that is of the same machine, versions and commit goes on where it was stopped.
"""

import argparse
import hashlib
import os
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

import chunks_report
import common
import numpy as np
import parts
import psutil
import report
from parts import Job, Part

PACKAGES = ("gpuens", "numpy", "scipy", "dask", "distributed")
K = 8  # components of the mixture, and requested clusters
DIMENSIONS, SPREAD = 8, 2.0  # SPREAD: standard deviation of the means / that within a component
CENTERS = {10: (7, 40), 20: (5, 10)}  # for each number of clusterings, bounds of k that give 1 to 10 % of N core groups
MANY = (30, 60)  # bounds of k in the part "pieces", where nearly all rows are distinct
LITTLE = "500MB"  # memory budget that is too small for all distinct rows in one process
PIECE = 250_000  # objects generated at a time
BLOCK = 2048  # objects whose distances are computed together
TREE = "catree:tau=0.2,gamma=0.9"
INTERVAL = 0.1  # seconds between two measurements of the memory
# methods of part "same": number of workers, rows of a chunk / N, phase in which a worker is killed
WAYS: dict[str, tuple[int, float, str | None]] = {
    "threads": (0, 0.05, None),
    "1 worker": (1, 0.05, None),
    "2 workers": (2, 0.05, None),
    "2 workers, chunks of another size": (2, 0.13, None),
    "2 workers, one killed over core groups": (2, 0.05, "core-groups"),
    "2 workers, one killed over labels": (2, 0.05, "look-up"),
}
QUICK = ("threads", "2 workers, one killed over labels")


class Setting:
    """The input of the parts."""

    def __init__(self, options: argparse.Namespace) -> None:
        divisor = 500 if options.quick else 1
        self.same = 1_000_000 // divisor
        self.scaling = [n // divisor for n in ((1_000_000,) if options.quick else (100_000, 1_000_000, 10_000_000))]
        self.many = (10, 20) if options.quick else MANY
        self.little = "2750kB" if options.quick else LITTLE
        self.ten, self.hundred = 10_000_000 // divisor, 100_000_000 // divisor
        self.chunk_rows = options.chunk_rows // divisor
        self.workers = 0 if options.quick else 2  # a Dask cluster takes seconds to start
        self.ways = {way: WAYS[way] for way in QUICK} if options.quick else WAYS
        self.methods = [("lwgp", None)] + ([] if options.quick else [("lwea", TREE)])  # methods of part "same"
        self.apart = ["LWGP"] + ([] if options.quick else ["CgC"])  # methods of part "pieces"
        self.seed = options.seed
        self.scratch = options.scratch


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        options.scratch = Path(scratch)
        setting, page = {"chunk_rows": options.chunk_rows}, report.Page("chunks", chunks_report)
        parts.run(
            "chunks", options, PARTS, page.markdown, chunks_report.plot, packages=PACKAGES, setting=setting, said=cost
        )


def cost(row: common.Record) -> str:
    return f"{common.seconds(row['seconds'])} s, {common.size(row['peak'])}"


def parse() -> argparse.Namespace:
    parser = parts.parser(__doc__, PARTS, quick="a five hundredth of the objects")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where label files are made: 2 GB (system's own)")
    parser.add_argument("--chunk-rows", type=int, default=1_000_000, metavar="N", help="objects of a chunk (1,000,000)")
    return parser.parse_args()


# --- the parts --------------------------------------------------------------------------------------------------------


def same(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    setting = Setting(options)

    def compared(name: str, task: Callable, **how: Any) -> common.Record:
        row = observed(task, scratch=setting.scratch, **how, **files())
        if task is fit:
            row["same"] = row.get("digest") == rows[f"{name}: one piece"].get("digest")
        return row

    with mixture(setting, setting.same, 10) as files:
        for method, reduce in setting.methods:
            name, of = method.upper() + " on CA-tree nodes" * bool(reduce), {"method": method, "reduce": reduce}
            yield f"{name}: one piece", partial(compared, name, whole, **of)
            for way, (workers, share, kill) in setting.ways.items():
                how = {"workers": workers, "chunk_rows": int(setting.same * share), "kill": kill}
                yield f"{name}: {way}", partial(compared, name, fit, **of, **how)


def scaling(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    setting = Setting(options)
    for n in setting.scaling:
        with mixture(setting, n, 10) as files:
            yield str(n), partial(fitted, setting, files)


def ten(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    setting = Setting(options)
    with mixture(setting, setting.ten, 20) as files:
        yield "LWGP", partial(fitted, setting, files)
        yield "LWEA on CA-tree nodes", partial(fitted, setting, files, method="lwea", reduce=TREE)


def hundred(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    setting = Setting(options)
    with mixture(setting, setting.hundred, 10) as files:
        how = {"chunk_rows": setting.chunk_rows, "workers": setting.workers}
        yield "intersections", lambda: observed(count, labels=files()["labels"], **how)
        yield "LWGP", partial(fitted, setting, files)


def pieces(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    setting = Setting(options)
    with mixture(setting, setting.ten, 20, setting.many) as files:
        for method in setting.apart:
            yield f"{method}, together", partial(fitted, setting, files, method=method.lower())
        for method in setting.apart:
            for workers in (0,) if setting.workers == 0 else (2, 1):
                how = {"method": method.lower(), "memory": setting.little, "workers": workers}
                yield f"{method}, in pieces, {workers} worker(s)", partial(fitted, setting, files, **how)


PARTS = {
    "same": Part(same),
    "scaling": Part(scaling),
    "ten": Part(ten),
    "hundred": Part(hundred),
    "pieces": Part(pieces),
}


def fitted(setting: Setting, files: Callable[[], common.Record], **how: Any) -> common.Record:
    how = {"method": "lwgp", "reduce": None, "workers": setting.workers, "chunk_rows": setting.chunk_rows, **how}
    return observed(fit, scratch=setting.scratch, **how, **files())


@contextmanager
def mixture(
    setting: Setting, n_objects: int, n_clusterings: int, centers: tuple[int, int] | None = None
) -> Iterator[Callable[[], common.Record]]:
    """Within the context, a mixture's label file and the file of its components are created at the first request."""
    files = {"labels": setting.scratch / "labels.npy", "truth": setting.scratch / "truth.npy"}

    @cache
    def made() -> common.Record:
        shape = (n_objects, n_clusterings)
        generate(files["labels"], files["truth"], shape, centers or CENTERS[n_clusterings], setting.seed)
        return files

    try:
        yield made
    finally:
        for path in files.values():
            path.unlink(missing_ok=True)


# --- the label files --------------------------------------------------------------------------------------------------


def generate(labels: Path, truth: Path, shape: tuple[int, int], bounds: tuple[int, int], seed: int) -> None:
    """Write the label matrix of a mixture (n_objects, n_clusterings), and the component of each object, both uint8."""
    n_objects, n_clusterings = shape
    rng = np.random.default_rng(seed)
    means = (SPREAD * rng.standard_normal((K, DIMENSIONS))).astype(np.float32)
    low, high = bounds
    centers = [objects_of(means, rng, rng.integers(low, high + 1))[0] for _ in range(n_clusterings)]

    def piece(i: int) -> tuple[np.ndarray, np.ndarray]:
        X, components = objects_of(means, np.random.default_rng([seed, i]), PIECE)
        codes = np.empty((PIECE, n_clusterings), dtype=np.uint8)
        for m, centers_of_clustering in enumerate(centers):
            codes[:, m] = nearest(X, centers_of_clustering)
        return codes, components

    n_pieces = -(-n_objects // PIECE)
    with labels.open("wb") as codes_file, truth.open("wb") as truth_file, ThreadPoolExecutor() as pool:
        header(codes_file, shape)
        header(truth_file, (n_objects,))
        # eight pieces at a time, because finished pieces stay in memory until they are written
        for first in range(0, n_pieces, 8):
            pieces = range(first, min(first + 8, n_pieces))
            for i, (codes, components) in zip(pieces, pool.map(piece, pieces), strict=True):
                codes_file.write(codes[: n_objects - i * PIECE].tobytes())
                truth_file.write(components[: n_objects - i * PIECE].tobytes())


def header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})


def objects_of(means: np.ndarray, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    components = rng.integers(len(means), size=n, dtype=np.uint8)
    return rng.standard_normal((n, means.shape[1]), dtype=np.float32) + means[components], components


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the nearest center of each object; among equally near centers, the first."""
    labels = np.empty(len(X), dtype=np.intp)
    for start in range(0, len(X), BLOCK):
        block = X[start : start + BLOCK].T
        distances, squares = np.zeros((2, len(centers), block.shape[1]), dtype=np.float32)
        for feature, center_feature in zip(block, centers.T, strict=True):  # one dimension after the other
            np.subtract(feature, center_feature[:, None], out=squares)
            distances += np.square(squares, out=squares)
        labels[start : start + BLOCK] = distances.argmin(axis=0)
    return labels


# --- memory, and what is in a file of labels --------------------------------------------------------------------------


def observed(task: Callable[..., common.Record], **arguments: Any) -> common.Record:
    """Run a task in a new process.

    Add to its result the peak memory of this process and all processes that it starts.
    """
    ended, peak = threading.Event(), [0]

    def watch() -> None:
        process = psutil.Process()
        while not ended.wait(INTERVAL):
            peak[0] = max(peak[0], sum(map(resident, process.children(recursive=True))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        row = common.in_child(task, **arguments)
    finally:
        ended.set()
        watcher.join()
    if "failed" not in row and task is not count:
        row |= score(arguments["scratch"] / "consensus.npy", arguments["truth"])
    return row | {"peak": peak[0]}


def resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:  # the process has ended
        return 0


def score(path: Path, truth: Path) -> common.Record:
    """Compare the labels in a file with the components; return the adjusted Rand index and a digest of the labels."""
    from gpuens.contingency import ari_of

    labels, components = np.load(path, mmap_mode="r"), np.load(truth, mmap_mode="r")
    table = np.zeros(K * K, dtype=np.int64)
    digest = hashlib.sha256(f"{labels.dtype} {labels.shape}".encode())
    for start in range(0, len(labels), 2**20):
        block = np.array(labels[start : start + 2**20])
        digest.update(block.tobytes())
        table += np.bincount(block * K + components[start : start + 2**20], minlength=K * K)
    return {"ari": ari_of(table.reshape(K, K)), "digest": digest.hexdigest()}


# --- in a process of its own ------------------------------------------------------------------------------------------


def whole(labels: str, truth: str, method: str, reduce: str | None, scratch: str) -> common.Record:
    """Fit the label matrix in one piece, in memory."""
    import gpuens as ge

    matrix = np.load(labels)
    start = time.perf_counter()
    estimator = ge.methods()[method](K, reduction=reduce).fit(matrix)
    seconds = time.perf_counter() - start
    np.save(Path(scratch) / "consensus.npy", estimator.labels_)
    return {"n_objects": len(matrix), "seconds": seconds, "load": common.load()}


def fit(
    labels: str,
    truth: str,
    method: str,
    reduce: str | None,
    scratch: str,
    workers: int,
    chunk_rows: int,
    kill: str | None = None,
    memory: str | None = None,
) -> common.Record:
    """Run the work of ``gpuens run --scheduler`` with a clock on each phase."""
    if memory:
        os.environ["GPUENS_MEMORY"] = memory
    import gpuens as ge
    from gpuens import distributed

    estimator = ge.methods()[method](K, reduction=reduce)
    clock = Clock()
    with cluster(workers, clock) as client:
        matrix = distributed.read_labels(labels, chunk_rows=chunk_rows)
        n_chunks = matrix.numblocks[0]
        killer = threading.Thread(target=kill_a_worker, args=(client, kill, n_chunks // 2))
        if kill:
            killer.start()
        with clock.inside(distributed.Chunks), clock.phase("method"):
            distributed.fit(estimator, matrix, client=client)
        with clock.phase("labels"):
            distributed.write_labels(Path(scratch) / "consensus.npy", estimator.labels_, client=client)
        if kill:
            killer.join(timeout=0)
    chunks = estimator.reduction_.chunks
    together = chunks.fit_here
    return {
        "n_objects": matrix.shape[0],
        "n_clusterings": matrix.shape[1],
        "n_chunks": n_chunks,
        "groups" if together else "rows in pieces": sum(chunks.merged_sizes if together else chunks.sizes),
        "rows": estimator.reduction_.n_representatives,
        "seconds": clock.total(),
        "phases": clock.seconds,
        "load": common.load(),
        **({"killed": not killer.is_alive()} if kill else {}),
    }


def count(labels: str, workers: int, chunk_rows: int) -> common.Record:
    """Count the objects that each pair of clusters shares."""
    from gpuens import distributed

    clock = Clock()
    with cluster(workers, clock) as client:
        matrix = distributed.read_labels(labels, chunk_rows=chunk_rows)
        with clock.inside(distributed.Chunks), clock.phase("method"):
            shared = distributed.intersections(matrix, client=client)
    n_objects, n_clusterings = matrix.shape
    assert np.trace(shared) == n_objects * n_clusterings
    return {
        "n_objects": n_objects,
        "n_clusterings": n_clusterings,
        "n_chunks": matrix.numblocks[0],
        "clusters": len(shared),
        "seconds": clock.total(),
        "phases": clock.seconds,
        "load": common.load(),
    }


@contextmanager
def cluster(workers: int, clock: "Clock") -> Iterator[Any]:
    """Start worker processes, or none to use threads of this process. Work is measured from the end of this start."""
    from gpuens import distributed

    start = time.perf_counter()
    with distributed.connected("local" if workers else None, workers or None) as client:
        clock.seconds["start"] = time.perf_counter() - start
        yield client


class Clock:
    """A clock for the seconds of each phase. A phase inside another phase counts only for itself."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start, before = time.perf_counter(), self.total()
        yield
        self.seconds[name] += time.perf_counter() - start - (self.total() - before)

    @contextmanager
    def inside(self, kind: type) -> Iterator[None]:
        """Measure each kind of work for which `gpuens.distributed.Chunks` waits."""
        waits = {name: getattr(kind, name) for name in ("persist", "compute")}

        def timed(wait: Callable) -> Callable:
            def waited(chunks: Any, tasks: list, what: str) -> list:
                with self.phase(PHASES.get(what, "method")):
                    return wait(chunks, tasks, what)

            return waited

        for name, wait in waits.items():
            setattr(kind, name, timed(wait))
        yield
        for name, wait in waits.items():
            setattr(kind, name, wait)

    def total(self) -> float:
        """Return the seconds of work since the cluster has started."""
        return sum(seconds for name, seconds in self.seconds.items() if name != "start")


PHASES = {  # the name of each phase in the table
    "core groups of chunks": "chunks",
    "labels": "numbering",
    "core groups": "merge",
    "intersections": "counts",
}


def kill_a_worker(client: Any, phase: str, after: int) -> None:
    """Kill a worker process after a number of chunks have finished a phase."""
    import signal

    pids = client.run(os.getpid)
    name = f"gpuens-{phase}-chunk-"
    seen: set[str] = set()
    while len(seen) < after:
        seen |= {str(key) for key, workers in client.who_has().items() if str(key).startswith(name) and workers}
        time.sleep(0.01)
    os.kill(next(iter(pids.values())), signal.SIGKILL)


if __name__ == "__main__":
    main()
