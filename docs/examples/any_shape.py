"""
Clusters of any shape
=====================

k-means cuts rings and half moons to pieces. Here, base clusterings are spectral clusterings by landmarks, most with far
too many clusters, and trees of the same landmarks. Their consensus joins the pieces, in time linear in the number of
objects.
"""

# %%
# Three pictures of 5,000 points each.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles, make_moons

import gpuens as ge

rng = np.random.default_rng(0)
n = 5_000
turn = np.sqrt(rng.random(n)) * 3 * np.pi
arm = rng.integers(2, size=n)
spirals = (turn * np.stack([np.cos(turn + np.pi * arm), np.sin(turn + np.pi * arm)])).T + rng.normal(0, 0.3, (n, 2))
sets = {
    "moons": make_moons(n, noise=0.06, random_state=0),
    "rings": make_circles(n, noise=0.04, factor=0.5, random_state=0),
    "spirals": (spirals, arm),
}

# %%
# One call each: forty clusterings, and their consensus by LWGP.

fig, axes = plt.subplots(2, len(sets), figsize=(10, 6), layout="constrained")
scores = {}
for (name, (X, truth)), (above, below) in zip(sets.items(), axes.T, strict=True):
    k = truth.max() + 1
    found = ge.cluster(X, k, progress=False)
    plain = KMeans(k, n_init=10, random_state=0).fit_predict(X)
    scores[name] = ge.metrics.ari(truth, plain), ge.metrics.ari(truth, found.labels_)
    for ax, labels, by in ((above, plain, "k-means"), (below, found.labels_, "consensus")):
        ax.scatter(*X.T, c=labels, s=2, cmap="tab10")
        ax.set(title=f"{name}, {by}: ARI {ge.metrics.ari(truth, labels):.2f}", xticks=[], yticks=[])
for name, (plain, consensus) in scores.items():
    print(f"{name}: k-means {plain:.2f}, consensus {consensus:.2f}")
