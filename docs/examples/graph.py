"""
Communities of a graph
======================

The Louvain algorithm gives another clustering of a graph with every seed: at its last level, it joins small
communities, and at its first level it divides large ones. The edges tell where seeds disagree: the ends of an edge
within a community are in one cluster of nearly every clustering, those of an edge between two communities only in some.
Cut the latter edges, and cluster what is left.
"""

# %%
# The first graph is a ring of 24 cliques of five people, where an edge joins each clique to the next. Modularity is
# larger if neighbouring cliques are joined, so no last level finds the cliques. But each seed joins others. First
# levels, which are the default, are the cliques.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge

n_cliques = 24
edges = [(5 * c + i, 5 * c + j) for c in range(n_cliques) for i in range(5) for j in range(i)]
edges += [(5 * c, (5 * c + 7) % (5 * n_cliques)) for c in range(n_cliques)]
cliques = np.repeat(np.arange(n_cliques), 5)

ring = ge.graph_consensus(edges, base="louvain", threshold=1.0)
first_levels = ge.graph_consensus(edges)
of_seeds = [ge.metrics.ari(cliques, column) for column in ring.ensemble.to_array().T]
of_ring = ge.metrics.ari(cliques, ring.labels)
print(ring)
print(f"ARI with the cliques: last levels {min(of_seeds):.2f} to {max(of_seeds):.2f}, their consensus {of_ring:.2f}")
print(f"agreement on the edges: last levels {ring.agreement:.2f}, first levels {first_levels.agreement:.2f}")

# %%
# The second graph is random: 3,000 people in communities of 5 to 50, and 40% of the edges lead anywhere. The
# clusterings are made once; then each threshold takes a fraction of a second.

rng = np.random.default_rng(0)
sizes = np.minimum(50, 5 / rng.random(1000)).astype(int)
sizes = sizes[np.cumsum(sizes) <= 3000]
community = np.repeat(np.arange(len(sizes)), sizes)
n = len(community)
first = np.repeat(np.arange(n), 5)
within = (np.cumsum(sizes) - sizes)[community[first]] + rng.integers(sizes[community[first]])
second = np.where(rng.random(len(first)) < 0.4, rng.integers(n, size=len(first)), within)
graph = np.column_stack([first, second])

found = ge.graph_consensus(graph)
labels = found.ensemble.to_array()
single = np.mean([ge.metrics.ari(community, column) for column in labels.T])
last = ge.metrics.ari(community, ge.generate.louvain_ensemble(ge.Graph.of(graph), level="last").to_array()[:, 0])
thresholds = np.arange(1, 17) / 16
ari = [
    ge.metrics.ari(community, ge.graph_consensus(graph, labels, threshold=threshold).labels) for threshold in thresholds
]
consensus = ge.metrics.ari(community, found.labels)
print(found)
print(f"{len(sizes)} communities; ARI: last level {last:.2f}, first levels {single:.2f}, consensus {consensus:.2f}")

# %%
# In a graph without communities, first levels find hundreds of clusters, too. But they are others with each seed: the
# agreement is near 0, the consensus warns of it, and most people are alone.

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    noise = ge.graph_consensus(rng.integers(n, size=(5 * n, 2)))
of_noise = noise.ensemble.n_clusters / noise.ensemble.n_clusterings
print(warned[0].message)
print(f"random edges: {of_noise:.0f} clusters in each clustering; {noise.n_clusters:,} in the consensus")

# %%
# In the ring, colour shows one of the 16 clusterings, and dotted edges are cut.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
angle = 2 * np.pi * cliques / n_cliques
around = angle + 0.6 * np.pi + 0.4 * np.pi * (np.arange(len(cliques)) % 5)
x, y = np.cos(angle) + 0.08 * np.cos(around), np.sin(angle) + 0.08 * np.sin(around)
for kept, style in ((True, {"color": "0.7", "lw": 0.8}), (False, {"color": "tab:red", "lw": 2, "ls": ":"})):
    ends = ring.edges[ring.kept == kept].T
    axes[0].plot(x[ends], y[ends], zorder=0, **style)
axes[0].scatter(x, y, c=ring.ensemble.to_array()[:, 0], cmap="tab20", s=25)
axes[0].set(title="one last level", aspect="equal")
axes[0].axis("off")
same = community[found.edges[:, 0]] == community[found.edges[:, 1]]
shares = [found.coassociation[same], found.coassociation[~same]]
axes[1].hist(shares, bins=np.arange(18) / 16 - 1 / 32, stacked=True, label=["within a community", "between two"])
axes[1].axvline(0.5 - 1 / 32, color="black", ls="--")
axes[1].set(title="co-association of the edges", xlabel="share of the clusterings", ylabel="edges")
axes[1].legend()
axes[2].plot(thresholds, ari, "o-", label="consensus")
axes[2].axhline(single, color="gray", label="mean first level")
axes[2].axvline(0.5, color="black", ls="--", label="default")
axes[2].set(title="agreement with the communities", xlabel="threshold", ylabel="ARI", ylim=(0, 1))
axes[2].legend()
