"""The base class of all estimators: labels → reduction → similarity → partition of rows → labels of all objects.

`Consensus` combines any similarity with any partitioner. A named method is a subclass whose ``_parts`` returns the
similarity and the partitioner of this method, as objects or by their names.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from gpuens.evidence import Evidence, NewObjects
from gpuens.evidence.cophenetic import correlate_average_linkage
from gpuens.evidence.suggestion import Suggestion, suggestion_of
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.frames import is_frame, without_columns
from gpuens.labels.graph import Graph
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Numbered, Rows, Rule, by_first_row
from gpuens.labels.vocabulary import nameless
from gpuens.labels.weights import Copies, copies_of, integer_unit
from gpuens.methods.forecast import refuse_array
from gpuens.methods.lopsided import remedy_of, unsaid, warn_of_lopsided
from gpuens.methods.parameters import Parameters, positional
from gpuens.partition import PARTITIONERS
from gpuens.partition.base import MostSimilar, Partition, Partitioner
from gpuens.partition.linkage.contiguous import ContiguousLinkage, ContiguousTree, contiguous_groups
from gpuens.partition.linkage.dendrogram import Dendrogram, Work
from gpuens.partition.linkage.partitioners import AverageLinkage, CutTree
from gpuens.reduction import CATree, CoreGroups, Reducer, Reduction, Sample, check_reduced, core_groups, reducer
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array
from gpuens.runtime.options import named
from gpuens.similarity import SIMILARITIES
from gpuens.similarity.base import ClusterSimilarity, Features, Measure, Similarity


class Parts(NamedTuple):
    """The similarity, the partitioner and the reduction of an estimator, whose parameters have been checked."""

    similarity: Measure | None  # None if the partitioner works directly on labels
    partitioner: Partitioner
    reduction: Reducer | None  # None means core groups
    unit: int | float = 1  # weight of a count of 1

    @property
    def needs_features(self) -> bool:
        return self.similarity is not None and self.similarity.needs_features

    @property
    def learn_by_sums(self) -> bool:
        return self.partitioner.learns_by_sums and (self.similarity is None or self.similarity.learns_by_sums)

    @property
    def real_weights(self) -> bool:
        return self.partitioner.real_weights and (self.similarity is None or self.similarity.real_weights)

    def in_units(self, unit: int | float) -> "Parts":
        """Return the parts for rows whose counts are weights in units of ``unit``."""
        return self._replace(partitioner=self.partitioner.in_units(unit), unit=unit)

    @property
    def _kind(self) -> str:
        return "labels" if self.similarity is None else self.similarity.kind

    def refuse_too_many(self, rows: Rows, n_clusters: int) -> None:
        """Raise an error, before the work begins, if similarity or partition would exceed the memory budget."""
        self.partitioner.refuse_too_many(rows, n_clusters, self._kind)
        if self.similarity is not None:
            self.similarity.refuse_too_many(rows)

    def ask_memory(self, rows: Rows, n_clusters: int) -> None:
        """Call `check_memory` for rows of which only the sizes are known."""
        self.partitioner.ask_memory(rows, n_clusters, self._kind)
        if self.similarity is not None:
            self.similarity.refuse_too_many(rows)


class Results:
    """Attributes of a fitted estimator, see `gpuens.Consensus`."""

    reduction_: Reduction
    similarity_: Similarity
    labels_: Array
    n_clusters_: int
    dendrogram_: Dendrogram
    lifetimes_: np.ndarray
    weight_unit_: int | float
    suggestion_: Suggestion
    work_: Work
    ensemble_: Ensemble  # set by `gpuens.cluster`
    _partition: Partition
    _objects: Dendrogram | None
    _evidence: Evidence | None
    _left_out: Sequence[Any] = ()  # columns of a DataFrame that were left out by `fit`


class Method(Results, Parameters, ClusterMixin, BaseEstimator):
    """The base class of all methods: a subclass names the similarity and the partitioner that it combines.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: the number that
        `gpuens.evidence.suggestion` gives, with a warning if it is in doubt.
    reduction : optional
        An object with ``reduce(rows)``, such as ``Sample(10_000)``, or a text such as "sample:10000"; None means core
        groups, an exact reduction: objects with equal labels stay together.
    device : {"auto", "cpu", "cuda"}
        "auto" means the device of the labels.
    """

    n_clusters: int | None = positional(default=None, kw_only=False)
    reduction: Any = None
    device: str = "auto"
    # order of the time of a fit, for G distinct rows, M clusterings, C clusters of all clusterings, k wanted clusters
    cost = ""

    def _parts(self) -> tuple[Any, Any]:
        """Return the similarity (None: labels alone) and the partitioner of this method, as objects or names."""
        raise NotImplementedError

    def _resolved_parts(self) -> tuple[Measure | None, Partitioner]:
        """Return `_parts` as objects, whose constructors check the parameters."""
        similarity, partitioner = self._parts()
        return (
            None if similarity is None else resolved_part(similarity, SIMILARITIES, "similarity", Measure),
            resolved_part(partitioner, PARTITIONERS, "partitioner", Partitioner),
        )

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        sample_weight: Any = None,
        graph: Any = None,
        wide: bool = False,
    ) -> Self:
        """Find the consensus of the label matrix ``X`` (n_objects, n_clusterings); ``y`` is ignored.

        ``features`` (n_objects, n_features) of the same objects must be given if the similarity needs features. They
        are not scaled. DataFrames of labels and of features are matched by their indexes. A Dask array of labels is
        processed in its chunks (see `gpuens.distributed`), and `labels_` then has the same chunks.

        ``sample_weight`` (n_objects,) are positive weights of the objects: an object of weight 3 counts as three
        objects with its labels. Whole numbers are divided by their greatest common divisor, `weight_unit_`, so that
        their unit has no influence. Methods for which only the ratios of counts matter also accept weights with
        fractions, as whole multiples of `weight_unit_`. A Series is matched by its index. Labels in chunks accept whole
        numbers, also in chunks.

        ``graph`` joins neighbours, such as cells of a tissue or fields of a map, and is anything that `gpuens.Graph.of`
        takes. Average linkage (`gpuens.EAC`, `gpuens.LWEA`, `gpuens.WEAC`) then merges only adjacent clusters, so that
        the clusters are connected; other methods refuse it. Objects with equal label rows are one leaf only if they are
        connected, and may get different labels. ``dendrogram_.raw_similarities`` (G - 1,) can rise from one merge to
        the next; `distances_` are the largest so far. `predict` has no graph, and gives each object the most similar
        cluster.

        ``wide`` says that rows are objects, even if there are more clusterings than objects, see `gpuens.Ensemble`.
        """
        parts = self._checked()
        refuse_features(parts, features, type(self).__name__)
        if graph is not None:
            refuse_graph(parts, type(self).__name__, X, sample_weight)
            parts = parts._replace(partitioner=ContiguousLinkage.of(parts.partitioner))
        if devices.chunked(X):
            from gpuens.distributed import fit

            if wide:
                raise TypeError("wide=True is for labels in memory; pass labels.compute().")
            return fit(self, X, sample_weight=sample_weight)
        if graph is None:
            refuse_array(self, X)
        ensemble = self._ensemble_of(X, wide)
        graph = None if graph is None else Graph.of(graph, ensemble.n_objects, ensemble.index)
        weighted = None if sample_weight is None else self._copies(parts, ensemble, sample_weight)
        if weighted is not None:
            parts = parts.in_units(weighted.unit)

        def reduce(device: str) -> Reduction:
            rows = Rows(ensemble, None if weighted is None else weighted.counts, device)
            if graph is not None:
                return contiguous_groups(rows, graph)
            if parts.reduction is None:
                return core_groups(rows)
            found = check_reduced(parts.reduction.reduce(rows), parts.reduction)
            if weighted is not None:
                refuse_uncounted(found, rows, parts)
            return found

        # the warning is about numbers of objects
        with nullcontext() if weighted is None or weighted.whole else unsaid():
            features = in_order_of(ensemble.index, features, "features")
            self._fit(parts, ensemble, reduce, features, weighted=weighted is not None)
        if weighted is not None:
            self._keep({"weight_unit": weighted.unit})
        return self

    def fit_predict(self, X: Any, y: Any = None, **parameters: Any) -> Array:
        """Fit the estimator, and return the label of each object; the parameters are those of `fit`."""
        return self.fit(X, y, **parameters).labels_

    def predict(self, X: Any) -> Array:
        """Return the label of each object of a label matrix (n_objects, n_clusterings), with the clusterings of fit.

        A label row that occurred in fit keeps its label. Any other row gets the most similar cluster, or the cluster
        that a rule of the method gives, such as the vote of MCLA. Label values that did not occur in fit count as
        missing. A DataFrame may contain columns that `fit` left out.

        Raises
        ------
        ValueError
            For another number of clusterings, for columns of a DataFrame with other names or in another order than at
            fit, and for objects without a label known from fit.
        """
        groups, kind = self._new(X)
        return devices.give_back(self._labels_of(groups.rows)[devices.to_host(groups.row_of)], kind)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, from which `gpuens.load` makes a model that labels new objects.

        The file contains no pickle. It contains a description as JSON, the distinct label rows with their labels, and
        the arrays of the rule that labels other rows. It does not contain the objects of fit or their features.

        Parameters
        ----------
        path : str or path
            An ``.npz`` file; an existing file is replaced when the new one is complete.

        Raises
        ------
        OSError, ValueError, TypeError
            For unwritable places and other endings, for fits of soft clusterings, for labels other than whole numbers
            and texts, and for methods whose rule for new objects cannot be stored in a file.
        """
        self._refuse_soft("save writes what predict needs")
        from gpuens.methods.model import model_of

        model_of(self).save(path)

    def _refuse_soft(self, what: str) -> None:
        check_is_fitted(self, "labels_")
        if not isinstance(self.reduction_.ensemble, Ensemble):
            raise TypeError(f"{what}, but fit was given soft clusterings; membership_ has their memberships.")

    def _new(self, X: Any) -> tuple[Reduction, str]:
        """Return the core groups of new objects in the numbering of fit, and the kind of memory of their labels."""
        self._refuse_soft("predict takes labels")
        if self._left_out and is_frame(X):
            X = without_columns(X, self._left_out)
        shape = tuple(getattr(X, "shape", ()))
        if len(shape) == 1:
            raise ValueError(
                f"labels must be 2-D, (n_objects, n_clusterings), but have shape {shape}; Reshape your data, one "
                "object being labels.reshape(1, -1)."
            )
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input: the clusterings of fit, in their order."
            )
        given = self.reduction_.ensemble.encoded(X)
        return core_groups(Rows(given, device=devices.resolve(self.device, given.device_kind))), given.device_kind

    def _labels_of(self, rows: Rows) -> np.ndarray:
        """Return the consensus labels of rows; the clusters are numbered as in fit."""
        if (of_rows := self._partition.labels) is None:
            return self._rule()(rows)
        found = self.reduction_.find(rows)
        unknown = np.flatnonzero((found < 0) | (found >= len(of_rows)))
        labels: np.ndarray = devices.to_host(of_rows)[np.minimum(found, len(of_rows) - 1)]
        if len(unknown):
            labels[unknown] = self._rule()(rows.take(unknown))
        return labels

    def _ensemble_of(self, X: Any, wide: bool) -> Ensemble:
        """Return the labels that `fit` was given as an ensemble."""
        return Ensemble(X, wide=wide)

    def _checked(self) -> Parts:
        """Check the parameters that do not depend on labels, and return the `Parts`."""
        similarity, partitioner = self._resolved_parts()
        if self.n_clusters is not None:
            checks.check_integer(self.n_clusters, "n_clusters", minimum=1)
        if similarity is not None:
            _refuse_mismatch(similarity, partitioner)
        if partitioner.lacks is not None:
            raise ImportError(partitioner.lacks)
        partitioner.check(self.n_clusters, any_sign=similarity is not None and similarity.any_sign)
        reduction = None if self.reduction is None else reducer(self.reduction)
        return Parts(similarity, partitioner, None if isinstance(reduction, CoreGroups) else reduction)

    def _copies(self, parts: Parts, ensemble: Ensemble, sample_weight: Any) -> Copies:
        """Return the weights of the objects as numbers of copies; refuse weights that the method cannot count."""
        name = type(self).__name__
        if parts.needs_features:
            raise TypeError(
                f"sample_weight was given, but {name} compares each object with all others by features and has no "
                "weights; leave it out."
            )
        given = in_order_of(ensemble.index, sample_weight, "sample_weight")
        found = copies_of(given, ensemble.n_objects, ensemble.n_clusterings)
        if found.whole:
            return found
        who: str | None = name
        if isinstance(parts.reduction, Sample):
            who = "Sample"
        elif parts.real_weights:
            who = parts.partitioner.counts_objects(self._k)
        if who is None:
            return found
        raise ValueError(
            f"sample_weight has fractions, but {who} needs whole numbers of objects as weights; scale and round them, "
            "or choose a method that accepts fractions, such as LWGP."
        )

    def _fit(
        self,
        parts: Parts,
        ensemble: Any,
        reduce: Callable[[str], Reduction],
        features: Any = None,
        device: str | None = None,
        learn: Callable[..., Partition] | None = None,
        weighted: bool = False,
    ) -> Self:
        """Find the consensus of the rows of ``reduce(device)``, and label all objects of ``ensemble``.

        If ``learn`` is given, it finds the partition instead of `_learn`. If ``weighted``, rows count weights.
        """
        device = device or devices.resolve(self.device, ensemble.device_kind)

        def work() -> None:
            reduction = reduce(device)
            partition = (learn or self._learn)(parts, reduction.rows, Features(features, ensemble, self._k))
            self.reduction_ = reduction
            rule = self._rule() if not reduction.covers_all else None
            numbers, found = reduction.by_size(partition.labels, partition.n_clusters, rule, weighted=weighted)
            self._renumber(numbers)
            self.labels_ = devices.give_back(found, ensemble.device_kind)

        self._within_memory(work, ensemble.n_objects, ensemble.n_clusterings)
        self._note_names(ensemble)
        return self

    def _within_memory(self, work: Callable[[], Any], n_objects: int, n_clusterings: int) -> None:
        devices.within_memory(
            work,
            f"{type(self).__name__} of {n_objects} objects and {n_clusterings} clusterings",
            "use device='cpu', or reduce the objects first",
        )

    def _learn(self, parts: Parts, rows: Rows, features: Features) -> Partition:
        """Find and return the partition of rows, which are in memory or in pieces.

        Store the results of the similarity and of the partitioner as attributes.
        """
        self._forget()
        k, found = self._number(parts.partitioner, rows)
        if "suggestion" in found:
            parts = parts._replace(partitioner=parts.partitioner.at_most())
        similarity = None
        parts.refuse_too_many(rows, k or 1)
        if parts.similarity is not None:
            similarity = parts.similarity(rows, features and features._replace(n_clusters=k))
            found |= similarity.results
            self.similarity_ = similarity
        self._partition = parts.partitioner(similarity, rows, k)
        if similarity is not None:
            similarity.free_memory()
        self._keep(found | self._partition.results)
        self._objects, self._evidence = None, None
        self.n_clusters_ = self._partition.n_clusters
        if k is not None:
            remedy = partial(remedy_of, self, parts.partitioner, rows.n_objects * parts.unit, k)
            warn_of_lopsided(rows, self._partition, remedy, parts.unit)
        return self._partition

    def _renumber(self, numbers: np.ndarray) -> None:
        """Replace the number c of each cluster by ``numbers[c]`` (k,), also in the results of the partitioner."""
        self._partition = self._partition.renumbered(numbers)
        self._keep(self._partition.results)

    def _number(self, partitioner: Partitioner, rows: Rows) -> tuple[int | None, dict[str, Any]]:
        """Return the number of clusters, and a dictionary of results to store.

        If no number was given, return the suggested number, and add the suggestion to the dictionary. The number is
        None if the partitioner has its own rule for the number.
        """
        if self.n_clusters is not None:
            return int(checks.check_n_clusters(self.n_clusters, rows.n_rows, reduced=self.reduction is not None)), {}
        if partitioner.chooses_n_clusters:
            return None, {}
        found = suggestion_of(rows, at_most=partitioner.most_clusters(rows.n_objects))
        found.warn_of_doubt()
        partitioner.check(found.n_clusters)
        return max(found.n_clusters, partitioner.fewest_clusters(rows)), {"suggestion": found}

    def _keep(self, found: dict[str, Any]) -> None:
        """Store results of a fit as attributes until the next fit; ``found`` is {name without underscore: value}."""
        self._found = tuple(dict.fromkeys((*getattr(self, "_found", ()), *(f"{name}_" for name in found))))
        self.__dict__ |= {f"{name}_": value for name, value in found.items()}

    def _forget(self) -> None:
        """Remove the attributes with results of an earlier fit."""
        for name in self.__dict__.pop("_found", ()):
            self.__dict__.pop(name, None)

    def _rule(self) -> Rule:
        """Return the rule that labels rows that did not occur in fit."""
        partition = self._partition
        if partition.rule is None:
            partition.rule = self._most_similar(devices.to_host(partition.labels), partition.rest)
        return partition.rule

    def _most_similar(self, labels: np.ndarray, rest: np.ndarray | None) -> Rule:
        """Return the rule that labels rows by the most similar of the clusters ``labels`` (G,) of the rows of fit.

        It sums similarities in the order of the clusters' first rows, so that the order of the objects has no
        influence on rounding or ties.
        """
        by_row, reduction = by_first_row(labels), self.reduction_
        numbers = np.empty(int(by_row.max()) + 1, dtype=np.int64)
        numbers[by_row] = labels
        found = MostSimilar.of(self.similarity_, reduction.rows, by_row, rest, reduction.label_by)
        return Numbered(found, numbers, len(numbers))

    def _note_names(self, ensemble: Ensemble) -> None:
        """Store the number and the names of the clusterings in the attributes that scikit-learn uses for features."""
        self.n_features_in_ = ensemble.n_clusterings
        self._left_out = getattr(ensemble, "left_out", ())
        if all(isinstance(name, str) for name in ensemble.names):
            self.feature_names_in_ = np.array(ensemble.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def _clusters(self) -> Array:
        """The number of each object's cluster (n_objects,), also if `labels_` are names."""
        return self.labels_ if self._partition.names is None else self.reduction_.look_up(self._partition.labels)

    @property
    def _k(self) -> int | None:
        """The parameter `n_clusters` as a Python integer, because sums of NumPy integers may overflow."""
        return None if self.n_clusters is None else int(self.n_clusters)

    @property
    def needs_features(self) -> bool:
        """Whether `fit` needs the features of the objects."""
        return Parts(*self._resolved_parts(), None).needs_features

    @property
    def lacks(self) -> str | None:
        """The reason why this machine cannot run the method, such as a missing package, or None."""
        return self._resolved_parts()[1].lacks

    @property
    def learns_by_sums(self) -> bool:
        """Whether the method can work on rows in pieces, because it needs only sums over rows, at linear cost."""
        return Parts(*self._resolved_parts(), None).learn_by_sums

    @property
    def gives_membership(self) -> bool:
        """Whether a fit has `membership_`."""
        return self._resolved_parts()[1].gives_membership

    @property
    def gives_names(self) -> bool:
        """Whether the labels of a fit are names, of a vocabulary that the clusterings share."""
        return False

    @property
    def chooses_n_clusters(self) -> bool:
        """Whether the method has its own rule for the number of clusters, which is used if no number is given."""
        return self._resolved_parts()[1].chooses_n_clusters

    # --- evidence ---------------------------------------------------------------------------------------------------

    @overload
    def evidence(self, X: None = None, *, missing: str | None = None) -> Evidence: ...

    @overload
    def evidence(self, X: Any, *, missing: str | None = None) -> NewObjects: ...

    def evidence(self, X: Any = None, *, missing: str | None = None) -> Evidence | NewObjects:
        """Return the evidence of the base clusterings for the labels, see `gpuens.evidence.Evidence`.

        If ``X`` is given, it has labels of new objects as for `predict`. The result then has the consensus labels of
        these objects, ``.labels``, and the evidence for them, ``.objects``, by comparison with the clusters of fit.
        The default of ``missing`` is the parameter ``missing`` of the method, or "zero" if the method has none. Each
        part of the evidence is computed when it is first accessed, and kept until the next fit.

        Raises
        ------
        TypeError
            For labels in chunks, and for soft clusterings.
        ValueError
            For new objects that `predict` refuses.

        Examples
        --------
        >>> import gpuens as ge
        >>> est = ge.EAC(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
        >>> found = est.evidence([[0, 0, 1], [0, 2, 2], [0, 0, 1]])  # three clusterings of 3 new objects
        >>> found.labels.tolist(), found.objects.confidence.round(2).tolist()
        ([0, 0, 1], [0.81, 0.57, 0.86])
        """
        if (why := self._lacks_evidence()) is not None:
            raise TypeError(why)
        if missing is None:
            missing = str(getattr(self, "missing", "zero"))
        if self._evidence is None or self._evidence.missing != missing:
            groups = self.reduction_.groups()
            row_of, labels = devices.to_host(groups.row_of), np.empty(groups.n_rows, dtype=np.int64)
            labels[row_of] = devices.to_host(self._clusters)
            self._evidence = Evidence.of_groups(
                groups.rows, labels, row_of, missing, self._partition.certainty, self._whole_unit or 1
            )
        if X is None:
            return self._evidence
        new, _ = self._new(X)
        return self._evidence.describe_new(new.rows, self._labels_of(new.rows), new.row_of)

    @property
    def _whole_unit(self) -> int | None:
        """The weight of a count of 1 in the fit, or None if the weights have fractions."""
        return integer_unit(getattr(self, "weight_unit_", 1))

    def _lacks_evidence(self) -> str | None:
        """Return the reason why this fit has no evidence, or None if there is evidence."""
        check_is_fitted(self, "labels_")
        if not isinstance(self.reduction_.ensemble, Ensemble):
            return "evidence needs labels, but fit was given soft clusterings; use membership_ instead."
        if self._whole_unit is None:
            return (
                "evidence compares an object with all others, copies of itself included, and needs whole numbers as "
                "sample_weight, but fit was given fractions; scale and round them."
            )
        if devices.chunked(self.labels_):
            return (
                "evidence needs labels in memory, but those of this fit are in chunks; give gpuens.evidence.Evidence "
                "the labels of some objects and their consensus."
            )
        return None

    @property
    def confidence_(self) -> Array:
        if (why := self._lacks_evidence()) is not None:
            raise AttributeError(f"this {type(self).__name__} has no confidence_: {why}")
        if "confidence" in (own := self._partition.certainty or {}):
            return devices.give_back(self.reduction_.look_up(own["confidence"]), self.reduction_.ensemble.device_kind)
        return devices.give_back(self.evidence().objects.confidence, devices.home_of(self.labels_))

    def confident_labels(self, min_confidence: float) -> Array:
        """Return `labels_`, but -1 for each object whose `confidence_` is below ``min_confidence``.

        If the labels are texts, "Unknown" takes the place of -1. `labels_` itself and the numbers of its clusters do
        not change.

        Parameters
        ----------
        min_confidence : float
            From 0, which leaves all labels, to 1.

        Raises
        ------
        ValueError, TypeError
            For numbers outside 0 … 1, and for fits without confidence: of labels in chunks and of soft clusterings.

        Examples
        --------
        >>> import gpuens as ge
        >>> est = ge.EAC(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
        >>> est.confidence_.round(2).tolist()
        [0.75, 0.75, 0.67, 0.6, 0.81, 0.81]
        >>> est.confident_labels(0.7).tolist()
        [0, 0, -1, -1, 1, 1]
        """
        return self._confident_labels(min_confidence)[0]

    def _confident_labels(self, min_confidence: float) -> tuple[Array, int]:
        """Return the result of `confident_labels`, and the number of objects whose confidence is too low."""
        least = checks.check_between(min_confidence, "min_confidence", 0, 1)
        if (why := self._lacks_evidence()) is not None:
            raise TypeError(why)
        found, below = devices.native(self.labels_).copy(), devices.native(self.confidence_) < least
        if found.dtype == object:  # texts are in host memory
            below = devices.to_host(below)
        found[below] = nameless(found)
        return devices.give_back(found, devices.home_of(self.labels_)), int(below.sum())

    # --- attributes of some partitioners ------------------------------------------------------------------------------

    @property
    def membership_(self) -> Array:
        membership = self._partition.membership if hasattr(self, "_partition") else None
        if membership is None:
            raise AttributeError(f"this {type(self).__name__} has no membership_.")
        return devices.give_back(self.reduction_.of_rows(membership), devices.home_of(self.labels_))

    def _cut_tree(self, name: str) -> CutTree:
        partition = getattr(self, "_partition", None)
        if not isinstance(partition, CutTree):
            raise AttributeError(f"this {type(self).__name__} has no {name}, because no linkage was fitted.")
        return partition

    @property
    def rest_(self) -> Array:
        rest = self._cut_tree("rest_").rest
        if rest is None:
            rest = _none_of(self.reduction_.rows)
        return devices.give_back(self.reduction_.expand(rest, _none_of), devices.home_of(self.labels_))

    @property
    def marks_rest(self) -> bool:
        """Whether `rest_` may contain objects, because a linkage has a minimum size of clusters."""
        return getattr(self._resolved_parts()[1], "min_size", None) is not None

    def cut_rows(self, n_clusters: int) -> np.ndarray:
        """Cut the tree of the fit into another number of clusters; return the labels (G,), int64, of rows.

        A fit with this number of clusters would find the same labels.
        """
        return self._cut(n_clusters, "cut_rows()")[0]

    def cut(self, n_clusters: int) -> Array:
        """Cut the tree of the fit into another number of clusters; return the labels (n_objects,), int64.

        A fit with this number of clusters would find the same labels. The labels are in the same kind of memory as
        ``labels_``.

        Raises
        ------
        AttributeError
            For methods without a tree.
        ValueError
            For a number outside 1 … number of distinct rows.

        Examples
        --------
        >>> import gpuens as ge
        >>> est = ge.EAC(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
        >>> est.cut(4).tolist()
        [0, 0, 2, 3, 1, 1]
        """
        return devices.give_back(self._cut(n_clusters, "cut()")[1], self.reduction_.ensemble.device_kind)

    def _cut(self, n_clusters: int, name: str) -> tuple[np.ndarray, Array]:
        """Return the labels (G,) of the rows and those (n_objects,) of all objects at a cut of the tree."""
        reduction, weighted = self.reduction_, hasattr(self, "weight_unit_")
        labels, rest = self._cut_tree(name).cut(n_clusters, self.similarity_, reduction.rows)
        rule = None if reduction.covers_all else self._most_similar(labels, rest)
        numbers, of_objects = reduction.by_size(labels, int(labels.max()) + 1, rule, weighted=weighted)
        return numbers[labels], of_objects

    def _object_dendrogram(self, name: str) -> Dendrogram:
        partition = self._cut_tree(name)
        if not self.reduction_.covers_all:
            raise AttributeError(
                f"{name} is the merge list of all objects, but this dendrogram belongs to a sample; use dendrogram_, "
                "whose leaves are the rows of reduction_.ensemble."
            )
        if self._objects is None:
            self._objects = partition.expand(devices.to_host(self.reduction_.row_of))
        return self._objects

    @property
    def children_(self) -> np.ndarray:
        return self._object_dendrogram("children_").children()[0]

    @property
    def distances_(self) -> np.ndarray:
        return 1.0 - self._object_dendrogram("distances_").similarities

    def linkage_matrix(self) -> np.ndarray:
        """Return SciPy's linkage matrix Z (n_objects - 1, 4) of all objects.

        Distances are 1 - similarity, as in `distances_`. Similarities above 1, which occur in ECRMC, would give
        negative distances, which SciPy does not accept; then, distances are (largest similarity) - similarity. Objects
        with equal label rows merge at the similarity of such objects. If cluster weights are unequal, the distance of
        these objects can be above a cut. ``scipy.cluster.hierarchy.fcluster`` may then split objects with equal rows,
        which have the same label in ``labels_``.
        """
        return self._object_dendrogram("linkage_matrix()").linkage_matrix()

    def cophenetic_correlation(self) -> float:
        """Return the cophenetic correlation of an average linkage, which is 1 if the tree preserves all similarities.

        The cophenetic correlation is the correlation of the cophenetic similarities and `similarity_` over all pairs of
        objects. It is computed without visiting the pairs. It is NaN if all similarities are equal.
        """
        name = "cophenetic_correlation()"
        tree = getattr(self, "_partition", None)
        if not isinstance(tree, CutTree) or not isinstance(self._resolved_parts()[1], AverageLinkage):
            raise AttributeError(f"this {type(self).__name__} has no {name}, because no average linkage was fitted.")
        if self.reduction_.groups() is not self.reduction_:
            raise AttributeError(f"{name} describes all objects, but this dendrogram belongs to a sample.")
        if isinstance(tree, ContiguousTree):
            raise AttributeError(f"{name} needs heights that are means over all pairs, but those of a graph are not.")
        similarity = self.similarity_
        if not isinstance(similarity, ClusterSimilarity):
            raise AttributeError(f"{name} needs means over all pairs, but missing='ignore' uses ratios of sums.")
        return correlate_average_linkage(self.reduction_.rows, similarity, tree.dendrogram, tree.self_similarities)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


class Seeded(Method):
    """A method that draws at random.

    Parameters
    ----------
    random_state : int, None or numpy.random.Generator
        The seed of all draws: the same seed gives the same labels, on every device.
    """

    random_state: Any = 0


class Linkage(Method):
    """A method whose tree of merges is cut.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, at most the number of distinct label rows. None: cut at `distance_threshold` if given,
        otherwise use the number that `gpuens.evidence.suggestion` gives.
    distance_threshold : float > 0, optional
        Merge only below this distance (1 - similarity); use in place of `n_clusters`.
    min_size : int, float or "auto", optional
        Least number of objects in a cluster, or least share (0, 1) of all objects. The tree is cut at the first level
        from its top with `n_clusters` branches of this size. Objects in smaller branches (`rest_`) get the label of the
        most similar cluster. "auto": a fifth of the mean size of `n_clusters` clusters, or less if the tree has no such
        cut; 1 with `distance_threshold`.
    """

    distance_threshold: float | None = None
    min_size: int | float | str | None = None


def _none_of(rows: Rows) -> np.ndarray:
    return np.zeros(len(rows), dtype=bool)


def resolved_part(value: Any, kinds: dict[str, Any], what: str, base: type) -> Any:
    """Return the similarity or the partitioner that ``value`` names; if ``value`` is an object, check and return it."""
    if isinstance(value, str):
        return named(value, kinds, what)
    if not isinstance(value, base):
        raise TypeError(
            f"{what} must be a name ({', '.join(sorted(kinds))}) or an object such as "
            f"{next(iter(kinds.values())).__name__}(), not {checks.shown(value)}."
        )
    return value


def refuse_features(parts: Parts, features: Any, name: str) -> None:
    """Raise an error if features are missing that the similarity needs, or if features are given that it ignores."""
    if parts.needs_features and features is None:
        raise TypeError(
            f"features are not given, but {name} compares the objects by features; use fit(labels, features=…)."
        )
    if features is not None and not parts.needs_features:
        raise TypeError(f"features were given, but {name} uses only labels; leave them out.")


def refuse_graph(parts: Parts, name: str, X: Any, sample_weight: Any) -> None:
    """Raise TypeError for what a fit with a graph cannot do."""
    similarity, partitioner = parts.similarity, parts.partitioner
    reason: str | None = None
    if similarity is None or similarity.kind != "diagonal" or type(partitioner) is not AverageLinkage:
        names = [type(part).__name__ for part in (similarity, partitioner) if part is not None]
        reason = f"{name} ({' and '.join(names)}) does not use one"
    elif parts.reduction is not None:
        reason = f"reduction={checks.shown(parts.reduction)} was given, too, which has no neighbours"
    elif sample_weight is not None:
        reason = "sample_weight was given, too, which is not counted there"
    elif partitioner.min_size is not None:
        reason = f"min_size={partitioner.min_size} was given, too, which would part clusters"
    elif devices.chunked(X):
        reason = "labels are in chunks; pass labels.compute()"
    if reason is not None:
        raise TypeError(
            f"graph was given, but {reason}; EAC, LWEA and WEAC with average linkage take a graph, without reduction, "
            "sample_weight, min_size and missing='ignore'."
        )


def refuse_uncounted(found: Reduction, rows: Rows, parts: Parts) -> None:
    """Raise an error if a reduction by others has ignored the counts of the rows."""
    if not isinstance(parts.reduction, (CATree, Sample)) and found.rows.n_objects != rows.n_objects:
        total, counted = rows.n_objects * parts.unit, found.rows.n_objects * parts.unit
        raise ValueError(
            f"sample_weight adds up to {total}, but the rows of reduction {checks.shown(parts.reduction)} count "
            f"{counted} objects; let reduce(rows) add up rows.counts."
        )


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


_NEEDS = {
    "labels": "labels alone",
    "diagonal": "a weight of each cluster",
    "blocks": "similarities within clusterings",
    "full": "similarities of all clusters",
    "pairs": "similarities of pairs of objects",
    "observed": "co-association of observed pairs",
}
