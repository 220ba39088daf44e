"""LIMBO: agglomerative clustering in which each merge loses the least information about labels."""

from gpuens.methods.base import Method
from gpuens.partition import InformationBottleneck, Partitioner


class LIMBO(Method):
    """Agglomerative clustering whose merges lose the least information about the labels of the objects.

    This is LIMBO with φ = 0. Its first phase gives the distinct label rows. These are merged into ``n_clusters``
    clusters, and then each object goes to the cluster with the least loss. All pairs of distinct rows are stored; for
    more than 5,000 rows use ``reduction=CATree()`` or ``Sample(…)``. A missing label is not counted.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        Device of the assignment of objects; merging runs on the host.

    Attributes
    ----------
    losses_ : ndarray (n_rows - n_clusters,), float64
        The loss of each merge in bits: information about the label of an object in a random clustering.
    labels_, n_clusters_, reduction_
        See `gpuens.Consensus`.

    References
    ----------
    Andritsos, Tsaparas, Miller & Sevcik, "LIMBO: scalable clustering of categorical data", EDBT 2004.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.LIMBO(n_clusters=2).fit(labels)
    >>> est.labels_.tolist(), est.losses_.round(3).tolist()
    ([0, 0, 0, 1, 1, 1], [0.153, 0.153])
    """

    cost = "G²"
    on_gpu = "the reduction"

    def _parts(self) -> tuple[None, Partitioner]:
        return None, InformationBottleneck()
