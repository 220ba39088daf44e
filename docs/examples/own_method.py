"""
Write your own method
=====================

A method is a similarity of clusters and a partitioner. This page writes both, each a class of a few lines, joins them
to a method with a name, and runs it beside those that are there.
"""

# %%
# A similarity
# ------------
#
# A measure is called with the distinct label rows and returns their similarity. Most similarities are a matrix S of the
# N_c clusters of all clusterings: objects are as similar as S of their clusters, summed and divided by M. Three classes
# hold S, by how much of it there is:
#
# - ``Diagonal(weights, rows.offsets)``, weights (N_c,): what a cluster counts that two objects share;
# - ``Blocks([S_1, …, S_M])``, each (k_m, k_m): clusters of one clustering may be similar, too;
# - ``Full(S, rows.offsets)``, S (N_c, N_c): all clusters may be.
#
# Ours weighs a cluster by its rarity, ln(N / n): two objects that share a small cluster have more in common than two
# that share one with half of all objects in it.

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge
from gpuens.methods.base import Consensus
from gpuens.partition import Partition, Partitioner
from gpuens.similarity import Diagonal, Measure


@dataclass(frozen=True)
class Rarity(Measure):
    """Co-association of clusters weighted by ln(N / n)."""

    kind = "diagonal"
    learns_by_sums = True  # sizes of clusters are sums over rows: labels may be in chunks

    def __call__(self, rows, features=None):
        sizes = np.maximum(rows.cluster_sizes(), 1)  # (N_c,) objects
        return Diagonal(np.log(rows.n_objects / sizes), rows.offsets)


rows = ge.Rows([[0, 0, 0, 0, 1, 1], ["a", "a", "b", "b", "c", "c"]])
print(Rarity()(rows).tile(rows, 0, 1).round(2))  # of the first object to all six

# %%
# A partitioner
# -------------
#
# It is called with the similarity, the rows (G of them, each with ``rows.counts`` objects) and k, and returns a label
# 0 … k - 1 for each row. It asks the similarity for tiles: ``similarity.tile(rows, start, stop)`` has a line for each
# of these rows and a column for each of the G.
#
# Ours begins with the row that has the most objects, then takes, k - 1 times, the row that is least similar to those
# taken, and gives all rows to the most similar of these k centres. It needs one line of the matrix at a time.


@dataclass(frozen=True)
class FarthestFirst(Partitioner):
    """Each row goes to the most similar of k centres, chosen to be far from each other (Gonzalez 1985)."""

    def __call__(self, similarity, rows, n_clusters):
        to_centres = np.empty((n_clusters, len(rows)))  # (k, G)
        nearest = np.full(len(rows), -np.inf)  # the similarity of each row to the centres so far
        centre = int(rows.counts.argmax())
        for line in to_centres:
            line[:] = similarity.tile(rows, centre, centre + 1)[0]
            line[centre] = np.inf  # a centre is in its own cluster
            np.maximum(nearest, line, out=nearest)
            centre = int(nearest.argmin())
        return Partition.of_labels(to_centres.argmax(axis=0))


# %%
# The method
# ----------
#
# `Consensus` joins any two parts that fit. Core groups, missing labels, the labels of all objects, new objects and the
# evidence come with it.

digits = ge.datasets.load("digits")
ensemble = ge.generate.kmeans_ensemble(digits.X, 20, (10, 30), random_state=0, progress=False)
joined = ge.Consensus(10, similarity=Rarity(), partitioner=FarthestFirst()).fit(ensemble)
print("sizes:", np.bincount(joined.labels_))
print("the first objects again, as new ones:", joined.predict(ensemble.to_array()[:8]), joined.labels_[:8])
print(f"objects with a confidence above .9: {np.mean(joined.confidence_ > 0.9):.0%}")

# %%
# New parts go with those that are there: our similarity with average linkage, our partitioner with that of LWEA. A pair
# without a meaning is refused, by the ``kind`` of the one and what the other ``takes``.

for similarity, partitioner in [(Rarity(), "average"), (Rarity(), "transfer-cut"), ("lwca", FarthestFirst())]:
    found = ge.Consensus(10, similarity=similarity, partitioner=partitioner).fit_predict(ensemble)
    print(f"{similarity} with {partitioner}: ARI {ge.metrics.ari(found, digits.y):.2f}")

# %%
# A class gives the pair a name and parameters of its own, which work with ``clone``, grid searches and
# ``--method`` options. `register` puts it among `ge.methods()`; an entry point of the group ``gpuens.methods`` in a
# package's pyproject.toml also puts it on the command line.


class RareCentres(Consensus):
    """Farthest-first centres of clusters weighted by rarity."""

    def __init__(self, n_clusters=None, *, reduction=None, device="auto"):
        self.n_clusters, self.reduction, self.device = n_clusters, reduction, device

    def _parts(self):
        return Rarity(), FarthestFirst()


ge.register("rare-centres", RareCentres)
comparison = ge.compare(ensemble, 10, methods=["rare-centres", "lwea", "lwgp"], truth=digits.y)
print(comparison.table[["anmi", "accuracy", "smallest", "largest", "seconds"]].round(3).to_string())
named = ge.consensus(ensemble, 10, method="rare-centres")

# %%
# Ours is simple, and is not better: farthest rows are often odd ones. The picture shows it.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ge.plotting.coassociation_heatmap(ensemble, joined.labels_, ax=axes[0])
ge.plotting.answers(comparison, ax=axes[1])
