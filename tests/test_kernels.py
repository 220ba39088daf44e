"""Every kernel against the CPU's version of its primitive, on the emulated device and, where there is one, on a GPU.

Sizes make ragged edges: none, one, a warp, a warp and one more, several blocks.
"""

import numpy as np
import pytest
from conftest import random_labels

import gpuens as ge
from gpuens import contingency, incidence, kernels
from gpuens import device as devices
from gpuens.reduction.core_groups import core_groups, pack_rows
from gpuens.similarity.coassociation import coassociation_tile

SIZES = [1, 31, 32, 33, 1000]
CODES = {"uint8": (2, 9), "uint16": (280, 300), "uint32": (2, 9)}  # bounds of k; uint32 is forced


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
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
    monkeypatch.setattr(incidence, "SHARED_SUMS", 4)
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
    monkeypatch.setattr(contingency, "SHARED_BYTES", shared_bytes)
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


def test_every_primitive_has_kernels():
    assert all(found == ["cpu", "cuda", "emulated"] for found in kernels.primitives().values()), kernels.primitives()
