"""
Which resolution?
=================

Leiden needs a resolution, and each resolution gives another result. Three questions help you to choose, and none needs
the truth: do the seeds of one resolution agree, do the resolutions agree with each other, and what do all of them
support?
"""

# %%
# We simulate 1,800 cells in four tissues with three types each, in 20 dimensions as after a PCA. The types of a tissue
# are similar, so a small resolution finds tissues, and a large resolution finds types or parts of types.

import anndata
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

import gpuens as ge

rng = np.random.default_rng(0)
kind = rng.choice(12, 1800, p=np.repeat([0.36, 0.3, 0.2, 0.14], 3) / 3)
tissues = 1.3 * rng.normal(size=(4, 20))
types = np.repeat(tissues, 3, axis=0) + 0.75 * rng.normal(size=(12, 20))
cells = anndata.AnnData(np.zeros((1800, 0)))
cells.obsm["X_pca"] = types[kind] + rng.normal(size=(1800, 20))
cells.obsm["X_umap"] = PCA(2, random_state=0).fit_transform(cells.obsm["X_pca"])  # or scanpy.tl.umap(cells)

resolutions = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
ge.sc.ensemble(cells, resolutions, n_seeds=5, use_rep="X_pca", keep="all", progress=False)

# %%
# **Stability** is the mean element-centric similarity between the seeds of one resolution. If it is low, Leiden's
# result is one of many possible results.

columns = {r: [name for name in cells.obs if name.startswith(f"leiden_{r:g}_")] for r in resolutions}
stability, n_clusters = {}, {}
for r, names in columns.items():
    found = ge.evidence.consistency(cells.obs[names])
    stability[r] = found.ecs[np.triu_indices(len(names), 1)].mean()
    n_clusters[r] = cells.obs[names].nunique().median()
    print(f"resolution {r:3g}: {n_clusters[r]:3.0f} clusters, seeds agree by {stability[r]:.3f}")

# %%
# **Agreement**: resolutions with equal clusterings give the same result. There are two blocks: up to .5 the tissues,
# and from 1 the types.

everything = ge.evidence.consistency(cells.obs[[name for names in columns.values() for name in names]])
between = np.array([[everything.ecs[5 * i : 5 * i + 5, 5 * j : 5 * j + 5].mean() for j in range(6)] for i in range(6)])

# %%
# **Consensus**: all clusterings together suggest the tissues. If you want types, leave the small resolutions out.

choice = ge.sc.choose_k(cells, "leiden_*", ks=range(2, 16))
print(f"of 2 to 15 clusters: {choice.suggested} ({choice.reasons[choice.suggested]})")
fine = [name for r in (1, 2, 4) for name in columns[r]]
finer = ge.sc.choose_k(cells, fine, ks=range(2, 16), key_added="finer")
print(f"of the finer clusterings: {finer.suggested} ({finer.reasons[finer.suggested]})")
ge.sc.consensus(cells, fine, n_clusters=finer.suggested)

found = ge.metrics.ari(kind, cells.obs["consensus"].cat.codes)
single = {r: ge.metrics.ari(kind, cells.obs[names[0]].cat.codes) for r, names in columns.items()}
print(f"ARI with the types: consensus {found:.2f}; Leiden", ", ".join(f"{r:g}: {ari:.2f}" for r, ari in single.items()))

# %%
# The figure shows the resolutions, the division of their clusters, and the consensus on the embedding. With a UMAP of
# Scanpy, ``scanpy.pl.umap(cells, color=["consensus", "consensus_certainty"])`` draws the same.

fig, axes = plt.subplots(2, 3, figsize=(10, 6.8), layout="constrained")
shown = axes[0, 0].imshow(between, cmap="Blues", vmin=0, vmax=1)
for (i, j), value in np.ndenumerate(between):
    axes[0, 0].text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else "black")
axes[0, 0].set(title="agreement of resolutions (ECS)", xlabel="resolution", ylabel="resolution")
axes[0, 0].set(xticks=range(6), xticklabels=resolutions, yticks=range(6), yticklabels=resolutions)
axes[0, 1].plot(range(6), list(stability.values()), "o-")
axes[0, 1].set(title="stability: agreement of seeds (ECS)", xlabel="resolution, and its clusters", ylim=(0.5, 1.02))
axes[0, 1].set_xticks(range(6), [f"{r:g}\n{n_clusters[r]:.0f}" for r in resolutions])
ge.plotting.clustree({r: cells.obs[names[0]].cat.codes for r, names in columns.items()}, ax=axes[0, 2])
axes[0, 2].set(title="from one resolution to the next", ylabel="resolution")
ge.plotting.criterion(choice, "score", ax=axes[1, 0])
ge.plotting.embedding(cells, "consensus", ax=axes[1, 1])
ge.plotting.embedding(cells, "consensus_certainty", ax=axes[1, 2])
