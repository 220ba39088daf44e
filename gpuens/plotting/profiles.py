"""Pictures of clusters by features: the mean of each feature in each cluster, in standard deviations of the feature."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuens.labels.features import as_numbers
from gpuens.labels.object_names import in_order_of, index_of
from gpuens.plotting.drawing import CELLS_WRITTEN, SMALL, axes, color_bar, entitle, ink_on, label_vector, write_names
from gpuens.runtime import checks
from gpuens.runtime.device import to_host

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIVERGING = "RdBu_r"  # colour map from far below the mean of all objects (blue) to far above it (red)
LARGEST_SCALE = 3.0  # largest end of the colour scale, in standard deviations
MOST_FEATURES = 30  # maximum number of features in the picture, those that differ most between the clusters
MOST_CLUSTERS = 40  # maximum number of clusters in the picture, the largest
ROW_INCHES, COLUMN_INCHES = 0.3, 0.55  # height of a cluster's row and width of a feature's column
MINUS = "\N{MINUS SIGN}"


class Profile(NamedTuple):
    """The features of each cluster.

    ``clusters`` (k,) are the labels, ``means`` (k, n_features) the means, ``standardized`` the means less those of all
    objects in standard deviations, and ``order`` (n_features,) the features, the most different between clusters first.
    """

    clusters: np.ndarray
    sizes: np.ndarray
    features: list[str]
    means: np.ndarray
    standardized: np.ndarray
    order: np.ndarray
    typical: list[np.ndarray]  # objects of each cluster, from the nearest to its mean


def profile(features: Any, labels: Any, *, names: Any = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the mean of each feature in each cluster, in standard deviations from the mean of all objects.

    The features that differ most between the clusters come first, at most 30; of many clusters, the 40 largest are
    drawn. Missing values are left out.

    Parameters
    ----------
    features : array or DataFrame (n_objects, n_features)
        A DataFrame names the features, and is matched by name if the labels have names, too.
    labels : array (n_objects,), or a fitted estimator
        The cluster of each object; objects with a label of -1 are left out.
    names : sequence (n_features,), optional
        The names of the features, by default those of the columns, or their numbers.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For features of other objects, or that are no numbers, and for another number of names.

    Examples
    --------
    >>> import gpuens as ge
    >>> ax = ge.plotting.profile([[1, 30], [3, 30], [7, 10], [9, 30]], [0, 0, 1, 1], names=["visits", "age"])
    >>> [tick.get_text() for tick in ax.get_xticklabels()], ax.images[0].get_array().round(2).tolist()
    (['visits', 'age'], [[-0.95, 0.58], [0.95, -0.58]])
    """
    return draw_profile(profile_of(features, labels, names), ax=ax)


def draw_profile(of_features: Profile, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the standardised means of a profile as a matrix, a row for each cluster."""
    columns = of_features.order[:MOST_FEATURES]
    rows = np.sort(np.argsort(-of_features.sizes, kind="stable")[:MOST_CLUSTERS])
    values = of_features.standardized[np.ix_(rows, columns)]
    end = float(np.clip(np.nanmax(np.abs(values), initial=0.5), 0.5, LARGEST_SCALE))
    ax = axes(ax, (2.4 + COLUMN_INCHES * len(columns), 1.6 + ROW_INCHES * len(rows)))
    image = ax.imshow(values, cmap=DIVERGING, vmin=-end, vmax=end, aspect="auto")
    write_names(ax.xaxis, np.arange(len(columns)), [of_features.features[c] for c in columns])
    write_names(ax.yaxis, np.arange(len(rows)), of_features.clusters[rows])
    for (i, j), value in np.ndenumerate(values) if values.size <= CELLS_WRITTEN else ():
        if not np.isnan(value):
            text, color = f"{value:z.1f}".replace("-", MINUS), ink_on(image.to_rgba(value))
            ax.text(j, i, text, ha="center", va="center", fontsize=SMALL, color=color)
    ax.set(xlabel="feature", ylabel="cluster")
    color_bar(image, ax, "standard deviations from the mean", "both" if np.nanmax(np.abs(values)) > end else "neither")
    entitle(ax, f"Features of {checks.counted(len(rows), 'cluster')}")
    return ax


def profile_of(features: Any, labels: Any, names: Any = None) -> Profile:
    """Return the profile of each cluster; parameters are those of `profile`."""
    index = index_of(labels)
    features = in_order_of(index, features, "features")
    columns = getattr(features, "columns", None)
    X = to_host(as_numbers(features, "features"))
    if X.ndim != 2:
        raise ValueError(f"features have shape {X.shape}; pass an array (n_objects, n_features).")
    labels = label_vector(getattr(labels, "labels_", labels))
    checks.check_one_per_row(labels, len(X), "labels")
    if names is None:
        names = range(X.shape[1]) if columns is None else columns
    names = [str(name) for name in names]
    checks.check_one_per_row(np.asarray(names), X.shape[1], "names")
    objects = np.flatnonzero(labels != -1) if labels.dtype.kind in "iu" else np.arange(len(labels))
    clusters, codes = np.unique(labels[objects], return_inverse=True)
    X = X[objects]
    present = ~np.isnan(X)
    filled = np.where(present, X, 0.0)
    n = np.maximum(present.sum(axis=0), 1)
    center = filled.sum(axis=0) / n
    deviation = np.sqrt((np.where(present, X - center, 0.0) ** 2).sum(axis=0) / n)
    sums, counts = np.zeros((2, len(clusters), X.shape[1]))
    np.add.at(sums, codes, filled)
    np.add.at(counts, codes, present)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    scale = np.where(deviation > 0, deviation, 1.0)
    standardized = (means - center) / scale
    sizes = np.bincount(codes, minlength=len(clusters))
    order = np.argsort(-(sizes[:, None] * np.nan_to_num(standardized) ** 2).sum(axis=0), kind="stable")
    distance = (np.where(present, (X - means[codes]) / scale, 0.0) ** 2).sum(axis=1)
    by_distance = np.lexsort([distance, codes])
    typical = [objects[part] for part in np.split(by_distance, np.cumsum(sizes)[:-1])]
    return Profile(clusters, sizes, names, means, standardized, order, typical)
