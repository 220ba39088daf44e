"""Landmark clusterings of features in chunks; the worker of a chunk computes the graph of the chunk.

The caller's process computes only the landmarks, the table and the centers. The last steps are repeated a few times.

chunks ─▶ objects drawn from all chunks ─▶ landmarks ─▶ graph of each chunk ─▶ sums over chunks ─▶ table
                                        labels of each chunk ◀─ centers ◀─ sums over chunks ◀──────┘
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from gpuens.distributed import clients, graph, worker
from gpuens.distributed.tasks import Tasks
from gpuens.generate.landmark_cut import Tied, clustered, labels_of_nearest, nearest_counts
from gpuens.generate.landmark_graph import Landmarks, graph_of
from gpuens.generate.shares import LandmarkTable, ObjectShares
from gpuens.generate.tasks import LandmarkTask
from gpuens.io.checkpoint import Checkpoint, digest
from gpuens.kmeans.points import Coordinates, Points
from gpuens.labels.features import as_features
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime import progress as progress_bars


class ChunkedPoints(Tasks):
    """The points of features in chunks; points are on the workers, and results in this process are in host memory."""

    device = "cpu"

    def __init__(self, X: Any, device: str, client: Any) -> None:
        self.client, self.on = clients.active(client), checks.check_choice(device, "device", devices.DEVICES)
        X = graph.whole_rows(X)
        self.sizes, self.starts = X.chunks[0], np.cumsum([0, *X.chunks[0]]).tolist()
        self.shape = X.shape
        self.blocks = graph.blocks_of(X)
        self.coordinates = Coordinates.of(self.each, *X.shape)

    def each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return the results of ``function(features, *args)`` for every chunk."""
        args = tuple(map(self.everywhere, args))
        return self.compute(self.over(self.blocks, _apply_to_features, function, *args, phase="features"), "features")

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the points (n, d), float32, of the objects ``rows``, whose numbers ascend."""
        return self.gathered(self.blocks, _take_points, rows, self.everywhere(self.coordinates))

    def over(self, pieces: list[Any], function: Callable[..., Any], *args: Any, phase: str) -> list[Any]:
        """Return a task ``function(piece, *args)`` for the piece of each chunk."""
        return [self.task(function, piece, *args, phase=phase, chunk=i) for i, piece in enumerate(pieces)]

    def gathered(self, pieces: list[Any], function: Callable[..., Any], rows: np.ndarray, *args: Any) -> np.ndarray:
        """Call ``function(piece, rows of the piece, *args)`` for each piece, and return the joined results.

        ``rows`` are the numbers of objects of all pieces, in ascending order.
        """
        of_chunks = graph.rows_of_chunks(rows, self.starts)
        tasks = [
            self.task(function, piece, piece_rows, *args, phase="drawn", chunk=i)
            for i, (piece, piece_rows) in enumerate(zip(pieces, of_chunks, strict=True))
            if len(piece_rows)
        ]
        return np.concatenate(self.compute(tasks, "drawn objects"))

    def placed(self, column: np.ndarray) -> list[Any]:
        """Split a column, which has a value for each object, by chunk; return the parts as arguments of tasks."""
        parts = np.split(column, self.starts[1:-1])
        return [graph.embed(part) if self.client is None else self.somewhere(part) for part in parts]


class ChunkedObjects:
    """The objects of all chunks and their edges to landmarks (interface: `generate.landmark_cut.LinkedObjects`)."""

    device = "cpu"

    def __init__(self, points: ChunkedPoints, landmarks: Landmarks, n_neighbors: int) -> None:
        self.points, self.n_objects, self._n_landmarks = points, points.shape[0], len(landmarks.points)
        shared = points.everywhere(points.coordinates), points.everywhere(landmarks)
        tasks = points.over(points.blocks, _build_graph, *shared, n_neighbors, points.on, phase="graph")
        self._pieces = points.persist(tasks, "graphs of chunks")
        sums = points.compute(points.over(self._pieces, _sum_distances, phase="distances"), "distances")
        total, n_edges = np.sum(sums, axis=0)
        self._sigma = float(total / n_edges)
        self._labels: list[Any] = [None] * len(self._pieces)

    def products(self) -> np.ndarray:
        parts = self.points.over(self._pieces, _compute_products, self._sigma, phase="products")
        return self.points.compute([self.points.tree(parts, worker.add, "products")], "products")[0]

    def embed(self, table: np.ndarray) -> None:
        self._table = LandmarkTable.of(table)
        shared = self._sigma, self.points.everywhere(self._table)
        tasks = self.points.over(self._pieces, _add_shares, *shared, phase="shares")
        self._pieces = self.points.persist(tasks, "shares of chunks")

    def at(self, rows: np.ndarray) -> np.ndarray:
        return self.points.gathered(self._pieces, _embed_objects, rows, self.points.everywhere(self._table.rows))

    def sums_of(self, centers: np.ndarray) -> tuple[Any, Any] | None:
        towards, lift = map(self.points.everywhere, self._table.towards(centers))
        labelled = [
            self.points.task(_label_objects, piece, labels_before, towards, lift, phase="labels", chunk=i)
            for i, (piece, labels_before) in enumerate(zip(self._pieces, self._labels, strict=True))
        ]
        labelled = self.points.persist(labelled, "labels of chunks")
        self._labels, sums = (self.points.over(labelled, itemgetter(i), phase="labels") for i in (0, 1))
        shares, sizes, changed = self.points.compute([self.points.tree(sums, _add_sums, "sums")], "sums")[0]
        return (shares @ self._table.rows, sizes[:, None]) if changed else None

    def sizes(self) -> np.ndarray:
        parts = self.points.over(self._pieces, _count_nearest, self._n_landmarks, phase="sizes")
        return self.points.compute([self.points.tree(parts, worker.add, "sizes")], "sizes")[0]

    def follow(self, labels: np.ndarray) -> None:
        shared = self.points.everywhere(labels)
        self._labels = self.points.over(self._pieces, _labels_of_nearest, shared, phase="labels")

    def labels_as(self, dtype: Any) -> list[Any]:
        """Return the labels of each chunk, which stay on the worker that has the features of the chunk."""
        tasks = [
            self.points.task(_to_column, piece, labels, dtype, phase="labels", chunk=i)
            for i, (piece, labels) in enumerate(zip(self._pieces, self._labels, strict=True))
        ]
        return self.points.persist(tasks, "labels of chunks")


def label(
    points: ChunkedPoints,
    tasks: list[LandmarkTask],
    description: dict[str, Any],
    dtype: Any,
    *,
    progress: bool | str,
    resume: str | os.PathLike[str] | None,
    **settings: int,
) -> list[list[Any]]:
    """Return the labels of all clusterings; those of one clustering are a list of chunks that stay on the workers."""
    folder = None
    if resume is not None:
        folder = Checkpoint(resume, {**description, "data": digest(np.array(points.each(digest)))})
    columns = []
    with progress_bars.bar(sum(task.n_clusterings for task in tasks), "landmark clusterings", show=progress) as bar:
        for i, task in enumerate(tasks):
            find = partial(clustered, points, ChunkedObjects, task, dtype, **settings)
            columns += find() if folder is None else _load_or_find(points, folder, f"landmarks_{i}", find)
            bar.update(task.n_clusterings)
    return columns


def joined(points: ChunkedPoints, columns: list[list[Any]], dtype: Any) -> Any:
    """Join the labels of clusterings to a Dask array that has the same chunks of rows as the features."""
    # futures are separate arguments, because Dask 2025.4 does not replace futures inside a list by their results
    of_chunks = [
        points.task(_stack_columns, *chunk_labels, phase="labels", chunk=i)
        for i, chunk_labels in enumerate(zip(*columns, strict=True))
    ]
    return graph.lazy_array(points.persist(of_chunks, "labels of chunks"), points.sizes, dtype, (len(columns),))


def _load_or_find(points: ChunkedPoints, folder: Checkpoint, name: str, find: Callable[[], list[Any]]) -> list[Any]:
    """Return the labels of each clustering in chunks; if the folder does not contain them, call ``find``."""

    def labels_part() -> dict[str, np.ndarray]:
        return {"labels": np.stack([np.concatenate(points.compute(column, "labels")) for column in find()])}

    return [points.placed(column) for column in folder.part(name, labels_part)["labels"]]


# --- tasks of a chunk -------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """The objects of one chunk: first their graph, later their shares, and the kind of memory of the features."""

    objects: Any
    kind: str


def _apply_to_features(block: Any, function: Callable[..., Any], *args: Any) -> Any:
    return function(as_features(block, devices.kind_of(block), part=True), *args)


def _take_points(block: Any, rows: np.ndarray, coordinates: Coordinates) -> np.ndarray:
    kind = devices.kind_of(block)
    features = as_features(block[devices.move(rows, kind)], kind, part=True)
    return devices.to_host(Points(features, coordinates, kind).at(np.arange(len(rows))))


def _build_graph(block: Any, coordinates: Coordinates, landmarks: Landmarks, n_neighbors: int, device: str) -> Piece:
    kind = devices.kind_of(block)
    device = devices.resolve(device, kind)
    X = as_features(block, kind if device == "cuda" else "cpu", part=True)
    return Piece(graph_of(Points(X, coordinates, device), landmarks, n_neighbors), kind)


def _sum_distances(piece: Piece) -> tuple[float, int]:
    """Return the sum and the number of the distances from the objects of a piece to landmarks."""
    graph = piece.objects
    return graph.sigma * graph.ids.size, graph.ids.size


def _compute_products(piece: Piece, sigma: float) -> np.ndarray:
    return devices.to_host(Tied(replace(piece.objects, sigma=sigma)).products())


def _add_shares(piece: Piece, sigma: float, table: LandmarkTable) -> Piece:
    """Return the piece with the shares of its objects; σ is the mean distance over all chunks."""
    graph = piece.objects
    graph = replace(graph, sigma=sigma, squares=graph.squares.copy())
    return piece._replace(objects=ObjectShares.of(graph, table.on(graph.device)))


def _embed_objects(piece: Piece, objects: np.ndarray, rows: np.ndarray) -> np.ndarray:
    shares = piece.objects
    return devices.to_host(shares.at(objects, devices.namespace(shares.device).asarray(rows)))


def _label_objects(piece: Piece, before: Any, towards: np.ndarray, lift: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
    """Label the objects of a piece; return the labels, and a tuple of sums of shares, sizes and number of changes."""
    shares = piece.objects
    labels = shares.unlabelled() if before is None else before.copy()
    sums, sizes, changed = shares.nearest(towards, lift, labels)
    return labels, (devices.to_host(sums), devices.to_host(sizes), int(changed))


def _add_sums(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(worker.add(list(of_all)) for of_all in zip(*parts, strict=True))


def _count_nearest(piece: Piece, n_landmarks: int) -> np.ndarray:
    return devices.to_host(nearest_counts(piece.objects.ids, n_landmarks))


def _labels_of_nearest(piece: Piece, labels: np.ndarray) -> Any:
    return labels_of_nearest(piece.objects.ids, labels)


def _to_column(piece: Piece, labels: Any, dtype: Any) -> Any:
    return devices.move(labels.astype(dtype), piece.kind)


def _stack_columns(*columns: Any) -> Any:
    return devices.namespace(devices.kind_of(columns[0])).stack(columns, axis=1)
