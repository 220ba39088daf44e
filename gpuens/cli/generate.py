"""``gpuens generate``: base clusterings of features."""

import argparse
from collections.abc import Callable

from gpuens.cli.arguments import add_reading, add_selection, read_features
from gpuens.cli.files import check_output, facts, print_written
from gpuens.cli.options import add_parameters, read_parameters, refuse_parameters
from gpuens.record import Clock

NOT_OPTIONS = ("X", "names", "progress", "client")  # parameters of functions of `generate`


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command(
        "generate",
        generate,
        "Make base clusterings: k-means, or landmark spectral clustering, of features, many times.",
        epilog="OUTPUT.json is a record of the run.",
        later=_add_parameters,
    )
    parser.add_argument("X", help="npy, npz, csv, tsv, parquet or h5ad file, or the name of a data set")
    add_selection(parser)
    add_reading(parser)
    parser.add_argument("-o", "--output", required=True, help="npy, npz, csv, tsv, parquet, h5ad or zarr")


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    from gpuens.generate import KINDS

    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="kmeans",
        help="the base clusterer (kmeans if not given); landmark follows clusters of any shape, with k from 20 to 60 "
        "and 5 iterations if not given",
    )
    for function in KINDS.values():
        add_parameters(parser, function, leave_out=NOT_OPTIONS)


def generate(args: argparse.Namespace) -> None:
    clock = Clock()
    import numpy as np

    from gpuens import generate, io
    from gpuens.io import atomic

    check_output(args.output, args.X)
    function = generate.KINDS[args.kind]
    for kind, other in generate.KINDS.items():
        refuse_parameters(args, other, function, f"--kind {args.kind} takes no {{}}, which is for --kind {kind}.")
    parameters = read_parameters(args, function, leave_out=NOT_OPTIONS)
    with clock.phase("read"):
        X, ids = read_features(args)
    with clock.phase("cluster"):
        ensemble = function(X, **parameters)
    ks = np.diff(ensemble.offsets).tolist()
    with atomic.recorded(args.output) as record:
        with clock.phase("write"):
            io.write_labels(args.output, ensemble, ids=ids)
        record |= facts(
            args,
            clock,
            method=function.__name__,
            parameters=parameters,
            input=args.X,
            output=args.output,
            n_objects=ensemble.n_objects,
            n_features=int(X.shape[1]),
            n_clusterings=ensemble.n_clusterings,
            n_base_clusters=ensemble.n_clusters,
            clusters_of_each=ks,
        )
    if not args.quiet:
        print(f"{args.X}: {X.shape[0]:,} objects, {X.shape[1]:,} features")
        name = "k-means" if args.kind == "kmeans" else args.kind
        print(f"{name}: {len(ks)} clusterings, with {min(ks)} to {max(ks)} clusters each")
        print_written(clock, args.output)
