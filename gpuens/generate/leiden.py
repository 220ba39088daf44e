"""Base clusterings by the Leiden algorithm that differ in resolution and seed, on one graph of neighbours."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import progress as progress_bars
from gpuens.encoding import codes_dtype
from gpuens.ensemble import Ensemble
from gpuens.features import as_features

TRIES = 3  # seeds of a clustering before its resolution is left out
FEWEST_ALLOWED = 20  # clusters that no clustering is left out for


def leiden_ensemble(
    X: Any,
    resolutions: float | Sequence[float] = (0.25, 0.5, 1.0, 1.5, 2.0),
    n_seeds: int = 4,
    *,
    n_neighbors: int = 15,
    use_rep: str | None = None,
    n_iterations: int = 2,
    random_state: Any = 0,
    progress: bool | str = "auto",
) -> Any:
    """Cluster a graph by the Leiden algorithm at several resolutions, from several seeds; return the ensemble.

    Clusterings are named ``leiden_<resolution>_<seed>``. One with more clusters than a twentieth of the objects (and
    than 20), or more than half of whose clusters are single objects, is made again from another seed; after three such,
    it is left out, with a warning.

    Parameters
    ----------
    X : SciPy sparse matrix (n_objects, n_objects), AnnData, or features (n_objects, n_features)
        A symmetric graph with weights ≥ 0, of which the diagonal does not count. Of an AnnData its
        ``obsp["connectivities"]``, where `scanpy.pp.neighbors` leaves a graph. Of features, and of ``use_rep``, each
        object is tied to its nearest others, by Euclidean distance and without weights.
    resolutions : float or sequence of float
        Resolutions of the modularity, above 0: higher ones give more clusters.
    n_seeds : int
        Clusterings of each resolution.
    n_neighbors : int
        Neighbours of each object, of features.
    use_rep : str, optional
        The entry of ``obsm`` of an AnnData with features, in place of its graph.
    n_iterations : int
        Iterations of the algorithm; -1 goes on until nothing changes.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    ImportError
        Without igraph.
    ValueError, TypeError
        For graphs that are not symmetric, have weights below 0 or no edges, features that are not numbers, parameters
        out of range, and if no clustering is left.

    References
    ----------
    Traag, Waltman & van Eck (2019), From Louvain to Leiden: guaranteeing well-connected communities, Scientific Reports
    9.

    Examples
    --------
    >>> import gpuens as ge
    >>> X = ge.datasets.load("iris").X
    >>> ens = ge.generate.leiden_ensemble(X, resolutions=(0.5, 1.0), n_seeds=2)
    >>> ens.names
    ['leiden_0.5_0', 'leiden_0.5_1', 'leiden_1_0', 'leiden_1_1']
    """
    try:
        import igraph
    except ImportError as error:
        raise ImportError(
            "leiden_ensemble needs igraph, which is not installed: pip install 'gpuens[leiden]'."
        ) from error
    given = np.atleast_1d(np.asarray(resolutions, dtype=object)).tolist()
    values = [checks.check_real(value, "resolutions", above=0.0) for value in given]
    n_seeds = checks.check_integer(n_seeds, "n_seeds", minimum=1)
    if not values:
        raise ValueError("resolutions are empty; give one at least.")
    if n_iterations != -1:
        n_iterations = checks.check_integer(n_iterations, "n_iterations", minimum=1)
    rng = checks.make_generator(random_state)
    weights = _graph_of(X, n_neighbors, use_rep)
    n_objects, edges = weights.shape[0], np.column_stack([weights.row, weights.col])
    graph = igraph.Graph(n=n_objects, edges=edges)
    columns: list[np.ndarray] = []
    names: list[str] = []
    with progress_bars.bar(len(values) * n_seeds, "Leiden", show=progress) as shown, _own_generator(igraph):
        for resolution in values:
            for seed, own in enumerate(rng.spawn(n_seeds)):
                name = f"leiden_{resolution:g}_{seed}"
                for _ in range(TRIES):
                    igraph.set_random_number_generator(random.Random(int(own.integers(2**31))))
                    found = graph.community_leiden(
                        "modularity", weights=weights.data, resolution=resolution, n_iterations=n_iterations
                    )
                    labels = np.asarray(found.membership)
                    if not _degenerate(labels):
                        columns.append(labels.astype(codes_dtype(int(labels.max()) + 1)))
                        names.append(name)
                        break
                else:
                    checks.warn(
                        f"{name} is left out: at resolution {resolution:g} {n_objects} objects fall apart into "
                        f"{int(labels.max()) + 1} clusters; lower the resolution."
                    )
                shown.update(1)
    if not columns:
        raise ValueError("no clustering is left: all have too many clusters; lower the resolutions.")
    return Ensemble(columns, names=names)


def _degenerate(labels: np.ndarray) -> bool:
    sizes = np.bincount(labels)
    n_single = int(np.count_nonzero(sizes == 1))
    return len(sizes) > max(FEWEST_ALLOWED, len(labels) / 20) or 2 * n_single > len(sizes)


@contextmanager
def _own_generator(igraph: Any) -> Iterator[None]:
    """Leave igraph with its own generator of random numbers, which is one for the whole process."""
    try:
        yield
    finally:
        igraph.set_random_number_generator(random)


def _graph_of(X: Any, n_neighbors: Any, use_rep: str | None) -> Any:
    """Return the edges of a graph, each once, as a SciPy COO array of weights (n_objects, n_objects)."""
    from scipy.sparse import coo_array, triu

    if hasattr(X, "obsp"):
        if use_rep is None and "connectivities" not in X.obsp:
            raise ValueError(
                "adata has no graph in obsp['connectivities']: run scanpy.pp.neighbors, or name features by use_rep."
            )
        if use_rep is not None and use_rep not in X.obsm:
            raise ValueError(f"use_rep={use_rep!r} names nothing in obsm, which has {checks.listed(X.obsm)}.")
        X = X.obsp["connectivities"] if use_rep is None else X.obsm[use_rep]
    elif use_rep is not None:
        raise ValueError(f"use_rep={use_rep!r} is for an AnnData; pass the features themselves.")
    if hasattr(X, "tocsr") and X.shape[0] == X.shape[1]:
        graph = X.tocsr().astype(np.float64)
        if graph.nnz and not (np.isfinite(graph.data).all() and graph.data.min() >= 0.0):
            raise ValueError("X is a graph with weights that are below 0 or not finite; make them positive.")
        if abs(graph - graph.T).max() > 1e-6 * max(1.0, graph.max()):
            raise ValueError("X is a graph that is not symmetric; pass X.maximum(X.T).")
    else:
        graph = _neighbors(as_features(X), n_neighbors)
    edges = coo_array(triu(graph, k=1))
    edges.eliminate_zeros()
    if not edges.nnz:
        raise ValueError("X is a graph without edges; there is nothing to cluster.")
    return edges


def _neighbors(X: Any, n_neighbors: Any) -> Any:
    """Return the symmetric graph, of weight 1, of each object and its nearest others."""
    from sklearn.neighbors import kneighbors_graph

    most = X.shape[0] - 1
    if most < 1:
        raise ValueError("X has a single object; there is nothing to cluster.")
    n_neighbors = checks.check_integer(n_neighbors, "n_neighbors", minimum=1)
    near = kneighbors_graph(X, min(n_neighbors, most), include_self=False)
    return near.maximum(near.T).tocsr()
