"""The edges between objects and the nearest places, from the coordinates of the objects."""

from typing import Any

import numpy as np

from gpuens.labels.edges import Edges, of_pairs


def nearest_places(
    coordinates: np.ndarray, k: int, groups: np.ndarray | None, max_length: float | None, names: Any = None
) -> Edges:
    """Return the edges from each object to the first object of its place and to those of the k nearest places.

    ``coordinates`` (n_objects, n_dimensions) are finite; the parameters are those of `gpuens.Graph.neighbors`.
    """
    n = len(coordinates)
    if groups is None:
        pairs = _pairs(coordinates, np.arange(n), k, max_length)
    else:
        _, group_of = np.unique(groups, return_inverse=True)
        order = np.argsort(group_of, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(group_of[order])) + 1)
        pairs = np.concatenate([_pairs(coordinates[objects], objects, k, max_length) for objects in members])
    return of_pairs(pairs, None, n, names)


def _pairs(coordinates: np.ndarray, objects: np.ndarray, k: int, max_length: float | None) -> np.ndarray:
    """Return the pairs (n_pairs, 2), loops among them, of the objects at ``coordinates``, numbered ``objects``."""
    from scipy.spatial import cKDTree

    places, first, place_of = np.unique(coordinates, axis=0, return_index=True, return_inverse=True)
    place_of = place_of.reshape(-1)  # NumPy 2.0 returned a column
    near = np.empty((len(places), 0), dtype=np.int64)
    if len(places) > 1:
        reach = np.inf if max_length is None else np.nextafter(max_length, np.inf)  # edges of this length count
        _, near = cKDTree(places).query(places, min(k + 1, len(places)), distance_upper_bound=reach, workers=-1)
    lists = np.column_stack([np.arange(len(places)), near])[place_of]  # an object's own place comes first
    here = np.repeat(objects, lists.shape[1])
    there = lists.ravel()
    reached = there < len(places)  # a place beyond the reach has this number
    return np.column_stack([here[reached], objects[first[there[reached]]]])
