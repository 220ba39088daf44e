"""Core groups beside links: linked objects have rows of their own, so that equal rows may be in several clusters."""

import numpy as np

from gpuens.labels.links import Links
from gpuens.labels.rows import Rows
from gpuens.reduction.base import Reduction
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import device as devices


class LinkedRows(Rows):
    """Label rows with links; equal rows occur several times.

    Attributes
    ----------
    group : ndarray (G,), int64
        The smallest row of each row's must-link group.
    cannot : ndarray (n_links, 2), int64
        The two groups of each cannot-link, named by their smallest rows.
    """

    group: np.ndarray
    cannot: np.ndarray

    @classmethod
    def of_links(cls, rows: Rows, group: np.ndarray, cannot: np.ndarray) -> "LinkedRows":
        linked_rows = object.__new__(cls)
        linked_rows._hold(rows.ensemble, rows.counts, rows.device)
        linked_rows.group, linked_rows.cannot = group, cannot
        return linked_rows

    @property
    def n_groups(self) -> int:
        """The number of must-link groups, rows without must-links included."""
        return int(np.count_nonzero(self.group == np.arange(len(self))))

    def links(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the groups (G,), and both groups (n_links,) of each cannot-link, for C++."""
        first, second = np.ascontiguousarray(self.cannot.T)
        return self.group, first, second

    def refuse_more(self, n_clusters: int) -> None:
        """Raise ValueError for more clusters than must-link groups."""
        if n_clusters > self.n_groups:
            raise ValueError(
                f"n_clusters={n_clusters}, but must_link leaves only {self.n_groups} groups of objects; ask for at "
                f"most {self.n_groups} clusters, or leave out must-links."
            )


def linked_groups(rows: Rows, links: Links) -> Reduction:
    """Return the core groups of the objects without links, and a row for each linked object.

    Objects of one must-link group with equal labels share a row. Rows are in lexicographic order; of equal ones, that
    of the objects without links is first. They are `LinkedRows`.
    """
    core = core_groups(rows)
    core_of = devices.to_host(core.row_of)
    linked = np.unique(np.concatenate([links.must.ravel(), links.cannot.ravel()]))
    keys, row_of_linked = np.unique(
        np.column_stack([core_of[linked], links.group[linked]]), axis=0, return_inverse=True
    )
    row_of_linked = row_of_linked.reshape(-1)
    counts_of_linked, unlinked = np.zeros(len(keys), dtype=np.int64), core.counts.copy()
    np.add.at(counts_of_linked, row_of_linked, rows.counts[linked])
    np.subtract.at(unlinked, core_of[linked], rows.counts[linked])
    cores = np.flatnonzero(unlinked)

    core_of_row = np.concatenate([cores, keys[:, 0]])
    order = np.lexsort((np.concatenate([np.full(len(cores), -1), keys[:, 1]]), core_of_row))
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    number_of_core = np.zeros(core.n_rows, dtype=np.int64)
    number_of_core[cores] = number[: len(cores)]
    row_of = number_of_core[core_of]
    row_of[linked] = number[len(cores) :][row_of_linked]

    group, groups = np.arange(len(order)), keys[:, 1]
    first_row = np.full(int(groups.max(initial=-1)) + 1, len(order))
    np.minimum.at(first_row, groups, number[len(cores) :])
    group[number[len(cores) :]] = first_row[groups]
    cannot = group[row_of[links.cannot]]
    counts = np.concatenate([unlinked[cores], counts_of_linked])[order]
    linked_rows = LinkedRows.of_links(core.rows.take(core_of_row[order], counts), group, cannot)
    return Reduction(linked_rows, devices.move(row_of, devices.kind_of(core.row_of)), rows_decide=False)
