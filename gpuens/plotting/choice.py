"""Pictures of a result of `choose_k`: the consensus matrix for each number of clusters, and an overview."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import axes, color_bar, count_drawn, entitle, label_axes, new_figure
from gpuens.plotting.evidence import cdf
from gpuens.plotting.labels import draw_in_blocks
from gpuens.plotting.levels import choice_of, criterion, tracking
from gpuens.runtime import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = 2.6  # side, in inches, of each matrix in a figure of several matrices
SHARE = "C: share of the clusterings"


def consensus_matrix(choice: Any, k: int | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the consensus matrix for a number of clusters, ordered by cluster, with a frame around each cluster.

    Parameters
    ----------
    choice : what `gpuens.choose_k` returns
        It keeps the entries of at most 500 random objects, so that no N × N matrix is made.
    k : int, optional
        The number of clusters; the suggested one by default.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything but a choice, and for a number that was not compared.

    References
    ----------
    Monti et al., "Consensus clustering", Machine Learning 52 (2003) 91-118.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.choose_k([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]], ks=[2, 3])
    >>> ge.plotting.consensus_matrix(found, 2).get_title()
    'Consensus of 6 objects in 2 clusters'
    """
    k = _resolve_k(choice, k)
    ax = axes(ax, (6.4, 5.4), square=True)
    image = _draw_named_matrix(ax, choice, k)
    count = count_drawn(len(choice.consensus[k].objects), len(choice.labels[k]), "objects")
    label_axes(ax, "cluster of the consensus")
    entitle(ax, f"Consensus of {count} in {k} clusters")
    color_bar(image, ax, SHARE)
    return ax


def consensus_matrices(choice: Any) -> np.ndarray:
    """Draw the consensus matrices for all numbers of clusters next to each other in a new figure.

    Parameters
    ----------
    choice : what `gpuens.choose_k` returns

    Returns
    -------
    ndarray of matplotlib Axes, one for each number

    Raises
    ------
    TypeError
        For anything but a choice.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.choose_k([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]], ks=[2, 3])
    >>> [ax.get_title() for ax in ge.plotting.consensus_matrices(found)]
    ['2 clusters', '3 clusters, suggested']
    """
    numbers = sorted(choice_of(choice).consensus)
    n_cols = min(4, math.ceil(math.sqrt(len(numbers))))
    n_rows = math.ceil(len(numbers) / n_cols)
    figure = new_figure((max(4.0, PANEL * n_cols + 0.8), PANEL * n_rows + 0.3), square=True)
    panels = figure.subplots(n_rows, n_cols, squeeze=False).ravel()
    for empty in panels[len(numbers) :]:
        empty.remove()
    for k, panel in zip(numbers, panels, strict=False):
        image = draw_matrix(choice, k, ax=panel)
        panel.set_title(f"{k} clusters" + ", suggested" * (k == choice.suggested), fontsize=11)
    color_bar(image, panels[: len(numbers)].tolist(), SHARE)
    return panels[: len(numbers)]


def overview(choice: Any, k: int | None = None) -> np.ndarray:
    """Draw the panels of `Choice.plot`: consensus matrix, CDF, delta area or score, and tracking plot."""
    k = _resolve_k(choice, k)
    figure = new_figure((12.6, 9.4))
    panels: np.ndarray = figure.subplots(2, 2)
    consensus_matrix(choice, k, ax=panels[0, 0])
    cdf(choice, ax=panels[0, 1])
    name = "delta_area" if "delta_area" in choice.rows[0] else "score"
    criterion(choice, name, ax=panels[1, 0])
    tracking(choice.labels, reference=k, ax=panels[1, 1])
    return panels


def _resolve_k(choice: Any, k: int | None) -> int:
    """Return the number of clusters to draw; raise an error if it was not compared, or ``choice`` is no `Choice`."""
    choice_of(choice)
    if k is None:
        return int(choice.suggested)
    if k not in choice.consensus:
        raise ValueError(f"k={checks.shown(k)} was not compared; take one of {checks.listed(choice.consensus)}.")
    return int(k)


def draw_matrix(choice: Any, k: int, *, ax: "Axes") -> Any:
    """Draw the consensus matrix of k clusters without any names and numbers; return the image."""
    image = _draw_named_matrix(ax, choice, k)
    ax.set(xticks=[], yticks=[])
    return image


def _draw_named_matrix(ax: "Axes", choice: Any, k: int) -> Any:
    consensus = choice.consensus[k]
    names, clusters = np.unique(choice.labels[k][consensus.objects], return_inverse=True)
    return draw_in_blocks(ax, consensus.matrix(), names, clusters)
