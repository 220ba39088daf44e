"""The neighbours of the objects of a label file: the settings that name them, and their graph, read from files."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpuens import io
from gpuens.io.paths import ANNOTATED
from gpuens.labels.edges import Edges, matrix_to_edges
from gpuens.labels.graph import N_NEIGHBORS, Graph
from gpuens.labels.object_names import match_files, names_of_objects
from gpuens.methods.registered import CONNECTED, REGISTRY
from gpuens.runtime import checks
from gpuens.runtime.options import Option, options

SOURCES = ("coordinates", "coordinates_columns", "graph", "grid")  # settings that name neighbours, alone or together
OF_PLACES = ("groups_column", "nearest", "max_length")  # settings that need coordinates
# settings of a run that exclude neighbours
EXCLUDED = (
    "features",
    "weight_column",
    "must_link",
    "cannot_link",
    "scheduler",
    "workers",
    "chunk_rows",
    "reduce",
    "shared_names",
)
OF_METHODS = ("similarity", "partitioner")  # settings in place of a method, which exclude neighbours, too
MOST_DIMENSIONS = 3  # more columns of coordinates must be named, because they may be other properties of the objects
PLACES_OF_CELLS = "spatial"  # entry of obsm that holds the places of cells, by the convention of Scanpy and Squidpy


class Places(NamedTuple):
    """The places of objects, as read from a file."""

    coordinates: Any  # array or DataFrame (n_objects, n_dimensions)
    groups: Any  # group of each object, an array (n_objects,), or None
    ids: Any  # names of the objects, or None
    path: str | None  # the file; None if it is the label file, which has the same objects in the same order


class GraphSettings(NamedTuple):
    """The settings of a graph of neighbours: coordinates, edges or a grid; each value has a JSON form."""

    coordinates: str | None = None  # file, or, for labels in h5ad, an entry of its obsm
    coordinates_columns: list[str] | None = None  # columns of this file, or else of the label file
    groups_column: str | None = None  # column of the same file with the slide of each object
    nearest: int | None = None  # number of nearest places to which each object is joined
    max_length: float | None = None  # the longest edge
    graph: str | None = None  # file of edges, or, for labels in h5ad, an entry of its obsp
    grid: str | None = None  # lengths of the axes, such as "480x320"; objects are the cells in C order

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "GraphSettings | None":
        """Return the settings among some values, or None if they name no setting of a graph.

        >>> GraphSettings.of({"grid": "2x3", "features": None}).shape
        (2, 3)
        """
        settings = cls(*(values.get(name) for name in cls._fields))
        return settings if settings.chosen else None

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that the user has made."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    @property
    def source(self) -> str:
        """The setting that names the neighbours, and its value, as a text."""
        return next(f"{name}={self.chosen[name]!r}" for name in SOURCES if name in self.chosen)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The lengths of the axes of the grid; None without a grid."""
        return None if self.grid is None else tuple(map(int, self.grid.lower().split("x")))

    def check(self, excluded: Iterable[str] = (), spelled: Callable[[str], str] = str) -> None:
        """Raise an error, before any work, for settings that contradict each other.

        ``excluded`` are settings of the same run for which there must be no graph.
        ``spelled`` converts the name of a setting to the form in which the user gave it, such as a command-line option.
        """
        sources = [name for name in SOURCES if name in self.chosen]
        if "coordinates" in sources and "coordinates_columns" in sources:
            sources.remove("coordinates_columns")
        if len(sources) > 1:
            raise ValueError(
                f"{spelled(sources[0])} and {spelled(sources[1])} both name the neighbours; leave one of them out."
            )
        of_places = [name for name in OF_PLACES if name in self.chosen]
        if of_places and (not sources or sources[0] in ("graph", "grid")):
            raise ValueError(
                f"{spelled(of_places[0])} is for objects with places; add {spelled('coordinates')}, or leave "
                f"{spelled(of_places[0])} out."
            )
        for name in excluded:
            raise ValueError(
                f"{spelled(name)} is not for objects with neighbours; leave it, or {spelled(sources[0])}, out."
            )
        if self.nearest is not None:
            checks.check_integer(self.nearest, spelled("nearest"), minimum=1)
        if self.max_length is not None:
            checks.check_real(self.max_length, spelled("max_length"), above=0.0)
        if self.grid is not None and not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})+", self.grid.lower()):
            raise ValueError(
                f"{spelled('grid')} must be the height and the width of the images, such as 480x320, not "
                f"{checks.shown(self.grid)}."
            )

    def files(self, labels: str) -> dict[str, str]:
        """Return {setting: file} for the files beside the label file that the settings name."""
        named = {"coordinates": self.coordinates, "graph": self.graph}
        return {name: text for name, text in named.items() if text is not None and not _is_key(text, labels)}

    def columns_of(self, labels: str) -> list[str]:
        """Return the columns of the label file that hold places and groups, and are no clusterings."""
        places = self.coordinates_columns if self.coordinates is None else None
        groups = None if self.groups_column is None or self.files(labels) else [self.groups_column]
        return [*(places or []), *(groups or [])]

    def read(self, labels: str, reading: Mapping[str, Any]) -> "Places | Edges | Graph | None":
        """Read the places, the edges or the graph, in the order of their file; a grid needs no file.

        ``reading`` are the arguments for reading the file ``labels``.
        """
        if self.grid is not None:
            return None
        if self.graph is None:
            return self._places(labels, reading)
        if not _is_key(self.graph, labels):
            return io.read_edges(self.graph)
        edges = matrix_to_edges(io.read_graph(labels, key=self.graph), f"graph {self.graph!r}", mend=True)
        return replace(Graph.of(edges), places=_places_of_cells(labels))

    def _places(self, labels: str, reading: Mapping[str, Any]) -> Places:
        how = {name: reading[name] for name in ("key", "sep", "header") if name in reading}
        beside = self.files(labels).get("coordinates")
        path = labels if beside is None else beside
        if beside is not None:
            how = {}
        groups = None if self.groups_column is None else self._read_groups(path, how)
        if self.coordinates is None:
            columns = io.read_columns(labels, columns=self.coordinates_columns, **how)
            return Places(np.column_stack([np.asarray(column) for column in columns.values()]), groups, None, None)
        of_file: dict[str, Any] = {"columns": self.coordinates_columns}
        if path.lower().endswith(ANNOTATED):
            of_file["key"] = self.coordinates if beside is None else PLACES_OF_CELLS
        elif self.groups_column is not None:
            of_file["exclude"] = [self.groups_column]
        X, ids = io.reading.read_feature_file(path, **of_file)
        if X.shape[1] > MOST_DIMENSIONS and self.coordinates_columns is None:
            raise ValueError(
                f"coordinates {self.coordinates!r} have {X.shape[1]} columns; name those of the places (x,y) as "
                "coordinates_columns (--coordinates-columns)."
            )
        return Places(X, groups, ids, beside)

    def _read_groups(self, path: str, how: Mapping[str, Any]) -> Any:
        """Read the group of each object (n_objects,)."""
        columns = list(io.read_columns(path, columns=[self.groups_column], **how).values())
        if len(columns) != 1:
            raise ValueError(f"groups_column={self.groups_column!r} must name one column; write its whole name.")
        return np.asarray(columns[0])

    def graph_of(
        self, source: "Places | Edges | Graph | None", labels: str, read: Any, *, by_position: bool = False
    ) -> Graph:
        """Return the graph of the objects of an ensemble from what `read` returned.

        ``read`` is the `gpuens.io.reading.LabelFile` of the file ``labels``. Objects are matched by name, unless
        ``by_position``. A graph has no edges to objects that were left out.
        """
        n_objects = read.ensemble.n_objects if read.labelled is None else len(read.labelled)
        if self.shape is not None:
            graph = Graph.grid(self.shape)
        elif isinstance(source, Places):
            X, groups = source.coordinates, source.groups
            if not by_position and source.path is not None:
                order = match_files(read.ids, labels, source.ids, source.path)
                if order is not None:
                    X = X.iloc[order] if hasattr(X, "iloc") else X[order]
                    groups = None if groups is None else groups[order]
            X = X.reset_index(drop=True) if hasattr(X, "iloc") else X
            k = N_NEIGHBORS if self.nearest is None else self.nearest
            graph = Graph.neighbors(X, k, groups=groups, max_length=self.max_length)
        elif source is not None and source.names is None:
            graph = Graph.of(source)
        else:
            graph = Graph.of(source, n_objects, None if by_position else names_of_objects(read.ids))
        if graph.n_objects != n_objects:
            raise ValueError(
                f"{self.source} has {graph.n_objects:,} objects, but path {labels!r} has {n_objects:,}; name a file of "
                "the same objects."
            )
        return graph if read.labelled is None else graph.subgraph(read.labelled)

    def facts(self, graph: Graph) -> dict[str, Any]:
        """Return the entry of the record about the graph of a run."""
        sizes = {"n_objects": graph.n_objects, "n_edges": graph.n_edges, "n_components": graph.n_components}
        return {"graph": {"from": self.chosen, **sizes}}


def options_with_neighbors(method: str) -> dict[str, Option]:
    """Return the parameters of a method for objects with neighbours, by name.

    They are those of the method and, unless its clusters are connected, those of `gpuens.Spatial`.
    """
    from gpuens.methods.spatial import Spatial

    of_method = {**options(REGISTRY.load(method)), **({} if method in CONNECTED else options(Spatial))}
    return {name: option for name, option in of_method.items() if name not in ("method", "reduction")}


def _places_of_cells(path: str) -> Any:
    """Return the places of the cells of an h5ad file (n_obs, n_dimensions), or None if it has none."""
    try:
        places, _ = io.reading.read_feature_file(path, key=PLACES_OF_CELLS)
    except (ValueError, KeyError):
        return None
    return places if places.shape[1] <= MOST_DIMENSIONS else None


def _is_key(text: str, labels: str) -> bool:
    """Return whether a setting names an entry of the label file, an h5ad file, and not a file: it has no ending."""
    return labels.lower().endswith(ANNOTATED) and "." not in text and os.path.basename(text) == text
