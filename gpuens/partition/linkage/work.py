"""Counters of the work that a linkage does."""

from dataclasses import dataclass


@dataclass
class Work:
    """Counters of label comparisons, searches over all regions, and rounds."""

    comparisons: int = 0
    searches: int = 0
    rounds: int = 0
