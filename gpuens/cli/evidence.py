"""``gpuens evidence``: measure how strongly base clusterings support a consensus; both are read from files."""

import argparse
from typing import Any

import numpy as np

from gpuens import io
from gpuens.cli.arguments import (
    add_matching,
    add_reading_of_labels,
    add_selection,
    add_shared,
    reading,
    reading_of_labels,
)
from gpuens.cli.file_consensus import EVIDENCE
from gpuens.cli.files import aligned, cell_of, check_inputs, one_column
from gpuens.cli.process import print_json
from gpuens.io import outputs
from gpuens.io.paths import WITH_NUMBERS
from gpuens.runtime import failures
from gpuens.runtime.checks import counted

MOST_ROWS = 1000  # largest number of clusters for which all are printed
LARGEST = 30  # number of clusters that are printed, the largest ones, if there are more


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "consensus: mean share of the clusterings that put two members together; stability: mean Jaccard index "
        "with the most similar cluster of each clustering; item, certainty and silhouette: means over the members; "
        "nearest: the largest mean share with another cluster. PAC: the share of pairs that are together in more than "
        "a tenth and at most nine tenths of the clusterings."
    )
    add_shared(parser, "labels")
    parser.add_argument(
        "consensus",
        metavar="CONSENSUS",
        help="label file with one column: the consensus; objects are matched by name",
    )
    add_selection(parser)
    add_selection(parser, "-consensus")
    add_reading_of_labels(parser)
    add_matching(parser)
    parser.add_argument(
        "--ignore-missing",
        action="store_true",
        help="count only clusterings that label both objects of a pair (otherwise a missing label counts as apart)",
    )
    parser.add_argument(
        "--credible-ball",
        choices=("vi", "binder"),
        metavar="LOSS",
        help="the labels are draws of a Bayesian model: add their credible ball around the consensus, by vi or binder",
    )
    add_shared(parser, "device")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the evidence for each object: csv, tsv, parquet or npz"
    )
    add_shared(parser, "json")


def evidence(args: argparse.Namespace) -> None:
    check_inputs(args.labels, args.consensus)
    if args.output is not None:
        io.packages_for(outputs.check_output(args.output, WITH_NUMBERS, inputs=(args.labels, args.consensus)))

    from gpuens.evidence import Evidence, credible_ball

    with failures.stage("read", f"reading {args.labels}"):
        read = io.read_label_file(args.labels, **reading_of_labels(args))
        instead, how = "choose one by --columns-consensus", reading(args, "_consensus") | {"exclude": None}
        how |= {"results": True, "by_position": args.by_position}
        consensus = np.asarray(one_column(args.consensus, instead, args.labels, read.ids, **how))
    with failures.stage("evidence", EVIDENCE):
        missing = "ignore" if args.ignore_missing else "zero"
        support = Evidence(read.ensemble, consensus, missing=missing, device=args.device)
        summary, rows = _summary(support), _rows(support, np.unique(consensus).tolist())
        loss = args.credible_ball
        ball = None if loss is None else credible_ball(read.ensemble, consensus, loss=loss)
    if args.json:
        ball_fields = {} if ball is None else {"credible_ball": ball.to_dict()}
        print_json({"input": args.labels, "consensus": args.consensus, **summary, "clusters": rows, **ball_fields})
    else:
        _print_evidence(args, read.ensemble, support, summary, rows)
        if ball is not None:
            print(ball)
    if args.output is not None:
        beside = {"certainty": support.objects.certainty, **support.objects._asdict(), "ecc": support.consistency.ecc}
        with failures.stage("write", f"writing {args.output}"):
            io.write_labels(args.output, consensus, ids=read.ids, beside=beside)
        if not args.json:
            print(f"written: {args.output}")


def _print_evidence(
    args: argparse.Namespace, ensemble: Any, support: Any, summary: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    print(
        f"{args.labels}: {counted(ensemble.n_objects, 'object')}, {counted(ensemble.n_clusterings, 'clustering')}; "
        f"{args.consensus}: {counted(len(rows), 'cluster')}"
    )
    largest = sorted(range(len(rows)), key=lambda place: -rows[place]["objects"])[:LARGEST]
    printed = rows if len(rows) <= MOST_ROWS else [rows[place] for place in sorted(largest)]
    print(aligned([list(rows[0]), *(list(map(cell_of, row.values())) for row in printed)]))
    if len(printed) < len(rows):
        print(f"… and {counted(len(rows) - len(printed), 'smaller cluster')}, which --json lists")
    print(f"agreement with the clusterings: anmi {cell_of(summary['anmi'])}, ecs {cell_of(summary['ecs'])}")
    print(f"inconsistency of the clusterings: {cell_of(summary['inconsistency'])}; {support.beyond_chance}")
    pairs = summary["pairs"]
    error = f" ± {pairs['standard_error']:.1g}" if pairs["standard_error"] else ""
    print(
        f"pairs: PAC {cell_of(pairs['pac'])}{error}, {cell_of(pairs['corrected_pac'])} times the PAC of independent "
        f"clusterings; area {cell_of(pairs['area'])}"
        + (f"; {counted(pairs['unseen'], 'pair')} that no clustering labels" if pairs["unseen"] else "")
    )


def _summary(support: Any) -> dict[str, Any]:
    pairs = support.pairs()
    return {
        "anmi": support.agreement.anmi,
        "ecs": support.agreement.mean_ecs,
        "inconsistency": support.consistency.inconsistency,
        "beyond_chance": {"z": _defined(support.beyond_chance.z), "p": _defined(support.beyond_chance.p)},
        "pairs": {
            "pac": pairs.pac(),
            "rpac": _defined(pairs.rpac()),
            "corrected_pac": _defined(pairs.corrected_pac()),
            "area": pairs.area(),
            "entropy": pairs.entropy(),
            "unseen": pairs.unseen,
            "standard_error": pairs.standard_error,
        },
    }


def _rows(support: Any, names: list[Any]) -> list[dict[str, Any]]:
    """Return one dict for each cluster of the consensus, with its size and the evidence for it."""
    clusters, objects, labels = support.clusters, support.objects, support.labels

    def means(values: np.ndarray) -> list[float | None]:
        defined = ~np.isnan(values)
        sums = np.bincount(labels[defined], weights=values[defined], minlength=len(names))
        counts = np.bincount(labels[defined], minlength=len(names))
        return [float(total / n) if n else None for total, n in zip(sums, counts, strict=True)]

    columns = {
        "cluster": names,
        "objects": clusters.sizes.tolist(),
        "consensus": list(map(_defined, clusters.consensus)),
        "stability": clusters.stability.tolist(),
        "item": means(objects.item_consensus),
        "certainty": means(objects.certainty),
        "silhouette": means(objects.silhouette),
        "nearest": list(map(_defined, clusters.nearest())),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _defined(value: Any) -> float | None:
    """Return a value as a float, or as None if it is NaN, because JSON has no NaN."""
    return None if value != value else float(value)
