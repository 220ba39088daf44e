"""METIS: k parts of similar weight with little similarity between different parts (Karypis & Kumar 1998).

This is the only module that uses pymetis. METIS does not check its input: if weights are not positive integers, or if
their sums overflow, the interpreter crashes; if a graph is asymmetric, the parts are wrong. So this module checks the
graph and scales its edges to integers.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

from gpuens.labels.incidence import scaled_columns, scaled_rows, sparse_incidence
from gpuens.labels.rows import Rows, by_first_row
from gpuens.partition.base import DIAGONAL, Partition, Partitioner
from gpuens.partition.linkage.nearest import nearest_index, nearest_lists
from gpuens.runtime import checks, installing, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng
from gpuens.runtime.threads import gil_enabled

BLOCK = 512  # rows of the similarity matrix computed at a time
# bytes for an ordered pair of vertices: 16 in the graph and up to 10 (measured) in METIS's coarser graphs
BYTES_PER_PAIR = 28
BYTES_PER_EDGE = 88  # memory for a directed edge of a sparse graph; up to 83 bytes measured while the graph is built
MANY_PARTS = 40  # with fewer vertices per part, METIS bisects the whole graph, which takes 43 bytes per pair
# largest integer edge weight; from 10⁶ on, more levels do not change the cut of graphs with edges in .55 … .8
LEVELS = 2**20
MOST_WEIGHT = 2**30  # largest total weight of a graph; with 2³⁶, the rounding of METIS's 32-bit numbers changes the cut
N_CUTS = 5  # number of attempts; the best cut is kept
MOST_LISTED = 16  # largest number of neighbours of a row, the capacity of kernels/nearest.cu
SYMMETRIC_WITHIN = 1e-9  # largest relative difference between the two triangles of a symmetric matrix

RowsOf = Callable[[int, int], Any]  # (start, stop) → similarities of rows start … stop - 1 with all rows
Edges = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts of rows, columns and similarities, in CSR format


@takes_rng
def metis(
    similarities: Any,
    weights: np.ndarray,
    n_parts: int,
    *,
    imbalance: float = 0.03,
    random_state: int | np.random.Generator | None = 0,
    rng: Any = NOT_GIVEN,
) -> np.ndarray:
    """Return the part of each vertex, 0 … n_parts - 1, numbered by the parts' first vertices; no part is empty.

    METIS's multilevel heuristic minimises Σ s_ij over pairs in different parts, where no part may weigh more than
    (1 + imbalance) Σ w / n_parts. We use its k-way scheme, the best of 5 attempts: on complete graphs of 1,000 to 3,000
    vertices and similarities in .55 … .8 it cuts less than recursive bisection and comes closer to the classes. If the
    k-way scheme leaves parts empty, which happens with hardly more vertices than parts, recursive bisection is tried.
    Parts that both leave empty get, one after the other, the vertex least similar to the rest of the heaviest part.

    Parameters
    ----------
    similarities : ndarray or SciPy sparse array (n, n), or callable
        Symmetric, finite and ≥ 0; 0 is no edge, and the diagonal is ignored. A callable
        ``similarities_of(start, stop)`` returns rows start … stop - 1, (stop - start, n), so that the whole matrix need
        not exist. If vertices stand for several objects, s_ij is the sum over pairs of their objects.
        Edges become integers 1 … 2²⁰ in proportion to s (fewer levels where METIS is built with 32-bit integers).
    weights : ndarray (n,), integers ≥ 1
        Weights of the vertices. If their sum is above 2³⁰, they are divided by a power of 2 and rounded, but not to 0.
        A vertex heavier than a part should be counts as one that fills a part.
    n_parts : int, at most n
    imbalance : float > 0
        The share by which a part may be heavier than the average, rounded to multiples of .001.
    random_state : int, None or numpy.random.Generator
        Equal seeds give equal parts on one platform; METIS draws from the C library's generator.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.

    Returns
    -------
    ndarray (n,), int64

    Raises
    ------
    MemoryError
        Before work starts, if the graph (complete, unless a sparse array is given) does not fit the memory budget.
    ValueError, TypeError
        For similarities or weights out of range.
    ImportError
        Where pymetis is not installed.

    Warns
    -----
    UserWarning
        If no two vertices are similar, so that any parts of similar weight are equally good.

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
    # at this limit, one part may hold all vertices
    imbalance = min(checks.check_real(imbalance, "imbalance", above=0.0), n_parts - 1.0)
    if n_parts == 1:
        return np.zeros(n, dtype=np.int64)
    if n_parts == n:
        return np.arange(n)
    sparse = hasattr(similarities, "tocoo")
    n_edges = similarities.nnz if sparse else n * n
    check_graph_memory(n, n_parts, n_edges if sparse else None)
    if (why := why_no_metis()) is not None:
        raise ImportError(why)
    import pymetis

    integer = pymetis.zero_copy_dtype()
    largest = np.iinfo(integer).max
    if n_edges > largest // 4:
        raise ValueError(
            f"a graph of {n} vertices and {n_edges} edges is beyond METIS's {largest.bit_length() + 1}-bit integers; "
            "work on a sample, reduction=Sample(…)."
        )
    weights = scaled_weights(weights, min(MOST_WEIGHT, largest // 4))
    graph_edges = _read_sparse_edges(similarities, n) if sparse else _build_edges(_rows_of(similarities, n), n)
    starts, columns, edges = graph_edges
    _refuse_asymmetry(starts, columns, edges)
    if not len(edges):
        checks.warn("similarities between different vertices are all 0: which of them share a part is arbitrary.")
    edges = _scale_edges(edges, integer)
    graph = pymetis.CSRAdjacency(starts.astype(integer, copy=False), columns.astype(integer, copy=False))
    options = pymetis.Options(
        seed=int(checks.make_generator(random_state).integers(2**31)),
        ncuts=N_CUTS,
        ufactor=max(1, round(1000 * imbalance)),
    )
    limited = limit_to_a_part(weights, n_parts).astype(integer)
    for recursive in (False, True):
        cut = _call_metis(
            pymetis.part_graph, n_parts, graph, vweights=limited, eweights=edges, recursive=recursive, options=options
        )
        labels = np.array(cut.vertex_part, dtype=np.int64)
        if np.bincount(labels, minlength=n_parts).all():
            break
    cpu.fill_empty_parts(labels, weights, n_parts, starts, columns, edges)
    return by_first_row(labels)


@dataclass(frozen=True, eq=False)
class METIS(Partitioner):
    """METIS's cut of the complete graph of rows into parts of similar weight; an edge is a sum over pairs of objects.

    The graph takes 28 bytes per pair of rows (44 below 40 rows per cluster).

    Parameters
    ----------
    imbalance : float > 0
        The share by which a part may be heavier than the average: 0.03 is 3 %. Parts of equal weight lower the accuracy
        if classes are unequal.
    random_state : int, None or numpy.random.Generator
        The same seed gives the same labels.
    """

    imbalance: float = 0.03
    random_state: Any = 0
    bytes_each_pair = BYTES_PER_PAIR

    def __post_init__(self) -> None:
        checks.check_real(self.imbalance, "imbalance", above=0.0)
        checks.make_generator(self.random_state)

    @property
    def lacks(self) -> str | None:
        return why_no_metis()

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        check_graph_memory(len(rows), n_clusters)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        return Partition.of_labels(self._cut(similarity.pair_sums(rows), rows.counts, n_clusters))

    def _cut(self, graph: Any, weights: np.ndarray, n_parts: int) -> np.ndarray:
        return metis(graph, weights, n_parts, imbalance=self.imbalance, random_state=self.random_state)


@dataclass(frozen=True, eq=False)
class NearestMETIS(METIS):
    """METIS's cut of the graph that joins each row to the rows most similar to it, an approximation of `METIS`.

    An edge is a sum over pairs of the rows' objects. The lists of the most similar rows are exact, computed as for the
    linkages. The graph takes at most 176 bytes per row and neighbour. Other parameters are those of `METIS`.

    Parameters
    ----------
    neighbors : int from 1 to 16
        The number of most similar rows to which a row is joined; further rows may join it.
    """

    neighbors: int = MOST_LISTED
    takes = DIAGONAL
    bytes_each_pair = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_integer(self.neighbors, "neighbors", minimum=1, maximum=MOST_LISTED)

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        check_graph_memory(len(rows), n_clusters, 2 * int(self.neighbors) * len(rows))

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        from scipy.sparse import coo_array

        n_rows, counts, sizes = len(rows), rows.counts, rows.xp.ones(len(rows), dtype=np.int64)
        index = nearest_index(rows.codes, rows.offsets, similarity.weights, sizes, device=rows.device)
        lists = nearest_lists(index, min(int(self.neighbors), max(1, n_rows - 1)))
        ids, values = devices.to_host(lists.ids), devices.to_host(lists.similarities)
        i, place = np.nonzero(ids >= 0)
        j = ids[i, place]
        graph = coo_array((values[i, place] * counts[i] * counts[j], (i, j)), shape=(n_rows, n_rows)).tocsr()
        return Partition.of_labels(self._cut(graph.maximum(graph.T), counts, n_clusters))


@dataclass(frozen=True, eq=False)
class BipartiteMETIS(METIS):
    """METIS's cut of the bipartite graph of rows and clusters, with the diagonal of S as edge weights (HBGF).

    An edge is multiplied by the number of objects of its row. The weight of a row is its number of objects, and the
    weight of a cluster is 1. The graph takes 176 bytes per row and clustering. Parameters are those of `METIS`.
    """

    takes = DIAGONAL
    bytes_each_pair = 0

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        check_graph_memory(rows.n_rows + rows.n_clusters, n_clusters, 2 * rows.n_rows * rows.n_clusterings)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        from scipy.sparse import block_array

        if n_clusters == len(rows):  # METIS's cut would have parts that hold only clusters and no rows
            return Partition.of_labels(np.arange(n_clusters))
        in_use = rows.cluster_sizes() > 0
        edges = scaled_columns(scaled_rows(sparse_incidence(rows), rows.counts), similarity.weights)[:, in_use]
        weights = np.concatenate([rows.counts, np.ones(edges.shape[1], dtype=np.int64)])
        parts = self._cut(block_array([[None, edges], [edges.T, None]]), weights, n_clusters)
        partition = Partition.of_labels(by_first_row(parts[: len(rows)]))
        checks.warn_of_fewer(partition.n_clusters, n_clusters)
        return partition


# --- the package ------------------------------------------------------------------------------------------------------


def why_no_metis() -> str | None:
    """Return the reason why METIS cannot be called, as a sentence, or None."""
    if find_spec("pymetis") is not None:
        return None
    return (
        f"cuts by METIS need pymetis, which is not installed: {installing.command_for('pymetis')}, or, where PyPI has "
        "no wheel for this system, conda install conda-forge::pymetis."
    )


# --- the graph --------------------------------------------------------------------------------------------------------


def check_graph_memory(n: int, n_parts: int, n_edges: int | None = None) -> None:
    """Raise MemoryError, before any edge is computed, if a graph of n vertices does not fit in memory.

    ``n_edges`` counts each edge in both directions; None is a complete graph.
    """
    if n_edges is None:
        edges, needed = "all pairs", (BYTES_PER_PAIR if n >= MANY_PARTS * n_parts else 44) * n * n
    else:
        edges, needed = f"{n_edges // 2} edges", BYTES_PER_EDGE * n_edges
    checks.check_memory(
        needed,
        devices.memory_budget(),
        f"METIS holds {edges} of {n:,} vertices, which",
        "work on a sample, reduction=Sample(…)",
    )


def _rows_of(similarities: Any, n: int) -> RowsOf:
    if callable(similarities):
        return similarities
    _check_shape(np.shape(similarities), (n, n))
    return lambda start, stop: similarities[start:stop]


def _check_shape(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    """Raise ValueError if the shape of the similarities does not match the number of weights."""
    if tuple(shape) != expected:
        raise ValueError(
            f"similarities must have shape {expected} to go with the weights, but have shape {tuple(shape)}."
        )


def _build_edges(similarities_of: RowsOf, n: int) -> Edges:
    """Return the graph in CSR: starts (n + 1,), columns and similarities (edges,), each edge in both directions."""
    starts = np.zeros(n + 1, dtype=np.int64)
    columns = np.empty(n * (n - 1), dtype=np.int64)  # the operating system provides memory only when it is written
    edges = np.empty(n * (n - 1))
    for start in progress.bar(range(0, n, BLOCK), "similarities"):
        stop = min(start + BLOCK, n)
        rows = np.ascontiguousarray(similarities_of(start, stop), dtype=np.float64)
        _check_shape(rows.shape, (stop - start, n))
        _refuse_negative(rows, lambda place: divmod(place, n), start)
        cpu.append_edges(start, rows, starts, columns, edges)
    return starts, columns[: starts[n]], edges[: starts[n]]


def _read_sparse_edges(similarities: Any, n: int) -> Edges:
    """Return the graph of a SciPy sparse array in CSR: starts, columns and similarities."""
    from scipy.sparse import coo_array

    _check_shape(similarities.shape, (n, n))
    matrix = coo_array(similarities)
    row, column, values = matrix.row, matrix.col, matrix.data.astype(np.float64)
    _refuse_negative(values, lambda place: (int(row[place]), int(column[place])))
    is_edge = (row != column) & (values > 0)
    graph = coo_array((values[is_edge], (row[is_edge], column[is_edge])), shape=(n, n)).tocsr()
    graph.sort_indices()
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data


def _refuse_negative(values: np.ndarray, place: Callable[[int], tuple[int, int]], start: int = 0) -> None:
    """Raise ValueError for negative, infinite or NaN similarities; ``place`` maps i to the position of value i.

    Rows are counted from ``start``.
    """
    if values.size and not (values.min() >= 0 and values.max() < np.inf):
        first = int(np.flatnonzero(~((values >= 0) & (values < np.inf)))[0])
        i, j = place(first)
        raise ValueError(
            f"similarities must be finite and at least 0, but that of {start + i} and {j} is {values.ravel()[first]}."
        )


def _refuse_asymmetry(starts: np.ndarray, columns: np.ndarray, edges: np.ndarray) -> None:
    i, j, forward, backward = cpu.symmetrize(starts, columns, edges, SYMMETRIC_WITHIN)
    if i >= 0:
        raise ValueError(
            f"similarities must be symmetric, but that of {i} to {j} is {forward} and that of {j} to {i} is "
            f"{backward}; pass (S + S.T) / 2."
        )


def _scale_edges(edges: np.ndarray, integer: Any) -> np.ndarray:
    """Return similarities scaled to integers ≥ 1 whose sum is at most half of the largest integer."""
    if len(edges) == 0:
        return edges.astype(integer)
    edges /= edges.max()
    edges *= min(LEVELS, (np.iinfo(integer).max // 2 - len(edges)) / edges.sum())
    np.rint(edges, out=edges)
    np.maximum(edges, 1.0, out=edges)
    return edges.astype(integer)


# --- the call ---------------------------------------------------------------------------------------------------------

_call_lock = Lock()


def _call_metis(part_graph: Callable[..., Any], *graph: Any, **options: Any) -> Any:
    """Call METIS; if it fails, raise an error of one sentence.

    When memory runs out, METIS prints to stderr itself and raises an unspecific exception, so stderr is redirected; no
    other thread can write to it meanwhile, because METIS holds the interpreter's lock. In a Python without it,
    METIS's line is printed, because those of other threads would be lost. METIS's own handler of SIGTERM aborts by a
    long jump and leaves the signal blocked; here the signal is unblocked and raised again.
    """
    if os.name != "posix":
        with _call_lock:
            return part_graph(*graph, **options)
    with _call_lock, _without_stderr() if gil_enabled() else nullcontext():
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
        "METIS ran out of memory, although its estimate was within the budget; work on a sample, reduction=Sample(…), "
        "or free memory."
    ) from failure


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Discard all output of C code to stderr inside the with block."""
    try:
        stderr = os.dup(2)
    except OSError:  # stderr is closed
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
    """Return the checked weights of the vertices, whole numbers ≥ 1, as int64."""
    array = checks.host_array(values, "weights must be whole numbers, one per vertex")
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0:
        raise ValueError(
            f"weights must be whole numbers, one per vertex, but have shape {array.shape} and dtype {array.dtype}."
        )
    integers = array.astype(np.int64)
    if integers.min() < 1:  # also catches unsigned weights beyond int64
        raise ValueError(f"weights must be whole numbers of at least 1, but {array[integers.argmin()]} was found.")
    return integers


def scaled_weights(weights: np.ndarray, largest_total: int) -> np.ndarray:
    """Return whole weights ≥ 1, divided by a power of 2 if their sum is above about ``largest_total``."""
    total = sum(weights.tolist())
    if total <= largest_total:
        return weights
    power = 2.0 ** (-(-total // largest_total) - 1).bit_length()
    return np.maximum(np.rint(weights / power), 1).astype(np.int64)


def limit_to_a_part(weights: np.ndarray, n_parts: int) -> np.ndarray:
    """Return the weights, reduced where necessary so that no vertex is heavier than a part should be.

    A vertex of this limit fills a part of its own. With heavier vertices, recursive bisection would have no vertices
    left for some parts.
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
