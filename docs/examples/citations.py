"""
Papers and their citations
==========================

Clusterings of papers by their words differ from run to run, and none of them finds the subjects. Papers also cite each
other, mostly within a subject, so the words of the papers around a paper tell more than its own.
"""

# %%
# We draw 1,200 papers of six subjects. A paper has 60 words of 400, three of four from the language of all subjects; it
# cites two papers, and one citation in five leads anywhere.

import matplotlib.pyplot as plt
import numpy as np

import gpuens as ge

rng = np.random.default_rng(0)
n, n_subjects = 1200, 6
subject = np.repeat(np.arange(n_subjects), n // n_subjects)
of_subject = rng.dirichlet(np.full(400, 0.3), n_subjects)
of_all = rng.dirichlet(np.full(400, 0.3))
words = np.array([rng.multinomial(60, 0.24 * of_subject[s] + 0.76 * of_all) for s in subject])


def citations(astray):
    """Return citations (2 n, 2), a share of which leads to any paper."""
    citing = np.repeat(np.arange(n), 2)
    within = subject[citing] * (n // n_subjects) + rng.integers(0, n // n_subjects, 2 * n)
    return np.column_stack([citing, np.where(rng.random(2 * n) < astray, rng.integers(0, n, 2 * n), within)])


cited = citations(0.2)
labels = ge.generate.kmeans_ensemble(np.sqrt(words), 20, (4, 15), random_state=0, progress=False)

# %%
# ``graph`` takes the edges as they are, a sparse matrix, or a graph of networkx or igraph.

alone = ge.LWGP(n_subjects).fit(labels)
est = ge.Spatial(n_subjects).fit(labels, graph=cited)

members = [ge.metrics.ari(subject, column) for column in labels.to_array().T]
of_alone, of_domains = (ge.metrics.ari(subject, found.labels_) for found in (alone, est))
print(f"ARI with the subjects: clusterings of words {min(members):.2f} to {max(members):.2f}")
print(f"consensus of words {of_alone:.2f}, words and citations {of_domains:.2f}")

# %%
# How good must the citations be? Here more and more of them lead to any paper. A majority of the cited papers, taken
# after the consensus of words, gains less, since it takes every object's words and citations at their face value.

shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
by_share = {"domains": [], "a majority of neighbours": []}
for share in shares:
    graph = ge.Graph.of(citations(share), n)
    found = ge.Spatial(n_subjects).fit(labels, graph=graph)
    by_share["domains"].append(ge.metrics.ari(subject, found.labels_))
    votes = (graph.matrix() + np.eye(n)) @ np.eye(n_subjects)[alone.labels_]
    by_share["a majority of neighbours"].append(ge.metrics.ari(subject, votes.argmax(axis=1)))
print("domains, by share of citations astray: " + ", ".join(f"{ari:.2f}" for ari in by_share["domains"]))

# %%
# The first two panels show how many papers of a subject are in each cluster; the third shows the price of wrong
# citations. If they tell nothing of the subjects (at the right end), neighbours harm: leave the graph out.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for ax, title, found in zip(axes, ["words alone", "words and citations"], [alone, est], strict=False):
    table = np.histogram2d(subject, found.labels_, bins=n_subjects)[0]
    ax.imshow(table[:, np.argsort(table.argmax(axis=0))], cmap="Blues", vmin=0, vmax=n // n_subjects)
    ax.set(title=title, xlabel="cluster", ylabel="subject", xticks=[], yticks=[])
for name, values in by_share.items():
    axes[2].plot(shares, values, "o-", label=name)
axes[2].axhline(of_alone, color="gray", label="words alone")
axes[2].set(title="agreement with the subjects", xlabel="share of citations that lead anywhere", ylabel="ARI")
axes[2].legend()
