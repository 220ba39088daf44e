"""HGPA: the hypergraph file, the process that cuts it, and failures of that process."""

import itertools
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import METHODS, NOT_HERE, random_labels, refused, structured_labels
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.partition import hypergraph
from gpuens.runtime import installing
from gpuens.runtime.failures import LostProcess, describe, exit_code

installed = pytest.mark.skipif("hgpa" in NOT_HERE, reason="needs mtkahypar")
LABELS, TRUTH = structured_labels(120, 6, 3, noise=0.1, missing=0.05, seed=1)


@pytest.fixture
def program(monkeypatch):
    """Return a function that replaces Mt-KaHyPar's program by a given program, called with the same arguments."""

    def put(text):
        monkeypatch.setattr(hypergraph, "find_spec", lambda name: name)
        monkeypatch.setattr(hypergraph, "PROGRAM", (sys.executable, "-S", "-c", text))

    return put


def edges_of(path):
    head, *lines = path.read_text().splitlines()
    n_edges, n_rows, form = map(int, head.split())
    assert form == 11
    edges = [tuple(map(int, line.split())) for line in lines[:n_edges]]
    weights = [int(line) for line in lines[n_edges:]]
    assert len(weights) == n_rows
    return {(edge[0], edge[1:]) for edge in edges}, weights


# --- the hypergraph ---------------------------------------------------------------------------------------------------


def test_hyperedges_are_the_clusters_of_two_rows_or_more(tmp_path):
    rows = ge.Rows([[0, 0, 1, 1, 2], ["a", "b", None, "b", "b"]], counts=[1, 7, 1, 2, 1])
    hypergraph.write_hypergraph(tmp_path / "h", rows, np.arange(1, 6), np.array([1, 4, 1, 2, 1]))
    assert edges_of(tmp_path / "h") == ({(1, (1, 2)), (2, (3, 4)), (5, (2, 4, 5))}, [1, 4, 1, 2, 1])


@pytest.mark.parametrize("size", ["one", "size"])
def test_what_reaches_the_process(tmp_path, program, size):
    kept = tmp_path / "kept"
    program(
        f"import shutil, sys; shutil.copy(sys.argv[1], {str(kept)!r})\n"
        "n = int(open(sys.argv[1]).readline().split()[1])\n"
        "open(sys.argv[2], 'w').write('1 ' * (n - 5) + '0 ' * 5)\n"
        f"open({str(kept) + '.given'!r}, 'w').write(' '.join(sys.argv[3:]))"
    )
    est = ge.HGPA(3, hyperedge_weight=size, objective="cut", imbalance=7.0, random_state=3)
    with pytest.warns(UserWarning, match="found only 2 of 3 clusters"):
        est.fit(LABELS)
    rows = est.reduction_.rows
    incidence = {(m, c): np.flatnonzero(rows.ensemble.to_array()[:, m] == c) for m in range(6) for c in range(99)}
    sizes = {tuple((own + 1).tolist()): int(rows.counts[own].sum()) for own in incidence.values() if len(own) > 1}
    edges, weights = edges_of(kept)
    assert edges == {(n if size == "size" else 1, own) for own, n in sizes.items()}
    assert weights == rows.counts.tolist()
    given = (tmp_path / "kept.given").read_text().split()
    assert given[:3] == ["3", "2.0", "CUT"]
    assert int(given[3]) < 2**31
    assert est.n_clusters_ == 2
    np.testing.assert_array_equal(est.labels_, (np.arange(len(rows)) >= len(rows) - 5)[est.reduction_.row_of])


def test_weights_are_whole_numbers_that_do_not_overflow():
    ones = np.ones(4, dtype=np.int64)
    assert hypergraph._scale_edges(ones, 3).tolist() == [1, 1, 1, 1]
    assert hypergraph._scale_edges(np.array([0.5, 1.0, 1e-9]), 3).tolist() == [2**19, 2**20, 1]
    large = hypergraph._scale_edges(np.array([10**9, 10**9, 5]), 5)
    assert large[:2].tolist() == [2**20, 2**20]
    many = hypergraph._scale_edges(np.full(10**4, 0.1), 5)
    assert 2**31 > many.sum() * 4 > 2**30


def test_one_part_and_as_many_parts_as_rows_take_no_process(program):
    program("raise SystemExit(1)")
    assert ge.HGPA(1).fit(LABELS).n_clusters_ == 1
    assert ge.HGPA(3).fit_predict([[0, 1, 2, 0], [0, 0, 1, 0]]).tolist() == [0, 1, 2, 0]


# --- failures of the process ------------------------------------------------------------------------------------------

ENDS = {
    "killed by a fault": ("import os; os.kill(os.getpid(), 11)", ["crashed (SIGSEGV)", "random_state"]),
    "killed for memory": ("import os; os.kill(os.getpid(), 9)", ["(SIGKILL, as where memory runs out)", "Sample"]),
    "aborted": ("import os; os.abort()", ["crashed (SIGABRT)"]),
    "an error of its own": ("raise ValueError('no such preset.\\nReally. Not')", ["failed (Really; Not)", "'cspa'"]),
    "silent failure": ("raise SystemExit(5)", ["failed (exit code 5)"]),
    "no answer": ("", ["without a part for each of "]),
    "garbage": ("import sys; open(sys.argv[2], 'wb').write(b'1 \\xff x')", ["without a part for each of "]),
    "too few": ("import sys; open(sys.argv[2], 'w').write('1 0')", ["without a part for each of "]),
    "no such part": ("import sys; open(sys.argv[2], 'w').write('3 ' * 500)", ["without a part for each of "]),
    "too slow": ("import time; time.sleep(60)", ["ended after max_seconds=1", "Sample"]),
    "noise": ("print('x' * 10**6); import sys; sys.exit('y' * 10**6)", ["failed (yyy"]),
}


@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_the_process_is_one_sentence(program, end):
    text, words = ENDS[end]
    program(text)
    sentence = refused(lambda: ge.HGPA(3, max_seconds=1 if end == "too slow" else 60).fit(LABELS), LostProcess, *words)
    error = LostProcess(sentence)
    assert exit_code(error) == 75
    assert describe(error) == sentence
    assert len(sentence) < 500


def test_a_comparison_goes_on_without_it(program):
    program("import os; os.kill(os.getpid(), 11)")
    found = ge.compare(LABELS, 3, methods=["hgpa", "lwgp"])
    assert found.best == "lwgp"
    assert "crashed (SIGSEGV)" in found.left_out["hgpa"]


def test_ctrl_c_ends_the_process_too(program, tmp_path):
    mark = tmp_path / "pid"
    program(f"import os, signal, time; open({str(mark)!r}, 'w').write(str(os.getpid()))\n"
            "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)")  # fmt: skip
    # a shell may make processes in the background ignore Ctrl-C
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ge.HGPA(3).fit(LABELS)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), signal.SIGTERM)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_it_ends_with_the_process_that_has_started_it():
    folder = os.path.dirname(hypergraph.__file__)
    child = f"import sys, time; sys.path[:0] = [{folder!r}]; import mtkahypar_process as it; it.end_with_parent()\n"
    child += "print('ready', flush=True); time.sleep(60)"
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-S', '-c', {child!r}]); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-S", "-c", parent], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout.readline() == "ready\n"
        started.kill()
        assert started.stdout.read() == ""  # read() returns only after both processes have ended


def test_without_the_package_it_is_refused_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "mtkahypar", None)
    text = refused(lambda: ge.HGPA(3).fit(LABELS), ImportError, "mtkahypar", installing.command("hgpa"))
    assert ge.HGPA(3).parts().lacks == text
    assert ge.compare(LABELS, 3, methods="hgpa,lwgp").left_out == {"hgpa": text}


def test_refused_before_it_starts(program, monkeypatch):
    program("raise SystemExit(1)")
    refused(lambda: ge.HGPA(2, imbalance=0).fit(LABELS), ValueError, "imbalance must be above 0")
    refused(lambda: ge.HGPA(2, objective="soed").fit(LABELS), ValueError, "objective must be one of 'km1', 'cut'")
    refused(lambda: ge.HGPA(2, hyperedge_weight=2).fit(LABELS), TypeError, "hyperedge_weight must be one of")
    refused(lambda: ge.HGPA(2, max_seconds=0).fit(LABELS), ValueError, "max_seconds must be from 1 to 1e+07")
    monkeypatch.setenv("GPUENS_MEMORY", "10kB")
    refused(lambda: ge.HGPA(2).fit(LABELS), MemoryError, "rows with 6 labels each", "Sample")


# --- Mt-KaHyPar itself ------------------------------------------------------------------------------------------------


def torn(rows, labels):
    """Return the sum over clusters of (parts that the cluster reaches - 1)."""
    codes = rows.ensemble.to_array()
    reached = [len(set(labels[codes[:, m] == c])) for m in range(codes.shape[1]) for c in set(codes[:, m]) - {-1}]
    return sum(reached) - len(reached)


@installed
def test_the_cut_is_that_of_the_best_bisection():
    labels = random_labels(10, 4, (2, 4), missing=0.1, seed=2)
    rows = ge.CoreGroups().reduce(labels).rows
    n, total = len(rows), rows.counts.sum()
    halves = (np.array(half) for half in itertools.product([0, 1], repeat=n))
    best = min(torn(rows, half) for half in halves if abs(2 * rows.counts @ half - total) <= 0.2 * total)
    found = ge.partition.HypergraphCut(imbalance=0.2)(ge.similarity.Coassociation()(rows), rows, 2)
    assert torn(rows, found.labels) == best


@installed
def test_structure_is_found_and_equal_seeds_give_equal_parts(monkeypatch):
    assert METHODS["hgpa"] is ge.HGPA
    labels, truth = structured_labels(200, 8, 4, noise=0.02, split=1, seed=11)
    a = ge.HGPA(4, imbalance=0.3).fit(labels)
    assert ari(truth, a.labels_) > 0.8
    monkeypatch.setenv("GPUENS_THREADS", "1")
    np.testing.assert_array_equal(a.labels_, ge.HGPA(4, imbalance=0.3).fit_predict(labels))


@installed
@pytest.mark.parametrize("seed", range(6))
def test_every_ensemble_has_a_partition(seed):
    rng = np.random.default_rng(seed)
    labels = random_labels(int(rng.integers(4, 30)), 3, (2, 8), missing=0.3, seed=seed)
    counts = 1 + (rng.random(len(labels)) ** 8 * 1e6).astype(np.int64)
    rows = ge.CoreGroups().reduce(ge.Rows(labels, counts)).rows
    k = int(rng.integers(2, len(rows) + 1))
    found = ge.partition.HypergraphCut(hyperedge_weight="size")(ge.similarity.LWCA()(rows), rows, k)
    assert set(found.labels) == set(range(k))
