"""Trees of names in tables: a child and its parent in each line, as `labels_in_tree` takes them."""

import os
from typing import Any

from gpuens.io.columns import TextOptions
from gpuens.io.content import input_kind
from gpuens.io.opening import open_file
from gpuens.io.paths import TABLE_INPUTS, TEXT_INPUTS, Path_
from gpuens.labels.name_tree import child_and_parent


def read_name_tree(path: Path_) -> Any:
    """Return the columns child and parent of a table as a DataFrame; an empty parent is missing.

    Without these titles, they are the first two columns. A first line of text is a pair of names, and no titles, if one
    of them is also below.
    """
    kind = input_kind(path)
    if kind not in TABLE_INPUTS:
        raise ValueError(f"path {os.fspath(path)!r} is a {kind} file; name a table of two columns, child and parent.")
    opened = open_file(path, kind, None, TextOptions())
    if len(opened.names) < 2:
        raise ValueError(f"path {os.fspath(path)!r} has one column; a tree has two, child and parent.")
    places = child_and_parent(opened.names)
    table = opened.read(places)
    below = {name for m in range(2) for name in table.iloc[:, m].dropna().unique()}
    if kind in TEXT_INPUTS and below & {opened.names[place] for place in places}:
        table = open_file(path, kind, None, TextOptions(header=False)).read(places)
    return table
