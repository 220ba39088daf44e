"""What all tests share: ensembles to test with, the data directory, and the rule for tests that need a GPU."""

import os
import re
import sys
import tracemalloc
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path

import emulator
import numpy as np
import pytest

import gpuens as ge
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices

devices.register("emulated", emulator.Module)

# commands say nothing of how slow this machine is, here and in child processes, but where a test asks for it
os.environ.setdefault("GPUENS_PROGRESS", "0")

# --- ensembles --------------------------------------------------------------------------------------------------------


def random_labels(n_objects=60, n_clusterings=6, n_clusters=(2, 7), *, distinct=None, missing=0.0, seed=0):
    """Return structureless labels (n_objects, n_clusterings) int64, -1 = missing, every object labelled somewhere.

    ``n_clusters`` is one k or the bounds (both included) of a different k for each clustering. ``distinct``: draw the
    rows from that many (repeated rows). ``missing``: share of labels taken away.
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
    """Return (labels, truth): noisy copies of a truth, the shape that real ensembles have.

    In every clustering each class is cut into 1 … ``split`` parts, and a share ``noise`` of the objects is put
    anywhere.
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
    """Return labels with a share taken away, but never an object's last one and never a clustering's last one."""
    labels = labels.copy()
    kept = rng.integers(0, labels.shape[1], size=len(labels))  # one label of each object stays
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
    "far apart": lambda: np.arange(24)[:, None] // np.array([3, 4, 6]),  # regions with nothing in common
    "one row": lambda: np.zeros((5, 3), dtype=np.int64),
}


def shapes(names):
    """Return test parameters for names of `MANY_SHAPES`; the one that warns, and should, is allowed to."""
    warned = pytest.mark.filterwarnings("ignore:constant clusterings")
    return [pytest.param(name, marks=warned if name == "one row" else ()) for name in names]


def kinds_of_search(monkeypatch):
    """Return a set to which average linkage on the CPU adds each kind of its searches for regions that it uses."""
    from gpuens.partition.linkage import row_regions, searches, tile_regions

    used = set()

    def watch(kind, place, name):
        really = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *args, **how: used.add(kind) or really(*args, **how))

    watch("rows", row_regions, "search_rows")
    watch("tiles", tile_regions.Tiles, "search")
    watch("histograms", searches, "search")
    return used


def thorough(*values):
    """Return test parameters for values that take long and seldom fail."""
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
    """A method for tests of all methods: it goes by features that are made of the labels.

    Equal label rows have equal features, no others do, and rows that share labels are near each other.
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


NOT_HERE = {name for name, kind in ge.methods().items() if kind(2).lacks}  # a package of an extra is not installed
METHODS = {name: kind for name, kind in {**ge.methods(), **BY_FEATURES}.items() if name not in NOT_HERE}
NEEDS_LITTLE_NOISE = {"hgpa"}  # in much of it every cluster reaches all parts, whatever the partition
del METHODS["auto"]  # several of the others, see tests/test_comparison.py
del METHODS["best-of-k"]  # its number of clusters is that of a clustering, see tests/test_voting.py


# --- refusals ---------------------------------------------------------------------------------------------------------


def one_sentence(message):
    """Return the text of an error or a warning if it is exactly one sentence; fail if it is not."""
    text = str(message)
    assert "\n" not in text, text
    assert re.fullmatch(r"\S.*\S\.", text), f"not a sentence: {text}"
    assert not re.search(r"[.!?]\s+[A-Z(]", text), f"more than one sentence: {text}"
    return text


def refused(call, kind, *mentioned):
    """Check that a call is refused by exactly ``kind`` in one sentence that mentions what it must; return it."""
    with pytest.raises(kind) as error:
        call()
    assert error.type is kind
    text = one_sentence(error.value)
    for part in mentioned:
        assert part in text, f"{part!r} is not in: {text}"
    return text


# --- pictures ---------------------------------------------------------------------------------------------------------


def close_figures():
    """Close the figures that pyplot keeps, and draws into."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


os.environ["MPLBACKEND"] = "agg"  # no windows


@pytest.fixture(autouse=True)
def own_figures():
    """Let each test draw into figures of its own."""
    yield
    close_figures()


# --- memory -----------------------------------------------------------------------------------------------------------


def peak_of(work):
    """Return the most bytes that Python and NumPy hold at once for some work."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# --- data sets --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared_data():
    """The directory of real data sets: GPUENS_DATA, else shared/data beside the checkout, else the test is skipped."""
    setting = os.environ.get("GPUENS_DATA")
    if setting:
        if not Path(setting).is_dir():
            pytest.fail(f"GPUENS_DATA={setting} is not a directory")
        return Path(setting)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not beside.is_dir():
        pytest.skip("needs the data sets: set GPUENS_DATA to their directory")
    return beside


# --- how work is cut --------------------------------------------------------------------------------------------------


@pytest.fixture
def sizes(monkeypatch):
    """Return a function that sets constants by which work is cut and by which no result may change.

    Small data then takes many pieces. A constant is found by its name, wherever it stands; where modules give one name
    to different constants, ``module`` says whose is meant.
    """

    def put(module="", **constants):
        if "." in module:  # it may not be loaded yet
            import_module(f"gpuens.{module}")
        for name, value in constants.items():
            places = [
                place
                for place in list(sys.modules.values())
                if getattr(place, "__name__", "").startswith("gpuens") and name in vars(place)
                if not module or place.__name__.endswith(f".{module}")
            ]
            assert len({str(vars(place)[name]) for place in places}) == 1, f"{name} is no constant, or several"
            for place in places:
                assert type(vars(place)[name]) in (int, float, dict, tuple), f"{name} is no size"
                monkeypatch.setattr(place, name, value)

    return put


@pytest.fixture
def step_bytes(monkeypatch):
    """Return a function that sets the bytes of working memory for one step on a device."""
    return lambda n_bytes: monkeypatch.setattr(devices, "scratch", lambda device: n_bytes)


@pytest.fixture
def one_block(monkeypatch):
    """One block of threads for all the work of a kernel."""
    monkeypatch.setattr(kernels, "blocks", lambda n, block, most=1: min(n, 1))


@pytest.fixture
def by_lists(sizes):
    """Average linkage by lists or tables and threads, which few rows would not need."""
    sizes("partition.linkage.few_rows", MOST=0)


@pytest.fixture
def in_pieces(monkeypatch):
    """Chunks whose core groups fit nowhere together."""
    chunks = pytest.importorskip("gpuens.distributed").Chunks
    monkeypatch.setattr(chunks, "fit_here", property(lambda self: self._merge() or len(self.sizes) == 1))


# --- what else a test has for itself ----------------------------------------------------------------------------------


@pytest.fixture
def own_registry(monkeypatch):
    """A registry of methods without those that users, or other tests, have registered."""
    monkeypatch.setattr(ge.methods.__globals__["REGISTRY"], "_registered", {})


@pytest.fixture
def own_method(own_registry):
    """Return a function that registers a method: LWGP, which calls another function with its estimator at first."""

    def register(name, before):
        class Own(ge.LWGP):
            def fit(self, labels, y=None):
                before(self)
                return super().fit(labels)

        ge.register(name, Own)

    return register


def raising(*errors):
    """Return a function that raises one of the errors each time it is called, and nothing once all are raised."""
    left = list(errors)

    def fail(*_, **__):
        if left:
            raise left.pop(0)

    return fail


@pytest.fixture
def foreseen(monkeypatch):
    """A list of all bytes that are compared with a memory budget; nothing is refused."""
    compared = []
    monkeypatch.setattr(checks, "check_memory", lambda n_bytes, *_: compared.append(n_bytes))
    return compared


@pytest.fixture
def nothing_may_be_written(monkeypatch):
    """The file system says of every place that this user may not write to it: root may write everywhere."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)


# --- GPU --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_cupy(monkeypatch):
    """tests/fake_cupy.py in the place of CuPy, with empty memory: device="cuda" runs on the CPU."""
    import fake_cupy

    from gpuens.runtime import device, kernels

    def forget():
        kernels._module.cache_clear()
        device.describe.cache_clear()
        device._refuse_incomplete.cache_clear()
        device.keeps_kernels.cache_clear()

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    fake_cupy.reset()
    forget()
    yield fake_cupy
    forget()


@pytest.fixture(params=["cpu", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def where(request):
    """Each device that a primitive or an estimator runs on, for tests against an oracle."""
    return request.param


@cache
def why_no_gpu():
    """Return None where CuPy can compute on a device, else why it cannot."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning of CuPy's must not pass for a missing device
            import cupy

            if int(cupy.arange(4).sum()) != 6:
                return "CuPy computes wrongly on this device"
    except ImportError:
        return "CuPy is not installed"
    except Exception as error:  # no driver, no device, a driver too old: CuPy has many names for it
        return f"no usable CUDA device ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else '-'})"
    return None


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
        if os.environ.get("GPUENS_REQUIRE_GPU") == "1":
            pytest.fail(f"GPUENS_REQUIRE_GPU=1, but {reason}", pytrace=False)
        pytest.skip(reason)
