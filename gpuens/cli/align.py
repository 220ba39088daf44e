"""``gpuens align``: name the clusters of all clusterings in a file after those of a reference."""

import argparse
from typing import Any

import numpy as np

from gpuens.cli.arguments import (
    add_matching,
    add_reading_of_labels,
    add_selection,
    add_share_column,
    add_shared,
    reading_of_labels,
)
from gpuens.cli.files import aligned, check_inputs, check_output, one_column, print_written, write_recorded
from gpuens.io.long_tables import read_soft_file
from gpuens.io.paths import ARRAYS, FOLDERS
from gpuens.labels.codes import codes_dtype
from gpuens.labels.ensemble import Ensemble
from gpuens.runtime import failures
from gpuens.runtime.checks import counted
from gpuens.runtime.record import Clock


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "A part of a cluster 2 of the reference is named 2.b, 2.c, …, alike in all clusterings. Tables hold the "
        "names; npy, npz and zarr hold codes, whose names are in OUTPUT.json. Missing labels stay missing."
    )
    add_shared(parser, "labels")
    add_selection(parser)
    parser.add_argument(
        "--to",
        metavar="FILE",
        help="the reference: a label file with one column, such as a consensus, or `first`, the first clustering (the "
        "clustering that agrees best with all others)",
    )
    add_reading_of_labels(parser)
    add_share_column(parser)
    add_matching(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="file for the labels, as for `gpuens run`"
    )
    add_shared(parser, "device")


def align(args: argparse.Namespace) -> None:
    clock = Clock()

    is_file = args.to not in (None, "first")
    inputs = [args.labels, *([args.to] if is_file else [])]
    check_inputs(*inputs)
    check_output(args.output, *inputs)
    with clock.phase("read"):
        read = read_soft_file(args.labels, **reading_of_labels(args))
        reference = args.to
        if is_file:
            how = {"results": True, "by_position": args.by_position, "id_column": args.id_column}
            reference = one_column(args.to, "write the one to a file of its own", args.labels, read.ids, **how)
    with clock.phase("align"), failures.stage("align", "naming the clusters"):
        from gpuens.contingency import alignment

        result = alignment.align(read.ensemble, reference, device=args.device)
    names = [name if isinstance(name, str) else f"clustering_{name}" for name in result.columns]
    reference = args.to if is_file else result.chosen
    write_recorded(
        args,
        clock,
        _labels(result, args.output),
        {"names": names, "ids": read.ids, "values": True},
        input=args.labels,
        reference=str(reference),
        names=result.names,
        overlap=dict(zip(map(str, result.columns), result.overlap.tolist(), strict=True)),
    )
    if not args.quiet:
        print(
            f"{args.labels}: {counted(read.ensemble.n_objects, 'object')}, "
            f"{counted(read.ensemble.n_clusterings, 'clustering')}"
        )
        n_families = len(set(result.families.tolist()))
        n_parts = len(result.names) - n_families
        print(f"reference: {reference}, with {counted(n_families, 'cluster')}; {n_parts:,} more for their parts")
        heads = ["", "clusters", "overlap"]
        rows = zip(result.columns, result.clusters, result.overlap, strict=True)
        lines = [[str(name), f"{len(clusters):,}", f"{share:.3f}"] for name, clusters, share in rows]
        print(aligned([heads, *lines][: SHOWN + 1]))
        if len(result.columns) > SHOWN:
            print(f"… and {len(result.columns) - SHOWN:,} more in the record")
        print_written(clock, args.output)


SHOWN = 20  # most clusterings in the printed table


def _labels(result: Any, output: str) -> Any:
    """Return an ensemble of the named clusters of all objects for a table, or their codes for an array."""
    if output.lower().endswith((*ARRAYS, *FOLDERS)):
        return result.codes
    codes = result.codes.astype(codes_dtype(len(result.names)))  # -1 becomes the largest number, a missing label
    categories = [np.array(result.names, dtype=object)] * codes.shape[1]
    return Ensemble.of_codes(np.asfortranarray(codes), categories, list(range(codes.shape[1])))
