"""The findings of chunks.py; every verdict is computed from the measured numbers."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import common
import numpy as np
from report import scored

MEMORY = 8e9  # target of the peak memory in bytes for ten million objects
PHASES = ("start", "chunks", "numbering", "merge", "counts", "method", "labels")


def phases(rows: common.Record, record: common.Record) -> common.Record:
    """Return all phases that occur in the rows."""
    return {"lists": {"phase": [phase for phase in PHASES if any(phase in row["phases"] for row in rows.values())]}}


hundred_values = phases


def same_lines(rows: common.Record) -> Iterator[common.Record]:
    for key, row in rows.items():
        method, how = key.split(": ")
        was_killed = {True: "yes", False: "**too late**"}.get(row.get("killed"))
        yield {"method": method, "how": how, "was_killed": was_killed, **row}


def same_values(rows: common.Record, record: common.Record) -> common.Record:
    compared = [row["same"] for row in rows.values() if "same" in row]
    return {"n_objects": next(iter(rows.values()))["n_objects"], "compared": len(compared), "equal": sum(compared)}


def sizes(record: common.Record) -> list[common.Record]:
    """Return the runs of LWGP on ten clusterings, by number of objects."""
    scaling, hundred = (scored(record["parts"].get(part, {"rows": {}})) for part in ("scaling", "hundred"))
    rows = [*scaling.values(), *(row for key, row in hundred.items() if key == "LWGP")]
    return sorted(rows, key=lambda row: row["n_objects"])


def scaling_values(rows: common.Record, record: common.Record) -> common.Record:
    steps = [
        f"{np.log(b['seconds'] / a['seconds']) / np.log(b['n_objects'] / a['n_objects']):.2f} from "
        f"{a['n_objects']:,} to {b['n_objects']:,}"
        for a, b in pairwise(sizes(record))
    ]
    slopes = f"Slopes of log seconds over log N: {', '.join(steps)}." if steps else ""
    return {"slopes": slopes, **phases(rows, record)}


def ten_values(rows: common.Record, record: common.Record) -> common.Record:
    kept = max(row["peak"] for row in rows.values()) <= MEMORY
    target = f"At most {common.size(MEMORY)} for all processes: {common.held(kept)}."
    return {"target": "" if record["quick"] else target, **phases(rows, record)}


def pieces_values(rows: common.Record, record: common.Record) -> common.Record:
    """Say whether the number of workers changes labels."""
    digests: dict[str, set[str]] = {}
    for key, row in rows.items():
        method, _, how = key.partition(", ")
        if how != "together":
            digests.setdefault(method, set()).add(row["digest"])
    said = [f"{method}: {'equal' if len(found) == 1 else '**not equal**'}" for method, found in digests.items()]
    return {"said": said, **phases(rows, record)}


def plot(record: common.Record, path: Path) -> None:
    """Draw seconds, memory and core groups against N."""
    rows = sizes(record)
    if not rows:
        return
    from matplotlib.figure import Figure

    n = [row["n_objects"] for row in rows]
    figure = Figure(figsize=(10, 3.4), dpi=110, layout="constrained")
    seconds, memory, groups = figure.subplots(1, 3)
    for phase in ("chunks", "merge", "method", "labels"):
        seconds.loglog(n, [row["phases"].get(phase, np.nan) for row in rows], ".-", lw=0.8, label=phase)
    seconds.loglog(n, [row["seconds"] for row in rows], "ko-", label="sum")
    seconds.loglog(n, rows[-1]["seconds"] * np.array(n) / n[-1], "k:", label="slope 1")
    memory.loglog(n, [row["peak"] / 1e9 for row in rows], "ko-", label="all processes")
    memory.loglog(n, [row["n_objects"] * row["n_clusterings"] / 1e9 for row in rows], "k:", label="label file")
    groups.loglog(n, [row["groups"] for row in rows], "ko-")
    for ax, label in ((seconds, "seconds"), (memory, "GB"), (groups, "core groups")):
        ax.set(xlabel="N", ylabel=label)
        if ax is not groups:
            ax.legend(fontsize=7)
    figure.suptitle("LWGP on 10 clusterings, read in chunks from a file", fontsize=10)
    figure.savefig(path)
