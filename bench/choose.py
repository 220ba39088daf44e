"""A benchmark of choose_k: how often choose_k and single criteria find the number of clusters, and its cost.

    python bench/choose.py [--only planted noise real scaling] [--data DIR]
    python bench/choose.py --quick

planted  12 mixtures of 2 … 15 spherical clusters of unlike sizes
noise    5 kinds of data without clusters, with 19 reference data sets (M3C) each
real     iris, wine and digits of scikit-learn; pendigits (pendig_test.npz) and segmentation (is.npz) of --data
scaling  seconds and memory of a choice from features and from one ensemble, a thousand to a million objects

A choice from features compares 20 clusterings by k-means of 80 % of the objects for each number (Monti's), features
scaled to unit variance: the smallest PAC, the elbow of relative change in area, the largest mean silhouette and others
(`by_criterion`). It suggests by ten clusterings by k-means and ten by landmarks. "of labels" is what is
suggested for 50 clusterings by k-means with 2 … √N clusters, and the longest lifetime that of their tree. What is
measured for scaling has a process of its own. Five minutes of CPU.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part
from vs_peers import K_BOUNDS, N_CLUSTERINGS, mixture

PLANTED = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15)
N_PLANTED, N_NOISE, N_FEATURES = 400, 200, 5
APART = 3.0  # standard deviation of the centres / standard deviation within a cluster
KS, KS_OF_NOISE = range(2, 19), range(2, 9)
CLUSTERINGS, OF_A_TREE, NULL = 20, 50, 19
REAL = {"iris": "iris", "wine": "wine", "digits": "digits", "pendigits": "pendig_test", "segmentation": "is"}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TREE = "eac"  # the method; its tree also has lifetimes
# scaling from features: number of clusterings for each number of clusters, and the numbers of clusters
SMALL, FEW_KS = 5, (2, 4, 6)
FEW = 300  # objects of the first, small choice, which loads code
CRITERIA = {
    "suggested": "choose_k", "of_labels": "of labels",
    "pac": "argmin PAC", "corrected_pac": "PAC / chance", "delta_area": "Δ-area elbow",
    "inconsistency": "IC", "mean_silhouette": "silhouette", "lifetime": "lifetime",
}  # fmt: skip
PACKAGES = ("gpuens", "numpy", "scikit-learn")


def main() -> None:
    todo = {"planted": of_planted, "noise": of_noise, "real": of_real, "scaling": of_scaling}
    parser = parts.parser(__doc__, todo, quick="few objects, numbers and sets")
    parser.add_argument("--data", type=Path, help="directory of npz files (GPUENS_DATA)")
    options = parser.parse_args()
    parts.run(
        "choose", options, {name: Part(jobs) for name, jobs in todo.items()},
        report.Page("choose", sys.modules[__name__]).markdown, packages=PACKAGES, setting={"clusterings": CLUSTERINGS},
        said=lambda row: ", ".join(f"{name} {row['by'][name]}" for name in CRITERIA if name in row.get("by", {})),
    )  # fmt: skip


# --- how often it is right --------------------------------------------------------------------------------------------


def of_planted(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for k in PLANTED[:2] if options.quick else PLANTED:
        rng = np.random.default_rng([options.seed, k])
        shares = rng.uniform(1, 3, k)
        of = rng.choice(k, N_PLANTED // 4 if options.quick else N_PLANTED, p=shares / shares.sum())
        X = APART * rng.standard_normal((k, N_FEATURES))[of] + rng.standard_normal((len(of), N_FEATURES))
        yield f"{k} clusters", partial(both, X, k, options)


def of_noise(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    rng = np.random.default_rng(options.seed)
    ball = rng.standard_normal((N_NOISE, N_FEATURES))
    kinds = {
        "ball": ball,
        "long": ball * [9, 3, 1, 1, 1],
        "cube": rng.random((N_NOISE, 3)),
        "correlated": ball @ rng.standard_normal((N_FEATURES, N_FEATURES)),
        "heavy tails": rng.standard_t(5, (N_NOISE, N_FEATURES)),
    }
    for kind in list(kinds)[:1] if options.quick else kinds:
        yield kind, partial(beyond_chance, kinds[kind][: 60 if options.quick else None], options)


def of_real(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name in list(REAL)[:1] if options.quick else REAL:
        yield name, partial(known, REAL[name], options)


def known(name: str, options: argparse.Namespace) -> common.Record:
    import gpuens as ge

    try:
        data_set = ge.datasets.load(name, data=options.data)
    except ValueError:
        return {"failed": f"left out: {name}.npz is not there; name its directory by --data"}
    X = np.asarray(data_set.X, dtype=np.float64)
    X = X[:, X.std(axis=0) > 0]
    return both((X - X.mean(axis=0)) / X.std(axis=0), data_set.n_classes, options)


def both(X: np.ndarray, k: int, options: argparse.Namespace) -> common.Record:
    """Return the numbers of clusters suggested from features and from one ensemble, and the CPU seconds of both."""
    import gpuens as ge

    warnings.simplefilter("ignore")
    ks, n = (range(2, 6), 5) if options.quick else (KS, CLUSTERINGS)

    def choose() -> dict[str, int]:
        choice = ge.choose_k(features=X, ks=ks, n_clusterings=n, method=TREE, random_state=options.seed)
        labels = ge.generate.kmeans_ensemble(X, 10 if options.quick else OF_A_TREE, random_state=options.seed)
        of_labels = ge.choose_k(labels, ks=ks, method=TREE)
        by_tree = {"of_labels": of_labels.suggested, "lifetime": of_labels.by_criterion["lifetime"]}
        return {"suggested": choice.suggested, **choice.by_criterion, **by_tree, "close": choice.runners_up}

    choice, _, cpu = common.timed(choose)
    return {"n": len(X), "k": k, "close": choice.pop("close"), "by": choice, "cpu": cpu}


def beyond_chance(X: np.ndarray, options: argparse.Namespace) -> common.Record:
    import gpuens as ge

    n, ks = (3, (2, 3)) if options.quick else (CLUSTERINGS // 2, KS_OF_NOISE)
    choice, _, cpu = common.timed(
        lambda: ge.choose_k(features=X, ks=ks, n_clusterings=n, null=NULL, method=TREE, random_state=options.seed)
    )
    numbers = {"suggested": choice.suggested, **choice.by_criterion}
    p = next(row["p"] for row in choice.rows if row["k"] == choice.suggested)
    return {"by": numbers, "p": p, "structure": choice.structure, "doubt": choice.doubt is not None, "cpu": cpu}


# --- what it takes ----------------------------------------------------------------------------------------------------


def of_scaling(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for source in ("one ensemble", "features"):
        for n in (300,) if options.quick else SIZES:
            yield f"{n:,}, {source}", partial(common.in_child, chosen, limit=300, n=n, source=source)


def chosen(n: int, source: str) -> common.Record:
    """Return time and memory of a choice, including k-means for features.

    A small choice before imports and loads code.
    """
    import gpuens as ge
    from gpuens.runtime import record

    warnings.simplefilter("ignore")
    warm_up, arguments = of_source(source, FEW), of_source(source, n)
    ge.choose_k(**warm_up)
    before = record.resident_memory()
    record.forget_peak_memory()
    choice, seconds, cpu = common.timed(lambda: ge.choose_k(**arguments))
    memory = max(0, common.peak_memory() - before)
    return {"suggested": choice.suggested, "seconds": seconds, "cpu": cpu, "memory": memory, "load": common.load()}


def of_source(source: str, n: int) -> dict[str, Any]:
    """Return the arguments of `choose_k` for features or for an ensemble."""
    if source == "one ensemble":
        import gpuens as ge

        return {"labels": ge.Ensemble(mixture(n, 0.002, 0)[0]), "ks": range(2, 21), "method": TREE}
    rng = np.random.default_rng(0)
    centers, of = APART * rng.standard_normal((4, N_FEATURES)), rng.integers(4, size=n)
    X = (centers[of] + rng.standard_normal((n, N_FEATURES))).astype(np.float32)
    return {"features": X, "ks": FEW_KS, "n_clusterings": SMALL, "method": TREE}


# --- the page ---------------------------------------------------------------------------------------------------------


def every_part(rows: common.Record) -> Iterator[report.Found]:
    if all("k" in row for row in rows.values()):
        right = {name: sum(row["by"].get(name) == row["k"] for row in rows.values()) for name in CRITERIA}
        yield "right", {"n": len(rows), "found": [f"{CRITERIA[name]} {count}" for name, count in right.items()]}
    elif all("structure" in row for row in rows.values()):
        smallest = [row["by"]["pac"] for row in rows.values()]
        n_without = sum(row["structure"] is False for row in rows.values())
        yield "noise", {"n": len(rows), "none": n_without, "pac": smallest}


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    numbers = ", ".join(map(str, FEW_KS))
    bounds = "{} … {}".format(*K_BOUNDS)
    return {
        "dimensions": N_FEATURES, "apart": APART, "m": N_CLUSTERINGS, "bounds": bounds, "small": SMALL, "few": numbers,
        "lists": {"criterion": CRITERIA},
    }  # fmt: skip


if __name__ == "__main__":
    main()
