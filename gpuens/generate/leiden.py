"""Base clusterings by the Leiden algorithm that differ in resolution and seed, on one graph of neighbours."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpuens.generate.kmeans import BYTES_OF_A_TASK
from gpuens.generate.leiden_partition import package, partition_of
from gpuens.generate.neighbor_graph import edges_of
from gpuens.labels.codes import codes_dtype
from gpuens.labels.ensemble import Ensemble
from gpuens.runtime import checks
from gpuens.runtime import progress as progress_bars
from gpuens.runtime.device import memory_budget, resolve

TRIES = 3  # seeds of a clustering before it is left out
MOST_ITERATIONS = 1_000_000


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
    device: str = "auto",
    progress: bool | str = "auto",
) -> Ensemble:
    """Cluster a graph by the Leiden algorithm at several resolutions, from several seeds; return the ensemble.

    Clusterings are named ``leiden_<resolution>_<seed>``. Objects without an edge are clusters of their own. If the
    others are all in one cluster, or more than half of their clusters are single objects, a clustering is made again
    from another seed; after three such, it is left out, with a warning.

    Parameters
    ----------
    X : SciPy sparse matrix (n_objects, n_objects), AnnData, or features (n_objects, n_features)
        A symmetric graph with weights ≥ 0, of which the diagonal does not count. Of an AnnData its
        ``obsp["connectivities"]``, where `scanpy.pp.neighbors` leaves a graph. Of features, each object is tied to its
        nearest others, by Euclidean distance and without weights. A dense array is features, be it square or not, and
        so is what ``use_rep`` names. Two or three columns with pairs of whole numbers, like a list of edges, are
        features only with ``n_neighbors``.
    resolutions : float or sequence of float
        Resolutions of the modularity, above 0, that differ in six digits: higher ones give more clusters.
    n_seeds : int
        Clusterings of each resolution.
    n_neighbors : int, optional
        Neighbours of each object, for features: 15 if not given. A graph has its own.
    use_rep : str, optional
        "X", or the entry of ``obsm``, of an AnnData: features in place of its graph.
    n_iterations : int
        Iterations of igraph's algorithm; -1 goes on until nothing changes. cuGraph's has one, of as many levels as
        change something.
    keep : {"useful", "all"}
        "all" leaves no clustering out, whatever its clusters are.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    device : {"auto", "cpu", "cuda"}
        "cuda" takes cuGraph's algorithm on a GPU, whose clusterings are others than igraph's, which "auto" and "cpu"
        take. Neighbours of features are found on the CPU. Labels of features in GPU memory count as labels in GPU
        memory.
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
        For lists of edges, graphs that are not symmetric, have weights below 0, indices that do not fit or no edges,
        features that are not numbers or are in chunks, parameters out of range, a device that is not there, and if no
        clustering is left to keep.
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
        raise ValueError("n_iterations must not be 0: -1 goes on until nothing changes.")
    checks.check_choice(keep, "keep", ["useful", "all"])
    rng = checks.make_generator(random_state)
    device = _checked_device(device)
    edges, where = edges_of(X, n_neighbors, use_rep)
    n_objects = edges.shape[0]
    needed = len(resolutions) * n_seeds * (n_objects + BYTES_OF_A_TASK)
    checks.check_memory(needed, memory_budget(), f"n_seeds={n_seeds}", "ask for fewer seeds")
    tied = np.zeros(n_objects, dtype=bool)
    tied[edges.row] = tied[edges.col] = True
    names = names_of(resolutions, n_seeds)
    each = ((resolution, own) for resolution in resolutions for own in rng.spawn(n_seeds))
    found: dict[str, np.ndarray] = {}
    with (
        progress_bars.bar(len(names), "Leiden", show=progress) as shown,
        partition_of(edges, tied, n_iterations, device) as partition,
    ):
        for name, (resolution, own) in zip(names, each, strict=True):
            for _ in range(TRIES):
                labels = partition(resolution, int(own.integers(2**31)))
                why = "" if keep == "all" else _useless(np.unique_counts(labels[tied]).counts)
                if not why:
                    found[name] = labels.astype(codes_dtype(int(labels.max()) + 1))
                    break
            else:
                checks.warn(
                    f"{name} is left out: at resolution {resolution:g} {tied.sum()} objects with edges {why} the "
                    "resolution, or say keep='all'."
                )
            shown.update(1)
    if not found:
        raise ValueError(
            "no clustering is left: each is one cluster or mostly single objects; take other resolutions or keep='all'."
        )
    ensemble = Ensemble(list(found.values()), names=list(found))
    ensemble.device_kind = where
    return ensemble


def checked_resolutions(resolutions: Any) -> list[float]:
    """Return the resolutions, or refuse those that no clustering can have, or that would have one name."""
    given = list(resolutions) if isinstance(resolutions, Iterator) else resolutions
    values = [
        checks.check_real(value, "resolutions", above=0.0)
        for value in np.atleast_1d(np.asarray(given, dtype=object)).tolist()
    ]
    if not values:
        raise ValueError("resolutions are empty; give one at least.")
    written = [f"{value:g}" for value in values]
    if twice := [text for m, text in enumerate(written) if text in written[:m]]:
        raise ValueError(
            f"resolutions must differ in six digits, but two are {twice[0]}; ask for more n_seeds instead of repeating "
            "one."
        )
    return values


def names_of(resolutions: list[float], n_seeds: int, key: str = "leiden") -> list[str]:
    """Return the names of the clusterings of each resolution from each seed."""
    return [f"{key}_{resolution:g}_{seed}" for resolution in resolutions for seed in range(n_seeds)]


def _checked_device(device: str) -> str:
    """Return "cpu" or "cuda", or refuse a device without the algorithm, before any work."""
    device = resolve(device)
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device={device!r} has no Leiden algorithm: take 'cpu' or 'cuda'.")
    package(device)
    return device


def _useless(sizes: np.ndarray) -> str:
    """Return why clusters of these sizes tell nothing, and what to do with the resolution; nothing if they do."""
    if len(sizes) == 1:
        return "are all in one cluster; raise"
    if 2 * np.count_nonzero(sizes == 1) > len(sizes):
        return f"fall apart into {len(sizes)} clusters, most of a single object; lower"
    return ""
