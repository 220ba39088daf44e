"""Print how well and how fast communities of graphs are found, by graph consensus and by other ensembles.

    python bench/communities.py [--draws 10,11] [--n-objects 1000,5000,20000] [--large 1000000]

LFR graphs of three kinds and seven mixings, graphs of nearest neighbours, a network, and graphs without communities.
Defaults were chosen on draws 0 and 1. "FastEnsemble" are its steps: 20 Leiden clusterings, edges of a share of .8, one
more Leiden clustering. ECG is partition_igraph. With --large, seconds of one clustering of a graph of so many
objects, and of the whole consensus. Needs networkit; partition_igraph is left out where it is missing
(pip install networkit partition_igraph).
"""

import argparse
import random
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import igraph
import networkit
import networkx
import numpy as np
from graph import Graph, planted, ring
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import scale

import gpuens as ge
from gpuens.labels.edges import Edges, pairs_to_edges
from gpuens.runtime.record import peak_memory

KINDS = {  # mean and largest degree, smallest and largest community
    "small": (10, 50, 10, 50),
    "dense": (20, 50, 20, 100),
    "wide": (15, 100, 50, 500),
}
MIXINGS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
TRIES = 20  # seeds until NetworKit finds a graph of the wanted degrees


def lfr(n: int, kind: str, mixing: float, draw: int) -> Graph:
    degree, largest_degree, smallest, largest = KINDS[kind]
    for attempt in range(TRIES):
        networkit.setSeed(1000 * draw + attempt + 7 * n + round(1300 * mixing), False)
        generator = networkit.generators.LFRGenerator(n)
        generator.generatePowerlawDegreeSequence(degree, largest_degree, -2)
        generator.generatePowerlawCommunitySizeSequence(smallest, min(largest, n // 5), -1)
        generator.setMu(mixing)
        try:
            drawn = generator.generate()
        except RuntimeError:
            continue
        return np.array(list(drawn.iterEdges())), np.array(generator.getPartition().getVector())
    raise RuntimeError(f"no LFR graph of {n} objects, {kind}, mixing {mixing}")


def neighbors(X: np.ndarray, classes: np.ndarray) -> Graph:
    near = kneighbors_graph(X, 15)
    return np.argwhere(near.toarray()), classes


def others() -> Iterator[tuple[str, Graph]]:
    digits, wine, karate = load_digits(), load_wine(), networkx.karate_club_graph()
    yield "neighbours: digits", neighbors(digits.data, digits.target)
    yield "neighbours: wine", neighbors(scale(wine.data), wine.target)
    yield "neighbours: blobs", neighbors(*make_blobs(5000, 5, centers=8, cluster_std=0.6, random_state=0))
    clubs = np.array([karate.nodes[i]["club"] == "Officer" for i in karate]).astype(int)
    yield "karate club", (np.array(karate.edges()), clubs)
    yield "ring of 500 cliques", ring(500, 5)
    for degree in (6, 10, 20):
        yield f"random, degree {degree}", planted(np.array([5000]), degree, 0.0, np.random.default_rng(degree))


def by_default(edges: Edges) -> np.ndarray:
    return ge.graph_consensus(edges).labels


def by_fastensemble(edges: Edges) -> np.ndarray:
    return ge.graph_consensus(edges, base="leiden", n_seeds=20, threshold=0.8, final="leiden").labels


def by_leiden(edges: Edges) -> np.ndarray:
    return ge.generate.leiden_ensemble(edges, 1.0, 1, keep="all").codes[:, 0]


def by_ecg(edges: Edges) -> np.ndarray:
    igraph.set_random_number_generator(random.Random(0))
    return np.array(as_igraph(edges).community_ecg(final="leiden").membership)


def as_igraph(edges: Edges) -> igraph.Graph:
    return igraph.Graph(n=edges.n_objects, edges=np.column_stack([edges.first, edges.second]))


METHODS: dict[str, Callable[[Edges], np.ndarray]] = {
    "default": by_default,
    "FastEnsemble": by_fastensemble,
    "Leiden": by_leiden,
}
if find_spec("partition_igraph"):
    import partition_igraph  # noqa: F401 — adds a method to igraph's graphs

    METHODS["ECG"] = by_ecg


def as_network(pairs: np.ndarray, truth: np.ndarray) -> Edges:
    return pairs_to_edges(pairs, None, len(truth), None)


def row(name: str, edges: Edges, truth: np.ndarray) -> dict[str, tuple[float, float, int]]:
    """Print and return ARI, seconds of a processor and the number of clusters of each method, by name."""
    scores = {}
    for method, cluster in METHODS.items():
        start = time.process_time()
        labels = cluster(edges)
        spent = time.process_time() - start
        scores[method] = (ge.metrics.ari(truth, labels), spent, len(np.unique(labels)))
    agreement = ge.graph_consensus(edges).agreement
    cells = [f"{ari:.3f} | {spent:.2f} | {k:,}" for ari, spent, k in scores.values()]
    print(f"| {name} | {len(np.unique(truth)):,} | {agreement:.2f} | " + " | ".join(cells) + " |", flush=True)
    return scores


def one_clustering(n_objects: int) -> None:
    """Print the seconds of one clustering of a large graph by each algorithm, and of the whole consensus."""
    pairs, truth = planted(np.full(n_objects // 100, 100), 20, 0.3, np.random.default_rng(0))
    edges = as_network(pairs, truth)
    print(f"\n{len(edges):,} edges\n\n| step | seconds | of processors | peak memory |\n|---|--:|--:|--:|")

    def show(step: str, work: Callable[[], object]) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        work()
        spent = time.perf_counter() - wall, time.process_time() - processor
        print(f"| {step} | {spent[0]:.1f} | {spent[1]:.1f} | {(peak_memory() or 0) / 1e9:.1f} GB |", flush=True)

    show("one first level", lambda: ge.generate.louvain_ensemble(edges, 1.0, 1, level="first"))
    show("one Louvain clustering", lambda: ge.generate.louvain_ensemble(edges, 1.0, 1, level="last"))
    show("whole consensus", lambda: by_default(edges))
    network = networkit.Graph(n_objects)
    for first, second in zip(edges.first.tolist(), edges.second.tolist(), strict=True):
        network.addEdge(first, second)
    show("networkit PLM", lambda: networkit.community.PLM(network).run())
    show("networkit ParallelLeiden", lambda: networkit.community.ParallelLeiden(network).run())
    graph = as_igraph(edges)
    show("igraph multilevel, first level", lambda: graph.community_multilevel(return_levels=True)[0])
    show("igraph Leiden", lambda: graph.community_leiden("modularity", n_iterations=2))


def main() -> None:
    def numbers(text: str) -> list[int]:
        return list(map(int, text.split(",")))

    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=numbers, default=[10, 11])
    parser.add_argument("--n-objects", type=numbers, default=[1000, 5000, 20_000])
    parser.add_argument("--large", type=int)
    args = parser.parse_args()
    if args.large:
        one_clustering(args.large)
        return
    columns = " | ".join(f"{name} | s | clusters" for name in METHODS)
    print(f"| graph | communities | agreement | {columns} |\n|---" + "|--:" * (2 + 3 * len(METHODS)) + "|")
    for name, (pairs, truth) in others():
        row(name, as_network(pairs, truth), truth)
    for n in args.n_objects:
        for kind in KINDS:
            for mixing in MIXINGS:
                for draw in args.draws:
                    pairs, truth = lfr(n, kind, mixing, draw)
                    row(f"{n:,} {kind} {mixing} {draw}", as_network(pairs, truth), truth)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
