"""What a partitioner is: a similarity and rows go in, a partition of the rows comes out.

A partitioner knows no method and no similarity by name. It says what kinds of similarity it takes, and is called with
one, the rows and the number of clusters wanted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gpuens.rows import Numbered, Rows, Rule

DIAGONAL, CLUSTERS, ANY = ("diagonal",), ("diagonal", "blocks", "full"), ("diagonal", "blocks", "full", "pairs")


@dataclass
class Partition:
    """What a partitioner found.

    Attributes
    ----------
    labels : ndarray (G,), int64, or None
        Of the rows, 0 … n_clusters - 1 with none left out; None of rows in pieces.
    n_clusters : int
    rule : callable or None
        From any rows to their labels. None: other rows go to the cluster that they are most similar to.
    found : dict
        What was learned on the way, by the name of an estimator's attribute without its underscore.
    membership : callable or None
        From any rows to how sure each cluster is of them, (G, k).
    """

    labels: np.ndarray | None
    n_clusters: int
    rule: Rule | None = None
    found: dict[str, Any] = field(default_factory=dict)
    membership: Callable[[Rows], np.ndarray] | None = None

    @classmethod
    def of_rule(cls, rule: Numbered, labels: np.ndarray | None, **found: Any) -> "Partition":
        """Return what `gpuens.rows.numbered` gives as a partition; the rule is needed where there are no labels."""
        return cls(labels, rule.n_labels, rule=rule if labels is None else None, found=found)

    @classmethod
    def of_labels(cls, labels: np.ndarray, **found: Any) -> "Partition":
        return cls(labels, int(labels.max()) + 1, found=found)


class Partitioner:
    """Base of the partitioners, whose parameters are checked when they are made.

    Attributes
    ----------
    takes : tuple of str
        The kinds of similarity that it can take, see `gpuens.similarity.base.Similarity`.
    any_sign : bool
        Whether similarities may be negative.
    learns_by_sums : bool
        Whether rows may be in pieces.
    chooses_n_clusters : bool
        Whether it can do without a number of clusters.
    bytes_each_pair : int
        That it holds for each ordered pair of rows.
    """

    takes: ClassVar[tuple[str, ...]] = ANY
    any_sign: ClassVar[bool] = False
    learns_by_sums: ClassVar[bool] = False
    chooses_n_clusters: ClassVar[bool] = False
    bytes_each_pair: ClassVar[int] = 0

    def check(self, n_clusters: Any, *, any_sign: bool = False) -> None:
        """Refuse parameters that do not go with a number of clusters, or with similarities of any sign."""

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        """Refuse rows whose partition by a similarity of a kind does not fit the memory budget, before any work."""

    def __call__(self, similarity: Any, rows: Rows, n_clusters: Any) -> Partition:
        raise NotImplementedError
