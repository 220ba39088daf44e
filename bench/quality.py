"""A benchmark of quality on labelled sets: every method, the defaults, and other packages as anchors.

    python bench/quality.py --data DIR [--only methods anchors …] [--seeds 0 1] [--sets wut_x1 iris …] [--at-once 2]
    python bench/quality.py --quick

methods     every method × kinds of ensembles, k given: ARI, NMI and seconds, beside the base clusterings
anchors     ge.cluster(X, k) beside k-means, Ward, Gaussian mixtures, spectral clustering, HDBSCAN and Genie
number      numbers of clusters found without k, from labels and from features, beside the silhouette of k-means
without_k   ge.consensus of label matrices without k, beside the consensus with the true k: what not knowing k costs
candidates  methods of linear cost with what the labels alone say of each answer: what foretells the best of them
large       ge.cluster(X, k) on PenDigits, USPS, MNIST, Covertype, and on planted clusters of up to a million objects

DIR holds NAME.npz with features ``X`` and classes ``y``; shapes/NAME.npz, where y = 0 is noise that is clustered but
not scored; pools/lwec_NAME.npz, of whose base clusterings each seed draws ten; and ensembles/GROUP.npz, label matrices
``SET|labels`` with their ``SET|truth``. There are three groups: the shapes of at most 5,000 objects, the real sets, and
the pools; without_k has the shapes, and each group of label matrices. Kinds of ensembles are "kmeans" and "landmark",
20 clusterings as `gpuens.generate` makes them by default, "cluster", those that ``ge.cluster(X, k)`` makes, draws of
the pools, and "labels", the label matrices. The sets of `common.KEPT_OUT` are left out.

Each set, kind and seed is a fork of this process, with one thread, and in it each method another, which ends at a
limit of CPU seconds. What was found is kept: a run that was stopped goes
on, and other seeds are added. Genie is that of genieclust, and left out where it is not installed. An hour of CPU for
each seed.
"""

import argparse
import inspect
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import common
import numpy as np
import parts
import quality_report
import report
from parts import SINGLE, Job, Part
from quality_report import GROUPS, MATRICES
from threadpoolctl import threadpool_limits

MOST = 5_000  # largest number of objects of a shape
LARGE = ("pd", "usps", "mnist", "covtype")
PLANTED = (10_000, 100_000, 1_000_000)  # numbers of objects of planted sets
KINDS = {"shapes": ("kmeans", "landmark", "cluster"), "real": ("kmeans", "landmark", "cluster"), "pools": ("pool",)}
DRAWN = 10  # base clusterings drawn from a pool for an ensemble
CANDIDATES = ("lwgp", "lwea", "gp-mgla", "hbgf", "mcla", "ecpcs-mc", "ecpcs-hc", "weac", "em", "eac")
LARGEST_K = 20  # largest number of clusters that silhouettes choose from
LIMITS = {  # CPU seconds for each part
    "methods": 10, "anchors": 60, "number": 120, "without_k": 60, "candidates": 30, "large": 600,
}  # fmt: skip
IMPORTS = 5  # CPU seconds beyond a limit in which a forked process may import packages
ROW_LIMIT = 900  # seconds for a whole row
SLOWED = 20  # ratio of seconds to CPU seconds, on a busy machine, above which a process counts as hanging
QUICK = {"shapes": ("flower",), "real": ("iris",), "pools": ("made up",)}
ENVIRONMENT = {**SINGLE, **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"), "GPUENS_MEMORY": "4GB"}
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn", "genieclust", "pymetis")

Do: TypeAlias = Callable[..., common.Record]  # called with (part, task, arguments): `here` or `within`


def main() -> None:
    of_parts = {
        "methods": of_methods, "anchors": anchors_of, "number": numbers_of, "candidates": candidates_of,
    }  # fmt: skip
    parser = parts.parser(
        __doc__, [*of_parts, "without_k", "large"], quick="sets of a few hundred objects, few methods"
    )
    parser.add_argument("--data", type=Path, help="directory of npz files (GPUENS_DATA)")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some of the sets")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help="seeds of ensembles and methods (--seed)")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="some of the kinds of ensembles")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help='some of the methods, "lwea:theta=0.2" included')
    parser.add_argument("--at-once", type=int, default=2, help="processes (2)")
    parser.add_argument(
        "--limit", type=int, default=LIMITS["methods"], help="CPU seconds of a method in the part methods (10)"
    )
    options = parser.parse_args()
    LIMITS["methods"] = options.limit
    options.data = Path(options.data or os.environ.get("GPUENS_DATA") or ".")
    options.seeds = options.seeds or [options.seed]
    if not options.quick and not (options.data / "shapes").is_dir() and options.only != []:
        sys.exit("--data (or GPUENS_DATA) must name the directory that holds iris.npz …, shapes/ and pools/.")
    os.environ.update(ENVIRONMENT)
    threadpool_limits(1)
    jobs = {name: Part(partial(of_sets, task, name), options.at_once) for name, task in of_parts.items()}
    jobs |= {"without_k": Part(of_matrices, options.at_once), "large": Part(of_large)}
    parts.run(
        "quality", options, jobs, report.Page("quality", quality_report).markdown,
        packages=PACKAGES, setting={"limits": LIMITS, "default": default_method()}, said=said,
    )  # fmt: skip


def default_method() -> str:
    """Return the method that `gpuens.consensus` takes by default."""
    import gpuens as ge

    return str(inspect.signature(ge.consensus).parameters["method"].default)


def said(row: common.Record) -> str:
    """Return the three best methods of a row."""
    best = sorted(
        (
            (row_of_method["ari"], name)
            for name, row_of_method in (row.get("methods") or row.get("candidates") or {}).items()
            if "ari" in row_of_method
        ),
        reverse=True,
    )
    return ", ".join(f"{name} {ari:.3f}" for ari, name in best[:3])


# --- sets -------------------------------------------------------------------------------------------------------------


def of_sets(task: Callable[..., common.Record], part: str, options: argparse.Namespace, rows: Any) -> Iterator[Job]:
    """Yield the jobs of a part: one for each set, kind of ensemble and seed, small sets first."""
    by_features, names = part in ("anchors", "number"), names_of(part, options)
    kind = "features" if by_features else "kmeans"
    task("shapes", Path(QUICK["shapes"][0]), kind, 0, names, here)  # this fit imports packages for all forks
    for seed in options.seeds:
        for group, path in sets_of(options):
            if group == "pools" and by_features:
                continue
            for kind in ("features",) if by_features else KINDS[group]:
                if options.kinds and kind not in ("features", *options.kinds):
                    continue
                limit = SLOWED * ROW_LIMIT
                job = partial(common.forked, task, group, path, kind, seed, names, within, limit=limit)
                yield f"{path.stem}, {kind}, {seed}", job


def names_of(part: str, options: argparse.Namespace) -> list[str]:
    """Return the names of the methods or criteria that a part compares."""
    import gpuens as ge

    if part == "methods":
        return options.methods or (["lwea", "lwgp", "hbgf"] if options.quick else list(ge.methods()))
    return list({"anchors": ANCHORS, "number": NUMBERS, "candidates": CANDIDATES}[part])


def sets_of(options: argparse.Namespace) -> list[tuple[str, Path]]:
    """Return (group, path) of all sets; in each group, sets with few objects come first."""
    if options.quick:
        return [(group, Path(name)) for group in GROUPS for name in QUICK[group]]
    sets = {
        "shapes": [path for path in (options.data / "shapes").glob("*.npz") if n_objects(path) <= MOST],
        "real": [path for name in common.REAL if (path := options.data / f"{name}.npz").exists()],
        "pools": list((options.data / "pools").glob("lwec_*.npz")),
    }
    return [
        (group, path)
        for group in GROUPS
        for path in sorted(sets[group], key=lambda path: (n_objects(path), path))
        if path.stem not in common.KEPT_OUT
    ]


def n_objects(path: Path) -> int:
    with np.load(path, allow_pickle=False) as file:
        return len(file["y"])


class Given:
    """A labelled set: features, a pool of clusterings, or a label matrix ``name`` of a file of several.

    Classes are 1 … k; 0 is noise, which is not scored.
    """

    def __init__(self, group: str, path: Path, name: str = "") -> None:
        self.group, self.X, self.pool, self.matrix = group, None, None, None
        if not path.suffix:
            self.X, self.y, self.pool = made_up(path.name)
        else:
            with np.load(path) as file:
                if name:
                    self.matrix, self.y = file[f"{name}|labels"], file[f"{name}|truth"].astype(int)
                elif group == "pools":
                    self.pool, self.y = file["members"], file["y"].astype(int) + 1
                else:
                    self.X = file["X"].astype(np.float64)
                    self.y = file["y"].astype(int) + (group != "shapes")
        self.k = len(np.unique(self.y[self.y > 0]))

    @property
    def about(self) -> common.Record:
        about = {"group": self.group, "n": len(self.y), "k": self.k}
        return about | ({"d": self.X.shape[1]} if self.X is not None else {})

    def scores(self, labels: Any) -> common.Record:
        import gpuens as ge

        scored = self.y > 0
        labels = np.asarray(labels)[scored]
        return {"ari": ge.metrics.ari(labels, self.y[scored]), "nmi": ge.metrics.nmi(labels, self.y[scored])}

    def ensemble(self, kind: str, seed: int) -> Any:
        """Return the `Ensemble` of a kind."""
        import gpuens as ge

        if self.matrix is not None:
            return ge.Ensemble(self.matrix)
        if self.pool is not None:
            columns = np.random.default_rng(seed).choice(self.pool.shape[1], DRAWN, replace=False)
            return ge.Ensemble(self.pool[:, columns])
        if kind == "cluster":
            return ge.cluster(self.X, self.k, random_state=seed, progress=False).ensemble_
        return ge.generate.of_kind(kind)(self.X, random_state=seed, progress=False)


def made_up(name: str) -> tuple[np.ndarray | None, np.ndarray, np.ndarray | None]:
    """Return features or None, classes and a pool or None of a set of --quick."""
    rng = np.random.default_rng(0)
    if name == "iris":
        from sklearn.datasets import load_iris

        X, y = load_iris(return_X_y=True)
        return X, y + 1, None
    y = np.arange(240) % 3
    if name == "made up":
        return None, y + 1, np.where(rng.random((240, 20)) < 0.2, rng.integers(5, size=(240, 20)), y[:, None])
    X = rng.normal(4 * np.eye(3)[y], 0.5)
    return X, np.where(np.arange(240) < 6, 0, y + 1), None


# --- what the children do ---------------------------------------------------------------------------------------------


def of_methods(group: str, path: Path, kind: str, seed: int, names: list[str], do: Do) -> common.Record:
    """Return the scores of methods and of the base clusterings."""
    warnings.simplefilter("ignore")
    given = Given(group, path)
    ensemble, _, cpu = common.timed(lambda: given.ensemble(kind, seed))
    results = {name: do("methods", answer, name, ensemble, given, seed) for name in names}
    members = members_of(ensemble, given)
    return given.about | {"default": default_method(), "cpu": cpu, "members": members, "methods": results}


def members_of(ensemble: Any, given: Given) -> common.Record:
    scores = [given.scores(labels) for labels in ensemble.to_array().T]
    of = {name: [pair_scores[name] for pair_scores in scores] for name in ("ari", "nmi")}
    return {f"{how} {name}": float(f(of[name])) for name in of for how, f in (("best", np.max), ("mean", np.mean))}


def here(part: str, task: Callable[..., common.Record], *given: Any) -> common.Record:
    """Run a task in this process; return the result, or the error message."""
    try:
        return task(*given)
    except (ImportError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        return {"failed": str(error)}


def within(part: str, task: Callable[..., common.Record], *given: Any) -> common.Record:
    """Run a task in a forked process, which ends at the part's limit of CPU seconds; return the result."""
    row = common.forked(limited, part, task, *given, limit=SLOWED * LIMITS[part])
    if row.get("failed", "").endswith(f"with -{signal.SIGXCPU}"):
        return {"failed": f"more than {LIMITS[part]} CPU s"}
    return row


def limited(part: str, task: Callable[..., common.Record], *given: Any) -> common.Record:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMITS[part] + IMPORTS, resource.RLIM_INFINITY))
    return here(part, task, *given)


def answer(name: str, ensemble: Any, given: Given, seed: int) -> common.Record:
    """Return the scores, CPU seconds and smallest cluster of a method, or why it is left out."""
    from gpuens.runtime.failures import OF_ONE_METHOD

    estimator = of_name(name, given.k, seed)
    features = {"features": given.X} if estimator.parts().needs_features else {}
    if estimator.parts().needs_features and given.X is None:
        return {"failed": "there are no features"}
    try:
        fitted, _, cpu = common.timed(lambda: estimator.fit(ensemble, **features))
    except OF_ONE_METHOD as error:
        return {"failed": str(error)}
    sizes = np.bincount(fitted.labels_)
    return given.scores(fitted.labels_) | {"cpu": cpu, "smallest": int(sizes.min())}


def of_name(name: str, k: int | None, seed: int) -> Any:
    """Return the estimator of "method" or "method:parameter=value,…"."""
    from gpuens.runtime.options import options as options_of
    from gpuens.workflows.compare import default_estimator

    name, _, text = name.partition(":")
    estimator = default_estimator(name, None if name == "best-of-k" else k, seed, "cpu")
    options = options_of(type(estimator))
    pairs = (pair.split("=", 1) for pair in text.split(",") if pair)
    return estimator.set_params(**{key: options[key].read(value) for key, value in pairs})


def anchors_of(group: str, path: Path, kind: str, seed: int, names: list[str], do: Do) -> common.Record:
    """Return the scores of ``ge.cluster(X, k)`` and of other packages."""
    warnings.simplefilter("ignore")
    given = Given(group, path)
    results = {name: do("anchors", by_features, name, given, seed) for name in names}
    return given.about | {"methods": results}


def by_features(name: str, given: Given, seed: int) -> common.Record:
    labels, _, cpu = common.timed(lambda: ANCHORS[name](given.X, given.k, seed))
    return given.scores(labels) | {"cpu": cpu}


def clustered(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    import gpuens as ge

    return ge.cluster(X, k, random_state=seed, progress=False).labels_


def k_means(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=seed).fit_predict(X)


def ward(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.cluster import AgglomerativeClustering

    return AgglomerativeClustering(k).fit_predict(X)


def gaussian_mixture(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(k, random_state=seed).fit_predict(X)


def spectral(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.cluster import SpectralClustering

    how = {"affinity": "nearest_neighbors", "n_neighbors": 10}
    return SpectralClustering(k, random_state=seed, **how).fit_predict(X)


def hdbscan(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the labels of HDBSCAN, which chooses k itself; the objects that it calls noise form one more cluster."""
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(copy=True).fit_predict(X) + 1


def genie(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    try:
        from genieclust import Genie
    except ImportError:
        raise ImportError("left out: genieclust is not installed") from None
    return Genie(k, gini_threshold=0.3).fit_predict(X)


ANCHORS = {
    "ge.cluster": clustered, "k-means": k_means, "Ward": ward, "Gaussian mixture": gaussian_mixture,
    "spectral": spectral, "HDBSCAN": hdbscan, "Genie": genie,
}  # fmt: skip


def numbers_of(group: str, path: Path, kind: str, seed: int, names: list[str], do: Do) -> common.Record:
    """Return, for each way to choose k, the number of clusters that it finds, and its warnings."""
    given = Given(group, path)
    return given.about | {"found": {name: do("number", number_by, name, given, seed) for name in names}}


def number_by(name: str, given: Given, seed: int) -> common.Record:
    """Return the number of clusters that a way finds, its CPU seconds, and its warnings about doubtful results."""
    from gpuens.runtime import checks

    kind, find = NUMBERS[name]
    source = given.X if kind is None else given.ensemble(kind, seed)
    with checks.recorded() as warned:
        k, _, cpu = common.timed(lambda: find(source, seed))
    return {"k": int(k), "cpu": cpu, "warned": list(warned)}


def of_consensus(ensemble: Any, seed: int) -> int:
    import gpuens as ge

    return len(np.unique(ge.consensus(ensemble)))


def of_cluster(X: np.ndarray, seed: int) -> int:
    import gpuens as ge

    return ge.cluster(X, None, random_state=seed, progress=False).n_clusters_


def of_silhouette(X: np.ndarray, seed: int) -> int:
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    def score(k: int) -> float:
        return float(silhouette_score(X, KMeans(k, n_init=3, random_state=seed).fit_predict(X)))

    return max(range(2, LARGEST_K + 1), key=score)


NUMBERS: dict[str, tuple[str | None, Callable[[Any, int], int]]] = {
    "consensus, k-means": ("kmeans", of_consensus),
    "consensus, landmarks": ("landmark", of_consensus),
    "ge.cluster": (None, of_cluster),
    "silhouette of k-means": (None, of_silhouette),
    "always 2": (None, lambda X, seed: 2),
    "always 3": (None, lambda X, seed: 3),
}  # the kind of ensemble, None for features, and the way; choose_k suggests what consensus and cluster take


# --- without k --------------------------------------------------------------------------------------------------------


def of_matrices(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    """Yield a job for each label matrix, and for the k-means of each shape and seed."""
    matrices = [
        (group, path, name, "labels", 0)
        for group in MATRICES if (path := options.data / "ensembles" / f"{group}.npz").exists()
        for name in names_in(path)
    ]  # fmt: skip
    shapes = [path for group, path in sets_of(options) if group == "shapes"]
    matrices += [("shapes", path, "", "kmeans", seed) for seed in options.seeds for path in shapes]
    without_k(*matrices[-1])  # this fit imports packages for all forks
    for group, path, name, kind, seed in matrices:
        job = partial(common.forked, without_k, group, path, name, kind, seed, limit=SLOWED * LIMITS["without_k"])
        yield f"{name or path.stem}, {kind}, {seed}", job


def names_in(path: Path) -> list[str]:
    with np.load(path) as file:
        return sorted(key.removesuffix("|labels") for key in file if key.endswith("|labels"))


def without_k(group: str, path: Path, name: str, kind: str, seed: int) -> common.Record:
    """Return the scores and sizes of ``ge.consensus(labels)`` and of the consensus with the true k."""
    import gpuens as ge
    from gpuens.runtime import checks

    given = Given(group, path, name)
    ensemble = given.ensemble(kind, seed)
    row = given.about | {"members": members_of(ensemble, given)}
    for way, k in {"without": None, "with": given.k}.items():
        with checks.recorded() as warned:
            labels, _, cpu = common.timed(lambda k=k: ge.consensus(ensemble, k))
        sizes = np.unique(labels, return_counts=True)[1]
        largest = float(sizes.max() / sizes.sum())
        row[way] = given.scores(labels) | {"k": len(sizes), "largest": largest, "cpu": cpu}
        row[way]["warned"] = list(warned)
    return row


# --- what foretells the best method -----------------------------------------------------------------------------------


def candidates_of(group: str, path: Path, kind: str, seed: int, names: list[str], do: Do) -> common.Record:
    """Return the ARI of each candidate and the evidence for its result from the labels alone."""
    import gpuens as ge

    warnings.simplefilter("ignore")
    given = Given(group, path)
    ensemble = given.ensemble(kind, seed)
    halves = [ge.Ensemble(ensemble.to_array()[:, half::2]) for half in (0, 1)]
    answers, results = {}, {}
    for name in names:
        row = do("candidates", candidate, name, ensemble, halves, given.k, seed)
        if "failed" not in row:
            answers[name] = np.array(row.pop("labels"))
            results[name] = row | {"ari": given.scores(answers[name])["ari"]}
    for name, labels in answers.items():
        agreements = [ge.metrics.ari(labels, guess) for rival, guess in answers.items() if rival != name]
        results[name]["others"] = float(np.mean(agreements)) if agreements else 0.0
    return given.about | {"candidates": results, "ensemble": about_ensemble(ensemble)}


def candidate(name: str, ensemble: Any, halves: list[Any], k: int, seed: int) -> common.Record:
    """Return the answer of a method and the values of its evidence. For each value, larger is better."""
    import gpuens as ge

    labels = of_name(name, k, seed).fit(ensemble).labels_
    ways = [of_name(name, k, seed).fit(half).labels_ for half in halves]
    support = ge.evidence.Evidence(ensemble, labels)
    sizes = np.bincount(labels)
    shares = sizes / len(labels)
    by_cluster = [float(np.nanmean(support.objects.silhouette[labels == c])) for c in np.unique(labels)]
    return {
        "labels": labels.tolist(),
        "anmi": support.agreement.anmi,
        "ecs": support.agreement.mean_ecs,
        "item consensus": float(np.nanmean(support.objects.item_consensus)),
        "margin": float(np.nanmean(support.objects.margin)),
        "silhouette": float(np.nanmean(support.objects.silhouette)),
        "silhouette by cluster": float(np.mean(by_cluster)),
        "confidence": float(np.nanmean(support.objects.confidence)),
        "halves": ge.metrics.ari(*ways),
        "halves and whole": float(np.mean([ge.metrics.ari(labels, half) for half in ways])),
        "modularity": modularity(ensemble, labels),
        "cut": -bipartite_cut(ensemble, labels),
        "balance": float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum() / np.log(max(k, 2))),
        "smallest": int(sizes.min()),
    }


def modularity(ensemble: Any, labels: np.ndarray) -> float:
    """Return Newman's modularity of the labels in the graph whose edges are the pairs together in each clustering."""
    within = total = 0.0
    of_objects = np.zeros(len(labels))
    for column in ensemble.to_array().T:
        joint = joint_sizes(labels, column)
        sizes = joint.sum(axis=0)
        within += float((joint**2).sum())
        total += float((sizes**2).sum())
        of_objects += sizes[np.unique(column, return_inverse=True)[1]]
    degrees = np.bincount(labels, weights=of_objects) / total
    return within / total - float((degrees**2).sum())


def bipartite_cut(ensemble: Any, labels: np.ndarray) -> float:
    """Return the mean over the clusters of the share of pairs that lead out of it, the normalised cut."""
    together = degrees = 0.0
    for column in ensemble.to_array().T:
        joint = joint_sizes(labels, column)
        share = joint / joint.sum(axis=0)
        together = together + (joint * share).sum(axis=1)
        degrees = degrees + joint.sum(axis=1)
    return float(np.mean(1 - together / degrees))


def joint_sizes(labels: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return the contingency table of labels 0 … k - 1 and a base clustering."""
    codes = np.unique(column, return_inverse=True)[1]
    table = np.zeros((labels.max() + 1, codes.max() + 1))
    np.add.at(table, (labels, codes), 1.0)
    return table


def about_ensemble(ensemble: Any) -> common.Record:
    import gpuens as ge

    pairs = ge.evidence.pairs(ensemble, exact=False, n_pairs=10**6)
    numbers = [len(np.unique(column)) for column in ensemble.to_array().T]
    return {"pac": pairs.pac(), "rpac": pairs.rpac(), "mean k": float(np.mean(numbers))}


# --- large sets -------------------------------------------------------------------------------------------------------


def of_large(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    """Yield a job for each large set that is there, for each number of planted objects, and for each seed."""
    paths = [path for name in LARGE if (path := options.data / f"{name}.npz").exists()]
    sources: dict[str, Any] = {path.stem: {"path": path} for path in ([] if options.quick else paths)}
    sources |= {f"planted {n:,}": {"n": n} for n in ((1_000,) if options.quick else PLANTED)}
    for seed in options.seeds:
        for name, source in sources.items():
            yield f"{name}, {seed}", partial(common.in_child, of_large_set, limit=LIMITS["large"], seed=seed, **source)


def of_large_set(seed: int, path: str | None = None, n: int = 0) -> common.Record:
    """Return the scores of ``ge.cluster(X, k)``, its seconds and memory, after one of few objects, which loads code."""
    import gpuens as ge

    warnings.simplefilter("ignore")
    if path:
        with np.load(path) as file:
            X, y = file["X"].astype(np.float32), file["y"].astype(int)
    else:
        rng = np.random.default_rng(0)
        y = rng.integers(10, size=n)
        X = (4 * rng.standard_normal((10, 5))[y] + rng.standard_normal((n, 5))).astype(np.float32)
    k = len(np.unique(y))
    ge.cluster(X[:: max(1, len(X) // 1000)][:1000], k, random_state=seed, progress=False)
    clustering, seconds, cpu = common.timed(lambda: ge.cluster(X, k, random_state=seed, progress=False))
    scores = {"ari": ge.metrics.ari(clustering.labels_, y), "nmi": ge.metrics.nmi(clustering.labels_, y)}
    spent = {"seconds": seconds, "cpu": cpu, "peak": common.peak_memory(), "load": common.load()}
    return {"n": len(y), "d": X.shape[1], "k": k, **scores, **spent}


if __name__ == "__main__":
    main()
