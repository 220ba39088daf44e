"""Processes: their number of threads, and their end while threads are in native calls."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gpuens as ge
from gpuens.runtime import device, host

ROOT = Path(ge.__file__).resolve().parents[1]


def ended(code, *, preload="", **environment):
    """Return a child process that ran a program: its exit status, output and errors."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": preload, **environment}
    code = textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)


# --- threadpoolctl and joblib -----------------------------------------------------------------------------------------

LIMITED = """
    {first}
    {second}
    from gpuens.runtime import device
    numbers = [device.n_threads()]
    with threadpoolctl.threadpool_limits(1):
        numbers.append(device.n_threads())
        with ge.threads(4):
            numbers.append(device.n_threads())
    numbers.append(device.n_threads())
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        numbers.append(device.n_threads())
    import os
    os.environ["GPUENS_THREADS"] = "5"
    numbers.append(device.n_threads())
    print(numbers, {{lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "gpuens"}})
"""


@pytest.mark.parametrize("order", [1, -1])
def test_limits_of_threadpoolctl_hold(order):
    """For whichever of the two packages is imported first."""
    first, second = ["import gpuens as ge", "import threadpoolctl"][::order]
    done = ended(LIMITED.format(first=first, second=second), GPUENS_THREADS="3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "[3, 1, 1, 3, 3, 5] {5}"


NESTED = """
    import threadpoolctl, gpuens as ge
    from gpuens.runtime import device
    with ge.threads(2):
        limit = threadpoolctl.threadpool_limits(1)
    limit.restore_original_limits()
    numbers = [device.n_threads()]
    with threadpoolctl.threadpool_limits(4):
        with ge.threads(2):
            with threadpoolctl.threadpool_limits(1):
                numbers.append(device.n_threads())
            numbers.append(device.n_threads())
        numbers.append(device.n_threads())
        with ge.threads(8):
            numbers.append(device.n_threads())
    print(*numbers, device.n_threads())
"""


def test_limits_of_threadpoolctl_nest_with_contexts():
    """An inner limit restores the outer one, and the last of them none."""
    done = ended(NESTED, GPUENS_THREADS="8")
    assert (done.stdout.split(), done.stderr) == (["8", "1", "2", "4", "4", "8"], "")


LOADED = {
    "runpy": "runpy.run_module('threadpoolctl', run_name='__main__')\nimport threadpoolctl",
    "pkgutil": "assert pkgutil.get_data('threadpoolctl', 'threadpoolctl.py')\nimport threadpoolctl",
    "a lazy loader": """
spec = importlib.util.find_spec("threadpoolctl")
spec.loader = importlib.util.LazyLoader(spec.loader)
threadpoolctl = sys.modules["threadpoolctl"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(threadpoolctl)
""",
    "a reload": "import threadpoolctl\nimportlib.reload(threadpoolctl)",
}


@pytest.mark.parametrize("how", LOADED)
def test_threadpoolctl_is_loaded_in_any_way(how):
    code = f"""
import importlib.util, pkgutil, runpy, sys
import gpuens
sys.argv = ["threadpoolctl", "-i", "json"]
{LOADED[how]}
print({{lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "gpuens"}})
"""
    done = ended(code, GPUENS_THREADS="3")
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["{3}"]), done.stderr


def test_importing_gpuens_does_not_import_threadpoolctl():
    done = ended("import sys, gpuens; print('threadpoolctl' in sys.modules, 'gpuens._native' in sys.modules)")
    assert done.stdout.split() == ["False", "False"]


def test_threadpoolctl_loads_as_ever_beside_a_gpuens_that_cannot():
    done = ended("import gpuens, threadpoolctl; print(threadpoolctl.__loader__.name)", GPUENS_CPU="v9")
    assert (done.returncode, done.stdout.strip()) == (0, "threadpoolctl")
    missing = "import sys, gpuens\nsys.path.clear()\nsys.path_importer_cache.clear()\nimport threadpoolctl"
    assert ended(missing).stderr.strip().endswith("ModuleNotFoundError: No module named 'threadpoolctl'")


def test_workers_of_a_grid_search_have_the_threads_that_joblib_gives_them():
    """Of four processors, two for each of two processes."""
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="loky", inner_max_num_threads=2):
        numbers = joblib.Parallel(n_jobs=2)(joblib.delayed(_n_threads_of_four)() for _ in range(2))
    assert numbers == [2, 2]


def _n_threads_of_four():
    """Return the number of threads on four processors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GPUENS_THREADS", raising=False)
        patch.setattr(host, "processors", lambda: 4)
        return device.n_threads()


# --- the end of the process -------------------------------------------------------------------------------------------

# a daemon thread is in a native call for seconds, in threads of the pool, while the main thread ends
BUSY = """
    import os, signal, sys, threading, time
    import numpy as np
    import gpuens as ge
    from gpuens.contingency.scores import agreement
    from gpuens.labels.incidence import row_lookups
    from gpuens.runtime.native import cpu
    rng = np.random.default_rng(0)
    codes, offsets = np.asfortranarray(rng.integers(200, size=(20_000, 30)).astype(np.uint8)), np.arange(31) * 200
    table = rng.random((6000, 64))
    labels = rng.integers(30, size=(20_000, 30))
    exponents, powers = np.zeros(8), np.empty(8)
    begun = threading.Event()

    def count():
        for _ in range(20):  # other threads run meanwhile
            time.sleep(.001)
        return 3

    if {call!r} == "counts threads slowly":
        cpu.prepare(count, threading.main_thread().ident)

    def work():
        while True:
            begun.set()
            {work}

    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    begun.wait()
    time.sleep(.2)
"""
CALLS = {
    "long": "ge.EAC(n_clusters=5).fit(labels)",
    "short": "row_lookups(codes[:200], offsets, table)",
    "calls Python": "agreement(labels[:2000])",
    "counts threads slowly": "cpu.exponentials(exponents, powers)",
}


def busy(call):
    return BUSY.format(call=call, work=CALLS[call])


# the exit status of a process that ends in each way; negative: killed by that signal
EXITS = {
    "the program's end": ("", 0),
    "sys.exit(3)": ("sys.exit(3)", 3),
    "an exception": ("raise KeyError('lost')", 1),
    "Ctrl-C": ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    "SIGTERM": ("signal.raise_signal(signal.SIGTERM)", -signal.SIGTERM),
    "a handler of exits that fits": ("import atexit; atexit.register(ge.EAC(n_clusters=2).fit, labels[:500])", 0),
}


# ways to end that Python handles alike
ALIKE = {"sys.exit(3)", "an exception"}
ENDS = [pytest.param(how, "long", marks=pytest.mark.thorough if how in ALIKE else ()) for how in EXITS]
ENDS += [("the program's end", call) for call in CALLS if call != "long"]


@pytest.mark.skipif(os.name != "posix", reason="statuses of signals are POSIX's")
@pytest.mark.parametrize(("how", "call"), ENDS)
def test_a_process_ends_with_its_own_status_while_a_daemon_thread_is_in_a_native_call(how, call):
    end, status = EXITS[how]
    done = ended(busy(call) + f"    {end}\n", GPUENS_THREADS="3")
    assert done.returncode == status, done.stderr
    said = {"an exception": "KeyError: 'lost'", "Ctrl-C": "KeyboardInterrupt"}.get(how, "")
    assert done.stderr.strip().endswith(said) if said else not done.stderr


def test_an_exit_handler_that_is_older_than_the_extension_waits_for_a_fit():
    """The handler is registered before the first fit, and a daemon thread fits until the handler runs."""
    code = """
    import atexit, threading
    import gpuens as ge
    begun, ending = threading.Event(), threading.Event()

    def work():
        while not ending.is_set():
            ge.EAC(n_clusters=2).fit([[0, 0, 1], [0, 0, 1]])
            begun.set()
        ge.EAC(n_clusters=2).fit([[0, 0, 1], [0, 0, 1]])
        print("fitted")

    def end():
        ending.set()
        thread.join()

    thread = threading.Thread(target=work, daemon=True)
    atexit.register(end)
    thread.start()
    begun.wait()
    """
    done = ended(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fitted\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_child_that_was_forked_while_threads_were_in_native_calls_ends():
    """Those threads do not exist in the child, which does not wait for them."""
    fork = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    if os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    ge.EAC(n_clusters=2).fit(labels[:500])
    sys.exit(5)
    """
    done = ended(busy("calls Python") + fork, GPUENS_THREADS="3")
    assert (done.returncode, done.stderr) == (5, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_child_that_was_forked_while_blas_is_being_limited_ends():
    code = """
    import os, signal
    from gpuens.runtime import device, parallel
    with parallel._one_blas_thread.lock:
        child = os.fork()
        if not child:
            signal.alarm(20)
            with device.library_threads(1):
                os._exit(5)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    assert ended(code).stdout == "5\n"


# --- signals ----------------------------------------------------------------------------------------------------------

OUT_OF_MEMORY = """
#include <csignal>
#include <cstdlib>
#include <new>
void* operator new(std::size_t size) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (sigismember(&blocked, SIGINT)) throw std::bad_alloc();  // while a thread is started
    return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
"""


@pytest.mark.skipif(sys.platform != "linux", reason="libraries are preloaded by Linux's loader")
def test_memory_that_runs_out_while_a_thread_is_started_leaves_signals_as_they_were(tmp_path):
    source, library = tmp_path / "memory.cpp", tmp_path / "memory.so"
    source.write_text(OUT_OF_MEMORY)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    code = """
    import signal, numpy as np, gpuens as ge
    from gpuens.labels.incidence import row_lookups
    codes, offsets, table = np.zeros((50_000, 20), dtype=np.uint8, order="F"), np.arange(21), np.ones((20, 64))
    for threads in (2, 1):
        try:
            with ge.threads(threads):
                print(row_lookups(codes, offsets, table).sum())
        except MemoryError:
            print("refused", signal.pthread_sigmask(signal.SIG_BLOCK, []))
    """
    done = ended(code, preload=str(library))
    assert done.stdout.split("\n")[:2] == ["refused set()", "64000000.0"], done.stderr
