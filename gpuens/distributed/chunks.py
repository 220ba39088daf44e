"""A label matrix in chunks: the numbering of clusters that all chunks share, and the merged core groups."""

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.distributed import clients, failures, graph, worker
from gpuens.distributed.reductions import ChunkedReduction, SampledChunks
from gpuens.distributed.tasks import FAN_IN, Tasks
from gpuens.distributed.worker import Numbering
from gpuens.labels.codes import codes_dtype
from gpuens.labels.encoding import encode_column
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.odd_labels import warn_of_odd_labels
from gpuens.labels.rows import Rows
from gpuens.reduction import Reduction, Sample, check_reduced, core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices

if TYPE_CHECKING:
    import dask.array as da


class Chunks(Tasks):
    """A label matrix in chunks, with its core groups; the core groups are computed when they are first accessed."""

    def __init__(
        self, labels: Any, client: Any = None, *, every_column: bool = False, sample_weight: Any = None
    ) -> None:
        self.client, self.weighted = clients.active(client), sample_weight is not None
        with failures.explained("labels"):
            self.labels, self.names = graph.by_rows(labels, self.client, every_column=every_column)
        self.starts = np.cumsum([0, *self.labels.chunks[0]]).tolist()
        columns = [graph.chunks_of(self.labels)]
        if sample_weight is not None:
            with failures.explained("sample_weight"):
                columns.append(graph.weights_by_rows(sample_weight, self.labels.chunks[0], self.client))
        self.parts = self.persist(
            [
                self.task(worker.reduce_chunk, block, start, *weights, phase="core groups", chunk=i)
                for i, (start, block, *weights) in enumerate(zip(self.starts[:-1], *columns, strict=True))
            ],
            "core groups of chunks",
        )
        self.numbering, self.tables = self._number_clusters()
        self.pieces: list[Any] = []  # tasks with the distinct rows of each chunk
        self.places: list[list[str]] = [[]] * len(self.parts)  # workers with a GPU that have made these rows
        self.sizes: list[int] = []  # number of distinct rows of each chunk
        self.merged: list[Any] = []  # tasks with the merged rows
        self.merged_sizes: list[int] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client and the results on workers, which are not needed to look up labels."""
        return self.__dict__ | {"client": None, "parts": [], "pieces": [], "merged": []}

    def _number_clusters(self) -> tuple[Numbering, Any]:
        """Number the clusters of all chunks together, in ascending order of label values, as an `Ensemble` does."""
        described = self.compute([self.task(worker.described, part, phase="labels") for part in self.parts], "labels")
        label_values, kinds, rooms, totals, units = zip(*described, strict=True)
        self.unit = math.gcd(*units)  # weight of a count of 1
        total = sum(chunk_values * (unit // self.unit) for chunk_values, unit in zip(totals, units, strict=True))
        checks.check_total(total, len(self.names), self.unit)
        if len(set(kinds)) > 1:
            raise TypeError(
                f"labels: chunk {kinds.index('cuda')} is in GPU memory and chunk {kinds.index('cpu')} is in host "
                "memory; move them all to one device first."
            )
        self.kind: str = kinds[0]
        self.room: float = min(rooms)  # bytes that a worker's GPU has left; infinite without GPUs
        categories, tables = [], []
        for m, name in enumerate(self.names):
            values_of_chunks = [chunk_values[m] for chunk_values in label_values]
            same_kind = (
                len({chunk_values.dtype.kind in "iub" for chunk_values in values_of_chunks if len(chunk_values)}) <= 1
            )
            joined = np.concatenate(
                [chunk_values if same_kind else chunk_values.astype(object) for chunk_values in values_of_chunks]
            )
            codes, values = encode_column(joined, name)
            categories.append(values)
            tables.append(np.split(codes, np.cumsum([len(chunk_values) for chunk_values in values_of_chunks])[:-1]))
        checks.check_clusterings([len(c) for c in categories], self.names, self.starts[-1])
        dtype = np.dtype(codes_dtype(max(len(c) for c in categories)))
        per_chunk = [[table[i] for table in tables] for i in range(len(label_values))]
        self._refuse_unlabelled(dtype, per_chunk)
        warn_of_odd_labels(categories, self.names)
        return Numbering(categories, self.names, dtype), per_chunk

    def _refuse_unlabelled(self, dtype: np.dtype, tables: list[list[np.ndarray]]) -> None:
        """Raise an error if some objects have no label in the numbering that all chunks share."""
        tasks = [
            self.task(worker.count_unlabelled, part, dtype, chunk_tables, phase="labels", chunk=i)
            for i, (part, chunk_tables) in enumerate(zip(self.parts, tables, strict=True))
            if worker.lose_labels(chunk_tables)
        ]
        if tasks and (n := sum(self.compute(tasks, "labels"))):
            raise ValueError(f"labels: {n} object(s) have no label in any clustering; leave these objects out.")

    def there(self, device: str) -> str:
        """Return the device of the workers; "auto" means the device of the chunks."""
        return self.kind if device == "auto" else device

    def here(self, device: str) -> str:
        """Return the device of this process; "auto" means the workers' device, if this process has such a device."""
        if device == "auto" and self.kind == "cuda":
            with suppress(ValueError):
                return devices.resolve("cuda")
        return devices.resolve(device)

    @property
    def fit_here(self) -> bool:
        """Whether the core groups of all chunks fit into the memory of this process."""
        self._merge()
        return self._fits

    @property
    def fit_gpu(self) -> bool:
        """Whether the work on the core groups of all chunks fits a GPU that has chunks; true without GPUs."""
        self._merge()
        return 3 * sum(self.merged_sizes) * self._row_bytes <= self.room

    @property
    def groups(self) -> Reduction:
        """The core groups of all chunks, in this process; the core group of each object is looked up in its chunk."""
        if not hasattr(self, "_groups"):
            if not self.fit_here:
                n_rows = sum(self.merged_sizes)
                raise MemoryError(
                    f"the core groups of all chunks, up to {n_rows}, need "
                    f"{checks.human_bytes(n_rows * self._row_bytes)} and do not fit one process; work on a sample, "
                    "reduction=Sample(…), or on fewer clusterings (GPUENS_MEMORY=… sets another limit)."
                )
            rows = worker.merge(self.compute(self.merged, "core groups"), self.bare(), self.here("auto"))
            self.merged = self.pieces = []  # frees the memory of the workers
            ensemble = Ensemble.of_codes(np.asfortranarray(rows.codes), self.numbering.categories, self.names)
            self._groups = ChunkedReduction(Reduction(Rows.of(ensemble, rows.counts, "cpu"), None), self)
        return self._groups

    @property
    def _row_bytes(self) -> int:
        return len(self.names) * int(self.numbering.dtype.itemsize) + 40

    def _merge(self) -> None:
        """Merge the distinct rows of all chunks, a few chunks at a time.

        Merging ends if one set of rows is left, or if a further merge would not fit the memory. The rows of each chunk
        are kept as pieces. If the merged rows do not fit this process, methods use these pieces, so that results do not
        depend on how many chunks were merged.
        """
        if self.merged_sizes:
            return
        self.merged = self.pieces = self.persist(self.rows(), "core groups")
        if self.kind == "cuda":  # later, a worker that merges pieces holds copies of all of them
            self.places = graph.places_of(self.pieces, self.client)
        self.parts = []  # frees the memory of the workers; Dask computes a lost result again from the labels
        self.merged_sizes = self.sizes = self._count_rows(self.merged)
        while True:
            together = _divide_pieces(self.merged_sizes, self._worker_budget() // (3 * self._row_bytes))
            if len(together) == len(self.merged):
                copies = 1 if len(together) == 1 else 3  # number of copies of the rows in memory during a merge
                self._fits = copies * sum(self.merged_sizes) * self._row_bytes <= devices.memory_budget()
                return
            bare, device = self.bare(), self.there("auto")
            tasks = [
                self.task(worker.merge, self.merged[piece_range], bare, device, phase="merge")
                for piece_range in together
            ]
            self.merged = self.persist(tasks, "core groups")
            self.merged_sizes = self._count_rows(self.merged)

    def _count_rows(self, pieces: list[Any]) -> list[int]:
        return self.compute([self.task(worker.count_rows, piece, phase="size") for piece in pieces], "core groups")

    def _worker_budget(self) -> int:
        """Return the number of bytes that a task may use."""
        budget = int(min(devices.memory_budget(), self.room))
        if self.client is None:
            return budget // 8  # the threads that merge share the budget
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits: list[int] = [
            worker_info["memory_limit"] // (2 * worker_info["nthreads"])
            for worker_info in workers
            if worker_info["memory_limit"]
        ]
        return min([budget, *limits])

    def reduce(self, reduction: Any, device: str) -> Reduction:
        """Apply a reduction to the core groups, and return the result, whose objects stay in chunks.

        If ``reduction`` is None, the result has the core groups themselves.
        """
        groups = self.groups
        rows = Rows.of(groups.ensemble, groups.counts, device)
        if reduction is None:
            return ChunkedReduction(Reduction(rows, None), self)
        reduced = check_reduced(reduction.reduce(rows), reduction)
        return ChunkedReduction(reduced, self, devices.to_host(reduced.row_of))

    def sample(self, sample: Sample, device: str) -> SampledChunks:
        """Draw objects from all chunks, and return their distinct rows; all other objects stay in their chunks."""
        self.parts = []  # no longer needed, because the clusters are already numbered
        objects = np.sort(sample.draw(self.starts[-1]))
        blocks, objects_of_chunks = graph.chunks_of(self.labels), graph.rows_of_chunks(objects, self.starts)
        tasks = [
            self.task(
                worker.take_rows, block, self.numbering.dtype, chunk_tables, chunk_objects, phase="sample", chunk=i
            )
            for i, (block, chunk_tables, chunk_objects) in enumerate(
                zip(blocks, self.tables, objects_of_chunks, strict=True)
            )
            if len(chunk_objects)
        ]
        codes = np.asfortranarray(np.concatenate(self.compute(tasks, "sample")))
        groups = core_groups(Rows(Ensemble.of_codes(codes, self.numbering.categories, self.names)))
        return SampledChunks(groups.rows, None, label_by=sample.by, chunks=self, device=device)

    def rows(self) -> list[Any]:
        """Return tasks that compute the distinct rows of each chunk, in the numbering that all chunks share."""
        return [
            self.task(worker.renumber, part, self.numbering.dtype, chunk_tables, self.unit, phase="rows", chunk=i)
            for i, (part, chunk_tables) in enumerate(zip(self.parts, self.tables, strict=True))
        ]

    def bare(self) -> Numbering:
        """Return the numbering without label values, which tasks that merge rows do not need."""
        return self.numbering._replace(categories=[np.empty(len(c), dtype=np.int8) for c in self.numbering.categories])

    def without_rows(self) -> Ensemble:
        """Return an ensemble without objects that has the names of the clusterings and the shared numbering."""
        codes = np.empty((0, len(self.names)), dtype=self.numbering.dtype, order="F")
        return Ensemble.of_codes(codes, self.numbering.categories, self.names)

    def map_objects(
        self, function: Callable[..., Any], *args: Any, dtype: Any, width: tuple[Any, ...] = ()
    ) -> "da.Array":
        """Return a lazy array of ``function(block, dtype, tables, *args)``, with one value for each object.

        Arguments that all chunks share must be embedded (`graph.embed`), because another client may compute the array.
        """
        blocks = graph.chunks_of(self.labels)
        places = graph.places_of(blocks, self.client)
        tasks = [
            self.task(
                function, block, self.numbering.dtype, chunk_tables, *args, phase="look up", chunk=i, workers=workers
            )
            for i, (block, chunk_tables, workers) in enumerate(zip(blocks, self.tables, places, strict=True))
        ]
        return graph.lazy_array(tasks, np.diff(self.starts), dtype, width, placed=any(places))

    def tally(self, labels: "da.Array", n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of objects and the first object of each cluster, (k,) int64, of labels in chunks."""
        tasks = [
            self.task(worker.tally, block, start, n_clusters, phase="sizes", chunk=i)
            for i, (start, block) in enumerate(zip(self.starts[:-1], graph.chunks_of(labels), strict=True))
        ]
        sizes, first = zip(*self.compute(tasks, "sizes of clusters"), strict=True)
        return np.sum(sizes, axis=0), np.min(first, axis=0)

    def look_up(self, values: np.ndarray) -> "da.Array":
        """Return an array in chunks that has the row of ``values`` (groups, …) of each object's core group."""
        args = graph.embed(self.groups.ensemble.codes), graph.embed(values)
        return self.map_objects(worker.look_up, *args, dtype=values.dtype, width=values.shape[1:])


def _divide_pieces(sizes: list[int], room: int) -> list[slice]:
    """Divide adjacent pieces into slices with at most `FAN_IN` pieces and at most ``room`` rows each."""
    starts = [0]
    for i in range(1, len(sizes)):
        if i - starts[-1] == FAN_IN or sum(sizes[starts[-1] : i + 1]) > room:
            starts.append(i)
    return [slice(start, stop) for start, stop in pairwise([*starts, len(sizes)])]
