"""Every kernel against the CPU's version of its primitive, on the emulated device and, where there is one, on a GPU.

Sizes make ragged edges: none, one, a warp, a warp and one more, several blocks.
"""

import sys

import numpy as np
import pytest
from conftest import MANY_SHAPES, distinct_rows, one_sentence, random_labels, refused, structured_labels
from sklearn.base import clone

import gpuens as ge
from gpuens import contingency, incidence, kernels
from gpuens import device as devices
from gpuens.cli import main
from gpuens.partition import Work, average, average_linkage, nearest, regions, single_linkage
from gpuens.reduction.core_groups import core_groups, pack_rows
from gpuens.similarity.coassociation import coassociation_tile

SIZES = [1, 31, 32, 33, 1000]
CODES = {"uint8": (2, 9), "uint16": (280, 300), "uint32": (2, 9)}  # bounds of k; uint32 is forced


@pytest.fixture(params=["emulated", "stand-in", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Where kernels run: in the emulator, there on the stand-in's device arrays, and on a GPU."""
    if request.param == "stand-in":
        request.getfixturevalue("fake_cupy")
        return "cuda"
    return request.param


def ensemble(n_objects, dtype="uint8", missing=0.2, n_clusterings=5, seed=0):
    """Return an ensemble whose codes have the dtype asked for."""
    labels = random_labels(n_objects, n_clusterings, CODES[dtype], missing=missing * (n_objects > 1), seed=seed)
    ens = ge.Ensemble(list(labels.T))
    codes = ens.codes.astype(dtype, order="F")
    codes[ens.codes == ens.missing_code] = np.iinfo(dtype).max
    ens._copies = {"cpu": codes}
    return ens


def on_host(result):
    return devices.to_host(result)


pytestmark = [pytest.mark.kernels, pytest.mark.filterwarnings("ignore:constant clusterings")]


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", SIZES)
def test_products_with_incidence(n, dtype, device):
    ens, rng = ensemble(n, dtype), np.random.default_rng(1)
    codes, offsets = ens.codes_on(device), ens.offsets
    of_clusters, of_rows = rng.standard_normal(ens.n_clusters), rng.standard_normal(n)
    table = rng.standard_normal((ens.n_clusters, 3))
    np.testing.assert_array_equal(
        on_host(incidence.row_sums(codes, offsets, of_clusters, device=device)),
        incidence.row_sums(ens.codes, offsets, of_clusters),
    )
    np.testing.assert_array_equal(
        on_host(incidence.row_lookups(codes, offsets, table, device=device)),
        incidence.row_lookups(ens.codes, offsets, table),
    )
    counts = rng.integers(1, 100, n)
    np.testing.assert_array_equal(
        on_host(incidence.cluster_sums(codes, offsets, counts, device=device)),
        incidence.cluster_sums(ens.codes, offsets, counts),
    )
    np.testing.assert_allclose(
        on_host(incidence.cluster_sums(codes, offsets, of_rows, device=device)),
        incidence.cluster_sums(ens.codes, offsets, of_rows),
        rtol=0,
        atol=n * np.abs(of_rows).max() * 1e-15,
    )


def test_cluster_sums_of_more_clusters_than_fit_a_block(device, monkeypatch):
    monkeypatch.setattr(kernels, "SHARED_BYTES", 32)
    ens, counts = ensemble(100), np.arange(100)
    np.testing.assert_array_equal(
        on_host(incidence.cluster_sums(ens.codes_on(device), ens.offsets, counts, device=device)),
        incidence.cluster_sums(ens.codes, ens.offsets, counts),
    )


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_intersections(n, dtype, weights, device):
    ens, rng = ensemble(n, dtype), np.random.default_rng(2)
    w = {None: None, "whole": rng.integers(1, 2**40, n), "real": rng.random(n) + 0.1}[weights]
    found = contingency.intersections(ens, w, device=device)
    expected = contingency.intersections(ens, w, device="cpu")
    assert found.dtype == expected.dtype
    if weights == "real":
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weights", [None, "whole"])
@pytest.mark.parametrize("dense_cells", [0, 40, 2**22])
@pytest.mark.parametrize("shared_bytes", [0, 160, 48 * 1024])
@pytest.mark.parametrize("most_pairs", [3, 2**15])
def test_intersections_where_tables_do_not_fit(weights, dense_cells, shared_bytes, most_pairs, device, monkeypatch):
    ens = ensemble(9, n_clusterings=6)
    w = None if weights is None else np.arange(1, 10)
    expected = contingency.intersections(ens, w, device="cpu")
    monkeypatch.setattr(contingency, "DENSE_CELLS", dense_cells)
    monkeypatch.setattr(kernels, "SHARED_BYTES", shared_bytes)
    monkeypatch.setattr(contingency, "MOST_PAIRS", most_pairs)
    np.testing.assert_array_equal(contingency.intersections(ens, w, device=device), expected)
    np.testing.assert_array_equal(contingency.intersections(ens, w, layout="sparse", device=device).toarray(), expected)


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_entropy_and_agreement(weights, device):
    ens, rng = ensemble(300), np.random.default_rng(3)
    w = {None: None, "whole": rng.integers(1, 50, 300), "real": rng.random(300) + 0.1}[weights]
    same = np.testing.assert_allclose if weights == "real" else np.testing.assert_array_equal
    same(contingency.entropy(ens, w, device=device), contingency.entropy(ens, w, device="cpu"))
    same(contingency.agreement(ens, weights=w, device=device), contingency.agreement(ens, weights=w, device="cpu"))


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize(("n_rows", "n_cols"), [(1, 1), (8, 32), (9, 33), (31, 70), (0, 5), (5, 0)])
def test_coassociation_tile(n_rows, n_cols, dtype, device):
    ens = ensemble(100, dtype)
    weights = np.random.default_rng(4).random(ens.n_clusters)
    codes = ens.codes_on(device)
    found = coassociation_tile(codes[:n_rows], codes[50 : 50 + n_cols], ens.offsets, weights, device=device)
    expected = coassociation_tile(ens.codes[:n_rows], ens.codes[50 : 50 + n_cols], ens.offsets, weights)
    np.testing.assert_array_equal(on_host(found), expected)


def test_coassociation_blocks(device):
    ens = ensemble(40)
    rows = np.arange(0, 40, 3)
    for block in (ge.similarity.coassociation, ge.similarity.lwca):
        found = block(ens, rows=rows, device=device)
        np.testing.assert_array_equal(on_host(found), block(ens, rows=rows, device="cpu"))


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_clusterings", [1, 5, 40])
def test_core_groups(n, n_clusterings, dtype, device):
    ens = ensemble(n, dtype, n_clusterings=n_clusterings)
    radices = np.diff(ens.offsets) + 1
    words = pack_rows(ens.codes_on(device), radices, device=device)
    np.testing.assert_array_equal(on_host(words), pack_rows(ens.codes, radices))
    found, expected = core_groups(ens, device=device), core_groups(ens)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(on_host(found.membership), expected.membership)
    np.testing.assert_array_equal(found.ensemble.codes, expected.ensemble.codes)
    labels = np.arange(len(found.weights))
    np.testing.assert_array_equal(on_host(found.expand(labels)), expected.expand(labels))


# --- linkage ----------------------------------------------------------------------------------------------------------


def groups_of(labels, dtype=None):
    """Return the core groups of labels: codes (of the dtype asked for), offsets, sizes and N_c."""
    reduced = core_groups(ge.Ensemble(list(labels.T)))
    rows = reduced.ensemble
    if dtype is not None:
        codes = rows.codes.astype(dtype, order="F")
        codes[rows.codes == rows.missing_code] = np.iinfo(dtype).max
        rows._copies = {"cpu": codes}
    return rows, rows.offsets, reduced.weights


def cluster_weights(n_clusters, kind):
    if kind == "ones":
        return np.ones(n_clusters, dtype=np.int64)
    return np.random.default_rng(5).uniform(0.01, 1.0, n_clusters)


LABELS = {
    "two rows": lambda: np.array([[0, 0, 1], [0, 1, 1]]),
    "31 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6)))[:31],
    "64 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6), seed=1))[:64],
    "65 rows": lambda: distinct_rows(random_labels(200, 6, (2, 6), seed=2))[:65],
    "noise": lambda: random_labels(250, 5, (2, 9), missing=0.2),
    "structured": lambda: structured_labels(300, 8, 5, seed=3)[0],
    "many clusters": lambda: random_labels(150, 4, (280, 300), seed=4),
    "far apart": MANY_SHAPES["far apart"],
    "one clustering": lambda: random_labels(40, 1, 30),
}


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("n_listed", [1, 3, 16])
def test_nearest_lists(n_listed, dtype, weights, device, monkeypatch):
    rows, offsets, sizes = groups_of(structured_labels(200, 6, 5, missing=0.1, seed=3)[0], dtype)
    w = cluster_weights(rows.n_clusters, weights)
    monkeypatch.setattr(devices, "scratch", lambda device: 1)  # a warp takes many queries
    expected, index = (
        nearest.nearest_index(rows.codes_on(where), offsets, w, sizes, device=where) for where in ("cpu", device)
    )
    lists = nearest.nearest_lists(index, n_listed)
    for found, wanted in zip(lists, nearest.nearest_lists(expected, n_listed), strict=True):
        np.testing.assert_array_equal(on_host(found), wanted)
    assert index.comparisons == expected.comparisons


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize("shape", LABELS)
@pytest.mark.parametrize("link", [average_linkage, single_linkage])
def test_linkage(link, shape, weights, device):
    same_dendrogram(link, groups_of(LABELS[shape]()), weights, device)


@pytest.mark.parametrize("weights", ["ones", "real"])
@pytest.mark.parametrize("changed", [("TILE", 3), ("OFFERS", 1), ("BLOCK", 32), ("scratch", 2000)])
def test_searches_in_pieces(changed, weights, device, monkeypatch):
    """Short lists make most rounds search; odd tiles, one tile a visit, one warp a block, one block for all queries."""
    name, value = changed
    monkeypatch.setattr(average, "N_LISTED", 1)
    if name == "scratch":
        monkeypatch.setattr(devices, "scratch", lambda device: value)
    else:
        monkeypatch.setattr(regions, name, value)
    same_dendrogram(average_linkage, groups_of(LABELS["noise"]()), weights, device)


def test_thousands_of_clusterings(device):
    """More than the labels of a warp's query, and of a tile's rows, find room in 48 kB of shared memory."""
    labels = random_labels(6500, 9, 3, seed=7).T[:, :6500]
    same_dendrogram(average_linkage, groups_of(labels), "real", device)
    found = ge.similarity.coassociation(list(labels.T), device=device)
    np.testing.assert_array_equal(on_host(found), ge.similarity.coassociation(list(labels.T)))


@pytest.mark.parametrize("weights", ["ones", "real"])
def test_more_objects_than_int32_counts(weights, device):
    rows, offsets, sizes = groups_of(LABELS["31 rows"]())
    sizes = np.where(np.arange(len(sizes)) == 7, 2**31, sizes)
    same_dendrogram(average_linkage, (rows, offsets, sizes), weights, device)


def test_histograms_move_when_the_arena_is_full(device):
    rows, offsets, sizes = groups_of(LABELS["31 rows"]())
    xp = devices.namespace(device)
    before = regions.regions_of(rows.codes_on(device), offsets, sizes, device=device)
    live = xp.arange(len(rows))[::2].copy()
    kept = [regions_as_dicts(before, r) for r in on_host(live)]
    after = regions.make_room(before, live, len(before.clusters), device=device)
    assert [regions_as_dicts(after, r) for r in on_host(live)] == kept
    assert len(after.clusters) - after.used[0] >= len(before.clusters)


def regions_as_dicts(found, r):
    start, length = int(found.start[r]), int(found.length[r])
    entries = slice(start, start + length)
    return dict(zip(on_host(found.clusters[entries]).tolist(), on_host(found.counts[entries]).tolist(), strict=True))


def same_dendrogram(link, groups, weights, device):
    """Check that the device makes the CPU's merges at its similarities, to the bit, by as many rounds and searches."""
    rows, offsets, sizes = groups
    w = cluster_weights(rows.n_clusters, weights)
    work, expected_work = Work(), Work()
    found = link(rows.codes_on(device), offsets, w, sizes, device=device, work=work)
    expected = link(rows.codes, offsets, w, sizes, work=expected_work)
    np.testing.assert_array_equal(found.kept, expected.kept)
    np.testing.assert_array_equal(found.absorbed, expected.absorbed)
    np.testing.assert_array_equal(found.similarities, expected.similarities)
    assert (work.rounds, work.searches) == (expected_work.rounds, expected_work.searches)


# --- estimators -------------------------------------------------------------------------------------------------------

ESTIMATORS = {
    "eac": ge.EAC(4),
    "eac, longest lifetime": ge.EAC(),
    "eac, single": ge.EAC(4, linkage="single"),
    "eac, complete": ge.EAC(40, linkage="complete"),
    "lwea": ge.LWEA(4),
    "lwea, threshold": ge.LWEA(distance_threshold=0.5),
    "lwgp": ge.LWGP(4),
    "hbgf": ge.HBGF(4),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("shape", ["noise", "structured"])
def test_estimators(name, shape, device):
    labels = LABELS[shape]()
    estimator = clone(ESTIMATORS[name]).set_params(device=device)
    expected = clone(ESTIMATORS[name]).fit(labels)
    assert isinstance(estimator.fit(labels).labels_, np.ndarray)  # NumPy in, NumPy out
    np.testing.assert_array_equal(estimator.labels_, expected.labels_)
    assert estimator.n_clusters_ == expected.n_clusters_
    if hasattr(expected, "children_"):
        np.testing.assert_array_equal(estimator.children_, expected.children_)
        np.testing.assert_array_equal(estimator.distances_, expected.distances_)


@pytest.mark.parametrize("name", ["lwgp", "hbgf"])
@pytest.mark.parametrize("changed", [("RESTARTS_ON", 100), ("DENSE_UP_TO", 10)])
def test_transfer_cut_of_many(name, changed, device, monkeypatch):
    """More rows than k-means restarts see; more clusters than dense eigenvectors are taken of."""
    monkeypatch.setattr(sys.modules["gpuens.partition.transfer_cut"], *changed)
    labels = LABELS["structured"]()
    found = clone(ESTIMATORS[name]).set_params(device=device).fit_predict(labels)
    expected = clone(ESTIMATORS[name]).fit_predict(labels)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_labels_stay_on_the_device(name, fake_cupy):
    """CuPy in, CuPy out, and nothing of the size of the label matrix comes to the host on the way."""
    labels = np.repeat(LABELS["structured"](), 50, axis=0)
    estimator = clone(ESTIMATORS[name])
    on_device = fake_cupy.asarray(labels.astype(np.uint8))
    fake_cupy.traffic.to_host.sizes.clear()
    found = estimator.fit(on_device).labels_
    if name != "eac, complete":  # whose linkage is SciPy's, on the similarities of all groups
        assert fake_cupy.traffic.to_host.largest < labels.size / 4
    assert isinstance(found, fake_cupy.ndarray)
    np.testing.assert_array_equal(fake_cupy.asnumpy(found), clone(ESTIMATORS[name]).fit_predict(labels))


def test_metrics_of_labels_in_gpu_memory(fake_cupy):
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 7, 200_000), rng.integers(-1, 100, 200_000)
    on_device = fake_cupy.asarray(a), fake_cupy.asarray(b)
    fake_cupy.traffic.to_host.sizes.clear()
    for score in (ge.metrics.nmi, ge.metrics.ari, ge.metrics.accuracy):
        assert score(*on_device) == score(a, b)
    labelings = fake_cupy.asarray(np.column_stack([a, b, b]))
    assert ge.metrics.stability(labelings) == ge.metrics.stability(np.column_stack([a, b, b]))
    assert ge.metrics.stability(ge.Ensemble(labelings)) == ge.metrics.stability(labelings)
    assert fake_cupy.traffic.to_host.largest <= 8 * (7 * 100 * 2 + 100 * 100)
    refused(lambda: ge.metrics.nmi(on_device[0], b), TypeError, "GPU memory", "host memory")


def test_the_command_line(tmp_path, device):
    np.save(tmp_path / "labels.npy", LABELS["structured"]())
    for where in ("cpu", device):
        main(["run", str(tmp_path / "labels.npy"), "-k", "4", "--device", where, "-o", str(tmp_path / f"{where}.npy")])
    np.testing.assert_array_equal(np.load(tmp_path / "cpu.npy"), np.load(tmp_path / f"{device}.npy"))


def test_no_emulator_outside_a_checkout(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "PACKAGE", tmp_path / "gpuens")
    kernels.emulator.cache_clear()
    refused(kernels.emulator, ValueError, "device='emulated'", "checkout")


@pytest.mark.parametrize("name", ["lwea", "lwgp", "eac, single"])
def test_memory_that_runs_out(name, fake_cupy):
    """Less and less of it: first it is enough, then only in small pieces, and then one sentence says so."""
    labels, estimator = LABELS["noise"](), clone(ESTIMATORS[name])
    expected = clone(estimator).fit_predict(labels)
    estimator.set_params(device="cuda")
    outcomes = []
    for limit in (80 * 10**9, *(2**n for n in range(24, 10, -1))):
        fake_cupy.reset(limit)
        try:
            np.testing.assert_array_equal(estimator.fit_predict(labels), expected)
            outcomes.append("fits")
        except MemoryError as error:
            outcomes.append("refused")
            one_sentence(error)
    assert outcomes[0] == "fits"
    assert outcomes[-1] == "refused"
    assert outcomes == sorted(outcomes)


# --- a thread of the host for each CUDA thread, so that a race shows --------------------------------------------------

SMALL = structured_labels(34, 4, 3, missing=0.1, seed=3)[0]

TINY = {
    "products": lambda: test_products_with_incidence(33, "uint8", "emulated"),
    "intersections": lambda: test_intersections(33, "uint8", "whole", "emulated"),
    "co-association": lambda: test_coassociation_tile(17, 33, "uint8", "emulated"),
    "core groups": lambda: test_core_groups(33, 5, "uint8", "emulated"),
    "average linkage": lambda: same_dendrogram(average_linkage, groups_of(SMALL), "real", "emulated"),
    "single linkage": lambda: same_dendrogram(single_linkage, groups_of(SMALL), "ones", "emulated"),
    "histograms that move": lambda: test_histograms_move_when_the_arena_is_full("emulated"),
}


@pytest.mark.tiny
@pytest.mark.parametrize("name", TINY)
def test_tiny(name, monkeypatch):
    """One block does all the work, so that what it leaves in shared memory meets what it does next."""
    monkeypatch.setattr(average, "N_LISTED", 2)  # so that there are searches
    monkeypatch.setattr(regions, "TILE", 4)  # and several visits in each
    monkeypatch.setattr(regions, "OFFERS", 4)
    monkeypatch.setattr(kernels, "blocks", lambda n, block, most=1: min(n, 1))
    monkeypatch.setattr(devices, "scratch", lambda device: 300)
    TINY[name]()


# --- all of them ------------------------------------------------------------------------------------------------------


def test_every_kernel_is_launched_by_a_test(request):
    """The last test of the file: a kernel that none of those before it has launched has no test."""
    if request.session.testscollected < 300:
        pytest.skip("only some of the tests of this file were asked for")
    assert set(kernels.functions()) == LAUNCHED


LAUNCHED = set()


@pytest.fixture(autouse=True)
def note_launches(monkeypatch):
    function = kernels.function

    def noted(name, *args, **macros):
        LAUNCHED.add(name)
        return function(name, *args, **macros)

    monkeypatch.setattr(kernels, "function", noted)


def test_every_primitive_has_kernels():
    found = kernels.primitives()
    assert len(found) > 10
    assert {name: on for name, on in found.items() if on != ["cpu", "cuda", "emulated"]} == {}
