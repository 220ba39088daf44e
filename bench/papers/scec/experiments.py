"""Repeat the experiments of the SCEC paper: Tables 2-10 and its t-test, what defaults were tried, and Covertype.

DIR holds iris.npz, pendig_test.npz, isolet.npz and, for the last part, covtype.npz. Base clusterings are k-means with
random initial centroids: RI, k of the consensus; RN, k drawn from 2 to twice the number of classes; RS, k of the
consensus on a random half of the features. The parts:

    defaults   alpha, beta, init, n_init and tol one after the other, 20 base clusterings
    tables     all 99 situations of Tables 2-10: 5, 20 and 50 base clusterings, the numbers of clusters of Table 1
    covtype    581,012 objects, 20 base clusterings (--labels FILE.npy: those), in a process of its own

About 20 minutes on two cores. --quick takes scikit-learn's digits.
"""

import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from papers import printed_by
from parts import SINGLE, Job, Part

import gpuens as ge

PACKAGES = ()
RUNS = (2, 20)
PRINTED = printed_by("scec")
CLUSTERINGS = 20  # clusterings of the part that tries defaults
TRIED_RUNS = {"IRIS": 10, "PENDIG": 2, "ISOLET6": 3, "digits": 1}
LETTERS = "ACKOUY"  # letters of ISOLET6: any six but F

# the values tried for each parameter of SCEC; all other parameters have their defaults
TRIED: dict[str, tuple] = {
    "alpha": (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5),
    "beta": (1.1, 2.0, 5.0, 10.0),
    "init": ("kmeans", "clustering", "random"),
    "n_init": (1, 5, 20),
    "tol": (1e-2, 1e-3, 1e-4),
}


def over_kinds(task: Any, options: Namespace, **more: Any) -> Iterator[Job]:
    """Yield a task for every data set and kind of ensemble."""
    cells = [(name, kind) for name in PRINTED["clusters"] for kind in PRINTED["kinds"]]
    for name, kind in [("digits", "RN")] if options.quick else cells:
        yield f"{name}, {kind}", partial(
            common.in_child, task, environment=SINGLE, name=name, kind=kind, data=options.data, seed=options.seed,
            quick=options.quick, **more,
        )  # fmt: skip


def defaults(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return over_kinds(try_parameters, options)


def tables(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return over_kinds(score, options, runs=options.runs)


def covtype(options: Namespace, rows: common.Record) -> Iterator[Job]:
    def measured() -> common.Record:
        arguments = {"data": options.data, "quick": options.quick}
        with tempfile.TemporaryDirectory() as folder:
            labels, row = options.labels, {}
            if labels is None:
                labels = Path(folder) / "labels.npy"
                row = common.in_child(generate, labels=labels, seed=options.seed, **arguments)
            for name, parameters in {"SCEC": {}, "one start": {"n_init": 1}}.items():
                if "failed" not in row and not (options.quick and parameters):
                    row[name] = common.in_child(fit, labels=labels, parameters=parameters, **arguments)
        return row

    yield "covtype", measured


PARTS = {"defaults": Part(defaults, at_once=2), "tables": Part(tables, at_once=2), "covtype": Part(covtype)}


# --- the ensembles ----------------------------------------------------------------------------------------------------


def load(name: str, data: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and classes of a data set of the paper's."""
    stored = {"IRIS": "iris", "PENDIG": "pendig_test", "ISOLET6": "isolet"}
    data_set = ge.datasets.load(stored.get(name, name), data=data)
    places = np.arange(len(data_set.y))
    if name == "digits":
        places = places[:400]
    if name == "ISOLET6":
        places = np.flatnonzero(np.isin(data_set.y[:6238], [ord(letter) - ord("A") for letter in LETTERS]))
    return data_set.X[places], data_set.y[places]


def base_clusterings(X: np.ndarray, y: np.ndarray, kind: str, k: int, size: int, seed: list[int]) -> ge.Ensemble:
    """Return an ensemble; a smaller one of the same seed is the beginning of a larger one."""
    n_clusters = (2, 2 * len(np.unique(y))) if kind == "RN" else k
    return ge.generate.kmeans_ensemble(
        X, size, n_clusters, features=0.5 if kind == "RS" else 1.0, init="random", progress=False, device="cpu",
        random_state=np.random.default_rng(seed),
    )  # fmt: skip


def ensembles(name: str, kind: str, data: str | None, seed: int, size: int, run: int) -> tuple[np.ndarray, dict]:
    """Return the classes and a run's ensemble for each number of clusters: for RN one and the same."""
    X, y = load(name, data)
    ensemble_of: dict[int, ge.Ensemble] = {}
    for k in PRINTED["clusters"].get(name, (5, 10)):
        if kind == "RN" and ensemble_of:
            ensemble_of[k] = next(iter(ensemble_of.values()))
        else:
            ensemble_of[k] = base_clusterings(X, y, kind, k, size, [seed, run, 0 if kind == "RN" else k])
    return y, ensemble_of


def consensus(ensemble: ge.Ensemble, k: int, run: int, **parameters: Any) -> ge.SCEC:
    return ge.SCEC(k, random_state=run, **parameters).fit(ensemble)


# --- what the children do ---------------------------------------------------------------------------------------------


def score(name: str, kind: str, data: str | None, seed: int, quick: bool, runs: int) -> common.Record:
    """Return the NMI of SCEC, and of the base clusterings on average, for each run of each situation."""
    warnings.simplefilter("ignore")  # ignore the warning of fewer clusters than requested; they are counted
    sizes = (5,) if quick else PRINTED["clusterings"]
    cells: dict[str, common.Record] = {}
    for run in range(runs):
        y, ensemble_of = ensembles(name, kind, data, seed, max(sizes), run)
        for k, ensemble in ensemble_of.items():
            columns = ensemble.to_array()
            base = [ge.metrics.nmi(column, y) for column in columns.T]
            for size in sizes:
                start = time.perf_counter()
                fitted = consensus(ge.Ensemble(list(columns[:, :size].T)), k, run)
                row = {
                    "seconds": time.perf_counter() - start,
                    "SCEC": ge.metrics.nmi(fitted.labels_, y),
                    "BL": float(np.mean(base[:size])),
                    "clusters": fitted.n_clusters_,
                    "iterations": fitted.n_iter_,
                }
                for key, value in row.items():
                    cells.setdefault(f"{size}, {k}", {}).setdefault(key, []).append(value)
    return {"n_objects": len(y), "runs": runs, "cells": cells}


def try_parameters(name: str, kind: str, data: str | None, seed: int, quick: bool) -> common.Record:
    """Return mean scores for each value of each parameter, with the other parameters at their defaults."""
    warnings.simplefilter("ignore")
    runs = TRIED_RUNS[name]
    samples = [ensembles(name, kind, data, seed + 1, 5 if quick else CLUSTERINGS, run) for run in range(runs)]
    rows = []
    for parameter, values in TRIED.items():
        for value in values[:: 3 if quick else 1]:
            results = [
                (ge.metrics.nmi(fitted.labels_, y), fitted.n_clusters_ / k, fitted.n_iter_)
                for run, (y, of_k) in enumerate(samples)
                for k, ensemble in of_k.items()
                for fitted in [consensus(ensemble, k, run, **{parameter: value})]
            ]
            mean = dict(zip(("nmi", "clusters", "iterations"), np.mean(results, axis=0).tolist(), strict=True))
            default = value == getattr(ge.SCEC(), parameter)
            rows.append({"parameter": parameter, "value": value, "default": default, **mean})
    return {"runs": runs, "rows": rows}


def generate(labels: str, data: str | None, seed: int, quick: bool) -> common.Record:
    X, _ = load("digits" if quick else "covtype", data)
    start = time.perf_counter()
    ensemble = ge.generate.kmeans_ensemble(
        X, 20, (7, 100), algorithm="minibatch", random_state=seed, progress=False, device="cpu"
    )
    np.save(labels, ensemble.codes)
    return {"generated": time.perf_counter() - start}


def fit(labels: str, data: str | None, quick: bool, parameters: common.Record) -> common.Record:
    """Measure SCEC on labels in memory; the first call includes what the library imports by itself."""
    warnings.simplefilter("ignore")
    matrix = np.array(np.load(labels, mmap_mode="r"), order="F")
    before = common.peak_memory()
    fitted, record = common.measured(lambda: ge.SCEC(7, **parameters).fit(matrix), later=2)
    record |= {
        "before": before, "n_objects": len(matrix), "n_clusterings": matrix.shape[1],
        "groups": len(fitted.reduction_.counts), "iterations": fitted.n_iter_, "converged": fitted.converged_,
        "objective": float(fitted.objective_[-1] / matrix.size),
        "sizes": np.sort(np.bincount(fitted.labels_))[::-1].tolist(),
    }  # fmt: skip
    _, y = load("digits" if quick else "covtype", data)
    scores = {score: getattr(ge.metrics, score) for score in ("nmi", "ari")}
    record |= {score: of(fitted.labels_, y) for score, of in scores.items()}
    base = [[of(column, y) for of in scores.values()] for column in matrix.T]
    return record | {"base": dict(zip(scores, np.mean(base, axis=0).tolist(), strict=True))}
