"""Matching of the objects in two files: by name; by position only if neither file has names, or if the user says so."""

import os
from typing import Any

import numpy as np

from gpuens.io.kinds import Path_
from gpuens.labels.object_names import find_names, names_of_objects, start_of_count

BY_POSITION = "by_position=True (--by-position)"  # parameter and option that match objects by position


def places_of(
    ids: Any,
    path: Path_,
    others: Any,
    other_path: Path_,
    *,
    partial: bool = False,
) -> np.ndarray | None:
    """Return the position (n_objects,) of each object in another file, or None if both files have the same order.

    ``ids`` and ``others`` are pandas indexes of the objects in the files, RangeIndexes if these are only numbers of the
    rows, or None. If ``partial`` is true, the files may share some of their objects only, which a warning tells; -1
    stands for an object that the other file lacks.

    Raises
    ------
    ValueError
        If only one of the files names its objects; if the files name different objects, or none in common; if a name
        occurs twice in files of different order.
    """
    named, others_named = names_of_objects(ids), names_of_objects(others)
    if named is None and others_named is None:
        return None
    if (named is None or others_named is None) and not _same_numbers(ids, others):
        names, which, bare = (others_named, other_path, path) if named is None else (named, path, other_path)
        if start_of_count(names) is not None:
            return None  # names that count the objects tell their position
        title = "" if names.name is None else f", by {str(names.name)!r}"
        raise ValueError(
            f"path {os.fspath(which)!r} names its objects{title}, but path {os.fspath(bare)!r} does not; name them "
            f"there, too, in a first column, or say {BY_POSITION} if both files have the same objects in one order."
        )
    wanted, there = ids.astype(str), others.astype(str)
    if wanted.equals(there):
        return None
    if len(wanted) == len(there) and None not in (start_of_count(ids), start_of_count(others)):
        raise ValueError(
            f"path {os.fspath(path)!r} counts its objects from {wanted[0]} and path {os.fspath(other_path)!r} from "
            f"{there[0]}; write the same names into both, or say {BY_POSITION} if they have the same objects in one "
            "order."
        )
    return find_names(
        wanted,
        there,
        (os.fspath(path), os.fspath(other_path)),
        "path {whose!r} gives several objects the name {object!r}, so they cannot be found in another file; make the "
        f"names different, or leave them out, and say {BY_POSITION} if both files have one order.",
        "path {whose!r} has an object {object!r} that {other!r} lacks; both files must have the same objects, in any "
        f"order, or say {BY_POSITION}.",
        partial=partial,
    )


def _same_numbers(ids: Any, others: Any) -> bool:
    """Return whether one file numbers its rows, and the names in the other are such numbers."""
    if ids is None or others is None:
        return False
    rows, names = (ids, others) if names_of_objects(ids) is None else (others, ids)
    return bool(names.astype(str).isin(rows.astype(str)).all())
