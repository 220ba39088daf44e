"""Hypergraph partitioning by Mt-KaHyPar: k parts of similar weight that split the fewest clusters.

Rows are vertices, weighted by their number of objects. Each cluster is a hyperedge of all its rows; a row without a
label in a clustering is in none of the clustering's hyperedges. Mt-KaHyPar runs in a process of its own, with a time
limit. If the process fails or crashes, an error of one sentence is raised.

Gottesbüren, Heuer, Maas, Sanders & Schlag, "Scalable high-quality hypergraph partitioning", ACM Transactions on
Algorithms 20 (2024).
"""

import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, by_first_row
from gpuens.partition.base import DIAGONAL, Partition, Partitioner
from gpuens.partition.metis import LEVELS, MOST_WEIGHT, limit_to_a_part, scaled_weights
from gpuens.runtime import checks, installing
from gpuens.runtime import device as devices
from gpuens.runtime.failures import LostProcess

PACKAGE, EXTRA = "mtkahypar", "hgpa"
PROGRAM = (sys.executable, "-P", str(Path(__file__).with_name("mtkahypar_process.py")))
OBJECTIVES = ("km1", "cut")
EDGE_WEIGHTS = ("one", "size")
LARGEST = 2**31 - 1  # largest integer in Mt-KaHyPar's wheels
# memory in both processes for a row in a hyperedge; measured in Mt-KaHyPar's process: 60 to 70 bytes
BYTES_PER_PIN = 120


@dataclass(frozen=True, eq=False)
class HypergraphCut(Partitioner):
    """Mt-KaHyPar's cut of the hypergraph of rows and clusters; the weights of clusters are the diagonal of S.

    Parameters
    ----------
    objective : {"km1", "cut"}
        The cost of a cluster that is in p parts: "km1" is p - 1 times its weight, "cut" its weight if p > 1.
    hyperedge_weight : {"one", "size"}
        "size" multiplies the weight of a cluster by its number of objects.
    imbalance : float > 0
        The share by which a part may be heavier than the average: 0.05 is 5 %.
    max_seconds : float from 1 to 10 million
        The time limit of the process.
    random_state : int, None or numpy.random.Generator
        The same seed gives the same labels, for any number of threads.
    """

    objective: str = "km1"
    hyperedge_weight: str = "one"
    imbalance: float = 0.05
    max_seconds: float = 600.0
    random_state: Any = 0
    takes = DIAGONAL

    def __post_init__(self) -> None:
        checks.check_choice(self.objective, "objective", OBJECTIVES)
        checks.check_choice(self.hyperedge_weight, "hyperedge_weight", EDGE_WEIGHTS)
        checks.check_real(self.imbalance, "imbalance", above=0.0)
        checks.check_between(self.max_seconds, "max_seconds", 1.0, 1e7)
        checks.make_generator(self.random_state)

    @property
    def lacks(self) -> str | None:
        if find_spec(PACKAGE) is not None:
            return None
        return f"hypergraphs are cut by {PACKAGE}, which is not installed: {installing.command(EXTRA)}."

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        checks.check_memory(
            BYTES_PER_PIN * rows.n_rows * rows.n_clusterings,
            devices.memory_budget(),
            f"the hypergraph of {rows.n_rows:,} rows with {rows.n_clusterings} labels each",
            "reduce the rows first, reduction=CATree(…) or Sample(…)",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        if n_clusters in (1, len(rows)):
            return Partition.of_labels(np.arange(len(rows)) % n_clusters)
        edges = similarity.weights * (rows.cluster_sizes() if self.hyperedge_weight == "size" else 1)
        weights = scaled_weights(rows.counts, MOST_WEIGHT)
        seed = int(checks.make_generator(self.random_state).integers(LARGEST))
        with tempfile.TemporaryDirectory(prefix="gpuens") as folder:
            hypergraph, parts = Path(folder, "rows.hgr"), Path(folder, "parts.txt")
            write_hypergraph(hypergraph, rows, _scale_edges(edges, n_clusters), limit_to_a_part(weights, n_clusters))
            settings = n_clusters, min(float(self.imbalance), n_clusters - 1.0), self.objective.upper(), seed
            arguments = (hypergraph, parts, *settings, devices.n_threads())
            run_within([*PROGRAM, *map(str, arguments)], float(self.max_seconds))
            labels = read_parts(parts, len(rows), n_clusters)
        partition = Partition.of_labels(by_first_row(labels))
        checks.warn_of_fewer(partition.n_clusters, n_clusters)
        return partition


def write_hypergraph(path: Path, rows: Rows, edge_weights: np.ndarray, weights: np.ndarray) -> None:
    """Write rows as a hypergraph in hMetis's format: a hyperedge for each cluster of at least two rows.

    The line of a hyperedge has its weight, from ``edge_weights`` (N_c,), and its rows, numbered from 1. After the
    hyperedges, there is a line for each row with its weight, from ``weights`` (G,).
    """
    codes = devices.to_host(rows.codes)
    lines = []
    for m, first in enumerate(rows.offsets[:-1].tolist()):
        column = codes[:, m]
        n_rows = np.bincount(column[column != rows.ensemble.missing_code], minlength=rows.offsets[m + 1] - first)
        members = np.split(np.argsort(column, kind="stable") + 1, np.cumsum(n_rows))[:-1]  # missing labels come last
        lines += [
            f"{edge_weights[first + c]} {' '.join(map(str, rows_of_cluster.tolist()))}\n"
            for c, rows_of_cluster in enumerate(members)
            if len(rows_of_cluster) > 1
        ]
    with open(path, "w") as file:
        file.write(f"{len(lines)} {len(rows)} 11\n")
        file.writelines(lines)
        file.writelines(f"{weight}\n" for weight in weights.tolist())


def run_within(command: list[str], max_seconds: float) -> None:
    """Run a command; if it fails or takes too long, raise an error of one sentence."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            code = process.wait(max_seconds)
        except subprocess.TimeoutExpired as error:
            raise LostProcess(
                f"Mt-KaHyPar was ended after max_seconds={max_seconds:g}; allow more, or work on a sample, "
                "reduction=Sample(…)."
            ) from error
        finally:  # also after Ctrl-C
            process.kill()
            process.wait()
        if code == 0:
            return
        errors.seek(max(0, errors.tell() - 4096))
        error_lines = errors.read().decode(errors="replace").strip().splitlines()
    if code < 0:
        number = -code
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        how = f"crashed ({name}{', as where memory runs out' if name == 'SIGKILL' else ''})"
    else:
        last = error_lines[-1] if error_lines else f"exit code {code}"
        how = f"failed ({checks.gist(RuntimeError(last)).partition(': ')[2]})"
    raise LostProcess(
        f"Mt-KaHyPar {how} in a process of its own; take another random_state, fewer rows, reduction=Sample(…), or "
        "another method such as 'cspa'."
    )


def read_parts(path: Path, n_rows: int, n_parts: int) -> np.ndarray:
    """Return the part of each row (G,), int64, read from a file; raise an error if the file has any other content."""
    try:
        parts = np.array(path.read_text().split(), dtype=np.int64)
    except (OSError, ValueError):
        parts = np.empty(0, dtype=np.int64)
    if len(parts) != n_rows or parts.min() < 0 or parts.max() >= n_parts:
        raise LostProcess(
            f"Mt-KaHyPar ended without a part for each of {n_rows} rows; install another version of {PACKAGE}, or take "
            "another method such as 'cspa'."
        )
    return parts


def _scale_edges(weights: np.ndarray, n_parts: int) -> np.ndarray:
    """Return the weights of hyperedges, scaled to integers ≥ 1 that are so small that no objective overflows."""
    room = LARGEST // (n_parts - 1)
    if weights.dtype.kind != "i" or weights.sum() > room:
        weights = np.rint(weights * min(LEVELS / weights.max(), (room - len(weights)) / weights.sum()))
    return np.maximum(weights, 1).astype(np.int64)
