"""Pictures of clusterings in one naming of clusters (`gpuens.align`): strips of labels, and bars of memberships.

Both pictures have the objects in one order, by their cluster of the reference, and one colour for each cluster; the
parts of a cluster have lighter and darker shades of its colour. A column of pixels stands for many objects.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.cells import MISSING, spread_colors
from gpuens.plotting.drawing import axes, entitle, evenly, kind, short, write_names
from gpuens.runtime import checks
from gpuens.runtime import device as devices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpuens.contingency.alignment import Aligned

COLUMNS = 800  # most columns of pixels
OBJECTS = 24_000  # most objects that are drawn, the same share of each cluster of the reference
STRIPS = 400  # most strips; more clusterings are drawn in part
BANDS = 24  # most bands of bars
PIXELS = 30  # rows of pixels of a band
GAP = 4  # rows of pixels between two bands
ROW_INCHES = 0.15  # least height, in inches, of a row with a name
PALE = 0.7  # how pale the colour of a cluster becomes if hardly an object of the column is in it
READABLE = 0.025  # least share of the width for a cluster whose name is written


def label_strips(found: "Aligned", *, order: Sequence[int] | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the labels of all clusterings as strips in the colours of the reference, which is the strip at the top.

    A clustering that agrees with the reference repeats its colours. A column of many objects has the colour of the most
    frequent cluster, the paler the fewer of them are in it; missing labels are grey.

    Parameters
    ----------
    found : Aligned
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
    rows = _rows(found, order, STRIPS)
    votes, some = _votes(found, rows)
    place = _ordered(found, rows, some, votes)
    some = some[place]
    bins = _bins(len(some))
    palette, n = _palette(found), len(found.names)
    codes = devices.to_host(found.codes[some][:, rows])
    strips = [_strip(bins, codes[:, row], n, palette) for row in range(len(rows))]
    head = max(1, round(len(rows) / 16))
    image = [_strip(bins, found.reference[some], n, palette)] * head + strips
    ax = axes(ax, (7.2, float(np.clip(1.3 + 0.2 * len(image), 2.0, 8.0))))
    ax.imshow(np.array(image), aspect="auto", interpolation="nearest")
    ax.axhline(head - 0.5, color="white", linewidth=2.5)
    figure: Any = ax.figure
    height = ax.get_position().height * figure.get_size_inches()[1]
    named = len(image) * ROW_INCHES <= height
    names = [_row_name(found, m) for m in rows] if named else []
    write_names(ax.yaxis, np.array([(head - 1) / 2, *(head + np.arange(len(names)))]), ["reference", *names])
    ax.set_ylabel("clustering" if named else f"clusterings{', by number of clusters' * (order is None)}")
    _finish(ax, found, some, bins)
    shown = "" if len(rows) == len(found.clusters) else f"{len(rows):,} of "
    entitle(ax, f"The labels of {len(found.reference):,} objects in {shown}{len(found.clusters):,} clusterings")
    return ax


def membership_bars(found: "Aligned", *, order: Sequence[int] | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the memberships of all objects as stacked bars, one band for each clustering, with one colour a cluster.

    The height of a colour is the share of the cluster: of an object in a soft clustering, or of the objects in a column
    of pixels. Several numbers of clusters can be compared one under another.

    Parameters
    ----------
    found : Aligned
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
    rows = _rows(found, order, BANDS)
    votes, some = _votes(found, rows)
    some = some[_ordered(found, rows, some, votes)]
    bins, palette = _bins(len(some)), _palette(found)
    counts, gap = np.bincount(bins), np.ones((GAP, bins[-1] + 1, 3))
    heights = (np.arange(PIXELS)[::-1, None] + 0.5) / PIXELS
    bands: list[np.ndarray] = []
    for m in rows:
        shares = np.add.reduceat(_membership(found, m, some), np.flatnonzero(np.diff(bins, prepend=-1)), axis=0)
        ends = np.cumsum(shares / counts[:, None], axis=1)
        ends[:, -1] += 1e-9  # so that rounding leaves no gap at the top
        codes = (heights[:, :, None] >= ends).sum(axis=2)
        bands += [palette[codes], gap]
    ax = axes(ax, (7.2, float(np.clip(1.2 + 0.4 * len(rows), 2.0, 9.0))))
    ax.imshow(np.concatenate(bands[:-1]), aspect="auto", interpolation="nearest")
    middles = np.arange(len(rows)) * (PIXELS + GAP) + (PIXELS - 1) / 2
    write_names(ax.yaxis, middles, [_row_name(found, m) for m in rows])
    ax.set_ylabel("clustering")
    _finish(ax, found, some, bins)
    ax.spines[:].set_visible(False)
    shown = "" if len(rows) == len(found.clusters) else f"{len(rows):,} of "
    entitle(ax, f"The memberships of {len(found.reference):,} objects in {shown}{len(found.clusters):,} clusterings")
    return ax


# --- rows, columns and colours ----------------------------------------------------------------------------------------


def _rows(found: Any, order: Sequence[int] | None, most: int) -> list[int]:
    """Return the clusterings to draw, from top to bottom."""
    if not (hasattr(found, "families") and hasattr(found, "clusters")):
        raise TypeError(f"found must be what ge.align(labels) returns, not {kind(found)}.")
    n = len(found.clusters)
    if order is not None:
        rows = checks.check_indices(np.asarray(order), n, "order").tolist()
        if not rows:
            raise ValueError("order names no clustering; leave it out to draw all of them.")
    else:
        rows = sorted(range(n), key=lambda m: len(found.clusters[m]))
    if len(rows) > most:
        rows = [rows[place] for place in np.linspace(0, len(rows) - 1, most).astype(int)]
    found_rows: list[int] = rows
    return found_rows


def _row_name(found: "Aligned", m: int) -> str:
    return f"{short(found.columns[m], 14)} (k = {len(found.clusters[m])})"


def _membership(found: "Aligned", m: int, some: np.ndarray) -> np.ndarray:
    """Return the shares (n_some, n_codes) of some objects in clustering m."""
    shares = np.zeros((len(some), len(found.names)))
    if found.soft[m] is not None:
        shares[:, found.clusters[m]] = devices.to_host(found.soft[m][some])
        return shares
    codes = devices.to_host(found.codes[some, m])
    known = np.flatnonzero(codes >= 0)
    shares[known, codes[known]] = 1.0
    return shares


def _votes(found: "Aligned", rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean shares (n_some, n_codes) over the clusterings, and the objects to draw (n_some,)."""
    some = evenly(found.reference, OBJECTS)
    votes = np.zeros((len(some), len(found.names)))
    for m in rows:
        votes += _membership(found, m, some)
    return votes / len(rows), some


def _ordered(found: "Aligned", rows: list[int], some: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Return an order (n_some,): by cluster of the reference, its parts, the next cluster, and the share of the own."""
    own = found.families == found.reference[some][:, None]
    # an object is in a part if it is in more than half of the clusterings that have the part
    n_having = np.bincount(np.concatenate([found.clusters[m] for m in rows]), minlength=len(found.names))
    rates = votes * len(rows) / np.maximum(n_having, 1)
    rates[:, found.families == np.arange(len(found.names))] = 0.5
    part = np.where(own, rates, -1.0).argmax(axis=1)
    other = np.where(own, -1.0, votes).argmax(axis=1)
    missing = found.reference[some] < 0
    order: np.ndarray = np.lexsort([-(votes * own).sum(axis=1), other, part, found.reference[some], missing])
    return order


def _bins(n: int) -> np.ndarray:
    """Return the column of pixels (n,) of each object, ascending."""
    width = min(n, COLUMNS)
    bins: np.ndarray = np.arange(n) * width // n
    return bins


def _palette(found: "Aligned") -> np.ndarray:
    """Return the colour (n_codes + 1, 3) of each code; the last is for missing labels."""
    codes = np.arange(len(found.names))
    heads = codes[found.families == codes]
    colors = np.full((len(codes) + 1, 3), MISSING)
    colors[heads] = spread_colors(len(heads))
    for head in heads.tolist():
        parts = codes[(found.families == head) & (codes != head)]
        for place, part in enumerate(parts.tolist()):
            # shades alternate between light and dark ones, and differ less and less from the cluster's own
            amount = 0.55 * (1 - place // 2 / max(1, (len(parts) + 1) // 2))
            colors[part] = colors[head] * (1 - amount) + (1.0 if place % 2 == 0 else 0.0) * amount
    return colors


def _strip(bins: np.ndarray, codes: np.ndarray, n_codes: int, palette: np.ndarray) -> np.ndarray:
    """Return the colours (n_columns, 3) of the most frequent clusters of all columns of pixels."""
    width = n_codes + 1
    cells = bins * width + np.where(codes < 0, n_codes, codes)
    counted = np.bincount(cells, minlength=(bins[-1] + 1) * width).reshape(-1, width)
    share = counted.max(axis=1) / counted.sum(axis=1)
    strength = 1 - PALE * (1 - share[:, None])
    colors: np.ndarray = palette[counted.argmax(axis=1)] * strength + (1 - strength)
    return colors


def _finish(ax: Any, found: "Aligned", some: np.ndarray, bins: np.ndarray) -> None:
    """Write the names of the clusters of the reference at the x axis, and draw lines between them."""
    reference, n_columns = found.reference[some], bins[-1] + 1
    starts = np.flatnonzero(np.diff(reference, prepend=-2))
    edges = np.append(bins[starts], n_columns) - 0.5
    ax.vlines(edges[1:-1], *ax.get_ylim(), color="white", linewidth=1.0)
    wide = np.diff(edges) >= READABLE * n_columns
    names = [*found.names, "missing"]
    write_names(ax.xaxis, ((edges[1:] + edges[:-1]) / 2)[wide], [names[code] for code in reference[starts][wide]])
    ax.set_xlabel(f"{len(found.reference):,} objects, by cluster of the reference")
