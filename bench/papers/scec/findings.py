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
    found = []
    for key, row in rows.items():
        name, kind = key.split(", ")
        for at, cell in row["cells"].items():
            r, k = at.split(", ")
            one = {score: float(np.mean(cell[score])) for score in ("SCEC", "BL", "clusters", "iterations", "seconds")}
            one |= {"name": name, "kind": kind, "r": int(r), "k": int(k), "gain": one["SCEC"] - one["BL"]}
            if name in PRINTED["tables"]:
                theirs, base = PRINTED["tables"][name][kind][r][PRINTED["clusters"][name].index(int(k))]
                one |= {"theirs": theirs, "their_BL": base, "their_gain": theirs - base}
                one["table"] = PRINTED["first"][name] + PRINTED["kinds"].index(kind)
            found.append(one)
    return found


def mean(found: list[common.Record], *names: str) -> list[float]:
    return [float(np.mean([one[name] for one in found])) for name in names]


def t_test(found: list[common.Record]) -> float:
    """Return p of the one-sided paired t-test of whether SCEC is better on average than its base learner."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp([one["gain"] for one in found], 0, alternative="greater").pvalue)


def by(found: list[common.Record], name: str) -> Iterator[tuple[str, list[common.Record]]]:
    for value in dict.fromkeys(one[name] for one in found):
        yield value, [one for one in found if one[name] == value]


def tables_values(rows: common.Record, record: common.Record) -> common.Record:
    return {"runs": max(row["runs"] for row in rows.values())}


def tables(rows: common.Record) -> Iterator[Found]:
    found = situations(rows)
    up, p, (scec, base) = sum(one["gain"] > 0 for one in found), t_test(found), mean(found, "SCEC", "BL")
    verdict = "is" if p < LEVEL else "is not"
    yield "all", {"up": up, "n": len(found), "SCEC": scec, "BL": base, "p": p, "verdict": verdict}
    printed = [one for one in found if "theirs" in one]
    for name, own in by(printed, "name"):
        scec, base, theirs, their_base, gain, their_gain = mean(
            own, "SCEC", "BL", "theirs", "their_BL", "gain", "their_gain"
        )
        letters = " (other letters than the paper's, which it does not name)" if name == "ISOLET6" else ""
        yield "set", {
            "name": name, "n": len(own), "near": sum(abs(one["SCEC"] - one["theirs"]) <= NEAR for one in own),
            "near_by": NEAR, "gap": scec - theirs, "base": base - their_base, "letters": letters, "gain": gain,
            "theirs": their_gain,
        }  # fmt: skip
    for kind, own in by(found, "kind"):
        yield "kind", {"kind": kind, "gain": mean(own, "gain")[0], "p": t_test(own)}
    worst = sorted(printed, key=lambda one: one["SCEC"] - one["theirs"])[:3]
    cells = [f"{x['name']} {x['kind']} r={x['r']} k={x['k']} {x['SCEC'] - x['theirs']:+.3f}" for x in worst]
    if cells:
        yield "worst", {"cells": cells}
    yield "fewer", {"fewer": sum(one["clusters"] < one["k"] - 0.5 for one in found), "n": len(found)}


# --- defaults ---------------------------------------------------------------------------------------------------------


def defaults_lines(rows: common.Record) -> list[common.Record]:
    """Return each value of each parameter: mean scores, and the NMI of each kind of ensembles."""
    found = []
    for same in zip(*(row["rows"] for row in rows.values()), strict=True):
        nmi, clusters, iterations = mean(list(same), "nmi", "clusters", "iterations")
        value, default = same[0]["value"], same[0].get("default", False)
        each = {key: one["nmi"] for key, one in zip(rows, same, strict=True)}
        found.append({
            "parameter": same[0]["parameter"], "value": value, "default": default, "each": each, "nmi": nmi,
            "clusters": clusters, "iterations": iterations, "shown": f"**{value}**" if default else str(value),
        })  # fmt: skip
    return found


def defaults_values(rows: common.Record, record: common.Record) -> common.Record:
    runs = [f"{key.split(',')[0]} {row['runs']}" for key, row in rows.items() if key.endswith("RI")]
    return {"runs": runs, "lists": {"situation": list(rows)}}


def defaults(rows: common.Record) -> Iterator[Found]:
    for parameter, values in by(defaults_lines(rows), "parameter"):
        best, worst = (which(values, key=lambda one: one["nmi"]) for which in (max, min))
        default = next((one for one in values if one["default"]), best)
        yield "tried", {
            "parameter": parameter, "default": default["value"], "nmi": default["nmi"], "best": best["value"],
            "best_nmi": best["nmi"], "worst": worst["nmi"],
        }  # fmt: skip


# --- Covertype --------------------------------------------------------------------------------------------------------


def covtype(rows: common.Record) -> Iterator[Found]:
    own = rows["covtype"]["SCEC"]
    if "failed" in own:
        yield "failed", own
    else:
        yield "cost", own | {"target": SECONDS, "met": own["first"] <= SECONDS}


def covtype_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, own in rows["covtype"].items():
        if isinstance(own, dict) and "first" in own:
            yield {"key": name, **own}


# --- the picture ------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    """Draw our means beside the paper's, and the NMI of each alpha."""
    from matplotlib.figure import Figure

    from gpuens.plotting.drawing import INK, MARK, SHADE

    figure = Figure(figsize=(10, 4.2), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    tables, defaults = (scored(record["parts"].get(part, {"rows": {}})) for part in ("tables", "defaults"))
    for (name, own), color in zip(by(situations(tables), "name"), (INK, MARK, SHADE), strict=False):
        left.scatter([one["BL"] for one in own], [one["SCEC"] for one in own], 14, color, label=name)
    left.plot([0.4, 0.95], [0.4, 0.95], color="0.6", linewidth=0.8, linestyle="--")
    left.set(xlabel="NMI of the base learner", ylabel="NMI of SCEC", title="Every situation of Tables 2-10")
    values = [one for one in defaults_lines(defaults) if one["parameter"] == "alpha"]
    at = np.arange(len(values))
    right.plot(at, [one["nmi"] for one in values], "o-", color=INK, label="mean NMI")
    right.plot(at, [one["clusters"] for one in values], "s--", color=MARK, label="share of the clusters found")
    right.set_xticks(at, [f"{one['value']:g}" for one in values])
    right.set(xlabel="α, times N / k_h", title="What the column-sparseness term does")
    for ax in (left, right):
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
