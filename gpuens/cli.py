"""The command line: ``gpuens run``, ``generate``, ``score``, ``info`` and ``demo``.

Results go to stdout, everything else to stderr, one line each. The exit code is 0; 2 for a command or an input that is
refused; 1 for work that failed; 130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP. Modules that take long to
import are imported by the commands.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from gpuens import __version__

REFUSED = (ValueError, TypeError, ImportError, FileNotFoundError, IsADirectoryError, NotADirectoryError)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas between them, not {text!r}") from None


# options of `gpuens run` for the parameters of methods: option, parameter, type, what it means
METHOD_OPTIONS: list[tuple[str, str, Callable[[str], Any], str]] = [
    (
        "--theta",
        "theta",
        float,
        "how mildly uncertainty is punished (lwea, lwgp), or when objects are neighbours (CCE)",
    ),
    ("--n-neighbors", "n_neighbors", int, "neighbours in the features that have a say (ecrmc)"),
    ("--mu", "mu", float, "share of coupled similarity, the rest being common neighbours"),
    ("--weights", "weights", _numbers, "what the clusterings count for: numbers with commas"),
    (
        "--alpha",
        "alpha",
        float,
        "what it is worth that few own clusters correspond to each one of the consensus (scec)",
    ),
    ("--beta", "beta", float, "what it is worth that correspondences of an own cluster sum to 1 (scec)"),
    ("--init", "init", str, "where starts begin: kmeans, clustering or random (scec)"),
    ("--tol", "tol", float, "end when no membership changes by more than this (scec)"),
    ("--linkage", "linkage", str, "average, single or complete"),
    ("--distance-threshold", "distance_threshold", float, "cut at this distance (1 - similarity), instead of -k"),
    ("--n-init", "n_init", int, "starts: of a final k-means, or of scec"),
    ("--max-iter", "max_iter", int, "iterations of each start at most"),
    ("--imbalance", "imbalance", float, "by how much of the average METIS may make a part heavier"),
    ("--seed", "random_state", int, "seed of what is drawn at random (any method takes it)"),
    ("--reduce", "reduction", str, "work on fewer rows: sample:5000, catree:tau=0.2,gamma=0.9, …"),
    ("--device", "device", str, "where to work: auto, cpu or cuda"),
]


READING = ("exclude", "id_column", "missing", "sep", "header")  # options of the parameters of `io.read_labels`


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line after the name of the program; that of the process without it, which then also stops in order
        when a signal tells it to.

    Examples
    --------
    >>> main(["run", "labels.npy", "-k", "0", "-o", "consensus.txt"])
    2
    """
    if argv is None:
        with _orderly_stops():
            return main(sys.argv[1:])
    argv = list(argv)
    with contextlib.suppress(AttributeError):  # a terminal that cannot show every letter still gets the rest
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        args = _parser().parse_args(argv)
        args.argv = ["gpuens", *argv]
        with _one_line_warnings(), _progress_bars(not args.quiet):
            args.command(args)
            sys.stdout.flush()
        return 0
    except BrokenPipeError:  # whoever reads our output has seen enough: `gpuens info | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in argv:
            traceback.print_exception(error)
        _complain(_sentence(error))
        if isinstance(error, KeyboardInterrupt):
            return 128 + _signal_of(error)
        return 2 if isinstance(error, REFUSED) else 1


# --- signals ----------------------------------------------------------------------------------------------------------


class _Stopped(KeyboardInterrupt):
    """A signal that told the process to end: everything on the way out treats it as Ctrl-C."""


def _signal_of(error: KeyboardInterrupt) -> signal.Signals:
    return error.args[0] if isinstance(error, _Stopped) else signal.SIGINT


@contextlib.contextmanager
def _orderly_stops() -> Iterator[None]:
    """Let the signals that end a process end its work first, once: the second one ends the process where it is.

    Signals that are ignored, as nohup and shells arrange it for work in the background, stay so.
    """
    ours = [
        number
        for number in signal.Signals
        if number.name in ("SIGINT", "SIGTERM", "SIGHUP")
        and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    ]

    def let_go() -> None:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)

    def stop(number: int, frame: Any) -> None:
        let_go()
        raise _Stopped(signal.Signals(number))

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        let_go()


# --- what can be said -------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that refuses in one sentence, like everything else here."""

    def error(self, message: str) -> NoReturn:
        message = message if len(message) <= 500 else f"{message[:250]} …"  # it quotes whatever was typed
        raise ValueError(f"{message.rstrip('.')}; see {self.prog} --help.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gpuens", description="Consensus clustering of millions of objects.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"gpuens {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    common = _Parser(add_help=False)
    common.add_argument("--quiet", action="store_true", help="no progress bars, and no summary of files written")
    common.add_argument("--debug", action="store_true", help="show where in the program an error came up")

    def command(name: str, function: Any, description: str, **more: Any) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=description, description=description, parents=[common], allow_abbrev=False, **more
        )
        sub.set_defaults(command=function)
        return sub

    run = command(
        "run",
        _run,
        "Find the consensus of the base clusterings in a file.",
        epilog="A record of the run is written beside the output: OUTPUT.json.",
    )
    run.add_argument("labels", metavar="LABELS", help="npy, npz, csv, tsv, parquet or h5ad file: a column a clustering")
    _add_selection(run)
    run.add_argument("-k", "--n-clusters", type=int, metavar="K", help="clusters wanted; linkage methods can choose")
    run.add_argument("--method", default="lwea", help="one of those that `gpuens info` lists (lwea)")
    _add_reading(run)
    run.add_argument(
        "--drop-unlabelled",
        action="store_true",
        help="leave out objects without any label; they are -1 in the output",
    )
    run.add_argument(
        "-o",
        "--output",
        help="npy, npz, csv, tsv, parquet, h5ad or zarr (beside the input: <LABELS>.<METHOD>.npy)",
    )
    run.add_argument(
        "--report",
        action="store_true",
        help="draw what there is to see, into OUTPUT.report: each clustering's correspondence (scec), the dendrogram "
        "(linkage methods)",
    )
    run.add_argument(
        "--features",
        metavar="FILE",
        help="features of the objects, as `generate` takes them, for ecrmc, which needs them",
    )
    run.add_argument(
        "--scheduler",
        metavar="WHERE",
        help="work in chunks on a Dask cluster: its address, local (--workers processes) or cuda (all GPUs here); "
        "threads: in chunks without a cluster. LABELS is then npy, zarr or parquet",
    )
    run.add_argument("--workers", type=int, metavar="N", help="processes of --scheduler local")
    run.add_argument("--chunk-rows", type=int, default=1_000_000, metavar="N", help="objects of a chunk (1,000,000)")
    for option, parameter, kind, meaning in METHOD_OPTIONS:
        run.add_argument(option, dest=parameter, type=kind, default=argparse.SUPPRESS, metavar="VALUE", help=meaning)

    make = command(
        "generate",
        _generate,
        "Make base clusterings: k-means on features, many times.",
        epilog="A record of the run is written beside the output: OUTPUT.json.",
    )
    make.add_argument("X", help="npy, npz, csv, tsv, parquet or h5ad file, or the name of a data set")
    _add_selection(make)
    _add_reading(make)
    make.add_argument("-o", "--output", required=True, help="npy, npz, csv, tsv, parquet, h5ad or zarr")
    make.add_argument("--n-clusterings", type=int, default=20, metavar="M", help="how many (20)")
    make.add_argument(
        "-k",
        "--n-clusters",
        type=_k,
        default=(2, "sqrt"),
        metavar="K",
        help="clusters of each: a number, sqrt (of the number of objects), or a range to draw from (2:sqrt)",
    )
    make.add_argument("--algorithm", default="auto", help="full, minibatch or auto (by the number of objects)")
    make.add_argument("--objects", type=_share, default=1.0, help="share (0.8) or number (500) of objects (1.0)")
    make.add_argument("--features", type=_share, default=1.0, help="share or number of features (1.0)")
    make.add_argument("--projection", type=int, metavar="D", help="dimensions of a random projection")
    make.add_argument("--n-init", type=int, default=1, help="starts of each k-means (1)")
    make.add_argument("--max-iter", type=int, default=100, help="iterations of each start (100)")
    make.add_argument("--init", default="k-means++", help="first centroids: k-means++ or random (k-means++)")
    make.add_argument("--seed", type=int, default=0, help="seed of everything that is drawn (0)")

    score = command("score", _score, "Compare the labels in one file with those in another.")
    score.add_argument("a", metavar="A", help="label file; of several columns each is compared with B")
    score.add_argument("b", metavar="B", help="label file with one column")
    for side in "ab":
        _add_selection(score, f"-{side}")
    _add_reading(score)
    score.add_argument("--json", action="store_true", help="for programs to read")

    info = command("info", _info, "Say what is installed, on what it runs, and which methods there are.")
    info.add_argument("--json", action="store_true", help="for programs to read")

    show = command("demo", _demo, "Show a consensus of real data: a table of scores and a picture.")
    show.add_argument("--data", default="digits", help="name of a data set, or a file with X and y (digits)")
    show.add_argument("--output-dir", default=".", metavar="DIR", help="where the picture goes (.)")
    show.add_argument("--seed", type=int, default=0, help="seed of the k-means (0)")
    return parser


def _add_selection(parser: argparse.ArgumentParser, suffix: str = "") -> None:
    """Add the options that say which part of a file to read."""
    whose = f" of {suffix[1:].upper()}" if suffix else ""
    parser.add_argument(
        f"--columns{suffix}",
        type=_listed,
        metavar="NAMES",
        help=f"columns{whose} to read: names, patterns such as 'leiden_*' or numbers from 0 on, with commas",
    )
    parser.add_argument(f"--key{suffix}", help=f"array of an npz file{whose}, or of an h5ad file with features")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read a file."""
    parser.add_argument("--exclude", type=_listed, metavar="NAMES", help="columns to leave out, as in --columns")
    parser.add_argument("--sep", type=_separator, help="what separates the fields of csv and tsv (told from the file)")
    first = parser.add_mutually_exclusive_group()
    first.add_argument("--header", action="store_true", default=None, help="the first line of csv and tsv holds names")
    first.add_argument("--no-header", dest="header", action="store_false", help="it does not (told from the file)")
    parser.add_argument(
        "--missing",
        type=_listed,
        metavar="WORDS",
        help="what stands for missing beside empty fields, with commas: '?,unknown'",
    )
    parser.add_argument("--id-column", metavar="NAME", help="the column that names the objects, for the output")


def _reading(args: argparse.Namespace, suffix: str = "") -> dict[str, Any]:
    """Return how to read a file, as `gpuens.io` calls it, with the columns that options with this suffix name."""
    found = {name: getattr(args, f"{name}{suffix}") for name in ("columns", "key")}
    return found | {name: getattr(args, name) for name in READING if hasattr(args, name)}


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _separator(text: str) -> str:
    """Read a separator, of which a shell can hardly be told some."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(text, text)


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


# --- the commands -----------------------------------------------------------------------------------------------------


def _run(args: argparse.Namespace) -> None:
    clock = _Clock()
    from gpuens import datasets, io, validation, writing

    if args.scheduler is None and args.labels.lower().endswith(".zarr"):
        args.scheduler = "threads"  # it is in chunks already
    validation.chunk_options(args.scheduler, args.workers, args.key)
    if args.scheduler is not None:
        _check_reading_in_chunks(args)
    kinds = io.IN_CHUNKS if args.scheduler else io.INPUTS
    _check_inputs(args.labels, kinds=kinds)
    from gpuens import device as devices
    from gpuens.methods import methods

    estimator = _estimator(args, methods())
    device = devices.resolve(estimator.device)
    output = _beside(args.labels, args.method, kinds) if args.output is None else args.output
    _check_output(output, args.labels, *([args.features] if args.features else []))
    if args.report:
        _check_report(output, args.method, type(estimator))
    n_unlabelled = 0
    with writing.recorded(output) as record:
        if args.scheduler is None:
            with clock.phase("read"):
                read = io.read_label_file(args.labels, drop_unlabelled=args.drop_unlabelled, **_reading(args))
                ensemble = read.ensemble
                features = {} if args.features is None else {"X": datasets.load(args.features).X}
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
        record |= _facts(
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
        writing.write_record(output, {**record, "report": drawn, **clock.spent()})
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
        _say_written(clock, output, " (beside the input, as there is no -o)" if args.output is None else "")


def _run_in_chunks(args: argparse.Namespace, estimator: Any, output: str, clock: "_Clock") -> tuple[Any, list[int]]:
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


def _estimator(args: argparse.Namespace, methods: dict[str, Any]) -> Any:
    """Return the estimator that the options describe, or refuse them, before anything takes long."""
    from gpuens import validation

    kind = methods[validation.choice(args.method, "method", sorted(methods))]
    validation.features_option(args.features, args.scheduler, args.method, takes=kind._takes_features)
    given = {parameter: getattr(args, parameter) for _, parameter, _, _ in METHOD_OPTIONS if parameter in args}
    if "random_state" not in kind._get_param_names():  # such a method draws nothing: any seed gives the same
        validation.generator(given.pop("random_state", None))
    validation.command_options(
        [option for option, parameter, _, _ in METHOD_OPTIONS if parameter in given],
        args.method,
        _options_of(kind),
    )
    validation.n_clusters_or_rule(args.n_clusters, args.method, has_rule=kind._chooses_n_clusters)
    estimator = kind(args.n_clusters, **given)
    estimator._checked()
    return estimator


def _options_of(kind: Any) -> list[str]:
    has = kind._get_param_names()
    features = ["--features"] if kind._takes_features else []
    return ["-k", *features, *(option for option, parameter, _, _ in METHOD_OPTIONS if parameter in has)]


def _generate(args: argparse.Namespace) -> None:
    clock = _Clock()
    import numpy as np

    from gpuens import datasets, generate, io, writing

    _check_output(args.output, args.X)
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
        chosen = {name: value for name, value in _reading(args).items() if value is not None}
        X = io.read_features(args.X, **chosen) if chosen else datasets.load(args.X).X
        named = {name: chosen[name] for name in ("id_column", "sep", "header") if name in chosen}
        ids = io.read_ids(args.X, **named) if args.X.lower().endswith(io.INPUTS) else None
    with clock.phase("cluster"):
        ensemble = generate.kmeans_ensemble(X, **parameters)
    ks = np.diff(ensemble.offsets).tolist()
    with writing.recorded(args.output) as record:
        with clock.phase("write"):
            io.write_labels(args.output, ensemble, ids=ids)
        record |= _facts(
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
        _say_written(clock, args.output)


def _score(args: argparse.Namespace) -> None:
    import numpy as np

    from gpuens import io, validation

    _check_inputs(args.a, args.b, kinds=io.INPUTS)
    from gpuens import metrics

    a = io.read_columns(args.a, **_reading(args, "_a"))
    b = io.read_columns(args.b, **_reading(args, "_b"))
    validation.one_column(len(b), args.b)
    (truth,) = b.values()
    rows = [metrics.scores(column, truth) for column in a.values()]
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    if args.json:
        each = [{"name": str(name), **row} for name, row in zip(a, rows, strict=True)]
        _print_json(mean if len(rows) == 1 else {**mean, "columns": each})
        return
    named = [(str(name), row) for name, row in zip(a, rows, strict=True)] + [("mean", mean)]
    width = max(len(name) for name, _ in named) if len(rows) > 1 else 0
    print(" " * width + "".join(f"{name:>10}" for name in mean))
    for name, row in named if len(rows) > 1 else [("", mean)]:
        print(f"{name:{width}}" + "".join(f"{value:10.4f}" for value in row.values()))


def _info(args: argparse.Namespace) -> None:
    import inspect

    from gpuens import device
    from gpuens.methods import methods
    from gpuens.validation import human_bytes

    facts = _surroundings()
    facts["devices"] = device.describe()
    facts["threads"] = device.n_threads()
    facts["memory"] = {"total": device.total_memory(), "budget": device.memory_budget()}
    facts["methods"] = {name: (inspect.getdoc(kind) or "").split("\n")[0] for name, kind in sorted(methods().items())}
    facts["extras"] = _extras()
    if args.json:
        _print_json(facts)
        return
    print(f"gpuens {facts['gpuens']}, Python {facts['python']}, {facts['platform']}")
    print(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    print(
        f"{facts['threads']} threads; {human_bytes(facts['memory']['total'])} of memory, of which a run may now take "
        f"{human_bytes(facts['memory']['budget'])}"
    )
    print("\ndevices")
    for found in facts["devices"]:
        print(f"  {found['device']:8}{found.get('name', 'the host')}, {human_bytes(found['memory'])}")
    print("\nmethods")
    for name, meaning in facts["methods"].items():
        print(f"  {name:8}{meaning}\n{'':10}{', '.join(_options_of(methods()[name]))}")
    print("\nextras (pip install 'gpuens[NAME]')")
    for name, packages in facts["extras"].items():
        print(f"  {name:14}" + ", ".join(f"{package} {version or '-'}" for package, version in packages.items()))


def _demo(args: argparse.Namespace) -> None:
    from gpuens.demo import demo

    demo(args.data, args.output_dir, seed=args.seed, say=lambda line: print(line, flush=True))


# --- files and records ------------------------------------------------------------------------------------------------


def _beside(labels: str, method: str, kinds: tuple[str, ...]) -> str:
    """Return where the consensus goes when nobody says: s.csv → s.csv.lwea.npy, which s.tsv does not go to."""
    from gpuens.validation import file_kind

    file_kind(labels, kinds)
    return f"{labels.rstrip(os.sep)}.{method}.npy"


def _check_inputs(*paths: str, kinds: tuple[str, ...]) -> None:
    """Refuse files that are not there, before anything that takes long to import."""
    from gpuens import validation

    for path in paths:
        validation.readable_path(path, folder=validation.file_kind(path, kinds) == ".zarr")


def _check_output(output: str, *sources: str) -> None:
    """Refuse places where the output or its record cannot be written, before the work."""
    from gpuens import io, validation, writing

    io.packages_for(validation.output_path(output, io.OUTPUTS, inputs=sources))
    validation.writable_path(writing.record_of(output), "record")


def _check_report(output: str, method: str, kind: type) -> None:
    """Refuse reports that cannot be drawn or written, before the work."""
    from importlib.util import find_spec

    from gpuens import report, validation

    validation.pictures_to_report(method, report.has_pictures(kind), find_spec("matplotlib") is not None)
    validation.folder_to_make(f"{output}.report", "report")


def _facts(args: argparse.Namespace, clock: "_Clock", **facts: Any) -> dict[str, Any]:
    """Return what a record says: what was done, how and with what."""
    return {"command": args.argv, **_surroundings(), **facts, **clock.spent()}


def _say_written(clock: "_Clock", output: str, where: str = "") -> None:
    from gpuens.validation import human_bytes

    spent = clock.seconds_so_far()
    peak = _peak_memory()
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in spent.items() if name != "total")
    print(f"written: {output}{where}, and {os.path.basename(output)}.json")
    print(f"seconds: {spent['total']:.1f} ({phases})" + (f"; peak memory {human_bytes(peak)}" if peak else ""))


class _Clock:
    """Seconds of each phase of a command, and of all of it, imports included."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._phases: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._phases[name] = round(time.perf_counter() - started, 3)

    def spent(self) -> dict[str, Any]:
        """Return what a record says of costs."""
        return {"seconds": self.seconds_so_far(), "peak_memory_bytes": _peak_memory()}

    def seconds_so_far(self) -> dict[str, float]:
        return {**self._phases, "total": round(time.perf_counter() - self._started, 3)}


def _counts(labels: Any) -> Any:
    import numpy as np

    from gpuens.device import to_host

    return np.bincount(to_host(labels))


def _peak_memory() -> int | None:
    """Return the largest resident size of this process so far in bytes, None where the system does not count it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _surroundings() -> dict[str, Any]:
    """Return the versions of gpuens, Python, the system and what gpuens depends on, without importing any of it."""
    import platform
    from importlib import metadata

    installed = {}
    for name, extra in _requirements():
        with contextlib.suppress(metadata.PackageNotFoundError):
            if extra is None or name.startswith("cupy"):
                installed[name] = metadata.version(name)
    return {
        "gpuens": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": installed,
    }


def _extras() -> dict[str, dict[str, str | None]]:
    """Return the packages of each optional extra that users want, and their versions; None: not installed."""
    from importlib import metadata

    found: dict[str, dict[str, str | None]] = {}
    for name, extra in _requirements():
        if extra not in (None, "dev") and name != "gpuens":
            packages = found.setdefault(str(extra), {})
            try:
                packages[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                packages[name] = None
    return found


def _requirements() -> list[tuple[str, str | None]]:
    """Return what gpuens requires: the names of packages, each with the extra that wants it or None."""
    import re
    from importlib import metadata

    try:
        lines = metadata.requires("gpuens") or []
    except metadata.PackageNotFoundError:  # a checkout that was not installed
        return []
    found = []
    for line in lines:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", line)
        if name:
            found.append((name[0], extra[1] if extra else None))
    return found


def _print_json(facts: Any) -> None:
    import json

    print(json.dumps(facts, indent=2, ensure_ascii=False))


# --- stderr -----------------------------------------------------------------------------------------------------------


def _complain(sentence: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # a terminal that has been closed
            print(f"gpuens: {sentence}", file=sys.stderr, flush=True)


def _sentence(error: BaseException) -> str:
    """Return what went wrong, on one line; errors that nobody foresaw say what they are."""
    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        number = _signal_of(error)
        how = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
        return f"{how}; no half-written file is left."
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return text or "out of memory; take fewer objects or clusterings, or a machine with more."
    if isinstance(error, (*REFUSED, OSError)) and text:
        return text
    return f"{type(error).__name__}: {text or 'no more is known'} (--debug shows where)."


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show each warning once, as one line without the source line that Python adds."""
    shown = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            _complain(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # what gpuens says on purpose
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _progress_bars(allowed: bool) -> Iterator[None]:
    """Leave progress bars to the terminal, or show none."""
    before = os.environ.get("GPUENS_PROGRESS")
    if not allowed:
        os.environ["GPUENS_PROGRESS"] = "0"
    try:
        yield
    finally:
        if not allowed:
            del os.environ["GPUENS_PROGRESS"]
            if before is not None:
                os.environ["GPUENS_PROGRESS"] = before
