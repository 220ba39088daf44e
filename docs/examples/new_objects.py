"""
More objects arrive
===================

New objects arrive after the consensus was found. They need no new consensus: the base clusterings give each new object
a row of labels, and `predict` gives the row a cluster. Evidence shows when a new consensus is needed.
"""

# %%
# Today we have two thirds of the digits, but no six. Each of 20 k-means models uses half of the pixels, and is kept.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

import gpuens as ge

digits = ge.datasets.load("digits")
X, kind = digits.X, digits.y
rng = np.random.default_rng(0)
today = (rng.random(len(X)) < 2 / 3) & (kind != 6)
views = [rng.choice(X.shape[1], 32, replace=False) for _ in range(20)]
models = [KMeans(rng.integers(10, 31), n_init=1, random_state=0).fit(X[today][:, view]) for view in views]
labels = np.column_stack([model.labels_ for model in models])
consensus = ge.LWEA(9).fit(labels)
place = Path(tempfile.mkdtemp(), "digits.npz")
consensus.save(place)  # until tomorrow: label rows and a rule, without pickle

# %%
# Tomorrow, each k-means labels the other digits by its nearest centroid, and the consensus labels the rows. Rows known
# from today keep their cluster; other rows get the most similar cluster.

kept = ge.load(place)
X_new, kind_new = X[~today], kind[~today]
labels_new = np.column_stack([model.predict(X_new[:, view]) for model, view in zip(models, views, strict=True)])
found = kept.predict(labels_new)

ordinary = kind_new != 6
anew = ge.LWEA(9).fit(np.vstack([labels, labels_new[ordinary]])).labels_[len(labels) :]
accuracy_today = ge.metrics.accuracy(consensus.labels_, kind[today])
accuracy_new = ge.metrics.accuracy(found[ordinary], kind_new[ordinary])
same = ge.metrics.accuracy(found[ordinary], anew)
print(f"accuracy: today {accuracy_today:.2f}, of the new digits but sixes {accuracy_new:.2f}")
print(f"a consensus of all, made anew, agrees on {same:.0%} of the new digits but sixes")

# %%
# The sixes are a kind that no clustering has seen. Each k-means puts them into some cluster, but the k-means models
# disagree. The evidence for their labels shows this.

confidence = kept.evidence(labels_new).objects.confidence
unsure = np.quantile(consensus.confidence_, 0.1)
for name, some in {"known kinds": ordinary, "sixes": ~ordinary}.items():
    print(f"less confidence than the last tenth of today: {np.mean(confidence[some] < unsure):.0%} of the {name}")

# %%
# Some models may become unavailable. Such a clustering gives missing labels, -1; a few of the twenty clusterings
# suffice.

left = (20, 15, 10, 5, 2)
answers = [kept.predict(np.where(np.arange(20) < n, labels_new, -1))[ordinary] for n in left]
accuracies = [ge.metrics.accuracy(answer, kind_new[ordinary]) for answer in answers]

fig, (ax, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
bins = np.linspace(0, 1, 21)
for name, some in {"known kinds": ordinary, "sixes, never seen": ~ordinary}.items():
    ax.hist(confidence[some], bins, density=True, alpha=0.6, label=name)
ax.axvline(unsure, color="k", linestyle=":", label="a tenth of today's digits are below")
ax.set(xlabel="confidence", ylabel="new digits (density)", ylim=(0, 6))
ax.legend()
right.plot(left, accuracies, "o-")
right.set(xlabel="clusterings that label the new digits", ylabel="accuracy", ylim=(0, 1))
