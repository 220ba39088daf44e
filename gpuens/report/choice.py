"""The page of a choice of the number of clusters."""

from functools import partial
from typing import Any

from gpuens import plotting
from gpuens.plotting.levels import CRITERIA, criteria
from gpuens.report.page import Picture, Section, Table, render

SURE = (
    "C is the share of the clusterings that put two objects together. A number that suits the data has blocks without "
    "shades, and a CDF that is flat between two steps."
)


def of_choice(choice: Any, title: str) -> bytes:
    """Return an HTML page, in one file, with the table and the pictures of what `gpuens.choose_k` returns."""
    found = criteria(choice)
    drawn = [name for name in found if name in CRITERIA]
    pictures = [Picture(CRITERIA[name], partial(plotting.criterion, choice, name)) for name in drawn]
    where = [
        Picture("The objects at each number of clusters", partial(plotting.tracking, choice.labels)),
        Picture("How the clusters divide", partial(plotting.clustree, choice.labels)),
    ]
    sure = []
    if choice.consensus:
        sure = [
            Picture("Consensus of all pairs at each number of clusters", partial(plotting.cdf, choice)),
            Picture("Consensus matrices", lambda: plotting.consensus_matrices(choice)[0]),
        ]
    rows = [[row["k"], *(row[name] for name in found)] for row in choice.rows]
    reasons = Table("reasons", ("number of clusters", "why"), list(choice.reasons.items()))
    named = [(name.replace("_", " "), k) for name, k in choice.by_criterion.items()]
    single = Table("single criteria", ("criterion alone", "number of clusters"), named)
    columns = ("k", *(name.replace("_", " ") for name in found))
    return render(
        title, _answer(choice),
        [
            Section("Why?", [reasons, single], pictures),
            Section("How sure are the clusterings of each number?", pictures=sure, note=SURE),
            Section("Where the objects go", pictures=where),
            Section("All criteria", [Table("criteria", columns, rows)]),
        ],
    )  # fmt: skip


def _answer(choice: Any) -> list[str]:
    lead = [f"{choice.suggested} clusters are suggested.", f"The consensus of each number is that of {choice.method}."]
    if choice.suggested in choice.lopsided:
        lead.append(f"But {choice.lopsided[choice.suggested]}")
    if choice.structure is False:
        as_well = "reference data without clusters" if "p" in choice.rows[0] else "independent clusterings"
        lead.append(f"But there is no structure beyond chance: {as_well} might do as well.")
    if choice.doubt is not None:
        lead.append(f"The number is in doubt: {choice.doubt}.")
    if choice.runners_up:
        lead.append(f"Close to it: {', '.join(map(str, choice.runners_up))} clusters.")
    return lead
