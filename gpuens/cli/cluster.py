"""``gpuens cluster``: make many base clusterings of features, and find their consensus."""

import argparse
import os
from contextlib import nullcontext
from typing import Any

from gpuens import datasets, io
from gpuens.cli.arguments import add_reading, add_selection, add_shared
from gpuens.cli.chunks import ChunkSettings, add_chunks, chunks_of
from gpuens.cli.features import ClusteringInput, add_preparation, read_source
from gpuens.cli.file_consensus import EVIDENCE, RunResult, check_input
from gpuens.cli.files import (
    check_beside,
    check_inputs,
    check_output,
    check_page,
    clusterings_of,
    clusters_of,
    facts,
    labels_kept,
    print_written,
    write_page,
)
from gpuens.cli.page_inputs import add_names, names_of
from gpuens.generate import KINDS
from gpuens.io import atomic
from gpuens.runtime.defaults import KIND
from gpuens.runtime.record import TIES, Clock
from gpuens.workflows import results
from gpuens.workflows.results import suggestion_facts

# options, besides those in `IN_ONE_PIECE`, that need the file in one piece
NOT_IN_CHUNKS = ("missing", "evidence", "impute")


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Clusters are numbered by size: 0 is the largest. For other parameters of the base clusterings, use "
        "`gpuens generate`, then `gpuens run`. OUTPUT.json is a record of the run."
    )
    parser.add_argument(
        "X", help="a file or the name of a data set, as for `gpuens generate`; with --scheduler: npy, zarr or parquet"
    )
    add_selection(parser)
    parser.add_argument(
        "-k",
        "--n-clusters",
        type=int,
        metavar="K",
        help="number of clusters (the number that the features support best)",
    )
    add_shared(parser, "method")
    parser.add_argument(
        "--n-clusterings",
        type=int,
        metavar="M",
        help="number of base clusterings (20; leiden: 5 resolutions × 4 seeds)",
    )
    add_shared(parser, "seed")
    parser.add_argument("--resume", metavar="FOLDER", help="store base clusterings there, and continue after a stop")
    add_chunks(parser)
    add_reading(parser)
    add_preparation(parser, "auto")
    add_shared(parser, "output")
    parser.add_argument(
        "--evidence", action="store_true", help="write certainty, confidence and margin beside the labels"
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="write a page: how certain the clusters are, what they are like, and the least certain objects",
    )
    add_names(parser)
    parser.add_argument("--kind", choices=KINDS, default=KIND, help=f"kind of base clusterings ({KIND} if not given)")


def cluster(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens.workflows import cluster as clustering

    chunks = chunks_of(args, args.X, *NOT_IN_CHUNKS)
    settings, names = _check(args, chunks), names_of(args)

    def facts_of(result: RunResult) -> dict[str, Any]:
        return facts(args, clock, **_facts(args, source, estimator, result))

    with nullcontext() if chunks is None else chunks.connected() as client, atomic.recorded(args.output) as record:
        with clock.phase("read", f"reading {args.X}"):
            source = read_source(args, scale=False) if chunks is None else _source_in_chunks(args, chunks)
        with clock.phase("cluster", f"clustering {source.size['n_objects']:,} objects"):
            estimator = clustering.cluster(source.X, args.n_clusters, random_state=args.seed, client=client, **settings)
        source = source._replace(prepared={**source.prepared, "scale": estimator.scale_})
        if chunks is None:
            result = _write(args, clock, estimator, source.ids)
        else:
            result = _write_in_chunks(args, clock, estimator, client)
        record |= facts_of(result)
    with labels_kept(args.output):
        if args.evidence:
            with atomic.recorded(args.output) as record:
                result = _write(args, clock, estimator, source.ids, evidence=True)
                record |= facts_of(result)
        if args.report is not None:
            from gpuens.report import render_fit

            title = f"Consensus of {os.path.basename(args.X)}"
            features = source.X if chunks is None and "n_features" in source.size else None  # a graph has none
            write_page(
                args.report,
                lambda: render_fit(title, estimator, record, source.ids, features=features, names=names),
            )
    if not args.quiet:
        print(f"{args.X}: {source}")
        print(f"{args.kind}: {clusterings_of(result.ensemble)}")
        print(f"{estimator.fallback_ or type(estimator).__name__}: {clusters_of(result.sizes)}")
        if (suggestion := getattr(estimator, "suggestion_", None)) is not None:
            print(f"number of clusters: {suggestion.reason()}")
        print_written(clock, args.output)


def _check(args: argparse.Namespace, chunks: ChunkSettings | None) -> dict[str, Any]:
    """Raise an error, before any work, for invalid files and options; return the settings of `gpuens.cluster`."""
    from gpuens.workflows import cluster as clustering

    if args.evidence:
        check_beside("--evidence", args.output)
    check_output(args.output, args.X)
    if args.report is not None:
        check_page(args.report, args.X)
    if chunks is not None or datasets.names_file(args.X):
        check_inputs(args.X, kinds=None if chunks is None else io.IN_CHUNKS)
    settings: dict[str, Any] = {name: getattr(args, name) for name in ("method", "kind", "n_clusterings", "resume")}
    settings["scale"] = args.scale or "auto"
    estimator = clustering.check(args.n_clusters, **settings)
    if args.scheduler is not None and args.kind not in clustering.BY_LANDMARKS:
        raise ValueError(
            f"scheduler={args.scheduler} is for work in chunks, but kind={args.kind!r} needs features in one piece; "
            "take kind='mixed', or leave scheduler out."
        )
    check_input(estimator, args.method, features=estimator.parts().needs_features or None, scheduler=args.scheduler)
    return settings


def _facts(args: argparse.Namespace, source: ClusteringInput, estimator: Any, result: RunResult) -> dict[str, Any]:
    """Return the facts for the record, except versions, times and memory."""
    return {
        "method": args.method,
        "kind": args.kind,
        "parameters": estimator.get_params(),
        "input": args.X,
        "output": args.output,
        **source.size,
        **source.prepared,
        "n_clusterings": result.ensemble.n_clusterings,
        "n_base_clusters": result.ensemble.n_clusters,
        "n_clusters": estimator.n_clusters_,
        **suggestion_facts(estimator),
        "cluster_sizes": result.sizes,
        "mean_ari": estimator.mean_ari_,
        "mean_wallace": estimator.mean_wallace_,
        "fallback": estimator.fallback_,
        "ties": TIES,
        **({"evidence": result.evidence} if result.evidence else {}),
    }


def _source_in_chunks(args: argparse.Namespace, chunks: ChunkSettings) -> ClusteringInput:
    from gpuens.distributed import read_features

    X = chunks.placed(read_features(args.X, chunk_rows=chunks.rows, columns=args.columns, exclude=args.exclude))
    return ClusteringInput(X, None, {"n_objects": X.shape[0], "n_features": X.shape[1]})


def _write(args: argparse.Namespace, clock: Clock, estimator: Any, ids: Any, *, evidence: bool = False) -> RunResult:
    with clock.phase("evidence", EVIDENCE) if evidence else nullcontext():
        fit_results = results.results_of(estimator, None, evidence)
    with clock.phase("write", f"writing {args.output}"):
        io.write_labels(args.output, fit_results.labels, ids=ids, beside=fit_results.beside)
    sizes = results.cluster_sizes(fit_results.labels)
    return RunResult(estimator.ensemble_, sizes, evidence=fit_results.evidence, ids=ids)


def _write_in_chunks(args: argparse.Namespace, clock: Clock, estimator: Any, client: Any) -> RunResult:
    from gpuens.distributed import write_labels

    with clock.phase("write", f"writing {args.output}"):
        sizes = write_labels(args.output, estimator.labels_, client=client)
    return RunResult(estimator.reduction_.ensemble, sizes.tolist())
