"""Repeat the experiments of the ECRMC paper: eleven data sets, the coefficients and T; and what Covertype costs.

M = 20 base clusterings: k-means on the features as they are, k drawn from [K, min(√N, 100)] with K the number of
classes; as many clusters are asked for. The parts:

    sets     each set: NMI, ARI and AC of ECRMC with T = 5, 10, 15 and 20 % of N / K (its Fig. 3), of ECRMC without the
             reconstructed coefficients, whose S correlates the clusters' own members (its Fig. 7), and of LWGP, LWEA
             and EAC on the same ensembles. Every run has an ensemble of its own, the same for all
    rivals   the seven that the paper compares ECRMC with, half as many runs, a tenth on the three largest sets
    self     whether an object should be in its own reference set, which the paper leaves open
    covtype  581,012 objects through the CA-tree, a sample and exactly: seconds, memory, T; each in its own process

About an hour on two cores. --quick takes iris and digits, which come with scikit-learn.
"""

import time
import warnings
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

import common
import numpy as np
from papers import methods
from parts import Job, Part

import gpuens as ge
from gpuens.partition import average_linkage
from gpuens.similarity.mapping import map_objects, points_of
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.reference_sets import reference_sets

PACKAGES = ()
RUNS = (2, 20)
SETS = ("iris", "breast_wisconsin", "vs", "coil20", "semeion", "spf", "is", "pd", "mnist5000", "usps", "lr")
LARGE = {"mnist5000", "usps", "lr"}  # data sets whose base clusterings take long
SHARES = (5, 10, 15, 20)  # T, in percent of N / K
SCORES = {"NMI": "nmi", "ARI": "ari", "AC": "accuracy"}
M = 20
RIVALS = {  # the paper's names; its KCC cannot be the entropy's, which is its ECC
    "KCC": "QMI", "ECC": "ECC", "SEC": "SEC", "PTGP": "PTGP", "ECPCS-HC": "ECPCS-HC", "LWGP": "LWGP",
}  # fmt: skip
LIMIT = 1500.0  # seconds after which a measurement of Covertype is given up


def of_sets(task: Any, options: Namespace) -> Iterator[Job]:
    for name in ("iris",) if options.quick else SETS:
        if task is repeat or name not in LARGE:
            yield (
                name,
                partial(common.in_child, task, name=name, data=options.data, runs=options.runs, seed=options.seed),
            )


def sets(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_sets(repeat, options)


def rivals(options: Namespace, rows: common.Record) -> Iterator[Job]:
    for name in ("iris",) if options.quick else SETS:
        runs = max(2, options.runs // (10 if name in LARGE else 2))
        yield name, partial(common.in_child, against, name=name, data=options.data, runs=runs, seed=options.seed)


def itself(options: Namespace, rows: common.Record) -> Iterator[Job]:
    return of_sets(with_itself, options)


def covtype(options: Namespace, rows: common.Record) -> Iterator[Job]:
    reductions = ("sample:500",) if options.quick else ("catree:tau=0.4", "sample:20000", "core-groups")
    for reduction in reductions:
        for method in ("ECRMC",) if options.quick else ("ECRMC", "LWEA"):
            yield f"{method}, {reduction}", partial(
                common.in_child, fit, limit=LIMIT, name="digits" if options.quick else "covtype", data=options.data,
                labels=options.labels, method=method, reduction=reduction, seed=options.seed,
            )  # fmt: skip


PARTS = {"sets": Part(sets), "rivals": Part(rivals), "self": Part(itself), "covtype": Part(covtype)}


# --- what the children do ---------------------------------------------------------------------------------------------


class Known:
    """Reference sets taken from larger ones that are already known, on request with the object itself."""

    def __init__(self, ids: np.ndarray, distances: np.ndarray, n_neighbors: int, *, itself: bool = False) -> None:
        self.ids, self.distances, self.n_neighbors = ids[:, :n_neighbors], distances[:, :n_neighbors], n_neighbors
        if itself:
            own = np.arange(len(ids))[:, None]
            self.ids = np.concatenate([own, self.ids[:, :-1]], axis=1)
            self.distances = np.concatenate([np.zeros(own.shape), self.distances[:, :-1]], axis=1)

    def nearest(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(self.ids[start:stop]), np.ascontiguousarray(self.distances[start:stop])


def share_of(percent: int, n_objects: int, k: int) -> int:
    """Return T for a share of the objects in a class of average size."""
    return max(2, round(percent / 100 * n_objects / k))


def base_clusterings(X: Any, k: int, seed: int, run: int) -> ge.Ensemble:
    most = max(k, min(int(X.shape[0] ** 0.5), 100))
    return ge.generate.kmeans_ensemble(X, M, (k, most), random_state=1000 * seed + run, progress=False)


def consensus(groups: ge.Reduction, coefficients: Any, k: int) -> np.ndarray:
    """Return ECRMC's labels from mapping coefficients, reconstructed or not."""
    similarity = ge.similarity.Full(rank_correlation(coefficients), groups.ensemble.offsets)
    return groups.expand(average_linkage(groups.rows, similarity).cut(k))


def incidence(ensemble: ge.Ensemble) -> Any:
    """Return the original mapping coefficients: 1 for the object's own clusters (eq 8)."""
    from scipy.sparse import csr_array

    known = ensemble.codes != ensemble.missing_code
    clusters = (ensemble.codes + ensemble.offsets[:-1])[known]
    starts = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    return csr_array((np.ones(len(clusters)), clusters, starts), shape=(ensemble.n_objects, ensemble.n_clusters))


def prepared(name: str, data: str | None, shares: tuple) -> tuple[Any, int, np.ndarray, np.ndarray]:
    warnings.simplefilter("ignore")
    found = ge.datasets.load(name, data=data)
    k, n = found.n_classes, len(found.y)
    X = found.X.toarray() if hasattr(found.X, "toarray") else found.X
    references = reference_sets(points_of(X, n, "cpu"), share_of(max(shares), n, k))
    return found, k, *references.nearest(0, n)


def add(scores: common.Record, method: str, labels: np.ndarray, y: np.ndarray) -> None:
    row = ge.metrics.scores(labels, y)
    for score, key in SCORES.items():
        scores.setdefault(method, {}).setdefault(score, []).append(row[key])


def repeat(name: str, data: str | None, runs: int, seed: int) -> common.Record:
    """Score all methods over runs, each with an ensemble of its own."""
    found, k, ids, distances = prepared(name, data, SHARES)
    n = len(found.y)
    scores: common.Record = {}
    seconds, n_groups = [], []
    for run in range(runs):
        ensemble = base_clusterings(found.X, k, seed, run)
        groups = ge.CoreGroups().reduce(ensemble)
        n_groups.append(len(groups.counts))
        for share in SHARES:
            start = time.perf_counter()
            known = Known(ids, distances, share_of(share, n, k))
            labels = consensus(groups, map_objects(ensemble, known), k)
            seconds.append(time.perf_counter() - start)
            add(scores, f"T {share} %", labels, found.y)
        add(scores, "without", consensus(groups, incidence(ensemble), k), found.y)
        for method in ("lwgp", "lwea", "eac"):
            own = {"random_state": run} if method == "lwgp" else {}
            add(scores, method.upper(), ge.consensus(ensemble, k, method=method, **own), found.y)
        base: common.Record = {}
        for column in ensemble.codes.T:
            add(base, "base", column, found.y)
        for score, values in base["base"].items():
            scores.setdefault("base", {}).setdefault(score, []).append(float(np.mean(values)))
    return {
        "n_objects": n,
        "k": k,
        "T": {str(share): share_of(share, n, k) for share in SHARES},
        "groups": float(np.mean(n_groups)),
        "methods": scores,
        "seconds": float(np.median(seconds)),
        "load": common.load(),
    }


def against(name: str, data: str | None, runs: int, seed: int) -> common.Record:
    """Score ECRMC with T = 10 % and its seven rivals on the ensembles of `repeat`; measure CPU seconds."""
    found, k, ids, distances = prepared(name, data, (10,))
    known = Known(ids, distances, share_of(10, len(found.y), k))
    scores: common.Record = {}
    for run in range(runs):
        ensemble = base_clusterings(found.X, k, seed, run)
        groups = ge.CoreGroups().reduce(ensemble)
        ways = {
            "ECRMC": lambda ensemble=ensemble, groups=groups: consensus(groups, map_objects(ensemble, known), k),
            "k-means": lambda run=run: single_kmeans(found.X, k, run),
        } | {rival: partial(methods.consensus, method, ensemble, k, run) for rival, method in RIVALS.items()}
        for way, labels_of in ways.items():
            labels, _, cpu = common.timed(labels_of)
            add(scores, way, labels, found.y)
            scores[way].setdefault("cpu", []).append(cpu)
    return {"n_objects": len(found.y), "k": k, "runs": runs, "methods": scores, "load": common.load()}


def single_kmeans(X: Any, k: int, run: int) -> np.ndarray:
    return ge.generate.kmeans_ensemble(X, 1, (k, k), random_state=run, progress=False).codes[:, 0]


def with_itself(name: str, data: str | None, runs: int, seed: int) -> common.Record:
    """Score ECRMC with T = 10 %, where reference sets contain the object itself or do not."""
    found, k, ids, distances = prepared(name, data, (10,))
    scores: common.Record = {}
    for run in range(runs):
        ensemble = base_clusterings(found.X, k, seed, run)
        groups = ge.CoreGroups().reduce(ensemble)
        for way in ("others", "itself"):
            known = Known(ids, distances, ids.shape[1], itself=way == "itself")
            add(scores, way, consensus(groups, map_objects(ensemble, known), k), found.y)
    return {"methods": scores}


def fit(name: str, data: str | None, labels: str | None, method: str, reduction: str, seed: int) -> common.Record:
    """Measure one method on a large set; the first call includes what the library imports by itself."""
    found = ge.datasets.load(name, data=data)
    k = found.n_classes
    if labels is not None:
        ensemble = ge.Ensemble(np.load(labels))
    else:
        ensemble = ge.generate.kmeans_ensemble(found.X, M, (k, 100), random_state=seed, progress=False)
    before = common.peak_memory()
    made = ge.methods()[method.lower()](k, reduction=reduction)
    more = {"features": found.X} if method == "ECRMC" else {}
    _, record = common.measured(lambda: made.fit(ensemble, **more), later=0)
    row = ge.metrics.scores(made.labels_, found.y)
    return record | {
        "before": before,
        "n_objects": ensemble.n_objects,
        "n_clusters": ensemble.n_clusters,
        "k": k,
        "rows": len(made.reduction_.counts),
        "T": getattr(made, "n_neighbors_", None),
        "coefficients": int(made.mapping_.nnz) if method == "ECRMC" else None,
        **{score: row[key] for score, key in SCORES.items()},
    }
