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

from dataclasses import dataclass

import numpy as np

from gpuens.evidence.overlaps import split_rows
from gpuens.labels.rows import Rows
from gpuens.runtime.exponentials import exponentials, natural_logarithms
from gpuens.similarity.base import LookedUp

CELLS_AT_ONCE = 2**16  # cells of tables that are computed together


@dataclass(frozen=True)
class Lifts:
    """Tables of the logarithms of lifts, from which the lifts of label rows are looked up."""

    # sums of log lifts over the base clusters of a row, for all labels except the row's own label
    absent_lifts: LookedUp
    member_lifts: np.ndarray  # (N_c, k), log lifts of the label that a member of the base cluster has itself
    offsets: np.ndarray

    @classmethod
    def of(cls, shared: np.ndarray, n_counted: np.ndarray, offsets: np.ndarray) -> "Lifts":
        """Return the lifts of k labels.

        ``shared`` (N_c, k) and ``n_counted`` (M, k) are the numbers of objects with each label in each base cluster and
        in each clustering.
        """
        absent_lifts, member_lifts = shared.copy(), shared - 1.0
        np.maximum(member_lifts, 0.0, out=member_lifts)
        by_chance = n_counted / np.maximum(n_counted.sum(axis=1, keepdims=True), 1.0)
        for piece in split_rows(np.diff(offsets) * shared.shape[1], CELLS_AT_ONCE):
            clusters = slice(int(offsets[piece.start]), int(offsets[piece.stop]))
            chance = np.repeat(by_chance[piece], np.diff(offsets)[piece], axis=0)
            expected = np.maximum(shared[clusters].sum(axis=1), 1.0)[:, None] * chance
            for lifts in (absent_lifts[clusters], member_lifts[clusters]):
                lifts += chance
                np.divide(lifts, expected, out=lifts, where=chance > 0)
                # lift 1, because a clustering that labels no object of a label has no evidence about this label
                lifts[chance == 0] = 1.0
                lifts[...] = natural_logarithms(lifts)
        return cls(LookedUp(absent_lifts), member_lifts, offsets)

    def confidence(
        self, rows: Rows, codes: np.ndarray, labels: np.ndarray, n_counted: np.ndarray, *, new: bool
    ) -> np.ndarray:
        """Return the confidence (G,): the share of each row's label in the sum of the pooled lifts, from 0 to 1.

        ``codes`` (G, M): the codes of the rows, on the host. ``n_counted`` (G,): the number of clusterings that count
        for a row. ``new``: the rows are not among the members, so nothing is subtracted for them.
        """
        g = np.arange(len(labels))
        pooled = self.absent_lifts(rows)
        if not new:
            sums = np.zeros(len(labels))
            for piece in split_rows(np.full(codes.shape[1], len(labels)), CELLS_AT_ONCE):
                columns = np.ascontiguousarray(codes[:, piece].T)  # sums of another layout have another order
                labelled = columns != rows.ensemble.missing_code
                clusters = np.where(labelled, columns, 0) + self.offsets[:-1][piece, None]
                lifts = np.where(labelled, self.member_lifts[clusters, labels], 0.0)
                lifts[0] += sums
                sums = np.add.reduce(lifts, axis=0)  # in the order of the clusterings
            pooled[g, labels] = sums
        pooled /= np.maximum(n_counted, 1)[:, None]
        pooled -= pooled.max(axis=1, keepdims=True)
        pooled = exponentials(pooled)
        return pooled[g, labels] / pooled.sum(axis=1)
