"""Repeat the experiments of the CA-tree paper: how many nodes, how accurate, how fast, an image, a million objects.

    python bench/catree.py --data DIR [--only PART ...] [--runs 20] [--output bench/results/catree.json]
    python bench/catree.py --quick

DIR (or GPUENS_DATA) holds odr.npz and pd.npz; the other sets are made up. H = 20 base clusterings: k-means with k drawn
from the bounds of the paper's Table II and random objects as first centroids. The parts:

    nodes     how the number of nodes grows with that of objects (Tables III and IV, Fig. 7)
    accuracy  against τ, with and without node reduction (Fig. 6)
    defaults  orders of the clusterings and weights of the nodes at the two settings that the paper recommends
    times     EAC, CSPA, HBGF and MCLA on all objects, core groups, and nodes (Table V)
    image     the pixels of an image (Fig. 8)
    million   1,000,000 objects: seconds and memory of the tree, its cut and a consensus

About ten minutes on two cores. Results are written after each data set; a part that is of the same machine, versions
and commit goes on where it was stopped, and --only repeats or adds some parts.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import catree_report
import catree_sets
import catree_tables as paper
import cce_methods
import common
import numpy as np
import parts

import gpuens as ge
from gpuens.reduction import Reduction

PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn", "pymetis")
AT_ONCE = 2  # processes that count and score, of one thread each
DOUBLINGS = 4  # of N, from the least to the most of Table III
GAMMAS = (1.0, 0.9)
ORDERS = ("given", "coarse", "fine")
WEIGHTS = ("size", "unit")
RECOMMENDED = ((0.4, 1.0), (0.2, 0.9))  # (τ, γ)
MORE = 5  # times as many runs for the defaults: what differs little is to be told apart
FEW_ENOUGH = 50_000  # nodes for EAC on a million objects
CLUSTERS = 25  # of that
SIZE_V = 10  # base clusterings of Table V and of the image
SETTINGS = {"A": None, "B": (0.0, 1.0), "C": (0.2, 1.0), "D": (0.2, 0.9)}  # (τ, γ)


class Setting:
    """What the parts work on."""

    def __init__(self, quick: bool) -> None:
        self.names = ("Spherical5", "Half-rings") if quick else tuple(paper.DATA_SETS)
        self.shrink = 5 if quick else 1
        self.images = ("landscape 48",) if quick else ("china", "landscape 480")
        self.many = ("tiny",) if quick else ("3 dimensions", "16 dimensions", "unrelated")
        # data set, objects, methods, settings; the last row is the paper's remark on larger sets
        methods = ("EAC", "CSPA", "HBGF", "MCLA")
        self.timed = [("Spherical5", 200, methods, "ABCD")] if quick else [
            *((name, n, methods, "ABCD") for name, n in paper.OBJECTS_V.items()),
            ("Spherical5", 10_000, ("EAC",), "BCD"),
        ]  # fmt: skip


def main() -> None:
    options = parse()
    given = options, Setting(options.quick)
    parts.run("catree", options, PARTS, given, catree_report, packages=PACKAGES, setting={"runs": options.runs})


def parse() -> argparse.Namespace:
    parser = parts.parser(__doc__, PARTS, quick="tiny, on what is made up")
    parser.add_argument("--data", type=Path, help="directory of the data sets (GPUENS_DATA)")
    parser.add_argument("--runs", type=int, help="ensembles of each data set (20)")
    options = parser.parse_args()
    options.runs = options.runs or (2 if options.quick else 20)
    if options.runs < 2:
        parser.error("--runs must be at least 2: differences are tested over runs")
    return options


def in_child(task: str, **arguments: Any) -> common.Record:
    return common.in_child(__file__, task, **arguments)


# --- the parts --------------------------------------------------------------------------------------------------------


def nodes(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    def sizes(name: str) -> list[int]:
        low, high = (n // setting.shrink for n in paper.DATA_SETS[name].n_range)
        return [round(low * (high / low) ** (i / DOUBLINGS)) for i in range(DOUBLINGS + 1)]

    todo = [name for name in setting.names if name not in rows]
    in_threads(todo, found, lambda name: scored(options, "count", name, sizes=sizes(name)))


def accuracy(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    todo = [name for name in setting.names if name not in rows]
    size = {name: paper.DATA_SETS[name].n_objects // setting.shrink for name in todo}
    in_threads(todo, found, lambda name: scored(options, "score", name, n_objects=size[name]))


def defaults(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    todo = [name for name in setting.names if name not in rows]
    size = {name: paper.DATA_SETS[name].n_objects // setting.shrink for name in todo}
    runs = options.runs * MORE
    in_threads(todo, found, lambda name: scored(options, "choose", name, n_objects=size[name], runs=runs))


def scored(options: argparse.Namespace, task: str, name: str, **arguments: Any) -> common.Record:
    arguments = {"runs": options.runs, "seed": options.seed} | arguments
    return in_child(task, environment={"GPUENS_THREADS": "1"}, name=name, data=options.data, **arguments)


def in_threads(todo: list[str], found: parts.Found, row_of: Callable[[str], common.Record]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, row in zip(todo, pool.map(row_of, todo), strict=True):
            found(name, row)


def times(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    for name, n_objects, methods, settings in setting.timed:
        key = f"{name}, {n_objects:,}"
        if key not in rows:
            row = in_child(
                "clock", name=name, n_objects=n_objects, data=options.data, runs=options.runs, seed=options.seed,
                methods=methods, settings=settings,
            )  # fmt: skip
            found(key, row)


def image(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    for name in setting.images:
        picture = None
        if options.output is not None:
            picture = options.output.with_name(f"{options.output.stem}_{name.split()[0]}.png")
        if name not in rows:
            found(name, in_child("segment", name=name, seed=options.seed, picture=picture))


def million(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    for name in setting.many:
        if name not in rows:
            found(name, in_child("grow", name=name))


PARTS = {
    "nodes": nodes,
    "accuracy": accuracy,
    "defaults": defaults,
    "times": times,
    "image": image,
    "million": million,
}


# --- what the children do ---------------------------------------------------------------------------------------------


class Given:
    """A reduction that is known already."""

    def __init__(self, reduced: Reduction) -> None:
        self.reduced = reduced

    def reduce(self, ensemble: ge.Ensemble, counts: np.ndarray | None = None) -> Reduction:
        return self.reduced


def thresholds(size: int = catree_sets.SIZE) -> list[float]:
    """Return all τ at which a cut can change: 0, 1, … H - 1 clusterings, as shares of H."""
    return [i / size for i in range(size)]


def count(name: str, data: str | None, runs: int, seed: int, sizes: Iterable[int]) -> common.Record:
    """Return the mean numbers of nodes for each N and γ, a number for each τ."""
    counts: dict[str, list[list[float]]] = {f"{gamma:g}": [] for gamma in GAMMAS}
    for n_objects in sizes:
        found = []
        for number in range(runs):
            ensemble, _ = catree_sets.run(name, n_objects, data, seed, number)
            tree = ge.CATree().grow(ensemble)
            found.append([[len(tree.kept(tau, gamma)) for tau in thresholds()] for gamma in GAMMAS])
        for gamma, row in zip(counts, np.mean(found, axis=0).tolist(), strict=True):
            counts[gamma].append(row)
    return {"sizes": list(sizes), "counts": counts}


def score(name: str, data: str | None, runs: int, seed: int, n_objects: int) -> common.Record:
    """Return means and standard deviations over runs of EAC's accuracy and the number of nodes, one for each τ.

    Orders other than that given are for curves over nodes.
    """
    k = paper.DATA_SETS[name].n_clusters
    cells: dict[str, dict[str, Any]] = {}
    exact: list[list[int]] = []
    for number in range(runs):
        ensemble, y = catree_sets.run(name, n_objects, data, seed, number)
        exact_tree = ge.CATree(n_des=None).grow(ensemble)
        exact.append([len(exact_tree.cut(tau)) for tau in thresholds()])
        for order in ORDERS:
            tree = ge.CATree(order=order).grow(ensemble)
            for gamma in GAMMAS:
                found: dict[str, list[float]] = {"nodes": [len(tree.kept(tau, gamma)) for tau in thresholds()]}
                for weights in WEIGHTS if order == "given" else WEIGHTS[:1]:
                    found[weights] = [eac(tree, tau, gamma, weights, k, ensemble, y) for tau in thresholds()]
                cell = cells.setdefault(f"{order} {gamma:g}", {key: [] for key in found})
                for key, row in found.items():
                    cell[key].append(row)
    for cell in cells.values():
        for key, found in cell.items():
            cell[key] = {"mean": np.mean(found, axis=0).tolist(), "std": np.std(found, axis=0, ddof=1).tolist()}
    return {"n_objects": n_objects, "k": k, "runs": runs, "cells": cells, "exact": np.mean(exact, axis=0).tolist()}


def choose(name: str, data: str | None, runs: int, seed: int, n_objects: int) -> common.Record:
    """Score EAC at the recommended settings for all orders and weights; lists are [run]."""
    k = paper.DATA_SETS[name].n_clusters
    cells: dict[str, dict[str, list[float]]] = {}
    for number in range(runs):
        ensemble, y = catree_sets.run(name, n_objects, data, seed, number)
        for order in ORDERS:
            tree = ge.CATree(order=order).grow(ensemble)
            for tau, gamma in RECOMMENDED:
                cell = cells.setdefault(f"{order} {tau:g} {gamma:g}", {key: [] for key in (*WEIGHTS, "nodes")})
                cell["nodes"].append(len(tree.kept(tau, gamma)))
                for weights in WEIGHTS:
                    cell[weights].append(eac(tree, tau, gamma, weights, k, ensemble, y))
    return {"n_objects": n_objects, "runs": runs, "cells": cells}


def eac(tree: Any, tau: float, gamma: float, weights: str, k: int, ensemble: ge.Ensemble, y: np.ndarray) -> float:
    """Return the accuracy on a cut; where it has fewer nodes than clusters are wanted, each node is a cluster."""
    reduced = tree.reduce(tau, gamma, weights=weights)
    made = ge.EAC(min(k, len(reduced.weights)), reduction=Given(reduced)).fit(ensemble)
    return ge.metrics.accuracy(made.labels_, y)


def clock(
    name: str, n_objects: int, data: str | None, runs: int, seed: int, methods: list[str], settings: str
) -> common.Record:
    """Return seconds and accuracies of a consensus from the labels on, for each method and setting, over runs.

    "dense" is EAC on the N × N matrix by SciPy, beside setting A, which is EAC on the N rows without a matrix.
    """
    k = paper.DATA_SETS[name].n_clusters
    ways = [(method, setting, "size") for method in methods for setting in settings]
    ways += [(method, setting, "unit") for method in methods for setting in settings if setting in "BCD"]
    if "A" in settings:
        ways.append(("EAC", "dense", "size"))
    found: dict[str, dict[str, list[float]]] = {" ".join(way): {"seconds": [], "accuracy": []} for way in ways}
    generated, rows_of = [], {setting: [] for setting in settings}
    warnings.simplefilter("ignore")  # METIS may leave a meta-cluster to nobody
    for number in range(-1, runs):  # the first to compile and to load
        start = time.perf_counter()
        ensemble, y = catree_sets.run(name, n_objects, data, seed, max(number, 0), SIZE_V)
        generated.append(time.perf_counter() - start)
        for method, setting, weights in ways:
            start = time.perf_counter()
            if setting == "dense":
                labels, n_rows = dense_average_linkage(ensemble, k), n_objects
            else:
                reduced = reduce(ensemble, setting, weights)
                labels, n_rows = consensus(method, ensemble, reduced, k, max(number, 0)), len(reduced.weights)
            seconds = time.perf_counter() - start
            if number >= 0:
                cell = found[f"{method} {setting} {weights}"]
                cell["seconds"].append(seconds)
                cell["accuracy"].append(ge.metrics.accuracy(labels, y))
                if (method, weights) == ("EAC", "size") and setting in rows_of:
                    rows_of[setting].append(n_rows)
    return {
        "n_objects": n_objects,
        "runs": runs,
        "generated": float(np.mean(generated[1:])),
        "rows": {setting: float(np.mean(numbers)) for setting, numbers in rows_of.items()},
        "ways": found,
        "load": common.load(),
    }


def reduce(ensemble: ge.Ensemble, setting: str, weights: str) -> Reduction:
    if SETTINGS[setting] is None:
        everyone = np.arange(ensemble.n_objects)
        return Reduction(ensemble, np.ones_like(everyone), everyone)
    if setting == "B" and weights == "size":
        return ge.CoreGroups().reduce(ensemble)
    tau, gamma = SETTINGS[setting]
    return ge.CATree(tau, gamma, weights=weights).reduce(ensemble)


def consensus(method: str, ensemble: ge.Ensemble, reduced: Reduction, k: int, seed: int) -> np.ndarray:
    if method == "EAC":
        return ge.EAC(k, reduction=Given(reduced)).fit_predict(ensemble)
    if method == "HBGF":
        return ge.HBGF(k, random_state=seed, reduction=Given(reduced)).fit_predict(ensemble)
    return reduced.expand(cce_methods.CONTROLS[method](reduced, k, seed))


def dense_average_linkage(ensemble: ge.Ensemble, k: int) -> np.ndarray:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = squareform(1.0 - ge.similarity.coassociation(ensemble), checks=False)
    return fcluster(linkage(distances, "average"), k, "maxclust")


def segment(name: str, seed: int, picture: str | None) -> common.Record:
    """Cluster the pixels of an image by their colours, as the paper does, and on all core groups."""
    pixels, regions = catree_sets.image(name)
    X = pixels.reshape(-1, 3)
    start = time.perf_counter()
    ensemble = catree_sets.base_clusterings(X, (3, 6), np.random.default_rng(seed), SIZE_V)
    generated = time.perf_counter() - start
    record: common.Record = {"shape": pixels.shape[:2], "generated": generated, "ways": {}}
    labels = {}
    for way, reduction in {"nodes": ge.CATree(0.2, 0.9), "core groups": None}.items():
        made, found = common.measured(lambda reduction=reduction: ge.EAC(3, reduction=reduction).fit(ensemble))
        labels[way] = made.labels_
        found["rows"] = len(made.reduction_.weights)
        found["shares"] = sorted((np.bincount(made.labels_) / len(X)).tolist(), reverse=True)
        if regions is not None:
            found["accuracy"] = ge.metrics.accuracy(made.labels_, regions.ravel())
        record["ways"][way] = found
    record["agreement"] = ge.metrics.accuracy(labels["nodes"], labels["core groups"])
    base = [ge.metrics.accuracy(column, regions.ravel()) for column in ensemble.codes.T] if regions is not None else []
    record["base"] = float(np.mean(base)) if base else None
    if picture is not None:
        catree_report.plot_segments(pixels, labels["nodes"].reshape(pixels.shape[:2]), Path(picture))
        record["picture"] = Path(picture).name
    return record


def grow(name: str) -> common.Record:
    """Measure the tree, two cuts, and EAC on those that are not too many nodes to be worth it."""
    ensemble = ge.Ensemble(catree_sets.many(name))
    before = common.peak_memory()
    tree, growing = common.measured(lambda: ge.CATree().grow(ensemble))
    record = {
        "n_objects": ensemble.n_objects,
        "n_clusterings": ensemble.n_clusterings,
        "groups": tree.n_leaves,
        "nodes": len(tree),
        "before": before,
        "grow": growing,
        "cuts": {},
    }
    for tau, gamma in RECOMMENDED:
        reduced, cutting = common.measured(lambda tau=tau, gamma=gamma: tree.reduce(tau, gamma))
        cut = record["cuts"][f"{tau:g} {gamma:g}"] = {"rows": len(reduced.weights), "reduce": cutting}
        if len(reduced.weights) <= FEW_ENOUGH:
            k = min(CLUSTERS, len(reduced.weights))
            cut["eac"] = common.measured(
                lambda reduced=reduced, k=k: ge.EAC(k, reduction=Given(reduced)).fit(ensemble), later=1
            )[1]
    return record


if __name__ == "__main__":
    common.serve({"count": count, "score": score, "choose": choose, "clock": clock, "segment": segment, "grow": grow})
    main()
