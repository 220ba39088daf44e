"""Similarities from the literature as matrices S of clusters: the similarity of objects is B S Bᵀ / M."""

from gpuens.contingency.entropies import entropy
from gpuens.similarity.agreement import Agreement, AgreementLinks, weac_weights
from gpuens.similarity.base import Measure, Similarity
from gpuens.similarity.blocks import Blocks
from gpuens.similarity.coassociation import (
    LWCA,
    Coassociation,
    coassociation,
    eci,
    eci_from_entropy,
    lwca,
)
from gpuens.similarity.coupled import Coupled, coupled_clusters
from gpuens.similarity.dense_representation import DenseRepresentation
from gpuens.similarity.diagonal import Diagonal
from gpuens.similarity.full import Full
from gpuens.similarity.links import Jaccard, Links, links
from gpuens.similarity.mapping import Mapping, mapping_coefficients
from gpuens.similarity.neighborhood import CommonNeighbors, LabelNeighbors
from gpuens.similarity.observed import ObservedCoassociation
from gpuens.similarity.propagated import Propagated, propagated
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.refined_paths import RefinedPaths
from gpuens.similarity.trajectories import Trajectories, trajectories

# similarities by the names that `gpuens.Consensus` and the command line accept
SIMILARITIES = {
    "agreement": Agreement,
    "coassociation": Coassociation,
    "common-neighbors": CommonNeighbors,
    "coupled": Coupled,
    "jaccard": Jaccard,
    "links": Links,
    "lwca": LWCA,
    "mapping": Mapping,
    "propagated": Propagated,
    "trajectories": Trajectories,
}

__all__ = [
    "LWCA",
    "SIMILARITIES",
    "Agreement",
    "AgreementLinks",
    "Blocks",
    "Coassociation",
    "CommonNeighbors",
    "Coupled",
    "DenseRepresentation",
    "Diagonal",
    "Full",
    "Jaccard",
    "LabelNeighbors",
    "Links",
    "Mapping",
    "Measure",
    "ObservedCoassociation",
    "Propagated",
    "RefinedPaths",
    "Similarity",
    "Trajectories",
    "coassociation",
    "coupled_clusters",
    "eci",
    "eci_from_entropy",
    "entropy",
    "links",
    "lwca",
    "mapping_coefficients",
    "propagated",
    "rank_correlation",
    "trajectories",
    "weac_weights",
]


def __dir__() -> list[str]:
    return sorted(__all__)
