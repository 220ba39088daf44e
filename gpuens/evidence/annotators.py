"""Agreement on single names: of annotators with a consensus, and with each other, if they share a vocabulary."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpuens.labels.answers import AnswerRows
from gpuens.labels.columns import as_column
from gpuens.labels.encoding import encode_column, find_values
from gpuens.labels.incidence import cluster_sums
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows
from gpuens.labels.vocabulary import NO_ANSWER, ensemble_of_names
from gpuens.runtime import checks
from gpuens.runtime import device as devices


@dataclass(frozen=True, eq=False)
class Annotators:
    """Agreement on each name of a shared vocabulary.

    Attributes
    ----------
    annotators : list
        The names of the M clusterings.
    classes : ndarray (k,)
        The names of the vocabulary, ascending.
    votes : ndarray (M, k), int64
        The number of objects to which an annotator gave a name.
    compared, same : ndarray (M, k), int64
        The number of these objects that have a name in the consensus, and the number that have the same name there.
    with_consensus : ndarray (M, k), float64
        `same` / `compared`: the share of an annotator's votes for a name that are the consensus; NaN without them.
    overall : ndarray (M,), float64
        This share for all names together.
    between : ndarray (M, M, k), float64
        The specific agreement of two annotators on a name, from 0 to 1: twice the number of objects to which both gave
        the name, divided by how often the two gave the name to an object that both answered; NaN if they never did.
        Computed on first access, in time proportional to M²; not for `gpuens.Answers`.
    """

    annotators: list[Any]
    classes: np.ndarray
    votes: np.ndarray
    compared: np.ndarray
    same: np.ndarray
    _rows: Rows = field(repr=False)

    @property
    def with_consensus(self) -> np.ndarray:
        return _divide(self.same, self.compared)

    @property
    def overall(self) -> np.ndarray:
        return _divide(self.same.sum(axis=1), self.compared.sum(axis=1))

    @cached_property
    def between(self) -> np.ndarray:
        if isinstance(self._rows, AnswerRows):
            raise TypeError("between compares all pairs of annotators; pass an Ensemble of few of them.")
        codes, clusterings = self._rows.codes, range(len(self.annotators))
        compared = np.array([_count_common(self._rows, codes[:, m]) for m in clusterings])  # (M, 2, M, k)
        votes, agreed = compared[:, 0], compared[:, 1]
        return _divide(2 * agreed, votes + votes.transpose(1, 0, 2))


def annotators(labels: Any, consensus: Any, *, no_answer: Any = NO_ANSWER, device: str = "auto") -> Annotators:
    """Return the agreement of annotators with a consensus, and with each other, for each name of their vocabulary.

    The specific agreement of two annotators is that of Spitzer & Fleiss, British Journal of Psychiatry 125 (1974).

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The names (n_objects, n_clusterings) that annotators gave; objects may be without any name.
    consensus : array (n_objects,)
        A name for each object. Names that no annotator gave, such as "Unknown", are no consensus.
    no_answer : str or list of str
        Words for no answer, as in `gpuens.Voting`.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels without any answer, and for a consensus of another length.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.annotators([["T", "B", "B"], ["T", "T", "B"]], ["T", "Unknown", "B"])
    >>> found.classes.tolist(), found.votes.tolist(), found.with_consensus.tolist()
    (['B', 'T'], [[2, 1], [1, 2]], [[1.0, 1.0], [1.0, 1.0]])
    >>> found.between[0, 1].round(2).tolist()
    [0.67, 0.67]
    """
    ensemble = ensemble_of_names(labels, no_answer)
    rows = Rows.of(ensemble, np.ones(ensemble.n_objects, np.int64), devices.resolve(device, ensemble.device_kind))
    column = as_column(in_order_of(ensemble.index, consensus, "consensus"))
    checks.check_label_vector(tuple(column.shape), type(consensus).__name__, "consensus")
    checks.check_one_per_row(column, ensemble.n_objects, "consensus")
    codes, values = encode_column(column, "consensus")
    places = find_values(devices.to_host(values), ensemble.categories[0], as_written=True)
    return compare_annotators(rows, np.append(places, checks.MISSING)[devices.to_host(codes)])


def compare_annotators(rows: Rows, consensus: np.ndarray) -> Annotators:
    """Return the agreement for rows in one vocabulary; ``consensus`` (G,) is the code of a row's name, or -1."""
    ensemble = rows.ensemble
    if isinstance(rows, AnswerRows):
        compared, same = rows.count_common(consensus)
    else:
        agreed = np.where(consensus < 0, ensemble.missing_code, consensus).astype(rows.codes.dtype)
        compared, same = _count_common(rows, rows.xp.asarray(agreed))
    votes = rows.cluster_sizes().reshape(same.shape)
    return Annotators(ensemble.names, ensemble.categories[0], votes, compared, same, rows)


def _count_common(rows: Rows, answers: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each annotator gave each name (M, k), where ``answers`` have any name, and where the same name.

    ``answers`` (G,) are codes on the device of the rows.
    """
    codes, missing = rows.codes, rows.ensemble.missing_code
    answer_column, counts = answers[:, None], rows.xp.asarray(rows.counts)

    def count_names(mask: Any) -> np.ndarray:
        masked_codes = rows.xp.where(mask, codes, codes.dtype.type(missing))
        sums = devices.to_host(cluster_sums(masked_codes, rows.offsets, counts, device=rows.device))
        return np.asarray(sums, dtype=np.int64).reshape(rows.n_clusterings, -1)

    return count_names(answer_column != missing), count_names(codes == answer_column)


def _divide(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return some / of_all, NaN where of_all is 0."""
    return np.divide(part, total, out=np.full(total.shape, np.nan), where=total > 0)
