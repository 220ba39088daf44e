"""A tree of names, such as a taxonomy or a cell ontology: a name also supports the wider names above it."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.frames import as_pandas
from gpuens.runtime import checks

QUORUM = 0.5
TITLES = ("child", "parent")
BLOCK = 2**16  # number of rows whose support is in memory at once
ROUNDING = 1e-9  # largest error of a sum of shares


class NamesInTree(NamedTuple):
    """The deepest name of a tree that a quorum supports, for each object."""

    labels: np.ndarray  # (n_objects,), object: names; "Unknown" where only a root is supported
    support: np.ndarray  # (n_objects,), the share of the votes, or the probability, of the name and all below it
    depth: np.ndarray  # (n_objects,), the number of names above it, 0 for "Unknown"


class NameTree:
    """Names and the names above them; a name may have several parents, as in ontologies.

    ``names`` are the narrowest names in use; only these and the names above them are in the tree.
    """

    def __init__(self, parents: Any, names: list[str]) -> None:
        above = _parents_by_name(parents)
        lacking = [name for name in names if name not in above]
        if lacking:
            raise ValueError(
                f"tree lacks {checks.counted(len(lacking), 'name')} of the answers ({checks.listed(lacking)}); add a "
                "line for each, with the name above it."
            )
        depths: dict[str, int] = {}
        ancestors: dict[str, set[str]] = {}
        for name in names:
            _descend(name, above, depths, ancestors)
        self.nodes = sorted(depths, key=lambda node: (depths[node], node))
        self.depths = np.array([depths[node] for node in self.nodes])
        place = {node: number for number, node in enumerate(self.nodes)}
        self.supports = np.zeros((len(names), len(self.nodes)))  # 1 where a name is a node or is below it
        for number, name in enumerate(names):
            self.supports[number, [place[node] for node in ancestors[name]]] = 1.0

    def deepest(self, shares: np.ndarray, quorum: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the deepest node (G,) that more than half and at least ``quorum`` support, and its support (G,).

        ``shares`` (G, k) are those of the names. Of equally deep nodes, the one with most support counts. The node is
        -1 where none but a root is supported.
        """
        blocks = [self._deepest(shares[start : start + BLOCK], quorum) for start in range(0, len(shares), BLOCK)]
        nodes, support = map(np.concatenate, zip(*blocks, strict=True))
        return nodes, support

    def _deepest(self, shares: np.ndarray, quorum: float) -> tuple[np.ndarray, np.ndarray]:
        support = shares @ self.supports
        eligible = (support > 0.5 + ROUNDING) & (support >= quorum - ROUNDING) & (self.depths > 0)
        # depths are whole numbers and shares at most 1
        nodes = np.where(eligible, self.depths + np.minimum(support, 1.0) / 2, -1.0).argmax(axis=1)
        rows = np.arange(len(nodes))
        return np.where(eligible[rows, nodes], nodes, -1), support[rows, nodes]


def child_and_parent(titles: Iterable[Any]) -> list[int]:
    """Return the places of the two columns of a tree: those with the titles child and parent, else the first two."""
    words = [str(title).strip().lower() for title in titles]
    return [words.index(word) for word in TITLES] if set(TITLES) <= set(words) else [0, 1]


def _parents_by_name(parents: Any) -> dict[str, list[str]]:
    """Return the parents of every name; ``parents`` is a mapping of child to parent, or a table of two columns."""
    if isinstance(parents, Mapping):
        pairs = list(parents.items())
    else:
        table = as_pandas(parents)
        if not hasattr(table, "columns") or len(table.columns) < 2:
            raise TypeError(
                "tree must be a dict of child to parent, or a table with columns child and parent, not "
                f"{checks.shown(parents)}."
            )
        places = child_and_parent(table.columns)
        pairs = list(table.iloc[:, places].dropna().itertuples(index=False, name=None))
    above: dict[str, list[str]] = {}
    for child, parent in pairs:
        above.setdefault(str(child), []).append(str(parent))
        above.setdefault(str(parent), [])
    return above


def _descend(name: str, above: dict[str, list[str]], depths: dict[str, int], ancestors: dict[str, set[str]]) -> None:
    """Add a name and all names above it to ``depths`` and to ``ancestors``, which include the name; refuse circles."""
    path, stack = [name], [(name, iter(above[name]))]
    while stack:
        node, parents = stack[-1]
        parent = next((parent for parent in parents if parent not in depths), None)
        if parent is None:
            stack.pop()
            path.pop()
            depths[node] = 1 + max((depths[parent] for parent in above[node]), default=-1)
            ancestors[node] = {node}.union(*(ancestors[parent] for parent in above[node]))
        elif parent in path:
            circle = [*path[path.index(parent) :], parent]
            raise ValueError(f"tree runs in a circle: {' below '.join(circle)}; take one of these lines out.")
        else:
            path.append(parent)
            stack.append((parent, iter(above[parent])))
