"""Functions of features in chunks, which generators of base clusterings use."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.distributed import clients, failures, graph, waiting
from gpuens.runtime import checks
from gpuens.runtime import device as devices

if TYPE_CHECKING:
    import dask.array as da


def on_workers(function: Callable[..., Any], shared: Any, items: list[Any], client: Any) -> Iterator[Any]:
    """Yield ``function(shared, item)`` for each item in order.

    Each call is one task on a worker. ``shared`` is sent to each worker only once.
    """
    client = clients.active(client)
    sent = waiting.send(shared, client, "features")
    futures = [client.submit(function, sent, item, pure=False) for item in items]
    with failures.explained("features"):
        for future in futures:
            yield waiting.result(future, client, "features")


def features_in_chunks(X: Any, names: Any, client: Any) -> "da.Array":
    """Return features in chunks as a Dask array whose chunk sizes are known; raise an error if ``names`` are given."""
    X = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
    checks.check_feature_shape(tuple(X.shape))
    if names is not None:
        raise ValueError("names cannot be kept, because the labels of X in chunks are a Dask array; leave names out.")
    return graph.as_declared(X, "X", client)


def rows_in_chunks(X: "da.Array", rows: np.ndarray, client: Any = None) -> np.ndarray:
    """Return the given rows, whose numbers ascend, of features in chunks, in the host memory of this process."""
    X = graph.whole_rows(X)
    parts = waiting.results(_take_rows(X, graph.blocks_of(X), rows), client, "features")
    return np.concatenate([devices.to_host(part) for part in parts])


def by_chunks(
    X: Any,
    row_sets: Sequence[np.ndarray],
    learn: Sequence[Callable[..., Any]],
    apply: Callable[..., Any],
    dtype: Any,
    client: Any = None,
) -> "da.Array":
    """Fit models to objects chosen from all chunks, and apply the models to every chunk.

    ``learn[i]`` returns a model of the rows ``row_sets[i]`` of X, whose numbers ascend. ``apply(chunk, models)``
    returns an array (rows of the chunk, len(learn)). The result is a lazy array with the chunks of X.
    """
    import dask

    client = clients.active(client)
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    blocks = graph.blocks_of(X)
    make, label = (dask.delayed(function, pure=False) for function in (_learn_model, apply))
    models = []
    for rows, function in zip(row_sets, learn, strict=True):
        models.append(make(function, _take_rows(X, blocks, rows), dask_key_name=graph.new_key("learn")))
    learned = graph.embed(waiting.results(models, client, "features"))
    label_tasks = [label(block, learned, dask_key_name=graph.new_key("apply")) for block in blocks]
    return graph.lazy_array(label_tasks, X.chunks[0], dtype, (len(learn),))


def _take_rows(X: "da.Array", blocks: list[Any], rows: np.ndarray) -> list[Any]:
    """Return a task for each chunk that selects those of its objects that are in ``rows``."""
    import dask

    take, starts = dask.delayed(_rows_at, pure=False), np.cumsum([0, *X.chunks[0]])
    return [
        take(block, chunk_rows) for block, chunk_rows in zip(blocks, graph.rows_of_chunks(rows, starts), strict=True)
    ]


def _rows_at(block: Any, rows: np.ndarray) -> Any:
    return block[devices.move(rows, devices.kind_of(block))]


def _learn_model(function: Callable[..., Any], parts: list[Any]) -> Any:
    return function(np.concatenate(parts))
