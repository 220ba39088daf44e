"""Base clusterings by any clusterers with scikit-learn's interface."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import check_sparse
from gpuens.labels.frames import as_pandas
from gpuens.runtime import checks
from gpuens.runtime import progress as progress_bars
from gpuens.runtime.device import home_of, to_host


def from_estimators(
    estimators: Sequence[Any], X: Any, *, n_jobs: int | None = None, progress: bool | str = "auto"
) -> Ensemble:
    """Cluster the objects once with each of several clusterers; return the ensemble of their labels.

    Parameters
    ----------
    estimators : sequence of estimators, or of pairs (name, estimator)
        Clusterers with scikit-learn's interface (``fit_predict``), such as agglomerative or spectral clustering,
        HDBSCAN or a pipeline. Clones are fitted, so that the given objects do not change. The label -1 (noise) is a
        missing label.
    X : anything that the estimators accept
        Features of the objects.
    n_jobs : int, optional
        The number of clusterers that run at the same time, in threads, as in scikit-learn: None means 1, -1 all
        processors, -2 all processors except one.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.

    Returns
    -------
    Ensemble (n_objects, n_estimators)
        Clusterings have the names of the pairs, or otherwise their positions 0 … M - 1.

    Raises
    ------
    ValueError, TypeError
        For an empty list, estimators without ``fit_predict``, repeated names, a wrong number of labels, and an object
        that no clusterer labels. Errors of a clusterer have a note with its name.

    Examples
    --------
    >>> import gpuens as ge
    >>> from sklearn.cluster import AgglomerativeClustering, SpectralClustering
    >>> X = ge.datasets.load("iris").X
    >>> ward, spectral = AgglomerativeClustering(3), SpectralClustering(3, random_state=0)
    >>> ge.generate.from_estimators([("ward", ward), ("spectral", spectral)], X).names
    ['ward', 'spectral']
    """
    from joblib import Parallel, delayed

    clusterers = _name_estimators(estimators)
    if n_jobs is not None and checks.check_integer(n_jobs, "n_jobs", minimum=-checks.LARGEST) == 0:
        raise ValueError("n_jobs must not be 0; give a number of clusterers, or -1 for all processors.")
    X = as_pandas(X)
    if not hasattr(X, "shape") and not hasattr(X, "__len__"):
        raise TypeError(f"X must be the features of the objects, not {checks.shown(X)}.")
    check_sparse(X, "X")
    n_objects = X.shape[0] if hasattr(X, "shape") else len(X)
    columns = []
    with progress_bars.bar(len(clusterers), "clusterers", show=progress) as bar:
        for labels in Parallel(n_jobs, prefer="threads", return_as="generator")(
            delayed(_labels_of)(name, clusterer, X, n_objects) for name, clusterer in clusterers.items()
        ):
            columns.append(labels)
            bar.update(1)
    ensemble = Ensemble(columns, names=list(clusterers))
    ensemble.device_kind = home_of(X, "X")
    return ensemble


def _name_estimators(estimators: Any) -> dict[Any, Any]:
    """Return {name: clusterer}; a clusterer without a name is named by its position.

    Raise an error if an element of ``estimators`` is not a clusterer.
    """
    must = "estimators must be a list of clusterers, or of pairs (name, clusterer)"
    if hasattr(estimators, "fit_predict") or isinstance(estimators, (str, dict)) or not hasattr(estimators, "__iter__"):
        raise TypeError(f"{must}, not {checks.shown(estimators)}.")
    pairs = [entry if isinstance(entry, tuple) and len(entry) == 2 else (None, entry) for entry in estimators]
    if not pairs:
        raise ValueError("estimators are empty; give at least one clusterer.")
    named: dict[Any, Any] = {}
    for m, (name, entry) in enumerate(pairs):
        if isinstance(entry, type) or not hasattr(entry, "fit_predict"):
            raise TypeError(f"estimators must have fit_predict, which {checks.shown(entry)} lacks; pass a clusterer.")
        if not isinstance(name, str | None):
            raise TypeError(f"{must}, but the name {checks.shown(name)} is no text.")
        if name in named:
            raise ValueError(f"estimators have the name {name!r} twice; give each its own name.")
        named[m if name is None else name] = entry
    return named


def _labels_of(name: Any, estimator: Any, X: Any, n_objects: int) -> np.ndarray:
    """Return the labels (n_objects,) that a clone of a clusterer gives, in host memory.

    If the clusterer raises an error, add the name of the clusterer to the error message.
    """
    from sklearn.base import clone

    clone_name = f"{type(estimator).__name__} ({name!r})"
    try:
        labels = to_host(clone(estimator).fit_predict(X))
    except Exception as error:
        error.add_note(f"This is an error of the clusterer {clone_name}.")
        raise
    if labels.shape != (n_objects,):
        raise ValueError(
            f"{clone_name} returns labels of shape {labels.shape}, not one for each of {n_objects} objects."
        )
    return labels
