"""Pictures of report pages as SVG within the page: sharp at each width, in the page's ink, on the page's paper.

A picture is an ordinary one of matplotlib, whose letters are outlines that all pictures of a page share. Its black,
its ink and its white become colours of the page, so that they follow the reader's light or dark mode; matrices of
shares, from white to dark blue, are mirrored in dark mode (class "mirrored"), from the paper to light blue.
"""

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.plotting.drawing import BLACK, INK, SHARES, ink_on
from gpuens.plotting.profiles import DIVERGING

INCH = 96  # pixels of the page in one inch
SHARPNESS = 2  # ratio of a picture's pixels, where it has pixels, to page pixels
TEXT = 8.6  # size, in points, of the text in pictures; it equals 11.5 pixels
MOST_SHAPES = 500  # most points of a scatter that are drawn as shapes; more become pixels
MOST_CELLS = 400  # most rows and columns of an image that the browser scales, with sharp edges
# black and white that a reader's dark mode exchanges, beside BLACK and WHITE, which stay
EXCHANGED_BLACK, EXCHANGED_WHITE = "#010101", "#fdfdfd"
PAGE_COLORS = {
    "#000000": "currentColor",
    INK: "currentColor",
    "#ffffff": "var(--paper)",
    EXCHANGED_BLACK: "var(--black)",
    EXCHANGED_WHITE: "var(--white)",
}
MIRRORED = "mirrored"
# red, green and blue of a mirrored colour by those of the colour and 1
MIRROR = np.array([[0.525, -1.307, -0.132, 1], [-0.379, -0.383, -0.128, 1], [-0.368, -1.234, 0.739, 1]])
PALE_MAPS = (SHARES, DIVERGING)  # colour maps from or around white

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
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_wrap(True)
        for points in ax.collections:
            if len(points.get_offsets()) > MOST_SHAPES:
                points.set_rasterized(True)
        for image in ax.images:
            if max(image.get_array().shape[:2]) <= MOST_CELLS:
                image.set_interpolation("none")
            if image.get_cmap().name in PALE_MAPS:
                ax.set_gid(MIRRORED)
                if image.colorbar is not None:
                    image.colorbar.ax.set_gid(MIRRORED)
                for text in ax.texts:
                    x, y = np.rint(text.get_position()).astype(int)
                    text.set_color(mirrored_ink(image.to_rgba(image.get_array()[y, x])[:3]))


def mirrored_ink(ground: Any) -> str:
    """Return the colour of a text on a colour that is mirrored in dark mode, with a contrast of 4.5 or more in both."""
    ink = ink_on(ground)
    if ink == ink_on(np.clip(MIRROR @ [*ground, 1.0], 0.0, 1.0)):
        return ink
    return EXCHANGED_BLACK if ink == BLACK else EXCHANGED_WHITE


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
