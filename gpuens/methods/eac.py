"""EAC: linkage on the co-association matrix."""

from typing import Any

from gpuens.methods.base import Linkage
from gpuens.partition import Partitioner
from gpuens.partition.linkage.partitioners import linkage
from gpuens.runtime import checks
from gpuens.similarity import Measure
from gpuens.similarity.coassociation import MEASURES


class EAC(Linkage):
    """Evidence accumulation: average, single or complete linkage of the co-association of objects.

    The similarity S of two objects is the number I of clusterings that put them together, divided by M. The result is
    exact for any number of objects. The N × N matrix is not stored, except for complete linkage.

    Parameters
    ----------
    linkage : {"average", "single", "complete"}
        Complete linkage stores all pairs of distinct rows. It usually ends with dozens of clusters of similarity zero;
        a cut into fewer clusters is arbitrary and causes a warning.
    weights : array (n_clusterings,), optional
        λ: the weight of each clustering, scaled to a mean of 1; equal by default.
    missing : {"zero", "ignore"}
        "zero": an object without a label is apart from all others, and the denominator stays M. "ignore": C of Monti et
        al., a share of only the clusterings that label both objects, for clusterings of samples; see Notes.

    Attributes
    ----------
    labels_, n_clusters_, children_, distances_, lifetimes_, rest_, dendrogram_, reduction_, work_
        See `gpuens.Consensus`.
    n_unobserved_merges_ : int
        Only with missing="ignore", see Notes.

    Notes
    -----
    Similarities are multiples of 1 / M, so ties are frequent. A tie is decided by a fixed hash of the rows' positions
    in the sorted list of distinct rows. So neither the order of the objects nor the device affects the result; the
    order of the clusterings, or of their label values, may affect it.

    With missing="ignore", the average similarity of regions A and B is a ratio of sums over all pairs of their objects,
    Σ_c n_A[c] n_B[c] / Σ_m p_A[m] p_B[m], where n counts the objects in each cluster and p the objects that each
    clustering labels. The ratio of a union is between the ratios of its parts, so average linkage is exact without the
    N × N matrix, but all pairs of distinct rows must be compared. Objects that no clustering labels together have
    similarity 0. `n_unobserved_merges_` counts the merges of such objects only, and a warning says if labels depend on
    these merges. `predict` uses the same ratio.

    "ignore" is better for few and poor clusterings. The adjusted Rand index for 4 planted clusters of 400 objects, mean
    of 20 ensembles of 10, 20 and 50 clusterings (bench/missing_labels.py), is:

    - half of the labels random, 80 % of the objects in each clustering: "ignore" 0.58, 0.83, 0.98; "zero" 0.51, 0.79,
      0.98;
    - half random, 60 % of the objects: "ignore" 0.40, 0.67, 0.92; "zero" 0.18, 0.45, 0.92;
    - a fifth random, 80 % of the objects: both 0.97, 1, 1;
    - a fifth random, 40 % of the objects: "ignore" 0.67, 0.83, 0.99; "zero" 0.78, 0.87, 1.

    "zero" wins the last case because similarities from few labels are uncertain, and "zero" puts them last.

    With ``fit(labels, graph=…)``, only adjacent clusters merge, by the mean over all pairs of their objects; a mean
    over the edges alone is scikit-learn's, with ``connectivity``. All clusters are connected, and they are at least as
    many as the components of the graph. Networks such as citations often give one giant cluster and single objects.

    References
    ----------
    Fred & Jain, "Combining multiple clusterings using evidence accumulation", IEEE TPAMI 27 (2005) 835-850.
    Monti et al., "Consensus clustering: a resampling-based method for class discovery", Machine Learning 52 (2003)
    91-118.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> est = ge.EAC(n_clusters=2).fit(labels)
    >>> est.labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> est.distances_.round(2).tolist()
    [0.0, 0.0, 0.33, 0.33, 0.89]

    Objects 0 and 5 have equal labels, but are no neighbours in a line of six:

    >>> labels = [[0, 0, 1, 1, 0, 0], [0, 0, 1, 2, 0, 0], [0, 0, 1, 1, 0, 1]]
    >>> ge.EAC(n_clusters=3).fit_predict(labels, graph=ge.Graph.grid((1, 6))).tolist()
    [0, 0, 1, 1, 2, 2]

    Objects 2 and 3 must be in one cluster, and 3 and 4 must not:

    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.EAC(n_clusters=2).fit_predict(labels, must_link=[[2, 3]], cannot_link=[[3, 4]]).tolist()
    [0, 0, 0, 0, 1, 1]

    Clusterings of samples of the objects, with None for objects outside a sample:

    >>> labels = [[0, 0, None, 1, 1, None], [0, None, 0, 1, None, 1], [None, 0, 0, None, 1, 1]]
    >>> ge.EAC(n_clusters=2).fit(labels).distances_.round(2).tolist()
    [0.67, 0.67, 0.67, 0.67, 1.0]
    >>> ge.EAC(n_clusters=2, missing="ignore").fit(labels).distances_.round(2).tolist()
    [0.0, 0.0, 0.0, 0.0, 1.0]
    """

    cost = "G² M, usually 2-9 % of it"
    linkage: str = "average"
    weights: Any = None
    missing: str = "zero"

    def _parts(self) -> tuple[Measure, Partitioner]:
        measure = checks.check_choice(self.missing, "missing", MEASURES)
        return MEASURES[measure](self.weights), linkage(self.linkage, self.distance_threshold, self.min_size)
