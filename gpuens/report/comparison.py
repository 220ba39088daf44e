"""The report page about a comparison of methods."""

from functools import partial
from typing import Any

from gpuens import plotting
from gpuens.plotting.comparison import draw_panels, size_of_panels
from gpuens.report.page import Answer, Picture, Section, Table, render, side_of
from gpuens.workflows.comparison import MB, SCORES_OF_TRUTH, Row

HEADS = {
    "method": "method",
    "anmi": "ANMI",
    "ecs": "ECS",
    "item_consensus": "item consensus",
    "silhouette": "silhouette",
    "p": "p",
    "nmi": "NMI",
    "nmi_max": "NMI, by the larger entropy",
    "ari": "ARI",
    "accuracy": "accuracy",
    "n_clusters": "clusters",
    "smallest": "smallest",
    "largest": "largest",
    "seconds": "seconds",
    "memory": "MB of memory",
}


def render_comparison(comparison: Any, title: str) -> bytes:
    """Return an HTML page, in one file, with the table and the pictures of a result of `gpuens.compare`."""
    rows = comparison.rows
    by_truth = [name for name in SCORES_OF_TRUTH if name in rows[0]]
    tables = [_table("methods", rows, [name for name in HEADS if name in {*rows[0]} - {*by_truth}])]
    if by_truth:
        tables.append(_table("agreement with the truth", rows, ["method", *by_truth]))
    answers = Picture(
        "Agreement of the answers with each other (NMI)", partial(plotting.answers, comparison), side_of(len(rows))
    )
    sections = [Section("The methods", tables, note=_note(comparison)), Section("Which agree?", pictures=[answers])]
    if comparison.left_out:
        left_out = Table("left out", ("method", "why"), list(comparison.left_out.items()))
        sections.append(Section("Left out", [left_out]))
    paragraphs = [" ".join(sentences) for sentences in (comparison.answer, comparison.answer_by_truth) if sentences]
    return render(title, Answer(paragraphs, (), _pictures(comparison)), sections)


def _pictures(comparison: Any) -> list[Picture]:
    """Return two pictures of two scores each, so that a phone can show them; their rows are the methods."""
    if "ari" in comparison.rows[0]:
        captions = {
            "Agreement with the base clusterings, and with the truth": ["anmi", "ari"],
            "Item consensus of the objects, and time": ["item_consensus", "seconds"],
        }
    else:
        captions = {
            "Agreement with the base clusterings, and item consensus": ["anmi", "item_consensus"],
            "Time": ["seconds"],
        }
    n = len(comparison.rows)
    return [
        Picture(says, partial(draw_panels, comparison, scores), size_of_panels(n, len(scores)))
        for says, scores in captions.items()
    ]


def _note(comparison: Any) -> str:
    if not comparison.varied:
        return ""
    return (
        f"The numbers are means with one standard deviation (±) over {comparison.varied}; a method without it gives "
        "the same result each time. p is that of a paired t-test against the first method, by Holm for all."
    )


def _table(title: str, rows: list[Row], names: list[str]) -> Table:
    """Return a table of all methods, with a column "±" behind each score if methods were repeated."""
    columns = {}
    for name in names:
        columns[HEADS[name], name] = [row[name] for row in rows]
        if f"{name}_std" in rows[0]:
            columns["±", name] = [row[f"{name}_std"] for row in rows]
    if "memory" in names:
        megabytes = [None if row["memory"] is None else round(row["memory"] / MB) for row in rows]
        columns[HEADS["memory"], "memory"] = megabytes
    lines = list(zip(*columns.values(), strict=True))
    return Table(title, [head for head, _ in columns], lines, n_shown=len(rows))
