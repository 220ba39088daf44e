"""The findings of the CA-tree experiments; every verdict is computed from the figures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
from papers import printed_by
from report import LEVEL, Found, p_value, scored

PRINTED = printed_by("catree")
RECOMMENDED = ((0.4, "1"), (0.2, "0.9"))  # recommended pairs (τ, γ)
GAMMAS, ORDERS, WEIGHTS = ("1", "0.9"), ("given", "coarse", "fine"), ("size", "unit")
LOSS = 0.1  # share of the accuracy at τ = 0 that may be lost, as in the paper
MILLION_SECONDS = 5.0
TOLERANCE, ROUNDING = 1.5, 0.005  # standard deviations over runs; the paper prints two digits

# --- numbers of nodes -------------------------------------------------------------------------------------------------


def exponents(row: common.Record, gamma: str) -> list[float]:
    """Return α(τ) at the paper's τ: the slope of log N_Z over log N."""
    counts = np.array(row["counts"][gamma])
    columns = [round(tau * counts.shape[1]) for tau in PRINTED["taus"]]
    return np.polyfit(np.log(row["sizes"]), np.log(counts[:, columns]), 1)[0].tolist()


def nodes_lines(rows: common.Record, gamma: str) -> Iterator[common.Record]:
    for name, row in rows.items():
        printed = PRINTED["sets"][name]["alphas"][gamma]
        line = {"low": row["sizes"][0], "high": row["sizes"][-1], "nodes": row["counts"][gamma][-1][0]}
        yield line | {"key": name, "gamma": gamma, "ours": exponents(row, gamma), "theirs": printed}


def nodes(rows: common.Record) -> Iterator[Found]:
    lines = {gamma: list(nodes_lines(rows, gamma)) for gamma in GAMMAS}
    for gamma, lines_of_gamma in lines.items():
        ours, printed = (np.array([line[source] for line in lines_of_gamma]) for source in ("ours", "theirs"))
        apart, r = np.abs(ours - printed), np.corrcoef(ours.ravel(), printed.ravel())[0, 1]
        yield "apart", {"n": ours.size, "gamma": gamma, "mean": apart.mean(), "most": apart.max(), "r": r}
    above = [
        f"{line['key']} at γ = {gamma}"
        for tau, gamma in RECOMMENDED
        for line in lines[gamma]
        if line["ours"][PRINTED["taus"].index(tau)] >= 0.5
    ]
    yield "above", {"above": above}


# --- accuracy against τ -----------------------------------------------------------------------------------------------


def cell(row: common.Record, measure: str, gamma: str, order: str = "given", of: str = "mean") -> np.ndarray:
    """Return the mean accuracies by "size" or "unit", or numbers of "nodes", for each τ."""
    return np.array(row["cells"][f"{order} {gamma}"][measure][of])


def column(row: common.Record, tau: float) -> int:
    return round(tau * len(cell(row, "nodes", "1")))


def gain(row: common.Record, curve: tuple[str, ...], base: tuple[str, ...]) -> float:
    """Return the mean difference of two curves of accuracy over nodes, each given by (weights, γ, order).

    The mean is over the logarithms of the numbers of nodes that both curves have.
    """
    curves = [(cell(row, "nodes", *way[1:])[::-1], cell(row, *way)[::-1]) for way in (curve, base)]
    low, high = max(nodes[0] for nodes, _ in curves), min(nodes[-1] for nodes, _ in curves)
    grid = np.linspace(np.log(low), np.log(high), 200)
    return float(np.mean([np.interp(grid, np.log(nodes), accuracy) for nodes, accuracy in curves], axis=1) @ (1, -1))


def accuracy(rows: common.Record) -> Iterator[Found]:
    for tau, gamma in (*RECOMMENDED, (0.5, "1")):
        texts = []
        for weights in WEIGHTS:
            short = []
            for name, row in rows.items():
                full, reduced = cell(row, weights, "1")[0], cell(row, weights, gamma)[column(row, tau)]
                if reduced < (1 - LOSS) * full:
                    short.append(f"{name} ({reduced:.2f} of {full:.2f})")
            but = f", not on {', '.join(short)}" if short else ""
            texts.append(f"on {len(rows) - len(short)} of {len(rows)} with weights={weights!r}{but}")
        yield "keeps", {"tau": tau, "gamma": gamma, "each": "; ".join(texts)}
    smallest = {name: (cell(row, "nodes", "0.9") / cell(row, "nodes", "1")).min() for name, row in rows.items()}
    ratios = [f"{name} {ratio:.3f} ({PRINTED['sets'][name]['ratio']:.3f})" for name, ratio in smallest.items()]
    yield "ratio", {"each": ratios}
    for weights in WEIGHTS:
        gains = [f"{name} {gain(row, (weights, '0.9'), (weights, '1')):+.3f}" for name, row in rows.items()]
        yield "reduction", {"weights": weights, "gains": gains}
    texts = []
    for order in ("coarse", "fine"):
        for gamma in GAMMAS:
            rises = [gain(row, ("size", gamma, order), ("size", gamma)) for row in rows.values()]
            texts.append(f"{order!r}, γ = {gamma}: {np.mean(rises):+.3f} ({min(rises):+.3f} to {max(rises):+.3f})")
    yield "orders", {"each": "; ".join(texts)}
    halves = {name: number for name, number in PRINTED["at_half"].items() if name in rows}
    ours = {name: cell(rows[name], "nodes", "1")[column(rows[name], 0.5)] for name in halves}
    yield "half", {"each": [f"{name} {ours[name]:.0f} ({number})" for name, number in halves.items()]}
    apart = 100 * np.array([np.abs(cell(row, "nodes", "1") / row["exact"] - 1) for row in rows.values()])
    half = apart.shape[1] // 2 + 1
    yield "radii", {"below": apart[:, :half].max(), "above": apart[:, half:].max()}


def accuracy_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        for gamma in GAMMAS:
            for weights in WEIGHTS:
                columns = [column(row, tau) for tau in (0, 0.2, 0.4, 0.5, 0.7, 0.95)]
                points = list(zip(cell(row, weights, gamma)[columns], cell(row, "nodes", gamma)[columns], strict=True))
                yield {"key": name, "gamma": gamma, "weights": weights, "at": points}


# --- defaults ---------------------------------------------------------------------------------------------------------


def chosen(rows: common.Record, order: str, measure: str, tau: float, gamma: str) -> np.ndarray:
    """Return (data sets, runs) accuracies by weights, or numbers of nodes."""
    return np.array([row["cells"][f"{order} {tau:g} {gamma}"][measure] for row in rows.values()])


def defaults(rows: common.Record) -> Iterator[Found]:
    for order, weights in (("given", "unit"), ("coarse", "size"), ("fine", "size")):
        texts = []
        for way in RECOMMENDED:
            differences = chosen(rows, order, weights, *way) - chosen(rows, "given", "size", *way)
            signs = [np.sign(d.mean()) if p_value(d) < LEVEL else 0 for d in differences]
            texts.append(
                f"{differences.mean():+.4f} at τ = {way[0]:g} H, γ = {way[1]} "
                f"(p = {p_value(differences.mean(axis=0)):.2g}; significantly better on "
                f"{signs.count(1)} and worse on {signs.count(-1)} of {len(rows)} sets)"
            )
        yield "order", {"order": order, "weights": weights, "each": "; ".join(texts)}


def defaults_values(rows: common.Record, record: common.Record) -> common.Record:
    recommended = [f"{tau:g} {gamma}" for tau, gamma in RECOMMENDED]
    return {"runs": next(iter(rows.values()))["runs"], "lists": {"set": list(rows), "recommended": recommended}}


def defaults_lines(rows: common.Record, recommended: str) -> Iterator[common.Record]:
    way = float(recommended.split()[0]), recommended.split()[1]
    for order in ORDERS:
        number = np.exp(np.log(chosen(rows, order, "nodes", *way).mean(axis=1)).mean())
        for weights in WEIGHTS:
            accuracy = chosen(rows, order, weights, *way)
            mean_of_sets = dict(zip(rows, accuracy.mean(axis=1), strict=True))
            line = {"order": order, "weights": weights, "each": mean_of_sets, "mean": accuracy.mean(), "nodes": number}
            yield line | {"tau": way[0], "gamma": way[1]}


# --- Table V ----------------------------------------------------------------------------------------------------------


def way_of(row: common.Record, method: str, setting: str, weights: str = "size") -> tuple[float, float]:
    """Return (median seconds, mean accuracy)."""
    found = row["ways"][f"{method} {setting} {weights}"]
    return float(np.median(found["seconds"])), float(np.mean(found["accuracy"]))


def printed_times(name: str, row: common.Record) -> common.Record:
    """Return the paper's figures for a set of that size: {method: [[seconds, accuracy] of A … D]}."""
    return PRINTED["V"].get(name.split(",")[0], {}) if "EAC dense size" in row["ways"] else {}


def methods_of(row: common.Record) -> list[str]:
    return list(dict.fromkeys(key.split()[0] for key in row["ways"]))


def times(rows: common.Record) -> Iterator[Found]:
    for name, row in rows.items():
        c = way_of(row, "EAC", "C")[0]
        if "EAC dense size" not in row["ways"]:
            paper_ratio = PRINTED["C_to_D"][0] / PRINTED["C_to_D"][1]
            yield "larger", {"key": name, "ratio": c / way_of(row, "EAC", "D")[0], "theirs": paper_ratio}
            continue
        printed = printed_times(name, row)
        dense, a = way_of(row, "EAC", "dense")[0] / c, way_of(row, "EAC", "A")[0] / c
        paper_ratio = printed["EAC"][0][0] / printed["EAC"][2][0]
        yield "faster", {"key": name, "c": c, "dense": dense, "a": a, "theirs": paper_ratio}
        losses, units = [], []
        for method in methods_of(row):
            ours = " ".join(f"{way_of(row, method, setting)[1]:.2f}" for setting in "ABCD")
            unit = " ".join(f"{way_of(row, method, setting, 'unit')[1]:.2f}" for setting in "BCD")
            losses.append(
                f"{method} {ours} ({' '.join(f'{q:.2f}' for _, q in printed[method.removesuffix('-METIS')])})"
            )
            units.append(f"{method} {unit}")
        yield "accuracy", {"key": name, "each": "; ".join(losses)}
        yield "unit", {"each": "; ".join(units)}
        near = {method: near_paper(name, row, method) for method in methods_of(row)}
        yield "near", {"key": name, "each": [f"{method} {n} of 4" for method, n in near.items()]}


def near_paper(name: str, row: common.Record, method: str) -> int:
    """Return the number of settings whose accuracy differs from the paper's by at most 1.5 standard deviations."""
    ways = [row["ways"][f"{method} {setting} size"]["accuracy"] for setting in "ABCD"]
    means = [q for _, q in printed_times(name, row)[method.removesuffix("-METIS")]]
    return sum(
        abs(np.mean(runs) - q) <= TOLERANCE * np.std(runs, ddof=1) + ROUNDING
        for runs, q in zip(ways, means, strict=True)
    )


def times_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        for method in methods_of(row):
            settings = [s for s in ("dense", *"ABCD") if f"{method} {s} size" in row["ways"]]
            slowest = way_of(row, method, "A" if "A" in settings else settings[0])[0]
            for setting in settings:
                seconds, accuracy = way_of(row, method, setting)
                line = {"key": name, "method": method, "setting": setting, "accuracy": accuracy}
                line |= {"ms": 1000 * seconds, "ratio": seconds / slowest}
                line["n_rows"] = row["rows"].get(setting, row["n_objects"])
                if f"{method} {setting} unit" in row["ways"]:
                    line["unit"] = way_of(row, method, setting, "unit")[1]
                theirs = printed_times(name, row).get(method.removesuffix("-METIS"))
                if theirs and setting != "dense":
                    t, q = theirs["ABCD".index(setting)]
                    line |= {"their_ratio": t / theirs[0][0], "their_accuracy": q}
                yield line


def times_values(rows: common.Record, record: common.Record) -> common.Record:
    generated = [f"{common.seconds(row['generated'])} s ({name})" for name, row in rows.items()]
    return {"generated": generated, "load": [f"{row['load']} ({name})" for name, row in rows.items()]}


# --- the image and the million ----------------------------------------------------------------------------------------


def image(rows: common.Record) -> Iterator[Found]:
    for name, row in rows.items():
        nodes, groups = row["ways"]["nodes"], row["ways"]["core groups"]
        known = (
            f" accuracy {nodes['accuracy']:.3f} (core groups {groups['accuracy']:.3f}, base clusterings "
            f"{row['base']:.3f}; the paper's, on its own image, .979);"
            if row["base"] is not None
            else ""
        )
        pixels = " × ".join(map(str, reversed(row["shape"])))
        values = {"name": name.split()[0], "known": known, "pixels": pixels, "agreement": row["agreement"]}
        yield "image", values | {"nodes": nodes["rows"], "groups": groups["rows"], "first": nodes["first"]}


def image_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        for way, result in row["ways"].items():
            shares = " ".join(f"{share:.2f}" for share in result["shares"])
            yield {"key": name, "way": way, "generated": row["generated"], "shown": shares, **result}


def image_values(rows: common.Record, record: common.Record) -> common.Record:
    pictures = [row["picture"] for row in rows.values() if "picture" in row]
    return {"pictures": "\n\n".join(f"![{picture}]({picture})" for picture in pictures)}


def million(rows: common.Record) -> Iterator[Found]:
    for name, row in rows.items():
        total = row["grow"]["first"] + max(cut["reduce"]["first"] for cut in row["cuts"].values())
        cut = {"total": total, "target": MILLION_SECONDS, "met": total <= MILLION_SECONDS}
        yield "cost", {"key": name, **row, **cut}


def million_lines(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        steps = {"tree": (row["grow"], row["nodes"])}
        for key, cut in row["cuts"].items():
            tau, gamma = key.split()
            steps[f"cut, τ = {tau} H, γ = {gamma}"] = cut["reduce"], cut["rows"]
            if "eac" in cut:
                steps[f"EAC on these {cut['rows']:,}"] = cut["eac"], cut["rows"]
        for step, (cut, number) in steps.items():
            yield {"key": name, "groups": row["groups"], "step": step, "nodes": number, "found": cut}


# --- pictures ---------------------------------------------------------------------------------------------------------


def plot(record: common.Record, path: Path) -> None:
    """Draw accuracy against τ, and the number of nodes against N, a column for each data set."""
    from matplotlib.figure import Figure

    accuracy, nodes = (scored(record["parts"].get(name, {"rows": {}})) for name in ("accuracy", "nodes"))
    names = [name for name in PRINTED["sets"] if name in accuracy or name in nodes]
    if not names:
        return
    figure = Figure(figsize=(2.9 * len(names), 5.6), dpi=110, layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharey="row")
    for name, (upper, lower) in zip(names, axes.T, strict=True):
        upper.set_title(name, fontsize=10)
        if name in accuracy:
            plot_accuracy(upper, accuracy[name])
        if name in nodes:
            plot_nodes(lower, nodes[name])
    axes[0, 0].legend(fontsize=7, loc="lower left")
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=8, fontsize=8)
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("nodes")
    figure.savefig(path)


def plot_accuracy(ax: Any, row: common.Record) -> None:
    for (tau, gamma), color in zip(RECOMMENDED, ("C0", "C1"), strict=True):
        for weights, style in (("size", "o-"), ("unit", ":")):
            mean, error = cell(row, weights, gamma), cell(row, weights, gamma, of="std") / np.sqrt(row["runs"])
            taus = np.arange(len(mean)) / len(mean)
            ax.plot(taus, mean, f"{color}{style}", ms=3, label=f"γ = {gamma}, {weights}")
            if weights == "size":
                ax.fill_between(taus, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
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
    pictures = {"pixels": pixels, "segments": means[labels].astype(np.uint8)}
    for ax, title in zip(figure.subplots(1, 2), pictures, strict=True):
        ax.imshow(pictures[title])
        ax.set_title(title)
        ax.axis("off")
    figure.savefig(path)
