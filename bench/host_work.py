"""The host's part of the work of a GPU: launches, waits, copies and processor time outside kernels, without a GPU.

    python tests/gpu_stack/build.py FOLDER
    PYTHONPATH=FOLDER:. python bench/host_work.py [--clusterings 20 100] [--objects 400] [--of 581012]

CuPy runs on the stand-in for a GPU of tests/gpu_stack, which tells how much processor time its kernels took; the rest
is the host's, copies and cuBLAS's stand-in included. A driver's own part of a launch, some 2 µs, is left out. Between
kernels that take milliseconds here, the host's code is no longer in the cache, and takes several times as long.

The first table has what single requests cost. The second has whole fits of few objects, because a processor in place of
a GPU is slow. The third has the stages of linkage for all rows of a mixture like Covertype. Five minutes for 20
clusterings.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from gpu_ensembles import K, Mixture, groups_of, labels_of, points_of

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.partition import average_linkage
from gpuens.partition.linkage.dendrogram import Dendrogram
from gpuens.partition.linkage.locality import locality_order
from gpuens.partition.linkage.rounds import Heights, State, find_heights
from gpuens.runtime import kernels
from gpuens.similarity.coassociation import LWCA

REPEATS = 3
ASKED = ("launches", "synchronizations", "to_host", "to_host_bytes", "to_device", "to_device_bytes")
AT_ONCE = 200  # requests of one measurement of a single request


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusterings", type=int, nargs="+", default=[20])
    parser.add_argument("--objects", type=int, default=400, help="objects of the fits")
    parser.add_argument("--of", type=int, default=581_012, help="objects of the stages; 0 leaves them out")
    options = parser.parse_args()
    if "gpu_stack" not in sys.modules:
        sys.exit("start Python with PYTHONPATH=FOLDER:., where FOLDER is made by tests/gpu_stack/build.py.")
    requests()
    for n_clusterings in options.clusterings:
        fits(Mixture(options.objects, n_clusterings))
        if options.of:
            stages(Mixture(options.of, n_clusterings))


def cost(work: Callable[[], Any]) -> tuple[float, dict[str, int]]:
    """Return the least seconds of the host among repeated calls, after a first one, and the requests of one call."""
    import gpu_stack

    work()
    seconds = []
    for _ in range(REPEATS):
        before, busy, start = gpu_stack.counts(), gpu_stack.busy(), time.process_time()
        work()
        seconds.append(time.process_time() - start - gpu_stack.busy() + busy)
        found = {name: value - before[name] for name, value in gpu_stack.counts().items()}
    return min(seconds), found


def table(title: str, rows: dict[str, Callable[[], Any]]) -> None:
    print(f"\n{title}\n\n| | host, ms | {' | '.join(name.replace('_', ' ') for name in ASKED)} |")
    print("|---|---" + "|---" * len(ASKED) + "|")
    for name, work in rows.items():
        seconds, found = cost(work)
        print(f"| {name} | {1e3 * seconds:.1f} | {' | '.join(f'{found[asked]:,}' for asked in ASKED)} |", flush=True)


def requests() -> None:
    import cupy as cp

    numbers, ids, lists = cp.zeros(64), cp.arange(64), cp.zeros((64, 2), dtype=np.int32)
    none, zero = cp.zeros(1, dtype=np.int64), np.float64(0)
    arguments = (ids, none, np.int32(2), zero, zero, ids, numbers, lists, numbers, numbers, ids)

    def launch() -> None:
        kernels.launch("take_first_listed", 1, 1, arguments, device="cuda", COUNT="i32", WEIGHT="f64")

    with kernels.recorded() as launches:
        launch()
    works = {
        "a kernel": launch, "a kernel again": launches[0], "a + b": lambda: numbers + numbers,
        "a[i]": lambda: numbers[ids], "a sort": ids.argsort, "a read of 8 bytes": none.get,
    }  # fmt: skip
    print("| a request | host, µs |\n|---|---|")
    for name, work in works.items():
        seconds, _ = cost(lambda work=work: [work() for _ in range(AT_ONCE)])
        print(f"| {name} | {1e6 * seconds / AT_ONCE:.1f} |", flush=True)


def fits(mixture: Mixture) -> None:
    import cupy as cp

    labels, X = labels_of(mixture, "cuda"), cp.asarray(points_of(mixture)[0])
    estimators = {"LWEA": ge.LWEA(K), "EAC": ge.EAC(K), "LWGP": ge.LWGP(K), "HBGF": ge.HBGF(K)}
    works: dict[str, Callable[[], Any]] = {name: lambda e=e: e.fit(labels) for name, e in estimators.items()}
    works["cluster()"] = lambda: ge.cluster(X, K, n_clusterings=mixture.n_clusterings)
    table(f"Fits of {mixture.n_objects:,} objects and {mixture.n_clusterings} clusterings", works)


def stages(mixture: Mixture) -> None:
    groups = groups_of(ge.Ensemble(labels_of(mixture, "cpu")), "cpu")
    rows = Rows.of(groups.ensemble, groups.counts, "cuda")
    codes, offsets = rows.codes, rows.offsets
    similarity = LWCA()(Rows.of(groups.ensemble, groups.counts, "cpu"))
    tree = average_linkage(Rows.of(groups.ensemble, groups.counts, "cpu"), similarity)
    works: dict[str, Callable[[], Any]] = {
        "ECI": lambda: LWCA()(rows),
        "order of rows": lambda: locality_order(codes, offsets, device="cuda"),
        "merges in order": merges_of(tree),
        "cut and lifetimes": lambda: (tree.cut(K), tree.lifetimes(0.5, tree.n_large(groups.counts, 1))),
    }
    table(f"Stages for {len(rows):,} rows and {mixture.n_clusterings} clusterings", works)


def merges_of(tree: Dendrogram) -> Callable[[], Dendrogram]:
    """Return a function that sorts the merges of a tree, which are on the device."""
    import cupy as cp

    n, made = tree.n_leaves, slice(tree.n_leaves - 1)
    state, heights = State.of_rows(cp.arange(n), "cuda"), Heights.of_rows(n, "cuda")
    for part, given in ((state.kept, tree.kept), (state.absorbed, tree.absorbed), (state.merged_at, tree.similarities)):
        part[made] = cp.asarray(given)
    find_heights(state, *(cp.asarray([n - 1]) for _ in range(2)), heights, n, device="cuda")
    parts = state.kept, state.absorbed, heights.of_merge, heights.wait_of_merge
    return lambda: Dendrogram.from_heights(*(part[made] for part in parts), n)


if __name__ == "__main__":
    main()
