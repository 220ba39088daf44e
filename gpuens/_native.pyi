"""
The primitives of the CPU, compiled when gpuens was built: text in kernels/cpu.
"""

from collections.abc import Callable

import numpy
import numpy.typing

def count_threads_by(counts: Callable[[], int]) -> None: ...
def supported(level: str) -> bool: ...
def pack_rows(
    columns: numpy.typing.NDArray[numpy.uint8]
    | numpy.typing.NDArray[numpy.uint16]
    | numpy.typing.NDArray[numpy.uint32],
    word_of: numpy.typing.NDArray[numpy.int64],
    radices: numpy.typing.NDArray[numpy.uint64],
    words: numpy.typing.NDArray[numpy.uint64],
) -> None: ...
def find_rows(
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    others: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    places: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def distinct_rows(
    words: numpy.typing.NDArray[numpy.uint64], row_of: numpy.typing.NDArray[numpy.int64]
) -> numpy.typing.NDArray[numpy.int64] | None: ...
def lexicographic(
    words: numpy.typing.NDArray[numpy.uint64],
    order: numpy.typing.NDArray[numpy.int64],
    first: numpy.typing.NDArray[numpy.bool],
) -> None: ...
def row_sums(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    values: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def row_lookups(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    table: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def cluster_sums(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    values: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> None: ...
def label_histograms(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.int64],
    labels: numpy.typing.NDArray[numpy.int64],
    counted: numpy.typing.NDArray[numpy.int64],
) -> None: ...
