"""Links of objects: a must-link puts two objects into one cluster, a cannot-link into two clusters.

Links are read and checked once, where they enter: objects are matched by name, must-links are joined to groups, and a
cannot-link within a group is refused with a shortest chain of must-links.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.edges import as_edges, is_network, match_objects
from gpuens.labels.frames import as_pandas
from gpuens.labels.object_names import counts_from_0, name_at
from gpuens.runtime import checks
from gpuens.runtime.device import check_readable, to_host

LONGEST_CHAIN = 8  # objects of a chain that an error message shows in full


class Links(NamedTuple):
    """Must-links and cannot-links of N objects, free of contradictions.

    ``must``, ``cannot`` (n_links, 2) int64: two different objects of each link. ``group`` (N,) int32: the must-link
    group of each object; objects without must-links are alone.
    """

    must: np.ndarray
    cannot: np.ndarray
    group: np.ndarray

    @classmethod
    def of(cls, must_link: Any, cannot_link: Any, n_objects: int, index: Any = None) -> "Links":
        """Return the links of pairs of objects.

        Parameters
        ----------
        must_link, cannot_link : array or DataFrame (n_links, 2), sparse matrix (N, N), graph, or None
            Numbers in an array are positions, 0 … N - 1; texts, and all values of a DataFrame, are names. The values of
            a matrix do not matter. Numbers in an array are refused if the objects have other numbers as names.
        n_objects : int
        index : pandas Index (N,), optional
            The names of the objects of the labels.

        Raises
        ------
        ValueError, TypeError
            For other shapes, unknown objects, an object that is apart from itself, and cannot-links between objects
            that a chain of must-links joins; the message names a shortest chain.

        Examples
        --------
        >>> from gpuens.labels.links import Links
        >>> Links.of([[0, 2], [2, 4]], [[4, 1]], n_objects=5).group.tolist()
        [0, 1, 0, 2, 0]
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        must = _read_pairs(must_link, "must_link", n_objects, index)
        cannot = _read_pairs(cannot_link, "cannot_link", n_objects, index)
        graph = coo_array((np.ones(len(must), np.int8), tuple(must.T)), (n_objects, n_objects)).tocsr()
        group = connected_components(graph, directed=False)[1]
        contradictions = np.flatnonzero(group[cannot[:, 0]] == group[cannot[:, 1]])
        if len(contradictions):
            first, second = cannot[contradictions[0]].tolist()
            chain = [str(place if index is None else name_at(index, place)) for place in _chain(graph, first, second)]
            if len(chain) > LONGEST_CHAIN:
                chain[LONGEST_CHAIN // 2 : -LONGEST_CHAIN // 2] = ["…"]
            raise ValueError(
                f"must_link and cannot_link contradict each other: {chain[0]} and {chain[-1]} must not be together, "
                f"but {'–'.join(chain)} must; leave out one of these links."
            )
        return cls(must, cannot, group)


def _read_pairs(pairs: Any, name: str, n_objects: int, index: Any) -> np.ndarray:
    """Return pairs of objects as positions (n_pairs, 2), int64, each pair once."""
    if pairs is None:
        return np.empty((0, 2), dtype=np.int64)
    if not is_network(pairs) and not hasattr(pairs, "tocsr"):
        check_readable(pairs, name)
        pairs = as_pandas(pairs)
        try:
            array = pairs.to_numpy() if hasattr(pairs, "iloc") else np.asarray(to_host(pairs))
        except ValueError:  # lists of different lengths
            array = np.empty(())
        if array.size == 0 and array.ndim:
            return np.empty((0, 2), dtype=np.int64)
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(
                f"{name} must be pairs of objects, an array (n_pairs, 2), not {checks.shown(pairs)}; pass [[i, j], …]."
            )
        if not hasattr(pairs, "iloc") and array.dtype.kind in "iuf" and _has_other_numbers(index):
            raise ValueError(
                f"{name} has numbers, which may be positions, or names of objects, since labels have an index of "
                "numbers; pass a DataFrame of names, or positions and labels.to_numpy()."
            )
        loops = np.flatnonzero(array[:, 0] == array[:, 1])
        if len(loops) and name == "cannot_link":
            raise ValueError(f"cannot_link parts {array[loops[0], 0]} from itself; leave out this pair.")
    try:
        edges = match_objects(as_edges(pairs), n_objects, index)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from error
    return np.column_stack([edges.first, edges.second]).astype(np.int64)


def _has_other_numbers(index: Any) -> bool:
    """Return whether the names of objects are numbers that are not their positions."""
    return index is not None and index.dtype.kind in "iu" and not counts_from_0(index)


def _chain(graph: Any, first: int, second: int) -> list[int]:
    """Return the objects of a shortest chain of must-links from one object to another."""
    from scipy.sparse.csgraph import breadth_first_order

    _, before = breadth_first_order(graph, first, directed=False)
    chain = [second]
    while chain[-1] != first:
        chain.append(int(before[chain[-1]]))
    return chain[::-1]
