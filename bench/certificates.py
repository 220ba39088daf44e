"""How close certificates are: the largest share of its loss by which another partition than Median's could be better.

    python bench/certificates.py --data DIR [--only matrices pools draws program sizes]
    python bench/certificates.py --quick

matrices  label matrices of 10 and 20 clusterings of real data, of five kinds
pools     100 published clusterings of a set
draws     100 noisy copies of a partition of 400 objects into four clusters
program   the bound by triangles beside the optimum of its linear program, by HiGHS, for few distinct rows
sizes     planted clusters of up to a million objects, nearly all with distinct rows

DIR holds pools/lwec_NAME.npz and ensembles/GROUP.npz, as for quality.py. Half an hour of CPU.
"""

import argparse
import itertools
import os
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import common
import numpy as np
import parts
import report
from modes import noisy
from parts import Job, Part
from quality import names_in
from quality_report import MATRICES

import gpuens as ge

LOSSES = ("binder", "omari", "vi")
LIMITS = (0.01, 0.03, 0.1)  # gaps of which the page tells how many sets keep to them
POOLS = ("VS", "MF", "FCT", "PD")
MOST_OMARI_ROWS = 3_000  # larger pools have no certificate of "omari" here
DRAWS, N_DRAWN = 100, 400
NOISE = {"5 %": 0.05, "10 %": 0.1, "20 %": 0.2, "40 %": 0.4}
MOST_PROGRAM_ROWS = 120  # largest number of distinct rows of a linear program
CUTS = 5_000  # violated triangles that a program takes in at a time
SIZES = (10_000, 100_000, 1_000_000)
M, K, ERRORS = 20, 20, 0.15  # clusterings, planted clusters and share of random labels of `sizes`
QUICK = {"draws": {"10 %": 0.1}, "sizes": (1_000,)}
PACKAGES = ("gpuens", "numpy", "scipy")


def main() -> None:
    jobs = {
        "matrices": matrix_jobs, "pools": pool_jobs, "draws": draw_jobs, "program": program_jobs, "sizes": size_jobs,
    }  # fmt: skip
    parser = parts.parser(__doc__, jobs, quick="one level of noise, a thousand objects")
    parser.add_argument("--data", type=Path, help="directory of npz files (GPUENS_DATA)")
    options = parser.parse_args()
    options.data = Path(options.data or os.environ.get("GPUENS_DATA") or ".")
    warnings.simplefilter("ignore")
    parts.run(
        "certificates", options, {name: Part(of_part) for name, of_part in jobs.items()},
        report.Page("certificates", sys.modules[__name__]).markdown, packages=PACKAGES, setting={},
    )  # fmt: skip


# --- parts ------------------------------------------------------------------------------------------------------------


def label_matrices(options: argparse.Namespace) -> Iterator[tuple[str, np.ndarray]]:
    for group in MATRICES:
        if not options.quick and (path := options.data / "ensembles" / f"{group}.npz").exists():
            with np.load(path) as file:
                yield from ((name, file[f"{name}|labels"]) for name in names_in(path))


def matrix_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name, labels in label_matrices(options):
        yield name, partial(certified, labels)


def pool_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name in POOLS:
        if not options.quick and (path := options.data / "pools" / f"lwec_{name}.npz").exists():
            with np.load(path) as file:
                yield name, partial(certified, file["members"])


def draw_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name, noise in (QUICK["draws"] if options.quick else NOISE).items():
        yield name, partial(certified, drawn(noise))


def program_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name, labels in label_matrices(options):
        if len(np.unique(labels, axis=0)) <= MOST_PROGRAM_ROWS:
            yield name, partial(beside_program, labels)


def size_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n in QUICK["sizes"] if options.quick else SIZES:
        for loss in ("binder", "vi"):
            yield f"{n:,}, {loss}", partial(of_size, n, loss)


def certified(labels: np.ndarray) -> common.Record:
    """Return the certificates of the partitions that Median finds."""
    row: common.Record = {"n": len(labels), "m": labels.shape[1], "rows": len(np.unique(labels, axis=0)), "by": {}}
    for loss in LOSSES:
        if loss != "omari" or row["rows"] <= MOST_OMARI_ROWS:
            est, _, fit_cpu = common.timed(lambda loss=loss: ge.Median(loss=loss).fit(labels))
            row["by"][loss] = of_consensus(labels, est.labels_, loss) | {"fit": fit_cpu}
    return row


def of_consensus(labels: np.ndarray, consensus: np.ndarray, loss: str) -> common.Record:
    found, seconds, cpu = common.timed(lambda: ge.evidence.certificate(labels, consensus, loss))
    about = {"loss": found.objective, "bound": found.bound, "gap": found.gap, "proof": found.by}
    return about | {"cpu": cpu, "seconds": seconds}


def drawn(noise: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    partition = rng.integers(0, 4, N_DRAWN)
    return np.stack([noisy(partition, noise, rng) for _ in range(DRAWS)], axis=1)


def beside_program(labels: np.ndarray) -> common.Record:
    """Return the gaps of Binder's loss by the certificate, and by the linear program of all triangles."""
    est = ge.Median().fit(labels)
    row = of_consensus(labels, est.labels_, "binder")
    optimum, seconds, _ = common.timed(lambda: solve_program(labels))
    program = {"gap": 1 - optimum / est.objective_, "seconds": seconds}
    return {"rows": len(np.unique(labels, axis=0)), "certificate": row, "program": program}


def solve_program(labels: np.ndarray) -> float:
    """Return the smallest Binder loss of x_ij from 0 to 1 with x_ij + x_jk - x_ik ≤ 1, cut by cut."""
    from scipy import sparse
    from scipy.optimize import linprog

    distinct, counts = np.unique(labels, axis=0, return_counts=True)
    n = len(distinct)
    i, j = np.triu_indices(n, 1)
    shares, weights = (distinct[i] == distinct[j]).mean(axis=1), counts[i] * counts[j]
    place = np.zeros((n, n), dtype=int)
    place[i, j] = place[j, i] = np.arange(len(i))
    triples = np.array(list(itertools.combinations(range(n), 3)))
    sides = np.stack([place[triples[:, a], triples[:, b]] for a, b in ((0, 1), (1, 2), (0, 2))], axis=1)
    sides = np.concatenate([sides, sides[:, [0, 2, 1]], sides[:, [1, 2, 0]]])
    cuts = np.empty((0, 3), dtype=int)
    while True:
        columns, values = cuts.ravel(), np.tile([1.0, 1.0, -1.0], len(cuts))
        triangles = sparse.csr_array((values, columns, 3 * np.arange(len(cuts) + 1)), shape=(len(cuts), len(i)))
        costs = weights * (1 - 2 * shares)
        x = linprog(costs, A_ub=triangles, b_ub=np.ones(len(cuts)), bounds=(0, 1), method="highs").x
        excess = x[sides] @ [1.0, 1.0, -1.0] - 1
        worst = np.argsort(-excess)[:CUTS]
        if excess[worst[0]] < 1e-9:
            return 2 * float(weights @ shares + costs @ x) / len(labels) ** 2
        cuts = np.concatenate([cuts, sides[worst[excess[worst] > 1e-9]]])


def of_size(n_objects: int, loss: str) -> common.Record:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, n_objects)
    wrong = rng.random((n_objects, M)) < ERRORS
    labels = np.where(wrong, rng.integers(0, K, (n_objects, M)), truth[:, None]).astype(np.uint8)
    return of_consensus(labels, truth, loss) | {"rows": len(ge.CoreGroups().reduce(ge.Ensemble(labels)).counts)}


# --- the page ---------------------------------------------------------------------------------------------------------


def by_loss(rows: common.Record) -> Iterator[common.Record]:
    """Yield a line for each loss: how many sets have which gap."""
    for loss in LOSSES:
        results = [row["by"][loss] for row in rows.values() if loss in row["by"]]
        if results:
            gaps = np.array([result["gap"] for result in results])
            yield {
                "key": loss, "n": len(gaps), "median": float(np.median(gaps)), "largest": float(gaps.max()),
                "within": [float(np.mean(gaps <= limit)) for limit in LIMITS],
                "cpu": float(np.median([result["cpu"] for result in results])),
                "fit": float(np.median([result["fit"] for result in results])),
            }  # fmt: skip


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    return {"lists": {"loss": list(LOSSES)}}


def every_part(rows: common.Record) -> Iterator[report.Found]:
    if all("by" in row for row in rows.values()):
        for line in by_loss(rows):
            yield "gap", line


if __name__ == "__main__":
    main()
