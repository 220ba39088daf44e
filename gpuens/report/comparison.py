"""The page of a comparison of methods."""

from functools import partial
from typing import Any

from gpuens import plotting
from gpuens.report.page import Picture, Section, Table, render


def of_comparison(comparison: Any, title: str) -> bytes:
    """Return an HTML page, in one file, with the table and the pictures of a `gpuens.comparison.Comparison`."""
    shown = comparison.table.round(4).reset_index()
    table = Table("methods", shown.columns.tolist(), shown.astype(object).to_numpy().tolist())
    sections = [
        Section("The methods", [table]),
        Section("Their answers", pictures=[Picture("Agreement of the answers", partial(plotting.answers, comparison))]),
    ]
    if comparison.left_out:
        left_out = Table("left out", ("method", "why"), list(comparison.left_out.items()))
        sections.append(Section("Left out", [left_out]))
    lead = [f"{comparison.best} agrees best with the base clusterings."]
    if len(comparison.rows) > 1:
        lead = [f"{comparison.best} agrees best with the base clusterings, by {comparison.margin:.4f} (mean NMI)."]
    return render(title, lead, sections)
