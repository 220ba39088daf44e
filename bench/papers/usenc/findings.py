"""The findings of the U-SENC experiments; every verdict is computed from the scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
from papers import printed_by
from report import Found, scored

PRINTED = printed_by("usenc")


def sets(rows: common.Record) -> Iterator[Found]:
    for name, row in rows.items():
        if name not in PRINTED["sets"]:
            continue
        theirs = PRINTED["sets"][name]
        values, members = (100 * np.array(row["methods"][method]["NMI"]) for method in ("HBGF", "members"))
        seconds = np.mean(row["seconds"]["generation"]) + np.mean(row["seconds"]["HBGF"])
        yield "against the paper", {
            "name": name, "mean": values.mean(), "std": values.std(ddof=1), "paper": theirs["NMI"],
            "met": bool(values.mean() >= theirs["NMI"] - values.std(ddof=1)), "members": members.mean(),
            "lwgp": 100 * np.mean(row["methods"]["LWGP"]["NMI"]), "seconds": seconds,
            "their_seconds": theirs["seconds"],
        }  # fmt: skip


def growth(rows: common.Record) -> Iterator[Found]:
    by_name: dict[str, list] = {}
    for row in rows.values():
        by_name.setdefault(row["name"], []).append((row["n_objects"], row["seconds"]["generation"]))
    for name, found in by_name.items():
        if len(found) > 1:
            (low, fast), (high, slow) = min(found), max(found)
            yield "exponent", {
                "name": name, "low": low, "high": high, "exponent": float(np.log(slow / fast) / np.log(high / low)),
            }  # fmt: skip


def plot(record: common.Record, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_scores(left, scored(record["parts"].get("sets", {"rows": {}})))
    plot_growth(right, record["parts"].get("growth", {"rows": {}})["rows"])
    for ax in (left, right):
        ax.grid(alpha=0.3)
    figure.savefig(path)


def plot_scores(ax: Any, rows: common.Record) -> None:
    at = np.arange(len(rows))
    for i, method in enumerate(("members", "one clustering", "HBGF")):
        values = [row["methods"][method]["NMI"] for row in rows.values()]
        means, spread = ([f(own) for own in values] for f in (np.mean, np.std))
        ax.errorbar(at + 0.2 * (i - 1), means, spread, fmt=f"C{i}o", ms=4, label=method)
    printed = [PRINTED["sets"].get(name, {}).get("NMI", np.nan) / 100 for name in rows]
    ax.plot(at, printed, "k_", ms=16, label="U-SENC, printed")
    ax.set_xticks(at, list(rows))
    ax.set_ylabel("NMI (mean, standard deviation)")
    ax.legend(fontsize=7)


def plot_growth(ax: Any, rows: common.Record) -> None:
    names: dict[str, list] = {}
    for row in rows.values():
        if "failed" not in row:
            names.setdefault(row["name"], []).append((row["n_objects"], row["seconds"]["generation"]))
    for name, found in names.items():
        ax.loglog(*zip(*sorted(found), strict=True), "o-", ms=4, label=name)
    ax.set(xlabel="objects", ylabel="seconds of generation")
    if names:
        ax.legend(fontsize=7)
