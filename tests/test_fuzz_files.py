"""Damaged and malicious files: each file is read correctly, or raises an error of one sentence, and does no harm.

The suite tries 60 files, the same every time; ``make fuzz`` tries 2,000 others. A child process reads them
(tests/fuzz_files_worker.py), so that a crash of the interpreter or an endless reader is a failure that names its file.
"""

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("hypothesis", reason="files are drawn by hypothesis: pip install 'gpuens[dev]'")
pytest.importorskip("anndata", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("pyarrow", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("zarr", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("jsonschema", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("dask", reason="files of all kinds are read: pip install 'gpuens[dev]'")
pytest.importorskip("igraph", reason="files of all kinds are read: pip install 'gpuens[dev]'")

from fuzz_files_worker import KINDS
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz import INPUTS, settings_of, worker_of

SCRIPT = Path(__file__).with_name("fuzz_files_worker.py")
worker = worker_of(SCRIPT)


def test_files_that_lie_are_read_or_refused_without_harm(worker):
    answers = Counter()

    @settings_of(INPUTS * 2 // 5)
    @given(st.sampled_from(sorted(KINDS)), st.integers(0, 2**32))
    def attempt(kind, seed):
        case = {"kind": kind, "seed": seed}
        found = worker.ask(case)
        answers[kind, found.partition(":")[0] if len(found) < 1000 else "wrong"] += 1
        assert found == "read" or found.startswith("refused: "), f'python {SCRIPT} "{case}"\n{found}'

    attempt()
    print(*sorted(answers.items()), sep="\n")
    assert {kind for kind, _ in answers} == KINDS.keys()
    assert sum(n for (_, found), n in answers.items() if found == "read") > answers.total() / 10
