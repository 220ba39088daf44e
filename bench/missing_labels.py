"""Print the scores of EAC on planted clusters, from clusterings of samples with missing labels as zero or ignored.

    python bench/missing_labels.py

Every clustering cuts each of 4 planted clusters of 400 objects into 1 to 3 parts, draws a share of the labels at random
(noise), and leaves out a share of the objects. Adjusted Rand index of 4 clusters, mean of 20 ensembles.
"""

import itertools
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

import gpuens as ge

N_OBJECTS, N_CLASSES, PARTS, REPEATS = 400, 4, 3, 20
NOISE, KEPT, CLUSTERINGS = (0.2, 0.4, 0.5), (0.8, 0.6, 0.4), (10, 20, 50)


def ensemble(n_clusterings: int, noise: float, kept: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (n, M), -1 for missing, and planted clusters (n,) of the objects that are in some sample."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLASSES, size=N_OBJECTS)
    labels = np.full((N_OBJECTS, n_clusterings), -1)
    for m in range(n_clusterings):
        parts = rng.integers(1, PARTS, size=N_CLASSES, endpoint=True)
        column = (np.cumsum(parts) - parts)[truth] + rng.integers(parts[truth])
        anywhere = rng.random(N_OBJECTS) < noise
        column[anywhere] = rng.integers(parts.sum(), size=np.count_nonzero(anywhere))
        sample = rng.choice(N_OBJECTS, round(kept * N_OBJECTS), replace=False)
        labels[sample, m] = column[sample]
    seen = (labels >= 0).any(axis=1)
    return labels[seen], truth[seen]


def main() -> None:
    print("| noise | objects in a sample | clusterings | zero | ignore |\n|---|---|---|---|---|")
    for noise, kept, m in itertools.product(NOISE, KEPT, CLUSTERINGS):
        drawn = [ensemble(m, noise, kept, seed) for seed in range(REPEATS)]
        scores = [
            np.mean([adjusted_rand_score(truth, ge.EAC(N_CLASSES, missing=how).fit_predict(x)) for x, truth in drawn])
            for how in ("zero", "ignore")
        ]
        print(f"| {noise:.0%} | {kept:.0%} | {m} | {scores[0]:.3f} | {scores[1]:.3f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # ignore the warning of objects that no clustering labels together
    main()
