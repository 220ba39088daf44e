"""Linkage of all pairs of rows: complete linkage, and average linkage in which each row counts once.

The least similar pair of two regions cannot be computed from their histograms, so complete linkage needs all pairs of
distinct rows, 8 bytes per pair, within the memory budget. Complete linkage suits co-association badly: two regions have
similarity 0 as soon as one pair of their objects shares no cluster. So in the end dozens of clusters with pairwise
similarity 0 are left, which merge in arbitrary order.

Average linkage needs all pairs of rows, too, if the similarity has no matrix S of clusters.
"""

from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

BLOCK = 512  # rows of the similarity matrix computed at a time


def complete_linkage(rows: Rows, similarity: Any) -> Dendrogram:
    """Return the complete-linkage dendrogram of rows under any similarity; see `linkage_of_pairs`."""
    return linkage_of_pairs(rows, similarity, "complete")


def check_pair_memory(rows: Rows, method: str) -> None:
    """Raise MemoryError, before work starts, if the similarities of all pairs of rows do not fit."""
    needed = 4 * len(rows) * (len(rows) - 1)  # 8 bytes for each unordered pair
    checks.check_memory(
        needed,
        devices.memory_budget(needed=needed),
        f"{method} linkage holds all pairs of the {len(rows):,} distinct label rows, which",
        "take average linkage, which does not, or fewer rows"
        if method == "complete"
        else "reduce the rows first, reduction=CATree(…) or Sample(…)",
    )


def linkage_of_pairs(rows: Rows, similarity: Any, method: str) -> Dendrogram:
    """Return the dendrogram of rows, each of which counts once.

    Parameters
    ----------
    rows : Rows
    similarity : Similarity
    method : {"average", "complete"}

    Raises
    ------
    ValueError
        For a similarity that is not finite.
    MemoryError
        Before work starts, if all pairs do not fit the memory budget.
    """
    check_pair_memory(rows, method)
    n_rows = len(rows)
    n_pairs = n_rows * (n_rows - 1) // 2
    if n_rows == 1:
        nothing = np.empty(0, dtype=np.int64)
        return Dendrogram.from_merges(nothing, nothing, np.empty(0), 1)
    # distances are -S, because 1 - S would lose the digits of small similarities
    distances = np.empty(n_pairs)
    filled = 0
    for start in progress.bar(range(0, n_rows, BLOCK), "all pairs of rows"):
        block = similarity.tile(rows, start, min(start + BLOCK, n_rows), start)
        upper = block[np.triu(np.ones(block.shape, dtype=bool), 1)]
        if not np.isfinite(upper).all():
            raise ValueError(
                f"similarity {upper[~np.isfinite(upper)][0]} of two label rows is not finite, but {method} linkage "
                "compares finite numbers; check the weights and features from which it is computed."
            )
        distances[filled : filled + len(upper)] = -upper
        filled += len(upper)
    kept, absorbed, heights = np.empty(n_rows - 1, np.int64), np.empty(n_rows - 1, np.int64), np.empty(n_rows - 1)
    cpu.link_pairs(distances, method == "average", kept, absorbed, heights)
    return Dendrogram.from_merges(kept, absorbed, -heights, n_rows)
