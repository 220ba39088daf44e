"""Reading and writing of label and feature files; the ending of a name, or the content, gives the kind of file."""

from gpuens.io.edges import read_edges
from gpuens.io.joining import read_joined
from gpuens.io.memberships import holds_memberships, read_memberships
from gpuens.io.paths import ANNOTATED, ARRAYS, IN_CHUNKS, INPUTS, OUTPUTS, needs, packages_for
from gpuens.io.reading import (
    LabelFile,
    read_columns,
    read_features,
    read_graph,
    read_ids,
    read_label_file,
    read_labels,
)
from gpuens.io.writing import write_labels

__all__ = [
    "ANNOTATED",
    "ARRAYS",
    "INPUTS",
    "IN_CHUNKS",
    "OUTPUTS",
    "LabelFile",
    "holds_memberships",
    "needs",
    "packages_for",
    "read_columns",
    "read_edges",
    "read_features",
    "read_graph",
    "read_ids",
    "read_joined",
    "read_label_file",
    "read_labels",
    "read_memberships",
    "write_labels",
]


def __dir__() -> list[str]:
    return sorted(__all__)
