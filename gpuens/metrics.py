"""Scores of two or more labelings: NMI, ARI, variation of information, accuracy, stability, expected loss.

Every score is computed from one contingency table. Labels may be integers of any width, strings or categories, in
lists, arrays (also in GPU memory) or Series; Series are matched by their indexes. Dicts of object to label, and sets of
the members of clusters, are matched by the objects. Objects that are missing (-1, NaN, None) in one of the labelings
are omitted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from gpuens.contingency.labels import Table, encode, labels_of
from gpuens.contingency.losses import check_loss, losses_to, read_draws
from gpuens.contingency.scores import AVERAGES, ari_of, nmi_of, score_pairs, vi_of
from gpuens.contingency.tables import cells, weighted_table
from gpuens.labels.columns import split_columns
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.weights import are_whole, whole_copies
from gpuens.runtime import checks
from gpuens.runtime import device as devices

__all__ = ["accuracy", "ari", "expected_loss", "nmi", "scores", "stability", "vi"]


def nmi(a: Any, b: Any, average: str = "geometric", *, sample_weight: Any = None) -> float:
    """Return the normalised mutual information of two labelings, from 0 (independent) to 1 (equal partitions).

    The score is I(a, b) / average(H(a), H(b)). Papers on consensus clustering use the geometric mean √(H(a) H(b)), but
    Table V of "Locally weighted ensemble clustering" was computed with ``average="max"``. The score equals
    scikit-learn's ``normalized_mutual_info_score`` with the same ``average_method``; there, the default is
    "arithmetic".

    Parameters
    ----------
    a, b : array-like (n_objects,)
    average : {"geometric", "max", "arithmetic", "min"}
    sample_weight : array (n_objects,), optional
        Positive weights of the objects; weight 3 counts as three objects. Whole numbers are divided by their greatest
        common divisor.

    Raises
    ------
    ValueError, TypeError
        For labelings that are not 1-D, are empty, differ in length or have no labelled object in common, and for
        weights that are not n_objects positive numbers.

    Examples
    --------
    >>> import gpuens as ge
    >>> round(ge.metrics.nmi(["x", "x", "y", "y"], [0, 0, 1, 2]), 4)
    0.8165
    """
    checks.check_choice(average, "average", AVERAGES)
    return nmi_of(_common(a, b, sample_weight), average)


def ari(a: Any, b: Any, *, sample_weight: Any = None) -> float:
    """Return the adjusted Rand index of two labelings: 1 for equal partitions, 0 on average by chance.

    Pairs of objects are counted in exact integers; weights therefore must be whole numbers. The score equals
    scikit-learn's ``adjusted_rand_score``. The arguments and errors are those of `nmi`.

    >>> import gpuens as ge
    >>> round(ge.metrics.ari([0, 0, 1, 1, None], [0, 0, 1, 2, 2]), 4)
    0.5714
    """
    return ari_of(_common(a, b, sample_weight, pairs=True))


def vi(a: Any, b: Any, *, sample_weight: Any = None) -> float:
    """Return the variation of information of two labelings in bits, H(a|b) + H(b|a), from 0 for equal partitions.

    The value is a metric of partitions (Meilă 2007, "Comparing clusterings: an information based distance"), at most
    log2(n_objects). Bits are the unit of salso's and mcclust's VI in R, and of ``Median(loss="vi")``. The arguments
    and errors are those of `nmi`.

    >>> import gpuens as ge
    >>> ge.metrics.vi(["x", "x", "y", "y"], [0, 0, 1, 2])
    0.5
    """
    return vi_of(_common(a, b, sample_weight))


def accuracy(a: Any, b: Any, *, sample_weight: Any = None) -> float:
    """Return the share of objects with equal labels after the best one-to-one matching of the clusters (Hungarian).

    If one labeling has more clusters, the surplus clusters are unmatched. The arguments and errors are those of `nmi`.

    >>> import gpuens as ge
    >>> ge.metrics.accuracy(["x", "x", "y", "y"], [1, 1, 0, 2])
    0.75
    """
    return _accuracy_of(_common(a, b, sample_weight))


def scores(a: Any, b: Any, *, sample_weight: Any = None) -> dict[str, float]:
    """Return NMI (normalised by the geometric mean, and by the maximum), ARI and accuracy from one contingency table.

    The arguments and errors are those of `ari`.

    >>> import gpuens as ge
    >>> {name: round(value, 3) for name, value in ge.metrics.scores([0, 0, 1, 1], [0, 0, 1, 2]).items()}
    {'nmi': 0.816, 'nmi_max': 0.667, 'ari': 0.571, 'accuracy': 0.75}
    """
    counts = _common(a, b, sample_weight, pairs=True)
    return {
        "nmi": nmi_of(counts),
        "nmi_max": nmi_of(counts, "max"),
        "ari": ari_of(counts),
        "accuracy": _accuracy_of(counts),
    }


def stability(labelings: Any, score: str = "ari", average: str = "geometric") -> float:
    """Return the mean agreement over all pairs of labelings of the same objects, for example of several runs.

    With the adjusted Rand index this is the pairwise stability of Kuncheva and Vetrov (2006, "Evaluation of stability
    of k-means cluster ensembles with respect to random initialization"). Their combined stability index (CSI) is the
    sum of two such terms, one for the individual clusterers and one for the ensembles. Papers on consensus functions
    report a CSI between 0 and 1 without a definition. We interpret such a CSI as a single term: the ``stability`` of
    the method's runs, or of the base clusterings.

    Parameters
    ----------
    labelings : list of labelings (n_objects,), array (n_objects, n_runs), DataFrame or Ensemble
    score : {"ari", "nmi", "accuracy"}
    average : {"geometric", "max", "arithmetic", "min"}
        For ``score="nmi"``.

    Raises
    ------
    ValueError, TypeError
        For fewer than two labelings, different lengths, or two labelings without a common labelled object.

    Examples
    --------
    >>> import gpuens as ge
    >>> ge.metrics.stability([[0, 0, 1, 1], ["b", "b", "a", "a"], [0, 1, 0, 1]])
    0.0
    """
    checks.check_choice(average, "average", AVERAGES)
    by_score: dict[str, Callable[[Table], float]] = {
        "ari": ari_of,
        "nmi": lambda counts: nmi_of(counts, average),
        "accuracy": _accuracy_of,
    }
    of_table = by_score[checks.check_choice(score, "score", by_score)]
    if isinstance(labelings, Ensemble):
        names = labelings.names
        labels = labels_of(labelings, devices.resolve("auto", labelings.device_kind))
    else:
        columns = split_columns(labelings)
        names = columns.names
        labels = encode(columns.values, [f"labelings[{name!r}]" for name in names])
    if len(names) < 2:
        raise ValueError(
            f"labelings: at least 2 are needed for a comparison, but {len(names)} was given; pass more runs."
        )
    first, second = np.triu_indices(len(names), 1)
    agreements = score_pairs(labels, of_table).matrix()[first, second]
    for i, j in zip(first[np.isnan(agreements)], second[np.isnan(agreements)], strict=True):
        raise _nothing_in_common(f"labelings[{names[i]!r}]", f"labelings[{names[j]!r}]")
    return float(agreements.mean())


def expected_loss(draws: Any, labels: Any, loss: str = "binder", a: float = 1.0) -> float:
    """Return the mean loss of a partition to clusterings, such as draws of a Bayesian model.

    The value is the objective that `gpuens.Median` minimises. Equal draws are compared once, in time proportional to
    the number of labels.

    Parameters
    ----------
    draws : anything that `gpuens.Ensemble` takes, or an array or DataFrame (n_draws, n_objects)
        The length of ``labels`` tells whether rows or columns are draws; a square array has draws in columns. An object
        without a label is alone in that draw.
    labels : array (n_objects,)
        A label for every object.
    loss : {"binder", "vi", "omari"}
        "binder": pairs of objects on which partition and draw disagree, divided by N²; "vi": the variation of
        information, in bits; "omari": one minus the adjusted Rand index.
    a : float in [0, 2]
        The cost of putting apart what is together in a draw; the reverse costs 2 - a. Not for "omari".

    Raises
    ------
    ValueError, TypeError
        For draws that Ensemble refuses, labels of another length or with missing ones, and an unknown loss.

    Examples
    --------
    >>> import gpuens as ge
    >>> draws = [[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]]
    >>> ge.metrics.expected_loss(draws, [0, 0, 1, 1], "vi") == 0.5 / 3
    True
    >>> ge.metrics.expected_loss(draws, [0, 0, 1, 1], "binder") == 2 / 4**2 / 3
    True
    """
    weight = check_loss(loss, a)
    return float(losses_to(*read_draws(draws, labels), loss, weight).mean())


def _common(a: Any, b: Any, weights: Any = None, *, pairs: bool = False) -> Table:
    """Return the contingency table; with ``pairs``, refuse weights with fractions, which form no pairs of objects."""
    if weights is not None:
        weights = _whole_if_possible(weights)
    counts = weighted_table(a, b, weights, "sample_weight")
    if pairs and weights is not None and weights.dtype.kind == "f":
        raise ValueError(
            "sample_weight has fractions, but the adjusted Rand index counts pairs of objects and needs whole "
            "numbers; round them, or use nmi or accuracy."
        )
    if not counts.sum():
        raise _nothing_in_common("a", "b")
    return counts


def _nothing_in_common(a: str, b: str) -> ValueError:
    return ValueError(
        f"{a} and {b} cannot be compared, because no object has a label in both; -1, NaN and None mean missing."
    )


def _whole_if_possible(weights: Any) -> Any:
    """Return weights as an array or Series; whole numbers become integers without a common divisor."""
    array = checks.host_array(weights, "sample_weight must be numbers, one per object")
    positive = array.dtype.kind in "iuf" and array.size and np.isfinite(array).all() and (array > 0).all()
    if not positive or not are_whole(array):
        return weights if hasattr(weights, "iloc") else array  # the caller refuses invalid weights
    integers = whole_copies(array.ravel(), 2, "a comparison of two labelings").counts.reshape(array.shape)
    return type(weights)(integers, index=weights.index) if hasattr(weights, "iloc") else integers


def _accuracy_of(counts: Table) -> float:
    total = counts.sum()
    return float(_matched(counts) / total) if total else float("nan")


def _matched(counts: Table) -> Any:
    """Return the largest sum of cells of a contingency table if each row and each column has at most one cell in it."""
    if isinstance(counts, np.ndarray):
        from scipy.optimize import linear_sum_assignment

        return counts[linear_sum_assignment(counts, maximize=True)].sum()
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    # An additional column for every row guarantees that all rows can be matched. A cell of an additional column has the
    # weight 1, and any other cell has the weight count + 1.
    n_rows = counts.shape[0]
    rows, cols, n = cells(counts)
    row_places = np.arange(n_rows)
    worth = np.concatenate([n + 1, np.ones(n_rows, n.dtype)]).astype(np.float64)
    places = np.concatenate([rows, row_places]), np.concatenate([cols, counts.shape[1] + row_places])
    padded = sparse.csr_array((worth, places), shape=(n_rows, counts.shape[1] + n_rows))
    matching = min_weight_full_bipartite_matching(padded, maximize=True)
    return padded[matching].sum() - n_rows


def __dir__() -> list[str]:
    return sorted(__all__)
