"""
Compare methods on your labels
==============================

Run all methods that fit, and compare three things: the agreement of each result with the clusterings, the certainty of
the objects, and the agreement of the results with each other.
"""

# %%
# Iris has three kinds, two of which overlap.

import matplotlib.pyplot as plt

import gpuens as ge

iris = ge.datasets.load("iris")
ensemble = ge.generate.kmeans_ensemble(iris.X, 30, (2, 12), random_state=0, progress=False)
methods = ["lwgp", "lwea", "eac", "hbgf", "mcla", "kcc", "voting", "best-of-k"]
comparison = ge.compare(ensemble, 3, methods=methods, truth=iris.y)
print(
    comparison.table[["anmi", "item_consensus", "silhouette", "accuracy", "smallest", "largest"]].round(3).to_string()
)

# %%
# Agreement between results is a better sign than any score.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
ge.plotting.answers(comparison, ax=left)
right.scatter(comparison.table["anmi"], comparison.table["accuracy"])
for name, row in comparison.table.iterrows():
    right.annotate(name, (row["anmi"], row["accuracy"]), fontsize=7)
right.set(xlabel="mean NMI with the clusterings (needs no truth)", ylabel="accuracy")

# %%
# Draws of half of the clusterings, the same for all methods, show how far the order depends on them.

draws = ge.compare(ensemble, 3, methods=methods, truth=iris.y, repeat=10, share=0.5)
print(*draws.answer, *draws.answer_by_truth, sep="\n")
ge.plotting.comparison(draws)
