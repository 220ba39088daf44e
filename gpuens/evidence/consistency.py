"""Agreement of the base clusterings with each other: for any two clusterings, and for each object."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.contingency.labels import Table, labels_of
from gpuens.contingency.scores import ari_of, nmi_of
from gpuens.contingency.tables import pair_tables
from gpuens.evidence.agreement import SharedCells, ecs_of, shares_of
from gpuens.labels.rows import as_rows
from gpuens.runtime import checks


@dataclass(frozen=True, eq=False, repr=False)
class Consistency:
    """Agreement of any two base clusterings, and agreement of all base clusterings about each object.

    The agreement of two clusterings is computed from the objects that both clusterings label.

    Attributes
    ----------
    nmi, ari, ecs : ndarray (n_clusterings, n_clusterings), float64, symmetric with ones on the diagonal
        Normalised mutual information (geometric mean), adjusted Rand index and element-centric similarity; NaN for two
        clusterings without an object in common.
    ecc : ndarray (n_rows,), float64
        Element-centric consistency of each row: the mean of |A ∩ B| / max(|A|, |B|), for the clusters A and B of the
        object, over the pairs of clusterings that both label it; NaN if there are none.
    """

    nmi: np.ndarray
    ari: np.ndarray
    ecs: np.ndarray
    ecc: np.ndarray

    def __repr__(self) -> str:
        others = self.ecs[~np.eye(len(self.ecs), dtype=bool)]
        mean = f", of which two have a mean ECS of {np.nanmean(others):.3f}" if np.isfinite(others).any() else ""
        return checks.summary(
            self,
            f"inconsistency {self.inconsistency:.3f} of {len(self.ecs)} clusterings{mean}",
            see="ecs, nmi, ari, ecc, inconsistency",
        )

    @property
    def inconsistency(self) -> float:
        """The inconsistency coefficient IC of scICE.

        IC is 1 if all clusterings are equal, and increases if the clusterings agree less.

        IC = 1 / (pᵀ S p), with the frequencies p of the distinct clusterings and their ECS matrix S. This is the
        reciprocal of the mean of `ecs`.
        """
        return float(1.0 / np.nanmean(self.ecs))


def consistency(ens: Any, *, device: str = "auto") -> Consistency:
    """Return the agreement of the base clusterings with each other and about each object.

    The cost is M² / 2 contingency tables, one for each pair of clusterings, and G M² / 2 look-ups.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
        The base clusterings (n_objects, n_clusterings).
    device : {"auto", "cpu", "cuda"}

    References
    ----------
    Gates et al., Scientific Reports 9 (2019); Shahsavari et al. (ClustAssess), 2022; Kim et al. (scICE), 2024.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.consistency([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 2]])
    >>> found.ecs.tolist(), round(found.inconsistency, 3)
    ([[1.0, 1.0, 0.75], [1.0, 1.0, 0.75], [0.75, 0.75, 1.0]], 1.125)
    >>> found.ecc.round(3).tolist()
    [1.0, 1.0, 0.667, 0.667]
    """
    rows = as_rows(ens, device)
    nmi, ari, ecs = (np.eye(rows.n_clusterings) for _ in range(3))
    sums, n_pairs = np.zeros(rows.n_rows), np.zeros(rows.n_rows, dtype=np.int64)
    labels = labels_of(rows.ensemble).matrix
    for i, j, table in pair_tables(rows):
        shares = shares_of(table)
        nmi[i, j] = nmi[j, i] = nmi_of(table)
        ari[i, j] = ari[j, i] = ari_of(table)
        ecs[i, j] = ecs[j, i] = ecs_of(shares)
        both = (labels[i] < table.shape[0]) & (labels[j] < table.shape[1])
        sums[both] += _looked_up(shares, table, labels[i][both], labels[j][both])
        n_pairs += both
    ecc = np.divide(sums, n_pairs, out=np.full(len(sums), np.nan), where=n_pairs > 0)
    return Consistency(nmi, ari, ecs, ecc)


def _looked_up(shares: SharedCells, table: Table, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the shares |A ∩ B| / max(|A|, |B|) of objects whose labels in two clusterings are ``a`` and ``b``."""
    if isinstance(table, np.ndarray):
        of_cells = np.zeros(table.shape)
        of_cells[shares.rows, shares.cols] = shares.shares
        found: np.ndarray = of_cells[a, b]
        return found
    width = table.shape[1]
    cells = shares.rows * width + shares.cols  # cell numbers of the flattened table, in ascending order
    looked_up: np.ndarray = shares.shares[np.searchsorted(cells, a.astype(np.int64) * width + b)]
    return looked_up
