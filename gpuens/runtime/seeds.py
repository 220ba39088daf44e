"""The argument ``rng`` of functions: the name under which SPEC 7 of Scientific Python passes random numbers.

A function takes ``random_state``, as in scikit-learn, or ``rng``, as in SciPy and scikit-image, and never both. A seed
under either name gives the same result, and None draws a fresh seed. By default, the seed is that of ``random_state``,
so that a result can be repeated. As in SciPy, ``rng`` is no RandomState.

Estimators, partitioners and reductions have ``random_state`` alone. Their parameters are attributes, which
``get_params``, ``set_params`` and ``clone`` read by name, and two attributes for one seed could disagree.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, Final, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class NotGiven:
    """The default of ``rng``, because None asks for a fresh seed."""

    def __repr__(self) -> str:
        return "<not given>"


NOT_GIVEN: Final = NotGiven()


def takes_rng(function: Function) -> Function:
    """Return a function that reads its argument ``rng`` as its ``random_state``.

    The signature of the function has both arguments, and its body reads ``random_state`` alone.

    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.evidence.pairs(labels, rng=7).counts.tolist() == ge.evidence.pairs(labels, random_state=7).counts.tolist()
    True
    """

    @wraps(function)
    def with_one_seed(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("rng", NOT_GIVEN) is not NOT_GIVEN:
            rng = kwargs.pop("rng")
            if "random_state" in kwargs or "random_state" in signature(function).bind_partial(*args).arguments:
                raise TypeError("rng and random_state are two names of one argument; pass one of them.")
            kwargs["random_state"] = _check_rng(rng)
        return function(*args, **kwargs)

    return with_one_seed  # type: ignore[return-value]


def _check_rng(rng: Any) -> Any:
    """Return ``rng`` as a value of ``random_state``, or refuse it; a sequence of integers is a SeedSequence."""
    import numpy as np  # `import gpuens` does without

    from gpuens.runtime import checks

    if isinstance(rng, np.random.RandomState):
        raise TypeError("rng must be a numpy.random.Generator or a seed, not a RandomState; pass it as random_state.")
    if (isinstance(rng, Sequence) and not isinstance(rng, (str, bytes))) or getattr(rng, "ndim", 0) == 1:
        words = [checks.check_integer(word, "rng", minimum=0) for word in rng]
        return np.random.SeedSequence(words)
    if rng is None or isinstance(rng, (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)):
        return rng
    return checks.check_integer(rng, "rng", minimum=0, maximum=2**128 - 1)
