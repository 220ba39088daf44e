"""Functions that wait for results with a progress bar, and that raise an error if no worker can run a task."""

import sys
import time
from collections.abc import Iterator
from typing import Any

from gpuens.distributed import clients, failures
from gpuens.runtime import checks, progress

PATIENCE = 10  # number of seconds to wait while all workers are idle and at least one worker is paused


def results(tasks: list[Any], client: Any, subject: str) -> list[Any]:
    """Compute tasks or arrays, and return their results in this process."""
    import dask

    client = clients.active(client)
    with failures.explained(subject):
        if client is None:
            return list(dask.compute(*tasks, scheduler="threads"))
        futures = client.compute(tasks)
        wait(futures, client, subject)
        return client.gather(futures)


def result(future: Any, client: Any, subject: str) -> Any:
    for finished in _iterate_finished([future], client, subject):
        return finished.result()


def wait(futures: list[Any], client: Any, subject: str) -> None:
    """Wait until all futures are done; if a future fails, raise its error."""
    with progress.bar(len(futures), subject) as bar:
        for future in _iterate_finished(futures, client, subject):
            if future.status == "error":
                error = future.exception()
                client.cancel(futures)
                raise error
            bar.update(1)


def _iterate_finished(futures: list[Any], client: Any, subject: str) -> Iterator[Any]:
    """Yield each future when it is done; raise an error if all workers have stopped because their memory is full."""
    from distributed import as_completed

    queue = as_completed(futures, loop=client.loop)
    nap, looks, next_look = 0.001, 0, time.monotonic() + PATIENCE / 5
    while not queue.is_empty():
        if queue.has_ready():
            yield next(queue)
            nap, looks = 0.001, 0
            continue
        time.sleep(nap)
        nap = min(2 * nap, 0.1)
        if time.monotonic() < next_look:
            continue
        next_look = time.monotonic() + PATIENCE / 5
        idle = failures.idle_workers(client)
        looks = 0 if idle is None else looks + 1
        if looks == 5 and idle:
            client.cancel(futures)
            raise failures.memory_full(idle, subject)
        if looks == 5:
            checks.warn(f"the Dask scheduler has no workers; the {subject} wait for one.")


def persist_values(values: list[Any], client: Any) -> list[Any]:
    """Persist values of this process on the workers, without Dask's advice to scatter them instead of a large graph.

    The scheduler keeps the graph, so that a copy that is lost with its worker is made again.
    """
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize}):
        return client.persist(values)


def send(value: Any, client: Any, subject: str, to_all: bool = True) -> Any:
    """Send a value to every worker or to one worker, and return its future."""
    with failures.explained(subject):
        try:
            return client.scatter([value], broadcast=to_all, hash=False)[0]
        except TimeoutError:
            idle = failures.idle_workers(client)
            raise (
                failures.memory_full(idle, subject)
                if idle
                else ConnectionError(
                    f"no worker of the Dask cluster accepts the data for the {subject}; check that the workers are "
                    "running."
                )
            ) from None
