"""Repeat the LWEC paper's Tables V and VII (and III, IV) on the base clusterings its authors published.

    python bench/reproduce_lwec.py --data DIR [--draws 20] [--theta-curve] [--output bench/results/lwec.json]

DIR (or GPUENS_DATA) holds pools/lwec_NAME.npz: ``members`` (N, 100), the pool of base clusterings, and ``y``, the
classes. Each draw takes 10 clusterings of the pool without replacement, the same for all methods, and asks for as many
clusters as there are classes. A mean is held to reproduce the paper's when it is within 1.5 of the paper's standard
deviations of it. Prints Markdown, writes it and JSON and, for --theta-curve, a picture beside them.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import common
import lwec_tables as paper
import numpy as np

import gpuens as ge
from gpuens.progress import bar

THETA = 0.4
SIZE = 10  # base clusterings in an ensemble
METHODS = ("lwea", "lwgp", "eac", "hbgf")
TOLERANCE = 1.5  # of the paper's standard deviations
PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn")

CURVES = {"lwea": ("LWEA, Table III", paper.TABLE_III), "lwgp": ("LWGP, Table IV", paper.TABLE_IV)}


def nmi_max(a: Any, b: Any) -> float:
    return ge.metrics.nmi(a, b, average="max")


SCORES: dict[str, tuple[str, dict, Callable]] = {
    "nmi_max": ("NMI normalised by the maximum, Table V", paper.TABLE_V_TRUE_K, nmi_max),
    "ari": ("ARI, Table VII", paper.TABLE_VII_TRUE_K, ge.metrics.ari),
}


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    pools = read_pools(options.data, options.only)
    result = {"setting": setting(options), **common.about(PACKAGES)}
    result["tables"] = true_k_tables(pools, options.draws, options.seed)
    report = f"# The LWEC paper's tables\n\n{common.machine_line(result)}\n{markdown(result['tables'])}"
    print(report)
    common.save(options.output, result, report)
    if options.theta_curve:
        result["theta"] = theta_curves(pools, options.theta_draws, options.seed)
        curves = theta_markdown(result["theta"])
        print(curves)
        common.save(options.output, result, f"{report}\n{curves}")
        picture = options.output.with_suffix(".png")
        plot_theta(result["theta"], picture)
        print(f"\nThe curves are in {picture}.")
    print(f"\nAll scores are in {options.output}.")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("GPUENS_DATA"), help="directory (GPUENS_DATA)")
    parser.add_argument("--draws", type=int, default=20, help="ensembles drawn from each pool (the paper: 100)")
    parser.add_argument("--theta-curve", action="store_true", help="also Tables III and IV (20 minutes)")
    parser.add_argument("--theta-draws", type=int, default=5, help="ensembles for each θ (the paper: 20)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "lwec.json")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("--data (or GPUENS_DATA) must name the directory that holds pools/lwec_*.npz")
    options.data = Path(options.data)
    if min(options.draws, options.theta_draws) < 1:
        parser.error("--draws and --theta-draws must be at least 1")
    return options


# --- the ensembles ----------------------------------------------------------------------------------------------------


def read_pools(directory: Path, only: Iterable[str] | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return {data set: (members, classes)}, those with few objects first."""
    found = {path.stem.removeprefix("lwec_"): path for path in (directory / "pools").glob("lwec_*.npz")}
    names = list(only or found)
    if not found or not set(names) <= set(found):
        sys.exit(f"{directory / 'pools'} holds {', '.join(sorted(found)) or 'no pool'}; asked for {names or 'all'}.")
    pools = {}
    for name in names:
        with np.load(found[name]) as file:
            pools[name] = file["members"], file["y"]
    return dict(sorted(pools.items(), key=lambda item: len(item[1][1])))


def draws(members: np.ndarray, n_draws: int, seed: int) -> Iterator[tuple[int, ge.Ensemble]]:
    """Yield (draw, ensemble of SIZE clusterings of the pool); draw i is the same however many are drawn."""
    for draw in range(n_draws):
        columns = np.random.default_rng([seed, draw]).choice(members.shape[1], SIZE, replace=False)
        yield draw, ge.Ensemble(members[:, columns])


def parameters(method: str, draw: int, theta: float = THETA) -> dict[str, Any]:
    weighted = {"theta": theta} if method in ("lwea", "lwgp") else {}
    return weighted | ({"random_state": draw} if method in ("lwgp", "hbgf") else {})


# --- Tables V and VII -------------------------------------------------------------------------------------------------


def true_k_tables(pools: dict, n_draws: int, seed: int) -> dict[str, Any]:
    """Return {data set: {method: {score: [of each draw], "seconds": [of each draw]}}}."""
    warm_up(pools)
    tables: dict[str, Any] = {}
    with bar(len(pools) * n_draws * len(METHODS), "Tables V and VII") as progress:
        for name, (members, classes) in pools.items():
            rows = tables[name] = {method: {score: [] for score in (*SCORES, "seconds")} for method in METHODS}
            for draw, ensemble in draws(members, n_draws, seed):
                for method in METHODS:
                    start = time.perf_counter()
                    labels = ge.consensus(
                        ensemble, n_clusters=len(np.unique(classes)), method=method, **parameters(method, draw)
                    )
                    rows[method]["seconds"].append(time.perf_counter() - start)
                    for score, (_, _, score_of) in SCORES.items():
                        rows[method][score].append(score_of(labels, classes))
                    progress.update()
    return tables


def warm_up(pools: dict) -> None:
    """Compile (or load) what the methods need, so that the seconds are those of the work."""
    members, _ = next(iter(pools.values()))
    for method in METHODS:
        ge.consensus(members[:, :SIZE], n_clusters=2, method=method)


def verdict(values: list[float], cell: paper.Cell) -> tuple[str, bool | None]:
    """Return (distance in the paper's standard deviations, whether that is within the tolerance or None)."""
    if cell is None or cell[1] is None:
        return "–", None
    distance = (float(np.mean(values)) - cell[0]) / cell[1]
    return f"{distance:+.1f}", abs(distance) <= TOLERANCE


def markdown(tables: dict[str, Any]) -> str:
    lines = []
    for score, (title, printed, _) in SCORES.items():
        verdicts = []
        lines += [
            f"\n## {title}\n",
            f"| data set | method | ours | paper | ours - paper, in its std | within {TOLERANCE} |",
            "|---|---|---|---|---|---|",
        ]
        for name, rows in tables.items():
            for method, scores in rows.items():
                cell = printed[method.upper()].get(name)
                distance, within = verdict(scores[score], cell)
                verdicts.append(within)
                lines.append(
                    f"| {name} | {method.upper()} | {mean_std(scores[score])} | {printed_cell(cell)} | {distance} | "
                    f"{'–' if within is None else 'yes' if within else '**no**'} |"
                )
        known = [within for within in verdicts if within is not None]
        lines.append(
            f"\n{sum(known)} of {len(known)} means are within {TOLERANCE} standard deviations of the paper's; "
            f"{len(verdicts) - len(known)} of the paper's cells cannot be read."
        )
    lines += ["\n## Seconds for one consensus\n", f"| data set | {' | '.join(map(str.upper, METHODS))} |"]
    lines.append("|---" * (len(METHODS) + 1) + "|")
    for name, rows in tables.items():
        seconds = (f"{np.mean(rows[method]['seconds']):.2f}" for method in METHODS)
        lines.append(f"| {name} | {' | '.join(seconds)} |")
    return "\n".join(lines)


def mean_std(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def printed_cell(cell: paper.Cell) -> str:
    if cell is None:
        return "not readable"
    return f"{cell[0]:.3f} ± {'?' if cell[1] is None else f'{cell[1]:.3f}'}"


# --- Tables III and IV ------------------------------------------------------------------------------------------------


def theta_curves(pools: dict, n_draws: int, seed: int) -> dict[str, Any]:
    """Return {data set: {method: {"true_k" or "best_k": {θ: mean NMI}}}}.

    The tables' figures are those of the best k (see lwec_tables). It is sought for each draw among all 2 … √N for
    LWEA, whose one dendrogram gives them all, and among a few multiples of the true k for LWGP.
    """
    curves: dict[str, Any] = {}
    with bar(len(pools) * n_draws * len(paper.THETAS), "Tables III and IV") as progress:
        for name, (members, classes) in pools.items():
            n_classes = len(np.unique(classes))
            largest = math.isqrt(len(classes))
            multiples = sorted({min(max(2, round(n_classes * f)), largest) for f in (0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4)})
            found: dict[str, Any] = {
                method: {which: {t: [] for t in paper.THETAS} for which in ("true_k", "best_k")} for method in CURVES
            }
            for draw, ensemble in draws(members, n_draws, seed):
                for theta in paper.THETAS:
                    by_k = {
                        "lwea": lwea_scores(ensemble, classes, theta, range(2, largest + 1)),
                        "lwgp": lwgp_scores(ensemble, classes, theta, multiples, draw),
                    }
                    for method, scores in by_k.items():
                        found[method]["true_k"][theta].append(scores[n_classes])
                        found[method]["best_k"][theta].append(max(scores.values()))
                    progress.update()
            curves[name] = {
                method: {which: {t: float(np.mean(v)) for t, v in by_theta.items()} for which, by_theta in row.items()}
                for method, row in found.items()
            }
    return curves


def lwea_scores(ensemble: ge.Ensemble, classes: np.ndarray, theta: float, ks: Iterable[int]) -> dict[int, float]:
    estimator = ge.LWEA(n_clusters=2, theta=theta).fit(ensemble)
    return {k: nmi_max(estimator.reduction_.expand(estimator.dendrogram_.cut(k)), classes) for k in ks}


def lwgp_scores(
    ensemble: ge.Ensemble, classes: np.ndarray, theta: float, ks: Iterable[int], draw: int
) -> dict[int, float]:
    return {
        k: nmi_max(ge.LWGP(n_clusters=k, theta=theta, random_state=draw).fit_predict(ensemble), classes) for k in ks
    }


def theta_markdown(curves: dict[str, Any]) -> str:
    lines = []
    for method, (title, printed) in CURVES.items():
        lines += [
            f"\n## {title}: NMI over θ\n",
            f"| data set | k | {' | '.join(f'θ = {t:g}' for t in paper.THETAS)} |",
            "|---" * (len(paper.THETAS) + 2) + "|",
        ]
        for name, rows in curves.items():
            sources = {"paper": printed.get(name, {}), **rows[method]}
            for label, row in zip(("paper", "ours, true k", "ours, best k"), sources.values(), strict=True):
                figures = (f"{row[t]:.3f}" if t in row else "–" for t in paper.THETAS)
                lines.append(f"| {name} | {label} | {' | '.join(figures)} |")
    return "\n".join(lines)


def plot_theta(curves: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(curves), figsize=(2.6 * len(curves), 5.2), sharex=True, squeeze=False)
    for column, (name, rows) in enumerate(curves.items()):
        for row, (method, (_, printed)) in enumerate(CURVES.items()):
            ax = axes[row, column]
            lines = {"ours, best k": (rows[method]["best_k"], "C0o-"), "ours, true k": (rows[method]["true_k"], "C0o:")}
            if name in printed:
                lines["paper"] = printed[name], "C1s-"
            for label, (curve, style) in lines.items():
                ax.semilogx(paper.THETAS, list(curve.values()), style, markersize=4, label=label)
            ax.set_title(f"{name}, {method.upper()}", fontsize=9)
            ax.set_xticks(paper.THETAS, [f"{t:g}" if t not in (0.6, 0.8) else "" for t in paper.THETAS], fontsize=7)
            ax.minorticks_off()
            ax.tick_params(axis="y", labelsize=7)
            ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set_ylabel("NMI (max)", fontsize=8)
    for ax in axes[1]:
        ax.set_xlabel("θ", fontsize=8)
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


# --- the record -------------------------------------------------------------------------------------------------------


def setting(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "date": common.today(),
        "draws": options.draws,
        "clusterings in a draw": SIZE,
        "theta": THETA,
        "theta_draws": options.theta_draws if options.theta_curve else None,
        "seed": options.seed,
    }


if __name__ == "__main__":
    main()
