"""How a similarity becomes a partition. A partitioner receives S, never a method's name."""

from gpuens.partition.average import Work, average_linkage
from gpuens.partition.dendrogram import Dendrogram

__all__ = ["Dendrogram", "Work", "average_linkage"]
