"""Consensus of factors: the figures of the authors' cNMF, its formulas written out, planted programs, refusals."""

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from conftest import refused
from scipy.optimize import linear_sum_assignment, nnls
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.metrics.pairwise import euclidean_distances

import gpuens as ge
from gpuens.runtime.device import to_host

with np.load(Path(__file__).with_name("cnmf") / "cnmf.npz") as file:
    CNMF = dict(file)


def drawn_runs(n_runs=12, k=4, n_features=25, junk=0.0, seed=0, ks=None):
    """Return noisy copies of planted programs in random order, runs of ``ks`` programs each, and the planted ones.

    A share ``junk`` of the programs is replaced by random ones.
    """
    rng = np.random.default_rng(seed)
    planted = rng.gamma(0.2, 1.0, (k, n_features)) + 0.001
    planted /= planted.sum(axis=1, keepdims=True)
    runs = []
    for m in range(n_runs):
        places = rng.permutation(k)[: ks[m % len(ks)] if ks else k]
        programs = planted[places] * rng.gamma(30.0, 1 / 30, (len(places), n_features)) * rng.uniform(1, 9)
        replaced = rng.random(len(programs)) < junk
        programs[replaced] = rng.gamma(0.2, 1.0, (replaced.sum(), n_features)) + 0.001
        runs.append(programs)
    return runs, planted


def literal(runs, k, threshold=0.5, share=0.3):
    """Return cNMF's densities, labels (-1: left out), medians and silhouette, from the square matrix of distances."""
    spectra = np.concatenate(runs)
    unit = spectra / np.sqrt((spectra**2).sum(axis=1))[:, None]
    distances, n_nearest = euclidean_distances(unit), max(1, int(share * len(runs)))
    densities = np.array([np.sort(row)[1 : n_nearest + 1].mean() for row in distances])
    silhouette = silhouette_score(unit, KMeans(k, n_init=10, random_state=1).fit(unit).labels_)
    kept = densities < threshold
    labels = np.full(len(unit), -1)
    labels[kept] = KMeans(k, n_init=10, random_state=1).fit(unit[kept]).labels_
    medians = np.array([np.median(unit[labels == j], axis=0) for j in range(k)])
    return densities, labels, medians / medians.sum(axis=1, keepdims=True), silhouette


def same_programs(programs, expected, atol=1e-9):
    """Check that two sets of programs are equal up to their order; return the place of each expected program."""
    apart = abs(to_host(programs)[:, None] - expected).max(axis=2)
    rows, columns = linear_sum_assignment(apart)
    assert apart[rows, columns].max() < atol
    return rows[np.argsort(columns)]


# --- equal to cNMF ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [4, 6])
@pytest.mark.parametrize("threshold", [0.5, 0.15])
def test_programs_and_densities_are_those_of_the_authors_program(k, threshold):
    result = ge.factors(CNMF[f"spectra_{k}"].reshape(12, k, -1), density_threshold=threshold)
    same_programs(result.programs, CNMF[f"consensus_{k}_{threshold}"], 1e-12)
    np.testing.assert_allclose(result.densities, CNMF[f"density_{k}"], atol=1e-9)
    assert result.n_programs_used == (CNMF[f"density_{k}"] < threshold).sum()


@pytest.mark.parametrize("k", [4, 6])
def test_stability_and_error_are_those_of_the_authors_program(k):
    _, _, silhouette, error = CNMF[f"stats_{k}"]
    result = ge.factors(CNMF[f"spectra_{k}"].reshape(12, k, -1), density_threshold=2, data=CNMF["data"])
    assert result.silhouette == pytest.approx(silhouette, abs=1e-9)
    assert result.error == pytest.approx(error, rel=1e-6)
    assert result.error <= error  # theirs ends before the minimum


@pytest.mark.parametrize(("junk", "ks", "strip"), [(0.0, None, 1), (0.2, None, 5), (0.2, (4, 5, 2), 1000)])
def test_every_step_is_the_formula_written_out(junk, ks, strip, where, step_bytes):
    runs, _ = drawn_runs(n_runs=13, k=5, junk=junk, ks=ks, seed=3)
    step_bytes(24 * strip * sum(map(len, runs)))
    densities, labels, medians, silhouette = literal(runs, 4)
    result = ge.factors(runs, 4, device=where)
    np.testing.assert_allclose(result.densities, densities, atol=1e-7)
    assert result.silhouette == pytest.approx(silhouette, abs=1e-7)
    places = same_programs(result.programs, medians)
    np.testing.assert_array_equal(result.labels, np.append(places, -1)[labels])
    np.testing.assert_array_equal(result.of_run, np.repeat(np.arange(13), [len(run) for run in runs]))
    np.testing.assert_array_equal(result.sizes, np.bincount(result.labels[result.labels >= 0]))
    assert (np.diff(result.sizes) <= 0).all()


def test_clusters_of_one_program_have_a_silhouette_of_0():
    runs = [np.eye(3, 4) + 0.01, np.eye(2, 4) + 0.02]
    unit = np.concatenate(runs) / np.linalg.norm(np.concatenate(runs), axis=1)[:, None]
    result = ge.factors(runs, 3, density_threshold=2)
    assert sorted(result.sizes.tolist()) == [1, 2, 2]
    assert result.silhouette == pytest.approx(silhouette_score(unit, result.labels), abs=1e-7)


# --- what users rely on -----------------------------------------------------------------------------------------------


def test_planted_programs_are_found_and_random_ones_left_out():
    runs, planted = drawn_runs(n_runs=30, k=6, n_features=80, junk=0.2)
    result = ge.factors(runs)
    same_programs(result.programs, planted, 0.03)
    clean = ge.factors(drawn_runs(n_runs=30, k=6, n_features=80)[0])
    assert clean.n_programs_used == 180
    assert 130 < result.n_programs_used < 160
    assert clean.silhouette > result.silhouette + 0.1


def test_the_scale_of_a_program_changes_nothing():
    runs, _ = drawn_runs()
    expected, rng = ge.factors(runs), np.random.default_rng(0)
    scaled = [run * 10.0 ** rng.integers(-200, 200, (len(run), 1)) for run in runs]
    result = ge.factors(scaled)
    np.testing.assert_allclose(result.programs, expected.programs, atol=1e-12)
    np.testing.assert_array_equal(result.labels, expected.labels)


def test_frames_are_matched_by_the_names_of_their_columns():
    runs, _ = drawn_runs()
    genes = np.array([f"g{j}" for j in range(25)])
    rng, frames = np.random.default_rng(1), []
    for m, run in enumerate(runs):
        order = rng.permutation(25) if m else np.arange(25)
        frames.append(pd.DataFrame(run[:, order], columns=genes[order]))
    data, order = rng.poisson(3.0, (40, 25)), rng.permutation(25)
    result = ge.factors(frames, data=pd.DataFrame(data[:, order], columns=genes[order]))
    expected = ge.factors(runs, data=data)
    np.testing.assert_array_equal(result.programs, expected.programs)
    assert result.error == expected.error
    assert result.table.columns.tolist() == genes.tolist()
    assert expected.features is None
    other = frames[1].rename(columns={"g3": "h3"})
    refused(lambda: ge.factors([frames[0], other]), ValueError, "run 1", "other features", "reindex")
    refused(lambda: ge.factors(frames, data=pd.DataFrame(data)), ValueError, "data", "other features")


def test_sparse_programs_and_data_are_read():
    runs, _ = drawn_runs()
    data = np.random.default_rng(0).poisson(1.0, (50, 25)).astype(np.float32)
    expected = ge.factors(runs, data=data)
    result = ge.factors([csr_matrix(run) for run in runs], data=csr_matrix(data))
    np.testing.assert_array_equal(result.programs, expected.programs)
    np.testing.assert_allclose(result.usages, expected.usages, atol=1e-9)
    assert result.error == pytest.approx(expected.error)


def test_usages_are_least_squares(where, sizes):
    runs, _ = drawn_runs()
    data = np.random.default_rng(0).poisson(2.0, (50, 25)).astype(float)
    data[7] = 0.0
    sizes("workflows.usages", BLOCK=16)
    result = ge.factors(runs, data=data, device=where)
    expected = [nnls(result.programs.T, row) for row in data]
    np.testing.assert_allclose(result.usages, [usages for usages, _ in expected], atol=1e-5)
    assert (result.usages == 0).any()
    assert result.error == pytest.approx(sum(residual**2 for _, residual in expected), rel=1e-9)


def test_data_of_the_programs_themselves_have_no_error():
    runs, _ = drawn_runs()
    programs = ge.factors(runs).programs
    result = ge.factors(runs, data=2.0 * programs)
    np.testing.assert_allclose(result.usages, 2.0 * np.eye(4), atol=1e-6)
    assert 0.0 <= result.error < 1e-12


def test_seeds_and_a_sample_for_the_starts(sizes):
    runs, planted = drawn_runs(n_runs=40)
    sizes("kmeans.weighted", RESTARTS_ON=30)
    result = ge.factors(runs, rng=7)
    np.testing.assert_array_equal(result.labels, ge.factors(runs, random_state=7).labels)
    same_programs(result.programs, planted, 0.05)


def test_groups_without_programs_are_told_of():
    runs = [np.eye(2, 3)] * 3
    with pytest.warns(UserWarning, match="only 2 of k=3 groups"):
        result = ge.factors(runs, 3)
    assert result.sizes.tolist() == [3, 3, 0]
    assert result.programs.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_a_single_program_has_no_silhouette():
    result = ge.factors([[[1, 2, 3]], [[2, 4, 6]], [[1, 2, 3]]])
    assert result.silhouette is None
    np.testing.assert_allclose(result.programs, [[1 / 6, 1 / 3, 1 / 2]])


def test_the_repr_tells_the_facts():
    runs, _ = drawn_runs(junk=0.2)
    result = ge.factors(runs, data=np.ones((3, 25)))
    left_out = 48 - result.n_programs_used
    lines = repr(result).splitlines()
    assert lines[0] == "Factors: 4 programs of 25 features, from 48 programs of 12 runs"
    assert f"  left out: {left_out}" in lines
    assert f"  silhouette: {result.silhouette:.3f}" in lines
    assert "left out" not in repr(ge.factors(runs, density_threshold=2))


# --- memory and devices -----------------------------------------------------------------------------------------------


def test_no_square_matrix_is_made(monkeypatch):
    runs, _ = drawn_runs(n_runs=1000, n_features=10)
    monkeypatch.setenv("GPUENS_MEMORY", "24MB")
    ge.factors(runs[:3])  # loads what is loaded at the first call
    tracemalloc.start()
    try:
        ge.factors(runs, n_init=1)
        assert tracemalloc.get_traced_memory()[1] < 24e6  # the square of 4,000 programs has 128 MB
    finally:
        tracemalloc.stop()
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    refused(lambda: ge.factors(runs), MemoryError, "4,000 programs of 10 features", "pass fewer runs")


def test_threads_of_blas_change_no_bit():
    rng = np.random.default_rng(0)
    planted, data = rng.gamma(0.3, size=(6, 1900)), rng.gamma(1, size=(700, 1900))
    runs = [planted * rng.gamma(20, 0.05, size=planted.shape) for _ in range(60)]
    results = []
    for n_threads in (1, 2):
        with threadpoolctl.threadpool_limits(n_threads, user_api="blas"):
            results.append(ge.factors(runs, data=data, n_init=1))
    single, double = results
    assert (single.silhouette, single.error) == (double.silhouette, double.error)
    np.testing.assert_array_equal(single.densities, double.densities)
    np.testing.assert_array_equal(single.usages, double.usages)


def test_programs_in_gpu_memory_stay_there(fake_cupy):
    runs, _ = drawn_runs(n_runs=20, n_features=200, junk=0.1)
    data = np.random.default_rng(0).poisson(1.0, (30, 200)).astype(float)
    expected = ge.factors(runs, data=data)
    on_gpu, data = [fake_cupy.asarray(run) for run in runs], fake_cupy.asarray(data)
    fake_cupy.reset()
    result = ge.factors(on_gpu, data=data)
    assert isinstance(result.programs, fake_cupy.ndarray)
    assert isinstance(result.usages, fake_cupy.ndarray)
    assert fake_cupy.traffic.to_host.largest < 8 * 80 * 20  # the programs have 8 * 80 * 200 bytes
    np.testing.assert_allclose(to_host(result.programs), expected.programs, atol=1e-9)
    np.testing.assert_allclose(to_host(result.usages), expected.usages, atol=1e-5)
    np.testing.assert_array_equal(result.labels, expected.labels)
    refused(lambda: ge.factors([on_gpu[0], runs[0]]), TypeError, "one device")


# --- refusals ---------------------------------------------------------------------------------------------------------

RUN = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])


@pytest.mark.parametrize(
    ("runs", "arguments", "kind", "mentioned"),
    [
        (RUN, {}, TypeError, ["list"]),
        ({2: [RUN, RUN]}, {}, TypeError, ["dict", "a call for each"]),
        ([RUN], {}, ValueError, ["two or more"]),
        ([RUN, RUN[:, :2]], {}, ValueError, ["run 1 has 2 features and run 0 has 3"]),
        ([RUN.T, RUN.T], {}, ValueError, ["3 programs of 2 features", "transpose", "gpuens.modes"]),
        ([RUN, -RUN], {}, ValueError, ["run 1, program 0", "negative"]),
        ([RUN, RUN * [[1], [0]]], {}, ValueError, ["run 1, program 1", "leave it out"]),
        ([RUN, RUN * np.nan], {}, ValueError, ["run 1 must be finite"]),
        ([RUN, RUN[:1]], {}, ValueError, ["1 to 2 programs", "k=…"]),
        ([RUN, RUN], {"k": 5}, ValueError, ["k=5", "4 programs"]),
        ([RUN, RUN], {"k": 0}, ValueError, ["k must be at least 1"]),
        ([RUN, RUN[::-1] + 1], {"density_threshold": 0.01}, ValueError, ["leaves 0 of 4", "2 keeps all"]),
        ([RUN, RUN], {"density_threshold": 0}, ValueError, ["density_threshold must be above 0"]),
        ([RUN, RUN], {"local_neighborhood_size": 1.5}, ValueError, ["at most 1"]),
        ([RUN, RUN], {"data": RUN[:, :2]}, ValueError, ["data have 2 features", "3"]),
        ([RUN, RUN], {"n_init": 0}, ValueError, ["n_init"]),
    ],
    ids=lambda value: "" if isinstance(value, (list, type, np.ndarray)) else str(list(value)),
)
def test_refusals(runs, arguments, kind, mentioned):
    refused(lambda: ge.factors(runs, **arguments), kind, *mentioned)
