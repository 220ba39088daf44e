"""The total order of pairs of regions: most similar pair first; a hash of the two ids decides ties.

Similarities are often counts of matches, with many ties. One total order, similarity descending and hash ascending,
makes the dendrogram the same on every device. A region's id is the smallest core-group id in it. The hash is a
bijection of the packed pair, so that no two pairs tie, and unlike the ids it does not favour small ids.
"""

import numpy as np

from gpuens.runtime.compiled import njit

NO_HASH = np.uint64(0xFFFFFFFFFFFFFFFF)  # in the total order, comes after the hash of every pair of equal similarity


@njit(cache=True, nogil=True, makes_arrays=False)
def pair_hash(a, b):
    """Return the tie-breaking hash of an unordered pair of ids: the finaliser of splitmix64 on (min << 32 | max)."""
    x = (np.uint64(min(a, b)) << np.uint64(32)) | np.uint64(max(a, b))
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@njit(cache=True, nogil=True, makes_arrays=False)
def comes_before(similarity, tie, other_similarity, other_tie):
    """Return whether a pair with ``similarity`` and ``tie`` comes before the other pair in the total order."""
    return similarity > other_similarity or (similarity == other_similarity and tie < other_tie)
