"""Voting: base clusterings vote for labels that they share, or that are matched to those of a reference."""

import os
from typing import Any, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuens.evidence import Annotators, Evidence, NewObjects
from gpuens.evidence.annotators import compare_annotators
from gpuens.labels.encoding import find_values
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.labels.vocabulary import NO_ANSWER, answer_words, ensemble_of_names, name_codes
from gpuens.methods.base import Seeded
from gpuens.methods.fit import Fit
from gpuens.methods.parts import Parts
from gpuens.partition import NamedVotes, Partition, Partitioner, Votes
from gpuens.partition.naming import count_votes
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array


class Voting(Seeded):
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
    vocabulary : {"own", "shared"}
        "own": each clustering names its clusters in its own way, so that clusters are matched. "shared": equal names
        are equal answers. `voting`, `reference`, `max_iter`, `random_state` and `reduction` are then of no use.
    ties : {"unknown", "first", "error"}
        For a shared vocabulary, the label if several names have most votes: "Unknown" (-1 if names are numbers); the
        name given by the first clustering that gives one of them; or ValueError.
    no_answer : str or list of str
        For a shared vocabulary, words for no answer, in any capitals: a list, or a text with commas between the words.
        They are missing labels, as are empty texts.
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
    vocabulary: str = "own"
    ties: str = "unknown"
    no_answer: str | list[str] = NO_ANSWER

    def _parts(self) -> tuple[None, Partitioner]:
        checks.check_choice(self.vocabulary, "vocabulary", ("own", "shared"))
        if self._shares_names:
            return None, NamedVotes(self.ties)
        return None, Votes(self.voting, self.reference, self.max_iter, self.random_state)

    @property
    def _shares_names(self) -> bool:
        return self.vocabulary == "shared"

    def checked_parts(self) -> Parts:
        parts = super().checked_parts()
        if self._shares_names:
            answer_words(self.no_answer)
            of_no_use = {"n_clusters": None, "voting": "plurality", "reference": None}
            for name, default in of_no_use.items():
                if (value := getattr(self, name)) != default:
                    raise ValueError(
                        f"{name}={checks.shown(value)} is of no use with vocabulary='shared', where names are "
                        "clusters; leave it out."
                    )
            if parts.reduction is not None:
                raise ValueError(
                    "reduction is of no use with vocabulary='shared', whose votes take linear time; leave it out."
                )
        return parts

    # --- a shared vocabulary ------------------------------------------------------------------------------------------

    def _ensemble_of(self, X: Any, wide: bool) -> Ensemble:
        if not self._shares_names:
            return super()._ensemble_of(X, wide)
        return ensemble_of_names(X, self.no_answer, wide=wide)

    def take_fit(self, fit: Fit, ensemble: Any) -> None:
        super().take_fit(fit, ensemble)
        self._agreement: Annotators | None = None
        names = fit.partition.names
        if names is not None:
            kind = devices.home_of(self.labels_)
            self.labels_ = names[devices.to_host(self.labels_)]
            if self.labels_.dtype != object:
                self.labels_ = devices.give_back(self.labels_, kind)
            self.n_clusters_ = int(np.isin(names, self.classes_).sum())

    def predict(self, X: Any) -> Array:
        """Return the label of each object of a label matrix (n_objects, n_clusterings), with the clusterings of fit.

        For a shared vocabulary, the label has most votes among the names known from fit; otherwise, see `Consensus`.
        """
        if not self._shares_names:
            return super().predict(X)
        check_is_fitted(self, "labels_")
        ensemble, _ = self.reduction_.ensemble.encoded_in_part(X)
        codes = count_votes(Rows(ensemble, device=devices.resolve(self.device, ensemble.device_kind))).chosen(self.ties)
        return name_codes(self.classes_, codes, ensemble.device_kind)

    @overload
    def evidence(self, X: None = None, *, missing: str | None = None) -> Evidence: ...

    @overload
    def evidence(self, X: Any, *, missing: str | None = None) -> NewObjects: ...

    def evidence(self, X: Any = None, *, missing: str | None = None) -> Evidence | NewObjects:
        """Return the evidence of the clusterings for the labels, see `Consensus.evidence`.

        For a shared vocabulary, confidence and margin of the objects are shares of votes: of the name with most votes,
        and its lead before the next name. Objects without a name are a cluster. ``X`` is not for a shared vocabulary.
        """
        if X is not None and self._shares_names:
            raise TypeError("X is of no use with vocabulary='shared', whose votes need no fit; fit the new ones.")
        return super().evidence(X, missing=missing)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, see `Consensus.save`; a shared vocabulary is refused, as its votes need no model."""
        if self._shares_names:
            raise TypeError("save is of no use with vocabulary='shared', as votes need no model; fit the new objects.")
        super().save(path)

    @property
    def tied_(self) -> np.ndarray:
        certainty = self._partition_of_names("tied_").certainty or {}
        tied = (certainty["margin"] == 0) & (certainty["confidence"] > 0)
        return devices.to_host(self.reduction_.look_up(tied))

    @property
    def cluster_names_(self) -> np.ndarray:
        names = self._partition_of_names("cluster_names_").names
        assert names is not None
        return names

    @property
    def agreement_(self) -> Annotators:
        partition = self._partition_of_names("agreement_")
        if self._agreement is None:
            positions = find_values(self.cluster_names_, self.classes_)
            self._agreement = compare_annotators(self.reduction_.rows, positions[partition.labels])
        return self._agreement

    def _partition_of_names(self, name: str) -> Partition:
        """Return the partition of a fit with a shared vocabulary."""
        if not hasattr(self, "fit_") or self.fit_.partition.names is None:
            raise AttributeError(f"this Voting has no {name}, which a fit with vocabulary='shared' gives.")
        return self.fit_.partition
