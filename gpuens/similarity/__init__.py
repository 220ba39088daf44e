"""The similarities of the field, as cluster-level matrices S: objects are as similar as B S Bᵀ says."""

from gpuens.contingency import entropy
from gpuens.similarity.coassociation import coassociation, eci, eci_from_entropy, lwca
from gpuens.similarity.coupled import coupled_clusters, coupled_objects, coupled_operator
from gpuens.similarity.neighborhood import common_neighbors

__all__ = [
    "coassociation",
    "common_neighbors",
    "coupled_clusters",
    "coupled_objects",
    "coupled_operator",
    "eci",
    "eci_from_entropy",
    "entropy",
    "lwca",
]
