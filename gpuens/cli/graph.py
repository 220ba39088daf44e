"""``gpuens graph``: find the consensus of clusterings of a graph, from a list of its edges."""

import argparse
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import add_matching, add_reading_of_labels, add_selection, reading_of_labels
from gpuens.cli.files import check_inputs, check_output, clusterings_of, clusters_of, facts, print_written
from gpuens.cli.options import add_parameters, read_parameters
from gpuens.runtime.record import Clock

# names of the parameters of `gpuens.graph_consensus` for which the command has no option made from the signature
NOT_OPTIONS = ("graph", "labels", "progress")


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``gpuens graph`` and its options to the command line."""
    parser = command(
        "graph",
        graph,
        "Cluster the objects of a graph: find the consensus of clusterings, of which only edges are compared.",
        epilog="Base clusterings are Leiden clusterings of the graph, unless --labels gives others. Clusters are "
        "numbered by size: 0 is the largest. OUTPUT.json is a record of the run.",
        later=_add_parameters,
    )
    parser.add_argument(
        "edges",
        metavar="EDGES",
        help="text with an edge in each line: the names of two objects and, if you like, a weight; comments begin with "
        "#; or a sparse square matrix in npz, or the graph of the cells in h5ad",
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="file of base clusterings, as for `gpuens run`; objects are matched by name, and the output is in the "
        "order of this file, or of the objects' numbers if they count from 0",
    )
    add_selection(parser)
    add_reading_of_labels(parser)
    add_matching(parser)
    parser.add_argument("-o", "--output", required=True, help="npy, npz, csv, tsv, parquet, h5ad or zarr")


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    from gpuens.workflows.graph_consensus import graph_consensus

    add_parameters(parser, {"graph": graph_consensus}, leave_out=NOT_OPTIONS)


def graph(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens import io
    from gpuens.io import atomic
    from gpuens.io.paths import check_readable
    from gpuens.workflows.graph_consensus import graph_consensus
    from gpuens.workflows.results import cluster_sizes

    if args.labels is None and (named := _options_of_labels(args)):
        raise ValueError(f"{named[0]} is for the file of --labels; name this file, or leave {named[0]} out.")
    inputs = [args.edges] if args.labels is None else [args.edges, args.labels]
    check_output(args.output, *inputs)
    check_readable(args.edges)
    if args.labels is not None:
        check_inputs(args.labels)
    parameters = read_parameters(args, graph_consensus, leave_out=NOT_OPTIONS)
    with clock.phase("read", f"reading {args.edges}"):
        edges = io.read_edges(args.edges)
        labels = None if args.labels is None else _labels(args)
    with clock.phase("cluster", f"clustering {edges.n_objects:,} objects with {len(edges):,} edges"):
        found = graph_consensus(edges, labels, **parameters)
    n_kept = int(found.kept.sum())
    with atomic.recorded(args.output) as record:
        with clock.phase("write", f"writing {args.output}"):
            io.write_labels(args.output, found.labels, ids=found.index)
        record |= facts(
            args,
            clock,
            parameters=parameters,
            input=args.edges,
            labels=args.labels,
            output=args.output,
            n_objects=len(found.labels),
            n_edges=len(found.kept),
            n_kept=n_kept,
            n_rounds=found.n_rounds,
            n_clusterings=found.ensemble.n_clusterings,
            n_base_clusters=found.ensemble.n_clusters,
            n_clusters=found.n_clusters,
            cluster_sizes=cluster_sizes(found.labels),
        )
    if not args.quiet:
        from gpuens.runtime.checks import counted

        source = "leiden" if args.labels is None else args.labels
        print(f"{args.edges}: {counted(len(found.labels), 'object')}, {counted(len(found.kept), 'edge')}")
        print(f"{source}: {clusterings_of(found.ensemble)}")
        print(f"consensus: {clusters_of(cluster_sizes(found.labels))}; {counted(n_kept, 'edge')} kept")
        print_written(clock, args.output)


def _options_of_labels(args: argparse.Namespace) -> list[str]:
    """Return the names of the given options that describe a file of labels."""
    given = [name for name, value in reading_of_labels(args).items() if value not in (None, False)]
    return [f"--{name.replace('_', '-')}" for name in given]


def _labels(args: argparse.Namespace) -> Any:
    """Return the base clusterings of the file ``args.labels``, with the names of its objects as their index.

    Objects that are numbered from 0 are in the order of their numbers, which then are no names to be written, unless
    the user names their column.
    """
    from gpuens import io
    from gpuens.labels.object_names import order_of_numbers

    ensemble = io.read_label_file(args.labels, **reading_of_labels(args)).ensemble
    index = ensemble.index
    if args.by_position:
        ensemble.index = None
    elif args.id_column is None and index is not None and (order := order_of_numbers(index)) is not None:
        return ensemble.take(order)
    return ensemble
