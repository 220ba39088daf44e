"""Index arithmetic beyond 2³¹ and 2³²: kernels on arrays of many gigabytes, with only a few pages really in memory."""

import mmap
import os

import numpy as np
import pytest

from gpuens.evidence.pairs import drawn_histogram
from gpuens.partition.linkage.all_pairs import merge_affinities
from gpuens.partition.linkage.nearest import NO_HASH, Shortlists
from gpuens.partition.linkage.regions import Regions, merge_histograms, move_histograms
from gpuens.partition.linkage.rounds import Count, Scorer, State, look_up, update_lists
from gpuens.partition.linkage.single import Edges, offer_listed
from gpuens.partition.soft_memberships import label_memberships
from gpuens.reduction.ca_tree import common_prefixes, descend
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu
from gpuens.similarity import coupled, neighborhood_bits
from gpuens.similarity.blocks import OnDevice, coupled_tile

pytestmark = pytest.mark.skipif(
    os.environ.get("GPUENS_EMULATOR", "plain") != "plain", reason="sanitizers would copy arrays of many gigabytes"
)

K = 16
FAR = 2**28 + 3  # a row number; with K entries for each row, the lists of this row begin beyond position 2**32


def vast(shape, dtype):
    """Return zeros whose memory pages exist only after a write."""
    reserve_nothing = getattr(mmap, "MAP_NORESERVE", 0x4000)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | reserve_nothing)
    except (OSError, ValueError) as error:
        pytest.skip(f"no {size / 1e9:.0f} GB of address space here: {error}")
    return np.frombuffer(pages, dtype=dtype).reshape(shape)


def vast_lists():
    return Shortlists(vast((FAR + 1, K), np.int32), vast((FAR + 1, K), np.float64), vast(FAR + 1, np.float64),
                 vast(FAR + 1, np.uint64))  # fmt: skip


def vast_regions(entries, capacity):
    """Return three regions (0, 1 and FAR) of three objects each. Their histograms are at the end of the arena."""
    regions = Regions(vast(capacity, np.int32), vast(capacity, np.int32), vast(FAR + 1, np.int64),
                      vast(FAR + 1, np.int64), vast(FAR + 1, np.int64), np.array([capacity - 100]))  # fmt: skip
    at = capacity - 200
    for r, (clusters, counts) in entries.items():
        regions.start[r], regions.length[r], regions.size[r] = at, len(clusters), 3
        regions.clusters[at : at + len(clusters)], regions.counts[at : at + len(counts)] = clusters, counts
        at += len(clusters)
    return regions


def vast_state(*active):
    """Return the state of regions 0 to FAR, with the given regions active."""
    ids = [vast(FAR + 1, np.int64) for _ in range(9)]
    similarity, counts = vast(FAR + 1, np.float64), np.zeros(13, dtype=np.int64)
    state = State(*ids[:4], similarity, *ids[4:8], vast(FAR + 1, np.float64), counts)
    state.active[: len(active)], counts[Count.ACTIVE] = active, len(active)
    return state


HISTOGRAMS = {0: ([0, 2], [3, 1]), 1: ([0, 1], [1, 3]), FAR: ([0, 1, 2], [2, 1, 1])}


@pytest.mark.parametrize(("ids", "nearest", "similarity"), [([5, 7], 7, 0.6), ([], cpu.RETIRED, 0.0)])
def test_lists_of_a_far_row(ids, nearest, similarity):
    """A row without a list retires."""
    lists, state = vast_lists(), vast_state(FAR)
    lists.ids[FAR], state.nearest[FAR] = -1, cpu.UNKNOWN
    if ids:
        lists.ids[FAR, :2], lists.similarities[FAR, :2], lists.bound[FAR] = ids, [0.2, 0.6], 0.3
    look_up(state, vast_regions(HISTOGRAMS, 1000), lists, 1, 0.0, device="emulated")
    assert (state.nearest[FAR], state.nearest_similarity[FAR]) == (nearest, similarity)


def test_edge_of_a_far_row():
    lists, component = vast_lists(), vast(FAR + 1, np.int64)
    lists.ids[FAR] = -1
    lists.ids[FAR, :2], lists.similarities[FAR, :2] = [9, 4], [0.7, 0.6]
    component[9] = component[FAR] = 1
    edges = Edges(np.full(2, -1), np.full(2, -1), np.zeros(2), np.full(2, NO_HASH))
    offer_listed(component, lists, np.array([FAR]), edges, device="emulated")
    assert (edges.tail[1], edges.head[1], edges.similarity[1]) == (FAR, 4, 0.6)


def test_histograms_beyond_four_billion_entries():
    regions = vast_regions(HISTOGRAMS, 2**32 + 1000)
    one = np.array([1])
    merge_histograms(regions, one, np.array([FAR]), one, one, 1, device="emulated")
    assert (regions.start[1], regions.length[1], regions.size[1]) == (2**32 + 900, 3, 6)
    merged = slice(2**32 + 900, 2**32 + 903)
    assert (regions.clusters[merged].tolist(), regions.counts[merged].tolist()) == ([0, 1, 2], [3, 4, 1])
    roomy = vast_regions({}, 2**32 + 2000)
    move_histograms(regions, roomy, np.array([0, 1]), device="emulated")
    moved = slice(2**32 + 1900, 2**32 + 1905)
    assert (roomy.clusters[moved].tolist(), roomy.counts[moved].tolist()) == ([0, 2, 0, 1, 2], [3, 1, 3, 4, 1])


def test_update_of_a_far_list():
    regions, lists = vast_regions(HISTOGRAMS, 2**32 + 1000), vast_lists()
    lists.ids[FAR] = -1
    lists.ids[FAR, :2], lists.similarities[FAR, :2] = [0, 1], [0.25, 0.5]
    state = vast_state(FAR)
    state.partner[[1, FAR]] = -1
    # region 0 has absorbed region 2
    state.partner[0], state.into[1], state.into[FAR], state.nearest[FAR] = 2, 1, FAR, 0
    scorer = Scorer(np.ones(3, dtype=np.int64), 2)
    update_lists(state, regions, scorer, lists, 1, device="emulated")
    assert lists.ids[FAR, :3].tolist() == [0, 1, -1]
    assert lists.similarities[FAR, :2].tolist() == [(2 * 3 + 1 * 1) / (3 * 3 * 2), 0.5]
    assert state.nearest[FAR] == cpu.UNKNOWN


def test_labels_of_a_far_query():
    """Two clusterings of more than 2**31 rows: the second clustering's labels begin beyond the range of int32."""
    n_rows = 2**31 + 9
    q, codes = n_rows - 1, vast((2, n_rows), np.uint8)
    codes[:, q] = [1, 0]
    tiles = np.full((1, 1, 64, 4), 255, dtype=np.uint8)
    tiles[0, 0, :3, :2] = [[1, 0], [1, 1], [0, 0]]  # labels of rows 0, 1 and 2
    offsets, present = np.array([0, 2, 4]), np.array([[1], [1], [1], [1], [0]], dtype=np.uint32)  # missing labels: none
    sizes, component = vast(n_rows, np.int64), vast(n_rows, np.int64)
    sizes[[0, 1, 2, q]], component[[0, 1, 2, q]] = 1, [0, 1, 2, 3]
    order = vast(n_rows, np.int64)
    order[:3] = [0, 1, 2]
    lists = Shortlists(vast((n_rows, 2), np.int32), vast((n_rows, 2), np.float64), vast(n_rows, np.float64),
                  vast(n_rows, np.uint64))  # fmt: skip
    kernels.launch(
        "nearest_rows", 1, 32,
        (np.array([q]), np.zeros(1), 1, codes, tiles.view(np.uint32), present, offsets, np.ones(4, dtype=np.int64),
         np.ones(4, dtype=np.uint16), sizes, component, np.array([-1]), order, np.float64(2.0), n_rows, 1, 2,
         np.int32(2), np.int32(1), np.empty(16, dtype=np.uint32), *lists, np.zeros(1, dtype=np.uint64)),
        device="emulated", shared=48, CODE="u8", WEIGHT="i64", PLANES="16",
    )  # fmt: skip
    assert lists.ids[q, 0] == 0
    assert lists.similarities[q].tolist() == [1.0, 0.5]


def test_labels_of_a_far_clustering():
    n_objects, far = 1000, 2**22 + 1
    labels = vast((far + 1, n_objects), np.uint8)
    labels[far] = np.arange(n_objects) % 3
    n_clusters = vast(far + 1, np.int64)
    n_clusters[[0, far]] = [1, 3]
    tables = np.zeros(3, dtype=np.uint64)
    kernels.launch(
        "count_pairs", 1, 64,
        (labels, n_clusters, np.array([0]), np.array([far]), np.array([0]), np.ones(1, dtype=np.int64), tables,
         n_objects, 3),
        device="emulated", shared=12, CODE="u8", COUNT="u32",
    )  # fmt: skip
    assert tables.tolist() == [334, 333, 333]


def test_ceilings_of_a_far_cluster():
    n_tiles, cluster = 3, 2**31 - 1
    ceilings = vast((cluster + 1, n_tiles), np.int32)
    regions = vast_regions({FAR: ([cluster], [3])}, 2**32 + 1000)
    kernels.launch(
        "raise_ceilings", 1, 32,
        (np.full(n_tiles, FAR), np.array([n_tiles, 1]), 1, regions.clusters, regions.counts, regions.start,
         regions.length, regions.size, ceilings),
        device="emulated", WEIGHT="f64",
    )  # fmt: skip
    assert (ceilings[cluster] == np.float32(1.000001).view(np.int32)).all()
    assert ceilings[0, 0] == 0


# --- coupled similarities, neighbourhoods, label space ----------------------------------------------------------------


def test_a_cluster_far_down_its_block():
    """With 70,000 clusters the similarities take 39 GB, and the product of row and k exceeds 2**32."""
    k = 70_000
    values, starts, offsets = vast(k * k + 5, np.float64), np.array([5]), np.array([0, k])
    values[5 + (k - 1) * k + k - 2] = 0.75
    row, col = np.array([[k - 1]], dtype=np.uint32), np.array([[k - 2]], dtype=np.uint32)
    # units of 0 leave all pairs undecided, so that the kernel must read the values
    units = vast(values.shape, np.int32)
    blocks = OnDevice(starts, values, units, 1.0)
    assert coupled_tile(row, col, offsets, blocks, device="emulated").tolist() == [[0.75]]
    assert neighborhood_bits.neighborhood_bits(row, col, offsets, blocks, 0.75, device="emulated").tolist() == [[1]]


def test_shares_in_a_far_cluster():
    far = 2**31
    spread = vast((far + 2, 2), np.float64)
    spread[far:] = [[0.25, 1.0], [0.75, 0.5]]
    found = coupled.relative_similarities(spread, np.array([far, far + 2]), np.ones(1), device="emulated")
    assert found.tolist() == [[1.0, 0.75], [0.75, 1.5]]


def test_far_planes():
    n_planes = 2**32 + 5
    rows, cols = vast((2, n_planes), np.uint64), vast((3, n_planes), np.uint64)
    rows[:, -5:], cols[:, -5:] = [[1, 0, 0, 0, 3], [0, 0, 7, 0, 0]], [[1, 0, 7, 0, 1]] * 3
    found = neighborhood_bits.overlaps(rows, cols, np.array([2**32, 2**32 + 4, n_planes]), device="emulated")
    assert found.tolist() == [[1 + 2 * 1] * 3, [3] * 3]


@pytest.mark.parametrize("in_shared", [False, True])
def test_neighbors_of_a_far_row_in_a_far_cluster(in_shared):
    """Rows have more than 2**32 words of bits; the version for global memory also has more than 2**32 clusters."""
    n_words, first = 2**32 + 3, 3 if in_shared else 2**32
    bits, found = vast((2, n_words), np.uint64), vast((2, first + 2), np.uint64)
    bits[1, 1] = 0b1011  # neighbors 64, 65 and 67
    codes, counts = np.zeros((1, 70), dtype=np.uint8), np.arange(70)
    codes[0, 65:67] = 1
    kernels.launch(
        "neighbor_counts", 1, 32,
        (bits, codes, np.array([first, first + 2]), counts, found, 2, n_words, 70, 1, np.int32(in_shared)),
        device="emulated", shared=8 * (first + 2) if in_shared else 0, CODE="u8",
    )  # fmt: skip
    assert found[:, -2:].tolist() == [[0, 0], [64 + 67, 65]]


def test_sums_over_the_neighbors_of_a_far_row():
    n_words = 2**32 + 3
    bits, values, found = vast((2, n_words), np.uint64), np.arange(140).reshape(70, 2), np.zeros((2, 2), np.uint64)
    bits[1, 1] = 0b1011
    kernels.launch("neighbor_sums", 1, 128, (bits, values, found, 2, n_words, 70, 2), device="emulated")
    assert found.tolist() == [[0, 0], [128 + 130 + 134, 129 + 131 + 135]]


def test_labels_by_their_far_costs():
    far = 2**31
    cost, offsets = vast((far + 2, 3), np.float64), np.array([far, far + 2])
    cost[far:] = [[3, 1, 2], [0, 5, -1]]
    units = vast((far + 3, 3), np.int32)  # rounded costs: for the last label, centroid 2 is the nearest
    units[-1] = [20, 20, 0]
    codes, labels, distances = np.array([[0, 1, 255]], dtype=np.uint8), np.empty(3, dtype=np.int64), np.empty(3)
    kernels.launch(
        "nearest_centroids", 1, 32,
        (codes, offsets, units, np.int32(6), cost, np.full(3, 2.0), labels, distances, 3, 1, 3),
        device="emulated", CODE="u8",
    )  # fmt: skip
    assert (labels.tolist(), distances.tolist()) == ([1, 2, 0], [3.0, 1.0, 2.0])


@pytest.mark.parametrize("shared_cells", [0, 6])
def test_labels_in_a_far_cluster(shared_cells):
    far = 2**31
    counted = vast((far + 2, 3), np.uint64)
    codes, labels = np.array([[0, 1, 255, 1]], dtype=np.uint8), np.array([0, 2, 1, 2])
    kernels.launch(
        "label_histograms", (1, 1), 32,
        (codes, np.array([far, far + 2]), np.arange(1, 5), labels, counted, 4, 3, shared_cells),
        device="emulated", shared=8 * shared_cells, CODE="u8",
    )  # fmt: skip
    assert counted[far:].tolist() == [[1, 0, 0], [0, 0, 2 + 4]]


# --- soft correspondence ----------------------------------------------------------------------------------------------


def test_memberships_by_far_clusters():
    far = 2**31
    table, offsets, of_missing = vast((far + 2, 3), np.float64), np.array([far, far + 2]), np.array([[9.0, 9.0, 8.0]])
    table[far:] = [[3, 1, 2], [0, 5, -1]]
    codes = np.array([[0], [1], [255]], dtype=np.uint8)
    found = label_memberships(codes, offsets, table, of_missing, device="emulated")
    assert found.tolist() == [[3, 1, 2], [0, 5, -1], [9, 9, 8]]


@pytest.mark.parametrize("shared_cells", [0, 9])
def test_correspondences_of_far_clusters(shared_cells):
    far = 2**31
    known, unknown = vast((far + 2, 3), np.uint64), np.zeros((1, 3), np.uint64)
    codes, values = np.array([[0, 1, 255, 1]], dtype=np.uint8), np.arange(12).reshape(4, 3)
    kernels.launch(
        "label_correspondences", (1, 1), 32,
        (codes, np.array([far, far + 2]), values, known, unknown, 4, 3, shared_cells),
        device="emulated", shared=8 * shared_cells, CODE="u8",
    )  # fmt: skip
    assert known[far:].tolist() == [[0, 1, 2], [3 + 9, 4 + 10, 5 + 11]]
    assert unknown.tolist() == [[6, 7, 8]]


# --- pairs of objects -------------------------------------------------------------------------------------------------


def test_pairs_of_far_rows():
    codes = vast((2, 2**31 + 9), np.uint8)
    codes[1, -1] = 1
    first, second = np.array([2**31 + 8, 2**31 + 7]), np.array([2**31 + 7, 0])
    assert drawn_histogram(codes.T, first, second, False, device="emulated").tolist() == [0, 1, 1]


# --- mapping coefficients, any similarity of clusters -----------------------------------------------------------------


def test_coefficients_at_far_places_of_far_labels():
    n_objects, n_places = 2**31 + 9, 2**31 + 7
    codes, clusters, values = vast((2, n_objects), np.uint8), vast((3, n_places), np.int32), vast((3, n_places), float)
    codes[1, -2:], counts = [0, 1], np.zeros((3, 2), dtype=np.int32)
    ids, distances = np.full((3, 2), n_objects - 1), np.full((3, 2), 1.0)
    ids[2, 1], distances[2] = n_objects - 2, [1.0, 3.0]
    kernels.launch(
        "mapping_coefficients", 1, 32,
        (ids, distances, codes, np.array([0, 2, 4]), np.array([0, n_places - 2]), clusters, values, counts, 3, 2,
         n_objects, 2, n_places),
        device="emulated", CODE="u8",
    )  # fmt: skip
    assert counts.tolist() == [[1, 1], [1, 1], [1, 2]]
    assert (clusters[2, -2:].tolist(), values[2, -2:].tolist()) == ([2, 3], [0.25, 0.75])
    assert (clusters[1, -2:].tolist(), values[1, 0]) == ([3, 0], 1.0)


def test_products_of_far_columns():
    """With 70,000 columns, the product of row and column count exceeds 2**32."""
    n, far = 70_000, 69_998
    products, column_starts = vast((n, n), np.uint64), np.zeros(n + 1, dtype=np.int64)
    column_starts[far + 1 :] = [1, 2]
    kernels.launch(
        "rank_products", 1, 32,
        (column_starts, np.array([0, 0]), np.array([3, 5]), np.array([0, 2]), np.array([far, far + 1]),
         np.array([3, 5]), np.array([2]), products, n, np.int32(0)),
        device="emulated",
    )  # fmt: skip
    assert products[far:, far:].tolist() == [[18, 30], [0, 50]]


def test_affinities_of_far_clusters():
    affinities, lists = vast((3, 2**31 + 3), np.float64), Shortlists.empty(3, 1)
    histograms = (np.array([5, 2**31 - 1], dtype=np.int32), np.ones(2, dtype=np.int32), np.array([0, 0, 1]),
                  np.array([0, 1, 1]), np.array([0, 1, 1]))  # fmt: skip
    affinities[2, 5] = 0.25
    kernels.launch(
        "search_general", 1, 32,
        (np.array([1]), np.array([1, 2]), np.array([2, 1]), *histograms, affinities, affinities.shape[1], 1,
         np.int32(1), np.float64(-np.inf), *lists, np.zeros(1, dtype=np.uint64)),
        device="emulated",
    )  # fmt: skip
    assert (lists.ids[1, 0], lists.similarities[1, 0]) == (2, 0.25)


def test_affinities_of_far_regions():
    affinities = vast((FAR + 1, 16), np.float64)
    affinities[[FAR - 1, FAR], 3] = [0.25, 0.5]
    one = np.array([1])
    merge_affinities(affinities, np.array([FAR]), np.array([FAR - 1]), one, one, 1, device="emulated")
    assert affinities[FAR, 3] == 0.75


# --- the CA-tree ------------------------------------------------------------------------------------------------------


def test_prefix_of_a_far_row():
    rows = vast((3, 2**31), np.uint8)
    rows[1, 3], rows[2, 3:5] = 1, [1, 2]
    assert common_prefixes(rows, device="emulated").tolist() == [0, 3, 4]


@pytest.mark.parametrize("n_des", [0, 32])
def test_a_node_of_far_rows(n_des):
    n_rows = 2**31 + 9
    rows, radii = vast((n_rows, 2), np.uint8), vast(n_rows + 1, np.int32)
    first, last, representatives = (vast(n_rows + 1, np.int64) for _ in range(3))
    leaves = np.array([n_rows - 2, n_rows - 1])
    rows[leaves], representatives[leaves] = [[1, 0], [1, 1]], leaves
    first[n_rows], last[n_rows] = leaves
    kernels.launch(
        "measure_nodes", 1, 64,
        (rows, np.array([0, 2]), leaves, first, last, representatives, radii, np.empty(34, dtype=np.int64), n_rows,
         n_rows + 1, n_rows, 2, n_des, 34),
        device="emulated", CODE="u8",
    )  # fmt: skip
    assert (radii[n_rows], representatives[n_rows]) == (1, leaves[0])


def test_descent_to_a_far_row():
    n_rows = 2**31 + 9
    rows, kept, representatives = vast((n_rows, 2), np.uint8), vast(n_rows + 1, np.uint8), vast(n_rows + 1, np.int64)
    leaves, children = np.array([n_rows - 2, n_rows - 1]), np.array([5, n_rows - 2])
    rows[leaves], representatives[leaves], representatives[5] = [[1, 0], [1, 1]], leaves, 5
    kept[n_rows], kept[children] = 1, 2
    shape = np.array([0, 2]), children, *(np.zeros(0, dtype=np.int64) for _ in range(3))
    ends = descend(rows, shape, representatives, kept, leaves[1:], device="emulated")
    assert ends.tolist() == [n_rows - 2]
