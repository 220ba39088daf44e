"""A benchmark of each object's evidence: how well it predicts the objects that a consensus puts into a wrong cluster.

    python bench/confidence.py [--only kmeans landmarks ensembles] [--data DIR] [--seed 1]
    python bench/confidence.py --quick

kmeans     20 k-means, k from 2 to the root of the objects
landmarks  20 landmark clusterings of 20 … 60 clusters
ensembles  label matrices of DIR/ensembles: spatial programs (space), ten algorithms (hetero), published clusterings
           (pool), and 20 k-means of real sets and of texts (real_km, text_km)

Sets of the first two parts are all of DIR/shapes and the real ones of `REAL` that have at most 5,000 objects, each
clustered with two seeds. The consensus of each method has as many clusters as classes. An object is wrong if its class
is not that of its cluster, clusters and classes being matched one to one so that most objects are right (Hungarian
method). AUC is the probability that a wrong object has a smaller value than a right one; an only member, of which some
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
    "certainty": "certainty", "confidence": "confidence", "margin": "margin", "item_consensus": "item consensus",
    "silhouette": "silhouette", "entropy": "1 - entropy",
}  # fmt: skip
CALIBRATED = ("certainty", "confidence")  # measures that are compared with the share of right objects
NEAR = 0.01  # a value is near the median if it differs by at most this
REAL = (*common.REAL, "mnist5000")
BUNDLED = ("iris", "wine")  # data sets that come with scikit-learn
MOST_OBJECTS = 5000
CLUSTERINGS, SEEDS = 20, 2
OF_LANDMARKS = (20, 60)  # clusters of a landmark clustering
LEAST = 5  # an AUC needs this number of wrong objects or more, and the same of right objects
BINS = 10  # number of bins of certainty and of confidence
PARTS = ("kmeans", "landmarks", "ensembles")
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


def main() -> None:
    parser = parts.parser(__doc__, PARTS, quick="sets that come with scikit-learn, one seed")
    parser.add_argument("--data", type=Path, help="directory of npz files (GPUENS_DATA)")
    options = parser.parse_args()
    parts.run(
        "confidence", options, {name: Part(partial(of_sets, name)) for name in PARTS},
        report.Page("confidence", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting={"clusterings": CLUSTERINGS, "seeds": SEEDS},
    )  # fmt: skip


def of_sets(kind: str, options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    folder = options.data or os.environ.get("GPUENS_DATA")
    if kind == "ensembles":
        for path in [] if options.quick or not folder else sorted((Path(folder) / "ensembles").glob("*.npz")):
            with np.load(path) as file:
                names = [key.removesuffix("|labels") for key in file if key.endswith("|labels")]
            yield from ((f"{path.stem}: {name}", partial(of_ensemble, path, name, options)) for name in names)
        return
    shapes = [] if options.quick or not folder else sorted((Path(folder) / "shapes").glob("*.npz"))
    for path in shapes:
        X, y = shape(path)
        if len(y) <= MOST_OBJECTS:
            yield path.stem, partial(of_set, kind, X, y, options)
    for name in BUNDLED if options.quick else REAL:
        yield name, partial(real, kind, name, options)


def shape(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and classes of a shape; noise has class -1."""
    with np.load(path) as arrays:
        return arrays["X"].astype(np.float64), arrays["y"].astype(np.int64) - 1


def of_ensemble(path: Path, name: str, options: argparse.Namespace) -> common.Record:
    with np.load(path) as file:
        labels, truth = file[f"{name}|labels"], file[f"{name}|truth"]
    y = np.unique(truth, return_inverse=True)[1]
    return of_labels(labels, y, options.seed, new_record(y))


def real(kind: str, name: str, options: argparse.Namespace) -> common.Record:
    import gpuens as ge

    try:
        data_set = ge.datasets.load(name, data=options.data)
    except ValueError:
        return {"failed": f"left out: {name}.npz is not there; name its directory by --data"}
    return of_set(kind, np.asarray(data_set.X, dtype=np.float64), data_set.y, options)


def of_set(kind: str, X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> common.Record:
    """Return the findings of `of_labels` for base clusterings with each seed."""
    import gpuens as ge

    make: dict[str, Callable[..., Any]] = {
        "kmeans": partial(ge.generate.kmeans_ensemble, n_clusters=(2, int(len(X) ** 0.5))),
        "landmarks": partial(ge.generate.landmark_ensemble, n_clusters=OF_LANDMARKS),
    }
    record = new_record(y)
    for seed in range(options.seed, options.seed + (1 if options.quick else SEEDS)):
        of_labels(make[kind](X, CLUSTERINGS, random_state=seed, progress=False), y, seed, record)
    return record


def new_record(y: np.ndarray) -> common.Record:
    """Return the record of a set with classes ``y``: findings by method, and sums of `in_bins` over fits."""
    bins = {name: np.zeros((BINS, 3)).tolist() for name in CALIBRATED}
    return {"n": len(y), "k": len(np.unique(y[y >= 0])), "methods": {}, "bins": bins}


def of_labels(labels: Any, y: np.ndarray, seed: int, record: common.Record) -> common.Record:
    """Add the findings for base clusterings to the record of a set, and return the record.

    Findings of each method are the share of wrong objects; each measure's AUC, quartiles and share of objects near the
    median; the shares of sure objects, and of sure and right objects.
    """
    import gpuens as ge
    from gpuens.report.sureness import LEAST_CONSENSUS, Sureness, mean_consensus

    warnings.simplefilter("ignore")
    has_class = y >= 0
    for method in METHODS:
        est = ge.methods()[method](record["k"])
        if "random_state" in est.get_params():
            est.set_params(random_state=seed)
        evidence = est.fit(labels).evidence()
        is_wrong = wrong_objects(est.labels_, y)[has_class]
        if not LEAST <= is_wrong.sum() <= len(is_wrong) - LEAST:
            continue
        new = {"wrong": [], **{of: {name: [] for name in MEASURES} for of in ("auc", "quartiles", "near")}, "sure": []}
        row = record["methods"].setdefault(method, new)
        row["wrong"].append(float(is_wrong.mean()))
        for name in MEASURES:
            values = getattr(evidence.objects, name)[has_class]
            values = 1 - values if name == "entropy" else values
            row["auc"][name].append(auc(values, is_wrong))
            quartiles = np.nanquantile(values, (0.25, 0.5, 0.75))
            row["quartiles"][name].append(quartiles.tolist())
            row["near"][name].append(float(np.mean(np.abs(values - quartiles[1]) <= NEAR)))
            if name in CALIBRATED:
                record["bins"][name] = np.add(record["bins"][name], in_bins(values, is_wrong)).tolist()
        sure = Sureness.of(evidence).sure[has_class] & (mean_consensus(evidence) >= LEAST_CONSENSUS)
        row["sure"].append([float(sure.mean()), float((sure & ~is_wrong).mean())])
    return record


def wrong_objects(labels: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return, for each object, whether it is outside the class that its cluster is matched with."""
    from scipy.optimize import linear_sum_assignment

    shared = np.zeros((labels.max() + 1, y.max() + 1))
    np.add.at(shared, (labels[y >= 0], y[y >= 0]), 1)
    clusters, classes = linear_sum_assignment(-shared)
    class_of = np.full(len(shared), -2)
    class_of[clusters] = classes
    return class_of[labels] != y


def auc(values: np.ndarray, is_wrong: np.ndarray) -> float:
    """Return the probability that a wrong object has a smaller value than a right object; a tie counts as one half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.nan_to_num(values, nan=-np.inf))
    n_right = np.count_nonzero(~is_wrong)
    above = ranks[~is_wrong].sum() - n_right * (n_right + 1) / 2
    return float(above / n_right / np.count_nonzero(is_wrong))


def in_bins(values: np.ndarray, is_wrong: np.ndarray) -> list[list[float]]:
    """Return, for each bin of values from 0 to 1, the share of all objects, the sum of values as a share of all
    objects, and the share of right objects.
    """
    of = np.minimum((BINS * values).astype(np.int64), BINS - 1)
    sums = [np.bincount(of, weights, BINS) for weights in (np.ones(len(of)), values, ~is_wrong)]
    return (np.stack(sums, axis=1) / len(of)).tolist()


# --- the page ---------------------------------------------------------------------------------------------------------


def fits(rows: common.Record, measure: str, method: str | None = None) -> list[list[float]]:
    """Return, for each data set, the AUC of a measure in all fits."""
    scores = [
        [value for name, row in of_set["methods"].items() if method in (None, name) for value in row["auc"][measure]]
        for of_set in rows.values()
    ]
    return [values for values in scores if values]


def every_part(rows: common.Record) -> Iterator[report.Found]:
    aucs = fits(rows, "certainty")
    if not aucs:
        return
    lines = {line["name"]: line for line in measures(rows)}
    yield "foretells", {
        "sets": len(aucs), "fits": sum(map(len, aucs)), "sets_below": below([np.mean(values) for values in aucs]),
        **{name: lines[name] for name in ("certainty", "confidence", "margin")},
    }  # fmt: skip
    yield "calibrated", {name: calibration(rows, name) for name in CALIBRATED}
    sure, right = np.array([pair for row in methods_of(rows) for pair in row["sure"]]).T
    if sure.any():
        yield "sure", {"fits": int(np.count_nonzero(sure)), "right": float(right.sum() / sure.sum())}


def calibration(rows: common.Record, measure: str) -> common.Record:
    """Return the mean of a measure, the share of right objects, and the expected calibration error over bins."""
    values, right = mean_bins(rows, measure).T[1:]
    return {"mean": values.sum(), "right": right.sum(), "error": float(np.abs(values - right).sum())}


def below(values: Any) -> float:
    return float(np.mean(np.asarray(values) < 0.5))


def methods_of(rows: common.Record) -> list[common.Record]:
    return [row for of_set in rows.values() for row in of_set["methods"].values()]


def mean_bins(rows: common.Record, measure: str) -> np.ndarray:
    """Return the mean of `in_bins` over all fits, (BINS, 3)."""
    sums = np.sum([of_set["bins"][measure] for of_set in rows.values()], axis=0)
    means: np.ndarray = sums / sum(len(row["wrong"]) for row in methods_of(rows))
    return means


def measures(rows: common.Record) -> list[common.Record]:
    """Return, for each measure, the mean AUC and its share below .5, the mean quartiles, and the mean share of objects
    near the median.
    """
    lines = []
    for name, label in MEASURES.items():
        auc, near_share = (np.concatenate([row[of][name] for row in methods_of(rows)]) for of in ("auc", "near"))
        low, median, high = np.nanmean(np.concatenate([row["quartiles"][name] for row in methods_of(rows)]), axis=0)
        lines.append(
            {
                "key": label, "name": name, "auc": float(auc.mean()), "below": below(auc), "low": low,
                "median": median, "high": high, "near": float(near_share.mean()),
            }
        )  # fmt: skip
    return lines


def groups(rows: common.Record) -> list[common.Record]:
    """Return the lines of AUC for shapes, for real data and for each file of ensembles, in total and by method."""
    of: dict[str, common.Record] = {}
    for name, row in rows.items():
        of.setdefault(name.partition(": ")[0] if ": " in name else "real" if name in REAL else "shapes", {})[name] = row
    return [
        of_group(f"{group}, {method or 'all methods'}", rows_of_group, method)
        for group, rows_of_group in of.items()
        for method in (None, *METHODS)
        if fits(rows_of_group, "confidence", method)
    ]


def of_group(key: str, rows: common.Record, method: str | None) -> common.Record:
    values_of = {measure: np.concatenate(fits(rows, measure, method)) for measure in MEASURES}
    return {
        "key": key, "sets": len(fits(rows, "confidence", method)), "fits": len(values_of["confidence"]),
        "auc": {measure: float(values.mean()) for measure, values in values_of.items()},
        **{f"{measure}_below": below(values_of[measure]) for measure in ("certainty", "margin")},
    }  # fmt: skip


def sets(rows: common.Record) -> list[common.Record]:
    """Return the AUC of each data set, averaged over methods and seeds."""
    return [
        {
            "key": name, "n": row["n"], "k": row["k"],
            "wrong": float(np.mean(np.concatenate([result["wrong"] for result in row["methods"].values()]))),
            "auc": {measure: float(np.mean(fits({name: row}, measure))) for measure in MEASURES},
        }
        for name, row in rows.items()
        if row["methods"]
    ]  # fmt: skip


def reliability(rows: common.Record) -> list[common.Record]:
    """Return the share of right objects in each bin of the calibrated measures. All fits have equal weights."""
    means = {name: mean_bins(rows, name) for name in CALIBRATED}
    lines = []
    for i in range(BINS):
        line: common.Record = {"key": f"{i / BINS:.1f} … {(i + 1) / BINS:.1f}"}
        for name, of_bins in means.items():
            share, mean, right = of_bins[i].tolist()
            line[name] = {"share": share, **({"mean": mean / share, "right": right / share} if share > 0 else {})}
        lines.append(line)
    return lines


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    low, high = OF_LANDMARKS
    return {"clusterings": CLUSTERINGS, "low": low, "high": high, "lists": {"measure": MEASURES}}


if __name__ == "__main__":
    main()
