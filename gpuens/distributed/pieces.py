"""The distinct rows of all chunks, which stay on the workers; methods that need only sums over rows can use them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuens.distributed import worker
from gpuens.distributed.chunks import Chunks
from gpuens.labels.rows import Rows, Summed


class ChunkPieces(Rows):
    """The distinct rows of each chunk, which stay on the workers; the same row may occur in several pieces."""

    here = False

    def __init__(self, chunks: Chunks, device: str) -> None:
        self._hold(chunks.without_rows(), np.empty(0, dtype=np.int64), "cpu")
        self.chunks, self._on, self._bare = chunks, device, chunks.bare()
        objects = [chunks.task(worker.count_objects, piece, phase="size") for piece in chunks.pieces]
        self._objects = chunks.compute(objects, "objects of pieces")
        self._pieces, chunks.pieces = chunks.pieces, []  # they are needed only as long as these rows
        if device == "cuda":
            places = zip(self._pieces, chunks.places, strict=True)
            moved = [chunks.task(worker.on_gpu, piece, phase="pieces", workers=workers) for piece, workers in places]
            self._pieces = chunks.persist(moved, "pieces")

    @property
    def n_rows(self) -> int:
        return sum(self.chunks.sizes)

    @property
    def n_objects(self) -> int:
        return sum(self._objects)

    @property
    def objects_of_pieces(self) -> Sequence[int]:
        return self._objects

    def each(self, function: Callable[..., Any], *args: Any, piece_args: Sequence[Any] | None = None) -> list[Any]:
        return self.chunks.compute(self._tasks(function, args, piece_args), _phase(function))

    def sum(self, function: Callable[..., Summed], *args: Any) -> Summed:
        parts = self._tasks(function, args, None)
        return self.chunks.compute([self.chunks.tree(parts, worker.add, "sum")], _phase(function))[0]

    def _tasks(
        self, function: Callable[..., Any], args: tuple[Any, ...], piece_args: Sequence[Any] | None
    ) -> list[Any]:
        args = tuple(self.chunks.everywhere(value) for value in args)
        of_pieces = [()] * len(self._pieces) if piece_args is None else [(value,) for value in piece_args]
        return [
            self.chunks.task(
                worker.apply_to_piece,
                function,
                self._on,
                piece,
                self._bare,
                *own_args,
                *args,
                phase="sums",
                workers=workers,
            )
            for piece, own_args, workers in zip(self._pieces, of_pieces, self.chunks.places, strict=True)
        ]


def _phase(function: Callable[..., Any]) -> str:
    return function.__name__.strip("_").replace("_", " ")
