"""What the methods of the CCE framework share: coupled similarities, and labels of objects outside a sample by them."""

from functools import partial
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.methods.base import Consensus, SimilaritySums
from gpuens.partition.meta_clustering import association, check_n_meta_clusters, meta_clustering, shares
from gpuens.partition.metis import graph_fits
from gpuens.reduction import Reduction
from gpuens.scattered import Pieces, intersections
from gpuens.similarity.coupled import Blocks, coupling, coupling_of
from gpuens.similarity.neighborhood import Neighborhoods, check_threshold


class CoupledConsensus(Consensus):
    """Base of the methods that go by the coupled similarity of clusters and objects (CCSC, IaOSO).

    Attributes (after ``fit``)
    --------------------------
    coupling_ : list of M ndarrays (k_m, k_m), float64
        The coupled similarity of the clusters of each clustering, see `gpuens.similarity.coupled_clusters`.
    """

    weights: Any

    def _couple(self, reduced: Reduction, device: str) -> Blocks:
        blocks = coupling(reduced.ensemble, reduced.weights, self.weights, device=device)
        self.coupling_ = blocks.matrices()
        return blocks

    def _couple_in_pieces(self, rows: Pieces, layout: str = "auto") -> tuple[Blocks, Any]:
        """Return the coupling, and the cluster intersections that it was worked out from."""
        shared = intersections(rows, layout=layout)
        blocks = coupling_of(shared, rows.numbering.offsets, self.weights)
        self.coupling_ = blocks.matrices()
        return blocks, shared

    def _times_similarity(self, held: np.ndarray, reduced: Reduction, device: str) -> np.ndarray:
        ends = reduced.ensemble.offsets[1:-1]
        own = zip(self.coupling_, np.split(held, ends), strict=True)
        return np.concatenate([matrix @ part for matrix, part in own])


class NeighborhoodConsensus(CoupledConsensus):
    """Base of the methods that go by common neighbours (CCOSO).

    Attributes (after ``fit``)
    --------------------------
    theta_ : float
        From which IaOSO on two objects were neighbours.
    """

    theta: float | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_threshold(self.theta)

    def _neighborhoods(self, reduced: Reduction, blocks: Blocks, device: str) -> Neighborhoods:
        near = Neighborhoods(reduced.ensemble, reduced.weights, blocks, self.theta, device=device)
        self.theta_ = near.theta
        return near

    def _common_neighbor_sums(self, reduced: Reduction, labels: np.ndarray, device: str) -> SimilaritySums:
        """Return what sums the CCOSO of any rows to the members of each cluster, (rows, k), host.

        Neighbours are those in the sample: a member y and the object share those neighbours z of y that are the
        object's too, so the sum runs over the object's neighbours z and the number of members that each neighbours.
        """
        near = Neighborhoods(reduced.ensemble, reduced.weights, Blocks.of(self.coupling_), self.theta_, device=device)
        k = int(labels.max()) + 1
        codes = devices.namespace(device).asarray(labels.astype(np.uint32))[:, None]
        members = np.empty((len(labels), k), dtype=np.int64)
        for rows, bits in near.pieces(bytes_each=16 * k):
            members[rows] = devices.to_host(near.counts_in(rows, bits, codes, np.array([0, k])))
        members *= reduced.weights[:, None]

        def sums_of(rows: Ensemble) -> np.ndarray:
            pieces = near.pieces(rows.codes_on(device), bytes_each=16 * k)
            return np.concatenate([devices.to_host(near.sums(bits, members)) for _, bits in pieces]) / near.n_objects

        return sums_of


class MetaClusterConsensus(Consensus):
    """Base of the methods that cluster the clusters of all clusterings and give each object to one of the results.

    Attributes (after ``fit``)
    --------------------------
    meta_clusters_ : ndarray (N_c,), int64
        The meta-cluster, and so the label, of each cluster of the ensemble; -1 of one without objects (in a sample).
    membership_ : array (n_objects, k), float64
        How much each object is associated with each of the k meta-clusters that were asked for: the share of the
        meta-cluster's clusters that hold it, scaled to sum 1. A row's largest entry says how sure its label is (of
        objects outside a sample too, though similarity gave them theirs). It is
        where `labels_` are.
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weights: Any = None,
        imbalance: float = 0.03,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = weights
        self.imbalance = imbalance
        self.random_state = random_state
        self.reduction = reduction
        self.device = device

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_real(self.imbalance, "imbalance", above=0.0)
        checks.make_generator(self.random_state)

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        n_vertices = int(np.count_nonzero(reduced.ensemble.sizes))
        check_n_meta_clusters(self._k, n_vertices)
        graph_fits(n_vertices, self._k)
        found = meta_clustering(
            reduced.ensemble,
            self._similarity_of_clusters(reduced, device),
            reduced.weights,
            self._k,
            imbalance=self.imbalance,
            random_state=self.random_state,
            device=device,
        )
        self.meta_clusters_, self._device = found.clusters, device
        return found.labels

    def _similarity_of_clusters(self, reduced: Reduction, device: str) -> np.ndarray:
        """Return how similar the clusters of the ensemble are, (N_c, N_c), host."""
        raise NotImplementedError

    @property
    def membership_(self) -> Any:
        reduction = self.reduction_  # AttributeError before fit, as scikit-learn expects
        of_objects = reduction.of_rows(partial(_membership, self.meta_clusters_, self._k, self._device))
        return of_objects if devices.chunked(of_objects) else devices.move(of_objects, devices.kind_of(self.labels_))


def _membership(meta_clusters: np.ndarray, n_clusters: Any, device: str, rows: Ensemble) -> np.ndarray:
    return shares(association(rows, meta_clusters, n_clusters, device=device))
