"""An HTML page in one file, without scripts or external resources.

The page begins with the result in plain words and with pictures of equal size. Folded sections follow, and a glossary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpuens.plotting.drawing import no_matplotlib
from gpuens.report.drawing import INCH, MIRROR, draw_svg
from gpuens.report.glossary import Glossary
from gpuens.report.numbers import column
from gpuens.runtime import installing, progress

# width and height, in inches, of a picture at the top; three such pictures fit in a row of a page, or one on a phone
FRONT = (3.6, 3.7)
DETAIL = (4.6, 3.7)  # width and height, in inches, of a picture in a section; two such pictures fit in a row
WIDE = (7.6, 3.6)  # width and height, in inches, of a picture that fills a row, such as a tree
LARGEST = 6.8  # maximum height, in inches, of the picture of a matrix
ROWS_SHOWN = 30  # number of rows that most tables show at most


@dataclass(frozen=True)
class Table:
    """A table, of which the page shows the first ``n_shown`` rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    n_shown: int = ROWS_SHOWN


@dataclass(frozen=True)
class Picture:
    """A picture: its message, a function that draws it into the Axes ``ax``, and its size in inches.

    Without a size, it has that of its place: `FRONT` or `DETAIL`.
    """

    says: str
    draw: Callable[..., Any]
    size: tuple[float, float] | None = None


@dataclass(frozen=True)
class Section:
    """A folded part of a page, or an open one, whose pictures come first."""

    title: str
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = field(default=())
    note: str = ""
    is_open: bool = False


@dataclass(frozen=True)
class Answer:
    """The beginning of a page: paragraphs in plain words, doubts, and pictures, by default of size `FRONT`.

    The byline below the title names the method and the date; further paragraphs follow the pictures.
    """

    paragraphs: Sequence[str]
    doubts: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    byline: str = ""
    further: Sequence[str] = ()


def refuse_missing() -> None:
    """Raise an error, before any work, if a package that reports need is not installed."""
    if find_spec("matplotlib") is None:
        raise no_matplotlib()
    if find_spec("jinja2") is None:
        raise ImportError(f"reports need jinja2, which is not installed: {installing.command('plot')}.")


def render(title: str, answer: Answer, sections: Sequence[Section]) -> bytes:
    """Draw all pictures, and return the HTML page as bytes in UTF-8."""
    n_pictures = len(answer.pictures) + sum(len(section.pictures) for section in sections)
    words, letters = Glossary(), dict[str, str]()
    with progress.bar(n_pictures, "pictures") as bar:
        front = [_draw(picture, picture.size or FRONT, letters, bar) for picture in answer.pictures]
        drawn_sections = [
            {
                "title": section.title,
                "note": section.note,
                "is_open": section.is_open,
                "tables": [_format_table(table) for table in section.tables],
                "pictures": [_draw(picture, picture.size or DETAIL, letters, bar) for picture in section.pictures],
            }
            for section in sections
        ]
    mirror = " ".join(f"{red:g} {green:g} {blue:g} 0 {offset:g}" for red, green, blue, offset in MIRROR)
    text: str = _template().render(
        title=title, answer=answer, front=front, sections=drawn_sections, words=words, letters=letters, mirror=mirror
    )
    return text.encode(errors="replace")


@cache
def _template() -> Any:
    from jinja2 import Environment

    source = Path(__file__).with_name("page.html.jinja").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=False).from_string(source)


def _format_table(table: Table) -> dict[str, Any]:
    n_left_out = len(table.rows) - table.n_shown
    cells = zip(*table.rows[: table.n_shown], strict=True) if table.rows else [()] * len(table.columns)
    columns = [column(name, values) for name, values in zip(table.columns, cells, strict=True)]
    return {
        "title": table.title,
        "columns": columns,
        "rows": list(zip(*(of.cells for of in columns), strict=True)),
        "rest": f"… and {n_left_out:,} more" if n_left_out > 0 else "",
    }


def _draw(picture: Picture, size: tuple[float, float], letters: dict[str, str], bar: Any) -> dict[str, Any]:
    svg, title = draw_svg(picture.draw, size, picture.says, letters)
    bar.update(1)
    width, height = (round(INCH * inches) for inches in size)
    alt = f"{picture.says}: {title}" if title else picture.says
    points = " ".join(f"{72 * inches:g}" for inches in size)
    return {"says": picture.says, "alt": alt, "width": width, "height": height, "points": points, "svg": svg}


def side_of(n_rows: int) -> tuple[float, float]:
    """Return the width and height, in inches, of the picture of a matrix that has room for names and numbers."""
    side = min(max(DETAIL[1], 1.8 + 0.33 * n_rows), LARGEST)
    return side + 1.0, side
