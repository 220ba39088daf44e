"""
How sure is each object?
========================

A partition does not distinguish an object in the middle of a cluster from an object between two clusters. The
clusterings do.
"""

# %%
# The digits that come with scikit-learn, 20 k-means clusterings, and their consensus.

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge

digits = ge.datasets.load("digits")
ensemble = ge.generate.kmeans_ensemble(digits.X, 20, (10, 30), random_state=0, progress=False)
est = ge.LWEA(10).fit(ensemble)
evidence = est.evidence()

# %%
# A cluster's consensus is the mean co-association of its pairs.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
ge.plotting.cluster_consensus(evidence, ax=left)
ge.plotting.silhouettes(evidence, ax=right)

# %%
# The least certain digits are also difficult for a person.

certainty = evidence.objects.certainty
least = np.argsort(certainty)[:16]
fig, axes = plt.subplots(2, 8, figsize=(10, 3), layout="constrained")
for ax, i in zip(axes.flat, least, strict=True):
    ax.imshow(digits.X[i].reshape(8, 8), cmap="gray_r")
    ax.set(title=f"a {digits.y[i]}, {certainty[i]:.2f}", xticks=[], yticks=[])

# %%
# Is certainty useful? If the least certain digits are left out, the remaining labels are more often right.

order = np.argsort(-certainty)
shares = np.linspace(0.3, 1, 15)
kept = [order[: int(share * len(order))] for share in shares]
accuracies = [ge.metrics.accuracy(est.labels_[some], digits.y[some]) for some in kept]
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.plot(shares, accuracies, "o-")
ax.set(xlabel="share of the digits, the most certain first", ylabel="accuracy")
print(f"accuracy of all {accuracies[-1]:.3f}, of the surer half {accuracies[4]:.3f}")
