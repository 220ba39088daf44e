"""Maps of objects that have places: their domains, and how uncertain the domain of each object is."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.columns import as_column
from gpuens.labels.encoding import encode_column
from gpuens.labels.features import as_numbers
from gpuens.labels.object_names import in_order_of, index_of
from gpuens.plotting.drawing import (
    POINTS_AN_INCH,
    axes,
    color_bar,
    color_clusters,
    entitle,
    select_evenly,
    type_name,
    write_legend,
)
from gpuens.runtime import checks
from gpuens.runtime.device import to_host

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 200_000  # maximum number of objects that are drawn as points
MOST_PIXELS = 2_000  # maximum number of rows, and of columns, of a grid that are drawn
RASTERIZED = 2_000  # number of points above which a PDF or SVG has pixels in their place
OVERLAP = 1.6  # area of the square around a point as a multiple of the map's area for each object: few gaps stay white
SMALLEST, LARGEST = 0.1, 120.0  # area, in square points, of the square around a point
LONGEST_NAME = 14  # maximum number of letters of a name in the legend
MOST_NAMES = 40  # maximum number of clusters in a legend
SEQUENCE = "viridis"  # colour map for numbers, such as certainty
MAP_INCHES = 6.2, 4.8  # width and height, in inches, of a map with its legend or colour bar
LEAST_SCALE = 0.1  # least uncertainty at the end of the colour scale, so that hardly any uncertainty looks like it
MOST_OF_SCALE = 0.98  # quantile of the uncertainty at the end of the scale


def domains(
    labels: Any, coordinates: Any = None, *, shape: Any = None, y_down: bool = True, ax: "Axes | None" = None
) -> "Axes":
    """Draw a map of objects with one colour for each domain.

    Parameters
    ----------
    labels : array (n_objects,), or a fitted estimator
        The domain of each object; objects without a label are grey.
    coordinates : array or DataFrame (n_objects, n_dimensions), optional
        The places, of which the first two columns are drawn; matched by name if labels have names, too. At most
        200,000 objects are drawn, the same share of every domain. By default those of the graph of the estimator.
    shape : (height, width), optional
        In place of coordinates: the objects are the cells of this grid, as in `gpuens.Graph.grid`.
    y_down : bool
        Whether y grows downwards, as in images and most spatial data; not for a grid, whose first row is at the top.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For coordinates or a shape of other objects, and if neither or both are given.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.plotting.domains([0, 0, 1, 1, 2, 2], shape=(2, 3)).get_title()
    '3 domains of 6 objects'
    """
    coordinates, shape = _layout(labels, coordinates, shape)
    labels = getattr(labels, "labels_", labels)
    codes, values = encode_column(as_column(labels), "labels")
    codes = np.asarray(to_host(codes), dtype=np.int64)
    names = np.asarray(to_host(values))
    places = Places.of(coordinates, shape, index_of(labels), len(codes), bool(y_down))
    ax = axes(ax, MAP_INCHES, square=True)
    entitle(ax, f"{checks.counted(len(names), 'domain')} of {checks.counted(len(codes), 'object')}")
    draw_clusters(ax, places, codes, names, color_clusters(names))
    return ax


def uncertainty(
    estimator: Any, coordinates: Any = None, *, shape: Any = None, y_down: bool = True, ax: "Axes | None" = None
) -> "Axes":
    """Draw a map of the uncertainty of each object: the entropy of its memberships as a share of its maximum.

    With q_r the membership of an object in domain r of k, the uncertainty is -Σ_r q_r ln q_r / ln k: 0 if the object is
    in one domain, and 1 if it is in all domains alike. The colour scale ends at the 98 % quantile.

    Parameters
    ----------
    estimator : a fitted estimator with ``membership_``, such as `gpuens.Spatial`
    coordinates, shape, y_down, ax
        As in `gpuens.plotting.domains`; the most uncertain objects are drawn on top.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For an estimator without memberships, for coordinates or a shape of other objects, and if neither or both are
        given.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.EM(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]])
    >>> ge.plotting.uncertainty(est, shape=(2, 3)).get_title()
    'Uncertainty of 6 objects'
    """
    if (membership := getattr(estimator, "membership_", None)) is None:
        raise TypeError(
            f"estimator must be a fitted one with membership_, such as Spatial, not {type_name(estimator)}; fit it "
            "with refine=True and neighbours, or draw plotting.domains."
        )
    index = index_of(getattr(estimator, "labels_", None))
    coordinates, shape = _layout(estimator, coordinates, shape)
    places = Places.of(coordinates, shape, index, len(membership), bool(y_down))
    values = _entropies(to_host(membership))
    top = max(float(np.quantile(values, MOST_OF_SCALE)), LEAST_SCALE)
    ax = axes(ax, MAP_INCHES, square=True)
    entitle(ax, f"Uncertainty of {checks.counted(len(values), 'object')}")
    draw_numbers(ax, places, values, (0.0, top), "uncertainty (0: none, 1: all clusters alike)")
    return ax


def draw_clusters(
    ax: "Axes", places: "Places", codes: np.ndarray, names: Any, palette: np.ndarray, area: float | None = None
) -> None:
    """Draw objects in the colours of their clusters, code -1 in the last colour, and a legend of at most 40 names."""
    from matplotlib.lines import Line2D

    if places.xy is None:
        places.show(ax, palette[places.pixels(codes)])
    else:
        objects = select_evenly(codes, MOST_POINTS)
        # objects are drawn in random order, so that no cluster hides all other clusters
        objects = objects[np.random.default_rng(0).permutation(len(objects))]
        places.scatter(ax, objects, area, c=palette[codes[objects]])
    if len(names) <= MOST_NAMES:
        style: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 6, "markeredgewidth": 0}
        texts = [*names, *["no label"] * bool((codes < 0).any())]
        marks = [Line2D([], [], color=color, **style) for color in palette[: len(texts)]]
        write_legend(ax, marks, texts, LONGEST_NAME)


def draw_numbers(
    ax: "Axes",
    places: "Places",
    values: np.ndarray,
    limits: tuple[float, float],
    label: str,
    area: float | None = None,
    *,
    lowest_on_top: bool = False,
) -> None:
    """Draw objects in the colours of their values on a scale with the given limits, and a colour bar with a label."""
    scale: dict[str, Any] = {"cmap": SEQUENCE, "vmin": limits[0], "vmax": limits[1]}
    if places.xy is None:
        image = places.show(ax, values[places.pixels(np.arange(len(values)))], **scale)
    else:
        objects = select_evenly(np.zeros(len(values), dtype=np.int64), MOST_POINTS)
        objects = objects[np.argsort(-values[objects] if lowest_on_top else values[objects], kind="stable")]
        image = places.scatter(ax, objects, area, c=values[objects], **scale)
    beyond = bool((values < limits[0]).any()) + 2 * bool((values > limits[1]).any())
    color_bar(image, ax, label, extend=("neither", "min", "max", "both")[beyond])


def _layout(estimator: Any, coordinates: Any, shape: Any) -> tuple[Any, Any]:
    """Return coordinates and shape, by default those of the graph to which an estimator was fitted."""
    graph = getattr(estimator, "graph_", None)
    return (coordinates, shape) if graph is None or coordinates is not None or shape is not None else graph.layout


class Places:
    """The places of n objects: coordinates (n, 2), or the cells of a grid."""

    def __init__(self, xy: np.ndarray | None, shape: tuple[int, int], y_down: bool) -> None:
        self.xy, self.shape, self.y_down = xy, shape, y_down

    @classmethod
    def of(cls, coordinates: Any, shape: Any, index: Any, n_objects: int, y_down: bool) -> "Places":
        if (coordinates is None) == (shape is None):
            problem = "neither was given" if shape is None else "both were given"
            raise TypeError(f"a map needs coordinates or shape, but {problem}; pass one of the two.")
        if coordinates is None:
            if not isinstance(shape, (tuple, list)) or len(shape) != 2:
                raise TypeError(f"shape must be (height, width), not {checks.shown(shape)}.")
            height, width = (checks.check_integer(length, "shape", minimum=1) for length in shape)
            if height * width != n_objects:
                raise ValueError(
                    f"shape is {height} × {width}, but labels are of {n_objects:,} objects; pass the shape of the grid "
                    "whose cells are the objects."
                )
            return cls(None, (height, width), True)
        places = to_host(as_numbers(in_order_of(index, coordinates, "coordinates"), "coordinates"))
        if places.ndim != 2 or places.shape[1] < 2:
            raise ValueError(
                f"coordinates have shape {places.shape}, but two columns are drawn; pass an array (n_objects, 2)."
            )
        if len(places) != n_objects:
            raise ValueError(
                f"coordinates are of {len(places):,} objects, but labels of {n_objects:,}; pass one place for each "
                "object."
            )
        if not np.isfinite(places[:, :2]).all():
            unknown = int((~np.isfinite(places[:, :2]).all(axis=1)).argmax())
            raise ValueError(f"coordinates of object {unknown} are not finite; leave out the objects without a place.")
        return cls(places[:, :2], (0, 0), y_down)

    def pixels(self, values: np.ndarray) -> np.ndarray:
        """Return the values (height, width) of the cells; rows and columns of a large grid are left out evenly."""
        step = math.ceil(max(self.shape) / MOST_PIXELS)
        return values.reshape(self.shape)[::step, ::step]

    def show(self, ax: "Axes", pixels: np.ndarray, **scale: Any) -> Any:
        height, width = self.shape
        image = ax.imshow(pixels, extent=(-0.5, width - 0.5, height - 0.5, -0.5), **scale)
        return _frameless(ax, image)

    def scatter(self, ax: "Axes", objects: np.ndarray, area: float | None = None, **colors: Any) -> Any:
        """Draw objects, in the order of ``objects``, as points that by default nearly touch each other."""
        assert self.xy is not None
        xy = self.xy[objects]
        ax.set_aspect("equal")
        x, y = xy.T
        area = _area_of_a_point(ax, xy) if area is None else area
        points = ax.scatter(x, y, area, linewidths=0, rasterized=len(xy) > RASTERIZED, **colors)
        ax.margins(0.02)
        if self.y_down:
            ax.invert_yaxis()
        return _frameless(ax, points)


def _frameless(ax: "Axes", image: Any) -> Any:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return image


def _area_of_a_point(ax: "Axes", xy: np.ndarray) -> float:
    """Return the area of a point, in square points, by the area of the map for each object, empty places left out."""
    low, extent = xy.min(axis=0), np.ptp(xy, axis=0)
    inches = ax.get_position().size * ax.figure.get_size_inches()  # type: ignore[union-attr]
    longest = float(extent.max())
    if longest == 0:
        return LARGEST
    scale = float(np.min(inches / np.maximum(extent, longest / 1e3))) * POINTS_AN_INCH
    side = longest / max(1, int(math.sqrt(len(xy) / 4)))  # cells of about four objects
    cells = np.floor((xy - low) / side).astype(np.int64)
    occupied = len(np.unique(cells @ np.array([2**32, 1]))) * (side * scale) ** 2
    return min(max(OVERLAP * occupied / len(xy), SMALLEST), LARGEST)


def _entropies(membership: np.ndarray) -> np.ndarray:
    """Return the entropies (n,) of memberships (n, k) as shares of ln k."""
    n, k = membership.shape
    sums = np.zeros(n)
    for shares in membership.T:
        sums -= shares * np.log(np.where(shares > 0, shares, 1.0))
    return np.clip(sums / math.log(k), 0.0, 1.0) if k > 1 else sums
