"""An estimate of the memory that a fit to labels in chunks needs, made before the fit."""

import math
from typing import Any, NamedTuple

import numpy as np

from gpuens.distributed import clients, graph, waiting, worker
from gpuens.runtime import checks
from gpuens.runtime import device as devices


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

    def __str__(self) -> str:
        size = checks.human_bytes(self.expected_bytes)
        return (
            f"{self.n_objects:,} objects in {self.n_chunks} chunks; {self.pilot_groups:,} distinct label rows in "
            f"{self.pilot_objects:,} of them, so about {self.expected_groups:,} in all: {size}"
            + (f"; --reduce {self.suggestion} would fit" if self.suggestion else "")
            + ("; they stay in pieces" if self.in_pieces else "")
        )


def plan(labels: Any, estimator: Any = None, *, client: Any = None, every_column: bool = False) -> Plan:
    """Return an estimate of the memory that a fit needs.

    The number of distinct rows is assumed to grow as a power of the number of objects, estimated from one chunk and its
    first half. Without a reduction, the estimate includes memory for all ordered pairs of rows: 28 bytes per pair for
    METIS, 4 bytes for ROCK, and 8 bytes for complete linkage. The parameters are those of `fit`.

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

    pilot = dask.delayed(_growth, pure=False)(graph.chunks_of(labels)[largest])
    ((groups, of_half),) = waiting.results([pilot], client, "labels")
    power = min(1.0, max(0.0, np.log2(max(groups, 1) / max(of_half, 1))))
    expected = min(n_objects, int(np.ceil(groups * (n_objects / sizes[largest]) ** power)))
    needed = expected * (4 * n_clusterings + 52)
    in_pieces = False
    each_pair, suggestion, budget = 0, None, devices.memory_budget()
    parts = None if estimator is None else estimator._checked()
    if parts is None or parts.reduction is None:
        each_pair = 0 if parts is None else parts.partitioner.bytes_each_pair
        needed += each_pair * expected**2
        in_pieces = needed > budget and parts is not None and parts.learn_by_sums
        if needed > budget and not in_pieces:
            fits = math.isqrt(budget // (2 * each_pair)) if each_pair else budget // (8 * n_clusterings + 104)
            suggestion = f"sample:{max(1, min(10_000, fits))}"
    return Plan(n_objects, n_clusterings, len(sizes), sizes[largest], groups, expected, needed, suggestion, in_pieces)


def _growth(block: Any) -> tuple[int, int]:
    """Return the number of distinct rows in a chunk, and the number of distinct rows in its first half."""
    block = graph.computed(block)
    half = max(1, len(block) // 2)
    return len(worker.own_groups(block).counts), len(worker.own_groups(block[:half]).counts)
