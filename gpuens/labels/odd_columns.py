"""Columns that are no clusterings: names of the objects, batches, donors, true classes, …; and repeated clusterings.

The form of names is that of an id: a different text or whole number for each object. It does not depend on the number
of objects. Names that are repeated or blank by mistake are still names if nearly all are different.
"""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.odd_labels import LOOKS_MISSING
from gpuens.runtime import checks

PAIRS = 20_000  # sampled pairs of objects for comparing clusterings
FEWEST = 10  # smallest number of objects for a warning about equal clusterings
FEW = 64  # objects up to which all clusterings are compared at once, by the square of the number of objects
SAMPLE = 20_000  # objects in a first comparison, enough to tell most clusterings apart
MANY_ANNOTATORS = 8  # annotators from which one at chance level is taken for a column of something else
AT_CHANCE = "it agrees with none of the others better than chance"
ID_NAMES = frozenset(
    ("id", "ids", "cell_id", "object_id", "row_id", "customer_id", "user_id", "barcode", "subject", "subject_id")
)
ODD_NAMES = ID_NAMES.union(
    (
        *("batch", "sample", "sample_id", "donor", "donor_id", "patient", "patient_id", "condition", "sex", "study"),
        *("truth", "ground_truth", "true_label", "true_labels", "class", "target", "cell_type", "celltype"),
    )
)

NEARLY_ALL = 0.8  # smallest share of different values in a first column of names with mistakes
FAR_MORE = 2  # ratio of different values, compared with any other column, above which a doubtful column holds names
HEAD = 1000  # objects that tell most clusterings from names


class ColumnSource(NamedTuple):
    """The origin of columns, and the advice for keeping a column from there, both as parts of a warning."""

    owner: str  # "path 'labels.csv'"
    keep: str  # "name them in columns (--columns)"


def file_source(path: str | os.PathLike[str]) -> ColumnSource:
    """Return the source of the columns of a file."""
    return ColumnSource(f"path {os.fspath(path)!r}", "name the columns to read, columns=[…] (--columns)")


OF_FRAME = ColumnSource("labels", "pass gpuens.Ensemble(labels, names=list(labels.columns))")


def find_clusterings(
    codes: np.ndarray, n_clusters: np.ndarray, names: list[Any], source: ColumnSource, *, shared_names: bool = False
) -> list[int]:
    """Return the places of the columns that are clusterings; warn in one line about each column left out and why.

    ``shared_names``: the columns are votes. Among few annotators, one who differs from all others is still a voter; so
    a column at chance level is kept, with a warning.
    """
    odd = find_odd_columns(codes, n_clusters, names)
    if shared_names and len(names) < MANY_ANNOTATORS:
        doubtful = [place for place, reason in odd.items() if reason == AT_CHANCE]
        odd = {place: reason for place, reason in odd.items() if place not in doubtful}
        if doubtful:
            checks.warn(
                f"{source.owner}: {checks.listed([names[place] for place in doubtful])}: {AT_CHANCE}; its votes count; "
                "if it is no annotator, leave it out, exclude=[…] (--exclude)."
            )
    return _leave_out(odd, names, source)


def find_clusterings_by_name(names: list[Any], source: ColumnSource) -> list[int]:
    """Return the places of the columns that are clusterings, as `find_clusterings`, judged by their names alone."""
    return _leave_out(_find_odd_names(names), names, source)


def _leave_out(odd: dict[int, str], names: list[Any], source: ColumnSource) -> list[int]:
    if not odd or len(odd) == len(names):  # if all columns are odd, the caller means all of them
        return list(range(len(names)))
    reasons = [f"{names[place]!r} ({reason})" for place, reason in sorted(odd.items())]
    remainder = f" and {len(reasons) - 10} more" if len(reasons) > 10 else ""
    verb = "is left out, as it is" if len(reasons) == 1 else "are left out, as they are"
    checks.warn(
        f"{source.owner}: {', '.join(reasons[:10])}{remainder} {verb} unlike the clusterings; to keep all, "
        f"{source.keep}."
    )
    return [place for place in range(len(names)) if place not in odd]


def warn_of_equal_clusterings(
    codes: np.ndarray, n_clusters: np.ndarray, names: list[Any], source: str, *, n_objects: int | None = None
) -> None:
    """Warn about clusterings that equal another one except for the names of their clusters.

    ``n_objects``: the number of objects, if rows of codes stand for several. There is no warning for few objects, or if
    more than half of the clusterings are equal: they may be equal without being copies, as the clusters are so clear.
    """
    if not len(codes) or (len(codes) if n_objects is None else n_objects) < FEWEST:
        return
    equal = equal_clusterings(codes, n_clusters)
    largest_group = 1 + max(Counter(equal.values()).values(), default=0)
    if equal and 2 * largest_group <= len(names):
        pairs = [f"{names[place]!r} as {names[first]!r}" for place, first in equal.items()]
        remainder = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        checks.warn(
            f"{source}: {len(pairs)} of {len(names)} clusterings repeat another ({', '.join(pairs[:3])}{remainder}), "
            "which so counts more than once; leave out (--exclude) what is there twice by mistake."
        )


def equal_clusterings(codes: np.ndarray, n_clusters: np.ndarray) -> dict[int, int]:
    """Return {place of a clustering: place of an earlier equal one}, whatever the names of the clusters.

    The time is linear. A sample of objects tells most clusterings apart; only the others are compared on all objects.
    """
    if len(codes) <= FEW:
        first = _first_of_each(codes, n_clusters)
        return _first_equal_places(_group_alike(list(range(codes.shape[1])), lambda m: first[m].tobytes()))

    def group_equal(places: list[int], codes: np.ndarray) -> list[list[int]]:
        return _group_alike(places, lambda m: _fingerprint(codes[:, m], int(n_clusters[m])))

    groups = [list(range(codes.shape[1]))]
    if len(codes) > SAMPLE:
        rows = np.unique(np.random.default_rng(0).integers(0, len(codes), SAMPLE))
        groups = group_equal(groups[0], codes[rows])
    return _first_equal_places([equal for places in groups for equal in group_equal(places, codes)])


def first_equal_clusterings(codes: np.ndarray, n_clusters: np.ndarray) -> np.ndarray:
    """Return the place (M,) of the first clustering that is equal to each clustering; see `equal_clusterings`."""
    first = np.arange(codes.shape[1])
    equal = equal_clusterings(codes, n_clusters)
    first[list(equal)] = list(equal.values())
    return first


def _first_equal_places(groups: list[list[int]]) -> dict[int, int]:
    """Return {place: first place of its group} for all places but the first of each group."""
    return dict(sorted((place, first) for first, *repeated in groups for place in repeated))


def _first_of_each(codes: np.ndarray, n_clusters: np.ndarray) -> np.ndarray:
    """Return the first object of each object's cluster (M, N), uint8, N for a missing label: for few objects."""
    clusters = np.minimum(codes, n_clusters)
    first = np.empty(codes.shape, dtype=np.uint8)
    for x, row in enumerate(clusters):
        first[x] = (clusters[: x + 1] == row).argmax(axis=0)
    first[clusters == n_clusters] = len(codes)
    return np.ascontiguousarray(first.T)


def _group_alike(places: list[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    """Return the groups of at least two places that have the same key."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place in places:
        groups[key(place)].append(place)
    return [group for group in groups.values() if len(group) > 1]


def _fingerprint(column: np.ndarray, k: int) -> bytes:
    """Return a hash of a clustering's codes, with its k clusters renumbered in the order of their first objects."""
    clusters = np.minimum(column, k)  # k is "missing"
    n = len(clusters)
    first = np.full(k + 1, n)
    first[clusters[::-1]] = np.arange(n - 1, -1, -1)
    first[k] = n
    number = np.empty(k + 1, dtype=np.uint32)
    number[np.argsort(first, kind="stable")] = np.arange(k + 1)
    return hashlib.blake2b(number[clusters].tobytes(), digest_size=16).digest()


def find_odd_columns(codes: np.ndarray, n_clusters: np.ndarray, names: list[Any]) -> dict[int, str]:
    """Return {place: reason} for the columns that are probably not clusterings.

    - The name says so: a batch, a donor, the truth, ….
    - Far more values than the others: more than four times as many as any of them, and more than 2√N.
    - No agreement with the others: among 20,000 pairs of objects, "in the same cluster" correlates with none of them
      (below .05), while most of the others correlate with each other (.2 and above).
    """
    n, m = codes.shape
    if m < 2:
        return {}
    reasons = _find_odd_names(names)
    if m > 2 and n >= 100:
        by_size = np.argsort(n_clusters)[::-1]
        largest_count, next_count = (int(n_clusters[place]) for place in by_size[:2])
        if largest_count > max(2 * n**0.5, 4 * next_count):
            reasons.setdefault(int(by_size[0]), f"{largest_count} values where the others have at most {next_count}")
        for place in _find_independent(codes):
            reasons.setdefault(place, AT_CHANCE)
    return reasons


def named_like_ids(name: Any) -> bool:
    """Return whether a column has a name that is usual for ids."""
    return _plain_name(name) in ID_NAMES


def _find_odd_names(names: list[Any]) -> dict[int, str]:
    return {place: "by its name" for place, name in enumerate(names) if _plain_name(name) in ODD_NAMES}


def _plain_name(name: Any) -> str:
    return re.sub(r"[\W_]+", "_", str(name).lower()).strip("_")


def _find_independent(codes: np.ndarray) -> list[int]:
    n, m = codes.shape
    if m > 200:  # too many columns for a table that was collected by hand
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


# --- columns that name the objects ------------------------------------------------------------------------------------


def find_id_columns(columns: Sequence[Any], names: Sequence[Any], *, named: bool = False) -> list[int]:
    """Return the places of the columns that name the objects, the best one first; [] if all columns are clusterings.

    Each column is an array or a Series (n_objects,). These forms are names, beside a column that repeats a value or if
    the column is called like ids:

    - a first column of different texts or whole numbers;
    - a later column of different texts, or of different whole numbers that is called like ids or has far more values
      than any other column;
    - a first column of nearly all different texts or whole numbers, if it has far more values than any other column.

    ``named`` says that the objects already have names, so that the first column is like the later ones.

    Examples
    --------
    >>> from gpuens.labels.odd_columns import find_id_columns
    >>> find_id_columns([["c1", "c2", "c3"], [0, 0, 1], [1, 1, 0]], ["cell", "a", "b"])
    [0]
    """
    n = len(columns[0])
    if len(columns) < 2 or n < 2:
        return []
    forms = [_value_form(column) for column in columns]
    counts: dict[int, int] = {}

    def count(m: int) -> int:
        if m not in counts:
            counts[m] = _count_values(columns[m])
        return counts[m]

    def has_far_more(m: int) -> bool:
        return all(count(m) > FAR_MORE * count(i) for i in range(len(columns)) if i not in (m, *places))

    places: list[int] = []
    for m, form in enumerate(forms):
        first = m == 0 and not named
        if form is None or not _may_name(columns[m], NEARLY_ALL if first else 1.0):
            continue
        if count(m) == n:
            if first or form == "text" or named_like_ids(names[m]) or has_far_more(m):
                places.append(m)
        elif first and count(m) >= NEARLY_ALL * n and has_far_more(m):
            places.append(m)
    if not places or any(0 < count(m) < n for m in range(len(columns)) if m not in places):
        return places
    return places[:1] if named_like_ids(names[places[0]]) else []


def _value_form(column: Any) -> str | None:
    """Return "text" or "whole" for a column of texts or whole numbers, None for one of other values."""
    dtype = getattr(column, "dtype", None)
    if dtype is None:
        return _value_form(np.asarray(column))
    if hasattr(dtype, "categories"):
        return _value_form(dtype.categories)
    if dtype.kind in "iu":
        return "whole" if not len(column) or column[:HEAD].min() >= 0 else None  # -1 is a missing label
    if dtype.kind == "f":  # pandas reads whole numbers beside a blank field as floats
        head = np.asarray(column[:HEAD], dtype=np.float64)
        head = head[~np.isnan(head)]
        return "whole" if len(head) and (head == np.floor(head)).all() else None
    if dtype.kind in "bc":
        return None
    import pandas as pd

    head = column[:HEAD]
    texts = {value.lower() for value in head if isinstance(value, str)}
    if texts & LOOKS_MISSING or str(checks.MISSING) in texts:
        return None
    no_texts = [value for value in head if not isinstance(value, str)]
    return None if texts and no_texts and not pd.isna(np.array(no_texts, dtype=object)).all() else "text"


def _may_name(column: Any, share: float) -> bool:
    """Return whether the first objects have different values, as all have in a column of names, or a share of them."""
    if hasattr(getattr(column, "dtype", None), "categories") and len(column.dtype.categories) < share * len(column):
        return False
    head = column[:HEAD]
    return _count_values(head) >= share * len(head) - (share < 1)


def _count_values(column: Any) -> int:
    """Return the number of different values in a column, without missing and empty ones."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        values = np.unique(column)
        return len(values) - int(checks.MISSING in values[:1])
    import pandas as pd

    series = pd.Series(column)
    empty = series.dtype.kind == "O" and not hasattr(series.dtype, "categories") and bool((series == "").any())
    return int(series.nunique()) - empty


def separate_id_columns(
    columns: Sequence[Any],
    names: Sequence[Any],
    source: str,
    *,
    named: bool = False,
    argument: str = "columns (--columns)",
) -> tuple[list[int], int | None]:
    """Return the places of the columns that may be clusterings, and that of the column which names the objects or None.

    A warning tells further columns of the form of names, which are neither; it names the ``argument`` that keeps them.
    ``named``: as in `find_id_columns`.
    """
    places = find_id_columns(columns, names, named=named)
    repeated = places if named else places[1:]
    if repeated:
        checks.warn(
            f"{source}: {checks.listed([names[m] for m in repeated])} has a different value for each of the "
            f"{len(columns[0]):,} objects, like ids, and is left out; name it in {argument} if it is a clustering."
        )
    clusterings = [m for m in range(len(columns)) if m not in places]
    return clusterings, places[0] if places and not named else None


def find_id_column_of_features(frame: Any) -> int | None:
    """Return the place of the column of a DataFrame of features that names the objects, None without one.

    Numbers are features more often than names. They are names only if they count the objects, in any order, in the
    first column, or if the column is called like ids.
    """
    for m, name in enumerate(frame.columns if frame.shape[1] > 1 else []):
        column = frame.iloc[:, m]
        form = _value_form(column)
        if form is None or not _may_name(column, NEARLY_ALL if m == 0 else 1.0):
            continue
        count = _count_values(column)
        if form == "text":
            if count >= len(frame) * (NEARLY_ALL if m == 0 else 1.0):
                return m
        elif count == len(frame) and (named_like_ids(name) or (m == 0 and column.max() - column.min() == count - 1)):
            return m
    return None


def looks_like_ids(index: Any, *, nearly: bool) -> bool:
    """Return whether the values of a single column have the form of names, all of them or ``nearly`` all."""
    share = NEARLY_ALL if nearly else 1.0
    return _value_form(index) is not None and _count_values(index) >= share * len(index)


def check_object_names(index: Any, source: str, first_line: int | None = None) -> None:
    """Warn about names of objects that are repeated or blank by mistake, and refuse names of which many are repeated.

    ``index`` is a pandas Index (n_objects,); ``first_line`` is the number of the first object's line in a text file.
    """
    title = "the first column" if index.name is None else repr(str(index.name))
    blank = is_blank(index)
    n_named, n_different = int((~blank).sum()), _count_values(index)
    if n_different < NEARLY_ALL * n_named:
        raise ValueError(
            f"{source}: {title} has {n_different:,} different names for {n_named:,} objects, which have one row each "
            "in a table of clusterings; if each row is one answer, of an annotator for an object, say long=True "
            "(--long)."
        )
    instead = "correct it, or leave the column out (--exclude)"
    if blank.any():
        where = list_places(np.flatnonzero(blank), first_line)
        checks.warn(f"{source}: {title} names the objects, but is blank in {where}; {instead}.")
    repeated = index.duplicated() & ~blank
    if repeated.any():
        first = index[int(repeated.argmax())]
        places = np.flatnonzero(np.asarray(index == first))
        n_more = int(repeated.sum()) - len(places) + 1
        where = list_places(places, first_line) + f", and {n_more:,} more" * (n_more > 0)
        checks.warn(f"{source}: {title} names the objects, but repeats {first!r} in {where}; {instead}.")


def list_places(places: np.ndarray, first_line: int | None = None) -> str:
    """Return the places of objects as a readable list: "lines 2 and 5", or "objects 0, 3, 4 and 7 more"."""
    numbers = [f"{place if first_line is None else place + first_line}" for place in places[:3].tolist()]
    noun = ("object" if first_line is None else "line") + "s" * (len(places) > 1)
    if len(places) > 3:
        return f"{noun} {', '.join(numbers)} and {len(places) - 3:,} more"
    return f"{noun} {' and '.join([', '.join(numbers[:-1]), numbers[-1]] if len(numbers) > 1 else numbers)}"


def is_blank(index: Any) -> np.ndarray:
    """Return the mask (n_objects,) of the missing and empty names."""
    return np.asarray(index.isna() | (index == ""))
