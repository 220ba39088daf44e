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
def mark_slots(
    labels: numpy.typing.NDArray[numpy.int64], steps: tuple[int, int], table: numpy.typing.NDArray[numpy.uint32]
) -> None: ...
def number_slots(
    table: numpy.typing.NDArray[numpy.uint32],
    values: numpy.typing.NDArray[numpy.int64],
    n_values: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def write_codes(
    labels: numpy.typing.NDArray[numpy.int64],
    steps: tuple[int, int],
    table: numpy.typing.NDArray[numpy.uint32],
    is_odd: numpy.typing.NDArray[numpy.bool],
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    shift: int,
) -> None: ...
def over_cells(
    labels: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    k: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64] | None,
    bytes: int,
    work: Callable[
        [
            tuple[
                int,
                int,
                numpy.typing.NDArray[numpy.int64],
                numpy.typing.NDArray[numpy.int64],
                numpy.typing.NDArray[numpy.int64],
                numpy.typing.NDArray[numpy.int64],
            ]
            | tuple[
                int,
                int,
                numpy.typing.NDArray[numpy.int64],
                numpy.typing.NDArray[numpy.int64],
                numpy.typing.NDArray[numpy.int64],
                numpy.typing.NDArray[numpy.float64],
            ]
        ],
        None,
    ],
) -> None: ...
def count_table(
    a: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    b: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    k: tuple[int, int],
    weights: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64] | None,
    flat: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> None: ...
def count_with(
    labels: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    m: int,
    offsets: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.int64] | None,
    shared: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def nonzero(
    table: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> tuple[
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
]: ...
def place_in_square(
    cells: tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ]
    | tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float64],
    ],
    offsets: numpy.typing.NDArray[numpy.int64],
    shared: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> None: ...
def count_in_rows(
    cells: tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ]
    | tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float64],
    ],
    offsets: numpy.typing.NDArray[numpy.int64],
    n_cells: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def place_in_rows(
    cells: tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ]
    | tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float64],
    ],
    offsets: numpy.typing.NDArray[numpy.int64],
    starts: numpy.typing.NDArray[numpy.int64],
    indices: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
    counts: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> None: ...
def sums_of_squares(
    cells: tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ]
    | tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float64],
    ],
    sums: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def entropy_terms(one: float, terms: numpy.typing.NDArray[numpy.int64]) -> None: ...
def add_entropies(
    cells: tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ]
    | tuple[
        int,
        int,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float64],
    ],
    offsets: numpy.typing.NDArray[numpy.int64],
    one: float,
    terms: numpy.typing.NDArray[numpy.int64],
    of_rows: numpy.typing.NDArray[numpy.int64],
    of_columns: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def add_row_entropies(
    rows: numpy.typing.NDArray[numpy.int64],
    columns: numpy.typing.NDArray[numpy.int64],
    counts: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
    offsets: numpy.typing.NDArray[numpy.int64],
    one: float,
    total: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def merge_by_information(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    counts: numpy.typing.NDArray[numpy.int64],
    of_whole: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
    losses: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def pam(
    distances: numpy.typing.NDArray[numpy.float64],
    weights: numpy.typing.NDArray[numpy.float64],
    medoids: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def append_edges(
    start: int,
    rows: numpy.typing.NDArray[numpy.float64],
    starts: numpy.typing.NDArray[numpy.int64],
    columns: numpy.typing.NDArray[numpy.int64],
    edges: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def symmetrize(
    starts: numpy.typing.NDArray[numpy.int64],
    columns: numpy.typing.NDArray[numpy.int64],
    edges: numpy.typing.NDArray[numpy.float64],
    within: float,
) -> tuple[int, int, float, float]: ...
def fill_empty_parts(
    labels: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.int64],
    n_parts: int,
    starts: numpy.typing.NDArray[numpy.int64],
    columns: numpy.typing.NDArray[numpy.int64],
    edges: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
) -> None: ...
def descend_mirkin(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    counts: numpy.typing.NDArray[numpy.int64],
    labels: numpy.typing.NDArray[numpy.int64],
    held: numpy.typing.NDArray[numpy.int64],
    objects: numpy.typing.NDArray[numpy.int64],
    max_iter: int,
) -> int: ...
def posteriors(
    sums: numpy.typing.NDArray[numpy.float64],
    constant: numpy.typing.NDArray[numpy.float64],
    scale: float,
    shares: numpy.typing.NDArray[numpy.int64],
    bits: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def add_products(
    pairs: numpy.typing.NDArray[numpy.float64],
    table: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def add_products_of_blocks(
    soft: numpy.typing.NDArray[numpy.float64],
    values: numpy.typing.NDArray[numpy.float64],
    block_rows: int,
    sums: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def copy_links(
    start: int, rows: numpy.typing.NDArray[numpy.int64], n: int, links: numpy.typing.NDArray[numpy.int64]
) -> None: ...
def merge_by_goodness(
    links: numpy.typing.NDArray[numpy.int64],
    sizes: numpy.typing.NDArray[numpy.int64],
    powers: numpy.typing.NDArray[numpy.float64],
    shrink_at: float,
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    goodness: numpy.typing.NDArray[numpy.float64],
    merged: Callable[[int], None],
) -> None: ...
def label_memberships(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    table: numpy.typing.NDArray[numpy.float64],
    of_missing: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def step_correspondences(
    terms: tuple[
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.bool],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.int64],
        float,
        float,
    ],
    products: numpy.typing.NDArray[numpy.float64],
    table: numpy.typing.NDArray[numpy.float64],
    by: tuple[float, int, float],
) -> None: ...
def soft_objectives(
    terms: tuple[
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.bool],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.int64],
        float,
        float,
    ],
    products: numpy.typing.NDArray[numpy.float64],
    table: numpy.typing.NDArray[numpy.float64],
    parts: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def label_correspondences(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    values: numpy.typing.NDArray[numpy.int64],
    known: numpy.typing.NDArray[numpy.int64],
    unknown: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def common_prefixes(
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    prefixes: numpy.typing.NDArray[numpy.int32],
) -> None: ...
def inner_nodes(
    prefixes: numpy.typing.NDArray[numpy.int32],
) -> tuple[
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int64],
]: ...
def topmost_nodes(
    parents: numpy.typing.NDArray[numpy.int64],
    within: numpy.typing.NDArray[numpy.bool],
    topmost: numpy.typing.NDArray[numpy.bool],
) -> None: ...
def mark_ancestors(parents: numpy.typing.NDArray[numpy.int64], marks: numpy.typing.NDArray[numpy.uint8]) -> None: ...
def measure_nodes(
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    shape: tuple[
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ],
    n_des: int,
    radii: numpy.typing.NDArray[numpy.int32],
    representatives: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def descend_tree(
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    shape: tuple[
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ],
    representatives: numpy.typing.NDArray[numpy.int64],
    marks: numpy.typing.NDArray[numpy.uint8],
    nodes: numpy.typing.NDArray[numpy.int64],
    ends: numpy.typing.NDArray[numpy.int64],
) -> None: ...
