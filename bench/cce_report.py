"""What the CCE script found, in words, tables and a picture. Every verdict is computed from the scores."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cce_methods
import cce_tables as paper
import common
import numpy as np
from parts import LOAD, failures, heading, page, scored

LEVEL = 0.05  # of the t-tests
SECONDS = 60.0  # a method on 581,012 objects
LEFT_OUT = 0.01  # share of the objects from which on it is worth asking how those left out are labelled
SMALLER = paper.DATA_SETS[:8]  # on which the paper compares object-based methods


def markdown(record: common.Record) -> str:
    title = f"The CCE paper's experiments{' (a quick run on made-up data)' if record['quick'] else ''}"
    return page(title, record, SECTIONS, SENTENCES, LOAD)


def mean_of(row: common.Record, method: str, score: str) -> float | None:
    value = row["methods"][method][score]
    return None if value is None else float(np.mean(value))


def best_in_bold(values: Sequence[float | None]) -> list[str]:
    cells = [common.number(value) for value in values]
    known = [cell for cell in cells if cell != "–"]
    return [f"**{cell}**" if known and cell == max(known) else cell for cell in cells]


# --- the paper's claims -----------------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """That a method is at least as good as another, by scores with the paper's difference where it gives one."""

    better: str
    worse: str
    printed: dict[str, float | None]
    sets: Sequence[str] = paper.DATA_SETS


class Verdict(NamedTuple):
    better: float
    worse: float
    p: float  # paired t-test over data sets
    reach: float  # half of the interval of the difference that goes with it
    up: int  # data sets where it is higher, significantly so over runs; simply so for CSI, which is one for all runs
    down: int
    n_sets: int

    def __str__(self) -> str:
        if self.p >= LEVEL:
            return "undecided"
        return "holds" if self.better > self.worse else "the reverse"


def printed_gain(better: str, worse: str) -> dict[str, float | None]:
    return {
        score: float(np.mean(list(rows[better].values())) - np.mean(list(rows[worse].values())))
        for score, rows in paper.TABLE_VIII.items()
    }


CLAIMS = (
    Claim("CgC", "QMI", {"AC": None, "NMI": None, "CSI": None}),
    Claim("OC-Ia", "CSPA", {"NMI": 0.0425, "CSI": 0.0676}, SMALLER),
    Claim("OC-H", "CSPA", {"NMI": None, "CSI": None}, SMALLER),
    Claim("OC-H", "OC-Ia", {"NMI": None, "CSI": None}, SMALLER),
    Claim("CrC-Ia", "MCLA", printed_gain("CrC-Ia", "MCLA")),
    Claim("CrC-C", "MCLA", printed_gain("CrC-C", "MCLA")),
    Claim("CrC-C", "CrC-Ia", printed_gain("CrC-C", "CrC-Ia")),
)


def judge(claim: Claim, score: str, rows: common.Record) -> Verdict:
    pairs = []
    up = down = 0
    for row in rows.values():
        a, b = (np.atleast_1d(row["methods"][method][score]) for method in (claim.better, claim.worse))
        runs = min(len(a), len(b))
        differences = a[:runs] - b[:runs]
        pairs.append((a[:runs].mean(), b[:runs].mean()))
        if score == "CSI" or p_value(differences) < LEVEL:
            up += differences.mean() > 0
            down += differences.mean() < 0
    better, worse = np.array(pairs).T
    reach = half_interval(better - worse)
    return Verdict(better.mean(), worse.mean(), p_value(better - worse), reach, int(up), int(down), len(pairs))


def p_value(differences: np.ndarray) -> float:
    """Return the two-sided p of Student's t for a mean of 0."""
    from scipy import stats

    if len(differences) < 2 or np.ptp(differences) == 0.0:
        return float(np.all(differences == 0.0) or len(differences) < 2)
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def half_interval(differences: np.ndarray) -> float:
    """Return how far from the observed mean the true one may lie."""
    from scipy import stats

    if len(differences) < 2:
        return float("nan")
    return float(stats.t.ppf(1 - LEVEL / 2, len(differences) - 1) * stats.sem(differences))


def judged(part: common.Record) -> Iterable[tuple[Claim, str, Verdict]]:
    found = scored(part)
    for claim in CLAIMS:
        rows = {name: found[name] for name in claim.sets if name in found}
        for score in claim.printed:
            if rows:
                yield claim, score, judge(claim, score, rows)


def gains(rows: common.Record, better: str, worse: str, score: str) -> np.ndarray:
    """Return the paper's performance gain (eq 25) on each data set."""
    means = np.array([[mean_of(row, method, score) for method in (better, worse)] for row in rows.values()])
    return means[:, 0] / means[:, 1] - 1


def correlations(rows: common.Record) -> list[tuple[str, float, float, float]]:
    """Return what, r, p and the paper's r of figures 8 and 10: gains against quality and consistency of the base."""
    from scipy import stats

    consistency = [row["base"]["CSI"] for row in rows.values()]
    quality = [row["base"]["AC"][1] for row in rows.values()]
    cases = (
        (
            "AC gain of CrC-C on CrC-Ia with the CSI of the base clusterings",
            consistency,
            "CrC-C",
            "CrC-Ia",
            "AC",
            -0.96,
        ),
        ("NMI gain of CrC-C on CrC-Ia with that CSI", consistency, "CrC-C", "CrC-Ia", "NMI", -0.89),
        ("AC gain of CgC on QMI with the mean AC of the base clusterings", quality, "CgC", "QMI", "AC", -0.95),
    )
    found = []
    for what, x, better, worse, score, printed in cases:
        y = gains(rows, better, worse, score)
        if len(rows) > 2 and np.ptp(x) and np.ptp(y):
            r, p = stats.pearsonr(x, y)
            found.append((what, float(r), float(p), printed))
    return found


def small_sentences(part: common.Record) -> Iterable[str]:
    by_verdict: dict[str, list[str]] = {"holds": [], "the reverse": [], "undecided": []}
    for claim, score, verdict in judged(part):
        by_verdict[str(verdict)].append(
            f"{claim.better} ≥ {claim.worse} in {score} ({verdict.better - verdict.worse:+.3f}; "
            f"{verdict.up} sets up, {verdict.down} down; p = {verdict.p:.2f})"
        )
    n_claims = sum(map(len, by_verdict.values()))
    within = [
        abs(claim.printed[score] - (found.better - found.worse)) <= found.reach
        for claim, score, found in judged(part)
        if claim.printed[score] is not None
    ]
    yield (
        f"Small sets: of {n_claims} comparisons that the paper finds in favour of the first method, "
        f"{len(by_verdict['holds'])} are so significantly over data sets and {len(by_verdict['the reverse'])} "
        f"significantly the other way round (about {LEVEL * n_claims:.0f} would be one or the other by chance); "
        f"{len(by_verdict['undecided'])} are undecided. Of {len(within)} differences that the paper gives, "
        f"{sum(within)} lie within the {1 - LEVEL:.0%} interval of ours."
    )
    for verdict, listed in by_verdict.items():
        yield f"Small sets, **{verdict}**: {'; '.join(listed) or 'nothing'}."
    rows = scored(part)
    for score in ("AC", "NMI"):
        above = {
            method: sum(mean_of(row, method, score) >= row["base"][score][1] for row in rows.values())
            for method in cce_methods.METHODS
        }
        listed = ", ".join(f"{method} {n}" for method, n in above.items())
        yield f"At least the mean {score} of the base clusterings, of {len(rows)} sets: {listed} (the paper's: all)."
    for what, r, p, printed in correlations(rows):
        yield f"{what}: r = {r:+.2f} (p = {p:.2f}; the paper's r = {printed:+.2f})."


def small_text(part: common.Record) -> str:
    rows = scored(part)
    lines = [heading("Small sets (Tables VII, VIII)", part), *failures(part)]
    lines.append(
        f"Means over {part['setting']['runs']} ensembles. AC is accuracy after the best matching; NMI is normalised by "
        "the geometric mean. The paper cites Cai et al. (2005), who divide by the larger entropy; that one is below. "
        "CSI, which the paper takes from Kuncheva & Vetrov without a formula, is the mean adjusted Rand index of two "
        "runs of a method, and of two base clusterings of a run: not exactly the paper's. Up and down count data sets "
        f"where the difference over runs is significant (paired t-test at {LEVEL:g}, not corrected for their number), "
        "for CSI where there is any. p and ± (95 %) are of the paired t-test over data sets, as is the verdict. "
        "Object-based methods are compared on the paper's eight smaller sets. Sy1 and Sy2 are made up after the papers "
        "that theirs were modified from, as cce_sets.py says; which share of the objects a base clustering sees the "
        "paper does not say (here 70 %).\n"
    )
    verdicts = [
        [f"{claim.better} ≥ {claim.worse}", score, common.number(found.better), common.number(found.worse)]
        + [f"{found.better - found.worse:+.3f} ± {found.reach:.3f}", signed(claim.printed[score]), f"{found.p:.3f}"]
        + [str(found.up), str(found.down), str(found.n_sets), str(found)]
        for claim, score, found in judged(part)
    ]
    header = ["claim", "score", "first", "second", "difference", "the paper's", "p", "up", "down", "sets", "verdict"]
    lines.append(common.table(header, verdicts))
    lines.append("\n### Base clusterings, mean of the largest, mean and smallest of a run; in brackets Table VII\n")
    lines.append(base_table(rows, paper.TABLE_VII))
    for score in paper.SCORES:
        lines.append(f"\n### {score}; on the right the paper's\n")
        lines.append(score_table(rows, score))
    lines.append("\n### NMI normalised by the larger entropy (Cai et al.)\n")
    cells = [
        [name, ""] + best_in_bold([mean_of(row, m, "NMI_max") for m in row["methods"]]) for name, row in rows.items()
    ]
    lines.append(common.table(["data set", "", *cce_methods.METHODS], cells))
    fewer = {m: sum(row["methods"][m]["fewer"] for row in rows.values()) for m in cce_methods.METHODS}
    lines.append("\nRuns that came to fewer clusters than asked for: " + listed_or_none(fewer) + ".")
    return "\n".join(lines)


def signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def listed_or_none(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items() if n) or "none"


def base_table(rows: common.Record, printed: paper.Table) -> str:
    cells = []
    for name, row in rows.items():
        line = [name, f"{row['n_objects']:,}", str(row["k"]), f"{row['groups']:,.0f}"]
        for score in ("AC", "NMI"):
            ours = " ".join(common.number(value) for value in row["base"][score])
            theirs = (
                [printed[score][which][name] for which in ("max", "avg", "min")] if name in printed["AC"]["max"] else []
            )
            line.append(f"{ours} ({' '.join(map(common.number, theirs))})" if theirs else ours)
        theirs = printed["CSI"]["avg"].get(name)
        line.append(common.number(row["base"]["CSI"]) + (f" ({theirs:.3f})" if theirs else ""))
        cells.append(line)
    return common.table(["data set", "N", "k", "different rows", "AC", "NMI", "CSI"], cells)


def score_table(rows: common.Record, score: str) -> str:
    theirs = tuple(method for method in ("MCLA", "CrC-Ia", "CrC-C"))
    header = ["data set", "base", *cce_methods.METHODS, *(f"({method})" for method in theirs)]
    cells, means = [], []
    for name, row in rows.items():
        base = row["base"][score] if score == "CSI" else row["base"][score][1]
        ours = [mean_of(row, method, score) for method in cce_methods.METHODS]
        printed = [paper.TABLE_VIII[score][method].get(name) for method in theirs]
        means.append([base, *ours, *printed])
        cells.append([name, common.number(base), *best_in_bold(ours), *map(common.number, printed)])
    base, *values = [None if None in column else float(np.mean(column)) for column in zip(*means, strict=True)]
    n = len(cce_methods.METHODS)
    cells.append(["mean", common.number(base), *best_in_bold(values[:n]), *map(common.number, values[n:])])
    return common.table(header, cells)


# --- documents --------------------------------------------------------------------------------------------------------


def documents_sentences(part: common.Record) -> Iterable[str]:
    rows = scored(part)
    for score in ("AC", "NMI"):
        base = float(np.mean([row["base"][score][1] for row in rows.values()]))
        means = ", ".join(
            f"{method} {np.mean([mean_of(row, method, score) for row in rows.values()]):.3f}"
            for method in cce_methods.METHODS
        )
        yield f"Documents, mean {score} of {', '.join(rows)}: base clusterings {base:.3f}; {means}."
    for better in ("OC-H", "CrC-C"):
        claim = Claim(better, "CgC", {})
        found = [(score, judge(claim, score, rows)) for score in ("AC", "NMI")]
        listed = ", ".join(
            f"{score} {v.better - v.worse:+.3f}, {v} ({v.up} sets up, {v.down} down; p = {v.p:.2f})"
            for score, v in found
        )
        yield f"Documents, {better} ≥ CgC, as the paper mostly has it: {listed}."


def documents_text(part: common.Record) -> str:
    rows = scored(part)
    lines = [heading("Documents (Tables IX, X)", part), *failures(part)]
    lines.append(
        "tf-idf in rows of length 1. The sets are larger than the paper's and cut into words otherwise, so that its "
        "figures (cce_tables.py) are no targets. A method leaves out the runs beyond a minute on a set; seconds are "
        "those of the consensus alone, mean over runs.\n"
    )
    cells = [
        [name, f"{row['n_objects']:,}", str(row["k"]), f"{row['groups']:,.0f}", str(row["runs"])]
        + [" ".join(map(common.number, row["base"][score])) for score in ("AC", "NMI")]
        + [common.number(row["base"]["CSI"]), common.number(row["load"], 1)]
        for name, row in rows.items()
    ]
    header = ["data set", "N", "k", "different rows", "runs", "base AC, max avg min", "base NMI", "base CSI", "load"]
    lines.append(common.table(header, cells))
    for score in paper.SCORES:
        lines.append(f"\n### {score}\n")
        cells = [
            [name, "", *best_in_bold([mean_of(row, m, score) for m in row["methods"]])] for name, row in rows.items()
        ]
        lines.append(common.table(["data set", "", *cce_methods.METHODS], cells))
    lines.append("\n### Seconds of a consensus (runs)\n")
    cells = [
        [name, "", *(f"{row['methods'][m]['seconds']:.2f} ({len(row['methods'][m]['AC'])})" for m in row["methods"])]
        for name, row in rows.items()
    ]
    lines.append(common.table(["data set", "", *cce_methods.METHODS], cells))
    printed = ", ".join(f"{method} {' '.join(map(str, seconds))}" for method, seconds in paper.TABLE_X.items())
    lines.append(f"\nThe paper's seconds, for 1,864 to 4,087 documents: {printed}.")
    return "\n".join(lines)


# --- scaling ----------------------------------------------------------------------------------------------------------


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return b of y ∝ x^b."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def scaling_sentences(part: common.Record) -> Iterable[str]:
    rows = scored(part)
    if len(rows) < 2:
        return
    numbers = [row["n_objects"] for row in rows.values()]
    for method in next(iter(rows.values()))["methods"]:
        seconds = [row["methods"][method]["seconds"] for row in rows.values()]
        first, last = (
            " and ".join(f"{mean_of(rows[key], method, score):.3f}" for score in ("AC", "NMI"))
            for key in (min(rows, key=int), max(rows, key=int))
        )
        yield (
            f"From {min(numbers):,} to {max(numbers):,} documents {method}'s AC and NMI go from {first} to {last}, and "
            f"its seconds grow as N^{exponent(numbers, seconds):.2f} (the paper: quality does not depend on it)."
        )


def scaling_text(part: common.Record) -> str:
    lines = [heading("Scaling with documents (Fig. 11)", part), *failures(part)]
    cells = [
        [f"{row['n_objects']:,}", method, f"{row['groups']:,.0f}", str(len(scores["AC"]))]
        + [common.number(mean_of(row, method, score)) for score in paper.SCORES]
        + [common.seconds(scores["seconds"]), common.number(row["load"], 1)]
        for row in scored(part).values()
        for method, scores in row["methods"].items()
    ]
    header = ["documents", "method", "different rows", "runs", *paper.SCORES, "seconds", "load"]
    return "\n".join([*lines, common.table(header, cells)])


# --- large ------------------------------------------------------------------------------------------------------------


def large_sentences(part: common.Record) -> Iterable[str]:
    rows = scored(part)
    name = max(rows, key=lambda key: rows[key]["n_objects"], default=None)
    if name is None:
        return
    methods = {key: row for key, row in rows[name]["methods"].items() if "failed" not in row}
    slowest = max(methods, key=lambda key: methods[key]["first"])
    yield (
        f"{name}, {rows[name]['n_objects']:,} objects, with and without a sample: the slowest method takes "
        f"{methods[slowest]['first']:.1f} s at its first call ({slowest}), of ≤ {SECONDS:.0f}: "
        f"{common.held(methods[slowest]['first'] <= SECONDS)}; the most memory is "
        f"{common.size(max(row['peak'] for row in methods.values()))}. The whole set has "
        f"{rows[name]['groups']:,} different label rows."
    )
    for key, row in rows.items():
        for method, found in row["methods"].items():
            if "failed" in found:
                yield f"{key}, {method}: {found['failed']}."
    best = {key: max((r["AC"], m) for m, r in row["methods"].items() if "AC" in r) for key, row in rows.items()}
    listed = "; ".join(
        f"{key} {ac:.3f} ({method}; base {rows[key]['base']['AC'][1]:.3f}, largest class {rows[key]['largest']:.3f})"
        for key, (ac, method) in best.items()
    )
    yield (
        "Large sets, the best AC of the six methods, which is what the paper reports, beside that of the base "
        f"clusterings and of a single cluster (the share of the largest class): {listed}."
    )


def large_text(part: common.Record) -> str:
    lines = [heading("Large sets (Table XI)", part), *failures(part)]
    lines.append(
        "One ensemble of each, every method in a process of its own: seconds of the first call, which loads compiled "
        "code from disk, and of a later one, the peak memory of the process, and what it held before. What a sample "
        "leaves out is labelled by the mean similarity.\n"
    )
    cells = []
    for name, row in scored(part).items():
        base = [" ".join(map(common.number, row["base"][score])) for score in ("AC", "NMI")]
        title = f"{name}, N = {row['n_objects']:,}, k = {row['k']}, largest class {row['largest']:.3f}"
        cells.append(
            [title, "base: max avg min", f"{row['groups']:,}", *base, common.seconds(row["generated"]), *["–"] * 4]
        )
        for method, found in row["methods"].items():
            if "failed" in found:
                cells.append([name, method, found["failed"], *["–"] * 7])
                continue
            cells.append(
                [name, method, f"{found['rows']:,}", *(common.number(found[score]) for score in ("AC", "NMI"))]
                + [common.seconds(found["first"]), common.seconds(found.get("later")), common.size(found["peak"])]
                + [common.size(found["before"]), common.number(found["load"], 1)]
            )
    header = ["data set", "method", "rows worked on", "AC", "NMI", "first, s", "later, s", "peak", "before", "load"]
    return "\n".join([*lines, common.table(header, cells)])


# --- sampling ---------------------------------------------------------------------------------------------------------


def mean_less_sum(row: common.Record, score: str, least: float) -> np.ndarray:
    """Return the differences of the cells (method, size) of a data set that leave at least that share out."""
    cells = [cell for cell in row["cells"] if cell["others"] >= least]
    return np.array([np.mean(cell["mean"][score]) - np.mean(cell["sum"][score]) for cell in cells])


def sampling_sentences(part: common.Record) -> Iterable[str]:
    for score in ("AC", "NMI"):
        found = {name: mean_less_sum(row, score, LEFT_OUT) for name, row in scored(part).items()}
        found = {name: differences for name, differences in found.items() if len(differences)}
        if not found:
            continue
        listed = ", ".join(
            f"{name} {differences.mean():+.4f} (higher {(differences > 0).sum()}, lower {(differences < 0).sum()})"
            for name, differences in found.items()
        )
        means = np.array([differences.mean() for differences in found.values()])
        yield (
            f"Samples that leave out the rows of at least {LEFT_OUT:.0%} of the objects, {score} by mean less that by "
            f"sum, over methods and sizes: {listed}; of the data sets {means.mean():+.4f} (p = {p_value(means):.2f})."
        )


def sampling_text(part: common.Record) -> str:
    lines = [heading("Sizes of samples, by mean and by sum", part), *failures(part)]
    lines.append(
        "Means over five ensembles and samples (two where a method takes long). *Left out* is the share of the objects "
        "whose label row is not in the sample: only they are labelled by similarity.\n"
    )
    cells = []
    for name, row in scored(part).items():
        for cell in row["cells"]:
            line = [name, cell["method"], f"{cell['size']:,}", f"{100 * cell['others']:.1f} %"]
            for score in ("AC", "NMI"):
                line += [common.number(float(np.mean(cell[by][score]))) for by in ("mean", "sum", "all")]
            cells.append(line)
    header = ["data set", "method", "size", "left out", "AC by mean", "by sum", "all objects"]
    header += ["NMI by mean", "by sum", "all objects"]
    return "\n".join([*lines, common.table(header, cells)])


# --- groups -----------------------------------------------------------------------------------------------------------


def groups_sentences(part: common.Record) -> Iterable[str]:
    for row in scored(part).values():
        n = row["groups"]
        for method in ("CrC-C", "OC-H"):
            found = row["methods"].get(method, {"failed": "not run"})
            cost = found.get("failed") or f"{found['first']:.0f} s and {common.size(found['peak'])}"
            yield f"{method} on {n:,} different label rows: {cost}; N × N of float64 would be {common.size(8 * n * n)}."


def groups_text(part: common.Record) -> str:
    lines = [heading("Many different label rows", part), *failures(part)]
    for name, row in scored(part).items():
        n = row["groups"]
        lines.append(
            f"{n:,} different label rows of objects of {name}, {row['n_clusterings']} clusterings with "
            f"{row['n_clusters']:,} clusters, k = {row['k']}. N × N of float64 would be {common.size(8 * n * n)}; "
            f"the links of OC-H, one a pair, are {common.size(4 * n * (n - 1))}.\n"
        )
        cells = [
            [method, "", found["failed"], "–", "–", "–", "–"]
            if "failed" in found
            else [
                method,
                "",
                common.seconds(found["first"]),
                common.seconds(found.get("later")),
                common.size(found["peak"]),
            ]
            + [common.size(found["before"]), common.number(found["load"], 1)]
            for method, found in row["methods"].items()
        ]
        lines.append(common.table(["method", "", "first, s", "later, s", "peak", "before", "load"], cells))
    return "\n".join(lines)


SENTENCES: dict[str, Callable[[common.Record], Iterable[str]]] = {
    "small": small_sentences,
    "documents": documents_sentences,
    "scaling": scaling_sentences,
    "large": large_sentences,
    "sampling": sampling_sentences,
    "groups": groups_sentences,
}
SECTIONS: dict[str, Callable[[common.Record], str]] = {
    "small": small_text,
    "documents": documents_text,
    "scaling": scaling_text,
    "large": large_text,
    "sampling": sampling_text,
    "groups": groups_text,
}

# --- the picture ------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic([["small", "small"], ["quality", "seconds"]], figsize=(10, 8))
    parts = record["parts"]
    plot_small(axes["small"], scored(parts.get("small", {"rows": {}})))
    plot_scaling(axes["quality"], axes["seconds"], scored(parts.get("scaling", {"rows": {}})))
    for ax in axes.values():
        ax.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_small(ax: Any, rows: common.Record) -> None:
    at = np.arange(len(rows))
    for i, method in enumerate(("MCLA", "CrC-Ia", "CrC-C")):
        x = at + 0.22 * (i - 1)
        ours = [row["methods"][method]["AC"] for row in rows.values()]
        printed = [paper.TABLE_VIII["AC"][method].get(name, np.nan) for name in rows]
        ax.errorbar(x, [np.mean(v) for v in ours], [np.std(v) for v in ours], fmt=f"C{i}o", ms=4, label=method)
        ax.plot(x, printed, f"C{i}x", ms=6, label=f"{method}, the paper's")
    base = [row["base"]["AC"][1] for row in rows.values()]
    ax.plot(at, base, "k_", ms=26, alpha=0.4, label="base clusterings, mean")
    ax.set_xticks(at, list(rows))
    ax.set_ylabel("AC (mean, standard deviation over runs)")
    ax.legend(fontsize=7, ncols=2)


def plot_scaling(quality: Any, seconds: Any, rows: common.Record) -> None:
    numbers = [row["n_objects"] for row in rows.values()]
    for i, method in enumerate(next(iter(rows.values()), {"methods": {}})["methods"]):
        for score, style in (("AC", "o-"), ("NMI", "s:")):
            values = [mean_of(row, method, score) for row in rows.values()]
            quality.plot(numbers, values, f"C{i}{style}", ms=4, label=f"{method}, {score}")
        took = [row["methods"][method]["seconds"] for row in rows.values()]
        seconds.loglog(numbers, took, f"C{i}o-", ms=4, label=method)
    quality.set_xlabel("documents")
    seconds.set_xlabel("documents")
    seconds.set_ylabel("seconds of a consensus")
    if rows:
        base = [row["base"]["AC"][1] for row in rows.values()]
        quality.plot(numbers, base, "k--", label="base clusterings, AC")
        quality.set_ylim(bottom=0)
        for ax in (quality, seconds):
            ax.legend(fontsize=7)
