"""The Dask client: a given client, the active client, or the client of a cluster that this module starts."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpuens.distributed import failures
from gpuens.runtime import checks, device, host, installing

TIMEOUT = 20  # number of seconds to wait for an answer of the scheduler


def active(client: Any) -> Any:
    """Return the given client; if it is None, return Dask's active client, or None if there is no active client."""
    if client is not None:
        methods = ("compute", "persist", "scatter", "submit")
        if not all(callable(getattr(client, method, None)) for method in methods):
            raise TypeError(f"client must be a distributed.Client, not {checks.shown(client)}.")
        return client
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


@contextmanager
def needs_dask() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"work in chunks needs Dask, which is not installed: {installing.command('dask')}."
        ) from error


@contextmanager
def connected(scheduler: str | None, workers: int | None = None) -> Iterator[Any]:
    """Connect to a scheduler, or start a cluster on this machine; yield the client.

    ``scheduler`` is the address of a scheduler, "local" (``workers`` processes), "cuda" (a worker for each GPU, by
    dask-cuda) or None. If it is None, yield None, and threads of this process do the work.
    """
    if scheduler is not None and not isinstance(scheduler, str):
        raise TypeError(f"scheduler must be None, 'local', 'cuda' or an address, not {checks.shown(scheduler)}.")
    if workers is not None:
        checks.check_integer(workers, "workers", minimum=1, maximum=1024)
    device.keeps_kernels()  # must be called before Dask imports CuPy in this process and in workers
    if scheduler is None:
        yield None
        return
    with needs_dask():
        from distributed import Client, LocalCluster

    if scheduler in ("local", "cuda"):
        _refuse_no_scratch()
    if scheduler == "local":
        cluster: Any = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0")
    elif scheduler == "cuda":
        try:
            from dask_cuda import LocalCUDACluster
        except ImportError as error:
            raise ImportError(
                "scheduler 'cuda' needs dask-cuda, which is not installed: pip install dask-cuda, or take 'local'."
            ) from error
        import dask

        with dask.config.set({"distributed.scheduler.work-stealing": False}):  # rows stay on the GPU that holds them
            cluster = LocalCUDACluster(n_workers=workers)
    else:
        from distributed.comm.addressing import get_address_host_port

        cluster = None
        try:
            get_address_host_port(scheduler)
        except ValueError as error:  # checked here, because a client would try endlessly to connect to a wrong address
            raise ValueError(
                f"scheduler must be local, cuda, threads or an address such as tcp://host:8786, not {scheduler!r} "
                f"({error})."
            ) from error
    try:
        with failures.explained("the connection"):
            try:
                client = Client(scheduler if cluster is None else cluster, timeout=TIMEOUT)
            except OSError as error:
                raise ConnectionError(
                    f"no Dask scheduler answered at {scheduler!r} within {TIMEOUT} s; start a scheduler there, or give "
                    "another address."
                ) from error
        with client:
            yield client
    finally:
        if cluster is not None:
            cluster.close()


def _refuse_no_scratch() -> None:
    """Raise an error if there is no writable folder for the temporary files of workers."""
    import dask

    named = dask.config.get("temporary-directory", None)
    try:
        folder = named or tempfile.gettempdir()
    except FileNotFoundError:
        folder = os.environ.get("TMPDIR", "/tmp")
    else:
        if host.writable(folder):
            return
    raise PermissionError(
        f"workers of this machine keep temporary files in {folder!r}, which cannot be written; set "
        f"{'DASK_TEMPORARY_DIRECTORY' if named else 'TMPDIR'} to a directory with room."
    )
