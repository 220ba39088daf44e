"""The labels around each object: shares of the labels that a random walk of t steps from it ends at.

With H the one-hot labels (N, C), A the weights of the graph, D = diag(1 + Σ_j A_ij) and P = D⁻¹ (A + I), the shares are

    S = Pᵗ H

A missing label has no share; the labelled objects around it fill it in: S_m = Pᵗ H_m / Pᵗ 1_m, with 1_m the objects
that clustering m labels. Shares are whole multiples of 2⁻¹⁵ after every step, so that every device has the same ones.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens.labels.graph import Graph
from gpuens.labels.rows import Rows
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

ONE = 2**15  # a share of 1, in units
STEPS = 4  # default number of steps; 2, 4 and 8 give mean ARI .67, .69 and .68 on five real data sets
COLUMNS_AT_ONCE = 64  # clusters whose shares take a step together: a row of 128 bytes, two cache lines
STEP_BYTES = 2**29  # bytes of the shares before and after a step; more if one clustering alone needs more
BYTES_OF_A_SHARE = 8  # memory for a share: as a dense 16-bit number, and while the shares above 0 are laid out


def walk(rows: Rows, graph: Graph, steps: int = STEPS) -> cpu.WalkShares:
    """Return the shares of the labels around each object, by ``steps`` steps of a walk; rows are all N objects.

    The shares S (N, C) above 0 are in compressed sparse rows, in units of 1 / `ONE`: ``starts`` (N + 1,), int64,
    ``columns``, int32, ascending in each row, and ``values``, uint16.

    >>> import gpuens as ge
    >>> from gpuens.neighbors.walk import walk
    >>> line = ge.Graph.grid((4,))
    >>> found = walk(ge.Rows([[0, 0, 1, 1]]), line, steps=1)
    >>> (found.values / 2**15).round(2).tolist(), found.columns.tolist()
    ([1.0, 0.67, 0.33, 0.33, 0.67, 1.0], [0, 0, 1, 0, 1, 1])
    """
    n = rows.n_rows
    checks.check_memory(
        n * (4 * _columns_at_once(rows) + BYTES_OF_A_SHARE * rows.n_clusters),
        devices.memory_budget(),
        f"the labels around {n:,} objects in {rows.n_clusters:,} clusters",
        "take fewer clusterings, or regions=None",
    )
    blocks, counts = list(walked_blocks(rows, graph, steps)), np.zeros(n, dtype=np.int64)
    for _, block in blocks:
        cpu.count_shares(block, counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns, values, places = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint16), starts[:-1].copy()
    for first, block in blocks:
        cpu.append_shares(block, first, places, columns, values)
    return cpu.WalkShares(starts, columns, values, rows.n_clusters)


def walked_blocks(rows: Rows, graph: Graph, steps: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the shares of a few clusterings at a time: their first cluster, and a block (N, C'), uint16, host."""
    edges = [rows.xp.asarray(array) for array in (graph.starts, graph.heads, graph.weights.astype(np.float32))]
    for first, last in pairwise(_groups(np.diff(rows.offsets), _columns_at_once(rows))):
        yield int(rows.offsets[first]), _shares_of_block(rows, edges, steps, first, last)


def _columns_at_once(rows: Rows) -> int:
    """Return the largest number of clusters whose shares take a step together, at least those of a clustering."""
    fitting = STEP_BYTES // (4 * rows.n_rows)
    return max(int(np.diff(rows.offsets).max()), min(COLUMNS_AT_ONCE, fitting))


def _groups(sizes: np.ndarray, columns_at_once: int) -> list[int]:
    """Return the first clustering of each group of clusterings with at most so many clusters, and M."""
    ends, width = [0], 0
    for m, size in enumerate(sizes.tolist()):
        if width and width + size > columns_at_once:
            ends.append(m)
            width = 0
        width += size
    return [*ends, len(sizes)]


def _shares_of_block(rows: Rows, edges: list[Any], steps: int, first: int, last: int) -> np.ndarray:
    """Return the shares (N, C') of the clusters of clusterings first … last - 1, uint16, host."""
    xp, sizes = rows.xp, np.diff(rows.offsets)[first:last]
    shares, gaps = shares_at_start(rows, first, last)
    for _ in range(steps):
        shares = walk_step(*edges, shares, device=rows.device)
    if gaps:
        owner = xp.asarray(np.repeat(np.arange(last - first), sizes))
        labelled = xp.maximum(shares[:, -(last - first) :][:, owner], 1).astype(np.float32)
        shares = xp.rint(shares[:, : len(owner)] / labelled * np.float32(ONE)).astype(np.uint16)
    return np.ascontiguousarray(devices.to_host(shares))


def shares_at_start(rows: Rows, first: int, last: int) -> tuple[Any, bool]:
    """Return the shares (N, C') of the clusters of clusterings first … last - 1 before a walk, uint16, on the device.

    If labels are missing, which is the second result, a further column for each clustering has the labelled objects.
    """
    xp, codes, sizes = rows.xp, rows.codes[:, first:last], np.diff(rows.offsets)[first:last]
    owner = xp.asarray(np.repeat(np.arange(last - first), sizes))
    number = xp.asarray(np.concatenate([np.arange(size) for size in sizes]))
    labelled = codes != rows.ensemble.missing_code
    gaps = not bool(labelled.all())
    columns = [codes[:, owner] == number, *[labelled] * gaps]
    return xp.ascontiguousarray(xp.concatenate(columns, axis=1).astype(np.uint16) * np.uint16(ONE)), gaps


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def walk_step(starts: np.ndarray, heads: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the shares (N, C), uint16, after a step of the walk; ``weights`` (edges,) are float32."""
    moved = np.empty_like(shares)
    cpu.walk_step(starts, heads, weights, shares, moved)
    return moved


# --- kernels/walk.cu --------------------------------------------------------------------------------------------------


@walk_step.kernel
def _(starts: Any, heads: Any, weights: Any, shares: Any, *, device: str) -> Any:
    moved = devices.namespace(device).empty_like(shares)
    kernels.launch(
        "walk_step", kernels.blocks(shares.size, 256), 256, (starts, heads, weights, shares, moved, *shares.shape),
        device=device,
    )  # fmt: skip
    return moved
