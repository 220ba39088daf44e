"""LCE: linkage, k-medoids or spectral clustering of objects by link-based similarities of their clusters."""

from gpuens.methods.base import Seeded
from gpuens.partition import Medoids, Partitioner, Spectral
from gpuens.partition.linkage.partitioners import LINKAGES
from gpuens.runtime import checks
from gpuens.similarity import Links, Measure


class LCE(Seeded):
    """Link-based cluster ensemble: clusters are similar if they overlap with the same clusters.

    Average linkage is exact, and stores a number for each distinct row and cluster. Complete linkage and "pam" store
    all pairs of distinct rows. "spectral" is linear in the number of objects; there, an object's similarity to itself
    is its similarity to an object with equal labels (the authors use 1).

    Parameters
    ----------
    measure : {"cts", "asrs", "srs"}
        "cts": connected triples of clusters of one clustering; "asrs": approximate SimRank of all clusters; "srs":
        SimRank of the graph of objects and clusters. See `gpuens.similarity.Links`.
    decay : float in (0, 1]
        The largest similarity of two different clusters.
    post : {"average", "single", "complete", "pam", "spectral"}
        A linkage, k-medoids (CCE's LB-P), or spectral clustering (LB-S).
    min_size : int, float or "auto", optional
        For linkages: least number of objects in a cluster, or least share (0, 1) of all objects. The tree is cut at the
        first level from its top with `n_clusters` branches of this size. Objects in smaller branches (`rest_`) get the
        label of the most similar cluster. "auto": a fifth of the mean size of `n_clusters` clusters, or less if the
        tree has no such cut.
    n_init : int
        For "spectral": number of starts of k-means.

    Attributes
    ----------
    medoids_, objective_
        Only for "pam": the rows of `reduction_` that are medoids, and the sum of the objects' distances to their
        medoids.
    labels_, n_clusters_, children_, distances_, lifetimes_, rest_, dendrogram_, reduction_
        See `gpuens.Consensus`.

    References
    ----------
    Iam-On et al., "A link-based approach to the cluster ensemble problem", IEEE TPAMI 33 (2011) 2396-2409.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> [ge.LCE(2, measure="srs", post=post).fit_predict(labels).tolist() for post in ("average", "pam")]
    [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]]
    """

    cost = "G C, C³"
    measure: str = "cts"
    decay: float = 0.8
    post: str = "average"
    min_size: int | float | str | None = None
    n_init: int = 10

    def _parts(self) -> tuple[Measure, Partitioner]:
        posts: dict[str, Partitioner] = {name: kind(min_size=self.min_size) for name, kind in LINKAGES.items()}
        posts |= {"pam": Medoids(), "spectral": Spectral(self.n_init, self.random_state)}
        post = posts[checks.check_choice(self.post, "post", posts)]
        if self.min_size is not None and self.post not in LINKAGES:
            raise ValueError(f"min_size={self.min_size} is for linkages, but post={self.post!r}; leave it None.")
        return Links(self.measure, self.decay), post
