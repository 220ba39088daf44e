"""Texts that a spreadsheet would run as formulas, escaped in text files."""

import re
from typing import Any

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # texts that a spreadsheet would run as formulas, with or without ' before them


def escaped(text: str) -> str:
    """Return a label with ' before it if a spreadsheet would run the label as a formula; `unescaped` removes the '."""
    return f"'{text}" if FORMULA.match(text) else text


def unescaped(text: str) -> str:
    return text[1:] if text[:1] == "'" and FORMULA.match(text) else text


def as_text(frame: Any) -> Any:
    """Return a table of labels in which strings and names are escaped for a text file.

    Raise an error for strings that a text file does not preserve, such as empty strings; names of objects may be empty.
    """
    import pandas as pd

    def safe(values: Any, *, names: bool = False) -> Any:
        strings = {value: escaped(value) for value in pd.unique(values) if isinstance(value, str)}
        for value in strings:
            if value != value.strip() or not (value or names) or "\0" in value:
                raise ValueError(
                    f"labels hold {value!r}, but text files do not preserve empty strings or blanks around them; "
                    "write parquet or npy."
                )
        return values.map(strings) if strings else values

    named = frame.set_axis(safe(frame.index, names=True), axis=0) if frame.index.dtype.kind == "O" else frame
    columns = {m: safe(frame.iloc[:, m]) for m in range(frame.shape[1])}
    ready = pd.DataFrame(columns).set_axis([escaped(str(name)) for name in frame.columns], axis=1)
    title = frame.index.name
    return ready.set_axis(named.index.rename(None if title is None else escaped(str(title))), axis=0)
