"""Median: the partition with the smallest expected loss to the clusterings, with any number of clusters."""

from gpuens.methods.base import Seeded
from gpuens.partition import MedianSearch, Partitioner


class Median(Seeded):
    """Median partition: minimise the mean loss to all clusterings; the loss also chooses the number of clusters.

    For draws of a Bayesian mixture model, the result is the point estimate of least posterior expected loss. Partitions
    are found by allocation of the rows in random order and from the clusterings themselves, and improved by moves of
    rows, merges, and new allocation of whole clusters while the loss falls. For up to 8 distinct label rows, all
    partitions are tried. A sweep over the rows costs O(G M k), always on the host; equal clusterings count as one with
    a weight. An object without a label is alone in that clustering.

    Parameters
    ----------
    n_clusters : int, optional
        Exactly so many clusters, at most the number of distinct label rows. None: the number with the smallest loss.
    loss : {"binder", "vi", "omari"}
        "binder": pairs of objects on which partition and clustering disagree, divided by N² (Mirkin's distance).
        "vi": the variation of information, in bits; it has fewer small clusters. "omari": one minus the adjusted Rand
        index.
    a : float in [0, 2]
        The cost of putting apart what is together in a clustering; the reverse costs 2 - a. A larger `a` gives fewer
        clusters. Not for "omari".
    max_clusters : int, optional
        The most clusters without `n_clusters`. None: 256, or the number of clusters of the largest clustering if it is
        larger, with a warning if so many are found.
    n_init : int
        Number of starts; up to half of them are clusterings, the most frequent first. Above 4,000 rows, starts use
        4,000 objects, drawn with replacement, and the best start continues on all rows, until at most one row in
        200 moves in a sweep.
    max_iter : int
        The most sweeps over all rows in a start.
    link_penalty : float > 0, optional
        λ of `fit(labels, must_link=…, cannot_link=…)`, see Notes. None: more than any loss, 2, or 2 log2 N for "vi".
    random_state : int, None or numpy.random.Generator
        For starts and orders; the same seed gives the same labels, on every device and with any number of threads.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None means core groups, which move as a whole; this
        loses nothing unless labels are missing. Objects outside a sample go where they raise the loss least.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.
    objective_ : float
        The mean loss to the clusterings, with all objects of the rows.
    n_iter_ : int
        Number of sweeps.
    converged_ : bool
    n_violated_links_ : int
        Only with links: the number of cannot-links within clusters.

    Notes
    -----
    With links, objects joined by must-links move together, and the search minimises

        mean loss + λ |{cannot-links within a cluster}|

    With the default λ, a cannot-link is violated only where the search finds no place to which its objects can move,
    as with a small `n_clusters`. `objective_` is the mean loss alone.

    References
    ----------
    Dahl, Johnson & Müller, "Search algorithms and loss functions for Bayesian clustering", Journal of Computational and
    Graphical Statistics 31 (2022) 1189-1201.
    Wade & Ghahramani, "Bayesian cluster analysis: point estimation and credible balls", Bayesian Analysis 13 (2018)
    559-626.
    Fritsch & Ickstadt, "Improved criteria for clustering based on the posterior similarity matrix", Bayesian Analysis 4
    (2009) 367-391.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.Median(loss="vi").fit(labels)
    >>> est.labels_.tolist(), round(est.objective_, 3)
    ([0, 0, 0, 1, 1, 1], 0.486)
    >>> est.fit(labels, cannot_link=[[4, 5]]).labels_.tolist(), est.n_violated_links_
    ([0, 0, 0, 1, 1, 2], 0)
    """

    cost = "G M k"
    on_gpu = "all but the last step"
    loss: str = "binder"
    a: float = 1.0
    max_clusters: int | None = None
    n_init: int = 16
    max_iter: int = 100
    link_penalty: float | None = None

    def _parts(self) -> tuple[None, Partitioner]:
        return None, MedianSearch(
            self.loss, self.a, self.max_clusters, self.n_init, self.max_iter, self.random_state, self.link_penalty
        )
