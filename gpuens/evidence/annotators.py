"""Agreement on single names: of annotators with a consensus, and with each other, if they share a vocabulary."""

from typing import Any, NamedTuple

import numpy as np

from gpuens.evidence.inputs import check_tables
from gpuens.labels.columns import as_column
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.incidence import label_histograms
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows
from gpuens.labels.values import encode_column, find_values
from gpuens.labels.vocabulary import NO_ANSWER, answer_words, with_one_vocabulary
from gpuens.runtime import checks
from gpuens.runtime import device as devices


class Annotators(NamedTuple):
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
        `with_consensus` is `same` / `compared`, and `overall` (M,) is this share for all names together.
    between : ndarray (M, M, k), float64
        The specific agreement of two annotators on a name, from 0 to 1: twice the number of objects to which both gave
        the name, divided by how often the two gave the name to an object that both answered; NaN if they never did.
    """

    annotators: list[Any]
    classes: np.ndarray
    votes: np.ndarray
    compared: np.ndarray
    same: np.ndarray
    between: np.ndarray

    @property
    def with_consensus(self) -> np.ndarray:
        """The share (M, k) of an annotator's votes for a name that are the consensus; NaN without compared votes."""
        return share(self.same, self.compared)

    @property
    def overall(self) -> np.ndarray:
        """The share (M,) of all compared votes of an annotator that are the consensus; NaN without compared votes."""
        return share(self.same.sum(axis=1), self.compared.sum(axis=1))


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
    ValueError, TypeError, MemoryError
        For labels that `Ensemble` refuses, a consensus of another length, and too many names for the memory.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.annotators([["T", "B", "B"], ["T", "T", "B"]], ["T", "Unknown", "B"])
    >>> found.classes.tolist(), found.votes.tolist(), found.with_consensus.tolist()
    (['B', 'T'], [[2, 1], [1, 2]], [[1.0, 1.0], [1.0, 1.0]])
    >>> found.between[0, 1].round(2).tolist()
    [0.67, 0.67]
    """
    words = answer_words(no_answer)
    ensemble = labels if isinstance(labels, Ensemble) else Ensemble.of_read(labels, None, shared_names=True)[0]
    ensemble = with_one_vocabulary(ensemble, words)
    rows = Rows.of(ensemble, np.ones(ensemble.n_objects, np.int64), devices.resolve(device, ensemble.device_kind))
    column = as_column(in_order_of(ensemble.index, consensus, "consensus"))
    checks.check_label_vector(tuple(column.shape), type(consensus).__name__, "consensus")
    checks.check_one_per_row(column, ensemble.n_objects, "consensus")
    codes, values = encode_column(column, "consensus")
    places = find_values(devices.to_host(values), ensemble.categories[0], as_written=True)
    return of_rows(rows, np.append(places, checks.MISSING)[devices.to_host(codes)])


def of_rows(rows: Rows, consensus: np.ndarray) -> Annotators:
    """Return the agreement for rows in one vocabulary; ``consensus`` (G,) is the code of a row's name, or -1."""
    names, n_clusterings = rows.ensemble.categories[0], rows.n_clusterings
    k = len(names)
    check_tables(rows.n_clusters, k)
    votes = rows.cluster_sizes().reshape(n_clusterings, k)
    found = _shared(rows, consensus, k)
    compared, same = found.sum(axis=2), np.diagonal(found, axis1=1, axis2=2)
    between = np.empty((n_clusterings, n_clusterings, k))
    for m in range(n_clusterings):
        codes = devices.to_host(rows.codes[:, m]).astype(np.int64)
        shared = _shared(rows, np.where(codes < k, codes, checks.MISSING), k)
        given = shared.sum(axis=1) + shared.sum(axis=2)  # by m where another annotator answered, and by this annotator
        between[m] = share(2 * np.diagonal(shared, axis1=1, axis2=2), given)
    return Annotators(rows.ensemble.names, names, votes, compared, same, between)


def _shared(rows: Rows, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the number of objects (M, k, k) with each name of each annotator and each label; -1 is no label."""
    weights, xp = np.where(labels < 0, 0, rows.counts), rows.xp
    given = xp.asarray(weights), xp.asarray(np.maximum(labels, 0))
    found = label_histograms(rows.codes, rows.offsets, *given, k, device=rows.device)
    return devices.to_host(found).reshape(rows.n_clusterings, k, k)


def share(some: np.ndarray, of_all: np.ndarray) -> np.ndarray:
    """Return some / of_all, NaN where of_all is 0."""
    found: np.ndarray = np.divide(some, of_all, out=np.full(of_all.shape, np.nan), where=of_all > 0)
    return found
