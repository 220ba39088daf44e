"""The Leiden algorithm on one graph with a resolution and a seed: igraph on the CPU, cuGraph on a GPU."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from gpuens.labels.edges import Edges
from gpuens.runtime import installing
from gpuens.runtime.device import namespace, to_host, within_memory

MOST_LEVELS = 100  # largest number of levels, cuGraph's default; the algorithm ends earlier if no label changes
THETA = 1.0  # randomness of the refinement, cuGraph's default

Partition = Callable[[float, int], np.ndarray]

_one_generator = Lock()  # igraph has one random number generator for the whole process


def package(device: str) -> Any:
    """Import the package that has the Leiden algorithm for a device; raise an error if it is not installed."""
    name, extra = ("pylibcugraph", "cugraph-cu12") if device == "cuda" else ("igraph", "leiden")
    try:
        return import_module(name)
    except ImportError as error:
        where = " on a GPU" if device == "cuda" else ""
        raise ImportError(
            f"leiden_ensemble{where} needs {name}, which is not installed: {installing.command(extra)}."
        ) from error


def partition_of(edges: Edges, tied: np.ndarray, n_iterations: int, device: str) -> AbstractContextManager[Partition]:
    """Return a context manager that yields a function of a resolution and a seed, which returns labels (n_objects,).

    ``tied`` (n_objects,) is the mask of the objects with an edge.
    """
    return _by_cugraph(edges, tied) if device == "cuda" else _by_igraph(edges, n_iterations)


@contextmanager
def _by_igraph(edges: Edges, n_iterations: int) -> Iterator[Partition]:
    igraph = package("cpu")
    graph = igraph.Graph(n=edges.n_objects, edges=np.column_stack([edges.first, edges.second]))

    def partition(resolution: float, seed: int) -> np.ndarray:
        with _one_generator:
            igraph.set_random_number_generator(random.Random(seed))
            try:
                clusters = graph.community_leiden(
                    "modularity", weights=edges.weights, resolution=resolution, n_iterations=n_iterations
                )
            finally:
                igraph.set_random_number_generator(random)  # igraph's usual one
        return np.asarray(clusters.membership)

    yield partition


@contextmanager
def _by_cugraph(edges: Edges, tied: np.ndarray) -> Iterator[Partition]:
    cugraph, xp = package("cuda"), namespace("cuda")
    number = np.cumsum(tied) - 1  # numbers of vertices without gaps, because a cuGraph vertex must have an edge
    n_tied = int(number[-1]) + 1
    ends = number[edges.first], number[edges.second]
    # cuGraph requires the same dtype for the numbers of vertices and the numbers of edges
    ids = np.int32 if 2 * len(edges) <= np.iinfo(np.int32).max else np.int64
    subject, instead = f"X, a graph of {len(edges):,} edges,", "take device='cpu'"

    def graph_in_gpu_memory() -> tuple[Any, Any]:
        handle = cugraph.ResourceHandle()
        properties = cugraph.GraphProperties(is_symmetric=True, is_multigraph=False)
        sources, targets = (xp.asarray(np.concatenate(pair), dtype=ids) for pair in (ends, ends[::-1]))
        weights = xp.asarray(np.tile(edges.weights, 2))
        return handle, cugraph.SGGraph(
            handle,
            properties,
            sources,
            targets,
            weight_array=weights,
            store_transposed=False,
            renumber=False,
            do_expensive_check=False,
        )

    handle, graph = within_memory(graph_in_gpu_memory, subject, instead)

    def partition(resolution: float, seed: int) -> np.ndarray:
        def clusters_of_vertices() -> Any:
            return cugraph.leiden(handle, seed, graph, MOST_LEVELS, resolution, THETA, False)

        vertices, clusters, _ = within_memory(clusters_of_vertices, subject, instead)
        of_tied = np.empty(n_tied, dtype=np.int64)
        of_tied[to_host(vertices)] = np.unique_inverse(to_host(clusters)).inverse_indices
        labels = np.empty(len(tied), dtype=np.int64)
        labels[tied] = of_tied
        labels[~tied] = of_tied.max() + 1 + np.arange(len(tied) - n_tied)
        return labels

    yield partition
