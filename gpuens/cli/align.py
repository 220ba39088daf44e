"""``gpuens align``: name the clusters of all clusterings in a file after those of a reference."""

import argparse
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import add_matching, add_reading_of_labels, add_selection, reading_of_labels
from gpuens.cli.files import aligned, check_inputs, check_output, facts, one_column, print_written
from gpuens.runtime import failures
from gpuens.runtime.record import Clock


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``gpuens align`` and its options to the command line."""
    parser = command(
        "align",
        align,
        "Name the clusters of all clusterings after those of a reference, so that equal labels mean equal clusters.",
        epilog="A part of a cluster 2 of the reference is named 2.b, 2.c, …, alike in all clusterings. Tables hold the "
        "names; npy, npz and zarr hold codes, whose names are in OUTPUT.json. Missing labels stay missing.",
    )
    parser.add_argument("labels", metavar="LABELS", help="label file, as for `gpuens run`")
    add_selection(parser)
    parser.add_argument(
        "--to",
        metavar="FILE",
        help="the reference: a label file with one column, such as a consensus, or `first`, the first clustering (the "
        "clustering that agrees best with all others)",
    )
    add_reading_of_labels(parser)
    add_matching(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="file for the labels, as for `gpuens run`"
    )
    parser.add_argument("--device", default="auto", help="where to work: auto, cpu or cuda (auto)")


def align(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens import io
    from gpuens.io import atomic

    given = args.to not in (None, "first")
    check_inputs(args.labels, *([args.to] if given else []))
    check_output(args.output, args.labels, *([args.to] if given else []))
    with clock.phase("read"):
        read = io.read_label_file(args.labels, **reading_of_labels(args))
        to = (
            one_column(
                args.to,
                "write the one to a file of its own",
                args.labels,
                read.ids,
                results=True,
                by_position=args.by_position,
                id_column=args.id_column,
            )
            if given
            else args.to
        )
    with clock.phase("align"), failures.stage("align", "naming the clusters"):
        from gpuens.contingency import alignment

        found = alignment.align(read.ensemble, to, device=args.device)
    with clock.phase("write"), atomic.recorded(args.output) as record:
        names = [name if isinstance(name, str) else f"clustering_{name}" for name in found.columns]
        io.write_labels(args.output, _labels(found, args.output), names=names, ids=read.ids, values=True)
        chosen = args.to if given else found.chosen
        record |= facts(
            args,
            clock,
            output=args.output,
            input=args.labels,
            reference=str(chosen),
            names=found.names,
            overlap=dict(zip(map(str, found.columns), found.overlap.tolist(), strict=True)),
        )
    if not args.quiet:
        from gpuens.runtime.checks import counted

        print(
            f"{args.labels}: {counted(read.ensemble.n_objects, 'object')}, "
            f"{counted(read.ensemble.n_clusterings, 'clustering')}"
        )
        own = len(set(found.families.tolist()))
        print(f"reference: {chosen}, with {counted(own, 'cluster')}; {len(found.names) - own:,} more for their parts")
        heads = ["", "clusters", "overlap"]
        sizes = map(len, found.clusters)
        lines = zip(
            map(str, found.columns),
            (f"{size:,}" for size in sizes),
            (f"{share:.3f}" for share in found.overlap),
            strict=True,
        )
        print(aligned([heads, *map(list, lines)][: SHOWN + 1]))
        if len(found.columns) > SHOWN:
            print(f"… and {len(found.columns) - SHOWN:,} more in the record")
        print_written(clock, args.output)


SHOWN = 20  # most clusterings in the printed table


def _labels(found: Any, output: str) -> Any:
    """Return an ensemble of the named clusters of all objects for a table, or their codes for an array."""
    import numpy as np

    from gpuens.io.paths import ARRAYS, FOLDERS
    from gpuens.labels.codes import codes_dtype
    from gpuens.labels.ensemble import Ensemble

    if output.lower().endswith((*ARRAYS, *FOLDERS)):
        return found.codes
    codes = found.codes.astype(codes_dtype(len(found.names)))  # -1 becomes the largest number, a missing label
    categories = [np.array(found.names, dtype=object)] * codes.shape[1]
    return Ensemble.of_codes(np.asfortranarray(codes), categories, list(range(codes.shape[1])))
