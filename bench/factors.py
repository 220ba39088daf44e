"""Consensus of factors: seconds and memory beside the steps of cNMF, and groups of at most one program of each run.

    python bench/factors.py [--only speed groups]
    python bench/factors.py --quick

speed   the steps of cNMF as its program takes them (square matrix of distances, KMeans, silhouette), and `ge.factors`
groups  planted programs found by k-means, as cNMF groups them, and by the Hungarian method in each run

A quarter of an hour of CPU.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part

import gpuens as ge

SIZES = [(1_000, 10), (5_000, 10), (10_000, 20), (20_000, 20)]  # programs of all runs, and of a run
QUICK_SIZES = [(200, 5)]
N_FEATURES = 2_000
MOST_SQUARED = 10_000  # most programs for the steps of cNMF, whose peak is about 20 bytes a pair
ENSEMBLES = {  # planted programs, pairs of similar ones, objects, counts of an object, concentration of usages
    "6 programs": (6, 0, 300, 300, 0.3),
    "8, 2 pairs alike": (8, 2, 300, 300, 0.3),
    "10, 3 pairs alike": (10, 3, 300, 300, 0.3),
    "10, few counts": (10, 0, 300, 150, 0.2),
    "10, 3 pairs alike, many counts": (10, 3, 300, 1000, 0.2),
    "16, 4 pairs alike": (16, 4, 400, 500, 0.2),
}
N_RUNS = 40
THRESHOLDS = {"strict": 0.2, "default": 0.5, "all": 2.0}  # densities below are used
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn", "pandas")


def main() -> None:
    jobs = {"speed": Part(speed_jobs), "groups": Part(groups_jobs)}
    parser = parts.parser(__doc__, jobs, quick="few programs, two runs")
    parser.add_argument("--repetitions", type=int, default=5, help="ensembles of each kind (5)")
    options = parser.parse_args()
    sizes, n_runs, repetitions = (QUICK_SIZES, 4, 1) if options.quick else (SIZES, N_RUNS, options.repetitions)
    setting = {"sizes": sizes, "n_features": N_FEATURES, "n_runs": n_runs, "repetitions": repetitions}
    options.setting = setting
    parts.run(
        "factors", options, jobs, report.Page("factors", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting=setting,
    )  # fmt: skip


# --- speed ------------------------------------------------------------------------------------------------------------


def speed_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n, k in options.setting["sizes"]:
        yield f"{n:,}", partial(both, n, k)


def both(n: int, k: int) -> common.Record:
    row = {"n": n, "k": k, "square": 8 * n * n, "ours": common.in_child(ours, n=n, k=k)}
    if n <= MOST_SQUARED:
        row["theirs"] = common.in_child(theirs, n=n, k=k)
    return row


def drawn(n: int, k: int) -> np.ndarray:
    """Return noisy copies of k programs, (runs, k, features)."""
    rng = np.random.default_rng(0)
    return (rng.gamma(0.15, 1.0, (k, N_FEATURES)) + 0.001) * rng.gamma(8.0, 1 / 8, (n // k, k, N_FEATURES))


def ours(n: int, k: int) -> common.Record:
    runs = drawn(n, k)
    result, record = common.measured(lambda: ge.factors(runs), later=0)
    return record | {"silhouette": result.silhouette}


def theirs(n: int, k: int) -> common.Record:
    runs = drawn(n, k)
    (medians, silhouette), record = common.measured(lambda: steps_of_cnmf(runs.reshape(n, -1), k), later=0)
    programs = ge.factors(runs).programs
    apart = max(float(abs(programs - median).max(axis=1).min() / median.max()) for median in medians)
    return record | {"silhouette": silhouette, "apart": apart}


def steps_of_cnmf(spectra: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Return the medians and the silhouette of all programs, by the lines of cNMF 1.7.1."""
    import pandas as pd
    from sklearn.cluster import KMeans
    from sklearn.metrics import euclidean_distances, silhouette_score

    unit = spectra / np.sqrt((spectra**2).sum(axis=1))[:, None]
    stability = silhouette_score(unit, KMeans(k, n_init=10, random_state=1).fit(unit).labels_)
    n_nearest = int(0.3 * len(unit) / k)
    distances = euclidean_distances(unit)
    order = np.argpartition(distances, n_nearest + 1)[:, : n_nearest + 1]
    densities = distances[np.arange(len(unit))[:, None], order].sum(1) / n_nearest
    unit = unit[densities < 0.5]
    labels = KMeans(k, n_init=10, random_state=1).fit(unit).labels_
    medians = pd.DataFrame(unit).groupby(labels).median().to_numpy()
    return medians / medians.sum(axis=1)[:, None], float(stability)


# --- groups -----------------------------------------------------------------------------------------------------------


def groups_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    setting = options.setting
    for name, case in ENSEMBLES.items():
        yield name, partial(found_programs, case, setting["n_runs"], setting["repetitions"])


def found_programs(case: tuple[Any, ...], n_runs: int, repetitions: int) -> common.Record:
    """Return, by threshold and way, the mean cosine of the planted programs and the programs of the consensus."""
    cosines: dict[str, Any] = {name: {way: [] for way in WAYS} for name in THRESHOLDS}
    for seed in range(repetitions):
        runs, planted = nmf_runs(*case, n_runs, seed)
        for name, threshold in THRESHOLDS.items():
            try:
                result = ge.factors(runs, density_threshold=threshold)
            except ValueError:  # fewer than k programs are left
                continue
            for way, medians_of in WAYS.items():
                cosines[name][way].append(mean_cosine(medians_of(np.concatenate(runs), result), planted))
    return {"at": cosines}


def nmf_runs(
    k: int, n_pairs: int, n_objects: int, n_counts: int, concentration: float, n_runs: int, seed: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the programs of NMF runs on drawn counts, and the planted ones, in units of the features' deviations."""
    from sklearn.decomposition import NMF

    rng, n_features = np.random.default_rng(seed), 300
    planted = rng.gamma(0.15, 1.0, (k, n_features)) + 0.001
    for pair in range(n_pairs):
        alike = planted[2 * pair] * rng.gamma(4.0, 0.25, n_features)
        planted[2 * pair + 1] = 0.75 * alike + 0.25 * planted[2 * pair + 1]
    planted /= planted.sum(axis=1, keepdims=True)
    usages = rng.dirichlet(np.full(k, concentration), n_objects)
    counts = rng.poisson(n_counts * usages @ planted).astype(float)
    deviations = counts.std(axis=0)
    varies = deviations > 0
    X = counts[:, varies] / deviations[varies]
    models = [NMF(k, init="random", random_state=run, solver="mu", max_iter=400) for run in range(n_runs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # runs that have not converged are runs, too
        return [model.fit(X).components_ for model in models], planted[:, varies] / deviations[varies]


def by_kmeans(programs: np.ndarray, result: Any) -> np.ndarray:
    return result.programs


def one_of_a_run(programs: np.ndarray, result: Any) -> np.ndarray:
    """Return the medians of groups with at most one program of each run: k-means with an assignment in each run."""
    from scipy.optimize import linear_sum_assignment

    used = result.labels >= 0
    points = programs[used] / np.linalg.norm(programs[used], axis=1)[:, None]
    labels, run_of = result.labels[used], result.of_run[used]
    members = [np.flatnonzero(run_of == run) for run in np.unique(run_of)]
    for _ in range(50):
        centers = np.array([points[labels == j].mean(axis=0) for j in range(len(result.programs))])
        costs, before = (centers**2).sum(axis=1) - 2 * points @ centers.T, labels
        labels = np.full(len(points), -1)
        for own in members:
            places, groups_of = linear_sum_assignment(costs[own])
            labels[own[places]] = groups_of
        if (labels == before).all():
            break
    return np.array([np.median(points[labels == j], axis=0) for j in range(len(centers))])


WAYS: dict[str, Callable[[np.ndarray, Any], np.ndarray]] = {"kmeans": by_kmeans, "one": one_of_a_run}


def mean_cosine(programs: np.ndarray, planted: np.ndarray) -> float:
    """Return the mean cosine of programs and planted ones, matched by the Hungarian method."""
    from scipy.optimize import linear_sum_assignment

    unit, unit_planted = (rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (programs, planted))
    cosines = unit @ unit_planted.T
    return float(cosines[linear_sum_assignment(cosines, maximize=True)].mean())


# --- the page ---------------------------------------------------------------------------------------------------------


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    setting = record["parts"][name]["setting"]
    labels = {name: "all" if value == 2 else f"below {value:g}" for name, value in THRESHOLDS.items()}
    return {key: setting[key] for key in ("n_features", "n_runs", "repetitions")} | {"lists": {"threshold": labels}}


def speed(rows: common.Record) -> Iterator[report.Found]:
    apart = [row["theirs"]["apart"] for row in rows.values() if "apart" in row.get("theirs", {})]
    yield "equal", {"apart": max(apart, default=None)}


def groups(rows: common.Record) -> Iterator[report.Found]:
    yield (
        "means",
        {way: [np.mean([row["at"][name][way] for row in rows.values()]) for name in THRESHOLDS] for way in WAYS},
    )


if __name__ == "__main__":
    main()
