"""
Is one of my clusterings bad?
=============================

The clusterings come from several sources: an old script, two colleagues, a file by mail. One may have its rows in
another order, and one may be based on almost no information. Nobody knows the truth, but the clusterings can be
compared with each other.
"""

# %%
# Nine clusterings of the digits come from four very different algorithms. We add two bad ones: one whose rows were
# sorted by mistake, and one that is based on a single pixel.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import gpuens as ge

digits = ge.datasets.load("digits")
X, k = digits.X, 10
small = PCA(20, random_state=0).fit_transform(X)
columns = {f"k-means {k + 3 * i}": KMeans(k + 3 * i, n_init=3, random_state=i).fit_predict(X) for i in range(5)}
for i in range(2):
    mixture = GaussianMixture(k + 2 * i, covariance_type="diag", reg_covar=0.01, random_state=i)
    columns[f"mixture {k + 2 * i}"] = mixture.fit_predict(small)
for linkage in ("ward", "complete"):
    columns[linkage] = AgglomerativeClustering(14, linkage=linkage).fit_predict(small)
good = ge.Ensemble(list(columns.values()), names=list(columns))

rng = np.random.default_rng(0)
brightest = X[:, [X.std(axis=0).argmax()]]
one_pixel = KMeans(k, n_init=3, random_state=0).fit_predict(brightest)
ensemble = good.with_({"sorted": rng.permutation(columns["k-means 10"]), "one pixel": one_pixel})

# %%
# Agreement of each clustering with the others. `WEAC` uses this agreement as weights, and gives both bad clusterings
# little weight.

consistency = ge.evidence.consistency(ensemble)
with_others = (consistency.nmi.sum(axis=1) - 1) / (ensemble.n_clusterings - 1)
weights = ge.WEAC(k).fit(ensemble).weights_
for name, agreement, weight in zip(ensemble.names, with_others, weights, strict=True):
    print(f"{name:>12}: NMI with the others {agreement:.2f}, weight in WEAC {weight:.2f}")
suspects = [ensemble.names[i] for i in np.argsort(with_others)[:2]]
print(f"look at: {', '.join(suspects)}")
cleaned = ensemble.without(suspects)

# %%
# Does it matter? Errors of clusterings without information are independent and cancel out, even if half of all
# clusterings are of this kind. Clusterings that share their errors do harm, such as copies, or models with the same
# mistake. Here, nine copies of the single pixel are half of all clusterings. Weights by agreement do not help, because
# copies agree best of all.

counts = (0, 3, 6, 9)
found = {name: [] for name in ("sorted differently", "copies", "copies, WEAC")}
for n in counts:
    names = [f"more {i}" for i in range(n)]
    unlike = [rng.permutation(columns["k-means 10"]) for _ in names]
    more, alike = (good.with_(labels, names=names) if n else good for labels in (unlike, [one_pixel] * n))
    for name, answer in zip(found, (ge.EAC(k).fit(more), ge.EAC(k).fit(alike), ge.WEAC(k).fit(alike)), strict=True):
        found[name].append(ge.metrics.ari(digits.y, answer.labels_))

# %%
# Copies are easy to find: their agreement is 1. Keep one of each, or let all copies together count as one clustering.

between = ge.evidence.consistency(alike).nmi
copies = (between > 0.999).sum(axis=1)
mended = ge.metrics.ari(digits.y, ge.EAC(k, weights=1 / copies).fit(alike).labels_)
print(f"ARI with the digits: nine copies {found['copies'][-1]:.2f}, as one clustering {mended:.2f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
ge.plotting.clusterings(consistency, "nmi", names=ensemble.names, ax=left)
left.tick_params("x", rotation=90)
for name, scores in found.items():
    right.plot(counts, scores, "o-", label=name)
right.plot(counts[-1], mended, "k*", markersize=12, label="copies as one clustering")
right.set(xlabel="bad clusterings, beside nine good ones", ylabel="ARI with the digits", ylim=(0, 1))
right.legend()
