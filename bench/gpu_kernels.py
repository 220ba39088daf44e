"""How long kernels take, launch by launch, on inputs of real size."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import common
import numpy as np
from gpu_device import describe, tiny
from gpu_ensembles import FEW_ROWS, MILLION, ROWS, TINY, K, Mixture, groups_of, labels_of, move_histograms
from gpu_launches import Launches

import gpuens as ge
from gpuens import device as devices

if TYPE_CHECKING:
    from gpu import Bench


class Timed(NamedTuple):
    """What to call for the times of some kernels: made from an ensemble by ``of``; ``cold``: inputs from memory."""

    ensemble: Mixture
    of: Callable[[Any, str], Callable[[], Any]]
    repeats: int = 7
    cold: bool = True


def call_products(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens import incidence

    ens, xp = ge.Ensemble(labels), devices.namespace(device)
    codes, offsets, rng = ens.codes_on(device), xp.asarray(ens.offsets), np.random.default_rng(0)
    of_clusters, of_rows = xp.asarray(rng.random(ens.n_clusters)), xp.asarray(rng.random(ens.n_objects))
    table = xp.asarray(rng.random((ens.n_clusters, K)))

    def call() -> None:
        incidence.row_sums(codes, offsets, of_clusters, device=device)
        incidence.row_lookups(codes, offsets, table, device=device)
        incidence.cluster_sums(codes, offsets, of_rows, device=device)

    return call


def call_intersections(labels: Any, device: str) -> Callable[[], Any]:
    ens = ge.Ensemble(labels)
    return lambda: ge.contingency.intersections(ens, layout="dense", device=device)


def call_weighted_intersections(labels: Any, device: str) -> Callable[[], Any]:
    ens, w = ge.Ensemble(labels), np.random.default_rng(0).random(len(labels)) + 0.1
    return lambda: ge.contingency.intersections(ens, w, layout="dense", device=device)


def call_tile(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.similarity.coassociation import coassociation_tile

    ens = ge.Ensemble(labels)
    codes, weights = ens.codes_on(device), np.ones(ens.n_clusters)
    n = min(8192, len(codes) // 2)
    return lambda: coassociation_tile(codes[:n], codes[-n:], ens.offsets, weights, device=device)


def call_tree(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.reduction.ca_tree import grow

    ens = ge.Ensemble(labels)
    return lambda: grow(ens, 32, "given", device=device).reduce(0.2, 0.9)


def call_coupling(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.similarity.coupled import coupling

    ens = ge.Ensemble(labels)
    return lambda: coupling(ens, None, None, device=device)


def call_coupled_tile(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.similarity.coupled import coupled_tile, coupling

    ens = ge.Ensemble(labels)
    codes, blocks = ens.codes_on(device), coupling(ens, None, None, device=device).on(device)
    n = min(8192, len(codes) // 2)
    return lambda: coupled_tile(codes[:n], codes[-n:], ens.offsets, blocks, device=device)


def call_neighborhoods(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.similarity.coupled import coupling
    from gpuens.similarity.neighborhood import Neighborhoods

    ens, each = ge.Ensemble(labels), np.ones(len(labels), dtype=np.int64)
    near = Neighborhoods(ens, each, coupling(ens, each, None, device=device), None, device=device)
    some, values = np.arange(min(4096, len(ens))), np.ones((len(ens), K), dtype=np.int64)

    def call() -> None:
        bits = near.bits(ens.codes_on(device)[: len(some)])
        near.common(some, bits, some, near.planes(bits))
        near.counts_in(some, bits)
        near.sums(bits, values)

    return call


def call_label_space(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.partition.label_kmeans import label_histograms, nearest_centroids

    ens, xp, rng = ge.Ensemble(labels), devices.namespace(device), np.random.default_rng(0)
    codes, offsets, counts = ens.codes_on(device), xp.asarray(ens.offsets), xp.ones(len(ens), dtype=np.int64)
    cost, const = xp.asarray(rng.random((ens.n_clusters, K))), xp.asarray(rng.random(K))

    def call() -> None:
        found, _ = nearest_centroids(codes, offsets, cost, const, device=device)
        label_histograms(codes, offsets, counts, found, K, device=device)

    return call


def call_soft_correspondence(labels: Any, device: str) -> Callable[[], Any]:
    """Return an iteration's sums over all rows: memberships, and what the correspondences are made of."""
    from gpuens.partition.soft_correspondence import label_correspondences, label_memberships

    ens, rng, xp = ge.Ensemble(labels), np.random.default_rng(0), devices.namespace(device)
    codes, offsets = ens.codes_on(device), xp.asarray(ens.offsets)
    table, of_missing = xp.asarray(rng.random((ens.n_clusters, K))), xp.asarray(rng.random((ens.n_clusterings, K)))

    def call() -> None:
        sums = label_memberships(codes, offsets, table, of_missing, device=device)
        label_correspondences(codes, offsets, xp.rint(2.0**30 * sums).astype(np.int64), device=device)

    return call


def call_soft_clusterings(labels: Any, device: str) -> Callable[[], Any]:
    """Return the same of two soft clusterings of 25 clusters each."""
    from gpuens.partition.soft_correspondence import BLOCK_ROWS, soft_correspondences, soft_memberships

    rng, xp = np.random.default_rng(0), devices.namespace(device)
    soft, table = xp.asarray(rng.random((len(labels), 50))), xp.asarray(rng.random((50, K)))
    sums = xp.zeros((len(labels), K))

    def call() -> None:
        soft_memberships(soft, table, sums, device=device)
        soft_correspondences(soft, sums, BLOCK_ROWS, device=device)

    return call


def call_pack_rows(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.reduction.core_groups import pack_rows

    ens = ge.Ensemble(labels)
    return lambda: pack_rows(ens.codes_on(device), np.diff(ens.offsets) + 1, device=device)


def call_linkage(link: str, weights: str) -> Callable[[Any, str], Callable[[], Any]]:
    def of(labels: Any, device: str) -> Callable[[], Any]:
        from gpuens import partition

        reduced = groups_of(ge.Ensemble(labels), device)
        rows = reduced.ensemble
        w = np.ones(rows.n_clusters, dtype=np.int64)
        if weights == "eci":
            w = ge.similarity.eci(rows, weights=reduced.weights, device=device)
        codes = rows.codes_on(device)
        return lambda: getattr(partition, link)(codes, rows.offsets, w, reduced.weights, device=device)

    return of


def call_mapping(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.similarity.mapping import coefficients
    from gpuens.similarity.reference_sets import reference_sets

    ens, xp = ge.Ensemble(labels), devices.namespace(device)
    finder = reference_sets(xp.asarray(np.random.default_rng(0).standard_normal((len(ens), 16))), 20, device=device)

    def call() -> None:
        coefficients(*finder.of(0, min(4096, len(ens))), ens.codes_on(device), ens.offsets, device=device)

    return call


def call_ranks(labels: Any, device: str) -> Callable[[], Any]:
    from scipy.sparse import csr_array

    from gpuens.similarity.ranks import rank_correlation

    ens = ge.Ensemble(labels)
    clusters = (ens.codes + ens.offsets[:-1]).ravel()
    starts = np.arange(0, len(clusters) + 1, ens.n_clusterings)
    shares = csr_array((np.random.default_rng(0).random(len(clusters)), clusters, starts))
    return lambda: rank_correlation(shares, device=device)


def call_general_linkage(labels: Any, device: str) -> Callable[[], Any]:
    from gpuens.partition import average_linkage

    rows = ge.Ensemble(labels)
    similarity = np.random.default_rng(0).random((rows.n_clusters, rows.n_clusters)) - 0.5
    similarity += similarity.T + np.diag(np.full(len(similarity), 2.0))
    codes, sizes = rows.codes_on(device), np.ones(len(rows), dtype=np.int64)
    return lambda: average_linkage(codes, rows.offsets, similarity, sizes, device=device)


def call_moves(labels: Any, device: str) -> Callable[[], Any]:
    rows = ge.Ensemble(labels)
    return lambda: move_histograms(rows, np.ones(len(rows), np.int64), device)


TIMED = {
    "products with B": Timed(MILLION, call_products),
    "intersections": Timed(MILLION, call_intersections),
    "intersections, real weights": Timed(MILLION, call_weighted_intersections),
    "co-association, 8,192 by 8,192": Timed(MILLION, call_tile),
    "packed rows": Timed(MILLION, call_pack_rows),
    "CA-tree": Timed(ROWS, call_tree, 3),
    "coupled similarities of clusters": Timed(MILLION, call_coupling),
    "coupled similarities, 8,192 by 8,192": Timed(MILLION, call_coupled_tile),
    "neighbourhoods of 4,096 rows": Timed(ROWS, call_neighborhoods, 3),
    "an iteration in label space": Timed(MILLION, call_label_space),
    "an iteration of soft correspondence": Timed(MILLION, call_soft_correspondence),
    "an iteration with soft clusterings": Timed(ROWS, call_soft_clusterings),
    "average linkage, w = 1": Timed(ROWS, call_linkage("average_linkage", "ones"), 3, cold=False),
    "average linkage, w = ECI": Timed(ROWS, call_linkage("average_linkage", "eci"), 3, cold=False),
    "single linkage, w = 1": Timed(ROWS, call_linkage("single_linkage", "ones"), 3, cold=False),
    "average linkage, any similarity": Timed(FEW_ROWS, call_general_linkage, 3, cold=False),
    "reference sets of 4,096 objects": Timed(ROWS, call_mapping, 3),
    "rank correlation": Timed(ROWS, call_ranks, 3),
    "histograms moved": Timed(ROWS, call_moves),
}


def kernel_times(bench: "Bench") -> None:
    for case in TIMED:
        found = bench.do("time_kernels", case, least=8.0, case=case, **bench.place)
        bench.add("kernels", found.get("rows", [{"case": case, **found}]))


def time_kernels(case: str, device: str, quick: bool) -> common.Record:
    """Return a row for each kernel of a case: medians over its calls, of all its launches and of the longest one."""
    ensemble, of, repeats, cold = TIMED[case]
    if tiny(device, quick):
        ensemble, repeats = TINY._replace(groups=ensemble.groups and 200), 1
    labels = labels_of(ensemble, device)
    shape = f"{len(labels):,} × {labels.shape[1]}"
    call, flush = of(labels, device), None
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
        own = [[launch for launch in run.found if launch.kernel == kernel] for run in runs]
        marks = runs[0].marks
        # the first run warmed up
        seconds = np.array([[marks.seconds(at.start, at.stop) for at in of_run] for of_run in own[1:]])
        moved = np.array([float(at.bytes) for at in own[0]])
        operations = np.array([float(at.operations) for at in own[0]])
        each = np.median(seconds, axis=0)
        longest = int(each.argmax())
        rows.append(
            {
                "case": case,
                "kernel": kernel,
                "shape": shape,
                "cold": cold,
                "launches": len(each),
                "seconds": float(np.median(seconds.sum(axis=1))),
                "bytes": moved.sum(),
                "operations": operations.sum(),
                "longest": {
                    "seconds": each[longest], "bytes": moved[longest], "operations": operations[longest]
                },
            }
        )  # fmt: skip
    return {"rows": rows}
