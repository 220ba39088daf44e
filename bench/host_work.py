"""The host's part of the work of a GPU: launches, waits, copies and processor time outside kernels, without a GPU.

    python tests/gpu_stack/build.py FOLDER
    python bench/host_work.py FOLDER [--before CHECKOUT] [--only fits]

CuPy runs on the stand-in for a GPU of tests/gpu_stack, which tells how much processor time its kernels took; the rest
is the host's, copies and cuBLAS's stand-in included. A driver's own part of a launch, some 2 µs, is left out. Between
kernels that take milliseconds here, the host's code is no longer in the cache, and takes several times as long.

Fits are those of few objects, because a processor in place of a GPU is slow. Stages of linkage are those of all rows of
a mixture like Covertype. CHECKOUT is a directory with an older version, in which each is done too; a dash stands for
what that version does not have.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import common
import numpy as np
import parts
import report
from gpu_ensembles import K, Mixture, groups_of, labels_of, points_of
from parts import Job, Part

import gpuens as ge

PACKAGES = ("gpuens", "numpy", "scipy")
REPEATS = 3
AT_ONCE = 200  # requests of one measurement of a single request
CLUSTERINGS = (20, 100)
OBJECTS, MORE_OBJECTS, ROWS_OF = 400, 20_000, 581_012  # objects of all fits, of linkage's, and of the stages
QUICK_OBJECTS = 100

Work: TypeAlias = Callable[[], Any]


def main() -> None:
    parser = parts.parser(__doc__, PARTS, quick="100 objects")
    parser.add_argument("standin", type=Path, metavar="FOLDER", help="made by tests/gpu_stack/build.py")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="an older version, measured in turns")
    options = parser.parse_args()
    page = report.Page("host_work", sys.modules[__name__])
    before = common.commit(options.before) if options.before else None
    parts.run("host_work", options, PARTS, page.markdown, packages=PACKAGES, setting={"before": before})


def each(options: argparse.Namespace, task: Callable[..., common.Record], **given: Any) -> common.Record:
    """Return the result of a task in a process of each version, on the stand-in."""
    row = {}
    for version, checkout in common.checkouts(options.before).items():
        # further threads of the stand-in's BLAS would count as the host's
        environment = {"PYTHONPATH": f"{options.standin.resolve()}:{checkout}", "OPENBLAS_NUM_THREADS": "1"}
        row[version] = common.in_child(task, environment=environment, **given)
    if "failed" in row["now"]:
        raise RuntimeError(row["now"]["failed"])
    return row


def cost(work: Work, repeats: int = REPEATS) -> common.Record:
    """Return the least milliseconds of the host among repeated calls, after a first, and the requests of one call."""
    import cupy  # noqa: F401 - counts are those of its driver
    import gpu_stack

    work()
    seconds = []
    for _ in range(repeats):
        before, busy, start = gpu_stack.counts(), gpu_stack.busy(), time.process_time()
        work()
        seconds.append(time.process_time() - start - gpu_stack.busy() + busy)
        counts = {name: value - before[name] for name, value in gpu_stack.counts().items()}
    return {"milliseconds": 1e3 * min(seconds), **counts}


# --- single requests --------------------------------------------------------------------------------------------------


def of_requests(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for name in ("a kernel", "a kernel again", "a + b", "a[i]", "a sort", "a read of 8 bytes"):
        yield name, partial(each, options, request, name=name)


def request(name: str) -> common.Record:
    """Return the microseconds of one request."""
    import cupy as cp

    from gpuens.runtime import kernels

    numbers, ids, lists = cp.zeros(64), cp.arange(64), cp.zeros((64, 2), dtype=np.int32)
    empty, zero = cp.zeros(1, dtype=np.int64), np.float64(0)
    arguments = (ids, empty, np.int32(2), zero, zero, ids, numbers, lists, numbers, numbers, ids)

    def launch() -> None:
        kernels.launch("take_first_listed", 1, 1, arguments, device="cuda", WEIGHT="f64")

    with kernels.recorded() as launches:
        launch()
    work = {
        "a kernel": launch, "a kernel again": launches[0], "a + b": lambda: numbers + numbers,
        "a[i]": lambda: numbers[ids], "a sort": ids.argsort, "a read of 8 bytes": empty.get,
    }[name]  # fmt: skip
    return {"microseconds": 1e3 * cost(lambda: [work() for _ in range(AT_ONCE)])["milliseconds"] / AT_ONCE}


# --- whole fits -------------------------------------------------------------------------------------------------------


def of_fits(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n_clusterings in CLUSTERINGS[: 1 if options.quick else None]:
        for name in ("LWEA", "EAC", "LWGP", "HBGF", "cluster()"):
            n = QUICK_OBJECTS if options.quick else OBJECTS
            arguments = {"method": name, "n_objects": n, "n_clusterings": n_clusterings}
            yield f"{name}, {n} × {n_clusterings}", partial(each, options, fit, **arguments)
    for name in () if options.quick else ("LWEA", "EAC"):
        arguments = {"method": name, "n_objects": MORE_OBJECTS, "n_clusterings": CLUSTERINGS[0], "repeats": 1}
        yield f"{name}, {MORE_OBJECTS:,} × {CLUSTERINGS[0]}", partial(each, options, fit, **arguments)


def fit(method: str, n_objects: int, n_clusterings: int, repeats: int = REPEATS) -> common.Record:
    import cupy as cp

    mixture = Mixture(n_objects, n_clusterings)
    if method == "cluster()":
        X = cp.asarray(points_of(mixture)[0])
        return cost(lambda: ge.cluster(X, K, n_clusterings=n_clusterings), repeats)
    labels = labels_of(mixture, "cuda")
    return cost(lambda: getattr(ge, method)(K).fit(labels), repeats)


# --- stages of linkage ------------------------------------------------------------------------------------------------


def of_stages(options: argparse.Namespace, rows: common.Record) -> Iterator[Job]:
    for n_clusterings in CLUSTERINGS[: 1 if options.quick else None]:
        arguments = {"n_objects": QUICK_OBJECTS if options.quick else ROWS_OF, "n_clusterings": n_clusterings}
        for name in STAGES:
            yield f"{name}, × {n_clusterings}", partial(each, options, stage, name=name, **arguments)


def stage(name: str, n_objects: int, n_clusterings: int) -> common.Record:
    from gpuens.labels.rows import Rows

    groups = groups_of(ge.Ensemble(labels_of(Mixture(n_objects, n_clusterings), "cpu")), "cpu")
    rows = {device: Rows.of(groups.ensemble, groups.counts, device) for device in ("cpu", "cuda")}
    return cost(STAGES[name](rows["cuda"], rows["cpu"])) | {"rows": len(rows["cpu"])}


def certainty(rows: Any, on_host: Any) -> Work:
    from gpuens.similarity.coassociation import LWCA

    return lambda: LWCA()(rows)


def order(rows: Any, on_host: Any) -> Work:
    from gpuens.partition.linkage.locality import locality_order

    return lambda: locality_order(rows.codes, rows.offsets, device="cuda")


def merges(rows: Any, on_host: Any) -> Work:
    """Return a function that sorts the merges of a tree, which are on the device."""
    import cupy as cp

    from gpuens.partition.linkage.rounds import Heights, State, find_heights

    tree = tree_of(on_host)
    n, merged = tree.n_leaves, slice(tree.n_leaves - 1)
    state, heights = State.of_rows(cp.arange(n), "cuda"), Heights.of_rows(n, "cuda")
    for part, array in ((state.kept, tree.kept), (state.absorbed, tree.absorbed), (state.merged_at, tree.similarities)):
        part[merged] = cp.asarray(array)
    find_heights(state, *(cp.asarray([n - 1]) for _ in range(2)), heights, n, device="cuda")
    arrays = state.kept, state.absorbed, heights.of_merge, heights.wait_of_merge
    return lambda: type(tree).from_heights(*(part[merged] for part in arrays), n)


def cut(rows: Any, on_host: Any) -> Work:
    tree = tree_of(on_host)
    return lambda: (tree.cut(K), tree.lifetimes(0.5, tree.n_large(on_host.counts, 1)))


def tree_of(rows: Any) -> Any:
    from gpuens.partition import average_linkage
    from gpuens.similarity.coassociation import LWCA

    return average_linkage(rows, LWCA()(rows))


STAGES = {"ECI": certainty, "order of rows": order, "merges in order": merges, "cut and lifetimes": cut}


# --- the page ---------------------------------------------------------------------------------------------------------


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    return {"lists": {"version": common.versions_of(rows)}}


PARTS = {"requests": Part(of_requests), "fits": Part(of_fits), "stages": Part(of_stages)}

if __name__ == "__main__":
    main()
