"""METIS: k parts of like weight with as little similarity as possible between them (Karypis & Kumar 1998).

The only module that names pymetis. METIS trusts what it is given: weights that are not positive integers, or whose sums
overflow, end the interpreter, and of a graph that is not symmetric it makes nonsense. So the graph is checked and its
edges are scaled to integers first.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from gpuens import checks, progress
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.partition.base import Partition, Partitioner
from gpuens.rows import Rows, by_first_row

BLOCK = 512  # rows of the similarity computed at a time
BYTES_PER_PAIR = 28  # of ordered vertices: 16 in the graph and, as measured, up to 10 in METIS's coarser graphs
MANY_PARTS = 40  # vertices a part, below which METIS bisects the whole graph and no coarser one, for 43 bytes a pair
LEVELS = 2**20  # that edge weights are scaled to; the cut of graphs of .55 … .8 no longer changes from 10⁶ on
N_CUTS = 5  # attempts, the best of which is kept
SYMMETRIC_WITHIN = 1e-9  # share of the larger of the two: what rounding does


def metis(
    similarities: np.ndarray | Callable[[int, int], np.ndarray],
    weights: np.ndarray,
    n_parts: int,
    *,
    imbalance: float = 0.03,
    random_state: int | np.random.Generator | None = 0,
) -> np.ndarray:
    """Return the part of each vertex, 0 … n_parts - 1 in the order of the parts' first vertices, none of them empty.

    The objective is min Σ s_ij over pairs in different parts, where no part may weigh more than (1 + imbalance) Σ w /
    n_parts, as far as METIS's multilevel heuristic finds such parts. It is its k-way scheme, the best of 5 attempts: on
    complete graphs of 1,000 to 3,000 vertices and similarities in .55 … .8 it cuts less than recursive bisection and
    comes closer to the classes. Recursive bisection steps in where the k-way scheme leaves parts empty, which it does
    when there are hardly more vertices than parts. Parts that both leave empty are given, one after the other, the
    vertex that is least similar to the rest of the heaviest part.

    Parameters
    ----------
    similarities : ndarray (n, n), or callable
        Symmetric, finite and ≥ 0; 0 is no edge, nor is the diagonal. A callable
        ``similarities_of(start, stop)`` gives rows start … stop - 1, (stop - start, n), so that the whole matrix need
        not exist. Where vertices stand for several objects, s_ij is the sum over pairs of their objects.
        Edges become integers 1 … 2²⁰ in proportion to s (fewer levels where METIS is built with 32-bit integers).
    weights : ndarray (n,), integers ≥ 1
        What the vertices weigh. One that weighs more than a part should counts as one that fills a part.
    n_parts : int, at most n
    imbalance : float > 0
        By how much of the average a part may be heavier; it is a multiple of .001 to METIS.
    random_state : int, Generator or None
        Equal seeds give equal parts on one platform; METIS draws from the C library's generator.

    Returns
    -------
    ndarray (n,), int64

    Raises
    ------
    MemoryError
        Before it starts, when a complete graph of n vertices does not fit the memory budget.
    ValueError, TypeError
        For similarities or weights that METIS cannot take.

    Warns
    -----
    UserWarning
        When no two vertices are similar: any parts of like weight are as good.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuens.partition import metis
    >>> similar = np.array([[0, 0.1, 0.8, 0.2], [0.1, 0, 0.2, 0.7], [0.8, 0.2, 0, 0.1], [0.2, 0.7, 0.1, 0]])
    >>> metis(similar, np.ones(4, dtype=int), 2).tolist()
    [0, 1, 0, 1]
    """
    weights = check_vertex_weights(weights)
    n = len(weights)
    n_parts = checks.check_integer(n_parts, "n_parts", minimum=1)
    if n_parts > n:
        raise ValueError(f"n_parts={n_parts} is more than the {n} vertices of the graph; ask for fewer parts.")
    imbalance = min(checks.check_real(imbalance, "imbalance", above=0.0), n_parts - 1.0)  # one part that holds all
    if n_parts == 1:
        return np.zeros(n, dtype=np.int64)
    if n_parts == n:
        return np.arange(n)
    graph_fits(n, n_parts)
    import pymetis

    integer = pymetis.zero_copy_dtype()
    weight, largest = sum(weights.tolist()), np.iinfo(integer).max
    if n * n > largest // 4 or weight > largest // 4:
        raise ValueError(
            f"a graph of {n} vertices that weigh {weight} is beyond METIS's {largest.bit_length() + 1}-bit integers; "
            "work on a sample or give smaller weights."
        )
    starts, columns, edges = _edges(_rows_of(similarities, n), n)
    if not len(edges):
        checks.warn("similarities are all 0 between different vertices: which of them share a part is arbitrary.")
    edges = _scaled(edges, integer)
    graph = pymetis.CSRAdjacency(starts.astype(integer, copy=False), columns.astype(integer, copy=False))
    options = pymetis.Options(
        seed=int(checks.make_generator(random_state).integers(2**31)),
        ncuts=N_CUTS,
        ufactor=max(1, round(1000 * imbalance)),
    )
    limited = _at_most_a_part(weights, n_parts).astype(integer)
    for recursive in (False, True):
        found = _calling(
            pymetis.part_graph, n_parts, graph, vweights=limited, eweights=edges, recursive=recursive, options=options
        )
        labels = np.array(found.vertex_part, dtype=np.int64)
        if np.bincount(labels, minlength=n_parts).all():
            break
    _fill_empty_parts(labels, weights, n_parts, starts, columns, edges)
    return by_first_row(labels)


@dataclass(frozen=True, eq=False)
class METIS(Partitioner):
    """The complete graph of the rows, cut by METIS into parts of like weight; an edge is the sum over their objects.

    It holds all pairs of rows, 28 bytes each (44 of fewer than 40 rows a cluster).

    Parameters
    ----------
    imbalance : float > 0
        By how much of the average a part may be heavier. Equal parts cost accuracy where classes are unequal.
    random_state : int, None or numpy.random.Generator
        The same seed gives the same labels.
    """

    imbalance: float = 0.03
    random_state: Any = 0
    bytes_each_pair = BYTES_PER_PAIR

    def __post_init__(self) -> None:
        checks.check_real(self.imbalance, "imbalance", above=0.0)
        checks.make_generator(self.random_state)

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        graph_fits(len(rows), n_clusters)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        settings = {"imbalance": self.imbalance, "random_state": self.random_state}
        return Partition.of_labels(metis(similarity.pair_sums(rows), rows.counts, n_clusters, **settings))


# --- the graph --------------------------------------------------------------------------------------------------------


def graph_fits(n: int, n_parts: int) -> None:
    """Refuse a complete graph of n vertices that does not fit, which methods do before they work out its edges."""
    checks.check_memory(
        (BYTES_PER_PAIR if n >= MANY_PARTS * n_parts else 44) * n * n,
        devices.memory_budget(),
        f"METIS holds all pairs of {n} vertices, which",
        "work on a sample, reduction=Sample(…)",
    )


def _rows_of(similarities, n):
    if callable(similarities):
        return similarities
    _check_shape(np.shape(similarities), (n, n))
    return lambda start, stop: similarities[start:stop]


def _check_shape(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    """Refuse similarities, or rows of them, that are not those of the vertices that have weights."""
    if tuple(shape) != expected:
        raise ValueError(
            f"similarities must have shape {expected} to go with the weights, but have shape {tuple(shape)}."
        )


def _edges(similarities_of, n):
    """Return the graph's rows as starts (n + 1,), columns and similarities (edges,): each edge is there both ways."""
    starts = np.zeros(n + 1, dtype=np.int64)
    columns = np.empty(n * (n - 1), dtype=np.int64)  # memory is taken as it is written to
    edges = np.empty(n * (n - 1))
    for start in progress.bar(range(0, n, BLOCK), "similarities"):
        stop = min(start + BLOCK, n)
        rows = np.asarray(similarities_of(start, stop), dtype=np.float64)
        _check_shape(rows.shape, (stop - start, n))
        if not (rows.min() >= 0 and rows.max() < np.inf):
            row, column = np.argwhere(~((rows >= 0) & (rows < np.inf)))[0]
            raise ValueError(
                f"similarities must be finite and at least 0, but that of {start + row} and {column} is "
                f"{rows[row, column]}."
            )
        _append(start, rows, starts, columns, edges)
    columns, edges = columns[: starts[n]], edges[: starts[n]]
    i, j, there, back = _mirror(starts, columns, edges, SYMMETRIC_WITHIN)
    if i >= 0:
        raise ValueError(
            f"similarities must be symmetric, but that of {i} to {j} is {there} and that of {j} to {i} is {back}; pass "
            "(S + S.T) / 2."
        )
    return starts, columns, edges


@njit(cache=True, nogil=True)
def _append(start, rows, starts, columns, edges):
    filled = starts[start]
    for r in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if rows[r, j] > 0.0 and j != start + r:
                columns[filled] = j
                edges[filled] = rows[r, j]
                filled += 1
        starts[start + r + 1] = filled


@njit(cache=True, nogil=True)
def _mirror(starts, columns, edges, within):
    """Give both directions of each edge the value of i < j; return the first that differ by more than rounding.

    Rows are gone through in their order, so the mirror images of row j come in the order in which row j lists them.
    """
    n = len(starts) - 1
    mirrored = starts[:n].copy()  # how far each row's entries left of the diagonal have been met
    for i in range(n):
        for e in range(mirrored[i], starts[i + 1]):
            j = columns[e]
            if j < i:  # nobody met it
                return j, i, 0.0, edges[e]
            back = mirrored[j]
            if back == starts[j + 1] or columns[back] != i:
                first = columns[back] if back < starts[j + 1] else n
                if first < i:
                    return first, j, 0.0, edges[back]
                return i, j, edges[e], 0.0
            if abs(edges[e] - edges[back]) > within * max(edges[e], edges[back]):
                return i, j, edges[e], edges[back]
            edges[back] = edges[e]
            mirrored[j] += 1
    return -1, -1, 0.0, 0.0


def _scaled(edges, integer):
    """Return similarities in proportion as integers ≥ 1 whose sum is at most half of what such an integer holds."""
    if len(edges) == 0:
        return edges.astype(integer)
    edges /= edges.max()
    edges *= min(LEVELS, (np.iinfo(integer).max // 2 - len(edges)) / edges.sum())
    np.rint(edges, out=edges)
    np.maximum(edges, 1.0, out=edges)
    return edges.astype(integer)


# --- the call ---------------------------------------------------------------------------------------------------------

_one_call = Lock()


def _calling(part_graph: Callable, *graph: Any, **options: Any) -> Any:
    """Return what METIS makes of a graph, or say in one sentence why it gave up.

    Out of memory, it says so on stderr itself, and here is no more than an unknown exception. It holds the
    interpreter's lock, so that nobody else has anything to say while its words are taken away. SIGTERM is METIS's own
    while it works: it gives up, jumps out of its handler and leaves the signal blocked; who waits for it shall have it.
    """
    if os.name != "posix":
        return part_graph(*graph, **options)
    with _one_call, _without_stderr():
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            return part_graph(*graph, **options)
        except RuntimeError as error:
            failure = error
        left = signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if signal.SIGTERM in left - mask:
        signal.raise_signal(signal.SIGTERM)
        raise RuntimeError("METIS was told to end (SIGTERM).") from failure
    raise MemoryError(
        "METIS ran out of memory, though it was to need less than may be used; work on a sample, reduction=Sample(…), "
        "or make memory free."
    ) from failure


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Send what C writes to stderr nowhere."""
    try:
        stderr = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


# --- the weights ------------------------------------------------------------------------------------------------------


def check_vertex_weights(values: Any) -> np.ndarray:
    """Return one whole number from 1 on for each vertex as int64, or refuse them."""
    array = checks.host_array(values, "weights must be whole numbers, one a vertex")
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0:
        raise ValueError(
            f"weights must be whole numbers, one a vertex, but have shape {array.shape} and dtype {array.dtype}."
        )
    whole = array.astype(np.int64)
    if whole.min() < 1:  # unsigned ones beyond int64 too
        raise ValueError(f"weights must be whole numbers from 1 on, but {array[whole.argmin()]} was found.")
    return whole


def _at_most_a_part(weights, n_parts):
    """Return weights where none is above what a part has to hold when heavier vertices fill a part each.

    With heavier ones recursive bisection is left with parts, and no vertices to put into them.
    """
    heaviest = np.sort(weights)[::-1][:n_parts]
    rest = int(weights.sum())
    limit = rest
    for filled, weight in enumerate(heaviest.tolist()):
        limit = -(-rest // (n_parts - filled))
        if weight <= limit:
            break
        rest -= weight
    return np.minimum(weights, limit)


@njit(cache=True, nogil=True)
def _fill_empty_parts(labels, weights, n_parts, starts, columns, edges):
    vertices = np.zeros(n_parts, dtype=np.int64)
    heavy = np.zeros(n_parts, dtype=np.int64)
    for v in range(len(labels)):
        vertices[labels[v]] += 1
        heavy[labels[v]] += weights[v]
    for empty in range(n_parts):
        if vertices[empty] > 0:
            continue
        source = -1
        for part in range(n_parts):
            if vertices[part] > 1 and (source < 0 or heavy[part] > heavy[source]):
                source = part
        moved, least = -1, np.int64(0)
        for v in range(len(labels)):
            if labels[v] != source:
                continue
            to_the_rest = np.int64(0)
            for e in range(starts[v], starts[v + 1]):
                if labels[columns[e]] == source:
                    to_the_rest += edges[e]
            if moved < 0 or to_the_rest < least:
                moved, least = v, to_the_rest
        labels[moved] = empty
        vertices[source] -= 1
        vertices[empty] += 1
        heavy[source] -= weights[moved]
        heavy[empty] += weights[moved]
