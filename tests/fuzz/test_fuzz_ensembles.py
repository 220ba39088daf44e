"""Ensembles of sizes near the limits of algorithms: equal bits on all levels and on kernels, and those of slow oracles.

The suite tries 10 ensembles, the same every time; ``make fuzz`` tries 2,000 others, and ``make check-native`` tries
others for a minute under AddressSanitizer. A child process does the work (tests/fuzz_ensembles_worker.py), so that a
crash of the interpreter is a failure that names its seed.
"""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="seeds are drawn by hypothesis: pip install 'gpuens[dev]'")

import fuzz_ensembles_worker
from drawn_ensembles import drawn_labels, drawn_size, limits
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz import INPUTS, settings_of, worker_of

from gpuens.runtime import native

SCRIPT = Path(__file__).parents[1] / "fuzz_ensembles_worker.py"
ENSEMBLES = 10 if "GPUENS_FUZZ" not in os.environ else INPUTS * 2 // 5
worker = worker_of(SCRIPT)


@pytest.mark.kernels
def test_ensembles_are_equal_everywhere_and_those_of_slow_oracles(worker):
    @settings_of(ENSEMBLES)
    @given(st.integers(0, 2**32))
    def attempt(seed):
        case = {"seed": seed}
        answer = worker.ask(case)
        assert answer == "ran", f'python {SCRIPT} "{case}"\n{answer}'

    attempt()


class WrongLevel:
    """The extension with one primitive that counts a pair too many."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        return getattr(self.module, name)

    def pair_histogram(self, *arguments):
        self.module.pair_histogram(*arguments)
        arguments[-1].flat[0] += 1


def test_a_level_of_other_bits_is_found(monkeypatch):
    monkeypatch.setattr(native, "usable_levels", lambda: ["wrong"])
    monkeypatch.setattr(native, "module_of", lambda level: WrongLevel(native.cpu))
    answer = fuzz_ensembles_worker.answer({"seed": 0})
    assert answer.endswith("AssertionError: level wrong: pair_histogram of other bits\n")


def test_sizes_are_drawn_around_the_constants_of_the_sources():
    assert {64, 200, 255, 256, 1024, 1500, 4096, 65_535} <= set(limits())
    rng = np.random.default_rng(0)
    sizes = {drawn_size(rng, 2**16) for _ in range(5000)}
    assert {1, 64, 65, 100, 101, 200, 201, 255, 256, 1024, 1025, 1500, 1501, 65_535, 65_536} <= sizes


def test_ensembles_have_few_and_many_clusters_side_by_side():
    """A table of one cluster beside 101 to 200 has few cells, but too many clusters to be counted by bits."""
    rng = np.random.default_rng(0)
    shapes = [drawn_labels(rng) for _ in range(200)]
    sizes = [[len(np.unique(column[column >= 0])) for column in labels.T] for labels, _ in shapes]
    beside = [1 in k and any(100 < size <= 200 for size in k) and len(k) >= 8 for k in sizes]
    assert sum(beside) >= 5
