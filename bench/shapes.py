"""Extreme shapes: many clusterings, few objects, a clustering of tens of thousands of clusters, by every method.

    python bench/shapes.py [--only wide long names ids] [--methods eac lwea …] [--before DIR] [--limit 60]
    python bench/shapes.py --quick

wide   5 objects, 10,000 clusterings of up to 4 clusters
long   20,000 objects, 1,000 clusterings of 10 clusters
names  20,000 objects, one of 3 clusterings names each of them
ids    70,000 objects, as before

All but wide are noisy copies of 10 classes, a fifth of the labels drawn at random. Each method has a process of its own
and ends with labels, with the sentence that refused it, or at the limit (60 s). --before also measures the library of
another checkout, such as that of an earlier commit, in rows of its name. A quarter of an hour on two idle cores; what
was measured is kept, so that a run that was stopped goes on.
"""

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path

import common
import numpy as np
import parts as bench_parts

SHAPES = {"wide": (5, 10_000, 4), "long": (20_000, 1_000, 10), "names": (20_000, 3, 10), "ids": (70_000, 3, 10)}
QUICK = {"wide": (5, 60, 4), "long": (200, 40, 10), "names": (200, 3, 10), "ids": (300, 3, 10)}
NAMED = ("names", "ids")
TITLES = {
    "wide": "5 objects × 10,000 clusterings",
    "long": "20,000 objects × 1,000 clusterings",
    "names": "20,000 objects × 3, one clustering of 20,000 clusters",
    "ids": "70,000 objects × 3, one clustering of 70,000 clusters",
}
NOISE = 0.2
GOAL = 10.0  # seconds on two idle cores
METHODS = {
    "eac": ("EAC", {}),
    "eac, single": ("EAC", {"linkage": "single"}),
    "eac, complete": ("EAC", {"linkage": "complete"}),
    "lwea": ("LWEA", {}),
    "lwgp": ("LWGP", {}),
    "hbgf": ("HBGF", {}),
    "scec": ("SCEC", {}),
    "cgc": ("CgC", {}),
    "oc-ia": ("OCIa", {}),
    "oc-h": ("OCH", {}),
    "crc-ia": ("CrCIa", {}),
    "crc-c": ("CrCC", {}),
    "s-cce": ("SCCE", {}),
    "ecrmc": ("ECRMC", {}),
}
PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn")


def main() -> None:
    parser = bench_parts.parser(__doc__, SHAPES, quick="a few hundred objects at most")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), metavar="METHOD", default=list(METHODS))
    parser.add_argument("--before", type=Path, help="another checkout, measured as well")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a method may take (60)")
    options = parser.parse_args()
    bench_parts.run(
        "shapes",
        options,
        {name: partial(of_shape, name, options) for name in SHAPES},
        (),
        sys.modules[__name__],
        packages=PACKAGES,
        setting={"shapes": QUICK if options.quick else SHAPES, "noise": NOISE},
        said=said,
    )


def of_shape(name: str, options: argparse.Namespace, rows: common.Record, found: bench_parts.Found) -> None:
    shape = (QUICK if options.quick else SHAPES)[name]
    for checkout in (options.before, None) if options.before else (None,):
        environment = {"PYTHONPATH": os.fspath(checkout.resolve())} if checkout else None
        for method in options.methods:
            key = f"{method}, {checkout.resolve().name}" if checkout else method
            if key in rows:
                continue
            arguments = {"name": name, "shape": shape, "method": method, "seed": options.seed}
            row = common.in_child(__file__, "fit", limit=options.limit, environment=environment, **arguments)
            if row.get("failed", "").startswith("more than"):
                row = {"stopped": row["failed"], "load": common.load()}
            found(key, row)


# --- what is measured -------------------------------------------------------------------------------------------------


def fit(name: str, shape: tuple[int, int, int], method: str, seed: int) -> common.Record:
    """Fit a method of the library that PYTHONPATH or the installation gives."""
    import warnings

    import gpuens as ge

    warnings.simplefilter("ignore")
    labels, (n_objects, _, n_clusters) = ensemble(name, *shape, seed=seed), shape
    kind, parameters = METHODS[method]
    estimator = getattr(ge, kind)(2 if name == "wide" else n_clusters, **parameters)
    more = {"X": np.random.default_rng(seed).standard_normal((n_objects, 4))} if kind == "ECRMC" else {}
    start, start_cpu, refusal = time.perf_counter(), time.process_time(), None
    try:
        estimator.fit(labels, **more)
    except MemoryError as error:
        refusal = str(error)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - start_cpu,
        "peak": common.peak_memory(),
        "load": common.load(),
        "refusal": refusal,
    }


def ensemble(name: str, n_objects: int, n_clusterings: int, n_clusters: int, seed: int = 0) -> list[np.ndarray]:
    """Return the label columns of a shape."""
    rng = np.random.default_rng(seed)
    if name == "wide":
        return list(rng.integers(0, n_clusters, (n_clusterings, n_objects)))
    truth = rng.integers(0, n_clusters, n_objects)
    columns = [np.arange(n_objects)] if name in NAMED else []
    while len(columns) < n_clusterings:
        strays = rng.random(n_objects) < NOISE
        columns.append(np.where(strays, rng.integers(0, n_clusters, n_objects), truth))
    return columns


# --- the page ---------------------------------------------------------------------------------------------------------


def said(row: common.Record) -> str:
    if "seconds" not in row:
        return row.get("stopped", "")
    return f"{common.seconds(row['seconds'])} s, CPU {common.seconds(row['cpu'])} s{', refused' * bool(row['refusal'])}"


def markdown(record: common.Record) -> str:
    return bench_parts.page(
        "Extreme shapes",
        record,
        {name: partial(section, title) for name, title in TITLES.items()},
        {name: partial(sentences, title) for name, title in TITLES.items()},
        f"{bench_parts.LOAD} Seconds are those of a process's first fit, with compiled code on disk, without imports. "
        f"{record.get('note', '')}".rstrip(),
    )


def plot(record: common.Record, path: Path) -> None:
    """Draw nothing: the tables say it all."""


def sentences(title: str, part: common.Record) -> list[str]:
    rows = {name: row for name, row in bench_parts.scored(part).items() if name in METHODS}
    within = [name for name, row in rows.items() if not row.get("refusal") and row.get("cpu", np.inf) <= 2 * GOAL]
    refused = [name for name, row in rows.items() if row.get("refusal")]
    slower = [name for name in rows if name not in within + refused]
    ways = {f"within {2 * GOAL:.0f} CPU seconds": within, "refused": refused, "slower": slower}
    found = [f"{way}: {', '.join(names)}" for way, names in ways.items() if names]
    return [f"{title}: {'; '.join(found)}."]


def section(title: str, part: common.Record) -> str:
    cells = []
    for name, row in part["rows"].items():
        found = [common.seconds(row.get("seconds")), common.seconds(row.get("cpu")), common.size(row.get("peak"))]
        outcome = row.get("refusal") or row.get("stopped") or row.get("failed") or "labels"
        cells.append([name, outcome, *found, common.number(row.get("load"), 1)])
    table = common.table(["method", "came to", "seconds", "CPU", "peak", "load"], cells)
    return f"{bench_parts.heading(title, part)}\n{table}"


if __name__ == "__main__":
    common.serve({"fit": fit})
    main()
