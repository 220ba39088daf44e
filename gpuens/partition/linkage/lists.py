"""Short list of each region's most similar other regions, sorted by the total order, best first."""

import numpy as np

from gpuens.partition.linkage.order import comes_before
from gpuens.runtime.compiled import njit


@njit(cache=True, nogil=True, makes_arrays=False)
def emptied(ids, similarities, a):
    """Empty list ``a``; return the smallest similarity that it had, or 0 if it was not full."""
    least = np.inf
    for s in range(ids.shape[1]):
        least = min(least, similarities[a, s] if ids[a, s] >= 0 else 0.0)
        ids[a, s] = -1
        similarities[a, s] = 0.0
    return least


@njit(cache=True, nogil=True, makes_arrays=False)
def insert(ids, similarities, ties, a, j, listed, new_id, similarity, tie):
    """Insert a region into a list sorted best first, and return the list's length.

    If the list is full, its last entry is dropped. The list is row ``a`` of ``ids`` and ``similarities``, and row ``j``
    of ``ties``.
    """
    last = ids.shape[1] - 1
    if listed > last:
        if not comes_before(similarity, tie, similarities[a, last], ties[j, last]):
            return listed
        position = last
    else:
        position = listed
        listed += 1
    while position > 0 and comes_before(similarity, tie, similarities[a, position - 1], ties[j, position - 1]):
        ids[a, position] = ids[a, position - 1]
        similarities[a, position] = similarities[a, position - 1]
        ties[j, position] = ties[j, position - 1]
        position -= 1
    ids[a, position] = new_id
    similarities[a, position] = similarity
    ties[j, position] = tie
    return listed
