"""Each worker of a Dask cluster has a GPU, the stand-in for CuPy: labels stay on the GPU that holds them.

Every worker is a process with a device of its own. Messages of the client and of the scheduler are counted in this
process, where both run; Dask logs what workers send to each other, and the stand-in counts copies to and from a GPU.
"""

import gc
import operator
import os
import signal
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import structured_labels, thorough

import gpuens as ge
from gpuens.runtime import device as devices

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from dask.sizeof import sizeof  # noqa: E402
from distributed.comm import tcp  # noqa: E402
from distributed.diagnostics.plugin import SchedulerPlugin  # noqa: E402
from distributed.utils import get_mp_context  # noqa: E402

from gpuens.distributed import ScatteredReduction, clients, waiting  # noqa: E402

# an error would stop the scheduler, whose thread runs in this process
pytestmark = pytest.mark.filterwarnings("ignore")

N_GPUS = 4
CHUNK = 250_000  # objects of a chunk; so many bytes are more than a message about tasks, a table or a draw of rows has
N_CLUSTERINGS = 6
SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.scheduler.work-stealing": False,  # as `clients.connected` says for dask-cuda
    "distributed.comm.compression": None,
}


class StandIn(distributed.WorkerPlugin):
    """The stand-in in CuPy's place in every worker, also in a worker that replaces one that died."""

    name = "stand-in"

    def setup(self, worker):
        import fake_cupy

        sys.modules["cupy"] = fake_cupy
        sizeof.register(fake_cupy.ndarray)(operator.attrgetter("nbytes"))  # as Dask does for CuPy
        fake_cupy.reset()


@pytest.fixture(scope="module")
def cluster():
    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload(["distributed", "gpuens.distributed", "gpuens.runtime.registry"])
        with distributed.LocalCluster(
            n_workers=N_GPUS, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster:
            yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(N_GPUS)
        client.register_plugin(StandIn())
        yield client


# --- labels -----------------------------------------------------------------------------------------------------------


def labels_of(start, stop):
    """Return labels (stop - start, 6), int8, of objects that have 200 distinct rows."""
    rows = structured_labels(200, N_CLUSTERINGS, 4, noise=0.1, missing=0.02, seed=3)[0].astype(np.int8)
    return rows[np.random.default_rng(start).integers(0, len(rows), stop - start)]


def on_gpu(block_info=None):
    import fake_cupy

    return fake_cupy.asarray(labels_of(*block_info[None]["array-location"][0]))


def on_gpus():
    """Return labels of which every worker makes a chunk on its GPU."""
    chunks = (CHUNK,) * N_GPUS, (N_CLUSTERINGS,)
    return da.map_blocks(on_gpu, chunks=chunks, dtype=np.int8, meta=np.empty((0, 0), np.int8))


@pytest.fixture(scope="module")
def on_host():
    return np.concatenate([labels_of(i * CHUNK, (i + 1) * CHUNK) for i in range(N_GPUS)])


@pytest.fixture
def held(client):
    """Return labels that are in the memory of the GPUs, one chunk on each."""
    labels = on_gpus().persist()
    distributed.wait(labels)
    assert len(set(places_of(client, labels))) == N_GPUS
    return labels


def places_of(client, array):
    """Return the worker that holds each chunk of an array."""
    futures = distributed.futures_of(array)
    who = client.who_has(futures)
    held = [who[key] for key in sorted((future.key for future in futures), key=lambda key: key[1])]
    assert all(len(workers) == 1 for workers in held)
    return [workers[0] for workers in held]


def to_host(array):
    return array.map_blocks(devices.to_host, dtype=array.dtype, meta=np.empty((0,) * array.ndim, array.dtype)).compute()


# --- counters ---------------------------------------------------------------------------------------------------------


def _forget(dask_worker):
    import fake_cupy

    for copies in vars(fake_cupy.traffic).values():
        copies.sizes.clear()
    dask_worker.transfer_incoming_log.clear()
    dask_worker.transfer_outgoing_log.clear()
    gc.collect()
    fake_cupy.memory.most = fake_cupy.memory.used


def _seen(dask_worker):
    import fake_cupy

    gc.collect()
    copied = {name: copies.sizes for name, copies in vars(fake_cupy.traffic).items()}
    incoming, outgoing = dask_worker.transfer_incoming_log, dask_worker.transfer_outgoing_log
    return copied | {
        "used": fake_cupy.memory.used,
        "most": fake_cupy.memory.most,
        "received": [item["total"] for item in incoming],
        "sent": [item["total"] for item in outgoing],
    }


@pytest.fixture
def counted(client, monkeypatch):
    """Count the bytes of messages of the client and the scheduler, and of everything that workers copy, from now on."""
    messages, results = [], []
    read, write = tcp.read_bytes_rw, tcp.TCP.write

    async def noted_read(stream, n):
        messages.append(n)
        return await read(stream, n)

    async def noted_write(self, *args, **kwargs):
        n = await write(self, *args, **kwargs)
        messages.append(n)
        return n

    class Results(SchedulerPlugin):
        def transition(self, key, start, finish, *args, nbytes=None, **kwargs):
            if finish == "memory" and nbytes is not None:
                results.append(nbytes)

    monkeypatch.setattr(tcp, "read_bytes_rw", noted_read)
    monkeypatch.setattr(tcp.TCP, "write", noted_write)
    plugin = Results()
    client.cluster.scheduler.add_plugin(plugin, name="results")
    client.run(_forget)

    def seen():
        messages_so_far = list(messages)  # the answers to the next line are messages, too
        return SimpleNamespace(messages=messages_so_far, results=list(results), workers=client.run(_seen))

    yield seen
    client.cluster.scheduler.remove_plugin("results")


def largest(sizes):
    return max(sizes, default=0)


# --- labels stay ------------------------------------------------------------------------------------------------------

METHODS = {
    "hbgf": ge.HBGF(4),
    "lwgp": ge.LWGP(4),
    "lwgp of any k": ge.LWGP(),  # the spectrum is evidence of the number of clusters
    "voting": ge.methods()["voting"](4),
    "eac": ge.EAC(4),
    "lwea": ge.LWEA(4),
}


def fitted_by_threads(est, labels):
    before = clients.active
    clients.active = lambda client: None
    try:
        return est.fit(da.from_array(labels, chunks=(CHUNK, -1))).labels_.compute(scheduler="threads")
    finally:
        clients.active = before


def stays_on_gpus(name, client, counted, labels, on_host):
    """Fit a method, let the workers label their objects, and check that all that belongs to objects has stayed."""
    est = METHODS[name].fit(labels)
    found = est.labels_.persist()
    distributed.wait(found)
    seen = counted()
    assert largest(seen.messages) < CHUNK
    for own in seen.workers.values():
        assert own["pickled"] == []
        assert largest(own["to_host"]) < CHUNK
        assert sum(own["received"]) < CHUNK
        assert sum(own["sent"]) < CHUNK
    kinds = client.gather(client.map(devices.kind_of, distributed.futures_of(found)))
    assert kinds == ["cuda"] * N_GPUS
    np.testing.assert_array_equal(to_host(found), fitted_by_threads(METHODS[name], on_host))
    return found, seen


@pytest.mark.parametrize("name", ["hbgf", "voting", "lwea", *thorough("lwgp", "lwgp of any k", "eac")])
def test_labels_in_gpu_memory_stay_there(name, client, held, counted, on_host):
    found, seen = stays_on_gpus(name, client, counted, held, on_host)
    assert places_of(client, found) == places_of(client, held)
    assert max(largest(own["to_device"]) for own in seen.workers.values()) < CHUNK


@pytest.mark.parametrize("name", ["hbgf", *thorough("voting", "lwgp", "lwgp of any k")])
def test_rows_in_pieces_stay_on_gpus_too(name, client, held, counted, on_host, in_pieces):
    found, seen = stays_on_gpus(name, client, counted, held, on_host)
    assert isinstance(METHODS[name].reduction_, ScatteredReduction)
    assert places_of(client, found) == places_of(client, held)
    n_codes = len(np.unique(on_host, axis=0)) * N_CLUSTERINGS
    for own in seen.workers.values():
        assert own["to_device"].count(n_codes) == 1  # many passes read the rows, which were copied once


@pytest.mark.parametrize("name", ["lwea", *thorough("lwgp")])
def test_a_chunk_that_a_task_makes_is_no_result_that_dask_could_send(name, client, counted, on_host):
    """Labels are made again for the labels of objects, by the worker that labels them."""
    _, seen = stays_on_gpus(name, client, counted, on_gpus(), on_host)
    assert {size for size in seen.results if size >= CHUNK} == {8 * CHUNK}  # only labels of the consensus
    made = [size for own in seen.workers.values() for size in own["to_device"] if size >= CHUNK]
    assert made == [CHUNK * N_CLUSTERINGS] * 2 * N_GPUS


def test_chunks_stay_with_busy_workers(client, counted):
    """Dask alone sends chunks that are expected to arrive before their worker has time for them."""
    made = da.map_blocks(
        on_gpu, chunks=((50_000,) * 24, (N_CLUSTERINGS,)), dtype=np.int8, meta=np.empty((0, 0), np.int8)
    )
    labels = made.persist()
    distributed.wait(labels)
    for name in ("lwgp", "lwea"):
        found = METHODS[name].fit(labels).labels_.persist()
        distributed.wait(found)
        assert places_of(client, found) == places_of(client, labels)
        del found
    assert [own["pickled"] for own in counted().workers.values()] == [[]] * N_GPUS


def test_what_leaves_a_gpu_or_a_worker_is_counted(client, held, counted):
    places = places_of(client, held)
    other = next(place for place in client.run(int) if place != places[0])
    future = min(distributed.futures_of(held), key=lambda future: future.key[1])
    distributed.wait(client.submit(devices.kind_of, future, workers=[other], pure=False))
    size = CHUNK * N_CLUSTERINGS
    seen = counted()
    assert largest(seen.messages) < CHUNK  # workers send it to each other
    assert (seen.workers[places[0]]["pickled"], seen.workers[places[0]]["to_host"]) == ([size], [size])
    assert largest(seen.workers[places[0]]["sent"]) >= size
    assert largest(seen.workers[other]["received"]) >= size
    to_host(held)
    assert largest(counted().messages) >= size


# --- memory -----------------------------------------------------------------------------------------------------------


def settled(client, most):
    """Return the bytes in use on each GPU, as soon as they are at most ``most``: messages to free data take a while."""
    gc.collect()  # estimators refer to themselves
    for _ in range(50):
        used = [own["used"] for own in client.run(_seen).values()]
        if max(used) <= most:
            break
        time.sleep(0.05)
    return used


SMALL = 4096  # bytes of small arrays, which the stand-in rounds up to a multiple of 512


@pytest.mark.parametrize("pieces", [False, True])
def test_the_memory_of_a_stage_is_free_in_the_next(pieces, client, counted, request):
    if pieces:
        request.getfixturevalue("in_pieces")
    labels = on_gpus().persist()
    distributed.wait(labels)
    of_labels, of_consensus = CHUNK * N_CLUSTERINGS, 8 * CHUNK
    est = ge.LWGP(4).fit(labels)
    assert max(settled(client, of_labels + SMALL)) <= of_labels + SMALL
    found = est.labels_.persist()
    distributed.wait(found)
    whole = of_labels + of_consensus + SMALL
    assert of_labels + of_consensus <= max(settled(client, whole)) <= whole
    del labels, est
    assert max(settled(client, of_consensus + of_labels + SMALL)) <= whole
    del found
    assert max(settled(client, SMALL)) <= SMALL


# --- workers that die -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["fit", *thorough("core groups", "labels")])
def test_a_worker_that_dies_changes_nothing(phase, client, on_host, monkeypatch):
    dies(phase, client, ge.LWEA(4), on_host, monkeypatch)


@pytest.mark.parametrize("phase", ["sums of points", *thorough("core groups", "pieces", "labels")])
def test_a_worker_that_dies_with_pieces_changes_nothing(phase, client, on_host, monkeypatch, in_pieces):
    dies(phase, client, ge.HBGF(4), on_host, monkeypatch)


def dies(phase, client, est, on_host, monkeypatch):
    """Kill a worker when the work of a phase begins; its chunk of labels and all results are made again elsewhere."""
    wait, killed = waiting.wait, []

    def kill():
        killed.append(phase)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    def waited(futures, client, what):
        if what == phase and not killed:
            kill()
        return wait(futures, client, what)

    expected = fitted_by_threads(est, on_host)
    labels = on_gpus().persist()
    distributed.wait(labels)
    monkeypatch.setattr(waiting, "wait", waited)
    est.fit(labels)
    found = est.labels_.persist()
    if phase == "labels":
        kill()
    assert killed
    distributed.wait(found, timeout=60)
    kinds = client.gather(client.map(devices.kind_of, distributed.futures_of(found)))
    assert kinds == ["cuda"] * N_GPUS
    np.testing.assert_array_equal(to_host(found), expected)
