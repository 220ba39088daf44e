"""The base class of all methods: labels → reduction → similarity → partition of rows → labels of all objects.

A method is a subclass of `Method` whose ``_parts`` returns the similarity and the partitioner that it combines, as
objects or by their names, and whose annotated fields are its parameters.
"""

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from gpuens.evidence import Evidence, NewObjects
from gpuens.evidence.suggestion import Suggestion, suggestion_of
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.graph import Graph
from gpuens.labels.links import Links
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows
from gpuens.labels.vocabulary import nameless
from gpuens.methods.fit import Fit, Learned
from gpuens.methods.forecast import refuse_array
from gpuens.methods.lopsided import remedy_of, warn_of_lopsided, without_lopsided_warnings
from gpuens.methods.parameters import Parameters, positional
from gpuens.methods.parts import Parts
from gpuens.partition.base import Partitioner
from gpuens.partition.linkage.contiguous import contiguous_groups
from gpuens.partition.linkage.dendrogram import Dendrogram, Work
from gpuens.reduction import Reduction
from gpuens.reduction.linked_groups import linked_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array
from gpuens.similarity.base import Features, Similarity

T = TypeVar("T")


class Results:
    """Attributes of a fitted estimator, see `gpuens.Consensus`."""

    fit_: Fit
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
    # part of a fit that runs on a GPU: "all steps", "all but the last step" or "the reduction"
    on_gpu = "all steps"
    further_forms: ClassVar[tuple[type, ...]] = ()  # classes that `fit` takes beside an Ensemble

    # --- what a subclass may replace ----------------------------------------------------------------------------------

    def _parts(self) -> tuple[Any, Any]:
        """Return the similarity (None: labels alone) and the partitioner of this method, as objects or names."""
        raise NotImplementedError

    def parts(self) -> Parts:
        """Return the similarity, the partitioner and the reduction; their properties tell what the method can do."""
        return Parts.of(*self._parts(), self.reduction)

    def checked_parts(self) -> Parts:
        """Return `parts`; raise an error for parameters that are impossible for any labels."""
        parts = self.parts()
        parts.check(self.n_clusters)
        return parts

    def _ensemble_of(self, X: Any, wide: bool) -> Any:
        """Return the labels that `fit` was given as an ensemble, of label rows or of another form."""
        return Ensemble(X, wide=wide)

    def _rows_of(self, ensemble: Any, device: str) -> Rows:
        """Return the objects of an ensemble without label rows as rows of one object each."""
        return Rows.of(ensemble, np.ones(ensemble.n_objects, dtype=np.int64), device)

    def _resolve_n_clusters(self, partitioner: Partitioner, rows: Rows) -> tuple[int | None, dict[str, Any]]:
        """Return the number of clusters, and the results {"suggestion": …} if the number is a suggested one.

        The number is None if the partitioner has its own rule for the number.
        """
        if self.n_clusters is not None:
            return int(checks.check_n_clusters(self.n_clusters, rows.n_rows, reduced=self.reduction is not None)), {}
        if partitioner.chooses_n_clusters:
            return None, {}
        suggestion = suggestion_of(rows, at_most=partitioner.most_clusters(rows.n_objects))
        suggestion.warn_of_doubt()
        partitioner.check(suggestion.n_clusters)
        return max(suggestion.n_clusters, partitioner.fewest_clusters(rows)), {"suggestion": suggestion}

    # --- fit ----------------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        sample_weight: Any = None,
        graph: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
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

        ``must_link`` and ``cannot_link`` (n_pairs, 2) are pairs of objects that must or must not be in one cluster:
        positions, names of objects (texts, or a DataFrame) or a sparse matrix. Average linkage (`gpuens.EAC`,
        `gpuens.LWEA`, `gpuens.WEAC`) keeps all of them; `gpuens.Median` keeps must-links, and has a penalty for
        cannot-links; other methods refuse both. In a linkage, objects joined by must-links merge first, at distance 0,
        and count as their union; a merge of clusters with a cannot-linked pair is forbidden. Linked objects are leaves
        of their own beside objects with equal labels. Contradictions, and numbers of clusters that the links exclude,
        are a ValueError. `predict` has no links.

        ``wide`` says that rows are objects, even if there are more clusterings than objects, see `gpuens.Ensemble`.
        """
        linked = must_link is not None or cannot_link is not None
        parts, name = self.checked_parts(), type(self).__name__
        parts.refuse_features(features, name)
        if linked:
            parts.refuse_links(name, X, graph)
            parts = parts.constrained()
        if graph is not None:
            parts.refuse_graph(name, X, sample_weight)
            parts = parts.connected()
        if devices.chunked(X):
            from gpuens.distributed import fit

            if wide:
                raise TypeError("wide=True is for labels in memory; pass labels.compute().")
            return fit(self, X, sample_weight=sample_weight)
        if graph is None:
            refuse_array(self, X)
        ensemble = self._ensemble_of(X, wide)
        if not isinstance(ensemble, Ensemble):
            ensemble.refuse(parts.reduction, sample_weight)

            def keep_objects(device: str) -> Reduction:
                rows = self._rows_of(ensemble, device)
                return Reduction(rows, rows.xp.arange(ensemble.n_objects))

            self.fit_reduced(parts, ensemble, keep_objects, partial(self.learn, parts))
            return self
        graph = None if graph is None else Graph.of(graph, ensemble.n_objects, ensemble.index)
        links = Links.of(must_link, cannot_link, ensemble.n_objects, ensemble.index) if linked else None
        copies = None if sample_weight is None else parts.copies(sample_weight, ensemble, name, self._k)
        if copies is not None:
            parts = parts.in_units(copies.unit)

        def reduce(device: str) -> Reduction:
            rows = Rows(ensemble, None if copies is None else copies.counts, device)
            if links is not None:
                return linked_groups(rows, links)
            return parts.reduce(rows, copies is not None) if graph is None else contiguous_groups(rows, graph)

        # the warning is about numbers of objects
        with nullcontext() if copies is None or copies.whole else without_lopsided_warnings():
            features = in_order_of(ensemble.index, features, "features")
            learn = partial(self.learn, parts, features=Features(features, ensemble, self._k))
            self.fit_reduced(parts, ensemble, reduce, learn, weighted=copies is not None)
        return self

    def fit_reduced(
        self,
        parts: Parts,
        ensemble: Any,
        reduce: Callable[[str], Reduction],
        learn: Callable[[Rows], Learned],
        *,
        device: str | None = None,
        weighted: bool = False,
    ) -> None:
        """Fit to the rows of ``reduce(device)``, whose partition ``learn(rows)`` finds, and label all objects."""
        device = device or devices.resolve(self.device, ensemble.device_kind)

        def work() -> Fit:
            reduction = reduce(device)
            fit = self.fit_of(parts, reduction, learn(reduction.rows), weighted)
            fit.number_by_size()
            return fit

        self.take_fit(self.within_memory(work, ensemble.n_objects, ensemble.n_clusterings), ensemble)

    def learn(self, parts: Parts, rows: Rows, features: Features | None = None) -> Learned:
        """Return the partition of rows, which are in memory or in pieces, with its similarity and further results."""
        k, results = self._resolve_n_clusters(parts.partitioner, rows)
        if "suggestion" in results:
            parts = parts.at_most()
        parts.refuse_too_many(rows, k or 1)
        similarity = None
        if parts.similarity is not None:
            similarity = parts.similarity(rows, features and features._replace(n_clusters=k))
            results |= similarity.results
        partition = parts.partitioner(similarity, rows, k)
        if similarity is not None:
            similarity.free_memory()
        if k is not None:
            remedy = partial(remedy_of, self, parts.partitioner, rows.n_objects * parts.unit, k)
            warn_of_lopsided(rows, partition, remedy, parts.unit)
        return Learned(partition, similarity, results)

    def fit_of(self, parts: Parts, reduction: Reduction, learned: Learned, weighted: bool = False) -> Fit:
        """Return the fit of a reduction and of the partition of its rows."""
        missing = str(getattr(self, "missing", "zero"))
        return Fit(type(self).__name__, parts, reduction, learned, weighted, missing, self.device)

    def take_fit(self, fit: Fit, ensemble: Any) -> None:
        """Set attributes to the results of a fit to ``ensemble``, in place of those of an earlier fit."""
        fit.left_out = getattr(ensemble, "left_out", ())
        for name in getattr(self, "_result_names", ()):
            self.__dict__.pop(f"{name}_", None)
        self.fit_, self.reduction_, self.labels_ = fit, fit.reduction, fit.clusters
        self.n_clusters_, self.n_features_in_ = fit.partition.n_clusters, ensemble.n_clusterings
        results: dict[str, Any] = {} if fit.learned.similarity is None else {"similarity": fit.similarity}
        if all(isinstance(name, str) for name in ensemble.names):
            results["feature_names_in"] = np.array(ensemble.names, dtype=object)
        self._result_names: tuple[str, ...] = ()
        self.add_results(results | fit.results)

    def add_results(self, results: dict[str, Any]) -> None:
        """Set attributes until the next fit; ``results`` are values by their names without the final underscore."""
        self._result_names += tuple(results)
        self.__dict__ |= {f"{name}_": value for name, value in results.items()}

    def within_memory(self, work: Callable[[], T], n_objects: int, n_clusterings: int) -> T:
        """Return ``work()``, which is tried again in smaller pieces if the GPU's memory runs out."""
        return devices.within_memory(
            work,
            f"{type(self).__name__} of {n_objects} objects and {n_clusterings} clusterings",
            "use device='cpu', or reduce the objects first",
        )

    @property
    def _k(self) -> int | None:
        """The parameter `n_clusters` as a Python integer, because sums of NumPy integers may overflow."""
        return None if self.n_clusters is None else int(self.n_clusters)

    # --- labels -------------------------------------------------------------------------------------------------------

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
        return self._fitted().predict(X)

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
        self._fitted().refuse_soft("save writes what predict needs")
        from gpuens.methods.model import model_of

        model_of(self).save(path)

    def _fitted(self) -> Fit:
        check_is_fitted(self, "fit_")
        return self.fit_

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
        >>> new = est.evidence([[0, 0, 1], [0, 2, 2], [0, 0, 1]])  # three clusterings of 3 new objects
        >>> new.labels.tolist(), new.objects.confidence.round(2).tolist()
        ([0, 0, 1], [0.81, 0.57, 0.86])
        """
        return self._fitted().evidence(X, missing)

    @property
    def confidence_(self) -> Array:
        return self._fitted().confidence

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
        smallest = checks.check_between(min_confidence, "min_confidence", 0, 1)
        if (reason := self._fitted().lacks_evidence()) is not None:
            raise TypeError(reason)
        labels, doubtful = devices.native(self.labels_).copy(), devices.native(self.confidence_) < smallest
        if labels.dtype == object:  # texts are in host memory
            doubtful = devices.to_host(doubtful)
        labels[doubtful] = nameless(labels)
        return devices.give_back(labels, devices.home_of(self.labels_))

    # --- attributes of some partitioners ------------------------------------------------------------------------------

    @property
    def membership_(self) -> Array:
        return self._fitted().membership

    @property
    def rest_(self) -> Array:
        return self._fitted().rest

    @property
    def children_(self) -> np.ndarray:
        return self._fitted().dendrogram_of_objects("children_").children()[0]

    @property
    def distances_(self) -> np.ndarray:
        return 1.0 - self._fitted().dendrogram_of_objects("distances_").similarities

    def cut_rows(self, n_clusters: int) -> np.ndarray:
        """Cut the tree of the fit into another number of clusters; return the labels (G,), int64, of rows.

        A fit with this number of clusters would find the same labels.
        """
        return self._fitted().cut(n_clusters, "cut_rows()")[0]

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
        fit = self._fitted()
        return devices.give_back(fit.cut(n_clusters, "cut()")[1], fit.reduction.ensemble.device_kind)

    def linkage_matrix(self) -> np.ndarray:
        """Return SciPy's linkage matrix Z (n_objects - 1, 4) of all objects.

        Distances are 1 - similarity, as in `distances_`. Similarities above 1, which occur in ECRMC, would give
        negative distances, which SciPy does not accept; then, distances are (largest similarity) - similarity. Objects
        with equal label rows merge at the similarity of such objects. If cluster weights are unequal, the distance of
        these objects can be above a cut. ``scipy.cluster.hierarchy.fcluster`` may then split objects with equal rows,
        which have the same label in ``labels_``.
        """
        return self._fitted().dendrogram_of_objects("linkage_matrix()").linkage_matrix()

    def cophenetic_correlation(self) -> float:
        """Return the cophenetic correlation of an average linkage, which is 1 if the tree preserves all similarities.

        The cophenetic correlation is the correlation of the cophenetic similarities and `similarity_` over all pairs of
        objects. It is computed without visiting the pairs. It is NaN if all similarities are equal.
        """
        return self._fitted().cophenetic_correlation()

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
