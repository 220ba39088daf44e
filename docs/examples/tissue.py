"""
Domains of a tissue
===================

Ten programs have divided the cells of a tissue into domains, and each errs in a way of its own. Cells have neighbours,
and a domain is a place: the cells around a cell tell where the programs are wrong.
"""

# %%
# Four thousand cells lie in five domains of several parts. Each program joins two domains, splits one in
# two, takes the cells of whole patches for others, and errs in a third of the single cells.

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import KDTree

import gpuens as ge

rng = np.random.default_rng(1)
cells = rng.random((4000, 2))
truth = KDTree(rng.random((15, 2))).query(cells)[1] % 5


def program():
    """Return the domains (4000,) of one program."""
    joined, other, split = rng.permutation(5)[:3]
    labels = np.where(truth == joined, other, truth)
    labels[(truth == split) & ((cells - 0.5) @ rng.standard_normal(2) > 0)] = 5
    of_patch = KDTree(rng.random((60, 2))).query(cells)[1]
    mistaken = np.where(rng.random(60) < 0.3, rng.integers(0, 6, 60), -1)[of_patch]
    labels = np.where(mistaken < 0, labels, mistaken)
    return np.where(rng.random(4000) < 0.3, rng.integers(0, 6, 4000), labels)


labels = np.column_stack([program() for _ in range(10)])

# %%
# Consensus without neighbours decides cell by cell. With ``coordinates``, each cell is joined to the six nearest, and
# :class:`gpuens.Spatial` looks at the labels around it. The graph could as well be ``adata.obsp`` of scanpy or squidpy.

alone = ge.LWGP(5).fit(labels)
est = ge.Spatial(5).fit(labels, coordinates=cells)

members = [ge.metrics.ari(truth, column) for column in labels.T]
of_alone, of_domains = (ge.metrics.ari(truth, found.labels_) for found in (alone, est))
print(f"ARI with the truth: programs {min(members):.2f} to {max(members):.2f}")
print(f"consensus without neighbours {of_alone:.2f}, domains {of_domains:.2f}")

# %%
# An estimator says what it has learned: how strongly neighbours go together, and how many of the ten programs count,
# because programs that err alike count less.

print(f"strength of neighbours (β): {est.potts_:.1f}")
print(f"members that count: {est.effective_members_:.1f} of {labels.shape[1]}")

# %%
# ``membership_`` has the probability of each domain. Its entropy is a map of doubt: high at the borders, low inside.

doubt = -(est.membership_ * np.log2(np.maximum(est.membership_, 1e-12))).sum(axis=1)
at_border = (truth[est.graph_.tails] != truth[est.graph_.heads]).astype(float)
at_border = np.bincount(est.graph_.tails, at_border) > 0
print(f"mean doubt in bits: {doubt[at_border].mean():.2f} at borders, {doubt[~at_border].mean():.3f} inside")

fig, axes = plt.subplots(2, 3, figsize=(9.5, 6), layout="constrained")
*axes, empty = axes.flat
empty.remove()
titles = ["the domains", "one program", "without neighbours", "with neighbours"]
named = ge.align([truth, labels[:, 0], alone.labels_, est.labels_], to=truth)  # one colour for one domain
for ax, title, column in zip(axes, titles, named.codes.T, strict=False):
    ax.scatter(*cells.T, c=column, cmap="tab10", vmin=0, vmax=9, s=3)
    ax.set(title=title)
shown = axes[4].scatter(*cells.T, c=doubt, cmap="magma_r", s=3)
axes[4].set(title="doubt, in bits")
fig.colorbar(shown)
for ax in axes:
    ax.set(xticks=[], yticks=[], aspect="equal")
