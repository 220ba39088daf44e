"""How far clusterings speak for a label: lifts of labels in base clusters, and their pool over the clusterings.

The lift of a label is the factor by which it is more frequent in a base cluster than among all objects. For an object
of base cluster c, replaced by an object drawn at random so that it does not speak for itself,

    lift(t) = (n_ct - [t is the object's own label] + p_t) / (n_c p_t)

with n_ct the members of c that have label t, n_c all of them, and p_t the share of t in all objects. A label without
members in c has 1 / n_c: the larger a cluster, the more it says. The pool is the geometric mean over the clusterings,
in which a clear contradiction weighs more than a little impurity everywhere.
"""

from dataclasses import dataclass

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.similarity.base import LookedUp


@dataclass(frozen=True)
class Lifts:
    """Logarithms of lifts, which rows look up."""

    of_others: LookedUp  # sums over a row's clusters, for labels that are not the row's own
    own: np.ndarray  # (N_c, k), for the own label of a member
    offsets: np.ndarray

    @classmethod
    def of(cls, shared: np.ndarray, members: np.ndarray, offsets: np.ndarray) -> "Lifts":
        """Return the lifts of k labels from members with each in base clusters (N_c, k) and in clusterings (M, k)."""
        of_others, own = shared.copy(), shared - 1.0
        np.maximum(own, 0.0, out=own)
        for of_clustering, start, stop in zip(members, offsets[:-1], offsets[1:], strict=True):
            by_chance = of_clustering / max(of_clustering.sum(), 1.0)
            expected = np.maximum(shared[start:stop].sum(axis=1), 1.0)[:, None] * by_chance
            for found in (of_others[start:stop], own[start:stop]):
                found += by_chance
                np.divide(found, expected, out=found, where=by_chance > 0)
                found[:, by_chance == 0] = 1.0  # the clustering labels no member of the label and says nothing of it
                np.log(found, out=found)
        return cls(LookedUp(of_others), own, offsets)

    def confidence(
        self, rows: Rows, codes: np.ndarray, labels: np.ndarray, counted: np.ndarray, *, new: bool
    ) -> np.ndarray:
        """Return the share of each row's label in the sum of the pooled lifts (G,), from 0 to 1.

        ``codes`` (G, M) are those of the rows on the host, ``counted`` (G,) the clusterings that count for each.
        ``new``: the rows are not among the members, and so do not speak for themselves in any case.
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
