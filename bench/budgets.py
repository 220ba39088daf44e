"""A check of GPUENS_MEMORY for every method: the peak memory on ensembles of several shapes, or the error message.

A method keeps its promise if its process, imports, labels and all, never held more than the budget and 0.35 GB, or if
it was refused with a MemoryError, which says the bytes and what to do instead. k-means has one start. A quick run
counts from what a process held before the fit, after a small one, and allows 15 MB beside the budget.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
import parts
import report
from parts import Job, Part

IMPORTS = 350_000_000  # bytes that a process, including its imports, may use beyond its budget
SLACK = 15_000_000  # bytes that a fit may use beyond its budget after all imports
LOADED_ON = 4000  # objects of the small fit that imports packages first
PACKAGES = ["gpuens", "numpy", "scipy", "scikit-learn", "pymetis"]


class Shape(NamedTuple):
    n_objects: int
    n_clusterings: int
    k: int  # clusters of each clustering
    n_clusters: int  # number of clusters of the consensus
    budget: int
    noise: float = 0.05  # share of the labels drawn at random
    largest: int = 0  # clusters of the first clustering; 0: as many as in the others


SHAPES = {
    "tall": Shape(300_000, 20, 40, 200, 500_000_000),
    "long": Shape(3_000_000, 20, 30, 10, 1_000_000_000, noise=0.01),
    "wide": Shape(60_000, 3, 20, 10, 300_000_000, largest=12_000),
    "single": Shape(70_000, 3, 20, 10, 500_000_000, largest=70_000),
    "noise": Shape(20_000, 10, 10, 10, 300_000_000, noise=0.9),
    "few": Shape(3_000, 10, 10, 10, 400_000_000, noise=0.5),
}
QUICK = {
    "tall": Shape(20_000, 5, 30, 80, 20_000_000, noise=0.2),
    "wide": Shape(4_000, 3, 20, 10, 40_000_000, largest=2_000),
    "few": Shape(600, 6, 10, 6, 40_000_000, noise=0.5),
}


def labels_of(shape: Shape, seed: int) -> np.ndarray:
    """Return labels (n_objects, n_clusterings): equal clusters in all clusterings, except a share of random labels."""
    rng = np.random.default_rng(seed)
    classes = max(shape.k, shape.n_clusters)
    truth = rng.integers(0, classes, shape.n_objects, dtype=np.int32)
    dtype = np.min_scalar_type(max(shape.k, shape.largest))
    labels = np.empty((shape.n_objects, shape.n_clusterings), dtype=dtype, order="F")
    for m in range(shape.n_clusterings):
        column = rng.permutation(classes)[truth] % shape.k
        strays = rng.random(shape.n_objects) < shape.noise
        column[strays] = rng.integers(0, shape.k, strays.sum())
        labels[:, m] = column
    if shape.largest:
        labels[:, 0] = rng.permutation(np.arange(shape.n_objects) % shape.largest)
    return labels


def fit(shape: list, seed: int, methods: list[str], quick: bool) -> common.Record:
    """Return, for each method, the memory of its process before the fit, the peak memory, and the outcome."""
    import gpuens as ge

    peaks = {}
    labels = labels_of(given := Shape(*shape), seed)
    # the small ensemble has codes of the same dtype, and enough objects for the packages of most methods
    sample = ge.Ensemble(labels).take(slice(0, LOADED_ON))
    for method in methods:
        # BestOfK finds as many clusters as a clustering has
        estimator = ge.methods()[method](None if method == "best-of-k" else given.n_clusters)
        if "n_init" in estimator.get_params():
            estimator.set_params(n_init=1)
        if quick:
            _fit(ge.methods()[method](2), sample)  # the first fit imports packages
        before = _forget_peak()
        start = time.perf_counter()
        outcome = _fit(estimator, labels)
        seconds = time.perf_counter() - start
        peak = common.peak_memory()
        peaks[method] = {"before": before, "peak": peak, "outcome": outcome, "seconds": seconds}
        room = given.budget + (before + SLACK if quick else IMPORTS)
        peaks[method]["held"] = peak <= room and not outcome.startswith("failed")
    return peaks


def _fit(estimator: Any, labels: Any) -> str:
    """Fit a method; return its number of clusters, or its error message."""
    features = {}
    if estimator.parts().needs_features:
        features["features"] = np.random.default_rng(0).standard_normal((len(labels), 4)).astype(np.float32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(labels, **features)
    except MemoryError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}"
    return f"{len(estimator.reduction_.counts):,} rows, {estimator.n_clusters_} clusters"


def _forget_peak() -> int:
    """Reset the peak memory of this process (on Linux); return its current memory in bytes."""
    refs = Path("/proc/self/clear_refs")
    if refs.exists():
        refs.write_text("5")
    return common.peak_memory()


def main() -> None:
    import gpuens as ge

    parser = parts.parser(__doc__, SHAPES, quick="small ensembles, all methods in one process for each")
    methods = [method for method, kind in ge.methods().items() if kind().parts().lacks is None]
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a fit")
    options = parser.parse_args()
    shapes = QUICK if options.quick else SHAPES
    page = report.Page("budgets", sys.modules[__name__])
    parts.run(
        "budgets", options, {name: Part(partial(of_shape, shapes[name])) for name in shapes}, page.markdown,
        packages=PACKAGES, setting={},
    )  # fmt: skip


def of_shape(shape: Shape, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    # freed memory returns to the system at once, so that the next fit in the process cannot reuse it
    environment = {"MALLOC_MMAP_THRESHOLD_": "65536"} if options.quick else {}
    environment["GPUENS_MEMORY"] = str(shape.budget)

    @cache
    def fitted(*methods: str) -> common.Record:
        return common.in_child(
            fit, limit=options.limit, shape=shape, seed=options.seed, methods=methods, quick=options.quick,
            environment=environment,
        )  # fmt: skip

    def one(method: str, found: Callable[[], common.Record]) -> common.Record:
        return found().get(method) or {"failed": found()["failed"]}

    for method in options.methods:
        yield method, partial(one, method, partial(fitted, *(options.methods if options.quick else [method])))


# --- the page ---------------------------------------------------------------------------------------------------------


def page_values(record: common.Record) -> common.Record:
    rows = [row for part in record["parts"].values() for row in part["rows"].values()]
    measured = [row for row in rows if "peak" in row]
    return {"kept": sum(row["held"] for row in measured), "n": len(measured), "not_done": len(rows) - len(measured)}


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    return (QUICK if record["quick"] else SHAPES)[name]._asdict()


if __name__ == "__main__":
    main()
