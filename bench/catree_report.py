"""What the CA-tree script found, in words, tables and pictures. Every verdict is computed from the figures."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import catree_tables as paper
import common
import numpy as np
from parts import page, scored

LEVEL = 0.05  # of the t-tests
RECOMMENDED = ((0.4, "1"), (0.2, "0.9"))  # (τ, γ)
ORDERS, WEIGHTS = ("given", "coarse", "fine"), ("size", "unit")
LOSS = 0.1  # of the accuracy at τ = 0 that the paper accepts
MILLION_SECONDS = 5.0
SETTINGS = {"A": "all objects", "B": "core groups", "C": "τ = .2 H", "D": "τ = .2 H, γ = .9"}


def markdown(record: common.Record) -> str:
    title = f"The CA-tree paper's experiments{' (a quick run on made-up data)' if record['quick'] else ''}"
    return page(title, record, SECTIONS, SENTENCES)


def heading(title: str, part: common.Record) -> list[str]:
    lines = [f"\n## {title}\n\n{part['date']}; {common.machine_line(part)}\n"]
    return lines + [f"{name} failed: {row['failed']}\n" for name, row in part["rows"].items() if "failed" in row]


def listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def p_value(differences: np.ndarray) -> float:
    """Return the two-sided p of Student's t for a mean of 0."""
    from scipy import stats

    if np.ptp(differences) == 0.0:
        return float(np.all(differences == 0.0))
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


# --- numbers of nodes -------------------------------------------------------------------------------------------------


def exponents(row: common.Record, gamma: str) -> list[float]:
    """Return α(τ) at the paper's τ: the slope of log N_Z over log N."""
    counts = np.array(row["counts"][gamma])
    columns = [round(tau * counts.shape[1]) for tau in paper.TAUS]
    return np.polyfit(np.log(row["sizes"]), np.log(counts[:, columns]), 1)[0].tolist()


def nodes_sentences(part: common.Record) -> Iterator[str]:
    rows = scored(part)
    for gamma in ("1", "0.9"):
        pairs = [(exponents(row, gamma), paper.DATA_SETS[name].alphas[float(gamma)]) for name, row in rows.items()]
        ours, printed = np.array(pairs).transpose(1, 0, 2)
        apart, r = np.abs(ours - printed), np.corrcoef(ours.ravel(), printed.ravel())[0, 1]
        yield (
            f"The {ours.size} exponents α(τ) at γ = {gamma} are {apart.mean():.3f} from the paper's on average, "
            f"{apart.max():.2f} at most (r = {r:.2f})."
        )
    found = {(tau, gamma): {n: exponents(row, gamma) for n, row in rows.items()} for tau, gamma in RECOMMENDED}
    above = [
        f"{name} at γ = {gamma}" for (tau, gamma), by_name in found.items() for name, alphas in by_name.items()
        if alphas[paper.TAUS.index(tau)] >= 0.5
    ]  # fmt: skip
    yield f"At the recommended thresholds all exponents are below .5 in the paper; exceptions here: {listed(above)}."


def nodes_text(part: common.Record) -> str:
    lines = heading("How the number of nodes grows: Tables III and IV", part)
    runs = part["setting"]["runs"]
    lines.append(f"α(τ) of N_Z ∝ N^α, fitted to five N from N_min to N_max, means over {runs} ensembles each.")
    for gamma in ("1", "0.9"):
        cells = []
        for name, row in scored(part).items():
            ours, printed = exponents(row, gamma), paper.DATA_SETS[name].alphas[float(gamma)]
            low, high = row["sizes"][0], row["sizes"][-1]
            pairs = (f"{a:.2f} ({b:.2f})" for a, b in zip(ours, printed, strict=True))
            cells.append([name, f"{low:,} … {high:,}", *pairs, f"{row['counts'][gamma][-1][0]:.0f}"])
        header = ["data set", "N", *(f"τ = {tau:g} H" for tau in paper.TAUS), "nodes at τ = 0"]
        lines.append(f"\nγ = {gamma}: ours (the paper's)\n\n{common.table(header, cells)}")
    return "\n".join(lines)


# --- accuracy against τ -----------------------------------------------------------------------------------------------


def cell(row: common.Record, what: str, gamma: str, order: str = "given", of: str = "mean") -> np.ndarray:
    """Return the mean accuracies by "size" or "unit", or numbers of "nodes", for each τ."""
    return np.array(row["cells"][f"{order} {gamma}"][what][of])


def column(row: common.Record, tau: float) -> int:
    return round(tau * len(cell(row, "nodes", "1")))


def ratios(row: common.Record) -> np.ndarray:
    """Return N_Z(τ) / N*_Z(τ) at each τ."""
    return cell(row, "nodes", "0.9") / cell(row, "nodes", "1")


def curve(row: common.Record, gamma: str, weights: str = "size", order: str = "given") -> tuple[np.ndarray, np.ndarray]:
    """Return mean numbers of nodes and mean accuracies, the fewest nodes first."""
    number, accuracy = (cell(row, what, gamma, order)[::-1] for what in ("nodes", weights))
    return number, accuracy


def gain_at_equal_nodes(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> float:
    """Return by how much one curve is above another on average, over the logarithms of the numbers they share."""
    low, high = max(one[0][0], other[0][0]), min(one[0][-1], other[0][-1])
    at = np.linspace(np.log(low), np.log(high), 200)
    return float(
        np.mean([np.interp(at, np.log(number), accuracy) for number, accuracy in (one, other)], axis=1) @ (1, -1)
    )


def accuracy_sentences(part: common.Record) -> Iterator[str]:
    rows = scored(part)
    for tau, gamma in (*RECOMMENDED, (0.5, "1")):
        texts = []
        for weights in WEIGHTS:
            short = []
            for name, row in rows.items():
                whole, here = (cell(row, weights, g)[column(row, t)] for t, g in ((0, "1"), (tau, gamma)))
                if here < (1 - LOSS) * whole:
                    short.append(f"{name} ({here:.2f} of {whole:.2f})")
            texts.append(
                f"on {len(rows) - len(short)} of {len(rows)} with weights={weights!r}"
                f"{', not on ' + ', '.join(short) if short else ''}"
            )
        yield (
            f"τ = {tau:g} H with γ = {gamma} keeps 90 % of the accuracy at τ = 0 on all six sets in the paper (weights "
            f"of 1); here {'; '.join(texts)}."
        )
    least = {name: ratios(row).min() for name, row in rows.items()}
    printed = [paper.DATA_SETS[name].ratio for name in rows]
    pairs = ", ".join(f"{name} {least[name]:.3f} ({b:.3f})" for name, b in zip(rows, printed, strict=True))
    yield f"Least N_Z / N_Z* over τ, ours (the paper's): {pairs}."
    for weights in WEIGHTS:
        gains = ", ".join(
            f"{name} {gain_at_equal_nodes(curve(row, '0.9', weights), curve(row, '1', weights)):+.3f}"
            for name, row in rows.items()
        )
        yield (
            f"Node reduction (γ = .9) against a cut of as many nodes, in accuracy, weights={weights!r}: {gains}. In "
            "the paper digits gain most, Spherical5 and 8d5k a little, rings lose."
        )
    texts = []
    for order in ("coarse", "fine"):
        for gamma in ("1", "0.9"):
            gains = [gain_at_equal_nodes(curve(row, gamma, order=order), curve(row, gamma)) for row in rows.values()]
            texts.append(f"{order!r}, γ = {gamma}: {np.mean(gains):+.3f} ({min(gains):+.3f} to {max(gains):+.3f})")
    yield f"Orders against 'given' at as many nodes, mean over the sets (least and most): {'; '.join(texts)}."
    halves = ", ".join(
        f"{name} {cell(rows[name], 'nodes', '1')[column(rows[name], 0.5)]:.0f} ({number})"
        for name, number in paper.NODES_AT_HALF.items()
        if name in rows
    )
    yield f"Nodes at τ = .5 H, ours (the paper's): {halves}."
    apart = np.array([np.abs(cell(row, "nodes", "1") / row["exact"] - 1) for row in rows.values()])
    half = apart.shape[1] // 2 + 1
    yield (
        f"n_des = 32 against exact radii: numbers of nodes differ by at most {100 * apart[:, :half].max():.0f} % up to "
        f"τ = .5 H and by {100 * apart[:, half:].max():.0f} % above."
    )


def accuracy_text(part: common.Record) -> str:
    lines = heading("Accuracy against τ: Fig. 6", part)
    lines.append(
        f"EAC with average linkage at the true k on cuts; means over {part['setting']['runs']} ensembles of 20 "
        "clusterings, in brackets the mean number of nodes. *size*: a node counts for its objects; *unit*: for one, as "
        "in the paper. The curves are in the picture, the dashed line at 90 % of the accuracy at τ = 0. The paper "
        "does not say how wide rings are nor how far apart; where a cut begins to mix them depends on that.\n"
    )
    cells = []
    for name, row in scored(part).items():
        for gamma in ("1", "0.9"):
            number = cell(row, "nodes", gamma)
            for weights in WEIGHTS:
                accuracy = cell(row, weights, gamma)
                at = [column(row, tau) for tau in (0, 0.2, 0.4, 0.5, 0.7, 0.95)]
                cells.append([name, f"{gamma}, {weights}", *(f"{accuracy[i]:.3f} ({number[i]:.0f})" for i in at)])
    header = ["data set", "γ, weights", *(f"τ = {tau} H" for tau in ("0", ".2", ".4", ".5", ".7", ".95"))]
    return "\n".join([*lines, common.table(header, cells)])


# --- defaults ---------------------------------------------------------------------------------------------------------


def chosen(rows: common.Record, order: str, what: str, tau: float, gamma: str) -> np.ndarray:
    """Return (data sets, runs) accuracies by weights, or numbers of nodes."""
    return np.array([row["cells"][f"{order} {tau:g} {gamma}"][what] for row in rows.values()])


def defaults_sentences(part: common.Record) -> Iterator[str]:
    rows = scored(part)
    other = ("given", "size")
    for one in (("given", "unit"), ("coarse", "size"), ("fine", "size")):
        texts = []
        for tau, gamma in RECOMMENDED:
            differences = chosen(rows, *one, tau, gamma) - chosen(rows, *other, tau, gamma)
            signs = [np.sign(d.mean()) if p_value(d) < LEVEL else 0 for d in differences]
            texts.append(
                f"{differences.mean():+.4f} at τ = {tau:g} H, γ = {gamma} "
                f"(p = {p_value(differences.mean(axis=0)):.2g}; significantly better on "
                f"{signs.count(1)} and worse on {signs.count(-1)} of {len(rows)} sets)"
            )
        yield f"Accuracy of order={one[0]!r}, weights={one[1]!r} less that of 'given', 'size': {'; '.join(texts)}."


def defaults_text(part: common.Record) -> str:
    lines, rows = heading("Orders and weights", part), scored(part)
    runs = next(iter(rows.values()))["runs"] if rows else 0
    lines.append(
        f"Accuracy of EAC, means over {runs} ensembles and over the data sets, and the geometric mean of the numbers "
        "of nodes, which the weights do not change.\n"
    )
    for tau, gamma in RECOMMENDED:
        cells = []
        for order in ORDERS:
            number = np.exp(np.log(chosen(rows, order, "nodes", tau, gamma).mean(axis=1)).mean()) if rows else 0.0
            for weights in WEIGHTS:
                accuracy = chosen(rows, order, weights, tau, gamma)
                each = [f"{value:.3f}" for value in accuracy.mean(axis=1)]
                cells.append([order, weights, *each, f"**{accuracy.mean():.4f}**", f"{number:.1f}"])
        header = ["order", "weights", *rows, "mean", "nodes"]
        lines.append(f"τ = {tau:g} H, γ = {gamma}\n\n{common.table(header, cells)}\n")
    return "\n".join(lines)


# --- Table V ----------------------------------------------------------------------------------------------------------


def way(row: common.Record, method: str, setting: str, weights: str = "size") -> tuple[float, float]:
    """Return (median seconds, mean accuracy)."""
    found = row["ways"][f"{method} {setting} {weights}"]
    return float(np.median(found["seconds"])), float(np.mean(found["accuracy"]))


def methods_of(row: common.Record) -> list[str]:
    return list(dict.fromkeys(key.split()[0] for key in row["ways"]))


def times_sentences(part: common.Record) -> Iterator[str]:
    for name, row in scored(part).items():
        printed = paper.TABLE_V.get(name.split(",")[0], {})
        if "dense" not in {key.split()[1] for key in row["ways"]}:
            (c, _), (d, _) = (way(row, "EAC", setting) for setting in "CD")
            yield f"EAC on {name} objects: C takes {c / d:.1f} times as long as D (the paper: {paper.C_TO_D:.1f})."
            continue
        dense, (c, _) = way(row, "EAC", "dense")[0], way(row, "EAC", "C")
        a = way(row, "EAC", "A")[0]
        yield (
            f"EAC on {name} objects: from labels to C {c:.4f} s, {dense / c:.0f} times less than with the N × N matrix "
            f"and SciPy, {a / c:.0f} times less than without a matrix on all objects (the paper's A to C: "
            f"{printed['EAC'][0][0] / printed['EAC'][2][0]:.0f} times)."
        )
        losses = []
        for method in methods_of(row):
            ours = [way(row, method, setting)[1] for setting in "ABCD"]
            theirs = [q for _, q in printed[method]]
            losses.append(f"{method} {' '.join(f'{q:.2f}' for q in ours)} ({' '.join(f'{q:.2f}' for q in theirs)})")
        yield f"Accuracy of A, B, C, D on {name} objects, ours (the paper's): {'; '.join(losses)}."
        units = []
        for method in methods_of(row):
            ours = [way(row, method, setting, "unit")[1] for setting in "BCD"]
            units.append(f"{method} {' '.join(f'{q:.2f}' for q in ours)}")
        yield f"The same of B, C, D where each row counts for one object: {'; '.join(units)}."


def times_text(part: common.Record) -> str:
    lines = heading("Times and accuracies: Table V", part)
    lines.append(
        f"{'; '.join(f'{letter}: {what}' for letter, what in SETTINGS.items())}. H = 10; t is from the labels to those "
        f"of all objects, median of {part['setting']['runs']} ensembles; CSPA and MCLA are METIS on co-association and "
        "on clusters' Jaccard indices, HBGF cuts spectrally. *Dense* is SciPy's average linkage of the N × N matrix. "
        "*Unit* is the accuracy where each node counts as one object, as in the paper.\n"
    )
    cells = []
    for name, row in scored(part).items():
        printed = paper.TABLE_V.get(name.split(",")[0], {}) if "EAC dense size" in row["ways"] else {}
        for method in methods_of(row):
            settings = [s for s in ("dense", *SETTINGS) if f"{method} {s} size" in row["ways"]]
            slowest = way(row, method, "A" if "A" in settings else settings[0])[0]
            for setting in settings:
                seconds, accuracy = way(row, method, setting)
                unit = f"{method} {setting} unit" in row["ways"]
                theirs = printed.get(method, ())
                ratio = quality = "–"
                if setting in SETTINGS and theirs:
                    t, q = theirs["ABCD".index(setting)]
                    ratio, quality = f"{t / theirs[0][0]:.4f}", f"{q:.2f}"
                cells.append([
                    name, f"{method} ({setting})", f"{row['rows'].get(setting, row['n_objects']):,.0f}",
                    f"{1000 * seconds:.1f}", f"{seconds / slowest:.4f}", ratio, f"{accuracy:.3f}",
                    f"{way(row, method, setting, 'unit')[1]:.3f}" if unit else "–", quality,
                ])  # fmt: skip
    header = ["data set", "method", "rows", "t, ms", "t / t(A)", "the paper's", "accuracy", "unit", "the paper's"]
    lines.append(common.table(header, cells))
    loads = ", ".join(f"{row['load']} ({name})" for name, row in scored(part).items())
    return "\n".join([*lines, f"\nBase clusterings take {generation(part)}. Load of the machine: {loads}."])


def generation(part: common.Record) -> str:
    return ", ".join(f"{common.seconds(row['generated'])} s ({name})" for name, row in scored(part).items())


# --- the image and the million ----------------------------------------------------------------------------------------


def image_sentences(part: common.Record) -> Iterator[str]:
    for name, row in scored(part).items():
        ways = row["ways"]
        known = (
            f" accuracy {ways['nodes']['accuracy']:.3f} (core groups {ways['core groups']['accuracy']:.3f}, base "
            f"clusterings {row['base']:.3f}; the paper's, on its own image, .979);"
            if row["base"] is not None
            else ""
        )
        yield (
            f"The image {name.split()[0]}, {' × '.join(map(str, reversed(row['shape'])))} pixels:{known} "
            f"{ways['nodes']['rows']:,} nodes instead of {ways['core groups']['rows']:,} core groups, "
            f"{common.seconds(ways['nodes']['first'])} s; {100 * row['agreement']:.1f} % of the pixels as from core "
            "groups."
        )


def image_text(part: common.Record) -> str:
    lines = heading("Pixels of an image: Fig. 8", part)
    lines.append("RGB, H = 10, k from 3 to 6, τ = .2 H, γ = .9, EAC with average linkage at k = 3.\n")
    cells = []
    for name, row in scored(part).items():
        for label, found in row["ways"].items():
            shares = " ".join(f"{share:.2f}" for share in found["shares"])
            cells.append([
                name, label, f"{found['rows']:,}", common.seconds(row["generated"]), common.seconds(found["first"]),
                common.seconds(found.get("later")), common.number(found.get("accuracy")), shares,
            ])  # fmt: skip
    header = [
        "image",
        "on",
        "rows",
        "base clusterings, s",
        "consensus, s",
        "later, s",
        "accuracy",
        "shares of the pixels",
    ]
    lines.append(common.table(header, cells))
    pictures = [row["picture"] for row in scored(part).values() if "picture" in row]
    return "\n".join([*lines, *(f"\n![{picture}]({picture})" for picture in pictures)])


def million_sentences(part: common.Record) -> Iterator[str]:
    for name, row in scored(part).items():
        total = row["grow"]["first"] + max(found["reduce"]["first"] for found in row["cuts"].values())
        yield (
            f"{row['n_objects']:,} × {row['n_clusterings']} ({name}), {row['groups']:,} different rows: tree and cut "
            f"in {total:.1f} s, target {MILLION_SECONDS:g} s: {common.held(total <= MILLION_SECONDS)}."
        )


def million_text(part: common.Record) -> str:
    lines = heading("A million objects", part)
    lines.append(
        "Points of a mixture in 3 and in 16 dimensions, 20 clusterings with k from 7 to 100, and unrelated labels, of "
        "which no two rows are near. The first call loads compiled code; EAC is left out on more than 50,000 nodes.\n"
    )
    cells = []
    for name, row in scored(part).items():
        steps = {"tree": (row["grow"], row["nodes"])}
        for key, found in row["cuts"].items():
            tau, gamma = key.split()
            steps[f"cut, τ = {tau} H, γ = {gamma}"] = found["reduce"], found["rows"]
            if "eac" in found:
                steps[f"EAC on these {found['rows']:,}"] = found["eac"], found["rows"]
        for label, (step, number) in steps.items():
            cells.append([
                f"{name}, {row['groups']:,} rows", label, f"{number:,}", common.seconds(step["first"]),
                common.seconds(step.get("later")), common.seconds(step["first_cpu"]), common.size(step["peak"]),
                f"{step['load']}",
            ])  # fmt: skip
    header = ["labels", "step", "nodes", "first, s", "later, s", "first, CPU s", "peak", "load"]
    return "\n".join([*lines, common.table(header, cells)])


SENTENCES: dict[str, Callable[[common.Record], Iterable[str]]] = {
    "nodes": nodes_sentences,
    "accuracy": accuracy_sentences,
    "defaults": defaults_sentences,
    "times": times_sentences,
    "image": image_sentences,
    "million": million_sentences,
}
SECTIONS: dict[str, Callable[[common.Record], str]] = {
    "nodes": nodes_text,
    "accuracy": accuracy_text,
    "defaults": defaults_text,
    "times": times_text,
    "image": image_text,
    "million": million_text,
}

# --- pictures ---------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    """Draw accuracy against τ, and the number of nodes against N, a column for each data set."""
    parts = record["parts"]
    accuracy, nodes = (scored(parts.get(name, {"rows": {}})) for name in ("accuracy", "nodes"))
    names = [name for name in paper.DATA_SETS if name in accuracy or name in nodes]
    if not names:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.9 * len(names), 5.6), dpi=110, layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharey="row")
    for name, (upper, lower) in zip(names, axes.T, strict=True):
        upper.set_title(name, fontsize=10)
        if name in accuracy:
            plot_accuracy(upper, accuracy[name])
        if name in nodes:
            plot_nodes(lower, nodes[name])
    axes[0, 0].legend(fontsize=7, loc="lower left")
    if nodes:
        figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=8, fontsize=8)
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("nodes")
    figure.savefig(path)


def plot_accuracy(ax: Any, row: common.Record) -> None:
    for gamma, color in (("1", "C0"), ("0.9", "C1")):
        for weights, style in (("size", "o-"), ("unit", ":")):
            mean, error = cell(row, weights, gamma), cell(row, weights, gamma, of="std") / np.sqrt(row["runs"])
            taus = np.arange(len(mean)) / len(mean)
            ax.plot(taus, mean, f"{color}{style}", ms=3, label=f"γ = {gamma}, {weights}")
            if weights == "size":
                ax.fill_between(taus, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
                tau = next(tau for tau, g in RECOMMENDED if g == gamma)
                ax.plot(tau, mean[column(row, tau)], f"{color}o", ms=8, mfc="none")
    ax.axhline((1 - LOSS) * cell(row, "size", "1")[0], color="k", ls="--", lw=0.8)
    ax.set(xlabel="τ / H", ylim=(0, 1.03))
    ax.grid(alpha=0.3)


def plot_nodes(ax: Any, row: common.Record) -> None:
    for gamma, style in (("1", "o-"), ("0.9", "s:")):
        counts = np.array(row["counts"][gamma])
        for i, tau in enumerate((0, 0.2, 0.4, 0.6)):
            label = f"τ = {tau:g} H, γ = {gamma}"
            ax.loglog(row["sizes"], counts[:, round(tau * counts.shape[1])], f"C{i}{style}", ms=3, lw=1, label=label)
    ax.set_xlabel("N")
    ax.set_xticks(row["sizes"][::2], [f"{n:,}" for n in row["sizes"][::2]])
    ax.minorticks_off()
    ax.grid(alpha=0.3)


def plot_segments(pixels: np.ndarray, labels: np.ndarray, path: Path) -> None:
    """Draw an image, and its segments in their mean colours."""
    from matplotlib.figure import Figure

    means = np.stack([pixels[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
    figure = Figure(figsize=(11, 4.2), dpi=60, layout="constrained")
    for ax, shown, title in zip(
        figure.subplots(1, 2), (pixels, means[labels].astype(np.uint8)), ("pixels", "segments"), strict=True
    ):
        ax.imshow(shown)
        ax.set_title(title)
        ax.axis("off")
    figure.savefig(path)
