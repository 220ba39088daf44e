"""
Two methods disagree: whom do I believe?
========================================

Both were given the same clusterings, and both are good methods. There are three things to look at before choosing: what
each answer does with the objects, what the clusterings say of each answer's clusters, and what becomes of the answers
when the clusterings are made anew.
"""

# %%
# One large and wide group, and three small ones. Every k-means cuts the large one to pieces, each in its own way.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gpuens as ge

rng = np.random.default_rng(0)
sizes, widths = (1600, 150, 150, 100), np.array([2.0, 0.6, 0.6, 0.6])
centers = np.array([[0, 0], [7, 0], [0, 7], [-6, -5]])
group = np.repeat(np.arange(4), sizes)
X = centers[group] + rng.normal(size=(len(group), 2)) * widths[group, None]
ensembles = [ge.generate.kmeans_ensemble(X, 30, (4, 30), random_state=seed, progress=False) for seed in range(5)]

# %%
# Two answers, which have little in common. KCC agrees better with the clusterings (ANMI): agreement is its utility.

comparison = ge.compare(ensembles[0], 4, methods=["lwgp", "kcc"])
print(comparison.table[["anmi", "silhouette", "smallest", "largest"]].round(3).to_string())
answers = comparison.labels
print(pd.crosstab(answers["lwgp"], answers["kcc"], rownames=["lwgp"], colnames=["kcc"]).to_string())

# %%
# A cluster is stable if some cluster of most clusterings is nearly the same (its mean largest Jaccard index), and its
# objects have silhouettes far from zero if the clusterings keep them together and apart from others. LWGP has found
# three such clusters and a remainder; KCC has none. That its score is better comes from sizes: the clusterings are of
# clusters of similar size, and so is its answer.

evidence = {name: ge.evidence.Evidence(ensembles[0], labels) for name, labels in answers.items()}
fig, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
for name, (above, below) in zip(("lwgp", "kcc"), axes.T, strict=True):
    stability = evidence[name].clusters.stability
    print(f"{name}: stability of its clusters {np.sort(stability)[::-1].round(2)}")
    above.scatter(*X.T, c=answers[name], s=4, cmap="tab10")
    above.set(title=f"{name}: most stable cluster {stability.max():.2f}", xticks=[], yticks=[], aspect="equal")
    ge.plotting.silhouettes(evidence[name], ax=below)

# %%
# And the test that needs no score: clusterings made anew, with other seeds. What is in the data comes again.

again = {name: [ge.consensus(e, 4, method=name, random_state=0) for e in ensembles] for name in answers}
repeated = {name: ge.metrics.stability(labels) for name, labels in again.items()}
for name in answers:
    print(
        f"{name}: ARI between the answers of five ensembles {repeated[name]:.2f}; "
        f"accuracy, if the groups were known, {ge.metrics.accuracy(answers[name], group):.2f}"
    )
