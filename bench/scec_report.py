"""What the SCEC script found, in words, tables and a picture. Every verdict is computed from the scores."""

from pathlib import Path
from typing import Any

import common
import numpy as np
import scec_tables as paper

LEVEL = 0.05  # of the t-tests
NEAR = 0.03  # NMI: a mean of 20 runs is said to be the paper's within this
SECONDS = 30.0  # Covtype's target
PROSE = {
    "alpha": "what it is worth that few own clusters become one of the consensus",
    "beta": "what it is worth that rows of correspondences sum to 1",
    "init": "where starts begin",
    "n_init": "starts",
    "tol": "change of a membership at which iterations end",
}


def markdown(record: common.Record) -> str:
    parts = {name: part for name, part in record["parts"].items() if part["rows"]}
    texts = [f"# The SCEC paper's experiments{' (a quick run on few digits)' if record['quick'] else ''}\n"]
    texts += ["## What holds and what does not\n"]
    texts += [f"- {sentence}" for name, part in parts.items() for sentence in SENTENCES[name](done(part))]
    for name, part in parts.items():
        texts += [f"\n## {TITLES[name]}\n\n{part['date']}; {common.machine_line(part)}\n", SECTIONS[name](done(part))]
        texts += [f"\n{key} failed: {row['failed']}" for key, row in part["rows"].items() if "failed" in row]
    return "\n".join(texts)


def done(part: common.Record) -> common.Record:
    return {key: row for key, row in part["rows"].items() if "failed" not in row}


# --- tables 2-10 and 11 -----------------------------------------------------------------------------------------------


def situations(rows: common.Record) -> list[dict[str, Any]]:
    """Return each (data set, kind, r, k) with our means and the paper's."""
    found = []
    for key, row in rows.items():
        name, kind = key.split(", ")
        for at, cell in row["cells"].items():
            r, k = map(int, at.split(", "))
            ours = {score: float(np.mean(cell[score])) for score in ("SCEC", "BL", "clusters", "iterations", "seconds")}
            theirs = paper.TABLES.get((name, kind), {}).get((r, k), (None, None))
            found.append(
                {"name": name, "kind": kind, "r": r, "k": k, **ours, "paper": theirs[0], "paper_BL": theirs[1]}
            )
    return found


def t_test(better: list[float], worse: list[float]) -> float:
    """Return the p-value of the one-sided paired t-test that the first are larger on average."""
    from scipy.stats import ttest_rel

    return float(ttest_rel(better, worse, alternative="greater").pvalue) if len(better) > 1 else float("nan")


def of_tables(rows: common.Record) -> list[str]:
    found = situations(rows)
    up, n = sum(one["SCEC"] > one["BL"] for one in found), len(found)
    p = t_test([one["SCEC"] for one in found], [one["BL"] for one in found])
    means = [np.mean([one[key] for one in found]) for key in ("SCEC", "BL")]
    sentences = [
        f"SCEC's mean NMI is above that of its base learner in {up} of {n} situations (the paper: 77 of 99), "
        f"{means[0]:.3f} against {means[1]:.3f} on average (the paper: .701 against .665); one-sided paired t-test "
        f"over them: p = {p:.1g}, SCEC {'is' if p < LEVEL else 'is not'} significantly better (the paper's Table 11: "
        "p = .000, it is)."
    ]
    printed = [one for one in found if one["paper"] is not None]
    for name in dict.fromkeys(one["name"] for one in printed):
        own = [one for one in printed if one["name"] == name]
        near = sum(abs(one["SCEC"] - one["paper"]) <= NEAR for one in own)
        gap, base = (np.mean([one[a] - one[b] for one in own]) for a, b in (("SCEC", "paper"), ("BL", "paper_BL")))
        gain, theirs = (np.mean([one[a] - one[b] for one in own]) for a, b in (("SCEC", "BL"), ("paper", "paper_BL")))
        sentences.append(
            f"{name}: within {NEAR} of the paper's in {near} of {len(own)} cells; on average {gap:+.3f} from its SCEC, "
            f"while our base learner is {base:+.3f} from its base learner"
            + (" (other letters than the paper's, which it does not name)" if name == "ISOLET6" else "")
            + f"; gain on the base learner {gain:+.3f} (the paper's {theirs:+.3f})."
        )
    for kind in dict.fromkeys(one["kind"] for one in found):
        own = [one for one in found if one["kind"] == kind]
        p = t_test([one["SCEC"] for one in own], [one["BL"] for one in own])
        gain = np.mean([one["SCEC"] - one["BL"] for one in own])
        sentences.append(f"{kind} ensembles alone: gain on the base learner {gain:+.3f}, p = {p:.1g}.")
    worst = sorted(printed, key=lambda one: one["SCEC"] - one["paper"])[:3]
    if worst:
        cells = ", ".join(f"{x['name']} {x['kind']} r={x['r']} k={x['k']} {x['SCEC'] - x['paper']:+.3f}" for x in worst)
        sentences.append(f"Farthest below the paper's figures: {cells}.")
    fewer = sum(one["clusters"] < one["k"] - 0.5 for one in found)
    sentences.append(
        f"Fewer clusters than asked for come out, by more than a half on average, in {fewer} of {n} situations: eq 3 "
        "lets the number of clusters fall."
    )
    return sentences


def tables_of(rows: common.Record) -> str:
    found, lines = situations(rows), []
    lines.append(
        f"Means over {max(row['runs'] for row in rows.values())} runs; NMI by the geometric mean. BL is the mean of "
        "the base clusterings. r: base clusterings, k: clusters asked for; then clusters found, iterations and seconds "
        "of a fit on one thread. Within a run the smaller ensembles are the beginnings of the larger ones, and RN has "
        "one ensemble for all k. Seconds are upper bounds where the machine had other work to do.\n"
    )
    header = ["table", "ensemble", "r", "k", "SCEC", "paper", "BL", "paper's BL", "gain", "paper's", "k found"]
    header += ["iterations", "seconds"]
    cells = []
    for one in found:
        first = paper.NUMBERS.get(one["name"])
        number = "–" if first is None else str(first + paper.KINDS.index(one["kind"]))
        gain = None if one["paper"] is None else one["paper"] - one["paper_BL"]
        row = [number, f"{one['name']} {one['kind']}", str(one["r"]), str(one["k"])]
        row += [common.number(one[key]) for key in ("SCEC", "paper", "BL", "paper_BL")]
        row += [f"{one['SCEC'] - one['BL']:+.3f}", "–" if gain is None else f"{gain:+.3f}"]
        row += [f"{one['clusters']:.1f}", f"{one['iterations']:.0f}", common.seconds(one["seconds"])]
        cells.append(row)
    lines.append(common.table(header, cells))
    return "\n".join(lines)


# --- defaults ---------------------------------------------------------------------------------------------------------


def tried(rows: common.Record) -> dict[str, list[dict[str, Any]]]:
    """Return {parameter: [{value, nmi of each ensemble, means, default}]}."""
    found: dict[str, list[dict[str, Any]]] = {}
    for i, first in enumerate(next(iter(rows.values()))["rows"]):
        own = [row["rows"][i] for row in rows.values()]
        means = {key: float(np.mean([one[key] for one in own])) for key in ("nmi", "clusters", "iterations")}
        found.setdefault(first["parameter"], []).append(
            {
                "value": first["value"],
                "default": first.get("default", False),
                "each": [one["nmi"] for one in own],
                **means,
            }
        )
    return found


def of_defaults(rows: common.Record) -> list[str]:
    sentences = []
    for parameter, values in tried(rows).items():
        best = max(values, key=lambda one: one["nmi"])
        default = next((one for one in values if one["default"]), best)
        sentences.append(
            f"{parameter} = {default['value']}: mean NMI {default['nmi']:.3f}; the best tried, {best['value']}, has "
            f"{best['nmi']:.3f}, the worst {min(one['nmi'] for one in values):.3f}."
        )
    return sentences


def tables_of_defaults(rows: common.Record) -> str:
    runs = ", ".join(f"{name.split(',')[0]} {row['runs']}" for name, row in rows.items() if name.endswith("RI"))
    lines = [
        "Each parameter with the others at their defaults (in bold), on other ensembles of 20 than those of the "
        f"tables; mean NMI over the numbers of clusters of Table 1 (runs: {runs}). *k found* is the share of the "
        "clusters asked for.\n"
    ]
    header = ["parameter", "value", *rows, "mean", "k found", "iterations"]
    cells = []
    for parameter, values in tried(rows).items():
        for one in values:
            value = f"**{one['value']}**" if one["default"] else str(one["value"])
            row = [parameter, value, *(common.number(nmi) for nmi in one["each"]), common.number(one["nmi"])]
            cells.append([*row, f"{one['clusters']:.2f}", f"{one['iterations']:.0f}"])
    lines.append(common.table(header, cells))
    lines.append("\n" + "; ".join(f"*{name}*: {meaning}" for name, meaning in PROSE.items()) + ".")
    return "\n".join(lines)


# --- Covtype ----------------------------------------------------------------------------------------------------------


def of_covtype(rows: common.Record) -> list[str]:
    row = rows["covtype"]
    own = row["SCEC"]
    if "failed" in own:
        return [f"Covtype: {own['failed']}."]
    return [
        f"Covtype, {own['n_objects']:,} × {own['n_clusterings']}, {own['groups']:,} different label rows: "
        f"{common.seconds(own['first'])} s at the first call, of ≤ {SECONDS:.0f} on two cores: "
        f"{common.held(own['first'] <= SECONDS)} ({common.seconds(own['first_cpu'])} CPU seconds, at a load of "
        f"{own['load']:.0f}); {common.size(own['peak'])} at most in memory, of which "
        f"{common.size(own['before'])} were there before; NMI {own['nmi']:.3f} (base clusterings "
        f"{own['base']['nmi']:.3f}), ARI {own['ari']:.3f} ({own['base']['ari']:.3f})."
    ]


def table_of_covtype(rows: common.Record) -> str:
    header = ["starts", "clusters", "first", "later", "CPU", "peak", "iterations", "f / (N M)", "NMI", "ARI", "load"]
    cells = []
    for name, own in rows["covtype"].items():
        if isinstance(own, dict) and "first" in own:
            cells.append([
                name, str(len(own["sizes"])), common.seconds(own["first"]), common.seconds(own.get("later")),
                common.seconds(own["first_cpu"]), common.size(own["peak"]), str(own["iterations"]),
                common.number(own["objective"], 4), common.number(own["nmi"]), common.number(own["ari"]),
                common.number(own["load"], 1),
            ])  # fmt: skip
    return (
        common.table(header, cells)
        + "\n\nSeven clusters asked for; seconds from labels in memory to labels, imports included."
    )


SENTENCES = {"defaults": of_defaults, "tables": of_tables, "covtype": of_covtype}
SECTIONS = {"defaults": tables_of_defaults, "tables": tables_of, "covtype": table_of_covtype}
TITLES = {
    "defaults": "What defaults were tried",
    "tables": "Tables 2-10",
    "covtype": "Covtype",
}


# --- the picture ------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    """Draw our means beside the paper's, and the NMI of each alpha."""
    from matplotlib.figure import Figure

    from gpuens.plotting import INK, MARK, SHADE

    parts = record["parts"]
    figure = Figure(figsize=(10, 4.2), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    found = situations(done(parts["tables"])) if "tables" in parts else []
    for name, color in zip(dict.fromkeys(one["name"] for one in found), (INK, MARK, SHADE), strict=False):
        own = [one for one in found if one["name"] == name]
        left.scatter([one["BL"] for one in own], [one["SCEC"] for one in own], 14, color, label=name)
    ends = [0.4, 0.95]
    left.plot(ends, ends, color="0.6", linewidth=0.8, linestyle="--")
    left.set(xlabel="NMI of the base learner", ylabel="NMI of SCEC", title="Every situation of Tables 2-10")
    if found:
        left.legend(frameon=False)
    if "defaults" in parts and done(parts["defaults"]):
        values = tried(done(parts["defaults"]))["alpha"]
        at = np.arange(len(values))
        right.plot(at, [one["nmi"] for one in values], "o-", color=INK, label="mean NMI")
        right.plot(at, [one["clusters"] for one in values], "s--", color=MARK, label="share of the clusters found")
        right.set_xticks(at, [f"{one['value']:g}" for one in values])
        right.set(xlabel="α, times N / k_h", title="What the column-sparseness term does")
        right.legend(frameon=False)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
