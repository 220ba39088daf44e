"""The demonstration: it makes base clusterings by k-means, runs four methods, and shows their scores and a picture."""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens import datasets, generate, metrics, plotting
from gpuens.io import outputs
from gpuens.io.atomic import replacing
from gpuens.kmeans import nested
from gpuens.labels.ensemble import Ensemble
from gpuens.methods import methods
from gpuens.plotting.drawing import LONGEST_TITLE, for_files, shorten
from gpuens.runtime import checks, failures

SHOWN = ("eac", "lwea", "lwgp", "hbgf")
PICTURED = "lwea"  # method whose consensus gives the order of the objects in the picture
N_CLUSTERINGS = 20  # number of base clusterings in the demonstration


def demo(
    data: str | os.PathLike[str] = "digits",
    output_dir: str | os.PathLike[str] = ".",
    *,
    seed: int = 0,
    say: Callable[[str], Any] = print,
) -> str | None:
    """Cluster a data set 20 times by k-means, and compare the consensus labels that four methods find.

    Parameters
    ----------
    data : str or path
        A name or path for `gpuens.datasets.load`. Up to 20,000 objects are clustered with k from 2 to √N; more objects
        with k from the number of classes to 100.
    output_dir : path
        The folder of the picture, ``gpuens-demo-<name>.png``; it is created if missing.
    seed : int
    say : callable
        Called with each line of the table.

    Returns
    -------
    str or None
        The path of the picture, or None if matplotlib is missing or cannot write.

    Raises
    ------
    OSError, ValueError
        For data sets that cannot be loaded or have no classes, and for unwritable places.
    """
    checks.make_generator(seed)
    os.makedirs(output_dir, exist_ok=True)
    with failures.stage("read"):
        dataset = datasets.load(data)
        truth = dataset.y
        if truth is None:
            raise ValueError(f"data set {dataset.name!r} has no classes to compare results with; add them as y.")
    picture = os.path.join(output_dir, f"gpuens-demo-{dataset.name}.png")
    outputs.check_output(picture, [".png"])
    n_objects, n_features = dataset.X.shape
    k = int(truth.max()) + 1
    say(f"{dataset.name}: {n_objects:,} objects, {n_features:,} features, {k} classes ({dataset.source})")

    is_large = n_objects > nested.ALL_UP_TO
    k_base: Any = (k, max(100, 2 * k)) if is_large else (2, "sqrt")
    started = time.perf_counter()
    ensemble = generate.kmeans_ensemble(dataset.X, N_CLUSTERINGS, k_base, random_state=seed)
    ks = np.diff(ensemble.offsets)
    say(
        f"base clusterings: {len(ks)} k-means with k from {ks.min()} to {ks.max()}, "
        f"{time.perf_counter() - started:.1f} s"
    )
    say(f"\n{'':24}{'NMI':>8}{'ARI':>8}{'accuracy':>10}{'seconds':>9}")
    base = [metrics.scores(column, truth) for column in ensemble.to_array().T]
    say(_row("base clusterings, mean", {name: float(np.mean([score[name] for score in base])) for name in base[0]}))
    say(_row("base clusterings, best", max(base, key=lambda score: score["nmi"])))
    pictured = None
    for name in SHOWN:
        estimator = methods()[name](k)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=seed)
        _import_packages(estimator, ensemble)
        started = time.perf_counter()
        labels = estimator.fit(ensemble).labels_
        seconds = time.perf_counter() - started
        say(_row(type(estimator).__name__, metrics.scores(labels, truth), seconds))
        if name == PICTURED:
            pictured = labels
    say("")
    try:
        with for_files():
            ax: Any = plotting.coassociation_heatmap(ensemble, pictured)
    except (ImportError, OSError) as error:  # matplotlib is missing, or it finds no folder to store its fonts
        say(str(error))
        return None
    name = shorten(dataset.name, LONGEST_TITLE)
    ax.set_title(f"{name}: co-association in {len(ks)} clusterings, ordered by {PICTURED.upper()}")
    with replacing(picture) as file:
        ax.figure.savefig(file, format="png")
    say(f"picture: {picture}")
    return picture


def _row(name: str, scores: dict[str, float], seconds: float | None = None) -> str:
    time_cell = "" if seconds is None else f"{seconds:9.2f}"
    return f"{name:24}{scores['nmi']:8.3f}{scores['ari']:8.3f}{scores['accuracy']:10.3f}{time_cell}"


def _import_packages(estimator: Any, ensemble: Ensemble) -> None:
    """Fit the estimator to 50 objects, so that packages are imported before the fit whose time is shown."""
    sample = np.unique(np.linspace(0, len(ensemble) - 1, 50).astype(np.int64))
    type(estimator)(**estimator.get_params()).set_params(n_clusters=1).fit(ensemble.take(sample))
