"""Forms of files whose columns are not the clusterings: a line for each label, a cluster in each line, one-hot columns.

Each form is read into an `Opened` whose columns are clusterings.
"""

import codecs
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gpuens.io import paths
from gpuens.io.columns import Opened, choose_columns, each_column
from gpuens.io.content import read_text
from gpuens.io.kinds import TABLE_INPUTS, TEXT_INPUTS, Columns, Path_
from gpuens.io.opening import open_file
from gpuens.labels.long_form import find_roles, looks_long, refuse_long, triples_to_matrix
from gpuens.labels.odd_columns import file_source
from gpuens.runtime import checks, device
from gpuens.runtime.defaults import FORMS

MOST_FIELDS = 2**24  # largest number of fields that are looked at for one-hot columns
BYTES_OF_A_MEMBER = 10  # memory for each byte of a text with the names of members
COMMENT = re.compile(rb"(?m)^#[^\n]*(?:\n|\Z)")
SURPLUS_TABS = (b"\t\t", b"\t\n", b"\n\t", b"\n\n")
TABS, BLANKS, AROUND_LINES = re.compile(rb"\t+"), re.compile(rb"[ \t]+"), re.compile(rb"\t*\n[\t\n]*")
# name of a one-hot column: the beginning of the clustering's columns, and the cluster
BEGINNING = re.compile(r"(?P<beginning>.*?[^_.:\-])[_.:-]?(?P<cluster>[0-9]+|(?<=[_.:-])[^_.:-]+)")

FEWEST = 10  # smallest number of objects whose columns of 0 and 1 may be the clusters of clusterings


class Forms(NamedTuple):
    """The options that name the form of a file."""

    long: bool = False
    members: bool = False
    one_hot: bool = False

    @property
    def chosen(self) -> str | None:
        """The one chosen form; several are refused."""
        chosen = [name for name in FORMS if getattr(self, name)]
        if len(chosen) > 1:
            options = " and ".join(f"{name}=True (--{name.replace('_', '-')})" for name in chosen)
            raise ValueError(f"{options} name two forms of one file; leave one out.")
        return chosen[0] if chosen else None


def read_form(
    path: Path_,
    kind: str,
    form: str,
    key: str | None,
    how: Mapping[str, Any],
    columns: Columns | None,
    exclude: Columns | None,
    id_column: str | int | None,
) -> Opened:
    """Return the clusterings of a file of a form in `FORMS`.

    ``key`` and ``how`` are options of `open_file`; ``columns``, ``exclude`` and ``id_column`` name columns of the file.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For files of another form.
    """
    if form == "members":
        if kind not in TEXT_INPUTS:
            raise ValueError(f"members=True (--members) is for text, but this is a {kind} file; leave it out.")
        return _of_members(path)
    opened = open_file(path, kind, key, **how)
    if form == "one_hot":
        return _of_one_hot(path, opened, columns, exclude, id_column)
    if kind not in TABLE_INPUTS:
        raise ValueError(f"long=True (--long) is for tables, but this is a {kind} file; leave it out.")
    if kind in TEXT_INPUTS and how["header"] is None and _begins_with_data(opened):
        opened = open_file(path, kind, key, **{**how, "header": False})
    return _of_long(path, opened, columns, exclude, id_column)


# --- a line for each label --------------------------------------------------------------------------------------------


def _without_empty(names: Any) -> Any:
    """Return an Index with None in place of empty texts."""
    return names.where(names != "", None) if names.dtype == object else names


def _begins_with_data(opened: Opened) -> bool:
    """Return whether a field of the names of columns is there again below, as that of an object or a clustering."""
    return any(isinstance(name, str) and name in opened.ids(m) for m, name in enumerate(opened.names[:2]))


def _of_long(path: Path_, opened: Opened, columns: Any, exclude: Any, id_column: Any) -> Opened:
    wanted, of_ids = choose_columns(opened.names, columns, exclude, id_column)
    if of_ids is not None:
        wanted = [of_ids, *wanted]
    if columns is not None and len(wanted) == 3:
        places = wanted
    else:
        names = [opened.names[m] for m in wanted]
        chosen = None if of_ids is None else [names[0], None, None]
        places = [wanted[place] for place in find_roles(names, chosen)]
    objects, clusterings = (_without_empty(opened.ids(place)) for place in places[:2])
    labels = opened.read([places[2]])
    table = triples_to_matrix(objects, clusterings, labels.iloc[:, 0], f"path {os.fspath(path)!r}")

    def read(positions: list[int]) -> Any:
        import pandas as pd

        found = pd.DataFrame({place: table.column(m) for place, m in enumerate(positions)})
        return found.set_axis(pd.Index([table.clusterings[m] for m in positions], dtype=object), axis=1)

    names_of_objects = table.objects.rename(str(opened.names[places[0]]))
    said = ", ".join(repr(str(opened.names[place])) for place in places)
    return Opened(table.clusterings, read, lambda position: names_of_objects, form=f"a label in each line ({said})")


def refuse_long_table(path: Path_, kind: str, opened: Opened, ids: Any, table: Any, names: list[Any]) -> None:
    """Refuse a table of three columns that looks long; ``ids`` is the column of objects if it is not in ``table``."""
    if kind not in TABLE_INPUTS or len(opened.names) != 3:
        return
    columns = each_column(table)
    if ids is not None:
        columns, names = [ids, *columns], [ids.name, *names]
    if len(columns) == 3 and looks_long(columns[0], columns[1], names):
        source = file_source(path)
        refuse_long(source.owner, names, len(columns[0]), "say long=True (--long) to read it so", source.keep)


# --- members of clusters ----------------------------------------------------------------------------------------------


def _of_members(path: Path_) -> Opened:
    """Return the one clustering of a text with the members of a cluster in each line, or a cluster and a member."""
    import pandas as pd

    with paths.reading(path):
        text = bytes(read_text(path)[:]).removeprefix(codecs.BOM_UTF8)
        needed = BYTES_OF_A_MEMBER * len(text)
        checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "divide the file")
        text = COMMENT.sub(b"", text.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        if b"\t" not in text:
            text = BLANKS.sub(b"\t", text)
        if any(surplus in text for surplus in SURPLUS_TABS):
            text = AROUND_LINES.sub(b"\n", TABS.sub(b"\t", text))
        text = text.strip()
        names = pd.Index(text.replace(b"\n", b"\t").decode().split("\t"), dtype=object)
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.append(letters[(letters == ord("\t")) | (letters == ord("\n"))] == ord("\n"), True)
    sizes = np.diff(np.flatnonzero(ends), prepend=-1)  # number of fields in each line
    in_pairs = bool((sizes == 2).all()) and (not names[::2].is_unique or bool((names[::2] == names[1::2]).any()))
    if in_pairs:
        codes, clusters = pd.factorize(names[::2])
        objects = names[1::2]
    else:
        codes, clusters, objects = np.repeat(np.arange(len(sizes)), sizes), np.arange(len(sizes)), names
    if not objects.is_unique:
        name = objects[int(objects.duplicated().argmax())]
        first, second = np.flatnonzero(objects == name)[:2]
        raise ValueError(
            f"path {os.fspath(path)!r} has object {name!r} in clusters {clusters[codes[first]]} and "
            f"{clusters[codes[second]]}; an object is a member of one cluster, so leave it out of the others."
        )
    labels = pd.DataFrame({0: pd.Categorical.from_codes(codes, clusters)})
    form = "a cluster and one of its members in each line" if in_pairs else "the members of a cluster in each line"
    return Opened([0], lambda positions: labels.iloc[:, positions], lambda position: objects, form=form)


# --- one-hot columns --------------------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """The one-hot columns of a clustering."""

    name: Any
    columns: list[int]
    clusters: list[Any]  # name of each column's cluster


def _of_one_hot(path: Path_, opened: Opened, columns: Any, exclude: Any, id_column: Any) -> Opened:
    """Return the clusterings of columns of 0 and 1, one for each cluster."""
    import pandas as pd

    wanted, of_ids = choose_columns(opened.names, columns, exclude, id_column)
    ids = opened.ids(of_ids)
    names = [opened.names[m] for m in wanted]
    ones = _ones(opened.read(wanted))
    if isinstance(ones, int):
        raise ValueError(
            f"path {os.fspath(path)!r}: column {str(names[ones])!r} has other values than 0 and 1, but each one-hot "
            "column (--one-hot) has 1 for the members of a cluster; leave it out by exclude (--exclude), or say "
            f"id_column={str(names[ones])!r} (--id-column) if it names the objects."
        )
    groups = _groups(names, ones)
    if groups is None:
        raise ValueError(
            f"path {os.fspath(path)!r}: the one-hot columns (--one-hot) fall in no groups with one 1 in each row; name "
            "the columns of a clustering alike, such as run1_1, run1_2, …."
        )

    def read(positions: list[int]) -> Any:
        found = {}
        for place, m in enumerate(positions):
            own = ones[:, groups[m].columns]
            codes = np.where(own.any(axis=1), own.argmax(axis=1), checks.MISSING)
            found[place] = pd.Categorical.from_codes(codes, groups[m].clusters)
        return pd.DataFrame(found).set_axis(pd.Index([groups[m].name for m in positions], dtype=object), axis=1)

    form = f"one-hot columns, {len(names)} clusters of {len(groups)} clusterings"
    return Opened([group.name for group in groups], read, lambda position: ids, form=form)


def warn_of_one_hot(found: Any, names: list[Any], source: str) -> None:
    """Warn if all columns of an array or DataFrame of labels look like one-hot columns."""
    if len(names) < 4 or len(found) < FEWEST or found.shape[0] * found.shape[1] > MOST_FIELDS:
        return
    ones = _ones(found)
    groups = None if isinstance(ones, int) else _groups(names, ones)
    if groups is None or max(len(group.columns) for group in groups) < 3:
        return
    # a mask that is seldom 1 is no cluster of a clustering that knows most objects
    if all(2 * ones[:, group.columns].sum() >= len(ones) for group in groups):
        checks.warn(
            f"{source}: {len(names)} columns of 0 and 1 form {len(groups)} group(s) with one 1 in each row, as one-hot "
            f"columns of clusters do ({checks.listed([group.name for group in groups])}); say one_hot=True (--one-hot) "
            "to read each group as a clustering."
        )


def _ones(table: Any) -> Any:
    """Return the mask (N, M) of the ones in a table of 0 and 1, or the first column that has other values."""
    ones = np.zeros(table.shape, dtype=bool, order="F")
    for m, column in enumerate(map(np.asarray, each_column(table))):
        if column.dtype.kind not in "iufb" or not np.isin(column, (0, 1)).all():
            return m
        ones[:, m] = column == 1
    return ones


def _groups(names: list[Any], ones: np.ndarray) -> list[_Group] | None:
    """Return the groups of columns that are the clusters of a clustering, or None.

    The columns of a group have names with a common beginning, before the last of _ . : - or the last number, and at
    most one 1 in each row. Other columns are consecutive, with exactly one 1 in each row.
    """
    groups: dict[str, _Group] = {}
    for m, name in enumerate(names):
        if (part := BEGINNING.fullmatch(str(name))) is not None:
            group = groups.setdefault(part["beginning"], _Group(part["beginning"], [], []))
            group.columns.append(m)
            group.clusters.append(part["cluster"])
    sums = [ones[:, group.columns].sum(axis=1) for group in groups.values()]
    alike = sum(len(group.columns) for group in groups.values()) == len(names)
    if alike and all(len(group.columns) > 1 for group in groups.values()) and all(each.max() == 1 for each in sums):
        return list(groups.values())
    return _consecutive_groups(names, ones)


def _consecutive_groups(names: list[Any], ones: np.ndarray) -> list[_Group] | None:
    """Return the shortest groups of consecutive columns with exactly one 1 in each row, or None."""
    groups: list[_Group] = []
    start, sums = 0, np.zeros(len(ones), dtype=np.int64)
    for m in range(ones.shape[1]):
        sums += ones[:, m]
        if sums.max() > 1:
            return None
        if sums.min() == 1:
            places = list(range(start, m + 1))
            groups.append(_Group(len(groups), places, [names[place] for place in places]))
            start, sums = m + 1, np.zeros_like(sums)
    return groups if start == ones.shape[1] and all(len(group.columns) > 1 for group in groups) else None
