"""
The same colours for all runs
=============================

Each run numbers its clusters as it likes, so cluster 2 of one run may be cluster 0 of another. ``ge.align`` names the
clusters of all runs after those of a reference, also for different numbers of clusters and for soft memberships.
"""

# %%
# We simulate individuals of three populations, many of them mixed, and fit a mixture model with two, three and four
# clusters, several times each. The result of a fit are memberships.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture

import gpuens as ge

rng = np.random.default_rng(1)
ancestry = rng.dirichlet([0.25, 0.25, 0.25], 400)
X = ancestry @ np.array([[0, 0], [6, 0], [3, 5]]) + 0.55 * rng.normal(size=(400, 2))
numbers = [2, 2, 3, 3, 3, 4, 4]
soft = [GaussianMixture(k, random_state=seed, reg_covar=0.5).fit(X).predict_proba(X) for seed, k in enumerate(numbers)]

# %%
# Without a name of a reference, the fit that agrees best with the others is the reference. A part of a cluster 2 is
# named 2.b, and has a shade of the colour of 2.

found = ge.align(soft)
print("reference: fit", found.chosen, "with names", found.names)
for m, clusters in enumerate(found.clusters):
    print(f"fit {m}, clusters {[found.names[code] for code in clusters]}, overlap {found.overlap[m]:.2f}")

# %%
# Bars show the memberships of all individuals, several numbers of clusters one under another. Hard labels make strips.

fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
ge.plotting.membership_bars(found, ax=axes[0])
hard = [shares.argmax(axis=1) for shares in soft]
labels = ge.align(hard, to=hard[found.chosen])
ge.plotting.label_strips(labels, ax=axes[1])

# %%
# Named labels can be compared object by object: how many of the fits with three clusters or more agree?

same = (labels.codes[:, 2:] == labels.codes[:, [found.chosen]]).mean(axis=1)
print(f"{np.mean(same == 1):.0%} of the individuals are in the same cluster in all fits with three clusters or more")
