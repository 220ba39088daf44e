"""The pictures that ``gpuens run --report`` writes: dendrogram, lifetimes and correspondences."""

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
