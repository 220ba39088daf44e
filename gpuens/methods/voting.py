"""Voting: base clusterings vote for labels that they share, or that are matched to those of a reference."""

from typing import Any

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.methods.shared_names import SharedNames
from gpuens.partition import NamedVotes, Partitioner, Votes
from gpuens.partition.naming import count_votes
from gpuens.runtime import device as devices


class Voting(SharedNames):
    """Voting of the clusterings: an object gets the label with most votes; a missing label has no vote.

    With ``vocabulary="shared"`` the clusterings are answers of annotators or programs that take their names from one
    list, such as cell types. Then clusters are not matched, and the labels of the consensus are names.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: the number that
        `gpuens.evidence.suggestion` gives. Not for a shared vocabulary.
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
    ties : {"unknown", "first", "error"}
        For a shared vocabulary, the label if several names have most votes: "Unknown" (-1 if names are numbers); the
        name given by the first clustering that gives one of them; or ValueError.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None means core groups, an exact reduction. Objects
        outside a sample are labelled by the votes of their clusters.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`. For a shared vocabulary, labels are names (n_objects,): an object array of texts, with
        "Unknown" for objects without a name, or int64 with -1. `n_clusters_` is the number of names among them.
    membership_ : array (n_objects, n_clusters), float64
        Shares of the votes for each object; the largest share is the confidence of its label. All shares are equal if
        there is no vote. Columns are in the order of `classes_` for a shared vocabulary.
    classes_ : ndarray (n_names,)
        Only for a shared vocabulary, as are the next six: all names with a vote, ascending.
    cluster_names_ : ndarray (n,)
        The labels in use, in the order of the clusters in `evidence`, by size.
    confidence_ : array (n_objects,), float64
        The share of votes for the name with most votes; 0 without a vote.
    tied_ : ndarray (n_objects,), bool
        Whether several names have most votes.
    n_ties_, n_unanswered_ : int
        Numbers of objects with a tie, and without any vote.
    agreement_ : gpuens.evidence.Annotators
        For each name, which clusterings agree with the consensus, and with each other. Computed on first access.
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

    Three annotators who share their names:

    >>> answers = [["T", "B", "B", "NK"], ["T", "B", "T", "unknown"], ["T", "NK", "?", None]]
    >>> est = ge.Voting(vocabulary="shared").fit(answers)
    >>> est.labels_.tolist(), est.confidence_.round(2).tolist(), est.n_ties_
    (['T', 'B', 'Unknown', 'NK'], [1.0, 0.67, 0.5, 1.0], 1)
    """

    cost = "G M k"
    voting: str = "plurality"
    reference: Any = None
    max_iter: int = 10
    ties: str = "unknown"
    useless_with_names = ("voting", "reference")

    def _parts(self) -> tuple[None, Partitioner]:
        if self._shares_names:
            return None, NamedVotes(self.ties)
        return None, Votes(self.voting, self.reference, self.max_iter, self.random_state)

    def _codes_of_names(self, rows: Rows) -> np.ndarray:
        return count_votes(rows).chosen(self.ties)

    @property
    def tied_(self) -> np.ndarray:
        certainty = self._partition_of_names("tied_").certainty or {}
        tied = (certainty["margin"] == 0) & (certainty["confidence"] > 0)
        return devices.to_host(self.reduction_.look_up(tied))
