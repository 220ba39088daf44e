"""Reductions replace N objects by fewer rows with counts.

A reduction is any object with ``reduce(rows) -> Reduction``. The default, core groups, is exact, for linkages wherever
objects are at least as similar to those with their labels as to others: not by "mapping" (ECRMC) and "jaccard", nor, in
rare cases of tiny clusters, by "coupled". There it keeps together what the tree of all pairs would part by order alone.
"""

from typing import Any

from gpuens.reduction.base import Reducer, Reduction, check_reduced
from gpuens.reduction.ca_tree import CATree
from gpuens.reduction.core_groups import CoreGroups, core_groups
from gpuens.reduction.find import find_rows
from gpuens.reduction.sampling import Sample
from gpuens.runtime import checks
from gpuens.runtime.options import named

__all__ = [
    "CATree",
    "CoreGroups",
    "Reducer",
    "Reduction",
    "Sample",
    "check_reduced",
    "core_groups",
    "find_rows",
    "reducer",
]

_BY_NAME: dict[str, Any] = {"catree": CATree, "core-groups": CoreGroups, "sample": Sample}


def reducer(value: Any) -> Reducer:
    """Return the reduction that ``value`` is or names, such as "sample:5000,by=sum".

    >>> from gpuens.reduction import reducer
    >>> reducer("sample:size=5000,by=sum")
    Sample(5000, random_state=0, by='sum')
    """
    if isinstance(value, str):
        value = named(value, _BY_NAME, "reduction")
    # a class has the method too, but is no instance; NumPy's functions have another method of that name
    if callable(value) or not callable(getattr(value, "reduce", None)):
        raise TypeError(
            "reduction must be None, have a method reduce(rows) as CoreGroups() has, or be a name with parameters such "
            f"as 'sample:5000', not {checks.shown(value)}."
        )
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
