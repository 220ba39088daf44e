"""Choice of the cheapest search for the nearest regions on the CPU; all searches give the same lists.

- Tiles of rows (`tile_regions`), one query after the other: cheapest if bounds exclude most tiles, and for few queries.
  Tiles may be from an earlier round; they are rebuilt when new tiles would have saved more than building them costs.
- Rows (`row_regions`), 64 queries at a time: cheapest if bounds exclude little and most regions have few rows.
- Histograms (`regions`), 16 queries at a time: cheapest if bounds exclude little and regions have many rows.

Costs are predicted from counts, never from the clock, so that every run makes the same choices. For little work,
only searches by histograms are used. Searches by tiles or by rows begin when they would have saved the cost of loading
their code. In the first run of an installation, this code is compiled, which takes seconds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from gpuens.partition.linkage import row_regions
from gpuens.partition.linkage.nearest import NearestIndex, Shortlists
from gpuens.partition.linkage.regions import BoundingWeights, Regions, search
from gpuens.partition.linkage.row_regions import Members
from gpuens.partition.linkage.tile_regions import MOST, Tiles
from gpuens.runtime.lanes import FLOAT_LANES, LANES

# costs; the unit is the cost of comparing an entry of a query with a label of a row in a tile
LAYING = 40.0  # layout of one label in tiles
LOADING = 1e8  # loading of the code of a search by tiles or by rows, once per process
ROW = 12.0  # comparison of a label of a row with 64 queries
ENTRY = 8.0  # comparison of an entry of a histogram with 16 queries
CEILING = 16.0  # update of a ceiling by an entry of a histogram
QUERY = 5e4  # additional exact scores for a query in a search by histograms
LARGE = 4.0  # comparison of an entry of a region of many rows with a query, in a search by rows
TOGETHER = 4.0  # number of tiles needed by any of 16 queries, divided by the number needed by one query (no cost)


class Costs(NamedTuple):
    """The predicted cost of each kind of search."""

    tiles: float
    rows: float
    histograms: float


_only: ContextVar[str | None] = ContextVar("only", default=None)


@contextmanager
def only(kind: str) -> Iterator[None]:
    """Use only one kind of search (a field of `Costs`) in the with block, so that its code is loaded or compiled."""
    token = _only.set(kind)
    try:
        yield
    finally:
        _only.reset(token)


class Extent(NamedTuple):
    """Sizes of the active regions.

    They are the labels of regions of few rows, the entries of regions of many rows, and the entries of all regions.
    """

    labels: int
    of_many: int
    entries: int


def costs(n_queries: int, asked: int, extent: Extent, left: float, rows_in_tiles: int) -> Costs:
    """Return the predicted cost of each kind of search for ``n_queries`` regions with ``asked`` entries in total.

    ``left`` is the share of a query's comparisons that are needed despite bounds.
    """
    of_some = min(1.0, TOGETHER * left)
    return Costs(
        left * asked * rows_in_tiles,
        -(-n_queries // LANES) * ROW * extent.labels + n_queries * LARGE * extent.of_many,
        n_queries * QUERY + (CEILING + ENTRY * of_some * -(-n_queries // FLOAT_LANES)) * extent.entries,
    )


class Searches:
    """Searches for the nearest of all active regions, with the state kept between searches.

    ``left`` is the share of comparisons that were needed despite bounds in the last search. Searches by rows or tiles
    begin when they would have saved the cost of their start. Tiles are rebuilt when the additional comparisons in old
    tiles have cost as much as rebuilding.
    """

    def __init__(
        self, index: NearestIndex, members: Members, weights: np.ndarray, bounding: BoundingWeights, whole: bool,
        left: float,
    ) -> None:  # fmt: skip
        self.index, self.members = index, members
        self.weights, self.bounding, self.whole = weights, bounding, whole
        self.n_clusterings: int = index.rows.shape[1]
        self.left = left
        self.tiles: Tiles | None = None
        self.missed = 0.0  # cost that tiles of the current regions would have saved so far
        self.missed_by_rows = 0.0  # cost that searches by rows would have saved so far

    def search(
        self, queries: np.ndarray, active: np.ndarray, n_entries: int, into: np.ndarray, regions: Regions,
        lists: Shortlists,
    ) -> int:  # fmt: skip
        """Rebuild the list of nearest regions of each region in ``queries``, from all ``active`` regions.

        Returns the number of comparisons. Active regions have ``n_entries`` entries in total; ``into`` is the region
        that absorbed each region.
        """
        asked = int(regions.length[queries].sum())
        choice = self._choice(len(queries), asked, active, n_entries, regions)
        if self._pays(choice, active):
            self.tiles = Tiles(active, self.members, self.index, regions, self.bounding)
            self.missed = 0.0
            choice = choice._replace(tiles=0.0)
        if self.tiles is not None and choice.tiles <= min(choice.rows, choice.histograms):
            compared = self.tiles.search(queries, into, regions, self.weights, lists)
            self.left = min(1.0, compared / max(1, asked * self.tiles.n_rows))
            return compared
        if choice.rows < choice.histograms:
            return row_regions.search_rows(queries, active, self.members, self.index, regions, self.weights, lists)
        total = np.zeros(1, dtype=np.uint64)
        given = active, regions, self.weights, self.bounding, self.n_clusterings, self.whole
        search(queries, *given, lists, total, device="cpu")
        compared = int(total[0])
        self.left = min(self.left, compared / max(1, len(queries) * n_entries))
        return compared

    def _choice(self, n_queries: int, asked: int, active: np.ndarray, n_entries: int, regions: Regions) -> Costs:
        """Return the predicted cost of each kind of search, infinite for a kind that must not be used."""
        if (kind := _only.get()) is not None:
            choice = Costs(*(0.0 if field == kind else np.inf for field in Costs._fields))
        else:
            choice = self._costs(n_queries, asked, active, n_entries, regions)
        if self.n_clusterings > MOST:
            choice = choice._replace(tiles=np.inf)
        self.missed_by_rows += max(0.0, choice.histograms - choice.rows)
        return choice if self.missed_by_rows >= LOADING else choice._replace(rows=np.inf)

    def _pays(self, choice: Costs, active: np.ndarray) -> bool:
        """Add the savings that new tiles would have given; return whether the sum reaches the cost of building tiles.

        The sum begins when tiles were last built.
        """
        anew, without = choice.tiles, min(choice.rows, choice.histograms)
        if self.tiles is None:
            n_rows, begin = float(self.members.n_rows[active].sum()), LOADING
        else:
            left = len(active) / self.tiles.n_parts
            n_rows, anew, without = left * self.tiles.n_rows, left * anew, min(anew, without)
            begin = 0.0
        self.missed += max(0.0, without - anew)
        return anew < without and self.missed > LAYING * n_rows * self.n_clusterings + begin

    def _costs(self, n_queries: int, asked: int, active: np.ndarray, n_entries: int, regions: Regions) -> Costs:
        if self.tiles is not None:  # exact costs are not needed if tiles are cheaper even when all regions have one row
            least = Extent(len(active) * self.n_clusterings, 0, n_entries)
            choice = costs(n_queries, asked, least, self.left, self.tiles.n_rows)
            if choice.tiles <= min(choice.rows, choice.histograms):
                return choice
        n_rows = self.members.n_rows[active]
        few = n_rows <= LANES
        n_few = int(n_rows[few].sum())
        extent = Extent(n_few * self.n_clusterings, int(regions.length[active[~few]].sum()), n_entries)
        return costs(n_queries, asked, extent, self.left, n_few if self.tiles is None else self.tiles.n_rows)
