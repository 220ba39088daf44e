"""
A million objects on a laptop
=============================

A matrix of a million by a million co-associations would need four terabytes. No method here stores such a matrix.
"""

# %%
# We simulate a million objects of 25 kinds in 20 clusterings. Each clustering divides kinds, and gives some objects
# random labels.

import time

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge

rng = np.random.default_rng(0)
n, m, k = 1_000_000, 20, 25
kind = rng.integers(k, size=n)
labels = np.empty((n, m), dtype=np.uint8, order="F")
for column in range(m):
    parts = rng.integers(1, 4)
    labels[:, column] = kind * parts + rng.integers(parts, size=n) * (rng.random(n) < 0.02)
    strays = rng.random(n) < 0.001
    labels[strays, column] = rng.integers(k * parts, size=strays.sum())
print(f"{labels.nbytes / 1e6:.0f} MB of labels, {n**2 * 4 / 1e12:.0f} TB as a matrix of pairs")

# %%
# Objects with equal rows of labels are clustered once, so only the number of distinct rows matters.

ensemble = ge.Ensemble(labels)
seconds, scores = {}, {}
for name in ("LWEA", "EAC", "LWGP", "HBGF", "KCC", "Voting"):
    began = time.perf_counter()
    est = getattr(ge, name)(k).fit(ensemble)
    seconds[name] = time.perf_counter() - began
    scores[name] = ge.metrics.ari(kind, est.labels_)
    print(f"{name}: {len(est.reduction_.counts):,} distinct rows, {seconds[name]:.2f} s, ARI {scores[name]:.3f}")

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(list(seconds), list(seconds.values()))
ax.set_xlabel("seconds for a million objects")
