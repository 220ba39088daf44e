"""What the script about chunks found, in tables, words and a picture. Every verdict is computed from the figures."""

from itertools import pairwise
from pathlib import Path

import common
import numpy as np

MEMORY = 8e9  # target for ten million objects
PHASES = ("start", "chunks", "numbering", "merge", "counts", "method", "labels")
TITLES = {
    "same": "The same labels",
    "scaling": "Cost against the number of objects",
    "ten": "Ten million objects",
    "hundred": "A hundred million objects",
    "pieces": "Rows that do not fit one process",
}


def markdown(record: common.Record) -> str:
    parts = record["parts"]
    lines = [f"# Labels in chunks{' (a quick run on few objects)' if record['quick'] else ''}\n"]
    lines.append(
        "Label files (uint8, `.npy`, just written and so most likely in the system's cache) are read in chunks of rows "
        "and consensus labels are written to another, as `gpuens run --scheduler` does. Objects are points of a "
        "mixture of 8 Gaussians; ARI is the agreement with its components. Seconds are those of a first call in a "
        "fresh process; *start*, that of the worker processes, is not part of their sum. Then the *chunks* are reduced "
        "to core groups, clusters get their *numbering*, core groups *merge*, come here and are worked on by the "
        "*method*, and *labels* are looked up chunk by chunk and written. *Peak* is that of the resident memory of all "
        "processes together, looked at every tenth of a second; what they share counts several times."
    )
    for name, part in parts.items():
        lines.append(f"\n## {TITLES[name]}\n\n{part['date']}; {common.machine_line(part)}\n")
        lines += [f"{key} failed: {row['failed']}\n" for key, row in part["rows"].items() if "failed" in row]
        if rows := {key: row for key, row in part["rows"].items() if "failed" not in row}:
            lines.append(same(rows) if name == "same" else table(name, rows))
        if name == "scaling":
            lines.append(slopes(parts))
        if name == "pieces":
            lines.append(in_pieces(rows))
        if name == "ten" and rows and not record["quick"]:
            peak = max(row["peak"] for row in rows.values())
            lines.append(f"\nAt most {common.size(MEMORY)} for all processes: {common.held(peak <= MEMORY)}.")
    return "\n".join(lines)


def table(name: str, rows: common.Record) -> str:
    phases = [phase for phase in PHASES if any(phase in row["phases"] for row in rows.values())]
    header = ["what", "N × M", "chunks", "core groups", "rows", *phases, "sum", "peak", "ARI", "load"]
    lines = []
    for key, row in rows.items():
        cells = ["LWGP" if name == "scaling" else key, f"{row['n_objects']:,} × {row['n_clusterings']}"]
        cells += [f"{row[size]:,}" if size in row else "–" for size in ("n_chunks", "groups", "rows")]
        cells += [common.seconds(row["phases"].get(phase)) for phase in phases]
        cells += [common.seconds(row["seconds"]), common.size(row["peak"])]
        lines.append([*cells, common.number(row.get("ari")), common.number(row["load"], 1)])
    return common.table(header, lines)


def same(rows: common.Record) -> str:
    lines = []
    for key, row in rows.items():
        equal = "–" if "same" not in row else "yes" if row["same"] else "**no**"
        killed = {True: "yes", False: "**too late**", None: "–"}[row.get("killed")]
        cells = [*key.split(": "), f"{row['n_chunks']}" if "n_chunks" in row else "–", killed, equal]
        cells += [common.seconds(row["seconds"]), common.size(row["peak"]), common.number(row["ari"])]
        lines.append([*cells, common.number(row["load"], 1)])
    compared = [row for row in rows.values() if "same" in row]
    equal_ones = sum(row["same"] for row in compared)
    n_objects = next(iter(rows.values()))["n_objects"]
    header = ["method", "how", "chunks", "worker killed", "labels of one piece", "seconds", "peak", "ARI", "load"]
    return (
        f"{n_objects:,} objects × 10. Of {len(compared)} label files, {equal_ones} are bit for bit those of one "
        "piece.\n\n" + common.table(header, lines)
    )


def in_pieces(rows: common.Record) -> str:
    """Say whether the number of workers changes labels."""
    digests: dict[str, set[str]] = {}
    for key, row in rows.items():
        method, _, how = key.partition(", ")
        if how != "together":
            digests.setdefault(method, set()).add(row["digest"])
    said = [f"{method}: {'equal' if len(found) == 1 else '**not equal**'}" for method, found in digests.items()]
    return (
        "\nWhere rows stay in pieces, core groups are those of single chunks (*rows*), and *method* is all passes over "
        f"them. Labels by one worker and by two: {', '.join(said)}."
    )


def sizes(parts: common.Record) -> list[common.Record]:
    """Return the runs of LWGP on ten clusterings, by number of objects."""
    rows = list(parts.get("scaling", {"rows": {}})["rows"].values())
    rows += [row for key, row in parts.get("hundred", {"rows": {}})["rows"].items() if key == "LWGP"]
    return sorted((row for row in rows if "failed" not in row), key=lambda row: row["n_objects"])


def slopes(parts: common.Record) -> str:
    rows = sizes(parts)
    if len(rows) < 2:
        return ""
    steps = [
        f"{np.log(b['seconds'] / a['seconds']) / np.log(b['n_objects'] / a['n_objects']):.2f} from "
        f"{a['n_objects']:,} to {b['n_objects']:,}"
        for a, b in pairwise(rows)
    ]
    return f"\nSlopes of log seconds over log N: {', '.join(steps)}."


def plot(record: common.Record, path: Path) -> None:
    """Draw seconds, memory and core groups against N."""
    rows = sizes(record["parts"])
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
    seconds.set_ylabel("seconds")
    seconds.legend(fontsize=7)
    memory.loglog(n, [row["peak"] / 1e9 for row in rows], "ko-", label="all processes")
    memory.loglog(n, [row["n_objects"] * row["n_clusterings"] / 1e9 for row in rows], "k:", label="label file")
    memory.set_ylabel("GB")
    memory.legend(fontsize=7)
    groups.loglog(n, [row["groups"] for row in rows], "ko-")
    groups.set_ylabel("core groups")
    for ax in (seconds, memory, groups):
        ax.set_xlabel("N")
    figure.suptitle("LWGP on 10 clusterings, read in chunks from a file", fontsize=10)
    figure.savefig(path)
