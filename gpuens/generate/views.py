"""The input of one k-means of an ensemble: drawn objects with drawn features, possibly projected."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.runtime import device as devices


class Draws(NamedTuple):
    """The settings of the random draws of each clustering: how many objects, features and projected dimensions."""

    n_objects: int
    n_features: int
    n_drawn: int
    n_seen: int
    projection: int | None

    def of(self, rng: np.random.Generator) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
        """Draw the rows, the columns and the projection of one clustering.

        Rows or columns are None if all are used. The directions of the projection are None if there is no projection.
        """
        rows, columns = _draw_subset(rng, self.n_objects, self.n_drawn), _draw_subset(rng, self.n_features, self.n_seen)
        if self.projection is None:
            return rows, columns, None
        return rows, columns, rng.standard_normal((self.n_seen, self.projection)) / np.sqrt(self.projection)

    @property
    def n_dimensions(self) -> int:
        """The number of dimensions of the points: of drawn features, or of the dimensions of their projection."""
        return self.projection or self.n_seen

    @property
    def copied(self) -> bool:
        """Whether the points must be copied, because they are not rows of the features."""
        return self.n_seen < self.n_features or self.projection is not None


def _draw_subset(rng: np.random.Generator, n: int, size: int) -> np.ndarray | None:
    """Draw ``size`` of the numbers 0 … n - 1; return them in ascending order, or None if all are drawn."""
    return None if size == n else np.sort(rng.choice(n, size, replace=False, shuffle=False))


class View(NamedTuple):
    """The features of all objects, dense or sparse, in their own memory, and the draws of one clustering."""

    X: Any
    rows: np.ndarray | None
    columns: np.ndarray | None
    directions: np.ndarray | None

    @property
    def n_drawn(self) -> int:
        """The number of drawn objects, to which k-means is fitted."""
        return self.X.shape[0] if self.rows is None else len(self.rows)

    @property
    def sparse(self) -> bool:
        """Whether the points are sparse, which means that the features are sparse and not projected."""
        return hasattr(self.X, "tocsr") and self.directions is None

    def at(self, picks: Any) -> Any:
        """Return the points (n, q) of some of the drawn objects.

        ``picks`` are positions among the drawn objects, or a slice of these positions.
        """
        rows = picks if self.rows is None else self.rows[picks]
        return self._as_drawn(self.X[rows if isinstance(rows, slice) else self._to_device_of_X(rows)])

    def between(self, start: int, stop: int) -> Any:
        """Return the points of the objects ``start`` … ``stop`` - 1, whether they are drawn or not."""
        return self._as_drawn(self.X[start:stop])

    def _as_drawn(self, points: Any) -> Any:
        if self.columns is not None:  # points[:, columns] of an array is not C-contiguous and would be copied again
            columns = self._to_device_of_X(self.columns)
            points = points.take(columns, axis=1) if isinstance(points, np.ndarray) else points[:, columns]
        return (
            points if self.directions is None else points @ self._to_device_of_X(self.directions.astype(points.dtype))
        )

    def _to_device_of_X(self, values: np.ndarray) -> Any:
        return devices.move(values, devices.kind_of(self.X))
