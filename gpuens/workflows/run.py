"""One run: read base clusterings from a file, fit a consensus, and write its labels."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpuens.runtime.record import TIES, Clock

CHUNK_ROWS = 1_000_000  # objects per chunk, if not given
EVIDENCE = "computing the evidence for each object"  # text of the progress display


class ChunkSettings(NamedTuple):
    """The settings of work on labels or features that are read in chunks."""

    scheduler: str  # "threads" (of this process), "local", "cuda" or an address
    workers: int | None = None
    rows: int = CHUNK_ROWS

    def connected(self) -> AbstractContextManager[Any]:
        """Connect to the scheduler, or start it; the context yields the client, or None for threads."""
        from gpuens.distributed import connected

        return connected(None if self.scheduler == "threads" else self.scheduler, self.workers)

    def placed(self, chunks: Any) -> Any:
        """Return the labels in chunks; with scheduler "cuda", the chunks of an array move to the GPUs."""
        from gpuens.distributed import on_gpus

        return on_gpus(chunks) if self.scheduler == "cuda" and not hasattr(chunks, "columns") else chunks


# options of READING that work in chunks lacks
IN_ONE_PIECE = ("key", "id_column", "drop_unlabelled", "wide", "sep", "header")
STARTED = ("local", "cuda")  # schedulers that start workers on this machine


def scheduler_of(path: str, named: str | None, *, wide: bool = False) -> str | None:
    """Return the scheduler for work on a file in chunks, or None to read the file in one piece.

    A zarr array is read in chunks, unless it has few objects (``wide``).
    """
    from gpuens.io.paths import is_zarr

    return "threads" if named is None and is_zarr(path) and not wide else named


def check(
    estimator: Any, method: str, *, features: Any = None, scheduler: Any = None, spelled: Callable[[str], str] = str
) -> None:
    """Refuse, before any work, an estimator that does not fit the given features or the work in chunks.

    ``spelled`` turns the name of a setting into the user's spelling, such as an option of the command line.
    """
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

    ensemble: Any  # ensemble of the labels; in chunks, the ensemble of their core groups
    sizes: list[int]  # objects of each cluster of the consensus
    n_unlabelled: int = 0  # objects left out because they have no label
    evidence: dict[str, float] | None = None
    ids: Any = None  # names of the objects that have labels
    labels_of_fit: list[int] | None = None  # the label of each category of an h5ad file
    read: Any = None  # the `io.LabelFile`, or None in chunks


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
    evidence: bool = False  # whether to write confidence and margin beside the labels
    membership: bool = False  # whether to write memberships beside the labels
    key_added: str | None = None  # name of the labels in the output, if it is a copy of the h5ad file
    report: bool = False  # whether a page will be drawn; a page needs evidence

    def carry_out(self, clock: Clock, announce: Callable[[str], None] = lambda line: None, instead: Any = None) -> Done:
        """Read, fit and write the labels; the clock measures the phases.

        ``announce`` receives the plan of a run in chunks, and advice if the fit would take minutes but that of the
        estimator ``instead`` only seconds.
        """
        if self.chunks is not None:
            return self._in_chunks(self.chunks, clock, announce)
        return self._in_memory(clock, announce, instead)

    def _in_memory(self, clock: Clock, announce: Callable[[str], None], instead: Any) -> Done:
        from gpuens import datasets, io
        from gpuens.evidence.inputs import check_tables
        from gpuens.io import annotated

        with clock.phase("read", f"reading {self.labels}"):
            read = io.read_label_file(self.labels, named=True, **self.reading)
            index = None if self.key_added is None else annotated.read_index_name(self.labels)
            features = {}
            if self.features is not None:
                features["features"] = datasets.load_beside(self.labels, read.ids, self.features).X
        if instead is not None:
            with clock.phase("forecast"):
                self._advise(instead, read.ensemble, announce)
        if self.key_added is not None:
            annotated.check_key(self.key_added, read.ensemble.names, index)
        if (self.evidence or self.report) and self.estimator.n_clusters is not None:
            with clock.phase("fit"):
                check_tables(read.ensemble.n_clusters, self.estimator.n_clusters)
        with clock.phase("fit", f"fitting {self.method} to {read.ensemble.n_objects:,} objects"):
            self.estimator.fit(read.ensemble, **features)
        n_unlabelled = 0 if read.labelled is None else len(read.labelled) - read.ensemble.n_objects
        ids = read.ids if read.ids is None or read.labelled is None else read.ids[read.labelled]
        done = Done(read.ensemble, sizes_of(self.estimator.labels_), n_unlabelled, ids=ids, read=read)
        if self.key_added is None:
            return self._written(done, results_of(self.estimator, read.labelled), clock)
        of_fit = annotated.by_size(done.sizes).tolist()
        done = done._replace(sizes=[done.sizes[label] for label in of_fit], labels_of_fit=of_fit)
        with clock.phase("evidence", EVIDENCE):
            found = all_results_of(self.estimator, read.labelled)
        with clock.phase("write", f"writing {self.output}"):
            added = entries(self.key_added, found, self.method, self.estimator, read.ensemble.names)
            annotated.write_copy(self.output, self.labels, added)
        return done._replace(evidence=found.evidence)

    def _advise(self, instead: Any, ensemble: Any, announce: Callable[[str], None]) -> None:
        from gpuens.methods import ESTIMATORS
        from gpuens.workflows import forecast

        if (seconds := forecast.advice(self.estimator, instead, ensemble)) is not None:
            own, other = map(forecast.human_seconds, seconds)
            name = ESTIMATORS[type(instead).__name__]
            announce(f"{self.method} may take about {own} on these labels; --method {name} may take about {other}")

    @property
    def has_more(self) -> bool:
        """Whether `complete` must write numbers beside the labels; labels are written first and survive its failure."""
        return self.key_added is None and (self.evidence or self.membership)

    def complete(self, done: Done, clock: Clock) -> Done:
        """Compute evidence and membership, and write the labels again together with these numbers."""
        with clock.phase("evidence", EVIDENCE) if self.evidence else nullcontext():
            found = results_of(self.estimator, done.read.labelled, self.evidence, self.membership)
        return self._written(done, found, clock)

    def _written(self, done: Done, found: "FitResults", clock: Clock) -> Done:
        from gpuens import io

        with clock.phase("write", f"writing {self.output}"):
            io.write_labels(self.output, found.labels, ids=done.read.ids, beside=found.beside)
        return done._replace(evidence=found.evidence)

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
        """Warn about clusterings that are equal in all core groups, and therefore in all chunks."""
        import numpy as np

        from gpuens.labels.odd_columns import warn_of_equal_columns

        if self.is_exact and "columns" not in self.reading:
            found = self.estimator.reduction_
            groups, n = found.ensemble, int(found.counts.sum())
            about = groups.codes, np.diff(groups.offsets), groups.names, f"path {self.labels!r}"
            warn_of_equal_columns(*about, n_objects=n)

    def facts(self, done: Done) -> dict[str, Any]:
        """Return the facts of a run for its record, without versions, times and memory."""
        estimator, ensemble, columns = self.estimator, done.ensemble, self.columns(done)
        n_rows = "n_core_groups" if self.is_exact else "n_rows"
        return {
            "method": self.method,
            "parameters": estimator.get_params(),
            "input": self.labels,
            **({"features": self.features} if self.features else {}),
            **({"n_neighbors": estimator.n_neighbors_} if hasattr(estimator, "n_neighbors_") else {}),
            "n_objects": sum(done.sizes),
            **({"n_unlabelled": done.n_unlabelled} if done.n_unlabelled else {}),
            "n_clusterings": ensemble.n_clusterings,
            **({"columns": columns} if columns else {}),
            "n_base_clusters": ensemble.n_clusters,
            n_rows: estimator.reduction_.n_representatives,
            "n_clusters": estimator.n_clusters_,
            "cluster_sizes": done.sizes,
            "ties": TIES,
            **({"labels_of_fit": done.labels_of_fit} if done.labels_of_fit else {}),
            **({"evidence": done.evidence} if done.evidence else {}),
            **({"work": vars(estimator.work_)} if hasattr(estimator, "work_") else {}),
        }

    def columns(self, done: Done) -> list[str]:
        """Return the names of the clusterings, or [] without names."""
        return [name for name in done.ensemble.names if isinstance(name, str)]

    @property
    def is_exact(self) -> bool:
        """Whether the run clustered core groups, an exact reduction."""
        return self.estimator.reduction in (None, "core-groups")


class FitResults(NamedTuple):
    """The results of a fit for all objects of a file."""

    labels: Any  # (n_objects,), -1 for objects that were left out as unlabelled
    # name → numbers of each object, such as the confidence (n_objects,); NaN for objects left out
    beside: dict[str, Any]
    evidence: dict[str, Any] | None  # mean values for a record


def results_of(estimator: Any, labelled: Any, evidence: bool = False, membership: bool = False) -> FitResults:
    """Return the labels of a fitted estimator, with evidence and membership on request.

    ``labelled`` (n_objects,) is the mask of the fitted objects; None means all.
    """
    from gpuens.runtime.device import to_host

    means, beside = _evidence(estimator) if evidence else (None, {})
    if membership:
        beside["membership"] = to_host(estimator.membership_)
    beside = {
        name: _of_all(values, labelled, False if values.dtype == bool else float("nan"))
        for name, values in beside.items()
    }
    return FitResults(_of_all(estimator.labels_, labelled, -1), beside, means)


def all_results_of(estimator: Any, labelled: Any) -> FitResults:
    """Return labels, evidence and membership for an AnnData; evidence too large for the memory causes a warning."""
    from gpuens.runtime import checks

    try:
        return results_of(estimator, labelled, True, estimator.gives_membership)
    except MemoryError as error:
        checks.warn(f"confidence and margin are left out: {error}")
        return results_of(estimator, labelled, False, estimator.gives_membership)


def entries(key: str, found: FitResults, method: str, estimator: Any, names: list[Any]) -> Any:
    """Return the entries that a fit adds to an AnnData; see `gpuens.io.annotated.entries`."""
    from gpuens.io import annotated
    from gpuens.runtime.device import to_host

    parameters = {"method": method, **estimator.get_params(), "clusterings": names}
    return annotated.entries(key, to_host(found.labels), found.beside, parameters, **(found.evidence or {}))


def _of_all(values: Any, labelled: Any, nothing: float) -> Any:
    """Return the values of all objects of a file, with ``nothing`` for unlabelled objects that were left out."""
    import numpy as np

    if labelled is None:
        return values
    found = np.full((len(labelled), *values.shape[1:]), nothing)
    found[labelled] = values
    return found


def _evidence(estimator: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a summary of the evidence for the record, and the numbers to be written beside the labels."""
    import numpy as np

    from gpuens.io.annotated import BESIDE, REST
    from gpuens.runtime.device import to_host

    found = estimator.evidence()
    means = {}
    for name in ("confidence", "margin", "item_consensus", "silhouette"):
        values = getattr(found.objects, name)
        means[name] = None if np.isnan(values).all() else float(np.nanmean(values))
    beside = {name: getattr(found.objects, name) for name in BESIDE}
    if estimator.marks_rest:
        beside[REST] = to_host(estimator.rest_)
    return {"anmi": found.agreement.anmi, "ecs": found.agreement.mean_ecs, **means}, beside


def sizes_of(labels: Any) -> list[int]:
    """Return the number of objects with each label."""
    import numpy as np

    from gpuens.runtime.device import to_host

    sizes: list[int] = np.bincount(to_host(labels)).tolist()
    return sizes
