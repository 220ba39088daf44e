"""Base clusterings by the Leiden algorithm on one graph of neighbours; they differ in resolution and seed."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpuens.generate.kmeans import BYTES_OF_A_TASK
from gpuens.generate.leiden_partition import package, partition_of
from gpuens.generate.neighbor_graph import edges_of
from gpuens.labels.codes import codes_dtype
from gpuens.labels.edges import Edges
from gpuens.labels.ensemble import Ensemble
from gpuens.runtime import checks
from gpuens.runtime import progress as progress_bars
from gpuens.runtime.device import memory_budget, resolve
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

TRIES = 3  # number of seeds that are tried before a clustering is left out
MOST_ITERATIONS = 1_000_000  # largest value allowed for n_iterations
LARGEST_SPLINTER = 3  # objects in a cluster that is a splinter if half of its objects' edges lead out of it


@takes_rng
def leiden_ensemble(
    X: Any,
    resolutions: float | Sequence[float] = (0.25, 0.5, 1.0, 1.5, 2.0),
    n_seeds: int = 4,
    *,
    n_neighbors: int | None = None,
    use_rep: str | None = None,
    n_iterations: int = 2,
    keep: str = "useful",
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    device: str = "auto",
    progress: bool | str = "auto",
) -> Ensemble:
    """Cluster a graph by the Leiden algorithm at several resolutions and with several seeds; return the ensemble.

    Clusterings are named ``leiden_<resolution>_<seed>``. An object without an edge is its own cluster. A clustering is
    useless if all other objects are in one cluster, or if more than half of them are in splinters: clusters of one to
    three objects that have less than half of the weight of their edges among themselves. A useless clustering is
    repeated with another seed; after three tries, it is left out with a warning. Small communities are no splinters:
    each object of a clique of three with two edges to others has half of its edges in the clique.

    Parameters
    ----------
    X : SciPy sparse matrix (n_objects, n_objects), graph, AnnData, or features (n_objects, n_features)
        - Sparse matrix: a symmetric graph with weights ≥ 0; the diagonal is ignored.
        - Graph of networkx or igraph, or the result of `gpuens.io.read_edges`: undirected, with weights ≥ 0.
        - AnnData: the graph ``obsp["connectivities"]`` of `scanpy.pp.neighbors`, or the features that ``use_rep``
          names.
        - Dense array, even a square one: features. Each object has edges of weight 1 to its nearest objects, by
          Euclidean distance. Two or three columns with pairs of whole numbers, like a list of edges, are features only
          with ``n_neighbors``.
    resolutions : float or sequence of float
        Resolutions of the modularity, above 0, which must differ in six digits. A higher resolution gives more
        clusters.
    n_seeds : int
        The number of clusterings of each resolution.
    n_neighbors : int, optional
        For features: the number of neighbours of each object, by default 15.
    use_rep : str, optional
        For an AnnData: "X" or the name of an entry of ``obsm``, as features in place of the graph.
    n_iterations : int
        Iterations of igraph's algorithm; -1 continues until nothing changes. cuGraph always makes one iteration, with
        levels until nothing changes.
    keep : {"useful", "all"}
        "all" leaves no clustering out.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    device : {"auto", "cpu", "cuda"}
        "auto" and "cpu" use igraph. "cuda" uses cuGraph on a GPU, which gives other clusterings. Neighbours of features
        are always found on the CPU. Labels of features in GPU memory count as labels in GPU memory.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    ImportError
        Without igraph, or on a GPU without pylibcugraph.
    ValueError, TypeError
        For lists of edges, for graphs that are not symmetric or have negative weights, invalid indices or no edges, for
        features that are not numbers or are in chunks, for parameters out of range, for a missing device, and if no
        clustering is left.
    MemoryError
        Before work starts, if the labels exceed the memory budget, and if the graph does not fit the GPU.

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
    resolutions = checked_resolutions(resolutions)
    n_seeds = checks.check_integer(n_seeds, "n_seeds", minimum=1)
    n_iterations = checks.check_integer(n_iterations, "n_iterations", minimum=-1, maximum=MOST_ITERATIONS)
    if n_iterations == 0:
        raise ValueError("n_iterations must not be 0; give a positive number, or -1 to continue until nothing changes.")
    checks.check_choice(keep, "keep", ["useful", "all"])
    rng = checks.make_generator(random_state)
    device = _checked_device(device)
    edges, where = edges_of(X, n_neighbors, use_rep)
    n_objects = edges.n_objects
    needed = len(resolutions) * n_seeds * (n_objects + BYTES_OF_A_TASK)
    checks.check_memory(needed, memory_budget(), f"n_seeds={n_seeds}", "ask for fewer seeds")
    tied = np.zeros(n_objects, dtype=bool)
    tied[edges.first] = tied[edges.second] = True
    names = names_of(resolutions, n_seeds)
    settings = ((resolution, generator) for resolution in resolutions for generator in rng.spawn(n_seeds))
    columns: dict[str, np.ndarray] = {}
    with (
        progress_bars.bar(len(names), "Leiden", show=progress) as bar,
        partition_of(edges, tied, n_iterations, device) as partition,
    ):
        for name, (resolution, generator) in zip(names, settings, strict=True):
            for _ in range(TRIES):
                labels = partition(resolution, int(generator.integers(2**31)))
                why = "" if keep == "all" else _useless(labels, tied, edges)
                if not why:
                    columns[name] = labels.astype(codes_dtype(int(labels.max()) + 1))
                    break
            else:
                checks.warn(
                    f"{name} is left out: at resolution {resolution:g} {tied.sum()} objects with edges {why} the "
                    "resolution, or say keep='all'."
                )
            bar.update(1)
    if not columns:
        raise ValueError(
            "no clustering is left, because each is one cluster or falls apart; take other resolutions or keep='all'."
        )
    ensemble = Ensemble(list(columns.values()), names=list(columns))
    ensemble.device_kind, ensemble.index = where, edges.names
    return ensemble


def checked_resolutions(resolutions: Any) -> list[float]:
    """Return the resolutions; raise an error for invalid resolutions, or different resolutions with equal names."""
    values_in = list(resolutions) if isinstance(resolutions, Iterator) else resolutions
    values = [
        checks.check_real(value, "resolutions", above=0.0)
        for value in np.atleast_1d(np.asarray(values_in, dtype=object)).tolist()
    ]
    if not values:
        raise ValueError("resolutions are empty; give at least one.")
    texts = [f"{value:g}" for value in values]
    if twice := [text for m, text in enumerate(texts) if text in texts[:m]]:
        raise ValueError(
            f"resolutions must differ in six digits, but two are {twice[0]}; ask for more n_seeds instead of repeating "
            "one."
        )
    return values


def names_of(resolutions: list[float], n_seeds: int, key: str = "leiden") -> list[str]:
    """Return the names of the clusterings for each resolution and seed."""
    return [f"{key}_{resolution:g}_{seed}" for resolution in resolutions for seed in range(n_seeds)]


def _checked_device(device: str) -> str:
    """Return "cpu" or "cuda"; raise an error if the Leiden algorithm is not available for the device."""
    device = resolve(device)
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device={device!r} has no Leiden algorithm: take 'cpu' or 'cuda'.")
    package(device)
    return device


def _useless(labels: np.ndarray, tied: np.ndarray, edges: Edges) -> str:
    """Return the reason why a clustering (n_objects,) is useless, with advice on the resolution.

    If the clustering is useful, return an empty string. ``tied`` (n_objects,) is the mask of the objects with an edge.
    """
    sizes = np.bincount(labels)
    n_clusters = np.count_nonzero(np.bincount(labels[tied]))
    if n_clusters == 1:
        return "are all in one cluster; raise"
    lost = tied & (sizes <= LARGEST_SPLINTER)[labels]
    n_tied = np.count_nonzero(tied)
    if 2 * np.count_nonzero(lost) > n_tied:
        inside = labels[edges.first] == labels[edges.second]
        lost &= 2 * _degrees(edges, edges.weights * inside) < _degrees(edges, edges.weights)
    if 2 * np.count_nonzero(lost) > n_tied:
        return f"fall apart into {n_clusters} clusters, most objects alone or in twos and threes; lower"
    return ""


def _degrees(edges: Edges, weights: np.ndarray) -> np.ndarray:
    """Return the sum of the weights (n_edges,) of each object's edges (n_objects,), float64."""
    first, second = (np.bincount(end, weights, edges.n_objects) for end in (edges.first, edges.second))
    return first + second
