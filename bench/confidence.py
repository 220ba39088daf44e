"""A benchmark of each object's evidence: how well it predicts the objects that a consensus puts into a wrong cluster.

    python bench/confidence.py [--only kmeans landmarks] [--data DIR] [--seed 1]
    python bench/confidence.py --quick

kmeans     20 k-means, k from 2 to the root of the objects
landmarks  20 landmark clusterings of 20 … 60 clusters

Sets are all of DIR/shapes and the real ones of `REAL` that have at most 5,000 objects, with as many clusters as
classes; each is clustered with two seeds and the consensus of each method is found. An object is wrong if its class is
not that of its cluster, clusters and classes being matched one to one so that most objects are right (Hungarian
method). AUC is the probability that a wrong object has less confidence than a right one; an only member, of which other
measures say nothing, is the least certain. Objects of class 0 of shapes are noise and left out, and so are fits with
fewer than five wrong or right objects. Fifteen minutes of CPU.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part

METHODS = ("lwgp", "lwea", "hbgf", "eac", "mcla", "gp-mgla")
MEASURES = {
    "confidence": "confidence", "margin": "margin", "item_consensus": "item consensus", "silhouette": "silhouette",
    "entropy": "1 - entropy",
}  # fmt: skip
REAL = (*common.REAL, "mnist5000")
BUNDLED = ("iris", "wine")  # data sets that come with scikit-learn
MOST_OBJECTS = 5000
CLUSTERINGS, SEEDS = 20, 2
OF_LANDMARKS = (20, 60)  # clusters of a landmark clustering
LEAST = 5  # an AUC needs this number of wrong objects or more, and the same of right objects
BINS = 10  # number of bins of confidence
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


def main() -> None:
    parser = parts.parser(__doc__, ("kmeans", "landmarks"), quick="sets that come with scikit-learn, one seed")
    parser.add_argument("--data", type=Path, help="directory of npz files (GPUENS_DATA)")
    options = parser.parse_args()
    parts.run(
        "confidence", options, {name: Part(partial(of_sets, name)) for name in ("kmeans", "landmarks")},
        report.Page("confidence", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting={"clusterings": CLUSTERINGS, "seeds": SEEDS},
    )  # fmt: skip


def of_sets(kind: str, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    folder = options.data or os.environ.get("GPUENS_DATA")
    shapes = [] if options.quick or not folder else sorted((Path(folder) / "shapes").glob("*.npz"))
    for path in shapes:
        X, y = shape(path)
        if len(y) <= MOST_OBJECTS:
            yield path.stem, partial(of_set, kind, X, y, options)
    for name in BUNDLED if options.quick else REAL:
        yield name, partial(real, kind, name, options)


def shape(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and classes of a shape; noise has class -1."""
    with np.load(path) as found:
        return found["X"].astype(np.float64), found["y"].astype(np.int64) - 1


def real(kind: str, name: str, options: argparse.Namespace) -> common.Record:
    import gpuens as ge

    try:
        found = ge.datasets.load(name, data=options.data)
    except ValueError:
        return {"failed": f"left out: {name}.npz is not there; name its directory by --data"}
    return of_set(kind, np.asarray(found.X, dtype=np.float64), found.y, options)


def of_set(kind: str, X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> common.Record:
    """Return, for each method, the share of wrong objects and each measure's AUC by seed, and the sums in bins."""
    import gpuens as ge

    warnings.simplefilter("ignore")
    make: dict[str, Callable[..., Any]] = {
        "kmeans": partial(ge.generate.kmeans_ensemble, n_clusters=(2, int(len(X) ** 0.5))),
        "landmarks": partial(ge.generate.landmark_ensemble, n_clusters=OF_LANDMARKS),
    }
    known, k = y >= 0, len(np.unique(y[y >= 0]))
    methods: common.Record = {}
    for seed in range(options.seed, options.seed + (1 if options.quick else SEEDS)):
        labels = make[kind](X, CLUSTERINGS, random_state=seed, progress=False)
        for method in METHODS:
            est = ge.methods()[method](k)
            if "random_state" in est.get_params():
                est.set_params(random_state=seed)
            objects = est.fit(labels).evidence().objects
            wrong = wrong_objects(est.labels_, y)[known]
            if not LEAST <= wrong.sum() <= len(wrong) - LEAST:
                continue
            row = methods.setdefault(method, {"wrong": [], "auc": {name: [] for name in MEASURES}, "bins": []})
            row["wrong"].append(float(wrong.mean()))
            for name in MEASURES:
                values = getattr(objects, name)[known]
                row["auc"][name].append(auc(-values if name == "entropy" else values, wrong))
            row["bins"].append(in_bins(objects.confidence[known], wrong))
    return {"n": len(y), "k": k, "methods": methods}


def wrong_objects(found: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return, for each object, whether it is outside the class that its cluster is matched with."""
    from scipy.optimize import linear_sum_assignment

    shared = np.zeros((found.max() + 1, y.max() + 1))
    np.add.at(shared, (found[y >= 0], y[y >= 0]), 1)
    clusters, classes = linear_sum_assignment(-shared)
    class_of = np.full(len(shared), -2)
    class_of[clusters] = classes
    return class_of[found] != y


def auc(values: np.ndarray, wrong: np.ndarray) -> float:
    """Return the probability that a wrong object has a smaller value than a right object; a tie counts as one half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.nan_to_num(values, nan=-np.inf))
    n_right = np.count_nonzero(~wrong)
    above = ranks[~wrong].sum() - n_right * (n_right + 1) / 2
    return float(above / n_right / np.count_nonzero(wrong))


def in_bins(confidence: np.ndarray, wrong: np.ndarray) -> list[list[float]]:
    """Return, for each bin of confidence, the shares of all objects and of right objects, and the sum of confidence."""
    of = np.minimum((BINS * confidence).astype(np.int64), BINS - 1)
    sums = [np.bincount(of, weights, BINS) for weights in (np.ones(len(of)), confidence, ~wrong)]
    return (np.stack(sums, axis=1) / len(of)).tolist()


# --- the page ---------------------------------------------------------------------------------------------------------


def fits(rows: common.Record, measure: str, method: str | None = None) -> list[list[float]]:
    """Return, for each data set, the AUC of a measure in all fits."""
    found = [
        [value for name, row in of_set["methods"].items() if method in (None, name) for value in row["auc"][measure]]
        for of_set in rows.values()
    ]
    return [values for values in found if values]


def every_part(rows: common.Record) -> Iterator[report.Found]:
    own, margin = (fits(rows, measure) for measure in ("confidence", "margin"))
    if own:
        yield "foretells", {
            "sets": len(own), "fits": sum(map(len, own)), "auc": float(np.mean(np.concatenate(own))),
            "margin": float(np.mean(np.concatenate(margin))), "below": below(np.concatenate(own)),
            "sets_below": below([np.mean(values) for values in own]),
        }  # fmt: skip
        sure, right = np.mean(bins(rows), axis=0).T[1:]
        yield "calibrated", {"sure": sure.sum(), "right": right.sum(), "error": float(np.abs(sure - right).sum())}


def below(values: Any) -> float:
    return float(np.mean(np.asarray(values) < 0.5))


def bins(rows: common.Record) -> list[Any]:
    return [one for of_set in rows.values() for row in of_set["methods"].values() for one in row["bins"]]


def groups(rows: common.Record) -> list[common.Record]:
    """Return the lines of AUC for shapes and for real data, each in total and by method."""
    of = {
        "shapes": {name: row for name, row in rows.items() if name not in REAL},
        "real": {name: row for name, row in rows.items() if name in REAL},
    }
    return [
        of_group(f"{group}, {method or 'all methods'}", some, method)
        for group, some in of.items()
        for method in (None, *METHODS)
        if fits(some, "confidence", method)
    ]


def of_group(key: str, rows: common.Record, method: str | None) -> common.Record:
    by = {measure: np.concatenate(fits(rows, measure, method)) for measure in MEASURES}
    return {
        "key": key, "sets": len(fits(rows, "confidence", method)), "fits": len(by["confidence"]),
        "auc": {measure: float(values.mean()) for measure, values in by.items()},
        "below": below(by["confidence"]), "margin_below": below(by["margin"]),
    }  # fmt: skip


def sets(rows: common.Record) -> list[common.Record]:
    """Return the AUC of each data set, averaged over methods and seeds."""
    return [
        {
            "key": name, "n": row["n"], "k": row["k"],
            "wrong": float(np.mean(np.concatenate([one["wrong"] for one in row["methods"].values()]))),
            "auc": {measure: float(np.mean(fits({name: row}, measure))) for measure in MEASURES},
        }
        for name, row in rows.items()
        if row["methods"]
    ]  # fmt: skip


def reliability(rows: common.Record) -> list[common.Record]:
    """Return the share of right objects in each bin. All fits have equal weights."""
    return [
        {
            "key": f"{i / BINS:.1f} … {(i + 1) / BINS:.1f}",
            "share": share, "sure": sure / share, "right": right / share,
        }
        for i, (share, sure, right) in enumerate(np.mean(bins(rows), axis=0).tolist())
        if share > 0
    ]  # fmt: skip


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    low, high = OF_LANDMARKS
    return {"clusterings": CLUSTERINGS, "low": low, "high": high, "lists": {"measure": MEASURES}}


if __name__ == "__main__":
    main()
