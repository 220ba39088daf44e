"""Print seconds and inertia of base clusterings by each algorithm and by scikit-learn, measured in a single run.

    python bench/generate.py [--data NAME] [--clusterings 20] [--k 7:100] [--kmeans 20]

Every clustering has one start by k-means++ and its k drawn from the bounds, the same for all algorithms. A ratio is the
inertia of its partition over that of scikit-learn's KMeans of all objects with the same k and the seed of the
clustering's place, for the first ``--kmeans`` clusterings; ours and scikit-learn's draws differ. Each algorithm is
called once with few objects before, so that its seconds are without imports.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

import gpuens as ge

MAX_ITER = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="covtype", help="a data set of GPUENS_DATA or scikit-learn")
    parser.add_argument("--objects", type=int, help="only so many objects, the first ones")
    parser.add_argument("--clusterings", type=int, default=20)
    parser.add_argument("--k", default="7:100", help="bounds of the number of clusters")
    parser.add_argument("--kmeans", type=int, default=20, help="clusterings of scikit-learn's KMeans")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    X = np.ascontiguousarray(ge.datasets.load(options.data).X[: options.objects], dtype=np.float32)
    low, high = map(int, options.k.split(":"))
    children = np.random.default_rng(options.seed).spawn(options.clusterings)
    # numbers of clusters, drawn as in `kmeans_ensemble`
    ks = [int(rng.integers(low, high, endpoint=True)) for rng in children]

    def ours(algorithm: str) -> Callable[[], list[np.ndarray]]:
        def labels() -> list[np.ndarray]:
            results = ge.generate.kmeans_ensemble(
                X, options.clusterings, (low, high), algorithm=algorithm, random_state=options.seed, progress=False
            )
            return list(results.codes.T)

        small = X[: max(1000, 2 * high)]
        ge.generate.kmeans_ensemble(small, 2, (low, high), algorithm=algorithm, max_iter=2, progress=False)
        return labels

    def theirs(model: type, many: int) -> Callable[[], list[np.ndarray]]:
        estimators = [model(k, n_init=1, max_iter=MAX_ITER, random_state=m) for m, k in enumerate(ks[:many])]
        return lambda: [estimator.fit_predict(X) for estimator in estimators]

    rows = {
        "`nested`": ours("nested"),
        "`minibatch`": ours("minibatch"),
        "scikit-learn's MiniBatchKMeans": theirs(MiniBatchKMeans, options.clusterings),
        "scikit-learn's KMeans": theirs(KMeans, options.kmeans),
    }
    print(f"{options.data}: {X.shape[0]:,} objects, {X.shape[1]} features; k = {', '.join(map(str, ks))}\n", flush=True)
    results = {}
    for name, call in rows.items():
        wall, cpu = time.perf_counter(), time.process_time()
        labels = call()
        results[name] = time.perf_counter() - wall, time.process_time() - cpu, [inertia(X, column) for column in labels]
        print(f"{name}: {results[name][0]:.1f} s", flush=True)
    full = np.array(results["scikit-learn's KMeans"][2])
    print("\n| | clusterings | seconds | CPU seconds | inertia ratio | best | worst |\n|---|---|---|---|---|---|---|")
    for name, (seconds, cpu, inertias) in results.items():
        ratio = np.array(inertias[: len(full)]) / full
        text = f"{ratio.mean():.4f} | {ratio.min():.4f} | {ratio.max():.4f}"
        print(f"| {name} | {len(inertias)} | {seconds:.1f} | {cpu:.1f} | {text} |")


def inertia(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the sum of squared distances to the means of the clusters, in float64."""
    sizes = np.bincount(labels)
    total = 0.0
    for column in X.T.astype(np.float64):
        apart = column - column.mean()
        sums = np.bincount(labels, weights=apart)
        total += float((apart * apart).sum() - (sums * sums / np.maximum(sizes, 1)).sum())
    return total


if __name__ == "__main__":
    main()
