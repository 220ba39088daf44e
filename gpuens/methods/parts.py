"""The parts of a method, its similarity, partitioner and reduction, and refusals of what they cannot do together."""

from typing import Any, NamedTuple

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows
from gpuens.labels.weights import Copies, copies_of
from gpuens.partition import PARTITIONERS, MedianSearch
from gpuens.partition.base import Partitioner
from gpuens.partition.linkage.constrained import ConstrainedLinkage
from gpuens.partition.linkage.contiguous import ContiguousLinkage
from gpuens.partition.linkage.partitioners import AverageLinkage
from gpuens.reduction import CATree, CoreGroups, Reducer, Reduction, Sample, check_reduced, core_groups, reducer
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.options import named
from gpuens.similarity import SIMILARITIES
from gpuens.similarity.base import Measure


class Parts(NamedTuple):
    """The similarity, the partitioner and the reduction of a method, made from its parameters."""

    similarity: Measure | None  # None if the partitioner works directly on labels
    partitioner: Partitioner
    reduction: Reducer | None = None  # None means core groups
    unit: int | float = 1  # weight of a count of 1

    @classmethod
    def of(cls, similarity: Any, partitioner: Any, reduction: Any = None) -> "Parts":
        """Return the parts of names or objects; constructors check the parameters."""
        reduction = None if reduction is None else reducer(reduction)
        return cls(
            None if similarity is None else resolved_part(similarity, SIMILARITIES, "similarity", Measure),
            resolved_part(partitioner, PARTITIONERS, "partitioner", Partitioner),
            None if isinstance(reduction, CoreGroups) else reduction,
        )

    # --- capabilities -------------------------------------------------------------------------------------------------

    @property
    def needs_features(self) -> bool:
        """Whether a fit needs the features of the objects."""
        return self.similarity is not None and self.similarity.needs_features

    @property
    def learns_by_sums(self) -> bool:
        """Whether rows may be in pieces, because only sums over rows are needed, at linear cost."""
        return self.partitioner.learns_by_sums and (self.similarity is None or self.similarity.learns_by_sums)

    @property
    def real_weights(self) -> bool:
        """Whether only the ratios of weights matter, so that they may have fractions."""
        return self.partitioner.real_weights and (self.similarity is None or self.similarity.real_weights)

    @property
    def lacks(self) -> str | None:
        """The reason why this machine cannot run the method, such as a missing package, or None."""
        return self.partitioner.lacks

    @property
    def gives_membership(self) -> bool:
        """Whether every fit has `membership_`."""
        return self.partitioner.gives_membership

    @property
    def gives_names(self) -> bool:
        """Whether the labels of a fit are names, of a vocabulary that the clusterings share."""
        return self.partitioner.gives_names

    @property
    def chooses_n_clusters(self) -> bool:
        """Whether the method has its own rule for the number of clusters, which is used if no number is given."""
        return self.partitioner.chooses_n_clusters

    @property
    def marks_rest(self) -> bool:
        """Whether `rest_` may contain objects, because a linkage has a smallest size of clusters."""
        return getattr(self.partitioner, "min_size", None) is not None

    # --- refusals -----------------------------------------------------------------------------------------------------

    def check(self, n_clusters: Any) -> None:
        """Raise an error for parts that do not fit each other, or do not fit the number of clusters."""
        if n_clusters is not None:
            checks.check_integer(n_clusters, "n_clusters", minimum=1)
        if self.similarity is not None:
            _refuse_mismatch(self.similarity, self.partitioner)
        if self.lacks is not None:
            raise ImportError(self.lacks)
        self.partitioner.check(n_clusters, any_sign=self.similarity is not None and self.similarity.any_sign)

    def refuse_features(self, features: Any, name: str) -> None:
        """Raise TypeError if the similarity lacks features, or if it would ignore those that were given."""
        if self.needs_features and features is None:
            raise TypeError(
                f"features are not given, but {name} compares the objects by features; use fit(labels, features=…)."
            )
        if features is not None and not self.needs_features:
            raise TypeError(f"features were given, but {name} uses only labels; leave them out.")

    def refuse_graph(self, name: str, X: Any = None, sample_weight: Any = None) -> None:
        """Raise TypeError for a fit that cannot use neighbours."""
        reason: str | None = None
        if not self._is_average_linkage:
            reason = f"{self._name_parts(name)} does not use one"
        elif self.reduction is not None:
            reason = f"reduction={checks.shown(self.reduction)} was given, too, which has no neighbours"
        elif sample_weight is not None:
            reason = "sample_weight was given, too, which is not counted there"
        elif (min_size := getattr(self.partitioner, "min_size", None)) is not None:
            reason = f"min_size={min_size} was given, too, which would part clusters"
        elif devices.chunked(X):
            reason = "labels are in chunks; pass labels.compute()"
        if reason is not None:
            raise TypeError(
                f"graph was given, but {reason}; EAC, LWEA and WEAC with average linkage take a graph, without "
                "reduction, sample_weight, min_size and missing='ignore'."
            )

    def refuse_links(self, name: str, X: Any = None, graph: Any = None) -> None:
        """Raise TypeError for a fit that cannot use must-links and cannot-links."""
        reason: str | None = None
        if not self._is_average_linkage and type(self.partitioner) is not MedianSearch:
            reason = f"{self._name_parts(name)} does not use them"
        elif graph is not None:
            reason = "graph was given, too"
        elif self.reduction is not None:
            reason = f"reduction={checks.shown(self.reduction)} was given, too, whose rows stand for several objects"
        elif (min_size := getattr(self.partitioner, "min_size", None)) is not None:
            reason = f"min_size={min_size} was given, too, which would join clusters"
        elif devices.chunked(X):
            reason = "labels are in chunks; pass labels.compute()"
        if reason is not None:
            raise TypeError(
                f"must_link or cannot_link were given, but {reason}; Median, and EAC, LWEA and WEAC with average "
                "linkage take links, without graph, reduction, min_size and missing='ignore'."
            )

    @property
    def _is_average_linkage(self) -> bool:
        """Whether the parts are average linkage by a diagonal S, which keeps to neighbours and links."""
        similarity = self.similarity
        return similarity is not None and similarity.kind == "diagonal" and type(self.partitioner) is AverageLinkage

    def _name_parts(self, name: str) -> str:
        """Return the name of a method with the classes of its parts, for an error message."""
        classes = [type(part).__name__ for part in (self.similarity, self.partitioner) if part is not None]
        return f"{name} ({' and '.join(classes)})"

    def refuse_too_many(self, rows: Rows, n_clusters: int) -> None:
        """Raise MemoryError, before the work begins, if similarity or partition would exceed the memory budget."""
        self.partitioner.refuse_too_many(rows, n_clusters, self._kind)
        if self.similarity is not None:
            self.similarity.refuse_too_many(rows)

    def ask_memory(self, rows: Rows, n_clusters: int) -> None:
        """Call `check_memory` for rows of which only the sizes are known."""
        self.partitioner.ask_memory(rows, n_clusters, self._kind)
        if self.similarity is not None:
            self.similarity.refuse_too_many(rows)

    @property
    def _kind(self) -> str:
        return "labels" if self.similarity is None else self.similarity.kind

    # --- work ---------------------------------------------------------------------------------------------------------

    def in_units(self, unit: int | float) -> "Parts":
        """Return the parts for rows whose counts are weights in units of ``unit``."""
        return self._replace(partitioner=self.partitioner.in_units(unit), unit=unit)

    def at_most(self) -> "Parts":
        """Return the parts for a number of clusters that the user did not choose, of which fewer will do."""
        return self._replace(partitioner=self.partitioner.at_most())

    def connected(self) -> "Parts":
        """Return the parts of a linkage that merges adjacent clusters only."""
        return self._replace(partitioner=ContiguousLinkage.of(self.partitioner))

    def constrained(self) -> "Parts":
        """Return the parts for a fit with must-links and cannot-links."""
        if isinstance(self.partitioner, MedianSearch):
            return self
        return self._replace(partitioner=ConstrainedLinkage.of(self.partitioner))

    def reduce(self, rows: Rows, weighted: bool) -> Reduction:
        """Return the reduction of rows; refuse one that ignores their counts if these are weights."""
        if self.reduction is None:
            return core_groups(rows)
        reduction = check_reduced(self.reduction.reduce(rows), self.reduction)
        counts_kept = isinstance(self.reduction, (CATree, Sample)) or reduction.rows.n_objects == rows.n_objects
        if weighted and not counts_kept:
            raise ValueError(
                f"sample_weight adds up to {rows.n_objects * self.unit}, but the rows of reduction "
                f"{checks.shown(self.reduction)} count {reduction.rows.n_objects * self.unit} objects; let "
                "reduce(rows) add up rows.counts."
            )
        return reduction

    def copies(self, sample_weight: Any, ensemble: Ensemble, name: str, n_clusters: int | None) -> Copies:
        """Return the weights of the objects as numbers of copies; refuse weights that the method cannot count."""
        if self.needs_features:
            raise TypeError(
                f"sample_weight was given, but {name} compares each object with all others by features and has no "
                "weights; leave it out."
            )
        in_order = in_order_of(ensemble.index, sample_weight, "sample_weight")
        copies = copies_of(in_order, ensemble.n_objects, ensemble.n_clusterings)
        counting: str | None = name
        if copies.whole:
            return copies
        if isinstance(self.reduction, Sample):
            counting = "Sample"
        elif self.real_weights:
            counting = self.partitioner.counts_objects(n_clusters)
        if counting is None:
            return copies
        raise ValueError(
            f"sample_weight has fractions, but {counting} needs whole numbers of objects as weights; scale and round "
            "them, or choose a method that accepts fractions, such as LWGP."
        )


def resolved_part(value: Any, kinds: dict[str, Any], role: str, base: type) -> Any:
    """Return the similarity or the partitioner that ``value`` names; if ``value`` is an object, check and return it."""
    if isinstance(value, str):
        return named(value, kinds, role)
    if not isinstance(value, base):
        raise TypeError(
            f"{role} must be a name ({', '.join(sorted(kinds))}) or an object such as "
            f"{next(iter(kinds.values())).__name__}(), not {checks.shown(value)}."
        )
    return value


def _refuse_mismatch(similarity: Measure, partitioner: Partitioner) -> None:
    """Raise an error if the partitioner does not accept the similarity; the error message names suitable ones."""
    if _can_take(partitioner, similarity):
        return
    its_name = type(similarity).__name__
    if similarity.kind not in partitioner.takes:
        why = f"needs {' or '.join(_NEEDS[kind] for kind in partitioner.takes)}"
    else:
        why = "needs similarities that are not negative"
    could = ", ".join(sorted(name for name, kind in PARTITIONERS.items() if _can_take(kind, similarity)))
    raise ValueError(f"{type(partitioner).__name__} {why}, which {its_name} does not give; take one of {could}.")


def _can_take(partitioner: Any, similarity: Measure) -> bool:
    return similarity.kind in partitioner.takes and (partitioner.any_sign or not similarity.any_sign)


# words for the kinds of similarity that a partitioner takes
_NEEDS = {
    "labels": "labels alone",
    "diagonal": "a weight of each cluster",
    "blocks": "similarities within clusterings",
    "full": "similarities of all clusters",
    "pairs": "similarities of pairs of objects",
    "observed": "co-association of observed pairs",
}
