"""Seconds and memory of every method from a thousand objects to a million, and how they grow.

    python bench/methods.py [--only structured distinct] [--methods eac lwea …] [--limit 20]
    python bench/methods.py --quick

20 clusterings, k in 7 … 100, noisy copies of 25 classes (the mixture of vs_peers.py); 25 clusters are wanted.

structured  0.2 % of the labels are drawn at random: some tens of thousands of distinct rows in a million
distinct    20 %: nearly all rows are distinct

Each fit has one thread in a process of its own, a fork of this one. A first fit to a few rows imports packages.
What is measured is the next: CPU seconds, seconds, and the most memory beyond what the process held before; and the
same once more, unless it took long, as more rows may need other packages: the lower one counts.
N grows tenfold until the CPU seconds foreseen for the next, by the power of the last two, pass the limit (20 s); then N
three times as large is tried. A method that is refused ends there, too. Results are written after each method, and a
run that was stopped goes on: a quarter of an hour on an idle machine.
"""

import argparse
import math
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import common
import numpy as np
import parts
import report
from parts import SINGLE, Job, Part
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from vs_peers import K_BOUNDS, N_CLASSES, N_CLUSTERINGS, mixture

NOISE = {"structured": 0.002, "distinct": 0.2}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
AGAIN = 10.0  # CPU seconds up to which a fit is repeated
QUICK = (250, 1_000)
GOAL = 20.0  # target of the CPU seconds at the largest size
FEW = 300  # objects of the first fit, which loads code
MEMORY = 8_000_000_000  # GPUENS_MEMORY in bytes
TELLING = {"cpu": 0.05, "memory": 10_000_000}  # least cost, in seconds and bytes, that is used to fit an exponent
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn", "pymetis")


def main() -> None:
    import gpuens as ge

    parser = parts.parser(__doc__, NOISE, quick="250 and 1,000 objects")
    names = list(ge.methods())
    parser.add_argument("--methods", nargs="+", choices=names, metavar="METHOD", default=names)
    parser.add_argument("--limit", type=float, default=GOAL, help="CPU seconds foreseen that end a method (20)")
    options = parser.parse_args()
    os.environ.update(SINGLE, GPUENS_MEMORY=str(MEMORY))
    parts.run(
        "methods", options, {shape: Part(partial(of_shape, shape)) for shape in NOISE},
        report.Page("methods", sys.modules[__name__]).markdown, plot, packages=PACKAGES,
        setting={"limit": options.limit, "memory": MEMORY}, said=cost,
    )  # fmt: skip


def cost(row: common.Record) -> str:
    last = row["fits"][-1] if row["fits"] else {"n": 0, "cpu": 0.0}
    return f"{last['n']:,} objects in {common.seconds(last['cpu'])} CPU s{'; ' * bool(row['ended'])}{row['ended']}"


def of_shape(shape: str, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    sizes = QUICK if options.quick else SIZES

    @cache
    def labels(n_objects: int) -> np.ndarray:
        return mixture(n_objects, NOISE[shape], options.seed)[0]

    for method in options.methods:
        yield method, partial(growing, method, labels, sizes, options.limit, options.seed)


def growing(
    method: str, labels: Callable[[int], np.ndarray], sizes: tuple[int, ...], limit: float, seed: int
) -> common.Record:
    """Return the costs of fits to increasing numbers of objects, and the reason why the largest number is missing."""
    fits: list[common.Record] = []
    for n in (n for size in sizes for n in (3 * size // 10, size)):
        if n not in sizes and forecast(fits, 10 * n // 3) <= limit:
            continue
        if (foreseen := forecast(fits, n)) > limit:
            ended = f"{foreseen:,.0f} s foreseen for {n:,} objects"
            return {"fits": fits, "ended": ended, "load": common.load()}
        row = common.forked(fit, labels(n), method, seed, limit=20 * limit)
        if "failed" in row:
            return {"fits": fits, "ended": f"{n:,} objects: {row['failed']}", "load": common.load()}
        fits.append({"n": n, **row})
    return {"fits": fits, "ended": "", "load": common.load()}


def forecast(fits: list[common.Record], n: int) -> float:
    """Return the predicted CPU seconds for n objects; growth that is not yet known counts as linear."""
    if not fits:
        return 0.0
    power = exponent(fits[-2:], "cpu")
    return fits[-1]["cpu"] * (n / fits[-1]["n"]) ** max(1.0, power or 0.0)


def exponent(fits: list[common.Record], quantity: str) -> float | None:
    """Return the power of N with which the cost grows, computed from fits whose cost is large enough."""
    points = [(math.log(fit["n"]), math.log(fit[quantity])) for fit in fits if fit[quantity] >= TELLING[quantity]]
    return float(np.polyfit(*zip(*points, strict=True), 1)[0]) if len(points) > 1 else None


# --- what is measured -------------------------------------------------------------------------------------------------


def fit(labels: np.ndarray, method: str, seed: int) -> common.Record:
    import gpuens as ge
    from gpuens.runtime import record
    from gpuens.workflows.compare import default_estimator

    warnings.simplefilter("ignore")
    ensemble = ge.Ensemble(labels)
    estimator = default_estimator(method, None if method == "best-of-k" else N_CLASSES, seed, "cpu")
    features = np.random.default_rng(seed).standard_normal((len(labels), 4)).astype(np.float32)
    data, warm_up = ({"features": features[:n]} if estimator.parts().needs_features else {} for n in (len(labels), FEW))
    try:
        with threadpool_limits(1):
            # this fit imports packages
            clone(estimator).fit(ensemble.take(slice(0, FEW)), **warm_up)
            before = record.resident_memory()
            record.forget_peak_memory()
            fitted, seconds, cpu = common.timed(lambda: estimator.fit(ensemble, **data))
            memory = max(0, common.peak_memory() - before) + children()
            if cpu < AGAIN:
                seconds, cpu = min((seconds, cpu), common.timed(lambda: estimator.fit(ensemble, **data))[1:])
    except (ImportError, MemoryError, RuntimeError, ValueError) as error:
        return {"failed": str(error)}
    rows = len(fitted.reduction_.counts)
    return {"rows": rows, "seconds": seconds, "cpu": cpu, "memory": memory, "load": common.load()}


def children() -> int:
    """Return the largest resident size of a process that this one has started and waited for, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


# --- the page ---------------------------------------------------------------------------------------------------------


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    sizes = sorted({fit["n"] for row in rows.values() for fit in row["fits"]})
    groups = {fit["n"]: fit["rows"] for row in rows.values() for fit in row["fits"]}
    return {
        "noise": NOISE[name], "bounds": "{} … {}".format(*K_BOUNDS), "m": N_CLUSTERINGS, "k": N_CLASSES,
        "rows": [f"{groups[n]:,} of {n:,}" for n in sizes], "lists": {"size": {str(n): f"{n:,}" for n in sizes}},
    }  # fmt: skip


def lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in sorted(rows.items()):
        by_size = {str(fit["n"]): fit for fit in row["fits"]}
        powers = {f"power_{quantity}": exponent(row["fits"], quantity) for quantity in TELLING}
        yield {"key": name, "at": by_size, "ended": row["ended"], "load": row["load"], **powers}


def every_part(rows: common.Record) -> Iterator[report.Found]:
    n_largest = max(fit["n"] for row in rows.values() for fit in row["fits"])
    within, slower, ended = [], [], []
    for name, row in rows.items():
        last = row["fits"][-1] if row["fits"] else {"n": 0}
        if last["n"] < n_largest:
            ended.append(f"{name} ({last['n']:,})")
        else:
            (within if last["cpu"] <= GOAL else slower).append(f"{name} ({common.seconds(last['cpu'])} s)")
    yield "reached", {"n": n_largest, "goal": GOAL, "within": within, "slower": slower, "ended": ended}


def plot(record: common.Record, path: Path) -> None:
    from matplotlib.figure import Figure

    shapes = {name: report.scored(part) for name, part in record["parts"].items() if part["rows"]}
    figure = Figure(figsize=(7 * max(1, len(shapes)) + 2, 11), dpi=100, layout="constrained")
    axes = figure.subplots(2, max(1, len(shapes)), squeeze=False)
    names = sorted({name for rows in shapes.values() for name in rows})
    styles = {name: f"C{i % 10}" + ("o-", "s--", "^:", "d-.")[i // 10 % 4] for i, name in enumerate(names)}
    for column, (name, rows) in enumerate(shapes.items()):
        for ax, quantity, scale in zip(axes[:, column], TELLING, (1.0, 1e6), strict=True):
            for method, row in rows.items():
                n, values = [fit["n"] for fit in row["fits"]], [fit[quantity] / scale for fit in row["fits"]]
                ax.plot(n, values, styles[method], ms=4, lw=1)
            ax.set(xscale="log", yscale="log", xlabel="objects", title=f"{name} rows")
            ax.set_ylabel("CPU seconds" if quantity == "cpu" else "MB beside the labels")
            ax.grid(alpha=0.3)
    lines = [axes[0, -1].plot([], [], style, ms=4, lw=1)[0] for style in styles.values()]
    figure.legend(lines, styles, fontsize=7, loc="outside right center")
    figure.savefig(path)


if __name__ == "__main__":
    main()
