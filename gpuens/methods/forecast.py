"""Forecasts of the peak memory of a fit, from the shape of the labels and before they are read.

    peak = process + max(reading, grouping, fitting)

    reading     the codes, and what the kind of file takes beside them
    grouping    the codes, the words and the order of the rows, and the distinct rows
    fitting     the codes, the distinct rows, and the bytes for which similarity and partitioner ask `check_memory`

Before the labels are read, all label rows count as distinct. tests/methods/test_forecast.py compares forecasts with
measured peaks.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gpuens.labels.rows import Rows
from gpuens.labels.shape import LabelShape, sample_rows
from gpuens.reduction.core_groups import words_of
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.failures import OF_ONE_METHOD

PROCESS_BYTES = 93_000_000  # peak of the command for a few objects, mostly imported packages
OBJECT_BYTES = 16  # bytes for each object in grouping: its count and its group
GROUP_BYTES = 37  # bytes for each distinct row in grouping: order, place and count
MANY_LABELS = 2**26  # smallest number of labels in an array for which a fit is foreseen before it begins
SAMPLE = "sample:5000"  # reduction that is advised
ASSUMED_K = 10  # number of clusters of a consensus that chooses its number


class Forecast(NamedTuple):
    """The forecast peak memory of a command that reads labels and fits an estimator.

    Attributes
    ----------
    memory : int or None
        Bytes of host memory at the peak; None if the fit would be refused, and on a GPU.
    refusal : str or None
        The reason why no fit is possible, such as a missing package.
    needed : int
        The part of ``memory`` that the system cannot drop: a mapped file is left out.
    reading : int
        The bytes needed before the first label row is known.
    """

    memory: int | None
    refusal: str | None = None
    needed: int = 0
    reading: int = 0

    def __str__(self) -> str:
        if self.refusal is not None:
            return self.refusal
        return "unknown" if self.memory is None else checks.human_bytes(self.memory)


class _RowsOfShape(Rows):
    """Rows without labels, for functions that compute the bytes of a fit from sizes."""

    def __init__(self, shape: LabelShape, n_rows: int) -> None:
        offsets = np.concatenate([[0], np.cumsum(shape.clusters)])
        code = np.zeros((), dtype=f"u{shape.code_bytes}")
        counts = np.broadcast_to(np.int64(1), n_rows)  # no memory for each row
        rows = Rows.of_codes(np.broadcast_to(code, (n_rows, shape.n_clusterings)), offsets, counts, "cpu")
        self._hold(rows.ensemble, counts, "cpu")
        self._n_objects = shape.n_objects
        self._cluster_sizes = np.repeat(np.maximum(1, shape.n_objects // shape.clusters), shape.clusters)

    @property
    def n_objects(self) -> int:
        return self._n_objects


def foresee(estimator: Any, shape: LabelShape, *, features: bool = False, process: int = PROCESS_BYTES) -> Forecast:
    """Return the forecast peak memory of a command that reads labels of a shape and fits an estimator.

    Parameters
    ----------
    estimator : Method
    shape : LabelShape
    features : bool
        Whether the features that some methods need are given; without features such a method is refused.
    process : int
        Bytes of the process without labels.

    Raises
    ------
    ValueError, TypeError
        For parameters that are invalid for any labels.

    Examples
    --------
    >>> import gpuens as ge
    >>> from gpuens.labels.shape import LabelShape
    >>> from gpuens.methods.forecast import foresee
    >>> print(foresee(ge.LWGP(12), LabelShape(20_000_000, 30)))
    3.9 GB
    """
    if (reason := estimator.parts().lacks) is not None:
        return Forecast(None, reason)
    parts = estimator.checked_parts()
    if parts.needs_features and not features:
        return Forecast(None, "needs features of the objects.")
    if devices.resolve(estimator.device) == "cuda":
        return Forecast(None)
    k, sample = estimator._k or ASSUMED_K, getattr(parts.reduction, "size", None)
    n_rows = shape.distinct if sample is None else min(shape.distinct, _sample_size(sample, shape.n_objects))
    try:
        working = _working_bytes(parts, _RowsOfShape(shape, n_rows), k)
    except OF_ONE_METHOD as error:
        return Forecast(None, str(error))
    of_row = shape.n_clusterings * shape.code_bytes
    codes, grouped = shape.n_objects * of_row, shape.distinct * (of_row + 8)
    reading = process + codes + shape.read_bytes
    n_words = int(words_of(shape.clusters + 1)[-1]) + 1
    grouping = codes + shape.n_objects * (8 * n_words + OBJECT_BYTES) + shape.distinct * (of_row + GROUP_BYTES)
    fitting = codes + 8 * shape.n_objects + grouped + working
    if sample is not None:  # the distinct rows are kept, and the rows that were not drawn are labelled afterwards
        fitting += grouped + n_rows * of_row + 16 * k * shape.distinct
    needed = max(reading, process + max(grouping, fitting))
    return Forecast(max(needed, reading + shape.mapped_bytes), None, needed, reading)


def refuse_beyond_memory(
    estimator: Any,
    shape: LabelShape,
    name: str,
    remedies: Mapping[str, str],
    *,
    features: bool = False,
    process: int = PROCESS_BYTES,
) -> None:
    """Raise MemoryError, before labels are read, if a fit would certainly exceed the memory budget.

    This is certain if reading alone exceeds the budget, or if the fit does for the number of distinct rows that a
    sample suggests.

    Parameters
    ----------
    estimator : Method
    shape : LabelShape
    name : str
        The name of the method.
    remedies : mapping
        The advice to set the "reduction" or the "scheduler", as far as these settings are available.
    features, process
        As in `foresee`.
    """
    forecast, budget = foresee(estimator, shape, features=features, process=process), devices.memory_budget()
    if forecast.memory is not None and forecast.reading <= budget < forecast.needed:
        sampled = shape.with_rows_of_sample()
        if sampled is None:
            return
        shape, forecast = sampled, foresee(estimator, sampled, features=features, process=process)
    if forecast.memory is not None and forecast.needed > budget:
        among = "" if shape.n_rows is None else f" with about {shape.n_rows:,} distinct label rows"
        advice = _advice(estimator, shape, remedies, features)
        checks.check_memory(forecast.memory, budget, f"{name} of {shape}{among}", advice)


def refuse_array(estimator: Any, labels: Any) -> None:
    """Raise MemoryError if a fit to a large array of labels would certainly exceed the memory budget."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.size >= MANY_LABELS and labels.dtype.kind in "iu":
        n_objects, n_clusterings = labels.shape
        shape = LabelShape(n_objects, n_clusterings, sample=partial(sample_rows, labels))
        remedies = {
            "reduction": f"work on a sample, reduction={SAMPLE!r}",
            "scheduler": "pass the labels as a Dask array, which is read in chunks",
        }
        refuse_beyond_memory(estimator, shape, type(estimator).__name__, remedies, process=0)


def _advice(estimator: Any, shape: LabelShape, remedies: Mapping[str, str], features: bool) -> str:
    if "scheduler" in remedies and estimator.parts().learns_by_sums:
        return remedies["scheduler"]
    if "reduction" in remedies and "reduction" in estimator.get_params():
        sampled = foresee(clone(estimator).set_params(reduction=SAMPLE), shape, features=features)
        if sampled.needed <= devices.memory_budget():
            return remedies["reduction"]
    return "take fewer objects or clusterings"


def _sample_size(size: int | float, n_objects: int) -> int:
    return size if isinstance(size, int) else max(1, math.ceil(size * n_objects))


def _working_bytes(parts: Any, rows: Rows, k: int) -> int:
    """Return the largest number of bytes that similarity and partitioner ask for.

    Of several methods, those beyond the budget are not run, unless all are.
    """
    needed = []
    for part in [part for _, part in getattr(parts.partitioner, "candidates", ())] or [parts]:
        with checks.memory_asked() as n_bytes:
            part.ask_memory(rows, k)
        needed.append(max(n_bytes, default=0))
    return max((total for total in needed if total <= devices.memory_budget()), default=min(needed))
