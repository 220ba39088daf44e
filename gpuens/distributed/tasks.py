"""Tasks for chunks: functions that create tasks, join their results in a tree, and keep results on the workers."""

import pickle
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from gpuens.distributed import failures, graph, waiting
from gpuens.runtime import device as devices

FAN_IN = 8  # number of chunks that one task merges
# largest number of bytes of a value that is stored in the task graph; a larger value is sent to the workers first
SMALL = 1_000_000


class Tasks:
    """Tasks for chunks of rows, run by the workers of a client or by threads of this process."""

    client: Any
    starts: list[int]  # first object of each chunk, followed by the number of all objects

    def task(
        self, function: Callable[..., Any], *args: Any, phase: str, chunk: int | None = None, workers: Any = None
    ) -> Any:
        """Return a delayed call of a function; if the call raises an error, the error message names the chunk.

        The task runs on one of the ``workers``, which hold a large argument, unless all of them have died. Dask
        alone would send the argument to another worker that is less busy.
        """
        import dask

        where = None
        if chunk is not None:
            where = chunk, self.starts[chunk], self.starts[chunk + 1]
        name = f"{phase.replace(' ', '-')}{'' if chunk is None else f'-chunk-{chunk}'}"
        with dask.annotate(workers=workers, allow_other_workers=True) if workers else nullcontext():
            call = dask.delayed(_call_for_chunk, pure=False, name=None)
            return call(function, where, *args, dask_key_name=graph.new_key(name))

    def tree(self, parts: list[Any], join: Callable[..., Any], phase: str, *shared: Any) -> Any:
        """Return a task for the combination of all parts in order.

        It depends on tasks ``join(list of parts, *shared)``, each of which combines at most `FAN_IN` parts.
        """
        while len(parts) > 1:
            parts = [self.task(join, parts[i : i + FAN_IN], *shared, phase=phase) for i in range(0, len(parts), FAN_IN)]
        return parts[0]

    def everywhere(self, value: Any) -> Any:
        """Return a value in a form that many tasks can have as an argument; a large value is sent to every worker."""
        if self.client is None or len(pickle.dumps(value, protocol=5)) <= SMALL:
            return graph.embed(value)
        return waiting.send(value, self.client, "what all workers need")

    def somewhere(self, value: Any) -> Any:
        """Send a value to one worker, and return it as the argument of one task, which this worker runs."""
        return waiting.send(value, self.client, "what a worker needs", to_all=False)

    def persist(self, tasks: list[Any], subject: str) -> list[Any]:
        """Compute tasks, and return tasks whose results are kept on the workers.

        If results exceed the memory of a worker, the worker writes them to disk. Threads of this process cannot do so.
        If their results exceed half of the memory budget, the original tasks are returned, and are computed again when
        they are needed.
        """
        with failures.explained(subject):
            if self.client is None:
                return self._persist_in_threads(tasks)
            tasks = self.client.persist(tasks)
            from distributed import futures_of

            waiting.wait(futures_of(tasks, client=self.client), self.client, subject)
            return tasks

    def _persist_in_threads(self, tasks: list[Any]) -> list[Any]:
        import dask
        from dask.sizeof import sizeof

        stored: list[Any] = []
        room = devices.memory_budget() // 2
        at_once = 2 * devices.n_threads()
        for start in range(0, len(tasks), at_once):
            batch = tasks[start : start + at_once]
            results = dask.compute(*batch, scheduler="threads")
            room -= sum(map(sizeof, results))
            if room < 0:
                return tasks
            stored += [
                dask.delayed(result, traverse=False, name=task.key) for result, task in zip(results, batch, strict=True)
            ]
        return stored

    def compute(self, tasks: list[Any], subject: str) -> list[Any]:
        """Compute tasks, and return their results in this process."""
        return waiting.results(tasks, self.client, subject)


def _call_for_chunk(function: Callable[..., Any], where: tuple[int, int, int] | None, *args: Any) -> Any:
    """Call a function; if it raises an error, also for lack of GPU memory, add the chunk's name to the message."""
    chunk_name = f"chunk {where[0]} (objects {where[1]} … {where[2] - 1})" if where else None
    limits = chunk_name or "a chunk", "work on smaller chunks"
    args = devices.within_memory(lambda: tuple(map(graph.computed, args)), *limits)
    try:
        return devices.within_memory(lambda: function(*args), *limits)
    except (ValueError, TypeError, ImportError) as error:
        if chunk_name is None:
            raise
        raise type(error)(f"{chunk_name}: {str(error).rstrip('.')}.") from None
