"""``gpuens compare``: run many methods on the same base clusterings, and compare their results, time and memory."""

import argparse
import os
from typing import Any

from gpuens import io
from gpuens.cli.arguments import (
    add_matching,
    add_reading_of_labels,
    add_selection,
    add_shared,
    reading,
    reading_of_labels,
)
from gpuens.cli.features import read_features
from gpuens.cli.files import (
    aligned,
    check_inputs,
    check_page,
    one_column,
    without_index,
    write_page,
)
from gpuens.cli.process import print_json
from gpuens.io import INPUTS, atomic
from gpuens.io.outputs import check_output
from gpuens.io.shapes import label_shape
from gpuens.runtime import failures
from gpuens.runtime.checks import counted, gist
from gpuens.workflows.comparison import cells


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "anmi and ecs measure the agreement with the base clusterings, from 0 to 1; item and silhouette say how "
        "certain the clusters of the objects are. The best anmi comes first."
    )
    add_shared(parser, "labels")
    add_selection(parser)
    parser.add_argument("-k", "--n-clusters", type=int, required=True, metavar="K", help="number of clusters")
    parser.add_argument(
        "--methods",
        default="all",
        metavar="NAMES",
        help="all, fast (methods that also work in chunks), or names separated by commas (all)",
    )
    parser.add_argument(
        "--truth",
        metavar="WHERE",
        help="known classes, for scores: a column of LABELS, a label FILE with one column, or FILE:COLUMN; objects "
        "are matched by name, and objects that FILE lacks are left out of the scores",
    )
    parser.add_argument("--features", metavar="FILE", help="features of the objects, for the methods that need them")
    parser.add_argument(
        "--max-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="leave out methods that take longer (60); 0: leave out none",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="run each method with N seeds; show mean ± standard deviation of each score, and test the best method "
        "against each other (1)",
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        metavar="S",
        help="draw this share of the base clusterings for each of the N runs, the same for all methods; then means and "
        "tests say what other base clusterings would change, also for methods without randomness (1: only seeds vary)",
    )
    add_reading_of_labels(parser)
    add_matching(parser)
    parser.add_argument(
        "-o", "--output", metavar="TABLE", help="write the table to a csv file or, for LaTeX, a tex file"
    )
    add_shared(parser, "seed", "device")
    parser.add_argument("--report", metavar="FILE.html", help="write a page with the table and pictures")
    add_shared(parser, "json")


def compare(args: argparse.Namespace) -> None:
    truth_file, truth_column = (None, None) if args.truth is None else _file_and_column(args.truth)
    check_inputs(args.labels, *([] if truth_file is None else [truth_file]))
    inputs = [args.labels, *(path for path in (truth_file, args.features) if path is not None)]
    if args.report is not None:
        check_page(args.report, *inputs)
    if args.output is not None:
        check_output(args.output, (".csv", ".tex"), inputs=inputs)
    from gpuens.workflows import compare as comparing

    with failures.stage("read", f"reading {args.labels}"):
        ensemble, features, truth = _read_data(args, truth_file, truth_column)
    with failures.stage("compare", "comparing methods"):
        comparison = comparing.compare(
            ensemble,
            args.n_clusters,
            methods=args.methods,
            truth=truth,
            features=features,
            max_seconds=args.max_seconds or None,
            repeat=args.repeat,
            share=args.share,
            random_state=args.seed,
            device=args.device,
        )
    if args.json:
        print_json({"input": args.labels, "n_clusters": args.n_clusters, **comparison.to_dict()})
    else:
        _print_comparison(comparison)
    if args.output is not None:
        with atomic.replacing(args.output) as file:
            is_csv = args.output.lower().endswith(".csv")
            file.write((comparison.table.to_csv(lineterminator="\n") if is_csv else latex(comparison.rows)).encode())
        if not args.json:
            print(f"written: {args.output}")
    if args.report is not None:
        from gpuens import report

        title = f"{counted(len(comparison.rows), 'method')} compared on {os.path.basename(args.labels)}"
        write_page(args.report, lambda: report.render_comparison(comparison, title), print_path=not args.json)


def _read_data(args: argparse.Namespace, truth_file: str | None, truth_column: str | None) -> tuple[Any, Any, Any]:
    """Return the ensemble, the features and the known classes of the objects; the last two may be None."""
    from gpuens.workflows.describe import refuse_to_group

    how = reading_of_labels(args)
    refuse_to_group(label_shape(args.labels, **how), "a comparison")
    truth: Any = None
    if truth_column is not None and truth_file is None:
        truth = _column_of(args.labels, truth_column, reading(args))
        how["exclude"] = [*(args.exclude or []), truth_column]
    read = io.read_label_file(args.labels, **how)
    if hasattr(truth, "iloc") and read.ensemble.index is not None:
        truth = truth.set_axis(read.ensemble.index)
    features = None
    if args.features is not None:
        features = read_features(args.features, args, beside=args.labels, ids=read.ids).X
    if truth_file is not None:
        # if --truth names a column, its file has the names of the objects in the same column as LABELS
        title = getattr(read.ids, "name", None) if args.id_column is None else args.id_column
        reading_of_truth: dict[str, Any] = {
            "columns": truth_column,
            "id_column": title if truth_column is not None else args.id_column,
            "by_position": args.by_position,
            "partial": True,
        }
        instead = "choose one by --truth FILE:COLUMN"
        truth = one_column(truth_file, instead, args.labels, read.ids, **reading_of_truth)
    return read.ensemble, features, truth


def _file_and_column(text: str) -> tuple[str | None, str | None]:
    """Split the value of ``--truth`` into a label file and a column.

    The file is None if the column is in LABELS. The column is None if the file has a single column.
    """
    if text.lower().endswith(INPUTS) or os.path.isfile(text):
        return text, None
    file, _, column = text.rpartition(":")
    is_file = file.lower().endswith(INPUTS) or os.path.isfile(file)
    return (file, column) if is_file and column else (None, text)


def _column_of(path: str, column: str, how: dict[str, Any]) -> Any:
    """Read the column of the label file LABELS that ``--truth`` names."""
    try:
        (values,) = io.read_columns(path, **(how | {"columns": column, "exclude": None})).values()
    except ValueError as error:
        raise ValueError(
            f"--truth={column} is neither a label file nor a single column of {path!r}; correct it ({gist(error)})."
        ) from error
    return without_index(values)


def _print_comparison(comparison: Any) -> None:
    print(aligned(cells(comparison.rows)))
    for sentence in comparison.answer + comparison.answer_by_truth:
        print(sentence)
    for name, why in comparison.left_out.items():
        print(f"left out: {name}: {why}")


def latex(rows: list[dict[str, Any]]) -> str:
    """Return the printed table of a comparison as a tabular of LaTeX with the rules of booktabs."""
    heads, *lines = [" & ".join(map(_escape, line)) + r" \\" for line in cells(rows)]
    columns = "r" * heads.count(" & ")
    begin = ["% needs \\usepackage{booktabs}", rf"\begin{{tabular}}{{l{columns}}}"]
    return "\n".join([*begin, r"\toprule", heads, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}", ""])


def _escape(cell: str) -> str:
    """Return a cell of the table as LaTeX; spaces in place of a deviation become a phantom, which aligns the points."""
    text = cell.rstrip()
    phantom = r"\phantom{ $\pm$ 0.000}" if text != cell else ""
    return "".join(LATEX.get(letter, letter) for letter in text) + phantom


LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"${letter}$" for letter in "<>|"},
    "±": r"$\pm$",
}
