"""Warnings about columns that are probably not clusterings: batches, donors, the true classes."""

from typing import Any

import numpy as np

from gpuens import checks

PAIRS = 20_000  # sampled pairs of objects for comparing clusterings
ODD_NAMES = frozenset(
    (
        *("batch", "sample", "sample_id", "donor", "donor_id", "patient", "patient_id", "condition", "sex", "study"),
        *("truth", "ground_truth", "true_label", "true_labels", "class", "target", "cell_type", "celltype"),
    )
)


def warn_of_odd_columns(codes: np.ndarray, n_clusters: np.ndarray, names: list[Any], source: str) -> None:
    """Warn about columns that are probably not clusterings, with the rule that found them."""
    for place, reason in odd_columns(codes, n_clusters, names).items():
        checks.warn(
            f"{source}: column {names[place]!r} is unlike the other clusterings ({reason}); leave it out if it is not "
            "one."
        )


def odd_columns(codes: np.ndarray, n_clusters: np.ndarray, names: list[Any]) -> dict[int, str]:
    """Return the places of the columns that are probably not clusterings, and why.

    - The name says so: a batch, a donor, the truth, ….
    - Far more values than the others: more than four times as many as any of them, and more than 2√N.
    - No agreement with the others: among 20,000 pairs of objects, "in the same cluster" correlates with none of them
      (below .05), while most of the others correlate with each other (.2 and above).
    """
    n, m = codes.shape
    if m < 2:
        return {}
    why = {place: "by its name" for place, name in enumerate(names) if str(name).lower() in ODD_NAMES}
    if m > 2 and n >= 100:
        largest = np.argsort(n_clusters)[::-1]
        most, second = (int(n_clusters[place]) for place in largest[:2])
        if most > max(2 * n**0.5, 4 * second):
            why.setdefault(int(largest[0]), f"{most} values where the others have at most {second}")
        for place in _independent(codes):
            why.setdefault(place, "it agrees with none of the others better than chance")
    return why


def _independent(codes: np.ndarray) -> list[int]:
    n, m = codes.shape
    if m > 200:  # too many to have been collected by hand
        return []
    rng = np.random.default_rng(0)
    first = rng.integers(0, n, PAIRS)
    second = (first + rng.integers(1, n, PAIRS)) % n
    together = (codes[first] == codes[second]) & (codes[first] != np.iinfo(codes.dtype).max)
    varied = np.flatnonzero(together.any(axis=0) & ~together.all(axis=0))
    if len(varied) < 3:
        return []
    agreement = np.abs(np.corrcoef(together[:, varied].T.astype(np.float32)))
    np.fill_diagonal(agreement, 0.0)
    best = agreement.max(axis=1)
    return varied[best < 0.05].tolist() if np.median(best) >= 0.2 else []
