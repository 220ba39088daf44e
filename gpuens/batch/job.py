"""One job of a batch: its input, method and output, and the fingerprint that shows whether its result is up to date."""

import dataclasses
import hashlib
import json
import re
from typing import Any

from gpuens import __version__, io
from gpuens.batch import places
from gpuens.cli.chunks import ChunkSettings
from gpuens.cli.file_consensus import FileConsensus, LabelSource, Output, check_input
from gpuens.cli.graph_settings import GraphSettings
from gpuens.io.paths import FOLDERS, OUTPUTS
from gpuens.methods import REGISTRY, make_with_neighbors
from gpuens.runtime import checks
from gpuens.runtime.defaults import FORMS
from gpuens.runtime.device import DEVICES

FORMATS = tuple(kind[1:] for kind in OUTPUTS if kind not in FOLDERS)
READING = (
    *("key", "columns", "exclude", "id_column", "missing", "no_missing", "sep", "header", "drop_unlabelled"),
    *("wide", "transpose", *FORMS),
)


@dataclasses.dataclass(frozen=True)
class Job:
    """A job of a batch; each of its fields has a JSON value."""

    id: str
    input: str  # path or URI as written in the manifest
    method: str  # name of a method, or "consensus" with a similarity and a partitioner among the parameters
    n_clusters: int | None = None
    parameters: dict[str, Any] = dataclasses.field(default_factory=dict)
    reading: dict[str, Any] = dataclasses.field(default_factory=dict)
    features: str | None = None
    neighbors: dict[str, Any] = dataclasses.field(default_factory=dict)  # fields of `GraphSettings`
    chunks: tuple[str, int | None, int] | None = None
    format: str = "npy"
    report: bool = False
    evidence: bool = False

    def facts(self) -> dict[str, Any]:
        """Return a dict of all fields of the job except its id."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name != "id"}

    @property
    def labels_name(self) -> str:
        return f"{self.id}.labels.{self.format}"

    @property
    def page_name(self) -> str:
        return f"{self.id}.html"

    def all_outputs(self) -> list[str]:
        """Return the names of all files, except the marker, that a job of this id may write."""
        return [self.page_name, *(f"{self.id}.labels.{kind}" for kind in FORMATS)]

    @property
    def marker_name(self) -> str:
        return f"{self.id}.json"

    def estimator(self) -> Any:
        """Make the estimator of this job; raise an error if its parameters are invalid."""
        if self.neighbors:
            estimator = make_with_neighbors(self.method, self.n_clusters, self.parameters)
        else:
            estimator = class_of(self.method)(self.n_clusters, **self.parameters)
        of_input: dict[str, Any] = {"features": self.features, "scheduler": self.chunks and self.chunks[0]}
        check_input(estimator, self.method, **of_input, neighbors=bool(self.neighbors))
        checks.check_choice(estimator.device, "device", DEVICES)
        return estimator

    def beside(self) -> dict[str, str]:
        """Return {field: path or URI} for the files beside the label file, such as the features."""
        features = {} if self.features is None or not is_file(self.features) else {"features": self.features}
        return features | GraphSettings(**self.neighbors).files(self.input)

    def consensus(self, labels: str, output: str, beside: dict[str, str]) -> FileConsensus:
        """Return the consensus of local files; ``beside`` gives their paths by field, as the method `beside` does."""
        local = self.neighbors | {name: path for name, path in beside.items() if name in self.neighbors}
        source = LabelSource(
            labels,
            reading=dict(self.reading),
            features=beside.get("features", self.features),
            neighbors=GraphSettings.of(local),
            chunks=None if self.chunks is None else ChunkSettings(*self.chunks),
        )
        return FileConsensus(self.method, self.estimator(), source, Output(output, evidence=self.evidence))

    def fingerprint(self, inputs: dict[str, Any]) -> str:
        """Return the SHA-256 of the job, of the sizes and stamps of its inputs, and of gpuens's minor version.

        >>> Job("a", "x.npy", "lwea").fingerprint({}) == Job("b", "x.npy", "lwea").fingerprint({})
        True
        """
        return _digest({**self.facts(), "inputs": inputs, "gpuens": __version__.split(".")[:2]})

    def slug(self) -> str:
        """Return an id made from the input, the method, the number of clusters, and 8 digits that make it unique."""
        stem = re.sub(r"\W+", "-", re.split(r"[/\\]", self.input.rstrip("/\\"))[-1].split(".")[0]).strip("-_")
        decisive = {name: value for name, value in self.facts().items() if name not in ("format", "report", "evidence")}
        k = "auto" if self.n_clusters is None else f"k{self.n_clusters}"
        return f"{stem[:60] or 'labels'}-{self.method}-{k}-{_digest(decisive)[:8]}"


def is_file(features: str) -> bool:
    """Return whether the text ``features`` is a path or URI of a file, and not the name of a data set."""
    return places.is_uri(features) or features.lower().endswith(io.INPUTS)


def class_of(method: str) -> Any:
    """Return the class of a method; for method "consensus", return `gpuens.Consensus`."""
    if method == "consensus":
        from gpuens.methods.combination import Consensus

        return Consensus

    return REGISTRY.load(method)


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
