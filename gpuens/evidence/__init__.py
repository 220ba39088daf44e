"""Evidence for a consensus: agreement with the base clusterings, and certainty of objects, clusters and pairs.

All evidence is computed from the label rows and the sizes of cluster intersections. Only `pairs` also compares the
distinct label rows with each other.
"""

from gpuens.evidence.agreement import Agreement, agreement
from gpuens.evidence.annotators import Annotators, annotators
from gpuens.evidence.beyond_chance import BeyondChance, beyond_chance
from gpuens.evidence.certificate import Certificate, certificate
from gpuens.evidence.clusters import Clusters, clusters
from gpuens.evidence.consensus_matrix import ConsensusMatrix
from gpuens.evidence.consistency import Consistency, consistency
from gpuens.evidence.credible_ball import BallBounds, CredibleBall, NumberPosterior, credible_ball
from gpuens.evidence.joins import Joins, joins
from gpuens.evidence.objects import NewObjects, Objects, objects
from gpuens.evidence.pairs import Pairs, pairs
from gpuens.evidence.spectrum import Spectrum, spectrum
from gpuens.evidence.suggestion import Suggestion, suggestion
from gpuens.evidence.whole import Evidence

__all__ = [
    "Agreement",
    "Annotators",
    "BallBounds",
    "BeyondChance",
    "Certificate",
    "Clusters",
    "ConsensusMatrix",
    "Consistency",
    "CredibleBall",
    "Evidence",
    "Joins",
    "NewObjects",
    "NumberPosterior",
    "Objects",
    "Pairs",
    "Spectrum",
    "Suggestion",
    "agreement",
    "annotators",
    "beyond_chance",
    "certificate",
    "clusters",
    "consistency",
    "credible_ball",
    "joins",
    "objects",
    "pairs",
    "spectrum",
    "suggestion",
]


def __dir__() -> list[str]:
    return sorted(__all__)
