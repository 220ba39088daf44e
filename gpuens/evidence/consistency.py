"""Agreement of the base clusterings with each other: for any two clusterings, and for each object."""

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from gpuens.contingency.counting import over_cells
from gpuens.contingency.distinct import Distinct, PairScores
from gpuens.contingency.labels import labels_of
from gpuens.contingency.scores import ari_of, nmi_of, place_scores, score_pairs, scorer
from gpuens.labels.rows import as_rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

# most binary places of a share in the sums for each object; millions of pairs of clusterings leave fewer
FRACTION_BITS = 53


@dataclass(frozen=True, eq=False, repr=False)
class Consistency:
    """Agreement of any two base clusterings, and agreement of all base clusterings about each object.

    The agreement of two clusterings is computed from the objects that both clusterings label. Equal clusterings are
    compared and stored once; the matrices are made when they are first accessed.

    Attributes
    ----------
    nmi, ari, ecs : ndarray (n_clusterings, n_clusterings), float64, symmetric with ones on the diagonal
        Normalised mutual information (geometric mean), adjusted Rand index and element-centric similarity; NaN for two
        clusterings without an object in common.
    ecc : ndarray (n_rows,), float64
        Element-centric consistency of each row: the mean of |A ∩ B| / max(|A|, |B|), for the clusters A and B of the
        object, over the pairs of clusterings that both label it; NaN if there are none.
    scores : dict of str to PairScores
        `nmi`, `ari` and `ecs` of the distinct clusterings.
    """

    scores: dict[str, PairScores]
    ecc: np.ndarray

    @cached_property
    def nmi(self) -> np.ndarray:
        return self.scores["nmi"].matrix()

    @cached_property
    def ari(self) -> np.ndarray:
        return self.scores["ari"].matrix()

    @cached_property
    def ecs(self) -> np.ndarray:
        return self.scores["ecs"].matrix()

    def __repr__(self) -> str:
        ecs, n = self.scores["ecs"], len(self.scores["ecs"].of)
        n_others = ecs.n_comparable().sum() - n
        mean = (ecs.sums(np.ones(n)).sum() - n) / n_others if n_others else 0.0
        return checks.summary(
            self,
            f"inconsistency {self.inconsistency:.3f} of {n} clusterings"
            + (f", of which two have a mean ECS of {mean:.3f}" if n_others else ""),
            see="ecs, nmi, ari, ecc, inconsistency",
        )

    @property
    def inconsistency(self) -> float:
        """The inconsistency coefficient IC of scICE.

        IC is 1 if all clusterings are equal, and increases if the clusterings agree less.

        IC = 1 / (pᵀ S p), with the frequencies p of the distinct clusterings and their ECS matrix S. This is the
        reciprocal of the mean of `ecs`.
        """
        return 1.0 / self.scores["ecs"].mean()


def consistency(ens: Any, *, device: str = "auto") -> Consistency:
    """Return the agreement of the base clusterings with each other and about each object.

    The cost is D² / 2 contingency tables, one for each pair of D distinct clusterings, and G D² / 2 look-ups.

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
    labels = labels_of(rows.ensemble, rows.device)
    weights, total = checks.check_weights(rows.counts, rows.n_rows), rows.n_objects
    distinct = Distinct.among(labels)
    scores = {name: np.eye(len(distinct.times)) for name in ("nmi", "ari", "ecs")}
    scorers = {"nmi": scorer(nmi_of, total, weights), "ari": scorer(ari_of, total, weights)}
    codes, k = _host_codes(distinct), np.array(distinct.labels.n_clusters, dtype=np.int64)
    unit = _unit(rows.n_clusterings)
    sums, adding = _sum_equal(distinct, codes, k, unit), Lock()

    def add(cells: cpu.Cells) -> None:
        for name, score in scorers.items():
            if score is not None:
                place_scores(scores[name], cells, score(cells))
        means, of_objects = np.empty(len(cells.starts) - 1), np.zeros(rows.n_rows, dtype=np.int64)
        cpu.shares_of_cells(cells, codes, k, distinct.times, unit, means, of_objects)
        place_scores(scores["ecs"], cells, means)
        with adding:
            np.add(sums, of_objects, out=sums)

    over_cells(distinct.labels, weights, add)
    by_name = {name: PairScores(matrix, distinct.of) for name, matrix in scores.items()}
    if scorers["ari"] is None:  # sums of squares of very many objects need Python's integers
        by_name["ari"] = score_pairs(labels, ari_of, weights)
    n_labels = np.count_nonzero(devices.to_host(rows.codes) != rows.ensemble.missing_code, axis=1)
    n_pairs = n_labels * (n_labels - 1) // 2
    ecc = np.divide(sums / unit, n_pairs, out=np.full(len(sums), np.nan), where=n_pairs > 0)
    return Consistency(by_name, ecc)


def _unit(n_clusterings: int) -> float:
    """Return the number that stands for 1 in sums over all pairs of clusterings, so large that they fit int64.

    Sums of whole numbers do not depend on the order in which threads add.
    """
    n_pairs = n_clusterings * (n_clusterings - 1) // 2
    return 2.0 ** min(FRACTION_BITS, 63 - n_pairs.bit_length())


def _host_codes(distinct: Distinct) -> np.ndarray:
    return np.ascontiguousarray(devices.to_host(distinct.labels.matrix))


def _sum_equal(distinct: Distinct, codes: np.ndarray, k: np.ndarray, unit: float) -> np.ndarray:
    """Return the sums (G,) of the shares over the pairs of equal clusterings: each share is 1."""
    sums = np.zeros(codes.shape[1], dtype=np.int64)
    for d in np.flatnonzero(distinct.times > 1):
        n = int(distinct.times[d])
        sums[codes[d] < k[d]] += n * (n - 1) // 2 * int(unit)
    return sums
