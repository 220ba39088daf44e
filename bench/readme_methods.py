"""Write README's table of methods: a row for each that is registered, from its class and from readme_methods.toml.

    python bench/readme_methods.py

A column is a title and a function of a method's name, its class and its words in the file.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpuens as ge

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGINS = "| method | class |"  # the table's first words; it ends at an empty line
MATCHES_NOTHING = "matches nothing"

Words = dict[str, str]


def chooses(kind: Any, words: Words) -> str:
    """Return how a method chooses k; linkages, and what chooses one of them, by lifetime."""
    return words.get("k", "longest lifetime") if kind().chooses_n_clusters else "–"


def in_chunks(kind: Any) -> str:
    """Return what becomes of a Dask array: rows may stay in pieces, or core groups come together."""
    if kind().needs_features:
        return "–"
    return "pieces" if kind().learns_by_sums else "core groups"


COLUMNS: dict[str, Callable[[str, Any, Words], str]] = {
    "method": lambda name, kind, words: f"`{name}`",
    "class": lambda name, kind, words: f"`{kind.__name__}`",
    "similarity S (of objects: B S Bᵀ)": lambda name, kind, words: words["similarity"],
    "partitioner": lambda name, kind, words: words["partitioner"],
    "cost": lambda name, kind, words: words["cost"],
    "a missing label": lambda name, kind, words: words.get("missing", MATCHES_NOTHING),
    "k chosen without `n_clusters`": lambda name, kind, words: chooses(kind, words),
    "Dask": lambda name, kind, words: in_chunks(kind),
    "GPU": lambda name, kind, words: words["gpu"],
    "paper": lambda name, kind, words: words["paper"],
}


def table() -> str:
    """Return the table in Markdown, methods in the order of the file; refuse it unless it has them all."""
    said = tomllib.loads(HERE.joinpath("readme_methods.toml").read_text())
    kinds = ge.methods()
    if said.keys() != kinds.keys():
        raise ValueError(f"readme_methods.toml and the registry differ by {sorted(said.keys() ^ kinds.keys())}.")
    lines = [list(COLUMNS), ["---"] * len(COLUMNS)]
    lines += [[cell(name, kinds[name], words) for cell in COLUMNS.values()] for name, words in said.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---").replace("|--- |", "|---|")


def replaced(text: str) -> str:
    """Return README's text with the table as it should be."""
    start = text.index(BEGINS)
    return text[:start] + table() + text[text.index("\n\n", start) :]


if __name__ == "__main__":
    README.write_text(replaced(README.read_text()))
