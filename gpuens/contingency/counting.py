"""The cells of the tables of all pairs of clusterings, each table processed once (`over_cells`)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.contingency.kernel import count_cells, count_pairs
from gpuens.contingency.labels import Labels, batches, is_dense
from gpuens.contingency.tables import cells
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

MARKED_CLUSTERINGS = 8  # fewest clusterings for which counting by bits pays off
MARKED_BYTES = 2**26  # most bytes of the bits of all clusters


def over_cells(labels: Labels, w: Any, work: Callable[[cpu.Cells], Any]) -> None:
    """Call ``work`` in threads on the cells of all pairs of clusterings, with each pair in exactly one call.

    The arrays of cells (kernels/cpu/contingency/intersections.h) are used again after the call that receives them.
    """
    if labels.device != "cpu":
        for batch in batches(labels):
            _over_counted(labels, batch, w, work)
        return
    if w is not None and w.dtype.kind == "i" and (w == 1).all():
        w = None  # counting without weights is faster
    n_clusters = np.array(labels.n_clusters, dtype=np.int64)
    marks = w is None and len(n_clusters) >= MARKED_CLUSTERINGS
    max_bytes = min(MARKED_BYTES, devices.memory_budget() // 8) if marks else 0
    matrix = np.ascontiguousarray(labels.matrix)
    cpu.over_cells(matrix, n_clusters, w, max_bytes, work)


def _over_counted(labels: Labels, pairs: list[tuple[int, int]], w: Any, work: Callable[[cpu.Cells], Any]) -> None:
    """Call ``work`` in threads on the cells of pairs that the device counts, adjacent dense tables in one call."""
    dense = [pair for pair in pairs if is_dense(labels, *pair)]
    for (i, j), table in count_pairs(labels, sorted(set(pairs) - set(dense)), w).items():
        rows, cols, counts = cells(table)
        work(cpu.Cells(i, j, np.array([0, len(rows)]), rows, cols, counts))
    if not dense:
        return
    starts, *arrays = count_cells(labels, dense, w)
    first, second = np.array(dense).T
    bounds = [0, *(1 + np.flatnonzero((np.diff(first) != 0) | (np.diff(second) != 1))).tolist(), len(dense)]

    def run(start: int, stop: int) -> None:
        for low, high in zip(bounds[start:stop], bounds[start + 1 : stop + 1], strict=True):
            parts = (part[starts[low] : starts[high]] for part in arrays)
            work(cpu.Cells(*dense[low], starts[low : high + 1] - starts[low], *parts))

    devices.over_ranges(run, len(bounds) - 1)
