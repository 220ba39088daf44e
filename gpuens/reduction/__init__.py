"""Fewer rows for the same answer: reductions replace N objects by weighted representatives.

A reduction is any object with ``reduce(ensemble) -> Reduction``. Core groups are exact and are what every estimator
uses when it is told nothing else.
"""

from gpuens.reduction.base import Reduction
from gpuens.reduction.core_groups import CoreGroups, core_groups
from gpuens.reduction.sampling import Sample

__all__ = ["CoreGroups", "Reduction", "Sample", "core_groups"]
