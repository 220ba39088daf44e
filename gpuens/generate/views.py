"""The objects as one k-means of an ensemble sees them: some of them, by some of their features, in a projection."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.runtime import device as devices


class Draws(NamedTuple):
    """The draws of each clustering: numbers of objects and features, and a projection."""

    n_objects: int
    n_features: int
    n_drawn: int
    n_seen: int
    projection: int | None

    def of(self, rng: np.random.Generator) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
        """Return the rows and columns of one clustering (None: all) and the directions of its projection or None."""
        rows, columns = _some(rng, self.n_objects, self.n_drawn), _some(rng, self.n_features, self.n_seen)
        if self.projection is None:
            return rows, columns, None
        return rows, columns, rng.standard_normal((self.n_seen, self.projection)) / np.sqrt(self.projection)

    @property
    def n_dimensions(self) -> int:
        """The number of features that k-means sees, or of dimensions that these are projected to."""
        return self.projection or self.n_seen

    @property
    def copied(self) -> bool:
        """Whether the points are no rows of the features."""
        return self.n_seen < self.n_features or self.projection is not None


def _some(rng: np.random.Generator, n: int, size: int) -> np.ndarray | None:
    """Return ``size`` of range(n) in ascending order; None for all of them."""
    return None if size == n else np.sort(rng.choice(n, size, replace=False, shuffle=False))


class View(NamedTuple):
    """Features, dense or sparse, where they are, and what one clustering draws (`Draws.of`)."""

    X: Any
    rows: np.ndarray | None
    columns: np.ndarray | None
    directions: np.ndarray | None

    @property
    def n_drawn(self) -> int:
        """The number of objects to fit."""
        return self.X.shape[0] if self.rows is None else len(self.rows)

    @property
    def sparse(self) -> bool:
        """Whether the points are sparse: a projection makes them dense."""
        return hasattr(self.X, "tocsr") and self.directions is None

    def at(self, picks: Any) -> Any:
        """Return the points (n, q) of some of the objects to fit, by their positions or a slice of these."""
        rows = picks if self.rows is None else self.rows[picks]
        return self._seen(self.X[rows if isinstance(rows, slice) else self._there(rows)])

    def between(self, start: int, stop: int) -> Any:
        """Return the points of all objects from ``start`` to ``stop``."""
        return self._seen(self.X[start:stop])

    def _seen(self, points: Any) -> Any:
        if self.columns is not None:  # points[:, columns] of an array is not C-contiguous and would be copied again
            columns = self._there(self.columns)
            points = points.take(columns, axis=1) if isinstance(points, np.ndarray) else points[:, columns]
        return points if self.directions is None else points @ self._there(self.directions.astype(points.dtype))

    def _there(self, values: np.ndarray) -> Any:
        return devices.move(values, devices.kind_of(self.X))
