"""A run: read base clusterings from files, find their consensus, and write its labels to a file."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpuens.runtime.defaults import FORMS
from gpuens.runtime.record import TIES, Clock
from gpuens.workflows.neighbors import GraphSettings, facts_of, potts_of

CHUNK_ROWS = 1_000_000  # default number of objects in a chunk
EVIDENCE = "computing the evidence for each object"  # text that the progress display shows


class ChunkSettings(NamedTuple):
    """The settings of work on labels or features that are read in chunks."""

    scheduler: str  # "threads" for threads of this process, "local", "cuda", or the address of a scheduler
    workers: int | None = None
    rows: int = CHUNK_ROWS

    def connected(self) -> AbstractContextManager[Any]:
        """Return a context that connects to the scheduler, or starts it, and yields the client.

        For scheduler "threads", the context yields None.
        """
        from gpuens.distributed import connected

        return connected(None if self.scheduler == "threads" else self.scheduler, self.workers)

    def placed(self, chunks: Any) -> Any:
        """Move the chunks of an array of labels to the GPUs if the scheduler is "cuda"; return the labels in chunks."""
        from gpuens.distributed import on_gpus

        return on_gpus(chunks) if self.scheduler == "cuda" and not hasattr(chunks, "columns") else chunks


# reading options that are not available if the file is read in chunks
ORIENTATION = ("wide", "transpose")
IN_ONE_PIECE = ("key", "id_column", "drop_unlabelled", *ORIENTATION, *FORMS, "sep", "header", "no_missing")
STARTED = ("local", "cuda")  # schedulers that start workers on this machine


def scheduler_of(path: str, named: str | None, *, in_one_piece: bool = False) -> str | None:
    """Return the scheduler for reading a file in chunks, or None if the file is read in one piece.

    The scheduler ``named`` by the user has precedence. Without it, a zarr array is read in chunks by threads, unless
    options of its reading need it ``in_one_piece``.
    """
    from gpuens.io.paths import is_zarr

    return "threads" if named is None and is_zarr(path) and not in_one_piece else named


def check(
    estimator: Any,
    method: str,
    *,
    features: Any = None,
    scheduler: Any = None,
    neighbors: bool = False,
    spelled: Callable[[str], str] = str,
) -> None:
    """Raise an error, before any work, if the estimator lacks features, does not use them, or cannot work in chunks.

    With ``neighbors``, raise an error if it cannot use them. ``spelled`` converts the name of a setting to the form in
    which the user gave it, such as a command-line option.
    """
    if neighbors:
        from gpuens.methods.base import refuse_graph
        from gpuens.methods.registered import CONNECTED

        parts = estimator._checked()
        if method in CONNECTED:
            refuse_graph(parts, type(estimator).__name__, None, None)
        return
    if features is not None and not estimator.needs_features:
        raise ValueError(
            f"{spelled('features')} is no option of method {method!r}, which uses only labels; leave it out."
        )
    if estimator.needs_features and features is None:
        raise ValueError(
            f"{spelled('features')} is needed, because method {method!r} compares the objects by features; name a file."
        )
    if estimator.needs_features and scheduler is not None:
        raise ValueError(
            f"{spelled('scheduler')}={scheduler} is for work in chunks, but method {method!r} compares each "
            "object with all others; leave it out."
        )
    estimator._checked()


class Done(NamedTuple):
    """The input and the result of a run."""

    # ensemble of the labels; if the labels were read in chunks, ensemble of the core groups of objects
    ensemble: Any
    sizes: list[int]  # number of objects in each cluster of the consensus
    n_unlabelled: int = 0  # number of objects that were left out because they have no label
    evidence: dict[str, float] | None = None
    n_doubtful: int | None = None  # number of objects whose confidence is below the least confidence, if there is one
    ids: Any = None  # names of the objects that have labels
    weights: Any = None  # weights of the objects in the ensemble; None if all objects count once
    read: Any = None  # the `io.LabelFile`; None if the file was read in chunks
    graph: Any = None  # the `gpuens.Graph` of the neighbours of the objects; None without neighbours


@dataclass
class Run:
    """A run: the file to read, the estimator to fit and the output to write."""

    labels: str  # path of the label file
    method: str
    estimator: Any
    output: str
    reading: dict[str, Any] = field(default_factory=dict)  # further arguments for `io.read_label_file`
    features: str | None = None
    chunks: ChunkSettings | None = None
    evidence: bool = False  # whether to write certainty, confidence and margin of each object to the output
    membership: bool = False  # whether to write the memberships of each object to the output
    # name of the labels in the output if the output is a copy of the h5ad input file; otherwise None
    key_added: str | None = None
    report: bool = False  # whether a report page will be drawn later; a report page needs evidence
    min_confidence: float | None = None  # the least confidence of a label in the output
    weight_column: str | None = None  # column of the label file with weights of the objects; it is not a clustering
    by_position: bool = False  # whether features are in the order of the labels, whatever the names of the objects
    others: Sequence[str] = ()  # paths of further label files, whose objects are joined with `labels` by name
    # function that writes a setting and its value as the user would, such as a command-line option
    written: Callable[[str, str], str] = "{}={!r}".format
    neighbors: GraphSettings | None = None  # the graph of the objects, which names no file in chunks

    def carry_out(self, clock: Clock, announce: Callable[[str], None] = lambda line: None) -> Done:
        """Read the labels, fit the estimator and write its labels; the clock measures the time of these phases.

        ``announce`` is called with the plan of a run in chunks.
        """
        if self.chunks is not None:
            return self._in_chunks(self.chunks, clock, announce)
        return self._in_memory(clock)

    def refuse_beyond_memory(self) -> None:
        """Raise MemoryError, before the labels are read, if the run would certainly exceed the memory budget."""
        from gpuens.io.shapes import label_shape
        from gpuens.methods.forecast import refuse_beyond_memory

        if self.chunks is not None or self.others or self.neighbors is not None:
            return
        shape = label_shape(self.labels, **self.reading)  # a column of weights counts as a clustering
        if shape is not None:
            features = self.features is not None
            refuse_beyond_memory(self.estimator, shape, self.method, self._remedies, features=features)

    @property
    def _remedies(self) -> dict[str, str]:
        """The settings of this run that reduce its memory, as the user would write them."""
        from gpuens.io.kinds import IN_CHUNKS
        from gpuens.methods.forecast import SAMPLE

        whole = self.evidence or self.membership or self.features is not None or self.weight_column is not None
        found = {"reduction": f"work on a sample, {self.written('reduction', SAMPLE)}"}
        whole = whole or any(self.reading.get(name) not in (None, False) for name in IN_ONE_PIECE)
        if self.labels.lower().endswith(IN_CHUNKS) and not whole:
            found["scheduler"] = f"read the labels in chunks, {self.written('scheduler', 'threads')}"
        return found

    def _in_memory(self, clock: Clock) -> Done:
        from gpuens import datasets, io
        from gpuens.evidence.overlaps import check_overlaps
        from gpuens.io import annotated

        with clock.phase("read", f"reading {self.inputs}"):
            self.refuse_beyond_memory()
            weights = None if self.weight_column is None else self._weights()
            source = None if self.neighbors is None else self.neighbors.read(self.labels, self.reading)
            # objects without an answer become unknown, and words for no answer are those of the estimator
            given: dict[str, Any] = {"missing": [], "shared_names": True} if self.estimator.gives_names else {}
            if self.others:
                read = io.read_joined([self.labels, *self.others], **self.reading)
            else:
                read = io.read_label_file(self.labels, **given | self._reading)
            if weights is not None:
                weights = weights if read.labelled is None else weights[read.labelled]
                self._refuse_fractions(weights, read.ensemble.n_clusterings)
            index = None if self.key_added is None else annotated.read_index_name(self.labels)
            beside: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
            if self.features is not None:
                beside["features"] = datasets.load_beside(
                    self.labels, read.ids, self.features, by_position=self.by_position
                ).X
            if self.neighbors is not None:
                graph = self.neighbors.graph_of(source, self.labels, read, by_position=self.by_position)
                self._refuse_without_edges(graph)
                beside["graph"] = graph
        if self.key_added is not None:
            annotated.check_key(self.key_added, read.ensemble.names, index)
        if (self.evidence or self.report or self.min_confidence is not None) and self.estimator.n_clusters is not None:
            labels = read.ensemble
            with clock.phase("fit"):
                check_overlaps(labels.n_objects * labels.n_clusterings, labels.n_clusters, self.estimator.n_clusters)
        with clock.phase("fit", f"fitting {self.method} to {read.ensemble.n_objects:,} objects"):
            self.estimator.fit(read.ensemble, **beside)
        n_unlabelled = 0 if read.labelled is None else len(read.labelled) - read.ensemble.n_objects
        ids = read.ids if read.ids is None or read.labelled is None else read.ids[read.labelled]
        sizes = sizes_of(self.estimator._clusters)
        done = Done(read.ensemble, sizes, n_unlabelled, ids=ids, weights=weights, read=read, graph=beside.get("graph"))
        if self.key_added is None:
            return self._written(done, results_of(self.estimator, read.labelled), clock)
        with clock.phase("evidence", EVIDENCE):
            found = all_results_of(self.estimator, read.labelled, self.min_confidence, weights)
        with clock.phase("write", f"writing {self.output}"):
            added = entries(
                self.key_added, found, self.method, self.estimator, read.ensemble.names, self._chosen_neighbors
            )
            annotated.write_copy(self.output, self.labels, added)
        return done._replace(evidence=found.evidence, n_doubtful=found.n_doubtful)

    @property
    def _reading(self) -> dict[str, Any]:
        """The arguments for reading the clusterings, which leave out the columns of weights and of places."""
        others = [] if self.neighbors is None else self.neighbors.columns_of(self.labels)
        others += [] if self.weight_column is None else [self.weight_column]
        grid = {} if self.neighbors is None or self.neighbors.shape is None else {"grid": self.neighbors.shape}
        excluded = {"exclude": [*(self.reading.get("exclude") or []), *others]} if others else {}
        return self.reading | excluded | grid

    @property
    def _chosen_neighbors(self) -> dict[str, Any]:
        return {} if self.neighbors is None else self.neighbors.chosen

    def _refuse_without_edges(self, graph: Any) -> None:
        """Raise an error, before the fit, if memberships are needed, which a graph without edges does not give."""
        if self.membership and not graph.n_edges:
            raise ValueError(
                "--membership needs neighbours, but the graph of the objects has no edges; correct the graph, or leave "
                "--membership out."
            )

    def _weights(self) -> Any:
        """Read the weights of all objects of the file, as an array of numbers."""
        import numpy as np

        from gpuens import io
        from gpuens.runtime.checks import gist

        how = {name: self.reading[name] for name in ("key", "sep", "header") if name in self.reading}
        must = f"--weight-column={self.weight_column} must name one column of numbers, the weights of the objects"
        try:
            columns = io.read_columns(self.labels, columns=[self.weight_column], **how)
        except ValueError as error:
            raise ValueError(f"{must}; correct it ({gist(error)}).") from error
        found = [np.asarray(column) for column in columns.values()]
        if len(found) != 1 or found[0].dtype.kind not in "iuf":
            raise ValueError(f"{must}; correct it.")
        return found[0]

    def _refuse_fractions(self, weights: Any, n_clusterings: int) -> None:
        """Raise an error, before the fit, if evidence is needed and weights have fractions."""
        from gpuens.labels.weights import copies_of

        if not self.evidence and self.min_confidence is None:
            return
        option = "--evidence" if self.evidence else "--min-confidence"
        if not copies_of(weights, len(weights), n_clusterings).whole:
            raise ValueError(
                f"{option} needs whole numbers as weights, but column {self.weight_column!r} has fractions; round "
                f"them, or leave {option} out."
            )

    @property
    def inputs(self) -> str:
        """The label files as a text."""
        return f"{self.labels} and {len(self.others)} more" if self.others else self.labels

    @property
    def has_more(self) -> bool:
        """Whether `complete` must write evidence or membership in addition to the labels, or leave out doubtful labels.

        The labels alone are written first, so that they are kept if `complete` fails.
        """
        return self.key_added is None and (self.evidence or self.membership or self.min_confidence is not None)

    def complete(self, done: Done, clock: Clock) -> Done:
        """Compute the evidence and the membership, and write the output again with the labels and these numbers."""
        needed = self.evidence or self.min_confidence is not None
        with clock.phase("evidence", EVIDENCE) if needed else nullcontext():
            found = results_of(
                self.estimator, done.read.labelled, self.evidence, self.membership, self.min_confidence, done.weights
            )
        return self._written(done, found, clock)

    def _written(self, done: Done, found: "FitResults", clock: Clock) -> Done:
        from gpuens import io

        with clock.phase("write", f"writing {self.output}"):
            io.write_labels(self.output, found.labels, ids=done.read.ids, beside=found.beside)
        return done._replace(evidence=found.evidence, n_doubtful=found.n_doubtful)

    def _in_chunks(self, chunks: ChunkSettings, clock: Clock, announce: Callable[[str], None]) -> Done:
        from gpuens.distributed import fit, plan, read_labels, write_labels

        reading = {name: self.reading[name] for name in ("columns", "exclude", "missing") if name in self.reading}
        with chunks.connected() as client:
            with clock.phase("plan", f"planning the work on {self.labels}"):
                labels = chunks.placed(read_labels(self.labels, chunk_rows=chunks.rows, **reading))
                announce(f"plan: {plan(labels, self.estimator, client=client, every_column=True)}")
            with clock.phase("fit", f"fitting {self.method} in chunks"):
                fit(self.estimator, labels, client=client, every_column=True)
            self._warn_of_equal_columns()
            with clock.phase("write", f"writing {self.output}"):
                counts = write_labels(self.output, self.estimator.labels_, client=client)
        return Done(self.estimator.reduction_.ensemble, counts.tolist())

    def _warn_of_equal_columns(self) -> None:
        """Warn about clusterings that have equal clusters in all core groups, and therefore for all objects."""
        import numpy as np

        from gpuens.labels.odd_columns import warn_of_equal_clusterings

        if self.is_exact and "columns" not in self.reading:
            found = self.estimator.reduction_
            groups, n = found.ensemble, int(found.counts.sum())
            about = groups.codes, np.diff(groups.offsets), groups.names, f"path {self.labels!r}"
            warn_of_equal_clusterings(*about, n_objects=n)

    def facts(self, done: Done) -> dict[str, Any]:
        """Return the facts that the record of the run contains, except versions, times and memory."""
        estimator, ensemble, columns = self.estimator, done.ensemble, self.columns(done)
        n_rows = "n_core_groups" if self.is_exact else "n_rows"
        return {
            "method": self.method,
            "parameters": estimator.get_params(),
            "input": [self.labels, *self.others] if self.others else self.labels,
            **({"features": self.features} if self.features else {}),
            **({"n_neighbors": estimator.n_neighbors_} if hasattr(estimator, "n_neighbors_") else {}),
            "n_objects": sum(done.sizes),
            **({"form": done.read.form} if done.read is not None and done.read.form else {}),
            **({"n_unlabelled": done.n_unlabelled} if done.n_unlabelled else {}),
            "n_clusterings": ensemble.n_clusterings,
            **({"columns": columns} if columns else {}),
            "n_base_clusters": ensemble.n_clusters,
            **({n_rows: estimator.reduction_.n_representatives} if done.graph is None else {}),
            "n_clusters": estimator.n_clusters_,
            **suggested(estimator),
            **({} if self.neighbors is None else facts_of(self.neighbors, done.graph)),
            **potts_of(estimator),
            "cluster_sizes": done.sizes,
            **self._of_weights(done),
            "ties": TIES,
            **({"evidence": done.evidence} if done.evidence else {}),
            **(
                {"min_confidence": self.min_confidence, "n_doubtful": done.n_doubtful}
                if done.n_doubtful is not None
                else {}
            ),
            **(votes_of(estimator) if estimator.gives_names else {}),
            **({"work": vars(estimator.work_)} if hasattr(estimator, "work_") else {}),
        }

    def _of_weights(self, done: Done) -> dict[str, Any]:
        if done.weights is None:
            return {}
        return {
            "weight_column": self.weight_column,
            "weight_unit": self.estimator.weight_unit_,
            "cluster_weights": self.cluster_weights(done),
        }

    def cluster_weights(self, done: Done) -> list[float]:
        """Return the summed weights of the objects in each cluster, in the order of ``done.sizes``."""
        import numpy as np

        from gpuens.runtime.device import to_host

        labels = to_host(self.estimator.labels_)
        sums = np.zeros(labels.max() + 1, dtype=done.weights.dtype.kind + "8")  # whole numbers of any size are exact
        np.add.at(sums, labels, done.weights)
        found: list[float] = sums.tolist()
        return found

    def columns(self, done: Done) -> list[str]:
        """Return the names of the clusterings, or [] if the clusterings have no names."""
        return [name for name in done.ensemble.names if isinstance(name, str)]

    @property
    def is_exact(self) -> bool:
        """Whether the run clustered core groups of objects, which gives the same result as all objects."""
        return self.estimator.reduction in (None, "core-groups")


def suggested(estimator: Any) -> dict[str, Any]:
    """Return the entry of the record about a number of clusters that the user did not give."""
    suggestion = getattr(estimator, "suggestion_", None)
    return {} if suggestion is None else {"suggestion": suggestion.to_dict()}


def votes_of(estimator: Any) -> dict[str, Any]:
    """Return the facts about votes over shared names for the record of a run."""
    found = estimator.agreement_
    shares = zip(map(str, found.annotators), found.overall.tolist(), strict=True)
    return {
        "cluster_names": estimator.cluster_names_.tolist(),
        "n_ties": estimator.n_ties_,
        "n_unanswered": estimator.n_unanswered_,
        "agreement_with_consensus": {name: None if share != share else share for name, share in shares},
    }


class FitResults(NamedTuple):
    """The results of a fit for all objects of a file."""

    labels: Any  # array (n_objects,); -1 for objects that were left out because they have no label
    # name → array of numbers, one row for each object, such as the confidence (n_objects,); NaN for objects left out
    beside: dict[str, Any]
    evidence: dict[str, Any] | None  # means of the evidence over the objects, for the record of the run
    n_doubtful: int | None = None  # number of objects of the fit that have no label because of their confidence


def results_of(
    estimator: Any,
    labelled: Any,
    evidence: bool = False,
    membership: bool = False,
    min_confidence: float | None = None,
    weights: Any = None,
) -> FitResults:
    """Return the labels of a fitted estimator; if requested, also compute the evidence and the membership.

    ``labelled`` (n_objects,) is the mask of the objects in the fit; None means that all objects were in the fit. An
    object whose confidence is below ``min_confidence`` has the label -1, or "Unknown" among names. ``weights`` are
    those of the objects in the fit; None means that each object counts once.
    """
    from gpuens.labels.vocabulary import nameless
    from gpuens.runtime.device import to_host

    labels, n_doubtful = estimator.labels_, None
    if min_confidence is not None:
        labels, n_doubtful = estimator._confident_labels(min_confidence)

    means, beside = _evidence(estimator, weights) if evidence else (None, {})
    if membership:
        beside["membership"] = to_host(estimator.membership_)
    beside = {
        name: _of_all(values, labelled, False if values.dtype == bool else float("nan"))
        for name, values in beside.items()
    }
    return FitResults(_of_all(labels, labelled, nameless(labels)), beside, means, n_doubtful)


def all_results_of(
    estimator: Any, labelled: Any, min_confidence: float | None = None, weights: Any = None
) -> FitResults:
    """Return labels, evidence and membership for an AnnData.

    If the evidence does not fit the memory, or if weights have fractions, it is left out with a warning.
    """
    from gpuens.runtime import checks

    try:
        return results_of(estimator, labelled, True, estimator.gives_membership, min_confidence, weights)
    except (MemoryError, TypeError) as error:
        if min_confidence is not None or (isinstance(error, TypeError) and estimator._lacks_evidence() is None):
            raise
        checks.warn(f"certainty, confidence and margin are left out: {error}")
        return results_of(estimator, labelled, False, estimator.gives_membership)


def entries(
    key: str, found: FitResults, method: str, estimator: Any, names: list[Any], neighbors: Mapping[str, Any]
) -> Any:
    """Return the entries that the results of a fit add to an AnnData; see `gpuens.io.annotated.entries`.

    ``neighbors`` are the settings of the graph of the cells, which join the parameters.
    """
    from gpuens.io import annotated
    from gpuens.labels.vocabulary import as_texts
    from gpuens.runtime.device import to_host

    parameters = {"method": method, **estimator.get_params(), **neighbors, "clusterings": names}
    labels, facts = to_host(found.labels), {**(found.evidence or {}), **potts_of(estimator)}
    if estimator.gives_names:  # texts, because numbers in h5ad files are clusters by size
        labels = as_texts(labels)
        facts = {**facts, "classes": estimator.classes_}  # columns of the membership
    return annotated.entries(key, labels, found.beside, parameters, **facts)


def _of_all(values: Any, labelled: Any, nothing: Any) -> Any:
    """Expand the values of the fitted objects to all objects of the file; unlabelled objects get ``nothing``.

    ``labelled`` is the mask of the fitted objects; None means that all objects were fitted.
    """
    import numpy as np

    if labelled is None:
        return values
    found = np.full((len(labelled), *values.shape[1:]), nothing, dtype=object if values.dtype == object else None)
    found[labelled] = values
    return found


def _evidence(estimator: Any, weights: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the means of the evidence for the record, and the evidence of each object for the output file."""
    import numpy as np

    from gpuens.io.annotated import BESIDE, REST
    from gpuens.runtime.device import to_host

    found = estimator.evidence()
    means = {}
    for name in (*BESIDE, "item_consensus", "silhouette"):
        values = getattr(found.objects, name)
        known = ~np.isnan(values)
        of_known = None if weights is None else weights[known]
        means[name] = float(np.average(values[known], weights=of_known)) if known.any() else None
    beside = {name: getattr(found.objects, name) for name in BESIDE}
    if estimator.marks_rest:
        beside[REST] = to_host(estimator.rest_)
    return {"anmi": found.agreement.anmi, "ecs": found.agreement.mean_ecs, **means}, beside


def sizes_of(labels: Any) -> list[int]:
    """Return the number of objects in each cluster, as a list in the order of the labels 0, 1, 2, …"""
    import numpy as np

    from gpuens.runtime.device import to_host

    sizes: list[int] = np.bincount(to_host(labels)).tolist()
    return sizes
