"""``gpuens run``: the consensus of the base clusterings in a file."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from gpuens.cli.arguments import add_reading, add_selection, reading
from gpuens.cli.files import check_inputs, check_output, facts, say_written
from gpuens.cli.options import flags
from gpuens.record import Clock


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Say what the command takes."""
    parser = command(
        "run",
        run,
        "Find the consensus of the base clusterings in a file.",
        epilog="The options of each method, such as --theta, are told by `gpuens methods NAME`. A record of the run is "
        "written beside the output: OUTPUT.json.",
    )
    parser.add_argument(
        "labels", metavar="LABELS", help="npy, npz, csv, tsv, parquet or h5ad file: a column a clustering"
    )
    add_selection(parser)
    parser.add_argument("-k", "--n-clusters", type=int, metavar="K", help="clusters wanted; linkage methods can choose")
    parser.add_argument(
        "--method",
        help="one of those that `gpuens methods` lists (lwea); or any pair of --similarity and --partitioner, such as "
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
        help="draw what there is to see, into OUTPUT.report: each clustering's correspondence (scec), the dendrogram "
        "(linkage methods)",
    )
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="features of the objects, as `generate` takes them, for ecrmc, which needs them",
    )
    parser.add_argument(
        "--scheduler",
        metavar="WHERE",
        help="work in chunks on a Dask cluster: its address, local (--workers processes) or cuda (all GPUs here); "
        "threads: in chunks without a cluster. LABELS is then npy, zarr or parquet",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of --scheduler local")
    parser.add_argument("--chunk-rows", type=int, default=1_000_000, metavar="N", help="objects of a chunk (1,000,000)")
    parser.add_argument("--seed", type=int, help="seed of what is drawn at random (any method takes it)")
    parser.add_argument("--reduce", metavar="HOW", help="work on fewer rows: sample:5000, catree:tau=0.2,gamma=0.9, …")
    parser.add_argument("--device", help="where to work: auto, cpu or cuda (auto)")
    parser.set_defaults(of_method={})


def run(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens import datasets, io
    from gpuens.io import atomic

    if args.scheduler is None and args.labels.lower().endswith(".zarr"):
        args.scheduler = "threads"  # it is in chunks already
    if args.workers is not None and args.scheduler not in ("local", "cuda"):
        raise ValueError(
            f"--workers={args.workers} is for a cluster of this machine: add --scheduler local (or cuda), or leave it "
            "out."
        )
    if args.scheduler is not None:
        if args.key is not None:
            raise ValueError(f"--key={args.key} is for npz files, which are not read in chunks; leave --scheduler out.")
        _check_reading_in_chunks(args)
    kinds = io.IN_CHUNKS if args.scheduler else io.INPUTS
    check_inputs(args.labels, kinds=kinds)
    from gpuens import device as devices

    estimator = _estimator(args)
    device = devices.resolve(estimator.device)
    output = _beside(args.labels, args.method, kinds) if args.output is None else args.output
    check_output(output, args.labels, *([args.features] if args.features else []))
    if args.report:
        _check_report(output, args.method, estimator)
    n_unlabelled = 0
    with atomic.recorded(output) as record:
        if args.scheduler is None:
            with clock.phase("read"):
                read = io.read_label_file(args.labels, drop_unlabelled=args.drop_unlabelled, **reading(args))
                ensemble = read.ensemble
                features = {} if args.features is None else {"features": datasets.load(args.features).X}
            with clock.phase("fit"):
                estimator.fit(ensemble, **features)
            with clock.phase("write"):
                io.write_labels(output, _of_all(estimator.labels_, read.labelled), ids=read.ids)
            sizes = [int(size) for size in _counts(estimator.labels_)]
            n_unlabelled = 0 if read.labelled is None else len(read.labelled) - ensemble.n_objects
        else:
            ensemble, sizes = _run_in_chunks(args, estimator, output, clock)
        named = [name for name in ensemble.names if isinstance(name, str)]
        groups = estimator.reduction_.n_representatives
        exact = estimator.reduction in (None, "core-groups")
        record |= facts(
            args,
            clock,
            method=args.method,
            parameters=estimator.get_params(),
            device=device,
            input=args.labels,
            **({"features": args.features, "n_neighbors": estimator.n_neighbors_} if args.features else {}),
            output=output,
            n_objects=sum(sizes),
            **({"n_unlabelled": n_unlabelled} if n_unlabelled else {}),
            n_clusterings=ensemble.n_clusterings,
            **({"columns": named} if named else {}),
            n_base_clusters=ensemble.n_clusters,
            **{"n_core_groups" if exact else "n_rows": groups},
            n_clusters=estimator.n_clusters_,
            cluster_sizes=sizes,
            **({"work": vars(estimator.work_)} if hasattr(estimator, "work_") else {}),
        )
    drawn = []
    if args.report:
        from gpuens.report import write_report

        with clock.phase("report"):
            drawn = write_report(estimator, f"{output}.report")
        atomic.write_record(output, {**record, "report": drawn, **clock.spent()})
    if not args.quiet:
        largest = ", ".join(f"{size:,}" for size in sorted(sizes, reverse=True)[:8]) + (" …" if len(sizes) > 8 else "")
        print(
            f"{args.labels}: {sum(sizes):,} objects, {ensemble.n_clusterings} clusterings with "
            f"{ensemble.n_clusters:,} clusters, {groups:,} {'distinct label rows' if exact else 'rows worked on'}"
        )
        if named:
            print(f"columns: {', '.join(named[:20])}{' …' * (len(named) > 20)}")
        if n_unlabelled:
            print(f"unlabelled: {n_unlabelled:,} objects, left out and -1 in the output")
        print(f"{type(estimator).__name__}: {estimator.n_clusters_} clusters, of {largest} objects")
        if drawn:
            print(f"report: {len(drawn)} picture{'s' * (len(drawn) > 1)} in {output}.report")
        say_written(clock, output, " (beside the input, as there is no -o)" if args.output is None else "")


def _run_in_chunks(args: argparse.Namespace, estimator: Any, output: str, clock: Clock) -> tuple[Any, list[int]]:
    """Fit and write on a Dask cluster; return the core groups' ensemble and the sizes of the clusters."""
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
    return estimator.reduction_.ensemble, [int(size) for size in counts]


def _check_reading_in_chunks(args: argparse.Namespace) -> None:
    """Refuse options of reading that labels in chunks do not have."""
    for name in ("id_column", "drop_unlabelled", "sep", "header"):
        if getattr(args, name) not in (None, False):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for files that are read in one piece; leave it or --scheduler out.")


def _of_all(labels: Any, labelled: Any) -> Any:
    """Return the labels of all objects of a file, -1 where they were left out for want of any label."""
    import numpy as np

    if labelled is None:
        return labels
    found = np.full(len(labelled), -1)
    found[labelled] = labels
    return found


def _estimator(args: argparse.Namespace) -> Any:
    """Return the estimator that the options describe, or refuse them, before anything takes long."""
    from gpuens import checks
    from gpuens.methods import REGISTRY

    kind: Any
    if args.of_method.keys() & {"--similarity", "--partitioner"}:
        from gpuens.methods.base import Consensus as kind

        if args.method is not None:
            raise ValueError(
                f"--method={args.method} has a similarity and a partitioner of its own; give --method, or --similarity "
                "and --partitioner."
            )
        args.method = "consensus"
    else:
        args.method = args.method or "lwea"
        kind = REGISTRY.load(args.method)
    own = flags(kind)
    given = {"--seed": args.seed, "--reduce": args.reduce, "--device": args.device}
    given = {flag: value for flag, value in given.items() if value is not None}
    if "--seed" not in own:  # such a method draws nothing: any seed gives the same
        checks.make_generator(given.pop("--seed", None))
    for flag in (*given, *args.of_method):
        if flag not in own:
            has = [*own, *["--features"] * kind().needs_features]
            raise ValueError(f"{flag} is no option of method {args.method!r}, which has {', '.join(has)}.")
    given |= {flag: own[flag].read(text or "", flag) for flag, text in args.of_method.items()}
    estimator = kind(args.n_clusters, **{own[flag].name: value for flag, value in given.items()})
    if args.features is not None and not estimator.needs_features:
        raise ValueError(
            f"--features is no option of method {args.method!r}, which goes by the labels alone; leave it out."
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
    if args.n_clusters is None and not estimator.chooses_n_clusters:
        raise ValueError(
            f"n_clusters is needed: method {args.method!r} has no rule to choose it; say how many with -k."
        )
    estimator._checked()
    return estimator


def _beside(labels: str, method: str, kinds: tuple[str, ...]) -> str:
    """Return where the consensus goes when nobody says: s.csv → s.csv.lwea.npy, which s.tsv does not go to."""
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


def _counts(labels: Any) -> Any:
    import numpy as np

    from gpuens.device import to_host

    return np.bincount(to_host(labels))
