"""The task of one set of landmarks: the clusterings to be made from it."""

from typing import NamedTuple

import numpy as np


class LandmarkTask(NamedTuple):
    """The clusterings to be made from one set of landmarks."""

    rng: np.random.Generator
    n_clusters: int  # number of clusters of the transfer cut
    genie: tuple[int, float] | None = (
        None  # number of clusters and largest Gini index of Genie; None: no clusters by Genie
    )

    @property
    def n_clusterings(self) -> int:
        return 1 if self.genie is None else 2
