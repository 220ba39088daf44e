"""Consensus of clusterings of a graph: only objects with an edge are compared.

Tabatabaee, Wedell, Park & Warnow, "FastEnsemble: scalable ensemble clustering on large networks", PLOS Complex Systems
2(10) (2025) e0000069. Poulin & Théberge, "Ensemble clustering for graphs", Complex Networks 2018: first levels of the
Louvain algorithm as base clusterings.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.generate.leiden import MOST_ITERATIONS, checked_resolutions, leiden_ensemble
from gpuens.generate.louvain import louvain_ensemble
from gpuens.labels.codes import number_labels
from gpuens.labels.edges import Edges, as_edges, match_objects
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.pair_shares import agreement_on_pairs, shares_of_pairs
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

# host memory for each edge, by the clustering of the graph
BYTES_OF_AN_EDGE = {"louvain": 200, "leiden": 200, "components": 80}
BASES = {"auto": "auto", "first-level": "first", "louvain": "last"}  # base clusterings, by levels of the algorithm
LEAST_AGREEMENT = 0.3  # below it, base clusterings agree as on a random graph, where kappa is at most .25


@dataclass(repr=False)
class GraphConsensus:
    """The result of `graph_consensus`.

    Attributes
    ----------
    labels : array (n_objects,), int64, in the memory of the base clusterings
        The consensus; cluster 0 is the largest (of equal sizes, the one with the first object comes first).
    n_clusters : int
    edges : ndarray (n_edges, 2)
        The objects of each edge of the graph, each edge once, sorted.
    coassociation : ndarray (n_edges,), float64
        The share of the base clusterings (of their weights) that put both ends of an edge into one cluster.
    agreement : float
        Fleiss' kappa of the base clusterings, as judgements whether the ends of an edge belong together: 1 if all are
        equal, about 0 if they are independent, nan for a single one. Below .3 the graph does not support communities.
    kept : ndarray (n_edges,), bool
        Whether an edge reached the threshold in all rounds.
    n_rounds : int
    ensemble : Ensemble
        The base clusterings of the first round.
    index : pandas Index (n_objects,) or None
        The names of the objects, of the labels or else of the graph.
    """

    labels: Any
    n_clusters: int
    edges: np.ndarray
    coassociation: np.ndarray
    agreement: float
    kept: np.ndarray
    n_rounds: int
    ensemble: Ensemble
    index: Any

    @property
    def table(self) -> "pd.DataFrame":
        """The edges as a DataFrame with the columns "first", "second", "coassociation" and "kept"."""
        import pandas as pd

        ends = self.edges if self.index is None else np.asarray(self.index)[self.edges]
        columns = {"first": ends[:, 0], "second": ends[:, 1], "coassociation": self.coassociation, "kept": self.kept}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        n_kept = np.count_nonzero(self.kept)
        return checks.summary(
            self,
            f"{self.n_clusters} clusters of {len(self.labels):,} objects",
            edges=f"{n_kept:,} of {len(self.kept):,} kept after {self.n_rounds} round(s)",
            base_clusterings=f"{self.ensemble.n_clusterings}, agreement {self.agreement:.2f}",
        )


@takes_rng
def graph_consensus(
    graph: Any,
    labels: Any = None,
    *,
    base: str = "auto",
    resolutions: "float | Sequence[float]" = 1.0,
    n_seeds: int = 16,
    weights: "Sequence[float] | None" = None,
    threshold: float = 0.5,
    weighted: bool = False,
    final: str = "louvain",
    max_rounds: int = 1,
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    device: str = "auto",
    progress: bool | str = "auto",
) -> GraphConsensus:
    """Find the consensus of clusterings of a graph, from the co-association of its edges.

    An edge between i and j has the co-association c_ij, the share of the M base clusterings that put i and j into one
    cluster. Edges with c_ij < ``threshold`` are removed, and the remaining graph, with the weights c_ij, is clustered
    once more. Pairs of objects without an edge are never compared, so that time and memory grow with the number of
    edges: a hundred million edges are possible where a matrix of all pairs is not.

    A warning says if base clusterings made from the graph agree as little (`GraphConsensus.agreement`) as on a graph
    without communities.

    Parameters
    ----------
    graph : SciPy sparse matrix, array, DataFrame, graph of networkx or igraph, or result of `gpuens.io.read_edges`
        An undirected graph with weights ≥ 0; loops are ignored.

        - Sparse matrix (n_objects, n_objects): symmetric.
        - Array (n_edges, 2), or (n_edges, 3) with weights: the numbers of the objects from 0 on, or texts that name
          them.
        - DataFrame: the same; its numbers are names, too.

        In a list, an edge that occurs several times, in any direction, counts once with its largest weight.
    labels : anything that `gpuens.Ensemble` takes (n_objects, n_clusterings), optional
        The base clusterings. By default, they are made from the graph. If both labels and graph name the objects,
        objects are matched by name; labels may have further objects, which have no edges.
    base : {"auto", "first-level", "louvain", "leiden"}
        The base clusterings without ``labels``.

        - "first-level": first levels of the Louvain algorithm, of small communities, as in ECG. Each edge has weight 1.
        - "louvain": its last levels, of the largest modularity.
        - "auto": first levels if their runs agree, else the better of both, see `generate.louvain_ensemble`.
        - "leiden": as in FastEnsemble, by `generate.leiden_ensemble`; needs igraph, or cuGraph on a GPU.
    resolutions : float or sequence of float
        Resolutions of the base clusterings; their median is the resolution of the final one.
    n_seeds : int
        The number of base clusterings of each resolution.
    weights : sequence of float > 0, optional
        The weight of each clustering of ``labels``, or, without labels, of each resolution. c_ij is then the share of
        the sum of the weights.
    threshold : float in (0, 1]
        The least co-association of an edge that is kept. 1 demands that all base clusterings agree.
    weighted : bool
        Multiply c_ij by the weight of the edge, for the clustering of the remaining graph. The threshold is for c_ij
        alone.
    final : {"louvain", "leiden", "components"}
        The clustering of the remaining graph: one by the Louvain algorithm to its last level, one by the Leiden
        algorithm, or the connected components, which join two clusters by a single wrong edge. Clusters are connected
        in the remaining graph.
    max_rounds : int
        If more than 1, clusterings of the remaining graph are base clusterings of the next round, until a round removes
        no edge or this number is reached. -1 sets no limit.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    device : {"auto", "cpu", "cuda"}
        The device of the Leiden clusterings, as in `generate.leiden_ensemble`; edges are compared on the CPU.
    progress : {"auto", True, False}
        Show progress bars; "auto" does on a terminal.

    Returns
    -------
    GraphConsensus
        With ``labels`` (n_objects,), and ``coassociation`` and ``kept`` (n_edges,). An object without any kept edge is
        its own cluster.

    Raises
    ------
    ValueError, TypeError
        For graphs and labels that are invalid or do not fit each other, and for parameters out of range.
    ImportError
        For "leiden" without igraph.
    MemoryError
        Before work starts, if edges or labels exceed the memory budget.

    References
    ----------
    Tabatabaee, Wedell, Park & Warnow (2025), FastEnsemble: scalable ensemble clustering on large networks, PLOS Complex
    Systems 2(10). Poulin & Théberge (2018), Ensemble clustering for graphs, Complex Networks: first levels.
    Lancichinetti & Fortunato (2012), Consensus clustering in complex networks, Scientific Reports 2: more rounds.

    Examples
    --------
    >>> import gpuens as ge
    >>> edges = [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5]]  # two triangles, joined by an edge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]]
    >>> found = ge.graph_consensus(edges, labels, threshold=0.6, final="components")
    >>> found.labels.tolist(), found.coassociation.round(2).tolist()
    ([0, 0, 0, 1, 1, 1], [1.0, 0.67, 0.67, 0.33, 1.0, 1.0, 1.0])
    """
    from scipy.sparse.csgraph import connected_components

    resolutions = checked_resolutions(resolutions)
    checks.check_choice(base, "base", [*BASES, "leiden"])
    threshold = checks.check_real(threshold, "threshold", above=0.0, at_most=1.0)
    checks.check_choice(final, "final", BYTES_OF_AN_EDGE)
    max_rounds = checks.check_integer(max_rounds, "max_rounds", minimum=-1, maximum=MOST_ITERATIONS)
    if max_rounds == 0:
        raise ValueError("max_rounds must not be 0; give a positive number, or -1 to continue until nothing changes.")
    rng = checks.make_generator(random_state)
    leiden = partial(leiden_ensemble, random_state=rng, device=device, progress=progress)
    louvain = partial(louvain_ensemble, random_state=rng, progress=progress)
    make_base: Callable[..., Ensemble] = leiden if base == "leiden" else partial(louvain, level=BASES[base])
    ensemble = None if labels is None else Ensemble(labels)
    if ensemble is None:
        base_weights = checks.check_weights(weights, len(resolutions), of="resolution")
    else:
        base_weights = checks.check_weights(weights, ensemble.n_clusterings, of="clustering")
    edges = as_edges(graph)
    needed = BYTES_OF_AN_EDGE["louvain" if labels is None else final] * len(edges)
    instead = "leave out edges of small weight"
    checks.check_memory(needed, devices.memory_budget(), f"a graph of {len(edges):,} edges", instead)
    if ensemble is None:
        ensemble = make_base(edges, resolutions, n_seeds)
        if base_weights is not None:
            base_weights = _weights_of_clusterings(ensemble, resolutions, base_weights)
    else:
        if hasattr(graph, "tocsr") and edges.n_objects != ensemble.n_objects:
            raise ValueError(
                f"labels are of {ensemble.n_objects} objects and the graph has {edges.n_objects}; pass labels of the "
                "same objects in the same order."
            )
        edges = match_objects(edges, ensemble.n_objects, ensemble.index)
    shares = shares_of_pairs(ensemble, edges.first, edges.second, base_weights)
    agreement = agreement_on_pairs(shares, np.ones(ensemble.n_clusterings) if base_weights is None else base_weights)
    if labels is None and agreement < LEAST_AGREEMENT:
        checks.warn(
            f"base clusterings hardly agree on the edges (Fleiss' kappa {agreement:.2f}, below {LEAST_AGREEMENT:g}), "
            "as on a random graph: the graph does not support communities, so do not rely on these clusters."
        )
    # clusterings of the remaining graph, whatever they are like
    make_again = partial(make_base, keep="all") if base == "leiden" else make_base
    kept, remaining, n_rounds = _cut_in_rounds(
        edges, shares, threshold, weighted, max_rounds, lambda edges: make_again(edges, resolutions, n_seeds)
    )
    if not len(remaining):
        checks.warn(
            f"no edge has a co-association of threshold={threshold:g} or more, so that each object is its own cluster; "
            "lower the threshold."
        )
    elif final != "components":
        make_final = partial(leiden, keep="all") if final == "leiden" else partial(louvain, level="last")
        clusters = make_final(remaining, float(np.median(resolutions)), 1).codes[:, 0]
        inner = clusters[remaining.first] == clusters[remaining.second]
        remaining = remaining.take(inner, remaining.weights[inner])
    consensus = number_labels(connected_components(remaining.matrix(), directed=False)[1])
    return GraphConsensus(
        labels=devices.give_back(consensus, ensemble.device_kind),
        n_clusters=int(consensus.max()) + 1,
        edges=np.column_stack([edges.first, edges.second]),
        coassociation=shares,
        agreement=agreement,
        kept=kept,
        n_rounds=n_rounds,
        ensemble=ensemble,
        index=edges.names,
    )


def _cut_in_rounds(
    edges: Edges,
    shares: np.ndarray,
    threshold: float,
    weighted: bool,
    max_rounds: int,
    cluster: "Callable[[Edges], Ensemble]",
) -> tuple[np.ndarray, Edges, int]:
    """Remove edges whose ``shares`` (n_edges,) are below the threshold; ``cluster`` gives those of further rounds.

    Return the mask (n_edges,) of the edges that reach it in all rounds, these edges with the weights of the last round,
    and the number of rounds.
    """
    kept, n_rounds, current = np.ones(len(edges), dtype=bool), 1, edges
    while True:
        close = shares >= threshold
        kept[kept] = close
        current, shares = current.take(close, current.weights[close]), shares[close]
        remaining = replace(current, weights=current.weights * shares if weighted else shares)
        if close.all() or not len(remaining) or n_rounds == max_rounds:
            return kept, remaining, n_rounds
        shares, n_rounds = shares_of_pairs(cluster(remaining), remaining.first, remaining.second), n_rounds + 1


def _weights_of_clusterings(ensemble: Ensemble, resolutions: list[float], weights: np.ndarray) -> np.ndarray:
    """Return the weight of the resolution of each clustering (M,), by the clusterings' names."""
    weight_of = {f"{resolution:g}": weight for resolution, weight in zip(resolutions, weights, strict=True)}
    return np.array([weight_of[name.rsplit("_", 2)[1]] for name in ensemble.names])
