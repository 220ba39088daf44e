"""Forecasts of the time and memory of a fit before it runs, by the cost models in `gpuens.workflows.costs`.

Work that is not a fit, such as the choice of a number of clusters, has no cost model. This work is tried on 250, 1,000,
4,000, … objects, and its time is extrapolated from the last two trials. No trial is added if all trials together would
take more than one second, or more than a twentieth of the forecast. If the first trial takes longer than one second,
there is no forecast.
"""

import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.failures import OF_ONE_METHOD
from gpuens.workflows import costs

FIRST_OBJECTS = 250  # objects in the first trial
FACTOR = 4  # ratio of the number of objects in a trial to the number in the previous trial
BUDGET_SECONDS = 1.0  # maximum seconds for all trials together
BUDGET_SHARE = 0.05  # maximum time for all trials together, as a share of the forecast time
STEEPEST = 3.0  # largest exponent p that is assumed if time grows with (number of objects)^p
MANY = 50_000  # smallest number of objects for which `advice` makes forecasts
SAMPLED = 4000  # number of objects that are sampled to decide whether most label rows are distinct
MINUTES = 100.0  # smallest forecast, in seconds, for which `advice` proposes another estimator

Fit = Callable[[], Any]


class Forecast(NamedTuple):
    """The forecast time and memory of a fit.

    Attributes
    ----------
    seconds : float
        Seconds of one CPU thread; NaN for a fit that would be refused, on a GPU, and for a method without a cost model.
    memory : float
        Bytes of host memory in addition to the labels; NaN like ``seconds``.
    refusal : str or None
        The reason why the fit would be refused, such as the bytes that it needs.
    """

    seconds: float
    memory: float
    refusal: str | None = None

    def __str__(self) -> str:
        if self.refusal is not None:
            return self.refusal
        if math.isnan(self.seconds):
            return "unknown"
        return f"{human_seconds(self.seconds)}, {checks.human_bytes(self.memory)}"


def foresee(estimator: Any, labels: Any, features: Any = None) -> Forecast:
    """Return the forecast time and memory of fitting an estimator, without fitting it.

    Parameters
    ----------
    estimator : Consensus
    labels : Ensemble, or anything that Ensemble takes
        Base clusterings of the distinct rows (core groups), or of all objects.
    features : array (n_objects, n_features), optional
        For methods that need features; without features such a method is refused.

    Raises
    ------
    ValueError, TypeError
        For parameters that are invalid for any labels.

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> from gpuens.workflows.forecast import foresee
    >>> labels = np.random.default_rng(0).integers(0, 4, (5000, 6))
    >>> found = foresee(ge.LWGP(3), labels)
    >>> found.seconds > 0, found.memory > 0, found.refusal
    (True, True, None)
    """
    ensemble = Ensemble(labels)
    if estimator.lacks is not None:
        return Forecast(math.nan, math.nan, estimator.lacks)
    parts = estimator._checked()
    if parts.needs_features and features is None:
        return Forecast(math.nan, math.nan, "needs features of the objects.")
    rows = Rows(ensemble, device=devices.resolve(estimator.device, ensemble.device_kind))
    k = estimator._k or 1
    try:
        parts.refuse_too_many(rows, k)
    except OF_ONE_METHOD as error:
        return Forecast(math.nan, math.nan, str(error))
    n_rows = min(len(ensemble), getattr(parts.reduction, "size", len(ensemble)))
    if rows.device == "cuda":  # the cost models are valid only for the CPU
        return Forecast(math.nan, math.nan)
    found = costs.of_fit(estimator, n_rows, ensemble.n_clusterings, ensemble.n_clusters, k)
    if found is None:
        return Forecast(math.nan, math.nan)
    return Forecast(found.seconds, min(found.memory, float(devices.memory_budget(rows.device))))


def of_trials(work: Callable[[np.ndarray], Fit], n: int, k: int) -> float:
    """Run trials on samples, and estimate from them the seconds of work on n objects for up to k clusters.

    ``work(positions)`` prepares a trial on the objects at these positions and returns a function that runs the trial.
    The result is NaN if the trials take too long.
    """
    order = np.random.default_rng(0).permutation(n)
    times: list[tuple[int, float]] = []
    size, spent = min(n, max(FIRST_OBJECTS, 4 * k)), 0.0
    while True:
        do = work(np.sort(order[:size]))
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                do()
        except OF_ONE_METHOD:
            return math.nan  # a trial that fails does not show whether the work on all objects would fail
        times.append((size, max(1e-6, time.perf_counter() - started)))
        spent += times[-1][1]
        foreseen = _extrapolated(times, n)
        next_size = min(n, size * FACTOR)
        if size == n or spent + _extrapolated(times, next_size) > min(BUDGET_SECONDS, BUDGET_SHARE * foreseen):
            break
        size = next_size
    return math.nan if spent > BUDGET_SECONDS else foreseen


def advice(estimator: Any, instead: Any, ensemble: Ensemble) -> tuple[float, float] | None:
    """Return the forecast seconds of ``estimator`` and of ``instead``, if ``instead`` is advisable; otherwise None.

    It is advisable if ``estimator`` takes at least `MINUTES` seconds and ``instead`` at most a tenth of its time. For
    fewer than `MANY` objects, or objects with mostly equal label rows, the result is None, because even an exact
    linkage takes only seconds.
    """
    if ensemble.n_objects < MANY:
        return None
    some = np.sort(np.random.default_rng(0).choice(ensemble.n_objects, SAMPLED, replace=False))
    if core_groups(Rows(ensemble.take(some), device="cpu")).rows.n_rows < SAMPLED // 2:
        return None
    own = foresee(estimator, ensemble).seconds
    if not own >= MINUTES:
        return None
    other = foresee(instead, ensemble).seconds
    return (own, other) if 10 * other <= own else None


def _extrapolated(times: list[tuple[int, float]], n: int) -> float:
    """Extrapolate the times of the last two trials, given as (number of objects, seconds), to n objects."""
    size, seconds = times[-1]
    if size == n or len(times) == 1:
        return seconds * n / size
    before, shorter = times[-2]
    power = math.log(seconds / shorter) / math.log(size / before)
    if power > 1:
        return float(seconds * (n / size) ** min(power, STEEPEST))
    return seconds + max(0.0, seconds - shorter) / (size - before) * (n - size)


def human_seconds(seconds: float) -> str:
    """Return a duration in seconds as a short text.

    >>> human_seconds(0.21), human_seconds(7.6), human_seconds(400), human_seconds(40_000)
    ('.2 s', '8 s', '7 min', '11 h')
    """
    if seconds < 1:
        return f"{max(seconds, 0.1):.1f} s".lstrip("0")
    for unit, length in (("s", 1.0), ("min", 60.0)):
        if seconds < 100 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 3600:.0f} h"
