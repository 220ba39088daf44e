"""
Regions of a picture
====================

A picture of 427 × 640 has 273,280 pixels, too many for a matrix of their co-association. Pixels with equal labels in
all base clusterings are interchangeable. The CA-tree goes one step further: pixels with *nearly* equal labels share a
node, so that linkage merges a few nodes instead of 273,280 pixels.
"""

# %%
# Twenty k-means clusterings of the colours, each with 4 to 20 clusters and on a twentieth of the pixels.

import matplotlib.pyplot as plt
from sklearn.datasets import load_sample_image

import gpuens as ge

picture = load_sample_image("china.jpg")
X = picture.reshape(-1, 3)
ensemble = ge.generate.kmeans_ensemble(X, 20, (4, 20), objects=0.05, random_state=0, progress=False)

# %%
# We compare evidence accumulation on the nodes of the tree with evidence accumulation on all distinct rows. Both
# linkages are exact for their rows. We ask for two regions, light and dark: base clusterings from other seeds move the
# border of a third region, so three regions on nodes and on rows agree on 67 to 99 % of the pixels only.

on_nodes = ge.EAC(2, reduction=ge.CATree(tau=0.1, gamma=0.9)).fit(ensemble)
on_rows = ge.EAC(2).fit(ensemble)
agreement = ge.metrics.accuracy(on_nodes.labels_, on_rows.labels_)
print(
    f"{ensemble.n_objects:,} pixels, {len(on_rows.reduction_.counts):,} distinct rows of labels, "
    f"{len(on_nodes.reduction_.counts):,} nodes; the regions agree on {agreement:.1%} of the pixels"
)

fig, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
axes[0].imshow(picture)
axes[1].imshow(on_nodes.labels_.reshape(picture.shape[:2]), cmap="viridis")
axes[2].imshow(on_rows.labels_.reshape(picture.shape[:2]), cmap="viridis")
for ax, title in zip(axes, ["the picture", "on the nodes", "on all distinct rows"], strict=True):
    ax.set(title=title, xticks=[], yticks=[])

# %%
# Where are the regions uncertain? The margin of a pixel is its mean co-association with its own region minus that with
# the next region. The lake beside the tower and the edges of the roofs are dark, so they are uncertain.

margin = on_rows.evidence().objects.margin
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
shown = ax.imshow(margin.reshape(picture.shape[:2]), cmap="magma")
ax.set(title="margin", xticks=[], yticks=[])
fig.colorbar(shown)
