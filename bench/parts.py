"""What scripts that are made of parts share: their options, going on where one was stopped, a page and a picture."""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import common

LOAD = "Load is that of the machine in the minute before: above its number of threads, seconds are upper bounds."

Found: TypeAlias = Callable[[str, common.Record], None]
Parts: TypeAlias = dict[str, Callable[..., None]]  # (…, rows, found): find what is not in rows yet


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
    parts: Parts,
    given: tuple,
    report: Any,
    *,
    packages: Iterable[str],
    setting: common.Record,
    said: Callable[[common.Record], str] = lambda row: "",
) -> None:
    """Go through the wanted parts, write after each row, and print the page that ``report`` makes of all.

    A part goes on where it was stopped if machine, versions, commit and ``setting`` are the same; rows that failed are
    tried again. ``report`` has ``markdown(record)`` and ``plot(record, path)``; ``said`` is told of each row.
    """
    if options.output is None and not options.quick:
        options.output = common.RESULTS / f"{name}.json"
    output = options.output
    record = common.begin(output, {"bench": name, "seed": options.seed, "quick": options.quick})
    done = record.setdefault("parts", {})
    for wanted in parts if options.only is None else options.only:
        same = common.about(packages) | {"setting": setting}
        part = done.get(wanted, {})
        if {key: part.get(key) for key in same} != same:
            part = done[wanted] = {**same, "date": common.today(), "rows": {}}
        part["rows"] = {key: row for key, row in part["rows"].items() if "failed" not in row}

        def found(key: str, row: common.Record, wanted: str = wanted, part: common.Record = part) -> None:
            part["rows"][key] = row
            words = row.get("failed") or said(row)
            print(f"    {wanted}: {key}{': ' if words else ''}{words}", file=sys.stderr, flush=True)
            common.save(output, record, report.markdown(record))

        parts[wanted](*given, part["rows"], found)
        record["parts"] = done = {key: done[key] for key in parts if key in done}
    record = common.rounded(record)
    print(report.markdown(record))
    if output:
        common.save(output, record, report.markdown(record))
        report.plot(record, output.with_suffix(".png"))


# --- the page ---------------------------------------------------------------------------------------------------------


def page(
    title: str,
    record: common.Record,
    sections: dict[str, Callable[[common.Record], str]],
    sentences: dict[str, Callable[[common.Record], list[str]]],
    remark: str = "",
) -> str:
    """Return the page of a record: what each part found in sentences, and then its tables."""
    parts = {name: part for name, part in record["parts"].items() if part["rows"]}
    said = [f"- {sentence}" for name, part in parts.items() if scored(part) for sentence in sentences[name](part)]
    texts = [f"# {title}\n", "## What holds and what does not\n", *said, *([f"\n{remark}"] if remark else [])]
    return "\n".join(texts + [sections[name](part) for name, part in parts.items()])


def heading(title: str, part: common.Record) -> str:
    return f"\n## {title}\n\n{part['date']}; {common.machine_line(part)}\n"


def scored(part: common.Record) -> common.Record:
    """Return the rows that did not fail."""
    return {name: row for name, row in part["rows"].items() if "failed" not in row}


def failures(part: common.Record) -> list[str]:
    return [f"\n{name} failed: {row['failed']}" for name, row in part["rows"].items() if "failed" in row]
