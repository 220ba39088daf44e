"""The section of a page about the features of the clusters: their means, and their most typical objects."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuens.plotting.profiles import COLUMN_INCHES, MOST_CLUSTERS, MOST_FEATURES, ROW_INCHES, Profile, draw_profile
from gpuens.report.page import DETAIL, FRONT, Picture, Section, Table

MOST_COLUMNS = 12  # maximum number of features in a table
MOST_OBJECTS = 30  # maximum number of typical objects in a table, at most three for each cluster
WIDEST = 10.0  # width, in inches, of the picture of many features


def section_of_profile(
    profile: Profile, features: np.ndarray, name_object: Callable[[int], str], names: Sequence[Any]
) -> Section:
    """Return the section about a profile of features (n_objects, n_features); ``names`` (k,) are those of clusters."""
    columns = profile.order[:MOST_COLUMNS]
    titles = [profile.features[c] for c in columns]
    means = [
        [name, int(size), *map(float, row[columns])]
        for name, size, row in zip(names, profile.sizes, profile.means, strict=True)
    ]
    n_each = int(np.clip(MOST_OBJECTS // len(names), 1, 3))
    typical = [
        [name, name_object(i), *map(float, features[i, columns])]
        for name, objects in zip(names, profile.typical, strict=True)
        for i in objects[:n_each]
    ]
    n_rows, n_columns = min(len(names), MOST_CLUSTERS), min(len(profile.features), MOST_FEATURES)
    width, height = 2.2 + COLUMN_INCHES * n_columns, max(1.7 + ROW_INCHES * n_rows, 2.6)
    size = None if width <= DETAIL[0] and height <= FRONT[1] else (min(max(DETAIL[0], width), WIDEST), height)
    note = "Means of the objects of each cluster. The picture of the means has their distances from the overall mean."
    if len(profile.features) > len(columns):
        note += f" These are the {len(columns)} of {len(profile.features):,} features that differ most."
    return Section(
        "What the clusters are like",
        [
            Table("means of the features", ("cluster", "objects", *titles), means),
            Table("The most typical objects of each cluster", ("cluster", "object", *titles), typical),
        ],
        [Picture("How the means of the clusters differ", partial(draw_profile, profile), size)],
        note,
        is_open=True,
    )
