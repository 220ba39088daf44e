"""The findings about the LWEC paper's tables; every verdict is computed from the scores."""

from collections.abc import Iterator
from pathlib import Path

import common
import numpy as np
from papers import printed_by
from report import Found, compared, scored

PRINTED = printed_by("lwec")
SCORES = {"nmi_max": "V", "ari": "VII"}
CURVES = {"lwea": "III", "lwgp": "IV"}
TOLERANCE = 1.5  # tolerated difference of means, in the paper's standard deviations
WHY = {  # reasons why a method's means differ from the paper's
    "KCC": (
        "Ours are the higher in all of them. The paper does not say which utility it took: none of the four, whether "
        "normalised or not, nor a single start comes near its MF, whose figure it prints for LS, too; the category "
        "utility or a single start bring ODR to .72, within its deviations (six draws)."
    ),
    "TOME": "Ours is the higher, of the single draw of LR that its seconds have room for.",
    "HGPA": "Ours are the higher in all of them: Mt-KaHyPar cuts here, Strehl's program calls hMETIS.",
    "MCLA": "Ours is the higher, and its ARI within: which METIS and which weights the paper took it does not say.",
}


def against_paper(rows: common.Record, score: str, which: str = "true_k") -> Iterator[common.Record]:
    for name, row in rows.items():
        for method, scores in row["methods"].items():
            values = scores[score]
            cell = PRINTED[SCORES[score]][which].get(method, {}).get(name)
            line = {"key": name, "method": method, "ours": f"{np.mean(values):.3f}", "draws": len(values)}
            line["ours"] += f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
            line["theirs"] = "not readable"
            if cell is not None:
                line["theirs"] = f"{cell[0]:.3f} ± {f'{cell[1]:.3f}' if len(cell) > 1 else '?'}"
            if cell is not None and len(cell) > 1:
                line["distance"] = (np.mean(values) - cell[0]) / cell[1]
                line["within"] = abs(line["distance"]) <= TOLERANCE
                line["verdict"] = "yes" if line["within"] else "**no**"
            yield line


def against_best_k(rows: common.Record, score: str) -> Iterator[common.Record]:
    return against_paper(rows, score, "best_k")


def tables(rows: common.Record, which: str = "true_k") -> Iterator[Found]:
    by_method: dict[str, list[tuple[str, common.Record]]] = {}
    for score, (what, table) in {"nmi_max": ("NMI", "V"), "ari": ("ARI", "VII")}.items():
        lines = list(against_paper(rows, score, which))
        printed = [line for line in lines if "within" in line]
        within = sum(line["within"] for line in printed)
        counts = {"within": within, "known": len(printed), "lost": len(lines) - len(printed)}
        of = sorted({line["method"] for line in lines})
        title = f"{what}, Table {table}" + (f", {of[0]}" if len(of) == 1 else "")
        title += ", the k that scores best" * (which == "best_k")
        yield "within", {"title": title, "tolerance": TOLERANCE, **counts}
        for line in printed:
            by_method.setdefault(line["method"], []).append((what, line))
    for method, printed in by_method.items():
        far = [f"{what} of {line['key']} {line['distance']:+.1f}" for what, line in printed if not line["within"]]
        counts = {"within": len(printed) - len(far), "known": len(printed)}
        if far:
            why = WHY.get(method, "") if which == "true_k" else ""
            yield "apart", {"method": method, "far": far, "why": why, **counts}


def best_k(rows: common.Record) -> Iterator[Found]:
    return tables(rows, "best_k")


hypergraph = tables


def significance(rows: common.Record, score: str) -> Iterator[common.Record]:
    """Yield how often LWEA and LWGP are significantly better than the others, comparable and worse."""
    for ours, printed in PRINTED["VI"].items():
        for baseline, printed_wins in printed.items():
            rows_of_baseline = {name: row for name, row in rows.items() if baseline in row["methods"]}
            if rows_of_baseline:
                comparison = compared(rows_of_baseline, ours, baseline, score)
                up, down = comparison["up"], comparison["down"]
                times = " / ".join(map(str, (up, comparison["sets"] - up - down, down)))
                yield {"key": ours, "baseline": baseline, "ours": times, "theirs": " / ".join(map(str, printed_wins))}


def theta_values(rows: common.Record, record: common.Record) -> common.Record:
    return {"runs": next(iter(rows.values()))["runs"]}


def curves(rows: common.Record, method: str) -> Iterator[common.Record]:
    for name, row in rows.items():
        yield {"key": name, "k": "paper", "values": PRINTED[CURVES[method]].get(name, [])}
        for which in ("true", "best"):
            values = list(row["methods"][method][f"{which}_k"].values())
            yield {"key": name, "k": f"ours, {which} k", "values": values}


def plot(record: common.Record, path: Path) -> None:
    """Draw NMI over θ, ours and the paper's, a column for each data set."""
    from matplotlib.figure import Figure

    rows = scored(record["parts"].get("theta", {"rows": {}}))
    if not rows:
        return
    styles = {"ours, best k": "C0o-", "ours, true k": "C0o:", "paper": "C1s-"}
    figure = Figure(figsize=(2.6 * len(rows), 5.2), dpi=110, layout="constrained")
    axes = figure.subplots(2, len(rows), sharex=True, squeeze=False)
    for method, across in zip(CURVES, axes, strict=True):
        for ax, name in zip(across, rows, strict=True):
            for curve in curves({name: rows[name]}, method):
                thetas = PRINTED["thetas"][: len(curve["values"])]
                ax.semilogx(thetas, curve["values"], styles[curve["k"]], markersize=4, label=curve["k"])
            ax.set_title(f"{name}, {method.upper()}", fontsize=9)
            ax.set_xticks(
                PRINTED["thetas"], ["" if t in (0.6, 0.8) else f"{t:g}" for t in PRINTED["thetas"]], fontsize=7
            )
            ax.minorticks_off()
            ax.tick_params(axis="y", labelsize=7)
            ax.grid(alpha=0.3)
        across[0].set_ylabel("NMI (max)", fontsize=8)
    for ax in axes[1]:
        ax.set_xlabel("θ", fontsize=8)
    axes[0, 0].legend(fontsize=7)
    figure.savefig(path)
