"""Names of objects in pandas indexes: data of the same objects are matched by name wherever two of them have names.

An index 0, 1, 2, … is only a count of rows, because pandas gives it to data without an index. Where another index has
exactly these numbers in another order, as after sorting, both count as names, with a warning. Beside other names it is
refused: whether the rows are in one order, only the caller knows. Arrays, which have no index, go by position.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime.device import chunked

Path = str | os.PathLike[str]

EXACT = 2**53  # whole numbers below are exact as float64

BY_POSITION = "by_position=True (--by-position)"  # parameter and option that match the objects of files by position
# advice for data of different objects
REINDEX = "reindex fills what is missing with NaN"
JOIN = "gpuens.Ensemble.join fills what is missing"


def exact_names(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return arrays of names in one dtype, in which names are equal only if they were equal before.

    Integers are int64 or, if some are larger and none is negative, uint64. Floats become integers if all are whole and
    exact. Other mixtures of types are objects: NumPy and pandas would make float64 of int64 and uint64, in which
    different names from 2⁵³ on are equal.

    >>> from gpuens.labels.object_names import exact_names
    >>> [part.tolist() for part in exact_names([np.array([2**63 + 1], np.uint64), np.array([-1])])]
    [[9223372036854775809], [-1]]
    """
    integers = [_whole_names(part) for part in parts]
    kinds = {part.dtype.kind for part in integers}
    if kinds <= set("iu"):
        for dtype in (np.int64, np.uint64):
            bounds = np.iinfo(dtype)
            if all(
                bounds.min <= int(part.min(initial=0)) and int(part.max(initial=0)) <= bounds.max for part in integers
            ):
                return [part.astype(dtype, copy=False) for part in integers]
    elif kinds <= set("iuf") and all(_are_exact(part) for part in integers if part.dtype.kind != "f"):
        return [part.astype(np.float64) for part in integers]
    return [part.astype(object) for part in integers]


def _whole_names(names: np.ndarray) -> np.ndarray:
    """Return floats as integers if all are whole and exact, other names unchanged."""
    if names.dtype.kind != "f" or not (np.isfinite(names).all() and (names == np.floor(names)).all()):
        return names
    return names.astype(np.int64) if _are_exact(names) else names


def _are_exact(numbers: np.ndarray) -> bool:
    return bool(numbers.min(initial=0) > -EXACT and numbers.max(initial=0) < EXACT)


def exact_indexes(indexes: Sequence[Any]) -> list[Any]:
    """Return pandas indexes, those of numbers as `exact_names`, so that pandas compares and joins them exactly."""
    indexes = [_as_numpy_index(index) for index in indexes]
    if len({index.dtype for index in indexes}) == 1 or any(index.dtype.kind not in "iuf" for index in indexes):
        return indexes
    import pandas as pd

    exact = exact_names([index.to_numpy() for index in indexes])
    return [pd.Index(names, dtype=names.dtype, name=index.name) for names, index in zip(exact, indexes, strict=True)]


def _as_numpy_index(index: Any) -> Any:
    """Return an index of numbers of a pandas dtype, such as Int64, in NumPy's dtype if no name is missing."""
    import pandas as pd

    dtype = getattr(index.dtype, "numpy_dtype", None)
    if dtype is None or dtype.kind not in "iuf" or index.hasnans:
        return index
    return pd.Index(index.to_numpy(dtype=dtype), name=index.name)


def index_of_names(names: Sequence[Any]) -> Any:
    """Return a pandas Index of names: integers if all are and 64 bits hold them, else the objects, such as tuples."""
    import pandas as pd

    array = np.fromiter(names, dtype=object, count=len(names))
    if all(isinstance(name, (int, np.integer)) and not isinstance(name, (bool, np.timedelta64)) for name in names):
        bounds = min(names, default=0), max(names, default=0)
        fitting = (d for d in (np.int64, np.uint64) if np.iinfo(d).min <= bounds[0] and bounds[1] <= np.iinfo(d).max)
        array = array.astype(next(fitting, object))
    return pd.Index(array, dtype=array.dtype, tupleize_cols=False)


def index_of(values: Any) -> Any:
    """Return the index of a Series or DataFrame in memory, None for any other object."""
    if not (hasattr(values, "iloc") and hasattr(values, "index")) or chunked(values):
        return None
    return values.index.to_pandas() if hasattr(values.index, "to_pandas") else values.index  # to_pandas: cuDF


def index_of_all(values: Sequence[Any]) -> Any:
    """Return the index that sets the order of `in_one_order`, None if no value has an index."""
    indexes = [index_of(value) for value in values]
    first = _index_that_sets_order(indexes)
    return None if first is None else indexes[first]


def in_one_order(values: Sequence[Any], names: Sequence[Any], instead: str = REINDEX) -> list[Any]:
    """Return values of the same objects, all in the order of the first value that names its objects.

    ``names`` are the names of the values in error messages, and ``instead`` is the advice for different objects.

    Raises
    ------
    ValueError
        If values name different objects; if their orders differ and one of them has no names, or has a name twice.
    """
    indexes = [index_of(value) for value in values]
    first = _index_that_sets_order(indexes)
    if first is None:
        return list(values)
    of_each = zip(indexes, names, strict=True)
    places = [places_of(indexes[first], index, names[first], name, instead) for index, name in of_each]
    reordered = next((m for m, own_places in enumerate(places) if own_places is not None), None)
    if reordered is not None:
        for own_places, index, name in zip(places, indexes, names, strict=True):
            if own_places is None and (index is None or not index.equals(indexes[first])):
                raise ValueError(
                    f"{name} has no names of objects, but {names[reordered]} has the names of {names[first]} in "
                    "another order: give all inputs an index, or pass arrays in one order."
                )
    return [
        value if own_places is None else value.iloc[own_places]
        for value, own_places in zip(values, places, strict=True)
    ]


def _index_that_sets_order(indexes: list[Any]) -> int | None:
    """Return the position of the index that sets the order: the first with names but 0 … n - 1, else the first."""
    indexed = [m for m, index in enumerate(indexes) if index is not None]
    named = next((m for m in indexed if not counts_from_0(indexes[m])), None)
    if named is None or is_permutation(indexes[named], len(indexes[indexed[0]])):
        return next(iter(indexed), None)
    return named


def in_order_of(target: Any, values: Any, name: str, owner: str = "labels") -> Any:
    """Return values in the order of the index ``target``, or unchanged if one of the two has no names.

    ``name`` is the name of the values in error messages.

    Raises
    ------
    ValueError
        As in `in_one_order`.
    """
    places = places_of(target, index_of(values), owner, name)
    return values if places is None else values.iloc[places]


def places_of(target: Any, index: Any, owner: object, name: object, instead: str = REINDEX) -> np.ndarray | None:
    """Return the places (n_objects,) of the objects of ``target`` in ``index``, None if both have the same order.

    ``owner`` and ``name`` are the owners of the two indexes in error messages, and ``instead`` is the advice for
    different objects.
    """
    if target is None or index is None or target is index or len(target) != len(index):
        return None
    target, index = exact_indexes([target, index])
    if target.equals(index):
        return None
    count_rows = counts_from_0(target), counts_from_0(index)
    if any(count_rows):
        named_owner, bare_owner, names = (name, owner, index) if count_rows[0] else (owner, name, target)
        if not is_permutation(names, len(index)):
            raise ValueError(
                f"{named_owner} has an index that names the objects, such as {name_at(names, 0)!r}, but that of "
                f"{bare_owner} only counts them, 0, 1, 2, …: give {bare_owner} the same index, or pass .to_numpy() of "
                "one if both are in one order."
            )
        checks.warn(
            f"{name} has the index of {owner} in another order, and goes by it; pass .to_numpy() of one of them if it "
            "names nothing."
        )
    return find_names(
        target,
        index,
        (owner, name),
        "{owner} names several objects {object!r}, and those of {owners[0]} and {owners[1]} are not in one order: make "
        "the names different, or pass .to_numpy() of objects in one order.",
        "{owner} has an object {object!r} that {other} has not: pass the same objects, in any order ("
        f"{instead}), or .to_numpy() if the index names nothing.",
    )


def match_files(ids: Any, path: Path, other_ids: Any, other_path: Path, *, partial: bool = False) -> np.ndarray | None:
    """Return the position (n_objects,) of each object in another file, or None if both files have the same order.

    ``ids`` and ``other_ids`` are pandas indexes of the objects in the files, RangeIndexes if these are only numbers of
    the rows, or None. If ``partial`` is true, the files may share some of their objects only, which a warning tells; -1
    stands for an object that the other file lacks.

    Raises
    ------
    ValueError
        If only one of the files names its objects; if the files name different objects, or none in common; if a name
        occurs twice in files of different order.
    """
    id_names, other_names = names_of_objects(ids), names_of_objects(other_ids)
    if id_names is None and other_names is None:
        return None
    if (id_names is None or other_names is None) and not _same_numbers(ids, other_ids):
        names, named_path, unnamed_path = (
            (other_names, other_path, path) if id_names is None else (id_names, path, other_path)
        )
        if start_of_count(names) is not None:
            return None  # names that count the objects tell their position
        title = "" if names.name is None else f", by {str(names.name)!r}"
        raise ValueError(
            f"path {os.fspath(named_path)!r} names its objects{title}, but path {os.fspath(unnamed_path)!r} does not; "
            f"name them there, too, in a first column, or say {BY_POSITION} if both files have the same objects in one "
            "order."
        )
    texts, other_texts = ids.astype(str), other_ids.astype(str)
    if texts.equals(other_texts):
        return None
    if len(texts) == len(other_texts) and None not in (start_of_count(ids), start_of_count(other_ids)):
        raise ValueError(
            f"path {os.fspath(path)!r} counts its objects from {texts[0]} and path {os.fspath(other_path)!r} from "
            f"{other_texts[0]}; write the same names into both, or say {BY_POSITION} if they have the same objects in "
            "one order."
        )
    return find_names(
        texts,
        other_texts,
        (os.fspath(path), os.fspath(other_path)),
        "path {owner!r} gives several objects the name {object!r}, so they cannot be found in another file; make the "
        f"names different, or leave them out, and say {BY_POSITION} if both files have one order.",
        "path {owner!r} has an object {object!r} that {other!r} lacks; both files must have the same objects, in any "
        f"order, or say {BY_POSITION}.",
        partial=partial,
    )


def _same_numbers(ids: Any, other_ids: Any) -> bool:
    """Return whether one file numbers its rows, and the names in the other are such numbers."""
    if ids is None or other_ids is None:
        return False
    rows, names = (ids, other_ids) if names_of_objects(ids) is None else (other_ids, ids)
    return bool(names.astype(str).isin(rows.astype(str)).all())


def find_names(
    target: Any, index: Any, owners: tuple[object, object], twice: str, lacking: str, *, partial: bool = False
) -> np.ndarray:
    """Return the places (n_objects,) of the names of ``target`` in ``index``; refuse repeated and missing names.

    ``owners`` are the names of the two owners in error messages. The messages ``twice`` and ``lacking`` are filled in
    with ``owner`` (of the faulty index), ``other`` (the other owner), ``object`` (the name) and ``owners``. If
    ``partial`` is true, only indexes without any common name are refused, and a missing name has the place -1.
    """
    sides = ((target, index, *owners), (index, target, *owners[::-1]))
    for names, _, owner, other_owner in sides:
        if not names.is_unique:
            first = name_at(names, names.duplicated().argmax())
            raise ValueError(twice.format(owner=owner, other=other_owner, object=first, owners=owners))
    places: np.ndarray = index.get_indexer(target)
    for names, other_names, owner, other_owner in sides:
        if partial and (places >= 0).any():
            break
        if len(unmatched := names.difference(other_names, sort=False)):
            raise ValueError(
                lacking.format(owner=owner, other=other_owner, object=name_at(unmatched, 0), owners=owners)
            )
    return places


def name_at(index: Any, place: Any) -> Any:
    """Return the name at a place of an index, a number as Python's, which messages show without its type."""
    return index[int(place) : int(place) + 1].tolist()[0]


def with_row_numbers(index: Any) -> Any:
    """Return an index of row names, or a RangeIndex if they only count the rows from 0 and have no title."""
    import pandas as pd

    return pd.RangeIndex(len(index)) if index.name is None and start_of_count(index) == 0 else index


def start_of_count(index: Any) -> int | None:
    """Return the number, 0 or 1, from which an index of numbers or their texts counts the objects; else return None."""
    n = len(index)
    start = int(str(index[0]) == "1") if n else 0
    if not n or str(index[0]) != str(start) or str(index[n - 1]) != str(start + n - 1):
        return None
    count = np.arange(start, start + n)
    if index.dtype.kind in "iu":
        return start if np.array_equal(index, count) else None
    return start if np.array_equal(index.astype(str), count.astype(str)) else None


def names_of_objects(index: Any) -> Any:
    """Return an index that names objects, None for a RangeIndex from 0 without a title, which only counts the rows."""
    only_counts = index is None or (index.name is None and hasattr(index, "step") and counts_from_0(index))
    return None if only_counts else index


def counts_from_0(index: Any) -> bool:
    """Return whether an index is 0, 1, 2, …."""
    if hasattr(index, "step"):  # a RangeIndex
        return bool(index.start == 0 and index.step == 1)
    return bool(
        index.dtype.kind in "iu"
        and len(index)
        and index[0] == 0
        and np.array_equal(index.to_numpy(), np.arange(len(index)))
    )


def order_of_numbers(index: Any) -> np.ndarray | None:
    """Return the places (n,) of the numbers 0 … n - 1 in an index of them or of their texts; None for another index."""
    n = len(index)
    numbers = index
    if index.dtype.kind == "O":
        texts = np.arange(n).astype(str).astype(object)
        if not index.is_unique or not index.isin(texts).all():
            return None
        numbers = index.astype(np.int64)
    order: np.ndarray = numbers.argsort()
    return order if is_permutation(numbers, n) else None


def is_permutation(index: Any, n: int) -> bool:
    """Return whether an index has the numbers 0 … n - 1, in any order."""
    if index.dtype.kind not in "iu" or len(index) != n or not n:
        return False
    return bool(index.min() == 0 and index.max() == n - 1 and index.is_unique)
