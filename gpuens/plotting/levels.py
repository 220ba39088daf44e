"""Pictures of several numbers of clusters: the clusters of each object, and the criteria for each number."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.object_names import in_one_order
from gpuens.plotting.drawing import (
    CLUSTERS,
    INK,
    MARK,
    SHADE,
    SMALL,
    axes,
    color_clusters,
    count_drawn,
    entitle,
    hide_spines,
    label_axes,
    label_vector,
    type_name,
    write_legend,
    write_names,
)
from gpuens.runtime import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_OBJECTS = 2000  # maximum number of objects that are drawn; more objects would be finer than a pixel
CRITERIA = {
    "score": "score: larger is better",
    "support": "support of the groups that are shared",
    "silhouette": "median silhouette, interval of 95 %",
    "pac": "PAC: share of the pairs that are ambiguous",
    "corrected_pac": "PAC as a multiple of that of independent clusterings",
    "delta_area": "relative growth of the CDF's area (Δ)",
    "inconsistency": "IC: inconsistency of the clusterings",
    "lifetime": "lifetime (range of distances)",
    "cluster_consensus": "mean consensus of the clusters",
    "rcsi": "RCSI: PAC beside that of reference data",
}
DEPTH = 4.0  # largest range of the drawn scores below the largest score
LEAST_RANGE = 0.3  # least range of the drawn scores, so that equal ones are not far apart
NAME_SHARE = 0.1  # room for the name of a number above a criterion, as a share of its range
SMALLEST_EDGE = 0.05  # an edge is drawn if it has at least this share of the objects of a cluster


def tracking(levels: Any, *, reference: Any = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the cluster of each object at each number of clusters; a colour that persists is a stable cluster.

    At one level, clusters have the colours of their numbers. At each further level, a cluster takes the colour of the
    cluster of the level next to it with which it shares most objects, if that cluster also shares most with it.

    Parameters
    ----------
    levels : dict {number of clusters: labels (n_objects,)}
        Such as cuts of one dendrogram, drawn from top to bottom.
    reference : number of clusters, optional
        The level whose clusters have the colours of their numbers; by default, the first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything else, and labels of different lengths.

    References
    ----------
    Wilkerson & Hayes, "ConsensusClusterPlus", Bioinformatics 26 (2010) 1572-1573.

    Examples
    --------
    >>> import gpuens as ge
    >>> ax = ge.plotting.tracking({2: [0, 0, 1, 1, 1], 3: [0, 0, 1, 1, 2]})
    >>> ax.get_title()
    'The clusters of 5 objects, 2 levels'
    """
    names, columns, sizes = _levels(levels)
    objects = np.unique(np.linspace(0, len(columns) - 1, min(len(columns), 10 * MOST_OBJECTS)).astype(np.int64))
    objects = objects[np.lexsort(columns[objects].T[::-1])]
    objects = objects[np.unique(np.linspace(0, len(objects) - 1, min(len(objects), MOST_OBJECTS)).astype(np.int64))]
    ax = axes(ax, (7.2, 0.9 + 0.24 * len(names)))
    first = names[0] if reference is None else reference
    if first not in names:
        raise ValueError(f"reference={checks.shown(reference)} is no level; take one of {checks.listed(names)}.")
    palette, colors = color_clusters(range(len(CLUSTERS))), _colors(columns, sizes, names.index(first))
    rows = [palette[color[columns[objects, level]]] for level, color in enumerate(colors)]
    ax.imshow(np.array(rows), aspect="auto", interpolation="nearest")
    ax.set_xticks([])
    write_names(ax.yaxis, np.arange(len(names)), names)
    ax.hlines(np.arange(len(names) - 1) + 0.5, -0.5, len(objects) - 0.5, color="white", linewidth=1.0)
    count = count_drawn(len(objects), len(columns), "objects")
    label_axes(ax, f"{count}, by their clusters", "number of clusters")
    entitle(ax, f"The clusters of {len(columns):,} objects, {len(names)} levels")
    return ax


def clustree(levels: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the division of clusters from level to level: an edge joins two clusters with common objects.

    The area of a cluster is its share of the objects. The width of an edge is its share of the lower cluster's objects;
    edges below 5 % are left out. A cluster with a single thick edge is stable; crossing thin edges mean unstable
    clusters.

    Parameters
    ----------
    levels : dict {number of clusters: labels (n_objects,)}
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything else, and labels of different lengths.

    References
    ----------
    Zappia & Oshlack, "Clustering trees", GigaScience 7 (2018) giy083.

    Examples
    --------
    >>> import gpuens as ge
    >>> ax = ge.plotting.clustree({2: [0, 0, 1, 1, 1], 3: [0, 0, 1, 1, 2]})
    >>> len(ax.collections[0].get_segments()), len(ax.collections[1].get_offsets())
    (3, 5)
    """
    from matplotlib.collections import LineCollection

    names, columns, sizes = _levels(levels)
    ax = axes(ax, (7.2, 1.2 + 0.55 * len(names)))
    x = [_spread_evenly(np.arange(len(sizes[0])))]
    lines, widths = [], []
    for level in range(1, len(names)):
        above, below, shared = _count_shared(columns, level - 1, level)
        middle = np.bincount(below, weights=shared * x[-1][above]) / sizes[level]
        x.append(_spread_evenly(middle))
        share = shared / sizes[level][below]
        is_thick = share >= SMALLEST_EDGE
        ends = zip(x[-2][above[is_thick]].tolist(), x[-1][below[is_thick]].tolist(), strict=True)
        lines += [[(a, level - 1), (b, level)] for a, b in ends]
        widths += (3.0 * share[is_thick]).tolist()
    ax.add_collection(LineCollection(lines, colors=INK, linewidths=widths, alpha=0.5, zorder=1))
    areas = np.concatenate([10 + 400 * of_level / len(columns) for of_level in sizes])
    y = np.repeat(np.arange(len(names)), [len(of_level) for of_level in sizes])
    ax.scatter(np.concatenate(x), y, areas, SHADE, edgecolors="white", linewidths=0.5, zorder=2)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlim=(-0.02, 1.02), xticks=[])
    write_names(ax.yaxis, np.arange(len(names)), names)
    label_axes(ax, "clusters, with an area as their share of the objects", "number of clusters")
    entitle(ax, f"How the clusters of {len(columns):,} objects divide")
    hide_spines(ax).spines["bottom"].set_visible(False)
    return ax


def criterion(choice: Any, name: str = "silhouette", *, ax: "Axes | None" = None) -> "Axes":
    """Draw a criterion for each number of clusters, and name the suggested number and the second at their points.

    Parameters
    ----------
    choice : what `gpuens.choose_k` returns
    name : str
        A column of ``choice.table``: "score" (with that of the shared groups alone), "silhouette", "pac",
        "corrected_pac", "delta_area", "inconsistency", ….
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything but a choice, and for a criterion that the choice lacks.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.choose_k([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]], ks=[2, 3])
    >>> ge.plotting.criterion(found, "score").get_title()
    'score by number of clusters, 3 suggested'
    """
    has = criteria(choice_of(choice))
    checks.check_choice(name, "name", has)
    rows = [row for row in choice.rows if row[name] is not None]
    ks, values = np.array([row["k"] for row in rows]), np.array([row[name] for row in rows], dtype=np.float64)
    ax = axes(ax, (6.4, 3.4))
    if name == "silhouette":
        interval = np.array([(row["silhouette_low"], row["silhouette_high"]) for row in rows], dtype=np.float64)
        ax.fill_between(ks, *interval.T, color=SHADE, alpha=0.25, linewidth=0)
    if name == "corrected_pac":
        ax.axhline(1.0, color=SHADE, linewidth=1)
    width = 2.4 if name == "score" else 1.2
    ax.plot(ks, values, color=INK, marker="o", markersize=4, linewidth=width, label="score")
    named = {choice.suggested: "suggested"} | dict.fromkeys(choice.runners_up[:1], "second")
    if name == "score":
        shared = values - np.array([row["nearness"] for row in rows], dtype=np.float64)
        _draw_shared_groups(ax, ks, values, shared)
        named.setdefault(int(ks[shared.argmax()]), "most shared")
    ax.axvline(choice.suggested, color=MARK, linewidth=1, linestyle="--", zorder=0)
    ax.locator_params("x", integer=True)
    _name_points(ax, ks, values, named)
    label_axes(ax, "number of clusters", CRITERIA.get(name, name.replace("_", " ")))
    entitle(ax, f"{name.replace('_', ' ')} by number of clusters, {choice.suggested} suggested")
    if name == "score":
        write_legend(ax)
    return hide_spines(ax)


def _name_points(ax: "Axes", ks: np.ndarray, values: np.ndarray, named: dict[int, str]) -> None:
    """Write numbers of clusters at their points, the first one in red, above the lines; ``named`` are their texts."""
    low, high = ax.get_ylim()
    step = NAME_SHARE * (high - low)
    ax.set_ylim(low, high + step * max(2, len(named)))
    for turn, (k, text) in enumerate(named.items()):
        color = INK if turn else MARK
        side = float(k > ks.mean())  # 1.0 if the text is on the left of its point
        arrow = {"arrowstyle": "-", "color": color, "linewidth": 0.6, "relpos": (side, 0.5), "shrinkA": 0, "shrinkB": 4}
        for value in values[ks == k]:
            ax.plot(k, value, "o", markersize=8, markerfacecolor="none", markeredgecolor=color)
            ax.annotate(
                f"{k}: {text}", (k, value), (k, high + step * (max(2, len(named)) - 0.5 - turn)), color=color,
                ha="right" if side else "left", va="center", fontsize=SMALL, weight="bold", arrowprops=arrow,
                bbox={"facecolor": "white", "linewidth": 0, "pad": 1},
            )  # fmt: skip


def _draw_shared_groups(ax: "Axes", ks: np.ndarray, score: np.ndarray, shared: np.ndarray) -> None:
    """Draw the term of the shared groups above the score; scores far below the median are outside the picture."""
    ax.plot(ks, shared, color=SHADE, linewidth=0.8, marker="^", markersize=3, label="shared groups alone")
    ax.fill_between(ks, score, shared, color=SHADE, alpha=0.25, linewidth=0, label="loss: far from own numbers")
    high = float(shared.max())
    depth = max(high - float(np.median(score)), LEAST_RANGE)
    low = max(high - 2 * depth, float(score.max()) - DEPTH)
    ax.set_ylim(low, high + 0.05 * (high - low))


def choice_of(choice: Any) -> Any:
    """Return the argument if it is a `Choice`, the result of `choose_k`; otherwise raise an error."""
    if not (hasattr(choice, "suggested") and hasattr(choice, "rows")):
        raise TypeError(f"choice must be what ge.choose_k(labels) returns, not {type_name(choice)}.")
    return choice


def criteria(choice: Any) -> list[str]:
    """Return the names of the criteria for which a `Choice` has numbers; criteria in `CRITERIA` come first."""
    names = {name for row in choice.rows for name, value in row.items() if value is not None and name != "k"}
    return [name for name in CRITERIA if name in names] + sorted(names - CRITERIA.keys())


# --- levels -----------------------------------------------------------------------------------------------------------


def _levels(levels: Any) -> tuple[list[Any], np.ndarray, list[np.ndarray]]:
    """Return the names of the L levels, the cluster of each object at each level (N, L), and the sizes of clusters.

    A level is a clustering with one number of clusters. The sizes are a list with one array for each level.
    """
    if not isinstance(levels, Mapping) or not levels:
        raise TypeError(f"levels must be a dict of the labels at each number of clusters, not {type_name(levels)}.")
    in_order = in_one_order(list(levels.values()), [f"levels[{level!r}]" for level in levels])
    vectors = [label_vector(labels) for labels in in_order]
    for name, vector in zip(levels, vectors, strict=True):
        checks.check_one_per_row(vector, len(vectors[0]), f"levels[{name!r}]")
    encoded = [np.unique(vector, return_inverse=True, return_counts=True)[1:] for vector in vectors]
    return list(levels), np.column_stack([codes for codes, _ in encoded]), [sizes for _, sizes in encoded]


def _count_shared(columns: np.ndarray, level: int, neighbor: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays: clusters of a level, clusters of a neighbour, and how many objects each pair shares."""
    width = columns[:, neighbor].max() + 1
    cells, shared = np.unique(columns[:, level] * width + columns[:, neighbor], return_counts=True)
    return cells // width, cells % width, shared


def _spread_evenly(places: np.ndarray) -> np.ndarray:
    """Return x coordinates from 0 to 1 with equal distances for clusters, in the order of the places ``places``."""
    return (np.argsort(np.argsort(places, kind="stable"), kind="stable") + 0.5) / len(places)


def _colors(columns: np.ndarray, sizes: list[np.ndarray], reference: int) -> list[np.ndarray]:
    """Return, for each level, an array with the colour of each cluster as a position in the palette `CLUSTERS`."""
    colors_by_level = {reference: np.arange(len(sizes[reference])) % len(CLUSTERS)}
    for level in [*range(reference + 1, len(sizes)), *range(reference - 1, -1, -1)]:
        neighbor = level - 1 if level > reference else level + 1
        above, below, shared = _count_shared(columns, neighbor, level)
        # the order is ascending, so that the last assignment to an entry below is that of the largest number of objects
        order = np.argsort(shared, kind="stable")
        most_of, largest_of = np.empty(len(sizes[level]), np.int64), np.empty(len(sizes[neighbor]), np.int64)
        most_of[below[order]] = above[order]  # for each cluster, the neighbour that shares most objects with it
        largest_of[above[order]] = below[order]  # for each neighbour, the cluster that shares most objects with it
        keeps = largest_of[most_of] == np.arange(len(most_of))
        colors = np.where(keeps, colors_by_level[neighbor][most_of], -1)
        n_uses = np.bincount(colors[keeps], minlength=len(CLUSTERS))
        for cluster in np.flatnonzero(~keeps).tolist():
            colors[cluster] = n_uses.argmin()
            n_uses[colors[cluster]] += 1
        colors_by_level[level] = colors
    return [colors_by_level[level] for level in range(len(sizes))]
