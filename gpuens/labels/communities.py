"""Clusterings of named objects: sets of the members of clusters, and dicts of the labels of objects.

    sets of members (networkx), NodeClustering (cdlib)  ─┐
    dict {object: label} or {cluster: members}           ├▶ `Named` ─▶ one order of all names ─▶ columns and an index
    VertexClustering (igraph), Series                   ─┘

An object that a clustering lacks has a missing label there. Numbers 0 … n_objects - 1 are no names, but positions.
Sets may overlap where shares of objects in clusters are read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.codes import factorize
from gpuens.labels.object_names import counts_from_0, index_of, index_of_names, name_at
from gpuens.labels.shares import TAKERS
from gpuens.runtime import checks

FEWEST_MEMBERS = 3  # smallest number of lists, and of labels in each, that may be clusters and their members


class Named(NamedTuple):
    """A clustering as the names of its objects, and their labels in the same order."""

    names: Sequence[Any]
    labels: Any  # (n_objects,), a list or an array
    in_order: bool  # whether the order of the objects has a meaning, unlike that of a set

    @property
    def overlap(self) -> bool:
        """Whether an object is in several sets, or several times in one."""
        return not self.in_order and len(set(self.names)) < len(self.names)


class Members(NamedTuple):
    """A clustering whose clusters overlap: the place of each member of a cluster among all objects, and its label."""

    rows: np.ndarray  # (n_entries,)
    labels: Any  # (n_entries,)


def as_sequences(clusterings: Sequence[Any]) -> list[Any]:
    """Return clusterings in which iterators and views of dicts are lists."""
    return [
        list(clustering) if isinstance(clustering, (Iterator, ValuesView)) else clustering for clustering in clusterings
    ]


def refuse_single(labels: Any) -> None:
    """Refuse one clustering of named objects in place of several."""
    description = None
    if _is_igraph(labels) or _is_cdlib(labels):
        description = f"a {type(labels).__name__}"
    elif isinstance(labels, Mapping):
        if labels and all(map(_is_label, labels.values())):
            description = f"a dict of the labels of {len(labels)} object(s)"
        elif labels and all(isinstance(members, (set, frozenset)) for members in labels.values()):
            description = f"a dict of {len(labels)} set(s) of members"
    elif (
        isinstance(labels, (list, tuple))
        and labels
        and all(isinstance(members, (set, frozenset)) for members in labels)
        and not any(isinstance(member, frozenset) for members in labels for member in members)  # sets of clusters
    ):
        description = f"a list of {len(labels)} set(s) of members"
    if description is not None:
        raise TypeError(f"labels are one clustering, {description}; pass a list of clusterings, such as [labels].")


def warn_of_members(columns: Sequence[Any]) -> None:
    """Warn about lists of labels in which no label occurs twice, because they may be the members of clusters."""
    n_labels, size = len(columns) * len(columns[0]), len(columns[0])
    if min(len(columns), size) < FEWEST_MEMBERS or len(set(map(type, columns[0]))) > 1:
        return
    try:
        differ = len(set(columns[0])) == size and len(set(chain.from_iterable(columns))) == n_labels
    except TypeError:  # labels of other types, which are refused later
        return
    if differ:
        checks.warn(
            f"labels: none of the {n_labels} labels in {len(columns)} lists occurs twice, as if lists were clusters; "
            "pass [labels] with sets of the members if they are one clustering."
        )


def read_named(clusterings: Sequence[Any], titles: Sequence[str], *, overlap: bool = False) -> list[Named | None]:
    """Return the clusterings of named objects, and None for columns; ``titles`` are the names of the clusterings.

    Lists of lists are lists of members if some differ in length. With ``overlap``, columns may also be memberships,
    so that lists of floats are no members.
    """
    lists = [not (overlap and _is_of_floats(clustering)) for clustering in clusterings]
    ragged = any(of_lists and _is_ragged(clustering) for of_lists, clustering in zip(lists, clusterings, strict=True))
    of_each = zip(clusterings, titles, lists, strict=True)
    return [_read_clustering(clustering, title, ragged and of_lists) for clustering, title, of_lists in of_each]


def columns_by_name(
    clusterings: Sequence[Any], as_column: Callable[[Any], Any], titles: Sequence[str], *, overlap: bool = False
) -> Any:
    """Return label columns (n_objects,) in one order of the objects, and the index of their names or None.

    Return None if all clusterings are columns. ``titles`` are the names of the clusterings in messages. With
    ``overlap``, clusterings whose clusters overlap are `Members`, and columns may be memberships (n_objects, k).

    Raises
    ------
    ValueError, TypeError
        For an object in two clusters of a clustering without ``overlap``, an object without a name, members that are
        not in sets, and a column without names beside others whose objects are not 0 … n_objects - 1.
    """
    read = read_named(clusterings, titles, overlap=overlap)
    if not any(read):
        return None
    named_clusterings = [
        clustering or _read_column(column) for clustering, column in zip(read, clusterings, strict=True)
    ]
    places, index, n_objects = _find_places(named_clusterings, titles, overlap)
    columns = [
        Members(own_places, as_column(clustering.labels))
        if overlap and clustering.overlap
        else _spread_labels(as_column(clustering.labels), own_places, n_objects)
        for clustering, own_places in zip(named_clusterings, places, strict=True)
    ]
    return columns, index


def _read_clustering(clustering: Any, title: str, ragged: bool) -> Named | None:
    """Return a clustering of named objects, or None for a column; ``ragged``: lists of lists are lists of members."""
    if isinstance(clustering, Mapping):
        if clustering and all(map(_is_collection, clustering.values())):
            return _members_to_labels(list(clustering.values()), list(clustering))
        return Named(list(clustering), list(clustering.values()), True)
    if _is_cdlib(clustering):
        return _members_to_labels(clustering.communities)
    if _is_igraph(clustering):
        if clustering.membership and _is_collection(clustering.membership[0]):  # a VertexCover, which may overlap
            return _members_to_labels(list(clustering))
        named = "name" in clustering.graph.vs.attributes()
        names = clustering.graph.vs["name"] if named else range(len(clustering.membership))
        return Named(names, clustering.membership, True)
    if isinstance(clustering, (set, frozenset)):
        raise TypeError(f"{title} is a set, which has no order; pass a list with the members of each cluster.")
    if not isinstance(clustering, (list, tuple)) or not clustering:
        return None
    if not isinstance(clustering[0], (set, frozenset)) and not (ragged and _is_collection(clustering[0])):
        return None
    label = next((members for members in clustering if not _is_collection(members)), None)
    if label is not None:
        raise TypeError(f"{title} has {checks.shown(label)} among sets of members; pass the members of each cluster.")
    return _members_to_labels(clustering)


def _members_to_labels(clusters: Sequence[Any], names: Sequence[Any] | None = None) -> Named:
    """Return a clustering by the members of its clusters, which have ``names`` or the numbers 0, 1, 2, …."""
    sizes = np.fromiter(map(len, clusters), np.int64, len(clusters))
    numbers = np.repeat(np.arange(len(clusters)), sizes)
    labels = numbers if names is None else np.fromiter(names, object, len(clusters))[numbers].tolist()
    return Named(list(chain.from_iterable(clusters)), labels, False)


def _read_column(column: Any) -> Named:
    """Return a column with the names of its index, or 0 … n_objects - 1."""
    index = index_of(column)
    if index is None or counts_from_0(index):
        return Named(range(len(column)), column, True)
    return Named(index.tolist(), column, True)


def _find_places(named: Sequence[Named], titles: Sequence[str], overlap: bool) -> tuple[list[np.ndarray], Any, int]:
    """Return the place of each object of each clustering among all objects, the index of all, and their number.

    With ``overlap``, an object may be in several sets of a clustering. Objects are in the order of their names if these
    are 0 … n_objects - 1; else in the order of their first appearance in clusterings with an order, and then sorted.
    """
    first = sorted(range(len(named)), key=lambda m: not named[m].in_order)
    sizes = [len(named[m].names) for m in first]
    codes, distinct = factorize(np.fromiter(chain(*(named[m].names for m in first)), object, sum(sizes)))
    of_each = dict(zip(first, np.split(codes, np.cumsum(sizes)[:-1]), strict=True))
    index, n_objects = index_of_names(distinct), len(distinct)
    are_numbers = index.dtype.kind in "iu" and n_objects and n_objects == 1 + int(index.max()) and int(index.min()) == 0
    unnamed = [m for m in first if isinstance(named[m].names, range)]  # clusterings by the positions of objects
    for m, title in enumerate(titles):
        if (lacks_name := of_each[m] < 0).any():
            raise ValueError(f"{title}: object {int(lacks_name.argmax())} has no name (missing value); name it.")
        may_repeat = overlap and not named[m].in_order
        if not may_repeat and (n_clusters := np.bincount(of_each[m], minlength=1)).max() > 1:
            raise ValueError(
                f"{title} has object {name_at(index, n_clusters.argmax())!r} in {n_clusters.max()} clusters; remove it "
                f"from the others, or pass the clusterings to {TAKERS}, which take shares in several."
            )
    if unnamed and not (are_numbers and len(named[unnamed[0]].names) == n_objects):
        other_m = next(m for m in range(len(named)) if m not in unnamed)
        raise ValueError(
            f"{titles[unnamed[0]]} has {len(named[unnamed[0]].names)} labels without names of objects, but "
            f"{titles[other_m]} has names such as {named[other_m].names[0]!r}; pass a dict {{object: label}} or a "
            "Series with an index."
        )
    n_in_order = 1 + max((int(of_each[m].max(initial=-1)) for m in first if named[m].in_order), default=-1)
    order = np.arange(n_objects)
    if are_numbers:
        order = np.argsort(index.to_numpy())
    else:
        order[n_in_order:] = _sort_places(index, order[n_in_order:])
    rank = np.empty(n_objects, dtype=np.int64)
    rank[order] = np.arange(n_objects)
    return [rank[of_each[m]] for m in range(len(named))], None if are_numbers else index[order], n_objects


def _sort_places(index: Any, places: np.ndarray) -> Any:
    """Return places in the order of their names; names that cannot be compared are ordered by type and text."""
    names = index.tolist()
    try:
        return sorted(places.tolist(), key=names.__getitem__)
    except TypeError:
        return sorted(places.tolist(), key=lambda place: (type(names[place]).__name__, repr(names[place])))


def _spread_labels(labels: Any, places: np.ndarray, n_objects: int) -> Any:
    """Return the labels at their places in a column (n_objects,), and missing labels elsewhere; so memberships."""
    if hasattr(labels, "iloc"):
        labels = labels.astype(object).where(labels.notna(), None).to_numpy()
    if len(places) == n_objects:
        column = np.empty((n_objects, *labels.shape[1:]), dtype=labels.dtype)
    elif labels.ndim == 2:
        column = np.full((n_objects, labels.shape[1]), np.nan)
    elif labels.dtype.kind in "if":
        column = np.full(n_objects, checks.MISSING if labels.dtype.kind == "i" else np.nan, dtype=labels.dtype)
    else:
        column = np.full(n_objects, None, dtype=object)
    column[places] = labels
    return column


def _is_igraph(clustering: Any) -> bool:
    return _has_attributes(clustering, "membership", "graph")


def _is_cdlib(clustering: Any) -> bool:
    return _has_attributes(clustering, "communities", "graph")


def _has_attributes(value: Any, *names: str) -> bool:
    """Return whether a value has some attributes, and is no frame or Series, whose columns could have these names."""
    return not hasattr(value, "shape") and all(hasattr(value, name) for name in names)


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, bytes)) or not (hasattr(value, "__len__") or isinstance(value, Iterator))


def _is_collection(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset))


def _is_ragged(clustering: Any) -> bool:
    """Return whether a clustering is a list of lists of different lengths."""
    if not isinstance(clustering, (list, tuple)) or not all(
        isinstance(members, (list, tuple)) for members in clustering
    ):
        return False
    return len(set(map(len, clustering))) > 1


def _is_of_floats(clustering: Any) -> bool:
    """Return whether a clustering is a list of lists of floats, such as memberships."""
    return isinstance(clustering, (list, tuple)) and any(
        isinstance(row, (list, tuple)) and any(isinstance(value, float) for value in row) for row in clustering[:1]
    )
