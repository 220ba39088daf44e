"""Support of the base clusterings for a label: the lift of the label in a base cluster, averaged over the clusterings.

The lift of a label is the factor by which the label is more frequent in a base cluster than among all objects. For an
object of base cluster c, the object itself is replaced by a random object, so that the object does not support its own
label. The lift of label t is then

    lift(t) = (n_ct - [t is the object's own label] + p_t) / (n_c p_t)

where n_ct is the number of members of c with label t, n_c the number of members of c, and p_t the share of t in all
objects. If no member of c has the label, the lift is 1 / n_c, so that a larger cluster is stronger evidence against the
label. Lifts are averaged over the clusterings by the geometric mean. In this mean, one clustering that clearly
contradicts a label has more weight than many clusterings whose clusters are slightly impure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.runtime.exponentials import exponentials, natural_logarithms
from gpuens.similarity.base import LookedUp

CELLS_AT_ONCE = 2**16  # cells of tables that are computed together


def pieces(n_cells: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of pieces of clusterings with about `CELLS_AT_ONCE` cells; ``n_cells`` (M,) is of each."""
    turn = np.cumsum(n_cells) // CELLS_AT_ONCE
    ends = [*(np.flatnonzero(np.diff(turn)) + 1).tolist(), len(n_cells)]
    yield from pairwise([0, *ends])


@dataclass(frozen=True)
class Lifts:
    """Tables of the logarithms of lifts, from which the lifts of label rows are looked up."""

    of_others: LookedUp  # sums of log lifts over the base clusters of a row, for all labels except the row's own label
    own: np.ndarray  # (N_c, k), log lifts of the label that a member of the base cluster has itself
    offsets: np.ndarray

    @classmethod
    def of(cls, shared: np.ndarray, members: np.ndarray, offsets: np.ndarray) -> "Lifts":
        """Return the lifts of k labels.

        ``shared`` (N_c, k) and ``members`` (M, k) are the numbers of objects with each label in each base cluster and
        in each clustering.
        """
        of_others, own = shared.copy(), shared - 1.0
        np.maximum(own, 0.0, out=own)
        by_chance = members / np.maximum(members.sum(axis=1, keepdims=True), 1.0)
        for first, last in pieces(np.diff(offsets) * shared.shape[1]):
            some = slice(int(offsets[first]), int(offsets[last]))
            chance = np.repeat(by_chance[first:last], np.diff(offsets[first : last + 1]), axis=0)
            expected = np.maximum(shared[some].sum(axis=1), 1.0)[:, None] * chance
            for found in (of_others[some], own[some]):
                found += chance
                np.divide(found, expected, out=found, where=chance > 0)
                # lift 1, because a clustering that labels no object of a label has no evidence about this label
                found[chance == 0] = 1.0
                found[...] = natural_logarithms(found)
        return cls(LookedUp(of_others), own, offsets)

    def confidence(
        self, rows: Rows, codes: np.ndarray, labels: np.ndarray, counted: np.ndarray, *, new: bool
    ) -> np.ndarray:
        """Return the confidence (G,): the share of each row's label in the sum of the pooled lifts, from 0 to 1.

        ``codes`` (G, M): the codes of the rows, on the host. ``counted`` (G,): the number of clusterings that count for
        a row. ``new``: the rows are not among the members, so nothing is subtracted for them.
        """
        each = np.arange(len(labels))
        pooled = self.of_others(rows)
        if not new:
            own = np.zeros(len(labels))
            for first, last in pieces(np.full(codes.shape[1], len(labels))):
                some = np.ascontiguousarray(codes[:, first:last].T)  # sums of another layout have another order
                known = some != rows.ensemble.missing_code
                clusters = np.where(known, some, 0) + self.offsets[first:last, None]
                of_labels = np.where(known, self.own[clusters, labels], 0.0)
                of_labels[0] += own
                own = np.add.reduce(of_labels, axis=0)  # in the order of the clusterings
            pooled[each, labels] = own
        pooled /= np.maximum(counted, 1)[:, None]
        pooled -= pooled.max(axis=1, keepdims=True)
        pooled = exponentials(pooled)
        found: np.ndarray = pooled[each, labels] / pooled.sum(axis=1)
        return found
