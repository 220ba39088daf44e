"""Co-association of listed pairs of objects, such as the edges of a graph, and the agreement of clusterings on them."""

import numpy as np

from gpuens.labels.ensemble import Ensemble
from gpuens.runtime import device as devices

PAIRS_AT_A_TIME = 2**18  # pairs of objects whose labels are compared at a time, so that they stay in the cache


def shares_of_pairs(
    ensemble: Ensemble, first: np.ndarray, second: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the share of the M clusterings that put the objects of each pair into one cluster (eq 12), (n_pairs,).

    With the weights (M,) of the clusterings, it is their share of the sum of the weights.
    """
    codes, missing = ensemble.codes, ensemble.missing_code
    shares = np.empty(len(first))
    weights = np.ones(ensemble.n_clusterings, dtype=np.int64) if weights is None else weights
    total = np.cumsum(weights)[-1]  # in the order of the clusterings, so that the share of all is 1

    def compare(start: int, stop: int) -> None:
        for low in range(start, stop, PAIRS_AT_A_TIME):
            pairs = slice(low, min(stop, low + PAIRS_AT_A_TIME))
            equal_weights = np.zeros(pairs.stop - low, dtype=weights.dtype)
            for column, weight in zip(codes.T, weights, strict=True):
                first_codes = column.take(first[pairs])
                equal = first_codes == column.take(second[pairs])
                equal_weights += weight * (equal & (first_codes != missing) if ensemble.has_missing else equal)
            np.divide(equal_weights, total, out=shares[pairs])

    devices.over_ranges(compare, len(first), grain=devices.worth_a_thread(10.0 * ensemble.n_clusterings))
    return shares


def agreement_on_pairs(shares: np.ndarray, weights: np.ndarray) -> float:
    """Return Fleiss' kappa of M clusterings that put the objects of each pair into one cluster or into two.

    ``shares`` c (n_pairs,) are those of `shares_of_pairs`, and ``weights`` w (M,) those of the clusterings. With the
    mean p of the shares,

        κ = (D - p²) / (p - p²),   D = (mean(c²) - s p) / (1 - s),   s = Σ_m w_m² / (Σ_m w_m)²:

    1 for equal clusterings, about 0 for independent ones, nan for a single one. D is the probability that two different
    clusterings both put a random pair into one cluster (with unequal weights, as if each did so for a share p of them).

    >>> import numpy as np
    >>> from gpuens.labels.pair_shares import agreement_on_pairs
    >>> round(agreement_on_pairs(np.array([1.0, 1.0, 0.0, 0.5]), np.ones(2)), 3)
    0.467
    """
    p, concentration = float(np.mean(shares)), float(np.sum(weights**2.0) / np.sum(weights, dtype=float) ** 2)
    if concentration > 1 - 1e-9:
        return float("nan")
    if not 0.0 < p < 1.0:
        return 1.0
    both = (float(np.mean(shares**2)) - concentration * p) / (1 - concentration)
    return (both - p * p) / (p - p * p)
