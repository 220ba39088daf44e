"""Pictures of report pages as SVG within the page: sharp at each width, in the page's ink, on the page's paper.

A picture is an ordinary one of matplotlib, whose letters are outlines that all pictures of a page share. Its black,
its ink and its white become colours of the page, so that they follow the reader's light or dark mode; matrices of
shares, from white to dark blue, are mirrored in dark mode (class "mirrored"), from the paper to light blue.
"""

import io
import re
from collections.abc import Callable
from typing import Any

from gpuens.plotting.drawing import INK, SHARES

INCH = 96  # pixels of the page in one inch
SHARPNESS = 2  # ratio of a picture's pixels, where it has pixels, to page pixels
TEXT = 8.6  # size, in points, of the text in pictures; it equals 11.5 pixels
MOST_SHAPES = 500  # most points of a scatter that are drawn as shapes; more become pixels
MOST_CELLS = 400  # most rows and columns of an image that the browser scales, with sharp edges
PAGE_COLORS = {"#000000": "currentColor", INK: "currentColor", "#ffffff": "var(--paper)"}
MIRRORED = "mirrored"

_COLOR = re.compile(rf"(?<=: )(?:{'|'.join(PAGE_COLORS)})(?=[;\"])")
_LETTER = re.compile(r'<path id="([\w-]+-[0-9a-f]+)" (d="[^"]*"[^>]*)/>')
_GROUP = re.compile(r'<g id="([^"]*)"')
_LEFT_OUT = re.compile(
    r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>| id=\"image\w+\"|<defs>\s*</defs>|<g>\s*</g>|<g/>",
    re.DOTALL,
)
_PATH = re.compile(r' d="([^"]*)"')
_FRACTION = re.compile(r"\d*\.\d{2,}")


def draw_svg(
    draw: Callable[..., Any], size: tuple[float, float], salt: str, letters: dict[str, str]
) -> tuple[str, str]:
    """Draw a picture of ``size`` inches; return its content as SVG, without the outer element, and its title.

    The outlines of letters are added to ``letters``. ``salt`` makes the picture's ids differ from those of others.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: Any = {  # mypy knows the names of all settings
        "font.size": TEXT,
        "axes.titlesize": TEXT + 1,
        "legend.fontsize": TEXT,
        "image.composite_image": False,
        "svg.fonttype": "path",
        "svg.hashsalt": salt,
    }
    file = io.BytesIO()
    with rc_context(settings):
        figure = Figure(figsize=size, dpi=SHARPNESS * INCH, layout="constrained")
        ax = figure.subplots()
        draw(ax=ax)
        title = ax.get_title()
        _fit_to_page(figure)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _shorten_svg(file.getvalue().decode(), letters), title


def _fit_to_page(figure: Any) -> None:
    """Leave titles to the page's captions, make many points pixels, and mark matrices of shares."""
    for ax in figure.axes:
        ax.set_title("")
        for points in ax.collections:
            if len(points.get_offsets()) > MOST_SHAPES:
                points.set_rasterized(True)
        for image in ax.images:
            if max(image.get_array().shape[:2]) <= MOST_CELLS:
                image.set_interpolation("none")
            if image.get_cmap().name == SHARES:
                ax.set_gid(MIRRORED)
                if image.colorbar is not None:
                    image.colorbar.ax.set_gid(MIRRORED)


def _shorten_svg(text: str, letters: dict[str, str]) -> str:
    """Return the content of matplotlib's SVG with the page's colours, short numbers, and no letters of its own."""
    text = text[text.find("<svg") :]
    text = text[text.find(">") + 1 : text.rfind("</svg>")]
    letters.update(_LETTER.findall(text))
    text = _LETTER.sub("", text)
    text = _GROUP.sub(lambda group: f'<g class="{MIRRORED}"' if group[1] == MIRRORED else "<g", text)
    text = _PATH.sub(lambda path: f' d="{_FRACTION.sub(_round, path[1])}"', text)
    text = _COLOR.sub(lambda color: PAGE_COLORS[color[0]], text).replace("xlink:href", "href")
    n = -1
    while n != len(text):  # groups within groups
        n, text = len(text), _LEFT_OUT.sub("", text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _round(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
