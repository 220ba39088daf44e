"""The distinct rows of all chunks, each chunk's where they are, for methods that can do with sums over them."""

from collections.abc import Callable, Sequence
from typing import Any

from gpuens.distributed import worker
from gpuens.distributed.chunks import Chunks


class ChunkPieces:
    """The distinct rows of each chunk, as `gpuens.scattered.Pieces`, worked on wherever they are."""

    def __init__(self, chunks: Chunks, device: str) -> None:
        self.chunks, self.device = chunks, device
        self.numbering = chunks.without_rows()
        self.n_rows = sum(chunks.sizes)
        self._bare = chunks.bare()
        objects = [chunks.task(worker.count_objects, piece, phase="size") for piece in chunks.pieces]
        self.n_objects = chunks.compute(objects, "objects of pieces")

    def each(self, function: Callable, *given: Any, own: Sequence | None = None) -> list:
        return self.chunks.compute(self._tasks(function, given, own), _phase(function))

    def sum(self, function: Callable, *given: Any) -> Any:
        parts = self._tasks(function, given, None)
        return self.chunks.compute([self.chunks.tree(parts, worker.add, "sum")], _phase(function))[0]

    def _tasks(self, function: Callable, given: tuple, own: Sequence | None) -> list:
        given = tuple(self.chunks.everywhere(value) for value in given)
        of_pieces = [()] * len(self.chunks.pieces) if own is None else [(value,) for value in own]
        return [
            self.chunks.task(worker.of_piece, function, self.device, piece, self._bare, *mine, *given, phase="sums")
            for piece, mine in zip(self.chunks.pieces, of_pieces, strict=True)
        ]


def _phase(function: Callable) -> str:
    return function.__name__.strip("_").replace("_", " ")
