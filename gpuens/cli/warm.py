"""``gpuens warm``: compile kernels before the first fit needs them."""

import argparse
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

N_OBJECTS = 400  # objects of each fitted ensemble
N_CLUSTERS = (4, 300)  # clusters of a clustering, for codes of 8 and of 16 bits
LINKING = ("eac", "lwea", "weac")  # methods whose linkage uses other functions for many rows on the CPU
LISTED = LINKING[:2]  # one method with whole-number weights and one with real weights cover all linkages
CUTTING = ("hbgf", "lwgp")  # methods that cluster points of many rows by their own functions; one covers both


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command(
        "warm",
        warm,
        "Compile all kernels for the visible GPU, or methods for the CPU, so that the first fit does not wait.",
        epilog="CuPy keeps compiled kernels in CUPY_CACHE_DIR (~/.cupy/kernel_cache). Numba keeps compiled functions "
        "of the CPU in NUMBA_CACHE_DIR (beside the package, otherwise in the user's cache).",
    )
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="methods to fit (all)")
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
    if device not in devices.stand_ins:  # CuPy also compiles its own kernels for each operation and dtype
        for estimator, labels, features, setting in bar(fits, "fits"):
            with setting:
                estimator.fit(devices.move(labels, device), **features)
        print(f"fitted {len(fits)} small ensembles on {devices.identity(device)}")


def _fits(names: list[str], device: str) -> Iterator[tuple[Any, Any, dict[str, Any], AbstractContextManager[None]]]:
    """Yield (estimator, labels (N_OBJECTS, 5), features, context) for these methods, or all that can run here.

    The context of a fit chooses the kind of search of a method in ``LINKING``; such a method is fitted once per kind.
    """
    import numpy as np

    from gpuens.kmeans.weighted import RESTARTS_ON
    from gpuens.labels.encoding import FEW
    from gpuens.methods import ESTIMATORS, REGISTRY
    from gpuens.partition.linkage import searches
    from gpuens.partition.linkage.few_rows import MOST

    rng = np.random.default_rng(0)
    # with two clusters, some arrays would have no strides
    estimators = {name: REGISTRY.load(name)(3, device=device) for name in names or ESTIMATORS.values()}
    if not names:
        estimators = {name: estimator for name, estimator in estimators.items() if estimator.lacks is None}
    linking = [name for name in (LINKING if names else LISTED) if name in estimators]
    cutting = [name for name in (CUTTING if names else CUTTING[:1]) if name in estimators]
    for n_clusters in N_CLUSTERS:
        labels = rng.integers(n_clusters, size=(N_OBJECTS, 5))
        labels[:, -1] %= 3  # a clustering with 3 clusters, for BestOfK
        labels[0, 1:] = -1
        for estimator in estimators.values():
            features = {"features": rng.random((N_OBJECTS, 3))} if estimator.needs_features else {}
            yield estimator, labels, features, nullcontext()
        if device == "cpu":
            # sizes that compiled code encodes
            many = rng.integers(n_clusters, size=(2 * MOST, 1 + FEW // (2 * MOST)))
            many = many.repeat(2, axis=0)  # repeated rows use tables; the first table is too small
            for name, kind in itertools.product(linking, searches.Costs._fields):
                yield estimators[name], many, {}, searches.only(kind)
            for name in cutting:
                yield estimators[name], rng.integers(n_clusters, size=(2 * RESTARTS_ON, 9)), {}, nullcontext()
