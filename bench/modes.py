"""How often the number of modes is right: noisy copies of one, two or three partitions.

    python bench/modes.py [--repetitions 20] [--quick] [--output bench/results/modes.json]

writes the record as JSON and, beside it, as a page of Markdown tables.
"""

import argparse
from pathlib import Path

import common
import numpy as np

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
NOISE = (0.0, 0.1, 0.2, 0.4, "0 … .6")  # shares of random labels; the last differs between clusterings
SIZES = ((28, 100), (200, 100))  # objects and clusterings
QUICK = ((28, 30),)
KEYS = "n_objects", "n_clusterings", "modes", "noise"


def noisy(partition, share, rng):
    labels, some = partition.copy(), rng.random(len(partition)) < share
    labels[some] = rng.integers(0, K, some.sum())
    return rng.permutation(K)[labels]


def drawn(kind, shares, noise, n_objects, n_clusterings, rng):
    """Return clusterings, and the number of the partition of each."""
    first = rng.integers(0, K, n_objects)
    partitions = [first]
    for mode in range(1, len(shares)):
        moved = (first == mode) & (rng.random(n_objects) < 0.5)
        partitions.append(rng.integers(0, K, n_objects) if kind == "far" else np.where(moved, mode - 1, first))
    own = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_clusterings).astype(int))
    errors = np.full(len(own), noise) if isinstance(noise, float) else rng.uniform(0, 0.6, len(own))
    return [noisy(partitions[mode], error, rng) for mode, error in zip(own, errors, strict=True)], own


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20, help="simulations of each case (20)")
    parser.add_argument("--quick", action="store_true", help="few clusterings, two simulations")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results/modes.json")
    args = parser.parse_args()
    repetitions, sizes = (2, QUICK) if args.quick else (args.repetitions, SIZES)
    rows = []
    for n_objects, n_clusterings in sizes:
        for name, (kind, shares) in CASES.items():
            for noise in NOISE:
                case = kind, shares, noise, n_objects, n_clusterings
                rows.append(
                    dict(zip(KEYS, (n_objects, n_clusterings, name, noise), strict=True)) | tried(case, repetitions)
                )
                print(rows[-1], flush=True)
    common.save(args.output, {"repetitions": repetitions, "rows": rows}, page(rows, repetitions, sizes))


def tried(case, repetitions):
    """Return the shares of the simulations of a case with the right number of modes and with more, and the mean ARI."""
    n_modes, found, agreement = len(case[1]), [], []
    for seed in range(repetitions):
        labels, own = drawn(*case, np.random.default_rng(seed))
        modes = ge.modes(labels)
        found.append(len(modes.modes))
        agreement.append(ge.metrics.ari(own, modes.of_clustering))
    found = np.array(found)
    shares = {"right": float(np.mean(found == n_modes)), "more": float(np.mean(found > n_modes))}
    return {**shares, "ari": float(np.mean(agreement))}


def page(rows, repetitions, sizes):
    """Return the results as a page of Markdown tables."""
    text = (
        "# Modes: is their number right?\n\n"
        f"The share of {repetitions} simulations in which `ge.modes` finds the number of modes, by the share of random "
        "labels.\nPartitions have four clusters. Far ones are independent; near ones differ in half of a cluster. The "
        "script is `bench/modes.py`.\n"
    )
    for n_objects, n_clusterings in sizes:
        text += f"\n## {n_objects} objects, {n_clusterings} clusterings\n\n"
        text += "| modes | " + " | ".join(str(noise).replace("0.", ".") for noise in NOISE) + " |\n"
        text += "|---" + "|--:" * len(NOISE) + "|\n"
        for name in CASES:
            own = [row for row in rows if (row["n_objects"], row["n_clusterings"]) == (n_objects, n_clusterings)]
            shares = [f"{row['right']:.2f}" for row in own if row["modes"] == name]
            text += f"| {name} | " + " | ".join(shares) + " |\n"
    more = max(row["more"] for row in rows)
    one = [row for row in rows if row["modes"] == "1"]
    text += f"\nMore modes than there are: at most {more:.2f} of the simulations of a case; of a single mode, "
    return text + f"{max(row['more'] for row in one):.2f}.\n"


if __name__ == "__main__":
    main()
