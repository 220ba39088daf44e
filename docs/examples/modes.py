"""
Do my runs tell one story?
==========================

A hundred runs of one algorithm do not always gather around one answer. If they gather around two, a consensus of all
runs is a mixture that no run has found. Modes are groups of runs that agree; each has a consensus of its own.
"""

# %%
# The objects lie in four groups at the corners of a rectangle. A k-means with two clusters divides them into left and
# right, or into top and bottom. Which one it finds depends on its start.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

import gpuens as ge

rng = np.random.default_rng(3)
centers = np.array([(0, 0), (2.6, 0), (0, 2.5), (2.6, 2.5)])
X = np.repeat(centers, 150, axis=0) + 0.5 * rng.normal(size=(600, 2))
runs = [KMeans(2, n_init=1, init="random", random_state=seed).fit_predict(X) for seed in range(100)]
runs = [np.where(rng.random(600) < 0.2, rng.integers(0, 2, 600), labels) for labels in runs]  # and errors of a fifth

# %%
# The runs are two stories. The test compares them with runs that differ by independent errors only; more such
# errors would not make more stories.

found = ge.modes(runs)
print(found.story)
for mode in found.modes:
    print(f"{len(mode.members):3} runs agree by an ARI of {mode.agreement:.2f}")
print("ARI between the stories:", found.ari[0, 1:].round(2))

# %%
# The runs of a story look alike once equal clusters have equal names. The strips show the runs of each story in the
# colours of its consensus, which is above them and on the right.

fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for (left, right), mode in zip(axes, found.modes, strict=True):
    aligned = ge.align([runs[m] for m in mode.members], to=mode.consensus)
    ge.plotting.label_strips(aligned, ax=left)
    right.scatter(*X.T, c=np.array(["#0072b2", "#e69f00"])[mode.consensus], s=8, linewidths=0)
    right.set(title=f"the story of {len(mode.members)} runs", xticks=[], yticks=[], aspect="equal")

# %%
# A single consensus of two clusters tells the larger story at best, and leaves the other one out.

mixed = ge.consensus(runs, 2, method="voting")
for mode in found.modes:
    own = np.mean([ge.metrics.ari(mode.consensus, runs[m]) for m in mode.members])
    by_mixture = np.mean([ge.metrics.ari(mixed, runs[m]) for m in mode.members])
    print(f"ARI with the {len(mode.members)} runs: own consensus {own:.2f}, consensus of all {by_mixture:.2f}")
