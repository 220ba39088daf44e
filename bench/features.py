"""From features to consensus: ge.cluster beside single clusterers, and what its base clusterings cost and give.

    python bench/features.py [--only time members landmarks profile] [--data DIR] [--seed 0]
    python bench/features.py --quick

time       blobs of 2,000 … a million objects: ge.cluster(X, k), Lumbermark, Genie and k-means, with two threads
members    ARI and CPU seconds of ge.cluster(X, k) by the number of base clusterings
landmarks  ARI and CPU seconds of mixed_ensemble and LWGP by the number of landmarks
profile    CPU seconds of ge.cluster(X, k) and shares of its steps: blobs, PenDigits, USPS, MNIST and Covertype

Each clusterer and size of "time" is a process of its own, in which a second call is measured after a first. All else
has one thread. The sets of "members" and "landmarks" are the shapes and real sets of quality.py. Scores of the large
sets are in its part "large". Lumbermark and Genie are left out where they are not installed. Half an hour on two
idle cores.
"""

import argparse
import os
import pkgutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import common
import numpy as np
import parts
import quality
import report
from parts import Job, Part
from threadpoolctl import threadpool_limits

SHAPES = ((2_000, 5), (10_000, 5), (100_000, 5), (300_000, 5), (1_000_000, 5))  # (objects, features)
N_BLOBS, APART = 8, 4.0  # number of blobs; standard deviation of the centres / standard deviation within a blob
QUICK_SHAPE = 500, 5
LIMIT = 600  # seconds of a clusterer or of a profile
TWO_THREADS = dict.fromkeys(("GPUENS_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
NUMBERS = {"members": (20, 10, 30, 40, 80), "landmarks": (500, 300, 1000)}  # others are compared with the first
N_SEEDS = 2
GROUPS = ("shapes", "real")  # groups of sets with features
PROFILED = ((2_000, 5), (100_000, 5))  # blobs
CALLS = 5  # number of profiled calls with blobs
STEPS = {  # the function of each step, as (module or class, name)
    "landmarks": ("gpuens.generate.landmark_graph:Landmarks", "of_sample"),
    "graph": ("gpuens.generate.landmark_cut", "graph_of"),
    "products": ("gpuens.generate.landmark_cut", "landmark_products"),
    "eigenvectors": ("gpuens.generate.landmark_cut", "leading_directions"),
    "clusters": ("gpuens.generate.landmark_cut", "restarts"),
    "trees": ("gpuens.generate.landmark_cut", "genie"),
    "consensus": ("gpuens:LWGP", "fit"),
    "agreement": ("gpuens.workflows.gate", "agreement_of"),
    "fallback": ("gpuens.workflows.gate", "pass_gate"),
}
GOALS = {"2,000 × 5": 0.12, "10,000 × 5": 0.35, "100,000 × 5": 1.0, "300,000 × 5": 2.2, "1,000,000 × 5": 6.0}  # seconds
GOALS_OF_CPU = {"mnist": 25.0, "covtype": 12.0}  # CPU seconds
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn", "lumbermark", "genieclust")


def main() -> None:
    jobs: dict[str, Callable[..., Iterator[Job]]] = {
        "time": time_jobs, "members": partial(set_jobs, "members"), "landmarks": partial(set_jobs, "landmarks"),
        "profile": profile_jobs,
    }  # fmt: skip
    parser = parts.parser(__doc__, jobs, quick="few objects, no rivals but Lumbermark")
    parser.add_argument("--data", type=Path, help="directory of npz files and shapes/*.npz (GPUENS_DATA)")
    options = parser.parse_args()
    options.data = Path(options.data or os.environ.get("GPUENS_DATA") or ".")
    parts.run(
        "features", options, {name: Part(job) for name, job in jobs.items()},
        report.Page("features", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting={"blobs": N_BLOBS, "seeds": N_SEEDS, "numbers": list(NUMBERS.values()), "calls": CALLS},
    )  # fmt: skip


def time_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n, d in (QUICK_SHAPE,) if options.quick else SHAPES:
        for name in list(CLUSTERERS)[: 2 if options.quick else None]:
            run = partial(common.in_child, of_second_call, limit=LIMIT, environment=TWO_THREADS)
            yield f"{n:,} × {d}: {name}", partial(run, n=n, d=d, name=name, seed=options.seed)


def set_jobs(part: str, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    numbers = NUMBERS[part][:2] if options.quick else NUMBERS[part]
    with threadpool_limits(1):
        LABELS[part](blobs(*QUICK_SHAPE, 0)[0], N_BLOBS, numbers[0], 0)  # this call imports packages
    for group, path in quality.sets_of(options):
        for seed in range(options.seed, options.seed + (1 if options.quick else N_SEEDS)) if group in GROUPS else ():
            yield f"{path.stem}, {seed}", partial(by_number, part, numbers, group, path, seed)


def profile_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n, d in (QUICK_SHAPE,) if options.quick else PROFILED:
        yield f"blobs, {n:,} × {d}", partial(of_blobs, n, d, options.seed)
    for name in () if options.quick else quality.LARGE:
        if (path := options.data / f"{name}.npz").exists():
            yield name, partial(of_file, path, options.seed)


# --- clusterers -------------------------------------------------------------------------------------------------------


def blobs(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (n, d) and the classes (n,) of spherical clusters of about equal sizes."""
    rng = np.random.default_rng(seed)
    centers, y = APART * rng.standard_normal((N_BLOBS, d)), rng.integers(N_BLOBS, size=n)
    return centers[y] + rng.standard_normal((n, d)), y


def lumbermark(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from lumbermark import Lumbermark

    return Lumbermark(k).fit_predict(X)


def genie(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from genieclust import Genie

    return Genie(k, M=5).fit_predict(X)


CLUSTERERS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "ge.cluster": quality.clustered, "Lumbermark": lumbermark, "Genie": genie, "k-means": quality.k_means,
}  # fmt: skip


def by_members(X: np.ndarray, k: int, n_clusterings: int, seed: int) -> np.ndarray:
    import gpuens as ge

    return ge.cluster(X, k, n_clusterings=n_clusterings, random_state=seed, progress=False).labels_


def by_landmarks(X: np.ndarray, k: int, n_landmarks: int, seed: int) -> np.ndarray:
    import gpuens as ge

    how = {"n_clusters": k, "n_landmarks": n_landmarks, "random_state": seed, "progress": False}
    return ge.LWGP(k, random_state=seed).fit(ge.generate.mixed_ensemble(X, **how)).labels_


LABELS = {"members": by_members, "landmarks": by_landmarks}


# --- what is measured -------------------------------------------------------------------------------------------------


def of_second_call(n: int, d: int, name: str, seed: int) -> common.Record:
    """Return seconds, CPU seconds, peak memory and ARI of a clusterer's second call, and the costs of its first."""
    import gpuens as ge
    from gpuens.runtime import record

    warnings.simplefilter("ignore")
    X, y = blobs(n, d, seed)
    costs = []
    for _ in range(2):
        record.forget_peak_memory()
        try:
            labels, seconds, cpu = common.timed(lambda: CLUSTERERS[name](X, N_BLOBS, seed))
        except ModuleNotFoundError as error:
            return {"failed": f"left out: {error.name} is not installed"}
        costs.append({"seconds": seconds, "cpu": cpu, "peak": common.peak_memory()})
    first, second = costs
    return {"n": n, "d": d, **second, "first": first, "ari": ge.metrics.ari(y, labels), "load": common.load()}


def by_number(part: str, numbers: tuple[int, ...], group: str, path: Path, seed: int) -> common.Record:
    """Return scores and CPU seconds of the consensus of a set, by the number of base clusterings or landmarks."""
    warnings.simplefilter("ignore")
    labelled, scores = quality.Given(group, path), {}
    for number in numbers:
        with threadpool_limits(1):
            labels, _, cpu = common.timed(lambda number=number: LABELS[part](labelled.X, labelled.k, number, seed))
        scores[str(number)] = labelled.scores(labels) | {"cpu": cpu}
    return labelled.about | {"by": scores}


def of_blobs(n: int, d: int, seed: int) -> common.Record:
    X, _ = blobs(n, d, seed)
    return common.forked(profile_of, X, N_BLOBS, CALLS, seed, limit=LIMIT)


def of_file(path: Path, seed: int) -> common.Record:
    with np.load(path) as file:
        X, k = file["X"].astype(np.float32), len(np.unique(file["y"]))
    return common.forked(profile_of, X, k, 1, seed, limit=LIMIT)


def profile_of(X: np.ndarray, k: int, n_calls: int, seed: int) -> common.Record:
    """Return CPU seconds of ge.cluster(X, k) and the share of each step, after a call with few objects."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        quality.clustered(X[:: max(1, len(X) // 1000)][:1000], k, seed)
    spent: Counter[str] = Counter()

    def timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            start = process_time()
            try:
                return function(*arguments, **options)
            finally:
                spent[step] += process_time() - start

        return call

    for step, (owner, name) in STEPS.items():
        holder = pkgutil.resolve_name(owner)
        setattr(holder, name, timed(step, getattr(holder, name)))
    with threadpool_limits(1):
        _, seconds, cpu = common.timed(lambda: [quality.clustered(X, k, seed) for _ in range(n_calls)])
    shares = {step: spent[step] / cpu for step in STEPS}
    shares["rest"] = 1.0 - sum(shares.values())
    costs = {"seconds": seconds / n_calls, "cpu": cpu / n_calls, "load": common.load()}
    return {"n": len(X), "d": X.shape[1], "k": k, **costs, "shares": shares}


# --- the page ---------------------------------------------------------------------------------------------------------


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    keys = {group: [key.split(", ") for key, row in rows.items() if row.get("group") == group] for group in GROUPS}
    n_sets = {group: len({name for name, _ in of_group}) for group, of_group in keys.items()}
    seeds = len({seed for of_group in keys.values() for _, seed in of_group})
    return {"blobs": N_BLOBS, "apart": APART, "n_sets": n_sets, "seeds": seeds, "calls": CALLS}


def time(rows: common.Record) -> Iterator[report.Found]:
    for shape, goal in GOALS.items():
        if row := rows.get(f"{shape}: ge.cluster"):
            rivals = {name: peer for name in CLUSTERERS if (peer := rows.get(f"{shape}: {name}")) not in (None, row)}
            beside = [f"{name} {common.seconds(peer['seconds'])}" for name, peer in rivals.items()]
            yield "time", {"shape": shape, **row, "beside": beside, "goal": goal, "ok": row["seconds"] <= goal}


def by_value(rows: common.Record) -> list[common.Record]:
    """Return, for each number, mean ARI and CPU seconds, and the gain over the first on the same sets, with its p."""
    numbers = list(next(iter(rows.values()))["by"])
    first, lines = numbers[0], []
    gains: dict[str, dict[str, list[float]]] = {number: {} for number in numbers}
    for key, row in rows.items():
        for number in numbers:
            gain = row["by"][number]["ari"] - row["by"][first]["ari"]
            gains[number].setdefault(key.split(", ")[0], []).append(gain)
    for number in sorted(numbers, key=int):
        line: common.Record = {"key": number, "sets": int(number) // 2}
        for group in GROUPS:
            scores = [row["by"][number] for row in rows.values() if row["group"] == group]
            line[group] = {kind: np.mean([score[kind] for score in scores]) for kind in ("ari", "cpu") if scores}
        of_sets = np.array([np.mean(of_set) for of_set in gains[number].values()])
        line |= {"gain": float(of_sets.mean()), "p": report.p_value(of_sets), "first": number == first}
        lines.append(line)
    return lines


def gains(rows: common.Record) -> Iterator[report.Found]:
    first = next(line for line in by_value(rows) if line["first"])
    texts = [f"{line['key']} {line['gain']:+.3f} (p {line['p']:.2f})" for line in by_value(rows) if not line["first"]]
    yield "gains", {**first, "others": texts}


members = landmarks = gains


def profile(rows: common.Record) -> Iterator[report.Found]:
    for name, goal in GOALS_OF_CPU.items():
        if row := rows.get(name):
            yield "cpu", {"name": name, **row, "goal": goal, "ok": row["cpu"] <= goal}


if __name__ == "__main__":
    main()
