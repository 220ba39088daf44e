"""A recorder of kernel launches: the kernel, the time, and the smallest number of bytes and operations of its work."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from gpu_device import Marks, compiled

from gpuens.runtime import device as devices
from gpuens.runtime import kernels

KEEP_BUSY = """
extern "C" __global__ void keep_busy(unsigned* out, int n) {
    unsigned x = out[0];
    for (int i = 0; i < n; ++i) x = x * 1664525u + 1013904223u;
    out[0] = x;
}
"""
BUSY = 20_000  # number of multiplications, each of which needs the result of the last one; they take about 50 µs


class Launch(NamedTuple):
    kernel: str
    start: Any
    stop: Any
    bytes: Any
    operations: Any


class Launches:
    """A context that records every launch. If ``counted``, it records marks, bytes and operations of the launch, too.

    ``flush``: an array written before every launch, larger than the cache, so that inputs come from memory. A GPU is
    given something to do before each first mark, so that both marks and the kernel are queued before it gets there:
    else short kernels would be charged with the time that Python takes to launch them.
    """

    def __init__(self, device: str, *, counted: bool = False, flush: Any = None) -> None:
        self.marks = Marks(device)
        self.counted, self.flush = counted, flush
        self.names: list[str] = []
        self.found: list[Launch] = []
        if counted and device == "cuda":
            self.busy = compiled(KEEP_BUSY, device).get_function("keep_busy")
            self.nothing = devices.namespace(device).zeros(1, dtype=np.uint32)

    def __enter__(self) -> "Launches":
        self._function = kernels.function
        kernels.function = self._noted
        return self

    def __exit__(self, *error: object) -> None:
        kernels.function = self._function

    def _noted(self, name: str, device: str, **macros: str) -> Callable:
        kernel = self._function(name, device, **macros)

        def launch(grid: tuple, block: tuple, args: tuple, *, shared_mem: int = 0) -> None:
            self.names.append(name)
            if not self.counted:
                return kernel(grid, block, args, shared_mem=shared_mem)
            arguments = SimpleNamespace(**dict(zip(parameters(name), args, strict=True)))
            before = arguments.compared.copy() if hasattr(arguments, "compared") else None
            if self.flush is not None:
                self.flush.fill(0)
            if device == "cuda":
                self.busy((1,), (1,), (self.nothing, np.int32(BUSY)))
            start = self.marks.mark()
            kernel(grid, block, args, shared_mem=shared_mem)
            stop = self.marks.mark()
            if before is not None:
                arguments.compared = (arguments.compared - before)[0]
            moved, operations = COUNTS[name](arguments)
            self.found.append(Launch(name, start, stop, moved, operations))

        return launch


def parameters(kernel: str) -> list[str]:
    """Read the source of a kernel; return the names of its parameters."""
    text = kernels.sources()[kernels.functions()[kernel]]
    declaration = re.search(rf"\bvoid\s+(?:__launch_bounds__\([^)]*\)\s+)?{kernel}\s*\(([^)]*)\)", text)
    assert declaration is not None
    return [part.split()[-1].lstrip("*") for part in declaration[1].split(",")]


# --- least work of a launch: bytes (each array once, as if cached) and operations -------------------------------------


def once(arrays: str, operations: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function that counts the bytes of a launch as if the given arrays are moved once."""
    return lambda a: (sum(getattr(a, name).nbytes for name in arrays.split()), operations(a))


def entries(a: Any, regions: Any) -> Any:
    """Return the number of histogram entries of the given regions, and the bytes of one entry."""
    return a.length[regions].sum(), 4 + a.counts.itemsize


def active(a: Any) -> Any:
    """Read the number of active regions from the device's memory and return it."""
    return a.counts[:1].sum()  # the sum is a copy, because the next launch changes the counts


def numbers(a: Any) -> list[int]:
    """Read the numbers of active regions and of queries of a search, and return them."""
    return list(devices.to_host(a.numbers).tolist())


def of_search_regions(a: Any) -> tuple[Any, Any]:
    n_active, n_queries = numbers(a)
    n, size = entries(a, a.active[:n_active])
    return n * size + a.ceilings.nbytes + n_queries * (12 * int(a.n_listed) + 16), a.compared


def of_join_lists(a: Any) -> tuple[Any, Any]:
    (n_active, n_queries), busy = numbers(a), int(a.busy)
    n_parts = min(-(-n_active // (32 * int(a.tile))), -(-busy // n_queries)) if 0 < n_queries < busy else 1
    entries = n_queries * n_parts * int(a.n_listed) if n_parts > 1 else 0
    lists = n_queries * (12 * int(a.n_listed) + 16) if n_parts > 1 else 0
    return 16 + 12 * entries + lists, max(1, entries)  # it reads two numbers, even where queries have one list


def of_search_general(a: Any) -> tuple[Any, Any]:
    n_active, n_queries = numbers(a)
    n, size = entries(a, a.active[:n_active])
    return n * size + n_queries * (8 * a.n_clusters + 12 * int(a.n_listed) + 16), a.compared


def of_search_observed(a: Any) -> tuple[Any, Any]:
    n_active, n_queries = numbers(a)
    n, size = entries(a, a.active[:n_active])
    of_queries, size = entries(a, a.queries[:n_queries])
    return (n + of_queries) * size + a.weights.nbytes + n_queries * (12 * int(a.n_listed) + 16), a.compared


def of_rank_products(a: Any) -> tuple[Any, Any]:
    n_entries = a.row_starts[1:] - a.row_starts[:-1]
    moved = 2 * (a.objects.nbytes + a.in_column.nbytes) + a.column_starts.nbytes + a.row_starts.nbytes
    return moved + a.products.nbytes, (n_entries * (n_entries + 1)).sum() // 2


def of_raise_ceilings(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active[: numbers(a)[0]])
    return n * size + a.ceilings.nbytes, n


def of_move_histograms(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.live)
    return 2 * n * size, n


def of_merge_histograms(a: Any) -> tuple[Any, Any]:
    n_merges = int(a.n_merges[0])  # this function is called after the launch
    n, size = entries(a, a.kept[n_merges - int(a.n_pairs[0]) : n_merges])
    return 2 * n * size, n


def of_nearest_rows(a: Any) -> tuple[Any, Any]:
    queries = a.n_queries * (a.n_clusterings * a.codes.itemsize + 12 * int(a.n_listed) + 32)
    return queries + a.tiles.nbytes + a.present.nbytes + 24 * a.n_rows, a.compared


def of_mapping_coefficients(a: Any) -> tuple[Any, Any]:
    looked_up = a.ids.size * a.n_clusterings
    bytes_read = a.ids.nbytes + a.distances.nbytes + looked_up * a.codes.itemsize
    return bytes_read + a.clusters.nbytes + a.values.nbytes + a.counts.nbytes, looked_up


def of_measure_nodes(a: Any) -> tuple[Any, Any]:
    nodes, inner = slice(int(getattr(a, "from")), int(a.to)), slice(int(getattr(a, "from")) - int(a.n_rows), None)
    leaves = a.last_leaf[nodes] - a.first_leaf[nodes] + 1
    members = leaves
    if a.n_des:
        starts = a.starts[inner][: len(leaves) + 1]
        members = np.maximum(starts[1:] - starts[:-1], np.minimum(leaves, a.n_des))
    labels = members.sum() * a.n_clusterings
    return labels * a.rows.itemsize + 12 * len(leaves), (members * members).sum() * a.n_clusterings


def neighbors(a: Any) -> Any:
    """Return the number of neighbors, which is the number of bits that are set."""
    xp = devices.namespace(devices.kind_of(a.bits))
    return xp.asarray(BITS_OF_A_BYTE)[a.bits.view(np.uint8)].sum(dtype=np.int64)


BITS_OF_A_BYTE = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


def of_update_memberships(a: Any) -> tuple[Any, Any]:
    """Return bytes and operations for objects with as many neighbours as the average object has."""
    numbers, n_neighbors = a.n_updated * a.width, a.heads.size // len(a.row_of)
    return 16 * numbers + min(8 * numbers * n_neighbors, a.memberships.nbytes), numbers * (14 + n_neighbors)


COUNTS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "row_sums": once("codes values out", lambda a: a.codes.size),
    "row_lookups": once("codes table out", lambda a: a.codes.size * a.width),
    "cluster_sums": once("codes values out", lambda a: a.codes.size),
    "count_pairs": once("labels weights tables", lambda a: a.first.size * a.n_objects),
    "coassociation_tile": once("rows cols out", lambda a: a.n_rows * a.n_cols * a.n_clusterings),
    "mark_labels": once("labels tables", lambda a: a.labels.size),
    "rank_labels": once("tables ranks", lambda a: a.ranks.size),
    "write_codes": once("labels tables ranks codes", lambda a: a.labels.size),
    "pack_rows": once("codes words", lambda a: a.codes.size),
    "find_rows": once("rows sorted_rows places", lambda a: a.rows.size * max(1, int(a.n_sorted).bit_length())),
    "mark_present": once("tiles present", lambda a: a.tiles.size),
    "nearest_rows": of_nearest_rows,
    "clear_ceilings": once("ceilings", lambda a: a.ceilings.size),
    "raise_ceilings": of_raise_ceilings,
    "search_regions": of_search_regions,
    "join_lists": of_join_lists,
    "move_histograms": of_move_histograms,
    "merge_histograms": of_merge_histograms,
    "look_up": lambda a: (active(a) * (12 * int(a.n_listed) + 56), active(a) * int(a.n_listed)),
    "take_first_listed": lambda a: (60 * int(a.n_rows[0]), int(a.n_rows[0])),
    "pair_up": lambda a: (active(a) * 48, active(a) * 2),  # bytes and operations for the regions that survive
    "find_heights": lambda a: (72 * int(a.n_pairs[0]), int(a.n_pairs[0])),
    "update_lists": lambda a: (active(a) * (28 * int(a.n_listed) + 40), active(a) * int(a.n_listed)),
    "offer_similarity": lambda a: (45 * a.n_rows, a.n_rows),
    "offer_tie": lambda a: (48 * a.n_rows, a.n_rows),
    "take_edge": lambda a: (56 * a.n_rows, a.n_rows),
    "smallest_names": lambda a: (16 * a.n_names, a.n_names),
    "relative_similarities": once("spread out", lambda a: a.k * a.spread.size),
    "coupled_tile": once("rows cols values out", lambda a: a.n_rows * a.n_cols * a.n_clusterings),
    "neighborhood_bits": once("rows cols values bits", lambda a: a.n_rows * a.n_cols * a.n_clusterings),
    "overlaps": once("rows cols out", lambda a: a.n_rows * a.n_cols * a.n_planes),
    "neighbor_counts": once("bits codes counts out", lambda a: neighbors(a) * a.n_clusterings),
    "neighbor_sums": once("bits values out", lambda a: neighbors(a) * a.width),
    "nearest_centroids": once("codes cost labels distances", lambda a: a.codes.size * a.n_centroids),
    "label_histograms": once("codes weights labels out", lambda a: a.codes.size),
    "exponentials": once("exponents powers", lambda a: 14 * a.n),
    "posteriors": once("sums sums constant shares bits", lambda a: 14 * a.sums.size),
    "walk_step": once("starts weights shares out", lambda a: a.shares.size * (1 + a.heads.size // len(a.shares))),
    "update_memberships": of_update_memberships,
    "sum_memberships": once("memberships members shares", lambda a: a.memberships.size),
    "pseudo_likelihood": once(
        "objects fields fields", lambda a: a.width * a.n_selected * (14 + a.heads.size // len(a.memberships))
    ),
    "sum_squares": once("residuals shares", lambda a: 2 * a.n),
    "pair_histogram": once("codes counts bins", lambda a: a.n_rows * (a.n_rows + 1) // 2 * a.n_clusterings),
    "drawn_histogram": once("first second bins", lambda a: a.n_pairs * a.n_clusterings),
    "label_memberships": once("codes table of_missing out", lambda a: a.codes.size * a.width),
    "label_correspondences": once("codes values out unknown", lambda a: a.codes.size * a.width),
    "soft_memberships": once("soft table out out", lambda a: a.soft.size * a.width),
    "soft_correspondences": once("soft values out", lambda a: a.soft.size * a.width),
    "squared_distances": once("x out", lambda a: a.n_rows * a.n_objects * a.n_features),
    "nearest_objects": once("out ids squares", lambda a: a.n_rows * a.n_objects * -(-a.n_kept // 32)),
    "nearest_landmarks": once(
        "points order of landmarks ids squares",
        lambda a: int((a.begins[1:] - a.begins[:-1])[a.of].sum()) * a.n_features,
    ),
    "largest_sizes": once("values", lambda a: a.values.size),
    "fixed_point": once("values fixed", lambda a: a.values.size),
    "draw_points": once("reached places others", lambda a: a.reached.size * a.n_drawn),
    "nearer_squares": once("nearest squares squares spent", lambda a: 4 * a.squares.size),
    "keep_best": once("potentials nearest nearest weighted weighted", lambda a: a.n_drawn * a.nearest.size),
    "label_by_products": lambda a: (a.products.nbytes + 16 * len(a.labels) * a.n_points, a.products.size),
    "weigh_labels": lambda a: (a.hot.nbytes + 8 * a.n_starts * a.n_points, a.hot.size),
    "move_centers": once("centers total weight moved squares", lambda a: 3 * a.moved.size),
    "landmark_products": once("edges ids weights shares out", lambda a: a.edges.size * a.n_neighbors),
    "landmark_lookups": once("ids weights out", lambda a: a.out.size * a.n_neighbors),
    "label_by_shares": once("ids shares added labels labels", lambda a: a.ids.size * a.n_centers),
    "add_shares": once("sums out", lambda a: a.sums.size),
    "mapping_coefficients": of_mapping_coefficients,
    "rank_products": of_rank_products,
    "merge_affinities": lambda a: (24 * int(a.n_pairs[0]) * a.n_clusters, int(a.n_pairs[0]) * a.n_clusters),
    "search_general": of_search_general,
    "search_observed": of_search_observed,
    "common_prefixes": once("rows out", lambda a: a.out.sum() + a.n_rows),
    "measure_nodes": of_measure_nodes,
    "descend": lambda a: (a.n_excluded * (2 * a.n_clusterings * a.rows.itemsize + 16), a.n_excluded * a.n_clusterings),
}
