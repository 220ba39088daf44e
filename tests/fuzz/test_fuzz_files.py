"""Damaged and malicious files: each file is read correctly, or raises an error of one sentence, and does no harm.

The suite tries two files of each kind, and the files of tests/corpus with a mutation of each, the same every time;
``make fuzz`` tries 2,000 other files and 50 mutations. A child process reads them (tests/fuzz_files_worker.py), so
that a crash of the interpreter or an endless reader is a failure that names its file. tests/fuzz_readers.py searches
for further files.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="files are drawn by hypothesis: pip install 'gpuens[dev]'")
pytest.importorskip("anndata", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("pyarrow", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("zarr", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("jsonschema", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("dask", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("igraph", reason="files of all kinds are read: pip install 'gpuens[dev]'")

import fuzz_files_worker
from conftest import raising
from fuzz_files_worker import CORPUS, FOLDERS, KINDS, SECRET, Trap, judged
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz import INPUTS, settings_of, worker_of

# seeds for a file of each kind, and mutations of each file of the corpus
SEEDS, MUTATIONS = (2, 1) if "GPUENS_FUZZ" not in os.environ else (INPUTS * 2 // 5 // len(KINDS), INPUTS // 100)
SCRIPT = Path(__file__).parents[1] / "fuzz_files_worker.py"
worker = worker_of(SCRIPT)


def test_files_that_lie_are_read_or_refused_without_harm(worker):
    answers = Counter()

    @settings_of(SEEDS)
    @given(st.integers(0, 2**32))
    def attempt(seed):
        for kind in KINDS:
            case = {"kind": kind, "seed": seed}
            found = worker.ask(case)
            answers[kind, found.partition(":")[0] if len(found) < 1000 else "wrong"] += 1
            assert found == "read" or found.startswith("refused: "), f'python {SCRIPT} "{case}"\n{found}'

    attempt()
    print(*sorted(answers.items()), sep="\n")
    assert sum(n for (_, found), n in answers.items() if found == "read") > answers.total() / 10


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_corpus_and_its_mutations_are_read_or_refused(folder, worker):
    verdicts = set()
    for path in sorted((CORPUS / folder).iterdir()):
        for seed in range(1 + MUTATIONS):
            case = {"corpus": f"{folder}/{path.name}", "seed": seed}
            verdict = worker.ask(case)
            assert verdict == "read" or verdict.startswith("refused: "), f'python {SCRIPT} "{case}"\n{verdict}'
            verdicts.add(verdict)
    assert "read" in verdicts


def test_harm_is_found(tmp_path, monkeypatch):
    """Code that runs, a secret that is read, an error of two sentences and a flood of memory are no verdicts."""
    monkeypatch.chdir(tmp_path)
    trap = Trap(tmp_path)
    path = tmp_path / "file.json"

    def said(read):
        monkeypatch.setattr(fuzz_files_worker, "readers", lambda *_: [read])
        try:
            return judged(path, ".json", trap)
        except BaseException as error:
            return f"{type(error).__name__}: {error}".splitlines()[0]

    assert said(list) == "read"
    assert said(lambda: [np.full(3, SECRET)]).startswith("AssertionError: the secret was read")
    assert said(raising(KeyError("a"))) == "KeyError: 'a'"
    assert said(raising(ValueError("one. Two."))).startswith("AssertionError: more than one sentence")
    assert said(lambda: [np.ones(2**26)]).startswith("AssertionError: reading takes")
    assert said(lambda: [trap.marker.mkdir() or 0]).startswith("AssertionError: code was run")
