"""Pictures of clusterings in one naming of clusters (`gpuens.align`): strips of labels, and bars of memberships.

Both pictures have the objects in one order, by their cluster of the reference, and one colour for each cluster; the
parts of a cluster have lighter and darker shades of its colour. A column of pixels stands for many objects.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import (
    axes,
    color_clusters,
    count_drawn,
    entitle,
    label_axes,
    select_evenly,
    shorten,
    type_name,
    write_names,
)
from gpuens.runtime import checks
from gpuens.runtime import device as devices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpuens.contingency.alignment import Aligned

MOST_COLUMNS = 800  # most columns of pixels
MOST_OBJECTS = 24_000  # most objects that are drawn, the same share of each cluster of the reference
MOST_STRIPS = 400  # most strips; more clusterings are drawn in part
MOST_BANDS = 24  # most bands of bars
BAND_PIXELS = 30  # rows of pixels of a band
GAP_PIXELS = 4  # rows of pixels between two bands
ROW_INCHES = 0.15  # least height, in inches, of a row with a name
PALEST = 0.7  # how pale the colour of a cluster becomes if hardly an object of the column is in it
LEAST_WIDTH = 0.025  # least share of the width for a cluster whose name is written


def label_strips(aligned: "Aligned", *, order: Sequence[int] | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the labels of all clusterings as strips in the colours of the reference, which is the strip at the top.

    A clustering that agrees with the reference repeats its colours. A column of many objects has the colour of the most
    frequent cluster, the paler the fewer of them are in it; missing labels are grey.

    Parameters
    ----------
    aligned : Aligned
        The result of `gpuens.align`.
    order : sequence of int, optional
        The clusterings to draw, from top to bottom; by default, all by number of clusters.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything but an Aligned, and for clusterings that it lacks.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.align([[0, 0, 1, 1], ["b", "b", "a", "a"], [0, 0, 1, 2]], to="first")
    >>> ge.plotting.label_strips(found).get_title()
    'The labels of 4 objects in 3 clusterings'
    """
    clusterings, objects, bins = _arrange(aligned, order, MOST_STRIPS)
    palette, n = _palette(aligned), len(aligned.names)
    codes = devices.to_host(aligned.codes[objects][:, clusterings])
    strips = [_strip(bins, codes[:, row], n, palette) for row in range(len(clusterings))]
    head = max(1, round(len(clusterings) / 16))
    image = [_strip(bins, aligned.reference[objects], n, palette)] * head + strips
    ax = axes(ax, (7.2, float(np.clip(1.3 + 0.2 * len(image), 2.0, 8.0))))
    ax.imshow(np.array(image), aspect="auto", interpolation="nearest")
    ax.axhline(head - 0.5, color="white", linewidth=2.5)
    figure: Any = ax.figure
    height = ax.get_position().height * figure.get_size_inches()[1]
    has_names = len(image) * ROW_INCHES <= height
    names = [_row_name(aligned, m) for m in clusterings] if has_names else []
    write_names(ax.yaxis, np.array([(head - 1) / 2, *(head + np.arange(len(names)))]), ["reference", *names])
    _name_reference(ax, aligned, objects, bins)
    text = "clustering" if has_names else f"clusterings{', by number of clusters' * (order is None)}"
    label_axes(ax, ax.get_xlabel(), text)
    entitle(ax, f"The labels of {len(aligned.reference):,} objects in {_count_drawn(clusterings, aligned)}")
    return ax


def membership_bars(aligned: "Aligned", *, order: Sequence[int] | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the memberships of all objects as stacked bars, one band for each clustering, with one colour a cluster.

    The height of a colour is the share of the cluster: of an object in a soft clustering, or of the objects in a column
    of pixels. Several numbers of clusters can be compared one under another.

    Parameters
    ----------
    aligned : Aligned
        The result of `gpuens.align`, of memberships or labels.
    order : sequence of int, optional
        The clusterings to draw, from top to bottom; by default, all by number of clusters, at most 24 evenly chosen.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything but an Aligned, and for clusterings that it lacks.

    References
    ----------
    Kopelman et al., "CLUMPAK", Molecular Ecology Resources 15 (2015) 1179-1191; Behr et al., "pong", Bioinformatics 32
    (2016) 2817-2823.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.align([[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.9, 0.1]]], to="first")
    >>> ge.plotting.membership_bars(found).get_title()
    'The memberships of 2 objects in 2 clusterings'
    """
    clusterings, objects, bins = _arrange(aligned, order, MOST_BANDS)
    palette = _palette(aligned)
    counts, gap = np.bincount(bins), np.ones((GAP_PIXELS, bins[-1] + 1, 3))
    heights = (np.arange(BAND_PIXELS)[::-1, None] + 0.5) / BAND_PIXELS
    bands: list[np.ndarray] = []
    for m in clusterings:
        shares = np.add.reduceat(_membership(aligned, m, objects), np.flatnonzero(np.diff(bins, prepend=-1)), axis=0)
        ends = np.cumsum(shares / counts[:, None], axis=1)
        ends[:, -1] += 1e-9  # so that rounding leaves no gap at the top
        codes = (heights[:, :, None] >= ends).sum(axis=2)
        bands += [palette[codes], gap]
    ax = axes(ax, (7.2, float(np.clip(1.2 + 0.4 * len(clusterings), 2.0, 9.0))))
    ax.imshow(np.concatenate(bands[:-1]), aspect="auto", interpolation="nearest")
    middles = np.arange(len(clusterings)) * (BAND_PIXELS + GAP_PIXELS) + (BAND_PIXELS - 1) / 2
    write_names(ax.yaxis, middles, [_row_name(aligned, m) for m in clusterings])
    ax.set_ylabel("clustering")
    _name_reference(ax, aligned, objects, bins)
    ax.spines[:].set_visible(False)
    entitle(ax, f"The memberships of {len(aligned.reference):,} objects in {_count_drawn(clusterings, aligned)}")
    return ax


# --- rows, columns and colours ----------------------------------------------------------------------------------------


def _arrange(aligned: "Aligned", order: Sequence[int] | None, limit: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Return the clusterings and the objects to draw, both in order, and the column of pixels (n,) of each object."""
    clusterings, objects = _select_clusterings(aligned, order, limit), select_evenly(aligned.reference, MOST_OBJECTS)
    votes = np.zeros((len(objects), len(aligned.names)))
    for m in clusterings:
        votes += _membership(aligned, m, objects)
    objects = objects[_order_objects(aligned, clusterings, objects, votes / len(clusterings))]
    n = len(objects)
    return clusterings, objects, np.arange(n) * min(n, MOST_COLUMNS) // n


def _select_clusterings(aligned: Any, order: Sequence[int] | None, limit: int) -> list[int]:
    """Return the clusterings to draw, from top to bottom."""
    if not (hasattr(aligned, "families") and hasattr(aligned, "clusters")):
        raise TypeError(f"aligned must be what ge.align(labels) returns, not {type_name(aligned)}.")
    n = len(aligned.clusters)
    if order is not None:
        clusterings: list[int] = checks.check_indices(np.asarray(order), n, "order").tolist()
        if not clusterings:
            raise ValueError("order names no clustering; leave it out to draw all of them.")
    else:
        clusterings = sorted(range(n), key=lambda m: len(aligned.clusters[m]))
    if len(clusterings) > limit:
        clusterings = [clusterings[place] for place in np.linspace(0, len(clusterings) - 1, limit).astype(int)]
    return clusterings


def _count_drawn(clusterings: list[int], aligned: "Aligned") -> str:
    return count_drawn(len(clusterings), len(aligned.clusters), "clusterings")


def _row_name(aligned: "Aligned", m: int) -> str:
    return f"{shorten(aligned.columns[m], 14)} (k = {len(aligned.clusters[m])})"


def _membership(aligned: "Aligned", m: int, objects: np.ndarray) -> np.ndarray:
    """Return the shares (n_some, n_codes) of some objects in clustering m."""
    shares = np.zeros((len(objects), len(aligned.names)))
    if aligned.soft[m] is not None:
        shares[:, aligned.clusters[m]] = devices.to_host(aligned.soft[m][objects])
        return shares
    codes = devices.to_host(aligned.codes[objects, m])
    labelled = np.flatnonzero(codes >= 0)
    shares[labelled, codes[labelled]] = 1.0
    return shares


def _order_objects(aligned: "Aligned", clusterings: list[int], objects: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Return an order (n_some,): by cluster of the reference, its parts, the next cluster, and the share of the own."""
    in_family = aligned.families == aligned.reference[objects][:, None]
    # an object is in a part if it is in more than half of the clusterings that have the part
    n_having = np.bincount(np.concatenate([aligned.clusters[m] for m in clusterings]), minlength=len(aligned.names))
    rates = votes * len(clusterings) / np.maximum(n_having, 1)
    rates[:, aligned.families == np.arange(len(aligned.names))] = 0.5
    part = np.where(in_family, rates, -1.0).argmax(axis=1)
    second = np.where(in_family, -1.0, votes).argmax(axis=1)
    missing = aligned.reference[objects] < 0
    support = (votes * in_family).sum(axis=1)
    return np.lexsort([-support, second, part, aligned.reference[objects], missing])


def _palette(aligned: "Aligned") -> np.ndarray:
    """Return the colour (n_codes + 1, 3) of each code; the last is for missing labels."""
    codes = np.arange(len(aligned.names))
    heads = codes[aligned.families == codes]
    of_heads = color_clusters([aligned.names[head] for head in heads])
    colors = np.empty((len(codes) + 1, 3))
    colors[heads], colors[-1] = of_heads[:-1], of_heads[-1]
    for head in heads.tolist():
        parts = codes[(aligned.families == head) & (codes != head)]
        for place, part in enumerate(parts.tolist()):
            # shades alternate between light and dark ones, and differ less and less from the cluster's own
            amount = 0.55 * (1 - place // 2 / max(1, (len(parts) + 1) // 2))
            colors[part] = colors[head] * (1 - amount) + (1.0 if place % 2 == 0 else 0.0) * amount
    return colors


def _strip(bins: np.ndarray, codes: np.ndarray, n_codes: int, palette: np.ndarray) -> np.ndarray:
    """Return the colours (n_columns, 3) of the most frequent clusters of all columns of pixels."""
    width = n_codes + 1
    cells = bins * width + np.where(codes < 0, n_codes, codes)
    counts = np.bincount(cells, minlength=(bins[-1] + 1) * width).reshape(-1, width)
    share = counts.max(axis=1) / counts.sum(axis=1)
    strength = 1 - PALEST * (1 - share[:, None])
    return palette[counts.argmax(axis=1)] * strength + (1 - strength)


def _name_reference(ax: Any, aligned: "Aligned", objects: np.ndarray, bins: np.ndarray) -> None:
    """Write the names of the clusters of the reference at the x axis, and draw lines between them."""
    reference, n_columns = aligned.reference[objects], bins[-1] + 1
    starts = np.flatnonzero(np.diff(reference, prepend=-2))
    edges = np.append(bins[starts], n_columns) - 0.5
    ax.vlines(edges[1:-1], *ax.get_ylim(), color="white", linewidth=1.0)
    wide = np.diff(edges) >= LEAST_WIDTH * n_columns
    names = [*aligned.names, "missing"]
    write_names(ax.xaxis, ((edges[1:] + edges[:-1]) / 2)[wide], [names[code] for code in reference[starts][wide]])
    label_axes(ax, f"{len(aligned.reference):,} objects, by cluster of the reference", ax.get_ylabel())
