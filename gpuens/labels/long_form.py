"""Labels in long form: a line for each label, with the object, the clustering (or annotator) and the label."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.columns import as_column
from gpuens.labels.frames import as_pandas
from gpuens.labels.shares import TAKERS, check_weights
from gpuens.runtime import checks, device

# usual names of the three columns, in small letters
OBJECTS = frozenset(
    ("task", "task_id", "object", "object_id", "item", "item_id", "unit", "unit_id", "document", "question", "example")
)
CLUSTERINGS = frozenset(
    ("worker", "worker_id", "clustering", "annotator", "annotator_id", "rater", "rater_id", "coder", "judge")
    + ("performer", "labeler", "labeller", "user", "user_id")
)
LABELS = frozenset(("label", "labels", "answer", "annotation", "rating", "response", "cluster", "class", "category"))
USUAL = (OBJECTS, CLUSTERINGS, LABELS)
# expected number of rows that repeat a pair, if columns are independent, from which different pairs are no accident
CROSSED = 5.0


@dataclass(frozen=True, eq=False)
class Triples:
    """The columns of a table in long form as codes; the label code of a missing label, or of a share of 0, is -1."""

    rows: np.ndarray
    columns: np.ndarray
    labels: np.ndarray
    objects: Any  # pandas Index
    clusterings: Any  # pandas Index
    label_values: Any  # pandas Index
    weights: np.ndarray | None = None  # (n_lines,), float64: the unscaled share of each line
    source: str = "frame"  # the table in error messages

    def take(self, lines: np.ndarray) -> "Triples":
        """Return some lines of the table; the codes stay the same."""
        weights = None if self.weights is None else self.weights[lines]
        return replace(
            self, rows=self.rows[lines], columns=self.columns[lines], labels=self.labels[lines], weights=weights
        )

    @cached_property
    def lines(self) -> "Lines":
        """The lines with a label, each once, in the order of objects, clusterings and labels."""
        labelled = np.flatnonzero(self.labels >= 0)
        rows, columns, labels = self.rows[labelled], self.columns[labelled], self.labels[labelled]
        pairs, n_labels = rows.astype(np.int64) * len(self.clusterings) + columns, max(1, len(self.label_values))
        if len(self.objects) * len(self.clusterings) * n_labels < 2**63:
            order = np.argsort(pairs * n_labels + labels)
        else:
            order = np.lexsort((labels, pairs))
        pairs, labels = pairs[order], labels[order]
        same_pair = np.append(False, pairs[1:] == pairs[:-1])[: len(pairs)]
        first = ~(same_pair & np.append(False, labels[1:] == labels[:-1])[: len(pairs)])
        rows, columns = np.divmod(pairs[first], max(1, len(self.clusterings)))
        return Lines(rows, columns, labels[first], same_pair[first])

    def refuse_two_labels(self, advice: str, words: tuple[str, str] = ("labels", "clustering")) -> None:
        """Raise ValueError with ``advice`` for a pair of an object and a clustering with two labels.

        ``words`` are those of the message for labels and for a clustering.
        """
        lines = self.lines
        if not lines.same_pair.any():
            return
        line = int(lines.same_pair.argmax())
        row_name, column_name = self.objects[lines.rows[line]], self.clusterings[lines.columns[line]]
        last, first = (_shown_value(self.label_values[lines.labels[place]]) for place in (line, line - 1))
        raise ValueError(
            f"{self.source} has two {words[0]}, {last} and {first}, of object "
            f"{_shown_value(row_name)} in {words[1]} {_shown_value(column_name)}; {advice}."
        )


class Lines(NamedTuple):
    """The different lines of a table in long form with a label, in the order of objects, clusterings and labels."""

    rows: np.ndarray
    columns: np.ndarray
    labels: np.ndarray
    same_pair: np.ndarray  # mask of the lines with the object and the clustering of the line before


class LongTable(NamedTuple):
    """Labels as a matrix, from a table in long form."""

    codes: np.ndarray  # (n_objects, n_clusterings), int32; columns contiguous; -1 for a missing label
    labels: Any  # pandas Index of the label values that the codes number
    objects: Any  # pandas Index (n_objects,)
    clusterings: list[Any]  # names of the clusterings

    def column(self, m: int) -> Any:
        """Return the labels of clustering ``m`` as a Categorical (n_objects,)."""
        import pandas as pd

        return pd.Categorical.from_codes(self.codes[:, m], self.labels)

    def with_labels(self) -> "LongTable":
        """Return the table without clusterings that have no label."""
        has_labels = np.asarray((self.codes >= 0).any(axis=0))
        clusterings = [self.clusterings[m] for m in np.flatnonzero(has_labels)]
        return self._replace(codes=self.codes[:, has_labels], clusterings=clusterings)


def find_roles(names: list[Any], column_names: list[Any] | None = None, share: Any = None) -> list[int]:
    """Return the positions of the columns with the objects, the clusterings and the labels, and of ``share`` if named.

    ``column_names`` lists the names of the three columns, None for one that is not chosen. Without them, usual names
    decide, and otherwise three columns are in this order.

    Raises
    ------
    ValueError
        For names that the table lacks, and for other than three columns without usual names.
    """
    if share is not None:
        if share not in names:
            raise ValueError(f"the long table has no column {share!r} of shares; it has {checks.listed(names)}.")
        places = [m for m, name in enumerate(names) if name != share]
        roles = find_roles([names[m] for m in places], column_names)
        return [*(places[m] for m in roles), names.index(share)]
    lower = [str(name).strip().lower() for name in names]
    usual_places = [next((m for m, name in enumerate(lower) if name in words), None) for words in USUAL]
    chosen_places: list[int | None] = (
        list(usual_places) if None not in usual_places else [0, 1, 2] if len(names) == 3 else usual_places
    )
    for role, name in enumerate(column_names or ()):
        if name is not None:
            if name not in names:
                raise ValueError(f"the long table has no column {name!r}; it has {checks.listed(names)}.")
            chosen_places[role] = names.index(name)
    roles = [place for place in chosen_places if place is not None]
    if len(set(roles)) < 3:
        raise ValueError(
            f"a long table has a column of objects, one of clusterings and one of labels, but the columns are "
            f"{checks.listed(names)}; name these three in this order, columns=[…] (--columns; in Ensemble.from_long "
            "object, clustering and label)."
        )
    return roles


def factorize_triples(objects: Any, clusterings: Any, labels: Any, source: str, shares: Any = None) -> Triples:
    """Return the columns of a table in long form as codes, in the order of first rows.

    ``shares`` is the column of shares, if the table has one. Raise ValueError for rows without an object or a
    clustering, and for shares that are no finite numbers from 0 on.
    """
    import pandas as pd

    rows, row_names = pd.factorize(objects)
    columns, column_names = pd.factorize(clusterings)
    values, label_values = pd.factorize(labels)
    for codes, role in ((rows, "object"), (columns, "clustering")):
        if (codes < 0).any():
            raise ValueError(f"{source} has no {role} in row {int(codes.argmin())}; rows are counted from 0.")
    weights = None if shares is None else check_weights(shares, source)
    if weights is not None:
        values = np.where(weights > 0, values, checks.MISSING)
    objects, clusterings, label_values = map(pd.Index, (row_names, column_names, label_values))
    return Triples(rows, columns, values, objects, clusterings, label_values, weights, source)


def read_triples(frame: Any, column_names: list[Any], share: Any = None) -> Triples:
    """Return the labels of a DataFrame in long form as codes; the columns are those of `find_roles`.

    Raise TypeError for anything but a DataFrame, and ValueError as `find_roles` and `factorize_triples`.
    """
    frame = as_pandas(frame)
    if not hasattr(frame, "columns"):
        raise TypeError(f"frame must be a DataFrame with a row for each label, not {checks.shown(frame)}.")
    columns = list(frame.columns)
    roles = [as_column(frame[columns[m]]) for m in find_roles(columns, column_names, share)]
    objects, clusterings, labels, *shares = roles
    return factorize_triples(objects, clusterings, labels, "frame", *shares)


def triples_to_matrix(triples: Triples) -> LongTable:
    """Return the labels of a table in long form as a matrix.

    Objects and clusterings are in the order of their first rows. A missing label is like no row at all.

    Raises
    ------
    ValueError, MemoryError
        For one pair of an object and a clustering with different labels, and for more labels than memory.
    """
    n, m = len(triples.objects), len(triples.clusterings)
    checks.check_memory(
        4 * n * m,
        device.memory_budget(),
        f"labels of {n:,} objects in {m:,} clusterings",
        "leave out clusterings, or, if they are annotators, fit gpuens.EM(vocabulary='shared') to gpuens.Answers "
        "(--shared-names --method em)",
    )
    triples.refuse_two_labels(
        "leave one of them out, or, if both are its clusters, read shares (gpuens.SoftEnsemble.from_long) for "
        f"{TAKERS} (one table and --method scec)",
    )
    matrix = np.full((m, n), checks.MISSING, dtype=np.int32)
    matrix[triples.lines.columns, triples.lines.rows] = triples.lines.labels
    return LongTable(matrix.T, triples.label_values, triples.objects, list(triples.clusterings))


def looks_long(objects: Any, clusterings: Any, names: list[Any]) -> bool:
    """Return whether the first two of three columns cross, as objects and clusterings of a long table do.

    Both repeat values, but no pair of them, which is improbable in other tables: their clusterings agree, so that many
    objects share a pair of labels. If the columns have usual names, a single repetition of each is enough.
    """
    import pandas as pd

    rows, row_names = pd.factorize(objects)
    columns, column_names = pd.factorize(clusterings)
    n = len(rows)
    if n in (len(row_names), len(column_names)) or n > len(row_names) * len(column_names):
        return False
    if min(rows.min(), columns.min()) < 0:  # a missing value
        return False
    counts, shares = np.bincount(rows), np.bincount(columns) / n
    lower = [str(name).strip().lower() for name in names]
    named = lower[0] in OBJECTS and lower[1] in CLUSTERINGS
    if not named and (counts * (counts - 1) / 2).sum() * (shares * shares).sum() < CROSSED:
        return False
    return len(np.unique(rows.astype(np.int64) * len(column_names) + columns)) == n


def refuse_long(owner: str, names: list[Any], n_rows: int, instead: str, keep: str) -> None:
    """Refuse a table that looks long: ``instead`` says how to read it so, and ``keep`` how to read its columns."""
    raise ValueError(
        f"{owner} has {n_rows:,} rows with different pairs of {str(names[0])!r} and {str(names[1])!r}, as a table with "
        f"a line for each label has (object, clustering, label); {instead}, or {keep} if they are clusterings."
    )


def _shown_value(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
