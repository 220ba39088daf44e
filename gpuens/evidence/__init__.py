"""Evidence for a consensus: how well it agrees with the base clusterings, and how sure each object is.

Everything follows from label rows and the sizes of what clusters share; no pair of objects is visited.
"""

from gpuens.evidence.agreement import Agreement, agreement
from gpuens.evidence.objects import Objects, objects
from gpuens.evidence.pairs import Pairs, pairs

__all__ = ["Agreement", "Objects", "Pairs", "agreement", "objects", "pairs"]
