"""Functions that read labels and features from files in chunks of rows, and write labels in chunks to files."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuens import io
from gpuens.distributed import clients, failures, graph, waiting
from gpuens.io import IN_CHUNKS, OUTPUTS, paths
from gpuens.io.arrays import checked_texts, open_npy, open_zarr
from gpuens.io.atomic import replacing, replacing_zarr
from gpuens.io.columns import choose_columns, each_column, mask_missing
from gpuens.io.opening import BYTES_OF_A_NAME, check_types, parquet_header
from gpuens.io.paths import reading
from gpuens.labels.columns import split_columns
from gpuens.labels.encoding import encode_columns
from gpuens.labels.features import check_numbers
from gpuens.labels.odd_columns import file_source, find_clusterings, separate_id_columns
from gpuens.labels.orientation import Spelling, refuse_draws, refuse_wide, spelling_of_file
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices

if TYPE_CHECKING:
    import dask.array as da

BYTES_OF_A_CHUNK = 2_000  # bytes of memory that Dask needs for a chunk before the chunk is read
HEAD = 10_000  # number of objects at the start of a file that are used to find columns of identifiers


def read_labels(
    path: Any, *, chunk_rows: int = 1_000_000, columns: Any = None, exclude: Any = None, missing: Any = None
) -> "da.Array | Any":  # Any: a Dask DataFrame, from parquet
    """Return the labels of a file as a lazy Dask array in chunks of rows, read by the workers.

    Parameters
    ----------
    path : str or path
        ``.npy`` (n_objects, n_clusterings), ``.zarr`` or ``.parquet`` (needs dask[dataframe]), on a file system that
        all workers see.
    chunk_rows : int
        The most rows per chunk; a parquet file has its own chunks.
    columns, exclude, missing
        As in `gpuens.io.read_labels`. The first 10,000 objects show whether a column holds ids or is unlike the others.
    """
    spelling = spelling_of_file(path)
    opened = _open(path, chunk_rows, partial(_check_labels, spelling))
    column_numbers, _ = choose_columns(opened.names, columns, exclude)
    first = opened.head(column_numbers)
    refuse_draws(each_column(first), spelling)
    if columns is None and len(column_numbers) > 1:
        column_numbers = _choose_clusterings(opened, column_numbers, first)
    labels = opened.chosen(column_numbers)
    if not missing:
        return labels
    if hasattr(labels, "columns"):
        return labels.map_partitions(mask_missing, missing)
    return labels.map_blocks(mask_missing, missing, dtype=mask_missing(labels._meta, missing).dtype)


def _check_labels(spelling: Spelling, shape: tuple[int, ...]) -> None:
    checks.check_label_shape(shape)
    if shape[1] > shape[0]:
        refuse_wide((shape[0], shape[1]), spelling)


def _choose_clusterings(opened: "_Opened", columns: list[int], first: Any) -> list[int]:
    """Return the columns that are clusterings, which is decided from the first rows of the file."""
    names = [opened.names[m] for m in columns]
    clusterings, _ = separate_id_columns(each_column(first), names, f"path {opened.path!r}")
    if not hasattr(first, "columns"):  # an array, whose columns have no names
        return [columns[m] for m in clusterings]
    names = [names[m] for m in clusterings]
    with checks.recorded():  # discards warnings about the first objects, which may not be true of all objects
        values = split_columns(first.iloc[:, clusterings], wide=True).values
        codes, categories = encode_columns(values, names, in_part=True)
    places = find_clusterings(codes, np.array([len(values) for values in categories]), names, file_source(opened.path))
    return [columns[clusterings[m]] for m in places]


def read_features(path: Any, *, chunk_rows: int = 1_000_000, columns: Any = None, exclude: Any = None) -> "da.Array":
    """Return the features (n_objects, n_features) of a file as a lazy Dask array in chunks of rows.

    Parameters
    ----------
    path, chunk_rows
        As in `read_labels`. The workers read a parquet file twice, once to count the rows of its chunks.
    columns, exclude
        As in `gpuens.io.read_features`.
    """
    opened = _open(path, chunk_rows, checks.check_feature_shape)
    features = opened.chosen(choose_columns(opened.names, columns, exclude)[0])
    return _frame_to_array(features) if hasattr(features, "columns") else features


def _frame_to_array(frame: Any) -> Any:
    for column, dtype in frame.dtypes.items():
        check_numbers(dtype, "X", column)
    if np.asarray(frame._meta).dtype == object:  # booleans and numbers are mixed, or numbers have a nullable dtype
        frame = frame.astype(np.float64)
    lengths = frame.map_partitions(len, enforce_metadata=False).compute()  # a plain int if there is one partition
    return frame.to_dask_array(lengths=np.atleast_1d(lengths).tolist())


class _Opened(NamedTuple):
    """An opened file, whose chunks are read when they are computed."""

    path: str
    chunks: Any  # a Dask array of all columns, or a Dask DataFrame
    names: list[Any]
    head: Callable[[list[int]], Any]  # numbers of columns → their first rows

    def chosen(self, columns: list[int]) -> Any:
        """Return the chunks, reduced to the columns ``columns``."""
        if hasattr(self.chunks, "columns"):
            names = [self.names[m] for m in columns]
            check_types(self.path, parquet_header(self.path)[1], names)
            return self.chunks[names]
        return self.chunks if columns == list(range(len(self.names))) else self.chunks[:, columns]


def _open(path: Any, chunk_rows: int, check: Callable[[tuple[int, ...]], None]) -> _Opened:
    """Open a file in chunks; ``check`` raises an error if the shape of an array is invalid."""
    with clients.needs_dask():
        import dask.array  # noqa: F401

    kind = paths.file_kind(path, IN_CHUNKS)
    chunk_rows = checks.check_integer(chunk_rows, "chunk_rows", minimum=1)
    paths.check_readable(path, folder=kind == ".zarr")
    path = os.path.abspath(path)  # the current folder of workers may be different
    return _open_parquet(path) if kind == ".parquet" else _open_array_file(path, kind, chunk_rows, check)


def _open_array_file(path: str, kind: str, chunk_rows: int, check: Callable[[tuple[int, ...]], None]) -> _Opened:
    import dask

    array_in_file = _open_array(path, kind)
    check(array_in_file.shape)
    needed = BYTES_OF_A_CHUNK * -(-array_in_file.shape[0] // chunk_rows) + BYTES_OF_A_NAME * array_in_file.shape[1]
    subject = f"the list of chunks, and of columns, of {path!r}, of shape {array_in_file.shape},"
    checks.check_memory(needed, devices.memory_budget(), subject, "ask for more rows in a chunk")
    bounds = [*range(0, array_in_file.shape[0], chunk_rows), array_in_file.shape[0]]
    read = dask.delayed(_read_rows, pure=False)
    chunks = [read(path, kind, start, stop, dask_key_name=graph.new_key("read")) for start, stop in pairwise(bounds)]
    array = graph.lazy_array(chunks, np.diff(bounds), array_in_file.dtype, array_in_file.shape[1:])
    names = list(range(array_in_file.shape[1]))
    return _Opened(path, array, names, lambda columns: _read_rows(path, kind, 0, HEAD)[:, columns])


def _open_parquet(path: str) -> _Opened:
    with io.needs("dask[dataframe]", ".parquet", "dask,io"), reading(path):
        import dask.dataframe as dd

        frame = dd.read_parquet(path)
    names = list(frame.columns)

    def head(columns: list[int]) -> Any:
        check_types(path, parquet_header(path)[1], [names[m] for m in columns])
        with reading(path):
            return frame[[names[m] for m in columns]].head(HEAD)

    return _Opened(path, frame, names, head)


def _open_array(path: str, kind: str) -> Any:
    """Return the array of an npy or zarr file after reading only its header."""
    if kind == ".zarr":
        return open_zarr(path)
    with reading(path):
        return open_npy(path)


def _read_rows(path: str, kind: str, start: int, stop: int) -> np.ndarray:
    array = _open_array(path, kind)
    with reading(path):  # a chunk of a zarr file may be damaged
        return checked_texts(np.array(array[start:stop]))


def on_gpus(labels: Any) -> "da.Array":
    """Return a Dask array of CuPy chunks; each chunk moves to the GPU of its worker."""
    like = np.empty((0, 0), dtype=labels.dtype)
    return labels.map_blocks(devices.move, "cuda", dtype=labels.dtype, meta=like)


def write_labels(path: Any, labels: Any, *, client: Any = None) -> np.ndarray:
    """Write labels in chunks to a file, and return the number of objects with each label.

    Files ``.npy`` and ``.zarr`` are written chunk by chunk. For other files, all labels are in memory
    (`gpuens.io.write_labels`). A file gets its final name when it is complete.
    """
    client = clients.active(client)
    labels = graph.as_declared(labels, "labels", client)
    kind = paths.file_kind(path, OUTPUTS)
    if kind not in (".npy", ".zarr"):
        host_labels = devices.to_host(waiting.results([labels], client, "labels of objects")[0])
        io.write_labels(path, host_labels)
        return np.bincount(host_labels)
    counts = np.zeros(0, dtype=np.int64)
    start = 0
    with _npy_writer(path, labels) if kind == ".npy" else _zarr_writer(path, labels) as write:
        for chunk in _iterate_chunks(labels, client):
            host = devices.to_host(chunk)
            write(start, host)
            start += len(host)
            new_counts = np.bincount(host, minlength=len(counts))
            new_counts[: len(counts)] += counts
            counts = new_counts
    return counts


@contextmanager
def _npy_writer(path: Any, labels: Any) -> Iterator[Callable[[int, np.ndarray], Any]]:
    with replacing(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(labels.dtype), "fortran_order": False, "shape": labels.shape}
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda start, chunk: file.write(np.ascontiguousarray(chunk).tobytes())


@contextmanager
def _zarr_writer(path: Any, labels: Any) -> Iterator[Callable[[int, np.ndarray], Any]]:
    with io.needs("zarr", ".zarr"):
        import zarr

    with replacing_zarr(path) as folder:
        array = zarr.open_array(folder, mode="w", shape=labels.shape, dtype=labels.dtype, chunks=(labels.chunksize[0],))

        def write(start: int, chunk: np.ndarray) -> None:
            array[start : start + len(chunk)] = chunk

        yield write


def _iterate_chunks(labels: Any, client: Any) -> Iterator[Any]:
    """Yield the chunks of an array in order, while a few further chunks are computed."""
    import dask

    subject = "labels of objects"
    blocks = deque(graph.split_chunks(labels, client))
    ahead = 1 if client is None else 2 * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    under_way: deque[Any] = deque()
    with failures.explained(subject), progress.bar(len(blocks), subject) as bar:
        while blocks or under_way:
            while blocks and len(under_way) < ahead:
                block = blocks.popleft()
                under_way.append(block if client is None else client.compute(block))
            first = under_way.popleft()
            yield (
                dask.compute(first, scheduler="threads")[0]
                if client is None
                else waiting.result(first, client, subject)
            )
            bar.update(1)
