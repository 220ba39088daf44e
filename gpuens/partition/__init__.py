"""How a similarity becomes a partition. A partitioner receives S, never a method's name."""

from gpuens.partition.average import average_linkage
from gpuens.partition.complete import complete_linkage
from gpuens.partition.dendrogram import Dendrogram
from gpuens.partition.label_kmeans import LabelKMeans, label_kmeans, squared_euclidean
from gpuens.partition.meta_clustering import MetaClustering, meta_clustering
from gpuens.partition.metis import metis
from gpuens.partition.rock import Rock, rock
from gpuens.partition.single import single_linkage
from gpuens.partition.soft_correspondence import SoftCorrespondence, soft_correspondence
from gpuens.partition.transfer_cut import embedding, transfer_cut
from gpuens.partition.work import Work

__all__ = [
    "Dendrogram",
    "LabelKMeans",
    "MetaClustering",
    "Rock",
    "SoftCorrespondence",
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
