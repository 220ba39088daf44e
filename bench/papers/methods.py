"""The methods that the CCE experiments compare: the paper's six, and three like its baselines, without coupling."""

from collections.abc import Callable
from typing import Any

import numpy as np

import gpuens as ge
from gpuens.partition import METIS, LabelKMeans, meta_clustering
from gpuens.similarity import Coassociation

OURS = {"CgC": ge.CgC, "OC-Ia": ge.OCIa, "OC-H": ge.OCH, "CrC-Ia": ge.CrCIa, "CrC-C": ge.CrCC, "S-CCE": ge.SCCE}
UNSEEDED = ("OC-H",)  # nothing is drawn


def consensus(method: str, ensemble: ge.Ensemble, k: int, seed: int) -> np.ndarray:
    """Return the labels of all objects."""
    if method in OURS:
        return estimator(method, k, seed).fit_predict(ensemble)
    reduced = ge.CoreGroups().reduce(ensemble)
    return reduced.expand(CONTROLS[method](reduced, k, seed))


def estimator(method: str, k: int, seed: int, **parameters: Any) -> Any:
    seeded = {} if method in UNSEEDED else {"random_state": seed}
    return OURS[method](k, **seeded, **parameters)


# --- the same partitioners on what is not coupled ---------------------------------------------------------------------


def cspa(reduced: ge.Reduction, k: int, seed: int) -> np.ndarray:
    """METIS on plain co-association, as OC-Ia's on IaOSO."""
    return METIS(random_state=seed)(Coassociation()(reduced.rows), reduced.rows, k).labels


def mcla(reduced: ge.Reduction, k: int, seed: int) -> np.ndarray:
    """Meta-clusters by the Jaccard index of clusters, as CrC-Ia's and CrC-C's by the similarity of their objects."""
    shared = ge.contingency.intersections(reduced.rows, layout="dense")
    sizes = np.diag(shared)
    jaccard = shared / np.maximum(sizes[:, None] + sizes - shared, 1)
    return meta_clustering(jaccard, reduced.rows, k, random_state=seed).labels


def qmi(reduced: ge.Reduction, k: int, seed: int) -> np.ndarray:
    """k-means on one column for each cluster, as CgC's on coupled similarities."""
    return LabelKMeans(random_state=seed)(Coassociation()(reduced.rows), reduced.rows, k).labels


CONTROLS: dict[str, Callable[[ge.Reduction, int, int], np.ndarray]] = {"QMI": qmi, "CSPA": cspa, "MCLA": mcla}
METHODS = ("QMI", "CgC", "CSPA", "OC-Ia", "OC-H", "MCLA", "CrC-Ia", "CrC-C", "S-CCE")
