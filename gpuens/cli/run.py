"""``gpuens run``: the consensus of the base clusterings in a file."""

import argparse
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from gpuens.cli.arguments import add_reading, add_selection, reading
from gpuens.cli.files import check_inputs, check_output, facts, print_written
from gpuens.cli.options import flags
from gpuens.record import Clock


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = command(
        "run",
        run,
        "Find the consensus of the base clusterings in a file.",
        epilog="`gpuens methods NAME` explains the options of a method, such as --theta. OUTPUT.json is a record of "
        "the run.",
    )
    parser.add_argument(
        "labels", metavar="LABELS", help="npy, npz, csv, tsv, parquet or h5ad file: one column per clustering"
    )
    add_selection(parser)
    parser.add_argument(
        "-k", "--n-clusters", type=int, metavar="K", help="number of clusters; linkage methods can choose"
    )
    parser.add_argument(
        "--method",
        help="a method, see `gpuens methods` (lwea); or give any --similarity and --partitioner, such as "
        "--similarity lwca:theta=0.2 --partitioner metis",
    )
    add_reading(parser)
    parser.add_argument(
        "--drop-unlabelled",
        action="store_true",
        help="leave out objects without any label; they are -1 in the output",
    )
    parser.add_argument(
        "-o",
        "--output",
        help="npy, npz, csv, tsv, parquet, h5ad or zarr (beside the input: <LABELS>.<METHOD>.npy)",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="write pictures to OUTPUT.report: the dendrogram (linkage methods), the correspondence of each clustering "
        "(scec)",
    )
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="features of the objects, which ecrmc needs: a file or data set as for `generate`",
    )
    parser.add_argument(
        "--scheduler",
        metavar="WHERE",
        help="work in chunks, for npy, zarr or parquet: on a Dask cluster (its address), local (--workers processes), "
        "cuda (all GPUs of this machine) or threads (of this process)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of --scheduler local")
    parser.add_argument("--chunk-rows", type=int, default=1_000_000, metavar="N", help="objects per chunk (1,000,000)")
    parser.add_argument("--seed", type=int, help="random seed; methods without randomness ignore it")
    parser.add_argument("--reduce", metavar="HOW", help="work on fewer rows: sample:5000, catree:tau=0.2,gamma=0.9, …")
    parser.add_argument("--device", help="where to work: auto, cpu or cuda (auto)")
    parser.set_defaults(of_method={})


class Done(NamedTuple):
    """The input and the result of a run."""

    ensemble: Any  # of the labels; in chunks that of their core groups
    sizes: list[int]  # objects of each cluster of the consensus
    n_unlabelled: int = 0  # objects left out


def run(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens import device as devices
    from gpuens.io import atomic

    kinds = _kinds_of_input(args)
    check_inputs(args.labels, kinds=kinds)
    estimator = _estimator(args)
    device = devices.resolve(estimator.device)
    output = _default_output(args.labels, args.method, kinds) if args.output is None else args.output
    check_output(output, args.labels, *([args.features] if args.features else []))
    if args.report:
        _check_report(output, args.method, estimator)
    work = _run_in_chunks if args.scheduler else _run_in_memory
    with atomic.recorded(output) as record:
        done = work(args, estimator, output, clock)
        record |= facts(args, clock, device=device, output=output, **_record_of(args, estimator, done))
    pictures = []
    if args.report:
        from gpuens.report import write_report

        with clock.phase("report"):
            pictures = write_report(estimator, f"{output}.report")
        atomic.write_record(output, {**record, "report": pictures, **clock.spent()})
    if not args.quiet:
        _print_summary(args, estimator, done)
        if pictures:
            print(f"report: {len(pictures)} picture{'s' * (len(pictures) > 1)} in {output}.report")
        print_written(clock, output, " (beside the input, as there is no -o)" if args.output is None else "")


def _kinds_of_input(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the kinds of files that can be read, in one piece or in chunks; refuse options of the other way."""
    from gpuens import io

    if args.scheduler is None and args.labels.lower().endswith(".zarr"):
        args.scheduler = "threads"  # a zarr array is in chunks already
    if args.workers is not None and args.scheduler not in ("local", "cuda"):
        raise ValueError(
            f"--workers={args.workers} is for a cluster of this machine: add --scheduler local (or cuda), or leave it "
            "out."
        )
    if args.scheduler is None:
        return io.INPUTS
    if args.key is not None:
        raise ValueError(f"--key={args.key} is for npz files, which are not read in chunks; leave --scheduler out.")
    for name in ("id_column", "drop_unlabelled", "sep", "header"):
        if getattr(args, name) not in (None, False):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for files that are read in one piece; leave it or --scheduler out.")
    return io.IN_CHUNKS


def _run_in_memory(args: argparse.Namespace, estimator: Any, output: str, clock: Clock) -> Done:
    """Read, fit and write in this process."""
    from gpuens import datasets, io

    with clock.phase("read"):
        read = io.read_label_file(args.labels, drop_unlabelled=args.drop_unlabelled, **reading(args))
        features = {} if args.features is None else {"features": datasets.load(args.features).X}
    with clock.phase("fit"):
        estimator.fit(read.ensemble, **features)
    with clock.phase("write"):
        io.write_labels(output, _with_unlabelled(estimator.labels_, read.labelled), ids=read.ids)
    n_unlabelled = 0 if read.labelled is None else len(read.labelled) - read.ensemble.n_objects
    return Done(read.ensemble, _sizes(estimator.labels_), n_unlabelled)


def _run_in_chunks(args: argparse.Namespace, estimator: Any, output: str, clock: Clock) -> Done:
    """Read, fit and write on a Dask cluster."""
    from gpuens.distributed import connected, fit, on_gpus, plan, read_labels, write_labels

    scheduler = None if args.scheduler == "threads" else args.scheduler
    with connected(scheduler, args.workers) as client:
        with clock.phase("plan"):
            labels = read_labels(
                args.labels,
                chunk_rows=args.chunk_rows,
                columns=args.columns,
                exclude=args.exclude,
                missing=args.missing,
            )
            if scheduler == "cuda" and not hasattr(labels, "columns"):
                labels = on_gpus(labels)
            expected = plan(labels, estimator, client=client)
        if not args.quiet:
            print(f"plan: {expected}", flush=True)
        with clock.phase("fit"):
            fit(estimator, labels, client=client)
        with clock.phase("write"):
            counts = write_labels(output, estimator.labels_, client=client)
    return Done(estimator.reduction_.ensemble, [int(size) for size in counts])


def _record_of(args: argparse.Namespace, estimator: Any, done: Done) -> dict[str, Any]:
    """Return what the record says of a run beside where it ran and what it took."""
    ensemble, columns = done.ensemble, _columns(done.ensemble)
    n_rows = "n_core_groups" if _is_exact(estimator) else "n_rows"
    return {
        "method": args.method,
        "parameters": estimator.get_params(),
        "input": args.labels,
        **({"features": args.features, "n_neighbors": estimator.n_neighbors_} if args.features else {}),
        "n_objects": sum(done.sizes),
        **({"n_unlabelled": done.n_unlabelled} if done.n_unlabelled else {}),
        "n_clusterings": ensemble.n_clusterings,
        **({"columns": columns} if columns else {}),
        "n_base_clusters": ensemble.n_clusters,
        n_rows: estimator.reduction_.n_representatives,
        "n_clusters": estimator.n_clusters_,
        "cluster_sizes": done.sizes,
        **({"work": vars(estimator.work_)} if hasattr(estimator, "work_") else {}),
    }


def _print_summary(args: argparse.Namespace, estimator: Any, done: Done) -> None:
    ensemble, sizes, columns = done.ensemble, done.sizes, _columns(done.ensemble)
    print(
        f"{args.labels}: {sum(sizes):,} objects, {ensemble.n_clusterings} clusterings with {ensemble.n_clusters:,} "
        f"clusters, {estimator.reduction_.n_representatives:,} "
        f"{'distinct label rows' if _is_exact(estimator) else 'rows clustered'}"
    )
    if columns:
        print(f"columns: {', '.join(columns[:20])}{' …' * (len(columns) > 20)}")
    if done.n_unlabelled:
        print(f"unlabelled: {done.n_unlabelled:,} objects, left out and -1 in the output")
    largest = ", ".join(f"{size:,}" for size in sorted(sizes, reverse=True)[:8]) + " …" * (len(sizes) > 8)
    print(f"{type(estimator).__name__}: {estimator.n_clusters_} clusters, of {largest} objects")


def _columns(ensemble: Any) -> list[str]:
    return [name for name in ensemble.names if isinstance(name, str)]


def _is_exact(estimator: Any) -> bool:
    return estimator.reduction in (None, "core-groups")


def _with_unlabelled(labels: Any, labelled: Any) -> Any:
    """Return the labels of all objects of a file, -1 for those that were left out as unlabelled."""
    import numpy as np

    if labelled is None:
        return labels
    found = np.full(len(labelled), -1)
    found[labelled] = labels
    return found


def _estimator(args: argparse.Namespace) -> Any:
    """Return the estimator that the options describe, or refuse them before any work."""
    kind = _class_of(args)
    estimator = kind(args.n_clusters, **_parameters(args, kind))
    _check_features(args, estimator)
    if args.n_clusters is None and not estimator.chooses_n_clusters:
        raise ValueError(
            f"n_clusters is needed: method {args.method!r} has no rule to choose it; say how many with -k."
        )
    estimator._checked()
    return estimator


def _class_of(args: argparse.Namespace) -> Any:
    """Return the class of the method, `gpuens.Consensus` for a similarity and a partitioner."""
    if args.of_method.keys() & {"--similarity", "--partitioner"}:
        from gpuens.methods.base import Consensus

        if args.method is not None:
            raise ValueError(
                f"--method={args.method} has a similarity and a partitioner of its own; give --method, or --similarity "
                "and --partitioner."
            )
        args.method = "consensus"
        return Consensus
    from gpuens.methods import REGISTRY

    args.method = args.method or "lwea"
    return REGISTRY.load(args.method)


def _parameters(args: argparse.Namespace, kind: Any) -> dict[str, Any]:
    """Return the method's parameters that the options set; refuse options of other methods."""
    from gpuens import checks

    own = flags(kind)
    given = {"--seed": args.seed, "--reduce": args.reduce, "--device": args.device}
    given = {flag: value for flag, value in given.items() if value is not None}
    if "--seed" not in own:  # a method without randomness takes any valid seed
        checks.make_generator(given.pop("--seed", None))
    for flag in (*given, *args.of_method):
        if flag not in own:
            has = [*own, *["--features"] * kind().needs_features]
            raise ValueError(f"{flag} is no option of method {args.method!r}, which has {', '.join(has)}.")
    given |= {flag: own[flag].read(text or "", flag) for flag, text in args.of_method.items()}
    return {own[flag].name: value for flag, value in given.items()}


def _check_features(args: argparse.Namespace, estimator: Any) -> None:
    """Refuse missing and superfluous features, and features for labels in chunks."""
    if args.features is not None and not estimator.needs_features:
        raise ValueError(
            f"--features is no option of method {args.method!r}, which uses the labels alone; leave it out."
        )
    if estimator.needs_features and args.features is None:
        raise ValueError(
            f"--features is needed: method {args.method!r} finds the neighbours of objects in them; name a file."
        )
    if estimator.needs_features and args.scheduler is not None:
        raise ValueError(
            f"--scheduler={args.scheduler} is for labels in chunks, but method {args.method!r} finds neighbours among "
            "all objects; leave it out."
        )


def _default_output(labels: str, method: str, kinds: tuple[str, ...]) -> str:
    """Return the default output: s.csv → s.csv.lwea.npy, which differs from that of s.tsv."""
    from gpuens.checks import file_kind

    file_kind(labels, kinds)
    return f"{labels.rstrip(os.sep)}.{method}.npy"


def _check_report(output: str, method: str, estimator: Any) -> None:
    """Refuse reports that cannot be drawn or written, before the work."""
    from importlib.util import find_spec

    from gpuens import plotting, report
    from gpuens.io import atomic

    if not report.has_pictures(estimator):
        raise ValueError(
            f"--report draws dendrograms and correspondences, and method {method!r} has neither; leave --report out."
        )
    if find_spec("matplotlib") is None:
        raise plotting.no_matplotlib()
    atomic.check_folder(f"{output}.report", "report")


def _sizes(labels: Any) -> list[int]:
    import numpy as np

    from gpuens.device import to_host

    sizes: list[int] = np.bincount(to_host(labels)).tolist()
    return sizes
