"""Support of clusterings for a label: the lifts of labels in base clusters, pooled over the clusterings.

The lift of a label is the factor by which the label is more frequent in a base cluster than among all objects. For an
object of base cluster c, the object itself is replaced by a random object, so that it does not support its own label:

    lift(t) = (n_ct - [t is the object's own label] + p_t) / (n_c p_t)

where n_ct is the number of members of c with label t, n_c the number of members of c, and p_t the share of t in all
objects. The lift of a label without members in c is 1 / n_c, so a larger cluster is stronger evidence. Lifts are pooled
by the geometric mean over the clusterings, in which one clear contradiction has more weight than slight impurity in all
clusterings.
"""

from dataclasses import dataclass

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.similarity.base import LookedUp


@dataclass(frozen=True)
class Lifts:
    """Logarithms of lifts in tables, for look-up by label rows."""

    of_others: LookedUp  # sums over the clusters of a row, for labels other than the row's own
    own: np.ndarray  # (N_c, k), for the own label of a member
    offsets: np.ndarray

    @classmethod
    def of(cls, shared: np.ndarray, members: np.ndarray, offsets: np.ndarray) -> "Lifts":
        """Return the lifts of k labels, from their members in each base cluster (N_c, k) and clustering (M, k)."""
        of_others, own = shared.copy(), shared - 1.0
        np.maximum(own, 0.0, out=own)
        for of_clustering, start, stop in zip(members, offsets[:-1], offsets[1:], strict=True):
            by_chance = of_clustering / max(of_clustering.sum(), 1.0)
            expected = np.maximum(shared[start:stop].sum(axis=1), 1.0)[:, None] * by_chance
            for found in (of_others[start:stop], own[start:stop]):
                found += by_chance
                np.divide(found, expected, out=found, where=by_chance > 0)
                found[:, by_chance == 0] = (
                    1.0  # a clustering that labels no object of this label has no evidence about it
                )
                np.log(found, out=found)
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
            for column, offset in zip(codes.T, self.offsets[:-1], strict=True):
                known = column != rows.ensemble.missing_code
                own[known] += self.own[offset + column[known], labels[known]]
            pooled[each, labels] = own
        pooled /= np.maximum(counted, 1)[:, None]
        pooled -= pooled.max(axis=1, keepdims=True)
        np.exp(pooled, out=pooled)
        found: np.ndarray = pooled[each, labels] / pooled.sum(axis=1)
        return found
