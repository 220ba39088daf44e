"""The total order of pairs of regions: most similar pair first; a hash of the two ids decides ties.

Similarities are often counts of matches, with many ties. One total order, similarity descending and hash ascending,
makes the dendrogram the same on every device. A region's id is the smallest core-group id in it. The hash is a
bijection of the packed pair, so that no two pairs tie, and unlike the ids it does not favour small ids.
"""

import numpy as np

from gpuens.runtime.native import cpu

NO_HASH = np.uint64(cpu.NO_HASH)  # in the total order, comes after the hash of every pair of equal similarity
