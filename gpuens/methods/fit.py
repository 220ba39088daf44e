"""The result of a fit, which labels rows and objects, cuts the tree of a linkage and gives the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpuens.evidence import Evidence, NewObjects
from gpuens.evidence.cophenetic import correlate_average_linkage
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.frames import is_frame, without_columns
from gpuens.labels.rows import Numbered, Rows, Rule, by_first_row
from gpuens.labels.weights import integer_unit
from gpuens.methods.parts import Parts
from gpuens.partition.base import MostSimilar, Partition
from gpuens.partition.linkage.constrained import ConstrainedTree
from gpuens.partition.linkage.contiguous import ContiguousTree
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.partition.linkage.partitioners import AverageLinkage, CutTree
from gpuens.reduction import Reduction, core_groups
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array
from gpuens.similarity.base import ClusterSimilarity, Similarity


class Learned(NamedTuple):
    """A partition of rows, the similarity on which it rests, and further results by name."""

    partition: Partition
    similarity: Similarity | None
    results: dict[str, Any]


@dataclass(eq=False)
class Fit:
    """A reduction, the partition of its rows, and the similarity on which the partition rests.

    Attributes
    ----------
    method : str
        The name of the estimator's class.
    parts : Parts
    reduction : Reduction
    learned : Learned
        The partition (its clusters numbered by size after `number_by_size`), the similarity, and further results.
    weighted : bool
        Whether the objects have weights; then, a count of 1 in the rows is a weight of ``parts.unit``.
    missing : {"zero", "ignore"}
        The default treatment of missing labels in `evidence`.
    device : {"auto", "cpu", "cuda"}
        The device for new objects.
    left_out : sequence
        Columns of a DataFrame without labels.
    membership_of_objects : ndarray (n_objects, k) or None
        Memberships that are not those of the objects' rows.
    """

    method: str
    parts: Parts
    reduction: Reduction
    learned: Learned
    weighted: bool = False
    missing: str = "zero"
    device: str = "auto"
    left_out: Sequence[Any] = ()
    membership_of_objects: np.ndarray | None = None
    clusters: Array = field(default=None, init=False)  # the number of each object's cluster
    _evidence: Evidence | None = field(default=None, init=False)

    @property
    def partition(self) -> Partition:
        return self.learned.partition

    @property
    def similarity(self) -> Similarity:
        """The similarity; an AttributeError if the partition was made of labels alone."""
        if self.learned.similarity is None:
            raise AttributeError(f"this {self.method} has no similarity_, because it uses labels alone.")
        return self.learned.similarity

    @property
    def results(self) -> dict[str, Any]:
        """The results for the estimator, by the names of its attributes without the final underscore."""
        unit = {"weight_unit": self.parts.unit} if self.weighted else {}
        return self.learned.results | self.partition.results | unit

    # --- labels -------------------------------------------------------------------------------------------------------

    def number_by_size(self) -> None:
        """Number the clusters by size, and label all objects."""
        reduction, partition = self.reduction, self.partition
        rule = None if reduction.covers_all else self.rule
        numbers, clusters = reduction.by_size(partition.labels, partition.n_clusters, rule, weighted=self.weighted)
        self.renumber(numbers)
        self.clusters = devices.give_back(clusters, reduction.ensemble.device_kind)

    def renumber(self, numbers: np.ndarray) -> None:
        """Replace the number c of each cluster by ``numbers[c]`` (k,), also in the results of the partitioner."""
        self.learned = self.learned._replace(partition=self.partition.renumbered(numbers))

    @property
    def rule(self) -> Rule:
        """The rule that labels rows that did not occur in the fit."""
        partition = self.partition
        if partition.rule is None:
            partition.rule = self._most_similar(devices.to_host(partition.labels), partition.rest)
        return partition.rule

    def _most_similar(self, labels: np.ndarray, rest: np.ndarray | None) -> Rule:
        """Return the rule that labels rows by the most similar of the clusters ``labels`` (G,) of the rows of the fit.

        It sums similarities in the order of the clusters' first rows, so that the order of the objects has no
        influence on rounding or ties.
        """
        by_row, reduction = by_first_row(labels), self.reduction
        numbers = np.empty(int(by_row.max()) + 1, dtype=np.int64)
        numbers[by_row] = labels
        rule = MostSimilar.of(self.similarity, reduction.rows, by_row, rest, reduction.label_by)
        return Numbered(rule, numbers, len(numbers))

    def labels_of(self, rows: Rows) -> np.ndarray:
        """Return the number of each row's cluster (G,), host; rows of the fit keep their cluster."""
        if (row_labels := self.partition.labels) is None:
            return self.rule(rows)
        places = self.reduction.find(rows)
        unknown = np.flatnonzero((places < 0) | (places >= len(row_labels)))
        labels: np.ndarray = devices.to_host(row_labels)[np.minimum(places, len(row_labels) - 1)]
        if len(unknown):
            labels[unknown] = self.rule(rows.take(unknown))
        return labels

    def refuse_soft(self, reason: str) -> None:
        """Raise TypeError after a fit of soft clusterings or of answers in long form, which have no label rows."""
        if not isinstance(self.reduction.ensemble, Ensemble):
            raise TypeError(f"{reason}, but fit was given {self.reduction.ensemble.form}; use membership_ instead.")

    def encode(self, X: Any) -> tuple[Reduction, str]:
        """Return the core groups of new objects in the numbering of the fit, and the kind of memory of their labels."""
        self.refuse_soft("predict takes labels")
        if self.left_out and is_frame(X):
            X = without_columns(X, self.left_out)
        shape, n_clusterings = tuple(getattr(X, "shape", ())), self.reduction.ensemble.n_clusterings
        if len(shape) == 1:
            raise ValueError(
                f"labels must be 2-D, (n_objects, n_clusterings), but have shape {shape}; Reshape your data, one "
                "object being labels.reshape(1, -1)."
            )
        if len(shape) == 2 and shape[1] != n_clusterings:
            raise ValueError(
                f"X has {shape[1]} features, but {self.method} is expecting {n_clusterings} features as input: the "
                "clusterings of fit, in their order."
            )
        ensemble = self.reduction.ensemble.encoded(X)
        kind = ensemble.device_kind
        return core_groups(Rows(ensemble, device=devices.resolve(self.device, kind))), kind

    def predict(self, X: Any) -> Array:
        """Return the number of each new object's cluster (n_objects,), in the memory of X."""
        groups, kind = self.encode(X)
        return devices.give_back(self.labels_of(groups.rows)[devices.to_host(groups.row_of)], kind)

    # --- evidence -----------------------------------------------------------------------------------------------------

    @property
    def whole_unit(self) -> int | None:
        """The weight of a count of 1, or None if the weights have fractions."""
        return integer_unit(self.parts.unit)

    def lacks_evidence(self) -> str | None:
        """Return the reason why there is no evidence, or None if there is evidence."""
        if not isinstance(self.reduction.ensemble, Ensemble):
            return f"evidence needs labels, but fit was given {self.reduction.ensemble.form}; use membership_ instead."
        if self.whole_unit is None:
            return (
                "evidence compares an object with all others, copies of itself included, and needs whole numbers as "
                "sample_weight, but fit was given fractions; scale and round them."
            )
        if devices.chunked(self.clusters):
            return (
                "evidence needs labels in memory, but those of this fit are in chunks; give gpuens.evidence.Evidence "
                "the labels of some objects and their consensus."
            )
        return None

    def evidence(self, X: Any = None, missing: str | None = None) -> Evidence | NewObjects:
        """Return the evidence for the labels, or for those of new objects ``X``."""
        if (reason := self.lacks_evidence()) is not None:
            raise TypeError(reason)
        missing = self.missing if missing is None else missing
        if self._evidence is None or self._evidence.missing != missing:
            groups = self.reduction.groups()
            row_of, labels = devices.to_host(groups.row_of), np.empty(groups.n_rows, dtype=np.int64)
            labels[row_of] = devices.to_host(self.clusters)
            self._evidence = Evidence.of_groups(
                groups.rows, labels, row_of, missing, self.partition.certainty, self.whole_unit or 1
            )
        if X is None:
            return self._evidence
        groups, _ = self.encode(X)
        return self._evidence.describe_new(groups.rows, self.labels_of(groups.rows), groups.row_of)

    @property
    def confidence(self) -> Array:
        """The confidence of each object's label (n_objects,), in the memory of the labels."""
        if (reason := self.lacks_evidence()) is not None:
            raise AttributeError(f"this {self.method} has no confidence_: {reason}")
        if "confidence" in (certainty := self.partition.certainty or {}):
            confidence = self.reduction.look_up(certainty["confidence"])
            return devices.give_back(confidence, self.reduction.ensemble.device_kind)
        evidence = self.evidence()
        return devices.give_back(evidence.objects.confidence, devices.home_of(self.clusters))

    @property
    def gives_membership(self) -> bool:
        """Whether there is `membership`, as the method says."""
        membership = self.partition.membership if self.membership_of_objects is None else self.membership_of_objects
        return self.parts.gives_membership and membership is not None

    @property
    def membership(self) -> Array:
        """The shares of each object in the clusters (n_objects, k)."""
        membership = self.membership_of_objects
        if membership is None:
            if self.partition.membership is None:
                raise AttributeError(f"this {self.method} has no membership_.")
            membership = self.reduction.of_rows(self.partition.membership)
        return devices.give_back(membership, devices.home_of(self.clusters))

    # --- trees of linkages --------------------------------------------------------------------------------------------

    def tree(self, name: str) -> CutTree:
        """Return the cut tree; ``name`` is the attribute in an error message."""
        if not isinstance(self.partition, CutTree):
            raise AttributeError(f"this {self.method} has no {name}, because no linkage was fitted.")
        return self.partition

    @property
    def rest(self) -> Array:
        """The mask of the objects in branches that are too small (n_objects,)."""
        rest = self.tree("rest_").rest
        if rest is None:
            rest = _none_of(self.reduction.rows)
        return devices.give_back(self.reduction.expand(rest, _none_of), devices.home_of(self.clusters))

    def cut(self, n_clusters: int, name: str) -> tuple[np.ndarray, Array]:
        """Return the labels (G,) of the rows and those (n_objects,) of all objects at another cut of the tree."""
        reduction = self.reduction
        labels, rest = self.tree(name).cut(n_clusters, self.similarity, reduction.rows)
        rule = None if reduction.covers_all else self._most_similar(labels, rest)
        numbers, clusters = reduction.by_size(labels, int(labels.max()) + 1, rule, weighted=self.weighted)
        return numbers[labels], clusters

    @cached_property
    def _dendrogram_of_objects(self) -> Dendrogram:
        return self.tree("children_").expand(devices.to_host(self.reduction.row_of))

    def dendrogram_of_objects(self, name: str) -> Dendrogram:
        """Return the merges of all objects; ``name`` is the attribute in an error message."""
        self.tree(name)
        if not self.reduction.covers_all:
            raise AttributeError(
                f"{name} is the merge list of all objects, but this dendrogram belongs to a sample; use dendrogram_, "
                "whose leaves are the rows of reduction_.ensemble."
            )
        return self._dendrogram_of_objects

    def cophenetic_correlation(self) -> float:
        """Return the correlation of cophenetic similarities and similarities over all pairs of objects."""
        name, tree = "cophenetic_correlation()", self.partition
        if isinstance(tree, ContiguousTree):
            raise AttributeError(f"{name} needs heights that are means over all pairs, but those of a graph are not.")
        if isinstance(tree, ConstrainedTree):
            raise AttributeError(f"{name} needs heights that are means over all pairs, but those of links are not.")
        if not isinstance(tree, CutTree) or not isinstance(self.parts.partitioner, AverageLinkage):
            raise AttributeError(f"this {self.method} has no {name}, because no average linkage was fitted.")
        if self.reduction.groups() is not self.reduction:
            raise AttributeError(f"{name} describes all objects, but this dendrogram belongs to a sample.")
        if not isinstance(self.similarity, ClusterSimilarity):
            raise AttributeError(f"{name} needs means over all pairs, but missing='ignore' uses ratios of sums.")
        return correlate_average_linkage(self.reduction.rows, self.similarity, tree.dendrogram, tree.self_similarities)


def _none_of(rows: Rows) -> np.ndarray:
    return np.zeros(len(rows), dtype=bool)
