"""Labels in long form: a line for each label, with the object, the clustering (or annotator) and the label."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.columns import as_column
from gpuens.labels.frames import as_pandas
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


class Triples(NamedTuple):
    """The columns of a table in long form as codes; the label code of a missing label is -1."""

    rows: np.ndarray
    columns: np.ndarray
    labels: np.ndarray
    objects: Any  # pandas Index
    clusterings: Any  # pandas Index
    label_values: Any  # pandas Index


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


def find_roles(names: list[Any], column_names: list[Any] | None = None) -> list[int]:
    """Return the positions of the columns with the objects, the clusterings and the labels.

    ``column_names`` lists the names of the three columns, None for one that is not chosen. Without them, usual names
    decide, and otherwise three columns are in this order.

    Raises
    ------
    ValueError
        For names that the table lacks, and for other than three columns without usual names.
    """
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


def factorize_triples(objects: Any, clusterings: Any, labels: Any, source: str) -> Triples:
    """Return the columns of a table in long form as codes, in the order of first rows.

    Raise ValueError for rows without an object or a clustering.
    """
    import pandas as pd

    rows, row_names = pd.factorize(objects)
    columns, column_names = pd.factorize(clusterings)
    values, label_values = pd.factorize(labels)
    for codes, role in ((rows, "object"), (columns, "clustering")):
        if (codes < 0).any():
            raise ValueError(f"{source} has no {role} in row {int(codes.argmin())}; rows are counted from 0.")
    return Triples(rows, columns, values, *map(pd.Index, (row_names, column_names, label_values)))


def read_triples(frame: Any, column_names: list[Any]) -> Triples:
    """Return the labels of a DataFrame in long form as codes; ``column_names`` are those of `find_roles`.

    Raise TypeError for anything but a DataFrame, and ValueError as `find_roles` and `factorize_triples`.
    """
    frame = as_pandas(frame)
    if not hasattr(frame, "columns"):
        raise TypeError(f"frame must be a DataFrame with a row for each label, not {checks.shown(frame)}.")
    columns = list(frame.columns)
    objects, clusterings, labels = (as_column(frame[columns[m]]) for m in find_roles(columns, column_names))
    return factorize_triples(objects, clusterings, labels, "frame")


def triples_to_matrix(triples: Triples, source: str) -> LongTable:
    """Return the labels of a table in long form as a matrix.

    Objects and clusterings are in the order of their first rows. A missing label is like no row at all.

    Raises
    ------
    ValueError, MemoryError
        For one pair of an object and a clustering with different labels, and for more labels than memory.
    """
    rows, columns, values, row_names, column_names, label_values = triples
    n, m = len(row_names), len(column_names)
    checks.check_memory(
        4 * n * m,
        device.memory_budget(),
        f"labels of {n:,} objects in {m:,} clusterings",
        "leave out clusterings, or, if they are annotators, fit gpuens.EM(vocabulary='shared') to gpuens.Answers",
    )
    labelled = np.flatnonzero(values >= 0)
    cells = columns[labelled].astype(np.int64) * n + rows[labelled]
    matrix = np.full(n * m, checks.MISSING, dtype=np.int32)
    matrix[cells] = values[labelled]
    differs = matrix[cells] != values[labelled]
    if differs.any():
        row = labelled[int(differs.argmax())]
        pair = rows[row], columns[row]
        earlier_label = label_values[matrix[pair[1] * n + pair[0]]]
        raise ValueError(
            f"{source} has two labels, {_shown_value(label_values[values[row]])} and {_shown_value(earlier_label)}, of "
            f"object {_shown_value(row_names[pair[0]])} in clustering {_shown_value(column_names[pair[1]])}; leave one "
            "of them out."
        )
    return LongTable(matrix.reshape(m, n).T, label_values, row_names, list(column_names))


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
