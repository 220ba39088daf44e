"""``gpuens warm``: compile GPU kernels or CPU functions in advance, so that the first fit does not wait for them."""

import argparse
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

N_OBJECTS = 400  # number of objects in each ensemble that is fitted
N_CLUSTERS = (4, 300)  # numbers of clusters in a clustering; labels then have codes of 8 bits and of 16 bits
# methods whose linkage on the CPU uses other functions for many label rows than for few label rows
LINKING = ("eac", "lwea", "weac")
# methods that compile all functions of linkages: one has integer weights, the other real weights
LISTED = LINKING[:2]
# methods whose k-means uses other functions for many points; fitting one of these methods compiles them for both
CUTTING = ("hbgf", "lwgp")


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``gpuens warm`` and its options to the command line."""
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
    if device not in devices.stand_ins:  # the fits compile also CuPy's own kernels, one for each operation and dtype
        for estimator, labels, features, setting in bar(fits, "fits"):
            with setting:
                estimator.fit(devices.move(labels, device), **features)
        print(f"fitted {len(fits)} small ensembles on {devices.identity(device)}")


def _fits(names: list[str], device: str) -> Iterator[tuple[Any, Any, dict[str, Any], AbstractContextManager[None]]]:
    """Yield (estimator, labels, features, context) for each fit that compiles functions of the named methods.

    Without names, all methods that can run here are fitted. The fit runs in the context. For a method in ``LINKING``,
    there is one fit for each kind of search, and the context of the fit selects the kind.
    """
    import numpy as np

    from gpuens.kmeans.weighted import RESTARTS_ON
    from gpuens.methods import ESTIMATORS, REGISTRY
    from gpuens.partition.linkage import searches
    from gpuens.partition.linkage.few_rows import MOST

    rng = np.random.default_rng(0)
    # each consensus has 3 clusters, because with 2 clusters some arrays would have no strides
    estimators = {name: REGISTRY.load(name)(3, device=device) for name in names or ESTIMATORS.values()}
    if not names:
        estimators = {name: estimator for name, estimator in estimators.items() if estimator.lacks is None}
    linking = [name for name in (LINKING if names else LISTED) if name in estimators]
    cutting = [name for name in (CUTTING if names else CUTTING[:1]) if name in estimators]
    for n_clusters in N_CLUSTERS:
        labels = rng.integers(n_clusters, size=(N_OBJECTS, 5))
        labels[:, -1] %= 3  # the last clustering has 3 clusters, which BestOfK needs
        labels[0, 1:] = -1
        for estimator in estimators.values():
            features = {"features": rng.random((N_OBJECTS, 3))} if estimator.needs_features else {}
            yield estimator, labels, features, nullcontext()
        if device == "cpu":
            many = rng.integers(n_clusters, size=(2 * MOST, 20))  # more rows than count as few
            for name, kind in itertools.product(linking, searches.Costs._fields):
                yield estimators[name], many, {}, searches.only(kind)
            for name in cutting:
                yield estimators[name], rng.integers(n_clusters, size=(2 * RESTARTS_ON, 9)), {}, nullcontext()
