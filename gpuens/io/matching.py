"""Matching of the objects in two files: by name; by position only if neither file has names, or if the user says so."""

import os
from typing import TYPE_CHECKING

import numpy as np

from gpuens.io.kinds import Path_
from gpuens.labels.object_names import find_names, names_of_objects, start_of_count

if TYPE_CHECKING:
    import pandas as pd

BY_POSITION = "by_position=True (--by-position)"  # parameter and option that match objects by position


def places_of(
    ids: "pd.Index | None",
    path: Path_,
    others: "pd.Index | None",
    other_path: Path_,
    *,
    partial: bool = False,
) -> np.ndarray | None:
    """Return the position (n_objects,) of each object in another file, or None if both files have the same order.

    ``ids`` and ``others`` are the names of the objects in the files, RangeIndexes if these are only numbers of the
    rows, or None. If ``partial`` is true, the files may share some of their objects only, which a warning tells; -1
    stands for an object that the other file lacks.

    Raises
    ------
    ValueError
        If only one of the files names its objects; if the files name different objects, or none in common; if a name
        occurs twice in files of different order.
    """
    named, others_named = names_of_objects(ids) is not None, names_of_objects(others) is not None
    if not named and not others_named:
        return None
    if not (named and others_named) and not _same_numbers(ids, others):
        names, which, bare = (ids, path, other_path) if named else (others, other_path, path)
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


def _same_numbers(ids: "pd.Index | None", others: "pd.Index | None") -> bool:
    """Return whether one file numbers its rows, and the names in the other are the same numbers in another order."""
    if ids is None or others is None or len(ids) != len(others):
        return False
    return set(ids.astype(str)) == set(others.astype(str))
