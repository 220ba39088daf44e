"""How sure each object is of its cluster: mean similarities to the members of clusters, by look-up.

With C(x, y) the share of the clusterings in which x and y are together (a missing label is together with none), the sum
of C(x, y) over the members y of a cluster is a sum over the labels of x. No pair of objects is visited.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens import device as devices
from gpuens.evidence.given import given
from gpuens.rows import Rows
from gpuens.similarity import Coassociation


class Objects(NamedTuple):
    """Evidence for each object, three arrays (n_objects,), float64.

    Attributes
    ----------
    item_consensus
        The mean of C over the other members of the object's cluster, from 0 to 1; NaN for the only member.
    margin
        By how much the item consensus exceeds the largest mean of C over the members of another cluster; NaN for the
        only member of a cluster, and without another cluster.
    silhouette
        That of the distance 1 - C, from -1 to 1; 0 for the only member; NaN without another cluster.
    """

    item_consensus: np.ndarray
    margin: np.ndarray
    silhouette: np.ndarray


def objects(labels: Any, consensus: Any, *, device: str = "auto") -> Objects:
    """Return the evidence that the base clusterings give for each object's label in a consensus.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    consensus : array (n_objects,)
        A label for every object.
    device : {"auto", "cpu", "cuda", "emulated"}

    Raises
    ------
    ValueError, TypeError
        For a consensus of another length, or one that leaves objects without a label.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.objects([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2]], [0, 0, 0, 1, 1])
    >>> found.item_consensus.tolist()
    [0.75, 0.75, 0.5, 1.0, 1.0]
    >>> found.silhouette.tolist()
    [0.75, 0.75, 0.5, 1.0, 1.0]
    """
    return of_rows(*given(labels, consensus, device))


def of_rows(rows: Rows, consensus: np.ndarray) -> Objects:
    """Return the evidence for rows and the labels of a consensus (G,), 0 … k - 1; an entry for each row."""
    members = np.bincount(consensus, weights=rows.counts)
    similarity = Coassociation()(rows)
    sums = similarity.sums(rows, consensus)
    step = max(256, devices.scratch(rows.device) // (32 * len(members)))
    found = np.empty((3, rows.n_rows))
    for start in range(0, rows.n_rows, step):
        some = slice(start, start + step)
        piece = rows.take(some)
        totals = sums(piece) / similarity.scale
        found[:, some] = _evidence(totals, similarity.of_equal_rows(piece), consensus[some], members)
    return Objects(*found)


def _evidence(totals: np.ndarray, own: np.ndarray, labels: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the evidence from the sums of C to each cluster (G, k), and C of each object with itself (G,)."""
    each = np.arange(len(labels))
    others = members[labels] - 1
    alone = others == 0
    inside = np.where(alone, np.nan, (totals[each, labels] - own) / np.maximum(others, 1))
    means = totals / members
    means[each, labels] = -1.0
    best = means.max(axis=1)
    if len(members) == 1:
        best[:] = np.nan
    within, between = 1.0 - inside, 1.0 - best
    larger = np.maximum(within, between)
    silhouette = np.where(larger > 0, (between - within) / np.where(larger > 0, larger, 1.0), 0.0)
    silhouette[np.isnan(best)] = np.nan
    silhouette[alone & ~np.isnan(best)] = 0.0
    return inside, inside - best, silhouette
