"""The findings of the SCEC experiments; every verdict is computed from the scores."""

from collections.abc import Iterator
from pathlib import Path

import common
import numpy as np
from papers import printed_by
from report import LEVEL, Found, scored

PRINTED = printed_by("scec")
NEAR = 0.03  # largest difference of NMI at which a mean of 20 runs counts as equal to the paper's
SECONDS = 30.0  # target in seconds for Covertype

# --- tables 2-10 and 11 -----------------------------------------------------------------------------------------------


def situations(rows: common.Record) -> list[common.Record]:
    """Return each (data set, kind, r, k) with our means and the paper's."""
    cases = []
    for key, row in rows.items():
        name, kind = key.split(", ")
        for setting, cell in row["cells"].items():
            r, k = setting.split(", ")
            case = {score: float(np.mean(cell[score])) for score in ("SCEC", "BL", "clusters", "iterations", "seconds")}
            case |= {"name": name, "kind": kind, "r": int(r), "k": int(k), "gain": case["SCEC"] - case["BL"]}
            if name in PRINTED["tables"]:
                printed, base = PRINTED["tables"][name][kind][r][PRINTED["clusters"][name].index(int(k))]
                case |= {"theirs": printed, "their_BL": base, "their_gain": printed - base}
                case["table"] = PRINTED["first"][name] + PRINTED["kinds"].index(kind)
            cases.append(case)
    return cases


def mean(cases: list[common.Record], *names: str) -> list[float]:
    return [float(np.mean([case[name] for case in cases])) for name in names]


def t_test(cases: list[common.Record]) -> float:
    """Return p of the one-sided paired t-test of whether SCEC is better on average than its base learner."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp([case["gain"] for case in cases], 0, alternative="greater").pvalue)


def by(cases: list[common.Record], name: str) -> Iterator[tuple[str, list[common.Record]]]:
    for value in dict.fromkeys(case[name] for case in cases):
        yield value, [case for case in cases if case[name] == value]


def tables_values(rows: common.Record, record: common.Record) -> common.Record:
    return {"runs": max(row["runs"] for row in rows.values())}


def tables(rows: common.Record) -> Iterator[Found]:
    cases = situations(rows)
    n_better, p, (scec, base) = sum(case["gain"] > 0 for case in cases), t_test(cases), mean(cases, "SCEC", "BL")
    verdict = "is" if p < LEVEL else "is not"
    yield "all", {"up": n_better, "n": len(cases), "SCEC": scec, "BL": base, "p": p, "verdict": verdict}
    printed = [case for case in cases if "theirs" in case]
    for name, group in by(printed, "name"):
        scec, base, their_scec, their_base, gain, their_gain = mean(
            group, "SCEC", "BL", "theirs", "their_BL", "gain", "their_gain"
        )
        letters = " (other letters than the paper's, which it does not name)" if name == "ISOLET6" else ""
        yield "set", {
            "name": name, "n": len(group), "near": sum(abs(case["SCEC"] - case["theirs"]) <= NEAR for case in group),
            "near_by": NEAR, "gap": scec - their_scec, "base": base - their_base, "letters": letters, "gain": gain,
            "theirs": their_gain,
        }  # fmt: skip
    for kind, group in by(cases, "kind"):
        yield "kind", {"kind": kind, "gain": mean(group, "gain")[0], "p": t_test(group)}
    worst = sorted(printed, key=lambda case: case["SCEC"] - case["theirs"])[:3]
    cells = [f"{x['name']} {x['kind']} r={x['r']} k={x['k']} {x['SCEC'] - x['theirs']:+.3f}" for x in worst]
    if cells:
        yield "worst", {"cells": cells}
    yield "fewer", {"fewer": sum(case["clusters"] < case["k"] - 0.5 for case in cases), "n": len(cases)}


# --- defaults ---------------------------------------------------------------------------------------------------------


def defaults_lines(rows: common.Record) -> list[common.Record]:
    """Return each value of each parameter: mean scores, and the NMI of each kind of ensembles."""
    lines = []
    for trials in zip(*(row["rows"] for row in rows.values()), strict=True):
        nmi, clusters, iterations = mean(list(trials), "nmi", "clusters", "iterations")
        value, default = trials[0]["value"], trials[0].get("default", False)
        nmi_of_kinds = {key: trial["nmi"] for key, trial in zip(rows, trials, strict=True)}
        lines.append({
            "parameter": trials[0]["parameter"], "value": value, "default": default, "each": nmi_of_kinds, "nmi": nmi,
            "clusters": clusters, "iterations": iterations, "shown": f"**{value}**" if default else str(value),
        })  # fmt: skip
    return lines


def defaults_values(rows: common.Record, record: common.Record) -> common.Record:
    runs = [f"{key.split(',')[0]} {row['runs']}" for key, row in rows.items() if key.endswith("RI")]
    return {"runs": runs, "lists": {"situation": list(rows)}}


def defaults(rows: common.Record) -> Iterator[Found]:
    for parameter, values in by(defaults_lines(rows), "parameter"):
        best, worst = (extreme(values, key=lambda line: line["nmi"]) for extreme in (max, min))
        default = next((line for line in values if line["default"]), best)
        yield "tried", {
            "parameter": parameter, "default": default["value"], "nmi": default["nmi"], "best": best["value"],
            "best_nmi": best["nmi"], "worst": worst["nmi"],
        }  # fmt: skip


# --- Covertype --------------------------------------------------------------------------------------------------------


def covtype(rows: common.Record) -> Iterator[Found]:
    row = rows["covtype"]["SCEC"]
    if "failed" in row:
        yield "failed", row
    else:
        yield "cost", row | {"target": SECONDS, "met": row["first"] <= SECONDS}


def covtype_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows["covtype"].items():
        if isinstance(row, dict) and "first" in row:
            yield {"key": name, **row}


# --- the picture ------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    """Draw our means beside the paper's, and the NMI of each alpha."""
    from matplotlib.figure import Figure

    from gpuens.plotting.drawing import INK, MARK, SHADE

    figure = Figure(figsize=(10, 4.2), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    tables, defaults = (scored(record["parts"].get(part, {"rows": {}})) for part in ("tables", "defaults"))
    for (name, cases), color in zip(by(situations(tables), "name"), (INK, MARK, SHADE), strict=False):
        left.scatter([case["BL"] for case in cases], [case["SCEC"] for case in cases], 14, color, label=name)
    left.plot([0.4, 0.95], [0.4, 0.95], color="0.6", linewidth=0.8, linestyle="--")
    left.set(xlabel="NMI of the base learner", ylabel="NMI of SCEC", title="Every situation of Tables 2-10")
    values = [case for case in defaults_lines(defaults) if case["parameter"] == "alpha"]
    places = np.arange(len(values))
    right.plot(places, [case["nmi"] for case in values], "o-", color=INK, label="mean NMI")
    right.plot(places, [case["clusters"] for case in values], "s--", color=MARK, label="share of the clusters found")
    right.set_xticks(places, [f"{case['value']:g}" for case in values])
    right.set(xlabel="α, times N / k_h", title="What the column-sparseness term does")
    for ax in (left, right):
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
