"""Reports: a folder of pictures (dendrogram, lifetimes, correspondences), or one page with sizes and pictures."""

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gpuens import plotting, progress
from gpuens.io.atomic import replacing
from gpuens.partition.linkage.partitioners import Linkage
from gpuens.partition.soft_correspondence import SoftCorrespondence


def has_pictures(estimator: Any) -> bool:
    """Return whether an estimator will have pictures."""
    return isinstance(estimator._parts()[1], (Linkage, SoftCorrespondence))


def pictures(estimator: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each picture of a fitted estimator, and a function that draws it."""
    if hasattr(estimator, "dendrogram_"):
        yield "dendrogram", partial(plotting.dendrogram, estimator)
        yield "lifetimes", partial(plotting.lifetimes, estimator)
    if hasattr(estimator, "correspondence_"):
        digits = len(str(len(estimator.correspondence_) - 1))
        for h in range(len(estimator.correspondence_)):
            yield f"correspondence_{h:0{digits}}", partial(plotting.correspondence, estimator, h)


def write_report(estimator: Any, folder: str) -> list[str]:
    """Write the pictures of a fitted estimator into a folder, created if needed, and return their paths.

    ``correspondence_<h>.png`` shows how the clusters of clustering h correspond to the consensus. Pictures of earlier
    reports in the folder are removed first.
    """
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if re.fullmatch(r"(dendrogram|lifetimes|correspondence_\d+)\.png", name):
            os.unlink(os.path.join(folder, name))
    written = []
    wanted = list(pictures(estimator))
    with progress.bar(len(wanted), "pictures") as bar:
        for name, draw in wanted:
            path = os.path.join(folder, f"{name}.png")
            with replacing(path) as file:
                draw().figure.savefig(file, format="png")
            written.append(path)
            bar.update(1)
    return written


def page(title: str, estimator: Any, facts: dict[str, Any]) -> bytes:
    """Return an HTML page, in one file, with facts and the pictures of a fitted estimator."""
    sizes: tuple[str, Callable[[], Any]] = ("sizes", partial(plotting.sizes, estimator.labels_))
    return _page(title, [[name, value] for name, value in facts.items()], dict((sizes, *pictures(estimator))))


def of_comparison(comparison: Any, title: str) -> bytes:
    """Return an HTML page, in one file, with the table and the pictures of a `gpuens.comparison.Comparison`."""
    shown = comparison.table.round(4).reset_index()
    lines = [shown.columns.tolist(), *shown.astype(object).to_numpy().tolist()]
    left_out = [[name, why] for name, why in comparison.left_out.items()]
    return _page(title, lines, {"agreement between the answers": partial(plotting.answers, comparison)}, left_out)


def _page(
    title: str, lines: list[list[Any]], drawings: dict[str, Callable[[], Any]], more: list[list[Any]] | None = None
) -> bytes:
    """Return an HTML page with a table, pictures and another table."""
    import base64
    import html
    import io

    def table(lines: list[list[Any]]) -> str:
        rows = ("<tr><th>" + "<td>".join(html.escape(str(value)) for value in line) for line in lines)
        return "<table>\n" + "\n".join(rows) + "\n</table>\n"

    def drawn(name: str, draw: Callable[[], Any]) -> str:
        picture = io.BytesIO()
        draw().figure.savefig(picture, format="png")
        encoded = base64.b64encode(picture.getvalue()).decode()
        return f'<h2>{html.escape(name)}</h2>\n<img alt="{html.escape(name)}" src="data:image/png;base64,{encoded}">\n'

    body = "".join(drawn(name, draw) for name, draw in drawings.items())
    body += f"<h2>left out</h2>\n{table(more)}" if more else ""
    heading = html.escape(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>{heading}</title>\n'
        "<style>body {font: 16px sans-serif; margin: 2em auto; max-width: 60em} th {text-align: left} "
        "td {padding: 0 .5em} table {display: block; overflow-x: auto} img {max-width: 100%}</style>\n"
        f"<h1>{heading}</h1>\n{table(lines)}{body}</html>\n"
    ).encode(errors="replace")
