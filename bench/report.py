"""The pages of all papers and scripts: findings, written by templates in TOML files.

A page is a TOML file: a title, and for each part a title, a text, the templates of its sentences (``say``) and its
tables; what a part does not say of its own, the page says for all. A template names the values of a record that stand
in it: {base.AC.1:number} goes into dicts and lists by the names and places between the points; a value that is not
there is a dash. Besides Python's formats there are those of `FORMATS`.

What is computed, the verdicts above all, comes from functions of the findings, a module:

    PART or every_part      (rows) -> (the name of a sentence, its values), …
    PART_values, part_values, page_values   what the texts of a part, or of the page, may name
    the ``rows`` of a table (rows) -> what the templates of each line may name; without, these are the part's rows

A table's columns are [title, template]. <name> stands for each item of the page's list of that name: in a column it
makes a column of each, "best" puts the largest in bold; a table "per" a list, or per "row", is repeated; <key> is the
row's own name. ``means`` adds the means of the columns.

A page says with which commit of the library each part was measured. The "outdated" of a part is a commit at which the
library gives other figures; tests/house/test_bench_pages.py looks for it.
"""

import re
import string
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import common
import numpy as np

PAGES = common.HERE / "pages"

Found: TypeAlias = tuple[str, common.Record]  # the name of a sentence, and its values

LEVEL = 0.05  # significance level of all tests
FORMATS = {
    "number": common.number,
    "seconds": common.seconds,
    "size": common.size,
    "held": common.held,
    "n": lambda value: f"{value:,}",
    "mean seconds": lambda values: common.seconds(float(np.mean(values))),
    "mean": lambda values: common.number(float(np.mean(values))),
    "spread": lambda values: f"{np.mean(values):.3f}" + (f" ± {np.std(values):.3f}" if np.ndim(values) else ""),
    "numbers": lambda values: " ".join(map(common.number, values)),
    "listed": lambda values: ", ".join(map(str, values)) or "none",
    "times": lambda value: f"{value:.1f}×",
    "yes": lambda value: "yes" if value else "**no**",
    "length": lambda values: str(len(values)),
    "percent": lambda value: f"{100 * value:.1f} %",
}


class Formatter(string.Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:
        return look_up(kwargs, field_name), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "–"
        return FORMATS[format_spec](value) if format_spec in FORMATS else format(value, format_spec)


def look_up(context: Any, path: str) -> Any:
    """Return the value at a path, or None; over a list of contexts (`Rows`) the mean of their values."""
    if isinstance(context, Rows):
        cells = [look_up(row, path) for row in context if "failed" not in row]
        return None if None in cells or any(isinstance(v, str) for v in cells) else np.mean([np.mean(v) for v in cells])
    for step in path.replace("<key>", context.get("key", "")).split("."):
        if isinstance(context, (list, tuple)):
            context = dict(enumerate(context)).get(int(step))
        else:
            context = (context or {}).get(step)
    return context


class Rows(list):
    """The contexts of a table's rows, used for its row of means."""


def fill(template: str, context: Any) -> str:
    return Formatter().vformat(template, (), context)


class Page:
    """A page: its TOML file, or the name of one in bench/pages; ``findings`` has the functions that compute,
    ``printed`` what a paper prints.
    """

    def __init__(self, page: Path | str, findings: ModuleType, printed: common.Record | None = None) -> None:
        path = page if isinstance(page, Path) else PAGES / f"{page}.toml"
        self.spec, self.findings, self.printed = tomllib.loads(path.read_text()), findings, printed
        self.lists = self.spec.get("lists", {})

    def markdown(self, record: common.Record) -> str:
        parts = {name: part for name, part in record["parts"].items() if part["rows"]}
        of_page = getattr(self.findings, "page_values", lambda record: {})(record)
        quick = self.spec.get("quick", " (a quick run)") if record["quick"] else ""
        lines = [f"# {fill(self.spec['title'], of_page)}{quick}"]
        if intro := self.spec.get("intro"):
            lines.append("\n" + fill(intro, of_page))
        if outdated := [self.title(name, part, record) for name, part in parts.items() if "outdated" in part]:
            lines.append(f"\n**Outdated**, because the library gives other figures by now: {'; '.join(outdated)}.")
        sentences = [f"- {text}" for name, part in parts.items() if scored(part) for text in self.sentences(name, part)]
        if sentences:
            lines += ["\n## What holds and what does not\n", *sentences]
        if remark := fill(self.spec.get("remark", ""), {"note": "", **record}).strip():
            lines.append(f"\n{remark}")
        lines += [text for name, part in parts.items() for text in self.section(name, part, record)]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))

    def sentences(self, name: str, part: common.Record) -> Iterator[str]:
        spec = self.spec["parts"][name]
        templates = spec.get("say", self.spec.get("say", {}))
        findings = getattr(self.findings, name, None) or getattr(self.findings, "every_part", None)
        for sentence, values in findings(scored(part)) if templates and findings else ():
            yield fill(templates[sentence], {"title": spec["title"], **values})

    def title(self, name: str, part: common.Record, record: common.Record) -> str:
        return fill(self.spec["parts"][name]["title"], part | self.values(name, scored(part), record))

    def section(self, name: str, part: common.Record, record: common.Record) -> Iterator[str]:
        spec, rows = self.spec["parts"][name], scored(part)
        values = part | self.values(name, rows, record)
        yield f"\n## {self.title(name, part, record)}\n\n{part['date']}; {common.machine_line(part)}\n"
        if "outdated" in part:
            yield f"**Outdated**: at commit {part['outdated']} the library gives other figures.\n"
        if text := spec.get("text"):
            yield fill(text, values) + "\n"
        tables = spec.get("tables", self.spec.get("tables", []))
        if all("rows" in table for table in tables):  # tables without "rows" show failures among their rows
            yield from (f"{key} failed: {row['failed']}\n" for key, row in part["rows"].items() if "failed" in row)
        for table in tables if part["rows"] else []:
            yield from self.tables(table, rows if "rows" in table else part["rows"], values)
        if after := spec.get("after"):
            yield "\n" + fill(after, values)

    def values(self, name: str, rows: common.Record, record: common.Record) -> common.Record:
        """Return the values that texts of a part may name."""
        if of_part := getattr(self.findings, f"{name}_values", None):
            return of_part(rows, record) if rows else {}
        of_any = getattr(self.findings, "part_values", None)
        return of_any(name, rows, record) if of_any else {}

    def tables(self, spec: common.Record, rows: common.Record, values: common.Record) -> Iterator[str]:
        """Yield a table, or one for each item that it is "per"."""
        per, lists = spec.get("per", ""), self.lists | values.get("lists", {})
        items = lists.get(per, rows if per == "row" else [""])
        for item in items:
            replaced = {f"<{per}>": item}
            rows_of_item = {item: rows[item]} if per == "row" else rows
            contexts = self.contexts(spec, rows_of_item, item, values)
            if not contexts:
                continue
            if title := spec.get("title"):
                yield f"\n### {replace(title, {f'<{per}>': label_of(items, item)})}\n"
            if text := spec.get("text"):
                yield fill(text, contexts[0]) + "\n"
            columns = expanded(spec["columns"], lists, replaced)
            yield table(columns, contexts, means=spec.get("means", False))

    def contexts(self, spec: common.Record, rows: common.Record, item: str, values: common.Record) -> Rows:
        """Return the values that templates of each line of a table may name."""
        if "rows" in spec and not rows:  # all rows have failed, so that nothing can be computed from them
            return Rows()
        if spec.get("rows") in values:
            lines = values[spec["rows"]]
        elif spec.get("rows") in self.spec:
            lines = [{"key": key, spec["rows"]: row} for key, row in self.spec[spec["rows"]].items()]
        elif "rows" in spec:
            arguments = [item] if spec.get("per") and spec["per"] != "row" else []
            lines = getattr(self.findings, spec["rows"])(rows, *arguments)
        else:
            lines = [{"key": key} | row for key, row in rows.items()]
        return Rows({"paper": self.printed, **context} for context in lines)


def table(columns: Iterable[Sequence[str]], contexts: Iterable[common.Record], *, means: bool = False) -> str:
    """Return a table of columns (title, template, …), a line for each context; one that "failed" says why."""
    columns, contexts = list(columns), Rows(contexts)
    lines = [line(columns, context) for context in contexts]
    if means:
        lines.append(["mean", *line(columns, contexts)[1:]])
    return common.table([column[0] for column in columns], lines)


def expanded(
    columns: Iterable[list[str]], lists: common.Record, replaced: dict[str, str]
) -> Iterator[tuple[str, str, Any]]:
    """Yield (title, template, which best one of them it competes to be)."""
    for number, column in enumerate(columns):
        title, template, *best = [replace(text, replaced) for text in column]
        group = number if best else None
        name = next((name for name in re.findall(r"<(\w+)>", title + template) if name in lists), None)
        items = lists[name] if name else [""]
        for item in items:
            label = {f"<{name}>": label_of(items, item)}
            yield replace(title, label), replace(template, {f"<{name}>": item}), group


def label_of(items: Any, item: str) -> str:
    """Return the name of an item on the page: a table {name = label} renames those of records."""
    return items[item] if isinstance(items, dict) and isinstance(items[item], str) else item


def replace(text: str, replaced: dict[str, str]) -> str:
    for name, item in replaced.items():
        text = text.replace(name, item)
    return text


def line(columns: Sequence[Sequence[Any]], context: Any) -> list[str]:
    """Return the cells of a line of a table, the largest of those that compete in bold."""
    cells = [fill(column[1], context) for column in columns]
    if "failed" in context and "–" in cells:
        cells[cells.index("–")] = context["failed"]
    groups = [column[2] if len(column) > 2 else None for column in columns]
    for group in {group for group in groups if group is not None}:
        places = [i for i, other_group in enumerate(groups) if other_group == group and cells[i] != "–"]
        best = max((float(cells[i].split(" ")[0]) for i in places), default=None)
        for i in places:
            number, *rest = cells[i].split(" ")
            cells[i] = " ".join([f"**{number}**" if float(number) == best else number, *rest])
    return cells


def scored(part: common.Record) -> common.Record:
    """Return the rows that did not fail."""
    return {name: row for name, row in part["rows"].items() if "failed" not in row}


# --- what is tested ---------------------------------------------------------------------------------------------------


def p_value(differences: Sequence[float]) -> float:
    """Return the two-sided p of Student's t for a mean of 0; 1 without data, 0 if all are equal and not 0."""
    from scipy import stats

    differences = np.asarray(differences)
    if len(differences) < 2 or np.ptp(differences) == 0.0:
        return float(len(differences) < 2 or differences[0] == 0.0)
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def compared(rows: common.Record, better: str, worse: str, score: str, *, single: bool = False) -> common.Record:
    """Compare two methods by a score: means over sets and their difference, p over sets and half of the interval that
    goes with it, on how many sets it is significantly up and down over runs (``single``: up and down at all).
    """
    from scipy import stats

    means, n_better, down = [], 0, 0
    for row in rows.values():
        a, b = (np.atleast_1d(row["methods"][method][score]) for method in (better, worse))
        a, b = a[: min(len(a), len(b))], b[: min(len(a), len(b))]
        means.append((a.mean(), b.mean()))
        if single or p_value(a - b) < LEVEL:
            n_better, down = n_better + ((a - b).mean() > 0), down + ((a - b).mean() < 0)
    first, second = np.array(means).T
    n, p = len(first), p_value(first - second)
    reach = stats.t.ppf(1 - LEVEL / 2, n - 1) * stats.sem(first - second) if n > 1 else np.nan
    verdict = "undecided" if p >= LEVEL else "holds" if first.mean() > second.mean() else "the reverse"
    return {
        "better": better, "worse": worse, "score": score, "first": first.mean(), "second": second.mean(),
        "difference": (first - second).mean(), "p": p, "reach": float(reach), "up": int(n_better), "down": int(down),
        "sets": n, "verdict": verdict,
    }  # fmt: skip
