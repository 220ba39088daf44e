"""Pictures of trees: the top of a dendrogram, the lifetimes of the cuts of a dendrogram, and a CA-tree."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import (
    INK,
    LAYOUT_SHARE,
    MARK,
    POINTS_AN_INCH,
    SHADE,
    SMALLEST_TYPE,
    WIDEST,
    axes,
    axis_inches,
    color_clusters,
    entitle,
    hide_spines,
    label_axes,
    type_name,
    write_legend,
)
from gpuens.runtime import checks
from gpuens.runtime.device import to_host

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NODES_DRAWN = 300  # maximum number of nodes of a CA-tree that are drawn by default


def dendrogram(estimator: Any, *, p: int = 30, ax: "Axes | None" = None) -> "Axes":
    """Draw the top of the tree of a linkage method: the last merges, whose heights help to choose a cut.

    Parameters
    ----------
    estimator : a fitted linkage method, such as EAC or LWEA
    p : int
        The number of branches shown, each with its number of objects. The line is the cut of ``estimator.labels_``:
        each branch below the line is a cluster, or, with `min_size`, a part of a cluster.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For anything but a fitted linkage method.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.EAC(n_clusters=2).fit([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 2, 2]])
    >>> [tick.get_text() for tick in ge.plotting.dendrogram(est).get_xticklabels()]
    ['2', '3', '1']
    """
    from scipy.cluster import hierarchy

    from gpuens.partition.linkage.dendrogram import Dendrogram

    tree = _check_dendrogram(estimator)
    p = min(checks.check_integer(p, "p", minimum=2), tree.n_leaves)
    ax = axes(ax, (min(max(7.2, 1.2 + 0.15 * p), WIDEST), 4.2))
    if tree.n_leaves == 1:
        label_axes(ax, y="distance (1 - similarity)")
        entitle(ax, "One distinct label row: there is nothing to merge")
        return hide_spines(ax)
    branch = tree.cut(p)
    top = Dendrogram(branch[tree.kept[-(p - 1) :]], branch[tree.absorbed[-(p - 1) :]], tree.similarities[-(p - 1) :])
    objects = np.bincount(branch, weights=estimator.reduction_.counts).astype(np.int64)
    Z = top.linkage_matrix()
    lifted = top.most - 1.0
    n_branches = estimator.n_branches_
    cut = _cut_height(Z[:, 2], p, n_branches)
    colors = _branch_colors(estimator, Z, branch, top.cut(n_branches) if n_branches <= p else np.arange(p))
    room = POINTS_AN_INCH * LAYOUT_SHARE * axis_inches(ax.xaxis) / p  # width of a branch in points
    hierarchy.dendrogram(
        Z,
        ax=ax,
        link_color_func=colors.__getitem__,
        leaf_label_func=lambda leaf: f"{objects[leaf]:,}",
        leaf_rotation=0 if p <= 12 else 90,
        leaf_font_size=min(9.0, room),
    )
    crowded = room < SMALLEST_TYPE
    if crowded:
        ax.set_xticks([])
    low, high = Z[0, 2], Z[-1, 2]
    margin = 0.08 * (high - low) or 0.05
    if lifted:
        from matplotlib.ticker import MaxNLocator

        ticks = np.asarray(MaxNLocator(8).tick_values(low - lifted, high - lifted))
        ax.set_yticks(ticks + lifted, [f"{distance:g}" for distance in ticks])
    ax.set_ylim(max(0.0, low - 2 * margin), high + margin)
    if 1 < n_branches <= p:
        ax.axhline(cut, color=MARK, linewidth=1, linestyle="--")
        ax.annotate(
            f"{estimator.n_clusters_} clusters" + f"\nin {n_branches} branches" * (n_branches > estimator.n_clusters_),
            (1, cut),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            color=MARK,
            va="center",
        )
    text = f"{p:,} branches, too many to write how many objects each has" if crowded else "objects in the branch"
    label_axes(ax, text, "distance (1 - similarity)")
    entitle(ax, f"{type(estimator).__name__}: the last {p - 1:,} of {tree.n_leaves - 1:,} merges")
    return hide_spines(ax)


def lifetimes(estimator: Any, *, p: int = 30, ax: "Axes | None" = None) -> "Axes":
    """Draw the lifetime of each number of clusters: the range of heights whose cuts have this number.

    Parameters
    ----------
    estimator : a fitted linkage method, such as EAC or LWEA
    p : int
        The largest number of clusters shown.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For anything but a fitted linkage method.

    References
    ----------
    Fred & Jain, "Combining multiple clusterings using evidence accumulation", IEEE TPAMI 27 (2005) 835-850.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.EAC().fit([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 2, 2]])
    >>> [float(bar.get_height()) for bar in ge.plotting.lifetimes(est).patches]  # 2 clusters, 3 clusters
    [0.5, 0.5]
    """
    _check_dendrogram(estimator)
    p = checks.check_integer(p, "p", minimum=2)
    lasting = estimator.lifetimes_[: p - 1]
    k = np.arange(2, len(lasting) + 2)
    ax = axes(ax, (7.2, 3.6))
    ax.bar(k, lasting, color=SHADE, width=0.85)
    ax.locator_params("x", integer=True)
    ax.set_xlim(1.3, len(k) + 1.7)
    if estimator.n_clusters_ in k:  # the chosen number has a line, because its bar may be too short to see
        ax.axvline(estimator.n_clusters_, color=MARK, linewidth=1, linestyle="--", zorder=0)
    label_axes(ax, "number of clusters", "lifetime (range of distances)")
    name = type(estimator).__name__
    entitle(ax, f"{name}: the lifetime of each number of clusters, {estimator.n_clusters_:,} chosen")
    return hide_spines(ax)


def ca_tree(
    tree: Any,
    tau: float | None = None,
    gamma: float | None = None,
    *,
    min_objects: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a CA-tree by the radii of its nodes, and a cut through it (Wang 2011, Fig. 2 b).

    The height of a node is its radius; the size of its marker is its share of the objects. Nodes of the cut are red:
    filled if kept, hollow if left out.

    Parameters
    ----------
    tree : gpuens.reduction.ca_tree.Tree, Reduction or estimator
        The result of ``CATree().grow(labels)`` or ``CATree(…).reduce(labels)``, or an estimator fitted with
        ``reduction=CATree(…)``.
    tau : float in [0, 1], optional
        The cut, as a share of the clusterings. None means the cut of the reduction or estimator, or no cut for a tree.
    gamma : float in (0, 1], optional
        The share of the objects in the kept nodes. None means that of the reduction, or 1 for a tree.
    min_objects : int, optional
        Draw only nodes with at least so many objects; by default the 300 largest.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        For tau, gamma and min_objects out of range.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import gpuens as ge
    >>> tree = ge.CATree().grow([[0] * 4 + [1] * 4, [0] * 3 + [1] * 5, [0] * 4 + [1] * 3 + [2]])
    >>> ge.plotting.ca_tree(tree, tau=0.4).get_title()
    'CA-tree of 8 objects: 2 nodes at τ = 0.4'
    >>> est = ge.LWEA(n_clusters=2, reduction=ge.CATree(tau=0.4)).fit([[0] * 4 + [1] * 4, [0] * 3 + [1] * 5])
    >>> ge.plotting.ca_tree(est).get_title()
    'CA-tree of 8 objects: 3 nodes at τ = 0.4'
    """
    tree, cut_tau, cut_gamma = _unpack_tree(tree)
    tau, gamma = cut_tau if tau is None else tau, cut_gamma if gamma is None else gamma
    in_cut, is_kept = np.zeros((2, len(tree)), dtype=bool)
    if tau is not None:
        tau = checks.check_between(tau, "tau", 0.0, 1.0)
        in_cut[tree.cut(tau)] = True
        is_kept[tree.kept(tau, gamma)] = True
    if min_objects is not None:
        min_objects = checks.check_integer(min_objects, "min_objects", minimum=1)
    elif len(tree) <= NODES_DRAWN:
        min_objects = 1
    else:
        min_objects = 1 + int(np.partition(tree.counts, -NODES_DRAWN - 1)[-NODES_DRAWN - 1])
    n_clusterings, n_objects = len(tree.clusterings), int(tree.counts[-1])
    nodes = np.flatnonzero(tree.counts >= min(min_objects, n_objects))  # with each node, all its ancestors are drawn
    ax = axes(ax, (7.2, 4.6))
    _draw_nodes(ax, tree, nodes, in_cut, is_kept)
    if tau is not None:  # radii are integers; the line is 0.5 above the largest accepted radius
        height = int(tau * n_clusterings * (1 + 1e-12)) + 0.5
        ax.axhline(height, color=MARK, linewidth=1, linestyle="--", zorder=0)
    ax.set_xticks([])
    ax.set_ylim(-0.03 * n_clusterings - 0.2, 1.05 * n_clusterings + 0.2)
    ax.locator_params("y", integer=True)
    label = "nodes" if len(nodes) == len(tree) else f"the {len(nodes):,} nodes of {min_objects:,} objects or more"
    label_axes(ax, f"{label}, in the order of their label rows", f"radius, of {n_clusterings} clusterings")
    summary = "" if tau is None else f": {in_cut.sum():,} nodes at τ = {tau:g}"
    summary += "" if is_kept.sum() == in_cut.sum() else f", {is_kept.sum():,} kept"
    entitle(ax, f"CA-tree of {n_objects:,} objects{summary}")
    if tau is not None:
        write_legend(ax)
    return hide_spines(ax)


def _draw_nodes(ax: Any, tree: Any, nodes: np.ndarray, in_cut: np.ndarray, is_kept: np.ndarray) -> None:
    """Draw nodes of a CA-tree and the edges to their parents; nodes of the cut are red, filled if kept."""
    from matplotlib.collections import LineCollection

    x = _spread_nodes(tree, nodes)
    below = nodes[tree.parents[nodes] >= 0]
    above = tree.parents[below]
    corners = ((x[below], below), (x[below], above), (x[above], above))
    elbows = np.stack([np.stack([x_of, tree.radii[node]], axis=1) for x_of, node in corners], axis=1)
    ax.add_collection(LineCollection(list(elbows), colors=INK, linewidths=0.6, alpha=0.6, zorder=1))
    area = 8 + 250 * tree.counts / tree.counts[-1]
    for places, face, edge, label in (
        (nodes[~in_cut[nodes]], SHADE, "none", None),
        (nodes[(in_cut & ~is_kept)[nodes]], "white", MARK, "left out"),
        (nodes[is_kept[nodes]], MARK, "none", "taken" if is_kept.sum() == in_cut.sum() else "kept"),
    ):
        if len(places):
            ax.scatter(x[places], tree.radii[places], area[places], face, edgecolors=edge, label=label, zorder=2)


def _check_dendrogram(estimator: Any) -> Any:
    """Return the dendrogram of a fitted linkage method; raise an error for any other argument."""
    if not hasattr(estimator, "dendrogram_"):
        raise TypeError(
            f"estimator must be a fitted linkage method, such as LWEA(…).fit(labels), not {type_name(estimator)}."
        )
    return estimator.dendrogram_


def _unpack_tree(tree: Any) -> tuple[Any, float | None, float]:
    """Return the CA-tree of a tree, a reduction or a fitted estimator, and the parameters τ and γ of its cut.

    A tree without a cut has τ None. Raise an error for any other argument.
    """
    if hasattr(tree, "radii"):
        return tree, None, 1.0
    cut: tuple[Any, float | None, float] | None = getattr(getattr(tree, "reduction_", tree), "cut_tree", None)
    if cut is None:
        raise TypeError(
            "tree must be what CATree().grow(labels) returns, a reduction by CATree(…) or an estimator fitted with "
            f"reduction=CATree(…) to labels in one piece, not {type_name(tree)}."
        )
    return cut


def _spread_nodes(tree: Any, nodes: np.ndarray) -> np.ndarray:
    """Return the x coordinates of the nodes of a CA-tree: leaves have equal distances, parents are above the children.

    Nodes that are not drawn have x = 0.
    """
    # ``reached`` has the x coordinates of the first and of the last child of each node
    x, reached = np.zeros(len(tree)), np.zeros((2, len(tree)))
    reached[0] = np.inf
    reached[1] = -np.inf
    tips = np.setdiff1d(nodes, tree.parents[nodes])
    x[tips[np.argsort(tree.first[tips])]] = np.arange(len(tips))
    for node in nodes.tolist():  # in ``nodes``, children come before parents
        if np.isfinite(reached[0, node]):
            x[node] = reached[:, node].mean()
        parent = tree.parents[node]
        if parent >= 0:
            reached[0, parent] = min(reached[0, parent], x[node])
            reached[1, parent] = max(reached[1, parent], x[node])
    return x


def _branch_colors(estimator: Any, Z: np.ndarray, leaf_of_row: np.ndarray, branches: np.ndarray) -> list[str]:
    """Return the colour of each node of the linkage matrix ``Z``, that of its cluster.

    ``leaf_of_row`` (G,) are the leaves of the rows, and ``branches`` (p,) those of the cut that hold the leaves. Nodes
    above the cut, and branches with rows of several clusters, have the colour ``INK``.
    """
    from matplotlib.colors import to_hex

    labels, of_row = to_host(estimator.fit_.partition.labels), branches[leaf_of_row]
    lowest, highest = np.full(len(branches), len(labels)), np.full(len(branches), -1)
    np.minimum.at(lowest, of_row, labels)
    np.maximum.at(highest, of_row, labels)
    palette = color_clusters(lowest)
    of_node = branches.tolist()
    for a, b in Z[:, :2].astype(np.int64).tolist():
        of_node.append(of_node[a] if of_node[a] == of_node[b] else -1)
    colors = [to_hex(color) if c == d else INK for c, d, color in zip(lowest, highest, palette, strict=False)]
    return [INK if branch < 0 else colors[branch] for branch in of_node]


def _cut_height(heights: np.ndarray, p: int, k: int) -> float:
    """Return the height of the cut into k clusters; ``heights`` are the heights of the last p - 1 merges.

    The cut is halfway between the last merge below it and the first merge above it.
    """
    n_merges = max(0, p - k)
    below = heights[n_merges - 1] if n_merges else heights[0]
    above = heights[n_merges] if n_merges < len(heights) else heights[-1]
    return float((below + above) / 2)
