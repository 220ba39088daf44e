"""``gpuens warm``: compile kernels before the first fit needs them."""

import argparse
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

N_OBJECTS = 400  # in the ensembles that are fitted
N_CLUSTERS = (4, 300)  # in each of their clusterings: codes of 8 and of 16 bits
LISTED = ("eac", "lwea")  # what links more rows by other functions on the CPU: weights that are whole numbers, and not


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command(
        "warm",
        warm,
        "Compile all kernels for the visible GPU, or all methods for the CPU, so that the first fit does not wait.",
        epilog="CuPy keeps compiled kernels in the directory CUPY_CACHE_DIR (~/.cupy/kernel_cache), Numba functions of "
        "the CPU in NUMBA_CACHE_DIR (beside the package, else the user's cache).",
    )
    parser.add_argument("--device", default="cuda", help="cuda, cpu, or emulated in a checkout (cuda)")


def warm(args: argparse.Namespace) -> None:
    from gpuens import checks, kernels
    from gpuens import device as devices
    from gpuens.progress import bar

    device = devices.resolve(checks.check_choice(args.device, "device", ("cuda", "cpu", "emulated")))
    if device != "cpu":
        modules = kernels.modules()
        for kernel, macros in bar(modules, "kernels"):
            kernels.function(kernel, device, **macros)
        print(f"compiled {len(modules)} kernel modules for {devices.identity(device)}")
    if device != "emulated":  # CuPy compiles kernels of its own for each operation and dtype
        fits = list(_fits(device))
        for estimator, labels, features, setting in bar(fits, "fits"):
            with setting:
                estimator.fit(devices.move(labels, device), **features)
        print(f"fitted {len(fits)} small ensembles on {devices.identity(device)}")


def _fits(device: str) -> Iterator[tuple[Any, Any, dict[str, Any], AbstractContextManager[None]]]:
    """Yield an estimator of every method that can run here, with labels (N_OBJECTS, 5) and the features it needs.

    Each is fitted in a context: those that link more rows go by one kind of search, and by the others after it.
    """
    import numpy as np

    from gpuens.encoding import AT_ONCE
    from gpuens.methods import ESTIMATORS, REGISTRY
    from gpuens.partition.linkage import searches
    from gpuens.partition.linkage.few_rows import MOST

    rng = np.random.default_rng(0)
    for n_clusters in N_CLUSTERS:
        labels = rng.integers(n_clusters, size=(N_OBJECTS, 5))
        labels[:, -1] %= 3  # one that BestOfK can take
        labels[0, 1:] = -1
        for method in ESTIMATORS.values():
            estimator = REGISTRY.load(method)(3, device=device)  # more than two, so that there are strides
            if estimator.lacks is None:
                features = {"features": rng.random((N_OBJECTS, 3))} if estimator.needs_features else {}
                yield estimator, labels, features, nullcontext()
        if device == "cpu":
            many = rng.integers(n_clusters, size=(2 * MOST, 1 + AT_ONCE // (2 * MOST)))  # compiled code encodes them
            for name, kind in itertools.product(LISTED, searches.Costs._fields):
                yield REGISTRY.load(name)(3, device=device), many, {}, searches.only(kind)
