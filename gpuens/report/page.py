"""A page of HTML in one file: sections of tables and pictures, without scripts and without anything from elsewhere."""

import base64
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpuens import installing, progress
from gpuens.plotting import for_files, no_matplotlib

DPI = 110  # of pictures: twenty of them are 1 MB
ROWS_SHOWN = 30  # of a table


@dataclass(frozen=True)
class Table:
    """A table; of more than 30 rows the first are shown."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Picture:
    """What a picture says, and a function that draws it and returns its Axes."""

    says: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    title: str
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = field(default=())
    note: str = ""


def refuse_missing() -> None:
    """Refuse pages where a package for them is not installed, before the work."""
    if find_spec("matplotlib") is None:
        raise no_matplotlib()
    if find_spec("jinja2") is None:
        raise ImportError(f"reports need jinja2, which is not installed: {installing.command('plot')}.")


def render(title: str, lead: Iterable[str], sections: Sequence[Section]) -> bytes:
    """Return the page as UTF-8; ``lead`` are the sentences that come first."""
    n_pictures = sum(len(section.pictures) for section in sections)
    with progress.bar(n_pictures, "pictures") as bar:
        shown = [
            {
                "title": section.title,
                "note": section.note,
                "tables": [_shown(table) for table in section.tables],
                "pictures": [_drawn(picture, bar) for picture in section.pictures],
            }
            for section in sections
        ]
    text: str = _template().render(title=title, lead=list(lead), sections=shown)
    return text.encode(errors="replace")


@cache
def _template() -> Any:
    from jinja2 import Environment

    source = Path(__file__).with_name("page.html.jinja").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=False).from_string(source)


def _shown(table: Table) -> dict[str, Any]:
    rest = len(table.rows) - ROWS_SHOWN
    return {
        "title": table.title,
        "columns": table.columns,
        "rows": [[text_of(cell) for cell in row] for row in table.rows[:ROWS_SHOWN]],
        "rest": f"… and {rest:,} more" if rest > 0 else "",
    }


def _drawn(picture: Picture, bar: Any) -> dict[str, str]:
    file = io.BytesIO()
    with for_files():
        ax = picture.draw()
    ax.figure.savefig(file, format="png", dpi=DPI)
    bar.update(1)
    alt = f"{picture.says}: {ax.get_title()}" if ax.get_title() else picture.says
    return {"says": picture.says, "alt": alt, "png": base64.b64encode(file.getvalue()).decode()}


def text_of(value: Any) -> str:
    """Return a value as a cell shows it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {text_of(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text_of, value[:20])) + " …" * (len(value) > 20)
    return str(value)
