"""Dask's arrays and graphs: chunks as tasks, tasks as arrays, and the values that all of them carry."""

import uuid
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.distributed import waiting


def by_rows(labels: Any, client: Any) -> tuple[Any, list]:
    """Return a Dask array (N, M) with known chunks of rows, each with all clusterings, and the clusterings' names."""
    names = None
    if hasattr(labels, "to_dask_array"):  # a Dask DataFrame
        names, labels = list(labels.columns), labels.to_dask_array(lengths=True)
    if not devices.chunked(labels):
        raise TypeError(f"labels must be a Dask array or DataFrame, not {type(labels).__name__}; fit takes both kinds.")
    checks.check_label_shape(labels.shape, columns_are_clusterings=True)
    labels = as_declared(labels, "labels", client)
    checks.check_label_shape(labels.shape, columns_are_clusterings=names is not None)
    if len(labels.chunks[1]) > 1:
        labels = labels.rechunk({1: -1})
    if not all(labels.chunks[0]):
        labels = labels.rechunk({0: tuple(size for size in labels.chunks[0] if size)})
    return labels, list(range(labels.shape[1])) if names is None else names


def as_declared(array: Any, name: str, client: Any = None) -> Any:
    """Return an array whose chunks are looked at wherever they are made: whoever declared them may have been wrong.

    Sizes that are unknown are found out, by making the chunks once. ``name`` is the argument's.
    """
    array = array.map_blocks(devices.chunk_as_declared, name, dtype=array.dtype, meta=array._meta)
    if not any(np.isnan(size) for sizes in array.chunks for size in sizes):
        return array
    import dask
    import dask.array as da

    axes = range(array.ndim)
    shapes = [dask.delayed(np.shape, pure=False)(block) for block in blocks_of(array)]
    grid = np.reshape(waiting.results(shapes, client, name), (*array.numblocks, array.ndim))
    chunks = [grid[..., axis].max(axis=tuple(other for other in axes if other != axis)).tolist() for axis in axes]
    return da.Array(array.dask, array.name, tuple(map(tuple, chunks)), meta=array._meta)


def blocks_of(array: Any) -> list:
    """Return the chunks of an array as delayed values, each with all that leads to it in one task.

    Whoever computes the same array fuses its tasks as it likes, under the same keys, and a scheduler that is told
    different things of a key gets stuck: so these keys are nobody else's. Chunks that are in the workers' memory
    already are taken as they are.
    """
    import dask
    from dask.core import flatten
    from dask.optimization import cull

    if any(type(value).__name__ == "Future" for value in dict(array.__dask_graph__()).values()):
        return array.to_delayed(optimize_graph=False).ravel().tolist()
    (array,) = dask.optimize(array)
    graph = dict(array.__dask_graph__())
    make = dask.delayed(_made, pure=False)
    return [
        make(_Lineage(cull(graph, key)[0], key), dask_key_name=new_key("chunk"))
        for key in flatten(array.__dask_keys__())
    ]


def apart(array: Any, client: Any = None) -> list:
    """Return the chunks of an array as delayed values, each with no tasks but its own, under the keys that they have.

    Delayed values of Dask's own making carry the tasks of all chunks, which would be sent again with every chunk. What
    all chunks are given is sent once, ahead of them.
    """
    from dask.core import flatten
    from dask.delayed import Delayed
    from dask.optimization import cull

    graph = dict(array.__dask_graph__())
    values = [Delayed(key, {key: graph[key]}) for key in graph if str(key).startswith(_VALUE)]
    if values and client is not None:
        graph.update((value.key, value.__dask_graph__()[value.key]) for value in client.persist(values))
    return [Delayed(key, cull(graph, key)[0]) for key in flatten(array.__dask_keys__())]


class _Lineage:
    """The tasks that lead to a chunk, which Dask is not to look into."""

    def __init__(self, graph: Any, key: Any) -> None:
        self.graph, self.key = graph, key


def _made(lineage: _Lineage) -> Any:
    import dask

    return dask.get(lineage.graph, lineage.key)


def lazy_array(delayed: list, sizes: Any, dtype: Any, width: tuple = ()) -> Any:
    """Return delayed chunks of rows as one lazy array."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name, zeros = new_key("array"), (0,) * len(width)
    graph: dict[Any, Any] = {(name, i, *zeros): (_same, chunk.key) for i, chunk in enumerate(delayed)}
    layers = HighLevelGraph.from_collections(name, graph, dependencies=delayed)
    return da.Array(layers, name, (tuple(int(n) for n in sizes), *((n,) for n in width)), dtype=dtype)


def _same(chunk: Any) -> Any:
    return chunk


_VALUE = "gpuens-value-"


def embed(value: Any) -> Any:
    """Return a value as tasks can take it, wherever they are computed: their graph holds it."""
    import dask

    return dask.delayed(value, traverse=False, name=new_key("value"))


def new_key(name: str) -> str:
    return f"gpuens-{name}-{uuid.uuid4().hex}"
