"""Settings and functions that all pictures share: colours, Axes, figures, names at axes and titles."""

import math
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.runtime import checks, installing
from gpuens.runtime.device import to_host

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# colours of all pictures; colour-blind readers can distinguish them (tests/plotting/test_colors.py checks this)
INK, SHADE, MARK = "#1f3b57", "#5b8db8", "#d1495b"
BLACK, WHITE = "#020202", "#fefefe"  # texts on colours; pages give plain black and white the colours of their theme
SHARES = "Blues"  # colour map for shares from 0 to 1
# colours of clusters 0 to 19, searched for the largest differences in colour blindness and grey print
CLUSTERS = (
    *("#1950aa", "#dda63c", "#2d8e4b", "#f379a3", "#8f180d", "#71d1fd", "#8c65a9", "#ded078", "#984964", "#6f8cf2"),
    *("#98e2a7", "#c74b15", "#46387b", "#8da873", "#75262c", "#69958c", "#80457c", "#abad56", "#af4f2b", "#a88dd8"),
)
MISSING_GREY = 0.85  # grey level of objects without a cluster, from 0 (black) to 1 (white)
STRONGEST_SHADE = 0.55  # share of white or black in the colours of clusters 20 to 59; it falls with higher numbers
N_SHADES = 10  # number of pale, and of dark, shades of each colour
NUMBER = re.compile(r"-?\d{1,2}(\.0)?")  # name of a cluster that is a number; larger numbers may be codes, such as 311

QUANTILES = 0.05, 0.25, 0.5, 0.75, 0.95  # quantiles that show how numbers of objects are distributed
LONGEST_NAME = 20  # maximum number of letters of a name at an axis
LONGEST_TITLE = 60  # maximum number of letters of a name in a title
LETTERS_AN_INCH = 11  # number of letters that fit into an inch of an x axis with horizontal names
SMALLEST_TYPE = 5.0  # size, in points, of the smallest legible text
WIDEST = 30.0  # maximum width of a picture in inches
SMALL = 8.3  # size, in points, of small texts; it equals 11 pixels on a screen
LARGE, MEDIUM = 12.0, 10.0  # sizes, in points, of titles, and of other texts and titles in narrow pictures
NARROW = 4.0  # width, in inches, below which a title has the medium size
TITLE_SHARE = 1.25  # largest width of a title, and of a legend below it, as a share of that of its Axes
TITLE_SHIFT = 0.8  # width, in inches, that a title loses because names at the y axis shift its Axes to the right
LETTER = 0.0078  # estimated width, in inches, of a letter of one point
AXES_SHARE = 0.775  # share of matplotlib's default Axes in the width and height of their panel
MARGIN_INCHES = 1.0  # width, and height, for the names and labels at the axes
LEAST_INCHES = 0.5  # least estimate of the length of an axis
POINTS_AN_INCH = 72
LINE_HEIGHT = 1.25  # height of a line of text as a multiple of its size
MARK_INCHES = 0.34  # width of a legend's mark with its gaps
LONGEST_ENTRY = 30  # maximum number of letters of an entry of a legend
LEGEND_ROWS = 20  # maximum number of rows of a legend; more entries have further columns
ROWS_ABOVE = 6  # maximum number of rows of a legend above its Axes
LEGEND_SHARE = 0.3  # largest width of a legend beside its Axes, as a share of their width; a wider one is above them
LINE_POINTS = 13.0  # height of a row of a legend
LAYOUT_SHARE = 0.8  # estimated share of the length of an axis that titles, legends and colour bars leave
CELLS_WRITTEN = 240  # maximum number of matrix cells into which numbers are written
NUMBER_WIDTH = 2.3  # width of a number such as .65 and its gaps as a multiple of the size of its letters
LUMINANCE = 0.2126, 0.7152, 0.0722  # shares of linear red, green and blue in luminance

_for_files: ContextVar[bool] = ContextVar("for_files", default=False)


def axes(ax: "Axes | None", size: tuple[float, float], *, square: bool = False) -> "Axes":
    """Return the given Axes; if ``ax`` is None, return pyplot's current Axes, or those of a new figure.

    A new figure of ``size`` inches is made if pyplot has no figure, and inside `for_files`. If ``square`` is true, its
    layout is for a matrix with square cells.
    """
    if ax is None:
        pyplot = None if _for_files.get() else _pyplot()
        if pyplot is not None and pyplot.get_fignums():
            return pyplot.gca()
        return new_figure(size, square=square).subplots()
    if not (hasattr(ax, "imshow") and hasattr(ax, "figure")):
        raise TypeError(
            f"ax must be one of matplotlib's Axes, such as Figure().subplots() returns, not {checks.shown(ax)}."
        )
    return ax


def new_figure(size: tuple[float, float], *, square: bool = False) -> "Figure":
    """Make a new Figure of the given size in inches; outside `for_files`, pyplot and notebooks show the figure."""
    settings: dict[str, Any] = {"figsize": size, "dpi": 150, "layout": "compressed" if square else "constrained"}
    if not _for_files.get():
        return _pyplot().figure(**settings)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise no_matplotlib() from error
    return Figure(**settings)


@contextmanager
def for_files() -> Iterator[None]:
    """Make figures in this block without pyplot, so that nothing is shown and no figure stays open."""
    token = _for_files.set(True)
    try:
        yield
    finally:
        _for_files.reset(token)


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise no_matplotlib() from error
    return pyplot


def no_matplotlib() -> ImportError:
    """Return the error for a missing matplotlib."""
    return ImportError(f"pictures need matplotlib, which is not installed: {installing.command('plot')}.")


def color_clusters(names: Any) -> np.ndarray:
    """Return the colours (n + 1, 3) of clusters by their names (n,); the last, for code -1, is the grey of no cluster.

    A number up to 99 has the same colour in every picture. Other names have the colours after the largest number, in
    sorted order. Numbers below 0 are grey. From 20, the colours are shades of the first twenty.
    """
    from matplotlib.colors import to_rgb

    numbers = np.append(number_clusters(names), -1)
    turns, place = np.divmod(numbers, len(CLUSTERS))
    tint = np.where(turns % 2, 1.0, 0.0)[:, None]
    share = np.where(turns > 0, STRONGEST_SHADE * (1 - (turns - 1) // 2 % N_SHADES / N_SHADES), 0.0)[:, None]
    colors: np.ndarray = np.array([to_rgb(color) for color in CLUSTERS])[place] * (1 - share) + tint * share
    colors[numbers < 0] = MISSING_GREY
    return colors


def number_clusters(names: Any) -> np.ndarray:
    """Return the numbers (n,) of clusters by their names: themselves if they are numbers, or else the next ones."""
    texts, position = np.unique(np.asarray(to_host(names)).astype(str), return_inverse=True)
    is_number = np.array([NUMBER.fullmatch(text) is not None for text in texts], dtype=bool)
    numbers = np.zeros(len(texts), dtype=np.int64)
    numbers[is_number] = texts[is_number].astype(float)
    numbers[~is_number] = numbers.max(initial=-1, where=is_number) + 1 + np.arange((~is_number).sum())
    return numbers[position.ravel()]


def entitle(place: Any, text: str) -> None:
    """Write a title over an Axes or a Figure, with "$" as an ordinary letter; wrap a title that is too wide."""
    if hasattr(place, "set_title"):
        write, inches = place.set_title, TITLE_SHARE * axis_inches(place.xaxis) - TITLE_SHIFT
    else:
        write, inches = place.suptitle, 0.9 * place.get_size_inches()[0]
    size = LARGE if inches >= NARROW else MEDIUM
    write(textwrap.fill(text, max(12, int(inches / (LETTER * size)))), fontsize=size, parse_math=False)


def axis_inches(axis: Any) -> float:
    """Return the estimated length of an axis in inches, without the margin for labels."""
    ax = axis.axes
    inches = (ax.get_position(original=True).size * ax.figure.get_size_inches())[0 if axis.axis_name == "x" else 1]
    return max(LEAST_INCHES, min(inches, inches / AXES_SHARE - MARGIN_INCHES))


def label_axes(ax: "Axes", x: str = "", y: str = "") -> None:
    """Write the labels of the axes; wrap a label that is longer than its axis."""
    ax.set(xlabel=_wrap_label(x, ax.xaxis), ylabel=_wrap_label(y, ax.yaxis))


def _wrap_label(text: str, axis: Any) -> str:
    share = LAYOUT_SHARE if axis.axis_name == "y" else 1.0  # titles and legends shorten y axes
    return textwrap.fill(text, max(12, int(share * axis_inches(axis) / (LETTER * MEDIUM))))


def write_legend(ax: "Axes", marks: Any = None, texts: Any = None, longest: int = LONGEST_ENTRY) -> None:
    """Write a legend beside the Axes, or, if it would take much of their width, between them and their title."""
    if marks is None:
        marks, texts = ax.get_legend_handles_labels()
    texts = [shorten(text, longest) for text in texts]
    width, entry = axis_inches(ax.xaxis), MARK_INCHES + LETTER * SMALL * max(map(len, texts))
    n_cols = math.ceil(len(texts) * LINE_POINTS / POINTS_AN_INCH / axis_inches(ax.yaxis))  # beside the Axes
    rows_above = math.ceil(len(texts) / max(1, int(TITLE_SHARE * width / entry)))
    above = n_cols * entry > LEGEND_SHARE * width and rows_above <= ROWS_ABOVE
    if above:
        ax.set_title(ax.get_title(), fontsize=ax.title.get_fontsize(), pad=8 + LINE_POINTS * rows_above)
    legend = ax.legend(
        marks, texts, loc="lower center" if above else "upper left", bbox_to_anchor=(0.5, 1) if above else (1, 1),
        ncols=math.ceil(len(texts) / (rows_above if above else LEGEND_ROWS)), frameon=False, fontsize=SMALL,
        borderaxespad=0.2, labelspacing=0.25, handletextpad=0.5, handlelength=1.4, columnspacing=1.0,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def shorten(name: Any, length: int) -> str:
    """Return a name as one line of text; if the name is too long, its middle is omitted."""
    text = " ".join(str(name).split())
    return text if len(text) <= length else f"{text[: length * 2 // 3]}…{text[len(text) - length // 3 + 1 :]}"


def count_drawn(n_drawn: int, n: int, noun: str) -> str:
    """Return a text that says how many of n things are drawn, such as "20 of 400 objects" or "400 objects"."""
    return f"{n:,} {noun}" if n_drawn == n else f"{n_drawn:,} of {n:,} {noun}"


def write_names(axis: Any, places: np.ndarray, names: Any, longest: int = LONGEST_NAME) -> None:
    """Write names at an axis; rotate long names at an x axis, and write many names smaller or in part."""
    ax, texts = axis.axes, [shorten(name, longest) for name in names]
    sides = [axis_inches(side) for side in ((ax.xaxis, ax.yaxis) if ax.get_aspect() == 1 else (axis,))]
    inches = LAYOUT_SHARE * min(sides)
    is_turned = axis.axis_name == "x" and (max(map(len, texts), default=0) + 1) * len(texts) > LETTERS_AN_INCH * inches
    size, step = MEDIUM, 1
    if (is_turned or axis.axis_name == "y") and len(texts) > 1:
        low, high = sorted(axis.get_view_interval())
        gap = float(np.diff(np.sort(places)).min()) if len(places) > 1 else high - low
        room = POINTS_AN_INCH * inches * gap / max(high - low, gap) / LINE_HEIGHT
        size = min(size, max(room, SMALLEST_TYPE))
        step = math.ceil(SMALLEST_TYPE / max(room, 1e-3))
    axis.set_ticks(places[::step], texts[::step], parse_math=False)
    axis.set_tick_params(length=0, rotation=90 * is_turned, labelsize=size)


def hide_spines(ax: "Axes") -> "Axes":
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def label_vector(labels: Any) -> np.ndarray:
    vector: np.ndarray = to_host(labels)
    checks.check_label_vector(vector.shape, type(vector).__name__, "labels")
    return vector


def select_evenly(clusters: np.ndarray, size: int) -> np.ndarray:
    """Select at most ``size`` objects, the same share of each cluster, and return their positions."""
    by_cluster = np.argsort(clusters, kind="stable")
    n = min(size, len(clusters))
    return by_cluster[(2 * np.arange(n) + 1) * len(clusters) // (2 * n)]


def largest_clusters(sizes: np.ndarray, n: int) -> np.ndarray:
    """Return the numbers of the ``n`` largest clusters, ascending."""
    return np.sort(np.argsort(-sizes, kind="stable")[:n])


def quantiles_by_cluster(values: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return an array (k, 5) with the `QUANTILES` of the values in each cluster.

    A NaN, which is the value of the only member of a cluster, is replaced by 0.
    """
    order = np.lexsort([values, labels])
    sizes = np.bincount(labels, minlength=n_clusters)
    starts = np.cumsum(sizes) - sizes
    places = starts[:, None] + np.rint(np.multiply.outer(sizes - 1, QUANTILES)).astype(np.int64)
    return np.nan_to_num(values[order][places])


def type_name(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__


def order_by_distance(distances: np.ndarray) -> np.ndarray:
    """Return an order (n,) in which near objects are neighbours, for a matrix of distances (n, n).

    It is the order of the leaves in the average-linkage tree of the distances.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(distances) < 2:
        return np.arange(len(distances))
    return leaves_list(linkage(squareform(distances, checks=False), "average"))


def write_shares(ax: Any, values: np.ndarray) -> None:
    """Write the numbers of a matrix of shares into its cells, for example .65 for 0.65, if they fit."""
    from matplotlib import colormaps

    height, width = (LAYOUT_SHARE * POINTS_AN_INCH * axis_inches(axis) for axis in (ax.yaxis, ax.xaxis))
    size = min(SMALL, width / values.shape[1] / NUMBER_WIDTH, height / values.shape[0] / LINE_HEIGHT)
    for (i, j), value in np.ndenumerate(values) if size >= SMALLEST_TYPE and values.size <= CELLS_WRITTEN else ():
        if not np.isnan(value):
            text, color = f"{value:.2f}".replace("0.", ".").replace("1.00", "1"), ink_on(colormaps[SHARES](value))
            ax.text(j, i, text, ha="center", va="center", fontsize=size, color=color)


def ink_on(ground: Any) -> str:
    """Return the colour of a text, black or white, that has the larger contrast to its ground: 4.5 or more."""
    light = luminance(ground) + 0.05
    return WHITE if (luminance(WHITE) + 0.05) / light > light / (luminance(BLACK) + 0.05) else BLACK


def luminance(color: Any) -> float:
    """Return the relative luminance of a colour by WCAG 2, from 0 to 1."""
    from matplotlib.colors import to_rgb

    values = np.array(to_rgb(color))
    return float(np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4) @ LUMINANCE)


def color_bar(image: Any, ax: Any, label: str, extend: str = "neither") -> None:
    """Draw a colour bar for an image next to one Axes or to a list of Axes, with a ``label``.

    ``extend`` says at which ends values are beyond the scale: "neither", "min", "max" or "both".
    """
    first = ax[0] if isinstance(ax, list) else ax
    bar = first.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.03, extend=extend)
    bar.set_label(_wrap_label(label, first.yaxis))
    bar.outline.set_visible(False)
