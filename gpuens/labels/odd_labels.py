"""Ambiguous texts among labels: words for missing, and one number written in two ways.

If every text of a column is written as a number, the texts -1 and nan mean missing, like these numbers. Otherwise they
are clusters, as are other words that look like missing; and 1 and "1" in one column are two clusters. Both cause a
warning.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpuens.runtime import checks

WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
NUMBER = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|[+-]?inf(inity)?", re.IGNORECASE)
LONGEST_NUMBER = 300  # characters of the longest text that counts as a number, which a float can hold
LOOKS_MISSING = frozenset(
    ("na", "n/a", "#n/a", "<na>", "nan", "none", "null", "nil", "?", "-", ".", "missing", "unknown", "unlabelled")
)

Columns = list[tuple[Any, list[Any]]]  # the name and the distinct label values of each column


def is_number(text: str) -> bool:
    """Return whether a text is written as a number that a float can hold."""
    return len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text) is not None


def missing_texts(values: Iterable[Any]) -> list[Any]:
    """Return the label values of a column that are texts for missing: -1 and nan, if every text is a number.

    Bytes count as texts.
    """
    texts = {
        value: value.decode(errors="replace") if isinstance(value, bytes) else value
        for value in values
        if isinstance(value, (str, bytes))
    }
    absent = [v for v, text in texts.items() if text.lower() == "nan" or (text[:2] == "-1" and _is_minus_one(text))]
    return absent if absent and all(map(is_number, texts.values())) else []


def _is_minus_one(text: str) -> bool:
    return is_number(text) and float(text) == checks.MISSING


def warn_of_odd_labels(categories: list[np.ndarray], names: list[Any], source: str = "labels") -> None:
    """Warn about odd texts among the label values of each clustering."""
    columns = [
        (name, values.tolist()) for name, values in zip(names, categories, strict=True) if values.dtype.kind == "O"
    ]
    warn_of_words(columns, source, "replace them by None")
    warn_of_twins(columns, source)


def warn_of_words(columns: Columns, source: str, missing_by: str) -> None:
    """Warn about clusters named by a word for missing; ``missing_by`` is the advice how to make them missing."""
    odd_words = [(name, _words_like_missing(values)) for name, values in columns]
    if any(words for _, words in odd_words):
        distinct_words = list(dict.fromkeys(word for _, words in odd_words for word in words))
        names = [str(name) for name, words in odd_words if words]
        checks.warn(
            f"{source}: {', '.join(map(repr, distinct_words))} in {checks.listed(names)} count as clusters; if they "
            f"mean missing, {missing_by.format(words=distinct_words, option=','.join(distinct_words))}."
        )


def warn_of_twins(columns: Columns, source: str) -> None:
    """Warn about two clusters whose labels are the same number: 1 and "1", or "1.0" and "1"."""
    for name, values in columns:
        if pair := _twins(values):
            checks.warn(
                f"{source}: {pair[0]!r} and {pair[1]!r} in {str(name)!r} count as two clusters, though equal as "
                "numbers; write them alike if they are one."
            )


def _words_like_missing(values: Iterable[Any]) -> list[str]:
    texts = [value for value in values if isinstance(value, str)]
    absent = missing_texts(texts)
    words = [text for text in texts if text == str(checks.MISSING) or text.lower() in LOOKS_MISSING]
    return [text for text in words if text not in absent]


def _twins(values: Iterable[Any]) -> list[Any]:
    """Return the first different label values that are the same number, or an empty list."""
    values_by_number: dict[Any, list[Any]] = defaultdict(list)
    for value in values:
        if isinstance(value, str):
            if is_number(value) and value.lower() != "nan":
                values_by_number[int(value) if WHOLE.fullmatch(value) else float(value)].append(value)
        elif isinstance(value, (int, float)) and value == value:
            values_by_number[value].append(value)
    return next((twins for twins in values_by_number.values() if len(twins) > 1), [])
