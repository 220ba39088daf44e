"""Names of clusters in the pictures of a page, in place of their numbers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import shorten, write_names
from gpuens.report.page import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 14  # maximum number of letters of a name in a picture
OF_CLUSTERS = ("cluster", "domain")  # beginnings of the labels of axes that have a row or column for each cluster


def name_clusters(pictures: Sequence[Picture], names: Sequence[Any] | None) -> list[Picture]:
    """Return pictures that show the names (k,) of the clusters; unchanged without names."""
    if names is None:
        return list(pictures)
    texts = {str(number): shorten(name, LONGEST_NAME) for number, name in enumerate(names)}
    return [replace(picture, draw=_with_names(picture.draw, texts)) for picture in pictures]


def _with_names(draw: Callable[..., Any], texts: dict[str, str]) -> Callable[..., Any]:
    def draw_named(*, ax: "Axes") -> "Axes":
        draw(ax=ax)
        for axis in (ax.xaxis, ax.yaxis):
            ticks = [tick.get_text() for tick in axis.get_ticklabels()]
            if axis.get_label_text().startswith(OF_CLUSTERS) and texts.keys() & {*ticks}:
                write_names(axis, np.asarray(axis.get_ticklocs()), [texts.get(tick, tick) for tick in ticks])
        legend = ax.get_legend()
        in_map = [text for text in ax.texts if not ax.images and not ax.patches]  # labels at the centres of clusters
        for text in [*([] if legend is None else legend.get_texts()), *in_map]:
            text.set_text(texts.get(text.get_text(), text.get_text()))
        return ax

    return draw_named
