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
from gpuens.runtime.checks import gist, human_bytes


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
        help="run each method with N seeds, and show mean ± standard deviation of each score (1)",
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

        write_page(args.report, lambda: report.render_comparison(comparison, args.labels), print_path=not args.json)


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
    print(table(comparison.rows))
    if len(comparison.rows) > 1:
        print(f"best agreement: {comparison.best}, by {comparison.margin:.4f}")
    for name, why in comparison.left_out.items():
        print(f"left out: {name}: {why}")


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of a comparison as a text table, which has rounded numbers and units for people to read."""
    return aligned(_cells(rows))


def latex(rows: list[dict[str, Any]]) -> str:
    """Return the rows of a comparison as a tabular of LaTeX, which has the numbers of `table` and needs no package."""
    heads, *lines = [[cell.replace("_", r"\_").replace("±", r"$\pm$") for cell in line] for line in _cells(rows)]
    body = [" & ".join(line) + r" \\" for line in lines]
    head = [rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\hline", " & ".join(heads) + r" \\", r"\hline"]
    return "\n".join([*head, *body, r"\hline", r"\end{tabular}", ""])


def _cells(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return the head and the lines of the table of a comparison."""
    from gpuens.workflows.compare import SCORES

    def share(row: dict[str, Any], name: str) -> str:
        deviation = row.get(f"{name}_std")
        return "-" if row[name] is None else f"{row[name]:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")

    scores = [name for name in SCORES if name in rows[0]]
    heads = [SHORT.get(name, name) for name in scores]
    lines = []
    for row in rows:
        sizes = [f"{row[name]:,}" for name in ("n_clusters", "smallest", "largest")]
        memory = "-" if row["memory"] is None else human_bytes(row["memory"]) if row["memory"] >= MB else "< 1 MB"
        shares = [share(row, name) for name in scores]
        lines.append([row["method"], *shares, *sizes, human_seconds(row["seconds"]), memory])
    return [["", *heads, "clusters", "smallest", "largest", "time", "memory"], *lines]


def human_seconds(seconds: float) -> str:
    """Return a duration in seconds as a short text.

    >>> human_seconds(0.21), human_seconds(7.6), human_seconds(400), human_seconds(40_000)
    ('.2 s', '8 s', '7 min', '11 h')
    """
    if seconds < 1:
        return f"{max(seconds, 0.1):.1f} s".lstrip("0")
    for unit, length in (("s", 1.0), ("min", 60.0)):
        if seconds < 100 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 3600:.0f} h"


# number of bytes; less additional memory is shown as "< 1 MB", because allocation by the system is not exact
MB = 10**6

SHORT = {"item_consensus": "item", "silhouette": "silh."}  # heads of scores in the printed table
