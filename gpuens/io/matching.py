"""Two files of the same objects: where both name them, objects go together by their names, and else by their places."""

import os
from typing import TYPE_CHECKING

import numpy as np

from gpuens.io.kinds import Path_

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
    for names, of in ((wanted, path), (there, other_path)):
        if not names.is_unique:
            raise ValueError(
                f"path {os.fspath(of)!r} gives several objects the name {names[names.duplicated()][0]!r}, so that they "
                "are not to be found in another file; make the names different, or leave them out."
            )
    for names, of, other, lacking in ((wanted, path, there, other_path), (there, other_path, wanted, path)):
        if len(alone := names.difference(other, sort=False)):
            raise ValueError(
                f"path {os.fspath(of)!r} has an object {alone[0]!r} that {os.fspath(lacking)!r} has not; both must be "
                "of the same objects, in any order."
            )
    places: np.ndarray = there.get_indexer(wanted)
    return places
