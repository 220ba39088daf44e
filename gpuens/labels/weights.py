"""Weights of objects as numbers of copies: every method counts objects, and a weight is more of the same object.

    weights ─▶ whole numbers of a unit ─▶ counts of `Rows` ─▶ the counts of core groups

Whole numbers have the unit 1. Real weights are multiples of a unit, so that the kernels for counts work on them, too,
and their sums are exact, in any order.
"""

from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from gpuens.runtime import checks

WHOLE = 2.0**53  # largest sum of whole numbers that are given as floats
PARTS = (1, 2, 3, 4, 8, *(10**digits for digits in range(1, 7)))  # a unit is tried as 1 / part, in this order


class Copies(NamedTuple):
    """Weights of objects as whole multiples of a unit.

    Attributes
    ----------
    counts : ndarray (n_objects,), int64, at least 1
    unit : float
        The weight of a count of 1; it is 1 if all weights are whole numbers.
    """

    counts: np.ndarray
    unit: float

    @property
    def whole(self) -> bool:
        return self.unit == 1.0


def copies_of(weights: Any, n_objects: int, n_clusterings: int) -> Copies:
    """Return weights (n_objects,) as whole multiples of a unit.

    The unit is 1, 1/2, 1/3, 1/4, 1/8, .1, .01, … or .000001, whichever first has all weights as its multiples. If none
    has, or if their sum is more than ⌊√(2⁶² / M)⌋ of it, the unit is this part of the sum, and the weights are rounded
    to it, but never to 0. The squares of sums then fit 64-bit integers for each of the M clusterings.

    Raises
    ------
    ValueError
        For weights that are not ``n_objects`` positive and finite numbers, and for sums above 2⁶² (floats: 2⁵³).

    Examples
    --------
    >>> from gpuens.labels.weights import copies_of
    >>> counts, unit = copies_of([0.5, 2, 1.5], 3, n_clusterings=10)
    >>> counts.tolist(), unit
    ([1, 4, 3], 0.5)
    """
    array = checks.host_array(weights, f"sample_weight must be {n_objects} numbers, one per object")
    if array.shape == (n_objects,) and array.dtype.kind in "iuf" and (array == 0).any():
        raise ValueError(
            f"sample_weight is zero for {np.count_nonzero(array == 0)} object(s), the first is object "
            f"{int(np.argmax(array == 0))}; leave them out of fit, and predict labels them afterwards."
        )
    found = checks.check_weights(array, n_objects, "sample_weight")
    assert found is not None
    if found.dtype.kind == "i":
        return Copies(found, 1.0)
    total, most = float(found.sum()), float(isqrt(2**62 // n_clusterings))
    for part in PARTS:
        if total * part > (WHOLE if part == 1 else most):
            break
        if (np.rint(found[:1000] * part) / part == found[:1000]).all():
            counts = np.rint(found * part)
            if (counts / part == found).all():
                return Copies(counts.astype(np.int64), 1.0 / part)
    if (np.rint(found) == found).all():
        raise ValueError(f"sample_weight adds up to {total:g}, beyond exact whole numbers of floats; scale it down.")
    unit = total / most
    return Copies(np.maximum(np.rint(found / unit), 1.0).astype(np.int64), unit)
