"""Limits for manifests, because YAML aliases, keys or products of lists in a short file could mean endless work."""

import gc
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

MOST_BYTES = 16_000_000  # maximum length of a manifest
MOST_BYTES_OF_YAML = 2_000_000  # maximum length of a manifest in YAML; reading YAML of this length takes a second
MOST_KEYS = 1_000  # maximum number of keys in one mapping
MOST_VALUES = 5_000_000  # maximum number of values in all lists and mappings after YAML aliases are expanded
MOST_JOBS = 100_000  # maximum number of jobs in one manifest
LISTS = ("input", "method", "methods", "n_clusters")  # fields that may hold a list; each item of it makes one more job


class TooMuch(ValueError):
    """An error for a manifest that exceeds a limit; its message is the end of a sentence after "manifest NAME"."""


def refuse_long(text: str, longest: int = MOST_BYTES, instead: str = "divide it") -> str:
    """Return the text of a manifest; raise an error if it has more than ``longest`` letters."""
    if len(text) > longest:
        raise TooMuch(f"has more than {longest:,} letters; {instead}.")
    return text


def refuse_vast(root: Any, parts_of: Callable[[Any], list[Any]]) -> None:
    """Raise an error if a manifest has too many keys, too many values after expansion of aliases, or a cyclic alias.

    ``parts_of`` is `parts_of_value` or `parts_of_node`. It is called only once for each part, even if aliases repeat
    the part.
    """
    sizes: dict[int, int] = {}  # Python id of a part whose values are counted → number of its values
    begun: set[int] = set()
    waiting = [root]
    while waiting:
        part = waiting[-1]
        if id(part) in sizes:
            waiting.pop()
            continue
        parts = parts_of(part)
        unfinished = [child for child in parts if id(child) not in sizes]
        if unfinished and id(part) in begun:
            raise TooMuch("has an alias that contains itself; write out its value.")
        begun.add(id(part))
        waiting += unfinished
        if not unfinished:
            sizes[id(part)] = 1 + sum(sizes[id(child)] for child in parts)
            if sizes[id(part)] > MOST_VALUES:
                raise TooMuch(f"holds more than {MOST_VALUES:,} values after expanding aliases; divide it.")


def parts_of_value(value: Any) -> list[Any]:
    """Return the items of a list, or the keys and values of a mapping; return [] for any other Python value."""
    if isinstance(value, Mapping):
        return _flatten_pairs(value.items())
    return list(value) if isinstance(value, (list, tuple)) else []


def parts_of_node(node: Any) -> list[Any]:
    """Return the nodes directly inside a YAML node; an alias is the same node as its anchor."""
    if node.id == "mapping":
        return _flatten_pairs(node.value)
    return node.value if node.id == "sequence" else []


def _flatten_pairs(pairs: Collection[tuple[Any, Any]]) -> list[Any]:
    if len(pairs) > MOST_KEYS:
        raise TooMuch(f"has a mapping with {len(pairs):,} keys, more than {MOST_KEYS:,}; correct it.")
    return [part for pair in pairs for part in pair]


def refuse_many_jobs(contents: Any) -> None:
    """Raise an error if the products of the lists in a manifest give more than `MOST_JOBS` jobs.

    The manifest need not be valid. A pattern of inputs, or a value that is not a list, counts as one job.
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
    """Suspend garbage collection in this block, because its passes over a million new values take most of the time."""
    ours = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ours:
            gc.enable()
