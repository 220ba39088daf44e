"""Base clusterings by any clusterers of scikit-learn's interface."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens import checks
from gpuens import progress as progress_bars
from gpuens.ensemble import Ensemble


def from_estimators(
    estimators: Sequence[Any], X: Any, *, n_jobs: int | None = None, progress: bool | str = "auto"
) -> Any:
    """Cluster the objects once by each of several clusterers; return the ensemble of their labels.

    Parameters
    ----------
    estimators : sequence of estimators, or of pairs (name, estimator)
        Clusterers of scikit-learn's interface (``fit_predict``), such as agglomerative or spectral clustering, HDBSCAN
        or a pipeline. They are cloned, so that they stay as they are. The label -1, noise, is a missing label.
    X : anything that the estimators take
        Features of the objects.
    n_jobs : int, optional
        Clusterers that work at the same time, in threads, as in scikit-learn: None means 1, -1 all processors.
    progress : {"auto", True, False}
        Show a progress bar; "auto" does on a terminal.

    Returns
    -------
    Ensemble (n_objects, n_estimators)
        Clusterings are named as the pairs say, else 0 … M - 1.

    Raises
    ------
    ValueError, TypeError
        For no estimators, those without ``fit_predict``, labels that are not one for each object of X, and an object
        that no clusterer labels.

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
    from sklearn.base import clone

    if hasattr(estimators, "fit_predict") or isinstance(estimators, (str, dict)):
        raise TypeError("estimators must be a list of clusterers, or of pairs (name, clusterer).")
    given = list(estimators)
    if not given:
        raise ValueError("estimators are empty; give one clusterer at least.")
    pairs = [one if isinstance(one, tuple) and len(one) == 2 else (None, one) for one in given]
    for _, one in pairs:
        if isinstance(one, type) or not hasattr(one, "fit_predict"):
            raise TypeError(f"estimators must have fit_predict, which {checks.shown(one)} has not: pass a clusterer.")
    if n_jobs is not None and checks.check_integer(n_jobs, "n_jobs", minimum=-1) == 0:
        raise ValueError("n_jobs must not be 0: -1 means all processors.")

    def labels_of(one: Any) -> np.ndarray:
        return np.asarray(clone(one).fit_predict(X))

    found = []
    with progress_bars.bar(len(pairs), "clusterers", show=progress) as shown:
        for labels in Parallel(n_jobs, prefer="threads", return_as="generator")(
            delayed(labels_of)(one) for _, one in pairs
        ):
            found.append(labels)
            shown.update(1)
    n_objects = X.shape[0] if hasattr(X, "shape") else len(X)
    for (name, one), labels in zip(pairs, found, strict=True):
        if labels.shape != (n_objects,):
            raise ValueError(
                f"{name or type(one).__name__} returns labels of shape {labels.shape}, not one for each of {n_objects} "
                "objects."
            )
    names = [m if name is None else name for m, (name, _) in enumerate(pairs)]
    return Ensemble(found, names=names)
