"""EM: a mixture of multinomials over the labels."""

from typing import Any

import numpy as np

from gpuens.labels.answers import AnswerRows, Answers
from gpuens.labels.rows import Rows
from gpuens.methods.shared_names import SharedNames
from gpuens.partition import AnnotatorModel, Mixture, Partitioner
from gpuens.partition.annotators import likeliest_names


class EM(SharedNames):
    """Mixture of multinomials: each cluster of the consensus draws the labels of its objects independently.

    Missing labels are left out of the likelihood. An iteration costs O(G M k).

    With ``vocabulary="shared"`` it is the model of Dawid & Skene for annotators of unequal skill: the clusters are the
    names, and each annotator has a confusion matrix, the probabilities of her answers for each true name. Annotators
    who answer at random then count for nothing, and one who confuses two names counts for the others. `fit` then also
    takes `gpuens.Answers`, a long table of many annotators.

    Parameters
    ----------
    n_clusters : int, optional
        Number of components, at most the number of distinct label rows. None: the number in 2 … 20 with the best
        `criterion`, computed on 10,000 random objects if there are more rows. Not for a shared vocabulary.
    criterion : {"icl", "bic"}
        ICL prefers components that do not overlap. The criterion is used only without `n_clusters`.
    n_init, max_iter : int
        `n_init`: number of starts, of 20 iterations each; half of them begin with softened results of k-means in label
        space (QMI). `max_iter`: most iterations of the best start, which continues. Above 10,000 rows, starts use
        10,000 objects, drawn with replacement, and the best start continues on all objects.
    tol : float
        Iterations end when the log-likelihood per object rises (for a shared vocabulary, changes) by at most this.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None means core groups, an exact reduction. Objects
        outside a sample go to their most likely component.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.
    membership_ : array (n_objects, n_clusters), float64
        The posterior probabilities; rows sum to 1, and the largest probability is the confidence of the label.
        Components that are the likeliest for no object come last.
    log_likelihood_ : float
        The natural logarithm; no iteration lowers it.
    proportions_ : ndarray (n_clusters,), float64
        The components' shares of the objects.
    scores_ : dict of int to float
        Without `n_clusters`: the criterion of each number of components; larger is better.
    n_iter_ : int
    converged_ : bool
    classes_ : ndarray (k,)
        Only for a shared vocabulary, as are the next six: all names, ascending, in the order of the columns of
        `membership_` and of `proportions_`. `labels_` are names, and "Unknown" (-1 if names are numbers) for objects
        without an answer.
    cluster_names_ : ndarray (n,)
        The labels in use, in the order of the clusters in `evidence`, by size.
    confusions_ : ndarray (M, k, k), float64
        The probability that an annotator gives an answer (last axis) for objects of a true name (axis 1).
    skills_ : DataFrame (M rows)
        For each annotator the number of ``answers``, the ``skill``, which is the probability of a right answer for a
        random object, Σ_c π_c θ_m(c | c), and its 95 % interval, ``low`` and ``high``.
    confidence_ : array (n_objects,), float64
        The probability of the label; 0 without an answer.
    n_unanswered_ : int
        Number of objects without an answer.
    agreement_ : gpuens.evidence.Annotators
        For each name, which clusterings agree with the consensus, and with each other. Computed on first access.

    References
    ----------
    Dawid & Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", JRSS C 28 (1979)
    20-28.
    Topchy, Jain & Punch, "A mixture model for clustering ensembles", SDM 2004.
    Biernacki, Celeux & Govaert, "Assessing a mixture model for clustering with the integrated completed likelihood",
    IEEE TPAMI 22 (2000) 719-725.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [2, 2, 1, 0, 0, 0]]
    >>> est = ge.EM(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), est.proportions_.round(2).tolist()
    ([0, 0, 0, 1, 1, 1], [0.5, 0.5])

    Three careful annotators, and two who always say "T", who would make the vote of the second object a tie:

    >>> careful = [list("TTBNBTNB"), list("TBTNBTNB"), list("TBTNBTBB")]
    >>> est = ge.EM(vocabulary="shared").fit([*careful, ["T"] * 8, ["T"] * 8])
    >>> est.labels_.tolist(), est.skills_["skill"].round(2).tolist()
    (['T', 'B', 'T', 'N', 'B', 'T', 'N', 'B'], [0.74, 0.96, 0.86, 0.42, 0.42])
    """

    cost = "G M k"
    further_forms = (Answers,)
    criterion: str = "icl"
    n_init: int = 10
    max_iter: int = 100
    tol: float = 1e-4

    useless_with_names = ("criterion", "n_init")

    def _parts(self) -> tuple[None, Partitioner]:
        if self._shares_names:
            return None, AnnotatorModel(self.max_iter, self.tol)
        return None, Mixture(self.criterion, self.n_init, self.max_iter, self.tol, self.random_state)

    def _ensemble_of(self, X: Any, wide: bool) -> Any:
        if not isinstance(X, Answers):
            return super()._ensemble_of(X, wide)
        if not self._shares_names:
            raise TypeError("labels are gpuens.Answers, which share a vocabulary; use EM(vocabulary='shared').")
        return X

    def _rows_of(self, ensemble: Answers, device: str) -> Rows:
        return AnswerRows(ensemble)

    def _codes_of_names(self, rows: Rows) -> np.ndarray:
        probabilities = self.fit_.partition.membership
        assert probabilities is not None
        return likeliest_names(probabilities(rows), rows)
