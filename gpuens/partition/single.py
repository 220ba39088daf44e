"""Exact single linkage without N × N: the maximum spanning tree of the groups, by Borůvka's rounds.

In each round every component takes the best edge that leaves it. A row's list of nearest others says which edge that
is, as long as a listed row of another component is not behind the bound of what is outside the list. Rows whose lists
have run dry are searched for again, but only where their bound could still beat the best edge known of their
component, and only for edges that do.
"""

import numpy as np
from numba import njit

from gpuens import device as devices
from gpuens import progress, validation
from gpuens.partition.average import N_LISTED
from gpuens.partition.dendrogram import Dendrogram
from gpuens.partition.nearest import bytes_needed, nearest_index, nearest_lists
from gpuens.partition.order import NO_HASH, comes_before, pair_hash
from gpuens.partition.work import Work


def single_linkage(
    codes: np.ndarray,
    offsets: np.ndarray,
    cluster_weights: np.ndarray,
    sizes: np.ndarray,
    *,
    device: str = "cpu",
    work: Work | None = None,
) -> Dendrogram:
    """Return the single-linkage dendrogram of distinct label rows; parameters are those of `average_linkage`.

    Among equally similar edges the one with the smaller hash of its two rows belongs to the tree.
    """
    work = Work() if work is None else work
    n_rows = len(codes)
    n_listed = min(N_LISTED, max(1, n_rows - 1))
    validation.fits(
        bytes_needed(codes, len(cluster_weights), n_listed) + 120 * n_rows,
        devices.memory_budget(),
        f"single linkage of {n_rows} distinct rows of {codes.shape[1]} labels",
        "reduce the rows first, or use a method of the transfer cut (lwgp, hbgf)",
    )
    index = nearest_index(codes, offsets, cluster_weights, sizes, device=device)
    lists = nearest_lists(index, n_listed)
    component = np.arange(n_rows)
    tree = []
    with progress.bar(total=n_rows - 1, description="single linkage") as shown:
        while True:
            edges = _best_edges(component, lists, index, work)
            if not len(edges[0]):
                break
            used = _contract(component, *edges)
            tree.append([part[used] for part in edges])
            work.rounds += 1
            shown.update(int(used.sum()))
    work.comparisons += index.comparisons
    if not tree:
        nothing = np.empty(0, dtype=np.int64)
        return Dendrogram.from_merges(nothing, nothing, np.empty(0), n_rows)
    tail, head, similarities, ties = (np.concatenate(parts) for parts in zip(*tree, strict=True))
    order = np.lexsort((ties, -similarities))
    kept, absorbed = _names_of_merges(tail[order], head[order], n_rows)
    return Dendrogram.from_merges(kept, absorbed, similarities[order], n_rows)


def _best_edges(component, lists, index, work) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return tail, head, similarity and hash of the best edge that leaves each component that has one."""
    n_rows = len(component)
    head = np.full(n_rows, -1)  # by component name
    tail = np.full(n_rows, -1)
    similarity = np.zeros(n_rows)
    tie = np.full(n_rows, NO_HASH, dtype=np.uint64)
    unsure = np.zeros(n_rows, dtype=bool)
    _offer_listed(component, lists.ids, lists.similarities, lists.bound, lists.bound_hash,
                  np.arange(n_rows), tail, head, similarity, tie, unsure)  # fmt: skip
    while True:
        _still_unsure(component, lists.bound, lists.bound_hash, similarity, tie, unsure)
        queries = np.flatnonzero(unsure)
        if not len(queries):
            break
        # the rows that promise most first: what they find spares most of the others their search
        batch = queries[np.argsort(-lists.bound[queries], kind="stable")[: max(256, len(queries) // 8)]]
        index.search(batch, component, similarity[component[batch]], lists)
        work.searches += len(batch)
        unsure[batch] = False
        _offer_listed(component, lists.ids, lists.similarities, lists.bound, lists.bound_hash,
                      batch, tail, head, similarity, tie, unsure)  # fmt: skip
        unsure[batch] = False
    leaving = np.flatnonzero(head >= 0)
    return tail[leaving], head[leaving], similarity[leaving], tie[leaving]


@njit(cache=True, nogil=True)
def _offer_listed(component, ids, similarities, bound, bound_hash, rows, tail, head, similarity, tie, unsure):
    """Let each of ``rows`` offer its best listed edge to its component; mark the rows whose list cannot tell."""
    for q in rows:
        name = component[q]
        found = False
        for s in range(ids.shape[1]):
            r = ids[q, s]
            if r < 0:
                break
            if component[r] == name:
                continue
            found = True
            edge = pair_hash(q, r)
            if comes_before(similarities[q, s], edge, similarity[name], tie[name]):
                tail[name], head[name], similarity[name], tie[name] = q, r, similarities[q, s], edge
            break  # lists are best first
        unsure[q] = not found and bound[q] > 0.0


@njit(cache=True, nogil=True)
def _still_unsure(component, bound, bound_hash, similarity, tie, unsure):
    """Clear the mark of rows that have nothing outside their lists to beat their component's best edge."""
    for q in range(len(component)):
        if unsure[q] and not comes_before(bound[q], bound_hash[q], similarity[component[q]], tie[component[q]]):
            unsure[q] = False


@njit(cache=True, nogil=True)
def _root(parent, a):
    while parent[a] != a:
        parent[a] = parent[parent[a]]
        a = parent[a]
    return a


@njit(cache=True, nogil=True)
def _contract(component, tail, head, similarity, tie):
    """Join components along the edges, name each by its smallest row; return which edges were not taken twice."""
    n_rows = len(component)
    parent = np.arange(n_rows)
    used = np.zeros(len(tail), dtype=np.bool_)
    for e in range(len(tail)):
        a, b = _root(parent, component[tail[e]]), _root(parent, component[head[e]])
        if a != b:
            used[e] = True
            parent[max(a, b)] = min(a, b)
    for q in range(n_rows):
        component[q] = _root(parent, component[q])
    return used


@njit(cache=True, nogil=True)
def _names_of_merges(tail, head, n_rows):
    """Return the regions that each tree edge joins, best edge first, each named by its smallest row."""
    parent = np.arange(n_rows)
    kept = np.empty(len(tail), dtype=np.int64)
    absorbed = np.empty(len(tail), dtype=np.int64)
    for e in range(len(tail)):
        a, b = _root(parent, tail[e]), _root(parent, head[e])
        kept[e], absorbed[e] = min(a, b), max(a, b)
        parent[max(a, b)] = min(a, b)
    return kept, absorbed
