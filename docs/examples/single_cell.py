"""
Types of cells, and how sure they are
=====================================

Leiden gives another partition for each resolution and each seed. Instead of choosing one partition, use all: the
consensus is the partition that they support together, and it has a certainty for each cell.
"""

# %%
# We simulate counts of 1,200 cells and 500 genes. There are seven types of cells, two of which are similar. As usual,
# counts are normalised, in logarithms, and reduced to 20 principal components.

import warnings

import anndata
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

import gpuens as ge

rng = np.random.default_rng(0)
n_cells, n_genes, n_types = 1_200, 500, 7
kind = rng.choice(n_types, n_cells, p=[0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05])
level = rng.gamma(0.5, 1.0, n_genes)
change = rng.lognormal(0, 1.0, (n_types, n_genes)) ** (rng.random((n_types, n_genes)) < 0.2)
change[1] = np.where(rng.random(n_genes) < 0.6, change[0], change[1])
depth = rng.lognormal(0, 0.3, n_cells)
counts = rng.poisson(rng.gamma(2.0, depth[:, None] * level * change[kind] / 2.0))
normal = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e4)

adata = anndata.AnnData(counts.astype(np.float32))
adata.obsm["X_pca"] = PCA(20, random_state=0).fit_transform(normal)

# %%
# Twenty Leiden clusterings of the graph of neighbours, for five resolutions with four seeds each, are added to
# ``adata.obs``.

ge.sc.ensemble(adata, use_rep="X_pca", progress=False)
print(adata.obs.nunique().to_string())

# %%
# The consensus of these clusterings, with the certainty of each cell.

ge.sc.consensus(adata, "leiden_*", n_clusters=n_types)
print(adata.obs[["consensus", "consensus_certainty", "consensus_margin"]].head().to_string())
members = [ge.metrics.ari(kind, adata.obs[name].cat.codes) for name in adata.obs if name.startswith("leiden_")]
found = ge.metrics.ari(kind, adata.obs["consensus"].cat.codes)
print(f"ARI with the types: Leiden {np.mean(members):.2f} on average, best {max(members):.2f}; consensus {found:.2f}")

# %%
# On an embedding, cells on which the clusterings disagree lie between clusters.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    adata.obsm["X_tsne"] = TSNE(max_iter=500, random_state=0).fit_transform(adata.obsm["X_pca"])
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
ge.plotting.embedding(adata, "consensus", ax=left)
ge.plotting.embedding(adata, "consensus_certainty", ax=right)
