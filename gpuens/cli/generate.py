"""``gpuens generate``: base clusterings of features."""

import argparse
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import add_reading, add_selection, reading
from gpuens.cli.files import check_output, facts, say_written
from gpuens.record import Clock


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Say what the command takes."""
    parser = command(
        "generate",
        generate,
        "Make base clusterings: k-means on features, many times.",
        epilog="A record of the run is written beside the output: OUTPUT.json.",
    )
    parser.add_argument("X", help="npy, npz, csv, tsv, parquet or h5ad file, or the name of a data set")
    add_selection(parser)
    add_reading(parser)
    parser.add_argument("-o", "--output", required=True, help="npy, npz, csv, tsv, parquet, h5ad or zarr")
    parser.add_argument("--n-clusterings", type=int, default=20, metavar="M", help="how many (20)")
    parser.add_argument(
        "-k",
        "--n-clusters",
        type=_k,
        default=(2, "sqrt"),
        metavar="K",
        help="clusters of each: a number, sqrt (of the number of objects), or a range to draw from (2:sqrt)",
    )
    parser.add_argument("--algorithm", default="auto", help="full, minibatch or auto (by the number of objects)")
    parser.add_argument("--objects", type=_share, default=1.0, help="share (0.8) or number (500) of objects (1.0)")
    parser.add_argument("--features", type=_share, default=1.0, help="share or number of features (1.0)")
    parser.add_argument("--projection", type=int, metavar="D", help="dimensions of a random projection")
    parser.add_argument("--n-init", type=int, default=1, help="starts of each k-means (1)")
    parser.add_argument("--max-iter", type=int, default=100, help="iterations of each start (100)")
    parser.add_argument("--init", default="k-means++", help="first centroids: k-means++ or random (k-means++)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything that is drawn (0)")


def generate(args: argparse.Namespace) -> None:
    clock = Clock()
    import numpy as np

    from gpuens import datasets, generate, io
    from gpuens.io import atomic

    check_output(args.output, args.X)
    parameters = {
        "n_clusterings": args.n_clusterings,
        "n_clusters": args.n_clusters,
        "objects": args.objects,
        "features": args.features,
        "projection": args.projection,
        "algorithm": args.algorithm,
        "n_init": args.n_init,
        "max_iter": args.max_iter,
        "init": args.init,
        "random_state": args.seed,
    }
    with clock.phase("read"):
        chosen = {name: value for name, value in reading(args).items() if value is not None}
        X = io.read_features(args.X, **chosen) if chosen else datasets.load(args.X).X
        named = {name: chosen[name] for name in ("id_column", "sep", "header") if name in chosen}
        ids = io.read_ids(args.X, **named) if args.X.lower().endswith(io.INPUTS) else None
    with clock.phase("cluster"):
        ensemble = generate.kmeans_ensemble(X, **parameters)
    ks = np.diff(ensemble.offsets).tolist()
    with atomic.recorded(args.output) as record:
        with clock.phase("write"):
            io.write_labels(args.output, ensemble, ids=ids)
        record |= facts(
            args,
            clock,
            method="kmeans_ensemble",
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
        print(f"k-means: {len(ks)} clusterings, with {min(ks)} to {max(ks)} clusters each")
        say_written(clock, args.output)


def _k(text: str) -> Any:
    """Read "10", "sqrt" or "7:100"."""
    try:
        ends = [end if end == "sqrt" else int(end) for end in text.split(":")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2):
        raise argparse.ArgumentTypeError(f"must be a number, sqrt, or a range such as 7:100 or 2:sqrt, not {text!r}")
    return ends[0] if len(ends) == 1 else tuple(ends)


def _share(text: str) -> float | int:
    """Read "0.8", a share, or "500", a number."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a share such as 0.8 or a whole number, not {text!r}") from None
