"""Limits of manifests, checked before a few bytes make endless work: aliases of YAML, keys, products of lists."""

import gc
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

MOST_BYTES = 16_000_000  # a manifest's size
MOST_BYTES_OF_YAML = 2_000_000  # a YAML manifest's size: it takes a second to read
MOST_KEYS = 1_000  # keys of one mapping
MOST_VALUES = 5_000_000  # values in all lists and mappings, aliases written out
MOST_JOBS = 100_000
LISTS = ("input", "method", "methods", "n_clusters")  # fields of an entry that may hold one value for each job


class TooMuch(ValueError):
    """A limit that a manifest exceeds; the message continues "manifest NAME …"."""


def refuse_long(text: str, most: int = MOST_BYTES, instead: str = "divide it") -> str:
    """Return a manifest's text; refuse one that takes minutes to read."""
    if len(text) > most:
        raise TooMuch(f"has more than {most:,} letters; {instead}.")
    return text


def refuse_vast(root: Any, parts_of: Callable[[Any], list[Any]]) -> None:
    """Refuse contents with too many keys, too many values once aliases are written out, or an alias of itself.

    ``parts_of`` is `parts_of_value` or `parts_of_node`. It is asked about each part, however often aliases repeat that.
    """
    sizes: dict[int, int] = {}  # {identity: values} of finished parts
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
            raise TooMuch("has an alias for something that it is part of; write out what is meant.")
        begun.add(id(part))
        waiting += unfinished
        if not unfinished:
            sizes[id(part)] = 1 + sum(sizes[id(each)] for each in parts)
            if sizes[id(part)] > MOST_VALUES:
                raise TooMuch(f"holds more than {MOST_VALUES:,} values, aliases written out; divide it.")


def parts_of_value(value: Any) -> list[Any]:
    """Return the parts of a Python value: items of a list, keys and values of a mapping, nothing of others."""
    if isinstance(value, Mapping):
        return _of_pairs(value.items())
    return list(value) if isinstance(value, (list, tuple)) else []


def parts_of_node(node: Any) -> list[Any]:
    """Return the parts of a YAML node, which an alias shares with what it stands for."""
    if node.id == "mapping":
        return _of_pairs(node.value)
    return node.value if node.id == "sequence" else []


def _of_pairs(pairs: Collection[tuple[Any, Any]]) -> list[Any]:
    if len(pairs) > MOST_KEYS:
        raise TooMuch(f"has a mapping with {len(pairs):,} keys, more than {MOST_KEYS:,}; correct it.")
    return [part for pair in pairs for part in pair]


def refuse_many_jobs(contents: Any) -> None:
    """Refuse a manifest, not validated yet, whose lists multiply to more jobs than are made.

    A pattern of inputs counts as one, and so does what is no list where one may be.
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
    """Collect no garbage in this block: to go through a million new values again and again takes ten times as long."""
    ours = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ours:
            gc.enable()
