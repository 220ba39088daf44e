"""
A table of categories
=====================

Each column of categories *is* a clustering of the rows: all mushrooms with a white cap are one cluster. So a table that
k-means cannot use is already an ensemble, and every method here can cluster it. ROCK, LIMBO and QMI were made for such
tables.
"""

# %%
# We simulate a table like the well-known one of mushrooms. There are two kinds, each with several species. A species
# has its own usual value in each of 15 columns; a fifth of the values are unusual, and a tenth are missing. Species of
# one kind have the same usual values in a few columns, and only these columns separate the kinds.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gpuens as ge

rng = np.random.default_rng(0)
n, n_columns, n_species = 2_000, 15, 10
species = rng.integers(n_species, size=n)
poisonous = species % 2
usual = rng.integers(6, size=(n_species, n_columns))
usual[:, :6] = np.where(np.arange(n_species)[:, None] % 2, 1, 4)  # smell, gills …: the same in a kind
values = np.where(rng.random((n, n_columns)) < 0.2, rng.integers(6, size=(n, n_columns)), usual[species])
table = pd.DataFrame(np.array(list("abcdef"))[values], columns=[f"attribute {j}" for j in range(n_columns)])
table = table.mask(rng.random((n, n_columns)) < 0.1)
print(table.iloc[:3, :7].to_string())

# %%
# We compare the methods for such tables with three general methods. `compare` runs all on the same ensemble, and uses
# the truth only for the last column.

comparison = ge.compare(table, 2, methods=["rock", "limbo", "qmi", "lwea", "em", "voting"], truth=poisonous)
print(comparison.table[["anmi", "item_consensus", "silhouette", "seconds", "accuracy"]].round(3).to_string())

# %%
# Two kinds or ten species? Both are right. Two clusters have the most support, which measures what all columns share.
# The mean silhouette, which measures how compact clusters are, is largest for ten.

choice = ge.choose_k(table, ks=range(2, 15), method="qmi")
print(f"suggested: {choice.suggested} ({choice.reasons[choice.suggested]})")
print(f"by the mean silhouette alone: {choice.by_criterion['mean_silhouette']}")
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
ge.plotting.answers(comparison, ax=left)
ge.plotting.criterion(choice, ax=right)
