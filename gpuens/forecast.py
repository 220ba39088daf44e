"""What a fit will take: seconds and memory, foreseen from fits to some of the rows.

A method is fitted to 250, 1,000, 4,000, … rows drawn at random, until a fit takes long enough to tell. Seconds are
taken to grow on as between the last two fits: by a power of the rows, or in proportion to further rows where a part of
the cost is the same for any number. Memory alike, up to the budget that no method exceeds.
"""

import math
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gpuens import checks
from gpuens import device as devices
from gpuens.ensemble import Ensemble
from gpuens.failures import OF_ONE_METHOD
from gpuens.record import processor_seconds
from gpuens.reduction import core_groups
from gpuens.rows import Rows

FIRST, FACTOR = 250, 4  # rows of the first trial, and how many times more the next has
ENOUGH = 0.5  # seconds of a trial that is the last
SHORT, STEEP = 0.25, 8.0  # seconds of a trial that is made twice, and how many times those of the one before
STEEPEST = {"seconds": 3.0, "bytes": 2.0}  # powers of the number of rows
TOO_LONG = 5.0  # seconds of a trial that is the only one
MANY, SAMPLED, MINUTES = 50_000, 4000, 100.0  # objects, those of them looked at, and seconds that call for advice


Fit = Callable[[], Any]


class Forecast(NamedTuple):
    """What a fit, or other work on objects, is expected to take.

    Attributes
    ----------
    seconds : float
        NaN for a fit that would be refused, and where no part of the rows can be fitted alone.
    memory : float
        Bytes beside the labels, in host memory; NaN like ``seconds``.
    refusal : str or None
        Why the fit would be refused, such as the bytes that it needs.
    """

    seconds: float
    memory: float
    refusal: str | None = None

    def __str__(self) -> str:
        if self.refusal is not None:
            return self.refusal
        if math.isnan(self.seconds):
            return "nobody knows how long"
        return f"{human_seconds(self.seconds)}, {checks.human_bytes(self.memory)}"


def foresee(estimator: Any, labels: Any, features: Any = None) -> Forecast:
    """Return what fitting an estimator will take; the estimator itself is not fitted.

    Parameters
    ----------
    estimator : Consensus
    labels : Ensemble, or anything that Ensemble takes
        Base clusterings of distinct rows (those of core groups), or of all objects.
    features : array (n_objects, n_features), optional
        For methods that need them; without them such a method is refused.

    Raises
    ------
    ValueError, TypeError
        For parameters that are wrong for any labels.

    Examples
    --------
    >>> import numpy as np
    >>> import gpuens as ge
    >>> from gpuens.forecast import foresee
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

    def fit(some: np.ndarray) -> Fit:
        given = {} if features is None else {"features": features[some]}
        labels = ensemble.take(some)
        return lambda: clone(estimator).fit(labels, **given)

    try:
        parts.refuse_too_many(rows, estimator._k or 1)
    except OF_ONE_METHOD as error:
        return Forecast(math.nan, math.nan, str(error))
    steepest = 1.0 if estimator.learns_by_sums else STEEPEST["seconds"]
    return of_trials(fit, len(ensemble), estimator._k or 1, steepest, rows.device)


def of_trials(
    fit: Callable[[np.ndarray], Fit], n: int, k: int, steepest: float = STEEPEST["seconds"], device: str = "cpu"
) -> Forecast:
    """Return what work on n objects for k clusters will take, which ``fit`` prepares for some of them (positions).

    Seconds grow by the power ``steepest`` of the objects at most.
    """
    try:
        trials = list(_trials(fit, n, k, device))
    except OF_ONE_METHOD as error:
        return Forecast(math.nan, math.nan, str(error))
    if not trials:
        return Forecast(math.nan, math.nan)
    times = [(size, max(seconds, 1e-6)) for size, seconds, _ in trials]
    traced = [(size, float(held)) for size, _, held in trials if held is not None]
    memory = _extrapolated(traced, n, STEEPEST["bytes"])
    budget = float(devices.memory_budget(device))
    return Forecast(_extrapolated(times, n, steepest), min(memory, max(budget, traced[-1][1])))


def advice(estimator: Any, instead: Any, ensemble: Ensemble) -> tuple[float, float] | None:
    """Return the seconds foreseen for a fit that would take minutes, and for another that would take a tenth at most.

    None where there is no such advice. Only many objects of which most are distinct are looked at: on others exact
    linkage takes seconds.
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


def _trials(
    prepare: Callable[[np.ndarray], Fit], n: int, k: int, device: str
) -> Iterator[tuple[int, float, int | None]]:
    """Yield the rows of each trial, its seconds, and for the first two the bytes that it has held."""
    order = np.random.default_rng(0).permutation(n)
    first = size = min(n, max(FIRST, 4 * k))
    seconds = math.inf
    while True:
        fit = prepare(np.sort(order[:size]))
        held = None
        try:
            if size <= FACTOR * first:  # the first of these fits compiles
                held = _held(fit)
            before, seconds = seconds, _seconds(fit, device)
            if seconds < SHORT or seconds > STEEP * before:  # functions may have been compiled, other work come between
                seconds = min(seconds, _seconds(fit, device))
        except ValueError:
            if size == n:
                raise
            return  # what is said of some of the rows need not be true of all
        yield size, seconds, held
        if size == n or seconds >= (TOO_LONG if size == first else ENOUGH):
            return
        size = min(n, size * FACTOR)


def _seconds(fit: Fit, device: str) -> float:
    """Return the seconds of a fit; where other processes hold the processor, those of this one and of its own."""
    started, worked = time.perf_counter(), processor_seconds()
    _quietly(fit)
    passed, worked = time.perf_counter() - started, processor_seconds() - worked
    return passed if device == "cuda" else min(passed, worked)


def _quietly(fit: Fit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()


def _held(fit: Fit) -> int:
    """Return the most bytes that a fit has held at once."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        _quietly(fit)
        return max(1, tracemalloc.get_traced_memory()[1] - before)
    finally:
        if ours:
            tracemalloc.stop()


def _extrapolated(costs: list[tuple[int, float]], n: int, steepest: float) -> float:
    """Return the cost at n rows from the costs of trials, of which the last two count."""
    size, cost = costs[-1]
    if size == n or len(costs) == 1:
        return cost * n / size
    before, cheaper = costs[-2]
    power = math.log(cost / cheaper) / math.log(size / before)
    if power > 1:
        return float(cost * (n / size) ** min(power, steepest))
    return cost + max(0.0, cost - cheaper) / (size - before) * (n - size)


def human_seconds(seconds: float) -> str:
    """Return seconds for people.

    >>> human_seconds(0.21), human_seconds(7.6), human_seconds(400), human_seconds(40_000)
    ('.2 s', '8 s', '7 min', '11 h')
    """
    if seconds < 1:
        return f"{max(seconds, 0.1):.1f} s".lstrip("0")
    for unit, length in (("s", 1.0), ("min", 60.0)):
        if seconds < 100 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 3600:.0f} h"
