"""Joins of labels from several sources by the names of the objects.

    columns and names of each source ─▶ one numbering of all names ─▶ codes (N, M)

An object that a source lacks has missing labels there. The time is linear in the total length of the sources.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.codes import cast_codes, codes_dtype, factorize, select_columns, without_empty
from gpuens.labels.columns import Columns, split_columns
from gpuens.labels.encoding import encode_columns
from gpuens.labels.frames import as_pandas
from gpuens.labels.object_names import counts_from_0, exact_indexes, name_at, names_of_objects
from gpuens.labels.odd_columns import OF_FRAME, ColumnSource, find_clusterings
from gpuens.runtime import checks, device
from gpuens.runtime.defaults import HOW_TO_JOIN


class Source(NamedTuple):
    """The clusterings of one source; ``columns.index`` holds the names of its objects, or None."""

    columns: Columns  # a clustering without a name has the name None
    title: Any  # the source in the names of clusterings: "metabat"
    owner: str  # the source in messages: "path 'metabat.tsv'"
    odd: ColumnSource | None  # for leaving out columns that are no clusterings; None keeps all columns


class Join(NamedTuple):
    """The clusterings of all sources, for the objects of all sources."""

    codes: np.ndarray  # (N, M)
    categories: list[np.ndarray]
    names: list[Any]
    index: Any  # the names of the objects, or None if the sources were joined by position
    left_out: list[Any]  # names of the columns that are no clusterings


# --- sources ----------------------------------------------------------------------------------------------------------


def read_sources(sources: Any) -> list[Source]:
    """Return the elements of a list or the values of a mapping as sources; refuse anything else."""
    if hasattr(sources, "mod"):
        raise TypeError("sources must be a list of Series and DataFrames; for a MuData, use gpuens.sc.join.")
    if not isinstance(sources, (list, tuple, Mapping)):
        raise TypeError(
            f"sources must be a list, or a mapping by names, of Series and DataFrames, not {type(sources).__name__}."
        )
    items = sources.items() if isinstance(sources, Mapping) else enumerate(sources)
    read = [_read_source(labels, title, isinstance(sources, Mapping)) for title, labels in items]
    if not read:
        raise ValueError("sources are empty; pass at least one Series or DataFrame.")
    return read


def _read_source(labels: Any, title: Any, is_key: bool) -> Source:
    owner = f"sources[{title!r}]"
    if hasattr(labels, "to_frame") and hasattr(labels, "n_clusterings"):
        labels = labels.to_frame()
        return Source(split_columns(labels), title, owner, None)
    labels = as_pandas(labels)
    n_dimensions = len(getattr(labels, "shape", ()))
    if n_dimensions == 1:
        columns = split_columns([labels])
        return Source(columns._replace(names=[None if is_key else getattr(labels, "name", None)]), title, owner, None)
    if hasattr(labels, "obsm") or n_dimensions != 2:
        raise TypeError(
            f"{owner} must be a Series or DataFrame whose index names the objects, not {type(labels).__name__}"
            f"{'; of an AnnData pass obs[columns]' if hasattr(labels, 'obsm') else ''}."
        )
    columns = split_columns(labels)
    if not hasattr(labels, "columns"):
        columns = columns._replace(names=[None] if len(columns.names) == 1 else columns.names)
        return Source(columns, title, owner, None)
    return Source(columns, title, owner, OF_FRAME._replace(owner=owner))


# --- names of clusterings ---------------------------------------------------------------------------------------------


def distinct_names(names: Sequence[Sequence[Any]], titles: Sequence[Any]) -> list[list[Any]]:
    """Return names of clusterings in which no two sources share a name.

    ``names`` are the clusterings' names in each source, and ``titles`` the sources'. A name in several sources gets the
    title of its source, and a clustering without a name is called by the title.

    >>> distinct_names([["bin", "depth"], ["bin"], [None]], ["metabat", "maxbin", "vamb"])
    [['metabat:bin', 'depth'], ['maxbin:bin'], ['vamb']]
    """
    titled_names = list(zip(names, titles, strict=True))
    n_sources = Counter(
        name
        for source_names, title in titled_names
        for name in {title if name is None else name for name in source_names}
    )

    def distinct(name: Any, title: Any) -> Any:
        if name is None:
            return title
        return name if n_sources[name] == 1 else f"{title}:{name}"

    return [[distinct(name, title) for name in source_names] for source_names, title in titled_names]


# --- the join ---------------------------------------------------------------------------------------------------------


def join_sources(sources: Sequence[Source], how: str) -> Join:
    """Return the clusterings of all sources for all objects ("outer"), or for the objects of all sources ("inner").

    Objects are in the order of their first appearance.

    Raises
    ------
    ValueError
        For an unknown ``how``; for a name that a source gives to several objects; if only some sources have names, or
        none has and their lengths differ; if no object is in all sources of an inner join.
    """
    checks.check_choice(how, "how", HOW_TO_JOIN)
    places, index, n_objects = _find_places(sources, how)
    names = distinct_names([source.columns.names for source in sources], [source.title for source in sources])
    parts = [_encode_source(source, of_source) for source, of_source in zip(sources, names, strict=True)]
    categories = [values for _, of_source, _ in parts for values in of_source]
    kept_names = [name for _, _, of_source in parts for name in of_source]
    dtype = codes_dtype(max(map(len, categories)))
    codes: np.ndarray = np.full((n_objects, len(categories)), np.iinfo(dtype).max, dtype=dtype, order="F")
    rows_of_columns = (
        (rows, column) for rows, (part_codes, _, _) in zip(places, parts, strict=True) for column in part_codes.T
    )
    for m, (rows, column) in enumerate(rows_of_columns):
        inside = rows >= 0
        codes[rows[inside], m] = cast_codes(column, np.dtype(dtype))[inside]
    if how == "inner":
        codes, categories = without_empty(codes, categories)
    names_left = set(kept_names)  # no two clusterings share a name
    left_out = [name for source_names in names for name in source_names if name not in names_left]
    return Join(codes, categories, kept_names, index, left_out)


def _encode_source(source: Source, names: list[Any]) -> tuple[np.ndarray, list[np.ndarray], list[Any]]:
    """Return the codes (n_objects, n_clusterings), label values and names of the clusterings that are not left out."""
    encoded, categories = encode_columns(source.columns.values, names)
    codes: np.ndarray = device.to_host(encoded)
    if source.odd is None:
        return codes, categories, names
    n_clusters = np.array(list(map(len, categories)))
    places = find_clusterings(codes, n_clusters, source.columns.names, source.odd)
    if len(places) < len(names):
        codes = select_columns(codes, places, n_clusters)
    return codes, [categories[m] for m in places], [names[m] for m in places]


def _find_places(sources: Sequence[Source], how: str) -> tuple[list[np.ndarray], Any, int]:
    """Return the position of each source's objects in the join (-1: not there), the names and number of objects."""
    import pandas as pd

    lengths = [len(source.columns.values[0]) for source in sources]
    if not _are_named(sources, lengths):
        index = next((source.columns.index for source in sources if source.columns.index is not None), None)
        return [np.arange(lengths[0])] * len(sources), index, lengths[0]
    indexes = exact_indexes([source.columns.index for source in sources])
    together = indexes[0].append(indexes[1:])
    name, dtype = together.name, together.dtype
    if any(index.dtype == object for index in indexes):  # `append` makes floats of whole numbers beside fractions
        together, dtype = np.concatenate([index.astype(object).to_numpy() for index in indexes]), np.dtype(object)
    numbers, index = factorize(together)
    index = pd.Index(index, dtype=dtype, name=name)
    places = np.split(numbers, np.cumsum(lengths)[:-1])
    n_sources = np.zeros(len(index), dtype=np.int64)
    for source, of_source in zip(sources, places, strict=True):
        if (unnamed := of_source < 0).any():
            raise ValueError(
                f"{source.owner}: object {int(unnamed.argmax())} has no name (missing value); name it or leave it out."
            )
        n_rows = np.bincount(of_source, minlength=len(index))
        if (repeats := n_rows[of_source] > 1).any():
            first = name_at(index, of_source[repeats.argmax()])
            raise ValueError(
                f"{source.owner} names several objects {first!r}; an object has one row in a source, so keep one of "
                "them, or make the names different."
            )
        n_sources += n_rows
    if how == "outer":
        strangers = [s for s, of_source in enumerate(places) if not (n_sources[of_source] > 1).any()]
        if strangers and len(sources) > 1:
            partners = [s for s in range(len(sources)) if s not in strangers][:1]
            owners = [f"{sources[s].owner} ({_list_first_names(indexes[s])})" for s in (*strangers[:3], *partners)]
            example = f", such as {owners.pop()}" if partners else ""
            checks.warn(
                f"{' and '.join(owners)}{' …' * (len(strangers) > 3)} share no object with any other source{example}; "
                "check that the names are spelled alike."
            )
        return places, index, len(index)
    inside = n_sources == len(sources)
    if not inside.any():
        raise ValueError("no object is in all sources; join them with how='outer' (--how outer), or check the names.")
    number = np.where(inside, np.cumsum(inside) - 1, checks.MISSING)
    return [number[of_source] for of_source in places], index[inside], int(inside.sum())


def _list_first_names(index: Any) -> str:
    """Return the first two names of an index as a text, such as "'a', 'b', …"."""
    names = [repr(name_at(index, place)) for place in range(min(len(index), 2))]
    return ", ".join(names + ["…"] * (len(index) > 2))


def _are_named(sources: Sequence[Source], lengths: Sequence[int]) -> bool:
    """Return whether the sources have names of objects, by which they are joined; refuse names in some sources only.

    An index 0, 1, 2, … without a title counts as names, with a warning, if all other sources have numbers as names.
    """
    indexes = [source.columns.index for source in sources]
    bare = [s for s, index in enumerate(indexes) if names_of_objects(index) is None or _only_counts_rows(index)]
    named = [s for s in range(len(sources)) if s not in bare]
    if not bare:
        return True
    if not named:
        different = next((s for s, length in enumerate(lengths) if length != lengths[0]), None)
        if different is None:
            return False
        raise ValueError(
            f"{sources[0].owner} has {lengths[0]} objects and {sources[different].owner} has {lengths[different]}, and "
            "neither names them: give each an index of names (files: a column of names, --id-column)."
        )
    if any(indexes[s] is None for s in bare) or any(indexes[s].dtype.kind not in "iu" for s in named):
        raise ValueError(
            f"{sources[bare[0]].owner} has no names of objects, but {sources[named[0]].owner} has: give it an index of "
            "names, too (files: a column of names, --id-column), or leave out the names of all."
        )
    checks.warn(
        f"{sources[bare[0]].owner} has an index 0, 1, 2, …, which is taken for names of objects, as "
        f"{sources[named[0]].owner} has numbers as names."
    )
    return True


def _only_counts_rows(index: Any) -> bool:
    return index.name is None and counts_from_0(index)
