"""How often the number of modes is right: noisy copies of one, two or three partitions.

    python bench/modes.py [--only few many] [--repetitions 20]
    python bench/modes.py --quick

few   28 objects, 100 clusterings
many  200 objects, 100 clusterings

A quarter of an hour of CPU.
"""

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import common
import numpy as np
import parts
import report
from parts import Job, Part

import gpuens as ge

K = 4  # clusters of each partition
CASES = {
    "1": ("far", (1.0,)),
    "2 far, 50:50": ("far", (0.5, 0.5)),
    "2 far, 70:30": ("far", (0.7, 0.3)),
    "2 far, 90:10": ("far", (0.9, 0.1)),
    "2 near, 50:50": ("near", (0.5, 0.5)),
    "2 near, 90:10": ("near", (0.9, 0.1)),
    "3 far, 40:30:30": ("far", (0.4, 0.3, 0.3)),
}
NOISE = {"0 %": 0.0, "10 %": 0.1, "20 %": 0.2, "40 %": 0.4, "0 … 60 %": None}  # shares of random labels
MOST_NOISE = 0.6  # largest share of random labels where each clustering has its own share
SIZES = {"few": (28, 100), "many": (200, 100)}  # objects and clusterings
QUICK = {"few": (28, 30), "many": (40, 30)}
PACKAGES = ("gpuens", "numpy", "scipy")

Case: TypeAlias = tuple[str, tuple[float, ...], float | None, int, int]


def main() -> None:
    parser = parts.parser(__doc__, SIZES, quick="few clusterings, two simulations")
    parser.add_argument("--repetitions", type=int, default=20, help="simulations of each case (20)")
    options = parser.parse_args()
    options.repetitions = 2 if options.quick else options.repetitions
    sizes = QUICK if options.quick else SIZES
    parts.run(
        "modes", options, {name: Part(partial(of_size, size)) for name, size in sizes.items()},
        report.Page("modes", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting={"repetitions": options.repetitions, "sizes": sizes},
    )  # fmt: skip


def of_size(size: tuple[int, int], options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for modes, (kind, shares) in CASES.items():
        for label, noise in NOISE.items():
            yield f"{modes}; {label}", partial(simulated, (kind, shares, noise, *size), options.repetitions)


def simulated(case: Case, repetitions: int) -> common.Record:
    """Return the shares of the simulations of a case with the right number of modes and with more, and the mean ARI."""
    n_modes, numbers, agreement = len(case[1]), [], []
    for seed in range(repetitions):
        labels, mode_of = drawn(*case, np.random.default_rng(seed))
        modes = ge.modes(labels)
        numbers.append(len(modes.modes))
        agreement.append(ge.metrics.ari(mode_of, modes.of_clustering))
    right, too_many = np.equal(numbers, n_modes).mean(), np.greater(numbers, n_modes).mean()
    return {"right": float(right), "more": float(too_many), "ari": float(np.mean(agreement))}


def drawn(
    kind: str,
    shares: tuple[float, ...],
    noise: float | None,
    n_objects: int,
    n_clusterings: int,
    rng: np.random.Generator,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return clusterings (lists of n_objects labels), and the number of the partition of each (n_clusterings,)."""
    first = rng.integers(0, K, n_objects)
    partitions = [first]
    for mode in range(1, len(shares)):
        moved = (first == mode) & (rng.random(n_objects) < 0.5)
        partitions.append(rng.integers(0, K, n_objects) if kind == "far" else np.where(moved, mode - 1, first))
    mode_of = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_clusterings).astype(int))
    errors = rng.uniform(0, MOST_NOISE, len(mode_of)) if noise is None else np.full(len(mode_of), noise)
    return [noisy(partitions[mode], error, rng) for mode, error in zip(mode_of, errors, strict=True)], mode_of


def noisy(partition: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    labels, is_noise = partition.copy(), rng.random(len(partition)) < share
    labels[is_noise] = rng.integers(0, K, is_noise.sum())
    return rng.permutation(K)[labels]


# --- the page ---------------------------------------------------------------------------------------------------------


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    setting = record["parts"][name]["setting"]
    n_objects, n_clusterings = setting["sizes"][name]
    return {
        "n_objects": n_objects, "n_clusterings": n_clusterings, "repetitions": setting["repetitions"],
        "lists": {"noise": list(NOISE)},
    }  # fmt: skip


def lines(rows: common.Record) -> Iterator[common.Record]:
    """Yield a line for each mixture of partitions, with the row of each share of random labels."""
    for modes in CASES:
        yield {"key": modes, "at": {noise: rows.get(f"{modes}; {noise}") for noise in NOISE}}


def every_part(rows: common.Record) -> Iterator[report.Found]:
    shares = [row["more"] for key, row in rows.items() if key.startswith("1;")]
    yield "more", {"most": max(row["more"] for row in rows.values()), "of_one": max(shares, default=None)}


if __name__ == "__main__":
    main()
