"""The two searches of exact average linkage on the CPU: what each alone costs, and the choice between them.

    python bench/engines.py [--labels FILE.npy ...]
    python bench/engines.py --quick

A search finds the nearest regions by tiles of rows or by all rows; both give the same merges
(kernels/cpu/linkage/searches.h). Each figure is the CPU seconds of LWEA, the less of two calls, which take turns in
one process. The labels are noisy copies of ten classes, split at random (bench/start.py), or those of each FILE.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part
from start import labels_of

SEARCHES = ("chosen", "tiles", "rows")
LIMIT = 600.0  # seconds of a process
ENSEMBLES = {  # objects, clusterings, and the largest k
    "20,000 × 20": (20_000, 20, 40),
    "100,000 × 20": (100_000, 20, 40),
    "100,000 × 20, k to 316": (100_000, 20, 316),
    "8,000 × 200": (8000, 200, 40),
    "20,000 × 1,000": (20_000, 1000, 40),
}
QUICK = {"2,000 × 20": (2000, 20, 40)}


def main() -> None:
    parser = parts.parser(__doc__, PARTS, quick="2,000 objects")
    parser.add_argument("--labels", type=Path, nargs="*", default=[], metavar="FILE", help="label matrices (.npy)")
    page = report.Page("engines", sys.modules[__name__])
    parts.run("engines", parser.parse_args(), PARTS, page.markdown, packages=("gpuens", "numpy"), setting={})


def ensembles(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name, sizes in (QUICK if options.quick else ENSEMBLES).items():
        yield name, partial(row_of, sizes=sizes, seed=options.seed)
    for file in options.labels:
        yield file.stem, partial(row_of, file=str(file.resolve()))


def row_of(**given: Any) -> common.Record:
    """Return the CPU seconds of each search, and the ratio of the better one to the choice."""
    row: common.Record = common.in_child(fitted, limit=LIMIT, **given)
    return row if "failed" in row else row | {"gain": min(row["tiles"], row["rows"]) / row["chosen"]}


def fitted(file: str = "", sizes: tuple[int, int, int] = (0, 0, 0), seed: int = 0) -> common.Record:
    import gpuens as ge
    from gpuens.partition.linkage import conduct

    labels = np.load(file) if file else labels_of(sizes[0], seed, n_clusterings=sizes[1], largest=sizes[2])
    took = dict.fromkeys(SEARCHES, np.inf)
    for _ in range(2):
        for kind in SEARCHES:  # they take turns, because a machine's speed varies
            start = time.process_time()
            with nullcontext() if kind == "chosen" else conduct.only(kind):
                ge.consensus(labels, 10, method="lwea")
            took[kind] = min(took[kind], time.process_time() - start)
    return took


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    return {"lists": {"search": SEARCHES}}


PARTS = {"ensembles": Part(ensembles)}

if __name__ == "__main__":
    main()
