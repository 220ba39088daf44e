"""Odd columns: batches, donors, true classes and others that are no clusterings, and repeated clusterings."""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

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


class ColumnSource(NamedTuple):
    """The origin of columns, and the advice for keeping a column from there, both as parts of a warning."""

    what: str  # "path 'labels.csv'"
    keep: str  # "name them in columns (--columns)"


def of_file(path: str | os.PathLike[str]) -> ColumnSource:
    """Return the source of the columns of a file."""
    return ColumnSource(f"path {os.fspath(path)!r}", "name the columns to read, columns=[…] (--columns)")


OF_FRAME = ColumnSource("labels", "pass gpuens.Ensemble(labels, names=list(labels.columns))")


def sorted_out(
    codes: np.ndarray, n_clusters: np.ndarray, names: list[Any], source: ColumnSource, *, shared_names: bool = False
) -> list[int]:
    """Return the places of the columns that are clusterings; warn in one line about each column left out and why.

    ``shared_names``: the columns are votes. Among few annotators, one who differs from all others is still a voter; so
    a column at chance level is kept, with a warning.
    """
    odd = odd_columns(codes, n_clusters, names)
    if shared_names and len(names) < MANY_ANNOTATORS:
        doubtful = [place for place, reason in odd.items() if reason == AT_CHANCE]
        odd = {place: reason for place, reason in odd.items() if place not in doubtful}
        if doubtful:
            checks.warn(
                f"{source.what}: {checks.listed([names[place] for place in doubtful])}: {AT_CHANCE}; its votes count; "
                "if it is no annotator, leave it out, exclude=[…] (--exclude)."
            )
    return _without(odd, names, source)


def sorted_out_by_name(names: list[Any], source: ColumnSource) -> list[int]:
    """Return the places of the columns that are clusterings, as `sorted_out`, judged by their names alone."""
    return _without(_odd_names(names), names, source)


def _without(odd: dict[int, str], names: list[Any], source: ColumnSource) -> list[int]:
    if not odd or len(odd) == len(names):  # if all columns are odd, the caller means all of them
        return list(range(len(names)))
    which = [f"{names[place]!r} ({reason})" for place, reason in sorted(odd.items())]
    more = f" and {len(which) - 10} more" if len(which) > 10 else ""
    are = "is left out, as it is" if len(which) == 1 else "are left out, as they are"
    checks.warn(
        f"{source.what}: {', '.join(which[:10])}{more} {are} unlike the clusterings; to keep all, {source.keep}."
    )
    return [place for place in range(len(names)) if place not in odd]


def warn_of_equal_columns(
    codes: np.ndarray, n_clusters: np.ndarray, names: list[Any], source: str, *, n_objects: int | None = None
) -> None:
    """Warn about clusterings that equal another one except for the names of their clusters.

    ``n_objects``: the number of objects, if rows of codes stand for several. There is no warning for few objects, or if
    more than half of the clusterings are equal: they may be equal without being copies, as the clusters are so clear.
    """
    if not len(codes) or (len(codes) if n_objects is None else n_objects) < FEWEST:
        return
    found = equal_columns(codes, n_clusters)
    most_alike = 1 + max(Counter(found.values()).values(), default=0)
    if found and 2 * most_alike <= len(names):
        pairs = [f"{names[place]!r} as {names[first]!r}" for place, first in found.items()]
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        checks.warn(
            f"{source}: {len(pairs)} of {len(names)} clusterings repeat another ({', '.join(pairs[:3])}{more}), which "
            "so counts more than once; leave out (--exclude) what is there twice by mistake."
        )


def equal_columns(codes: np.ndarray, n_clusters: np.ndarray) -> dict[int, int]:
    """Return {place of a clustering: place of an earlier equal one}, whatever the names of the clusters.

    The time is linear. A sample of objects tells most clusterings apart; only the others are compared on all objects.
    """
    if len(codes) <= FEW:
        first = _first_of_each(codes, n_clusters)
        return _repeated(_alike(list(range(codes.shape[1])), lambda m: first[m].tobytes()))
    alike = [list(range(codes.shape[1]))]
    if len(codes) > SAMPLE:
        rows = np.unique(np.random.default_rng(0).integers(0, len(codes), SAMPLE))
        some = codes[rows]
        alike = _alike(alike[0], lambda m: _fingerprint(some[:, m], int(n_clusters[m])))
    same = [group for some in alike for group in _alike(some, lambda m: _fingerprint(codes[:, m], int(n_clusters[m])))]
    return _repeated(same)


def first_equals(codes: np.ndarray, n_clusters: np.ndarray) -> np.ndarray:
    """Return the place (M,) of the first clustering that is equal to each clustering; see `equal_columns`."""
    first = np.arange(codes.shape[1])
    same = equal_columns(codes, n_clusters)
    first[list(same)] = list(same.values())
    return first


def _repeated(groups: list[list[int]]) -> dict[int, int]:
    """Return {place: first place of its group} for all places but the first of each group."""
    return dict(sorted((place, first) for first, *others in groups for place in others))


def _first_of_each(codes: np.ndarray, n_clusters: np.ndarray) -> np.ndarray:
    """Return the first object of each object's cluster (M, N), uint8, N for a missing label: for few objects."""
    known = np.minimum(codes, n_clusters)
    first = np.empty(codes.shape, dtype=np.uint8)
    for x, own in enumerate(known):
        first[x] = (known[: x + 1] == own).argmax(axis=0)
    first[known == n_clusters] = len(codes)
    return np.ascontiguousarray(first.T)


def _alike(places: list[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    """Return the groups of at least two places that have the same key."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place in places:
        groups[key(place)].append(place)
    return [group for group in groups.values() if len(group) > 1]


def _fingerprint(column: np.ndarray, k: int) -> bytes:
    """Return a hash of a clustering's codes, with its k clusters renumbered in the order of their first objects."""
    known = np.minimum(column, k)  # k is "missing"
    n = len(known)
    first = np.full(k + 1, n)
    first[known[::-1]] = np.arange(n - 1, -1, -1)
    first[k] = n
    number = np.empty(k + 1, dtype=np.uint32)
    number[np.argsort(first, kind="stable")] = np.arange(k + 1)
    return hashlib.blake2b(number[known].tobytes(), digest_size=16).digest()


def odd_columns(codes: np.ndarray, n_clusters: np.ndarray, names: list[Any]) -> dict[int, str]:
    """Return {place: reason} for the columns that are probably not clusterings.

    - The name says so: a batch, a donor, the truth, ….
    - Far more values than the others: more than four times as many as any of them, and more than 2√N.
    - No agreement with the others: among 20,000 pairs of objects, "in the same cluster" correlates with none of them
      (below .05), while most of the others correlate with each other (.2 and above).
    """
    n, m = codes.shape
    if m < 2:
        return {}
    why = _odd_names(names)
    if m > 2 and n >= 100:
        largest = np.argsort(n_clusters)[::-1]
        most, second = (int(n_clusters[place]) for place in largest[:2])
        if most > max(2 * n**0.5, 4 * second):
            why.setdefault(int(largest[0]), f"{most} values where the others have at most {second}")
        for place in _independent(codes):
            why.setdefault(place, AT_CHANCE)
    return why


def named_like_ids(name: Any) -> bool:
    """Return whether a column has a name that is usual for ids."""
    return _plain(name) in ID_NAMES


def _odd_names(names: list[Any]) -> dict[int, str]:
    return {place: "by its name" for place, name in enumerate(names) if _plain(name) in ODD_NAMES}


def _plain(name: Any) -> str:
    return re.sub(r"[\W_]+", "_", str(name).lower()).strip("_")


def _independent(codes: np.ndarray) -> list[int]:
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
