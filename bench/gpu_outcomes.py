"""What became of a case, in words: for the terminal, the tables and the exit status."""

import sys

import common


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def problem(found: common.Record) -> str | None:
    return found.get("failed") or found.get("skipped")


def in_a_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}"


def holds(row: common.Record) -> bool:
    """Return whether a row is no evidence against parity: what was left out says nothing."""
    return row.get("held", "skipped" in row)
