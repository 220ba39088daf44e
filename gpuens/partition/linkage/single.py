"""Exact single linkage without an N × N matrix: the maximum spanning tree of the groups, by Borůvka's rounds.

In each round every component takes its best edge to another component. Each row has a list of its nearest rows, and a
bound on all rows outside the list. The list gives the row's best edge if it still holds a row of another component that
is at least as similar as the bound. Otherwise the list is exhausted, and the row must be searched again. It is searched
only if its bound is better than the best known edge of its component, and only for edges better than that edge.
"""

from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.conduct import n_listed
from gpuens.partition.linkage.dendrogram import Dendrogram, Work, name_merges
from gpuens.partition.linkage.nearest import NO_HASH, Shortlists, bytes_needed, nearest_index, nearest_lists
from gpuens.runtime import checks, kernels, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

BLOCK = 512  # rows of the similarity matrix computed at a time


def single_linkage(rows: Rows, similarity: Any, *, work: Work | None = None) -> Dendrogram:
    """Return the single-linkage dendrogram of distinct label rows under any similarity.

    Rows are in lexicographic order. If edges are equally similar, the edge with the smaller hash of its two rows is
    taken. The work is added to the counters ``work``.
    """
    return METHODS.get(similarity.kind, _by_tiles)(rows, similarity, Work() if work is None else work)


def check_list_memory(rows: Rows) -> None:
    """Raise MemoryError, before work starts, if the lists of single linkage under a diagonal S do not fit."""
    checks.check_memory(
        bytes_needed(rows.codes, rows.n_clusters, n_listed(rows)) + 120 * len(rows),
        devices.memory_budget(rows.device),
        f"single linkage of {len(rows):,} distinct rows",
        "reduce the rows first, or use a method of the transfer cut (lwgp, hbgf)",
    )


def _by_lists(rows: Rows, similarity: Any, work: Work) -> Dendrogram:
    """Return the dendrogram under a diagonal S."""
    n_rows, device = len(rows), rows.device
    check_list_memory(rows)
    # the numbers of objects do not change single linkage, and their products with similarities could overflow
    sizes = rows.xp.ones(n_rows, dtype=np.int64)
    index = nearest_index(rows.codes, rows.offsets, similarity.weights, sizes, device=device)
    lists = nearest_lists(index, n_listed(rows))
    component = rows.xp.arange(n_rows)
    tree = [_no_edges()]
    with progress.bar(total=n_rows - 1, description="single linkage") as bar:
        while True:
            edges = _best_edges(component, lists, index, work, device)
            if not len(edges.tail):
                break
            component, is_used = contract(component, edges.tail, edges.head, device=device)
            tree.append(Edges(*(devices.to_host(part[is_used]) for part in edges)))
            work.rounds += 1
            bar.update(len(tree[-1].tail))
    work.comparisons += index.comparisons
    return _dendrogram(tree, n_rows)


def _no_edges() -> "Edges":
    return Edges.none(0, np)


def _dendrogram(tree: list["Edges"], n_rows: int) -> Dendrogram:
    """Return the dendrogram of one or more spanning trees."""
    tail, head, similarities, ties = (np.concatenate(parts) for parts in zip(*tree, strict=True))
    order = np.lexsort((ties, -similarities))
    kept, absorbed = name_merges(tail[order], head[order], n_rows)
    return Dendrogram.from_merges(kept, absorbed, similarities[order], n_rows)


def _by_tiles(rows: Rows, similarity: Any, work: Work) -> Dendrogram:
    """Return the dendrogram under any similarity.

    Each round computes the similarities of all pairs of rows and at least halves the number of components.
    """
    n_rows = len(rows)
    component, tree = np.arange(n_rows), [_no_edges()]
    while component.any():  # the loop ends when row 0 names the component of all rows
        edges = Edges.none(n_rows, np)
        edges.similarity[:] = -np.inf
        for start in progress.bar(range(0, n_rows, BLOCK), "single linkage"):
            tile = similarity.tile(rows, start, min(start + BLOCK, n_rows))
            cpu.offer_tile(start, np.ascontiguousarray(tile), component, edges)
            work.comparisons += tile.size
        leaving = np.unique(component)
        leaving_edges = edges.take(leaving)
        component, is_used = contract(component, leaving_edges.tail, leaving_edges.head)
        tree.append(Edges(*(part[is_used] for part in leaving_edges)))
        work.rounds += 1
    return _dendrogram(tree, n_rows)


METHODS = {"diagonal": _by_lists}  # kind of similarity -> function for the linkage; other kinds use `_by_tiles`


class Edges(cpu.Edges):
    """The best edge so far from each component to another one (kernels/cpu/linkage/primitives.h)."""

    @classmethod
    def none(cls, n_rows: int, xp: Any) -> "Edges":
        return cls(
            xp.full(n_rows, -1), xp.full(n_rows, -1), xp.zeros(n_rows), xp.full(n_rows, NO_HASH, dtype=np.uint64)
        )

    def take(self, places: Any) -> "Edges":
        return Edges(*(part[places] for part in self))


def _best_edges(component: Any, lists: Shortlists, index: Any, work: Work, device: str) -> Edges:
    """Return the best edge from each component to another component, if there is an edge."""
    xp, n_rows = devices.namespace(device), len(component)
    edges = Edges.none(n_rows, xp)
    unsure = offer_listed(component, lists, xp.arange(n_rows), edges, device=device)
    while True:
        similarity, tie = edges.similarity[component], edges.tie[component]
        # keep only rows whose bound is better than the best edge of their component
        unsure &= (lists.bound > similarity) | ((lists.bound == similarity) & (lists.bound_hash < tie))
        queries = xp.flatnonzero(unsure)
        if not len(queries):
            break
        # search the rows with the highest bounds first; usually, their edges make searches for the remaining rows
        # unnecessary
        promising = xp.argsort(-lists.bound[queries], kind="stable")
        batch = queries[promising[: max(256, len(queries) // 8)]]
        index.search(batch, component, edges.similarity[component[batch]], lists)
        work.searches += len(batch)
        offer_listed(component, lists, batch, edges, device=device)
        unsure[batch] = False
    return edges.take(xp.flatnonzero(edges.head >= 0))


@kernels.primitive
def offer_listed(component: np.ndarray, lists: Shortlists, rows: np.ndarray, edges: Edges) -> np.ndarray:
    """Offer the best listed edge of each row of ``rows`` to its component; return a mask of exhausted lists."""
    unsure = np.zeros(len(component), dtype=bool)
    cpu.offer_listed(component, lists, rows, edges, unsure)
    return unsure


@kernels.primitive
def contract(component: np.ndarray, tail: np.ndarray, head: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Join components along edges; return each row's component (named by its smallest row) and a mask of used edges.

    An edge chosen by both of its components is used once.
    """
    component, is_used = component.copy(), np.empty(len(tail), dtype=bool)
    cpu.contract(component, tail, head, is_used)
    return component, is_used


# --- kernels/boruvka.cu -----------------------------------------------------------------------------------------------


@offer_listed.kernel
def _(component: Any, lists: Shortlists, rows: Any, edges: Edges, *, device: str) -> Any:
    xp, n_listed = devices.namespace(device), np.int32(lists.ids.shape[1])
    unsure = xp.zeros(len(component), dtype=bool)
    offer = xp.empty(len(rows), dtype=np.int32)
    before = edges.similarity.copy()
    grid = kernels.blocks(len(rows), 128), 128
    listed = lists.ids, lists.similarities
    kernels.launch(
        "offer_similarity", *grid,
        (rows, len(rows), n_listed, component, *listed, lists.bound, offer, unsure, edges.similarity.view(np.uint64)),
        device=device,
    )  # fmt: skip
    edges.tie[edges.similarity != before] = NO_HASH
    kernels.launch(
        "offer_tie", *grid, (rows, len(rows), n_listed, component, *listed, offer, edges.similarity, edges.tie),
        device=device,
    )  # fmt: skip
    kernels.launch(
        "take_edge", *grid,
        (rows, len(rows), n_listed, component, *listed, offer, edges.similarity, edges.tie, edges.tail, edges.head),
        device=device,
    )  # fmt: skip
    return unsure


@contract.kernel
def _(component: Any, tail: Any, head: Any, *, device: str) -> tuple[Any, Any]:
    xp = devices.namespace(device)
    name, target = component[tail], component[head]
    root = xp.arange(len(component))
    root[name] = target
    # edges have a total order, so a cycle can only be a pair of components that have chosen the same edge
    chosen_twice = (root[target] == name) & (name < target)
    root[name[chosen_twice]] = name[chosen_twice]
    while True:  # each component points towards its root; pointer doubling takes log(depth) rounds
        grandparent = root[root]
        if bool((grandparent == root).all()):
            break
        root = grandparent
    smallest = xp.full(len(component), NO_HASH, dtype=np.uint64)
    kernels.launch("smallest_names", kernels.blocks(len(root), 128), 128, (root, len(root), smallest), device=device)
    return smallest[root[component]].astype(np.int64), ~chosen_twice
