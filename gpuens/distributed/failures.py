"""What happens to workers and schedulers, in one sentence each."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpuens import checks


@contextmanager
def sentences(what: str) -> Iterator[None]:
    """Turn what Dask says of dead workers and schedulers into one sentence."""
    try:
        yield
    except Exception as error:
        raised = _sentence(error, what)
        if raised is None:
            raise
        raise raised from error


def _sentence(error: Exception, what: str) -> Exception | None:
    """Return an error in one sentence for what happens to a cluster, or None for any other error."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        key = str(getattr(error, "task", ""))
        chunk = key.split("-chunk-")[1].split("-")[0] if "-chunk-" in key else None
        where = f"chunk {chunk}" if chunk else f"the {what}"
        return MemoryError(
            f"workers died again and again over {where}, most likely for want of memory; use smaller chunks "
            "(labels.rechunk) or workers with more memory."
        )
    if "lost dependencies" in str(error):
        return ConnectionError(
            f"workers that held what {what or 'labels'} need are gone, and nothing tells how to make it again; call "
            "fit again."
        )
    gone = kind in (
        "ClosedClientError",
        "CommClosedError",
        "CancelledError",
        "FutureCancelledError",
        "TimeoutError",
        "SchedulerClosedError",
    )
    gone = gone or (isinstance(error, OSError) and "connect" in str(error).lower())
    if gone or str(error).startswith("Tried sending message after closing"):
        return ConnectionError(
            f"the Dask scheduler went away while working on {what or 'labels'}; start it again and repeat the call."
        )
    return None


def idle_workers(client: Any) -> list[dict] | None:
    """Return the workers that are paused, where no worker does anything, nor could; None where one does or could."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    paused = [address for address, worker in workers.items() if worker["status"] == "paused"]
    if len(paused) < len(workers) and (not paused or any(client.processing(set(workers) - set(paused)).values())):
        return None
    if any(worker["metrics"]["task_counts"].get("executing") for worker in workers.values()):
        return None
    return [workers[address] for address in paused]


def memory_full(workers: list[dict], what: str) -> MemoryError:
    """Return what is raised where nothing goes on."""
    fullest = max(workers, key=lambda worker: worker["metrics"]["memory"])
    used, limit = (checks.human_bytes(n) for n in (fullest["metrics"]["memory"], fullest["memory_limit"]))
    return MemoryError(
        f"the workers have stopped before the {what} were done, for their memory is full ({len(workers)} paused, at "
        f"{used} of {limit}); give each more memory (memory_limit) or fewer threads, or use smaller chunks "
        "(labels.rechunk)."
    )
