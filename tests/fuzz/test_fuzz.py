"""Any input to any method: the method runs and gives a valid result, or it raises an error of one sentence.

The suite tries 150 inputs, the same every time; ``make fuzz`` tries 5,000 others. A child process does the work
(tests/fuzz_worker.py), so that a crash of the interpreter or an endless run is a failure that names its input.
"""

import atexit
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from conftest import METHODS
from hostile import HOSTILE

pytest.importorskip("hypothesis", reason="inputs are drawn by hypothesis: pip install 'gpuens[dev]'")

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpuens import io

INPUTS = int(os.environ.get("GPUENS_FUZZ", "150"))
SECONDS = 120  # one input takes hundredths of a second, but the machine may be busy
WORKER = Path(__file__).parents[1] / "fuzz_worker.py"


class Worker:
    """A process that answers one description after the other; a new process replaces one that dies."""

    def __init__(self, script):
        self.script = script
        self.process = None

    def start(self):
        ours, theirs = socket.socketpair()
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, self.script, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=self.said,
            stderr=self.said,
            env={**os.environ, "GPUENS_MEMORY": "1GB", "GPUENS_THREADS": "2"},
        )
        theirs.close()
        self.pipe = Connection(ours.detach())

    def stop(self):
        if self.process is not None:
            self.pipe.close()
            self.process.kill()
            self.process.wait()
            self.said.close()
            self.process = None

    def ask(self, case):
        """Send a description; return the answer, or the last output of the process if it died or took too long."""
        if self.process is None:
            self.start()
        try:
            self.pipe.send(case)
            if self.pipe.poll(SECONDS):
                return self.pipe.recv()
            found = f"nothing came back within {SECONDS} s"
        except (EOFError, OSError):
            found = f"the interpreter ended with {self.process.wait()}"
        self.said.seek(0)
        last = self.said.read().decode(errors="replace")[-3000:]
        self.stop()
        return f"{found}\n{last}"


def settings_of(n):
    """Return hypothesis's settings for ``n`` descriptions."""
    return settings(
        max_examples=n,
        derandomize="GPUENS_FUZZ" not in os.environ,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # no shrinking: a description is short enough to read
        suppress_health_check=list(HealthCheck),
    )


def worker_of(script):
    """Return a fixture: a process for the tests of a module, which runs the script."""

    @pytest.fixture(scope="module", name="worker")
    def started():
        if sys.platform == "win32":
            pytest.skip("a process of Windows inherits no file descriptors")
        worker = Worker(script)
        atexit.register(worker.stop)
        yield worker
        worker.stop()
        atexit.unregister(worker.stop)

    return started


worker = worker_of(WORKER)


# --- descriptions -----------------------------------------------------------------------------------------------------

KINDS = [
    "random", "structured", "duplicates", "nested", "identifier", "constant column", "all alike", "one against all",
]  # fmt: skip
FORMS = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bools", "float32", "float64", "large",
    "fortran", "strided", "masked", "objects", "columns", "mixed columns", "frame", "categories", "nullable", "texts",
    "ensemble",
]  # fmt: skip
REDUCTIONS = [
    None, "core-groups", "sample:5", "sample:0.5,by=sum", "sample:1000", "catree", "catree:0", "catree:1.0,gamma=0.5",
    "catree:tau=0.2,gamma=0.9,n_des=2,order=coarse,counts=unit",
]  # fmt: skip

positive = st.sampled_from([1e-300, 1e-9, 0.01, 0.02, 0.1, 0.4, 1.0, 3, 100.0, 1e300]) | st.floats(1e-4, 10)
shares = st.sampled_from([None, 0, 1, 0.0, 0.5, 0.999999, 1.0]) | st.floats(0, 1)
SOUND = {  # plausible values of parameters
    "n_clusters": st.none() | st.integers(1, 9),
    "theta": positive,
    "threshold": shares,
    "mu": shares,
    "alpha": st.sampled_from([0, 1e-12, 0.3, 1, 1.5, 3.9]),
    "beta": st.sampled_from([1e-6, 0.6, 2, 10.0, 1e6]),
    "tol": st.sampled_from([0, 1e-12, 1e-3, 1]),
    "init": st.sampled_from(["kmeans", "clustering", "random"]),
    "n_init": st.integers(1, 3),
    "max_iter": st.sampled_from([1, 2, 20]),
    "imbalance": st.sampled_from([1e-9, 0.03, 0.5, 2, 1e9, 1e300]),
    "linkage": st.sampled_from(["average", "single", "complete"]),
    "distance_threshold": positive,
    "min_size": st.sampled_from([None, "auto"]) | st.integers(1, 6) | st.floats(1e-3, 0.4),
    "n_neighbors": st.none() | st.integers(1, 20),
    "neighbors": st.none() | st.integers(1, 16),
    "partition": st.sampled_from(["transfer-cut", "metis"]),
    "strength": positive,
    "weights": st.none(),
    "random_state": st.integers(0, 2**64),
    "reduction": st.sampled_from(REDUCTIONS),
}
hostile = st.sampled_from(sorted(HOSTILE)).map(lambda name: {"hostile": name})


def once(draw, n):
    """Return True with probability 1 / ``n``.

    A value inside the range means True, as hypothesis often draws the range's ends.
    """
    return draw(st.integers(-n, 2 * n)) == 1 if n > 2 else draw(st.booleans())


@st.composite
def descriptions(draw):
    method = draw(st.sampled_from(sorted(METHODS)))
    names = METHODS[method]._get_param_names()
    parameters = {"n_clusters": draw(st.sampled_from([1, 2, 2, 3, 3, 4, 6]))}
    if once(draw, 10):
        parameters["n_clusters"] = draw(SOUND["n_clusters"])
    for name in draw(
        st.lists(st.sampled_from(sorted(SOUND.keys() & set(names) - {"n_clusters"})), max_size=4, unique=True)
    ):
        parameters[name] = draw(SOUND[name])
    if once(draw, 8):
        parameters[draw(st.sampled_from(names))] = draw(hostile)
    if parameters.get("distance_threshold") is not None and draw(st.booleans()):
        parameters["n_clusters"] = None
    small = once(draw, 4)
    return {
        "rows": draw(st.sampled_from([6, 4, 3, 2, 1] if small else [40, 60, 47, 33, 25, 17, 9, 5])),
        "columns": draw(st.sampled_from([3, 2, 1] if small else [5, 12, 8, 6, 10, 4, 3, 2])),
        "k": draw(st.sampled_from([1, 2, 3, 4, 5, 6, 8])),
        "kind": draw(st.sampled_from(KINDS)),
        "missing": draw(st.sampled_from([0.0, 0.0, 0.1, 0.5])),
        "may be empty": once(draw, 10),
        "seed": draw(st.integers(0, 2**16)),
        "form": draw(st.sampled_from(FORMS)),
        "soft": once(draw, 10) and method == "scec",
        "file": draw(st.none() | st.sampled_from(io.INPUTS)) if once(draw, 4) else None,
        "method": method,
        "parameters": parameters,
    }


def test_whatever_is_given_runs_or_is_refused_in_one_sentence(worker):
    answers = Counter()

    @settings_of(INPUTS)
    @given(descriptions())
    def attempt(case):
        found = worker.ask(case)
        answers[found if len(found) < 1000 else "wrong"] += 1
        assert found == "ran" or found.startswith("refused: "), f'python {WORKER} "{case}"\n{found}'

    attempt()
    print(*answers.most_common(60), sep="\n")
    assert answers["ran"] > answers.total() / 3


@pytest.mark.thorough
def test_a_crash_and_a_hang_are_answers(worker, monkeypatch):
    assert "interpreter ended" in worker.ask({"crash": True})
    monkeypatch.setattr(sys.modules[__name__], "SECONDS", 0.5)
    assert "nothing came back" in worker.ask({"hang": True})
