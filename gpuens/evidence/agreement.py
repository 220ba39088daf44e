"""Agreement of a consensus with the base clusterings, from the intersections of their clusters."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.scores import nmi_of_cells
from gpuens.evidence.inputs import read_consensus
from gpuens.evidence.overlaps import Overlaps
from gpuens.runtime.native import cpu


class Agreement(NamedTuple):
    """Agreement of a consensus with each base clustering, computed from the objects that the base clustering labels.

    Attributes
    ----------
    nmi, ecs, ari, wallace : ndarray (n_clusterings,), float64
        The mutual information, normalised by the geometric mean of the entropies; the element-centric similarity; the
        adjusted Rand index; and the adjusted Wallace index, which is 1 if the consensus cuts through no base cluster,
        and 0 on average by chance.
    n_labelled : ndarray (n_clusterings,), int64
        Number of objects that the clustering labels.
    """

    nmi: np.ndarray
    ecs: np.ndarray
    ari: np.ndarray
    wallace: np.ndarray
    n_labelled: np.ndarray

    @property
    def anmi(self) -> float:
        """The mean NMI, weighted by the number of labelled objects (Strehl & Ghosh, JMLR 3 (2002), eq 5)."""
        return float(np.average(self.nmi, weights=self.n_labelled))

    @property
    def mean_ecs(self) -> float:
        """The mean element-centric similarity, weighted by the number of labelled objects."""
        return float(np.average(self.ecs, weights=self.n_labelled))

    @property
    def mean_ari(self) -> float:
        """The mean adjusted Rand index, weighted by the number of labelled objects."""
        return float(np.average(self.ari, weights=self.n_labelled))

    @property
    def mean_wallace(self) -> float:
        """The mean adjusted Wallace index, weighted by the number of labelled objects."""
        return float(np.average(self.wallace, weights=self.n_labelled))


def agreement(labels: Any, consensus: Any, *, device: str = "auto") -> Agreement:
    """Return the agreement of a consensus with each base clustering.

    The element-centric similarity (Gates et al., Scientific Reports 9 (2019)) of an object whose clusters are A and B
    is |A ∩ B| / max(|A|, |B|). The element-centric similarity of two clusterings is the mean over the objects. The
    adjusted Wallace index (Severiano et al., PLoS ONE 6 (2011)) is (w - e) / (1 - e), where w is the share of the pairs
    of objects of one base cluster that the consensus leaves together, and e is the same share of all pairs.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    consensus : array (n_objects,)
        A label for every object.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For a consensus of another length, or a consensus with unlabelled objects.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.agreement([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, None, 1]], [0, 0, 1, 1])
    >>> found.nmi.round(3).tolist(), found.ecs.tolist(), round(found.anmi, 3)
    ([1.0, 0.816, 1.0], [1.0, 0.75, 1.0], 0.933)
    >>> found.ari.round(3).tolist(), found.wallace.tolist()
    ([1.0, 0.571, 1.0], [1.0, 1.0, 1.0])
    """
    return measure_agreement(Overlaps.of(*read_consensus(labels, consensus, device)))


def measure_agreement(overlaps: Overlaps) -> Agreement:
    """Return the agreement of a consensus with each base clustering, from the objects that their clusters share."""
    cluster, labels, counts = overlaps.clusters, overlaps.counts.indices.astype(np.int64), overlaps.counts.data
    clustering, n, k = overlaps.clusterings, overlaps.n_clusterings, len(overlaps.sizes)
    labelled = np.bincount(clustering, weights=counts, minlength=n)
    starts = overlaps.counts.indptr[overlaps.offsets].astype(np.int64)
    cells = cpu.Cells(0, 1, starts, cluster - overlaps.offsets[clustering], labels, counts)
    places, place = np.unique(clustering * k + labels, return_inverse=True)
    base_sizes, part_sizes = np.bincount(cluster, weights=counts), np.bincount(place, weights=counts)
    larger = np.maximum(base_sizes[cluster], part_sizes[place])
    sums = np.bincount(clustering, weights=counts * (counts / larger), minlength=n)
    ecs = np.divide(sums, labelled, out=np.full(n, np.nan), where=labelled > 0)
    clustering_of = np.repeat(np.arange(n), np.diff(overlaps.offsets))[: len(base_sizes)]
    groups = (clustering, counts), (clustering_of, base_sizes), (places // k, part_sizes)
    # numbers of ordered pairs of objects in one cell, in one base cluster and in one consensus cluster
    in_cells, in_base, in_consensus = (np.bincount(m, weights=size * (size - 1), minlength=n) for m, size in groups)
    share = in_consensus / np.maximum(1.0, labelled * (labelled - 1))
    beyond = in_cells - share * in_base
    ari = _divide_pairs(beyond, (in_base + in_consensus) / 2 - share * in_base)
    wallace = _divide_pairs(beyond, in_base - share * in_base)
    return Agreement(nmi_of_cells(cells), ecs, ari, wallace, labelled.astype(np.int64))


def _divide_pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, and 1 where both are 0: without any pair of objects on which clusterings could differ."""
    return np.divide(a, b, out=np.ones(len(a)), where=b != 0)
