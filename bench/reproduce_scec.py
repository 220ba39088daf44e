"""Repeat the experiments of the SCEC paper: Tables 2-10 and its t-test, what defaults were tried, and Covtype.

    python bench/reproduce_scec.py --data DIR [--only PART ...] [--runs 20] [--output bench/results/scec.json]
    python bench/reproduce_scec.py --quick

DIR (or GPUENS_DATA) holds iris.npz, pendig_test.npz, isolet.npz and, for the last part, covtype.npz. Base clusterings
are k-means with random initial centroids: RI, k of the consensus; RN, k drawn from 2 to twice the number of classes;
RS, k of the consensus on a random half of the features. The parts:

    defaults   alpha, beta, init, n_init and tol one after the other, 20 base clusterings
    tables     all 99 situations of Tables 2-10: 5, 20 and 50 base clusterings, the numbers of clusters of Table 1
    covtype    581,012 objects, 20 base clusterings (--labels FILE.npy: those), in a process of its own

About 20 minutes on two cores. Results are written after each kind of ensemble; a part that is of the same machine,
versions and commit goes on where it was stopped.
"""

import argparse
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import scec_report
import scec_tables as paper

import gpuens as ge

PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn")
AT_ONCE = 2  # processes that score, of one thread each
CLUSTERINGS = 20  # of the part that tries defaults
TRIED_RUNS = {"IRIS": 10, "PENDIG": 2, "ISOLET6": 3, "digits": 1}
LETTERS = "ACKOUY"  # of ISOLET6: any six but F

# values of each parameter of SCEC, the others being what they are unless told otherwise
TRIED: dict[str, tuple] = {
    "alpha": (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5),
    "beta": (1.1, 2.0, 5.0, 10.0),
    "init": ("kmeans", "clustering", "random"),
    "n_init": (1, 5, 20),
    "tol": (1e-2, 1e-3, 1e-4),
}


def main() -> None:
    options = parse()
    parts.run("scec", options, PARTS, (options,), scec_report, packages=PACKAGES, setting={"runs": options.runs})


def parse() -> argparse.Namespace:
    parser = parts.parser(__doc__, PARTS, quick="tiny, on scikit-learn's digits")
    parser.add_argument("--data", type=Path, help="directory of the data sets (GPUENS_DATA)")
    parser.add_argument("--labels", type=Path, help="label matrix of Covtype (.npy), which is made if not given")
    parser.add_argument("--runs", type=int, help="ensembles of each kind (20)")
    options = parser.parse_args()
    options.runs = options.runs or (2 if options.quick else 20)
    return options


# --- the parts --------------------------------------------------------------------------------------------------------


def over_kinds(task: str, options: argparse.Namespace, rows: common.Record, found: parts.Found, **more: Any) -> None:
    """Do a task for every data set and kind of ensemble, a process each."""
    cells = [(name, kind) for name in paper.CLUSTERS for kind in paper.KINDS]
    if options.quick:
        cells = [("digits", "RN")]
    todo = [cell for cell in cells if ", ".join(cell) not in rows]

    def score(cell: tuple[str, str]) -> common.Record:
        return common.in_child(
            __file__, task, environment={"GPUENS_THREADS": "1"}, name=cell[0], kind=cell[1], data=options.data,
            seed=options.seed, quick=options.quick, **more,
        )  # fmt: skip

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for (name, kind), row in zip(todo, pool.map(score, todo), strict=True):
            found(f"{name}, {kind}", row)


def defaults(options: argparse.Namespace, rows: common.Record, found: parts.Found) -> None:
    over_kinds("try_parameters", options, rows, found)


def tables(options: argparse.Namespace, rows: common.Record, found: parts.Found) -> None:
    over_kinds("score", options, rows, found, runs=options.runs)


def covtype(options: argparse.Namespace, rows: common.Record, found: parts.Found) -> None:
    if rows:
        return
    with tempfile.TemporaryDirectory() as folder:
        labels, row = options.labels, {}
        if labels is None:
            labels = Path(folder) / "labels.npy"
            row = common.in_child(
                __file__, "generate", labels=labels, data=options.data, seed=options.seed, quick=options.quick
            )
        tried: dict[str, dict] = {"SCEC": {}} if options.quick else {"SCEC": {}, "one start": {"n_init": 1}}
        for name, parameters in tried.items():
            if "failed" not in row:
                row[name] = common.in_child(
                    __file__, "fit", labels=labels, data=options.data, quick=options.quick, parameters=parameters
                )
        found("covtype", row)


PARTS = {"defaults": defaults, "tables": tables, "covtype": covtype}


# --- the ensembles ----------------------------------------------------------------------------------------------------


def load(name: str, data: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and classes of a data set of the paper's."""
    if name == "digits":
        found = ge.datasets.load("digits", data=data)
        return found.X[:400], found.y[:400]
    if name != "ISOLET6":
        found = ge.datasets.load({"IRIS": "iris", "PENDIG": "pendig_test"}[name], data=data)
        return found.X, found.y
    found = ge.datasets.load("isolet", data=data)
    chosen = np.flatnonzero(np.isin(found.y[:6238], [ord(letter) - ord("A") for letter in LETTERS]))
    return found.X[chosen], found.y[chosen]


def clusters_of(name: str) -> tuple[int, ...]:
    return paper.CLUSTERS.get(name, (5, 10))


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
    made: dict[int, ge.Ensemble] = {}
    for k in clusters_of(name):
        if kind == "RN" and made:
            made[k] = next(iter(made.values()))
        else:
            made[k] = base_clusterings(X, y, kind, k, size, [seed, run, 0 if kind == "RN" else k])
    return y, made


def consensus(ensemble: ge.Ensemble, k: int, run: int, **parameters: Any) -> ge.SCEC:
    return ge.SCEC(k, random_state=run, **parameters).fit(ensemble)


# --- what the children do ---------------------------------------------------------------------------------------------


def score(name: str, kind: str, data: str | None, seed: int, quick: bool, runs: int) -> common.Record:
    """Return the NMI of SCEC, and of the base clusterings on average, for each run of each situation."""
    warnings.simplefilter("ignore")  # fewer clusters than asked for are counted
    sizes = (5,) if quick else paper.CLUSTERINGS
    cells: dict[str, common.Record] = {}
    for run in range(runs):
        y, made = ensembles(name, kind, data, seed, max(sizes), run)
        for k, whole in made.items():
            columns = whole.to_array()
            base = [ge.metrics.nmi(column, y) for column in columns.T]
            for size in sizes:
                cell = cells.setdefault(
                    f"{size}, {k}", {"SCEC": [], "BL": [], "clusters": [], "iterations": [], "seconds": []}
                )
                start = time.perf_counter()
                found = consensus(ge.Ensemble(list(columns[:, :size].T)), k, run)
                cell["seconds"].append(time.perf_counter() - start)
                cell["SCEC"].append(ge.metrics.nmi(found.labels_, y))
                cell["BL"].append(float(np.mean(base[:size])))
                cell["clusters"].append(found.n_clusters_)
                cell["iterations"].append(found.n_iter_)
    return {"n_objects": len(y), "runs": runs, "cells": cells}


def try_parameters(name: str, kind: str, data: str | None, seed: int, quick: bool) -> common.Record:
    """Return mean scores for each value of each parameter, the others being what they are unless told otherwise."""
    warnings.simplefilter("ignore")
    runs = TRIED_RUNS[name]
    made = [ensembles(name, kind, data, seed + 1, 5 if quick else CLUSTERINGS, run) for run in range(runs)]
    rows = []
    for parameter, values in TRIED.items():
        for value in values[:: 3 if quick else 1]:
            results = [
                {
                    "k": k,
                    "nmi": ge.metrics.nmi(found.labels_, y),
                    "clusters": found.n_clusters_ / k,
                    "iterations": found.n_iter_,
                }
                for run, (y, of_k) in enumerate(made)
                for k, ensemble in of_k.items()
                for found in [consensus(ensemble, k, run, **{parameter: value})]
            ]
            mean = {key: float(np.mean([one[key] for one in results])) for key in ("nmi", "clusters", "iterations")}
            default = value == getattr(ge.SCEC(), parameter)
            rows.append({"parameter": parameter, "value": value, "default": default, **mean})
    return {"runs": runs, "rows": rows}


def generate(labels: str, data: str | None, seed: int, quick: bool) -> common.Record:
    X, _ = of_covtype(data, quick)
    start = time.perf_counter()
    ensemble = ge.generate.kmeans_ensemble(
        X, 20, (7, 100), algorithm="minibatch", random_state=seed, progress=False, device="cpu"
    )
    np.save(labels, ensemble.codes)
    return {"generated": time.perf_counter() - start}


def of_covtype(data: str | None, quick: bool) -> tuple[np.ndarray, np.ndarray | None]:
    if quick:
        return load("digits", data)
    found = ge.datasets.load("covtype", data=data)
    return found.X, found.y


def fit(labels: str, data: str | None, quick: bool, parameters: common.Record) -> common.Record:
    """Measure SCEC on labels in memory; the first call includes what the library imports by itself."""
    warnings.simplefilter("ignore")
    matrix = np.array(np.load(labels, mmap_mode="r"), order="F")
    before = common.peak_memory()
    found, record = common.measured(lambda: ge.SCEC(7, **parameters).fit(matrix), later=2)
    record |= {
        "before": before, "n_objects": len(matrix), "n_clusterings": matrix.shape[1],
        "groups": len(found.reduction_.weights), "iterations": found.n_iter_, "converged": found.converged_,
        "objective": float(found.objective_[-1] / matrix.size),
        "sizes": np.sort(np.bincount(found.labels_))[::-1].tolist(),
    }  # fmt: skip
    y = of_covtype(data, quick)[1]
    scores = {score: getattr(ge.metrics, score) for score in ("nmi", "ari")}
    record |= {score: of(found.labels_, y) for score, of in scores.items()}
    base = [[of(column, y) for of in scores.values()] for column in matrix.T]
    return record | {"base": dict(zip(scores, np.mean(base, axis=0).tolist(), strict=True))}


if __name__ == "__main__":
    common.serve({"score": score, "try_parameters": try_parameters, "generate": generate, "fit": fit})
    main()
