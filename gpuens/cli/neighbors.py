"""The options that name the neighbours of the objects: coordinates, edges or a grid."""

import argparse
from collections.abc import Sequence

from gpuens.cli.arguments import listed, option_of
from gpuens.cli.graph_settings import EXCLUDED, OF_METHODS, SOURCES, GraphSettings


def add_neighbors(parser: argparse.ArgumentParser) -> None:
    """Add the options for objects with neighbours."""
    group = parser.add_argument_group(
        "objects with neighbours",
        "the result are domains, such as tissues of cells or regions of an image (ge.Spatial), or, with --method eac, "
        "lwea or weac, connected clusters; --steps, --regions and --refine are options of domains",
    )
    group.add_argument(
        "--coordinates",
        metavar="FILE",
        help="places of the objects, matched by name: a file as for --features, or an entry of obsm of LABELS in h5ad",
    )
    group.add_argument(
        "--coordinates-columns",
        type=listed,
        metavar="NAMES",
        help="its columns with the places, such as x,y (all); without --coordinates, columns of LABELS, which are then "
        "no clusterings",
    )
    group.add_argument(
        "--groups-column",
        metavar="NAME",
        help="column of the same file, or of obs, with the slide or image of each object; no edge joins two",
    )
    group.add_argument("--nearest", type=int, metavar="N", help="nearest places to which an object is joined (6)")
    group.add_argument("--max-length", type=float, metavar="LENGTH", help="longest edge (no limit)")
    group.add_argument(
        "--graph",
        metavar="FILE",
        help="instead: the names of two objects in each line, and a weight if you like, as for `gpuens graph`; or an "
        "entry of obsp of LABELS in h5ad, such as spatial_connectivities",
    )
    group.add_argument(
        "--grid",
        metavar="HxW",
        help="instead: the objects are the pixels of images of this height and width in C order; LABELS may then be an "
        "npy array of maps, (clusterings, height, width)",
    )
    parser.set_defaults(of_domains=SOURCES)


def neighbors_of(args: argparse.Namespace, more_labels: Sequence[str]) -> GraphSettings | None:
    """Return the settings of the graph on the command line, None without; refuse contradictions before any work.

    ``more_labels`` are the label files beside ``args.labels``.
    """
    settings = GraphSettings.of(vars(args))
    if settings is None:
        return None
    excluded = [name for name in EXCLUDED if getattr(args, name)]
    excluded += [name for name in OF_METHODS if option_of(name) in args.of_method]
    settings.check(excluded, option_of)
    if more_labels and not settings.files(args.labels):
        option = option_of(settings.source.partition("=")[0])
        raise ValueError(f"{option} is for one file of labels; join the files first (gpuens join).")
    return settings
