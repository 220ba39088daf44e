"""Average linkage by a table of all pairs of regions, for ensembles of many clusterings whose bounds exclude little.

If bounds exclude few tiles, every search compares a region with all rows, and a region is searched several times. A
table of the mean similarity of every two regions needs only one comparison of every two rows: the sums of a union
follow from the sums of its parts, |A ∪ B| s(A ∪ B, R) = |A| s(A, R) + |B| s(B, R).

The table (n, n) holds 16-bit integers: similarities in small units, rounded up. It takes 2 n² bytes. A region that has
not merged keeps its own table row. When two regions merge, their two table rows together hold the 32-bit sums of the
union, half of the columns in each row. Columns always belong to the n initial regions; a search adds up, for each
region, the columns of the initial regions in it.

The number of units bounds a similarity from above and, minus ``slack`` and the rounding of sums, from below. Each
region has a list of the regions nearest by units, and a bound on all regions outside the list. If more than one
candidate for the nearest region is left, exact similarities from histograms decide, so no bit of a result depends on
the table. A candidate is skipped if its upper bound is below an exact similarity already computed. A similarity of 1
has at least ``unit`` units.
"""

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import numpy as np

from gpuens.labels.incidence import row_sums
from gpuens.partition.linkage.comparisons import chunks_of
from gpuens.partition.linkage.nearest import NearestIndex
from gpuens.partition.linkage.regions import Regions
from gpuens.partition.linkage.rounds import State
from gpuens.partition.linkage.row_regions import Members, RowIndex
from gpuens.runtime.native import cpu

LANES, UNITS = cpu.LANES, cpu.UNITS
MOST = 2**30  # largest size of a table in bytes
PAIR = 64  # cost of a pair of rows in addition to its label comparisons, in label comparisons
LISTED = 16  # regions in a list
TRIFLE = 2.0**-20  # number subtracted from a label's units, so that rounding never makes them exceed a whole number
WEIGHTS = 2.0**-10  # smallest weight that units can represent, divided by the largest weight


def bytes_needed(n_regions: int) -> int:
    """Return the number of bytes of a table of ``n_regions`` regions."""
    return 2 * n_regions * _padded(n_regions)


def most_regions(n_bytes: int) -> int:
    """Return the largest number of regions whose table takes at most so many bytes."""
    square = isqrt(max(0, n_bytes) // 2) // LANES * LANES  # the largest table without padding
    return max(square, n_bytes // 2 // (square + LANES))


def comparisons_needed(n_rows: int, n_clusterings: int) -> int:
    """Return the cost, in label comparisons, of a table of regions that have ``n_rows`` rows in total."""
    return n_rows**2 // 2 * (n_clusterings + PAIR)


def _padded(n_regions: int) -> int:
    return -(-n_regions // LANES) * LANES


class PairTable(NamedTuple):
    """A table of all pairs of active regions (`cpu.link_by_table`).

    ``units`` (n, columns) uint16: the similarities in units. ``slack``: by how many units they can be too large;
    ``unit``: the smallest number of units in a similarity of 1. ``listed``: the number of regions in a list.
    ``compared``: the number of label comparisons of the table.
    """

    units: np.ndarray
    slack: float
    unit: float
    listed: int
    compared: int

    @classmethod
    def of(
        cls, active: np.ndarray, members: Members, index: NearestIndex, regions: Regions, weights: np.ndarray
    ) -> "PairTable":
        n_rows, n_clusterings = index.rows.shape
        return cls(*_units_of(active, members, index, regions, weights), LISTED, n_rows**2 // 2 * n_clusterings)

    def merge_all(
        self, members: Members, regions: Regions, weights: np.ndarray, n_clusterings: int, state: State,
        report: Callable[[int], None],
    ) -> int:  # fmt: skip
        """Merge regions until none has a similarity above 0 with another; return the number of searches.

        The active regions of ``state`` are those of the table. ``report`` is told the number of merges now and then.
        """
        return cpu.link_by_table(members, regions, weights, n_clusterings, state, self[:4], report)


def _units_of(
    active: np.ndarray, members: Members, index: NearestIndex, regions: Regions, weights: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Return the similarities of all pairs of active regions in units (n, columns), the largest excess, and ``unit``.

    The excess is the units of a pair minus its exact similarity, in units. ``unit`` is the smallest number of units in
    a similarity of 1.
    """
    n = len(active)
    most_rows = int(members.n_rows[active].max())
    n_clusterings = index.rows.shape[1]
    starts, offsets = index.starts, index.offsets
    exact = index.exact and most_rows == 1 and n_clusterings <= UNITS
    chunks, _ = chunks_of(starts, 1 if exact else 2)  # bytes of a label's units
    largest = np.maximum.reduceat(weights, offsets[:-1]).astype(np.float64)
    # the sum of a chunk's units must fit 16 bits, and the sum of all units must fit 32 bits
    scale = (UNITS - np.diff(chunks).max()) / np.add.reduceat(largest, chunks[:-1]).max() * (1.0 - 1e-9)
    scale = min(scale, 2.0**31 / largest.sum())
    worth, to_worth = weights, 1.0 if exact else scale
    if exact:
        scale, to_units, up, slack = 1.0, UNITS // n_clusterings, 0.5, 0.0
    else:
        above, below = float(n_clusterings), 0.0  # how far a row's units can be above and below the exact number
        if most_rows == 1:
            to_worth, (worth, above, below) = 1.0, _to_nearest(weights * scale, index)
        rounding = 2e-6 + 2.4e-7 * most_rows
        to_units = 65_533 / (largest.sum() * scale * (1.0 + rounding) + 2.0 * n_clusterings)
        up, slack = 1.0 + 1.001 * to_units * below, 2.0 + to_units * (above + below) + UNITS * rounding
    units = np.empty((n, _padded(n)), dtype=np.uint16)
    scales = float(to_worth), exact, float(to_units), float(up)
    cpu.fill_units(active, members, RowIndex.of(index), regions, worth, scales, units)
    return units, slack, to_units * scale * n_clusterings * (1.0 - 1e-9)


def _to_nearest(worth: np.ndarray, index: NearestIndex) -> tuple[np.ndarray, float, float]:
    """Return the units (N_c,) of labels if each region is one row, and the two largest rounding errors of a row.

    Units are rounded to the nearest whole number above 0, and then lowered by `TRIFLE`. The errors are the largest
    total excess and the largest total deficit of a row. The bounds on similarities are then a fourth as far apart as
    with units that are all rounded up.
    """
    whole = np.maximum(np.rint(worth), 1.0)
    above, below = (
        float(row_sums(index.codes, index.offsets, np.maximum(errors, 0.0)).max())
        for errors in (whole - worth, worth - whole)
    )
    return whole - TRIFLE, above, below
