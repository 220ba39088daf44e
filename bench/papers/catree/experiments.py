"""Repeat the experiments of the CA-tree paper: how many nodes, how accurate, how fast, an image, a million objects.

DIR holds odr.npz and pd.npz; the other sets are made up. H = 20 base clusterings: k-means with k drawn from the bounds
of the paper's Table II and random objects as first centroids. The parts:

    nodes     how the number of nodes grows with that of objects (Tables III and IV, Fig. 7)
    accuracy  against τ, with and without node reduction (Fig. 6)
    defaults  orders of the clusterings and weights of the nodes at the two settings that the paper recommends
    times     EAC, CSPA, HBGF (spectrally and by METIS) and MCLA on all objects, core groups, and nodes (Table V)
    image     the pixels of an image (Fig. 8)
    million   1,000,000 objects: seconds and memory of the tree, its cut and a consensus

About ten minutes on two cores.
"""

import time
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from papers import methods, printed_by
from papers.catree import findings, sets
from parts import SINGLE, Job, Part

import gpuens as ge
from gpuens.reduction import Reduction

PACKAGES = ("pymetis",)
RUNS = (2, 20)
PRINTED = printed_by("catree")
DOUBLINGS = 4  # N doubles this many times from the smallest to the largest N of Table III
RECOMMENDED = ((0.4, 1.0), (0.2, 0.9))  # recommended pairs (τ, γ)
GAMMAS = (1.0, 0.9)
MORE = 5  # factor of the number of runs for the defaults, whose results differ only a little
FEW_ENOUGH = 50_000  # largest number of nodes for EAC on a million objects
CLUSTERS = 25  # clusters of the set of a million objects
SIZE_V = 10  # base clusterings of Table V and of the image
SETTINGS = {"A": None, "B": (0.0, 1.0), "C": (0.2, 1.0), "D": (0.2, 0.9)}  # (τ, γ)
TIMED = ("EAC", "CSPA", "HBGF", "HBGF-METIS", "MCLA")


def of_sets(task: Any, options: Namespace, runs: int) -> Iterator[Job]:
    """Yield a task for each data set: on as many objects as the paper takes, and to count nodes on several N."""
    shrink = 5 if options.quick else 1
    for name in ("Spherical5", "Half-rings") if options.quick else PRINTED["sets"]:
        low, high = (n // shrink for n in PRINTED["sets"][name]["n_range"])
        sizes = [round(low * (high / low) ** (i / DOUBLINGS)) for i in range(DOUBLINGS + 1)]
        given = {"sizes": sizes} if task is count else {"n_objects": PRINTED["sets"][name]["n_objects"] // shrink}
        yield name, partial(
            common.in_child, task, environment=SINGLE, name=name, data=options.data, runs=runs, seed=options.seed,
            **given,
        )  # fmt: skip


def nodes(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_sets(count, options, options.runs)


def accuracy(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_sets(score, options, options.runs)


def defaults(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_sets(choose, options, options.runs * MORE)


def times(options: Namespace, rows: common.Record) -> Iterator[Job]:
    timed = [(name, n, TIMED, "ABCD") for name, n in PRINTED["objects_V"].items()]
    timed += [("Spherical5", 10_000, ("EAC",), "BCD")]  # for the paper's remark on larger sets
    for name, n, of, settings in [("Spherical5", 200, TIMED, "ABCD")] if options.quick else timed:
        yield f"{name}, {n:,}", partial(
            common.in_child, clock, name=name, n_objects=n, data=options.data, runs=options.runs, seed=options.seed,
            of=of, settings=settings,
        )  # fmt: skip


def image(options: Namespace, rows: common.Record) -> Iterator[Job]:
    for name in ("landscape 48",) if options.quick else ("china", "landscape 480"):
        picture = options.output and options.output.with_name(f"{options.output.stem}_{name.split()[0]}.png")
        yield name, partial(common.in_child, segment, name=name, seed=options.seed, picture=picture)


def million(options: Namespace, rows: common.Record) -> Iterator[Job]:
    for name in ("tiny",) if options.quick else ("3 dimensions", "16 dimensions", "unrelated"):
        yield name, partial(common.in_child, grow, name=name)


PARTS = {
    "nodes": Part(nodes, at_once=2),
    "accuracy": Part(accuracy, at_once=2),
    "defaults": Part(defaults, at_once=2),
    "times": Part(times),
    "image": Part(image),
    "million": Part(million),
}


# --- what the children do ---------------------------------------------------------------------------------------------


class Given:
    """A reduction to given rows."""

    def __init__(self, reduced: Reduction) -> None:
        self.reduced = reduced

    def reduce(self, rows: ge.Rows) -> Reduction:
        return self.reduced


def thresholds(size: int = sets.SIZE) -> list[float]:
    """Return all τ at which a cut can change: 0, 1, … H - 1 clusterings, divided by H."""
    return [i / size for i in range(size)]


def count(name: str, data: str | None, runs: int, seed: int, sizes: Iterable[int]) -> common.Record:
    """Return the mean numbers of nodes for each N and γ, a number for each τ."""
    counts: dict[str, list[list[float]]] = {f"{gamma:g}": [] for gamma in GAMMAS}
    for n_objects in sizes:
        found = []
        for number in range(runs):
            ensemble, _ = sets.run(name, n_objects, data, seed, number)
            tree = ge.CATree().grow(ensemble)
            found.append([[len(tree.kept(tau, gamma)) for tau in thresholds()] for gamma in GAMMAS])
        for gamma, row in zip(counts, np.mean(found, axis=0).tolist(), strict=True):
            counts[gamma].append(row)
    return {"sizes": list(sizes), "counts": counts}


def score(name: str, data: str | None, runs: int, seed: int, n_objects: int) -> common.Record:
    """Return means and standard deviations over runs of EAC's accuracy and the number of nodes, one for each τ.

    Orders other than that given are for curves over nodes.
    """
    k = PRINTED["sets"][name]["n_clusters"]
    found: dict[tuple[str, str], list[list[float]]] = {}
    exact: list[list[int]] = []
    for number in range(runs):
        ensemble, y = sets.run(name, n_objects, data, seed, number)
        exact_tree = ge.CATree(n_des=None).grow(ensemble)
        exact.append([len(exact_tree.cut(tau)) for tau in thresholds()])
        for order in findings.ORDERS:
            tree = ge.CATree(order=order).grow(ensemble)
            for gamma in GAMMAS:
                cell = f"{order} {gamma:g}"
                row = [float(len(tree.kept(tau, gamma))) for tau in thresholds()]
                found.setdefault((cell, "nodes"), []).append(row)
                for weights in findings.WEIGHTS if order == "given" else findings.WEIGHTS[:1]:
                    row = [eac(tree, tau, gamma, weights, k, ensemble, y) for tau in thresholds()]
                    found.setdefault((cell, weights), []).append(row)
    cells: common.Record = {}
    for (cell, what), rows in found.items():
        mean, std = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
        cells.setdefault(cell, {})[what] = {"mean": mean.tolist(), "std": std.tolist()}
    return {"n_objects": n_objects, "k": k, "runs": runs, "cells": cells, "exact": np.mean(exact, axis=0).tolist()}


def choose(name: str, data: str | None, runs: int, seed: int, n_objects: int) -> common.Record:
    """Score EAC at the recommended settings for all orders and weights; lists are [run]."""
    k = PRINTED["sets"][name]["n_clusters"]
    cells: dict[str, dict[str, list[float]]] = {}
    for number in range(runs):
        ensemble, y = sets.run(name, n_objects, data, seed, number)
        for order in findings.ORDERS:
            tree = ge.CATree(order=order).grow(ensemble)
            for tau, gamma in RECOMMENDED:
                cell = cells.setdefault(f"{order} {tau:g} {gamma:g}", {key: [] for key in (*findings.WEIGHTS, "nodes")})
                cell["nodes"].append(len(tree.kept(tau, gamma)))
                for weights in findings.WEIGHTS:
                    cell[weights].append(eac(tree, tau, gamma, weights, k, ensemble, y))
    return {"n_objects": n_objects, "runs": runs, "cells": cells}


def eac(tree: Any, tau: float, gamma: float, weights: str, k: int, ensemble: ge.Ensemble, y: np.ndarray) -> float:
    """Return the accuracy on a cut; if it has fewer nodes than clusters are requested, each node is a cluster."""
    reduced = tree.reduce(tau, gamma, counts=weights)
    made = ge.EAC(min(k, len(reduced.counts)), reduction=Given(reduced)).fit(ensemble)
    return ge.metrics.accuracy(made.labels_, y)


def clock(
    name: str, n_objects: int, data: str | None, runs: int, seed: int, of: list[str], settings: str
) -> common.Record:
    """Return seconds and accuracies of a consensus from the labels on, for each method and setting, over runs.

    "dense" is EAC on the N × N matrix by SciPy, beside setting A, which is EAC on the N rows without a matrix.
    """
    k = PRINTED["sets"][name]["n_clusters"]
    ways = [(method, setting, "size") for method in of for setting in settings]
    ways += [(method, setting, "unit") for method in of for setting in settings if setting in "BCD"]
    ways += [("EAC", "dense", "size")] if "A" in settings else []
    found: dict[str, dict[str, list[float]]] = {" ".join(way): {"seconds": [], "accuracy": []} for way in ways}
    generated, rows_of = [], {setting: [] for setting in settings}
    warnings.simplefilter("ignore")  # METIS may leave a meta-cluster without objects
    for number in range(-1, runs):  # the run -1 imports packages, and is not counted
        start = time.perf_counter()
        ensemble, y = sets.run(name, n_objects, data, seed, max(number, 0), SIZE_V)
        generated.append(time.perf_counter() - start)
        for method, setting, weights in ways:
            start = time.perf_counter()
            if setting == "dense":
                labels, n_rows = dense_average_linkage(ensemble, k), n_objects
            else:
                reduced = reduce(ensemble, setting, weights)
                labels, n_rows = consensus(method, ensemble, reduced, k, max(number, 0)), len(reduced.counts)
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
        return Reduction(ge.Rows(ensemble), everyone)
    if setting == "B" and weights == "size":
        return ge.CoreGroups().reduce(ensemble)
    tau, gamma = SETTINGS[setting]
    return ge.CATree(tau, gamma, counts=weights).reduce(ensemble)


def consensus(method: str, ensemble: ge.Ensemble, reduced: Reduction, k: int, seed: int) -> np.ndarray:
    return methods.estimator(method, k, seed, reduction=Given(reduced)).fit_predict(ensemble)


def dense_average_linkage(ensemble: ge.Ensemble, k: int) -> np.ndarray:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = squareform(1.0 - ge.similarity.coassociation(ensemble), checks=False)
    return fcluster(linkage(distances, "average"), k, "maxclust")


def segment(name: str, seed: int, picture: str | None) -> common.Record:
    """Cluster the pixels of an image by their colours, as the paper does, and on all core groups."""
    pixels, regions = sets.image(name)
    X = pixels.reshape(-1, 3)
    start = time.perf_counter()
    ensemble = sets.base_clusterings(X, (3, 6), np.random.default_rng(seed), SIZE_V)
    record: common.Record = {"shape": pixels.shape[:2], "generated": time.perf_counter() - start, "ways": {}}
    labels = {}
    for way, reduction in {"nodes": ge.CATree(0.2, 0.9), "core groups": None}.items():
        made, found = common.measured(lambda reduction=reduction: ge.EAC(3, reduction=reduction).fit(ensemble))
        labels[way] = made.labels_
        found["rows"] = len(made.reduction_.counts)
        found["shares"] = sorted((np.bincount(made.labels_) / len(X)).tolist(), reverse=True)
        if regions is not None:
            found["accuracy"] = ge.metrics.accuracy(made.labels_, regions.ravel())
        record["ways"][way] = found
    record["agreement"] = ge.metrics.accuracy(labels["nodes"], labels["core groups"])
    base = [ge.metrics.accuracy(column, regions.ravel()) for column in ensemble.codes.T] if regions is not None else []
    record["base"] = float(np.mean(base)) if base else None
    if picture is not None:
        findings.plot_segments(pixels, labels["nodes"].reshape(pixels.shape[:2]), Path(picture))
        record["picture"] = Path(picture).name
    return record


def grow(name: str) -> common.Record:
    """Measure the tree, two cuts, and EAC on cuts of at most `FEW_ENOUGH` nodes."""
    ensemble = ge.Ensemble(sets.many(name))
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
        cut = record["cuts"][f"{tau:g} {gamma:g}"] = {"rows": len(reduced.counts), "reduce": cutting}
        if len(reduced.counts) <= FEW_ENOUGH:
            k = min(CLUSTERS, len(reduced.counts))
            cut["eac"] = common.measured(
                lambda reduced=reduced, k=k: ge.EAC(k, reduction=Given(reduced)).fit(ensemble), later=1
            )[1]
    return record
