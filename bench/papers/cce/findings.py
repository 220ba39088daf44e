"""The findings of the CCE experiments; every verdict is computed from the scores."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
from papers import printed_by
from report import LEVEL, Found, compared, p_value, scored

PRINTED = printed_by("cce")
SECONDS = 60.0  # target in seconds for a method on 581,012 objects
LEFT_OUT = 0.01  # share of objects outside the sample from which their labelling is compared
TOLERANCE = 1.5  # standard deviations over runs
SMALLER = PRINTED["sets"][:8]  # on which the paper compares object-based methods


def mean_of(row: common.Record, method: str, score: str) -> float | None:
    value = row["methods"][method][score]
    return None if value is None else float(np.mean(value))


def methods_of(rows: common.Record) -> list[str]:
    return list(next(iter(rows.values()))["methods"])


# --- small sets -------------------------------------------------------------------------------------------------------


def printed_gain(better: str, worse: str) -> dict[str, float | None]:
    return {
        score: float(np.mean(list(rows[better].values())) - np.mean(list(rows[worse].values())))
        for score, rows in PRINTED["VIII"].items()
    }


UNKNOWN: dict[str, float | None] = dict.fromkeys(("AC", "NMI", "CSI"))
# (better or equal method, other method, gains by score, data sets)
CLAIMS: list[tuple[str, str, dict[str, float | None], Sequence[str]]] = [
    *(("CgC", worse, UNKNOWN, PRINTED["sets"]) for worse in ("EM", "QMI", "PD", "normalised KCC")),
    ("OC-Ia", "CSPA", {"NMI": 0.0425, "CSI": 0.0676}, SMALLER),
    ("OC-Ia", "ROCK", {"NMI": None, "CSI": None}, SMALLER),
    ("OC-H", "ROCK", {"NMI": 0.208, "CSI": 0.301}, SMALLER),
    *(("OC-H", worse, {"NMI": None, "CSI": None}, SMALLER) for worse in ("CSPA", "LIMBO", "OC-Ia")),
    *(
        (better, worse, printed_gain(better, worse), PRINTED["sets"])
        for better in ("CrC-Ia", "CrC-C")
        for worse in ("MCLA", "HBGF", "LB-P", "LB-S")
    ),
    ("CrC-C", "CrC-Ia", printed_gain("CrC-C", "CrC-Ia"), PRINTED["sets"]),
]
CORRELATIONS = [  # figures 8 and 10: gains against consistency and quality of the base clusterings; the paper's r
    ("AC gain of CrC-C on CrC-Ia with the CSI of the base clusterings", "CSI", "CrC-C", "CrC-Ia", "AC", -0.96),
    ("NMI gain of CrC-C on CrC-Ia with that CSI", "CSI", "CrC-C", "CrC-Ia", "NMI", -0.89),
    ("AC gain of CgC on QMI with the mean AC of the base clusterings", "AC", "CgC", "QMI", "AC", -0.95),
]


def base_of(row: common.Record, score: str) -> float:
    return row["base"][score] if score == "CSI" else row["base"][score][1]


def judged(rows: common.Record) -> Iterator[common.Record]:
    for better, worse, differences, sets in CLAIMS:
        rows_of_sets = {name: rows[name] for name in sets if name in rows}
        for score, printed in differences.items() if rows_of_sets else ():
            yield compared(rows_of_sets, better, worse, score, single=score == "CSI") | {"theirs": printed}


def small(rows: common.Record) -> Iterator[Found]:
    pairs = list(judged(rows))
    by_verdict: dict[str, list[str]] = {"holds": [], "the reverse": [], "undecided": []}
    for pair in pairs:
        by_verdict[pair["verdict"]].append(
            f"{pair['better']} ≥ {pair['worse']} in {pair['score']} ({pair['difference']:+.3f}; {pair['up']} sets up, "
            f"{pair['down']} down; p = {pair['p']:.2f})"
        )
    holds, reverse, undecided = map(len, by_verdict.values())
    given = [pair for pair in pairs if pair["theirs"] is not None]
    within = sum(abs(pair["theirs"] - pair["difference"]) <= pair["reach"] for pair in given)
    counts = {"n": len(pairs), "holds": holds, "reverse": reverse, "undecided": undecided}
    yield "claims", counts | {"chance": LEVEL * len(pairs), "given": len(given), "within": within}
    for verdict in ("holds", "the reverse"):
        yield "verdict", {"verdict": verdict, "claims": "; ".join(by_verdict[verdict]) or "nothing"}
    yield from against_paper(rows)
    for score in ("AC", "NMI"):
        above = (
            f"{method} {sum(mean_of(row, method, score) >= base_of(row, score) for row in rows.values())}"
            for method in methods_of(rows)
        )
        yield "base", {"score": score, "n": len(rows), "above": list(above)}
    for what, of_base, better, worse, score, printed in CORRELATIONS:
        from scipy import stats

        base = [base_of(row, of_base) for row in rows.values()]
        gains = [mean_of(row, better, score) / mean_of(row, worse, score) - 1 for row in rows.values()]  # eq 25
        if len(rows) > 2 and np.ptp(base) and np.ptp(gains):
            r, p = stats.pearsonr(base, gains)
            yield "correlation", {"what": what, "r": r, "p": p, "paper": printed}


def against_paper(rows: common.Record) -> Iterator[Found]:
    """Return a sentence on how many means agree with Table VIII, in our standard deviations (the paper prints none)."""
    apart = [
        np.mean([abs(base_of(row, score) - PRINTED["VII"][score]["avg"][name]) for name, row in rows.items()])
        for score in ("AC", "NMI")
    ]
    yield "base apart", {"ac": apart[0], "nmi": apart[1]}
    for method in PRINTED["VIII"]["AC"]:
        within, beyond = [], []
        for score in ("AC", "NMI"):
            for name, row in rows.items():
                values, theirs = row["methods"][method][score], PRINTED["VIII"][score][method][name]
                off = np.mean(values) - theirs
                cell = f"{score} of {name} {off:+.3f}"
                (within if abs(off) <= TOLERANCE * np.std(values, ddof=1) else beyond).append(cell)
        yield "against the paper", {"method": method, "near": len(within), "n": len(within + beyond), "far": beyond}


def with_base(rows: common.Record, score: str) -> Iterator[common.Record]:
    for name, row in rows.items():
        yield {"key": name, "base_mean": base_of(row, score), **row}


def small_values(rows: common.Record, record: common.Record) -> common.Record:
    fewer = {method: sum(row["methods"][method]["fewer"] for row in rows.values()) for method in methods_of(rows)}
    return {"fewer": [f"{method} {n}" for method, n in fewer.items() if n]}


LIKE = {"webkb4": "D4", "reuters_r8": "D3", "ng20_w1000": "D2"}  # the paper's sets of the same collections

# --- documents --------------------------------------------------------------------------------------------------------


def documents(rows: common.Record) -> Iterator[Found]:
    for score in ("AC", "NMI"):
        base = np.mean([row["base"][score][1] for row in rows.values()])
        means = [f"{m} {np.mean([mean_of(row, m, score) for row in rows.values()]):.3f}" for m in methods_of(rows)]
        yield "means", {"score": score, "sets": list(rows), "base": base, "means": means}
    for better in ("OC-H", "CrC-C"):
        pairs = [compared(rows, better, "CgC", score) for score in ("AC", "NMI")]
        texts = [
            f"{pair['score']} {pair['difference']:+.3f}, {pair['verdict']} ({pair['up']} sets up, {pair['down']} down; "
            f"p = {pair['p']:.2f})"
            for pair in pairs
        ]
        yield "against", {"better": better, "found": texts}


def document_lines(rows: common.Record, score: str) -> Iterator[common.Record]:
    for name, row in rows.items():
        printed = {method: cells.get(LIKE.get(name, "")) for method, cells in PRINTED["IX"][score].items()}
        yield {"key": name, "like": LIKE.get(name), "printed": printed, **row}


def documents_values(rows: common.Record, record: common.Record) -> common.Record:
    return {"printed": [f"{m} {' '.join(map(str, seconds))}" for m, seconds in PRINTED["X"].items()]}


def scaling(rows: common.Record) -> Iterator[Found]:
    if len(rows) < 2:
        return
    numbers = [row["n_objects"] for row in rows.values()]
    ends = (min(rows, key=int), max(rows, key=int))
    for method in rows[ends[0]]["methods"]:
        seconds = [row["methods"][method]["seconds"] for row in rows.values()]
        start, end = (" and ".join(f"{mean_of(rows[key], method, s):.3f}" for s in ("AC", "NMI")) for key in ends)
        yield "grows", {
            "low": min(numbers), "high": max(numbers), "method": method, "start": start, "end": end,
            "exponent": np.polyfit(np.log(numbers), np.log(seconds), 1)[0],
        }  # fmt: skip


def each_method(rows: common.Record) -> Iterator[common.Record]:
    for row in rows.values():
        for method, result in row["methods"].items():
            yield {"method": method, "found": result, **row}


# --- large sets, samples, many rows -----------------------------------------------------------------------------------


FIVE = ("CgC", "OC-Ia", "OC-H", "CrC-Ia", "CrC-C")
ORDER = ("normalised KCC", "LB-P", "LIMBO")  # below the best of the five in Fig. 12, from the highest AC on


def large(rows: common.Record) -> Iterator[Found]:
    key = max(rows, key=lambda name: rows[name]["n_objects"])
    methods = scored({"rows": rows[key]["methods"]})
    slowest = max(methods, key=lambda method: methods[method]["first"])
    seconds, peak = methods[slowest]["first"], max(row["peak"] for row in methods.values())
    found = {"seconds": seconds, "target": SECONDS, "met": seconds <= SECONDS, "peak": peak}
    yield "slowest", {"key": key, "method": slowest, **found, **{n: rows[key][n] for n in ("n_objects", "groups")}}
    for name, row in rows.items():
        for method, failed in row["methods"].items():
            if "failed" in failed:
                yield "failed", {"key": name, "method": method, "why": failed["failed"]}
    best = {
        name: max((r["AC"], m) for m, r in row["methods"].items() if "AC" in r and m.split(",")[0] in FIVE)
        for name, row in rows.items()
    }
    each = (
        f"{name} {ac:.3f} ({method}; base {base_of(rows[name], 'AC'):.3f}, largest class {rows[name]['largest']:.3f})"
        for name, (ac, method) in best.items()
    )
    yield "best", {"each": "; ".join(each)}


def baselines_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        best = max(FIVE, key=lambda method: mean_of(row, method, "AC"))
        yield {"key": name, "best": best, **row}


def baselines(rows: common.Record) -> Iterator[Found]:
    """Say where the order of Fig. 12 holds."""
    holds, at_least = 0, dict.fromkeys(ORDER, 0)
    for row in baselines_lines(rows):
        best, *rest = (mean_of(row, method, "AC") for method in (row["best"], *ORDER))
        holds += sorted([best, *rest], reverse=True) == [best, *rest]
        for method, value in zip(ORDER, rest, strict=True):
            at_least[method] += best >= value
    yield "order", {"holds": holds, "n": len(rows), "at_least": [f"{name} {n}" for name, n in at_least.items()]}


def large_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        title = f"{name}, N = {row['n_objects']:,}, k = {row['k']}, largest class {row['largest']:.3f}"
        base = {score: " ".join(map(common.number, row["base"][score])) for score in ("AC", "NMI")}
        first = {"worked_on": f"{row['groups']:,}", "first": row["generated"]}
        yield {"title": title, "method": "base: max avg min", **base, **first}
        for method, result in row["methods"].items():
            scores = {score: common.number(result.get(score)) for score in base}
            worked_on = result.get("failed") or f"{result['rows']:,}"
            yield {"title": name, "method": method, **result, **scores, "worked_on": worked_on}


def samples(rows: common.Record) -> Iterator[common.Record]:
    return ({"key": name, **cell} for name, row in rows.items() for cell in row["cells"])


def sampling(rows: common.Record) -> Iterator[Found]:
    for score in ("AC", "NMI"):
        found: dict[str, list[float]] = {}
        for cell in samples(rows):
            if cell["others"] >= LEFT_OUT:
                difference = np.mean(cell["mean"][score]) - np.mean(cell["sum"][score])
                found.setdefault(cell["key"], []).append(difference)
        each = [
            f"{name} {np.mean(own):+.4f} (higher {sum(d > 0 for d in own)}, lower {sum(d < 0 for d in own)})"
            for name, own in found.items()
        ]
        means = [float(np.mean(own)) for own in found.values()]
        if means:
            yield "difference", {"score": score, "each": each, "mean": np.mean(means), "p": p_value(means)}


def groups(rows: common.Record) -> Iterator[Found]:
    for row in rows.values():
        n = row["groups"]
        for method in ("CrC-C", "OC-H"):
            result = row["methods"].get(method, {"failed": "not run"})
            cost = result.get("failed") or f"{result['first']:.0f} s and {common.size(result['peak'])}"
            yield "cost", {"method": method, "n": n, "cost": cost, "square": 8 * n * n}


def many_groups(rows: common.Record) -> Iterator[common.Record]:
    for key, row in rows.items():
        n = row["groups"]
        shared = {name: row[name] for name in ("n_clusterings", "n_clusters", "k")}
        shared |= {"key": key, "n": n, "square": 8 * n * n, "links": 4 * n * (n - 1)}
        for method, result in row["methods"].items():
            time = result.get("failed") or common.seconds(result["first"])
            yield {"method": method, "shown": time, **result, **shared}


# --- the picture ------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), dpi=110, layout="constrained")
    axes = figure.subplot_mosaic([["small", "small"], ["quality", "seconds"]])
    small, scaling = (scored(record["parts"].get(part, {"rows": {}})) for part in ("small", "scaling"))
    plot_small(axes["small"], small)
    plot_scaling(axes["quality"], axes["seconds"], scaling)
    for ax in axes.values():
        ax.grid(alpha=0.3)
        if ax.has_data():
            ax.legend(fontsize=7, ncols=2 if ax is axes["small"] else 1)
    figure.savefig(path)


def plot_small(ax: Any, rows: common.Record) -> None:
    grid = np.arange(len(rows))
    for i, method in enumerate(PRINTED["VIII"]["AC"]):
        x = grid + 0.13 * (i - 2.5)
        ours = [row["methods"][method]["AC"] for row in rows.values()]
        printed = [PRINTED["VIII"]["AC"][method].get(name, np.nan) for name in rows]
        ax.errorbar(x, [np.mean(v) for v in ours], [np.std(v) for v in ours], fmt=f"C{i}o", ms=4, label=method)
        ax.plot(x, printed, f"C{i}x", ms=6, label=f"{method}, the paper's")
    ax.plot(grid, [base_of(row, "AC") for row in rows.values()], "k_", ms=26, alpha=0.4, label="base clusterings, mean")
    ax.set_xticks(grid, list(rows))
    ax.set_ylabel("AC (mean, standard deviation over runs)")


def plot_scaling(quality: Any, seconds: Any, rows: common.Record) -> None:
    numbers = [row["n_objects"] for row in rows.values()]
    for i, method in enumerate(next(iter(rows.values()), {"methods": {}})["methods"]):
        for score, style in (("AC", "o-"), ("NMI", "s:")):
            values = [mean_of(row, method, score) for row in rows.values()]
            quality.plot(numbers, values, f"C{i}{style}", ms=4, label=f"{method}, {score}")
        took = [row["methods"][method]["seconds"] for row in rows.values()]
        seconds.loglog(numbers, took, f"C{i}o-", ms=4, label=method)
    quality.plot(numbers, [base_of(row, "AC") for row in rows.values()], "k--", label="base clusterings, AC")
    quality.set(xlabel="documents", ylim=(0, None))
    seconds.set(xlabel="documents", ylabel="seconds of a consensus")
