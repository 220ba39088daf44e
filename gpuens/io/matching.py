"""Two files of the same objects: where both name them, objects go together by their names, and else by their places."""

import os
from typing import TYPE_CHECKING

import numpy as np

from gpuens.io.kinds import Path_
from gpuens.labels.object_names import find_names

if TYPE_CHECKING:
    import pandas as pd


def places_of(ids: "pd.Index | None", path: Path_, others: "pd.Index | None", other_path: Path_) -> np.ndarray | None:
    """Return at which place of another file (n_objects,) each object of a file is; None if all are in their own.

    Raises
    ------
    ValueError
        If the files name different objects, or one in another order than the other and a name twice.
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
        "path {whose!r} gives several objects the name {object!r}, so that they are not to be found in another file; "
        "make the names different, or leave them out.",
        "path {whose!r} has an object {object!r} that {other!r} has not; both must be of the same objects, in any "
        "order.",
    )
