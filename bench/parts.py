"""Shared code of scripts that consist of parts: options, jobs, and continuation after a stop."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import common

Job: TypeAlias = tuple[str, Callable[[], common.Record]]  # the name of a row, and the function that computes it
SINGLE = {"GPUENS_THREADS": "1"}  # the environment of processes that run at the same time


class Part(NamedTuple):
    """``jobs`` is called with the options and the rows found so far. ``at_once`` jobs run at the same time."""

    jobs: Callable[[Any, common.Record], Iterable[Job]]
    at_once: int = 1


def parser(about: str | None, parts: Iterable[str], *, quick: str) -> argparse.ArgumentParser:
    """Return a parser of the options that all such scripts have."""
    options = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument(
        "--only", nargs="*", choices=list(parts), metavar="PART", help="which parts; none: the page again"
    )
    options.add_argument("--quick", action="store_true", help=quick)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--output", type=Path, help="JSON; Markdown and pictures go beside it (bench/results)")
    return options


def run(
    name: str,
    options: argparse.Namespace,
    parts: dict[str, Part],
    markdown: Callable[[common.Record], str],
    plot: Callable[[common.Record, Path], None] | None = None,
    *,
    packages: Iterable[str],
    setting: common.Record,
    said: Callable[[common.Record], str] = lambda row: "",
) -> common.Record:
    """Run the requested parts, write the record after each row, print the page of all parts, and return the record.

    A part goes on where it was stopped if machine, versions, commit and ``setting`` are the same; rows that failed or
    were skipped are tried again. ``said`` is told of each row.
    """
    if options.output is None and not options.quick:
        options.output = common.RESULTS / f"{name}.json"
    record = common.begin(options.output, {"bench": name, "seed": options.seed, "quick": options.quick})
    done = record.setdefault("parts", {})
    setting = json.loads(json.dumps(setting))  # as the record returns it, in which tuples are lists
    for wanted in parts if options.only is None else options.only:
        same = common.about(packages) | {"setting": setting}
        part = done.get(wanted, {})
        if {key: part.get(key) for key in same} != same:
            part = done[wanted] = {**same, "date": common.today(), "rows": {}}
        rows = part["rows"] = {key: row for key, row in part["rows"].items() if not {"failed", "skipped"} & row.keys()}
        record["parts"] = done = {key: done[key] for key in parts if key in done}
        for key, row in found(parts[wanted], options, rows):
            rows[key] = row
            words = row.get("failed") or said(row)
            say(f"    {wanted}: {key}{': ' if words else ''}{words}")
            common.save(options.output, record, markdown(record))
    record = common.rounded(record)
    print(markdown(record))
    if options.output:
        common.save(options.output, record, markdown(record))
        if plot:
            plot(record, options.output.with_suffix(".png"))
    return record


def found(part: Part, options: argparse.Namespace, rows: common.Record) -> Iterable[tuple[str, common.Record]]:
    """Yield the missing rows, each as soon as it is computed."""
    sets = getattr(options, "sets", None)
    todo = (
        (key, do)
        for key, do in part.jobs(options, rows)
        if key not in rows and (sets is None or key.split(", ")[0] in sets)
    )
    if part.at_once == 1:
        yield from ((key, do()) for key, do in todo)
    else:
        with ThreadPoolExecutor(part.at_once) as pool:
            yield from pool.map(lambda job: (job[0], job[1]()), todo)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
