"""The methods that the CCE script compares: the six of the paper, and three like its baselines, without coupling."""

from collections.abc import Callable
from typing import Any

import numpy as np

import gpuens as ge
from gpuens.partition import label_kmeans, meta_clustering, metis, squared_euclidean
from gpuens.reduction import Reduction
from gpuens.similarity.coassociation import coassociation_tile

OURS = {"CgC": ge.CgC, "OC-Ia": ge.OCIa, "OC-H": ge.OCH, "CrC-Ia": ge.CrCIa, "CrC-C": ge.CrCC, "S-CCE": ge.SCCE}
ALL_PAIRS = ("CSPA", "OC-Ia", "OC-H")  # hold something for every two distinct label rows
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


def cspa(reduced: Reduction, k: int, seed: int) -> np.ndarray:
    """METIS on plain co-association, as OC-Ia's on IaOSO."""
    rows, counts = reduced.ensemble, reduced.weights
    codes, each = rows.codes, np.ones(rows.n_clusters)

    def similarities_of(start: int, stop: int) -> np.ndarray:
        tile = coassociation_tile(codes[start:stop], codes, rows.offsets, each, device="cpu")
        return tile * counts[start:stop, None] * counts

    return metis(similarities_of, counts, k, random_state=seed)


def mcla(reduced: Reduction, k: int, seed: int) -> np.ndarray:
    """Meta-clusters by the Jaccard index of clusters, as CrC-Ia's and CrC-C's by the similarity of their objects."""
    shared = ge.contingency.intersections(reduced.ensemble, reduced.weights, layout="dense")
    sizes = np.diag(shared)
    jaccard = shared / np.maximum(sizes[:, None] + sizes - shared, 1)
    return meta_clustering(reduced.ensemble, jaccard, reduced.weights, k, random_state=seed).labels


def qmi(reduced: Reduction, k: int, seed: int) -> np.ndarray:
    """k-means on one column for each cluster, as CgC's on coupled similarities; centring moves no distance."""
    rows = reduced.ensemble
    features = squared_euclidean([np.eye(size) for size in np.diff(rows.offsets)])
    rng = np.random.default_rng(seed)
    return label_kmeans(rows.codes, rows.offsets, reduced.weights, features, k, rng=rng).labels


CONTROLS: dict[str, Callable[[Reduction, int, int], np.ndarray]] = {"QMI": qmi, "CSPA": cspa, "MCLA": mcla}
METHODS = ("QMI", "CgC", "CSPA", "OC-Ia", "OC-H", "MCLA", "CrC-Ia", "CrC-C", "S-CCE")
