"""Spatial: domains of objects with neighbours, by any method that reads shares of labels."""

from functools import partial
from typing import Any, Self

import numpy as np

from gpuens.evidence.joins import Joins, count_joins
from gpuens.labels.graph import Graph
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows
from gpuens.methods.base import Method, Seeded
from gpuens.methods.fit import Fit, Learned
from gpuens.methods.lopsided import warn_of_lopsided
from gpuens.methods.parts import Parts
from gpuens.methods.registered import REGISTRY
from gpuens.neighbors.domains import find_domains, groups_with_labels, profile_rule, warn_of_lost_classes
from gpuens.neighbors.regions import default_n_regions
from gpuens.neighbors.walk import STEPS
from gpuens.partition.base import Partition, Partitioner
from gpuens.reduction import Reduction, core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.options import named

METHOD = "qmi"  # k-means of the regions' mean label rows; bench/results/neighbors.md has the evidence
MOST_STEPS = 1000  # a walk that long forgets where it began
LEAST_REGIONS = 32  # smallest default number of regions


class Domains:
    """Attributes of a fitted `Spatial`."""

    potts_: float
    effective_members_: float
    smoothed_labels_: Any
    regions_: np.ndarray
    graph_: Graph | None
    _joins: Joins | None


class RefinedParts(Parts):
    """The parts of a method whose classes are refined by neighbours."""

    @property
    def gives_membership(self) -> bool:
        return True


class Spatial(Domains, Seeded):
    """Domains of objects that have neighbours: cells of a tissue, pixels, fields, papers that cite each other.

    The labels around each object are averaged by a walk of `steps` steps on the graph. Objects with similar averages
    become small connected regions, a method clusters the regions, and a mixture with a Potts prior on the graph refines
    the classes of the single objects. The classes are domains, not types: an object gets the class of its surroundings
    where its own labels leave a doubt, so classes that are mixed in space, such as cell types, are lost. Domains need
    not be connected; for connected clusters, see `gpuens.EAC` with ``graph``.

    Parameters
    ----------
    n_clusters : int, optional
        The number of domains. By default, the number that `gpuens.evidence.suggestion` gives for the labels that
        prevail in each region, with a warning if it is in doubt.
    method : str or estimator
        A method, such as "lwgp" or "kcc:utility=uh", whose partitioner reads shares of labels
        (`gpuens.partition.Partitioner.takes_shares`).
    steps : int
        The number of steps of the walk, from 0: each adds the neighbours' labels.
    regions : int, "auto" or None
        The number of regions, plus one for each further component of the graph. "auto": one for every 16 objects (24
        above 100,000 objects). None: the method clusters the single objects, a sample of 20,000 if there are more, in
        half of the time.
    refine : bool
        Whether the Potts prior refines the classes.
    random_state : int, None or numpy.random.Generator
        Seed of the method.
    device : {"auto", "cpu", "cuda"}
        The device of the walk and the refinement; regions and their partition are computed on the CPU.

    Attributes
    ----------
    labels_ : array (n_objects,), int64
    n_clusters_ : int
    membership_ : array (n_objects, n_clusters), float64
        Only with `refine`: the posterior probabilities of the classes; rows sum to 1.
    potts_ : float
        Only with `refine`: β, the logarithm of the odds by which an edge of mean weight favours equal classes.
    effective_members_ : float
        Only with `refine`: the number of independent clusterings that would err as little as these; 1 for copies.
    smoothed_labels_ : array (n_objects,), int64
        The labels before the refinement, in the numbering of `labels_`.
    regions_ : ndarray (n_objects,), int64
        The region of each object; only with `regions`.
    graph_ : Graph
        The neighbours of the objects.
    joins_ : gpuens.evidence.Joins
        How far each clustering agrees with itself among neighbours; computed on first access.
    suggestion_ : gpuens.evidence.Suggestion
        Only without `n_clusters`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For methods that cannot read shares of labels, and for graphs and labels that do not fit each other.

    Notes
    -----
    The walk is S = Pᵗ H for one-hot labels H and P = D⁻¹ (A + I). Regions merge by contiguous average linkage of S. The
    prior is P(z) ∝ exp(β Σ w_ij [z_i = z_j]); β is estimated by pseudo-likelihood and the number of effective members
    by the correlation of the clusterings' errors. Without edges, the result is that of the method alone.

    References
    ----------
    Li, Wu & Chang, "Segmentation using superpixels: a bipartite graph partitioning approach", CVPR 2012.
    Zhang, Brady & Smith, "Segmentation of brain MR images through a hidden Markov random field model and the
    expectation-maximization algorithm", IEEE Transactions on Medical Imaging 20 (2001) 45-57.

    Examples
    --------
    Two clusterings of a field of 4 × 6 pixels, each with errors:

    >>> import gpuens as ge, numpy as np
    >>> truth = np.repeat([[0, 0, 0, 1, 1, 1]], 4, axis=0)
    >>> one, other = truth.copy(), truth.copy()
    >>> one[1, 1], other[2, 4], other[0, 2] = 1, 0, 1
    >>> labels = np.column_stack([one.ravel(), other.ravel()])
    >>> est = ge.Spatial(2).fit(labels, graph=ge.Graph.grid((4, 6)))
    >>> (est.labels_.reshape(4, 6) == truth).all()
    np.True_
    """

    reduction = None
    cost = "G M k"
    method: Any = METHOD
    steps: int = STEPS
    regions: int | str | None = "auto"
    refine: bool = True

    def _method(self) -> Method:
        """Return the estimator of the method, with the number of clusters and the seed of this one."""
        if isinstance(self.method, str):
            method: Method = named(self.method, REGISTRY.all(), "method")
            if "random_state" in method._get_param_names() and "random_state" not in self.method:
                method.set_params(random_state=self.random_state)
        elif isinstance(self.method, Method):
            method = type(self.method)(**self.method.get_params(deep=False))
        else:
            raise TypeError(f"method must be a name, such as 'lwgp', or an estimator, not {checks.shown(self.method)}.")
        method.set_params(n_clusters=self.n_clusters, device=self.device)
        return method

    def _parts(self) -> tuple[Any, Any]:
        return self._method().parts()[:2]

    def parts(self) -> Parts:
        parts = super().parts()
        return RefinedParts(*parts) if self.refine else parts

    def checked_parts(self) -> Parts:
        parts = super().checked_parts()
        checks.check_integer(self.steps, "steps", minimum=0, maximum=MOST_STEPS)
        if self.regions != "auto" and self.regions is not None:
            checks.check_integer(self.regions, "regions", minimum=1)
        if not isinstance(self.refine, (bool, np.bool_)):
            raise TypeError(f"refine must be True or False, not {checks.shown(self.refine)}.")
        if self._method().reduction is not None:
            raise ValueError("method has a reduction, but regions take its place; leave it out.")
        if not parts.partitioner.takes_shares:
            able = ", ".join(sorted(name for name, kind in REGISTRY.all().items() if _reads_shares(kind)))
            raise ValueError(
                f"method {self._name} cannot read shares of the labels around objects; take one of {able}."
            )
        return parts

    @property
    def _name(self) -> str:
        return repr(self.method) if isinstance(self.method, str) else type(self.method).__name__

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        sample_weight: Any = None,
        wide: bool = False,
        graph: Any = None,
        coordinates: Any = None,
        groups: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> Self:
        """Find the domains of the label matrix ``X`` (n_objects, n_clusterings); ``y`` is ignored.

        Parameters
        ----------
        X : anything that `gpuens.Ensemble` takes
            The neighbours of an object fill in its missing labels.
        graph : anything that `gpuens.Graph.of` takes, optional
            The neighbours of the objects, matched by name if both have names.
        coordinates : array or DataFrame (n_objects, n_dimensions), optional
            In place of a graph: places, each joined to the 6 nearest ones (`gpuens.Graph.neighbors`).
        groups : array (n_objects,), optional
            With coordinates: the slide or image of each object; no edge joins two.
        features, sample_weight, must_link, cannot_link
            Not supported.
        wide : bool
            As in `gpuens.Ensemble`.
        """
        unused = {"features": features, "sample_weight": sample_weight}
        unused |= {"must_link": must_link, "cannot_link": cannot_link}
        for name, value in unused.items():
            if value is not None:
                raise TypeError(f"{name} were given, but Spatial uses labels and neighbours alone; leave {name} out.")
        parts = self.checked_parts()
        if devices.chunked(X):
            X = self._in_memory(X)
        ensemble = self._ensemble_of(X, wide)
        neighbors = graph_of(ensemble.n_objects, ensemble.index, graph, coordinates, groups)
        self._joins = None
        if neighbors is None or not neighbors.n_edges or self._ignores_neighbors:
            reduce = lambda device: core_groups(Rows(ensemble, device=device))  # noqa: E731
            self.fit_reduced(parts, ensemble, reduce, partial(self.learn, parts))
        else:
            kind = ensemble.device_kind
            distinct = core_groups(Rows(ensemble, device=devices.resolve(self.device, kind)))
            work = partial(self._fit_domains, parts, distinct, neighbors, kind)
            self.take_fit(self.within_memory(work, ensemble.n_objects, ensemble.n_clusterings), ensemble)
        self.add_results({"graph": neighbors})
        return self

    def _in_memory(self, labels: Any) -> Any:
        """Return labels in chunks as an array; refuse them if their shares would have to be in memory, too."""
        if self.regions is not None:
            raise TypeError(
                "labels are in chunks, of which no regions are made; pass regions=None, or labels.compute()."
            )
        checks.check_memory(labels.nbytes, devices.memory_budget(), "labels in chunks", "take fewer clusterings")
        return labels.compute()

    @property
    def joins_(self) -> Joins:
        if (graph := getattr(self, "graph_", None)) is None:
            raise AttributeError("this Spatial has no joins_; fit it with a graph or coordinates.")
        if self._joins is None:
            rows, row_of = self.reduction_.rows, self.reduction_.row_of
            self._joins = count_joins(rows.take(row_of, np.ones(len(row_of), dtype=np.int64)), graph)
        return self._joins

    @property
    def _ignores_neighbors(self) -> bool:
        return self.steps == 0 and self.regions is None and not self.refine

    def _n_regions(self, graph: Graph) -> int | None:
        """Return the number of regions, at least one for each component of the graph; None: single objects."""
        if self.regions is None:
            return None
        if self.regions == "auto":
            n_regions = max(default_n_regions(graph.n_objects), LEAST_REGIONS, 2 * (self._k or 0))
        else:
            n_regions = int(self.regions)
        return min(n_regions + graph.n_components - 1, graph.n_objects)

    def _fit_domains(self, parts: Parts, distinct: Reduction, graph: Graph, kind: str) -> Fit:
        """Return the fit of domains to the objects of core groups; ``kind`` is the memory of labels."""
        results: dict[str, Any] = {}
        rows = distinct.rows
        similarity = None if parts.similarity is None else parts.similarity(rows, None)

        def partition(shares: Rows) -> Partition:
            k, suggestion = self._resolve_n_clusters(parts.partitioner, shares)
            results.update(suggestion)
            partitioner = parts.partitioner.at_most() if suggestion else parts.partitioner
            partitioner.refuse_too_many(shares, k or 1, "labels" if similarity is None else similarity.kind)
            return partitioner(similarity, shares, k)

        domains = find_domains(
            distinct, graph, partition, steps=self.steps, n_regions=self._n_regions(graph), refined=bool(self.refine)
        )
        k = int(domains.labels.max()) + 1
        with checks.recorded():  # warnings about a consensus that the user never sees
            without_graph = parts.partitioner(similarity, rows, min(k, len(rows)))
        warn_of_lost_classes(
            devices.to_host(without_graph.labels)[devices.to_host(distinct.row_of)], domains.labels, graph
        )
        reduction, row_labels = groups_with_labels(distinct, domains.labels, k)
        numbers, labels = reduction.by_size(row_labels, k)
        row_labels = numbers[row_labels]
        rule = profile_rule(reduction.rows, row_labels, k)
        fit = self.fit_of(parts, reduction, Learned(Partition(row_labels, k, rule), None, results))
        fit.clusters = devices.give_back(labels, kind)
        if domains.refinement is not None:
            fit.membership_of_objects = domains.refinement.membership[:, np.argsort(numbers)]
            results["potts"] = domains.refinement.beta
            results["effective_members"] = domains.refinement.tau * rows.n_clusterings
        if domains.regions is not None:
            results["regions"] = domains.regions
        numbers = np.append(numbers, np.arange(k, int(domains.smoothed.max()) + 1))
        results["smoothed_labels"] = devices.give_back(numbers[domains.smoothed], kind)
        warn_of_lopsided(reduction.rows, fit.partition, lambda: "compare the method without graph")
        return fit

    def _resolve_n_clusters(self, partitioner: Partitioner, rows: Rows) -> tuple[int | None, dict[str, Any]]:
        """Return the number of clusters; if none was given, the one suggested by the prevailing labels of regions."""
        return super()._resolve_n_clusters(partitioner, rows if rows.of_labels else rows.hardened())


def graph_of(n_objects: int, index: Any, graph: Any, coordinates: Any, groups: Any) -> Graph | None:
    """Return the graph of objects, named by an index or None, from a graph or coordinates; None if neither is given."""
    if graph is not None and coordinates is not None:
        raise TypeError("graph and coordinates were given, but one of them names the neighbours; leave the other out.")
    if groups is not None and coordinates is None:
        raise TypeError("groups were given without coordinates; a graph has no edges between groups already.")
    if coordinates is not None:
        places = in_order_of(index, coordinates, "coordinates")
        if groups is not None:
            groups = in_order_of(index, groups, "groups")
        graph = Graph.neighbors(places, groups=None if groups is None else np.asarray(devices.to_host(groups)))
        if graph.n_objects != n_objects:
            raise ValueError(
                f"coordinates are of {graph.n_objects} objects, but labels of {n_objects}; pass one place for each "
                "object."
            )
    return None if graph is None else Graph.of(graph, n_objects, index)


def _reads_shares(kind: type[Method]) -> bool:
    """Return whether the partitioner of a method reads shares."""
    try:
        return kind().parts().partitioner.takes_shares
    except TypeError:  # a method of another package whose parameters have no defaults
        return False
