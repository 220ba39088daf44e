"""Print the CPU seconds of point estimates and credible balls of draws, beside R's mcclust.ext.

    python bench/draws.py [--objects 1000] [--draws 500] [--credibleball FILE]

The draws are noisy copies of 10 planted clusters, two of which are one in every third draw. FILE is R/credibleball.R of
mcclust.ext (github.com/sarawade/mcclust.ext), which needs R alone; its bounds must be ours. Without it, ours only.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpuens as ge

K = 10
LOSSES = {"vi": "VI", "binder": "Binder"}  # the names in R
SCRIPT = """
source("{source}")
draws <- as.matrix(read.csv("draws.csv", header = FALSE))
partition <- scan("partition.csv", quiet = TRUE)
time <- system.time(ball <- credibleball(partition, draws, "{loss}"))
cat(sum(time[1:2]), ball$dist.horiz, ball$dist.uppervert, ball$dist.lowervert)
"""


def draw(n_draws: int, n_objects: int) -> np.ndarray:
    """Return draws (n_draws, n_objects) with clusters numbered in the order of their first objects."""
    rng = np.random.default_rng(0)
    truth = np.sort(rng.integers(K, size=n_objects))
    draws = []
    for _ in range(n_draws):
        labels = np.where(truth == K - 1, K - 1 - (rng.random() < 1 / 3), truth)
        strays = rng.random(n_objects) < 0.2
        labels = np.where(strays, rng.integers(K + rng.integers(4), size=n_objects), labels)
        _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        draws.append(np.argsort(np.argsort(first))[codes])
    return np.array(draws)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def by_r(source: Path, draws: np.ndarray, partition: np.ndarray, loss: str) -> list[float]:
    """Return the CPU seconds and the distances of the horizontal, upper and lower bounds of credibleball in R."""
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(f"{folder}/draws.csv", draws + 1, fmt="%d", delimiter=",")
        np.savetxt(f"{folder}/partition.csv", partition + 1, fmt="%d")
        command = ["Rscript", "-e", SCRIPT.format(source=source.resolve(), loss=LOSSES[loss])]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return list(map(float, done.stdout.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000, metavar="N")
    parser.add_argument("--draws", type=int, default=500, metavar="S")
    parser.add_argument("--credibleball", type=Path, metavar="FILE", help="R/credibleball.R of mcclust.ext")
    options = parser.parse_args()
    draws = draw(options.draws, options.objects)
    ensemble = ge.Ensemble(draws.T, wide=True)
    ge.Median().fit(draws[:3].T[:20])  # without the time of imports
    print(f"{options.draws:,} draws of {options.objects:,} objects\n")
    print("| step | CPU seconds | clusters, or distances |\n|---|---|---|")
    for loss in ("omari", "binder", "vi"):
        seconds, est = timed(lambda loss=loss: ge.Median(loss=loss).fit(ensemble))
        print(f"| Median, {loss} | {seconds:.2f} | {est.n_clusters_} |", flush=True)
    for loss in LOSSES:
        seconds, ball = timed(lambda loss=loss: ge.evidence.credible_ball(ensemble, est.labels_, loss=loss))
        bounds = [ball.horizontal.distance, ball.upper.distance, ball.lower.distance]
        print(f"| credible_ball, {loss} | {seconds:.3f} | {' '.join(f'{bound:.4f}' for bound in bounds)} |", flush=True)
        if options.credibleball is not None:
            seconds, *theirs = by_r(options.credibleball, draws, est.labels_, loss)
            if not np.allclose(bounds, theirs, rtol=1e-5):
                raise SystemExit(f"mcclust.ext has the bounds {theirs}, not {bounds}.")
            print(f"| credibleball of mcclust.ext, {loss} | {seconds:.1f} | the same |", flush=True)


if __name__ == "__main__":
    main()
