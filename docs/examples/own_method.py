"""
Write your own method
=====================

A method combines a similarity of clusters and a partitioner. This page writes both as short classes, combines them to a
method with a name, and compares it with existing methods.
"""

# %%
# A similarity
# ------------
#
# A measure is called with the distinct label rows and returns their similarity. Most similarities are a matrix S of the
# N_c clusters of all clusterings. The similarity of two objects is the sum of S over their clusters, divided by M.
# Three classes represent S:
#
# - ``Diagonal(weights, rows.offsets)``, weights (N_c,): the weight of each common cluster of two objects;
# - ``Blocks([S_1, …, S_M])``, each (k_m, k_m): similarities between clusters of one clustering;
# - ``Full(S, rows.offsets)``, S (N_c, N_c): similarities between all clusters.
#
# Our similarity gives a cluster the weight ln(N / n), its rarity. A small common cluster is stronger evidence than a
# common cluster with half of all objects.

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge
from gpuens.methods.base import Method
from gpuens.partition import Partition, Partitioner
from gpuens.similarity import Diagonal, Measure


@dataclass(frozen=True)
class Rarity(Measure):
    """Co-association of clusters weighted by ln(N / n)."""

    kind = "diagonal"
    learns_by_sums = True  # needs only sums over rows (sizes of clusters), so labels may be in chunks

    def __call__(self, rows, features=None):
        sizes = np.maximum(rows.cluster_sizes(), 1)  # (N_c,), objects of each cluster
        return Diagonal(np.log(rows.n_objects / sizes), rows.offsets)


rows = ge.Rows([[0, 0, 0, 0, 1, 1], ["a", "a", "b", "b", "c", "c"]])
print(Rarity()(rows).tile(rows, 0, 1).round(2))  # similarities of the first object to all six

# %%
# A partitioner
# -------------
#
# A partitioner is called with the similarity, the G rows (with ``rows.counts`` objects each) and k, and returns a label
# 0 … k - 1 for each row. It gets the similarity in tiles: ``similarity.tile(rows, start, stop)`` has a line for each of
# these rows and a column for each of the G rows.
#
# Our partitioner starts with the row that has the most objects as the first centre. Then it adds k - 1 centres, each
# time the row that is least similar to the existing centres. At last, each row goes to its most similar centre. Only
# one line of the matrix is needed at a time.


@dataclass(frozen=True)
class FarthestFirst(Partitioner):
    """Each row goes to the most similar of k centres, chosen to be far from each other (Gonzalez 1985)."""

    def __call__(self, similarity, rows, n_clusters):
        to_centres = np.empty((n_clusters, len(rows)))  # (k, G)
        nearest = np.full(len(rows), -np.inf)  # largest similarity of each row to a centre so far
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
# `Consensus` combines any two parts that fit. It provides core groups, missing labels, the labels of all objects, new
# objects and the evidence.

digits = ge.datasets.load("digits")
ensemble = ge.generate.kmeans_ensemble(digits.X, 20, (10, 30), random_state=0, progress=False)
joined = ge.Consensus(10, similarity=Rarity(), partitioner=FarthestFirst()).fit(ensemble)
print("sizes:", np.bincount(joined.labels_))
print("the first objects again, as new ones:", joined.predict(ensemble.to_array()[:8]), joined.labels_[:8])
print(f"objects with a confidence above .9: {np.mean(joined.confidence_ > 0.9):.0%}")

# %%
# New parts work with existing parts: our similarity with average linkage, and our partitioner with LWEA's similarity.
# An impossible pair is refused: the ``kind`` of a similarity must be one that the partitioner ``takes``.

for similarity, partitioner in [(Rarity(), "average"), (Rarity(), "transfer-cut"), ("lwca", FarthestFirst())]:
    found = ge.Consensus(10, similarity=similarity, partitioner=partitioner).fit_predict(ensemble)
    print(f"{similarity} with {partitioner}: ARI {ge.metrics.ari(found, digits.y):.2f}")

# %%
# A class gives the pair a name and its own parameters, which work with ``clone``, grid searches and ``--method``
# options. `register` adds the class to `ge.methods()`. An entry point of the group ``gpuens.methods`` in a package's
# pyproject.toml also adds it to the command line.


class RareCentres(Method):
    """Farthest-first centres of clusters weighted by rarity."""

    def _parts(self):
        return Rarity(), FarthestFirst()


ge.register("rare-centres", RareCentres)
comparison = ge.compare(ensemble, 10, methods=["rare-centres", "lwea", "lwgp"], truth=digits.y)
print(comparison.table[["anmi", "accuracy", "smallest", "largest", "seconds"]].round(3).to_string())
named = ge.consensus(ensemble, 10, method="rare-centres")

# %%
# Our method is simple, but not better, because the farthest rows are often outliers. The picture shows this.

fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
ge.plotting.coassociation_heatmap(ensemble, joined.labels_, ax=axes[0])
ge.plotting.answers(comparison, ax=axes[1])
