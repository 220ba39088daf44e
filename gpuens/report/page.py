"""An HTML page in one file, without scripts or external resources.

The page begins with the result in plain words and with pictures of equal size. Folded sections follow, and a glossary.
"""

import base64
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpuens.plotting.drawing import no_matplotlib
from gpuens.report.glossary import Glossary
from gpuens.runtime import installing, progress

INCH = 96  # pixels of the page in one inch
SHARPNESS = 2  # ratio of picture pixels to page pixels, so that pictures are sharp in prints and on screens
# width and height, in inches, of a picture at the top; three such pictures fit in a row of a page, or one on a phone
FRONT = (3.6, 3.7)
DETAIL = (5.3, 4.2)  # width and height, in inches, of a picture in a section; two such pictures fit in a row
WIDE = (10.0, 4.4)  # width and height, in inches, of a picture that fills a row, such as a tree
LARGEST = 6.8  # maximum height, in inches, of the picture of a matrix
TEXT = 8.6  # size, in points, of the text in pictures; it equals 11.5 pixels
ROWS_SHOWN = 30  # maximum number of rows that a table shows


@dataclass(frozen=True)
class Table:
    """A table; the page shows at most its first 30 rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Picture:
    """A picture: its message, a function that draws the picture into the Axes ``ax``, and the size in inches."""

    says: str
    draw: Callable[..., Any]
    size: tuple[float, float] = DETAIL


@dataclass(frozen=True)
class Section:
    title: str
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = field(default=())
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """The beginning of a page: paragraphs in plain words, doubts, and pictures of size `FRONT`."""

    paragraphs: Sequence[str]
    doubts: Sequence[str] = ()
    pictures: Sequence[Picture] = ()


def refuse_missing() -> None:
    """Raise an error, before any work, if a package that reports need is not installed."""
    if find_spec("matplotlib") is None:
        raise no_matplotlib()
    if find_spec("jinja2") is None:
        raise ImportError(f"reports need jinja2, which is not installed: {installing.command('plot')}.")


def render(title: str, answer: Answer, sections: Sequence[Section]) -> bytes:
    """Draw all pictures, and return the HTML page as bytes in UTF-8."""
    n_pictures = len(answer.pictures) + sum(len(section.pictures) for section in sections)
    words = Glossary()
    with progress.bar(n_pictures, "pictures") as bar:
        front = [_draw(picture, FRONT, bar) for picture in answer.pictures]
        drawn_sections = [
            {
                "title": section.title,
                "note": section.note,
                "tables": [_format_table(table) for table in section.tables],
                "pictures": [_draw(picture, picture.size, bar) for picture in section.pictures],
            }
            for section in sections
        ]
    text: str = _template().render(title=title, answer=answer, front=front, sections=drawn_sections, words=words)
    return text.encode(errors="replace")


@cache
def _template() -> Any:
    from jinja2 import Environment

    source = Path(__file__).with_name("page.html.jinja").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=False).from_string(source)


def _format_table(table: Table) -> dict[str, Any]:
    rest = len(table.rows) - ROWS_SHOWN
    return {
        "title": table.title,
        "columns": table.columns,
        "rows": [[text_of(cell) for cell in row] for row in table.rows[:ROWS_SHOWN]],
        "rest": f"… and {rest:,} more" if rest > 0 else "",
    }


def _draw(picture: Picture, size: tuple[float, float], bar: Any) -> dict[str, Any]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    file = io.BytesIO()
    with rc_context({"font.size": TEXT, "axes.titlesize": TEXT + 1, "legend.fontsize": TEXT}):
        figure = Figure(figsize=size, dpi=SHARPNESS * INCH, layout="constrained")
        ax = figure.subplots()
        picture.draw(ax=ax)
        figure.savefig(file, format="png", pil_kwargs={"optimize": True})
    bar.update(1)
    alt = f"{picture.says}: {ax.get_title()}" if ax.get_title() else picture.says
    width, height = (round(INCH * inches) for inches in size)
    png = base64.b64encode(file.getvalue()).decode()
    return {"says": picture.says, "alt": alt, "width": width, "height": height, "png": png}


def text_of(value: Any) -> str:
    """Return the text that a table cell shows for a value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {text_of(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text_of, value[:20])) + " …" * (len(value) > 20)
    return str(value)


def side_of(n_rows: int) -> tuple[float, float]:
    """Return the width and height, in inches, of the picture of a matrix that has room for names and numbers."""
    side = min(max(DETAIL[1], 1.8 + 0.33 * n_rows), LARGEST)
    return side + 1.0, side


def percent(share: float) -> str:
    """Return a share as a percentage, such as "12 %" or "3.4 %"; only exact 0 and 1 give "0 %" and "100 %"."""
    if share in (0.0, 1.0):
        text = f"{share:.0%}"[:-1]
    elif share < 0.001 or share > 0.999:
        text = "under .1" if share < 0.5 else "over 99.9"
    else:
        text = f"{100 * share:.0f}" if 0.1 <= share <= 0.9 else f"{100 * share:.1f}".removeprefix("0")
    return f"{text}\N{NO-BREAK SPACE}%"
