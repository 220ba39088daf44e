"""Average linkage with links: must-link groups merge before all others, and cannot-linked clusters never merge.

A cannot-link is a similarity of -∞, which unions inherit, so that rounds of reciprocal nearest neighbours stay exact
(kernels/cpu/linkage/links.h). At similarity 0, each cluster in the order of its first row joins the first cluster that
the cannot-links allow.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpuens.labels.rows import Rows
from gpuens.partition.base import DIAGONAL
from gpuens.partition.linkage.average import constrained_merges
from gpuens.partition.linkage.dendrogram import Dendrogram, Work
from gpuens.partition.linkage.partitioners import AverageLinkage, CutTree
from gpuens.runtime.native import cpu


class ConstrainedDendrogram(Dendrogram):
    """The merge list of a linkage with links.

    The first merges are those of must-links, at similarity 1 or the largest similarity. The last merges join the
    ``fewest_clusters`` clusters that cannot-links keep apart, at similarity 0. ``most_clusters`` is the number of
    clusters after the merges of must-links.
    """

    def __init__(self, kept: np.ndarray, absorbed: np.ndarray, similarities: np.ndarray) -> None:
        must, apart = similarities == np.inf, similarities == -np.inf
        self.most_clusters = len(kept) + 1 - int(np.count_nonzero(must))
        self.fewest_clusters = 1 + int(np.count_nonzero(apart))
        largest = max(1.0, similarities[~must].max(initial=1.0))
        super().__init__(kept, absorbed, np.where(must, largest, np.where(apart, 0.0, similarities)))

    def refuse_fewer(self, n_clusters: int) -> None:
        """Raise ValueError for fewer clusters than cannot-links allow."""
        if n_clusters < self.fewest_clusters:
            raise ValueError(
                f"n_clusters={n_clusters}, but cannot_link allows no merge of the last {self.fewest_clusters} "
                f"clusters; ask for at least {self.fewest_clusters} clusters, or leave out cannot-links."
            )


@dataclass
class ConstrainedTree(CutTree):
    """A partition from the cut of a dendrogram with links."""

    def cut(self, n_clusters: int, similarity: Any, rows: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the labels (G,) of the rows for another number of clusters, which the links must allow."""
        self.dendrogram.refuse_fewer(n_clusters)
        rows.refuse_more(n_clusters)
        return super().cut(n_clusters, similarity, rows)


class ConstrainedLinkage(AverageLinkage):
    """Average linkage of `LinkedRows` under a diagonal S; parameters are those of `AverageLinkage`."""

    takes: ClassVar[tuple[str, ...]] = DIAGONAL

    @classmethod
    def of(cls, linkage: Any) -> "ConstrainedLinkage":
        """Return the linkage with links, with the parameters of an `AverageLinkage`."""
        return cls(linkage.distance_threshold)

    def refuse_too_many(self, rows: Any, n_clusters: int, kind: str) -> None:
        if not self._fewer_will_do:
            rows.refuse_more(n_clusters)
        super().refuse_too_many(rows, n_clusters, kind)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> CutTree:
        return ConstrainedTree(**vars(super().__call__(similarity, rows, n_clusters)))

    def _n_merges(self, dendrogram: Any, n_large: np.ndarray, n_clusters: int | None) -> int:
        fewest = dendrogram.fewest_clusters
        if n_clusters is not None:
            if self._fewer_will_do:
                n_clusters = min(max(n_clusters, fewest), dendrogram.most_clusters)
            dendrogram.refuse_fewer(n_clusters)
        return min(super()._n_merges(dendrogram, n_large, n_clusters), dendrogram.n_leaves - fewest)

    def _link(self, similarity: Any, rows: Any, work: Work) -> Dendrogram:
        return ConstrainedDendrogram(*constrained_merges(rows, similarity, cpu.Links(*rows.links()), work))
