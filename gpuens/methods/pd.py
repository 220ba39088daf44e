"""PD: local search for the partition with the smallest sum of Mirkin distances to all clusterings."""

from gpuens.methods.base import Seeded
from gpuens.partition import MirkinSearch, Partitioner


class PD(Seeded):
    """Partition difference: minimise the number of pairs of objects on which consensus and clusterings disagree.

    The search starts at the result of k-means in label space (QMI), and moves one row at a time while this lowers the
    objective. A sweep over the rows costs O(G M k), always on the host. No cluster loses its last row. For rows in
    pieces, the search uses 20,000 random objects; then all rows move at once while this lowers the objective.

    Parameters
    ----------
    n_init : int
        Number of starts of k-means.
    max_iter : int
        The most sweeps over all rows.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``; None means core groups, which move as a whole.

    Attributes
    ----------
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.
    objective_ : float
        Σ_r [n_r² - (2/M) Σ_c n_rc²]: the mean Mirkin distance to the clusterings, minus a constant.
    n_iter_ : int
        Number of sweeps.
    converged_ : bool

    References
    ----------
    Li, Ogihara & Ma, "On combining multiple clusterings: an overview and a new perspective", Applied Intelligence 33
    (2010) 207-219.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.PD(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), round(est.objective_, 3)
    ([0, 0, 0, 1, 1, 1], -12.667)
    """

    cost = "G M k"
    on_gpu = "all but the last step"
    n_init: int = 5
    max_iter: int = 100

    def _parts(self) -> tuple[None, Partitioner]:
        return None, MirkinSearch(self.n_init, self.max_iter, self.random_state)
