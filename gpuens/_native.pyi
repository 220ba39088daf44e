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
def pairs_merged(
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    sizes: numpy.typing.NDArray[numpy.float64],
    pairs: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def pair_histogram(
    rows: numpy.typing.NDArray[numpy.uint32],
    parts: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]],
    counts: numpy.typing.NDArray[numpy.int64],
    turns: tuple[int, int],
    step: int,
    counted: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def drawn_histogram(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    first: numpy.typing.NDArray[numpy.int64],
    second: numpy.typing.NDArray[numpy.int64],
    step: int,
    counted: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def coassociation_tile(
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    cols: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.float64],
    tile: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def coupled_tile(
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    cols: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    blocks: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
    tile: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def relative_similarities(
    shares: numpy.typing.NDArray[numpy.float64],
    offsets: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.float64],
    similarities: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def mapping_coefficients(
    of: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    firsts: numpy.typing.NDArray[numpy.int64],
    found: tuple[
        numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.int32]
    ],
) -> None: ...
def nth_largest(
    tile: numpy.typing.NDArray[numpy.float64], n: int, least: numpy.typing.NDArray[numpy.float64]
) -> None: ...
def walk_products(
    step: tuple[
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float64],
    ],
    n_steps: int,
    products: numpy.typing.NDArray[numpy.float64],
    spare: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def row_distances(
    points: numpy.typing.NDArray[numpy.float64],
    bounds: numpy.typing.NDArray[numpy.int64],
    some: tuple[int, int],
    mean: numpy.typing.NDArray[numpy.float64],
    farthest: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def farthest_in_clusters(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    farthest: numpy.typing.NDArray[numpy.float64],
    largest: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def refine(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    distances: numpy.typing.NDArray[numpy.float64],
    inverse: numpy.typing.NDArray[numpy.float64],
    weights: numpy.typing.NDArray[numpy.float64],
    similar: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def split_points(
    points: numpy.typing.NDArray[numpy.float64],
    starts: numpy.typing.NDArray[numpy.int64],
    order: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def fill_leaves(
    points: numpy.typing.NDArray[numpy.float64],
    order: numpy.typing.NDArray[numpy.int64],
    starts: numpy.typing.NDArray[numpy.int64],
    coordinates: numpy.typing.NDArray[numpy.float64],
    lower: numpy.typing.NDArray[numpy.float64],
    upper: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def nearest_others(
    points: numpy.typing.NDArray[numpy.float64],
    first: int,
    leaves: tuple[
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.float64],
        numpy.typing.NDArray[numpy.float64],
    ],
    ids: numpy.typing.NDArray[numpy.int64],
    squares: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def nearest_candidates(
    points: numpy.typing.NDArray[numpy.float64],
    first: int,
    candidates: numpy.typing.NDArray[numpy.int64],
    beyond: numpy.typing.NDArray[numpy.float64],
    ids: numpy.typing.NDArray[numpy.int64],
    squares: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def doubled_ranks(
    columns: tuple[
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ],
    counts: numpy.typing.NDArray[numpy.int64],
    n: int,
    shift: int,
    ranks: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def rank_products(
    columns: tuple[
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ],
    rows: tuple[
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ],
    counts: numpy.typing.NDArray[numpy.int64],
    products: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def correlations(
    products: numpy.typing.NDArray[numpy.int64],
    totals: numpy.typing.NDArray[numpy.int64],
    n: int,
    deviations: numpy.typing.NDArray[numpy.float64],
    found: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def neighborhood_bits(
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    cols: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    blocks: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
    threshold: tuple[int, int, float, float],
    bits: numpy.typing.NDArray[numpy.uint64],
) -> None: ...
def overlaps(
    rows: numpy.typing.NDArray[numpy.uint64],
    cols: numpy.typing.NDArray[numpy.uint64],
    runs: numpy.typing.NDArray[numpy.int64],
    found: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def leave_out_themselves(
    found: numpy.typing.NDArray[numpy.int64],
    bits: numpy.typing.NDArray[numpy.uint64],
    rows: numpy.typing.NDArray[numpy.int64],
    cols: numpy.typing.NDArray[numpy.int64],
    place: numpy.typing.NDArray[numpy.int64],
    own: numpy.typing.NDArray[numpy.bool],
    counts: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def mark_members(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    members: numpy.typing.NDArray[numpy.uint64],
) -> None: ...
def neighbor_counts(
    bits: numpy.typing.NDArray[numpy.uint64],
    rows: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    counts: numpy.typing.NDArray[numpy.int64],
    found: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def neighbor_sums(
    bits: numpy.typing.NDArray[numpy.uint64],
    values: numpy.typing.NDArray[numpy.int64],
    found: numpy.typing.NDArray[numpy.int64],
) -> None: ...
