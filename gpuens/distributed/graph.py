"""Functions that convert Dask arrays to tasks and tasks to arrays, and that store shared values in the task graph."""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.distributed import waiting
from gpuens.labels.odd_columns import ColumnSource, find_clusterings_by_name
from gpuens.labels.orientation import OF_CHUNKS, refuse_wide
from gpuens.runtime import checks
from gpuens.runtime import device as devices

if TYPE_CHECKING:
    import dask.array as da

IN_CHUNKS = ColumnSource("labels", "say every_column=True")


def by_rows(labels: Any, client: Any, *, every_column: bool = False) -> tuple[Any, list[Any]]:
    """Return labels as a Dask array (N, M), and the names of the clusterings.

    The chunks of the array have whole rows and known sizes. If ``every_column`` is false, columns of a DataFrame are
    left out if their names are unusual for clusterings.
    """
    names = None
    if hasattr(labels, "to_dask_array"):  # only a Dask DataFrame has this method
        names = list(labels.columns)
        if not every_column:
            names = [names[m] for m in find_clusterings_by_name(names, IN_CHUNKS)]
            labels = labels[names] if len(names) < len(labels.columns) else labels
        labels = labels.to_dask_array(lengths=True)
    if not devices.chunked(labels):
        raise TypeError(f"labels must be a Dask array or DataFrame, not {type(labels).__name__}; fit takes both kinds.")
    checks.check_label_shape(labels.shape)
    labels = as_declared(labels, "labels", client)
    checks.check_label_shape(labels.shape)
    if labels.shape[1] > labels.shape[0] and names is None:
        refuse_wide(labels.shape, OF_CHUNKS)
    return whole_rows(labels), list(range(labels.shape[1])) if names is None else names


def whole_rows(array: Any) -> "da.Array":
    """Return an array (N, d) with the chunks changed such that each has whole rows and none is empty."""
    return array.rechunk({0: tuple(size for size in array.chunks[0] if size), 1: -1})


def weights_by_rows(weights: Any, sizes: tuple[int, ...], client: Any) -> list[Any]:
    """Return weights (N,) of objects as an argument of tasks for each chunk of the labels, which have so many rows."""
    import dask.array as da

    if hasattr(weights, "to_dask_array"):  # a column of a Dask DataFrame
        weights = weights.to_dask_array(lengths=True)
    in_memory = not devices.chunked(weights)
    weights = da.asarray(weights) if in_memory else as_declared(weights, "sample_weight", client)
    if weights.shape != (sum(sizes),):
        raise ValueError(f"sample_weight must be {sum(sizes)} numbers, one per object, not {weights.shape}.")
    weights = weights.rechunk((sizes,))
    return chunks_of(waiting.persist_values([weights], client)[0] if in_memory and client is not None else weights)


def rows_of_chunks(rows: np.ndarray, starts: Any) -> list[np.ndarray]:
    """Split ascending row numbers by chunk; in the result, row numbers are relative to the first row of the chunk.

    ``starts`` are the numbers of the first row of each chunk, followed by the number of all rows.
    """
    of_chunks = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return [chunk_rows - start for chunk_rows, start in zip(of_chunks, starts[:-1], strict=True)]


def as_declared(array: Any, name: str, client: Any = None) -> "da.Array":
    """Return an array whose computed chunks are checked against their declared shape and dtype.

    If sizes of chunks are unknown, the chunks are computed once to find the sizes. Error messages contain ``name``, the
    name of the argument.
    """
    import dask
    import dask.array as da

    declared: da.Array = array.map_blocks(devices.chunk_as_declared, name, dtype=array.dtype, meta=array._meta)
    if not any(np.isnan(size) for sizes in declared.chunks for size in sizes):
        return declared
    axes = range(declared.ndim)
    shapes = [dask.delayed(_shape_of_chunk, pure=False)(chunk) for chunk in chunks_of(declared)]
    grid = np.reshape(waiting.results(shapes, client, name), (*declared.numblocks, declared.ndim))
    chunks = [
        grid[..., axis].max(axis=tuple(another_axis for another_axis in axes if another_axis != axis)).tolist()
        for axis in axes
    ]
    return da.Array(declared.dask, declared.name, tuple(map(tuple, chunks)), meta=declared._meta)


def _shape_of_chunk(chunk: Any) -> tuple[int, ...]:
    return np.shape(computed(chunk))


def blocks_of(array: Any) -> list[Any]:
    """Return the chunks of an array as delayed values; the tasks that compute a chunk are fused into one task."""
    import dask

    make = dask.delayed(computed, pure=False)
    return [
        make(chunk, dask_key_name=new_key("chunk")) if isinstance(chunk, Lineage) else chunk
        for chunk in chunks_of(array)
    ]


def chunks_of(array: Any) -> list[Any]:
    """Return the chunks of an array as arguments of tasks, which pass them to `computed`.

    A task computes its chunk itself, so that Dask neither keeps a chunk nor sends it to another worker. Chunks in the
    memory of workers are used directly. The tasks that compute a chunk have no keys of the array. If they had, another
    computation of the array might fuse tasks differently, and a scheduler blocks if one key has different tasks.
    """
    import dask
    from dask.core import flatten
    from dask.optimization import cull

    if any(type(value).__name__ == "Future" for value in dict(array.__dask_graph__()).values()):
        return array.to_delayed(optimize_graph=False).ravel().tolist()
    (array,) = dask.optimize(array)
    graph = dict(array.__dask_graph__())
    return [Lineage(cull(graph, key)[0], key) for key in flatten(array.__dask_keys__())]


def places_of(chunks: list[Any], client: Any) -> list[list[str]]:
    """Return the workers that hold each chunk of `chunks_of`, or the result of each persisted task; [] if none does."""
    futures = [] if client is None else list(_futures_behind(chunks))
    if not any(futures):
        return [[] for _ in chunks]
    holders = client.who_has([future for of_chunk in futures for future in of_chunk])
    holders_of_chunks = [[set(holders[future.key]) for future in of_chunk] for of_chunk in futures]
    return [sorted(set.intersection(*sets)) if sets else [] for sets in holders_of_chunks]


def _futures_behind(chunks: list[Any]) -> Iterator[list[Any]]:
    """Yield the results on workers from which each chunk is computed."""
    from dask.optimization import cull

    shared_graph, tasks = None, {}
    for chunk in chunks:
        if isinstance(chunk, Lineage):
            yield []
            continue
        if chunk.dask is not shared_graph:  # all chunks of an array have one graph
            shared_graph, tasks = chunk.dask, dict(chunk.dask)
        yield [value for value in cull(tasks, chunk.key)[0].values() if type(value).__name__ == "Future"]


class Lineage:
    """The tasks that compute a chunk, in an object in which Dask does not look for tasks."""

    def __init__(self, graph: Any, key: Any) -> None:
        self.graph, self.key = graph, key


def computed(chunk: Any) -> Any:
    """Return a chunk, computed from its lineage; any other value is returned unchanged."""
    if not isinstance(chunk, Lineage):
        return chunk
    import dask

    return dask.get(chunk.graph, chunk.key)


def split_chunks(array: Any, client: Any = None) -> list[Any]:
    """Return the chunks of an array as delayed values that keep their keys; each contains only the tasks of its chunk.

    The delayed values that Dask returns contain the tasks of all chunks, and all of them would be sent with every
    chunk. Values that all chunks share are sent once, before the chunks.
    """
    from dask.core import flatten
    from dask.delayed import Delayed
    from dask.optimization import cull

    graph = dict(array.__dask_graph__())
    values = [Delayed(key, {key: graph[key]}) for key in graph if str(key).startswith(_VALUE)]
    if values and client is not None:
        sent = waiting.persist_values(values, client)
        graph.update((value.key, value.__dask_graph__()[value.key]) for value in sent)
    return [Delayed(key, cull(graph, key)[0]) for key in flatten(array.__dask_keys__())]


def lazy_array(
    delayed: list[Any], sizes: Any, dtype: Any, width: tuple[Any, ...] = (), *, placed: bool = False
) -> "da.Array":
    """Join delayed chunks of rows, and return them as one lazy array; ``placed`` ones stay with their workers."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name, zeros = new_key("array"), (0,) * len(width)
    graph: dict[Any, Any] = {(name, i, *zeros): (_identity, chunk.key) for i, chunk in enumerate(delayed)}
    layers = HighLevelGraph.from_collections(name, graph, dependencies=delayed)
    chunks = tuple(int(n) for n in sizes), *((n,) for n in width)
    kind: Any = da.Array
    if placed:
        from gpuens.distributed.placed import Placed as kind
    return kind(layers, name, chunks, dtype=dtype)


def _identity(chunk: Any) -> Any:
    return chunk


_VALUE = "gpuens-value-"


def embed(value: Any) -> Any:
    """Store a value in the task graph, and return it as an argument of tasks, so that any client can run the tasks."""
    import dask

    return dask.delayed(value, traverse=False, name=new_key("value"))


def new_key(name: str) -> str:
    return f"gpuens-{name}-{uuid.uuid4().hex}"
