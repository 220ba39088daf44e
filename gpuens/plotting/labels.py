"""Pictures of labels: co-association in the order of a consensus, cluster sizes, results of several methods."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.object_names import in_order_of, index_of
from gpuens.plotting.drawing import (
    MARK,
    SHARES,
    SMALL,
    WIDEST,
    axes,
    color_bar,
    color_clusters,
    count_drawn,
    entitle,
    hide_spines,
    label_axes,
    label_vector,
    order_by_distance,
    select_evenly,
    write_names,
    write_shares,
)
from gpuens.runtime import checks
from gpuens.runtime.device import to_host

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERS = 14  # maximum number of bars with numbers, so that the numbers do not overlap


def coassociation_heatmap(
    ensemble: Any, labels: Any = None, *, max_objects: int = 1500, ax: "Axes | None" = None
) -> "Axes":
    """Draw the co-association matrix in the order of a consensus, with frames around its clusters.

    Similar clusters are neighbours, and so are similar objects in a cluster: the order is that of an average-linkage
    tree of the drawn objects that keeps clusters together.

    Parameters
    ----------
    ensemble : fitted estimator, Ensemble, or anything that Ensemble takes
    labels : array (n_objects,), optional
        The consensus; by default, that of the estimator.
    max_objects : int
        If there are more objects, a sample with the same share of every cluster is drawn; no N × N matrix is made.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        For labels of another length, and for max_objects below 1.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import gpuens as ge
    >>> ens = ge.Ensemble([[0, 0, 1, 1], [0, 0, 1, 2]])
    >>> ax = ge.plotting.coassociation_heatmap(ens, [0, 0, 1, 1])
    >>> ax = ge.plotting.coassociation_heatmap(ge.EAC(2).fit(ens))
    >>> ax.images[0].get_array().tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.5, 1.0]]
    """
    from gpuens.similarity import coassociation

    max_objects = checks.check_integer(max_objects, "max_objects", minimum=1)
    if hasattr(ensemble, "reduction_"):
        labels, index = ensemble.labels_ if labels is None else labels, index_of(ensemble.labels_)
        groups = ensemble.reduction_.groups()
        ensemble, row_of = groups.ensemble, to_host(groups.row_of)
    elif labels is None:
        raise TypeError("labels are missing; pass the consensus, or a fitted estimator in place of the ensemble.")
    else:
        ensemble = Ensemble(ensemble)
        index, row_of = ensemble.index, np.arange(ensemble.n_objects)
    labels = label_vector(in_order_of(index, labels, "labels", "ensemble"))
    checks.check_one_per_row(labels, len(row_of), "labels")
    names, clusters = np.unique(labels, return_inverse=True)
    objects = select_evenly(clusters, max_objects)
    similarity = to_host(coassociation(ensemble, row_of[objects], row_of[objects]))
    ax = axes(ax, (7.2, 6.2), square=True)
    image = draw_in_blocks(ax, similarity, names, clusters[objects])
    count = count_drawn(len(objects), len(labels), "objects")
    label_axes(ax, "cluster of the consensus", f"{count}, by cluster")
    entitle(ax, f"Co-association of {len(labels):,} objects in {ensemble.n_clusterings} clusterings")
    color_bar(image, ax, "share of the clusterings")
    return ax


def sizes(labels: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the number of objects of each cluster, the largest first.

    Parameters
    ----------
    labels : array (n_objects,)
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpuens as ge
    >>> ax = ge.plotting.sizes([0, 1, 1, 1, 2, 2])
    >>> [int(bar.get_height()) for bar in ax.patches]
    [3, 2, 1]
    """
    labels = label_vector(labels)
    names, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    ax = axes(ax, (7.2, 3.6 if len(counts) > 30 or max(len(str(name)) for name in names) <= 4 else 4.4))
    width, colors = 0.85 if len(counts) <= 60 else 1.0, color_clusters(names[order])
    ax.bar(np.arange(len(counts)), counts[order], color=colors[:-1], width=width)
    if len(counts) <= 30:
        write_names(ax.xaxis, np.arange(len(counts)), names[order])
    ax.set_xlim(-0.6, len(counts) - 0.4)
    ax.set(xlabel="cluster" if len(counts) <= 30 else "clusters, the largest first", ylabel="objects")
    for place, n in zip(np.arange(len(counts)), counts[order], strict=True) if len(counts) <= MOST_NUMBERS else ():
        ax.annotate(f"{n:,}", (place, n), (0, 2), textcoords="offset points", ha="center", fontsize=SMALL)
    entitle(ax, f"Sizes of {len(counts)} clusters of {len(labels):,} objects")
    return hide_spines(ax)


def answers(comparison: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the NMI between the results of each pair of methods; the best method comes first.

    Parameters
    ----------
    comparison : gpuens.workflows.comparison.Comparison
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ax = ge.plotting.answers(ge.compare(labels, 2, methods=["eac", "lwgp"]))
    >>> ax.images[0].get_array().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    agreement = comparison.agreement
    names, values = list(agreement.columns), agreement.to_numpy()
    side = min(WIDEST, max(3.6, 1.6 + 0.34 * len(names)))
    ax = axes(ax, (side + 1.0, side), square=True)
    image = ax.imshow(values, cmap=SHARES, vmin=0.0, vmax=1.0)
    places = np.arange(len(names))
    write_names(ax.xaxis, places, names)
    write_names(ax.yaxis, places, names)
    write_shares(ax, values)
    color_bar(image, ax, "NMI of two answers")
    entitle(ax, f"Agreement between the answers of {len(names)} methods")
    return ax


def draw_in_blocks(ax: Any, similarity: np.ndarray, names: np.ndarray, clusters: np.ndarray) -> Any:
    """Draw similarities (n, n) of objects in the order of their clusters (n,), and a frame around each cluster.

    Similar clusters are neighbours, and so are similar objects in a cluster. The axes show the names of the clusters.
    """
    # distances between clusters are increased by 2.0, so that the tree merges all objects of a cluster first
    order = order_by_distance((1.0 - similarity) + 2.0 * (clusters[:, None] != clusters))
    clusters = clusters[order]
    # the interpolation "antialiased" smooths the image only if there are more objects than pixels
    image = ax.imshow(similarity[np.ix_(order, order)], cmap=SHARES, vmin=0.0, vmax=1.0, interpolation="antialiased")
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    widths = np.diff(np.append(starts, len(clusters)))
    _draw_frames(ax, starts, widths)
    readable = widths >= 0.025 * len(clusters)  # clusters that have enough room for their names
    ticks = (starts + (widths - 1) / 2)[readable]
    for axis in (ax.xaxis, ax.yaxis):
        write_names(axis, ticks, names[clusters[starts][readable]])
    return image


def _draw_frames(ax: Any, starts: np.ndarray, widths: np.ndarray) -> None:
    """Draw a square frame around the block of each cluster on the diagonal of the matrix."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    squares = [Rectangle((start - 0.5, start - 0.5), n, n) for start, n in zip(starts, widths, strict=True)]
    ax.add_collection(PatchCollection(squares, facecolor="none", edgecolor=MARK, linewidth=0.9))
