"""Consensus with neighbours beside consensus without: agreement with the truth, thin classes, seconds and memory.

    python bench/neighbors.py [--only real maps stripes costs] [--data DIR] [--seed 0]
    python bench/neighbors.py --quick

real     three tissues (ten spatial programs each) and a net of citations (twenty k-means runs of the words)
maps     maps of classes on a grid, in ten clusterings with errors of three kinds
stripes  a map with a stripe of one more class, 1 to 6 pixels wide
costs    maps of 100,000 and a million pixels in ten clusterings, six neighbours each, a process for each method

Every design has the true number of clusters, but for one that finds it. ARI is the mean of two seeds of the method.
Five minutes on two idle cores.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
import parts
import report
from parts import Job, Part

REAL = ("merfish04", "merfish14", "merfish24", "cora")
N_SEEDS = 2
SIDE, N_CLASSES, N_PATCHES, N_MEMBERS = 100, 6, 30, 10  # pixels of a side, classes, patches of one class, clusterings
ERRORS = {"single pixels": (0.3, 0.0), "patches": (0.0, 0.3), "both": (0.3, 0.3)}  # shares of pixels and of patches
N_MAPS = 2
WIDTHS = (1, 2, 3, 4, 6)  # pixels
SIZES = (100_000, 1_000_000)
MOST_FOR_SKLEARN = 10_000  # objects
MAJORITY_ROUNDS = 10
GOALS = {"tissues": 0.64, "cora": 0.48, "maps": 0.97, "stripe": 0.98}
GOALS_OF_COSTS = {  # seconds and bytes
    "1,000,000: domains, no regions": (6.0, 2e9),
    "1,000,000: domains": (15.0, 2e9),
    "1,000,000: connected clusters": (15.0, 2e9),
    "100,000: connected clusters": (1.0, 2e9),
}
PACKAGES = ("gpuens", "numpy", "scipy", "scikit-learn")


class Scene(NamedTuple):
    """Labels of objects with neighbours, and their true classes."""

    labels: np.ndarray  # (N, M)
    truth: np.ndarray  # (N,)
    graph: Any  # gpuens.Graph


def main() -> None:
    jobs = {"real": real_jobs, "maps": map_jobs, "stripes": stripe_jobs, "costs": cost_jobs}
    parser = parts.parser(__doc__, jobs, quick="small maps, no tissues")
    parser.add_argument("--data", type=Path, help="directory with spatial/*.npz (GPUENS_DATA)")
    options = parser.parse_args()
    options.data = options.data or os.environ.get("GPUENS_DATA")
    parts.run(
        "neighbors", options, {name: Part(job) for name, job in jobs.items()},
        report.Page("neighbors", sys.modules[__name__]).markdown, packages=PACKAGES,
        setting={"seeds": N_SEEDS, "members": N_MEMBERS, "errors": ERRORS},
    )  # fmt: skip


def real_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name in () if options.quick or options.data is None else REAL:
        yield name, partial(common.in_child, of_real, name=name, data=options.data)


def map_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    side, n_maps = (30, 1) if options.quick else (SIDE, N_MAPS)
    for errors in ERRORS:
        for seed in range(options.seed, options.seed + n_maps):
            yield f"{errors}, {seed}", partial(common.in_child, of_map, side=side, errors=errors, seed=seed)


def stripe_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for width in (3,) if options.quick else WIDTHS:
        side = 30 if options.quick else SIDE
        yield f"{width}", partial(common.in_child, of_stripe, side=side, width=width, seed=options.seed)


def cost_jobs(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n in (400,) if options.quick else SIZES:
        for name in TIMED:
            yield f"{n:,}: {name}", partial(common.in_child, of_cost, n=n, name=name, seed=options.seed)


# --- data -------------------------------------------------------------------------------------------------------------


def published(name: str, data: str | Path) -> Scene:
    """Return a published set."""
    import gpuens as ge

    with np.load(Path(data) / "spatial" / f"{name}.npz") as arrays:
        labels, truth = arrays["labels"], arrays["truth"]
        if "edges" in arrays:
            return Scene(labels, truth, ge.Graph.of(arrays["edges"], len(labels)))
        return Scene(labels, truth, ge.Graph.neighbors(arrays["coordinates"]))


def patches_of(places: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the patch (N,) of each place: the nearest of ``n`` random points."""
    from scipy.spatial import KDTree

    return np.asarray(KDTree(places.min(0) + rng.random((n, 2)) * np.ptp(places, axis=0)).query(places)[1])


def map_of(side: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the places (N, 2) of a square of pixels, and their classes (N,): those of random patches."""
    places = np.indices((side, side)).reshape(2, -1).T.astype(float)
    return places, (np.arange(N_PATCHES) % N_CLASSES)[patches_of(places, N_PATCHES, rng)]


def members_of(
    truth: np.ndarray, places: np.ndarray, errors: str, rng: np.random.Generator, n_members: int = N_MEMBERS
) -> np.ndarray:
    """Return clusterings (N, M) of a map: each joins two classes, splits one in two by a line, and errs."""
    n, k = len(truth), int(truth.max()) + 1
    of_pixels, of_patches = ERRORS[errors]
    columns = []
    for _ in range(n_members):
        joined, neighbour, split = rng.permutation(k)[:3]
        column = np.where(truth == joined, neighbour, truth)
        sides = (places - places.mean(0)) @ rng.standard_normal(2) > 0.0
        column[(truth == split) & sides] = k
        if of_patches:
            patch = patches_of(places, 2 * N_PATCHES, rng)
            noise = np.where(rng.random(2 * N_PATCHES) < of_patches, rng.integers(0, k + 1, 2 * N_PATCHES), -1)[patch]
            column = np.where(noise < 0, column, noise)
        strays = rng.random(n) < of_pixels
        columns.append(np.where(strays, rng.integers(0, k + 1, n), column).astype(np.uint8))
    return np.column_stack(columns)


def drawn_map(side: int, errors: str, seed: int) -> Scene:
    import gpuens as ge

    rng = np.random.default_rng(seed)
    places, truth = map_of(side, rng)
    return Scene(members_of(truth, places, errors, rng), truth, ge.Graph.grid((side, side)))


def drawn_stripe(side: int, width: int, seed: int) -> Scene:
    """Return a map across which a stripe of a class of its own runs, a third of the way down."""
    import gpuens as ge

    rng = np.random.default_rng(seed)
    places, truth = map_of(side, rng)
    truth = np.where((places[:, 0] >= side // 3) & (places[:, 0] < side // 3 + width), N_CLASSES, truth)
    return Scene(members_of(truth, places, "single pixels", rng), truth, ge.Graph.grid((side, side)))


# --- designs ----------------------------------------------------------------------------------------------------------


def majority(labels: np.ndarray, graph: Any) -> np.ndarray:
    """Return labels (N,) after rounds in which each object takes the commonest label of itself and its neighbours."""
    k = int(labels.max()) + 1
    for _ in range(MAJORITY_ROUNDS):
        votes = graph.matrix() @ np.eye(k)[labels] + np.eye(k)[labels] * 1.001  # its own label wins a tie
        before, labels = labels, votes.argmax(axis=1)
        if (before == labels).all():
            break
    return labels


def smoothed(scene: Scene) -> np.ndarray:
    """Return the shares of the labels around each object, dense (N, C)."""
    from scipy.sparse import csr_array

    import gpuens as ge
    from gpuens.neighbors.walk import ONE, walk

    shares = walk(ge.Rows(scene.labels), scene.graph)
    arrays = shares.values / ONE, shares.columns, shares.starts
    return csr_array(arrays, shape=(len(scene.labels), shares.n_columns)).toarray()


def by_sklearn(linkage: str) -> Callable[[Scene, int, int], np.ndarray | None]:
    def of(scene: Scene, k: int, seed: int) -> np.ndarray | None:
        from sklearn.cluster import AgglomerativeClustering

        if len(scene.labels) > MOST_FOR_SKLEARN:
            return None
        estimator = AgglomerativeClustering(k, linkage=linkage, connectivity=scene.graph.matrix())
        return estimator.fit_predict(smoothed(scene))

    return of


def without_graph(scene: Scene, k: int, seed: int) -> np.ndarray:
    import gpuens as ge

    return ge.LWGP(k, random_state=seed).fit(scene.labels).labels_


def domains(**parameters: Any) -> Callable[[Scene, int | None, int], np.ndarray]:
    def of(scene: Scene, k: int | None, seed: int) -> np.ndarray:
        import gpuens as ge

        return ge.Spatial(k, random_state=seed, **parameters).fit(scene.labels, graph=scene.graph).labels_

    return of


def connected(scene: Scene, k: int, seed: int) -> np.ndarray:
    """Return connected clusters, one more for each further component of the graph."""
    import gpuens as ge

    return ge.EAC(k + scene.graph.n_components - 1).fit(scene.labels, graph=scene.graph).labels_


DESIGNS: dict[str, Callable[[Scene, Any, int], np.ndarray | None]] = {
    "LWGP": without_graph,
    "majority": lambda scene, k, seed: majority(without_graph(scene, k, seed), scene.graph),
    "Spatial": domains(),
    "no regions": domains(regions=None),
    "no refine": domains(refine=False),
    "lwgp": domains(method="lwgp"),
    "no k": lambda scene, k, seed: domains()(scene, None, seed),
    "EAC": connected,
    "ward": by_sklearn("ward"),
    "average": by_sklearn("average"),
}
TIMED = {
    "domains, no regions": domains(regions=None),
    "domains": domains(),
    "connected clusters": connected,
}


# --- what is measured -------------------------------------------------------------------------------------------------


def scores(scene: Scene, wanted: Any = DESIGNS, n_seeds: int = N_SEEDS) -> common.Record:
    """Return the ARI of designs with each seed, and those of the members."""
    import gpuens as ge

    warnings.simplefilter("ignore")
    k = len(np.unique(scene.truth))
    members = [ge.metrics.ari(scene.truth, column) for column in scene.labels.T]
    row: common.Record = {
        "objects": len(scene.truth), "k": k, "best": max(members), "mean": float(np.mean(members)), "designs": {}
    }  # fmt: skip
    for name in wanted:
        results = [DESIGNS[name](scene, k, seed) for seed in range(n_seeds)]
        row["designs"][name] = {
            "ari": [ge.metrics.ari(scene.truth, labels) for labels in results if labels is not None],
            "k": [len(np.unique(labels)) for labels in results if labels is not None],
        }
    return row


def of_real(name: str, data: str) -> common.Record:
    return scores(published(name, data))


def of_map(side: int, errors: str, seed: int) -> common.Record:
    return scores(drawn_map(side, errors, seed))


def of_stripe(side: int, width: int, seed: int, wanted: Any = DESIGNS) -> common.Record:
    """Return the F1 of the stripe by each design: that of the cluster which fits it best."""
    warnings.simplefilter("ignore")
    scene = drawn_stripe(side, width, seed)
    stripe = scene.truth == N_CLASSES
    row: common.Record = {"designs": {}}
    for name in wanted:
        labels = DESIGNS[name](scene, N_CLASSES + 1, 0)
        if labels is not None:
            common_size, sizes = np.bincount(labels[stripe], minlength=labels.max() + 1), np.bincount(labels)
            row["designs"][name] = {"f1": float((2 * common_size / (sizes + stripe.sum())).max())}
    return row


def of_cost(n: int, name: str, seed: int) -> common.Record:
    """Return seconds and memory of a fit of a map of about n pixels with six neighbours each, after one of few."""
    import gpuens as ge

    warnings.simplefilter("ignore")
    TIMED[name](drawn_map(20, "single pixels", seed), N_CLASSES, seed)  # imports packages
    rng, side = np.random.default_rng(seed), round(n**0.5)
    places, truth = map_of(side, rng)
    labels = members_of(truth, places, "single pixels", rng)
    number = np.arange(side * side).reshape(side, side)
    pairs = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:]), (number[:-1, 1:], number[1:, :-1])]
    edges = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
    start = time.perf_counter()
    graph = ge.Graph.of(edges, len(truth))
    row = {"objects": len(truth), "edges": graph.n_edges, "of_graph": time.perf_counter() - start}
    scene = Scene(labels, truth, graph)
    del places, number, pairs, edges
    partition, seconds, cpu = common.timed(lambda: TIMED[name](scene, N_CLASSES, seed))
    return row | {
        "seconds": seconds, "cpu": cpu, "peak": common.peak_memory(), "load": common.load(),
        "ari": ge.metrics.ari(truth, partition),
    }  # fmt: skip


# --- the page ---------------------------------------------------------------------------------------------------------


def mean_of(rows: common.Record, design: str) -> float:
    return float(np.mean([np.mean(row["designs"][design]["ari"]) for row in rows.values()]))


def real(rows: common.Record) -> Iterator[report.Found]:
    for data_set in ("tissues", "cora"):
        of = {name: row for name, row in rows.items() if (name == "cora") == (data_set == "cora")}
        if of:
            yield data_set, {**against_goal(of, data_set), "best": float(np.mean([row["best"] for row in of.values()]))}


def maps(rows: common.Record) -> Iterator[report.Found]:
    yield "maps", against_goal(rows, "maps")


def against_goal(rows: common.Record, data_set: str) -> common.Record:
    """Return the mean ARI of domains, whether it reaches the goal, and those of the ways that it has to surpass."""
    value = mean_of(rows, "Spatial")
    rivals = {"without": mean_of(rows, "LWGP"), "after": mean_of(rows, "majority")}
    return {"value": value, "goal": GOALS[data_set], "ok": value >= GOALS[data_set], **rivals}


def stripes(rows: common.Record) -> Iterator[report.Found]:
    wide = [row["designs"]["Spatial"]["f1"] for width, row in rows.items() if int(width) >= 3]
    if wide:
        yield "stripe", {"value": min(wide), "goal": GOALS["stripe"], "ok": min(wide) >= GOALS["stripe"]}


def costs(rows: common.Record) -> Iterator[report.Found]:
    for name, (seconds, memory) in GOALS_OF_COSTS.items():
        if row := rows.get(name):
            goals = {"goal": seconds, "ok": row["seconds"] <= seconds, "memory": memory, "small": row["peak"] <= memory}
            yield "cost", {"name": name, **row, **goals}


if __name__ == "__main__":
    main()
