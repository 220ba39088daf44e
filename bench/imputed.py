"""Print the scores of one consensus of k-means on forty imputed data sets, and of k-means on a single one.

    python bench/imputed.py

Values of the features are deleted at random. The multiple imputation draws them from scikit-learn's IterativeImputer.
Adjusted Rand index with the classes, mean of 5 draws of the deleted values.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import gpuens as ge

DATA = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
DELETED, IMPUTATIONS, REPEATS, NEAREST = (0.2, 0.4), 40, 5, 5


def scores(load: Callable[..., Any], deleted: float, seed: int) -> list[float]:
    """Return the scores with all values, by the median, by one imputation (mean), and by the consensus of all."""
    X, truth = load(return_X_y=True)
    n_clusters, complete = len(np.unique(truth)), StandardScaler().fit_transform(X)
    incomplete = np.where(np.random.default_rng(seed).random(X.shape) < deleted, np.nan, complete)

    def cluster(values: np.ndarray, run: int) -> np.ndarray:
        labels: np.ndarray = KMeans(n_clusters, n_init=3, random_state=run).fit_predict(values)
        return labels

    def impute(run: int) -> np.ndarray:
        imputer = IterativeImputer(sample_posterior=True, n_nearest_features=NEAREST, max_iter=5, random_state=run)
        values: np.ndarray = imputer.fit_transform(incomplete)
        return values

    runs = [cluster(impute(run), run) for run in range(IMPUTATIONS)]
    median = cluster(SimpleImputer(strategy="median").fit_transform(incomplete), 0)
    consensus = ge.Voting(n_clusters).fit_predict(ge.Ensemble(runs))
    single = float(np.mean([adjusted_rand_score(truth, run) for run in runs]))
    whole = adjusted_rand_score(truth, cluster(complete, 0))
    return [whole, adjusted_rand_score(truth, median), single, adjusted_rand_score(truth, consensus)]


def main() -> None:
    print("| data | deleted | all values | median | one imputation | consensus of forty |\n|---|---|--:|--:|--:|--:|")
    for name, load in DATA.items():
        for deleted in DELETED:
            means = np.mean([scores(load, deleted, seed) for seed in range(REPEATS)], axis=0)
            print(f"| {name} | {deleted:.0%} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # imputations that have not converged
    main()
