"""EM: a mixture of multinomials over the labels."""

from gpuens.methods.base import Seeded
from gpuens.partition import Mixture, Partitioner


class EM(Seeded):
    """Mixture of multinomials: each cluster of the consensus draws the labels of its objects independently.

    Missing labels are left out of the likelihood. An iteration costs O(G M k).

    Parameters
    ----------
    n_clusters : int, optional
        Number of components, at most the number of distinct label rows. None: the number in 2 … 20 with the best
        `criterion`, computed on 10,000 random objects if there are more rows.
    criterion : {"icl", "bic"}
        ICL prefers components that do not overlap. The criterion is used only without `n_clusters`.
    n_init, max_iter : int
        `n_init`: number of starts, of 20 iterations each; half of them begin with softened results of k-means in label
        space (QMI). `max_iter`: most iterations of the best start, which continues. Above 10,000 rows, starts use
        10,000 objects, drawn with replacement, and the best start continues on all objects.
    tol : float
        Iterations end when the log-likelihood per object rises by at most this.
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

    References
    ----------
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
    """

    cost = "G M k"
    criterion: str = "icl"
    n_init: int = 10
    max_iter: int = 100
    tol: float = 1e-4

    def _parts(self) -> tuple[None, Partitioner]:
        return None, Mixture(self.criterion, self.n_init, self.max_iter, self.tol, self.random_state)
