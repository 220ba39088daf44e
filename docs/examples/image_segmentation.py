"""
Regions of a picture
====================

Several segmentations of a picture differ in their regions and their numbers. Their consensus should be regions, too,
but without neighbours it is not: far pixels with equal labels share a cluster, and pixels at borders are scattered.
Give evidence accumulation the grid of the pixels, and only adjacent regions merge.
"""

# %%
# Twelve segmentations of a picture of 213 × 320 pixels: k-means of places and of colours that are more or less blurred,
# with 10 to 40 clusters each.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, label
from sklearn.datasets import load_sample_image

import gpuens as ge

picture = load_sample_image("china.jpg")[::2, ::2]
shape = picture.shape[:2]
rng = np.random.default_rng(0)


def segmentation(seed):
    """Return the clusters of the pixels by blurred colours and by places."""
    blurred = gaussian_filter(picture.astype(float), (*[rng.uniform(1, 4)] * 2, 0)).reshape(-1, 3)
    places = rng.uniform(0.2, 0.6) * np.indices(shape).reshape(2, -1).T
    X = np.column_stack([blurred, places])
    return ge.generate.kmeans_ensemble(X, 1, (10, 40), objects=0.2, random_state=seed, progress=False).to_array()[:, 0]


labels = np.column_stack([segmentation(seed) for seed in range(12)])

# %%
# Two adjacent regions merge by their mean co-association over *all* pairs of their pixels. Sums of label rows give it,
# without a matrix of pixels.

k, graph = 12, ge.Graph.grid(shape)
alone = ge.EAC(k).fit(labels)
est = ge.EAC(k).fit(labels, graph=graph)


def n_pieces(labels):
    """Return the number of connected pieces of the clusters."""
    return sum(label(labels.reshape(shape) == cluster)[1] for cluster in range(k))


pieces = [n_pieces(found.labels_) for found in (alone, est)]
print(f"{len(labels):,} pixels: {k} clusters in {pieces[0]:,} pieces without the graph, {pieces[1]} with it")
print("pixels of the regions:", np.sort(np.bincount(est.labels_))[::-1].tolist())

# %%
# Where are the regions uncertain? Of all edges of the grid, look at those that leave a region: the share of the
# segmentations that also separate the two pixels is the strength of the border.

apart = (labels[graph.tails] != labels[graph.heads]).mean(axis=1)
border = est.labels_[graph.tails] != est.labels_[graph.heads]
strength = np.zeros(len(labels))
np.maximum.at(strength, graph.tails[border], apart[border])

fig, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
axes[0, 0].imshow(picture)
axes[0, 1].imshow(labels[:, 0].reshape(shape), cmap="tab20")
axes[1, 0].imshow(alone.labels_.reshape(shape), cmap="tab20")
axes[1, 1].imshow(est.labels_.reshape(shape), cmap="tab20")
titles = ["the picture", "one segmentation", "without neighbours", "regions"]
for ax, title in zip(axes.ravel(), titles, strict=True):
    ax.set(title=title, xticks=[], yticks=[])

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
shown = ax.imshow(strength.reshape(shape), cmap="magma")
ax.set(title="share of the segmentations with this border", xticks=[], yticks=[])
fig.colorbar(shown)
