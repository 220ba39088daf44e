"""The consensus of clusterings in files: read them, fit an estimator, write labels and evidence."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpuens import datasets, io
from gpuens.cli.chunks import IN_ONE_PIECE, ChunkSettings
from gpuens.cli.graph_settings import GraphSettings
from gpuens.io import annotated
from gpuens.io.edges import read_pairs
from gpuens.io.name_trees import read_name_tree
from gpuens.io.paths import IN_CHUNKS
from gpuens.io.shapes import label_shape
from gpuens.labels.answers import Answers
from gpuens.labels.edges import match_objects
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.name_tree import QUORUM, NamesInTree
from gpuens.labels.odd_columns import warn_of_equal_clusterings
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.labels.weights import copies_of
from gpuens.methods.registered import CONNECTED
from gpuens.runtime.checks import gist
from gpuens.runtime.device import to_host
from gpuens.runtime.record import TIES, Clock
from gpuens.workflows import results
from gpuens.workflows.results import potts_of, suggestion_facts, tree_sizes, vote_facts

EVIDENCE = "computing the evidence for each object"  # text that the progress display shows


def check_input(
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
        parts = estimator.checked_parts()
        if method in CONNECTED:
            parts.refuse_graph(type(estimator).__name__)
        return
    needs_features = estimator.parts().needs_features
    if features is not None and not needs_features:
        raise ValueError(
            f"{spelled('features')} is no option of method {method!r}, which uses only labels; leave it out."
        )
    if needs_features and features is None:
        raise ValueError(
            f"{spelled('features')} is needed, because method {method!r} compares the objects by features; name a file."
        )
    if needs_features and scheduler is not None:
        raise ValueError(
            f"{spelled('scheduler')}={scheduler} is for work in chunks, but method {method!r} compares each "
            "object with all others; leave it out."
        )
    estimator.checked_parts()


class TreeSettings(NamedTuple):
    """A tree of names in a file, and the least support of a name in it."""

    path: str
    quorum: float = QUORUM


class RunResult(NamedTuple):
    """The ensemble and the result of a run."""

    # ensemble of the labels; if the labels were read in chunks, ensemble of the core groups of objects
    ensemble: Any
    sizes: list[int]  # number of objects in each cluster of the consensus
    evidence: dict[str, float] | None = None
    n_doubtful: int | None = None  # number of objects whose confidence is below the least confidence, if there is one
    ids: Any = None  # names of the objects that have labels
    weights: Any = None  # weights of the objects in the ensemble; None if all objects count once
    file: Any = None  # the `io.LabelFile`; None if it was read in chunks
    graph: Any = None  # the `gpuens.Graph` of the neighbours of the objects; None without neighbours
    in_tree: NamesInTree | None = None  # names of the objects in a tree, which are the labels; None without a tree

    @property
    def n_unlabelled(self) -> int:
        """The number of objects that were left out because they have no label."""
        labelled = None if self.file is None else self.file.labelled
        return 0 if labelled is None else int((~labelled).sum())

    @property
    def columns(self) -> list[str]:
        """The names of the clusterings, or [] if they have no names."""
        return [name for name in self.ensemble.names if isinstance(name, str)]


@dataclass(frozen=True)
class LabelSource:
    """The files with the clusterings and with further data of the objects, and how to read them."""

    labels: str  # path of the label file
    more_labels: Sequence[str] = ()  # paths of further label files, whose objects are joined with `labels` by name
    reading: dict[str, Any] = field(default_factory=dict)  # further arguments for `io.read_label_file`
    features: str | None = None
    by_position: bool = False  # whether features are in the order of the labels, whatever the names of the objects
    weight_column: str | None = None  # column of the label file with weights of the objects; it is not a clustering
    neighbors: GraphSettings | None = None  # the graph of the objects, which names no file in chunks
    chunks: ChunkSettings | None = None
    links: dict[str, str] = field(default_factory=dict)  # paths of "must_link" and "cannot_link"

    def __str__(self) -> str:
        return f"{self.labels} and {len(self.more_labels)} more" if self.more_labels else self.labels

    @property
    def beside(self) -> list[str]:
        """The files and data sets beside the label files."""
        paths = [self.features] if self.features else []
        paths += self.links.values()
        return paths + ([] if self.neighbors is None else list(self.neighbors.files(self.labels).values()))

    @property
    def long(self) -> bool:
        """Whether the one label file is a table with a line for each label."""
        return bool(self.reading.get("long")) and not self.more_labels

    def read_labels(self, estimator: Any, *, in_lines: bool = False) -> Any:
        """Read the clusterings for an estimator as an `io.LabelFile`, without the columns of weights and of places.

        With ``in_lines``, a long table is read as `gpuens.Answers`.
        """
        if self.more_labels:
            return io.read_joined([self.labels, *self.more_labels], **self.reading)
        # objects without an answer become unknown, and words for no answer are those of the estimator
        words: dict[str, Any] = {"missing": [], "shared_names": True} if estimator.parts().gives_names else {}
        columns = [] if self.neighbors is None else self.neighbors.columns_of(self.labels)
        columns += [] if self.weight_column is None else [self.weight_column]
        grid = {} if self.neighbors is None or self.neighbors.shape is None else {"grid": self.neighbors.shape}
        excluded = {"exclude": [*(self.reading.get("exclude") or []), *columns]} if columns else {}
        options = words | self.reading | excluded | grid
        if in_lines:
            from gpuens.io.long_tables import read_answers_file

            return read_answers_file(self.labels, estimator.no_answer, **options)
        if self.long and SoftEnsemble in estimator.further_forms:
            from gpuens.io.long_tables import read_soft_file

            return read_soft_file(self.labels, **options)
        return io.read_label_file(self.labels, **options)

    def read_links(self, ids: Any, n_objects: int) -> dict[str, Any]:
        """Read the links as arrays (n_pairs, 2) of positions of the objects with names ``ids``."""
        links = {}
        for name, path in self.links.items():
            pairs = read_pairs(path)
            try:
                edges = match_objects(pairs, n_objects, ids)
            except ValueError as error:
                raise ValueError(f"path {path!r}: {error}") from error
            links[name] = np.column_stack([edges.first, edges.second])
        return links

    def read_weights(self) -> Any:
        """Read the weights of all objects of the file, as an array of numbers."""
        reading = {name: self.reading[name] for name in ("key", "sep", "header") if name in self.reading}
        must = f"--weight-column={self.weight_column} must name one column of numbers, the weights of the objects"
        try:
            columns = io.read_columns(self.labels, columns=[self.weight_column], **reading)
        except ValueError as error:
            raise ValueError(f"{must}; correct it ({gist(error)}).") from error
        weights = [np.asarray(column) for column in columns.values()]
        if len(weights) != 1 or weights[0].dtype.kind not in "iuf":
            raise ValueError(f"{must}; correct it.")
        return weights[0]


@dataclass(frozen=True)
class Output:
    """The file to write, and what it holds beside the labels."""

    path: str
    evidence: bool = False  # certainty, confidence and margin of each object
    membership: bool = False  # memberships of each object
    min_confidence: float | None = None  # the least confidence of a label
    # name of the labels in the output if the output is a copy of the h5ad input file; otherwise None
    key_added: str | None = None
    report: bool = False  # whether a report page will be drawn later; a report page needs evidence
    model: bool = False  # whether a model will be written later; a model needs label rows

    @property
    def needs_evidence(self) -> bool:
        return self.evidence or self.min_confidence is not None

    @property
    def has_more(self) -> bool:
        """Whether the output holds more than the labels, which `FileConsensus.complete` adds.

        The labels alone are written first, so that they are kept if this fails.
        """
        return self.key_added is None and (self.needs_evidence or self.membership)


@dataclass
class FileConsensus:
    """A consensus of clusterings in files: the files to read, the estimator to fit and the output to write."""

    method: str
    estimator: Any
    source: LabelSource
    output: Output
    # function that writes a setting and its value as the user would, such as a command-line option
    write_setting: Callable[[str, str], str] = "{}={!r}".format
    tree: TreeSettings | None = None  # tree of the names of a shared vocabulary

    def find(self, clock: Clock, announce: Callable[[str], None] = lambda line: None) -> RunResult:
        """Read the labels, fit the estimator and write its labels; the clock measures the time of these phases.

        ``announce`` is called with the plan of a run in chunks.
        """
        if self.source.chunks is not None:
            return self._find_in_chunks(self.source.chunks, clock, announce)
        result, beside = self._read_input(clock)
        output, ensemble = self.output, result.ensemble
        tree = None if self.tree is None else read_name_tree(self.tree.path)
        if (output.needs_evidence or output.report) and self.estimator.n_clusters is not None:
            from gpuens.evidence.overlaps import check_overlaps

            with clock.phase("fit"):
                n_labels = ensemble.n_objects * ensemble.n_clusterings
                check_overlaps(n_labels, ensemble.n_clusters, self.estimator.n_clusters)

        with clock.phase("fit", f"fitting {self.method} to {ensemble.n_objects:,} objects"):
            self.estimator.fit(ensemble, **beside)
        result = result._replace(sizes=results.cluster_sizes(self.estimator.fit_.clusters))
        if self.tree is not None:
            in_tree = self.estimator.labels_in_tree(tree, quorum=self.tree.quorum)
            result = result._replace(in_tree=in_tree)
        if output.key_added is None:
            fit_results = results.results_of(self.estimator, result.file.labelled, in_tree=result.in_tree)
            return self._write(result, fit_results, clock)
        return self._write_copy(result, output.key_added, clock)

    def complete(self, result: RunResult, clock: Clock) -> RunResult:
        """Compute the evidence and the membership, and write the output again with the labels and these numbers."""
        output = self.output
        with clock.phase("evidence", EVIDENCE) if output.needs_evidence else nullcontext():
            contents = output.evidence, output.membership, output.min_confidence, result.weights, result.in_tree
            fit_results = results.results_of(self.estimator, result.file.labelled, *contents)
        return self._write(result, fit_results, clock)

    def refuse_beyond_memory(self) -> None:
        """Raise MemoryError, before the labels are read, if the run would certainly exceed the memory budget."""
        from gpuens.methods.forecast import refuse_beyond_memory

        source = self.source
        if source.chunks is not None or source.more_labels or source.neighbors is not None:
            return
        shape = label_shape(source.labels, **source.reading)  # a column of weights counts as a clustering
        if shape is not None:
            features = source.features is not None
            refuse_beyond_memory(self.estimator, shape, self.method, self._remedies, features=features)

    @property
    def _remedies(self) -> dict[str, str]:
        """The settings of this run that reduce its memory, as the user would write them."""
        from gpuens.methods.forecast import SAMPLE

        source, output = self.source, self.output
        remedies = {"reduction": f"work on a sample, {self.write_setting('reduction', SAMPLE)}"}
        in_one_piece = output.evidence or output.membership or source.features or source.weight_column is not None
        in_one_piece = in_one_piece or any(source.reading.get(name) not in (None, False) for name in IN_ONE_PIECE)
        if source.labels.lower().endswith(IN_CHUNKS) and not in_one_piece:
            remedies["scheduler"] = f"read the labels in chunks, {self.write_setting('scheduler', 'threads')}"
        return remedies

    def _read_input(self, clock: Clock) -> tuple[RunResult, dict[str, Any]]:
        """Read all files; return the input as a result without sizes, and the further arguments of the fit."""
        source, beside = self.source, {}
        with clock.phase("read", f"reading {source}"):
            self.refuse_beyond_memory()
            weights = None if source.weight_column is None else source.read_weights()
            neighbors = source.neighbors
            places = None if neighbors is None else neighbors.read(source.labels, source.reading)
            file = source.read_labels(self.estimator, in_lines=self._reads_answers)
            self._refuse_shares(file.ensemble)
            if weights is not None:
                weights = weights if file.labelled is None else weights[file.labelled]
                self._refuse_fractions(weights, file.ensemble.n_clusterings)
                beside["sample_weight"] = weights
            key = self.output.key_added
            index = None if key is None else annotated.read_index_name(source.labels)
            if source.features is not None and self.estimator.parts().needs_features:
                beside["features"] = datasets.load_beside(
                    source.labels, file.ids, source.features, by_position=source.by_position
                ).X
            if neighbors is not None:
                graph = neighbors.graph_of(places, source.labels, file, by_position=source.by_position)
                self._refuse_without_edges(graph)
                beside["graph"] = graph
        if key is not None:
            annotated.check_key(key, file.ensemble.names, index)
        ids = file.ids if file.ids is None or file.labelled is None else file.ids[file.labelled]
        beside |= source.read_links(ids, file.ensemble.n_objects)
        result = RunResult(file.ensemble, [], ids=ids, weights=weights, file=file, graph=beside.get("graph"))
        return result, beside

    @property
    def _reads_answers(self) -> bool:
        """Whether answers in long form stay so, in memory that grows with the answers; evidence needs label rows."""
        source, output = self.source, self.output
        takes_answers = Answers in self.estimator.further_forms and self.estimator.parts().gives_names
        needs_rows = (
            output.needs_evidence or output.report or source.weight_column or source.reading.get("drop_unlabelled")
        )
        return source.long and takes_answers and not needs_rows

    def _refuse_shares(self, ensemble: Any) -> None:
        """Raise an error, before the fit, if a part of the output needs label rows, which shares are not."""
        output = self.output
        parts = {
            "--evidence": output.evidence,
            "--min-confidence": output.min_confidence is not None,
            "--model": output.model,
        }
        option = next((option for option, needed in parts.items() if needed), None)
        if option is not None and isinstance(ensemble, SoftEnsemble):
            raise ValueError(
                f"{option} needs one label of each object in a clustering, but path {self.source.labels!r} has shares; "
                "leave it out (--membership gives the shares of each object in the consensus)."
            )

    def _refuse_without_edges(self, graph: Any) -> None:
        """Raise an error, before the fit, if memberships are needed, which a graph without edges does not give."""
        if self.output.membership and not graph.n_edges:
            raise ValueError(
                "--membership needs neighbours, but the graph of the objects has no edges; correct the graph, or leave "
                "--membership out."
            )

    def _refuse_fractions(self, weights: Any, n_clusterings: int) -> None:
        """Raise an error, before the fit, if evidence is needed and weights have fractions."""
        if self.output.needs_evidence and not copies_of(weights, len(weights), n_clusterings).whole:
            option = "--evidence" if self.output.evidence else "--min-confidence"
            raise ValueError(
                f"{option} needs whole numbers as weights, but column {self.source.weight_column!r} has fractions; "
                f"round them, or leave {option} out."
            )

    def _write(self, result: RunResult, fit_results: Any, clock: Clock) -> RunResult:
        with clock.phase("write", f"writing {self.output.path}"):
            io.write_labels(self.output.path, fit_results.labels, ids=result.file.ids, beside=fit_results.beside)
        return result._replace(evidence=fit_results.evidence, n_doubtful=fit_results.n_doubtful)

    def _write_copy(self, result: RunResult, key: str, clock: Clock) -> RunResult:
        """Write a copy of the h5ad input file with labels and evidence."""
        with clock.phase("evidence", EVIDENCE):
            fit_results = results.all_results_of(
                self.estimator, result.file.labelled, self.output.min_confidence, result.weights, result.in_tree
            )
        with clock.phase("write", f"writing {self.output.path}"):
            neighbors = {} if self.source.neighbors is None else self.source.neighbors.chosen
            entries = results.annotated_entries(
                key, fit_results, self.method, self.estimator, result.ensemble.names, neighbors
            )
            annotated.write_copy(self.output.path, self.source.labels, entries)
        return result._replace(evidence=fit_results.evidence, n_doubtful=fit_results.n_doubtful)

    def _find_in_chunks(self, chunks: ChunkSettings, clock: Clock, announce: Callable[[str], None]) -> RunResult:
        from gpuens.distributed import fit, plan, read_labels, write_labels

        path, estimator = self.source.labels, self.estimator
        options = self.source.reading
        reading = {name: options[name] for name in ("columns", "exclude", "missing") if name in options}
        with chunks.connected() as client:
            with clock.phase("plan", f"planning the work on {path}"):
                labels = chunks.placed(read_labels(path, chunk_rows=chunks.rows, **reading))
                announce(f"plan: {plan(labels, estimator, client=client, every_column=True)}")
            with clock.phase("fit", f"fitting {self.method} in chunks"):
                fit(estimator, labels, client=client, every_column=True)
            self._warn_of_equal_clusterings()
            with clock.phase("write", f"writing {self.output.path}"):
                counts = write_labels(self.output.path, estimator.labels_, client=client)
        return RunResult(estimator.reduction_.ensemble, counts.tolist())

    def _warn_of_equal_clusterings(self) -> None:
        """Warn about clusterings that have equal clusters in all core groups, and therefore for all objects."""
        if self.is_exact and "columns" not in self.source.reading:
            reduction = self.estimator.reduction_
            groups, n = reduction.ensemble, int(reduction.counts.sum())
            path = f"path {self.source.labels!r}"
            warn_of_equal_clusterings(groups.codes, np.diff(groups.offsets), groups.names, path, n_objects=n)

    def facts(self, result: RunResult) -> dict[str, Any]:
        """Return the facts that the record of the run contains, except versions, times and memory."""
        source, estimator, ensemble = self.source, self.estimator, result.ensemble
        facts = {
            "method": self.method,
            "parameters": estimator.get_params(),
            "input": [source.labels, *source.more_labels] if source.more_labels else source.labels,
            "features": source.features or None,
            **source.links,
            "n_neighbors": getattr(estimator, "n_neighbors_", None),
            "n_objects": sum(result.sizes),
            "form": (result.file is not None and result.file.form) or None,
            "n_unlabelled": result.n_unlabelled or None,
            "n_clusterings": ensemble.n_clusterings,
            "columns": result.columns or None,
            "n_base_clusters": ensemble.n_clusters,
        }
        facts = {name: value for name, value in facts.items() if value is not None}
        if result.graph is None:
            of_rows = self.is_exact and isinstance(ensemble, Ensemble)
            facts["n_core_groups" if of_rows else "n_rows"] = estimator.reduction_.n_representatives
        facts |= {"n_clusters": estimator.n_clusters_, **suggestion_facts(estimator)}
        if source.neighbors is not None:
            facts |= source.neighbors.facts(result.graph)
        facts |= {**potts_of(estimator), "cluster_sizes": result.sizes}
        if result.weights is not None:
            facts |= {"weight_column": source.weight_column, "weight_unit": estimator.weight_unit_}
            facts["cluster_weights"] = self.cluster_weights(result)
        facts["ties"] = TIES
        if result.evidence:
            facts["evidence"] = result.evidence
        if result.n_doubtful is not None:
            facts |= {"min_confidence": self.output.min_confidence, "n_doubtful": result.n_doubtful}
        if estimator.parts().gives_names:
            facts |= vote_facts(estimator)
        if self.tree is not None and result.in_tree is not None:
            facts |= {"tree": self.tree.path, "quorum": self.tree.quorum, "names_in_tree": tree_sizes(result.in_tree)}
        return facts | ({"work": vars(estimator.work_)} if hasattr(estimator, "work_") else {})

    def cluster_weights(self, result: RunResult) -> list[float]:
        """Return the summed weights of the objects in each cluster, in the order of ``result.sizes``."""
        labels = to_host(self.estimator.labels_)
        sums = np.zeros(labels.max() + 1, dtype=result.weights.dtype.kind + "8")  # whole numbers of any size are exact
        np.add.at(sums, labels, result.weights)
        return sums.tolist()

    @property
    def is_exact(self) -> bool:
        """Whether the run clustered core groups of objects, which gives the same result as all objects."""
        return self.estimator.reduction in (None, "core-groups")
