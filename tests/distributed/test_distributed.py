"""Labels in chunks give the same answer as in one piece, by threads or by worker processes, even if some die."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import conftest
import emulator
import numpy as np
import oracles
import pytest
from conftest import one_sentence, random_labels, refused, structured_labels

import gpuens as ge
from gpuens.runtime import device as devices
from gpuens.runtime import installing

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from distributed.utils import get_mp_context  # noqa: E402

from gpuens import distributed as in_chunks  # noqa: E402
from gpuens.cli import main  # noqa: E402
from gpuens.distributed import clients, graph, waiting, worker  # noqa: E402
from gpuens.partition import embedding, transfer_cut  # noqa: E402
from gpuens.runtime.failures import LostWorkers, OutOfGPUMemory  # noqa: E402

# methods that use features need all objects in one piece
METHODS = sorted(conftest.METHODS.keys() - conftest.BY_FEATURES.keys())
REDUCTIONS = [None, "catree:tau=0.2,gamma=0.9", "sample:150", "sample:150,by=sum"]

# an error would stop the scheduler, whose thread runs in this process
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def labels():
    return structured_labels(1000, 6, 4, noise=0.2, split=2, missing=0.05, seed=3)[0]


@pytest.fixture(scope="module", autouse=True)
def workers_are_forked():
    """Start workers from a process that has done all imports, which saves a second for each worker."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["distributed", "gpuens.distributed", "gpuens.runtime.registry"])
        yield


def processes(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )


def threads(n_workers):
    """Return a cluster in threads of this process."""
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
    )


@pytest.fixture(scope="module")
def cluster():
    with processes(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def chunks_of(labels, size=137):
    return da.from_array(labels, chunks=(size, labels.shape[1]))


def same(lazy, expected):
    """Compare an array in chunks with the one of one piece."""
    np.testing.assert_array_equal(lazy.compute(), expected)


def on_each_gpu(labels, size=300):
    return in_chunks.on_gpus(chunks_of(labels, size))


def freed(client, allowed=()):
    """Return the keys that workers hold, once only those allowed are left: messages to free data take a while."""
    for _ in range(100):
        held = {str(key).split("-chunk-")[0] for key, workers in client.who_has().items() if workers}
        if held <= {*allowed}:
            break
        time.sleep(0.05)
    return held


# --- the same answer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "reduction"),
    [(method, None) for method in METHODS] + [(method, REDUCTIONS[1 + i % 3]) for i, method in enumerate(METHODS)],
)
def test_labels_are_those_of_one_piece(method, reduction, labels):
    est = ge.methods()[method](4, reduction=reduction)
    expected = est.fit(labels).labels_
    found = est.fit(chunks_of(labels)).labels_
    assert (found.chunks, found.dtype) == (chunks_of(labels).chunks[:1], expected.dtype)
    same(found, expected)


def test_large_values_of_this_process_cause_no_warning_of_dask(client, tmp_path):
    """Rows that all chunks look up, and weights in an array, are larger than what Dask warns about."""
    labels = np.random.default_rng(0).integers(0, 250, (30_000, 12))
    weights = np.random.default_rng(1).integers(1, 2**36, 30_000)
    np.save(tmp_path / "labels.npy", labels)
    small = {"distributed.admin.large-graph-warning-threshold": "200 kB"}
    with warnings.catch_warnings(), dask.config.set(small):
        warnings.filterwarnings("error", "Sending large graph")
        est = ge.LWGP(3).fit(in_chunks.read_labels(tmp_path / "labels.npy", chunk_rows=10_000), sample_weight=weights)
        counts = in_chunks.write_labels(tmp_path / "out.npy", est.labels_)
    expected = ge.LWGP(3).fit(labels, sample_weight=weights).labels_
    assert counts.tolist() == np.bincount(expected).tolist()
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA])
def test_clusters_of_a_smallest_size_and_the_rest_are_those_of_one_piece(kind, reduction):
    labels = structured_labels(400, 6, 4, noise=0.3, split=2, missing=0.05, seed=3)[0]
    labels[350:, :5] = 20 + np.random.default_rng(0).integers(0, 15, (50, 5))
    whole, chunked = (kind(5, min_size=12, reduction=reduction).fit(given) for given in (labels, chunks_of(labels)))
    assert whole.rest_.any()
    assert (chunked.rest_.chunks, chunked.rest_.dtype) == (chunked.labels_.chunks, bool)
    same(chunked.labels_, whole.labels_)
    same(chunked.rest_, whole.rest_)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_workers_give_the_same(client, labels, reduction):
    for method in ("lwea", "cgc", "crc-c"):
        est = ge.methods()[method](4, reduction=reduction)
        expected = est.fit(labels).labels_
        same(est.fit(chunks_of(labels)).labels_, expected)


def test_a_client_may_be_named(cluster, labels):
    with distributed.Client(cluster, set_as_default=False) as client:
        est = in_chunks.fit(ge.LWGP(4), chunks_of(labels), client=client)
        np.testing.assert_array_equal(client.compute(est.labels_).result(), ge.LWGP(4).fit_predict(labels))


@pytest.mark.parametrize("size", [1, 150, 299, 300, (120, 0, 1, 179)])
def test_any_chunks_will_do(labels, size):
    labels = labels[:300]
    found = ge.LWEA(4).fit(chunks_of(labels, size)).labels_.compute()
    np.testing.assert_array_equal(found, ge.LWEA(4).fit_predict(labels))


@pytest.mark.parametrize("reduction", [None, "sample:150"])
def test_estimators_can_be_written_down(client, labels, reduction, in_pieces):
    for method in ("hbgf", "lwgp"):
        est = ge.methods()[method](4, reduction=reduction).fit(chunks_of(labels))
        again = pickle.loads(pickle.dumps(est))
        same(again.labels_, est.labels_.compute())


def test_chunks_with_columns_apart_and_of_unknown_size(labels):
    apart = da.from_array(labels, chunks=(300, 2))
    unknown = apart[da.from_array(np.ones(len(labels), dtype=bool), chunks=300)]
    for given in (apart, unknown):
        same(ge.EAC(4).fit(given).labels_, ge.EAC(4).fit_predict(labels))


def test_labels_that_only_some_chunks_have():
    labels = np.array([["b", "x"], ["b", None], ["a", "y"], ["a", "x"], ["c", "y"], ["c", "z"]], dtype=object)
    # 300 clusters need codes of two bytes
    wide = np.column_stack([np.arange(900) // 3, np.arange(900) // 300, np.arange(900) // 450])
    for given, size in [(labels, 1), (labels, 2), (labels, 4), (wide, 137)]:
        same(ge.EAC(3).fit(chunks_of(given, size)).labels_, ge.EAC(3).fit_predict(given))


def test_the_text_minus_one_means_what_it_does_in_one_piece(recwarn):
    """The labels of all chunks decide whether '-1' is a number, and so a missing label, or the name of a cluster."""
    numbers = np.array(["-1 0", "1 0", "nan 1", "0 -1", "2 2", "2 0", "-1 0", "0 1"])
    numbers = np.array([row.split() for row in numbers])
    for last in ("1", "x"):
        labels = np.append(numbers, [[last, "0"]], axis=0)
        whole = ge.EAC(3).fit(labels)
        for size in (1, 2, 3, 9):
            found = ge.EAC(3).fit(da.from_array(labels, chunks=(size, 2)))
            same(found.labels_, whole.labels_)
            rows, of_all = found.reduction_, whole.reduction_
            np.testing.assert_array_equal(rows.ensemble.codes, of_all.ensemble.codes)
            np.testing.assert_array_equal(rows.counts, of_all.counts)
    words = {str(caught.message).partition(";")[0] for caught in recwarn}
    assert words == {"labels: '-1', 'nan' in '0' count as clusters"}
    labels = np.append(numbers, [["-1", "nan"]], axis=0)
    for size in (1, 9):
        chunks = da.from_array(labels, chunks=(size, 2))
        refused(lambda chunks=chunks: ge.EAC(3).fit(chunks), ValueError, "1 object(s) have no label in any clustering")


def test_labels_in_the_workers_memory_and_labels_computed_before(client, labels):
    expected = ge.LWEA(4).fit_predict(labels)
    lazy = chunks_of(labels).map_blocks(np.copy)
    lazy.compute()
    for given in (lazy, lazy.persist()):
        est = ge.LWEA(4).fit(given)
        given.sum().compute()
        for _ in range(2):
            same(est.labels_, expected)
        same((est.labels_ + 1).persist(), expected + 1)


def test_what_else_estimators_find(labels):
    for kind, reduction, names in (
        (ge.CrCIa, None, ["meta_clusters_", "membership_"]),
        (ge.CrCIa, ge.Sample(150), ["membership_"]),
        (ge.EAC, None, ["children_", "distances_"]),
        (ge.EAC, ge.CATree(0.3), ["children_", "distances_"]),
    ):
        whole, chunked = (kind(4, reduction=reduction).fit(given) for given in (labels, chunks_of(labels)))
        for name in names:
            np.testing.assert_array_equal(np.asarray(getattr(chunked, name)), getattr(whole, name))
        if kind is ge.EAC:
            same(chunked.reduction_.row_of, whole.reduction_.row_of)
    sampled = ge.EAC(4, reduction=ge.Sample(150)).fit(chunks_of(labels))
    refused(lambda: sampled.children_, AttributeError, "children_", "sample")


def test_what_is_not_in_chunks_or_the_wrong_way_round(labels):
    refused(lambda: in_chunks.plan(labels), TypeError, "Dask array", "ndarray")
    refused(lambda: ge.EAC(2).fit(da.from_array(labels[:300].T)), ValueError, "transposed")


def test_any_reduction_takes_the_core_groups_of_chunks(labels):
    class Own:
        def reduce(self, rows):
            return ge.CATree(0.3).reduce(rows)

    class Nothing:
        def reduce(self, rows):
            return rows

    found = ge.EAC(4, reduction=Own()).fit(chunks_of(labels)).labels_.compute()
    np.testing.assert_array_equal(found, ge.EAC(4, reduction=ge.CATree(0.3)).fit_predict(labels))
    refused(lambda: ge.EAC(2, reduction=Nothing()).fit(chunks_of(labels)), TypeError, "must return a gpuens.Reduction")


def test_intersections_are_counted_chunk_by_chunk(client, labels):
    expected = ge.contingency.intersections(labels)
    np.testing.assert_array_equal(in_chunks.intersections(chunks_of(labels)), expected)
    np.testing.assert_array_equal(in_chunks.intersections(chunks_of(labels), layout="sparse").toarray(), expected)


def test_nothing_of_the_labels_comes_here_but_core_groups(labels, monkeypatch):
    brought = []
    compute = in_chunks.Chunks.compute

    def noted(self, tasks, what):
        found = compute(self, tasks, what)
        brought.append((what, len(found[0].codes) if hasattr(found[0], "codes") else 0))
        return found

    monkeypatch.setattr(in_chunks.Chunks, "compute", noted)
    few = np.tile(labels[:20], (50, 1))
    ge.LWEA(3).fit(chunks_of(few))
    assert max(n for _, n in brought) == len(np.unique(labels[:20], axis=0))


# --- labels computed anywhere -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere():
    """Provide a Dask cluster that has not fitted anything."""
    with threads(1) as cluster:
        yield cluster


def computed_anywhere(made, elsewhere):
    """Compare lazy arrays computed by threads, by another cluster and by another process with those computed here."""
    with distributed.Client(elsewhere, set_as_default=False) as other:
        by_threads = [array.compute(scheduler="threads") for array in made]
        by_cluster = [other.compute(array).result() for array in made]
    code = "import pickle, sys; made = pickle.load(sys.stdin.buffer)"
    code += "; pickle.dump([array.compute() for array in made], sys.stdout.buffer)"
    ran = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(made), capture_output=True, check=True)
    return zip(by_threads, by_cluster, pickle.loads(ran.stdout), strict=True)


def test_labels_are_computed_by_whoever_asks(cluster, elsewhere, labels):
    made = []
    with distributed.Client(cluster):
        for est in (ge.LWEA(4), ge.LWGP(4, reduction="catree"), ge.CrCIa(4, reduction="sample:150"), ge.SCEC(4)):
            est.fit(chunks_of(labels))
            made += [est.labels_, est.membership_] if hasattr(est, "membership_") else [est.labels_]
        expected = [array.compute() for array in made]
    for wanted, found in zip(expected, computed_anywhere(made, elsewhere), strict=True):
        for array in found:
            np.testing.assert_array_equal(array, wanted)


@pytest.mark.thorough
def test_labels_by_a_rule_and_of_features_are_too(cluster, elsewhere, labels, in_pieces):
    X = np.random.default_rng(0).normal(size=(700, 8))
    with distributed.Client(cluster):
        est = ge.LWGP(4).fit(chunks_of(labels))
        assert isinstance(est.reduction_, in_chunks.ScatteredReduction)
        made = est.labels_, ge.generate.kmeans_ensemble(da.from_array(X, chunks=(150, 8)), 5, (2, 9), objects=200)
        expected = [array.compute() for array in made]
    for wanted, found in zip(expected, computed_anywhere(made, elsewhere), strict=True):
        for array in found:
            np.testing.assert_array_equal(array, wanted)


def test_estimators_do_without_the_client_that_fitted_them(cluster, labels):
    with distributed.Client(cluster):
        est = ge.EAC(4, reduction=ge.CATree(0.3)).fit(chunks_of(labels))
    whole = ge.EAC(4, reduction=ge.CATree(0.3)).fit(labels)
    for found in (est, pickle.loads(pickle.dumps(est))):
        same(found.labels_, whole.labels_)
        np.testing.assert_array_equal(found.children_, whole.children_)
        same(found.reduction_.row_of, whole.reduction_.row_of)


def test_what_all_chunks_need_is_sent_once(client, labels, tmp_path):
    est = ge.LWEA(4).fit(chunks_of(labels, 50))
    in_chunks.write_labels(tmp_path / "out.npy", est.labels_)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), ge.LWEA(4).fit_predict(labels))
    for block in graph.split_chunks(est.labels_, client):
        values = [value for key, value in block.__dask_graph__().items() if str(key).startswith("gpuens-value")]
        assert len(values) >= 2
        assert all(isinstance(value, distributed.Future) for value in values)


# --- core groups spread over processes --------------------------------------------------------------------------------


IN_PIECES = [
    "cgc", "crc-ia", "ecc", "ecpcs-mc", "em", "gp-mgla", "hbgf", "kcc", "lwgp", "mcla", "pd", "qmi", "sec",
    "voting",
]  # fmt: skip


@pytest.mark.parametrize("dense_up_to", [2000, 0])
def test_pieces_support_the_number_of_clusters_of_the_whole(dense_up_to, in_pieces, sizes):
    sizes("partition.transfer_cut", DENSE_UP_TO=dense_up_to, DENSE_IN_MEMORY_UP_TO=dense_up_to)
    clear = structured_labels(3000, 8, 4, noise=0.1, missing=0.02, seed=5)[0]
    whole, pieces = ge.LWGP().fit(clear), ge.LWGP().fit(chunks_of(clear, 137))
    assert isinstance(pieces.reduction_, in_chunks.ScatteredReduction)
    assert (whole.n_clusters_, pieces.n_clusters_) == (4, 4)
    np.testing.assert_allclose(pieces.suggestion_.score, whole.suggestion_.score, atol=1e-4)


STEPS = ("crc-ia", "em", "kcc", "lwgp")  # these methods use a coupling, memberships, means and a transfer cut


def fitted(method, labels, k=4, **settings):
    est = ge.methods()[method](k, **settings).fit(labels)
    return est, est.labels_.compute() if hasattr(est.labels_, "compute") else est.labels_


@pytest.mark.parametrize("method", IN_PIECES)
def test_pieces_give_the_labels_of_the_whole(method, labels, in_pieces):
    """The classes are clear, so that the random restarts of k-means all find them."""
    clear = structured_labels(3000, 8, 4, noise=0.1, missing=0.02, seed=5)[0]
    for size in (137, 3000):
        est, found = fitted(method, chunks_of(clear, size))
        assert isinstance(est.reduction_, in_chunks.ScatteredReduction) == (size < 3000)
        whole, expected = fitted(method, clear)
        np.testing.assert_array_equal(found, expected)
        assert est.labels_.dtype == expected.dtype
        assert (est.n_clusters_, est.n_features_in_) == (whole.n_clusters_, whole.n_features_in_)


# all other methods use the same steps
@pytest.mark.parametrize("method", [*STEPS, *conftest.thorough(*(name for name in IN_PIECES if name not in STEPS))])
def test_pieces_on_workers_are_those_in_threads(method, labels, client, in_pieces):
    _, by_workers = fitted(method, chunks_of(labels))
    np.testing.assert_array_equal(by_workers, fitted_in_threads(ge.methods()[method](4), labels))


def fitted_in_threads(est, labels):
    before = clients.active
    clients.active = lambda client: None
    try:
        return est.fit(chunks_of(labels)).labels_.compute(scheduler="threads")
    finally:
        clients.active = before


def test_what_is_learned_of_pieces_is_what_one_piece_says(labels, in_pieces):
    for method, name in [("lwgp", "eci_"), ("cgc", "coupling_"), ("crc-ia", "coupling_"), ("crc-ia", "meta_clusters_"),
                         ("crc-ia", "membership_")]:  # fmt: skip
        found, expected = (getattr(fitted(method, given)[0], name) for given in (chunks_of(labels), labels))
        for mine, theirs in zip(np.asarray(found) if name == "membership_" else found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("size", [137, 20])
def test_the_objective_in_pieces_is_that_of_the_labels(labels, size, in_pieces):
    """Every object is in the cluster with the nearest mean, so the result is a fixed point of Lloyd's iterations."""
    noise = random_labels(700, 5, (2, 6), missing=0.1, distinct=400, seed=1)
    for given, k in ((labels, 4), (noise, 9)):
        est, found = fitted("cgc", chunks_of(given, size), k)
        ensemble = ge.Ensemble(list(given.T))
        tables = [matrix - matrix.mean(axis=0) for matrix in est.coupling_]
        X = np.column_stack([np.vstack([t, 0 * t[:1]])[c] for t, c in zip(tables, columns(ensemble), strict=True)])
        means = np.array([X[found == label].mean(axis=0) for label in range(k)])
        distances = ((X[:, None] - means) ** 2).sum(axis=2)
        np.testing.assert_allclose(est.objective_, distances[np.arange(len(X)), found].sum(), rtol=1e-9)
        assert est.converged_
        assert (distances[np.arange(len(X)), found] <= distances.min(axis=1) + 1e-9).all()
        assert est.objective_ <= 1.02 * ge.CgC(k).fit(given).objective_


def test_the_mirkin_distance_in_pieces_is_that_of_the_labels(labels, in_pieces):
    noise = random_labels(700, 5, (2, 6), missing=0.1, distinct=400, seed=1)
    for given, k in ((labels, 4), (noise, 9)):
        est, found = fitted("pd", chunks_of(given), k)
        assert est.objective_ == pytest.approx(mirkin(given, found))
        assert est.converged_
        assert est.objective_ <= mirkin(given, ge.QMI(k).fit_predict(given))
        if given is labels:
            assert est.objective_ == ge.PD(k).fit(given).objective_


def mirkin(labels, found):
    held = [(labels[found == r] == c).sum(axis=0) for r in set(found) for c in range(labels.max() + 1)]
    return float((np.bincount(found) ** 2).sum() - 2 / labels.shape[1] * (np.array(held) ** 2).sum())


def columns(ensemble):
    codes = ensemble.to_array()
    return [np.where(column < 0, -1, column) for column in codes.T]


def test_the_transfer_cut_in_pieces_is_as_good(labels, in_pieces, sizes):
    noise = random_labels(700, 5, (2, 6), missing=0.1, distinct=400, seed=1)
    for dense_up_to in (2000, 0):  # 2000: dense eigenvectors; 0: Lanczos's method, with sums over the pieces
        sizes("partition.transfer_cut", DENSE_UP_TO=dense_up_to, DENSE_IN_MEMORY_UP_TO=dense_up_to)
        for given in (labels, noise):
            rows = ge.Rows(list(given.T))
            ones = np.ones(rows.n_clusters)
            points, _ = embedding(rows, ones, 4)

            def inertia(found, points=points):
                return sum(((points[found == c] - points[found == c].mean(axis=0)) ** 2).sum() for c in set(found))

            _, found = fitted("hbgf", chunks_of(given))
            assert inertia(found) <= 1.02 * inertia(transfer_cut(rows, ones, 4).labels)


def test_clusters_that_no_draw_has_seen_begin_at_the_farthest_rows(in_pieces, sizes):
    sizes("partition.label_kmeans", RESTARTS_ON=5)
    few = random_labels(900, 3, (3, 5), distinct=12, seed=2)
    n_rows = len(np.unique(few, axis=0))
    for k in (7, n_rows):
        est, found = fitted("cgc", chunks_of(few, 100), k)
        assert len(np.unique(found)) == est.n_clusters_ == k
        np.testing.assert_array_equal(found, oracles.by_size(found))
    assert est.objective_ == pytest.approx(0, abs=1e-9)
    with pytest.warns(UserWarning, match=f"found only {n_rows} of {n_rows + 1} clusters"):
        fitted("cgc", chunks_of(few, 100), n_rows + 1)


@pytest.mark.parametrize(("method", "module"), [("hbgf", "partition.transfer_cut"), ("pd", "partition.mirkin")])
def test_more_clusters_than_objects_drawn_at_first(method, module, in_pieces, sizes):
    sizes(module, RESTARTS_ON=20)
    noise = random_labels(700, 5, (2, 6), distinct=400, seed=1)
    for k in (4, 60):
        est, found = fitted(method, chunks_of(noise), k)
        assert len(np.unique(found)) == est.n_clusters_
        assert est.n_clusters_ > 0.6 * k  # PD moves all rows at the same time, so that clusters can become empty
    few = np.concatenate([np.zeros((9000, 5), dtype=int), noise])
    refused(
        lambda: fitted(method, chunks_of(few, 1000), 100), ValueError, "n_clusters=100, but rows in pieces",
        "distinct label rows; ask for fewer clusters",
    )  # fmt: skip


@pytest.fixture
def task_bytes(monkeypatch):
    """Return a function that sets the memory budget of a worker's task, in bytes."""
    return lambda budget: monkeypatch.setattr(in_chunks.Chunks, "_worker_budget", lambda self: budget)


@pytest.mark.parametrize("budget", [60_000, *conftest.thorough(0, 10**9)])
def test_how_far_merging_went_changes_nothing(labels, task_bytes, budget, in_pieces):
    task_bytes(budget)
    chunks = in_chunks.Chunks(chunks_of(labels, 20))
    chunks._merge()
    assert len(chunks.merged) == {0: 50, 60_000: 2, 10**9: 1}[budget]
    assert max(chunks.merged_sizes) <= max(20, budget // (3 * 46))
    for pieces in (chunks.pieces, chunks.merged):
        assert sum(piece.counts.sum() for piece in chunks.compute(pieces, "pieces")) == len(labels)
    est, found = fitted("hbgf", chunks_of(labels, 20))
    task_bytes(0)
    np.testing.assert_array_equal(found, fitted("hbgf", chunks_of(labels, 20))[1])
    assert len(est.reduction_.chunks.sizes) == 50


@pytest.mark.parametrize("n_threads", ["1", "16"])
def test_groups_that_fit_come_together_whatever_a_task_may_take(labels, task_bytes, monkeypatch, n_threads):
    monkeypatch.setenv("GPUENS_THREADS", n_threads)
    task_bytes(0)
    for reduction in (None, "core-groups", ge.CATree(0.3)):
        whole, chunked = (ge.EAC(4, reduction=reduction).fit(given) for given in (labels, chunks_of(labels)))
        same(chunked.labels_, whole.labels_)
        np.testing.assert_array_equal(chunked.reduction_.counts, whole.reduction_.counts)


def test_rows_that_lie_between_two_centers_have_one_answer():
    rng = np.random.default_rng(0)
    rows = ge.Rows(rng.integers(0, 4, (300, 5)), device="cpu")
    table = rng.integers(-2, 3, (20, 3)) / 4
    centers = np.vstack([[1, 1, 0], [1, 0, 1], [0, 1, 1]]) / 2
    rule = transfer_cut_module().NearestCenter.of_centers(centers, table)
    together = rule(rows)
    alone = [rule(rows.take(np.array([i])))[0] for i in range(300)]
    np.testing.assert_array_equal(together, alone)


def transfer_cut_module():
    return sys.modules[transfer_cut.__module__]


@pytest.fixture
def few_clusters():
    """Return labels of 1,000 objects.

    The eigenvectors of their 24 clusters fit in 25 kB; their distinct rows do not.
    """
    return structured_labels(1000, 6, 3, noise=0.3, missing=0.05, seed=3)[0]


def test_threads_do_again_what_they_cannot_hold(few_clusters, monkeypatch, request):
    made, passes, found = [], [], []
    part = worker.reduce_chunk
    monkeypatch.setattr(worker, "reduce_chunk", lambda *args: made.append(1) or part(*args))
    monkeypatch.setenv("GPUENS_MEMORY", "25kB")
    est, found_in_pieces = fitted("hbgf", chunks_of(few_clusters))
    assert isinstance(est.reduction_, in_chunks.ScatteredReduction)
    assert found_in_pieces.max() == 3
    request.getfixturevalue("in_pieces")
    for budget in ("1GB", "25kB"):
        monkeypatch.setenv("GPUENS_MEMORY", budget)
        made.clear()
        found.append(fitted("hbgf", chunks_of(few_clusters))[1])
        passes.append(len(made) // 8)
    np.testing.assert_array_equal(*found)
    assert passes[0] == 1
    assert passes[1] > 1


# --- chunks on GPUs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["cgc", "crc-ia", "lwea", "lwgp"])
@pytest.mark.parametrize("reduction", [None, "sample:150"])
def test_chunks_on_gpus(fake_cupy, labels, method, reduction):
    """Threads share the memory of this process, which is GPU memory for the stand-in of CuPy."""
    expected = ge.methods()[method](4, reduction=reduction).fit_predict(labels)
    same_on_gpus(ge.methods()[method](4, reduction=reduction), labels, expected, fake_cupy.ndarray)


def same_on_gpus(est, labels, expected, kind):
    """Fit chunks on GPUs, and compare their labels, arrays of the given kind."""
    est.fit(on_each_gpu(labels))
    blocks = [block.compute(scheduler="sync") for block in est.labels_.to_delayed().ravel()]
    assert all(isinstance(block, kind) for block in blocks)
    np.testing.assert_array_equal(np.concatenate([block.get() for block in blocks]), expected)


def test_gpus_work_where_chunks_are_theirs(fake_cupy, labels):
    """The default device="auto" puts core groups, merges, the fit and look-ups on the GPU that holds the labels."""
    with emulator.recorded() as launches:
        ge.EAC(4).fit(on_each_gpu(labels)).labels_.compute(scheduler="sync")
    assert {"pack_rows", "nearest_rows", "find_rows"} <= {launch.kernel for launch in launches}


def test_chunks_are_merged_by_the_processor_where_a_gpu_has_no_room(fake_cupy, labels, monkeypatch):
    """Workers plan merges by the memory of their host, so that a GPU may have too little memory for a merge."""
    core_groups, refusals = worker.core_groups, []

    def of_few(rows):
        if rows.device != "cpu" and len(rows) > 300:
            refusals.append(len(rows))
            raise MemoryError("Out of memory allocating …")
        return core_groups(rows)

    monkeypatch.setattr(worker, "core_groups", of_few)
    same_on_gpus(ge.EAC(4), labels, ge.EAC(4).fit_predict(labels), fake_cupy.ndarray)
    assert refusals


def test_chunks_that_no_gpu_could_take_are_refused(fake_cupy, labels):
    mixed = da.concatenate([chunks_of(labels, 300), on_each_gpu(labels)])
    refused(lambda: ge.EAC(4).fit(mixed), TypeError, "chunk", "GPU memory", "host memory")
    fake_cupy.reset(56_000)  # a chunk takes 48,000 of these bytes
    chunks = on_each_gpu(labels, len(labels))
    refused(lambda: ge.EAC(4).fit(chunks), OutOfGPUMemory, "chunk", "does not fit the GPU", "smaller chunks")


KMEANS = [{}, {"features": 0.5}, {"projection": 3, "algorithm": "minibatch"}, {"features": 0.5, "algorithm": "nested"}]


@pytest.mark.parametrize("method", ["cgc", "lwgp"])
def test_pieces_on_gpus(fake_cupy, labels, method, in_pieces):
    expected = ge.methods()[method](4).fit(chunks_of(labels, 300)).labels_.compute()
    est = ge.methods()[method](4, device="cuda").fit(chunks_of(labels, 300))
    same(est.labels_, expected)


def test_rows_on_a_gpu_may_be_sent_to_another(fake_cupy, labels):
    """CuPy pickles arrays in C order, but kernels read columns."""
    chunks = in_chunks.Chunks(on_each_gpu(labels))
    chunks._merge()
    (piece,) = chunks.compute(chunks.pieces[:1], "pieces")
    sent = pickle.loads(pickle.dumps(worker.on_gpu(piece)))
    assert isinstance(sent.codes, fake_cupy.ndarray)
    for given in (piece, sent):
        sizes = worker.apply_to_piece(ge.Rows.cluster_sizes, "cuda", given, chunks.bare())
        assert sizes.sum() == (labels[:300] >= 0).sum()


def test_core_groups_that_fit_no_gpu_stay_in_pieces(fake_cupy, few_clusters):
    given = in_chunks.on_gpus(chunks_of(few_clusters, 100))
    found = []
    for limit, device in [(10**9, "auto"), (100_000, "auto"), (100_000, "cpu")]:
        fake_cupy.reset(limit)
        with dask.config.set(num_workers=1):  # other threads would take memory of the same GPU
            est = ge.LWGP(3, device=device).fit(given)
        found.append(isinstance(est.reduction_, in_chunks.ScatteredReduction))
    assert found == [False, True, False]


@pytest.mark.gpu
@pytest.mark.parametrize("here", [True, False])
def test_a_worker_with_a_gpu(labels, here, monkeypatch):
    """Dask moves arrays of CuPy between processes by packages of RAPIDS, so this test has a single worker process."""
    with processes(1) as cluster, distributed.Client(cluster):
        if not here:  # the client has no GPU
            if "gpu_stack" not in sys.modules:
                pytest.skip("takes the GPU away: make check-gpu")
            monkeypatch.setenv("GPU_STACK_DEVICES", "0")
        for est in [ge.EAC(4)] if here else [ge.EAC(4, reduction="sample:150"), ge.LWGP(4)]:
            expected = est.fit(labels).labels_
            est.fit(on_each_gpu(labels))
            assert isinstance(est.fit_.partition.labels, np.ndarray)
            found = est.labels_.map_blocks(devices.to_host, dtype=np.int64, meta=np.empty(0, dtype=np.int64)).compute()
            np.testing.assert_array_equal(found, expected)
        assert est.reduction_.rows.device == ("cuda" if here else "cpu")


@pytest.mark.parametrize("method", ["eac", "lwgp"])
def test_a_partition_that_a_worker_finds(method, labels, fake_cupy, monkeypatch):
    """The partition's labels are in host memory, and its results are those of a fit here."""
    fitting = sys.modules["gpuens.distributed.fitting"]
    chunks, est = in_chunks.Chunks(in_chunks.on_gpus(chunks_of(labels[:200], 100))), ge.methods()[method](4)
    monkeypatch.setattr(chunks, "somewhere", graph.embed)
    partition, _, results = fitting._learn_there(est, chunks, est.checked_parts(), chunks.groups.rows)
    assert isinstance(partition.labels, np.ndarray)
    expected = ge.methods()[method](4).fit(labels[:200])
    np.testing.assert_array_equal(oracles.by_size(partition.labels[expected.reduction_.row_of]), expected.labels_)
    assert partition.n_clusters == expected.n_clusters_
    assert (results | partition.results).keys() == expected.fit_.results.keys()


# --- base clusterings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", KMEANS, ids=str)
def test_clusterings_made_by_workers_are_those_made_here(client, settings):
    X = np.random.default_rng(0).normal(size=(700, 8))
    given = {"n_clusterings": 5, "n_clusters": (2, 9), "random_state": 3, **settings}
    for objects in (1.0, 200):
        expected, found = (ge.generate.kmeans_ensemble(X, objects=objects, client=by, **given) for by in (None, client))
        np.testing.assert_array_equal(found.codes, expected.codes)
    chunks = ge.generate.kmeans_ensemble(da.from_array(X, chunks=(150, 5)), objects=200, **given)
    assert chunks.chunks == ((150, 150, 150, 150, 100), (5,))
    np.testing.assert_array_equal(ge.Ensemble(chunks.compute()).codes, expected.codes)
    same(ge.LWEA(3).fit(chunks).labels_, ge.LWEA(3).fit_predict(expected))


def test_features_of_wide_integers_are_alike_in_all_chunks():
    X = np.random.default_rng(0).integers(0, 100, (400, 4))
    for largest in (99, 2**25):
        X[-1] = largest
        found = ge.generate.kmeans_ensemble(da.from_array(X, chunks=(150, 4)), 3, 5, objects=100).compute()
        np.testing.assert_array_equal(ge.Ensemble(found).codes, ge.generate.kmeans_ensemble(X, 3, 5, objects=100).codes)


@pytest.mark.parametrize("power", [-1000, 900])
def test_the_size_of_features_in_chunks_changes_no_label(power):
    X = np.random.default_rng(0).normal(size=(400, 4))
    X[:150] /= 2**20  # only the first chunk differs
    large = da.from_array(X * 2.0**power, chunks=(150, 4))
    for algorithm in ("full", "minibatch", "nested"):
        given = {"n_clusterings": 3, "n_clusters": 5, "objects": 100, "algorithm": algorithm}
        expected = ge.generate.kmeans_ensemble(da.from_array(X, chunks=(150, 4)), **given).compute()
        same(ge.generate.kmeans_ensemble(large, **given), expected)
    expected = ge.generate.landmark_ensemble(da.from_array(X, chunks=(150, 4)), **LANDMARKS).compute()
    same(ge.generate.landmark_ensemble(large, **LANDMARKS), expected)


LANDMARKS = {"n_clusterings": 3, "n_clusters": (2, 9), "n_landmarks": 50}


def test_landmark_clusterings_by_workers_are_those_made_here(client, tmp_path):
    X = np.random.default_rng(0).normal(size=(700, 8))
    expected = ge.generate.landmark_ensemble(X, **LANDMARKS)
    for kept in ({}, {"resume": tmp_path}, {"resume": tmp_path}, {"resume": tmp_path}):
        found = ge.generate.landmark_ensemble(X, **LANDMARKS, client=client, **kept)
        np.testing.assert_array_equal(found.codes, expected.codes)
        if kept:
            (tmp_path / "landmarks_1.npz").unlink()


def test_chunks_tied_to_landmarks_by_workers_and_by_threads(cluster, tmp_path):
    X = da.from_array(np.random.default_rng(0).normal(size=(700, 8)), chunks=(150, 5))
    labels = ge.generate.landmark_ensemble(X, **LANDMARKS).compute()
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        found = ge.generate.landmark_ensemble(X, **LANDMARKS)
        assert freed(client, ["gpuens-labels"]) == {"gpuens-labels"}
        same(found, labels)
        same(ge.HBGF(3).fit(found).labels_, ge.HBGF(3).fit_predict(labels))
        for _ in range(2):
            same(ge.generate.landmark_ensemble(X, **LANDMARKS, resume=tmp_path), labels)


@pytest.mark.parametrize("named", [*conftest.thorough(False), True])
def test_features_in_chunks_become_a_consensus_on_the_workers(cluster, named, tmp_path):
    X = np.random.default_rng(0).normal(size=(700, 8)) + 9 * (np.arange(700) % 3)[:, None]
    whole = ge.cluster(X, 3, n_clusterings=3)
    in_threads = ge.cluster(da.from_array(X, chunks=(150, 5)), 3, n_clusterings=3)
    with distributed.Client(cluster, set_as_default=not named) as client:
        client.wait_for_workers(2)
        made = da.from_array(X, chunks=(150, 5))
        if named:
            made = client.persist(made)  # this client holds the chunks, so that no other client can compute them
        for _ in range(2):
            found = ge.cluster(made, 3, n_clusterings=3, resume=tmp_path, client=client if named else None)
            assert found.labels_.chunks == ((150, 150, 150, 150, 100),)
            base, consensus = client.gather(client.compute([found.ensemble_, found.labels_]))
            np.testing.assert_array_equal(base, in_threads.ensemble_.compute(scheduler="threads"))
            assert ge.metrics.nmi(consensus, whole.labels_) > 0.99
        kmeans = ge.cluster(X, 3, kind="kmeans", n_clusterings=3, client=client)
        np.testing.assert_array_equal(kmeans.labels_, ge.cluster(X, 3, kind="kmeans", n_clusterings=3).labels_)


def test_features_in_chunks_need_a_number_of_objects():
    X = da.from_array(np.eye(20), chunks=5)
    refused(lambda: ge.generate.kmeans_ensemble(X, 5, 2, objects=9, names=list("abcde")), ValueError, "leave names out")
    refused(lambda: ge.generate.kmeans_ensemble(X, 5, 2, objects=9, device="cuda"), ValueError, "device='cuda'")
    refused(lambda: ge.generate.kmeans_ensemble(X, 5, 2), ValueError, "objects=")


@pytest.mark.parametrize("reduction", [None, "sample:150"])
def test_core_groups_of_chunks_are_let_go_when_they_are_merged(client, labels, reduction):
    est = ge.LWGP(4, reduction=reduction).fit(chunks_of(labels))
    assert freed(client) == set()
    same(est.labels_, ge.LWGP(4, reduction=reduction).fit_predict(labels))


# --- files and the command line ---------------------------------------------------------------------------------------


def test_files_are_read_and_written_in_chunks(tmp_path, labels, client):
    np.save(tmp_path / "labels.npy", labels)
    read = in_chunks.read_labels(tmp_path / "labels.npy", chunk_rows=300)
    assert read.chunks == ((300, 300, 300, 100), (6,))
    same(read, labels)
    est = ge.LWEA(4).fit(read)
    expected = ge.LWEA(4).fit_predict(labels)
    for client_or_none in (client, None):
        counts = in_chunks.write_labels(tmp_path / "out.npy", est.labels_, client=client_or_none)
        np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
        np.testing.assert_array_equal(counts, np.bincount(expected))
    in_chunks.write_labels(tmp_path / "out.csv", est.labels_)
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == [str(label) for label in expected]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.npy", "out.csv", "out.npy"]


def test_a_chunk_is_asked_for_without_the_tasks_of_all_others(labels):
    est = ge.LWEA(4).fit(chunks_of(labels, 10))
    assert max(len(block.__dask_graph__()) for block in graph.split_chunks(est.labels_)) < 10


def test_damaged_files_and_missing_packages_are_one_sentence(tmp_path, monkeypatch):
    for name in ("labels.zarr", "labels.parquet"):
        (tmp_path / name).write_text("nothing")
        refused(lambda name=name: in_chunks.read_labels(tmp_path / name), ValueError, name)
        monkeypatch.setitem(sys.modules, "zarr", None)
        monkeypatch.setitem(sys.modules, "dask.dataframe", None)
        refused(lambda name=name: in_chunks.read_labels(tmp_path / name), ImportError, "not installed")
        monkeypatch.undo()


def test_without_dask_its_extra_is_named(tmp_path, monkeypatch, capsys, labels):
    np.save(tmp_path / "labels.npy", labels)
    for name in list(sys.modules):
        if name.split(".")[0] in ("dask", "distributed"):
            monkeypatch.delitem(sys.modules, name)
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    for where in ("local", "threads", "tcp://127.0.0.1:9"):
        line = f"run {tmp_path}/labels.npy -k 4 --scheduler {where}"
        assert main(line.split()) == 2
        assert capsys.readouterr().err == (
            f"gpuens: work in chunks needs Dask, which is not installed: {installing.command('dask')}.\n"
        )


def fails(block, block_info=None):
    if block_info and block_info[0]["chunk-location"][0] == 2:
        raise ValueError("no more.")
    return np.maximum(block, 0)


def test_nothing_is_left_of_a_file_that_fails(tmp_path, labels):
    lazy = chunks_of(labels)[:, 0].map_blocks(fails, dtype=labels.dtype, meta=labels[:0, 0])
    with pytest.raises(ValueError, match="no more"):
        in_chunks.write_labels(tmp_path / "out.npy", lazy)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["threads", "local --workers 1", "ADDRESS"])
def test_the_command_line(tmp_path, monkeypatch, labels, where, cluster, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", labels)
    scheduler = where.replace("ADDRESS", cluster.scheduler_address)
    command = f"run labels.npy --method lwgp -k 4 -o out.npy --chunk-rows 300 --scheduler {scheduler}"
    assert main(command.split()) == 0
    np.testing.assert_array_equal(np.load("out.npy"), ge.LWGP(4).fit_predict(labels))
    assert capsys.readouterr().out.startswith("plan: 1,000 objects in 4 chunks; ")


@pytest.mark.parametrize("where", [*conftest.thorough("local --workers 1"), "ADDRESS"])
def test_the_command_line_clusters_features_on_workers(tmp_path, monkeypatch, where, cluster):
    monkeypatch.chdir(tmp_path)
    features = np.random.default_rng(0).normal(size=(700, 8)) + 9 * (np.arange(700) % 3)[:, None]
    np.save("X.npy", features)
    command = "cluster X.npy -k 3 --n-clusterings 3 --chunk-rows 150 --quiet"
    scheduler = where.replace("ADDRESS", cluster.scheduler_address)
    assert main(f"{command} -o out.npy --scheduler {scheduler}".split()) == 0
    found = ge.cluster(da.from_array(features, chunks=(150, 8)), 3, n_clusterings=3).labels_
    np.testing.assert_array_equal(np.load("out.npy"), found.compute(scheduler="threads"))


def test_zarr_is_read_in_chunks_without_being_told_so(tmp_path, monkeypatch, labels, capsys):
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    zarr.save_array("labels.zarr", labels)
    for path in ("labels.zarr", "labels.zarr/"):  # shells complete a folder's name with a slash
        assert main(["run", path, "--method", "lwgp", "-k", "4"]) == 0
        assert capsys.readouterr().out.startswith("plan: 1,000 objects in 1 chunks; ")
        np.testing.assert_array_equal(np.load("labels.zarr.lwgp.npy"), ge.LWGP(4).fit_predict(labels))
        os.remove("labels.zarr.lwgp.npy")


def test_the_command_line_refuses(tmp_path, monkeypatch, sizes, capsys, labels):
    monkeypatch.chdir(tmp_path)
    sizes("distributed.clients", TIMEOUT=2)
    np.save("labels.npy", labels)
    for more, said in [
        ("--scheduler local --workers 0", "workers must be from 1 to 1024"),
        ("--workers 2", "--workers=2 is for a cluster of this machine"),
        ("--scheduler threads --workers 2", "--workers=2 is for a cluster of this machine"),
        ("--scheduler threads --chunk-rows 0", "chunk_rows must be at least 1"),
        ("--chunk-rows 5", "--chunk-rows=5 is for work in chunks: add --scheduler, or leave it out."),
        ("--scheduler threads --no-header", "--no-header is for files that are read in one piece"),
        ("--scheduler cuda", "needs dask-cuda"),
        ("--scheduler tcp://127.0.0.1:9", "no Dask scheduler answered at 'tcp://127.0.0.1:9'"),
        ("--scheduler nowhere:x", "not 'nowhere:x'"),
        ("--scheduler threads --key a", "--key is for files that are read in one piece"),
    ]:
        assert main(f"run labels.npy -k 4 -o out.npy {more}".split()) != 0
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out.npy").exists()


def test_a_plan_says_what_will_be_held(labels, monkeypatch):
    plan = in_chunks.plan(chunks_of(labels, 500), ge.OCH(4))
    half = len(np.unique(labels[:500], axis=0)), len(np.unique(labels[:250], axis=0))
    assert (plan.n_objects, plan.n_chunks, plan.pilot_objects, plan.pilot_groups) == (1000, 2, 500, half[0])
    assert plan.expected_groups == int(np.ceil(half[0] * 2 ** min(1, np.log2(half[0] / half[1]))))
    assert plan.suggestion is None
    monkeypatch.setenv("GPUENS_MEMORY", "100kB")
    assert "--reduce sample:" in str(in_chunks.plan(chunks_of(labels, 500), ge.OCH(4)))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
@pytest.mark.parametrize("n_distinct", [50, 20_000])
def test_a_plan_says_what_a_chunk_takes_of_a_gpu(fake_cupy, dtype, n_distinct):
    """The stand-in counts everything but the buffer of a sort; the larger of two steps hides that."""
    rows = structured_labels(n_distinct, 20, 4, noise=0.2, seed=1)[0]
    given = rows[np.arange(20_000) % n_distinct].astype(dtype)
    plan = in_chunks.plan(in_chunks.on_gpus(chunks_of(given, 10_000)))
    assert plan.chunk_rows is None
    block = fake_cupy.asarray(given[:10_000])
    fake_cupy.memory.most = 0
    worker.reduce_chunk(block, 0)
    tables = 20 * (10_000 + 1024) // 4  # bits of labels and their ranks
    assert (
        0.8 * plan.bytes_on_gpu < fake_cupy.memory.most <= plan.bytes_on_gpu + tables + 4096
    )  # rounded up to 512 each


def test_a_plan_says_how_many_objects_fit_a_gpu(fake_cupy):
    given = structured_labels(20_000, 20, 4, noise=0.2, seed=1)[0].astype(np.uint8)
    fake_cupy.reset(1_000_000)
    plan = in_chunks.plan(in_chunks.on_gpus(chunks_of(given, 20_000)))
    assert 3_000 < plan.chunk_rows < 10_000
    assert plan.pilot_objects == plan.chunk_rows
    assert f" of a GPU and does not fit; --chunk-rows {plan.chunk_rows} would" in str(plan)
    with dask.config.set(num_workers=1):  # other threads would take memory of the same GPU
        in_chunks.Chunks(in_chunks.on_gpus(chunks_of(given, plan.chunk_rows)))
    refused(lambda: ge.LWGP(4).fit(in_chunks.on_gpus(chunks_of(given, 20_000))), OutOfGPUMemory, "smaller chunks")
    fake_cupy.reset(100_000)
    refused(lambda: in_chunks.plan(in_chunks.on_gpus(chunks_of(given, 20_000))), OutOfGPUMemory, "a chunk", "smaller")


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_chunk_that_is_refused_is_named(client, labels):
    wrong = labels.astype(float)
    wrong[500, 2] = 0.5
    refused(lambda: ge.EAC(3).fit(chunks_of(wrong)), ValueError, "chunk 3 (objects 411 … 547)", "whole numbers")
    nothing = labels.copy()
    nothing[700] = -1
    refused(lambda: ge.EAC(3).fit(chunks_of(nothing)), ValueError, "chunk 5", "object 700")


WRONG = {
    "fewer rows": (lambda block: block[:-7], ValueError, "has shape (130, 6)"),
    "more rows": (lambda block: np.vstack([block, block[:1]]), ValueError, "has shape (138, 6)"),
    "fewer columns": (lambda block: block[:, 1:], ValueError, "has shape (137, 5)"),
    "one column": (lambda block: block[:, 0], ValueError, "has shape (137,)"),
    "nothing": (lambda block: None, TypeError, "is NoneType"),
    "a list": (lambda block: block.tolist(), TypeError, "is list"),
}


def spoilt(block, how, chunk=2, block_info=None):
    """Return a block; the block of one chunk is spoilt, so that it differs from the declaration of the array."""
    return WRONG[how][0](block) if block_info[0]["chunk-location"][0] == chunk else block


def one_spoilt(labels, how, chunk=2):
    whole = chunks_of(labels)
    return whole.map_blocks(spoilt, how, chunk, dtype=whole.dtype, meta=labels[:0])


@pytest.mark.parametrize("how", WRONG)
def test_chunks_that_are_not_as_declared_are_named(labels, how):
    _, kind, said = WRONG[how]
    given = one_spoilt(labels, how)
    found = "chunk 2 (objects 274 … 410)", said, "where the Dask array says (137, 6)"
    for reduction in REDUCTIONS:
        refused(lambda reduction=reduction: ge.EAC(3, reduction=reduction).fit(given), kind, "labels", *found)
    refused(lambda: in_chunks.intersections(given), kind, *found)
    refused(lambda: ge.Ensemble(given), kind, *found)
    refused(lambda: ge.SCEC(3).fit(given), kind, *found)
    refused(lambda: in_chunks.plan(one_spoilt(labels, how, 0)), kind, "chunk 0 (objects 0 … 136)")
    for X in (given, one_spoilt(labels.astype(float), how)):
        refused(lambda X=X: ge.generate.kmeans_ensemble(X, 3, 4, objects=100).compute(), kind, "X", *found)
    unknown = chunks_of(labels)[da.from_array(np.ones(1000, dtype=bool), chunks=137)]
    unknown = unknown.map_blocks(spoilt, how, dtype=labels.dtype, meta=labels[:0])
    if "rows" in how:  # chunks of unknown size may have any number of rows
        assert len(ge.EAC(3).fit(unknown).labels_.compute()) == 1000 + {"fewer rows": -7, "more rows": 1}[how]
    else:
        refused(lambda: ge.EAC(3).fit(unknown), kind, "chunk 2 ", said, "(nan, 6)")


@pytest.mark.parametrize("name", ["out.npy", "out.csv"])
def test_chunks_that_are_not_as_declared_are_not_written(labels, name, tmp_path):
    whole = chunks_of(np.maximum(labels, 0))[:, 0]
    for how, kind in [("fewer rows", ValueError), ("nothing", TypeError)]:
        given = whole.map_blocks(spoilt, how, dtype=whole.dtype, meta=labels[:0, 0])
        refused(lambda given=given: in_chunks.write_labels(tmp_path / name, given), kind, "chunk 2 ", "(137,)")
    assert list(tmp_path.iterdir()) == []


def test_chunks_that_workers_make_wrongly_are_named(client, labels):
    found = "chunk 2 (objects 274 … 410)", "(130, 6)"
    given = one_spoilt(labels, "fewer rows")
    refused(lambda: ge.LWEA(3).fit(given), ValueError, *found)
    refused(lambda: ge.LWEA(3).fit(given.persist()), ValueError, *found)
    refused(lambda: in_chunks.plan(one_spoilt(labels, "nothing", 0)), TypeError, "chunk 0")
    apart = chunks_of(labels).rechunk({1: 2}).map_blocks(spoilt, "fewer rows", dtype=labels.dtype, meta=labels[:0])
    refused(lambda: ge.LWEA(3).fit(apart), ValueError, "chunk 2 (objects 274 … 410)", "(130, 2)")


def test_what_no_chunk_could_make_right_is_refused_first(labels):
    refused(lambda: ge.EAC(3).fit(da.zeros(5, dtype=int)), ValueError, "labels must be 2-D")
    refused(lambda: ge.LWGP(0).fit(chunks_of(labels)), ValueError, "n_clusters")
    refused(lambda: ge.EAC(3, reduction="halves").fit(chunks_of(labels)), ValueError, "reduction")


def test_core_groups_beyond_the_budget_are_refused(labels, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "20kB")
    refused(lambda: ge.EAC(3).fit(chunks_of(labels)), MemoryError, "label rows", "Sample(", "LWGP")
    tree = ge.EAC(3, reduction="catree")
    refused(lambda: tree.fit(chunks_of(labels)), MemoryError, "core groups", "Sample(")


@pytest.mark.parametrize("what", ["fit", "plan", "features", "write", "scatter"])
def test_workers_that_stop_for_want_of_memory_are_told_of(paused, labels, what, tmp_path, sizes):
    sizes("distributed.waiting", PATIENCE=0.5)
    lazy = chunks_of(labels)
    calls = {
        "fit": lambda: in_chunks.fit(ge.LWEA(4, reduction="sample:150"), lazy, client=paused),
        "plan": lambda: in_chunks.plan(lazy, client=paused),
        "features": lambda: ge.generate.kmeans_ensemble(lazy, 3, 4, objects=100, client=paused),
        "write": lambda: in_chunks.write_labels(tmp_path / "out.npy", lazy[:, 0], client=paused),
        "scatter": lambda: ge.generate.kmeans_ensemble(labels, 3, 4, client=paused),
    }
    refused(calls[what], MemoryError, "their memory is full (1 paused, at ", "memory_limit", "smaller chunks")


@pytest.fixture(scope="module")
def paused():
    """Provide a client whose worker is paused from the start, because it exceeds its memory limit."""
    with dask.config.set({"distributed.worker.memory.pause": 0.001}):
        cluster = threads(1)
    with cluster, distributed.Client(cluster, set_as_default=False, timeout=5) as client:
        while {worker["status"] for worker in client.scheduler_info()["workers"].values()} != {"paused"}:
            time.sleep(0.05)
        yield client


def test_a_cluster_without_workers_is_told_of(labels, sizes):
    sizes("distributed.waiting", PATIENCE=0.5)
    with threads(0) as cluster, distributed.Client(cluster):
        threading.Timer(1.5, cluster.scale, [1]).start()
        with pytest.warns(UserWarning, match="has no workers") as told:
            ge.LWEA(4).fit(chunks_of(labels))
    one_sentence(next(w for w in told if "no workers" in str(w.message)).message)


class Deadly:
    """Labels whose chunks take some time to compute, so that a worker can be killed during this time."""

    def __init__(self, labels, seconds):
        self.labels, self.seconds = labels, seconds

    def __call__(self, block_info=None):
        time.sleep(self.seconds)
        (start, stop), _ = block_info[None]["array-location"]
        return self.labels[start:stop]


def slow(labels, seconds=0.15):
    like = chunks_of(labels)
    return da.map_blocks(Deadly(labels, seconds), chunks=like.chunks, dtype=labels.dtype, meta=labels[:0])


@pytest.mark.thorough
def test_a_worker_killed_in_any_phase_changes_nothing(labels, monkeypatch, request):
    wait, phase, killed = waiting.wait, "", []

    def kill():
        killed.append(phase)
        pids = client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    def waited(futures, client, what):
        if what == phase and phase not in killed:
            time.sleep(0.2)
            kill()
        return wait(futures, client, what)

    monkeypatch.setattr(waiting, "wait", waited)
    with processes(2) as cluster, distributed.Client(cluster) as client:
        for phase, est in [("core groups", ge.LWEA), ("look up", ge.LWEA), ("gram", ge.LWGP), ("count", ge.CgC)]:
            if phase == "gram":
                request.getfixturevalue("in_pieces")
            expected = fitted_in_threads(est(4), labels)
            client.wait_for_workers(2)
            model = est(4).fit(slow(labels))
            future = client.compute(model.labels_)
            if phase == "look up":
                time.sleep(0.3)
                kill()
            found = future.result(timeout=120)
            assert phase in killed
            np.testing.assert_array_equal(found, expected)


def die(block, block_info=None):
    """Kill the worker at the second chunk, as the operating system does if memory runs out."""
    if block_info and block_info[0]["chunk-location"][0] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.thorough
def test_a_chunk_that_kills_every_worker_is_named(labels):
    deadly = chunks_of(labels).map_blocks(die, dtype=labels.dtype, meta=labels[:0])
    with processes(1) as cluster, distributed.Client(cluster):
        refused(lambda: ge.EAC(3).fit(deadly), LostWorkers, "smaller chunks")


def test_a_scheduler_that_is_gone_is_one_sentence(labels):
    cluster = processes(1)
    client = distributed.Client(cluster, timeout=5)
    try:
        cluster.close()
        refused(lambda: in_chunks.fit(ge.EAC(3), chunks_of(labels), client=client), ConnectionError, "scheduler")
    finally:
        client.close(timeout=1)


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_columns_of_chunks_are_chosen_as_those_of_a_file(tmp_path, labels, suffix):
    path = tmp_path / f"labels{suffix}"
    table = np.column_stack([np.arange(len(labels)), labels]).astype(np.int16)
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        pytest.importorskip("dask.dataframe")
        import pandas as pd

        pd.DataFrame(table).add_prefix("c").to_parquet(path)
    else:
        ge.io.write_labels(path, table)
    kept = table[:, [1, 2]]
    for options, expected in (
        ({}, table[:, 1:]),
        ({"columns": [0, 2]}, table[:, [0, 2]]),
        ({"exclude": ["*0" if suffix == ".parquet" else 0, 2]}, table[:, [1, 3, 4, 5, 6]]),
        ({"columns": [1, 2], "missing": ["0"]}, np.where(kept == 0, -1, kept)),
    ):
        found = in_chunks.read_labels(path, chunk_rows=300, **options)
        np.testing.assert_array_equal(np.asarray(found.compute()), expected)


def test_columns_that_are_no_clusterings_are_left_out_of_chunks(tmp_path, monkeypatch):
    """A file's first objects, or a DataFrame's column names, tell which columns are no clusterings."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    labels, truth = structured_labels(600, 4, 4, seed=2)
    frame = pd.DataFrame(labels).add_prefix("run").assign(plate=np.arange(600) % 3, truth=truth)
    frame.to_parquet(tmp_path / "labels.parquet")
    with pytest.warns(UserWarning, match=r"'plate' \(it agrees .*\), 'truth' \(by its name\) are left out"):
        found = in_chunks.read_labels(tmp_path / "labels.parquet")
    assert list(found.columns) == ["run0", "run1", "run2", "run3"]
    chunks = dd.from_pandas(frame.drop(columns="plate"), npartitions=3)
    with pytest.warns(UserWarning, match=r"labels: 'truth' \(by its name\) is left out, .* say every_column=True"):
        same(ge.LWGP(4).fit(chunks).labels_, ge.LWGP(4).fit(labels).labels_)
    assert in_chunks.fit(ge.LWGP(4), chunks, every_column=True).n_features_in_ == 5
    monkeypatch.chdir(tmp_path)
    for line, n in (("", 4), (" --columns run*,truth", 5)):
        assert main(f"run labels.parquet -k 4 --scheduler threads --method lwgp -o out.npy{line}".split()) == 0
        assert json.loads(Path("out.npy.json").read_text())["n_clusterings"] == n


def test_a_damaged_chunk_of_a_zarr_file_is_named(tmp_path, labels):
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(tmp_path / "labels.zarr"), labels)
    parts = [path for path in (tmp_path / "labels.zarr").rglob("*") if path.is_file() and "json" not in path.name]
    parts[0].write_bytes(b"\xff" * 40)
    refused(lambda: ge.EAC(4).fit(in_chunks.read_labels(tmp_path / "labels.zarr")), ValueError, "labels.zarr")


def test_labels_in_chunks_become_a_zarr_file(tmp_path, labels):
    zarr = pytest.importorskip("zarr")
    lazy = chunks_of(np.maximum(labels, 0))[:, 0]
    for _ in range(2):  # the second file replaces the first
        counts = in_chunks.write_labels(tmp_path / "out.zarr", lazy)
        found = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")[:]
        np.testing.assert_array_equal(found, np.maximum(labels, 0)[:, 0])
        np.testing.assert_array_equal(counts, np.bincount(found))
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    broken = lazy.map_blocks(fails, dtype=labels.dtype, meta=labels[:0, 0])
    with pytest.raises(ValueError, match="no more"):
        in_chunks.write_labels(tmp_path / "out.zarr", broken)
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "out.zarr"), mode="r")[:], found)
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
