"""``gpuens run``: find the consensus of the base clusterings in a file, or in several files."""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from gpuens.cli.arguments import add_matching, add_reading_of_labels, add_selection, reading_of_labels
from gpuens.cli.chunks import add_chunks, chunks_of
from gpuens.cli.files import (
    aligned,
    check_beside,
    check_inputs,
    check_model,
    check_output,
    check_page,
    clusterings_of,
    clusters_of,
    facts,
    first_numbers,
    labels_kept,
    print_written,
    write_page,
)
from gpuens.cli.neighbors import add_neighbors, neighbors_of
from gpuens.cli.options import flags, spelled
from gpuens.runtime.defaults import METHOD
from gpuens.runtime.options import Option
from gpuens.runtime.record import Clock
from gpuens.workflows.neighbors import GraphSettings, options_with_neighbors, potts_of
from gpuens.workflows.run import Done, Run, check

BESIDE = ("evidence", "membership")  # options that add columns of numbers to the labels in the output
OPTIONS = {"reduction": "--reduce", "scheduler": "--scheduler"}  # parameter -> option that sets it
ADVICE_OF_PYTHON = re.compile(r"reduction=(CATree\(…\) or )?Sample\(…\)")  # advice that errors give in Python
MOST_NAMES = 6  # maximum number of names in the printed table of agreement
MOST_ANNOTATORS = 20  # maximum number of annotators there


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``gpuens run`` and its options to the command line."""
    parser = command(
        "run",
        run,
        "Find the consensus of the base clusterings in a file, or in several files whose objects are joined by name.",
        epilog="Clusters are numbered by size: 0 is the largest. `gpuens methods NAME` explains the options of a "
        "method, such as --theta. OUTPUT.json is a record of the run.",
    )
    parser.add_argument(
        "labels",
        metavar="LABELS",
        nargs="+",
        help="npy, npz, parquet, feather, h5ad, zarr or text file (csv, tsv, txt, …): one column per clustering; "
        "several files are joined by the names of their objects, as by `gpuens join`",
    )
    add_selection(parser)
    parser.add_argument(
        "-k", "--n-clusters", type=int, metavar="K", help="number of clusters (the number that the labels suggest)"
    )
    parser.add_argument(
        "--method",
        help=f"a method, see `gpuens methods` ({METHOD}; qmi with neighbours); or give any --similarity and "
        "--partitioner, such as --similarity lwca:theta=0.2 --partitioner metis",
    )
    parser.add_argument(
        "--shared-names",
        action="store_true",
        help="the columns are answers of annotators or programs with names from one list: vote for the names, without "
        "matching clusters (--method voting --vocabulary shared; --ties unknown, first or error; --no-answer WORDS)",
    )
    add_reading_of_labels(parser)
    add_matching(parser)
    parser.add_argument(
        "--drop-unlabelled",
        action="store_true",
        help="leave out objects without any label; their label in the output is -1",
    )
    parser.add_argument(
        "-o",
        "--output",
        help="npy, npz, csv, tsv, parquet, h5ad or zarr file (default: <LABELS>.<METHOD> beside the input, of the same "
        "kind, but csv for h5ad, and npz for npy with --evidence or --membership); from h5ad to h5ad, the output is a "
        "copy with labels, certainty, confidence, margin and membership added",
    )
    parser.add_argument(
        "--weight-column",
        metavar="NAME",
        help="column of LABELS with positive weights of the objects, such as lengths; it is not a clustering",
    )
    parser.add_argument(
        "--evidence",
        action="store_true",
        help="write certainty, confidence and margin beside each label (csv, tsv, parquet or npz)",
    )
    parser.add_argument(
        "--membership",
        action="store_true",
        help="write the share of each object in each cluster beside its label, as membership_0, … (csv, tsv, parquet) "
        "or an array (npz); for scec, em, voting and others, see `gpuens methods NAME`",
    )
    parser.add_argument(
        "--min-confidence",
        type=float,
        metavar="P",
        help="least confidence of a label, from 0 to 1: other objects get -1, or Unknown among names",
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        help="write a model that labels new objects to an npz file, for `gpuens predict` and ge.load",
    )
    parser.add_argument(
        "--key-added",
        metavar="NAME",
        help="name of the labels in obs of a copy, from h5ad to h5ad (consensus)",
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="write a page: the clusters, their evidence and number, the least certain objects",
    )
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="features of the objects, for ecrmc and tome: a file or data set as for `generate`",
    )
    add_neighbors(parser)
    add_chunks(parser)
    parser.add_argument("--seed", type=int, help="random seed; methods without randomness ignore it")
    parser.add_argument("--reduce", metavar="HOW", help="work on fewer rows: sample:5000, catree:tau=0.2,gamma=0.9, …")
    parser.add_argument("--device", help="where to work: auto, cpu or cuda (auto)")
    parser.set_defaults(of_method={})


def run(args: argparse.Namespace) -> None:
    clock = Clock()
    from gpuens import io
    from gpuens.io import atomic
    from gpuens.io.paths import check_readable
    from gpuens.runtime import checks
    from gpuens.runtime import device as devices

    args.labels, *others = args.labels
    neighbors = neighbors_of(args, others)
    _share_names(args)
    for option in ("scheduler", "shared_names", "weight_column"):
        if others and getattr(args, option):
            raise ValueError(
                f"--{option.replace('_', '-')} is for one file; join the files first (gpuens join), or leave it out."
            )
    apart = (*BESIDE, "min_confidence", "shared_names", "weight_column")
    chunks = chunks_of(args, args.labels, *apart) if not others and neighbors is None else None
    kinds = None if chunks is None else io.IN_CHUNKS
    check_inputs(args.labels, *others, kinds=kinds)
    beside = [args.features] if args.features else []
    if neighbors is not None:
        files = neighbors.files(args.labels)
        check_inputs(*(path for name, path in files.items() if name != "graph"))
        beside += files.values()
        for path in beside:
            check_readable(path)
    estimator = _estimator(args, neighbors)
    if args.min_confidence is not None:
        checks.check_between(args.min_confidence, "--min-confidence", 0, 1)
    device = devices.resolve(estimator.device)
    output = args.output
    if output is None:
        output = _default_output(args, others, neighbors, in_chunks=chunks is not None)
    key_added = _key_added(args, others, output)
    for name in BESIDE:
        if getattr(args, name) and key_added is None:
            check_beside(f"--{name}", output)
    if args.membership and not estimator.gives_membership:
        raise ValueError(
            f"--membership needs a method with shares in clusters, but {args.method!r} has none; leave it out."
        )
    if args.weight_column is not None and (args.report or estimator.needs_features):
        who = "--report" if args.report else f"method {args.method!r}"
        raise ValueError(f"--weight-column is no option of {who}, where each object counts once; leave it out.")
    check_output(output, args.labels, *others, *beside)
    if args.report:
        check_page(args.report, args.labels, *others, *beside)
    if args.model is not None and estimator.gives_names:
        raise ValueError("--model is of no use with shared names, as votes need no model; run the new objects.")
    if args.model is not None:
        check_model(args.model, args.labels, *others, output, *beside)
    chosen = {name: value for name, value in reading_of_labels(args).items() if value is not None}
    chosen |= {"drop_unlabelled": True} if args.drop_unlabelled else {}
    one = Run(
        args.labels,
        args.method,
        estimator,
        output,
        chosen,
        args.features,
        chunks,
        args.evidence,
        args.membership,
        key_added,
        args.report is not None,
        args.min_confidence,
        args.weight_column,
        args.by_position,
        others,
        _as_option,
        neighbors,
    )
    about = {} if args.model is None else {"model": args.model}
    with atomic.recorded(output) as record:
        announce = (lambda line: None) if args.quiet else partial(print, flush=True)
        with options_in_advice():
            done = one.carry_out(clock, announce)
        record |= facts(args, clock, device=device, output=output, **about, **one.facts(done))
    if args.report:
        Path(args.report).unlink(missing_ok=True)  # the page of an earlier run describes other labels
    with labels_kept(output):
        if one.has_more:
            with atomic.recorded(output) as record:
                done = one.complete(done, clock)
                record |= facts(args, clock, device=device, output=output, **about, **one.facts(done))
        if args.model is not None:
            with clock.phase("model"):
                estimator.save(args.model)
        if args.report:
            from gpuens.report import of_fit

            with clock.phase("report"):
                write_page(args.report, lambda: of_fit(f"Consensus of {one.inputs}", estimator, record, done.ids))
            atomic.write_record(atomic.record_of(output), record | {"report": args.report, **clock.spent()})
    if not args.quiet:
        _print_summary(one, done)
        if args.report:
            print(f"report: {args.report}")
        if args.model is not None:
            print(f"model: {args.model}, for gpuens predict")
        print_written(clock, output, " (beside the input, as there is no -o)" if args.output is None else "")


def _as_option(setting: str, value: str) -> str:
    return f"{OPTIONS[setting]} {value}"


@contextmanager
def options_in_advice() -> Iterator[None]:
    """In the with block, name options in place of Python's arguments in errors about memory."""
    try:
        yield
    except MemoryError as error:
        error.args = tuple(ADVICE_OF_PYTHON.sub("--reduce sample:5000", str(text)) for text in error.args)
        raise


def _print_summary(one: Run, done: Done) -> None:
    from gpuens.runtime.checks import counted

    estimator, ensemble, sizes, columns = one.estimator, done.ensemble, done.sizes, one.columns(done)
    rows = counted(estimator.reduction_.n_representatives, "distinct label row" if one.is_exact else "clustered row")
    print(
        f"{one.inputs}: {counted(sum(sizes), 'object')}, {clusterings_of(ensemble)}"
        f"{f', {rows}' if done.graph is None else ''}"
    )
    if done.read is not None and done.read.form:
        print(f"read as: {done.read.form}")
    if columns:
        print(f"columns: {', '.join(columns[:20])}{' …' * (len(columns) > 20)}")
    if (title := getattr(done.ids, "name", None)) is not None:
        print(f"names: {str(title)!r}")
    if done.n_unlabelled:
        print(f"unlabelled: {counted(done.n_unlabelled, 'object')}, left out and -1 in the output")
    if estimator.gives_names:
        _print_votes(estimator, sizes)
    else:
        print(f"{type(estimator).__name__}: {clusters_of(sizes)}")
    if done.graph is not None:
        sizes_of_graph = f"{counted(done.graph.n_edges, 'edge')}, {counted(done.graph.n_components, 'component')}"
        print(f"neighbours: {sizes_of_graph}")
    if potts := potts_of(estimator):
        n_effective = f"{potts['effective_members']:.1f} of {counted(ensemble.n_clusterings, 'clustering')}"
        print(f"potts: {potts['potts']:.2f}; effective members: {n_effective}")
    if (suggestion := getattr(estimator, "suggestion_", None)) is not None:
        print(f"number of clusters: {suggestion.reason()}")
    if done.weights is not None:
        weights = one.cluster_weights(done)
        print(f"weights by {one.weight_column}: {sum(weights):,.10g}, in the clusters {first_numbers(weights)}")
    if done.n_doubtful is not None:
        print(
            f"doubtful: {counted(done.n_doubtful, 'object')} with confidence below "
            f"{one.min_confidence:g}, without a label"
        )
    if done.evidence:
        shown = {"certainty": done.evidence["certainty"], "agreement with the clusterings": done.evidence["anmi"]}
        print("evidence: " + ", ".join(f"{what} {value:.3f}" for what, value in shown.items() if value is not None))


def _print_votes(estimator: Any, sizes: list[int]) -> None:
    """Print the numbers of ties, and the share of each annotator's votes for each name that are the consensus."""
    import numpy as np

    from gpuens.runtime.checks import counted

    named = dict(zip(map(str, estimator.cluster_names_), sizes, strict=True))
    shown = [f"{name} {size:,}" for name, size in named.items()]
    print(
        f"{type(estimator).__name__}: {counted(estimator.n_clusters_, 'name')}: "
        f"{', '.join(shown[:8])}{' …' * (len(shown) > 8)}"
    )
    ruled = "the first clustering decides" if estimator.ties == "first" else "unknown"
    print(
        f"ties: {counted(estimator.n_ties_, 'object')} ({ruled}); without an answer: "
        f"{estimator.n_unanswered_:,} (unknown)"
    )
    found = estimator.agreement_
    order = sorted(range(len(found.classes)), key=lambda c: -named.get(str(found.classes[c]), 0))[:MOST_NAMES]
    shares = np.column_stack([found.overall, found.with_consensus[:, order]])
    head = ["agreement", "all", *(str(found.classes[c]) for c in order)]
    lines = [[str(name), *map(_share, row)] for name, row in zip(found.annotators, shares.tolist(), strict=True)]
    print(aligned([head, *lines[:MOST_ANNOTATORS]]))
    if len(lines) > MOST_ANNOTATORS:
        print(f"… and {len(lines) - MOST_ANNOTATORS} more")


def _share(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"


def _share_names(args: argparse.Namespace) -> None:
    """Turn the option --shared-names into the method and its option; raise an error for other methods."""
    if not args.shared_names:
        return
    if args.method not in (None, "voting") or args.of_method.keys() & {"--similarity", "--partitioner"}:
        raise ValueError("--shared-names is for --method voting, which is then the default; leave other methods out.")
    args.method, args.of_method = "voting", {**args.of_method, "--vocabulary": "shared"}
    if args.no_missing and "--no-answer" not in args.of_method:
        from gpuens.labels.vocabulary import NO_ANSWER

        names = {word.lower() for word in args.no_missing}
        args.of_method["--no-answer"] = ",".join(word for word in NO_ANSWER.split(",") if word not in names)


def _estimator(args: argparse.Namespace, neighbors: GraphSettings | None) -> Any:
    """Make the estimator that the options describe; raise an error for invalid options, before any work."""
    if neighbors is None:
        kind = _class_of(args)
        estimator = kind(args.n_clusters, **_parameters(args, flags(kind), kind().needs_features))
    else:
        from gpuens.methods import made_with_neighbors
        from gpuens.methods.spatial import METHOD as METHOD_OF_DOMAINS

        args.method = args.method or METHOD_OF_DOMAINS
        own = spelled(options_with_neighbors(args.method))
        estimator = made_with_neighbors(args.method, args.n_clusters, _parameters(args, own))
    of_input = {"features": args.features, "scheduler": args.scheduler, "neighbors": neighbors is not None}
    check(estimator, args.method, **of_input, spelled="--{}".format)
    return estimator


def _class_of(args: argparse.Namespace) -> Any:
    """Return the class of the method; it is `gpuens.Consensus` if --similarity or --partitioner is given."""
    if args.of_method.keys() & {"--similarity", "--partitioner"}:
        from gpuens.methods.combination import Consensus

        if args.method is not None:
            raise ValueError(
                f"--method={args.method} has a similarity and a partitioner of its own; give --method, or --similarity "
                "and --partitioner."
            )
        args.method = "consensus"
        return Consensus
    from gpuens.methods import REGISTRY

    args.method = args.method or METHOD
    return REGISTRY.load(args.method)


def _parameters(args: argparse.Namespace, own: Mapping[str, Option], needs_features: bool = False) -> dict[str, Any]:
    """Return the parameters of the method that options set; raise an error for options that the method lacks.

    ``own`` are its options. If it ``needs_features``, the error names their option, too.
    """
    from gpuens.runtime import checks

    given = {"--seed": args.seed, "--reduce": args.reduce, "--device": args.device}
    given = {flag: value for flag, value in given.items() if value is not None}
    if "--seed" not in own:  # a method without randomness ignores the seed, but the seed must be valid
        checks.make_generator(given.pop("--seed", None))
    for flag in (*given, *args.of_method):
        if flag not in own:
            has = [*own, *["--features"] * needs_features]
            raise ValueError(f"{flag} is no option of method {args.method!r}; its options are {', '.join(has)}.")
    given |= {flag: own[flag].read(text or "", flag) for flag, text in args.of_method.items()}
    return {own[flag].name: value for flag, value in given.items()}


def _default_output(
    args: argparse.Namespace, others: Sequence[str], neighbors: GraphSettings | None, *, in_chunks: bool
) -> str:
    """Return the default output file, such as s.csv.lwgp.csv for s.csv and method "lwgp".

    The name keeps the ending .csv, so that inputs s.csv and s.tsv have different outputs. With other files beside
    s.csv, the name is s.csv.joined.lwgp.csv; with neighbours, it is s.csv.neighbors.qmi.csv.
    """
    from gpuens.io.outputs import kind_like
    from gpuens.io.paths import without_slash

    numbers = any(getattr(args, name) for name in BESIDE)
    kind = kind_like(args.labels, in_chunks=in_chunks, numbers=numbers)
    how = f"{'.joined' if others else ''}{'' if neighbors is None else '.neighbors'}"
    return f"{without_slash(args.labels)}{how}.{args.method}{kind}"


def _key_added(args: argparse.Namespace, others: Sequence[str], output: str) -> str | None:
    """Return the name of the labels in the output if the one input and the output are h5ad files, otherwise None."""
    from gpuens.io.paths import ANNOTATED

    if not others and args.labels.lower().endswith(ANNOTATED) and output.lower().endswith(ANNOTATED):
        return "consensus" if args.key_added is None else args.key_added
    if args.key_added is not None:
        raise ValueError(
            f"--key-added={args.key_added} is a name for labels in an h5ad file; leave --key-added out, or let both "
            "input and output be h5ad files."
        )
    return None
