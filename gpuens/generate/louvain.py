"""Base clusterings by the Louvain algorithm on one graph, at its first or its last level.

On the first level, each object is a community; objects in a random order move to the community of a neighbour with the
largest gain of modularity, until no move gains. On each further level, the communities of the level before are the
objects. The last level has the largest modularity, but joins small communities of a large graph (resolution limit); the
first does not, but divides large communities at random, so that runs with different orders disagree: this tells which
level to take. Weights of edges count for last levels only: on the first level, each object would join its heaviest
edge, and pairs and triples would remain.

Blondel, Guillaume, Lambiotte & Lefebvre, "Fast unfolding of communities in large networks", Journal of Statistical
Mechanics (2008) P10008. Poulin & Théberge, "Ensemble clustering for graphs", Complex Networks 2018: first levels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.generate.leiden import checked_resolutions, names_of
from gpuens.generate.neighbor_graph import edges_of
from gpuens.labels.codes import codes_dtype
from gpuens.labels.edges import Edges
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.graph import Graph
from gpuens.labels.pair_shares import agreement_on_pairs
from gpuens.runtime import checks
from gpuens.runtime import progress as progress_bars
from gpuens.runtime.device import memory_budget, n_threads
from gpuens.runtime.native import cpu
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

LEVELS = ("auto", "first", "last")
BYTES_OF_AN_EDGE = 176  # host memory for each edge: both directions, and their sums between communities
BYTES_OF_A_MOVE = 48  # host memory of a thread for each object
N_COMPARED = 8  # runs of which both levels are compared
MOST_EDGES_COMPARED = 1_000_000
STABLE = 0.7  # agreement from which first levels are kept
LEAST_LEAD = 0.1  # agreement by which last levels must exceed first levels that are not stable


@takes_rng
def louvain_ensemble(
    X: Any,
    resolutions: float | Sequence[float] = 1.0,
    n_seeds: int = 16,
    *,
    level: str = "auto",
    n_neighbors: int | None = None,
    use_rep: str | None = None,
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    progress: bool | str = "auto",
) -> Ensemble:
    """Cluster a graph by the Louvain algorithm at several resolutions and from several seeds; return the ensemble.

    An object without an edge is its own cluster. No extra package is needed.

    Parameters
    ----------
    X : SciPy sparse matrix (n_objects, n_objects), graph, AnnData, or features (n_objects, n_features)
        As in `leiden_ensemble`.
    resolutions : float or sequence of float
        Resolutions of the modularity, above 0, which must differ in six digits.
    n_seeds : int
        The number of clusterings of each resolution.
    level : {"auto", "first", "last"}
        - "first": the partition after the first level, of small communities. Each edge has weight 1: by unequal
          weights, most objects would stay in pairs. Named ``first-level_<resolution>_<seed>``.
        - "last": the partition of the largest modularity. Named ``louvain_<resolution>_<seed>``.
        - "auto": for each resolution, the first level, unless eight runs agree badly on it and better on the last:
          Fleiss' kappa on the edges is below .7, and .1 or more higher on the last level. That is so for graphs of
          nearest neighbours, and seldom for networks.
    n_neighbors, use_rep : optional
        As in `leiden_ensemble`.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.

    Returns
    -------
    Ensemble (n_objects, n_clusterings)

    Raises
    ------
    ValueError, TypeError
        For lists of edges, for graphs that are not symmetric or have negative weights or no edges, and for parameters
        out of range.
    MemoryError
        Before work starts, if the graph or the labels exceed the memory budget.

    References
    ----------
    Blondel, Guillaume, Lambiotte & Lefebvre (2008), Fast unfolding of communities in large networks, Journal of
    Statistical Mechanics. Poulin & Théberge (2018), Ensemble clustering for graphs, Complex Networks: first levels.

    Examples
    --------
    >>> import gpuens as ge
    >>> X = ge.datasets.load("iris").X
    >>> ens = ge.generate.louvain_ensemble(X, n_seeds=2, level="last")
    >>> ens.names
    ['louvain_1_0', 'louvain_1_1']
    """
    resolutions = checked_resolutions(resolutions)
    n_seeds = checks.check_integer(n_seeds, "n_seeds", minimum=1)
    checks.check_choice(level, "level", LEVELS)
    rng = checks.make_generator(random_state)
    edges, where = edges_of(X, n_neighbors, use_rep)
    needed = BYTES_OF_AN_EDGE * len(edges) + edges.n_objects * (
        8 * n_seeds + 4 * len(resolutions) * n_seeds + BYTES_OF_A_MOVE * n_threads()
    )
    checks.check_memory(
        needed, memory_budget(), f"a graph of {len(edges):,} edges with n_seeds={n_seeds}", "ask for fewer seeds"
    )
    runs = _Runs(edges)
    columns: dict[str, np.ndarray] = {}
    with progress_bars.bar(len(resolutions) * n_seeds, "Louvain", show=progress) as bar:
        for resolution in resolutions:
            key, labels = runs.cluster(resolution, rng.spawn(n_seeds), level, bar)
            for name, column in zip(names_of([resolution], n_seeds, key), labels, strict=True):
                columns[name] = column.astype(codes_dtype(int(column.max()) + 1))
    ensemble = Ensemble(list(columns.values()), names=list(columns))
    ensemble.device_kind, ensemble.index = where, edges.names
    return ensemble


class _Runs:
    """Runs of the algorithm on one graph."""

    def __init__(self, edges: Edges) -> None:
        graph = Graph.of_edges(edges)
        self.is_weighted = bool((edges.weights != edges.weights[0]).any())
        ones = np.ones(len(graph.heads)) if self.is_weighted else graph.weights
        self.weighted = cpu.GraphArrays(graph.starts, graph.heads, graph.weights)
        self.unweighted = cpu.GraphArrays(graph.starts, graph.heads, ones)
        self.strengths = np.bincount(graph.tails, graph.weights, graph.n_objects)
        self.degrees = graph.degrees.astype(np.float64)
        step = -(-len(edges) // MOST_EDGES_COMPARED)
        self.compared = edges.first[::step], edges.second[::step]

    def cluster(
        self, resolution: float, generators: list[np.random.Generator], level: str, bar: Any
    ) -> tuple[str, list[np.ndarray]]:
        """Return the key of the clusterings' names, and the labels of a run from each generator."""
        first = self._first_levels(resolution, generators, bar)

        def last_levels(runs: slice) -> list[np.ndarray]:
            pairs = zip(first[runs], generators[runs], strict=True)
            return [self._last_level(labels, resolution, generator) for labels, generator in pairs]

        agreement = self._agreement(first)
        if level == "first" or (level == "auto" and agreement >= STABLE):
            return "first-level", first
        last = last_levels(slice(N_COMPARED))
        if level == "auto" and not self._agreement(last) >= agreement + LEAST_LEAD:
            return "first-level", first
        return "louvain", last + last_levels(slice(N_COMPARED, None))

    def _first_levels(self, resolution: float, generators: list[np.random.Generator], bar: Any) -> list[np.ndarray]:
        labels: list[np.ndarray] = []
        for start in range(0, len(generators), n_threads()):
            batch = generators[start : start + n_threads()]
            labels.extend(_move_from_singletons(self.unweighted, self.degrees, resolution, batch))
            bar.update(len(batch))
        return labels

    def _last_level(self, labels: np.ndarray, resolution: float, generator: np.random.Generator) -> np.ndarray:
        """Return the labels of the last level of a run; without weights, it continues the first level ``labels``."""
        graph, strengths = self.weighted, self.strengths
        if self.is_weighted:
            (labels,) = _move_from_singletons(graph, strengths, resolution, [generator])
        level = labels
        while True:
            graph, strengths = _merge(graph, strengths, level)
            (level,) = _move_from_singletons(graph, strengths, resolution, [generator])
            if level[-1] == len(level) - 1:  # no community has moved
                return labels
            labels = level[labels]

    def _agreement(self, clusterings: list[np.ndarray]) -> float:
        """Return Fleiss' kappa of the first clusterings on a sample of the edges; 0 if each is a single cluster."""
        first, second = self.compared
        if not any(labels.any() for labels in clusterings):
            return 0.0
        equal = [labels[first] == labels[second] for labels in clusterings[:N_COMPARED]]
        return agreement_on_pairs(np.mean(equal, axis=0), np.ones(len(equal)))


def _move_from_singletons(
    graph: cpu.GraphArrays, strengths: np.ndarray, resolution: float, generators: list[np.random.Generator]
) -> np.ndarray:
    """Return the labels (n_runs, n_objects) after local moves in the random order of each generator, int32."""
    objects = np.arange(len(strengths), dtype=np.int32)
    orders = np.stack([generator.permutation(objects) for generator in generators])
    labels = np.tile(objects, (len(generators), 1))
    cpu.move_locally(graph, strengths, resolution, orders, labels)
    return labels


def _merge(graph: cpu.GraphArrays, strengths: np.ndarray, labels: np.ndarray) -> tuple[cpu.GraphArrays, np.ndarray]:
    """Return the graph of communities, with the summed weights between them, and their strengths.

    Edges inside a community are left out: they count in its strength alone.
    """
    from scipy.sparse import coo_array

    tails, heads = np.repeat(labels, np.diff(graph.starts)), labels[graph.heads]
    outer, n = tails != heads, int(labels.max()) + 1
    merged = coo_array((graph.weights[outer], (tails[outer], heads[outer])), shape=(n, n)).tocsr()
    arrays = merged.indptr.astype(np.int64), merged.indices.astype(np.int32, copy=False), merged.data
    return cpu.GraphArrays(*arrays), np.bincount(labels, strengths, n)
