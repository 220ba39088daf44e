"""The plan for several GPUs (docs/dask.md) is what gpuens counts: its tables, its sentences and its formulas.

That the counts are those of a fit is tested with the stand-in for CuPy, in tests/distributed/test_several_gpus.py.
"""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from gpuens.distributed import traffic
from gpuens.kmeans.lloyd import MOST_ITERATIONS
from gpuens.partition.linkage import nearest
from gpuens.partition.linkage.conduct import N_LISTED
from gpuens.reduction.core_groups import words_of
from gpuens.runtime import checks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/dask.md").read_text()
WORDS = " ".join(PAGE.split())

PCIE, NETWORK = 63e9, 12.5e9  # bytes per second
GPU = 80e9  # bytes of memory, of which 80 % are used
N, M, N_CLUSTERS, K, N_GPUS = 10**9, 20, 50, 10, 8


def n_distinct(n_objects):
    """Return the number of distinct rows of an ensemble with structure, by the power of N of recorded ensembles."""
    parts = json.loads((ROOT / "bench/results/chunks.json").read_text())["parts"]
    ten = parts["scaling"]["rows"]["10000000"]["groups"]
    power = math.log10(parts["hundred"]["rows"]["LWGP"]["groups"] / ten)
    return int(parts["ten"]["rows"]["LWGP"]["groups"] * (n_objects / 10**7) ** power)


def sizes(n_rows, n_rows_of_chunk, **others):
    n_words = int(words_of(np.full(M, N_CLUSTERS + 1))[-1]) + 1
    return traffic.Sizes(N, M, M * N_CLUSTERS, n_rows, n_rows_of_chunk, N_GPUS, n_words, **others)


STRUCTURED = sizes(n_distinct(N), n_distinct(N // N_GPUS))
ALL_DIFFER = sizes(N, N // N_GPUS)


def seconds(stage):
    over_network = stage.received + stage.to_client + stage.from_client
    return (stage.to_gpu + stage.to_host) / PCIE + over_network / NETWORK


def table(stages):
    """Return the lines of a table of stages."""
    lines = [
        "| stage | to a GPU | from a GPU | from other workers | to the client | from the client | memory | links |"
    ]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|")
    for stage in stages:
        cells = [checks.human_bytes(value) if value else "–" for value in stage[1:]]
        lines.append(f"| {' | '.join([stage.name, *cells, f'{seconds(stage):.3f} s'])} |")
    return lines


@pytest.mark.parametrize("stages", [traffic.merged(STRUCTURED, K), traffic.in_pieces(ALL_DIFFER, K)])
def test_the_tables_of_a_billion_objects_are_those_counted(stages):
    lines = table(stages)
    at = PAGE.index(lines[2])
    assert PAGE[: at + len("\n".join(lines[2:]))].endswith("\n".join(lines))


def said(n_bytes):
    return checks.human_bytes(n_bytes)


def test_the_sentences_say_what_is_counted():
    assert f"are G = {STRUCTURED.n_rows:,} of them, and g = {STRUCTURED.n_rows_of_chunk:,} in a chunk" in WORDS
    assert f"G = 10⁹ and g = {ALL_DIFFER.n_rows_of_chunk:,}." in WORDS
    assert f"K-means takes up to {MOST_ITERATIONS} iterations" in WORDS
    of_labels = STRUCTURED.n_objects_of_chunk * M
    assert f"the files, {said(of_labels)} per worker each time" in WORDS
    of_worker = 8 * ALL_DIFFER.n_objects_of_chunk + ALL_DIFFER.n_rows_of_chunk * (ALL_DIFFER.row_bytes + 8)
    assert f"8 n + g (r + 8) bytes, at most {said(of_worker)} here, of its own memory" in WORDS


def test_what_does_not_fit_is_said_to_be_so():
    wide = traffic.merged(sizes(*STRUCTURED[3:5], label_bytes=8), K)[0]
    alone = traffic.bytes_on_gpu(N, M, STRUCTURED.n_words, 1, 1)
    _, merge, _, method, _ = traffic.merged(ALL_DIFFER, K)
    lists, all_lists = (
        nearest.bytes_needed(np.broadcast_to(np.uint8(0), (n, M)), M * N_CLUSTERS, N_LISTED)
        for n in (STRUCTURED.n_rows, N)
    )
    together = 3 * N * (STRUCTURED.row_bytes + 40)
    assert lists < wide.on_gpu < 0.8 * GPU < min(alone, merge.on_gpu, method.on_gpu, all_lists, together)
    for sentence in (
        f"take {said(wide.on_gpu)} of each GPU, and {said(wide.to_gpu)} are copied to it",
        f"One GPU for all objects would need {said(alone)} if they are one chunk",
        f"would need {said(merge.on_gpu)} for the merge, {said(method.on_gpu)} for the method",
        f"and {said(merge.received)} between workers",
        f"if 3 G (r + 40) bytes, here {said(together)}, do not fit a GPU",
        f"take {said(lists)} for the distinct rows of the first table, but {said(all_lists)} if all rows differ",
        f"brings {said(8 * N)} to the client ({8 * N / NETWORK:.2f} s)",
    ):
        assert sentence in WORDS, sentence


# --- formulas ---------------------------------------------------------------------------------------------------------


def valued(formula, letters):
    """Return the value of a formula in which a space between two factors is a product."""
    code = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", formula.replace("ℓ", "l"))  # as Python reads ℓ
    return 0 if formula == "–" else eval(code, {"__builtins__": {}, "max": max, "min": min}, letters)


FORMULAS = {name: formula for name, formula in re.findall(r"\b([TBRH]) = ((?:[^,.()]|\([^)]*\))+)", WORDS)}
LINES = PAGE.partition("The formulas")[2].partition("|---|")[2].splitlines()[1:]
ROWS = [line.strip("| ").split(" | ") for line in LINES if line.startswith("| ")]


@pytest.mark.parametrize(
    "of",
    [
        STRUCTURED,
        ALL_DIFFER,
        traffic.Sizes(8000, 7, 300, 900, 700, 8, 1, label_bytes=8, code_bytes=2),
        traffic.Sizes(10**7, 40, 1500, 10**6, 10**5, 4, 9, label_bytes=4, code_bytes=1),
    ],
)
def test_formulas_of_the_page_are_those_of_the_program(of):
    d = K
    letters = {"N": of.n_objects, "M": of.n_clusterings, "C": of.n_clusters, "G": of.n_rows, "g": of.n_rows_of_chunk}
    letters |= {"P": of.n_gpus, "n": of.n_objects_of_chunk, "w": of.n_words, "l": of.label_bytes, "s": of.code_bytes}
    letters |= {"d": d, "r": of.row_bytes}
    for name in "TBRH":
        letters[name] = valued(FORMULAS[name].strip(), letters)
    stages = traffic.merged(of, d) + traffic.in_pieces(of, d)[1:]
    assert [name.removeprefix("*in pieces:* ") for name, *_ in ROWS] == [stage.name for stage in stages]
    for stage, (_, *cells) in zip(stages, ROWS, strict=True):
        assert [int(valued(cell, letters)) for cell in cells] == list(stage[1:]), stage.name
