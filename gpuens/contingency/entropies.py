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
KEPT, KEPT_BYTES = 4, 2**20  # number of ensembles whose entropies are kept, and their largest number of bytes
SMALL = 32  # objects (or weight) of a cluster up to which terms of the entropy are looked up
BITS = 64  # most objects for which a cluster is a word, with a bit for each object


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
    labels, whole = labels_of(ens, device), checks.check_weights(weights, ens.n_objects)
    if device == "cpu" and labels.matrix.nbytes <= KEPT_BYTES:
        w = None if whole is None else (whole.tobytes(), whole.dtype.str)
        matrix = np.ascontiguousarray(labels.matrix)
        return _of_few(matrix.tobytes(), matrix.dtype.str, tuple(labels.n_clusters), w).copy()
    return _counted(labels, whole)


@lru_cache(maxsize=KEPT)
def _of_few(codes: bytes, dtype: str, n_clusters: tuple[int, ...], weights: tuple[bytes, str] | None) -> np.ndarray:
    """Return the entropies for few labels, kept because fits for several numbers of clusters need the same ones."""
    matrix = np.frombuffer(codes, dtype).reshape(len(n_clusters), -1)
    return _counted(Labels(matrix, list(n_clusters)), None if weights is None else np.frombuffer(*weights))


def _counted(labels: Labels, whole: np.ndarray | None) -> np.ndarray:
    n_clusterings, some = len(labels.n_clusters), Distinct.among(labels)
    one = _entropy_unit(n_clusterings)
    total = _of_words(some, one) if _are_words(some.labels, whole) else _of_tables(some, whole, one)
    if len(some.times) < n_clusterings:
        total = some.of_all_clusters(total, labels)
    found: np.ndarray = total / one
    return found


def _are_words(labels: Labels, whole: np.ndarray | None) -> bool:
    """Return whether clusters are words: of few objects of weight 1, with all labels known."""
    matrix, k = labels.matrix, np.array(labels.n_clusters)
    few = labels.device == "cpu" and matrix.shape[1] <= BITS
    return bool(few and (whole is None or (whole == 1).all()) and (matrix < k[:, None]).all())


def _of_words(some: Distinct, one: float) -> np.ndarray:
    """Return the sums of terms (N_c,) for clusters that are words; equal words have equal sums."""
    matrix, k = some.labels.matrix, some.labels.n_clusters
    first, n = np.cumsum(k) - k, matrix.shape[1]
    words, terms = np.zeros(sum(k), dtype=np.uint64), np.zeros((n + 1, n + 1), dtype=np.int64)
    for x, codes in enumerate(matrix.T):
        words[first + codes] |= np.uint64(1 << x)
    cpu.entropy_terms(one, terms)
    distinct, of = np.unique(words, return_inverse=True)
    times = np.bincount(of, weights=np.repeat(some.times, k)).astype(np.int64)
    total = np.empty(len(distinct), dtype=np.int64)
    cpu.entropies_of_words(distinct, times, terms, total)
    found: np.ndarray = total[of]
    return found


def _of_tables(some: Distinct, whole: np.ndarray | None, one: float) -> np.ndarray:
    """Return the sums of terms (N_c,), from the tables of all pairs of clusterings."""
    offsets = np.concatenate([[0], np.cumsum(some.labels.n_clusters)])
    total, adding = np.zeros(offsets[-1], dtype=np.int64), Lock()
    terms = np.zeros((SMALL, SMALL) if whole is None or whole.dtype.kind == "i" else (0, 0), dtype=np.int64)
    cpu.entropy_terms(one, terms)

    def add(found: cpu.Cells) -> None:
        n_tables = len(found.starts) - 1
        own = slice(*offsets[found.i : found.i + 2])
        others = slice(offsets[found.first], offsets[found.first + n_tables])
        of_rows, of_cols = (np.zeros(part.stop - part.start, dtype=np.int64) for part in (own, others))
        cpu.add_entropies(found, offsets, one, terms, some.times, of_rows, of_cols)
        with adding:
            total[own] += of_rows
            total[others] += of_cols

    over_cells(some.labels, whole, add)
    return total


def entropy_of(shared: Table, offsets: np.ndarray) -> np.ndarray:
    """Return `entropy`, bit for bit, from counted `intersections`."""
    one, total = _entropy_unit(len(offsets) - 1), np.zeros(int(offsets[-1]), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        step = max(1, ROWS_AT_ONCE // int(offsets[-1]))
        for first in range(start, stop, step):
            rows, cols, counts = cells(shared[first : min(first + step, stop)])
            cpu.add_row_entropies(rows, cols, counts, offsets, one, total[first:])

    devices.over_ranges(work, len(total))
    return total / one


def _entropy_unit(n_clusterings: int) -> float:
    # H(C) <= 32 M, because a clustering has at most 2^32 clusters; so M.bit_length() + 5 bits precede the binary point
    return 2.0 ** (62 - 5 - n_clusterings.bit_length())
