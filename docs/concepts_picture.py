"""The picture of the concepts page: `python docs/concepts_picture.py` writes docs/static/concepts.svg.

Everything in the picture is computed: 9 objects in 4 clusterings, their core groups, co-association, average linkage,
the cut into three clusters, and the confidence of each object.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram

import gpuens as ge

CLUSTERINGS = {"I": "AAABBBCCC", "II": "pppqqrrrr", "III": "xxyyyyzzz", "IV": "SSSSSTTTT"}
HUES = (
    "Blues",
    "Oranges",
    "Greens",
    "Purples",
)  # colour map of each clustering, because labels of different clusterings are unrelated
CLUSTERS = ("#4c78a8", "#e08214", "#54a24b")
INK = "#222222"


def main() -> None:
    plt.rcParams.update({"font.size": 13, "svg.hashsalt": "gpuens", "axes.titlesize": 14, "axes.titlelocation": "left"})
    labels = {name: list(column) for name, column in CLUSTERINGS.items()}
    est = ge.EAC(n_clusters=3).fit(list(labels.values()))
    figure = plt.figure(figsize=(12.6, 8.2), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.15)
    places = figure.add_gridspec(2, 3, height_ratios=[1.2, 1])
    matrix, groups, similarity = (figure.add_subplot(places[0, j]) for j in range(3))
    tree, bars = figure.add_subplot(places[1, 0]), figure.add_subplot(places[1, 1:])
    rows = np.array([list(row) for row in zip(*labels.values(), strict=True)])
    first, counts = first_objects(est), est.reduction_.counts
    cells(matrix, rows, [f"object {i + 1}" for i in range(len(rows))])
    matrix.set_title("1  Label matrix\nobjects × clusterings")
    names = [", ".join(str(i + 1) for i in np.flatnonzero(est.reduction_.row_of == g)) for g in range(len(first))]
    cells(groups, rows[first], [f"{name}   ({n} ×)" for name, n in zip(names, counts, strict=True)])
    groups.set_title("2  Core groups\nequal rows become one")
    heat(similarity, ge.similarity.coassociation(rows, rows=first, cols=first), names)
    similarity.set_title("3  Similarity: the share of the\nclusterings that join two objects")
    of_tree(tree, est)
    tree.set_title("4  Linkage: similar groups\nmerge, until k are left (k = 3)")
    evidence(bars, est)
    path = Path(__file__).parent / "static" / "concepts.svg"
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    print(path)


def first_objects(est: ge.EAC) -> np.ndarray:
    """Return the first object of each core group (G,)."""
    return np.unique(est.reduction_.row_of, return_index=True)[1]


def cells(ax: plt.Axes, rows: np.ndarray, names: list[str]) -> None:
    for i, row in enumerate(rows):
        for j, label in enumerate(row):
            shade = plt.colormaps[HUES[j]](0.12 + 0.17 * sorted(set(rows[:, j])).index(label))
            ax.add_patch(plt.Rectangle((j, i), 0.94, 0.9, color=shade))
            ax.text(j + 0.47, i + 0.47, label, ha="center", va="center", color=INK)
    ax.set(xlim=(0, rows.shape[1]), ylim=(len(rows), 0), xticks=np.arange(rows.shape[1]) + 0.47)
    ax.set_xticklabels(list(CLUSTERINGS))
    ax.set_yticks(np.arange(len(names)) + 0.47, names)
    bare(ax)


def heat(ax: plt.Axes, values: np.ndarray, names: list[str]) -> None:
    ax.imshow(values, cmap="Blues", vmin=0, vmax=1.3)
    for (i, j), value in np.ndenumerate(values):
        ax.text(
            j,
            i,
            f"{value:.2g}".removeprefix("0") or "0",
            ha="center",
            va="center",
            color="white" if value > 0.9 else INK,
        )
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right")
    ax.set_yticks(range(len(names)), names)
    bare(ax)


def of_tree(ax: plt.Axes, est: ge.EAC) -> None:
    z = est.linkage_matrix()
    cut = (z[-3, 2] + z[-2, 2]) / 2
    drawn = dendrogram(z, ax=ax, color_threshold=0, above_threshold_color=INK, no_labels=True)
    ax.axhline(cut, color="#b22222", linestyle="--")
    ax.text(ax.get_xlim()[1], cut, "cut ", color="#b22222", ha="right", va="bottom")
    for place, leaf in enumerate(drawn["leaves"]):
        color = CLUSTERS[est.labels_[leaf]]
        ax.text(10 * place + 5, -0.04, leaf + 1, ha="center", va="top", color=color, weight="bold")
    ax.set(ylabel="distance, 1 - similarity", ylim=(-0.2, 1.05), yticks=np.arange(0, 1.1, 0.2))
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def evidence(ax: plt.Axes, est: ge.EAC) -> None:
    values = est.confidence_
    each = np.arange(len(values))
    ax.bar(each, values, color=[CLUSTERS[label] for label in est.labels_])
    for i, value in enumerate(values):
        ax.text(i, value + 0.02, f"{value:.2f}".removeprefix("0"), ha="center")
    ax.set_xticks(each, each + 1)
    ax.set(ylim=(0, 1.15), xlabel="object; colours are the clusters of the consensus", ylabel="confidence")
    ax.set_title("5  Consensus and evidence: how far the clusterings speak for each label")
    ax.spines[["top", "right"]].set_visible(False)


def bare(ax: plt.Axes) -> None:
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


if __name__ == "__main__":
    main()
