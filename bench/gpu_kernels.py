"""Run times of kernels, launch by launch, on inputs of real size."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import common
import instructions
import numpy as np
from gpu_device import describe, tiny
from gpu_ensembles import FEW_ROWS, MILLION, ROWS, TINY, K, Mixture, groups_of, labels_of
from gpu_launches import Launches

import gpuens as ge
from gpuens.generate.landmark_cut import leading_of, table_of, tied
from gpuens.generate.landmark_graph import Landmarks
from gpuens.kmeans.lloyd import move_centers
from gpuens.kmeans.plus_plus import plus_plus
from gpuens.kmeans.points import Points
from gpuens.kmeans.weighted import nearest_centers
from gpuens.labels import incidence
from gpuens.labels.encoding import mark_labels, write_codes
from gpuens.labels.rows import Rows, as_rows
from gpuens.neighbors.refinement import pseudo_likelihood, sum_memberships, sum_squares, update_memberships
from gpuens.neighbors.walk import ONE, walk_step
from gpuens.partition import average_linkage, single_linkage
from gpuens.partition.label_kmeans import nearest_centroids
from gpuens.partition.mixture import posteriors
from gpuens.partition.soft_memberships import (
    BLOCK_ROWS,
    label_correspondences,
    label_memberships,
    soft_correspondences,
    soft_memberships,
)
from gpuens.reduction.ca_tree import grow
from gpuens.reduction.core_groups import core_groups, pack_rows
from gpuens.reduction.find import find_rows
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import exponentials
from gpuens.runtime.native import cpu
from gpuens.similarity.blocks import coupled_tile
from gpuens.similarity.coupled import coupling
from gpuens.similarity.diagonal import coassociation_tile
from gpuens.similarity.mapping import coefficients
from gpuens.similarity.neighborhood import Neighborhoods
from gpuens.similarity.observed import Observed
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.reference_sets import reference_sets


class Given:
    """Labels in the memory of the device, and the inputs of calls."""

    def __init__(self, labels: Any, device: str) -> None:
        self.ens, self.device, self.xp = ge.Ensemble(labels), device, devices.namespace(device)
        self.codes, self.offsets, self.rng = self.ens.codes_on(device), self.ens.offsets, np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.ens)

    def rows(self) -> Rows:
        return Rows(self.ens, device=self.device)

    def random(self, *shape: int) -> Any:
        return self.xp.asarray(self.rng.random(shape))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ens, name)  # n_clusters, n_clusterings


class Timed(NamedTuple):
    """A call that launches the kernels to measure.

    ``of`` makes it from labels; ``cold`` means that no input is in a cache.
    """

    ensemble: Mixture
    of: Callable[[Given], Callable[[], Any]]
    repeats: int = 7
    cold: bool = True


def products(on: Given) -> Callable[[], Any]:
    of_clusters, of_rows, table = on.random(on.n_clusters), on.random(len(on)), on.random(on.n_clusters, K)
    offsets = on.xp.asarray(on.offsets)

    def call() -> None:
        incidence.row_sums(on.codes, offsets, of_clusters, device=on.device)
        incidence.row_lookups(on.codes, offsets, table, device=on.device)
        incidence.cluster_sums(on.codes, offsets, of_rows, device=on.device)

    return call


def intersections(on: Given) -> Callable[[], Any]:
    return lambda: ge.contingency.intersections(on.ens, layout="dense", device=on.device)


def weighted_intersections(on: Given) -> Callable[[], Any]:
    w = on.rng.random(len(on)) + 0.1
    return lambda: ge.contingency.intersections(on.ens, w, layout="dense", device=on.device)


def pairs(on: Given) -> Callable[[], Any]:
    def call() -> None:
        for exact in (True, False):
            ge.evidence.pairs(on.rows(), exact=exact, device=on.device)

    return call


def tile(on: Given) -> Callable[[], Any]:
    n, weights = min(8192, len(on) // 2), np.ones(on.n_clusters)
    return lambda: coassociation_tile(on.codes[:n], on.codes[-n:], on.offsets, weights, device=on.device)


def tree(on: Given) -> Callable[[], Any]:
    return lambda: grow(on.rows(), 32, "given").reduce(0.2, 0.9)


def coupled_clusters(on: Given) -> Callable[[], Any]:
    return lambda: coupling(on.rows(), None)


def coupled_objects(on: Given) -> Callable[[], Any]:
    n, blocks = min(8192, len(on) // 2), coupling(on.rows(), None).on(on.device)
    return lambda: coupled_tile(on.codes[:n], on.codes[-n:], on.offsets, blocks, device=on.device)


def neighborhoods(on: Given) -> Callable[[], Any]:
    neighbourhoods = Neighborhoods(on.rows(), coupling(on.rows(), None), None)
    places, rows, labels = np.arange(min(4096, len(on))), on.rows(), np.arange(len(on)) % K
    sums = neighbourhoods.sums(rows, labels)

    def call() -> None:
        bits = neighbourhoods.bits(on.codes[: len(places)])
        neighbourhoods.common(places, bits, places, neighbourhoods.planes(bits))
        neighbourhoods.counts_in(places, bits)
        sums(rows.take(places))

    return call


def label_space(on: Given) -> Callable[[], Any]:
    offsets, counts = on.xp.asarray(on.offsets), on.xp.ones(len(on), dtype=np.int64)
    cost, const = on.random(on.n_clusters, K), on.random(K)

    def call() -> None:
        nearest, _ = nearest_centroids(on.codes, offsets, cost, const, device=on.device)
        incidence.label_histograms(on.codes, offsets, counts, nearest, K, device=on.device)

    return call


def mixture(on: Given) -> Callable[[], Any]:
    """Return a call of the E step of a mixture of multinomials."""
    logarithms, const = on.random(on.n_clusters, K), on.random(K)

    def call() -> None:
        sums = incidence.row_lookups(on.codes, on.offsets, logarithms, device=on.device)
        posteriors(sums, const, 2.0**40, device=on.device)

    return call


def ring(on: Given, weights: Any) -> tuple[Any, Any, Any]:
    """Return the graph of objects whose three predecessors and successors are their neighbours."""
    n, steps = len(on), np.array([-3, -2, -1, 1, 2, 3])
    heads = np.sort((np.arange(n)[:, None] + steps) % n, axis=1).astype(np.int32)
    return on.xp.asarray(6 * np.arange(n + 1)), on.xp.asarray(heads.ravel()), on.xp.ones(6 * n, dtype=weights)


def walk(on: Given) -> Callable[[], Any]:
    """Return a call of a step of a walk that moves the shares of all clusters of a clustering."""
    graph, shares = ring(on, np.float32), on.xp.full((len(on), K), ONE // K, dtype=np.uint16)

    def call() -> None:
        walk_step(*graph, shares, device=on.device)

    return call


def potts(on: Given) -> Callable[[], Any]:
    """Return a call of a round of refinement."""
    n, xp, graph = len(on), on.xp, cpu.GraphArrays(*ring(on, np.float64))
    objects, members = xp.asarray(np.arange(0, n - 4, 4)), xp.asarray(on.rng.permutation(n))
    memberships, labels, tau = on.random(n, K), xp.zeros(n, dtype=np.int64), on.random(1)
    terms, starts = cpu.RowTerms(on.random(n, K), members, tau), xp.arange(n + 1)

    def call() -> None:
        shares = sum_memberships(memberships, members, starts, 2.0**40, device=on.device)
        sum_squares(terms.lookups, shares, 1.0, device=on.device)
        pseudo_likelihood(graph, objects, memberships, 1.5, 2.0**20, device=on.device)
        update_memberships(graph, objects, terms, 1.5, memberships, labels, device=on.device)

    return call


def soft_correspondence(on: Given) -> Callable[[], Any]:
    """Return a call that sums over all rows in an iteration: memberships, and terms of the correspondences."""
    offsets, table, of_missing = on.xp.asarray(on.offsets), on.random(on.n_clusters, K), on.random(on.n_clusterings, K)

    def call() -> None:
        sums = label_memberships(on.codes, offsets, table, of_missing, device=on.device)
        label_correspondences(on.codes, offsets, on.xp.rint(2.0**30 * sums).astype(np.int64), device=on.device)

    return call


def soft_clusterings(on: Given) -> Callable[[], Any]:
    """Return a call that computes the same sums for two soft clusterings of 25 clusters each."""
    soft, table, sums = on.random(len(on), 50), on.random(50, K), on.xp.zeros((len(on), K))

    def call() -> None:
        soft_memberships(soft, table, sums, device=on.device)
        soft_correspondences(soft, sums, BLOCK_ROWS, device=on.device)

    return call


def encoded(on: Given) -> Callable[[], Any]:
    labels = on.xp.asarray(on.ens.to_array()).T

    def encode() -> Any:
        tables, ranks = mark_labels(labels, 2048, device=on.device)
        return write_codes(labels, tables, ranks, on.ens.codes.dtype, device=on.device)

    return encode


def packed_rows(on: Given) -> Callable[[], Any]:
    """Return a call that packs rows and searches for them among the core groups."""
    groups = core_groups(on.rows()).rows.codes

    def call() -> None:
        pack_rows(on.codes, np.diff(on.offsets) + 1, device=on.device)
        find_rows(on.codes, groups, device=on.device)

    return call


def linkage(link: Callable, weights: str) -> Callable[[Given], Callable[[], Any]]:
    def of(on: Given) -> Callable[[], Any]:
        reduced = groups_of(on.ens, on.device)
        rows = as_rows(reduced.rows, on.device)
        w = ge.similarity.eci(reduced.rows) if weights == "eci" else np.ones(rows.n_clusters, dtype=np.int64)
        return lambda: link(rows, ge.similarity.Diagonal(w, rows.offsets))

    return of


def general_linkage(on: Given) -> Callable[[], Any]:
    similarity = on.rng.random((on.n_clusters, on.n_clusters)) - 0.5
    similarity += similarity.T + np.diag(np.full(len(similarity), 2.0))
    return lambda: average_linkage(on.rows(), ge.similarity.Full(similarity, on.offsets))


def observed_linkage(on: Given) -> Callable[[], Any]:
    """Return a call of linkage with `Observed` similarities; a fifth of the labels is missing."""
    codes, missing = on.codes.copy(order="F"), on.rng.random(on.codes.shape) < 0.2
    codes[on.xp.asarray(missing)] = np.iinfo(codes.dtype).max
    of_clusterings, sizes = (np.ones(n, dtype=np.int64) for n in (on.n_clusterings, len(on)))
    rows = Rows.of_codes(codes, on.offsets, sizes, on.device)
    return lambda: average_linkage(rows, Observed(of_clusterings, on.offsets))


def mapping(on: Given) -> Callable[[], Any]:
    finder = reference_sets(on.xp.asarray(on.rng.standard_normal((len(on), 16))), 20, device=on.device)
    return lambda: coefficients(*finder.nearest(0, min(4096, len(on))), on.codes, on.offsets, device=on.device)


def landmarks(on: Given) -> Callable[[], Any]:
    """Return a call on objects with 16 features and on 1,000 landmarks."""
    points = Points.of(on.rng.standard_normal((len(on), 16), dtype=np.float32), on.device)
    n_landmarks = min(len(on), 1000)
    found = Landmarks.of_sample(points.at(np.arange(min(len(on), 10_000))), n_landmarks, 5, len(on), on.rng, on.device)

    def call() -> Any:
        objects = tied(points, found, 5)
        vectors, _, degree = leading_of(objects.products(), 20)
        objects.embed(table_of(vectors, degree))
        return objects.sums_of(objects.at(slice(20)))

    return call


def kmeans(on: Given) -> Callable[[], Any]:
    """Return a call that chooses centers among points of 20 dimensions, labels the points, and moves the centers."""
    points, labels = on.random(len(on), 20).astype(np.float32), on.xp.zeros((1, len(on)), dtype=np.int64)
    turned, counts = on.xp.ascontiguousarray(points.T), on.xp.ones(len(on), dtype=np.int64)
    first, uniform = np.zeros(1, dtype=np.int64), on.rng.random((1, K - 1, 4))
    settled = on.xp.zeros((1, 1, 1), dtype=bool)

    def call() -> Any:
        first_centers = plus_plus(turned, counts.astype(np.float64), first, uniform, device=on.device)
        centers = points[first_centers].astype(np.float64)
        total, weight, _ = nearest_centers(points, counts, centers, labels, device=on.device)
        return move_centers(centers, total, weight, settled, device=on.device)

    return call


def ranks(on: Given) -> Callable[[], Any]:
    from scipy.sparse import csr_array

    clusters = (on.ens.codes + on.offsets[:-1]).ravel()
    starts = np.arange(0, len(clusters) + 1, on.n_clusterings)
    shares = csr_array((on.rng.random(len(clusters)), clusters, starts))
    return lambda: rank_correlation(shares, device=on.device)


def powers(on: Given) -> Callable[[], Any]:
    exponents = -on.random(len(on))
    return lambda: exponentials(exponents, device=on.device)


def moves(on: Given) -> Callable[[], Any]:
    from test_gpu_parity import move_histograms

    return lambda: move_histograms(on.ens, np.ones(len(on), np.int64), on.device)


def few_searches(on: Given) -> Callable[[], Any]:
    from test_gpu_parity import search_few

    return lambda: search_few(on.ens, np.ones(len(on), np.int64), np.ones(on.n_clusters), on.device)


TIMED = {
    "products with B": Timed(MILLION, products),
    "intersections": Timed(MILLION, intersections),
    "intersections, real weights": Timed(MILLION, weighted_intersections),
    "pairs of objects": Timed(ROWS, pairs, 3),
    "co-association, 8,192 by 8,192": Timed(MILLION, tile),
    "labels encoded": Timed(MILLION, encoded),
    "packed rows": Timed(MILLION, packed_rows),
    "CA-tree": Timed(ROWS, tree, 3),
    "coupled similarities of clusters": Timed(MILLION, coupled_clusters),
    "coupled similarities, 8,192 by 8,192": Timed(MILLION, coupled_objects),
    "neighbourhoods of 4,096 rows": Timed(ROWS, neighborhoods, 3),
    "an iteration in label space": Timed(MILLION, label_space),
    "an E step of a mixture": Timed(MILLION, mixture),
    "a step of a walk": Timed(MILLION, walk),
    "a round of refinement, one colour": Timed(MILLION, potts),
    "an iteration of soft correspondence": Timed(MILLION, soft_correspondence),
    "an iteration with soft clusterings": Timed(ROWS, soft_clusterings),
    "average linkage, w = 1": Timed(ROWS, linkage(average_linkage, "ones"), 3, cold=False),
    "average linkage, w = ECI": Timed(ROWS, linkage(average_linkage, "eci"), 3, cold=False),
    "single linkage, w = 1": Timed(ROWS, linkage(single_linkage, "ones"), 3, cold=False),
    "average linkage, any similarity": Timed(FEW_ROWS, general_linkage, 3, cold=False),
    "average linkage, observed pairs": Timed(FEW_ROWS, observed_linkage, 3, cold=False),
    "reference sets of 4,096 objects": Timed(ROWS, mapping, 3),
    "objects tied to landmarks": Timed(MILLION, landmarks, 3),
    "an iteration of k-means": Timed(MILLION, kmeans),
    "rank correlation": Timed(ROWS, ranks, 3),
    "exponentials": Timed(MILLION, powers),
    "histograms moved": Timed(ROWS, moves),
    "searches of few regions": Timed(ROWS, few_searches),
}


def instruction_rate(kernel: str, case: str, device: common.Record) -> float:
    """Return the most operations per second that a GPU's instructions allow; infinity if no instructions were counted.

    instructions.py did; of the ways to compare labels in `nearest_rows` the quickest is taken.
    """
    parts = json.loads((common.RESULTS / "instructions.json").read_text())["parts"]
    architecture = f"sm_{device.get('compute_capability', '').replace('.', '')}"
    if kernel == "nearest_rows":
        of_weights = parts["ones" if case.endswith("w = 1") else "real"]["rows"]
        ways = list(of_weights.get(architecture, {}).get("now", {}).values())
    else:
        ways = [way] if (way := parts["kernels"]["rows"].get(kernel, {}).get(architecture)) else []
    if not ways:
        return np.inf
    gpu = instructions.Gpu(architecture, device["multiprocessors"], device["gigahertz"])
    return 1e9 * max(instructions.bound(gpu, counts) for counts in ways)


def time_kernels(case: str, device: str, quick: bool) -> common.Record:
    """Return a row for each kernel of a case: medians over the calls, for all launches and for the longest launch."""
    ensemble, of, repeats, cold = TIMED[case]
    if tiny(device, quick):
        ensemble, repeats = TINY._replace(groups=ensemble.groups and 200), 1
    labels = labels_of(ensemble, device)
    shape = f"{len(labels):,} × {labels.shape[1]}"
    call, flush = of(Given(labels, device)), None
    if cold and device == "cuda":
        xp = devices.namespace(device)
        flush = xp.empty(2 * describe(device, quick)["l2"], dtype=np.uint8)
    runs = []
    for _ in range(1 + repeats):
        with Launches(device, counted=True, flush=flush) as launches:
            call()
        runs.append(launches)
    rows = []
    for kernel in dict.fromkeys(runs[0].names):
        of_kernel = [[launch for launch in run.found if launch.kernel == kernel] for run in runs]
        marks = runs[0].marks
        # leave out the first run, which warmed up
        seconds = np.array([[marks.seconds(mark.start, mark.stop) for mark in of_run] for of_run in of_kernel[1:]])
        moved = np.array([float(mark.bytes) for mark in of_kernel[0]])
        operations = np.array([float(mark.operations) for mark in of_kernel[0]])
        medians = np.median(seconds, axis=0)
        longest = int(medians.argmax())
        rate = instruction_rate(kernel, case, describe(device, quick))
        rows.append(
            {
                "case": case,
                "kernel": kernel,
                "shape": shape,
                "cold": cold,
                "launches": len(medians),
                "seconds": float(np.median(seconds.sum(axis=1))),
                "bytes": moved.sum(),
                "operations": operations.sum(),
                "by_instructions": operations.sum() / rate,
                "longest": {
                    "seconds": medians[longest], "bytes": moved[longest], "operations": operations[longest],
                    "by_instructions": operations[longest] / rate,
                },
            }
        )  # fmt: skip
    return {"rows": rows}
