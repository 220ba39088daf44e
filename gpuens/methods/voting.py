"""Voting: base clusterings vote for labels, after their clusters are matched to those of a reference clustering."""

from typing import Any

from gpuens.methods.base import Consensus
from gpuens.partition import Partitioner, Votes


class Voting(Consensus):
    """Voting of the clusterings: an object gets the label with most votes; a missing label has no vote.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: the number that
        `gpuens.evidence.spectrum` supports best.
    voting : {"plurality", "soft"}
        "plurality": clusters are matched one to one by the Hungarian method, and surplus clusters to the cluster of
        largest overlap. "soft": votes are divided in proportion to the overlaps (cumulative voting), for clusterings of
        unequal k.
    reference : optional
        The name of a clustering with `n_clusters` clusters, to which the others are first matched. None: the clustering
        of `n_clusters` clusters with the highest mean NMI to all others, or, without such a clustering, the result of
        k-means in label space (QMI).
    max_iter : int
        Most rounds. The result of a round is the reference of the next round, until it no longer changes.
    random_state : int, None or numpy.random.Generator
        For k-means in label space; the same seed gives the same labels, on every device.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None means core groups, an exact reduction. Objects
        outside a sample are labelled by the votes of their clusters.
    device : {"auto", "cpu", "cuda"}

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.
    membership_ : array (n_objects, n_clusters), float64
        Shares of the votes for each object; the largest share is the confidence of its label. All shares are equal if
        there is no vote.
    reference_clustering_ : object
        The name of the first reference, or None for k-means in label space.
    n_iter_ : int
    converged_ : bool

    References
    ----------
    Strehl & Ghosh, "Cluster ensembles", JMLR 3 (2002) 583-617; Ayad & Kamel, "Cumulative voting consensus method for
    partitions with variable number of clusters", IEEE TPAMI 30 (2008) 160-173.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], ["a", "a", "b", "b", "b", None]]
    >>> est = ge.Voting(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), est.membership_.max(axis=1).round(2).tolist()
    ([0, 0, 0, 1, 1, 1], [1.0, 1.0, 0.67, 1.0, 1.0, 1.0])
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        voting: str = "plurality",
        reference: Any = None,
        max_iter: int = 10,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.voting, self.reference, self.max_iter = n_clusters, voting, reference, max_iter
        self.random_state, self.reduction, self.device = random_state, reduction, device

    def _parts(self) -> tuple[None, Partitioner]:
        return None, Votes(self.voting, self.reference, self.max_iter, self.random_state)
