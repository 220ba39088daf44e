"""``gpuens choose``: the number of clusters that the base clusterings or the features of a file support."""

import argparse
import os
from typing import Any

from gpuens import io
from gpuens.cli.arguments import add_reading_of_labels, add_selection, add_shared, option_of, reading_of_labels
from gpuens.cli.features import add_preparation, prepare, read_features
from gpuens.cli.files import (
    aligned,
    cell_of,
    check_inputs,
    check_page,
    write_page,
)
from gpuens.cli.process import print_json
from gpuens.io.shapes import label_shape
from gpuens.runtime import failures
from gpuens.runtime.checks import counted


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "silh.: median over the clusters of their mean silhouette, with its 95 % interval; item consensus and "
        "certainty are means. With --features, k-means clusters samples for each k; pac, area and inconsistency "
        "describe these clusterings, and --null compares them with data without clusters."
    )
    parser.add_argument("labels", metavar="LABELS", nargs="?", help="label file, as for `gpuens run`")
    add_selection(parser)
    parser.add_argument("--features", metavar="FILE", help="a file or data set as for `generate`, in place of LABELS")
    parser.add_argument(
        "--ks",
        type=_range,
        metavar="A:B",
        help="numbers of clusters to compare, such as 2:20 (2:20, or fewer for few objects)",
    )
    add_shared(parser, "method")
    parser.add_argument("--n-clusterings", type=int, metavar="M", help="clusterings for each k, with --features (50)")
    parser.add_argument("--n-init", type=int, metavar="N", help="starts of each k-means run, with --features (5)")
    parser.add_argument(
        "--null",
        type=int,
        default=0,
        metavar="B",
        help="number of reference data sets without clusters, with --features (0)",
    )
    add_reading_of_labels(parser)
    add_preparation(parser, "auto")
    add_shared(parser, "seed")
    parser.add_argument(
        "--resume", metavar="FOLDER", help="store the results of each k there, and continue after a stop"
    )
    add_shared(parser, "device")
    parser.add_argument("--report", metavar="FILE.html", help="write a page with the criteria and pictures")
    add_shared(parser, "json")


def choose(args: argparse.Namespace) -> None:
    if (args.labels is None) == (args.features is None):
        raise ValueError("give either LABELS or --features FILE.")
    if args.labels is not None:
        check_inputs(args.labels)
    resampling = {name: getattr(args, name) for name in ("n_clusterings", "n_init") if getattr(args, name) is not None}
    preparation = [name for name in ("scale", "impute") if getattr(args, name) is not None]
    if args.labels is not None and (of_features := [*resampling, *preparation]):
        raise ValueError(f"{option_of(of_features[0])} applies to --features; leave it out with LABELS.")
    if args.report is not None:
        check_page(args.report, *([] if args.labels is None else [args.labels]))
    from gpuens.workflows import choose_k as choosing
    from gpuens.workflows.describe import refuse_to_group

    path = args.labels or args.features
    data: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    with failures.stage("read", f"reading {path}"):
        if args.labels is not None:
            refuse_to_group(label_shape(args.labels, **reading_of_labels(args)), "a choice")
            data["labels"] = io.read_label_file(args.labels, **reading_of_labels(args)).ensemble
        else:
            args.scale = args.scale or "auto"
            features, facts = prepare(read_features(args.features, args).X, args)
            data = {"features": features, "scale": "none", **resampling}
    settings = {name: getattr(args, name) for name in ("ks", "method", "device", "null", "resume")}
    with failures.stage("choose", "comparing numbers of clusters"):
        choice = choosing.choose_k(**data, **settings, random_state=args.seed)
    if args.json:
        print_json({"input": path, **facts, **choice.to_dict()})
    else:
        _print_choice(choice)
    if args.report is not None:
        from gpuens import report

        title = f"How many clusters has {os.path.basename(path)}?"
        write_page(args.report, lambda: report.render_choice(choice, title), print_path=not args.json)


def _print_choice(choice: Any) -> None:
    names = [name for name in choice.rows[0] if name != "k"]
    cells = [[f"{row['k']:,}", *(cell_of(row[name]) for name in names)] for row in choice.rows]
    print(aligned([["k", *(SHORT.get(name, name) for name in names)], *cells]))
    print(f"suggested: {counted(choice.suggested, 'cluster')} ({choice.reasons[choice.suggested]})")
    for why, numbers in choice.alternatives.items():
        print(f"{why}: {', '.join(map(str, numbers))}")
    for sentence in choice.caveats:
        print(sentence)
    print(f"method: {choice.method}; the table describes its consensus for each number of clusters")
    print(
        "by single criteria: " + ", ".join(f"{name.replace('_', ' ')} {k}" for name, k in choice.by_criterion.items())
    )


SHORT = {
    "silhouette": "silh.",
    "silhouette_low": "low",
    "silhouette_high": "high",
    "mean_silhouette": "mean",
    "cluster_consensus": "consensus",
    "corrected_pac": "/chance",
    "delta_area": "delta",
    "inconsistency": "IC",
}


def _range(text: str) -> range:
    first, _, last = text.partition(":")
    try:
        return range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers of clusters are written 2:20, not {text!r}") from None
