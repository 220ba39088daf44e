"""A comparison of the CPU's primitives with the ceilings of the machine, and the growth of their cost.

    python bench/limits.py [--primitives "nearest lists, w = 1" …] [--seed 0]
    python bench/limits.py --quick

ceilings    rates of one thread: copies, reads at random places, labels compared, counters, … (limits_ceilings.py)
primitives  each on labels of three numbers of rows (G) and of clusterings (M), the others being the largest; on the
            largest labels by all threads too (limits_primitives.py)

A primitive's share is the CPU seconds that the ceilings allow at least for what it has to do, over those that it took
with one thread. Both are the best of several calls of the same run, in processes of their own. Other work on the
machine is watched all the while, and said: shares bear some, seconds do not. Nothing is kept from an earlier run; with
--primitives the page is printed, and written only where --output says. Two minutes on two idle cores.
"""

import argparse
import datetime
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import limits_ceilings as ceilings
import numpy as np
import parts
import report
from limits_primitives import CASES, Call, Case, Labels
from parts import Job, Part

SHRUNK = (4, 2, 1)  # divisors of the largest size, which give the measured sizes
QUICK = 32  # divisor of the largest number of rows in a quick run
SECONDS, CALLS = 0.08, 3  # a measurement takes this many CPU seconds and calls, or more
FAR = 0.2  # share of a ceiling below which a primitive counts as far from it
SHORTEST = 0.2  # shortest measurement, in seconds, for which the load by other processes is known (clock of 100 Hz)
OTHERS = 0.25  # number of processors that other processes may use on average without a warning
PACKAGES = ("gpuens", "numpy", "scipy")


def main() -> None:
    parser = parts.parser(__doc__, ("ceilings", "primitives"), quick="a few hundred rows")
    parser.add_argument("--primitives", nargs="+", choices=list(CASES), metavar="PRIMITIVE", default=list(CASES))
    options = parser.parse_args()
    if options.only == ["primitives"]:  # results of primitives mean nothing without ceilings measured in the same hour
        options.only = ["ceilings", "primitives"]
    warn_of_load()
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as elsewhere:
        if options.output is None and options.primitives != list(CASES):
            options.output = Path(elsewhere) / "limits.json"
        parts.run(
            "limits", options,
            {"ceilings": Part(partial(of_machine, rates)), "primitives": Part(partial(of_library, rates))},
            report.Page("limits", sys.modules[__name__]).markdown, packages=PACKAGES,
            setting={"begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}, said=said,
        )  # fmt: skip


def warn_of_load() -> None:
    """Warn before the first measurement if other processes are at work."""
    before = Watch()
    time.sleep(1.0)
    busy = before.others()
    if busy is not None and busy > OTHERS:
        parts.say(f"    WARNING: other work takes {busy:.1f} processors: seconds will be too long, and shares may be")


def of_machine(rates: dict[str, float], options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    def measure(name: str) -> common.Record:
        row = common.forked(watched, ceilings.rate, name, options.quick, limit=60)
        if "failed" not in row:
            rates[name] = row["rate"]
        return row

    ceilings.loops()  # compiled here, once for all forks
    for name in ceilings.SAID:
        yield name, partial(measure, name)


def of_library(rates: dict[str, float], options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name in options.primitives:
        yield name, partial(measure, name, rates, options.quick, options.seed)


# --- what is measured -------------------------------------------------------------------------------------------------


class Watch:
    """The mean load by other processes since this object was made; it is known only on Linux."""

    def __init__(self) -> None:
        self.seconds, self.own, self.busy = time.perf_counter(), sum(os.times()[:4]), busy()

    def others(self) -> float | None:
        """Return the mean number of processors that other processes have used."""
        now, seconds = busy(), time.perf_counter() - self.seconds
        if self.busy is None or now is None or seconds < SHORTEST:
            return None
        own_seconds = sum(os.times()[:4]) - self.own
        return max(0.0, now - self.busy - own_seconds) / seconds


def busy() -> float | None:
    """Return the seconds for which all processors have worked since the machine started."""
    try:
        user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    except (OSError, ValueError):
        return None
    return float((user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"))


def watched(task: Callable[..., common.Record], *given: Any) -> common.Record:
    """Run a task; return its result, and the load by other processes during the task."""
    watch = Watch()
    result = task(*given)
    return result | {"others": watch.others(), "load": common.load()}


def measure(name: str, rates: dict[str, float], quick: bool, seed: int) -> common.Record:
    row = common.forked(watched, grown, name, quick, seed, limit=120)
    if "failed" in row:
        return row
    needed = {resource: amount / rates[resource] for resource, amount in row["needed"].items()}
    ceiling = max(needed, key=needed.__getitem__)
    cpu = row["points"][-1]["cpu"]
    return row | {"least": needed[ceiling], "ceiling": ceiling, "share": needed[ceiling] / cpu}


def grown(name: str, quick: bool, seed: int) -> common.Record:
    """Return the seconds of a primitive by size, the largest size last, and the least work at the largest size."""
    from gpuens.runtime import device as devices

    all_of_them, case = devices.n_threads(), CASES[name]
    if quick:
        case = case._replace(n_rows=max(512, case.n_rows // QUICK), n_clusterings=16)
    points = []
    use(1)
    for g, m in sizes_of(case):
        call = case.of(Labels(case, g, m, seed))
        result, seconds, cpu = best(call, quick)
        points.append({"G": g, "M": m, "seconds": seconds, "cpu": cpu})
    use(all_of_them)
    _, seconds, cpu = best(call, quick)
    together = {"threads": all_of_them, "seconds": seconds, "cpu": cpu}
    return {
        "points": points, "needed": call.need(result), "together": together,
        "power_G": power(points, "G") if case.by_rows else None,
        "power_M": power(points, "M") if case.by_clusterings else None,
    }  # fmt: skip


def use(threads: int) -> None:
    from threadpoolctl import threadpool_limits

    os.environ["GPUENS_THREADS"] = str(threads)
    threadpool_limits(threads, user_api="blas")


def sizes_of(case: Case) -> list[tuple[int, int]]:
    """Return sizes (G, M): first sizes with fewer rows, then with fewer clusterings, and last the largest size."""
    largest, sizes = (case.n_rows, case.n_clusterings), []
    if case.by_rows:
        sizes += [(case.n_rows // factor, case.n_clusterings) for factor in SHRUNK[:-1]]
    if case.by_clusterings:
        sizes += [(case.n_rows, case.n_clusterings // factor) for factor in SHRUNK[:-1]]
    return [*sizes, largest]


def best(call: Call, quick: bool) -> tuple[Any, float, float]:
    """Call once to load packages. Then return the result of a call, and its fewest seconds and CPU seconds."""
    call.do(*call.fresh())
    seconds: list[float] = []
    cpu: list[float] = []
    while len(cpu) < CALLS or (not quick and sum(cpu) < SECONDS and len(cpu) < 1000):
        result, *times = timed(call.do, call.fresh())
        seconds.append(times[0])
        cpu.append(times[1])
    return result, min(seconds), max(min(cpu), 1e-9)


def timed(do: Callable[..., Any], arguments: Iterable[Any]) -> tuple[Any, float, float]:
    start, start_cpu = time.perf_counter(), time.process_time()
    result = do(*arguments)
    return result, time.perf_counter() - start, time.process_time() - start_cpu


def power(points: list[common.Record], of: str) -> float:
    """Return the power of a size with which CPU seconds grow, while the other size has its largest value."""
    last, other_size = points[-1], "M" if of == "G" else "G"
    along = [(math.log(point[of]), math.log(point["cpu"])) for point in points if point[other_size] == last[other_size]]
    return float(np.polyfit(*zip(*along, strict=True), 1)[0])


# --- the page ---------------------------------------------------------------------------------------------------------


def said(row: common.Record) -> str:
    load = "" if (row["others"] or 0) <= OTHERS else f"; other work took {row['others']:.1f} processors"
    if "rate" in row:
        return f"{row['rate']:.3g} a second{load}"
    return f"{row['share']:.0%} of {row['ceiling']}, {1e3 * row['points'][-1]['cpu']:.1f} ms of CPU{load}"


def page_values(record: common.Record) -> common.Record:
    rows = {name: row for part in record["parts"].values() for name, row in report.scored(part).items()}
    load_of = {name: row["others"] for name, row in rows.items() if row["others"] is not None}
    if not load_of:
        return {"said_of_load": "Nobody knows what else the machine did."}
    mean, disturbed = float(np.mean(list(load_of.values()))), [name for name in load_of if load_of[name] > OTHERS]
    words = f"Other work took {mean:.2f} processors on average while this was measured: "
    words += "acceptable." if mean <= OTHERS else "**the machine was loaded, do not keep these figures.**"
    if disturbed:
        words += f" It took more than {OTHERS} during: {', '.join(disturbed)}."
    return {"said_of_load": words}


def ceilings_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        unit, meaning = ceilings.SAID[name]
        ways = " and ".join(f"{way / 1e9:.3g}" for way in row["ways"])
        yield {"key": name, "what": meaning, "unit": unit, "giga": ways, "others": row["others"]}


def primitives(rows: common.Record) -> Iterator[report.Found]:
    far_from_limit = [f"{name} ({row['share']:.0%})" for name, row in rows.items() if row["share"] < FAR]
    yield "far", {"far": far_from_limit, "share": FAR, "near": len(rows) - len(far_from_limit), "n": len(rows)}


def primitives_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        last = row["points"][-1]
        single, together = (
            {clock: 1e3 * times[clock] for clock in ("cpu", "seconds")} for times in (last, row["together"])
        )
        yield {
            "key": name, **row, "size": f"{last['G']:,} × {last['M']}", "alone": single, "together": together,
            "at_least": 1e3 * row["least"], "threads": row["together"]["threads"],
        }  # fmt: skip


if __name__ == "__main__":
    main()
