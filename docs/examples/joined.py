"""
Binners that know other contigs
===============================

Five tools sort the contigs of a metagenome into genomes. Each tool writes a file of its own, in its own order, and
omits contigs that are too short or fit no genome. The files are joined by the names of the contigs, and the consensus
covers the contigs of all tools.
"""

# %%
# We simulate 1,500 contigs of eight genomes. The longer a contig, the more tools know it. Each tool puts some contigs
# into wrong bins, and splits one genome. A file has the name of a contig and its bin in each line.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gpuens as ge

rng = np.random.default_rng(1)
n, n_genomes = 1500, 8
genome = pd.Series(rng.integers(n_genomes, size=n), index=[f"k141_{i}" for i in range(n)])
length = np.exp(rng.normal(8, 1, size=n))
folder = Path(tempfile.mkdtemp())
tools = {"alpha": 0.95, "beta": 0.9, "gamma": 0.85, "delta": 0.8, "epsilon": 0.7}
for tool, quality in tools.items():
    known = rng.random(n) < np.clip(length / 4000, 0.25, 0.95)
    bins = np.where(rng.random(n) < quality, genome, rng.integers(n_genomes, size=n))
    bins = np.where((bins == rng.integers(n_genomes)) & (rng.random(n) < 0.5), n_genomes, bins)
    own = pd.Series([f"bin.{b}" for b in bins], index=genome.index)[known].sample(frac=1, random_state=0)
    own.to_csv(folder / f"{tool}.tsv", sep="\t", header=False)
print((folder / "delta.tsv").read_text()[:42])

# %%
# ``gpuens run alpha.tsv beta.tsv gamma.tsv delta.tsv epsilon.tsv -k 8`` reads the files and writes the consensus with
# the names of the contigs. In Python, ``ge.Ensemble.join`` does the same with Series or DataFrames. A contig that a
# tool lacks has a missing label there.

sources = {
    tool: pd.read_csv(folder / f"{tool}.tsv", sep="\t", header=None, index_col=0).squeeze("columns") for tool in tools
}
ens = ge.Ensemble.join(sources)
est = ge.Voting(n_genomes, random_state=0).fit(ens)
consensus = pd.Series(est.labels_, index=ens.index)
print(ens, f"of {n} contigs")

# %%
# The consensus has a bin for more contigs than any tool, and agrees better with the genomes than the tools do on their
# own contigs. The more tools know a contig, the more often its bin is right.

known = ens.to_frame().notna()
truth = genome[ens.index]
scores = {tool: ge.metrics.ari(truth[known[tool]], sources[tool][truth.index[known[tool]]]) for tool in tools} | {
    "consensus": ge.metrics.ari(truth, consensus)
}
covered = {tool: known[tool].sum() for tool in tools} | {"consensus": len(consensus)}
for name, score in scores.items():
    print(f"{name}: {covered[name]} contigs, ARI {score:.2f}")
n_known = known.sum(axis=1)
ari_by_n = [ge.metrics.ari(truth[n_known == m], consensus[n_known == m]) for m in range(1, len(tools) + 1)]

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", width_ratios=(1.4, 1, 1))
order = np.lexsort((-n_known, consensus))
shown = np.where(known, consensus.to_numpy()[:, None], np.nan)[order]
axes[0].imshow(shown, aspect="auto", cmap="tab10", interpolation="nearest")
axes[0].set_xticks(range(len(tools)), list(tools), rotation=30)
axes[0].set(ylabel="contigs, by their consensus", title="known to the tools (white: not)")
for name, score in scores.items():
    axes[1].plot(covered[name], score, "o")
    axes[1].annotate(name, (covered[name], score), xytext=(0, 6), textcoords="offset points", ha="center")
axes[1].set(xlabel="contigs with a bin", ylabel="ARI with the genomes", title="tools and consensus")
axes[1].margins(0.2)
axes[2].plot(range(1, len(tools) + 1), ari_by_n, "o-")
axes[2].set(xlabel="tools that know a contig", ylabel="ARI of the consensus", title="more tools, better bins")
