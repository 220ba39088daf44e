"""Whether every method keeps to GPUENS_MEMORY: the peak of each on ensembles of several shapes, or how it is refused.

A method keeps its promise if its process, imports, labels and all, never held more than the budget and 0.35 GB, or if
it was refused with a MemoryError, which says the bytes and what to do instead. k-means has one start. A quick run
counts from what a process held before the fit, after a small one, and allows 15 MB beside the budget.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np

IMPORTS = 350_000_000  # what a process may hold beside its budget
SLACK = 15_000_000  # what a fit may take beside its budget, when all imports have been made
PACKAGES = ["gpuens", "numpy", "scipy", "scikit-learn", "numba", "pymetis"]


class Shape(NamedTuple):
    title: str
    n_objects: int
    n_clusterings: int
    k: int  # clusters of each clustering
    n_clusters: int  # wanted
    budget: int
    noise: float = 0.05  # share of the labels drawn at random
    largest: int = 0  # clusters of the first clustering, if others


SHAPES = {
    "tall": Shape("many rows, many clusters wanted", 300_000, 20, 40, 200, 500_000_000),
    "long": Shape("very many rows", 3_000_000, 20, 30, 10, 1_000_000_000, noise=0.01),
    "wide": Shape("12,000 clusters in one clustering", 60_000, 3, 20, 10, 300_000_000, largest=12_000),
    "single": Shape("one cluster for each object", 70_000, 3, 20, 10, 500_000_000, largest=70_000),
    "noise": Shape("rows that all differ", 20_000, 10, 10, 10, 300_000_000, noise=0.9),
    "few": Shape("few rows, of which all pairs fit", 3_000, 10, 10, 10, 400_000_000, noise=0.5),
}
QUICK = {
    "tall": Shape("many rows, many clusters wanted", 20_000, 5, 30, 80, 20_000_000, noise=0.2),
    "wide": Shape("2,000 clusters in one clustering", 4_000, 3, 20, 10, 40_000_000, largest=2_000),
    "few": Shape("few rows, of which all pairs fit", 600, 6, 10, 6, 40_000_000, noise=0.5),
}


def labels_of(shape: Shape, seed: int) -> np.ndarray:
    """Return labels (n_objects, n_clusterings): of clusters in all clusterings alike, some drawn at random."""
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
    """Return of each method what its process held before and at most, and how it ended."""
    import gpuens as ge

    found = {}
    labels = labels_of(given := Shape(*shape), seed)
    for method in methods:
        estimator = ge.methods()[method](given.n_clusters)
        if "n_init" in estimator.get_params():
            estimator.set_params(n_init=1)
        if quick:
            _fit(ge.methods()[method](2), labels[:50, 1:])  # imports and compiles
        before = _forget_peak()
        start = time.perf_counter()
        outcome = _fit(estimator, labels)
        seconds = time.perf_counter() - start
        peak = common.peak_memory()
        found[method] = {"before": before, "peak": peak, "outcome": outcome, "seconds": seconds}
        room = given.budget + (before + SLACK if quick else IMPORTS)
        found[method]["held"] = peak <= room and not outcome.startswith("failed")
    return found


def _fit(estimator: Any, labels: np.ndarray) -> str:
    """Fit, and return how that ended."""
    features = {}
    if type(estimator).__name__ == "ECRMC":
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
    """Return how much this process holds, from where its peak counts anew (on Linux)."""
    refs = Path("/proc/self/clear_refs")
    if refs.exists():
        refs.write_text("5")
    return common.peak_memory()


def main() -> None:
    import gpuens as ge

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(SHAPES), help="which shapes")
    parser.add_argument("--methods", nargs="+", choices=list(ge.methods()), default=list(ge.methods()))
    parser.add_argument("--quick", action="store_true", help="small ensembles, all methods in one process for each")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="JSON; Markdown goes beside it (bench/results)")
    options = parser.parse_args()
    shapes = QUICK if options.quick else SHAPES
    if options.output is None and not options.quick:
        options.output = common.RESULTS / "budgets.json"
    # what is freed goes back at once, so that the next fit in a process does not find it there
    environment = {"MALLOC_MMAP_THRESHOLD_": "65536"} if options.quick else {}
    what = {"bench": "budgets", "quick": options.quick, "seed": options.seed} | common.about(PACKAGES)
    record = common.begin(options.output, what)
    done = record.setdefault("shapes", {})
    for name in [name for name in shapes if name in (options.only or shapes)]:
        shape = shapes[name]
        rows = done.setdefault(name, {})
        at_once = (
            [options.methods] if options.quick else [[m] for m in options.methods if "peak" not in rows.get(m, {})]
        )
        for methods in at_once:
            row = common.in_child(
                __file__, "fit", limit=options.limit, shape=shape, seed=options.seed, methods=methods,
                quick=options.quick, environment=environment | {"GPUENS_MEMORY": str(shape.budget)},
            )  # fmt: skip
            rows |= {method: row.get(method) or {"failed": row["failed"]} for method in methods}
            print(f"    {name}: {', '.join(methods)}", file=sys.stderr, flush=True)
            common.save(options.output, record, markdown(record, shapes))
    print(markdown(record, shapes))
    common.save(options.output, record, markdown(record, shapes))


def markdown(record: common.Record, shapes: dict[str, Shape]) -> str:
    rows = [row for found in record["shapes"].values() for row in found.values()]
    measured = [row for row in rows if "peak" in row]
    lines = [
        f"# Memory promised and kept{' (a quick run)' if record['quick'] else ''}\n",
        f"{__doc__.split(chr(10), 2)[2].strip()}\n",
        f"{sum(row['held'] for row in measured)} of {len(measured)} kept it; {len(rows) - len(measured)} were not done "
        "in time, or ended.\n",
        f"{common.today()}; {common.machine_line(record)}",
    ]
    for name, found in record["shapes"].items():
        shape = shapes[name]
        lines.append(
            f"\n## {shape.title}\n\n{shape.n_objects:,} objects × {shape.n_clusterings} clusterings, "
            f"{shape.n_clusters} clusters wanted, GPUENS_MEMORY={common.size(shape.budget)}\n"
        )
        lines.append(common.table(["method", "outcome", "peak", "seconds", "kept"], map(line, found.items())))
    return "\n".join(lines)


def line(item: tuple[str, common.Record]) -> list[str]:
    method, row = item
    if "failed" in row:
        return [method, row["failed"], "–", "–", "–"]
    kept = "yes" if row["held"] else "**no**"
    return [method, row["outcome"], common.size(row["peak"]), common.seconds(row["seconds"]), kept]


if __name__ == "__main__":
    common.serve({"fit": fit})
    main()
