"""Lists of landmarks, joined into one array for all objects."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.runtime import device as devices

POINTS_OF_A_LIST = 1024  # number of points that use the same copy of the list of all landmarks


class LandmarkLists(NamedTuple):
    """Lists of landmarks in one array: list b is ``ids[begins[b] : begins[b + 1]]``."""

    ids: Any
    begins: Any

    @classmethod
    def of(cls, lists: list[np.ndarray]) -> "LandmarkLists":
        return cls(np.concatenate(lists), np.concatenate([[0], np.cumsum([len(members) for members in lists])]))

    @classmethod
    def of_all(cls, n_landmarks: int, n_points: int) -> "LandmarkLists":
        """Return several copies of the list of all landmarks, one copy for each `POINTS_OF_A_LIST` points.

        The points that use one copy are one piece of work for a thread.
        """
        return cls.of([np.arange(n_landmarks)] * -(-n_points // POINTS_OF_A_LIST))

    def on(self, device: str) -> "LandmarkLists":
        xp = devices.namespace(device)
        return LandmarkLists(xp.asarray(self.ids), xp.asarray(self.begins))
