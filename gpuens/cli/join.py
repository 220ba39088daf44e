"""``gpuens join``: bring the clusterings of several files together in one file, by the names of the objects."""

import argparse

from gpuens import io
from gpuens.cli.arguments import add_reading_of_labels, add_selection, reading_of_labels
from gpuens.cli.files import check_inputs, check_output, first_names, print_written, write_recorded
from gpuens.io.paths import ANNOTATED, OUTPUTS, WITH_NUMBERS, file_kind
from gpuens.runtime.checks import counted
from gpuens.runtime.defaults import HOW_TO_JOIN
from gpuens.runtime.record import Clock


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "`gpuens run A B …` joins files in the same way. OUTPUT.json is a record of the join."
    parser.add_argument(
        "labels",
        metavar="LABELS",
        nargs="+",
        help="label files of any kinds, also with just the name of an object and its label in each line",
    )
    parser.add_argument("-o", "--output", required=True, help="csv, tsv, parquet, npz or h5ad file")
    parser.add_argument(
        "--how",
        choices=HOW_TO_JOIN,
        default=HOW_TO_JOIN[0],
        help="keep the objects of all files together (outer), or only those in every file (inner); outer if not given",
    )
    add_selection(parser)
    add_reading_of_labels(parser)
    parser.add_argument("--drop-unlabelled", action="store_true", help="leave out objects without any label")


def join(args: argparse.Namespace) -> None:
    clock = Clock()

    check_inputs(*args.labels)
    check_output(args.output, *args.labels)
    with clock.phase("read", f"reading {len(args.labels)} files"):
        reading = {name: value for name, value in reading_of_labels(args).items() if value is not None}
        read = io.read_joined(args.labels, args.how, drop_unlabelled=args.drop_unlabelled, **reading)
    ids = read.ids if read.ids is None or read.labelled is None else read.ids[read.labelled]
    if ids is not None and file_kind(args.output, OUTPUTS) not in (*WITH_NUMBERS, *ANNOTATED):
        raise ValueError(
            f"output {args.output!r} cannot hold the names of the objects; name a csv, tsv, parquet, npz or h5ad file."
        )
    ensemble = read.ensemble
    write_recorded(
        args,
        clock,
        ensemble,
        # without a title, because a first column without one is known to hold names, not labels
        {"ids": None if ids is None else ids.rename(None), "values": True},
        input=args.labels,
        how=args.how,
        n_objects=ensemble.n_objects,
        n_clusterings=ensemble.n_clusterings,
        columns=list(map(str, ensemble.names)),
        n_base_clusters=ensemble.n_clusters,
        n_labels=ensemble.sizes.sum().item(),
    )
    if not args.quiet:
        share = ensemble.sizes.sum() / (ensemble.n_objects * ensemble.n_clusterings)
        print(
            f"{counted(len(args.labels), 'file')}: {counted(ensemble.n_objects, 'object')}, "
            f"{counted(ensemble.n_clusterings, 'clustering')}, "
            f"{100 * share:.0f} % of their labels known"
        )
        if read.form:
            print(f"read as: {read.form}")
        print(f"columns: {first_names(ensemble.names)}")
        print_written(clock, args.output)
