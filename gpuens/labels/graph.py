"""The neighbours of the objects: an undirected graph whose nodes are the rows of a label matrix.

A graph is checked once, where it enters: edges in both directions, no loops, positive weights with a mean of 1, the
objects of the labels matched by name. What follows reads three arrays and asks no more questions.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.edges import (
    BYTES_OF_AN_OBJECT,
    Edges,
    as_edges,
    match_objects,
    matrix_to_edges,
    pairs_to_edges,
)
from gpuens.labels.features import as_numbers
from gpuens.labels.object_names import in_order_of, index_of, names_of_objects, places_of
from gpuens.runtime import checks
from gpuens.runtime.device import check_readable, kind_of, memory_budget, to_host

if TYPE_CHECKING:
    from scipy.sparse import csr_array

N_NEIGHBORS = 6  # default number of neighbours; each cell of a honeycomb, the usual model of a tissue, has as many
MOST_OBJECTS = 2**31  # objects of a graph have numbers of 32 bits
BYTES_OF_AN_EDGE = 64  # host memory for each edge while both of its directions are sorted


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """The neighbours of N objects: an undirected graph without loops, in compressed sparse rows.

    Make one by `Graph.of` (a matrix, edges, or a graph of another package), `Graph.neighbors` (coordinates) or
    `Graph.grid` (pixels). `gpuens.consensus`, `gpuens.Spatial` and `gpuens.EAC` take it as ``graph``.

    Attributes
    ----------
    starts : ndarray (N + 1,), int64
        The first place of each object in `heads`.
    heads : ndarray (2 n_edges,), int32
        The neighbours of each object in ascending order; each edge occurs in both directions.
    weights : ndarray (2 n_edges,), float64
        Above 0, with a mean of 1; all 1 for a graph without weights.
    names : pandas Index (N,) or None
        The names of the objects.
    places : ndarray (N, n_dimensions) or None
        The coordinates of the objects, with which maps are drawn.
    shape : tuple of int or None
        The lengths of the axes of a grid without a mask.

    Examples
    --------
    >>> import gpuens as ge
    >>> graph = ge.Graph.grid((2, 3))  # six pixels
    >>> graph
    Graph(n_objects=6, n_edges=7, n_components=1)
    >>> graph.neighbors_of(4).tolist()
    [1, 3, 5]
    """

    starts: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    names: Any = None
    places: np.ndarray | None = None
    shape: tuple[int, ...] | None = None

    @classmethod
    def of(cls, graph: Any, n_objects: int | None = None, index: Any = None, *, name: str = "graph") -> "Graph":
        """Return a graph of another kind as `Graph`, its objects in the order of the labels.

        Parameters
        ----------
        graph : Graph, Edges, sparse matrix of SciPy or CuPy, array, DataFrame, or graph of networkx or igraph
            A matrix (N, N) of weights ≥ 0, such as AnnData's ``obsp["spatial_connectivities"]``; if it is not
            symmetric, the larger weight of the two directions counts, with a warning. Arrays and DataFrames are lists
            of edges as in `gpuens.graph_consensus`.
        n_objects : int, optional
            The number of objects of the labels; by default, that of the graph.
        index : pandas Index (n_objects,), optional
            The names of the objects of the labels. A graph with names is matched by them.
        name : str
            The name of the graph in error messages.

        Raises
        ------
        ValueError, TypeError
            For other kinds of graphs, directed ones, weights that are negative or not finite, and objects that the
            labels lack.
        MemoryError
            For a graph beyond the memory budget.

        Examples
        --------
        >>> import gpuens as ge
        >>> ge.Graph.of([[0, 1], [1, 2]], n_objects=4)
        Graph(n_objects=4, n_edges=2, n_components=2)
        """
        if isinstance(graph, Graph):
            return graph if n_objects is None else graph._in_order_of(n_objects, index, name)
        if hasattr(graph, "tocsr"):
            edges = matrix_to_edges(
                graph.get() if kind_of(getattr(graph, "data", None)) == "cuda" else graph, name, mend=True
            )
            if n_objects is not None and edges.n_objects != n_objects:
                raise ValueError(
                    f"{name} has {edges.n_objects} objects, but labels are of {n_objects}; pass the graph of the same "
                    "objects in the same order."
                )
        else:
            edges = as_edges(graph)
        if n_objects is not None:
            edges = match_objects(edges, n_objects, index)
        return cls.of_edges(edges)

    @classmethod
    def of_edges(cls, edges: Edges) -> "Graph":
        """Return the graph of edges, each of which occurs once.

        >>> import gpuens as ge
        >>> from gpuens.labels.edges import as_edges
        >>> ge.Graph.of_edges(as_edges([[0, 1, 0.5], [1, 2, 1.5]])).weights.tolist()
        [0.5, 0.5, 1.5, 1.5]
        """
        from scipy.sparse import coo_array

        n = edges.n_objects
        if n >= MOST_OBJECTS:
            raise ValueError(f"graph has {n:,} objects, but at most {MOST_OBJECTS - 1:,} are possible; take a part.")
        checks.check_memory(
            BYTES_OF_AN_EDGE * len(edges) + BYTES_OF_AN_OBJECT * n,
            memory_budget(),
            f"a graph of {len(edges):,} edges",
            "leave out edges of small weight",
        )
        ends = np.concatenate([edges.first, edges.second]), np.concatenate([edges.second, edges.first])
        matrix = coo_array((np.tile(edges.weights, 2), ends), shape=(n, n)).tocsr()
        matrix.sort_indices()
        weights = matrix.data
        if len(weights) and not (weights == 1.0).all():
            weights = weights / (np.cumsum(weights)[-1] / len(weights))  # a sum in one order, equal on every machine
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), weights, edges.names)

    @classmethod
    def neighbors(
        cls, coordinates: Any, k: int = N_NEIGHBORS, *, groups: Any = None, max_length: float | None = None
    ) -> "Graph":
        """Return the graph that joins each object with its k nearest places, in either direction.

        Objects at one place are joined through the first of them, which also stands for the place among its
        neighbours; so no number of objects at one place separates it from others.

        Parameters
        ----------
        coordinates : array or DataFrame (n_objects, n_dimensions)
            Places in one unit of length, such as micrometres; the index of a DataFrame names the objects.
        k : int
            The number of places to which each object is joined.
        groups : array (n_objects,), optional
            The slide, image or region of each object; there are no edges between groups.
        max_length : float > 0, optional
            The longest edge, so that no edge crosses a hole.

        Raises
        ------
        ValueError, TypeError
            For coordinates that are not (n_objects, n_dimensions) finite numbers, and for groups of other objects.

        Examples
        --------
        >>> import gpuens as ge
        >>> graph = ge.Graph.neighbors([[0, 0], [0, 1], [0, 2], [9, 9]], k=1, max_length=5)
        >>> graph.n_components, graph.neighbors_of(1).tolist()
        (2, [0, 2])
        """
        names = names_of_objects(index_of(coordinates))
        places = as_numbers(coordinates, "coordinates")
        if hasattr(places, "tocsr"):
            raise TypeError("coordinates are a sparse matrix; pass an array (n_objects, n_dimensions).")
        checks.check_feature_shape(places.shape, "coordinates")
        unknown = np.flatnonzero(~np.isfinite(places).all(axis=1))
        if len(unknown):
            raise ValueError(
                f"coordinates of object {unknown[0]} are not finite; leave out the objects without a place, or give "
                "them a graph."
            )
        k = checks.check_integer(k, "k", minimum=1)
        if max_length is not None:
            max_length = checks.check_real(max_length, "max_length", above=0.0)
        if groups is not None:
            check_readable(groups, "groups")
            groups = to_host(in_order_of(index_of(coordinates), groups, "groups", "coordinates"))
            checks.check_one_per_row(groups, len(places), "groups")
            groups = _numbers_of(groups)
        return replace(cls.of_edges(_edges_to_nearest(places, k, groups, max_length, names)), places=places)

    @classmethod
    def grid(cls, shape: Any, mask: Any = None) -> "Graph":
        """Return the graph of the cells of a grid, such as pixels or voxels, joined along its axes.

        Parameters
        ----------
        shape : tuple of int
            The lengths of the axes, (height, width) of an image. Objects are the cells in C order, as after
            ``image.ravel()``.
        mask : array of bool of this shape, optional
            The cells that are objects; the others are left out, as after ``image[mask]``.

        Raises
        ------
        ValueError, TypeError
            For a shape that is no tuple of positive integers, and a mask of another shape.

        Examples
        --------
        >>> import gpuens as ge
        >>> ge.Graph.grid((3, 3), mask=[[1, 1, 0], [0, 0, 0], [0, 1, 1]])
        Graph(n_objects=4, n_edges=2, n_components=2)
        """
        if not isinstance(shape, (tuple, list, np.ndarray)) or not len(shape):
            raise TypeError(
                f"shape must be the lengths of the axes, such as (height, width), not {checks.shown(shape)}."
            )
        lengths = tuple(checks.check_integer(length, "shape", minimum=1) for length in shape)
        cells = np.ones(lengths, dtype=bool) if mask is None else to_host(mask).astype(bool)
        if cells.shape != lengths:
            raise ValueError(
                f"mask has shape {cells.shape}, but the grid {lengths}; pass one truth value for each cell."
            )
        if not cells.any():
            raise ValueError("mask leaves out every cell; pass True for the cells that are objects.")
        number = np.cumsum(cells.ravel()).reshape(lengths) - 1
        pairs = []
        for axis in range(len(lengths)):
            before, after = (np.moveaxis(number, axis, 0)[side].ravel() for side in (slice(None, -1), slice(1, None)))
            joined = np.logical_and(*(np.moveaxis(cells, axis, 0)[side] for side in (slice(None, -1), slice(1, None))))
            pairs.append(np.column_stack([before, after])[joined.ravel()])
        first, second = np.concatenate(pairs).T
        graph = cls.of_edges(Edges(first, second, np.ones(len(first)), int(cells.sum())))
        return replace(graph, shape=lengths) if mask is None else replace(graph, places=np.argwhere(cells)[:, ::-1])

    @property
    def n_objects(self) -> int:
        return len(self.starts) - 1

    @property
    def n_edges(self) -> int:
        return len(self.heads) // 2

    @cached_property
    def components(self) -> np.ndarray:
        """The number of each object's connected component (N,), int64, in the order of their first objects."""
        from scipy.sparse.csgraph import connected_components

        numbers: np.ndarray = connected_components(self.matrix(), directed=False)[1]
        return numbers.astype(np.int64)

    @property
    def n_components(self) -> int:
        return int(self.components.max()) + 1

    @property
    def layout(self) -> tuple[np.ndarray | None, tuple[int, ...] | None]:
        """The coordinates, or the shape of a plane grid, with which a map of the objects is drawn; else twice None."""
        if self.shape is not None and len(self.shape) == 2:
            return None, self.shape
        return (self.places if self.places is not None and self.places.shape[1] > 1 else None), None

    @property
    def degrees(self) -> np.ndarray:
        """The number of neighbours of each object (N,), int64."""
        return np.diff(self.starts)

    @cached_property
    def tails(self) -> np.ndarray:
        """The object at which each place of `heads` begins, (2 n_edges,)."""
        return np.repeat(np.arange(self.n_objects, dtype=self.heads.dtype), self.degrees)

    def neighbors_of(self, i: int) -> np.ndarray:
        """Return the neighbours of object i, ascending."""
        return self.heads[self.starts[i] : self.starts[i + 1]]

    def matrix(self) -> "csr_array":
        """Return the weights as a SciPy CSR array (N, N)."""
        from scipy.sparse import csr_array

        return csr_array((self.weights, self.heads, self.starts), shape=(self.n_objects, self.n_objects))

    def as_edges(self) -> Edges:
        """Return the edges, each once."""
        once = self.tails < self.heads
        return Edges(self.tails[once], self.heads[once], self.weights[once], self.n_objects, self.names)

    def subgraph(self, objects: Any) -> "Graph":
        """Return the graph of some objects, given by a mask (N,) or by their numbers, in this order."""
        objects = checks.check_indices(objects, self.n_objects, "objects")
        matrix = self.matrix()[objects][:, objects].tocoo()
        once = matrix.row < matrix.col
        names = None if self.names is None else self.names[objects]
        part = Graph.of_edges(Edges(matrix.row[once], matrix.col[once], matrix.data[once], matrix.shape[0], names))
        places = self.places if self.shape is None else np.argwhere(np.ones(self.shape, dtype=bool))[:, ::-1]
        return part if places is None else replace(part, places=places[objects])

    def _in_order_of(self, n_objects: int, index: Any, name: str) -> "Graph":
        """Return the graph with its objects in the order of the labels', matched by name if both have names."""
        if self.n_objects != n_objects:
            raise ValueError(
                f"{name} has {self.n_objects} objects, but labels are of {n_objects}; pass the graph of these objects."
            )
        if self.names is None or index is None or index.equals(self.names):
            return self
        matched = Graph.of_edges(match_objects(self.as_edges(), n_objects, index))
        if self.places is None:
            return matched
        return replace(matched, places=self.places[places_of(index, self.names, "labels", name)])

    def __repr__(self) -> str:
        return f"Graph(n_objects={self.n_objects}, n_edges={self.n_edges}, n_components={self.n_components})"


def _numbers_of(groups: np.ndarray) -> np.ndarray:
    """Return the groups of objects (n_objects,) as numbers; refuse missing ones."""
    import pandas as pd

    numbers: np.ndarray = pd.factorize(groups)[0]
    if len(numbers) and numbers.min() < 0:
        raise ValueError(
            f"groups have no value for object {numbers.argmin()}; fill it in, or leave out the objects without one."
        )
    return numbers


def _edges_to_nearest(
    coordinates: np.ndarray, k: int, groups: np.ndarray | None, max_length: float | None, names: Any = None
) -> Edges:
    """Return the edges from each object to the first object of its place and to those of the k nearest places.

    ``coordinates`` (n_objects, n_dimensions) are finite; the parameters are those of `gpuens.Graph.neighbors`.
    """
    n = len(coordinates)
    if groups is None:
        pairs = _nearest_pairs(coordinates, np.arange(n), k, max_length)
    else:
        _, group_of = np.unique(groups, return_inverse=True)
        order = np.argsort(group_of, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(group_of[order])) + 1)
        pairs = np.concatenate([_nearest_pairs(coordinates[objects], objects, k, max_length) for objects in members])
    return pairs_to_edges(pairs, None, n, names)


def _nearest_pairs(coordinates: np.ndarray, objects: np.ndarray, k: int, max_length: float | None) -> np.ndarray:
    """Return the pairs (n_pairs, 2), loops among them, of the objects at ``coordinates``, numbered ``objects``."""
    from scipy.spatial import cKDTree

    places, first, place_of = np.unique(coordinates, axis=0, return_index=True, return_inverse=True)
    place_of = place_of.reshape(-1)  # NumPy 2.0 returned a column
    neighbors = np.empty((len(places), 0), dtype=np.int64)
    if len(places) > 1:
        reach = np.inf if max_length is None else np.nextafter(max_length, np.inf)  # edges of this length count
        _, neighbors = cKDTree(places).query(places, min(k + 1, len(places)), distance_upper_bound=reach, workers=-1)
    lists = np.column_stack([np.arange(len(places)), neighbors])[place_of]  # an object's own place comes first
    tails = np.repeat(objects, lists.shape[1])
    neighbor_places = lists.ravel()
    reached = neighbor_places < len(places)  # a place beyond the reach has this number
    return np.column_stack([tails[reached], objects[first[neighbor_places[reached]]]])
