"""The graph for the Leiden algorithm: a given graph, or a graph that connects objects with their nearest neighbours."""

from typing import Any

import numpy as np

from gpuens.io import annotated
from gpuens.labels.edges import Edges, as_edges, is_network, matrix_to_edges
from gpuens.labels.features import as_features
from gpuens.labels.frames import as_pandas
from gpuens.runtime import checks
from gpuens.runtime.device import chunked, home_of, to_host

N_NEIGHBORS = 15  # default number of neighbours


def is_graph(X: Any) -> bool:
    """Return whether X is a graph, which must be a sparse square matrix; a dense array is interpreted as features."""
    return hasattr(X, "tocsr") and X.ndim == 2 and X.shape[0] == X.shape[1]


def edges_of(X: Any, n_neighbors: int | None, use_rep: str | None) -> tuple[Edges, str]:
    """Return the edges of the graph, and the kind of memory of X (`device.kind_of`).

    The parameters are those of `leiden_ensemble`.
    """
    is_given_graph = is_graph(X) or is_network(X)
    if hasattr(X, "obsp"):
        is_given_graph = use_rep is None
        X = _graph_in(X) if use_rep is None else annotated.representation(X, use_rep)
    elif use_rep is not None:
        raise ValueError(f"use_rep={use_rep!r} needs an AnnData; pass an AnnData, or leave use_rep out.")
    if chunked(X):
        raise TypeError(
            "X is in chunks, but Leiden needs a graph or features in one piece; pass X.compute(), or use "
            "kmeans_ensemble."
        )
    X = as_pandas(X)
    if is_given_graph and n_neighbors is not None:
        raise ValueError(f"n_neighbors={checks.shown(n_neighbors)} is for features, but X is a graph; leave it out.")
    if not is_given_graph and n_neighbors is None and use_rep is None and _like_edges(X):
        raise ValueError(
            "X looks like a list of edges, which is not accepted as a graph; pass a sparse square matrix "
            "(scipy.sparse.save_npz writes it to a file), or an AnnData or h5ad file with obsp['connectivities'], or "
            "use graph_consensus (gpuens graph), which takes edges, or, if these are features, say n_neighbors=15 "
            "(gpuens generate --n-neighbors 15)."
        )
    if is_given_graph:
        edges = as_edges(X) if is_network(X) else matrix_to_edges(_sparse(X), "X")
    else:
        edges = matrix_to_edges(
            _nearest_neighbor_graph(as_features(X), N_NEIGHBORS if n_neighbors is None else n_neighbors)
        )
    if not len(edges):
        raise ValueError("X is a graph without edges, so there is nothing to cluster; pass a graph with edges.")
    return edges, home_of(X, "X")


def _like_edges(X: Any) -> bool:
    """Return whether X seems to be a list of edges.

    A list of edges is a 2-D array of two or three columns; its first two columns are whole numbers ≥ 0 or names.
    """
    try:
        shape = tuple(X.shape) if hasattr(X, "shape") else np.shape(X)
    except ValueError:  # lists of different lengths
        return False
    if len(shape) != 2 or shape[1] not in (2, 3) or shape[0] < 2 or hasattr(X, "tocsr"):
        return False
    ends = [X.iloc[:, m] for m in range(2)] if hasattr(X, "iloc") else np.asarray(to_host(X))[:, :2].T
    return all(map(_like_ends, ends))


def _like_ends(column: Any) -> bool:
    values = np.asarray(column)
    if values.dtype.kind == "f":
        return bool((np.isfinite(values) & (values >= 0) & (values == np.floor(values))).all())
    if values.dtype.kind == "i":
        return bool(values.min() >= 0)
    return values.dtype.kind in "uU" or all(isinstance(value, str) for value in values)


def _graph_in(adata: Any) -> Any:
    if "connectivities" not in adata.obsp:
        raise ValueError(
            "adata has no graph in obsp['connectivities']; run scanpy.pp.neighbors, or name features by use_rep."
        )
    return adata.obsp["connectivities"]


def _sparse(graph: Any) -> Any:
    """Return a graph as a sparse matrix; the graph of an AnnData may be dense."""
    from scipy.sparse import csr_array

    return graph if hasattr(graph, "tocsr") else csr_array(graph)


def _nearest_neighbor_graph(X: Any, n_neighbors: int) -> Any:
    """Return the symmetric graph that connects each object with its nearest neighbours; all weights are 1."""
    from sklearn.neighbors import kneighbors_graph

    max_neighbors = X.shape[0] - 1
    if max_neighbors < 1:
        raise ValueError("X has a single object, so there is nothing to cluster; pass more objects.")
    n_neighbors = checks.check_integer(n_neighbors, "n_neighbors", minimum=1)
    neighbors = kneighbors_graph(X, min(n_neighbors, max_neighbors), include_self=False)
    return neighbors.maximum(neighbors.T).tocsr()
