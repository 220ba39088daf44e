"""``gpuens warm``: compile the kernels of a GPU in advance, so that the first fit does not wait for them."""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuens.methods import ESTIMATORS, REGISTRY
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.progress import bar

N_OBJECTS = 400  # number of objects in each ensemble that is fitted
N_CLUSTERS = (4, 300)  # numbers of clusters in a clustering; labels then have codes of 8 bits and of 16 bits


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "CuPy keeps compiled kernels in CUPY_CACHE_DIR (~/.cupy/kernel_cache)."
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="methods to fit (all)")
    parser.add_argument("--device", default="cuda", help="cuda (cuda)")


def warm(args: argparse.Namespace) -> None:
    if args.device == "cpu":
        raise ValueError("device must be 'cuda': all that runs on a CPU was compiled when gpuens was built.")
    device = devices.resolve(checks.check_choice(args.device, "device", devices.DEVICES[2:]))
    fits = list(_fits(args.methods, device)) if device not in devices.stand_ins else []
    modules = kernels.modules()
    for kernel, macros in bar(modules, "kernels"):
        kernels.function(kernel, device, **macros)
    print(f"compiled {len(modules)} kernel modules for {devices.identity(device)}")
    if device not in devices.stand_ins:  # the fits compile CuPy's own kernels, one for each operation and dtype
        for estimator, labels, features in bar(fits, "fits"):
            estimator.fit(devices.move(labels, device), **features)
        print(f"fitted {len(fits)} small ensembles on {devices.identity(device)}")


def _fits(names: list[str], device: str) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Yield (estimator, labels, features) for each fit of the named methods, or of all that can run here."""
    rng = np.random.default_rng(0)
    estimators = [REGISTRY.load(name)(3, device=device) for name in names or ESTIMATORS.values()]
    for n_clusters in N_CLUSTERS:
        labels = rng.integers(n_clusters, size=(N_OBJECTS, 5))
        labels[:, -1] %= 3  # the last clustering has 3 clusters, which BestOfK needs
        labels[0, 1:] = -1
        for estimator in estimators:
            if names or estimator.parts().lacks is None:
                yield (
                    estimator,
                    labels,
                    {"features": rng.random((N_OBJECTS, 3))} if estimator.parts().needs_features else {},
                )
