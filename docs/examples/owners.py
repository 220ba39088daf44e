"""
Three owners who share only labels
==================================

A bank, a shop and a clinic know some of the same people. No owner may share its data, but each has clustered the people
that it knows. From the three columns of labels, soft correspondence (SCEC) finds a consensus of all people, the
confidence of each label, and the meaning of each owner's clusters in the consensus.
"""

# %%
# We simulate 900 people of three kinds. Each owner measures other features, knows two thirds of the people, and makes 4
# or 5 clusters. A person that an owner does not know has the label -1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

import gpuens as ge

rng = np.random.default_rng(0)
kind = rng.integers(3, size=900)
columns = {}
for owner, k in {"bank": 4, "shop": 5, "clinic": 4}.items():
    known = rng.random(len(kind)) < 2 / 3
    own = rng.normal(size=(3, 4))[kind] * 1.6 + rng.normal(size=(len(kind), 4))
    columns[owner] = np.full(len(kind), -1)
    columns[owner][known] = KMeans(k, n_init=3, random_state=0).fit_predict(own[known])
labels = np.column_stack(list(columns.values()))
seen = (labels >= 0).sum(axis=1)
print(f"known to 0, 1, 2, 3 owners: {np.bincount(seen, minlength=4)}")

# %%
# Some people are unknown to all owners. There is no information about them, so they must be left out; otherwise they
# are refused.

someone = seen > 0
try:
    ge.SCEC(n_clusters=3).fit(labels)
except ValueError as error:
    print(f"refused: {error}")
est = ge.SCEC(n_clusters=3).fit(ge.Ensemble(labels[someone], names=list(columns)))

# %%
# The more owners know a person, the better is the label. Confidence has another meaning: the agreement of the owners'
# labels. Nothing contradicts a single owner, so read confidence together with the number of owners.

for n in (1, 2, 3):
    those = seen[someone] == n
    print(
        f"known to {n}: accuracy {ge.metrics.accuracy(est.labels_[those], kind[someone][those]):.2f}, "
        f"mean confidence {est.confidence_[those].mean():.2f}"
    )

# %%
# The meaning of each owner's clusters: rows are the owner's clusters, columns are clusters of the consensus.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for ax, owner in zip(axes, columns, strict=True):
    ge.plotting.correspondence(est, owner, ax=ax)
