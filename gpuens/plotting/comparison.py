"""Pictures of a comparison of methods: their scores, with the deviations over runs, side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import INK, MARK, SHADE, SMALL, entitle, new_figure, type_name, write_names
from gpuens.runtime import checks
from gpuens.runtime.defaults import LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW_INCHES = 0.19  # height of the row of a method
PANEL_INCHES = 2.1  # width of the panel of a score
NAMES_INCHES = 0.9  # width of the names of the methods
AXIS_INCHES = 1.1  # height of an axis with its label and its legend
TITLE_INCHES = 0.3
DOT = 5.0  # diameter of a dot in points
SCORES = {  # name of each score above its panel
    "anmi": "agreement with the\nbase clusterings (ANMI)",
    "ecs": "agreement with the\nbase clusterings (ECS)",
    "item_consensus": "mean item consensus\nof the objects",
    "silhouette": "mean silhouette\nof the objects",
    "ari": "agreement with\nthe truth (ARI)",
    "nmi": "agreement with\nthe truth (NMI)",
    "nmi_max": "agreement with\nthe truth (NMI, max)",
    "accuracy": "accuracy by\nthe truth",
    "seconds": "seconds\n ",
    "memory": "additional memory\nin bytes",
}
OF_TRUTH = ("ari", "nmi", "nmi_max", "accuracy")
COSTS = ("seconds", "memory")  # panels with a logarithmic axis
DEFAULT_SCORES = ("anmi", "ari", "item_consensus", "seconds")


def comparison(result: Any, scores: Sequence[str] | None = None) -> np.ndarray:
    """Draw the scores of compared methods in a new figure: a row for each method, the best first, a panel a score.

    Dots are means over the runs, with lines of one standard deviation to both sides; a method that nothing varies has
    no line. A ring is a method that the test tells from the best. The axes are above the rows. Each panel has the scale
    that fits its values, and costs have a logarithmic one. Dots of the truth are red; a line in another panel is the
    truth's own score.

    Parameters
    ----------
    result : what `gpuens.compare` returns
    scores : sequence of str, optional
        Columns of ``result.table``; by default "anmi", with a truth "ari", "item_consensus" and "seconds".

    Returns
    -------
    ndarray of matplotlib Axes, one for each score

    Raises
    ------
    TypeError, ValueError
        For anything but a comparison, and for a score that it lacks.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> panels = ge.plotting.comparison(ge.compare(labels, 2, methods=["eac", "lwgp"]))
    >>> [label.get_text() for label in panels[0].get_yticklabels()], len(panels)
    (['eac', 'lwgp'], 3)
    """
    if not (hasattr(result, "rows") and hasattr(result, "left_out")):
        raise TypeError(f"result must be what ge.compare(labels, k) returns, not {type_name(result)}.")
    available = [score for score in SCORES if score in result.rows[0]]
    if scores is None:
        scores = [score for score in DEFAULT_SCORES if score in available]
    for score in scores:
        checks.check_choice(score, "scores", available)
    width, height = size_of_panels(len(result.rows), len(scores))
    figure = new_figure((width, height + TITLE_INCHES))
    panels = draw_panels(result, scores, ax=figure.subplots())
    runs = f", over {result.varied}" if result.varied else ""
    entitle(figure, f"{checks.counted(len(result.rows), 'method')} compared{runs}")
    return panels


def size_of_panels(n_methods: int, n_scores: int) -> tuple[float, float]:
    """Return the width and height of panels in inches."""
    return NAMES_INCHES + PANEL_INCHES * n_scores, AXIS_INCHES + ROW_INCHES * n_methods


def draw_panels(result: Any, scores: Sequence[str], *, ax: "Axes", labelled: bool = True) -> np.ndarray:
    """Draw a panel for each score in place of ``ax``, with the score's name if ``labelled``; return the panels."""
    figure, place = ax.figure, ax.get_subplotspec()
    assert place is not None
    grid = place.subgridspec(1, len(scores))
    ax.remove()
    panels = np.empty(len(scores), dtype=object)
    for i, score in enumerate(scores):
        panels[i] = figure.add_subplot(grid[i], sharey=panels[0])
        _draw_score(panels[i], result, score, labelled)
        panels[i].tick_params(axis="y", length=0, labelleft=i == 0)
    names = [row["method"] for row in result.rows]
    write_names(panels[0].yaxis, np.arange(len(names)), names)
    panels[0].tick_params(axis="y", labelsize=SMALL)
    panels[0].set_ylim(len(names) - 0.4 + (result.truth is not None), -0.6)
    panels[0].get_yticklabels()[0].set_fontweight("bold")
    return panels


def _draw_score(ax: "Axes", result: Any, score: str, labelled: bool) -> None:
    values = np.array([row[score] for row in result.rows], dtype=np.float64)  # NaN where a score is not defined
    deviations = np.array([row.get(f"{score}_std") for row in result.rows], dtype=np.float64)
    places = np.arange(len(values))
    color = MARK if score in OF_TRUTH else INK
    ax.hlines(places, values - deviations, values + deviations, color=color, linewidth=1.2)
    worse = np.array([_is_worse(row) for row in result.rows])
    rings = worse & (score == "anmi")
    ax.scatter(values, places, DOT**2, np.where(rings, "white", color), edgecolors=color, zorder=3)
    if result.truth is not None and result.truth.get(score) is not None:
        own_score = result.truth[score]
        ax.plot([own_score] * 2, [-0.6, len(values) - 0.5], color=MARK, linewidth=1, linestyle="--", zorder=0)
        ax.text(own_score, len(values), "truth", ha="center", va="center", fontsize=SMALL)
    if score in COSTS:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    else:
        ax.locator_params("x", nbins=4)
    ax.grid(axis="y", color=SHADE, alpha=0.25, linewidth=0.8)
    ax.set_axisbelow(True)
    lines = [SCORES[score]] if labelled else []
    if worse.any():  # labels of all panels have as many lines, so that rows of pictures side by side are aligned
        legend = f"○ lower than {result.rows[0]['method']} (p < {LEVEL:g})\n● not shown to be lower, ± 1 SD"
        lines.append(legend if rings.any() else " \n ")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("\n".join(lines))
    ax.spines[["left", "right", "bottom"]].set_visible(False)


def _is_worse(row: dict[str, Any]) -> bool:
    return row.get("p") is not None and row["p"] < LEVEL
