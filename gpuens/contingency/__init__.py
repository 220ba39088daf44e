"""Intersections of clusters |c ∩ d|, and numbers derived from them: entropies, and agreement between clusterings.

Tables are counted for one pair of clusterings at a time, not by a product of incidence matrices. So N × N_c is never in
memory, and N_c × N_c only if it is the result. Counts are integers, so results do not depend on the order of the
objects or the number of threads. An object counts in a table if both of its labels are known.
"""

from gpuens.contingency.clusters import intersections
from gpuens.contingency.entropies import entropy
from gpuens.contingency.labels import Table
from gpuens.contingency.scores import agreement, ari_of, nmi_of, vi_of
from gpuens.contingency.tables import cells, pair_tables, table

__all__ = [
    "Table",
    "agreement",
    "ari_of",
    "cells",
    "entropy",
    "intersections",
    "nmi_of",
    "pair_tables",
    "table",
    "vi_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
