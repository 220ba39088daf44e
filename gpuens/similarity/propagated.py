"""Probability trajectories of rows: random walks along the strongest co-associations only (PTA, PTGP).

Each row keeps its links to the K rows with the largest co-association (and to ties with the K-th), and the links that
other rows keep to it. The probability of a step to a row is proportional to the link and to the row's number of
objects. The similarity PTS of two rows is the cosine of their trajectories of T steps
(`gpuens.similarity.trajectories`).

Huang, Lai & Wang, "Robust ensemble clustering using probability trajectories", IEEE Transactions on Knowledge and Data
Engineering 28 (2016) 1312-1326.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, as_rows
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu
from gpuens.similarity.base import Features, Measure
from gpuens.similarity.coassociation import Coassociation
from gpuens.similarity.pair_matrix import PairMatrix
from gpuens.similarity.trajectories import MOST_STEPS, cosines_of_walks

# largest default of both the number of neighbours and the number of steps, as in the authors' program
MOST = 20
BLOCK = 512  # rows in a block when links are chosen
BYTES_PER_PAIR = 17  # bytes for an ordered pair of rows, in two arrays together
BYTES_PER_LINK = 24  # memory for a link, including the walk along it


@dataclass(frozen=True)
class Propagated(Measure):
    """Similarity of rows by random walks along their strongest links: similar rows have similar walks.

    Parameters
    ----------
    n_steps : int from 1 to 1000, optional
        T; None is √G / 2 for G rows, rounded down, from 1 to 20.
    n_neighbors : int ≥ 1, optional
        K; None is the same default as for T.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows = ge.Rows([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2], [0, 1, 0, 1, 0]])
    >>> ge.similarity.Propagated(n_steps=2, n_neighbors=2)(rows).tile(rows, 0, 1).round(2).tolist()
    [[1.0, 0.39, 0.56, 0.7, 0.37]]
    """

    n_steps: int | None = None
    n_neighbors: int | None = None
    kind = "pairs"
    real_weights = True

    def __post_init__(self) -> None:
        for name, maximum in (("n_steps", MOST_STEPS), ("n_neighbors", checks.LARGEST)):
            if getattr(self, name) is not None:
                checks.check_integer(getattr(self, name), name, minimum=1, maximum=maximum)

    def refuse_too_many(self, rows: Rows) -> None:
        _, n_neighbors = self._resolve_parameters(rows)
        _check_walk_memory(len(rows), len(rows) * min(len(rows), 2 * n_neighbors))

    def __call__(self, rows: Rows, features: Features | None = None) -> "PropagatedRows":
        self.refuse_too_many(rows)
        return PropagatedRows(rows, *self._resolve_parameters(rows))

    def _resolve_parameters(self, rows: Rows) -> tuple[int, int]:
        """Return the number of steps and the number of neighbours."""
        default = min(MOST, max(1, math.isqrt(len(rows)) // 2))
        return int(self.n_steps or default), int(self.n_neighbors or default)


class PropagatedRows(PairMatrix):
    """The similarity PTS of the rows at fit, with all pairs of these rows in memory."""

    def __init__(self, rows: Rows, n_steps: int, n_neighbors: int) -> None:
        super().__init__(rows)
        self.n_steps, self.n_neighbors = n_steps, n_neighbors

    def compute(self) -> np.ndarray:
        links = strongest_links(self.rows, self.n_neighbors)
        _check_walk_memory(len(self.rows), links.nnz)  # checked again, because ties add links
        links.data *= self.rows.counts[links.indices]
        return cosines_of_walks(links, self.n_steps)

    def self_similarities(self, rows: Rows) -> np.ndarray:
        return np.ones(len(rows))


def propagated(ens: Any, t: int | None = None, *, n_neighbors: int | None = None, device: str = "auto") -> np.ndarray:
    """Return the similarity of objects by random walks along their strongest co-associations (PTS), for small N.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    t : int from 1 to 1000, optional
        The number of steps; None is √G / 2 for G distinct rows, rounded down, from 1 to 20.
    n_neighbors : int ≥ 1, optional
        The number of links that each distinct row keeps, besides ties with the last one; None is the same default.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    ndarray (n_objects, n_objects), float64, symmetric, from 0 to 1 with ones on its diagonal, in host memory
        1 for objects with equal rows; 0 between a row without links and any other row.

    Raises
    ------
    MemoryError
        For objects beyond the memory budget, before work starts.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.similarity.propagated([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2]], t=2).round(2).tolist()[0]
    [1.0, 1.0, 0.0, 0.0, 0.0]
    """
    groups = core_groups(as_rows(ens, device))
    checks.check_block(None, None, len(groups.row_of), devices.memory_budget(), "propagated similarity")
    row_of = devices.to_host(groups.row_of)
    return Propagated(t, n_neighbors)(groups.rows).matrix[np.ix_(row_of, row_of)]


def strongest_links(rows: Rows, n_neighbors: int) -> Any:
    """Return the co-associations of the links that rows keep, a symmetric SciPy CSR array (G, G) without diagonal."""
    from scipy.sparse import csr_array, vstack

    similarity, n_rows = Coassociation()(rows), len(rows)
    n_neighbors = min(n_neighbors, n_rows)

    def tiles() -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, n_rows, BLOCK):
            tile = similarity.tile(rows, start, min(start + BLOCK, n_rows))
            places = np.arange(len(tile))
            tile[places, start + places] = 0.0
            yield slice(start, start + len(tile)), tile

    thresholds = np.empty(n_rows)
    for block, tile in tiles():
        cpu.nth_largest(np.ascontiguousarray(tile), n_neighbors, thresholds[block])
    # links that at least one of the two rows keeps; no transpose is needed, as all thresholds are known
    link_blocks = []
    for block, tile in tiles():
        tile[tile < np.minimum(thresholds[block, None], thresholds)] = 0.0
        link_blocks.append(csr_array(tile))
    return vstack(link_blocks, format="csr")


def _check_walk_memory(n_rows: int, n_links: int) -> None:
    needed = BYTES_PER_PAIR * n_rows**2 + BYTES_PER_LINK * n_links
    checks.check_memory(
        needed,
        devices.memory_budget(needed=needed),
        f"the trajectories of all pairs of {n_rows:,} distinct label rows",
        "reduce the rows first, reduction=CATree(…) or Sample(…)",
    )
