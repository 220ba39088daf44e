"""``gpuens score``: compare the labels in one file with the labels in another file."""

import argparse

import numpy as np

from gpuens.cli.arguments import add_matching, add_no_missing, add_reading, add_selection, add_shared, reading
from gpuens.cli.files import check_inputs, one_column, without_index
from gpuens.cli.process import print_json
from gpuens.io.reading import read_column_file
from gpuens.runtime import failures


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "a",
        metavar="A",
        help="label file; each of its columns is compared with B (of an h5ad file with consensuses, only these); "
        "objects are matched by name, and objects that B lacks are left out",
    )
    parser.add_argument("b", metavar="B", help="label file with one column")
    for side in "ab":
        add_selection(parser, f"-{side}")
    add_reading(parser)
    add_matching(parser)
    add_no_missing(parser)
    add_shared(parser, "json")


def score(args: argparse.Namespace) -> None:
    check_inputs(args.a, args.b)
    from gpuens import metrics

    with failures.stage("read", f"reading {args.a}"):
        read = read_column_file(args.a, beside=True, results=True, **reading(args, "_a"))
        again = {"by_position": args.by_position, "partial": True, **reading(args, "_b")}
        truth = one_column(args.b, "choose one by --columns-b", args.a, read.ids, read.lacks, **again)
    a = read.columns
    with failures.stage("score", "scoring"):
        rows = [metrics.scores(without_index(column), without_index(truth)) for column in a.values()]
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    if args.json:
        columns = [{"name": str(name), **row} for name, row in zip(a, rows, strict=True)]
        print_json(mean if len(rows) == 1 else {**mean, "columns": columns})
        return
    named = [(str(name), row) for name, row in zip(a, rows, strict=True)] + [("mean", mean)]
    width = max(len(name) for name, _ in named) if len(rows) > 1 else 0
    print(" " * width + "".join(f"{name:>10}" for name in mean))
    for name, row in named if len(rows) > 1 else [("", mean)]:
        print(f"{name:{width}}" + "".join(f"{value:10.4f}" for value in row.values()))
