"""The names of objects in the indexes of pandas: what is of the same objects goes together by names, else by places.

An index 0, 1, 2, … is no names, as pandas gives it to whatever has none. It is taken for some where another one has
exactly these numbers in another order, as after sorting, with a warning.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime.device import chunked


def index_of(values: Any) -> Any:
    """Return the index of a Series or DataFrame in memory, None of anything else."""
    if not (hasattr(values, "iloc") and hasattr(values, "index")) or chunked(values):
        return None
    return values.index.to_pandas() if hasattr(values.index, "to_pandas") else values.index  # cuDF's


def index_of_all(values: Sequence[Any]) -> Any:
    """Return the index in whose order `in_one_order` gives values, None without any."""
    indexes = [index_of(one) for one in values]
    first = _first(indexes)
    return None if first is None else indexes[first]


def in_one_order(values: Sequence[Any], names: Sequence[Any]) -> list[Any]:
    """Return values of the same objects, called ``names``, in the order of the first that has names of objects.

    Raises
    ------
    ValueError
        If they name different objects, or are in different orders and some of them have no names, or one twice.
    """
    indexes = [index_of(one) for one in values]
    first = _first(indexes)
    if first is None:
        return list(values)
    places = [places_of(indexes[first], index, names[first], name) for index, name in zip(indexes, names, strict=True)]
    moved = next((m for m, of_one in enumerate(places) if of_one is not None), None)
    if moved is not None:
        for of_one, index, name in zip(places, indexes, names, strict=True):
            if of_one is None and (index is None or not index.equals(indexes[first])):
                raise ValueError(
                    f"{name} has no names of objects, and {names[moved]} has those of {names[first]} in another order: "
                    "give all of them an index, or pass arrays in one order."
                )
    return [one if of_one is None else one.iloc[of_one] for one, of_one in zip(values, places, strict=True)]


def _first(indexes: list[Any]) -> int | None:
    """Return the position of the index that sets the order: the first with names, or one that counts alike."""
    given = [m for m, index in enumerate(indexes) if index is not None]
    named = next((m for m in given if not _counts(indexes[m])), None)
    if named is None or _is_permutation(indexes[named], len(indexes[given[0]])):
        return next(iter(given), None)
    return named


def in_order_of(wanted: Any, values: Any, name: str, of: str = "labels") -> Any:
    """Return values, called ``name``, in the order of an index, or as they are where one of both has no names.

    Raises
    ------
    ValueError
        As `in_one_order`.
    """
    places = places_of(wanted, index_of(values), of, name)
    return values if places is None else values.iloc[places]


def places_of(wanted: Any, index: Any, of: object, name: object) -> np.ndarray | None:
    """Return where the objects of one index are in another (n_objects,), None where each is in its own place.

    ``of`` and ``name`` are the owners of the two indexes, for refusals.
    """
    if wanted is None or index is None or wanted is index or len(wanted) != len(index) or wanted.equals(index):
        return None
    counted = _counts(wanted), _counts(index)
    if any(counted):
        if not _is_permutation(index if counted[0] else wanted, len(index)):
            return None
        checks.warn(
            f"{name} has the index of {of} in another order, and goes by it; pass .to_numpy() of one of them if it "
            "names nothing."
        )
    return find_names(
        wanted,
        index,
        (of, name),
        "{whose} names several objects {object!r}, and those of {owners[0]} and {owners[1]} are not in one order: make "
        "the names different, or pass .to_numpy() of objects in one order.",
        "{whose} has an object {object!r} that {other} has not: pass the same objects, in any order (reindex fills "
        "what is missing with NaN), or .to_numpy() if the index names nothing.",
    )


def find_names(wanted: Any, index: Any, owners: tuple[object, object], twice: str, lacking: str) -> np.ndarray:
    """Return where the names of one index are in another (n_objects,); refuse names there twice, and others.

    ``owners`` have these indexes. The refusals ``twice`` and ``lacking`` are filled in with the owner ``whose`` index
    has the fault, the ``other`` owner, the ``object``'s name and the ``owners``.
    """
    sides = ((wanted, index, *owners), (index, wanted, *owners[::-1]))
    for names, _, whose, other in sides:
        if not names.is_unique:
            first = names[names.duplicated()][0]
            raise ValueError(twice.format(whose=whose, other=other, object=first, owners=owners))
    for names, others, whose, other in sides:
        if len(alone := names.difference(others, sort=False)):
            raise ValueError(lacking.format(whose=whose, other=other, object=alone[0], owners=owners))
    found: np.ndarray = index.get_indexer(wanted)
    return found


def _counts(index: Any) -> bool:
    """Return whether an index is 0, 1, 2, …."""
    if hasattr(index, "step"):  # a RangeIndex
        return bool(index.start == 0 and index.step == 1)
    return bool(
        index.dtype.kind in "iu"
        and len(index)
        and index[0] == 0
        and np.array_equal(index.to_numpy(), np.arange(len(index)))
    )


def _is_permutation(index: Any, n: int) -> bool:
    """Return whether an index has the numbers 0 … n - 1, in any order."""
    if index.dtype.kind not in "iu" or len(index) != n or not n:
        return False
    return bool(index.min() == 0 and index.max() == n - 1 and index.is_unique)
