"""The edges of a graph: each undirected edge once, as the numbers of its two objects and a weight."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.codes import factorize
from gpuens.labels.features import as_csr, power_of, times
from gpuens.labels.frames import as_pandas
from gpuens.labels.object_names import exact_indexes, exact_names, index_of_names, name_at
from gpuens.runtime import checks
from gpuens.runtime.device import check_readable, kind_of, memory_budget, to_host

if TYPE_CHECKING:
    from scipy.sparse import coo_array

BYTES_OF_AN_OBJECT = 64  # host memory for each object of a graph: its labels, and the row of a sparse matrix


@dataclass(frozen=True, eq=False, repr=False)
class Edges:
    """The edges of an undirected graph without loops; each edge occurs once.

    Attributes
    ----------
    first, second : ndarray (n_edges,), int32 or int64
        The two objects of each edge; first < second.
    weights : ndarray (n_edges,), float64
        Above 0.
    n_objects : int
        The number of objects; they may have no edge.
    names : pandas Index (n_objects,) or None
        The names of the objects; None if they have only numbers, 0 … n_objects - 1.
    """

    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray
    n_objects: int
    names: Any = None

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"Edges(n_objects={self.n_objects}, n_edges={len(self)})"

    def take(self, mask: np.ndarray, weights: np.ndarray) -> "Edges":
        """Return the edges of the mask ``mask`` (n_edges,), with new weights (n_kept,), and all objects."""
        return Edges(self.first[mask], self.second[mask], weights, self.n_objects, self.names)

    def matrix(self) -> "coo_array":
        """Return the edges as a SciPy COO array (n_objects, n_objects) with each edge in the upper triangle."""
        from scipy.sparse import coo_array

        return coo_array((self.weights, (self.first, self.second)), shape=(self.n_objects, self.n_objects))


def is_network(graph: Any) -> bool:
    """Return whether a graph is `Edges`, a `gpuens.Graph`, a graph of networkx or a graph of igraph."""
    return isinstance(graph, Edges) or hasattr(graph, "as_edges") or _is_igraph(graph) or _is_networkx(graph)


def as_edges(graph: Any) -> Edges:
    """Return the edges of a graph.

    Parameters
    ----------
    graph : Edges, gpuens.Graph, SciPy sparse matrix, array, DataFrame, or graph of networkx or igraph
        See `gpuens.graph_consensus`.

    Raises
    ------
    ValueError, TypeError
        For anything else, directed graphs and matrices that are not symmetric, objects that are neither numbers from 0
        nor names, and weights that are below 0 or not finite.
    MemoryError
        For a number of an object beyond the memory budget.

    Examples
    --------
    >>> from gpuens.labels.edges import as_edges
    >>> edges = as_edges([[0, 1], [2, 1], [1, 0]])
    >>> edges, edges.first.tolist(), edges.second.tolist()
    (Edges(n_objects=3, n_edges=2), [0, 1], [1, 2])
    """
    if isinstance(graph, Edges):
        return graph
    if hasattr(graph, "as_edges"):
        return graph.as_edges()
    if hasattr(graph, "tocsr"):
        return matrix_to_edges(graph)
    if _is_igraph(graph) or _is_networkx(graph):
        if graph.is_directed():
            raise ValueError(
                "graph is directed, but must be undirected; pass graph.to_undirected() of networkx, or "
                "graph.as_undirected() of igraph."
            )
        return (_edges_of_igraph if _is_igraph(graph) else _edges_of_networkx)(graph)
    check_readable(graph, "graph")
    if hasattr(table := as_pandas(graph), "iloc"):
        return _edges_of_table(table)
    return _edges_of_array(graph)


def match_objects(edges: Edges, n_objects: int, index: Any) -> Edges:
    """Return the edges with the numbers that their objects have among the objects of labels.

    Objects are matched by name, or, if ``index`` is None, names must be the numbers 0 … n_objects - 1. Edges without
    names already have these numbers.

    Raises
    ------
    ValueError
        For an object of the edges that is not among the objects of the labels, and for repeated names.
    """
    import pandas as pd

    if edges.names is None:
        if edges.n_objects > n_objects:
            raise ValueError(
                f"labels are of {n_objects} objects, but the edges have an object {edges.n_objects - 1}; pass labels "
                "of all objects, and count objects from 0."
            )
        return Edges(edges.first, edges.second, edges.weights, n_objects, index)
    names, object_names = edges.names, pd.RangeIndex(n_objects) if index is None else index
    for owner, owner_names in (("the graph", names), ("labels", object_names)):
        if not owner_names.is_unique:
            first = name_at(owner_names, owner_names.duplicated().argmax())
            raise ValueError(f"{owner}: several objects have the name {first!r}; rename them.")
    if (names.dtype.kind in "iu") != (object_names.dtype.kind in "iu"):  # a number and its text are the same name
        names, object_names = names.astype(str), object_names.astype(str)
    names, object_names = exact_indexes([names, object_names])
    places = object_names.get_indexer(names)
    if len(places) and places.min() < 0:
        unknown = name_at(edges.names, places.argmin())
        raise ValueError(
            f"labels have no object {unknown!r}, which the edges have; pass labels of all objects, with their names "
            "(an index, or --id-column)."
        )
    return pairs_to_edges(places[np.column_stack([edges.first, edges.second])], edges.weights, n_objects, index)


def pairs_to_edges(pairs: np.ndarray, weights: np.ndarray | None, n_objects: int, names: Any) -> Edges:
    """Return the edges of pairs of objects (n_pairs, 2), sorted by their objects.

    Loops and edges of weight 0 are left out. Of several pairs of the same objects, in any order, the largest weight
    counts. ``weights`` None are weights of 1.
    """
    first, second = pairs.T
    if weights is not None:
        if weights.dtype.kind not in "iufb":
            raise TypeError(f"weights of the edges are of type {weights.dtype}; make them real numbers.")
        if len(weights) and not (np.isfinite(weights).all() and weights.min() >= 0):
            raise ValueError("weights of the edges must be finite and not below 0; correct or leave out these edges.")
    is_edge = first != second if weights is None else (first != second) & (weights > 0)
    low, high = np.minimum(first, second)[is_edge], np.maximum(first, second)[is_edge]
    keys = low.astype(np.int64) * n_objects + high
    del low, high
    if weights is None:
        keys.sort()  # many times faster than np.unique
        keys = keys[np.diff(keys, prepend=-1) > 0]
        heaviest = np.ones(len(keys))
    else:
        order = keys.argsort()
        keys, sorted_weights = keys[order], weights[is_edge].astype(np.float64)[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        heaviest = np.maximum.reduceat(sorted_weights, starts) if len(starts) else sorted_weights
        keys = keys[starts]
        heaviest = times(heaviest, power_of(heaviest, "weights"))  # modularity has products of sums of weights
    dtype = np.int32 if n_objects < 2**31 else np.int64
    return Edges((keys // n_objects).astype(dtype), (keys % n_objects).astype(dtype), heaviest, n_objects, names)


def matrix_to_edges(graph: Any, name: str = "graph", *, mend: bool = False) -> Edges:
    """Return the edges of a sparse symmetric matrix; its diagonal is left out.

    With ``mend``, a matrix that is not symmetric is not refused: the larger weight of two directions counts.
    """
    from scipy.sparse import coo_array, csr_array, triu

    if kind_of(getattr(graph, "data", None)) == "cuda":
        raise TypeError(f"{name} is a graph in GPU memory, but must be in host memory; pass {name}.get().")
    if len(graph.shape) != 2 or graph.shape[0] != graph.shape[1]:
        raise ValueError(f"{name} has shape {tuple(graph.shape)}; the matrix of a graph is square.")
    if graph.dtype.kind not in "iufb":
        raise TypeError(f"{name} is a graph with weights of type {graph.dtype}; make them real numbers.")
    matrix = csr_array(as_csr(graph, name), dtype=np.float64)
    if matrix.nnz:
        if not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0.0):
            raise ValueError(f"{name} is a graph with weights that are below 0 or not finite; make them positive.")
        matrix = times(matrix, power_of(matrix, name))  # modularity has products of sums of weights, which may overflow
        if abs(matrix - matrix.T).max() > 1e-6 * matrix.max():
            if not mend:
                raise ValueError(f"{name} is a graph that is not symmetric; pass {name}.maximum({name}.T).")
            checks.warn(f"{name} is not symmetric; the larger weight of the two directions of an edge counts.")
            matrix = csr_array(matrix.maximum(matrix.T))
    edges = coo_array(triu(matrix, k=1))
    edges.eliminate_zeros()
    return Edges(edges.row, edges.col, edges.data, edges.shape[0])


# --- lists of edges ---------------------------------------------------------------------------------------------------


def number_names(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the numbers (n_edges, 2) of the named ends of edges, and the names of all objects.

    Names that are integers are sorted; other names are in the order in which they first appear.
    """
    import pandas as pd

    ends = np.column_stack(exact_names([first, second]))
    if ends.dtype.kind not in "iu":
        numbers, names = factorize(ends.ravel())
        if len(numbers) and numbers.min() < 0:
            raise ValueError(
                f"edges: edge {int(numbers.argmin()) // 2} lacks the name of an object; correct it, or leave it out."
            )
        return numbers.reshape(-1, 2), pd.Index(names, dtype=object)
    low = int(ends.min(initial=0))
    reach = int(ends.max(initial=0)) - low + 1
    if reach <= 8 * ends.size:  # a table of the numbers is faster than sorting
        occurs = np.zeros(reach, dtype=bool)
        occurs[ends.ravel() - low] = True
        number = np.cumsum(occurs, dtype=np.int64) - 1
        return number[ends - low], pd.Index(np.flatnonzero(occurs).astype(ends.dtype) + ends.dtype.type(low))
    names, numbers = np.unique(ends, return_inverse=True)
    return numbers.reshape(-1, 2), pd.Index(names)


def named_pairs_to_edges(first: np.ndarray, second: np.ndarray, weights: np.ndarray | None) -> Edges:
    """Return the edges between two arrays (n_edges,) of names of objects."""
    numbers, names = number_names(first, second)
    return pairs_to_edges(numbers, weights, len(names), names)


def _edges_of_array(graph: Any) -> Edges:
    try:
        array = np.asarray(to_host(graph))
    except ValueError:  # lists of different lengths
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] not in (2, 3) or not len(array):
        raise ValueError(
            "graph must be a sparse square matrix or a list of edges, an array (n_edges, 2) or (n_edges, 3) with "
            f"weights, not {type(graph).__name__} of shape {array.shape}."
        )
    ends, weights = array[:, :2], array[:, 2] if array.shape[1] == 3 else None
    if weights is not None and array.dtype.kind in "UO":
        weights = _as_numbers(weights)
    if array.dtype.kind not in "iuf":
        return named_pairs_to_edges(ends[:, 0], ends[:, 1], weights)
    are_numbers = array.dtype.kind != "f" or (np.isfinite(ends) & (ends == np.floor(ends))).all()
    if not (are_numbers and ends.min() >= 0):
        raise ValueError(
            "edges: the first two columns must hold the numbers of objects, 0, 1, 2, …; pass names as texts, or in a "
            "DataFrame."
        )
    n_objects = int(ends.max()) + 1
    checks.check_memory(
        BYTES_OF_AN_OBJECT * n_objects,
        memory_budget(),
        f"a graph of {n_objects:,} objects, the largest number in the edges plus 1,",
        "pass the edges as a DataFrame, whose numbers count as names",
    )
    numbers = ends.astype(np.int32 if n_objects < 2**31 else np.int64, copy=False)
    return pairs_to_edges(numbers, weights, n_objects, None)


def _edges_of_table(table: Any) -> Edges:
    if table.shape[1] not in (2, 3) or not len(table):
        raise ValueError(
            f"graph is a table of shape {tuple(table.shape)}, but must have a row for each edge, and columns for its "
            "two objects and, if you like, its weight."
        )
    columns = [np.asarray(table.iloc[:, m]) for m in range(table.shape[1])]
    return named_pairs_to_edges(columns[0], columns[1], columns[2] if len(columns) == 3 else None)


def _as_numbers(weights: np.ndarray) -> np.ndarray:
    try:
        return weights.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"weights of the edges must be real numbers ({checks.gist(error)}).") from error


# --- graphs of other packages -----------------------------------------------------------------------------------------


def _is_igraph(graph: Any) -> bool:
    return all(hasattr(graph, name) for name in ("get_edgelist", "vs", "es", "is_directed"))


def _is_networkx(graph: Any) -> bool:
    return all(hasattr(graph, name) for name in ("adjacency", "nodes", "edges", "is_directed"))


def _edges_of_igraph(graph: Any) -> Edges:
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weights = _as_numbers(np.array(graph.es["weight"])) if "weight" in graph.es.attributes() else None
    named = "name" in graph.vs.attributes()
    return pairs_to_edges(ends, weights, graph.vcount(), index_of_names(graph.vs["name"]) if named else None)


def _edges_of_networkx(graph: Any) -> Edges:
    names = index_of_names(list(graph))
    if names.dtype.kind in "iu":
        names = names.sort_values()
    number = dict(zip(names, range(len(names)), strict=True))
    listed = list(graph.edges(data="weight", default=1.0))
    ends = np.array([(number[a], number[b]) for a, b, _ in listed], dtype=np.int64).reshape(-1, 2)
    weights = _as_numbers(np.array([weight for *_, weight in listed]))
    return pairs_to_edges(ends, weights, len(names), names)
