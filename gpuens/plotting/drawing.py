"""Settings and functions that all pictures share: colours, Axes, figures, names at axes and titles."""

import re
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
LETTER = 0.1  # estimated width, in inches, of a letter in a title
CELLS_WRITTEN = 240  # maximum number of matrix cells into which numbers are written, so that the numbers are legible

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
    """Write a title over an Axes or a Figure, with "$" as an ordinary letter; wrap a title that may be too wide."""
    write = place.set_title if hasattr(place, "set_title") else place.suptitle
    # Wrap only wide titles, because layouts reserve room for wrapped lines. Wrapped texts ignore parse_math=False.
    write(text.replace("$", r"\$"), wrap=LETTER * len(text) > 0.6 * place.figure.get_size_inches()[0])


def shorten(name: Any, length: int) -> str:
    """Return a name as one line of text; if the name is too long, its middle is omitted."""
    text = " ".join(str(name).split())
    return text if len(text) <= length else f"{text[: length * 2 // 3]}…{text[len(text) - length // 3 + 1 :]}"


def count_drawn(n_drawn: int, n: int, noun: str) -> str:
    """Return a text that says how many of n things are drawn, such as "20 of 400 objects" or "400 objects"."""
    return f"{n:,} {noun}" if n_drawn == n else f"{n_drawn:,} of {n:,} {noun}"


def write_names(axis: Any, places: np.ndarray, names: Any, longest: int = LONGEST_NAME) -> None:
    """Write names at an axis; rotate long names."""
    texts = [shorten(name, longest) for name in names]
    axis.set_ticks(places, texts, parse_math=False)
    axis.set_tick_params(length=0)
    width = axis.axes.get_position().width * axis.axes.figure.get_size_inches()[0]
    if axis.axis_name == "x" and (max(map(len, texts), default=0) + 1) * len(texts) > LETTERS_AN_INCH * width:
        axis.set_tick_params(rotation=90)


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
    """Write the numbers of a matrix of shares into its cells, for example .65 for 0.65, if there are not too many."""
    for (i, j), value in np.ndenumerate(values) if values.size <= CELLS_WRITTEN else ():
        if not np.isnan(value):
            text = f"{value:.2f}".replace("0.", ".")
            ax.text(j, i, text, ha="center", va="center", fontsize=SMALL, color="white" if value > 0.6 else INK)


def color_bar(image: Any, ax: Any, label: str, extend: str = "neither") -> None:
    """Draw a colour bar for an image next to one Axes or to a list of Axes, with a ``label``.

    ``extend`` says at which ends values are beyond the scale: "neither", "min", "max" or "both".
    """
    first = ax[0] if isinstance(ax, list) else ax
    bar = first.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.03, extend=extend)
    bar.set_label(label)
    bar.outline.set_visible(False)
