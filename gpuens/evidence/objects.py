"""The certainty of each object's cluster, computed from the object's mean similarity to the members of each cluster.

C(x, y) is the share of the clusterings in which x and y are together. The number of matches of x with all members y of
a cluster is a sum over the labels of x, and so is the mean logarithm of the `lifts`. Both sums are looked up in tables,
so that pairs of objects are not visited.

Confidence is near 1 for most objects, although many of their labels are wrong. Certainty is confidence on the scale of
errors: its odds are the square root of the odds of confidence, divided by `ODDS_OF_ERRORS`. On sets with known classes
this is the share of right labels (bench/results/confidence.md), whereas the effect of item consensus or of the margin
depends on the kind of base clusterings.

Both kinds of tables are made from one table of counts (`overlaps`). Dense ones are looked up for each label of an
object (`dense_objects`); sparse ones are multiplied (`sparse_objects`), which takes 4 times as long for 10⁶ objects,
20 clusterings and 10 clusters, and half the time for 10⁵ objects and 1,000 clusters.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuens.evidence.dense_objects import DenseTables
from gpuens.evidence.inputs import CONVENTIONS, read_consensus
from gpuens.evidence.overlaps import Overlaps
from gpuens.evidence.sparse_objects import SparseTables
from gpuens.labels.rows import Rows
from gpuens.runtime import checks

ODDS_OF_ERRORS = 2.0  # odds of a wrong label at a confidence of one half


class Objects(NamedTuple):
    """Evidence for each object: arrays (n_objects,), float64.

    Item consensus, margin and entropy are NaN for the only member of a cluster.

    Attributes
    ----------
    item_consensus
        The mean of C over the other members of the object's cluster, from 0 to 1.
    margin
        The item consensus minus the largest mean of C over the members of another cluster; NaN without another cluster.
    silhouette
        The silhouette for the distance 1 - C, from -1 to 1; 0 for the only member; NaN without another cluster.
    confidence
        The support of the clusterings for the object's label, compared with all labels, from 0 to 1. A clustering
        supports a label by its lift: the factor by which the label is more frequent in the object's base cluster than
        among all objects, where the object itself is replaced by a random object. The lift of a label is the geometric
        mean over the clusterings; confidence is the share of the object's own label in the sum of all lifts. An only
        member has confidence 1 / k if all clusterings leave the object alone, and less if they put it with others.
        Confidence orders the objects by their risk, see `certainty`.
    entropy
        The normalised entropy of the means of C over the members of each cluster, taken as shares of their sum: 0 if
        one cluster has everything, 1 if all have the same.
    certainty
        Calibrated confidence, √c / (√c + 2 √(1 - c)) for a confidence of c, from 0 to 1. On data with known classes and
        the right number of clusters, it is the share of right labels, on average over data sets. Single sets can be far
        from it, because clusterings that share a mistake support it like the truth. If labels are names by vote, it is
        the share of the votes.
    """

    item_consensus: np.ndarray
    margin: np.ndarray
    silhouette: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray

    @property
    def certainty(self) -> np.ndarray:
        odds = np.sqrt(self.confidence), ODDS_OF_ERRORS * np.sqrt(1.0 - self.confidence)
        return odds[0] / (odds[0] + odds[1])


class VotedObjects(Objects):
    """Evidence for objects with names by vote, whose confidence is the share of the votes."""

    __slots__ = ()

    @property
    def certainty(self) -> np.ndarray:
        return self.confidence


def objects(labels: Any, consensus: Any, *, missing: str = "zero", device: str = "auto") -> Objects:
    """Return the evidence that the base clusterings give for each object's label in a consensus.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    consensus : array (n_objects,)
        A label for every object.
    missing : {"zero", "ignore"}
        "zero": C is a share of all clusterings; an object without a label is apart from all others. "ignore": only
        clusterings that label both objects count. The mean of C over the members of a cluster is then Σ matches /
        Σ such clusterings, or 0 without such clusterings. For confidence, a clustering that does not label the object
        is neutral; "ignore" leaves it out of the mean.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For a consensus of another length, or a consensus with unlabelled objects.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.objects([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2]], [0, 0, 0, 1, 1])
    >>> found.item_consensus.tolist()
    [0.75, 0.75, 0.5, 1.0, 1.0]
    >>> found.silhouette.tolist()
    [0.75, 0.75, 0.5, 1.0, 1.0]
    >>> ge.evidence.objects([[0, 0, 1, 1], [0, 1, 1, 1]], [0, 0, 1, 1]).confidence.round(3).tolist()
    [0.634, 0.436, 0.634, 0.634]
    """
    checks.check_choice(missing, "missing", CONVENTIONS)
    rows, codes = read_consensus(labels, consensus, device)
    return measure_objects(Overlaps.of(rows, codes), rows, codes, missing)


class NewObjects(NamedTuple):
    """Evidence for the labels of new objects, which were not among the objects of the fit.

    Attributes
    ----------
    labels : ndarray (n_objects,), int64
        The labels that `predict` returns, in the numbering of the fit.
    objects : Objects
        The same evidence as for objects of the fit, but with means over all members of a cluster.
    """

    labels: np.ndarray
    objects: Objects


def measure_objects(
    overlaps: Overlaps, rows: Rows, labels: np.ndarray, missing: str = "zero", *, new: bool = False
) -> Objects:
    """Return the evidence for the labels (G,) of rows, by their similarity to the clusters of the ``overlaps``.

    ``new`` says that the objects of ``rows`` are not members of these clusters.
    """
    tables = (DenseTables if overlaps.dense else SparseTables)(overlaps, missing)
    return Objects(*tables.evidence(rows, labels, new=new))
