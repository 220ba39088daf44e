"""Repeat the LWEC paper's Tables V and VII (and III, IV) on the base clusterings its authors published.

DIR holds pools/lwec_NAME.npz: ``members`` (N, 100), the pool of base clusterings, and ``y``, the classes; and for TOME,
which needs features, NAME.npz with the objects in the same order, which those of IS are not. Each draw
takes 10 clusterings of the pool without replacement, the same for all methods. The parts:

    tables  NMI and ARI of the paper's methods, as many clusters as there are classes (Tables V to VIII); a method
            leaves out the draws beyond 20 CPU seconds on a set
    best_k  the same with the number of clusters that scores best for each draw, a quarter as many draws: of all tables
            the paper prints a column of that, too
    hypergraph  the same of HGPA, where mtkahypar is installed
    theta   NMI of LWEA and LWGP over θ, a quarter as many draws (Tables III and IV, 20 minutes)
"""

import importlib.util
import math
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from papers import methods, printed_by
from parts import Job, Part

import gpuens as ge

PACKAGES = ()
RUNS = (2, 20)  # quick, full (the paper: 100)
SIZE = 10  # base clusterings in an ensemble
METHODS = ("LWEA", "LWGP", "SEC", "KCC", "TOME", "GP-MGLA", "WEAC", "WCT", "EAC", "HBGF", "MCLA", "CSPA")
ALLOWANCE = 20.0  # CPU seconds for a method on a data set, after which its other draws are left out
MULTIPLES = (0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4)  # multiples of the true k, among which the best is sought
QUICK = "made up"


def of_pools(task: Any, options: Namespace, runs: int, **given: Any) -> Iterator[Job]:
    """Yield a task for each pool; pools with few objects come first."""
    folder = Path(options.data or os.environ.get("GPUENS_DATA", "")) / "pools"
    found = {path.stem.removeprefix("lwec_"): path for path in folder.glob("lwec_*.npz")}
    if options.quick:
        found = {QUICK: Path(QUICK)}
    if not found:
        sys.exit("--data (or GPUENS_DATA) must name the directory that holds pools/lwec_*.npz.")
    for name in sorted(found, key=lambda name: len(read_pool(found[name])[1])):
        yield name, partial(common.in_child, task, pool=found[name], runs=runs, seed=options.seed, **given)


def tables(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_pools(score, options, options.runs)


def best_k(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_pools(score, options, max(1, options.runs // 4), multiples=MULTIPLES)


def hypergraph(options: Namespace, rows: common.Record) -> Iterator[Job]:
    known = importlib.util.find_spec("mtkahypar") is not None
    return of_pools(score, options, options.runs, of=["HGPA"]) if known else iter(())


def theta(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_pools(over_thetas, options, max(1, options.runs // 4))


PARTS = {"tables": Part(tables), "best_k": Part(best_k), "hypergraph": Part(hypergraph), "theta": Part(theta)}


# --- what the children do ---------------------------------------------------------------------------------------------


def read_pool(pool: str | Path) -> tuple[np.ndarray, np.ndarray]:
    if str(pool) == QUICK:
        y = np.arange(90) % 3
        rng = np.random.default_rng(0)
        members = np.where(rng.random((90, 20)) < 0.2, rng.integers(5, size=(90, 20)), y[:, None])
        return members, y
    with np.load(pool) as file:
        return file["members"], file["y"]


def features_of(pool: str | Path) -> np.ndarray | None:
    """Return the features of a pool's objects where a file has them in the same order."""
    if str(pool) == QUICK:
        return (np.arange(90) % 3 + np.random.default_rng(0).normal(scale=0.2, size=90))[:, None]
    name = Path(pool).stem.removeprefix("lwec_").lower()
    path = Path(pool).parents[1] / f"{name}.npz"
    if name == "is" or not path.exists():
        return None
    with np.load(path) as file:
        return file["X"].astype(np.float64)


def draws(members: np.ndarray, runs: int, seed: int) -> Iterator[tuple[int, ge.Ensemble]]:
    """Yield (draw, ensemble of SIZE clusterings of the pool); draw i is the same however many are drawn."""
    for draw in range(runs):
        columns = np.random.default_rng([seed, draw]).choice(members.shape[1], SIZE, replace=False)
        yield draw, ge.Ensemble(members[:, columns])


def nmi(labels: np.ndarray, classes: np.ndarray) -> float:
    return ge.metrics.nmi(labels, classes, average="max")


def ks_of(classes: np.ndarray, multiples: Sequence[float]) -> list[int]:
    """Return multiples of the number of classes, from 2 to √N."""
    n_classes, largest = len(np.unique(classes)), math.isqrt(len(classes))
    return sorted({min(max(2, round(n_classes * f)), largest) for f in multiples})


def score(
    pool: str, runs: int, seed: int, of: Sequence[str] = METHODS, multiples: Sequence[float] = (1,)
) -> common.Record:
    """Return scores and seconds of each method and draw; the best over ``multiples`` of the number of classes."""
    warnings.simplefilter("ignore")  # METIS may leave a meta-cluster without objects
    members, classes = read_pool(pool)
    X, ks = features_of(pool), ks_of(classes, multiples)
    more = {method: {"features": X} if method == "TOME" else {} for method in of if method != "TOME" or X is not None}
    found: common.Record = {method: {"nmi_max": [], "ari": [], "seconds": [], "cpu": []} for method in more}
    # a first fit imports packages, so that the seconds below are those of the work
    for method, given in more.items():
        few = {name: features[:300] for name, features in given.items()}
        methods.consensus(method, ge.Ensemble(members[:300, :SIZE]), 2, 0, **few)
    for draw, ensemble in draws(members, runs, seed):
        for method, record in found.items():
            if sum(record["cpu"]) > ALLOWANCE:
                continue
            partitions_of_draw, seconds, cpu = common.timed(
                partial(partitions, method, ensemble, ks, draw, more[method])
            )
            record["seconds"].append(seconds)
            record["cpu"].append(cpu)
            record["nmi_max"].append(max(nmi(labels, classes) for labels in partitions_of_draw))
            record["ari"].append(max(ge.metrics.ari(labels, classes) for labels in partitions_of_draw))
    return {"methods": found, "load": common.load()}


def partitions(
    method: str, ensemble: ge.Ensemble, ks: Sequence[int], seed: int, features: dict[str, np.ndarray]
) -> list[np.ndarray]:
    return [methods.consensus(method, ensemble, k, seed, **features) for k in ks]


def over_thetas(pool: str, runs: int, seed: int) -> common.Record:
    """Return {method: {"true_k" or "best_k": {θ: mean NMI}}}; the best k is sought for each draw."""
    members, classes = read_pool(pool)
    n_classes, largest = len(np.unique(classes)), math.isqrt(len(classes))
    multiples = ks_of(classes, MULTIPLES)
    rows_of_method: common.Record = {method: {"true_k": {}, "best_k": {}} for method in ("lwea", "lwgp")}
    for draw, ensemble in draws(members, runs, seed):
        for theta in printed_by("lwec")["thetas"]:
            lwea = ge.LWEA(n_clusters=2, theta=theta).fit(ensemble)
            scores = {
                "lwea": {
                    k: nmi(lwea.reduction_.expand(lwea.dendrogram_.cut(k)), classes) for k in range(2, largest + 1)
                },
                "lwgp": lwgp_scores(ensemble, classes, theta, multiples, draw),
            }
            for method, by_k in scores.items():
                rows_of_method[method]["true_k"].setdefault(str(theta), []).append(by_k[n_classes])
                rows_of_method[method]["best_k"].setdefault(str(theta), []).append(max(by_k.values()))
    means = {
        method: {rule: {theta: float(np.mean(values)) for theta, values in of.items()} for rule, of in row.items()}
        for method, row in rows_of_method.items()
    }
    return {"runs": runs, "methods": means}


def lwgp_scores(
    ensemble: ge.Ensemble, classes: np.ndarray, theta: float, ks: Iterable[int], draw: int
) -> dict[int, float]:
    return {k: nmi(ge.LWGP(k, theta=theta, random_state=draw).fit_predict(ensemble), classes) for k in ks}
