"""The report page about a comparison of methods."""

from functools import partial
from typing import Any

from gpuens import plotting
from gpuens.plotting.comparison import SCORES, draw_panels, size_of_panels
from gpuens.report.byline import byline
from gpuens.report.page import FRONT, Answer, Picture, Section, Table, render, side_of
from gpuens.workflows.comparison import MB, SCORES_OF_TRUTH, Row

LABEL_INCHES = 0.3  # height of the name of a score, which is the caption on the page
FEW_RUNS = 10  # number of runs below which the page says that small differences mean little
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
    *front, consensus = _pictures(comparison)
    sections = [
        Section("The methods", tables, [consensus], _note(comparison)),
        Section("Which agree?", pictures=[answers]),
    ]
    if comparison.left_out:
        left_out = Table("left out", ("method", "why"), list(comparison.left_out.items()))
        sections.append(Section("Left out", [left_out]))
    return render(title, Answer([_advice(comparison)], (), front, byline("Ranked by ANMI")), sections)


def _advice(comparison: Any) -> str:
    """Return the best method, the one nearest to the truth, and a caution if each method ran a few times."""
    rows, best = comparison.rows, comparison.best
    advice = f"{best} represents the clusterings best"
    if "ari" in rows[0]:
        nearest = max(rows, key=lambda row: row["ari"])["method"]
        advice += f", {'and' if nearest == best else nearest} is nearest to the truth"
    if len(rows) == 1 or comparison.n_runs >= FEW_RUNS:
        return f"{advice}."
    runs = f"With {comparison.varied}," if comparison.varied else "Each method ran once, so that"
    return f"{advice}. {runs} small differences mean little."


def _pictures(comparison: Any) -> list[Picture]:
    """Return a picture of each score, whose rows are the methods; that of the item consensus is the last."""
    scores = ["anmi", *(["ari"] if "ari" in comparison.rows[0] else []), "seconds", "item_consensus"]
    size = FRONT[0], size_of_panels(len(comparison.rows), 1)[1] - LABEL_INCHES
    draw = partial(draw_panels, comparison, labelled=False)
    return [Picture(_caption(score), partial(draw, [score]), size) for score in scores]


def _caption(score: str) -> str:
    words = " ".join(SCORES[score].split())
    return words[:1].upper() + words[1:]


def _note(comparison: Any) -> str:
    sentences = [*comparison.answer, *comparison.answer_by_truth]
    if comparison.varied:
        sentences.append(
            f"The numbers are means with one standard deviation (±) over {comparison.varied}; a method without it "
            "gives the same result each time. p is that of a paired t-test against the first method, by Holm for all."
        )
    return " ".join(sentences)


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
