"""``gpuens info``: show the processor, the devices and the installed packages, or check that the devices work."""

import argparse
import time
from pathlib import Path
from textwrap import fill
from typing import Any

from gpuens.cli.arguments import add_shared
from gpuens.cli.process import print_json
from gpuens.runtime import installing
from gpuens.runtime.failures import Temporary, describe
from gpuens.runtime.record import extras, machine, surroundings

WIDTH = 120  # characters of a line
N_OBJECTS, N_CLUSTERINGS, N_CLUSTERS = 1000, 10, 5  # size of the ensemble that is clustered by --check


def add(parser: argparse.ArgumentParser) -> None:
    add_shared(parser, "json")
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"only cluster {N_OBJECTS:,} objects on each device, and fail unless the planted clusters are found",
    )
    parser.add_argument("--device", help="device to check: cpu or cuda (the CPU, and GPUs if any are visible)")


def info(args: argparse.Namespace) -> None:
    if args.check:
        _check(args.device, args.json)
    elif args.device is not None:
        raise ValueError(
            f"--device={args.device} is the device that --check tests; add --check, or leave --device out."
        )
    else:
        _show(args.json)


def _check(device: str | None, as_json: bool) -> None:
    """Cluster a small ensemble with known clusters on each device, and raise an error for a wrong result.

    The labels must be the known clusters, and the dendrogram must equal the dendrogram that the CPU finds.
    """
    from gpuens.runtime import checks
    from gpuens.runtime import device as devices

    no_gpu = devices.why_no_gpu()
    if device is None:
        kinds = ["cpu"] if no_gpu else ["cpu", "cuda"]
    else:
        kinds = [checks.check_choice(device, "device", devices.DEVICES[1:])]
    if "cuda" in kinds and no_gpu:
        raise Temporary(f"cuda failed: {no_gpu}")
    truth, labels = _planted()
    expected = _heights(labels, truth, "cpu", "cpu")
    seconds = {}
    for name in kinds:
        for unit in devices.units(name):
            started = time.perf_counter()
            if (_heights(labels, truth, name, unit) != expected).any():
                raise Temporary(f"{unit} failed: its dendrogram of {N_OBJECTS:,} objects differs from that of the CPU.")
            seconds[unit] = round(time.perf_counter() - started, 3)
    if as_json:
        print_json({"objects": N_OBJECTS, "clusterings": N_CLUSTERINGS, "clusters": N_CLUSTERS, "seconds": seconds})
        return
    for unit, duration in seconds.items():
        print(f"{unit}: found the {N_CLUSTERS} planted clusters of {N_OBJECTS:,} objects in {duration:.2f} s")


def _planted() -> tuple[Any, Any]:
    """Make an ensemble with known clusters; return the clusters (N_OBJECTS,) and the ensemble.

    The ensemble (N_OBJECTS, N_CLUSTERINGS) repeats the known clusters, with 10 % of the labels replaced at random.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    truth = np.arange(N_OBJECTS) % N_CLUSTERS  # like consensus labels, in order of appearance
    labels = np.repeat(truth[:, None], N_CLUSTERINGS, axis=1)
    strays = rng.random(labels.shape) < 0.1
    labels[strays] = rng.integers(N_CLUSTERS, size=strays.sum())
    return truth, labels


def _heights(labels: Any, truth: Any, device: str, unit: str) -> Any:
    """Fit LWEA to the labels on a device; return the heights of its dendrogram as an array.

    Raise an error if the fit fails or does not find the known clusters ``truth``.
    """
    from gpuens.methods import LWEA

    try:
        estimator = LWEA(N_CLUSTERS, device=device).fit(labels)
    except Exception as error:  # GPU drivers raise errors of many types
        raise Temporary(f"{unit} failed: {describe(error)}") from error
    if (estimator.labels_ != truth).any():
        raise Temporary(f"{unit} failed: it did not find the {N_CLUSTERS} planted clusters of {N_OBJECTS:,} objects.")
    return estimator.dendrogram_.similarities


def _show(as_json: bool) -> None:
    from gpuens.runtime.checks import human_bytes

    facts = _facts()
    if as_json:
        print_json(facts)
        return
    processor, memory = facts["processor"], facts["memory"]
    print(f"gpuens {facts['gpuens']}, Python {facts['python']}, {facts['platform']}")
    _print_fact("installed in", facts["installed"])
    compiled = f"compiled for {', '.join(processor['compiled'])}"
    compiled += " (GPUENS_CPU forces one)" * (len(processor["compiled"]) > 1)
    _print_fact("processor", f"{processor['name']}, level {processor['level']}; {compiled}")
    _print_fact("threads", str(facts["threads"]))
    total, budget = human_bytes(memory["total"]), human_bytes(memory["budget"])
    _print_fact("memory", f"{total}; a run may now use {budget}")
    _print_fact("requires", _versions(facts["versions"]))
    _print_fact("methods", f"{', '.join(facts['methods'])} (gpuens methods says what they are)")
    print("\ndevices")
    for device in facts["devices"]:
        print(f"  {device['device']:14}{device.get('name', 'the host')}, {human_bytes(device['memory'])}")
    if facts["no_gpu"] is not None:
        print(f"  no GPU is visible: {facts['no_gpu']}")
    print("\nextras")
    for name, packages in facts["extras"].items():
        present = _versions({package: version for package, version in packages.items() if version})
        missing = ", ".join(package for package, version in packages.items() if not version)
        print(f"  {name:14}{'; '.join(filter(None, (present, missing and f'without {missing}')))}")
    for name, command in [*facts["to_install"].items()][:1]:
        print(f"  to add what is missing, such as {name}: {command}")


def _facts() -> dict[str, Any]:
    """Return the versions, the processor, memory, devices, methods and extras of this installation."""
    from gpuens.methods import REGISTRY
    from gpuens.runtime import device, host, native

    packages = extras()
    return {
        **surroundings(),
        "installed": str(Path(__file__).parents[1]),
        "processor": {"name": machine()["processor"], **native.describe()},
        "threads": device.n_threads(),
        "memory": {"total": host.total_memory(), "budget": device.memory_budget()},
        "devices": device.describe(),
        "no_gpu": device.why_no_gpu(),
        "methods": REGISTRY.summaries(),
        "extras": packages,
        "to_install": {name: installing.command(name) for name, of in packages.items() if None in of.values()},
    }


def _versions(packages: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())


def _print_fact(name: str, value: str) -> None:
    """Print a fact in the width of a terminal, with its value in a column of its own."""
    print(fill(value, WIDTH, initial_indent=f"{name:16}", subsequent_indent=" " * 16, break_on_hyphens=False))
