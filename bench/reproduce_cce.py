"""Repeat the experiments of the CCE paper: small sets, documents, large sets, and what it costs at 20,000 groups.

    python bench/reproduce_cce.py --data DIR [--only PART ...] [--runs 50] [--output bench/results/cce.json]
    python bench/reproduce_cce.py --quick

DIR (or GPUENS_DATA) holds the data sets. L = 10 base clusterings: k-means with k = the number of classes, each fitted
to a random 70 % of the objects, the rest by the nearest centroid; as many clusters are asked for. The parts:

    small      the paper's eleven small sets, all methods and their counterparts without coupling (Tables VII, VIII)
    documents  four sets of documents, tf-idf (Tables IX, X)
    scaling    2,000 to 14,000 documents (Fig. 11)
    large      satimage, pen digits, shuttle, Covertype: whole and through Sample (Table XI), each in its own process
    sampling   sizes of samples, and by mean or by sum
    groups     20,000 different label rows: seconds and memory

About twenty minutes on two cores. Results are written after each data set; a part that is of the same machine, versions
and commit goes on where it was stopped, and --only repeats or adds some parts. The parts of other commits stay, and say
so.
"""

import argparse
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cce_methods
import cce_report
import cce_sets
import common
import numpy as np
import parts

import gpuens as ge

PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn", "pymetis")
AT_ONCE = 2  # processes that score small sets, of one thread each
ALLOWANCE = 60.0  # seconds that a method gets on a data set: it leaves out the runs that are left then
LIMIT = 300.0  # seconds after which a measurement is given up
FEW = 10  # runs on documents whose base clusterings take long
GROUPS = 20_000


class Setting:
    """What the parts work on."""

    def __init__(self, quick: bool) -> None:
        self.small = ("Sy1", "Sy2") if quick else tuple(cce_sets.SMALL)
        self.documents = ("topics",) if quick else ("webkb4", "reuters_r8", "la12", "ng20_w1000")
        self.long = ("la12", "ng20_w1000")
        self.collection = "topics" if quick else "ng20_w1000"
        self.numbers = (200, 300) if quick else (2000, 6000, 10_000, 14_000)
        self.scaled = ("CgC", "OC-H", "CrC-C")
        self.large = ("digits",) if quick else ("satimage4435", "pd", "shuttle", "covtype")
        self.measured = ("CgC", "CrC-C") if quick else tuple(cce_methods.OURS)
        self.sample = 300 if quick else 10_000
        self.sampled = ("digits",) if quick else ("pd", "shuttle", "covtype", "la12", "ng20_w1000")
        self.sizes = (200,) if quick else (500, 2000, 5000, 10_000)
        self.repeats = 2 if quick else 5
        self.grouped = ("digits", None) if quick else ("covtype", 100_000)
        self.many_groups = ("CrC-C", "OC-H") if quick else ("CgC", "CrC-Ia", "CrC-C", "S-CCE", "OC-H")


def main() -> None:
    options = parse()
    given = options, Setting(options.quick)
    parts.run("cce", options, PARTS, given, cce_report, packages=PACKAGES, setting={"runs": options.runs})


def parse() -> argparse.Namespace:
    parser = parts.parser(__doc__, PARTS, quick="tiny, on what is made up or comes with scikit-learn")
    parser.add_argument("--data", type=Path, help="directory of the data sets (GPUENS_DATA)")
    parser.add_argument("--runs", type=int, help="ensembles of each small set (50)")
    options = parser.parse_args()
    options.runs = options.runs or (3 if options.quick else 50)
    if options.runs < 2:
        parser.error("--runs must be at least 2: stability is an agreement of runs")
    return options


def in_child(task: str, **arguments: Any) -> common.Record:
    return common.in_child(__file__, task, **arguments)


# --- the parts --------------------------------------------------------------------------------------------------------


def small(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    todo = [name for name in setting.small if name not in rows]

    def score(name: str) -> common.Record:
        return in_child(
            "repeat", environment={"GPUENS_THREADS": "1"}, name=name, data=options.data, runs=options.runs,
            seed=options.seed, methods=cce_methods.METHODS, allowance=3600.0,
        )  # fmt: skip

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, row in zip(todo, pool.map(score, todo), strict=True):
            found(name, row)


def documents(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    for name in setting.documents:
        if name not in rows:
            runs = min(options.runs, FEW) if name in setting.long else options.runs
            row = in_child(
                "repeat", name=name, data=options.data, runs=runs, seed=options.seed, methods=cce_methods.METHODS,
                allowance=ALLOWANCE,
            )  # fmt: skip
            found(name, row)


def scaling(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    for number in setting.numbers:
        if str(number) not in rows:
            row = in_child(
                "repeat", name=setting.collection, n_objects=number, data=options.data,
                runs=min(options.runs, FEW // 2), seed=options.seed, methods=setting.scaled, allowance=ALLOWANCE,
            )  # fmt: skip
            found(str(number), row)


def large(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in setting.large:
            if name in rows:
                continue
            where = {"labels": Path(folder) / f"{name}.npy", "classes": Path(folder) / f"{name}_y.npy"}
            row = in_child("generate", name=name, data=options.data, seed=options.seed, **where)
            row["methods"] = {}
            for method in setting.measured:
                for size in (None, setting.sample):
                    if "failed" not in row and (size is None or size < row["n_objects"]):
                        key = method if size is None else f"{method}, Sample({size:,})"
                        row["methods"][key] = in_child(
                            "fit", limit=LIMIT, method=method, k=row["k"], size=size, seed=options.seed, **where
                        )
            found(name, row)


def sampling(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    for name in setting.sampled:
        if name not in rows:
            row = in_child(
                "samples", name=name, data=options.data, seed=options.seed, sizes=setting.sizes,
                repeats=setting.repeats,
            )  # fmt: skip
            found(name, row)


def groups(options: argparse.Namespace, setting: Setting, rows: common.Record, found: parts.Found) -> None:
    name, n_objects = setting.grouped
    if name in rows:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.npy"
        row = in_child("different", name=name, data=options.data, n_objects=n_objects, labels=path, seed=options.seed)
        row["methods"] = {}
        for method in setting.many_groups:
            if "failed" not in row:
                row["methods"][method] = in_child("fit", limit=2 * LIMIT, labels=path, method=method, k=row["k"])
        found(name, row)


PARTS = {
    "small": small,
    "documents": documents,
    "scaling": scaling,
    "large": large,
    "sampling": sampling,
    "groups": groups,
}


# --- what the children do ---------------------------------------------------------------------------------------------


def repeat(
    name: str,
    data: str | None,
    runs: int,
    seed: int,
    methods: list[str],
    allowance: float,
    n_objects: int | None = None,
) -> common.Record:
    """Score methods and base clusterings over runs, each with an ensemble of its own, the same for all methods.

    AC and NMI are of each run, the others means. CSI is the mean agreement (ARI) of two runs of a method, and of two
    base clusterings of the same run.
    """
    found = cce_sets.load(name, data, n_objects)
    k, scores = found.n_classes, {method: {"AC": [], "NMI": []} for method in methods}
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    nmi_max: dict[str, list[float]] = {method: [] for method in methods}
    labelings: dict[str, list[np.ndarray]] = {method: [] for method in methods}
    base: dict[str, list] = {"AC": [], "NMI": [], "CSI": []}
    n_groups = []
    warnings.simplefilter("ignore")  # METIS may leave a meta-cluster to nobody: counted below
    warm_up(methods)
    for run in range(runs):
        ensemble = cce_sets.base_clusterings(found, seed, run)
        n_groups.append(len(ge.CoreGroups().reduce(ensemble).weights))
        each = [ge.metrics.scores(column, found.y) for column in ensemble.codes.T]
        for score, key in (("AC", "accuracy"), ("NMI", "nmi")):
            values = [row[key] for row in each]
            base[score].append((max(values), float(np.mean(values)), min(values)))
        base["CSI"].append(ge.metrics.stability(ensemble))
        for method in methods:
            if sum(seconds[method]) > allowance:
                continue
            start = time.perf_counter()
            labels = cce_methods.consensus(method, ensemble, k, run)
            seconds[method].append(time.perf_counter() - start)
            row = ge.metrics.scores(labels, found.y)
            scores[method]["AC"].append(row["accuracy"])
            scores[method]["NMI"].append(row["nmi"])
            nmi_max[method].append(row["nmi_max"])
            labelings[method].append(labels)
    return {
        "n_objects": len(found.y),
        "k": k,
        "runs": runs,
        "groups": float(np.mean(n_groups)),
        "base": {score: np.mean(values, axis=0).tolist() for score, values in base.items()},
        "methods": {
            method: {
                **scores[method],
                "NMI_max": float(np.mean(nmi_max[method])),
                "CSI": ge.metrics.stability(labelings[method]) if len(labelings[method]) > 1 else None,
                "seconds": float(np.mean(seconds[method])),
                "fewer": sum(len(np.unique(labels)) < k for labels in labelings[method]),
            }
            for method in methods
        },
        "load": common.load(),
    }


def warm_up(methods: list[str]) -> None:
    """Compile (or load) what the methods need, so that the seconds are those of the work."""
    labels = np.random.default_rng(0).integers(3, size=(50, 4)).astype(np.uint8)
    for method in methods:
        cce_methods.consensus(method, ge.Ensemble(labels), 3, 0)


def generate(name: str, data: str | None, seed: int, labels: str, classes: str) -> common.Record:
    found = cce_sets.load(name, data)
    start = time.perf_counter()
    ensemble = cce_sets.base_clusterings(found, seed, 0)
    record = {"generated": time.perf_counter() - start, "n_objects": len(found.y), "k": found.n_classes}
    np.save(labels, ensemble.codes)
    np.save(classes, found.y)
    each = [ge.metrics.scores(column, found.y) for column in ensemble.codes.T]
    base = {"AC": [row["accuracy"] for row in each], "NMI": [row["nmi"] for row in each]}
    return record | {
        "groups": len(ge.CoreGroups().reduce(ensemble).weights),
        "largest": float(np.unique(found.y, return_counts=True)[1].max() / len(found.y)),
        "base": {score: (max(values), float(np.mean(values)), min(values)) for score, values in base.items()},
    }


def different(name: str, data: str | None, n_objects: int | None, labels: str, seed: int) -> common.Record:
    """Save up to 20,000 different label rows: 20 clusterings with k from the number of classes to 100."""
    found = cce_sets.load(name, data, n_objects)
    k = found.n_classes
    ensemble = ge.generate.kmeans_ensemble(found.X, 20, (k, 100), random_state=seed, progress=False, device="cpu")
    rows = np.unique(ensemble.codes, axis=0)
    chosen = np.random.default_rng(seed).choice(len(rows), min(GROUPS, len(rows)), replace=False)
    np.save(labels, np.asfortranarray(rows[np.sort(chosen)]))
    return {"k": k, "groups": len(chosen), "n_clusterings": ensemble.n_clusterings, "n_clusters": ensemble.n_clusters}


def fit(
    labels: str, method: str, k: int, classes: str | None = None, size: int | None = None, seed: int = 0
) -> common.Record:
    """Measure one method on labels in memory; the first call includes what the library imports by itself."""
    warnings.simplefilter("ignore")
    matrix = np.load(labels)
    reduction = None if size is None else ge.Sample(size, random_state=seed)
    before = common.peak_memory()
    made = cce_methods.estimator(method, k, seed, reduction=reduction)
    found, record = common.measured(lambda: made.fit(matrix), later=1)
    record |= {"before": before, "rows": len(found.reduction_.weights)}
    if classes is not None:
        scores = ge.metrics.scores(found.labels_, np.load(classes))
        record |= {"AC": scores["accuracy"], "NMI": scores["nmi"]}
    return record


def samples(name: str, data: str | None, seed: int, sizes: list[int], repeats: int) -> common.Record:
    """Score methods on all objects and through samples, objects left out being labelled by mean and by sum."""
    warnings.simplefilter("ignore")
    found = cce_sets.load(name, data)
    k, rows = found.n_classes, []
    ensembles = [cce_sets.base_clusterings(found, seed, run) for run in range(repeats)]
    for method in cce_methods.OURS:
        whole = None
        for size in (None, *sizes):
            if size is not None and size >= len(found.y):
                continue
            row: common.Record = {"method": method, "size": size, "others": []}
            start = time.perf_counter()
            for by in ("mean", "sum") if size else ("all",):
                scores = []
                for run, ensemble in enumerate(ensembles):
                    if run > 1 and time.perf_counter() - start > ALLOWANCE / 2:
                        break
                    reduction = ge.Sample(size, random_state=run, by=by) if size else None
                    made = cce_methods.estimator(method, k, run, reduction=reduction).fit(ensemble)
                    scores.append(ge.metrics.scores(made.labels_, found.y))
                    membership, n_rows = made.reduction_.membership, len(made.reduction_.weights)
                    row["others"].append(float(np.mean(membership >= n_rows)))
                row[by] = {"AC": [s["accuracy"] for s in scores], "NMI": [s["nmi"] for s in scores]}
            row["others"] = float(np.mean(row["others"]))
            if size is None:
                whole = row["all"]
            row["all"] = whole
            rows.append(row)
    return {"n_objects": len(found.y), "k": k, "cells": [row for row in rows if row["size"] is not None]}


if __name__ == "__main__":
    common.serve({"repeat": repeat, "generate": generate, "different": different, "fit": fit, "samples": samples})
    main()
