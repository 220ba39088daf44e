"""
The primitives of the CPU, compiled when gpuens was built: text in kernels/cpu.
"""

from collections.abc import Callable
from typing import Any

import numpy
import numpy.typing

def prepare(count_threads: Callable[[], int], main_thread: int) -> None: ...
def end_calls() -> None: ...
def level() -> str: ...
def supported() -> bool: ...
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
def unit_points(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    table: numpy.typing.NDArray[numpy.float64],
    points: numpy.typing.NDArray[numpy.float32],
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
    labels: numpy.typing.NDArray[numpy.int64]
    | numpy.typing.NDArray[numpy.int32]
    | numpy.typing.NDArray[numpy.int16]
    | numpy.typing.NDArray[numpy.int8]
    | numpy.typing.NDArray[numpy.uint8]
    | numpy.typing.NDArray[numpy.uint16]
    | numpy.typing.NDArray[numpy.uint32]
    | numpy.typing.NDArray[numpy.uint64]
    | numpy.typing.NDArray[numpy.float64]
    | numpy.typing.NDArray[numpy.float32],
    table: numpy.typing.NDArray[numpy.uint32],
) -> None: ...
def number_slots(
    table: numpy.typing.NDArray[numpy.uint32],
    values: numpy.typing.NDArray[numpy.int64],
    n_values: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def write_codes(
    labels: numpy.typing.NDArray[numpy.int64]
    | numpy.typing.NDArray[numpy.int32]
    | numpy.typing.NDArray[numpy.int16]
    | numpy.typing.NDArray[numpy.int8]
    | numpy.typing.NDArray[numpy.uint8]
    | numpy.typing.NDArray[numpy.uint16]
    | numpy.typing.NDArray[numpy.uint32]
    | numpy.typing.NDArray[numpy.uint64]
    | numpy.typing.NDArray[numpy.float64]
    | numpy.typing.NDArray[numpy.float32],
    table: numpy.typing.NDArray[numpy.uint32],
    is_odd: numpy.typing.NDArray[numpy.bool],
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
) -> None: ...
def over_cells(
    labels: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    k: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64] | None,
    bytes: int,
    work: Callable[[tuple[Any, ...] | tuple[Any, ...]], None],
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
    cells: tuple[Any, ...] | tuple[Any, ...],
    offsets: numpy.typing.NDArray[numpy.int64],
    shared: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> None: ...
def count_in_rows(
    cells: tuple[Any, ...] | tuple[Any, ...],
    offsets: numpy.typing.NDArray[numpy.int64],
    n_cells: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def place_in_rows(
    cells: tuple[Any, ...] | tuple[Any, ...],
    offsets: numpy.typing.NDArray[numpy.int64],
    starts: numpy.typing.NDArray[numpy.int64],
    indices: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
    counts: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> None: ...
def sums_of_squares(
    cells: tuple[Any, ...] | tuple[Any, ...],
    sums: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
) -> None: ...
def informations(cells: tuple[Any, ...] | tuple[Any, ...], found: numpy.typing.NDArray[numpy.float64]) -> None: ...
def unevenness(cells: tuple[Any, ...] | tuple[Any, ...], found: numpy.typing.NDArray[numpy.float64]) -> None: ...
def shares_of_cells(
    cells: tuple[Any, ...] | tuple[Any, ...],
    labels: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    k: numpy.typing.NDArray[numpy.int64],
    times: numpy.typing.NDArray[numpy.int64],
    one: float,
    means: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def exponentials(
    exponents: numpy.typing.NDArray[numpy.float64], powers: numpy.typing.NDArray[numpy.float64]
) -> None: ...
def logarithms(numbers: numpy.typing.NDArray[numpy.float64], bits: numpy.typing.NDArray[numpy.float64]) -> None: ...
def entropy_terms(one: float, terms: numpy.typing.NDArray[numpy.int64]) -> None: ...
def add_entropies(
    cells: tuple[Any, ...] | tuple[Any, ...],
    offsets: numpy.typing.NDArray[numpy.int64],
    one: float,
    terms: numpy.typing.NDArray[numpy.int64],
    times: numpy.typing.NDArray[numpy.int64],
    of_rows: numpy.typing.NDArray[numpy.int64],
    of_columns: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def entropies_of_words(
    words: numpy.typing.NDArray[numpy.uint64],
    times: numpy.typing.NDArray[numpy.int64],
    terms: numpy.typing.NDArray[numpy.int64],
    total: numpy.typing.NDArray[numpy.int64],
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
def nearest_landmarks(
    points: numpy.typing.NDArray[numpy.float32],
    lists: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]],
    of: numpy.typing.NDArray[numpy.int64],
    landmarks: numpy.typing.NDArray[numpy.float32],
    ids: numpy.typing.NDArray[numpy.int64],
    squares: numpy.typing.NDArray[numpy.float32],
) -> None: ...
def landmark_products(
    ids: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    squares: numpy.typing.NDArray[numpy.float32],
    sigma: float,
    n_ranges: int,
    products: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def entries_of(
    matrix: numpy.typing.NDArray[numpy.float64], scale: numpy.typing.NDArray[numpy.float64]
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64]
]: ...
def chebyshev(
    starts: numpy.typing.NDArray[numpy.int64],
    columns: numpy.typing.NDArray[numpy.int32],
    values: numpy.typing.NDArray[numpy.float64],
    cut: float,
    degree: int,
    vectors: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def turn_landmarks(
    landmarks: numpy.typing.NDArray[numpy.float32],
    base: numpy.typing.NDArray[numpy.float32],
    columns: numpy.typing.NDArray[numpy.float32],
    squares: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def nearest_of_stored(
    points: tuple[
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.float32],
        numpy.typing.NDArray[numpy.float32],
    ],
    lists: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]],
    of: numpy.typing.NDArray[numpy.int64],
    landmarks: tuple[numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.float64]],
    ids: numpy.typing.NDArray[numpy.int64],
    squares: numpy.typing.NDArray[numpy.float32],
) -> None: ...
def landmark_shares(
    ids: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    squares: numpy.typing.NDArray[numpy.float32],
    sigma: float,
    reach: numpy.typing.NDArray[numpy.float64],
    rows: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def nearest_by_shares(
    ids: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    shares: numpy.typing.NDArray[numpy.float32],
    towards: numpy.typing.NDArray[numpy.float64],
    lift: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
    chunk: int,
    sums: numpy.typing.NDArray[numpy.float64],
    sizes: numpy.typing.NDArray[numpy.int64],
) -> int: ...
def genie(
    points: numpy.typing.NDArray[numpy.float32],
    sizes: numpy.typing.NDArray[numpy.int64],
    n_clusters: int,
    most_unequal: float,
    labels: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def find_irregular_row(
    text: numpy.typing.NDArray[numpy.uint8], separator: int, n_first: int, n_fields: int
) -> tuple[int, int, int]: ...
def plus_plus(
    turned: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float64],
    weights: numpy.typing.NDArray[numpy.float64],
    first: numpy.typing.NDArray[numpy.int64],
    uniform: numpy.typing.NDArray[numpy.float64],
    chosen: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def nearest_centers(
    points: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.int64],
    centers: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
    sums: numpy.typing.NDArray[numpy.float64],
) -> int: ...
def descend_weighted(
    points: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.int64],
    enough: float,
    most_iterations: int,
    centers: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def best_of_starts(
    points: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.int64],
    chosen: numpy.typing.NDArray[numpy.int64],
    enough: float,
    most_iterations: int,
    centers: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def nearest_of_sample(
    points: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float64],
    around: numpy.typing.NDArray[numpy.float32],
    frame: tuple[float, numpy.typing.NDArray[numpy.float64]],
    centers: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
) -> int: ...
def fit_sample(
    points: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float64],
    around: numpy.typing.NDArray[numpy.float32],
    frame: tuple[float, numpy.typing.NDArray[numpy.float64]],
    enough: float,
    most_iterations: int,
    centers: numpy.typing.NDArray[numpy.float64],
) -> tuple[float, float]: ...
def nearest_centroids(
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    cost: numpy.typing.NDArray[numpy.float64],
    constant: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
    distances: numpy.typing.NDArray[numpy.float64],
) -> None: ...

RETIRED: int = -1

UNKNOWN: int = -2

COUNTS: str = ...

def sort_merges(
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    similarities: numpy.typing.NDArray[numpy.float64],
    sorted: tuple[Any, ...],
) -> None: ...
def cut_merges(
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    labels: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def count_large(
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    counts: numpy.typing.NDArray[numpy.int64],
    least: int,
    n_large: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def number_nodes(
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    children: numpy.typing.NDArray[numpy.int64],
    n_leaves: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def name_merges(
    one: numpy.typing.NDArray[numpy.int64],
    other: numpy.typing.NDArray[numpy.int64],
    n_leaves: int,
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def find_apart(
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    observed: numpy.typing.NDArray[numpy.bool],
    apart: numpy.typing.NDArray[numpy.bool],
) -> None: ...
def link_few(
    rows: tuple[Any, ...], weights: numpy.typing.NDArray[numpy.float64], whole: bool, sorted: tuple[Any, ...]
) -> tuple[int, int, int]: ...
def link_pairs(
    distances: numpy.typing.NDArray[numpy.float64],
    average: bool,
    kept: numpy.typing.NDArray[numpy.int64],
    absorbed: numpy.typing.NDArray[numpy.int64],
    heights: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def order_by_locality(
    columns: numpy.typing.NDArray[numpy.uint8]
    | numpy.typing.NDArray[numpy.uint16]
    | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    clusters: numpy.typing.NDArray[numpy.float64],
    order: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def lay_out_tiles(
    columns: numpy.typing.NDArray[numpy.uint8]
    | numpy.typing.NDArray[numpy.uint16]
    | numpy.typing.NDArray[numpy.uint32],
    tiled: tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...],
) -> None: ...
def nearest_rows(
    tiled: tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...]
    | tuple[Any, ...],
    queries: numpy.typing.NDArray[numpy.int64],
    least: numpy.typing.NDArray[numpy.float64],
    component: numpy.typing.NDArray[numpy.int64],
    lists: tuple[Any, ...],
) -> int: ...
def link_neighbors(
    graph: tuple[Any, ...],
    counts: numpy.typing.NDArray[numpy.int64],
    rows: tuple[Any, ...] | tuple[Any, ...],
    weights: numpy.typing.NDArray[numpy.float64],
    merges: tuple[Any, ...],
) -> int: ...
def offer_tile(
    start: int,
    tile: numpy.typing.NDArray[numpy.float64],
    component: numpy.typing.NDArray[numpy.int64],
    edges: tuple[Any, ...],
) -> None: ...
def offer_listed(
    component: numpy.typing.NDArray[numpy.int64],
    lists: tuple[Any, ...],
    rows: numpy.typing.NDArray[numpy.int64],
    edges: tuple[Any, ...],
    unsure: numpy.typing.NDArray[numpy.bool],
) -> None: ...
def contract(
    component: numpy.typing.NDArray[numpy.int64],
    tail: numpy.typing.NDArray[numpy.int64],
    head: numpy.typing.NDArray[numpy.int64],
    used: numpy.typing.NDArray[numpy.bool],
) -> None: ...
def link_diagonal(
    columns: numpy.typing.NDArray[numpy.uint8]
    | numpy.typing.NDArray[numpy.uint16]
    | numpy.typing.NDArray[numpy.uint32],
    index: tuple[Any, ...],
    diagonal: tuple[Any, ...] | tuple[Any, ...],
    lists: tuple[Any, ...],
    conduct: tuple[Any, ...],
    sorted: tuple[Any, ...],
    report: Callable[[int], None],
) -> tuple[int, int, int]: ...
def link_general(
    rows: tuple[Any, ...],
    affinities: numpy.typing.NDArray[numpy.float64],
    margin: float,
    n_listed: int,
    sorted: tuple[Any, ...],
    searched: Callable[[int], None],
    report: Callable[[int], None],
) -> tuple[int, int, int]: ...
def link_observed(
    rows: tuple[Any, ...],
    weights: numpy.typing.NDArray[numpy.int64] | numpy.typing.NDArray[numpy.float64],
    bounding: numpy.typing.NDArray[numpy.float32],
    n_listed: int,
    sorted: tuple[Any, ...],
    searched: Callable[[int], None],
    report: Callable[[int], None],
) -> tuple[int, int, int]: ...
def walk_step(
    starts: numpy.typing.NDArray[numpy.int64],
    heads: numpy.typing.NDArray[numpy.int32],
    weights: numpy.typing.NDArray[numpy.float32],
    shares: numpy.typing.NDArray[numpy.uint16],
    result: numpy.typing.NDArray[numpy.uint16],
) -> None: ...
def count_shares(shares: numpy.typing.NDArray[numpy.uint16], counts: numpy.typing.NDArray[numpy.int64]) -> None: ...
def append_shares(
    shares: numpy.typing.NDArray[numpy.uint16],
    first: int,
    places: numpy.typing.NDArray[numpy.int64],
    columns: numpy.typing.NDArray[numpy.int32],
    values: numpy.typing.NDArray[numpy.uint16],
) -> None: ...
def pair_neighbors(
    starts: numpy.typing.NDArray[numpy.int64],
    heads: numpy.typing.NDArray[numpy.int32],
    shares: tuple[Any, ...],
    n_columns: int,
    n_regions: int,
    regions: numpy.typing.NDArray[numpy.int64],
) -> tuple[
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int32],
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int32],
    numpy.typing.NDArray[numpy.uint16],
]: ...
def sum_regions(
    shares: tuple[Any, ...], regions: numpy.typing.NDArray[numpy.int64], sums: numpy.typing.NDArray[numpy.int64]
) -> None: ...
def color_objects(
    starts: numpy.typing.NDArray[numpy.int64],
    heads: numpy.typing.NDArray[numpy.int32],
    colors: numpy.typing.NDArray[numpy.int32],
) -> int: ...
def update_memberships(
    graph: tuple[Any, ...],
    objects: numpy.typing.NDArray[numpy.int64],
    terms: tuple[Any, ...],
    beta: float,
    memberships: numpy.typing.NDArray[numpy.float64],
    labels: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def sum_memberships(
    memberships: numpy.typing.NDArray[numpy.float64],
    members: numpy.typing.NDArray[numpy.int64],
    starts: numpy.typing.NDArray[numpy.int64],
    scale: float,
    shares: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def pseudo_likelihood(
    graph: tuple[Any, ...],
    objects: numpy.typing.NDArray[numpy.int64],
    memberships: numpy.typing.NDArray[numpy.float64],
    beta: float,
    scale: float,
    derivatives: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def sum_squares(
    residuals: numpy.typing.NDArray[numpy.float64],
    shares: numpy.typing.NDArray[numpy.int64],
    scale: float,
    squares: numpy.typing.NDArray[numpy.int64],
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
def search_medians(
    ensemble: tuple[Any, ...],
    loss: tuple[Any, ...],
    bounds: tuple[Any, ...],
    orders: numpy.typing.NDArray[numpy.int64],
    labels: numpy.typing.NDArray[numpy.int64],
    losses: numpy.typing.NDArray[numpy.float64],
    sweeps: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def median_of_all(
    ensemble: tuple[Any, ...], loss: tuple[Any, ...], bounds: tuple[Any, ...], labels: numpy.typing.NDArray[numpy.int64]
) -> float: ...
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
    powers: tuple[numpy.typing.NDArray[numpy.float64], float],
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
    terms: tuple[Any, ...],
    products: numpy.typing.NDArray[numpy.float64],
    table: numpy.typing.NDArray[numpy.float64],
    by: tuple[Any, ...],
) -> None: ...
def soft_objectives(
    terms: tuple[Any, ...],
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
    blocks: tuple[Any, ...],
    tile: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def relative_similarities(
    shares: numpy.typing.NDArray[numpy.float64],
    offsets: numpy.typing.NDArray[numpy.int64],
    weights: numpy.typing.NDArray[numpy.float64],
    similarities: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def mapping_coefficients(
    of: tuple[Any, ...],
    codes: numpy.typing.NDArray[numpy.uint8] | numpy.typing.NDArray[numpy.uint16] | numpy.typing.NDArray[numpy.uint32],
    offsets: numpy.typing.NDArray[numpy.int64],
    firsts: numpy.typing.NDArray[numpy.int64],
    found: tuple[Any, ...],
) -> None: ...
def nth_largest(
    tile: numpy.typing.NDArray[numpy.float64], n: int, least: numpy.typing.NDArray[numpy.float64]
) -> None: ...
def walk_products(
    step: tuple[Any, ...],
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
    leaves: tuple[Any, ...],
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
    columns: tuple[Any, ...],
    counts: numpy.typing.NDArray[numpy.int64],
    n: int,
    shift: int,
    ranks: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def rank_products(
    columns: tuple[Any, ...],
    rows: tuple[Any, ...],
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
    blocks: tuple[Any, ...],
    threshold: tuple[Any, ...],
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
