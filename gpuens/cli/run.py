"""``gpuens run``: find the consensus of the base clusterings in a file, or in several files."""

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpuens import io
from gpuens.cli.arguments import (
    add_matching,
    add_reading_of_labels,
    add_selection,
    add_share_column,
    option_of,
    reading_of_labels,
)
from gpuens.cli.chunks import add_chunks, chunks_of
from gpuens.cli.file_consensus import FileConsensus, LabelSource, Output, RunResult, TreeSettings, check_input
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
    first_names,
    first_numbers,
    labels_kept,
    print_written,
    write_page,
)
from gpuens.cli.graph_settings import GraphSettings, options_with_neighbors
from gpuens.cli.neighbors import add_neighbors, neighbors_of
from gpuens.cli.options import flags, spelled
from gpuens.cli.page_inputs import add_names, describe_objects, names_of
from gpuens.io import atomic
from gpuens.io.outputs import kind_like
from gpuens.io.paths import ANNOTATED, check_readable, without_slash
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.name_tree import QUORUM
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.labels.vocabulary import NO_ANSWER
from gpuens.methods import REGISTRY, make_with_neighbors
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.checks import counted
from gpuens.runtime.defaults import METHOD, METHOD_WITH_LINKS
from gpuens.runtime.options import Option
from gpuens.runtime.record import Clock
from gpuens.workflows.results import potts_of, tree_sizes

BESIDE = ("evidence", "membership")  # options that add columns of numbers to the labels in the output
LINKS = ("must_link", "cannot_link")  # options that name files of links
OPTIONS = {"reduction": "--reduce", "scheduler": "--scheduler"}  # parameter -> option that sets it
ADVICE_OF_PYTHON = re.compile(r"reduction=(CATree\(…\) or )?Sample\(…\)")  # advice that errors give in Python
MOST_NAMES = 6  # maximum number of names in the printed table of agreement
BY_NAMES = ("voting", "em")  # methods of --shared-names, the default first
MOST_ANNOTATORS = 20  # maximum number of annotators there


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Clusters are numbered by size: 0 is the largest. `gpuens methods NAME` explains the options of a "
        "method, such as --theta. OUTPUT.json is a record of the run."
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
    _add_shared_names(parser)
    add_reading_of_labels(parser)
    add_share_column(parser)
    add_matching(parser)
    parser.add_argument(
        "--drop-unlabelled",
        action="store_true",
        help="leave out objects without any label; their label in the output is -1",
    )
    parser.add_argument(
        "--weight-column",
        metavar="NAME",
        help="column of LABELS with positive weights of the objects, such as lengths; it is not a clustering",
    )
    _add_links(parser)
    _add_outputs(parser)
    add_names(parser)
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="features of the objects, for ecrmc, tome and the page: a file or data set as for `generate`",
    )
    add_neighbors(parser)
    add_chunks(parser)
    parser.add_argument("--seed", type=int, help="random seed; methods without randomness ignore it")
    parser.add_argument("--reduce", metavar="HOW", help="work on fewer rows: sample:5000, catree:tau=0.2,gamma=0.9, …")
    parser.add_argument("--device", help="where to work: auto, cpu or cuda (auto)")
    parser.set_defaults(of_method={})


def _add_shared_names(parser: argparse.ArgumentParser) -> None:
    """Add the options of clusterings that take names from one list."""
    parser.add_argument(
        "--shared-names",
        action="store_true",
        help="the columns are answers of annotators or programs with names from one list: vote for the names, without "
        "matching clusters (--method voting; --ties unknown, first or error; --no-answer WORDS), or, by --method em, "
        "weigh the annotators by their skill (Dawid & Skene)",
    )
    parser.add_argument(
        "--tree",
        metavar="FILE",
        help="with --shared-names: a table of child and parent, such as an ontology; a vote also supports the wider "
        "names above it, and each object gets the deepest name with the --quorum",
    )
    parser.add_argument(
        "--quorum",
        type=float,
        metavar="P",
        help=f"least support of a name in the --tree, from 0.5 to 1; it must be more than half, too ({QUORUM:g})",
    )


def _add_links(parser: argparse.ArgumentParser) -> None:
    """Add the options of files with links of objects."""
    for link, relation in (("must", "must"), ("cannot", "must not")):
        parser.add_argument(
            f"--{link}-link",
            metavar="FILE",
            help=f"text with the names of two objects in each line, which {relation} be in one cluster; for eac, lwea "
            "(the default with links), weac and median",
        )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the files to write and their contents."""
    parser.add_argument(
        "-o",
        "--output",
        help="npy, npz, csv, tsv, parquet, h5ad or zarr file (default: <LABELS>.<METHOD> beside the input, of the same "
        "kind, but csv for h5ad, and npz for npy with --evidence or --membership); from h5ad to h5ad, the output is a "
        "copy with labels, certainty, confidence, margin and membership added",
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


def run(args: argparse.Namespace) -> None:
    clock = Clock()

    source = _source(args)
    estimator = _estimator(args, source.neighbors)
    if args.min_confidence is not None:
        checks.check_between(args.min_confidence, "--min-confidence", 0, 1)
    device = devices.resolve(estimator.device)
    output, tree = _output(args, source, estimator), _tree(args)
    consensus = FileConsensus(args.method, estimator, source, output, _as_option, tree)
    result = _find_and_write(args, consensus, clock, device)
    if not args.quiet:
        _print_summary(consensus, result)
        if args.report:
            print(f"report: {args.report}")
        if args.model is not None:
            print(f"model: {args.model}, for gpuens predict")
        path = consensus.output.path
        print_written(clock, path, " (beside the input, as there is no -o)" if args.output is None else "")


def _source(args: argparse.Namespace) -> LabelSource:
    """Return the files to read; raise an error, before any work, if they are missing or do not fit the options."""
    args.labels, *more_labels = args.labels
    neighbors = neighbors_of(args, more_labels)
    _apply_shared_names(args)
    links = {name: getattr(args, name) for name in LINKS if getattr(args, name) is not None}
    for option in ("scheduler", "shared_names", "weight_column", "share_column"):
        if more_labels and getattr(args, option):
            raise ValueError(
                f"{option_of(option)} is for one file; join the files first (gpuens join), or leave it out."
            )
    in_one_piece = (*BESIDE, *LINKS, "min_confidence", "shared_names", "weight_column")
    chunks = chunks_of(args, args.labels, *in_one_piece) if not more_labels and neighbors is None else None
    check_inputs(args.labels, *more_labels, kinds=None if chunks is None else io.IN_CHUNKS)
    reading = {name: value for name, value in reading_of_labels(args).items() if value is not None}
    reading |= {"drop_unlabelled": True} if args.drop_unlabelled else {}
    source = LabelSource(
        args.labels, more_labels, reading, args.features, args.by_position, args.weight_column, neighbors, chunks, links
    )
    for path in links.values():
        check_readable(path)
    if neighbors is not None:
        files = neighbors.files(args.labels)
        check_inputs(*(path for name, path in files.items() if name != "graph"))
        for path in source.beside:
            check_readable(path)
    return source


def _tree(args: argparse.Namespace) -> TreeSettings | None:
    """Return the tree of names, if there is one; raise an error, before any work, if it does not fit the options."""
    if args.tree is None:
        if args.quorum is not None:
            raise ValueError(f"--quorum={args.quorum:g} is for names in a tree; add --tree FILE, or leave it out.")
        return None
    if not args.shared_names:
        raise ValueError("--tree is for names from one list; add --shared-names, or leave it out.")
    if args.min_confidence is not None or args.report:
        option = "--report" if args.report else "--min-confidence"
        raise ValueError(
            f"{option} is for the names with most votes; leave it or --tree out (--quorum is the least support)."
        )
    check_inputs(args.tree)
    quorum = QUORUM if args.quorum is None else checks.check_between(args.quorum, "--quorum", QUORUM, 1)
    return TreeSettings(args.tree, quorum)


def _output(args: argparse.Namespace, source: LabelSource, estimator: Any) -> Output:
    """Return the file to write; raise an error, before any work, if it or the others cannot be written."""
    path = _default_output(args, source) if args.output is None else args.output
    key_added = _key_added(args, source.more_labels, path)
    for name in BESIDE:
        if getattr(args, name) and key_added is None:
            check_beside(f"--{name}", path)
    if args.membership and not estimator.parts().gives_membership:
        raise ValueError(
            f"--membership needs a method with shares in clusters, but {args.method!r} has none; leave it out."
        )
    if args.share_column is not None and SoftEnsemble not in estimator.further_forms:
        raise ValueError(f"--share-column is for methods that take shares (scec), not {args.method!r}; leave it out.")
    if args.weight_column is not None and (args.report or estimator.parts().needs_features):
        reader = "--report" if args.report else f"method {args.method!r}"
        raise ValueError(f"--weight-column is no option of {reader}, where each object counts once; leave it out.")
    inputs = [args.labels, *source.more_labels, *source.beside, *([args.tree] if args.tree else [])]
    check_output(path, *inputs)
    names_of(args)
    if args.report:
        check_page(args.report, *inputs)
    if args.model is not None:
        if estimator.parts().gives_names:
            raise ValueError("--model is of no use with shared names, as votes need no model; run the new objects.")
        check_model(args.model, path, *inputs)
    later = {"report": args.report is not None, "model": args.model is not None}
    return Output(path, args.evidence, args.membership, args.min_confidence, key_added, **later)


def _find_and_write(args: argparse.Namespace, consensus: FileConsensus, clock: Clock, device: str) -> RunResult:
    """Find the consensus; write the labels first, then what else is asked for."""
    output = consensus.output
    model = {} if args.model is None else {"model": args.model}

    def record_of(result: RunResult) -> dict[str, Any]:
        return facts(args, clock, device=device, output=output.path, **model, **consensus.facts(result))

    with atomic.recorded(output.path) as record:
        announce = (lambda line: None) if args.quiet else partial(print, flush=True)
        with options_in_advice():
            result = consensus.find(clock, announce)
        record |= record_of(result)
    if args.report:
        Path(args.report).unlink(missing_ok=True)  # the page of an earlier run describes other labels
    with labels_kept(output.path):
        if output.has_more:
            with atomic.recorded(output.path) as record:
                result = consensus.complete(result, clock)
                record |= record_of(result)
        if args.model is not None:
            with clock.phase("model"):
                consensus.estimator.save(args.model)
        if args.report:
            from gpuens.report import render_fit

            title = f"Consensus of {os.path.basename(str(consensus.source))}"
            with clock.phase("report"):
                beside = {"names": names_of(args), **describe_objects(consensus.source, result)}
                write_page(args.report, lambda: render_fit(title, consensus.estimator, record, result.ids, **beside))
            atomic.write_record(atomic.record_of(output.path), record | {"report": args.report, **clock.spent()})
    return result


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


def _print_summary(consensus: FileConsensus, result: RunResult) -> None:
    source, estimator, ensemble, columns = consensus.source, consensus.estimator, result.ensemble, result.columns
    row = "distinct label row" if consensus.is_exact else "clustered row"
    of_rows = result.graph is None and isinstance(ensemble, Ensemble)
    rows = f", {counted(estimator.reduction_.n_representatives, row)}" if of_rows else ""
    print(f"{source}: {counted(sum(result.sizes), 'object')}, {clusterings_of(ensemble)}{rows}")
    if result.file is not None and result.file.form:
        print(f"read as: {result.file.form}")
    if columns:
        print(f"columns: {first_names(columns)}")
    if (title := getattr(result.ids, "name", None)) is not None:
        print(f"names: {str(title)!r}")
    if result.n_unlabelled:
        print(f"unlabelled: {counted(result.n_unlabelled, 'object')}, left out and -1 in the output")
    if estimator.parts().gives_names:
        _print_votes(estimator, result.sizes)
        if result.in_tree is not None:
            sizes = tree_sizes(result.in_tree)
            print(f"in the tree: {counted(len(sizes), 'name')}: {_first_sizes(sizes)}")
    else:
        print(f"{type(estimator).__name__}: {clusters_of(result.sizes)}")
    if (graph := result.graph) is not None:
        print(f"neighbours: {counted(graph.n_edges, 'edge')}, {counted(graph.n_components, 'component')}")
    if potts := potts_of(estimator):
        n_effective = f"{potts['effective_members']:.1f} of {counted(ensemble.n_clusterings, 'clustering')}"
        print(f"potts: {potts['potts']:.2f}; effective members: {n_effective}")
    if (suggestion := getattr(estimator, "suggestion_", None)) is not None:
        print(f"number of clusters: {suggestion.reason()}")
    if result.weights is not None:
        weights = consensus.cluster_weights(result)
        print(f"weights by {source.weight_column}: {sum(weights):,.10g}, in the clusters {first_numbers(weights)}")
    if result.n_doubtful is not None:
        doubtful = f"{counted(result.n_doubtful, 'object')} with confidence below {consensus.output.min_confidence:g}"
        print(f"doubtful: {doubtful}, without a label")
    if result.evidence:
        means = {"certainty": result.evidence["certainty"], "agreement with the clusterings": result.evidence["anmi"]}
        print("evidence: " + ", ".join(f"{name} {value:.3f}" for name, value in means.items() if value is not None))


def _print_votes(estimator: Any, sizes: list[int]) -> None:
    """Print the names and their numbers of objects, and the skill of the annotators or their agreement."""
    size_of = dict(zip(map(str, estimator.cluster_names_), sizes, strict=True))
    print(f"{type(estimator).__name__}: {counted(estimator.n_clusters_, 'name')}: {_first_sizes(size_of)}")
    unanswered = f"without an answer: {estimator.n_unanswered_:,} (unknown)"
    if hasattr(estimator, "skills_"):
        print(unanswered)
        head, *lines = _table_of_skills(estimator.skills_)
    else:
        ruled = "the first clustering decides" if estimator.ties == "first" else "unknown"
        print(f"ties: {counted(estimator.n_ties_, 'object')} ({ruled}); {unanswered}")
        head, *lines = _table_of_agreement(estimator.agreement_, size_of)
    print(aligned([head, *lines[:MOST_ANNOTATORS]]))
    if len(lines) > MOST_ANNOTATORS:
        print(f"… and {len(lines) - MOST_ANNOTATORS} more")


def _first_sizes(size_of: Mapping[str, int]) -> str:
    """Return the first eight names and their numbers of objects as a text."""
    return ", ".join(f"{name} {size:,}" for name, size in list(size_of.items())[:8]) + " …" * (len(size_of) > 8)


def _table_of_agreement(agreement: Any, size_of: dict[str, int]) -> list[list[str]]:
    """Return the share of each annotator's votes for each name that are the consensus, the largest names first."""
    classes = list(map(str, agreement.classes))
    order = sorted(range(len(classes)), key=lambda c: -size_of.get(classes[c], 0))[:MOST_NAMES]
    shares = np.column_stack([agreement.overall, agreement.with_consensus[:, order]])
    names = map(str, agreement.annotators)
    lines = [[name, *map(_text_of_share, row)] for name, row in zip(names, shares.tolist(), strict=True)]
    return [["agreement", "all", *(classes[c] for c in order)], *lines]


def _table_of_skills(skills: Any) -> list[list[str]]:
    """Return the answers and the skill of each annotator with its interval, the most skilled first."""
    ordered = skills.sort_values("skill", ascending=False, kind="stable").reset_index().to_numpy().tolist()
    lines = [
        [str(name), f"{int(answers):,}", f"{skill:.2f}", f"{low:.2f} to {high:.2f}"]
        for name, answers, skill, low, high in ordered
    ]
    return [["annotator", "answers", "skill", "95 % interval"], *lines]


def _text_of_share(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"


def _apply_shared_names(args: argparse.Namespace) -> None:
    """Turn the option --shared-names into the method and its option; raise an error for other methods."""
    if not args.shared_names:
        return
    if args.method not in (None, *BY_NAMES) or args.of_method.keys() & {"--similarity", "--partitioner"}:
        raise ValueError(
            f"--shared-names is for --method {' or '.join(BY_NAMES)}; leave other methods out (voting is the default)."
        )
    args.method, args.of_method = args.method or BY_NAMES[0], {**args.of_method, "--vocabulary": "shared"}
    if args.no_missing and "--no-answer" not in args.of_method:
        names = {word.lower() for word in args.no_missing}
        args.of_method["--no-answer"] = ",".join(word for word in NO_ANSWER.split(",") if word not in names)


def _estimator(args: argparse.Namespace, neighbors: GraphSettings | None) -> Any:
    """Make the estimator that the options describe; raise an error for invalid options, before any work."""
    if neighbors is None:
        kind = _class_of(args)
        estimator = kind(args.n_clusters, **_parameters(args, flags(kind), kind().parts().needs_features))
    else:
        from gpuens.methods.spatial import METHOD as METHOD_OF_DOMAINS

        args.method = args.method or METHOD_OF_DOMAINS
        options = spelled(options_with_neighbors(args.method))
        estimator = make_with_neighbors(args.method, args.n_clusters, _parameters(args, options))
    of_page = args.report is not None and not estimator.parts().needs_features  # the page describes clusters by them
    features = None if of_page else args.features
    of_input = {"features": features, "scheduler": args.scheduler, "neighbors": neighbors is not None}
    check_input(estimator, args.method, **of_input, spelled=option_of)
    if args.must_link or args.cannot_link:
        estimator.checked_parts().refuse_links(type(estimator).__name__, graph=neighbors)
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

    args.method = args.method or (METHOD_WITH_LINKS if args.must_link or args.cannot_link else METHOD)
    return REGISTRY.load(args.method)


def _parameters(
    args: argparse.Namespace, options: Mapping[str, Option], needs_features: bool = False
) -> dict[str, Any]:
    """Return the parameters of the method that the command line sets; raise an error for options that it lacks.

    ``options`` are those of the method. If it ``needs_features``, the error names their option, too.
    """
    values = {"--seed": args.seed, "--reduce": args.reduce, "--device": args.device}
    values = {flag: value for flag, value in values.items() if value is not None}
    if "--seed" not in options:  # a method without randomness ignores the seed, but the seed must be valid
        checks.make_generator(values.pop("--seed", None))
    for flag in (*values, *args.of_method):
        if flag not in options:
            names = [*options, *["--features"] * needs_features]
            raise ValueError(f"{flag} is no option of method {args.method!r}; its options are {', '.join(names)}.")
    values |= {flag: options[flag].read(text or "", flag) for flag, text in args.of_method.items()}
    return {options[flag].name: value for flag, value in values.items()}


def _default_output(args: argparse.Namespace, source: LabelSource) -> str:
    """Return the default output file, such as s.csv.lwgp.csv for s.csv and method "lwgp".

    The name keeps the ending .csv, so that inputs s.csv and s.tsv have different outputs. With other files beside
    s.csv, the name is s.csv.joined.lwgp.csv; with neighbours, it is s.csv.neighbors.qmi.csv.
    """
    numbers = any(getattr(args, name) for name in BESIDE)
    kind = kind_like(args.labels, in_chunks=source.chunks is not None, numbers=numbers)
    how = f"{'.joined' if source.more_labels else ''}{'' if source.neighbors is None else '.neighbors'}"
    return f"{without_slash(args.labels)}{how}.{args.method}{kind}"


def _key_added(args: argparse.Namespace, more_labels: Sequence[str], output: str) -> str | None:
    """Return the name of the labels in the output if the one input and the output are h5ad files, otherwise None."""
    if not more_labels and args.labels.lower().endswith(ANNOTATED) and output.lower().endswith(ANNOTATED):
        return "consensus" if args.key_added is None else args.key_added
    if args.key_added is not None:
        raise ValueError(
            f"--key-added={args.key_added} is a name for labels in an h5ad file; leave --key-added out, or let both "
            "input and output be h5ad files."
        )
    return None
