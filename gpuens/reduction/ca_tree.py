"""The CA-tree (Wang 2011): nodes hold similar label rows, and the nodes of a cut replace the rows.

Each clustering splits the nodes of the tree in turn: a node gets a child for each cluster that its rows have there. In
the lexicographic order of the rows a node is a run with a common prefix, so the tree follows from the number of labels
that each row shares with the previous row. A node's radius bounds the Hamming distance of its representative to all
rows of the node (eqs 8-11). The radii of nodes of the same level are independent of each other.

Wang, "CA-tree: a hierarchical structure for efficient and scalable coassociation-based cluster ensembles", IEEE
Transactions on Systems, Man, and Cybernetics B 41 (2011) 686-698.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, as_rows
from gpuens.reduction.base import Reduction
from gpuens.reduction.core_groups import core_groups, lexicographic, lexicographic_on_gpu, pack_rows
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu


class CATree:
    """Reduce to nodes of the CA-tree: there are far fewer nodes than core groups, and each has many similar rows.

    Parameters
    ----------
    tau : float in [0, 1]
        The cut takes the topmost nodes with a radius of at most tau·M clusterings (eq 15); 0 is core groups. The paper
        uses .4 with ``gamma=1``, and .2 with ``gamma=0.9``.
    gamma : float in (0, 1]
        Keep only the largest nodes that hold this share of the objects; any other node descends the tree by Hamming
        distance to a kept node and gets its label (§III-D).
    n_des : int or None
        Estimate a radius from at least this many descendants, if there are so many; None is exact, at a cost quadratic
        in the rows of a node.
    order : {"given", "coarse", "fine"}
        The order in which the clusterings split the tree: as given, fewest clusters first, or most clusters first.
    counts : {"size", "unit"}
        The count of a node: its objects, or 1 as in the paper.

    Raises
    ------
    ValueError, TypeError
        For settings out of range.

    Notes
    -----
    Measured on the paper's six data sets (100 ensembles each, EAC): ``counts="unit"`` loses .03 of the accuracy at
    τ = .4, γ = 1 (.05 and .11 on digits) and nothing at τ = .2, γ = .9. ``order="coarse"`` gains .01 at the former,
    only on rings, and nothing at the latter; "fine" gains at most .01 and takes a fifth more nodes. At equal numbers of
    nodes the orders differ by less than .01 on average. Rings need more nodes than digits: see `Tree.kept_share` before
    dropping nodes.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = ge.Ensemble([[0] * 4 + [1] * 4, [0] * 3 + [1] * 5, [0] * 4 + [1] * 3 + [2]])
    >>> reduced = ge.CATree(tau=0.4).reduce(labels)
    >>> reduced.counts.tolist(), reduced.row_of.tolist()
    ([4, 4], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> ge.CATree().grow(labels).radii.tolist()
    [0, 0, 0, 0, 1, 1, 2]
    """

    def __init__(
        self,
        tau: float = 0.4,
        gamma: float = 1.0,
        n_des: int | None = 32,
        order: str = "given",
        *,
        counts: str = "size",
    ) -> None:
        self.tau = checks.check_between(tau, "tau", 0.0, 1.0)
        self.gamma = checks.check_real(gamma, "gamma", above=0.0, at_most=1.0)
        self.n_des = None if n_des is None else checks.check_integer(n_des, "n_des", minimum=1)
        self.order = checks.check_choice(order, "order", ("given", "coarse", "fine"))
        self.counts = checks.check_choice(counts, "counts", ("size", "unit"))

    def grow(self, labels: Any) -> "Tree":
        """Return the whole tree of ``labels`` (Rows, or what Ensemble takes), with radii; cutting it is cheap."""
        return grow(as_rows(labels), self.n_des, self.order)

    def reduce(self, labels: Any) -> Reduction:
        """Return the representatives of the kept nodes with their counts, and the row of each object."""
        return self.grow(labels).reduce(self.tau, self.gamma, counts=self.counts)

    def __repr__(self) -> str:
        return (
            f"CATree(tau={self.tau!r}, gamma={self.gamma!r}, n_des={self.n_des!r}, order={self.order!r}, "
            f"counts={self.counts!r})"
        )


class Tree:
    """A CA-tree with the radii of its nodes, to cut and to inspect.

    Nodes 0 … G - 1 are the leaves, one per distinct label row, in the lexicographic order of the rows. Inner nodes
    follow, deepest first, so that children come before their parents and the root is last.

    Attributes
    ----------
    parents : ndarray (n_nodes,), int64
        -1 for the root.
    splits : ndarray (n_nodes,), int64
        The number of clusterings, from the first, in which the rows of a node agree; the next splits it. M for leaves.
    first, last : ndarray (n_nodes,), int64
        The leaves below a node.
    counts : ndarray (n_nodes,), int64
        The number of objects of a node.
    radii : ndarray (n_nodes,), int64
        D'_r: no row of the node differs from its representative in more clusterings.
    representatives : ndarray (n_nodes,), int64
        The leaf whose row represents a node.
    clusterings : ndarray (M,), int64
        The clusterings in the order in which they split the tree.
    """

    def __init__(
        self,
        groups: Reduction,
        leaves: np.ndarray,
        clusterings: np.ndarray,
        rows: Any,
        shape: "_Shape",
        radii: np.ndarray,
        representatives: np.ndarray,
    ) -> None:
        self.parents, self.splits, self.first, self.last = shape.parents, shape.splits, shape.first, shape.last
        self.radii, self.representatives, self.clusterings = radii, representatives, clusterings
        self._groups, self._leaves, self._rows, self._shape = groups, leaves, rows, shape
        reached = np.concatenate([[0], np.cumsum(groups.counts[leaves])])
        self.counts = reached[self.last + 1] - reached[self.first]

    @property
    def n_leaves(self) -> int:
        return len(self._leaves)

    def __len__(self) -> int:
        return len(self.parents)

    def cut(self, tau: float) -> np.ndarray:
        """Return the topmost nodes with a radius of at most tau·M, in the order of their leaves (eq 15).

        An estimated radius can exceed the radius of the node's parent; descendants of a taken node are never taken.
        """
        limit = checks.check_between(tau, "tau", 0.0, 1.0) * len(self.clusterings) * (1 + 1e-12)
        topmost = np.empty(len(self), dtype=bool)
        cpu.topmost_nodes(self.parents, self.radii <= limit, topmost)
        nodes = np.flatnonzero(topmost)
        return nodes[np.argsort(self.first[nodes])]

    def kept(self, tau: float, gamma: float = 1.0) -> np.ndarray:
        """Return a cut's largest nodes, which hold a share ``gamma`` of the objects, in the order of their leaves."""
        return self._largest(self.cut(tau), gamma)

    def _largest(self, nodes: np.ndarray, gamma: float) -> np.ndarray:
        gamma = checks.check_real(gamma, "gamma", above=0.0, at_most=1.0)
        largest = np.argsort(-self.counts[nodes], kind="stable")
        reached = np.cumsum(self.counts[nodes][largest])
        n_kept = 1 + int(np.searchsorted(reached, gamma * reached[-1] * (1 - 1e-12)))
        return nodes[np.sort(largest[:n_kept])]

    def kept_share(self, tau: float, gamma: float = 0.9) -> float:
        """Return N_Z(τ) / N*_Z(τ): the share of a cut's nodes that hold a share ``gamma`` of the objects.

        The paper reads the shape of the clusters from its minimum over τ: it is small for compact clusters, between
        which are many small nodes to drop (.19 and .27 on digits), and large for elongated ones (.56 and .67 on rings).
        """
        nodes = self.cut(tau)
        return len(self._largest(nodes, gamma)) / len(nodes)

    def reduce(self, tau: float, gamma: float = 1.0, *, counts: str = "size") -> Reduction:
        """Return the representatives of the kept nodes as rows, in the lexicographic order of the ensemble's rows."""
        checks.check_choice(counts, "counts", ("size", "unit"))
        nodes = self.cut(tau)
        kept_nodes = self._largest(nodes, gamma)
        ends = nodes.copy()
        dropped = np.flatnonzero(~np.isin(nodes, kept_nodes))
        if len(dropped):
            ends[dropped] = self._descend_nodes(nodes[dropped], kept_nodes)
        represented = self._leaves[self.representatives[kept_nodes]]
        order = np.argsort(represented)
        row_of = np.empty(len(self), dtype=np.int64)
        row_of[kept_nodes[order]] = np.arange(len(kept_nodes))
        of_group = np.empty(self.n_leaves, dtype=np.int64)
        of_group[self._leaves] = np.repeat(row_of[ends], self.last[nodes] - self.first[nodes] + 1)
        groups = self._groups
        return NodesOfTree(
            groups.rows.take(
                represented[order],
                self.counts[kept_nodes[order]] if counts == "size" else np.ones(len(kept_nodes), dtype=np.int64),
            ),
            groups.rows.xp.asarray(of_group)[groups.row_of],
            distinct=groups.ensemble,
            row_of_distinct=of_group,
            counts_of_distinct=groups.counts,
            cut_tree=(self, tau, gamma),
        )

    def _descend_nodes(self, nodes: np.ndarray, kept_nodes: np.ndarray) -> np.ndarray:
        """Return, for each node, the kept node at which its descent from the root ends."""
        marks = np.zeros(len(self), dtype=np.uint8)
        marks[kept_nodes] = 2
        cpu.mark_ancestors(self.parents, marks)
        device = self._groups.rows.device
        ends = descend(self._rows, self._shape.arrays, self.representatives, marks, nodes, device=device)
        return devices.to_host(ends)


@dataclass(frozen=True)
class NodesOfTree(Reduction):
    """The kept nodes of a cut; ``cut_tree`` is (tree, τ, γ), for `gpuens.plotting.ca_tree`."""

    cut_tree: tuple[Tree, float, float] | None = None

    def groups(self) -> Reduction:
        return super().groups() if self.cut_tree is None else self.cut_tree[0]._groups


def grow(labels: Rows, n_des: int | None, order: str) -> Tree:
    """Return the CA-tree of rows in a time of O(G M), and O((n_des + k)² M) for the radius of each node."""
    xp, device, groups = labels.xp, labels.device, core_groups(labels)
    n_clusters = np.diff(labels.offsets)
    clusterings = np.argsort({"given": 0, "coarse": 1, "fine": -1}[order] * n_clusters, kind="stable")
    codes = groups.rows.codes[:, xp.asarray(clusterings)]
    if order == "given":
        leaves = np.arange(len(groups.rows))
    else:
        words = pack_rows(xp.asfortranarray(codes), n_clusters[clusterings] + 1, device=device)
        leaves = lexicographic(words)[0] if xp is np else devices.to_host(lexicographic_on_gpu(words))
    rows = xp.ascontiguousarray(codes[xp.asarray(leaves)])
    shape = _Shape(devices.to_host(common_prefixes(rows, device=device)), len(clusterings))
    radii, representatives = measure_nodes(rows, shape.arrays, n_des or 0, device=device)
    return Tree(groups, leaves, clusterings, rows, shape, radii, representatives)


# --- the shape of the tree --------------------------------------------------------------------------------------------


# starts and children of inner nodes, first and last leaf of each node, and levels: TreeShape of kernels/cpu/reduction
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class _Shape:
    """Nodes, parents and children, from the common prefixes of adjacent rows."""

    def __init__(self, prefixes: np.ndarray, n_clusterings: int) -> None:
        n_leaves = len(prefixes)
        parents, splits, first, last = cpu.inner_nodes(prefixes)
        order = np.lexsort((first, -splits))  # deepest nodes first, so that children come before parents
        number = np.empty(len(order) + 1, dtype=np.int64)
        number[order] = n_leaves + np.arange(len(order))
        number[-1] = -1  # the root has no parent
        self.parents = np.concatenate([number[parents[:n_leaves]], number[parents[n_leaves:][order]]])
        self.splits = np.concatenate([np.full(n_leaves, n_clusterings), splits[order]])
        self.first = np.concatenate([np.arange(n_leaves), first[order]])
        self.last = np.concatenate([np.arange(n_leaves), last[order]])
        # the children of an inner node are adjacent, in the order of their first leaves
        below = np.flatnonzero(self.parents >= 0)
        self.children = below[np.lexsort((self.first[below], self.parents[below]))]
        n_children = np.bincount(self.parents[below] - n_leaves, minlength=len(order))
        self.starts = np.concatenate([[0], np.cumsum(n_children)])
        # levels: runs of inner nodes that the same clustering splits
        splits = splits[order]
        self.levels = n_leaves + np.concatenate(
            [[0], np.flatnonzero(np.diff(splits)) + 1, [len(splits)]] if len(splits) else [[0]]
        ).astype(np.int64)

    @property
    def arrays(self) -> Arrays:
        return self.starts, self.children, self.first, self.last, self.levels


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def common_prefixes(rows: np.ndarray) -> np.ndarray:
    """Return (G,) int32: the number of first labels in which each row equals the previous row."""
    prefixes = np.empty(len(rows), dtype=np.int32)
    cpu.common_prefixes(rows, prefixes)
    return prefixes


@kernels.primitive
def measure_nodes(rows: np.ndarray, shape: Arrays, n_des: int) -> tuple[np.ndarray, np.ndarray]:
    """Return radii (int64) and representatives (int64) of all nodes, level by level from the deepest (eqs 8-11).

    ``rows`` (G, M) are those of the leaves. ``n_des`` = 0: exact.
    """
    n_nodes = len(shape[2])
    radii, representatives = np.zeros(n_nodes, dtype=np.int32), np.arange(n_nodes)
    cpu.measure_nodes(rows, shape, n_des, radii, representatives)
    return radii.astype(np.int64), representatives


@kernels.primitive
def descend(
    rows: np.ndarray, shape: Arrays, representatives: np.ndarray, marks: np.ndarray, nodes: np.ndarray
) -> np.ndarray:
    """Return, for each of ``nodes``, the node of mark 2 reached from the root by always going to the nearest child.

    Marks are 2 for ends, 1 for ancestors of ends, and 0 for nodes never visited. Of equally near children the first is
    taken.
    """
    ends = np.empty(len(nodes), dtype=np.int64)
    cpu.descend_tree(rows, shape, representatives, marks, nodes, ends)
    return ends


# --- kernels/ca_tree.cu -----------------------------------------------------------------------------------------------


@common_prefixes.kernel
def _(rows: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    prefixes = xp.empty(len(rows), dtype=np.int32)
    kernels.launch(
        "common_prefixes", kernels.blocks(len(rows), 256), 256, (rows, prefixes, *rows.shape),
        device=device, CODE=kernels.c_name(rows.dtype),
    )  # fmt: skip
    return prefixes


@measure_nodes.kernel
def _(rows: Any, shape: Arrays, n_des: int, *, device: str) -> tuple[np.ndarray, np.ndarray]:
    starts, _, first, _, levels = shape
    xp, n_nodes = devices.namespace(device), len(first)
    radii, representatives = xp.zeros(n_nodes, dtype=np.int32), xp.arange(n_nodes)
    on_device = [xp.asarray(array) for array in shape[:4]]
    room = n_des + int(np.diff(starts).max(initial=0)) if n_des else 1
    most_blocks = max(1, devices.scratch(device) // (8 * room))
    for start, stop in zip(levels[:-1].tolist(), levels[1:].tolist(), strict=True):
        n_blocks = min(stop - start, most_blocks, 65_535)
        kernels.launch(
            "measure_nodes", n_blocks, 64,
            (rows, *on_device, representatives, radii, xp.empty(n_blocks * room, dtype=np.int64), start, stop,
             *rows.shape, n_des, room),
            device=device, CODE=kernels.c_name(rows.dtype),
        )  # fmt: skip
    return devices.to_host(radii).astype(np.int64), devices.to_host(representatives)


@descend.kernel
def _(
    rows: Any, shape: Arrays, representatives: np.ndarray, marks: np.ndarray, nodes: np.ndarray, *, device: str
) -> Any:
    xp, (starts, children, *_) = devices.namespace(device), shape
    ends = xp.empty(len(nodes), dtype=np.int64)
    kernels.launch(
        "descend", kernels.blocks(len(nodes), 128), 128,
        (rows, *(xp.asarray(array) for array in (starts, children, representatives, marks, nodes)), ends, len(nodes),
         len(rows), len(marks) - 1, rows.shape[1]),
        device=device, CODE=kernels.c_name(rows.dtype),
    )  # fmt: skip
    return ends
