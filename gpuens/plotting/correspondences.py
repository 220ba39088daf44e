"""Pictures of soft correspondences between the clusters of base clusterings and those of the consensus."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import (
    CELLS_WRITTEN,
    LONGEST_NAME,
    LONGEST_TITLE,
    SHARES,
    WIDEST,
    axes,
    color_bar,
    entitle,
    label_axes,
    new_figure,
    shorten,
    type_name,
    write_names,
    write_shares,
)
from gpuens.runtime import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def correspondence(estimator: Any, clustering: Any = None, *, ax: "Axes | None" = None) -> "Axes | np.ndarray":
    """Draw the correspondence of the clusters of a base clustering to those of the consensus.

    A single clustering has two panels. The left one is its correspondence matrix S, which gives the memberships. The
    right one is the share of each own cluster's objects with each consensus label. The two differ, because S explains
    all clusterings together and prefers few large entries. A given Axes, and the picture of all clusterings, shows only
    S.

    Each row is an own cluster. Rows are ordered by the consensus cluster to which they correspond most, so a clustering
    that agrees with the consensus looks like a staircase.

    Parameters
    ----------
    estimator : a fitted `gpuens.SCEC`
    clustering : int or str, optional
        The base clustering, by position or name; None draws all of them in one figure.
    ax : matplotlib Axes, optional
        The Axes for S of a single clustering.

    Returns
    -------
    matplotlib Axes of S, or an ndarray of M Axes if all clusterings are drawn

    Raises
    ------
    TypeError
        For anything but a fitted SCEC.
    ValueError
        For an unknown clustering, and for a single Axes with several clusterings.
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
    ['c', 'b', 'a']
    >>> ax.images[0].get_array().round().tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    >>> [panel.get_title() for panel in ax.figure.axes[:2]]
    ['correspondence S', 'where the objects went']
    >>> len(ge.plotting.correspondence(est))
    2
    """
    if not hasattr(estimator, "correspondence_"):
        raise TypeError(
            f"estimator must have soft correspondences, like SCEC(…).fit(labels), but is {type_name(estimator)}."
        )
    matrices, ensemble = estimator.correspondence_, estimator.reduction_.ensemble
    categories, names = ensemble.categories, ensemble.names
    clusterings = list(range(len(names))) if clustering is None else [_position(clustering, names)]
    if ax is not None and len(clusterings) > 1:
        n = len(clusterings)
        raise ValueError(f"ax takes one picture, but there are {n}; choose a clustering, or leave ax out.")
    orders = [np.lexsort([-matrices[h].max(axis=1), matrices[h].argmax(axis=1)]) for h in clusterings]
    if len(clusterings) > 1:
        n_cols = math.ceil(math.sqrt(len(clusterings)))
        panels = _panels(math.ceil(len(clusterings) / n_cols), n_cols, len(clusterings))
        for h, order, panel in zip(clusterings, orders, panels, strict=True):
            _draw_shares(panel, matrices[h][order], categories[h][order], small=True)
            panel.set_title(f"clustering {shorten(names[h], 14)}", fontsize=9, parse_math=False)
        return np.array(panels, dtype=object)
    (h,), (order,) = clusterings, orders
    title = f"Correspondence of clustering {shorten(names[h], LONGEST_TITLE)}"
    if ax is not None:
        panels = [axes(ax, (0, 0))]
        entitle(ax, title)
    else:
        n_own, k = matrices[h].shape
        column = 0.42 if n_own * k <= CELLS_WRITTEN else 0.2
        size = min(2.2 + 2 * max(1.6, column * k), WIDEST), max(3.0, 1.8 + 0.22 * min(n_own, 60))
        figure = new_figure(size)
        panels = figure.subplots(1, 2, sharey=True).tolist()
        entitle(figure, title)
        panels[0].set_title("correspondence S")
        panels[1].set_title("where the objects went")
    for panel, matrix in zip(panels, (matrices[h], estimator.shares_[h]), strict=False):
        image = _draw_shares(panel, matrix[order], categories[h][order])
        label_axes(panel, "cluster of the consensus", "own cluster" * (panel is panels[0]))
    color_bar(image, panels, "S: rows sum to 1" if ax is not None else "rows sum to 1")
    return panels[0] if clustering is not None or ax is not None else np.array(panels[:1], dtype=object)


def _draw_shares(ax: Any, matrix: np.ndarray, names: np.ndarray, *, small: bool = False) -> Any:
    """Draw a matrix of shares from 0 to 1 with names at the axes; write the numbers into the cells if they fit."""
    max_names, longest = (12, 8) if small else (60, LONGEST_NAME)
    image = ax.imshow(matrix, cmap=SHARES, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    for axis, texts in ((ax.yaxis, names), (ax.xaxis, np.arange(matrix.shape[1]))):
        step = -(-len(texts) // max_names)
        write_names(axis, np.arange(0, len(texts), step), texts[::step], longest)
        if small or len(texts) > 20:
            axis.set_tick_params(labelsize=7)
    if not small:
        write_shares(ax, np.where(matrix >= 0.005, matrix, np.nan))
    return image


def _panels(n_rows: int, n_cols: int, n_panels: int) -> list[Any]:
    """Make a new Figure with several panels, and return their Axes."""
    figure = new_figure((2.4 * n_cols, 2.2 * n_rows))
    panels: list[Any] = figure.subplots(n_rows, n_cols, squeeze=False).ravel().tolist()
    for empty in panels[n_panels:]:
        empty.remove()
    figure.supxlabel("cluster of the consensus")
    figure.supylabel("own cluster")
    return panels[:n_panels]


def _position(clustering: Any, names: list[Any]) -> int:
    """Return the position of the base clustering with a given name or position; raise an error if there is none."""
    for place, name in enumerate(names):
        if type(name) is type(clustering) and name == clustering:
            return place
    if isinstance(clustering, str):
        examples = ", ".join(map(str, names[:5])) + " …" * (len(names) > 5)
        raise ValueError(f"clustering {checks.shown(clustering)} is unknown; take one of {examples}.")
    return checks.check_integer(clustering, "clustering", minimum=0, maximum=len(names) - 1)
