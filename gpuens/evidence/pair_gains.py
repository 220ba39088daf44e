"""An upper bound of the gain that a partition can collect from the pairs of objects that it puts together.

Let g_ij be the gain, of any sign, of putting i and j together, and x_ij = 1 if a partition does so. No partition
collects more than Σ max(g_ij, 0), the bound by pairs. It collects less where gains contradict each other: if g_ij and
g_jk are positive and g_ik is negative, a partition loses g_ij or g_jk, or pays -g_ik, because

    (1 - x_ij) + (1 - x_jk) + x_ik ≥ 1

So each such triangle lowers the bound by any y_ijk ≥ 0, as long as the triangles of each pair together take at most
|g_ij| from it. This is the dual of the linear program of correlation clustering (Charikar, Guruswami & Wirth, Journal
of Computer and System Sciences 71 (2005)), here solved greedily: one j after the other, let R_ik be what is left of
the negative gains among its partners, u_i what is left of g_ij, and f_i = min(1, u_i / Σ_k R_ik). Then y_ijk = R_ik
min(f_i, f_k) takes at most u_i from each pair ij.

Rows of equal labels have one gain. Triangles of rows are shared evenly by the triangles of their objects, so the bound
holds even for partitions that divide the objects of a row.
"""

import numpy as np

from gpuens.runtime import progress


def bound_gain(gains: np.ndarray, counts: np.ndarray, rounds: int) -> float:
    """Return an upper bound of Σ gains over the ordered pairs of objects that a partition puts together.

    ``gains`` (G, G), float64 and symmetric, are for pairs of objects of two rows, or of the same row; the memory is
    used for the work. ``counts`` (G,) are the objects of the rows. Triangles are searched in ``rounds`` over all rows.
    """
    gains *= counts[:, None]
    gains *= counts
    within = np.maximum(gains.diagonal(), 0.0) @ ((counts - 1) / counts)  # pairs of different objects of one row
    np.fill_diagonal(gains, 0.0)
    across = float(np.maximum(gains, 0.0).sum())
    return float(within) + across - 2 * sum(_pack_triangles(gains) for _ in range(rounds))


def _pack_triangles(gains: np.ndarray) -> float:
    """Take triangles with two positive and a negative pair from ``gains``, in place; return the sum of their y."""
    total = 0.0
    for j in progress.bar(range(len(gains)), "triangles of rows"):
        partners = np.flatnonzero(gains[j] > 0)
        block = gains.take(partners, axis=0).take(partners, axis=1)
        conflicts = block.min(axis=1, initial=0.0) < 0
        if not conflicts.any():
            continue
        partners, block = partners[conflicts], block[conflicts][:, conflicts]
        negative = np.maximum(-block, 0.0)
        shares = np.minimum(1.0, gains[j, partners] / negative.sum(axis=1))
        negative *= np.minimum(shares[:, None], shares)
        costs = negative.sum(axis=1)
        gains[partners[:, None], partners] = block + negative
        gains[j, partners] = gains[partners, j] = np.maximum(gains[j, partners] - costs, 0.0)
        total += float(costs.sum()) / 2
    return total
