"""Limits of manifests, because a short manifest can cause endless work by YAML aliases, keys or products of lists."""

import gc
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

MOST_BYTES = 16_000_000  # most bytes of a manifest
MOST_BYTES_OF_YAML = 2_000_000  # most bytes of a YAML manifest, which takes a second to read
MOST_KEYS = 1_000  # most keys of one mapping
MOST_VALUES = 5_000_000  # most values in all lists and mappings, with aliases expanded
MOST_JOBS = 100_000  # most jobs of one manifest
LISTS = ("input", "method", "methods", "n_clusters")  # fields of an entry that may hold a list, one job per item


class TooMuch(ValueError):
    """An exceeded limit of a manifest; the message continues "manifest NAME …"."""


def refuse_long(text: str, most: int = MOST_BYTES, instead: str = "divide it") -> str:
    """Return a manifest's text; refuse a text that would take minutes to read."""
    if len(text) > most:
        raise TooMuch(f"has more than {most:,} letters; {instead}.")
    return text


def refuse_vast(root: Any, parts_of: Callable[[Any], list[Any]]) -> None:
    """Refuse contents with too many keys, too many values after expanding aliases, or a cyclic alias.

    ``parts_of`` is `parts_of_value` or `parts_of_node`. It is called once for each part, however often aliases repeat
    it.
    """
    sizes: dict[int, int] = {}  # id of a finished part → number of its values
    begun: set[int] = set()
    waiting = [root]
    while waiting:
        part = waiting[-1]
        if id(part) in sizes:
            waiting.pop()
            continue
        parts = parts_of(part)
        unfinished = [each for each in parts if id(each) not in sizes]
        if unfinished and id(part) in begun:
            raise TooMuch("has an alias that contains itself; write out its value.")
        begun.add(id(part))
        waiting += unfinished
        if not unfinished:
            sizes[id(part)] = 1 + sum(sizes[id(each)] for each in parts)
            if sizes[id(part)] > MOST_VALUES:
                raise TooMuch(f"holds more than {MOST_VALUES:,} values after expanding aliases; divide it.")


def parts_of_value(value: Any) -> list[Any]:
    """Return the parts of a Python value: the items of a list, the keys and values of a mapping, otherwise []."""
    if isinstance(value, Mapping):
        return _of_pairs(value.items())
    return list(value) if isinstance(value, (list, tuple)) else []


def parts_of_node(node: Any) -> list[Any]:
    """Return the parts of a YAML node; an alias and its anchor are the same node."""
    if node.id == "mapping":
        return _of_pairs(node.value)
    return node.value if node.id == "sequence" else []


def _of_pairs(pairs: Collection[tuple[Any, Any]]) -> list[Any]:
    if len(pairs) > MOST_KEYS:
        raise TooMuch(f"has a mapping with {len(pairs):,} keys, more than {MOST_KEYS:,}; correct it.")
    return [part for pair in pairs for part in pair]


def refuse_many_jobs(contents: Any) -> None:
    """Refuse an unvalidated manifest whose lists multiply to more than ``MOST_JOBS`` jobs.

    A pattern of inputs counts as one job, and so does a single value in place of a list.
    """
    if isinstance(contents, dict):
        jobs, matrix = contents.get("jobs"), contents.get("matrix")
        n_jobs = sum(map(_product, jobs)) if isinstance(jobs, list) else 0
        refuse_more(n_jobs + (_product(matrix, matrix) if isinstance(matrix, dict) and matrix else 0))


def refuse_more(n_jobs: int) -> None:
    if n_jobs > MOST_JOBS:
        raise ValueError(f"the manifest has {n_jobs:,} jobs, more than {MOST_JOBS:,}; divide it.")


def _product(entry: Any, fields: Iterable[str] = LISTS) -> int:
    if not isinstance(entry, dict):
        return 1
    return math.prod(len(entry[name]) for name in fields if isinstance(entry.get(name), list))


@contextmanager
def without_collections() -> Iterator[None]:
    """Suspend garbage collection in this block: repeated passes over a million new values take ten times as long."""
    ours = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ours:
            gc.enable()
