"""
Tutorial: from a table to clusters that you can defend
======================================================

This tutorial takes half an hour. 178 wines were measured in 13 ways. Which groups of wines are there, how certain are
the groups, and which wines are between two groups? You can do each step with your own table. The button at the end of
the page downloads this page as a notebook.
"""

# %%
# 1. The data
# -----------
#
# The wines come from three growers. We look at the growers only at the end. The measurements have different units and
# are scaled first; otherwise the measurement with the largest numbers (proline) would decide alone.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

import gpuens as ge

wine = ge.datasets.load("wine")
X = StandardScaler().fit_transform(wine.X)
print(X.shape)

# %%
# 2. Many clusterings
# -------------------
#
# One run of k-means is only one opinion: it depends on the start and on the number of clusters. So we make twenty runs
# with 2 to 13 clusters each. You may already have such labels from any program, as columns of a table.

labels = ge.generate.kmeans_ensemble(X, 20, (2, 13), random_state=0, progress=False)
table = pd.DataFrame(labels.to_array(), columns=[f"run {m + 1}" for m in range(labels.n_clusterings)])
table.index = [f"wine {i + 1}" for i in range(len(table))]
print(table.iloc[[0, 1, 59, 60, 176, 177], :8])

# %%
# Labels of different columns are unrelated: 3 in run 1 is not 3 in run 2. How much do the runs agree? An ARI of 1 means
# equal groups.

consistency = ge.evidence.consistency(table)
pairs = consistency.ari[np.triu_indices(20, 1)]
print(f"ARI of two runs: {pairs.min():.2f} to {pairs.max():.2f}, {np.median(pairs):.2f} in the median")

# %%
# 3. How many clusters?
# ---------------------
#
# `choose_k` compares numbers of clusters by several criteria, suggests a number, and gives its reasons.

choice = ge.choose_k(table, ks=range(2, 9))
print(f"{choice.suggested} clusters: {choice.reasons[choice.suggested]}")
print(choice.alternatives, *choice.caveats)

# %%
# 4. The consensus
# ----------------
#
# LWEA merges the most similar wines first, so it also gives a tree. Every method is used in the same way.

est = ge.LWEA(n_clusters=3).fit(table)
print("sizes:", np.bincount(est.labels_).tolist())

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ge.plotting.coassociation_heatmap(table, est.labels_, ax=axes[0])
ge.plotting.dendrogram(est, ax=axes[1])

# %%
# 5. How sure?
# ------------
#
# The certainty of a wine measures the support of the runs for its label, compared with other labels. Sort the wines by
# certainty, and look at the least certain ones before you use their labels.

evidence = est.evidence()
found = pd.DataFrame(
    {"cluster": est.labels_, "certainty": evidence.objects.certainty, "margin": evidence.objects.margin},
    index=table.index,
)
print(found.sort_values("certainty").head(6).round(2).to_string())
print("\nquartiles of certainty:", found["certainty"].quantile([0.25, 0.5, 0.75]).round(2).tolist())
print("consensus of the clusters:", evidence.clusters.consensus.round(2).tolist())

# %%
# 6. Does another method say the same?
# ------------------------------------
#
# If several methods agree, the groups are in the data, not in the method.

comparison = ge.compare(table, 3, methods=["lwea", "lwgp", "hbgf", "mcla"])
print(comparison.table[["anmi", "item_consensus", "smallest", "largest"]].round(2).to_string())
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ge.plotting.answers(comparison, ax=ax)

# %%
# 7. New wines
# ------------
#
# Later objects need labels from the same runs. Here we use the first wines again as new objects; each gets the most
# similar cluster.

print(est.predict(table.iloc[:5]), est.labels_[:5])

# %%
# 8. Was it right?
# ----------------
#
# Now we compare with the growers. The wrong wines have lower certainty than the others.

right = ge.metrics.ari(est.labels_, wine.y)
wrong = np.array([wine.y[i] != np.bincount(wine.y[est.labels_ == est.labels_[i]]).argmax() for i in range(len(X))])
print(f"ARI with the growers {right:.2f}; {wrong.sum()} of {len(X)} wines are with those of another grower")
of_wrong, of_right = found["certainty"][wrong].median(), found["certainty"][~wrong].median()
print(f"median certainty: {of_wrong:.2f} of these, {of_right:.2f} of the others")

# %%
# 9. The same on the command line
# -------------------------------
#
# .. code-block:: console
#
#    $ gpuens choose wines.csv --ks 2:8
#    $ gpuens run wines.csv -k 3 --method lwea -o consensus.csv --report page.html
#    $ gpuens compare wines.csv -k 3 --methods lwea,lwgp,hbgf,mcla
#
# ``--report`` writes a page with all of these results; the page needs no network.
