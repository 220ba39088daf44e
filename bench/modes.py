"""How often the number of modes is right: noisy copies of one, two or three partitions.

    python bench/modes.py [n_repetitions]

writes bench/results/modes.json and modes.md.
"""

import json
import sys
from pathlib import Path

import numpy as np

import gpuens as ge

RESULTS = Path(__file__).parent / "results"
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


def main(repetitions):
    rows = []
    for n_objects, n_clusterings in SIZES:
        for name, (kind, shares) in CASES.items():
            for noise in NOISE:
                found, agreement = [], []
                for seed in range(repetitions):
                    labels, own = drawn(kind, shares, noise, n_objects, n_clusterings, np.random.default_rng(seed))
                    modes = ge.modes(labels)
                    found.append(len(modes.modes))
                    agreement.append(ge.metrics.ari(own, modes.of_clustering))
                right = np.mean(np.array(found) == len(shares))
                rows.append(
                    {
                        "n_objects": n_objects,
                        "n_clusterings": n_clusterings,
                        "modes": name,
                        "noise": noise,
                        "right": float(right),
                        "more": float(np.mean(np.array(found) > len(shares))),
                        "ari": float(np.mean(agreement)),
                    }
                )
                print(rows[-1], flush=True)
    (RESULTS / "modes.json").write_text(json.dumps({"repetitions": repetitions, "rows": rows}, indent=1) + "\n")
    (RESULTS / "modes.md").write_text(page(rows, repetitions))


def page(rows, repetitions):
    """Return the results as a page of Markdown tables."""
    text = (
        "# Modes: is their number right?\n\n"
        f"The share of {repetitions} simulations in which `ge.modes` finds the number of modes, by the share of random "
        "labels.\nPartitions have four clusters. Far ones are independent; near ones differ in half of a cluster. The "
        "script is `bench/modes.py`.\n"
    )
    for n_objects, n_clusterings in SIZES:
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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
