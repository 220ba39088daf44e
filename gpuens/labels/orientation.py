"""The orientation of a label matrix: rows are objects and columns are clusterings, but draws of R come as rows.

A matrix with fewer rows than columns can be read in two ways, so that its owner must say which one is right. A matrix
with more rows is read as objects × clusterings, unless its rows look like clusterings:

- Each row numbers its clusters in the order of their first objects, 1 1 2 1 3 …, as draws do. This is certain. The cuts
  of a tree into 1, 2, 3, … clusters can have such rows, too, but the last cuts have the most clusters.
- Most rows agree with each other as clusterings, and most columns agree no better than chance, as do the labels of two
  objects in draws. Attributes of categorical data can do so, too; hence a warning.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gpuens.runtime import checks
from gpuens.runtime import device as devices

FEWEST_OBJECTS = 10  # smallest number of objects in draws that are recognised
FEWEST_CLUSTERS = 3  # smallest number of clusters whose order of numbers tells anything
FEWEST_DRAWS = 10  # smallest number of different draws for a refusal
COMPARED = 30  # largest number of rows, and of columns, that are compared as clusterings
FEWEST_COMPARED = 20  # smallest number of rows, and of columns, for this comparison
PAIRS = 500  # sampled pairs of objects by which clusterings are compared
BY_CHANCE, AGREEING = 0.05, 0.3  # median correlations of clusterings that agree by chance, and of others
IN_ORDER = "numbers its clusters in the order of their first objects"


class Spelling(NamedTuple):
    """The owner of labels, and the ways to state their orientation, as parts of a message."""

    owner: str
    row: str  # "row" or "line"
    transpose: str  # advice if each row is a clustering
    wide: str  # advice if each row is an object
    unit: str  # name of an object, in arrays that of scikit-learn
    then: str = ""  # addition to ``transpose`` if there are more such clusterings than objects


OF_ARRAY = Spelling(
    "labels",
    "row",
    "pass labels.T",
    "say wide=True (gpuens.Ensemble(labels, wide=True))",
    "sample(s)",
    " with wide=True",
)
OF_CHUNKS = OF_ARRAY._replace(transpose="pass labels.T.compute()", wide="pass labels.compute() with wide=True")


def spelling_of_file(path: str | os.PathLike[str]) -> Spelling:
    """Return the spelling for a file, whose orientation is stated by options of the reader."""
    return Spelling(
        f"path {os.fspath(path)!r}",
        "line",
        "say transpose=True (--transpose)",
        "say wide=True (--wide, without --scheduler)",
        "object(s)",
    )


def check_orientation(columns: Sequence[Any], spelling: Spelling = OF_ARRAY, *, by_columns: bool = False) -> None:
    """Refuse label columns (n_clusterings of n_objects) that may be objects; warn if they only look like objects.

    ``by_columns``: the caller passed columns, not a matrix, so that there may be more columns than objects.
    """
    refuse_draws(columns, spelling)
    shape, in_memory = (len(columns[0]), len(columns)), devices.kind_of(columns[0]) == "cpu"
    if shape[1] > shape[0] and not by_columns:
        in_order = in_memory and _draws_in(list(np.stack(columns).T)) >= FEWEST_DRAWS
        refuse_wide(shape, spelling, f"; each column {IN_ORDER}" if in_order else "")
    if in_memory and _rows_agree_alone(columns):
        checks.warn(
            f"{_two_readings(shape, spelling)}: rows agree with each other as clusterings and columns do not; "
            f"{_advice(shape, spelling)}."
        )


def refuse_draws(columns: Sequence[Any], spelling: Spelling) -> None:
    """Refuse label columns that are the objects of draws; warn if only a few draws differ."""
    n_draws = _draws_in(columns)
    if not n_draws:
        return
    shape = len(columns[0]), len(columns)
    sentence = (
        f"{_two_readings(shape, spelling)}: each {spelling.row} {IN_ORDER}, as draws do; {_advice(shape, spelling)}."
    )
    if n_draws >= FEWEST_DRAWS:
        raise ValueError(sentence)
    checks.warn(sentence)


def refuse_wide(shape: tuple[int, int], spelling: Spelling, sign: str = "") -> None:
    """Refuse labels of ``shape`` because they have more clusterings than objects; ``sign`` tells the likely reading."""
    n_objects, n_clusterings = shape
    raise ValueError(
        f"{spelling.owner} of shape {shape} are {n_clusterings:,} clusterings of {n_objects:,} {spelling.unit}, or, "
        f"transposed, {n_objects:,} clusterings of {n_clusterings:,}{sign}; {_advice(shape, spelling)}."
    )


def _two_readings(shape: tuple[int, int], spelling: Spelling) -> str:
    n_objects, n_clusterings = shape
    return (
        f"{spelling.owner} read as {n_objects:,} objects × {n_clusterings:,} clusterings look transposed, "
        f"{n_clusterings:,} objects × {n_objects:,} clusterings"
    )


def _advice(shape: tuple[int, int], spelling: Spelling) -> str:
    then = spelling.then if shape[0] > shape[1] else ""
    return (
        f"{spelling.transpose}{then} if each {spelling.row} is a clustering (draws of R), or {spelling.wide} if each "
        f"{spelling.row} is an object"
    )


def _draws_in(columns: Sequence[Any]) -> int:
    """Return the number of different rows if each row of some columns numbers its clusters in order, else 0.

    Rows of other labels are told by the first few, so that no column is read. At most 1600 rows are told apart.
    """
    if len(columns) < FEWEST_OBJECTS:
        return 0
    if isinstance(columns, np.ndarray):
        first: Sequence[Any] = columns[:, :COMPARED]
    else:
        first = [_select_rows(column, slice(COMPARED)) for column in columns]
    if _largest_in_order(first) is None:
        return 0
    if (largest := _largest_in_order(columns)) is None:
        return 0
    n_clusters = max(largest) - largest[0] + 1
    are_cuts = largest == sorted(largest) and largest[len(largest) // 2] < largest[-1]
    if are_cuts or not FEWEST_CLUSTERS <= n_clusters <= len(columns) // 2:
        return 0
    rows = np.stack([devices.to_host(_as_integers(column)) for column in columns], axis=1)
    return len(np.unique(rows[:: max(1, len(rows) // COMPARED**2)], axis=0))


def _largest_in_order(columns: Sequence[Any]) -> list[int] | None:
    """Return the largest number of each column if each row numbers its clusters in order from 0 or 1, else None."""
    if (top := _as_integers(columns[0])) is None or (top != top[0]).any() or top[0] not in (0, 1):
        return None
    largest = [int(top[0])]
    for place in range(1, len(columns)):
        column = _as_integers(columns[place])
        if column is None or not ((column >= largest[0]) & (column <= top + 1)).all():
            return None
        largest.append(int(column.max()))
        top = devices.namespace(devices.kind_of(top)).maximum(top, column)
    return largest


def _select_rows(column: Any, rows: Any) -> Any:
    return column.iloc[rows] if hasattr(column, "iloc") else column[rows]


def _as_integers(column: Any) -> Any:
    """Return a column of whole numbers (n_objects,) as int64, or None for other labels and for missing ones."""
    if hasattr(column, "iloc"):
        column = np.asarray(column)
    if isinstance(column, np.ma.MaskedArray) or column.dtype.kind not in "iuf" or not len(column):
        return None
    if column.dtype.kind == "f" and not (np.isfinite(column).all() and (column % 1 == 0).all()):
        return None
    return column.astype(np.int64)


def _rows_agree_alone(columns: Sequence[Any]) -> bool:
    """Return whether most rows agree as clusterings of the columns, and most columns agree only by chance."""
    n_objects, n_clusterings = len(columns[0]), len(columns)
    if not FEWEST_COMPARED <= n_clusterings <= n_objects:
        return False
    rows, places = _shuffled_places(n_objects), _shuffled_places(n_clusterings)
    if isinstance(columns, np.ndarray):
        labels = _as_integers(columns[places[:, None], rows])
    else:
        sampled = [_as_integers(_select_rows(columns[place], rows)) for place in places.tolist()]
        labels = None if any(column is None for column in sampled) else np.stack(sampled)
    if labels is None:
        return False
    return _agreement(labels) < BY_CHANCE and _agreement(labels.T) > AGREEING


@lru_cache(maxsize=8)
def _shuffled_places(n: int) -> np.ndarray:
    """Return up to 1,000 of the numbers 0 … n - 1 in random order."""
    return np.random.default_rng(0).permutation(n)[:1000].copy()


def _agreement(clusterings: np.ndarray) -> float:
    """Return the median correlation over pairs of clusterings (M, N) of "two objects are together"; 0 without pairs.

    Both are in random order. The first clusterings are compared, on objects one place apart, two places, and so on.
    """
    clusterings = clusterings[:COMPARED]
    n = clusterings.shape[1]
    apart = range(1, min(n, 1 + -(-PAIRS // n)))
    of_steps = [clusterings[:, step:] == clusterings[:, :-step] for step in apart]
    together = np.concatenate(of_steps, axis=1, dtype=np.float32)
    shared = together @ together.T / together.shape[1]
    shares = shared.diagonal()
    varied = (shares > 0) & (shares < 1)
    if np.count_nonzero(varied) < 2:
        return 0.0
    shares, shared = shares[varied], shared[varied][:, varied]
    deviations = np.sqrt(shares * (1 - shares))
    correlations = (shared - shares[:, None] * shares) / (deviations[:, None] * deviations)
    ascending = np.sort(correlations[~np.eye(len(shares), dtype=bool)])  # each twice
    return float(ascending[len(ascending) // 2])
