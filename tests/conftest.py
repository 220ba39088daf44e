"""Fixtures shared by all tests: test ensembles, the data directory, and the rule for tests that need a GPU."""

import ctypes
import gc
import os
import re
import signal
import sys
import threading
import time
import tracemalloc
import warnings
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

# Two processes share two cores: threads of k-means that spin while they wait for others take most of the time of both.
# OpenMP reads this when scikit-learn loads it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import emulator
import levels
import numpy as np
import pytest

import gpuens as ge
from gpuens.labels.rows import as_rows
from gpuens.methods import REGISTRY
from gpuens.partition.linkage import all_pairs, regions
from gpuens.runtime import checks, kernels, native, threads
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

devices.register("emulated", emulator.Module)
if "GPUENS_ALL_LEVELS" in os.environ:
    levels.compare_levels()

# Messages about slow work are off in this process and in its child processes; their own tests turn them on.
os.environ.setdefault("GPUENS_PROGRESS", "0")

# --- speed ------------------------------------------------------------------------------------------------------------

# A GPU runs thousands of blocks at once; a processor that takes its place runs one, and starts the others for nothing.
if find_spec("cupy") is None or "gpu_stack" in sys.modules:
    regions.SEARCHERS = all_pairs.SEARCHERS = 64


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave the tests out of every search for garbage: 15,000 tests are a million objects, none of them garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_report_header():
    """Tell which levels of the processor are compared (tests/levels.py)."""
    return f"levels compared: {', '.join(native.usable_levels())}" if "GPUENS_ALL_LEVELS" in os.environ else None


# --- ensembles --------------------------------------------------------------------------------------------------------


def similarities(measure, labels, device="auto"):
    """Return the similarities (N, N) of all objects, or (G, G) of `Rows`, by a `Measure`."""
    rows = as_rows(labels, device)
    return measure(rows).tile(rows, 0, len(rows))


def random_labels(n_objects=60, n_clusterings=6, n_clusters=(2, 7), *, distinct=None, missing=0.0, seed=0):
    """Return structureless labels (n_objects, n_clusterings) int64, -1 = missing, every object labelled somewhere.

    ``n_clusters`` is one k, or the bounds (both included) of a random k for each clustering. ``distinct``: draw the
    rows from so many different ones, so that rows repeat. ``missing``: the share of labels to remove.
    """
    rng = np.random.default_rng(seed)
    low, high = (n_clusters, n_clusters) if np.isscalar(n_clusters) else n_clusters
    k = rng.integers(low, high, size=n_clusterings, endpoint=True)
    labels = rng.integers(0, k, size=(distinct or n_objects, n_clusterings))
    if distinct:
        labels = np.concatenate([labels, labels[rng.integers(0, distinct, size=n_objects - distinct)]])
        rng.shuffle(labels)
    return without(labels, missing, rng)


def structured_labels(n_objects=60, n_clusterings=6, n_classes=4, *, noise=0.2, split=2, missing=0.0, seed=0):
    """Return (labels, truth): the truth is a partition, and the labels are noisy copies of it.

    In every clustering each class is divided into 1 … ``split`` parts, and a share ``noise`` of the objects gets random
    labels.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, size=n_objects)
    truth[:n_classes] = np.arange(n_classes)
    columns = []
    for _ in range(n_clusterings):
        parts = rng.integers(1, split, size=n_classes, endpoint=True)
        first = np.concatenate([[0], np.cumsum(parts)])
        column = first[truth] + rng.integers(0, parts[truth])
        strays = rng.random(n_objects) < noise
        column[strays] = rng.integers(0, first[-1], size=strays.sum())
        columns.append(column)
    return without(np.stack(columns, axis=1), missing, rng), truth


def without(labels, share, rng):
    """Remove a share of the labels, but never the last label of an object or of a clustering; return the labels."""
    labels = labels.copy()
    kept = rng.integers(0, labels.shape[1], size=len(labels))  # the clustering in which each object keeps its label
    kept[: labels.shape[1]] = np.arange(labels.shape[1])[: len(labels)]
    gone = rng.random(labels.shape) < share
    gone[np.arange(len(labels)), kept] = False
    labels[gone] = -1
    return labels


def distinct_rows(labels):
    """Return each different row once, in the order of first appearance."""
    first = {tuple(row): i for i, row in reversed(list(enumerate(labels.tolist())))}
    return labels[sorted(first.values())]


MANY_SHAPES = {
    "noise": lambda: random_labels(),
    "few clusterings": lambda: random_labels(50, 2, (2, 5), seed=1),
    "one clustering": lambda: random_labels(20, 1, 4, seed=2),
    "unequal k": lambda: random_labels(60, 5, (2, 30), seed=3),
    "repeated rows": lambda: random_labels(80, 5, (2, 5), distinct=15, seed=4),
    "missing": lambda: random_labels(60, 6, (2, 6), missing=0.3, seed=5),
    "missing, repeated rows": lambda: random_labels(80, 4, (2, 4), distinct=20, missing=0.2, seed=6),
    "structured": lambda: structured_labels(80, 8, 4, seed=7)[0],
    "structured, no noise": lambda: structured_labels(60, 5, 5, noise=0, split=3, seed=8)[0],
    "structured, missing": lambda: structured_labels(60, 8, 3, missing=0.3, seed=9)[0],
    "far apart": lambda: np.arange(24)[:, None] // np.array([3, 4, 6]),  # regions that share no cluster
    "one row": lambda: np.zeros((5, 3), dtype=np.int64),
}


def shapes(names):
    """Return test parameters for names of `MANY_SHAPES`.

    The tests ignore the warning that the shape "one row" causes.
    """
    warned = pytest.mark.filterwarnings("ignore:constant clusterings")
    return [pytest.param(name, marks=warned if name == "one row" else ()) for name in names]


def thorough(*values):
    """Return test parameters for values whose tests take long and seldom fail."""
    return [pytest.param(value, marks=pytest.mark.thorough) for value in values]


@pytest.fixture(params=shapes(MANY_SHAPES))
def any_labels(request):
    """A label matrix (N ≤ 80, M ≤ 8), -1 = missing; the test runs once with each of `MANY_SHAPES`."""
    return MANY_SHAPES[request.param]()


@pytest.fixture
def table_one():
    """The 16 objects and three clusterings behind Table I of the LWEC paper."""
    columns = ["0000000011122222", "0011122200022222", "0000111100012222"]
    return np.array([list(map(int, column)) for column in columns]).T


# --- methods ----------------------------------------------------------------------------------------------------------


class _OfLabels:
    """A method for tests of all methods, whose features are computed from the labels.

    Only equal label rows have equal features, and rows with common labels are near each other.
    """

    def fit(self, labels, y=None):
        ensemble = ge.Ensemble(labels)
        places = np.random.default_rng(7).standard_normal((ensemble.n_clusters + 1, 5))
        known = ensemble.to_array() >= 0
        clusters = np.where(known, ensemble.to_array() + ensemble.offsets[:-1], ensemble.n_clusters)
        return super().fit(ensemble, features=places[clusters].sum(axis=1))

    def fit_predict(self, labels, y=None):
        return self.fit(labels).labels_


class ECRMC(_OfLabels, ge.ECRMC):
    pass


class TOME(_OfLabels, ge.TOME):
    pass


BY_FEATURES = {"ecrmc": ECRMC, "tome": TOME}


# methods that need a package that is not installed
NOT_HERE = {name for name, kind in ge.methods().items() if kind(2).parts().lacks}
METHODS = {name: kind for name, kind in {**ge.methods(), **BY_FEATURES}.items() if name not in NOT_HERE}
NEEDS_LITTLE_NOISE = {"hgpa"}  # with much noise every cluster reaches all parts in any partition
del METHODS["best-of-k"]  # finds as many clusters as one of the clusterings has; see tests/partition/test_voting.py


# --- signals ----------------------------------------------------------------------------------------------------------


def interrupted(call, after):
    """Call a function that a signal ends by KeyboardInterrupt after so many seconds; return the seconds it took to end.

    They count from when the signal was due, and from when Python answered it. Fail if the call ends by itself.
    """
    rung = []

    def ring(number, frame):
        rung.append(time.monotonic())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        due = time.monotonic() + after
        with pytest.raises(KeyboardInterrupt):
            call()
        ended = time.monotonic()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return ended - due, ended - rung[0]


@pytest.fixture
def prepared():
    """Return the function that tells the extension who counts threads, and which thread answers signals."""
    yield cpu.prepare
    cpu.prepare(threads.n_threads, threading.main_thread().ident)


def count_and_interrupt():
    """Return a function for `cpu.prepare` that counts one thread and raises SIGINT, to be answered within the call.

    It runs no bytecode, in which Python would answer the signal at once.
    """
    raise_signal = ctypes.pythonapi["PyErr_SetInterruptEx"]
    raise_signal.restype = (1).__add__  # to the result 0
    return partial(raise_signal, int(signal.SIGINT))


# --- error messages ---------------------------------------------------------------------------------------------------


def one_sentence(message):
    """Return the text of an error or a warning if it is exactly one sentence; fail if it is not."""
    text = str(message)
    assert "\n" not in text, text
    assert re.fullmatch(r"\S.*\S\.", text), f"not a sentence: {text}"
    assert not re.search(r"[.!?]\s+[A-Z(]", text), f"more than one sentence: {text}"
    return text


def refused(call, kind, *mentioned):
    """Check that a call raises exactly ``kind`` with a message of one sentence and the given words.

    Return this message.
    """
    with pytest.raises(kind) as error:
        call()
    assert error.type is kind
    text = one_sentence(error.value)
    for part in mentioned:
        assert part in text, f"{part!r} is not in: {text}"
    return text


# --- pictures ---------------------------------------------------------------------------------------------------------


def close_figures():
    """Close all figures of pyplot."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


os.environ["MPLBACKEND"] = "agg"  # pyplot opens no windows


@pytest.fixture(autouse=True)
def own_figures():
    """Close all figures after each test."""
    yield
    close_figures()


@pytest.fixture
def unpainted(monkeypatch):
    """Save empty files in place of pictures, for a test of a page's words: thirteen pictures take seconds."""
    if find_spec("matplotlib"):
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, file, **options: None)


# --- memory -----------------------------------------------------------------------------------------------------------


def peak_of(work):
    """Return the peak number of bytes that Python and NumPy allocate during a call."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# --- data sets --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared_data():
    """Return the directory of real data sets: GPUENS_DATA, or shared/data beside the checkout.

    Skip the test without both.
    """
    setting = os.environ.get("GPUENS_DATA")
    if setting:
        if not Path(setting).is_dir():
            pytest.fail(f"GPUENS_DATA={setting} is not a directory")
        return Path(setting)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not beside.is_dir():
        pytest.skip("needs the data sets: set GPUENS_DATA to their directory")
    return beside


# --- sizes of pieces --------------------------------------------------------------------------------------------------


@pytest.fixture
def sizes(monkeypatch):
    """Return a function that sets constants of a module of gpuens: sizes by which work is cut, and no result changes.

    Small data then has many pieces.
    """

    def set_sizes(module, **constants):
        module = import_module(f"gpuens.{module}")
        for name, value in constants.items():
            assert type(getattr(module, name)) in (int, float, dict, tuple), f"{name} is no size"
            monkeypatch.setattr(module, name, value)

    return set_sizes


@pytest.fixture
def step_bytes(monkeypatch):
    """Return a function that sets the bytes of working memory for one step on a device."""
    return lambda n_bytes: monkeypatch.setattr(devices, "scratch", lambda device: n_bytes)


@pytest.fixture
def one_block(monkeypatch):
    """Launch every kernel with a single block of threads, which does all the work."""
    monkeypatch.setattr(kernels, "blocks", lambda n, block, most=1: min(n, 1))


@pytest.fixture
def by_lists(sizes):
    """Make average linkage use its algorithm for many rows (lists or tables, and threads) for few rows, too."""
    sizes("partition.linkage.few_rows", MOST_ROWS=0)


@pytest.fixture
def in_pieces(monkeypatch):
    """Keep the core groups of chunks in pieces, as if they were too large for one process."""
    chunks = pytest.importorskip("gpuens.distributed").Chunks
    monkeypatch.setattr(chunks, "fit_here", property(lambda self: self._merge() or len(self.sizes) == 1))


# --- other fixtures ---------------------------------------------------------------------------------------------------


@pytest.fixture
def own_registry(monkeypatch):
    """Use a registry of methods without the methods that other tests have registered."""
    monkeypatch.setattr(REGISTRY, "_registered", {})


@pytest.fixture
def own_method(own_registry):
    """Return a function that registers a copy of LWGP, whose fit first calls ``before`` with the estimator."""

    def register(name, before):
        class Own(ge.LWGP):
            def fit(self, labels, y=None):
                before(self)
                return super().fit(labels)

        ge.register(name, Own)

    return register


def raising(*errors):
    """Return a function that raises the next of the given errors at each call.

    Calls after the last error raise nothing.
    """
    left = list(errors)

    def fail(*_, **__):
        if left:
            raise left.pop(0)

    return fail


@pytest.fixture
def foreseen(monkeypatch):
    """Return a list that collects all numbers of bytes compared with a memory budget. No comparison raises an error."""
    compared = []
    monkeypatch.setattr(checks, "check_memory", lambda n_bytes, *_: compared.append(n_bytes))
    return compared


@pytest.fixture
def nothing_may_be_written(monkeypatch):
    """Make `os.access` deny writing everywhere, because file permissions do not bind tests that run as root."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)


# --- GPU --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_cupy(monkeypatch):
    """Replace CuPy by tests/fake_cupy.py, so that device="cuda" runs on the CPU. No memory is in use at first."""
    import fake_cupy

    from gpuens.runtime import device, gpu, kernels

    def forget():
        kernels._module.cache_clear()
        device.describe.cache_clear()
        gpu._refuse_incomplete.cache_clear()
        gpu.keeps_kernels.cache_clear()

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    fake_cupy.reset()
    forget()
    yield fake_cupy
    forget()


@pytest.fixture(params=["cpu", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def where(request):
    """Run a test on each device: a primitive or an estimator must agree with an oracle there."""
    return request.param


@pytest.fixture(params=["emulated", "cuda"])
def on_device(request):
    """Return a device without a GPU, and a function that moves arrays to it."""
    put = np.asarray if request.param == "emulated" else request.getfixturevalue("fake_cupy").asarray
    return request.param, put


@cache
def why_no_gpu():
    """Return the reason why CuPy cannot compute on a GPU, or None if CuPy can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning of CuPy must not count as a missing device
            import cupy

            if int(cupy.arange(4).sum()) != 6:
                return "CuPy computes wrongly on this device"
    except ImportError:
        return "CuPy is not installed"
    except Exception as error:  # CuPy has many error classes for a missing driver, a missing device and an old driver
        return f"no usable CUDA device ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else '-'})"
    return None


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
        if os.environ.get("GPUENS_REQUIRE_GPU") == "1":
            pytest.fail(f"GPUENS_REQUIRE_GPU=1, but {reason}", pytrace=False)
        pytest.skip(reason)


def labels_and_consensus(seed, n=40, m=5, k=4, missing=0.15):
    """Return base clusterings (n, m) with missing labels, and a consensus (n,) of three clusters drawn at random."""
    rng = np.random.default_rng(seed)
    labels, _ = structured_labels(n, m, k, seed=seed)
    labels[rng.random(labels.shape) < missing] = -1
    labels[(labels < 0).all(axis=1), 0] = 0
    consensus = rng.integers(0, 3, n)
    consensus[:3] = 0, 1, 2
    return labels, consensus
