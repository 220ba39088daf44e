"""An estimate of the memory that a fit to labels in chunks needs, made before the fit."""

import math
from typing import Any, NamedTuple

import numpy as np

from gpuens.distributed import clients, graph, waiting, worker
from gpuens.reduction.core_groups import words_of
from gpuens.runtime import checks
from gpuens.runtime import device as devices

HEAD_OF_CHUNK = 100_000  # objects from whose labels the number of bytes of a packed row is estimated


class Plan(NamedTuple):
    """An estimate of the number of core groups and of the memory of a fit, made from one chunk.

    ``str(plan)`` says the estimate in a sentence.
    """

    n_objects: int
    n_clusterings: int
    n_chunks: int
    pilot_objects: int
    pilot_groups: int
    expected_groups: int
    expected_bytes: int  # bytes of the core groups and of the method, in this process
    suggestion: str | None  # a reduction that fits, or None if all core groups fit
    in_pieces: bool = False  # whether the rows stay on the workers because they do not fit this process
    bytes_on_gpu: int = 0  # bytes of GPU memory that the largest chunk needs; 0 if chunks are in host memory
    chunk_rows: int | None = None  # number of objects of a chunk that fits the GPU, or None if all chunks fit

    def __str__(self) -> str:
        size = checks.human_bytes(self.expected_bytes)
        return (
            f"{self.n_objects:,} objects in {self.n_chunks} chunks; {self.pilot_groups:,} distinct label rows in "
            f"{self.pilot_objects:,} of them, so about {self.expected_groups:,} in all: {size}"
            + (f"; --reduce {self.suggestion} would fit" if self.suggestion else "")
            + ("; they stay in pieces" if self.in_pieces else "")
            + (f"; a chunk needs {checks.human_bytes(self.bytes_on_gpu)} of a GPU" if self.bytes_on_gpu else "")
            + (f" and does not fit; --chunk-rows {self.chunk_rows} would" if self.chunk_rows else "")
        )


def plan(labels: Any, estimator: Any = None, *, client: Any = None, every_column: bool = False) -> Plan:
    """Return an estimate of the memory that a fit needs.

    The number of distinct rows is assumed to grow as a power of the number of objects, estimated from one chunk and its
    first half. Chunks in GPU memory are also compared with the memory of a GPU; if the chunk does not fit, only so many
    of its first objects are counted. Without a reduction, the estimate includes memory for all ordered pairs of rows:
    28 bytes per pair for METIS, 4 bytes for ROCK, and 8 bytes for complete linkage. The parameters are those of `fit`.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpuens as ge
    >>> from gpuens import distributed
    >>> labels = da.zeros((1000, 3), dtype=int, chunks=(100, 3))
    >>> print(distributed.plan(labels))
    1,000 objects in 10 chunks; 1 distinct label rows in 100 of them, so about 1 in all: 64 bytes
    """
    client = clients.active(client)
    labels, _ = graph.by_rows(labels, client, every_column=every_column)
    n_objects, n_clusterings = labels.shape
    sizes = labels.chunks[0]
    largest = int(np.argmax(sizes))
    import dask

    pilot = dask.delayed(_count_pilot, pure=False)(graph.chunks_of(labels)[largest])
    (pilot_counts,) = waiting.results([pilot], client, "labels")
    power = min(1.0, max(0.0, np.log2(max(pilot_counts.n_groups, 1) / max(pilot_counts.n_groups_of_half, 1))))
    expected = min(n_objects, int(np.ceil(pilot_counts.n_groups * (n_objects / pilot_counts.n_objects) ** power)))
    needed = expected * (4 * n_clusterings + 52)
    in_pieces = False
    each_pair, suggestion, budget = 0, None, devices.memory_budget()
    parts = None if estimator is None else estimator.checked_parts()
    if parts is None or parts.reduction is None:
        each_pair = 0 if parts is None else parts.partitioner.bytes_each_pair
        needed += each_pair * expected**2
        in_pieces = needed > budget and parts is not None and parts.learns_by_sums
        if needed > budget and not in_pieces:
            fits = math.isqrt(budget // (2 * each_pair)) if each_pair else budget // (8 * n_clusterings + 104)
            suggestion = f"sample:{max(1, min(10_000, fits))}"
    at_once = sizes[largest] if pilot_counts.room is None else pilot_counts.room // pilot_counts.bytes_beside_labels
    return Plan(
        n_objects,
        n_clusterings,
        len(sizes),
        pilot_counts.n_objects,
        pilot_counts.n_groups,
        expected,
        needed,
        suggestion,
        in_pieces,
        0 if pilot_counts.room is None else pilot_counts.bytes_of_object * sizes[largest],
        at_once if at_once < sizes[largest] else None,
    )


def bytes_on_gpu(n_objects: int, n_clusterings: int, n_words: int, label_bytes: int, code_bytes: int) -> int:
    """Return the most bytes of GPU memory while a chunk of labels is reduced to its core groups.

    Labels and codes are there all the time. Kernels read copies of labels of 2 bytes. The largest of these steps also
    needs: the sort (packed rows twice, their order and a buffer), the numbering of groups (packed rows, five columns of
    8 bytes and a mask), or the codes of the groups (packed rows, two columns and two copies, if all rows differ).
    """
    labels, codes, words = n_clusterings * label_bytes, n_clusterings * code_bytes, 8 * n_words
    copied = 4 * n_clusterings if label_bytes == 2 else 0
    return n_objects * (labels + codes + max(copied, 2 * words + 16, words + 41, words + 16 + 2 * codes))


class Pilot(NamedTuple):
    """The numbers of distinct rows among objects of a chunk, and the GPU memory for the objects of this chunk."""

    n_objects: int
    n_groups: int
    n_groups_of_half: int  # distinct rows of the first half of these objects
    bytes_of_object: int = 0
    bytes_beside_labels: int = 0  # without its labels, which are in GPU memory already
    room: int | None = None  # bytes of GPU memory that are left, or None if the chunk is in host memory


def _count_pilot(chunk: Any) -> Pilot:
    """Return the numbers of distinct rows in a chunk and in its first half.

    If the work on a chunk does not fit the GPU, only so many of its first objects are counted.
    """
    block = devices.within_memory(lambda: graph.computed(chunk), "a chunk", "work on smaller chunks")
    if devices.kind_of(block) != "cuda":
        return Pilot(len(block), *_count_groups(block))
    room = devices.memory_budget("cuda")
    ensemble = worker.encoded(block[:HEAD_OF_CHUNK])
    n_words = int(words_of(np.diff(ensemble.offsets) + 1)[-1]) + 1
    of_labels = block.shape[1] * block.dtype.itemsize
    object_bytes = bytes_on_gpu(1, block.shape[1], n_words, block.dtype.itemsize, ensemble.codes_on("cuda").itemsize)
    del ensemble
    objects = block[: max(1, room // (object_bytes - of_labels))]
    return Pilot(len(objects), *_count_groups(objects), object_bytes, object_bytes - of_labels, room)


def _count_groups(block: Any) -> tuple[int, int]:
    half = block[: max(1, len(block) // 2)]
    return len(worker.own_groups(block).counts), len(worker.own_groups(half).counts)
