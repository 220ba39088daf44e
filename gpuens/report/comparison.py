"""The report page about a comparison of methods."""

from functools import partial
from typing import Any

from gpuens import plotting
from gpuens.report.front import bars
from gpuens.report.page import Answer, Picture, Section, Table, render, side_of

MOST_BARS = 20  # maximum number of methods in a picture; if there are more, the best are drawn
PICTURES = {
    "anmi": "Agreement with the base clusterings (ANMI)",
    "item_consensus": "Mean item consensus of the objects",
    "seconds": "Seconds that each took",
}


def render_comparison(comparison: Any, title: str) -> bytes:
    """Return an HTML page, in one file, with the table and the pictures of a result of `gpuens.compare`."""
    cells = comparison.table.round(4).reset_index()
    table = Table("methods", cells.columns.tolist(), cells.astype(object).to_numpy().tolist())
    answers = Picture(
        "Agreement of the answers with each other (NMI)",
        partial(plotting.answers, comparison),
        side_of(len(comparison.rows)),
    )
    sections = [Section("The methods", [table], [answers])]
    if comparison.left_out:
        left_out = Table("left out", ("method", "why"), list(comparison.left_out.items()))
        sections.append(Section("Left out", [left_out]))
    pictures = [Picture(says, partial(bars, *_numbers(comparison, name))) for name, says in PICTURES.items()]
    return render(title, Answer(comparison.answer, (), pictures), sections)


def _numbers(comparison: Any, name: str) -> tuple[list[str], list[float]]:
    """Return the names of the methods to draw, and for each method the number to draw; a missing number becomes 0."""
    rows = comparison.rows[:MOST_BARS]
    return [row["method"] for row in rows], [row[name] or 0.0 for row in rows]
