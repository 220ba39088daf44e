"""What the ECRMC script found, in words, tables and a picture. Every verdict is computed from the scores."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import common
import numpy as np
from parts import LOAD, failures, heading, page, scored

SCORES = ("NMI", "ARI", "AC")
OURS = "T 10 %"
METHODS = ("base", OURS, "without", "LWGP", "LWEA", "EAC")
NAMES = {"base": "base, mean", OURS: "ECRMC", "without": "without coefficients"}
# what the paper says in words of its Tables 4-6, of which it prints pictures: ECRMC first or not, against LWGP too
SAID = {
    "NMI": "on 7 of 11 sets the best of eight methods, on the others slightly below LWGP",
    "ARI": "on 7 of 11 sets the best of eight methods, LWGP first on lr and is",
    "AC": "first on breast_wisconsin, pd, mnist, lr, semeion and spf, third on coil20, where LWGP is first",
}
LEVEL = 0.05  # of the t-tests


def markdown(record: common.Record) -> str:
    title = f"The ECRMC paper's experiments{' (a quick run)' if record['quick'] else ''}"
    return page(title, record, SECTIONS, SENTENCES, LOAD)


def mean(row: common.Record, method: str, score: str) -> float:
    return float(np.mean(row["methods"][method][score]))


# --- sets -------------------------------------------------------------------------------------------------------------


def compared(rows: common.Record, first: str, second: str, score: str) -> tuple[float, int, int, float]:
    """Return the mean difference over sets, how many sets are significantly up and down over runs, and p over sets."""
    from scipy.stats import ttest_1samp, ttest_rel

    means, up, down = [], 0, 0
    for row in rows.values():
        a, b = (np.array(row["methods"][method][score]) for method in (first, second))
        n = min(len(a), len(b))
        means.append(a[:n].mean() - b[:n].mean())
        if n > 1 and np.ptp(a[:n] - b[:n]) > 0 and ttest_rel(a[:n], b[:n]).pvalue < LEVEL:
            up, down = up + (means[-1] > 0), down + (means[-1] < 0)
    p = ttest_1samp(means, 0).pvalue if len(means) > 1 and np.ptp(means) > 0 else float("nan")
    return float(np.mean(means)), up, down, float(p)


def sets_sentences(part: common.Record) -> Iterable[str]:
    rows = scored(part)
    if not rows:
        return
    for score in SCORES:
        first = [name for name, row in rows.items() if mean(row, OURS, score) >= mean(row, "LWGP", score)]
        difference, up, down, p = compared(rows, OURS, "LWGP", score)
        yield (
            f"{score}, ECRMC (T = 10 %) against LWGP on the same ensembles: at least as high on {len(first)} of "
            f"{len(rows)} sets ({', '.join(first) or 'none'}), mean difference {difference:+.3f} (p = {p:.2f} over "
            f"sets; significantly up on {up}, down on {down}). The paper: {SAID[score]}."
        )
    for score in SCORES:
        difference, up, down, p = compared(rows, OURS, "without", score)
        yield (
            f"{score}, with the reconstructed coefficients against without (its Fig. 7: generally better with them): "
            f"mean difference {difference:+.3f} (p = {p:.2f} over sets; significantly up on {up}, down on {down})."
        )
    for score in SCORES:
        spread = {
            name: np.ptp([mean(row, method, score) for method in row["methods"] if method.startswith("T ")])
            for name, row in rows.items()
        }
        worst = max(spread, key=lambda name: spread[name])
        average = np.mean(list(spread.values()))
        yield (
            f"{score} over T = 5 … 20 % (its Fig. 3: stable): a set's means differ by {average:.3f} on average, at "
            f"most by {spread[worst]:.3f} ({worst})."
        )


def sets_text(part: common.Record) -> str:
    rows = scored(part)
    lines = [heading("The eleven sets (Tables 4-6, Figs. 3 and 7)", part), *failures(part)]
    lines.append(
        "Means over as many ensembles as there are runs ± standard deviation, M = 20 k-means with k from K to "
        "min(√N, 100), true K asked for; features as they are. The paper prints its tables as pictures, so that there "
        "are no figures to put beside. T is not capped here. *Without coefficients* S correlates the clusters' own "
        "members (p_il of eq 8). Seconds: reference sets at hand, S and linkage.\n"
    )
    cells = [
        [name, f"{row['n_objects']:,}", str(row["k"]), str(len(row["methods"][OURS]["NMI"]))]
        + [" ".join(str(t) for t in row["T"].values()), f"{row['groups']:,.0f}"]
        + [common.seconds(row["seconds"]), common.number(row["load"], 1)]
        for name, row in rows.items()
    ]
    header = ["set", "N", "K", "runs", "T (5, 10, 15, 20 %)", "different rows", "seconds", "load"]
    lines.append(common.table(header, cells))
    for score in SCORES:
        lines.append(f"\n### {score}\n")
        cells = []
        for name, row in rows.items():
            values = [mean(row, method, score) for method in METHODS]
            best = max(common.number(value) for value in values)
            shown = [f"**{common.number(v)}**" if common.number(v) == best else common.number(v) for v in values]
            spread = [np.std(row["methods"][method][score]) for method in METHODS]
            cells.append([name, "", *(f"{v} ± {s:.3f}" for v, s in zip(shown, spread, strict=True))])
        averages = [np.mean([mean(row, method, score) for row in rows.values()]) for method in METHODS]
        cells.append(["mean", "", *map(common.number, averages)])
        lines.append(common.table(["set", "", *(NAMES.get(method, method) for method in METHODS)], cells))
    for score in SCORES:
        lines.append(f"\n### {score} by T\n")
        shares = [method for method in next(iter(rows.values()))["methods"] if method.startswith("T ")]
        cells = [[name, "", *(common.number(mean(row, t, score)) for t in shares)] for name, row in rows.items()]
        lines.append(common.table(["set", "", *shares], cells))
    return "\n".join(lines)


# --- the object itself ------------------------------------------------------------------------------------------------


def self_sentences(part: common.Record) -> Iterable[str]:
    rows = scored(part)
    if rows:
        listed = "; ".join(
            f"{score} {difference:+.4f} (p = {p:.2f}; up {up}, down {down})"
            for score, (difference, up, down, p) in ((s, compared(rows, "itself", "others", s)) for s in SCORES)
        )
        yield (
            "The object itself in its reference set, of the same T, against T others (the paper leaves it open; we "
            f"take others): {listed}, on {len(rows)} sets."
        )


def self_text(part: common.Record) -> str:
    lines = [heading("Whether an object is in its own reference set", part), *failures(part)]
    cells = [
        [name, ""] + [common.number(mean(row, way, score)) for score in SCORES for way in ("others", "itself")]
        for name, row in scored(part).items()
    ]
    header = ["set", "", *(f"{score}, {way}" for score in SCORES for way in ("others", "with itself"))]
    return "\n".join([*lines, common.table(header, cells)])


# --- Covertype --------------------------------------------------------------------------------------------------------


def covtype_sentences(part: common.Record) -> Iterable[str]:
    for key, row in part["rows"].items():
        if "failed" in row:
            yield f"{key}: {row['failed']}."
        elif row["T"] is not None:
            yield (
                f"{key}: {row['n_objects']:,} objects in {common.seconds(row['first'])} s "
                f"({common.seconds(row['first_cpu'])} CPU seconds) and {common.size(row['peak'])} "
                f"({common.size(row['before'])} before), {row['rows']:,} rows linked, T = {row['T']} (a tenth of N / K "
                f"would be {row['n_objects'] // (10 * row['k']):,})."
            )


def covtype_text(part: common.Record) -> str:
    lines = [heading("Covertype", part), *failures(part)]
    cells = [
        [key, "", f"{row['rows']:,}", str(row["T"] or "–"), f"{row['coefficients']:,}" if row["T"] else "–"]
        + [common.seconds(row["first"]), common.seconds(row["first_cpu"])]
        + [common.size(row["peak"]), common.size(row["before"])]
        + [common.number(row[score]) for score in SCORES]
        + [common.number(row["load"], 1)]
        for key, row in scored(part).items()
    ]
    header = ["method", "", "rows linked", "T", "coefficients", "seconds", "CPU seconds", "peak", "before"]
    return "\n".join([*lines, common.table([*header, *SCORES, "load"], cells)])


SENTENCES = {"sets": sets_sentences, "self": self_sentences, "covtype": covtype_sentences}
SECTIONS = {"sets": sets_text, "self": self_text, "covtype": covtype_text}


# --- the picture ------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = scored(record["parts"].get("sets", {"rows": {}}))
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.5))
    for column, score in enumerate(SCORES):
        plot_methods(axes[0, column], rows, score)
        plot_shares(axes[1, column], rows, score)
    for ax in axes.ravel():
        ax.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_methods(ax: Any, rows: common.Record, score: str) -> None:
    at = np.arange(len(rows))
    for i, method in enumerate((OURS, "without", "LWGP")):
        values = [row["methods"][method][score] for row in rows.values()]
        means, spread = ([f(v) for v in values] for f in (np.mean, np.std))
        ax.errorbar(at + 0.2 * (i - 1), means, spread, fmt=f"C{i}o", ms=4, label=NAMES.get(method, method))
    ax.set_xticks(at, list(rows), rotation=60, ha="right", fontsize=8)
    ax.set_ylabel(f"{score} (mean, standard deviation)")
    ax.legend(fontsize=7)


def plot_shares(ax: Any, rows: common.Record, score: str) -> None:
    for i, (name, row) in enumerate(rows.items()):
        shares = [method for method in row["methods"] if method.startswith("T ")]
        values = [mean(row, method, score) for method in shares]
        ax.plot([int(t.split()[1]) for t in shares], values, f"C{i % 10}{'o-' if i < 10 else 's--'}", ms=3, label=name)
    ax.set_xlabel("T, percent of N / K")
    ax.set_ylabel(score)
    if rows and score == SCORES[-1]:
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
