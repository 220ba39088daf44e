"""Labels in chunks of rows, on a Dask cluster or in the threads of this process. The only module that imports Dask.

    chunk ─▶ its distinct rows, counted ─▶ merged, few at a time ─▶ core groups ─▶ method ─▶ chunk by chunk: labels
                                                     └▶ too many for one process ─▶ sums over pieces ─▶ a rule ─┘

Each chunk is reduced to its core groups where it is, by what reduces a whole ensemble elsewhere; only core groups come
together, and of those only what the method works on comes to the caller. Where not even these fit one process they
stay in pieces, and methods that can do with sums over them (`gpuens.scattered`) go on. Labels of the objects are a lazy
Dask array with the chunks of the input: whoever computes it looks each chunk's rows up again, in what the array brings
along, so that it need not be the cluster that fitted. Chunks may be NumPy's or CuPy's.

The client is the caller's: ``client=``, or the one that is active; without any the threads of this process work.
"""

import copy
import math
import os
import pickle
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens import contingency, io, progress, validation
from gpuens import device as devices
from gpuens.arrays import open_npy
from gpuens.columns import chosen, left_out, without
from gpuens.compiled import njit
from gpuens.ensemble import Ensemble, _encode, _encode_column, _missing_everywhere, codes_dtype
from gpuens.io import IN_CHUNKS, OUTPUTS
from gpuens.reduction import Reduction, Sample, core_groups
from gpuens.scattered import Rule
from gpuens.validation import reading
from gpuens.writing import replacing, replacing_folder

FAN_IN = 8  # chunks merged by one task
TIMEOUT = 20  # seconds that a scheduler has to answer
PATIENCE = 10  # seconds that workers may do nothing while some of them are paused
SMALL = 1_000_000  # bytes that may travel inside a graph; more are sent to the workers first


def fit(estimator: Any, labels: Any, *, client: Any = None) -> Any:
    """Fit a consensus estimator to labels in chunks; ``estimator.fit(labels)`` does the same with the active client.

    Parameters
    ----------
    estimator : a consensus estimator
    labels : dask.array.Array (n_objects, n_clusterings), chunked by rows
        What `gpuens.Ensemble` takes, chunk by chunk: labels mean the same in all chunks. Unknown chunk sizes are
        computed.
    client : distributed.Client, optional

    Returns
    -------
    estimator
        ``labels_`` is a Dask array with the same chunks, computed when asked for, wherever the chunks of ``labels``
        can be had: by this client, another one or none; chunks that were persisted, by their own client alone.

    Raises
    ------
    ValueError, TypeError
        In one sentence that names the chunk, for labels that are refused, and for chunks that are not what the array
        says of them.
    MemoryError
        Where the core groups do not fit this process or the workers, and where workers stop because their memory is
        full.
    ConnectionError
        Where the scheduler is gone.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpuens as ge
    >>> labels = da.from_array(ge.Ensemble([[0, 0, 1, 1, 1, 2], [5, 5, 5, 7, 7, 7]]).to_array(), chunks=(2, 2))
    >>> est = ge.EAC(n_clusters=2).fit(labels)
    >>> est.labels_.chunks, est.labels_.compute().tolist()
    (((2, 2, 2),), [0, 0, 0, 1, 1, 1])
    """
    reduce = estimator._checked()
    chunks = Chunks(labels, client)
    if isinstance(reduce, Sample):
        reduced = chunks.sample(reduce, estimator)
        return estimator._fit(reduced.ensemble, lambda device: reduced)
    if reduce is None and not chunks.fit_here:
        return _fit_in_pieces(estimator, chunks)
    return estimator._fit(chunks.groups.ensemble, lambda device: chunks.reduce(reduce))


def _fit_in_pieces(estimator: Any, chunks: "Chunks") -> Any:
    """Fit an estimator to core groups that stay in pieces: what it learns of them is a rule, by which chunks go."""
    rows = ChunkPieces(chunks, estimator.device)
    chunks.merged = []
    validation.n_clusters(estimator.n_clusters, rows.n_rows)
    rule = estimator._learn(rows)
    estimator.reduction_ = ScatteredReduction(rows.numbering, np.empty(0, dtype=np.int64), None, chunks=chunks)
    estimator.labels_ = estimator.reduction_.of_rows(_Ruled(rule, estimator.device))
    estimator.n_clusters_ = rule.n_labels
    estimator._note_names(rows.numbering)
    return estimator


def intersections(labels: Any, *, layout: str = "auto", client: Any = None) -> Any:
    """Return the objects that each two clusters share, counted chunk by chunk; see `gpuens.contingency.intersections`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gpuens import distributed
    >>> distributed.intersections(da.from_array(np.array([[0, 1], [0, 0], [1, 0], [0, 0]]), chunks=(2, 2)))
    array([[3, 0, 2, 1],
           [0, 1, 1, 0],
           [2, 1, 3, 0],
           [1, 0, 0, 1]])
    """
    validation.choice(layout, "layout", ("auto", "dense", "sparse"))
    chunks = Chunks(labels, client)
    if layout == "auto":
        n_clusters = sum(len(c) for c in chunks.numbering.categories)
        layout = "dense" if 8 * n_clusters**2 <= contingency.DENSE_BYTES else "sparse"
    bare = chunks.bare()
    parts = [chunks.task(_intersections, rows, bare, layout, phase="intersections") for rows in chunks.rows()]
    return chunks.compute([chunks.tree(parts, _add, "intersections")], "intersections")[0]


# --- before a run -----------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """What a run over chunks is going to hold, from one chunk looked at; ``str(plan)`` says it in words."""

    n_objects: int
    n_clusterings: int
    n_chunks: int
    pilot_objects: int
    pilot_groups: int
    expected_groups: int
    expected_bytes: int  # of the core groups and what the method holds beside them, here
    suggestion: str | None  # the reduction that would fit, where that does not
    in_pieces: bool = False  # whether the rows are going to stay where they are, as they do not fit here

    def __str__(self) -> str:
        size = validation.human_bytes(self.expected_bytes)
        return (
            f"{self.n_objects:,} objects in {self.n_chunks} chunks; {self.pilot_groups:,} distinct label rows in "
            f"{self.pilot_objects:,} of them, so about {self.expected_groups:,} in all: {size}"
            + (f"; --reduce {self.suggestion} would fit" if self.suggestion else "")
            + ("; they stay in pieces" if self.in_pieces else "")
        )


def plan(labels: Any, estimator: Any = None, *, client: Any = None) -> Plan:
    """Return what fitting is going to hold: the distinct rows of one chunk and of its first half tell how they grow.

    Distinct rows are taken to grow as a power of the number of objects. Methods that hold all pairs of rows are
    counted with what they hold, unless the estimator is given a reduction: METIS 28 bytes an ordered pair, ROCK 4,
    complete linkage 8.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpuens as ge
    >>> from gpuens import distributed
    >>> labels = da.zeros((1000, 3), dtype=int, chunks=(100, 3))
    >>> print(distributed.plan(labels))
    1,000 objects in 10 chunks; 1 distinct label rows in 100 of them, so about 1 in all: 64 bytes
    """
    client = _active(client)
    labels, _ = _by_rows(labels, client)
    n_objects, n_clusterings = labels.shape
    sizes = labels.chunks[0]
    largest = int(np.argmax(sizes))
    import dask

    pilot = dask.delayed(_growth, pure=False)(_blocks(labels)[largest])
    ((groups, of_half),) = results([pilot], client, "labels")
    power = min(1.0, max(0.0, np.log2(max(groups, 1) / max(of_half, 1))))
    expected = min(n_objects, int(np.ceil(groups * (n_objects / sizes[largest]) ** power)))
    needed = expected * (4 * n_clusterings + 52)
    in_pieces = False
    each_pair, suggestion, budget = PAIRS.get(type(estimator).__name__, 0), None, devices.memory_budget()
    if getattr(estimator, "linkage", None) == "complete":
        each_pair = 8
    if estimator is None or estimator._checked() is None:
        needed += each_pair * expected**2
        in_pieces = needed > budget and estimator is not None and estimator.learns_in_pieces
        if needed > budget and not in_pieces:
            fits = math.isqrt(budget // (2 * each_pair)) if each_pair else budget // (8 * n_clusterings + 104)
            suggestion = f"sample:{max(1, min(10_000, fits))}"
    return Plan(n_objects, n_clusterings, len(sizes), sizes[largest], groups, expected, needed, suggestion, in_pieces)


PAIRS = {"OCIa": 28, "OCH": 4}  # bytes that a method holds for each ordered pair of rows


def _growth(block: Any) -> tuple[int, int]:
    """Return the number of distinct rows of a chunk, and of its first half."""
    half = max(1, len(block) // 2)
    return len(_own_groups(block).weights), len(_own_groups(block[:half]).weights)


# --- files and clusters -----------------------------------------------------------------------------------------------


def read_labels(
    path: Any, *, chunk_rows: int = 1_000_000, columns: Any = None, exclude: Any = None, missing: Any = None
) -> Any:
    """Return the labels of a file as a Dask array in chunks of rows, which the workers read when they come to them.

    Parameters
    ----------
    path : str or path
        ``.npy`` (n_objects, n_clusterings), ``.zarr`` or ``.parquet`` (needs dask[dataframe]), where all workers see
        it.
    chunk_rows : int
        Rows of a chunk at most; the chunks of a parquet file are its own.
    columns, exclude, missing
        As in `gpuens.io.read_labels`. Whether a column holds ids is told from the first objects.
    """
    with _needs_dask():
        import dask.array  # noqa: F401

    kind = validation.file_kind(path, IN_CHUNKS)
    chunk_rows = validation.integer(chunk_rows, "chunk_rows", minimum=1)
    validation.readable_path(path, folder=kind == ".zarr")
    path = os.path.abspath(path)  # workers may have been started elsewhere
    labels, names, head = _parquet(path) if kind == ".parquet" else _array_file(path, kind, chunk_rows)
    wanted, _ = chosen(names, columns, exclude)
    if columns is None and len(wanted) > 1:
        first = head(wanted)
        wanted = [wanted[m] for m in left_out(first, [names[m] for m in wanted], f"path {path!r}")]
    if hasattr(labels, "columns"):
        labels = labels[[names[m] for m in wanted]]
        return labels.map_partitions(without, missing) if missing else labels
    if wanted != list(range(len(names))):
        labels = labels[:, wanted]
    return labels.map_blocks(without, missing, dtype=without(labels._meta, missing).dtype) if missing else labels


HEAD = 10_000  # objects by which ids are told in chunks


def _array_file(path: str, kind: str, chunk_rows: int) -> tuple[Any, list, Callable[[list[int]], Any]]:
    """Return the labels of an npy or zarr file in chunks, their names, and a function to the first rows of some."""
    import dask

    whole = _opened(path, kind)
    validation.label_matrix_shape(whole.shape, columns_are_clusterings=True)
    validation.label_file_shape(path, whole.shape)
    bounds = [*range(0, whole.shape[0], chunk_rows), whole.shape[0]]
    read = dask.delayed(_rows_of_file, pure=False)
    chunks = [read(path, kind, start, stop, dask_key_name=_key("read")) for start, stop in pairwise(bounds)]
    labels = _array(chunks, np.diff(bounds), whole.dtype, whole.shape[1:])
    return labels, list(range(whole.shape[1])), lambda columns: _rows_of_file(path, kind, 0, HEAD)[:, columns]


def _parquet(path: str) -> tuple[Any, list, Callable[[list[int]], Any]]:
    with _needs("dask[dataframe]", ".parquet", "dask[dataframe]"), reading(path):
        import dask.dataframe as dd

        labels = dd.read_parquet(path)
    names = list(labels.columns)

    def head(columns: list[int]) -> Any:
        with reading(path):
            return labels[[names[m] for m in columns]].head(HEAD)

    return labels, names, head


def _opened(path: str, kind: str) -> Any:
    """Return the array of an npy or zarr file, of which nothing but the header has been read."""
    if kind == ".npy":
        with reading(path):
            return open_npy(path)
    with _needs("zarr", kind), reading(path):
        import zarr

        return zarr.open_array(path, mode="r")


@contextmanager
def _needs(package: str, kind: str, install: str = "gpuens[io]") -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise validation.package_missing(kind, package, install) from error


@contextmanager
def _needs_dask() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise validation.no_dask() from error


def _rows_of_file(path: str, kind: str, start: int, stop: int) -> np.ndarray:
    whole = _opened(path, kind)
    with reading(path):  # a chunk of a zarr file may be damaged
        return np.array(whole[start:stop])


def on_gpus(labels: Any) -> Any:
    """Return a Dask array whose chunks are CuPy's: each goes to the GPU of the worker that has read it."""
    return labels.map_blocks(devices.move, "cuda", dtype=labels.dtype, meta=np.empty((0, 0), dtype=labels.dtype))


def write_labels(path: Any, labels: Any, *, client: Any = None) -> np.ndarray:
    """Write labels in chunks to a file, a few chunks at a time, and return how many objects have each label.

    ``.npy`` and ``.zarr`` are written chunk by chunk; other kinds (`gpuens.io.write_labels`) hold all labels at once. A
    file takes its name when it is complete.
    """
    client = _active(client)
    labels = as_declared(labels, "labels", client)
    kind = validation.file_kind(path, OUTPUTS)
    if kind not in (".npy", ".zarr"):
        whole = devices.to_host(results([labels], client, "labels of objects")[0])
        io.write_labels(path, whole)
        return np.bincount(whole)
    counts = np.zeros(0, dtype=np.int64)
    start = 0
    with _npy(path, labels) if kind == ".npy" else _zarr(path, labels) as write:
        for chunk in _in_order(labels, client):
            host = devices.to_host(chunk)
            write(start, host)
            start += len(host)
            found = np.bincount(host, minlength=len(counts))
            found[: len(counts)] += counts
            counts = found
    return counts


@contextmanager
def _npy(path: Any, labels: Any) -> Iterator[Callable[[int, np.ndarray], Any]]:
    with replacing(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(labels.dtype), "fortran_order": False, "shape": labels.shape}
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda start, chunk: file.write(np.ascontiguousarray(chunk).tobytes())


@contextmanager
def _zarr(path: Any, labels: Any) -> Iterator[Callable[[int, np.ndarray], Any]]:
    with _needs("zarr", ".zarr"):
        import zarr

    with replacing_folder(path) as folder:
        made = zarr.open_array(folder, mode="w", shape=labels.shape, dtype=labels.dtype, chunks=(labels.chunksize[0],))

        def write(start: int, chunk: np.ndarray) -> None:
            made[start : start + len(chunk)] = chunk

        yield write


def _in_order(labels: Any, client: Any) -> Iterator[Any]:
    """Yield the chunks of an array one after the other, with a few of the next ones under way."""
    import dask

    what = "labels of objects"
    blocks = deque(_apart(labels, client))
    ahead = 1 if client is None else 2 * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    under_way: deque = deque()
    with _sentences(what), progress.bar(len(blocks), what) as bar:
        while blocks or under_way:
            while blocks and len(under_way) < ahead:
                block = blocks.popleft()
                under_way.append(block if client is None else client.compute(block))
            first = under_way.popleft()
            yield dask.compute(first, scheduler="threads")[0] if client is None else _result(first, client, what)
            bar.update(1)


@contextmanager
def connected(scheduler: str | None, workers: int | None = None) -> Iterator[Any]:
    """Join a scheduler by its address, or make a cluster of this machine; yield the client, None for threads.

    ``scheduler``: None, "local" (``workers`` processes), "cuda" (a worker for each GPU, by dask-cuda) or an address.
    """
    validation.scheduler_and_workers(scheduler, workers)
    if scheduler is None:
        yield None
        return
    with _needs_dask():
        from distributed import Client, LocalCluster

    if scheduler == "local":
        cluster: Any = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0")
    elif scheduler == "cuda":
        try:
            from dask_cuda import LocalCUDACluster
        except ImportError as error:
            raise validation.no_dask_cuda() from error
        cluster = LocalCUDACluster(n_workers=workers)
    else:
        from distributed.comm.addressing import get_address_host_port

        cluster = None
        try:
            get_address_host_port(scheduler)
        except ValueError as error:  # a client would be left behind that tries to connect for ever
            raise validation.no_address(scheduler, error) from error
    try:
        with _sentences("the connection"):
            try:
                client = Client(scheduler if cluster is None else cluster, timeout=TIMEOUT)
            except OSError as error:
                raise validation.no_scheduler(scheduler, TIMEOUT) from error
        with client:
            yield client
    finally:
        if cluster is not None:
            cluster.close()


# --- work on features -------------------------------------------------------------------------------------------------


def on_workers(function: Callable, shared: Any, items: list, client: Any) -> Iterator[Any]:
    """Yield ``function(shared, item)`` of each item in order, a task each; every worker gets ``shared`` once."""
    there = _sent(shared, client, "features")
    futures = [client.submit(function, there, item, pure=False) for item in items]
    with _sentences("features"):
        for future in futures:
            yield _result(future, client, "features")


def by_chunks(
    X: Any, chosen: Sequence[np.ndarray], learn: Sequence[Callable], apply: Callable, dtype: Any, client: Any = None
) -> Any:
    """Learn from some objects of all chunks, and apply what was learned to every chunk.

    ``learn[i]`` makes something of the rows ``chosen[i]`` (ascending) of X, ``apply(chunk, made)`` gives (rows,
    len(learn)) of a chunk; they come as a lazy array with the chunks of X.
    """
    import dask

    client = _active(client)
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    starts = np.cumsum([0, *X.chunks[0]])
    blocks = _blocks(X)
    take, make, label = (dask.delayed(function, pure=False) for function in (_at, _learned, apply))
    made = []
    for rows, function in zip(chosen, learn, strict=True):
        of_chunks = np.split(rows, np.searchsorted(rows, starts[1:-1]))
        drawn = [take(block, some - start) for block, some, start in zip(blocks, of_chunks, starts[:-1], strict=True)]
        made.append(make(function, drawn, dask_key_name=_key("learn")))
    learned = _value(results(made, client, "features"))
    found = [label(block, learned, dask_key_name=_key("apply")) for block in blocks]
    return _array(found, X.chunks[0], dtype, (len(learn),))


def _at(block: Any, rows: np.ndarray) -> Any:
    return block[rows]


def _learned(function: Callable, drawn: list) -> Any:
    return function(np.concatenate(drawn))


# --- labels in chunks -------------------------------------------------------------------------------------------------


class Numbering(NamedTuple):
    """How the clusters of all chunks are numbered."""

    categories: list[np.ndarray]  # the label value of each cluster, clustering by clustering
    names: list
    dtype: Any  # of the codes


class Part(NamedTuple):
    """The distinct rows of one chunk, with the chunk's own numbering of the clusters."""

    codes: np.ndarray  # (g, M)
    counts: np.ndarray  # (g,) int64
    categories: list[np.ndarray]


class Rows(NamedTuple):
    """Distinct rows in lexicographic order, with the numbering of all chunks."""

    codes: np.ndarray  # (g, M)
    counts: np.ndarray  # (g,) int64


class Chunks:
    """A label matrix in chunks, and its core groups, found when first asked for."""

    def __init__(self, labels: Any, client: Any = None) -> None:
        self.client = _active(client)
        with _sentences("labels"):
            self.labels, self.names = _by_rows(labels, self.client)
        self.starts = np.cumsum([0, *self.labels.chunks[0]]).tolist()
        blocks = _blocks(self.labels)
        self.parts = self.persist(
            [
                self.task(_part, block, start, phase="core groups", chunk=i)
                for i, (block, start) in enumerate(zip(blocks, self.starts[:-1], strict=True))
            ],
            "core groups of chunks",
        )
        self.numbering, self.tables = self._number()
        self.pieces: list = []  # the distinct rows of each chunk, and how many
        self.sizes: list[int] = []
        self.merged: list = []  # what they have been merged to
        self.merged_sizes: list[int] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the connection, and what is in the workers' memory: labels need neither."""
        return self.__dict__ | {"client": None, "parts": [], "pieces": [], "merged": []}

    def _number(self) -> tuple[Numbering, Any]:
        """Number the clusters of all chunks by ascending label value, as those of one ensemble are."""
        found = self.compute([self.task(_categories, part, phase="labels") for part in self.parts], "labels")
        categories, tables = [], []
        for m, name in enumerate(self.names):
            of_chunks = [own[m] for own in found]
            same_kind = len({own.dtype.kind in "iub" for own in of_chunks if len(own)}) <= 1
            whole = np.concatenate([own if same_kind else own.astype(object) for own in of_chunks])
            codes, values = _encode_column(whole, name)
            categories.append(values)
            tables.append(np.split(codes, np.cumsum([len(own) for own in of_chunks])[:-1]))
        validation.clusterings_say_something([len(c) for c in categories], self.names, self.starts[-1])
        dtype = np.dtype(codes_dtype(max(len(c) for c in categories)))
        per_chunk = [[table[i] for table in tables] for i in range(len(found))]
        return Numbering(categories, self.names, dtype), per_chunk

    @property
    def fit_here(self) -> bool:
        """Whether the core groups of all chunks fit one process."""
        self._merge()
        return self._fits

    @property
    def groups(self) -> Reduction:
        """The core groups of all chunks, here; where each object belongs stays in chunks."""
        if not hasattr(self, "_groups"):
            if not self.fit_here:
                n_rows = sum(self.merged_sizes)
                raise validation.groups_too_many(n_rows, n_rows * self._row_bytes)
            rows = _merge(self.compute(self.merged, "core groups"), self.bare())
            self.merged = self.pieces = []  # workers need not hold on to them either
            ensemble = Ensemble.of_codes(np.asfortranarray(rows.codes), self.numbering.categories, self.names)
            self._groups = ChunkedReduction(Reduction(ensemble, rows.counts, None), self)
        return self._groups

    @property
    def _row_bytes(self) -> int:
        return len(self.names) * self.numbering.dtype.itemsize + 40

    def _merge(self) -> None:
        """Merge the distinct rows of all chunks, few at a time, until they are one or no merge would fit.

        Those of each chunk are kept beside, as pieces: where the merged ones do not fit, methods learn of these, so
        that nothing depends on how far the merging went.
        """
        if self.merged_sizes:
            return
        self.merged = self.pieces = self.persist(self.rows(), "core groups")
        self.parts = []  # workers need not hold on to them; what is lost later is made again from the labels
        self.merged_sizes = self.sizes = self._sizes_of(self.merged)
        while True:
            together = _runs(self.merged_sizes, self._worker_budget() // (3 * self._row_bytes))
            if len(together) == len(self.merged):
                copies = 1 if len(together) == 1 else 3  # while they become one
                self._fits = copies * sum(self.merged_sizes) * self._row_bytes <= devices.memory_budget()
                return
            tasks = [self.task(_merge, self.merged[some], self.bare(), phase="merge") for some in together]
            self.merged = self.persist(tasks, "core groups")
            self.merged_sizes = self._sizes_of(self.merged)

    def _sizes_of(self, pieces: list) -> list[int]:
        return self.compute([self.task(_n_rows, piece, phase="size") for piece in pieces], "core groups")

    def _worker_budget(self) -> int:
        """Return how many bytes a task may take."""
        budget = devices.memory_budget()
        if self.client is None:
            return budget // 8  # however many threads merge
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] // (2 * worker["nthreads"]) for worker in workers if worker["memory_limit"]]
        return min([budget, *limits])

    def reduce(self, reduction: Any) -> Reduction:
        """Return what a reduction makes of the core groups, with the objects in chunks; None is the core groups."""
        groups = self.groups
        if reduction is None:
            return groups
        validation.counts_taken(reduction)
        rows = validation.reduced(reduction.reduce(groups.ensemble, groups.weights), Reduction, reduction)
        return ChunkedReduction(rows, self, devices.to_host(rows.membership))

    def sample(self, sample: Sample, estimator: Any) -> Reduction:
        """Return the distinct rows of objects drawn from all chunks; the others stay there."""
        self.parts = []  # their clusters were all that is needed of them
        drawn = np.sort(sample.draw(self.starts[-1]))
        of_chunks = np.split(drawn, np.searchsorted(drawn, self.starts[1:-1]))
        blocks = _blocks(self.labels)
        taken = [
            self.task(_take, block, self.numbering.dtype, own, some - start, phase="sample", chunk=i)
            for i, (block, own, some, start) in enumerate(
                zip(blocks, self.tables, of_chunks, self.starts[:-1], strict=True)
            )
            if len(some)
        ]
        codes = np.asfortranarray(np.concatenate(self.compute(taken, "sample")))
        groups = core_groups(Ensemble.of_codes(codes, self.numbering.categories, self.names))
        return SampledChunks(
            groups.ensemble, groups.weights, None, label_by=sample.by, chunks=self, estimator=estimator
        )

    def rows(self) -> list:
        """Return the distinct rows of each chunk, in the numbering of all, as tasks."""
        return [
            self.task(_rows, part, self.numbering.dtype, own, phase="rows", chunk=i)
            for i, (part, own) in enumerate(zip(self.parts, self.tables, strict=True))
        ]

    def bare(self) -> Numbering:
        """Return the numbering without label values, which merging does not need."""
        return self.numbering._replace(categories=[np.empty(len(c), dtype=np.int8) for c in self.numbering.categories])

    def without_rows(self) -> Ensemble:
        """Return the ensemble that all have in common: names and numbering."""
        none = np.empty((0, len(self.names)), dtype=self.numbering.dtype, order="F")
        return Ensemble.of_codes(none, self.numbering.categories, self.names)

    def of_chunks(self, function: Callable, *given: Any, dtype: Any, width: tuple = ()) -> Any:
        """Return a lazy array of what ``function(block, dtype, tables, *given)`` gives for each object of a chunk.

        What is given to all is a `_value`, for whoever computes the array may not be the client that fitted.
        """
        found = [
            self.task(function, block, self.numbering.dtype, own, *given, phase="look up", chunk=i)
            for i, (block, own) in enumerate(zip(_blocks(self.labels), self.tables, strict=True))
        ]
        return _array(found, np.diff(self.starts), dtype, width)

    def look_up(self, values: np.ndarray) -> Any:
        """Return ``values`` (groups, …) of the core group of each object, in chunks."""
        given = _value(self.groups.ensemble.codes), _value(values)
        return self.of_chunks(_look_up, *given, dtype=values.dtype, width=values.shape[1:])

    # --- tasks ---

    def task(self, function: Callable, *args: Any, phase: str, chunk: int | None = None) -> Any:
        """Return a delayed call that says which chunk it was about when it is refused."""
        import dask

        where = None
        if chunk is not None:
            where = chunk, self.starts[chunk], self.starts[chunk + 1]
        name = f"{phase.replace(' ', '-')}{'' if chunk is None else f'-chunk-{chunk}'}"
        return dask.delayed(_named, pure=False, name=None)(function, where, *args, dask_key_name=_key(name))

    def tree(self, parts: list, join: Callable, phase: str, *given: Any) -> Any:
        """Return what ``join(list, *given)`` makes of all parts, few at a time, in their order."""
        while len(parts) > 1:
            parts = [self.task(join, parts[i : i + FAN_IN], *given, phase=phase) for i in range(0, len(parts), FAN_IN)]
        return parts[0]

    def everywhere(self, value: Any) -> Any:
        """Return a value as tasks of this client can take it: sent to every worker if it is not small."""
        if self.client is None or len(pickle.dumps(value, protocol=5)) <= SMALL:
            return _value(value)
        return _sent(value, self.client, "what all workers need")

    def persist(self, tasks: list, what: str) -> list:
        """Return tasks whose results stay where they were worked out, all of them done.

        Workers put on disk what they cannot hold. Threads have nowhere to: beyond half of the memory that may be used,
        the tasks come back as they were, to be done again whenever they are needed.
        """
        with _sentences(what):
            if self.client is None:
                return self._held(tasks)
            tasks = self.client.persist(tasks)
            from distributed import futures_of

            _wait(futures_of(tasks, client=self.client), self.client, what)
            return tasks

    def _held(self, tasks: list) -> list:
        import dask
        from dask.sizeof import sizeof

        held: list = []
        room = devices.memory_budget() // 2
        at_once = 2 * devices.n_threads()
        for start in range(0, len(tasks), at_once):
            some = tasks[start : start + at_once]
            results = dask.compute(*some, scheduler="threads")
            room -= sum(map(sizeof, results))
            if room < 0:
                return tasks
            held += [
                dask.delayed(result, traverse=False, name=task.key) for result, task in zip(results, some, strict=True)
            ]
        return held

    def compute(self, tasks: list, what: str) -> list:
        """Return the results of tasks, here."""
        return results(tasks, self.client, what)


def _runs(sizes: list[int], room: int) -> list[slice]:
    """Return runs of neighbours, as long as they go: `FAN_IN` at most, and no more rows than there is room for."""
    starts = [0]
    for i in range(1, len(sizes)):
        if i - starts[-1] == FAN_IN or sum(sizes[starts[-1] : i + 1]) > room:
            starts.append(i)
    return [slice(start, stop) for start, stop in pairwise([*starts, len(sizes)])]


class ChunkPieces:
    """The distinct rows of each chunk, as `gpuens.scattered.Pieces`, worked on wherever they are."""

    def __init__(self, chunks: Chunks, device: str) -> None:
        self.chunks, self.device = chunks, device
        self.numbering = chunks.without_rows()
        self.n_rows = sum(chunks.sizes)
        self._bare = chunks.bare()
        objects = [chunks.task(_n_objects, piece, phase="size") for piece in chunks.pieces]
        self.n_objects = chunks.compute(objects, "objects of pieces")

    def each(self, function: Callable, *given: Any, own: Sequence | None = None) -> list:
        return self.chunks.compute(self._tasks(function, given, own), _phase(function))

    def sum(self, function: Callable, *given: Any) -> Any:
        parts = self._tasks(function, given, None)
        return self.chunks.compute([self.chunks.tree(parts, _add, "sum")], _phase(function))[0]

    def _tasks(self, function: Callable, given: tuple, own: Sequence | None) -> list:
        given = tuple(self.chunks.everywhere(value) for value in given)
        of_pieces = [()] * len(self.chunks.pieces) if own is None else [(value,) for value in own]
        return [
            self.chunks.task(_of_piece, function, self.device, piece, self._bare, *mine, *given, phase="sums")
            for piece, mine in zip(self.chunks.pieces, of_pieces, strict=True)
        ]


def _phase(function: Callable) -> str:
    return function.__name__.strip("_").replace("_", " ")


class ChunkedReduction(Reduction):
    """A reduction whose objects are in chunks; ``of_groups`` (groups,) is the row that each core group belongs to."""

    chunks: Chunks
    of_groups: np.ndarray | None

    def __init__(self, rows: Reduction, chunks: Chunks, of_groups: np.ndarray | None = None) -> None:
        state = {"ensemble": rows.ensemble, "weights": rows.weights, "others": rows.others, "label_by": rows.label_by}
        self.__dict__.update(state, chunks=chunks, of_groups=of_groups)

    @property
    def membership(self) -> Any:  # a field of the reductions that hold it
        return self.look_up(np.arange(self.n_rows))

    def look_up(self, values: Any) -> Any:
        values = devices.to_host(values)
        return self.chunks.look_up(values if self.of_groups is None else values[self.of_groups])


@dataclass(frozen=True)
class ScatteredReduction(Reduction):
    """Core groups that stay in pieces: ``ensemble`` has no rows but their numbering, ``weights`` is empty."""

    chunks: Any = None

    @property
    def n_representatives(self) -> int:
        """Rows of all pieces, of which those that are in several count again."""
        return sum(self.chunks.sizes)

    def expand(self, labels: Any) -> Any:
        raise validation.rows_elsewhere()

    def look_up(self, values: Any) -> Any:
        raise validation.rows_elsewhere()

    def of_rows(self, function: Callable[[Ensemble], np.ndarray]) -> Any:
        like = function(self.ensemble)
        given = _value(function), _value(self.chunks.bare())
        return self.chunks.of_chunks(_of_own_rows, *given, dtype=like.dtype, width=like.shape[1:])


@dataclass(frozen=True)
class _Ruled:
    """A rule, where the estimator is told to work."""

    rule: Rule
    device: str

    def __call__(self, rows: Ensemble) -> np.ndarray:
        return self.rule(rows, device=devices.resolve(self.device, rows.device_kind))


@dataclass(frozen=True)
class SampledChunks(Reduction):
    """A sample of objects in chunks: rows that are not in it are labelled chunk by chunk, when labels are computed."""

    chunks: Any = None
    estimator: Any = None

    @property
    def covers_all(self) -> bool:
        return int(self.weights.sum()) == self.chunks.starts[-1]

    def expand(self, labels: Any) -> Any:
        labels = devices.to_host(labels)
        validation.one_per_row(labels, self.n_rows, "labels")
        estimator = copy.copy(self.estimator)  # as it is now, without what holds on to chunks, of earlier fits too
        for name in ("reduction_", "labels_"):
            estimator.__dict__.pop(name, None)
        device = devices.resolve(estimator.device, self.ensemble.device_kind)
        others = partial(_label_others, estimator, self.bare(), labels, device)
        return self._of_rows(labels, others)

    def of_rows(self, function: Callable[[Ensemble], np.ndarray]) -> Any:
        return self._of_rows(function(self.ensemble), function)

    def bare(self) -> Reduction:
        """Return the sample as tasks can take it."""
        rows, numbering = self.ensemble, self.chunks.bare()
        ensemble = Ensemble.of_codes(rows.codes, numbering.categories, numbering.names)
        return Reduction(ensemble, self.weights, None, label_by=self.label_by)

    def _of_rows(self, values: np.ndarray, others: Callable[[Ensemble], np.ndarray]) -> Any:
        given = _value(_Sampled(self.bare(), values, others))
        return self.chunks.of_chunks(_of_sampled, given, dtype=values.dtype, width=values.shape[1:])


class _Sampled(NamedTuple):
    """What is known of a sample's rows, and a function that gives the same for other rows."""

    reduced: Reduction
    values: np.ndarray
    others: Callable[[Ensemble], np.ndarray]


# --- what the workers do ----------------------------------------------------------------------------------------------


def _named(function: Callable, where: tuple[int, int, int] | None, *args: Any) -> Any:
    """Call a function; where it refuses a chunk, say which one."""
    try:
        return function(*args)
    except (ValueError, TypeError, ImportError) as error:
        if where is None:
            raise
        chunk, start, stop = where
        raise type(error)(f"chunk {chunk} (objects {start} … {stop - 1}): {str(error).rstrip('.')}.") from None


def _encoded(block: Any) -> Ensemble:
    """Return a chunk as an ensemble with a numbering of its own."""
    validation.dense(block)
    kind, matrix = devices.kind_of(block), devices.native(block)
    names = list(range(matrix.shape[1]))
    codes, categories = _encode([matrix[:, m] for m in names], names)
    return Ensemble.of_codes(codes, categories, names, kind)


def _own_groups(block: Any) -> Reduction:
    ensemble = _encoded(block)
    return core_groups(ensemble, device=ensemble.device_kind)


def _part(block: Any, start: int) -> Part:
    ensemble = _encoded(block)
    validation.objects_are_labelled(_missing_everywhere(ensemble.codes_on(ensemble.device_kind)), start)
    groups = core_groups(ensemble, device=ensemble.device_kind)
    return Part(groups.ensemble.codes, groups.weights, ensemble.categories)


def _categories(part: Part) -> list[np.ndarray]:
    return part.categories


def _n_rows(rows: Rows) -> int:
    return len(rows.codes)


def _n_objects(rows: Rows) -> int:
    return int(rows.counts.sum())


def _renumbered(codes: Any, dtype: np.dtype, tables: list[np.ndarray]) -> Any:
    """Return a chunk's codes in the numbering of all chunks."""
    xp = devices.namespace(devices.kind_of(codes))
    found = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, table in enumerate(tables):
        extended = xp.asarray(np.append(table, np.iinfo(dtype).max).astype(dtype))
        found[:, m] = extended[np.minimum(codes[:, m], codes.dtype.type(min(len(table), np.iinfo(codes.dtype).max)))]
    return found


def _rows(part: Part, dtype: np.dtype, tables: list[np.ndarray]) -> Rows:
    return Rows(_renumbered(part.codes, dtype, tables), part.counts)  # in order still: values are numbered by value


def _merge(parts: list[Rows], numbering: Numbering) -> Rows:
    if len(parts) == 1:
        return parts[0]
    codes = np.concatenate([part.codes for part in parts])
    ensemble = Ensemble.of_codes(np.asfortranarray(codes), numbering.categories, numbering.names)
    groups = core_groups(ensemble, np.concatenate([part.counts for part in parts]))
    return Rows(groups.ensemble.codes, groups.weights)


def _distinct(block: Any, dtype: np.dtype, tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of a chunk, numbered as those of all chunks, and the one of each object (host)."""
    own = _own_groups(block)
    return _renumbered(own.ensemble.codes, dtype, tables), devices.to_host(own.membership)


def _places(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the last of other rows, which are in lexicographic order, that does not come after each row; 0 if none."""
    places = np.empty(len(rows), dtype=np.int64)
    rows, others = np.ascontiguousarray(rows), np.ascontiguousarray(others)
    devices.over_ranges(lambda a, b: _search(rows[a:b], others, places[a:b]), len(rows), grain=4096)
    return places


def _take(block: Any, dtype: np.dtype, tables: list[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """Return the rows of some objects of a chunk."""
    ensemble = _encoded(block)
    xp = devices.namespace(ensemble.device_kind)
    codes = ensemble.codes_on(ensemble.device_kind)[xp.asarray(chosen)]
    return devices.to_host(_renumbered(codes, dtype, tables))


def _of_sampled(block: Any, dtype: np.dtype, tables: list[np.ndarray], sampled: _Sampled) -> Any:
    """Return what is known of each object's row if it is in a sample, and what a function makes of it elsewhere."""
    rows, membership = _distinct(block, dtype, tables)
    known = sampled.reduced.ensemble
    places = _places(rows, known.codes)
    found = sampled.values[places]
    other = np.flatnonzero((known.codes[places] != rows).any(axis=1))
    if len(other):
        found[other] = sampled.others(Ensemble.of_codes(rows[other].copy(order="F"), known.categories, known.names))
    return devices.move(found[membership], devices.kind_of(block))


def _of_own_rows(
    block: Any, dtype: np.dtype, tables: list[np.ndarray], function: Callable[[Ensemble], np.ndarray], own: Numbering
) -> Any:
    """Return what a function makes of each object's row."""
    rows, membership = _distinct(block, dtype, tables)
    ensemble = Ensemble.of_codes(np.asfortranarray(rows), own.categories, own.names)
    return devices.move(function(ensemble)[membership], devices.kind_of(block))


def _of_piece(function: Callable, device: str, piece: Rows, numbering: Numbering, *given: Any) -> Any:
    ensemble = Ensemble.of_codes(np.asfortranarray(piece.codes), numbering.categories, numbering.names)
    return function(ensemble, piece.counts, *given, device=devices.resolve(device, "cpu"))


def _label_others(estimator: Any, reduced: Reduction, labels: np.ndarray, device: str, others: Ensemble) -> np.ndarray:
    return estimator._label_others(replace(reduced, others=others), labels, device)


def _look_up(block: Any, dtype: np.dtype, tables: list[np.ndarray], groups: np.ndarray, values: np.ndarray) -> Any:
    """Return what belongs to the core group of each object of a chunk."""
    rows, membership = _distinct(block, dtype, tables)
    return devices.move(values[_places(rows, groups)][membership], devices.kind_of(block))


def _intersections(rows: Rows, numbering: Numbering, layout: str) -> Any:
    ensemble = Ensemble.of_codes(rows.codes, numbering.categories, numbering.names)
    return contingency.intersections(ensemble, rows.counts, layout=layout)


def _add(parts: list) -> Any:
    return sum(parts[1:], start=parts[0])


@njit(cache=True, nogil=True)
def _search(rows, groups, places):
    """Write down the last of the groups, in lexicographic order, that does not come after each row; 0 if none."""
    for i in range(len(rows)):
        low, high = 0, len(groups)
        while high - low > 1:
            middle = (low + high) // 2
            m = 0
            while m < rows.shape[1] and rows[i, m] == groups[middle, m]:
                m += 1
            if m == rows.shape[1] or rows[i, m] > groups[middle, m]:
                low = middle
            else:
                high = middle
        places[i] = low


# --- Dask -------------------------------------------------------------------------------------------------------------


def _active(client: Any) -> Any:
    """Return the client given, or the one that is active, or None."""
    if client is not None:
        return validation.client_of_dask(client)
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _by_rows(labels: Any, client: Any) -> tuple[Any, list]:
    """Return a Dask array (N, M) with known chunks of rows, each with all clusterings, and the clusterings' names."""
    names = None
    if hasattr(labels, "to_dask_array"):  # a Dask DataFrame
        names, labels = list(labels.columns), labels.to_dask_array(lengths=True)
    validation.in_chunks(labels)
    validation.label_matrix_shape(labels.shape, columns_are_clusterings=True)
    labels = as_declared(labels, "labels", client)
    validation.label_matrix_shape(labels.shape, columns_are_clusterings=names is not None)
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
    shapes = [dask.delayed(np.shape, pure=False)(block) for block in _blocks(array)]
    grid = np.reshape(results(shapes, client, name), (*array.numblocks, array.ndim))
    chunks = [grid[..., axis].max(axis=tuple(other for other in axes if other != axis)).tolist() for axis in axes]
    return da.Array(array.dask, array.name, tuple(map(tuple, chunks)), meta=array._meta)


def _blocks(array: Any) -> list:
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
        make(_Lineage(cull(graph, key)[0], key), dask_key_name=_key("chunk")) for key in flatten(array.__dask_keys__())
    ]


def _apart(array: Any, client: Any = None) -> list:
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


def _array(delayed: list, sizes: Any, dtype: Any, width: tuple = ()) -> Any:
    """Return delayed chunks of rows as one lazy array."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name, zeros = _key("array"), (0,) * len(width)
    graph: dict[Any, Any] = {(name, i, *zeros): (_same, chunk.key) for i, chunk in enumerate(delayed)}
    layers = HighLevelGraph.from_collections(name, graph, dependencies=delayed)
    return da.Array(layers, name, (tuple(int(n) for n in sizes), *((n,) for n in width)), dtype=dtype)


def _same(chunk: Any) -> Any:
    return chunk


_VALUE = "gpuens-value-"


def _value(value: Any) -> Any:
    """Return a value as tasks can take it, wherever they are computed: their graph holds it."""
    import dask

    return dask.delayed(value, traverse=False, name=_key("value"))


def _key(name: str) -> str:
    return f"gpuens-{name}-{uuid.uuid4().hex}"


# --- waiting ----------------------------------------------------------------------------------------------------------


def results(tasks: list, client: Any, what: str) -> list:
    """Return the results of tasks or arrays, here."""
    import dask

    client = _active(client)
    with _sentences(what):
        if client is None:
            return list(dask.compute(*tasks, scheduler="threads"))
        futures = client.compute(tasks)
        _wait(futures, client, what)
        return client.gather(futures)


def _result(future: Any, client: Any, what: str) -> Any:
    for done in _as_done([future], client, what):
        return done.result()


def _wait(futures: list, client: Any, what: str) -> None:
    """Wait for all futures, or raise the first error."""
    with progress.bar(len(futures), what) as bar:
        for future in _as_done(futures, client, what):
            if future.status == "error":
                error = future.exception()
                client.cancel(futures)
                raise error
            bar.update(1)


def _as_done(futures: list, client: Any, what: str) -> Iterator[Any]:
    """Yield futures as they are done; refuse to wait for workers that have stopped because their memory is full."""
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
        idle = _idle(client)
        looks = 0 if idle is None else looks + 1
        if looks == 5 and idle:
            client.cancel(futures)
            raise _paused(idle, what)
        if looks == 5:
            warnings.warn(f"the Dask scheduler has no workers, so that the {what} wait for one.", stacklevel=2)


def _idle(client: Any) -> list[dict] | None:
    """Return the workers that are paused, where no worker does anything, nor could; None where one does or could."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    paused = [address for address, worker in workers.items() if worker["status"] == "paused"]
    if len(paused) < len(workers) and (not paused or any(client.processing(set(workers) - set(paused)).values())):
        return None
    if any(worker["metrics"]["task_counts"].get("executing") for worker in workers.values()):
        return None
    return [workers[address] for address in paused]


def _paused(workers: list[dict], what: str) -> MemoryError:
    """Return what is raised where nothing goes on."""
    fullest = max(workers, key=lambda worker: worker["metrics"]["memory"])
    used, limit = (validation.human_bytes(n) for n in (fullest["metrics"]["memory"], fullest["memory_limit"]))
    return MemoryError(
        f"the workers have stopped before the {what} were done, for their memory is full ({len(workers)} paused, at "
        f"{used} of {limit}); give each more memory (memory_limit) or fewer threads, or use smaller chunks "
        "(labels.rechunk)."
    )


def _sent(value: Any, client: Any, what: str) -> Any:
    """Return a value that is in the memory of every worker."""
    with _sentences(what):
        try:
            return client.scatter([value], broadcast=True, hash=False)[0]
        except TimeoutError:
            idle = _idle(client)
            raise (
                _paused(idle, what)
                if idle
                else ConnectionError(
                    f"no worker of the Dask cluster takes what is needed for the {what}; see whether they are alive."
                )
            ) from None


@contextmanager
def _sentences(what: str) -> Iterator[None]:
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
