"""Numbers in words and tables of a report page: three significant digits, one style of shares, one point in a column.

A column's numbers are ragged on the right, as 12.3 and 0.456: the page pads them with invisible digits, so that their
points stand below each other.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

DECIMALS = 3  # most digits behind the point; smaller numbers are "< 0.001"
DIGITS = 3  # significant digits of numbers below 1,000; larger ones are written in full
MISSING = "–"
MINUS = "\N{MINUS SIGN}"


class Share(float):
    """A share that a table shows as a percentage."""


class Cell(NamedTuple):
    """A table cell: its text, and the invisible digits behind it."""

    text: str
    padding: str = ""


class Column(NamedTuple):
    """A column of a table: its name, its cells, and whether they are numbers, which are aligned at their points."""

    name: str
    cells: list[Cell]
    is_numeric: bool


def number(value: float) -> str:
    """Return a number with at most three significant digits and at most three decimals, such as 1,234, 12.3 or 0.05."""
    size = abs(value)
    if math.isnan(value):
        return MISSING
    if 0 < size < 10**-DECIMALS / 2:
        return f"< {10**-DECIMALS:.{DECIMALS}f}" if value > 0 else f"> {MINUS}{10**-DECIMALS:.{DECIMALS}f}"
    whole_digits = len(f"{size:.0f}") if size >= 1 else 0
    return f"{value:,.{min(max(DIGITS - whole_digits, 0), DECIMALS)}f}".replace("-", MINUS)


def percent(share: float, decimals: int | None = None) -> str:
    """Return a share as a percentage, such as "12 %" or "3.4 %"; only exact 0 and 1 give "0 %" and "100 %".

    By default, shares below 10 % and above 90 % have one decimal.
    """
    if share in (0.0, 1.0):
        text = f"{100 * share:.0f}"
    elif share < 0.001:
        text = "< 0.1"
    elif share > 0.999:
        text = "> 99.9"
    else:
        text = f"{100 * share:.{(0 if 0.1 <= share <= 0.9 else 1) if decimals is None else decimals}f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def text_of(value: Any) -> str:
    """Return the text that the page shows for a value."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Share):
        return percent(value)
    if isinstance(value, float):
        return MISSING if math.isnan(value) else f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {text_of(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text_of, value[:20])) + " …" * (len(value) > 20)
    return str(value)


def column(name: str, values: Sequence[Any]) -> Column:
    """Return a column of a table: numbers, which may be missing, are padded behind their points."""
    defined = [value for value in values if value is not None]
    if not defined or not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in defined):
        return Column(name, [Cell(text_of(value)) for value in values], False)
    texts = [_text_of_number(value) for value in values]
    fractions = [text.partition(".")[2] if text[-1:].isdigit() else "" for text in texts]
    widest = max(map(len, fractions))
    return Column(
        name, [Cell(text, _padding(text, widest - len(end))) for text, end in zip(texts, fractions, strict=True)], True
    )


def _text_of_number(value: Any) -> str:
    if isinstance(value, Share):
        return MISSING if math.isnan(value) else percent(value, 1)
    return number(value) if isinstance(value, float) else text_of(value)


def _padding(text: str, n_digits: int) -> str:
    """Return invisible digits behind a number, with a point if the number has none; nothing behind other texts."""
    if not n_digits or not text[-1:].isdigit():
        return ""
    return "0" * n_digits if "." in text else "." + "0" * n_digits
