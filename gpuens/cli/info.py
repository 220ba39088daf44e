"""``gpuens info``: the installed packages, the devices and the methods."""

import argparse
from collections.abc import Callable

from gpuens.cli.files import print_json
from gpuens.cli.methods import summaries
from gpuens.record import extras, surroundings


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command("info", info, "Show the installed packages, the devices and the methods.")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def info(args: argparse.Namespace) -> None:
    from gpuens import device
    from gpuens.checks import human_bytes
    from gpuens.methods import methods

    facts = surroundings()
    facts["devices"] = device.describe()
    facts["threads"] = device.n_threads()
    facts["memory"] = {"total": device.total_memory(), "budget": device.memory_budget()}
    facts["methods"] = summaries(methods())
    facts["extras"] = extras()
    if args.json:
        print_json(facts)
        return
    print(f"gpuens {facts['gpuens']}, Python {facts['python']}, {facts['platform']}")
    print(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    print(
        f"{facts['threads']} threads; {human_bytes(facts['memory']['total'])} of memory, of which a run may now take "
        f"{human_bytes(facts['memory']['budget'])}"
    )
    print("\ndevices")
    for found in facts["devices"]:
        print(f"  {found['device']:8}{found.get('name', 'the host')}, {human_bytes(found['memory'])}")
    print("\nmethods")
    for name, meaning in facts["methods"].items():
        print(f"  {name:8}{meaning}")
    print("\nextras (pip install 'gpuens[NAME]')")
    for name, packages in facts["extras"].items():
        print(f"  {name:14}" + ", ".join(f"{package} {version or '-'}" for package, version in packages.items()))
