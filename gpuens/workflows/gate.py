"""The agreement gate of `gpuens.cluster`: k-means takes the place of a consensus that agrees with no base clustering.

    consensus ─▶ mean ARI, mean Wallace index ─┬─ one is large ─▶ unchanged
                                               └─ both are small ─▶ k-means, as labels of the distinct label rows

Overlapping clusters in many dimensions have neither paths nor trees that base clusterings could follow. Such base
clusterings agree hardly more than by chance, and any consensus of them is drawn from noise, while k-means still finds
the clusters. The Wallace index spares a consensus of base clusterings with many more clusters: its clusters are whole
base clusters, but its ARI with them is small.
"""

from typing import Any

import numpy as np

from gpuens import generate
from gpuens.evidence import Agreement
from gpuens.evidence import agreement as agreement_with
from gpuens.evidence.agreement import measure_agreement
from gpuens.evidence.overlaps import Overlaps
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import Features
from gpuens.labels.rows import Rows, by_first_row
from gpuens.methods.fit import Learned
from gpuens.partition import Partition
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.similarity import Coassociation

# a consensus agrees with its base clusterings if one of the two mean indexes is at least this value
LEAST_ARI = 0.15
LEAST_WALLACE = 0.5
N_STARTS = 10  # number of starts of k-means, of which the best is kept
N_FITTED = 100_000  # largest number of objects to which k-means of features in chunks is fitted


def agreement_of(estimator: Any, ensemble: Any, sampled: Any, client: Any) -> Agreement | None:
    """Return the agreement of a consensus with its base clusterings.

    Return None for a consensus of a single cluster, and if the tables of intersections do not fit the memory. If the
    distinct label rows are not in this process, compare the objects with the numbers ``sampled``, which ascend.
    """
    if estimator.n_clusters_ == 1:
        return None
    try:
        if (row_labels := estimator.fit_.partition.labels) is not None:
            return measure_agreement(Overlaps.of(estimator.reduction_.rows, devices.to_host(row_labels)))
        from gpuens.distributed import rows_in_chunks

        with checks.recorded():  # a clustering may be constant in the sample
            sample = Ensemble(rows_in_chunks(ensemble, sampled, client), wide=True)
            return agreement_with(sample, estimator.predict(sample))
    except MemoryError:
        return None


def pass_gate(estimator: Any, X: Any, ensemble: Any, agreement: Agreement | None, seed: int, client: Any) -> bool:
    """Return whether a consensus agrees with its base clusterings; if not, say so, and put k-means in its place.

    ``X`` are the features, or None for a graph. The agreement and the name of the fallback become attributes.
    """
    ari, wallace = (None, None) if agreement is None else (agreement.mean_ari, agreement.mean_wallace)
    passed, fallback = ari is None or wallace is None or ari >= LEAST_ARI or wallace >= LEAST_WALLACE, None
    if not passed:
        about = f"the consensus agrees with none of the base clusterings (mean ARI {ari:.2f})"
        labels = None if X is None else _k_means(estimator, X, seed, client)
        if labels is not None and _take_labels(estimator, ensemble, labels, client):
            fallback = "k-means"
            checks.warn(f"{about}, so that k-means with {N_STARTS} starts took its place.")
        else:
            checks.warn(f"{about}, so that its clusters are doubtful; make other base clusterings.")
    estimator.add_results({"mean_ari": ari, "mean_wallace": wallace, "fallback": fallback})
    return passed


def _k_means(estimator: Any, X: Any, seed: int, client: Any) -> Any:
    """Return the labels of the best of several starts of k-means; None if they do not fit the memory."""
    k = estimator.n_clusters_ if estimator.n_clusters is None else estimator.n_clusters
    values = X.values if isinstance(X, Features) else X
    in_chunks: dict[str, Any] = (
        {"objects": min(N_FITTED, X.shape[0] - 1), "client": client} if devices.chunked(X) else {}
    )
    mapped = isinstance(values, np.memmap) and 8 * values.size > devices.memory_budget()  # k-means would read it whole
    # scikit-learn's k-means refuses 64-bit indices
    wide = hasattr(values, "tocsr") and max(values.nnz, *values.shape) >= 2**31
    if mapped or wide or (in_chunks and in_chunks["objects"] < k):
        return None
    try:
        labels = generate.kmeans_ensemble(X, 1, k, n_init=N_STARTS, random_state=seed, progress=False, **in_chunks)
    except MemoryError:
        return None
    return labels if devices.chunked(labels) else devices.to_host(labels.to_array())[:, 0]


def _take_labels(estimator: Any, ensemble: Any, labels: Any, client: Any) -> bool:
    """Put labels (n_objects,) of a further clustering in the place of the estimator's partition, if that is possible.

    Objects with equal label rows stay together, with the label that most of them have, so that evidence, new objects
    and model files are those of any consensus. It is not possible if the distinct label rows are not in this process.
    """
    reduction, in_chunks = estimator.reduction_, devices.chunked(labels)
    if estimator.fit_.partition.labels is None or (in_chunks and ensemble.shape[0] <= ensemble.shape[1]):
        return False
    if in_chunks:
        from gpuens.distributed import joint_rows

        try:
            rows, labels, counts = joint_rows(ensemble, labels, client)
        except MemoryError:
            return False
        row_of = reduction.find(rows)
    else:
        row_of, counts = devices.to_host(reduction.row_of), np.ones(len(labels), dtype=np.int64)
    row_labels = by_first_row(_most_frequent(row_of, labels, counts))
    k = int(row_labels.max()) + 1

    def learn(rows: Rows) -> Learned:
        similarity = estimator.fit_.learned.similarity
        similarity = Coassociation()(rows) if similarity is None else similarity
        return Learned(Partition(row_labels, k), similarity, dict(similarity.results))

    clusterings, device = reduction.ensemble if in_chunks else ensemble, reduction.rows.device
    estimator.fit_reduced(estimator.checked_parts(), clusterings, lambda device: reduction, learn, device=device)
    return True


def _most_frequent(groups: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the label of most objects of each group (G,); of equally frequent labels, the first.

    ``groups`` numbers the groups 0 … G - 1, each in use. Groups, labels and ``counts``, numbers of objects, are (n,).
    """
    k = int(labels.max()) + 1
    pairs, place = np.unique(groups * k + labels, return_inverse=True)
    times = np.bincount(place, weights=counts)
    order = np.lexsort((-times, pairs // k))  # a stable sort, so that the first label precedes equally frequent ones
    _, first = np.unique(pairs[order] // k, return_index=True)
    labels = pairs[order][first] % k
    return labels
