"""``gpuens choose``: the number of clusters that the base clusterings or the features of a file support."""

import argparse
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import add_reading_of_labels, add_selection, reading_of_labels
from gpuens.cli.features import add_preparation, prepare, read_features
from gpuens.cli.files import aligned, check_inputs, check_page, print_json, write_page
from gpuens.runtime import failures
from gpuens.runtime.defaults import METHOD


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``gpuens choose`` and its options to the command line."""
    parser = command(
        "choose",
        choose,
        "Compare numbers of clusters, and suggest one with its reason.",
        epilog="silh.: median over the clusters of their mean silhouette, with its 95 % interval; item consensus and "
        "certainty are means. With --features, k-means clusters samples for each k; pac, area and inconsistency "
        "describe these clusterings, and --null compares them with data without clusters.",
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
    parser.add_argument("--method", default=METHOD, help=f"a method, see `gpuens methods` ({METHOD})")
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
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    parser.add_argument(
        "--resume", metavar="FOLDER", help="store the results of each k there, and continue after a stop"
    )
    parser.add_argument("--device", default="auto", help="device: auto, cpu or cuda (auto)")
    parser.add_argument("--report", metavar="FILE.html", help="write a page with the criteria and pictures")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def choose(args: argparse.Namespace) -> None:
    from gpuens import io

    if (args.labels is None) == (args.features is None):
        raise ValueError("give either LABELS or --features FILE.")
    if args.labels is not None:
        check_inputs(args.labels)
    drawn = {name: getattr(args, name) for name in ("n_clusterings", "n_init") if getattr(args, name) is not None}
    prepared = [name for name in ("scale", "impute") if getattr(args, name) is not None]
    if args.labels is not None and (drawn or prepared):
        option = [*drawn, *prepared][0].replace("_", "-")
        raise ValueError(f"--{option} applies to --features; leave it out with LABELS.")
    if args.report is not None:
        check_page(args.report, *([] if args.labels is None else [args.labels]))
    from gpuens.io.shapes import label_shape
    from gpuens.workflows import choose_k as choosing
    from gpuens.workflows.describe import refuse_to_group

    with failures.stage("read", f"reading {args.labels or args.features}"):
        if args.labels is not None:
            refuse_to_group(label_shape(args.labels, **reading_of_labels(args)), "a choice")
        labels = None if args.labels is None else io.read_label_file(args.labels, **reading_of_labels(args)).ensemble
        features: Any = None
        said: dict[str, Any] = {}
        if args.features is not None:
            args.scale = args.scale or "auto"
            features, said = prepare(read_features(args.features, args).X, args)
    given: dict[str, Any] = {
        "labels": labels,
        "features": features,
        "ks": args.ks,
        "method": args.method,
        "device": args.device,
        "null": args.null,
        **({} if features is None else {"scale": "none"}),
        "random_state": args.seed,
        "resume": args.resume,
        **drawn,
    }
    with failures.stage("choose", "comparing numbers of clusters"):
        found = choosing.choose_k(**given)
    what = args.labels or args.features
    if args.json:
        print_json({"input": what, **said, **found.to_dict()})
    else:
        _print_choice(found)
    if args.report is not None:
        from gpuens import report

        write_page(
            args.report, lambda: report.render_choice(found, f"How many clusters has {what}?"), told=not args.json
        )


def _print_choice(found: Any) -> None:
    from gpuens.runtime.checks import counted

    names = [name for name in found.rows[0] if name != "k"]
    cells = [[f"{row['k']:,}", *(_text(row[name]) for name in names)] for row in found.rows]
    print(aligned([["k", *(SHORT.get(name, name) for name in names)], *cells]))
    for k, why in found.reasons.items():
        print(f"{'suggested' if k == found.suggested else 'also'}: {counted(k, 'cluster')} ({why})")
    print(f"method: {found.method}; the table describes its consensus for each number of clusters")
    print("by single criteria: " + ", ".join(f"{SHORT.get(name, name)} {k}" for name, k in found.by_criterion.items()))


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


def _text(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _range(text: str) -> range:
    first, _, last = text.partition(":")
    try:
        return range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers of clusters are written 2:20, not {text!r}") from None
