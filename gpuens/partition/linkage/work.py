"""Counters of the work that a linkage does."""

from dataclasses import dataclass


@dataclass
class Work:
    """Counters of label comparisons, searches over all regions, and rounds."""

    comparisons: int = 0
    searches: int = 0
    rounds: int = 0

    def add(self, rounds: int, searches: int, comparisons: int) -> None:
        self.rounds += rounds
        self.searches += searches
        self.comparisons += comparisons
