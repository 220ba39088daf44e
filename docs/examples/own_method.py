"""
A method of your own
====================

A method is a similarity of clusters and a partitioner. Joining two parts that nobody has joined takes one line; a new
class with a name takes ten.
"""

# %%
# Parts are joined by `Consensus`.

import matplotlib.pyplot as plt

import gpuens as ge
from gpuens.methods.base import Consensus
from gpuens.partition import Spectral
from gpuens.similarity import LWCA

digits = ge.datasets.load("digits")
ensemble = ge.generate.kmeans_ensemble(digits.X, 20, (10, 30), random_state=0, progress=False)
joined = ge.Consensus(10, similarity=LWCA(theta=0.4), partitioner=Spectral()).fit(ensemble)

# %%
# With a class it has parameters of its own, works with ``clone`` and grid searches, and `register` gives it a name for
# `ge.consensus`, `ge.compare` and, by an entry point of the group ``gpuens.methods``, for the command line.


class LocallyWeightedSpectral(Consensus):
    """Spectral clustering of the locally weighted co-association."""

    def __init__(self, n_clusters=None, *, theta=0.4, reduction=None, device="auto"):
        self.n_clusters, self.theta = n_clusters, theta
        self.reduction, self.device = reduction, device

    def _parts(self):
        return LWCA(theta=self.theta), Spectral()


ge.register("lw-spectral", LocallyWeightedSpectral)
comparison = ge.compare(ensemble, 10, methods=["lw-spectral", "lwea", "lwgp"], truth=digits.y)
print(comparison.table[["anmi", "accuracy", "smallest", "largest", "seconds"]].round(3).to_string())
named = ge.consensus(ensemble, 10, method="lw-spectral")
print(f"ARI of the joined parts with the class: {ge.metrics.ari(joined.labels_, named):.2f}")

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ge.plotting.coassociation_heatmap(ensemble, joined.labels_, ax=axes[0])
ge.plotting.answers(comparison, ax=axes[1])
