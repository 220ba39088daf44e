"""Fewer rows for the same answer: reductions replace N objects by representatives with counts.

A reduction is any object with ``reduce(rows) -> Reduction``. Core groups are exact and are what every estimator uses
when it is told nothing else.
"""

from typing import Any

from gpuens import checks
from gpuens.options import named
from gpuens.reduction.base import Reduction, check_reduced, last_not_after
from gpuens.reduction.ca_tree import CATree
from gpuens.reduction.core_groups import CoreGroups, core_groups
from gpuens.reduction.sampling import Sample

__all__ = ["CATree", "CoreGroups", "Reduction", "Sample", "check_reduced", "core_groups", "last_not_after", "reducer"]

_BY_NAME: dict[str, Any] = {"catree": CATree, "core-groups": CoreGroups, "sample": Sample}


def reducer(value: Any) -> Any:
    """Return what reduces an ensemble: ``value`` itself, or what a text such as "sample:5000,by=sum" names.

    >>> from gpuens.reduction import reducer
    >>> reducer("sample:size=5000,by=sum")
    Sample(5000, random_state=0, by='sum')
    """
    if isinstance(value, str):
        return named(value, _BY_NAME, "reduction")
    # classes have the method too, but no rows can be given to it; NumPy's functions have another of that name
    if callable(value) or not callable(getattr(value, "reduce", None)):
        raise TypeError(
            "reduction must be None, have a method reduce(rows) as CoreGroups() has, or be a name with parameters such "
            f"as 'sample:5000', not {checks.shown(value)}."
        )
    return value
