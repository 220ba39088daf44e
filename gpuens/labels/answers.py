"""Answers of many annotators, of whom each knows few objects: a vocabulary, and a line for each answer.

The memory grows with the answers, where that of an Ensemble grows with objects times annotators.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from gpuens.labels.long_form import Triples, read_triples
from gpuens.labels.rows import Rows
from gpuens.labels.vocabulary import NO_ANSWER, answer_words, shared_vocabulary
from gpuens.runtime import checks


class Answers:
    """The answers of annotators who share a vocabulary, for `gpuens.EM` with ``vocabulary="shared"``.

    Parameters
    ----------
    frame : DataFrame
        A row for each answer. A missing label, and a word for no answer, is like no row; a row that is there twice
        counts once.
    object, annotator, label : name of a column, optional
        By default, as in `gpuens.Ensemble.from_long`.
    no_answer : str or list of str
        Words for no answer, as in `gpuens.EM`.

    Attributes
    ----------
    n_objects, n_clusterings : int
        Numbers of objects and of annotators.
    index : Index (n_objects,)
        The objects, in the order of their first rows.
    names : list
        The annotators, in the order of their first rows.
    classes : ndarray (k,)
        The names of the vocabulary, ascending.
    matrix : SciPy CSR array (n_objects, n_clusterings · k), int8
        1 for each answer; the answers l of annotator m are column m · k + l.

    Raises
    ------
    ValueError, TypeError
        For missing columns, rows without an object or an annotator, two answers of an annotator for one object, and
        no answer at all.

    Examples
    --------
    >>> import gpuens as ge, pandas as pd
    >>> lines = [("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t1", "bob", "cat"), ("t3", "bob", "dog")]
    >>> answers = ge.Answers(pd.DataFrame(lines, columns=["task", "worker", "label"]))
    >>> answers.n_objects, answers.n_clusterings, answers.classes.tolist()
    (3, 2, ['cat', 'dog'])
    >>> ge.EM(vocabulary="shared").fit_predict(answers).tolist()
    ['cat', 'dog', 'dog']
    """

    device_kind = "cpu"
    form = "answers in long form"
    takers = "gpuens.EM(vocabulary='shared')"

    def __init__(
        self, frame: Any, *, object: Any = None, annotator: Any = None, label: Any = None, no_answer: Any = NO_ANSWER
    ) -> None:
        self._read(read_triples(frame, [object, annotator, label]), no_answer)

    @classmethod
    def of_triples(cls, triples: Triples, no_answer: Any = NO_ANSWER) -> "Answers":
        """Return the answers of a table that is read."""
        answers = object.__new__(cls)
        answers._read(triples, no_answer)
        return answers

    def _read(self, triples: Triples, no_answer: Any) -> None:
        from scipy.sparse import csr_array

        words = answer_words(no_answer)
        self.classes, numbers = shared_vocabulary([triples.label_values.tolist()], words)
        answers = np.append(numbers[0], checks.MISSING)[triples.labels]
        triples = replace(triples, labels=answers, label_values=self.classes)
        triples.refuse_two_labels("leave one of them out", ("answers", "annotator"))
        self.index, self.names = triples.objects, list(triples.clusterings)
        self.n_objects, self.n_clusterings, k = len(triples.objects), len(triples.clusterings), len(self.classes)
        lines = triples.lines
        starts = np.searchsorted(lines.rows, np.arange(self.n_objects + 1))
        ones = np.ones(len(lines.rows), dtype=np.int8)
        shape = (self.n_objects, self.n_clusterings * k)
        self.matrix = csr_array((ones, lines.columns * k + lines.labels, starts), shape=shape)

    @property
    def n_clusters(self) -> int:
        """The number of different answers of all annotators together."""
        return int(np.count_nonzero(np.bincount(self.matrix.indices, minlength=1)))

    @property
    def categories(self) -> list[np.ndarray]:
        """The names of the vocabulary, for each annotator."""
        return [self.classes] * self.n_clusterings

    @property
    def offsets(self) -> np.ndarray:
        """The first column of each annotator (n_clusterings + 1,)."""
        return np.arange(self.n_clusterings + 1) * len(self.classes)

    def refuse(self, reduction: Any, sample_weight: Any) -> None:
        """Raise TypeError for weights of the objects."""
        if sample_weight is not None:
            raise TypeError("sample_weight is not for gpuens.Answers, where each object counts once; leave it out.")

    def __len__(self) -> int:
        return self.n_objects

    def __repr__(self) -> str:
        return (
            f"Answers(n_objects={self.n_objects}, n_annotators={self.n_clusterings}, n_answers={self.matrix.nnz}, "
            f"n_names={len(self.classes)})"
        )


class AnswerRows(Rows):
    """The objects of `Answers` as rows of one object each, in host memory."""

    of_labels = False
    ensemble: Answers  # type: ignore[assignment]

    def __init__(self, answers: Answers, matrix: Any = None) -> None:
        self.matrix = answers.matrix if matrix is None else matrix
        self._hold(answers, np.ones(self.matrix.shape[0], dtype=np.int64), "cpu")

    @property
    def n_clusters(self) -> int:
        return int(self.matrix.shape[1])

    def take(self, rows: Any, counts: np.ndarray | None = None) -> "AnswerRows":
        return AnswerRows(self.ensemble, self.matrix[rows])

    def row_sums(self, values: Any) -> np.ndarray:
        return self.matrix @ np.asarray(values, dtype=np.float64)

    def row_lookups(self, table: Any) -> np.ndarray:
        return self.matrix @ np.asarray(table, dtype=np.float64)

    def cluster_sums(self, values: Any) -> np.ndarray:
        return self.matrix.T @ values

    def cluster_sizes(self) -> np.ndarray:
        return self.cluster_sums(self.counts)

    def count_common(self, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how often each annotator gave each name (M, k), where ``names`` (G,) have one, and where the same.

        ``names`` are codes; -1 is no name.
        """
        n_names, rows = len(self.ensemble.classes), np.repeat(names, np.diff(self.matrix.indptr))
        columns = self.matrix.indices
        masks = rows >= 0, columns % n_names == rows
        counts = [np.bincount(columns[mask], minlength=self.n_clusters).reshape(-1, n_names) for mask in masks]
        return counts[0], counts[1]

    def votes(self) -> np.ndarray:
        """Return the number of answers with each name for each object (G, k), float64."""
        return self.row_lookups(np.tile(np.eye(len(self.ensemble.classes)), (self.n_clusterings, 1)))
