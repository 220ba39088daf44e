"""Counters of the work of a linkage."""

from dataclasses import dataclass


@dataclass
class Work:
    """Counters of label comparisons, searches over all regions, and rounds."""

    comparisons: int = 0
    searches: int = 0
    rounds: int = 0
