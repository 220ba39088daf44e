"""The task of one set of landmarks, which lists the clusterings to be made from the set."""

from typing import NamedTuple

import numpy as np


class LandmarkTask(NamedTuple):
    """The clusterings to be made from one set of landmarks."""

    rng: np.random.Generator
    n_clusters: int  # number of clusters of the transfer cut
    # number of clusters and largest Gini index for Genie; if it is None, there is no clustering by Genie
    genie: tuple[int, float] | None = None

    @property
    def n_clusterings(self) -> int:
        return 1 if self.genie is None else 2
