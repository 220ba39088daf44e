"""Matching of the objects in two files: by name if both files contain the names of objects, otherwise by position."""

import os
from typing import TYPE_CHECKING

import numpy as np

from gpuens.io.kinds import Path_
from gpuens.labels.object_names import find_names

if TYPE_CHECKING:
    import pandas as pd


def places_of(ids: "pd.Index | None", path: Path_, others: "pd.Index | None", other_path: Path_) -> np.ndarray | None:
    """Return the position (n_objects,) of each object in another file, or None if both files have the same order.

    Raises
    ------
    ValueError
        If the files name different objects, or if a name occurs twice in files of different order.
    """
    if ids is None or others is None:
        return None
    wanted, there = ids.astype(str), others.astype(str)
    if wanted.equals(there):
        return None
    return find_names(
        wanted,
        there,
        (os.fspath(path), os.fspath(other_path)),
        "path {whose!r} gives several objects the name {object!r}, so they cannot be found in another file; make the "
        "names different, or leave them out.",
        "path {whose!r} has an object {object!r} that {other!r} lacks; both files must have the same objects, in any "
        "order.",
    )
