"""The uncertainty of clusters with respect to the ensemble, from their intersections."""

from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from gpuens.contingency.counting import over_cells
from gpuens.contingency.distinct import Distinct
from gpuens.contingency.labels import Labels, Table, ensemble_and_weights, labels_of
from gpuens.contingency.tables import cells
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

ROWS_AT_ONCE = 2**22  # cells of the table of all clusters that are processed together
CACHED_ENSEMBLES = 4  # ensembles whose entropies are kept
CACHED_BYTES = 2**20  # most bytes of the labels of such an ensemble
SMALL_CLUSTER = 32  # objects (or weight) of a cluster up to which terms of the entropy are looked up
WORD_BITS = 64  # most objects for which a cluster is a word, with a bit for each object


def entropy(ens: Any, weights: Any = None, *, device: str = "auto") -> np.ndarray:
    """Return the uncertainty H(C) of each cluster with respect to the whole ensemble, in bits.

    H(C) = Σ_m H^m(C), H^m(C) = -Σ_j p(C, C_j^m) log2 p(C, C_j^m), p(C, C_j^m) = |C ∩ C_j^m| / |C| (Huang, Wang and Lai
    2018, "Locally weighted ensemble clustering", equations 7-9). Objects of C that are missing in clustering m are
    omitted from p; a cluster without labelled objects in m contributes 0. N_c × N_c is never in memory.

    The terms are summed in fixed point (52 binary places for 16 to 31 clusterings). Results are bit-identical for any
    number of threads and any order of clusters and clusterings, and, unless weights are floats, of objects.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    weights : array (n_objects,), optional
        Weights of the objects, positive numbers.

    Returns
    -------
    ndarray (n_clusters,), float64

    Examples
    --------
    >>> import gpuens as ge
    >>> columns = [list("0000000011122222"), list("0011122200022222"), list("0000111100012222")]
    >>> ge.contingency.entropy(columns).round(2).tolist()
    [2.56, 0.0, 0.72, 0.97, 0.92, 1.95, 1.85, 1.44, 0.0]
    """
    ens, weights, device = ensemble_and_weights(ens, weights, device)
    labels, weights = labels_of(ens, device), checks.check_weights(weights, ens.n_objects)
    if device == "cpu" and labels.matrix.nbytes <= CACHED_BYTES:
        key = None if weights is None else (weights.tobytes(), weights.dtype.str)
        matrix = np.ascontiguousarray(labels.matrix)
        return _entropies_from_bytes(matrix.tobytes(), matrix.dtype.str, tuple(labels.n_clusters), key).copy()
    return _compute_entropies(labels, weights)


@lru_cache(maxsize=CACHED_ENSEMBLES)
def _entropies_from_bytes(
    codes: bytes, dtype: str, n_clusters: tuple[int, ...], weights: tuple[bytes, str] | None
) -> np.ndarray:
    """Return the entropies for few labels, kept because fits for several numbers of clusters need the same ones."""
    matrix = np.frombuffer(codes, dtype).reshape(len(n_clusters), -1)
    return _compute_entropies(Labels(matrix, list(n_clusters)), None if weights is None else np.frombuffer(*weights))


def _compute_entropies(labels: Labels, weights: np.ndarray | None) -> np.ndarray:
    n_clusterings, distinct = len(labels.n_clusters), Distinct.among(labels)
    unit = _entropy_unit(n_clusterings)
    total = _sum_words(distinct, unit) if _are_words(distinct.labels, weights) else _sum_tables(distinct, weights, unit)
    if len(distinct.times) < n_clusterings:
        total = distinct.expand(total, labels)
    return total / unit


def _are_words(labels: Labels, weights: np.ndarray | None) -> bool:
    """Return whether clusters are words: of few objects of weight 1, with all labels known."""
    matrix, k = labels.matrix, np.array(labels.n_clusters)
    is_small = labels.device == "cpu" and matrix.shape[1] <= WORD_BITS
    return bool(is_small and (weights is None or (weights == 1).all()) and (matrix < k[:, None]).all())


def _sum_words(distinct: Distinct, unit: float) -> np.ndarray:
    """Return the sums of terms (N_c,) for clusters that are words; equal words have equal sums."""
    matrix, k = distinct.labels.matrix, distinct.labels.n_clusters
    first, n = np.cumsum(k) - k, matrix.shape[1]
    words, terms = np.zeros(sum(k), dtype=np.uint64), np.zeros((n + 1, n + 1), dtype=np.int64)
    for x, codes in enumerate(matrix.T):
        words[first + codes] |= np.uint64(1 << x)
    cpu.entropy_terms(unit, terms)
    unique_words, word_of = np.unique(words, return_inverse=True)
    times = np.bincount(word_of, weights=np.repeat(distinct.times, k)).astype(np.int64)
    total = np.empty(len(unique_words), dtype=np.int64)
    cpu.entropies_of_words(unique_words, times, terms, total)
    return total[word_of]


def _sum_tables(distinct: Distinct, weights: np.ndarray | None, unit: float) -> np.ndarray:
    """Return the sums of terms (N_c,), from the tables of all pairs of clusterings."""
    offsets = np.concatenate([[0], np.cumsum(distinct.labels.n_clusters)])
    total, adding = np.zeros(offsets[-1], dtype=np.int64), Lock()
    n_terms = SMALL_CLUSTER if weights is None or weights.dtype.kind == "i" else 0
    terms = np.zeros((n_terms, n_terms), dtype=np.int64)
    cpu.entropy_terms(unit, terms)

    def add(cells: cpu.Cells) -> None:
        n_tables = len(cells.starts) - 1
        row_clusters = slice(*offsets[cells.i : cells.i + 2])
        column_clusters = slice(offsets[cells.first], offsets[cells.first + n_tables])
        row_sums, column_sums = (np.zeros(x.stop - x.start, dtype=np.int64) for x in (row_clusters, column_clusters))
        cpu.add_entropies(cells, offsets, unit, terms, distinct.times, row_sums, column_sums)
        with adding:
            total[row_clusters] += row_sums
            total[column_clusters] += column_sums

    over_cells(distinct.labels, weights, add)
    return total


def entropy_of(shared: Table, offsets: np.ndarray) -> np.ndarray:
    """Return `entropy`, bit for bit, from counted `intersections`."""
    unit, total = _entropy_unit(len(offsets) - 1), np.zeros(int(offsets[-1]), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        step = max(1, ROWS_AT_ONCE // int(offsets[-1]))
        for first in range(start, stop, step):
            rows, cols, counts = cells(shared[first : min(first + step, stop)])
            cpu.add_row_entropies(rows, cols, counts, offsets, unit, total[first:])

    devices.over_ranges(work, len(total))
    return total / unit


def _entropy_unit(n_clusterings: int) -> float:
    # H(C) <= 32 M, because a clustering has at most 2^32 clusters; so M.bit_length() + 5 bits precede the binary point
    return 2.0 ** (62 - 5 - n_clusterings.bit_length())
