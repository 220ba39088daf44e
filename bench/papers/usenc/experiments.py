"""Repeat the experiments of the U-SENC paper: its real sets, and sets like its synthetic ones.

DIR holds pd.npz, usps.npz, lr.npz, mnist.npz and covtype.npz. Ensembles are 20 landmark spectral clusterings, k drawn
from 20 to 60; the true number of clusters is asked for. The parts:

    sets     the five real sets: consensus, members, and one landmark clustering with the true k
    growth   bananas, a face, circles, circles with Gaussians, a flower: 100,000 to 20 million objects, one run each
    digits   a million and 8.1 million deformed images of MNIST, read from a file, one run each

About two hours on two cores, and 7 GB of disk. --quick takes scikit-learn's digits, and 20,000 objects.
"""

import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import common
import numpy as np
from papers import printed_by
from papers.usenc.sets import MAKERS, deformed
from parts import Job, Part
from sklearn.cluster import MiniBatchKMeans

import gpuens as ge

PACKAGES = ()
RUNS = (2, 20)
PRINTED = printed_by("usenc")
CLUSTERINGS = 20
SIZES = {
    "TB-like": (100_000, 1_000_000),
    "SF-like": (200_000, 2_000_000),
    "CC-like": (500_000, 5_000_000),
    "CG-like": (1_000_000, 10_000_000),
    "Flower-like": (2_000_000, 20_000_000),
}


def sets(options: Namespace, rows: common.Record) -> Iterator[Job]:
    names = {"digits": "digits"} if options.quick else {name: own["stored"] for name, own in PRINTED["sets"].items()}
    for name, stored in names.items():
        if not options.sets or name in options.sets:
            yield (
                name,
                partial(common.in_child, score, stored=stored, data=options.data, seed=options.seed, runs=options.runs),
            )


def growth(options: Namespace, rows: common.Record) -> Iterator[Job]:
    sizes = {"TB-like": (20_000,)} if options.quick else SIZES
    for name, own in sizes.items():
        for n in own:
            if not options.sets or name in options.sets:
                yield f"{name}, {n:,}", partial(common.in_child, grow, name=name, n_objects=n, seed=options.seed)


def digits(options: Namespace, rows: common.Record) -> Iterator[Job]:
    stored = "digits" if options.quick else "mnist"
    for n in (5_000,) if options.quick else (1_000_000, 8_100_000):
        given = {"stored": stored, "data": options.data, "n_objects": n, "seed": options.seed}
        yield f"{stored}-like, {n:,}", partial(common.in_child, deform, **given)


PARTS = {"sets": Part(sets), "growth": Part(growth), "digits": Part(digits)}


def scores(y: np.ndarray, labels: np.ndarray) -> common.Record:
    return {"NMI": ge.metrics.nmi(y, labels, average="max"), "CA": ge.metrics.accuracy(labels, y)}


def import_packages(X: np.ndarray) -> None:
    """Import the packages of U-SENC, which takes time only once."""
    ge.cluster(X[:2000], 2, method="hbgf", kind="landmark", n_clusterings=1, progress=False)


def consensus(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> tuple[dict[str, common.Record], common.Record]:
    """Return the scores of each method, and the seconds of generation and of each consensus."""
    began = time.perf_counter()
    ensemble = ge.generate.landmark_ensemble(X, CLUSTERINGS, random_state=seed, progress=False)
    spent = {"generation": time.perf_counter() - began}
    found = {}
    for name in ("HBGF", "LWGP"):
        began = time.perf_counter()
        labels = getattr(ge, name)(k, random_state=seed).fit(ensemble).labels_
        spent[name] = time.perf_counter() - began
        found[name] = scores(y, labels)
    members = [scores(y, column) for column in ensemble.codes.T]
    found["members"] = {score: float(np.mean([own[score] for own in members])) for score in members[0]}
    return found, spent


def score(stored: str, data: str | None, seed: int, runs: int) -> common.Record:
    """Return the scores and seconds of each run."""
    found = ge.datasets.load(stored, data=data)
    X, y = np.asarray(found.X), found.y
    k = len(np.unique(y))
    import_packages(X)
    methods: dict[str, dict[str, list]] = {}
    spent: dict[str, list] = {}
    for run in range(runs):
        own, seconds = consensus(X, y, k, seed + run)
        one = ge.generate.landmark_ensemble(X, 1, k, max_iter=100, random_state=seed + run, progress=False)
        own["one clustering"] = scores(y, one.to_array()[:, 0])
        for method, values in own.items():
            for name, value in values.items():
                methods.setdefault(method, {}).setdefault(name, []).append(value)
        for what, value in seconds.items():
            spent.setdefault(what, []).append(value)
    return {
        "n_objects": len(y), "d": X.shape[1], "k": k, "runs": runs, "methods": methods, "seconds": spent,
        "peak": common.peak_memory(),
    }  # fmt: skip


def grow(name: str, n_objects: int, seed: int) -> common.Record:
    """Return the scores and seconds of one run, beside scikit-learn's mini-batch k-means with the true k."""
    X, y = MAKERS[name](n_objects, np.random.default_rng(seed))
    k = int(y.max()) + 1
    import_packages(X)
    found, spent = consensus(X, y, k, seed)
    peak, began = common.peak_memory(), time.perf_counter()
    found["k-means"] = scores(y, rival(X, k, seed))
    spent["k-means"] = time.perf_counter() - began
    return {
        "n_objects": n_objects, "k": k, "name": name, "methods": found, "seconds": spent, "peak": peak,
    }  # fmt: skip


def rival(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the labels of scikit-learn's mini-batch k-means in one pass; `fit` of 20 million takes 40 minutes."""
    model, blocks = MiniBatchKMeans(k, n_init=1, random_state=seed), range(0, len(X), 10_000)
    for start in blocks:
        model.partial_fit(X[start : start + 10_000].astype(np.float32))
    return np.concatenate([model.predict(X[start : start + 10_000].astype(np.float32)) for start in blocks])


def deform(stored: str, data: str | None, n_objects: int, seed: int) -> common.Record:
    """Return the scores and seconds of one run on deformed images, beside mini-batch k-means in one pass."""
    original = ge.datasets.load(stored, data=data)
    side = int(np.sqrt(original.X.shape[1]))
    images, rng = np.asarray(original.X).reshape(-1, side, side), np.random.default_rng(seed)
    scale = np.iinfo(np.uint8).max / images.max()
    import_packages(images.reshape(-1, side * side))
    with tempfile.TemporaryDirectory() as folder:
        X, of = deformed(images * scale, n_objects, rng, Path(folder) / "X.npy")
        y, k = original.y[of], original.n_classes
        del original, images
        found, spent = consensus(X, y, k, seed)
        peak, began = common.peak_memory(), time.perf_counter()
        found["k-means"] = scores(y, rival(X, k, seed))
        spent["k-means"] = time.perf_counter() - began
    return {"n_objects": n_objects, "k": k, "methods": found, "seconds": spent, "peak": peak}
