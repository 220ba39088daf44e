"""Fewer rows for the same answer: reductions replace N objects by weighted representatives.

A reduction is any object with ``reduce(ensemble) -> Reduction``. Core groups are exact and are what every estimator
uses when it is told nothing else.
"""

import inspect
from typing import Any

from gpuens import validation
from gpuens.reduction.base import Reduction
from gpuens.reduction.ca_tree import CATree
from gpuens.reduction.core_groups import CoreGroups, core_groups
from gpuens.reduction.sampling import Sample

__all__ = ["CATree", "CoreGroups", "Reduction", "Sample", "core_groups", "reducer"]

_BY_NAME: dict[str, Any] = {"catree": CATree, "core-groups": CoreGroups, "sample": Sample}


def reducer(value: Any) -> Any:
    """Return what reduces an ensemble: ``value`` itself, or what a text such as "sample:5000,by=sum" names.

    After the name come the parameters, with commas between them: a value alone is the first parameter.

    >>> from gpuens.reduction import reducer
    >>> reducer("sample:size=5000,by=sum")
    Sample(5000, random_state=0, by='sum')
    """
    if not isinstance(value, str):
        return validation.reducer(value)
    name, _, text = value.partition(":")
    kind = _BY_NAME[validation.choice(name, "reduction", sorted(_BY_NAME))]
    names = list(inspect.signature(kind).parameters)
    given = validation.reduction_parameters([part.strip() for part in text.split(",") if part.strip()], name, names)
    missing = [
        parameter.name
        for parameter in inspect.signature(kind).parameters.values()
        if parameter.default is parameter.empty and parameter.name not in given
    ]
    validation.nothing_missing(missing, name)
    return kind(**given)
