"""Shares of objects in clusters, entry by entry: an object in several clusters of a clustering has a share in each.

Overlapping communities and long tables with several lines of an object and a clustering give such shares. Those of an
object in a clustering sum to 1: its weights there, divided by their sum, or 1 / n in each of n clusters.
"""

from typing import Any, NamedTuple

import numpy as np

TAKERS = "gpuens.SCEC, gpuens.align or gpuens.modes"  # methods and functions of clusterings with shares


class Shares(NamedTuple):
    """A clustering by shares: ``values[e]`` is the share of object ``rows[e]`` in cluster ``codes[e]``."""

    rows: np.ndarray  # (n_entries,), int64
    codes: np.ndarray  # (n_entries,), int64
    values: np.ndarray  # (n_entries,), float64
    categories: np.ndarray  # (k,), the label value of each cluster, ascending

    @classmethod
    def of_entries(
        cls, rows: np.ndarray, codes: np.ndarray, categories: np.ndarray, weights: np.ndarray | None = None
    ) -> "Shares":
        """Return the shares of objects ``rows`` (n,) in clusters ``codes`` (n,); an entry with code -1 does not count.

        Without ``weights`` (n,), an object has equal shares in its clusters, and equal entries count once; with them,
        the weights of equal entries are added.
        """
        labelled, k = np.flatnonzero(codes >= 0), len(categories)
        entries = rows[labelled].astype(np.int64) * k + codes[labelled]
        order = np.argsort(entries, kind="stable")
        entries = entries[order]
        starts = np.flatnonzero(np.append(True, entries[1:] != entries[:-1])[: len(entries)])
        sums = np.ones(len(starts)) if weights is None else np.add.reduceat(weights[labelled[order]], starts)
        members, codes = np.divmod(entries[starts], k)
        return cls(members, codes, sums / np.bincount(members, sums)[members], categories)

    @property
    def overlap(self) -> bool:
        """Whether an object is in several clusters."""
        return bool((self.rows[1:] == self.rows[:-1]).any())

    @property
    def n_clusters(self) -> int:
        return len(self.categories)

    def write(self, matrix: np.ndarray) -> np.ndarray:
        """Write the memberships into a matrix (n_objects, k) of zeros; return the mask of the objects without a share.

        The rows of these objects are uniform.
        """
        missing = np.ones(len(matrix), dtype=bool)
        missing[self.rows] = False
        matrix[self.rows, self.codes] = self.values
        matrix[missing] = 1.0 / self.n_clusters
        return missing


def check_weights(weights: Any, source: str) -> np.ndarray:
    """Return the column of shares of a table as float64; refuse others than finite numbers from 0 on."""
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"{source} has other values than numbers as shares; name a column of numbers.") from None
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{source} has the share {numbers[row].item():g} in row {row} (rows are counted from 0); shares are finite "
            "numbers from 0 on."
        )
    return numbers
