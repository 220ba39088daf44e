"""The pages made from the registry: the table of methods, a card for each method, and the API reference.

A card has the parts of a method, its formula (formulas.toml), its paper (papers.toml), its cost as measured by
``bench/methods.py``, and the documentation of its class. A column of the table is a title and a function of a method's
name, its class and its entry in methods.toml.
"""

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gpuens as ge
from gpuens.runtime.registry import summary

HERE = Path(__file__).parent
RESULTS = HERE.parent / "bench" / "results"
MATCHES_NOTHING = "matches nothing"
GREEK = ["alpha", "beta", "gamma", "delta", "varepsilon", "theta", "lambda", "mu", "pi", "rho", "tau", "varphi"]
INDEX = r"(?:_(?:\{(\w+)\}|(\w)))?"
# a name in letters, an operator with its range, or a letter with its index, such as \operatorname{NMI}, \sum_m and x_m
PART = re.compile(
    rf"\\operatorname\{{(\w+)\}}|\\(?:sum|prod|max|min)(?:_\{{([^}}]*)\}})?|((?:\\(?:{'|'.join(GREEK)})(?![A-Za-z])|[A-Za-z])'?{INDEX})"
)
TEXT = re.compile(r"\\text\{[^}]*\}|\\(?!operatorname|sum|prod|max|min|" + "|".join(GREEK) + r")[A-Za-z]+")
LETTERS_OF_THE_TABLE = (
    "Cost is the number of steps for N objects with G distinct rows, M clusterings with C clusters in all, and k "
    "clusters of the consensus."
)

Words = dict[str, str]


def chooses(kind: Any, words: Words) -> str:
    """Return how a method chooses k: by the suggestion, unless the method has its own rule."""
    return words["k"] if kind().parts().chooses_n_clusters else "suggested"


def in_chunks(kind: Any) -> str:
    """Return how a method processes a Dask array: rows in pieces, or merged core groups."""
    if kind().parts().needs_features:
        return "–"
    return "pieces" if kind().parts().learns_by_sums else "core groups"


# device: the steps of a fit that run there, each with a function that tells whether they do for a class
DEVICES: dict[str, dict[str, Callable[[Any], bool]]] = {
    "CPU": {"all steps, on all cores": lambda kind: True},
    "GPU": {
        "all steps": lambda kind: kind.on_gpu == "all steps",
        "all but the last step": lambda kind: kind.on_gpu == "all but the last step",
        "the reduction to distinct rows": lambda kind: kind.on_gpu == "the reduction",
    },
    "Dask": {
        "all steps, with distinct rows in pieces on the workers": lambda kind: in_chunks(kind) == "pieces",
        "the reduction on the workers, the rest in one process": lambda kind: in_chunks(kind) == "core groups",
        "nothing: features must be in memory": lambda kind: in_chunks(kind) == "–",
    },
}


COLUMNS: dict[str, Callable[[str, Any, Words], str]] = {
    "method": lambda name, kind, words: f"[`{name}`](generated/methods/{name}.md)",
    "class": lambda name, kind, words: f"`{kind.__name__}`",
    "similarity S": lambda name, kind, words: words["similarity"],
    "partitioner": lambda name, kind, words: words["partitioner"],
    "cost": lambda name, kind, words: kind.cost,
    "a missing label": lambda name, kind, words: words.get("missing", MATCHES_NOTHING),
    "k chosen without `n_clusters`": lambda name, kind, words: chooses(kind, words),
    "Dask": lambda name, kind, words: in_chunks(kind),
    "GPU": lambda name, kind, words: kind.on_gpu,
    "paper": lambda name, kind, words: cited(words["paper"]),
}


def loaded(name: str) -> dict[str, Any]:
    """Return the contents of a TOML file of this folder."""
    return tomllib.loads(HERE.joinpath(f"{name}.toml").read_text())


def cited(papers: str) -> str:
    """Return short names of papers, separated by "; ", as links to their DOIs."""
    known = loaded("papers")
    return "; ".join(f"[{name}](https://doi.org/{known[name]['doi']})" for name in papers.split("; "))


def bibtex(paper: dict[str, Any]) -> str:
    """Return a paper of papers.toml as a BibTeX entry."""
    kind = "article" if "journal" in paper else "inproceedings"
    fields = {name: value for name, value in paper.items() if name not in ("key", "repeated")}
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@{kind}{{{paper['key']},\n{lines}\n}}"


def papers() -> str:
    """Return BibTeX of all papers; papers whose tables bench/papers repeats come first."""
    found = loaded("papers").values()
    parts = {
        "The papers whose tables are repeated": [paper for paper in found if "repeated" in paper],
        "The papers of the other methods": [paper for paper in found if "repeated" not in paper],
    }
    return "\n\n".join(
        f"### {title}\n\n```bibtex\n" + "\n\n".join(map(bibtex, some)) + "\n```" for title, some in parts.items()
    )


def letters(formula: str) -> list[str]:
    """Return the letters of a formula in LaTeX that need an explanation, in the order of the formula."""
    used: list[str] = []
    for name, bounds, letter, *indices in PART.findall(TEXT.sub(" ", formula)):
        index = "".join(indices)
        if name and not name.startswith("arg"):
            used.append(name)
        elif letter:
            base = letter.partition("_")[0]
            used.append(f"{base}_{{{index}}}" if len(index) > 1 else f"{base}_{index}" if index else base)
        used += letters(bounds) if bounds else []
    return [*dict.fromkeys(used)]


def formula(name: str) -> str:
    """Return the formula of a method and the meanings of its letters; refuse a letter without a meaning."""
    formulas = loaded("formulas")
    lines, where = formulas[name]["formula"].strip().splitlines(), formulas[name].get("where", {})
    equations = "\n".join(line for line in lines if not line.startswith(" "))
    remarks = " ".join(line.strip() for line in lines if line.startswith(" "))
    means = formulas["symbols"] | where
    used = letters(equations + " ".join(re.findall(r"\$(.*?)\$", remarks)))
    unknown = [letter for letter in used if letter not in means]
    if unknown or not where.keys() <= set(used):
        raise ValueError(
            f"docs/formulas.toml, {name}: {unknown} are not explained, {where.keys() - set(used)} not used."
        )
    explained = [(f"${letter_as_math(letter)}$", means[letter]) for letter in used]
    explained += [("[ … ]", "1 if what is in it holds, else 0")] if "[" in equations else []
    meanings = "\n".join(f"| {letter} | {meaning} |" for letter, meaning in explained)
    return f"```{{math}}\n{equations}\n```\n\n{remarks}\n\n| letter | means |\n|---|---|\n{meanings}"


def letter_as_math(letter: str) -> str:
    """Return a letter in LaTeX; a name of several letters, such as NMI, is upright."""
    return rf"\operatorname{{{letter}}}" if letter.isalpha() and len(letter) > 1 else letter


def said() -> dict[str, Words]:
    """Return the entry of each method in methods.toml, in file order; refuse a file that differs from the registry."""
    words = loaded("methods")
    kinds = ge.methods()
    if words.keys() != kinds.keys():
        raise ValueError(f"docs/methods.toml and the registry differ by {sorted(words.keys() ^ kinds.keys())}.")
    return words


def table() -> str:
    """Return the table of methods in Markdown."""
    kinds = ge.methods()
    lines = [list(COLUMNS), ["---"] * len(COLUMNS)]
    lines += [[cell(name, kinds[name], words) for cell in COLUMNS.values()] for name, words in said().items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def devices() -> str:
    """Return the table of devices in Markdown: the steps that run there, and the methods with these steps."""
    lines = ["| device | what runs there | methods |", "|---|---|---|"]
    for device, steps in DEVICES.items():
        for step, runs in steps.items():
            names = [f"[`{name}`](generated/methods/{name}.md)" for name, kind in ge.methods().items() if runs(kind)]
            lines.append(f"| {device} | {step} | {', '.join(names) if len(names) < len(ge.methods()) else 'all'} |")
    return "\n".join(lines)


def card(name: str, words: Words, measured: dict[str, Any]) -> str:
    """Return the page of a method."""
    kind = ge.methods()[name]
    facts = "\n".join(f"| {title} | {cell(name, kind, words)} |" for title, cell in list(COLUMNS.items())[2:] if cell)
    return f"""# {kind.__name__}

{words["when"]} [Which method?](../../which.md) compares it with others.

| `ge.{kind.__name__}`, `--method {name}` | |
|---|---|
{facts}

{LETTERS_OF_THE_TABLE}

## What it computes

{formula(name)}

{costs(name, measured)}

## Parameters and results

```{{eval-rst}}
.. autoclass:: gpuens.{kind.__name__}
```
"""


def costs(name: str, measured: dict[str, Any]) -> str:
    """Return the measured costs of a fit by number of objects, for structured labels and for nearly distinct rows."""
    lines = []
    for part, title in {"structured": "structured", "distinct": "nearly all rows distinct"}.items():
        fits = measured[part]["rows"].get(name, {}).get("fits", [])
        for fit in fits:
            lines.append(
                f"| {title} | {fit['n']:,} | {fit['rows']:,} | {fit['cpu']:.2f} | {fit['memory'] / 1e6:,.0f} |"
            )
    if not lines:
        return ""
    machine = measured["structured"]["machine"]
    return (
        f"## What it costs\n\nMeasured on one thread of an {machine['processor']}, 20 clusterings with k in 7 … 100, "
        "25 clusters wanted:\n\n"
        "| labels | objects | distinct rows | CPU seconds | memory, MB |\n|---|--:|--:|--:|--:|\n" + "\n".join(lines)
    )


def measurements() -> dict[str, Any]:
    """Return the results of ``bench/methods.py``."""
    found: dict[str, Any] = json.loads((RESULTS / "methods.json").read_text())["parts"]
    return found


def references() -> dict[str, str]:
    """Return the pages of all public names: an overview, and a page for each module and for the methods."""
    methods = {kind.__name__: name for name, kind in ge.methods().items()}
    plain = [n for n in ge.__all__ if n not in methods and not n.startswith("_")]
    modules = [n for n in plain if isinstance(getattr(ge, n), ModuleType)]
    functions = [n for n in plain if n not in modules]
    in_short = [getattr(ge, n) for n in functions]
    pages = {"functions": page_of_names("Functions and classes", "The names of `ge` itself.", "gpuens", functions)}
    lines = [f"| [Functions and classes](reference/functions.md) | {links('gpuens', functions)} |"]
    pages["methods"] = (
        "# Methods\n\n"
        + "\n".join(f"- [`{c}`](../methods/{n}.md): {summary(ge.methods()[n])}" for c, n in methods.items())
        + "\n\n```{toctree}\n:hidden:\n\n"
        + "".join(f"../methods/{n}\n" for n in methods.values())
        + "```\n"
    )
    of_methods = ", ".join(f"[`{c}`](methods/{n}.md)" for c, n in methods.items())
    lines.append(f"| [Methods](reference/methods.md) | {of_methods} |")
    for name in modules:
        module = getattr(ge, name)
        names = [
            n
            for n in getattr(module, "__all__", public(module))
            if not isinstance(getattr(module, n), ModuleType | dict)
            and not any(getattr(module, n) is thing for thing in in_short)
        ]
        about = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
        pages[name] = page_of_names(f"ge.{name}", about, f"gpuens.{name}", names)
        lines.append(f"| [ge.{name}](reference/{name}.md) | {about}<br>{links(f'gpuens.{name}', names)} |")
    overview = (
        "# API reference\n\nEvery name of `import gpuens as ge`; its page tells since which version it exists.\n\n"
        "| group | names |\n|---|---|\n"
        + "\n".join(lines)
        + "\n\n```{toctree}\n:hidden:\n\n"
        + "".join(f"reference/{name}\n" for name in pages)
        + "```\n"
    )
    return {"reference.md": overview} | {f"reference/{name}.md": text for name, text in pages.items()}


def links(module: str, names: list[str]) -> str:
    """Return the short names of a module as links to their pages."""
    return ", ".join(f"[`{name}`](api/{module}.{name}.rst)" for name in names)


def page_of_names(title: str, about: str, module: str, names: list[str]) -> str:
    """Return the page of the names of a module, each with the first line of its documentation."""
    lines = "\n   ".join(names)
    options = "   :toctree: ../api\n   :nosignatures:"
    listing = f"```{{eval-rst}}\n.. currentmodule:: {module}\n\n.. autosummary::\n{options}\n\n   {lines}\n```"
    return f"# {title}\n\n{about}\n\n{listing}\n"


def public(module: ModuleType) -> list[str]:
    return [
        n
        for n, thing in vars(module).items()
        if not n.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    ]


def without_links_out(text: str, repository: str = "") -> str:
    """Return a page with links to checkout files turned into links to the repository, or, without one, into texts."""
    instead = rf"[\1]({repository.rstrip('/')}/blob/main/\2)" if repository else r"\1"
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?:\.\./)+((?:bench|kernels|docker|tests)[^)]*)\)", instead, text)


def write(folder: Path) -> None:
    """Write all made pages, except unchanged ones."""
    measured = measurements()
    pages = {"table.md": table(), "devices.md": devices(), "papers.md": papers()} | references()
    pages |= {f"methods/{name}.md": card(name, words, measured) for name, words in said().items()}
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
