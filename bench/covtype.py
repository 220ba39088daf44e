"""Consensus of the real Covertype data, 581,012 objects: seconds, memory, work and scores, end to end.

    python bench/covtype.py [--data DIR] [--only a b c d e] [--cache DIR] [--output bench/results/covtype.json]
    python bench/covtype.py --labels FILE.npy
    python bench/covtype.py --quick

DIR (or GPUENS_DATA) holds covtype.npz; without either, scikit-learn downloads the data. The base clusterings are
mini-batch k-means on the features as they are:

    (a) 20 clusterings with k in 7 … 100    (b) the first ten of them    (c) 20 with k in 2 … √N
    (d) 50 and (e) 100 with k in 7 … 100, of which the first 20 are those of (a)

(a) to (d) take about ten minutes on two cores; (e) takes about as long again, and only where --only asks for it.
Results are written after each ensemble, and those in the output file are kept if they are of the same machine and the
same commit, so that a run that was stopped goes on with --only. --cache keeps the base clusterings for the next run.
Every figure is that of a process of its own. "Cold" is a first call with nothing compiled yet.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np

K = 7  # classes
ENSEMBLES: dict[str, tuple[int, tuple[int, int | str]]] = {  # clusterings, bounds of k
    "a": (20, (7, 100)),
    "b": (10, (7, 100)),
    "c": (20, (2, "sqrt")),
    "d": (50, (7, 100)),
    "e": (100, (7, 100)),
}
BY_DEFAULT = ("a", "b", "c", "d")
COLD = ("a", "b", "c")  # what is compiled does not depend on the ensemble, and (d), (e) take long
METHODS = ("eac", "lwea", "lwgp", "hbgf")
SECONDS = {("a", "eac"): 60.0, ("a", "lwea"): 60.0, ("a", "lwgp"): 15.0}  # targets
MEMORY = {("a", "eac"): 4e9, ("a", "lwea"): 4e9}
WORK = 1.3  # label comparisons / (G² M)
QUICK_OBJECTS, QUICK = 5000, ("a", "b")
PACKAGES = ("gpuens", "numpy", "scipy", "numba", "scikit-learn")


def main() -> None:
    options = parse()
    what = {
        "bench": "covtype",
        "data": str(options.labels.name) if options.labels else "covtype",
        "k": options.k,
        "seed": options.seed,
        "quick": options.quick,
        **common.about(PACKAGES),
    }
    record = common.begin(options.output, what)
    record.setdefault("ensembles", {})
    with tempfile.TemporaryDirectory() as scratch:
        source = Source(options, Path(scratch))
        for name in options.only:
            say(f"\n({name}) {source.title(name)}")
            record["ensembles"][name] = measure(source, name, options, Path(scratch))
            record["ensembles"] = dict(sorted(record["ensembles"].items()))
            common.save(options.output, record, markdown(record))
    print(markdown(record))
    if options.output:
        say(f"\nWritten to {options.output} and {options.output.with_suffix('.md').name}.")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", type=Path, help="directory that holds covtype.npz (GPUENS_DATA)")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="measure this label matrix (.npy) instead")
    parser.add_argument("--only", nargs="+", choices=ENSEMBLES, metavar="E", help="which of a, b, c, d, e")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where base clusterings are kept")
    parser.add_argument("--quick", action="store_true", help="5,000 of the objects, (a) and (b), nothing cold")
    parser.add_argument("-k", type=int, default=K, help=f"clusters wanted ({K})")
    parser.add_argument("--seed", type=int, default=0, help="of the base clusterings")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds after which a measurement is given up")
    parser.add_argument("--output", type=Path, help="JSON; Markdown goes beside it (bench/results, unless --quick)")
    options = parser.parse_args()
    if options.labels:
        options.only = ["given"]
    options.only = options.only or list(QUICK if options.quick else BY_DEFAULT)
    if options.output is None and not options.quick and not options.labels:
        options.output = common.RESULTS / "covtype.json"
    return options


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the ensembles ----------------------------------------------------------------------------------------------------


class Source:
    """Label files of the ensembles, generated or found when they are needed."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
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
        """Return the label file, how many of its columns are the ensemble, and what it cost to generate it."""
        if name == "given":
            return self.labels, np.load(self.labels, mmap_mode="r").shape[1], {}
        n_clusterings, bounds = ENSEMBLES[name]
        prefix = f"covtype_{bounds[0]}-{bounds[1]}_seed{self.options.seed}_step{self.step}_"
        wanted = max(ENSEMBLES[other][0] for other in self.options.only if ENSEMBLES[other][1] == bounds)
        for path in sorted(self.folder.glob(f"{prefix}*.npy")):
            if int(path.stem.removeprefix(prefix)) >= n_clusterings:
                return path, n_clusterings, {}
        path = self.folder / f"{prefix}{wanted:03d}.npy"
        say(f"    generating {wanted} clusterings")
        cost = common.in_child(
            __file__, "generate", path=path, data=self.options.data, n_clusterings=wanted, bounds=bounds,
            step=self.step, seed=self.options.seed,
        )  # fmt: skip
        if "failed" in cost:
            sys.exit(f"The base clusterings could not be made: {cost['failed']}")
        return path, n_clusterings, cost | {"n_clusterings": wanted}


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


def measure(source: Source, name: str, options: argparse.Namespace, scratch: Path) -> common.Record:
    labels, n_clusterings, cost = source.files(name)
    where: dict[str, Any] = {"labels": labels, "n_clusterings": n_clusterings, "classes": source.classes}
    found = common.in_child(__file__, "describe", **where)
    if "failed" in found:
        sys.exit(f"The ensemble could not be read: {found['failed']}")
    found |= {"title": source.title(name), "date": common.today(), "generated": cost, "methods": {}, "command": {}}
    whole = {**where, "k": options.k}
    for method in METHODS:
        environment = {}
        row: common.Record = {}
        if not options.quick:  # which uses what the user has compiled already
            environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="numba-", dir=scratch)
            if name in COLD:
                first = once(whole, method, options.limit, environment)
                row["cold"] = first.get("first")
            else:
                once({**whole, "n_objects": 2000}, method, options.limit, environment)
        row |= common.in_child(__file__, "fit", limit=options.limit, environment=environment, method=method, **whole)
        found["methods"][method] = row
        say(f"    {method}: {row.get('failed') or common.seconds(row['first']) + ' s'}")
        if name in ("a", "given") and (method == "lwea" or not options.quick):
            command = common.in_child(
                __file__, "command", limit=options.limit, environment=environment, method=method, k=options.k,
                labels=labels, n_clusterings=n_clusterings, output=scratch / "consensus.npy",
            )  # fmt: skip
            found["command"][method] = command
    return found


def once(where: dict[str, Any], method: str, limit: float, environment: dict[str, str]) -> common.Record:
    return common.in_child(__file__, "fit", limit=limit, environment=environment, method=method, later=0, **where)


def read(labels: str, n_clusterings: int, n_objects: int | None = None) -> np.ndarray:
    return np.array(np.load(labels, mmap_mode="r")[:n_objects, :n_clusterings], order="F")


def describe(labels: str, n_clusterings: int, classes: str | None) -> common.Record:
    """Return the sizes of an ensemble and the scores of its base clusterings."""
    import gpuens as ge

    matrix = read(labels, n_clusterings)
    ensemble = ge.Ensemble(matrix)
    found: common.Record = {
        "n_objects": ensemble.n_objects,
        "n_clusterings": ensemble.n_clusterings,
        "n_clusters": ensemble.n_clusters,
        "n_core_groups": len(ge.CoreGroups().reduce(ensemble).weights),
    }
    if classes is not None:
        truth = np.load(classes)
        for score in (ge.metrics.nmi, ge.metrics.ari):
            each = [score(column, truth) for column in matrix.T]
            found["base_" + score.__name__] = {"mean": float(np.mean(each)), "best": max(each)}
    return found


def fit(
    labels: str,
    n_clusterings: int,
    classes: str | None,
    method: str,
    k: int,
    later: int = 3,
    n_objects: int | None = None,
) -> common.Record:
    """Measure one method on a label matrix in memory; the first call includes what the library imports by itself."""
    import gpuens as ge

    matrix = read(labels, n_clusterings, n_objects)
    estimator, record = common.measured(lambda: getattr(ge, method.upper())(k).fit(matrix), later=later)
    n_groups = len(estimator.reduction_.weights)
    if hasattr(estimator, "work_"):
        work = estimator.work_
        record["comparisons"] = work.comparisons / (n_groups**2 * n_clusterings)
        record["searches"], record["rounds"] = work.searches, work.rounds
    record["largest"] = np.sort(np.bincount(estimator.labels_))[::-1].tolist()
    if classes is not None and n_objects is None:
        truth = np.load(classes)
        record["nmi"] = ge.metrics.nmi(estimator.labels_, truth)
        record["ari"] = ge.metrics.ari(estimator.labels_, truth)
    return record


def command(labels: str, n_clusterings: int, method: str, k: int, output: str) -> common.Record:
    """Do what ``gpuens run`` does, the reading and writing of files included."""
    from gpuens.cli import main

    columns = ",".join(map(str, range(n_clusterings)))
    code = main(["run", labels, "--columns", columns, "-k", str(k), "--method", method, "-o", output, "--quiet"])
    if code:
        sys.exit(code)
    return {"peak": common.peak_memory()}


# --- the tables -------------------------------------------------------------------------------------------------------


def markdown(record: common.Record) -> str:
    ensembles = record["ensembles"]
    scored = any("base_nmi" in found for found in ensembles.values())
    given = record["data"] != "covtype"
    judged = not (record["quick"] or given)
    lines = [f"# {record['data'] if given else 'Covertype'}: a consensus of {record['k']} clusters\n"]
    lines.append(f"{common.machine_line(record)}{' A quick run on few objects.' if record['quick'] else ''}\n")
    lines.append(ensemble_table(ensembles, scored))
    lines.append(
        "\nSeconds from the label matrix in memory to the labels of all objects, in a fresh process: the first call "
        "with nothing compiled yet (cold), the first call, its CPU seconds, the median of later calls. Peak memory is "
        "that of the whole process; G the number of core groups; load that of the machine in the minute before.\n"
    )
    header = ["ensemble", "method", "cold", "first", "CPU", "later", "peak", "comparisons / G²M", "searches", "rounds"]
    header += ["NMI", "ARI"] if scored else []
    header += [*(["target"] if judged else []), "load"]
    rows = []
    for name, found in ensembles.items():
        for method, row in found["methods"].items():
            if "failed" in row:
                rows.append([f"({name})", method.upper(), row["failed"], *["–"] * (len(header) - 3)])
                continue
            cells = [f"({name})", method.upper()]
            cells += [common.seconds(row.get(key)) for key in ("cold", "first", "first_cpu", "later")]
            cells += [common.size(row["peak"]), common.number(row.get("comparisons"))]
            cells += [f"{row[key]:,}" if key in row else "–" for key in ("searches", "rounds")]
            cells += [common.number(row.get(score)) for score in ("nmi", "ari")] if scored else []
            cells += [target(name, method, row)] if judged else []
            rows.append([*cells, common.number(row["load"], 1)])
    lines.append(common.table(header, rows))
    commands = [(name, *item) for name, found in ensembles.items() for item in found["command"].items()]
    if commands:
        lines.append(
            "\n`gpuens run FILE.npy`, from the start of the process to its end, reading and writing included:\n"
        )
        rows = [
            [f"({name})", method.upper(), row.get("failed") or common.seconds(row["process_seconds"])]
            + [common.size(row.get("peak"))]
            for name, method, row in commands
        ]
        lines.append(common.table(["ensemble", "method", "seconds", "peak"], rows))
    return "\n".join(lines)


def ensemble_table(ensembles: dict[str, common.Record], scored: bool) -> str:
    header = ["ensemble", "base clusterings", "N", "clusters", "core groups", "G / N", "generated in"]
    if scored:
        header += ["their NMI, mean", "best", "their ARI, mean", "best"]
    rows = []
    for name, found in ensembles.items():
        cost = found["generated"]
        row = [f"({name})", found["title"], f"{found['n_objects']:,}", f"{found['n_clusters']:,}"]
        row += [f"{found['n_core_groups']:,}", f"{found['n_core_groups'] / found['n_objects']:.3f}"]
        row += [f"{cost['seconds']:.0f} s ({cost['n_clusterings']})" if cost else "–"]
        if scored:
            row += [common.number(found[f"base_{s}"][which]) for s in ("nmi", "ari") for which in ("mean", "best")]
        rows.append(row)
    return common.table(header, rows)


def target(name: str, method: str, row: common.Record) -> str:
    """Return the targets of a row and whether the slowest first call held them."""
    verdicts = []
    slowest = max(row["first"], row.get("cold") or 0.0)
    if most := SECONDS.get((name, method)):
        verdicts.append(f"≤ {most:.0f} s {common.held(slowest <= most)}")
    if room := MEMORY.get((name, method)):
        verdicts.append(f"≤ {common.size(room)} {common.held(row['peak'] <= room)}")
    if "comparisons" in row:
        verdicts.append(f"≤ {WORK} G²M {common.held(row['comparisons'] <= WORK)}")
    return ", ".join(verdicts) or "–"


if __name__ == "__main__":
    common.serve({"generate": generate, "describe": describe, "fit": fit, "command": command})
    main()
