"""Pictures at the beginning of a report page: maps, the sizes of the clusters, their certainty, and their nearness."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens import plotting
from gpuens.plotting.drawing import (
    INK,
    SHADE,
    SHARES,
    color_clusters,
    hide_spines,
    ink_on,
    largest_clusters,
    order_by_distance,
    quantiles_by_cluster,
)
from gpuens.report.numbers import percent
from gpuens.report.page import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpuens.evidence import Evidence

MOST_ROWS = 20  # maximum number of clusters with a row each; the smallest of more clusters share the last row
NUMBERS_FIT = 8  # maximum number of clusters for which numbers fit into the cells of the matrix
LETTER = 0.05  # width of a letter in the text after a bar, as a share of the longest bar


def picture_of_sizes(counts: np.ndarray) -> Picture:
    """Return a picture of the sizes of clusters; ``counts`` (k,) has the number of objects in each cluster."""
    return Picture("How many objects each cluster has", partial(sizes, counts))


def pictures_of_evidence(evidence: "Evidence") -> list[Picture]:
    """Return pictures of sizes and, if there are several clusters, of the objects' certainty and of nearness."""
    pictures = [picture_of_sizes(evidence.clusters.sizes)]
    if len(evidence.clusters.sizes) > 1:
        pictures += [
            Picture("Certainty of their objects", partial(certainty, evidence)),
            Picture("How often pairs are put together, in %", partial(nearness, evidence)),
        ]
    return pictures


def pictures_of_places(estimator: Any, **places: Any) -> list[Picture]:
    """Return a map of the clusters and, if the estimator has memberships in several, a map of their uncertainty."""
    pictures = [Picture("Where the clusters are", partial(plotting.domains, estimator, **places))]
    if estimator.n_clusters_ > 1 and getattr(estimator, "membership_", None) is not None:
        draw = partial(plotting.uncertainty, estimator, **places)
        pictures.append(Picture("Uncertain even with neighbours", draw))
    return pictures


def pictures_of_embeddings(labels: Any, embeddings: Mapping[str, np.ndarray]) -> list[Picture]:
    """Return a map of the clusters on each embedding; ``embeddings`` are {name: places (n_objects, n_dimensions)}."""
    import pandas as pd

    cells = SimpleNamespace(obs=pd.DataFrame({"cluster": pd.Categorical(labels)}), obsm=dict(embeddings))
    return [
        Picture(f"The clusters on {name}", partial(plotting.embedding, cells, "cluster", basis=name))
        for name in embeddings
    ]


def sizes(counts: np.ndarray, *, ax: "Axes") -> "Axes":
    """Draw the number of objects of each cluster as a bar that starts at zero."""
    order, n_others = _select_rows(counts)
    rest = counts.sum() - counts[order].sum()
    texts = [f"{n:,} ({percent(n / counts.sum())})" for n in [*counts[order], *[rest] * (n_others > 0)]]
    # the row of all small clusters together has no bar if it would be longer than all other bars
    values = [*counts[order], *[rest if rest <= counts.max() else 0] * (n_others > 0)]
    return _bars(_name_clusters(order, n_others), values, texts, color_clusters(order)[: len(values)], ax, "cluster")


def certainty(evidence: "Evidence", *, ax: "Axes") -> "Axes":
    """Draw the 5, 25, 50, 75 and 95 % quantiles of the certainty of each cluster's objects."""
    order, n_others = _select_rows(evidence.clusters.sizes)
    names = _name_clusters(order, n_others)
    row_of = np.full(len(evidence.clusters.sizes), len(order))  # small clusters share the last row
    row_of[order] = np.arange(len(order))
    low, first, median, third, high = quantiles_by_cluster(
        evidence.objects.certainty, row_of[evidence.labels], len(names)
    ).T
    y = np.arange(len(names))
    ax.hlines(y, low, high, color=SHADE, linewidth=1.0, label="90 % of the objects")
    ax.barh(y, third - first, left=first, color=SHADE, height=0.6, label="middle half")
    ax.vlines(median, y - 0.3, y + 0.3, color=INK, linewidth=2.0, label="median")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, columnspacing=1.0, handlelength=1)
    _name_rows(ax, names, "cluster")
    ax.set(xlim=(0, 1), xlabel="certainty")
    return hide_spines(ax)


def nearness(evidence: "Evidence", *, ax: "Axes") -> "Axes":
    """Draw a matrix with the percentage of clusterings that put objects of two clusters together, for each pair."""
    order, n_others = _select_rows(evidence.clusters.sizes)
    shares = evidence.clusters.among(order)
    turn = order_by_distance(1.0 - np.nan_to_num(shares))
    order, values = order[turn], 100 * shares[np.ix_(turn, turn)]
    image = ax.imshow(values, cmap=SHARES, vmin=0, vmax=100)
    places = np.arange(len(order))
    ax.set_xticks(places, [str(cluster) for cluster in order])
    ax.set_yticks(places, [str(cluster) for cluster in order])
    ax.tick_params(length=0, axis="both")
    if len(order) > NUMBERS_FIT:
        ax.tick_params(axis="x", rotation=90)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, pad=0.03, ticks=[0, 50, 100])
        bar.outline.set_visible(False)
    else:
        for (i, j), value in np.ndenumerate(values):
            if not np.isnan(value):
                ax.text(j, i, f"{value:.0f}", ha="center", va="center", color=ink_on(image.to_rgba(value)))
    label = f"cluster, the {len(order)} largest of {len(order) + n_others:,}" if n_others else "cluster"
    ax.set(xlabel=f"{label} (similar ones side by side)", ylabel="cluster")
    return ax


def _select_rows(counts: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the clusters that have their own row, ascending, and the number of clusters that share the last row.

    If there are too many clusters, the largest ones have their own row.
    """
    if len(counts) <= MOST_ROWS:
        return np.arange(len(counts)), 0
    return largest_clusters(counts, MOST_ROWS - 1), len(counts) - MOST_ROWS + 1


def _name_clusters(order: np.ndarray, n_others: int) -> list[str]:
    return [str(cluster) for cluster in order] + [f"{n_others:,} others"] * (n_others > 0)


def _bars(
    names: Sequence[str], values: Sequence[Any], texts: Sequence[str], colors: Any, ax: "Axes", label: str = ""
) -> "Axes":
    ax.barh(np.arange(len(values)), values, color=colors, height=0.8)
    for place, (value, text) in enumerate(zip(values, texts, strict=True)):
        ax.annotate(text, (value, place), (3, 0), textcoords="offset points", va="center")
    longest = max(map(len, texts))
    ax.set(xlim=(0, (max(values) or 1.0) * (1 + LETTER * longest)), xticks=[])  # room for texts
    _name_rows(ax, names, label)
    hide_spines(ax).spines["bottom"].set_visible(False)
    return ax


def _name_rows(ax: "Axes", names: Sequence[str], label: str) -> None:
    ax.set_yticks(np.arange(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(len(names) - 0.4, -0.6), ylabel=label)
