"""Short error messages for failures of workers and schedulers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpuens.runtime import checks
from gpuens.runtime.failures import LostWorkers


@contextmanager
def explained(subject: str) -> Iterator[None]:
    """Replace Dask's errors about workers and schedulers that died by errors with a short message."""
    try:
        yield
    except Exception as error:
        raised = _explain(error, subject)
        if raised is None:
            raise
        raise raised from error


def _explain(error: Exception, subject: str) -> Exception | None:
    """Return an error with a short message if the Dask cluster failed, or None for any other error."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        key = str(getattr(error, "task", ""))
        chunk = key.split("-chunk-")[1].split("-")[0] if "-chunk-" in key else None
        where = f"chunk {chunk}" if chunk else f"the {subject}"
        return LostWorkers(
            f"workers died repeatedly on {where}, most likely out of memory; use smaller chunks "
            "(labels.rechunk) or workers with more memory."
        )
    if "lost dependencies" in str(error):
        return ConnectionError(
            f"workers that held data for {subject or 'labels'} are gone, and the data cannot be computed again; repeat "
            "the call."
        )
    is_lost = kind in (
        "ClosedClientError",
        "CommClosedError",
        "CancelledError",
        "FutureCancelledError",
        "TimeoutError",
        "SchedulerClosedError",
    )
    is_lost = is_lost or (isinstance(error, OSError) and "connect" in str(error).lower())
    if is_lost or str(error).startswith("Tried sending message after closing"):
        return ConnectionError(
            f"the Dask scheduler stopped during the work on {subject or 'labels'}; start it again, and repeat the call."
        )
    return None


def idle_workers(client: Any) -> list[dict[str, Any]] | None:
    """Return the paused workers if no worker can run a task; otherwise, return None."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    paused = [address for address, worker in workers.items() if worker["status"] == "paused"]
    if len(paused) < len(workers) and (not paused or any(client.processing(set(workers) - set(paused)).values())):
        return None
    if any(worker["metrics"]["task_counts"].get("executing") for worker in workers.values()):
        return None
    return [workers[address] for address in paused]


def memory_full(workers: list[dict[str, Any]], subject: str) -> MemoryError:
    """Return the error to raise if all workers have paused because their memory is full."""
    fullest = max(workers, key=lambda worker: worker["metrics"]["memory"])
    used_bytes, limit = (checks.human_bytes(n) for n in (fullest["metrics"]["memory"], fullest["memory_limit"]))
    return MemoryError(
        f"the workers stopped before the {subject} were done because their memory is full ({len(workers)} paused, at "
        f"{used_bytes} of {limit}); give each more memory (memory_limit) or fewer threads, or use smaller chunks "
        "(labels.rechunk)."
    )
