"""The report page about a choice of the number of clusters."""

from functools import partial
from typing import Any

import numpy as np

from gpuens import plotting
from gpuens.plotting.choice import draw_matrix
from gpuens.plotting.levels import CRITERIA, criteria
from gpuens.report.byline import byline
from gpuens.report.front import picture_of_sizes
from gpuens.report.page import DETAIL, Answer, Picture, Section, Table, render

# criteria in the order of preference; the pictures of the first two available ones are at the beginning of the page
FRONT_CRITERIA = ("score", "silhouette", "corrected_pac", "lifetime")
MATRIX_SIZE = (1.75, 1.75)  # width and height, in inches, of a consensus matrix; five fit in a row, two on a phone
NEIGHBORS = 2  # numbers below and above the suggested one whose matrices are in its row
LEVEL_INCHES = 0.42  # height, in inches, of the row for each number of clusters in pictures that have such rows

CONSISTENT = (
    "C is the share of the clusterings that put two objects together. A number that suits the data has a CDF that is "
    "flat between two steps, and a matrix of objects whose blocks have no shades: dark where all clusterings put two "
    "objects together, pale where none does."
)


def render_choice(choice: Any, title: str) -> bytes:
    """Return an HTML page, in one file, with the table and the pictures of a result of `gpuens.choose_k`."""
    names = criteria(choice)
    pictures = {
        name: Picture(f"{says[:1].upper()}{says[1:]}", partial(plotting.criterion, choice, name))
        for name, says in CRITERIA.items()
    }
    front_names = [name for name in FRONT_CRITERIA if name in names][:2]
    pictures_below = [pictures[name] for name in names if name in CRITERIA and name not in front_names]
    tall = (DETAIL[0], max(DETAIL[1], 1.2 + LEVEL_INCHES * len(choice.labels)))
    where = [
        Picture(
            "The objects at each number of clusters",
            partial(plotting.tracking, choice.labels, reference=choice.suggested),
            tall,
        ),
        Picture("How the clusters divide", partial(plotting.clustree, choice.labels), tall),
    ]
    rows = [[row["k"], *(row[name] for name in names)] for row in choice.rows]
    named = [(name.replace("_", " "), k) for name, k in choice.by_criterion.items()]
    single = Table("single criteria", ("criterion alone", "number of clusters"), named)
    columns = ("number of clusters", *(name.replace("_", " ") for name in names))
    sizes = np.unique(choice.labels[choice.suggested], return_counts=True)[1]
    front = [pictures[name] for name in front_names] + [picture_of_sizes(sizes)]
    table = Table("criteria", columns, rows, n_shown=len(rows))
    sections = [
        Section("Other criteria", [single], pictures_below),
        *_sections_of_consensus(choice),
        Section("Where the objects go", pictures=where),
        Section("All criteria", [table], note="" if choice.doubt is None else _alternatives(choice)),
    ]
    answer = Answer(_answer(choice), _doubts(choice), front, byline(f"Consensus by {choice.method}"))
    return render(title, answer, sections)


def _sections_of_consensus(choice: Any) -> list[Section]:
    """Return a section with the matrices of the suggested number and its neighbours, and one with all further ones."""
    numbers = sorted(choice.consensus)
    if not numbers:
        return []
    middle = numbers.index(choice.suggested)
    row = numbers[max(0, middle - NEIGHBORS) : middle + NEIGHBORS + 1]
    pictures = {
        k: Picture(
            f"{k} clusters{', suggested' * (k == choice.suggested)}", partial(draw_matrix, choice, k), MATRIX_SIZE
        )
        for k in numbers
    }
    cdf = Picture("Consensus of all pairs of objects", partial(plotting.cdf, choice))
    in_row = [pictures.pop(k) for k in row]
    sections = [Section("How consistent are the clusterings at each number?", pictures=[*in_row, cdf], note=CONSISTENT)]
    if pictures:
        sections.append(Section("Consensus matrices of the other numbers", pictures=[*pictures.values()]))
    return sections


def _answer(choice: Any) -> list[str]:
    sentences = [f"{choice.suggested} clusters are suggested: {choice.reasons[choice.suggested]}."]
    if choice.doubt is None:
        sentences += filter(None, [_alternatives(choice)])
    return sentences


def _alternatives(choice: Any) -> str:
    return " ".join(
        f"{why[:1].upper()}{why[1:]}: {', '.join(map(str, numbers))}." for why, numbers in choice.alternatives.items()
    )


def _doubts(choice: Any) -> list[str]:
    why = choice.lopsided.get(choice.suggested, "").removesuffix(".")
    return [f"{why[:1].upper()}{why[1:]}."] * bool(why) + choice.caveats
