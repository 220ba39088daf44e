"""
One partition from Bayesian draws
=================================

A Bayesian mixture model gives thousands of partitions, with different numbers of clusters. Which single partition
represents them? The one with the least expected loss, and the loss also chooses the number of clusters.
"""

# %%
# 28 objects: three groups, and a few objects between two of them.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

import gpuens as ge

rng = np.random.default_rng(5)
centers = np.array([[0, 0], [4, 0], [2, 5]])
group = np.repeat([0, 1, 2], [11, 9, 8])
X = centers[group] + rng.normal(size=(28, 2))
X[[9, 10]] = [[2.0, 0.3], [2.3, -0.4]]  # between the first two groups

# %%
# A Dirichlet process mixture of Gaussians with variance 1, whose centres are normal around the mean with variance 9.
# Each step of the Gibbs sampler takes an object out of its cluster, and draws a cluster, perhaps a new one.


def draws(X: np.ndarray, n_draws: int, concentration: float = 1.0, spread: float = 9.0) -> np.ndarray:
    """Return partitions (n_objects, n_draws) from the posterior distribution."""
    X = X - X.mean(axis=0)
    labels, kept = np.zeros(len(X), dtype=int), []
    for step in range(200 + n_draws):
        for i in range(len(X)):
            labels[i] = -1
            sizes = np.append(np.bincount(labels[labels >= 0], minlength=labels.max() + 1), 0)
            sums = np.array([X[labels == r].sum(axis=0) for r in range(len(sizes))])
            variance = spread / (1 + sizes * spread)  # of a cluster's centre, given its objects
            squares = ((X[i] - variance[:, None] * sums) ** 2).sum(axis=1)
            density = np.exp(-squares / (2 * (1 + variance))) / (1 + variance)
            weights = np.where(sizes > 0, sizes, 0.0)
            weights[-1] = concentration
            chances = np.cumsum(weights * density)
            labels[i] = np.searchsorted(chances, rng.random() * chances[-1])
        labels = np.unique(labels, return_inverse=True)[1]
        if step >= 200:
            kept.append(labels.copy())
    return np.array(kept).T


partitions = draws(X, 1000)
ensemble = ge.Ensemble(list(partitions.T))  # a list of columns, because there are more clusterings than objects

# %%
# The median partition of each loss, without a number of clusters. Binder's loss counts pairs, and so it makes small
# clusters of doubtful objects more easily than the variation of information.

medians = {loss: ge.Median(loss=loss).fit(ensemble) for loss in ("binder", "vi", "omari")}
numbers = partitions.max(axis=0) + 1
print(f"clusters in a draw: {numbers.min()} to {numbers.max()}, {numbers.mean():.1f} on average")
for loss, est in medians.items():
    print(f"{loss:6} {est.n_clusters_} clusters, mean loss {est.objective_:.3f}")

# %%
# The least certain objects are those between the groups. The share of the draws that put two objects together shows
# where the draws disagree.

est = medians["vi"]
shares = (partitions[:, None] == partitions[None]).mean(axis=2)
order = np.lexsort((est.confidence_, est.labels_))
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
left.scatter(*X.T, c=est.labels_, s=20 + 160 * (1 - est.confidence_), cmap="Dark2")
left.set(title="median partition (vi)\nlarger points are less certain", xticks=[], yticks=[])
image = middle.imshow(shares[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1)
middle.set(title="share of the draws\nthat put two objects together", xticks=[], yticks=[])
fig.colorbar(image, ax=middle)
right.hist(numbers, bins=np.arange(0.5, numbers.max() + 1.5), color="lightgray", edgecolor="gray")
for place, (loss, found) in enumerate(medians.items()):
    right.axvline(found.n_clusters_ + 0.12 * (place - 1), color=f"C{place}", label=loss)
right.set(xlabel="clusters", ylabel="draws", title="number of clusters\nof draws and medians")
right.xaxis.set_major_locator(MaxNLocator(integer=True))
right.legend()
