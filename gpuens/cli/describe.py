"""``gpuens describe``: properties of the base clusterings in a file, and the estimated cost of each method."""

import argparse
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import add_reading_of_labels, add_selection, reading_of_labels
from gpuens.cli.files import aligned, check_inputs, print_json
from gpuens.runtime import failures


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``gpuens describe`` and its options to the command line."""
    parser = command(
        "describe",
        describe,
        "Describe the base clusterings in a file, and estimate the time and memory of each method.",
    )
    parser.add_argument("labels", metavar="LABELS", help="label file, as for `gpuens run`")
    add_selection(parser)
    parser.add_argument(
        "-k",
        "--n-clusters",
        type=int,
        metavar="K",
        help="clusters of the consensus (median of the numbers of clusters of the base clusterings)",
    )
    parser.add_argument("--no-forecasts", action="store_true", help="leave out the estimates for the methods")
    add_reading_of_labels(parser)
    parser.add_argument("--device", default="auto", help="where to work: auto, cpu or cuda (auto)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def describe(args: argparse.Namespace) -> None:
    from gpuens import io

    check_inputs(args.labels)
    from gpuens.runtime.checks import human_bytes
    from gpuens.workflows import describe as description
    from gpuens.workflows.forecast import human_seconds

    with failures.stage("read", f"reading {args.labels}"):
        labels = io.read_label_file(args.labels, **reading_of_labels(args)).ensemble
    with failures.stage("describe", "describing the clusterings"):
        found = description.describe(labels, args.n_clusters, forecasts=not args.no_forecasts, device=args.device)
    if args.json:
        print_json({"input": args.labels, **found.to_dict()})
        return
    print(
        f"{args.labels}: {found.n_objects:,} objects, {found.n_clusterings} clusterings with {found.n_clusters:,} "
        f"clusters, {found.n_distinct:,} distinct label rows, {found.missing:.1%} of the labels missing"
    )
    heads = ["", "clusters", "smallest", "largest", "missing", "agreement"]
    print(aligned([heads, *map(_cells, found.columns)]))
    for column in found.columns:
        if column["odd"]:
            print(f"{column['name']} differs from the others: {column['odd']}")
        if column["same_as"] is not None:
            print(f"{column['name']} equals {column['same_as']}, so this clustering counts more than once")
    if found.methods:
        print(f"\nestimated time and memory of the methods for {found.k} clusters")
        able = {name: each for name, each in found.methods.items() if each.seconds == each.seconds}
        quickest = sorted(able.items(), key=lambda item: item[1].seconds)
        print(aligned([[name, human_seconds(one.seconds), human_bytes(one.memory)] for name, one in quickest]))
        for name, each in found.methods.items():
            if name not in able:
                print(f"{name}: {each}")


def _cells(column: dict[str, Any]) -> list[str]:
    agreement = "-" if column["agreement"] is None else f"{column['agreement']:.3f}"
    sizes = [f"{column[name]:,}" for name in ("n_clusters", "smallest", "largest")]
    return [str(column["name"]), *sizes, f"{column['missing']:.1%}", agreement]
