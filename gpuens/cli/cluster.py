"""``gpuens cluster``: from features to a consensus of many clusterings."""

import argparse
from collections.abc import Callable
from contextlib import nullcontext

from gpuens.cli.arguments import add_reading, add_selection, read_source
from gpuens.cli.files import check_inputs, check_output, check_page, facts, print_written, write_page
from gpuens.record import Clock


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command(
        "cluster",
        cluster,
        "Cluster objects by their features: many base clusterings, and their consensus.",
        epilog="Base clusterings of other parameters: `gpuens generate`, then `gpuens run`. OUTPUT.json is a record of "
        "the run.",
        later=_add_kind,
    )
    parser.add_argument("X", help="as for `gpuens generate`: a file or the name of a data set")
    add_selection(parser)
    parser.add_argument("-k", "--n-clusters", type=int, metavar="K", help="number of clusters")
    parser.add_argument("--method", default="hbgf", help="a method, see `gpuens methods` (hbgf)")
    parser.add_argument(
        "--n-clusterings", type=int, metavar="M", help="base clusterings (20; of leiden five resolutions × four seeds)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    parser.add_argument(
        "--resume", metavar="FOLDER", help="keep base clusterings there, and go on where it was stopped"
    )
    add_reading(parser)
    parser.add_argument("-o", "--output", required=True, help="npy, npz, csv, tsv, parquet, h5ad or zarr")
    parser.add_argument("--evidence", action="store_true", help="write confidence and margin beside the labels")
    parser.add_argument("--report", metavar="FILE.html", help="write a page: how sure, the least certain objects")


def _add_kind(parser: argparse.ArgumentParser) -> None:
    from gpuens.generate import KINDS

    parser.add_argument("--kind", choices=KINDS, default="landmark", help="the base clusterer (landmark if not given)")


def cluster(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens import clustering, io, runs
    from gpuens.io import atomic

    check_output(args.output, args.X)
    if args.report is not None:
        check_page(args.report, args.X)
    if args.X.lower().endswith(io.INPUTS):
        check_inputs(args.X, kinds=io.INPUTS)
    clustering.check(
        args.n_clusters, method=args.method, kind=args.kind, n_clusterings=args.n_clusterings, resume=args.resume
    )
    with clock.phase("read"):
        source = read_source(args)
    with clock.phase("cluster"):
        estimator = clustering.cluster(
            source.X, args.n_clusters, method=args.method, kind=args.kind, n_clusterings=args.n_clusterings,
            random_state=args.seed, resume=args.resume,
        )  # fmt: skip
    ensemble = estimator.ensemble_
    with atomic.recorded(args.output) as record:
        with clock.phase("evidence") if args.evidence else nullcontext():
            found = runs.found_by(estimator, None, args.evidence, membership=False)
        with clock.phase("write"):
            io.write_labels(args.output, found.labels, ids=source.ids, beside=found.beside)
        record |= facts(
            args,
            clock,
            method=args.method,
            kind=args.kind,
            parameters=estimator.get_params(),
            input=args.X,
            output=args.output,
            **source.size,
            n_clusterings=ensemble.n_clusterings,
            n_base_clusters=ensemble.n_clusters,
            n_clusters=estimator.n_clusters_,
            **({"evidence": found.evidence} if found.evidence else {}),
        )
        if args.report is not None:
            from gpuens.report import of_fit

            write_page(args.report, lambda: of_fit(f"Consensus of {args.X}", estimator, record, source.ids))
    if not args.quiet:
        print(f"{args.X}: {source}")
        print(f"{args.kind}: {ensemble.n_clusterings} clusterings with {ensemble.n_clusters:,} clusters")
        print(f"{type(estimator).__name__}: {estimator.n_clusters_} clusters")
        print_written(clock, args.output)
