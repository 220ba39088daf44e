"""The report page about a choice of the number of clusters."""

from functools import partial
from typing import Any

import numpy as np

from gpuens import plotting
from gpuens.plotting.levels import CRITERIA, criteria
from gpuens.report.front import picture_of_sizes
from gpuens.report.page import DETAIL, Answer, Picture, Section, Table, render

# criteria in the order of preference; the pictures of the first two available ones are at the beginning of the page
FRONT_CRITERIA = ("score", "silhouette", "corrected_pac", "lifetime")
MATRIX_SIZE = (2.9, 2.9)  # width and height, in inches, of the picture of one consensus matrix
LEVEL_INCHES = 0.42  # height, in inches, of the row for each number of clusters in pictures that have such rows

CONSISTENT = (
    "C is the share of the clusterings that put two objects together. A number that suits the data has blocks without "
    "shades, and a CDF that is flat between two steps."
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
        Picture("The objects at each number of clusters", partial(plotting.tracking, choice.labels), tall),
        Picture("How the clusters divide", partial(plotting.clustree, choice.labels), tall),
    ]
    consistent = []
    if choice.consensus:
        consistent = [
            Picture("Consensus of all pairs of objects", partial(plotting.cdf, choice)),
            *(
                Picture(f"Consensus matrix of {k} clusters", partial(plotting.consensus_matrix, choice, k), MATRIX_SIZE)
                for k in choice.consensus
            ),
        ]
    rows = [[row["k"], *(row[name] for name in names)] for row in choice.rows]
    named = [(name.replace("_", " "), k) for name, k in choice.by_criterion.items()]
    single = Table("single criteria", ("criterion alone", "number of clusters"), named)
    columns = ("number of clusters", *(name.replace("_", " ") for name in names))
    sizes = np.unique(choice.labels[choice.suggested], return_counts=True)[1]
    front = [pictures[name] for name in front_names] + [picture_of_sizes(sizes)]
    return render(
        title,
        Answer(_answer(choice), _doubts(choice), front),
        [
            Section("Other criteria", [single], pictures_below),
            Section("How consistent are the clusterings at each number?", pictures=consistent, note=CONSISTENT),
            Section("Where the objects go", pictures=where),
            Section("All criteria", [Table("criteria", columns, rows)]),
        ],
    )


def _answer(choice: Any) -> list[str]:
    sentences = [f"{choice.suggested} clusters are suggested: {choice.reasons[choice.suggested]}."]
    for why, numbers in choice.alternatives.items():
        sentences.append(f"{why[:1].upper()}{why[1:]}: {', '.join(map(str, numbers))}.")
    sentences.append(f"The consensus of each number is that of {choice.method}.")
    return sentences


def _doubts(choice: Any) -> list[str]:
    why = choice.lopsided.get(choice.suggested, "").removesuffix(".")
    return [f"{why[:1].upper()}{why[1:]}."] * bool(why) + choice.caveats
