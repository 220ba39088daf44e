"""Forms of files whose columns are not the clusterings: one label, cluster or clustering a line, and one-hot columns.

Each form is read into an `Opened` whose columns are clusterings.
"""

import codecs
import os
import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens.io import paths
from gpuens.io.columns import Opened, TextOptions, choose_columns, each_column, mask_missing
from gpuens.io.content import read_text
from gpuens.io.opening import open_file, read_npz_ids, usual_separator
from gpuens.io.paths import ANNOTATED, ARRAYS, FOLDERS, TABLE_INPUTS, TEXT_INPUTS, Columns, Path_, Words
from gpuens.labels.long_form import factorize_triples, find_roles, looks_long, refuse_long, triples_to_matrix
from gpuens.labels.object_names import names_of_objects, start_of_count
from gpuens.labels.odd_columns import file_source
from gpuens.labels.odd_labels import WHOLE
from gpuens.runtime import checks, device
from gpuens.runtime.defaults import FORMS

MOST_FIELDS = 2**24  # largest number of fields that are looked at for one-hot columns
BYTES_OF_A_MEMBER = 10  # memory for each byte of a text with the names of members
COMMENT = re.compile(rb"(?m)^#[^\n]*(?:\n|\Z)")
SURPLUS_TABS = (b"\t\t", b"\t\n", b"\n\t", b"\n\n")
TABS, BLANKS, AROUND_LINES = re.compile(rb"\t+"), re.compile(rb"[ \t]+"), re.compile(rb"\t*\n[\t\n]*")
# name of a one-hot column: the beginning of the clustering's columns, and the cluster
BEGINNING = re.compile(r"(?P<beginning>.*?[^_.:\-])[_.:-]?(?P<cluster>[0-9]+|(?<=[_.:-])[^_.:-]+)")

FEWEST_LINES = 10  # smallest number of lines whose first column may count them
FEWEST = 10  # smallest number of objects whose columns of 0 and 1 may be the clusters of clusterings


def choose_form(options: Any) -> str | None:
    """Return the form in `FORMS` that options name by an attribute that is true, None without one; refuse several."""
    forms = [name for name in FORMS if getattr(options, name)]
    if len(forms) > 1:
        listed = " and ".join(f"{name}=True (--{name.replace('_', '-')})" for name in forms)
        raise ValueError(f"{listed} name two forms of one file; leave one out.")
    return forms[0] if forms else None


def read_form(
    path: Path_,
    kind: str,
    form: str,
    key: str | None,
    text: TextOptions,
    columns: Columns | None,
    exclude: Columns | None,
    id_column: str | int | None,
    share_column: str | int | None = None,
) -> Opened:
    """Return the clusterings of a file of a form in `FORMS`.

    ``key`` and ``text`` are options of `open_file`; ``columns``, ``exclude``, ``id_column`` and ``share_column`` name
    columns of the file.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For files of another form.
    """
    if form == "members":
        if kind not in TEXT_INPUTS:
            raise ValueError(f"members=True (--members) is for text, but this is a {kind} file; leave it out.")
        return _open_members(path)
    opened = open_file(path, kind, key, text)
    if form == "one_hot":
        return _open_one_hot(path, opened, columns, exclude, id_column)
    if kind not in TABLE_INPUTS:
        raise ValueError(f"long=True (--long) is for tables, but this is a {kind} file; leave it out.")
    if kind in TEXT_INPUTS and text.header is None and _begins_with_data(opened):
        opened = open_file(path, kind, key, text._replace(header=False))
    words = None if kind in TEXT_INPUTS else text.missing
    return _open_long(path, opened, columns, exclude, id_column, share_column, words)


# --- a line for each label --------------------------------------------------------------------------------------------


def _without_empty(names: Any) -> Any:
    """Return an Index with None in place of empty texts."""
    return names.where(names != "", None) if names.dtype == object else names


def _begins_with_data(opened: Opened) -> bool:
    """Return whether a field of the names of columns is there again below, as that of an object or a clustering."""
    return any(isinstance(name, str) and name in opened.ids(m) for m, name in enumerate(opened.names[:2]))


def _open_long(
    path: Path_,
    opened: Opened,
    columns: Columns | None,
    exclude: Columns | None,
    id_column: str | int | None,
    share_column: str | int | None,
    missing: Words | None,
) -> Opened:
    """Return the clusterings of a table in long form; ``missing`` are words that its reader has not replaced."""
    candidates, of_ids = choose_columns(opened.names, columns, exclude, id_column)
    place_of_share = [] if share_column is None else choose_columns(opened.names, share_column)[0]
    candidates = [m for m in candidates if m not in place_of_share]
    if of_ids is not None:
        candidates = [of_ids, *candidates]
    if columns is not None and len(candidates) == 3:
        places = candidates
    else:
        names = [opened.names[m] for m in candidates]
        role_names = None if of_ids is None else [names[0], None, None]
        places = [candidates[place] for place in find_roles(names, role_names)]
    objects, clusterings = (_without_empty(opened.ids(place)) for place in places[:2])
    labels = mask_missing(opened.read([places[2]]), missing).iloc[:, 0]
    shares = opened.read(place_of_share).iloc[:, 0] if place_of_share else None
    triples = factorize_triples(objects, clusterings, labels, f"path {os.fspath(path)!r}", shares)
    names_of_objects = triples.objects.rename(str(opened.names[places[0]]))
    table = cache(lambda: triples_to_matrix(triples))

    def read_clusterings(positions: list[int]) -> Any:
        import pandas as pd

        columns_read = pd.DataFrame({place: table().column(m) for place, m in enumerate(positions)})
        return columns_read.set_axis(pd.Index([triples.clusterings[m] for m in positions], dtype=object), axis=1)

    titles = ", ".join(repr(str(opened.names[place])) for place in [*places, *place_of_share])
    return Opened(
        list(triples.clusterings),
        read_clusterings,
        lambda position: names_of_objects,
        form=f"a label in each line ({titles})",
        triples=triples,
    )


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


def _open_members(path: Path_) -> Opened:
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


def _open_one_hot(path: Path_, opened: Opened, columns: Any, exclude: Any, id_column: Any) -> Opened:
    """Return the clusterings of columns of 0 and 1, one for each cluster."""
    import pandas as pd

    candidates, of_ids = choose_columns(opened.names, columns, exclude, id_column)
    ids = opened.ids(of_ids)
    names = [opened.names[m] for m in candidates]
    ones = _ones(opened.read(candidates))
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

    def read_clusterings(positions: list[int]) -> Any:
        labels = {}
        for place, m in enumerate(positions):
            is_member = ones[:, groups[m].columns]
            codes = np.where(is_member.any(axis=1), is_member.argmax(axis=1), checks.MISSING)
            labels[place] = pd.Categorical.from_codes(codes, groups[m].clusters)
        return pd.DataFrame(labels).set_axis(pd.Index([groups[m].name for m in positions], dtype=object), axis=1)

    form = f"one-hot columns, {len(names)} clusters of {len(groups)} clusterings"
    return Opened([group.name for group in groups], read_clusterings, lambda position: ids, form=form)


def warn_of_one_hot(labels: Any, names: list[Any], source: str) -> None:
    """Warn if all columns of an array or DataFrame of labels look like one-hot columns."""
    if len(names) < 4 or len(labels) < FEWEST or labels.shape[0] * labels.shape[1] > MOST_FIELDS:
        return
    ones = _ones(labels)
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
    if alike and all(len(group.columns) > 1 for group in groups.values()) and all(sum_.max() == 1 for sum_ in sums):
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


# --- a clustering in each line ----------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """The clusterings of a file, one for each line."""

    labels: Any  # an array or a DataFrame (n_objects, n_lines)
    names: list[Any] | None  # the names of the lines, or None
    objects: Sequence[Any] | None  # the names of the objects, or None


def open_transposed(
    path: Path_, suffix: str, key: str | None, text: TextOptions, id_column: str | int | None
) -> Opened:
    """Open a file of labels with its lines as columns; the labels are read at once.

    The columns are called by the row names of the file or by its ``id_column``, or are numbered. The names of the
    objects are those of the columns of the file, or ``ids`` of an npz file. A first column that counts the lines, like
    the iterations of a sampler, is omitted with a warning.
    """
    import pandas as pd

    if suffix in ANNOTATED:
        raise ValueError(f"transpose is not for {suffix} files, whose rows are objects; leave it (--transpose) out.")
    if suffix in TEXT_INPUTS:
        lines = _read_text_lines(path, text, id_column)
    else:
        lines = _read_lines(path, suffix, open_file(path, suffix, key, text), id_column)
    names = list(range(lines.labels.shape[1])) if lines.names is None else lines.names
    index = None if lines.objects is None else pd.Index(lines.objects, dtype=object)

    def read_clusterings(positions: list[int]) -> Any:
        if positions == list(range(len(names))):
            return lines.labels
        return lines.labels.iloc[:, positions] if hasattr(lines.labels, "iloc") else lines.labels[:, positions]

    return Opened(names, read_clusterings, lambda position: index)


def _read_lines(path: Path_, suffix: str, opened: Opened, id_column: str | int | None) -> Lines:
    """Return the lines of an array or of a table that is not text."""
    places, of_names = choose_columns(opened.names, id_column=id_column)
    table = opened.read(places)
    if suffix in (*ARRAYS, *FOLDERS):
        ids = names_of_objects(read_npz_ids(path)) if suffix == ".npz" else None
        return Lines(table.T, None, ids if ids is not None and len(ids) == table.shape[1] else None)
    if of_names is None and len(places) > 1 and _counts(table.iloc[:, 0].tolist()):
        _warn_of_counts(path, opened.names[places[0]])
        places, table = places[1:], table.iloc[:, 1:]
    labels, names = table.to_numpy(), _names_of_lines(opened.ids(of_names))
    if labels.dtype == object:
        labels = np.where(table.notna(), labels, None)
    return Lines(labels.T, names, [opened.names[place] for place in places])


def _read_text_lines(path: Path_, options: TextOptions, id_column: str | int | None) -> Lines:
    """Return the lines of a text table, each read as a column of labels is."""
    import pandas as pd

    from gpuens.io.text import text_lines

    text = text_lines(path, usual_separator(path), options)
    places, of_names = choose_columns(text.names, id_column=id_column)
    line_names: list[str | None] = []
    first: list[str] = []
    columns: list[Any] = []
    for fields in text.records:
        row_name = fields.pop(0) if text.row_names else None
        name = row_name if of_names is None else fields.pop(of_names)
        line_names.append(name)
        first.append(fields[0])
        columns.append(text.parse(fields, len(columns) if name is None else name))
    text.words.warn_of_na(path)
    counts_lines = (
        of_names is None and len(places) > 1 and all(map(WHOLE.fullmatch, first)) and _counts([*map(int, first)])
    )
    if counts_lines:
        _warn_of_counts(path, text.names[places[0]])
        places, columns = places[1:], [column[1:] for column in columns]
    if all(column.categories.dtype.kind in "iuf" for column in columns):
        labels: Any = np.stack([np.asarray(column) for column in columns], axis=1)
    else:
        labels = pd.DataFrame(dict(enumerate(columns)))
    names = None if line_names[0] is None else _names_of_lines(pd.Index(line_names, dtype=object))
    objects = [text.names[place] for place in places]
    have_names = all(isinstance(name, str) for name in objects)
    return Lines(labels, names, objects if have_names else None)


def _names_of_lines(index: Any) -> list[Any] | None:
    """Return the names of lines, or None if they only count the lines."""
    are_names = names_of_objects(index) is not None and start_of_count(index) is None
    return index.tolist() if are_names else None


def _counts(values: Sequence[Any]) -> bool:
    """Return whether the values of many lines are whole numbers that grow by the same step."""
    if len(values) < FEWEST_LINES or not all(isinstance(value, int) for value in values):
        return False
    steps = {b - a for a, b in pairwise(values)}
    return len(steps) == 1 and steps.pop() > 0


def _warn_of_counts(path: Path_, name: Any) -> None:
    checks.warn(
        f"path {os.fspath(path)!r}: the first column, {name!r}, counts the lines, like iterations, and is left out."
    )
