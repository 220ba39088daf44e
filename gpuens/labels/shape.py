"""The shape of labels that have not been read, and the number of distinct label rows that a sample of them suggests."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gpuens.labels.codes import codes_dtype

ASSUMED_CLUSTERS = 30  # number of clusters of each clustering before its labels are read
NEARLY_ALL = 0.9  # share of distinct rows from which on the estimate by a sample is too rough to tell it from 1
SAMPLE_BLOCKS, BLOCK_ROWS = 256, 256  # blocks of a sample of rows, and consecutive rows in each block


class LabelShape(NamedTuple):
    """The sizes of base clusterings, and the memory that reading them takes."""

    n_objects: int
    n_clusterings: int
    n_clusters: Sequence[int] | None = None  # number of clusters of each clustering; None before the labels are read
    n_rows: int | None = None  # number of distinct label rows; None before the labels are read
    read_bytes: int = 0  # largest number of bytes that reading takes beside the codes
    mapped_bytes: int = 0  # bytes of a mapped file, which the system can drop when memory is short
    sample: Callable[[], np.ndarray] | None = None  # function that returns a sample of the label rows

    @property
    def clusters(self) -> np.ndarray:
        """The number of clusters of each clustering (M,), known or assumed."""
        return np.full(self.n_clusterings, ASSUMED_CLUSTERS) if self.n_clusters is None else np.array(self.n_clusters)

    @property
    def code_bytes(self) -> int:
        """The bytes of one code."""
        return int(np.dtype(codes_dtype(int(self.clusters.max()))).itemsize)

    @property
    def distinct(self) -> int:
        """The number of distinct label rows; before the labels are read, the number of objects."""
        return self.n_objects if self.n_rows is None else self.n_rows

    def with_rows_of_sample(self) -> "LabelShape | None":
        """Return the shape with the number of distinct rows that a sample suggests, or None without a sample.

        Two objects of G equally frequent rows have the same row with probability (N / G - 1) / (N - 1). If the
        frequencies differ, this probability is larger and the estimate too small. An estimate near N counts as N.
        """
        if self.sample is None:
            return None
        rows = np.ascontiguousarray(self.sample())
        _, counts = np.unique(rows.view(np.dtype((np.void, rows[0].nbytes))), return_counts=True)
        equal_pairs = float((counts * (counts - 1.0)).sum()) / max(1, len(rows) * (len(rows) - 1))
        estimate = 1 / (equal_pairs + 1 / self.n_objects)
        return self._replace(n_rows=None if estimate > NEARLY_ALL * self.n_objects else max(1, round(estimate)))

    def __str__(self) -> str:
        return f"{self.n_objects:,} objects and {self.n_clusterings:,} clusterings"


def sample_blocks(n_objects: int) -> list[tuple[int, int]]:
    """Return (start, stop) of evenly spaced blocks of consecutive rows; a single block of all rows if they are few."""
    if n_objects <= 4 * SAMPLE_BLOCKS * BLOCK_ROWS:
        return [(0, n_objects)]
    starts = np.linspace(0, n_objects - BLOCK_ROWS, SAMPLE_BLOCKS).astype(np.int64)
    return [(start, start + BLOCK_ROWS) for start in starts.tolist()]


def sample_rows(labels: np.ndarray) -> np.ndarray:
    """Return the rows of the sample's blocks of an array (n_objects, n_clusterings)."""
    return np.concatenate([labels[start:stop] for start, stop in sample_blocks(len(labels))])
