"""Partitioners turn a similarity into a partition of rows. They receive a similarity, never the name of a method."""

from gpuens.partition.annotators import AnnotatorModel
from gpuens.partition.base import Partition, Partitioner
from gpuens.partition.bottleneck import InformationBottleneck
from gpuens.partition.hypergraph import HypergraphCut
from gpuens.partition.label_kmeans import Divergence, LabelKMeans, label_kmeans, squared_euclidean
from gpuens.partition.linkage.average import average_linkage
from gpuens.partition.linkage.complete import complete_linkage
from gpuens.partition.linkage.dendrogram import Dendrogram, Work
from gpuens.partition.linkage.partitioners import AverageLinkage, CompleteLinkage, EvenLinkage, SingleLinkage
from gpuens.partition.linkage.single import single_linkage
from gpuens.partition.median import MedianSearch
from gpuens.partition.medoids import Medoids
from gpuens.partition.meta_clustering import MetaClusters, meta_clustering
from gpuens.partition.metis import METIS, BipartiteMETIS, NearestMETIS, metis
from gpuens.partition.mirkin import MirkinSearch
from gpuens.partition.mixture import Mixture
from gpuens.partition.naming import NamedVotes
from gpuens.partition.rock import ROCK, Rock, rock
from gpuens.partition.soft_correspondence import SoftCorrespondence, soft_correspondence
from gpuens.partition.spectral import NormalizedCut, Spectral
from gpuens.partition.transfer_cut import MeanTransferCut, TransferCut, embedding, transfer_cut
from gpuens.partition.utilities import SpectralKMeans, UtilityKMeans
from gpuens.partition.voting import BestBase, Votes

# partitioners by the names that `gpuens.Consensus` and the command line accept
PARTITIONERS = {
    "average": AverageLinkage,
    "complete": CompleteLinkage,
    "label-kmeans": LabelKMeans,
    "meta-clusters": MetaClusters,
    "metis": METIS,
    "pam": Medoids,
    "rock": ROCK,
    "single": SingleLinkage,
    "spectral": Spectral,
    "transfer-cut": TransferCut,
}

__all__ = [
    "METIS",
    "PARTITIONERS",
    "ROCK",
    "AnnotatorModel",
    "AverageLinkage",
    "BestBase",
    "BipartiteMETIS",
    "CompleteLinkage",
    "Dendrogram",
    "Divergence",
    "EvenLinkage",
    "HypergraphCut",
    "InformationBottleneck",
    "LabelKMeans",
    "MeanTransferCut",
    "MedianSearch",
    "Medoids",
    "MetaClusters",
    "MirkinSearch",
    "Mixture",
    "NamedVotes",
    "NearestMETIS",
    "NormalizedCut",
    "Partition",
    "Partitioner",
    "Rock",
    "SingleLinkage",
    "SoftCorrespondence",
    "Spectral",
    "SpectralKMeans",
    "TransferCut",
    "UtilityKMeans",
    "Votes",
    "Work",
    "average_linkage",
    "complete_linkage",
    "embedding",
    "label_kmeans",
    "meta_clustering",
    "metis",
    "rock",
    "single_linkage",
    "soft_correspondence",
    "squared_euclidean",
    "transfer_cut",
]


def __dir__() -> list[str]:
    return sorted(__all__)
