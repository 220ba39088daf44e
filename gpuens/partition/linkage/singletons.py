"""Singletons: clusters of a single row, such as those of a clustering by an identifier.

Singletons add nothing to the similarity of two rows. Rows that differ only in singletons are as similar to each other
as to any union of such rows, and no other row is nearer to them. So they form one leaf from the beginning. If they did
not, rounding errors would decide which pairs of them merge, and thousands of rounds would be needed. With whole weights
this leaf is not needed, because sums tie exactly and one round merges many pairs.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.codes import codes_dtype
from gpuens.labels.incidence import cluster_sums, row_sums
from gpuens.labels.rows import Rows
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import device as devices


class EqualLeaves(NamedTuple):
    """L leaves of G rows, where the rows of a leaf differ only in singletons.

    ``first`` is the first row of each leaf, and ``leaf_of`` is the leaf of each row. ``similarities`` (L,) are the
    similarities between rows of the same leaf.
    """

    first: np.ndarray
    leaf_of: np.ndarray
    similarities: np.ndarray

    def sum(self, sizes: np.ndarray) -> np.ndarray:
        """Return the sum of the ``sizes`` (G,) of the rows of each leaf, (L,)."""
        sums = np.zeros(len(self.first), dtype=sizes.dtype)
        np.add.at(sums, self.leaf_of, sizes)
        return sums


def equal_leaves(rows: Rows, weights: np.ndarray) -> EqualLeaves | None:
    """Return leaves of rows that differ only in singletons, or None if each row is a leaf of its own.

    ``weights`` (N_c,) are w of S = diag(w) / M. Rows with only singletons stay separate, because their similarity with
    every row is 0.
    """
    codes, offsets, xp, device = rows.codes, rows.offsets, rows.xp, rows.device
    single = _singletons(rows)
    if np.count_nonzero(single) < 2:
        return None
    shared = row_sums(codes, offsets, np.where(single, 0.0, weights), device=device)
    ascending = shared[shared.argsort()]  # rows of a leaf have equal sums, which nearly always rules out all leaves
    if not (ascending[1:] == ascending[:-1]).any():
        return None
    n_own = row_sums(codes, offsets, single.astype(np.float64), device=device)
    with_singletons = xp.flatnonzero((n_own > 0) & (shared > 0))
    if len(with_singletons) < 2:
        return None
    shared_codes = _renumber_codes(codes[with_singletons], offsets, ~single, codes.dtype.type, xp)
    groups = core_groups(Rows.of_codes(shared_codes, offsets, np.ones(len(with_singletons), np.int64), device))
    if len(groups.counts) == len(with_singletons):
        return None
    with_singletons, group_of = devices.to_host(with_singletons), devices.to_host(groups.row_of)
    first_of_group = np.full(len(groups.counts), len(codes))
    np.minimum.at(first_of_group, group_of, with_singletons)
    first_of_row = np.arange(len(codes))
    first_of_row[with_singletons] = first_of_group[group_of]
    first, leaf_of = np.unique(first_of_row, return_inverse=True)
    return EqualLeaves(first, leaf_of, devices.to_host(shared)[first] / rows.n_clusterings)


def without_singletons(rows: Rows, similarity: Any) -> tuple[Rows, Any]:
    """Return rows and their similarity without clusters of a single row.

    If less than half of all clusters have a single row, all clusters are kept. The first cluster of each clustering is
    always kept.
    """
    is_kept = ~_singletons(rows)
    is_kept[rows.offsets[:-1]] = True
    if 2 * np.count_nonzero(is_kept) > len(is_kept):
        return rows, similarity
    fewer = np.add.reduceat(is_kept, rows.offsets[:-1], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(fewer)])
    renumbered = _renumber_codes(rows.codes, rows.offsets, is_kept, codes_dtype(int(fewer.max())), rows.xp)
    return Rows.of_codes(renumbered, offsets, rows.counts, rows.device), similarity.take(is_kept, offsets)


def _singletons(rows: Rows) -> np.ndarray:
    """Return a mask (N_c,) of the clusters of less than two rows."""
    ones = rows.xp.ones(len(rows), dtype=np.int64)
    return devices.to_host(cluster_sums(rows.codes, rows.offsets, ones, device=rows.device)) < 2


def _renumber_codes(codes: Any, offsets: np.ndarray, is_kept: np.ndarray, dtype: Any, xp: Any) -> Any:
    """Return codes of this ``dtype`` in contiguous columns, the clusters of a mask ``is_kept`` (N_c,) renumbered."""
    before = np.cumsum(is_kept) - is_kept
    number = np.where(is_kept, before - np.repeat(before[offsets[:-1]], np.diff(offsets)), np.iinfo(dtype).max)
    # the last entry of each table is the code of a missing label
    tables = xp.asarray(np.insert(number, offsets[1:], np.iinfo(dtype).max).astype(dtype))
    renumbered = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, (start, stop) in enumerate(pairwise(offsets.tolist())):
        renumbered[:, m] = tables[start + m : stop + m + 1][xp.minimum(codes[:, m], stop - start)]
    return renumbered
