"""
When labels are missing
=======================

A clustering may not know every object, for example if it comes from a sample, a site or a panel. How many labels may be
missing, and which methods tolerate it?
"""

# %%
# We simulate 600 objects of five kinds and 15 clusterings, each with random labels for a quarter of the objects. Then
# labels are removed at random, but no object loses all labels.

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge

rng = np.random.default_rng(0)
n, m, k = 600, 15, 5
kind = rng.integers(k, size=n)
labels = np.where(rng.random((n, m)) < 0.25, rng.integers(k, size=(n, m)), kind[:, None])
methods = {
    "EAC, missing matches nothing": lambda: ge.EAC(k),
    "EAC, missing ignored": lambda: ge.EAC(k, missing="ignore"),
    "SCEC": lambda: ge.SCEC(k),
    "voting": lambda: ge.Voting(k),
    "KCC": lambda: ge.KCC(k),
}
shares = np.array([0, 0.2, 0.4, 0.6, 0.7, 0.8])
found = {name: [] for name in methods}
for share in shares:
    gone = rng.random(labels.shape) < share
    gone[np.arange(n), rng.integers(m, size=n)] = False
    for name, method in methods.items():
        answer = method().fit(np.where(gone, -1, labels)).labels_
        found[name].append(ge.metrics.ari(kind, answer))

# %%
# Most methods tolerate many missing labels, as long as these are missing at random. The card of each method describes
# its treatment of missing labels.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in found.items():
    ax.plot(shares, values, "o-", label=name)
    print(f"{name}: " + ", ".join(f"{value:.2f}" for value in values))
ax.set(xlabel="share of the labels that is missing", ylabel="ARI with the kinds")
ax.legend()
