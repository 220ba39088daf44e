"""``gpuens modes``: divide the clusterings in a file into modes, groups that agree."""

import argparse
from typing import Any

import numpy as np

from gpuens import io
from gpuens.cli.arguments import (
    add_reading_of_labels,
    add_selection,
    add_share_column,
    add_shared,
    options_of_labels,
    reading_of_labels,
)
from gpuens.cli.files import (
    aligned,
    check_beside,
    check_inputs,
    check_output,
    print_written,
    write_recorded,
)
from gpuens.cli.process import print_json
from gpuens.io.long_tables import read_soft_file
from gpuens.io.memberships import read_membership_ids
from gpuens.runtime import failures
from gpuens.runtime.record import Clock


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "agreement: mean ARI of the pairs of members; VI (bits) and ARI: between the consensus of a mode and "
        "that of mode 0."
    )
    parser.add_argument(
        "labels",
        metavar="LABELS",
        nargs="+",
        help="label files, as for `gpuens run`; or files of memberships, such as the Q files of ADMIXTURE",
    )
    add_selection(parser)
    parser.add_argument("-n", type=int, metavar="N", help="number of modes (found by a test against independent noise)")
    parser.add_argument("--method", default="voting", help="method of the consensuses, see `gpuens methods` (voting)")
    add_reading_of_labels(parser)
    add_share_column(parser)
    add_shared(parser, "seed", "device")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the consensus of each mode, one column each, as for `gpuens run`"
    )
    add_shared(parser, "json")


def modes(args: argparse.Namespace) -> None:
    clock = Clock()
    check_inputs(*args.labels)
    if args.output is not None:
        check_output(args.output, *args.labels)
    with clock.phase("read"), failures.stage("read", f"reading {args.labels[0]}"):
        labels, ids, names = _read_clusterings(args)
    with clock.phase("modes"), failures.stage("modes", "finding the modes"):
        from gpuens.workflows import modes as finding

        result = finding.modes(labels, args.n, method=args.method, random_state=args.seed, device=args.device)
    result.names = names
    about = {"input": args.labels[0] if len(args.labels) == 1 else args.labels, **result.to_dict()}
    if args.json:
        print_json(about)
    else:
        print(result.story)
        print(aligned(_lines(result)))
    if args.output is not None:
        consensuses = np.column_stack([mode.consensus for mode in result.modes])
        names = [f"mode_{mode}" for mode in range(len(result.modes))]
        shares = {f"{name}_share": mode.membership for name, mode in zip(names, result.modes, strict=True)}
        beside = shares if result.modes[0].membership is not None else None
        write_recorded(args, clock, consensuses, {"names": names, "ids": ids, "beside": beside}, **about)
        if not (args.json or args.quiet):
            print_written(clock, args.output)


def _read_clusterings(args: argparse.Namespace) -> tuple[Any, Any, list[Any]]:
    """Return the clusterings, labels or memberships, the names of the objects or None, and those of the clusterings."""
    how = reading_of_labels(args)
    if not io.holds_memberships(args.labels[0]):
        if len(args.labels) == 1:
            read = read_soft_file(args.labels[0], **how)
        else:
            if args.share_column is not None:
                raise ValueError("--share-column is for one file; put all lines into one, or leave it out.")
            read = io.read_joined(args.labels, **{name: value for name, value in how.items() if value is not None})
        return read.ensemble, read.ids, read.ensemble.names
    if options := options_of_labels(args):
        raise ValueError(f"{options[0]} is for label files, not for memberships; leave it out.")
    if args.output is not None:
        check_beside("the share of each object in the clusters", args.output)
    clusterings, names = [], []
    for path in args.labels:
        runs = io.read_memberships(path)
        clusterings += runs
        names += [path] if len(runs) == 1 else [f"{path}:{run}" for run in range(len(runs))]
    return clusterings, read_membership_ids(args.labels[0]), names


def _lines(result: Any) -> list[list[str]]:
    lines = [["mode", "clusterings", "share", "clusters", "agreement", "VI", "ARI", "medoid"]]
    for i, mode in enumerate(result.modes):
        apart = [f"{result.vi[0, i]:.2f}", f"{result.ari[0, i]:.2f}"]
        sizes = [f"{len(mode.members):,}", f"{mode.share:.0%}", f"{mode.n_clusters:,}"]
        lines.append([str(i), *sizes, f"{mode.agreement:.2f}", *apart, str(result.names[mode.medoid])])
    return lines
