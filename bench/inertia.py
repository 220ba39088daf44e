"""A comparison of gpuens's k-means with scikit-learn's KMeans: inertia and CPU seconds for the same k and starts.

    python bench/inertia.py [--only ten one] [--data DIR] [--seed 1]
    python bench/inertia.py --quick

ten  ten starts each, of which the best counts
one  one start each

Each of ten sets is clustered into as many clusters as it has classes, and into three times as many, from 5 seeds of
ours and of scikit-learn's, which draw different centers; both make up to 100 iterations. Of larger sets, 30,000 objects
are drawn. What is compared is the mean inertia over the seeds, in float64 from the labels. Each set is a process of its
own, with one thread. Five minutes of CPU.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import common
import numpy as np
import parts
import report
from parts import SINGLE, Job, Part

SETS = (
    "iris", "vowel", "digits", "pendig_test", "semeion", "texture", "ls", "lr", "shuttle", "covtype",
)  # fmt: skip
BUNDLED = ("iris", "digits")  # data sets that come with scikit-learn
MOST_OBJECTS = 30_000
FACTORS = (1, 3)  # numbers of clusters, as multiples of the number of classes
STARTS = {"ten": 10, "one": 1}
SEEDS = 5
MAX_ITER = 100
GOAL = 1.01
THREADS = SINGLE | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


def main() -> None:
    parser = parts.parser(__doc__, STARTS, quick="sets that come with scikit-learn, two seeds")
    parser.add_argument("--data", type=Path, help="directory of npz files (GPUENS_DATA)")
    options = parser.parse_args()
    parts.run(
        "inertia", options, {name: Part(partial(of_sets, name)) for name in STARTS},
        report.Page("inertia", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting={"seeds": SEEDS, "objects": MOST_OBJECTS, "iterations": MAX_ITER},
    )  # fmt: skip


def of_sets(part: str, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    data, n_seeds = options.data or os.environ.get("GPUENS_DATA"), 2 if options.quick else SEEDS
    for name in BUNDLED if options.quick else SETS:
        for factor in FACTORS:
            arguments = {"name": name, "factor": factor, "starts": STARTS[part], "seed": options.seed}
            arguments |= {"n_seeds": n_seeds, "data": data}
            yield f"{name}, {factor} k", partial(common.in_child, of_set, environment=THREADS, **arguments)


def of_set(name: str, factor: int, starts: int, seed: int, n_seeds: int, data: str | None) -> common.Record:
    """Return inertias and CPU seconds of gpuens's and of scikit-learn's k-means. Each is called once before."""
    from sklearn.cluster import KMeans

    import gpuens as ge

    data_set = ge.datasets.load(name, data=data)
    X = np.ascontiguousarray(data_set.X, dtype=np.float32)
    if len(X) > MOST_OBJECTS:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), MOST_OBJECTS, replace=False))]
    k = factor * len(np.unique(data_set.y))

    def ours(X: np.ndarray, n_seeds: int) -> list[np.ndarray]:
        ensemble = ge.generate.kmeans_ensemble(
            X, n_seeds, k, n_init=starts, max_iter=MAX_ITER, random_state=seed, progress=False
        )
        return list(ensemble.codes.T)

    def theirs(X: np.ndarray, n_seeds: int) -> list[np.ndarray]:
        estimators = (KMeans(k, n_init=starts, max_iter=MAX_ITER, random_state=seed + i) for i in range(n_seeds))
        return [estimator.fit_predict(X) for estimator in estimators]

    row: common.Record = {"n": len(X), "d": X.shape[1], "k": k, "inertia": {}, "seconds": {}}
    makers: dict[str, Callable[..., list[np.ndarray]]] = {"gpuens": ours, "scikit-learn": theirs}
    for library, make in makers.items():
        make(X, 1)
        start = time.process_time()
        labels = make(X, n_seeds)
        row["seconds"][library] = (time.process_time() - start) / n_seeds
        row["inertia"][library] = [inertia(X, column) for column in labels]
    means = {library: float(np.mean(values)) for library, values in row["inertia"].items()}
    return row | {"ratio": means["gpuens"] / means["scikit-learn"]}


def inertia(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the sum of squared distances to the means of the clusters, in float64."""
    sizes = np.maximum(np.bincount(labels), 1)
    total = 0.0
    for column in X.T.astype(np.float64):
        apart = column - column.mean()
        sums = np.bincount(labels, weights=apart)
        total += float((apart * apart).sum() - (sums * sums / sizes).sum())
    return total


# --- the page ---------------------------------------------------------------------------------------------------------


def every_part(rows: common.Record) -> Iterator[report.Found]:
    ratios = np.array([row["ratio"] for row in rows.values()])
    seconds = [sum(row["seconds"][library] for row in rows.values()) for library in ("gpuens", "scikit-learn")]
    yield "inertia", {
        "mean": float(ratios.mean()), "worst": float(ratios.max()), "within": int((ratios <= GOAL).sum()),
        "of": len(ratios), "share": seconds[0] / seconds[1],
    }  # fmt: skip


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    return {"starts": STARTS[name], "seeds": SEEDS, "lists": {"who": ["gpuens", "scikit-learn"]}}


if __name__ == "__main__":
    main()
