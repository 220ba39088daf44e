"""The similarities of the field, as cluster-level matrices S: objects are as similar as B S Bᵀ says."""

from gpuens.contingency import entropy
from gpuens.similarity.coassociation import coassociation, eci, eci_from_entropy, lwca
from gpuens.similarity.coupled import coupled_clusters, coupled_objects, coupled_operator
from gpuens.similarity.mapping import mapping_coefficients
from gpuens.similarity.neighborhood import common_neighbors
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.revised import revised_coassociation, revised_operator

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
    "mapping_coefficients",
    "rank_correlation",
    "revised_coassociation",
    "revised_operator",
]
