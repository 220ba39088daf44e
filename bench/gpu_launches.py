"""Every launch of a kernel, seen: which one, how long, and the bytes and operations that it could not do without."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from gpu_device import Marks, compiled

from gpuens import device as devices
from gpuens import kernels

KEEP_BUSY = """
extern "C" __global__ void keep_busy(unsigned* out, int n) {
    unsigned x = out[0];
    for (int i = 0; i < n; ++i) x = x * 1664525u + 1013904223u;
    out[0] = x;
}
"""
BUSY = 20_000  # multiplications, each waiting for the one before: about 50 µs


class Launch(NamedTuple):
    kernel: str
    start: Any
    stop: Any
    bytes: Any
    operations: Any


class Launches:
    """While entered: notes every launch, and if ``counted`` its marks, bytes and operations.

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
        self.names.append(name)
        if not self.counted:
            return kernel

        def launch(grid: tuple, block: tuple, args: tuple, *, shared_mem: int = 0) -> None:
            given = SimpleNamespace(**dict(zip(parameters(name), args, strict=True)))
            before = given.compared.copy() if hasattr(given, "compared") else None
            if self.flush is not None:
                self.flush.fill(0)
            if device == "cuda":
                self.busy((1,), (1,), (self.nothing, np.int32(BUSY)))
            start = self.marks.mark()
            kernel(grid, block, args, shared_mem=shared_mem)
            stop = self.marks.mark()
            if before is not None:
                given.compared = (given.compared - before)[0]
            moved, operations = COUNTS[name].of(given)
            self.found.append(Launch(name, start, stop, moved, operations))

        return launch


def parameters(kernel: str) -> list[str]:
    """Return the names of a kernel's parameters, read in its source."""
    text = kernels.sources()[kernels.functions()[kernel]]
    found = re.search(rf"\bvoid\s+{kernel}\s*\(([^)]*)\)", text)
    assert found is not None
    return [part.split()[-1].lstrip("*") for part in found[1].split(",")]


# --- what a launch has to do ------------------------------------------------------------------------------------------


class Count(NamedTuple):
    """What a launch has to move (each array once, whatever caches do) and to do, in words and from its arguments."""

    moved: str
    done: str
    of: Callable[[Any], tuple[Any, Any]]


def entries(a: Any, regions: Any) -> Any:
    """Return how many histogram entries some regions have, and the bytes of one."""
    return a.length[regions].sum(), 4 + a.counts.itemsize


def of_search_regions(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active)
    return n * size + a.ceilings.nbytes + a.n_queries * (12 * int(a.n_listed) + 16), a.compared


def of_search_general(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active)
    return n * size + a.n_queries * (8 * a.n_clusters + 12 * int(a.n_listed) + 16), a.compared


def of_rank_products(a: Any) -> tuple[Any, Any]:
    each = a.row_starts[1:] - a.row_starts[:-1]
    moved = 2 * (a.objects.nbytes + a.in_column.nbytes) + a.column_starts.nbytes + a.row_starts.nbytes
    return moved + a.products.nbytes, (each * (each + 1)).sum() // 2


def of_raise_ceilings(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active)
    return n * size + a.ceilings.nbytes, n


def of_move_histograms(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.active)
    return 2 * n * size, n


def of_merge_histograms(a: Any) -> tuple[Any, Any]:
    n, size = entries(a, a.kept)  # after the launch
    return 2 * n * size, n


def of_nearest_rows(a: Any) -> tuple[Any, Any]:
    queries = a.n_queries * (a.n_clusterings * a.codes.itemsize + 12 * int(a.n_listed) + 32)
    return queries + a.tiles.nbytes + a.present.nbytes + 24 * a.n_rows, a.compared


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
    """Return how many bits are set."""
    xp = devices.namespace(devices.kind_of(a.bits))
    return xp.asarray(BITS_OF_A_BYTE)[a.bits.view(np.uint8)].sum(dtype=np.int64)


BITS_OF_A_BYTE = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


COUNTS = {
    "row_sums": Count(
        "codes, values, sums", "a look-up a label",
        lambda a: (a.codes.nbytes + a.values.nbytes + a.out.nbytes, a.codes.size),
    ),
    "row_lookups": Count(
        "codes, table, sums", "k look-ups a label",
        lambda a: (a.codes.nbytes + a.table.nbytes + a.out.nbytes, a.codes.size * a.width),
    ),
    "cluster_sums": Count(
        "codes, values, sums", "an addition a label",
        lambda a: (a.codes.nbytes + a.values.nbytes + a.out.nbytes, a.codes.size),
    ),
    "count_pairs": Count(
        "labels, weights, tables", "an addition an object and pair",
        lambda a: (a.labels.nbytes + a.weights.nbytes + a.tables.nbytes, a.first.size * a.n_objects),
    ),
    "coassociation_tile": Count(
        "rows, columns, block", "R C M comparisons",
        lambda a: (a.rows.nbytes + a.cols.nbytes + a.out.nbytes, a.n_rows * a.n_cols * a.n_clusterings),
    ),
    "pack_rows": Count(
        "codes, words", "a digit a label", lambda a: (a.codes.nbytes + a.words.nbytes, a.codes.size)
    ),
    "mark_present": Count(
        "tiles, table", "a mark a label", lambda a: (a.tiles.nbytes + a.present.nbytes, a.tiles.size)
    ),
    "nearest_rows": Count(
        "queries' codes, tiles, table, lists", "label comparisons, as the kernel counts them", of_nearest_rows
    ),
    "raise_ceilings": Count("histograms, ceilings", "an entry", of_raise_ceilings),
    "search_regions": Count(
        "histograms, ceilings, lists", "entries compared, as the kernel counts them", of_search_regions
    ),
    "move_histograms": Count("histograms, read and written", "an entry", of_move_histograms),
    "merge_histograms": Count("unions, written and as much read", "an entry of a union", of_merge_histograms),
    "look_up": Count(
        "lists, bounds, nearest", "an entry of a list",
        lambda a: (a.n_active * (12 * int(a.n_listed) + 40), a.n_active * int(a.n_listed)),
    ),
    "mutual_pairs": Count("ids, nearest, marks", "2 comparisons a region", lambda a: (25 * a.n_active, 2 * a.n_active)),
    "update_lists": Count(
        "lists, partners (not the histograms of changed entries)", "an entry of a list",
        lambda a: (a.n_active * (28 * int(a.n_listed) + 40), a.n_active * int(a.n_listed)),
    ),
    "offer_similarity": Count(
        "first entries, components, offers", "an entry a row", lambda a: (45 * a.n_rows, a.n_rows)
    ),
    "offer_tie": Count("offered entries, components, ties", "an entry a row", lambda a: (48 * a.n_rows, a.n_rows)),
    "take_edge": Count("offered entries, components, ties", "an entry a row", lambda a: (56 * a.n_rows, a.n_rows)),
    "smallest_names": Count("roots, names", "a name", lambda a: (16 * a.n_names, a.n_names)),
    "relative_similarities": Count(
        "shares, similarities", "a minimum a pair of clusters and cluster",
        lambda a: (a.spread.nbytes + a.out.nbytes, a.k * a.spread.size),
    ),
    "coupled_tile": Count(
        "rows, columns, similarities of clusters, block", "R C M look-ups",
        lambda a: (a.rows.nbytes + a.cols.nbytes + a.values.nbytes + a.out.nbytes,
                   a.n_rows * a.n_cols * a.n_clusterings),
    ),
    "neighborhood_bits": Count(
        "rows, columns, similarities of clusters, bits", "R C M look-ups",
        lambda a: (a.rows.nbytes + a.cols.nbytes + a.values.nbytes + a.bits.nbytes,
                   a.n_rows * a.n_cols * a.n_clusterings),
    ),
    "overlaps": Count(
        "rows, columns, block", "R C P words compared",
        lambda a: (a.rows.nbytes + a.cols.nbytes + a.out.nbytes, a.n_rows * a.n_cols * a.n_planes),
    ),
    "neighbor_counts": Count(
        "bits, codes, counts, sums", "M additions a neighbour",
        lambda a: (a.bits.nbytes + a.codes.nbytes + a.counts.nbytes + a.out.nbytes, neighbors(a) * a.n_clusterings),
    ),
    "neighbor_sums": Count(
        "bits, values, sums", "k additions a neighbour",
        lambda a: (a.bits.nbytes + a.values.nbytes + a.out.nbytes, neighbors(a) * a.width),
    ),
    "nearest_centroids": Count(
        "codes, costs, labels, distances", "k look-ups a label",
        lambda a: (a.codes.nbytes + a.cost.nbytes + a.labels.nbytes + a.distances.nbytes, a.codes.size * a.n_centroids),
    ),
    "label_histograms": Count(
        "codes, weights, labels, tables", "an addition a label",
        lambda a: (a.codes.nbytes + a.weights.nbytes + a.labels.nbytes + a.out.nbytes, a.codes.size),
    ),
    "label_memberships": Count(
        "codes, table, sums", "k look-ups a label",
        lambda a: (a.codes.nbytes + a.table.nbytes + a.of_missing.nbytes + a.out.nbytes, a.codes.size * a.width),
    ),
    "label_correspondences": Count(
        "codes, values, sums", "k additions a label",
        lambda a: (a.codes.nbytes + a.values.nbytes + a.out.nbytes + a.unknown.nbytes, a.codes.size * a.width),
    ),
    "soft_memberships": Count(
        "memberships, table, sums, which are read too", "k products a membership",
        lambda a: (a.soft.nbytes + a.table.nbytes + 2 * a.out.nbytes, a.soft.size * a.width),
    ),
    "soft_correspondences": Count(
        "memberships, values, sums", "k products a membership",
        lambda a: (a.soft.nbytes + a.values.nbytes + a.out.nbytes, a.soft.size * a.width),
    ),
    "squared_distances": Count(
        "features, distances", "a square a feature and pair of objects",
        lambda a: (a.x.nbytes + a.out.nbytes, a.out.size * a.n_features),
    ),
    "mapping_coefficients": Count(
        "references, their labels, coefficients", "M look-ups a reference",
        lambda a: (a.ids.nbytes + a.distances.nbytes + a.ids.size * a.n_clusterings * a.codes.itemsize
                   + a.clusters.nbytes + a.values.nbytes + a.counts.nbytes, a.ids.size * a.n_clusterings),
    ),
    "rank_products": Count(
        "ranks by columns and by rows, products", "a product a pair of an object's clusters", of_rank_products
    ),
    "merge_affinities": Count(
        "affinities of the parts, and of the unions", "an addition a cluster",
        lambda a: (24 * a.n_pairs * a.n_clusters, a.n_pairs * a.n_clusters),
    ),
    "search_general": Count(
        "histograms, affinities of the queries, lists", "look-ups, as the kernel counts them", of_search_general
    ),
    "common_prefixes": Count(
        "rows, prefixes", "a comparison a label in common",
        lambda a: (a.rows.nbytes + a.out.nbytes, a.out.sum() + a.n_rows),
    ),
    "measure_nodes": Count(
        "rows of members, radii, representatives", "M comparisons a pair of members, as many as there are at least",
        of_measure_nodes,
    ),
    "descend": Count(
        "a node's row and a child's, ends", "M comparisons a node, on one level",
        lambda a: (a.n_excluded * (2 * a.n_clusterings * a.rows.itemsize + 16), a.n_excluded * a.n_clusterings),
    ),
}  # fmt: skip
