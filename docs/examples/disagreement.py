"""
Two methods disagree: whom do I believe?
========================================

Two good methods give different results for the same clusterings. Before you choose, look at three things: how each
result groups the objects, how strongly the clusterings support each result's clusters, and how the results change if
the clusterings are made again.
"""

# %%
# The data are one large, wide group and three small groups. Every k-means cuts the large group to pieces, each in
# another way.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gpuens as ge

rng = np.random.default_rng(0)
sizes, widths = (1600, 150, 150, 100), np.array([2.0, 0.6, 0.6, 0.6])
centers = np.array([[0, 0], [7, 0], [0, 7], [-6, -5]])
group = np.repeat(np.arange(4), sizes)
X = centers[group] + rng.normal(size=(len(group), 2)) * widths[group, None]
ensembles = [ge.generate.kmeans_ensemble(X, 30, (4, 30), random_state=seed, progress=False) for seed in range(5, 10)]

# %%
# The two results are very different. KCC agrees better with the clusterings (ANMI), because it maximises agreement.

comparison = ge.compare(ensembles[0], 4, methods=["lwgp", "kcc"])
print(comparison.table[["anmi", "silhouette", "smallest", "largest"]].round(3).to_string())
answers = comparison.labels
print(pd.crosstab(answers["lwgp"], answers["kcc"], rownames=["lwgp"], colnames=["kcc"]).to_string())

# %%
# A cluster is stable if most clusterings contain nearly the same cluster (by its mean largest Jaccard index). Its
# objects have silhouettes far from zero if the clusterings keep them together and apart from others. LWGP has found
# three such clusters and a remainder; KCC has none. KCC's better score comes from sizes: the clusterings have clusters
# of similar size, and so has KCC's result.

evidence = {name: ge.evidence.Evidence(ensembles[0], labels) for name, labels in answers.items()}
fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for name, (above, below) in zip(("lwgp", "kcc"), axes.T, strict=True):
    stability = evidence[name].clusters.stability
    print(f"{name}: stability of its clusters {np.sort(stability)[::-1].round(2)}")
    above.scatter(*X.T, c=answers[name], s=4, cmap="tab10")
    above.set(title=f"{name}: most stable cluster {stability.max():.2f}", xticks=[], yticks=[], aspect="equal")
    ge.plotting.silhouettes(evidence[name], ax=below)

# %%
# The last test needs no score: make the clusterings again with other seeds. Real structure in the data appears again.

again = {name: [ge.consensus(e, 4, method=name, random_state=0) for e in ensembles] for name in answers}
repeated = {name: ge.metrics.stability(labels) for name, labels in again.items()}
for name in answers:
    print(
        f"{name}: ARI between the answers of five ensembles {repeated[name]:.2f}; "
        f"accuracy, if the groups were known, {ge.metrics.accuracy(answers[name], group):.2f}"
    )
