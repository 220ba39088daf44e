"""The findings of the ECRMC experiments; every verdict is computed from the scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
from papers import printed_by
from report import Found, compared, scored

PRINTED = printed_by("ecrmc")
SCORES = ("NMI", "ARI", "AC")
OURS = "T 10 %"


def mean(row: common.Record, method: str, score: str) -> float:
    return float(np.mean(row["methods"][method][score]))


def shares(row: common.Record) -> list[str]:
    return [method for method in row["methods"] if method.startswith("T ")]


def sets(rows: common.Record) -> Iterator[Found]:
    for score in SCORES:
        first = [name for name, row in rows.items() if mean(row, OURS, score) >= mean(row, "LWGP", score)]
        found = compared(rows, OURS, "LWGP", score)
        yield "against LWGP", found | {"first_on": first, "n_first": len(first), "paper": PRINTED["said"][score]}
    for score in SCORES:
        yield "with coefficients", compared(rows, OURS, "without", score)
    for score in SCORES:
        spread = {name: np.ptp([mean(row, method, score) for method in shares(row)]) for name, row in rows.items()}
        worst = max(spread, key=lambda name: spread[name])
        average = np.mean(list(spread.values()))
        yield "over T", {"score": score, "average": average, "most": spread[worst], "worst": worst}


def rivals(rows: common.Record) -> Iterator[Found]:
    for score in SCORES:
        ranks, means = {}, {}
        for name, row in rows.items():
            means[name] = {method: mean(row, method, score) for method in row["methods"]}
            ranks[name] = sum(value > means[name]["ECRMC"] for value in means[name].values()) + 1
        first = [name for name, rank in ranks.items() if rank == 1]
        average = {method: np.mean([own[method] for own in means.values()]) for method in next(iter(means.values()))}
        yield "rivals", {
            "score": score, "first_on": first, "n_first": len(first), "n": len(rows),
            "rank": np.mean(list(ranks.values())), "paper": PRINTED["said"][score],
            "means": [f"{method} {average[method]:.3f}" for method in sorted(average, key=lambda one: -average[one])],
        }  # fmt: skip


def self(rows: common.Record) -> Iterator[Found]:
    found = [compared(rows, "itself", "others", score) for score in SCORES]
    each = (f"{f['score']} {f['difference']:+.4f} (p = {f['p']:.2f}; up {f['up']}, down {f['down']})" for f in found)
    yield "itself", {"each": "; ".join(each), "n": len(rows)}


def covtype(rows: common.Record) -> Iterator[Found]:
    for key, row in rows.items():
        if row["T"] is not None:
            yield "cost", {"key": key, "tenth": row["n_objects"] // (10 * row["k"]), **row}


def plot(record: common.Record, path: Path) -> None:
    from matplotlib.figure import Figure

    rows = scored(record["parts"].get("sets", {"rows": {}}))
    figure = Figure(figsize=(13, 7.5), dpi=110, layout="constrained")
    axes = figure.subplots(2, 3)
    for column, score in enumerate(SCORES):
        plot_methods(axes[0, column], rows, score)
        plot_shares(axes[1, column], rows, score)
    for ax in axes.ravel():
        ax.grid(alpha=0.3)
    figure.savefig(path)


def plot_methods(ax: Any, rows: common.Record, score: str) -> None:
    at = np.arange(len(rows))
    for i, (method, label) in enumerate({OURS: "ECRMC", "without": "without coefficients", "LWGP": "LWGP"}.items()):
        values = [row["methods"][method][score] for row in rows.values()]
        means, spread = ([f(v) for v in values] for f in (np.mean, np.std))
        ax.errorbar(at + 0.2 * (i - 1), means, spread, fmt=f"C{i}o", ms=4, label=label)
    ax.set_xticks(at, list(rows), rotation=60, ha="right", fontsize=8)
    ax.set_ylabel(f"{score} (mean, standard deviation)")
    ax.legend(fontsize=7)


def plot_shares(ax: Any, rows: common.Record, score: str) -> None:
    for i, (name, row) in enumerate(rows.items()):
        values = [mean(row, share, score) for share in shares(row)]
        percent = [int(share.split()[1]) for share in shares(row)]
        ax.plot(percent, values, f"C{i % 10}{'o-' if i < 10 else 's--'}", ms=3, label=name)
    ax.set(xlabel="T, percent of N / K", ylabel=score)
    if rows and score == SCORES[-1]:
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
