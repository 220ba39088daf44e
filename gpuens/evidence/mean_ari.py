"""A lower bound of one minus the mean adjusted Rand index with the clusterings, for any partition.

Let S be the number of ordered pairs that the partition puts together, n_m that of clustering m, D_m the number of pairs
on which the two disagree, and P = N (N - 1). Then

    1 - ARI_m = D_m / (2 d_m(S)),   d_m(S) = (S + n_m) / 2 - S n_m / P

So for a known S, the loss is that of Binder with the weight w_m = 1 / (2 M d_m(S)) of clustering m: with β_ij = Σ w_m
over the clusterings that put i and j together, putting them together gains 2 β_ij - Σ w_m beside the loss of all apart,
Σ w_m n_m. For L ≤ S ≤ U, the larger of d_m(L) and d_m(U) takes the place of d_m(S), because d_m is linear. As S is
bounded too, a pair may have a price λ of any sign:

    max_x Σ g_ij x_ij ≤ max_x Σ (g_ij - λ) x_ij + (λ U if λ > 0, else λ L)

The gains are bounded by `pair_gains`, first by pairs, and by triangles where it matters. The interval of S with the
smallest bound is divided until it is narrow; its bound then holds for every S. One cluster, S = P, and clusters of one
object, S = 0, stand apart.
"""

import heapq
import math

import numpy as np

from gpuens.evidence.pair_gains import bound_gain
from gpuens.labels.rows import Rows
from gpuens.runtime import progress
from gpuens.similarity.diagonal import Diagonal

# largest ratio of the ends of an interval that is not divided any more; narrower ones gain about .5 % of the loss
NARROW = 1.05
HALVINGS_OF_A_PRICE = 12  # a price is found among 2^12
PRICED_ROWS = 256  # about so many rows are compared with all rows to find a price


def bound_ari_loss(rows: Rows, by_triangles: bool) -> float:
    """Return a lower bound of one minus the mean adjusted Rand index of any partition, for distinct rows.

    The bound is by pairs alone, or also by triangles.
    """
    n, pairs = rows.n_objects, float(rows.n_objects) * (rows.n_objects - 1)
    sizes = [of_clustering.astype(np.float64) for of_clustering in rows.sizes_by_clustering()]
    together = np.array([(of_clustering * (of_clustering - 1)).sum() for of_clustering in sizes])
    extremes = 1.0 - max(np.mean(together == 0), np.mean(together == pairs))
    ends = 2.0, float(n - 1) * (n - 2)
    heap = [(_bound_between(rows, together, *ends, 0), *ends, 0)]  # bound, ends, rounds of triangles
    with progress.bar(description="intervals of numbers of pairs") as bar:
        while heap[0][2] > NARROW * heap[0][1] or heap[0][3] < by_triangles:
            _, low, high, _ = heapq.heappop(heap)
            if high > NARROW * low:
                middle = _middle(low, high, pairs)
                parts = [(low, middle, 0), (middle, high, 0)]
            else:
                parts = [(low, high, 1)]
            for part in parts:
                heapq.heappush(heap, (_bound_between(rows, together, *part), *part))
            bar.update(1)
    return min(float(extremes), heap[0][0])


def _middle(low: float, high: float, pairs: float) -> float:
    """Return the number S between two others at which S / (P - S) is their geometric mean."""
    odds = math.sqrt(low / (pairs - low) * (high / (pairs - high)))
    return pairs * odds / (1 + odds)


def _bound_between(rows: Rows, together: np.ndarray, low: float, high: float, rounds: int) -> float:
    """Return the bound for partitions that put ``low`` to ``high`` pairs together; ``together`` (M,) are n_m."""
    shares = together / (float(rows.n_objects) * (rows.n_objects - 1))
    ranges = np.maximum(*((end + together) / 2 - end * shares for end in (low, high)))
    weights = 1 / (2 * rows.n_clusterings * ranges)
    gains = Diagonal(np.repeat(weights, np.diff(rows.offsets)), rows.offsets).tile(rows, 0, len(rows))
    gains *= 2 * rows.n_clusterings
    gains -= weights.sum()
    counts = rows.counts.astype(np.float64)
    price = _price(gains, counts, low, high)
    gains -= price
    return float(weights @ together) - bound_gain(gains, counts, rounds) - price * (high if price > 0 else low)


def _price(gains: np.ndarray, counts: np.ndarray, low: float, high: float) -> float:
    """Return a price of pairs at which about ``low`` to ``high`` ordered pairs of objects have a larger gain.

    Any price gives a bound; a sample of the rows finds one that is nearly the best.
    """
    step = -(-len(gains) // PRICED_ROWS)
    sample, weights = gains[::step], counts[::step] * (counts.sum() / counts[::step].sum())
    within = gains.diagonal()[::step]  # an object forms no pair with itself

    def n_above(price: float) -> float:
        return float(weights @ ((sample > price) @ counts - (within > price)))

    free = n_above(0.0)
    if low <= free <= high:
        return 0.0
    bottom, top, n_pairs = (0.0, float(gains.max()), high) if free > high else (float(gains.min()), 0.0, low)
    for _ in range(HALVINGS_OF_A_PRICE):
        middle = (bottom + top) / 2
        bottom, top = (middle, top) if n_above(middle) > n_pairs else (bottom, middle)
    return (bottom + top) / 2
