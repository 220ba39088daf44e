"""``gpuens generate``: make base clusterings of features or of a graph."""

import argparse

import numpy as np

from gpuens.cli.arguments import add_reading, add_selection, add_shared
from gpuens.cli.features import add_preparation, read_source
from gpuens.cli.files import check_output, print_written, write_recorded
from gpuens.cli.options import add_parameters, read_parameters, refuse_parameters
from gpuens.generate import KINDS, of_kind
from gpuens.runtime.checks import counted
from gpuens.runtime.record import Clock

# names of the parameters of functions in `gpuens.generate` for which the command has no option
NOT_OPTIONS = ("X", "names", "progress", "client", "use_rep")


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "OUTPUT.json is a record of the run."
    parser.add_argument(
        "X",
        help="npy, npz, csv, tsv, parquet, h5ad or zarr file, or the name of a data set; leiden also takes a graph: a "
        "sparse square matrix in npz, or the graph of scanpy.pp.neighbors in h5ad, unless --key names features",
    )
    add_selection(parser)
    add_reading(parser)
    add_preparation(parser)
    add_shared(parser, "output")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="kmeans",
        help="the base clusterer (kmeans if not given); landmark and mixed follow clusters of any shape, leiden is for "
        "graphs",
    )
    add_parameters(parser, KINDS, leave_out=NOT_OPTIONS)


def generate(args: argparse.Namespace) -> None:
    clock = Clock()

    check_output(args.output, args.X)
    function = of_kind(args.kind, args.device or "auto")
    for kind, generator in KINDS.items():
        refuse_parameters(args, generator, function, f"--kind {args.kind} takes no {{}}; use it with --kind {kind}.")
    parameters = read_parameters(args, function, leave_out=NOT_OPTIONS)
    with clock.phase("read", f"reading {args.X}"):
        source = read_source(args)
    with clock.phase("cluster", f"making base clusterings of {source.size['n_objects']:,} objects"):
        ensemble = function(source.X, **parameters)
    ks = np.diff(ensemble.offsets).tolist()
    write_recorded(
        args,
        clock,
        ensemble,
        {"ids": source.ids},
        method=function.__name__,
        parameters=parameters,
        input=args.X,
        **source.size,
        **source.prepared,
        n_clusterings=ensemble.n_clusterings,
        n_base_clusters=ensemble.n_clusters,
        clusters_of_each=ks,
    )
    if not args.quiet:
        print(f"{args.X}: {source}")
        name = "k-means" if args.kind == "kmeans" else args.kind
        print(f"{name}: {counted(len(ks), 'clustering')}, with {min(ks):,} to {max(ks):,} clusters each")
        print_written(clock, args.output)
