"""
Topics of documents
===================

A corpus has no single right view. k-means on all words, on half of the words, with eight clusters or with twenty,
always finds only a part of the topics. Here, clustering-based coupling (CgC) turns 20 such clusterings of 2,000
documents into one partition. It takes into account that clusters of different clusterings can have the same meaning.
"""

# %%
# Eight topics share most of their vocabulary. Each word of a document comes from its topic with probability .25, and
# otherwise from the common vocabulary. A document has 50 words on average.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

import gpuens as ge

rng = np.random.default_rng(0)
n_documents, n_words, n_topics = 2_000, 3_000, 8
common = rng.dirichlet(np.full(n_words, 0.1))
own = rng.dirichlet(np.full(n_words, 0.02), size=n_topics)
topic = rng.integers(n_topics, size=n_documents)
chances = 0.75 * common + 0.25 * own
lengths = rng.poisson(50, size=n_documents) + 1
counts = np.array([rng.multinomial(n, chances[t]) for n, t in zip(lengths, topic, strict=True)])
X = TfidfTransformer(sublinear_tf=True).fit_transform(csr_array(counts))
print(f"{X.shape[0]:,} documents, {X.shape[1]:,} words, {X.nnz / X.shape[0]:.0f} different words in a document")

# %%
# The ensemble: each k-means sees half of the words, and k is between 8 and 20. A sparse matrix stays sparse.

ensemble = ge.generate.kmeans_ensemble(X, 20, (8, 20), features=0.5, random_state=0, progress=False)
members = [ge.metrics.nmi(topic, column) for column in ensemble.to_array().T]

# %%
# NMI of the consensus and of the base clusterings with the topics, which they never saw.

consensus = ge.CgC(n_topics).fit(ensemble)
found = ge.metrics.nmi(topic, consensus.labels_)
print(f"base clusterings: mean {np.mean(members):.3f}, best {np.max(members):.3f}; consensus: {found:.3f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
left.hist(members, color="C7", label="base clusterings")
left.axvline(found, color="C3", label="consensus (CgC)")
left.set(xlabel="NMI with the topics", ylabel="clusterings")
left.legend()
ge.plotting.coassociation_heatmap(ensemble, consensus.labels_, ax=right)

# %%
# The typical words of a cluster are those whose mean tf-idf in the cluster exceeds the mean of the corpus most. Here
# words are numbers; with `TfidfVectorizer` they would be words.

for c in range(n_topics):
    inside = np.asarray(X[consensus.labels_ == c].mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel()
    print(f"cluster {c}: {np.sum(consensus.labels_ == c):4} documents, words {np.argsort(-inside)[:6]}")
