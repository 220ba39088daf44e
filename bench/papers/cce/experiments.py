"""Repeat the experiments of the CCE paper: small sets, documents, large sets, and what it costs at 20,000 groups.

L = 10 base clusterings: k-means with k = the number of classes, each fitted to a random 70 % of the objects, the rest
by the nearest centroid; as many clusters are asked for. The parts:

    small      the paper's eleven small sets, all methods and the baselines (Tables VII, VIII; Figs. 6, 7)
    documents  four sets of documents, tf-idf (Tables IX, X)
    scaling    2,000 to 14,000 documents (Fig. 11)
    large      satimage, pen digits, shuttle, Covertype: whole and through Sample (Table XI), each in its own process
    baselines  these and two sets of documents: the best of the paper's five methods against its three baselines and
               a clusterer of features (Fig. 12), five ensembles; its Reviews and Sports are not among the data
    sampling   sizes of samples, and by mean or by sum
    groups     20,000 different label rows: seconds and memory

About twenty minutes on two cores.
"""

import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import common
import numpy as np
from papers import methods
from papers.cce import rsekfcm, sets
from parts import SINGLE, Job, Part

import gpuens as ge

PACKAGES = ("pymetis",)
RUNS = (3, 50)
ALLOWANCE = 30.0  # CPU seconds for a method on a data set, after which its other runs are left out
LIMIT = 300.0  # seconds after which a measurement is given up
FEW = 10  # number of runs on documents whose base clusterings take long
GROUPS = 20_000
OURS = ("CgC", "OC-Ia", "OC-H", "CrC-Ia", "CrC-C", "S-CCE")
OF_FEATURES = {"rsekFCM": rsekfcm.labels}  # the clusterers of Fig. 12, whose features are not clustered before
FIG_12 = (*OURS[:5], "normalised KCC", "LB-P", "LIMBO", *OF_FEATURES)
METHODS = (  # as the paper groups them: by clusterings, objects and clusters
    "EM", "QMI", "PD", "normalised KCC", "CgC",
    "CSPA", "ROCK", "LIMBO", "OC-Ia", "OC-H",
    "MCLA", "HBGF", "LB-P", "LB-S", "CrC-Ia", "CrC-C", "S-CCE",
)  # fmt: skip

WORK = {  # the sets of each part
    False: {
        "small": tuple(sets.SMALL),
        "documents": ("webkb4", "reuters_r8", "la12", "ng20_w1000"),
        "scaling": ("ng20_w1000", (2000, 6000, 10_000, 14_000)),
        "large": (("satimage4435", "pd", "shuttle", "covtype"), OURS, 10_000),
        "baselines": ("satimage4435", "pd", "shuttle", "covtype", "mm", "la12"),
        "sampling": (("pd", "shuttle", "covtype", "la12", "ng20_w1000"), (500, 2000, 5000, 10_000), 5),
        "groups": ("covtype", 100_000, ("CgC", "CrC-Ia", "CrC-C", "S-CCE", "OC-H")),
    },
    True: {
        "small": ("Sy1", "Sy2"),
        "documents": ("topics",),
        "scaling": ("topics", (200, 300)),
        "large": (("digits",), ("CgC", "CrC-C"), 300),
        "baselines": ("digits",),
        "sampling": (("digits",), (200,), 2),
        "groups": ("digits", None, ("CrC-C", "OC-H")),
    },
}
LONG = ("la12", "ng20_w1000")


def job(key: str, task: object, options: Namespace, **arguments: object) -> Job:
    return key, partial(common.in_child, task, data=options.data, seed=options.seed, **arguments)


def small(options: Namespace, rows: common.Record) -> Iterator[Job]:
    for name in WORK[options.quick]["small"]:
        arguments = {"name": name, "runs": options.runs, "of": METHODS, "allowance": 3600.0}
        yield job(name, repeat, options, environment=SINGLE, **arguments)


def documents(options: Namespace, rows: common.Record) -> Iterator[Job]:
    for name in WORK[options.quick]["documents"]:
        runs = min(options.runs, FEW) if name in LONG else options.runs
        yield job(name, repeat, options, name=name, runs=runs, of=METHODS, allowance=ALLOWANCE)


def scaling(options: Namespace, rows: common.Record) -> Iterator[Job]:
    name, numbers = WORK[options.quick]["scaling"]
    for number in numbers:
        arguments = {"n_objects": number, "runs": min(options.runs, FEW // 2), "of": ("CgC", "OC-H", "CrC-C")}
        yield job(str(number), repeat, options, name=name, allowance=ALLOWANCE, **arguments)


def large(options: Namespace, rows: common.Record) -> Iterator[Job]:
    names, measured, sample = WORK[options.quick]["large"]

    def measure(name: str) -> common.Record:
        with tempfile.TemporaryDirectory() as folder:
            where = {"labels": Path(folder) / "labels.npy", "classes": Path(folder) / "classes.npy"}
            row = common.in_child(generate, name=name, data=options.data, seed=options.seed, **where)
            row["methods"] = {}
            for method in measured if "failed" not in row else ():
                for size in (None, sample) if sample < row["n_objects"] else (None,):
                    key = method if size is None else f"{method}, Sample({size:,})"
                    given = {"method": method, "k": row["k"], "size": size, "seed": options.seed}
                    row["methods"][key] = common.in_child(fit, limit=LIMIT, **given, **where)
        return row

    return ((name, partial(measure, name)) for name in names)


def baselines(options: Namespace, rows: common.Record) -> Iterator[Job]:
    for name in WORK[options.quick]["baselines"]:
        yield job(name, repeat, options, name=name, runs=min(options.runs, FEW // 2), of=FIG_12, allowance=ALLOWANCE)


def sampling(options: Namespace, rows: common.Record) -> Iterator[Job]:
    names, sizes, repeats = WORK[options.quick]["sampling"]
    return (job(name, samples, options, name=name, sizes=sizes, repeats=repeats) for name in names)


def groups(options: Namespace, rows: common.Record) -> Iterator[Job]:
    name, n_objects, measured = WORK[options.quick]["groups"]

    def measure() -> common.Record:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "labels.npy"
            given = {"name": name, "data": options.data, "n_objects": n_objects, "seed": options.seed}
            row = common.in_child(different, labels=path, **given)
            if "failed" not in row:
                row["methods"] = {
                    method: common.in_child(fit, limit=2 * LIMIT, labels=path, method=method, k=row["k"])
                    for method in measured
                }
        return row

    yield name, measure


PARTS = {
    "small": Part(small, at_once=2),
    "documents": Part(documents),
    "scaling": Part(scaling),
    "large": Part(large),
    "baselines": Part(baselines),
    "sampling": Part(sampling),
    "groups": Part(groups),
}


# --- what the children do ---------------------------------------------------------------------------------------------


def repeat(
    name: str,
    data: str | None,
    runs: int,
    seed: int,
    of: list[str],
    allowance: float,
    n_objects: int | None = None,
) -> common.Record:
    """Score methods and base clusterings over runs, each with an ensemble of its own, the same for all methods.

    AC and NMI are of each run, the others means. CSI is the mean agreement (ARI) of two runs of a method, and of two
    base clusterings of the same run.
    """
    warnings.simplefilter("ignore")  # METIS may leave a meta-cluster without objects, which is counted below
    data_set = sets.load(name, data, n_objects)
    k = data_set.n_classes
    small_ensemble = ge.Ensemble(np.random.default_rng(0).integers(3, size=(50, 4)).astype(np.uint8))
    for method in set(of) - OF_FEATURES.keys():  # imports packages, so that the seconds are those of the work
        methods.consensus(method, small_ensemble, 3, 0)
    scores: common.Record = {method: {"AC": [], "NMI": [], "NMI_max": [], "seconds": []} for method in of}
    labelings: dict[str, list[np.ndarray]] = {method: [] for method in of}
    cpu: dict[str, list[float]] = {method: [] for method in of}
    base: dict[str, list] = {"AC": [], "NMI": [], "CSI": []}
    n_groups = []
    for run in range(runs):
        ensemble = sets.base_clusterings(data_set, seed, run)
        n_groups.append(len(ge.CoreGroups().reduce(ensemble).counts))
        for score, values in scores_of_base(ensemble, data_set.y).items():
            base[score].append(values)
        base["CSI"].append(ge.metrics.stability(ensemble))
        for method, scores_of_method in scores.items():
            if sum(cpu[method]) > allowance:
                continue
            if method in OF_FEATURES:
                call = partial(OF_FEATURES[method], data_set.X, k, run)
            else:
                call = partial(methods.consensus, method, ensemble, k, run)
            labels, seconds, cpu_seconds = common.timed(call)
            scores_of_method["seconds"].append(seconds)
            cpu[method].append(cpu_seconds)
            row = ge.metrics.scores(labels, data_set.y)
            for score, key in (("AC", "accuracy"), ("NMI", "nmi"), ("NMI_max", "nmi_max")):
                scores_of_method[score].append(row[key])
            labelings[method].append(labels)
    for method, scores_of_method in scores.items():
        scores_of_method |= {score: float(np.mean(scores_of_method[score])) for score in ("NMI_max", "seconds")}
        scores_of_method["CSI"] = ge.metrics.stability(labelings[method]) if len(labelings[method]) > 1 else None
        scores_of_method["fewer"] = sum(len(np.unique(labels)) < k for labels in labelings[method])
    return {
        "n_objects": len(data_set.y),
        "k": k,
        "runs": runs,
        "groups": float(np.mean(n_groups)),
        "base": {score: np.mean(values, axis=0).tolist() for score, values in base.items()},
        "methods": scores,
        "load": common.load(),
    }


def scores_of_base(ensemble: ge.Ensemble, y: np.ndarray) -> common.Record:
    """Return the largest, mean and smallest AC and NMI of base clusterings."""
    scores = [ge.metrics.scores(column, y) for column in ensemble.codes.T]
    by_score = {"AC": [row["accuracy"] for row in scores], "NMI": [row["nmi"] for row in scores]}
    return {score: (max(values), float(np.mean(values)), min(values)) for score, values in by_score.items()}


def generate(name: str, data: str | None, seed: int, labels: str, classes: str) -> common.Record:
    data_set = sets.load(name, data)
    start = time.perf_counter()
    ensemble = sets.base_clusterings(data_set, seed, 0)
    generated = time.perf_counter() - start
    np.save(labels, ensemble.codes)
    np.save(classes, data_set.y)
    return {
        "generated": generated,
        "n_objects": len(data_set.y),
        "k": data_set.n_classes,
        "groups": len(ge.CoreGroups().reduce(ensemble).counts),
        "largest": float(np.unique(data_set.y, return_counts=True)[1].max() / len(data_set.y)),
        "base": scores_of_base(ensemble, data_set.y),
    }


def different(name: str, data: str | None, n_objects: int | None, labels: str, seed: int) -> common.Record:
    """Save up to 20,000 different label rows: 20 clusterings with k from the number of classes to 100."""
    data_set = sets.load(name, data, n_objects)
    k = data_set.n_classes
    ensemble = ge.generate.kmeans_ensemble(data_set.X, 20, (k, 100), random_state=seed, progress=False, device="cpu")
    rows = np.unique(ensemble.codes, axis=0)
    places = np.random.default_rng(seed).choice(len(rows), min(GROUPS, len(rows)), replace=False)
    np.save(labels, np.asfortranarray(rows[np.sort(places)]))
    return {"k": k, "groups": len(places), "n_clusterings": ensemble.n_clusterings, "n_clusters": ensemble.n_clusters}


def fit(
    labels: str, method: str, k: int, classes: str | None = None, size: int | None = None, seed: int = 0
) -> common.Record:
    """Measure one method on labels in memory; the first call includes what the library imports by itself."""
    warnings.simplefilter("ignore")
    matrix = np.load(labels)
    reduction = None if size is None else ge.Sample(size, random_state=seed)
    before = common.peak_memory()
    estimator = methods.estimator(method, k, seed, reduction=reduction)
    fitted, record = common.measured(lambda: estimator.fit(matrix), later=1)
    record |= {"before": before, "rows": len(fitted.reduction_.counts)}
    if classes is not None:
        scores = ge.metrics.scores(fitted.labels_, np.load(classes))
        record |= {"AC": scores["accuracy"], "NMI": scores["nmi"]}
    return record


def samples(name: str, data: str | None, seed: int, sizes: list[int], repeats: int) -> common.Record:
    """Score methods on all objects and on samples, where other objects are labelled by mean and by sum."""
    warnings.simplefilter("ignore")
    data_set = sets.load(name, data)
    k, rows = data_set.n_classes, []
    ensembles = [sets.base_clusterings(data_set, seed, run) for run in range(repeats)]

    def scores(method: str, size: int | None, by: str, until: float) -> tuple[common.Record, list[float]]:
        """Return the scores of the runs that there is time for, and the shares of objects left out."""
        scores: common.Record = {"AC": [], "NMI": []}
        others = []
        for run, ensemble in enumerate(ensembles):
            if run > 1 and time.perf_counter() > until:
                break
            reduction = ge.Sample(size, random_state=run, by=by) if size else None
            made = methods.estimator(method, k, run, reduction=reduction).fit(ensemble)
            row = ge.metrics.scores(made.labels_, data_set.y)
            scores["AC"].append(row["accuracy"])
            scores["NMI"].append(row["nmi"])
            others.append(float(np.mean(made.reduction_.row_of >= len(made.reduction_.counts))))
        return scores, others

    for method in OURS:
        scores_of_all, _ = scores(method, None, "", time.perf_counter() + ALLOWANCE / 2)
        for size in (size for size in sizes if size < len(data_set.y)):
            until = time.perf_counter() + ALLOWANCE / 2
            (by_mean, others), (by_sum, more) = (scores(method, size, by, until) for by in ("mean", "sum"))
            row = {"mean": by_mean, "sum": by_sum, "all": scores_of_all, "others": float(np.mean(others + more))}
            rows.append({"method": method, "size": size, **row})
    return {"n_objects": len(data_set.y), "k": k, "cells": rows}
