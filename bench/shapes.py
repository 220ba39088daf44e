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
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part

SHAPES = {"wide": (5, 10_000, 4), "long": (20_000, 1_000, 10), "names": (20_000, 3, 10), "ids": (70_000, 3, 10)}
QUICK = {"wide": (5, 60, 4), "long": (200, 40, 10), "names": (200, 3, 10), "ids": (300, 3, 10)}
NAMED = ("names", "ids")
NOISE = 0.2
GOAL = 10.0  # target in seconds on two idle cores
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
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


def main() -> None:
    parser = parts.parser(__doc__, SHAPES, quick="a few hundred objects at most")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), metavar="METHOD", default=list(METHODS))
    parser.add_argument("--before", type=Path, help="another checkout, measured as well")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a method may take (60)")
    options = parser.parse_args()
    parts.run(
        "shapes", options, {name: Part(partial(of_shape, name)) for name in SHAPES},
        report.Page("shapes", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting={"shapes": QUICK if options.quick else SHAPES, "noise": NOISE}, said=said,
    )  # fmt: skip


def of_shape(name: str, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    shape = (QUICK if options.quick else SHAPES)[name]
    for checkout in (options.before, None) if options.before else (None,):
        environment = {"PYTHONPATH": os.fspath(checkout.resolve())} if checkout else None
        for method in options.methods:
            key = f"{method}, {checkout.resolve().name}" if checkout else method
            arguments = {"name": name, "shape": shape, "method": method, "seed": options.seed}
            yield key, partial(measure, limit=options.limit, environment=environment, **arguments)


def measure(**how: Any) -> common.Record:
    row = common.in_child(fit, **how)
    if row.get("failed", "").startswith("more than"):
        row = {"stopped": row["failed"], "load": common.load()}
    return row


# --- what is measured -------------------------------------------------------------------------------------------------


def fit(name: str, shape: tuple[int, int, int], method: str, seed: int) -> common.Record:
    """Fit a method of the library that PYTHONPATH or the installation gives."""
    import warnings

    import gpuens as ge

    warnings.simplefilter("ignore")
    labels, (n_objects, _, n_clusters) = ensemble(name, *shape, seed=seed), shape
    kind, parameters = METHODS[method]
    estimator = getattr(ge, kind)(2 if name == "wide" else n_clusters, **parameters)
    more = {"features": np.random.default_rng(seed).standard_normal((n_objects, 4))} if kind == "ECRMC" else {}
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


def every_part(rows: common.Record) -> Iterator[report.Found]:
    rows = {name: row for name, row in rows.items() if name in METHODS}
    within = [name for name, row in rows.items() if not row.get("refusal") and row.get("cpu", np.inf) <= 2 * GOAL]
    refused = [name for name, row in rows.items() if row.get("refusal")]
    slower = [name for name in rows if name not in within + refused]
    ways = {f"within {2 * GOAL:.0f} CPU seconds": within, "refused": refused, "slower": slower}
    yield "outcomes", {"found": "; ".join(f"{way}: {', '.join(names)}" for way, names in ways.items() if names)}


def outcomes(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        yield {"key": name, "outcome": row.get("refusal") or row.get("stopped") or "labels", **row}


if __name__ == "__main__":
    main()
