"""Agreement of clusterings: normalised mutual information and adjusted Rand index of their contingency tables."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpuens.contingency.clusters import intersections_of
from gpuens.contingency.counting import over_cells
from gpuens.contingency.distinct import Distinct, PairScores
from gpuens.contingency.labels import Labels, Table, ensemble_and_weights, labels_of
from gpuens.contingency.tables import cells, over_pairs
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime.exponentials import logarithms, natural_logarithms
from gpuens.runtime.native import cpu

AVERAGES: dict[str, Callable[[Any, Any], Any]] = {
    "geometric": lambda u, v: np.sqrt(u * v),
    "max": np.maximum,
    "arithmetic": lambda u, v: (u + v) / 2,
    "min": np.minimum,
}
FEW_OBJECTS = 2**13  # most objects for which products of two numbers of pairs are exact in float64


def agreement(
    ens: Any, score: str = "nmi", average: str = "geometric", weights: Any = None, *, device: str = "auto"
) -> np.ndarray:
    """Return the agreement of each pair of clusterings over the objects labelled in both.

    Parameters
    ----------
    ens : Ensemble, Rows, or anything that Ensemble takes
    score : {"nmi", "ari"}
    average : {"geometric", "max", "arithmetic", "min"}
        The normaliser of the mutual information; unused by the adjusted Rand index.
    weights : array (n_objects,), optional
        Weights of the objects, positive numbers.

    Returns
    -------
    ndarray (n_clusterings, n_clusterings), float64, symmetric with ones on its diagonal
        NaN for two clusterings without a labelled object in common.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.contingency.agreement([[0, 0, 1, 1], ["b", "b", "a", "a"], [0, 1, 0, 1]], score="ari").round(2).tolist()
    [[1.0, 1.0, -0.5], [1.0, 1.0, -0.5], [-0.5, -0.5, 1.0]]
    """
    ens, weights, device = ensemble_and_weights(ens, weights, device)
    checks.check_choice(score, "score", ("nmi", "ari"))
    checks.check_choice(average, "average", AVERAGES)
    of_table = ari_of if score == "ari" else partial(nmi_of, average=average)
    labels = labels_of(ens, device)
    return score_pairs(labels, of_table, checks.check_weights(weights, ens.n_objects)).matrix()


def row_agreement(rows: Rows, average: str = "geometric") -> PairScores:
    """Return `agreement` by normalised mutual information for the objects of rows; the rows may be in pieces."""
    of_table = partial(nmi_of, average=average)
    if rows.here:
        ens, weights, device = ensemble_and_weights(rows, None, rows.device)
        return score_pairs(labels_of(ens, device), of_table, checks.check_weights(weights, ens.n_objects))
    shared = intersections_of(rows)
    clusters = [slice(first, last) for first, last in itertools.pairwise(rows.offsets.tolist())]
    scores = np.eye(len(clusters))
    for i, j in itertools.combinations(range(len(clusters)), 2):
        scores[i, j] = scores[j, i] = of_table(shared[clusters[i], clusters[j]])
    return PairScores(scores, np.arange(len(clusters)))


def score_pairs(labels: Labels, of_table: Callable[[Table], float], w: np.ndarray | None = None) -> PairScores:
    """Return ``of_table`` of each pair of label columns; it is 1 for a column and itself, and for equal columns."""
    distinct = Distinct.among(labels)
    scores = np.eye(len(distinct.times))
    of_cells = scorer(of_table, labels.matrix.shape[1] if w is None else w.sum(), w)
    if of_cells is not None:
        over_cells(distinct.labels, w, lambda cells: place_scores(scores, cells, of_cells(cells)))
    else:
        for i, j, value in over_pairs(distinct.labels, w, lambda i, j, table: of_table(table)):
            scores[i, j] = scores[j, i] = value
    return PairScores(scores, distinct.of)


def place_scores(scores: np.ndarray, cells: cpu.Cells, values: Any) -> None:
    """Write the scores of the tables of some cells into a symmetric matrix."""
    partners = slice(cells.first, cells.first + len(cells.starts) - 1)
    scores[cells.i, partners] = scores[partners, cells.i] = values


def scorer(
    of_table: Callable[[Table], float], total: Any, w: np.ndarray | None
) -> Callable[[cpu.Cells], np.ndarray | list[float]] | None:
    """Return a function that computes ``of_table`` for many tables at once from their cells; None if there is none.

    ``total`` is the number of objects, or the sum of their weights ``w``.
    """
    if getattr(of_table, "func", of_table) is nmi_of:
        return partial(nmi_of_cells, **getattr(of_table, "keywords", {}))
    # sums of squares of counts must fit int64
    if of_table is ari_of and total < 2**31 and (w is None or w.dtype.kind == "i"):
        return partial(_ari_of_cells, exact=total <= FEW_OBJECTS)
    return None


def nmi_of_cells(cells: cpu.Cells, average: str = "geometric") -> np.ndarray:
    """Return `nmi_of` for each of the tables (tables,)."""
    numbers = np.empty((len(cells.starts) - 1, 3))
    cpu.informations(cells, numbers)
    information, row_entropies, column_entropies = numbers.T
    return np.clip(information / AVERAGES[average](row_entropies, column_entropies), 0.0, 1.0)


def _ari_of_cells(cells: cpu.Cells, exact: bool) -> np.ndarray | list[float]:
    """Return the index of each table; few objects have it from exact products in float64, others from Python's."""
    sums = np.zeros((len(cells.starts) - 1, 7), dtype=np.int64)
    cpu.sums_of_squares(cells, sums)
    if not exact:
        return [ari_of_sums(*numbers) for numbers in sums.tolist()]
    n_cells, n_rows, n_cols, *pairs = sums.T
    numerator, denominator = _ari_ratio(*pairs)
    scores = np.ones(len(sums))
    np.divide(numerator, denominator, out=scores, where=(n_cells != n_rows) | (n_cells != n_cols))
    scores[n_cells == 0] = np.nan
    return scores


def nmi_of(table: Table, average: str = "geometric") -> float:
    """Return the normalised mutual information of a contingency table (dense or sparse), from 0 to 1.

    The value is 1 for equal partitions, even of a single cluster each, and 0 if only one partition has a single
    cluster. It is NaN for a table without objects.

    >>> import gpuens as ge
    >>> round(ge.contingency.nmi_of(ge.contingency.table([0, 0, 1, 1], [0, 0, 1, 2])), 4)
    0.8165
    """
    checks.check_choice(average, "average", AVERAGES)
    rows, cols, counts = cells(table)
    if not counts.size:
        return math.nan
    of_rows, of_cols = _sums(rows, counts), _sums(cols, counts)
    if _one_to_one(counts, of_rows, of_cols):
        return 1.0
    if np.count_nonzero(of_rows) == 1 or np.count_nonzero(of_cols) == 1:
        return 0.0
    n = counts.astype(np.float64)
    total = n.sum()
    # A single logarithm of a ratio of products: for independent labels the ratio is 1, so the sum is exactly 0.
    information = (n * natural_logarithms(_ratio_of_products(n, total, of_rows[rows], of_cols[cols]))).sum() / total
    normaliser = AVERAGES[average](_entropy_of(of_rows / total), _entropy_of(of_cols / total))
    return float(min(1.0, max(0.0, information / normaliser)))


def _ratio_of_products(a: np.ndarray, b: float, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return a b / (c d) for positive numbers of any size, without overflow or underflow of the products."""
    mantissas, exponents = zip(*[np.frexp(factor) for factor in (a, b, c, d)], strict=True)
    ratio = (mantissas[0] * mantissas[1]) / (mantissas[2] * mantissas[3])
    exponent = exponents[0] + exponents[1] - exponents[2] - exponents[3]
    scaled: np.ndarray = np.ldexp(ratio, np.clip(exponent, -1020, 1020))  # in the range of normal float64 numbers
    return scaled


def ari_of(table: Table) -> float:
    """Return the adjusted Rand index of a contingency table (dense or sparse): at most 1, and 0 on average by chance.

    Pairs of objects are counted in exact integers of any size, unless the table holds real weights. The index is 1 for
    equal partitions and for a single object, and NaN for a table without objects.

    >>> import gpuens as ge
    >>> round(ge.contingency.ari_of(ge.contingency.table([0, 0, 1, 1], [0, 0, 1, 2])), 4)
    0.5714
    """
    rows, cols, counts = cells(table)
    of_rows, of_cols = (_sums(lines, counts).astype(counts.dtype) for lines in (rows, cols))
    sizes = counts.size, int(np.count_nonzero(of_rows)), int(np.count_nonzero(of_cols))
    return ari_of_sums(*sizes, counts.sum().item(), *(sum_of_squares(sums) for sums in (counts, of_rows, of_cols)))


def vi_of(table: Table) -> float:
    """Return the variation of information H(a|b) + H(b|a) of a contingency table (dense or sparse), in bits.

    It is 0 for equal partitions, and NaN for a table without objects.

    >>> import gpuens as ge
    >>> ge.contingency.vi_of(ge.contingency.table([0, 0, 1, 1], [0, 0, 1, 2]))
    0.5
    """
    rows, cols, counts = cells(table)
    if not counts.size:
        return math.nan
    n, of_rows, of_cols = counts.astype(np.float64), _sums(rows, counts), _sums(cols, counts)
    if _one_to_one(counts, of_rows, of_cols):
        return 0.0
    return float((n * (logarithms(of_rows[rows] / n) + logarithms(of_cols[cols] / n))).sum() / n.sum())


def ari_of_sums(
    n_cells: int, n_rows: int, n_cols: int, total: float, same_both: float, same_row: float, same_col: float
) -> float:
    """Return the index from the numbers of non-empty cells, rows and columns, and from their sums of squares."""
    if n_cells == 0:
        return math.nan
    if n_cells == n_rows == n_cols:  # clusters correspond one to one
        return 1.0
    numerator, denominator = _ari_ratio(total, same_both, same_row, same_col)
    return float(numerator / denominator)


def _ari_ratio(total: Any, same_both: Any, same_row: Any, same_col: Any) -> tuple[Any, Any]:
    """Return numerator and denominator of the index, for one table or for many."""
    tp, fn, fp = same_both - total, same_row - same_both, same_col - same_both  # counts of ordered pairs of objects
    tn = total**2 - same_row - same_col + same_both
    return 2 * (tp * tn - fn * fp), (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)


def _sums(lines: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the sums of a table's rows (or columns) as floats, which are exact for counts below 2^53."""
    return np.bincount(lines, weights=counts)


def _one_to_one(counts: np.ndarray, of_rows: np.ndarray, of_cols: np.ndarray) -> bool:
    """Return whether the clusters of the two partitions correspond one to one."""
    return bool(counts.size == np.count_nonzero(of_rows) == np.count_nonzero(of_cols))


def _entropy_of(p: np.ndarray) -> float:
    p = p[p > 0]
    return float(-(p * natural_logarithms(p)).sum())


def sum_of_squares(x: np.ndarray) -> Any:
    """Return Σ x² as a Python number, exact for integers even if int64 would overflow."""
    if x.dtype.kind == "f" or int(x.sum()) < 2**31:
        return (x * x).sum().item()
    return int((x.astype(object) ** 2).sum())
