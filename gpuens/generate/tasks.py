"""The clusterings that one set of landmarks is to give."""

from typing import NamedTuple

import numpy as np


class Task(NamedTuple):
    """The clusterings by one set of landmarks."""

    rng: np.random.Generator
    n_clusters: int  # clusters of the transfer cut
    genie: tuple[int, float] | None = None  # its number of clusters and largest Gini index

    @property
    def n_clusterings(self) -> int:
        return 1 if self.genie is None else 2
