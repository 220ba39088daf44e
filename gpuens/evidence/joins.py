"""Join counts: what each base clustering says of the neighbours of an object.

An edge of the graph is a join of a clustering if both of its ends have the same label. With w the weights of the edges
whose ends both have a label, x the labels, and p_c the share of cluster c among the labelled objects,

    joins     = Σ_edges w [x_i = x_j] / Σ_edges w
    expected  = Σ_c p_c²
    coherence = (joins - expected) / (1 - expected)

Labels that ignore the neighbours, such as cell types that are mixed in a tissue, have a coherence near 0: a consensus
with neighbours blurs them. The walk P = D⁻¹ (A + I) of `gpuens.neighbors.walk` shows how far the labels reach. With
s(t) the mean, over the labelled objects, of the share of an object's label around it after t steps, a clustering
supports t steps while

    (s(t) - expected) / (1 - expected) ≥ 1/2
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.graph import Graph
from gpuens.labels.rows import Rows, as_rows
from gpuens.neighbors.walk import ONE, shares_at_start, walk_step
from gpuens.runtime import checks
from gpuens.runtime import device as devices

if TYPE_CHECKING:
    import pandas as pd

MOST_STEPS = 16  # largest number of steps that are tried
LEAST_SHARE = 0.5  # smallest mean share, corrected for chance, after a number of steps that a clustering supports
LEAST_COHERENCE = 0.1  # coherence below which a clustering counts as blind to the neighbours


@dataclass(frozen=True, eq=False, repr=False)
class Joins:
    """The joins of each base clustering on a graph of the objects.

    Attributes
    ----------
    members : list
        The names of the M clusterings.
    joins : ndarray (M,), float64
        The weighted share of the edges whose ends have the same label; NaN without an edge between labelled objects.
    expected : ndarray (M,), float64
        This share if the labels were dealt to the objects at random: the sum of the squared shares of the clusters.
    steps : ndarray (M,), int64
        The number of steps of a walk, at most 16, that a clustering supports; 0 without edges and for a single cluster.
    """

    members: list[Any]
    joins: np.ndarray
    expected: np.ndarray
    steps: np.ndarray

    @property
    def coherence(self) -> np.ndarray:
        """The joins beyond chance (M,): 1 if all neighbours agree, near 0 if a clustering ignores the neighbours."""
        return _correct_for_chance(self.joins, self.expected)

    @property
    def blind(self) -> list[Any]:
        """The names of the clusterings whose coherence is below .1."""
        return [self.members[m] for m in np.flatnonzero(self.coherence < LEAST_COHERENCE)]

    @property
    def table(self) -> "pd.DataFrame":
        """A DataFrame with a row for each clustering; columns "joins", "expected", "coherence" and "steps"."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in ("joins", "expected", "coherence", "steps")}
        return pd.DataFrame(columns, index=pd.Index(self.members, name="member"))

    def __repr__(self) -> str:
        coherence = self.coherence
        values = coherence[~np.isnan(coherence)]
        answer = f"of {checks.counted(len(coherence), 'clustering')}"
        if len(values):
            answer = f"mean coherence {values.mean():.2f} {answer}, from {values.min():.2f} to {values.max():.2f}"
        return checks.summary(
            self,
            answer,
            steps=f"median {np.median(self.steps):g}, from {self.steps.min()} to {self.steps.max()}",
            blind_to_neighbours=", ".join(map(str, self.blind)),
            see="table, joins, expected, coherence, steps, blind",
        )


def joins(labels: Any, graph: Any, *, device: str = "auto") -> Joins:
    """Return the joins of each base clustering: the share of the edges whose ends have the same label.

    ``coherence`` = (joins - expected) / (1 - expected) is the share beyond chance; expected joins are the sum of the
    squared shares of the clusters (Moran, "The interpretation of statistical maps", Journal of the Royal Statistical
    Society B 10 (1948) 243-251). Missing labels and their edges are left out.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    graph : anything that `gpuens.Graph.of` takes
        The neighbours of the objects.
    device : {"auto", "cpu", "cuda"}
        The device of the walk.

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses, and for graphs of other objects.
    MemoryError
        If the shares of the labels of a clustering are beyond the memory budget.

    Examples
    --------
    A field of 4 × 6 pixels, one clustering with two halves and one that ignores the places:

    >>> import gpuens as ge, numpy as np
    >>> halves = np.repeat([[0, 0, 0, 1, 1, 1]], 4, axis=0).ravel()
    >>> board = np.indices((4, 6)).sum(axis=0).ravel() // 2 % 2
    >>> found = ge.evidence.joins([halves, board], ge.Graph.grid((4, 6)))
    >>> found.joins.round(2).tolist(), found.expected.tolist(), found.coherence.round(2).tolist()
    ([0.89, 0.5], [0.5, 0.5], [0.79, 0.0])
    >>> found.steps.tolist()
    [7, 0]
    """
    rows = as_rows(labels, device)
    return count_joins(rows, Graph.of(graph, rows.n_rows, rows.ensemble.index))


def count_joins(rows: Rows, graph: Graph) -> Joins:
    """Return the joins for label rows of single objects."""
    ensemble, codes = rows.ensemble, devices.to_host(rows.codes)
    n_clusters = np.diff(rows.offsets)
    checks.check_memory(
        2 * rows.n_rows * int(n_clusters.max() + 1) * np.dtype(np.uint16).itemsize,
        devices.memory_budget(rows.device),
        f"the labels around {rows.n_rows:,} objects in {n_clusters.max():,} clusters",
        "leave out clusterings with very many clusters",
    )
    edges, shares, expected = graph.as_edges(), [], []
    for column, k in zip(codes.T, n_clusters, strict=True):
        first, second = column[edges.first], column[edges.second]
        labelled = (first != ensemble.missing_code) & (second != ensemble.missing_code)
        apart, joined = np.bincount((first == second)[labelled], edges.weights[labelled], 2)
        shares.append(joined / (apart + joined) if labelled.any() else np.nan)
        sizes = np.bincount(column[column != ensemble.missing_code], minlength=k)
        expected.append(int((sizes * sizes).sum()) / max(int(sizes.sum()), 1) ** 2)
    arrays = [rows.xp.asarray(array) for array in (graph.starts, graph.heads, graph.weights.astype(np.float32))]
    result = Joins(ensemble.names, np.array(shares), np.array(expected), np.zeros(len(shares), dtype=np.int64))
    for m in np.flatnonzero(~np.isnan(result.coherence)):
        result.steps[m] = _supported_steps(rows, arrays, m, expected[m])
    return result


def _supported_steps(rows: Rows, graph: list[Any], m: Any, expected: float) -> int:
    """Return the number of steps before the first one after which a clustering's shares are below `SUPPORTED`."""
    xp, codes = rows.xp, rows.codes[:, m]
    objects = xp.flatnonzero(codes != rows.ensemble.missing_code)
    label_of = codes[objects].astype(np.int64)
    shares, gaps = shares_at_start(rows, m, m + 1)
    for step in range(1, MOST_STEPS + 1):
        shares = walk_step(*graph, shares, device=rows.device)
        label_shares = shares[objects, label_of].astype(np.int64)
        if gaps:
            labelled_shares = xp.maximum(shares[objects, -1], 1).astype(np.float64)
            label_shares = xp.rint(label_shares / labelled_shares * ONE).astype(np.int64)
        mean = int(label_shares.sum()) / (ONE * len(objects))  # sums of whole numbers are equal on every device
        if _correct_for_chance(mean, expected) < LEAST_SHARE:
            return step - 1
    return MOST_STEPS


def _correct_for_chance(share: Any, expected: Any) -> np.ndarray:
    """Return (share - expected) / (1 - expected), NaN where 1 is expected."""
    share, expected = np.asarray(share), np.asarray(expected)
    return np.divide(share - expected, 1 - expected, out=np.full(share.shape, np.nan), where=expected < 1)
