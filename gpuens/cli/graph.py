"""``gpuens graph``: find the consensus of clusterings of a graph, from a list of its edges."""

import argparse
from typing import Any

from gpuens import io
from gpuens.cli.arguments import (
    add_matching,
    add_reading_of_labels,
    add_selection,
    add_shared,
    options_of_labels,
    reading_of_labels,
)
from gpuens.cli.files import check_inputs, check_output, clusterings_of, clusters_of, print_written, write_recorded
from gpuens.cli.options import add_parameters, read_parameters
from gpuens.io.paths import check_readable
from gpuens.labels.object_names import order_of_numbers
from gpuens.runtime.checks import counted
from gpuens.runtime.record import Clock
from gpuens.workflows.graph_consensus import graph_consensus
from gpuens.workflows.results import cluster_sizes

# names of the parameters of `gpuens.graph_consensus` for which the command has no option made from the signature
NOT_OPTIONS = ("graph", "labels", "progress")


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Base clusterings are made from the graph, as --base says, unless --labels gives others. Clusters are numbered "
        "by size: 0 is the largest. OUTPUT.json is a record of the run."
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
    add_shared(parser, "output")
    add_parameters(parser, {"graph": graph_consensus}, leave_out=NOT_OPTIONS)


def graph(args: argparse.Namespace) -> None:
    clock = Clock()

    if args.labels is None and (options := options_of_labels(args)):
        raise ValueError(f"{options[0]} is for the file of --labels; name this file, or leave {options[0]} out.")
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
        result = graph_consensus(edges, labels, **parameters)
    n_kept = int(result.kept.sum())
    sizes = cluster_sizes(result.labels)
    write_recorded(
        args,
        clock,
        result.labels,
        {"ids": result.index},
        parameters=parameters,
        input=args.edges,
        labels=args.labels,
        n_objects=len(result.labels),
        n_edges=len(result.kept),
        n_kept=n_kept,
        n_rounds=result.n_rounds,
        agreement=result.agreement,
        n_clusterings=result.ensemble.n_clusterings,
        n_base_clusters=result.ensemble.n_clusters,
        n_clusters=result.n_clusters,
        cluster_sizes=sizes,
    )
    if not args.quiet:
        bases = dict.fromkeys(name.rsplit("_", 2)[0] for name in result.ensemble.names)
        source = ", ".join(bases) if args.labels is None else args.labels
        print(f"{args.edges}: {counted(len(result.labels), 'object')}, {counted(len(result.kept), 'edge')}")
        print(f"{source}: {clusterings_of(result.ensemble)}; agreement {result.agreement:.2f}")
        print(f"consensus: {clusters_of(sizes)}; {counted(n_kept, 'edge')} kept")
        print_written(clock, args.output)


def _labels(args: argparse.Namespace) -> Any:
    """Return the base clusterings of the file ``args.labels``, with the names of its objects as their index.

    Objects that are numbered from 0 are in the order of their numbers, which then are no names to be written, unless
    the user names their column.
    """
    ensemble = io.read_label_file(args.labels, **reading_of_labels(args)).ensemble
    index = ensemble.index
    if args.by_position:
        ensemble.index = None
    elif args.id_column is None and index is not None and (order := order_of_numbers(index)) is not None:
        return ensemble.take(order)
    return ensemble
