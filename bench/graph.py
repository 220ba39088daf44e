"""Print which Leiden clusterings are left out as useless, and what the consensus of a large graph costs.

    python bench/graph.py [--n-objects 3000000] [--leiden]

1. Twelve graphs at 18 resolutions from 2 seeds each: fine clusterings (ARI of .5 or more with the communities) that are
   left out, and wrong ones (ARI below .1) that are kept.
2. A graph of communities of 100 objects with ten edges for each object, 30% of which lead anywhere, and 20 clusterings
   that move a tenth of the objects: seconds and peak memory of each step; with --leiden also of one Leiden clustering.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import gpuens as ge
from gpuens.labels.edges import Edges, as_edges
from gpuens.runtime.record import peak_memory

RESOLUTIONS = (0.01, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 500)
FINE, WRONG = 0.5, 0.1  # ARI from which a clustering is fine, and below which it is wrong

Graph = tuple[np.ndarray, np.ndarray]  # edges (n_edges, 2), and the communities (n_objects,)


def ring(n: int, size: int) -> Graph:
    within = [(c * size + i, c * size + j) for c in range(n) for i in range(size) for j in range(i)]
    between = [(c * size, (c + 1) % n * size + 1) for c in range(n)]
    return np.array(within + between), np.repeat(np.arange(n), size)


def planted(sizes: np.ndarray, degree: int, mixing: float, rng: np.random.Generator) -> Graph:
    communities = np.repeat(np.arange(len(sizes)), sizes)
    n, starts = len(communities), np.cumsum(sizes) - sizes
    first = np.repeat(np.arange(n, dtype=np.int32), degree // 2)
    within = starts[communities[first]] + rng.integers(sizes[communities[first]])
    second = np.where(rng.random(len(first)) < mixing, rng.integers(n, size=len(first)), within).astype(np.int32)
    return np.column_stack([first, second]), communities


def with_outliers(n: int, size: int, n_outliers: int) -> Graph:
    edges, communities = ring(n, size)
    out = np.repeat(n * size + np.arange(n_outliers), 2)
    ends = (np.arange(2 * n_outliers) - np.arange(2 * n_outliers) // 2) % n * size + out % size
    return np.vstack([edges, np.column_stack([out, ends])]), np.append(communities, n + np.arange(n_outliers))


def neighbors(n_noise: int, rng: np.random.Generator) -> Graph:
    X, communities = make_blobs(2000, 5, centers=8, cluster_std=0.6, random_state=0)
    X = np.vstack([X, rng.uniform(-12, 12, size=(n_noise, 5))])
    return np.argwhere(kneighbors_graph(X, 15).toarray()), np.append(communities, 8 + np.arange(n_noise))


def judged(rng: np.random.Generator) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield for each graph its name, fine clusterings and those left out, wrong clusterings and those kept."""
    powers = np.minimum(500, 10 / rng.random(200)).astype(int)
    graphs: dict[str, Graph] = {
        "ring of 30 cliques of 10": ring(30, 10),
        "ring of 500 cliques of 5": ring(500, 5),
        "ring of 100 triangles": ring(100, 3),
        "10 cliques of 40, 60 outliers": with_outliers(10, 40, 60),
        "10 of 200, 20% of edges anywhere": planted(np.full(10, 200), 20, 0.2, rng),
        "10 of 200, 60% of edges anywhere": planted(np.full(10, 200), 20, 0.6, rng),
        "300 of 10, 20% of edges anywhere": planted(np.full(300, 10), 10, 0.2, rng),
        "500 of 4, 20% of edges anywhere": planted(np.full(500, 4), 6, 0.2, rng),
        "200 of 10 to 500, 30% anywhere": planted(powers, 14, 0.3, rng),
        "random": planted(np.array([2000]), 10, 0.0, rng),
        "neighbours in 8 blobs": neighbors(0, rng),
        "neighbours in 8 blobs, 500 of noise": neighbors(500, rng),
    }
    for name, (edges, communities) in graphs.items():
        core = np.bincount(communities)[communities] > 1  # outliers and noise have no community
        everything = ge.generate.leiden_ensemble(as_edges(edges), RESOLUTIONS, 2, keep="all")
        ari = {m: ge.metrics.ari(communities[core], column[core]) for m, column in named(everything).items()}
        methods = set(ge.generate.leiden_ensemble(as_edges(edges), RESOLUTIONS, 2).names)
        if len(np.unique(communities)) == 1:
            ari = dict.fromkeys(ari, 0.0)
        fine, failed = ({m for m in ari if ari[m] >= FINE}, {m for m in ari if ari[m] < WRONG})
        yield name, len(fine), len(fine - methods), len(failed), len(failed & methods)


def named(ensemble: ge.Ensemble) -> dict[str, np.ndarray]:
    return dict(zip(ensemble.names, ensemble.to_array().T, strict=True))


@contextmanager
def measured(step: str) -> Iterator[None]:
    """Print the seconds of a step, the seconds of all processors, and the peak memory of the process so far."""
    wall, processor = time.perf_counter(), time.process_time()
    yield
    spent = time.perf_counter() - wall, time.process_time() - processor
    print(f"| {step} | {spent[0]:.1f} | {spent[1]:.1f} | {(peak_memory() or 0) / 1e9:.1f} GB |", flush=True)


def costs(n_objects: int, leiden: bool, rng: np.random.Generator) -> None:
    pairs, communities = planted(np.full(n_objects // 100, 100), 20, 0.3, rng)
    labels = []
    for _ in range(20):
        moved = rng.random(len(communities)) < 0.1
        labels.append(
            np.where(moved, rng.integers(n_objects // 100, size=len(communities)), communities).astype(np.int32)
        )
    ensemble = ge.Ensemble(labels)
    del labels
    edge_lists: list[Edges] = []
    with measured(f"sort {len(pairs):,} edges"):
        edge_lists.append(as_edges(pairs))
    with measured("co-association, cut and components"):
        ge.graph_consensus(edge_lists[0], ensemble, final="components")
    if leiden:
        with measured("one Leiden clustering"):
            ge.generate.leiden_ensemble(edge_lists[0], 1.0, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-objects", type=int, default=3_000_000)
    parser.add_argument("--leiden", action="store_true", help="also one Leiden clustering of the large graph")
    args = parser.parse_args()
    print("| graph | fine | left out | wrong | kept |\n|---|--:|--:|--:|--:|")
    for row in judged(np.random.default_rng(0)):
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print("\n| step | seconds | of processors | peak memory |\n|---|--:|--:|--:|")
    costs(args.n_objects, args.leiden, np.random.default_rng(0))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # ignore the warnings of clusterings that are left out
    main()
