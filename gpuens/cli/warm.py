"""``gpuens warm``: compile kernels before the first fit needs them."""

import argparse
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

N_OBJECTS = 400  # in the ensembles that are fitted
N_CLUSTERS = (4, 300)  # in each of their clusterings: codes of 8 and of 16 bits
LINKING = ("eac", "lwea", "weac")  # methods that link more rows by other functions on the CPU
LISTED = LINKING[:2]  # one with whole-number weights, one with others: enough for all linkages
CUTTING = ("hbgf", "lwgp")  # methods that cluster the points of many rows by functions of their own, one as all


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command(
        "warm",
        warm,
        "Compile all kernels for the visible GPU, or methods for the CPU, so that the first fit does not wait.",
        epilog="CuPy keeps compiled kernels in the directory CUPY_CACHE_DIR (~/.cupy/kernel_cache), Numba functions of "
        "the CPU in NUMBA_CACHE_DIR (beside the package, else the user's cache).",
    )
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="what is to be fitted; else all methods")
    parser.add_argument("--device", default="cuda", help="cuda or cpu (cuda)")


def warm(args: argparse.Namespace) -> None:
    from gpuens.runtime import checks, kernels
    from gpuens.runtime import device as devices
    from gpuens.runtime.progress import bar

    device = devices.resolve(checks.check_choice(args.device, "device", devices.DEVICES[1:]))
    fits = list(_fits(args.methods, device)) if device not in devices.stand_ins else []
    if device != "cpu":
        modules = kernels.modules()
        for kernel, macros in bar(modules, "kernels"):
            kernels.function(kernel, device, **macros)
        print(f"compiled {len(modules)} kernel modules for {devices.identity(device)}")
    if device not in devices.stand_ins:  # CuPy compiles kernels of its own for each operation and dtype
        for estimator, labels, features, setting in bar(fits, "fits"):
            with setting:
                estimator.fit(devices.move(labels, device), **features)
        print(f"fitted {len(fits)} small ensembles on {devices.identity(device)}")


def _fits(names: list[str], device: str) -> Iterator[tuple[Any, Any, dict[str, Any], AbstractContextManager[None]]]:
    """Yield estimators of these methods, or all that can run here, with labels (N_OBJECTS, 5) and features they need.

    Each is fitted in a context: those that link more rows go by one kind of search, and by the others after it.
    """
    import numpy as np

    from gpuens.kmeans.weighted import RESTARTS_ON
    from gpuens.labels.encoding import AT_ONCE
    from gpuens.methods import ESTIMATORS, REGISTRY
    from gpuens.partition.linkage import searches
    from gpuens.partition.linkage.few_rows import MOST

    rng = np.random.default_rng(0)
    # more than two clusters, so that there are strides
    estimators = {name: REGISTRY.load(name)(3, device=device) for name in names or ESTIMATORS.values()}
    if not names:
        estimators = {name: estimator for name, estimator in estimators.items() if estimator.lacks is None}
    linking = [name for name in (LINKING if names else LISTED) if name in estimators]
    cutting = [name for name in (CUTTING if names else CUTTING[:1]) if name in estimators]
    for n_clusters in N_CLUSTERS:
        labels = rng.integers(n_clusters, size=(N_OBJECTS, 5))
        labels[:, -1] %= 3  # one that BestOfK can take
        labels[0, 1:] = -1
        for estimator in estimators.values():
            features = {"features": rng.random((N_OBJECTS, 3))} if estimator.needs_features else {}
            yield estimator, labels, features, nullcontext()
        if device == "cpu":
            many = rng.integers(n_clusters, size=(2 * MOST, 1 + AT_ONCE // (2 * MOST)))  # compiled code encodes them
            many = many.repeat(2, axis=0)  # so that they are looked up in tables, of which the first is too small
            for name, kind in itertools.product(linking, searches.Costs._fields):
                yield estimators[name], many, {}, searches.only(kind)
            for name in cutting:
                yield estimators[name], rng.integers(n_clusters, size=(2 * RESTARTS_ON, 9)), {}, nullcontext()
