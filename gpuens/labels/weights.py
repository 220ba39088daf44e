"""Weights of objects as numbers of copies: every method counts objects, and a weight is more of the same object.

    weights ─▶ whole numbers without a common divisor ─▶ counts of `Rows` ─▶ the counts of core groups

Weights are whole multiples of a unit, so that the kernels for counts work on them, and their sums are exact, in any
order. The unit of whole numbers is their greatest common divisor. Weights w and c w are therefore the same input, to
the bit, whatever the unit in which they are given.
"""

from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.frames import as_pandas
from gpuens.runtime import checks

PARTS = (1, 2, 3, 4, 8, *(10**digits for digits in range(1, 7)))  # a unit is tried as 1 / part, in this order
SMALLEST_UNIT = float(np.finfo(np.float64).tiny)  # smaller numbers have less than 53 binary digits


class Copies(NamedTuple):
    """Weights of objects as whole multiples of a unit.

    Attributes
    ----------
    counts : ndarray (n_objects,), int64, at least 1
    unit : int or float
        The weight of a count of 1; it is an int if all weights are whole numbers.
    """

    counts: np.ndarray
    unit: int | float

    @property
    def whole(self) -> bool:
        return integer_unit(self.unit) is not None


def integer_unit(unit: int | float) -> int | None:
    """Return a unit of weights whose multiples are numbers of objects, or None for a unit of fractions."""
    return unit if isinstance(unit, int) else None


def copies_of(weights: Any, n_objects: int, n_clusterings: int) -> Copies:
    """Return weights (n_objects,) as whole multiples of a unit; the counts have no common divisor.

    The unit of whole numbers is their greatest common divisor. That of other weights is a whole multiple of 1/2, 1/3,
    1/4, 1/8, .1, .01, … or .000001, whichever first has all weights as its multiples. If none has, or if their sum is
    more than ⌊√(2⁶² / M)⌋ of it, the unit is this part of the sum, and the weights are rounded to it, but never to 0.
    The squares of sums then fit 64-bit integers for each of the M clusterings.

    Raises
    ------
    ValueError
        For weights that are not ``n_objects`` positive and finite numbers, and for whole numbers whose sum is 2⁶³ or
        more, or above 2⁵³ or 2⁶² / M after division by their common divisor.

    Examples
    --------
    >>> from gpuens.labels.weights import copies_of
    >>> counts, unit = copies_of([0.5, 2, 1.5], 3, n_clusterings=10)
    >>> counts.tolist(), unit
    ([1, 4, 3], 0.5)
    >>> counts, unit = copies_of([3000, 1000, 5000], 3, n_clusterings=10)
    >>> counts.tolist(), unit
    ([3, 1, 5], 1000)
    """
    array = checks.host_array(as_pandas(weights), f"sample_weight must be {n_objects} numbers, one per object")
    if array.shape == (n_objects,) and array.dtype.kind in "iuf" and (array == 0).any():
        raise ValueError(
            f"sample_weight is zero for {np.count_nonzero(array == 0)} object(s), the first is object "
            f"{int(np.argmax(array == 0))}; leave them out of fit, and predict labels them afterwards."
        )
    array = checks.check_positive(array, n_objects, "sample_weight")
    if are_whole(array):
        return whole_copies(array, n_clusterings)
    exact = checks.check_sum(array, "sample_weight")
    total, largest_total = float(exact.sum()), float(isqrt(2**62 // n_clusterings))
    for part in PARTS[1:]:
        if total * part > largest_total:
            break
        if (np.rint(exact[:1000] * part) / part == exact[:1000]).all():
            counts = np.rint(exact * part)
            if (counts / part == exact).all():
                counts, divisor = without_common_divisor(counts)
                return Copies(counts, divisor / part)
    unit = total / largest_total
    if unit < SMALLEST_UNIT:
        raise ValueError(f"sample_weight adds up to {total:g}, too little for exact shares of it; scale it up.")
    counts, divisor = without_common_divisor(np.maximum(np.rint(exact / unit), 1.0))
    return Copies(counts, divisor * unit)


def whole_copies(weights: np.ndarray, n_clusterings: int, subject: str | None = None) -> Copies:
    """Return positive whole numbers (n,) as multiples of their greatest common divisor; refuse too large a sum.

    ``subject`` is the name of the computation in the refusal.
    """
    if weights.dtype.kind == "f":
        checks.check_sum(weights, "sample_weight")
    counts, divisor = without_common_divisor(weights)
    total = float(counts.sum(dtype=np.float64))
    exact = int(counts.sum(dtype=np.int64)) if total < 2.0**62 else int(total)
    checks.check_total(exact, n_clusterings, divisor, subject)
    return Copies(counts.astype(np.int64), divisor)


def are_whole(weights: np.ndarray) -> bool:
    """Return whether all numbers are whole, in an array of integers or of floats."""
    return weights.dtype.kind in "iu" or bool((np.rint(weights) == weights).all())


def without_common_divisor(integers: np.ndarray) -> tuple[np.ndarray, int]:
    """Return whole numbers, of any size, divided by their greatest common divisor, and this divisor."""
    if integers.dtype.kind == "f" and integers.max(initial=0.0) >= 2.0**63:  # Python's integers are exact
        numbers = np.array([int(number) for number in integers], dtype=object)
        divisor = int(np.gcd.reduce(numbers))
        return (numbers // divisor).astype(np.float64), divisor
    numbers = integers.astype(np.int64) if integers.dtype.kind == "f" else integers
    divisor = int(np.gcd.reduce(numbers))  # 0 of no numbers
    return numbers if divisor < 2 else numbers // divisor, divisor
