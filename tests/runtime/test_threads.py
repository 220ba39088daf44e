"""The number of threads of a call, and calls in several threads of Python at the same time."""

import os
import signal
import subprocess
import sys
import sysconfig
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
import threadpoolctl
from conftest import count_and_interrupt, refused, structured_labels
from scipy import sparse

import gpuens as ge
from gpuens.generate import tasks
from gpuens.runtime import checks, device, host
from gpuens.runtime.native import cpu

INHERITED = getattr(sys.flags, "thread_inherit_context", False)

# --- the number of threads --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["²", "٣", "0", "-1", "1.5", "two", " 2", "9" * 5000])
def test_numbers_of_threads_that_are_none(text, monkeypatch):
    monkeypatch.setenv("GPUENS_THREADS", text)
    refused(device.n_threads, ValueError, "GPUENS_THREADS", "from 1 to 9999")


@pytest.fixture
def eight(monkeypatch):
    """Eight processors, and no setting."""
    monkeypatch.setattr(host, "processors", lambda: 8)
    monkeypatch.delenv("GPUENS_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        ({}, 8),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": " 03 ,2"}, 3),  # the first is for the outermost parallel region
        ({"OMP_NUM_THREADS": "64"}, 8),
        ({"OMP_NUM_THREADS": "0"}, 8),  # as OpenMP, which ignores what is no number
        ({"OMP_NUM_THREADS": "many"}, 8),
        ({"OMP_NUM_THREADS": ""}, 8),
        ({"OMP_NUM_THREADS": "3", "GPUENS_THREADS": "16"}, 16),
        ({"OMP_NUM_THREADS": "3", "GPUENS_THREADS": ""}, 3),
    ],
)
def test_settings_of_the_environment(eight, monkeypatch, settings, number):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert device.n_threads() == number
    with ge.threads(5):
        assert device.n_threads() == 5
    assert device.n_threads() == number


def test_the_innermost_context_decides(eight):
    with ge.threads(2):
        with ge.threads(np.int64(4)):
            assert device.n_threads() == 4
        assert device.n_threads() == 2
        with pytest.raises(KeyError), ge.threads(3):
            raise KeyError
        assert device.n_threads() == 2
    assert device.n_threads() == 8


@pytest.mark.parametrize("n", [0, -1, 10_000, 2.0, "2", True, None])
def test_a_number_of_threads_that_is_none_is_refused(n):
    with pytest.raises(ValueError, match="n must be a whole number from 1 to 9999, not "):
        ge.threads(n).__enter__()


def test_a_context_holds_for_its_thread_and_for_threads_that_work_for_it(eight):
    with ge.threads(3):
        within = device.over_ranges(lambda start, stop: (threading.get_ident(), device.n_threads()), 60)
        with ThreadPoolExecutor(1) as pool:  # a thread that Python starts inherits the context where there is no GIL
            assert pool.submit(device.n_threads).result() == (3 if INHERITED else 8)
    assert {number for _, number in within} == {3}
    assert {number for _, number in device.over_ranges(lambda start, stop: (start, device.n_threads()), 60)} == {8}


@pytest.mark.parametrize(("limit", "n_clusterings", "of_a_task"), [(2, 4, 1), (5, 2, 3), (1, 2, 1)])
def test_kmeans_in_threads_share_those_of_the_context(limit, n_clusterings, of_a_task, eight, monkeypatch):
    seen = []
    original = cpu.fit_sample
    monkeypatch.setattr(cpu, "fit_sample", lambda *given: seen.append(device.n_threads()) or original(*given))
    with ge.threads(limit):
        ge.generate.kmeans_ensemble(np.random.default_rng(0).random((200, 3)), n_clusterings=n_clusterings)
    assert set(seen) == {of_a_task}


# --- long calls of libraries ------------------------------------------------------------------------------------------


def test_a_signal_leaves_a_long_call_of_a_library():
    begun, released = threading.Event(), threading.Event()

    def work():
        begun.set()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # as Ctrl-C, which wakes the main thread
        return released.wait(60)

    with pytest.raises(KeyboardInterrupt):
        device.call_interruptibly(work)
    assert begun.is_set()
    released.set()


def test_a_long_call_of_a_library_has_its_context_and_errors():
    with ge.threads(3):
        thread, number = device.call_interruptibly(lambda: (threading.get_ident(), device.n_threads()))
    assert (thread != threading.get_ident(), number) == (True, 3)
    with pytest.raises(ZeroDivisionError):
        device.call_interruptibly(lambda: 1 / 0)
    with ThreadPoolExecutor(1) as pool:
        here = pool.submit(threading.get_ident).result()
        assert pool.submit(device.call_interruptibly, threading.get_ident).result() == here


def n_blas_threads():
    return {lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"}


def test_blas_has_one_thread_until_the_last_of_overlapping_blocks_ends():
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        outer, inner = device.library_threads(1), device.library_threads(1)
        outer.__enter__()
        inner.__enter__()
        assert n_blas_threads() == {1}
        with device.library_threads(None):
            assert n_blas_threads() == {1}
        outer.__exit__(None, None, None)
        assert n_blas_threads() == {1}
        inner.__exit__(None, None, None)
        assert n_blas_threads() == {3}


def test_a_library_that_is_loaded_within_a_block_is_limited_by_the_next(monkeypatch):
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        with device.library_threads(1):
            threadpoolctl.threadpool_limits(2, user_api="blas")  # as if it were loaded with two threads
            monkeypatch.setitem(sys.modules, "another", None)
            with device.library_threads(1):
                assert n_blas_threads() == {1}
            assert n_blas_threads() == {1}
        assert n_blas_threads() == {3}


# --- calls of the extension -------------------------------------------------------------------------------------------


def test_threads_are_counted_once_a_call(prepared, monkeypatch):
    """Whatever the number of parallel loops in it."""
    calls, counts = [], []

    def told(name, primitive):
        return lambda *given: calls.append(name) or primitive(*given)

    for name, primitive in vars(cpu).items():
        if callable(primitive) and not isinstance(primitive, type) and not name.startswith("_"):
            monkeypatch.setattr(cpu, name, told(name, primitive))
    prepared(lambda: counts.append(2) or 2, threading.main_thread().ident)
    ge.EAC(n_clusters=2).fit(np.random.default_rng(0).integers(5, size=(4000, 8)))
    assert "link_diagonal" in calls
    assert len(counts) == len(calls) - calls.count("prepare")


def test_only_the_main_thread_looks_for_signals(prepared):
    """A look takes the GIL, beside a busy thread of Python for some milliseconds."""
    n = 4_000_000
    kept, absorbed, similarities = np.zeros(n, dtype=int), np.arange(1, n + 1), np.random.default_rng(0).random(n)
    merges = cpu.Merges(np.full(n, -1), np.full(n, -1), np.empty(n))
    prepared(count_and_interrupt(), 0)  # as if the main thread were another
    with pytest.raises(KeyboardInterrupt):
        cpu.sort_merges(kept, absorbed, similarities, merges)
    assert (merges[0] == 0).all()  # the signal was answered after the call


# --- fits at the same time --------------------------------------------------------------------------------------------

EIGHT = ("eac", "lwea", "lwgp", "lce", "kcc", "limbo", "median", "rock")


@pytest.fixture
def at_once(monkeypatch):
    """A function that calls ``work(i)`` in eight threads of Python that take turns as often as they can."""
    monkeypatch.setenv("GPUENS_THREADS", "3")
    begin, usual = threading.Barrier(len(EIGHT)), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(len(EIGHT)) as pool:
        yield lambda work: list(pool.map(lambda i: (begin.wait(), work(i))[1], range(len(EIGHT))))
    sys.setswitchinterval(usual)


@pytest.mark.parametrize("labels", ["of each", "shared"])
def test_eight_fits_at_once_give_what_each_gives_alone(labels, at_once):
    """In threads of Python that share the pool of the extension; under ThreadSanitizer in tests/native/check.py."""

    def ensembles():
        made = [ge.Ensemble(structured_labels(300 + 40 * i, 8, 4, noise=0.3, seed=i)[0]) for i in range(len(EIGHT))]
        return made if labels == "of each" else made[:1] * len(EIGHT)

    def fitted(i, ensemble):
        return ge.methods()[EIGHT[i]](4).fit_predict(ensemble)

    alone = [fitted(i, ensemble) for i, ensemble in enumerate(ensembles())]
    for _ in range(3):
        fresh = ensembles()  # without the arrays that an ensemble computes at their first use
        for i, found in enumerate(at_once(lambda i, fresh=fresh: fitted(i, fresh[i]))):
            np.testing.assert_array_equal(found, alone[i], err_msg=EIGHT[i])


def test_eight_ensembles_at_once_are_those_made_alone(at_once):
    def made(i):
        points = sparse.csr_array(np.random.default_rng(i).integers(2, size=(40, 2)).astype(float))  # 4, most often
        algorithm = ("full", "minibatch")[i % 2]
        return ge.generate.kmeans_ensemble(points, 2, (6, 8), algorithm=algorithm, random_state=i).to_array()

    alone = [made(i) for i in range(len(EIGHT))]
    for together, one in zip(at_once(made), alone, strict=True):
        np.testing.assert_array_equal(together, one)


def test_warnings_that_a_thread_records_are_its_own(at_once):
    def work(i):
        with checks.recorded() if i % 2 else nullcontext(()) as sentences:
            together.wait()
            checks.warn(f"of thread {i}.")
            together.wait()
        return list(sentences)

    together = threading.Barrier(len(EIGHT))
    with pytest.warns(UserWarning, match="of thread") as shown:
        recorded = at_once(work)
    assert recorded == [[f"of thread {i}."] if i % 2 else [] for i in range(len(EIGHT))]
    assert sorted(str(one.message) for one in shown) == [f"of thread {i}." for i in range(0, len(EIGHT), 2)]


@pytest.mark.skipif(tasks._few_points_ignored is tasks._ignored, reason="filters of warnings are a context's")
def test_a_filter_of_warnings_holds_until_the_last_of_overlapping_blocks_ends():
    before, (first, last) = list(warnings.filters), (tasks._few_points_ignored() for _ in range(2))
    first.__enter__()
    last.__enter__()
    first.__exit__(None, None, None)
    warnings.warn("Number of distinct clusters (1) found smaller than n_clusters (2).", stacklevel=1)
    last.__exit__(None, None, None)
    assert warnings.filters == before


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_neither_the_import_nor_a_fit_switches_the_gil_on():
    code = "import sys, gpuens as ge; ge.consensus([[0, 0, 1]] * 2, 2, method='eac'); print(sys._is_gil_enabled())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("False\n", "")
