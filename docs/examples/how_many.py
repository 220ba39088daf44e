"""
How many clusters?
==================

No criterion is right for all data. `choose_k` therefore computes several criteria, suggests a number, and gives its
reasons. It also says if there are no clusters to find.
"""

# %%
# The first data set has six groups, with two pairs of near groups. The second has the same number of points in a single
# cloud, with five features.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

import gpuens as ge

centers = np.array([[0, 0], [2.6, 0], [12, 0], [14.6, 0], [6, 9], [8, -9]])
X, group = make_blobs(420, centers=centers, cluster_std=0.8, random_state=0)
nothing = np.random.default_rng(0).normal(size=(420, 5))

# %%
# Six clusters are suggested, in doubt. Four have nearly as much support, because two pairs of groups are near, and are
# a second suggestion. Thirty clusterings of samples for each number show how certain its clusters are.

ks = range(2, 9)
choice = ge.choose_k(features=X, ks=ks, n_clusterings=30)
print(choice.table[["support", "silhouette", "pac", "corrected_pac", "inconsistency", "smallest"]].round(3).to_string())
print(f"{choice.suggested} clusters: {choice.reasons[choice.suggested]}")
for reason, numbers in choice.alternatives.items():
    print(f"{reason}: {numbers}")
print(*choice.caveats)

# %%
# The picture shows how the clusters of one number divide into those of the next: two long stalks and four short ones.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
axes[0].scatter(*X.T, c=group, s=4, cmap="tab10")
axes[0].set(title="six groups", xticks=[], yticks=[])
ge.plotting.criterion(choice, "silhouette", ax=axes[1])
axes[1].set(title="silhouette", ylabel="")
ensemble = ge.generate.kmeans_ensemble(X, 30, (8, 25), random_state=0, progress=False)
levels = {k: ge.LWEA(k).fit(ensemble).labels_ for k in ks}
ge.plotting.clustree(levels, ax=axes[2])
axes[2].set(title="how clusters divide", xlabel="")

# %%
# For the data without groups, ``null=19`` also clusters 19 reference data sets without structure, for comparison.

none = ge.choose_k(features=nothing, ks=range(2, 5), n_clusterings=20, null=19)
print(f"{none.suggested} clusters: {none.reasons[none.suggested]}")
print(*none.caveats)
