"""Consensus of the real Covertype data, 581,012 objects: seconds, memory, work and scores, end to end.

    python bench/covtype.py [--data DIR] [--sets a b c d e] [--cache DIR] [--output bench/results/covtype.json]
    python bench/covtype.py --labels FILE.npy
    python bench/covtype.py --quick

DIR (or GPUENS_DATA) holds covtype.npz; without either, scikit-learn downloads the data. The base clusterings are
mini-batch k-means on the features as they are:

    (a) 20 clusterings with k in 7 … 100    (b) the first ten of them    (c) 20 with k in 2 … √N
    (d) 50 and (e) 100 with k in 7 … 100, of which the first 20 are those of (a)

(a) to (d) take about ten minutes on two cores; (e) takes about as long again, and only where --sets asks for it.
Results are written after each ensemble, and those in the output file are kept if they are of the same machine and the
same commit, so that a run that was stopped goes on. --cache keeps the base clusterings for the next run.
Every figure is that of a process of its own.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import parts
import report
from parts import Job, Part, say

K = 7  # number of classes
ENSEMBLES: dict[str, tuple[int, tuple[int, int | str]]] = {  # for each ensemble, number of clusterings and bounds of k
    "a": (20, (7, 100)),
    "b": (10, (7, 100)),
    "c": (20, (2, "sqrt")),
    "d": (50, (7, 100)),
    "e": (100, (7, 100)),
}
BY_DEFAULT = ("a", "b", "c", "d")
METHODS = ("eac", "lwea", "lwgp", "hbgf")
SECONDS = {("a", "eac"): 60.0, ("a", "lwea"): 60.0, ("a", "lwgp"): 15.0}  # targets in seconds
MEMORY = {("a", "eac"): 4e9, ("a", "lwea"): 4e9}
WORK = 1.3  # target of label comparisons / (G² M)
QUICK_OBJECTS, QUICK = 5000, ("a", "b")
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


def main() -> None:
    options = parse()
    setting = {"data": options.labels.name if options.labels else "covtype", "k": options.k}
    page = report.Page("covtype", sys.modules[__name__])
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = Path(scratch)
        parts.run("covtype", options, PARTS, page.markdown, packages=PACKAGES, setting=setting, said=seconds)


def parse() -> argparse.Namespace:
    parser = parts.parser(__doc__, PARTS, quick="5,000 of the objects, (a) and (b)")
    parser.add_argument("--data", type=Path, help="directory that holds covtype.npz (GPUENS_DATA)")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="measure this label matrix (.npy) instead")
    parser.add_argument("--sets", nargs="+", choices=ENSEMBLES, metavar="E", help="which of a, b, c, d, e")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where base clusterings are kept")
    parser.add_argument("-k", type=int, default=K, help=f"clusters wanted ({K})")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds after which a measurement is given up")
    options = parser.parse_args()
    options.sets = ["given"] if options.labels else options.sets or list(QUICK if options.quick else BY_DEFAULT)
    if options.labels and options.output is None and not options.quick:
        parser.error("--labels needs an --output: bench/results is for Covertype")
    return options


def seconds(row: common.Record) -> str:
    seconds_of = {m: row.get("failed") or common.seconds(row["first"]) + " s" for m, row in row["methods"].items()}
    return ", ".join(f"{method} {took}" for method, took in seconds_of.items())


def ensembles(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    source = Source(options)
    return ((name, partial(measure, source, name, options)) for name in options.sets)


PARTS = {"ensembles": Part(ensembles)}


# --- the ensembles ----------------------------------------------------------------------------------------------------


class Source:
    """The label files of the ensembles, generated on demand or found on disk."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, scratch = options, options.scratch
        self.folder = options.cache or scratch
        self.folder.mkdir(parents=True, exist_ok=True)
        self.step = 1
        self.classes: Path | None = None
        if options.labels:
            self.labels = options.labels
            if options.quick:
                self.labels = scratch / "given.npy"
                matrix = np.load(options.labels, mmap_mode="r")
                np.save(self.labels, matrix[:: max(1, len(matrix) // QUICK_OBJECTS)])
            return
        import gpuens as ge

        classes = ge.datasets.load("covtype", data=options.data).y
        if options.quick:
            self.step = len(classes) // QUICK_OBJECTS
        self.classes = scratch / "classes.npy"
        np.save(self.classes, classes[:: self.step])

    def title(self, name: str) -> str:
        if name == "given":
            return self.options.labels.name
        n_clusterings, (low, high) = ENSEMBLES[name]
        return f"{n_clusterings} clusterings, k in {low} … {'√N' if high == 'sqrt' else high}"

    def files(self, name: str) -> tuple[Path, int, common.Record]:
        """Return the label file, the number of its columns that form the ensemble, and the cost to generate it."""
        if name == "given":
            return self.labels, np.load(self.labels, mmap_mode="r").shape[1], {}
        n_clusterings, bounds = ENSEMBLES[name]
        prefix = f"covtype_{bounds[0]}-{bounds[1]}_seed{self.options.seed}_step{self.step}_"
        n_largest = max(ENSEMBLES[set_name][0] for set_name in self.options.sets if ENSEMBLES[set_name][1] == bounds)
        for path in sorted(self.folder.glob(f"{prefix}*.npy")):
            if int(path.stem.removeprefix(prefix)) >= n_clusterings:
                return path, n_clusterings, {}
        path = self.folder / f"{prefix}{n_largest:03d}.npy"
        say(f"    generating {n_largest} clusterings")
        cost = common.in_child(
            generate, path=path, data=self.options.data, n_clusterings=n_largest, bounds=bounds, step=self.step,
            seed=self.options.seed,
        )  # fmt: skip
        if "failed" in cost:
            sys.exit(f"The base clusterings could not be made: {cost['failed']}")
        return path, n_clusterings, cost | {"n_clusterings": n_largest}


def generate(path: str, data: str | None, n_clusterings: int, bounds: list, step: int, seed: int) -> common.Record:
    import gpuens as ge

    X = ge.datasets.load("covtype", data=data).X[::step]
    ensemble, seconds, cpu = common.timed(
        lambda: ge.generate.kmeans_ensemble(
            X, n_clusterings, tuple(bounds), algorithm="minibatch", random_state=seed, progress=False
        )
    )
    beside = Path(path + ".partial")
    with beside.open("wb") as file:
        np.save(file, ensemble.codes)
    beside.replace(path)
    return {"seconds": seconds, "cpu": cpu, "peak": common.peak_memory()}


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(source: Source, name: str, options: argparse.Namespace) -> common.Record:
    labels, n_clusterings, cost = source.files(name)
    where: dict[str, Any] = {"labels": labels, "n_clusterings": n_clusterings, "classes": source.classes}
    description = common.in_child(describe, **where)
    if "failed" in description:
        return description
    description |= {"title": source.title(name), "generated": cost, "methods": {}, "command": {}}
    arguments = {**where, "k": options.k}
    for method in METHODS:
        description["methods"][method] = common.in_child(fit, limit=options.limit, method=method, **arguments)
        if name in ("a", "given") and (method == "lwea" or not options.quick):
            description["command"][method] = common.in_child(
                command, limit=options.limit, method=method, k=options.k, labels=labels,
                n_clusterings=n_clusterings, output=options.scratch / "consensus.npy",
            )  # fmt: skip
    return description


def read(labels: str, n_clusterings: int) -> np.ndarray:
    return np.array(np.load(labels, mmap_mode="r")[:, :n_clusterings], order="F")


def describe(labels: str, n_clusterings: int, classes: str | None) -> common.Record:
    """Return the sizes of an ensemble and the scores of its base clusterings."""
    import gpuens as ge

    matrix = read(labels, n_clusterings)
    ensemble = ge.Ensemble(matrix)
    description: common.Record = {
        "n_objects": ensemble.n_objects,
        "n_clusterings": ensemble.n_clusterings,
        "n_clusters": ensemble.n_clusters,
        "n_core_groups": len(ge.CoreGroups().reduce(ensemble).counts),
    }
    if classes is not None:
        truth = np.load(classes)
        for score in (ge.metrics.nmi, ge.metrics.ari):
            scores = [score(column, truth) for column in matrix.T]
            description["base_" + score.__name__] = {"mean": float(np.mean(scores)), "best": max(scores)}
    return description


def fit(labels: str, n_clusterings: int, classes: str | None, method: str, k: int) -> common.Record:
    """Measure one method on a label matrix in memory; the first call includes imports inside the library."""
    import gpuens as ge

    matrix = read(labels, n_clusterings)
    estimator, record = common.measured(lambda: getattr(ge, method.upper())(k).fit(matrix))
    n_groups = len(estimator.reduction_.counts)
    if hasattr(estimator, "work_"):
        work = estimator.work_
        record["comparisons"] = work.comparisons / (n_groups**2 * n_clusterings)
        record["searches"], record["rounds"] = work.searches, work.rounds
    record["largest"] = np.sort(np.bincount(estimator.labels_))[::-1].tolist()
    if classes is not None:
        truth = np.load(classes)
        record["nmi"] = ge.metrics.nmi(estimator.labels_, truth)
        record["ari"] = ge.metrics.ari(estimator.labels_, truth)
    return record


def command(labels: str, n_clusterings: int, method: str, k: int, output: str) -> common.Record:
    """Do the work of ``gpuens run``, including the reading and writing of files."""
    from gpuens.cli import main

    columns = ",".join(map(str, range(n_clusterings)))
    code = main(["run", labels, "--columns", columns, "-k", str(k), "--method", method, "-o", output, "--quiet"])
    if code:
        sys.exit(code)
    return {"peak": common.peak_memory()}


# --- the page ---------------------------------------------------------------------------------------------------------


def page_values(record: common.Record) -> common.Record:
    setting = next((part["setting"] for part in record["parts"].values()), {"data": "–", "k": "–"})
    return {"data": "Covertype" if setting["data"] == "covtype" else setting["data"], "k": setting["k"]}


def ensembles_values(rows: common.Record, record: common.Record) -> common.Record:
    judged = not record["quick"] and record["parts"]["ensembles"]["setting"]["data"] == "covtype"
    lines = [
        {"key": name, "method": method.upper(), "target": (judged and target(name, method, row)) or None, **row}
        for name, description in rows.items()
        for method, row in description["methods"].items()
    ]
    return {"lines": lines}


def commands(rows: common.Record) -> Iterator[common.Record]:
    for name, description in rows.items():
        for method, row in description["command"].items():
            yield {"key": name, "method": method.upper(), **row}


def described(rows: common.Record) -> Iterator[common.Record]:
    for name, row in rows.items():
        cost = row["generated"]
        cost_text = f"{cost['seconds']:.0f} s ({cost['n_clusterings']})" if cost else None
        yield {"key": name, **row, "share": row["n_core_groups"] / row["n_objects"], "made": cost_text}


def target(name: str, method: str, row: common.Record) -> str:
    """Return the targets of a row, and whether the first call reached the targets."""
    if "failed" in row:
        return ""
    verdicts = []
    if limit := SECONDS.get((name, method)):
        verdicts.append(f"≤ {limit:.0f} s {common.held(row['first'] <= limit)}")
    if room := MEMORY.get((name, method)):
        verdicts.append(f"≤ {common.size(room)} {common.held(row['peak'] <= room)}")
    if "comparisons" in row:
        verdicts.append(f"≤ {WORK} G²M {common.held(row['comparisons'] <= WORK)}")
    return ", ".join(verdicts)


if __name__ == "__main__":
    main()
