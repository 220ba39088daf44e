"""
When objects have weights
=========================

Some objects stand for more than others: long contigs for more bases than short ones, utterances for seconds, districts
for people. What does a consensus change if it counts the weight of each object?
"""

# %%
# We simulate 1,200 contigs of five genomes, and eight programs that sort contigs into bins. Most contigs are short, but
# most bases are in long contigs. The programs are often wrong about short contigs, and put them into one of two bins
# that belong to no genome.

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge

rng = np.random.default_rng(0)
n, m, k = 1200, 8, 5
genome = rng.integers(k, size=n)
bases = np.maximum(500, rng.lognormal(7.5, 1.3, size=n)).astype(int)
lost = rng.random((n, m)) < np.clip(900 / bases, 0.03, 0.9)[:, None]
bins = np.where(lost, k + rng.integers(2, size=(n, m)), genome[:, None])

longest = np.sort(bases)[::-1]
share = np.searchsorted(longest.cumsum(), bases.sum() / 2) / n
print(f"half of all bases are in {share:.0%} of the contigs")

# %%
# The parameter ``sample_weight`` gives the weights. A contig of 3,000 bases counts as 3,000 contigs with its labels;
# the fit takes no longer. With the same weights, scores give the share of all *bases* in the right cluster.

by_contigs = ge.EM(k).fit(bins)
by_bases = ge.EM(k).fit(bins, sample_weight=bases)
right = [ge.metrics.accuracy(genome, est.labels_, sample_weight=bases) for est in (by_contigs, by_bases)]
print(f"bases in the right cluster: {right[0]:.0%} by contigs, {right[1]:.0%} by bases")

# %%
# By contigs, one cluster is spent on the many short contigs that no program knows, and two genomes share a cluster. By
# bases, these contigs weigh little: each genome has a cluster, and they join one of the five.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
titles = {"each contig counts once": by_contigs, "each base counts once": by_bases}
for ax, (title, est), score in zip(axes, titles.items(), right, strict=True):
    millions = np.zeros((k, k))  # of each genome in each cluster
    np.add.at(millions, (genome, est.labels_), bases / 1e6)
    below = np.cumsum(millions, axis=0) - millions
    for own, start, name in zip(millions, below, "ABCDE", strict=True):
        ax.bar(np.arange(k), own, bottom=start, label=f"genome {name}")
    ax.set(title=f"{title}\n{score:.0%} of the bases are right", xlabel="cluster", xticks=range(k))
axes[0].set_ylabel("million bases")
axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1))

# %%
# Weights change the result of methods that many objects can outvote. LWGP already gives little weight to clusters on
# which the programs disagree, and finds the genomes in both ways.

table = {}
for method in ("em", "kcc", "hbgf", "voting", "lwgp"):
    found = [ge.consensus(bins, k, method=method, sample_weight=weights) for weights in (None, bases)]
    table[method] = [ge.metrics.accuracy(genome, labels, sample_weight=bases) for labels in found]
    print(f"{method:7} {table[method][0]:.2f} by contigs, {table[method][1]:.2f} by bases")

# %%
# Evidence counts bases, too. The contigs that it doubts are short.

unsure = by_bases.confidence_ < 0.5
print(f"{unsure.mean():.0%} of the contigs are unsure; they have {bases[unsure].sum() / bases.sum():.1%} of the bases")
