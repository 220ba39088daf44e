"""Checks of a program of the Makefile, run one after the other."""

import time
from collections.abc import Callable


def in_turn(checks: dict[str, Callable[[], tuple[bool, str]]], names: list[str]) -> int:
    """Run the named checks, or all; print a line for each, and all lines at the end. Return the exit status.

    A check returns whether it passes, and what it found.
    """
    if unknown := set(names) - checks.keys():
        print(f"checks are {', '.join(checks)}, not {', '.join(sorted(unknown))}.")
        return 2
    all_passed, summaries = True, []
    for name in names or checks:
        start = time.perf_counter()
        passed, said = checks[name]()
        all_passed &= passed
        summaries.append(f"{name}: {'passed' if passed else 'FAILED'} in {time.perf_counter() - start:.0f} s: {said}")
        print(summaries[-1], flush=True)
    print("", *summaries, sep="\n")
    return 0 if all_passed else 1
