"""What all estimators share: labels in, a reduction, a partition of its rows, labels of all objects out."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.incidence import row_lookups
from gpuens.partition import Dendrogram, Work
from gpuens.partition.label_kmeans import label_histograms
from gpuens.reduction import CoreGroups, Reduction, check_reduced, core_groups, reducer
from gpuens.scattered import Numbered, Pieces
from gpuens.similarity.coassociation import self_similarities

SimilaritySums: TypeAlias = Callable[[Ensemble], np.ndarray]


class Consensus(ClusterMixin, BaseEstimator):
    """Base of the consensus estimators; a method implements ``_partition``.

    Attributes (after ``fit``)
    --------------------------
    labels_ : array (n_objects,), int64
        On the device that the labels came from.
    n_clusters_ : int
    reduction_ : Reduction
        The weighted rows that the method worked on; core groups unless told otherwise.

    Notes
    -----
    There is no ``predict`` yet, and scikit-learn's ``GridSearchCV`` scores what a model predicts of objects held out:
    with a score of clusterings it gives NaN. A consensus is found of all objects anyway, so try the parameters of a
    ``ParameterGrid`` one after the other, with a score of your own; without a truth, how well the result agrees with
    the base clusterings is one.

    >>> from sklearn.model_selection import ParameterGrid
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 1, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1, 1, 1]]
    >>> def agreement(consensus):
    ...     return sum(ge.metrics.ari(consensus, column) for column in labels) / len(labels)
    >>> grid = ParameterGrid({"n_clusters": [2, 3, 4], "theta": [0.2, 0.4, 1.0]})
    >>> scores = [agreement(ge.LWEA(**parameters).fit_predict(labels)) for parameters in grid]
    >>> grid[scores.index(max(scores))]["n_clusters"], round(max(scores), 2)
    (2, 0.6)
    """

    n_clusters: int | None
    reduction: Any
    device: str
    reduction_: Reduction

    def fit(self, X: Any, y: Any = None) -> "Consensus":
        """Find the consensus of the label matrix ``X`` (n_objects, n_clusterings); ``y`` is ignored.

        A Dask array is worked on in its chunks, see `gpuens.distributed`, and so are `labels_`.
        """
        if devices.chunked(X):
            from gpuens.distributed import fit

            return fit(self, X)
        ensemble = Ensemble(X)
        reduction = self._checked()

        def reduce(device: str) -> Reduction:
            if reduction is None:
                return core_groups(ensemble, device=device)
            return check_reduced(reduction.reduce(ensemble), reduction)

        return self._fit(ensemble, reduce)

    def _checked(self) -> Any:
        """Return what reduces the ensemble, None for core groups; refuse what no data could make right."""
        if self.n_clusters is not None:
            checks.check_integer(self.n_clusters, "n_clusters", minimum=1)
        elif not self._chooses_n_clusters:
            checks.check_n_clusters(None, 0)
        self._check_parameters()
        reduction = None if self.reduction is None else reducer(self.reduction)
        return None if isinstance(reduction, CoreGroups) else reduction

    def _fit(self, ensemble: Ensemble, reduce: Callable[[str], Reduction]) -> "Consensus":
        """Find the consensus of a reduction, made where the work is done; ``ensemble`` says what there is to label."""
        device = devices.resolve(self.device, ensemble.device_kind)

        def work() -> None:
            self.reduction_ = reduce(device)
            if self.n_clusters is not None or not self._chooses_n_clusters:
                checks.check_n_clusters(
                    self.n_clusters, len(self.reduction_.weights), reduced=self.reduction is not None
                )
            labels = self._partition(self.reduction_, device)
            self.n_clusters_ = int(labels.max()) + 1
            if self.reduction_.others is not None:
                labels = np.concatenate([labels, self._label_others(self.reduction_, labels, device)])
            found = self.reduction_.expand(labels)
            self.labels_ = found if devices.chunked(found) else devices.move(found, ensemble.device_kind)

        devices.within_memory(
            work,
            f"{type(self).__name__} of {ensemble.n_objects} objects and {ensemble.n_clusterings} clusterings",
            "use device='cpu', or reduce the objects first",
        )
        self._note_names(ensemble)
        return self

    def _note_names(self, ensemble: Ensemble) -> None:
        """Remember the clusterings as scikit-learn remembers features."""
        self.n_features_in_ = ensemble.n_clusterings
        if all(isinstance(name, str) for name in ensemble.names):
            self.feature_names_in_ = np.array(ensemble.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def _k(self) -> int:
        """How many clusters are wanted, whatever kind of whole number says so: sums in int8 would overflow."""
        assert self.n_clusters is not None  # refused before
        return int(self.n_clusters)

    _chooses_n_clusters = False
    _takes_features = False  # whether fit has a parameter X for the features of the objects

    def _check_parameters(self) -> None:
        """Refuse parameters that no data could make right, before any work."""

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        """Return the label of each row of the reduction, 0 … k - 1 with none left out."""
        raise NotImplementedError

    def _learn(self, rows: Pieces) -> Numbered:
        """Return a rule that labels any rows, learned of rows that no process holds all of.

        Only for methods that compare rows with clusters and not with one another.
        """
        raise MemoryError(
            f"{type(self).__name__} needs all label rows in one process, and the {rows.n_rows} that are left of all "
            "chunks do not fit; work on a sample, reduction=Sample(…), or by LWGP, HBGF, CgC or CrCIa, which take rows "
            "in pieces (GPUENS_MEMORY=… sets another limit)."
        )

    @property
    def learns_in_pieces(self) -> bool:
        """Whether the method can do with sums over rows that no process holds all of (`gpuens.distributed`)."""
        return type(self)._learn is not Consensus._learn

    def _label_others(self, reduced: Reduction, labels: np.ndarray, device: str) -> np.ndarray:
        """Return the cluster that each of the other rows is most similar to; the largest of those that tie."""
        assert reduced.others is not None
        members = np.bincount(labels, weights=reduced.weights)
        largest_first = np.argsort(-members, kind="stable")
        sums_of = self._similarity_sums(reduced, labels, device)
        found = []
        step = max(4096, devices.scratch(device) // (32 * len(members)))
        for start in range(0, len(reduced.others), step):
            sums = sums_of(reduced.others.take(slice(start, start + step)))[:, largest_first]
            if reduced.label_by == "mean":
                sums /= members[largest_first]
            found.append(largest_first[sums.argmax(axis=1)])
        return np.concatenate(found)

    def _similarity_sums(self, reduced: Reduction, labels: np.ndarray, device: str) -> SimilaritySums:
        """Return what sums the similarities of any rows to the members of each cluster, (rows, k), host.

        The sum over the members is S H, looked up by the row's labels, where H[c, t] of the members of t are in cluster
        c: no member is visited.
        """
        codes, offsets, k = reduced.ensemble.codes_on(device), reduced.ensemble.offsets, int(labels.max()) + 1
        xp = devices.namespace(device)
        held = label_histograms(codes, offsets, xp.asarray(reduced.weights), xp.asarray(labels), k, device=device)
        table = self._times_similarity(devices.to_host(held).astype(np.float64), reduced, device)
        return lambda rows: devices.to_host(row_lookups(rows.codes_on(device), offsets, table, device=device))

    def _times_similarity(self, held: np.ndarray, reduced: Reduction, device: str) -> np.ndarray:
        """Return S H, but for a common factor, for the method's cluster similarity S; co-association has S = I."""
        return held

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


class LinkageConsensus(Consensus):
    """Base of the methods that cut a dendrogram; a method implements ``_link``.

    Attributes (after ``fit``)
    --------------------------
    dendrogram_ : gpuens.partition.Dendrogram
        Of the reduction's rows.
    children_ : ndarray (n_objects - 1, 2), int64
    distances_ : ndarray (n_objects - 1,), float64
        scikit-learn's merge list of all objects, never falling; distance = 1 - similarity. Made when first asked for.
    lifetimes_ : ndarray, float64
        The range of distances that gives 2, 3, … clusters; the longest decides where nothing else does.
    work_ : gpuens.partition.Work
        Label comparisons, searches and rounds that the linkage took.
    """

    distance_threshold: float | None
    _chooses_n_clusters = True

    def _check_parameters(self) -> None:
        self._check_cut(above=0.0)

    def _check_cut(self, *, above: float) -> None:
        """Refuse a distance threshold that is no such number, and one beside a number of clusters."""
        if self.distance_threshold is None:
            return
        if self.n_clusters is not None:
            raise ValueError(
                "n_clusters and distance_threshold both say where to cut; give one of them and leave the other None."
            )
        checks.check_real(self.distance_threshold, "distance_threshold", above=above)

    def _partition(self, reduced: Reduction, device: str) -> np.ndarray:
        self._objects: Dendrogram | None = None
        self.work_ = Work()
        self.dendrogram_, self._cluster_weights = self._link(reduced, device)
        self._self_similarities = self._own_similarities(reduced, device)
        repeated = self._self_similarities[reduced.weights > 1]
        made_at = 1.0 - float(repeated.min()) if len(repeated) else None  # where the last equal rows merge
        self.lifetimes_ = self.dendrogram_.lifetimes(made_at)
        if self.distance_threshold is not None:
            k = self.dendrogram_.n_clusters_at(self.distance_threshold)
        elif self.n_clusters is not None:
            k = self._k
        else:
            k = self._of_longest_lifetime()
        return self.dendrogram_.cut(k)

    def _link(self, reduced: Reduction, device: str) -> tuple[Dendrogram, np.ndarray]:
        """Return the dendrogram of the rows and S times M: the weight of each cluster, its diagonal, or all of it."""
        raise NotImplementedError

    def _own_similarities(self, reduced: Reduction, device: str) -> np.ndarray:
        """Return how similar each row is to another object with the same row (host)."""
        return self_similarities(reduced.ensemble, self._cluster_weights, device=device)

    def _times_similarity(self, held: np.ndarray, reduced: Reduction, device: str) -> np.ndarray:
        return self._cluster_weights[:, None] * held

    def _of_longest_lifetime(self) -> int:
        """Return the number of clusters that lasts over the widest range of heights; the fewest win ties.

        As many clusters as there are distinct rows are the answer only if they last longer than all fewer clusters
        together: no two different rows can be nearer than one label is worth, so that they always last a while.
        """
        lifetimes = self.lifetimes_
        n_rows = self.dendrogram_.n_leaves
        if len(lifetimes) == n_rows - 1 > 0:  # the rows are groups of objects
            if lifetimes[-1] > lifetimes[:-1].sum():
                return n_rows
            lifetimes = lifetimes[:-1]
        return 2 + int(np.argmax(lifetimes)) if len(lifetimes) else 1

    def _object_dendrogram(self, name: str) -> Dendrogram:
        dendrogram = self.dendrogram_  # AttributeError before fit, as scikit-learn expects
        if not self.reduction_.covers_all:
            raise AttributeError(
                f"{name} is the merge list of all objects, and this dendrogram is that of a sample; use dendrogram_, "
                "whose leaves are the rows of reduction_.ensemble."
            )
        if self._objects is None:
            self._objects = dendrogram.expand(devices.to_host(self.reduction_.membership), self._self_similarities)
        return self._objects

    @property
    def children_(self) -> np.ndarray:
        return self._object_dendrogram("children_").children()[0]

    @property
    def distances_(self) -> np.ndarray:
        return 1.0 - self._object_dendrogram("distances_").similarities

    def linkage_matrix(self) -> np.ndarray:
        """Return SciPy's linkage matrix Z (n_objects - 1, 4) of all objects.

        It is the literal dendrogram, in which objects with equal rows merge at 1 - (their similarity). With unequal
        cluster weights that can lie above a cut, so that ``scipy.cluster.hierarchy.fcluster`` may split such objects;
        ``labels_`` keeps them together.
        """
        return self._object_dendrogram("linkage_matrix()").linkage_matrix()
