"""Pictures of an ensemble and its consensus: co-association, sizes, dendrograms, CA-trees, correspondences.

Every function draws into the given Axes, or into a new Figure without a window, and returns the Axes;
``ax.figure.savefig("picture.png")`` writes the file. matplotlib is loaded on the first drawing.
"""

import math
from typing import Any

import numpy as np

from gpuens import checks
from gpuens.device import to_host
from gpuens.ensemble import Ensemble

# one palette for all pictures, safe for colour-blind readers (tests/test_plotting.py)
INK, SHADE, MARK = "#1f3b57", "#5b8db8", "#d1495b"
SHARES = "Blues"  # from 0 to 1
CLUSTERS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")  # Okabe & Ito; neighbours alternate

LONGEST_NAME = 20  # letters of a name at an axis
LONGEST_TITLE = 60  # letters of a name in a title
LETTERS_ABREAST = 60  # names that fit at an x axis
NODES_DRAWN = 300  # of a CA-tree, by default
SMALLEST_TYPE, WIDEST = 5.0, 30.0  # points of a legible text; inches of a picture
CELLS_WRITTEN = 240  # of a correspondence matrix; in larger ones numbers would be illegible


def coassociation_heatmap(ensemble: Any, labels: Any, *, max_objects: int = 1500, ax: Any = None) -> Any:
    """Draw the co-association matrix in the order of a consensus, with frames around its clusters.

    Similar clusters are neighbours, and so are similar objects in a cluster: the order is that of one average-linkage
    tree of the objects drawn, with the clusters kept together.

    Parameters
    ----------
    ensemble : Ensemble, or anything that Ensemble takes
    labels : array (n_objects,)
        The consensus.
    max_objects : int
        Of more objects a sample with the same share of every cluster is drawn: no N × N matrix is made.
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
    >>> ax.images[0].get_array().tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.5, 1.0]]
    """
    from gpuens.similarity import coassociation

    ensemble = Ensemble(ensemble)
    max_objects = checks.check_integer(max_objects, "max_objects", minimum=1)
    labels = _vector(labels)
    checks.check_one_per_row(labels, ensemble.n_objects, "labels")
    names, clusters = np.unique(labels, return_inverse=True)
    drawn = _evenly(clusters, max_objects)
    similarity = to_host(coassociation(ensemble, drawn, drawn))
    order = _seriated(similarity, clusters[drawn])
    clusters = clusters[drawn][order]

    ax = _axes(ax, (7.2, 6.2))
    # smoothing only where there are more objects than pixels
    image = ax.imshow(similarity[np.ix_(order, order)], cmap=SHARES, vmin=0.0, vmax=1.0, interpolation="antialiased")
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    widths = np.diff(np.append(starts, len(clusters)))
    _frames(ax, starts, widths)
    readable = widths >= 0.025 * len(clusters)  # names of thin clusters would overlap
    ticks = (starts + (widths - 1) / 2)[readable]
    for axis in (ax.xaxis, ax.yaxis):
        _write_names(axis, ticks, names[clusters[starts][readable]])
    count = f"{ensemble.n_objects:,} objects"
    shown = count if len(drawn) == ensemble.n_objects else f"{len(drawn):,} of {count}"
    ax.set(xlabel="cluster of the consensus", ylabel=f"{shown}, by cluster of the consensus")
    _entitle(ax, f"Co-association of {count} in {ensemble.n_clusterings} clusterings")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.03)
    bar.set_label("share of the clusterings that put two objects together")
    bar.outline.set_visible(False)
    return ax


def sizes(labels: Any, *, ax: Any = None) -> Any:
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
    labels = _vector(labels)
    names, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    ax = _axes(ax, (7.2, 3.6 if len(counts) > 30 or max(len(str(name)) for name in names) <= 4 else 4.4))
    ax.bar(np.arange(len(counts)), counts[order], color=SHADE, width=0.85 if len(counts) <= 60 else 1.0)
    if len(counts) <= 30:
        _write_names(ax.xaxis, np.arange(len(counts)), names[order])
    ax.set_xlim(-0.6, len(counts) - 0.4)
    ax.set(xlabel="cluster" if len(counts) <= 30 else "clusters, the largest first", ylabel="objects")
    if counts.max() > 100 * counts.min():
        ax.set_yscale("log")
        ax.set(ylim=(0.5, None), ylabel="objects (logarithmic)")
    _entitle(ax, f"Sizes of {len(counts)} clusters of {len(labels):,} objects")
    return _plain(ax)


def answers(comparison: Any, *, ax: Any = None) -> Any:
    """Draw how the answers of several methods agree with each other: the NMI of any two, the best method first.

    Parameters
    ----------
    comparison : gpuens.comparison.Comparison
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
    ax = _axes(ax, (side + 1.0, side))
    image = ax.imshow(values, cmap=SHARES, vmin=0.0, vmax=1.0)
    places = np.arange(len(names))
    _write_names(ax.xaxis, places, names)
    _write_names(ax.yaxis, places, names)
    if values.size <= CELLS_WRITTEN:
        for i, j in np.ndindex(values.shape):
            text = f"{values[i, j]:.2f}".replace("0.", ".")
            ax.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if values[i, j] > 0.6 else INK)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05)
    bar.set_label("NMI of two answers")
    bar.outline.set_visible(False)
    _entitle(ax, f"Agreement between the answers of {len(names)} methods")
    return ax


def dendrogram(estimator: Any, *, p: int = 30, ax: Any = None) -> Any:
    """Draw the top of a linkage method's tree: its last merges, whose heights decide where to cut.

    Parameters
    ----------
    estimator : a fitted linkage method, such as EAC or LWEA
    p : int
        Branches shown, each with its number of objects. The line is the cut of ``estimator.labels_``: each branch
        below it is a cluster.
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

    tree = _dendrogram_of(estimator)
    p = min(checks.check_integer(p, "p", minimum=2), tree.n_leaves)
    ax = _axes(ax, (min(max(7.2, 1.2 + 0.15 * p), WIDEST), 4.2))
    ax.set(ylabel="distance (1 - similarity)")
    if tree.n_leaves == 1:
        _entitle(ax, "One distinct label row: there is nothing to merge")
        return _plain(ax)
    branch = tree.cut(p)
    top = type(tree)(branch[tree.kept[-(p - 1) :]], branch[tree.absorbed[-(p - 1) :]], tree.similarities[-(p - 1) :])
    objects = np.bincount(branch, weights=estimator.reduction_.counts).astype(np.int64)
    Z = top.linkage_matrix()
    lifted = max(0.0, -Z[0, 2])  # SciPy draws no negative distances, as of similarities above 1
    Z[:, 2] += lifted
    cut = _cut_height(Z[:, 2], p, estimator.n_clusters_)
    colors = _branch_colors(Z, top.cut(estimator.n_clusters_) if estimator.n_clusters_ <= p else np.arange(p))
    room = 72 * ax.get_position().width * ax.figure.get_size_inches()[0] / p  # width of a branch in points
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

        shown = MaxNLocator(8).tick_values(low - lifted, high - lifted)
        ax.set_yticks(shown + lifted, [f"{distance:g}" for distance in shown])
    ax.set_ylim(max(0.0, low - 2 * margin), high + margin)
    if 1 < estimator.n_clusters_ <= p:
        ax.axhline(cut, color=MARK, linewidth=1, linestyle="--")
        ax.annotate(
            f"{estimator.n_clusters_} clusters",
            (1, cut),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            color=MARK,
            va="center",
        )
    ax.set(
        xlabel=f"{p:,} branches, too many to write how many objects each has" if crowded else "objects in the branch"
    )
    _entitle(ax, f"{type(estimator).__name__}: the last {p - 1:,} of {tree.n_leaves - 1:,} merges")
    return _plain(ax)


def lifetimes(estimator: Any, *, p: int = 30, ax: Any = None) -> Any:
    """Draw the lifetime of each number of clusters: the range of heights that gives it. Choose the longest.

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
    >>> [float(bar.get_height()) for bar in ge.plotting.lifetimes(est).patches]  # of 2 and of 3 clusters
    [0.5, 0.5]
    """
    _dendrogram_of(estimator)
    p = checks.check_integer(p, "p", minimum=2)
    lasting = estimator.lifetimes_[: p - 1]
    k = np.arange(2, len(lasting) + 2)
    ax = _axes(ax, (7.2, 3.6))
    ax.bar(k, lasting, color=SHADE, width=0.85)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlim(1.3, len(k) + 1.7)
    if estimator.n_clusters_ in k:  # a line, as the bar may be too short to see
        ax.axvline(estimator.n_clusters_, color=MARK, linewidth=1, linestyle="--", zorder=0)
    ax.set(xlabel="number of clusters", ylabel="lifetime (range of distances)")
    name = type(estimator).__name__
    _entitle(ax, f"{name}: the lifetime of each number of clusters, {estimator.n_clusters_:,} chosen")
    return _plain(ax)


def ca_tree(
    tree: Any, tau: float | None = None, gamma: float | None = None, *, min_objects: int | None = None, ax: Any = None
) -> Any:
    """Draw a CA-tree by the radii of its nodes, and a cut through it (Wang 2011, Fig. 2 b).

    The height of a node is its radius, the size of its marker its share of the objects. Nodes of the cut are red:
    filled if kept, hollow if left out.

    Parameters
    ----------
    tree : gpuens.reduction.ca_tree.Tree, Reduction or estimator
        The result of ``CATree().grow(labels)`` or ``CATree(…).reduce(labels)``, or an estimator fitted with
        ``reduction=CATree(…)``.
    tau : float in [0, 1], optional
        Where to cut, as a share of the clusterings; None is the cut of the reduction or estimator, and no cut for a
        tree.
    gamma : float in (0, 1], optional
        The share of the objects in the kept nodes; None is that of the reduction, and 1 for a tree.
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
    tree, made_at, made_with = _grown_tree(tree)
    if tau is None:
        tau = made_at
    if gamma is None:
        gamma = made_with
    from matplotlib.collections import LineCollection

    n_clusterings = len(tree.clusterings)
    taken, kept = np.zeros((2, len(tree)), dtype=bool)
    if tau is not None:
        tau = checks.check_between(tau, "tau", 0.0, 1.0)
        taken[tree.cut(tau)] = True
        kept[tree.kept(tau, gamma)] = True
    if min_objects is None:
        min_objects = (
            1 if len(tree) <= NODES_DRAWN else 1 + int(np.partition(tree.counts, -NODES_DRAWN - 1)[-NODES_DRAWN - 1])
        )
    else:
        min_objects = checks.check_integer(min_objects, "min_objects", minimum=1)
    n_objects = int(tree.counts[-1])
    drawn = np.flatnonzero(tree.counts >= min(min_objects, n_objects))  # with every node also its ancestors
    x = _abreast(tree, drawn)

    ax = _axes(ax, (7.2, 4.6))
    below = drawn[tree.parents[drawn] >= 0]
    above = tree.parents[below]
    elbows = np.stack(
        [
            np.stack([x[below], tree.radii[below]], axis=1),
            np.stack([x[below], tree.radii[above]], axis=1),
            np.stack([x[above], tree.radii[above]], axis=1),
        ],
        axis=1,
    )
    ax.add_collection(LineCollection(list(elbows), colors=INK, linewidths=0.6, alpha=0.6, zorder=1))
    area = 8 + 250 * tree.counts / n_objects
    for nodes, face, edge, label in (
        (drawn[~taken[drawn]], SHADE, "none", None),
        (drawn[(taken & ~kept)[drawn]], "white", MARK, "left out"),
        (drawn[kept[drawn]], MARK, "none", "taken" if kept.sum() == taken.sum() else "kept"),
    ):
        if len(nodes):
            ax.scatter(x[nodes], tree.radii[nodes], area[nodes], face, edgecolors=edge, label=label, zorder=2)
    if tau is not None:  # radii are integers: the line runs between accepted and refused ones
        height = int(tau * n_clusterings * (1 + 1e-12)) + 0.5
        ax.axhline(height, color=MARK, linewidth=1, linestyle="--", zorder=0)
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0)
    ax.set_xticks([])
    ax.set_ylim(-0.03 * n_clusterings - 0.2, 1.05 * n_clusterings + 0.2)
    ax.yaxis.get_major_locator().set_params(integer=True)
    which = "nodes" if len(drawn) == len(tree) else f"the {len(drawn):,} nodes of {min_objects:,} objects or more"
    ax.set(xlabel=f"{which}, in the order of their label rows", ylabel=f"radius, of {n_clusterings} clusterings")
    found = "" if tau is None else f": {taken.sum():,} nodes at τ = {tau:g}"
    found += "" if kept.sum() == taken.sum() else f", {kept.sum():,} kept"
    _entitle(ax, f"CA-tree of {n_objects:,} objects{found}")
    return _plain(ax)


def correspondence(estimator: Any, clustering: Any = None, *, ax: Any = None) -> Any:
    """Draw the correspondence of the clusters of a base clustering to those of the consensus.

    A single clustering has two panels: on the left its correspondence matrix S, the table of memberships, and on the
    right the share of each own cluster's objects with each label. They differ: S explains all clusterings together and
    prefers few large entries. A given Axes, and the picture of all clusterings, shows only S.

    Rows are own clusters, ordered by the consensus cluster that each corresponds to most: a clustering that agrees with
    the consensus is a staircase.

    Parameters
    ----------
    estimator : a fitted `gpuens.SCEC`
    clustering : int or str, optional
        The base clustering, by position or name; None draws all of them in one figure.
    ax : matplotlib Axes, optional
        Where to draw S of a single clustering.

    Returns
    -------
    matplotlib Axes, that of S, or an ndarray of M of them if all are drawn

    Raises
    ------
    TypeError
        For anything but a fitted SCEC.
    ValueError
        For an unknown clustering, and for one Axes for several clusterings.
    ImportError
        Without matplotlib.

    References
    ----------
    Long, Zhang & Yu, "Combining multiple clusterings by soft correspondence", ICDM 2005, §3.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.SCEC(n_clusters=2).fit([["a", "a", "b", "b", "c"], [1, 1, 0, 0, 0]])
    >>> ax = ge.plotting.correspondence(est, 0)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['a', 'c', 'b']
    >>> ax.images[0].get_array().round().tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    >>> [panel.get_title() for panel in ax.figure.axes[:2]]
    ['correspondence S', 'where the objects went']
    >>> len(ge.plotting.correspondence(est))
    2
    """
    if not hasattr(estimator, "correspondence_"):
        raise TypeError(
            f"estimator must have soft correspondences, as SCEC(…).fit(labels) has, not be {_kind(estimator)}."
        )
    matrices, ensemble = estimator.correspondence_, estimator.reduction_.ensemble
    categories, names = ensemble.categories, ensemble.names
    chosen = list(range(len(names))) if clustering is None else [_position(clustering, names)]
    if ax is not None and len(chosen) > 1:
        raise ValueError(f"ax takes one picture, but there are {len(chosen)}; choose a clustering, or leave ax out.")
    orders = [np.lexsort([-matrices[h].max(axis=1), matrices[h].argmax(axis=1)]) for h in chosen]
    if len(chosen) > 1:
        n_cols = math.ceil(math.sqrt(len(chosen)))
        panels = _panels(math.ceil(len(chosen) / n_cols), n_cols, len(chosen))
        for h, order, panel in zip(chosen, orders, panels, strict=True):
            _draw_shares(panel, matrices[h][order], categories[h][order], small=True)
            panel.set_title(f"clustering {_short(names[h], 14)}", fontsize=9, parse_math=False)
        return np.array(panels, dtype=object)
    (h,), (order,) = chosen, orders
    title = f"Correspondence of clustering {_short(names[h], LONGEST_TITLE)}"
    if ax is not None:
        panels = [_axes(ax, (0, 0))]
        _entitle(ax, title)
    else:
        n_own, k = matrices[h].shape
        column = 0.42 if n_own * k <= CELLS_WRITTEN else 0.2
        size = min(2.2 + 2 * max(1.6, column * k), WIDEST), max(3.0, 1.8 + 0.22 * min(n_own, 60))
        figure = _axes(None, size).figure
        figure.clear()
        panels = figure.subplots(1, 2, sharey=True).tolist()
        _entitle(figure, title)
        _entitle(panels[0], "correspondence S")
        _entitle(panels[1], "where the objects went")
    for panel, matrix in zip(panels, (matrices[h], estimator.shares_[h]), strict=False):
        image = _draw_shares(panel, matrix[order], categories[h][order])
        panel.set_xlabel("cluster of the consensus")
    panels[0].set_ylabel("own cluster")
    bar = panels[0].figure.colorbar(image, ax=panels, shrink=0.9, pad=0.03)
    bar.set_label("S: rows sum to 1" if ax is not None else "rows sum to 1")
    bar.outline.set_visible(False)
    return panels[0] if clustering is not None or ax is not None else np.array(panels[:1], dtype=object)


def _draw_shares(ax: Any, matrix: np.ndarray, own: np.ndarray, *, small: bool = False) -> Any:
    """Draw a matrix of numbers from 0 to 1 with names at the axes, and the numbers if they fit."""
    most, longest = (12, 8) if small else (60, LONGEST_NAME)
    image = ax.imshow(matrix, cmap=SHARES, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    for axis, texts in ((ax.yaxis, own), (ax.xaxis, np.arange(matrix.shape[1]))):
        step = -(-len(texts) // most)
        _write_names(axis, np.arange(0, len(texts), step), texts[::step], longest)
        if small or len(texts) > 20:
            axis.set_tick_params(labelsize=7)
    if not small and matrix.size <= CELLS_WRITTEN:
        for (c, d), value in np.ndenumerate(matrix):
            if value >= 0.005:
                color = "white" if value > 0.55 else INK
                ax.text(d, c, f"{value:.2f}", ha="center", va="center", fontsize=7, color=color)
    return image


# --- what is drawn ----------------------------------------------------------------------------------------------------


def _dendrogram_of(estimator: Any) -> Any:
    """Return the dendrogram of a fitted linkage method, or refuse other things."""
    if not hasattr(estimator, "dendrogram_"):
        raise TypeError(
            f"estimator must be a fitted linkage method, such as LWEA(…).fit(labels), not {_kind(estimator)}."
        )
    return estimator.dendrogram_


def _grown_tree(tree: Any) -> tuple[Any, float | None, float]:
    """Return the CA-tree of a tree, reduction or fitted estimator and the τ and γ of its cut; refuse other things."""
    if hasattr(tree, "radii"):
        return tree, None, 1.0
    cut = getattr(getattr(tree, "reduction_", tree), "cut_tree", None)
    if cut is None:
        raise TypeError(
            "tree must be what CATree().grow(labels) returns, a reduction by CATree(…) or an estimator fitted with "
            f"reduction=CATree(…) to labels in one piece, not {_kind(tree)}."
        )
    return cut


def _position(clustering: Any, names: list) -> int:
    """Return the position of a base clustering given by name or position, or refuse it."""
    for place, name in enumerate(names):
        if type(name) is type(clustering) and name == clustering:
            return place
    if isinstance(clustering, str):
        some = ", ".join(map(str, names[:5])) + " …" * (len(names) > 5)
        raise ValueError(f"clustering {checks.shown(clustering)} is none of {some}.")
    return checks.check_integer(clustering, "clustering", minimum=0, maximum=len(names) - 1)


def _kind(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__


# --- order ------------------------------------------------------------------------------------------------------------


def _vector(labels: Any) -> np.ndarray:
    labels = to_host(labels)
    checks.check_label_vector(labels.shape, type(labels).__name__, "labels")
    return labels


def _evenly(clusters: np.ndarray, size: int) -> np.ndarray:
    """Return at most ``size`` objects, the same share of every cluster."""
    by_cluster = np.argsort(clusters, kind="stable")
    n = min(size, len(clusters))
    return by_cluster[(2 * np.arange(n) + 1) * len(clusters) // (2 * n)]


def _seriated(similarity: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return an order that keeps clusters together and similar objects close."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(clusters) < 2:
        return np.arange(len(clusters))
    # farther than any two objects of one cluster, so that the tree completes clusters first
    distances = (1.0 - similarity) + 2.0 * (clusters[:, None] != clusters)
    return leaves_list(linkage(squareform(distances, checks=False), "average"))


def _abreast(tree: Any, drawn: np.ndarray) -> np.ndarray:
    """Return the x of nodes of a CA-tree: leaves of the drawing side by side, others amid their children."""
    x, reached = np.zeros(len(tree)), np.zeros((2, len(tree)))  # of the children: the first, the last
    reached[0] = np.inf
    reached[1] = -np.inf
    tips = np.setdiff1d(drawn, tree.parents[drawn])
    x[tips[np.argsort(tree.first[tips])]] = np.arange(len(tips))
    for node in drawn.tolist():  # children come before their parents
        if np.isfinite(reached[0, node]):
            x[node] = reached[:, node].mean()
        parent = tree.parents[node]
        if parent >= 0:
            reached[0, parent] = min(reached[0, parent], x[node])
            reached[1, parent] = max(reached[1, parent], x[node])
    return x


def _branch_colors(Z: np.ndarray, labels: np.ndarray) -> list[str]:
    """Return the colour of each node of a linkage matrix: one per cluster, different from its neighbours'.

    ``labels`` (p,) are the clusters of the leaves. Nodes above clusters are ink.
    """
    from scipy.cluster.hierarchy import leaves_list

    _, first = np.unique(labels[leaves_list(Z)], return_index=True)
    turn = np.argsort(np.argsort(first))  # of each cluster from the left
    of_node = labels.tolist()
    for a, b in Z[:, :2].astype(np.int64).tolist():
        of_node.append(of_node[a] if of_node[a] == of_node[b] else -1)
    return [INK if cluster < 0 else CLUSTERS[turn[cluster] % len(CLUSTERS)] for cluster in of_node]


def _cut_height(heights: np.ndarray, p: int, k: int) -> float:
    """Return the height of the cut into k clusters, between two of the last p - 1 merges."""
    made = max(0, p - k)
    below = heights[made - 1] if made else heights[0]
    above = heights[made] if made < len(heights) else heights[-1]
    return float((below + above) / 2)


# --- drawing ----------------------------------------------------------------------------------------------------------


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is None:
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise no_matplotlib() from error
        return Figure(figsize=size, dpi=150, layout="constrained").subplots()
    if not (hasattr(ax, "imshow") and hasattr(ax, "figure")):
        raise TypeError(
            f"ax must be one of matplotlib's Axes, such as Figure().subplots() returns, not {checks.shown(ax)}."
        )
    return ax


def no_matplotlib() -> ImportError:
    """Return the refusal of pictures without matplotlib."""
    return ImportError("pictures need matplotlib, which is not installed: pip install 'gpuens[plot]'.")


def _entitle(place: Any, text: str) -> None:
    """Write a title over an Axes or a Figure, wrapped, with "$" taken literally."""
    write = place.set_title if hasattr(place, "set_title") else place.suptitle
    write(text, wrap=True, parse_math=False)


def _short(name: Any, most: int) -> str:
    """Return a name on one line, its middle cut if it is long."""
    text = " ".join(str(name).split())
    return text if len(text) <= most else f"{text[: most * 2 // 3]}…{text[len(text) - most // 3 + 1 :]}"


def _write_names(axis: Any, places: np.ndarray, names: Any, longest: int = LONGEST_NAME) -> None:
    """Write names at an axis, long ones rotated."""
    texts = [_short(name, longest) for name in names]
    axis.set_ticks(places, texts, parse_math=False)
    axis.set_tick_params(length=0)
    if axis.axis_name == "x" and max(map(len, texts), default=0) * len(texts) > LETTERS_ABREAST:
        axis.set_tick_params(rotation=90)


def _panels(n_rows: int, n_cols: int, n_panels: int) -> list:
    """Return the Axes of a new Figure."""
    figure = _axes(None, (2.4 * n_cols, 2.2 * n_rows)).figure
    figure.clear()
    panels = figure.subplots(n_rows, n_cols, squeeze=False).ravel().tolist()
    for empty in panels[n_panels:]:
        empty.remove()
    figure.supxlabel("cluster of the consensus")
    figure.supylabel("own cluster")
    return panels[:n_panels]


def _plain(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _frames(ax: Any, starts: np.ndarray, widths: np.ndarray) -> None:
    """Draw a square around each cluster on the diagonal."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    squares = [Rectangle((at - 0.5, at - 0.5), n, n) for at, n in zip(starts, widths, strict=True)]
    ax.add_collection(PatchCollection(squares, facecolor="none", edgecolor=MARK, linewidth=0.9))
